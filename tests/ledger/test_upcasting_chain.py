"""Events of older schema versions are upcast step by step; events of a newer program do not count."""

from collections.abc import Callable

import pytest
from ledgers import open_for_reading, open_for_writing
from sqlalchemy import text

from ratings_ledger import Head, Refused
from ratings_ledger.ledger.events.canonical import dump
from ratings_ledger.ledger.events.records import ZERO, chain_hash, index_record, leaf_hash
from ratings_ledger.ledger.events.types import TYPES, UPCASTERS, Data, Draft, upcast
from ratings_ledger.ledger.store.appending import insert_event_rows


def double_name(data: Data) -> Data:
    return {**data, "name": data["name"] * 2}


def rename_to_player(data: Data) -> Data:
    return {"player": data["name"]}


CHAIN = {("player.registered", 1): double_name, ("player.registered", 2): rename_to_player}


@pytest.mark.parametrize(
    ("version", "data", "expected"),
    [
        (1, {"name": "ab"}, {"player": "abab"}),
        (2, {"name": "ab"}, {"player": "ab"}),
        (3, {"player": "ab"}, {"player": "ab"}),
    ],
)
def test_every_later_step_is_applied(version: int, data: Data, expected: Data) -> None:
    """Upcasting data applies every step from its version on."""
    assert upcast("player.registered", version, 3, data, CHAIN) == expected


def test_upcasting_leaves_its_input_alone() -> None:
    """Upcasting does not change its input."""
    data = {"name": "ab"}
    upcast("player.registered", 1, 3, data, CHAIN)

    assert data == {"name": "ab"}


@pytest.mark.parametrize("version", [0, 4, -1, True, "1", None, [1]])
def test_unknown_version_is_refused(version: object) -> None:
    """An unknown schema version is refused."""
    with pytest.raises(Refused) as refusal:
        upcast("player.registered", version, 3, {"name": "ab"}, CHAIN)

    assert refusal.value.code == "unknown-schema-version"


def test_true_is_not_version_1() -> None:
    """`True` is refused as a version, although it equals 1."""
    with pytest.raises(Refused):
        upcast("player.registered", True, 1, {"player": "anna"})


def test_steps_reach_every_current_version() -> None:
    """Every event type of this program has all steps from version 1 to its current one."""
    versions = {(name, version) for name, kind in TYPES.items() for version in range(1, kind.schema_version)}
    assert set(UPCASTERS) == versions


@pytest.mark.parametrize(("type_name", "version"), [("player.registered", 2), ("player.exiled", 1)])
def test_event_of_newer_program_is_ignored(
    ledger_url: str, type_name: str, version: int, ratings: Callable[..., tuple[int, str, str]]
) -> None:
    """An event of a newer program does not count, and a command prints a warning about it."""
    append_as_a_newer_program(ledger_url, type_name, version)

    exit_code, _, stderr = ratings("ladders", db=ledger_url)
    assert exit_code == 0
    assert "the event at position 1 does not count: " in stderr
    assert ("version 2 is unknown here" if version == 2 else "'player.exiled' is not a type of event") in stderr


def append_as_a_newer_program(url: str, type_name: str, version: int) -> None:
    draft = Draft("player:1", "player.registered", 1, "player:anna", 0, '{"player":"anna"}')
    event = {
        "by": "referee",
        "data": {"player": "anna"},
        "id": draft.event_id,
        "occurred_at": "1970-01-01T00:00:00.000000Z",
        "position": 1,
        "recorded_at": "1970-01-01T00:00:00.000000Z",
        "schema_version": 1,
        "type": draft.type,
    }
    row = index_record(dump(event), event, ZERO)
    record = dump({**event, "type": type_name, "schema_version": version})
    leaf = leaf_hash(record)
    newer_row = row._replace(
        type=type_name, schema_version=version, record=record, leaf_hash=leaf, chain_hash=chain_hash(ZERO, leaf)
    )
    with open_for_writing(url) as connection:
        insert_event_rows(connection, [newer_row], Head(0, ZERO, 0))
    with open_for_reading(url) as connection:
        assert connection.execute(text("SELECT count(*) FROM events")).scalar() == 1
