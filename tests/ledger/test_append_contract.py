"""The contract of the append path, the same on every store."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from builders import build_game_draft
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from ratings_ledger import ClockBehind
from ratings_ledger.ledger.clock import TOLERANCE
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.events.records import ZERO, chain_hash, leaf_hash
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.store.appending import AppendResult, append
from ratings_ledger.ledger.store.log import (
    count_by_type,
    find_position_known_at,
    head,
    ledger_id,
    list_newest_subject_ids,
    read_chain_hash,
    read_matching_records,
    read_records,
    read_records_at,
)
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade

NOON = parse_instant("2024-01-01T12:00:00Z")
SECOND = 1_000_000


@pytest.fixture
def ledger(ledger_url: str) -> Ledger:
    return open_ledger(ledger_url)


def build_sequence_clock(*instants: int) -> Callable[[], int]:
    """Return a clock that shows these instants in turn."""
    remaining: Iterator[int] = iter(instants)
    return lambda: next(remaining)


def build_registration(name: str, **members: object) -> Draft:
    return read_event(
        {"type": "player.registered", "occurred_at": "2024-01-01T00:00:00Z", "data": {"player": name, **members}}
    )[0]


build_past_game = partial(build_game_draft, at="2024-01-01T00:00:00Z")


def append_drafts(
    ledger: Ledger, *drafts: Draft, now: int = NOON, by: str = "referee", ignore_clock: bool = False
) -> AppendResult:
    return append(ledger, drafts, by=by, clock=build_sequence_clock(now), ignore_clock=ignore_clock)


def load_records(ledger: Ledger) -> list[tuple[int, dict[str, object]]]:
    with ledger.reading() as connection:
        return [(position, json.loads(record)) for page in read_records(connection) for position, record in page]


@pytest.mark.slow
def test_empty_ledger_has_the_zero_head(ledger: Ledger) -> None:
    """The head of an empty ledger is position 0 with 32 zero bytes."""
    with ledger.reading() as connection:
        assert str(head(connection)) == f"0:{'00' * 32}"
        assert read_chain_hash(connection, 0) == ZERO
        assert read_chain_hash(connection, 1) is None
    assert load_records(ledger) == []


def test_positions_have_no_gaps(ledger: Ledger) -> None:
    """Events appended in several batches get the positions 1, 2, 3 without gaps."""
    append_drafts(ledger, build_registration("anna"), build_registration("ben"))
    append_drafts(ledger)
    append_drafts(ledger, build_registration("cleo"))

    assert [(position, event["position"], event["data"]) for position, event in load_records(ledger)] == [
        (1, 1, {"player": "anna"}),
        (2, 2, {"player": "ben"}),
        (3, 3, {"player": "cleo"}),
    ]


def test_hashes_follow_from_the_records(
    ledger: Ledger,
) -> None:
    """Every chain hash can be recomputed from the stored records."""
    result = append_drafts(ledger, build_registration("anna"), build_registration("jürgen"), build_registration("😀"))
    chain = ZERO
    with ledger.reading() as connection:
        for page in read_records(connection):
            for position, record in page:
                chain = chain_hash(chain, leaf_hash(record))
                assert read_chain_hash(connection, position) == chain
        assert head(connection) == result.head == (3, chain, NOON)


def test_same_event_exists_already(ledger: Ledger) -> None:
    """An event that is appended again counts as existing, and only new events advance the head."""
    first = append_drafts(ledger, build_registration("anna"), build_past_game("g-1", "anna", "ben"))
    again = append_drafts(
        ledger, build_registration("anna"), build_past_game("g-1", "anna", "ben"), build_registration("ben")
    )

    assert (first.appended, first.existing) == (2, 0)
    assert (again.appended, again.existing, again.refused, again.head.position) == (1, 2, [], 3)


DEFAULTS = {"kind": "placing", "rated": True, "aborted": False, "score_order": "high"}


@pytest.mark.parametrize("recorded_first", ["absent", "spelled out"])
def test_defaults_are_the_same_content(ledger: Ledger, recorded_first: str) -> None:
    """An event has the same content whether its defaults are spelled out or left out."""
    absent = [build_past_game("g-1", "anna", "ben"), build_registration("anna")]
    spelled_out = [build_past_game("g-1", "anna", "ben", **DEFAULTS), build_registration("anna", account="premium")]
    first, second = (absent, spelled_out) if recorded_first == "absent" else (spelled_out, absent)
    append_drafts(ledger, *first)
    again = append_drafts(
        ledger, *(draft._replace(event_id=event.event_id) for draft, event in zip(second, first, strict=True))
    )

    assert (again.appended, again.existing, again.refused) == (0, 2, [])


@pytest.mark.parametrize("first", [{}, {"account": "premium"}], ids=["absent", "spelled out"])
def test_defaults_give_the_same_id(ledger: Ledger, first: dict[str, str]) -> None:
    """An event without an id gets the same id whether its defaults are spelled out or not."""
    second = {"account": "premium"} if not first else {}

    assert build_registration("anna", **first).event_id == build_registration("anna", **second).event_id


def test_refusals_under_the_lock_keep_the_number_of_existing_events(ledger: Ledger) -> None:
    """Drafts that a check under the lock refuses do not reduce the number of events that the log already held."""
    append_drafts(ledger, build_registration("anna"))
    drafts = [build_registration("anna"), build_past_game("g-1", "anna", "ben"), build_past_game("g-2", "anna", "ben")]
    result = append(
        ledger,
        drafts,
        by="referee",
        clock=build_sequence_clock(NOON),
        recheck=lambda connection, before, fresh: [(index, Rejection("players-met", "refused")) for index, _ in fresh],
    )

    assert (result.appended, result.existing, result.head.position) == (0, 1, 1)
    assert [index for index, _ in result.refused] == [1, 2]


def test_id_conflict_refuses_the_batch(ledger: Ledger) -> None:
    """The same id with other content is refused, and nothing of the batch is appended."""
    append_drafts(ledger, build_past_game("g-1", "anna", "ben"))
    result = append_drafts(
        ledger, build_registration("cleo"), build_past_game("g-1", "ben", "anna"), build_registration("dora")
    )

    assert (result.appended, result.existing, result.head.position) == (0, 0, 1)
    assert [(index, rejection.code) for index, rejection in result.refused] == [(1, "id-conflict")]
    assert len(load_records(ledger)) == 1


def test_same_id_at_other_time_conflicts(ledger: Ledger) -> None:
    """The same id with another played time is refused."""
    append_drafts(ledger, build_past_game("g-1", "anna", "ben"))
    result = append_drafts(ledger, build_past_game("g-1", "anna", "ben")._replace(occurred_at=NOON))

    assert [rejection.code for _, rejection in result.refused] == ["id-conflict"]


def test_game_under_another_id_is_refused(ledger: Ledger) -> None:
    """A recorded game under another event id is refused."""
    append_drafts(ledger, build_past_game("g-1", "anna", "ben"))
    result = append_drafts(ledger, build_past_game("g-1", "anna", "ben", event_id="other"))

    assert [(index, rejection.code) for index, rejection in result.refused] == [(0, "game-exists")]


def test_large_record_refuses_the_batch(ledger: Ledger) -> None:
    """A record that is too large refuses its whole batch, also if the other records are small."""
    result = append_drafts(ledger, build_registration("anna"), build_registration("ben"), by="r" * 65_535)

    assert [(index, rejection.code) for index, rejection in result.refused] == [
        (0, "record-too-large"),
        (1, "record-too-large"),
    ]
    large_draft = build_registration("ben")._replace(by="r" * 65_535)
    result = append_drafts(ledger, build_registration("anna"), large_draft)
    assert [(index, rejection.code) for index, rejection in result.refused] == [(1, "record-too-large")]
    assert load_records(ledger) == []


def test_failed_batch_leaves_nothing(ledger: Ledger) -> None:
    """A batch that fails in the middle leaves no event, and a later batch can be appended."""
    append_drafts(ledger, build_registration("anna"))
    repeated_draft = build_registration("ben")
    with pytest.raises(Exception, match=r"event_id|id exists"):
        append_drafts(ledger, repeated_draft, build_registration("cleo"), repeated_draft)

    assert len(load_records(ledger)) == 1
    assert append_drafts(ledger, build_registration("dora")).head.position == 2


def test_batch_has_one_recorded_time(
    ledger: Ledger,
) -> None:
    """All events of a batch have the same recorded time, and an event may name its own recorder."""
    append_drafts(ledger, build_registration("anna"), build_registration("ben")._replace(by="steward"))
    append_drafts(ledger, build_registration("cleo"), now=NOON + 1)

    assert [(event["recorded_at"], event["by"]) for _, event in load_records(ledger)] == [
        ("2024-01-01T12:00:00.000000Z", "referee"),
        ("2024-01-01T12:00:00.000000Z", "steward"),
        ("2024-01-01T12:00:00.000001Z", "referee"),
    ]


@pytest.mark.parametrize("back", [1, SECOND, TOLERANCE])
def test_clock_slightly_back_is_clamped(ledger: Ledger, back: int) -> None:
    """When the clock is up to five minutes behind the head, the recorded time is that of the head."""
    append_drafts(ledger, build_registration("anna"))

    assert append_drafts(ledger, build_registration("ben"), now=NOON - back).head.recorded_at == NOON


def test_clock_far_behind_is_refused(
    ledger: Ledger,
) -> None:
    """With the clock more than five minutes behind the head, appending is refused with a hint at the override."""
    append_drafts(ledger, build_registration("anna"))
    with pytest.raises(ClockBehind, match="--ignore-clock"):
        append_drafts(ledger, build_registration("ben"), now=NOON - TOLERANCE - 1)

    assert len(load_records(ledger)) == 1
    forced = append_drafts(ledger, build_registration("ben"), now=NOON - TOLERANCE - 1, ignore_clock=True)
    assert (forced.appended, forced.head.recorded_at) == (1, NOON)


def test_existing_events_ignore_the_clock(
    ledger: Ledger,
) -> None:
    """A batch of existing events is accepted even if the head is far ahead of the clock."""
    append_drafts(ledger, build_registration("anna"))

    assert append_drafts(ledger, build_registration("anna"), now=NOON - 2 * TOLERANCE).existing == 1


def test_recorded_at_never_decreases(ledger: Ledger) -> None:
    """Recorded times never decrease, even if the clock goes back."""
    for number, seconds in enumerate((0, 5, -3, 2, -200, 7)):
        append_drafts(ledger, build_registration(f"player-{number}"), now=NOON + seconds * SECOND)

    times = [event["recorded_at"] for _, event in load_records(ledger)]
    assert times == sorted(times)  # type: ignore[type-var]
    assert [str(time)[17:19] for time in times] == ["00", "05", "05", "05", "05", "07"]


def test_ledger_ids_differ_and_persist(ledger_url: str, tmp_path: object) -> None:
    """Two ledgers have different ids, and an id survives another upgrade."""
    ledger, other_ledger = open_ledger(ledger_url), upgrade(f"{tmp_path}/other.db")
    with ledger.reading() as connection, other_ledger.reading() as other_connection:
        first_id = ledger_id(connection)
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first_id)
        assert first_id != ledger_id(other_connection)
    upgrade(ledger_url)
    with open_ledger(ledger_url).reading() as connection:
        assert ledger_id(connection) == first_id


@pytest.mark.parametrize("statement", ["UPDATE ledger_identity SET ledger_id = 'x'", "DELETE FROM ledger_identity"])
def test_ledger_id_is_immutable(ledger: Ledger, statement: str) -> None:
    """The database refuses to change or delete the ledger's id."""
    with ledger.reading() as connection:
        first_id = ledger_id(connection)
    with pytest.raises(DBAPIError, match="immutable"), ledger.engine.begin() as connection:
        connection.execute(text(statement))

    with ledger.reading() as connection:
        assert ledger_id(connection) == first_id


