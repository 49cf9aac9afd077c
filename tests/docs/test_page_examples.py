"""Run the commands of all pages and the cells of all notebooks: their output is what the pages show."""

import json
import re
from pathlib import Path

import pytest
from console_blocks import UnexpectedOutcome, mask_volatile, refresh_page, run_examples
from make_docs import NOTEBOOKS, ROOT, RULE_FIX, list_pages_with_commands
from notebooks import refresh_notebook

# these have tests of their own: one installs a package, the other needs a real club's games
TESTED_ELSEWHERE = {ROOT / "docs" / "adding-a-rule.md", RULE_FIX}
PAGES = [page for page in list_pages_with_commands() if page not in TESTED_ELSEWHERE]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """The commands on each page print what the page shows."""
    assert mask_volatile(refresh_page(page, tmp_path, ROOT)) == mask_volatile(page.read_text(encoding="utf-8")), (
        "make docs"
    )


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_give_what_the_notebook_shows(notebook: Path) -> None:
    """The cells of each notebook give what it shows."""
    assert mask_volatile(refresh_notebook(notebook)) == mask_volatile(notebook.read_text(encoding="utf-8")), "make docs"


def test_there_are_notebooks() -> None:
    """The examples include three notebooks: an audit, a season, and a comparison of two systems."""
    assert [path.stem for path in NOTEBOOKS] == ["audit", "season", "two-systems"]


def test_cells_are_run_as_jupyter_runs_them(tmp_path: Path) -> None:
    """A cell's outputs are its printed text and its last expression, with HTML if any; a failing cell fails the run."""
    table = "class Table:\n    def _repr_html_(self): return '<table></table>'\n    def __repr__(self): return 'table'"
    cells = [table, "print('a')\nTable()", "x = 1", "x / 0"]
    code = [{"cell_type": "code", "source": [source], "outputs": [], "metadata": {}} for source in cells]
    (path := tmp_path / "a.ipynb").write_text(json.dumps({"cells": code[:3]}), encoding="utf-8")
    outputs = [cell["outputs"] for cell in json.loads(refresh_notebook(path))["cells"]]
    assert (outputs[0], outputs[1][0]["text"], outputs[2]) == ([], ["a\n"], [])
    assert outputs[1][1]["data"] == {"text/html": ["<table></table>"], "text/plain": ["table"]}
    path.write_text(json.dumps({"cells": code}), encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        refresh_notebook(path)


@pytest.mark.slow
def test_python_examples_of_the_readme_give_the_output_shown() -> None:
    """The Python examples of the README give the output that it shows."""
    assert run_examples((ROOT / "README.md").read_text(encoding="utf-8")) == ""


def test_readme_is_short() -> None:
    """The README has at most 200 lines, among them 8 commands and 8 lines of Python.

    Its first screen says whom it is for, what it answers and how to set it up.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    first = "\n".join(text.splitlines()[:30])
    words = ("For clubs", "Why did I", "make demo", "make test", "pip install")
    assert [word for word in words if word not in first] == []
    assert len(re.findall(r"^\$ ratings", text, re.MULTILINE)) == 8
    assert len(re.findall(r"^(?:>>>|\.\.\.) +\S", text, re.MULTILINE)) == 8


def test_readme_is_among_the_pages() -> None:
    """The README and the pages tested elsewhere are among the pages with commands."""
    assert {ROOT / "README.md", *TESTED_ELSEWHERE} < {*list_pages_with_commands()}


def test_page_can_hold_files(tmp_path: Path) -> None:
    """A file shown on a page is written first, so a command on the page can read it from standard input."""
    (tmp_path / "root" / "examples").mkdir(parents=True)
    page = tmp_path / "root" / "page.md"
    game = (
        '{"game_id": "g-1", "game": "go", "participants": [{"player": "ä", "place": 1}, {"player": "b", "place": 2}]}'
    )
    page.write_text(
        f"""```json title="folder/game.json"\n{game}\n```\n
```console\n$ ratings init --no-rules\n$ ratings record --by me < folder/game.json\nnothing yet\n```\n""",
        encoding="utf-8",
    )
    (tmp_path / "here").mkdir()
    shown = refresh_page(page, tmp_path / "here", tmp_path / "root")
    assert (
        "< folder/game.json\nnote: 2 new players: ä, b\n1 appended; the head is 1.\nNo points change.\n```\n" in shown
    )


def test_changed_output_is_replaced_and_failure_is_refused(tmp_path: Path) -> None:
    """Output that differs from the page is replaced. A command must exit with the code that the page states, or 0."""
    root = tmp_path / "root"
    (root / "examples").mkdir(parents=True)
    page = root / "page.md"
    page.write_text(
        "```console\n$ ratings --version\nratings, version 0.0.0\n\n$ ratings init\n```\n", encoding="utf-8"
    )
    (first := tmp_path / "first").mkdir()
    shown = refresh_page(page, first, root)
    assert "version 0.0.0" not in shown
    assert shown.endswith("\n\n$ ratings init\n```\n")
    page.write_text("```console\n$ ratings verify\n```\n", encoding="utf-8")
    (second := tmp_path / "second").mkdir()
    with pytest.raises(UnexpectedOutcome, match="ended with 3"):
        refresh_page(page, second, root)
    page.write_text("```console\n$ ratings verify  # exit 3\n```\n", encoding="utf-8")
    (third := tmp_path / "third").mkdir()
    assert refresh_page(page, third, root) == page.read_text(encoding="utf-8")


def test_only_varying_parts_are_masked() -> None:
    """Only what varies from run to run is masked: hashes, current times and durations."""
    assert mask_volatile(f"38:{'ab' * 32} at 2026-11-21T08:03:28.968778Z in 0.1 s") == "38:HASH at TIME in SECONDS"
    assert mask_volatile("played 2024-10-11 18:55 UTC") == "played 2024-10-11 18:55 UTC"
