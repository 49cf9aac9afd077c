"""docs/library.md: what it shows is what a program gets."""

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from console_blocks import run_examples
from make_docs import FOLDER, ROOT

pytestmark = pytest.mark.slow

PAGE = FOLDER / "library.md"


def test_page_shows_what_a_program_gets(
    ratings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every example of the page gives what stands below it, on the ledger that its first lines make."""
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for line in re.findall(r"^ratings (.*)$", text, re.MULTILINE):
        assert ratings(*line.split(), db="ratings.db").exit_code == 0
    if any(find_spec(library) is None for library in ("pandas", "polars", "pyarrow")):
        text = re.sub(r"```pycon\n(?:(?!```).)*\.to_pandas.*?```", "", text, flags=re.DOTALL)
    assert run_examples(text) == ""
