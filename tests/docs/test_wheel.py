"""The wheel as it is built from the sdist, installed beside packages of a site that have the names of our folders."""

import zipfile
from pathlib import Path

import pytest
from legacy_package import RULESET, WHEEL
from wheels import build_wheel, create_environment, run_in_environment

pytestmark = pytest.mark.slow  # all tests share the installation

SITE_PACKAGES = ("cli", "ledger", "projections")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from the sdist in a folder that has nothing else."""
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the program, an old rule package, and packages of the site with our folders' names."""
    folder = tmp_path_factory.mktemp("site")
    site_packages = create_environment(folder, wheel, WHEEL)
    for name in SITE_PACKAGES:
        (site_packages / name).mkdir()
        (site_packages / name / "__init__.py").write_text(f"WHOSE = 'the site has its own {name}'\n")
    return folder


def test_wheel_holds_one_package(wheel: Path) -> None:
    """The wheel puts nothing but `ratings_ledger` into a site, each file once, migrations and examples included."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    folders = {name.split("/")[0] for name in names}
    assert folders == {"ratings_ledger", f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"}
    assert len({*names}) == len(names)
    for name in (
        "py.typed",
        "ledger/store/log.py",
        "migrations/sql/guards_sqlite.sql",
        "examples/winter-league.csv",
        "projections/shipped/b5-league-1.toml",
        "web/templates/base.html",
    ):
        assert f"ratings_ledger/{name}" in names


def test_demo_runs_beside_packages_of_the_same_names(site: Path, tmp_path: Path) -> None:
    """The demo runs to its end where the site has modules called `ledger`, `projections` and `cli`."""
    assert "Next, in a folder of your own" in run_in_environment(site, tmp_path, "ratings", "demo")
    script = "import ratings_ledger, ledger, cli; print(ratings_ledger.__file__, ledger.WHOSE, cli.WHOSE)"
    location, _, owners = run_in_environment(site, tmp_path, "python", "-c", script).partition(" ")
    assert Path(location).is_relative_to(site)
    assert owners == "the site has its own ledger the site has its own cli\n"


def test_old_rule_package_finds_the_contract(site: Path, tmp_path: Path) -> None:
    """A rule package that imports `projections.contract` is loaded, and the site's own `projections` stays visible."""
    (tmp_path / "petanque.toml").write_text(RULESET)
    run_in_environment(site, tmp_path, "ratings", "init", "--no-rules")
    run_in_environment(site, tmp_path, "ratings", "rules", "publish", "petanque.toml")
    game = ("--game", "petanque", "--game-id", "p-1", "--at", "2025-05-01T12:00Z")
    run_in_environment(site, tmp_path, "ratings", "record", *game, "-q", "anna", "ben", "cleo")
    assert "anna" in run_in_environment(site, tmp_path, "ratings", "standings", "petanque-points")
    script = (
        "import sys, projections\n"
        "from ratings_ledger.projections.rulesets.registry import find_rule\n"
        "print(find_rule('flat-points/1').name, projections.WHOSE, 'projections.contract' in sys.modules)\n"
    )
    output = run_in_environment(site, tmp_path, "python", "-c", script)
    assert output == "flat-points the site has its own projections False\n"
