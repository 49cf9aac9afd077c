"""Views and the public package: answers equal the output of commands, and every error is a documented exception."""

import inspect
import json
import shutil
import tomllib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from histories import list_decoded_positions
from own_rules import read_elo_text
from sqlalchemy import make_url
from stores import make_ruled_ledger

import ratings_ledger as rl

Ratings = Callable[..., Any]
RULESET = Path(__file__).parents[2] / "examples" / "club-catan-elo-2.toml"
LADDER = "club-catan-elo/all"
GAMES = [
    ("g-1", "2024-01-05T20:00Z", "anna", "ben", "cleo"),
    ("g-2", "2024-02-05T20:00Z", "ben=cleo", "anna"),
    ("g-3", "2024-03-05T20:00Z", "dora", "anna"),
]


def make_ledger_with_games(ratings: Ratings, url: str) -> None:
    """Make a ledger with three games, an adjustment and a published list."""
    make_ruled_ledger(ratings, url)
    for game_id, at, *players in GAMES:
        command = ("record", "--game", "club-catan", "--game-id", game_id, "--at", at, "--by", "mira", *players)
        assert ratings(*command, "--quiet", db=url).exit_code == 0
    assert ratings("publish", LADDER, "--by", "mira", db=url).exit_code == 0
    assert ratings("adjust", LADDER, "anna", "10", "--reason", "a late prize", db=url).exit_code == 0


@pytest.fixture
def url(copy_ledger: Callable[..., str]) -> str:
    """Return the ledger of `make_ledger_with_games`, in each kind of store."""
    return copy_ledger(make_ledger_with_games)


COORDINATES: list[dict[str, Any]] = [
    {},
    {"as_of": "2024-02-29"},
    {"known_at": 20},
    {"rules": "club-catan-elo@1"},
    {"as_of": "2024-01-31", "known_at": 22, "rules": "club-catan-elo@1"},
]


@pytest.mark.slow_cases
@pytest.mark.parametrize("coordinates", COORDINATES, ids=str)
def test_results_equal_command_output(url: str, ratings: Ratings, coordinates: dict[str, Any]) -> None:
    """At any coordinates, a result dumps to the JSON of its command."""
    options = [part for name, value in coordinates.items() for part in (f"--{name.replace('_', '-')}", value)]
    with rl.open(url) as ledger:
        view = ledger.at(**coordinates)
        results = {
            ("standings", LADDER): view.standings(LADDER),
            ("books", LADDER): view.balance(LADDER),
            ("standings", LADDER, "--player", "ben"): view.standings(LADDER, ["ben"]),
            ("standings", LADDER, "--limit", 1): view.standings(LADDER, limit=1),
            ("history", "anna", LADDER): view.history(LADDER, "anna"),
            ("explain", "g-1", LADDER): view.explain(LADDER, "g-1"),
            ("explain", "anna", LADDER): view.account(LADDER, "anna"),
        }
        if not coordinates:
            results["standings", LADDER, "--as-published"] = view.published(LADDER)
    check_command_outputs(ratings, url, {(*command, *options): result for command, result in results.items()})


def check_command_outputs(ratings: Ratings, url: str, results: dict[tuple[Any, ...], rl.Result]) -> None:
    """Check that each result dumps to the JSON of its command."""
    for command, result in results.items():
        printed = ratings(*command, "--format", "json", db=url)
        assert (printed.exit_code, json.loads(printed.stdout)) == (0, result.model_dump()), command


@pytest.mark.slow_cases
def test_games_and_events_equal_command_output(url: str, ratings: Ratings) -> None:
    """Games and events dump to the JSON of their commands, also with filters and at coordinates."""
    assert ratings("void", "g-2", "--reason", "a rehearsal", db=url).exit_code == 0
    with rl.open(url) as ledger:
        view, early, before = ledger.at(), ledger.at(as_of="2024-02-29"), ledger.at(known_at=20)
        check_command_outputs(
            ratings,
            url,
            {
                ("games", "--limit", 0): view.games(),
                ("games", "g-2"): view.games("g-2"),
                ("games", "--player", "dora", "--game", "club-catan"): view.games(player="dora", game="club-catan"),
                ("games", "--since", "2024-02-01", "--by", "mira", "--limit", 1): view.games(
                    since="2024-02-01", by="mira", limit=1
                ),
                ("games", "--as-of", "2024-02-29"): early.games(),
                ("games", "--known-at", 20): before.games(),
                ("log", "--limit", 0): view.events(),
                ("log", "g-2"): view.events("g-2"),
                ("log", "anna", "--type", "game.recorded"): view.events("anna", types=["game.recorded"]),
                ("log", "--since", 20, "--by", "mira", "--limit", 2): view.events(since="20", by="mira", limit=2),
                ("log", "--known-at", 20, "--limit", 1): before.events(limit=1),
            },
        )
        assert [game.voided for game in view.games().rows] == [rl.ABSENT, True, rl.ABSENT]
        assert (view.games(limit=1).older, view.events("g-2").rows[0].withdrawn) == (2, False)


