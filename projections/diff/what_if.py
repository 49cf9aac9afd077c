"""What if all games had been scored under another ruleset? Nothing is recorded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import BadArgument, RulesetRefused, Unknown
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import Refused, find_closest, quote
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.diff.comparison import (
    DifferingList,
    Effect,
    ImpactSummary,
)
from ratings_ledger.projections.diff.impact import RecordedBeside, impact_between, recorded_up_to
from ratings_ledger.projections.diff.predictions import Predicted, Quality, quality
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import Coordinates, Times
from ratings_ledger.projections.queries.ladders_at import Ladders, find_versions
from ratings_ledger.projections.queries.results import (
    HIDDEN,
    SET,
    SPREAD,
    Answer,
    Result,
)
from ratings_ledger.projections.replay.ladders import Stream, parse_name, refuse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.versions import RulesetProblem, bind, list_games, refuse_months, refuse_sequel


@dataclass(frozen=True, slots=True)
class SimulatedLadder(Result):
    """A ladder under another ruleset: how far the difference reaches, how well both predict, and who is affected."""

    radius: ImpactSummary = field(metadata=SPREAD)
    quality: Predicted
    changes: tuple[Effect, ...]

    @property
    def differs(self) -> bool:
        """Tell whether anybody has another rank or other points there."""
        return bool(self.changes or self.radius.ranks or self.radius.players)


@dataclass(frozen=True, slots=True)
class Variant(Result):
    """A ruleset with other values for some keys, and what it does; `published` are lists that come out differently,
    `left_out` ladders that cannot be replayed under it.
    """

    ruleset: str
    settings: dict[str, str] = field(metadata=SET)
    ladders: tuple[SimulatedLadder, ...]
    published: tuple[DifferingList, ...]
    left_out: tuple[str, ...] = field(default=(), metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Simulation(Answer):
    """What if these rulesets had scored their games from the start; `failed` tells which ladders cannot be replayed."""

    at: Coordinates
    variants: tuple[Variant, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


def under(facts: Facts, ruleset: Ruleset, as_of: int | None) -> Ladders:
    """Return all ladders as they would be if this ruleset had scored its games from the start.

    Raises `RulesetRefused` (bad-ruleset, partition-changed) if it could not be published as a version of its ruleset.
    """

    def refusal(code: str, problem: RulesetProblem) -> RulesetRefused:
        return RulesetRefused(f"{ruleset.name}: {problem.key}: {problem.message}", code)

    version, problems = bind(ruleset, facts.position + 1)
    if version is None:
        raise refusal("bad-ruleset", problems[0])
    for published in facts.rulesets.get(ruleset.id, ()):
        if problem := refuse_sequel(version, published):
            raise refusal("partition-changed", problem)
    of = getattr(version.params, "of", None)
    if of is not None and (reason := refuse_months(version, facts.rulesets.get(of, []))):
        raise refusal("bad-ruleset", RulesetProblem("params.of", reason))
    always = version._replace(effective_from=-(2**63))
    unusable = {name: problem for name, problem in facts.unusable.items() if name != ruleset.id}
    rulesets = {**facts.rulesets, ruleset.id: [always]}
    return Ladders(replace(facts, rulesets=rulesets, unusable=unusable, league_starts={}, cache=None), as_of)


def simulated(
    connection: Connection,
    now: Ladders,
    rulesets: Iterable[tuple[dict[str, str], Ruleset]],
    ladders: Collection[str],
    times: Times,
) -> Simulation:
    """Return all games under each of some rulesets, with what was set in them, compared with the ladders as they are.

    Only the ladders that are named, if any are. Raises `BadArgument` for a name that is not a ladder's, `Unknown` for a
    ladder without games, `RulesetRefused`, `RulesetUnusable`.
    """
    rulesets = list(rulesets)
    for ladder in ladders:
        refuse_simulated(now.facts, ladder, rulesets[0][1])
    failed: list[str] = []
    variants = tuple(_variant(connection, now, values, ruleset, ladders, failed) for values, ruleset in rulesets)
    return Simulation(now.coordinates, variants, failed=tuple(dict.fromkeys(failed)), times=times)


def why_alone(now: Ladders, ruleset: Ruleset) -> str | None:
    """Return what keeps a ruleset from being compared with anything, and which id was probably meant; or None."""
    rulesets = now.facts.rulesets
    if ruleset.id in rulesets and now.streams(ruleset.id):
        return None
    ruleset_names = [
        name for name in sorted(rulesets) if list_games(rulesets[name]) & {*ruleset.scope.game} and now.streams(name)
    ]
    message = f"no ladder of {ruleset.id} has a game, so there is nothing to compare it with"
    if ruleset_names:
        message += (
            f"; {joined(ruleset_names)} {'score' if len(ruleset_names) > 1 else 'scores'} its games: did you mean "
        )
        message += f'id = "{find_closest(ruleset.id, ruleset_names) or ruleset_names[0]}"?'
    return message


def refuse_simulated(facts: Facts, ladder: str, ruleset: Ruleset) -> None:
    """Raises `BadArgument` for a name that is not a ladder's, of this ruleset or of a published one."""
    name = parse_name(ladder)
    if name.ruleset_id != ruleset.id:
        find_versions(facts, ladder)
    elif reason := refuse_name(name, ruleset):
        raise BadArgument(f"{quote(ladder)} is not a ladder: {reason}", "ladder")


