"""What every store gives the rest of the program, tried on a real one of each: the members of `Dialect`.

A test is named after the member that it is about. Another store passes them by a class of its own, as a third one does.
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
from ratings_ledger.ledger.store.dialect import DIALECTS, PREFIX, Dialect, dialect_of, transaction
from ratings_ledger.ledger.store.log import head, open_driver_cursor, read_page, read_records
from ratings_ledger.ledger.store.opening import Ledger, connect, open_ledger

# a process that had this one's number before
GONE = f"{name_this_process().split()[0]} {os.getpid()} 1"
COLUMNS = ("run", "kind", "started_at", "run_by", "process", "message")


def player(name: str, event_id: str | None = None) -> Draft:
    event = {"type": "player.registered", "occurred_at": "2010-03-05T19:30:00Z", "data": {"player": name}}
    return read_event(event if event_id is None else {**event, "id": event_id})[0]


game = partial(build_game_draft, at="2010-03-05T19:30:00Z")


def add(ledger: Ledger, *drafts: Draft, now: int = 5) -> Head:
    return append(ledger, drafts, by="referee", clock=lambda: now).head


def append_one(ledger: Ledger, draft: Draft, now: int = 5, head_seen: int | None = None) -> Any:
    columns = (draft.event_id, draft.type, draft.schema_version, draft.subject, draft.occurred_at, now, "referee")
    return ledger.dialect.append_one(ledger, lambda: (*columns, *split_at_position(draft, now, "referee"), head_seen))


def records(ledger: Ledger) -> list[str]:
    with ledger.reading() as connection:
        return [record for page in read_records(connection) for _, record in page]


def run_row(number: int) -> tuple[Any, ...]:
    return (number, "test", number, "Zoë ' \\ \t\n陳", "here", None if number % 2 else "a\\N,b")


def insert(connection: Connection, *rows: tuple[Any, ...]) -> None:
    with open_driver_cursor(connection) as cursor:
        dialect_of(connection).insert(cursor, "runs", COLUMNS, iter(rows))


def insert_and_fail(connection: Connection, *rows: tuple[Any, ...]) -> None:
    insert(connection, *rows)
    raise ZeroDivisionError


def runs(ledger: Ledger) -> list[tuple[Any, ...]]:
    with ledger.reading() as connection:
        return [(*row,) for row in connection.exec_driver_sql(f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY run")]


def impatient(ledger: Ledger) -> Ledger:
    url = ledger.url.update_query_dict({"timeout": "0.1"})
    return open_ledger(url.render_as_string(hide_password=False))


def reason_of(error: BaseException, ledger: Ledger) -> str | None:
    return getattr(ledger.dialect.translate_error(error, "the-location"), "reason", None)


class DialectContract:
    """Tests of a store; a class for a store says how to make a ledger in it, and what its own words and errors are."""

    backend: str
    # what another program can do to a ledger: take a guard away, put a trigger of its own in, keep it from being safe
    unguard = "DROP TRIGGER events_refuse_update"
    intrude: str
    endanger: str
    # what the driver raises for damaged data, and for a mistake of the program; and other errors, each with the reason
    # of what people are told, and words of it that no other reason has
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
        tests = [name for name in dir(self) if name.startswith("test_")]
        assert [one for one in sorted(members) if not any(t.startswith(f"test_{one.lower()}_") for t in tests)] == []

    # opening

    def test_build_engine_connects_to_this_store(self, ledger: Ledger) -> None:
        """The URL's backend chooses the store, as every connection says; a URL that cannot be meant is refused."""
        assert ledger.dialect is DIALECTS[self.backend]()
        with ledger.reading() as reading, ledger.engine.connect() as plain:
            assert dialect_of(reading) is dialect_of(plain) is ledger.dialect
        engine = ledger.dialect.build_engine(ledger.url, False, NullPool, 30)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
        with pytest.raises(NotALedger, match="timeout"):
            connect(ledger.url.update_query_dict({"timeout": "soon"}).render_as_string(hide_password=False))

    def test_is_file_as_the_ledger_says(self, ledger: Ledger) -> None:
        """A ledger in a file names it, and one on a server none."""
        assert (ledger.file is not None and Path(ledger.file).is_file()) == ledger.dialect.IS_FILE

    def test_translate_error_of_a_locked_store_is_busy(self, ledger: Ledger) -> None:
        """Whoever waits for a lock in vain is told that the store is busy, and where it is."""
        with ledger.writing() as connection:
            ledger.dialect.lock_appends(connection)
            with pytest.raises(StoreUnavailable, match=r".") as raised:
                add(impatient(ledger), player("anna"))
        assert (raised.value.reason, ledger.location in str(raised.value)) == ("busy", True)
        error = raised.value.__cause__
        assert not ledger.dialect.is_damage(getattr(error, "orig", None) or error)

    def test_translate_error_of_an_event_from_the_future_names_the_clock(self, ledger: Ledger) -> None:
        """The guard refuses an event from days ahead of the clock, and the reason is the clock."""
        with pytest.raises(StoreUnavailable) as raised:
            add(ledger, player("anna"), now=clock.now() + 2 * 86_400_000_000)
        assert (raised.value.reason, records(ledger)) == ("clock-ahead", [])

    def test_translate_error_tells_damage_from_mistakes(self, ledger: Ledger) -> None:
        """Damaged data and absent tables are damage for people, a mistake of the program is nothing they can mend."""
        assert (reason_of(self.damage, ledger), reason_of(self.mistake, ledger)) == ("damaged", None)
        assert "the-location" in str(ledger.dialect.translate_error(self.damage, "the-location"))
        self.execute(ledger, "ALTER TABLE events RENAME TO gone")
        with pytest.raises(LedgerError) as raised, ledger.reading() as connection:
            head(connection)
        assert raised.value.reason == "damaged"

    def test_translate_error_tells_driver_errors_apart(self, ledger: Ledger) -> None:
        """Each error of the driver has its reason, exit code and words, and names the location."""
        assert {reason for _, reason, _ in self.failures} >= {
            "busy",
            "no-space",
            "read-only",
            "no-right",
            "unreachable",
        }
        for error, reason, words in self.failures:
            found = ledger.dialect.translate_error(error, "the-location")
            assert found is not None
            assert (found.reason, found.exit_code, "the-location" in str(found)) == (reason, REASONS[reason][0], True)
            assert {one for _, _, one in self.failures if one in str(found)} == {words}
            assert not ledger.dialect.is_damage(error)

    def test_translate_error_of_a_change_says_that_it_was_refused(self, ledger: Ledger) -> None:
        """An event that is changed is refused by the store itself."""
        add(ledger, player("anna"))
        with pytest.raises(LedgerError, match="immutable") as raised:
            self.execute(ledger, "UPDATE events SET subject = 'x'")
        assert raised.value.reason == "damaged"

    def test_is_damage_only_of_damage(self, ledger: Ledger) -> None:
        """Only an error about data that cannot be read is damage."""
        assert ledger.dialect.is_damage(self.damage)
        assert not ledger.dialect.is_damage(self.mistake)
        assert not ledger.dialect.is_damage(ValueError("x"))

    # transactions

    def test_set_autocommit_keeps_each_statement(self, ledger: Ledger) -> None:
        """What a statement changes is there for others at once, whatever comes after it."""
        with ledger.engine.connect() as connection:
            insert(ledger.dialect.set_autocommit(connection), run_row(1))
            assert runs(ledger) == [run_row(1)]
            connection.rollback()
        assert runs(ledger) == [run_row(1)]

    def test_begin_makes_all_or_nothing(self, ledger: Ledger) -> None:
        """Others see what a transaction changes when it has ended, and nothing of one that fails."""
        with pytest.raises(ZeroDivisionError), ledger.writing() as connection:
            insert_and_fail(connection, run_row(1))
        assert runs(ledger) == []
        with ledger.writing() as connection:
            insert(connection, run_row(1), run_row(2))
            assert runs(ledger) == []
        assert runs(ledger) == [run_row(1), run_row(2)]

    def exclude(self, ledger: Ledger, take: Callable[[Any], None]) -> None:
        """That a lock is given to one transaction at a time, and again when that has ended."""
        other = impatient(ledger)
        with ledger.writing() as connection:
            take(connection)
            with pytest.raises(StoreUnavailable) as raised, other.writing() as second:
                take(second)
            assert raised.value.reason == "busy"
        with other.writing() as second:
            take(second)

    def test_lock_schema_is_for_one_at_a_time(self, ledger: Ledger) -> None:
        """One transaction at a time makes or upgrades the tables."""
        self.exclude(ledger, ledger.dialect.lock_schema)

    def test_lock_appends_is_for_one_at_a_time(self, ledger: Ledger) -> None:
        """One transaction at a time appends."""
        self.exclude(ledger, ledger.dialect.lock_appends)

    def test_lock_generations_is_for_one_at_a_time(self, ledger: Ledger) -> None:
        """One transaction at a time begins or promotes a generation."""
        self.exclude(ledger, ledger.dialect.lock_generations)

    def test_begin_on_runs_is_for_one_at_a_time_and_does_not_wait(self, ledger: Ledger) -> None:
        """An exclusive transaction keeps another one out, which gives up soon."""
        begin_on_runs = ledger.dialect.begin_on_runs
        with ledger.reading() as first, ledger.reading() as second:
            with begin_on_runs(first, 50, True), pytest.raises(DBAPIError) as raised, begin_on_runs(second, 50, True):
                raise AssertionError
            assert reason_of(raised.value.orig or raised.value, ledger) == "busy"
            with begin_on_runs(second, 50, True):
                insert(second, run_row(1))
        assert runs(ledger) == [run_row(1)]

    def test_begin_on_runs_leaves_nothing_if_it_fails(self, ledger: Ledger) -> None:
        """What it has stored is there in the end, unless it fails."""
        with ledger.reading() as connection:
            with pytest.raises(ZeroDivisionError), ledger.dialect.begin_on_runs(connection, 50, False):
                insert_and_fail(connection, run_row(1))
            assert runs(ledger) == []
            with ledger.dialect.begin_on_runs(connection, 50, False):
                insert(connection, run_row(2))
        assert runs(ledger) == [run_row(2)]

    # appending and reading

    def test_lock_and_read_head_gives_the_head_and_the_named(self, ledger: Ledger) -> None:
        """The head and the named events are those under the lock; in an empty log there is no head."""
        with ledger.writing() as connection:
            assert ledger.dialect.lock_and_read_head(connection, ["player:anna"]) == (None, [])
        last = add(ledger, player("anna", "a"), game("g-1", "anna", "ben"))
        with ledger.writing() as connection:
            row, named = ledger.dialect.lock_and_read_head(connection, ["a", "nobody"])
        assert (row[0], bytes(row[1]), row[2]) == last
        assert named == [("a", "player:anna", "player.registered", records(ledger)[0])]
        self.exclude(ledger, lambda connection: ledger.dialect.lock_and_read_head(connection, ()))

    def test_lock_and_read_head_refuses_an_unsafe_store(self, ledger: Ledger) -> None:
        """Nothing is appended to a store that would not keep it as it is."""
        with ledger.writing() as connection:
            connection.exec_driver_sql(self.endanger)
            with pytest.raises(LedgerError) as raised:
                ledger.dialect.lock_and_read_head(connection, ())
        assert raised.value.reason in ("damaged", "unsafe-settings")

    def test_refuse_unexpected_leaves_a_plain_index(self, ledger: Ledger) -> None:
        """A stranger's trigger is refused, not an operator's index."""
        self.execute(ledger, "CREATE INDEX plain ON events (recorded_by)")
        with ledger.writing() as connection:  # which compares, too
            connection.exec_driver_sql(self.intrude)
            with pytest.raises(StoreDamaged, match="trigger theirs"):
                ledger.dialect.refuse_unexpected(connection)

    def test_append_one_continues_the_log(self, ledger: Ledger) -> None:
        """Events come one behind the other, each row with its hashes, and the new head is given."""
        chain = bytes(32)
        for position, draft in enumerate((player("anna"), game("g-1", "Zoë ' \\", "陳"), player("b %s")), 1):
            done = append_one(ledger, draft, now=position, head_seen=position - 1)
            record = records(ledger)[-1]
            assert json.loads(record)["position"] == position
            chain = chain_hash(chain, leaf_hash(record))
            assert done == (position, chain, position)
        with ledger.reading() as connection:
            assert head(connection) == (3, chain, 3)

    @pytest.mark.parametrize(
        ("draft", "now", "head_seen"),
        [(player("ben", "a"), 5, None), (player("anna", "a"), 5, None), (game("g-1", "x", "y", event_id="b"), 5, None),
         (player("ben"), 4, None), (player("ben"), 5, 1)],
        ids=["id taken", "there already", "game recorded", "clock behind", "head moved"],
    )  # fmt: skip
    def test_append_one_leaves_decisions(self, ledger: Ledger, draft: Draft, now: int, head_seen: int | None) -> None:
        """Where there is something to decide nothing is appended, and the log can be continued."""
        add(ledger, player("anna", "a"), game("g-1", "x", "y"))
        assert append_one(ledger, draft, now, head_seen) is None
        assert len(records(ledger)) == 2
        assert append_one(ledger, player("cleo"), 5, 2)[0] == 3

    def test_append_one_from_many_threads_leaves_no_gap(self, ledger: Ledger) -> None:
        """Many at once get positions without gaps."""
        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(lambda number: append_one(ledger, player(f"p-{number}")), range(24)))
        assert sorted(one[0] for one in done) == list(range(1, 25))
        assert [json.loads(record)["position"] for record in records(ledger)] == list(range(1, 25))

    @pytest.mark.parametrize("size", [0, 1, 2, 161, 1_000])
    def test_insert_stores_any_number_of_rows(self, ledger: Ledger, size: int) -> None:
        """None, one or many rows are all stored, with whatever texts."""
        with ledger.writing() as connection:
            insert(connection, *map(run_row, range(size)))
        assert runs(ledger) == [run_row(number) for number in range(size)]

    @pytest.mark.parametrize("size", [1, 2])
    def test_insert_takes_numbers_for_booleans(self, ledger: Ledger, size: int) -> None:
        """A boolean is stored whether it is given as such or as a number, in one row as in several."""
        columns = ("part", "position", "game_id", "occurred_at", "game", "kind", "participants", "rated", "aborted")
        rows = [(1, number, f"g-{number}", -(2**60), "chess", "placing", 2, 1, False) for number in range(size)]
        with ledger.writing() as connection, open_driver_cursor(connection) as cursor:
            ledger.dialect.insert(cursor, "history_games", columns, rows)
            told = connection.exec_driver_sql("SELECT occurred_at, rated, aborted FROM history_games").all()
        assert [(*one,) for one in told] == [(-(2**60), True, False)] * size

    def test_find_events_named_looks_by_id_and_subject(self, ledger: Ledger) -> None:
        """An event is found by its id and by its subject, among many names, and by no other text."""
        add(ledger, player("anna", "a"), game("g-1", "x", "y"), player("o'x", "q\"'\\"))
        ids = {
            "a": ["a"], "player:anna": ["a"], "game:g-1": ["game:g-1"], "q\"'\\": ["q\"'\\"],
            "player:o'x": ["q\"'\\"], "A": [], "' OR 1=1 --": [],
        }  # fmt: skip
        with ledger.reading() as connection, open_driver_cursor(connection) as cursor:
            for name, found in ids.items():
                assert {one[0] for one in ledger.dialect.find_events_named(cursor, [name])} == {*found}
            many = ledger.dialect.find_events_named(cursor, [f"n-{number}" for number in range(1_500)] + ["a"])
        assert [(*one,) for one in many] == [("a", "player:anna", "player.registered", records(ledger)[0])]

    def test_join_records_gives_whole_or_none(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        """The records of some positions come as one text, however many at a time; if one is missing, none do."""
        monkeypatch.setattr(postgres, "JOINED_TOGETHER", 2)
        add(ledger, *(player(f"Zoë-{number}") for number in range(5)))
        with ledger.reading() as connection:
            for a, b in combinations(range(6), 2):
                assert read_page(connection, a, b).decode() == "".join(f"{one}\n" for one in records(ledger)[a:b])
            assert (read_page(connection, 3, 6), read_page(connection, 9, 12)) == (b"", b"")

    def test_last_positions_all_give_the_last(self, ledger: Ledger) -> None:
        """In a sound log every query gives the last position."""
        add(ledger, player("anna"), game("g-1", "x", "y"))
        with ledger.reading() as connection:
            found = [connection.exec_driver_sql(query).scalar_one() for query in ledger.dialect.LAST_POSITIONS]
        assert found == [2] * len(found) != []

    # SQL for what is said in different words

    @pytest.mark.parametrize("instant", [0, 1, -1, 1_267_817_400_000_001, parse_instant("9999-12-31T23:59:59Z")])
    def test_sql_instant_is_exact(self, ledger: Ledger, instant: int) -> None:
        """A view shows an instant to the microsecond, in a way that sorts."""
        query = f"SELECT {ledger.dialect.sql_instant('t.x')} FROM (SELECT CAST({instant} AS bigint) AS x) AS t"
        with ledger.reading() as connection:
            found = connection.exec_driver_sql(query).scalar_one()
        shown = datetime.fromisoformat(found) if isinstance(found, str) else found
        assert shown == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)

    def test_sql_head_is_as_people_write_it(self, ledger: Ledger) -> None:
        """A row's position and hash are written as `status` writes the head."""
        last = add(ledger, player("anna"))
        with ledger.reading() as connection:
            found = connection.exec_driver_sql(f"SELECT {ledger.dialect.sql_head('e')} FROM events e").scalar_one()
        assert found == str(last)

    def test_sql_as_bytes_reads_any_text(self, ledger: Ledger) -> None:
        """A text is read as it is stored, and what is empty stays so."""
        add(ledger, player("Zoë"))
        columns = ", ".join(map(ledger.dialect.sql_as_bytes, ("subject", "supersedes")))
        with ledger.reading() as connection:
            subject, supersedes = connection.exec_driver_sql(f"SELECT {columns} FROM events").one()
        told = subject if isinstance(subject, str) else bytes(subject).decode()
        assert (told, supersedes) == ("player:Zoë", None)

    def test_readable_view_is_made_again(self, ledger: Ledger) -> None:
        """The view is made by its statement, as the migrations made it."""
        self.execute(ledger, "DROP VIEW events_readable", ledger.dialect.READABLE_VIEW)
        add(ledger, player("anna"))
        with ledger.reading() as connection:
            assert connection.exec_driver_sql("SELECT event_id FROM events_readable").scalars().all() != []
            assert [told for told in find_object_differences(connection) if told] == []
            assert find_missing_views(connection) == {}

    # looking after it

    def test_read_settings_are_safe_and_have_remedies(self, ledger: Ledger) -> None:
        """A new ledger's settings are as they should be."""
        with ledger.reading() as connection:
            found = ledger.dialect.read_settings(connection)
        assert [setting for setting in found if not setting.is_safe] == []
        assert len({setting.name for setting in found}) == len(found) > 3

    def test_identify_database_tells_ledgers_apart(self, new_ledger: Callable[[], Ledger]) -> None:
        """Every connection to a ledger gives the same key, and its copy another one."""
        ledger, copy = new_ledger(), new_ledger()
        with ledger.reading() as reader, ledger.writing() as writer, copy.reading() as other:
            key = ledger.dialect.identify_database(reader)
            assert ledger.dialect.identify_database(writer) == key != copy.dialect.identify_database(other)

    def test_find_altered_guards_names_what_is_gone(self, ledger: Ledger) -> None:
        """A migrated ledger has all its guards, and one that is dropped is named."""
        with ledger.reading() as connection:
            assert ledger.dialect.find_altered_guards(connection) == []
            connection.exec_driver_sql(self.unguard)
            assert ledger.dialect.find_altered_guards(connection) == ["events_refuse_update"]

    def test_guards_are_named_once(self, ledger: Ledger) -> None:
        """Guards have names, among them those that keep events as they are."""
        assert {"events_refuse_update", "events_refuse_delete", "events_guard_insert"} <= {*ledger.dialect.GUARDS}

    def test_find_object_differences_names_what_is_not_ours(self, ledger: Ledger) -> None:
        """In a new ledger nothing differs; a missing index and a stranger's trigger are named."""
        with ledger.reading() as connection:
            told = list(find_object_differences(connection))
            assert (len(told) > 20, {*told}) == (True, {None})
            self.execute(ledger, "DROP INDEX events_by_type", self.intrude)
            found = sorted(filter(None, find_object_differences(connection)))
        assert ["events_by_type" in found[0], "trigger theirs" in found[1], len(found)] == [True, True, 2]

    def test_find_storage_damage_of_a_sound_store_are_none(self, ledger: Ledger) -> None:
        """A sound store finds nothing wrong with itself."""
        add(ledger, player("anna"))
        with ledger.reading() as connection:
            assert ledger.dialect.find_storage_damage(connection) == []

    # rights

    def test_build_grant_statements_are_for_a_store_with_roles(self, ledger: Ledger) -> None:
        """A server has roles, which statements make; a file has none."""
        made = ledger.dialect.build_grant_statements("club", PREFIX)
        assert (made is None) == ledger.dialect.IS_FILE
        assert made is None or all(made)

    def test_find_rights_problems_names_who_asks(self, ledger: Ledger) -> None:
        """Who asks has a name; what is wrong says who, what and how to mend it."""
        with ledger.reading() as connection:
            who, wrong = ledger.dialect.find_rights_problems(connection)
        assert who
        assert all(len(list(filter(None, one))) == 3 for one in wrong)

    def test_read_change_rights_names_its_maker(self, ledger: Ledger) -> None:
        """Who made a ledger may change its tables."""
        with ledger.reading() as connection:
            who, owner, may = ledger.dialect.read_change_rights(connection)
        assert (who, may) == (owner, True)

    @pytest.mark.parametrize("role", ["writer", "rebuilder"])
    def test_describe_missing_rights_is_nothing_to_its_maker(self, ledger: Ledger, role: str) -> None:
        """Who made a ledger lacks nothing."""
        with ledger.reading() as connection:
            assert ledger.dialect.describe_missing_rights(connection, role) == ""

    # jobs

    def test_hold_rebuild_lock_is_held_by_one(self, ledger: Ledger) -> None:
        """The lock is held by one at a time, appends go on, and its own connection can begin a transaction."""
        with ledger.dialect.hold_rebuild_lock(ledger) as connection:
            with pytest.raises(BlockingIOError), ledger.dialect.hold_rebuild_lock(ledger):
                raise AssertionError
            assert add(ledger, player("anna")).position == 1
            if connection is not None:
                with transaction(connection, "BEGIN"):
                    ledger.dialect.lock_generations(connection)
        with ledger.dialect.hold_rebuild_lock(ledger):
            pass

    def test_mark_running_lasts_as_long_as_the_run(self, ledger: Ledger) -> None:
        """A run is seen while it lasts; when it and its process are gone, it is not."""
        now = clock.now()
        with ledger.reading() as connection:
            with ledger.dialect.mark_running(ledger, 2**61 + 7):
                assert ledger.dialect.is_running(connection, 2**61 + 7, name_this_process(), now, now)
            assert not ledger.dialect.is_running(connection, 2**61 + 7, GONE, now, now)

    def test_is_running_tells_runs_apart(self, ledger: Ledger) -> None:
        """Another run, of a process that is gone, is not taken for one that lasts."""
        now = clock.now()
        with ledger.reading() as connection, ledger.dialect.mark_running(ledger, 7):
            assert not ledger.dialect.is_running(connection, 8, GONE, now, now)


