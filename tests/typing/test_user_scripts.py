"""Type checkers on user scripts with the installed wheel: correct use passes, and each error is reported."""

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

pytestmark = pytest.mark.slow  # type checkers read the whole package

HERE = Path(__file__).parent
CORRECT, WRONG = HERE / "correct.py", HERE / "wrong.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the wheel."""
    folder = tmp_path_factory.mktemp("user")
    create_environment(folder, build_wheel(tmp_path_factory.mktemp("dist")))
    return folder / "bin" / "python"


def check_with_mypy(python: Path, folder: Path, script: Path) -> dict[int, str]:
    """Return the errors that `mypy --strict` reports in a script, by line."""
    (settings := folder / "mypy.ini").write_text("[mypy]\n")
    cache = python.parent.parent / "mypy-cache"  # both scripts read the same package
    options = ["--strict", "--python-executable", python, "--config-file", settings, "--cache-dir", cache]
    completed = subprocess.run(
        [sys.executable, "-m", "mypy", *options, script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert completed.returncode in (0, 1), completed.stdout + completed.stderr
    reported = re.findall(rf"{script.name}:(\d+): error: (.*)", completed.stdout)
    assert bool(reported) == bool(completed.returncode), completed.stdout
    return {int(line): message for line, message in reported}


def check_with_pyright(python: Path, folder: Path, script: Path) -> dict[int, str]:
    """Return the errors that pyright reports in a script, by line."""
    if find_spec("pyright") is None or shutil.which("node") is None:
        pytest.skip("pyright needs its package and Node.js")
    shutil.copy(script, folder)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", python, folder / script.name]
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode in (0, 1), completed.stdout + completed.stderr
    reported = json.loads(completed.stdout)["generalDiagnostics"]
    return {
        diagnostic["range"]["start"]["line"] + 1: diagnostic["message"]
        for diagnostic in reported
        if diagnostic["severity"] == "error"
    }


CHECKERS = pytest.mark.parametrize("check", [check_with_mypy, check_with_pyright], ids=["mypy", "pyright"])


@CHECKERS
def test_correct_use_passes(check: Callable[[Path, Path, Path], dict[int, str]], python: Path, tmp_path: Path) -> None:
    """A type checker reports no error in a correct script, which states the type of each answer."""
    assert check(python, tmp_path, CORRECT) == {}


@CHECKERS
def test_wrong_lines_are_reported(
    check: Callable[[Path, Path, Path], dict[int, str]], python: Path, tmp_path: Path
) -> None:
    """A type checker reports exactly the lines that are marked as wrong."""
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    wrong_lines = {number for number, line in enumerate(lines, 1) if "  # wrong: " in line}
    reported = check(python, tmp_path, WRONG)
    assert reported.keys() == wrong_lines
    misspelt_line = next(number for number, line in enumerate(lines, 1) if "view.standing(" in line)
    rank_line = next(number for number, line in enumerate(lines, 1) if "rank: Fraction" in line)
    assert "standing" in reported[misspelt_line]
    assert "Fraction" in reported[rank_line]
