"""The JSON of a command is the dump of a result that programs can also get from the library, with few exceptions."""

import ast
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from ledgers import set_clock
from stores import make_ruled_ledger

import ratings_ledger as rl
from ratings_ledger.cli.main import ratings as program
from ratings_ledger.ledger import clock

ROOT = Path(__file__).parents[2]
# the commands that do not print a result through `emit`, with the reason
WITHOUT_EMIT = {
    "export standings": "a result, Standings, on each line",
    "export changes": "a result, PlayerChange, on each line",
    "grants": "the command reads no ledger",
    "zone": "one name and the position of its event",
}
FILES_CALLING_PRINT_JSON = {"cli/commands/grants.py", "cli/commands/init.py"}


def iterate_commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their names."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from iterate_commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _prints_result(command: click.Command) -> bool:
    """Return whether the function of a command, or a function of its file that it calls, prints a result."""
    assert command.callback is not None
    function = inspect.unwrap(command.callback)
    module = inspect.getmodule(function)
    assert module is not None
    tree = ast.parse(inspect.getsource(module))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    waiting, visited = [function.__name__], set[str]()
    while waiting:
        name = waiting.pop()
        visited.add(name)
        nodes = [*ast.walk(functions[name])]
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        if names & {"emit"} or attributes & {"append_and_report", "report"}:
            return True
        waiting += names & functions.keys() - visited
    return False


def test_every_json_is_a_result() -> None:
    """Each command with --format json prints results through `emit`, or `WITHOUT_EMIT` says why not."""
    with_json = {
        name: command
        for name, command in iterate_commands(program)
        for option in command.params
        if option.name == "output_format" and isinstance(option.type, click.Choice) and "json" in option.type.choices
    }
    without_emit = {name for name, command in with_json.items() if not _prints_result(command)}
    assert without_emit == WITHOUT_EMIT.keys()
    assert len(with_json) > 40
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "print_json"
    }
    assert files == FILES_CALLING_PRINT_JSON


@pytest.mark.slow_cases
def test_status_prints_what_programs_get(
    copy_ledger: Callable[..., str], ratings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The status of a ledger with a rebuild and a verification dumps to the JSON of the command."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    url = copy_ledger(make_ruled_ledger)
    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url).exit_code == 0
    set_clock(monkeypatch, clock.now())
    with rl.open(url) as ledger:
        assert json.loads(ratings("status", "--format", "json", db=url).stdout) == ledger.status().model_dump()
