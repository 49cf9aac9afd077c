"""Columns of sides, scores and custom numbers are equal for one game and for all games, cached, scanned and sealed."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from paths import set_paths, summarize_facts
from time_ledgers import enter

from ratings_ledger import Ruleset
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections import arrays
from ratings_ledger.projections.cluster import base, segments
from ratings_ledger.projections.cluster.columnar import OpenedObject
from ratings_ledger.projections.cluster.object_store import open_object_store
from ratings_ledger.projections.facts import decoding
from ratings_ledger.projections.facts.columns import Facts, find_row_at
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
        kind = chance.choice(("plain", "scored", "doubles", "battle", "fine"))
        players: list[dict[str, Any]] = [{"player": name, "place": place} for place, name in enumerate(names, 1)]
        members: dict[str, Any] = {}
        if kind in ("scored", "fine"):
            scores: list[Any] = sorted((chance.randrange(-5, 9) for _ in names), reverse=True)
            if kind == "fine":
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
        decoding.apply(facts, position, KnownEvent(draft.event_id, draft.type, draft.occurred_at, data))
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
    """The path of a ledger without events, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    upgrade(str(tmp_path / "ratings.db"))
    return str(tmp_path / "ratings.db")


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
    monkeypatch.setattr(segments, "PART_GAMES", 7)
    facts = decode_games(*draw_games(100))
    (tmp_path / "segment").write_bytes(b"".join(map(bytes, segments.encode_segment(facts, {"name": "segment"}))))
    opened = OpenedObject(open_object_store(str(tmp_path)), "segment")
    all_cells = np.ones(len(facts.cells), dtype=bool)
    found_columns = set[str]()
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
            found_columns.add(name)
            if name == "club":
                clubs = base._map_clubs(club_facts, opened, part.slots[name]).tolist()
                assert [None if number < 0 else club_facts.texts[number] for number in clubs] == [
                    None if number < 0 else facts.texts[number] for number in expected or ()
                ]
            else:
                assert part.slots[name].tolist() == expected
    assert len(found_columns) == 7
