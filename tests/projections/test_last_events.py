"""The last event on which an answer depends: at that event the answer is the same, and a normal game changes only the
answers that depend on it.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from histories import build_ruleset_event, enter
from oracle.log import Event, Log
from oracle.times import parse_instant
from own_rules import find_shipped_text
from paths import set_paths
from sqlalchemy import Connection
from stores import make_empty_ledger, make_ruled_ledger
from time_cases import count_cases
from time_histories import INSTANTS, LADDERS, PLAYERS, draw_history

import ratings_ledger as rl
from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.ledger.store.log import head, read_known_event, read_records_at
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.validation.published_lists import read_published_lists
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.lookups import find_game_row
from ratings_ledger.projections.queries import last_events
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.game_explanations import explain_game
from ratings_ledger.projections.queries.history import load_course
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.last_events import (
    find_last_event,
    find_last_event_of_game,
    find_last_events_of_games,
)
from ratings_ledger.projections.queries.player_explanations import explain_player
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.versions import read_shipped_texts

Ratings = Callable[..., Any]
REASON = "it was wrong"
BERLIN = ZoneInfo("Europe/Berlin")
# by ruleset: the games on its ladders, and the labels that divide the ladders
GAMES_AND_LABELS = {
    "galactic-points": (["galactic-magnate"], []),
    "catan-elo": (["catan"], ["group"]),
    "catan-monthly": (["catan"], ["city", "group", "month"]),
    "catan-annual": (["catan"], ["city", "group", "year"]),
    "b5-league": (["babylon5"], ["season"]),
    "house": (["house"], ["league"]),
}


class Past:
    """The answers of a ledger as known at any position, up to an instant; each is computed once, without the cache."""

    def __init__(self, connection: Connection, as_of: int | None = None) -> None:
        self.connection = connection
        self.as_of = as_of
        self._ladders: dict[int, Ladders] = {}
        self._answers: dict[tuple[Any, ...], Any] = {}

    def load_ladders(self, position: int) -> Ladders:
        """Return the ladders as known at a position."""
        if position not in self._ladders:
            self._ladders[position] = Ladders(decode(self.connection, position, cached=False), self.as_of)
        return self._ladders[position]

    def answer(self, question: Callable[..., Any], position: int, *subject: str) -> Any:
        """Return the answer to a question at a position, or the type of its error."""
        key = (question, position, *subject)
        if key not in self._answers:
            try:
                self._answers[key] = question(self, self.load_ladders(position), *subject)
            except (UnknownLadder, RuleFailure) as problem:
                self._answers[key] = type(problem)
        return self._answers[key]


def describe_ladder(past: Past, ladders: Ladders, ladder: str) -> Any:
    """Return every answer about a ladder."""
    ranking = ladders.standings(ladder)
    totals = ranking.held, ranking.start_total, ranking.minted, ranking.burned, ranking.adjusted
    published_lists = read_published_lists(past.connection, ladders.facts.position, ladder)
    return (
        ranking.ruleset,
        ranking.games,
        [*ranking.rows],
        ranking.digest,
        totals,
        [*ladders.facts.left_out],
        published_lists,
    )


def describe_player(past: Past, ladders: Ladders, ladder: str, player: str) -> Any:
    """Return every answer about a player on a ladder, without rank and gold, which depend on all players."""
    player_id = ladders.facts.current(player)
    row = next(
        (row._replace(rank=None, gold=None) for row in ladders.standings(ladder).rows if row.player == player_id), None
    )
    account = explain_player(past.connection, ladders, ladder, player)
    explanation = account.ruleset, account.points, account.start, account.games
    published_lists = read_published_lists(past.connection, ladders.facts.position, ladder)
    return player_id, row, load_course(past.connection, ladders, ladder, player_id).rows, explanation, published_lists


def describe_game(past: Past, ladders: Ladders, ladder: str, game_id: str) -> Any:
    """Return the explanation of a game on a ladder."""
    row = find_game_row(past.connection, ladders.facts, game_id)
    explanation = explain_game(ladders, ladder, game_id, row)
    return (
        explanation.ruleset,
        explanation.why_not,
        explanation.remark,
        explanation.occurred_at,
        explanation.players,
        explanation.accounts,
    )


def is_on(ladder: str, facts: Facts, row: int) -> bool:
    """Tell whether a game is on a ladder by its labels and its time, counted there or not."""
    ruleset_id, *values = ladder.split("/")
    played = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=facts.occurred_at[row])).astimezone(BERLIN)
    labels = {name: facts.label(name, row) for name in ("game", "group", "city", "league", "season")}
    labels |= {"month": f"{played:%Y-%m}", "year": f"{played:%Y}"}
    games, by = GAMES_AND_LABELS[ruleset_id]
    return labels["game"] in games and [labels[name] for name in by] == values


def check_answers_at(past: Past, at: int, ladders: list[str]) -> Counter[str]:
    """Compare all answers at a position with those at their last events; count the answers, and the earlier events."""
    ladders_now, counts = past.load_ladders(at), Counter[str]()
    facts = ladders_now.facts

    def compare(question: Callable[..., Any], position: int, *subject: str) -> None:
        assert 0 < position <= at
        expected = past.answer(question, at, *subject)
        assert past.answer(question, position, *subject) == expected, (question.__name__, subject, position, at)
        counts[question.__name__] += 1
        counts[f"{question.__name__}, earlier"] += position < at

    for ladder in ladders:
        if past.answer(describe_ladder, at, ladder) is UnknownLadder:
            with pytest.raises(UnknownLadder):
                find_last_event(past.connection, ladders_now, ladder)
            continue
        compare(describe_ladder, find_last_event(past.connection, ladders_now, ladder), ladder)
        for player in facts.players:
            compare(describe_player, find_last_event(past.connection, ladders_now, ladder, player), ladder, player)
    for row, first in enumerate(facts.first_position):
        game_id = load_game_id(past.connection, first)
        position = find_last_event_of_game(past.connection, ladders_now, row)
        for ladder in ladders:
            if is_on(ladder, facts, row) and past.answer(describe_game, at, ladder, game_id) is not UnknownLadder:
                compare(describe_game, position, ladder, game_id)
    return counts


def load_game_id(connection: Connection, position: int) -> str:
    """Return the id of the game that the event at a position records."""
    return str(read_known_event(position, read_records_at(connection, [position])[position]).data["game_id"])


@pytest.fixture
def create_empty_ledger(copy_ledger_file: Callable[..., str]) -> Callable[[], Ledger]:
    """Return a function that creates an empty ledger."""
    template, number = Path(copy_ledger_file(make_empty_ledger).removeprefix("sqlite:///")), count()

    def create() -> Ledger:
        path = template.with_name(f"ledger-{next(number)}.db")
        shutil.copyfile(template, path)
        return open_ledger(str(path))

    return create


def enter_and_publish(ledger: Ledger, log: list[Event], ratings: Ratings, chance: Random, ladders: list[str]) -> int:
    """Enter events in parts, and publish a list after each part; return the number of published lists."""
    published = 0
    while log:
        part, log = log[:12], log[12:]
        enter(ledger, part)
        result = ratings("publish", chance.choice(ladders), "--by", "test", db=ledger.location)
        published += result.exit_code == 0
    return published


REQUIRED_CASES = [
    "late game", "corrected twice", "date corrected", "corrected to another ladder", "void of a corrected game",
    "reinstated after a correction", "rename that merges", "adjustment withdrawn", "account", "clock", "annual list",
    "published list", "describe_ladder, earlier", "describe_player, earlier", "describe_game, earlier",
    "rule version withdrawn",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_answers_are_the_same_at_the_last_event(create_empty_ledger: Any, ratings: Ratings, at_length: bool) -> None:
    """In random histories with corrections, every answer about a ladder, player or game is the same at the last event
    that it depends on.
    """
    cases: Counter[str] = Counter()
    ladders = list(dict.fromkeys(LADDERS))
    for seed in range(200 if at_length else 2):
        chance, ledger = Random(seed), create_empty_ledger()
        log = draw_history(seed, 70)
        cases["published list"] += enter_and_publish(ledger, add_clocks(chance, log), ratings, chance, ladders)
        cases += count_cases(log)
        cases["account"] += any(event["type"] == "player.account_changed" for event in log)
        with ledger.reading() as connection:
            past, last = Past(connection), head(connection).position
            cases["clock"] += sum(map(bool, past.load_ladders(last).facts.clock_seconds.values()))
            past_as_of = Past(connection, to_microseconds(parse_instant(chance.choice(INSTANTS[3:]))))
            cases += check_answers_at(past_as_of, last, ladders)
            for at in (last, *chance.sample(range(10, last), 2)):
                cases += check_answers_at(past, at, ladders)
                annual = past.answer(describe_ladder, at, "catan-annual/7/basic/2010")
                cases["annual list"] += isinstance(annual, tuple) and annual[2] != []
        ledger.engine.dispose()
    assert [name for name in REQUIRED_CASES if not cases[name]] == []


def add_clocks(chance: Random, log: Log) -> list[Event]:
    """Return a log in which some games get a clock right after they were recorded, or a few events before."""
    events: list[Event] = []
    for event in log:
        events.append(event)
        data = event["data"]
        if event["type"] == "game.recorded" and data["game"] == "galactic-magnate" and chance.randrange(2):
            players = [participant["player"] for participant in data["participants"]]
            shift = chance.choice([0, chance.randrange(12)])
            clock_events = build_clock(data["game_id"], players, chance.choice([200_000, 299_500, 601_000]))
            index = max(len(events) - shift, 1) if shift % 2 else len(events)
            events[index:index] = clock_events
    return events


def build_clock(game_id: str, players: list[str], until: int) -> list[Event]:
    """Return the events of a clock whose first player decides after `until` milliseconds."""
    steps = [
        ("started", {"at": 0, "players": players, "timers": {"main_ms": 700_000}}),
        ("offered", {"at": 0, "player": players[0], "choice": "roll-dice"}),
        ("decided", {"at": until, "player": players[0]}), ("stopped", {"at": until}),
    ]  # fmt: skip
    return [
        {"type": f"clock.{name}", "id": f"{game_id}-{name}", "occurred_at": INSTANTS[1],
         "data": {"game_id": game_id, **data}} for name, data in steps
    ]  # fmt: skip


# -- seasons that carry points over, and leagues that keep their version

CARRY_OVER_RULESET = next(text for text in read_shipped_texts() if 'id = "b5-league"' in text).replace(
    "carry_over = false", "carry_over = true"
)
SEASONS, LEAGUES = ["2010-1", "2010-2", "2010-3"], ["L", "M"]
LEAGUE_LADDERS = [*(f"b5-league/{season}" for season in SEASONS), *(f"house/{league}" for league in LEAGUES)]


def build_house_version(version: str, since: str, players_min: str, start: int) -> Event:
    """Return a version of a ruleset that is frozen per league, for games of at least `players_min` players."""
    data = {
        "id": "house", "version": version, "effective_from": since, "freeze": "league-start",
        "rule": "placement-points/1", "scope": {"game": ["house"], "players_min": int(players_min)},
        "partition": {"by": ["league"]}, "params": {"start": start},
    }  # fmt: skip
    return {"type": "ruleset.published", "occurred_at": "2008-01-01T00:00:00Z", "data": data}


def draw_game(chance: Random, game_id: str) -> Event:
    """Draw a game of a season of Babylon 5, or of a league of the house game."""
    players = chance.sample(PLAYERS, 3)
    if chance.randrange(2):
        participants = [
            {"player": player, "power": 20 - place, "influence": 5, "vp": int(place == 1)}
            for place, player in enumerate(players)
        ]
        return {"game_id": game_id, "game": "babylon5", "kind": "b5", "season": chance.choice(SEASONS),
                "participants": participants}  # fmt: skip
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    rated = {"rated": False} if chance.randrange(6) == 0 else {}
    return {
        "game_id": game_id,
        "game": "house",
        "league": chance.choice(LEAGUES),
        "participants": participants,
        **rated,
    }


def draw_event(chance: Random, number: int) -> Event:
    """Draw an event about seasons or leagues; some of them are rejected."""
    day = f"2010-{chance.randrange(1, 13):02d}-{chance.randrange(1, 28):02d}T12:00:00Z"
    game_id, reason = f"g{chance.randrange(max(number, 1))}", {"reason": REASON}
    data: dict[str, Event] = {
        "game.recorded": draw_game(chance, f"g{number}"),
        "game.corrected": {"game_id": game_id, **reason, "game": draw_game(chance, game_id)},
        "game.voided": {"game_id": game_id, **reason}, "game.reinstated": {"game_id": game_id, **reason},
        "points.adjusted": {"ladder": chance.choice(LEAGUE_LADDERS), "player": chance.choice(PLAYERS), "points": "7",
                            **reason},
        "event.voided": {"id": f"e{chance.randrange(max(number, 1))}", **reason},
        "league.created": {"league": chance.choice(LEAGUES), "game": "house", "players_per_game": 3},
        "player.renamed": {"player": chance.choice(PLAYERS), "new_player": chance.choice([f"new {number}", *PLAYERS])},
    }  # fmt: skip
    name = chance.choices(list(data), [12, 5, 3, 3, 3, 3, 1, 1])[0]
    if name == "game.corrected" and chance.randrange(2):
        data[name]["game"]["occurred_at"] = day
    return {"type": name, "id": f"e{number}", "occurred_at": day, "data": data[name]}


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_seasons_and_leagues_are_the_same_at_the_last_event(
    create_empty_ledger: Any, ratings: Ratings, at_length: bool
) -> None:
    """Answers about seasons that carry points over and about frozen leagues are the same at their last events."""
    cases: Counter[str] = Counter()
    # a league is seldom created before it has games; the last of these seeds does it
    for seed in range(400) if at_length else range(16, 20):
        chance, ledger = Random(seed), create_empty_ledger()
        rules = [
            build_ruleset_event(CARRY_OVER_RULESET),
            build_house_version("1", "2008-01-01", "2", 100),
            build_house_version("2", "2010-06-01", "2", 200),
        ]
        rules += [build_house_version("3", "2010-09-01", "3", 300)]
        enter(ledger, rules + [draw_event(chance, number) for number in range(70)])
        with ledger.reading() as connection:
            past, last = Past(connection), head(connection).position
            facts = past.load_ladders(last).facts
            cases["changed"] += sum(a != b for a, b in zip(facts.first_position, facts.live_position, strict=True))
            cases["created"] += len(facts.leagues)
            cases["withdrawn"] += len(facts.recorded.withdrawn)
            cases["renamed"] += len(facts.recorded.renames)
            for at in (last, *chance.sample(range(6, last), 3)):
                cases += check_answers_at(past, at, LEAGUE_LADDERS)
        ledger.engine.dispose()
    required_cases = ["changed", "created", "withdrawn", "renamed", "describe_ladder, earlier",
                      "describe_player, earlier", "describe_game, earlier"]  # fmt: skip
    assert [name for name in required_cases if not cases[name]] == []


@pytest.mark.slow
def test_last_events_do_not_depend_on_the_code_path(
    create_empty_ledger: Any, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Last events are equal from the log and from cached facts, and for games one by one and all at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(last_events, "INDEXED_GAMES_MIN", 1)
    ladders, cached = list(dict.fromkeys(LADDERS)), 0
    for seed in range(2):
        chance, ledger = Random(seed), create_empty_ledger()
        enter_and_publish(ledger, add_clocks(chance, draw_history(seed, 90)), ratings, chance, ladders)
        with ledger.reading() as connection:
            last = head(connection).position
            for at, as_of in ((last, None), (chance.randrange(10, last), None), (last, chance.choice(INSTANTS[3:]))):
                last_events_by_path = []
                for fast in (False, True):
                    set_paths(monkeypatch, scanned=fast, compiled=fast)
                    facts = decode(connection, at, cached=fast, lazily=fast)
                    cached += facts.cache is not None
                    ladders_at = Ladders(facts, None if as_of is None else to_microseconds(parse_instant(as_of)))
                    published = [ladder for ladder in ladders if ladder.partition("/")[0] in facts.rulesets]
                    last_events_by_path.append(list_last_events(connection, ladders_at, published))
                assert last_events_by_path[0] == last_events_by_path[1]
        ledger.engine.dispose()
    assert cached == 6


def list_last_events(connection: Connection, ladders_at: Ladders, ladders: list[str]) -> dict[Any, int]:
    """Return the last events of ladders, of all players on them, and of all games."""
    positions: dict[Any, int] = {ladder: find_last_event(connection, ladders_at, ladder) for ladder in ladders}
    for ladder in ladders:
        for player in ladders_at.facts.players:
            positions[ladder, player] = find_last_event(connection, ladders_at, ladder, player)
    for row, first in enumerate(ladders_at.facts.first_position):
        positions[first] = find_last_event_of_game(connection, ladders_at, row)
    rows = range(len(ladders_at.facts.first_position))
    game_events = find_last_events_of_games(connection, ladders_at, rows)
    assert [*game_events] == [positions[first] for first in ladders_at.facts.first_position]
    return positions


def test_view_gives_position_and_time_of_last_event(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A view gives the position and recording time of the last event of a ladder, player or game; unrecorded names are
    unknown.
    """
    url = copy_ledger_file(make_ruled_ledger)
    for day, players in (("05", ["anna", "ben"]), ("06", ["cleo", "dora"])):
        command = ("record", "--game", "club-catan", "--game-id", f"g-{day}", "--at", f"2024-01-{day}T20:00Z")
        assert ratings(*command, "--by", "mira", *players, "--quiet", db=url).exit_code == 0
    with rl.open(url) as ledger:
        view, last = ledger.at(), ledger.head
        events = {event.event["data"]["game_id"]: event.event for event in view.events(types=["game.recorded"]).rows}
        answers = {
            "g-05": [view.last_event("club-catan-elo/all", "ben"), view.last_event_of_game("g-05")],
            "g-06": [view.last_event("club-catan-elo/all"), view.last_event("club-catan-elo/all", "cleo"),
                     view.last_event_of_game("g-06")],
        }  # fmt: skip
        for game_id, answers_of_game in answers.items():
            expected = {name: events[game_id][name] for name in ("position", "recorded_at")}
            assert [answer.model_dump() for answer in answers_of_game] == [expected] * len(answers_of_game)
        assert view.last_event("club-catan-elo/all").position == last.position
        positions = {game_id: event["position"] for game_id, event in events.items()}
        assert view.last_positions_of_games() == positions
        player_positions = view.last_positions("club-catan-elo/all", ["ben", "cleo"])
        assert player_positions == {"ben": positions["g-05"], "cleo": positions["g-06"]}
        with pytest.raises(rl.Unknown):
            view.last_event("club-catan-elo/all", "zoe")
        with pytest.raises(rl.Unknown):
            view.last_event_of_game("g-07")
        with pytest.raises(rl.BadArgument):
            view.last_event("no-such-elo/all")
        with pytest.raises(rl.BadArgument, match="no version 'club-catan-elo@9' is published"):
            ledger.at(rules="club-catan-elo@9").last_event_of_game("g-05")


