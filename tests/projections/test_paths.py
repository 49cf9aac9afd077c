"""Whatever way leads from the log to standings, the same comes out: taken one by one or scanned, cached or not,
interpreted or compiled, at any position, whatever became of the cache in between."""

import json
import logging
import shutil
from collections import Counter
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fault_helpers import fork_child, wait_for_exits
from forging import INVALID_EVENTS, INVALID_GAMES, UNCANONICAL_RECORDS, append_named_forgery
from paths import digests, set_paths, told
from time_histories import history
from time_ledgers import enter

from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.admission.ladder_checks import Admission
from ratings_ledger.projections.diff.affected import apply_drafts
from ratings_ledger.projections.facts import bulk_decoding, column_cache, decoding
from ratings_ledger.projections.facts.column_cache import name_cache_folder
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.explain import explain_player
from ratings_ledger.projections.queries.ladders_at import Ladders


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the caches of this test are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "ratings-ledger"


def files(caches: Path) -> list[Path]:
    return sorted(path for path in caches.rglob("*") if path.is_file() and path.stat().st_size and path.name != "lock")


def flip(caches: Path, chance: Random) -> None:
    path = chance.choice(files(caches))
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut_off(caches: Path, chance: Random) -> None:
    path = chance.choice(files(caches))
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def leave_unfinished(caches: Path, chance: Random) -> None:
    """As somebody leaves it who was killed where files need a name; and one with a name that is not its own."""
    path = chance.choice(segments(caches))
    shutil.copy(path, path.with_name(f".ratings-{chance.randbytes(8).hex()}.part"))
    first, last, rest = path.name.split("-", 2)
    put(path, path.with_name(f"{first}-{int(last) - 1}-{rest}"))


def plant(caches: Path, chance: Random) -> None:
    """Segments of other ledgers, and of other histories of this one, under their own names and under others."""
    mine, strange = chance.choice(segments(caches)), chance.choice(sorted((caches.parent / "elsewhere").iterdir()))
    put(strange, mine.parent / strange.name)
    put(strange, mine.parent / mine.name.replace("-", "0-", 1))
    if chance.random() < 0.5:
        put(strange, mine)


def put(path: Path, place: Path) -> None:
    """Put a copy of a file at a place: what is mapped of the one that was there stays."""
    place.unlink(missing_ok=True)
    shutil.copy(path, place)


def segments(caches: Path) -> list[Path]:
    return sorted(caches.glob("*/columns/*-*-*"))


def lose(caches: Path, chance: Random) -> None:
    chance.choice(files(caches)).unlink()


def lose_all(caches: Path, chance: Random) -> None:
    shutil.rmtree(caches)


def nothing(caches: Path, chance: Random) -> None:
    pass


HARM = [flip, cut_off, leave_unfinished, plant, lose, lose_all, nothing, nothing]


def decoded(ledger: Ledger, known_at: int | None = None, cached: bool = True) -> tuple[dict[str, Any], dict[str, str]]:
    """What the facts are, and the digests of all ladders."""
    with ledger.reading() as connection:
        facts = decode(connection, known_at, cached=cached)
    return told(facts), digests(facts)


