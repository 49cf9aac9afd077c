"""Explain the changes in points that a game made, or why it does not count, and how a player's rank is determined."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.canonical import INSTANT_MAX
from ratings_ledger.ledger.events.revisions import live_game
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.intake.forfeits import FORFEIT
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import Log, find_first_positions, read_matching_records, read_records_at
from ratings_ledger.ledger.validation.repeated_games import describe_sets
from ratings_ledger.projections.contract import Term
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import LABELS, NONE, ClubGames, Facts
from ratings_ledger.projections.facts.players import list_rows_of
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.explain_period import ExplainedPeriod, PlayerEffect, explain_period_of_game
from ratings_ledger.projections.queries.history import (
    CAUSES,
    LiveGames,
    load_games,
)
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import (
    ABSENT,
    HIDDEN,
    NAMED_FROM,
    Absent,
    Answer,
    Result,
)
from ratings_ledger.projections.queries.standings import Account, PeriodState, build_period_state, find_rows_of_players
from ratings_ledger.projections.queries.visible_states import build_state_after, build_visible_state
from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.arrivals import read_game_day, score_arrivals
from ratings_ledger.projections.replay.clubs import explain_members
from ratings_ledger.projections.replay.eligibility import NOT_RATED, decide_eligibility, explain_left_out
from ratings_ledger.projections.replay.gaps import State
from ratings_ledger.projections.replay.replay import find_starting_state
from ratings_ledger.projections.replay.streams import Stream, find_open_period, name_ladders_of_game
from ratings_ledger.projections.replay.trace import Step, Trace, TracePosition
from ratings_ledger.projections.rulesets.assumptions import assumptions_among
from ratings_ledger.projections.rulesets.columns import find_reading
from ratings_ledger.projections.rulesets.versions import Version, find_months_problem, newest


@dataclass(frozen=True, slots=True)
class ExplainedTerm(Result):
    """One term of a change or of a list's computation; `amount` is None for a term without a number.

    `values` has the numbers of the computation by name, for sentences; `detail` is a text with the same numbers.
    """

    term: str
    amount: Fraction | None
    detail: str
    note: str | Absent = ABSENT
    game_id: str | Absent = ABSENT
    values: dict[str, Fraction] = field(default_factory=dict, metadata=HIDDEN, compare=False)


@dataclass(frozen=True, slots=True)
class StateChange(Result):
    """A player's state before and after a game: the rule's numbers by name, as decimals and exactly."""

    before: dict[str, str]
    after: dict[str, str]
    before_exact: dict[str, str]
    after_exact: dict[str, str]


@dataclass(frozen=True, slots=True)
class ExplainedParticipant(Result):
    """The effect of a game on a player, term by term. `why_not` is the reason if it does not count for the player.

    If the rule keeps several numbers about a player, `state` has the visible ones, and `provisional` says whether the
    rule considers them unreliable after the game.
    """

    player: str
    before: Fraction
    change: Fraction
    after: Fraction
    terms: tuple[ExplainedTerm, ...]
    why_not: str | Absent
    place: int | None
    state: StateChange | Absent = ABSENT
    provisional: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RatingPeriod(Result):
    """The rating period in which a game is scored, from its first to its last instant.

    `closed_now` is True if the period is open, but is scored as if it closed now.
    """

    since: datetime = field(metadata=NAMED_FROM)
    to: datetime
    closed: bool
    closed_now: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class GameExplanation(Answer):
    """The explanation of a game's effect on a ladder; `why_not` is the reason if the game does not count there.

    On a ladder with rating periods, the explanation covers the game's whole `period`: a player's points before and
    after, and their change, are for all games of the period. A term that belongs to a game names it; the terms of this
    game come first. `assumed` has, by key, the assumptions that determined a number: values for which the ruleset's
    source is silent. `sets` has the recorded sets of the game, with the better side first.
    """

    game_id: str
    ladder: str
    ruleset: str | None
    counted: bool
    why_not: str | None
    remark: str | Absent
    occurred_at: datetime
    players: tuple[ExplainedParticipant, ...]
    accounts: tuple[Account, ...]
    at: Coordinates
    assumed: dict[str, str] | Absent = ABSENT
    period: RatingPeriod | Absent = ABSENT
    sets: str | Absent = ABSENT
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PlayedGame(Result):
    """A game of a player on a ladder, or an adjustment with its `reason`; `change` is None if the game does not count.

    `local` is the time in the zone of the explanation. `game` and `cause` are the same as in `Change`.
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


