"""Compute the lists of Catan: monthly lists from the points of games, annual lists from the places in months."""

from collections import defaultdict
from fractions import Fraction

from oracle.counting import Counted, View
from oracle.questions import Answer, Row, compute_ranks, sort_rows
from oracle.rulesets import Version, find_newest_version, find_version, list_versions
from oracle.scores import Params, score_catan
from oracle.times import find_last_instant


def build_month_list(view: View, name: str, versions: list[Version]) -> Answer:
    """Return a monthly list, of one city or across all cities, ranked by the version that scored its last game."""
    return compute_month(view, view.group_counted_games(versions).get(name, []), versions)


def compute_month(view: View, games: list[Counted], versions: list[Version]) -> Answer:
    points_by_player: dict[str, list[Fraction]] = defaultdict(list)
    for game, version, _ in games:
        for player, amount in score_catan(game.data, version.params):
            points_by_player[view.current(player)].append(amount)
    last = games[-1].version if games else find_newest_version(versions)
    return Answer(last.name, len(games), build_month_rows(points_by_player, last.params))


def build_month_rows(points_by_player: dict[str, list[Fraction]], params: Params) -> list[Row]:
    """Return the rows of a month from each player's points per game."""
    mean = params["score"] == "mean"
    score = {
        player: sum(game_points, Fraction(0)) / (len(game_points) if mean else 1)
        for player, game_points in points_by_player.items()
    }
    rank = compute_ranks(
        score, [player for player, game_points in points_by_player.items() if len(game_points) >= params["min_games"]]
    )
    gold = divide_gold(list(rank.values()), params)
    return sort_rows(
        Row(rank.get(player), player, score[player], len(game_points), player in rank, gold.get(rank.get(player)))
        for player, game_points in points_by_player.items()
    )


def divide_gold(taken_ranks: list[int], params: Params) -> dict[int | None, int]:
    """Return the gold of each rank; tied players each get the gold of their rank, or share that of all their ranks."""
    if "gold" not in params:
        return {}
    pay = [*params["gold"], *[0] * len(taken_ranks)]
    gold_by_rank: dict[int | None, int] = {None: 0}
    for rank in taken_ranks:
        pooled = sum(pay[rank - 1 : rank - 1 + taken_ranks.count(rank)]) // taken_ranks.count(rank)
        gold_by_rank[rank] = pooled if params.get("gold_ties") == "pool" else pay[rank - 1]
    return gold_by_rank


def build_year_list(view: View, name: str, versions: list[Version]) -> Answer:
    """Return the list of a year, ranked by the version in force at its end."""
    _, city, group, year = name.split("/")
    version = find_version(versions, find_last_instant(year)) or find_newest_version(versions)
    monthly = list_versions(view.log, version.params["of"])
    played = view.group_counted_games(monthly)
    names = [f"{version.params['of']}/{city}/{group}/{year}-{month:02d}" for month in range(1, 13)]
    months = [compute_month(view, played.get(name, []), monthly) for name in names]
    rows = build_year_rows(view, version.params, group, year, [row for month in months for row in month.rows])
    return Answer(version.name, sum(month.games for month in months), rows)


def build_year_rows(view: View, params: Params, group: str, year: str, rows: list[Row]) -> list[Row]:
    """Return the rows of a year from those of its months; a player who was ranked in no month is not on the list."""
    best = {row.player: select_best_places(row.player, rows, params) for row in rows if row.rank is not None}
    points = {player: Fraction(sum(places)) for player, places in best.items()}
    games = {player: sum(row.games for row in rows if row.player == player) for player in best}
    account = None if group in params["any_account"] else params["account"]
    at = min(find_last_instant(year), view.upto or find_last_instant(year))
    rank = compute_ranks(points, [p for p in best if account is None or view.find_account(p, at) == account], best=-1)
    return sort_rows(
        (Row(rank.get(p), p, points[p], games[p], p in rank, None, places) for p, places in best.items()), best=-1
    )


def select_best_places(player: str, rows: list[Row], params: Params) -> tuple[int, ...]:
    """Return a player's best `months` places; months without a rank fill up the number with the place `missing`."""
    count, missing = params["months"], params["missing"]
    player_places = [row.rank for row in rows if row.player == player and row.rank is not None]
    player_places = sorted(min(place, missing) if params["cap_at_missing"] else place for place in player_places)[
        :count
    ]
    return tuple(sorted(player_places + [missing] * (count - len(player_places))))
