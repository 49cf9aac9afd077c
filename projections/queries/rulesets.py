"""The published rulesets: their versions, and from when until when each of them scores."""

import json
import sys
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger import clock
from ledger.errors import BadArgument
from ledger.events.types import Ruleset
from ledger.rejections import did_you_mean, shown
from ledger.store.log import read_live, read_records_at
from projections.queries.answers_recorded import AllRulesets, RulesetRow, RulesetState, ScoringDays
from projections.queries.coordinates import Times
from projections.queries.results import ABSENT
from projections.rulesets.versions import Version, bind, in_force, newest


class LiveVersion(NamedTuple):
    """A version that is live: bound to its rule, if that runs here, and with the record of its event."""

    position: int
    ruleset: Ruleset
    bound: Version | None
    event: dict[str, Any]

    @property
    def source(self) -> tuple[int, str, str]:
        """Where it is in the log, when it was recorded, and by whom."""
        return self.position, self.event["recorded_at"], self.event["by"]


def _live(connection: Connection, until: int) -> list[LiveVersion]:
    """The versions that are live at a position, in the order of the log."""
    found = read_live(connection, until=until, type_name="ruleset.published")
    records = read_records_at(connection, [event.position or 0 for event in found])
    live = []
    for event, position in zip(found, sorted(records), strict=True):
        ruleset = Ruleset.model_validate(event.data)
        live.append(LiveVersion(position, ruleset, bind(ruleset, position)[0], json.loads(records[position])))
    return live


def all_rulesets(connection: Connection, until: int) -> AllRulesets:
    """The versions published up to a position; in force is what scores games that end now."""
    live, now = _live(connection, until), clock.now()
    rows = []
    for position, ruleset, _, event in live:
        current = in_force((one.bound for one in live if one.bound and one.ruleset.id == ruleset.id), now)
        rows.append(
            RulesetRow(
                ruleset.name, ruleset.rule, ruleset.effective_from or "only by --rules",
                "yes" if current is not None and current.position == position else "no",
                len(ruleset.assumed), position, event["by"],
            )
        )  # fmt: skip
    return AllRulesets(tuple(rows))


def ruleset_state(connection: Connection, name: str, until: int, times: Times) -> RulesetState:
    """The version of this name, ID@VERSION, or the newest in force of a ruleset, ID.

    Raises `BadArgument` if none is published.
    """
    ruleset_id, _, version = name.partition("@")
    live = _live(connection, until)
    known = [one for one in live if one.ruleset.id == ruleset_id]
    chosen = next((one for one in known if one.ruleset.version == version), None)
    if known and not version:
        usable = [one.bound for one in known if one.bound]
        position = newest(usable).position if usable else known[-1].position
        chosen = next(one for one in known if one.position == position)
    if chosen is None:
        hint = did_you_mean(name, [one.ruleset.name if version else one.ruleset.id for one in live])
        told = f"no ruleset {shown(name)} is published at position {until}; see: ratings rules list{hint}"
        raise BadArgument(told, "name")
    return RulesetState(
        chosen.event["data"], tuple(one.ruleset.version for one in known), until, _timeline(known), _never(known),
        ruleset=chosen.ruleset, position=chosen.position, by=chosen.event["by"],
        between=chosen.bound and chosen.bound.ranking.by, times=times, in_words=_in_words(chosen.bound),
        earlier=known[known.index(chosen) - 1].ruleset if chosen != known[0] else None,
    )  # fmt: skip


def _in_words(version: Version | None) -> tuple[str, ...]:
    """What a rule does: the paragraphs at the beginning of its module; formulas are indented."""
    module = "" if version is None else getattr(version.rule.score, "__module__", "")
    told = getattr(sys.modules.get(module), "__doc__", None)
    return tuple(cleandoc(told or "").split("\n\n")) if told else ()


def _timeline(known: Sequence[LiveVersion]) -> tuple[ScoringDays, ...]:
    """From which day until before which other day each version scores, in its ruleset's zone."""
    # of versions with the same day, the last one is used
    latest = {one.ruleset.effective_from: one for one in known if one.ruleset.effective_from is not None}
    days = sorted(latest)
    return tuple(
        ScoringDays(latest[day].ruleset.version, day, following, *latest[day].source)
        for day, following in zip(days, [*days[1:], None], strict=True)
    )


def _never(known: Sequence[LiveVersion]) -> tuple[ScoringDays, ...]:
    """The versions that score no games by themselves, with the reason."""
    found = []
    for index, one in enumerate(known):
        day = one.ruleset.effective_from
        later = [other.ruleset.version for other in known[index + 1 :] if other.ruleset.effective_from == day]
        if day is None:
            why = "it has no day, and is used only by --rules"
        elif later:
            why = f"replaced on the same day by {later[-1]}, recorded later"
        else:
            continue
        found.append(ScoringDays(one.ruleset.version, ABSENT, ABSENT, *one.source, why))
    return tuple(found)
