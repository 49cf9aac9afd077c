"""List the names in a ledger, for completion and for did-you-mean hints; find typos in the names of ladders."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.rejections import did_you_mean, find_closest
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import LABELS, NONE, Facts
from ratings_ledger.projections.facts.lookups import known_players
from ratings_ledger.projections.replay.eligibility import explain_ineligible_cell
from ratings_ledger.projections.replay.ladder_names import ALL, LadderName, find_label_indexes, parse_name, short_name
from ratings_ledger.projections.replay.partition import list_cell_values, list_values_at
from ratings_ledger.projections.rulesets.versions import Version, month_start

LADDERS_IN_HINT_MAX = 3  # the maximum number of ladders that a hint names
# the values in a ladder's name that are labels of its games, such as group and city
Labels = tuple[str, ...]


def full_name(facts: Facts, ladder: str) -> str:
    """Return the full name of a ladder: elo-chess/all for elo-chess. Return other names unchanged."""
    if not (versions := facts.rulesets.get(ladder)):
        return ladder
    partition = versions[0].ruleset.partition
    # a group, city, league or season may also be called `all`
    has_all = ALL in partition.bands or (
        len(partition.by) == 1 and not partition.bands and (ALL,) in find_played_labels(facts, versions)
    )
    return f"{ladder}/{ALL}" if has_all and len(partition.by) == 1 else ladder


def list_game_names(facts: Facts) -> set[str]:
    """Return the names of the recorded games, such as catan."""
    return {facts.texts[cell.game] for cell in facts.cells}


def suggest_name(facts: Facts, player: str | None, game: str | None) -> str:
    """Return a did-you-mean hint for an unknown player or game; if both have similar names, for the player."""
    hint = "" if player is None else did_you_mean(player, known_players(facts), facts.current)
    return hint or ("" if game is None else did_you_mean(game, list_game_names(facts)))


def list_names(facts: Facts, game_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the names in the facts: `players`, `ladders`, `ids` of games, `rulesets`, `versions`, and labels of games.

    Players are in the order of appearance, game ids in the given order, and versions by ruleset. All other names are
    sorted.
    """
    rulesets = [version.ruleset for versions in facts.rulesets.values() for version in versions]
    names = {
        "players": [name for number, name in enumerate(facts.players) if facts.person[number] == number],
        "ladders": [*map(short_name, list_ladder_names(facts))],
        "ids": [*game_ids],
        "rulesets": sorted(facts.rulesets),
        "versions": [ruleset.name for ruleset in rulesets],
    }
    for label in LABELS:
        numbers = {getattr(cell, label) for cell in facts.cells} - {NONE}
        if label == "league":
            numbers |= {league.league for league in facts.leagues}
        names[label] = sorted(facts.texts[number] for number in numbers)
    return names


def list_ladder_names(facts: Facts) -> list[str]:
    """Return the names of the ladders with adjustments or games, sorted. Games are judged by their labels and times."""
    names = {adjustment.ladder for adjustment in facts.adjustments}
    for versions in facts.rulesets.values():
        ruleset = versions[0].ruleset
        counted_cells = {
            number
            for number, cell in enumerate(facts.cells)
            if not all(explain_ineligible_cell(facts, cell, version.ruleset) for version in versions)
        }
        for number, played_at in _sample_games(facts, ruleset) if counted_cells else ():
            if number in counted_cells:
                ladders = list_values_at(facts, facts.cells[number], played_at, ruleset)
                names |= {"/".join((ruleset.id, *values)) for values in ladders}
    return sorted(names)


def describe_existing_ladders(facts: Facts, name: str) -> str:
    """Return a hint with the ladders of a ruleset, or with its newest monthly or annual list, for an unknown name."""
    ruleset_id = parse_name(name).ruleset_id
    ladders = [short_name(ladder) for ladder in list_ladder_names(facts) if parse_name(ladder).ruleset_id == ruleset_id]
    if not ladders or ruleset_id not in facts.rulesets:
        return ""
    if facts.rulesets[ruleset_id][0].ruleset.partition.is_by_time:
        return f"; the newest is {max(ladders, key=lambda ladder: (ladder.rpartition('/')[2], ladder))}"
    more = f" and {len(ladders) - LADDERS_IN_HINT_MAX:,} more" if len(ladders) > LADDERS_IN_HINT_MAX else ""
    return f"; there {'are' if len(ladders) > 1 else 'is'} {', '.join(ladders[:LADDERS_IN_HINT_MAX])}{more}"


