"""Ruleset versions: which version scores a game, and which ranks a list at the end of its period or from a league's
start.
"""

import json

import pytest
from catan_years import build_shipped_rulesets
from histories import build_ruleset_event, fill, load_ranking
from kind_games import build_battle
from own_rules import find_shipped_text, find_shipped_texts
from stores import make_empty_ledger

MARCH = "catan-monthly/7/basic/2010-03"
# the last microsecond of 2009 and the first of 2010, in Berlin
LAST_OF_2009, FIRST_OF_2010 = "2009-12-31T22:59:59.999999Z", "2009-12-31T23:00:00Z"
# a strategic victory by 20 to 10 points: v0 gives 4 + 1 for the best, and -2 for two lost ships; v2 gives 3 and 0
POINTS_BY_VERSION = {
    "v0": {"A": 5, "M": 4, "B": -2},
    "v1": {"A": 4, "M": 4, "B": 1},
    "v2": {"A": 3, "M": 3, "B": 0},
}


@pytest.fixture
def fill_ledger(copy_ledger_file):
    """Return a function that fills a ledger with events."""
    path = copy_ledger_file(make_empty_ledger)
    return lambda *events: fill(path, events)


def build_battle_event(game_id, at, league="L1", **members):
    """Return a battle that A and M win by 20 points to 10; B loses both ships."""
    event = build_battle("A 2 0 0 20, M 2 0 0 0", "B 2 2 0 10", league=league, game="wooden-ships", **members)
    return event | {"occurred_at": at, "data": event["data"] | {"game_id": game_id}}


def build_change(type_name, game_id, **data):
    """Return a later event of a game."""
    members = {"game_id": game_id, "reason": f"reason {type_name} {data.keys()}", **data}
    return {"type": type_name, "occurred_at": "2011-01-01T00:00:00Z", "data": members}


def move_game(event, at):
    """Return a correction that moves a game to another time."""
    return build_change("game.corrected", event["data"]["game_id"], game=event["data"] | {"occurred_at": at})


def build_rulesets():
    """Return the shipped versions of the ruleset."""
    return [build_ruleset_event(text) for text in find_shipped_texts('id = "youplay-wsim"')]


def find_version(ledger, league="L1", rules=None, as_of=None):
    """Return (version, number of games) of a league, and check its table against the points of that version."""
    ranking = load_ranking(ledger, f"youplay-wsim/{league}", as_of=as_of, rules=rules)
    version = ranking.ruleset.partition("@")[2]
    assert {row.player: row.points for row in ranking.rows} == {
        player: points * ranking.games for player, points in POINTS_BY_VERSION[version].items()
    }
    return version, ranking.games


@pytest.mark.parametrize(("first", "version"), [(LAST_OF_2009, "v0"), (FIRST_OF_2010, "v2")])
def test_league_keeps_its_starting_version(fill_ledger, first, version):
    """A league keeps to its end the version of its first game: v0 if it began before 2010 in Berlin, else v2."""
    ledger = fill_ledger(
        *build_rulesets(),
        build_battle_event("g1", first),
        build_battle_event("g2", "2010-06-01T20:00:00Z"),
        build_battle_event("g3", "2012-01-01T20:00:00Z"),
    )

    assert find_version(ledger) == (version, 3)


def test_leagues_have_their_own_starting_versions(fill_ledger):
    """Each of two leagues is scored by the version in force when it began."""
    games = [
        build_battle_event("g1", LAST_OF_2009, "L1"),
        build_battle_event("g2", FIRST_OF_2010, "L2"),
        build_battle_event("g3", "2010-03-01T20:00:00Z", "L1"),
    ]
    ledger = fill_ledger(*build_rulesets(), *games, build_battle_event("g4", "2010-03-01T20:00:00Z", "L2"))

    assert (find_version(ledger, "L1"), find_version(ledger, "L2")) == (("v0", 2), ("v2", 2))


@pytest.mark.parametrize("league", ["L1", "L2"])
def test_trial_version_applies_only_by_name(fill_ledger, league):
    """The trial version never takes effect, but can be requested by name."""
    ledger = fill_ledger(
        *build_rulesets(),
        build_battle_event("g1", LAST_OF_2009, "L1"),
        build_battle_event("g2", "2026-10-01T20:00:00Z", "L2"),
    )

    assert find_version(ledger, league)[0] != "v1"
    assert find_version(ledger, league, rules="youplay-wsim@v1") == ("v1", 1)
    assert find_version(ledger, league, rules="youplay-wsim@v0") == ("v0", 1)
    assert find_version(ledger, league, rules="youplay-wsim@v2") == ("v2", 1)


