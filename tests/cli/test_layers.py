"""The shape of the code itself: layers, where SQL runs, who asks for the time, docstrings, sizes."""

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
from stores import make_ruled_ledger

from ratings_ledger.cli.main import COMMANDS, ratings
from ratings_ledger.projections.rulesets.registry import BUILT_IN

ROOT = Path(__file__).parents[2]
LAYERS = ("ledger", "projections", "ratings_ledger", "cli")
# the package has links to the other folders, which are not followed
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


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(tree_of(path))


def from_folder(module: str) -> str:
    """Return a module's name from its folder on: ratings_ledger.ledger.clock is ledger.clock."""
    inner = module.removeprefix("ratings_ledger.")
    return inner if inner.split(".")[0] in LAYERS else module


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, also inside its functions, from their folders on."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (from_folder(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} imports relatively"
            yield from_folder(node.module or "")


def called(path: Path) -> Iterator[tuple[str, int]]:
    """The dotted last two names of every call, with its line."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            before = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            yield f"{before}.{node.func.attr}", node.lineno


@pytest.mark.slow
def test_imports_go_down_the_layers() -> None:
    """Imports go only from cli to projections to ledger, and never to tests or scripts."""
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in FILES
        for module in imported(path)
        for layer in (path.relative_to(ROOT).parts[0],)
        if module.split(".")[0] in (*LAYERS[LAYERS.index(layer) + 1 :], "tests", "migrations", "scripts")
        and name_of(path) != "ratings_ledger/__main__.py"
    ]

    assert wrong == []


def test_no_module_is_loaded_under_two_names() -> None:
    """The folders are packages of `ratings_ledger` alone: by its own name, a module would be there twice."""
    assert [name for name in sys.modules if name.partition(".")[0] in ("cli", "ledger", "projections")] == []


# a room imports those before it alone
ROOMS = {
    "ledger": ("errors", "rejections", "clock", "own_files", "processes", "failures", "events", "store",
               "validation", "intake", "backups", "verification"),
    "projections": ("program", "expected_scores", "exact_numbers", "deterministic_math", "arrays", "contract", "rules",
                    "lists", "rulesets", "compiling", "game_clock", "facts", "replay", "queries", "diff", "snapshot",
                    "admission", "stored", "cluster"),
    "cli": ("interrupts", "completion", "output", "arguments", "main", "commands", "start"),
}  # fmt: skip


def imports_of(path: Path) -> set[str]:
    """The files of this program that a file imports, as dotted names."""
    there = {name_of(one).removesuffix(".py").replace("/", "."): one for one in FILES}
    found = {*imported(path)}
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            found |= {from_folder(f"{node.module}.{alias.name}") for alias in node.names}
    return found & there.keys()


@pytest.mark.slow_cases
@pytest.mark.parametrize("layer", ROOMS)
def test_rooms_import_only_the_rooms_before_them(layer: str) -> None:
    """A file of a layer imports from its own room and the rooms before it; every room has its place."""
    rooms = ROOMS[layer]
    assert {path.stem for path in (ROOT / layer).iterdir() if not path.name.startswith("__")} - {"shipped"} >= {*rooms}
    wrong = []
    for path in FILES:
        parts = path.relative_to(ROOT / layer).with_suffix("").parts if path.is_relative_to(ROOT / layer) else ()
        if not parts or parts == ("__init__",):
            continue
        assert parts[0] in rooms, f"{name_of(path)} is in a room without a place"
        for module in imports_of(path):
            where = module.split(".")
            if where[0] == layer and len(where) > 1 and rooms.index(where[1]) > rooms.index(parts[0]):
                wrong.append(f"{name_of(path)} imports {module}")
    assert wrong == []


@pytest.mark.slow
def test_no_two_files_import_each_other() -> None:
    """Following imports from file to file, also those within functions, never leads back."""
    open_files = {name_of(path).removesuffix(".py").replace("/", "."): imports_of(path) for path in FILES}
    while leaves := [name for name, others in open_files.items() if not others & open_files.keys() - {name}]:
        for name in leaves:
            del open_files[name]
    assert sorted(open_files) == []


# the same interface, met by several files; and the public face, which shows what stands behind it
FAMILIES = ("projections/rules/", "projections/lists/", "ledger/events/game_types/", "ledger/store/sqlite.py",
            "ledger/store/postgres.py", "ledger/store/postgres_catalogue.py",
            "projections/replay/rule_calls.py", "ratings_ledger/")  # fmt: skip


def test_a_public_name_means_one_thing() -> None:
    """No two files have a public class or function of the same name, families and commands apart."""
    places: dict[str, list[str]] = {}
    for path in FILES:
        name = name_of(path)
        for node in tree_of(path).body:
            is_command = name.startswith("cli/") and bool(getattr(node, "decorator_list", []))
            if is_public(node) and not is_command and not name.startswith(FAMILIES):
                places.setdefault(node.name, []).append(name)  # type: ignore[attr-defined]
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_sql_runs_only_in_store_modules() -> None:
    """Only the store modules run SQL."""
    wrong = [
        f"{name_of(path)}:{line} calls {call}"
        for path in FILES
        if name_of(path) not in SQL_FILES
        for call, line in called(path)
        if call.split(".")[1] in SQL_CALLS
    ]

    assert wrong == []


@pytest.mark.slow
def test_no_store_is_asked_for_by_name() -> None:
    """What differs between the stores is asked of the dialect: nothing compares a name with that of a store."""
    names = {"sqlite", "postgresql", "postgres"}
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if (isinstance(node, ast.Compare) and names & {one.value for one in ast.walk(node) if is_text(one)})
        or (isinstance(node, ast.Attribute) and ast.unparse(node).endswith("dialect.name"))
    ]

    assert wrong == []


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.slow
def test_only_the_clock_tells_time() -> None:
    """Only the clock module asks for the time, except for monotonic time in a few named modules."""
    wrong = [
        f"{name_of(path)}:{line} calls {call}"
        for path in FILES
        if name_of(path) != "ledger/clock.py"
        for call, line in called(path)
        if call in TIME_CALLS and not (call == "time.monotonic" and name_of(path) in MONOTONIC_FILES)
    ]
    wrong += [
        f"{name_of(path)} imports names from time"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
    ]

    assert wrong == []


def test_rules_import_only_the_contract() -> None:
    """Rules import only the standard library, pydantic and the contract."""
    allowed = sys.stdlib_module_names | {"pydantic"}
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in FILES
        if name_of(path).startswith("projections/rules/")
        for module in imported(path)
        if module.split(".")[0] not in allowed and module != "projections.contract"
    ]

    assert wrong == []


def is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")


def undocumented(path: Path) -> Iterator[str]:
    """The public functions and classes of a module, and the public methods of its classes, without a docstring."""
    tree = tree_of(path)
    owners: list[ast.Module | ast.ClassDef] = [
        tree,
        *(n for n in tree.body if isinstance(n, ast.ClassDef) and is_public(n)),
    ]
    for owner in owners:
        for node in owner.body:
            # the commands that click calls by name inherit their documentation
            inherited = isinstance(owner, ast.ClassDef) and owner.name == "Commands"
            assert isinstance(owner, ast.Module | ast.ClassDef)
            if is_public(node) and not inherited and ast.get_docstring(node) is None:  # type: ignore[arg-type]
                yield f"{name_of(path)}:{node.lineno} {node.name}"  # type: ignore[attr-defined]


def test_public_code_has_docstrings() -> None:
    """Every module and every public function, class and method has a docstring."""
    assert [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))] == []
    assert [name for path in FILES for name in undocumented(path)] == []


LONG_RULES = {
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
    """Files of code and tests stay under 800 lines, and rules have at most 250, or as many for each of several."""
    lengths = {
        name_of(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in [*FILES, *ROOT.glob("tests/**/*.py")]
    }

    assert {name: length for name, length in lengths.items() if length >= 800} == {}
    several = Counter(
        module.partition(":")[0].partition(".")[2].replace(".", "/") + ".py" for module in BUILT_IN.values()
    )
    rules = {name: length for name, length in lengths.items() if name.startswith("projections/rules/")}
    assert {
        name: length for name, length in rules.items() if length > LONG_RULES.get(name, 250 * max(several[name], 1))
    } == {}


# faces join many parts by their nature, and a snapshot has every query as a method
JOINING = ("cli/", "ratings_ledger/", "projections/snapshot.py")
# these still do
JOINING_YET = {
    "ledger/intake/intake.py", "projections/admission/ladder_checks.py", "projections/admission/proposals.py",
    "projections/admission/trials.py", "projections/cluster/coordinating.py", "projections/cluster/simulating.py",
    "projections/cluster/tasks.py", "projections/facts/decoding.py", "projections/queries/explain.py",
    "projections/queries/game_timelines.py",
    "projections/queries/history.py", "projections/queries/ladders_at.py", "projections/queries/players.py",
    "projections/stored/rebuilding.py", "projections/stored/verification.py",
}  # fmt: skip


FOLDERS = sorted({path.parent for path in FILES})
FLOORS_MAX = 8


@pytest.mark.slow
def test_no_folder_has_many_floors() -> None:
    """Within a folder, no file imports a file that imports a file and so on through more than eight of them."""

    @cache
    def floor(path: Path) -> int:
        folder = name_of(path.parent).replace("/", ".")
        modules = {f"{folder}.{module.stem}": module for module in path.parent.glob("*.py")}
        below = (modules[name] for name in imports_of(path) & modules.keys() if modules[name] != path)
        return 1 + max(map(floor, below), default=0)

    floors = {name_of(folder): max(floor(path) for path in folder.glob("*.py")) for folder in FOLDERS}
    assert {name: number for name, number in floors.items() if number > FLOORS_MAX} == {}
    assert max(floors.values()) > 4


@pytest.mark.slow
def test_only_faces_and_snapshots_join_many_modules() -> None:
    """No other file imports more than 15 files of this program, counting imports within functions."""
    numbers = {name_of(path): len(imports_of(path)) for path in FILES if not name_of(path).startswith(JOINING)}

    assert {name: number for name, number in numbers.items() if number > 15 and name not in JOINING_YET} == {}


Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_explained(node: Function, lines: list[str]) -> bool:
    """Whether a comment at the start of a function, or above it, says why it is as it is."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return lines[first - 2].lstrip().startswith("#") or "#" in lines[node.lineno - 1]