def test_pages_hold_each_position_once(ledger: Ledger) -> None:
    """Reading by pages returns every position once and in order."""
    append_drafts(ledger, *(build_registration(f"player-{number}") for number in range(25)))
    with ledger.reading() as connection:
        pages = [[position for position, _ in page] for page in read_records(connection, after=3, until=21, size=7)]
        all_positions = [position for page in read_records(connection, size=7) for position, _ in page]

    assert pages == [[4, 5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16, 17], [18, 19, 20, 21]]
    assert all_positions == list(range(1, 26))


def test_reading_selects_exact_events(ledger: Ledger) -> None:
    """Reading by type, subject or position returns exactly the requested events."""
    append_drafts(
        ledger,
        build_registration("anna"),
        build_past_game("g-1", "anna", "ben"),
        build_registration("ben"),
        build_past_game("g-2", "anna", "ben"),
    )
    with ledger.reading() as connection:
        assert [p for p, _ in read_matching_records(connection, until=4, type_name="game.recorded")] == [2, 4]
        assert [p for p, _ in read_matching_records(connection, until=3, type_name="game.recorded")] == [2]
        assert [p for p, _ in read_matching_records(connection, until=4, after=2, type_name="game.recorded")] == [4]
        assert [p for p, _ in read_matching_records(connection, until=4, subject="player:ben")] == [3]
        assert [list_newest_subject_ids(connection, until) for until in (4, 3, 1)] == [["g-1", "g-2"], ["g-1"], []]
        assert list_newest_subject_ids(connection, 4, "player.registered") == ["anna", "ben"]
        assert read_records_at(connection, [4, 1, 99]).keys() == {1, 4}
        assert count_by_type(connection) == {"player.registered": 2, "game.recorded": 2}


@pytest.mark.parametrize(("seconds", "position"), [(-1, 0), (0, 2), (5, 2), (10, 3), (19, 3), (20, 4), (999, 4)])
def test_time_maps_to_last_known_position(ledger: Ledger, seconds: int, position: int) -> None:
    """A recorded time maps to the last position that was known at that time."""
    append_drafts(ledger, build_registration("anna"), build_registration("ben"))
    append_drafts(ledger, build_registration("cleo"), now=NOON + 10 * SECOND)
    append_drafts(ledger, build_registration("dora"), now=NOON + 20 * SECOND)

    with ledger.reading() as connection:
        assert find_position_known_at(connection, NOON + seconds * SECOND) == position
