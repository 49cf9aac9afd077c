"""Standings, histories and explanations that follow from given events."""

import json
from fractions import Fraction

import pytest
from histories import (
    build_adjustment,
    build_club_game,
    build_ruleset_event,
    build_stream,
    draw_games,
    fill,
    load_facts,
    rank_stream,
)
from ledgers import create_ledger
from output_filters import strip_decimals

import ratings_ledger as rl

ALL = "club-catan-elo/all"
PLAYERS = ["anna", "ben", "cleo", "dora", "emil", "fay", "gus"]
SIMULTANEOUS = """
id = "club-catan-elo"
version = "1"
rule = "pairwise-elo/1"
effective_from = 1900-01-01
time_zone = "Europe/Berlin"
[scope]
game = ["club-catan"]
exclude_status = ["abandoned", "substitute"]
exclude_accounts = ["free"]
exclude_group = ["casual"]
players_max = 6
[partition]
by = ["players"]
bands = ["all", "3-4"]
[params]
k_per_pair = 8
rounding = "pair"
"""


def load_table(ledger, ladder=ALL, **coordinates):
    """Return (rank, player, points in whole points, games) of every row."""
    stream = build_stream(load_facts(ledger), ladder, **coordinates)
    ranking = rank_stream(stream)
    return [(row.rank, row.player, row.points // ranking.scale, row.games) for row in ranking.rows]


def compute_digest(ledger, ladder=ALL):
    """Return the digest of a ladder."""
    stream = build_stream(load_facts(ledger), ladder)
    return rank_stream(stream).digest


@pytest.fixture
def fill_ledger(ledger_url):
    """Return a function that appends events to a ledger with the simultaneous whole-point ruleset."""
    return lambda *events: fill(ledger_url, [build_ruleset_event(SIMULTANEOUS), *events])


def test_four_newcomers_get_elo_points(fill_ledger):
    """Four newcomers in one game get the points of simultaneous pairwise Elo."""
    assert load_table(fill_ledger(build_club_game("g", "a b c d"))) == [
        (1, "a", 1012, 1),
        (2, "b", 1004, 1),
        (3, "c", 996, 1),
        (4, "d", 988, 1),
    ]


def test_equal_points_share_a_rank(fill_ledger):
    """Players with equal points share a rank and are ordered by id."""
    assert load_table(fill_ledger(build_club_game("g", "zoe=anna ben"))) == [
        (1, "anna", 1004, 1),
        (1, "zoe", 1004, 1),
        (3, "ben", 992, 1),
    ]


@pytest.mark.parametrize("is_late", [False, True])
def test_late_game_counts_when_played(tmp_path, is_late):
    """A game recorded late counts at the time when it was played.

    After twenty losses b is so far below c that a win takes 5 points from c; before them, it would take 4.
    """
    lost, won = (
        [build_club_game(f"g{number}", "a b", day=1) for number in range(20)],
        build_club_game("last", "b c", day=2),
    )
    create_ledger(str(tmp_path / "ratings.db"))
    ledger = fill(
        str(tmp_path / "ratings.db"), [build_ruleset_event(SIMULTANEOUS), *([won, *lost] if is_late else [*lost, won])]
    )
    assert {player: points for _, player, points, _ in load_table(ledger)} == {"a": 1066, "b": 939, "c": 995}


def test_recording_order_decides_only_ties(tmp_path):
    """The order of recording matters between simultaneous games, and only between these."""
    events = [
        build_club_game("g1", "a b", day=1),
        build_club_game("g2", "b a", day=1),
        build_club_game("g3", "a b c", day=2),
    ]
    digests = {}
    for name, order in (("straight", (0, 1, 2)), ("late", (2, 0, 1)), ("between", (0, 2, 1)), ("swapped", (1, 0, 2))):
        create_ledger(str(tmp_path / name))
        digests[name] = compute_digest(fill(str(tmp_path / name), [build_ruleset_event(), *(events[i] for i in order)]))
    assert digests["straight"] == digests["late"] == digests["between"] != digests["swapped"]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 7, 10_000])
