"""Convert the program's answers to the form in which tests of coordinates compare them with the oracle's."""

from typing import Any, NamedTuple

from oracle.questions import Answer, Question, Row
from oracle.times import find_last_instant
from output_filters import strip_decimals

import ratings_ledger as rl
from ratings_ledger.ledger.store.opening import Ledger


class PublishedList(NamedTuple):
    """A list as the oracle computed it when it was published; `position` and `event_id` are those of its event."""

    ladder: str
    as_of: str | None
    known_at: int
    answer: Answer
    position: int
    event_id: str
    stated: str | None  # the `as_of` of that event

    def is_of(self, ladder: str, as_of: str | None) -> bool:
        """Tell whether a question is about this list; without a time, any list of the ladder matches."""
        return self.ladder == ladder and (as_of is None or self.is_as_of(as_of))

    def is_as_of(self, as_of: str | None) -> bool:
        """Tell whether the list was published for this time, in any spelling."""
        return as_of == self.as_of or (as_of is not None and self.as_of is not None
                                       and find_last_instant(as_of) == find_last_instant(self.as_of))  # fmt: skip


def compute_answers(ledger: Ledger, questions: list[Question]) -> list[Answer | None]:
    """Return the program's answers; None for a ladder of a ruleset that is not published."""
    with rl.open(ledger.url.render_as_string(hide_password=False)) as opened:
        return [_compute_answer(opened, question) for question in questions]


def _compute_answer(ledger: rl.Ledger, question: Question) -> Answer | None:
    try:
        standings = ledger.at(question.upto, question.known_at, question.rules).standings(question.ladder)
    except rl.BadArgument as problem:
        if problem.argument != "ladder":
            raise
        return None
    rows = [
        Row(
            row.rank,
            row.player,
            row.points,
            row.games,
            row.qualified,
            None if row.gold is rl.ABSENT else row.gold,
            None if row.places is rl.ABSENT else row.places,
        )
        for row in standings.rows
    ]
    return Answer(standings.ruleset, standings.games, rows)


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
