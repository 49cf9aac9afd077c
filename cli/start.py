"""Start the program. This module loads first and fast, so that Ctrl-C prints no traceback while other modules load.

While modules load and after the command is done, an interrupt ends the process silently and at once with code 130.
During a command it raises `KeyboardInterrupt`, so that the command can clean up. `cli.main` knows whether a command is
running.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # slow imports come after the handler
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
# the threshold of the garbage collector: loading the program creates many objects that stay alive
GC_THRESHOLD = 200_000


def run() -> NoReturn:
    """Run the program, or answer a completion request of a shell."""
    # a process that a shell started in the background ignores interrupts, and must keep ignoring them
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle_interrupt)
    sys.unraisablehook = _exit_on_lost_interrupt
    if request := os.environ.get("_RATINGS_COMPLETE"):
        from ratings_ledger.cli.completion.completions import answer, is_request

        if is_request(request):
            os._exit(answer(request, sys.argv[1:]))
    gc.set_threshold(GC_THRESHOLD)
    # the library of linear algebra in numpy starts a thread per core when it is loaded; nothing here uses it
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from ratings_ledger.cli.main import run_program

    try:
        run_program()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except SystemExit as end:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            raise end from None  # Python reports the failed write
        # all output is written and closed; freeing the modules would take 10 % of the time of a short command
        os._exit(int(end.code or 0))
    raise AssertionError("run_program always exits")


def _handle_interrupt(number: int, frame: FrameType | None) -> None:
    main = sys.modules.get("ratings_ledger.cli.main")  # None or incomplete while modules load
    if not getattr(main, "is_under_way", bool)():
        os._exit(INTERRUPTED)
    assert main is not None
    main.note_interrupt()
    raise KeyboardInterrupt


def _exit_on_lost_interrupt(problem: sys.UnraisableHookArgs) -> None:
    """Exit on an interrupt during a finalizer; Python would only print the interrupt and go on."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(problem)
