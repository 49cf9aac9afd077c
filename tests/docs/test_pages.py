"""The page about pages: its examples for programs are run by a shell, against a server that runs."""

import csv
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from make_docs import FOLDER

PAGE = (FOLDER / "pages.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sh\n(.*?)```", PAGE.partition("\n## For programs\n")[2].partition("\n## ")[0], re.DOTALL)
PROGRAM = [sys.executable, "-c", "from cli.start import run; run()"]
GAMES = (("wl-1", "2024-11-08T20:00Z", "mira", "ben"), ("wl-2", "2024-12-13T20:00Z", "ben", "mira"),
         ("wl-3", "2025-01-10T20:00Z", "mira", "ben"))  # fmt: skip


def with_mira(ratings: Callable[..., Any], url: str) -> None:
    """A ledger with the player whom the page asks about."""
    assert ratings("init", "--for", "catan", "--by", "mira", db=url).exit_code == 0
    for game_id, at, *players in GAMES:
        told = ratings("record", "-q", "--game", "catan", "--game-id", game_id, "--at", at, "--by", "mira",
                       "--new-names", "accept", *players, db=url)  # fmt: skip
        assert told.exit_code == 0, told


@pytest.fixture
def shell(copied: Callable[..., str], tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """A function that runs commands while a server shows a ledger, in each kind of store; it gives what they print."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = copied(with_mira)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RATINGS_DB": str(tmp_path / "copy.db")}
    (tmp_path / "ratings").write_text(f'#!/bin/sh\nexec {" ".join(map(quote, PROGRAM))} "$@"\n')
    (tmp_path / "ratings").chmod(0o755)

    def run(commands: str) -> str:
        given = commands.replace(":8000", f":{port}")
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(["/bin/sh", "-ec", given], env={**environment, **path}, cwd=tmp_path, capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 0, (given, done.stdout, done.stderr)
        return done.stdout

    command = [*PROGRAM, "--db", url, "serve", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment) as process:
        try:
            assert process.stderr is not None
            assert f":{port}/" in process.stderr.readline()
            yield run
        finally:
            process.kill()


def test_examples_for_programs_work(shell: Callable[[str], str]) -> None:
    """JSON and CSV are what the page says; the games can be imported; what has not changed is not sent again."""
    asking, again, elsewhere = EXAMPLES
    standings, course = asking.strip().splitlines()
    assert [row["player"] for row in json.loads(shell(standings))["rows"]] == ["mira", "ben"]
    assert [row["game_id"] for row in csv.DictReader(io.StringIO(shell(course)))] == ["wl-1", "wl-2"]
    assert shell(again).splitlines()[-1] == "304"
    assert "3 appended" in shell(elsewhere)
