"""The fast paths give the same results as the slow ones, for any input."""

import copy
import json
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pydantic import ValidationError
from thresholds import set_thresholds

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import dump, dump_in_order
from ratings_ledger.ledger.events.fields import _build_fast_path, normalise_data
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.records import RECORD_BYTES_MAX, build_record, fits_at_any_position, matches_draft
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.spool import Spool
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import open_ledger

POWERS = ("Austria", "Germany", "Italy", "Turkey", "England", "Russia", "France")
GAMES: dict[str, dict[str, Any]] = {
    "placing": {
        "game_id": "g-1", "game": "catan", "group": "basic", "rated": True, "score_order": "high",
        "extra": {"table": "7", "a": "x"},
        "participants": [
            {"player": "anna", "place": 1, "score": "10.50", "seat": 2, "seconds_played": 0},
            {"player": "ju\u0308rgen", "place": 2, "score": 8, "status": "substitute", "replaces": "ben"},
        ],
    },
    "b5": {
        "game_id": "b-1", "game": "babylon5", "kind": "b5", "season": "2010-1", "referee": "dora", "within_time": False,
        "participants": [{"player": "anna", "power": 3, "influence": -2, "victory": "major", "vp": 2, "race": "Narn"}],
    },
    "battle": {
        "game_id": "w-1", "game": "blue-max", "kind": "battle", "league": "I", "ended": "draw",
        "participants": [{"player": "anna", "side": "W", "units": 2, "units_lost": 1, "kills": 0, "score": 60}],
    },
    "diplomacy": {
        "game_id": "d-1", "game": "diplomacy", "kind": "diplomacy", "aborted": True,
        "centres": {"1902": {"Italy": 4, "Austria": 0}, "1901": {"France": 5}},
        "participants": [{"player": name, "power": name} for name in POWERS],
    },
}  # fmt: skip
TEXTS = (
    "", "a", "anna", " a", "a ", "a b", "a/b", "a=b", "a\n", "\n", "\t", "\x7f", "~!", "é", "e\u0301", "\u200e", "😀",
    "-", "a-b", "a--b", "A", "0", "x" * 64, "x" * 65, "x" * 123, "x" * 124, "ü" * 64, "high", "major", "placing",
    "1.50", "-0", "1e5", '"\\\b\f\r\x00', "\ud800",
)  # fmt: skip
OTHER_VALUES = (
    None, True, False, 0, 1, -1, 10_000, 10_001, 10**9 + 1, 2**53, 1.5, [], {}, [1], {"a": None}, {"b": "x", "a": "y"},
)  # fmt: skip
ADDED_MEMBERS = ("place", "extra", "score", "power", "unknown", "group")


