"""Imports whose input a second process reads ahead have the outcome of one process, and leave no process behind."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import fork_child, wait_for_exits, wait_until
from ledgers import read_all_records, run_command
from thresholds import set_thresholds

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, run_ahead
from ratings_ledger.ledger.store.opening import open_ledger

GAMES = 400
Ratings = Callable[..., Any]
PLAYERS = ("anna", "ben", "jürgen", "dora=", "emil", "frida")


@pytest.fixture(autouse=True)
def _two_processes_and_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_thresholds(monkeypatch, parsed_items=7, parsed_alone=2)
    set_cores(monkeypatch, 2)


def set_cores(patch: pytest.MonkeyPatch, cores: int) -> None:
    """Let imports use this many processes."""
    patch.setattr("ratings_ledger.cli.commands.import_.available_cores", lambda: cores)


def draw_event(rng: random.Random, number: int) -> dict[str, Any]:
    """Return a random event: a game, sometimes with the id of an earlier one, a void or a rename."""
    draw = rng.random()
    if draw < 0.1:
        return {"type": "player.renamed", "data": {"player": rng.choice(PLAYERS), "new_player": f"new-{number}"}}
    if draw < 0.2:
        return {
            "type": "game.voided",
            "data": {"game_id": f"g-{rng.randrange(number + 3)}", "reason": "a friendly"},
        }
    game_id = f"g-{rng.randrange(number + 1) if draw < 0.3 else number}"
    participants = [{"player": name, "place": place} for place, name in enumerate(rng.sample(PLAYERS, 3), 1)]
    return {"type": "game.recorded", "data": {"game_id": game_id, "game": "catan", "participants": participants}}


def draw_json_lines(rng: random.Random) -> Iterator[str]:
    for number in range(GAMES):
        event_members = {"occurred_at": f"2010-03-05T19:{number % 60:02}:00Z", **draw_event(rng, number)}
        yield json.dumps(event_members)[: -1 if rng.random() < 0.05 else None]


def draw_csv_rows(rng: random.Random) -> Iterator[str]:
    yield "game_id,occurred_at,game,player,place"
    for number in range(GAMES):
        data = draw_event(rng, number)["data"]
        for row in data.get("participants", [{"player": "", "place": "x"}]):
            yield f"{data.get('game_id', '')},2010-03-05T19:30:00Z,catan,{row['player']},{row['place']}"


def import_files(ratings: Ratings, url: str, paths: list[Path], keep_going: bool) -> tuple[Any, list[str], list[Any]]:
    """Import files; return the result (without its head), the texts of the reject files, and the data of all events."""
    options = ["--keep-going"] if keep_going else []
    result = ratings("import", *paths, *options, "--format", "json", db=url)
    assert result.exit_code == 1
    reject_files = [path.with_name(f"{path.name}.rejects.jsonl") for path in paths]
    reject_texts = [path.read_text() for path in reject_files if path.exists()]
    for path in reject_files:
        path.unlink(missing_ok=True)
    answer = json.loads(result.stdout)
    del answer["head"]
    # the ledgers published their rulesets at different times, so only data are compared
    return answer, reject_texts, [json.loads(record)["data"] for record in read_all_records(url).values()]


@pytest.mark.slow
@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_two_processes_import_like_one(
    ratings: Ratings, tmp_path: Path, seed: int, keep_going: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import with two processes has the same outcome as one with a single process."""
    rng = random.Random(seed)
    paths = [tmp_path / "a.jsonl", tmp_path / "b.csv", tmp_path / "empty.jsonl"]
    for path, lines in zip(paths, (draw_json_lines(rng), draw_csv_rows(rng), ()), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    outcomes = []
    for cores in (1, 2):
        url = f"sqlite:///{tmp_path / f'{cores}.db'}"
        assert ratings("init", db=url).exit_code == 0
        before = len(read_all_records(url))
        set_cores(monkeypatch, cores)
        outcomes.append(import_files(ratings, url, paths, keep_going))
        answer, reject_texts, data = outcomes[-1]
        assert bool(answer["appended"]) == keep_going == bool(reject_texts) == (len(data) > before)
    assert len({rejection["code"] for rejection in outcomes[0][0]["rejected"]}) > 6
    assert outcomes[0] == outcomes[1]


def test_missing_file_is_reported(ledger_url: str, tmp_path: Path) -> None:
    """A file that is gone when the process that reads ahead opens it is reported, and nothing is appended."""
    (tmp_path / "games.jsonl").write_text("".join(f"{line}\n" for line in yield_good_lines(100)))
    paths = [tmp_path / "games.jsonl", tmp_path / "gone.jsonl"]
    items = (item for path in paths for item in read_items(str(path), TableOptions()))
    with pytest.raises(FileNotFoundError) as failure:
        FileIntake(open_ledger(ledger_url), items, ImportPolicy("test"), cores=2).append()
    assert failure.value.filename == str(tmp_path / "gone.jsonl")
    assert read_all_records(ledger_url) == {}


@pytest.mark.slow
def test_reading_process_reads_standard_input(ledger_url: str, tmp_path: Path) -> None:
    """Standard input after a file is read by the process that reads ahead."""
    lines = [f"{line}\n" for line in yield_good_lines(200)]
    (tmp_path / "games.jsonl").write_text("".join(lines[:100]))
    code = (
        "from ratings_ledger.cli.commands import import_\n"
        "from ratings_ledger.ledger.intake import parsing\n"
        "from ratings_ledger.cli.main import run_program\n"
        "parsing.BLOCK_ITEMS, parsing.ALONE_BLOCKS, import_.available_cores = 7, 2, lambda: 2\n"
        f"run_program(['--db', {ledger_url!r}, 'import', {str(tmp_path / 'games.jsonl')!r}, '-'])"
    )
    process = subprocess.run([sys.executable, "-c", code], input="".join(lines[100:]), text=True, capture_output=True)
    assert (process.returncode, process.stdout) == (0, "200 appended; the head is 202.\n"), process.stderr
    assert len(read_all_records(ledger_url)) == 202  # and a record for each of the two inputs


def yield_good_lines(count: int) -> Iterator[str]:
    for number in range(count):
        participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
        data = {"game_id": f"g-{number}", "game": "catan", "participants": participants}
        yield json.dumps({"type": "game.recorded", "occurred_at": "2010-03-05T19:30:00Z", "data": data})


def import_by_command(url: str, path: Path) -> int:
    """Run `ratings import` like a shell and return its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    return run_command("import", str(path), db=url)


@pytest.fixture
def stalled_import(ledger_url: str, tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Yield the process ids of an import from a pipe that has stalled, and of the process that reads the pipe."""
    path = tmp_path / "games.jsonl"
    os.mkfifo(path)
    importer = fork_child(import_by_command, ledger_url, path)
    with open(path, "w") as pipe:
        # more than one block of a file
        pipe.writelines(f"{line}\n" for line in yield_good_lines(1_000))
        pipe.flush()
        wait_until(lambda: len(list_children(importer)) == 1, seconds=10)
        time.sleep(0.05)
        yield importer, list_children(importer)[0]


def list_children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, parent, state in rows if int(parent) == process and not state.startswith("Z")]