def parameters_of(node: Function) -> int:
    """How many parameters a function has besides its object; those of a command are its options, and do not count."""
    if any(ast.unparse(decorator).startswith(("click.option", "click.argument")) for decorator in node.decorator_list):
        return 0
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


@pytest.mark.slow
def test_functions_stay_small() -> None:
    """No function has over 60 lines or seven parameters without a comment beside it that gives the reason."""
    large = {}
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in nodes(path):
            if isinstance(node, Function) and not is_explained(node, lines):
                length, parameters = (node.end_lineno or 0) - node.lineno + 1, parameters_of(node)
                if length > 60 or parameters > 7:
                    large[f"{name_of(path)} {node.name}"] = length, parameters

    assert large == {}


def test_nothing_is_left_to_do() -> None:
    """No source file holds a mark such as TODO or FIXME."""
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

    assert [name_of(path) for path in FILES if marks.search(path.read_text(encoding="utf-8"))] == []


def test_the_list_of_commands_says_what_each_says() -> None:
    """The list of commands, which loads none of them, shows the first sentence of the help of each."""
    context = click.Context(ratings)
    for name, (_, told) in COMMANDS.items():
        command = ratings.get_command(context, name)
        assert command is not None
        assert not command.hidden
        assert command.get_short_help_str(200) == told


