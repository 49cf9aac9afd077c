"""Kernels of rules with state have the same results on every machine.

Source code whose results could differ between machines is rejected, with its line. In the machine code of kernels, no
processor may round a product and a sum in one step: a fused multiply-add rounds once where the source rounds twice, so
its results differ from those of Python, and of processors without it. The code is generated for a processor that has
the instruction.
"""

import importlib.util
import re
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from own_rules import list_state_rules, load_built_in_rule, needs_numba

from ratings_ledger.projections import compiling
from ratings_ledger.projections.rulesets.kernel_determinism import ARGUMENTS, INT, INT_TABLE, find_nondeterminism
from ratings_ledger.projections.rulesets.rule_errors import can_compile, find_inexact_place, list_inexact_places
from ratings_ledger.rules import Rule

NUMBERS = count()

HEAD = """
import math
import random
import numpy as np
from ratings_ledger.projections import deterministic_math as kit
from math import floor, sqrt, inf
from ratings_ledger.projections.contract import (
    MISSING, exp, fixed_exp, joined, ln, logistic, power, real, root, units,
)
SCALE = 1_000_000
HALF, THIRD = 0.5, 1.0 / 3.0
Q = math.log(10.0)
WEIGHTS = (1.0, 0.5)
NAMES = {"a": 1}
MANY, MANY_WHOLES = tuple(n / 7 for n in range(100)), tuple(range(100))
NESTED, MIXED = ((1.5, 2.5), (3.5, 4.5)), (1, 2.5)
WRITTEN_TWICE = ((Q,), 1)
TABLES = (1, NAMES)


def score(n, before, columns, constants, table, after):
"""
FIRST = HEAD.count("\n") + 1


def load_rule(folder: Path, source: str, **functions: str) -> Rule:
    """Return Glicko with functions from a file with this source: its `score`, and others by these names."""
    name = f"kernel_{next(NUMBERS)}"
    file = folder / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    del sys.modules[name]
    own = {member: getattr(module, function) for member, function in functions.items()}
    return load_built_in_rule("glicko-1/1")._replace(
        **{"score": module.score, "score_period": None, "age": None, "chance": None} | own
    )


def write_body(body: str) -> str:
    """Return the source of a file whose kernel has this body; text after two empty lines follows the kernel."""
    inner, _, rest = dedent(body).strip("\n").partition("\n\n\n")
    return HEAD + "".join(f"    {line}\n" for line in inner.splitlines()) + f"    return 0\n\n\n{rest}\n"


@pytest.mark.parametrize("name", list_state_rules())
def test_built_in_kernels_are_accepted(name: str) -> None:
    """Nothing is rejected in the built-in rules with state."""
    assert list_inexact_places(load_built_in_rule(name)) == ()


