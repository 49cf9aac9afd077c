"""A view, and the public package over it: the answers are those of the commands, and refusals are a few exceptions."""

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
from sqlalchemy import make_url
from stores import make_ruled_ledger

import ratings_ledger as rl
from ratings_ledger import Snapshot
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import LadderCache
from ratings_ledger.projections.rulesets.shipped_rulesets import find_shipped

Ratings = Callable[..., Any]
RULESET = Path(__file__).parents[2] / "examples" / "club-catan-elo-2.toml"
LADDER = "club-catan-elo/all"
GAMES = [
    ("g-1", "2024-01-05T20:00Z", "anna", "ben", "cleo"),
    ("g-2", "2024-02-05T20:00Z", "ben=cleo", "anna"),
    ("g-3", "2024-03-05T20:00Z", "dora", "anna"),
]


def with_games(ratings: Ratings, url: str) -> None:
    """Make a ledger with three games, an adjustment and a published list."""
    make_ruled_ledger(ratings, url)
    for game_id, at, *players in GAMES:
        command = ("record", "--game", "club-catan", "--game-id", game_id, "--at", at, "--by", "mira", *players)
        assert ratings(*command, "--quiet", db=url).exit_code == 0
    assert ratings("publish", LADDER, "--by", "mira", db=url).exit_code == 0
    assert ratings("adjust", LADDER, "anna", "10", "--reason", "a late prize", db=url).exit_code == 0


@pytest.fixture
def url(copied: Callable[..., str]) -> str:
    """The ledger of `with_games`, in each kind of store."""
    return copied(with_games)


COORDINATES: list[dict[str, Any]] = [
    {}, {"as_of": "2024-02-29"}, {"known_at": 20}, {"rules": "club-catan-elo@1"},
    {"as_of": "2024-01-31", "known_at": 22, "rules": "club-catan-elo@1"},
]  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize("coordinates", COORDINATES, ids=str)
def test_results_are_what_commands_print(url: str, ratings: Ratings, coordinates: dict[str, Any]) -> None:
    """At any coordinates a result dumps to the JSON of its command."""
    options = [part for name, value in coordinates.items() for part in (f"--{name.replace('_', '-')}", value)]
    with rl.open(url) as ledger:
        view = ledger.at(**coordinates)
        asked = {
            ("standings", LADDER): view.standings(LADDER), ("books", LADDER): view.balance(LADDER),
            ("standings", LADDER, "--player", "ben"): view.standings(LADDER, ["ben"]),
            ("standings", LADDER, "--limit", 1): view.standings(LADDER, limit=1),
            ("history", "anna", LADDER): view.history(LADDER, "anna"),
            ("explain", "g-1", LADDER): view.explain(LADDER, "g-1"),
            ("explain", "anna", LADDER): view.account(LADDER, "anna"),
        }  # fmt: skip
        if not coordinates:
            asked["standings", LADDER, "--as-published"] = view.published(LADDER)
    same_as_printed(ratings, url, {(*command, *options): result for command, result in asked.items()})


def same_as_printed(ratings: Ratings, url: str, asked: dict[tuple[Any, ...], rl.Result]) -> None:
    """Check that each result dumps to the JSON of its command."""
    for command, result in asked.items():
        told = ratings(*command, "--format", "json", db=url)
        assert (told.exit_code, json.loads(told.stdout)) == (0, result.model_dump()), command


@pytest.mark.slow_cases
def test_what_is_recorded_is_what_commands_print(url: str, ratings: Ratings) -> None:
    """Games and events dump to the JSON of their commands, however they are chosen."""
    assert ratings("void", "g-2", "--reason", "a rehearsal", db=url).exit_code == 0
    with rl.open(url) as ledger:
        view, early, before = ledger.at(), ledger.at(as_of="2024-02-29"), ledger.at(known_at=20)
        same_as_printed(ratings, url, {
            ("games", "--limit", 0): view.games(), ("games", "g-2"): view.games("g-2"),
            ("games", "--player", "dora", "--game", "club-catan"): view.games(player="dora", game="club-catan"),
            ("games", "--since", "2024-02-01", "--by", "mira", "--limit", 1):
                view.games(since="2024-02-01", by="mira", limit=1),
            ("games", "--as-of", "2024-02-29"): early.games(), ("games", "--known-at", 20): before.games(),
            ("log", "--limit", 0): view.events(), ("log", "g-2"): view.events("g-2"),
            ("log", "anna", "--type", "game.recorded"): view.events("anna", types=["game.recorded"]),
            ("log", "--since", 20, "--by", "mira", "--limit", 2): view.events(since="20", by="mira", limit=2),
            ("log", "--known-at", 20, "--limit", 1): before.events(limit=1),
        })  # fmt: skip
        assert [game.voided for game in view.games().rows] == [rl.ABSENT, True, rl.ABSENT]
        assert (view.games(limit=1).older, view.events("g-2").rows[0].withdrawn) == (2, False)


