"""The places of a ladder's games as lists count them: those of participants who were classified."""

from itertools import pairwise

from ratings_ledger.projections.contract import LEAVERS, SUBSTITUTE
from ratings_ledger.projections.replay.ladders import Stream


def classified_places(stream: Stream) -> list[int]:
    """Return the place of every participant of a stream, 0 for who was not classified.

    Whoever left a game was not, unless somebody took the seat over: then both have its place. The rules of the stream
    read `place`; where they do not read `status`, everybody was classified.
    """
    places: list[int] = []
    for game, (low, high) in enumerate(pairwise(stream.offsets)):
        names = stream.versions[stream.version[game]].rule.columns
        place = [int(value) for value in stream.columns[names.index("place")][low:high]]
        if "status" in names:
            status = [int(value) for value in stream.columns[names.index("status")][low:high]]
            taken_over = {place[i] for i, kind in enumerate(status) if kind == SUBSTITUTE}
            place = [0 if kind in LEAVERS and place[i] not in taken_over else place[i] for i, kind in enumerate(status)]
        places += place
    return places