def test_annual_list_depends_on_the_games_of_its_months(create_empty_ledger: Callable[[], Ledger]) -> None:
    """An annual list depends on all games of its monthly lists, also on games outside its own scope."""
    ledger = create_empty_ledger()
    monthly, annual = (
        build_ruleset_event(find_shipped_text(name, "2008-03")) for name in ("catan-monthly", "catan-annual")
    )
    monthly["data"]["scope"]["game"] += ["cities"]
    games = [
        build_catan_game(f"{game}-1", f"2010-03-0{day}T12:00:00Z", game=game, city="7", group="basic")
        for day, game in enumerate(("catan", "cities"), 1)
    ]
    assert enter(ledger, [monthly, annual, *games]).appended == 4
    with ledger.reading() as connection:
        assert find_last_event(connection, Ladders(decode(connection)), "catan-annual/7/basic/2010") == 4


def test_withdrawn_adjustment_counts_from_its_own_instant_on(create_empty_ledger: Callable[[], Ledger]) -> None:
    """A ladder depends on a withdrawn adjustment and its void from the adjustment's instant on, not a microsecond
    before.
    """
    ledger, at = create_empty_ledger(), "2010-03-03T12:00:00Z"
    adjusted = {"ladder": "all-games", "player": "anna", "points": "7", "reason": REASON}
    events = [
        build_elo("all-games", []), build_catan_game("g1", "2010-03-01T12:00:00Z"),
        {"type": "points.adjusted", "id": "a", "occurred_at": at, "data": adjusted},
        {"type": "event.voided", "occurred_at": at, "data": {"id": "a", "reason": REASON}},
    ]  # fmt: skip
    assert enter(ledger, events).appended == 4
    with ledger.reading() as connection:
        facts, instant_of_adjustment = decode(connection), to_microseconds(parse_instant(at))
        last_positions = [
            find_last_event(connection, Ladders(facts, as_of), "all-games")
            for as_of in (instant_of_adjustment - 1, instant_of_adjustment)
        ]
    assert last_positions == [2, 4]


