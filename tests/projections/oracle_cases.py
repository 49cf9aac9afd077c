"""How often what is interesting occurs in a log, for tests that must not pass because it never did."""

from collections import Counter
from itertools import pairwise

from oracle import Log, games, identities, instant, ladder_of, live, redated, voids


def cases(log: Log) -> Counter[str]:
    """The cases that concern the log; those that concern points are counted by its ladders."""
    found = Counter(event["type"] for event in log if event["type"] != "ruleset.published")
    return found + corrections(log) + takings_back(log) + renames(log) + times(log)


def corrections(log: Log) -> Counter[str]:
    found: Counter[str] = Counter()
    for name in games(log):
        about = [event for event in log if event["data"].get("game_id") == name]
        data, at = about[0]["data"], instant(about[0]["occurred_at"])
        dated = False
        for number, event in enumerate(about):
            if event["type"] != "game.corrected":
                continue
            new, moved = redated(event["data"]["game"], at)
            found["correction of date"] += moved != at
            found["second correction"] += any(other["type"] == "game.corrected" for other in about[:number])
            found["correction without date after one with"] += dated and "occurred_at" not in event["data"]["game"]
            found["correction to another ladder"] += ladder_of(new) != ladder_of(data)
            found["correction to another game"] += new["game"] != data["game"]
            dated = dated or "occurred_at" in event["data"]["game"]
            data, at = new, moved
    return found


def takings_back(log: Log) -> Counter[str]:
    types = {event["id"]: event["type"] for event in log}
    found: Counter[str] = Counter()
    for root, those in voids(log).items():
        found[f"void of {types[root]}"] += 1
        found["void of a void"] += len(those) > 1
        found["void again after a void of a void"] += len(those) > 2
    return found


def renames(log: Log) -> Counter[str]:
    current, players = identities(log), {player for game in games(log).values() for player in game.players}
    found: Counter[str] = Counter()
    for event in live(log, "player.renamed"):
        player, new_player = event["data"]["player"], event["data"]["new_player"]
        found["merge with games on both sides"] += {player, new_player} <= players
        found["chain of renames"] += current(new_player) != new_player
    for event in live(log, "player.account_changed", "player.registered", "points.adjusted"):
        found["account or adjustment under an old id"] += current(event["data"]["player"]) != event["data"]["player"]
    for game in games(log).values():
        found["game under an old id"] += any(current(player) != player for player in game.players)
    return found


def times(log: Log) -> Counter[str]:
    found: Counter[str] = Counter()
    recorded = [instant(event["occurred_at"]) for event in log if event["type"] == "game.recorded"]
    found["late game"] = sum(at < max(recorded[:number]) for number, at in enumerate(recorded) if number)
    counting = [game for game in games(log).values() if not game.voided and ladder_of(game.data)]
    moments = sorted((ladder_of(game.data) or "", game.at) for game in counting)
    found["equal times"] = sum(one == other for one, other in pairwise(moments))
    found["adjustment at a game's end"] = sum(
        (event["data"]["ladder"], instant(event["occurred_at"])) in moments for event in live(log, "points.adjusted")
    )
    found["account change at a game's end"] = sum(
        game.at == instant(event["occurred_at"]) and event["data"]["player"] in game.players
        for event in live(log, "player.registered", "player.account_changed")
        for game in counting
        if game.data["game"] == "catan"
    )
    return found