def _variant(
    connection: Connection,
    now: Ladders,
    told: dict[str, str],
    ruleset: Ruleset,
    ladders: Collection[str],
    failed: list[str],
) -> Variant:
    then = under(now.facts, ruleset, now.as_of)
    mine = then.streams(ruleset.id)
    if unknown := [name for name in ladders if parse_name(name).ruleset_id == ruleset.id and name not in mine]:
        raise no_games_under(ruleset, unknown[0], mine)
    simulated, published = ladders_beside(
        recorded_up_to(connection, now.facts.position), now, then, ruleset.id, ladders, failed
    )
    left_out = left_out_of(simulated, {*mine} & {*(ladders or mine)})
    return Variant(ruleset.name, told, tuple(simulated), published, left_out)


def left_out_of(found: Iterable[SimulatedLadder], names: Collection[str]) -> tuple[str, ...]:
    """Return which of the ladders that were asked for are not among those that could be replayed."""
    return tuple(sorted({*names} - {simulated.radius.ladder for simulated in found}))


def no_games_under(ruleset: Ruleset, ladder: str, others: Collection[str]) -> Unknown:
    """Return the refusal of a ladder that would have no games under a ruleset, which has some others."""
    return Unknown(None, f"{ladder} has no games under {ruleset.name}; it has {_some(others)}")


def ladders_beside(
    recorded: RecordedBeside, now: Ladders, then: Ladders, ruleset_id: str, only: Collection[str], failed: list[str]
) -> tuple[list[SimulatedLadder], tuple[DifferingList, ...]]:
    """Return the ladders, or `only` some, as they are and as they would be if a ruleset was another, and the published
    lists that would come out differently; `failed` gets why some cannot be replayed, which are left out if that is so
    under the other ruleset.
    """
    reach = impact_between(recorded, now, then, {f"ruleset:{ruleset_id}"}, only)
    before = now.streams(ruleset_id) if ruleset_id in now.facts.rulesets else {}
    failed += reach.failed
    radii = {summary.ladder: summary for summary in reach.ladders}
    found, mine = [], then.streams(ruleset_id)
    predicting = {name: stream for name, stream in mine.items() if name in (only or mine)}
    for name in sorted(radii.keys() | predicting.keys()):
        known = before.get(name) if name in predicting else None
        both = _quality(now.facts, known), _quality(then.facts, predicting.get(name))
        failed += [recorded.told(problem, now.facts) for problem in both if isinstance(problem, RuleFailure)]
        if failed and not _replays(predicting.get(name)):
            continue
        predicted = Predicted(*(None if isinstance(quality, RuleFailure) else quality for quality in both))
        changes = tuple(effect for effect in reach.changes if effect.ladder == name)
        unchanged = ImpactSummary(name, 0, 0, None, None, 0, (), ())
        found.append(SimulatedLadder(radii.get(name, unchanged), predicted, changes))
    return found, reach.published


def _some(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (" ..." if len(names) > 5 else "") if names else "none"


def _quality(facts: Facts, stream: Stream | None) -> Quality | RuleFailure | None:
    """Return how well a ladder predicts, or why it cannot be replayed."""
    try:
        return None if stream is None else quality(facts, stream)
    except RuleFailure as failure:
        return failure


def _replays(stream: Stream | None) -> bool:
    """Tell whether a ladder, if it is one, can be replayed, whatever its rule predicts."""
    if stream is None:
        return True
    try:
        replay(stream)
    except RuleFailure:
        return False
    return True


Data = dict[str, Any]


def variants(data: Data, changed: Mapping[str, Sequence[str]]) -> list[tuple[dict[str, str], Data]]:
    """Return a ruleset's data with each combination of the values given for dotted keys: (what is set, the data).

    Values are whole numbers, true, false or otherwise text, and always text if the key holds text; a key without a
    value is left out. Raises `Refused` (bad-value) for a key that holds several values.
    """
    found: list[tuple[dict[str, str], Data]] = [({}, data)]
    for key, values in changed.items():
        found = [({**told, key: value}, _with(given, key, value)) for told, given in found for value in values]
    return found


def _with(data: Data, key: str, value: str) -> Data:
    """Return a copy of nested tables with a new value for a dotted key. Raises `Refused`."""
    name, _, rest = key.partition(".")
    section = data.get(name, {} if rest else None)
    if rest and not isinstance(section, dict):
        raise Refused("bad-value", f"{quote(name)} is not a table, so there is no {quote(key)}")
    if not rest and isinstance(section, (dict, list)):
        raise Refused("bad-value", f"{quote(name)} holds several values; change them in a file")
    others = {other: kept for other, kept in data.items() if other != name}
    if rest:
        return {**others, name: _with(section or {}, rest, value)}
    return {**others, name: value if isinstance(section, str) else _read(value)} if value else others


def _read(text: str) -> int | str | bool:
    if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    return {"true": True, "false": False}.get(text, text)
