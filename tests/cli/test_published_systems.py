"""The shipped systems give the results that their sources publish, through the command line and in both kinds of
store.

The tests publish shipped rulesets, seed players, record games, and compare standings and explanations to the stored
precision.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

Ratings = Callable[..., Any]
Participants = list[dict[str, Any]]
VECTORS = Path(__file__).parents[1] / "golden" / "weng_lin.json"


class Club:
    """A ledger that is filled and read by commands only."""

    def __init__(self, ratings: Ratings, url: str, folder: Path) -> None:
        self._ratings, self._url, self._folder, self._number = ratings, url, folder, 0

    def run(self, *arguments: object, **options: Any) -> Any:
        """Run a command that must succeed and return its JSON."""
        result = self._ratings(*arguments, "--format", "json", db=self._url, **options)
        assert result.exit_code == 0, result
        return json.loads(result.stdout)

    def publish(self, *arguments: str) -> None:
        """Publish a shipped ruleset unchanged."""
        result = self._ratings("rules", "publish", "--shipped", *arguments, "--by", "mira", db=self._url)
        assert result.exit_code == 0, result

    def publish_changed(self, name: str, game: str, own_id: str, changes: dict[str, str]) -> None:
        """Publish a shipped file with some lines replaced."""
        text = self._ratings("rules", "show", "--shipped", name).stdout
        changes = {f'id = "{name}-GAME"': f'id = "{own_id}"', '"GAME"': f'"{game}"', '"ZONE"': '"UTC"', **changes}
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        path = self._folder / f"{own_id}.toml"
        path.write_text(text, encoding="utf-8")
        self.run("rules", "publish", path, "--by", "mira")

    def seed(self, ladder: str, player: str, games: int = 0, **state: object) -> None:
        """Seed a player."""
        values = [f"{name}={value}" for name, value in state.items()]
        self.run("seed", ladder, player, *values, "--games", games, "--reason", "as published", "--by", "mira")

    def record(self, game: str, at: str, *players: str, **options: str) -> str:
        """Record a game by its players in the order of their places, and return its id."""
        self._number += 1
        game_id = f"{game}-{self._number}"
        more = [text for name, value in options.items() for text in (f"--{name}", value)]
        self.run("record", "--game", game, "--game-id", game_id, "--at", at, *more, "--by", "mira", "--new-names",
                 "accept", *players)  # fmt: skip
        return game_id

    def enter(self, game: str, at: str, participants: Participants, **members: Any) -> str:
        """Import a game whose participants have more than places, and return its id."""
        self._number += 1
        data = {"game_id": f"{game}-{self._number}", "game": game, "participants": participants, **members}
        line = json.dumps({"type": "game.recorded", "occurred_at": at, "data": data})
        self.run("import", "-", "--new-names", "accept", "--by", "mira", input=line)
        return str(data["game_id"])

    def read_states(self, ladder: str, *options: str) -> dict[str, dict[str, Decimal]]:
        """Return all players' stored states, by column."""
        rows = self.run("standings", ladder, *options)["rows"]
        return {row["player"]: {name: parse_decimal(text) for name, text in row["state_exact"].items()} for row in rows}

    def read_points(self, ladder: str) -> dict[str, Fraction]:
        """Return all players' points."""
        return {row["player"]: Fraction(row["points"]) for row in self.run("standings", ladder)["rows"]}

    def read_changes(self, game_id: str, ladder: str, *options: str) -> dict[str, Fraction]:
        """Return each player's change by a game, or by the period of the game; its terms must sum to it."""
        players = self.run("explain", game_id, ladder, *options)["players"]
        for player in players:
            assert sum(Fraction(term["amount"]) for term in player["terms"]) == Fraction(player["change"])
            assert Fraction(player["before"]) + Fraction(player["change"]) == Fraction(player["after"])
        return {player["player"]: Fraction(player["change"]) for player in players}


def parse_decimal(text: str) -> Decimal:
    """Return an exact number of a state as a decimal number; all scales are powers of ten."""
    value = Fraction(text)
    return Decimal(value.numerator) / value.denominator


def is_nearest(state: dict[str, Decimal], published: dict[str, str]) -> bool:
    """Return whether a state is the published one, rounded to the stored units."""
    units = {"volatility": Decimal("1e-12")}
    return all(
        abs(state[name] - Decimal(text)) <= units.get(name, Decimal("1e-6")) / 2 for name, text in published.items()
    )


@pytest.fixture(scope="module")
def club(shared_url: str, ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Club]:
    """Create a ledger without events, which the tests share; each test reads only ladders of its own."""
    return Club(ratings, shared_url, tmp_path_factory.mktemp("rulesets"))


