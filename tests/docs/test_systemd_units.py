"""The units for systemd in deploy/systemd: `systemd-analyze verify` finds nothing wrong with them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from make_docs import FOLDER, ROOT

UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
RATINGS = str(Path(sys.executable).with_name("ratings"))
NEEDS_SYSTEMD = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def verify_units(folder: Path, names: list[str]) -> subprocess.CompletedProcess[str]:
    """Return what systemd says about the units in a folder."""
    return subprocess.run(
        ["systemd-analyze", "verify", *names],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "SYSTEMD_UNIT_PATH": f"{folder}:"},
    )


def place_units(folder: Path) -> list[str]:
    """Copy the units into a folder, with programs and an account that exist here, and return their names.

    A template has the name of an instance.
    """
    names = []
    for path in UNITS:
        unit = path.read_text(encoding="utf-8").replace("User=ratings\n", "User=daemon\n")
        unit = unit.replace("/opt/ratings/bin/ratings", RATINGS).replace("/opt/ratings/bin/dask", "/bin/true")
        (folder / path.name).write_text(unit, encoding="utf-8")
        names.append(path.name.replace("@.", "@x."))
    return names


@NEEDS_SYSTEMD
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """With programs and an account that exist here, systemd has no complaint about any unit."""
    process = verify_units(tmp_path, place_units(tmp_path))
    complaints = [line for line in process.stderr.splitlines() if "ratings-" in line]
    assert (process.returncode, complaints) == (0, []), process.stderr


@NEEDS_SYSTEMD
def test_systemd_reports_a_misspelt_setting(tmp_path: Path) -> None:
    """A misspelt setting is reported, so silence about the units means something."""
    place_units(tmp_path)
    unit = tmp_path / "ratings-nightly.service"
    unit.write_text(unit.read_text(encoding="utf-8").replace("ExecStart=", "ExecStrat="), encoding="utf-8")
    assert "ExecStrat" in verify_units(tmp_path, [unit.name]).stderr


def test_page_explains_every_unit() -> None:
    """The page about servers names each unit, a timer beside its service."""
    page = (FOLDER / "deploying.md").read_text(encoding="utf-8")
    services = [path.name for path in UNITS if path.suffix == ".service"]
    timers = [path.name for path in UNITS if path.suffix == ".timer"]
    assert [name for name in services if f"`{name}`" not in page] == []
    assert [name for name in timers if f"`{name.removesuffix('.timer')}.service`, `.timer`" not in page] == []


def test_nightly_unit_runs_what_cron_runs() -> None:
    """The unit's command is that of the cron line on the page about nights."""
    page = (FOLDER / "nightly.md").read_text(encoding="utf-8")
    unit = (ROOT / "deploy" / "systemd" / "ratings-nightly.service").read_text(encoding="utf-8")
    (command,) = (line.removeprefix("ExecStart=") for line in unit.splitlines() if line.startswith("ExecStart="))
    assert f"ratings  {command} >> " in page