@pytest.mark.slow_cases
def test_rulesets_are_what_commands_print(url: str, ratings: Ratings) -> None:
    """The published versions and one of them with its timeline dump to the JSON of their commands."""
    assert ratings("rules", "publish", RULESET, db=url).exit_code == 0
    with rl.open(url) as ledger:
        now, before = ledger.at(), ledger.at(known_at=20)
        same_as_printed(ratings, url, {
            ("rules", "list"): now.rulesets(), ("rules", "list", "--known-at", 20): before.rulesets(),
            ("rules", "show", "club-catan-elo"): now.ruleset("club-catan-elo"),
            ("rules", "show", "club-catan-elo@1"): now.ruleset("club-catan-elo@1"),
            ("rules", "show", "club-catan-elo", "--known-at", 20): before.ruleset("club-catan-elo"),
        })  # fmt: skip
        assert [len(one.ruleset("club-catan-elo").versions) for one in (before, now)] == [1, 2]


@pytest.mark.slow_cases
def test_decisions_are_told_with_what_they_did(url: str, ratings: Ratings) -> None:
    """What somebody decided since a position, and what that did to points, which adds up to the difference."""
    assert ratings("void", "g-2", "--reason", "a rehearsal", "--by", "mira", db=url).exit_code == 0
    with rl.open(url) as ledger:
        before, now = ledger.at(known_at=20), ledger.at()
        found = now.decisions(20)
        had, has = ({row.player: row.points for row in view.standings(LADDER).rows} for view in (before, now))
    assert [(one.type, one.by, one.reason) for one in found.decisions][1:] == [("game.voided", "mira", "a rehearsal")]
    assert {(share.ladder, share.player) for share in found.shares} >= {(LADDER, "anna"), (LADDER, "ben")}
    for share in (share for share in found.shares if share.ladder == LADDER):
        assert sum(share.amounts.values()) == share.change
        assert (share.before, share.after) == (had.get(share.player), has.get(share.player))
    assert json.loads(json.dumps(found.model_dump()))["from"] == 20


@pytest.mark.slow_cases
def test_leagues_are_what_commands_print(url: str, ratings: Ratings) -> None:
    """Leagues, one of them with its table, and whom somebody has not met dump to the JSON of their commands."""
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
        same_as_printed(ratings, url, {
            ("league", "list"): view.leagues(), ("league", "show", "spring"): view.league("spring"),
            ("league", "unmet", LADDER, "dora"): view.unmet(LADDER, "dora"),
        })  # fmt: skip
        assert [one.player for one in view.unmet(LADDER, "dora").rows] == ["ben", "cleo"]
        assert (view.league("spring").state, view.league("spring").ladder) == (
            "0 of 8 players",
            "youplay-league/spring",
        )


@pytest.mark.slow_cases
def test_clocks_are_what_commands_print(url: str, ratings: Ratings) -> None:
    """A game's clock and the account of somebody's timer dump to the JSON of their commands."""
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
        same_as_printed(ratings, url, {
            ("clock", "show", "c-1"): view.clock("c-1"), ("clock", "show", "c-1", "--at", 7): view.clock("c-1", 7),
            ("clock", "explain", "c-1", "anna"): view.clock_of("c-1", "anna"),
        })  # fmt: skip


