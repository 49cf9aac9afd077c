"""Explain the changes in points that a game made on a ladder, or why it does not count there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from sqlalchemy import Connection

from ratings_ledger.ledger.validation.repeated_games import describe_sets
from ratings_ledger.projections.contract import Term
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.game_effects import (
    ExplainedPeriod,
    GameEffect,
    PlayerEffect,
    count_games_before,
    explain_single_game,
    find_periods_of_game,
    find_state_before,
)
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.live_games import load_game_ids, read_live_game
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, NAMED_FROM, Absent, Answer, Result
from ratings_ledger.projections.queries.standings import Account
from ratings_ledger.projections.queries.uncounted_games import add_forfeit_to_reason, decide_on_ladder
from ratings_ledger.projections.queries.visible_states import build_visible_state, build_visible_state_after
from ratings_ledger.projections.replay.eligibility import explain_left_out
from ratings_ledger.projections.replay.trace import TracePosition
from ratings_ledger.projections.rulesets.versions import Version, newest


@dataclass(frozen=True, slots=True)
class ExplainedTerm(Result):
    """One term of a change or of a list's computation; `amount` is None for a term without a number.

    `values` has the numbers of the computation by name; `detail` is a text with them.
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
    """The effect of a game on a player, term by term. `why_not` is the reason if the ruleset leaves the player out.

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
    source is silent. `sets` has the recorded sets of the game, with the better side first. `remark` is the rule's
    remark on the game. `running` tells whether the ladder ranks running points.
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
        before: the players' states before the game; by default, those of `Ladders.state_before`.
        connection: without it, the terms of a rating period name no games, and sets and forfeits are left out.

    Raises the errors of `Ladders.trace`.
    """
    ladders = ladders.for_ladder(ladder)
    facts = ladders.facts
    versions = ladders.versions(ladder)
    version, participants, reason = decide_on_ladder(ladders, ladder, row)
    # even for a game that does not count, the points before it must not include later games
    states = before or ladders.state_before(ladder, (facts.occurred_at[row], facts.first_position[row]))
    period, open_period = None, None
    if reason is None and version is not None and versions[0].ruleset.period != "game":
        period, open_period = find_periods_of_game(facts, ladders.trace(ladder), row)
        reason = None if period else "its rating period is not closed yet"
    game_ids: dict[int, str] = {}
    if period is not None:
        by_participant = {slot: period.players[facts.name_of(slot)] for slot in participants}
        effect = GameEffect(by_participant, period.minted, period.burned)
        rows = {game for player in by_participant.values() for game, _ in player.terms if game is not None}
        game_ids = load_game_ids(connection, facts, rows)
    elif reason is None and version is not None:
        effect = explain_single_game(facts, states, row, version, participants)
    else:
        effect = GameEffect({}, minted=0, burned=0)
    game = {} if connection is None else read_live_game(connection, facts, game_id)
    return GameExplanation(
        game_id,
        ladder,
        ruleset=version.ruleset.name if version else None,
        counted=reason is None,
        why_not=add_forfeit_to_reason(reason, game),
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


def _list_accounts(effect: GameEffect, scale: int) -> tuple[Account, Account]:
    """Return the accounts of a game: the points minted and burned."""
    return (
        Account("minted", ExactNumber(-effect.minted, scale)),
        Account("burned", ExactNumber(effect.burned, scale)),
    )


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
            state = find_state_before(facts, before, slot, version or newest(stream.versions))
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
    games = count_games_before(facts, before, participant, version)
    # the terms of a period name all of the player's games in the period; other terms name no game
    games += len({game for game, _ in effect.terms} - {None}) or 1 if is_counted else 0
    state_before = build_visible_state(version, effect.before)
    state_after = build_visible_state_after(version, before.trace.stream.ladder, effect.after, games)
    change = StateChange(state_before.decimals, state_after.decimals, state_before.exact, state_after.exact)
    return change, state_after.provisional
