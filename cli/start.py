"""Where the program starts. It is loaded first, and quickly: Ctrl-C is no traceback while the rest is loaded."""

from __future__ import annotations

import os

from cli import ctrl_c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> NoReturn:
    """The program."""
    ctrl_c.handle()
    from cli.main import program as program

    try:
        program()
    except KeyboardInterrupt:
        os._exit(ctrl_c.INTERRUPTED)
    raise AssertionError("the program ends by itself")
