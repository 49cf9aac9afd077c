"""The last event that something depends on: known at its position, the log says the same as at that of the facts.

A ladder depends on every event that ever concerned it: its games, adjustments and published lists, its versions, what
was corrected, voided or withdrawn there, also of games that are on another ladder now, and who is whom.

For a player or a game that is more than needed, since points depend on nothing that is later. Known at a position, a
ladder is the beginning of what it is now, unless something that was known then was changed afterwards, or something was
recorded afterwards that comes before it. Each of these excludes a span of positions. So a player depends on the last
of their own games and adjustments, or on the end of the span that it lies in. A game that is recorded in the order of
time concerns its own players alone. The others keep their points, games and histories; their ranks, and the gold
that goes with them, may differ. On an annual list everybody depends on everything, for it adds up ranks.

A published list concerns everybody on its ladder, since they are told what it showed. What carries points over depends
on all of the seasons before it. `open`, and the zone in which times are shown, are not looked at.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.store.log import recorded_at
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Column, Facts
from ratings_ledger.projections.facts.players import rows_with
from ratings_ledger.projections.queries.changed_facts import Changed, Former, changed_in
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo, monthly_ladders
from ratings_ledger.projections.queries.results import LastEvent
from ratings_ledger.projections.replay.eligibility import NEVER, SelectedGames, list_starting_leagues
from ratings_ledger.projections.replay.ladders import Stream, list_partition_values, parse_name
from ratings_ledger.projections.replay.partition import Values, is_partitioned_by_time, list_values_at, partition_games
from ratings_ledger.projections.rulesets.versions import Version, list_games, refuse_months

# of more games than this, the places on their ladders are numbered all at once
NUMBERED = 100


@dataclass
class RulesetChanges:
    """Of the ladders of a ruleset, by their partition values: the rows of games that may be on them and were changed
    (`rows`), and what games were that may have been on them; `starts` has by league, as the number of its label, the
    last event that changed when it began."""

    rows: dict[Values, Column]
    former: dict[Values, list[Former]]
    starts: dict[int, int]


@dataclass
class Dependence:
    """What a ladder depends on, as positions.

    whole:   the last event about all that is said of it, the past included
    shown:   the last one about all players on it besides: a published list, or the version that ranks it
    last:    the last one about any of it
    spans:   between these, the first included, it was not the beginning of what it is now; ascending
    reached: for every game and adjustment of `stream`, in one order, the last position up to there
    """

    stream: Stream
    whole: int
    shown: int
    last: int
    spans: list[tuple[int, int]]
    reached: Column
    own: dict[int, int] | None = field(default=None)


_CHANGED: Memo[str, Changed] = Memo()
_OF_RULESET: Memo[str, RulesetChanges] = Memo()
_DEPENDENCES: Memo[str, Dependence] = Memo()
_GAMES: Memo[str, dict[Values, Column]] = Memo()


def last_event_at(connection: Connection, position: int) -> LastEvent:
    """Return the event at a position as the last one that something depends on."""
    return LastEvent(position, moment(recorded_at(connection, position)))


def last_event(connection: Connection, ladders: Ladders, ladder: str, player: str | None = None, least: int = 0) -> int:
    """Return the position of the last event that a ladder depends on, or a player there whom the facts know, and what
    was done at the position `least`, too.

    Raises `UnknownLadder`, `RulesetUnusable`.
    """
    if ladders.for_ladder(ladder).facts.club_games is not None:
        return ladders.facts.position  # whatever is recorded of a player may concern a club
    there = _dependence(connection, ladders, ladder)
    if there.stream.periods is not None:
        return ladders.facts.position  # whatever is recorded may close a period
    if player is None:
        return there.last
    changed, facts = _changed(connection, ladders), ladders.facts
    number = facts.player_numbers[player]
    if there.own is None:
        there.own = _own(connection, ladders, ladder)
    own = max(there.own.get(facts.person[number], 0), changed.renamed.get(number, 0)) or _named(facts, changed, number)
    # a state is shown as of the ladder's last game, whoever played it
    if there.stream.ranking.sums_lists or any(version.rule.age for version in there.stream.versions):
        return max(own, there.last)
    return _after(max(there.whole, there.shown, own, least), [there])


def last_event_of_game(connection: Connection, ladders: Ladders, row: int) -> int:
    """Return the position of the last event that a game, given its row in the facts, depends on, with all that it gave
    on the ladders that it is on.

    Raises `RulesetUnusable`.
    """
    return next(last_events_of_games(connection, ladders, [row]))


def last_events_of_games(connection: Connection, ladders: Ladders, rows: Sequence[int]) -> Iterator[int]:
    """Yield the same for many games, in the order of their rows. Raises `RulesetUnusable`."""
    facts, changed = ladders.facts, _changed(connection, ladders)
    cells, places = dict[int, _OfCell](), dict[str, dict[int, int]]()
    for row in rows:
        first = facts.first_position[row]
        number = facts.cell[row]
        if number not in cells:
            cells[number] = _of_cell(connection, ladders, row)
        there = cells[number]
        found, own = max(there.last, first, changed.rows[row]), there.ladders
        if there.dated:
            own = [*own, *_on(connection, ladders, row, there.dated)]
        for one in own:
            name = one.stream.ladder
            if name not in places:
                # a few are sooner looked up
                all_of = enumerate(one.stream.row) if len(rows) > NUMBERED else ()
                places[name] = {its_row: place for place, its_row in all_of}
            before = places[name].get(row)
            if before is None or one.stream.adjustments:
                before = sum(one.stream.place(facts, (facts.occurred_at[row], first)))
            found = max(found, one.whole, one.reached[before - 1] if before else 0)
        yield _after(found, own)


class _OfCell(NamedTuple):
    """What games of a cell depend on: the last event about the rulesets that score them, the ladders that they are on,
    and the versions of rulesets whose ladders depend on the date, too."""

    last: int
    ladders: list[Dependence]
    dated: Sequence[Sequence[Version]]


def _of_cell(connection: Connection, ladders: Ladders, row: int) -> _OfCell:
    """Return the same for the cell of a game."""
    facts, changed = ladders.facts, _changed(connection, ladders)
    slug = facts.texts[facts.cell_of(row).game]
    scoring = {one.ruleset.id for one in facts.recorded.versions if slug in one.ruleset.scope.game}
    last = max([changed.everywhere, *(changed.rulesets[ruleset_id] for ruleset_id in {*scoring, *facts.unusable})])
    usable = [facts.rulesets[ruleset_id] for ruleset_id in sorted(facts.rulesets.keys() - facts.unusable.keys())]
    mine = [versions for versions in usable if any(slug in version.ruleset.scope.game for version in versions)]
    dated = [versions for versions in mine if is_partitioned_by_time(versions[0].ruleset)]
    always = [versions for versions in mine if versions not in dated]
    return _OfCell(last, _on(connection, ladders, row, always), dated)


def _on(connection: Connection, ladders: Ladders, row: int, rulesets: Sequence[Sequence[Version]]) -> list[Dependence]:
    """Return the ladders of some rulesets, each given by its versions, that a game is on."""
    return [
        _dependence(connection, ladders, "/".join([versions[0].ruleset.id, *values]))
        for versions in rulesets
        for values in list_partition_values(ladders.facts, row, versions[0].ruleset)
    ]


def _after(position: int, ladders: Sequence[Dependence]) -> int:
    """Return the first position from this one on at which all ladders were the beginnings of what they are now."""
    while True:
        before = position
        for one in ladders:
            index = bisect_right(one.spans, (position, 2**63)) - 1
            if index >= 0:
                position = max(position, one.spans[index][1])
        if position == before:
            return position


# -- all of the log


def _changed(connection: Connection, ladders: Ladders) -> Changed:
    """Return what was changed in the log of these ladders, worked out once for all times that are asked for."""
    return _CHANGED.get(ladders.at(None), "", lambda: changed_in(connection, ladders.facts))


def _named(facts: Facts, changed: Changed, number: int) -> int:
    """Return an event that names an id, the first of some kind; by then the ledger knows it."""
    recorded = facts.recorded
    found = [account.position for account in recorded.accounts if account.player == number]
    found += [adjustment.position for adjustment in recorded.adjustments if adjustment.player == number]
    found += [seed.position for seed in recorded.seeds if seed.player == number]
    found += [facts.first_position[row] for row in rows_with(facts, [number])[:1]]
    found += [former.until for former in changed.former if number in former.players]
    return min(found, default=facts.position)


# -- a ruleset


def _of_ruleset(
    connection: Connection, ladders: Ladders, ruleset_id: str, versions: Sequence[Version]
) -> RulesetChanges:
    """Return what was changed on the ladders of a ruleset."""
    return _OF_RULESET.get(ladders, ruleset_id, lambda: _find_changes(connection, ladders, versions))


def _find_changes(connection: Connection, ladders: Ladders, versions: Sequence[Version]) -> RulesetChanges:
    facts, changed, ruleset = ladders.facts, _changed(connection, ladders), versions[0].ruleset
    rows = _indices(changed.rows)
    former: dict[Values, list[Former]] = {}
    for one in changed.former:
        if one.cell.game in _slugs(facts, versions) and _is_by(ladders, one.occurred_at):
            for values in list_values_at(facts, one.cell, one.occurred_at, ruleset):
                former.setdefault(values, []).append(one)
    starts = _starts(facts, changed, versions) if ruleset.freeze != "none" else {}
    return RulesetChanges(_on_ladders(ladders, versions, rows), former, starts)


def _slugs(facts: Facts, versions: Sequence[Version]) -> set[int]:
    """Return the numbers of the games that a ruleset scores."""
    return {facts.text_numbers.get(name, NONE - 1) for name in list_games(versions)}


def _is_by(ladders: Ladders, instant: int) -> bool:
    return ladders.as_of is None or instant <= ladders.as_of


def _indices(column: Column) -> Column:
    """Return where a column is not 0."""
    return arrays.as_column(np.flatnonzero(arrays.as_numpy(column)).astype(np.int64, copy=False))


def _on_ladders(ladders: Ladders, versions: Sequence[Version], rows: Column) -> dict[Values, Column]:
    """Those of some games that may be on each ladder of a ruleset, voided or not eligible as they may be."""
    facts, slugs = ladders.facts, _slugs(ladders.facts, versions)
    mine, some = np.array([cell.game in slugs for cell in facts.cells], dtype=bool), arrays.as_numpy(rows)
    wanted = mine[arrays.as_numpy(facts.cell)[some]]
    if ladders.as_of is not None:
        wanted &= arrays.as_numpy(facts.occurred_at)[some] <= ladders.as_of
    rows = arrays.as_column(some[wanted])
    zeros = arrays.zeros
    found = SelectedGames(rows, zeros("h", len(rows)), zeros("q", len(rows) + 1), array("i"))
    placed = partition_games(facts, versions[0].ruleset, found, None)
    ends = placed.ladder_from
    return {values: placed.row[ends[at] : ends[at + 1]] for at, values in enumerate(placed.ladders)}


def _starts(facts: Facts, changed: Changed, versions: Sequence[Version]) -> dict[int, int]:
    """By league, the last event that may have changed when it began: see `eligibility.find_league_starts`."""
    slugs, found, first = _slugs(facts, versions), dict[int, int](), dict[int, int]()

    def note(league: int, position: int) -> None:
        found[league] = max(position, found.get(league, 0))

    for created in facts.recorded.leagues:
        if created.game in slugs:
            note(created.league, changed.last(created.position))
    for one in changed.former:
        if one.cell.game in slugs:
            note(one.cell.league, one.until)
    leagues = list_starting_leagues(facts, versions)
    for row, cell in enumerate(facts.cell):
        if (league := leagues[cell]) == NONE:
            continue
        if changed.rows[row]:
            note(league, changed.rows[row])
        played = facts.occurred_at[row]
        if row not in facts.voided and played < first.get(league, NEVER):
            note(league, facts.first_position[row])
            first[league] = played
    return found


# -- a ladder


def _dependence(connection: Connection, ladders: Ladders, ladder: str) -> Dependence:
    """Return what a ladder depends on, worked out once."""
    return _DEPENDENCES.get(ladders, ladder, lambda: _find_dependence(connection, ladders, ladder))


def _find_dependence(connection: Connection, ladders: Ladders, ladder: str) -> Dependence:
    facts, changed, versions = ladders.facts, _changed(connection, ladders), ladders.versions(ladder)
    stream, values = ladders.load_stream(ladder), parse_name(ladder).values
    of_ruleset = _of_ruleset(connection, ladders, parse_name(ladder).ruleset_id, versions)
    order = _positions(facts, stream)
    low, high = _late(order)
    rows = of_ruleset.rows.get(values, array("q"))
    low.extend(arrays.take(facts.first_position, rows))
    high.extend(arrays.take(changed.rows, rows))
    some = [(one.first, one.until) for one in of_ruleset.former.get(values, ())]
    for adjustment in facts.recorded.adjustments:
        if adjustment.ladder == ladder and _is_by(ladders, adjustment.occurred_at):
            renamed = changed.renamed.get(adjustment.player, 0)
            last = max(changed.last(adjustment.position), renamed)
            some.append((adjustment.position, last))
    for begin, end in some:
        if begin < end:
            low.append(begin)
            high.append(end)
    whole = max(changed.everywhere, _rules_of(facts, changed, versions), _began(facts, of_ruleset, versions, values))
    # which of a player's games come after a seed is not looked at
    whole = max([whole, *(changed.last(seed.position) for seed in facts.recorded.seeds if seed.ladder == ladder)])
    if any(version.params.carry_over for version in versions):
        # nothing is carried over to a ladder on which there is nothing
        whole = max(whole, _seasons_before(connection, ladders, ladder, versions), min(order, default=0))
    shown = max(changed.lists.get(ladder, 0), _ranked_since(facts, stream), 0)
    if stream.ranking.sums_lists:
        months = _months(ladders, ladder, versions)
        shown = max([shown, *(_dependence(connection, ladders, month).last for month in months)])
    reached, spans = _running_max(order), _merged(low, high)
    last = max(whole, shown, reached[-1] if len(reached) else 0, spans[-1][1] if spans else 0)
    return Dependence(stream, whole, shown, last, spans, reached)


def _positions(facts: Facts, stream: Stream) -> Column:
    """Return the first positions of a stream's games and adjustments, in their order."""
    at = arrays.take(facts.first_position, stream.row)
    if not stream.adjustments:
        return at
    found, taken, numbers = array("q"), 0, memoryview(at)
    for one in stream.adjustments:
        found.frombytes(numbers[taken : one.game].tobytes())
        found.append(one.position)
        taken = one.game
    found.frombytes(numbers[taken:].tobytes())
    return found


