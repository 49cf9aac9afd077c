"""Measure how many small faults the tests notice: mutate one line, run the tests that execute the line, and repeat.

    pip install coverage
    python scripts/mutate.py cover build/mutants            # which quick tests execute which line
    python scripts/mutate.py choose build/mutants --seed 1  # draw mutants from each stratum
    python scripts/mutate.py run build/mutants              # run each with the fastest tests that execute its line
    python scripts/mutate.py run build/mutants --survivors  # run survivors with the next tests, too
    python scripts/mutate.py report build/mutants

Only code in functions is mutated, where at least one quick test executes it. A mutant is written into its file while
its tests run, so use a checkout that is not edited. Results are appended one by one; `run` resumes where it stopped.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path.cwd()
SOURCES = ("ledger", "projections")
TESTS = ("tests/ledger", "tests/projections", "tests/cli", "tests/hostile", "tests/intake", "tests/faults", "tests/web")

# for each stratum: the number of mutants to draw, and the pattern of its files
STRATA: dict[str, tuple[int, str]] = {
    "rules": (50, r"projections/(rules/|lists/|expected_scores|contract)"),
    "replay": (60, r"projections/(replay/(?!eligibility)|facts/|arrays)"),
    "eligibility": (40, r"projections/replay/eligibility"),
    "diff": (60, r"projections/diff/"),
    "append": (40, r"ledger/store/(appending|log|sqlite|common|dialect)\.py"),
    "intake": (50, r"ledger/intake/"),
    "validation": (40, r"ledger/validation/|projections/admission/"),
    "stored": (30, r"projections/stored/"),
    "interpreted": (30, r"projections/(queries/|snapshot|rulesets/)"),
}

CASES_MAX = 3  # cases of a parametrized test
TEST_SECONDS_MAX = 1.0  # CPU seconds of a quick test
TESTS_PER_ROUND = 12  # tests per mutant and round
TESTS_PER_FILE = 2  # consecutive tests from the same file
CPU_SECONDS_MAX, SECONDS_MAX = 40, 150  # a mutant that takes longer counts as endless

# modules that the tests and the product import anyway
LIBRARIES = ("hypothesis", "alembic.command", "numpy", "pydantic", "sqlalchemy.dialects.sqlite")

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Mutant(NamedTuple):
    """A replacement of one expression on one line; columns count bytes, as in the syntax tree."""

    stratum: str
    file: str
    line: int
    start: int
    end: int
    kind: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.old} -> {self.new}"


class Outcome(NamedTuple):
    """The state of a mutant, `survived`, `killed` or `endless`, and the first failure of a test."""

    state: str
    failure: str = ""


class MutationFinder(ast.NodeVisitor):
    """A visitor that collects the replacements in the bodies of functions: (statement's line, node, kind, new node)."""

    def __init__(self) -> None:
        self.replacements: list[tuple[int, ast.expr, str, ast.expr]] = []
        self._statement: ast.stmt | None = None  # None outside functions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for statement in node.body:
            self._visit_statement(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip: Python 3.11 does not know the columns of expressions in f-strings."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Skip: assertions are for readers and type checkers."""

    def _visit_statement(self, statement: ast.stmt) -> None:
        outer, self._statement = self._statement, statement
        self.visit(statement)
        self._statement = outer

    def generic_visit(self, node: ast.AST) -> None:
        if self._statement is not None and isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._add(node.value, "call left out", ast.Constant(None))
        if self._statement is not None and isinstance(node, ast.If | ast.While | ast.IfExp):
            self._add_negation(node.test)
        if self._statement is not None and isinstance(node, ast.comprehension):
            for condition in node.ifs:
                self._add_negation(condition)
        if self._statement is not None and isinstance(node, ast.expr):
            for kind, replacement in list_replacements(node):
                self._add(node, kind, replacement)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and self._statement is not None:
                self._visit_statement(child)
            else:
                self.visit(child)

    def _add_negation(self, condition: ast.expr) -> None:
        if isinstance(condition, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr):
            self._add(condition, "condition", ast.UnaryOp(ast.Not(), condition))

    def _add(self, node: ast.expr, kind: str, replacement: ast.expr) -> None:
        assert self._statement is not None
        if node.lineno == node.end_lineno:
            self.replacements.append((self._statement.lineno, node, kind, replacement))


def list_replacements(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the kind and the expression of each possible replacement."""
    changed: Any = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            changed.ops = [COMPARISONS[type(operator)]()]
            yield "comparison", changed
        case ast.BinOp(op=operator) if type(operator) in OPERATORS and not is_text(node):
            changed.op = OPERATORS[type(operator)]()
            yield "arithmetic", changed
        case ast.BoolOp(op=operator):
            changed.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield "and, or", changed
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.IfExp():
            changed.body, changed.orelse = changed.orelse, changed.body
            yield "branches", changed


def is_text(node: ast.expr) -> bool:
    """Tell whether an expression contains text; mutated arithmetic on text would always fail."""
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in ast.walk(node)
    )


# Recording the lines of tests


class LineRecorder:
    """A pytest plugin that selects quick tests in SQLite, and records each test's lines and CPU time."""

    def __init__(self, folder: Path) -> None:
        import coverage

        sources = [str(ROOT / source) for source in SOURCES]
        self.coverage = coverage.Coverage(data_file=str(folder / "coverage"), source=sources, config_file=False)
        self.seconds: dict[str, float] = {}
        self.process = os.getpid()
        self.folder = folder

    def pytest_configure(self) -> None:
        self.coverage.start()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        functions: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            assert isinstance(item, pytest.Function)
            is_slow = any(item.get_closest_marker(name) for name in ("slow", "skip", "at_length"))
            if not is_slow and "postgres" not in item.nodeid and "server" not in item.fixturenames:
                functions[item.nodeid.partition("[")[0]].append(item)
        chosen = {
            case.nodeid
            for name, cases in functions.items()
            for case in random.Random(name).sample(cases, min(CASES_MAX, len(cases)))
        }
        items[:] = [item for item in items if item.nodeid in chosen]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        before = sum(os.times()[:4])
        yield
        self.seconds.setdefault(item.nodeid, sum(os.times()[:4]) - before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.seconds[report.nodeid] = float("inf")

    def pytest_sessionfinish(self) -> None:
        if os.getpid() == self.process:  # not in a forked child
            self.coverage.stop()
            self.coverage.save()
            (self.folder / "seconds.json").write_text(json.dumps(self.seconds))


def cover(folder: Path) -> None:
    """Run the quick tests and record which lines they execute."""
    folder.mkdir(parents=True, exist_ok=True)
    pytest.main(["-q", "-n", "0", "--hypothesis-seed=0", "-o", "filterwarnings=", *TESTS], [LineRecorder(folder)])


# Choosing mutants


def choose(folder: Path, seed: int) -> None:
    """Draw mutants from each stratum, in an order in which every part has all strata in proportion."""
    from coverage import CoverageData

    data = CoverageData(str(folder / "coverage"))
    data.read()
    tests_of = {os.path.relpath(file, ROOT): data.contexts_by_lineno(file) for file in data.measured_files()}
    seconds = json.loads((folder / "seconds.json").read_text())
    drawn: list[tuple[float, Mutant, list[str]]] = []
    for stratum, (number, pattern) in STRATA.items():
        candidates = []
        outside = 0
        for file in sorted(tests_of):
            if not re.match(pattern, file):
                continue
            for statement_line, mutant in list_mutants(stratum, file):
                tests_by_line = tests_of[file]
                tests = order_tests(tests_by_line.get(mutant.line) or tests_by_line.get(statement_line) or [], seconds)
                if tests:
                    candidates.append((mutant, tests))
                else:
                    outside += 1
        random.Random(f"{seed} {stratum}").shuffle(candidates)
        drawn += [(index / number, *candidate) for index, candidate in enumerate(candidates[:number])]
        print_line(f"{stratum}: {len(candidates)} candidates, and {outside} that no quick test executes")
    drawn.sort(key=lambda entry: entry[0])
    (folder / "mutants.json").write_text(json.dumps([(mutant, tests) for _, mutant, tests in drawn]))


def list_mutants(stratum: str, file: str) -> Iterator[tuple[int, Mutant]]:
    """Yield the mutants of a file, each with the line of its statement."""
    source = (ROOT / file).read_bytes()
    lines = source.split(b"\n")
    finder = MutationFinder()
    finder.visit(ast.parse(source))
    for statement_line, node, kind, replacement in finder.replacements:
        assert node.end_col_offset is not None
        old = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
        location = (file, node.lineno, node.col_offset, node.end_col_offset)
        yield statement_line, Mutant(stratum, *location, kind, old, f"({ast.unparse(replacement)})")


def order_tests(tests: Iterable[str], seconds: dict[str, float]) -> list[str]:
    """Order tests by time, fastest first, but take turns between files."""
    ordered = sorted(
        (test for test in tests if seconds.get(test, TEST_SECONDS_MAX) < TEST_SECONDS_MAX),
        key=lambda test: seconds[test],
    )
    from_file: Counter[str] = Counter()
    ranks = {}
    for test in ordered:
        file = test.partition("::")[0]
        ranks[test] = from_file[file] // TESTS_PER_FILE
        from_file[file] += 1
    return sorted(ordered, key=lambda test: ranks[test])[: 6 * TESTS_PER_ROUND]


# Running mutants


def run(folder: Path, survivors: bool, mutants_max: int) -> None:
    """Run mutants without a result, or run survivors again with their next tests.

    A negative `mutants_max` means no limit.
    """
    for library in LIBRARIES:  # once for all forks
        import_module(library)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and restore the file
    results = read_results(folder)
    for number, (values, tests) in enumerate(json.loads((folder / "mutants.json").read_text())):
        mutant = Mutant(*values)
        tried, outcome = results.get(mutant, (0, Outcome("survived")))
        if mutants_max == 0 or outcome.state != "survived" or (tried > 0) != survivors or tried >= len(tests):
            continue
        mutants_max -= 1
        next_tests = tests[tried:] if survivors else tests[:TESTS_PER_ROUND]
        began = time.monotonic()
        with apply_mutant(mutant, number):
            outcome = run_tests(next_tests)
        row = [*mutant, tried + len(next_tests), *outcome, round(time.monotonic() - began, 1)]
        with (folder / "results.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def read_results(folder: Path) -> dict[Mutant, tuple[int, Outcome]]:
    """Return the number of tests and the outcome of each mutant."""
    file = folder / "results.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    members = len(Mutant._fields)
    return {Mutant(*row[:members]): (row[members], Outcome(*row[members + 1 : members + 3])) for row in rows}


@contextmanager
def apply_mutant(mutant: Mutant, number: int) -> Iterator[None]:
    """Write a mutant to its file during the block."""
    path = ROOT / mutant.file
    original, stamp = path.read_bytes(), path.stat()
    lines = original.split(b"\n")
    line = lines[mutant.line - 1]
    lines[mutant.line - 1] = line[: mutant.start] + mutant.new.encode() + line[mutant.end :]
    try:
        path.write_bytes(b"\n".join(lines))
        # Python recognises compiled modules by size and modification time, so each mutant gets another time
        os.utime(path, (stamp.st_atime, stamp.st_mtime + number + 1))
        yield
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


class FirstFailure:
    """A pytest plugin that keeps the first failure."""

    text = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.text:
            reason = getattr(report.longrepr, "reprcrash", None)
            self.text = f"{report.nodeid}: {getattr(reason, 'message', '')[:200]}"


def run_tests(tests: list[str]) -> Outcome:
    """Run tests in a fork until the first failure. The fork has not imported the product yet."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(run_pytest(tests)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        status = wait_for(child, SECONDS_MAX)
        answer = b"" if status is None else os.read(reader, 65536)
    finally:
        os.close(reader)
    if not answer:
        return Outcome("endless" if status is None or os.WIFSIGNALED(status) else "killed", "the process ended")
    code, text = json.loads(answer)
    return Outcome("survived") if code == 0 else Outcome("killed", text or f"pytest ended with {code}")


def run_pytest(tests: list[str]) -> tuple[int, str]:
    """Run tests in this process; return pytest's exit code and the first failure."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX + 5))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    failure = FirstFailure()
    options = ["-x", "-q", "-n", "0", "--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *tests], [failure])), failure.text


def wait_for(child: int, seconds: float) -> int | None:
    """Wait for a child, then kill its process group; return the status, or None after the time limit."""
    until = time.monotonic() + seconds
    process, status = 0, 0
    while process == 0 and time.monotonic() < until:
        time.sleep(0.05)
        process, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if process == 0:
        os.waitpid(child, 0)
        return None
    return status


# The report


def report(folder: Path) -> None:
    """Print the number of killed mutants in each stratum, and the survivors."""
    results = read_results(folder)
    for stratum in STRATA:
        states = [outcome.state for mutant, (_, outcome) in results.items() if mutant.stratum == stratum]
        survived = states.count("survived")
        endless = states.count("endless")
        print_line(f"{stratum:12} {len(states) - survived:3} of {len(states):3} killed, {endless} of them endless")
    survived = sum(outcome.state == "survived" for _, outcome in results.values())
    print_line(f"{'together':12} {len(results) - survived:3} of {len(results):3} killed")
    for mutant, (tests, outcome) in results.items():
        if outcome.state == "survived":
            print_line(f"{mutant} ({tests} tests)")


def print_line(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description="Measure how many small faults the tests notice.")
    parser.add_argument("job", choices=["cover", "choose", "run", "report"])
    parser.add_argument("folder", type=Path, help="the folder for coverage, mutants and results")
    parser.add_argument("--seed", type=int, default=1, help="choose: the seed")
    parser.add_argument("--survivors", action="store_true", help="run: run survivors again, with the next tests")
    parser.add_argument("--most", type=int, default=-1, help="run: stop after this many mutants")
    arguments = parser.parse_args()
    if arguments.job == "cover":
        cover(arguments.folder)
    elif arguments.job == "choose":
        choose(arguments.folder, arguments.seed)
    elif arguments.job == "run":
        run(arguments.folder, arguments.survivors, arguments.most)
    else:
        report(arguments.folder)


if __name__ == "__main__":
    main()
