"""Run one measurement: call a function with arguments from standard input, and print its result as JSON."""

import json
import resource
import sys
from contextlib import redirect_stdout
from importlib import import_module


def main() -> None:
    """Call the `module:function` named by the first argument."""
    module, _, name = sys.argv[1].partition(":")
    arguments = json.load(sys.stdin)
    if module == "benchmarks.ours":
        # numba loads scipy if it is installed; the program does not need it, but one of the baselines installs it
        sys.modules["scipy"] = None  # type: ignore[assignment]
    with redirect_stdout(sys.stderr):
        result = getattr(import_module(module), name)(**arguments)
    measured = resource.RUSAGE_CHILDREN if result.pop("of_children", False) else resource.RUSAGE_SELF
    # kilobytes on Linux, bytes on macOS
    unit = 1 if sys.platform == "darwin" else 1_024
    print(json.dumps({"seconds": 0.0, **result, "peak_bytes": resource.getrusage(measured).ru_maxrss * unit}))  # noqa: T201


if __name__ == "__main__":
    main()
