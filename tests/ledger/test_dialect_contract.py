"""The contract of every store: tests of each member of `Dialect`, on a real store of each kind.

The name of a test begins with its member. A new store runs the tests in a class of its own, as the third store does.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import combinations, count
from pathlib import Path
from typing import Any

import psycopg
import pytest
import third_store
from builders import build_game_draft
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from stores import build_sqlite_error, create_postgres_database, make_empty_ledger

from ratings_ledger import Head, LedgerError, NotALedger, StoreDamaged, StoreUnavailable
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import REASONS
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.events.records import chain_hash, leaf_hash, split_at_position
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.processes.identity import name_this_process
from ratings_ledger.ledger.store import postgres
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.catalogue import find_missing_views, find_object_differences
from ratings_ledger.ledger.store.dialect import DIALECTS, ROLE_PREFIX, Dialect, dialect_of, transaction
from ratings_ledger.ledger.store.log import head, open_driver_cursor, read_page, read_records
from ratings_ledger.ledger.store.opening import Ledger, connect, open_ledger

# an earlier process with this one's id
ENDED_PROCESS = f"{name_this_process().split()[0]} {os.getpid()} 1"
RUN_COLUMNS = ("run", "kind", "started_at", "run_by", "process", "message")


def build_registration(name: str, event_id: str | None = None) -> Draft:
    event = {"type": "player.registered", "occurred_at": "2010-03-05T19:30:00Z", "data": {"player": name}}
    return read_event(event if event_id is None else {**event, "id": event_id})[0]


build_past_game = partial(build_game_draft, at="2010-03-05T19:30:00Z")


def append_drafts(ledger: Ledger, *drafts: Draft, now: int = 5) -> Head:
    return append(ledger, drafts, by="referee", clock=lambda: now).head


def append_by_one_statement(ledger: Ledger, draft: Draft, now: int = 5, head_seen: int | None = None) -> Any:
    columns = (draft.event_id, draft.type, draft.schema_version, draft.subject, draft.occurred_at, now, "referee")
    return ledger.dialect.append_one(ledger, lambda: (*columns, *split_at_position(draft, now, "referee"), head_seen))


def load_records(ledger: Ledger) -> list[str]:
    with ledger.reading() as connection:
        return [record for page in read_records(connection) for _, record in page]


def build_run_row(number: int) -> tuple[Any, ...]:
    return (number, "test", number, "Zoë ' \\ \t\n陳", "here", None if number % 2 else "a\\N,b")


def insert_runs(connection: Connection, *rows: tuple[Any, ...]) -> None:
    with open_driver_cursor(connection) as cursor:
        dialect_of(connection).insert(cursor, "runs", RUN_COLUMNS, iter(rows))


def insert_runs_and_fail(connection: Connection, *rows: tuple[Any, ...]) -> None:
    insert_runs(connection, *rows)
    raise ZeroDivisionError


def load_runs(ledger: Ledger) -> list[tuple[Any, ...]]:
    with ledger.reading() as connection:
        return [
            (*row,) for row in connection.exec_driver_sql(f"SELECT {', '.join(RUN_COLUMNS)} FROM runs ORDER BY run")
        ]


def open_with_short_timeout(ledger: Ledger) -> Ledger:
    url = ledger.url.update_query_dict({"timeout": "0.1"})
    return open_ledger(url.render_as_string(hide_password=False))


def translate_to_reason(error: BaseException, ledger: Ledger) -> str | None:
    return getattr(ledger.dialect.translate_error(error, "the-location"), "reason", None)


class DialectContract:
    """Tests of a store; a subclass for each store makes a ledger in it and lists its statements and errors."""

    backend: str
    # statements of another program: drop a guard, add a trigger, make a transaction unsafe
    unguard = "DROP TRIGGER events_refuse_update"
    intrude: str
    endanger: str
    # errors that the driver raises for damaged data and for a bug of the program; and other errors, each with its
    # reason and with the only words from this list that its message contains
    damage: Exception
    mistake: Exception
    failures: list[tuple[Exception, str, str]]

    @pytest.fixture
    def new_ledger(self) -> Callable[[], Ledger]:
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, new_ledger: Callable[[], Ledger]) -> Ledger:
        return new_ledger()

    def execute(self, ledger: Ledger, *statements: str) -> None:
        with ledger.reading() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def test_every_member_is_tested(self) -> None:
        """Every member of the protocol has a test of its own, and the store has every member."""
        members = {*Dialect.__annotations__, *(name for name in vars(Dialect) if not name.startswith("_"))}
        assert [name for name in sorted(members) if not hasattr(DIALECTS[self.backend](), name)] == []
        test_names = [name for name in dir(self) if name.startswith("test_")]
        untested = [
            name for name in sorted(members) if not any(test.startswith(f"test_{name.lower()}_") for test in test_names)
        ]
        assert untested == []

    # opening

    def test_build_engine_connects_to_this_store(self, ledger: Ledger) -> None:
        """The backend in the URL selects the store, connections know their store, and a malformed URL is refused."""
        assert ledger.dialect is DIALECTS[self.backend]()
        with ledger.reading() as reading_connection, ledger.engine.connect() as plain_connection:
            assert dialect_of(reading_connection) is dialect_of(plain_connection) is ledger.dialect
        engine = ledger.dialect.build_engine(ledger.url, False, NullPool, 30)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
        with pytest.raises(NotALedger, match="timeout"):
            connect(ledger.url.update_query_dict({"timeout": "soon"}).render_as_string(hide_password=False))

    def test_is_file_matches_the_ledgers_path(self, ledger: Ledger) -> None:
        """A ledger in a file has its path, and a ledger on a server has none."""
        assert (ledger.file is not None and Path(ledger.file).is_file()) == ledger.dialect.IS_FILE

    def test_translate_error_of_a_locked_store_is_busy(self, ledger: Ledger) -> None:
        """A wait for a lock that times out reports that the store is busy, with its location."""
        with ledger.writing() as connection:
            ledger.dialect.lock_appends(connection)
            with pytest.raises(StoreUnavailable, match=r".") as raised:
                append_drafts(open_with_short_timeout(ledger), build_registration("anna"))
        assert (raised.value.reason, ledger.location in str(raised.value)) == ("busy", True)
        error = raised.value.__cause__
        assert not ledger.dialect.is_damage(getattr(error, "orig", None) or error)

    def test_translate_error_of_an_event_from_the_future_names_the_clock(self, ledger: Ledger) -> None:
        """The guard refuses an event recorded days ahead of the clock, with the reason `clock-ahead`."""
        with pytest.raises(StoreUnavailable) as raised:
            append_drafts(ledger, build_registration("anna"), now=clock.now() + 2 * 86_400_000_000)
        assert (raised.value.reason, load_records(ledger)) == ("clock-ahead", [])

    def test_translate_error_tells_damage_from_mistakes(self, ledger: Ledger) -> None:
        """Damaged data and absent tables have the reason `damaged`, and a bug of the program has no reason."""
        assert (translate_to_reason(self.damage, ledger), translate_to_reason(self.mistake, ledger)) == (
            "damaged",
            None,
        )
        assert "the-location" in str(ledger.dialect.translate_error(self.damage, "the-location"))
        self.execute(ledger, "ALTER TABLE events RENAME TO gone")
        with pytest.raises(LedgerError) as raised, ledger.reading() as connection:
            head(connection)
        assert raised.value.reason == "damaged"

    def test_translate_error_tells_driver_errors_apart(self, ledger: Ledger) -> None:
        """Each error of the driver has its reason, exit code and message with the location."""
        assert {reason for _, reason, _ in self.failures} >= {
            "busy",
            "no-space",
            "read-only",
            "no-right",
            "unreachable",
        }
        for error, reason, words in self.failures:
            translated = ledger.dialect.translate_error(error, "the-location")
            assert translated is not None
            assert (translated.reason, translated.exit_code, "the-location" in str(translated)) == (
                reason,
                REASONS[reason][0],
                True,
            )
            assert {phrase for _, _, phrase in self.failures if phrase in str(translated)} == {words}
            assert not ledger.dialect.is_damage(error)

    def test_translate_error_of_a_changed_event_is_immutable(self, ledger: Ledger) -> None:
        """The store itself refuses to change an event."""
        append_drafts(ledger, build_registration("anna"))
        with pytest.raises(LedgerError, match="immutable") as raised:
            self.execute(ledger, "UPDATE events SET subject = 'x'")
        assert raised.value.reason == "damaged"

    def test_is_stale_is_true_only_of_a_replaced_file(self, ledger: Ledger, tmp_path: Path) -> None:
        """An idle connection is stale if its file is no longer the one that it opened; a server's is never stale."""
        with ledger.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert not ledger.dialect.is_stale(driver)
            if ledger.file is not None:
                original = Path(ledger.file).rename(tmp_path / "original.db")
                assert ledger.dialect.is_stale(driver)
                Path(ledger.file).write_bytes(b"")
                assert ledger.dialect.is_stale(driver)
                original.replace(ledger.file)
                assert not ledger.dialect.is_stale(driver)

    def test_is_damage_is_true_only_of_damage(self, ledger: Ledger) -> None:
        """Only an error about data that cannot be read is damage."""
        assert ledger.dialect.is_damage(self.damage)
        assert not ledger.dialect.is_damage(self.mistake)
        assert not ledger.dialect.is_damage(ValueError("x"))

    # transactions

    def test_set_autocommit_keeps_each_statement(self, ledger: Ledger) -> None:
        """Other connections see the effect of a statement at once, and a later rollback keeps it."""
        with ledger.engine.connect() as connection:
            insert_runs(ledger.dialect.set_autocommit(connection), build_run_row(1))
            assert load_runs(ledger) == [build_run_row(1)]
            connection.rollback()
        assert load_runs(ledger) == [build_run_row(1)]

    def test_begin_commits_all_or_nothing(self, ledger: Ledger) -> None:
        """Other connections see the changes of a transaction when it has ended, and none of one that fails."""
        with pytest.raises(ZeroDivisionError), ledger.writing() as connection:
            insert_runs_and_fail(connection, build_run_row(1))
        assert load_runs(ledger) == []
        with ledger.writing() as connection:
            insert_runs(connection, build_run_row(1), build_run_row(2))
            assert load_runs(ledger) == []
        assert load_runs(ledger) == [build_run_row(1), build_run_row(2)]

    def check_exclusion(self, ledger: Ledger, acquire_lock: Callable[[Any], None]) -> None:
        """Check that one transaction at a time has a lock, and that it is free when the transaction has ended."""
        other_ledger = open_with_short_timeout(ledger)
        with ledger.writing() as connection:
            acquire_lock(connection)
            with pytest.raises(StoreUnavailable) as raised, other_ledger.writing() as other_connection:
                acquire_lock(other_connection)
            assert raised.value.reason == "busy"
        with other_ledger.writing() as other_connection:
            acquire_lock(other_connection)

    def test_lock_schema_is_for_one_at_a_time(self, ledger: Ledger) -> None:
        """Only one transaction at a time creates or upgrades the tables."""
        self.check_exclusion(ledger, ledger.dialect.lock_schema)

    def test_lock_appends_is_for_one_at_a_time(self, ledger: Ledger) -> None:
        """Only one transaction at a time appends."""
        self.check_exclusion(ledger, ledger.dialect.lock_appends)

    def test_lock_generations_is_for_one_at_a_time(self, ledger: Ledger) -> None:
        """Only one transaction at a time begins or promotes a generation."""
        self.check_exclusion(ledger, ledger.dialect.lock_generations)

    def test_transaction_on_runs_excludes_others_after_a_short_wait(self, ledger: Ledger) -> None:
        """An exclusive transaction makes another one fail after a short wait."""
        transaction_on_runs = ledger.dialect.transaction_on_runs
        with ledger.reading() as first, ledger.reading() as second:
            with (
                transaction_on_runs(first, 50, True),
                pytest.raises(DBAPIError) as raised,
                transaction_on_runs(second, 50, True),
            ):
                raise AssertionError
            assert translate_to_reason(raised.value.orig or raised.value, ledger) == "busy"
            with transaction_on_runs(second, 50, True):
                insert_runs(second, build_run_row(1))
        assert load_runs(ledger) == [build_run_row(1)]

    def test_transaction_on_runs_leaves_nothing_if_it_fails(self, ledger: Ledger) -> None:
        """A transaction on runs stores its rows when it ends, and none if it fails."""
        with ledger.reading() as connection:
            with pytest.raises(ZeroDivisionError), ledger.dialect.transaction_on_runs(connection, 50, False):
                insert_runs_and_fail(connection, build_run_row(1))
            assert load_runs(ledger) == []
            with ledger.dialect.transaction_on_runs(connection, 50, False):
                insert_runs(connection, build_run_row(2))
        assert load_runs(ledger) == [build_run_row(2)]

    # appending and reading

    def test_lock_and_read_head_returns_head_and_named_events(self, ledger: Ledger) -> None:
        """The lock returns the head and the named events; an empty log has no head."""
        with ledger.writing() as connection:
            assert ledger.dialect.lock_and_read_head(connection, ["player:anna"]) == (None, [])
        last = append_drafts(ledger, build_registration("anna", "a"), build_past_game("g-1", "anna", "ben"))
        with ledger.writing() as connection:
            row, named_events = ledger.dialect.lock_and_read_head(connection, ["a", "nobody"])
        assert (row[0], bytes(row[1]), row[2]) == last
        assert named_events == [("a", "player:anna", "player.registered", load_records(ledger)[0])]
        self.check_exclusion(ledger, lambda connection: ledger.dialect.lock_and_read_head(connection, ()))

    def test_lock_and_read_head_refuses_an_unsafe_store(self, ledger: Ledger) -> None:
        """A store whose triggers or settings are unsafe refuses appends."""
        with ledger.writing() as connection:
            connection.exec_driver_sql(self.endanger)
            with pytest.raises(LedgerError) as raised:
                ledger.dialect.lock_and_read_head(connection, ())
        assert raised.value.reason in ("damaged", "unsafe-settings")

    def test_refuse_unexpected_allows_a_plain_index(self, ledger: Ledger) -> None:
        """A foreign trigger is refused, but an operator's index is not."""
        self.execute(ledger, "CREATE INDEX plain ON events (recorded_by)")
        with ledger.writing() as connection:
            connection.exec_driver_sql(self.intrude)
            with pytest.raises(StoreDamaged, match="trigger theirs"):
                ledger.dialect.refuse_unexpected(connection)

    def test_append_one_continues_the_log(self, ledger: Ledger) -> None:
        """Each event gets the next position with its hashes, and the new head is returned."""
        chain = bytes(32)
        for position, draft in enumerate(
            (build_registration("anna"), build_past_game("g-1", "Zoë ' \\", "陳"), build_registration("b %s")), 1
        ):
            new_head = append_by_one_statement(ledger, draft, now=position, head_seen=position - 1)
            record = load_records(ledger)[-1]
            assert json.loads(record)["position"] == position
            chain = chain_hash(chain, leaf_hash(record))
            assert new_head == (position, chain, position)
        with ledger.reading() as connection:
            assert head(connection) == (3, chain, 3)

    @pytest.mark.parametrize(
        ("draft", "now", "head_seen"),
        [
            (build_registration("ben", "a"), 5, None),
            (build_registration("anna", "a"), 5, None),
            (build_past_game("g-1", "x", "y", event_id="b"), 5, None),
            (build_registration("ben"), 4, None),
            (build_registration("ben"), 5, 1),
        ],
        ids=["id taken", "event exists", "game recorded", "clock behind", "head moved"],
    )
    def test_append_one_declines_decisions(self, ledger: Ledger, draft: Draft, now: int, head_seen: int | None) -> None:
        """An event that needs more than one statement is not appended, and the log can be continued."""
        append_drafts(ledger, build_registration("anna", "a"), build_past_game("g-1", "x", "y"))
        assert append_by_one_statement(ledger, draft, now, head_seen) is None
        assert len(load_records(ledger)) == 2
        assert append_by_one_statement(ledger, build_registration("cleo"), 5, 2)[0] == 3

    def test_append_one_from_many_threads_leaves_no_gap(self, ledger: Ledger) -> None:
        """Events appended by many threads at once get positions without gaps."""
        with ThreadPoolExecutor(4) as threads:
            heads = list(
                threads.map(
                    lambda number: append_by_one_statement(ledger, build_registration(f"p-{number}")), range(24)
                )
            )
        assert sorted(new_head[0] for new_head in heads) == list(range(1, 25))
        assert [json.loads(record)["position"] for record in load_records(ledger)] == list(range(1, 25))

    @pytest.mark.parametrize("size", [0, 1, 2, 161, 1_000])
    def test_insert_stores_any_number_of_rows(self, ledger: Ledger, size: int) -> None:
        """No rows, one row or many rows are stored, with any texts."""
        with ledger.writing() as connection:
            insert_runs(connection, *map(build_run_row, range(size)))
        assert load_runs(ledger) == [build_run_row(number) for number in range(size)]

    @pytest.mark.parametrize("size", [1, 2])
    def test_insert_accepts_numbers_as_booleans(self, ledger: Ledger, size: int) -> None:
        """A boolean is stored if it is given as a boolean or as a number, in one row and in several."""
        columns = ("part", "position", "game_id", "occurred_at", "game", "kind", "participants", "rated", "aborted")
        rows = [(1, number, f"g-{number}", -(2**60), "chess", "placing", 2, 1, False) for number in range(size)]
        with ledger.writing() as connection, open_driver_cursor(connection) as cursor:
            ledger.dialect.insert(cursor, "history_games", columns, rows)
            stored = connection.exec_driver_sql("SELECT occurred_at, rated, aborted FROM history_games").all()
        assert [(*row,) for row in stored] == [(-(2**60), True, False)] * size

    def test_find_events_named_looks_by_id_and_subject(self, ledger: Ledger) -> None:
        """An event is found by its id and by its subject, even among many names, and by no other text."""
        append_drafts(
            ledger,
            build_registration("anna", "a"),
            build_past_game("g-1", "x", "y"),
            build_registration("o'x", "q\"'\\"),
        )
        ids = {
            "a": ["a"],
            "player:anna": ["a"],
            "game:g-1": ["game:g-1"],
            "q\"'\\": ["q\"'\\"],
            "player:o'x": ["q\"'\\"],
            "A": [],
            "' OR 1=1 --": [],
        }
        with ledger.reading() as connection, open_driver_cursor(connection) as cursor:
            for name, expected_ids in ids.items():
                assert {event[0] for event in ledger.dialect.find_events_named(cursor, [name])} == {*expected_ids}
            events = ledger.dialect.find_events_named(cursor, [f"n-{number}" for number in range(1_500)] + ["a"])
        assert [(*event,) for event in events] == [("a", "player:anna", "player.registered", load_records(ledger)[0])]

    def test_join_records_returns_all_records_or_none(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        """The records of a range of positions are joined to one text; if a record is missing, there is no text."""
        monkeypatch.setattr(postgres, "JOINED_RECORDS", 2)
        append_drafts(ledger, *(build_registration(f"Zoë-{number}") for number in range(5)))
        with ledger.reading() as connection:
            for start, end in combinations(range(6), 2):
                assert read_page(connection, start, end).decode() == "".join(
                    f"{record}\n" for record in load_records(ledger)[start:end]
                )
            for start, end in ((3, 6), (9, 12)):
                assert ledger.dialect.join_records(connection, start, end) is None
                assert read_page(connection, start, end) == b""

    def test_last_position_queries_all_return_the_last(self, ledger: Ledger) -> None:
        """In a valid log, every query of `LAST_POSITION_QUERIES` returns the last position."""
        append_drafts(ledger, build_registration("anna"), build_past_game("g-1", "x", "y"))
        with ledger.reading() as connection:
            positions = [
                connection.exec_driver_sql(query).scalar_one() for query in ledger.dialect.LAST_POSITION_QUERIES
            ]
        assert positions == [2] * len(positions) != []

    # SQL that differs between stores

    @pytest.mark.parametrize("instant", [0, 1, -1, 1_267_817_400_000_001, parse_instant("9999-12-31T23:59:59Z")])
    def test_sql_instant_is_exact(self, ledger: Ledger, instant: int) -> None:
        """An instant in a view is exact to the microsecond."""
        query = f"SELECT {ledger.dialect.sql_instant('t.x')} FROM (SELECT CAST({instant} AS bigint) AS x) AS t"
        with ledger.reading() as connection:
            value = connection.exec_driver_sql(query).scalar_one()
        instant_in_view = datetime.fromisoformat(value) if isinstance(value, str) else value
        assert instant_in_view == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)

    def test_sql_head_matches_the_printed_head(self, ledger: Ledger) -> None:
        """A row's position and hash are formatted as `status` formats the head."""
        last = append_drafts(ledger, build_registration("anna"))
        with ledger.reading() as connection:
            formatted = connection.exec_driver_sql(f"SELECT {ledger.dialect.sql_head('e')} FROM events e").scalar_one()
        assert formatted == str(last)

    def test_sql_as_bytes_reads_any_text(self, ledger: Ledger) -> None:
        """A text is read as it is stored, and NULL stays NULL."""
        append_drafts(ledger, build_registration("Zoë"))
        columns = ", ".join(map(ledger.dialect.sql_as_bytes, ("subject", "supersedes")))
        with ledger.reading() as connection:
            subject, supersedes = connection.exec_driver_sql(f"SELECT {columns} FROM events").one()
        subject_text = subject if isinstance(subject, str) else bytes(subject).decode()
        assert (subject_text, supersedes) == ("player:Zoë", None)

    def test_readable_view_is_made_again(self, ledger: Ledger) -> None:
        """`READABLE_VIEW` creates the view as the migrations create it."""
        self.execute(ledger, "DROP VIEW events_readable", ledger.dialect.READABLE_VIEW)
        append_drafts(ledger, build_registration("anna"))
        with ledger.reading() as connection:
            assert connection.exec_driver_sql("SELECT event_id FROM events_readable").scalars().all() != []
            assert list(filter(None, find_object_differences(connection))) == []
            assert find_missing_views(connection) == {}

    # maintenance

    def test_read_settings_are_safe_and_have_distinct_names(self, ledger: Ledger) -> None:
        """All settings of a new ledger are safe and have distinct names."""
        with ledger.reading() as connection:
            settings = ledger.dialect.read_settings(connection)
        assert [setting for setting in settings if not setting.is_safe] == []
        assert len({setting.name for setting in settings}) == len(settings) > 3

    def test_identify_database_tells_ledgers_apart(self, new_ledger: Callable[[], Ledger]) -> None:
        """Every connection to a ledger has the same key, and its copy has another."""
        ledger, copy = new_ledger(), new_ledger()
        with ledger.reading() as reader, ledger.writing() as writer, copy.reading() as copy_reader:
            key = ledger.dialect.identify_database(reader)
            assert ledger.dialect.identify_database(writer) == key != copy.dialect.identify_database(copy_reader)

    def test_find_altered_guards_names_dropped_guards(self, ledger: Ledger) -> None:
        """A migrated ledger has all its guards, and a dropped guard is named."""
        with ledger.reading() as connection:
            assert ledger.dialect.find_altered_guards(connection) == []
            connection.exec_driver_sql(self.unguard)
            assert ledger.dialect.find_altered_guards(connection) == ["events_refuse_update"]

    def test_guards_include_those_of_events(self, ledger: Ledger) -> None:
        """The guards include those that keep events unchanged."""
        assert {"events_refuse_update", "events_refuse_delete", "events_guard_insert"} <= {*ledger.dialect.GUARDS}

    def test_find_object_differences_names_foreign_objects(self, ledger: Ledger) -> None:
        """A new ledger has no differences; a missing index and a foreign trigger are named."""
        with ledger.reading() as connection:
            differences = list(find_object_differences(connection))
            assert (len(differences) > 20, {*differences}) == (True, {None})
            self.execute(ledger, "DROP INDEX events_by_type", self.intrude)
            messages = sorted(filter(None, find_object_differences(connection)))
        assert ["events_by_type" in messages[0], "trigger theirs" in messages[1], len(messages)] == [True, True, 2]

    def test_find_storage_damage_is_empty_for_an_undamaged_store(self, ledger: Ledger) -> None:
        """An undamaged store reports no damage."""
        append_drafts(ledger, build_registration("anna"))
        with ledger.reading() as connection:
            assert ledger.dialect.find_storage_damage(connection) == []

    # rights

    def test_build_grant_statements_are_for_a_store_with_roles(self, ledger: Ledger) -> None:
        """A server has statements that create roles, and a file has none."""
        statements = ledger.dialect.build_grant_statements("club", ROLE_PREFIX)
        assert (statements is None) == ledger.dialect.IS_FILE
        assert statements is None or all(statements)

    def test_find_rights_problems_names_the_user(self, ledger: Ledger) -> None:
        """The connection's user has a name, and each problem has a user, a description and a remedy.

        The owner of a ledger on a server has problems, because the test creates no roles.
        """
        with ledger.reading() as connection:
            user, problems = ledger.dialect.find_rights_problems(connection)
        assert user
        assert problems or ledger.dialect.IS_FILE
        assert all(len(list(filter(None, problem))) == 3 for problem in problems)

    def test_read_change_rights_names_the_owner(self, ledger: Ledger) -> None:
        """The user who created a ledger owns its tables and can change them."""
        with ledger.reading() as connection:
            user, owner, can_change_tables = ledger.dialect.read_change_rights(connection)
        assert (user, can_change_tables) == (owner, True)

    @pytest.mark.parametrize("role", ["writer", "rebuilder"])
    def test_describe_missing_rights_is_empty_for_the_owner(self, ledger: Ledger, role: str) -> None:
        """The user who created a ledger lacks no right."""
        with ledger.reading() as connection:
            assert ledger.dialect.describe_missing_rights(connection, role) == ""

    # jobs

    def test_hold_rebuild_lock_excludes_other_rebuilds(self, ledger: Ledger) -> None:
        """One rebuild at a time has the lock, appends continue, and the lock's connection can begin a transaction."""
        with ledger.dialect.hold_rebuild_lock(ledger) as connection:
            with pytest.raises(BlockingIOError), ledger.dialect.hold_rebuild_lock(ledger):
                raise AssertionError
            assert append_drafts(ledger, build_registration("anna")).position == 1
            if connection is not None:
                with transaction(connection, "BEGIN"):
                    ledger.dialect.lock_generations(connection)
        with ledger.dialect.hold_rebuild_lock(ledger):
            pass

    def test_mark_running_lasts_as_long_as_the_run(self, ledger: Ledger) -> None:
        """A run is running while its mark exists, and not when the mark and its process are gone."""
        now = clock.now()
        with ledger.reading() as connection:
            with ledger.dialect.mark_running(ledger, 2**61 + 7):
                assert ledger.dialect.is_running(connection, 2**61 + 7, name_this_process(), now, now)
            assert not ledger.dialect.is_running(connection, 2**61 + 7, ENDED_PROCESS, now, now)

    def test_is_running_tells_runs_apart(self, ledger: Ledger) -> None:
        """A run of an ended process is not confused with a run that is running."""
        now = clock.now()
        with ledger.reading() as connection, ledger.dialect.mark_running(ledger, 7):
            assert not ledger.dialect.is_running(connection, 8, ENDED_PROCESS, now, now)


