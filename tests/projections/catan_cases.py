"""Counts of the cases that occur in the random years of Catan and on their lists, so that a test can require them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from catan_years import CARDS, CLOCK_CHANGE_DAYS, TWINS
from oracle.counting import View
from oracle.log import (
    Event,
    Game,
    Log,
    build_id_lookup,
    compute_places,
    derive_games,
    group_voids,
    list_seats,
    select_live,
)
from oracle.questions import Answer, Row
from oracle.rulesets import find_version, get_ruleset_id, list_versions
from oracle.times import find_first_instant, find_last_instant, to_berlin

Cases = dict[str, bool]


def count_cases(log: Log, lists: dict[str, Answer]) -> Counter[str]:
    """Return how often each case occurs in a year with these lists."""
    counts: Counter[str] = Counter()
    for cases in (*_find_cases_of_records(log), *_find_cases_of_changes(log), *_find_cases_of_lists(log, lists)):
        counts.update(name for name, occurs in cases.items() if occurs)
    return counts


def _list_played_games(log: Log) -> list[Game]:
    """Return the games of Catan that count for any list."""
    return [game for game in derive_games(log).values() if game.may_count and game.data["game"] == "catan"]


def _find_cases_of_records(log: Log) -> Iterator[Cases]:
    latest = ""
    for event in log:
        game = event["data"]
        if event["type"] != "game.recorded":
            continue
        yield {
            "late game": event["occurred_at"] < latest,
            "unrated or aborted": "rated" in game or "aborted" in game,
            "card game": game.get("group") in CARDS,
            "no city or group": not {"city", "group"} <= game.keys(),
            "another game": game["game"] != "catan",
        }
        latest = max(latest, event["occurred_at"])
    for game in _list_played_games(log):
        yield _find_cases_of_game(game)


def _find_cases_of_game(game: Game) -> Cases:
    seated, placed, at, local = list_seats(game.data), compute_places(game.data), game.at, to_berlin(game.at)
    final_places = [placed[seat.last["player"]] for seat in seated]
    recorded_places = [seat.last.get("place", 0) for seat in seated]
    leavers = [seat.last for seat in seated if seat.last.get("status", "substitute") != "substitute"]
    changed = [seat.changed_hands for seat in seated]
    return {
        f"{len(seated)} seats": True,
        "tie": len(set(final_places)) < len(final_places),
        "dense places": 0 not in recorded_places and recorded_places != final_places,
        "scores alone": 0 in recorded_places,
        "low scores": game.data.get("score_order") == "low",
        "seat that changed hands": any(changed),
        "game without counting players": all(changed),
        "leaver without substitute": bool(leavers),
        "another month in UTC": at.month != local.month,
        "another year in UTC": at.year != local.year,
        "23:30 UTC on 28 February": f"{at:%m-%d %H:%M}" == "02-28 23:30" and local.month == 3,
        "night when clocks change": CLOCK_CHANGE_DAYS[at.year].get(at.month) == at.day and at.hour < 3,
        "29 February": f"{local:%m-%d}" == "02-29",
    }


def _find_cases_of_changes(log: Log) -> Iterator[Cases]:
    by_game: dict[str, list[Event]] = defaultdict(list)
    for event in log:
        if "game_id" in event["data"]:
            by_game[event["data"]["game_id"]].append(event)
    for events in by_game.values():
        types = [event["type"] for event in events]
        dated = ["occurred_at" in event["data"]["game"] for event in events if event["type"] == "game.corrected"]
        months = {
            f"{to_berlin(game.at):%Y-%m}" for game in (*_list_played_games(events[:1]), *_list_played_games(events))
        }
        yield {
            "voided": types[-1] == "game.voided",
            "reinstated": types[-1] == "game.reinstated",
            "corrected after it was reinstated": "game.corrected" in dropwhile("game.reinstated".__ne__, types),
            "moved to another month": len(months) > 1,
            "corrected again, the date not": True in dated and not dated[-1],
        }
    types = {event["id"]: event["type"] for event in log}
    withdrawn = [types[event_id] for event_id, void_ids in group_voids(log).items() if len(void_ids) % 2]
    people = Counter(map(build_id_lookup(log), {player for game in _list_played_games(log) for player in game.players}))
    changes = Counter((e["data"]["player"], e["occurred_at"]) for e in select_live(log, "player.account_changed"))
    yield {
        "rename withdrawn": "player.renamed" in withdrawn,
        "account withdrawn": "player.account_changed" in withdrawn,
        "account withdrawn, and that too": any(len(void_ids) > 1 for void_ids in group_voids(log).values()),
        "two accounts at once": any(number > 1 for number in changes.values()),
        "two ids of one person": any(number > 1 for number in people.values()),
        "chain of renames": any(name.endswith(" 3") for name in people),
    }


def _find_cases_of_lists(log: Log, lists: dict[str, Answer]) -> Iterator[Cases]:
    for name, answer in lists.items():
        versions, period = list_versions(log, get_ruleset_id(name)), name.rsplit("/", 1)[-1]
        version = find_version(versions, find_last_instant(period))
        assert version is not None
        if get_ruleset_id(name) == "catan-monthly":
            yield _find_cases_of_month(answer.rows, version.params)
            yield {"two versions in one month": find_version(versions, find_first_instant(f"{period}-01")) != version}
        elif get_ruleset_id(name) == "catan-annual":
            months = {
                list_name for list_name in lists if list_name.startswith(name.replace("annual", "monthly", 1) + "-")
            }
            yield {"month without a list": 0 < len(months) < 12, "year without ranks": not answer.rows}
            for row in answer.rows:
                yield _find_cases_of_year(log, row, period, name.split("/")[2], version.params)


def _find_cases_of_month(rows: list[Row], params: dict[str, Any]) -> Cases:
    ranks = [row.rank for row in rows if row.rank]
    shared = Counter(ranks)
    games = [row.games for row in rows]
    gold_by_rank = [*params["gold"], *[0] * 20]
    pool = params["gold_ties"] == "pool"
    return {
        "shared place": len(shared) < len(ranks),
        "places 1, 1, 3": [*ranks[:3]] == [1, 1, 3],
        "gold of a shared place": not pool and any(row.gold and shared[row.rank or 0] > 1 for row in rows),
        "gold pooled": pool and any(row.gold and shared[row.rank or 0] > 1 for row in rows),
        "gold that is not paid": pool and any(sum(gold_by_rank[r - 1 : r - 1 + n]) % n for r, n in shared.items()),
        "place behind the gold": bool(ranks) and max(ranks) > len(params["gold"]),
        "one game short": params["min_games"] - 1 in games,
        "just enough games": params["min_games"] in games,
        "list without ranks": not ranks,
        "twins on the list": {*TWINS} <= {row.player for row in rows if row.rank},
        f"score {params['score']}": True,
        f"substitution {params['substitution']}": True,
    }


def _find_cases_of_year(log: Log, row: Row, year: str, group: str, params: dict[str, Any]) -> Cases:
    assert row.places is not None
    free, current = View(log).find_account(row.player, find_last_instant(year)) == "free", build_id_lookup(log)
    accounts = select_live(log, "player.account_changed")
    changed = {event["occurred_at"] for event in accounts if current(event["data"]["player"]) == row.player}
    return {
        "missing months": row.places[-1] == 150,
        "four real months": row.places[-1] < 150 == params["missing"],
        "free in the basic game": free and group == "basic" and row.rank is not None,
        "free and not ranked": free and row.rank is None,
        "account from the last moment": f"{year}-12-31T22:59:59.999999Z" in changed,
        "account from the first moment after": f"{year}-12-31T23:00:00Z" in changed,
        "place worse than a missing one": row.places[-1] > params["missing"],
        "missing one caps": params["cap_at_missing"] and params["missing"] in row.places,
    }
