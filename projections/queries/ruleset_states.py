"""Describe the published rulesets: their versions, and the days on which each version scores."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from itertools import zip_longest
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.ledger.store.log import (
    find_withdrawn_ids,
    read_events_of_type,
    read_matching_records,
    read_records_at,
)
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, INLINE, NAMED_FROM, Absent, Answer, Result, Rows
from ratings_ledger.projections.replay.eligibility import rates_teams
from ratings_ledger.projections.rulesets.registry import find_rule
from ratings_ledger.projections.rulesets.shipped_rulesets import shipped_rulesets
from ratings_ledger.projections.rulesets.versions import Version, assumptions_of, bind, in_force, newest


@dataclass(frozen=True, slots=True)
class RulesetRow(Result):
    """A published version, the number of its assumed values, and the position and author of its event.

    `effective_from` is a day, or `only by --rules` for a version without one. `in_force` is yes or no. `withdrawn` is
    the position of the event that withdraws the version, or None.
    """

    version: str
    rule: str
    effective_from: str
    in_force: str
    assumed: int
    position: int
    by: str
    withdrawn: int | None = None


@dataclass(frozen=True, slots=True)
class AllRulesets(Rows[RulesetRow]):
    """The published versions, in the order of the log."""

    rows: tuple[RulesetRow, ...]


@dataclass(frozen=True, slots=True)
class ShippedRow(Result):
    """A ruleset that ships with this program, described by its newest version.

    `id` is its name for `ratings rules publish --shipped`. `published` is `init` if `ratings init` publishes it,
    otherwise `on request`. `games` has the names of the games that it rates, and is empty if the user chooses the game.
    `teams` tells whether it rates partners as one side.
    """

    id: str
    versions: tuple[str, ...]
    rule: str
    published: str
    games: tuple[str, ...]
    description: str
    source: str
    teams: bool


@dataclass(frozen=True, slots=True)
class ShippedRulesets(Rows[ShippedRow]):
    """The rulesets that ship with this program, whether they are published in the ledger or not."""

    rows: tuple[ShippedRow, ...]


@dataclass(frozen=True, slots=True)
class ScoringDays(Result):
    """The half-open range of days on which a version scores, or the reason why it never scores, and its event."""

    version: str
    since: str | Absent = field(metadata=NAMED_FROM)
    until: str | Absent | None
    position: int
    recorded_at: str
    by: str
    why: str | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RulesetState(Answer):
    """A version of a ruleset, with the ruleset's live versions and the days on which each scores.

    `never_in_force` has the versions that never score, including withdrawn ones. `ruleset` is the version itself,
    published at `position` by `by`. `version_note` says what happens to points and ranks when the version changes, or
    why the version cannot be used here. `in_words` has paragraphs that describe the rule. `earlier` is the last live
    version published before this one. `withdrawn` says at which position the version was withdrawn and at which it can
    still be used; it is empty for a live version.
    """

    data: dict[str, Any] = field(metadata=INLINE)
    versions: tuple[str, ...]
    known_at: int
    timeline: tuple[ScoringDays, ...]
    never_in_force: tuple[ScoringDays, ...]
    ruleset: Ruleset = field(metadata=HIDDEN, kw_only=True)
    position: int = field(metadata=HIDDEN, kw_only=True)
    by: str = field(metadata=HIDDEN, kw_only=True)
    version_note: str = field(metadata=HIDDEN, kw_only=True)
    in_words: tuple[str, ...] = field(metadata=HIDDEN, kw_only=True)
    earlier: Ruleset | None = field(metadata=HIDDEN, kw_only=True)
    withdrawn: str = field(metadata=HIDDEN, kw_only=True)

    @property
    def differences(self) -> list[tuple[str, str | None, str | None]]:
        """Return (key, earlier value, value) for each key whose value changed; None stands for a missing key."""
        if self.earlier is None:
            return []
        before, after = (
            {
                key: value
                for key, value in _list_keys(ruleset.model_dump(mode="json", exclude={"version"}, exclude_none=True))
                if value
            }
            for ruleset in (self.earlier, self.ruleset)
        )
        return [(key, before.get(key), after.get(key)) for key in before | after if before.get(key) != after.get(key)]

    @property
    def keys(self) -> list[tuple[str, str, str]]:
        """Return (key, value, assumption) for each key; keys in tables (TABLE.KEY) come last.

        The assumption is the reason why the value is assumed, or an empty string.
        """
        rows = sorted(_list_keys(self.data), key=lambda row: ("." in row[0], row[0]))
        return [(key, value, _find_assumption(assumptions_of(self.ruleset), key)) for key, value in rows]


def _list_keys(data: dict[str, Any], table: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of a ruleset, including those in nested tables, with their values as text."""
    for key, value in data.items():
        if isinstance(value, dict) and key != "assumed":
            yield from _list_keys(value, f"{table}{key}.")
        elif key != "assumed":
            yield table + key, ", ".join(map(_format_value, value)) if isinstance(value, list) else _format_value(value)


