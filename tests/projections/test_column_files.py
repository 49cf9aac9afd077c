"""Files of columns: their bytes, reads that return the written content or report damage, and queries that read only
parts of columns and have the answers of the log, after any damage to files.
"""

import hashlib
import json
import logging
import sys
from array import array
from collections import Counter
from collections.abc import Callable
from copy import copy
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from histories import enter, load_facts
from hypothesis import event, given
from hypothesis import strategies as st
from ledgers import create_ledger
from paths import NEVER, set_paths
from thresholds import set_thresholds
from time_histories import ADJUSTED, INSTANTS, draw_history

import ratings_ledger as rl
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.cluster import segments
from ratings_ledger.projections.facts import column_cache, stored_columns
from ratings_ledger.projections.facts.column_files import DamagedFile, encode_columns, open_file
from ratings_ledger.projections.facts.stored_columns import LayeredColumn, StoredColumn

NUMBERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40)
SMALL_BLOCK = 16
little_endian = pytest.mark.skipif(sys.byteorder == "big", reason="columns are as the machine has them in memory")


# a change of the bytes needs a new format number, or programs misread each other's files
@little_endian
def test_file_with_columns_has_these_bytes(tmp_path: Path) -> None:
    """A file with columns of each shape has these bytes, and is read as it was written."""
    states = np.arange(6, dtype="i4").reshape(3, 2)
    numbers = [array("q", [1, -2]), array("q", [3])]
    columns = {"numbers": ("q", numbers), "states": ("i", [states]), "empty": ("b", [])}
    content = b"".join(map(bytes, encode_columns(columns, {"name": "a-1-b"})))
    footer = (
        b'{"about": {"name": "a-1-b"}, "columns": {"empty": ["b", [0], 48, []], '
        b'"numbers": ["q", [3], 0, [2506994767]], '
        b'"states": ["i", [3, 2], 24, [2232219709]]}, "order": "little"}'
    )
    assert content[48 : 48 + len(footer)] == footer
    assert content[:48] == array("q", [1, -2, 3]).tobytes() + array("i", range(6)).tobytes()
    assert content[48 + len(footer) :] == len(footer).to_bytes(8, "little") + bytes.fromhex("19112d33") + b"ratings2"
    (tmp_path / "a-1-b").write_bytes(content)
    file = open_file(tmp_path / "a-1-b")
    assert file is not None
    assert ([*file.columns["numbers"]], len(file.columns["empty"])) == ([1, -2, 3], 0)
    state_column = file.columns["states"]
    assert (state_column.shape, state_column[1].tolist(), state_column[1:].tolist()) == (
        (3, 2),
        [2, 3],
        [[2, 3], [4, 5]],
    )
    assert state_column.take(np.array([2, 0])).tolist() == [[4, 5], [0, 1]]
    assert state_column.read_whole().tolist() == [[0, 1], [2, 3], [4, 5]]


@little_endian
def test_columns_and_sealed_segment_of_a_history_have_these_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns and the sealed segment of a history have these digests under these format numbers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    url = create_ledger(str(tmp_path / "ratings.db"))
    enter(url, draw_history(3, 60))
    load_facts(url)
    (path,) = (tmp_path / "caches").rglob("columns/*-*-*")
    file = open_file(path)
    assert file is not None
    assert path.name.endswith(f"-{column_cache.FORMAT}")
    digest = hashlib.sha256()
    for name, column in sorted(file.columns.items()):
        if name == "others":  # records contain the time of recording
            continue
        digest.update(f"{name} {column.typecode} {column.shape}".encode() + bytes(column.read_uncached()))
    assert (column_cache.FORMAT, digest.hexdigest()[:16]) == ("6", "69c1543b09314e01")
    sealed = b"".join(map(bytes, segments.encode_segment(load_facts(url, cached=False), {})))
    assert (segments.FORMAT, hashlib.sha256(sealed).hexdigest()[:16]) == ("7", "068f99a6921097c2")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give even short columns several blocks; only a few of them are kept."""
    monkeypatch.setattr(stored_columns, "BLOCK_BYTES", SMALL_BLOCK)
    monkeypatch.setattr(stored_columns, "BLOCKS_KEPT_MAX", 2)


def write_column(path: Path, numbers: list[int], code: str) -> StoredColumn:
    """Write a file with these numbers in two parts, and return its column."""
    cut = len(numbers) // 3
    parts = [array(code, part) for part in (numbers[:cut], numbers[cut:])]
    path.write_bytes(b"".join(map(bytes, encode_columns({"numbers": (code, parts)}, {}))))
    file = open_file(path)
    assert file is not None
    return file.columns["numbers"]


def write_chain(folder: Path, numbers: list[int], code: str, items: int | None, cuts: list[int]) -> LayeredColumn:
    """Write consecutive columns with these numbers, cut at these indices, and return the chain."""
    bounds = [0, *sorted(min(cut, len(numbers)) for cut in cuts), len(numbers)]
    parts = [numbers[first:last] for first, last in pairwise(bounds)]
    return LayeredColumn([write_column(folder / f"{at}", part, code) for at, part in enumerate(parts)], items)


CUTS = st.lists(st.integers(0, 40), max_size=3)


@pytest.mark.usefixtures("small_blocks")
@given(st.data())
def test_column_reads_return_written_numbers(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Single numbers, slices, many indices and whole columns are read as written, in any order."""
    numbers, code = data.draw(NUMBERS), data.draw(st.sampled_from("iq"))
    stored, expected = write_column(tmp_path_factory.mktemp("columns") / "numbers", numbers, code), numbers
    items = data.draw(st.integers(0, len(numbers)))
    if isinstance(shorter := stored[:items], StoredColumn):
        stored, expected = shorter, numbers[:items]
    assert len(stored) == len(expected)
    for _ in range(5):
        access = data.draw(st.sampled_from(("one", "slice", "first", "all", "changed", "some")))
        event(access)
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(expected))] * 2)))
        if access == "one":
            assert [stored[index] for index in range(first, last)] == expected[first:last]
        elif access in ("slice", "first"):
            first *= access == "slice"
            assert [*stored[first:last]] == expected[first:last]
        elif access == "some":
            indices = np.array([*range(first, last), *range(first, last)][::-1], dtype=np.int64)
            assert stored.take(indices).tolist() == [expected[index] for index in indices.tolist()]
        elif access == "all":
            assert [*stored] == [*stored.read_whole()] == expected
        elif last > first:
            assert [*stored.copy_with({first: 7})] == [*expected[:first], 7, *expected[first + 1 :]]


