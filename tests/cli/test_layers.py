"""The structure of the code: layers, modules that run SQL, the clock, docstrings, sizes."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import click
import pytest
from own_rules import list_built_in_rules, list_state_rules, load_built_in_rule
from stores import make_ruled_ledger

from ratings_ledger.cli.main import COMMANDS, ratings

ROOT = Path(__file__).parents[2]
LAYERS = ("ledger", "projections", "ratings_ledger", "cli")
# the package has symbolic links to the other folders, which rglob does not follow
FILES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
SQL_FILES = {
    "ledger/store/log.py", "ledger/store/appending.py", "ledger/store/sqlite.py", "ledger/store/postgres.py",
    "ledger/store/opening.py", "ledger/verification.py", "ledger/intake/spool.py", "ledger/store/upgrading.py",
    "ledger/store/postgres_catalogue.py", "ledger/store/postgres_roles.py",
    "ledger/store/runs.py", "ledger/store/dialect.py", "ledger/store/catalogue.py",
    "ledger/store/postgres_connection.py",
    "projections/stored/generations.py", "projections/stored/sql_history.py",
}  # fmt: skip
SQL_CALLS = {"execute", "executemany", "executescript", "exec_driver_sql", "scalar_one", "begin_nested"}
TIME_CALLS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
TIME_CALLS |= {"time.monotonic", "time.perf_counter", "time.localtime", "time.gmtime", "time.strftime", "time.ctime"}
MONOTONIC_FILES = {"ledger/store/postgres_connection.py", "cli/output/progress.py", "cli/commands/nightly.py"}


def format_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parse_file(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def walk_nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(parse_file(path))


def strip_package(module: str) -> str:
    """Return a module's name from its folder on: ratings_ledger.ledger.clock is ledger.clock."""
    inner = module.removeprefix("ratings_ledger.")
    return inner if inner.split(".")[0] in LAYERS else module


def list_imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, also within functions, without the prefix `ratings_ledger.`."""
    for node in walk_nodes(path):
        if isinstance(node, ast.Import):
            yield from (strip_package(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{format_name(path)} imports relatively"
            yield strip_package(node.module or "")


def list_calls(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the last two names of every dotted call, with its line."""
    for node in walk_nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            before = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            yield f"{before}.{node.func.attr}", node.lineno


@pytest.mark.slow
def test_imports_go_down_the_layers() -> None:
    """Imports go only from a later to an earlier layer of `LAYERS`, and never to tests, migrations or scripts."""
    violations = [
        f"{format_name(path)} imports {module}"
        for path in FILES
        for module in list_imported_modules(path)
        for layer in (path.relative_to(ROOT).parts[0],)
        if module.split(".")[0] in (*LAYERS[LAYERS.index(layer) + 1 :], "tests", "migrations", "scripts")
        and format_name(path) != "ratings_ledger/__main__.py"
    ]

    assert violations == []


def test_no_module_is_loaded_twice() -> None:
    """The folders are packages of `ratings_ledger` only: no module is also loaded under its bare name."""
    assert [name for name in sys.modules if name.partition(".")[0] in ("cli", "ledger", "projections")] == []


# the folders and modules of a layer in order; each imports only those before it
LAYER_PARTS = {
    "ledger": ("errors", "rejections", "own_files", "processes", "failures", "events", "clock", "store",
               "validation", "intake", "backups", "verification"),
    "projections": ("program", "expected_scores", "exact_numbers", "deterministic_math", "arrays", "contract", "rules",
                    "lists", "rulesets", "compiling", "game_clock", "facts", "replay", "queries", "diff", "snapshot",
                    "admission", "stored", "cluster"),
    "cli": ("interrupts", "completion", "output", "arguments", "main", "commands", "start"),
}  # fmt: skip


def find_imported_files(path: Path) -> set[str]:
    """Return the files of this program that a file imports, as dotted names."""
    files_by_module = {format_name(file).removesuffix(".py").replace("/", "."): file for file in FILES}
    modules = {*list_imported_modules(path)}
    for node in walk_nodes(path):
        if isinstance(node, ast.ImportFrom):
            modules |= {strip_package(f"{node.module}.{alias.name}") for alias in node.names}
    return modules & files_by_module.keys()


