"""Check that a kernel of contract 2 reckons alike on every machine, interpreted and compiled.

Doubles are alike everywhere as long as they are only added, subtracted, multiplied, divided, compared and passed to the
functions of the contract. So every value of a kernel must be known as a whole number or a double: the types follow
through the source of its functions, from the arguments that the contract defines. What cannot be followed is refused.
"""

import ast
import builtins
import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeAlias

from ratings_ledger.projections import deterministic_math, expected_scores
from ratings_ledger.projections.contract import Rule

WHOLE, DOUBLE, TEST, OTHER = "whole number", "double", "comparison of doubles", "other"
WHOLES, DOUBLES, TABLE, UNKNOWN = "whole numbers", "doubles", "table of whole numbers", "unknown"
# a type is one of these, or the types of a tuple's members
Type: TypeAlias = Any

_FOR_KERNELS = {deterministic_math.__name__, expected_scores.__name__}
_OF_DOUBLES = {"exp", "ln", "root", "logistic", "power"}
ARGUMENTS: dict[str, tuple[Type, ...]] = {
    "score": (WHOLE, TABLE, TABLE, WHOLES, WHOLES, TABLE),
    "score_period": (WHOLE, TABLE, WHOLES, TABLE, WHOLES, WHOLES, TABLE),
    "age": (WHOLES, WHOLE, WHOLES),
    "new_season": (WHOLES, WHOLES),
    "enter": (WHOLES, WHOLES),
    "chance": (WHOLE, WHOLE, TABLE, TABLE, WHOLES, WHOLES),
    "draw": (WHOLE, WHOLE, TABLE, TABLE, WHOLES, WHOLES),
}
_ELEMENTS = {WHOLES: WHOLE, DOUBLES: DOUBLE, TABLE: WHOLES}
_SEQUENCES = {WHOLE: WHOLES, DOUBLE: DOUBLES, WHOLES: TABLE}
_SIGNS = {ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}


