"""Every input is limited in bytes, lines, depth, digits and expansion; beyond a limit it is refused promptly."""

import gzip
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from stores import make_chess_ledger
from thresholds import set_thresholds

Ratings = Callable[..., Any]


pytestmark = pytest.mark.ledger(make=make_chess_ledger, store="sqlite")


@pytest.mark.parametrize("name", ["lines.jsonl", "lines.csv", "lines.jsonl.gz", "lines.csv.gz"])
def test_flood_of_line_ends_is_refused(name: str, db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A file of millions of empty lines is refused promptly, compressed or not."""
    content = b"\n" * 3_000_000
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    result = ratings("import", path, db=db)
    assert (result.exit_code, "more than 100,000 lines are blank" in result.stderr) == (1, True), result


def test_gzip_bomb_is_refused(db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed file that expands beyond the limit is refused."""
    set_thresholds(monkeypatch, expanded_bytes=10_000_000)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress((b'{"type": "' + b" " * 900_000 + b'"}\n') * 30))
    result = ratings("import", "--keep-going", path, db=db)
    assert (result.exit_code, "expands to more than 200 times its size" in result.stderr) == (1, True), result


# the start of a stream, what it repeats, and the message
ENDLESS_STREAMS = {
    "a line": (b"{", b" ", "the rest was not read"),
    "the name in a header of gzip": (b"\x1f\x8b\x08\x08\0\0\0\0\0\0", b"x", "expand to nothing"),
    "members of gzip without content": (b"", gzip.compress(b""), "expand to nothing"),
    "empty blocks of gzip": (b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"\0\0\0\xff\xff", "expand to nothing"),
    "zeros behind gzip": (gzip.compress(b"{}\n"), b"\0", "expand to nothing"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ENDLESS_STREAMS)
def test_endless_stream_is_refused(what: str, db: str) -> None:
    """A stream that never ends is refused promptly, whatever it repeats."""
    start, repeated, message = ENDLESS_STREAMS[what]
    script = f"from ratings_ledger.cli.main import run_program; run_program(['--db', {db!r}, 'import', '-'])"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as importing:
        assert importing.stdin is not None
        assert importing.stderr is not None
        with suppress(BrokenPipeError):
            importing.stdin.write(start)
            while importing.poll() is None:
                importing.stdin.write(repeated * (1_000_000 // len(repeated)))
        with suppress(BrokenPipeError):
            importing.stdin.close()
        errors = importing.stderr.read().decode()
    assert (importing.returncode, message in errors) == (1, True), errors


RULESETS = {
    "a key of many parts": "a" + ".a" * 50_000 + " = 1\n",
    "a table of many parts": "[a" + ".a" * 50_000 + "]\n",
    "a value of many parts": "x = {a" + ".a" * 50_000 + " = 1}\n",
    "brackets": "x = " + "[" * 5_000 + "]" * 5_000 + "\n",
    "braces": "x = " + "{a=" * 5_000 + "1" + "}" * 5_000 + "\n",
    "a long number": "x = " + "9" * 100_000 + "\n",
    "a long text": 'x = "' + "y" * 300_000 + '"\n',
    "a very long text": 'x = "' + "é" * 900_001 + '"\n',
    "tables in tables": f"[a{'.a' * 190}]\nb{'.b' * 190} = {'{c=' * 190}1{'}' * 190}\n",
    "a rule that is a list": "rule = []\n",
    "a rule that is a table": "rule = {a = 1}\n",
}
JSON_RULESETS = {
    "nested objects": '{"a":' * 900 + "1" + "}" * 900,
    "nested lists": '{"a":' + "[" * 900 + "]" * 900 + "}",
    "a long text": json.dumps({"source": "y" * 300_000}),
    "a very long text": json.dumps({"source": "é" * 900_001}, ensure_ascii=False),
    "a member twice": '{"id": "a", "id": "b"}',
}


@pytest.mark.parametrize("what", [*RULESETS, *(f"{what}, JSON" for what in JSON_RULESETS)])
def test_excessive_ruleset_is_refused(what: str, db: str, tmp_path: Path, ratings: Ratings) -> None:
    """An excessive or malformed ruleset is refused promptly and briefly by `rules` and `whatif`."""
    name, _, as_json = what.partition(", ")
    file = tmp_path / ("rules.json" if as_json else "rules.toml")
    file.write_text((JSON_RULESETS if as_json else RULESETS)[name], encoding="utf-8")
    for command in (("rules", "check"), ("rules", "publish"), ("whatif",)):
        result = ratings(*command, file, db=db)
        assert (result.exit_code, "bug" in result.stdout + result.stderr) == (1, False), result
        assert "UTF-8" not in result.stdout + result.stderr
        assert len(result.stdout + result.stderr) < 2_000


def test_restore_from_a_pipe_is_refused(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """Restoring from a pipe is refused without waiting for it."""
    os.mkfifo(tmp_path / "pipe")
    results = []
    thread = threading.Thread(
        target=lambda: results.append(ratings("import", "--restore", tmp_path / "pipe", db=db)), daemon=True
    )
    thread.start()
    thread.join(20)
    assert results[0].exit_code == 2
    assert "instead of a pipe or device" in results[0].stderr


@pytest.mark.slow
def test_lack_of_memory_is_no_bug(db: str) -> None:
    """Running out of memory is not reported as a bug."""

    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (100_000_000, 100_000_000))

    text = "Date,White,Black,Result\n" + "2024-01-01,anna,ben,1-0\n" * 200_000
    script = f"from ratings_ledger.cli.main import run_program; run_program(['--db', {db!r}, 'import', '-'])"
    process = subprocess.run(
        [sys.executable, "-c", script], input=text, preexec_fn=limit_memory, capture_output=True, text=True, check=False
    )
    assert (process.returncode in (1, 3), "memory" in process.stderr) == (True, True), process
    assert "bug" not in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("name", [
    "an\u200bna", "\ufeffanna", "an\u00adna", "anna\u2060", "anna\U000e0041", "an\u200dna", "an\u200cna", "\u200canna",
])  # fmt: skip
def test_invisible_characters_are_refused(name: str, db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A new name with invisible characters is refused in tables and in JSON."""
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
            result = ratings("import", "-", *more, db=db, input=content)
            assert (result.exit_code, "bad-identifier" in result.stderr) == (1, True), result


@pytest.mark.parametrize("name", ["क्\u200dष", "می\u200cخواهم", "陳美", "Zoë", "O'Neill"])
def test_joiners_that_scripts_need_are_allowed(db: str, ratings: Ratings, name: str) -> None:
    """Names with the characters that their scripts need are accepted."""
    table = f"game_id,occurred_at,game,1st,2nd\ng,2024-01-01T20:00Z,chess,{name},ben\n"
    assert ratings("import", "-", db=db, input=table).exit_code == 0


def test_excessive_whatif_key_is_refused(db: str, ratings: Ratings) -> None:
    """Trying a value under a key with thousands of parts is refused with a short message."""
    result = ratings("whatif", "examples/elo-catan-2.toml", "--set", "a." * 3_000 + "b=1", db=db)
    assert (result.exit_code, "more than 200 dots" in result.stderr, len(result.stderr) < 1_000) == (2, True, True), (
        result
    )
