"""A copy of a ledger, as for staging, keeps its id: each place has a cache of its own, neither spoils the other's."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ledgers import create_ledger, open_for_reading
from paths import digests, set_paths, told
from sqlalchemy import make_url, text
from stores import create_postgres_database
from time_histories import history
from time_ledgers import enter

from ratings_ledger.ledger.store.log import ledger_id
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.facts import column_cache
from ratings_ledger.projections.facts.decoding import decode


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the caches of this test are, kept from the first event on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    return tmp_path / "caches" / "ratings-ledger"


@pytest.fixture
def copy_of(store_kind: str, request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """A function that copies a ledger as it is, its id included."""
    if store_kind == "sqlite":
        yield lambda url: f"sqlite:///{shutil.copyfile(_file(url), f'{_file(url)}.staging')}"
        return
    made: list[Any] = []

    def copy(url: str) -> str:
        made.append(create_postgres_database(request.getfixturevalue("server"), url))
        return str(made[-1].__enter__())

    yield copy
    for one in made:
        one.__exit__(None, None, None)


def _file(url: str) -> str:
    return str(make_url(url).database)


def decoded(ledger: Ledger, cached: bool = True) -> Any:
    with ledger.reading() as connection:
        facts = decode(connection, cached=cached)
    return told(facts), digests(facts)


@pytest.mark.slow_cases
def test_copied_ledger_has_its_own_cache(
    store: str, copy_of: Callable[[str], str], caches: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A ledger and its copy that grow apart each keep a cache, and neither cache is ever rebuilt."""
    log = history(3, 60)
    create_ledger(store)
    enter(open_ledger(store), log[:40])
    other = copy_of(store)
    both = open_ledger(store), open_ledger(other)
    with both[0].reading() as mine, both[1].reading() as his:
        assert ledger_id(mine) == ledger_id(his)
    # another history each from here on
    enter(both[0], log[40:50])
    enter(both[1], log[50:60])
    folders = []
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            for ledger in both:
                assert decoded(ledger) == decoded(ledger, cached=False)
            folders.append(sorted(caches.glob("*/columns/*")))
    assert caplog.records == []
    assert len(folders[0]) == 2
    assert folders == [folders[0]] * 3  # a cache that is made anew has another folder


def test_linked_path_shares_the_cache(tmp_path: Path, caches: Path) -> None:
    """A ledger reached through a symbolic link uses the same cache as by its real path."""
    (tmp_path / "real").mkdir()
    create_ledger(str(tmp_path / "real" / "ratings.db"))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert folder(str(tmp_path / "real" / "ratings.db")) == folder(str(tmp_path / "link" / "ratings.db"))


def folder(url: str) -> str:
    with open_for_reading(url) as connection:
        return column_cache.name_cache_folder(connection)


def test_postgres_schemas_have_separate_caches(postgres_url: str) -> None:
    """Two PostgreSQL schemas that hold the same ledger have separate caches."""
    create_ledger(postgres_url)
    with open_for_reading(postgres_url) as connection:
        connection.execute(text("CREATE SCHEMA staging"))
        connection.execute(text("CREATE TABLE staging.ledger_identity AS SELECT * FROM public.ledger_identity"))
    staging = make_url(postgres_url).update_query_dict({"options": "-csearch_path=staging"})
    one, other = folder(postgres_url), folder(staging.render_as_string(hide_password=False))
    assert (one[:36], one == other) == (other[:36], False)


@pytest.mark.parametrize("name", ["rätings; rm -rf ~.db", "line\nend.db", "..db", "%2e%2e%2f.db", "a" * 200])
def test_cache_folder_name_is_safe(name: str, tmp_path: Path) -> None:
    """Whatever the ledger file is called, its cache is one folder with a safe name."""
    create_ledger(str(tmp_path / name))
    found = folder(str(tmp_path / name))
    assert len(found) == 36 + 1 + 16
    assert set(found) <= set("0123456789abcdef-")
