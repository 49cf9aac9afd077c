"""The lists of Catan: of a month, from the points of its games, and of a year, from the places on its months."""

from collections import defaultdict
from fractions import Fraction

from oracle.counting import Counted, View
from oracle.questions import Answer, Row, in_order, ranks
from oracle.rulesets import Version, in_force, newest, versions_of
from oracle.scores import Params, catan_points
from oracle.times import end_of


def month_list(view: View, name: str, versions: list[Version]) -> Answer:
    """The list of a month, whether of a city or open, ranked by the version that scored its last game."""
    return month_of(view, view.on(versions).get(name, []), versions)


def month_of(view: View, games: list[Counted], versions: list[Version]) -> Answer:
    given: dict[str, list[Fraction]] = defaultdict(list)
    for game, version, _ in games:
        for player, amount in catan_points(game.data, version.params):
            given[view.current(player)].append(amount)
    last = games[-1].version if games else newest(versions)
    return Answer(last.name, len(games), month_rows(given, last.params))


def month_rows(given: dict[str, list[Fraction]], params: Params) -> list[Row]:
    """The rows of a month from the points that everybody got in each of their games."""
    mean = params["score"] == "mean"
    score = {player: sum(each, Fraction(0)) / (len(each) if mean else 1) for player, each in given.items()}
    rank = ranks(score, [player for player, each in given.items() if len(each) >= params["min_games"]])
    gold = gold_of(list(rank.values()), params)
    return in_order(
        Row(rank.get(player), player, score[player], len(each), player in rank, gold.get(rank.get(player)))
        for player, each in given.items()
    )


def gold_of(taken: list[int], params: Params) -> dict[int | None, int]:
    """What each rank is paid, if a list pays; who shares one gets its gold, or an equal part of the gold of all."""
    if "gold" not in params:
        return {}
    pay = [*params["gold"], *[0] * len(taken)]
    found: dict[int | None, int] = {None: 0}
    for rank in taken:
        pooled = sum(pay[rank - 1 : rank - 1 + taken.count(rank)]) // taken.count(rank)
        found[rank] = pooled if params.get("gold_ties") == "pool" else pay[rank - 1]
    return found


def year_list(view: View, name: str, versions: list[Version]) -> Answer:
    """The list of a year, ranked by the version in force at its end."""
    _, city, group, year = name.split("/")
    version = in_force(versions, end_of(year)) or newest(versions)
    monthly = versions_of(view.log, version.params["of"])
    played = view.on(monthly)
    names = [f"{version.params['of']}/{city}/{group}/{year}-{month:02d}" for month in range(1, 13)]
    months = [month_of(view, played.get(name, []), monthly) for name in names]
    rows = year_rows(view, version.params, group, year, [row for month in months for row in month.rows])
    return Answer(version.name, sum(month.games for month in months), rows)


def year_rows(view: View, params: Params, group: str, year: str, rows: list[Row]) -> list[Row]:
    """The rows of a year from those of all its months; who was ranked in none of them is not on it."""
    best = {row.player: best_places(row.player, rows, params) for row in rows if row.rank is not None}
    points = {player: Fraction(sum(places)) for player, places in best.items()}
    games = {player: sum(row.games for row in rows if row.player == player) for player in best}
    wanted = None if group in params["any_account"] else params["account"]
    at = min(end_of(year), view.upto or end_of(year))
    rank = ranks(points, [p for p in best if wanted is None or view.account(p, at) == wanted], best=-1)
    return in_order(
        (Row(rank.get(p), p, points[p], games[p], p in rank, None, places) for p, places in best.items()), best=-1
    )


def best_places(player: str, rows: list[Row], params: Params) -> tuple[int, ...]:
    """The best places of somebody in as many months as count; a missing month is a place, too, and may cap the rest."""
    count, missing = params["months"], params["missing"]
    had = [row.rank for row in rows if row.player == player and row.rank is not None]
    had = sorted(min(place, missing) if params["cap_at_missing"] else place for place in had)[:count]
    return tuple(sorted(had + [missing] * (count - len(had))))
