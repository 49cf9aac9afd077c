"""The code paths from the log to standings, and the values that tests compare between them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from ledgers import open_for_reading
from thresholds import set_thresholds

from ratings_ledger.projections.facts import column_cache
from ratings_ledger.projections.facts.columns import LABELS, NONE, Facts, find_optional_column
from ratings_ledger.projections.facts.stored_columns import StoredColumn
from ratings_ledger.projections.queries import ladders_at, snapshot_reader
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import trace_cache
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.trace import Trace

NEVER = 10**9


def set_paths(monkeypatch: pytest.MonkeyPatch, *, scanned: bool, compiled: bool) -> None:
    """Let even the shortest history take the scanner and the compiled loops, or keep every history off them."""
    set_thresholds(
        monkeypatch, cached_events=1, scanned_events=1 if scanned else NEVER, compiled_games=1 if compiled else NEVER
    )


def unlock_cache(patch: pytest.MonkeyPatch) -> None:
    """Let several processes write the files of one cache at once."""
    patch.setattr(column_cache, "lock_cache", lambda root: nullcontext(True))


def fill_cache_disk(patch: pytest.MonkeyPatch) -> None:
    """Let no file of the cache be written, as on a full disk."""

    def raise_disk_full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    patch.setattr(column_cache, "write_file", raise_disk_full)


def count_work(patch: pytest.MonkeyPatch) -> Counter[str]:
    """Return counts that grow with the work of open ledgers.

    They are of logs `decoded` or `followed`, and of earlier traces that are `unchanged`, continued `after the end` or
    `from within`, or `replayed` from the first game.
    """
    counts: Counter[str] = Counter()
    continue_trace, follow_log, decode = ladders_at.continue_trace, snapshot_reader.follow_log, snapshot_reader.decode

    def count_continuations(trace: Trace, *arguments: Any) -> Trace | None:
        result = continue_trace(trace, *arguments)
        if result is None:
            counts["replayed"] += 1
        elif result is trace:
            counts["unchanged"] += 1
        else:
            is_at_end = result.earlier is not None and result.earlier.game_count >= trace.game_count
            counts["after the end" if is_at_end else "from within"] += 1
        return result

    def count_following(*arguments: Any) -> Facts:
        counts["followed"] += 1
        return follow_log(*arguments)

    def count_decoding(*arguments: Any, **options: Any) -> Facts:
        counts["decoded"] += 1
        return decode(*arguments, **options)

    for module in (ladders_at, trace_cache):
        patch.setattr(module, "continue_trace", count_continuations)
    patch.setattr(snapshot_reader, "follow_log", count_following)
    patch.setattr(snapshot_reader.LadderCache.__init__, "__defaults__", (count_decoding,))
    return counts


def collect_whole_columns(patch: pytest.MonkeyPatch) -> set[str]:
    """Return a set that grows by the names of the columns that are read from files as a whole."""
    names, read_whole = set[str](), StoredColumn.read_whole

    def read_and_note(column: StoredColumn) -> Any:
        names.add(column.name)
        return read_whole(column)

    patch.setattr(StoredColumn, "read_whole", read_and_note)
    return names


def find_cache_folder(location: str) -> str:
    """Return the name of the cache folder of a ledger."""
    with open_for_reading(location) as connection:
        return column_cache.name_cache_folder(connection)


def summarize_facts(facts: Facts) -> dict[str, Any]:
    """Return the content of facts, with names instead of the numbers that stand for them."""
    return {
        "position": (facts.position, facts.chain_hash),
        "games": [_summarize_game(facts, row) for row in range(len(facts.first_position))],
        "players": {name: facts.current(name) for name in facts.players},
        "accounts": {
            facts.players[number]: [a[:2] + a[3:] for a in changes] for number, changes in facts.accounts.items()
        },
        "adjustments": [
            (*adjustment[:3], facts.players[adjustment.player], adjustment.points) for adjustment in facts.adjustments
        ],
        "versions": {name: [v.ruleset for v in versions] for name, versions in facts.rulesets.items()},
        "unusable": facts.unusable,
        "leagues": [(league[:2], facts.texts[league.league], facts.texts[league.game]) for league in facts.leagues],
        "seconds": facts.clock_seconds,
        "left out": facts.left_out,
    }


def _summarize_game(facts: Facts, row: int) -> tuple[Any, ...]:
    cell, first, size = facts.cell_of(row), facts.start[row], facts.count[row]
    participants = range(first, first + size)
    kind_from = facts.kind_start[row]
    kind = facts.label("kind", row)
    return (
        facts.first_position[row], facts.live_position[row], facts.occurred_at[row], row in facts.voided,
        tuple(facts.label(name, row) for name in LABELS), cell.seats, cell.flags,
        [(facts.players[facts.player[p]], facts.place[p], facts.status[p], facts.replaced[p]) for p in participants],
        _list_optional_columns(facts, participants),
        [] if kind == "placing" else
        [list(column[kind_from : kind_from + size]) for column in facts.of_kind.values()],
    )  # fmt: skip


def _list_optional_columns(facts: Facts, participants: range) -> dict[str, list[Any]]:
    """Return the optional columns that hold a value other than the default for these participants."""
    columns = {}
    for name, column in sorted(facts.optional.items()):
        default = find_optional_column(name).default
        numbers: list[Any] = [column[p] if p < len(column) else default for p in participants]
        if numbers.count(default) < len(numbers):
            clubs = [None if number == NONE else facts.texts[number] for number in numbers] if name == "club" else []
            columns[name] = clubs or numbers
    return columns


def compute_digests(facts: Facts, as_of: int | None = None) -> dict[str, str]:
    """Return the digest of every ladder, or its error message."""
    return dict(_iterate_digests(facts, as_of))


def _iterate_digests(facts: Facts, as_of: int | None) -> Iterator[tuple[str, str]]:
    ladders = Ladders(facts, as_of)
    for ruleset_id in sorted(facts.rulesets):
        try:
            streams = ladders.streams(ruleset_id)
        except RuleFailure as problem:
            yield ruleset_id, problem.describe(facts)
            continue
        for name, stream in sorted(streams.items()):
            try:
                yield name, ladders.rank_stream(stream).digest
            except RuleFailure as problem:
                yield name, problem.describe(facts)


def find_cached_trace(facts: Facts, ladder: str) -> Trace | None:
    """Return the trace of a ladder from the cache, continued if games have been added; None if it is unusable."""
    return trace_cache.find_trace(facts, ladder, facts.versions_of(ladder))
