"""Mark the cases that run only at length, with `--length long`, or only with the slow tests."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mark_long_values(short: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Return values for `parametrize`; those that are not in `short` run only at length."""
    return [pytest.param(value, marks=() if value in short else pytest.mark.at_length) for value in values]


def mark_many_cases(few: int, many: int) -> list[Any]:
    """Return numbers of random cases for `parametrize`; the large number runs only with the slow tests."""
    return [few, pytest.param(many, marks=pytest.mark.slow)]