def _late(order: Column) -> tuple[array[int], array[int]]:
    """For everything recorded after something that it comes before: from the first of that on, up to it itself."""
    low, high = array("q"), array("q")
    positions = arrays.as_numpy(order)
    least = np.minimum.accumulate(positions[::-1])[::-1]
    found = np.flatnonzero(positions[:-1] > least[1:])
    low.frombytes(least[found + 1].astype(np.int64).tobytes())
    high.frombytes(positions[found].astype(np.int64).tobytes())
    return low, high


def _running_max(order: Column) -> Column:
    """Return the largest number up to each."""
    return arrays.as_column(np.maximum.accumulate(arrays.as_numpy(order)))


def _merged(low: Column, high: Column) -> list[tuple[int, int]]:
    """Spans, given where each begins and ends, with those that overlap or meet as one; ascending."""
    if not len(low):
        return []
    begins = arrays.as_numpy(low)
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(arrays.as_numpy(high)[order])
    first = np.flatnonzero(np.concatenate(([True], begins[1:] > ends[:-1])))
    last = np.concatenate((first[1:] - 1, [len(begins) - 1]))
    return list(zip(begins[first].tolist(), ends[last].tolist(), strict=True))


def _rules_of(facts: Facts, changed: Changed, versions: Sequence[Version]) -> int:
    """Return the last event about the versions that a ladder depends on."""
    ids = {versions[0].ruleset.id} | {getattr(version.params, "of", "") for version in versions}
    if facts.recorded.clocks and any("seconds_played" in version.rule.columns for version in versions):
        # timers may come from any ruleset
        ids |= changed.rulesets.keys()
    return max(changed.rulesets.get(ruleset_id, 0) for ruleset_id in ids)