def has_ended(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout
    return not state or state.startswith("Z")


@pytest.mark.parametrize(("ending_signal", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_reader_ends_with_the_import(
    ledger_url: str, stalled_import: tuple[int, int], ending_signal: signal.Signals, code: int
) -> None:
    """The process that reads ahead ends with the import, however the import ends."""
    importer, reader = stalled_import
    os.kill(importer, ending_signal)
    assert wait_for_exits([importer]) == [code]
    wait_until(lambda: has_ended(reader))
    assert read_all_records(ledger_url) == {}


def test_interrupt_during_a_query_is_not_a_lost_server(ledger_url: str) -> None:
    """Ctrl-C during a query stays an interrupt although the connection cannot roll back."""
    ledger = open_ledger(ledger_url)

    def interrupt_query() -> None:
        with ledger.reading():
            try:
                raise KeyboardInterrupt
            finally:
                raise ledger.engine.dialect.loaded_dbapi.OperationalError("another command is already in progress")

    with pytest.raises(KeyboardInterrupt):
        interrupt_query()


def test_killed_reader_appends_nothing(ledger_url: str, stalled_import: tuple[int, int]) -> None:
    """An import whose reading process is killed exits with 3 and appends nothing."""
    importer, reader = stalled_import
    os.kill(reader, signal.SIGKILL)
    assert wait_for_exits([importer]) == [3]
    assert read_all_records(ledger_url) == {}


def test_failure_while_reading_ahead_is_raised() -> None:
    """An exception, a kill or an early exit of the process that reads ahead is raised where its messages are read."""

    def yield_and_fail(kind: str) -> Iterator[bytes]:
        yield b"first"
        if kind == "bug":
            raise KeyError("a bug")
        if kind == "end":
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    for kind, error, message in (
        ("bug", RuntimeError, "KeyError: 'a bug'"),
        ("kill", WorkerLost, "killed by signal 9"),
        ("end", WorkerLost, "ended early, with exit status 0"),
    ):
        messages = run_ahead(yield_and_fail(kind))
        assert next(messages) == b"first"
        with pytest.raises(error, match=message):
            next(messages)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("where", ["multiprocessing.queues.Queue._start_thread", "threading.Thread.start"])
def test_failure_to_start_a_thread_is_raised(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no thread can be started for the messages between the processes, the import fails instead of waiting for
    ever."""

    def start(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(where, start)
    with pytest.raises((WorkerLost, RuntimeError), match=r"worker processes cannot be read|can't start new thread"):
        next(run_ahead(iter([b"first"])))


@pytest.mark.slow
def test_time_limit_counts_processor_time() -> None:
    """A process may wait longer than its time limit, but neither work longer nor wait for ever."""

    def wait_and_yield(seconds: float) -> Iterator[bytes]:
        time.sleep(seconds)
        yield b"sound"

    def work_without_end() -> Iterator[bytes]:
        while True:
            pass
        yield b"never"

    assert [*run_ahead(wait_and_yield(0.4), seconds=0.2, closes_files=True)] == [b"sound"]
    with pytest.raises(TimeLimitExceeded, match=r"^0\.2 s of processor time$"):
        next(run_ahead(work_without_end(), seconds=0.2, closes_files=True))
    with pytest.raises(TimeLimitExceeded, match=r"^1 s by the clock, most of it waiting$"):
        next(run_ahead(wait_and_yield(60), seconds=0.1, closes_files=True))
