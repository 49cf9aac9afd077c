"""Check that a kernel of contract 2 computes bit-identical results on every machine, interpreted and compiled.

Floating-point results are identical everywhere if doubles are only added, subtracted, multiplied, divided, compared and
passed to the functions of the contract. So each value of a kernel must be known to be a whole number or a double. Types
are inferred through the source of the kernel's functions, from the arguments that the contract defines. A value whose
type cannot be inferred is rejected.
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

INT, FLOAT, FLOAT_COMPARISON, OTHER = "whole number", "double", "comparison of doubles", "other"
INT_SEQUENCE, FLOAT_SEQUENCE, INT_TABLE, UNKNOWN = "whole numbers", "doubles", "table of whole numbers", "unknown"
# a type is one of these, or the types of a tuple's members
Type: TypeAlias = Any

_CONTRACT_MODULES = {deterministic_math.__name__, expected_scores.__name__}
_FLOAT_FUNCTIONS = {"exp", "ln", "root", "logistic", "power"}
ARGUMENTS: dict[str, tuple[Type, ...]] = {
    "score": (INT, INT_TABLE, INT_TABLE, INT_SEQUENCE, INT_SEQUENCE, INT_TABLE),
    "score_period": (INT, INT_TABLE, INT_SEQUENCE, INT_TABLE, INT_SEQUENCE, INT_SEQUENCE, INT_TABLE),
    "age": (INT_SEQUENCE, INT, INT_SEQUENCE),
    "new_season": (INT_SEQUENCE, INT_SEQUENCE),
    "enter": (INT_SEQUENCE, INT_SEQUENCE),
    "chance": (INT, INT, INT_TABLE, INT_TABLE, INT_SEQUENCE, INT_SEQUENCE),
    "draw": (INT, INT, INT_TABLE, INT_TABLE, INT_SEQUENCE, INT_SEQUENCE),
}
_ELEMENT_TYPES = {INT_SEQUENCE: INT, FLOAT_SEQUENCE: FLOAT, INT_TABLE: INT_SEQUENCE}
_SEQUENCE_TYPES = {INT: INT_SEQUENCE, FLOAT: FLOAT_SEQUENCE, INT_SEQUENCE: INT_TABLE}
_OPERATOR_SYMBOLS = {ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}


class Nondeterminism(NamedTuple):
    """A construct whose result may differ between machines, with its location."""

    file: str
    line: int
    description: str

    def __str__(self) -> str:
        return f"{self.description} ({self.file}, line {self.line})"


def find_nondeterminism(rule: Rule) -> list[Nondeterminism]:
    """Return every construct in a stateful rule's kernels that may give different results on different machines.

    The constructs are sorted by file and line.
    """
    checker = _Checker()
    for name, types in ARGUMENTS.items():
        if (function := getattr(rule, name)) is not None:
            checker.check(function, types)
    return sorted(checker.problems, key=lambda problem: (problem.file, problem.line))


@cache
def _parse(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def _find_definition(function: FunctionType) -> ast.FunctionDef | None:
    """Return the definition of a function in its file, or None. A lambda is converted to a function definition."""
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
            if tuple(_list_parameter_names(node.args)) == code.co_varnames[: len(_list_parameter_names(node.args))]:
                definitions.append(ast.copy_location(ast.FunctionDef("<lambda>", node.args, body, []), node))
    # two lambdas on one line with the same arguments cannot be told apart
    return definitions[0] if len(definitions) == 1 else None


def _list_parameter_names(arguments: ast.arguments) -> list[str]:
    """Return the names of positional parameters, including `*args`."""
    last = [arguments.vararg] if arguments.vararg else []
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *last)]


class _Checker:
    """A checker of a rule's kernels. It checks each function once for each combination of argument types."""

    def __init__(self) -> None:
        self.problems: set[Nondeterminism] = set()
        self._return_types: dict[tuple[Any, ...], Type] = {}
        self._in_progress: list[Any] = []

    def check(self, function: Any, types: Sequence[Type]) -> Type:
        """Check a function that is called with arguments of these types, and return the type of its result."""
        key = (function, *types)
        if key in self._return_types:
            return self._return_types[key]
        if not isinstance(function, FunctionType) or function.__code__.co_freevars:
            return self._report(function, "is not a plain module-level function; closures cannot be checked")
        if function in self._in_progress:
            return self._report(function, "calls itself; use a loop with a fixed number of steps")
        node = _find_definition(function)
        if node is None:
            why = "its file cannot be read as Python source, or has no definition of it, or several on one line"
            return self._report(function, f"cannot be checked: {why}")
        self._in_progress.append(function)
        function_checker = _FunctionChecker(self, function, node)
        self._return_types[key] = function_checker.run(types)
        self.problems |= function_checker.problems
        self._in_progress.pop()
        return self._return_types[key]

    def _report(self, function: Any, why: str) -> Type:
        code = getattr(function, "__code__", None)
        file, line = (Path(code.co_filename).name, code.co_firstlineno) if code else ("?", 0)
        self.problems.add(Nondeterminism(file, line, f"{getattr(function, '__name__', function)} {why}"))
        return UNKNOWN