def _began(facts: Facts, of_ruleset: RulesetChanges, versions: Sequence[Version], values: Values) -> int:
    """Return the last event that may have changed when a ladder's league began, or any league of a ruleset without
    them.
    """
    by = versions[0].ruleset.partition.by
    if "league" not in by:
        return max(of_ruleset.starts.values(), default=0)
    return of_ruleset.starts.get(facts.text_numbers.get(values[by.index("league")], NONE), 0)


def _seasons_before(connection: Connection, ladders: Ladders, ladder: str, versions: Sequence[Version]) -> int:
    """Return the last event that the same ladder in earlier seasons depends on, also where nothing is left of one."""
    part, (ruleset_id, values) = versions[0].ruleset.partition.by.index("season"), parse_name(ladder)
    of_ruleset = _of_ruleset(connection, ladders, ruleset_id, versions)
    names = (
        {parse_name(name).values for name in ladders.streams(ruleset_id)} | {*of_ruleset.rows} | {*of_ruleset.former}
    )
    for adjustment in ladders.facts.recorded.adjustments:
        name = parse_name(adjustment.ladder)
        if name.ruleset_id == ruleset_id and len(name.values) == len(values):
            names.add(name.values)
    others = values[:part] + values[part + 1 :]
    before = [one for one in names if one[part] < values[part] and one[:part] + one[part + 1 :] == others]
    return max((_dependence(connection, ladders, "/".join([ruleset_id, *one])).last for one in before), default=0)


