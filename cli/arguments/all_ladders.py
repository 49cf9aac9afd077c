"""The ladders of all rulesets at coordinates: what `ladders`, `lists`, `statistics` and `export standings` look at."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from cli.arguments.facts import decoded
from cli.arguments.moments import known_position, note_future, played_instant
from cli.arguments.one_ladder import note_unusable
from cli.output import render
from cli.output.coordinates import heading
from ledger.store.opening import open_ledger
from projections.facts.columns import Facts
from projections.queries.coordinates import Coordinates, Times, times_of
from projections.queries.standings import Ladders, check_version
from projections.replay.containment import RuleFailure, told_with_game


class SurveyOfAll:
    """All ladders of some facts; a date --as-of ends in the home zone or, without one, in each ruleset's own zone."""

    def __init__(self, db: str, facts: Facts, as_of: str | None, rules: str | None, times: Times) -> None:
        self.db = db
        self.facts = facts
        self.times = times
        self.as_of = as_of
        self.rules = rules
        self._ladders: dict[int | None, Ladders] = {}

    @property
    def usable(self) -> list[str]:
        """The ids of the rulesets that run here."""
        return sorted(self.facts.rulesets.keys() - self.facts.unusable.keys())

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of anything that no ruleset decides: without a home zone a date ends in UTC."""
        return self._at("UTC")

    def at(self, ruleset_id: str) -> Coordinates:
        """The coordinates of a ruleset's ladders."""
        return self._at(self.facts.rulesets[ruleset_id][0].ruleset.time_zone)

    def ladders(self, ruleset_id: str) -> Ladders:
        """The ladders at a ruleset's coordinates; rulesets that share the instant share them."""
        instant = self.at(ruleset_id).as_of
        if instant not in self._ladders:
            self._ladders[instant] = Ladders(self.facts, instant, self.rules)
        return self._ladders[instant]

    def note(self, failure: RuleFailure) -> None:
        """Say that a ladder cannot be replayed."""
        with open_ledger(self.db).reading() as connection:
            render.note(f"ratings: {told_with_game(failure, self.facts, connection)}")

    @contextmanager
    def noting(self) -> Iterator[None]:
        """A ladder that cannot be replayed is noted, and the others continue."""
        try:
            yield
        except RuleFailure as failure:
            self.note(failure)

    def _at(self, time_zone: str) -> Coordinates:
        instant = played_instant(self.as_of, self.times.home or time_zone)
        return Coordinates(instant, self.facts.position, self.rules).of(self.facts)

    def heading(self, subject: str, coordinates: Iterable[Coordinates]) -> None:
        """Print what a table of several rulesets is about, and where on the axes its rows were computed."""
        places = {*coordinates} or {self.coordinates}
        each = None if len(places) == 1 else f"played up to {self.as_of} in the time zone of each ruleset"
        heading(subject, "", min(places), self.times, each)


def survey(db: str, as_of: str | None, known_at: str | None, rules: str | None) -> SurveyOfAll:
    """All ladders of a ledger at coordinates; a version that does not exist is a usage error."""
    with open_ledger(db).reading() as connection:
        times = times_of(connection)
        facts = decoded(connection, known_position(connection, known_at))
    check_version(facts, rules)
    found = SurveyOfAll(db, facts, as_of, rules, times)
    note_future(as_of, times.zone)
    note_unusable(facts)
    return found
