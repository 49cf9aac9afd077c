"""The published rulesets: their versions, and from when until when each of them scores."""

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
from ratings_ledger.ledger.store.log import read_events_of_type, read_records_at, read_where, withdrawn_ids
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.results import ABSENT, FROM, HIDDEN, SPREAD, Absent, Answer, Result, Rows
from ratings_ledger.projections.rulesets.assumptions import assumptions_of
from ratings_ledger.projections.rulesets.shipped_rulesets import shipped_rulesets
from ratings_ledger.projections.rulesets.versions import Version, bind, in_force, newest


@dataclass(frozen=True, slots=True)
class RulesetRow(Result):
    """A published version, how many of its values are assumed, and its event.

    `in_force` is yes or no; `withdrawn` is the position of the event that withdraws the version, or None.
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
    """The published versions, as they were recorded."""

    rows: tuple[RulesetRow, ...]


@dataclass(frozen=True, slots=True)
class ShippedRow(Result):
    """A ruleset that comes with this program: its name for `rules publish --shipped`, and what its newest version says.

    `published` is `init` or `on request`. `games` are those that it rates, none if the game is chosen when it is
    published.
    """

    id: str
    versions: tuple[str, ...]
    rule: str
    published: str
    games: tuple[str, ...]
    description: str
    source: str


@dataclass(frozen=True, slots=True)
class ShippedRulesets(Rows[ShippedRow]):
    """The rulesets that come with this program, whether the ledger has them or not."""

    rows: tuple[ShippedRow, ...]


@dataclass(frozen=True, slots=True)
class ScoringDays(Result):
    """From which day until before which other day a version scores, or `why` it never does; and its event."""

    version: str
    since: str | Absent = field(metadata=FROM)
    until: str | Absent | None
    position: int
    recorded_at: str
    by: str
    why: str | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RulesetState(Answer):
    """What a version says, which versions its ruleset has, and when each of them scores.

    `ruleset` is the version itself, published at `position` by `by`; `between` tells what becomes of points and ranks
    between versions, None if the version does not run here. `in_words` are the paragraphs of what its rule does, and
    `earlier` is the version that was published before it. `withdrawn` says at which position the version was
    withdrawn and where it can still be queried; it is empty for a live version.
    """

    data: dict[str, Any] = field(metadata=SPREAD)
    versions: tuple[str, ...]
    known_at: int
    timeline: tuple[ScoringDays, ...]
    never_in_force: tuple[ScoringDays, ...]
    ruleset: Ruleset = field(metadata=HIDDEN, kw_only=True)
    position: int = field(metadata=HIDDEN, kw_only=True)
    by: str = field(metadata=HIDDEN, kw_only=True)
    between: str | None = field(metadata=HIDDEN, kw_only=True)
    in_words: tuple[str, ...] = field(metadata=HIDDEN, kw_only=True)
    earlier: Ruleset | None = field(metadata=HIDDEN, kw_only=True)
    withdrawn: str = field(metadata=HIDDEN, kw_only=True)

    @property
    def differences(self) -> list[tuple[str, str | None, str | None]]:
        """Return every key that says something else than in the earlier version: there, and here; None for nothing."""
        if self.earlier is None:
            return []
        there, here = (
            {
                key: value
                for key, value in _keys_in(one.model_dump(mode="json", exclude={"version"}, exclude_none=True))
                if value
            }
            for one in (self.earlier, self.ruleset)
        )
        return [(key, there.get(key), here.get(key)) for key in there | here if there.get(key) != here.get(key)]

    @property
    def keys(self) -> list[tuple[str, str, str]]:
        """Return every key with its value and, if that is assumed, why; those in tables, as TABLE.KEY, come last."""
        rows = sorted(_keys_in(self.data), key=lambda row: ("." in row[0], row[0]))
        return [(key, value, _assumption(assumptions_of(self.ruleset), key)) for key, value in rows]


def _keys_in(data: dict[str, Any], table: str = "") -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if isinstance(value, dict) and key != "assumed":
            yield from _keys_in(value, f"{table}{key}.")
        elif key != "assumed":
            yield table + key, ", ".join(map(_written, value)) if isinstance(value, list) else _written(value)


def _written(value: object) -> str:
    """Return a value as it stands in TOML, without quotation marks."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _assumption(assumed: dict[str, str], key: str) -> str:
    """Return why a value is assumed: its own key or that of a table it stands in, such as points of params.points.4."""
    return next((assumed[part] for part in reversed(key.split(".")) if part in assumed), "")


class RecordedVersion(NamedTuple):
    """A published version: bound to its rule, if that runs here and the version is live, with the record of its event.

    `withdrawn` is the position of the event that withdraws it, or None.
    """

    position: int
    ruleset: Ruleset
    bound: Version | None
    event: dict[str, Any]
    withdrawn: int | None

    @property
    def source(self) -> tuple[int, str, str]:
        """Return where it is in the log, when it was recorded, and by whom."""
        return self.position, self.event["recorded_at"], self.event["by"]


