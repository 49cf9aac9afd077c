"""docs/library.md: what it shows is what a program gets."""

import doctest
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from make_docs import FOLDER, ROOT

pytestmark = pytest.mark.slow

PAGE = FOLDER / "library.md"
BLOCK = re.compile(r"```pycon\n(.*?)```", re.DOTALL)


def test_page_shows_what_a_program_gets(
    ratings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every example of the page gives what stands below it, on the ledger that its first lines make."""
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for line in re.findall(r"^ratings (.*)$", text, re.MULTILINE):
        assert ratings(*line.split(), db="ratings.db").exit_code == 0
    blocks = BLOCK.findall(text)
    if any(find_spec(library) is None for library in ("pandas", "polars", "pyarrow")):
        blocks = [block for block in blocks if ".to_pandas" not in block]
    examples = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, None, None)
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert (result.attempted > 8, result.failed) == (True, 0), "".join(told)
