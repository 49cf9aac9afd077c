"""Explanations: histories, why a game gave what it gave, and how somebody's standing on a ladder came about.

All as plain data, in the shapes the command line promises.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from ledger.events.canonical import format_instant, record_instant
from ledger.events.zones import local_time
from ledger.rejections import shown
from ledger.store.log import read_records_at, read_where
from projections import compiling
from projections.contract import Term, exact
from projections.facts.columns import LABELS, NONE, Facts
from projections.lists import LISTS
from projections.queries.publication import Point, contradicted
from projections.queries.standings import Ladders, date_zone
from projections.replay import containment
from projections.replay.eligibility import why_left_out, why_not_counted
from projections.replay.ladders import (
    Stream,
    games_before,
    parse_name,
    partition_values,
)
from projections.replay.partition import by_time
from projections.replay.replay import Outcome, Step, needs_changes, replay, starting_points, steps_of_all
from projections.rulesets.versions import Version, newest, refuse_months

# the number of changes whose events are read at once
CHUNK_STEPS = 10_000


class UnknownGame(ValueError):
    """No such game is recorded."""


def history(connection: Connection, ladders: Ladders, ladder: str, player: str) -> list[dict[str, Any]]:
    """What every game and adjustment did to a player, in replay order; empty for somebody not on the ladder.

    A row whose points a published list showed differently has `published`: what it showed, and where it was recorded.
    An annual list has no games of its own.

    `player` is a current id. Raises `UnknownLadder`, `RuleFailure`.
    """
    facts, stream = ladders.facts, ladders.stream(ladder)
    if player not in stream.names or stream.rule.ranking == "annual":
        return []
    watched = stream.names.index(player)
    _, steps = replay(stream, watch=watched, changes=False)
    positions = [_position(facts, stream, step) for step in steps]
    events = {position: json.loads(text) for position, text in read_records_at(connection, positions).items()}
    rows = [
        _history_row(facts, stream, watched, step, events[position])
        for step, position in zip(steps, positions, strict=True)
    ]
    firsts = [facts.first_position[stream.row[step.game]] if step.game is not None else step.position for step in steps]
    course = [
        Point(record_instant(row["occurred_at"]), first or 0, Fraction(row["after"]))
        for row, first in zip(rows, firsts, strict=True)
    ]
    for index, lists in contradicted(connection, ladders, ladder, player, course).items():
        rows[index]["published"] = lists
    return rows


def changes(connection: Connection, ladders: Ladders, ladder: str) -> Iterator[dict[str, Any]]:
    """What every game and adjustment of a ladder did to everybody, in replay order: `player`, and a row of `history`.

    Raises `UnknownLadder`, `RuleFailure` before the first row.
    """
    facts, stream = ladders.facts, ladders.stream(ladder)
    if stream.rule.ranking == "annual":
        return
    outcome, _ = replay(stream)
    steps = steps_of_all(stream, outcome)
    while chunk := list(islice(steps, CHUNK_STEPS)):
        positions = {_position(facts, stream, step) for _, step in chunk}
        events = {at: json.loads(text) for at, text in read_records_at(connection, sorted(positions)).items()}
        for player, step in chunk:
            event = events[_position(facts, stream, step)]
            yield {"player": stream.names[player], **_history_row(facts, stream, player, step, event)}


def _position(facts: Facts, stream: Stream, step: Step) -> int:
    """The position of the event that made a step."""
    return facts.live_position[stream.row[step.game]] if step.game is not None else step.position or 0


def _history_row(facts: Facts, stream: Stream, watched: int, step: Step, event: dict[str, Any]) -> dict[str, Any]:
    place = game_id = version = None
    occurred_at = event["occurred_at"]
    if step.game is not None:
        row = stream.row[step.game]
        number = facts.player_numbers[stream.names[watched]]
        first = facts.start[row]
        place = next(facts.place[p] for p in range(first, first + facts.count[row]) if facts.person_of(p) == number)
        place = place or None  # some game types have none
        game_id = event["data"]["game_id"]
        version = stream.versions[stream.version[step.game]].ruleset.name
        occurred_at = format_instant(facts.occurred_at[row])
    found = {
        "position": event["position"],
        "event_id": event["id"],
        "game_id": game_id,
        "occurred_at": occurred_at,
        "place": place,
        "before": exact(step.before, stream.rule.scale),
        "change": exact(step.change, stream.rule.scale),
        "after": exact(step.before + step.change, stream.rule.scale),
        "ruleset": version,
    }
    return found if step.game is not None else {**found, "reason": event["data"]["reason"]}


def row_of_game(connection: Connection, facts: Facts, game_id: str) -> int:
    """The row of a game in the facts. Raises `UnknownGame`."""
    recorded = read_where(connection, until=facts.position, subject=f"game:{game_id}", type_name="game.recorded")
    row = facts.row_of(recorded[0][0]) if recorded else NONE
    if row == NONE:
        raise UnknownGame(f"no game {shown(game_id)} is recorded")
    return row


def explain_game(ladders: Ladders, ladder: str, game_id: str, row: int) -> dict[str, Any]:
    """Why a game changed the points of a ladder as it did, or why it did not.

    Raises `UnknownLadder`, `RuleFailure`.
    """
    facts = ladders.facts
    versions = ladders.versions(ladder)
    version, participants, reason = why_not_counted(facts, row, versions)
    reason = reason or _why_not_here(ladders, ladder, row, versions)
    stream = ladders.stream(ladder)
    # what comes after the game is not part of the points before it, even if the game itself does not count
    moment = (facts.occurred_at[row], facts.first_position[row])
    stream = replace(stream, adjustments=[a for a in stream.adjustments if (a.occurred_at, a.position) < moment])
    game = games_before(stream, facts, moment)
    outcome, _ = replay(stream, stop=game, changes=False)
    scale = stream.rule.scale
    counted_players: dict[str, dict[str, Any]] = {}
    minted = burned = 0
    remark = None
    if reason is None and version is not None:
        before = [_points(facts, stream, outcome, p, version) for p in participants]
        columns = [column[stream.offsets[game] : stream.offsets[game + 1]].tolist() for column in stream.columns]
        minted, change = containment.score(version, ladder, row, before, columns)
        burned = minted - sum(change)
        names = [facts.name_of(p) for p in participants]
        terms = containment.explain(version, ladder, row, names, before, columns, change)
        remark = containment.remark(version, ladder, row, names, columns)
        for player, had, moved, reasons in zip(names, before, change, terms, strict=True):
            counted_players[player] = _explained(
                player, had, moved, scale, [_term(reason, scale) for reason in reasons]
            )
    return {
        "game_id": game_id,
        "ladder": ladder,
        "ruleset": version.ruleset.name if version else None,
        "counted": reason is None,
        "why_not": reason,
        **({"remark": remark} if remark else {}),
        "occurred_at": format_instant(facts.occurred_at[row]),
        "players": _everybody(facts, stream, outcome, row, version, counted_players),
        "accounts": [
            {"account": "minted", "amount": exact(-minted, scale)},
            {"account": "burned", "amount": exact(burned, scale)},
        ],
    }


def _why_not_here(ladders: Ladders, ladder: str, row: int, versions: Sequence[Version]) -> str | None:
    """Why a game that the ruleset counts does not count on this particular ladder, or None."""
    facts, ruleset = ladders.facts, versions[0].ruleset
    its_own = partition_values(facts, row, ruleset)
    if parse_name(ladder).values not in its_own:
        missing = [part for part in ruleset.partition.by if part in LABELS and facts.label(part, row) is None]
        belongs = " and ".join("/".join([ruleset.id, *values]) for values in its_own)
        if not belongs:
            return f"it has no {' and no '.join(missing) or 'such ladder'}"
        local = local_time(facts.occurred_at[row], ruleset.time_zone)
        by_time = {"month", "year"} & {*ruleset.partition.by}
        ended = f"it ended on {local:%Y-%m-%d at %H:%M} ({ruleset.time_zone}), so " if by_time else ""
        return f"{ended}it belongs to {belongs}"
    if ladders.as_of is not None and facts.occurred_at[row] > ladders.as_of:
        return "the game was played later than --as-of"
    if versions[0].rule.ranking != "annual":
        return None
    params: Any = newest(versions).params
    monthly = facts.rulesets.get(params.of, [])
    if refuse_months(newest(versions), monthly):
        return f"it sums the places of the lists of {params.of}, which are not there"
    _, _, reason = why_not_counted(facts, row, monthly)
    if reason:
        return f"it sums the places of months, and no month counts the game: {reason}"
    month = partition_values(facts, row, monthly[0].ruleset)[0]
    return f"it sums the places of months; see {'/'.join([params.of, *month])}"


def _term(term: Term, scale: int) -> dict[str, str]:
    found = {"term": term.term, "amount": exact(term.amount, scale), "detail": term.detail}
    return {**found, "note": term.note} if term.note else found


def _explained(player: str, before: int, change: int, scale: int, terms: Sequence[dict[str, str]]) -> dict[str, Any]:
    return {
        "player": player,
        "before": exact(before, scale),
        "change": exact(change, scale),
        "after": exact(before + change, scale),
        "terms": list(terms),
    }


def _points(facts: Facts, stream: Stream, outcome: Outcome, participant: int, version: Version) -> int:
    """The points of a participant after a replay; what they begin with if not on the ladder yet."""
    number = stream.numbers.get(facts.person_of(participant))
    if number is not None and outcome.seen[number]:
        points: int = outcome.points[number]
        return points
    return starting_points(facts.name_of(participant), version, outcome.carried)


def _everybody(
    facts: Facts,
    stream: Stream,
    outcome: Outcome,
    row: int,
    version: Version | None,
    counted_players: dict[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """All participants by place; without places by what they got, most first.

    Those who do not count have a change of 0 and, if it is about them, the reason.
    """
    found = []
    first = facts.start[row]

    def rank(p: int) -> tuple[Any, ...]:
        got = counted_players.get(facts.name_of(p))
        return facts.place[p], -Fraction(got["change"]) if got and not facts.place[p] else 0, facts.name_of(p)

    for p in sorted(range(first, first + facts.count[row]), key=rank):
        name = facts.name_of(p)
        entry = counted_players.get(name)
        if entry is None:
            points = _points(facts, stream, outcome, p, version or newest(stream.versions))
            entry = _explained(name, points, 0, stream.rule.scale, [])
            if version is not None and (reason := why_left_out(facts, row, p, version)):
                entry["why_not"] = reason
        found.append({**entry, "place": facts.place[p] or None})
    return found


def explain_player(connection: Connection, ladders: Ladders, ladder: str, player: str) -> dict[str, Any]:
    """A player's rank, what they began with, their games and adjustments in order, and what the list makes of them.

    The games of this ladder that do not count for them are included, with the reason; somebody who is not there has
    none. Raises `UnknownLadder`, `RuleFailure`.
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
    # for a monthly or annual list, its own zone decides what belongs to it
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
    """A player's counted games and adjustments."""
    adjusted = {adjustment.position: adjustment.occurred_at for adjustment in stream.adjustments}
    for step in steps:
        position = facts.live_position[stream.row[step.game]] if step.game is not None else step.position or 0
        played = facts.occurred_at[stream.row[step.game]] if step.game is not None else adjusted[position]
        why_not = "not among the best" if step.game in left_out else None
        change = exact(step.change, stream.rule.scale)
        yield {"position": position, "occurred_at": played, "change": change, "why_not": why_not}


