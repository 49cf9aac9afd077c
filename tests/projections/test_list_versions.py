"""Which version of a ruleset scores a game and ranks a list: at the end of a period, and frozen at a league's start."""

import json

import pytest
from catan_years import shipped_lists
from histories import fill, ranking_of, ruleset
from kind_games import battle
from own_rules import find_shipped_text, find_shipped_texts
from stores import make_empty_ledger

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
    path = copied_file(make_empty_ledger)
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
    return [ruleset(text) for text in find_shipped_texts('id = "youplay-wsim"')]


def under(ledger, league="L1", rules=None, as_of=None):
    """The name of the version of a league, if its table is that of so many games under it."""
    found = ranking_of(ledger, f"youplay-wsim/{league}", as_of=as_of, rules=rules)
    version = found.ruleset.partition("@")[2]
    assert {row.player: row.points for row in found.rows} == {
        player: points * found.games for player, points in UNDER[version].items()
    }
    return version, found.games


@pytest.mark.parametrize(("first", "version"), [(LAST, "v0"), (FIRST, "v2")])
def test_league_keeps_its_starting_version(filled, first, version):
    """A league that began before 2010, Berlin time, keeps version v0 to its end."""
    ledger = filled(
        *wsim(), ships("g1", first), ships("g2", "2010-06-01T20:00:00Z"), ships("g3", "2012-01-01T20:00:00Z")
    )

    assert under(ledger) == (version, 3)


def test_leagues_have_their_own_starting_versions(filled):
    """Each of two leagues is scored by the version in force when it began."""
    games = [ships("g1", LAST, "L1"), ships("g2", FIRST, "L2"), ships("g3", "2010-03-01T20:00:00Z", "L1")]
    ledger = filled(*wsim(), *games, ships("g4", "2010-03-01T20:00:00Z", "L2"))

    assert (under(ledger, "L1"), under(ledger, "L2")) == (("v0", 2), ("v2", 2))


@pytest.mark.parametrize("league", ["L1", "L2"])
def test_trial_version_applies_only_by_name(filled, league):
    """The trial version is never in force, but can be asked for by name."""
    ledger = filled(*wsim(), ships("g1", LAST, "L1"), ships("g2", "2026-10-01T20:00:00Z", "L2"))

    assert under(ledger, league)[0] != "v1"
    assert under(ledger, league, rules="youplay-wsim@v1") == ("v1", 1)
    assert under(ledger, league, rules="youplay-wsim@v0") == ("v0", 1)
    assert under(ledger, league, rules="youplay-wsim@v2") == ("v2", 1)


def test_late_first_game_rescores_the_league(filled):
    """A late game from before the version change rescores the whole league."""
    games = [ships("g2", "2010-02-01T20:00:00Z"), ships("g3", "2010-03-01T20:00:00Z"), ships("g1", LAST)]
    ledger = filled(*wsim(), *games)

    assert under(ledger) == ("v0", 3)
    before = ranking_of(ledger, "youplay-wsim/L1", known_at=len(wsim()) + 2)
    assert (before.ruleset, before.games) == ("youplay-wsim@v2", 2)


def test_corrected_first_date_moves_the_start(filled):
    """Correcting the date of a league's first game moves the start of the league."""
    first, second = ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z")
    ledger = filled(*wsim(), first, second, moved(first, "2010-01-05T20:00:00Z"))
    known = len(wsim())

    assert under(ledger) == ("v2", 2)
    assert ranking_of(ledger, "youplay-wsim/L1", known_at=known + 2).ruleset == "youplay-wsim@v0"


def test_game_corrected_to_2009_becomes_first(filled):
    """A later game whose date is corrected to 2009 becomes the first game of its league."""
    first, second = ships("g1", FIRST), ships("g2", "2010-02-01T20:00:00Z")

    assert under(filled(*wsim(), first, second, moved(second, "2009-11-01T20:00:00Z"))) == ("v0", 2)


