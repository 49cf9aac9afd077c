"""A server that is frozen, or out of reach, is not waited for without end; one that works is waited for."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from fault_helpers import build_game_event, build_numbered_game
from ledgers import open_for_reading
from sqlalchemy import make_url, text
from sqlalchemy.exc import OperationalError
from stores import OwnServer, create_postgres_database, start_own_server
from thresholds import set_thresholds

from ratings_ledger import StoreUnavailable
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store import postgres, postgres_connection
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import connect, open_ledger
from ratings_ledger.projections.stored import generations

pytestmark = pytest.mark.timeout(120)
Ratings = Callable[..., Any]


@pytest.fixture(scope="module")
def server_of_its_own() -> Iterator[OwnServer]:
    with start_own_server() as server:
        yield server


@pytest.fixture
def db(server_of_its_own: OwnServer, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A ledger with a game, on a server that is soon given up."""
    set_thresholds(monkeypatch, silent_seconds=0.5)
    set_thresholds(monkeypatch, ping_seconds=2)  # the least that libpq waits
    with create_postgres_database(server_of_its_own.url) as url:
        url += "&connect_timeout=2"
        assert ratings("init", "--for", "club-catan", db=url).exit_code == 0
        assert imported(ratings, url, 1).exit_code == 0
        yield url


def imported(ratings: Ratings, db: str, *numbers: int) -> Any:
    """What an import of games says."""
    return ratings("import", "-", db=db, input="\n".join(json.dumps(build_game_event(number)) for number in numbers))


@pytest.fixture
def freeze(server_of_its_own: OwnServer) -> Iterator[Callable[[], None]]:
    """A function that stops all processes of the server until the test has ended, or until it is called again."""
    stopped: list[int] = []

    def send(number: signal.Signals) -> None:
        for process in stopped:
            with suppress(ProcessLookupError):  # one that has just come to its end
                os.kill(process, number)

    def toggle() -> None:
        if stopped:
            send(signal.SIGCONT)
            stopped.clear()
            return
        # that of the postmaster first, so that there are no new ones
        stopped.append(server_of_its_own.processes()[0])
        send(signal.SIGSTOP)
        stopped.extend(server_of_its_own.processes()[1:])
        send(signal.SIGSTOP)

    yield toggle
    if stopped:
        toggle()


def given_up(told: Any) -> None:
    """That a command ended with one plain line which says that the server does not answer."""
    assert (told.exit_code, told.stderr.count("\n")) == (3, 1), told
    assert told.stderr.startswith("ratings: postgresql://")
    assert "does not answer a ping" in told.stderr, told


@pytest.mark.slow
@pytest.mark.parametrize("command", [
    ("status",), ("record", "--game-id", "g", "a", "b"), pytest.param(("verify",), marks=pytest.mark.at_length),
    pytest.param(("rebuild",), marks=pytest.mark.at_length),
])  # fmt: skip
def test_frozen_server_is_unreachable(
    command: tuple[str, ...], db: str, ratings: Ratings, freeze: Callable[[], None]
) -> None:
    """Any command says that a frozen server cannot be reached, and exits with 3."""
    freeze()
    result = ratings(*command, *(("--game", "club-catan") if command[0] == "record" else ()), db=db)
    assert (result.exit_code, "cannot be reached" in result.stderr) == (3, True), result


@pytest.mark.slow
def test_freeze_while_reading_is_given_up(db: str, freeze: Callable[[], None]) -> None:
    """Reading gives up on a server that freezes."""
    ledger = open_ledger(db)

    def read() -> None:
        with ledger.reading() as connection:
            freeze()
            list(read_records(connection))

    with pytest.raises(StoreUnavailable, match="does not answer a ping"):
        read()


@pytest.mark.slow
@pytest.mark.parametrize("games", [1, 2, 500])
def test_freeze_while_appending_is_given_up(games: int, db: str, ratings: Ratings, freeze: Callable[[], None]) -> None:
    """Appending gives up on a server that freezes, and repeating the append gives the right log.

    One event, a few and many are each appended in another way; the server freezes as the clock is read.
    """

    def freezing() -> int:
        freeze()
        return clock.now()

    ledger = open_ledger(db, keep_open=True)
    drafts = [build_numbered_game(number) for number in range(10, 10 + games)]
    with pytest.raises(StoreUnavailable, match="does not answer a ping"):
        append(ledger, drafts, by="test", clock=freezing)
    freeze()
    # what was under way may have been stored; that connection is not used again
    done = append(ledger, drafts, by="test", clock=clock.now)
    assert done.appended + done.existing == games
    ledger.close()
    assert ratings("verify", db=db) == (0, "", "")
    with open_ledger(db).reading() as connection:
        ids = [json.loads(record)["id"] for page in read_records(connection) for _, record in page]
    assert ids[-games:] == [draft.event_id for draft in drafts]