def _ranked_since(facts: Facts, stream: Stream) -> int:
    """Return the first record of the first of the last games scored by the same version, which ranks the ladder."""
    if len(stream.versions) == 1 or not len(stream.row):
        return 0
    found: int = facts.first_position[stream.row[arrays.change_indices(stream.version)[-1]]]
    return found


def _months(ladders: Ladders, ladder: str, versions: Sequence[Version]) -> set[str]:
    """Return the names of the monthly lists that an annual one may sum."""
    found: set[str] = set()
    for version in versions:
        of = getattr(version.params, "of", "")
        monthly = ladders.facts.rulesets.get(of, [])
        if of not in ladders.facts.unusable and refuse_months(version, monthly) is None:
            found |= {*monthly_ladders(ladder, version, monthly).values()}
    return found


def _own(connection: Connection, ladders: Ladders, ladder: str) -> dict[int, int]:
    """By person, the last event about a game of theirs that may be or have been on a ladder, or about an adjustment."""
    facts, changed, versions = ladders.facts, _changed(connection, ladders), ladders.versions(ladder)
    ruleset_id, values = parse_name(ladder)
    # every game has participants
    games = _GAMES.get(ladders, ruleset_id, lambda: _on_ladders(ladders, versions, _indices(facts.count)))
    found = _last_of_each(facts, changed, games.get(values, array("q")))

    def note(number: int, position: int) -> None:
        person = facts.person[number]
        found[person] = max(position, found.get(person, 0))

    for one in _of_ruleset(connection, ladders, ruleset_id, versions).former.get(values, ()):
        for number in one.players:
            note(number, one.until)
    for adjustment in facts.recorded.adjustments:
        if adjustment.ladder == ladder and _is_by(ladders, adjustment.occurred_at):
            note(adjustment.player, changed.last(adjustment.position))
    return found