def test_late_first_game_rescores_the_league(fill_ledger):
    """A first game recorded late, from before the change of versions, rescores the whole league."""
    games = [
        build_battle_event("g2", "2010-02-01T20:00:00Z"),
        build_battle_event("g3", "2010-03-01T20:00:00Z"),
        build_battle_event("g1", LAST_OF_2009),
    ]
    ledger = fill_ledger(*build_rulesets(), *games)

    assert find_version(ledger) == ("v0", 3)
    standings_before = load_ranking(ledger, "youplay-wsim/L1", known_at=len(build_rulesets()) + 2)
    assert (standings_before.ruleset, standings_before.games) == ("youplay-wsim@v2", 2)


def test_corrected_first_date_moves_the_start(fill_ledger):
    """A correction of the date of a league's first game moves the start of the league."""
    first, second = build_battle_event("g1", LAST_OF_2009), build_battle_event("g2", "2010-02-01T20:00:00Z")
    ledger = fill_ledger(*build_rulesets(), first, second, move_game(first, "2010-01-05T20:00:00Z"))
    ruleset_count = len(build_rulesets())

    assert find_version(ledger) == ("v2", 2)
    assert load_ranking(ledger, "youplay-wsim/L1", known_at=ruleset_count + 2).ruleset == "youplay-wsim@v0"


def test_game_corrected_to_2009_becomes_first(fill_ledger):
    """A later game with a date corrected to 2009 becomes the first game of its league."""
    first, second = build_battle_event("g1", FIRST_OF_2010), build_battle_event("g2", "2010-02-01T20:00:00Z")

    assert find_version(fill_ledger(*build_rulesets(), first, second, move_game(second, "2009-11-01T20:00:00Z"))) == (
        "v0",
        2,
    )


def test_voided_first_game_moves_the_start(fill_ledger):
    """A void of the first game moves the start of the league, and a reinstatement moves it back."""
    games = [build_battle_event("g1", LAST_OF_2009), build_battle_event("g2", "2010-02-01T20:00:00Z")]
    ledger = fill_ledger(
        *build_rulesets(), *games, build_change("game.voided", "g1"), build_change("game.reinstated", "g1")
    )
    standings_after_void = load_ranking(ledger, "youplay-wsim/L1", known_at=len(build_rulesets()) + 3)

    assert (standings_after_void.ruleset, standings_after_void.games) == ("youplay-wsim@v2", 1)
    assert find_version(ledger) == ("v0", 2)


def test_game_moved_into_league_starts_it(fill_ledger):
    """An earlier game that is corrected into another league becomes that league's start."""
    first, second = build_battle_event("g1", LAST_OF_2009, "L9"), build_battle_event("g2", "2010-02-01T20:00:00Z", "L1")
    corrected = build_change("game.corrected", "g1", game=first["data"] | {"league": "L1"})

    assert find_version(fill_ledger(*build_rulesets(), first, second, corrected)) == ("v0", 2)


def build_league(at, league="L1", game="wooden-ships"):
    """Return the creation of a league."""
    data = {"league": league, "game": game, "players_per_game": 3}
    return {"type": "league.created", "id": f"{league} of {game}", "occurred_at": at, "data": data}


CREATIONS = {
    "before 2010": (build_league(LAST_OF_2009), "v0"),
    "in 2010": (build_league(FIRST_OF_2010), "v2"),
    "in 2010, after its first game": (build_league("2010-03-01T20:00:00Z"), "v2"),
    "another league before 2010": (build_league(LAST_OF_2009, "L2"), "v0"),
    "a league with the same name for another game, in 2010": (build_league(FIRST_OF_2010, game="blue-max"), "v0"),
}


@pytest.mark.parametrize(("league", "version"), CREATIONS.values(), ids=CREATIONS)
def test_creation_decides_the_version(fill_ledger, league, version):
    """The creation of a league, not its first game, decides its version."""
    games = [build_battle_event("g1", LAST_OF_2009), build_battle_event("g2", "2010-02-01T20:00:00Z")]

    assert find_version(fill_ledger(*build_rulesets(), league, *games)) == (version, 2)
    assert find_version(fill_ledger(*build_rulesets(), *games, league)) == (version, 2)


def test_withdrawn_creation_leaves_the_first_game(fill_ledger):
    """If a league's creation is voided, its first game decides the version; if the void is voided, the creation decides
    again.
    """
    games = [build_battle_event("g1", FIRST_OF_2010), build_battle_event("g2", "2010-02-01T20:00:00Z")]
    void = {
        "type": "event.voided",
        "id": "v",
        "occurred_at": FIRST_OF_2010,
        "data": {"id": "L1 of wooden-ships", "reason": "r"},
    }
    void_of_void = {**void, "id": "w", "data": {"id": "v", "reason": "it was right"}}
    ledger = fill_ledger(*build_rulesets(), build_league(LAST_OF_2009), *games, void, void_of_void)
    ruleset_count = len(build_rulesets())

    assert find_version(ledger) == ("v0", 2)
    standings_after_void = load_ranking(ledger, "youplay-wsim/L1", known_at=ruleset_count + 4)
    assert (standings_after_void.ruleset, standings_after_void.games) == ("youplay-wsim@v2", 2)


