"""What a game is: the members of each kind, and the checks that hold for every game of that kind.

A new kind is a participant model, a game model and a check, and one line in `KINDS`.
"""

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from ledger.members import Extra, GameId, Label, Members, PlayerId, Score, Slug
from ledger.rejections import Refused, shown

Status = Literal["finished", "abandoned", "substitute", "surrendered", "removed"]
STATUSES: tuple[Status, ...] = ("finished", "abandoned", "substitute", "surrendered", "removed")
LEAVER_STATUSES = ("abandoned", "surrendered", "removed")


class Participant(Members):
    """What participants of every kind of game carry."""

    player: PlayerId
    status: Status = "finished"
    replaces: PlayerId | None = None
    seat: Annotated[int, Field(ge=1, le=10_000)] | None = None
    seconds_played: Annotated[int, Field(ge=0, le=10**9)] | None = None
    extra: Extra | None = None


class Game(Members):
    """What games of every kind carry."""

    game_id: GameId
    game: Slug
    kind: str = "placing"
    group: Label | None = None
    city: Label | None = None
    league: Label | None = None
    season: Label | None = None
    rated: bool = True
    aborted: bool = False
    extra: Extra | None = None


class PlacingParticipant(Participant):
    """A participant with a place (1 is best), a score, or both."""

    place: Annotated[int, Field(ge=1, le=10_000)] | None = None
    score: Score | None = None


class PlacingGame(Game):
    """A game that orders its participants by place or score."""

    score_order: Literal["high", "low"] = "high"
    participants: list[PlacingParticipant]


class Kind(NamedTuple):
    """A kind of game: its model, and a check over the plain data that raises `Refused`."""

    model: type[Game]
    check: Callable[[dict[str, Any]], None]


def check_placing(game: dict[str, Any]) -> None:
    """Participants, seats, places and scores fit together. Raises `Refused`."""
    check_seats(game["participants"])
    places = _seat_values(game, "place")
    scores = _seat_values(game, "score")
    if None in places.values() and (any(places.values()) or None in scores.values()):
        missing = next(player for player, place in places.items() if place is None)
        raise Refused("place-missing", f"{shown(missing)} has no place; all participants have one, or all have a score")
    if None in places.values():
        return
    _check_gaps(sorted(places.values()))
    scored = [player for player in places if scores[player] is not None]
    ranked = sorted((places[player], _merit(game, scores[player]), player) for player in scored)
    for (place, merit, player), (worse_place, worse_merit, worse) in pairwise(ranked):
        if worse_place > place and worse_merit < merit:
            raise Refused(
                "score-contradicts-place",
                f"{shown(worse)} at place {worse_place} has a better score than {shown(player)} at place {place}",
            )


def check_seats(participants: list[dict[str, Any]]) -> None:
    """At least two seats, nobody twice, one substitute a leaver, both with the same place. Raises `Refused`."""
    by_player: dict[str, dict[str, Any]] = {}
    for participant in participants:
        if by_player.setdefault(participant["player"], participant) is not participant:
            raise Refused("player-twice", f"{shown(participant['player'])} takes part twice")
    replaced: set[str] = set()
    for participant in participants:
        name, leaver_name = participant["player"], participant.get("replaces")
        if (participant.get("status") == "substitute") != (leaver_name is not None):
            raise Refused(
                "substitute-without-leaver", f"{shown(name)}: a substitute, and only he, names whom he replaces"
            )
        if leaver_name is None:
            continue
        leaver = by_player.get(leaver_name, {})
        if leaver.get("status") not in LEAVER_STATUSES:
            raise Refused(
                "substitute-without-leaver",
                f"{shown(name)} replaces {shown(leaver_name)}, who did not leave this game "
                f"(status {', '.join(LEAVER_STATUSES)})",
            )
        if leaver_name in replaced:
            raise Refused("leaver-replaced-twice", f"{shown(leaver_name)} is replaced twice")
        replaced.add(leaver_name)
        for member in ("place", "score", "seat"):
            if leaver.get(member, participant.get(member)) != participant.get(member):
                raise Refused(
                    "seat-disagrees", f"{shown(leaver_name)} and {shown(name)} share a seat, but not the {member}"
                )
    if len(participants) - len(replaced) < 2:
        raise Refused(
            "too-few-participants", f"a game has at least two seats, this one {len(participants) - len(replaced)}"
        )


def seat_places(game: dict[str, Any]) -> list[int]:
    """Competition places (1, 2, 2, 4) in the order of the participants; a seat counts once, its two players share it.

    `game` is a checked game of kind `placing`; its places may be dense, or absent where scores decide.
    """
    participants = game["participants"]
    key: dict[str, Any] = _seat_values(game, "place")
    if None in key.values():
        key = {seat: _merit(game, score) for seat, score in _seat_values(game, "score").items()}
    ordered = sorted(key.values())
    return [ordered.index(key[participant.get("replaces", participant["player"])]) + 1 for participant in participants]


def _seat_values(game: dict[str, Any], member: str) -> dict[str, Any]:
    """The member by seat; a seat is named by the player who sat there first."""
    values = {p["player"]: p.get(member) for p in game["participants"]}
    if any("replaces" in p for p in game["participants"]):
        for substitute in game["participants"]:
            if "replaces" in substitute:
                values[substitute["replaces"]] = values.pop(substitute["player"])
    return values


def _merit(game: dict[str, Any], score: int | str) -> Decimal:
    """The score with its sign such that less is better."""
    return Decimal(score) if game.get("score_order") == "low" else -Decimal(score)


def _check_gaps(places: list[int]) -> None:
    competition = all(place == places.index(place) + 1 for place in places)
    dense = sorted(set(places)) == list(range(1, len(set(places)) + 1))
    if not (competition or dense):
        raise Refused(
            "place-gap", f"the places {', '.join(map(str, places))} have a gap; ties are 1, 2, 2, 4 or 1, 2, 2, 3"
        )


KINDS = {
    "placing": Kind(PlacingGame, check_placing),
}
