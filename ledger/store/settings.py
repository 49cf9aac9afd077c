"""A store's settings, read back for `doctor`; and how long a store may be busy."""

import re
from typing import NamedTuple

from sqlalchemy import URL

from ledger.errors import NotALedger

BUSY_SECONDS = 30


class Setting(NamedTuple):
    """A setting's name, its value, what it should be (None: any value is fine), and how to change it."""

    name: str
    value: str
    wanted: str | None
    remedy: str = ""

    @property
    def fine(self) -> bool:
        """Whether the value is the wanted one."""
        return self.wanted is None or self.value == self.wanted


def busy_seconds(url: URL) -> float:
    """How long to wait for a lock: the URL's `timeout`, else `BUSY_SECONDS`. Raises `NotALedger`."""
    text = str(url.query.get("timeout", BUSY_SECONDS))
    if not re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text, re.ASCII):
        raise NotALedger(f"the URL's timeout is {text!r}; it is a number of seconds such as 30 or 0.5")
    return float(text)