@pytest.mark.slow
def test_all_paths_give_the_same_standings(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str
) -> None:
    """As a random history grows, every path to the standings gives the same result.

    Late games, corrections, voids, renames and rule changes come in pieces; the segments of the cache are merged at
    random, and damaged now and then.
    """
    harmed: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    strange_segments(tmp_path, monkeypatch, caches)
    # the first is in each kind of store, and the others are in files
    seeds = 60 if at_length else 3 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        upgrade(url)
        ledger, rest, length = open_ledger(url), history(seed, 90), 0
        while rest:
            size = chance.randint(1, 30)
            part, rest = rest[:size], rest[size:]
            enter(ledger, part)
            length += len(part)
            set_paths(monkeypatch, scanned=False, compiled=False)
            plain = decoded(ledger, cached=False)
            monkeypatch.setattr(decoding, "DELTA_EVENTS", chance.choice((7, 1_000)))
            monkeypatch.setattr(column_cache, "MERGE_RATIO", chance.choice((0, 1, 8)))
            monkeypatch.setattr(column_cache, "SEGMENTS_MAX", chance.choice((2, 16)))
            set_paths(monkeypatch, scanned=chance.random() < 0.5, compiled=chance.random() < 0.5)
            assert decoded(ledger) == plain, (seed, length)
            lengths[len(segments(caches))] += 1
            set_paths(monkeypatch, scanned=True, compiled=True)
            assert decoded(ledger) == plain, (seed, length)
            assert decoded(ledger, cached=False) == plain, (seed, length)
            harm = chance.choice(HARM)
            harm(caches, chance)
            harmed[harm.__name__] += 1
        for _ in range(6):
            known_at = chance.randint(1, length)
            set_paths(monkeypatch, scanned=False, compiled=False)
            plain = decoded(ledger, known_at, cached=False)
            set_paths(monkeypatch, scanned=True, compiled=chance.random() < 0.5)
            assert decoded(ledger, known_at) == plain, (seed, known_at)
    assert set(harmed) >= {harm.__name__ for harm in HARM} or not at_length
    assert {1, 2, 3} <= lengths.keys() or seeds == 1, lengths


def strange_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caches: Path) -> None:
    """Put segments of other ledgers, and of a history that went on differently, where `plant` finds them."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    for seed in (0, 1):
        (tmp_path / f"other-{seed}").mkdir()
        ledger, log = small(tmp_path / f"other-{seed}", seed, 20), history(seed, 50)
        decoded(ledger)
        enter(ledger, log[20:])
        decoded(ledger)
    for path in segments(caches):
        (caches.parent / "elsewhere").mkdir(exist_ok=True)
        shutil.copy(path, caches.parent / "elsewhere" / path.name)
    shutil.rmtree(caches)


def small(tmp_path: Path, seed: int = 3, count: int = 60) -> Ledger:
    path = str(tmp_path / "ratings.db")
    upgrade(path)
    ledger = open_ledger(path)
    enter(ledger, history(seed, count))
    return ledger


def test_drafts_are_taken_alike_scanned_or_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts with drafts are those once the drafts are recorded, whether their games are scanned or not."""
    for seed in range(2):
        (tmp_path / f"{seed}").mkdir()
        ledger, log = small(tmp_path / f"{seed}", seed, 20), history(seed, 90)
        given = [{name: value for name, value in event.items() if name != "position"} for event in log[20:]]
        items = [Item("", number, event, None) for number, event in enumerate(given)]
        allowing = partial(Admission, allow_uncounted=True)
        intake = Intake(ledger, items, ImportPolicy("test"), ladders=allowing)
        found = []
        for scanned in (False, True):
            set_paths(monkeypatch, scanned=scanned, compiled=False)
            monkeypatch.setattr(bulk_decoding, "PAGE_EVENTS", 7)
            with ledger.reading() as connection:
                before = Ladders(decode(connection, cached=False))
                after, affected, renames = apply_drafts(connection, before, intake.drafts())
                found.append((told(after.facts), digests(after.facts), affected, renames))
        assert found[0] == found[1]
        intake.append()
        recorded, points = decoded(ledger, cached=False)
        assert {**found[1][0], "position": recorded["position"]} == recorded
        assert found[1][1] == points


