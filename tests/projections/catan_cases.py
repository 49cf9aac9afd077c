"""What happens in the random years of Catan and on their lists, counted, so that a test can say what it has seen."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from catan_years import CARDS, CLOCKS, TWINS
from naive_lists import Event, Played, Written, account, instant, person, played, seats, standing, version_on

Cases = dict[str, bool]


def count(events: list[Event], lists: dict[str, Written]) -> Counter[str]:
    """How often each case occurs in a year with these lists."""
    found: Counter[str] = Counter()
    for cases in (*_of_records(events), *_of_changes(events), *_of_lists(standing(events), lists)):
        found.update(name for name, seen in cases.items() if seen)
    return found


def _of_records(events: list[Event]) -> Iterator[Cases]:
    latest = ""
    for event in events:
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
    for one in played(standing(events)):
        yield _of_game(one)


def _of_game(one: Played) -> Cases:
    seated = list(seats(one.game))
    merits = sorted(merit for _, _, merit in seated)
    places = [p.get("place", 0) for p in one.game["participants"] if p["player"] in [last for _, last, _ in seated]]
    left = {p["player"] for p in one.game["participants"] if p.get("status", "substitute") != "substitute"}
    changed = [first != last for first, last, _ in seated]
    return {
        f"{len(seated)} seats": True,
        "tie": len(set(merits)) < len(merits),
        "dense places": 0 not in places and any(1 + merits.index(place) != place for place in places),
        "scores alone": 0 in places,
        "low scores": one.game.get("score_order") == "low",
        "seat that changed hands": any(changed),
        "nobody of a game counts": all(changed),
        "leaver without substitute": bool(left & {last for _, last, _ in seated}),
        "another month in UTC": one.at.month != one.local.month,
        "another year in UTC": one.at.year != one.local.year,
        "23:30 UTC on 28 February": f"{one.at:%m-%d %H:%M}" == "02-28 23:30" and one.local.month == 3,
        "night when clocks change": CLOCKS[one.at.year].get(one.at.month) == one.at.day and one.at.hour < 3,
        "29 February": f"{one.local:%m-%d}" == "02-29",
    }


def _of_changes(events: list[Event]) -> Iterator[Cases]:
    by_game: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if "game_id" in event["data"]:
            by_game[event["data"]["game_id"]].append(event)
    for told in by_game.values():
        types = [event["type"] for event in told]
        dated = ["occurred_at" in event["data"]["game"] for event in told if event["type"] == "game.corrected"]
        months = {f"{one.local:%Y-%m}" for one in (*played(told[:1]), *played(told))}
        yield {
            "voided": types[-1] == "game.voided",
            "reinstated": types[-1] == "game.reinstated",
            "corrected after it was reinstated": "game.corrected" in dropwhile("game.reinstated".__ne__, types),
            "moved to another month": len(months) > 1,
            "corrected again, the date not": True in dated and not dated[-1],
        }
    live = standing(events)
    withdrawn = [event["type"] for event in events if event not in live]
    ids = {participant["player"] for one in played(live) for participant in one.game["participants"]}
    people = Counter(person(live, name) for name in ids)
    changes = Counter((e["data"]["player"], e["occurred_at"]) for e in live if e["type"] == "player.account_changed")
    yield {
        "rename withdrawn": "player.renamed" in withdrawn,
        "account withdrawn": "player.account_changed" in withdrawn,
        "account withdrawn, and that too": "event.voided" in withdrawn,
        "two accounts at once": any(count > 1 for count in changes.values()),
        "two ids of one person": any(count > 1 for count in people.values()),
        "chain of renames": any(name.endswith(" 3") for name in people),
    }


def _of_lists(events: list[Event], lists: dict[str, Written]) -> Iterator[Cases]:
    for name, written in lists.items():
        ruleset_id, *_, period = name.split("/")
        day = f"{period}-12-31" if ruleset_id == "catan-annual" else f"{period}-31"
        version = version_on(events, ruleset_id, day)
        if ruleset_id == "catan-monthly":
            yield _of_month(written.rows, version["params"])
            yield {"two versions in one month": version_on(events, ruleset_id, f"{period}-01") != version}
        elif ruleset_id == "catan-annual":
            months = {other for other in lists if other.startswith(name.replace("annual", "monthly", 1) + "-")}
            yield {"month without a list": 0 < len(months) < 12, "year without ranks": not written.rows}
            for row in written.rows:
                yield _of_year(events, row, period, name.split("/")[2], version["params"])


def _of_month(rows: list[dict[str, Any]], params: dict[str, Any]) -> Cases:
    ranks = [row["rank"] for row in rows if row["rank"]]
    shared = Counter(ranks)
    games = [row["games"] for row in rows]
    pay = [*params["gold"], *[0] * 20]
    pool = params["gold_ties"] == "pool"
    return {
        "shared place": len(shared) < len(ranks),
        "places 1, 1, 3": [*ranks[:3]] == [1, 1, 3],
        "gold of a shared place": not pool and any(row["gold"] and shared[row["rank"]] > 1 for row in rows),
        "gold pooled": pool and any(row["gold"] and shared[row["rank"]] > 1 for row in rows),
        "gold that is not paid": pool and any(sum(pay[r - 1 : r - 1 + n]) % n for r, n in shared.items()),
        "place behind the gold": bool(ranks) and max(ranks) > len(params["gold"]),
        "one game short": params["min_games"] - 1 in games,
        "just enough games": params["min_games"] in games,
        "list without ranks": not ranks,
        "twins on the list": {*TWINS} <= {row["player"] for row in rows if row["rank"]},
        f"score {params['score']}": True,
        f"substitution {params['substitution']}": True,
    }


def _of_year(events: list[Event], row: dict[str, Any], year: str, group: str, params: dict[str, Any]) -> Cases:
    free = account(events, row["player"], instant(f"{year}-12-31T22:59:59.999999Z")) == "free"
    changed = {event["occurred_at"] for event in events if event["type"] == "player.account_changed"
               and person(events, event["data"]["player"]) == row["player"]}  # fmt: skip
    return {
        "missing months": row["places"][-1] == 150,
        "four real months": row["places"][-1] < 150 == params["missing"],
        "free in the basic game": free and group == "basic" and row["rank"] is not None,
        "free and not ranked": free and row["rank"] is None,
        "account from the last moment": f"{year}-12-31T22:59:59.999999Z" in changed,
        "account from the first moment after": f"{year}-12-31T23:00:00Z" in changed,
        "place worse than a missing one": row["places"][-1] > params["missing"],
        "missing one caps": params["cap_at_missing"] and params["missing"] in row["places"],
    }
