"""Which version of a ruleset scores a game and ranks a list: at the end of a period, and frozen at a league's start."""

import json

import pytest
from catan_years import shipped_lists
from histories import facts_of, fill, ruleset, shipped_text
from kind_games import battle
from stores import without_events

from projections.queries.standings import Ladders
from projections.rulesets.versions import shipped

MARCH = "catan-monthly/7/basic/2010-03"
# the last microsecond of 2009 in Berlin, and the first of 2010
LAST, FIRST = "2009-12-31T22:59:59.999999Z", "2009-12-31T23:00:00Z"
# strategic victory with 20 to 10 points: under v0 4 and 1 for the best, minus the two ships lost; under v2 3 and 0
UNDER = {
    "v0": {"A": 5, "M": 4, "B": -2},
    "v1": {"A": 4, "M": 4, "B": 1},
    "v2": {"A": 3, "M": 3, "B": 0},
}


@pytest.fixture
def filled(copied_file):
    """A function that makes a ledger of these events."""
    path = copied_file(without_events)
    return lambda *events: fill(path, events)


def ships(game_id, at, league="L1", **members):
    """A battle that A and M win with 20 points against 10 of B, who loses both ships."""
    event = battle("A 2 0 0 20, M 2 0 0 0", "B 2 2 0 10", league=league, game="wooden-ships", **members)
    return event | {"occurred_at": at, "data": event["data"] | {"game_id": game_id}}


def changed(type_name, game_id, **data):
    """What becomes of a game later."""
    told = {"game_id": game_id, "reason": f"reason {type_name} {data.keys()}", **data}
    return {"type": type_name, "occurred_at": "2011-01-01T00:00:00Z", "data": told}


def moved(event, at):
    """The same game, played at another time."""
    return changed("game.corrected", event["data"]["game_id"], game=event["data"] | {"occurred_at": at})


def wsim():
    return [ruleset(text) for text in shipped() if 'id = "youplay-wsim"' in text]


def under(ledger, league="L1", rules=None, as_of=None):
    """The name of the version of a league, if its table is that of so many games under it."""
    found = Ladders(facts_of(ledger), as_of, rules).standings(f"youplay-wsim/{league}")
    version = found.ruleset.partition("@")[2]
    assert {row.player: row.points for row in found.rows} == {
        player: points * found.games for player, points in UNDER[version].items()
    }
    return version, found.games


@pytest.mark.parametrize(("first", "version"), [(LAST, "v0"), (FIRST, "v2")])
def test_given_a_league_when_it_began_before_2010_in_berlin_then_it_keeps_v0_to_its_end(filled, first, version):
    ledger = filled(
        *wsim(), ships("g1", first), ships("g2", "2010-06-01T20:00:00Z"), ships("g3", "2012-01-01T20:00:00Z")
    )

    assert under(ledger) == (version, 3)


def test_given_two_leagues_when_replayed_then_each_has_the_version_of_its_own_start(filled):
    games = [ships("g1", LAST, "L1"), ships("g2", FIRST, "L2"), ships("g3", "2010-03-01T20:00:00Z", "L1")]
    ledger = filled(*wsim(), *games, ships("g4", "2010-03-01T20:00:00Z", "L2"))

    assert (under(ledger, "L1"), under(ledger, "L2")) == (("v0", 2), ("v2", 2))


@pytest.mark.parametrize("league", ["L1", "L2"])
def test_given_the_trial_when_nobody_asks_for_it_then_it_is_never_in_force_but_by_its_name(filled, league):
    ledger = filled(*wsim(), ships("g1", LAST, "L1"), ships("g2", "2026-10-01T20:00:00Z", "L2"))

    assert under(ledger, league)[0] != "v1"
    assert under(ledger, league, rules="youplay-wsim@v1") == ("v1", 1)
    assert under(ledger, league, rules="youplay-wsim@v0") == ("v0", 1)
    assert under(ledger, league, rules="youplay-wsim@v2") == ("v2", 1)