# by case: (body of a kernel whose second line is rejected, message)
REJECTED_BODIES: dict[str, tuple[str, str]] = {
    "division of whole numbers": (
        "x = n\ny = x / 2.0",
        "divides with / where x might not be a double; divide whole",
    ),
    "division by a whole number": ("x = real(n, 1)\ny = x / 2", "divides with / where 2 might not be a double"),
    "division of state": ("x = 1.0\ny = before[0][n - 1] / x", "divides with / where before[0][n - 1] might not"),
    "division in place": ("x = n\nx /= 2.0", "divides with / where x might not be a double"),
    "power": ("x = 2.0\ny = x ** 2.0", "uses ** on doubles: x ** 2.0; use the contract's power(base, exponent)"),
    "power of a whole number": ("x = 2.0\ny = x ** 2", "uses ** on doubles: x ** 2"),
    "power that may be a fraction": (
        "k = n\ny = 10 ** k",
        "uses ** with an exponent that is not a non-negative literal: 10 ** k",
    ),
    "remainder": ("x = 2.0\ny = x % 1.0", "uses % on doubles: x % 1.0; use % only on whole numbers"),
    "floor division": ("x = 2.0\ny = x // 1.0", "uses // on doubles: x // 1.0; use // only on whole numbers"),
    "sum": ("x = 2.0\ny = sum([x, x])", "calls sum; Python 3.12 changed how sum adds doubles"),
    "round": ("x = 2.0\ny = round(x)", "calls round; units(value, scale) rounds"),
    "pow": ("x = 2.0\ny = pow(x, 2.0)", "calls pow; use the contract's power(base, exponent)"),
    "int": ("x = 2.0\ny = int(x)", "calls int on a double; use units(value, 1)"),
    "math": ("x = 2.0\ny = math.exp(x)", "calls math.exp of the module math; use exp, ln, power and root"),
    "constants of math": ("x = 2.0\ny = x * math.pi", "uses an expression that kernels do not allow: math.pi"),
    "numpy": ("x = 2.0\ny = np.exp(x)", "calls np.exp of numpy, whose results differ between machines"),
    "another module": ("x = 2.0\ny = random.random()", "calls random.random of random; a kernel may call only"),
    "the rest of the contract": (
        "x = 2.0\ny = joined(table)",
        "calls joined of ratings_ledger.projections.contract; a",
    ),
    "an unknown function": ("x = 2.0\ny = print(x)", "calls print, which a kernel may not call"),
    "a method": ("x = table\nx.append(1)", "calls x.append, which is neither in the contract nor in the same file"),
    "a loop until close enough": (
        "x = 1.0\nwhile x > 0.1:\n    x = x * 0.5",
        "has a loop that a comparison of doubles controls",
    ),
    "a loop until one of two": (
        "x = 1.0\nwhile n > 0 and not x < 0.1:\n    x = x * 0.5",
        "has a loop that a comparison",
    ),
    "a loop until zero": ("x = 1.0\nwhile x:\n    x = x * 0.5", "has a loop that a comparison of doubles controls"),
    "a loop until one of two is zero": (
        "x = y = 1.0\nwhile x and y:\n    x = x * 0.5",
        "has a loop that a comparison of doubles controls",
    ),
    "a loop that breaks off at zero": (
        "x = 1.0\nfor i in range(9):\n    if x:\n        break",
        "leaves a loop depending on a comparison of doubles; use a fixed number of steps",
    ),
    "a loop that breaks off": (
        "x = 1.0\nfor i in range(9):\n    x = x * 0.5\n    if x < 0.1:\n        break",
        "leaves a loop depending on a comparison of doubles; use a fixed number of steps",
    ),
    "a loop that returns": (
        "x = 1.0\nwhile True:\n    x = x * 0.5\n    if abs(x) < 0.1 or n == 3:\n        return 0",
        "leaves a loop depending on a comparison of doubles; use a fixed number of steps",
    ),
    "a loop within one that returns": (
        "x = 1.0\nfor i in table:\n    if x < 0.1:\n        for j in table:\n            return 0",
        "leaves a loop depending on a comparison of doubles; use a fixed number of steps",
    ),
    "a double plus a whole number": ("x = 1.0\ny = x + n", "mixes a double with the whole number n; use real(n, 1)"),
    "a double plus a whole number that no double equals": (
        "x = 1.0\ny = x + 9007199254740993",
        "mixes a double with the whole number 9007199254740993",
    ),
    "a comparison of both": ("x = 1.0\ny = x < before[0][0]", "compares a double with the whole number before[0][0]"),
    "a name for both": (
        "x = 0\nx = 1.5",
        "uses x for values of two types, a whole number and a double; write 0.0 instead of",
    ),
    "a choice of both": (
        "x = 1.0\ny = x if n > 2 else 0",
        "chooses between values of two types, a whole number and a double",
    ),
    "the larger of both": (
        "x = 1.0\ny = max(x, 0)",
        "calls max with values of different types; write 0.0 instead of 0",
    ),
    "a double as a state": (
        "x = 1.0\nafter[0][0] = x",
        "stores a double among whole numbers, such as states; convert it with",
    ),
    "a column as a state": ("x = 1.0\nafter[0][0] = columns[0]", "stores a value of a different type: after[0][0]"),
    "a constant of a logarithm": ("x = 1.0\ny = x * Q", "reads Q, a double that is not a literal in the same file"),
    "a constant from elsewhere": (
        "x = 1.0\ny = x * inf",
        "reads inf, a double that is not a literal in the same file",
    ),
    "many constants that are computed": (
        "x = 1.0\ny = x * MANY[n]",
        "reads MANY, a double that is not a literal in the same file",
    ),
    "a constant within two": (
        "x = 1.0\ny = x * WRITTEN_TWICE[0][0]",
        "reads WRITTEN_TWICE, a double that is not a literal in the same file",
    ),
    "a dict within a constant": ("x = 1\ny = TABLES[1]", "reads TABLES, which is not a numeric constant"),
    "a double of the kit as a whole number": (
        "x = kit.real(n, 1)\ny = x // 2",
        "uses // on doubles: x // 2; use // only on whole numbers",
    ),
    "a missing member of the kit": (
        "x = 1.0\ny = kit.absent(x)",
        "calls kit.absent, which is neither in the contract",
    ),
    "the larger in a tuple of both": ("x = 1\ny = max(MIXED)", "calls max with values of different types"),
    "any member of a tuple of both": ("x = 1\ny = MIXED[n]", "a whole number and a double"),
    "a table by name": ("x = 1\ny = NAMES", "reads NAMES, which is not a numeric constant"),
    "a wrong argument": ("x = 1\ny = exp(x)", "calls exp with a whole number, x; a double is needed"),
    "another wrong argument": ("x = 1.0\ny = real(x, 1)", "calls real with a double, x; a whole number is needed"),
    "a double in fixed point": ("x = 1.0\ny = fixed_exp(x, 10)", "calls fixed_exp with a double, x; a whole number is"),
    "a function given as a value": ("x = 1\ny = exp", "reads exp, which is not a numeric constant"),
    "arguments by name": ("x = 1\ny = real(x, scale=1)", "passes arguments by keyword or with *: real(x, scale=1)"),
    "a name without a value": ("x = 1\ny = z\nz = 2.0\ndel z", "uses a statement that kernels do not allow: del z"),
    "a try statement": (
        "x = 1\ntry:\n    x = 2\nfinally:\n    x = 3",
        "uses a statement that kernels do not allow: try:",
    ),
    "a function within": ("x = 1\ndef f():\n    return 1", "uses a statement that kernels do not allow: def f():"),
    "a lambda": ("x = 1\ny = lambda: 1.0", "uses an expression that kernels do not allow: lambda: 1.0"),
    "a text": ("x = 1\ny = -'x'", "does arithmetic on a non-number: -'x'"),
    "a tuple for too many names": ("x = 1\na, b, c = (1, 2)", "unpacks a value whose length is unknown or different"),
    "an index that is a double": ("x = 1.0\ny = table[x]", "has an index that is not a whole number: table[x]"),
    "a member of a number": ("x = 1.0\ny = n[0]", "indexes a value that is not a sequence: n[0]"),
    "members of a number": ("x = 1.0\nfor y in n: pass", "loops over n, whose members are not known"),
    "a helper that divides": (
        "x = 1\ny = half(n)\n\n\ndef half(n):\n    return n / 2",
        "divides with / where n might not",
    ),
    "a helper that calls itself": (
        "x = 1\ny = again(n)\n\n\ndef again(n):\n    return again(n)",
        "calls itself; use a loop",
    ),
    "a helper of two results": (
        "x = 1\ny = some(n)\n\n\ndef some(n):\n    if n > 1:\n        return 0\n    return 1.0",
        "returns values of two types, a whole number and a double; write 0.0 instead of 0",
    ),
    "a helper of arguments by name": (
        "x = 1\ny = some()\n\n\ndef some(*, n=1):\n    return 0",
        "takes arguments only by keyword",
    ),
}
# by case: the rejected line, counted from the first line of the body, if it is not the second
OTHER_LINES = {
    "a loop that breaks off": 5,
    "a loop that breaks off at zero": 4,
    "a loop that returns": 5,
    "a loop within one that returns": 5,
    "a name without a value": 4,
    "a helper that divides": 7,
    "a helper that calls itself": 6,
    "a helper of two results": 9,
    "a helper of arguments by name": 6,
}


