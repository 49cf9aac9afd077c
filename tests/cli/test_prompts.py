"""Questions at a terminal, asked and answered in a process that has one."""

import sys
from pathlib import Path

import pytest
import terminals
from terminals import CTRL_C, CTRL_D, type_answers

QUESTION_SCRIPT = """
import sys
import click
from ratings_ledger.cli import main
from ratings_ledger.cli.arguments import prompts

@click.command()
def ask_question():
    click.echo(prompts.ask("Is it anna?", ("yes", "yesterday", "no")) if prompts.can_ask() else "no terminal")

main.ratings = ask_question
sys.exit(main.invoke([]))
"""
QUESTION = "Is it anna? [yes, yesterday, no] "


@pytest.fixture(autouse=True)
def _run_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the terminal run a program that asks one question."""
    monkeypatch.setattr(terminals, "PROGRAM", (sys.executable, "-c", QUESTION_SCRIPT))


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [("n\r", "no"), ("NO\r", "no"), ("yes\r", "yes"), ("yest\r", "yesterday")],
)
def test_answer_is_chosen_by_its_beginning(answer: str, chosen: str, tmp_path: Path) -> None:
    """An answer is chosen by its beginning or in full, in upper or lower case."""
    code, stdout, _ = type_answers([], [(QUESTION, answer)], folder=tmp_path)
    assert (code, stdout) == (0, f"{chosen}\n")


@pytest.mark.parametrize("answer", ["\r", "perhaps\r", "y\r", "\udcff\r", "x" * 300 + "\r"])
def test_question_is_repeated_after_other_lines(answer: str, tmp_path: Path) -> None:
    """After a line that matches no answer, or several, the program asks again."""
    dialogue = [(QUESTION, answer), ("type one of: yes, yesterday, no ", "n\r")]
    code, stdout, _ = type_answers([], dialogue, folder=tmp_path)
    assert (code, stdout) == (0, "no\n")


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
def test_ctrl_c_and_ctrl_d_end_asking(key: str, tmp_path: Path) -> None:
    """Ctrl-C and Ctrl-D end the command, which says that nothing was recorded."""
    code, stdout, screen = type_answers([], [(QUESTION, key)], folder=tmp_path)
    assert (code, stdout) == (130, "")
    assert screen.endswith("\r\nnothing was recorded\r\nratings: interrupted\r\n")


def test_without_a_terminal_nobody_is_asked() -> None:
    """Without a terminal for the answers, nobody is asked."""
    stdout, _ = terminals.run_on_terminal(piped=True)
    assert stdout == "no terminal\n"