@pytest.mark.slow
def test_comparisons_are_what_commands_print(url: str, ratings: Ratings) -> None:
    """Ladders at two coordinates, the causes between them, and a simulation dump to the JSON of their commands."""
    text = RULESET.read_text(encoding="utf-8")
    with rl.open(url) as ledger:
        now, early, before = ledger.at(), ledger.at("2024-02-29"), ledger.at(known_at=20)
        versions, published = ledger.at(rules="club-catan-elo@1"), ledger.published()
        same_as_printed(ratings, url, {
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
        simulated = {one.radius.ladder: one for one in ledger.simulate(text, now).variants[0].ladders}
        assert simulated[LADDER].quality.after is not None


@pytest.mark.slow_cases
@pytest.mark.parametrize("coordinates", COORDINATES, ids=str)
def test_streams_are_what_exports_write(url: str, ratings: Ratings, coordinates: dict[str, Any]) -> None:
    """All standings, and all changes of a ladder, come one at a time, each as the line that its command writes."""
    options = [part for name, value in coordinates.items() for part in (f"--{name.replace('_', '-')}", value)]
    with rl.open(url) as ledger:
        view = ledger.at(**coordinates)
        asked = {
            ("standings",): view.every_standings(), ("standings", LADDER): view.every_standings([LADDER]),
            ("changes", LADDER): view.changes(LADDER),
        }  # fmt: skip
        for command, results in asked.items():
            told = ratings("export", *command, *options, db=url)
            lines = [json.loads(line) for line in told.stdout.splitlines()]
            assert (told.exit_code, lines) == (0, [one.model_dump() for one in results]), command


@pytest.mark.slow_cases
def test_results_are_exact_and_frozen(url: str) -> None:
    """Points are fractions, times are in UTC, and nothing of a result can be changed."""
    with rl.open(url) as ledger:
        found, history = ledger.at().standings(LADDER), ledger.at("2024-02-29").history(LADDER, "anna")
        balance = ledger.at().balance(LADDER)
    held = {one.account: one.amount for one in balance.accounts}
    assert (sum(row.points for row in found.rows), balance.sum) == (held["players"], 0)
    assert (held["adjusted"], held["start"]) == (-10, -4000)
    assert all(isinstance(row.points, Fraction) for row in found.rows)
    assert [row.occurred_at for row in history.rows] == [datetime(2024, 1, 5, 20, tzinfo=UTC),
                                                        datetime(2024, 2, 5, 20, tzinfo=UTC)]  # fmt: skip
    assert history.at.until == datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)
    with pytest.raises(FrozenInstanceError):
        found.rows[0].points = Fraction(0)  # type: ignore[misc]


def void(game_id: str) -> dict[str, Any]:
    """The event that voids a game."""
    return {"type": "game.voided", "data": {"game_id": game_id, "reason": "never played"}}


WRONG: list[tuple[Callable[[rl.Ledger], object], type[rl.LedgerError], str | None, int]] = [
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
    (lambda ledger: ledger.at(known_at=1).decisions(1), rl.BadArgument, None, 2),
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
    (lambda ledger: ledger.propose(void("g-9"), "mira").commit(), rl.Refused, "game-unknown", 1),
    (lambda ledger: ledger.propose(void("g-1"), "mira", based_on={"game:g-1": 1}).commit(), rl.ChangedMeanwhile,
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
# for an argument of each name something that it can be
GIVEN: dict[str, Any] = {
    "ladder": LADDER, "player": "anna", "players": ["anna"], "game_id": "g-1", "game_ids": ["g-1"], "position": 3,
    "places": [1, 2], "name": "club-catan-elo", "second": "anna", "text": "odd", "after": 1,
    "league": "winter", "by": "mira", "events": void("g-1"), "sides": ["anna", "ben"], "pairs": [("anna", "ben")],
    "ruleset": "elo-chess",
}  # fmt: skip
# these take views and results
OWN_TYPES = ("close", "simulate", "last_event_of_ranks", "compare", "attribute")
ODD = (
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
def test_wrong_questions_are_a_few_exceptions(url: str) -> None:
    """A wrong argument names itself, the unknown has its code, and both have the exit code of the command."""
    with rl.open(url) as ledger:
        for ask, kind, word, exit_code in WRONG:
            with pytest.raises(kind) as caught:
                ask(ledger)
            problem = caught.value
            named = problem.argument if isinstance(problem, rl.BadArgument) else problem.reason
            assert (named, problem.exit_code) == (word, exit_code), problem


@pytest.mark.slow
def test_odd_arguments_are_documented_exceptions(url: str, store_kind: str, at_length: bool) -> None:
    """Whatever is given for one argument of any question, it is answered, or refused by a documented exception."""
    with rl.open(url) as ledger:
        view = ledger.at()
        questions = [
            getattr(side, name)
            for side in (view, ledger)
            for name in dir(side)
            if not name.startswith("_") and name not in OWN_TYPES and inspect.ismethod(getattr(side, name))
        ]  # fmt: skip
        assert len(questions) > 40
        odd_ones = ODD if at_length or store_kind == "sqlite" else ODD[::5]
        for ask in questions:
            parameters = inspect.signature(ask).parameters.values()
            needed = {one.name: GIVEN[one.name] for one in parameters if one.default is one.empty}
            if ask.__name__ == "follow":  # which waits for events unless it is told not to
                needed["timeout_seconds"] = 0
            for name, odd in product([one.name for one in parameters], odd_ones):
                with suppress(rl.LedgerError):
                    found = ask(**needed | {name: odd})
                    if inspect.isgenerator(found) and name != "timeout_seconds":
                        deque(found, maxlen=0)


@pytest.mark.slow_cases
def test_times_may_be_those_of_python(url: str) -> None:
    """A date or a time with a zone means what its text means, and a number is not called a list."""
    with rl.open(url) as ledger:
        for given, text in (
            (date(2024, 2, 29), "2024-02-29"), (datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00Z"),
        ):  # fmt: skip
            assert ledger.at(as_of=given).standings(LADDER) == ledger.at(as_of=text).standings(LADDER)
        now = ledger.head.recorded_at
        assert len(ledger.at(known_at=datetime.fromtimestamp(now / 10**6 + 1, UTC)).games().rows) == len(GAMES)
        change = ledger.at().history(LADDER, "anna").rows[0]
        assert ledger.at(as_of=change.occurred_at).standings(LADDER).rows
        with pytest.raises(rl.BadArgument, match="limit must be a whole number"):
            ledger.at().standings(LADDER, limit="3")  # type: ignore[arg-type]


@pytest.mark.slow_cases
def test_no_limit_is_all(url: str) -> None:
    """A limit of 0 means all rows wherever there is one, as it does for commands."""
    with rl.open(url) as ledger:
        view = ledger.at()
        assert len(view.standings(LADDER, limit=0).rows) == len(view.standings(LADDER).rows) > 2
        assert len(view.overview(LADDER, limit=0).rows) == len(view.standings(LADDER).rows)
        assert len(view.games(limit=0).rows) == len(GAMES)


def test_ledger_is_named_by_a_path(copied_file: Callable[..., Path]) -> None:
    """A ledger is opened by whatever is a path; the interface lists what it is and nothing else."""
    with rl.open(Path(copied_file(with_games))) as ledger:
        assert len(ledger.at().games().rows) == len(GAMES)
    assert {name for name in dir(rl) if not name.startswith("__")} == {*rl.__all__}


@pytest.mark.slow_cases
def test_closed_ledger_is_refused(url: str) -> None:
    """After closing, once or twice, questions are refused with a clear word, also those of its views."""
    ledger = rl.open(url)
    view = ledger.at()
    assert ledger.head.position > len(GAMES)
    assert view.standings(LADDER).rows
    ledger.close()
    ledger.close()
    for ask in (lambda: ledger.head, lambda: view.standings(LADDER), view.games, ledger.status, ledger.at().ladders):
        with pytest.raises(rl.BadArgument, match="the ledger is closed; open it again"):
            ask()


@pytest.mark.slow_cases
def test_view_decodes_once_and_follows_the_log(url: str, ratings: Ratings) -> None:
    """Facts are decoded once, and followed when the log has grown: no event is decoded twice."""
    decoded: list[int | None] = []

    def counting(connection: Any, position: int, lazily: bool) -> Any:
        decoded.append(position)
        return decode(connection, position, lazily=lazily)

    view = Snapshot(open_ledger(url), cache=LadderCache(counting))
    before = view.standings(LADDER)
    assert (view.balance(LADDER).sum, view.history(LADDER, "ben").rows[0].game_id) == (0, "g-1")
    assert len(decoded) == 1
    game = ("record", "--game", "club-catan", "--game-id", "g-4", "--at", "2024-04-05T20:00Z", "ben", "anna")
    assert ratings(*game, db=url).exit_code == 0
    assert view.standings(LADDER).games == before.games + 1
    assert len(decoded) == 1


@pytest.mark.slow_cases
def test_odd_answers_have_notes(url: str) -> None:
    """What is odd about an answer is noted: a time to come, a ladder without games, one that was probably meant."""
    with rl.open(url) as ledger:
        future, early, slip = ledger.at("2999-01-01"), ledger.at("2001-01-01"), ledger.at()
        future.standings(LADDER)
        assert early.standings(LADDER).rows == ()
        slip.standings("catan-elo/rivals-duel")
    assert future.notes == ["2999-01-01 is in the future; more games may be played until then"]
    assert early.notes == [f"the first game on {LADDER.removesuffix('/all')} was at 2024-01-05 20:00:00 UTC"]
    assert slip.notes == []  # no other ladder is like it


@pytest.mark.slow
def test_location_holds_no_secret(url: str) -> None:
    """The location of a ledger names the store, and never a password."""
    with rl.open(url) as ledger:
        assert (make_url(url).database or "") in ledger.location
        assert ":secret@" not in ledger.location


@pytest.mark.slow_cases
def test_threads_share_a_ledger(url: str) -> None:
    """Threads that ask one ledger, and one view of it, all get the same answers."""
    with rl.open(url) as ledger:
        shared = ledger.at()
        expected = shared.standings(LADDER)
        with ThreadPoolExecutor(4) as pool:
            own = [pool.submit(lambda: ledger.at().standings(LADDER)) for _ in range(8)]
            same = [pool.submit(shared.standings, LADDER) for _ in range(8)]
            found = [task.result() for task in (*own, *same)]
    assert [one.rows for one in found] == [expected.rows] * 16


@pytest.mark.slow_cases
def test_proposal_tells_and_commits(url: str, ratings: Ratings) -> None:
    """A proposal says what it would change before anything is written, and the ledger is like that after its commit."""
    with rl.open(url) as ledger:
        before, head = ledger.at().standings(LADDER), ledger.head
        game = {"game_id": "g-4", "game": "club-catan", "participants": [
            {"player": "emil", "place": 1}, {"player": "anna", "place": 2}]}  # fmt: skip
        plan = ledger.propose([game, void("g-2")], "mira")
        assert (plan.rejections, plan.result.new_players, ledger.head) == ((), ["emil"], head)
        effects = {effect.player: effect.after for effect in plan.impact().changes}
        assert ledger.at().standings(LADDER) == before
        assert (plan.commit(), ledger.head.position) == (ledger.head, head.position + 2)
        after = {row.player: row.points for row in ledger.at().standings(LADDER).rows}
    assert effects == {player: after[player] for player in effects}
    assert {*effects} == {"anna", "ben", "cleo", "dora", "emil"}


@pytest.mark.slow_cases
def test_committing_after_others_is_refused(url: str, ratings: Ratings) -> None:
    """Of two proposals about one game the second to be committed is refused, and nothing of it is written."""
    with rl.open(url) as ledger:
        plans = [ledger.propose([void("g-1"), void(name)], "mira") for name in ("g-2", "g-3")]
        plans[0].commit()
        head = ledger.head
        with pytest.raises(rl.ChangedMeanwhile, match="changed meanwhile"):
            plans[1].commit()
        assert ledger.head == head
        with pytest.raises(rl.Refused, match="is voided"):
            ledger.propose(void("g-1"), "mira").commit()


def test_ledger_that_vanishes_or_moves_back_is_told(tmp_path: Path, ratings: Ratings) -> None:
    """A file that is replaced by an earlier copy is answered as it is then; one that is gone is refused."""
    file, copy = tmp_path / "ratings.db", tmp_path / "before.db"
    with_games(ratings, str(file))
    shutil.copy(file, copy)
    with rl.open(str(file)) as ledger:
        view, head = ledger.at(), ledger.head
        before = view.standings(LADDER)
        ledger.propose(void("g-3"), "mira").commit()
        assert view.standings(LADDER).games == before.games - 1
        copy.replace(file)
        assert (ledger.head, view.standings(LADDER)) == (head, before)
        file.unlink()
        with pytest.raises(rl.StoreUnavailable):
            view.standings(LADDER)


@pytest.mark.slow_cases
def test_shipped_rulesets_are_published_once(url: str) -> None:
    """A program publishes the shipped rulesets that a ledger lacks, Elo for its games among them, and then no more."""
    with rl.open(url) as ledger:
        assert ledger.publish_shipped("mira") == []
        assert ledger.publish_shipped("mira", games=["chess", "go"]) == ["elo-chess@1", "elo-go@1"]
        assert ledger.publish_shipped("mira", games=["chess"]) == []
        assert [row.by for row in ledger.at().rulesets().rows[-2:]] == ["mira", "mira"]


def test_shipped_ruleset_that_conflicts_is_refused() -> None:
    """A shipped ruleset cannot follow a version of another partition, and is refused with the code of its rejection."""
    with rl.create() as ledger:
        own = tomllib.loads(find_shipped("elo").fill_in("chess", "UTC")[0]) | {
            "version": "own",
            "effective_from": "1900-01-01",
        }
        ledger.publish(own | {"partition": {"by": ["group"]}}, "mira")
        with pytest.raises(rl.Refused, match="elo-chess@1 conflicts with this ledger: partition") as refused:
            ledger.publish_shipped("mira", games=["chess"])
        assert (refused.value.code, refused.value.exit_code) == ("partition-changed", 1)


@pytest.mark.slow_cases
def test_players_join_a_league(url: str) -> None:
    """Eight players subscribe; the schedule is drawn with the last, and nobody can come after."""
    created = {"league": "spring", "game": "diplomacy", "players_per_game": 7}
    with rl.open(url) as ledger:
        ledger.propose({"type": "league.created", "data": created}, "mira").commit()
        heads = [ledger.join_league("spring", f"p{number}", "mira", seed="dice").position for number in range(8)]
        found = ledger.at().league("spring")
        assert (ledger.head.position, found.seed, len(found.players)) == (heads[-1], "dice", 8)
        assert (heads[-1] - heads[0], found.state) == (8, f"0 of {len(found.games)} games")
        with pytest.raises(rl.Refused, match="already has its 8 players"):
            ledger.join_league("spring", "p9", "mira")
        with pytest.raises(rl.Refused, match=r"no league is called 'autumn' \(there are spring\)"):
            ledger.join_league("autumn", "p9", "mira")
        with pytest.raises(rl.LedgerError, match=r"no league is called 'autumn' \(there are spring\)"):
            ledger.at().league("autumn")


@pytest.mark.slow_cases
def test_rejections_of_a_batch_say_which_event(url: str) -> None:
    """Of several events each refusal has the number of its event; that of a single one needs none."""

    def game(game_id: str, *players: str) -> dict[str, object]:
        seats = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
        return {"game_id": game_id, "game": "chess", "participants": seats}

    with rl.open(url) as ledger:
        batch = [game("n-1", "anna", "ben"), game("n-2", "anna", "anna"), game("n-1", "ben", "anna")]
        refused = ledger.propose(batch, "mira", new_names="accept").rejections
        assert [(one.code, one.file, one.line) for one in refused] == [
            ("player-twice", None, 2),
            ("id-conflict", None, 3),
        ]
        assert refused[1].message.endswith("has different content in event 1 of this list; use another id")
        (single,) = ledger.propose(batch[1], "mira", new_names="accept").rejections
        assert (single.code, single.line) == ("player-twice", None)


@pytest.mark.slow_cases
def test_forked_process_goes_on(url: str) -> None:
    """A process that is forked with an open ledger answers and writes with it, and so does its parent."""
    with rl.open(url) as ledger:
        view = ledger.at()
        before = view.standings(LADDER)

        def voids() -> None:
            ledger.propose(void("g-1"), view.standings(LADDER).rows[0].player).commit()

        child = get_context("fork").Process(target=voids)
        child.start()
        child.join()
        assert (child.exitcode, view.standings(LADDER).games) == (0, before.games - 1)
        ledger.propose(void("g-2"), "mira").commit()
        assert view.standings(LADDER).games == before.games - 2


@pytest.mark.slow_cases
def test_proposal_is_committed_once(url: str) -> None:
    """A second commit is refused, as is what was not asked before the first; another thread may do either."""
    with rl.open(url) as ledger:
        plan, other = (ledger.propose(void(name), "mira") for name in ("g-1", "g-2"))
        with ThreadPoolExecutor(1) as thread:
            changed = thread.submit(plan.impact).result()
            head = thread.submit(plan.commit).result()
        assert (ledger.head, plan.impact()) == (head, changed)
        other.close()
        for again in (plan.commit, other.commit, other.impact):
            with pytest.raises(rl.BadArgument, match="propose the events again"):
                again()
        assert ledger.head == head