def last_positions_of_people(connection: Connection, ladders: Ladders, rows: Column | None = None) -> dict[str, int]:
    """Return the position of the last event about a game of each person, counted or not, among some rows, which ascend,
    or all; or about a game that they were in before it was corrected, or about who they are.
    """
    facts, changed = ladders.facts, _changed(connection, ladders)
    found = _last_of_each(facts, changed, _indices(facts.count) if rows is None else array("q", rows))
    others = [(number, one.until) for one in changed.former for number in one.players]
    for number, position in [*others, *changed.renamed.items()]:
        person = facts.person[number]
        found[person] = max(position, found.get(person, 0))
    return {facts.players[person]: position for person, position in found.items()}


def _last_of_each(facts: Facts, changed: Changed, rows: Column) -> dict[int, int]:
    """By person, the last event about a game of theirs among some rows, which ascend."""
    first, later, counts = (
        arrays.as_numpy(arrays.take(column, rows)) for column in (facts.first_position, changed.rows, facts.count)
    )
    slots = arrays.as_numpy(arrays.span_indices(arrays.take(facts.start, rows), arrays.as_column(counts)))
    persons = arrays.as_numpy(facts.person)[arrays.as_numpy(facts.player)[slots]]
    reached = np.zeros(len(facts.person), dtype=np.int64)
    reached[persons] = np.repeat(first, counts)  # in the order of the log, so the last of each stays
    if later.any():
        np.maximum.at(reached, persons[np.repeat(later > 0, counts)], np.repeat(later[later > 0], counts[later > 0]))
    there = np.flatnonzero(reached)
    return dict(zip(there.tolist(), reached[there].tolist(), strict=True))
