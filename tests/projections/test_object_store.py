"""Object stores, a folder or one of `fsspec`, keep the first object of a name until it is deleted."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ratings_ledger import StoreUnavailable
from ratings_ledger.projections.cluster import object_store
from ratings_ledger.projections.cluster.object_store import (
    Bucket,
    DamagedObject,
    Folder,
    Objects,
    OpenedObject,
    open_object_store,
)
from ratings_ledger.projections.cluster.worker_checks import create_nonce


@pytest.fixture(params=["folder", "store"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Objects]:
    """Yield an empty store of each kind."""
    if request.param == "folder":
        yield open_object_store(f"file://{tmp_path}/objects")
        return
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    yield open_object_store(f"memory://{uuid4().hex}/objects/")


def test_first_object_of_a_name_stays(objects: Objects) -> None:
    """A second object of a name is not created, and the first stays unchanged until it is deleted."""
    assert objects.size("a-1") is None
    assert objects.create("a-1", [b"first", memoryview(b" of all")])
    assert not objects.create("a-1", [b"another"])
    assert (objects.size("a-1"), bytes(objects.read("a-1", 0, 100))) == (12, b"first of all")
    objects.delete("a-1")
    objects.delete("a-1")
    assert objects.size("a-1") is None
    assert objects.create("a-1", [b"another"])


def test_parts_of_an_object_are_read(objects: Objects) -> None:
    """A range is read, even an empty one; at the end of the object it is shorter. A missing object raises."""
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
    """Objects are listed in order by the beginning of their names; an empty store has none."""
    assert objects.names("") == []
    for name in ("b-2", "a-1", "b-1"):
        objects.create(name, [b"x"])
    assert (objects.names("b-"), objects.names("")) == (["b-1", "b-2"], ["a-1", "b-1", "b-2"])


def test_sound_store_is_accepted(objects: Objects) -> None:
    """A store that keeps existing objects is accepted, and then has one more object."""
    name = create_nonce(objects)
    assert objects.names("nonce-") == [name]


def test_store_that_overwrites_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that overwrites existing objects is rejected with the reason and the option to change."""
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    from fsspec.implementations.memory import MemoryFileSystem

    pipe_file = MemoryFileSystem.pipe_file
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda self, path, value, mode: pipe_file(self, path, value))
    cause = "it overwrites existing objects"
    message = f"cannot be used for segments: {cause}; pass --segments with the URL of a store that does not"
    with pytest.raises(StoreUnavailable, match=f"{message}$"):
        create_nonce(open_object_store(f"memory://{uuid4().hex}"))


def test_unreachable_store_is_not_reported_as_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the package becomes an `OSError`, and an unreachable object is not reported as damaged."""
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    from fsspec.implementations.memory import MemoryFileSystem

    class ConnectionClosed(Exception):
        pass

    def raise_connection_closed(*_: Any, **__: Any) -> None:
        raise ConnectionClosed("no answer")

    store = open_object_store(f"memory://{uuid4().hex}")
    store.create("a", [b"0" * 100])
    monkeypatch.setattr(MemoryFileSystem, "cat_file", raise_connection_closed)
    with pytest.raises(OSError, match=r"^ConnectionClosed: no answer$"):
        store.read("a", 0, 5)
    with pytest.raises(StoreUnavailable, match=f"^a in {store.url}: ConnectionClosed: no answer$"):
        OpenedObject(store, "a")
    assert store.size("a") == 100


def test_addresses_open_folders_and_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path and a file URL open folders, other URLs open stores, and an unknown protocol is rejected."""
    monkeypatch.chdir(tmp_path)
    for url in ("objects", f"{tmp_path}/objects", f"file://{tmp_path}/objects", f"local://{tmp_path}/objects"):
        folder = open_object_store(url)
        assert isinstance(folder, Folder)
        assert folder.url == str(tmp_path / "objects")
    pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    assert isinstance(open_object_store("memory://a/b/"), Bucket)
    assert open_object_store("memory://a/b/").url == "memory://a/b"
    with pytest.raises(
        StoreUnavailable, match=r"^nothing://a cannot be used for segments: Protocol not known: nothing"
    ):
        open_object_store("nothing://a")


def test_folder_of_another_user_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of another user is rejected with the reason, and nothing is written."""
    monkeypatch.setattr(object_store, "is_own_folder", lambda path: False)
    with pytest.raises(StoreUnavailable, match=r"cannot be used for segments: not a folder of this account$"):
        create_nonce(open_object_store(str(tmp_path)))
    assert os.listdir(tmp_path) == []


def test_forked_process_has_its_own_connection() -> None:
    """A forked process does not share its parent's connection to a store, on which it could wait forever."""
    fsspec: Any = pytest.importorskip("fsspec", reason="the extra cluster is not installed")
    store, own = open_object_store("memory://a"), fsspec.filesystem("memory", use_listings_cache=False)
    assert isinstance(store, Bucket)

    def is_own() -> bool:
        with store._files() as (files, _):
            return files is own

    assert is_own()
    child_pid = os.fork()
    if not child_pid:
        os._exit(int(is_own()))
    assert os.waitstatus_to_exitcode(os.waitpid(child_pid, 0)[1]) == 0