# each opponent's rating and deviation, and whether the player wins
OPPONENTS = [("1400", "30", True), ("1550", "100", False), ("1700", "300", False)]


def record_period(club: Club, ladder: str, game: str, player: str) -> list[str]:
    """Record a player's results against the papers' three opponents within a month, and return the games' ids."""
    games = []
    for day, (rating, deviation, is_won) in enumerate(OPPONENTS, 1):
        opponent = f"{player}-opponent-{day}"
        club.seed(ladder, opponent, rating=rating, deviation=deviation)
        order = (player, opponent) if is_won else (opponent, player)
        games.append(club.record(game, f"2025-03-0{day}T12:00Z", *order))
    return games


def test_glicko_matches_the_example_of_its_paper(club: Club) -> None:
    """1500 ± 200 against three opponents in one period: 1464.106463 ± 151.398902; then c counts for whole periods."""
    months = {'freeze = "none"': 'freeze = "none"\nperiod = "month"'}
    club.publish_changed("glicko", "chess", "glicko-months", months)
    club.seed("glicko-months/2", "mark", rating=1500, deviation=200)
    games = record_period(club, "glicko-months/2", "chess", "mark")
    published = {"rating": "1464.106462756911591", "deviation": "151.398902447968735"}
    assert is_nearest(club.read_states("glicko-months/2", "--as-of", "2025-03-31")["mark"], published)
    for months_later, as_of in ((1, "2025-04-01"), (1, "2025-04-30"), (2, "2025-05-31")):
        grown = (Decimal("151.398902") ** 2 + months_later * Decimal("8.1") ** 2).sqrt()
        assert is_nearest(club.read_states("glicko-months/2", "--as-of", as_of)["mark"], {"deviation": str(grown)})
    change = club.read_changes(games[0], "glicko-months/2", "--as-of", "2025-03-31")["mark"]
    assert change == Fraction("-35.893537")


# rating, deviation and volatility before, and as published after
GLICKO_2 = {
    "mark": (("1500", "200", "0.06"), ("1464.0506705390892", "151.5165241243043", ".05999598440067783")),
    "nora": (("1700", "120", "0.06"), ("1640.0819498932657", "109.18380161942891", ".0600019406331984923")),
    "otto": (("2200", "60", "0.06"), ("2167.0210016481133", "60.58099224919897", ".0600311079122397")),
    "pia": (("2200", "350", "0.06"), ("1383.0185845858164", "301.5252876943279", ".06001724209575562")),
}


@pytest.mark.slow_cases
def test_glicko_2_matches_all_four_published_starts(club: Club) -> None:
    """Four different starts against the same opponents give the published states, volatilities included."""
    months = {'freeze = "none"': 'freeze = "none"\nperiod = "month"'}
    club.publish_changed("glicko-2", "draughts", "glicko-2-months", months)
    columns = ("rating", "deviation", "volatility")
    for player, (start, _) in GLICKO_2.items():
        club.seed("glicko-2-months/2", player, **dict(zip(columns, start, strict=True)))
        record_period(club, "glicko-2-months/2", "draughts", player)
    states = club.read_states("glicko-2-months/2", "--as-of", "2025-03-31")
    for player, (_, published) in GLICKO_2.items():
        assert is_nearest(states[player], dict(zip(columns, published, strict=True))), player


@pytest.mark.slow_cases
@pytest.mark.parametrize(("name", "rule"), [("weng-lin", "weng-lin-pl/1"), ("weng-lin-bt", "weng-lin-btf/1")])
def test_weng_lin_matches_our_vectors(name: str, rule: str, club: Club) -> None:
    """The shipped parameters give our vectors of 40 digits: two persons, ties, sides of unequal size."""
    shipped = {"beta": "25/6", "kappa": "0.0001", "tau": "25/300"}
    vectors = [
        entry for entry in json.loads(VECTORS.read_text("utf-8")) if (entry["rule"], entry["params"]) == (rule, shipped)
    ]
    sizes = [[len(side) for side in entry["before"]] for entry in vectors]
    ties = next(index for index, entry in enumerate(vectors) if len({*entry["places"]}) < len(entry["places"]) > 2)
    unequal = next(index for index, lengths in enumerate(sizes) if len({*lengths}) > 1)
    game, ladder = f"quiz-{name}", f"{name}-quiz-{name}/all"
    club.publish(name, "--game", game)
    for number in {0, ties, unequal}:
        vector, expected, participants = vectors[number], {}, list[dict[str, Any]]()
        sides = zip(vector["before"], vector["after"], vector["places"], strict=True)
        for team, (before, after, place) in enumerate(sides, 1):
            for member, (state_before, state_after) in enumerate(zip(before, after, strict=True)):
                player = f"{name}-{number}-{team}-{member}"
                rating, deviation = (f"{Decimal(value):f}" for value in state_before)
                club.seed(ladder, player, rating=rating, deviation=deviation)
                expected[player] = dict(zip(("rating", "deviation"), state_after, strict=True))
                participants.append({"player": player, "place": place, "team": team})
        game_id = club.enter(game, f"2025-03-0{1 + number % 9}T12:00:00Z", participants)
        states = club.read_states(ladder)
        assert all(is_nearest(states[player], state) for player, state in expected.items()), vector
        assert {*club.read_changes(game_id, ladder)} == {*expected}


