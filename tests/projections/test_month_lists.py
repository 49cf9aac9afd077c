"""Random years of Catan: every monthly, open and annual list against a naive second computation."""

import random
import shutil
from collections import Counter
from datetime import timedelta

import pytest
from catan_cases import count
from catan_years import shipped_lists, year_of
from histories import facts_of, fill, ticking
from ledgers import create_ledger
from oracle.ladders import every_list
from oracle.log import numbered
from oracle.times import instant

from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.admission.ladder_checks import Admission
from ratings_ledger.projections.queries.ladders_at import Ladders

# of twelve months each; in two halves, 168 of them have 2,016 months
YEARS_LONG = 84
YEARS_SHORT = 12
WANTED = {
    *(f"{size} seats" for size in range(2, 7)), "tie", "dense places", "scores alone", "low scores",
    "seat that changed hands", "nobody of a game counts", "leaver without substitute", "unrated or aborted",
    "card game", "no city or group", "another game", "late game", "voided", "reinstated", "moved to another month",
    "corrected after it was reinstated", "corrected again, the date not", "another month in UTC",
    "another year in UTC", "23:30 UTC on 28 February", "night when clocks change", "29 February",
    "two ids of one person", "chain of renames", "rename withdrawn", "account withdrawn",
    "account withdrawn, and that too", "two accounts at once", "two versions in one month", "score mean", "score sum",
    "substitution none", "substitution leaver", "substitution substitute", "substitution both", "shared place",
    "places 1, 1, 3", "gold of a shared place", "gold pooled", "gold that is not paid", "place behind the gold",
    "one game short", "just enough games", "list without ranks", "twins on the list", "month without a list",
    "year without ranks", "four real months", "missing months", "free in the basic game", "free and not ranked",
    "account from the last moment", "account from the first moment after", "place worse than a missing one",
    "missing one caps", "played up to a moment", "known at a position",
}  # fmt: skip


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A ledger without events, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "ratings.db"
    create_ledger(str(path))
    return path


def lists_of(facts, as_of=None):
    """(ruleset, games, rows) of every list, by name."""
    since_1970 = None if as_of is None else instant(as_of) - instant("1970-01-01T00:00:00Z")
    ladders = Ladders(facts, None if since_1970 is None else since_1970 // timedelta(microseconds=1))
    found = {}
    for ruleset_id in facts.rulesets:
        for name, stream in ladders.streams(ruleset_id).items():
            told = ladders.rank_stream(stream)
            found[name] = (told.ruleset, told.games, told.json_rows())
    return found


def by_the_book(events, as_of=None):
    """What the naive computation answers about every list, by name."""
    log, moment = numbered(events), None if as_of is None else instant(as_of)
    found = {}
    for ruleset_id in ("catan-monthly", "catan-open", "catan-annual"):
        found |= every_list(log, ruleset_id, moment)
    return found


def differences(found, answers):
    """The lists that differ, in both forms."""
    expected = {name: (answer.ruleset, answer.games, answer.as_json()) for name, answer in answers.items()}
    names = found.keys() | expected.keys()
    return {name: (found.get(name), expected.get(name)) for name in names if found.get(name) != expected.get(name)}


def imported(path, events):
    """The ledger of that name, filled as the command line does it, so that every event is validated."""
    ledger = open_ledger(str(path))
    items = [Item("year", number, event, None) for number, event in enumerate(events, 1)]
    result = Intake(ledger, items, ImportPolicy("test"), clock=ticking(), ladders=Admission).append()
    assert (result.rejected, result.appended) == ([], len(events))
    return ledger


MOMENTS = {
    "2010-02-28T22:59:59.999999Z": "2010-02", "2010-02-28T23:00:00Z": "2010-03", "2010-02-28T23:30:00Z": "2010-03",
    "2010-03-31T21:59:59.999999Z": "2010-03", "2010-03-31T22:00:00Z": "2010-04",  # summer time
    "2010-10-31T22:30:00Z": "2010-10", "2010-10-31T23:00:00Z": "2010-11",  # it ended that night
    "2013-03-31T00:59:59.999999Z": "2013-03", "2013-03-31T22:00:00Z": "2013-04",  # it began that night
    "2008-02-28T23:30:00Z": "2008-02", "2008-02-29T22:30:00Z": "2008-02", "2008-02-29T23:00:00Z": "2008-03",
    "2009-12-31T22:59:59.999999Z": "2009-12", "2009-12-31T23:00:00Z": "2010-01",
}  # fmt: skip


def test_months_end_by_berlin_clocks(tmp_path):
    """Months and years end by Berlin time, in the lists and in the naive computation alike."""
    participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    labels = {"game": "catan", "city": "7", "group": "basic", "participants": participants}
    games = [
        {"type": "game.recorded", "id": at, "occurred_at": at, "data": {"game_id": f"g{number}", **labels}}
        for number, at in enumerate(MOMENTS)
    ]
    events = [*shipped_lists(), *games]
    create_ledger(str(tmp_path / "ratings.db"))
    found = lists_of(facts_of(fill(str(tmp_path / "ratings.db"), events)))

    for naming, periods in (
        ("catan-monthly/7/basic/", Counter(MOMENTS.values())),
        ("catan-open/basic/", Counter(MOMENTS.values())),
        ("catan-annual/7/basic/", Counter(month[:4] for month in MOMENTS.values())),
    ):
        assert {
            name.removeprefix(naming): told[1] for name, told in found.items() if name.startswith(naming)
        } == periods
    assert differences(found, by_the_book(events)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_random_years_match_a_naive_computation(half, empty, tmp_path, at_length):
    """In random years, every list matches a naive computation.

    This also holds at a random moment of the year, and as known at a random position of the log.
    """
    cases = Counter()
    years = YEARS_LONG if at_length else YEARS_SHORT
    for seed in range(half * YEARS_LONG, half * YEARS_LONG + years):
        events = year_of(seed)
        path = shutil.copy(empty, tmp_path / f"year-{seed}.db")
        ledger = imported(path, events) if seed % 8 == 0 else fill(str(path), events)
        facts = facts_of(ledger)
        expected = by_the_book(events)
        assert differences(lists_of(facts), expected) == {}, f"year {seed}"
        cases += count(numbered(events), expected)
        chance = random.Random(seed)
        if seed % 2:
            as_of = chance.choice([event["occurred_at"] for event in events if event["type"] == "game.recorded"])
            assert differences(lists_of(facts, as_of), by_the_book(events, as_of)) == {}, f"year {seed} up to {as_of}"
            cases["played up to a moment"] += 1
        else:
            known_at = chance.randint(len(shipped_lists()), len(events))
            known = by_the_book(events[:known_at])
            assert differences(lists_of(facts_of(ledger, known_at)), known) == {}, f"year {seed} known at {known_at}"
            cases["known at a position"] += 1
        ledger.engine.dispose()
        path.unlink()
    assert {name: cases[name] for name in WANTED if cases[name] < (3 if at_length else 2)} == {}
