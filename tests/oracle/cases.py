"""How often what is interesting occurs, for tests that must not pass because it never did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from oracle.log import Game, Log, corrected, games, identities, live, voids
from oracle.rulesets import in_force, ladder_of, uncountable
from oracle.scores import shares_of_pot
from oracle.times import instant, season_bounds

if TYPE_CHECKING:
    from oracle.running import Ladder, Played


def cases(log: Log) -> Counter[str]:
    """The cases that concern the log; those that concern points are counted by its ladders."""
    found = Counter(event["type"] for event in log if event["type"] != "ruleset.published")
    return found + corrections(log) + withdrawals(log) + renames(log) + times(log)


def corrections(log: Log) -> Counter[str]:
    found: Counter[str] = Counter()
    for name in games(log):
        about = [event for event in log if event["data"].get("game_id") == name]
        game, dated, again = games(about[:1])[name], False, False
        for event in about:
            if event["type"] != "game.corrected":
                continue
            new = corrected(game, event["data"]["game"])
            found["correction of date"] += new.at != game.at
            found["second correction"] += again
            found["correction without date after one with"] += dated and "occurred_at" not in event["data"]["game"]
            found["correction to another ladder"] += ladder_of(new) != ladder_of(game)
            found["correction to another game"] += new.data["game"] != game.data["game"]
            game, dated, again = new, dated or "occurred_at" in event["data"]["game"], True
    return found


def withdrawals(log: Log) -> Counter[str]:
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
    on_ladders = [game for game in games(log).values() if not game.voided and ladder_of(game)]
    moments = sorted((ladder_of(game) or "", game.at) for game in on_ladders)
    found["equal times"] = sum(one == other for one, other in pairwise(moments))
    found["adjustment at a game's end"] = sum(
        (event["data"]["ladder"], instant(event["occurred_at"])) in moments for event in live(log, "points.adjusted")
    )
    found["account change at a game's end"] = sum(
        game.at == instant(event["occurred_at"]) and event["data"]["player"] in game.players
        for event in live(log, "player.registered", "player.account_changed")
        for game in on_ladders
        if game.data["game"] == "catan"
    )
    return found


# -- on a ladder


def cases_of_ladder(ladder: Ladder) -> Counter[str]:
    """The cases that concern the points of a ladder by the book."""
    found = Counter({"adjustment before any game": sum(steps[0][0] is None for steps in ladder.history.values())})
    for played in ladder.played.values():
        if played.counted:
            found += counted_game(played) + BY_RULE[ladder.ranking.rule](ladder, played)
        if ladder_of(played.game) == ladder.name and not ladder.view.late(played.game.at):
            found += left_out(ladder, played.game)
    return found


def counted_game(played: Played) -> Counter[str]:
    statuses = {participant.get("status") for participant in played.game.data["participants"]} - {None, "finished"}
    return Counter({
        "counted game": 1,
        "tie": len(set(played.place.values())) < len(played.place),
        "leaver": bool(statuses - {"substitute"}),
        "substitute": "substitute" in statuses,
    })  # fmt: skip


def left_out(ladder: Ladder, game: Game) -> Counter[str]:
    """Why a game does not count, or who does not count in it."""
    version = in_force(ladder.versions, game.at)
    if game.voided or not game.rated:
        return Counter({"unrated or aborted": not game.voided})
    if version is None or uncountable(game):
        return Counter({
            "recorded, but not countable": uncountable(game), "game before its ruleset": version is None
        })  # fmt: skip
    who = ladder.view.who(version, game)
    found = Counter({"fewer than two counted players": len(who) < 2})
    for participant in game.data["participants"]:
        if participant["player"] not in who:
            status = participant.get("status")
            found[f"{status if status in ('abandoned', 'substitute') else 'free account'} left out"] += 1
    return found


def of_contributions(ladder: Ladder, played: Played) -> Counter[str]:
    seconds = [participant.get("seconds_played") for participant in played.game.data["participants"]]
    return Counter({
        "dust burned": played.burned > 0,
        "no bonus at 600 seconds": seconds.count(600),
        "bonus minted": played.minted > 0,
    })  # fmt: skip


def of_antes(ladder: Ladder, played: Played) -> Counter[str]:
    victories = [participant.get("victory") for participant in played.game.data["participants"]]
    taken, paid = list(played.place.values()), len(shares_of_pot(len(played.place), ladder.ranking.params))
    at, bounds = played.game.at, season_bounds(played.game.data["season"])
    return Counter({
        "tie over several places of the pot": sum(taken.count(place) > 1 and place <= paid for place in taken),
        "several winners": len(victories) - victories.count(None) > 1,
        "major and standard victory": {"major", "standard"} <= set(victories),
        "rest of the pot burned": played.burned > 0,
        "season edge": bounds is not None and (at == bounds[0] or bounds[1] - at < timedelta(seconds=1)),
    })  # fmt: skip


BY_RULE: dict[str, Callable[[Ladder, Played], Counter[str]]] = {
    "contribution-pool/1": of_contributions,
    "ante-pool/1": of_antes,
    "pairwise-elo/1": lambda ladder, played: Counter(),
}
