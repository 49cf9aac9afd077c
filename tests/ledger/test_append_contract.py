"""The contract of the append path, the same on every store."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from ledger.errors import ClockBehind
from ledger.events.canonical import parse_instant
from ledger.events.records import ZERO, chain_hash, leaf_hash
from ledger.events.types import Draft, read_event
from ledger.store.appending import CLOCK_TOLERANCE, Appended, append
from ledger.store.log import (
    chain_hash_at,
    count_by_type,
    head,
    ledger_id,
    position_known_at,
    read_records,
    read_records_at,
    read_where,
)
from ledger.store.opening import Ledger, open_ledger
from ledger.store.upgrading import upgrade

NOON = parse_instant("2024-01-01T12:00:00Z")
SECOND = 1_000_000


@pytest.fixture
def ledger(ledger_url: str) -> Ledger:
    return open_ledger(ledger_url)


def at(*instants: int) -> Callable[[], int]:
    """A clock that shows these instants in turn."""
    remaining: Iterator[int] = iter(instants)
    return lambda: next(remaining)


def player(name: str, **members: object) -> Draft:
    return read_event(
        {"type": "player.registered", "occurred_at": "2024-01-01T00:00:00Z", "data": {"player": name, **members}}
    )[0]


def game(game_id: str, *players: str, event_id: str | None = None, **members: object) -> Draft:
    participants = [{"player": name, "place": place} for place, name in enumerate(players, 1)]
    data = {"game_id": game_id, "game": "catan", "participants": participants, **members}
    event = {"type": "game.recorded", "occurred_at": "2024-01-01T00:00:00Z", "data": data}
    return read_event(event if event_id is None else {**event, "id": event_id})[0]


def add(ledger: Ledger, *drafts: Draft, now: int = NOON, by: str = "referee", ignore_clock: bool = False) -> Appended:
    return append(ledger, drafts, by=by, clock=at(now), ignore_clock=ignore_clock)


def records(ledger: Ledger) -> list[tuple[int, dict[str, object]]]:
    with ledger.reading() as connection:
        return [(position, json.loads(record)) for page in read_records(connection) for position, record in page]


def test_given_an_empty_ledger_when_asked_then_the_head_is_position_0_with_32_zero_bytes(ledger: Ledger) -> None:
    with ledger.reading() as connection:
        assert str(head(connection)) == f"0:{'00' * 32}"
        assert chain_hash_at(connection, 0) == ZERO
        assert chain_hash_at(connection, 1) is None
    assert records(ledger) == []


def test_given_several_batches_when_appended_then_positions_are_1_2_3_without_gaps(ledger: Ledger) -> None:
    add(ledger, player("anna"), player("ben"))
    add(ledger)
    add(ledger, player("cleo"))

    assert [(position, event["position"], event["data"]) for position, event in records(ledger)] == [
        (1, 1, {"player": "anna"}), (2, 2, {"player": "ben"}), (3, 3, {"player": "cleo"}),
    ]  # fmt: skip


def test_given_appended_events_when_hashed_again_then_every_leaf_and_chain_hash_follows_from_the_records(
    ledger: Ledger,
) -> None:
    done = add(ledger, player("anna"), player("jürgen"), player("😀"))
    before = ZERO
    with ledger.reading() as connection:
        for page in read_records(connection):
            for position, record in page:
                before = chain_hash(before, leaf_hash(record))
                assert chain_hash_at(connection, position) == before
        assert head(connection) == done.head == (3, before, NOON)


def test_given_the_same_event_again_when_appended_then_it_exists_and_the_head_stays(ledger: Ledger) -> None:
    first = add(ledger, player("anna"), game("g-1", "anna", "ben"))
    again = add(ledger, player("anna"), game("g-1", "anna", "ben"), player("ben"))

    assert (first.appended, first.existing) == (2, 0)
    assert (again.appended, again.existing, again.refused, again.head.position) == (1, 2, [], 3)


DEFAULTS = {"kind": "placing", "rated": True, "aborted": False, "score_order": "high"}


@pytest.mark.parametrize("recorded_first", ["absent", "spelled out"])
def test_given_defaults_spelled_out_or_absent_when_appended_again_then_it_is_the_same_content(
    ledger: Ledger, recorded_first: str
) -> None:
    absent = [game("g-1", "anna", "ben"), player("anna")]
    spelled_out = [game("g-1", "anna", "ben", **DEFAULTS), player("anna", account="premium")]
    first, second = (absent, spelled_out) if recorded_first == "absent" else (spelled_out, absent)
    add(ledger, *first)
    again = add(ledger, *(draft._replace(event_id=event.event_id) for draft, event in zip(second, first, strict=True)))

    assert (again.appended, again.existing, again.refused) == (0, 2, [])


@pytest.mark.parametrize("first", [{}, {"account": "premium"}], ids=["absent", "spelled out"])
def test_given_no_id_and_defaults_written_otherwise_when_appended_again_then_the_id_is_the_same(
    ledger: Ledger, first: dict[str, str]
) -> None:
    second = {"account": "premium"} if not first else {}

    assert player("anna", **first).event_id == player("anna", **second).event_id


def test_given_the_same_id_and_other_content_when_appended_then_nothing_of_the_batch_is(ledger: Ledger) -> None:
    add(ledger, game("g-1", "anna", "ben"))
    done = add(ledger, player("cleo"), game("g-1", "ben", "anna"), player("dora"))

    assert (done.appended, done.existing, done.head.position) == (0, 0, 1)
    assert [(index, rejection.code) for index, rejection in done.refused] == [(1, "id-conflict")]
    assert len(records(ledger)) == 1


def test_given_the_same_id_at_another_time_when_appended_then_it_is_refused(ledger: Ledger) -> None:
    add(ledger, game("g-1", "anna", "ben"))
    done = add(ledger, game("g-1", "anna", "ben")._replace(occurred_at=NOON))

    assert [rejection.code for _, rejection in done.refused] == ["id-conflict"]


def test_given_a_recorded_game_under_another_event_id_when_appended_then_it_is_refused(ledger: Ledger) -> None:
    add(ledger, game("g-1", "anna", "ben"))
    done = add(ledger, game("g-1", "anna", "ben", event_id="other"))

    assert [(index, rejection.code) for index, rejection in done.refused] == [(0, "game-exists")]


def test_given_a_batch_with_a_record_that_is_too_large_when_appended_then_nothing_of_it_is(ledger: Ledger) -> None:
    done = add(ledger, player("anna"), player("ben"), by="r" * 65_535)

    assert [(index, rejection.code) for index, rejection in done.refused] == [
        (0, "record-too-large"),
        (1, "record-too-large"),
    ]
    assert records(ledger) == []


def test_given_a_failure_in_the_middle_of_a_batch_when_appended_then_nothing_of_it_stays(ledger: Ledger) -> None:
    add(ledger, player("anna"))
    twice = player("ben")
    with pytest.raises(Exception, match=r"event_id|id exists"):
        add(ledger, twice, player("cleo"), twice)

    assert len(records(ledger)) == 1
    assert add(ledger, player("dora")).head.position == 2


def test_given_a_clock_that_runs_when_appended_then_a_batch_has_its_time_and_the_line_may_name_who(
    ledger: Ledger,
) -> None:
    add(ledger, player("anna"), player("ben")._replace(by="steward"))
    add(ledger, player("cleo"), now=NOON + 1)

    assert [(event["recorded_at"], event["by"]) for _, event in records(ledger)] == [
        ("2024-01-01T12:00:00.000000Z", "referee"),
        ("2024-01-01T12:00:00.000000Z", "steward"),
        ("2024-01-01T12:00:00.000001Z", "referee"),
    ]


@pytest.mark.parametrize("back", [1, SECOND, CLOCK_TOLERANCE])
def test_given_a_clock_up_to_five_minutes_back_when_appended_then_the_time_is_clamped_to_the_head(
    ledger: Ledger, back: int
) -> None:
    add(ledger, player("anna"))

    assert add(ledger, player("ben"), now=NOON - back).head.recorded_at == NOON


def test_given_a_head_more_than_five_minutes_ahead_when_appended_then_it_is_refused_naming_the_override(
    ledger: Ledger,
) -> None:
    add(ledger, player("anna"))
    with pytest.raises(ClockBehind, match="--ignore-clock"):
        add(ledger, player("ben"), now=NOON - CLOCK_TOLERANCE - 1)

    assert len(records(ledger)) == 1
    forced = add(ledger, player("ben"), now=NOON - CLOCK_TOLERANCE - 1, ignore_clock=True)
    assert (forced.appended, forced.head.recorded_at) == (1, NOON)


def test_given_a_head_in_the_future_when_only_existing_events_are_appended_then_nothing_needs_the_clock(
    ledger: Ledger,
) -> None:
    add(ledger, player("anna"))

    assert add(ledger, player("anna"), now=NOON - 2 * CLOCK_TOLERANCE).existing == 1


def test_given_any_clock_when_appended_then_recorded_at_never_decreases(ledger: Ledger) -> None:
    for number, step in enumerate((0, 5, -3, 2, -200, 7)):
        add(ledger, player(f"player-{number}"), now=NOON + step * SECOND)

    times = [event["recorded_at"] for _, event in records(ledger)]
    assert times == sorted(times)  # type: ignore[type-var]
    assert [str(time)[17:19] for time in times] == ["00", "05", "05", "05", "05", "07"]


def test_given_two_ledgers_when_made_then_their_ids_differ_and_survive_another_upgrade(
    ledger_url: str, tmp_path: object
) -> None:
    ledger, other = open_ledger(ledger_url), upgrade(f"{tmp_path}/other.db")
    with ledger.reading() as connection, other.reading() as second:
        first_id = ledger_id(connection)
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first_id)
        assert first_id != ledger_id(second)
    upgrade(ledger_url)
    with open_ledger(ledger_url).reading() as connection:
        assert ledger_id(connection) == first_id


@pytest.mark.parametrize("statement", ["UPDATE ledger_identity SET ledger_id = 'x'", "DELETE FROM ledger_identity"])
def test_given_a_ledger_when_its_id_is_changed_or_deleted_then_the_database_refuses(
    ledger: Ledger, statement: str
) -> None:
    with ledger.reading() as connection:
        before = ledger_id(connection)
    with pytest.raises(DBAPIError, match="immutable"), ledger.engine.begin() as connection:
        connection.execute(text(statement))

    with ledger.reading() as connection:
        assert ledger_id(connection) == before


def test_given_many_events_when_read_by_pages_then_every_position_comes_once_in_order(ledger: Ledger) -> None:
    add(ledger, *(player(f"player-{number}") for number in range(25)))
    with ledger.reading() as connection:
        pages = [[position for position, _ in page] for page in read_records(connection, after=3, until=21, size=7)]
        whole = [position for page in read_records(connection, size=7) for position, _ in page]

    assert pages == [[4, 5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16, 17], [18, 19, 20, 21]]
    assert whole == list(range(1, 26))


def test_given_events_when_asked_by_type_subject_or_position_then_exactly_those_come(ledger: Ledger) -> None:
    add(ledger, player("anna"), game("g-1", "anna", "ben"), player("ben"), game("g-2", "anna", "ben"))
    with ledger.reading() as connection:
        assert [p for p, _ in read_where(connection, until=4, type_name="game.recorded")] == [2, 4]
        assert [p for p, _ in read_where(connection, until=3, type_name="game.recorded")] == [2]
        assert [p for p, _ in read_where(connection, until=4, subject="player:ben")] == [3]
        assert read_records_at(connection, [4, 1, 99]).keys() == {1, 4}
        assert count_by_type(connection) == {"player.registered": 2, "game.recorded": 2}


@pytest.mark.parametrize(("seconds", "position"), [(-1, 0), (0, 2), (5, 2), (10, 3), (19, 3), (20, 4), (999, 4)])
def test_given_record_times_when_asked_what_was_known_then_the_last_position_up_to_then(
    ledger: Ledger, seconds: int, position: int
) -> None:
    add(ledger, player("anna"), player("ben"))
    add(ledger, player("cleo"), now=NOON + 10 * SECOND)
    add(ledger, player("dora"), now=NOON + 20 * SECOND)

    with ledger.reading() as connection:
        assert position_known_at(connection, NOON + seconds * SECOND) == position