@pytest.mark.slow_cases
def test_rulesets_equal_command_output(url: str, ratings: Ratings) -> None:
    """The published versions, and one ruleset with its timeline, dump to the JSON of their commands."""
    assert ratings("rules", "publish", RULESET, db=url).exit_code == 0
    with rl.open(url) as ledger:
        now, before = ledger.at(), ledger.at(known_at=20)
        check_command_outputs(
            ratings,
            url,
            {
                ("rules", "list"): now.rulesets(),
                ("rules", "list", "--known-at", 20): before.rulesets(),
                ("rules", "show", "club-catan-elo"): now.ruleset("club-catan-elo"),
                ("rules", "show", "club-catan-elo@1"): now.ruleset("club-catan-elo@1"),
                ("rules", "show", "club-catan-elo", "--known-at", 20): before.ruleset("club-catan-elo"),
            },
        )
        assert [len(view.ruleset("club-catan-elo").versions) for view in (before, now)] == [1, 2]


@pytest.mark.slow_cases
def test_decisions_come_with_their_shares_of_each_change(url: str, ratings: Ratings) -> None:
    """Decisions after a position come with the points that each of them caused; their sum is the whole difference."""
    assert ratings("void", "g-2", "--reason", "a rehearsal", "--by", "mira", db=url).exit_code == 0
    with rl.open(url) as ledger:
        before, now = ledger.at(known_at=20), ledger.at()
        answer = now.decisions(20)
        points_before, points_now = (
            {row.player: row.points for row in view.standings(LADDER).rows} for view in (before, now)
        )
    assert [(decision.type, decision.by, decision.reason) for decision in answer.decisions][1:] == [
        ("game.voided", "mira", "a rehearsal")
    ]
    assert {(share.ladder, share.player) for share in answer.shares} >= {(LADDER, "anna"), (LADDER, "ben")}
    for share in (share for share in answer.shares if share.ladder == LADDER):
        assert sum(share.amounts.values()) == share.change
        assert (share.before, share.after) == (points_before.get(share.player), points_now.get(share.player))
    assert json.loads(json.dumps(answer.model_dump()))["from"] == 20


@pytest.mark.slow_cases
def test_leagues_equal_command_output(url: str, ratings: Ratings) -> None:
    """Leagues, a league with its table, and a player's missing opponents dump to the JSON of their commands."""
    for name in ("spring", "autumn"):
        created = (
            "league",
            "create",
            name,
            "--game",
            "cartagena",
            "--players-per-game",
            3,
            "--at",
            "2024-04-01T12:00Z",
        )
        assert ratings(*created, db=url).exit_code == 0
    with rl.open(url) as ledger:
        view = ledger.at()
        check_command_outputs(
            ratings,
            url,
            {
                ("league", "list"): view.leagues(),
                ("league", "show", "spring"): view.league("spring"),
                ("league", "unmet", LADDER, "dora"): view.unmet(LADDER, "dora"),
            },
        )
        assert [row.player for row in view.unmet(LADDER, "dora").rows] == ["ben", "cleo"]
        assert (view.league("spring").state, view.league("spring").ladder) == (
            "0 of 8 players",
            "youplay-league/spring",
        )


@pytest.mark.slow_cases
def test_clocks_equal_command_output(url: str, ratings: Ratings) -> None:
    """The clock of a game and the explanation of a player's timer dump to the JSON of their commands."""
    steps: list[dict[str, Any]] = [
        {"type": "clock.started", "at": 0, "players": ["anna", "ben"]},
        {"type": "clock.offered", "at": 5, "player": "anna", "choice": "fortune"},
        {"type": "clock.pause_asked", "at": 9, "player": "ben"},
    ]
    lines = [
        json.dumps(
            {"type": step.pop("type"), "occurred_at": "2024-04-01T20:00:00Z", "data": {"game_id": "c-1", **step}}
        )
        for step in steps
    ]
    assert ratings("import", "-", db=url, input="\n".join(lines)).exit_code == 0
    with rl.open(url) as ledger:
        view = ledger.at()
        check_command_outputs(
            ratings,
            url,
            {
                ("clock", "show", "c-1"): view.clock("c-1"),
                ("clock", "show", "c-1", "--at", 7): view.clock("c-1", 7),
                ("clock", "explain", "c-1", "anna"): view.clock_of("c-1", "anna"),
            },
        )