@pytest.mark.slow
def test_all_paths_skip_impossible_rows(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path leaves out the same rows that no event can have written.

    Impossible games and names, and records of two lines, stand between games that count.
    """
    set_paths(monkeypatch, scanned=False, compiled=False)
    path, log = str(tmp_path / "ratings.db"), history(5, 110)
    upgrade(path)
    ledger, expected = open_ledger(path), []
    odd = [*INVALID_GAMES, *INVALID_EVENTS, *UNCANONICAL_RECORDS]
    for number, what in enumerate(odd):
        enter(ledger, log[number * 2 : number * 2 + 2])
        members = {} if what == "an id that is a number" else {"id": f"forged-{number}"}
        with ledger.reading() as connection:
            expected.append(head(connection).position + 1)
        append_named_forgery(what, path, columns={"subject": f"game:forged-{number}"}, **members)
    enter(ledger, log[len(odd) * 2 :])
    plain = decoded(ledger, cached=False)
    assert list(plain[0]["left out"]) == expected
    for size in (7, 1_000):
        monkeypatch.setattr(bulk_decoding, "PAGE_EVENTS", size)
        monkeypatch.setattr(decoding, "DELTA_EVENTS", 2 * size)
        for scanned in (False, True):
            for compiled in (False, True):
                set_paths(monkeypatch, scanned=scanned, compiled=compiled)
                lose_all(caches, Random(0)) if caches.exists() else None
                assert decoded(ledger, cached=False) == plain
                assert decoded(ledger) == plain
                assert decoded(ledger) == plain
                middle = expected[len(expected) // 2]
                assert decoded(ledger, middle) == decoded(ledger, middle, cached=False)


def test_restored_backup_rebuilds_the_cache(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After an older backup is put back, the cache is rebuilt, and one log line says so.

    The restored file is older than the cache and then continues with a different history.
    """
    set_paths(monkeypatch, scanned=True, compiled=False)
    path, log = tmp_path / "ratings.db", history(4, 70)
    upgrade(str(path))
    ledger = open_ledger(str(path))
    enter(ledger, log[:40])
    backup = path.read_bytes()
    enter(ledger, log[40:60])
    decoded(ledger)
    path.write_bytes(backup)
    with caplog.at_level(logging.WARNING):
        assert decoded(ledger) == decoded(ledger, cached=False)
    assert [record.message.count("is at position") for record in caplog.records] == [1]
    caplog.clear()
    enter(ledger, log[60:61])
    decoded(ledger)
    path.write_bytes(backup)
    enter(ledger, log[61:64])
    with caplog.at_level(logging.WARNING):
        assert decoded(ledger) == decoded(ledger, cached=False)
    assert ["another history" in record.message for record in caplog.records] == [True]


def test_cache_of_another_ledger_is_rebuilt(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another ledger's cache in place of this one's is detected and rebuilt, with one warning."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = small(tmp_path / "a"), small(tmp_path / "b", seed=5)
    decoded(one)
    with one.reading() as mine, other.reading() as his:
        (caches / name_cache_folder(mine)).rename(caches / name_cache_folder(his))
    with caplog.at_level(logging.WARNING):
        assert decoded(other) == decoded(other, cached=False)
    assert ["another ledger" in record.message for record in caplog.records] == [True]


@pytest.mark.slow
def test_chain_of_segments_stays_short(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that grows by an event or two at a time has few segments, and seldom writes the long ones anew."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    ledger, log = small(tmp_path, count=100), history(3, 160)
    names, lengths = set(), []
    for first in range(100, 160, 2):
        enter(ledger, log[first : first + 2])
        with ledger.reading() as connection:
            decode(connection)
        names |= {path.name for path in segments(caches) if path.name.startswith("0-")}
        lengths.append(len(segments(caches)))
    assert max(lengths) == 2
    assert len(names) < 6
    assert decoded(ledger) == decoded(ledger, cached=False)


@pytest.mark.slow
def test_writers_without_a_lock_have_right_facts(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """Processes that write, merge and delete segments at once, as if there were no lock, get the facts of the log."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    monkeypatch.setattr(column_cache, "lock_cache", lambda root: nullcontext(True))
    ledger = small(tmp_path)
    with ledger.reading() as connection:
        wanted = told(decode(connection, cached=False))

    def grow(seed: str) -> None:
        chance = Random(seed)
        with ledger.reading() as connection:
            for _ in range(4):
                decoding.DELTA_EVENTS, column_cache.MERGE_RATIO = chance.choice((5, 7, 40)), chance.choice((0, 1, 8))
                decoding.BULK_EVENTS = chance.choice((1, 10**9))
                assert told(decode(connection)) == wanted
                # others delete them, too
                if (there := segments(caches)) and chance.random() < 0.5:
                    chance.choice(there).unlink(missing_ok=True)

    for seed in range(100 if at_length else 2):
        assert wait_for_exits([fork_child(grow, f"{seed} {child}") for child in range(3)]) == [0, 0, 0]


@pytest.mark.slow
def test_segments_go_on_from_those_they_were_made_behind(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given segments behind another first one of the same name, whose columns end elsewhere since it was scanned, they
    are made again: the facts are those of the log."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    monkeypatch.setattr(decoding, "DELTA_EVENTS", 20)
    monkeypatch.setattr(column_cache, "MERGE_RATIO", 0)
    ledger = small(tmp_path)
    wanted = decoded(ledger)
    (tmp_path / "one by one").mkdir()
    one_by_one = [path.rename(tmp_path / "one by one" / path.name) for path in segments(caches)]
    monkeypatch.setattr(decoding, "BULK_EVENTS", 1)
    assert decoded(ledger) == wanted
    first, *others = segments(caches)
    assert first.name.startswith("0-")
    for path in others:
        put(tmp_path / "one by one" / path.name, path)
    assert {path.name for path in one_by_one} >= {path.name for path in others}
    assert decoded(ledger) == wanted


def test_unwritable_cache_folder_does_no_harm(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the cache folder cannot be written, decoding works from the log alone."""
    set_paths(monkeypatch, scanned=True, compiled=False)
    ledger = small(tmp_path)
    caches.parent.mkdir()
    caches.write_text("a file stands where the folder would be")
    assert decoded(ledger) == decoded(ledger, cached=False)


def test_full_disk_does_no_harm(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the disk is full, decoding works from the log alone, and one log line says so."""
    set_paths(monkeypatch, scanned=True, compiled=False)
    ledger = small(tmp_path)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(column_cache, "write_file", full)
    with caplog.at_level(logging.WARNING):
        assert decoded(ledger) == decoded(ledger, cached=False)
    assert ["No space left" in record.message for record in caplog.records] == [True]


def test_trying_events_leaves_the_cache_unchanged(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trying events on facts from the cache leaves the cache as it was.

    A preview applies events that are not appended, to memory-mapped columns.
    """
    set_paths(monkeypatch, scanned=True, compiled=False)
    ledger = small(tmp_path)
    before = decoded(ledger)
    with ledger.reading() as connection:
        facts = decode(connection)
        snapshot = facts.snapshot()
        game_id = json.loads(
            connection.exec_driver_sql("SELECT record FROM events WHERE type = 'game.recorded' LIMIT 1").scalar_one()
        )["data"]["game_id"]
        facts.rows[game_id] = 0
        event = KnownEvent("x", "game.voided", 1_272_672_000_000_000, {"game_id": game_id, "reason": "tried"})
        decoding.apply(facts, facts.position + 1, event)
        assert 0 in facts.voided
        assert told(snapshot)["games"] == before[0]["games"]
    assert decoded(ledger) == before


@pytest.mark.slow
def test_bulk_explanations_match_single_ones(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Explanations are the same whether a player's games are found in bulk or one by one.

    Long histories use the bulk search, short ones go game by game.
    """
    ledger = small(tmp_path, count=90)
    told = []
    for compiled in (False, True):
        set_paths(monkeypatch, scanned=compiled, compiled=compiled)
        with ledger.reading() as connection:
            ladders = Ladders(decode(connection))
            told.append({
                (name, player): explain_player(connection, ladders, name, player)
                for name in ladders.streams("catan-elo")
                for player in ladders.facts.players
            })  # fmt: skip
    assert told[0] == told[1]
    reasons = {game.why_not for found in told[0].values() for game in found.games}
    assert len(reasons) > 1
