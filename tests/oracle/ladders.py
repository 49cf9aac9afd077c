"""Any ladder at any coordinates, and all ladders of a kind at once: by the book, or the lists of a ruleset."""

from datetime import datetime

from oracle.counting import View
from oracle.lists import month_list, year_list
from oracle.log import Log, games, live
from oracle.questions import Answer, Question
from oracle.rulesets import BOOK, by_the_book, ladder_of, ruleset_of, versions_of
from oracle.running import Ladder, replay

LISTS = {"catan-points/1": month_list, "annual-places/1": year_list}


def ask(log: Log, question: Question) -> Answer | None:
    """The standings at coordinates; None where no such ruleset or version is published."""
    known = [event for event in log if event["position"] <= question.known_at]
    versions = versions_of(known, ruleset_of(question.ladder), question.rules)
    if not versions:
        return None
    view = View(known, question.upto)
    if versions[0].rule in LISTS:
        return LISTS[versions[0].rule](view, question.ladder, versions)
    return replay(view, question.ladder, versions).answer()


def every_list(log: Log, ruleset_id: str, upto: datetime | None = None) -> dict[str, Answer]:
    """All lists of a ruleset on which a game counts, by name."""
    view, versions = View(log, upto), versions_of(log, ruleset_id)
    return {name: LISTS[versions[0].rule](view, name, versions) for name in view.on(versions)}


def ladders(log: Log, upto: datetime | None = None) -> dict[str, Ladder]:
    """The ladders by the book that a game or an adjustment belongs to, by name, even if nothing counts there."""
    names = {name for game in games(log).values() if (name := ladder_of(game))}
    names |= {event["data"]["ladder"] for event in live(log, "points.adjusted")}
    view = View(by_the_book(log), upto)
    versions = {ruleset_id: versions_of(view.log, ruleset_id) for ruleset_id in BOOK}
    return {name: replay(view, name, found) for name in names if (found := versions[ruleset_of(name)])}