@pytest.mark.slow
def test_comparisons_equal_command_output(url: str, ratings: Ratings) -> None:
    """A comparison of coordinates, its causes, and a simulation dump to the JSON of their commands."""
    text = RULESET.read_text(encoding="utf-8")
    with rl.open(url) as ledger:
        now, early, before = ledger.at(), ledger.at("2024-02-29"), ledger.at(known_at=20)
        versions, published = ledger.at(rules="club-catan-elo@1"), ledger.published()
        check_command_outputs(ratings, url, {
            ("diff", 20, "now"): ledger.compare(before, now),
            ("diff", "now", "as-of=2024-02-29", LADDER): ledger.compare(now, early, [LADDER]),
            ("diff", "now", "rules=club-catan-elo@1"): ledger.compare(now, versions),
            ("diff", "published", "now"): ledger.compare(published, now),
            ("explain", "--change", "anna", LADDER, "--from", 20): ledger.attribute(LADDER, "anna", before, now),
            ("explain", "--change", "anna", LADDER, "--from", "published", "--to", "as-of=2024-02-29"):
                ledger.attribute(LADDER, "anna", published, early),
            ("whatif", RULESET): ledger.simulate(text, now),
            ("whatif", RULESET, "--as-of", "2024-02-29", "--ladder", LADDER): ledger.simulate(text, early, [LADDER]),
        })  # fmt: skip
        causes = ledger.attribute(LADDER, "anna", before, now)
        assert sum(cause.amount for cause in causes.causes) == causes.change
        simulated = {ladder.summary.ladder: ladder for ladder in ledger.simulate(text, now).variants[0].ladders}
        assert simulated[LADDER].quality.after is not None


@pytest.mark.slow_cases
@pytest.mark.parametrize("coordinates", COORDINATES, ids=str)
def test_streamed_results_equal_exported_lines(url: str, ratings: Ratings, coordinates: dict[str, Any]) -> None:
    """All standings, and all changes of a ladder, are streamed as the lines that the exports write."""
    options = [part for name, value in coordinates.items() for part in (f"--{name.replace('_', '-')}", value)]
    with rl.open(url) as ledger:
        view = ledger.at(**coordinates)
        streams = {
            ("standings",): view.every_standings(),
            ("standings", LADDER): view.every_standings([LADDER]),
            ("changes", LADDER): view.changes(LADDER),
        }
        for command, results in streams.items():
            exported = ratings("export", *command, *options, db=url)
            lines = [json.loads(line) for line in exported.stdout.splitlines()]
            assert (exported.exit_code, lines) == (0, [result.model_dump() for result in results]), command


@pytest.mark.slow_cases
def test_results_are_exact_and_frozen(url: str) -> None:
    """Points are fractions, times are in UTC, and a result cannot be changed."""
    with rl.open(url) as ledger:
        standings, history = ledger.at().standings(LADDER), ledger.at("2024-02-29").history(LADDER, "anna")
        balance = ledger.at().balance(LADDER)
    amounts = {account.account: account.amount for account in balance.accounts}
    assert (sum(row.points for row in standings.rows), balance.sum) == (amounts["players"], 0)
    assert (amounts["adjusted"], amounts["start"]) == (-10, -4000)
    assert all(isinstance(row.points, Fraction) for row in standings.rows)
    assert [row.occurred_at for row in history.rows] == [
        datetime(2024, 1, 5, 20, tzinfo=UTC),
        datetime(2024, 2, 5, 20, tzinfo=UTC),
    ]
    assert history.at.as_of_datetime == datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)
    with pytest.raises(FrozenInstanceError):
        standings.rows[0].points = Fraction(0)  # type: ignore[misc]


def build_void(game_id: str) -> dict[str, Any]:
    """Return the event that voids a game."""
    return {"type": "game.voided", "data": {"game_id": game_id, "reason": "never played"}}


