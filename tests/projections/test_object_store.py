"""Places for objects: a folder, and a store that `fsspec` reaches, hold what is created first until it is deleted."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ratings_ledger import StoreUnavailable
from ratings_ledger.projections.cluster import object_store as places
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject
from ratings_ledger.projections.cluster.object_store import Bucket, Folder, Objects, open_object_store
from ratings_ledger.projections.cluster.worker_checks import prove


@pytest.fixture(params=["folder", "store"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Objects]:
    """An empty place of each kind."""
    if request.param == "folder":
        yield open_object_store(f"file://{tmp_path}/objects")
        return
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    yield open_object_store(f"memory://{uuid4().hex}/objects/")


def test_first_object_of_a_name_stays(objects: Objects) -> None:
    """Whoever creates an object second is told so, and what is there stays as it was, until it is deleted."""
    assert objects.size("a-1") is None
    assert objects.create("a-1", [b"first", memoryview(b" of all")])
    assert not objects.create("a-1", [b"another"])
    assert (objects.size("a-1"), bytes(objects.read("a-1", 0, 100))) == (12, b"first of all")
    objects.delete("a-1")
    objects.delete("a-1")
    assert objects.size("a-1") is None
    assert objects.create("a-1", [b"another"])


def test_parts_of_an_object_are_read(objects: Objects) -> None:
    """A range is read, also one without bytes, and less of it where the object ends; what is not there is told."""
    objects.create("a", [b"0123456789"])
    read = [bytes(objects.read("a", first, length)) for first, length in ((2, 3), (4, 0), (0, 0), (8, 5))]
    assert read == [b"234", b"", b"", b"89"]
    objects.create("empty", [])
    assert (objects.size("empty"), bytes(objects.read("empty", 0, 5))) == (0, b"")
    with pytest.raises(FileNotFoundError):
        objects.read("b", 0, 5)
    with pytest.raises(DamagedObject, match=r"^b is missing$"):
        OpenedObject(objects, "b")


def test_names_are_listed_in_order(objects: Objects) -> None:
    """Objects are listed by how their names begin; a place where nothing is has none."""
    assert objects.names("") == []
    for name in ("b-2", "a-1", "b-1"):
        objects.create(name, [b"x"])
    assert (objects.names("b-"), objects.names("")) == (["b-1", "b-2"], ["a-1", "b-1", "b-2"])


def test_places_are_proved(objects: Objects) -> None:
    """A place that keeps what is there is fit for objects, and has one more then."""
    name = prove(objects)
    assert objects.names("nonce-") == [name]


def test_store_that_replaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not know the condition, and replaces what is there, is refused before anything is sealed."""
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    from fsspec.implementations.memory import MemoryFileSystem

    usual = MemoryFileSystem.pipe_file
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda self, path, value, mode: usual(self, path, value))
    with pytest.raises(StoreUnavailable, match=r"cannot be used for segments: it overwrites existing objects$"):
        prove(open_object_store(f"memory://{uuid4().hex}"))


def test_store_that_does_not_answer_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package's own error becomes one of the system's; what cannot be read now is not called damaged."""
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    from fsspec.implementations.memory import MemoryFileSystem

    class ConnectionClosed(Exception):
        pass

    def closed(*_: Any, **__: Any) -> None:
        raise ConnectionClosed("no answer")

    store = open_object_store(f"memory://{uuid4().hex}")
    store.create("a", [b"0" * 100])
    monkeypatch.setattr(MemoryFileSystem, "cat_file", closed)
    with pytest.raises(OSError, match=r"^ConnectionClosed: no answer$"):
        store.read("a", 0, 5)
    with pytest.raises(StoreUnavailable, match=f"^a in {store.url}: ConnectionClosed: no answer$"):
        OpenedObject(store, "a")
    assert store.size("a") == 100


def test_addresses_lead_to_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path and a file URL are folders, other URLs are stores, and one that nothing knows is refused."""
    monkeypatch.chdir(tmp_path)
    for url in ("objects", f"{tmp_path}/objects", f"file://{tmp_path}/objects", f"local://{tmp_path}/objects"):
        place = open_object_store(url)
        assert isinstance(place, Folder)
        assert place.url == str(tmp_path / "objects")
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    assert isinstance(open_object_store("memory://a/b/"), Bucket)
    assert open_object_store("memory://a/b/").url == "memory://a/b"
    with pytest.raises(
        StoreUnavailable, match=r"^nothing://a cannot be used for segments: Protocol not known: nothing"
    ):
        open_object_store("nothing://a")


def test_folder_of_another_account_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written where another account could have put it, and the refusal says why."""
    monkeypatch.setattr(places, "is_own_folder", lambda path: False)
    with pytest.raises(StoreUnavailable, match=r"cannot be used for segments: not a folder of this account$"):
        prove(open_object_store(str(tmp_path)))
    assert os.listdir(tmp_path) == []


def test_forked_process_has_a_connection_of_its_own() -> None:
    """What talks to a store is not taken along into another process, where it would wait for answers for ever."""
    fsspec: Any = pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    store, own = open_object_store("memory://a"), fsspec.filesystem("memory", use_listings_cache=False)
    assert isinstance(store, Bucket)

    def is_own() -> bool:
        with store._files() as (files, _):
            return files is own

    assert is_own()
    other = os.fork()
    if not other:
        os._exit(int(is_own()))
    assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 0