def _format_value(value: object) -> str:
    """Return a value as in TOML, without quotation marks."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _find_assumption(assumed: dict[str, str], key: str) -> str:
    """Return the reason why a value is assumed, or an empty string.

    The reason may be stated for any part of the key: a reason for `points` also applies to params.points.4.
    """
    return next((assumed[part] for part in reversed(key.split(".")) if part in assumed), "")


class RecordedVersion(NamedTuple):
    """A published version with its event.

    `bound` is the version bound to its rule, None if the version is withdrawn or cannot be used here. `problem` is why
    it cannot be used here, or an empty string. `withdrawn_at` is the position of the event that withdraws the version,
    or None.
    """

    position: int
    ruleset: Ruleset
    bound: Version | None
    problem: str
    event: dict[str, Any]
    withdrawn_at: int | None

    @property
    def source(self) -> tuple[int, str, str]:
        """Return the position, time of recording and author of the event."""
        return self.position, self.event["recorded_at"], self.event["by"]


def _read_versions(connection: Connection, until: int) -> list[RecordedVersion]:
    """Return the versions published up to a position, including withdrawn ones, in the order of the log."""
    publications = read_events_of_type(
        "ruleset.published", read_matching_records(connection, until=until, type_name="ruleset.published")
    )
    records = read_records_at(connection, [event.position or 0 for event in publications])
    withdrawal_positions = find_withdrawn_ids(connection, until)
    versions = []
    for event, position in zip(publications, sorted(records), strict=True):
        ruleset, withdrawn_at = Ruleset.model_validate(event.data), withdrawal_positions.get(event.event_id)
        bound, problems = bind(ruleset, position) if withdrawn_at is None else (None, [])
        versions.append(
            RecordedVersion(
                position=position,
                ruleset=ruleset,
                bound=bound,
                problem=f"{problems[0].key}: {problems[0].message}" if problems else "",
                event=json.loads(records[position]),
                withdrawn_at=withdrawn_at,
            )
        )
    return versions


def list_shipped() -> ShippedRulesets:
    """Return the rulesets that ship with this program."""
    return ShippedRulesets(
        tuple(
            ShippedRow(
                id=shipped.id,
                versions=shipped.versions,
                rule=shipped.rule,
                published="on request" if shipped.on_request else "init",
                games=() if shipped.takes_game else shipped.games,
                description=shipped.description,
                source=shipped.source,
                teams=(installed_rule := find_rule(shipped.rule)) is not None and rates_teams(installed_rule),
            )
            for shipped in shipped_rulesets().values()
        )
    )


def load_rulesets(connection: Connection, until: int) -> AllRulesets:
    """Return the versions published up to a position, and mark those that score games ending now as in force."""
    versions, now = _read_versions(connection, until), clock.now()
    rows = []
    for position, ruleset, _, _, event, withdrawn_at in versions:
        bound = (version.bound for version in versions if version.bound and version.ruleset.id == ruleset.id)
        current = in_force(bound, now)
        rows.append(
            RulesetRow(
                version=ruleset.name,
                rule=ruleset.rule,
                effective_from=ruleset.effective_from or "only by --rules",
                in_force="yes" if current is not None and current.position == position else "no",
                assumed=len(ruleset.assumed),
                position=position,
                by=event["by"],
                withdrawn=withdrawn_at,
            )
        )
    return AllRulesets(tuple(rows))


def load_ruleset_state(connection: Connection, name: str, until: int, times: TimeFormat) -> RulesetState:
    """Return a version given as ID@VERSION, or the newest usable version of a ruleset given as ID.

    If the ruleset has no usable version, return its last live version or, without one, the last version.

    Raises `BadArgument` for an unknown name.
    """
    ruleset_id, _, version = name.partition("@")
    versions = _read_versions(connection, until)
    published = [recorded for recorded in versions if recorded.ruleset.id == ruleset_id]
    live_versions = [recorded for recorded in published if recorded.withdrawn_at is None]
    # a version may have been withdrawn and published again; prefer the live one
    chosen = next((recorded for recorded in live_versions + published if recorded.ruleset.version == version), None)
    if published and not version:
        usable = [recorded.bound for recorded in live_versions if recorded.bound]
        position = newest(usable).position if usable else (live_versions or published)[-1].position
        chosen = next(recorded for recorded in published if recorded.position == position)
    if chosen is None:
        names = [recorded.ruleset.name if version else recorded.ruleset.id for recorded in versions]
        problem = f"no {'version' if version else 'ruleset'} {quote(name)} is published at position {until}"
        raise BadArgument(f"{problem}; see: ratings rules list{did_you_mean(name, names)}", "name")
    return RulesetState(
        data=chosen.event["data"],
        versions=tuple(recorded.ruleset.version for recorded in live_versions),
        known_at=until,
        timeline=_list_scoring_days(live_versions),
        never_in_force=_list_never_in_force(published),
        ruleset=chosen.ruleset,
        position=chosen.position,
        by=chosen.event["by"],
        version_note=_describe_version_change(chosen),
        times=times,
        in_words=_read_rule_description(chosen.bound),
        earlier=next(
            (recorded.ruleset for recorded in reversed(live_versions) if recorded.position < chosen.position), None
        ),
        withdrawn=_describe_withdrawal(chosen),
    )


def _describe_version_change(recorded: RecordedVersion) -> str:
    """Say what happens to points and ranks when a live version changes, or why it cannot be used here."""
    if recorded.problem:
        return f"This version cannot be used here: {recorded.problem}."
    return "" if recorded.bound is None else recorded.bound.ranking.version_note


def _describe_withdrawal(version: RecordedVersion) -> str:
    """Say at which position a version was withdrawn, and how to use it; return an empty string for a live version."""
    position = version.withdrawn_at
    return "" if position is None else f"withdrawn at position {position}; to use it, add --known-at {position - 1}"


def _read_rule_description(version: Version | None) -> tuple[str, ...]:
    """Return the paragraphs of the docstring of a rule's module. Formulas are indented."""
    module = "" if version is None else getattr(version.rule.score, "__module__", "")
    docstring = getattr(sys.modules.get(module), "__doc__", None)
    return tuple(cleandoc(docstring).split("\n\n")) if docstring else ()


