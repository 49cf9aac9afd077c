"""Explanations: why a game gave what it gave, or does not count, and how a player's place came about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import (
    first_positions,
    read_records_at,
    read_where,
)
from ratings_ledger.ledger.validation.repeated_games import describe_sets
from ratings_ledger.projections.contract import Term
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import LABELS, NONE, ClubGames, Facts
from ratings_ledger.projections.facts.players import rows_with
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, Times, moment
from ratings_ledger.projections.queries.explain_period import ExplainedPeriod, explain_period_of
from ratings_ledger.projections.queries.history import (
    CAUSES,
    GameVersions,
    played,
)
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import (
    ABSENT,
    FROM,
    HIDDEN,
    Absent,
    Answer,
    Result,
)
from ratings_ledger.projections.queries.shown_states import show_state, show_state_after
from ratings_ledger.projections.queries.standings import Account, PeriodState, period_state, rows_of_players
from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.arrivals import read_game_day, score_arrivals
from ratings_ledger.projections.replay.clubs import explain_members
from ratings_ledger.projections.replay.eligibility import explain_left_out, explain_not_counted
from ratings_ledger.projections.replay.gaps import State
from ratings_ledger.projections.replay.ladders import (
    Stream,
    find_open_period,
    list_partition_values,
    parse_name,
)
from ratings_ledger.projections.replay.partition import is_partitioned_by_time
from ratings_ledger.projections.replay.replay import find_starting_state
from ratings_ledger.projections.replay.trace import Step, Trace, TracePosition
from ratings_ledger.projections.rulesets.assumptions import assumptions_among
from ratings_ledger.projections.rulesets.columns import find_reading
from ratings_ledger.projections.rulesets.versions import Version, newest, refuse_months


@dataclass(frozen=True, slots=True)
class ExplainedTerm(Result):
    """A part of what a game changed, or of what a list makes of somebody; `amount` is None where a term has none."""

    term: str
    amount: Fraction | None
    detail: str
    note: str | Absent = ABSENT
    game_id: str | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class StateChange(Result):
    """The numbers that a rule keeps about a player before and after a game, by name: as decimals for people, and
    exactly.
    """

    before: dict[str, str]
    after: dict[str, str]
    before_exact: dict[str, str]
    after_exact: dict[str, str]


@dataclass(frozen=True, slots=True)
class Explained(Result):
    """What a game did to a player, term by term; `why_not` if the player does not count in it. Under a rule that keeps
    several numbers about a player, `state` has all that people see, and `provisional` says whether the rule finds them
    not reliable yet after the game.
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
    """The period in which a game is scored, from its first instant to its last one. `closed_now` is True if it is open
    and scored as if it closed now.
    """

    since: datetime = field(metadata=FROM)
    to: datetime
    closed: bool
    closed_now: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class GameExplanation(Answer):
    """Why a game changed the points of a ladder as it did, or in `why_not` why it does not count there.

    Where games are scored by rating periods, everything is about the game's `period`: before, change and after are
    those of the whole period, and terms name the games that they come from, those of this game first. `assumed` is what
    the ruleset assumes where its source is silent and what decided a number here, by key. `sets` are those of the
    game, the better side first, if they are recorded.
    """

    game_id: str
    ladder: str
    ruleset: str | None
    counted: bool
    why_not: str | None
    remark: str | Absent
    occurred_at: datetime
    players: tuple[Explained, ...]
    accounts: tuple[Account, ...]
    at: Coordinates
    assumed: dict[str, str] | Absent = ABSENT
    period: RatingPeriod | Absent = ABSENT
    sets: str | Absent = ABSENT
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PlayedGame(Result):
    """A game of a player on a ladder, or an adjustment with its `reason`; `change` is None if it does not count.

    `game` is as in `Change`.
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
    """How a player's place on a ladder comes about: the start, the games, and what the list makes of them.

    `assumed` is as in `GameExplanation`; `period` says how far the ladder's games are scored by rating periods.
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


# the states of a participant before and after, and the reasons with the rows of the games that they come from
Counted: TypeAlias = tuple[State, State, list[tuple[int | None, Term]]]


class Gave(NamedTuple):
    """What a game or its period gave: the states before and after of every counted participant, with the reasons and
    the rows of the games that they come from, in units; and what the rule says of it, and what it assumes.
    """

    counted: Mapping[int, Counted]
    minted: int
    burned: int
    remark: str | None
    assumed: dict[str, str]