def test_voided_first_game_moves_the_start(filled):
    """Voiding and reinstating the first game moves the start of the league and back."""
    games = [ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z")]
    ledger = filled(*wsim(), *games, changed("game.voided", "g1"), changed("game.reinstated", "g1"))
    voided = ranking_of(ledger, "youplay-wsim/L1", known_at=len(wsim()) + 3)

    assert (voided.ruleset, voided.games) == ("youplay-wsim@v2", 1)
    assert under(ledger) == ("v0", 2)


def test_game_moved_into_league_starts_it(filled):
    """An earlier game that is corrected into another league becomes the start of that league."""
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
def test_creation_decides_the_version(filled, league, version):
    """The creation of a league decides its version, and not its first game."""
    games = [ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z")]

    assert under(filled(*wsim(), league, *games)) == (version, 2)
    assert under(filled(*wsim(), *games, league)) == (version, 2)


def test_withdrawn_creation_leaves_the_first_game(filled):
    """If a league's creation is withdrawn, its first game decides the version.

    Reinstating the creation makes it decide again.
    """
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
    withdrawn = ranking_of(ledger, "youplay-wsim/L1", known_at=known + 4)
    assert (withdrawn.ruleset, withdrawn.games) == ("youplay-wsim@v2", 2)


def test_game_explained_by_frozen_version(ratings, filled):
    """A game of a frozen league is explained by the version in force at the league's start."""
    ledger = filled(*wsim(), ships("g1", LAST), ships("g2", "2010-02-01T20:00:00Z"))
    told = ratings("explain", "g2", "youplay-wsim/L1", "--format", "json", db=str(ledger.url.database))
    found = json.loads(told.stdout)

    assert (found["ruleset"], found["counted"]) == ("youplay-wsim@v0", True)
    assert {row["player"]: int(row["change"]) for row in found["players"]} == UNDER["v0"]


def test_moved_start_changes_later_games(ratings, filled):
    """The effects of correcting a league to a later start include its later games.

    The first of two games under v0 moves to 2010, and then both score by v2.
    """
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
    found = ranking_of(ledger, MARCH, **axes)
    return found.ruleset, [(row.rank, row.player, str(row.value(found.scale)), row.gold) for row in found.rows]


@pytest.mark.parametrize("since", ["2010-03-03", "2010-03-20", "2010-03-31"])
def test_last_game_decides_the_months_version(filled, since):
    """A month is ranked as a whole by the version in force at its last game.

    Games are scored by the version of their own day; a version that starts after all of them does
    not matter.
    """
    new = monthly("new", since, score="sum", min_games=3, gold=[9], points={"2": [10, 2]})
    ledger = filled(monthly("old", "1900-01-01"), new, *won(1, 2, 3, 4))
    late = since == "2010-03-03"

    expected = [(1, "anna", "26", 9), (2, "ben", "6", 0)] if late else [(None, "anna", "3", 0), (None, "ben", "1", 0)]
    assert rows(ledger) == (f"catan-monthly@{'new' if late else 'old'}", expected)


def test_next_months_version_waits(filled):
    """A version that starts next month does not affect this month's list."""
    new = monthly("new", "2010-04-01", score="sum", min_games=1)
    ledger = filled(monthly("old", "1900-01-01", min_games=4), new, *won(1, 2, 3, 4))

    assert rows(ledger) == ("catan-monthly@old", [(1, "anna", "3", 2), (2, "ben", "1", 1)])


def test_named_version_ranks_everything(filled):
    """A version asked for by name scores and ranks all games, whatever its start date."""
    new = monthly("new", "2010-04-01", score="sum", min_games=1, points={"2": [10, 2]})
    ledger = filled(monthly("old", "1900-01-01"), new, *won(1, 2))

    assert rows(ledger, rules="catan-monthly@new") == (
        "catan-monthly@new", [(1, "anna", "20", 2), (2, "ben", "4", 1)],
    )  # fmt: skip


def test_last_published_version_wins_a_tie(filled):
    """Of two versions that start on the same day, the one published last is in force."""
    again = monthly("again", "2008-03-01", min_games=2)
    ledger = filled(monthly("first", "2008-03-01", min_games=1), again, *won(1))

    assert rows(ledger) == ("catan-monthly@again", [(None, "anna", "3", 0), (None, "ben", "1", 0)])


OTHERS = {
    "a table instead of a month": {"rule": "placement-points/1", "params": {"min_games": 7}},
    "running points instead of a month": {"rule": "pairwise-elo/1", "params": {"k_per_pair": 8}},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_version_changing_list_kind_is_refused(ratings, filled, change):
    """A version that would make different kind of list is refused with `partition-changed`."""
    ledger = filled(monthly("1", "2008-03-01"))
    other = monthly("2", "2011-01-01")
    other["data"] |= change
    told = ratings("import", "-", "--format", "json", db=str(ledger.url.database), input=json.dumps(other))

    rejected = json.loads(told.stdout)["rejected"]
    assert (told.exit_code, [problem["code"] for problem in rejected]) == (1, ["partition-changed"])
    assert "different kind of list" in rejected[0]["message"]


def test_rules_may_share_a_ruleset(ratings, filled):
    """Two rules that rank by the same table can be versions of one ruleset."""
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
def test_unfit_annual_list_harms_no_others(ratings, filled, change):
    """An annual list that fits no months does no harm to any other list.

    It is refused, or its own lists stay empty, but `lists` and `rebuild` still work.
    """
    years = next(event["data"] for event in shipped_lists() if event["data"]["id"] == "catan-annual")
    data = {**years, "id": "years", "assumed": {}, **change}
    data["params"] = years["params"] | change.get("params", {})
    event = {"type": "ruleset.published", "occurred_at": "2010-01-01T00:00:00Z", "data": data}
    db = str(filled(*shipped_lists(), *won(*range(1, 8))).url.database)
    ratings("import", "-", db=db, input=json.dumps(event))

    assert ratings("lists", db=db).exit_code == 0
    assert ratings("rebuild", db=db).exit_code == 0


def test_carried_season_needs_its_own_games(filled):
    """A season starts with the carried points, but its ranks need games of its own.

    Everybody starts with 100 points and then with what the first season left them; ranks require two
    games in the season itself.
    """
    text = find_shipped_text("b5-league").replace("carry_over = false", "carry_over = true")
    rules = ruleset(text)
    rules["data"]["params"]["min_games"] = 2
    ledger = filled(rules, *[season(number) for number in range(1, 4)])
    first, second = (ranking_of(ledger, f"b5-league/2010-{season}") for season in (1, 2))

    assert [(row.rank, row.qualified, row.games) for row in first.rows] == [(1, True, 2), (2, True, 2), (3, True, 2)]
    assert [(row.rank, row.qualified, row.games) for row in second.rows] == [(None, False, 1)] * 3
    assert second.start_total == sum(row.points for row in first.rows)


def season(number):
    """A game of three: the first two in the first season, the third in the second."""
    participants = [
        {"player": player, "power": 20 - place, "influence": 5, "victory": "standard" if not place else None, "vp": vp}
        for place, (player, vp) in enumerate([("anna", 0), ("ben", 1), ("cleo", 0)])
    ]
    month, name = (2, "2010-1") if number < 3 else (6, "2010-2")
    data = {"game_id": f"g{number}", "game": "babylon5", "kind": "b5", "season": name, "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2010-{month:02d}-0{number}T20:00:00Z", "data": data}