@pytest.mark.slow
def test_freeze_while_importing_is_reported(
    db: str, ratings: Ratings, freeze: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import says that it gave up on a server that froze, and succeeds when repeated."""
    taken = postgres.lock_and_read_head

    def freezing(*arguments: Any) -> Any:
        freeze()
        return taken(*arguments)

    monkeypatch.setattr(postgres, "lock_and_read_head", freezing)
    given_up(imported(ratings, db, *range(10, 30)))
    freeze()
    monkeypatch.setattr(postgres, "lock_and_read_head", taken)
    assert imported(ratings, db, *range(10, 30)).exit_code == 0
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow
def test_freeze_while_promoting_is_given_up(
    db: str, ratings: Ratings, freeze: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild gives up on a server that freezes at the promotion, and succeeds when repeated.

    The connection that holds the lock was silent while the generation was built.
    """
    promote = generations.promote

    def promoting(*arguments: Any) -> None:
        freeze()
        promote(*arguments)

    monkeypatch.setattr(generations, "promote", promoting)
    given_up(ratings("rebuild", db=db))
    freeze()
    monkeypatch.setattr(generations, "promote", promote)
    assert ratings("rebuild", db=db).exit_code == 0
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow
def test_frozen_server_is_not_waited_for_twice(
    db: str, freeze: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a server was given up, other connections to it are given up without waiting, until it answers again."""
    with open_for_reading(db) as first, open_for_reading(db) as second, open_for_reading(db) as third:
        freeze()
        with pytest.raises(OperationalError, match="does not answer a ping"):
            first.execute(text("SELECT 7"))
        set_thresholds(monkeypatch, silent_seconds=10_000)
        with pytest.raises(OperationalError, match="is still silent and does not answer a ping"):
            second.execute(text("SELECT 7"))
        freeze()
        assert third.execute(text("SELECT 7 FROM pg_sleep(0.5)")).scalar_one() == 7
        assert third.connection.driver_connection.info.dsn not in postgres_connection._unresponsive  # type: ignore[union-attr]


@pytest.mark.slow
def test_slow_statement_is_waited_for(db: str) -> None:
    """A statement that takes long is waited for while the server answers others."""
    with open_for_reading(db) as connection:
        assert connection.execute(text("SELECT 7 FROM pg_sleep(1.5)")).scalar_one() == 7


@pytest.mark.slow
def test_refusing_server_is_waited_for(db: str, server_of_its_own: OwnServer) -> None:
    """A working server that takes no more connections is waited for.

    A refusal is an answer too: a server that refuses is there.
    """
    with open_for_reading(db) as connection, psycopg.connect(server_of_its_own.url, autocommit=True) as administrator:
        administrator.execute(f"ALTER DATABASE {make_url(db).database} ALLOW_CONNECTIONS false")
        assert connection.execute(text("SELECT 7 FROM pg_sleep(1.5)")).scalar_one() == 7


@pytest.mark.slow
def test_frozen_backend_is_waited_for(db: str) -> None:
    """One frozen process of a server that answers is waited for."""
    with open_for_reading(db) as connection:
        process = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        os.kill(process, signal.SIGSTOP)
        threading.Timer(1.5, os.kill, (process, signal.SIGCONT)).start()
        assert connection.execute(text("SELECT 7")).scalar_one() == 7


def test_connections_use_keepalives(
    db: str,
) -> None:
    """A silent connection sends keepalives after 60 s, or after the time that the URL sets."""
    with open_for_reading(db) as connection:
        found: Any = connection.connection.driver_connection
        assert found.info.get_parameters()["keepalives_idle"] == "60"
    with connect(f"{db}&keepalives_idle=5").reading() as connection:
        found = connection.connection.driver_connection
        assert found.info.get_parameters()["keepalives_idle"] == "5"
