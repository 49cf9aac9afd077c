"""A rebuild that lost its lock promotes nothing: the live pointer always leads to a whole generation."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import take_rebuild_lock
from sqlalchemy import text

from ratings_ledger import LedgerError, StoreUnavailable
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import LockLost
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.stored import generations, work
from ratings_ledger.projections.stored.generations import read_live_generation
from ratings_ledger.projections.stored.rebuilding import rebuild
from ratings_ledger.projections.stored.verification import verify_standings

Ratings = Callable[..., Any]


def made(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(3):
        play(ratings, url, number)
    assert ratings("rebuild", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=made)


def play(ratings: Ratings, db: str, number: int) -> None:
    game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-{number + 1:02d}T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=db).exit_code == 0


def sound(db: str) -> int:
    """The number of the live generation, which a replay confirms."""
    with open_ledger(db).reading() as connection:
        assert list(verify_standings(connection)) == []
        generation = read_live_generation(connection)
        assert generation is not None
        found = connection.execute(text("SELECT count(*) FROM live_standings")).scalar_one()
        assert found > 0
        return int(generation.generation)


def while_building(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Any]) -> None:
    """Let something happen once, when a rebuild has written everything and is about to promote it."""
    promote, calls = generations.promote, []

    def interrupted(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            happens()
        promote(*arguments)

    monkeypatch.setattr(generations, "promote", interrupted)


@pytest.mark.slow_cases
def test_late_rebuild_promotes_nothing(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that lost its lock promotes nothing after another one has finished.

    The second runs from lock to promotion while the first is in its middle, and it stays live.
    """
    play(ratings, db, 7)

    def happens() -> None:
        take_rebuild_lock(db)
        assert rebuild(open_ledger(db), clock.now).promoted

    while_building(monkeypatch, happens)
    before = sound_or_none(db)
    with pytest.raises((LockLost, StoreUnavailable)) as told:
        rebuild(open_ledger(db), clock.now)
    assert told.value.exit_code == 3
    assert sound(db) > (before or 0)
    assert rebuild(open_ledger(db), clock.now).promoted
    sound(db)


def sound_or_none(db: str) -> int | None:
    with open_ledger(db).reading() as connection:
        generation = read_live_generation(connection)
        return None if generation is None else int(generation.generation)


