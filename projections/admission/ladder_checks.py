"""Check new events against the ledger's rulesets, before the events are appended.

Among other events, the checks refuse an invalid ruleset and an adjustment on an unknown ladder. They take account of
rulesets published earlier in the same import. The checks of games are in `game_checks`.
"""

import shlex
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.rulesets import build_version_exists_rejection
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import Refused, count, did_you_mean, quote
from ratings_ledger.ledger.store.log import read_live
from ratings_ledger.projections.admission.game_checks import NO_NOTES, GameChecks, GameNotes
from ratings_ledger.projections.admission.league_checks import refuse_inactive
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.game_clock.logs import Clocks
from ratings_ledger.projections.replay.ladder_names import find_ladder_name_problem, parse_name
from ratings_ledger.projections.rulesets.registry import BUILT_IN
from ratings_ledger.projections.rulesets.versions import (
    Version,
    bind,
    find_months_problem,
    find_sequel_problem,
    read_ruleset,
)

if TYPE_CHECKING:
    from ratings_ledger.projections.admission.seed_checks import SeedChecks


class Admission:
    """Checks of new events against the live rulesets; they implement `ledger.validation.validator.LadderChecks`."""

    def __init__(
        self,
        connection: Connection,
        until: int,
        *,
        allow_uncounted: bool = False,
        notes: GameNotes = NO_NOTES,
        facts: Callable[[Connection], Facts] | None = None,
    ) -> None:
        """Read the rulesets as of the position `until`.

        Args:
            connection: the open ledger.
            until: the last position to read.
            allow_uncounted: whether to accept games that a ladder cannot score.
            notes: the collectors of notes about the games.
            facts: a function that returns facts decoded earlier, as of any position.
        """
        self._league_notes = notes.leagues
        self._load_known_facts = facts
        self.versions: dict[str, list[Version]] = {}
        self._unusable: dict[str, str] = {}
        # by game: the reason why its ruleset cannot be used here
        unusable_games: dict[str, str] = {}
        self._connection = connection
        self._until = until
        # for each ruleset: the pending adjustments on its ladders, less the recorded ones that pending events withdraw
        self._pending_adjustments: Counter[str] = Counter()
        for event in read_live(connection, until=self._until, type_name="ruleset.published"):
            ruleset = Ruleset.model_validate(event.data)
            version, problems = bind(ruleset, event.position or 0)
            if version is not None:
                self.versions.setdefault(ruleset.id, []).append(version)
            else:
                self._unusable[ruleset.id] = f"{ruleset.name} cannot be used here: {problems[0].message}"
                unusable_games |= dict.fromkeys(ruleset.scope.game, self._unusable[ruleset.id])
        self._games = GameChecks(
            connection, until, self.versions, unusable_games, allow_uncounted=allow_uncounted, notes=notes
        )

    @cached_property
    def _seeds(self) -> "SeedChecks":
        # imported late, because it takes time and few events are seeds
        from ratings_ledger.projections.admission.seed_checks import SeedChecks

        return SeedChecks(self._connection, self._until, self._load_known_facts, self._games.pending_players)

    @cached_property
    def _clocks(self) -> Clocks:
        return Clocks(self._connection, self.versions, self._until)

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Check an event, and add it to the events that later checks consider. Raises `Refused`."""
        if type_name == "game.recorded":
            self._games.admit(occurred_at, data)
        elif type_name == "player.seeded":
            self._admit_seed(data)
        elif type_name == "points.adjusted":
            self._check_adjustment(data)
            self._pending_adjustments[parse_name(data["ladder"]).ruleset_id] += 1
        elif type_name in ("list.published", "list.scheduled"):
            versions = self._find_versions(data["ladder"])
            if type_name == "list.scheduled" and versions[0].ruleset.partition.is_by_time:
                problem = f"{data['ladder']} is the list of a month or year, which needs no schedule"
                raise Refused("schedule-exists", f"{problem}; once the period is over, run: ratings publish --due")
        elif type_name == "ruleset.published":
            self._add_version(self._check_ruleset(data))
        elif type_name == "league.joined":
            refuse_inactive(self.versions, occurred_at, data)
        elif type_name in CLOCK_TYPES:
            self._clocks.add_event(type_name, occurred_at, data)
        elif type_name == "player.renamed":
            self._clocks.rename(data["player"], data["new_player"])
            try:
                self._seeds.rename(data["player"], data["new_player"])
            except Refused:
                self._clocks.rename_back(data["player"], data["new_player"])
                raise
        if self._league_notes is not None and type_name.startswith("league."):
            self._league_notes.add_league_event(type_name, data["league"])

    def refuse_unknown_game(self, data: dict[str, Any]) -> None:
        """Raise `Refused` (unknown-game) if no ruleset scores games of this name, unless there are no rulesets."""
        self._games.refuse_unknown(data)

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Withdraw an event, so that later checks do not consider it. Raises `Refused` (still-needed)."""
        if type_name in CLOCK_TYPES:
            self._clocks.withdraw_event(type_name, data)
        if type_name == "player.renamed":
            self._clocks.rename_back(data["player"], data["new_player"])
            self._seeds.rename_back(data["player"])
        if type_name == "player.seeded":
            self._seeds.release(data)
        if type_name == "points.adjusted":
            self._pending_adjustments[parse_name(data["ladder"]).ruleset_id] -= 1
        if type_name != "ruleset.published":
            return
        versions = self.versions.get(data["id"], ())
        remaining = [version for version in versions if version.ruleset.version != data["version"]]
        if not remaining:
            self._check_unused(data["id"], data["version"])
        self.versions[data["id"]] = remaining
        self._games.clear()
        if not remaining:
            del self.versions[data["id"]]

    def _check_unused(self, ruleset_id: str, version: int) -> None:
        """Raise `Refused` (still-needed) if annual lists, adjustments or seeds need a ruleset."""
        problem = f"{ruleset_id}@{version} is the only version of its ruleset"
        annual = sorted(
            name
            for name, versions in self.versions.items()
            if any(getattr(version.params, "of", None) == ruleset_id for version in versions)
        )
        if annual:
            raise Refused(
                "still-needed",
                f"{problem}, and the lists of {joined(annual)} sum the places on the lists of {ruleset_id}; first void "
                f"the versions of {joined(annual)}: ratings void --event POSITION --reason TEXT",
            )
        counts = ("adjustment", self._count_adjustments(ruleset_id)), ("seed", self._seeds.count(ruleset_id))
        if dependents := [count(number, noun) for noun, number in counts if number]:
            pronoun = "that" if sum(number for _, number in counts) == 1 else "those"
            raise Refused(
                "still-needed",
                f"{problem}, and its ladders have {joined(dependents)}; first void {pronoun}: "
                "ratings void --event POSITION --reason TEXT",
            )

    def _count_adjustments(self, ruleset_id: str) -> int:
        """Return the number of adjustments in force, recorded or pending, on a ruleset's ladders."""
        events = read_live(self._connection, until=self._until, type_name="points.adjusted")
        recorded = sum(parse_name(event.data["ladder"]).ruleset_id == ruleset_id for event in events)
        return recorded + self._pending_adjustments[ruleset_id]

    def _add_version(self, version: Version) -> None:
        self.versions.setdefault(version.ruleset.id, []).append(version)
        self._games.clear()

    def _find_versions(self, ladder: str) -> list[Version]:
        """Return the versions of a ladder's ruleset. Raises `Refused` (bad-ruleset, unknown-ladder)."""
        name = parse_name(ladder)
        versions = self.versions.get(name.ruleset_id)
        if name.ruleset_id in self._unusable:
            raise Refused("bad-ruleset", f"{quote(ladder)}: {self._unusable[name.ruleset_id]}")
        if versions is None:
            hint = did_you_mean(name.ruleset_id, self.versions) or "; see: ratings rules list"
            raise Refused(
                "unknown-ladder", f"no ruleset is called {quote(name.ruleset_id)} (ladder {quote(ladder)}){hint}"
            )
        if reason := find_ladder_name_problem(name, versions[0].ruleset):
            raise Refused("unknown-ladder", f"{quote(ladder)} is not a ladder: {reason}")
        return versions

    def _check_adjustment(self, data: dict[str, Any]) -> None:
        """Raise `Refused` if a ladder does not accept an adjustment."""
        versions = self._find_versions(data["ladder"])
        if not versions[0].ranking.adjustable:
            message = f"{data['ladder']} ranks by the results of games, so points cannot be adjusted; correct a game"
            raise Refused("ladder-not-adjustable", message)
        scale = versions[0].rule.scale
        points = Decimal(data["points"])
        if points * scale != int(points * scale):
            step = "whole points" if scale == 1 else f"steps of 1/{scale} point"
            raise Refused("finer-than-scale", f"{points:f} is too fine for {data['ladder']}, which counts in {step}")
        if abs(points) > 1_000_000_000:
            message = f"an adjustment must be from -1,000,000,000 to 1,000,000,000 points, not {points:f}"
            raise Refused("out-of-range", message)

    def _admit_seed(self, data: dict[str, Any]) -> None:
        """Check a seed, and add it. Raises `Refused`."""
        versions = self._find_versions(data["ladder"])
        if not versions[0].ranking.adjustable:
            message = f"{data['ladder']} ranks by the results of games, so its players cannot be seeded"
            raise Refused("ladder-not-adjustable", message)
        if versions[0].ruleset.entrant == "club":
            problem = f"{data['ladder']} ranks clubs, which cannot be seeded"
            command = f"ratings adjust {shlex.quote(data['ladder'])} CLUB POINTS --reason TEXT"
            raise Refused("seed-of-club", f"{problem}; to give points to a club: {command}")
        self._seeds.add(versions, data)

    def _check_ruleset(self, data: dict[str, Any]) -> Version:
        """Return the version that an event publishes.

        Raises `Refused` if the version is invalid, or cannot follow the ruleset's published versions.
        """
        ruleset, problems = read_ruleset(data)
        if ruleset is None:
            raise Refused("bad-ruleset", f"{problems[0].key}: {problems[0].message}")
        version, _ = bind(ruleset, 2**62 + sum(map(len, self.versions.values())))
        assert version is not None
        for published in self.versions.get(ruleset.id, ()):
            if published.ruleset.version == ruleset.version:
                rejection = build_version_exists_rejection(ruleset)
                raise Refused(rejection.code, rejection.message)
            if problem := find_sequel_problem(version, published):
                raise Refused("partition-changed", f"{problem.key}: {problem.message}")
        if version.ranking.sums_lists:
            source_id = getattr(version.params, "of", "")
            if source_id not in self._unusable and (
                reason := find_months_problem(version, self.versions.get(source_id, []))
            ):
                raise Refused("bad-ruleset", f"params.of: {reason}")
        return version


