"""A copy of a ledger, as for staging, keeps its id: each place has a cache of its own, neither spoils the other's."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from paths import digests, set_paths, told
from sqlalchemy import make_url, text
from stores import postgres_database
from time_histories import history
from time_ledgers import enter

from ledger.store.log import ledger_id
from ledger.store.opening import Ledger, connect, open_ledger
from ledger.store.upgrading import upgrade
from projections.facts import column_cache
from projections.facts.decoding import decode


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
        made.append(postgres_database(request.getfixturevalue("server"), url))
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


def test_given_a_ledger_and_its_copy_when_both_grow_and_are_read_in_turn_then_neither_cache_is_made_anew(
    store: str, copy_of: Callable[[str], str], caches: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = history(3, 60)
    upgrade(store)
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
            folders.append(sorted(path for path in caches.glob("*/*") if path.is_dir()))
    assert caplog.records == []
    assert len(folders[0]) == 2
    assert folders == [folders[0]] * 3  # a cache that is made anew has another folder


def test_given_a_ledger_that_is_reached_by_a_link_when_read_then_the_cache_is_the_same(
    tmp_path: Path, caches: Path
) -> None:
    (tmp_path / "real").mkdir()
    upgrade(str(tmp_path / "real" / "ratings.db"))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert folder(str(tmp_path / "real" / "ratings.db")) == folder(str(tmp_path / "link" / "ratings.db"))


def folder(url: str) -> str:
    with connect(url).reading() as connection:
        return column_cache.folder_of(connection)


def test_given_two_schemas_with_the_same_ledger_when_named_then_each_has_a_cache_of_its_own(postgres_url: str) -> None:
    upgrade(postgres_url)
    with connect(postgres_url).reading() as connection:
        connection.execute(text("CREATE SCHEMA staging"))
        connection.execute(text("CREATE TABLE staging.ledger_identity AS SELECT * FROM public.ledger_identity"))
    staging = make_url(postgres_url).update_query_dict({"options": "-csearch_path=staging"})
    one, other = folder(postgres_url), folder(staging.render_as_string(hide_password=False))
    assert (one[:36], one == other) == (other[:36], False)


@pytest.mark.parametrize("name", ["rätings; rm -rf ~.db", "line\nend.db", "..db", "%2e%2e%2f.db", "a" * 200])
def test_given_a_file_with_any_name_when_its_cache_is_named_then_that_is_one_folder_of_checked_parts(
    name: str, tmp_path: Path
) -> None:
    upgrade(str(tmp_path / name))
    found = folder(str(tmp_path / name))
    assert len(found) == 36 + 1 + 16
    assert set(found) <= set("0123456789abcdef-")
