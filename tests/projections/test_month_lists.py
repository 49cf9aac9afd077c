"""Random years of Catan: every monthly, open and annual list against a naive computation."""

import random
import shutil
from collections import Counter
from datetime import timedelta

import pytest
from catan_cases import count_cases
from catan_years import build_shipped_rulesets, draw_year
from histories import build_ticking_clock, enter, fill, load_ladders
from ledgers import create_ledger
from oracle.ladders import compute_every_list
from oracle.log import number_events
from oracle.times import parse_instant

from ratings_ledger.ledger.store.opening import open_ledger

# of twelve months each; both halves of a long run have 168 years, which are 2,016 months
YEARS_LONG = 84
YEARS_SHORT = 12
REQUIRED_CASES = {
    *(f"{size} seats" for size in range(2, 7)), "tie", "dense places", "scores alone", "low scores",
    "seat that changed hands", "game without counting players", "leaver without substitute", "unrated or aborted",
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
def template(tmp_path_factory):
    """Return the file of a ledger without events."""
    path = tmp_path_factory.mktemp("template") / "ratings.db"
    create_ledger(str(path))
    return path


def load_lists(ladders, as_of=None):
    """Return (ruleset, games, rows) of every list at a time, by name."""
    since_1970 = None if as_of is None else parse_instant(as_of) - parse_instant("1970-01-01T00:00:00Z")
    ladders = ladders.at(None if since_1970 is None else since_1970 // timedelta(microseconds=1))
    lists = {}
    for ruleset_id in ladders.facts.rulesets:
        for name, stream in ladders.streams(ruleset_id).items():
            ranking = ladders.rank_stream(stream)
            lists[name] = (ranking.ruleset, ranking.games, ranking.json_rows())
    return lists


def compute_lists(events, as_of=None):
    """Return the naive computation's answer for every list, by name."""
    log, moment = number_events(events), None if as_of is None else parse_instant(as_of)
    answers = {}
    for ruleset_id in ("catan-monthly", "catan-open", "catan-annual"):
        answers |= compute_every_list(log, ruleset_id, moment)
    return answers


def find_differences(lists, answers):
    """Return the lists that differ by name, each as (the ledger's list, the naive computation's list)."""
    expected = {name: (answer.ruleset, answer.games, answer.to_json()) for name, answer in answers.items()}
    names = lists.keys() | expected.keys()
    return {name: (lists.get(name), expected.get(name)) for name in names if lists.get(name) != expected.get(name)}


def import_events(path, events):
    """Record events as the command line does, so that every event is validated; return the ledger."""
    ledger = open_ledger(str(path))
    result = enter(ledger, events, build_ticking_clock())
    assert (result.rejected, result.appended) == ([], len(events))
    return ledger


MOMENTS = {
    "2010-02-28T22:59:59.999999Z": "2010-02",
    "2010-02-28T23:00:00Z": "2010-03",
    "2010-02-28T23:30:00Z": "2010-03",
    "2010-03-31T21:59:59.999999Z": "2010-03",
    "2010-03-31T22:00:00Z": "2010-04",  # summer time
    "2010-10-31T22:30:00Z": "2010-10",
    "2010-10-31T23:00:00Z": "2010-11",  # summer time ended that night
    "2013-03-31T00:59:59.999999Z": "2013-03",
    "2013-03-31T22:00:00Z": "2013-04",  # summer time began that night
    "2008-02-28T23:30:00Z": "2008-02",
    "2008-02-29T22:30:00Z": "2008-02",
    "2008-02-29T23:00:00Z": "2008-03",
    "2009-12-31T22:59:59.999999Z": "2009-12",
    "2009-12-31T23:00:00Z": "2010-01",
}


def test_months_end_by_berlin_clocks(tmp_path):
    """Months and years end by Berlin time, in the lists and in the naive computation."""
    participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    labels = {"game": "catan", "city": "7", "group": "basic", "participants": participants}
    games = [
        {"type": "game.recorded", "id": at, "occurred_at": at, "data": {"game_id": f"g{number}", **labels}}
        for number, at in enumerate(MOMENTS)
    ]
    events = [*build_shipped_rulesets(), *games]
    create_ledger(str(tmp_path / "ratings.db"))
    lists = load_lists(load_ladders(fill(str(tmp_path / "ratings.db"), events)))

    for prefix, periods in (
        ("catan-monthly/7/basic/", Counter(MOMENTS.values())),
        ("catan-open/basic/", Counter(MOMENTS.values())),
        ("catan-annual/7/basic/", Counter(month[:4] for month in MOMENTS.values())),
    ):
        assert {name.removeprefix(prefix): row[1] for name, row in lists.items() if name.startswith(prefix)} == periods
    assert find_differences(lists, compute_lists(events)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_random_years_match_a_naive_computation(half, template, tmp_path, at_length):
    """In random years, every list equals that of a naive computation.

    This is also so at a random instant of the year, and as known at a random position of the log.
    """
    cases = Counter()
    years = YEARS_LONG if at_length else YEARS_SHORT
    for seed in range(half * YEARS_LONG, half * YEARS_LONG + years):
        events = draw_year(seed)
        path = shutil.copy(template, tmp_path / f"year-{seed}.db")
        ledger = import_events(path, events) if seed % 8 == 0 else fill(str(path), events)
        ladders = load_ladders(ledger)
        expected = compute_lists(events)
        assert find_differences(load_lists(ladders), expected) == {}, f"year {seed}"
        cases += count_cases(number_events(events), expected)
        chance = random.Random(seed)
        if seed % 2:
            as_of = chance.choice([event["occurred_at"] for event in events if event["type"] == "game.recorded"])
            assert find_differences(load_lists(ladders, as_of), compute_lists(events, as_of)) == {}, (
                f"year {seed} up to {as_of}"
            )
            cases["played up to a moment"] += 1
        else:
            known_at = chance.randint(len(build_shipped_rulesets()), len(events))
            known = compute_lists(events[:known_at])
            assert find_differences(load_lists(load_ladders(ledger, known_at=known_at)), known) == {}, (
                f"year {seed} known at {known_at}"
            )
            cases["known at a position"] += 1
        ledger.engine.dispose()
        path.unlink()
    assert {name: cases[name] for name in REQUIRED_CASES if cases[name] < (3 if at_length else 2)} == {}