class GameEffect(NamedTuple):
    """The effect of a game or its rating period.

    by_participant: the effect on each counted participant, by slot (the participant's index in the facts)
    minted, burned: the points that the rule created and removed, in units
    remark:         the rule's remark on the game
    assumed:        the ruleset's assumptions that determined a number, by key
    """

    by_participant: Mapping[int, PlayerEffect]
    minted: int
    burned: int
    remark: str | None = None
    assumed: dict[str, str] = {}


def find_game_row(connection: Connection, facts: Facts, game_id: str) -> int:
    """Return the row of a game in the facts.

    Raises `Unknown` (game-unknown), also for a game whose record is invalid.
    """
    recorded = read_matching_records(
        connection, until=facts.position, subject=f"game:{game_id}", type_name="game.recorded"
    )
    row = facts.row_of(recorded[0][0]) if recorded else NONE
    if row != NONE:
        return row
    if recorded:
        message = f"the record of {quote(game_id)} at position {recorded[0][0]} is invalid, so it does not count"
        raise Unknown("game-unknown", f"{message}; run: ratings verify")
    later = find_first_positions(connection, [game_id])
    hint = "".join(f" up to position {facts.position}; it was recorded at position {first}" for first in later.values())
    raise Unknown("game-unknown", f"no game {quote(game_id)} is recorded{hint}")


def explain_game(
    ladders: Ladders,
    ladder: str,
    game_id: str,
    row: int,
    times: TimeFormat = UTC_TIMES,
    *,
    before: TracePosition | None = None,
    connection: Connection | None = None,
) -> GameExplanation:
    """Explain the changes in points that a game made on a ladder, or why the game does not count there.

    Args:
        row: the game's row in the facts.
        before: the players' states before the game; by default, they are replayed.
        connection: without it, the other games of the rating period get no ids, and sets and forfeits are left out.

    Raises the errors of `Ladders.trace`.
    """
    ladders = ladders.for_ladder(ladder)
    facts = ladders.facts
    versions = ladders.versions(ladder)
    version, participants, reason = decide_eligibility(facts, row, versions)
    reason = reason or _explain_not_on_ladder(ladders, ladder, row, versions)
    # even for a game that does not count, the points before it must not include later games
    states = before or ladders.state_before(ladder, (facts.occurred_at[row], facts.first_position[row]))
    period, open_period = None, None
    if reason is None and version is not None and versions[0].ruleset.period != "game":
        period, open_period = _find_periods(ladders, ladder, row)
        reason = None if period else "its rating period is not closed yet"
    game_ids: dict[int, str] = {}
    if period is not None:
        by_participant = {slot: period.players[facts.name_of(slot)] for slot in participants}
        effect = GameEffect(by_participant, period.minted, period.burned)
        rows = {game for player in by_participant.values() for game, _ in player.terms if game is not None}
        game_ids = _load_game_ids(connection, facts, rows)
    elif reason is None and version is not None:
        effect = _explain_single_game(facts, states, row, version, participants)
    else:
        effect = GameEffect({}, minted=0, burned=0)
    game = {} if connection is None else _read_game(connection, facts, game_id)
    return GameExplanation(
        game_id,
        ladder,
        ruleset=version.ruleset.name if version else None,
        counted=reason is None,
        why_not=_add_forfeit(reason, game),
        remark=effect.remark or ABSENT,
        occurred_at=to_datetime(facts.occurred_at[row]),
        players=_explain_participants(facts, states, row, version, effects=effect.by_participant, game_ids=game_ids),
        accounts=_list_accounts(effect, states.trace.stream.rule.scale),
        at=ladders.coordinates,
        assumed=effect.assumed or ABSENT,
        period=_describe_period(period, open_period),
        sets=(describe_sets(game) if game else "") or ABSENT,
        running=versions[0].ranking.running,
        times=times,
    )


