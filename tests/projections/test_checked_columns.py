"""Columns in files: what is read is what was written, or is told to be damaged; and questions that read only a part of
them have the answers of the log, whatever became of the files."""

import json
import logging
from array import array
from collections import Counter
from collections.abc import Callable
from copy import copy
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from paths import set_paths
from time_histories import ADJUSTED, INSTANTS, history
from time_ledgers import enter

from ratings_ledger import Snapshot
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.facts import stored_columns
from ratings_ledger.projections.facts.column_files import DamagedFile, encode_columns, open_file
from ratings_ledger.projections.facts.stored_columns import LayeredColumn, StoredColumn
from ratings_ledger.projections.queries.ladders_at import LadderCache
from ratings_ledger.projections.replay import trace_cache

NUMBERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40)
SMALL_BLOCK = 16


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even short columns have several blocks, of which few are held."""
    monkeypatch.setattr(stored_columns, "BLOCK_BYTES", SMALL_BLOCK)
    monkeypatch.setattr(stored_columns, "BLOCKS_KEPT_MAX", 2)


def column(path: Path, numbers: list[int], code: str) -> StoredColumn:
    """A file with these numbers, written in two parts."""
    half = len(numbers) // 3
    parts = [array(code, part) for part in (numbers[:half], numbers[half:])]
    path.write_bytes(b"".join(map(bytes, encode_columns({"numbers": (code, parts)}, {}))))
    file = open_file(path)
    assert file is not None
    return file.columns["numbers"]


def chain(folder: Path, numbers: list[int], code: str, items: int | None, cuts: list[int]) -> LayeredColumn:
    """Columns one behind another with these numbers, cut at some places."""
    ends = [0, *sorted(min(cut, len(numbers)) for cut in cuts), len(numbers)]
    parts = [numbers[first:last] for first, last in pairwise(ends)]
    return LayeredColumn([column(folder / f"{at}", part, code) for at, part in enumerate(parts)], items)


CUTS = st.lists(st.integers(0, 40), max_size=3)


@pytest.mark.usefixtures("small_blocks")
@given(st.data())
def test_read_columns_are_as_written(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Numbers, slices, those at many indices and all of them are those written, in any order of questions."""
    numbers, code = data.draw(NUMBERS), data.draw(st.sampled_from("iq"))
    found, wanted = column(tmp_path_factory.mktemp("columns") / "numbers", numbers, code), numbers
    items = data.draw(st.integers(0, len(numbers)))
    if isinstance(shorter := found[:items], StoredColumn):
        found, wanted = shorter, numbers[:items]
    assert len(found) == len(wanted)
    for _ in range(5):
        what = data.draw(st.sampled_from(("one", "slice", "first", "all", "changed", "some")))
        event(what)
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(wanted))] * 2)))
        if what == "one":
            assert [found[index] for index in range(first, last)] == wanted[first:last]
        elif what in ("slice", "first"):
            first *= what == "slice"
            assert [*found[first:last]] == wanted[first:last]
        elif what == "some":
            import numpy as np

            indices = np.array([*range(first, last), *range(first, last)][::-1], dtype=np.int64)
            assert found.take(indices).tolist() == [wanted[index] for index in indices.tolist()]
        elif what == "all":
            assert [*found] == [*found.read_whole()] == wanted
        elif last > first:
            assert [*found.copy_with({first: 7})] == [*wanted[:first], 7, *wanted[first + 1 :]]