@pytest.mark.usefixtures("small_blocks")
@given(st.data())
def test_damaged_block_cannot_be_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """After a change of one bit, the numbers of its block cannot be read, and all others can."""
    numbers = data.draw(NUMBERS.filter(bool))
    path = tmp_path_factory.mktemp("columns") / "numbers"
    stored = write_column(path, numbers, "i")
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, 4 * len(numbers) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    for index in data.draw(st.permutations(range(len(numbers)))):
        if index * 4 // SMALL_BLOCK == at // SMALL_BLOCK:
            with pytest.raises(DamagedFile, match="numbers is damaged"):
                stored[index]
        else:
            assert stored[index] == numbers[index]
    with pytest.raises(DamagedFile):
        stored.read_whole()


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@given(NUMBERS, NUMBERS, CUTS, st.data())
def test_layered_column_behaves_like_a_list(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], more: list[int], cuts: list[int], data: st.DataObject
) -> None:
    """A chain of columns with changes and additions behaves like a list; files and copies stay unchanged."""
    folder = tmp_path_factory.mktemp("columns")
    items = data.draw(st.none() | st.integers(0, len(numbers)))
    layered, expected = write_chain(folder, numbers, "q", items, cuts), numbers[:items]
    event(f"{len(layered.bases)} columns")
    content = {path: path.read_bytes() for path in folder.iterdir()}
    for number in more:
        before, expected_before = copy(layered), [*expected]
        if expected and data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(expected) - 1))
            layered[index] = expected[index] = number
        else:
            layered.append(number)
            expected.append(number)
        assert [before[index] for index in range(len(before))] == expected_before
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(expected))] * 2)))
        assert [*layered[first:last]] == expected[first:last]
        assert take_many(layered, [*range(first, last), *range(first, last)][::-1]) == [*expected[first:last] * 2][::-1]
        with pytest.raises(DamagedFile):
            take_many(layered, [len(expected)])
        if data.draw(st.booleans()):
            assert [*layered.read_whole()] == expected
            assert [*layered[first:last]] == expected[first:last]
        if data.draw(st.booleans()):
            layered.release_pages()
    assert [*layered] == [layered[index] for index in range(len(layered))] == expected
    for index in (-1, len(expected)):
        with pytest.raises(DamagedFile):
            layered[index]
        with pytest.raises(DamagedFile):
            layered[index] = 7
    assert {path: path.read_bytes() for path in folder.iterdir()} == content


def take_many(column: LayeredColumn, indices: list[int]) -> list[int]:
    """Return the numbers at many indices."""
    numbers: list[int] = column.take(np.array(indices, dtype=np.int64)).tolist()
    return numbers