class TestSqlite(DialectContract):
    """A file."""

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
    def new_ledger(self, copied_file: Callable[..., str]) -> Callable[[], Ledger]:
        names = (f"{number}.db" for number in count())
        return lambda: open_ledger(f"{self.backend}:///{copied_file(make_empty_ledger, name=next(names))}")


class TestPostgres(DialectContract):
    """A database of a server."""

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
        """An append function that is changed or missing is named among the missing guards."""
        name = "events_append_one"
        with ledger.reading() as connection:
            connection.exec_driver_sql(f"ALTER FUNCTION {name} RENAME TO gone")
            assert ledger.dialect.find_altered_guards(connection) == [name]
            connection.exec_driver_sql(f"CREATE FUNCTION {name}() RETURNS int LANGUAGE sql AS 'SELECT 1'")
            assert ledger.dialect.find_altered_guards(connection) == [name]


class TestThirdStore(TestSqlite):
    """A store that this program does not know: a module, an entry in the table, and this class."""

    backend = "third"

    @pytest.fixture(autouse=True)
    def _registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(DIALECTS, "third", lambda: third_store)

    def test_commands_ask_the_third_store(self, ratings: Callable[..., Any], tmp_path: Path) -> None:
        """Commands of every kind work on it, and ask it rather than the store that it resembles."""
        db = f"third:///{tmp_path / 'third.db'}"
        assert ratings("init", "--for", "chess", db=db).exit_code == 0
        third_store.asked.clear()
        for command in (
            ("record", "-q", "--game", "chess", "--game-id", "g-1", "--new-names", "accept", "anna", "ben"),
            ("void", "g-1", "--reason", "twice"), ("reinstate", "g-1", "--reason", "once"), ("rebuild",), ("verify",),
            ("doctor",), ("status",),
            ("upgrade",), ("standings", "elo-chess/all"), ("export", "events"),
        ):  # fmt: skip
            done = ratings(*command, db=db)
            assert (done.exit_code, done.stderr) == (0, ""), (command, done)
        assert {*third_store.asked} == {"lock_and_read_head", "find_object_differences"}


def test_every_registered_store_is_tried() -> None:
    """Each store that the program knows has a class here."""
    classes = [one for one in vars(sys.modules[__name__]).values() if isinstance(one, type)]
    tried = {one.backend for one in classes if issubclass(one, DialectContract) and one is not DialectContract}
    assert tried == {*DIALECTS, "third"}