def test_batch_and_seat_order_are_irrelevant(tmp_path, batch):
    """Neither the size of batches nor the order of seats changes the digest."""
    games = draw_games(5, 60, PLAYERS)
    mirrored = [{**g, "data": {**g["data"], "participants": list(reversed(g["data"]["participants"]))}} for g in games]
    digests = set()
    for name, events in (("unchanged", games), ("mirrored", mirrored)):
        create_ledger(str(tmp_path / name))
        digests.add(compute_digest(fill(str(tmp_path / name), [build_ruleset_event(), *events], batch=batch)))
    create_ledger(str(tmp_path / "whole"))
    assert digests == {compute_digest(fill(str(tmp_path / "whole"), [build_ruleset_event(), *games]))}


def test_both_stores_give_the_same_digest(tmp_path, postgres_url):
    """SQLite and PostgreSQL give the same digest for the same events."""
    games = draw_games(6, 80, PLAYERS)
    create_ledger(str(tmp_path / "ratings.db"))
    create_ledger(postgres_url)
    events = [build_ruleset_event(), *games]
    assert compute_digest(fill(str(tmp_path / "ratings.db"), events)) == compute_digest(
        fill(postgres_url, events, batch=13)
    )


def test_adjustment_adds_newcomers(fill_ledger):
    """An adjustment changes points by its amount and puts a new player on the ladder."""
    ledger = fill_ledger(
        build_adjustment(ALL, "a", "200", day=1),
        build_club_game("g", "b a", day=2),
        build_adjustment(ALL, "c", "-0.5", day=3),
    )
    assert load_table(ledger) == [(1, "a", 1194, 1), (2, "b", 1006, 1), (3, "c", 999, 0)]


def test_position_decides_at_equal_times(fill_ledger):
    """At equal times, the log position decides between a game and an adjustment.

    The game is scored at 1000 against 1000, because the adjustment comes after it.
    """
    ledger = fill_ledger(build_club_game("g", "a b", day=1), build_adjustment(ALL, "b", "400", day=1))
    assert load_table(ledger) == [(1, "b", 1396, 1), (2, "a", 1004, 1)]


def test_as_of_leaves_out_later_events(fill_ledger):
    """As of an instant, later games and adjustments do not count."""
    ledger = fill_ledger(
        build_club_game("g1", "a b", day=1), build_club_game("g2", "c b", day=5), build_adjustment(ALL, "a", "9", day=6)
    )
    noon_of_day_5 = 1_578_225_600_000_000
    assert load_table(ledger, as_of=noon_of_day_5 - 1) == [(1, "a", 1004, 1), (2, "b", 996, 1)]
    assert [row[1] for row in load_table(ledger, as_of=noon_of_day_5)] == ["a", "c", "b"]


def test_known_at_hides_later_records(fill_ledger):
    """As known at a position, later events do not count."""
    ledger = fill_ledger(build_club_game("g1", "a b", day=5), build_club_game("g2", "b a", day=1))
    stream = build_stream(load_facts(ledger, known_at=2), ALL)
    assert [row.player for row in rank_stream(stream).rows] == ["a", "b"]
    empty = build_stream(load_facts(ledger, known_at=1), ALL)
    assert rank_stream(empty).rows == []


def explain_game(ratings, db, game_id, ladder=ALL):
    """Return the explanation of a game as JSON."""
    result = ratings("explain", game_id, ladder, "--format", "json", db=db)
    assert result.exit_code == 0, result.stderr
    return strip_decimals(json.loads(result.stdout))


def test_explanation_has_terms_and_accounts(ratings, ledger_url, fill_ledger):
    """The explanation of a game has the terms of every player, and the accounts."""
    fill_ledger(build_club_game("g", "anna ben cleo"))
    explanation = explain_game(ratings, ledger_url, "g")
    anna = explanation["players"][0]
    assert (anna["before"], anna["change"], anna["after"]) == ("1000", "8", "1008")
    terms = [(term["term"], term["amount"], term["detail"]) for term in anna["terms"]]
    assert terms == [("vs ben", "4", "K 8, expected 0.5, scored 1"), ("vs cleo", "4", "K 8, expected 0.5, scored 1")]
    assert explanation["accounts"] == [{"account": "minted", "amount": "0"}, {"account": "burned", "amount": "0"}]


