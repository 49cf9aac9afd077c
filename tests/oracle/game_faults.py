"""Find the faults of a game by itself, without the rest of the log: in its seats, places, scores and victories."""

from fractions import Fraction

from oracle.log import Event, compute_places, list_seats

RESULTS = ("place", "score", "power", "influence", "victory")
LEAVER_STATUSES = ("abandoned", "surrendered", "removed")


def find_own_faults(game: Event) -> set[str]:
    """Return every code with which a game may be refused by itself; if seats are faulty, results are not checked."""
    return find_seat_faults(game) or (find_b5_faults(game) if game.get("kind") == "b5" else find_placing_faults(game))


def find_seat_faults(game: Event) -> set[str]:
    participants = game["participants"]
    by_player = {participant["player"]: participant for participant in participants}
    replaced = [p["replaces"] for p in participants if p.get("replaces")]
    codes = {"player-twice"} if len(by_player) < len(participants) else set()
    if len(set(replaced)) < len(replaced):
        codes.add("leaver-replaced-twice")
    if len(participants) - len(replaced) < 2:
        codes.add("too-few-participants")
    for participant in participants:
        codes |= find_substitution_faults(participant, by_player.get(participant.get("replaces") or "", {}))
    return codes


def find_substitution_faults(participant: Event, leaver: Event) -> set[str]:
    """Return the faults of a participant in relation to the one whom they replace, if any."""
    is_substitute, codes = participant.get("status") == "substitute", set()
    if is_substitute != bool(participant.get("replaces")) or (
        is_substitute and leaver.get("status") not in LEAVER_STATUSES
    ):
        codes.add("substitute-without-leaver")
    if any(leaver.get(name) not in (None, participant.get(name)) for name in RESULTS):
        codes.add("seat-disagrees")
    return codes


def find_placing_faults(game: Event) -> set[str]:
    results = [seat.last for seat in list_seats(game)]
    placed = [result["place"] for result in results if result.get("place") is not None]
    scored = [result for result in results if result.get("score") is not None]
    if len(placed) < len(results):
        return {"place-missing"} if placed or len(scored) < len(results) else set()
    competition = all(place == 1 + sum(other_place < place for other_place in placed) for place in placed)
    dense = all(place == 1 + len({other_place for other_place in placed if other_place < place}) for place in placed)
    codes = set() if competition or dense else {"place-gap"}
    sign = 1 if game.get("score_order") == "low" else -1
    for better in scored:
        for worse in scored:
            if better["place"] < worse["place"] and Fraction(worse["score"]) * sign < Fraction(better["score"]) * sign:
                codes.add("score-contradicts-place")
    return codes


def find_b5_faults(game: Event) -> set[str]:
    if (seat_count := len(list_seats(game))) < 3:
        return {"b5-too-few-players"}
    victory_points = {participant["player"]: participant.get("vp") or 0 for participant in game["participants"]}
    major = any(participant.get("victory") == "major" for participant in game["participants"])
    total = seat_count - 2 + major + bool(game.get("within_time"))
    codes = {"victory-points-total"} if sum(victory_points.values()) != total else set()
    victories = [seat.last.get("victory") for seat in list_seats(game)]
    best_victory = "major" if "major" in victories else "standard" if "standard" in victories else None
    winners = [
        seat
        for seat, victory in zip(list_seats(game), victories, strict=True)
        if (victory == best_victory if best_victory else compute_places(game)[seat.last["player"]] == 1)
    ]
    if len(winners) > 1:
        return codes
    winning_players = {winners[0].first["player"], winners[0].last["player"]}
    return codes | (
        set()
        if sum(victory_points[player] for player in victory_points.keys() - winning_players)
        else {"victory-points-all-kept"}
    )