class RecordedChecks(Admission):
    """Checks of the recorded events of a log in order, against built-in rules only.

    Rulesets of other rules, or that cannot be read, are skipped with the events about their ladders; after one of them,
    all clock events are skipped. The activity of players who join a league is not checked. So the result does not
    depend on the installed rule packages. Nor is it checked whether a seed precedes the player's first counted game,
    because later corrections and voids change which games count.
    """

    def __init__(self, connection: Connection, until: int) -> None:
        super().__init__(connection, until, allow_uncounted=True)

    @cached_property
    def _seeds(self) -> "SeedChecks":
        from ratings_ledger.projections.admission.seed_checks import SeedChecks

        return SeedChecks(self._connection, self._until, None, pending_players={})

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Check a recorded event, and add it to the events that later checks consider. Raises `Refused`."""
        if type_name == "ruleset.published":
            if data["rule"] not in BUILT_IN or read_ruleset(data)[0] is None:
                self._unusable[data["id"]] = "its rule is not built in"
                return
        elif type_name in ("points.adjusted", "player.seeded", "list.published", "list.scheduled"):
            if parse_name(data["ladder"]).ruleset_id in self._unusable:
                return
        elif type_name == "league.joined" or (type_name in CLOCK_TYPES and self._unusable):
            return
        super().admit(type_name, occurred_at, data)

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Withdraw a recorded event. Raises `Refused` (still-needed)."""
        if type_name == "ruleset.published" and data["id"] in self._unusable:
            return
        if type_name in CLOCK_TYPES and self._unusable:
            return
        super().release(type_name, data)
