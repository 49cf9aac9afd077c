"""Cache the traces of long ladders in files, so that later runs need not replay the ladders.

Each trace is a file of columns:

    ~/.cache/ratings-ledger/LEDGER-ID-LOCATION/traces/LADDER-POSITION-INPUTS-PROGRAM

A trace depends on the exact history (the chain hash at its position), on the versions that scored the games and on the
modules of this program that determine points. LADDER is a digest of the ladder's name, INPUTS of the history and the
versions, PROGRAM of the modules. After later events, a cached trace is continued. Ladders with rules from packages are
never cached, because changes of these rules cannot be detected. `verify` and `rebuild --check` replay without the
cache. Results stay the same if the cache is deleted.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

from ratings_ledger.projections import compiling
from ratings_ledger.projections.contract import UNITS_MAX
from ratings_ledger.projections.facts.column_files import (
    TRACES,
    ColumnFile,
    DamagedFile,
    UnreadableFile,
    delete_file,
    encode_columns,
    list_files,
    logger,
    open_file,
    prune_files,
    read_about,
    write_file,
)
from ratings_ledger.projections.facts.columns import Column, Facts
from ratings_ledger.projections.replay.continuation import (
    TraceInputs,
    can_be_continued,
    continue_trace,
    read_trace_inputs,
)
from ratings_ledger.projections.replay.gaps import read_calendar
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import (
    LazyColumns,
    Stream,
    StreamAdjustment,
    build_stream,
    find_seeded_states,
)
from ratings_ledger.projections.replay.trace import Slots, Trace
from ratings_ledger.projections.rulesets.versions import Version

# the trace of a ladder with fewer games is not cached, because a replay takes less time than reading the trace
CACHED_GAMES_MIN = 20_000

# the type codes of the columns in a trace's file
COLUMN_CODES = {
    "row": "q",
    "version": "h",
    "offset": "q",
    "player": "i",
    "before": "q",
    "mint": "q",
    "person": "i",
    "points": "q",
    "games": "q",
    "slot_bounds": "q",
    "slot": "i",
    "states_before_adjustments": "q",
    "opening_points": "q",
}
# the names of three columns for each state column after the first: at the end, before games, and before adjustments
STATE_COLUMN_NAMES = "state {}", "before {}", "states_before_adjustments {}"
TOTALS = ("start_total", "minted", "burned", "adjusted")
# the folders of all modules that determine points
DECIDING_FOLDERS = (
    "ledger/events",
    "ledger/events/game_types",
    "ledger/validation",
    "projections",
    "projections/facts",
    "projections/game_clock",
    "projections/lists",
    "projections/replay",
    "projections/rules",
    "projections/rulesets",
)


def can_be_cached(facts: Facts, versions: Sequence[Version]) -> bool:
    """Tell whether the trace of a ladder of these versions may be cached."""
    return (
        facts.cache is not None
        and len(facts.cell) >= CACHED_GAMES_MIN
        and not compiling.is_interpreted_forced()
        and all(version.is_built_in for version in versions)
        and can_be_continued(facts, versions)
    )


def find_trace(facts: Facts, ladder: str, versions: Sequence[Version]) -> Trace | None:
    """Return the cached trace of a ladder, continued up to these facts.

    Returns None if no cached trace fits, if continuing it fails, or if a replay from the beginning is required or
    faster. Deletes and logs damaged files.
    """
    if facts.cache is None or not can_be_cached(facts, versions):
        return None
    folder = facts.cache / TRACES
    for position in sorted(facts.hashes, reverse=True):
        if position > facts.position:
            continue
        name = _make_file_name(ladder, versions, position, facts.hashes[position])
        try:
            file = _open_trace_file(folder / name, facts, versions)
        except DamagedFile as problem:
            problem.discard()
            facts.trace_files.pop(folder / name, None)
            continue
        except UnreadableFile:
            continue
        if file is not None and file.about["names"] == _digest_names(facts, file.columns["person"]):
            inputs = TraceInputs(**file.about["inputs"])
            with suppress(RuleFailure):  # the caller then replays the whole ladder, and the error names the failed game
                return continue_trace(_read_trace(file, facts, ladder, versions), inputs, facts, ladder, versions)
    return None


def store_trace(facts: Facts, trace: Trace, versions: Sequence[Version]) -> None:
    """Write the trace of a long ladder to the cache and delete its other traces, unless the cache has a later one."""
    stream = trace.stream
    if facts.cache is None or facts.has_later_events or len(stream.rows) < CACHED_GAMES_MIN:
        return
    if not can_be_cached(facts, versions):
        return
    folder = facts.cache / TRACES
    # free the columns that the rules read: they are not cached, but read from the facts again when needed
    stream.columns, stream.batch = LazyColumns(partial(_read_rule_columns, facts, stream.ladder, versions)), None
    file_name = _make_file_name(stream.ladder, versions, facts.position, facts.chain_hash)
    persons = array("i", stream.persons)
    slot_bounds = trace.find_slot_bounds()
    column_parts: dict[str, Iterable[Column]] = {
        "row": [stream.rows],
        "version": [stream.version_indices],
        "offset": [stream.offsets],
        "player": [stream.players],
        "before": [trace.points_before],
        "mint": [trace.mints],
        "person": [persons],
        "points": [trace.points],
        "games": [trace.games],
        "slot_bounds": [slot_bounds],
        "slot": trace.sort_slots_in_chunks(slot_bounds),
        "states_before_adjustments": [trace.states_before_adjustments[0]],
        "opening_points": [trace.opening_points],
    }
    for index in range(1, len(trace.states)):
        for name, state_columns in zip(
            STATE_COLUMN_NAMES, (trace.states, trace.states_before, trace.states_before_adjustments), strict=True
        ):
            column_parts[name.format(index)] = [state_columns[index]]
    columns = {name: (code, column_parts[name]) for name, code in _list_codes(versions).items()}
    about = {total: getattr(trace, total) for total in TOTALS} | {
        "name": file_name,
        "ladder": stream.ladder,
        "adjustments": stream.adjustments,
        "names": _digest_names(facts, persons),
        "inputs": read_trace_inputs(facts, stream.ladder, versions)._asdict(),
    }
    files = list(list_files(folder, f"-{_digest_program()}", _digest(stream.ladder)))
    if any(position > facts.position and position in facts.hashes for position, _ in files):
        return
    try:
        prune_files(folder, _digest_program())
        write_file(folder / file_name, encode_columns(columns, about))
    except OSError as error:
        logger.warning("ratings: cannot write a trace to the cache in %s: %s", folder, error.strerror)
        return
    for _, path in files:
        if path.name != file_name:
            delete_file(path)


def find_wrong_traces(facts: Facts, uncached_facts: Facts) -> Iterator[tuple[str, Path]]:
    """Yield (ladder, file) for each cached trace that differs from a replay. Deletes these files.

    `uncached_facts` are the same facts without a cache.
    """
    if facts.cache is None:
        return
    for _, path in list(list_files(facts.cache / TRACES, f"-{_digest_program()}")):
        ladder = str(read_about(path).get("ladder"))
        versions = facts.versions_of(ladder)
        if not versions or (trace := find_trace(facts, ladder, versions)) is None:
            continue
        stream = build_stream(uncached_facts, versions, ladder)
        if stream is None or not trace.join_parts().has_same_results(replay(stream)):
            delete_file(path)
            yield ladder, path


def _make_file_name(ladder: str, versions: Sequence[Version], position: int, chain_hash: bytes) -> str:
    """Return the file name of a trace, as described at the top of this module."""
    version_keys = [
        (version.ruleset.model_dump_json(), version.effective_from, version.position) for version in versions
    ]
    input_digest = _digest(json.dumps([chain_hash.hex(), version_keys]))
    return f"{_digest(ladder)}-{position}-{input_digest}-{_digest_program()}"


def _digest(text: str) -> str:
    """Return a short digest of a text."""
    return sha256(text.encode()).hexdigest()[:24]


def _list_codes(versions: Sequence[Version]) -> dict[str, str]:
    """Return the type codes of the columns in a trace's file, by name."""
    further_columns = range(1, max(version.rule.width for version in versions))
    return COLUMN_CODES | {name.format(column): "q" for column in further_columns for name in STATE_COLUMN_NAMES}


