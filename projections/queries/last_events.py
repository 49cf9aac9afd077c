"""Find the last event that an answer depends on: the answer is the same at every later position.

A ladder depends on every event that ever affected it: its games, adjustments, seeds and published lists, its versions,
corrections, voids and withdrawals (also of games that have since moved to another ladder), renames, and the accounts,
clocks and leagues that its rulesets read.

A player or a game depends on fewer events, because points never depend on later games. Usually the ladder as known at
a position is a prefix of today's ladder. There are two exceptions: an event known at the position was changed later, or
an event recorded later belongs before known ones. Each exception excludes a span of positions. A player depends on the
last of their games and adjustments or, if that event lies in an excluded span, on the end of the span. A game recorded
in chronological order affects only its players: the points, games and histories of all other players stay the same, but
their ranks (and the gold for ranks) may change. On an annual list, which sums ranks, and under a rule that ages states,
every player depends on all events that the ladder depends on. A ladder of clubs and its clubs depend on all events of
the log, because any event about a player may affect a club. On a ladder with rating periods, every player and game
depends on all events of the log: any event may close a period, and a game is scored together with later games of its
period.

A published list affects every player on its ladder, because histories mention the list. A ladder with carried-over
points depends on all earlier seasons. The member `open` of answers and the display zone are ignored.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.store.log import read_recorded_at
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Column, Facts
from ratings_ledger.projections.facts.lookups import list_rows_of
from ratings_ledger.projections.queries.coordinates import to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo, name_monthly_ladders
from ratings_ledger.projections.queries.last_changes import GameRevision, LastChanges, find_last_changes
from ratings_ledger.projections.queries.results import LastEvent
from ratings_ledger.projections.replay.eligibility import NEVER, SelectedGames, list_cell_leagues
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.partition import Values, list_values_at, partition_games
from ratings_ledger.projections.replay.streams import Stream, name_ladders_of_game
from ratings_ledger.projections.rulesets.versions import Version, find_months_problem, list_games

# for more games than this, it is faster to compute the indexes of all games of a ladder at once
INDEXED_GAMES_MIN = 100


@dataclass
class RulesetChanges:
    """The changes that affect the ladders of a ruleset.

    rows:      the rows of the changed games that may be on each ladder, by partition values
    revisions: the superseded revisions of games that may have been on each ladder, by partition values
    starts:    the last event that changed the start of each league, by the text number of its label
    """

    rows: dict[Values, Column]
    revisions: dict[Values, list[GameRevision]]
    starts: dict[int, int]


@dataclass
class LadderDependencies:
    """The positions of the events that a ladder depends on.

    stream:          the games and adjustments of the ladder
    global_position: the last event that affects every answer about the ladder, even at earlier times
    all_players:     the last other event that affects all players: a published list, the first game under the version
                     that ranks the ladder, or, for an annual list, any event that its monthly lists depend on
    last:            the last event that affects any answer
    spans:           excluded half-open spans, ascending, in which the ladder was not a prefix of today's ladder
    highest:         the highest position up to each game and adjustment of `stream`, in order
    by_person:       the last event about each person's games and adjustments; None until it is needed
    """

    stream: Stream
    global_position: int
    all_players: int
    last: int
    spans: list[tuple[int, int]]
    highest: Column
    by_person: dict[int, int] | None = field(default=None)


_CHANGES: Memo[str, LastChanges] = Memo()
_RULESET_CHANGES: Memo[str, RulesetChanges] = Memo()
_DEPENDENCIES: Memo[str, LadderDependencies] = Memo()
_ALL_GAMES: Memo[str, dict[Values, Column]] = Memo()


def load_last_event(connection: Connection, position: int) -> LastEvent:
    """Return the event at a position as a result."""
    return LastEvent(position, to_datetime(read_recorded_at(connection, position)))


def find_last_event(
    connection: Connection, ladders: Ladders, ladder: str, player: str | None = None, other_position: int = 0
) -> int:
    """Return the position of the last event that a ladder, or a player on the ladder, depends on.

    Args:
        connection: the connection to the store.
        ladders: the ladders at the coordinates.
        ladder: the name of the ladder.
        player: a player known to the facts; by default, the answer is for the whole ladder.
        other_position: the position of another event that a player's answer depends on.

    Raises `UnknownLadder`, `RulesetUnusable`.
    """
    if ladders.for_ladder(ladder).facts.club_games is not None:
        return ladders.facts.position  # any event about a player may affect a club
    dependencies = _load_dependencies(connection, ladders, ladder)
    if player is None:
        return dependencies.last
    changes, facts = _load_changes(connection, ladders), ladders.facts
    number = facts.player_numbers[player]
    if dependencies.by_person is None:
        dependencies.by_person = _find_last_by_person(connection, ladders, ladder)
    own_position = max(dependencies.by_person.get(facts.person[number], 0), changes.renamed.get(number, 0))
    own_position = own_position or _find_first_mention(facts, changes, number)
    # states are aged to the ladder's last game, so they depend on the games of other players
    if dependencies.stream.ranking.sums_lists or any(version.rule.age for version in dependencies.stream.versions):
        return max(own_position, dependencies.last)
    return _skip_excluded_spans(
        max(dependencies.global_position, dependencies.all_players, own_position, other_position), [dependencies]
    )


def find_last_event_of_game(connection: Connection, ladders: Ladders, row: int) -> int:
    """Return the position of the last event that a game depends on, including its effects on all of its ladders.

    `row` is the game's row in the facts. Raises `RulesetUnusable`.
    """
    return next(find_last_events_of_games(connection, ladders, [row]))


def find_last_events_of_games(connection: Connection, ladders: Ladders, rows: Sequence[int]) -> Iterator[int]:
    """Yield the position of the last event that each game depends on, in the order of the rows.

    Raises `RulesetUnusable`.
    """
    facts, changes = ladders.facts, _load_changes(connection, ladders)
    cells, indexes = dict[int, _CellDependencies](), dict[str, dict[int, int]]()
    for row in rows:
        first = facts.first_position[row]
        cell = facts.cell[row]
        if cell not in cells:
            cells[cell] = _find_cell_dependencies(connection, ladders, row)
        dependencies = cells[cell]
        last, by_ladder = max(dependencies.last, first, changes.rows[row]), dependencies.by_ladder
        if dependencies.timed_rulesets:
            by_ladder = [*by_ladder, *_load_game_ladders(connection, ladders, row, dependencies.timed_rulesets)]
        for entry in by_ladder:
            name = entry.stream.ladder
            if name not in indexes:
                # for a few games, `count_before` is faster
                stream_rows = enumerate(entry.stream.rows) if len(rows) > INDEXED_GAMES_MIN else ()
                indexes[name] = {stream_row: index for index, stream_row in stream_rows}
            entry_count = indexes[name].get(row)
            if entry_count is None or entry.stream.adjustments:
                entry_count = sum(entry.stream.count_before(facts, (facts.occurred_at[row], first)))
            last = max(last, entry.global_position, entry.highest[entry_count - 1] if entry_count else 0)
        yield _skip_excluded_spans(last, by_ladder)


class _CellDependencies(NamedTuple):
    """The events that all games of a cell depend on.

    last:           the last event about a ruleset that scores these games
    by_ladder:      the dependencies of each ladder that all of these games are on
    timed_rulesets: the versions of each ruleset with a ladder per month or year, which depends on a game's date
    """

    last: int
    by_ladder: list[LadderDependencies]
    timed_rulesets: Sequence[Sequence[Version]]


def _find_cell_dependencies(connection: Connection, ladders: Ladders, row: int) -> _CellDependencies:
    """Return the events that all games with the cell of a game depend on."""
    facts, changes = ladders.facts, _load_changes(connection, ladders)
    game = facts.texts[facts.cell_of(row).game]
    scoring_ids = {version.ruleset.id for version in facts.recorded.versions if game in version.ruleset.scope.game}
    ruleset_changes = [changes.rulesets[ruleset_id] for ruleset_id in {*scoring_ids, *facts.unusable}]
    last = max([changes.global_position, *ruleset_changes])
    usable = [facts.rulesets[ruleset_id] for ruleset_id in sorted(facts.rulesets.keys() - facts.unusable.keys())]
    in_scope = [versions for versions in usable if any(game in version.ruleset.scope.game for version in versions)]
    timed = [versions for versions in in_scope if versions[0].ruleset.partition.is_by_time]
    untimed = [versions for versions in in_scope if versions not in timed]
    return _CellDependencies(last, _load_game_ladders(connection, ladders, row, untimed), timed)


def _load_game_ladders(
    connection: Connection, ladders: Ladders, row: int, rulesets: Sequence[Sequence[Version]]
) -> list[LadderDependencies]:
    """Return the dependencies of the ladders that a game is on, among the ladders of the given rulesets.

    Each ruleset is given by its versions.
    """
    return [
        _load_dependencies(connection, ladders, ladder)
        for versions in rulesets
        for ladder in name_ladders_of_game(ladders.facts, row, versions[0].ruleset)
    ]


def _skip_excluded_spans(position: int, by_ladder: Sequence[LadderDependencies]) -> int:
    """Return the first position from `position` on that is outside the excluded spans of all these ladders."""
    while True:
        start = position
        for entry in by_ladder:
            index = bisect_right(entry.spans, (position, 2**63)) - 1
            if index >= 0:
                position = max(position, entry.spans[index][1])
        if position == start:
            return position


# the whole log


def _load_changes(connection: Connection, ladders: Ladders) -> LastChanges:
    """Return the last change to each subject in the log. It is computed once, and shared by every `as_of`."""
    return _CHANGES.get(ladders.at(None), "", lambda: find_last_changes(connection, ladders.facts))


def _find_first_mention(facts: Facts, changes: LastChanges, number: int) -> int:
    """Return a position from which an id, given by its number, is known, for a player without games on a ladder.

    It is the earliest position of an account, an adjustment, a seed or a game with the id, or of an event that
    superseded a revision with the id.
    """
    recorded = facts.recorded
    positions = [account.position for account in recorded.accounts if account.player == number]
    positions += [adjustment.position for adjustment in recorded.adjustments if adjustment.player == number]
    positions += [seed.position for seed in recorded.seeds if seed.player == number]
    positions += [facts.first_position[row] for row in list_rows_of(facts, [number])[:1]]
    positions += [revision.until for revision in changes.revisions if number in revision.players]
    return min(positions, default=facts.position)


# a ruleset


def _load_ruleset_changes(
    connection: Connection, ladders: Ladders, ruleset_id: str, versions: Sequence[Version]
) -> RulesetChanges:
    """Return the changes that affect the ladders of a ruleset. They are computed once."""
    return _RULESET_CHANGES.get(ladders, ruleset_id, lambda: _find_ruleset_changes(connection, ladders, versions))


def _find_ruleset_changes(connection: Connection, ladders: Ladders, versions: Sequence[Version]) -> RulesetChanges:
    facts, changes, ruleset = ladders.facts, _load_changes(connection, ladders), versions[0].ruleset
    rows = _find_nonzero_indexes(changes.rows)
    revisions: dict[Values, list[GameRevision]] = {}
    for revision in changes.revisions:
        if revision.cell.game in _find_game_numbers(facts, versions) and _is_played(ladders, revision.occurred_at):
            for values in list_values_at(facts, revision.cell, revision.occurred_at, ruleset):
                revisions.setdefault(values, []).append(revision)
    starts = _find_league_start_changes(facts, changes, versions) if ruleset.freeze != "none" else {}
    return RulesetChanges(_group_by_ladder(ladders, versions, rows), revisions, starts)


def _find_game_numbers(facts: Facts, versions: Sequence[Version]) -> set[int | None]:
    """Return the text numbers of the games that a ruleset scores, with None for a game that was never played."""
    return {facts.text_numbers.get(name) for name in list_games(versions)}


def _is_played(ladders: Ladders, instant: int) -> bool:
    """Tell whether an instant is not after `as_of`."""
    return ladders.as_of is None or instant <= ladders.as_of


def _find_nonzero_indexes(column: Column) -> Column:
    return arrays.as_column(np.flatnonzero(arrays.as_numpy(column)).astype(np.int64, copy=False))


def _group_by_ladder(ladders: Ladders, versions: Sequence[Version], rows: Column) -> dict[Values, Column]:
    """Group games, given by row, by the ladders of a ruleset that they may be on.

    Voided and ineligible games are included, because the event that excluded them affects the ladder.
    """
    facts, game_numbers = ladders.facts, _find_game_numbers(ladders.facts, versions)
    in_scope, indexes = np.array([cell.game in game_numbers for cell in facts.cells], dtype=bool), arrays.as_numpy(rows)
    is_selected = in_scope[arrays.as_numpy(facts.cell)[indexes]]
    if ladders.as_of is not None:
        is_selected &= arrays.as_numpy(facts.occurred_at)[indexes] <= ladders.as_of
    rows = arrays.as_column(indexes[is_selected])
    zeros = arrays.zeros
    games = SelectedGames(rows, zeros("h", len(rows)), zeros("q", len(rows) + 1), array("i"))
    partition = partition_games(facts, versions[0].ruleset, games, None)
    offsets = partition.ladder_from
    return {
        values: partition.row[begin:end]
        for values, (begin, end) in zip(partition.ladders, pairwise(offsets), strict=True)
    }


def _find_league_start_changes(facts: Facts, changes: LastChanges, versions: Sequence[Version]) -> dict[int, int]:
    """Return the last event that may have changed the start of each league, by the text number of its label.

    See `eligibility.find_league_starts`.
    """
    game_numbers, last_changes, first_played = _find_game_numbers(facts, versions), dict[int, int](), dict[int, int]()

    def note_change(league: int, position: int) -> None:
        last_changes[league] = max(position, last_changes.get(league, 0))

    for league_event in facts.recorded.leagues:
        if league_event.game in game_numbers:
            note_change(league_event.league, changes.last_change_to(league_event.position))
    for revision in changes.revisions:
        if revision.cell.game in game_numbers:
            note_change(revision.cell.league, revision.until)
    leagues = list_cell_leagues(facts, versions)
    for row, cell in enumerate(facts.cell):
        if (league := leagues[cell]) == NONE:
            continue
        if changes.rows[row]:
            note_change(league, changes.rows[row])
        played_at = facts.occurred_at[row]
        if row not in facts.voided and played_at < first_played.get(league, NEVER):
            note_change(league, facts.first_position[row])
            first_played[league] = played_at
    return last_changes


# a ladder


def _load_dependencies(connection: Connection, ladders: Ladders, ladder: str) -> LadderDependencies:
    """Return the events that a ladder depends on. They are computed once."""
    return _DEPENDENCIES.get(ladders, ladder, lambda: _find_dependencies(connection, ladders, ladder))


def _find_dependencies(connection: Connection, ladders: Ladders, ladder: str) -> LadderDependencies:
    facts, changes, versions = ladders.facts, _load_changes(connection, ladders), ladders.versions(ladder)
    stream, values = ladders.load_stream(ladder), parse_name(ladder).values
    ruleset_changes = _load_ruleset_changes(connection, ladders, parse_name(ladder).ruleset_id, versions)
    order = _list_positions(facts, stream)
    begins, ends = _find_late_spans(order)
    rows = ruleset_changes.rows.get(values, array("q"))
    begins.extend(arrays.take(facts.first_position, rows))
    ends.extend(arrays.take(changes.rows, rows))
    spans = [(revision.first, revision.until) for revision in ruleset_changes.revisions.get(values, ())]
    for adjustment in facts.recorded.adjustments:
        if adjustment.ladder == ladder and _is_played(ladders, adjustment.occurred_at):
            renamed = changes.renamed.get(adjustment.player, 0)
            last = max(changes.last_change_to(adjustment.position), renamed)
            spans.append((adjustment.position, last))
    for begin, end in spans:
        if begin < end:
            begins.append(begin)
            ends.append(end)
    global_position = max(
        changes.global_position,
        _find_last_version_change(facts, changes, versions),
        _find_start_change(facts, ruleset_changes, versions, values),
        # a seed counts for the whole ladder, because finding the games after the seed is not worthwhile
        *(changes.last_change_to(seed.position) for seed in facts.recorded.seeds if seed.ladder == ladder),
    )
    if any(version.params.carry_over for version in versions):
        # carried-over points appear with the first event of the ladder, on which all answers depend
        global_position = max(
            global_position, _find_earlier_season_change(connection, ladders, ladder, versions), min(order, default=0)
        )
    if versions[0].ruleset.period != "game":
        global_position = facts.position  # any event may close a period, and a later game may join an earlier one's
    all_players = max(changes.lists.get(ladder, 0), _find_ranking_position(facts, stream))
    if stream.ranking.sums_lists:
        months = _find_monthly_ladders(ladders, ladder, versions)
        all_players = max([all_players, *(_load_dependencies(connection, ladders, month).last for month in months)])
    highest = arrays.as_column(np.maximum.accumulate(arrays.as_numpy(order)))
    merged_spans = _merge_spans(begins, ends)
    last = max(
        global_position, all_players, highest[-1] if len(highest) else 0, merged_spans[-1][1] if merged_spans else 0
    )
    return LadderDependencies(
        stream=stream,
        global_position=global_position,
        all_players=all_players,
        last=last,
        spans=merged_spans,
        highest=highest,
    )


def _list_positions(facts: Facts, stream: Stream) -> Column:
    """Return the first position of each game and adjustment of a stream, in the order of the stream."""
    game_positions = arrays.take(facts.first_position, stream.rows)
    if not stream.adjustments:
        return game_positions
    positions, copied_count, view = array("q"), 0, memoryview(game_positions)
    for adjustment in stream.adjustments:
        positions.frombytes(view[copied_count : adjustment.game].tobytes())
        positions.append(adjustment.position)
        copied_count = adjustment.game
    positions.frombytes(view[copied_count:].tobytes())
    return positions


def _find_late_spans(order: Column) -> tuple[array[int], array[int]]:
    """Return the begins and the ends of the spans that events recorded late exclude.

    A span reaches from the first event that belongs after the late event to the late event itself.
    """
    begins, ends = array("q"), array("q")
    positions = arrays.as_numpy(order)
    lowest_from = np.minimum.accumulate(positions[::-1])[::-1]
    late_indexes = np.flatnonzero(positions[:-1] > lowest_from[1:])
    begins.frombytes(lowest_from[late_indexes + 1].astype(np.int64).tobytes())
    ends.frombytes(positions[late_indexes].astype(np.int64).tobytes())
    return begins, ends


def _merge_spans(begin_column: Column, end_column: Column) -> list[tuple[int, int]]:
    """Return the spans in ascending order, with overlapping and adjacent spans merged."""
    if not len(begin_column):
        return []
    begins = arrays.as_numpy(begin_column)
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(arrays.as_numpy(end_column)[order])
    first_indexes = np.flatnonzero(np.concatenate(([True], begins[1:] > ends[:-1])))
    last_indexes = np.concatenate((first_indexes[1:] - 1, [len(begins) - 1]))
    return list(zip(begins[first_indexes].tolist(), ends[last_indexes].tolist(), strict=True))


def _find_last_version_change(facts: Facts, changes: LastChanges, versions: Sequence[Version]) -> int:
    """Return the last event about the rulesets that a ladder depends on."""
    ruleset_ids = {versions[0].ruleset.id} | {getattr(version.params, "of", "") for version in versions}
    if facts.recorded.clocks and any("seconds_played" in version.rule.columns for version in versions):
        # timers may come from any ruleset
        ruleset_ids |= changes.rulesets.keys()
    return max(changes.rulesets.get(ruleset_id, 0) for ruleset_id in ruleset_ids)


def _find_start_change(
    facts: Facts, ruleset_changes: RulesetChanges, versions: Sequence[Version], values: Values
) -> int:
    """Return the last event that may have changed the start of the ladder's league.

    On a ladder that is not partitioned by league, return the last event for any league.
    """
    by = versions[0].ruleset.partition.by
    if "league" not in by:
        return max(ruleset_changes.starts.values(), default=0)
    return ruleset_changes.starts.get(facts.text_numbers.get(values[by.index("league")], NONE), 0)


def _find_earlier_season_change(
    connection: Connection, ladders: Ladders, ladder: str, versions: Sequence[Version]
) -> int:
    """Return the last event that the ladder of any earlier season depends on, including seasons without games now."""
    season_index, (ruleset_id, values) = versions[0].ruleset.partition.by.index("season"), parse_name(ladder)
    changes = _load_ruleset_changes(connection, ladders, ruleset_id, versions)
    candidates = {parse_name(name).values for name in ladders.streams(ruleset_id)}
    candidates |= {*changes.rows} | {*changes.revisions}
    for adjustment in ladders.facts.recorded.adjustments:
        name = parse_name(adjustment.ladder)
        if name.ruleset_id == ruleset_id and len(name.values) == len(values):
            candidates.add(name.values)
    other_values = values[:season_index] + values[season_index + 1 :]
    earlier = [
        season
        for season in candidates
        if season[season_index] < values[season_index]
        and season[:season_index] + season[season_index + 1 :] == other_values
    ]
    names = ("/".join([ruleset_id, *season]) for season in earlier)
    return max((_load_dependencies(connection, ladders, name).last for name in names), default=0)


def _find_ranking_position(facts: Facts, stream: Stream) -> int:
    """Return the position of the first game in the last run of games that one version scored.

    From that game on, this version ranks the ladder. Return 0 without games or with only one version.
    """
    if len(stream.versions) == 1 or not len(stream.rows):
        return 0
    position: int = facts.first_position[stream.rows[arrays.change_indices(stream.version_indices)[-1]]]
    return position


def _find_monthly_ladders(ladders: Ladders, ladder: str, versions: Sequence[Version]) -> set[str]:
    """Return the names of the monthly lists that an annual list may sum."""
    names: set[str] = set()
    for version in versions:
        source_id = getattr(version.params, "of", "")
        monthly = ladders.facts.rulesets.get(source_id, [])
        if source_id not in ladders.facts.unusable and find_months_problem(version, monthly) is None:
            names |= {*name_monthly_ladders(ladder, version, monthly).values()}
    return names


def _find_last_by_person(connection: Connection, ladders: Ladders, ladder: str) -> dict[int, int]:
    """Return the last event about each person's games and adjustments that are or were on a ladder, by person."""
    facts, changes, versions = ladders.facts, _load_changes(connection, ladders), ladders.versions(ladder)
    ruleset_id, values = parse_name(ladder)
    # every game has participants, so the nonzero counts select all rows
    games = _ALL_GAMES.get(
        ladders, ruleset_id, lambda: _group_by_ladder(ladders, versions, _find_nonzero_indexes(facts.count))
    )
    last_by_person = _find_last_game_by_person(facts, changes, games.get(values, array("q")))

    def note_change(number: int, position: int) -> None:
        person = facts.person[number]
        last_by_person[person] = max(position, last_by_person.get(person, 0))

    for revision in _load_ruleset_changes(connection, ladders, ruleset_id, versions).revisions.get(values, ()):
        for number in revision.players:
            note_change(number, revision.until)
    for adjustment in facts.recorded.adjustments:
        if adjustment.ladder == ladder and _is_played(ladders, adjustment.occurred_at):
            note_change(adjustment.player, changes.last_change_to(adjustment.position))
    return last_by_person


