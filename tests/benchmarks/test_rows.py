"""The benchmarks run at a small size, even if the packages that they compare with are not installed."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the extra fast is not installed")

from benchmarks.__main__ import main
from benchmarks.measuring import Call, ChildFailed, measure, run_in_turn


@pytest.mark.slow
def test_row_prints_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At a tiny size a row prints its table and names each package that is not installed."""
    main(["--rows", "rebuild", "--games", "20", "--repetitions", "1", "--data", str(tmp_path)])

    what = "full rebuild of 20 games of four, nothing cached, SQLite, against"
    output = capsys.readouterr().out
    if find_spec("pyarrow") is None:
        assert f"| {what} the decoding limit | skipped: pyarrow is not installed |  |  |  |  |" in output
    else:
        assert f"| {what} the decoding limit | rebuild: " in output
    if find_spec("eventsourcing") is None:
        assert f"| {what} eventsourcing | skipped: eventsourcing is not installed |  |  |  |  |" in output


def test_unknown_row_names_known_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Asking for an unknown row is a usage error that names the known rows."""
    with pytest.raises(SystemExit) as process:
        main(["--rows", "rebuild,speed"])

    assert process.value.code == 2
    assert "there is no row 'speed'; there are rebuild, replay, " in capsys.readouterr().err


def test_functions_that_rows_call_by_name_exist() -> None:
    """Rows name the functions of their processes in strings, and each of these functions exists."""
    root = Path(__file__).parents[2]
    texts = [path.read_text() for path in (root / "benchmarks").rglob("*.py")]
    called = {match.groups() for text in texts for match in re.finditer(r'"(benchmarks[\w.]*):(\w+)"', text)}
    assert len(called) > 30
    for module, function in called:
        tree = ast.parse((root / f"{module.replace('.', '/')}.py").read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (module, function)


def test_calls_run_in_turn() -> None:
    """Calls run once per repetition, and the warm-up is not counted; calls whose packages are missing are left out."""
    calls = {
        "a": Call("benchmarks.measuring:run_cold_command", {"command": ["true"]}),
        "b": Call("benchmarks.measuring:run_cold_command", lambda: {"command": ["true"]}),
        "c": Call("benchmarks.measuring:run_cold_command", {}, needs=("no_such_package",)),
    }

    runs = run_in_turn(calls, repetitions=1, warm_up=1)

    assert {name: len(attempts) for name, attempts in runs.items()} == {"a": 1, "b": 1}
    assert all(run.seconds > 0 and run.peak_bytes > 0 for attempts in runs.values() for run in attempts)


def test_failing_call_passes_on_its_message() -> None:
    """When a measured function fails, the error carries its message."""
    with pytest.raises(ChildFailed, match="false: "):
        measure(Call("benchmarks.measuring:run_cold_command", {"command": ["false"]}))
