"""Run docs/adding-a-rule.md from its first file to its last command.

The page builds two packages, which no module of this program names. The tests use its ledger with and without them.
"""

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from console_blocks import Shell, mask_volatile, refresh_page
from make_docs import FOLDER, ROOT
from own_rules import is_installed

pytestmark = pytest.mark.slow  # all tests share the package that the page builds

PAGE = FOLDER / "adding-a-rule.md"
LADDER = "petanque-points/2025"


class RulePage(NamedTuple):
    """The page as its commands print it now, and the folder in which they ran: files, packages, ledger."""

    text: str
    folder: Path

    @property
    def db(self) -> str:
        return f"sqlite:///{self.folder / 'ratings.db'}"


@pytest.fixture(scope="module")
def rule_page(tmp_path_factory: pytest.TempPathFactory) -> RulePage:
    folder = tmp_path_factory.mktemp("page")
    return RulePage(refresh_page(PAGE, folder, ROOT), folder)


@pytest.mark.skipif(
    find_spec("numba") is None, reason="the page was written with the extra `fast` (numba), which is not installed"
)
def test_page_is_up_to_date(rule_page: RulePage) -> None:
    """The page shows what its commands print now."""
    assert mask_volatile(rule_page.text) == mask_volatile(PAGE.read_text(encoding="utf-8")), "make docs"


@pytest.mark.parametrize(("package", "outcome"), [("flat-points", b"1 passed"), ("steady-elo", b"2 passed")])
def test_package_passes_its_own_test(package: str, outcome: bytes, rule_page: RulePage) -> None:
    """A package built by the page passes its own test."""
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", package],
        cwd=rule_page.folder,
        env={"PYTHONPATH": str(rule_page.folder / "installed"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
    )
    assert (process.returncode, process.stdout.splitlines()[-1][:8]) == (0, outcome), process


@pytest.mark.parametrize("name", ["flat-points", "steady-elo"])
def test_program_does_not_know_the_rule(name: str) -> None:
    """The rules of the page are neither registered nor mentioned in any module of this program."""
    assert not is_installed(f"{name}/1")
    modules = [
        path
        for package in ("ledger", "projections", "cli", "migrations")
        for path in (ROOT / package).rglob("*.py")
        if {name, name.replace("-", "_")} & {*re.findall(r"[\w-]+", path.read_text(encoding="utf-8"))}
    ]
    assert modules == []


def test_rule_with_state_is_tried_interpreted_and_compiled(rule_page: RulePage) -> None:
    """The trial of a rule that keeps two numbers for each player scores 1,000 games, interpreted and compiled."""
    assert "club-steady@1 can be published" in rule_page.text
    trial = rule_page.text.partition("club-steady@1 can be published")[2].splitlines()[1]
    assert "1,000 scored" in trial
    assert trial.endswith("interpreted and compiled") or find_spec("numba") is None


@pytest.mark.parametrize(
    "command", [["standings", LADDER], ["history", "Dvora", LADDER], ["explain", "p-1", LADDER], ["books", LADDER]]
)
def test_missing_package_is_named(rule_page: RulePage, ratings: Callable[..., Any], command: list[str]) -> None:
    """Without the package, reading its ladders exits with 2 and says which rule is missing."""
    result = ratings(*command, db=rule_page.db)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "petanque-points@2025 cannot be used here: rule: 'flat-points/1' is not installed" in result.stderr


def test_other_ladders_work_without_package(rule_page: RulePage, ratings: Callable[..., Any]) -> None:
    """Without the package, games on other ladders can be recorded, read and corrected.

    `rebuild` stores the standings of these ladders, although it exits with 1.
    """
    game = ["--game", "club-catan", "--game-id", "c-1", "--at", "2025-07-01T20:00Z"]
    assert ratings("record", *game, "Dvora", "Bruno", "陳美", db=rule_page.db).exit_code == 0
    assert ratings("correct", "c-1", "Bruno", "Dvora", "陳美", "--reason", "r", db=rule_page.db).exit_code == 0
    for command in (["standings", "club-catan-elo/all"], ["explain", "c-1", "club-catan-elo/3-4"], ["ladders"]):
        assert ratings(*command, db=rule_page.db).exit_code == 0
    assert "club-catan-elo " in ratings("ladders", db=rule_page.db).stdout
    assert ratings("rebuild", db=rule_page.db).exit_code == 1
    with closing(sqlite3.connect(rule_page.folder / "ratings.db")) as connection:
        stored = dict(connection.execute("SELECT ladder, count(*) FROM live_standings GROUP BY ladder").fetchall())
    # the ladder of the missing rule keeps its old stored standings
    assert stored == {"club-catan-elo/3-4": 3, "club-catan-elo/all": 3, "galactic-points": 2, LADDER: 4}


def copy_package(rule_page: RulePage, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Copy the package, the ledger and the ruleset to a folder, change to it, and return a shell with the package."""
    shutil.copytree(rule_page.folder / "installed", folder / "installed")
    for name in ("ratings.db", "petanque-points-2025.toml"):
        shutil.copy(rule_page.folder / name, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("RATINGS_DB", raising=False)
    return Shell(folder / "installed")


def test_reinstalled_package_restores_ladders(
    rule_page: RulePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the package installed again, its ladders show the same standings as before."""
    shell = copy_package(rule_page, tmp_path, monkeypatch)
    assert shell.run(f"$ ratings standings {LADDER}").splitlines()[2:7] == [
        "rank  player  points  games",
        "   1  Aïssa        7      2",
        "   1  陳美         7      2",
        "   3  Dvora        3      2",
        "   -  Bruno        2      1",
    ]
    shell.run("$ ratings rebuild")
    assert shell.run("$ ratings verify") == ""


def test_duplicate_rule_name_is_refused(rule_page: RulePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule name that two packages register is refused."""
    shell = copy_package(rule_page, tmp_path, monkeypatch)
    package = tmp_path / "installed" / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[ratings_ledger.rules]\nflat-points/1 = other:RULE\n", encoding="utf-8")
    message = shell.run("$ ratings rules check petanque-points-2025.toml  # exit 1")
    assert "registered by several packages: " in message
    assert "flat-points/1 is registered twice" in shell.run("$ ratings doctor  # exit 1")


def test_name_of_a_shipped_rule_is_refused(
    rule_page: RulePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that registers the name of a shipped rule is reported and not used; the shipped rule still works."""
    shell = copy_package(rule_page, tmp_path, monkeypatch)
    file = tmp_path / "installed" / "flat_points-1.0.dist-info" / "entry_points.txt"
    file.write_text("[ratings_ledger.rules]\ncontribution-pool/1 = flat_points:RULE\n", encoding="utf-8")
    shell.run("$ ratings rules new --rule contribution-pool/1 pool.toml")
    for command in ("check", "publish"):
        message = shell.run(f"$ ratings rules {command} pool.toml  # exit 1")
        assert "the rule contribution-pool/1 comes with this program" in message
        assert "the package's rule is not used: flat_points:RULE" in " ".join(message.split())
    assert "contribution-pool/1 is registered twice" in shell.run("$ ratings doctor  # exit 1")
    assert "Aïssa     1160" in shell.run("$ ratings standings galactic-points")
