"""Every input has an end: in bytes, lines, depth, digits and expansion; beyond it a refusal, and no long silence."""

import gzip
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import sources
from ledger.newcomers import unseen

Ratings = Callable[..., Any]


@pytest.fixture
def db(tmp_path: Path, ratings: Ratings) -> str:
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    return url


@pytest.mark.parametrize("name", ["lines.jsonl", "lines.csv", "lines.jsonl.gz", "lines.csv.gz"])
def test_given_a_flood_of_line_ends_when_imported_then_it_is_refused_soon(
    name: str, db: str, tmp_path: Path, ratings: Ratings
) -> None:
    content = b"\n" * 3_000_000
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    told = ratings("import", path, db=db)
    assert (told.exit_code, "more than 100,000 lines hold nothing" in told.stderr) == (1, True), told


def test_given_a_file_that_expands_without_measure_when_imported_then_it_is_refused(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "EXPANDED_BYTES", 10_000_000)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress((b'{"type": "' + b" " * 900_000 + b'"}\n') * 30))
    told = ratings("import", "--keep-going", path, db=db)
    assert (told.exit_code, "expands to more than 200 times its size" in told.stderr) == (1, True), told


RULESETS = {
    "a key of many parts": "a" + ".a" * 50_000 + " = 1\n",
    "a table of many parts": "[a" + ".a" * 50_000 + "]\n",
    "a value of many parts": "x = {a" + ".a" * 50_000 + " = 1}\n",
    "brackets": "x = " + "[" * 5_000 + "]" * 5_000 + "\n",
    "braces": "x = " + "{a=" * 5_000 + "1" + "}" * 5_000 + "\n",
    "a long number": "x = " + "9" * 100_000 + "\n",
    "a long text": 'x = "' + "y" * 300_000 + '"\n',
}  # fmt: skip


@pytest.mark.parametrize("what", RULESETS)
def test_given_a_ruleset_without_measure_when_checked_then_it_is_refused_soon(
    what: str, tmp_path: Path, ratings: Ratings
) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(RULESETS[what], encoding="utf-8")
    told = ratings("rules", "check", file)
    assert (told.exit_code, "bug" in told.stdout + told.stderr) == (1, False), told
    assert len(told.stdout) < 2_000


def test_given_a_pipe_when_restored_then_it_is_refused_and_nobody_waits(
    db: str, tmp_path: Path, ratings: Ratings
) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = []
    waiting = threading.Thread(
        target=lambda: done.append(ratings("import", "--restore", tmp_path / "pipe", db=db)), daemon=True
    )
    waiting.start()
    waiting.join(20)
    assert done[0].exit_code == 2
    assert "not a pipe or a device" in done[0].stderr


def test_given_little_memory_when_it_does_not_suffice_then_it_is_no_bug(db: str) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (180_000_000, 180_000_000))

    text = "x = 1\n" * 20_000_000
    script = f"from cli.main import run; run(['--db', {db!r}, 'import', '-'])"
    done = subprocess.run(
        [sys.executable, "-c", script], input=text, preexec_fn=little, capture_output=True, text=True, check=False
    )
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", [
    "an\u200bna", "\ufeffanna", "an\u00adna", "anna\u2060", "anna\U000e0041", "an\u200dna", "an\u200cna", "\u200canna",
])  # fmt: skip
def test_given_a_new_name_with_what_nobody_sees_when_imported_then_it_is_refused_in_tables_and_in_json(
    name: str, db: str, tmp_path: Path, ratings: Ratings
) -> None:
    game = {
        "type": "game.recorded",
        "occurred_at": "2024-01-01T20:00:00Z",
        "data": {
            "game_id": "g",
            "game": "chess",
            "participants": [{"player": name, "place": 1}, {"player": "ben", "place": 2}],
        },
    }
    table = f"game_id,occurred_at,game,1st,2nd\ng,2024-01-01T20:00Z,chess,ben,{name}x\n"
    for content in (json.dumps(game), table):
        for more in ((), ("--new-names", "accept")):
            told = ratings("import", "-", *more, db=db, input=content)
            assert (told.exit_code, "bad-identifier" in told.stderr) == (1, True), told


@pytest.mark.parametrize("name", ["क्\u200dष", "می\u200cخواهم", "陳美", "Zoë", "O'Neill"])
def test_names_that_scripts_need_are_names(name: str) -> None:
    assert unseen(name) is None