def _uncounted(ladders: Ladders, stream: Stream, player: str) -> Iterator[dict[str, Any]]:
    """The games of a player that are on this ladder by their labels, but do not count for them."""
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
    """The games somebody is in, in log order."""
    if not compiling.pays(len(facts.cell)):
        games = zip(facts.start, facts.count, strict=True)
        return [
            row for row, (start, count) in enumerate(games)
            if any(facts.person_of(p) == person for p in range(start, start + count))
        ]  # fmt: skip
    import numpy as np

    start, count, player, persons = map(compiling.as_numpy, (facts.start, facts.count, facts.player, facts.person))
    before = np.zeros(len(player) + 1, dtype=np.int32)  # how many of the participants before each are them
    np.cumsum(persons[player] == person, out=before[1:])
    found: list[int] = np.flatnonzero(before[start + count] > before[start]).tolist()
    return found


def _told(event: dict[str, Any], data: dict[str, Any], zone: str) -> dict[str, Any]:
    """A game or an adjustment as the explanation shows it."""
    found = {
        "game_id": data.get("game_id"),
        "occurred_at": format_instant(event["occurred_at"]),
        "local": local_time(event["occurred_at"], zone).isoformat(),
        "change": event["change"],
        "why_not": event["why_not"],
    }
    return found if data.get("game_id") else {**found, "reason": data["reason"]}