@pytest.mark.parametrize("case", REJECTED_BODIES)
def test_inexact_code_is_rejected_with_its_line(case: str, tmp_path: Path) -> None:
    """Each message names the problem, the file and the line."""
    body, message = REJECTED_BODIES[case]
    places = find_nondeterminism(load_rule(tmp_path, write_body(body)))
    line = FIRST - 1 + OTHER_LINES.get(case, 2)
    assert [place for place in places if place.line == line and message in place.description], places
    assert all(str(place).endswith(f"({place.file}, line {place.line})") for place in places)


ACCEPTED_BODIES: dict[str, str] = {
    "whole numbers": "x = (n * 7 // 2) % 5 - 2 ** 3 + (n << 2) + abs(-n)\nafter[0][0] = max(x, n, 0)",
    "doubles": "x = real(n, SCALE)\ny = -x / 2.0 + 3 * x - 1\nafter[0][0] += units(y, SCALE)",
    "the contract": "x = exp(1.0) / ln(2.0) / root(HALF) / power(2.0, THIRD) / logistic(0.5)\ny = units(x, 9)",
    "the two allowed functions of math": "x = sqrt(2.0) / math.sqrt(3.0)\ny = floor(x) + math.floor(x) + n // 2",
    "float of a whole number": "x = 1.0 / float(n)\ny = float(x) / 2.0",
    "a choice of doubles": "x = 1.0 if n > 2 else THIRD\ny = min(x, 2.0) / max(x, HALF)",
    "helpers": "x, y = both(n, 1.0)\nz = y / both(n, y)[1]\n\n\ndef both(n, x, z=2.0):\n    return n, x / z",
    "a helper of either kind": "x = same(n) // 2\ny = same(1.0) / 2.0\n\n\ndef same(x):\n    return x",
    "any number of arguments": "x = last(1.0, n, 2.0) / 2.0\n\n\ndef last(x, *rest):\n    return rest[1] / x",
    "types in a cycle": "a = b = c = 0.0\nfor i in range(3):\n    a = b / 2.0\n    b = c / 2.0\n    c = a + 1.0",
    "loops of whole numbers": "i = 0\nwhile i < n and True:\n    i += 1\n    if i == 3:\n        break",
    "a comparison outside of loops": "x = 1.0\nif x > 0.5:\n    return 0",
    "a comparison in a loop": "x = 1.0\nfor i in table:\n    if x > 0.5: x = x / 2.0\n    else: continue",
    "a loop in a comparison": "x = 1.0\nif x > 0.5:\n    for i in range(9):\n        if i == 3:\n            break",
    "members": "x = [place for place in columns[0] if place > 0]\ny = sum(x) + sum(table) + len(x) + [0, 0][1]",
    "tuples": "x = WEIGHTS[0] / WEIGHTS[n]\nfor y in WEIGHTS:\n    x = x / y\nfor i, j in enumerate(table): n = i // 2",
    "tuples of both": "x = MIXED[-1] / NESTED[-1][0]\ny = MIXED[-2] // 2\nafter[0][0] = max((1, n)) + sum((n, 1))",
    "many whole numbers": "x = MANY_WHOLES[n] // 2\nfor y in MANY_WHOLES: x += y",
    "the kit by its name": "x = kit.exp(0.5) / kit.real(n, 1)\nafter[0][0] = kit.units(x, 1) // 2",
    "either of two doubles": "x = 0.0 or 1.5\ny = (x and 2.0) / 2.0",
    "parts": "x = before[0][:n]\nfor row in before:\n    y = row[0] // 2",
    "errors": "if n > 9:\n    raise ValueError(f'too many: {n}')\nassert n > 0",
    "the largest whole number up to which all are doubles": "x = 1.0\ny = x + 9007199254740992 - -9007199254740992",
    "missing values": "x = 0.0 if columns[0][0] == MISSING else real(columns[0][0], 1)\ny: float = x / 2.0",
}