def row_of_game(connection: Connection, facts: Facts, game_id: str) -> int:
    """Return the row of a game in the facts. Raises `Unknown` (game-unknown)."""
    recorded = read_where(connection, until=facts.position, subject=f"game:{game_id}", type_name="game.recorded")
    row = facts.row_of(recorded[0][0]) if recorded else NONE
    if row == NONE:
        later = {} if recorded else first_positions(connection, [game_id])
        told = "".join(f" up to position {facts.position}; it was at {one}" for one in later.values())
        raise Unknown("game-unknown", f"no game {quote(game_id)} is recorded{told}")
    return row


def explain_game(
    ladders: Ladders,
    ladder: str,
    game_id: str,
    row: int,
    times: Times = UTC_TIMES,
    before: TracePosition | None = None,
    connection: Connection | None = None,
) -> GameExplanation:
    """Return why a game changed the points of a ladder as it did, or why it did not.

    With a `connection` the other games of its rating period are named, and its sets told. What everybody had `before`
    it is looked up unless it is given. Raises `UnknownLadder`, `RuleFailure`.
    """
    ladders = ladders.for_ladder(ladder)
    facts = ladders.facts
    versions = ladders.versions(ladder)
    version, participants, reason = explain_not_counted(facts, row, versions)
    reason = reason or _why_not_here(ladders, ladder, row, versions)
    # what comes after the game is not part of the points before it, even if the game itself does not count
    before_it = before or ladders.state_before(ladder, (facts.occurred_at[row], facts.first_position[row]))
    scale, period, waiting = before_it.trace.stream.rule.scale, None, None
    if reason is None and version is not None and versions[0].ruleset.period != "game":
        trace = ladders.trace(ladder)
        waiting = find_open_period(facts, trace.stream, row)
        period = None if trace.stream.periods is None else explain_period_of(trace, trace.stream.periods, row)
        reason = None if period else "its rating period is not closed yet"
    games: dict[int, str] = {}
    if period is not None:
        own = {p: period.players[facts.name_of(p)] for p in participants}
        rows = {game for one in own.values() for game, _ in one.terms if game is not None}
        games = _name_games(connection, facts, rows)
        gave = Gave(
            {p: (one.before, one.after, one.terms) for p, one in own.items()}, period.minted, period.burned, None, {}
        )
    elif reason is None and version is not None:
        gave = _explain_alone(facts, before_it, row, version, participants)
    else:
        gave = Gave({}, 0, 0, None, {})
    accounts = (Account("minted", ExactNumber(-gave.minted, scale)), Account("burned", ExactNumber(gave.burned, scale)))
    return GameExplanation(
        game_id,
        ladder,
        version.ruleset.name if version else None,
        reason is None,
        reason,
        gave.remark or ABSENT,
        moment(facts.occurred_at[row]),
        _everybody(facts, before_it, row, version, gave.counted, games),
        accounts,
        ladders.coordinates,
        gave.assumed or ABSENT,
        _describe_period(period, waiting),
        ABSENT if connection is None else _describe_sets(connection, facts, game_id),
        running=versions[0].ranking.running,
        times=times,
    )


def _describe_sets(connection: Connection, facts: Facts, game_id: str) -> str | Absent:
    """Return the sets of a game as it was recorded or last corrected, if it has any."""
    for _, text in reversed([*read_where(connection, until=facts.position, subject=f"game:{game_id}")]):
        data = json.loads(text)["data"]
        game = data["game"] if isinstance(data.get("game"), dict) else data
        if "participants" in game:
            return describe_sets(game) or ABSENT
    return ABSENT


def _describe_period(scored: ExplainedPeriod | None, waiting: tuple[int, int] | None) -> RatingPeriod | Absent:
    """Return the period of a game: that in which it is scored, or which is still open."""
    if waiting is not None:
        begin, last = map(moment, waiting)
        return RatingPeriod(begin, last, closed=False, closed_now=ABSENT if scored is None else True)
    return ABSENT if scored is None else RatingPeriod(moment(scored.begin), moment(scored.last), closed=True)