def _find_periods(ladders: Ladders, ladder: str, row: int) -> tuple[ExplainedPeriod | None, tuple[int, int] | None]:
    """Return the explanation of a game's closed rating period and the open period of the game; None for either missing.

    There are both if the open period is scored as if it closed now.
    """
    trace = ladders.trace(ladder)
    closed = None if trace.stream.periods is None else explain_period_of_game(trace, trace.stream.periods, row)
    return closed, find_open_period(ladders.facts, trace.stream, row)


def _list_accounts(effect: GameEffect, scale: int) -> tuple[Account, Account]:
    """Return the accounts of a game: the points minted and burned."""
    return (
        Account("minted", ExactNumber(-effect.minted, scale)),
        Account("burned", ExactNumber(effect.burned, scale)),
    )


def _add_forfeit(reason: str | None, game: Mapping[str, Any]) -> str | None:
    """Return the reason why a game does not count; if it is not rated because it was a forfeit, say so."""
    forfeit = (game.get("extra") or {}).get(FORFEIT)
    return f"{reason}, because it was a forfeit ({forfeit})" if reason == NOT_RATED and forfeit else reason


def _read_game(connection: Connection, facts: Facts, game_id: str) -> dict[str, Any]:
    """Return the data of a game as recorded or last corrected; empty for an unknown game."""
    game = live_game(Log(connection, facts.position).about(f"game:{game_id}"))
    return {} if game is None else game.data


def _describe_period(
    closed_period: ExplainedPeriod | None, open_period: tuple[int, int] | None
) -> RatingPeriod | Absent:
    """Return the rating period of a game: the open period that contains the game or, without one, the closed period."""
    if open_period is not None:
        begin, last = map(to_datetime, open_period)
        return RatingPeriod(begin, last, closed=False, closed_now=ABSENT if closed_period is None else True)
    if closed_period is None:
        return ABSENT
    return RatingPeriod(to_datetime(closed_period.begin), to_datetime(closed_period.last), closed=True)


def _explain_single_game(
    facts: Facts, before: TracePosition, row: int, version: Version, participants: Sequence[int]
) -> GameEffect:
    """Explain a game that is scored on its own, not together with a rating period. Raises `RuleFailure`."""
    if facts.club_games is not None:
        return _explain_clubs(facts, facts.club_games, before, row, version, participants)
    ladder = before.trace.stream.ladder
    people = [(facts.person_of(slot), facts.name_of(slot)) for slot in participants]
    reading = find_reading(version.rule.columns, version.ruleset)
    columns = [facts.column(name, row, participants, reading) for name in version.rule.columns]
    scored = score_arrivals(facts, before, version, (row, read_game_day(facts, row, version)), columns, people)
    names = [name for _, name in people]
    terms = rule_calls.explain_states(version, ladder, row, names, scored.before, scored.columns, scored.after)
    terms_without_game: list[list[tuple[int | None, Term]]] = [
        [(None, term) for term in player_terms] for player_terms in terms
    ]
    effects = map(PlayerEffect, zip(*scored.before, strict=True), zip(*scored.after, strict=True), terms_without_game)
    has_newcomer = any(arrival.is_new for arrival in scored.arrivals)
    keys = (key for player_terms in terms for term in player_terms for key in term.assumes)
    start_keys = _list_start_keys(version) if has_newcomer and before.trace.stream.ranking.running else ()
    return GameEffect(
        by_participant=dict(zip(participants, effects, strict=True)),
        minted=scored.minted,
        burned=scored.minted - sum(rule_calls.subtract(scored.after[0], scored.before[0])),
        remark=rule_calls.remark_on_game(version, ladder, row, names, scored.columns),
        assumed=assumptions_among(version.ruleset, [*start_keys, *keys, *_find_deciding_keys(facts, row, version)]),
    )


