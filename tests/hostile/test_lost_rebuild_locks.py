"""A rebuild that lost its lock promotes nothing: the live pointer always leads to a complete generation."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import take_rebuild_lock
from rebuilds import act_before_promotion
from sqlalchemy import text

from ratings_ledger import LedgerError, StoreUnavailable
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import LockLost
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.stored import generations, work
from ratings_ledger.projections.stored.generations import read_live_generation
from ratings_ledger.projections.stored.rebuilding import rebuild
from ratings_ledger.projections.stored.standings_checks import verify_standings

Ratings = Callable[..., Any]


def create_with_three_games(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(3):
        record_game(ratings, url, number)
    assert ratings("rebuild", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_with_three_games)


def record_game(ratings: Ratings, db: str, number: int) -> None:
    game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-{number + 1:02d}T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=db).exit_code == 0


def verify_live_generation(db: str) -> int:
    """Return the number of the live generation after verifying it by a replay."""
    with open_ledger(db).reading() as connection:
        assert list(verify_standings(connection)) == []
        generation = read_live_generation(connection)
        assert generation is not None
        row_count = connection.execute(text("SELECT count(*) FROM live_standings")).scalar_one()
        assert row_count > 0
        return int(generation.generation)


@pytest.mark.slow_cases
def test_late_rebuild_is_not_promoted(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that lost its lock promotes nothing after another one has finished.

    The second runs from lock to promotion while the first is in its middle, and it stays live.
    """
    record_game(ratings, db, 7)

    def run_second_rebuild() -> None:
        take_rebuild_lock(db)
        assert rebuild(open_ledger(db), clock.now).promoted

    act_before_promotion(monkeypatch, run_second_rebuild)
    before = read_live_generation_number(db)
    with pytest.raises((LockLost, StoreUnavailable)) as error:
        rebuild(open_ledger(db), clock.now)
    assert error.value.exit_code == 3
    assert verify_live_generation(db) > (before or 0)
    assert rebuild(open_ledger(db), clock.now).promoted
    verify_live_generation(db)


def read_live_generation_number(db: str) -> int | None:
    with open_ledger(db).reading() as connection:
        generation = read_live_generation(connection)
        return None if generation is None else int(generation.generation)


