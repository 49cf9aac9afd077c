"""How tables lay out games, and each rewritten as the long or the wide form.

rows    a row per player                    Date   Player  Place
places  a row per game, a column per place  Date   1st     2nd
players a row per game, a column per player Date   Anna    Ben     Cleo
pair    two names with their result         Date   White   Black   Result
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ratings_ledger.ledger.intake.columns import Cells, place_text
from ratings_ledger.ledger.intake.decimals import with_point
from ratings_ledger.ledger.intake.headers import FIRST, FIRST_SCORE, RESULT, SECOND, SECOND_SCORE
from ratings_ledger.ledger.rejections import Refused, shown

ROWS, PLACES, PAIR, PLAYER_PLACES, PLAYER_SCORES = "rows", "places", "pair", "player-places", "player-scores"
LAYOUTS = {
    ROWS: "a row per player",
    PLACES: "a row per game, a column per place",
    PAIR: "a row per game, two names with their result",
    PLAYER_PLACES: "a row per game, a column per player with the place in it",
    PLAYER_SCORES: "a row per game, a column per player with the score in it",
}
OF_PLAYER = "player "  # what the column of a player is called, with the name behind it

_HALF = {"½": "0.5", "1/2": "0.5"}
_NUMBER = r"\d+(?:[.,]\d+)?|½|1/2"
_RESULT = re.compile(rf"({_NUMBER})\s*[-–—:]\s*({_NUMBER})", re.ASCII)
_DRAWN = (
    "½",
    "1/2",
    "draw",
    "drawn",
    "tie",
    "remis",
    "unentschieden",
    "nulle",
    "tablas",
    "empate",
    "patta",
    "gelijk",
    "=",
)

Rows = Iterable[tuple[int, Cells | Refused]]


def numbered(rows: Rows, layout: str) -> Iterator[tuple[int, Cells | Refused]]:
    """Rows without numbers of games, with those: date and number of the day, in the order of the rows.

    In the layout `rows` a game begins where there is another date, a better place than in the row before, or an empty
    line in between; a row without a date has that of the row before.
    """
    days, game_id, before, date = Counter[str](), "", 0, ""
    place = 0
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            before = line
            continue
        given = cells.get("occurred_at", date if layout == ROWS else "")
        if not given:
            yield line, Refused("missing-member", "the row has no date")
            continue
        own = int(text) if (text := place_text(cells.get("place", ""))).isdecimal() else 0
        if layout != ROWS or given != date or line > before + 1 or own < place or not game_id:
            days[given[:10]] += 1
            game_id = f"{given[:10]}-{days[given[:10]]}"
        date, place, before = given, own, line
        yield line, {**cells, "game_id": game_id, "occurred_at": given}


def by_player(rows: Rows, layout: str) -> Iterator[tuple[int, Cells | Refused]]:
    """A row for each player whose column has something in a row, with the place or the score that stands there."""
    member = "place" if layout == PLAYER_PLACES else "score"
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            continue
        shared = {name: text for name, text in cells.items() if not name.startswith(OF_PLAYER)}
        for name, text in cells.items():
            if name.startswith(OF_PLAYER):
                yield line, {**shared, "player": name.removeprefix(OF_PLAYER), member: text}


def by_pair(rows: Rows) -> Iterator[tuple[int, Cells | Refused]]:
    """Two rows for each: with places for 1-0, 0-1, a draw; with scores for anything else."""
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield line, cells
            continue
        shared = {name: text for name, text in cells.items() if name not in OF_PAIR}
        try:
            found = _sides(cells)
        except Refused as problem:
            yield line, problem
            continue
        for name, outcome in zip((FIRST, SECOND), found, strict=True):
            yield line, {**shared, "player": cells[name], **outcome}


OF_PAIR = (FIRST, SECOND, RESULT, FIRST_SCORE, SECOND_SCORE)


def _sides(cells: Cells) -> tuple[Cells, Cells]:
    """What two players got. Raises `Refused`."""
    for name in (FIRST, SECOND):
        if name not in cells:
            raise Refused("missing-member", f"the row has no {name}")
    if FIRST_SCORE in cells and SECOND_SCORE in cells:
        return {"score": cells[FIRST_SCORE]}, {"score": cells[SECOND_SCORE]}
    text = cells.get(RESULT)
    if text is None:
        raise Refused("missing-member", "the row has no result")
    if text.casefold() in _DRAWN:
        return {"place": "1"}, {"place": "1"}
    match = _RESULT.fullmatch(text)
    if match is None:
        raise Refused("bad-value", f"result: {shown(text)} is no result such as 1-0, 3:2 or draw")
    one, other = (_HALF.get(part) or with_point(RESULT, part) for part in match.groups())
    if (one, other) in (("1", "0"), ("0", "1"), ("0.5", "0.5")):
        places = {"1": "1", "0": "2", "0.5": "1"}
        return {"place": places[one]}, {"place": places[other]}
    if "0.5" in (one, other) and not {one, other}.isdisjoint(("0", "1")):
        raise Refused("bad-value", f"result: {shown(text)} gives one player half a point alone; write ½-½, 1-0 or 0-1")
    return {"score": one}, {"score": other}


def are_places(rows: Iterable[list[str]]) -> bool:
    """Whether the numbers of each row are places: 1 is there, and after it none is left out but for ties."""
    for row in rows:
        found = sorted(int(text) for text in map(place_text, row) if text.isdecimal())
        if len(found) != len(row) or not found or found[0] != 1:
            return False
        for index, (before, place) in enumerate(pairwise(found), 1):
            if place not in (before, before + 1, index + 1):
                return False
    return True