class Fault(NamedTuple):
    """What a kernel does that is not alike everywhere, and where."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.what} ({self.file}, line {self.line})"


def find_inexact(rule: Rule) -> list[Fault]:
    """Return everything in the kernels of a rule with state that is not alike on all machines, in order of lines."""
    checker = _Checker()
    for name, types in ARGUMENTS.items():
        if (function := getattr(rule, name)) is not None:
            checker.check(function, types)
    return sorted(checker.faults, key=lambda fault: (fault.file, fault.line))


@cache
def _parse(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def _find_definition(function: FunctionType) -> ast.FunctionDef | None:
    """Return the definition of a function in its file, or None; a lambda is written as one."""
    code = function.__code__
    try:
        tree = _parse(code.co_filename)
    except (OSError, ValueError, SyntaxError):
        return None
    definitions: list[ast.FunctionDef] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            definitions += [node] if first == code.co_firstlineno else []
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
            if tuple(_names(node.args)) == code.co_varnames[: len(_names(node.args))]:
                definitions.append(ast.copy_location(ast.FunctionDef("<lambda>", node.args, body, []), node))
    # of two lambdas in a line with the same arguments, nothing says which it is
    return definitions[0] if len(definitions) == 1 else None


def _names(arguments: ast.arguments) -> list[str]:
    """Return the names of arguments by position, the one for all further ones included."""
    last = [arguments.vararg] if arguments.vararg else []
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *last)]


class _Checker:
    """Checks functions, each once for every combination of types that it is called with."""

    def __init__(self) -> None:
        self.faults: set[Fault] = set()
        self._returned: dict[tuple[Any, ...], Type] = {}
        self._open: list[Any] = []

    def check(self, function: Any, types: Sequence[Type]) -> Type:
        """Return the type of what a function returns when it is called with arguments of these types."""
        key = (function, *types)
        if key in self._returned:
            return self._returned[key]
        if not isinstance(function, FunctionType) or function.__code__.co_freevars:
            return self._refuse(function, "is no plain function of a module, which could be checked")
        if function in self._open:
            return self._refuse(function, "calls itself; use a loop with a fixed number of steps")
        node = _find_definition(function)
        if node is None:
            return self._refuse(function, "cannot be checked: its definition is not in a file of source code")
        self._open.append(function)
        walk = _Walk(self, function, node)
        self._returned[key] = walk.run(types)
        self.faults |= walk.faults
        self._open.pop()
        return self._returned[key]

    def _refuse(self, function: Any, why: str) -> Type:
        code = getattr(function, "__code__", None)
        file, line = (Path(code.co_filename).name, code.co_firstlineno) if code else ("?", 0)
        self.faults.add(Fault(file, line, f"{getattr(function, '__name__', function)} {why}"))
        return UNKNOWN


class _Walk:
    """The types of one function's values, for given types of its arguments."""

    def __init__(self, checker: _Checker, function: FunctionType, node: ast.FunctionDef) -> None:
        self.faults: set[Fault] = set()
        self._checker, self._function, self._node = checker, function, node
        self._names: dict[str, Type] = {}
        self._returns: Type = None
        self._is_last = False
        # whether a loop lies around the statement, and a comparison of doubles within the innermost one, or within any
        self._in_loop = self._in_test = self._in_any_test = False

    def run(self, types: Sequence[Type]) -> Type:
        """Return the type of the result; the faults are those of a last pass, when all names have their types."""
        arguments = self._node.args
        if arguments.kwarg or arguments.kwonlyargs:
            return self._refuse(self._node, "takes arguments by name", always=True)
        named, given = _names(arguments), [*types]
        if arguments.vararg:
            given[len(named) - 1 :] = [tuple(given[len(named) - 1 :])]
        defaults = [self._type(default) for default in arguments.defaults]
        if len(named) > len(given):
            given += defaults[len(given) - len(named) :]
        self._names.update(zip(named, given, strict=False))
        before = None
        while before != (self._names, self._returns):
            before = {**self._names}, self._returns
            self._statements(self._node.body)
        self._is_last = True
        self._statements(self._node.body)
        return OTHER if self._returns is None else self._returns

    def _refuse(self, node: ast.AST, what: str, always: bool = False) -> Type:
        if self._is_last or always:
            file = Path(self._function.__code__.co_filename).name
            line = getattr(node, "lineno", self._node.lineno)
            self.faults.add(Fault(file, line, f"{self._function.__name__} {what}"))
        return UNKNOWN

    # statements

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            handle = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            if handle is None:
                self._refuse(statement, f"has a statement that a kernel may not have: {_first_line(statement)}")
            else:
                handle(statement)

    def _do_pass(self, statement: ast.Pass) -> None:
        """Do nothing."""

    _do_continue = _do_pass
    _do_raise = _do_pass

    def _do_expr(self, statement: ast.Expr) -> None:
        self._type(statement.value)

    def _do_assert(self, statement: ast.Assert) -> None:
        self._type(statement.test)

    def _do_return(self, statement: ast.Return) -> None:
        self._leave_loop(statement, self._in_any_test)
        returned = OTHER if statement.value is None else self._type(statement.value)
        self._returns = returned if self._returns is None else self._join(statement, self._returns, returned, "returns")

    def _do_break(self, statement: ast.Break) -> None:
        self._leave_loop(statement, self._in_test)

    def _leave_loop(self, statement: ast.stmt, is_by_test: bool) -> None:
        if is_by_test:
            self._refuse(statement, "ends a loop by comparing doubles; use a fixed number of steps")

    def _do_assign(self, statement: ast.Assign) -> None:
        kind = self._type(statement.value)
        for target in statement.targets:
            self._assign(target, kind)

    def _do_annassign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self._assign(statement.target, self._type(statement.value))

    def _do_augassign(self, statement: ast.AugAssign) -> None:
        value = ast.BinOp(statement.target, statement.op, statement.value)
        self._assign(statement.target, self._type(ast.copy_location(value, statement)))

    def _do_if(self, statement: ast.If) -> None:
        before = self._in_test, self._in_any_test
        if self._type(statement.test) in (TEST, DOUBLE) and self._in_loop:
            self._in_test = self._in_any_test = True
        self._statements(statement.body)
        self._statements(statement.orelse)
        self._in_test, self._in_any_test = before

    def _do_while(self, statement: ast.While) -> None:
        if self._type(statement.test) in (TEST, DOUBLE):
            self._refuse(statement, "repeats a loop by comparing doubles; use a fixed number of steps")
        self._loop(statement)

    def _do_for(self, statement: ast.For) -> None:
        self._assign(statement.target, self._element(statement.iter, self._type(statement.iter)))
        self._loop(statement)

    def _loop(self, statement: ast.While | ast.For) -> None:
        before = self._in_loop, self._in_test
        self._in_loop, self._in_test = True, False
        self._statements(statement.body)
        self._in_loop, self._in_test = before
        self._statements(statement.orelse)

    def _assign(self, target: ast.expr, kind: Type) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = self._join(target, self._names.get(target.id, kind), kind, f"uses {target.id} for")
        elif isinstance(target, ast.Tuple | ast.List):
            kinds = kind if isinstance(kind, tuple) else [_ELEMENTS.get(kind, UNKNOWN)] * len(target.elts)
            if len(kinds) != len(target.elts) or any(isinstance(part, ast.Starred) for part in target.elts):
                self._refuse(target, "takes apart what is not known to have as many members")
                return
            for part, each in zip(target.elts, kinds, strict=True):
                self._assign(part, each)
        elif isinstance(target, ast.Subscript):
            place = self._type(target)
            if kind == DOUBLE and place != DOUBLE:
                self._refuse(target, "stores a double as a state; units(value, scale) makes it a whole number")
            elif kind != place and UNKNOWN not in (kind, place):
                self._refuse(target, f"stores a value of another kind: {ast.unparse(target)}")
        else:
            self._refuse(target, f"assigns to {ast.unparse(target)}")

    # expressions

    def _type(self, node: ast.expr) -> Type:
        handle = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if handle is None:
            return self._refuse(node, f"has an expression that a kernel may not have: {ast.unparse(node)}")
        return handle(node)

    def _join(self, node: ast.AST, first: Type, second: Type, verb: str) -> Type:
        """Return the type of what may be one or the other."""
        if first == second or second == UNKNOWN:
            return first
        if first == UNKNOWN or {first, second} == {WHOLE, TEST}:
            return second if first == UNKNOWN else WHOLE
        if {_unite(first), _unite(second)} == {WHOLES}:
            return WHOLES
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(self._join(node, *pair, verb) for pair in zip(first, second, strict=True))
        if {first, second} == {WHOLE, DOUBLE}:
            return self._refuse(node, f"{verb} a whole number and a double; write whole numbers as 0.0 or 1.0")
        return self._refuse(node, f"{verb} values of different kinds")

    def _element(self, node: ast.expr, kind: Type) -> Type:
        if isinstance(kind, tuple):
            element = kind[0] if kind else UNKNOWN
            for branch in kind[1:]:
                element = self._join(node, element, branch, "loops over")
            return element
        if kind in _ELEMENTS or kind == UNKNOWN:
            return _ELEMENTS.get(kind, UNKNOWN)
        return self._refuse(node, f"loops over {ast.unparse(node)}, whose members are not known")

    def _of_constant(self, node: ast.Constant) -> Type:
        if isinstance(node.value, int):
            return WHOLE
        return DOUBLE if isinstance(node.value, float) else OTHER

    def _of_joinedstr(self, node: ast.JoinedStr) -> Type:
        return OTHER

    def _of_name(self, node: ast.Name) -> Type:
        if node.id in self._names:
            return self._names[node.id]
        if node.id in self._function.__code__.co_varnames:
            return self._refuse(node, f"uses {node.id} before it has a value")
        if node.id not in self._function.__globals__:
            return self._refuse(node, f"uses {node.id} as a value")
        return self._of_global(node, self._function.__globals__[node.id])

    def _of_global(self, node: ast.Name, value: Any) -> Type:
        """Return the type of a constant of the module: doubles must be written there, not computed by other means."""
        kind = _type_of_value(value)
        parts = _flatten(kind)
        if UNKNOWN in parts:
            return self._refuse(node, f"reads {node.id}, which is no constant number")
        if parts & {DOUBLE, DOUBLES}:
            written = _find_constant(self._function.__code__.co_filename, node.id)
            if written is None or not _is_written(written):
                return self._refuse(node, f"reads {node.id}, a double that is not written out in the same file")
        return kind

    def _of_tuple(self, node: ast.Tuple) -> Type:
        return tuple(self._type(part) for part in node.elts)

    def _of_list(self, node: ast.List) -> Type:
        return self._sequence(node, self._element(node, tuple(self._type(part) for part in node.elts)))

    def _of_listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Type:
        for part in node.generators:
            self._assign(part.target, self._element(part.iter, self._type(part.iter)))
            for condition in part.ifs:
                self._type(condition)
        return self._sequence(node, self._type(node.elt))

    _of_generatorexp = _of_listcomp

    def _sequence(self, node: ast.expr, element: Type) -> Type:
        return _SEQUENCES[element] if element in _SEQUENCES else self._refuse(node, "collects what are no numbers")

    def _of_ifexp(self, node: ast.IfExp) -> Type:
        self._type(node.test)
        return self._join(node, self._type(node.body), self._type(node.orelse), "chooses between")

    def _of_boolop(self, node: ast.BoolOp) -> Type:
        kinds = [self._type(value) for value in node.values]
        if len({*kinds}) == 1:
            return kinds[0]
        if TEST in kinds or DOUBLE in kinds:
            return TEST
        return self._refuse(node, f"chooses between kinds: {ast.unparse(node)}")

    def _of_compare(self, node: ast.Compare) -> Type:
        operands = [node.left, *node.comparators]
        kinds = [self._type(operand) for operand in operands]
        wholes = [part for part, kind in zip(operands, kinds, strict=True) if kind == WHOLE and not _is_literal(part)]
        if DOUBLE in kinds and wholes:
            self._refuse(node, f"compares a double with the whole number {ast.unparse(wholes[0])}; use real(it, 1)")
        return TEST if DOUBLE in kinds or TEST in kinds or DOUBLES in kinds else WHOLE

    def _of_unaryop(self, node: ast.UnaryOp) -> Type:
        kind = self._type(node.operand)
        if isinstance(node.op, ast.Not):
            return TEST if kind in (TEST, DOUBLE) else WHOLE
        if kind in (WHOLE, UNKNOWN) or (kind == DOUBLE and not isinstance(node.op, ast.Invert)):
            return kind
        return self._refuse(node, f"reckons with what is no number: {ast.unparse(node)}")

    def _of_binop(self, node: ast.BinOp) -> Type:
        left, right = self._type(node.left), self._type(node.right)
        if isinstance(node.op, ast.Div):
            if (left, right) == (DOUBLE, DOUBLE):
                return DOUBLE
            wrong = node.right if left == DOUBLE else node.left
            return self._refuse(
                node,
                f"divides with / where {ast.unparse(wrong)} is not known to be a double; "
                "// divides whole numbers, real(units, scale) makes a double",
            )
        if left == right == WHOLE or (UNKNOWN in (left, right) and DOUBLE not in (left, right)):
            return self._of_wholes(node, UNKNOWN if UNKNOWN in (left, right) else WHOLE)
        if isinstance(node.op, ast.Pow | ast.FloorDiv | ast.Mod):
            what = (
                "power(base, exponent) of the contract is alike everywhere"
                if isinstance(node.op, ast.Pow)
                else ("only whole numbers have a remainder")
            )
            return self._refuse(node, f"uses {_SIGNS[type(node.op)]} on doubles: {ast.unparse(node)}; {what}")
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and DOUBLE in (left, right):
            other, kind = (node.right, right) if left == DOUBLE else (node.left, left)
            if kind in (DOUBLE, UNKNOWN) or (kind == WHOLE and _is_literal(other)):
                return DOUBLE
            return self._refuse(node, f"mixes a double with the whole number {ast.unparse(other)}; use real(it, 1)")
        if isinstance(node.op, ast.Mult) and {left, right} & {*_ELEMENTS} and WHOLE in (left, right):
            return left if right == WHOLE else right
        if isinstance(node.op, ast.Add) and isinstance(left, tuple) and isinstance(right, tuple):
            return left + right
        if {left, right} <= {WHOLE, TEST} and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Add):
            return TEST
        return self._refuse(node, f"reckons with what is not known to be a number: {ast.unparse(node)}")

    def _of_wholes(self, node: ast.BinOp, kind: Type) -> Type:
        """Return the type of an operation on whole numbers; a negative exponent would give a double."""
        if isinstance(node.op, ast.Pow) and not (isinstance(node.right, ast.Constant) and _is_literal(node.right)):
            return self._refuse(node, f"uses ** with an exponent that is not written out: {ast.unparse(node)}")
        return kind

    def _of_subscript(self, node: ast.Subscript) -> Type:
        kind = self._type(node.value)
        if isinstance(node.slice, ast.Slice):
            return kind if not isinstance(kind, tuple) else self._refuse(node, "takes a part of a tuple")
        if isinstance(kind, tuple):
            index = _read_literal(node.slice)
            if index is not None and -len(kind) <= index < len(kind):
                return kind[index]
            return self._element(node, kind)
        if self._type(node.slice) not in (WHOLE, UNKNOWN):
            return self._refuse(node, f"reads at a place that is no whole number: {ast.unparse(node)}")
        if kind in _ELEMENTS or kind == UNKNOWN:
            return _ELEMENTS.get(kind, UNKNOWN)
        return self._refuse(node, f"reads a member of what has none: {ast.unparse(node)}")

    # calls

    def _of_call(self, node: ast.Call) -> Type:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            return self._refuse(node, f"calls with arguments by name, or with *: {ast.unparse(node)}")
        (function, module), name = self._find_function(node.func), ast.unparse(node.func)
        kinds = [self._type(argument) for argument in node.args]
        if function is None:
            return self._refuse(node, f"calls {name}, which is neither of the contract nor of its own file")
        if module.partition(".")[0] == "numpy":
            return self._refuse(node, f"calls {name} of numpy, whose results differ between machines")
        if function in (math.sqrt, math.floor):
            if kinds != [DOUBLE]:
                self._refuse(node, f"calls {name} on what is not known to be a double")
            return DOUBLE if function is math.sqrt else WHOLE
        if module == "math":
            hint = "; exp, ln, power and root of the contract are alike everywhere"
            return self._refuse(node, f"calls {name} of the module math{hint}")
        if module == "builtins":
            return self._of_builtin(node, name, kinds)
        if module == self._function.__module__:
            return self._checker.check(function, kinds)
        if module in _FOR_KERNELS:
            return self._of_contract(node, name, function.__name__, kinds)
        return self._refuse(
            node, f"calls {name} of {module}; a kernel calls its own file and the contract's arithmetic"
        )

    def _find_function(self, node: ast.expr) -> tuple[Any, str]:
        """Return the function that a call names, or None, and the name of its module."""
        space, local = self._function.__globals__, self._function.__code__.co_varnames
        if isinstance(node, ast.Name) and node.id not in local:
            function = space.get(node.id, getattr(builtins, node.id, None))
            return function, str(getattr(function, "__module__", None) or type(function).__module__)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in local:
            owner = space.get(node.value.id)
            if isinstance(owner, ModuleType):
                function = getattr(owner, node.attr, None)
                # a method, such as that of the shared generator of `random`, has no module of its own
                return function, str(getattr(function, "__module__", None) or owner.__name__)
        return None, ""

    def _of_contract(self, node: ast.Call, name: str, function: str, kinds: list[Type]) -> Type:
        """Return what a function of the contract returns; all but a few take and return whole numbers."""
        wanted: list[Type] = [WHOLE] * len(kinds)
        if function in _OF_DOUBLES:
            wanted = [DOUBLE] * len(kinds)
        elif function == "units":
            wanted = [DOUBLE, WHOLE]
        for argument, kind, want in zip(node.args, kinds, wanted, strict=False):
            if {kind, want} == {WHOLE, DOUBLE}:
                self._refuse(argument, f"calls {name} with a {kind}, {ast.unparse(argument)}; a {want} is needed")
        return DOUBLE if function in _OF_DOUBLES or function == "real" else WHOLE

    def _of_builtin(self, node: ast.Call, name: str, kinds: list[Type]) -> Type:
        """Return what a built-in function returns."""
        numbers = {*kinds}
        if len(kinds) == 1:
            numbers = {*kinds[0]} if isinstance(kinds[0], tuple) else {_ELEMENTS.get(kinds[0], kinds[0])}
        if name in ("min", "max") and len(numbers) == 1:
            return numbers.pop()
        if name in ("min", "max"):
            hint = "; write whole numbers as 0.0" if DOUBLE in numbers else ""
            return self._refuse(node, f"calls {name} with values of different kinds{hint}")
        if name == "abs":
            return kinds[0] if kinds else UNKNOWN
        if name == "range":
            return WHOLES
        if name in ("len", "bool") or (name == "int" and kinds and kinds[0] in (WHOLE, TEST, UNKNOWN)):
            return WHOLE
        if name == "int":
            return self._refuse(node, "calls int on a double; units(value, 1) rounds it, and checks that it is one")
        if name == "float" and kinds and kinds[0] in (WHOLE, DOUBLE, UNKNOWN):
            return DOUBLE
        if name == "enumerate" and len(kinds) == 1:
            return (WHOLE, self._element(node, kinds[0])), (WHOLE, self._element(node, kinds[0]))
        if name == "sum" and [*map(_unite, kinds)] == [WHOLES]:
            return WHOLE
        why = {
            "sum": "; it adds doubles otherwise since Python 3.12, so add them in a loop",
            "round": "; units(value, scale) rounds",
            "pow": "; power(base, exponent) of the contract is alike everywhere",
        }.get(name, ", which a kernel may not call")
        return self._refuse(node, f"calls {name}{why}")