def _list_scoring_days(versions: Sequence[RecordedVersion]) -> tuple[ScoringDays, ...]:
    """Return the half-open range of days on which each version scores, in the ruleset's zone."""
    # of several versions that take effect on the same day, the one recorded last scores
    latest = {
        recorded.ruleset.effective_from: recorded
        for recorded in versions
        if recorded.ruleset.effective_from is not None
    }
    days = sorted(latest)
    return tuple(
        ScoringDays(latest[day].ruleset.version, day, following, *latest[day].source)
        for day, following in zip_longest(days, days[1:])
    )


def _list_never_in_force(published: Sequence[RecordedVersion]) -> tuple[ScoringDays, ...]:
    """Return the versions that are never in force, each with the reason."""
    versions = []
    for index, recorded in enumerate(published):
        day = recorded.ruleset.effective_from
        replacements = [
            later.ruleset.version
            for later in published[index + 1 :]
            if later.ruleset.effective_from == day and later.withdrawn_at is None
        ]
        if recorded.withdrawn_at is not None:
            reason = _describe_withdrawal(recorded)
        elif day is None:
            reason = "it has no effective_from, and is used only with --rules"
        elif replacements:
            reason = f"replaced by {replacements[-1]}, which takes effect on the same day and was recorded later"
        else:
            continue
        versions.append(ScoringDays(recorded.ruleset.version, ABSENT, ABSENT, *recorded.source, reason))
    return tuple(versions)