@pytest.mark.usefixtures("small_blocks")
@given(st.data(), CUTS)
def test_damaged_block_of_a_chain_cannot_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, cuts: list[int]
) -> None:
    """After a change of one bit in one of several columns, neither its block nor the whole chain can be read."""
    numbers = data.draw(NUMBERS.filter(bool))
    folder = tmp_path_factory.mktemp("columns")
    layered = write_chain(folder, numbers, "i", None, cuts)
    damaged = data.draw(st.sampled_from([at for at, base in enumerate(layered.bases) if len(base)]))
    path, length = folder / f"{damaged}", len(layered.bases[damaged])
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, 4 * length - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    start = sum(len(base) for base in layered.bases[:damaged])
    damaged_indices = {start + index for index in range(length) if index * 4 // SMALL_BLOCK == at // SMALL_BLOCK}
    for index in data.draw(st.permutations(range(len(numbers)))):
        if index in damaged_indices:
            with pytest.raises(DamagedFile, match=f"{path.name}/numbers is damaged"):
                layered[index]
        else:
            assert layered[index] == numbers[index]
    with pytest.raises(DamagedFile):
        layered.read_whole()


@pytest.mark.parametrize("cuts", [None, [], [1], [2]])
def test_numbers_out_of_range_are_damage(tmp_path: Path, cuts: list[int] | None) -> None:
    """A number out of range is damage, even under a correct checksum and for any kind of read; an index out of range,
    too.
    """
    numbers: list[int] = [0, 9, 2]
    stored: Any = (
        write_column(tmp_path / "numbers", numbers, "i")
        if cuts is None
        else write_chain(tmp_path, numbers, "i", None, cuts)
    )
    for base in [stored] if cuts is None else stored.bases:
        base.limit_to(0, 3)
    assert (stored[0], stored[2]) == (0, 2)
    for read in (
        lambda: stored[1],
        lambda: stored[1:3],
        lambda: stored.read_whole(),
        lambda: stored[3],
        lambda: stored[-1],
    ):
        with pytest.raises(DamagedFile):
            read()


@pytest.mark.slow
def test_queries_of_damaged_files_have_the_answers_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_length: bool, store: str,
    store_kind: str,
) -> None:  # fmt: skip
    """Queries that read few blocks have the answers of the log, while files of columns and traces are damaged, cut and
    lost, and segments of other ledgers take their place.

    Segments are merged now and then. A query that finds damage reports it in one line, deletes the file and asks again.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(stored_columns, "BLOCK_BYTES", SMALL_BLOCK)
    set_thresholds(monkeypatch, traced_games=1)
    cases: Counter[str] = Counter()
    # the first history is in each kind of store, the others are in files
    seeds = 40 if at_length else 4 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        create_ledger(url)
        ledger, rest = open_ledger(url), draw_history(seed, 90)
        set_thresholds(monkeypatch, cached_events=NEVER)
        while rest:
            part, rest = rest[:30], rest[30:]
            enter(ledger, part)
            set_thresholds(monkeypatch, delta_events=chance.choice((11, 1_000)), merge_ratio=chance.choice((0, 8)))
            with ledger.reading() as connection:
                position = head(connection).position
            queries = list_queries(
                chance, position, [proposed["data"]["game_id"] for proposed in part if "game_id" in proposed["data"]]
            )
            set_paths(monkeypatch, scanned=False, compiled=False)
            set_thresholds(monkeypatch, cached_events=NEVER)
            with rl.open(url) as opened:
                expected_answers = [answer(opened, at, query) for at, query in queries]
            set_paths(monkeypatch, scanned=False, compiled=chance.random() < 0.2)
            opened = rl.open(url)
            for (at, query), expected in zip(queries, expected_answers, strict=True):
                caplog.clear()
                with caplog.at_level(logging.WARNING):
                    assert answer(opened, at, query) == expected
                cases.update("reported" for line in caplog.messages if "is not used" in line or "is rebuilt" in line)
                cases.update("during a query" for line in caplog.messages if "a damaged file" in line)
                cases[damage_files(tmp_path / "caches", chance)] += 1
                if chance.random() < 0.5:
                    opened.close()
                    opened = rl.open(url)
            opened.close()
    assert cases.keys() >= {"reported", "during a query", "flip", "cut", "lose", "swap"} or (
        seeds == 1 and cases["reported"]
    ), cases


Coordinates = tuple[str | None, int | None]
Query = Callable[[rl.View], Any]


def list_queries(chance: Random, position: int, games: list[str]) -> list[tuple[Coordinates, Query]]:
    """Return queries about a ladder, and about some of the games, at coordinates."""
    ladder = chance.choice(ADJUSTED)
    at = chance.choice((None, *INSTANTS)), chance.choice((None, position, chance.randint(1, position)))
    return [
        (at, lambda view: view.standings(ladder)),
        (at, lambda view: view.history(ladder, "anna")),
        (at, lambda view: view.account(ladder, "anna")),
        (at, lambda view: view.balance(ladder)),
        *((at, lambda view, game=game: view.explain(ladder, game)) for game in games[:5]),
    ]


def answer(ledger: rl.Ledger, at: Coordinates, query: Query) -> Any:
    """Return the answer as JSON, or the type and message of its error."""
    as_of, known_at = at
    try:
        return json.loads(json.dumps(query(ledger.at(as_of=as_of, known_at=known_at)).model_dump(mode="json")))
    except Exception as problem:
        return type(problem).__name__, str(problem)


def damage_files(folder: Path, chance: Random) -> str:
    """Damage one of the files now and then; return the kind of damage."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    damage = chance.choice(("flip", "flip", "flip", "cut", "lose", "swap", "nothing", "nothing"))
    if not files or damage == "nothing":
        return "nothing"
    path = chance.choice(files)
    if damage == "lose":
        path.unlink()
        return damage
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif damage == "swap":
        content = bytearray(chance.choice(files).read_bytes())
    else:
        del content[chance.randrange(len(content)) :]
    path.unlink()  # a mapped file keeps its length
    path.write_bytes(content)
    return damage
