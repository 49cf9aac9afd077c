"""Type checkers on a user's script, against the installed wheel: correct use passes, and each slip is reported."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from wheels import build_wheel, create_environment

pytestmark = pytest.mark.slow  # checkers read the whole package

HERE = Path(__file__).parent
CORRECT, WRONG = HERE / "correct.py", HERE / "wrong.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel."""
    folder = tmp_path_factory.mktemp("user")
    create_environment(folder, build_wheel(tmp_path_factory.mktemp("dist")))
    return folder / "bin" / "python"


def check_with_mypy(python: Path, folder: Path, script: Path) -> dict[int, str]:
    """Return what `mypy --strict` reports of a script, by line."""
    (settings := folder / "mypy.ini").write_text("[mypy]\n")
    cache = python.parent.parent / "mypy-cache"  # both scripts read the same package
    options = ["--strict", "--python-executable", python, "--config-file", settings, "--cache-dir", cache]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    reported = re.findall(rf"{script.name}:(\d+): error: (.*)", done.stdout)
    assert bool(reported) == bool(done.returncode), done.stdout
    return {int(line): message for line, message in reported}


def check_with_pyright(python: Path, folder: Path, script: Path) -> dict[int, str]:
    """Return what pyright reports of a script, by line."""
    if find_spec("pyright") is None or shutil.which("node") is None:
        pytest.skip("pyright needs its package and Node.js")
    shutil.copy(script, folder)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", python, folder / script.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    reported = json.loads(done.stdout)["generalDiagnostics"]
    return {one["range"]["start"]["line"] + 1: one["message"] for one in reported if one["severity"] == "error"}


CHECKERS = pytest.mark.parametrize("check", [check_with_mypy, check_with_pyright], ids=["mypy", "pyright"])


@CHECKERS
def test_correct_use_passes(check: Callable[[Path, Path, Path], dict[int, str]], python: Path, tmp_path: Path) -> None:
    """The checker has no complaint about a correct script, which states the type of each answer."""
    assert check(python, tmp_path, CORRECT) == {}


@CHECKERS
def test_slips_are_reported(check: Callable[[Path, Path, Path], dict[int, str]], python: Path, tmp_path: Path) -> None:
    """The checker reports every line that is marked as wrong, and no other."""
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "  # wrong: " in line}
    reported = check(python, tmp_path, WRONG)
    assert reported.keys() == wrong
    misspelt = next(number for number, line in enumerate(lines, 1) if "view.standing(" in line)
    rank = next(number for number, line in enumerate(lines, 1) if "rank: Fraction" in line)
    assert "standing" in reported[misspelt]
    assert "Fraction" in reported[rank]