BAD_CALLS: list[tuple[Callable[[rl.Ledger], object], type[rl.LedgerError], str | None, int]] = [
    (lambda ledger: ledger.at(as_of="yesterday").standings(LADDER), rl.BadArgument, "as_of", 2),
    (lambda ledger: ledger.at(as_of=datetime(2024, 2, 29)), rl.BadArgument, "as_of", 2),
    (lambda ledger: ledger.at(as_of=20240229), rl.BadArgument, "as_of", 2),  # type: ignore[arg-type]
    (lambda ledger: ledger.at().standings(LADDER, limit="3"), rl.BadArgument, "limit", 2),  # type: ignore[arg-type]
    (lambda ledger: ledger.at(known_at=99).standings(LADDER), rl.BadArgument, "known_at", 2),
    (lambda ledger: ledger.at(known_at="soon").standings(LADDER), rl.BadArgument, "known_at", 2),
    (lambda ledger: ledger.at(rules="club-catan-elo@9").standings(LADDER), rl.BadArgument, "rules", 2),
    (lambda ledger: ledger.at().standings("no-such/all"), rl.BadArgument, "ladder", 2),
    (lambda ledger: ledger.at().standings("club-catan-elo/99/x"), rl.BadArgument, "ladder", 2),
    (lambda ledger: ledger.at().history(LADDER, "zoe"), rl.Unknown, "player-unknown", 1),
    (lambda ledger: ledger.at().account(LADDER, "zoe"), rl.Unknown, "player-unknown", 1),
    (lambda ledger: ledger.at().explain(LADDER, "g-9"), rl.Unknown, "game-unknown", 1),
    (lambda ledger: ledger.at("1999-01-01").published(LADDER), rl.Unknown, "list-unknown", 1),
    (lambda ledger: ledger.at().games(since="yesterday"), rl.BadArgument, "since", 2),
    (lambda ledger: ledger.at("yesterday").games(), rl.BadArgument, "as_of", 2),
    (lambda ledger: ledger.at().events(since="99"), rl.BadArgument, "since", 2),
    (lambda ledger: ledger.at().events(types=["game.vided"]), rl.BadArgument, "types", 2),
    (lambda ledger: ledger.at(known_at=99).events(), rl.BadArgument, "known_at", 2),
    (lambda ledger: ledger.at().decisions(99), rl.BadArgument, "after", 2),
    (lambda ledger: ledger.at(known_at=1).decisions(1), rl.BadArgument, "after", 2),
    (lambda ledger: ledger.at().ruleset("club-catan-elo@9"), rl.BadArgument, "name", 2),
    (lambda ledger: ledger.at(known_at=99).rulesets(), rl.BadArgument, "known_at", 2),
    (lambda ledger: ledger.at().league("winter"), rl.LedgerError, "league-unknown", 2),
    (lambda ledger: ledger.at().unmet(LADDER, "zoe"), rl.Unknown, "unknown", 1),
    (lambda ledger: ledger.at().unmet("no-such/all", "anna"), rl.BadArgument, "ladder", 2),
    (lambda ledger: ledger.compare(ledger.at("x"), ledger.at()), rl.BadArgument, "as_of", 2),
    (lambda ledger: ledger.compare(ledger.at(rules="no@1"), ledger.at(), [LADDER]), rl.BadArgument, "coordinates", 2),
    (lambda ledger: ledger.compare(ledger.at(), ledger.at(), ["no-such/all"]), rl.BadArgument, "ladder", 2),
    (lambda ledger: ledger.compare(ledger.published(), ledger.at(), ["catan-elo/x"]), rl.Unknown, "unknown", 1),
    (lambda ledger: ledger.attribute(LADDER, "zoe", ledger.at(), ledger.at()), rl.Unknown, "player-unknown", 1),
    (lambda ledger: ledger.simulate("id = 3", ledger.at()), rl.BadArgument, "ruleset", 2),
    (lambda ledger: ledger.simulate(RULESET.read_text(), ledger.at(), ["club-catan-elo/x"]),
     rl.BadArgument, "ladder", 2),
    (lambda ledger: ledger.simulate(RULESET.read_text().replace('"UTC"', '"Asia/Tokyo"'), ledger.at()),
     rl.RulesetRefused, "partition-changed", 1),
    (lambda ledger: next(ledger.at().every_standings(["no-such/all"])), rl.BadArgument, "ladder", 2),
    (lambda ledger: next(ledger.at().changes("no-such/all")), rl.BadArgument, "ladder", 2),
    (lambda ledger: ledger.at().clock("c-9"), rl.Unknown, "unknown", 1),
    (lambda ledger: ledger.at(known_at="x").clock_of("c-9", "anna"), rl.BadArgument, "known_at", 2),
    (lambda ledger: ledger.at(as_of=2024), rl.BadArgument, "as_of", 2),  # type: ignore[arg-type]
    (lambda ledger: ledger.at(known_at=True), rl.BadArgument, "known_at", 2),
    (lambda ledger: ledger.propose(7, "mira"), rl.BadArgument, "events", 2),  # type: ignore[arg-type]
    (lambda ledger: ledger.propose("g-9", "mira"), rl.BadArgument, "events", 2),  # type: ignore[arg-type]
    (lambda ledger: ledger.propose([7], "mira"), rl.BadArgument, "events", 2),  # type: ignore[list-item]
    (lambda ledger: ledger.propose({"type": {1}}, "mira"), rl.BadArgument, "events", 2),
    (lambda ledger: ledger.propose({"points": float("nan")}, "mira"), rl.BadArgument, "events", 2),
    (lambda ledger: ledger.propose([], ""), rl.BadArgument, "by", 2),
    (lambda ledger: ledger.propose([], 7), rl.BadArgument, "by", 2),  # type: ignore[arg-type]
    (lambda ledger: ledger.propose([], "mira", new_names="maybe"), rl.BadArgument, "new_names", 2),  # type: ignore[arg-type]
    (lambda ledger: ledger.propose({}, "mira").commit(), rl.Refused, "missing-member", 1),
    (lambda ledger: ledger.propose({"game_id": 7}, "mira").commit(), rl.Refused, "wrong-type", 1),
    (lambda ledger: ledger.propose(build_void("g-9"), "mira").commit(), rl.Refused, "game-unknown", 1),
    (lambda ledger: ledger.propose(build_void("g-1"), "mira", based_on={"game:g-1": 1}).commit(), rl.ChangedMeanwhile,
     "changed-meanwhile", 1),
    (lambda ledger: ledger.publish_shipped("mira", "no-such"), rl.BadArgument, "ruleset_id", 2),
    (lambda ledger: ledger.publish_shipped("mira", games=["Chess!"]), rl.Refused, "bad-slug", 1),
    (lambda ledger: rl.open(7), rl.BadArgument, "name", 2),  # type: ignore[arg-type]
    (lambda ledger: rl.open("/no/such/ratings.db"), rl.NoLedger, "no-ledger", 3),
    (lambda ledger: rl.open("x" * 5000), rl.StoreUnavailable, "unreachable", 3),
    (lambda ledger: rl.open("\ud800.db"), rl.BadArgument, "name", 2),
    (lambda ledger: ledger.at().standings(LADDER, "mira"), rl.BadArgument, "players", 2),
    (lambda ledger: ledger.at().standings(LADDER, limit=-1), rl.BadArgument, "limit", 2),
    (lambda ledger: ledger.at().published(LADDER, limit=-1), rl.BadArgument, "limit", 2),
    (lambda ledger: ledger.at().overview(LADDER, after=-1), rl.BadArgument, "after", 2),
    (lambda ledger: ledger.at().games(limit=-3), rl.BadArgument, "limit", 2),
    (lambda ledger: ledger.at().events(limit=-1), rl.BadArgument, "limit", 2),
    (lambda ledger: ledger.at(rules="no-such@1").standings(LADDER), rl.BadArgument, "rules", 2),
    (lambda ledger: ledger.at().predict(LADDER, ["anna", "ben"], numbers={"x": 1}), rl.BadArgument, "numbers", 2),
    (lambda ledger: ledger.compare(7, ledger.at()), rl.BadArgument, "before", 2),  # type: ignore[arg-type]
]  # fmt: skip
# a valid value for every required argument
VALID_ARGUMENTS: dict[str, Any] = {
    "ladder": LADDER, "player": "anna", "players": ["anna"], "game_id": "g-1", "game_ids": ["g-1"], "position": 3,
    "places": [1, 2], "name": "club-catan-elo", "second": "anna", "text": "odd", "after": 1,
    "league": "winter", "by": "mira", "events": build_void("g-1"), "sides": ["anna", "ben"], "pairs": [("anna", "ben")],
    "ruleset": "elo-chess",
}  # fmt: skip
# methods that take views or results, and `close`, after which no method can be called
SKIPPED_METHODS = ("close", "simulate", "last_event_of_ranks", "compare", "attribute")
ODD_VALUES = (
    7,
    -3,
    2**70,
    None,
    True,
    1.5,
    "",
    "\ud800",
    "a\0b",
    "x" * 5000,
    "a/b",
    b"x",
    [7],
    ["\ud800"],
    {"a": 1},
    object(),
)