class TestSqlite(DialectContract):
    """The contract of SQLite."""

    backend = "sqlite"
    intrude = "CREATE TRIGGER theirs AFTER INSERT ON events BEGIN SELECT 1; END"
    endanger = intrude
    damage = sqlite3.DatabaseError("database disk image is malformed")
    mistake = sqlite3.ProgrammingError("incorrect number of bindings")
    failures = [
        (build_sqlite_error("SQLITE_BUSY_SNAPSHOT"), "busy", "is locked"),
        (build_sqlite_error("SQLITE_LOCKED"), "busy", "is locked"),
        (build_sqlite_error("SQLITE_FULL"), "no-space", "no space left"),
        (build_sqlite_error("SQLITE_READONLY_DBMOVED"), "read-only", "cannot be read or written"),
        (build_sqlite_error("SQLITE_PERM"), "no-right", "cannot be read or written"),
        (build_sqlite_error("SQLITE_IOERR_READ"), "unreachable", "cannot be read or written"),
        (build_sqlite_error("SQLITE_CANTOPEN"), "unreachable", "cannot be read or written"),
    ]

    @pytest.fixture
    def new_ledger(self, copy_ledger_file: Callable[..., str]) -> Callable[[], Ledger]:
        names = (f"{number}.db" for number in count())
        return lambda: open_ledger(f"{self.backend}:///{copy_ledger_file(make_empty_ledger, name=next(names))}")


