"""The cache of traces: files that keep the result of a long ladder's replay for later runs.

    ~/.cache/ratings-ledger/LEDGER-ID-PLACE/traces/LADDER-POSITION-REST-PROGRAM     a file of columns

A trace depends on one exact history (the chain hash at its position), on the versions that scored it and on this
program's rules; its name includes digests of all of them. It is continued after later events. Ladders with rules from
packages are always replayed, because changes of these rules cannot be detected. `verify` and `rebuild --check` replay
without the cache, and deleting it changes no result.
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
    Damaged,
    Unreadable,
    about_file,
    delete_file,
    encode_columns,
    files_in,
    logger,
    open_file,
    prune_files,
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
from ratings_ledger.projections.replay.ladders import (
    LazyColumns,
    Stream,
    StreamAdjustment,
    build_streams,
    find_seeded_states,
    parse_name,
)
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.trace import Slots, Trace
from ratings_ledger.projections.rulesets.rule_errors import is_built_in
from ratings_ledger.projections.rulesets.versions import Version

# replaying a shorter ladder takes less time than reading its trace
TRACED_GAMES = 20_000

COLUMNS = {
    "row": "q",
    "version": "h",
    "offset": "q",
    "player": "i",
    "before": "q",
    "mint": "q",
    "person": "i",
    "points": "q",
    "games": "q",
    "first": "q",
    "slot": "i",
    "adjusted_before": "q",
    "began": "q",
}
# for each state column from the second one on: the states at the end, and those before every game and adjustment
STATE_COLUMNS = "state {}", "before {}", "adjusted_before {}"
TOTALS = ("started", "minted", "burned", "adjusted")
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
        and len(facts.cell) >= TRACED_GAMES
        and not compiling.is_interpreted_forced()
        and all(is_built_in(version.rule) for version in versions)
        and can_be_continued(facts, versions)
    )


def find_trace(facts: Facts, ladder: str, versions: Sequence[Version]) -> Trace | None:
    """Return the cached trace of a ladder, continued up to these facts; None if no cached trace fits.

    A damaged file is deleted and logged.
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
        except Damaged as problem:
            problem.discard()
            facts.segments.pop(folder / name, None)
            continue
        except Unreadable:
            continue
        if file is not None and file.about["names"] == _hash_names(facts, file.columns["person"]):
            since = TraceInputs(**file.about["replayed"])
            with suppress(RuleFailure):  # a full replay names the game
                return continue_trace(_read_trace(file, facts, ladder, versions), since, facts, ladder, versions)
    return None


def store_trace(facts: Facts, trace: Trace, versions: Sequence[Version]) -> None:
    """Write the trace of a long ladder to the cache, and delete the ladder's older traces."""
    stream = trace.stream
    if facts.cache is None or facts.proposed or len(stream.row) < TRACED_GAMES or not can_be_cached(facts, versions):
        return
    folder = facts.cache / TRACES
    # the columns that the rule reads are not cached, but read again from the facts when needed
    stream.columns, stream.batch = LazyColumns(partial(_read_rule_columns, facts, stream.ladder, versions)), None
    file_name = _make_file_name(stream.ladder, versions, facts.position, facts.chain_hash)
    persons = array("i", stream.persons)
    first = trace.slots_from()
    parts: dict[str, Iterable[Column]] = {
        "row": [stream.row],
        "version": [stream.version],
        "offset": [stream.offsets],
        "player": [stream.players],
        "before": [trace.before],
        "mint": [trace.mints],
        "person": [persons],
        "points": [trace.points],
        "games": [trace.games],
        "first": [first],
        "slot": trace.slots_in_parts(first),
        "adjusted_before": [trace.adjusted_before[0]],
        "began": [trace.began],
    }
    for column in range(1, len(trace.states)):
        for name, state_columns in zip(
            STATE_COLUMNS, (trace.states, trace.states_before, trace.adjusted_before), strict=True
        ):
            parts[name.format(column)] = [state_columns[column]]
    columns = {column: (code, parts[column]) for column, code in _list_codes(versions).items()}
    about = {total: getattr(trace, total) for total in TOTALS} | {
        "name": file_name,
        "ladder": stream.ladder,
        "inserted": stream.adjustments,
        "names": _hash_names(facts, persons),
        "replayed": read_trace_inputs(facts, stream.ladder, versions)._asdict(),
    }
    files = list(files_in(folder, f"-{_hash_program()}", _hash(stream.ladder)))
    if any(position > facts.position and position in facts.hashes for position, _ in files):
        return
    try:
        prune_files(folder, _hash_program())
        write_file(folder / file_name, encode_columns(columns, about))
    except OSError as error:
        logger.warning("ratings: the trace in %s cannot be written: %s", folder, error.strerror)
        return
    for _, path in files:
        if path.name != file_name:
            delete_file(path)


def find_wrong_traces(facts: Facts, plain: Facts) -> Iterator[tuple[str, Path]]:
    """Yield the ladders whose cached trace differs from a replay of `plain`, with the file, which is deleted.

    `plain` are the same facts without a cache.
    """
    if facts.cache is None:
        return
    for _, path in list(files_in(facts.cache / TRACES, f"-{_hash_program()}")):
        ladder = str(about_file(path).get("ladder"))
        versions = facts.rulesets.get(ladder.partition("/")[0])
        if versions is None or (trace := find_trace(facts, ladder, versions)) is None:
            continue
        stream = build_streams(plain, versions, only=parse_name(ladder).values).get(ladder)
        if stream is None or not trace.whole().is_like(replay(stream)):
            delete_file(path)
            yield ladder, path


