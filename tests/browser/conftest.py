"""A real Chromium, and the pages of two clubs: as files, which it opens from the disk, and from a server.

Chromium is the system's, such as Debian's package `chromium`; nothing is downloaded. It resolves no name of any host.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from club import GAMES, HOSTILE, LADDER, made, ok
from looking import ODD, Club
from make_pictures import CHROMIUM
from playwright.sync_api import Browser, sync_playwright
from sqlalchemy import make_url
from systems import made_systems

Ratings = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    if CHROMIUM is None:
        pytest.fail("there is no Chromium: apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def clubs(
    ratings: Ratings, original_files: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Club]]:
    """A function that gives the pages of a club, `small`, `demo` or `systems`, as `files` or from a `server`."""
    found: dict[tuple[str, str], Club] = {}
    with ExitStack() as stack:

        def find(name: str, source: str) -> Club:
            if (name, source) not in found:
                url = original_files({"small": small, "demo": demo, "systems": made_systems}[name])
                folder = tmp_path_factory.mktemp("site")
                ok(ratings, "site", folder, "--title", "The club", db=url)
                base, ending = f"{folder.as_uri()}/", ".html"
                if source == "server":
                    base, ending = stack.enter_context(serving(url)), ""
                names = files_of(folder)
                if source == "files":
                    names += reports(ratings, folder, url, {"small": SMALL_REPORTS, "demo": DEMO_REPORTS}.get(name, ()))
                sizes = {name.removesuffix(".html"): (folder / name).stat().st_size for name in names}
                found[name, source] = Club(url, base, ending, sizes)
            return found[name, source]

        yield find


@pytest.fixture(params=["small", "demo"])
def name(request: pytest.FixtureRequest) -> str:
    """Each club in turn."""
    return str(request.param)


@pytest.fixture(params=["files", "server"])
def club(request: pytest.FixtureRequest, name: str, clubs: Callable[..., Club]) -> Club:
    """The pages of each club, from each source in turn."""
    return clubs(name, request.param)


def small(ratings: Ratings, url: str) -> None:
    """The club of the tests of pages, and a game of everybody with an odd name."""
    made(ratings, url)
    ok(ratings, "record", "-q", "--game", "catan", "--game-id", "odd-" + "g" * 60, "--at", GAMES[-1][1], "--by", "mira",
       "--new-names", "accept", "--", *ODD, db=url)  # fmt: skip


def demo(ratings: Ratings, url: str) -> None:
    """The club that `ratings demo` shows."""
    ok(ratings, "demo", "--keep", str(Path(str(make_url(url).database)).parent), db=url)


# who is reported on, as known at which position, too; each report is a kind of page of its own
SMALL_REPORTS = ((HOSTILE, "7"), (ODD[0], "10"), ("anna", "7"), ("ben", "10"))
DEMO_REPORTS = (("mira", "92"),)


def reports(ratings: Ratings, folder: Path, url: str, wanted: Iterable[tuple[str, str]]) -> list[str]:
    """Write reports beside the pages of a site; their names."""
    names = []
    for number, (player, known_at) in enumerate(wanted):
        names.append(f"report-{number}.html")
        ok(ratings, "report", "player", "--known-at", known_at, "-o", folder / names[-1], "--", player, LADDER, db=url)
    return names


def files_of(folder: Path) -> list[str]:
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    return [name for name in manifest["files"] if name.endswith(".html")]


@contextmanager
def serving(url: str) -> Iterator[str]:
    """The address of a server of a ledger's pages."""
    program = [sys.executable, "-m", "ratings_ledger", "--db", url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [*program, "serve", "--port", "0", "--title", "The club"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[-1]
        finally:
            process.terminate()