def _explain_alone(
    facts: Facts, before: TracePosition, row: int, version: Version, participants: Sequence[int]
) -> Gave:
    """Return what a game that is scored by itself gave its counted participants. Raises `RuleFailure`."""
    if facts.club_games is not None:
        return _explain_clubs(facts, facts.club_games, before, row, version, participants)
    ladder = before.trace.stream.ladder
    people = [(facts.person_of(p), facts.name_of(p)) for p in participants]
    reading = find_reading(version.rule.columns, version.ruleset)
    read = [facts.column(name, row, participants, reading) for name in version.rule.columns]
    scored = score_arrivals(facts, before, version, (row, read_game_day(facts, row, version)), read, people)
    names = [name for _, name in people]
    terms = rule_calls.explain_states(version, ladder, row, names, scored.before, scored.columns, scored.after)
    reasons: list[list[tuple[int | None, Term]]] = [[(None, term) for term in mine] for mine in terms]
    states = zip(zip(*scored.before, strict=True), zip(*scored.after, strict=True), reasons, strict=True)
    begins = any(one.is_new for one in scored.arrivals)
    keys = (key for mine in terms for term in mine for key in term.assumes)
    started = _start_keys(version) if begins and before.trace.stream.ranking.running else ()
    return Gave(
        dict(zip(participants, states, strict=True)),
        scored.minted,
        scored.minted - sum(rule_calls.subtract(scored.after[0], scored.before[0])),
        rule_calls.remark_on_game(version, ladder, row, names, scored.columns),
        assumptions_among(version.ruleset, [*started, *keys, *_find_deciding_keys(facts, row, version)]),
    )


def _explain_clubs(
    facts: Facts, games: ClubGames, before: TracePosition, row: int, version: Version, clubs: Sequence[int]
) -> Gave:
    """Return what a game gave clubs, with the reasons of their players. Raises `RuleFailure`."""
    scored_by = next(of_people for of_people in games.versions if of_people.position == version.position)
    explained = explain_members(games, row, scored_by, before.trace.stream.ladder)
    gave: dict[int, Counted] = {}
    begins = False
    for club in clubs:
        had, terms = _state(facts, before, club, version), explained.terms_of(games.members_of(club))
        begins |= before.state_of(facts.person_of(club)) is None
        has = (had[0] + sum(term.amount for term in terms), *had[1:])
        gave[club] = had, has, [(None, term) for term in terms]
    gained = [has[0] - had[0] for had, has, _ in gave.values()]
    keys = (key for _, _, terms in gave.values() for _, term in terms for key in term.assumes)
    started = _start_keys(version) if begins and before.trace.stream.ranking.running else ()
    assumed = assumptions_among(
        scored_by.ruleset, [*started, *keys, *_find_deciding_keys(games.people, row, scored_by)]
    )
    minted = sum(gain for gain in gained if gain > 0)
    return Gave(gave, minted, minted - sum(gained), explained.remark, assumed)


def _name_games(connection: Connection | None, facts: Facts, rows: set[int]) -> dict[int, str]:
    """Return the ids of the games in some rows of the facts; none without a connection."""
    if connection is None:
        return {}
    positions = {row: facts.live_position[row] for row in rows}
    records = read_records_at(connection, sorted({*positions.values()}))
    return {row: json.loads(records[position])["data"]["game_id"] for row, position in positions.items()}


def _find_deciding_keys(facts: Facts, row: int, version: Version) -> Iterator[str]:
    """Find the parameters that decided what a game gave, besides those that its terms name."""
    participants = range(facts.start[row], facts.start[row] + facts.count[row])
    if any(facts.replaced[p] for p in participants):
        yield "substitution"
    if "vp" in version.rule.columns:
        handed_out, victories = (sum(facts.column(name, row, participants)) for name in ("vp", "victory"))
        # without a victory, one point more than the players give is that for a win within time
        if not victories and handed_out > facts.cell_of(row).seats - 2:
            yield "within_time"


def _why_not_here(ladders: Ladders, ladder: str, row: int, versions: Sequence[Version]) -> str | None:
    """Return why a game that the ruleset counts does not count on this particular ladder, or None."""
    facts, ruleset = ladders.facts, versions[0].ruleset
    its_own = list_partition_values(facts, row, ruleset)
    if parse_name(ladder).values not in its_own:
        missing = [part for part in ruleset.partition.by if part in LABELS and facts.label(part, row) is None]
        belongs = " and ".join("/".join([ruleset.id, *values]) for values in its_own)
        if not belongs:
            return f"it has no {' and no '.join(missing) or 'such ladder'}"
        local = local_time(facts.occurred_at[row], ruleset.time_zone)
        is_partitioned_by_time = {"month", "year"} & {*ruleset.partition.by}
        ended = f"it ended on {local:%Y-%m-%d at %H:%M} ({ruleset.time_zone}), so " if is_partitioned_by_time else ""
        return f"{ended}it belongs to {belongs}"
    if ladders.as_of is not None and facts.occurred_at[row] > ladders.as_of:
        return "the game was played later than --as-of"
    if not versions[0].ranking.sums_lists:
        return None
    params: Any = newest(versions).params
    monthly = facts.rulesets.get(params.of, [])
    if refuse_months(newest(versions), monthly):
        return f"it sums the places of the lists of {params.of}, which are not there"
    _, _, reason = explain_not_counted(facts, row, monthly)
    if reason:
        return f"it sums the places of months, and no month counts the game: {reason}"
    month = list_partition_values(facts, row, monthly[0].ruleset)[0]
    return f"it sums the places of months; see {'/'.join([params.of, *month])}"