def _explain_clubs(
    facts: Facts, games: ClubGames, before: TracePosition, row: int, version: Version, clubs: Sequence[int]
) -> GameEffect:
    """Explain a game between clubs, with the terms of their players. Raises `RuleFailure`."""
    player_version = next(candidate for candidate in games.versions if candidate.position == version.position)
    member_terms = explain_members(games, row, player_version, before.trace.stream.ladder)
    effects: dict[int, PlayerEffect] = {}
    has_newcomer = False
    for club in clubs:
        state, terms = _find_state(facts, before, club, version), member_terms.terms_of(games.members_of(club))
        has_newcomer |= before.state_of(facts.person_of(club)) is None
        new_state = (state[0] + sum(term.amount for term in terms), *state[1:])
        effects[club] = PlayerEffect(state, new_state, [(None, term) for term in terms])
    changes = [effect.after[0] - effect.before[0] for effect in effects.values()]
    keys = (key for effect in effects.values() for _, term in effect.terms for key in term.assumes)
    start_keys = _list_start_keys(version) if has_newcomer and before.trace.stream.ranking.running else ()
    deciding_keys = _find_deciding_keys(games.people, row, player_version)
    assumed = assumptions_among(player_version.ruleset, [*start_keys, *keys, *deciding_keys])
    minted = sum(change for change in changes if change > 0)
    return GameEffect(
        by_participant=effects, minted=minted, burned=minted - sum(changes), remark=member_terms.remark, assumed=assumed
    )


def _load_game_ids(connection: Connection | None, facts: Facts, rows: set[int]) -> dict[int, str]:
    """Return the ids of games by their rows in the facts; empty without a connection."""
    if connection is None:
        return {}
    positions = {row: facts.live_position[row] for row in rows}
    records = read_records_at(connection, sorted({*positions.values()}))
    return {row: json.loads(records[position])["data"]["game_id"] for row, position in positions.items()}


def _find_deciding_keys(facts: Facts, row: int, version: Version) -> Iterator[str]:
    """Yield the keys of the parameters that determined a game's effect, besides those that its terms state."""
    participants = range(facts.start[row], facts.start[row] + facts.count[row])
    if any(facts.replaced[slot] for slot in participants):
        yield "substitution"
    if "vp" in version.rule.columns:
        vp_sum, victory_count = (sum(facts.column(name, row, participants)) for name in ("vp", "victory"))
        # without a victory, a surplus victory point can only be that for a win within time
        if not victory_count and vp_sum > facts.cell_of(row).seats - 2:
            yield "within_time"


def _explain_not_on_ladder(ladders: Ladders, ladder: str, row: int, versions: Sequence[Version]) -> str | None:
    """Return the reason why a game that the ruleset counts does not count on this ladder, or None if it counts."""
    facts, ruleset = ladders.facts, versions[0].ruleset
    ladder_names = name_ladders_of_game(facts, row, ruleset)
    if ladder not in ladder_names:
        missing_labels = [part for part in ruleset.partition.by if part in LABELS and facts.label(part, row) is None]
        if not ladder_names:
            return (
                f"it has no {' and no '.join(missing_labels)}"
                if missing_labels
                else "it belongs to no ladder of this ruleset"
            )
        local = local_time(facts.occurred_at[row], ruleset.time_zone)
        time_parts = {"month", "year"} & {*ruleset.partition.by}
        end = f"it ended on {local:%Y-%m-%d at %H:%M} ({ruleset.time_zone}), so " if time_parts else ""
        return f"{end}it belongs to {' and '.join(ladder_names)}"
    if ladders.as_of is not None and facts.occurred_at[row] > ladders.as_of:
        return "it was played after --as-of"
    if not versions[0].ranking.sums_lists:
        return None
    params: Any = newest(versions).params
    monthly = facts.rulesets.get(params.of, [])
    if find_months_problem(newest(versions), monthly):
        return f"the ladder sums the places of the lists of {params.of}, which are not available"
    reason = decide_eligibility(facts, row, monthly).reason
    if reason:
        return f"the ladder sums the places of months, and no month counts the game: {reason}"
    return f"the ladder sums the places of months; see {name_ladders_of_game(facts, row, monthly[0].ruleset)[0]}"


