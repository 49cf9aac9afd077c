"""The classified places of a ladder's games, as lists count them."""

from collections.abc import Sequence
from itertools import pairwise

from ratings_ledger.projections.contract import LEAVERS, NUMBERS, SUBSTITUTE
from ratings_ledger.projections.replay.ladders import Stream

GUEST = f"{NUMBERS}guest"


def list_classified_places(stream: Stream) -> list[int]:
    """Return the place of every participant of a stream, 0 if not classified.

    A leaver is not classified, unless a substitute took the seat over: then both have its place. A guest is not
    classified, and players behind guests move up. All rules of the stream must read `place`; `status` and
    `numbers.guest` matter only if a rule reads them.
    """
    places: list[int] = []
    for game, (low, high) in enumerate(pairwise(stream.offsets)):
        names = stream.versions[stream.version[game]].rule.columns
        columns = {
            name: [int(value) for value in stream.columns[names.index(name)][low:high]]
            for name in ("place", "status", GUEST)
            if name in names
        }
        zeros = [0] * (high - low)
        places += _classify(columns["place"], columns.get("status", zeros), columns.get(GUEST, zeros))
    return places


def _classify(place: Sequence[int], status: Sequence[int], guest: Sequence[int]) -> list[int]:
    """Return the places of a game's participants, counted without guests; 0 if not classified."""
    taken_over = {place[i] for i, kind in enumerate(status) if kind == SUBSTITUTE}
    guests = [place[i] for i, kind in enumerate(status) if guest[i] == 1 and kind != SUBSTITUTE]
    return [
        0
        if guest[i] == 1 or (kind in LEAVERS and place[i] not in taken_over)
        else place[i] - sum(ahead < place[i] for ahead in guests)
        for i, kind in enumerate(status)
    ]
