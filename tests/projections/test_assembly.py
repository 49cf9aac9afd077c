"""The machine code of kernels with doubles: no processor may round a product and a sum in one step.

A fused multiply-add rounds once where the source rounds twice, so its results differ from those of Python, and of
processors without it. The code is generated for a processor that has the instruction.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from own_rules import list_state_rules, load_built_in_rule

from ratings_ledger.projections import compiling
from ratings_ledger.projections.rulesets.kernel_determinism import ARGUMENTS, INT, INT_TABLE

numba = pytest.importorskip("numba", reason="the extra fast is not installed")
binding = pytest.importorskip("llvmlite.binding")

# by architecture: target, processor, and a pattern of its fused instructions
TARGETS = {
    "x86-64": ("x86_64-unknown-linux-gnu", "haswell", r"\bvfn?m(?:add|sub)\w*"),
    "aarch64": ("aarch64-unknown-linux-gnu", "", r"\bfn?m(?:add|sub)\b|\bfml[as]\b"),
}
FMA_CALLS = r"|\bfmaf?\b"
Kernel = tuple[Callable[..., Any], tuple[Any, ...]]


def list_kernels(name: str) -> list[Kernel]:
    """Return the kernels of a rule with the types for which they are compiled."""
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
    function, types = kernel
    options = {"nogil": True, "boundscheck": False, "_nrt": False} | options
    compiled = numba.njit(**options)(compiling.StandaloneCopier(options).copy(function, {}))
    compiled.compile(types)
    code: str = compiled.inspect_llvm()[types]
    return code


def write_assembly(code: str, architecture: str) -> str:
    """Return the assembly of a kernel for a processor of an architecture."""
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


@pytest.mark.slow
@pytest.mark.parametrize("architecture", TARGETS)
def test_fused_kernel_is_detected(architecture: str) -> None:
    """The search finds the instruction in a kernel that may be fused, and not in the same kernel otherwise."""
    kernel = (compute_product_sum, (numba.float64,) * 3)
    assert len(find_fused(compile_kernel(kernel, fastmath={"contract"}), architecture)) > 0
    assert find_fused(compile_kernel(kernel), architecture) == []


@pytest.mark.slow
def test_code_of_a_kernel_contains_its_helpers() -> None:
    """The code of a kernel contains the functions that it calls, such as the square root."""
    score, types = list_kernels("glicko-1/1")[0]
    assembly = write_assembly(compile_kernel((score, types)), "aarch64")
    assert {"fsqrt", "fdiv", "fmul", "fadd"} <= {*re.findall(r"\bf\w+\b", assembly)}