def build_catan_game(game_id: str, at: str, **labels: str) -> Event:
    """Return a game that anna wins over ben."""
    participants = [{"player": player, "place": place} for place, player in enumerate(("anna", "ben"), 1)]
    # the labels may name another game
    data = {"game_id": game_id, "game": "catan", "participants": participants, **labels}
    return {"type": "game.recorded", "occurred_at": at, "data": data}


def test_later_recorded_game_within_published_list_is_retroactive(
    copy_ledger_file: Callable[..., str], ratings: Ratings
) -> None:
    """A game recorded after a published list is retroactive if it was played up to the instant of the list."""
    url = copy_ledger_file(make_ruled_ledger)
    command = ("record", "-q", "--game", "club-catan", "anna", "ben", "--game-id")
    assert ratings(*command, "first", "--at", "2024-01-05T20:00Z", db=url).exit_code == 0
    assert ratings("publish", "club-catan-elo/all", "--as-of", "2024-01-06T20:00:00Z", db=url).exit_code == 0
    for game_id, second in (("at the instant", "00"), ("a second later", "01")):
        assert ratings(*command, game_id, "--at", f"2024-01-06T20:00:{second}Z", db=url).exit_code == 0
    with rl.open(url) as ledger:
        view = ledger.at()
        games = {event.event["position"]: event.event["data"]["game_id"]
                 for event in view.events(types=["game.recorded"]).rows}  # fmt: skip
        retroactive = view.retroactive_positions()
        assert [game_id for position, game_id in games.items() if position in retroactive] == ["at the instant"]