def _list_start_keys(version: Version) -> tuple[str, ...]:
    """Return the keys of the parameters that determine a player's starting points on a ladder."""
    return ("start", "carry_over", "season_months") if "season" in version.ruleset.partition.by else ("start",)


def _build_term(term: Term, scale: int, game_id: str | None) -> ExplainedTerm:
    """Return a rule's term in points instead of units, with the id of the game that it comes from."""
    return ExplainedTerm(
        term=term.term,
        amount=ExactNumber(term.amount, scale),
        detail=term.detail,
        note=term.note or ABSENT,
        game_id=game_id or ABSENT,
        values={name: Fraction(value) for name, value in term.values},
    )


def _find_state(facts: Facts, before: TracePosition, participant: int, version: Version) -> State:
    """Return the state of a participant before the game, or the starting state of a newcomer."""
    state, trace = before.state_of(facts.person_of(participant)), before.trace
    if state is not None:
        return state[: version.rule.width]
    return find_starting_state(trace.stream, facts.name_of(participant), version, trace.entry_states)


def _explain_participants(
    facts: Facts,
    before: TracePosition,
    row: int,
    version: Version | None,
    *,
    effects: Mapping[int, PlayerEffect],
    game_ids: Mapping[int, str],
) -> tuple[ExplainedParticipant, ...]:
    """Return the explanations of all participants, sorted by place or, without places, by their gain, greatest first.

    A participant for whom the game does not count has a change of 0, and a reason unless it applies to all.
    """
    stream, explanations = before.trace.stream, []
    scale, first = stream.rule.scale, facts.start[row]

    def compute_gain(slot: int) -> int:
        return effects[slot].after[0] - effects[slot].before[0] if slot in effects else 0

    def build_sort_key(slot: int) -> tuple[int, int, str]:
        return facts.place[slot], 0 if facts.place[slot] else -compute_gain(slot), facts.name_of(slot)

    for slot in sorted(range(first, first + facts.count[row]), key=build_sort_key):
        if slot in effects:
            effect = effects[slot]
        else:
            state = _find_state(facts, before, slot, version or newest(stream.versions))
            effect = PlayerEffect(before=state, after=state, terms=[])
        reason = None if slot in effects or version is None else explain_left_out(facts, row, slot, version)
        explanations.append(
            ExplainedParticipant(
                facts.name_of(slot),
                ExactNumber(effect.before[0], scale),
                ExactNumber(compute_gain(slot), scale),
                ExactNumber(effect.after[0], scale),
                tuple(
                    _build_term(term, scale, None if game is None else game_ids.get(game))
                    for game, term in effect.terms
                ),
                reason or ABSENT,
                facts.place[slot] or None,
                *_describe_state_change(
                    facts, before, version or newest(stream.versions), slot, effect=effect, is_counted=slot in effects
                ),
            )
        )
    return tuple(explanations)


