"""Rate games in memory with rating packages, each with its fastest function for games of several players.

Every function rates the first `count` games of a history, which are lists, and keeps all ratings in a dictionary.
"""

from datetime import datetime
from itertools import pairwise
from time import perf_counter
from typing import Any

from benchmarks.games import chunks
from benchmarks.histories import History

Measurement = dict[str, Any]
Games = list[tuple[list[int], list[int]]]


def _games(history: list[Any], count: int) -> Games:
    """Return the players and places of the first games."""
    drawn_games: Games = []
    for drawn in chunks(History(*history)):
        players, places = drawn.players.tolist(), drawn.places.tolist()
        drawn_games += [(players[low:high], places[low:high]) for low, high in pairwise(drawn.offsets.tolist())]
        if len(drawn_games) >= count:
            break
    return drawn_games[:count]


def multi_elo(history: list[Any], count: int) -> Measurement:
    """Rate with `calc_elo`, a whole game at a time."""
    from multi_elo import EloPlayer, calc_elo

    games = _games(history, count)
    ratings: dict[int, float] = {}
    started = perf_counter()
    for players, places in games:
        seated = [EloPlayer(place, ratings.get(player, 1000)) for player, place in zip(players, places, strict=True)]
        for player, rating in zip(players, calc_elo(seated, 32), strict=True):
            ratings[player] = rating
    return {"seconds": perf_counter() - started, "count": len(games)}


def openskill(history: list[Any], count: int) -> Measurement:
    """Rate with the default model, which is also the fastest; the package is compiled."""
    from openskill.models import PlackettLuce

    games = _games(history, count)
    model = PlackettLuce()
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        teams = [[ratings.get(player) or model.rating()] for player in players]
        for player, (rating,) in zip(players, model.rate(teams, ranks=list(map(float, places))), strict=True):
            ratings[player] = rating
    return {"seconds": perf_counter() - started, "count": len(games)}


def elote(history: list[Any], count: int) -> Measurement:
    """Rate with `beat` and `tied`, pair by pair, because the package's Elo supports only games of two."""
    from elote import EloCompetitor

    games = _games(history, count)
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        for player in players:
            if player not in ratings:
                ratings[player] = EloCompetitor()
        seated = [ratings[player] for player in players]
        for i, mine in enumerate(seated):
            for j in range(i + 1, len(seated)):
                if places[i] == places[j]:
                    mine.tied(seated[j])
                elif places[i] < places[j]:
                    mine.beat(seated[j])
                else:
                    seated[j].beat(mine)
    return {"seconds": perf_counter() - started, "count": len(games)}


def elote_glicko(history: list[Any], count: int) -> Measurement:
    """Rate games of two with Glicko."""
    from elote import GlickoCompetitor

    return _elote_over_time(history, count, GlickoCompetitor)


def elote_glicko_2(history: list[Any], count: int) -> Measurement:
    """Rate games of two with Glicko-2."""
    from elote import Glicko2Competitor

    return _elote_over_time(history, count, Glicko2Competitor)


def _elote_over_time(history: list[Any], count: int, competitor: Any) -> Measurement:
    """Rate games of two with `beat` and `tied`, all at the same time."""
    games = _games(history, count)
    at = datetime(2025, 1, 1)
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        for player in players:
            if player not in ratings:
                ratings[player] = competitor(initial_time=at)
        mine, other = ratings[players[0]], ratings[players[1]]
        if places[0] == places[1]:
            mine.tied(other, match_time=at)
        elif places[0] < places[1]:
            mine.beat(other, match_time=at)
        else:
            other.beat(mine, match_time=at)
    return {"seconds": perf_counter() - started, "count": len(games)}


def trueskill(history: list[Any], count: int) -> Measurement:
    """Rate with `rate`, a whole game at a time; every player is a team of one."""
    from trueskill import TrueSkill

    games = _games(history, count)
    model = TrueSkill()
    ratings: dict[int, Any] = {}
    started = perf_counter()
    for players, places in games:
        teams = [(ratings.get(player) or model.create_rating(),) for player in players]
        for player, (rating,) in zip(players, model.rate(teams, ranks=places), strict=True):
            ratings[player] = rating
    return {"seconds": perf_counter() - started, "count": len(games)}
