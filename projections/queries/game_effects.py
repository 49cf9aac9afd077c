"""Compute the effect of a game, or of its rating period, on the players' states, term by term."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import Term
from ratings_ledger.projections.facts.columns import ClubGames, Facts
from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.clubs import explain_members
from ratings_ledger.projections.replay.period_slots import PeriodSlots
from ratings_ledger.projections.replay.replay import find_starting_state
from ratings_ledger.projections.replay.seasons import State
from ratings_ledger.projections.replay.states_before_games import find_entry, read_game_day, score_single_game
from ratings_ledger.projections.replay.streams import find_open_period
from ratings_ledger.projections.replay.trace import Trace, TracePosition
from ratings_ledger.projections.rulesets.versions import Version, assumptions_among


class PlayerEffect(NamedTuple):
    """The effect of a game or rating period on a player: the states before and after, and the terms of the change.

    Each term has the row of its game in the facts, or None if no single game caused it.
    """

    before: State
    after: State
    terms: list[tuple[int | None, Term]]


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


class ExplainedPeriod(NamedTuple):
    """A closed rating period: its first and last instants, its minted and burned units, and its effect by player."""

    begin: int
    last: int
    minted: int
    burned: int
    players: Mapping[str, PlayerEffect]


def explain_period_of_game(trace: Trace, row: int) -> ExplainedPeriod | None:
    """Explain the closed rating period of a game, given the row of the game in the facts; return None without one.

    Raises `RuleFailure`.
    """
    stream, periods = trace.stream, trace.stream.periods
    indexes = np.flatnonzero(arrays.as_numpy(stream.rows) == row)
    if periods is None or not len(indexes):
        return None
    game = int(indexes[0])
    period, version = int(periods.of_game[game]), stream.versions[stream.version_indices[game]]
    slots = PeriodSlots(stream, trace.gaps)
    persons, offsets, rows = slots.results._replace(rows=slots.select_rows(version)).select_period(period)
    first_entry = int(slots.results.people_from[period])
    entries = range(first_entry, first_entry + len(persons))
    earlier_states = [_find_state_before_period(trace, slots, entry) for entry in entries]
    gaps = slots.gaps[:, entries.start : entries.stop].T.tolist()
    states = [
        rule_calls.bring_to_game(version, stream.ladder, row, state[: version.rule.width], *gap)
        for state, gap in zip(earlier_states, gaps, strict=True)
    ]
    results = rule_calls.PeriodResults(
        [[*column] for column in zip(*states, strict=True)], offsets.tolist(), rows.tolist()
    )
    minted, after = rule_calls.score_period_states(version, stream.ladder, row, results)
    names = [stream.names[number] for number in persons.tolist()]
    first, own_index = int(periods.offsets[period]), game - int(periods.offsets[period])
    players = {}
    for index, name in enumerate(names):
        terms = rule_calls.explain_period(version, stream.ladder, row, index, names, results, after)
        state = tuple(column[index] for column in after)
        players[name] = PlayerEffect(
            states[index], state, _sort_terms(terms, results.rows[1], first, own_index, stream.rows)
        )
    change_sum = sum(after[0]) - sum(state[0] for state in states)
    return ExplainedPeriod(
        begin=int(periods.begin[period]),
        last=int(periods.end[period]) - 1,
        minted=minted,
        burned=minted - change_sum,
        players=players,
    )


def _find_state_before_period(trace: Trace, slots: PeriodSlots, entry: int) -> State:
    """Return a player's state after the player's last earlier period, given the entry of the player in this period."""
    slot = int(np.flatnonzero(slots.entry == entry)[0])
    return tuple(int(column[slot]) for column in trace.states_before)


def _sort_terms(
    terms: Sequence[tuple[int, Term]], games: Sequence[int], first: int, own_index: int, rows: Sequence[int]
) -> list[tuple[int | None, Term]]:
    """Return the terms with the rows of their games in the facts: first the terms of one game, then the other terms.

    Args:
        terms: each term with the index of its entry in `games`, below 0 for a term without a game.
        games: the numbers of games in the period.
        first: the number of the period's first game, counted on the ladder.
        own_index: the number of the game whose terms come first, counted within the period.
        rows: the rows in the facts of all games of the ladder.
    """
    game_terms = [(None if index < 0 else games[index], term) for index, term in terms]
    game_terms.sort(key=lambda pair: (pair[0] != own_index, pair[0] is None, pair[0] or 0))
    return [(None if game is None else int(rows[first + game]), term) for game, term in game_terms]


def find_periods_of_game(facts: Facts, trace: Trace, row: int) -> tuple[ExplainedPeriod | None, tuple[int, int] | None]:
    """Return the explanation of a game's closed rating period, or None; and the open period of the game, or None.

    The game has both if the open period is scored as if it closed now. Raises `RuleFailure`.
    """
    return explain_period_of_game(trace, row), find_open_period(facts, trace.stream, row)


def explain_single_game(
    facts: Facts, before: TracePosition, row: int, version: Version, participants: Sequence[int]
) -> GameEffect:
    """Explain a game that is scored on its own, not together with a rating period. Raises `RuleFailure`."""
    if facts.club_games is not None:
        return _explain_clubs(facts, facts.club_games, before, row, version, participants)
    ladder = before.trace.stream.ladder
    people = [(facts.person_of(slot), facts.name_of(slot)) for slot in participants]
    reading = version.reading
    columns = [facts.column(name, row, participants, reading) for name in version.rule.columns]
    scored = score_single_game(facts, before, version, (row, read_game_day(facts, row, version)), columns, people)
    names = [name for _, name in people]
    terms = rule_calls.explain_states(version, ladder, row, names, scored.before, scored.columns, scored.after)
    terms_without_game: list[list[tuple[int | None, Term]]] = [
        [(None, term) for term in player_terms] for player_terms in terms
    ]
    effects = map(PlayerEffect, zip(*scored.before, strict=True), zip(*scored.after, strict=True), terms_without_game)
    has_newcomer = any(player.is_new for player in scored.players_before)
    keys = (key for player_terms in terms for term in player_terms for key in term.assumes)
    start_keys = version.start_keys if has_newcomer and before.trace.stream.ranking.running else ()
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
        state, terms = find_state_before(facts, before, club, version), member_terms.terms_of(games.members_of(club))
        has_newcomer |= before.state_of(facts.person_of(club)) is None
        new_state = (state[0] + sum(term.amount for term in terms), *state[1:])
        effects[club] = PlayerEffect(state, new_state, [(None, term) for term in terms])
    changes = [effect.after[0] - effect.before[0] for effect in effects.values()]
    keys = (key for effect in effects.values() for _, term in effect.terms for key in term.assumes)
    start_keys = version.start_keys if has_newcomer and before.trace.stream.ranking.running else ()
    deciding_keys = _find_deciding_keys(games.people, row, player_version)
    assumed = assumptions_among(player_version.ruleset, [*start_keys, *keys, *deciding_keys])
    minted = sum(change for change in changes if change > 0)
    return GameEffect(
        by_participant=effects, minted=minted, burned=minted - sum(changes), remark=member_terms.remark, assumed=assumed
    )


def _find_deciding_keys(facts: Facts, row: int, version: Version) -> Iterator[str]:
    """Yield the keys of the parameters that determined a game's effect, besides those that its terms state."""
    participants = range(facts.start[row], facts.start[row] + facts.count[row])
    if any(facts.replaced[slot] for slot in participants):
        yield "substitution"
    if "vp" in version.rule.columns:
        vp_sum, victory_count = (sum(facts.column(name, row, participants)) for name in ("vp", "victory"))
        # without a victory, a surplus victory point can only be the one for a win within time
        if not victory_count and vp_sum > facts.cell_of(row).seats - 2:
            yield "within_time"


def count_games_before(facts: Facts, before: TracePosition, participant: int, version: Version) -> int:
    """Return a participant's number of games before a position, including those of a seed and of carried seasons."""
    games, _ = before.game_count_and_last_row(facts.person_of(participant))
    entry = find_entry(before, version, facts.person_of(participant), facts.name_of(participant))
    return games + (0 if entry is None else entry.games)


def find_state_before(facts: Facts, before: TracePosition, participant: int, version: Version) -> State:
    """Return the state of a participant before the game, or the starting state of a newcomer."""
    state, trace = before.state_of(facts.person_of(participant)), before.trace
    if state is not None:
        return state[: version.rule.width]
    return find_starting_state(trace.stream, facts.name_of(participant), version, trace.entry_states)