def _digest_names(facts: Facts, persons: Column) -> str:
    """Return a digest of the persons' ids. The file has only their numbers, which must still stand for these ids."""
    return _digest(json.dumps([facts.players[person] for person in persons]))


@cache
def _digest_program() -> str:
    """Return a digest of all modules that determine points."""
    digest = sha256()
    for path in list_deciding_modules():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def list_deciding_modules() -> list[Path]:
    """Return the files of all modules that determine points."""
    root = Path(__file__).parents[2]
    return sorted(path for folder in DECIDING_FOLDERS for path in (root / folder).glob("*.py"))


def _open_trace_file(path: Path, facts: Facts, versions: Sequence[Version]) -> ColumnFile | None:
    """Open the file of a trace, unless it is already open. Return None if the file does not exist.

    Facts and their copies share the opened file. Raises `DamagedFile`, `UnreadableFile`.
    """
    if path not in facts.trace_files:
        new_file = open_file(path)
        if new_file is None:
            return None
        try:
            _check_columns(new_file, facts, versions)
        except KeyError as error:
            raise DamagedFile(f"{path.name} does not hold a trace: it lacks {error}", path) from None
        except (ValueError, LookupError, TypeError) as error:
            raise DamagedFile(f"{path.name} does not hold a trace: {error}", path) from None
        facts.trace_files[path] = new_file
    file: ColumnFile = facts.trace_files[path]
    if facts.pending_check is None:
        file.check()
    return file