@pytest.mark.slow
def test_explained_parts_sum_exactly(ratings, ledger_url):
    """In random games, explained terms, changes and accounts sum exactly."""
    fill(ledger_url, [build_ruleset_event(), *draw_games(8, 40, PLAYERS)])
    for number in range(40):
        explanation = explain_game(ratings, ledger_url, f"g-{number}")
        for player in explanation["players"]:
            assert sum(Fraction(term["amount"]) for term in player["terms"]) == Fraction(player["change"])
            assert Fraction(player["before"]) + Fraction(player["change"]) == Fraction(player["after"])
        accounts = sum(Fraction(account["amount"]) for account in explanation["accounts"])
        assert sum(Fraction(player["change"]) for player in explanation["players"]) + accounts == 0


@pytest.mark.slow_cases
def test_history_adds_up_to_standings(ratings, ledger_url):
    """Histories sum to the standings and include adjustments."""
    fill(ledger_url, [build_ruleset_event(), *draw_games(9, 40, PLAYERS), build_adjustment(ALL, "anna", "12.5", day=9)])
    rows = {
        r["player"]: r for r in json.loads(ratings("standings", ALL, "--format", "json", db=ledger_url).stdout)["rows"]
    }
    for player in PLAYERS:
        steps = json.loads(ratings("history", player, ALL, "--format", "json", db=ledger_url).stdout)["rows"]
        points = Fraction(1000)
        for step in steps:
            assert Fraction(step["before"]) == points
            points += Fraction(step["change"])
            assert Fraction(step["after"]) == points
        assert rows[player]["points"] == str(points)
        assert rows[player]["games"] == sum(step["game_id"] is not None for step in steps)
    anna = json.loads(ratings("history", "anna", ALL, "--format", "json", db=ledger_url).stdout)["rows"]
    assert [(step["change"], step["place"], step["reason"]) for step in anna if step["game_id"] is None] == [
        ("25/2", None, "test")
    ]


UNCOUNTED = {
    "not rated": (build_club_game("g", "a b", rated=False), "the game was not rated"),
    "aborted": (build_club_game("g", "a b", aborted=True), "ended by agreement"),
    "group": (build_club_game("g", "a b", group="casual"), "leaves out the group casual"),
    "too many": (build_club_game("g", "a b c d e f g"), "2 to 6 players; this one has 7"),
    "other game": (build_club_game("g", "a b", game="chess"), "scores only club-catan"),
}


@pytest.mark.parametrize("case", sorted(UNCOUNTED))
def test_explain_says_why_game_is_uncounted(ratings, ledger_url, fill_ledger, case):
    """The explanation of an uncounted game has the reason."""
    event, reason = UNCOUNTED[case]
    fill_ledger(event, build_club_game("h", "a b", day=2))
    explanation = explain_game(ratings, ledger_url, "g")
    assert not explanation["counted"]
    assert reason in explanation["why_not"]
    assert all(player["change"] == "0" and player["terms"] == [] for player in explanation["players"])
    assert [
        row["games"] for row in json.loads(ratings("standings", ALL, "--format", "json", db=ledger_url).stdout)["rows"]
    ] == [1, 1]


def test_explain_names_the_right_ladder(ratings, ledger_url, fill_ledger):
    """The explanation of a game on the wrong ladder names the right one."""
    fill_ledger(build_club_game("g", "a b"))
    assert explain_game(ratings, ledger_url, "g", "club-catan-elo/3-4")["why_not"] == "it belongs to club-catan-elo/all"


