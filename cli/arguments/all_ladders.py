"""The ladders of all rulesets as they stand: what `publish --due` looks at."""

from cli.arguments.facts import decoded
from cli.output import render
from ledger.store.opening import open_ledger
from projections.facts.columns import Facts
from projections.queries.coordinates import Coordinates, Times, times_of
from projections.queries.standings import Ladders
from projections.replay.containment import RuleFailure, told_with_game


class SurveyOfAll:
    """All ladders of some facts."""

    def __init__(self, db: str, facts: Facts, times: Times) -> None:
        self.db = db
        self.facts = facts
        self.times = times
        self.ladders = Ladders(facts)

    @property
    def usable(self) -> list[str]:
        """The ids of the rulesets that run here."""
        return sorted(self.facts.rulesets.keys() - self.facts.unusable.keys())

    @property
    def coordinates(self) -> Coordinates:
        """Where on the axes all of them are."""
        return self.ladders.coordinates

    def note(self, failure: RuleFailure) -> None:
        """Say that a ladder cannot be replayed."""
        with open_ledger(self.db).reading() as connection:
            render.note(f"ratings: {told_with_game(failure, self.facts, connection)}")


def survey(db: str) -> SurveyOfAll:
    """All ladders of a ledger; rulesets that do not run here are noted."""
    with open_ledger(db).reading() as connection:
        times, facts = times_of(connection), decoded(connection)
    for unusable in facts.unusable.values():
        render.note(f"ratings: {unusable.reason}")
    return SurveyOfAll(db, facts, times)