@pytest.mark.usefixtures("small_blocks")
@given(st.data())
def test_damage_is_told_where_it_is_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """With a byte changed, what is in its block cannot be read, and the rest can."""
    numbers = data.draw(NUMBERS.filter(bool))
    path = tmp_path_factory.mktemp("columns") / "numbers"
    found = column(path, numbers, "i")
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, 4 * len(numbers) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    for index in data.draw(st.permutations(range(len(numbers)))):
        if index * 4 // SMALL_BLOCK == at // SMALL_BLOCK:
            with pytest.raises(DamagedFile, match="numbers is damaged"):
                found[index]
        else:
            assert found[index] == numbers[index]
    with pytest.raises(DamagedFile):
        found.read_whole()


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@given(NUMBERS, NUMBERS, CUTS, st.data())
def test_layers_leave_the_files_and_copies_alone(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], more: list[int], cuts: list[int], data: st.DataObject
) -> None:
    """Columns one behind another, or the first of their numbers, with changes and additions, read as a list of which
    the same was done, also when all of it was read before; copies keep their own."""
    folder = tmp_path_factory.mktemp("columns")
    items = data.draw(st.none() | st.integers(0, len(numbers)))
    found, wanted = chain(folder, numbers, "q", items, cuts), numbers[:items]
    event(f"{len(found.bases)} columns")
    content = {path: path.read_bytes() for path in folder.iterdir()}
    for number in more:
        before, kept = copy(found), [*wanted]
        if wanted and data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(wanted) - 1))
            found[index] = wanted[index] = number
        else:
            found.append(number)
            wanted.append(number)
        assert [before[index] for index in range(len(before))] == kept
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(wanted))] * 2)))
        assert [*found[first:last]] == wanted[first:last]
        assert at_many(found, [*range(first, last), *range(first, last)][::-1]) == [*wanted[first:last] * 2][::-1]
        with pytest.raises(DamagedFile):
            at_many(found, [len(wanted)])
        if data.draw(st.booleans()):
            assert [*found.read_whole()] == wanted
            assert [*found[first:last]] == wanted[first:last]
        if data.draw(st.booleans()):
            found.release_pages()
    assert [*found] == [found[index] for index in range(len(found))] == wanted
    for index in (-1, len(wanted)):
        with pytest.raises(DamagedFile):
            found[index]
        with pytest.raises(DamagedFile):
            found[index] = 7
    assert {path: path.read_bytes() for path in folder.iterdir()} == content


def at_many(column: LayeredColumn, indices: list[int]) -> list[int]:
    import numpy as np

    found: list[int] = column.take(np.array(indices, dtype=np.int64)).tolist()
    return found


