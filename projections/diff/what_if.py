"""Simulate a ruleset: score all games under it, and compare with the current ladders. Nothing is recorded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetRefused, Unknown
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import Refused, find_closest, quote
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.diff.comparison import DifferingList, Effect, ImpactSummary, ReplayedLadder
from ratings_ledger.projections.diff.impact import LogLookups, build_log_lookups, compute_impact_between
from ratings_ledger.projections.diff.predictions import Quality, QualityPair
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, check_ladder_name, find_versions
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import HIDDEN, INLINE, NAMED_SET, Answer, Result
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.versions import (
    RulesetProblem,
    bind,
    find_months_problem,
    find_sequel_problem,
    list_games,
)


@dataclass(frozen=True, slots=True)
class SimulatedLadder(Result):
    """A ladder under another ruleset: the impact summary, both prediction qualities, and each affected player."""

    summary: ImpactSummary = field(metadata=INLINE)
    quality: QualityPair
    changes: tuple[Effect, ...]

    @property
    def differs(self) -> bool:
        """Tell whether any player has another rank or other points."""
        return bool(self.changes or self.summary.ranks or self.summary.players)


@dataclass(frozen=True, slots=True)
class Variant(Result):
    """A ruleset with changed `settings`, and its effect.

    `published` has the published lists that would come out differently. `left_out` names the ladders that cannot be
    replayed.
    """

    ruleset: str
    settings: dict[str, str] = field(metadata=NAMED_SET)
    ladders: tuple[SimulatedLadder, ...]
    published: tuple[DifferingList, ...]
    left_out: tuple[str, ...] = field(default=(), metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Simulation(Answer):
    """The effect of scoring all games under other rulesets; `failed` has a message for each failed replay."""

    at: Coordinates
    variants: tuple[Variant, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


def apply_ruleset(facts: Facts, ruleset: Ruleset, as_of: int | None) -> Ladders:
    """Return all ladders as if this ruleset had scored its games from the start.

    Raises `RulesetRefused` (bad-ruleset, partition-changed) if the ruleset could not be published as the next version.
    """

    def build_error(code: str, problem: RulesetProblem) -> RulesetRefused:
        return RulesetRefused(f"{ruleset.name}: {problem.key}: {problem.message}", code)

    version, problems = bind(ruleset, facts.position + 1)
    if version is None:
        raise build_error("bad-ruleset", problems[0])
    for published in facts.rulesets.get(ruleset.id, ()):
        if problem := find_sequel_problem(version, published):
            raise build_error("partition-changed", problem)
    source_id = getattr(version.params, "of", None)
    if source_id is not None and (reason := find_months_problem(version, facts.rulesets.get(source_id, []))):
        raise build_error("bad-ruleset", RulesetProblem("params.of", reason))
    undated = version._replace(effective_from=-(2**63))
    unusable = {name: problem for name, problem in facts.unusable.items() if name != ruleset.id}
    rulesets = {**facts.rulesets, ruleset.id: [undated]}
    return Ladders(replace(facts, rulesets=rulesets, unusable=unusable, league_starts={}, cache=None), as_of)


def simulate_rulesets(
    connection: Connection,
    now: Ladders,
    rulesets: Iterable[tuple[dict[str, str], Ruleset]],
    ladders: Collection[str],
    times: TimeFormat,
) -> Simulation:
    """Score all games under each ruleset, and compare the result with the current ladders.

    Args:
        connection: the connection to the store.
        now: the current ladders.
        rulesets: the changed settings and the complete ruleset of each variant.
        ladders: the ladders to compare; empty for all.
        times: the time format of the ledger.

    Raises `UnknownLadder` for an invalid ladder name, `Unknown` for a ladder without games, `RulesetRefused`,
    `RulesetUnusable`.
    """
    rulesets = list(rulesets)
    for ladder in ladders:
        check_simulated_ladder(now.facts, ladder, rulesets[0][1])
    failed: list[str] = []
    variants = tuple(
        _simulate_variant(connection, now, values, ruleset, ladders, failed) for values, ruleset in rulesets
    )
    return Simulation(now.coordinates, variants, failed=tuple(dict.fromkeys(failed)), times=times)


def find_comparison_obstacle(now: Ladders, ruleset: Ruleset) -> str | None:
    """Return a message with a suggested id if a ruleset has no ladder to compare with, else None."""
    rulesets = now.facts.rulesets
    if ruleset.id in rulesets and now.streams(ruleset.id):
        return None
    ruleset_names = [
        name for name in sorted(rulesets) if list_games(rulesets[name]) & {*ruleset.scope.game} and now.streams(name)
    ]
    message = f"no ladder of {ruleset.id} has a game, so there are no current points to compare with"
    if ruleset_names:
        verb = "score" if len(ruleset_names) > 1 else "scores"
        similar_name = find_closest(ruleset.id, ruleset_names) or ruleset_names[0]
        message += f'; {joined(ruleset_names)} {verb} its games; did you mean id = "{similar_name}"?'
    return message


def check_simulated_ladder(facts: Facts, ladder: str, ruleset: Ruleset) -> None:
    """Raise `UnknownLadder` unless a name is valid for a ladder of this ruleset or of a published ruleset.

    Raises `RulesetUnusable` if the published ruleset cannot be used.
    """
    if ruleset.has_ladder(ladder):
        check_ladder_name(ladder, ruleset)
    else:
        find_versions(facts, ladder)


def _simulate_variant(
    connection: Connection,
    now: Ladders,
    settings: dict[str, str],
    ruleset: Ruleset,
    ladders: Collection[str],
    failed: list[str],
) -> Variant:
    """Score all games under a ruleset, and compare. Reasons of failed replays are appended to `failed`."""
    hypothetical = apply_ruleset(now.facts, ruleset, now.as_of)
    streams = hypothetical.streams(ruleset.id)
    if unknown := [name for name in ladders if ruleset.has_ladder(name) and name not in streams]:
        raise build_no_games_error(ruleset, unknown[0], streams)
    simulated, published = compare_simulated_ladders(
        build_log_lookups(connection, now.facts.position), now, hypothetical, ruleset.id, ladders, failed
    )
    left_out = list_left_out(simulated, {*streams} & {*(ladders or streams)})
    return Variant(
        ruleset=ruleset.name, settings=settings, ladders=tuple(simulated), published=published, left_out=left_out
    )


def list_left_out(ladders: Iterable[SimulatedLadder], names: Collection[str]) -> tuple[str, ...]:
    """Return the requested ladders that could not be replayed."""
    return tuple(sorted({*names} - {ladder.summary.ladder for ladder in ladders}))


def build_no_games_error(ruleset: Ruleset, ladder: str, names: Collection[str]) -> Unknown:
    """Build the error for a ladder without games under a ruleset; `names` are the ladders that have games."""
    listed = ", ".join(sorted(names)[:5]) + (" ..." if len(names) > 5 else "")
    if len(names) > 1:
        hint = f"the ladders with games are {listed}"
    else:
        hint = f"the only ladder with games is {listed}" if names else "no ladder has games under it"
    return Unknown(None, f"{ladder} has no games under {ruleset.name}; {hint}")


def compare_simulated_ladders(
    lookups: LogLookups, now: Ladders, hypothetical: Ladders, ruleset_id: str, only: Collection[str], failed: list[str]
) -> tuple[list[SimulatedLadder], tuple[DifferingList, ...]]:
    """Compare a ruleset's ladders, or those in `only`, with the hypothetical ones; also return the differing lists.

    The reasons of failed replays are appended to `failed`. A ladder that fails under the hypothetical ruleset is left
    out.
    """
    impact = compute_impact_between(lookups, now, hypothetical, {f"ruleset:{ruleset_id}"}, only)
    before = now.streams(ruleset_id) if ruleset_id in now.facts.rulesets else {}
    failed += impact.failed
    summaries = {summary.ladder: summary for summary in impact.ladders}
    ladders, streams = [], hypothetical.streams(ruleset_id)
    requested_streams = {name: stream for name, stream in streams.items() if name in (only or streams)}
    for name in sorted(summaries.keys() | requested_streams.keys()):
        current = before.get(name) if name in requested_streams else None
        old, new = ReplayedLadder(now, current), ReplayedLadder(hypothetical, requested_streams.get(name))
        qualities = (_try_measure_quality(old), _try_measure_quality(new))
        failed += [
            lookups.describe_failure(problem, now.facts) for problem in qualities if isinstance(problem, RuleFailure)
        ]
        # without any message, no replay failed
        if failed and not new.can_be_replayed:
            continue
        quality_pair = QualityPair(*(None if isinstance(quality, RuleFailure) else quality for quality in qualities))
        changes = tuple(effect for effect in impact.changes if effect.ladder == name)
        unchanged = ImpactSummary(
            ladder=name, players=0, ranks=0, up=None, down=None, swapped=0, entering=(), leaving=()
        )
        ladders.append(SimulatedLadder(summaries.get(name, unchanged), quality_pair, changes))
    return ladders, impact.published


def _try_measure_quality(ladder: ReplayedLadder) -> Quality | RuleFailure | None:
    """Return the prediction quality of a ladder, the failure of its replay, or None if nothing can be measured."""
    try:
        return ladder.measure_quality()
    except RuleFailure as failure:
        return failure


Data = dict[str, Any]


def build_variants(data: Data, changed: Mapping[str, Sequence[str]]) -> list[tuple[dict[str, str], Data]]:
    """Return (settings, data of the ruleset) for each combination of the values of dotted keys.

    A value is parsed as a whole number, true or false if possible, else as text; if the key has text now, the value is
    text, too. An empty value removes the key. Raises `Refused` (bad-value) for a key that has a list or a table now, or
    whose section is not a table.
    """
    variants: list[tuple[dict[str, str], Data]] = [({}, data)]
    for key, values in changed.items():
        variants = [
            ({**settings, key: value}, _set_value(tables, key, value))
            for settings, tables in variants
            for value in values
        ]
    return variants


def _set_value(data: Data, key: str, value: str) -> Data:
    """Return a copy of nested tables with a dotted key set to a value. Raises `Refused`."""
    name, _, inner_key = key.partition(".")
    section = data.get(name, {} if inner_key else None)
    if inner_key and not isinstance(section, dict):
        raise Refused("bad-value", f"{quote(name)} is not a table, so it has no {quote(key)}; set {quote(name)}")
    if not inner_key and isinstance(section, (dict, list)):
        raise Refused("bad-value", f"{quote(name)} has several values; change them in a file")
    remaining = {member: content for member, content in data.items() if member != name}
    if inner_key:
        return {**remaining, name: _set_value(section or {}, inner_key, value)}
    return {**remaining, name: value if isinstance(section, str) else _parse_value(value)} if value else remaining


def _parse_value(text: str) -> int | str | bool:
    if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    return {"true": True, "false": False}.get(text, text)
