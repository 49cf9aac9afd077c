"""The last event that something depends on: answers are the same there, and an everyday game moves what it concerns."""

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
from histories import ruleset
from oracle.log import Event, Log
from oracle.times import instant
from own_rules import find_shipped_text
from paths import set_paths
from sqlalchemy import Connection
from stores import make_empty_ledger, make_ruled_ledger
from time_cases import cases
from time_histories import INSTANTS, LADDERS, PLAYERS, history
from time_ledgers import enter

import ratings_ledger as rl
from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.ledger.store.log import head, read_known_event, read_records_at
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.validation.published_lists import read_published_lists
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries import last_events
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.explain import explain_game, explain_player, find_game_row
from ratings_ledger.projections.queries.history import load_course
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.last_events import (
    find_last_event,
    find_last_event_of_game,
    find_last_events_of_games,
)
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.versions import read_shipped_texts

Ratings = Callable[..., Any]
REASON = "it was wrong"
BERLIN = ZoneInfo("Europe/Berlin")
# which games are on the ladders of a ruleset, and by which of their labels
ON = {
    "galactic-points": (["galactic-magnate"], []),
    "catan-elo": (["catan"], ["group"]),
    "catan-monthly": (["catan"], ["city", "group", "month"]),
    "catan-annual": (["catan"], ["city", "group", "year"]),
    "b5-league": (["babylon5"], ["season"]),
    "house": (["house"], ["league"]),
}


class Past:
    """The answers of a ledger as known at any position, up to an instant; each decoded anew and worked out once."""

    def __init__(self, connection: Connection, as_of: int | None = None) -> None:
        self.connection = connection
        self.as_of = as_of
        self._ladders: dict[int, Ladders] = {}
        self._answers: dict[tuple[Any, ...], Any] = {}

    def ladders(self, position: int) -> Ladders:
        if position not in self._ladders:
            self._ladders[position] = Ladders(decode(self.connection, position, cached=False), self.as_of)
        return self._ladders[position]

    def told(self, question: Callable[..., Any], position: int, *about: str) -> Any:
        """The answer to a question at a position, or how it fails."""
        key = (question, position, *about)
        if key not in self._answers:
            try:
                self._answers[key] = question(self, self.ladders(position), *about)
            except (UnknownLadder, RuleFailure) as problem:
                self._answers[key] = type(problem)
        return self._answers[key]


def standings(past: Past, ladders: Ladders, ladder: str) -> Any:
    """All that is said of a ladder."""
    found = ladders.standings(ladder)
    totals = found.held, found.start_total, found.minted, found.burned, found.adjusted
    shown = read_published_lists(past.connection, ladders.facts.position, ladder)
    return found.ruleset, found.games, [*found.rows], found.digest, totals, [*ladders.facts.left_out], shown


def course(past: Past, ladders: Ladders, ladder: str, player: str) -> Any:
    """What is said of a player on a ladder, without rank and gold, which depend on everybody."""
    now = ladders.facts.current(player)
    row = next(
        (row._replace(rank=None, gold=None) for row in ladders.standings(ladder).rows if row.player == now), None
    )
    why = explain_player(past.connection, ladders, ladder, player)
    told = why.ruleset, why.points, why.start, why.games
    shown = read_published_lists(past.connection, ladders.facts.position, ladder)
    return now, row, load_course(past.connection, ladders, ladder, now).rows, told, shown


def explained(past: Past, ladders: Ladders, ladder: str, game_id: str) -> Any:
    """Why a game gave on a ladder what it gave."""
    row = find_game_row(past.connection, ladders.facts, game_id)
    told = explain_game(ladders, ladder, game_id, row)
    return told.ruleset, told.why_not, told.remark, told.occurred_at, told.players, told.accounts


def is_on(ladder: str, facts: Facts, row: int) -> bool:
    """Whether a game is on a ladder by its labels and its time, counted there or not."""
    ruleset_id, *values = ladder.split("/")
    played = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=facts.occurred_at[row])).astimezone(BERLIN)
    labels = {name: facts.label(name, row) for name in ("game", "group", "city", "league", "season")}
    labels |= {"month": f"{played:%Y-%m}", "year": f"{played:%Y}"}
    games, by = ON[ruleset_id]
    return labels["game"] in games and [labels[name] for name in by] == values


