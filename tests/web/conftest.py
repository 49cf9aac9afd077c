"""What tests of pages start from: the club's ledger, and its pages on a server."""

from collections.abc import Callable

import pytest
from club import made

from ratings_ledger.web.page import Site
from ratings_ledger.web.server import Pages


@pytest.fixture
def url(copied: Callable[..., str]) -> str:
    """The club's ledger, in each kind of store."""
    return copied(made)


@pytest.fixture
def pages(url: str) -> Pages:
    """Its pages on a server."""
    return Pages(url, Site("The club"), ["localhost", "pages.example"])