@pytest.mark.slow_cases
@pytest.mark.parametrize("layer", LAYER_PARTS)
def test_parts_import_only_the_parts_before_them(layer: str) -> None:
    """A file of a layer imports only from its own part and the parts before it, and every part has a place in the
    order."""
    parts_in_order = LAYER_PARTS[layer]
    assert {path.stem for path in (ROOT / layer).iterdir() if not path.name.startswith("__")} >= {*parts_in_order}
    violations = []
    for path in FILES:
        parts = path.relative_to(ROOT / layer).with_suffix("").parts if path.is_relative_to(ROOT / layer) else ()
        if not parts or parts == ("__init__",):
            continue
        assert parts[0] in parts_in_order, f"{format_name(path)} is in a part without a place"
        for module in find_imported_files(path):
            module_parts = module.split(".")
            if (
                module_parts[0] == layer
                and len(module_parts) > 1
                and parts_in_order.index(module_parts[1]) > parts_in_order.index(parts[0])
            ):
                violations.append(f"{format_name(path)} imports {module}")
    assert violations == []


@pytest.mark.slow
def test_imports_form_no_cycle() -> None:
    """Imports from file to file, also within functions, form no cycle."""
    remaining = {format_name(path).removesuffix(".py").replace("/", "."): find_imported_files(path) for path in FILES}
    while leaves := [name for name, imported in remaining.items() if not imported & remaining.keys() - {name}]:
        for name in leaves:
            del remaining[name]
    assert sorted(remaining) == []


# implementations of one interface; calls of rules, which are named after what they call; and the public package
REPEATED_NAMES = (
    "projections/rules/",
    "projections/lists/",
    "ledger/events/game_types/",
    "ledger/store/sqlite.py",
    "ledger/store/postgres.py",
    "ledger/store/postgres_catalogue.py",
    "projections/replay/rule_calls.py",
    "ratings_ledger/",
)


def test_public_names_are_unique() -> None:
    """No two files have a public class or function of the same name, apart from `REPEATED_NAMES` and commands."""
    files_by_name: dict[str, list[str]] = {}
    for path in FILES:
        name = format_name(path)
        for node in parse_file(path).body:
            is_command = name.startswith("cli/") and bool(getattr(node, "decorator_list", []))
            if is_public(node) and not is_command and not name.startswith(REPEATED_NAMES):
                files_by_name.setdefault(node.name, []).append(name)  # type: ignore[attr-defined]
    assert {name: files for name, files in files_by_name.items() if len(files) > 1} == {}


def test_sql_runs_only_in_store_modules() -> None:
    """Only the store modules run SQL."""
    violations = [
        f"{format_name(path)}:{line} calls {call}"
        for path in FILES
        if format_name(path) not in SQL_FILES
        for call, line in list_calls(path)
        if call.split(".")[1] in SQL_CALLS
    ]

    assert violations == []


@pytest.mark.slow
def test_no_code_compares_the_name_of_a_store() -> None:
    """Differences between stores are in the dialects: no code compares a name with that of a store."""
    names = {"sqlite", "postgresql", "postgres"}
    violations = [
        f"{format_name(path)}:{node.lineno}"
        for path in FILES
        for node in walk_nodes(path)
        if (isinstance(node, ast.Compare) and names & {part.value for part in ast.walk(node) if is_text(part)})
        or (isinstance(node, ast.Attribute) and ast.unparse(node).endswith("dialect.name"))
    ]

    assert violations == []


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.slow
def test_only_the_clock_reads_the_time() -> None:
    """Only the clock module reads the time, except for monotonic time in a few named modules."""
    violations = [
        f"{format_name(path)}:{line} calls {call}"
        for path in FILES
        if format_name(path) != "ledger/clock.py"
        for call, line in list_calls(path)
        if call in TIME_CALLS and not (call == "time.monotonic" and format_name(path) in MONOTONIC_FILES)
    ]
    violations += [
        f"{format_name(path)} imports names from time"
        for path in FILES
        for node in walk_nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
    ]

    assert violations == []