def list_members(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of every value inside a value."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from list_members(inner)


def change_game(chance: random.Random, game: dict[str, Any]) -> dict[str, Any]:
    """Return the game with some values replaced, left out or added."""
    changed_game = copy.deepcopy(game)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        if not changed_game:
            break
        container, key = chance.choice(list(list_members(changed_game)))
        choice = chance.random()
        if choice < 0.7:
            container[key] = copy.deepcopy(chance.choice(TEXTS + OTHER_VALUES))
        elif choice < 0.85:
            del container[key]
        elif isinstance(container, dict):
            container[chance.choice(ADDED_MEMBERS)] = chance.choice(TEXTS + OTHER_VALUES)
    return changed_game


def normalise_or_errors(normalise: Any, game: dict[str, Any]) -> Any:
    try:
        return normalise(copy.deepcopy(game))
    except ValidationError as error:
        return error.errors(include_url=False)


def normalise_by_model(kind: str, game: dict[str, Any]) -> dict[str, Any]:
    return GAME_TYPES[kind].model.model_validate(game).model_dump(exclude_unset=True, exclude_none=True)


@pytest.mark.parametrize("kind", GAME_TYPES)
def test_fast_path_matches_model(kind: str, at_length: bool) -> None:
    """The fast path normalises or refuses any game exactly as the model does."""
    chance = random.Random(kind)
    fast_count, games = 0, 4_000 if at_length else 900
    for _ in range(games):
        game = change_game(chance, GAMES[kind])
        normalised = normalise_or_errors(lambda data: normalise_data(GAME_TYPES[kind].model, data), game)
        assert repr(normalised) == repr(
            normalise_or_errors(lambda data: sort_members(normalise_by_model(kind, data)), game)
        )
        # the parser of JSON has refused half a surrogate pair before
        if isinstance(normalised, dict) and "\\ud800" not in repr(normalised):
            assert dump_in_order(normalised) == dump(normalise_by_model(kind, game))
            fast_count += 1
    assert fast_count > games / 4


def sort_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: sort_members(inner) for name, inner in sorted(value.items())}
    return [sort_members(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", GAME_TYPES)
def test_fast_path_handles_plain_games(kind: str) -> None:
    """The fast path handles a plain game of each kind."""
    fast_path = _build_fast_path(GAME_TYPES[kind].model)

    assert fast_path is not None
    assert fast_path(GAMES[kind]) == normalise_by_model(kind, GAMES[kind])


def build_draft(**members: Any) -> Draft:
    data = {
        "game_id": "g",
        "game": "catan",
        "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
    }
    return read_event({"type": "game.recorded", "occurred_at": "2010-03-05T19:30:00Z", "data": data, **members})[0]


@pytest.mark.parametrize("by", ["ref", 'x","data":{"game":"catan"', 'x\\","data":', "\\", '"'])
def test_record_has_the_data_of_its_draft(by: str) -> None:
    """A record has the same data as its draft, for any recorder."""
    assert matches_draft(build_record(build_draft(), 7, 0, by), build_draft())


def test_record_does_not_match_a_different_draft() -> None:
    """A record does not match a draft that differs in any member, or a draft without what the record supersedes."""
    record = build_record(build_draft(), 7, 0, "ref")
    for different_draft in (
        build_draft(id="other"),
        build_draft(occurred_at="2010-03-05T19:30:01Z"),
        build_draft()._replace(data='{"game_id":"g"}'),
        build_draft()._replace(data=build_draft().data[:-1]),
        build_draft()._replace(type="game.corrected"),
        build_draft()._replace(schema_version=2),
    ):
        assert not matches_draft(record, different_draft)
    assert not matches_draft(build_record(build_draft(), 7, 0, "ref", "earlier"), build_draft())


@pytest.mark.parametrize("letter", ["a", "ü", "😀", '"', "\n"])
def test_surely_fitting_draft_fits(letter: str) -> None:
    """A draft that `fits_at_any_position` accepts gives a record within the size limit."""
    fitting_drafts = 0
    for length in (1_000, 5_000, 10_000, 16_000, 16_130, 21_000):
        draft = build_draft()._replace(data=dump({"game_id": letter * length}), event_id=letter * 128)
        if fits_at_any_position(draft, letter * 2_000):
            record = build_record(draft, 2**62, 2**55, letter * 2_000, "superseded" * 12)
            assert len(record.encode()) <= RECORD_BYTES_MAX
            fitting_drafts += 1
    assert fitting_drafts > 0


# the spool


def test_spool_finds_waiting_drafts() -> None:
    """The spool finds waiting drafts by id or game exactly as a naive search does."""
    chance = random.Random(3)
    with closing(Spool()) as spool:
        waiting: list[Draft] = []
        for _ in range(60):
            batch = [draw_draft(chance) for _ in range(20)]
            spool.look_ahead(batch)
            for draft in batch:
                spooled = spool.find(draft)
                assert (None if spooled is None else spooled.draft) == find_naively(waiting, draft)
                if spooled is None:
                    spool.add(draft, "file", 1, [{"player": "anna"}])
                    waiting.append(draft)
                elif chance.random() < 0.1:
                    spool.remove(spooled.draft.event_id)
                    waiting.remove(spooled.draft)
                assert spool.count == len(waiting)
        assert [spooled.draft for chunk in spool.read_chunks(7) for spooled in chunk] == waiting
        assert {str(spooled.rows) for chunk in spool.read_chunks(7) for spooled in chunk} == {"[{'player': 'anna'}]"}


def test_spool_returns_all_drafts_in_order() -> None:
    """All drafts that were added without a search in between are found by their ids and come out in order."""
    drafts = [Draft(f"own-{n}", "player.registered", 1, f"player:{n}", 0, "{}") for n in range(250)]
    with closing(Spool()) as spool:
        for draft in drafts:
            spool.add(draft, "file", 1, None)
        spooled_drafts = [spool.find_id(draft.event_id) for draft in drafts]
        assert [None if spooled is None else spooled.draft for spooled in spooled_drafts] == drafts
        assert [spooled.draft for chunk in spool.read_chunks(70) for spooled in chunk] == drafts


def draw_draft(chance: random.Random) -> Draft:
    """Draw a draft of one of a few games, sometimes with an id of its own, or of another type."""
    number = chance.randrange(400)
    event_id = chance.choice((f"game:g-{number}", f"game:g-{number}", f"own-{number % 50}"))
    if chance.random() < 0.2:
        return Draft(event_id, "player.registered", 1, f"player:{number % 9}", 0, '{"player":"anna"}')
    return Draft(event_id, "game.recorded", 1, f"game:g-{number}", 0, "{}")


def find_naively(waiting: list[Draft], draft: Draft) -> Draft | None:
    same_id = [candidate for candidate in waiting if candidate.event_id == draft.event_id]
    games = [candidate for candidate in waiting if candidate.type == draft.type == "game.recorded"]
    return next(iter(same_id + [candidate for candidate in games if candidate.subject == draft.subject]), None)


# the chunks of an import


@pytest.mark.parametrize(("annas_place", "existing", "codes"), [(1, 1, []), (2, 0, ["id-conflict"])])
def test_import_notices_concurrent_append(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch, annas_place: int, existing: int, codes: list[str]
) -> None:
    """An import notices when another process appends a game of a later chunk during the import."""
    set_thresholds(monkeypatch, imported_chunk=2)
    ledger = open_ledger(ledger_url)
    events = [build_game_event(f"g-{number}", "anna", "ben") for number in range(8)]
    concurrent_draft = read_event(
        build_game_event("g-5", "anna", "ben") if annas_place == 1 else build_game_event("g-5", "ben", "anna")
    )[0]

    def append_after_first_chunk(appended: int) -> None:
        if appended == 2:
            assert append(ledger, [concurrent_draft], by="other", clock=clock.now).appended == 1

    items = [Item("-", line, event, None) for line, event in enumerate(events, 1)]
    result = FileIntake(ledger, items, ImportPolicy("test", keep_going=True)).append(append_after_first_chunk)
    assert (result.appended, result.existing, [rejection.code for rejection in result.rejected]) == (7, existing, codes)
    with ledger.reading() as connection:
        records = [json.loads(record) for page in read_records(connection) for _, record in page]
    games = ["g-0", "g-1", "g-5", "g-2", "g-3", "g-4", "g-6", "g-7"]
    assert [record["data"]["game_id"] for record in records] == games


def build_game_event(game_id: str, *players: str) -> dict[str, Any]:
    participants = [{"player": name, "place": place} for place, name in enumerate(players, 1)]
    data = {"game_id": game_id, "game": "catan", "participants": participants}
    return {"type": "game.recorded", "occurred_at": "2010-03-05T19:30:00Z", "data": data}