def _check_columns(file: ColumnFile, facts: Facts, versions: Sequence[Version]) -> None:
    """Set the valid range of each column's numbers.

    Raises `ValueError` if the columns do not match each other; `LookupError` or `TypeError` if the file is of another
    kind.
    """
    columns = file.columns
    game_count, slot_count, player_count = len(columns["row"]), len(columns["player"]), len(columns["person"])
    lengths = {
        "version": game_count,
        "offset": game_count + 1,
        "mint": game_count,
        "before": slot_count,
        "slot": slot_count,
        "points": player_count,
        "games": player_count,
        "slot_bounds": player_count + 1,
        "opening_points": player_count,
        "states_before_adjustments": len(file.about["adjustments"]),
    }
    limits = {
        "row": len(facts.cell),
        "version": len(versions),
        "player": player_count,
        "person": len(facts.players),
        "slot": slot_count,
        "games": game_count + 1,
        "offset": slot_count + 1,
        "slot_bounds": slot_count + 1,
    }
    for name, limit in limits.items():
        columns[name].limit_to(0, limit)
    for index in range(1, max(version.rule.width for version in versions)):
        state_lengths = player_count, slot_count, lengths["states_before_adjustments"]
        lengths |= {name.format(index): length for name, length in zip(STATE_COLUMN_NAMES, state_lengths, strict=True)}
    # a game and the new seasons before it may mint more than `UNITS_MAX`
    for name in file.codes.keys() - limits.keys() - {"mint"}:
        columns[name].limit_to(-UNITS_MAX, UNITS_MAX + 1)
    if not (
        file.codes == _list_codes(versions)
        and all(len(columns[name]) == length for name, length in lengths.items())
        and all(isinstance(file.about[name], int) for name in TOTALS)
        and all(
            0 <= game <= game_count and 0 <= player < player_count and 0 <= version < len(versions)
            for game, player, _, version, *_ in file.about["adjustments"]
        )
    ):
        raise ValueError("the lengths or types of its columns do not match")


def _read_rule_columns(facts: Facts, ladder: str, versions: Sequence[Version]) -> Sequence[Column]:
    """Return the columns that the rules of a ladder read."""
    stream = build_stream(facts, versions, ladder)
    assert stream is not None  # a ladder with a trace has games
    return stream.columns


def _read_trace(file: ColumnFile, facts: Facts, ladder: str, versions: Sequence[Version]) -> Trace:
    """Build the trace of a ladder from its file."""
    columns, about = file.columns, file.about
    persons = [*columns["person"]]

    def read_columns() -> Sequence[Column]:
        # the facts may have other games than the trace, but `continue_trace` keeps only the first, equal games
        return [column[: len(columns["player"])] for column in _read_rule_columns(facts, ladder, versions)]

    stream = Stream(
        ladder,
        versions[0].rule,
        list(versions),
        names=[facts.players[person] for person in persons],
        offsets=columns["offset"],
        players=columns["player"],
        columns=LazyColumns(read_columns),
        version_indices=columns["version"],
        rows=columns["row"],
        adjustments=[StreamAdjustment(*members) for members in about["adjustments"]],
        persons=persons,
    )
    # `continue_trace` only accepts a trace whose seeds have not changed
    stream.seeds = find_seeded_states(facts, ladder, versions)
    if any(version.rule.state for version in versions):
        stream.calendar = read_calendar(facts, stream.rows, versions[0].ruleset)
    further_columns = range(1, stream.width)
    states, before_games, before_adjustments = (
        [columns[name.format(column)] for column in further_columns] for name in STATE_COLUMN_NAMES
    )
    trace = Trace(
        stream,
        states=[columns["points"], *states],
        games=columns["games"],
        on_ladder=array("b", b"\1" * len(persons)),
        entry_states=stream.seeds,
        states_before=[columns["before"], *before_games],
        mints=columns["mint"],
        states_before_adjustments=[columns["states_before_adjustments"], *before_adjustments],
        **{total: about[total] for total in TOTALS},
    )
    trace.opening_points = columns["opening_points"]
    trace.slots = Slots(columns["slot_bounds"][:-1], columns["slot_bounds"][1:], columns["slot"])
    return trace
