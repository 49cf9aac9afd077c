"""Facts: columns, games and players are equal alone and in bulk, with numpy or without, cached, scanned and sealed."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from histories import enter
from ledgers import create_ledger
from paths import set_paths, summarize_facts
from thresholds import set_thresholds
from time_histories import LADDERS, draw_history

from ratings_ledger import Ruleset
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections import arrays
from ratings_ledger.projections.cluster import base, segments
from ratings_ledger.projections.cluster.object_store import OpenedObject, open_object_store
from ratings_ledger.projections.facts import decoding
from ratings_ledger.projections.facts.applying import apply
from ratings_ledger.projections.facts.columns import Facts, find_row_at
from ratings_ledger.projections.facts.lookups import Players, known_players, look_up_games
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.rule_inputs import GameSlots, read_columns
from ratings_ledger.projections.rulesets.versions import Reading, find_reading
from ratings_ledger.rules import MISSING

COLUMNS = (
    "place", "team", "home", "score", "side_score", "league", "year", "numbers.length", "numbers.points",
    "numbers.never",
)  # fmt: skip
READINGS = (
    Reading(COLUMNS),
    Reading(COLUMNS, 10**6, -1, (("numbers.length", 7), ("numbers.never", 0))),
    Reading(COLUMNS, 100, zone="Asia/Tokyo"),
)


def build_game(number: int, *participants: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a game of these participants, in the hours around a new year in Tokyo."""
    data = {"game_id": f"g-{number}", "game": "tennis", **members, "participants": [*participants]}
    return {
        "type": "game.recorded",
        "occurred_at": f"2019-12-31T{12 + number // 60:02d}:{number % 60:02d}:00Z",
        "data": data,
    }