def test_given_a_late_game_from_before_when_it_is_recorded_then_the_whole_league_is_scored_anew(filled):
    games = [ships("g2", "2010-02-01T20:00:00Z"), ships("g3", "2010-03-01T20:00:00Z"), ships("g1", LAST)]
    ledger = filled(*wsim(), *games)

    assert under(ledger) == ("v0", 3)
    before = Ladders(facts_of(ledger, known_at=len(wsim()) + 2)).standings("youplay-wsim/L1")
    assert (before.ruleset, before.games) == ("youplay-wsim@v2", 2)


def test_given_a_first_game_when_its_date_is_corrected_then_the_start_of_the_league_moves(filled):
    first, second = ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z")
    ledger = filled(*wsim(), first, second, moved(first, "2010-01-05T20:00:00Z"))
    known = len(wsim())

    assert under(ledger) == ("v2", 2)
    assert Ladders(facts_of(ledger, known_at=known + 2)).standings("youplay-wsim/L1").ruleset == "youplay-wsim@v0"


def test_given_a_later_game_when_its_date_is_corrected_to_2009_then_it_is_the_first(filled):
    first, second = ships("g1", FIRST), ships("g2", "2010-02-01T20:00:00Z")

    assert under(filled(*wsim(), first, second, moved(second, "2009-11-01T20:00:00Z"))) == ("v0", 2)