# -- the effects of a normal game


@pytest.mark.slow
def test_game_in_order_moves_only_its_ladders_and_players(create_empty_ledger: Any) -> None:
    """A game recorded in order of time is the last event of itself, its ladders and its players; all other last events
    stay.
    """
    chance, ledger = Random(5), create_empty_ledger()
    rules = [build_elo("by-group", ["group"]), build_elo("by-city", ["city"]), build_elo("all-games", [])]
    accounts = [
        {"type": "player.registered", "id": f"r{player}", "occurred_at": INSTANTS[0], "data": {"player": player}}
        for player in PLAYERS
    ]
    enter(ledger, rules + accounts)
    names = ["all-games", *(f"by-group/{group}" for group in "ab"), *(f"by-city/{city}" for city in "xy")]
    before: dict[tuple[str, ...], int] = {}
    for number in range(40):
        group, city, players = chance.choice("ab"), chance.choice("xy"), chance.sample(PLAYERS, 2)
        participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
        data = {"game_id": f"g{number}", "game": "catan", "group": group, "city": city, "participants": participants}
        at = f"2010-{1 + number // 28:02d}-{1 + number % 28:02d}T12:00:00Z"
        assert enter(ledger, [{"type": "game.recorded", "occurred_at": at, "data": data}]).appended == 1
        with ledger.reading() as connection:
            position = head(connection).position
            ladders = Ladders(decode(connection))
            now = {(ladder,): find_last_event(connection, ladders, ladder) for ladder in names}
            now |= {
                (ladder, player): find_last_event(connection, ladders, ladder, player)
                for ladder in names for player in PLAYERS
            }  # fmt: skip
            now |= {("game", f"g{row}"): find_last_event_of_game(connection, ladders, row) for row in range(number + 1)}
        own_ladders = ["all-games", f"by-group/{group}", f"by-city/{city}"]
        affected = {("game", f"g{number}"), *((ladder,) for ladder in own_ladders)}
        affected |= {(ladder, player) for ladder in own_ladders for player in players}
        assert {subject for subject, last in now.items() if last == position} == affected
        assert {subject: last for subject, last in now.items() if subject not in affected} == {
            subject: last for subject, last in (before or now).items() if subject not in affected
        }
        before = now


def build_elo(ruleset_id: str, by: list[str]) -> Event:
    """Return a ruleset of Elo for all games of Catan, on ladders by these labels; free accounts are excluded."""
    data = {
        "id": ruleset_id, "version": "1", "rule": "pairwise-elo/1", "effective_from": "2000-01-01",
        "scope": {"game": ["catan"], "exclude_accounts": ["free"]}, "partition": {"by": by},
        "params": {"k_per_pair": 8, "start": 1000, "scale": 400, "rounding": "pair"},
    }  # fmt: skip
    return {"type": "ruleset.published", "occurred_at": INSTANTS[0], "data": data}
