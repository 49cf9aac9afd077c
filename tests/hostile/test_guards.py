"""The guard lets a row in only if its columns say what its record says, and none from days ahead of the clock."""

from collections.abc import Callable
from typing import Any

import pytest
from forging import AT, GAME, insert
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError
from test_verify import made, verified

from ledger import clock
from ledger.canonical import INSTANT_MAX, INSTANT_MIN, dump, format_instant
from ledger.errors import LedgerError
from ledger.records import Row, chain_hash, leaf_hash
from ledger.store import Ledger, connect, head

Ratings = Callable[..., Any]
DAY = 86_400_000_000


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    made(ratings, store)
    return store


def row(ledger: Ledger, subject: str = "game:forged", **members: Any) -> Row:
    """The row of a game that continues the log; with other members as its record and its columns have them."""
    with ledger.reading() as connection:
        before = head(connection)
    occurred_at, recorded_at = members.pop("occurred_at", AT), members.pop("recorded_at", before.recorded_at)
    event = {
        "by": "eve", "data": GAME, "id": "game:forged", "position": before.position + 1, "schema_version": 1,
        "type": "game.recorded", **members,
        "occurred_at": format_instant(occurred_at), "recorded_at": format_instant(recorded_at),
    }  # fmt: skip
    record = dump(event)
    leaf = leaf_hash(record)
    return Row(
        event["position"], event["id"], event["type"], event["schema_version"], subject, occurred_at, recorded_at,
        event["by"], event.get("supersedes"), record, leaf, chain_hash(before.chain_hash, leaf),
    )  # fmt: skip


def inserted(ledger: Ledger, values: Row) -> str:
    """What the database says to a row: nothing if it lets it in. It is taken out again."""
    try:
        with ledger.writing() as connection:
            insert(connection, values)
            raise Undone
    except Undone:
        return ""
    except (DBAPIError, LedgerError) as error:
        return str(error)


class Undone(Exception):
    """Rolls a row back."""


ODD = {
    "event_id": "game:other", "type": "game.voided", "schema_version": 2, "subject": "game:other",
    "occurred_at": AT + 1, "recorded_by": "zoe", "supersedes": "game:g-1",
}  # fmt: skip


@pytest.mark.parametrize("column", ODD)
def test_given_a_column_that_its_record_does_not_have_when_inserted_then_the_guard_refuses_it(
    column: str, db: str
) -> None:
    ledger = connect(db)
    assert inserted(ledger, row(ledger)) == ""
    assert "the columns do not fit the record" in inserted(ledger, row(ledger)._replace(**{column: ODD[column]}))


@pytest.mark.parametrize("record", [
    "{}", "", "null", '{"by":"eve"}', '{"data":{},"by":"eve"}', ' {"by":"eve","data":{}',
])  # fmt: skip
def test_given_a_record_that_is_none_when_inserted_then_the_guard_refuses_it(record: str, db: str) -> None:
    ledger = connect(db)
    values = row(ledger)
    leaf = leaf_hash(record)
    with ledger.reading() as connection:
        chain = chain_hash(head(connection).chain_hash, leaf)
    refused = inserted(ledger, values._replace(record=record, leaf_hash=leaf, chain_hash=chain))
    assert "the columns do not fit the record" in refused
    assert "the columns do not fit the record" in inserted(ledger, values._replace(record=values.record + " "))


def test_given_an_event_of_the_year_3000_when_inserted_then_it_is_refused_and_the_club_goes_on(
    db: str, ratings: Ratings
) -> None:
    ledger = connect(db)
    refused = inserted(ledger, row(ledger, recorded_at=32_503_680_000_000_000))
    assert "recorded more than a day ahead of the clock" in refused
    assert inserted(ledger, row(ledger, recorded_at=clock.now() + DAY // 2)) == ""
    game = ("--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "ben")
    assert ratings("record", *game, db=db).exit_code == 0


def test_given_a_clock_that_is_a_year_ahead_when_recorded_then_one_sentence_says_so(
    db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + 366 * DAY)
    game = ("--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "ben")
    done = ratings("record", *game, db=db)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "ahead of the clock that the database goes by" in done.stderr
    monkeypatch.undo()
    assert verified(ratings, db) == []


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40) | st.text(
    st.sampled_from('"\\ab\u00e9n/{}:,'), min_size=1, max_size=12
)


def test_given_any_names_and_times_of_events_when_inserted_then_the_guard_lets_them_in(
    db: str, at_length: bool
) -> None:
    """Quotes, backslashes, letters of every script; a recorder's name may hold line ends and tabs."""
    ledger = connect(db, keep_open=True)

    @settings(max_examples=500 if at_length else 60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        name=NAMES, by=NAMES | st.sampled_from(["a\nb", "\t", "\\n", '"']), thing=NAMES, supersedes=st.none() | NAMES,
        at=st.integers(INSTANT_MIN, INSTANT_MAX) | st.sampled_from([INSTANT_MIN, INSTANT_MAX, -1, 0, 999_999, 10**6]),
    )  # fmt: skip
    def lets_in(name: str, by: str, thing: str, supersedes: str | None, at: int) -> None:
        members = {"id": name, "by": by, "data": {**GAME, "game_id": thing}, "occurred_at": at}
        more = {} if supersedes is None else {"supersedes": supersedes}
        refused = inserted(ledger, row(ledger, f"game:{thing}", **members, **more))
        assert refused == "" or "FOREIGN KEY" in refused or "foreign key" in refused

    lets_in()
    ledger.close()


def test_given_hashes_that_do_not_fit_when_inserted_then_postgresql_refuses_them(
    postgres_url: str, ratings: Ratings
) -> None:
    made(ratings, postgres_url)
    ledger = connect(postgres_url)
    for name in ("leaf_hash", "chain_hash"):
        assert "the hashes do not fit the record" in inserted(ledger, row(ledger)._replace(**{name: bytes(32)}))
