"""Determine the classified places of the participants in a ladder's games. Lists that compare places use them."""

from collections.abc import Sequence
from itertools import pairwise

from ratings_ledger.projections.contract import LEAVERS, NUMBERS, SUBSTITUTE
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.streams import Stream

GUEST = f"{NUMBERS}guest"


def find_places(facts: Facts, stream: Stream) -> tuple[list[int], dict[int, list[int]]]:
    """Return the classified place at each slot of a stream, 0 if not classified, and further places by slot.

    Only a club that sums the points of its players has further places: its place is the best classified place of its
    players, and the further places are their other ones.
    """
    if facts.club_games is None:
        return list_classified_places(stream), {}
    places, more_places, slot = list[int](), dict[int, list[int]](), 0
    for game, row in enumerate(stream.rows):
        takes_best = stream.versions[stream.version_indices[game]].ruleset.takes == "best"
        for club in range(facts.start[row], facts.start[row] + facts.count[row]):
            member_places = [member.place for member in facts.club_games.members_of(club)]
            member_places = (
                member_places[:1] if takes_best else sorted(place for place in member_places if place) or [0]
            )
            places.append(member_places[0])
            if member_places[1:]:
                more_places[slot] = member_places[1:]
            slot += 1
    return places, more_places


def list_classified_places(stream: Stream) -> list[int]:
    """Return the place of every participant of a stream; 0 if the participant is not classified.

    A leaver is not classified, unless a substitute took the seat over; then leaver and substitute both have the seat's
    place. A guest is not classified, and players behind guests move up. All rules of the stream must read `place`;
    `status` and `numbers.guest` matter only if the game's rule reads them.
    """
    places: list[int] = []
    for game, (low, high) in enumerate(pairwise(stream.offsets)):
        names = stream.versions[stream.version_indices[game]].rule.columns
        columns = {
            name: [int(value) for value in stream.columns[names.index(name)][low:high]]
            for name in ("place", "status", GUEST)
            if name in names
        }
        zeros = [0] * (high - low)
        places += _classify_game(columns["place"], columns.get("status", zeros), columns.get(GUEST, zeros))
    return places


def _classify_game(places: Sequence[int], statuses: Sequence[int], guests: Sequence[int]) -> list[int]:
    """Return the classified places of a game's participants; 0 if not classified. `guests` has a 1 for each guest."""
    participants = [*zip(places, statuses, guests, strict=True)]
    taken_over = {place for place, status, _ in participants if status == SUBSTITUTE}
    guest_places = [place for place, status, guest in participants if guest == 1 and status != SUBSTITUTE]
    return [
        0
        if guest == 1 or (status in LEAVERS and place not in taken_over)
        else place - sum(guest_place < place for guest_place in guest_places)
        for place, status, guest in participants
    ]