def test_fide_matches_the_published_month(club: Club) -> None:
    """K 40, rated 1922: +13.20, -26.40 and +18.80 in a month make 1928, with a term for the rounding."""
    club.publish("fide")
    for player, rating, games in [("susan", 1922, 0), ("ben", 1798, 99), ("cleo", 1801, 99), ("dora", 1897, 99)]:
        club.seed("fide", player, games, rating=rating)
    first = club.record("chess", "2025-11-03T12:00Z", "susan", "ben")
    club.record("chess", "2025-11-10T12:00Z", "cleo", "susan")
    club.record("chess", "2025-11-17T12:00Z", "susan", "dora")
    at = ("--as-of", "2025-11-30")
    assert club.read_states("fide", *at)["susan"]["rating"] == 1928
    assert club.read_changes(first, "fide", *at)["susan"] == 6
    (susan,) = (row for row in club.run("explain", first, "fide", *at)["players"] if row["player"] == "susan")
    assert [(term["term"], term["amount_decimal"]) for term in susan["terms"]] == [
        ("vs ben", "13.2"),
        ("vs cleo", "-26.4"),
        ("vs dora", "18.8"),
        ("rounding", "0.4"),
    ]


def test_riichi_matches_the_published_changes(club: Club) -> None:
    """400 games, last among equals: -6; at a table whose mean is 1600: -8; the first game, won: +30."""
    club.publish("riichi")
    for player in ("aki", "bob", "cho", "dan"):
        club.seed("riichi/4", player, 400, rating=2000)
    for player, rating in (("eri", 2000), ("fay", 1400), ("gin", 1500), ("hal", 1500)):
        club.seed("riichi/4", player, 400, rating=rating)
    games = [
        club.record("riichi", "2025-03-01T20:00Z", "bob", "cho", "dan", "aki"),
        club.record("riichi", "2025-03-01T21:00Z", "fay", "gin", "hal", "eri"),
        club.record("riichi", "2025-03-01T22:00Z", "ivo", "joy", "kim", "leo"),
    ]
    changes = [club.read_changes(game, "riichi/4", "--as-of", "2025-03-01") for game in games]
    assert [changes[0]["aki"], changes[1]["eri"], changes[2]["ivo"]] == [-6, -8, 30]
    ratings = club.read_states("riichi/4", "--as-of", "2025-03-01")
    assert [ratings[player]["rating"] for player in ("aki", "eri", "ivo", "leo")] == [1994, 1992, 1530, 1470]


def test_egf_matches_the_published_tournament(club: Club) -> None:
    """2100 beats 2100 at an event: 2109.306."""
    club.publish("egf")
    for player in ("lee", "max"):
        club.seed("egf", player, rating=2100)
    game = club.record("go", "2025-03-01T12:00Z", "lee", "max", league="a congress")
    rating = club.read_states("egf")["lee"]["rating"]
    assert abs(rating - Decimal("2109.306")) <= Decimal("0.0005")
    assert club.read_changes(game, "egf")["lee"] == Fraction(rating) - 2100


POWERS = ["Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey"]


def test_diplomacy_matches_the_published_points(club: Club) -> None:
    """17-17 with five powers out: 44, 44 and 2.4 under C-Diplo, and the sum of squares halves its 100 points."""
    club.publish("diplomacy")
    club.publish("sum-of-squares")
    participants = [{"player": f"as {power}", "power": power} for power in POWERS]
    centres = {"1901": {"Austria": 17, "England": 17}}
    members = {"kind": "diplomacy", "centres": centres, "league": "cup"}
    game = club.enter("diplomacy", "2025-03-01T12:00:00Z", participants, **members)
    points = club.read_points("diplomacy/cup")
    assert [points[f"as {power}"] for power in POWERS] == [44, 44, *[Fraction("2.4")] * 5]
    assert club.read_changes(game, "diplomacy/cup") == points
    squares = club.read_points("sum-of-squares/cup")
    assert [squares[f"as {power}"] for power in POWERS] == [50, 50, 0, 0, 0, 0, 0]


