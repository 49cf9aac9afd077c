"""What the ladders say of a new event before it is appended: the checks that need rulesets.

A game that a ladder's scope admits but its rule cannot score, a ruleset that cannot be used, an adjustment that fits no
ladder. Rulesets published earlier in the same import count.
"""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from ledger.appending import version_exists
from ledger.canonical import format_instant
from ledger.events import Ruleset
from ledger.rejections import Refused, shown
from ledger.store import head, read_live
from projections.facts import Facts, RuleFailure, apply
from projections.ladders import parse_name, partition_values, refuse_name
from projections.rulesets import Version, bind, in_force, read_ruleset, refuse_sequel
from projections.scope import counted, why_not_scored, why_out_of_scope


class Admission:
    """The live rulesets, asked about one new event after the other (`ledger.judging.Ladders`)."""

    def __init__(self, connection: Connection, allow_uncounted: bool = False) -> None:
        self.allow_uncounted = allow_uncounted
        self.versions: dict[str, list[Version]] = {}
        self._unusable: dict[str, str] = {}
        self._connection = connection
        self._until = head(connection).position
        # how often each ruleset's ladders are adjusted by what waits
        self._adjusted: Counter[str] = Counter()
        for position, record in read_live(connection, until=self._until, type_name="ruleset.published"):
            ruleset = Ruleset.model_validate(json.loads(record)["data"])
            version, problems = bind(ruleset, position)
            if version is not None:
                self._add(version)
            else:
                self._unusable[ruleset.id] = f"{ruleset.name} cannot be used here: {problems[0].message}"

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Raises `Refused` if the ladders cannot take the event; else it counts for what comes behind it."""
        if type_name == "game.recorded" and not self.allow_uncounted:
            self._game(occurred_at, data)
        elif type_name == "points.adjusted":
            self._adjustment(data)
            self._adjusted[parse_name(data["ladder"]).ruleset_id] += 1
        elif type_name == "ruleset.published":
            self._add(self._ruleset(data))

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Raises `Refused` (still-needed) if an event cannot be taken back; else it is gone for what comes behind."""
        if type_name == "points.adjusted":
            self._adjusted[parse_name(data["ladder"]).ruleset_id] -= 1
        if type_name != "ruleset.published":
            return
        left = [v for v in self.versions.get(data["id"], ()) if v.ruleset.version != data["version"]]
        if not left and (count := self._adjustments_of(data["id"])):
            raise Refused(
                "still-needed",
                f"{data['id']}@{data['version']} is the only version of its ruleset, whose ladders have {count} "
                "adjustments; void those first",
            )
        self.versions[data["id"]] = left
        if not left:
            del self.versions[data["id"]]

    def _adjustments_of(self, ruleset_id: str) -> int:
        found = read_live(self._connection, until=self._until, type_name="points.adjusted")
        ladders = (json.loads(record)["data"]["ladder"] for _, record in found)
        return sum(parse_name(name).ruleset_id == ruleset_id for name in ladders) + self._adjusted[ruleset_id]

    def _add(self, version: Version) -> None:
        self.versions.setdefault(version.ruleset.id, []).append(version)

    def _game(self, occurred_at: int, data: dict[str, Any]) -> None:
        facts: Facts | None = None
        for versions in self.versions.values():
            version = in_force(versions, occurred_at)
            if version is None or data["game"] not in version.ruleset.scope.game:
                continue
            if version.rule.check is None and "season" not in version.ruleset.partition.by:
                continue
            facts = facts or one_game(occurred_at, data)
            if why_out_of_scope(facts, 0, version.ruleset) is not None:
                continue
            participants = counted(facts, 0, version)
            # too few counted players is no fault of the game
            enough = len(participants) >= version.rule.counted_min
            try:
                reason = why_not_scored(facts, 0, version, participants) if enough else None
            except RuleFailure as problem:
                reason = f"its rule {version.rule.id} fails: {problem}"
            ladders = ["/".join((version.ruleset.id, *v)) for v in partition_values(facts, 0, version.ruleset)]
            if reason is not None and ladders:
                raise Refused(
                    "uncounted", f"{ladders[0]} cannot count this game: {reason} (--allow-uncounted records it)"
                )

    def _adjustment(self, data: dict[str, Any]) -> None:
        name = parse_name(data["ladder"])
        versions = self.versions.get(name.ruleset_id)
        if name.ruleset_id in self._unusable:
            raise Refused("bad-ruleset", f"{shown(data['ladder'])}: {self._unusable[name.ruleset_id]}")
        if versions is None:
            raise Refused(
                "unknown-ladder", f"no ruleset is called {shown(name.ruleset_id)} (ladder {shown(data['ladder'])})"
            )
        if reason := refuse_name(name, versions[0].ruleset):
            raise Refused("unknown-ladder", f"{shown(data['ladder'])} is no ladder: {reason}")
        if versions[0].rule.ranking in ("period", "annual"):
            raise Refused(
                "ladder-not-adjustable", f"{data['ladder']} is a list of a month or year, whose points are not adjusted"
            )
        scale = versions[0].rule.scale
        points = Decimal(data["points"])
        if points * scale != int(points * scale):
            step = "whole points" if scale == 1 else f"steps of 1/{scale} point"
            raise Refused("finer-than-scale", f"{data['ladder']} counts in {step}; {points} is finer")
        if abs(points) > 1_000_000_000:
            raise Refused("out-of-range", f"an adjustment is at most 1,000,000,000 points, not {points}")

    def _ruleset(self, data: dict[str, Any]) -> Version:
        ruleset, problems = read_ruleset(data)
        if ruleset is None:
            raise Refused("bad-ruleset", f"{problems[0].key}: {problems[0].message}")
        version, _ = bind(ruleset, 2**62 + sum(map(len, self.versions.values())))
        assert version is not None
        for published in self.versions.get(ruleset.id, ()):
            if published.ruleset.version == ruleset.version:
                rejection = version_exists(ruleset)
                raise Refused(rejection.code, rejection.message)
            if problem := refuse_sequel(version, published):
                raise Refused("partition-changed", f"{problem.key}: {problem.message}")
        return version


def one_game(occurred_at: int, data: dict[str, Any]) -> Facts:
    """Facts that hold one game that is not recorded yet."""
    facts = Facts(0, b"")
    event = {"type": "game.recorded", "schema_version": 1, "occurred_at": format_instant(occurred_at), "data": data}
    apply(facts, 1, event)
    return facts