def last_positions_of_people(connection: Connection, ladders: Ladders, rows: Column | None = None) -> dict[str, int]:
    """Return the position of the last event about each player's games or identity, by player.

    The games include those that do not count, and those that the player was in before a correction.

    Args:
        connection: the connection to the store.
        ladders: the ladders at the coordinates.
        rows: the rows of the games to consider, ascending; by default all.
    """
    facts, changes = ladders.facts, _load_changes(connection, ladders)
    rows = _find_nonzero_indexes(facts.count) if rows is None else array("q", rows)
    last_by_person = _find_last_game_by_person(facts, changes, rows)
    corrected = [(number, revision.until) for revision in changes.revisions for number in revision.players]
    for number, position in [*corrected, *changes.renamed.items()]:
        person = facts.person[number]
        last_by_person[person] = max(position, last_by_person.get(person, 0))
    return {facts.players[person]: position for person, position in last_by_person.items()}


def _find_last_game_by_person(facts: Facts, changes: LastChanges, rows: Column) -> dict[int, int]:
    """Return the last event about each person's games, by person, among games given by ascending row."""
    first_positions, game_changes, counts = (
        arrays.as_numpy(arrays.take(column, rows)) for column in (facts.first_position, changes.rows, facts.count)
    )
    slots = arrays.as_numpy(arrays.span_indices(arrays.take(facts.start, rows), arrays.as_column(counts)))
    persons = arrays.as_numpy(facts.person)[arrays.as_numpy(facts.player)[slots]]
    last_positions = np.zeros(len(facts.person), dtype=np.int64)
    # rows ascend in log order, so the last assignment wins
    last_positions[persons] = np.repeat(first_positions, counts)
    if game_changes.any():
        is_changed = game_changes > 0
        changed_persons = persons[np.repeat(is_changed, counts)]
        np.maximum.at(last_positions, changed_persons, np.repeat(game_changes[is_changed], counts[is_changed]))
    involved_persons = np.flatnonzero(last_positions)
    return dict(zip(involved_persons.tolist(), last_positions[involved_persons].tolist(), strict=True))