def test_championship_breaks_ties_by_places(club: Club) -> None:
    """25 and 18 points for the first two; equal points and places share a rank, but more first places are ahead."""
    club.publish("championship")
    races = [("ann", "bea", "cat"), ("bea", "dee", "ann"), ("cat", "ann", "bea"), ("dee", "cat", "eve")]
    for day, order in enumerate(races, 1):
        club.record("formula-1", f"2018-03-0{day}T12:00Z", *order, season="2018")
    rows = club.run("standings", "championship/2018")["rows"]
    assert [(row["rank"], row["player"], row["points"]) for row in rows] == [
        (1, "ann", "58"),
        (1, "bea", "58"),
        (1, "cat", "58"),
        (4, "dee", "43"),
        (5, "eve", "15"),
    ]
    for day, order in enumerate((("gus", "hal", "ida"), ("hal", "jon", "kay", "lou", "ida")), 1):
        club.record("formula-1", f"2019-03-0{day}T12:00Z", *order, season="2019")
    rows = club.run("standings", "championship/2019")["rows"]
    assert [(row["rank"], row["player"], row["points"]) for row in rows][:3] == [
        (1, "hal", "43"),
        (2, "gus", "25"),
        (3, "ida", "25"),
    ]


# the season, the teams (the one at home first), the score, and whether the venue is neutral
NFL = [
    ("2024", ("oak", "elm"), (24, 10), False),
    ("2024", ("elm", "fir"), (17, 17), False),
    ("2024", ("fir", "oak"), (3, 31), True),
    ("2025", ("oak", "fir"), (20, 23), False),
    ("2025", ("elm", "oak"), (13, 12), False),
]


def calculate_by_hand() -> dict[str, Decimal]:
    """Return the ratings after the games of `NFL`.

    K is 20, the home team has 65 points more, the factor is ln of the margin, and a new season begins a third of the
    way back to 1505.
    """
    with localcontext(prec=40):
        ratings = {team: Decimal(1500) for team in ("oak", "elm", "fir")}
        last: dict[str, str] = {}
        for season, teams, scores, is_neutral in NFL:
            for team in teams:
                if last.get(team, season) != season:
                    ratings[team] += (1505 - ratings[team]) / 3
                last[team] = season
            ahead = ratings[teams[0]] - ratings[teams[1]] + (0 if is_neutral else 65)
            expected = 1 / (1 + Decimal(10) ** (-ahead / 400))
            margin = scores[0] - scores[1]
            result = Decimal((margin > 0) - (margin < 0) + 1) / 2
            of_winner = ahead if margin > 0 else -ahead
            factor = Decimal("2.2") * Decimal(2).ln()
            if margin:
                factor = (
                    Decimal(abs(margin) + 1).ln() * Decimal("2.2") / (Decimal("0.001") * of_winner + Decimal("2.2"))
                )
            change = 20 * factor * (result - expected)
            ratings[teams[0]] += change
            ratings[teams[1]] -= change
    return ratings


def test_nfl_like_league_matches_calculation_by_hand(club: Club) -> None:
    """Two seasons by the shipped file with a fixed K and a margin: every rating is within two millionths."""
    changes = {
        "k = [{below = 30, k = 40}, {k = 20}]  # by games played; or a number, or {numerator, offset, power}": "k = 20",
        'margin = "none"': 'margin = "ln"',
    }
    club.publish_changed("club-elo", "gridiron", "nfl", changes)
    games = []
    for week, (season, teams, scores, is_neutral) in enumerate(NFL, 1):
        participants: Participants = [
            {"player": team, "score": score} for team, score in zip(teams, scores, strict=True)
        ]
        if not is_neutral:
            participants[0]["home"] = True
        games.append(club.enter("gridiron", f"{season}-09-0{week}T18:00:00Z", participants, season=season))
    states = club.read_states("nfl/2")
    for team, rating in calculate_by_hand().items():
        assert abs(states[team]["rating"] - rating) <= Decimal("0.000002"), team
    history = club.run("history", "nfl/2", "oak")["rows"]
    assert [row.get("cause") for row in history].count("season") == 1
    assert sum(Fraction(row["change"]) for row in history) == Fraction(states["oak"]["rating"]) - 1500
    assert all(club.read_changes(game, "nfl/2") for game in games)
