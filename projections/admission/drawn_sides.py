"""Generate sides, scores and custom numbers of random games, if a rule with state or its ruleset reads them."""

from random import Random
from typing import Any

from ratings_ledger.projections.contract import NUMBERS
from ratings_ledger.projections.rulesets.versions import Version

# random numbers come from the part of their range that is nearest to zero, at most twice as wide as this
NUMBER_DISTANCE_MAX = 20


def add_side_members(data: dict[str, Any], version: Version, rng: Random) -> None:
    """Add the members besides places that a version's rule reads.

    If the rule reads scores, placing games get them; if it reads teams, half of the placing games with three or more
    seats get teams. If it reads a home side, half of all games get one. All participants get the numbers that the rule
    reads or the ruleset requires.
    """
    columns = version.rule.columns
    seats = [participant for participant in data["participants"] if "replaces" not in participant]
    if data["kind"] == "placing":
        if "team" in columns and len(seats) > 2 and rng.random() < 0.5:
            _form_teams(seats, rng)
        if "score" in columns or "side_score" in columns:
            _score_places(data, seats, version, rng)
        _repeat_for_substitutes(data)
    if "home" in columns and rng.random() < 0.5:
        rng.choice(seats)["home"] = True
    ranges = version.ruleset.numbers
    read_numbers = {name.removeprefix(NUMBERS) for name in columns if name.startswith(NUMBERS)}
    required = {name for name, allowed in ranges.items() if allowed.absent == "refuse"}
    for name in sorted(read_numbers | required):
        low, high = (ranges[name].min, ranges[name].max) if name in ranges else (0, NUMBER_DISTANCE_MAX)
        low = max(low, min(-NUMBER_DISTANCE_MAX, high - NUMBER_DISTANCE_MAX))
        high = min(high, low + 2 * NUMBER_DISTANCE_MAX)
        for participant in data["participants"]:
            participant.setdefault("numbers", {})[name] = rng.randint(low, high)


def _form_teams(seats: list[dict[str, Any]], rng: Random) -> None:
    """Divide the players into two or more teams, each with one place."""
    count = rng.randint(2, len(seats) - 1)
    teams = [*range(count), *(rng.randrange(count) for _ in seats[count:])]
    rng.shuffle(teams)
    ranks = [rng.randrange(count) for _ in range(count)]
    for seat, team in zip(seats, teams, strict=True):
        seat["team"] = f"team-{team}"
        seat["place"] = 1 + sum(ranks[seat_team] < ranks[team] for seat_team in teams)


def _score_places(data: dict[str, Any], seats: list[dict[str, Any]], version: Version, rng: Random) -> None:
    """Give every seat a score that agrees with its place."""
    step = rng.randint(1, 30)
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
