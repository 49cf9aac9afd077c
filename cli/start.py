"""Where the program starts. It is loaded first, and quickly, so that Ctrl-C is no traceback while the rest is loaded.

An interrupt ends the process at once and silently, with 130, as long as nothing is under way: while modules are loaded,
and after the command is done. Within a command it is a `KeyboardInterrupt`, which finds the way out in order; whether
one is under way, `cli.main` knows.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # what takes time to load comes after the handler
    from types import FrameType
    from typing import NoReturn

EXIT_CODE = 128 + signal.SIGINT
# so many new objects before Python looks for cycles among them: what is loaded makes more, and stays
OBJECTS = 200_000


def run() -> NoReturn:
    """Return the program."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    if asked := os.environ.get("_RATINGS_COMPLETE"):
        from ratings_ledger.cli.completion.answers import answer, is_asked

        if is_asked(asked):
            os._exit(answer(asked, sys.argv[1:]))
    gc.set_threshold(OBJECTS)
    from ratings_ledger.cli.main import program

    try:
        program()
    except KeyboardInterrupt:
        os._exit(EXIT_CODE)
    except SystemExit as end:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            raise end from None  # Python says what it cannot write
        # all is written and closed; to take apart what was loaded would take a tenth of a short command
        os._exit(int(end.code or 0))
    raise AssertionError("the program ends by itself")


def _interrupt(number: int, frame: FrameType | None) -> None:
    main = sys.modules.get("ratings_ledger.cli.main")
    if not getattr(main, "is_under_way", bool)():
        os._exit(EXIT_CODE)
    assert main is not None
    main.note_interrupt()
    raise KeyboardInterrupt


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """An interrupt that came while an object was tidied up would be lost, and printed."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        os._exit(EXIT_CODE)
    sys.__unraisablehook__(problem)