def _start_keys(version: Version) -> tuple[str, ...]:
    """Return the keys that decide what somebody begins with on a ladder."""
    return ("start", "carry_over", "season_months") if "season" in version.ruleset.partition.by else ("start",)


def _term(term: Term, scale: int, game_id: str | None) -> ExplainedTerm:
    return ExplainedTerm(
        term.term, ExactNumber(term.amount, scale), term.detail, term.note or ABSENT, game_id or ABSENT
    )


def _state(facts: Facts, before: TracePosition, participant: int, version: Version) -> State:
    """Return the state of a participant before the game; what they begin with if not on the ladder yet."""
    state, trace = before.state_of(facts.person_of(participant)), before.trace
    if state is not None:
        return state[: version.rule.width]
    return find_starting_state(trace.stream, facts.name_of(participant), version, trace.joining)


def _everybody(
    facts: Facts,
    before: TracePosition,
    row: int,
    version: Version | None,
    counted: Mapping[int, Counted],
    games: Mapping[int, str],
) -> tuple[Explained, ...]:
    """Return all participants by place; without places by what they got, most first; `counted` has the states before
    and after the game.

    Those who do not count have a change of 0 and, if it is about them, the reason.
    """
    stream, found = before.trace.stream, []
    scale, first = stream.rule.scale, facts.start[row]

    def gain(p: int) -> int:
        return counted[p][1][0] - counted[p][0][0] if p in counted else 0

    def rank(p: int) -> tuple[int, int, str]:
        return facts.place[p], 0 if facts.place[p] else -gain(p), facts.name_of(p)

    for p in sorted(range(first, first + facts.count[row]), key=rank):
        if p in counted:
            had, has, terms = counted[p]
        else:
            had = has = _state(facts, before, p, version or newest(stream.versions))
            terms = []
        reason = None if p in counted or version is None else explain_left_out(facts, row, p, version)
        found.append(
            Explained(
                facts.name_of(p),
                ExactNumber(had[0], scale),
                ExactNumber(gain(p), scale),
                ExactNumber(has[0], scale),
                tuple(_term(term, scale, None if game is None else games.get(game)) for game, term in terms),
                reason or ABSENT,
                facts.place[p] or None,
                *_state_change(facts, before, version or newest(stream.versions), p, counted.get(p, (had, has, None))),
            )
        )
    return tuple(found)


def _state_change(
    facts: Facts, before: TracePosition, version: Version, participant: int, gave: Counted | tuple[State, State, None]
) -> tuple[StateChange | Absent, bool | Absent]:
    """Return what a game did to the numbers of a player, if the rule keeps several, and whether it leaves them
    provisional. Raises `RuleFailure`.
    """
    if not version.rule.state:
        return ABSENT, ABSENT
    had, has, terms = gave
    joining = before.trace.joining.get(facts.name_of(participant))
    played, _ = before.last_game_of(facts.person_of(participant))
    played += 0 if joining is None else joining.games
    # of a period, as many games as it gave reasons for
    played += 0 if terms is None else len({game for game, _ in terms} - {None}) or 1
    earlier, later = show_state(version, had), show_state_after(version, before.trace.stream.ladder, has, played)
    return StateChange(earlier.decimals, later.decimals, earlier.exact, later.exact), later.provisional


class PlayedEntry(NamedTuple):
    """A game or an adjustment of a player: when, its event, what it changed, or why it does not count."""

    occurred_at: int
    position: int
    change: Fraction | None
    why_not: str | None
    cause: str = ""


