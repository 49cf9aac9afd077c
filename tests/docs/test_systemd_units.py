"""The units for systemd on the pages: `systemd-analyze verify` finds nothing wrong with them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from make_docs import FOLDER

RATINGS = str(Path(sys.executable).with_name("ratings"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize(
    ("page", "name", "program", "here"),
    [
        ("pages.md", "ratings-pages.service", "/opt/ratings/bin/ratings", RATINGS),
        ("scale.md", "ratings-workers.service", "/opt/ratings/bin/dask", "/bin/true"),
    ],
)
def test_systemd_accepts_the_unit(page: str, name: str, program: str, here: str, tmp_path: Path) -> None:
    """Given a page's unit with a program and an account that are here, systemd has no complaint."""
    (unit,) = re.findall(r"```ini\n(.*?)```", (FOLDER / page).read_text(encoding="utf-8"), re.DOTALL)
    assert program in unit
    unit = unit.replace(program, here).replace("User=ratings\n", "User=daemon\n")
    (tmp_path / name).write_text(unit, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", name], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )  # fmt: skip
    told = [line for line in done.stderr.splitlines() if "ratings-" in line]
    assert (done.returncode, told) == (0, []), done.stderr