class _FunctionChecker:
    """A checker of one function, which infers the types of the function's values from the types of its arguments."""

    def __init__(self, checker: _Checker, function: FunctionType, node: ast.FunctionDef) -> None:
        self.problems: set[Nondeterminism] = set()
        self._checker, self._function, self._node = checker, function, node
        self._variable_types: dict[str, Type] = {}
        self._return_type: Type = None
        self._is_final_pass = False
        self._in_loop = False
        self._under_float_condition = False  # within an `if` on doubles that is in the innermost loop
        self._under_any_float_condition = False  # within an `if` on doubles that is in any enclosing loop

    def run(self, types: Sequence[Type]) -> Type:
        """Return the type of the result. Problems are collected in a final pass, after the types stop changing."""
        arguments = self._node.args
        if arguments.kwarg or arguments.kwonlyargs:
            return self._report(self._node, "takes arguments only by keyword; take them by position", always=True)
        parameter_names, argument_types = _list_parameter_names(arguments), [*types]
        if arguments.vararg:
            argument_types[len(parameter_names) - 1 :] = [tuple(argument_types[len(parameter_names) - 1 :])]
        defaults = [self._infer(default) for default in arguments.defaults]
        if len(parameter_names) > len(argument_types):
            argument_types += defaults[len(argument_types) - len(parameter_names) :]
        self._variable_types.update(zip(parameter_names, argument_types, strict=False))
        previous = None
        while previous != (self._variable_types, self._return_type):
            previous = {**self._variable_types}, self._return_type
            self._check_statements(self._node.body)
        self._is_final_pass = True
        self._check_statements(self._node.body)
        return OTHER if self._return_type is None else self._return_type

    def _report(self, node: ast.AST, what: str, always: bool = False) -> Type:
        if self._is_final_pass or always:
            file = Path(self._function.__code__.co_filename).name
            line = getattr(node, "lineno", self._node.lineno)
            self.problems.add(Nondeterminism(file, line, f"{self._function.__name__} {what}"))
        return UNKNOWN

    # statements

    def _check_statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            handle = getattr(self, f"_check_{type(statement).__name__.lower()}", None)
            if handle is None:
                self._report(statement, f"uses a statement that kernels do not allow: {_first_line(statement)}")
            else:
                handle(statement)

    def _check_pass(self, statement: ast.Pass) -> None:
        """Do nothing."""

    _check_continue = _check_pass
    _check_raise = _check_pass

    def _check_expr(self, statement: ast.Expr) -> None:
        self._infer(statement.value)

    def _check_assert(self, statement: ast.Assert) -> None:
        self._infer(statement.test)

    def _check_return(self, statement: ast.Return) -> None:
        self._check_loop_exit(statement, self._under_any_float_condition)
        type_ = OTHER if statement.value is None else self._infer(statement.value)
        if self._return_type is not None:
            type_ = self._join_types(statement, self._return_type, type_, "returns")
        self._return_type = type_

    def _check_break(self, statement: ast.Break) -> None:
        self._check_loop_exit(statement, self._under_float_condition)

    def _check_loop_exit(self, statement: ast.stmt, depends_on_float: bool) -> None:
        if depends_on_float:
            self._report(statement, "leaves a loop depending on a comparison of doubles; use a fixed number of steps")

    def _check_assign(self, statement: ast.Assign) -> None:
        type_ = self._infer(statement.value)
        for target in statement.targets:
            self._assign(target, type_)

    def _check_annassign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self._assign(statement.target, self._infer(statement.value))

    def _check_augassign(self, statement: ast.AugAssign) -> None:
        value = ast.BinOp(statement.target, statement.op, statement.value)
        self._assign(statement.target, self._infer(ast.copy_location(value, statement)))

    def _check_if(self, statement: ast.If) -> None:
        saved_flags = self._under_float_condition, self._under_any_float_condition
        if self._depends_on_float(statement.test) and self._in_loop:
            self._under_float_condition = self._under_any_float_condition = True
        self._check_statements(statement.body)
        self._check_statements(statement.orelse)
        self._under_float_condition, self._under_any_float_condition = saved_flags

    def _check_while(self, statement: ast.While) -> None:
        if self._depends_on_float(statement.test):
            self._report(statement, "has a loop that a comparison of doubles controls; use a fixed number of steps")
        self._check_loop(statement)

    def _depends_on_float(self, condition: ast.expr) -> bool:
        """Tell whether a condition compares doubles. A double as a condition is compared with zero."""
        return self._infer(condition) in (FLOAT_COMPARISON, FLOAT)

    def _check_for(self, statement: ast.For) -> None:
        self._assign(statement.target, self._infer_element_type(statement.iter, self._infer(statement.iter)))
        self._check_loop(statement)

    def _check_loop(self, statement: ast.While | ast.For) -> None:
        saved_flags = self._in_loop, self._under_float_condition
        self._in_loop, self._under_float_condition = True, False
        self._check_statements(statement.body)
        self._in_loop, self._under_float_condition = saved_flags
        self._check_statements(statement.orelse)

    def _assign(self, target: ast.expr, type_: Type) -> None:
        if isinstance(target, ast.Name):
            previous_type = self._variable_types.get(target.id, type_)
            self._variable_types[target.id] = self._join_types(target, previous_type, type_, f"uses {target.id} for")
        elif isinstance(target, ast.Tuple | ast.List):
            types = type_ if isinstance(type_, tuple) else [_ELEMENT_TYPES.get(type_, UNKNOWN)] * len(target.elts)
            if len(types) != len(target.elts) or any(isinstance(part, ast.Starred) for part in target.elts):
                self._report(target, "unpacks a value whose length is unknown or different")
                return
            for part, part_type in zip(target.elts, types, strict=True):
                self._assign(part, part_type)
        elif isinstance(target, ast.Subscript):
            target_type = self._infer(target)
            if type_ == FLOAT and target_type != FLOAT:
                self._report(
                    target, "stores a double among whole numbers, such as states; convert it with units(value, scale)"
                )
            elif type_ != target_type and UNKNOWN not in (type_, target_type):
                self._report(target, f"stores a value of a different type: {ast.unparse(target)}")
        else:
            self._report(target, f"assigns to {ast.unparse(target)}")

    # expressions

    def _infer(self, node: ast.expr) -> Type:
        handle = getattr(self, f"_infer_{type(node).__name__.lower()}", None)
        if handle is None:
            return self._report(node, f"uses an expression that kernels do not allow: {ast.unparse(node)}")
        return handle(node)

    def _join_types(self, node: ast.AST, first: Type, second: Type, verb: str) -> Type:
        """Return the common type of two values; `verb` is what the function does with them, for a message."""
        if first == second or second == UNKNOWN:
            return first
        if first == UNKNOWN or {first, second} == {INT, FLOAT_COMPARISON}:
            return second if first == UNKNOWN else INT
        if {_widen_tuple(first), _widen_tuple(second)} == {INT_SEQUENCE}:
            return INT_SEQUENCE
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(self._join_types(node, *pair, verb) for pair in zip(first, second, strict=True))
        if {first, second} == {INT, FLOAT}:
            return self._report(
                node, f"{verb} values of two types, a whole number and a double; write 0.0 instead of 0"
            )
        return self._report(node, f"{verb} values of different types")

    def _infer_element_type(self, node: ast.expr, type_: Type, verb: str = "loops over") -> Type:
        """Return the type of any member of a sequence."""
        if isinstance(type_, tuple):
            element = type_[0] if type_ else UNKNOWN
            for branch in type_[1:]:
                element = self._join_types(node, element, branch, verb)
            return element
        if type_ in _ELEMENT_TYPES or type_ == UNKNOWN:
            return _ELEMENT_TYPES.get(type_, UNKNOWN)
        return self._report(node, f"{verb} {ast.unparse(node)}, whose members are not known")

    def _infer_constant(self, node: ast.Constant) -> Type:
        if isinstance(node.value, int):
            return INT
        return FLOAT if isinstance(node.value, float) else OTHER

    def _infer_joinedstr(self, node: ast.JoinedStr) -> Type:
        return OTHER

    def _infer_name(self, node: ast.Name) -> Type:
        if node.id in self._variable_types:
            return self._variable_types[node.id]
        if node.id in self._function.__code__.co_varnames:
            return self._report(node, f"uses {node.id} before it has a value")
        if node.id not in self._function.__globals__:
            return self._report(node, f"uses {node.id}, which is neither a variable nor a constant of the file")
        return self._infer_global(node, self._function.__globals__[node.id])

    def _infer_global(self, node: ast.Name, value: Any) -> Type:
        """Return the type of a constant of the module. Doubles must be literals in the module, not computed values."""
        type_ = _infer_value(value)
        parts = _flatten(type_)
        if UNKNOWN in parts:
            return self._report(node, f"reads {node.id}, which is not a numeric constant")
        if parts & {FLOAT, FLOAT_SEQUENCE}:
            expression = _find_constant_expression(self._function.__code__.co_filename, node.id)
            if expression is None or not _is_literal_expression(expression):
                return self._report(node, f"reads {node.id}, a double that is not a literal in the same file")
        return type_

    def _infer_tuple(self, node: ast.Tuple) -> Type:
        return tuple(self._infer(part) for part in node.elts)

    def _infer_list(self, node: ast.List) -> Type:
        types = tuple(self._infer(part) for part in node.elts)
        return self._infer_sequence_type(node, self._infer_element_type(node, types, "lists"))

    def _infer_listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Type:
        for part in node.generators:
            self._assign(part.target, self._infer_element_type(part.iter, self._infer(part.iter)))
            for condition in part.ifs:
                self._infer(condition)
        return self._infer_sequence_type(node, self._infer(node.elt))

    _infer_generatorexp = _infer_listcomp

    def _infer_sequence_type(self, node: ast.expr, element: Type) -> Type:
        if element in _SEQUENCE_TYPES:
            return _SEQUENCE_TYPES[element]
        return self._report(node, "builds a sequence of non-numbers")

    def _infer_ifexp(self, node: ast.IfExp) -> Type:
        self._infer(node.test)
        return self._join_types(node, self._infer(node.body), self._infer(node.orelse), "chooses between")

    def _infer_boolop(self, node: ast.BoolOp) -> Type:
        types = [self._infer(value) for value in node.values]
        if len({*types}) == 1:
            return types[0]
        if FLOAT_COMPARISON in types or FLOAT in types:
            return FLOAT_COMPARISON
        return self._report(node, f"chooses between values of different types: {ast.unparse(node)}")

    def _infer_compare(self, node: ast.Compare) -> Type:
        operands = [node.left, *node.comparators]
        types = [self._infer(operand) for operand in operands]
        wholes = [part for part, type_ in zip(operands, types, strict=True) if type_ == INT]
        unconverted = [part for part in wholes if not _is_small_integer(part)]
        if FLOAT in types and unconverted:
            self._report(node, f"compares a double with the whole number {_with_conversion(unconverted[0])}")
        return FLOAT_COMPARISON if {*types} & {FLOAT, FLOAT_COMPARISON, FLOAT_SEQUENCE} else INT

    def _infer_unaryop(self, node: ast.UnaryOp) -> Type:
        type_ = self._infer(node.operand)
        if isinstance(node.op, ast.Not):
            return FLOAT_COMPARISON if type_ in (FLOAT_COMPARISON, FLOAT) else INT
        if type_ in (INT, UNKNOWN) or (type_ == FLOAT and not isinstance(node.op, ast.Invert)):
            return type_
        return self._report(node, f"does arithmetic on a non-number: {ast.unparse(node)}")

    def _infer_binop(self, node: ast.BinOp) -> Type:
        left, right = self._infer(node.left), self._infer(node.right)
        if isinstance(node.op, ast.Div):
            if (left, right) == (FLOAT, FLOAT):
                return FLOAT
            wrong = node.right if left == FLOAT else node.left
            return self._report(
                node,
                f"divides with / where {ast.unparse(wrong)} might not be a double; "
                "divide whole numbers with //, or make a double with real(units, scale)",
            )
        if left == right == INT or (UNKNOWN in (left, right) and FLOAT not in (left, right)):
            return self._infer_integer_operation(node, UNKNOWN if UNKNOWN in (left, right) else INT)
        if isinstance(node.op, ast.Pow | ast.FloorDiv | ast.Mod):
            is_power = isinstance(node.op, ast.Pow)
            symbol = _OPERATOR_SYMBOLS[type(node.op)]
            remedy = "the contract's power(base, exponent)" if is_power else f"{symbol} only on whole numbers"
            return self._report(node, f"uses {symbol} on doubles: {ast.unparse(node)}; use {remedy}")
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and FLOAT in (left, right):
            operand, operand_type = (node.right, right) if left == FLOAT else (node.left, left)
            if operand_type in (FLOAT, UNKNOWN) or (operand_type == INT and _is_small_integer(operand)):
                return FLOAT
            return self._report(node, f"mixes a double with the whole number {_with_conversion(operand)}")
        if isinstance(node.op, ast.Mult) and {left, right} & {*_ELEMENT_TYPES} and INT in (left, right):
            return left if right == INT else right
        if isinstance(node.op, ast.Add) and isinstance(left, tuple) and isinstance(right, tuple):
            return left + right
        if {left, right} <= {INT, FLOAT_COMPARISON} and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Add):
            return FLOAT_COMPARISON
        return self._report(node, f"does arithmetic on a value that might not be a number: {ast.unparse(node)}")

    def _infer_integer_operation(self, node: ast.BinOp, type_: Type) -> Type:
        """Return the type of an operation on whole numbers. An exponent must be a literal, which is not negative."""
        is_literal = isinstance(node.right, ast.Constant) and _is_small_integer(node.right)
        if isinstance(node.op, ast.Pow) and not is_literal:
            return self._report(
                node, f"uses ** with an exponent that is not a non-negative literal: {ast.unparse(node)}"
            )
        return type_

    def _infer_subscript(self, node: ast.Subscript) -> Type:
        type_ = self._infer(node.value)
        if isinstance(node.slice, ast.Slice):
            return type_ if not isinstance(type_, tuple) else self._report(node, "takes a slice of a tuple")
        if isinstance(type_, tuple):
            index = _read_integer(node.slice)
            if index is not None and -len(type_) <= index < len(type_):
                return type_[index]
            return self._infer_element_type(node, type_, "indexes")
        if self._infer(node.slice) not in (INT, UNKNOWN):
            return self._report(node, f"has an index that is not a whole number: {ast.unparse(node)}")
        if type_ in _ELEMENT_TYPES or type_ == UNKNOWN:
            return _ELEMENT_TYPES.get(type_, UNKNOWN)
        return self._report(node, f"indexes a value that is not a sequence: {ast.unparse(node)}")

    # calls

    def _infer_call(self, node: ast.Call) -> Type:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            return self._report(
                node, f"passes arguments by keyword or with *: {ast.unparse(node)}; pass each one by position"
            )
        (function, module), name = self._find_function(node.func), ast.unparse(node.func)
        types = [self._infer(argument) for argument in node.args]
        if function is None:
            return self._report(node, f"calls {name}, which is neither in the contract nor in the same file")
        if module.partition(".")[0] == "numpy":
            return self._report(node, f"calls {name} of numpy, whose results differ between machines")
        if function in (math.sqrt, math.floor):
            if types != [FLOAT]:
                self._report(node, f"calls {name} on a value that might not be a double")
            return FLOAT if function is math.sqrt else INT
        if module == "math":
            hint = "; use exp, ln, power and root of the contract"
            return self._report(node, f"calls {name} of the module math{hint}")
        if module == "builtins":
            return self._infer_builtin(node, name, types)
        if module == self._function.__module__:
            return self._checker.check(function, types)
        if module in _CONTRACT_MODULES:
            return self._infer_contract(node, name, function.__name__, types)
        return self._report(
            node, f"calls {name} of {module}; a kernel may call only functions of its own file and of the contract"
        )

    def _find_function(self, node: ast.expr) -> tuple[Any, str]:
        """Return the function that a call names and the name of the function's module; None without a function."""
        namespace, local = self._function.__globals__, self._function.__code__.co_varnames
        if isinstance(node, ast.Name) and node.id not in local:
            function = namespace.get(node.id, getattr(builtins, node.id, None))
            return function, str(getattr(function, "__module__", None) or type(function).__module__)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in local:
            owner = namespace.get(node.value.id)
            if isinstance(owner, ModuleType):
                function = getattr(owner, node.attr, None)
                # a method, such as `random.random` of the shared generator, has no module of its own
                return function, str(getattr(function, "__module__", None) or owner.__name__)
        return None, ""

    def _infer_contract(self, node: ast.Call, name: str, function: str, types: list[Type]) -> Type:
        """Return the type that a function of the contract returns. All but a few take and return whole numbers."""
        expected_types: list[Type] = [INT] * len(types)
        if function in _FLOAT_FUNCTIONS:
            expected_types = [FLOAT] * len(types)
        elif function == "units":
            expected_types = [FLOAT, INT]
        for argument, type_, expected in zip(node.args, types, expected_types, strict=False):
            if {type_, expected} == {INT, FLOAT}:
                self._report(argument, f"calls {name} with a {type_}, {ast.unparse(argument)}; a {expected} is needed")
        return FLOAT if function in _FLOAT_FUNCTIONS or function == "real" else INT

    def _infer_builtin(self, node: ast.Call, name: str, types: list[Type]) -> Type:
        """Return the type that a built-in function returns."""
        operand_types = {*types}
        if len(types) == 1:
            operand_types = {*types[0]} if isinstance(types[0], tuple) else {_ELEMENT_TYPES.get(types[0], types[0])}
        if name in ("min", "max") and len(operand_types) == 1:
            return operand_types.pop()
        if name in ("min", "max"):
            hint = "; write 0.0 instead of 0" if FLOAT in operand_types else ""
            return self._report(node, f"calls {name} with values of different types{hint}")
        if name == "abs":
            return types[0] if types else UNKNOWN
        if name == "range":
            return INT_SEQUENCE
        if name in ("len", "bool") or (name == "int" and types and types[0] in (INT, FLOAT_COMPARISON, UNKNOWN)):
            return INT
        if name == "int":
            return self._report(node, "calls int on a double; use units(value, 1), which rounds and checks the range")
        if name == "float" and types and types[0] in (INT, FLOAT, UNKNOWN):
            return FLOAT
        if name == "enumerate" and len(types) == 1:
            # return a tuple of two equal pairs: looping over it then gives the type of one pair
            return (INT, self._infer_element_type(node, types[0])), (INT, self._infer_element_type(node, types[0]))
        if name == "sum" and [*map(_widen_tuple, types)] == [INT_SEQUENCE]:
            return INT
        why = {
            "sum": "; Python 3.12 changed how sum adds doubles, so add them in a loop",
            "round": "; units(value, scale) rounds",
            "pow": "; use the contract's power(base, exponent)",
        }.get(name, ", which a kernel may not call")
        return self._report(node, f"calls {name}{why}")