def explain_player(
    connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times = UTC_TIMES
) -> PlayerExplanation:
    """Return a player's rank, what they began with, their games and adjustments in order, and what the list makes of
    them.

    The games of this ladder that do not count for them are included, with the reason; somebody who is not there has
    none. Raises `UnknownLadder`, `RuleFailure`.
    """
    facts, trace = ladders.facts, ladders.trace(ladder)
    stream, player = trace.stream, facts.current(player)
    number = stream.names.index(player) if player in stream.names else None
    steps = [] if number is None else trace.steps(number)
    found, results = ladders.rank(trace)
    row = rows_of_players(found.rows, {player}).get(player)
    ranking = stream.ranking
    played: list[PlayedEntry] = []
    if not stream.ranking.sums_lists:
        left_out = set() if number is None else ranking.left_out(results, number)
        played = sorted(
            [*_steps(facts, trace, steps, left_out), *_uncounted(ladders, stream, player, steps)],
            key=lambda one: one[:2],
        )
    # for a monthly or annual list, its own zone decides what belongs to it
    ruleset = stream.versions[0].ruleset
    zone = ruleset.time_zone if is_partitioned_by_time(ruleset) else times.zone
    records = read_records_at(connection, sorted({one.position for one in played}))
    standing = GameVersions(connection, facts, records)
    lines = ranking.explain(results, player) if row or number is not None else []
    keys = [key for line in lines for key in line.assumes]
    if row and row.gold:
        keys += ["gold", *["gold_ties"] * (sum(one.rank == row.rank for one in found.rows) > 1)]
    if steps and ranking.running:
        keys = [*_start_keys(newest(stream.versions)), *keys]
    last, until = newest(stream.versions).ruleset, 2**62 if ladders.as_of is None else ladders.as_of
    if row and row.rank and facts.account(facts.player_numbers[player], until) in last.scope.exclude_accounts:
        keys.append("account")
    assumed = assumptions_among(last, keys)
    return PlayerExplanation(
        player,
        ladder,
        found.ruleset,
        None if row is None else row.rank,
        None if row is None else row.value(found.scale),
        ABSENT if row is None or row.gold is None else row.gold,
        ExactNumber(steps[0].before, found.scale) if steps else None,
        zone,
        tuple(_played_game(one, json.loads(records[one.position]), zone, standing) for one in played),
        tuple(ExplainedTerm(line.term, line.amount, line.detail) for line in lines),
        ladders.coordinates,
        assumed or ABSENT,
        period_state(found.closed),
        times=Times(zone, times.noons or (times.zone,)),
    )


def _steps(facts: Facts, trace: Trace, steps: list[Step], left_out: set[int]) -> Iterator[PlayedEntry]:
    """Yield a player's counted games and adjustments."""
    for step, game in zip(steps, played(facts, steps), strict=True):
        why_not = "not among the best" if step.game in left_out else None
        change = ExactNumber(step.change, trace.stream.rule.scale)
        yield PlayedEntry(game.occurred_at, game.live_position, change, why_not, step.cause)


def _uncounted(ladders: Ladders, stream: Stream, player: str, steps: list[Step]) -> Iterator[PlayedEntry]:
    """Yield the games of a player that are on this ladder by their labels, but do not count for them."""
    facts, versions = ladders.facts, stream.versions
    person = facts.person[facts.player_numbers[player]] if player in facts.player_numbers else None
    slugs = {facts.text_numbers.get(name, NONE - 1) for version in versions for name in version.ruleset.scope.game}
    values = parse_name(stream.ladder).values
    ids = [] if person is None else [number for number, who in enumerate(facts.person) if who == person]
    rows = rows_with(facts, ids)
    own = {step.row for step in steps}
    for row in rows:
        if facts.cell_of(row).game not in slugs or (
            ladders.as_of is not None and facts.occurred_at[row] > ladders.as_of
        ):
            continue
        mine = [p for p in range(facts.start[row], facts.start[row] + facts.count[row]) if facts.person_of(p) == person]
        if values not in list_partition_values(facts, row, versions[0].ruleset):
            continue
        version, _, reason = explain_not_counted(facts, row, versions)
        if reason is None and version is not None:
            reason = explain_left_out(facts, row, mine[0], version)
        if reason is not None or row not in own:
            yield PlayedEntry(facts.occurred_at[row], facts.live_position[row], None, reason)


def _played_game(there: PlayedEntry, event: dict[str, Any], zone: str, standing: GameVersions) -> PlayedGame:
    """Return a game or an adjustment as the explanation shows it."""
    game_id = None if there.cause else event["data"].get("game_id")
    return PlayedGame(
        game_id,
        moment(there.occurred_at),
        local_time(there.occurred_at, zone).isoformat(),
        there.change,
        there.why_not,
        ABSENT if game_id else CAUSES.get(there.cause) or event["data"]["reason"],
        there.cause or ABSENT,
        game=None if there.cause else standing.game(event),
    )