def _sample_games(facts: Facts, ruleset: Ruleset) -> Iterator[tuple[int, int]]:
    """Yield the cell and the time of one game of each cell or, for lists of months or years, of each cell and month."""
    starts = [*_list_month_starts(facts, ruleset.time_zone)] if ruleset.partition.is_by_time else []
    if len(facts.cell) >= arrays.LONG_HISTORY:
        cells, times = (arrays.as_numpy(column).astype(np.int64) for column in (facts.cell, facts.occurred_at))
        months = np.searchsorted(np.array(starts, dtype=np.int64), times, side="right")
        _, rows = np.unique(cells * (len(starts) + 1) + months, return_index=True)
        yield from zip(cells[rows].tolist(), times[rows].tolist(), strict=True)
        return
    games = zip(facts.cell, facts.occurred_at, strict=True)
    samples = {(cell, bisect_right(starts, time)): time for cell, time in games}
    yield from ((cell, time) for (cell, _), time in samples.items())


def _list_month_starts(facts: Facts, zone: str) -> Iterator[int]:
    """Yield the start of each month from that of the first game to that of the last."""
    if len(times := arrays.load_into_memory(facts.occurred_at)):
        first, last = local_time(min(times), zone), local_time(max(times), zone)
        for month in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
            yield month_start(month // 12, month % 12 + 1, zone)


def find_played_labels(facts: Facts, versions: Sequence[Version]) -> set[Labels]:
    """Return the labels of each ladder of a ruleset that has a live game or an adjustment."""
    ruleset = versions[0].ruleset
    indexes = find_label_indexes(ruleset.partition.by)
    voided = facts.voided
    live_cells = {cell for row, cell in enumerate(facts.cell) if row not in voided} if voided else {*facts.cell}
    labels = set()
    for cell in (facts.cells[number] for number in live_cells):
        if not all(explain_ineligible_cell(facts, cell, version.ruleset) for version in versions):
            labels |= {tuple(values[index] for index in indexes) for values in list_cell_values(facts, cell, ruleset)}
    names = (parse_name(adjustment.ladder) for adjustment in facts.adjustments)
    return labels | {tuple(name.values[index] for index in indexes) for name in names if name.ruleset_id == ruleset.id}


def find_typo(name: LadderName, versions: Sequence[Version], known_labels: set[Labels]) -> tuple[int, str] | None:
    """Return the index of the part of a ladder's name that is probably a typo, and the similar label.

    All other labels must match those of a known ladder. Return None if there is no similar label, or if the ladder
    itself is known.
    """
    indexes = find_label_indexes(versions[0].ruleset.partition.by)
    labels = tuple(name.values[index] for index in indexes)
    for number, label in enumerate(labels if labels not in known_labels else ()):
        other_labels = drop_label(labels, number)
        candidates = [
            ladder_labels[number]
            for ladder_labels in sorted(known_labels)
            if drop_label(ladder_labels, number) == other_labels
        ]
        if (similar_label := find_closest(label, candidates)) is not None:
            return indexes[number], similar_label
    return None


def drop_label(labels: Labels, index: int) -> Labels:
    """Return labels without the label at an index."""
    return labels[:index] + labels[index + 1 :]


def suggest_ladder(facts: Facts, ladder: str) -> str | None:
    """Return a hint with the label that was probably meant, if a ladder has no games; None without such a label."""
    name = parse_name(ladder)
    versions = facts.rulesets.get(name.ruleset_id, [])
    if not versions or (typo := find_typo(name, versions, find_played_labels(facts, versions))) is None:
        return None
    index, similar_label = typo
    part = versions[0].ruleset.partition.by[index]
    return f"{short_name(ladder)} has no games; did you mean the {part} {similar_label}?"
