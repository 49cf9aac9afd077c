"""`ratings demo`: the commands that it shows run to the end, fit a terminal of 80 columns, and leave nothing behind."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_docs import list_pages_with_commands
from output_filters import remove_newcomer_notes

from ratings_ledger.cli.commands import demo


@pytest.mark.slow
def test_demo_completes_and_leaves_nothing(
    ratings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`demo` runs all of its commands to the end and leaves no files behind."""
    monkeypatch.setattr(demo.tempfile, "tempdir", str(tmp_path))
    result = ratings("demo")
    assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, "")
    printed_commands = [line for line in result.stdout.splitlines() if line.startswith("$ ratings ")]
    assert len(printed_commands) == sum(len(commands) for _, commands in demo.STEPS)
    assert result.stdout.endswith(demo.NEXT_STEPS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_demo_output_fits_80_columns(ratings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """No line that `demo` prints is wider than 80 columns."""
    monkeypatch.setattr(demo.tempfile, "tempdir", "/tmp")
    assert [line for line in ratings("demo").stdout.splitlines() if len(line) > 80] == []


def test_next_steps_run_as_they_are_written(
    ratings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next steps that `demo` prints run in a folder with nothing but a table, with names in place of capitals."""
    monkeypatch.chdir(tmp_path)
    commands = [
        line.removeprefix("  ratings ") for line in demo.NEXT_STEPS.splitlines() if line.startswith("  ratings ")
    ]
    init, import_table, correct, *remaining = map(shlex.split, commands)
    Path("games.csv").write_text("Date,White,Black,Result\n2024-01-05,Anna,Ben,1-0\n2024-01-06,Ben,Cleo,1/2-1/2\n")
    assert ratings(*init).exit_code == 0
    result = ratings(*import_table)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "2 would be appended; the head is 2.")
    assert ratings(*(word for word in import_table if word != "--dry-run")).exit_code == 0
    names = {"GAME": "2024-01-05-1", "WINNER": "Ben", "LOSER": "Anna"}
    result = ratings(*(names.get(word, word) for word in correct))
    assert (result.exit_code, "what game.corrected would do" in result.stdout) == (0, True)
    for command in remaining:
        assert ratings(*command).exit_code == 0


def test_every_example_is_used_and_documented() -> None:
    """Every example file is listed in the README of the examples, and every data file is used by the demo or a page."""
    readme = (demo.EXAMPLES / "README.md").read_text(encoding="utf-8")
    examples = [path.name for path in demo.EXAMPLES.iterdir() if path.name != "README.md"]
    assert [name for name in examples if f"]({name})" not in readme] == []
    commands = " ".join(command for _, step_commands in demo.STEPS for command in step_commands)
    commands += " ".join(page.read_text(encoding="utf-8") for page in list_pages_with_commands())
    assert [name for name in examples if name.endswith((".csv", ".jsonl", ".toml")) and name not in commands] == []


@pytest.mark.slow
def test_demo_shows_what_its_comments_say(ratings: Callable[..., Any]) -> None:
    """The output of `demo` contains what its comments announce."""
    stdout = ratings("demo").stdout
    for line in (
        "bonus: played 1490 s, more than 600",
        "Not zero-sum: minted 200, burned 1.",
        "of places 2 and 3, divided by 2",
        "Nothing was recorded; this is what game.corrected would do.",
        "gm-4: 1 Åke, 2 Ada: swapped",
        "\nsum            0\n",
    ):
        assert line in stdout


@pytest.mark.slow
def test_kept_demo_ledger_is_never_overwritten(
    ratings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`demo --keep` keeps its ledger where it was asked to and never overwrites an existing one."""
    monkeypatch.chdir(tmp_path)
    assert ratings("demo", "--keep", "kept").exit_code == 0
    assert ratings("verify", db="kept/ratings.db").exit_code == 0
    assert sorted(path.name for path in demo.EXAMPLES.iterdir() if path.suffix == ".db") == []
    assert (tmp_path / "kept" / "site" / "index.html").exists()
    result = ratings("demo", "--keep", "kept")
    assert result.exit_code == 2
    assert "already holds a ledger" in result.stderr


def test_kept_demo_names_the_page_to_open(
    ratings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line of a demo that is kept names the file to open; without the extra `web` it says what is missing."""
    monkeypatch.setattr(demo, "STEPS", demo.STEPS[:1])
    result = ratings("demo", "--keep", tmp_path / "with")
    assert result.stdout.splitlines()[-1].endswith(f"open {tmp_path / 'with' / 'site' / 'index.html'}")
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    result = ratings("demo", "--keep", tmp_path / "without")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (0, demo.WEB_EXTRA_MISSING)
    assert not (tmp_path / "without" / "site").exists()
