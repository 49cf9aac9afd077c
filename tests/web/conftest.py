"""Fixtures for the tests of pages: the club's ledger, and its pages on a server."""

from collections.abc import Callable

import pytest
from asking import Application, serve
from club import create_club


@pytest.fixture
def url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of the club's ledger, in each kind of store in turn."""
    return copy_ledger(create_club)


@pytest.fixture
def pages(url: str) -> Application:
    """Return the club's pages on a server."""
    return serve(url, "The club", hosts=["localhost", "pages.example"])
