"""What docs/nightly.md says about cron and logs, tried with the programs themselves."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "nightly.md").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).with_name("ratings")


def read_section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.slow
def test_cron_line_prints_only_errors(ledger_url: str, tmp_path: Path) -> None:
    """The page's cron line, run by a shell as cron does, logs each night and prints only errors."""
    (line,) = re.findall(r"^17 3 \* \* \*  ratings  (.+)$", read_section("cron"), re.MULTILINE)
    line = line.replace("/opt/ratings/bin/ratings", str(COMMAND)).replace("/backup/ratings", str(tmp_path / "backups"))
    line = line.replace("/var/log/ratings", str(tmp_path))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "RATINGS_DB": ledger_url}
    for _ in range(2):
        process = subprocess.run(["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
        assert (process.returncode, process.stdout, process.stderr) == (0, "", ""), process.stderr
    lines = (tmp_path / "nightly.log").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert all("rebuild done" in line and "backup done" in line for line in lines)
    shutil.rmtree(tmp_path / "backups")
    (tmp_path / "backups").write_text("in the way")
    process = subprocess.run(["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (3, "")
    assert process.stderr == f"ratings: backup: {tmp_path / 'backups'}: Not a directory\n"


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="logrotate is not installed")
def test_logrotate_accepts_the_rule(tmp_path: Path) -> None:
    """`logrotate --debug` finds nothing wrong with the rule on the page."""
    (rule,) = re.findall(r"```\n(/var/log/ratings/nightly.log \{.*?)```", read_section("cron"), re.DOTALL)
    rule_file = tmp_path / "ratings"
    rule_file.write_text(rule.replace("ratings ratings", "root root"), encoding="utf-8")
    process = subprocess.run(
        [shutil.which("logrotate") or "", "--debug", "--state", str(tmp_path / "state"), str(rule_file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, "error" in process.stderr) == (0, False), process.stderr
