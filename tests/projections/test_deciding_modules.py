"""The modules that decide points, whose digest is in the name of each cached trace, follow from the imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

from ratings_ledger.projections.replay import trace_cache

ROOT = Path(trace_cache.__file__).parents[2]
# modules that decode records, select and score games, and continue traces
ROOTS = ("projections/facts/decoding.py", "projections/replay/replay.py")
# modules that pass on bytes, times and errors without deciding points
MODULES_WITHOUT_INFLUENCE = {
    "ledger/__init__.py", "ledger/clock.py", "ledger/errors.py", "ledger/own_files.py",
    "ledger/processes/memory.py", "ledger/rejections.py", "ledger/store/dialect.py",
    "ledger/store/log.py", "ledger/store/schema.py",
}  # fmt: skip


def iterate_imported_files(path: Path) -> Iterator[Path]:
    """Yield the files of the program that a module imports when it runs, also inside its functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    type_checking_nodes = {
        node for test in ast.walk(tree) if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for statement in test.body for node in ast.walk(statement)
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in type_checking_nodes:
            module = str(node.module)
            for name in (module, *(f"{module}.{alias.name}" for alias in node.names)):
                if name.startswith("ratings_ledger."):
                    place = ROOT.joinpath(*name.split(".")[1:])
                    yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists())


def test_digest_covers_every_module_that_decides_points() -> None:
    """Every module that these roots import is in the digest, or listed as one without influence on points."""
    reached, waiting = set[Path](), [ROOT / name for name in ROOTS]
    waiting += (ROOT / "projections" / "rules").glob("*.py")
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += iterate_imported_files(path)
    assert len(reached) > len(ROOTS) + len(MODULES_WITHOUT_INFLUENCE)
    assert {
        path.relative_to(ROOT).as_posix() for path in reached - {*trace_cache.list_deciding_modules()}
    } <= MODULES_WITHOUT_INFLUENCE


def test_every_folder_of_deciding_modules_has_some() -> None:
    """Every listed folder still has modules, so none was renamed or emptied."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in trace_cache.list_deciding_modules()}
    assert folders == {*trace_cache.DECIDING_FOLDERS}