class TestPostgres(DialectContract):
    """The contract of PostgreSQL."""

    backend = "postgresql"
    unguard = "DROP TRIGGER events_refuse_update ON events"
    intrude = "CREATE TRIGGER theirs AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"
    endanger = "SET LOCAL synchronous_commit = off"
    damage = psycopg.errors.DataCorrupted("invalid page in block 7")
    mistake = psycopg.errors.SyntaxError("syntax error")
    failures = [
        (psycopg.errors.DiskFull("could not extend file"), "no-space", "no space left"),
        (psycopg.errors.IoError("No space left on device"), "no-space", "no space left"),
        (psycopg.errors.TooManyConnections("sorry, too many clients already"), "server-limit", "reached a limit"),
        (psycopg.errors.OutOfMemory("out of memory"), "server-limit", "reached a limit"),
        (psycopg.errors.AdminShutdown("terminating connection"), "unreachable", "cannot be reached"),
        (psycopg.OperationalError("connection refused"), "unreachable", "cannot be reached"),
        (psycopg.errors.LockNotAvailable("canceling statement"), "busy", "is busy"),
        (psycopg.errors.SerializationFailure("could not serialize access"), "busy", "is busy"),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"), "read-only", "is read-only"),
        (psycopg.errors.InsufficientPrivilege("permission denied"), "no-right", "lacks a right"),
    ]

    @pytest.fixture
    def new_ledger(self, server: str, original_databases: Callable[..., str]) -> Iterator[Callable[[], Ledger]]:
        original = original_databases(make_empty_ledger)
        with ExitStack() as stack:
            yield lambda: open_ledger(stack.enter_context(create_postgres_database(server, original)))

    def test_find_altered_guards_names_a_changed_function(self, ledger: Ledger) -> None:
        """An append function that is changed or missing is named among the altered guards."""
        name = "events_append_one"
        with ledger.reading() as connection:
            connection.exec_driver_sql(f"ALTER FUNCTION {name} RENAME TO gone")
            assert ledger.dialect.find_altered_guards(connection) == [name]
            connection.exec_driver_sql(f"CREATE FUNCTION {name}() RETURNS int LANGUAGE sql AS 'SELECT 1'")
            assert ledger.dialect.find_altered_guards(connection) == [name]


