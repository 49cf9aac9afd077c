"""Count how often interesting cases occur, so that a test cannot pass because they never do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from oracle.log import Game, Log, apply_correction, build_id_lookup, derive_games, group_voids, select_live
from oracle.rulesets import find_book_ladder, find_version, is_uncountable
from oracle.scores import list_pot_shares
from oracle.times import find_season_bounds, parse_instant

if TYPE_CHECKING:
    from oracle.running import Ladder, Played


def count_cases(log: Log) -> Counter[str]:
    """Count the cases that concern the log; ladders count those that concern points."""
    counts = Counter(event["type"] for event in log if event["type"] != "ruleset.published")
    return counts + count_corrections(log) + count_withdrawals(log) + count_renames(log) + count_times(log)


def count_corrections(log: Log) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name in derive_games(log):
        game_events = [event for event in log if event["data"].get("game_id") == name]
        game, was_dated, was_corrected = derive_games(game_events[:1])[name], False, False
        for event in game_events:
            if event["type"] != "game.corrected":
                continue
            corrected_game = apply_correction(game, event["data"]["game"])
            counts["correction of date"] += corrected_game.at != game.at
            counts["second correction"] += was_corrected
            counts["correction without date after one with"] += was_dated and "occurred_at" not in event["data"]["game"]
            counts["correction to another ladder"] += find_book_ladder(corrected_game) != find_book_ladder(game)
            counts["correction to another game"] += corrected_game.data["game"] != game.data["game"]
            game, was_dated, was_corrected = corrected_game, was_dated or "occurred_at" in event["data"]["game"], True
    return counts


def count_withdrawals(log: Log) -> Counter[str]:
    types = {event["id"]: event["type"] for event in log}
    counts: Counter[str] = Counter()
    for root, void_ids in group_voids(log).items():
        counts[f"void of {types[root]}"] += 1
        counts["void of a void"] += len(void_ids) > 1
        counts["void again after a void of a void"] += len(void_ids) > 2
    return counts


def count_renames(log: Log) -> Counter[str]:
    current, players = build_id_lookup(log), {player for game in derive_games(log).values() for player in game.players}
    counts: Counter[str] = Counter()
    for event in select_live(log, "player.renamed"):
        player, new_player = event["data"]["player"], event["data"]["new_player"]
        counts["merge with games on both sides"] += {player, new_player} <= players
        counts["chain of renames"] += current(new_player) != new_player
    for event in select_live(log, "player.account_changed", "player.registered", "points.adjusted"):
        counts["account or adjustment under an old id"] += current(event["data"]["player"]) != event["data"]["player"]
    for game in derive_games(log).values():
        counts["game under an old id"] += any(current(player) != player for player in game.players)
    return counts


def count_times(log: Log) -> Counter[str]:
    counts: Counter[str] = Counter()
    recorded = [parse_instant(event["occurred_at"]) for event in log if event["type"] == "game.recorded"]
    counts["late game"] = sum(at < max(recorded[:number]) for number, at in enumerate(recorded) if number)
    on_ladders = [game for game in derive_games(log).values() if not game.voided and find_book_ladder(game)]
    moments = sorted((find_book_ladder(game) or "", game.at) for game in on_ladders)
    counts["equal times"] = sum(left == right for left, right in pairwise(moments))
    counts["adjustment at a game's end"] = sum(
        (event["data"]["ladder"], parse_instant(event["occurred_at"])) in moments
        for event in select_live(log, "points.adjusted")
    )
    counts["account change at a game's end"] = sum(
        game.at == parse_instant(event["occurred_at"]) and event["data"]["player"] in game.players
        for event in select_live(log, "player.registered", "player.account_changed")
        for game in on_ladders
        if game.data["game"] == "catan"
    )
    return counts


# -- cases of a ladder


def count_ladder_cases(ladder: Ladder) -> Counter[str]:
    """Count the cases that concern the points of a ladder of `BOOK`."""
    counts = Counter({"adjustment before any game": sum(steps[0][0] is None for steps in ladder.history.values())})
    for played in ladder.played.values():
        if played.counted:
            counts += count_cases_of_game(played) + BY_RULE[ladder.ranking.rule](ladder, played)
        if find_book_ladder(played.game) == ladder.name and not ladder.view.is_late(played.game.at):
            counts += count_exclusions(ladder, played.game)
    return counts


def count_cases_of_game(played: Played) -> Counter[str]:
    statuses = {participant.get("status") for participant in played.game.data["participants"]} - {None, "finished"}
    return Counter(
        {
            "counted game": 1,
            "tie": len(set(played.place.values())) < len(played.place),
            "leaver": bool(statuses - {"substitute"}),
            "substitute": "substitute" in statuses,
        }
    )


def count_exclusions(ladder: Ladder, game: Game) -> Counter[str]:
    """Count the reasons for which a game, or a participant in it, does not count."""
    version = find_version(ladder.versions, game.at)
    if game.voided or not game.rated:
        return Counter({"unrated or aborted": not game.voided})
    if version is None or is_uncountable(game):
        return Counter(
            {"recorded, but not countable": is_uncountable(game), "game before its ruleset": version is None}
        )
    counted_players = ladder.view.list_eligible_players(version, game)
    counts = Counter({"fewer than two counted players": len(counted_players) < 2})
    for participant in game.data["participants"]:
        if participant["player"] not in counted_players:
            status = participant.get("status")
            counts[f"{status if status in ('abandoned', 'substitute') else 'free account'} left out"] += 1
    return counts


def count_contribution_cases(ladder: Ladder, played: Played) -> Counter[str]:
    seconds = [participant.get("seconds_played") for participant in played.game.data["participants"]]
    return Counter(
        {
            "dust burned": played.burned > 0,
            "no bonus at 600 seconds": seconds.count(600),
            "bonus minted": played.minted > 0,
        }
    )


def count_ante_cases(ladder: Ladder, played: Played) -> Counter[str]:
    victories = [participant.get("victory") for participant in played.game.data["participants"]]
    taken_places, paid_places = (
        list(played.place.values()),
        len(list_pot_shares(len(played.place), ladder.ranking.params)),
    )
    at, bounds = played.game.at, find_season_bounds(played.game.data["season"])
    return Counter(
        {
            "tie over several places of the pot": sum(
                taken_places.count(place) > 1 and place <= paid_places for place in taken_places
            ),
            "several winners": len(victories) - victories.count(None) > 1,
            "major and standard victory": {"major", "standard"} <= set(victories),
            "rest of the pot burned": played.burned > 0,
            "season edge": bounds is not None and (at == bounds[0] or bounds[1] - at < timedelta(seconds=1)),
        }
    )


BY_RULE: dict[str, Callable[[Ladder, Played], Counter[str]]] = {
    "contribution-pool/1": count_contribution_cases,
    "ante-pool/1": count_ante_cases,
    "pairwise-elo/1": lambda ladder, played: Counter(),
}