def draw_games(count: int) -> Iterator[dict[str, Any]]:
    """Draw plain games, doubles and battles; some have a home side, clubs, and numbers of all kinds."""
    chance = Random(5)
    for number in range(count):
        names = chance.sample([f"p{index}" for index in range(12)], 4)
        kind = chance.choice(("plain", "scored", "doubles", "battle", "decimals"))
        players: list[dict[str, Any]] = [{"player": name, "place": place} for place, name in enumerate(names, 1)]
        members: dict[str, Any] = {}
        if kind in ("scored", "decimals"):
            scores: list[Any] = sorted((chance.randrange(-5, 9) for _ in names), reverse=True)
            if kind == "decimals":
                scores = [f"{score}.5" if score >= 0 else score for score in scores]
            players = [player | {"score": score} for player, score in zip(players, scores, strict=True)]
        if kind == "doubles":
            players = [player | {"place": 1 + index // 2, "team": ("reds", 2)[index // 2],
                        "score": 6 - 3 * (index // 2)}
                       for index, player in enumerate(players)]  # fmt: skip
        if kind == "battle":
            members["kind"] = "battle"
            players = [{"player": name, "side": "ba"[index % 2], "score": chance.randrange(9)}
                       for index, name in enumerate(names)]  # fmt: skip
        if chance.random() < 0.3:
            players[chance.randrange(4)]["home"] = True
        if chance.random() < 0.3:
            players[chance.randrange(4)]["club"] = chance.choice(("TC Rot", "TC Blau"))
        if chance.random() < 0.3:
            members["numbers"] = {"length": chance.randrange(-9, 9)}
        if chance.random() < 0.5:
            members["league"] = chance.choice(("open", "cup"))
        if number > count // 2 and chance.random() < 0.3:
            players[chance.randrange(4)]["numbers"] = {"points": 2**53 - 1 - number}
        yield build_game(number, *players, **members)


def list_column(facts: Facts, name: str, reading: Reading = READINGS[0]) -> list[list[int]]:
    """Return a column of all games, game by game."""
    spans = zip(facts.start, facts.count, strict=True)
    return [facts.column(name, row, range(at, at + size), reading) for row, (at, size) in enumerate(spans)]


def decode_games(*events: dict[str, Any]) -> Facts:
    """Return the facts of some games, decoded one by one."""
    facts = Facts(0, b"")
    for position, event in enumerate(events, 1):
        draft, data = read_event(event)
        apply(facts, position, KnownEvent(draft.event_id, draft.type, draft.occurred_at, data))
    return facts


def test_sides_are_numbered_and_missing_values_marked() -> None:
    """Sides are numbered in order of appearance; scores, homes and numbers are as recorded, or missing."""
    facts = decode_games(
        build_game(1, *(
            {"player": name, "team": team, "place": place, "score": 9 - 4 * place, **more}
            for name, team, place, more in (
                ("zoe", "reds", 2, {"numbers": {"length": 3}}), ("anna", 7, 1, {"home": True}), ("ben", "reds", 2, {}),
                ("cleo", 7, 1, {}),
            )
        )),
        build_game(2, {"player": "anna", "score": "12.25"}, {"player": "ben", "score": 3}, numbers={"length": 0}),
        build_game(3, {"player": "anna", "side": "z", "score": 4}, {"player": "ben", "side": "a"},
              {"player": "cleo", "side": "z", "score": 5}, kind="battle"),
    )  # fmt: skip
    assert list_column(facts, "team") == [[0, 1, 0, 1], [MISSING] * 2, [0, 1, 0]]
    assert list_column(facts, "home") == [[-1, 1, -1, 1], [0, 0], [0, 0, 0]]
    assert list_column(facts, "numbers.length") == [[3, *[MISSING] * 3], [0, 0], [MISSING] * 3]
    assert list_column(facts, "numbers.length", READINGS[1])[0] == [3, 7, 7, 7]
    assert list_column(facts, "score", READINGS[2]) == [[100, 500, 100, 500], [1225, 300], [400, 0, 500]]
    assert list_column(facts, "side_score", READINGS[2]) == [[100, 500, 100, 500], [1225, 300], [900, 0, 900]]
    assert list_column(facts, "score", READINGS[1])[1] == [-12_250_000, -3_000_000]


def test_reading_depends_only_on_read_columns() -> None:
    """Only the options of columns that a rule reads are part of its reading."""
    data = {"id": "x", "version": "1", "rule": "elo/1", "scope": {"game": ["tennis"]}, "score_decimals": 2,
            "score_order": "low", "numbers": {"length": {"absent": 3}, "points": {"min": 0}}}  # fmt: skip
    ruleset = Ruleset.model_validate(data)
    assert find_reading(("place", "seats"), ruleset) == Reading(("place", "seats"))
    assert find_reading(("side_score",), ruleset) == Reading(("side_score",), 100, -1)
    read = ("numbers.length", "numbers.points")
    assert find_reading(read, ruleset) == Reading(read, absent=(("numbers.length", 3),))


def test_leagues_are_numbered_and_years_follow_the_zone() -> None:
    """Games of one league share a number, other games have another or none; the year is that of the time zone."""
    players = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    facts = decode_games(*(
        build_game(number, *players, **({"league": league} if league else {}))
        for number, league in ((1, "open"), (2, None), (3, "cup"), (300, "open"))
    ))  # fmt: skip
    first, missing, cup, same_league = list_column(facts, "league")
    assert first == same_league
    assert first[0] == first[1] != cup[0]
    assert missing == [MISSING] * 2
    assert list_column(facts, "year") == [[2019] * 2] * 4
    assert list_column(facts, "year", READINGS[2]) == [[2019] * 2, [2019] * 2, [2019] * 2, [2020] * 2]
    data = {"id": "x", "version": "1", "rule": "elo/1", "scope": {"game": ["go"]}, "time_zone": "Asia/Tokyo"}
    ruleset = Ruleset.model_validate(data)
    assert find_reading(("year",), ruleset) == Reading(("year",), zone="Asia/Tokyo")
    assert find_reading(("place",), ruleset) == Reading(("place",))


@pytest.mark.parametrize("reading", READINGS)
def test_all_games_at_once_read_like_each_alone(reading: Reading) -> None:
    """The columns of many games read at once equal those of each game alone, for any selection of games."""
    facts = decode_games(*draw_games(300))
    for rows in (np.arange(300), np.arange(0, 300, 7)):
        start, size = (arrays.as_numpy(spans)[rows] for spans in (facts.start, facts.count))
        slots = arrays.span_indices(*map(arrays.as_column, (start, size)))
        columns = read_columns(facts, reading, GameSlots(*map(arrays.as_column, (rows, size)), slots))
        for name, numbers in zip(COLUMNS, columns.tolist(), strict=True):
            alone = [
                number for row, own in enumerate(list_column(facts, name, reading)) if row in rows for number in own
            ]
            assert numbers == alone, name
        selected = facts.select_rows(arrays.as_column(rows))
        assert [list_column(selected, name, reading) for name in COLUMNS] == [
            [own for row, own in enumerate(list_column(facts, name, reading)) if row in rows] for name in COLUMNS
        ]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a ledger without events, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return create_ledger(str(tmp_path / "ratings.db"))


@pytest.mark.parametrize("scanned", [False, True])
def test_growing_cache_has_the_columns_of_the_log(url: str, scanned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that grows in steps has the columns of the log at every step, also for numbers new in a later segment."""
    set_paths(monkeypatch, scanned=scanned, compiled=False)
    ledger, events = open_ledger(url), [*draw_games(120)]
    for first in range(0, 120, 30):
        enter(ledger, events[first : first + 30])
        with ledger.reading() as connection:
            for until in (first + 30, first + 17):
                cached = decoding.decode(connection, until)
                plain = decoding.decode(connection, until, cached=False)
                assert summarize_facts(cached) == summarize_facts(plain)
                assert [list_column(cached, name) for name in COLUMNS] == [list_column(plain, name) for name in COLUMNS]
    assert "numbers.points" in cached.optional
    ledger.close()


def test_sealed_segment_has_numbers_and_clubs_of_its_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealed segment has the numbers of all games, part by part, and the names of clubs."""
    set_thresholds(monkeypatch, part_games=7)
    facts = decode_games(*draw_games(100))
    (tmp_path / "segment").write_bytes(b"".join(map(bytes, segments.encode_segment(facts, {"name": "segment"}))))
    opened = OpenedObject(open_object_store(str(tmp_path)), "segment")
    all_cells = np.ones(len(facts.cells), dtype=bool)
    compared_columns = set[str]()
    for part in segments.read_games_of_cells(opened, all_cells):
        rows = [find_row_at(facts.first_position, at) for at in part.rows["first_position"].tolist()]
        alone = facts.select_rows(arrays.as_column(np.array(rows)))
        club_facts = Facts(0, b"")
        for name in ("numbers.length", "numbers.points", "club", "home", "team", "score", "score_decimals"):
            stored = alone.optional[name]
            expected = [stored[slot] for slot in range(len(alone.player))] if len(stored) else None
            if name not in part.slots:
                assert expected is None or len({*expected}) == 1
                continue
            compared_columns.add(name)
            if name == "club":
                clubs = base._map_clubs(club_facts, opened, part.slots[name]).tolist()
                assert [None if number < 0 else club_facts.texts[number] for number in clubs] == [
                    None if number < 0 else facts.texts[number] for number in expected or ()
                ]
            else:
                assert part.slots[name].tolist() == expected
    assert len(compared_columns) == 7


@pytest.fixture(params=["by numpy", "one by one"])
def lookup_method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look numbers up by numpy, or as if numpy were not loaded."""
    monkeypatch.setattr(arrays, "should_use_numpy", lambda count, worth_loading=0: request.param == "by numpy")


@pytest.mark.usefixtures("lookup_method")
def test_spans_equal_those_of_a_bisection() -> None:
    """For ascending starts, each number is in the span that a bisection finds, also at the ends."""
    chance = Random(1)
    for count in (1, 2, 7, 1_000):
        starts = array("q", [0, *sorted(chance.sample(range(1, 5 * count), count - 1))])
        numbers = array("q", [*starts, *(chance.randrange(6 * count) for _ in range(50))])
        spans = arrays.find_spans(starts, numbers)
        assert [*spans] == [bisect_right(starts, number) - 1 for number in numbers]
    assert [*arrays.find_spans(array("q", [0, 3]), array("q"))] == []


@pytest.mark.usefixtures("lookup_method")
def test_column_lookups_equal_plain_loops() -> None:
    """Indices of spans, the numbers there, and shifted numbers equal those of plain loops, and limits are checked."""
    numbers, starts, counts = array("i", range(10, 30)), array("q", [3, 0, 9]), array("q", [2, 0, 4])
    indices = arrays.span_indices(starts, counts)
    assert [*indices] == [3, 4, 9, 10, 11, 12]
    for column in (numbers, memoryview(numbers)):
        assert arrays.take(column, indices).tolist() == [13, 14, 19, 20, 21, 22]
    assert arrays.take(numbers, array("q")).tolist() == arrays.span_indices(array("q"), array("q")).tolist() == []
    assert arrays.shift(starts, -1).tolist() == [2, -1, 8]
    assert arrays.is_within(starts, 0, 10)
    assert not arrays.is_within(starts, 0, 9)
    assert not arrays.is_within(starts, 1, 10)
    assert arrays.is_within(array("q"), 0, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("lookup_method")
@pytest.mark.parametrize("compiled", [True, False])
def test_looked_up_games_equal_the_facts(compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Games looked up at once equal the facts of each game, and so do the players of many games of a trace, also if it
    was continued.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, traced_games=1, games_per_replayed_game=0)
    url, log = create_ledger(str(tmp_path / "ratings.db")), draw_history(101, 90)
    set_paths(monkeypatch, scanned=False, compiled=compiled)
    compared = continued = 0
    for first, last in pairwise((0, *range(60, 91, 5))):
        enter(url, log[first:last])
        with open_ledger(url).reading() as connection:
            facts = decoding.decode(connection, last, lazily=True)
            ladders = Ladders(facts)
            for name in (ladder for ladder in dict.fromkeys(LADDERS) if ladder.startswith("catan-elo")):
                trace = ladders.trace(name)
                games = range(trace.game_count)
                players_by_game = [[*trace.players_of(game)] for game in games]
                assert [[*players] for players in trace.players_by_game(games)] == players_by_game
                continued += trace.earlier is not None
        rows = range(len(facts.first_position))
        for row, game in zip(rows, look_up_games(facts, rows), strict=True):
            seats = range(facts.start[row], facts.start[row] + facts.count[row])
            assert game[:3] == (facts.first_position[row], facts.live_position[row], facts.occurred_at[row])
            assert game.persons == [facts.person_of(seat) for seat in seats]
            assert game.places == [facts.place[seat] for seat in seats]
            assert game.replaced == [facts.replaced[seat] for seat in seats]
            compared += 1
    assert compared > 50
    assert continued > 0


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_known_names_are_found_without_reading_all(
    cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """At every position of random histories, a name is known if and only if a full search finds it; most known
    names need no full search.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1 if cached else 10**9)
    counts: Counter[tuple[bool, bool]] = Counter()
    for seed in range(60 if at_length else 6):
        url = str(tmp_path / f"{seed}.db")
        create_ledger(url)
        ledger = open_ledger(url)
        enter(ledger, draw_history(seed, 60))
        with ledger.reading() as connection:
            last = head(connection).position
            for position in sorted(Random(seed).sample(range(1, last + 1), min(last, 12))):
                facts = decoding.decode(connection, position)
                all_players = known_players(facts)
                full_searches = list[str]()

                def list_all(all_players: Any = all_players, full_searches: list[str] = full_searches) -> Any:
                    full_searches.append("all")
                    return all_players

                players = Players(facts, list_all)
                for name in [*facts.players, "zoe"]:
                    full_searches.clear()
                    assert (name in players) == (name in all_players), (seed, position, name)
                    counts[name in all_players, bool(full_searches)] += 1
                players.update(["zoe"])
                assert "zoe" in players
                assert {*players} == all_players | {"zoe"}
                assert len(players) == len(all_players) + 1
    assert counts[True, False] > counts[True, True] > 0, counts
    assert counts[False, True] > 0