def test_overtaken_rebuild_is_not_promoted(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that lost its lock is refused if another one has begun, and the other is promoted.

    The second waits in its middle until the first tries to promote.
    """
    if db.startswith("postgresql"):
        pytest.skip("the connection that held the lock is gone; the test above")
    record_game(ratings, db, 7)
    second_has_built, first_has_failed, promotions = threading.Event(), threading.Event(), []
    promote = generations.promote

    def promote_first(*arguments: Any) -> None:
        take_rebuild_lock(db)
        second.start()
        assert second_has_built.wait(30)
        try:
            promote(*arguments)
        finally:
            first_has_failed.set()

    def promote_second(*arguments: Any) -> None:
        second_has_built.set()
        assert first_has_failed.wait(30)
        promote(*arguments)

    monkeypatch.setattr(
        generations,
        "promote",
        lambda *a: (promote_first if threading.current_thread() is not second else promote_second)(*a),
    )
    second = threading.Thread(target=lambda: promotions.append(rebuild(open_ledger(db), clock.now).promoted))
    with pytest.raises(LockLost, match="another rebuild began generation"):
        rebuild(open_ledger(db), clock.now)
    second.join(30)
    assert promotions == [True]
    verify_live_generation(db)


@pytest.mark.slow
def test_stale_sweep_keeps_promoted_generation(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep of a rebuild that lost its lock leaves the generation that another rebuild promoted complete.

    A second rebuild runs from lock to promotion while the first looks for generations to delete.
    """
    record_game(ratings, db, 7)
    second_rebuild = threading.Thread(target=lambda: rebuild(open_ledger(db), clock.now))
    promote, finished, promoted = generations.promote, generations._list_finished, []

    def promote_and_note(*arguments: Any) -> None:
        promote(*arguments)
        promoted.append(arguments[1])

    def list_during_second_rebuild(*arguments: Any) -> list[Any]:
        finished_generations = finished(*arguments)
        if len(promoted) == 1 and not second_rebuild.ident:
            take_rebuild_lock(db)
            second_rebuild.start()
            second_rebuild.join(1)  # in SQLite it waits until the first has read the list
        return finished_generations

    monkeypatch.setattr(generations, "promote", promote_and_note)
    monkeypatch.setattr(generations, "_list_finished", list_during_second_rebuild)
    with suppress(StoreUnavailable):
        rebuild(open_ledger(db), clock.now)
    second_rebuild.join(30)
    assert len(promoted) == 2
    assert verify_live_generation(db) == promoted[-1]


@pytest.mark.slow_cases
def test_stale_sweep_keeps_unfinished_generation(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep of a rebuild that lost its lock does not touch a generation that is still being built.

    The second rebuild has written everything when the first one sweeps, and is then promoted.
    """
    record_game(ratings, db, 7)
    written, swept, promotions = threading.Event(), threading.Event(), []
    promote, sweep = generations.promote, generations.sweep_generations

    def run_second() -> None:
        promotions.append(rebuild(open_ledger(db), clock.now).promoted)

    second_rebuild = threading.Thread(target=run_second)

    def promote_after_sweep(*arguments: Any) -> None:
        if threading.current_thread() is second_rebuild:
            written.set()
            assert swept.wait(30)
        promote(*arguments)

    def sweep_during_second_rebuild(*arguments: Any, **options: Any) -> None:
        first_of_two = threading.current_thread() is not second_rebuild and not options.get("is_building")
        if first_of_two:
            take_rebuild_lock(db)
            second_rebuild.start()
            assert written.wait(30)
        try:
            sweep(*arguments, **options)
        finally:
            if first_of_two:
                swept.set()

    monkeypatch.setattr(generations, "promote", promote_after_sweep)
    monkeypatch.setattr(generations, "sweep_generations", sweep_during_second_rebuild)
    with suppress(StoreUnavailable):
        rebuild(open_ledger(db), clock.now)
    second_rebuild.join(30)
    assert promotions == [True]
    verify_live_generation(db)


@pytest.mark.slow_cases
def test_rollback_prevents_promotion(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild is not promoted if a rollback happens while it builds.

    It rebuilds one ruleset and refers to standings of the generation that was live when it began.
    """
    assert rebuild(open_ledger(db), clock.now).promoted
    record_game(ratings, db, 7)
    act_before_promotion(monkeypatch, lambda: (take_rebuild_lock(db), generations.roll_back(open_ledger(db))))
    with pytest.raises((LockLost, StoreUnavailable)):
        rebuild(open_ledger(db), clock.now, ["elo-chess"])
    verify_live_generation(db)


def test_missing_standings_prevent_promotion(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild is not promoted if some of its standings are deleted while it builds."""
    before = verify_live_generation(db)
    record_game(ratings, db, 7)

    def delete_standings() -> None:
        with open_ledger(db).writing() as connection:
            newest = "(SELECT max(generation) FROM generations)"
            connection.execute(text(f"DELETE FROM generation_standings WHERE build = {newest} AND ordinal = 1"))

    act_before_promotion(monkeypatch, delete_standings)
    with pytest.raises(LockLost, match="standings; nothing was promoted"):
        rebuild(open_ledger(db), clock.now)
    assert verify_live_generation(db) == before


@pytest.mark.parametrize("how", ["symbolic link", "hard link", "dotted path"])
def test_second_path_to_a_file_shares_its_lock(
    how: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild is refused while another process rebuilds the same file by another path."""
    path, second_path = tmp_path / "ratings.db", tmp_path / "other.db"
    assert ratings("init", "--for", "chess", db=path).exit_code == 0
    record_game(ratings, f"sqlite:///{path}", 1)
    if how == "symbolic link":
        second_path.symlink_to(path)
    elif how == "hard link":
        os.link(path, second_path)
    else:
        (tmp_path / "deeper").mkdir()
        second_path = tmp_path / "deeper" / ".." / "ratings.db"
    exit_codes = []
    act_before_promotion(monkeypatch, lambda: exit_codes.append(rebuild_in_a_process(f"sqlite:///{second_path}")))
    assert rebuild(open_ledger(f"sqlite:///{path}"), clock.now).promoted
    assert exit_codes == [4]
    assert [entry.name for entry in tmp_path.iterdir() if "lock" in entry.name] == []


def rebuild_in_a_process(db: str) -> int:
    """Return the exit code of a rebuild in another process."""
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
    """The database refuses a live pointer to a missing generation and a second live pointer."""
    before = verify_live_generation(db)
    with pytest.raises(Exception, match=r"(?i)constraint"), open_ledger(db).writing() as connection:
        connection.execute(text(statement))
    assert verify_live_generation(db) == before


@pytest.mark.slow_cases
def test_live_pointer_survives_lost_locks(
    db: str, ratings: Ratings, at_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After repeated loss of the rebuild lock, the live pointer leads to a complete generation."""
    rounds, outcomes = (20 if at_length else 3), {"promoted": 0, "lost": 0}
    isolate = work.isolate  # called in the middle of a rebuild

    def lose_lock_and_isolate(ladders: Any, *rest: Any) -> Any:
        take_rebuild_lock(db)
        return isolate(ladders, *rest)

    monkeypatch.setattr(work, "isolate", lose_lock_and_isolate)
    for number in range(rounds):
        record_game(ratings, db, 8 + number % 20) if number < 20 else None
        threads = [threading.Thread(target=try_rebuild, args=(open_ledger(db), outcomes)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        verify_live_generation(db)
    assert sum(outcomes.values()) == 2 * rounds
    assert outcomes["lost"]


def try_rebuild(ledger: Ledger, outcomes: dict[str, int]) -> None:
    try:
        rebuild(ledger, clock.now)
        outcomes["promoted"] += 1
    except LedgerError:
        outcomes["lost"] += 1
