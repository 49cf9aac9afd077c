"""A copy of a ledger keeps its id, but each of the two has a cache of its own."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from histories import enter, load_facts
from ledgers import create_ledger, open_for_reading
from paths import compute_digests, find_cache_folder, set_paths, summarize_facts
from sqlalchemy import make_url, text
from stores import create_postgres_database
from time_histories import draw_history

from ratings_ledger.ledger.store.log import ledger_id
from ratings_ledger.ledger.store.opening import Ledger, open_ledger


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache folder of this test; ledgers are cached from the first event on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    return tmp_path / "caches" / "ratings-ledger"


@pytest.fixture
def copy_ledger(store_kind: str, request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Yield a function that copies a ledger with its id."""
    if store_kind == "sqlite":
        yield lambda url: f"sqlite:///{shutil.copyfile(_file(url), f'{_file(url)}.staging')}"
        return
    databases: list[Any] = []

    def copy(url: str) -> str:
        databases.append(create_postgres_database(request.getfixturevalue("server"), url))
        return str(databases[-1].__enter__())

    yield copy
    for database in databases:
        database.__exit__(None, None, None)


def _file(url: str) -> str:
    return str(make_url(url).database)


def decode_and_rank(ledger: Ledger, cached: bool = True) -> Any:
    """Return a summary of the facts, and the digests of all ladders."""
    facts = load_facts(ledger, cached=cached)
    return summarize_facts(facts), compute_digests(facts)


@pytest.mark.slow_cases
def test_copied_ledger_has_its_own_cache(
    store: str, copy_ledger: Callable[[str], str], caches: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A ledger and its copy that grow apart each have a cache, and neither cache is rebuilt."""
    log = draw_history(3, 60)
    create_ledger(store)
    enter(open_ledger(store), log[:40])
    copy_url = copy_ledger(store)
    ledgers = open_ledger(store), open_ledger(copy_url)
    with ledgers[0].reading() as original_connection, ledgers[1].reading() as copy_connection:
        assert ledger_id(original_connection) == ledger_id(copy_connection)
    # from here on the histories differ
    enter(ledgers[0], log[40:50])
    enter(ledgers[1], log[50:60])
    folders = []
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            for ledger in ledgers:
                assert decode_and_rank(ledger) == decode_and_rank(ledger, cached=False)
            folders.append(sorted(caches.glob("*/columns/*")))
    assert caplog.records == []
    assert len(folders[0]) == 2
    assert folders == [folders[0]] * 3  # a rebuilt cache would have another folder


def test_linked_path_shares_the_cache(tmp_path: Path, caches: Path) -> None:
    """A ledger opened through a symbolic link has the same cache as by its real path."""
    (tmp_path / "real").mkdir()
    create_ledger(str(tmp_path / "real" / "ratings.db"))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert find_cache_folder(str(tmp_path / "real" / "ratings.db")) == find_cache_folder(
        str(tmp_path / "link" / "ratings.db")
    )


def test_postgres_schemas_have_separate_caches(postgres_url: str) -> None:
    """Two PostgreSQL schemas with the same ledger have separate caches."""
    create_ledger(postgres_url)
    with open_for_reading(postgres_url) as connection:
        connection.execute(text("CREATE SCHEMA staging"))
        connection.execute(text("CREATE TABLE staging.ledger_identity AS SELECT * FROM public.ledger_identity"))
    staging = make_url(postgres_url).update_query_dict({"options": "-csearch_path=staging"})
    public_folder, staging_folder = (
        find_cache_folder(postgres_url),
        find_cache_folder(staging.render_as_string(hide_password=False)),
    )
    assert (public_folder[:36], public_folder == staging_folder) == (staging_folder[:36], False)


@pytest.mark.parametrize("name", ["rätings; rm -rf ~.db", "line\nend.db", "..db", "%2e%2e%2f.db", "a" * 200])
def test_cache_folder_name_is_safe(name: str, tmp_path: Path) -> None:
    """For any name of the ledger file, the cache is one folder with a safe name."""
    create_ledger(str(tmp_path / name))
    name_of_folder = find_cache_folder(str(tmp_path / name))
    assert len(name_of_folder) == 36 + 1 + 16
    assert set(name_of_folder) <= set("0123456789abcdef-")