def test_leavers_and_substitutes_are_left_out(ratings, ledger_url, fill_ledger):
    """Leavers and their substitutes do not count, and the explanation says so."""
    event = build_club_game("g", "a b c")
    event["data"]["participants"] += [{"player": "d", "status": "substitute", "replaces": "c", "place": 3}]
    event["data"]["participants"][2]["status"] = "abandoned"
    ledger = fill_ledger(event)
    assert load_table(ledger) == [(1, "a", 1004, 1), (2, "b", 996, 1)]
    players = explain_game(ratings, ledger_url, "g")["players"]
    assert [(p["player"], p["change"], "why_not" in p) for p in players] == [
        ("a", "4", False),
        ("b", "-4", False),
        ("c", "0", True),
        ("d", "0", True),
    ]
    assert "status abandoned" in players[2]["why_not"]


def test_open_ledger_explains_player_without_counted_games(tmp_path):
    """An open ledger that knows a whole ladder explains a player without counted games, with the start points."""
    event = build_club_game("g", "a b c")
    event["data"]["participants"][2]["status"] = "abandoned"
    create_ledger(str(tmp_path / "ratings.db"))
    fill(str(tmp_path / "ratings.db"), [build_ruleset_event(SIMULTANEOUS), event, build_club_game("h", "a b", day=2)])
    with rl.open(tmp_path / "ratings.db") as ledger:
        assert len(ledger.at().history(ALL, "a").rows) == 2
        players = ledger.at().explain(ALL, "g").players
    assert [(row.player, row.before, row.change) for row in players] == [
        ("a", 1000, 4),
        ("b", 1000, -4),
        ("c", 1000, 0),
    ]


def test_free_account_is_left_out(ratings, ledger_url, fill_ledger):
    """A player with a free account does not count from the moment when the account is free.

    With b free from day 3 on, only the game before that day counts b.
    """
    free = {
        "type": "player.account_changed",
        "occurred_at": "2020-01-03T12:00:00Z",
        "data": {"player": "b", "account": "free"},
    }
    ledger = fill_ledger(
        build_club_game("g1", "a b", day=2),
        build_club_game("g2", "a b c", day=3),
        build_club_game("g3", "a b", day=4),
        free,
    )
    assert load_table(ledger) == [(1, "a", 1008, 2), (2, "b", 996, 1), (2, "c", 996, 1)]
    assert explain_game(ratings, ledger_url, "g3")["why_not"] == "fewer than two counted players"
    reasons = {p["player"]: p.get("why_not") for p in explain_game(ratings, ledger_url, "g2")["players"]}
    assert reasons == {"a": None, "c": None, "b": "club-catan-elo@1 leaves out players with a free account"}


def test_empty_ladder_differs_from_unknown(ratings, ledger_url, fill_ledger):
    """A ladder without games has no rows; an unknown ladder is a usage error."""
    fill_ledger()
    empty = ratings("standings", "club-catan-elo/3-4", "--format", "json", db=ledger_url)
    assert (empty.exit_code, json.loads(empty.stdout)["rows"]) == (0, [])
    for name in (
        "nonsense",
        "club-catan-elo/9",
        "club-catan-elo/all/all",
        "club-catan-elo/",
        "/",
        "",
    ):
        assert ratings("standings", name, db=ledger_url).exit_code == 2, name
    assert ratings("explain", "g", ALL, db=ledger_url).exit_code == 1


def test_newcomer_starts_by_version_in_force(ledger_url):
    """A player added by an adjustment starts with the points of the version then in force.

    The start is 1000, and 1500 from the 10th on; an adjustment of p on the 5th starts from 1000, and later events do
    not change that.
    """
    later = build_ruleset_event(SIMULTANEOUS)
    later["data"] = later["data"] | {"version": "2", "effective_from": "2020-01-10"}
    later["data"]["params"] = later["data"]["params"] | {"start": 1500}
    ledger = fill(ledger_url, [build_ruleset_event(SIMULTANEOUS), later, build_adjustment(ALL, "p", "5", day=5)])
    assert load_table(ledger) == [(1, "p", 1005, 0)]
    fill(ledger_url, [build_club_game("g", "a b", day=12)])
    assert ("p", 1005) in [(row[1], row[2]) for row in load_table(ledger)]


