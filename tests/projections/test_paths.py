"""Every code path from the log to standings has the same result: event by event or scanned, cached or not, interpreted
or compiled, at any position, and after any damage to the cache.
"""

import logging
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fault_helpers import fork_child, wait_for_exits
from forging import INVALID_EVENTS, INVALID_GAMES, UNCANONICAL_RECORDS, append_named_forgery
from histories import enter, load_facts, load_facts_with_drafts
from paths import compute_digests, fill_cache_disk, set_paths, summarize_facts, unlock_cache
from thresholds import set_thresholds
from time_histories import draw_history

import ratings_ledger as rl
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache folder of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "ratings-ledger"


def list_files(caches: Path) -> list[Path]:
    """Return the files of the cache that have content."""
    return sorted(path for path in caches.rglob("*") if path.is_file() and path.stat().st_size and path.name != "lock")


def flip_random_bit(caches: Path, chance: Random) -> None:
    """Flip a bit of one file."""
    path = chance.choice(list_files(caches))
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut_off(caches: Path, chance: Random) -> None:
    """Cut one file off."""
    path = chance.choice(list_files(caches))
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def leave_unfinished(caches: Path, chance: Random) -> None:
    """Leave a temporary file like a killed process does, and a segment under a name that is not its own."""
    path = chance.choice(list_segments(caches))
    shutil.copy(path, path.with_name(f".ratings-{chance.randbytes(8).hex()}.part"))
    first, last, rest = path.name.split("-", 2)
    put(path, path.with_name(f"{first}-{int(last) - 1}-{rest}"))


def plant(caches: Path, chance: Random) -> None:
    """Put segments of other ledgers and of other histories of this ledger under their own names and others."""
    segment, foreign_segment = (
        chance.choice(list_segments(caches)),
        chance.choice(sorted((caches.parent / "elsewhere").iterdir())),
    )
    put(foreign_segment, segment.parent / foreign_segment.name)
    put(foreign_segment, segment.parent / segment.name.replace("-", "0-", 1))
    if chance.random() < 0.5:
        put(foreign_segment, segment)


def put(source: Path, target: Path) -> None:
    """Replace a file by a copy of another; a mapping of the replaced file keeps its content."""
    target.unlink(missing_ok=True)
    shutil.copy(source, target)


def list_segments(caches: Path) -> list[Path]:
    """Return the segments of the cache."""
    return sorted(caches.glob("*/columns/*-*-*"))


def lose(caches: Path, chance: Random) -> None:
    """Delete one file."""
    chance.choice(list_files(caches)).unlink()


def lose_all(caches: Path, chance: Random) -> None:
    """Delete the whole cache."""
    shutil.rmtree(caches)


def keep_all(caches: Path, chance: Random) -> None:
    """Damage nothing."""


DAMAGES = [flip_random_bit, cut_off, leave_unfinished, plant, lose, lose_all, keep_all, keep_all]