def test_game_explained_by_frozen_version(ratings, fill_ledger):
    """A game of a frozen league is explained by the version in force at the league's start."""
    ledger = fill_ledger(
        *build_rulesets(), build_battle_event("g1", LAST_OF_2009), build_battle_event("g2", "2010-02-01T20:00:00Z")
    )
    result = ratings("explain", "g2", "youplay-wsim/L1", "--format", "json", db=str(ledger.url.database))
    explanation = json.loads(result.stdout)

    assert (explanation["ruleset"], explanation["counted"]) == ("youplay-wsim@v0", True)
    assert {row["player"]: int(row["change"]) for row in explanation["players"]} == POINTS_BY_VERSION["v0"]


def test_moved_start_changes_later_games(ratings, fill_ledger):
    """The preview of a correction that moves a league's start includes the league's later games.

    The first of two games under v0 moves to 2010; then v2 scores both.
    """
    ledger = fill_ledger(
        *build_rulesets(), build_battle_event("g1", LAST_OF_2009), build_battle_event("g2", "2010-02-01T20:00:00Z")
    )
    result = ratings(
        "correct",
        "g1",
        "--at",
        "2010-01-05T20:00Z",
        "--reason",
        "wrong year",
        "--dry-run",
        "--format",
        "json",
        db=str(ledger.url.database),
    )

    changes = json.loads(result.stdout)["changes"]
    assert {row["player"]: (row["before"], row["after"]) for row in changes} == {
        "A": ("10", "6"),
        "M": ("8", "6"),
        "B": ("-4", "0"),
    }


def build_monthly_version(version, since, **params):
    """Return another version of the monthly list."""
    data = next(e["data"] for e in build_shipped_rulesets() if e["data"]["id"] == "catan-monthly")
    data = data | {"version": version, "effective_from": since, "assumed": {}, "params": data["params"] | params}
    return {"type": "ruleset.published", "occurred_at": "2010-01-01T00:00:00Z", "data": data}


def build_games(*days):
    """Return games of March 2010 that anna wins against ben."""
    participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
    data = {"game": "catan", "city": "7", "group": "basic", "participants": participants}
    return [
        {"type": "game.recorded", "occurred_at": f"2010-03-{day:02d}T12:00:00Z", "data": {"game_id": f"g{day}", **data}}
        for day in days
    ]


def load_list(ledger, **coordinates):
    """Return (ruleset, rows as (rank, player, score, gold)) of the list of March."""
    ranking = load_ranking(ledger, MARCH, **coordinates)
    return ranking.ruleset, [
        (row.rank, row.player, str(row.exact_points(ranking.scale)), row.gold) for row in ranking.rows
    ]


@pytest.mark.parametrize("since", ["2010-03-03", "2010-03-20", "2010-03-31"])
def test_last_game_decides_the_months_version(fill_ledger, since):
    """The version in force at a month's last game ranks the whole month.

    Each game is scored by the version of its own day; a version that starts after the last game has no effect.
    """
    new = build_monthly_version("new", since, score="sum", min_games=3, gold=[9], points={"2": [10, 2]})
    ledger = fill_ledger(build_monthly_version("old", "1900-01-01"), new, *build_games(1, 2, 3, 4))
    is_in_force = since == "2010-03-03"

    expected = (
        [(1, "anna", "26", 9), (2, "ben", "6", 0)] if is_in_force else [(None, "anna", "3", 0), (None, "ben", "1", 0)]
    )
    assert load_list(ledger) == (f"catan-monthly@{'new' if is_in_force else 'old'}", expected)


def test_next_months_version_waits(fill_ledger):
    """A version that starts next month does not affect the list of this month."""
    new = build_monthly_version("new", "2010-04-01", score="sum", min_games=1)
    ledger = fill_ledger(build_monthly_version("old", "1900-01-01", min_games=4), new, *build_games(1, 2, 3, 4))

    assert load_list(ledger) == ("catan-monthly@old", [(1, "anna", "3", 2), (2, "ben", "1", 1)])


def test_named_version_scores_and_ranks_all_games(fill_ledger):
    """A version requested by name scores and ranks all games, regardless of its date."""
    new = build_monthly_version("new", "2010-04-01", score="sum", min_games=1, points={"2": [10, 2]})
    ledger = fill_ledger(build_monthly_version("old", "1900-01-01"), new, *build_games(1, 2))

    assert load_list(ledger, rules="catan-monthly@new") == (
        "catan-monthly@new",
        [(1, "anna", "20", 2), (2, "ben", "4", 1)],
    )


