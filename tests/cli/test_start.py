"""The start of the program."""

import os
import subprocess
import sys

import pytest

# load numpy inside the program; print the number of threads of the process, and the setting
CODE = """
import os, sys
import ratings_ledger.cli.main as main
def run_program():
    import numpy
    print(len(os.listdir("/proc/self/task")), os.environ["OPENBLAS_NUM_THREADS"])
    sys.exit(0)
main.run_program = run_program
from ratings_ledger.cli.start import run
run()
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.parametrize("setting", [None, "2"])
def test_numpy_starts_no_threads(setting: str | None) -> None:
    """The program loads numpy without threads for linear algebra, unless the environment sets their number."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if setting is None else {"OPENBLAS_NUM_THREADS": setting}
    process = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment)
    threads, openblas_threads = process.stdout.split()
    assert openblas_threads == (setting or "1")
    assert setting is not None or threads == "1"
