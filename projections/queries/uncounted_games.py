"""Explain why games do not count on a ladder, and list a player's games that belong to it but do not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.intake.forfeits import FORFEIT
from ratings_ledger.projections.facts.columns import LABELS
from ratings_ledger.projections.facts.lookups import list_rows_of
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.eligibility import NOT_RATED, Eligibility, decide_eligibility, explain_left_out
from ratings_ledger.projections.replay.streams import Stream, name_ladders_of_game
from ratings_ledger.projections.replay.trace import Step
from ratings_ledger.projections.rulesets.versions import Version, find_months_problem, newest


def decide_on_ladder(ladders: Ladders, ladder: str, row: int) -> Eligibility:
    """Decide whether a game counts on a ladder: the ruleset must count it, and it must belong to the ladder."""
    versions = ladders.versions(ladder)
    decision = decide_eligibility(ladders.facts, row, versions)
    return decision._replace(reason=decision.reason or _explain_not_on_ladder(ladders, ladder, row, versions))


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
        return "it was played after the as-of time"
    if not versions[0].ranking.sums_lists:
        return None
    params: Any = newest(versions).params
    monthly = facts.rulesets.get(params.of, [])
    if problem := find_months_problem(newest(versions), monthly):
        return f"the ladder cannot sum the places on monthly lists: {problem}"
    reason = decide_eligibility(facts, row, monthly).reason
    if reason:
        return f"the ladder sums the places on monthly lists, and no monthly list counts the game: {reason}"
    return f"the ladder sums the places on monthly lists; see {name_ladders_of_game(facts, row, monthly[0].ruleset)[0]}"


def add_forfeit_to_reason(reason: str | None, game: Mapping[str, Any]) -> str | None:
    """Return the reason why a game does not count; if it is not rated because it was a forfeit, say so."""
    forfeit = (game.get("extra") or {}).get(FORFEIT)
    return f"{reason}, because it was a forfeit ({forfeit})" if reason == NOT_RATED and forfeit else reason


def list_uncounted(
    ladders: Ladders, stream: Stream, player: str, steps: Sequence[Step]
) -> Iterator[tuple[int, str | None]]:
    """Yield the rows of a player's games that belong to a ladder by their labels but do not count, with the reasons.

    A game in an open rating period has no reason. `steps` are the counted games and adjustments of the player.
    """
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
            yield row, reason