def test_given_a_first_game_when_voided_and_reinstated_then_the_start_of_the_league_follows(filled):
    games = [ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z")]
    ledger = filled(*wsim(), *games, changed("game.voided", "g1"), changed("game.reinstated", "g1"))
    voided = Ladders(facts_of(ledger, known_at=len(wsim()) + 3)).standings("youplay-wsim/L1")

    assert (voided.ruleset, voided.games) == ("youplay-wsim@v2", 1)
    assert under(ledger) == ("v0", 2)


def test_given_a_first_game_of_another_league_when_corrected_into_this_one_then_it_begins_there(filled):
    first, second = ships("g1", LAST, "L9"), ships("g2", "2010-02-01T20:00:00Z", "L1")
    corrected = changed("game.corrected", "g1", game=first["data"] | {"league": "L1"})

    assert under(filled(*wsim(), first, second, corrected)) == ("v0", 2)


def created(at, league="L1", game="wooden-ships"):
    """A league as it begins."""
    data = {"league": league, "game": game, "players_per_game": 3}
    return {"type": "league.created", "id": f"{league} of {game}", "occurred_at": at, "data": data}


BEGUN = {
    "before 2010": (created(LAST), "v0"),
    "in 2010": (created(FIRST), "v2"),
    "in 2010, after its first game": (created("2010-03-01T20:00:00Z"), "v2"),
    "another league before 2010": (created(LAST, "L2"), "v0"),
    "of the same name, but of another game, in 2010": (created(FIRST, game="blue-max"), "v0"),
}


@pytest.mark.parametrize(("league", "version"), BEGUN.values(), ids=BEGUN)
def test_given_a_league_that_was_created_when_replayed_then_that_decides_and_not_its_first_game(
    filled, league, version
):
    games = [ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z")]

    assert under(filled(*wsim(), league, *games)) == (version, 2)
    assert under(filled(*wsim(), *games, league)) == (version, 2)


def test_given_a_league_whose_creation_was_taken_back_when_replayed_then_its_first_game_decides(filled):
    games = [ships("g1", FIRST), ships("g2", "2010-02-01T20:00:00Z")]
    void = {
        "type": "event.voided",
        "id": "v",
        "occurred_at": FIRST,
        "data": {"id": "L1 of wooden-ships", "reason": "r"},
    }
    again = {**void, "id": "w", "data": {"id": "v", "reason": "it was right"}}
    ledger = filled(*wsim(), created(LAST), *games, void, again)
    known = len(wsim())

    assert under(ledger) == ("v0", 2)
    withdrawn = Ladders(facts_of(ledger, known_at=known + 4)).standings("youplay-wsim/L1")
    assert (withdrawn.ruleset, withdrawn.games) == ("youplay-wsim@v2", 2)


def test_given_a_frozen_league_when_a_game_is_explained_then_it_is_by_the_version_of_the_start(ratings, filled):
    ledger = filled(*wsim(), ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z"))
    told = ratings("explain", "g2", "youplay-wsim/L1", "--format", "json", db=str(ledger.url.database))
    found = json.loads(told.stdout)

    assert (found["ruleset"], found["counted"]) == ("youplay-wsim@v0", True)
    assert {row["player"]: int(row["change"]) for row in found["players"]} == UNDER["v0"]


def test_given_a_league_that_is_corrected_to_a_later_start_when_effects_are_told_then_later_games_change(
    ratings, filled
):
    """Given two games under v0, when the first moves to 2010, then both are worth what v2 says."""
    ledger = filled(*wsim(), ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z"))
    told = ratings(
        "correct", "g1", "--at", "2010-01-05T20:00Z", "--reason", "wrong year", "--dry-run", "--format", "json",
        db=str(ledger.url.database),
    )  # fmt: skip

    changes = json.loads(told.stdout)["changes"]
    assert {row["player"]: (row["before"], row["after"]) for row in changes} == {
        "A": ("10", "6"), "M": ("8", "6"), "B": ("-4", "0"),
    }  # fmt: skip


def monthly(version, since, **params):
    """Another version of the monthly list."""
    data = next(e["data"] for e in shipped_lists() if e["data"]["id"] == "catan-monthly")
    data = data | {"version": version, "effective_from": since, "assumed": {}, "params": data["params"] | params}
    return {"type": "ruleset.published", "occurred_at": "2010-01-01T00:00:00Z", "data": data}


def won(*days):
    """Games of March 2010 that anna wins against ben."""
    participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    data = {"game": "catan", "city": "7", "group": "basic", "participants": participants}
    return [
        {"type": "game.recorded", "occurred_at": f"2010-03-{day:02d}T12:00:00Z", "data": {"game_id": f"g{day}", **data}}
        for day in days
    ]


def rows(ledger, **axes):
    """(ruleset, rows as (rank, player, score, gold)) of the list of March."""
    found = Ladders(facts_of(ledger), **axes).standings(MARCH)
    return found.ruleset, [(row.rank, row.player, str(row.value(found.scale)), row.gold) for row in found.rows]


@pytest.mark.parametrize("since", ["2010-03-03", "2010-03-20", "2010-03-31"])
def test_given_a_new_version_within_a_month_when_ranked_then_that_of_its_last_game_ranks_all_of_it(filled, since):
    """Games are scored by the version of their day; if all of them came before the new one, it does not matter."""
    new = monthly("new", since, score="sum", min_games=3, gold=[9], points={"2": [10, 2]})
    ledger = filled(monthly("old", "1900-01-01"), new, *won(1, 2, 3, 4))
    late = since == "2010-03-03"

    expected = [(1, "anna", "26", 9), (2, "ben", "6", 0)] if late else [(None, "anna", "3", 0), (None, "ben", "1", 0)]
    assert rows(ledger) == (f"catan-monthly@{'new' if late else 'old'}", expected)


def test_given_a_new_version_from_the_next_month_when_ranked_then_this_month_does_not_know_it(filled):
    new = monthly("new", "2010-04-01", score="sum", min_games=1)
    ledger = filled(monthly("old", "1900-01-01", min_games=4), new, *won(1, 2, 3, 4))

    assert rows(ledger) == ("catan-monthly@old", [(1, "anna", "3", 2), (2, "ben", "1", 1)])


def test_given_a_version_by_its_name_when_ranked_then_it_scores_and_ranks_everything(filled):
    new = monthly("new", "2010-04-01", score="sum", min_games=1, points={"2": [10, 2]})
    ledger = filled(monthly("old", "1900-01-01"), new, *won(1, 2))

    assert rows(ledger, rules="catan-monthly@new") == (
        "catan-monthly@new", [(1, "anna", "20", 2), (2, "ben", "4", 1)],
    )  # fmt: skip


def test_given_two_versions_from_the_same_day_when_ranked_then_the_one_published_last_holds(filled):
    again = monthly("again", "2008-03-01", min_games=2)
    ledger = filled(monthly("first", "2008-03-01", min_games=1), again, *won(1))

    assert rows(ledger) == ("catan-monthly@again", [(None, "anna", "3", 0), (None, "ben", "1", 0)])


OTHERS = {
    "a table instead of a month": {"rule": "placement-points/1", "params": {"min_games": 7}},
    "running points instead of a month": {"rule": "pairwise-elo/1", "params": {"k_per_pair": 8}},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_given_a_version_that_makes_another_kind_of_list_when_published_then_it_is_refused(ratings, filled, change):
    ledger = filled(monthly("1", "2008-03-01"))
    other = monthly("2", "2011-01-01")
    other["data"] |= change
    told = ratings("import", "-", "--format", "json", db=str(ledger.url.database), input=json.dumps(other))

    rejected = json.loads(told.stdout)["rejected"]
    assert (told.exit_code, [problem["code"] for problem in rejected]) == (1, ["partition-changed"])
    assert "another kind of list" in rejected[0]["message"]


def test_given_two_rules_that_rank_by_the_same_table_when_published_then_they_are_versions_of_one_ruleset(
    ratings, filled
):
    told = ratings("rules", "list", "--format", "json", db=str(filled(*wsim()).url.database))

    assert {row["version"]: row["rule"] for row in json.loads(told.stdout)} == {
        "youplay-wsim@v0": "blue-max/1", "youplay-wsim@v1": "wooden-ships/1", "youplay-wsim@v2": "wooden-ships/1",
    }  # fmt: skip


UNFIT_YEARS = {
    "no year": {"partition": {"by": ["city", "group"]}},
    "months": {"partition": {"by": ["city", "group", "month"]}},
    "not the city of the months": {"partition": {"by": ["group", "year"]}},
    "its own months": {"params": {"of": "years"}},
}


@pytest.mark.parametrize("change", UNFIT_YEARS.values(), ids=UNFIT_YEARS)
def test_given_an_annual_list_that_fits_no_months_when_published_then_no_other_list_suffers(ratings, filled, change):
    """It is refused, or its own lists stay empty; but what all lists need still works."""
    years = next(event["data"] for event in shipped_lists() if event["data"]["id"] == "catan-annual")
    data = {**years, "id": "years", "assumed": {}, **change}
    data["params"] = years["params"] | change.get("params", {})
    event = {"type": "ruleset.published", "occurred_at": "2010-01-01T00:00:00Z", "data": data}
    db = str(filled(*shipped_lists(), *won(*range(1, 8))).url.database)
    ratings("import", "-", db=db, input=json.dumps(event))

    assert ratings("lists", db=db).exit_code == 0
    assert ratings("rebuild", db=db).exit_code == 0


def test_given_seasons_when_points_carry_over_then_a_season_begins_with_them_and_its_list_needs_its_own_games(filled):
    """Given 100 points and then what the first season left, then ranks wait for two games in the season itself."""
    text = shipped_text("b5-league").replace("carry_over = false", "carry_over = true")
    rules = ruleset(text)
    rules["data"]["params"]["min_games"] = 2
    ledger = filled(rules, *[season(number) for number in range(1, 4)])
    first, second = (Ladders(facts_of(ledger)).standings(f"b5-league/2010-{season}") for season in (1, 2))

    assert [(row.rank, row.qualified, row.games) for row in first.rows] == [(1, True, 2), (2, True, 2), (3, True, 2)]
    assert [(row.rank, row.qualified, row.games) for row in second.rows] == [(None, False, 1)] * 3
    assert second.started == sum(row.points for row in first.rows)


def season(number):
    """A game of three: the first two in the first season, the third in the second."""
    participants = [
        {"player": player, "power": 20 - place, "influence": 5, "victory": "standard" if not place else None, "vp": vp}
        for place, (player, vp) in enumerate([("anna", 0), ("ben", 1), ("cleo", 0)])
    ]
    month, name = (2, "2010-1") if number < 3 else (6, "2010-2")
    data = {"game_id": f"g{number}", "game": "babylon5", "kind": "b5", "season": name, "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2010-{month:02d}-0{number}T20:00:00Z", "data": data}
