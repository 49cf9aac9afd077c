"""What is wrong with a game by itself, whatever else the log says: its seats, its places and scores, its victories."""

from fractions import Fraction

from oracle.log import Event, places, seats

RESULTS = ("place", "score", "power", "influence", "victory")
LEFT = ("abandoned", "surrendered", "removed")


def own_faults(game: Event) -> set[str]:
    """Every code that a game may be refused with for its own sake; of a wrong seat no result is looked at."""
    return seat_faults(game) or (b5_faults(game) if game.get("kind") == "b5" else placing_faults(game))


def seat_faults(game: Event) -> set[str]:
    participants = game["participants"]
    by_player = {participant["player"]: participant for participant in participants}
    replaced = [p["replaces"] for p in participants if p.get("replaces")]
    found = {"player-twice"} if len(by_player) < len(participants) else set()
    if len(set(replaced)) < len(replaced):
        found.add("leaver-replaced-twice")
    if len(participants) - len(replaced) < 2:
        found.add("too-few-participants")
    for participant in participants:
        found |= substitution_faults(participant, by_player.get(participant.get("replaces") or "", {}))
    return found


def substitution_faults(participant: Event, leaver: Event) -> set[str]:
    """What is wrong with a participant beside the one whom they replace, if anybody."""
    substitute, found = participant.get("status") == "substitute", set()
    if substitute != bool(participant.get("replaces")) or (substitute and leaver.get("status") not in LEFT):
        found.add("substitute-without-leaver")
    if any(leaver.get(name) not in (None, participant.get(name)) for name in RESULTS):
        found.add("seat-disagrees")
    return found


def placing_faults(game: Event) -> set[str]:
    results = [seat.last for seat in seats(game)]
    placed = [result["place"] for result in results if result.get("place") is not None]
    scored = [result for result in results if result.get("score") is not None]
    if len(placed) < len(results):
        return {"place-missing"} if placed or len(scored) < len(results) else set()
    competition = all(place == 1 + sum(other < place for other in placed) for place in placed)
    dense = all(place == 1 + len({other for other in placed if other < place}) for place in placed)
    found = set() if competition or dense else {"place-gap"}
    sign = 1 if game.get("score_order") == "low" else -1
    for one in scored:
        for other in scored:
            if one["place"] < other["place"] and Fraction(other["score"]) * sign < Fraction(one["score"]) * sign:
                found.add("score-contradicts-place")
    return found


def b5_faults(game: Event) -> set[str]:
    if (n := len(seats(game))) < 3:
        return {"b5-too-few-players"}
    given = {participant["player"]: participant.get("vp") or 0 for participant in game["participants"]}
    major = any(participant.get("victory") == "major" for participant in game["participants"])
    total = n - 2 + major + bool(game.get("within_time"))
    found = {"victory-points-total"} if sum(given.values()) != total else set()
    won = [seat.last.get("victory") for seat in seats(game)]
    best = "major" if "major" in won else "standard" if "standard" in won else None
    winners = [
        seat for seat, victory in zip(seats(game), won, strict=True)
        if (victory == best if best else places(game)[seat.last["player"]] == 1)
    ]  # fmt: skip
    if len(winners) > 1:
        return found
    own = {winners[0].first["player"], winners[0].last["player"]}
    return found | (set() if sum(given[player] for player in given.keys() - own) else {"victory-points-all-kept"})
