"""Explain how a player's rank on a ladder is determined: the starting points, the games, and the list's computation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import INSTANT_MAX
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.game_explanations import ExplainedTerm
from ratings_ledger.projections.queries.history import CAUSES
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.live_games import LiveGames, load_games
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, Absent, Answer, Result
from ratings_ledger.projections.queries.standings import PeriodState, build_period_state, find_rows_of_players
from ratings_ledger.projections.queries.uncounted_games import list_uncounted
from ratings_ledger.projections.replay.trace import Step, Trace
from ratings_ledger.projections.rulesets.versions import assumptions_among, newest


@dataclass(frozen=True, slots=True)
class PlayedGame(Result):
    """A game of a player on a ladder, or an adjustment with its `reason`; `change` is None if the game does not count.

    `why_not` is the reason if the game does not count, or if the list does not sum its `change`; it is None for a game
    in an open rating period. `local` is the time in the zone of the explanation. `game` and `cause` are the same as in
    `Change`.
    """

    game_id: str | None
    occurred_at: datetime
    local: str
    change: Fraction | None
    why_not: str | None
    reason: str | Absent
    cause: str | Absent = ABSENT
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class PlayerExplanation(Answer):
    """The explanation of a player's rank on a ladder: the starting points, the games, and the list's computation.

    `assumed` is the same as in `GameExplanation`; `period` describes the ladder's rating periods.
    """

    player: str
    ladder: str
    ruleset: str
    rank: int | None
    points: Fraction | None
    gold: int | Absent
    start: Fraction | None
    time_zone: str
    games: tuple[PlayedGame, ...]
    terms: tuple[ExplainedTerm, ...]
    at: Coordinates
    assumed: dict[str, str] | Absent = ABSENT
    period: PeriodState | Absent = ABSENT


class PlayerEntry(NamedTuple):
    """A game or an adjustment of a player: its time, the position of its event, and its change in points.

    `why_not` is the reason if a game does not count, or if the list does not sum its change. Another change of points
    has a `cause`, a key of `CAUSES`.
    """

    occurred_at: int
    position: int
    change: Fraction | None
    why_not: str | None
    cause: str = ""


def explain_player(
    connection: Connection, ladders: Ladders, ladder: str, player: str, times: TimeFormat = UTC_TIMES
) -> PlayerExplanation:
    """Explain a player's rank: the starting points, all games and adjustments in order, and the list's computation.

    The games include those that belong to the ladder but do not count for the player, with the reason. Raises the
    errors of `Ladders.trace`.
    """
    facts, trace = ladders.facts, ladders.trace(ladder)
    stream, player = trace.stream, facts.current(player)
    number = stream.names.index(player) if player in stream.names else None
    steps = [] if number is None else trace.steps(number)
    standings, ranking_input = ladders.rank(trace)
    row = find_rows_of_players(standings.rows, {player}).get(player)
    ranking = stream.ranking
    entries: list[PlayerEntry] = []
    if not ranking.sums_lists:
        left_out = set() if number is None else ranking.find_left_out(ranking_input, number)
        uncounted = (
            PlayerEntry(facts.occurred_at[game], facts.live_position[game], None, why_not)
            for game, why_not in list_uncounted(ladders, stream, player, steps)
        )
        counted = _list_counted(facts, trace, steps, left_out)
        entries = sorted([*counted, *uncounted], key=lambda entry: entry[:2])
    # the zone of a monthly or annual list decides which games belong to it
    ruleset = stream.versions[0].ruleset
    zone = ruleset.time_zone if ruleset.partition.is_by_time else times.zone
    records = read_records_at(connection, sorted({entry.position for entry in entries}))
    games = LiveGames(connection, facts, records)
    lines = ranking.explain(ranking_input, player) if row or number is not None else []
    keys = [key for line in lines for key in line.assumes]
    if row and row.gold:
        is_tied = sum(tied_row.rank == row.rank for tied_row in standings.rows) > 1
        keys += ["gold", "gold_ties"] if is_tied else ["gold"]
    if steps and ranking.running:
        keys = [*newest(stream.versions).start_keys, *keys]
    newest_ruleset, until = newest(stream.versions).ruleset, INSTANT_MAX if ladders.as_of is None else ladders.as_of
    if row and row.rank:
        account = facts.account(facts.player_numbers[player], until)
        keys += ["account"] if account in newest_ruleset.scope.exclude_accounts else []
    assumed = assumptions_among(newest_ruleset, keys)
    return PlayerExplanation(
        player=player,
        ladder=ladder,
        ruleset=standings.ruleset,
        rank=None if row is None else row.rank,
        points=None if row is None else row.exact_points(standings.scale),
        gold=ABSENT if row is None or row.gold is None else row.gold,
        start=ExactNumber(steps[0].points_before, standings.scale) if steps else None,
        time_zone=zone,
        games=tuple(_build_played_game(entry, json.loads(records[entry.position]), zone, games) for entry in entries),
        terms=tuple(ExplainedTerm(line.term, line.amount, line.detail) for line in lines),
        at=ladders.coordinates,
        assumed=assumed or ABSENT,
        period=build_period_state(standings.period_progress),
        times=TimeFormat(zone, times.noon_zones or (times.zone,)),
    )


def _list_counted(facts: Facts, trace: Trace, steps: list[Step], left_out: set[int]) -> Iterator[PlayerEntry]:
    """Yield the counted games and adjustments of a player. The list does not sum the games numbered in `left_out`."""
    for step, game in zip(steps, load_games(facts, steps), strict=True):
        why_not = "not among the best" if step.game in left_out else None
        change = ExactNumber(step.change, trace.stream.rule.scale)
        yield PlayerEntry(game.occurred_at, game.live_position, change, why_not, step.cause)


def _build_played_game(entry: PlayerEntry, event: dict[str, Any], zone: str, games: LiveGames) -> PlayedGame:
    """Build the explanation's row for a game or an adjustment, given its event."""
    game_id = None if entry.cause else event["data"].get("game_id")
    return PlayedGame(
        game_id=game_id,
        occurred_at=to_datetime(entry.occurred_at),
        local=local_time(entry.occurred_at, zone).isoformat(),
        change=entry.change,
        why_not=entry.why_not,
        reason=ABSENT if game_id else CAUSES.get(entry.cause) or event["data"]["reason"],
        cause=entry.cause or ABSENT,
        game=None if entry.cause else games.find_game(event),
    )
