"""Ladders that begin with a game: a typo in a group, city, league or season creates one.

    catan-elo/basci begins, although catan-elo/basic exists: probably the latter was meant.

Months, years and bands of players do not matter here: new ones come up by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.rejections import Refused, shown
from projections.facts.columns import LABELS, Facts
from projections.queries.ladder_names import Labelled, label_places, labelled, slip
from projections.replay.eligibility import why_not_eligible
from projections.replay.ladders import LadderName, partition_values
from projections.rulesets.versions import Version, in_force


class Begun(NamedTuple):
    """A ladder that a game begins, and an existing one with a similar name, or ""."""

    ladder: str
    like: str


class NewLadders:
    """The ladders that the games of an import begin; `facts` returns the facts of the log before it."""

    def __init__(self, facts: Callable[[Connection], Facts], strict: bool = False) -> None:
        """With `strict`, a game that begins a ladder is refused."""
        self._facts_of = facts
        self._strict = strict
        self._there: dict[str, set[Labelled]] = {}
        self._leagues: set[str] = set()
        # labels that cannot lead to anything new
        self._settled: set[tuple[str | None, ...]] = set()
        self.found: list[Begun] = []

    def meet(
        self,
        connection: Connection,
        versions: Mapping[str, Sequence[Version]],
        game: Callable[[], Facts],
        occurred_at: int,
        data: Mapping[str, Any],
    ) -> None:
        """Note the ladders that a game begins; `game` returns the facts of that game alone.

        Raises `Refused` (new-ladder) when strict.
        """
        labels = tuple(map(data.get, LABELS))
        if labels in self._settled:
            return
        facts: Facts | None = None
        settled = True
        for known in versions.values():
            if not any(data["game"] in one.ruleset.scope.game for one in known) or not _named(known, data):
                continue
            facts = facts or game()
            version = in_force(known, occurred_at)
            if version is None or why_not_eligible(facts, 0, version.ruleset):
                settled = False  # another game with these labels may count
                continue
            for values in partition_values(facts, 0, version.ruleset):
                self._begin(connection, known, values, data)
        if settled:
            self._settled.add(labels)

    def _begin(
        self, connection: Connection, known: Sequence[Version], values: Labelled, data: Mapping[str, Any]
    ) -> None:  # fmt: skip
        """Note or refuse a ladder, unless it already has a game."""
        ruleset = known[0].ruleset
        places = label_places(ruleset.partition.by)
        there = self._there_of(connection, known)
        own = tuple(values[place] for place in places)
        created = "league" in ruleset.partition.by and data["league"] in self._leagues
        if own in there or created:
            return
        ladder = "/".join((ruleset.id, *values))
        close = ""
        if (found := slip(LadderName(ruleset.id, values), known, there)) is not None:
            place, label = found
            close = "/".join((ruleset.id, *values[:place], label, *values[place + 1 :]))
        if self._strict:
            hint = f"; did you mean {close}?" if close else ""
            raise Refused("new-ladder", f"{shown(ladder)} has no game yet{hint} (without --strict this one begins it)")
        there.add(own)
        self.found.append(Begun(ladder, close))

    def _there_of(self, connection: Connection, known: Sequence[Version]) -> set[Labelled]:
        """The labels of a ruleset's ladders that already have a game or an adjustment."""
        ruleset_id = known[0].ruleset.id
        if ruleset_id not in self._there:
            facts = self._facts_of(connection)
            self._leagues = {facts.texts[league.league] for league in facts.leagues}
            self._there[ruleset_id] = labelled(facts, known)
        return self._there[ruleset_id]


def _named(known: Sequence[Version], data: Mapping[str, Any]) -> bool:
    """Whether a game has all the labels that name a ladder of a ruleset, if any do."""
    by = known[0].ruleset.partition.by
    places = label_places(by)
    return bool(places) and all(by[place] in data for place in places)
