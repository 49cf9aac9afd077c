"""Compute one ladder at any coordinates, all ladders of `BOOK`, or all lists of a ruleset."""

from datetime import datetime

from oracle.counting import View
from oracle.lists import build_month_list, build_year_list
from oracle.log import Log, derive_games, select_live
from oracle.questions import Answer, Question
from oracle.rulesets import BOOK, apply_book, find_book_ladder, get_ruleset_id, list_versions
from oracle.running import Ladder, replay

LIST_BUILDERS = {"catan-points/1": build_month_list, "annual-places/1": build_year_list}


def ask(log: Log, question: Question) -> Answer | None:
    """Return the standings at coordinates; None if no such ruleset or version is published."""
    known = [event for event in log if event["position"] <= question.known_at]
    versions = list_versions(known, get_ruleset_id(question.ladder), question.rules)
    if not versions:
        return None
    view = View(known, question.upto)
    if versions[0].rule in LIST_BUILDERS:
        return LIST_BUILDERS[versions[0].rule](view, question.ladder, versions)
    return replay(view, question.ladder, versions).build_answer()


def compute_every_list(log: Log, ruleset_id: str, upto: datetime | None = None) -> dict[str, Answer]:
    """Return all lists of a ruleset that have a counted game, by name."""
    view, versions = View(log, upto), list_versions(log, ruleset_id)
    return {name: LIST_BUILDERS[versions[0].rule](view, name, versions) for name in view.group_counted_games(versions)}


def compute_ladders(log: Log, upto: datetime | None = None) -> dict[str, Ladder]:
    """Return the ladders of `BOOK` with a game or an adjustment, counted or not, by name."""
    names = {name for game in derive_games(log).values() if (name := find_book_ladder(game))}
    names |= {event["data"]["ladder"] for event in select_live(log, "points.adjusted")}
    view = View(apply_book(log), upto)
    versions = {ruleset_id: list_versions(view.log, ruleset_id) for ruleset_id in BOOK}
    return {name: replay(view, name, published) for name in names if (published := versions[get_ruleset_id(name)])}
