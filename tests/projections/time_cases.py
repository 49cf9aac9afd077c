"""Count the cases in a log in which times matter, so that a test fails if one of these cases never occurred."""

from collections import Counter
from datetime import datetime
from itertools import pairwise

from oracle import cases as oracle_cases
from oracle.log import Event, Game, Log, derive_games, select_live
from oracle.rulesets import build_version, find_ladder_name
from oracle.times import find_first_instant, parse_instant

NAMES_OF_ORACLE_CASES = {
    "late game": "late game",
    "second correction": "corrected twice",
    "correction of date": "date corrected",
    "correction to another ladder": "corrected to another ladder",
    "void of a void": "void of a void",
    "merge with games on both sides": "rename that merges",
    "void of points.adjusted": "adjustment withdrawn",
    "void of ruleset.published": "rule version withdrawn",
    "void of list.published": "list withdrawn",
}


def count_cases(log: Log) -> Counter[str]:
    """Return how often each case occurs in a log, by the names in the tests' `REQUIRED_CASES`."""
    oracle_counts = oracle_cases.count_cases([event for event in log if event["type"] != "list.rows"])
    counts = Counter({name: oracle_counts[oracle_name] for oracle_name, name in NAMES_OF_ORACLE_CASES.items()})
    counts["tie in played time"] = count_ties(log)
    for event in log:
        earlier_types = [
            earlier["type"]
            for earlier in log[: event["position"] - 1]
            if earlier["data"].get("game_id") == event["data"].get("game_id")
        ]
        counts["void of a corrected game"] += event["type"] == "game.voided" and "game.corrected" in earlier_types
        counts["reinstated after a correction"] += (
            event["type"] == "game.reinstated" and "game.corrected" in earlier_types
        )
    return counts + count_version_cases(log)


def list_live_games(log: Log) -> list[Game]:
    """Return the games that are not voided."""
    return [game for game in derive_games(log).values() if not game.voided]


def count_ties(log: Log) -> int:
    """Return how many times a game ended at the same time as the previous one of the same `game`."""
    moments = sorted((game.data["game"], game.at) for game in list_live_games(log))
    return sum(left == right for left, right in pairwise(moments))


def count_version_cases(log: Log) -> Counter[str]:
    """Count the effects of versions that are published after some games."""
    counts: Counter[str] = Counter()
    for event in log:
        day, before = event["data"].get("effective_from"), log[: event["position"] - 1]
        if event["type"] != "ruleset.published" or day is None or not derive_games(before):
            continue
        since, slugs = find_first_instant(day), event["data"]["scope"]["game"]
        end_times = [game.at for game in list_live_games(before) if game.data["game"] in slugs]
        published = [
            e["data"] for e in select_live(before, "ruleset.published") if e["data"]["id"] == event["data"]["id"]
        ]
        counts["retroactive version"] += any(at >= since for at in end_times)
        counts["prospective version"] += any(at < since for at in end_times) and has_later_games(log, event, since)
        counts["equal effective dates"] += day in [data.get("effective_from") for data in published]
        counts["published again under the name of one withdrawn"] += event["data"]["version"] in [
            e["data"]["version"]
            for e in before
            if e["type"] == "ruleset.published" and e["data"]["id"] == event["data"]["id"]
        ]
    for event in select_live(log, "ruleset.published"):
        if event["data"]["id"] == "catan-monthly" and event["data"].get("effective_from"):
            counts["rule change mid-period"] += splits_list(log, event)
    return counts


def has_later_games(log: Log, event: Event, since: datetime) -> bool:
    """Tell whether games from the time of a version are recorded after its publication."""
    return any(
        parse_instant(e["occurred_at"]) >= since
        for e in log[event["position"] :]
        if e["type"] == "game.recorded" and e["data"]["game"] in event["data"]["scope"]["game"]
    )


def splits_list(log: Log, event: Event) -> bool:
    """Tell whether a monthly list has games before and after the date of a version."""
    version = build_version(event["data"])
    catan = [game for game in list_live_games(log) if game.data["game"] == "catan"]
    sides = {
        (find_ladder_name(version, game), game.at >= find_first_instant(event["data"]["effective_from"]))
        for game in catan
    }
    return any((name, not side) in sides for name, side in sides)
