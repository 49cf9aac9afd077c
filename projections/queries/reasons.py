"""How somebody's standing on a ladder comes about: what he began with, his games, and what the list makes of them."""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from ledger.events.canonical import format_instant
from ledger.events.zones import local_time
from ledger.store.log import read_records_at
from projections import compiling
from projections.contract import exact
from projections.facts.columns import NONE, Facts
from projections.lists import LISTS
from projections.queries.standings import Ladders, date_zone
from projections.replay.eligibility import why_left_out, why_not_counted
from projections.replay.ladders import Stream, parse_name, partition_values
from projections.replay.partition import by_time
from projections.replay.replay import Step, needs_changes, replay


def explain_player(connection: Connection, ladders: Ladders, ladder: str, player: str) -> dict[str, Any]:
    """A player's rank, what he began with, his games and adjustments in order, and what the list makes of them.

    The games of this ladder that do not count for him are among them, with the reason; there are none of somebody who
    is not there. Raises `UnknownLadder`, `RuleFailure`.
    """
    facts, stream = ladders.facts, ladders.stream(ladder)
    player = facts.current(player)
    number = stream.names.index(player) if player in stream.names else None
    outcome, steps = replay(stream, watch=number, changes=needs_changes(stream))
    found, results = ladders.ranked(stream, outcome)
    row = next((row for row in found.rows if row.player == player), None)
    ranking = LISTS[stream.rule.ranking]
    annual = stream.rule.ranking == "annual"
    events: list[dict[str, Any]] = []
    if not annual:
        left_out = set() if number is None else ranking.left_out(results, number)
        events = sorted(
            [*_steps(facts, stream, steps, left_out), *_uncounted(ladders, stream, player)],
            key=lambda event: (event["occurred_at"], event["position"]),
        )
    # where a list is of a month or a year, its own zone decides what belongs to it
    ruleset = stream.versions[0].ruleset
    zone = ruleset.time_zone if by_time(ruleset) else date_zone(connection, ladder)
    records = read_records_at(connection, [event["position"] for event in events])
    return {
        "player": player,
        "ladder": ladder,
        "ruleset": found.ruleset,
        "rank": None if row is None else row.rank,
        "points": None if row is None else str(row.value(found.scale)),
        **({} if row is None or row.gold is None else {"gold": row.gold}),
        "start": exact(steps[0].before, found.scale) if steps else None,
        "time_zone": zone,
        "games": [_told(event, json.loads(records[event["position"]])["data"], zone) for event in events],
        "terms": [line._asdict() for line in ranking.explain(results, player)] if row or number is not None else [],
    }


def _steps(facts: Facts, stream: Stream, steps: list[Step], left_out: set[int]) -> Iterator[dict[str, Any]]:
    """The counted games and the adjustments of a player."""
    adjusted = {adjustment.position: adjustment.occurred_at for adjustment in stream.adjustments}
    for step in steps:
        position = facts.live_position[stream.row[step.game]] if step.game is not None else step.position or 0
        played = facts.occurred_at[stream.row[step.game]] if step.game is not None else adjusted[position]
        why_not = "not among the best" if step.game in left_out else None
        change = exact(step.change, stream.rule.scale)
        yield {"position": position, "occurred_at": played, "change": change, "why_not": why_not}


def _uncounted(ladders: Ladders, stream: Stream, player: str) -> Iterator[dict[str, Any]]:
    """The games of a player that are on this ladder by their labels, but do not count for him."""
    facts, versions = ladders.facts, stream.versions
    person = facts.person[facts.player_numbers[player]] if player in facts.player_numbers else None
    slugs = {facts.text_numbers.get(name, NONE - 1) for version in versions for name in version.ruleset.scope.game}
    values, rows = parse_name(stream.ladder).values, [] if person is None else _rows_of(facts, person)
    own = set(rows).intersection(stream.row)
    for row in rows:
        if facts.cell_of(row).game not in slugs or (
            ladders.as_of is not None and facts.occurred_at[row] > ladders.as_of
        ):
            continue
        mine = [p for p in range(facts.start[row], facts.start[row] + facts.count[row]) if facts.person_of(p) == person]
        if values not in partition_values(facts, row, versions[0].ruleset):
            continue
        version, _, reason = why_not_counted(facts, row, versions)
        if reason is None and version is not None:
            reason = why_left_out(facts, row, mine[0], version)
        if reason is not None or row not in own:
            position, played = facts.live_position[row], facts.occurred_at[row]
            yield {"position": position, "occurred_at": played, "change": None, "why_not": reason}


def _rows_of(facts: Facts, person: int) -> list[int]:
    """The games that somebody is in, in the order of the log."""
    if not compiling.pays(len(facts.cell)):
        games = zip(facts.start, facts.count, strict=True)
        return [
            row for row, (start, count) in enumerate(games)
            if any(facts.person_of(p) == person for p in range(start, start + count))
        ]  # fmt: skip
    import numpy as np

    start, count, player, persons = map(compiling.as_numpy, (facts.start, facts.count, facts.player, facts.person))
    before = np.zeros(len(player) + 1, dtype=np.int32)  # how many of the participants before each are he
    np.cumsum(persons[player] == person, out=before[1:])
    found: list[int] = np.flatnonzero(before[start + count] > before[start]).tolist()
    return found


def _told(event: dict[str, Any], data: dict[str, Any], zone: str) -> dict[str, Any]:
    """A game or an adjustment as the explanation tells it."""
    found = {
        "game_id": data.get("game_id"),
        "occurred_at": format_instant(event["occurred_at"]),
        "local": local_time(event["occurred_at"], zone).isoformat(),
        "change": event["change"],
        "why_not": event["why_not"],
    }
    return found if data.get("game_id") else {**found, "reason": data["reason"]}