class TestThirdStore(TestSqlite):
    """The contract of a store that the program does not ship: a module, an entry in `DIALECTS`, and this class."""

    backend = "third"

    @pytest.fixture(autouse=True)
    def _register_store(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(DIALECTS, "third", lambda: third_store)

    def test_commands_call_the_third_store(self, ratings: Callable[..., Any], tmp_path: Path) -> None:
        """Commands of every kind work on the third store and call its own functions, not those of SQLite."""
        db = f"third:///{tmp_path / 'third.db'}"
        assert ratings("init", "--for", "chess", db=db).exit_code == 0
        third_store.recorded_calls.clear()
        for command in (
            ("record", "-q", "--game", "chess", "--game-id", "g-1", "--new-names", "accept", "anna", "ben"),
            ("void", "g-1", "--reason", "twice"),
            ("reinstate", "g-1", "--reason", "once"),
            ("rebuild",),
            ("verify",),
            ("doctor",),
            ("status",),
            ("upgrade",),
            ("standings", "elo-chess/all"),
            ("export", "events"),
        ):
            result = ratings(*command, db=db)
            assert (result.exit_code, result.stderr) == (0, ""), (command, result)
        assert {*third_store.recorded_calls} == {"lock_and_read_head", "find_object_differences"}


def test_every_registered_store_is_tested() -> None:
    """Each store that the program knows has a contract class here."""
    classes = [value for value in vars(sys.modules[__name__]).values() if isinstance(value, type)]
    backends = {
        store.backend for store in classes if issubclass(store, DialectContract) and store is not DialectContract
    }
    assert backends == {*DIALECTS, "third"}
