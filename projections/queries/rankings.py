"""Rank the players of a ladder by the list that its rule names."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import dump, dump_text
from ratings_ledger.ledger.events.published_lists import compute_text_digest
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.contract import State
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.lists.contract import RankedRow, RankingInput
from ratings_ledger.projections.queries.visible_states import LadderStates, VisibleStates, format_exact_state
from ratings_ledger.projections.replay.classified_places import find_places
from ratings_ledger.projections.replay.rule_calls import find_rank_value
from ratings_ledger.projections.replay.streams import PeriodProgress, Stream, describe_periods
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version, find_period, in_force, newest, split_ladder_name


@dataclass(frozen=True)
class Ranking:
    """The standings of a ladder, with the totals of its trial balance."""

    ladder: str
    ruleset: str
    scale: int
    rows: Sequence[RankedRow]
    games: int
    held: int  # the sum of all players' points, which are running points or sums over games
    start_total: int
    minted: int
    burned: int
    adjusted: int
    columns: Sequence[State] = ()  # the columns of the rows' states
    visible_states: VisibleStates | None = field(default=None, compare=False, repr=False)
    period_progress: PeriodProgress | None = field(default=None, compare=False)
    # a description of the value by which players are ranked, if it is not the points
    ranked_by: str | None = field(default=None, compare=False)

    @cached_property
    def digest(self) -> str:
        """Return the hash of the ruleset and the rows, as `compute_digest` defines it. A long ladder takes a while."""
        rows = ",".join(_dump_row(row, self.scale, self.columns) for row in self.rows)
        return compute_text_digest(f'{{"rows":[{rows}],"ruleset":{dump(self.ruleset)}}}')

    def json_rows(self) -> list[dict[str, Any]]:
        """Return the rows as plain data for JSON."""
        return [_build_json_row(row, self.scale, self.columns) for row in self.rows]


def _build_json_row(row: RankedRow, scale: int, columns: Sequence[State]) -> dict[str, Any]:
    """Return a row of the standings as plain data for JSON."""
    member_values: dict[str, Any] = {
        "rank": row.rank,
        "player": row.player,
        "points": str(row.exact_points(scale)),
        "games": row.games,
        "qualified": row.qualified,
    }
    if row.gold is not None:
        member_values["gold"] = row.gold
    if row.places is not None:
        member_values["places"] = list(row.places)
    if row.state is not None and len(columns) > 1:
        member_values["state"] = format_exact_state(columns, row.state)
    return member_values


def _dump_row(row: RankedRow, scale: int, columns: Sequence[State]) -> str:
    """Return the text of `dump(_build_json_row(...))`, but several times faster: a nightly run has many rows."""
    rank, player, points, games, qualified, divisor, gold, places, state = row
    unit = scale * divisor
    whole, remainder = divmod(points, unit)
    if remainder:
        common = gcd(points, unit)
        points_text = f"{points // common}/{unit // common}"
    else:
        points_text = str(whole)
    optional_members = "" if gold is None else f'"gold":{gold},'
    if places is not None:
        optional_members += f'"places":[{",".join(map(str, places))}],'
    state_member = "" if state is None or len(columns) < 2 else f',"state":{dump(format_exact_state(columns, state))}'
    return (
        f'{{"games":{games},{optional_members}"player":{dump_text(player)},"points":"{points_text}",'
        f'"qualified":{"true" if qualified else "false"},"rank":{"null" if rank is None else rank}{state_member}}}'
    )


class RankedTrace(NamedTuple):
    """The standings at the end of a trace, and the input from which the list ranked them."""

    ranking: Ranking
    ranking_input: RankingInput


def rank_trace(facts: Facts, trace: Trace, as_of: int | None, months: Mapping[str, Ranking]) -> RankedTrace:
    """Rank the players at the end of a trace. Raises `RuleFailure`.

    Args:
        as_of: the instant of the standings; None for no limit
        months: the monthly lists that an annual list sums, by month; empty for other lists
    """
    stream, version = trace.stream, find_ranking_version(trace)
    ranking_input = _build_ranking_input(facts, trace, version, as_of, months)
    rows = LISTS[stream.rule.ranking].rank(ranking_input)
    games = sum(month.games for month in months.values()) if stream.ranking.sums_lists else trace.game_count
    ranking = Ranking(
        ladder=stream.ladder,
        ruleset=version.ruleset.name,
        scale=stream.rule.scale,
        rows=rows,
        games=games,
        held=sum(ranking_input.points),
        start_total=trace.start_total,
        minted=trace.minted,
        burned=trace.burned,
        adjusted=trace.adjusted,
        columns=version.rule.state,
        # without running points, the list computes the points, so they are not those of the rule's state
        visible_states=LadderStates(facts, trace, version, as_of)
        if version.rule.state and stream.ranking.running
        else None,
        period_progress=describe_periods(facts, stream, as_of),
        ranked_by=ranking_input.ranked_by,
    )
    return RankedTrace(ranking, ranking_input)


def _build_ranking_input(
    facts: Facts, trace: Trace, version: Version, as_of: int | None, months: Mapping[str, Ranking]
) -> RankingInput:
    stream, has_running_points = trace.stream, trace.stream.ranking.running
    # numpy ranks long lists of running points if compiled code is allowed; the limit for games serves for players, too
    is_ranked_by_numpy = has_running_points and len(stream.names) >= compiling.COMPILED_GAMES and compiling.is_allowed()
    rows_by_month = {month: {row.player: row for row in ranking.rows} for month, ranking in months.items()}
    excluded = _find_excluded(facts, stream, version, as_of, months)
    rank_values = _compute_rank_values(trace, version)
    places, more_places = find_places(facts, stream) if stream.ranking.reads_places(version.params) else ((), {})
    return RankingInput(
        names=stream.names,  # all of them are on the ladder, because the stream is fully replayed
        points=trace.states[0],
        games=trace.games,
        offsets=stream.offsets,
        players=stream.players,
        changes=() if has_running_points else trace.changes,
        scale=stream.rule.scale,
        params=version.params,
        months=rows_by_month,
        excluded=excluded,
        places=places,
        ids=arrays.take(facts.id_ranks(), array("i", stream.persons)) if is_ranked_by_numpy else None,
        states=trace.states[: version.rule.width] if version.rule.state else (),
        rank_values=rank_values,
        more_places=more_places,
        ranked_by=version.ranked_by,
    )


def _compute_rank_values(trace: Trace, version: Version) -> list[int] | None:
    """Return the value by which each player is ranked, or None if the rule ranks by points. Raises `RuleFailure`."""
    if version.rule.rank_by is None:
        return None
    states = zip(*trace.states[: version.rule.width], strict=True)
    return [find_rank_value(version, trace.stream.ladder, tuple(map(int, state))) for state in states]


def find_ranking_version(trace: Trace) -> Version:
    """Return the version that ranks a ladder.

    It is the version that scored the last counted game or took effect after it; without such a version, the newest. An
    annual list has no games; the version in force at the end of the year ranks it.
    """
    stream = trace.stream
    if stream.ranking.sums_lists:
        period = find_period(stream.versions[0].ruleset, stream.ladder)
        version = None if period is None else in_force(stream.versions, period.end)
        return version or newest(stream.versions)
    return (
        trace.final_version
        if stream.adjustments and stream.adjustments[-1].is_version_entry
        else trace.last_version or newest(stream.versions)
    )


def _find_excluded(
    facts: Facts, stream: Stream, version: Version, as_of: int | None, months: Mapping[str, Ranking]
) -> dict[str, str]:
    """Return the players who cannot have a rank, however many points and games they have, each with the reason."""
    params: Any = version.params
    if not stream.ranking.sums_lists:
        return {facts.current(name): reason for name, reason in getattr(params, "unranked", {}).items()}
    period = find_period(version.ruleset, stream.ladder)
    group = split_ladder_name(stream.ladder, version.ruleset).get("group")
    if params.account is None or group in params.any_account or period is None:
        return {}
    instant = period.end if as_of is None else min(period.end, as_of)
    reasons = {}
    for name in {row.player for month in months.values() for row in month.rows}:
        account = facts.account(facts.player_numbers[name], instant)
        if account != params.account:
            when = "at the end of the year" if instant == period.end else "at that time"
            reasons[name] = f"a {account} account {when}, not a {params.account} one"
    return reasons