def _widen_tuple(type_: Type) -> Type:
    """Return the type of any sequence of whole numbers for a tuple of them; any other type unchanged."""
    return INT_SEQUENCE if isinstance(type_, tuple) and {*type_} == {INT} else type_


def _with_conversion(whole: ast.expr) -> str:
    """Format a whole-number expression for a message, with the call that converts it to a double."""
    text = ast.unparse(whole)
    return f"{text}; use real({text}, 1)"


def _first_line(node: ast.stmt) -> str:
    return ast.unparse(node).partition("\n")[0]


def _is_small_integer(node: ast.expr) -> bool:
    """Tell whether an expression is an integer literal that converts to a double exactly."""
    value = _read_integer(node)
    return value is not None and abs(value) <= 2**53


def _read_integer(node: ast.expr) -> int | None:
    """Return the value of an integer literal with its sign, or None for any other expression."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _read_integer(node.operand)
        return -value if value is not None and isinstance(node.op, ast.USub) else value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _infer_value(value: Any) -> Type:
    """Return the type of a module's constant."""
    if isinstance(value, int):
        return INT
    if isinstance(value, float):
        return FLOAT
    if isinstance(value, str | None):
        return OTHER
    if isinstance(value, range):
        return INT_SEQUENCE
    if isinstance(value, tuple):
        types = tuple(map(_infer_value, value))
        # a long table is one type instead of thousands
        return _SEQUENCE_TYPES.get(types[0], types) if len(types) >= 100 and len({*types}) == 1 else types
    return UNKNOWN


def _flatten(type_: Type) -> set[Type]:
    """Return all types within a type: the types in a tuple, including nested tuples, or only the type itself."""
    return {part for member in type_ for part in _flatten(member)} if isinstance(type_, tuple) else {type_}


def _find_constant_expression(file: str, name: str) -> ast.expr | None:
    """Return the expression that a file assigns to a name; None unless it assigns exactly one."""
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
            values += [value for variable, value in pairs if isinstance(variable, ast.Name) and variable.id == name]
    return values[0] if len(values) == 1 else None


def _is_literal_expression(node: ast.expr) -> bool:
    """Tell whether a constant consists of literals combined with + - * /, which round the same way everywhere."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_literal_expression, node.elts))
    if isinstance(node, ast.UnaryOp):
        return _is_literal_expression(node.operand)
    if isinstance(node, ast.BinOp):
        is_exact = isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div)
        return is_exact and _is_literal_expression(node.left) and _is_literal_expression(node.right)
    return isinstance(node, ast.Constant)