def test_last_published_version_wins_a_tie(fill_ledger):
    """Of two versions with the same date, the version published last is in force."""
    second_version = build_monthly_version("again", "2008-03-01", min_games=2)
    ledger = fill_ledger(build_monthly_version("first", "2008-03-01", min_games=1), second_version, *build_games(1))

    assert load_list(ledger) == ("catan-monthly@again", [(None, "anna", "3", 0), (None, "ben", "1", 0)])


CHANGES_OF_KIND = {
    "a table instead of a month": {"rule": "placement-points/1", "params": {"min_games": 7}},
    "running points instead of a month": {"rule": "pairwise-elo/1", "params": {"k_per_pair": 8}},
}


@pytest.mark.parametrize("change", CHANGES_OF_KIND.values(), ids=CHANGES_OF_KIND)
def test_version_changing_list_kind_is_rejected(ratings, fill_ledger, change):
    """A version that would make a different kind of list is rejected with `partition-changed`."""
    ledger = fill_ledger(build_monthly_version("1", "2008-03-01"))
    version = build_monthly_version("2", "2011-01-01")
    version["data"] |= change
    result = ratings("import", "-", "--format", "json", db=str(ledger.url.database), input=json.dumps(version))

    rejected = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, [problem["code"] for problem in rejected]) == (1, ["partition-changed"])
    assert "does not make the same kind of list" in rejected[0]["message"]


def test_versions_of_a_ruleset_may_use_different_rules(ratings, fill_ledger):
    """The versions of one ruleset may use different rules if all of them make a league's table."""
    result = ratings("rules", "list", "--format", "json", db=str(fill_ledger(*build_rulesets()).url.database))

    assert {row["version"]: row["rule"] for row in json.loads(result.stdout)} == {
        "youplay-wsim@v0": "blue-max/1",
        "youplay-wsim@v1": "wooden-ships/1",
        "youplay-wsim@v2": "wooden-ships/1",
    }


UNFIT_YEARS = {
    "no year": {"partition": {"by": ["city", "group"]}},
    "months": {"partition": {"by": ["city", "group", "month"]}},
    "not the city of the months": {"partition": {"by": ["group", "year"]}},
    "its own months": {"params": {"of": "years"}},
}


@pytest.mark.parametrize("change", UNFIT_YEARS.values(), ids=UNFIT_YEARS)
def test_unfit_annual_list_harms_no_others(ratings, fill_ledger, change):
    """An annual list that fits no monthly list does not break other lists.

    Its ruleset is rejected, or its own lists stay empty; `lists` and `rebuild` still succeed.
    """
    annual = next(event["data"] for event in build_shipped_rulesets() if event["data"]["id"] == "catan-annual")
    data = {**annual, "id": "years", "assumed": {}, **change}
    data["params"] = annual["params"] | change.get("params", {})
    event = {"type": "ruleset.published", "occurred_at": "2010-01-01T00:00:00Z", "data": data}
    db = str(fill_ledger(*build_shipped_rulesets(), *build_games(*range(1, 8))).url.database)
    ratings("import", "-", db=db, input=json.dumps(event))

    assert ratings("lists", db=db).exit_code == 0
    assert ratings("rebuild", db=db).exit_code == 0


def test_carried_season_needs_its_own_games(fill_ledger):
    """A season starts with the carried points, but its ranks require games of its own.

    Each player starts the first season with 100 points and the second with those of the first; a rank needs two games
    in the season itself.
    """
    text = find_shipped_text("b5-league").replace("carry_over = false", "carry_over = true")
    rules = build_ruleset_event(text)
    rules["data"]["params"]["min_games"] = 2
    ledger = fill_ledger(rules, *[build_season_game(number) for number in range(1, 4)])
    first, second = (load_ranking(ledger, f"b5-league/2010-{season}") for season in (1, 2))

    assert [(row.rank, row.qualified, row.games) for row in first.rows] == [(1, True, 2), (2, True, 2), (3, True, 2)]
    assert [(row.rank, row.qualified, row.games) for row in second.rows] == [(None, False, 1)] * 3
    assert second.start_total == sum(row.points for row in first.rows)


def build_season_game(number):
    """Return a game of three players: the first two games are of the first season, the third of the second."""
    participants = [
        {"player": player, "power": 20 - place, "influence": 5, "victory": "standard" if not place else None, "vp": vp}
        for place, (player, vp) in enumerate([("anna", 0), ("ben", 1), ("cleo", 0)])
    ]
    month, name = (2, "2010-1") if number < 3 else (6, "2010-2")
    data = {"game_id": f"g{number}", "game": "babylon5", "kind": "b5", "season": name, "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2010-{month:02d}-0{number}T20:00:00Z", "data": data}
