"""Games of every type: members, participants, sides, and seats that changed hands.

Each module of `ledger.events.game_types` adds the specifics of one game type.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from ratings_ledger.ledger.events.fields import CustomNumbers, Extra, GameId, Label, Members, PlayerId, Slug, Team
from ratings_ledger.ledger.rejections import Refused, count, quote

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


# for each seat its participants: one player, or a leaver and their substitute
Seats = list[list[dict[str, Any]]]


def draw_seats(seat_count: int, names: Iterator[str], rng: Random) -> Seats:
    """Generate the seats of a random game. Tests and trials of rules use it to cover all kinds of seats.

    Some players leave, some leavers are replaced, and the members `seat` and `seconds_played` may be absent.
    """
    has_seats, has_seconds = rng.random() < 0.5, rng.random() < 0.5
    seats: Seats = []
    for number in range(1, seat_count + 1):
        seat: list[dict[str, Any]] = [{"player": next(names)}]
        if rng.random() < 0.06:
            seat[0]["status"] = rng.choice(LEAVER_STATUSES)
            if rng.random() < 0.5:
                seat.append({"player": next(names), "status": "substitute", "replaces": seat[0]["player"]})
        for participant in seat:
            participant |= {"seat": number} if has_seats else {}
            participant |= {"seconds_played": rng.choice((0, 1, 3_600, rng.randrange(10**6)))} if has_seconds else {}
        seats.append(seat)
    return seats


def list_participants(seats: Seats) -> list[dict[str, Any]]:
    """Return the participants of all seats."""
    return [participant for seat in seats for participant in seat]


def build_participants(sides: Iterable[tuple[int, list[str]]]) -> list[dict[str, Any]]:
    """Build the participants of a game from the place and the players of each side.

    If any side has several players, each side is a team.
    """
    numbered = list(enumerate(sides, 1))
    in_teams = any(len(players) > 1 for _, (_, players) in numbered)
    return [
        {"player": player, "place": place, **({"team": number} if in_teams else {})}
        for number, (place, players) in numbered
        for player in players
    ]


def check_seats(participants: list[dict[str, Any]], shared_members: tuple[str, ...]) -> None:
    """Check for at least two seats, no repeated player, and at most one substitute per leaver. Raises `Refused`.

    Leaver and substitute must have the same seat, team and `shared_members`, except members that the leaver omits.
    """
    by_player: dict[str, dict[str, Any]] = {}
    for participant in participants:
        if by_player.setdefault(participant["player"], participant) is not participant:
            raise Refused("player-twice", f"{quote(participant['player'])} takes part twice; name each player once")
    if len(participants) > 1 and not any("status" in p or "replaces" in p for p in participants):
        return
    replaced: set[str] = set()
    for participant in participants:
        name, leaver_name = participant["player"], participant.get("replaces")
        if (participant.get("status") == "substitute") != (leaver_name is not None):
            raise Refused(
                "substitute-without-leaver",
                f"{quote(name)}: `replaces` and the status `substitute` must come together; add the missing one",
            )
        if leaver_name is None:
            continue
        leaver = by_player.get(leaver_name, {})
        if leaver.get("status") not in LEAVER_STATUSES:
            raise Refused(
                "substitute-without-leaver",
                f"{quote(name)} replaces {quote(leaver_name)}, who did not leave this game; a leaver has the status "
                f"{', '.join(LEAVER_STATUSES[:-1])} or {LEAVER_STATUSES[-1]}",
            )
        if leaver_name in replaced:
            raise Refused(
                "leaver-replaced-twice",
                f"{quote(leaver_name)} is replaced twice, the second time by {quote(name)}; name one substitute",
            )
        replaced.add(leaver_name)
        for member in (*shared_members, "seat", "team"):
            if leaver.get(member, participant.get(member)) != participant.get(member):
                raise Refused(
                    "seat-disagrees",
                    f"{quote(name)} replaces {quote(leaver_name)}, but they differ in {member}; give both the same "
                    f"{member}, or leave it out for {quote(leaver_name)}",
                )
    if len(participants) - len(replaced) < 2:
        seats = count(len(participants) - len(replaced), "seat")
        raise Refused("too-few-participants", f"this game has {seats}; it needs at least two")


# the members by which participants share a side or a seat
_SHARING_MEMBERS = frozenset({"team", "replaces"})
# the members that `check_sides` checks
_SIDE_MEMBERS = frozenset({"team", "home", "numbers"})


def check_sides(
    game: dict[str, Any], shared_members: tuple[str, ...], places: Callable[[dict[str, Any]], list[int]]
) -> None:
    """Check that teams, the home side and numbers are consistent, in a game with valid seats. Raises `Refused`.

    The players of a team must have one place and equal `shared_members`. For a member that a leaver omits, the
    substitute's value counts.
    """
    if _SIDE_MEMBERS.isdisjoint(set().union(*game["participants"])):
        return
    teams = seat_values(game, methodcaller("get", "team"))
    if any(team is not None for team in teams.values()):
        _check_teams(game, teams, shared_members, places)
    sides = zip(number_sides(game), game["participants"], strict=True)
    if len({side for side, participant in sides if participant.get("home")}) > 1:
        raise Refused("two-homes", "participants of two sides have `home` true; at most one side plays at home")
    game_numbers = game.get("numbers", {})
    for participant in game["participants"]:
        for name in sorted(participant.get("numbers", {})):
            if name in game_numbers:
                raise Refused(
                    "number-twice",
                    f"numbers.{name} is given for the game and for {quote(participant['player'])}; give it once",
                )


def _check_teams(
    game: dict[str, Any],
    teams: dict[str, Any],
    shared_members: tuple[str, ...],
    places: Callable[[dict[str, Any]], list[int]],
) -> None:
    without_team = next((seat for seat, team in teams.items() if team is None), None)
    if without_team is not None:
        raise Refused("team-missing", f"{quote(without_team)} has no team; give all participants a team, or none")
    if len(set(teams.values())) < 2:
        raise Refused(
            "one-side", f"all participants are in team {next(iter(teams.values()))}; a game needs at least two sides"
        )
    values_by_member = {member: seat_values(game, methodcaller("get", member)) for member in shared_members}
    place_of = dict(zip((p["player"] for p in game["participants"]), places(game), strict=True))
    values_by_member["place"] = {seat: place_of[seat] for seat in teams}
    first_seats: dict[Any, str] = {}
    for seat, team in teams.items():
        mate = first_seats.setdefault(team, seat)
        for member, values in values_by_member.items():
            if values[seat] != values[mate]:
                raise Refused(
                    "side-disagrees",
                    f"{quote(mate)} and {quote(seat)} are in team {team}, but differ in {member}; give both the same "
                    f"{member}, or different teams",
                )


def number_sides(game: Mapping[str, Any]) -> list[int]:
    """Return the number of each participant's side, counted from 0 in the order in which the sides first appear.

    A side is a team, the `side` of a battle, or else a seat.
    """
    numbers: dict[Any, int] = {}
    seats = seat_values({**game}, lambda participant: participant.get("team", participant.get("side")))
    names = [participant.get("replaces", participant["player"]) for participant in game["participants"]]
    keys = [(seats[name], "" if seats[name] is not None else name) for name in names]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def has_teams_or_substitutes(participants: list[dict[str, Any]]) -> bool:
    """Tell whether participants of a game may share a team or a seat; in most games none do."""
    return not _SHARING_MEMBERS.isdisjoint(set().union(*participants))


def count_seats(game: Mapping[str, Any]) -> int:
    """Count the seats of a game; a seat that changed hands counts once."""
    return sum(["replaces" not in participant for participant in game["participants"]])


def seat_values(game: dict[str, Any], get_value: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return a value for each seat: the substitute's if there is one, else the player's.

    The keys are the first players of the seats.
    """
    values = {p["player"]: get_value(p) for p in game["participants"]}
    for substitute in [p for p in game["participants"] if "replaces" in p]:
        values[substitute["replaces"]] = values.pop(substitute["player"])
    return values


def competition_places(game: dict[str, Any], keys: Mapping[str, Any]) -> list[int]:
    """Return places such as 1, 2, 2, 4 in the order of the participants, given a sort key for each seat.

    A lower key is better. A team counts as one in the places.
    """
    ordered = sorted(keys.values())
    if any("team" in participant for participant in game["participants"]):
        teams = seat_values(game, methodcaller("get", "team"))
        ordered = sorted(min(keys[seat] for seat in keys if teams[seat] == team) for team in {*teams.values()})
    return [bisect_left(ordered, keys[p.get("replaces", p["player"])]) + 1 for p in game["participants"]]


def rank_keys(keys: Sequence[Any]) -> list[int]:
    """Return competition places such as 1, 2, 2, 4 for sort keys; a lower key is better."""
    ordered = sorted(keys)
    return [bisect_left(ordered, key) + 1 for key in keys]
