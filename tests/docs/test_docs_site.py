"""The check of the built documentation site, and the public names in its reference."""

import inspect
from pathlib import Path
from types import FunctionType

import pytest
from check_site import find_problems
from public_names import first_sentence, names_by_kind, other_names, public_members

import ratings_ledger


def test_whole_site_has_no_problems(tmp_path: Path) -> None:
    """A site may link to its pages, headings and files and to other hosts, and may embed data in its stylesheet."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "style.css").write_text("body {background: url(data:image/png;base64,AA)}", encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<link rel="canonical" href="https://club.example/"><link rel="stylesheet" href="style.css?v=1">'
        '<a href="docs/a.html#b%C3%BC">a</a><a href="https://club.example/x">x</a>'
        '<a href="mailto:a@club.example">m</a>',
        encoding="utf-8",
    )
    (tmp_path / "docs" / "a.html").write_text('<h1 id="bü">B</h1><a href="#bü">b</a><a href="../">home</a>', "utf-8")
    assert find_problems(tmp_path) == []


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<a href="b.html">b</a>', "index.html: b.html has no target"),
        ('<a href="#b">b</a>', "index.html: #b has no target"),
        ('<img src="b.png">', "index.html: b.png has no target"),
        ('<script src="//cdn.example/a.js"></script>', "index.html: loads //cdn.example/a.js from another host"),
        (
            '<link rel="stylesheet" href="https://cdn.example/a.css">',
            "index.html: loads https://cdn.example/a.css from another host",
        ),
        ("<style>@import 'https://cdn.example/a.css'</style>", "index.html: loads something from another host"),
    ],
)
def test_broken_and_foreign_links_are_found(tmp_path: Path, page: str, problem: str) -> None:
    """A link without a target is found, and so is anything that a browser loads from another host."""
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    assert find_problems(tmp_path) == [problem]


def test_site_without_pages_is_a_problem(tmp_path: Path) -> None:
    """A folder without pages is a problem, not a site without problems."""
    assert find_problems(tmp_path) == [f"{tmp_path}: there are no pages; run: make docs-site"]


def test_reference_has_every_public_name() -> None:
    """Every public class and function is in the reference once, under its own name, with the aliases of the object."""
    shown = [name for names in names_by_kind().values() for name in names]
    aliases = [alias for name in shown for alias in other_names(name)]
    values = {name: getattr(ratings_ledger, name) for name in ratings_ledger.__all__}
    assert {*shown, *aliases} == {
        name for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)
    }
    assert len(shown) == len({*shown})


def test_every_member_of_the_ledger_has_a_sentence() -> None:
    """Each public member of the ledger, its views and proposals has a docstring, and first sentences stand alone."""
    for name in names_by_kind()["The ledger"]:
        members = vars(getattr(ratings_ledger, name)).items()
        public = {
            member
            for member, value in members
            if not member.startswith("_") and isinstance(value, property | FunctionType)
        }
        assert {*public_members(name)} == public, name
    assert {"at", "propose", "close"} <= {*public_members("Ledger")}
    assert first_sentence("Return it. Raises `Unknown`.") == "Return it."
    assert (
        first_sentence("Return a file path, or postgresql://...\n\nMore.") == "Return a file path, or postgresql://..."
    )
