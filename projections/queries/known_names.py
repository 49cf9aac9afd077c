"""The names that somebody may type: those that a ledger knows, by kind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.rejections import did_you_mean
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import LABELS, NONE, Facts
from ratings_ledger.projections.facts.players import known_players
from ratings_ledger.projections.queries.ladders_at import find_played_labels
from ratings_ledger.projections.replay.eligibility import explain_ineligible_cell
from ratings_ledger.projections.replay.ladders import ALL, parse_name, short_name
from ratings_ledger.projections.replay.partition import is_partitioned_by_time, list_values_at
from ratings_ledger.projections.rulesets.versions import month_start

LISTED = 3  # ladders that are named where a name is none of them


def full_name(facts: Facts, ladder: str) -> str:
    """Return the whole name of a ladder: elo-chess/all for elo-chess. Other texts stay as they are."""
    if not (known := facts.rulesets.get(ladder)):
        return ladder
    partition = known[0].ruleset.partition
    # a group, city, league or season may be called so, too
    has_all = ALL in partition.bands or (
        len(partition.by) == 1 and not partition.bands and (ALL,) in find_played_labels(facts, known)
    )
    return f"{ladder}/{ALL}" if has_all and len(partition.by) == 1 else ladder


def game_names(facts: Facts) -> set[str]:
    """Return what the games are called, such as catan."""
    return {facts.texts[cell.game] for cell in facts.cells}


def similar_name(facts: Facts, player: str | None, game: str | None) -> str:
    """Return what was probably meant by a player, or else by what a game is called, as the end of a sentence."""
    hint = "" if player is None else did_you_mean(player, known_players(facts), facts.current)
    return hint or ("" if game is None else did_you_mean(game, game_names(facts)))


def known_names(facts: Facts, game_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the names in the facts, and the ids of some games, by kind: players, ladders, ids, rulesets, versions, and
    the labels of games, such as game and league. Those that came last stand last, or all are in order.
    """
    versions = [version.ruleset for every in facts.rulesets.values() for version in every]
    found = {
        "players": [name for number, name in enumerate(facts.players) if facts.person[number] == number],
        "ladders": [*map(short_name, ladder_names(facts))],
        "ids": [*game_ids],
        "rulesets": sorted(facts.rulesets),
        "versions": [ruleset.name for ruleset in versions],
    }
    for label in LABELS:
        numbers = {getattr(cell, label) for cell in facts.cells} - {NONE}
        if label == "league":
            numbers |= {league.league for league in facts.leagues}
        found[label] = sorted(facts.texts[number] for number in numbers)
    return found


def ladder_names(facts: Facts) -> list[str]:
    """Return the ladders that have games or adjustments, as far as the labels and times of games tell; in order."""
    found = {adjustment.ladder for adjustment in facts.adjustments}
    for versions in facts.rulesets.values():
        ruleset = versions[0].ruleset
        counted = {
            number
            for number, cell in enumerate(facts.cells)
            if not all(explain_ineligible_cell(facts, cell, version.ruleset) for version in versions)
        }
        for number, played_at in _samples(facts, ruleset) if counted else ():
            if number in counted:
                values = list_values_at(facts, facts.cells[number], played_at, ruleset)
                found |= {"/".join((ruleset.id, *own)) for own in values}
    return sorted(found)


def suggest_ladders(facts: Facts, name: str) -> str:
    """Return which ladders a ruleset has, as the end of a sentence about a name that is none of them; the last of time
    first.
    """
    ruleset_id = parse_name(name).ruleset_id
    known = [
        *map(short_name, (ladder for ladder in ladder_names(facts) if parse_name(ladder).ruleset_id == ruleset_id))
    ]
    if not known or ruleset_id not in facts.rulesets:
        return ""
    if is_partitioned_by_time(facts.rulesets[ruleset_id][0].ruleset):
        return f"; the newest is {max(known, key=lambda ladder: (ladder.rpartition('/')[2], ladder))}"
    more = f" and {len(known) - LISTED:,} more" if len(known) > LISTED else ""
    return f"; there {'are' if len(known) > 1 else 'is'} {', '.join(known[:LISTED])}{more}"


def _samples(facts: Facts, ruleset: Ruleset) -> Iterator[tuple[int, int]]:
    """Cells with the time of one of their games: of one in each month, where the time decides on the ladder."""
    starts = [*_months(facts, ruleset.time_zone)] if is_partitioned_by_time(ruleset) else []
    if len(facts.cell) >= arrays.LONG_HISTORY:
        cells, times = (arrays.as_numpy(column).astype(np.int64) for column in (facts.cell, facts.occurred_at))
        months = np.searchsorted(np.array(starts, dtype=np.int64), times, side="right")
        _, rows = np.unique(cells * (len(starts) + 1) + months, return_index=True)
        yield from zip(cells[rows].tolist(), times[rows].tolist(), strict=True)
        return
    there = zip(facts.cell, facts.occurred_at, strict=True)
    samples = {(cell, bisect_right(starts, time)): time for cell, time in there}
    yield from ((cell, time) for (cell, _), time in samples.items())


def _months(facts: Facts, zone: str) -> Iterator[int]:
    """Yield when the months begin, from that of the first game on."""
    if len(times := arrays.in_memory(facts.occurred_at)):
        first, last = local_time(min(times), zone), local_time(max(times), zone)
        for month in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
            yield month_start(month // 12, month % 12 + 1, zone)
