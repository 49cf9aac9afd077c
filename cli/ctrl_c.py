"""What Ctrl-C does.

An interrupt ends the process at once and silently, with 130, as long as nothing is under way: while modules are loaded,
and after the command is done. Within a command it is a `KeyboardInterrupt`, which finds the way out in order.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # what takes time to load comes after the handler
    from types import FrameType

INTERRUPTED = 130
_under_way = False
_interrupted = False


def handle() -> None:
    """Let an interrupt do that from now on; unless it is ignored, as it is for a process in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable


def under_way(value: bool) -> bool:
    """Whether something is under way from now on that an interrupt may not cut off; gives what was before."""
    global _under_way
    before, _under_way = _under_way, value
    return before


def interrupted() -> bool:
    """Whether there was an interrupt within a command, whatever became of its `KeyboardInterrupt`."""
    return _interrupted


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _interrupted
    if not _under_way:
        os._exit(INTERRUPTED)
    _interrupted = True
    raise KeyboardInterrupt


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """An interrupt that came while an object was tidied up would be lost, and printed."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(problem)
