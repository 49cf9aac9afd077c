"""Where the program starts. It loads first, and quickly, so that Ctrl-C gives no traceback while the rest is loading.

An interrupt ends the process at once and silently, with 130, as long as nothing is under way: while modules are loaded,
and after the command is done. Within a command it is a `KeyboardInterrupt`, which leads to an orderly exit.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # anything slow to load comes after the handler
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130
_under_way = False
_interrupted = False


def under_way(value: bool) -> bool:
    """Set whether something is under way that an interrupt may not cut off; returns the previous value."""
    global _under_way
    before, _under_way = _under_way, value
    return before


def interrupted() -> bool:
    """Whether an interrupt came within a command, whatever became of its `KeyboardInterrupt`."""
    return _interrupted


def run() -> NoReturn:
    """The program."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise it is ignored, as in the background
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    from importlib import import_module

    try:
        import_module("cli.main").program()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    raise AssertionError("the program ends by itself")


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _interrupted
    if not _under_way:
        os._exit(INTERRUPTED)
    _interrupted = True
    raise KeyboardInterrupt


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """An interrupt that came while an object was being cleaned up would be lost, and printed."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(problem)
