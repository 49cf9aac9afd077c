"""What the ladders say of a new event before it is appended: the checks that need rulesets.

A game that a ladder's scope admits but its rule cannot score, a ruleset that cannot be used, an adjustment that fits no
ladder. Rulesets published earlier in the same import count.
"""

import json
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from ledger.canonical import format_instant
from ledger.events import Ruleset
from ledger.rejections import Refused, shown
from ledger.store import head, read_where, version_exists
from projections.facts import Facts, apply
from projections.ladders import counted, parse_name, partition_values, refuse_name, why_not_scored, why_out_of_scope
from projections.rulesets import Version, bind, in_force, read_ruleset, refuse_sequel


class Admission:
    """The published rulesets, asked about one new event after the other."""

    def __init__(self, connection: Connection, allow_uncounted: bool = False) -> None:
        self.allow_uncounted = allow_uncounted
        self.versions: dict[str, list[Version]] = {}
        for position, record in read_where(connection, until=head(connection).position, type_name="ruleset.published"):
            version, _ = bind(Ruleset.model_validate(json.loads(record)["data"]), position)
            if version is not None:
                self._add(version)

    def __call__(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> Refused | None:
        """Why the event is refused, or None."""
        if type_name == "game.recorded":
            return None if self.allow_uncounted else self._game(occurred_at, data)
        if type_name == "points.adjusted":
            return self._adjustment(data)
        return self._ruleset(data) if type_name == "ruleset.published" else None

    def _add(self, version: Version) -> None:
        self.versions.setdefault(version.ruleset.id, []).append(version)

    def _game(self, occurred_at: int, data: dict[str, Any]) -> Refused | None:
        facts: Facts | None = None
        for versions in self.versions.values():
            version = in_force(versions, occurred_at)
            if version is None or version.rule.check is None or data["game"] not in version.ruleset.scope.game:
                continue
            facts = facts or one_game(occurred_at, data)
            if why_out_of_scope(facts, 0, version.ruleset) is not None:
                continue
            participants = counted(facts, 0, version)
            # too few counted players is no fault of the game
            reason = why_not_scored(facts, 0, version, participants) if len(participants) > 1 else None
            ladders = ["/".join((version.ruleset.id, *v)) for v in partition_values(facts, 0, version.ruleset)]
            if reason is not None and ladders:
                return Refused(
                    "uncounted", f"{ladders[0]} cannot count this game: {reason} (--allow-uncounted records it)"
                )
        return None

    def _adjustment(self, data: dict[str, Any]) -> Refused | None:
        name = parse_name(data["ladder"])
        versions = self.versions.get(name.ruleset_id)
        if versions is None:
            return Refused(
                "unknown-ladder", f"no ruleset is called {shown(name.ruleset_id)} (ladder {shown(data['ladder'])})"
            )
        if reason := refuse_name(name, versions[0].ruleset):
            return Refused("unknown-ladder", f"{shown(data['ladder'])} is no ladder: {reason}")
        scale = versions[0].rule.scale
        points = Decimal(data["points"])
        if points * scale != int(points * scale):
            return Refused(
                "finer-than-scale", f"{data['ladder']} counts in steps of 1/{scale} point; {points} is finer"
            )
        if abs(points) > 1_000_000_000:
            return Refused("out-of-range", f"an adjustment is at most 1,000,000,000 points, not {points}")
        return None

    def _ruleset(self, data: dict[str, Any]) -> Refused | None:
        ruleset, problems = read_ruleset(data)
        if ruleset is None:
            return Refused("bad-ruleset", f"{problems[0].key}: {problems[0].message}")
        version, _ = bind(ruleset, 2**62 + sum(map(len, self.versions.values())))
        assert version is not None
        for published in self.versions.get(ruleset.id, ()):
            if published.ruleset.version == ruleset.version:
                rejection = version_exists(ruleset)
                return Refused(rejection.code, rejection.message)
            if problem := refuse_sequel(version, published):
                return Refused("partition-changed", f"{problem.key}: {problem.message}")
        self._add(version)
        return None


def one_game(occurred_at: int, data: dict[str, Any]) -> Facts:
    """Facts that hold one game that is not recorded yet."""
    facts = Facts(0, b"")
    event = {"type": "game.recorded", "schema_version": 1, "occurred_at": format_instant(occurred_at), "data": data}
    apply(facts, 1, event)
    return facts