@pytest.mark.slow_cases
def test_bad_calls_raise_documented_exceptions(url: str) -> None:
    """A bad argument is named, an unknown name has its code, and both have the exit code of the command."""
    with rl.open(url) as ledger:
        for call, exception, argument_or_reason, exit_code in BAD_CALLS:
            with pytest.raises(exception) as caught:
                call(ledger)
            problem = caught.value
            stated = problem.argument if isinstance(problem, rl.BadArgument) else problem.reason
            assert (stated, problem.exit_code) == (argument_or_reason, exit_code), problem


@pytest.mark.slow
def test_odd_arguments_raise_only_documented_exceptions(url: str, store_kind: str, at_length: bool) -> None:
    """An odd value for any argument of any method is answered or raises a documented exception."""
    with rl.open(url) as ledger:
        view = ledger.at()
        methods = [
            getattr(owner, name)
            for owner in (view, ledger)
            for name in dir(owner)
            if not name.startswith("_") and name not in SKIPPED_METHODS and inspect.ismethod(getattr(owner, name))
        ]
        assert len(methods) > 40
        odd_values = ODD_VALUES if at_length or store_kind == "sqlite" else ODD_VALUES[::5]
        for method in methods:
            parameters = inspect.signature(method).parameters.values()
            needed = {
                parameter.name: VALID_ARGUMENTS[parameter.name]
                for parameter in parameters
                if parameter.default is parameter.empty
            }
            if method.__name__ == "follow":  # without a timeout it waits for events
                needed["timeout_seconds"] = 0
            for name, odd in product([parameter.name for parameter in parameters], odd_values):
                with suppress(rl.LedgerError):
                    answer = method(**needed | {name: odd})
                    if inspect.isgenerator(answer) and name != "timeout_seconds":
                        deque(answer, maxlen=0)


