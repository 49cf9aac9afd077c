"""The wheel as it is built from the sdist, installed beside packages of a site that have the names of our folders."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from make_docs import ROOT
from packages_of_old import RULESET, WHEEL

pytestmark = pytest.mark.slow  # all tests share the installation

OF_THE_SITE = ("cli", "ledger", "projections")


def built(folder: Path, kind: str, to: Path) -> Path:
    """Return the package that hatchling builds from the sources in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", to]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (package,) = to.iterdir()
    return package


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist in a folder that has nothing else."""
    folder = tmp_path_factory.mktemp("dist")
    with tarfile.open(built(ROOT, "sdist", folder / "sdist")) as archive:
        archive.extractall(folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    return built(sources, "wheel", folder / "wheel")


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages: the program, a rule package of old, and modules of the site's own."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", folder]
    subprocess.run([*pip, wheel, WHEEL], check=True)
    for name in OF_THE_SITE:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"WHOSE = 'the site has its own {name}'\n")
    return folder


def run(site: Path, folder: Path, *command: str) -> str:
    """Return what Python prints in a folder, with the packages of a site."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_one_package(wheel: Path) -> None:
    """The wheel puts nothing but `ratings_ledger` into a site, each file once, migrations and examples included."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"ratings_ledger"}
    assert len({*names}) == len(names)
    for name in ("py.typed", "ledger/store/log.py", "migrations/sql/guards_sqlite.sql", "examples/winter-league.csv",
                 "projections/shipped/b5-league-1.toml", "web/templates/base.html"):  # fmt: skip
        assert f"ratings_ledger/{name}" in names


def test_demo_runs_beside_packages_of_the_same_names(site: Path, tmp_path: Path) -> None:
    """The demo runs to its end where the site has modules called `ledger`, `projections` and `cli`."""
    told = run(site, tmp_path, "-m", "ratings_ledger", "demo")
    assert "Next, in a folder of your own" in told
    where = run(site, tmp_path, "-c", "import ratings_ledger, ledger; print(ratings_ledger.__file__, ledger.WHOSE)")
    assert where == f"{site / 'ratings_ledger' / '__init__.py'} the site has its own ledger\n"


def test_package_of_old_finds_the_contract(site: Path, tmp_path: Path) -> None:
    """A rule package that imports `projections.contract` is loaded, and the site's own `projections` stays visible."""
    (tmp_path / "petanque.toml").write_text(RULESET)
    run(site, tmp_path, "-m", "ratings_ledger", "init", "--no-rules")
    run(site, tmp_path, "-m", "ratings_ledger", "rules", "publish", "petanque.toml")
    game = (
        "record",
        "--game",
        "petanque",
        "--game-id",
        "p-1",
        "--at",
        "2025-05-01T12:00Z",
        "-q",
        "anna",
        "ben",
        "cleo",
    )
    run(site, tmp_path, "-m", "ratings_ledger", *game)
    assert "anna" in run(site, tmp_path, "-m", "ratings_ledger", "standings", "petanque-points")
    script = (
        "import sys, projections\n"
        "from ratings_ledger.projections.rulesets.registry import rule\n"
        "print(rule('flat-points/1').name, projections.WHOSE, 'projections.contract' in sys.modules)\n"
    )
    told = run(site, tmp_path, "-c", script)
    assert told == "flat-points the site has its own projections False\n"