def test_overtaken_rebuild_is_not_promoted(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that lost its lock is refused if another one has begun, and that one is promoted.

    The second waits in its middle until the first tries to promote.
    """
    if db.startswith("postgresql"):
        pytest.skip("the connection that held the lock is gone; the test above")
    play(ratings, db, 7)
    reached, go_on, ended = threading.Event(), threading.Event(), []
    promote = generations.promote

    def first(*arguments: Any) -> None:
        take_rebuild_lock(db)
        second.start()
        assert reached.wait(30)
        try:
            promote(*arguments)
        finally:
            go_on.set()

    def later(*arguments: Any) -> None:
        reached.set()
        assert go_on.wait(30)
        promote(*arguments)

    monkeypatch.setattr(
        generations, "promote", lambda *a: (first if threading.current_thread() is not second else later)(*a)
    )
    second = threading.Thread(target=lambda: ended.append(rebuild(open_ledger(db), clock.now).promoted))
    with pytest.raises(LockLost, match="another rebuild began generation"):
        rebuild(open_ledger(db), clock.now)
    second.join(30)
    assert ended == [True]
    sound(db)


@pytest.mark.slow
def test_stale_sweep_keeps_promoted_generation(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep of a rebuild that lost its lock leaves the generation that another promoted whole.

    A second rebuild runs from lock to promotion while the first looks for what it may delete.
    """
    play(ratings, db, 7)
    other = threading.Thread(target=lambda: rebuild(open_ledger(db), clock.now))
    promote, finished, promoted = generations.promote, generations._list_finished, []

    def promoting(*arguments: Any) -> None:
        promote(*arguments)
        promoted.append(arguments[1])

    def looking(*arguments: Any) -> list[Any]:
        found = finished(*arguments)
        if len(promoted) == 1 and not other.ident:
            take_rebuild_lock(db)
            other.start()
            other.join(1)  # in SQLite it waits until the first is done with its look
        return found

    monkeypatch.setattr(generations, "promote", promoting)
    monkeypatch.setattr(generations, "_list_finished", looking)
    with suppress(StoreUnavailable):
        rebuild(open_ledger(db), clock.now)
    other.join(30)
    assert len(promoted) == 2
    assert sound(db) == promoted[-1]


@pytest.mark.slow_cases
def test_stale_sweep_keeps_unfinished_generation(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep of a rebuild that lost its lock does not touch a generation still being built.

    The second rebuild has written everything when the first one sweeps, and is then promoted.
    """
    play(ratings, db, 7)
    written, swept, ended = threading.Event(), threading.Event(), []
    promote, sweep = generations.promote, generations.sweep_generations

    def second() -> None:
        ended.append(rebuild(open_ledger(db), clock.now).promoted)

    other = threading.Thread(target=second)

    def promoting(*arguments: Any) -> None:
        if threading.current_thread() is other:
            written.set()
            assert swept.wait(30)
        promote(*arguments)

    def sweeping(*arguments: Any, **options: Any) -> None:
        first_of_two = threading.current_thread() is not other and not options.get("is_building")
        if first_of_two:
            take_rebuild_lock(db)
            other.start()
            assert written.wait(30)
        try:
            sweep(*arguments, **options)
        finally:
            if first_of_two:
                swept.set()

    monkeypatch.setattr(generations, "promote", promoting)
    monkeypatch.setattr(generations, "sweep_generations", sweeping)
    with suppress(StoreUnavailable):
        rebuild(open_ledger(db), clock.now)
    other.join(30)
    assert ended == [True]
    sound(db)


@pytest.mark.slow_cases
def test_rollback_prevents_promotion(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild is not promoted if a rollback happens while it builds.

    It rebuilds one ruleset and refers to standings of the generation that was live when it began.
    """
    assert rebuild(open_ledger(db), clock.now).promoted
    play(ratings, db, 7)
    while_building(monkeypatch, lambda: (take_rebuild_lock(db), generations.roll_back(open_ledger(db))))
    with pytest.raises((LockLost, StoreUnavailable)):
        rebuild(open_ledger(db), clock.now, ["elo-chess"])
    sound(db)


def test_missing_standings_prevent_promotion(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild is not promoted if some of its standings vanish while it builds."""
    before = sound(db)
    play(ratings, db, 7)

    def happens() -> None:
        with open_ledger(db).writing() as connection:
            newest = "(SELECT max(generation) FROM generations)"
            connection.execute(text(f"DELETE FROM generation_standings WHERE build = {newest} AND ordinal = 1"))

    while_building(monkeypatch, happens)
    with pytest.raises(LockLost, match="standings; nothing was promoted"):
        rebuild(open_ledger(db), clock.now)
    assert sound(db) == before


@pytest.mark.parametrize("how", ["symbolic link", "hard link", "dotted path"])
def test_other_path_to_file_shares_lock(
    how: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild is refused while another process runs one on the same file by another path."""
    path, other = tmp_path / "ratings.db", tmp_path / "other.db"
    assert ratings("init", "--for", "chess", db=path).exit_code == 0
    play(ratings, f"sqlite:///{path}", 1)
    if how == "symbolic link":
        other.symlink_to(path)
    elif how == "hard link":
        os.link(path, other)
    else:
        (tmp_path / "deeper").mkdir()
        other = tmp_path / "deeper" / ".." / "ratings.db"
    told = []
    while_building(monkeypatch, lambda: told.append(in_a_process(f"sqlite:///{other}")))
    assert rebuild(open_ledger(f"sqlite:///{path}"), clock.now).promoted
    assert told == [4]
    assert [entry.name for entry in tmp_path.iterdir() if "lock" in entry.name] == []


def in_a_process(db: str) -> int:
    """What a rebuild in another process ends with."""
    if (child := os.fork()) == 0:
        try:
            rebuild(open_ledger(db), clock.now)
            os._exit(0)
        except LedgerError as problem:
            os._exit(problem.exit_code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("statement", [
    "INSERT INTO live_generation VALUES (2, 1)",
    "UPDATE live_generation SET generation = 999",
    "DELETE FROM generations",
])  # fmt: skip
def test_database_refuses_bad_live_pointer(db: str, statement: str) -> None:
    """The database refuses a live pointer to nothing and a second live pointer."""
    before = sound(db)
    with pytest.raises(Exception, match=r"(?i)constraint"), open_ledger(db).writing() as connection:
        connection.execute(text(statement))
    assert sound(db) == before


@pytest.mark.slow_cases
def test_live_pointer_survives_lost_locks(
    db: str, ratings: Ratings, at_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often rebuilds lose their locks, the live pointer leads to a whole generation."""
    rounds, ended = (20 if at_length else 3), {"promoted": 0, "lost": 0}
    isolate = work.isolate  # something in the middle of a rebuild

    def losing(ladders: Any, *rest: Any) -> Any:
        take_rebuild_lock(db)
        return isolate(ladders, *rest)

    monkeypatch.setattr(work, "isolate", losing)
    for number in range(rounds):
        play(ratings, db, 8 + number % 20) if number < 20 else None
        threads = [threading.Thread(target=attempt, args=(open_ledger(db), ended)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        sound(db)
    assert sum(ended.values()) == 2 * rounds
    assert ended["lost"]


def attempt(ledger: Ledger, ended: dict[str, int]) -> None:
    try:
        rebuild(ledger, clock.now)
        ended["promoted"] += 1
    except LedgerError:
        ended["lost"] += 1
