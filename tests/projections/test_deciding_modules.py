"""The modules that decide about points, whose digest is in the name of each kept trace, follow from the imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

from ratings_ledger.projections.replay import trace_cache

ROOT = Path(trace_cache.__file__).parents[2]
# where points come about: records are decoded, games selected and scored, and traces continued
ROOTS = ("projections/facts/decoding.py", "projections/replay/replay.py")
# modules that hand on bytes, times, and errors as they are
ELSEWHERE = {
    "ledger/__init__.py", "ledger/clock.py", "ledger/errors.py", "ledger/own_files.py",
    "ledger/processes/memory.py", "ledger/rejections.py", "ledger/store/dialect.py",
    "ledger/store/log.py", "ledger/store/schema.py",
}  # fmt: skip


def imported_files(path: Path) -> Iterator[Path]:
    """Return the files of the program that a module imports when it runs, also inside its functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unused = {
        node for test in ast.walk(tree) if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for statement in test.body for node in ast.walk(statement)
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in unused:
            module = str(node.module)
            for name in (module, *(f"{module}.{alias.name}" for alias in node.names)):
                if name.startswith("ratings_ledger."):
                    place = ROOT.joinpath(*name.split(".")[1:])
                    yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists())


def test_digest_covers_every_module_that_decides() -> None:
    """Every module that is imported where points come about is in the digest, or listed here as one that decides
    nothing about them."""
    reached, waiting = set[Path](), [ROOT / name for name in ROOTS]
    waiting += (ROOT / "projections" / "rules").glob("*.py")
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += imported_files(path)
    assert len(reached) > len(ROOTS) + len(ELSEWHERE)
    assert {path.relative_to(ROOT).as_posix() for path in reached - {*trace_cache.list_deciding_modules()}} <= ELSEWHERE


def test_every_folder_of_deciding_modules_has_some() -> None:
    """No folder in the list was renamed or emptied."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in trace_cache.list_deciding_modules()}
    assert folders == {*trace_cache.DECIDING_FOLDERS}