def test_rules_import_only_the_contract() -> None:
    """Rules import only the standard library, pydantic and the contract."""
    allowed = sys.stdlib_module_names | {"pydantic"}
    violations = [
        f"{format_name(path)} imports {module}"
        for path in FILES
        if format_name(path).startswith("projections/rules/")
        for module in list_imported_modules(path)
        if module.split(".")[0] not in allowed and module != "projections.contract"
    ]

    assert violations == []


def is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")


def list_undocumented(path: Path) -> Iterator[str]:
    """Yield the public functions and classes of a module, and public methods, without a docstring."""
    tree = parse_file(path)
    owners: list[ast.Module | ast.ClassDef] = [
        tree,
        *(n for n in tree.body if isinstance(n, ast.ClassDef) and is_public(n)),
    ]
    for owner in owners:
        for node in owner.body:
            # the methods of `Commands` override documented methods of `click.Group`
            inherited = isinstance(owner, ast.ClassDef) and owner.name == "Commands"
            assert isinstance(owner, ast.Module | ast.ClassDef)
            if is_public(node) and not inherited and ast.get_docstring(node) is None:  # type: ignore[arg-type]
                yield f"{format_name(path)}:{node.lineno} {node.name}"  # type: ignore[attr-defined]


def test_public_code_has_docstrings() -> None:
    """Every module and every public function, class and method has a docstring."""
    assert [format_name(path) for path in FILES if not ast.get_docstring(parse_file(path))] == []
    assert [name for path in FILES for name in list_undocumented(path)] == []


LONG_RULE_LINES = {
    # two ways of scoring, by game and by period
    "projections/rules/egf.py": 270,
    "projections/rules/tenhou.py": 270,
    "projections/rules/glicko_2.py": 310,
    # bonuses, shared seats, guests and weights, each explained
    "projections/rules/placement_points_2.py": 310,
    # two ways of scoring, by month and by game, with a table and what changed between versions of the regulations
    "projections/rules/fide_elo.py": 440,
    # eight options that combine freely: margins, K by games, teams, draws and so on
    "projections/rules/pairwise_elo_2.py": 470,
}