def agree(past: Past, at: int, ladders: list[str]) -> Counter[str]:
    """Compare all answers at a position with those at the last events that they depend on; how many were earlier."""
    now, done = past.ladders(at), Counter[str]()
    facts = now.facts

    def compare(question: Callable[..., Any], position: int, *about: str) -> None:
        assert 0 < position <= at
        wanted = past.told(question, at, *about)
        assert past.told(question, position, *about) == wanted, (question.__name__, about, position, at)
        done[question.__name__] += 1
        done[f"{question.__name__}, earlier"] += position < at

    for ladder in ladders:
        if past.told(standings, at, ladder) is UnknownLadder:
            with pytest.raises(UnknownLadder):
                find_last_event(past.connection, now, ladder)
            continue
        compare(standings, find_last_event(past.connection, now, ladder), ladder)
        for player in facts.players:
            compare(course, find_last_event(past.connection, now, ladder, player), ladder, player)
    for row, first in enumerate(facts.first_position):
        game_id = game_at(past.connection, first)
        position = find_last_event_of_game(past.connection, now, row)
        for ladder in ladders:
            if is_on(ladder, facts, row) and past.told(explained, at, ladder, game_id) is not UnknownLadder:
                compare(explained, position, ladder, game_id)
    return done


def game_at(connection: Connection, position: int) -> str:
    return str(read_known_event(position, read_records_at(connection, [position])[position]).data["game_id"])


@pytest.fixture
def empty(copied_file: Callable[..., str]) -> Callable[[], Ledger]:
    """A function that makes an empty ledger."""
    template, number = Path(copied_file(make_empty_ledger).removeprefix("sqlite:///")), count()

    def made() -> Ledger:
        path = template.with_name(f"made-{next(number)}.db")
        shutil.copyfile(template, path)
        return open_ledger(str(path))

    return made


def filled(ledger: Ledger, log: list[Event], ratings: Ratings, chance: Random, ladders: list[str]) -> int:
    """Enter events in parts, and publish a list after each; returns how many lists there are."""
    published = 0
    while log:
        part, log = log[:12], log[12:]
        enter(ledger, part)
        done = ratings("publish", chance.choice(ladders), "--by", "test", db=ledger.location)
        published += done.exit_code == 0
    return published


