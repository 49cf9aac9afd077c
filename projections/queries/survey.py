"""All ladders at a view's coordinates: which there are, which lists are open, and what somebody did apart from them."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from ledger import clock
from projections.facts.columns import Facts
from projections.queries.answers import AllLadders, AllLists, Failed, LadderRow, ListRow, Standings
from projections.queries.coordinates import Coordinates, Times, instant_played, moment
from projections.queries.standings import Ladders, standings_answer, why_unfinished
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import Stream, parse_name
from projections.replay.partition import by_time
from projections.rulesets.periods import is_running, period_of


class Survey:
    """All ladders of some facts; a date `as_of` ends in the home zone or, without one, in each ruleset's own zone."""

    def __init__(
        self, connection: Connection, facts: Facts, kept: dict[int | None, Ladders], as_of: str | None,
        rules: str | None, times: Times,
    ) -> None:  # fmt: skip
        self.connection = connection
        self.facts = facts
        self.times = times
        self.failures: list[str] = []
        self._kept = kept
        self.asked = as_of
        self._rules = rules

    @property
    def usable(self) -> list[str]:
        """The ids of the rulesets that run here."""
        return sorted(self.facts.rulesets.keys() - self.facts.unusable.keys())

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of anything that no ruleset decides: without a home zone a date ends in UTC."""
        return self._at("UTC").coordinates

    def ladders(self, ruleset_id: str) -> Ladders:
        """The ladders at a ruleset's coordinates; rulesets that share the instant share them."""
        return self._at(self.facts.rulesets[ruleset_id][0].ruleset.time_zone)

    def _at(self, time_zone: str) -> Ladders:
        instant = instant_played(self.asked, self.times.home or time_zone)
        return self._kept.setdefault(instant, Ladders(self.facts, instant, self._rules))

    def streams(self, ruleset_ids: Iterable[str]) -> Iterator[tuple[Ladders, Stream]]:
        """Every ladder of some rulesets, by name."""
        for ruleset_id in ruleset_ids:
            ladders = self.ladders(ruleset_id)
            for _, stream in sorted(ladders.every(ruleset_id).items()):
                yield ladders, stream

    @contextmanager
    def noting(self) -> Iterator[None]:
        """A ladder that cannot be replayed is noted, and the others continue."""
        try:
            yield
        except RuleFailure as failure:
            self.failures.append(told_with_game(failure, self.facts, self.connection))

    def told(self) -> dict[str, Any]:
        """The members that answers about many ladders share, once all ladders were asked."""
        unusable = tuple(ruleset.reason for ruleset in self.facts.unusable.values())
        return {"asked": self.asked, "unusable": unusable, "failed": tuple(self.failures), "times": self.times}


def every_standings(seen: Survey, ladders: Collection[str]) -> Iterator[Standings | Failed]:
    """The standings of the named ladders or, without names, of all, one at a time, and what fails."""
    for problem in seen.facts.unusable.values():
        yield Failed(None, problem.reason)
    every = (name for one in seen.usable for name in sorted(seen.ladders(one).every(one)))
    for name in dict.fromkeys(ladders) or every:
        there = seen.ladders(parse_name(name).ruleset_id)
        try:
            found = there.standings(name)
        except RuleFailure as failure:
            yield Failed(name, told_with_game(failure, seen.facts, seen.connection))
            continue
        unfinished = why_unfinished(there, name, clock.now())
        yield standings_answer(found, found.rows, there.coordinates, seen.times, unfinished)


def all_ladders(seen: Survey) -> AllLadders:
    """The ladders that have games or adjustments."""
    facts, rows = seen.facts, list[LadderRow]()
    for ladders, stream in seen.streams(sorted(facts.rulesets)):
        with seen.noting():
            if stream.broken is not None:
                raise stream.broken
            annual = stream.ranking.sums_lists
            players = len(ladders.of_stream(stream).rows if annual else stream.names)
            ruleset = stream.versions[stream.version[-1]].ruleset.name if stream.version else ""
            last_game = moment(facts.occurred_at[stream.row[-1]]) if stream.row else None
            rows.append(
                LadderRow(stream.ladder, ruleset, players, len(stream.row), last_game, ladders.coordinates.until)
            )
    return AllLadders(seen.coordinates, tuple(rows), has_games=bool(facts.start), **seen.told())


def all_lists(seen: Survey, period: str | None) -> AllLists:
    """The lists of months and years, of one period, YYYY or YYYY-MM, or of all."""
    rows = list[ListRow]()
    timed = [one for one in seen.usable if by_time(seen.facts.rulesets[one][0].ruleset)]
    for ladders, stream in seen.streams(timed):
        ruleset = stream.versions[0].ruleset
        parts = dict(zip(ruleset.partition.by, parse_name(stream.ladder).values, strict=True))
        value, span = parts.get("month") or parts["year"], period_of(ruleset, parse_name(stream.ladder).values)
        if not value.startswith(period or ""):
            continue
        with seen.noting():
            found = ladders.of_stream(stream)
            state = "open" if span is not None and is_running(span, clock.now(), ladders.as_of) else "closed"
            ranked = sum(row.rank is not None for row in found.rows)
            rows.append(
                ListRow(
                    found.ladder,
                    value,
                    state,
                    len(found.rows),
                    ranked,
                    found.games,
                    found.ruleset,
                    ladders.coordinates.until,
                )
            )
    return AllLists(seen.coordinates, tuple(rows), **seen.told())