def test_files_stay_short() -> None:
    """Files have under 800 lines, and rule files at most 250 for each of their rules, or as `LONG_RULE_LINES` says."""
    lengths = {
        format_name(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in [*FILES, *ROOT.glob("tests/**/*.py")]
    }

    assert {name: length for name, length in lengths.items() if length >= 800} == {}
    rules_by_file = Counter(
        strip_package(load_built_in_rule(name).explain.__module__).replace(".", "/") + ".py"
        for name in (*list_built_in_rules(), *list_state_rules())
    )
    rules = {name: length for name, length in lengths.items() if name.startswith("projections/rules/")}
    assert {
        name: length
        for name, length in rules.items()
        if length > LONG_RULE_LINES.get(name, 250 * max(rules_by_file[name], 1))
    } == {}


# the command line and the public package join many parts, and a snapshot has every query as a method
MANY_IMPORTS = ("cli/", "ratings_ledger/", "projections/snapshot.py")


FOLDERS = sorted({path.parent for path in FILES})
LEVELS_MAX = 8


@pytest.mark.slow
def test_import_chains_within_a_folder_are_short() -> None:
    """Within a folder, a chain of imports from file to file has at most eight files."""

    @cache
    def count_levels(path: Path) -> int:
        folder = format_name(path.parent).replace("/", ".")
        modules = {f"{folder}.{module.stem}": module for module in path.parent.glob("*.py")}
        imported = (modules[name] for name in find_imported_files(path) & modules.keys() if modules[name] != path)
        return 1 + max(map(count_levels, imported), default=0)

    levels = {format_name(folder): max(count_levels(path) for path in folder.glob("*.py")) for folder in FOLDERS}
    assert {name: number for name, number in levels.items() if number > LEVELS_MAX} == {}
    assert max(levels.values()) > 4


@pytest.mark.slow
def test_only_named_files_import_many_modules() -> None:
    """Only files of `MANY_IMPORTS` import more than 15 files of this program, counting imports within functions."""
    numbers = {
        format_name(path): len(find_imported_files(path))
        for path in FILES
        if not format_name(path).startswith(MANY_IMPORTS)
    }

    assert {name: number for name, number in numbers.items() if number > 15} == {}


Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_explained(node: Function, lines: list[str]) -> bool:
    """Return whether there is a comment on the first line of a function, or above the function."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return lines[first - 2].lstrip().startswith("#") or "#" in lines[node.lineno - 1]


def count_parameters(node: Function) -> int:
    """Return the number of parameters of a function without `self` or `cls`; 0 for a command with options."""
    if any(ast.unparse(decorator).startswith(("click.option", "click.argument")) for decorator in node.decorator_list):
        return 0
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


@pytest.mark.slow
def test_functions_stay_small() -> None:
    """No function has more than 60 lines or seven parameters without a comment beside it that gives the reason."""
    large = {}
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in walk_nodes(path):
            if isinstance(node, Function) and not is_explained(node, lines):
                length, parameters = (node.end_lineno or 0) - node.lineno + 1, count_parameters(node)
                if length > 60 or parameters > 7:
                    large[f"{format_name(path)} {node.name}"] = length, parameters

    assert large == {}


def test_no_open_tasks_are_left() -> None:
    """No source file has a mark such as TODO or FIXME."""
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

    assert [format_name(path) for path in FILES if marks.search(path.read_text(encoding="utf-8"))] == []


def test_list_of_commands_equals_their_short_help() -> None:
    """The list of commands, which imports none of them, has the first sentence of the help of each."""
    context = click.Context(ratings)
    for name, (_, short_help) in COMMANDS.items():
        command = ratings.get_command(context, name)
        assert command is not None
        assert not command.hidden
        assert command.get_short_help_str(200) == short_help


SLOW_MODULES = {"alembic", "rich", "numba", "numpy", "mako"}
# a reading command on a small SQLite ledger may load numpy, but needs no module of PostgreSQL
UNNEEDED_FOR_READING = SLOW_MODULES - {"numpy"} | {"psycopg", "sqlalchemy.dialects.postgresql"}
UNNEEDED_MODULES = {
    "help": (
        ["--help"],
        SLOW_MODULES
        | {"asyncio", "concurrent.futures", "ratings_ledger.cli.commands", "json", "pydantic", "sqlalchemy"},
    ),
    "standings": (["standings", "club-catan-elo/all"], UNNEEDED_FOR_READING - {"rich"} | {"rich.console"}),
    "standings as JSON": (["standings", "club-catan-elo/all", "--format", "json"], UNNEEDED_FOR_READING),
    "explain": (
        ["explain", "anna", "club-catan-elo/all"],
        UNNEEDED_FOR_READING
        | {
            "ratings_ledger.projections.diff.attribution",
            "ratings_ledger.projections.diff.change_explanations",
            "ratings_ledger.projections.queries.survey",
        },
    ),
    "status": (["status", "--format", "json"], SLOW_MODULES),
    "import": (["import", "-"], SLOW_MODULES),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize(("arguments", "unneeded"), UNNEEDED_MODULES.values(), ids=UNNEEDED_MODULES)
def test_commands_load_only_what_they_use(
    arguments: list[str], unneeded: set[str], copy_ledger_file: Callable[..., str]
) -> None:
    """A command in a new process does not import the modules that it does not need."""
    db = copy_ledger_file(make_ruled_ledger)
    code = (
        "import sys\nfrom ratings_ledger.cli.main import invoke\n"
        f"invoke({['--db', db, *arguments]!r})\n"
        f"print(*sorted({unneeded!r} & sys.modules.keys()), file=sys.stderr)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, input="", cwd=ROOT, check=True
    )

    assert process.stderr.splitlines()[-1] == ""