WANTED = [
    "late game", "corrected twice", "date corrected", "corrected to another ladder", "void of a corrected game",
    "reinstated after a correction", "rename that merges", "adjustment withdrawn", "account", "clock", "annual list",
    "published list", "standings, earlier", "course, earlier", "explained, earlier", "rule version withdrawn",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_answers_are_those_at_the_last_event(empty: Any, ratings: Ratings, at_length: bool) -> None:
    """Given random histories with everything that is put right, when ladders, players and games are asked about at some
    positions, then the answers are the same at the last events that they are said to depend on."""
    seen: Counter[str] = Counter()
    ladders = list(dict.fromkeys(LADDERS))
    for seed in range(200 if at_length else 2):
        chance, ledger = Random(seed), empty()
        log = history(seed, 70)
        seen["published list"] += filled(ledger, with_clocks(chance, log), ratings, chance, ladders)
        seen += cases(log)
        seen["account"] += any(event["type"] == "player.account_changed" for event in log)
        with ledger.reading() as connection:
            past, last = Past(connection), head(connection).position
            seen["clock"] += len(past.ladders(last).facts.clock_seconds)
            then = Past(connection, to_microseconds(instant(chance.choice(INSTANTS[3:]))))
            seen += agree(then, last, ladders)
            for at in (last, *chance.sample(range(10, last), 2)):
                seen += agree(past, at, ladders)
                annual = past.told(standings, at, "catan-annual/7/basic/2010")
                seen["annual list"] += isinstance(annual, tuple) and annual[2] != []
        ledger.engine.dispose()
    assert [name for name in WANTED if not seen[name]] == []


def with_clocks(chance: Random, log: Log) -> list[Event]:
    """A log in which some games get a clock soon after they were recorded, or just before."""
    found: list[Event] = []
    for event in log:
        found.append(event)
        data = event["data"]
        if event["type"] == "game.recorded" and data["game"] == "galactic-magnate" and chance.randrange(2):
            players = [one["player"] for one in data["participants"]]
            later = chance.choice([0, chance.randrange(12)])
            told = clock(data["game_id"], players, chance.choice([200_000, 299_500, 601_000]))
            where = max(len(found) - later, 1) if later % 2 else len(found)
            found[where:where] = told
    return found


def clock(game_id: str, players: list[str], until: int) -> list[Event]:
    """The events of a clock whose first player takes so many milliseconds."""
    told = [
        ("started", {"at": 0, "players": players}), ("offered", {"at": 0, "player": players[0], "choice": "move"}),
        ("decided", {"at": until, "player": players[0], "choice": "move"}), ("ended", {"at": until}),
    ]  # fmt: skip
    return [
        {"type": f"clock.{name}", "id": f"{game_id}-{name}", "occurred_at": INSTANTS[1],
         "data": {"game_id": game_id, **data}} for name, data in told
    ]  # fmt: skip


# -- seasons that carry points over, and leagues that keep their version

CARRYING = next(text for text in read_shipped_texts() if 'id = "b5-league"' in text).replace(
    "carry_over = false", "carry_over = true"
)
SEASONS, LEAGUES = ["2010-1", "2010-2", "2010-3"], ["L", "M"]
OTHERS = [*(f"b5-league/{season}" for season in SEASONS), *(f"house/{league}" for league in LEAGUES)]


def house(version: str, since: str, sizes: str, start: int) -> Event:
    """A version of a ruleset with leagues that keep theirs, for games of so many players."""
    data = {
        "id": "house", "version": version, "effective_from": since, "freeze": "league-start",
        "rule": "placement-points/1", "scope": {"game": ["house"], "players_min": int(sizes)},
        "partition": {"by": ["league"]}, "params": {"start": start},
    }  # fmt: skip
    return {"type": "ruleset.published", "occurred_at": "2008-01-01T00:00:00Z", "data": data}


def other_game(chance: Random, game_id: str) -> Event:
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


def other_event(chance: Random, number: int) -> Event:
    """Something about seasons or leagues, of which some is refused."""
    day = f"2010-{chance.randrange(1, 13):02d}-{chance.randrange(1, 28):02d}T12:00:00Z"
    some, reason = f"g{chance.randrange(max(number, 1))}", {"reason": REASON}
    data: dict[str, Event] = {
        "game.recorded": other_game(chance, f"g{number}"),
        "game.corrected": {"game_id": some, **reason, "game": other_game(chance, some)},
        "game.voided": {"game_id": some, **reason}, "game.reinstated": {"game_id": some, **reason},
        "points.adjusted": {"ladder": chance.choice(OTHERS), "player": chance.choice(PLAYERS), "points": "7", **reason},
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
def test_seasons_and_leagues_are_those_at_the_last_event(empty: Any, ratings: Ratings, at_length: bool) -> None:
    """Given random histories of seasons that carry points over, and of leagues that keep the version of their start,
    when they are asked about at some positions, then the answers are those at the last events."""
    seen: Counter[str] = Counter()
    # a league is seldom created before it has games; in the last of these it is
    for seed in range(400) if at_length else range(16, 20):
        chance, ledger = Random(seed), empty()
        rules = [ruleset(CARRYING), house("1", "2008-01-01", "2", 100), house("2", "2010-06-01", "2", 200)]
        rules += [house("3", "2010-09-01", "3", 300)]
        enter(ledger, rules + [other_event(chance, number) for number in range(70)])
        with ledger.reading() as connection:
            past, last = Past(connection), head(connection).position
            facts = past.ladders(last).facts
            seen["changed"] += sum(a != b for a, b in zip(facts.first_position, facts.live_position, strict=True))
            seen["created"] += len(facts.leagues)
            seen["withdrawn"] += len(facts.recorded.withdrawn)
            seen["renamed"] += len(facts.recorded.renames)
            for at in (last, *chance.sample(range(6, last), 3)):
                seen += agree(past, at, OTHERS)
        ledger.engine.dispose()
    wanted = ["changed", "created", "withdrawn", "renamed", "standings, earlier", "course, earlier",
              "explained, earlier"]  # fmt: skip
    assert [name for name in wanted if not seen[name]] == []


@pytest.mark.slow
def test_every_way_leads_to_the_same_last_events(
    empty: Any, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Given random histories, when the facts come from a cache and long columns are computed in bulk, then the last
    events of ladders, players and games are those that come out one by one, and those of all games at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(last_events, "INDEXED_GAMES_MIN", 1)
    ladders, cached = list(dict.fromkeys(LADDERS)), 0
    for seed in range(2):
        chance, ledger = Random(seed), empty()
        filled(ledger, with_clocks(chance, history(seed, 90)), ratings, chance, ladders)
        with ledger.reading() as connection:
            last = head(connection).position
            for at, as_of in ((last, None), (chance.randrange(10, last), None), (last, chance.choice(INSTANTS[3:]))):
                found = []
                for fast in (False, True):
                    set_paths(monkeypatch, scanned=fast, compiled=fast)
                    facts = decode(connection, at, cached=fast, lazily=fast)
                    cached += facts.cache is not None
                    there = Ladders(facts, None if as_of is None else to_microseconds(instant(as_of)))
                    known = [ladder for ladder in ladders if ladder.partition("/")[0] in facts.rulesets]
                    found.append(every_last_event(connection, there, known))
                assert found[0] == found[1]
        ledger.engine.dispose()
    assert cached == 6


def every_last_event(connection: Connection, there: Ladders, ladders: list[str]) -> dict[Any, int]:
    """The last events of ladders, everybody on them, and all games."""
    found: dict[Any, int] = {ladder: find_last_event(connection, there, ladder) for ladder in ladders}
    for ladder in ladders:
        for player in there.facts.players:
            found[ladder, player] = find_last_event(connection, there, ladder, player)
    for row, first in enumerate(there.facts.first_position):
        found[first] = find_last_event_of_game(connection, there, row)
    rows = range(len(there.facts.first_position))
    together = find_last_events_of_games(connection, there, rows)
    assert [*together] == [found[first] for first in there.facts.first_position]
    return found


def test_view_states_the_last_event(copied_file: Callable[..., str], ratings: Ratings) -> None:
    """Given a game of two and one of two others, when a view is asked, then it states the positions of the last events
    and when they were recorded; somebody or something that is not recorded is unknown."""
    url = copied_file(make_ruled_ledger)
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
        for game_id, told in answers.items():
            stated = {name: events[game_id][name] for name in ("position", "recorded_at")}
            assert [answer.model_dump() for answer in told] == [stated] * len(told)
        assert view.last_event("club-catan-elo/all").position == last.position
        positions = {game_id: event["position"] for game_id, event in events.items()}
        assert view.last_positions_of_games() == positions
        both = view.last_positions("club-catan-elo/all", ["ben", "cleo"])
        assert both == {"ben": positions["g-05"], "cleo": positions["g-06"]}
        with pytest.raises(rl.Unknown):
            view.last_event("club-catan-elo/all", "nobody")
        with pytest.raises(rl.Unknown):
            view.last_event_of_game("g-07")
        with pytest.raises(rl.BadArgument):
            view.last_event("no-such-elo/all")
        with pytest.raises(rl.BadArgument, match="no version 'club-catan-elo@9' is published"):
            ledger.at(rules="club-catan-elo@9").last_event_of_game("g-05")


def test_annual_list_depends_on_the_games_of_its_months(empty: Callable[[], Ledger]) -> None:
    """Given a list of a year that sums those of months, then it depends on all of their games, also on those of a kind
    that its own rules do not name."""
    ledger = empty()
    monthly, annual = (ruleset(find_shipped_text(name, "2008-03")) for name in ("catan-monthly", "catan-annual"))
    monthly["data"]["scope"]["game"] += ["cities"]
    games = [
        catan(f"{game}-1", f"2010-03-0{day}T12:00:00Z", game=game, city="7", group="basic")
        for day, game in enumerate(("catan", "cities"), 1)
    ]
    assert enter(ledger, [monthly, annual, *games]).appended == 4
    with ledger.reading() as connection:
        assert find_last_event(connection, Ladders(decode(connection)), "catan-annual/7/basic/2010") == 4


def test_withdrawn_adjustment_counts_from_its_own_instant_on(empty: Callable[[], Ledger]) -> None:
    """Given an adjustment that was withdrawn, when a ladder is asked about as of its very instant, then it depends on
    the withdrawal; a microsecond before, on neither."""
    ledger, at = empty(), "2010-03-03T12:00:00Z"
    adjusted = {"ladder": "all-games", "player": "anna", "points": "7", "reason": REASON}
    events = [
        elo("all-games", []), catan("g1", "2010-03-01T12:00:00Z"),
        {"type": "points.adjusted", "id": "a", "occurred_at": at, "data": adjusted},
        {"type": "event.voided", "occurred_at": at, "data": {"id": "a", "reason": REASON}},
    ]  # fmt: skip
    assert enter(ledger, events).appended == 4
    with ledger.reading() as connection:
        facts, then = decode(connection), to_microseconds(instant(at))
        lasts = [find_last_event(connection, Ladders(facts, as_of), "all-games") for as_of in (then - 1, then)]
    assert lasts == [2, 4]


def catan(game_id: str, at: str, **labels: str) -> Event:
    """A game that anna wins over ben."""
    participants = [{"player": player, "place": place} for place, player in enumerate(("anna", "ben"), 1)]
    data = {"game_id": game_id, "game": "catan", "participants": participants, **labels}  # or another game
    return {"type": "game.recorded", "occurred_at": at, "data": data}


def test_games_up_to_an_earlier_list_are_retroactive(copied_file: Callable[..., str], ratings: Ratings) -> None:
    """Given a published list, a game recorded later is retroactive if it was played by the instant of the list."""
    url = copied_file(make_ruled_ledger)
    command = ("record", "-q", "--game", "club-catan", "anna", "ben", "--game-id")
    assert ratings(*command, "first", "--at", "2024-01-05T20:00Z", db=url).exit_code == 0
    assert ratings("publish", "club-catan-elo/all", "--as-of", "2024-01-06T20:00:00Z", db=url).exit_code == 0
    for game_id, second in (("with it", "00"), ("after it", "01")):
        assert ratings(*command, game_id, "--at", f"2024-01-06T20:00:{second}Z", db=url).exit_code == 0
    with rl.open(url) as ledger:
        view = ledger.at()
        games = {event.event["position"]: event.event["data"]["game_id"]
                 for event in view.events(types=["game.recorded"]).rows}  # fmt: skip
        found = view.retroactive_positions()
        assert [game_id for position, game_id in games.items() if position in found] == ["with it"]


# -- what an everyday game moves


@pytest.mark.slow
def test_everyday_game_concerns_its_ladders_and_players(empty: Any) -> None:
    """Given games that are recorded in the order of time, when one more is recorded, then it is the last event of
    itself, of its ladders and of its players there, and everything else keeps its own."""
    chance, ledger = Random(5), empty()
    rules = [elo("by-group", ["group"]), elo("by-city", ["city"]), elo("all-games", [])]
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
        own = ["all-games", f"by-group/{group}", f"by-city/{city}"]
        concerned = {("game", f"g{number}"), *((ladder,) for ladder in own)}
        concerned |= {(ladder, player) for ladder in own for player in players}
        assert {about for about, last in now.items() if last == position} == concerned
        assert {about: last for about, last in now.items() if about not in concerned} == {
            about: last for about, last in (before or now).items() if about not in concerned
        }
        before = now


def elo(ruleset_id: str, by: list[str]) -> Event:
    """Elo of all games of Catan, on ladders by some labels; accounts are looked at."""
    data = {
        "id": ruleset_id, "version": "1", "rule": "pairwise-elo/1", "effective_from": "2000-01-01",
        "scope": {"game": ["catan"], "exclude_accounts": ["free"]}, "partition": {"by": by},
        "params": {"k_per_pair": 8, "start": 1000, "scale": 400, "rounding": "pair"},
    }  # fmt: skip
    return {"type": "ruleset.published", "occurred_at": INSTANTS[0], "data": data}