@pytest.mark.parametrize("case", ACCEPTED_BODIES)
def test_exact_code_is_accepted(case: str, tmp_path: Path) -> None:
    """Integers, doubles by the contract's functions, and loops whose ends do not depend on doubles are accepted."""
    rule = load_rule(tmp_path, write_body(ACCEPTED_BODIES[case]))
    assert find_inexact_place(rule) is None
    assert can_compile(rule)


def test_every_function_that_the_loop_calls_is_checked(tmp_path: Path) -> None:
    """Besides `score`, functions of periods, aging, seasons, versions, chances and draws are checked."""
    functions = {
        "score_period": "players, before, offsets, rows, constants, table, after",
        "age": "state, elapsed, constants",
        "new_season": "state, constants",
        "enter": "state, constants",
        "chance": "i, j, before, columns, constants, table",
        "draw": "i, j, before, columns, constants, table",
    }
    source = write_body("x = 1")
    source += "".join(
        f"\ndef {name}({arguments}):\n    return {arguments.split(', ')[0]}[0] / 2\n"
        for name, arguments in functions.items()
    )
    rule = load_rule(tmp_path, source, **{name: name for name in functions})
    assert {place.description.partition(" ")[0] for place in find_nondeterminism(rule)} == {*functions}
    assert not can_compile(rule)


def test_unreadable_functions_are_rejected(tmp_path: Path) -> None:
    """A kernel without a file, one of two lambdas in a line, a nested function and a built-in function are rejected."""
    rule = load_built_in_rule("glicko-1/1")
    space: dict[str, Any] = {}
    exec("def score(n, before, columns, constants, table, after):\n    return 0", space)
    k = 3

    def nested_score(n: Any, before: Any, columns: Any, constants: Any, table: Any, after: Any) -> int:
        return k

    for score, message in (
        (
            space["score"],
            "score cannot be checked: its file cannot be read as Python source, or has no definition of it",
        ),
        ((lambda *all: 0, lambda *all: 1)[0], "<lambda> cannot be checked"),
        (nested_score, "nested_score is not a plain module-level function"),
        (print, "print is not a plain module-level function"),
    ):
        assert message in str(find_inexact_place(rule._replace(score=score)))


