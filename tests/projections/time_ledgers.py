"""The program as the tests of the axes use it: what it takes in, what it says at coordinates, and in what form."""

import json
from functools import partial
from typing import Any, NamedTuple

from oracle.log import Event
from oracle.questions import Answer, Question, Row
from oracle.times import end_of
from output_filters import strip_decimals

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import parse_object, to_microseconds
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake, IntakeResult
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.admission.ladder_checks import Admission
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders


class PublishedList(NamedTuple):
    """A list as the oracle computed it when it was published; `position` and `event_id` are the head's."""

    ladder: str
    as_of: str | None
    known_at: int
    answer: Answer
    position: int
    event_id: str
    stated: str | None  # the `as_of` that it has itself

    def is_of(self, ladder: str, as_of: str | None) -> bool:
        """Whether a question is about it; without a time any list of the ladder is meant."""
        return self.ladder == ladder and (as_of is None or self.is_as_of(as_of))

    def is_as_of(self, as_of: str | None) -> bool:
        """Whether it was published for this time, written in whatever way."""
        return as_of == self.as_of or (as_of is not None and self.as_of is not None
                                       and end_of(as_of) == end_of(self.as_of))  # fmt: skip


def enter(ledger: Ledger | str, events: list[Event], now: clock.Clock = clock.now) -> IntakeResult:
    """Send events through the whole path of an import; games that no ladder can count are taken, too."""
    if isinstance(ledger, str):
        opened = open_ledger(ledger)
        try:
            return enter(opened, events, now)
        finally:
            opened.close()
    given = [{name: value for name, value in event.items() if name != "position"} for event in events]
    items = [
        Item("steps", number, parse_object(json.dumps(event).encode()), None) for number, event in enumerate(given)
    ]
    allowing = partial(Admission, allow_uncounted=True)
    return Intake(ledger, items, ImportPolicy("test", keep_going=True), clock=now, ladders=allowing).append()


def found_at(ledger: Ledger, questions: list[Question]) -> list[Answer | None]:
    """What the program says, through the library; all questions are known at the same position."""
    with ledger.reading() as connection:
        facts = decode(connection, questions[0].known_at)
    found: list[Answer | None] = []
    for one in questions:
        try:
            got = Ladders(facts, None if one.upto is None else to_microseconds(one.upto), one.rules).standings(
                one.ladder
            )
        except UnknownLadder:
            found.append(None)
            continue
        rows = [
            Row(row.rank, row.player, row.value(got.scale), row.games, row.qualified, row.gold, row.places)
            for row in got.rows
        ]
        found.append(Answer(got.ruleset, got.games, rows))
    return found


def agree_with_json(found: dict[str, Any], wanted: Answer, asked: Question) -> None:
    """Compare the contract's object of standings, its statement of the coordinates included."""
    found = strip_decimals(found)
    as_of = None if asked.upto is None else asked.upto.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    stated = (found["ladder"], found["ruleset"], found["games"], found["digest"], found["known_at"], found["as_of"])
    assert found["rows"] == wanted.as_json(), asked
    assert stated == (asked.ladder, wanted.ruleset, wanted.games, wanted.digest, asked.known_at, as_of), asked
