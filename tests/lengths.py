"""What is tried only at length: `--length long`."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def at_length_but(short: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Values for `parametrize`, of which only some are tried if it is to be short."""
    return [pytest.param(value, marks=() if value in short else pytest.mark.at_length) for value in values]


def few_of_many(few: int, many: int) -> list[Any]:
    """Numbers of random cases for `parametrize`: few at once, and many where slow tests run."""
    return [few, pytest.param(many, marks=pytest.mark.slow)]