def decode_and_rank(
    ledger: Ledger, known_at: int | None = None, cached: bool = True
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a summary of the facts, and the digests of all ladders."""
    facts = load_facts(ledger, known_at, cached=cached)
    return summarize_facts(facts), compute_digests(facts)


@pytest.mark.slow
def test_all_paths_give_the_same_standings(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str
) -> None:
    """As a random history grows, every code path to the standings has the same result.

    Late games, corrections, voids, renames and rule changes come in pieces; the segments of the cache are merged at
    random, and damaged now and then.
    """
    damage_counts: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    make_foreign_segments(tmp_path, monkeypatch, caches)
    # the first history is in each kind of store, the others are in files
    seeds = 60 if at_length else 3 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        upgrade(url)
        ledger, rest, length = open_ledger(url), draw_history(seed, 90), 0
        while rest:
            size = chance.randint(1, 30)
            part, rest = rest[:size], rest[size:]
            enter(ledger, part)
            length += len(part)
            set_paths(monkeypatch, scanned=False, compiled=False)
            plain = decode_and_rank(ledger, cached=False)
            set_thresholds(
                monkeypatch,
                delta_events=chance.choice((7, 1_000)),
                merge_ratio=chance.choice((0, 1, 8)),
                segments_open=chance.choice((2, 16)),
            )
            set_paths(monkeypatch, scanned=chance.random() < 0.5, compiled=chance.random() < 0.5)
            assert decode_and_rank(ledger) == plain, (seed, length)
            lengths[len(list_segments(caches))] += 1
            set_paths(monkeypatch, scanned=True, compiled=True)
            assert decode_and_rank(ledger) == plain, (seed, length)
            assert decode_and_rank(ledger, cached=False) == plain, (seed, length)
            damage = chance.choice(DAMAGES)
            damage(caches, chance)
            damage_counts[damage.__name__] += 1
        for _ in range(6):
            known_at = chance.randint(1, length)
            set_paths(monkeypatch, scanned=False, compiled=False)
            plain = decode_and_rank(ledger, known_at, cached=False)
            set_paths(monkeypatch, scanned=True, compiled=chance.random() < 0.5)
            assert decode_and_rank(ledger, known_at) == plain, (seed, known_at)
    assert set(damage_counts) >= {damage.__name__ for damage in DAMAGES} or not at_length
    assert {1, 2, 3} <= lengths.keys() or seeds == 1, lengths


def make_foreign_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caches: Path) -> None:
    """Make segments of other ledgers, and of a history that continues differently, for `plant`."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    for seed in (0, 1):
        (tmp_path / f"other-{seed}").mkdir()
        ledger, log = make_ledger(tmp_path / f"other-{seed}", seed, 20), draw_history(seed, 50)
        decode_and_rank(ledger)
        enter(ledger, log[20:])
        decode_and_rank(ledger)
    for path in list_segments(caches):
        (caches.parent / "elsewhere").mkdir(exist_ok=True)
        shutil.copy(path, caches.parent / "elsewhere" / path.name)
    shutil.rmtree(caches)


def make_ledger(tmp_path: Path, seed: int = 3, count: int = 60) -> Ledger:
    """Make a ledger with a random history."""
    path = str(tmp_path / "ratings.db")
    upgrade(path)
    ledger = open_ledger(path)
    enter(ledger, draw_history(seed, count))
    return ledger


def test_drafts_give_the_facts_of_recorded_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts with drafts equal those after recording the drafts, whether their games are scanned or not."""
    for seed in range(2):
        (tmp_path / f"{seed}").mkdir()
        ledger, log = make_ledger(tmp_path / f"{seed}", seed, 20), draw_history(seed, 90)
        members = [{name: value for name, value in event.items() if name != "position"} for event in log[20:]]
        with rl.open(ledger.location) as opened:
            proposal = opened.propose(members, by="test", allow_uncounted=True)
            assert proposal.rejections == ()
            results = []
            for scanned in (False, True):
                set_paths(monkeypatch, scanned=scanned, compiled=False)
                set_thresholds(monkeypatch, scanned_page_events=7)
                facts, groups, renames = load_facts_with_drafts(ledger, proposal.drafts())
                results.append((summarize_facts(facts), compute_digests(facts), groups, renames))
            assert results[0] == results[1]
            proposal.commit()
        recorded, points = decode_and_rank(ledger, cached=False)
        assert {**results[1][0], "position": recorded["position"]} == recorded
        assert results[1][1] == points


@pytest.mark.slow
def test_all_paths_leave_out_the_same_impossible_rows(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every code path leaves out the same rows: those that no valid event can have written.

    Impossible games and names, and records of two lines, come between games that count.
    """
    set_paths(monkeypatch, scanned=False, compiled=False)
    path, log = str(tmp_path / "ratings.db"), draw_history(5, 110)
    upgrade(path)
    ledger, expected = open_ledger(path), []
    forgeries = [*INVALID_GAMES, *INVALID_EVENTS, *UNCANONICAL_RECORDS]
    for number, forgery in enumerate(forgeries):
        enter(ledger, log[number * 2 : number * 2 + 2])
        members = {} if forgery == "an id that is a number" else {"id": f"forged-{number}"}
        with ledger.reading() as connection:
            expected.append(head(connection).position + 1)
        append_named_forgery(forgery, path, columns={"subject": f"game:forged-{number}"}, **members)
    enter(ledger, log[len(forgeries) * 2 :])
    plain = decode_and_rank(ledger, cached=False)
    assert list(plain[0]["left out"]) == expected
    for size in (7, 1_000):
        set_thresholds(monkeypatch, scanned_page_events=size, delta_events=2 * size)
        for scanned in (False, True):
            for compiled in (False, True):
                set_paths(monkeypatch, scanned=scanned, compiled=compiled)
                lose_all(caches, Random(0)) if caches.exists() else None
                assert decode_and_rank(ledger, cached=False) == plain
                assert decode_and_rank(ledger) == plain
                assert decode_and_rank(ledger) == plain
                middle = expected[len(expected) // 2]
                assert decode_and_rank(ledger, middle) == decode_and_rank(ledger, middle, cached=False)


def test_restored_backup_rebuilds_the_cache(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After an older backup is restored, the cache is rebuilt, with one warning.

    The restored file is older than the cache, and then continues with a different history.
    """
    set_paths(monkeypatch, scanned=True, compiled=False)
    path, log = tmp_path / "ratings.db", draw_history(4, 70)
    upgrade(str(path))
    ledger = open_ledger(str(path))
    enter(ledger, log[:40])
    backup = path.read_bytes()
    enter(ledger, log[40:60])
    decode_and_rank(ledger)
    path.write_bytes(backup)
    with caplog.at_level(logging.WARNING):
        assert decode_and_rank(ledger) == decode_and_rank(ledger, cached=False)
    assert [record.message.count("is at position") for record in caplog.records] == [1]
    caplog.clear()
    enter(ledger, log[60:61])
    decode_and_rank(ledger)
    path.write_bytes(backup)
    enter(ledger, log[61:64])
    with caplog.at_level(logging.WARNING):
        assert decode_and_rank(ledger) == decode_and_rank(ledger, cached=False)
    assert ["another history" in record.message for record in caplog.records] == [True]


def test_cache_of_another_ledger_is_rebuilt(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The cache of another ledger in the place of this ledger's is detected and rebuilt, with one warning."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = make_ledger(tmp_path / "a"), make_ledger(tmp_path / "b", seed=5)
    decode_and_rank(first)
    (folder_of_first,) = caches.iterdir()
    decode_and_rank(second)
    (folder_of_second,) = {*caches.iterdir()} - {folder_of_first}
    shutil.rmtree(folder_of_second)
    folder_of_first.rename(folder_of_second)
    with caplog.at_level(logging.WARNING):
        assert decode_and_rank(second) == decode_and_rank(second, cached=False)
    assert ["another ledger" in record.message for record in caplog.records] == [True]


@pytest.mark.slow
def test_growing_cache_has_few_segments(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that grows by two events at a time has at most two segments, and seldom rewrites the long one."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    ledger, log = make_ledger(tmp_path, count=100), draw_history(3, 160)
    names, lengths = set(), []
    for first in range(100, 160, 2):
        enter(ledger, log[first : first + 2])
        load_facts(ledger)
        names |= {path.name for path in list_segments(caches) if path.name.startswith("0-")}
        lengths.append(len(list_segments(caches)))
    assert max(lengths) == 2
    assert len(names) < 6
    assert decode_and_rank(ledger) == decode_and_rank(ledger, cached=False)


@pytest.mark.slow
def test_concurrent_writers_without_lock_have_correct_facts(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """Processes that write, merge and delete segments at once, without a lock, get the facts of the log."""
    set_paths(monkeypatch, scanned=False, compiled=False)
    unlock_cache(monkeypatch)
    ledger = make_ledger(tmp_path)
    expected = summarize_facts(load_facts(ledger, cached=False))

    def decode_repeatedly(seed: str) -> None:
        chance = Random(seed)
        with ledger.reading() as connection:
            for _ in range(4):
                set_thresholds(
                    monkeypatch,
                    delta_events=chance.choice((5, 7, 40)),
                    merge_ratio=chance.choice((0, 1, 8)),
                    scanned_events=chance.choice((1, 10**9)),
                )
                assert summarize_facts(load_facts(connection)) == expected
                # the other processes delete segments, too
                if (segments := list_segments(caches)) and chance.random() < 0.5:
                    chance.choice(segments).unlink(missing_ok=True)

    for seed in range(100 if at_length else 2):
        assert wait_for_exits([fork_child(decode_repeatedly, f"{seed} {child}") for child in range(3)]) == [0, 0, 0]


@pytest.mark.slow
def test_segments_behind_another_first_segment_are_rebuilt(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments behind a first segment of the same name but with other column ends are rebuilt with the facts of the
    log.
    """
    set_paths(monkeypatch, scanned=False, compiled=False)
    set_thresholds(monkeypatch, delta_events=20, merge_ratio=0)
    ledger = make_ledger(tmp_path)
    expected = decode_and_rank(ledger)
    (tmp_path / "one by one").mkdir()
    one_by_one = [path.rename(tmp_path / "one by one" / path.name) for path in list_segments(caches)]
    set_thresholds(monkeypatch, scanned_events=1)
    assert decode_and_rank(ledger) == expected
    first, *later_segments = list_segments(caches)
    assert first.name.startswith("0-")
    for path in later_segments:
        put(tmp_path / "one by one" / path.name, path)
    assert {path.name for path in one_by_one} >= {path.name for path in later_segments}
    assert decode_and_rank(ledger) == expected


def test_unwritable_cache_folder_does_no_harm(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an unwritable cache folder, decoding works from the log alone."""
    set_paths(monkeypatch, scanned=True, compiled=False)
    ledger = make_ledger(tmp_path)
    caches.parent.mkdir()
    caches.write_text("a file in the place of the folder")
    assert decode_and_rank(ledger) == decode_and_rank(ledger, cached=False)


def test_full_disk_does_no_harm(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a full disk, decoding works from the log alone, with one warning."""
    set_paths(monkeypatch, scanned=True, compiled=False)
    ledger = make_ledger(tmp_path)
    fill_cache_disk(monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert decode_and_rank(ledger) == decode_and_rank(ledger, cached=False)
    assert ["No space left" in record.message for record in caplog.records] == [True]


def test_events_applied_to_cached_facts_leave_the_cache_unchanged(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events applied to facts from the cache leave the cache unchanged.

    A preview applies events that are not appended, and decisions are applied one by one, to memory-mapped columns.
    """
    set_paths(monkeypatch, scanned=True, compiled=False)
    ledger = make_ledger(tmp_path)
    before = decode_and_rank(ledger)
    segments = {path: path.read_bytes() for path in list_segments(caches)}
    with rl.open(ledger.location) as opened:
        digests = [standings.digest for standings in opened.at().every_standings()]
        games = (row.data for row in opened.at().games())
        game = next(game for game in games if max(participant["place"] for participant in game["participants"]) > 1)
        members = {"game_id": game["game_id"], "reason": "tried"}
        tied = [participant | {"place": 1} for participant in game["participants"]]
        for type_name, data in (
            ("game.voided", members),
            ("game.corrected", members | {"game": game | {"participants": tied}}),
        ):
            with closing(opened.propose({"type": type_name, "data": data}, by="test")) as proposal:
                assert proposal.rejections == ()
                assert proposal.impact() != rl.Impact()
        assert len(opened.at().decisions(after=0)) > 1
        assert [standings.digest for standings in opened.at().every_standings()] == digests
    assert {path: path.read_bytes() for path in list_segments(caches)} == segments
    assert decode_and_rank(ledger) == before


@pytest.mark.slow
def test_bulk_explanations_match_single_ones(tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Explanations are equal whether a player's games are found in bulk or one by one.

    Long histories use the bulk search, short ones go game by game.
    """
    ledger = make_ledger(tmp_path, count=90)
    names = load_facts(ledger).players
    explanations_by_path = []
    for compiled in (False, True):
        set_paths(monkeypatch, scanned=compiled, compiled=compiled)
        with rl.open(ledger.location) as opened:
            view = opened.at()
            ladders = [row.ladder for row in view.ladders() if row.ladder.startswith("catan-elo/")]
            explanations_by_path.append(
                {(ladder, player): view.account(ladder, player) for ladder in ladders for player in names}
            )
    assert explanations_by_path[0] == explanations_by_path[1]
    reasons = {game.why_not for explanation in explanations_by_path[0].values() for game in explanation.games}
    assert len(reasons) > 1
