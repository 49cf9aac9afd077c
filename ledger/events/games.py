"""What all games have in common: members, participants, and seats that changed hands.

What a game type adds is in a module of `ledger.events.game_types`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from operator import methodcaller
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from ratings_ledger.ledger.events.fields import CustomNumbers, Extra, GameId, Label, Members, PlayerId, Slug, Team
from ratings_ledger.ledger.rejections import Refused, quote

Status = Literal["finished", "abandoned", "substitute", "surrendered", "removed"]
STATUSES: tuple[Status, ...] = ("finished", "abandoned", "substitute", "surrendered", "removed")
LEAVER_STATUSES = ("abandoned", "surrendered", "removed")


class Participant(Members):
    """The members that participants of every game type have."""

    player: PlayerId
    status: Status = "finished"
    replaces: PlayerId | None = None
    seat: Annotated[int, Field(ge=1, le=10_000)] | None = None
    seconds_played: Annotated[int, Field(ge=0, le=10**9)] | None = None
    team: Team | None = None
    club: Label | None = None
    home: bool | None = None
    numbers: CustomNumbers | None = None
    extra: Extra | None = None


class Game(Members):
    """The members that games of every type have."""

    game_id: GameId
    game: Slug
    kind: str = "placing"
    group: Label | None = None
    city: Label | None = None
    league: Label | None = None
    season: Label | None = None
    rated: bool = True
    aborted: bool = False
    numbers: CustomNumbers | None = None
    extra: Extra | None = None


# seats with their participants: one, or a leaver and their substitute
Seats = list[list[dict[str, Any]]]


def draw_seats(count: int, names: Iterator[str], chance: Random) -> Seats:
    """Return the seats of a randomly drawn game, for trying something on everything that games may hold: some players
    leave, some of them are replaced, and seats and seconds are given or not.
    """
    numbered, timed = chance.random() < 0.5, chance.random() < 0.5
    seats: Seats = []
    for number in range(1, count + 1):
        seat: list[dict[str, Any]] = [{"player": next(names)}]
        if chance.random() < 0.06:
            seat[0]["status"] = chance.choice(LEAVER_STATUSES)
            if chance.random() < 0.5:
                seat.append({"player": next(names), "status": "substitute", "replaces": seat[0]["player"]})
        for participant in seat:
            participant |= {"seat": number} if numbered else {}
            participant |= {"seconds_played": chance.choice((0, 1, 3_600, chance.randrange(10**6)))} if timed else {}
        seats.append(seat)
    return seats


def list_participants(seats: Seats) -> list[dict[str, Any]]:
    """Return the participants of all seats."""
    return [participant for seat in seats for participant in seat]


def check_seats(participants: list[dict[str, Any]], shared: tuple[str, ...]) -> None:
    """At least two seats, nobody twice, one substitute per leaver, both with equal `shared` members. Raises `Refused`.

    What the leaver does not state, the substitute states for the seat.
    """
    by_player: dict[str, dict[str, Any]] = {}
    for participant in participants:
        if by_player.setdefault(participant["player"], participant) is not participant:
            raise Refused("player-twice", f"{quote(participant['player'])} takes part twice")
    if len(participants) > 1 and not any("status" in p or "replaces" in p for p in participants):
        return
    replaced: set[str] = set()
    for participant in participants:
        name, leaver_name = participant["player"], participant.get("replaces")
        if (participant.get("status") == "substitute") != (leaver_name is not None):
            raise Refused(
                "substitute-without-leaver",
                f"{quote(name)}: a substitute, and nobody else, names the player they replace",
            )
        if leaver_name is None:
            continue
        leaver = by_player.get(leaver_name, {})
        if leaver.get("status") not in LEAVER_STATUSES:
            raise Refused(
                "substitute-without-leaver",
                f"{quote(name)} replaces {quote(leaver_name)}, who did not leave this game "
                f"(status {', '.join(LEAVER_STATUSES)})",
            )
        if leaver_name in replaced:
            raise Refused("leaver-replaced-twice", f"{quote(leaver_name)} is replaced twice")
        replaced.add(leaver_name)
        for member in (*shared, "seat", "team"):
            if leaver.get(member, participant.get(member)) != participant.get(member):
                raise Refused(
                    "seat-disagrees", f"{quote(leaver_name)} and {quote(name)} share a seat, but not the {member}"
                )
    if len(participants) - len(replaced) < 2:
        raise Refused(
            "too-few-participants", f"a game has at least two seats, this one has {len(participants) - len(replaced)}"
        )


# members that decide the sides of a game, and its numbers
_SIDE_MEMBERS = frozenset({"team", "home", "numbers"})


def check_sides(game: dict[str, Any], shared: tuple[str, ...], places: Callable[[dict[str, Any]], list[int]]) -> None:
    """Teams, who is at home, and numbers fit together, in a game whose seats do. Raises `Refused`.

    The members of a team have one place and equal `shared` members. What a leaver does not state, the substitute
    states for the seat.
    """
    if _SIDE_MEMBERS.isdisjoint(set().union(*game["participants"])):
        return
    teams = seat_values(game, methodcaller("get", "team"))
    if any(team is not None for team in teams.values()):
        _check_teams(game, teams, shared, places)
    homes = {side for side, participant in zip(number_sides(game), game["participants"], strict=True)
             if participant.get("home")}  # fmt: skip
    if len(homes) > 1:
        raise Refused("two-homes", "participants of two sides are at home; at most one side is")
    of_game = game.get("numbers", {})
    for participant in game["participants"]:
        for name in sorted(participant.get("numbers", {})):
            if name in of_game:
                raise Refused(
                    "number-twice",
                    f"numbers.{name} is given for the game and for {quote(participant['player'])}; one place is enough",
                )


def _check_teams(
    game: dict[str, Any], teams: dict[str, Any], shared: tuple[str, ...], places: Callable[[dict[str, Any]], list[int]]
) -> None:
    alone = next((seat for seat, team in teams.items() if team is None), None)
    if alone is not None:
        raise Refused("team-missing", f"{quote(alone)} has no team; either all participants have one, or none has")
    if len(set(teams.values())) < 2:
        raise Refused("one-side", f"everybody is in team {next(iter(teams.values()))}; a game has at least two sides")
    of_seat = {member: seat_values(game, methodcaller("get", member)) for member in shared}
    place_of = dict(zip((p["player"] for p in game["participants"]), places(game), strict=True))
    of_seat["place"] = {seat: place_of[seat] for seat in teams}
    first: dict[Any, str] = {}
    for seat, team in teams.items():
        mate = first.setdefault(team, seat)
        for member, values in of_seat.items():
            if values[seat] != values[mate]:
                raise Refused(
                    "side-disagrees", f"{quote(mate)} and {quote(seat)} are in team {team}, but differ in {member}"
                )


def number_sides(game: Mapping[str, Any]) -> list[int]:
    """Return the number of the side of each participant, from 0 on in the order in which sides first appear.

    A side is a team, the `side` of a battle, or else a seat.
    """
    numbers: dict[Any, int] = {}
    seats = seat_values({**game}, lambda participant: participant.get("team", participant.get("side")))
    keys = [(seats[name], "" if seats[name] is not None else name)
            for name in (p.get("replaces", p["player"]) for p in game["participants"])]  # fmt: skip
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def has_teams(game: Mapping[str, Any]) -> bool:
    """Tell whether the sides of a game are teams, or those of a battle, rather than seats."""
    return any("team" in participant or "side" in participant for participant in game["participants"])


def count_seats(game: Mapping[str, Any]) -> int:
    """Return the number of seats of a game; one that changed hands counts once."""
    return sum(["replaces" not in participant for participant in game["participants"]])


def seat_values(game: dict[str, Any], value: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return a value of the participants by seat, the substitute's where there is one; a seat is named after who sat
    first.
    """
    values = {p["player"]: value(p) for p in game["participants"]}
    for substitute in [p for p in game["participants"] if "replaces" in p]:
        values[substitute["replaces"]] = values.pop(substitute["player"])
    return values


def competition_places(game: dict[str, Any], keys: Mapping[str, Any]) -> list[int]:
    """Places 1, 2, 2, 4 in the order of the participants, given a key by seat; less is better.

    A team takes one place.
    """
    ordered = sorted(keys.values())
    if any("team" in participant for participant in game["participants"]):
        teams = seat_values(game, methodcaller("get", "team"))
        ordered = sorted(min(keys[seat] for seat in keys if teams[seat] == team) for team in {*teams.values()})
    return [bisect_left(ordered, keys[p.get("replaces", p["player"])]) + 1 for p in game["participants"]]
