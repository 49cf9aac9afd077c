"""A real Chromium, and the pages of two clubs: as files, which it opens from the disk, and from a server.

Chromium is the system's, such as Debian's package `chromium`; nothing is downloaded. It resolves no host names.
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
from club import GAMES, HOSTILE, LADDER, create_club, record_game, run_ok
from make_pictures import CHROMIUM
from page_checks import ODD_NAMES, Club
from playwright.sync_api import Browser, sync_playwright
from sqlalchemy import make_url
from systems import create_systems

Ratings = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Yield a browser without a window."""
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
    """Yield a function that returns the pages of a club (`small`, `demo`, `systems`) as `files` or from a `server`."""
    opened_clubs: dict[tuple[str, str], Club] = {}
    with ExitStack() as stack:

        def open_club(name: str, source: str) -> Club:
            if (name, source) not in opened_clubs:
                url = original_files(
                    {"small": create_small_club, "demo": create_demo_club, "systems": create_systems}[name]
                )
                folder = tmp_path_factory.mktemp("site")
                run_ok(ratings, "site", folder, "--title", "The club", db=url)
                base, ending = f"{folder.as_uri()}/", ".html"
                if source == "server":
                    base, ending = stack.enter_context(run_server(url)), ""
                file_names = list_page_files(folder)
                if source == "files":
                    file_names += write_reports(
                        ratings, folder, url, {"small": SMALL_REPORTS, "demo": DEMO_REPORTS}.get(name, ())
                    )
                sizes = {path.removesuffix(".html"): (folder / path).stat().st_size for path in file_names}
                opened_clubs[name, source] = Club(url, base, ending, sizes)
            return opened_clubs[name, source]

        yield open_club


@pytest.fixture(params=["small", "demo"])
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of each of two clubs in turn."""
    return str(request.param)


@pytest.fixture(params=["files", "server"])
def club(request: pytest.FixtureRequest, name: str, clubs: Callable[..., Club]) -> Club:
    """Return the pages of each club, from each source in turn."""
    return clubs(name, request.param)


def create_small_club(ratings: Ratings, url: str) -> None:
    """Create the club that the page tests in tests/web use, plus a game of players with unusual names."""
    create_club(ratings, url)
    record_game(ratings, url, "odd-" + "g" * 60, GAMES[-1][1], *ODD_NAMES)


def create_demo_club(ratings: Ratings, url: str) -> None:
    """Create the club that `ratings demo` shows."""
    run_ok(ratings, "demo", "--keep", str(Path(str(make_url(url).database)).parent), db=url)


# the player of each report, and the earlier position to compare with; `classify_path` gives each report its own kind
SMALL_REPORTS = ((HOSTILE, "7"), (ODD_NAMES[0], "10"), ("anna", "7"), ("ben", "10"))
DEMO_REPORTS = (("mira", "92"),)


def write_reports(
    ratings: Ratings, folder: Path, url: str, players_and_positions: Iterable[tuple[str, str]]
) -> list[str]:
    """Write reports beside the pages of a site and return their file names."""
    names = []
    for number, (player, known_at) in enumerate(players_and_positions):
        names.append(f"report-{number}.html")
        run_ok(
            ratings, "report", "player", "--known-at", known_at, "-o", folder / names[-1], "--", player, LADDER, db=url
        )
    return names


def list_page_files(folder: Path) -> list[str]:
    """Return the names of the HTML files that the manifest of a site lists."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    return [name for name in manifest["files"] if name.endswith(".html")]


@contextmanager
def run_server(url: str) -> Iterator[str]:
    """Start a server of a ledger's pages, provide its address, and stop it at the end."""
    program = [sys.executable, "-m", "ratings_ledger", "--db", url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [*program, "serve", "--port", "0", "--title", "The club"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[-1]
        finally:
            process.terminate()