def _read_versions(connection: Connection, until: int) -> list[RecordedVersion]:
    """Return the versions published up to a position, in the order of the log, withdrawn ones included."""
    published = read_events_of_type(
        "ruleset.published", read_where(connection, until=until, type_name="ruleset.published")
    )
    records = read_records_at(connection, [event.position or 0 for event in published])
    withdrawn = withdrawn_ids(connection, until)
    versions = []
    for event, position in zip(published, sorted(records), strict=True):
        ruleset, withdrawn_at = Ruleset.model_validate(event.data), withdrawn.get(event.event_id)
        bound = bind(ruleset, position)[0] if withdrawn_at is None else None
        versions.append(RecordedVersion(position, ruleset, bound, json.loads(records[position]), withdrawn_at))
    return versions


def list_shipped() -> ShippedRulesets:
    """Return the rulesets that come with this program."""
    return ShippedRulesets(
        tuple(
            ShippedRow(
                id=one.id,
                versions=one.versions,
                rule=one.rule,
                published="on request" if one.on_request else "init",
                games=() if one.takes_game else one.games,
                description=one.description,
                source=one.source,
            )
            for one in shipped_rulesets().values()
        )
    )


def all_rulesets(connection: Connection, until: int) -> AllRulesets:
    """Return the versions published up to a position; in force is what scores games that end now."""
    versions, now = _read_versions(connection, until), clock.now()
    rows = []
    for position, ruleset, _, event, withdrawn in versions:
        bound = (version.bound for version in versions if version.bound and version.ruleset.id == ruleset.id)
        current = in_force(bound, now)
        rows.append(
            RulesetRow(
                ruleset.name,
                ruleset.rule,
                ruleset.effective_from or "only by --rules",
                "yes" if current is not None and current.position == position else "no",
                len(ruleset.assumed),
                position,
                event["by"],
                withdrawn,
            )
        )
    return AllRulesets(tuple(rows))


def ruleset_state(connection: Connection, name: str, until: int, times: Times) -> RulesetState:
    """Return the version of this name, ID@VERSION, or the newest in force of a ruleset, ID.

    Raises `BadArgument` if none is published.
    """
    ruleset_id, _, version = name.partition("@")
    versions = _read_versions(connection, until)
    published = [recorded for recorded in versions if recorded.ruleset.id == ruleset_id]
    known = [recorded for recorded in published if recorded.withdrawn is None]
    # a version may be withdrawn and published again
    chosen = next((recorded for recorded in known + published if recorded.ruleset.version == version), None)
    if published and not version:
        usable = [recorded.bound for recorded in known if recorded.bound]
        position = newest(usable).position if usable else (known or published)[-1].position
        chosen = next(recorded for recorded in published if recorded.position == position)
    if chosen is None:
        hint = did_you_mean(name, [one.ruleset.name if version else one.ruleset.id for one in versions])
        told = f"no ruleset {quote(name)} is published at position {until}; see: ratings rules list{hint}"
        raise BadArgument(told, "name")
    return RulesetState(
        chosen.event["data"],
        tuple(one.ruleset.version for one in known),
        until,
        _timeline(known),
        _never(published),
        ruleset=chosen.ruleset,
        position=chosen.position,
        by=chosen.event["by"],
        between=chosen.bound and chosen.bound.ranking.by,
        times=times,
        in_words=_in_words(chosen.bound),
        earlier=next((one.ruleset for one in reversed(known) if one.position < chosen.position), None),
        withdrawn=_describe_withdrawal(chosen),
    )


def _describe_withdrawal(version: RecordedVersion) -> str:
    """Return where a version was withdrawn and where it can still be queried; nothing for a live one."""
    at = version.withdrawn
    return "" if at is None else f"withdrawn at position {at}; --known-at {at - 1} queries it"


def _in_words(version: Version | None) -> tuple[str, ...]:
    """Return what a rule does: the paragraphs at the beginning of its module; formulas are indented."""
    module = "" if version is None else getattr(version.rule.score, "__module__", "")
    told = getattr(sys.modules.get(module), "__doc__", None)
    return tuple(cleandoc(told or "").split("\n\n")) if told else ()


def _timeline(known: Sequence[RecordedVersion]) -> tuple[ScoringDays, ...]:
    """From which day until before which other day each version scores, in its ruleset's zone."""
    # of versions with the same day, the last one is used
    latest = {one.ruleset.effective_from: one for one in known if one.ruleset.effective_from is not None}
    days = sorted(latest)
    return tuple(
        ScoringDays(latest[day].ruleset.version, day, following, *latest[day].source)
        for day, following in zip_longest(days, days[1:])
    )


def _never(published: Sequence[RecordedVersion]) -> tuple[ScoringDays, ...]:
    """Return the versions that score no games by themselves, with the reason."""
    found = []
    for index, one in enumerate(published):
        day = one.ruleset.effective_from
        later = [
            other.ruleset.version
            for other in published[index + 1 :]
            if other.ruleset.effective_from == day and other.withdrawn is None
        ]
        if one.withdrawn is not None:
            why = _describe_withdrawal(one)
        elif day is None:
            why = "it has no day, and is used only by --rules"
        elif later:
            why = f"replaced on the same day by {later[-1]}, recorded later"
        else:
            continue
        found.append(ScoringDays(one.ruleset.version, ABSENT, ABSENT, *one.source, why))
    return tuple(found)
