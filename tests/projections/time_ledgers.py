"""The program as the tests of the coordinates use it: imports, questions, and the JSON of the answers."""

import json
from functools import partial
from typing import Any, NamedTuple

from oracle.log import Event
from oracle.questions import Answer, Question, Row
from oracle.times import find_last_instant
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
    """A list as the oracle computed it when it was published; `position` and `event_id` are those of the head."""

    ladder: str
    as_of: str | None
    known_at: int
    answer: Answer
    position: int
    event_id: str
    stated: str | None  # the `as_of` of its own event

    def is_of(self, ladder: str, as_of: str | None) -> bool:
        """Tell whether a question is about this list; without a time, any list of the ladder matches."""
        return self.ladder == ladder and (as_of is None or self.is_as_of(as_of))

    def is_as_of(self, as_of: str | None) -> bool:
        """Tell whether the list was published for this time, in any spelling."""
        return as_of == self.as_of or (as_of is not None and self.as_of is not None
                                       and find_last_instant(as_of) == find_last_instant(self.as_of))  # fmt: skip


def enter(ledger: Ledger | str, events: list[Event], now: clock.Clock = clock.now) -> IntakeResult:
    """Import events through every step of the intake; games that no ladder counts are accepted, too."""
    if isinstance(ledger, str):
        opened = open_ledger(ledger)
        try:
            return enter(opened, events, now)
        finally:
            opened.close()
    members = [{name: value for name, value in event.items() if name != "position"} for event in events]
    items = [
        Item("steps", number, parse_object(json.dumps(event).encode()), None) for number, event in enumerate(members)
    ]
    allowing = partial(Admission, allow_uncounted=True)
    return Intake(ledger, items, ImportPolicy("test", keep_going=True), clock=now, ladders=allowing).append()


def compute_answers(ledger: Ledger, questions: list[Question]) -> list[Answer | None]:
    """Return the program's answers, through the library; all questions are known at the same position."""
    with ledger.reading() as connection:
        facts = decode(connection, questions[0].known_at)
    answers: list[Answer | None] = []
    for question in questions:
        try:
            ranking = Ladders(
                facts, None if question.upto is None else to_microseconds(question.upto), question.rules
            ).standings(question.ladder)
        except UnknownLadder:
            answers.append(None)
            continue
        rows = [
            Row(row.rank, row.player, row.exact_points(ranking.scale), row.games, row.qualified, row.gold, row.places)
            for row in ranking.rows
        ]
        answers.append(Answer(ranking.ruleset, ranking.games, rows))
    return answers


def check_json_standings(standings: dict[str, Any], expected: Answer, question: Question) -> None:
    """Compare the JSON of standings, including the coordinates that it states."""
    standings = strip_decimals(standings)
    as_of = None if question.upto is None else question.upto.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    stated = (
        standings["ladder"],
        standings["ruleset"],
        standings["games"],
        standings["digest"],
        standings["known_at"],
        standings["as_of"],
    )
    assert standings["rows"] == expected.to_json(), question
    assert stated == (question.ladder, expected.ruleset, expected.games, expected.digest, question.known_at, as_of), (
        question
    )
