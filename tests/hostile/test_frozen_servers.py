"""Commands give up on a server that is frozen or unreachable, and wait for a slow one that works."""

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
from rebuilds import act_before_promotion
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

pytestmark = pytest.mark.timeout(120)
Ratings = Callable[..., Any]


@pytest.fixture(scope="module")
def own_server() -> Iterator[OwnServer]:
    with start_own_server() as server:
        yield server


@pytest.fixture
def db(own_server: OwnServer, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the URL of a ledger with a game, on a server on which commands soon give up."""
    set_thresholds(monkeypatch, silent_seconds=0.5)
    set_thresholds(monkeypatch, ping_seconds=2)  # the least that libpq waits
    with create_postgres_database(own_server.url) as url:
        url += "&connect_timeout=2"
        assert ratings("init", "--for", "club-catan", db=url).exit_code == 0
        assert import_games(ratings, url, 1).exit_code == 0
        yield url


def import_games(ratings: Ratings, db: str, *numbers: int) -> Any:
    """Import numbered games and return the result of the command."""
    return ratings("import", "-", db=db, input="\n".join(json.dumps(build_game_event(number)) for number in numbers))


@pytest.fixture
def toggle_freeze(own_server: OwnServer) -> Iterator[Callable[[], None]]:
    """Yield a function that freezes all processes of the server, and lets them continue when it is called again."""
    stopped: list[int] = []

    def send_signal(number: signal.Signals) -> None:
        for process in stopped:
            with suppress(ProcessLookupError):  # the process may have just ended
                os.kill(process, number)

    def freeze_or_continue() -> None:
        if stopped:
            send_signal(signal.SIGCONT)
            stopped.clear()
            return
        # the postmaster first, so that it starts no new processes
        stopped.append(own_server.processes()[0])
        send_signal(signal.SIGSTOP)
        stopped.extend(own_server.processes()[1:])
        send_signal(signal.SIGSTOP)

    yield freeze_or_continue
    if stopped:
        freeze_or_continue()


def check_given_up(result: Any) -> None:
    """Check that a command ended with one line saying that the server does not answer."""
    assert (result.exit_code, result.stderr.count("\n")) == (3, 1), result
    assert result.stderr.startswith("ratings: postgresql://")
    assert "does not answer a ping" in result.stderr, result


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("record", "--game-id", "g", "a", "b"),
        pytest.param(("verify",), marks=pytest.mark.at_length),
        pytest.param(("rebuild",), marks=pytest.mark.at_length),
    ],
)
def test_frozen_server_is_unreachable(
    command: tuple[str, ...], db: str, ratings: Ratings, toggle_freeze: Callable[[], None]
) -> None:
    """A command says that a frozen server cannot be reached, and exits with 3."""
    toggle_freeze()
    result = ratings(*command, *(("--game", "club-catan") if command[0] == "record" else ()), db=db)
    assert (result.exit_code, "cannot be reached" in result.stderr) == (3, True), result


@pytest.mark.slow
def test_freeze_while_reading_is_given_up(db: str, toggle_freeze: Callable[[], None]) -> None:
    """Reading gives up on a server that freezes."""
    ledger = open_ledger(db)

    def read() -> None:
        with ledger.reading() as connection:
            toggle_freeze()
            list(read_records(connection))

    with pytest.raises(StoreUnavailable, match="does not answer a ping"):
        read()


@pytest.mark.slow
@pytest.mark.parametrize("games", [1, 2, 500])
def test_freeze_while_appending_is_given_up(
    games: int, db: str, ratings: Ratings, toggle_freeze: Callable[[], None]
) -> None:
    """Appending gives up on a server that freezes, and repeating the append gives the right log.

    One event, a few and many are appended in different ways; the server freezes when the clock is read.
    """

    def freeze_and_read_clock() -> int:
        toggle_freeze()
        return clock.now()

    ledger = open_ledger(db, keep_open=True)
    drafts = [build_numbered_game(number) for number in range(10, 10 + games)]
    with pytest.raises(StoreUnavailable, match="does not answer a ping"):
        append(ledger, drafts, by="test", clock=freeze_and_read_clock)
    toggle_freeze()
    # the interrupted append may have been stored; its connection is not used again
    result = append(ledger, drafts, by="test", clock=clock.now)
    assert result.appended + result.existing == games
    ledger.close()
    assert ratings("verify", db=db) == (0, "", "")
    with open_ledger(db).reading() as connection:
        ids = [json.loads(record)["id"] for page in read_records(connection) for _, record in page]
    assert ids[-games:] == [draft.event_id for draft in drafts]


@pytest.mark.slow
def test_freeze_while_importing_is_reported(
    db: str, ratings: Ratings, toggle_freeze: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import says that it gave up on a server that froze, and succeeds when repeated."""
    lock_and_read_head = postgres.lock_and_read_head

    def freeze_and_lock(*arguments: Any) -> Any:
        toggle_freeze()
        return lock_and_read_head(*arguments)

    monkeypatch.setattr(postgres, "lock_and_read_head", freeze_and_lock)
    check_given_up(import_games(ratings, db, *range(10, 30)))
    toggle_freeze()
    monkeypatch.setattr(postgres, "lock_and_read_head", lock_and_read_head)
    assert import_games(ratings, db, *range(10, 30)).exit_code == 0
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow
def test_freeze_while_promoting_is_given_up(
    db: str, ratings: Ratings, toggle_freeze: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild gives up on a server that freezes at the promotion, and succeeds when repeated.

    The connection that holds the lock was silent while the generation was built.
    """
    act_before_promotion(monkeypatch, toggle_freeze)
    check_given_up(ratings("rebuild", db=db))
    toggle_freeze()
    assert ratings("rebuild", db=db).exit_code == 0
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow
def test_frozen_server_is_not_waited_for_twice(
    db: str, toggle_freeze: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one connection gave up on a server, others give up without waiting, until the server answers again."""
    with open_for_reading(db) as first, open_for_reading(db) as second, open_for_reading(db) as third:
        toggle_freeze()
        with pytest.raises(OperationalError, match="does not answer a ping"):
            first.execute(text("SELECT 7"))
        set_thresholds(monkeypatch, silent_seconds=10_000)
        with pytest.raises(OperationalError, match="is still silent and does not answer a ping"):
            second.execute(text("SELECT 7"))
        toggle_freeze()
        assert third.execute(text("SELECT 7 FROM pg_sleep(0.5)")).scalar_one() == 7
        assert third.connection.driver_connection.info.dsn not in postgres_connection._unresponsive  # type: ignore[union-attr]


@pytest.mark.slow
def test_slow_statement_is_waited_for(db: str) -> None:
    """A command waits for a long statement while the server answers pings."""
    with open_for_reading(db) as connection:
        assert connection.execute(text("SELECT 7 FROM pg_sleep(1.5)")).scalar_one() == 7


@pytest.mark.slow
def test_refusing_server_is_waited_for(db: str, own_server: OwnServer) -> None:
    """A command waits for a server that refuses new connections, because a refusal is an answer to a ping."""
    with open_for_reading(db) as connection, psycopg.connect(own_server.url, autocommit=True) as administrator:
        administrator.execute(f"ALTER DATABASE {make_url(db).database} ALLOW_CONNECTIONS false")
        assert connection.execute(text("SELECT 7 FROM pg_sleep(1.5)")).scalar_one() == 7


@pytest.mark.slow
def test_frozen_backend_is_waited_for(db: str) -> None:
    """A command waits for a frozen process of a server that answers pings."""
    with open_for_reading(db) as connection:
        process = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        os.kill(process, signal.SIGSTOP)
        threading.Timer(1.5, os.kill, (process, signal.SIGCONT)).start()
        assert connection.execute(text("SELECT 7")).scalar_one() == 7


def test_connections_use_keepalives(db: str) -> None:
    """A silent connection sends keepalives after 60 s, or after the time that the URL sets."""
    with open_for_reading(db) as connection:
        driver_connection: Any = connection.connection.driver_connection
        assert driver_connection.info.get_parameters()["keepalives_idle"] == "60"
    with connect(f"{db}&keepalives_idle=5").reading() as connection:
        driver_connection = connection.connection.driver_connection
        assert driver_connection.info.get_parameters()["keepalives_idle"] == "5"