@pytest.mark.parametrize(
    ("zone", "instant"), [("Europe/Berlin", "9999-12-31T23:59:59Z"), ("America/New_York", "0001-01-01T00:00:00Z")]
)
def test_ends_of_time_have_a_month(ledger_url, zone, instant):
    """Games in the first and the last year belong to a month in every time zone."""
    rules = build_ruleset_event(
        SIMULTANEOUS.replace("Europe/Berlin", zone)
        .replace('["players"]', '["month"]')
        .replace('bands = ["all", "3-4"]', "")
    )
    rules["data"]["effective_from"] = "0001-01-01"
    ledger = fill(ledger_url, [rules, {**build_club_game("g", "a b"), "occurred_at": instant}])
    assert len(load_table(ledger, f"club-catan-elo/{instant[:7]}")) == 2


def test_excessive_points_stop_one_ladder(ratings, ledger_url, fill_ledger):
    """Points that grow out of bounds make only their own ladder fail."""
    events = [build_adjustment(ALL, "a", "1000000000", day=1 + n) for n in range(12)]
    fill_ledger(*events, build_club_game("g", "a b c"))
    result = ratings("standings", ALL, db=ledger_url)
    assert (result.exit_code, "position 11" in result.stderr, "bug" in result.stderr) == (1, True, False)
    assert ratings("standings", "club-catan-elo/3-4", db=ledger_url).exit_code == 0
    assert ratings("rebuild", db=ledger_url).exit_code == 1


def test_substituted_seat_counts_once_in_k(ratings, ledger_url):
    """A seat with a leaver and a substitute counts once in a shared K."""
    event = build_club_game("g", "a b c")
    event["data"]["participants"] += [{"player": "d", "status": "substitute", "replaces": "c", "place": 3}]
    event["data"]["participants"][2]["status"] = "abandoned"
    fill(ledger_url, [build_ruleset_event(), event])
    details = {t["detail"].split(",")[0] for p in explain_game(ratings, ledger_url, "g")["players"] for t in p["terms"]}
    assert details == {"K 32"}


def test_command_line_names_are_composed(ratings, ledger_url, fill_ledger):
    """Names on the command line are composed like recorded names."""
    fill_ledger(build_club_game("partie-\u00e9t\u00e9", "j\u00fcrgen ben"))
    decomposed = ["ju\u0308rgen", "partie-e\u0301te\u0301"]
    assert json.loads(ratings("history", decomposed[0], ALL, "--format", "json", db=ledger_url).stdout)["rows"]
    assert ratings("explain", decomposed[1], ALL, db=ledger_url).exit_code == 0
    assert "jürgen" in ratings("log", decomposed[0], db=ledger_url).stdout


def test_uncounted_game_shows_points_before(ratings, ledger_url, fill_ledger):
    """The points before an uncounted game do not include later events.

    With an unrated game on day 2, an adjustment on day 3 and a game on day 4, the points before the first game are
    1000.
    """
    unrated = build_club_game("g", "a b", day=2, rated=False)
    fill_ledger(unrated, build_adjustment(ALL, "a", "50", day=3), build_club_game("h", "a b", day=4))
    assert [p["before"] for p in explain_game(ratings, ledger_url, "g")["players"]] == ["1000", "1000"]
    assert explain_game(ratings, ledger_url, "h")["players"][0]["before"] == "1050"


def test_books_as_of_earlier_time_include_its_adjustments(tmp_path):
    """An open ledger that knows a whole ladder has the books of an earlier time, with the adjustments until then."""
    games = build_club_game("g", "a b", day=2), build_club_game("h", "a b", day=4)
    adjustments = build_adjustment(ALL, "a", "50", day=3), build_adjustment(ALL, "b", "7", day=5)
    create_ledger(str(tmp_path / "ratings.db"))
    fill(str(tmp_path / "ratings.db"), [build_ruleset_event(SIMULTANEOUS), *games, *adjustments])
    with rl.open(tmp_path / "ratings.db") as ledger:
        assert len(ledger.at().history(ALL, "a").rows) == 3
        balance = ledger.at(as_of="2020-01-03").balance(ALL)
    assert {account.account: account.amount for account in balance.accounts} == {
        "players": 2050,
        "start": -2000,
        "minted": 0,
        "burned": 0,
        "adjusted": -50,
    }