def _unite(kind: Type) -> Type:
    """Return the type of a tuple of whole numbers as that of any sequence of them."""
    return WHOLES if isinstance(kind, tuple) and {*kind} == {WHOLE} else kind


def _first_line(node: ast.stmt) -> str:
    return ast.unparse(node).partition("\n")[0]


def _is_literal(node: ast.expr) -> bool:
    """Tell whether an expression is a small whole number, written out: it is the same as a double."""
    value = _read_literal(node)
    return value is not None and abs(value) <= 2**53


def _read_literal(node: ast.expr) -> int | None:
    """Return the value of a whole number that is written out, with its sign, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _read_literal(node.operand)
        return -value if value is not None and isinstance(node.op, ast.USub) else value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _type_of_value(value: Any) -> Type:
    """Return the type of a module's constant."""
    if isinstance(value, int):
        return WHOLE
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, str | None):
        return OTHER
    if isinstance(value, range):
        return WHOLES
    if isinstance(value, tuple):
        kinds = tuple(map(_type_of_value, value))
        # a long table is one type instead of thousands
        return _SEQUENCES.get(kinds[0], kinds) if len(kinds) >= 100 and len({*kinds}) == 1 else kinds
    return UNKNOWN


def _flatten(kind: Type) -> set[Type]:
    """Return the types in a type: those of the members of a tuple and of tuples within it, or the type itself."""
    return {part for member in kind for part in _flatten(member)} if isinstance(kind, tuple) else {kind}


def _find_constant(file: str, name: str) -> ast.expr | None:
    """Return the expression that a file assigns to a name, if it does so once."""
    values: list[ast.expr] = []
    for node in _parse(file).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            value: Any = getattr(node, "value", None)
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs: Iterator[Any] = zip(target.elts, value.elts, strict=False)
            else:
                pairs = iter([(target, value)])
            values += [part for each, part in pairs if isinstance(each, ast.Name) and each.id == name]
    return values[0] if len(values) == 1 else None


def _is_written(node: ast.expr) -> bool:
    """Tell whether a constant consists of numbers written out, and of + - * / between them."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_written, node.elts))
    if isinstance(node, ast.UnaryOp):
        return _is_written(node.operand)
    if isinstance(node, ast.BinOp):
        is_exact = isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div)
        return is_exact and _is_written(node.left) and _is_written(node.right)
    return isinstance(node, ast.Constant)
