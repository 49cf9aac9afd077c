"""Sides, scores and custom numbers of drawn games, if a rule with state or its ruleset reads them."""

from random import Random
from typing import Any

from ratings_ledger.projections.contract import NUMBERS
from ratings_ledger.projections.rulesets.versions import Version

# numbers are drawn at most this far from zero, or from the end of their range that is nearest to zero
NUMBERS_DRAWN = 20


def add_side_members(data: dict[str, Any], version: Version, chance: Random) -> None:
    """Add the members that a version's rule reads besides places: teams or a home side in half of the games, and scores
    and numbers in all.
    """
    columns = version.rule.columns
    seats = [participant for participant in data["participants"] if "replaces" not in participant]
    if data["kind"] == "placing":
        if "team" in columns and len(seats) > 2 and chance.random() < 0.5:
            _form_teams(seats, chance)
        if "score" in columns or "side_score" in columns:
            _score_places(data, seats, version, chance)
        _repeat_for_substitutes(data)
    if "home" in columns and chance.random() < 0.5:
        chance.choice(seats)["home"] = True
    ranges = version.ruleset.numbers
    read = {name.removeprefix(NUMBERS) for name in columns if name.startswith(NUMBERS)}
    required = {name for name, allowed in ranges.items() if allowed.absent == "refuse"}
    for name in sorted(read | required):
        low, high = (ranges[name].min, ranges[name].max) if name in ranges else (0, NUMBERS_DRAWN)
        low = max(low, min(-NUMBERS_DRAWN, high - NUMBERS_DRAWN))
        high = min(high, low + 2 * NUMBERS_DRAWN)
        for participant in data["participants"]:
            participant.setdefault("numbers", {})[name] = chance.randint(low, high)


def _form_teams(seats: list[dict[str, Any]], chance: Random) -> None:
    """Divide the players into two or more teams, each with one place."""
    count = chance.randint(2, len(seats) - 1)
    teams = [*range(count), *(chance.randrange(count) for _ in seats[count:])]
    chance.shuffle(teams)
    ranks = [chance.randrange(count) for _ in range(count)]
    for seat, team in zip(seats, teams, strict=True):
        seat["team"] = f"team-{team}"
        seat["place"] = 1 + sum(ranks[seat_team] < ranks[team] for seat_team in teams)


def _score_places(data: dict[str, Any], seats: list[dict[str, Any]], version: Version, chance: Random) -> None:
    """Give every seat a score that agrees with its place."""
    step = chance.randint(1, 30)
    is_low = version.ruleset.score_order == "low"
    for seat in seats:
        seat["score"] = step * (seat["place"] if is_low else len(seats) - seat["place"])
    if is_low:
        data["score_order"] = "low"


def _repeat_for_substitutes(data: dict[str, Any]) -> None:
    """Copy team, place and score of a replaced player to the substitute."""
    seats = {participant["player"]: participant for participant in data["participants"]}
    for participant in data["participants"]:
        if leaver := seats.get(participant.get("replaces", "")):
            participant |= {name: leaver[name] for name in ("team", "place", "score") if name in leaver}