@pytest.mark.usefixtures("small_blocks")
@given(st.data(), CUTS)
def test_damage_in_a_chain_is_told_where_it_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, cuts: list[int]
) -> None:
    """With a byte of one of several columns changed, what is in its block cannot be read, nor all of them at once."""
    numbers = data.draw(NUMBERS.filter(bool))
    folder = tmp_path_factory.mktemp("columns")
    found = chain(folder, numbers, "i", None, cuts)
    damaged = data.draw(st.sampled_from([at for at, base in enumerate(found.bases) if len(base)]))
    path, length = folder / f"{damaged}", len(found.bases[damaged])
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, 4 * length - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    start = sum(len(base) for base in found.bases[:damaged])
    bad = {start + index for index in range(length) if index * 4 // SMALL_BLOCK == at // SMALL_BLOCK}
    for index in data.draw(st.permutations(range(len(numbers)))):
        if index in bad:
            with pytest.raises(DamagedFile, match=f"{path.name}/numbers is damaged"):
                found[index]
        else:
            assert found[index] == numbers[index]
    with pytest.raises(DamagedFile):
        found.read_whole()


@pytest.mark.parametrize("cuts", [None, [], [1], [2]])
def test_numbers_out_of_range_are_damage(tmp_path: Path, cuts: list[int] | None) -> None:
    """A number that leads nowhere is damage under a right checksum, however it is read; so is an index."""
    numbers: list[int] = [0, 9, 2]
    found: Any = (
        column(tmp_path / "numbers", numbers, "i") if cuts is None else chain(tmp_path, numbers, "i", None, cuts)
    )
    for one in [found] if cuts is None else found.bases:
        one.limit_to(0, 3)
    assert (found[0], found[2]) == (0, 2)
    for ask in (lambda: found[1], lambda: found[1:3], lambda: found.read_whole(), lambda: found[3], lambda: found[-1]):
        with pytest.raises(DamagedFile):
            ask()


@pytest.mark.slow
def test_questions_read_parts_and_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_length: bool, store: str,
    store_kind: str,
) -> None:  # fmt: skip
    """Questions that read few blocks have the answers of the log while files of columns and traces are damaged, cut
    and lost, and segments take the place of others, also of other ledgers; now and then they are merged. What is found
    out on the way is told in a line, deleted, and the question asked again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(stored_columns, "BLOCK_BYTES", SMALL_BLOCK)
    met: Counter[str] = Counter()
    # the first is in each kind of store, and the others are in files
    seeds = 40 if at_length else 4 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        upgrade(url)
        ledger, rest = open_ledger(url), history(seed, 90)
        monkeypatch.setattr("ratings_ledger.projections.facts.decoding.CACHED_EVENTS", 10**9)
        while rest:
            part, rest = rest[:30], rest[30:]
            enter(ledger, part)
            monkeypatch.setattr("ratings_ledger.projections.facts.decoding.DELTA_EVENTS", chance.choice((11, 1_000)))
            monkeypatch.setattr("ratings_ledger.projections.facts.column_cache.MERGE_RATIO", chance.choice((0, 8)))
            with ledger.reading() as connection:
                position = head(connection).position
            asked = questions(chance, position, [one["data"]["game_id"] for one in part if "game_id" in one["data"]])
            set_paths(monkeypatch, scanned=False, compiled=False)
            monkeypatch.setattr("ratings_ledger.projections.facts.decoding.CACHED_EVENTS", 10**9)
            wanted = [answered(Snapshot(ledger, *at), ask) for at, ask in asked]
            set_paths(monkeypatch, scanned=False, compiled=chance.random() < 0.2)
            cache = LadderCache()
            for (at, ask), right in zip(asked, wanted, strict=True):
                caplog.clear()
                with caplog.at_level(logging.WARNING):
                    assert answered(Snapshot(ledger, *at, cache=cache), ask) == right
                met.update("told" for line in caplog.messages if "is not used" in line or "is rebuilt" in line)
                met.update("while asking" for line in caplog.messages if "a damaged file" in line)
                met[harm(tmp_path / "caches", chance)] += 1
                if chance.random() < 0.5:
                    cache = LadderCache()
    assert met.keys() >= {"told", "while asking", "flip", "cut", "lose", "swap"} or (seeds == 1 and met["told"]), met


CoordinateSpec = tuple[tuple[str | None, int | None], Callable[[Snapshot], Any]]


def questions(chance: Random, position: int, games: list[str]) -> list[CoordinateSpec]:
    """Questions about a ladder, and some of the games, at coordinates."""
    ladder = chance.choice(ADJUSTED)
    at = chance.choice((None, *INSTANTS)), chance.choice((None, position, chance.randint(1, position)))
    return [
        (at, lambda view: view.standings(ladder)),
        (at, lambda view: view.history(ladder, "anna")),
        (at, lambda view: view.account(ladder, "anna")),
        (at, lambda view: view.balance(ladder)),
        *((at, lambda view, game=game: view.explain(ladder, game)) for game in games[:5]),
    ]


def answered(view: Snapshot, ask: Callable[[Snapshot], Any]) -> Any:
    """The answer as JSON has it, or how it is refused."""
    try:
        return json.loads(json.dumps(ask(view).model_dump(mode="json")))
    except Exception as problem:
        return type(problem).__name__, str(problem)


def harm(place: Path, chance: Random) -> str:
    """Do something to one of the files, now and then."""
    files = sorted(path for path in place.rglob("*") if path.is_file() and path.stat().st_size)
    what = chance.choice(("flip", "flip", "flip", "cut", "lose", "swap", "nothing", "nothing"))
    if not files or what == "nothing":
        return "nothing"
    path = chance.choice(files)
    if what == "lose":
        path.unlink()
        return what
    content = bytearray(path.read_bytes())
    if what == "flip":
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif what == "swap":
        content = bytearray(chance.choice(files).read_bytes())
    else:
        del content[chance.randrange(len(content)) :]
    path.unlink()  # what is mapped keeps its length
    path.write_bytes(content)
    return what
