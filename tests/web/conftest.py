"""What tests of pages start from: the club's ledger, and its pages on a server."""

from collections.abc import Callable

import pytest
from asking import Application, serve
from club import made


@pytest.fixture
def url(copied: Callable[..., str]) -> str:
    """The club's ledger, in each kind of store."""
    return copied(made)


@pytest.fixture
def pages(url: str) -> Application:
    """Its pages on a server."""
    return serve(url, "The club", hosts=["localhost", "pages.example"])
