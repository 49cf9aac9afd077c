"""The page about pages: its examples for programs work in a shell, and its nginx configuration in nginx."""

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
from serving import run_server

pytestmark = pytest.mark.slow

PAGE = (FOLDER / "pages.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sh\n(.*?)```", PAGE.partition("\n## For programs\n")[2].partition("\n## ")[0], re.DOTALL)
PROGRAM = [sys.executable, "-m", "ratings_ledger"]
GAMES = (
    ("wl-1", "2024-11-08T20:00Z", "mira", "ben"),
    ("wl-2", "2024-12-13T20:00Z", "ben", "mira"),
    ("wl-3", "2025-01-10T20:00Z", "mira", "ben"),
)


def make_mira_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the player whom the page asks about."""
    assert ratings("init", "--for", "catan", "--by", "mira", db=url).exit_code == 0
    for game_id, at, *players in GAMES:
        result = ratings("record", "-q", "--game", "catan", "--game-id", game_id, "--at", at, "--by", "mira",
                       "--new-names", "accept", *players, db=url)  # fmt: skip
        assert result.exit_code == 0, result


@pytest.fixture
def shell(copy_ledger: Callable[..., str], tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Yield a function that returns the output of commands while a server shows a ledger, in each kind of store."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    url = copy_ledger(make_mira_ledger)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RATINGS_DB": str(tmp_path / "copy.db")}
    (tmp_path / "ratings").write_text(f'#!/bin/sh\nexec {" ".join(map(quote, PROGRAM))} "$@"\n')
    (tmp_path / "ratings").chmod(0o755)

    def run(commands: str) -> str:
        script = commands.replace(":8000", f":{port}")
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        process = subprocess.run(
            ["/bin/sh", "-ec", script],
            env={**environment, **path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, (script, process.stdout, process.stderr)
        return process.stdout

    with run_server(url, tmp_path) as (port, _):
        yield run


def test_examples_for_programs_work(shell: Callable[[str], str]) -> None:
    """JSON and CSV have the expected rows; an unchanged answer is not sent again; the games can be imported."""
    reading, reading_again, importing = EXAMPLES
    standings, course = reading.strip().splitlines()
    assert [row["player"] for row in json.loads(shell(standings))["rows"]] == ["mira", "ben"]
    assert [row["game_id"] for row in csv.DictReader(io.StringIO(shell(course)))] == ["wl-1", "wl-2"]
    assert shell(reading_again).splitlines()[-1] == "304"
    assert "3 appended" in shell(importing)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_pages_behind_the_proxy(copy_ledger_file: Callable[..., str], tmp_path: Path) -> None:
    """Behind nginx as on the page, pages are served whole, only for the site's name, and only once if unchanged."""
    (block,) = re.findall(r"```nginx\n(.*?)```", PAGE, re.DOTALL)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        nginx_port = listener.getsockname()[1]
    url = copy_ledger_file(make_mira_ledger)
    with run_server(url, tmp_path, "--host-name", "ratings.club.example") as (port, _):
        block = block.replace("listen 443 ssl", f"listen 127.0.0.1:{nginx_port}").replace(":8000", f":{port}")
        folders = "".join(f"{name}_temp_path {tmp_path}/{name};\n" for name in TEMPORARY_FOLDERS)
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {tmp_path}/pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; {folders} {block} }}\n"
        )
        proxy = subprocess.Popen([shutil.which("nginx") or "", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)])
        try:
            site = (
                f"curl -s --retry 20 --retry-connrefused -H 'Host: ratings.club.example' http://127.0.0.1:{nginx_port}"
            )
            page = run_shell(f"{site}/ladders/elo-catan/all.json")
            assert [row["player"] for row in json.loads(page)["rows"]] == ["mira", "ben"]
            assert len(run_shell(f"{site}/games.jsonl").splitlines()) == len(GAMES)
            etag = re.findall(r"etag: (\S+)", run_shell(f"{site}/ -o /dev/null -D -"), re.IGNORECASE)[0]
            assert run_shell(f"{site}/ -o /dev/null -w '%{{http_code}}' -H 'If-None-Match: {etag}'") == "304"
            other_host = site.replace("ratings.club.example", "elsewhere.example")
            assert run_shell(f"{other_host}/ -o /dev/null -w '%{{http_code}}'") == "421"
        finally:
            proxy.terminate()
            proxy.wait(20)


TEMPORARY_FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def run_shell(command: str) -> str:
    return subprocess.run(["/bin/sh", "-ec", command], capture_output=True, text=True, check=True).stdout