def test_lambda_is_checked_like_a_function() -> None:
    """The types of a lambda's arguments are known, and its body is checked."""
    rule = load_built_in_rule("glicko-1/1")._replace(age=lambda state, elapsed, constants: (state[0], state[1] / 2))
    assert "<lambda> divides with / where state[1] might not be a double" in str(find_inexact_place(rule))
    assert find_inexact_place(rule._replace(age=lambda state, elapsed, constants: (state[0], state[1] // 2))) is None


def test_rules_without_state_may_use_only_integers(tmp_path: Path) -> None:
    """Under contract 1, a kernel may not use any double."""
    rule = load_rule(tmp_path, write_body("x = 1\ny = 0.5"))
    assert find_inexact_place(rule) is None
    assert "score has the number 0.5 (" in str(find_inexact_place(rule._replace(state=())))


# by architecture: target, processor, and a pattern of its fused instructions
TARGETS = {
    "x86-64": ("x86_64-unknown-linux-gnu", "haswell", r"\bvfn?m(?:add|sub)\w*"),
    "aarch64": ("aarch64-unknown-linux-gnu", "", r"\bfn?m(?:add|sub)\b|\bfml[as]\b"),
}
FMA_CALLS = r"|\bfmaf?\b"
Kernel = tuple[Callable[..., Any], tuple[Any, ...]]


def list_kernels(name: str) -> list[Kernel]:
    """Return the kernels of a rule with the types for which they are compiled."""
    import numba

    rule = load_built_in_rule(name)
    whole, numbers, table = numba.int64, numba.int64[::1], numba.int64[:, ::1]
    kernels = []
    for member, arguments in ARGUMENTS.items():
        if (function := getattr(rule, member)) is not None:
            types = [whole if kind == INT else table if kind == INT_TABLE else numbers for kind in arguments]
            if member in ("age", "new_season", "enter"):
                types[0] = numba.types.UniTuple(whole, rule.width)
            kernels.append((function, tuple(types)))
    return kernels


def compile_kernel(kernel: Kernel, **options: Any) -> str:
    """Return a kernel in the language of LLVM, with the functions that it calls."""
    from numba import njit

    function, types = kernel
    options = {"nogil": True, "boundscheck": False, "_nrt": False} | options
    compiled = njit(**options)(compiling.StandaloneCopier(options).copy(function, {}))
    compiled.compile(types)
    code: str = compiled.inspect_llvm()[types]
    return code


def write_assembly(code: str, architecture: str) -> str:
    """Return the assembly of a kernel for a processor of an architecture."""
    from llvmlite import binding

    triple, processor, _ = TARGETS[architecture]
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"llvmlite here is built without the target {architecture}")
    machine = target.create_target_machine(cpu=processor, opt=3)
    # remove the settings for the processor of this machine
    module = binding.parse_assembly(re.sub(r'"(?:target-cpu|target-features|tune-cpu)"="[^"]*"', "", code))
    module.triple, module.data_layout = triple, str(machine.target_data)
    assembly: str = machine.emit_assembly(module)
    return assembly


def find_fused(code: str, architecture: str) -> list[str]:
    """Return the fused instructions of a kernel, and the calls of the `fma` function."""
    return re.findall(TARGETS[architecture][2] + FMA_CALLS, write_assembly(code, architecture))


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("name", list_state_rules())
def test_no_kernel_is_fused(name: str) -> None:
    """No kernel of a rule with state has a fused multiply-add, on either architecture."""
    for kernel in list_kernels(name):
        code = compile_kernel(kernel)
        # the code contains every function that the kernel calls
        assert re.findall(r"^declare .*@(_ZN\w+)", code, re.MULTILINE) == []
        assert {architecture: find_fused(code, architecture) for architecture in TARGETS} == {
            "x86-64": [],
            "aarch64": [],
        }


def compute_product_sum(x, y, z):
    return x * y + z


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("architecture", TARGETS)
def test_fused_kernel_is_detected(architecture: str) -> None:
    """The search finds the instruction in a kernel that may be fused, and not in the same kernel otherwise."""
    from numba import float64

    kernel = (compute_product_sum, (float64,) * 3)
    assert len(find_fused(compile_kernel(kernel, fastmath={"contract"}), architecture)) > 0
    assert find_fused(compile_kernel(kernel), architecture) == []


@needs_numba
@pytest.mark.slow
def test_code_of_a_kernel_contains_its_helpers() -> None:
    """The code of a kernel contains the functions that it calls, such as the square root."""
    score, types = list_kernels("glicko-1/1")[0]
    assembly = write_assembly(compile_kernel((score, types)), "aarch64")
    assert {"fsqrt", "fdiv", "fmul", "fadd"} <= {*re.findall(r"\bf\w+\b", assembly)}
