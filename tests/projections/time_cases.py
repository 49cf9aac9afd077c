"""How often what is interesting about time occurs in a log, for tests that must not pass because it never did."""

from collections import Counter
from datetime import datetime
from itertools import pairwise

from oracle import cases as oracle_cases
from oracle.log import Event, Game, Log, games, live
from oracle.rulesets import cell, version
from oracle.times import instant, start_of

OF_CORRECTIONS = {
    "late game": "late game", "second correction": "corrected twice", "correction of date": "date corrected",
    "correction to another ladder": "corrected to another ladder", "void of a void": "void of a void",
    "merge with games on both sides": "rename that merges", "void of points.adjusted": "adjustment withdrawn",
    "void of ruleset.published": "rule version withdrawn", "void of list.published": "list withdrawn",
}  # fmt: skip


def cases(log: Log) -> Counter[str]:
    """The cases of a log, by the names that the report gives them."""
    known = oracle_cases.cases([event for event in log if event["type"] != "list.rows"])
    found = Counter({name: known[theirs] for theirs, name in OF_CORRECTIONS.items()})
    found["tie in played time"] = ties(log)
    for event in log:
        about = [other["type"] for other in log[: event["position"] - 1] if other["data"].get("game_id")
                 == event["data"].get("game_id")]  # fmt: skip
        found["void of a corrected game"] += event["type"] == "game.voided" and "game.corrected" in about
        found["reinstated after a correction"] += event["type"] == "game.reinstated" and "game.corrected" in about
    return found + versions(log)


def counting(log: Log) -> list[Game]:
    return [game for game in games(log).values() if not game.voided]


def ties(log: Log) -> int:
    """Neighbours of one game that ended at the same time."""
    moments = sorted((game.data["game"], game.at) for game in counting(log))
    return sum(one == other for one, other in pairwise(moments))


def versions(log: Log) -> Counter[str]:
    """What versions do that are published behind some games."""
    found: Counter[str] = Counter()
    for event in log:
        day, before = event["data"].get("effective_from"), log[: event["position"] - 1]
        if event["type"] != "ruleset.published" or day is None or not games(before):
            continue
        since, slugs = start_of(day), event["data"]["scope"]["game"]
        ended = [game.at for game in counting(before) if game.data["game"] in slugs]
        same = [e["data"] for e in live(before, "ruleset.published") if e["data"]["id"] == event["data"]["id"]]
        found["retroactive version"] += any(at >= since for at in ended)
        found["prospective version"] += any(at < since for at in ended) and later(log, event, since)
        found["equal effective dates"] += day in [data.get("effective_from") for data in same]
        found["published again under the name of one withdrawn"] += event["data"]["version"] in [
            e["data"]["version"] for e in before
            if e["type"] == "ruleset.published" and e["data"]["id"] == event["data"]["id"]
        ]  # fmt: skip
    for event in live(log, "ruleset.published"):
        if event["data"]["id"] == "catan-monthly" and event["data"].get("effective_from"):
            found["rule change mid-period"] += splits_a_list(log, event)
    return found


def later(log: Log, event: Event, since: datetime) -> bool:
    """Whether games from the time of a version are recorded after its publication."""
    return any(
        instant(e["occurred_at"]) >= since for e in log[event["position"] :]
        if e["type"] == "game.recorded" and e["data"]["game"] in event["data"]["scope"]["game"]
    )  # fmt: skip


def splits_a_list(log: Log, event: Event) -> bool:
    """Whether a list of a month has games before and after the date of a version."""
    since = version(event["data"])
    catan = [game for game in counting(log) if game.data["game"] == "catan"]
    sides = {(cell(since, game), game.at >= start_of(event["data"]["effective_from"])) for game in catan}
    return any((name, not side) in sides for name, side in sides)