def _make_file_name(ladder: str, versions: Sequence[Version], position: int, chain_hash: bytes) -> str:
    """Return the file name of a trace: its ladder, its position, and digests of everything else it depends on."""
    scored_by = [(version.ruleset.model_dump_json(), version.effective_from, version.position) for version in versions]
    rest = _hash(json.dumps([chain_hash.hex(), scored_by]))
    return f"{_hash(ladder)}-{position}-{rest}-{_hash_program()}"


def _hash(text: str) -> str:
    """Return a short digest of a text."""
    return sha256(text.encode()).hexdigest()[:24]


def _list_codes(versions: Sequence[Version]) -> dict[str, str]:
    """Return the types of the columns in a file, by name."""
    further_columns = range(1, max(version.rule.width for version in versions))
    return COLUMNS | {name.format(column): "q" for column in further_columns for name in STATE_COLUMNS}


def _hash_names(facts: Facts, persons: Column) -> str:
    """Return the hash of the ids of some persons, which are only numbers in the columns."""
    return _hash(json.dumps([facts.players[person] for person in persons]))


@cache
def _hash_program() -> str:
    """Return the digest of all modules that determine points, including the module for column files."""
    digest = sha256()
    for path in list_deciding_modules():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def list_deciding_modules() -> list[Path]:
    """Return the files of all modules that determine points."""
    root = Path(__file__).parents[2]
    return sorted(path for folder in DECIDING_FOLDERS for path in (root / folder).glob("*.py"))


def _open_trace_file(path: Path, facts: Facts, versions: Sequence[Version]) -> ColumnFile | None:
    """Return the opened file of a trace, which facts and their snapshots share; None if it does not exist.

    Raises `Damaged`, `Unreadable`.
    """
    if path not in facts.segments:
        opened = open_file(path)
        if opened is None:
            return None
        try:
            _set_limits(opened, facts, versions)
        except (ValueError, LookupError, TypeError) as problem:
            raise Damaged(f"{path.name} does not hold a trace: {problem}", path) from None
        facts.segments[path] = opened
    file: ColumnFile = facts.segments[path]
    if facts.unchecked is None:
        file.check()
    return file


def _set_limits(file: ColumnFile, facts: Facts, versions: Sequence[Version]) -> None:
    """Limit the numbers of the columns to valid values. Raises `ValueError` if the columns do not match each other."""
    columns = file.columns
    games, slots, people = len(columns["row"]), len(columns["player"]), len(columns["person"])
    lengths = {
        "version": games,
        "offset": games + 1,
        "mint": games,
        "before": slots,
        "slot": slots,
        "points": people,
        "games": people,
        "first": people + 1,
        "began": people,
        "adjusted_before": len(file.about["inserted"]),
    }
    ends = {
        "row": len(facts.cell),
        "version": len(versions),
        "player": people,
        "person": len(facts.players),
        "slot": slots,
        "games": games + 1,
        "offset": slots + 1,
        "first": slots + 1,
    }
    for name, end in ends.items():
        columns[name].within(0, end)
    for number in range(1, max(version.rule.width for version in versions)):
        of_column = people, slots, lengths["adjusted_before"]
        lengths |= {name.format(number): length for name, length in zip(STATE_COLUMNS, of_column, strict=True)}
    for name in file.codes.keys() - ends.keys() - {"mint"}:
        columns[name].within(-UNITS_MAX, UNITS_MAX + 1)
    if not (
        file.codes == _list_codes(versions)
        and all(len(columns[name]) == length for name, length in lengths.items())
        and all(isinstance(file.about[name], int) for name in TOTALS)
        and all(
            0 <= game <= games and 0 <= player < people and 0 <= version < len(versions)
            for game, player, _, version, *_ in file.about["inserted"]
        )
    ):
        raise ValueError("its columns do not match")


def _read_rule_columns(facts: Facts, ladder: str, versions: Sequence[Version]) -> Sequence[Column]:
    """Return the columns that the rule of a ladder reads."""
    return build_streams(facts, versions, only=parse_name(ladder).values)[ladder].columns


def _read_trace(file: ColumnFile, facts: Facts, ladder: str, versions: Sequence[Version]) -> Trace:
    """Build the trace from a file."""
    columns, about = file.columns, file.about
    persons = [*columns["person"]]

    def fetch() -> Sequence[Column]:
        # the facts may have more games than the trace, but the ladder starts with the same ones
        return [column[: len(columns["player"])] for column in _read_rule_columns(facts, ladder, versions)]

    stream = Stream(
        ladder,
        versions[0].rule,
        list(versions),
        [facts.players[person] for person in persons],
        columns["offset"],
        columns["player"],
        LazyColumns(fetch),
        columns["version"],
        columns["row"],
        persons=persons,
    )
    stream.adjustments = [StreamAdjustment(*inserted) for inserted in about["inserted"]]
    # `continue_trace` only accepts a trace whose seeds have not changed
    stream.seeds = find_seeded_states(facts, ladder, versions)
    if any(version.rule.state for version in versions):
        stream.calendar = read_calendar(facts, stream.row, versions[0].ruleset)
    further_columns = range(1, stream.width)
    states, before, adjusted = ([columns[name.format(column)] for column in further_columns] for name in STATE_COLUMNS)
    trace = Trace(
        stream,
        states=[columns["points"], *states],
        games=columns["games"],
        on_ladder=array("b", b"\1" * len(persons)),
        joining=stream.seeds,
        states_before=[columns["before"], *before],
        mints=columns["mint"],
        adjusted_before=[columns["adjusted_before"], *adjusted],
        **{total: about[total] for total in TOTALS},
    )
    trace.began = columns["began"]
    trace.slots = Slots(columns["first"][:-1], columns["first"][1:], columns["slot"])
    return trace