def _describe_state_change(
    facts: Facts, before: TracePosition, version: Version, participant: int, *, effect: PlayerEffect, is_counted: bool
) -> tuple[StateChange | Absent, bool | Absent]:
    """Return the change of a player's state, if the rule keeps one, and whether the result is provisional.

    Raises `RuleFailure`.
    """
    if not version.rule.state:
        return ABSENT, ABSENT
    entry = before.trace.entry_states.get(facts.name_of(participant))
    games, _ = before.game_count_and_last_row(facts.person_of(participant))
    games += 0 if entry is None else entry.games
    # the terms of a period name all games of the player in it; other terms name no game
    games += len({game for game, _ in effect.terms} - {None}) or 1 if is_counted else 0
    state_before = build_visible_state(version, effect.before)
    state_after = build_state_after(version, before.trace.stream.ladder, effect.after, games)
    change = StateChange(state_before.decimals, state_after.decimals, state_before.exact, state_after.exact)
    return change, state_after.provisional


class PlayerEntry(NamedTuple):
    """A game or an adjustment of a player: its time, the position of its event, and its change in points.

    `why_not` is the reason if a game does not count. Another change of points has a `cause`, a key of `CAUSES`.
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
    standings, results = ladders.rank(trace)
    row = find_rows_of_players(standings.rows, {player}).get(player)
    ranking = stream.ranking
    entries: list[PlayerEntry] = []
    if not ranking.sums_lists:
        left_out = set() if number is None else ranking.find_left_out(results, number)
        entries = sorted(
            [*_list_counted(facts, trace, steps, left_out), *_list_uncounted(ladders, stream, player, steps)],
            key=lambda entry: entry[:2],
        )
    # the zone of a monthly or annual list decides which games belong to it
    ruleset = stream.versions[0].ruleset
    zone = ruleset.time_zone if ruleset.partition.is_by_time else times.zone
    records = read_records_at(connection, sorted({entry.position for entry in entries}))
    games = LiveGames(connection, facts, records)
    lines = ranking.explain(results, player) if row or number is not None else []
    keys = [key for line in lines for key in line.assumes]
    if row and row.gold:
        is_tied = sum(tied_row.rank == row.rank for tied_row in standings.rows) > 1
        keys += ["gold", "gold_ties"] if is_tied else ["gold"]
    if steps and ranking.running:
        keys = [*_list_start_keys(newest(stream.versions)), *keys]
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
        period=build_period_state(standings.closed),
        times=TimeFormat(zone, times.noon_zones or (times.zone,)),
    )


def _list_counted(facts: Facts, trace: Trace, steps: list[Step], left_out: set[int]) -> Iterator[PlayerEntry]:
    """Yield the counted games and adjustments of a player. The list does not sum the games numbered in `left_out`."""
    for step, game in zip(steps, load_games(facts, steps), strict=True):
        why_not = "not among the best" if step.game in left_out else None
        change = ExactNumber(step.change, trace.stream.rule.scale)
        yield PlayerEntry(game.occurred_at, game.live_position, change, why_not, step.cause)


def _list_uncounted(ladders: Ladders, stream: Stream, player: str, steps: list[Step]) -> Iterator[PlayerEntry]:
    """Yield the games of a player that belong to this ladder by their labels but do not count for the player."""
    facts, versions = ladders.facts, stream.versions
    person = facts.person[facts.player_numbers[player]] if player in facts.player_numbers else None
    scored_games = {facts.text_numbers.get(name) for version in versions for name in version.ruleset.scope.game}
    player_numbers = [] if person is None else [number for number, owner in enumerate(facts.person) if owner == person]
    counted_rows = {step.row for step in steps}
    for row in list_rows_of(facts, player_numbers):
        if facts.cell_of(row).game not in scored_games or (
            ladders.as_of is not None and facts.occurred_at[row] > ladders.as_of
        ):
            continue
        if stream.ladder not in name_ladders_of_game(facts, row, versions[0].ruleset):
            continue
        version, _, reason = decide_eligibility(facts, row, versions)
        if reason is None and version is not None:
            participants = range(facts.start[row], facts.start[row] + facts.count[row])
            own_slot = next(slot for slot in participants if facts.person_of(slot) == person)
            reason = explain_left_out(facts, row, own_slot, version)
        if reason is not None or row not in counted_rows:
            yield PlayerEntry(facts.occurred_at[row], facts.live_position[row], None, reason)


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
