"""A rebuild that lost its lock promotes nothing: the live pointer always leads to a complete generation."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import take_rebuild_lock
from ledgers import run_command
from rebuilds import act_before_promotion, rebuild_standings, replace_stage
from sqlalchemy import text

from ratings_ledger import LedgerError, StoreUnavailable
from ratings_ledger.ledger.errors import LockLost
from ratings_ledger.ledger.store.opening import open_ledger

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
    assert run_command("verify", db=db) == 0
    with open_ledger(db).reading() as connection:
        row_count = connection.execute(text("SELECT count(*) FROM live_standings")).scalar_one()
        assert row_count > 0
    generation = read_live_generation_number(db)
    assert generation is not None
    return generation


@pytest.mark.slow_cases
def test_late_rebuild_is_not_promoted(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that lost its lock promotes nothing after another one has finished.

    The second one runs from lock to promotion while the first waits, and the second generation stays live.
    """
    record_game(ratings, db, 7)
    second_generations = []

    def run_second_rebuild() -> None:
        take_rebuild_lock(db)
        assert rebuild_standings(db).promoted
        second_generations.append(read_live_generation_number(db))

    act_before_promotion(monkeypatch, run_second_rebuild)
    before = read_live_generation_number(db)
    with pytest.raises((LockLost, StoreUnavailable)) as error:
        rebuild_standings(db)
    assert error.value.exit_code == 3
    assert second_generations not in ([], [before])
    assert [verify_live_generation(db)] == second_generations
    assert rebuild_standings(db).promoted
    verify_live_generation(db)


def read_live_generation_number(db: str) -> int | None:
    with open_ledger(db).reading() as connection:
        return connection.execute(text("SELECT generation FROM live_generation")).scalar()


def test_overtaken_rebuild_is_not_promoted(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that lost its lock is refused if another one has begun, and the other is promoted.

    The second waits in its middle until the first tries to promote.
    """
    if db.startswith("postgresql"):
        pytest.skip("the connection that held the lock is gone; the test above covers this")
    record_game(ratings, db, 7)
    second_has_built, first_has_failed, promotions = threading.Event(), threading.Event(), []

    def promote_in_turn(promote: Callable[..., None], *arguments: Any) -> None:
        if threading.current_thread() is second:
            second_has_built.set()
            assert first_has_failed.wait(30)
            promote(*arguments)
            return
        take_rebuild_lock(db)
        second.start()
        assert second_has_built.wait(30)
        try:
            promote(*arguments)
        finally:
            first_has_failed.set()

    replace_stage(monkeypatch, "promote", promote_in_turn)
    second = threading.Thread(target=lambda: promotions.append(rebuild_standings(db).promoted))
    with pytest.raises(LockLost, match="another rebuild began generation"):
        rebuild_standings(db)
    second.join(30)
    assert promotions == [True]
    verify_live_generation(db)


@pytest.mark.slow
def test_stale_sweep_keeps_promoted_generation(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep of a rebuild that lost its lock does not damage the generation that another rebuild promoted.

    A second rebuild runs from lock to promotion while the first looks for generations to delete.
    """
    record_game(ratings, db, 7)
    second_rebuild = threading.Thread(target=lambda: rebuild_standings(db))
    promoted_generations: list[int] = []

    def promote_and_note(promote: Callable[..., None], *arguments: Any) -> None:
        promote(*arguments)
        promoted_generations.append(arguments[1])

    def list_during_second_rebuild(list_finished: Callable[..., list[Any]], *arguments: Any) -> list[Any]:
        finished_generations = list_finished(*arguments)
        if len(promoted_generations) == 1 and not second_rebuild.ident:
            take_rebuild_lock(db)
            second_rebuild.start()
            second_rebuild.join(1)  # in SQLite it waits until the first has read the list
        return finished_generations

    replace_stage(monkeypatch, "promote", promote_and_note)
    replace_stage(monkeypatch, "list finished generations", list_during_second_rebuild)
    with suppress(StoreUnavailable):
        rebuild_standings(db)
    second_rebuild.join(30)
    assert len(promoted_generations) == 2
    assert verify_live_generation(db) == promoted_generations[-1]


@pytest.mark.slow_cases
def test_stale_sweep_keeps_unfinished_generation(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep of a rebuild that lost its lock does not touch a generation that is still being built.

    The second rebuild has written everything when the first one sweeps, and is then promoted.
    """
    record_game(ratings, db, 7)
    written, swept, promotions = threading.Event(), threading.Event(), []

    def run_second() -> None:
        promotions.append(rebuild_standings(db).promoted)

    second_rebuild = threading.Thread(target=run_second)

    def promote_after_sweep(promote: Callable[..., None], *arguments: Any) -> None:
        if threading.current_thread() is second_rebuild:
            written.set()
            assert swept.wait(30)
        promote(*arguments)

    def sweep_during_second_rebuild(sweep: Callable[..., None], *arguments: Any, **options: Any) -> None:
        is_last_sweep_of_first = threading.current_thread() is not second_rebuild and not options.get("is_building")
        if is_last_sweep_of_first:
            take_rebuild_lock(db)
            second_rebuild.start()
            assert written.wait(30)
        try:
            sweep(*arguments, **options)
        finally:
            if is_last_sweep_of_first:
                swept.set()

    replace_stage(monkeypatch, "promote", promote_after_sweep)
    replace_stage(monkeypatch, "sweep", sweep_during_second_rebuild)
    with suppress(StoreUnavailable):
        rebuild_standings(db)
    second_rebuild.join(30)
    assert promotions == [True]
    verify_live_generation(db)


@pytest.mark.slow_cases
def test_rollback_prevents_promotion(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild is not promoted if a rollback happens while it builds.

    The rebuild is of one ruleset and refers to standings of the generation that was live when it began.
    """
    assert rebuild_standings(db).promoted
    record_game(ratings, db, 7)

    def roll_back() -> None:
        take_rebuild_lock(db)
        assert run_command("rebuild", "--rollback", db=db) == 0

    act_before_promotion(monkeypatch, roll_back)
    with pytest.raises((LockLost, StoreUnavailable)):
        rebuild_standings(db, "elo-chess")
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
        rebuild_standings(db)
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
    assert rebuild_standings(f"sqlite:///{path}").promoted
    assert exit_codes == [4]
    assert [entry.name for entry in tmp_path.iterdir() if "lock" in entry.name] == []


def rebuild_in_a_process(db: str) -> int:
    """Return the exit code of a rebuild in another process."""
    if (child := os.fork()) == 0:
        try:
            rebuild_standings(db)
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
    """The database refuses a second live pointer, a pointer to a missing generation, and the deletion of a live one."""
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

    def lose_lock_and_isolate(isolate: Callable[..., Any], *arguments: Any) -> Any:
        take_rebuild_lock(db)
        return isolate(*arguments)

    replace_stage(monkeypatch, "isolate rules", lose_lock_and_isolate)  # in the middle of a rebuild
    for number in range(rounds):
        if number < 20:
            record_game(ratings, db, 8 + number)
        threads = [threading.Thread(target=try_rebuild, args=(db, outcomes)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        verify_live_generation(db)
    assert sum(outcomes.values()) == 2 * rounds
    assert outcomes["lost"]


def try_rebuild(db: str, outcomes: dict[str, int]) -> None:
    try:
        rebuild_standings(db)
        outcomes["promoted"] += 1
    except LedgerError:
        outcomes["lost"] += 1