@pytest.mark.slow_cases
def test_python_dates_and_times_equal_their_text(url: str) -> None:
    """A date or a time with a zone means the same as its text; a limit must be a number, not a text."""
    with rl.open(url) as ledger:
        for value, text in (
            (date(2024, 2, 29), "2024-02-29"),
            (datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00Z"),
        ):
            assert ledger.at(as_of=value).standings(LADDER) == ledger.at(as_of=text).standings(LADDER)
        now = ledger.head.recorded_at
        assert len(ledger.at(known_at=datetime.fromtimestamp(now / 10**6 + 1, UTC)).games().rows) == len(GAMES)
        change = ledger.at().history(LADDER, "anna").rows[0]
        assert ledger.at(as_of=change.occurred_at).standings(LADDER).rows
        with pytest.raises(rl.BadArgument, match="limit must be a whole number"):
            ledger.at().standings(LADDER, limit="3")  # type: ignore[arg-type]


@pytest.mark.slow_cases
def test_limit_zero_returns_all_rows(url: str) -> None:
    """A limit of 0 returns all rows, as it does for commands."""
    with rl.open(url) as ledger:
        view = ledger.at()
        assert len(view.standings(LADDER, limit=0).rows) == len(view.standings(LADDER).rows) > 2
        assert len(view.overview(LADDER, limit=0).rows) == len(view.standings(LADDER).rows)
        assert len(view.games(limit=0).rows) == len(GAMES)


def test_ledger_opens_by_path_and_package_lists_its_names(copy_ledger_file: Callable[..., Path]) -> None:
    """A ledger opens by a `Path`, and the package has exactly the names that it lists."""
    with rl.open(Path(copy_ledger_file(make_ledger_with_games))) as ledger:
        assert len(ledger.at().games().rows) == len(GAMES)
    assert {name for name in dir(rl) if not name.startswith("__")} == {*rl.__all__}


@pytest.mark.slow_cases
def test_closed_ledger_rejects_questions(url: str) -> None:
    """After one or two calls of `close`, questions to the ledger and its views raise a clear error."""
    ledger = rl.open(url)
    view = ledger.at()
    assert ledger.head.position > len(GAMES)
    assert view.standings(LADDER).rows
    ledger.close()
    ledger.close()
    for query in (lambda: ledger.head, lambda: view.standings(LADDER), view.games, ledger.status, ledger.at().ladders):
        with pytest.raises(rl.BadArgument, match="the ledger is closed; open it again"):
            query()


@pytest.mark.slow_cases
def test_view_decodes_once_and_follows_the_log(url: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole log is decoded only once; as it grows, the facts are continued."""
    decoded = list_decoded_positions(monkeypatch)
    game = ("record", "--game", "club-catan", "--game-id", "g-4", "--at", "2024-04-05T20:00Z", "ben", "anna")
    with rl.open(url) as ledger:
        view = ledger.at()
        before = view.standings(LADDER)
        assert (view.balance(LADDER).sum, view.history(LADDER, "ben").rows[0].game_id) == (0, "g-1")
        assert decoded == [ledger.head.position]
        with pytest.MonkeyPatch.context() as patch:
            list_decoded_positions(patch)  # the command's own decoding does not count
            assert ratings(*game, db=url).exit_code == 0
        assert view.standings(LADDER).games == before.games + 1
        assert len(decoded) == 1


@pytest.mark.slow_cases
def test_surprising_answers_have_notes(url: str) -> None:
    """Notes explain a time in the future and a ladder without games yet; an unknown ladder without a similar name gets
    none.
    """
    with rl.open(url) as ledger:
        future, early, mistyped = ledger.at("2999-01-01"), ledger.at("2001-01-01"), ledger.at()
        future.standings(LADDER)
        assert early.standings(LADDER).rows == ()
        mistyped.standings("catan-elo/rivals-duel")
    assert future.notes == ["2999-01-01 is in the future; more games may be played until then"]
    assert early.notes == [f"the first game on {LADDER.removesuffix('/all')} was at 2024-01-05 20:00:00 UTC"]
    assert mistyped.notes == []  # no other ladder has a similar name


@pytest.mark.slow
def test_location_has_no_password(url: str) -> None:
    """The location of a ledger names the store without its password."""
    parts = make_url(url)
    if parts.get_backend_name() == "postgresql":
        parts = parts.set(password=parts.password or "secret")  # the tests' own server ignores passwords
    with rl.open(parts.render_as_string(hide_password=False)) as ledger:
        assert (parts.database or "") in ledger.location
        assert f":{parts.password}@" not in ledger.location


@pytest.mark.slow_cases
def test_threads_share_a_ledger(url: str) -> None:
    """Threads that share a ledger, or one of its views, all get the same answers."""
    with rl.open(url) as ledger:
        shared = ledger.at()
        expected = shared.standings(LADDER)
        with ThreadPoolExecutor(4) as pool:
            own_views = [pool.submit(lambda: ledger.at().standings(LADDER)) for _ in range(8)]
            shared_view = [pool.submit(shared.standings, LADDER) for _ in range(8)]
            answers = [task.result() for task in (*own_views, *shared_view)]
    assert [answer.rows for answer in answers] == [expected.rows] * 16


@pytest.mark.slow_cases
def test_proposal_predicts_what_its_commit_changes(url: str, ratings: Ratings) -> None:
    """A proposal lists its changes before it writes anything, and its commit makes exactly these changes."""
    with rl.open(url) as ledger:
        before, head = ledger.at().standings(LADDER), ledger.head
        game = {
            "game_id": "g-4",
            "game": "club-catan",
            "participants": [{"player": "emil", "place": 1}, {"player": "anna", "place": 2}],
        }
        plan = ledger.propose([game, build_void("g-2")], "mira")
        assert (plan.rejections, plan.result.new_players, ledger.head) == ((), ["emil"], head)
        effects = {effect.player: effect.after for effect in plan.impact().changes}
        assert ledger.at().standings(LADDER) == before
        assert (plan.commit(), ledger.head.position) == (ledger.head, head.position + 2)
        after = {row.player: row.points for row in ledger.at().standings(LADDER).rows}
    assert effects == {player: after[player] for player in effects}
    assert {*effects} == {"anna", "ben", "cleo", "dora", "emil"}


@pytest.mark.slow_cases
def test_second_proposal_about_a_game_is_rejected(url: str, ratings: Ratings) -> None:
    """The second of two proposals about one game is rejected on commit, and none of its events is written."""
    with rl.open(url) as ledger:
        plans = [ledger.propose([build_void("g-1"), build_void(name)], "mira") for name in ("g-2", "g-3")]
        plans[0].commit()
        head = ledger.head
        with pytest.raises(rl.ChangedMeanwhile, match="changed meanwhile"):
            plans[1].commit()
        assert ledger.head == head
        with pytest.raises(rl.Refused, match="is already voided"):
            ledger.propose(build_void("g-1"), "mira").commit()


def test_replaced_file_is_read_and_missing_file_is_rejected(tmp_path: Path, ratings: Ratings) -> None:
    """After a file is replaced by an earlier copy, answers come from the copy; a deleted file raises an error."""
    file, copy = tmp_path / "ratings.db", tmp_path / "before.db"
    make_ledger_with_games(ratings, str(file))
    shutil.copy(file, copy)
    with rl.open(str(file)) as ledger:
        view, head = ledger.at(), ledger.head
        before = view.standings(LADDER)
        ledger.propose(build_void("g-3"), "mira").commit()
        assert view.standings(LADDER).games == before.games - 1
        copy.replace(file)
        assert (ledger.head, view.standings(LADDER)) == (head, before)
        file.unlink()
        with pytest.raises(rl.StoreUnavailable):
            view.standings(LADDER)


@pytest.mark.slow_cases
def test_shipped_rulesets_are_published_once(url: str) -> None:
    """A program publishes the shipped rulesets that a ledger lacks, with Elo for the given games, and only once."""
    with rl.open(url) as ledger:
        assert ledger.publish_shipped("mira") == []
        assert ledger.publish_shipped("mira", games=["chess", "go"]) == ["elo-chess@1", "elo-go@1"]
        assert ledger.publish_shipped("mira", games=["chess"]) == []
        assert [row.by for row in ledger.at().rulesets().rows[-2:]] == ["mira", "mira"]


def test_shipped_ruleset_that_conflicts_is_refused() -> None:
    """A shipped ruleset cannot follow a version of another partition, and is refused with the code of its rejection."""
    with rl.create() as ledger:
        own = tomllib.loads(read_elo_text("chess")) | {
            "version": "own",
            "effective_from": "1900-01-01",
        }
        ledger.publish(own | {"partition": {"by": ["group"]}}, "mira")
        with pytest.raises(rl.Refused, match="elo-chess@1 conflicts with this ledger: partition") as refused:
            ledger.publish_shipped("mira", games=["chess"])
        assert (refused.value.code, refused.value.exit_code) == ("partition-changed", 1)


@pytest.mark.slow_cases
def test_players_join_a_league(url: str) -> None:
    """Eight players join; the last one starts the schedule, and a ninth player is rejected."""
    created = {"league": "spring", "game": "diplomacy", "players_per_game": 7}
    with rl.open(url) as ledger:
        ledger.propose({"type": "league.created", "data": created}, "mira").commit()
        heads = [ledger.join_league("spring", f"p{number}", "mira", seed="dice").position for number in range(8)]
        league = ledger.at().league("spring")
        assert (ledger.head.position, league.seed, len(league.players)) == (heads[-1], "dice", 8)
        assert (heads[-1] - heads[0], league.state) == (8, f"0 of {len(league.games)} games")
        with pytest.raises(rl.Refused, match="already has its 8 players"):
            ledger.join_league("spring", "p9", "mira")
        with pytest.raises(rl.Refused, match=r"no league is called 'autumn' \(there is spring\)"):
            ledger.join_league("autumn", "p9", "mira")
        with pytest.raises(rl.LedgerError, match=r"no league is called 'autumn' \(there is spring\)"):
            ledger.at().league("autumn")


@pytest.mark.slow_cases
def test_rejections_of_a_list_have_event_numbers(url: str) -> None:
    """Each rejection has the number of its event in the list of events; a single event has none."""

    def build_game(game_id: str, *players: str) -> dict[str, object]:
        participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
        return {"game_id": game_id, "game": "chess", "participants": participants}

    with rl.open(url) as ledger:
        events = [build_game("n-1", "anna", "ben"), build_game("n-2", "anna", "anna"), build_game("n-1", "ben", "anna")]
        rejections = ledger.propose(events, "mira", new_names="accept").rejections
        assert [(rejection.code, rejection.file, rejection.line) for rejection in rejections] == [
            ("player-twice", None, 2),
            ("id-conflict", None, 3),
        ]
        assert rejections[1].message.endswith("has different content in event 1 of this list; use another game_id")
        (rejection_of_single,) = ledger.propose(events[1], "mira", new_names="accept").rejections
        assert (rejection_of_single.code, rejection_of_single.line) == ("player-twice", None)


@pytest.mark.slow_cases
def test_forked_process_can_use_the_open_ledger(url: str) -> None:
    """A process forked with an open ledger can read and write it, and so can its parent."""
    with rl.open(url) as ledger:
        view = ledger.at()
        before = view.standings(LADDER)

        def void_first_game() -> None:
            ledger.propose(build_void("g-1"), view.standings(LADDER).rows[0].player).commit()

        child = get_context("fork").Process(target=void_first_game)
        child.start()
        child.join()
        assert (child.exitcode, view.standings(LADDER).games) == (0, before.games - 1)
        ledger.propose(build_void("g-2"), "mira").commit()
        assert view.standings(LADDER).games == before.games - 2


@pytest.mark.slow_cases
def test_proposal_is_committed_once(url: str) -> None:
    """A second commit raises an error, and so does a closed proposal; another thread may use a proposal."""
    with rl.open(url) as ledger:
        plan, closed_plan = (ledger.propose(build_void(name), "mira") for name in ("g-1", "g-2"))
        with ThreadPoolExecutor(1) as thread:
            changed = thread.submit(plan.impact).result()
            head = thread.submit(plan.commit).result()
        assert (ledger.head, plan.impact()) == (head, changed)
        closed_plan.close()
        for call in (plan.commit, closed_plan.commit, closed_plan.impact):
            with pytest.raises(rl.BadArgument, match="propose the events again"):
                call()
        assert ledger.head == head
