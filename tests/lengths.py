"""What is tried only at length: `--length long`."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def at_length_but(short: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Values for `parametrize`, of which only some are tried if it is to be short."""
    return [pytest.param(value, marks=() if value in short else pytest.mark.at_length) for value in values]