SLOW = {"alembic", "rich", "numba", "numpy", "mako"}
# a reading of a small ledger in a file needs neither the other store nor what only an answer to another question needs
NOT_TO_READ = SLOW - {"numpy"} | {"psycopg", "sqlalchemy.dialects.postgresql"}
NOT_LOADED = {
    "help": (
        ["--help"],
        SLOW | {"asyncio", "concurrent.futures", "ratings_ledger.cli.commands", "json", "pydantic", "sqlalchemy"},
    ),
    "standings": (["standings", "club-catan-elo/all"], NOT_TO_READ - {"rich"} | {"rich.console"}),
    "standings as JSON": (["standings", "club-catan-elo/all", "--format", "json"], NOT_TO_READ),
    "explain": (
        ["explain", "anna", "club-catan-elo/all"],
        NOT_TO_READ | {"ratings_ledger.projections.diff.attribution", "ratings_ledger.projections.queries.survey"},
    ),
    "status": (["status", "--format", "json"], SLOW),
    "import": (["import", "-"], SLOW),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize(("arguments", "slow"), NOT_LOADED.values(), ids=NOT_LOADED)
def test_commands_load_only_what_they_use(
    arguments: list[str], slow: set[str], copied_file: Callable[..., str]
) -> None:
    """Commands in a new process do not import what they have no use for."""
    db = copied_file(make_ruled_ledger)
    code = (
        "import sys\nfrom ratings_ledger.cli.main import invoke\n"
        f"invoke({['--db', db, *arguments]!r})\n"
        f"print(*sorted({slow!r} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, input="", cwd=ROOT, check=True)

    assert done.stderr.splitlines()[-1] == ""
