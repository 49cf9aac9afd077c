"""The smallest parts of a drawing in SVG: lengths, step lines, and text that is safe and has room."""

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from unicodedata import category, east_asian_width

from ratings_ledger.ledger.rejections import escape_unprintable

# hundredths of the size of a font, which no character is wider than
WIDEST = 102
# a line of more points than this is drawn to half a unit across: what lies closer than that is one upright stroke
_FINE_MAX = 1_000


def step_path(places: Sequence[tuple[int, int]], end: int) -> str:
    """Return a step line through places, on to `end`. Long ones are drawn to half a unit across, with every height they
    reach.

    >>> step_path([(10, 50), (20, 35), (20, 70)], 40)
    'M1 5h1v-1.5v3.5h2'
    """
    grain = 1 if len(places) <= _FINE_MAX else 5
    x, y = places[0]
    x -= x % grain
    drawn = [f"M{tenths(x)} {tenths(y)}"]
    columns: dict[int, list[int]] = {}
    for place, height in places:
        columns.setdefault(place - place % grain, []).append(height)
    for column, heights in columns.items():
        if len(heights) > 3:
            heights = [min(heights), max(heights), heights[-1]]
        if column > x:
            drawn.append(f"h{tenths(column - x)}")
            x = column
        for height in heights:
            if height != y:
                drawn.append(f"v{tenths(height - y)}")
                y = height
    return "".join(drawn) + (f"h{tenths(end - x)}" if end > x else "")


def band_path(places: Sequence[tuple[int, int, int]], end: int) -> str:
    """Return the outline of a band in steps, on to `end`: from every place on it has a top and a bottom. Of long ones
    it has the highest top and the lowest bottom of every half unit across.

    >>> band_path([(10, 30, 50), (20, 35, 45)], 40)
    'M1 3h1v.5h2v1h-2v.5h-1z'
    """
    grain = 1 if len(places) <= _FINE_MAX else 5
    columns: dict[int, tuple[int, int]] = {}
    for place, top, bottom in places:
        x = place - place % grain
        if grain > 1 and x in columns:
            top, bottom = min(top, columns[x][0]), max(bottom, columns[x][1])
        columns[x] = top, bottom
    (x, (top, bottom)), *rest = columns.items()
    there, back = [f"M{tenths(x)} {tenths(top)}"], ["z"]
    for next_x, (next_top, next_bottom) in rest:
        there.append(f"h{tenths(next_x - x)}v{tenths(next_top - top)}")
        back.append(f"v{tenths(bottom - next_bottom)}h{tenths(x - next_x)}")
        x, top, bottom = next_x, next_top, next_bottom
    width = max(end - x, 0)
    turn = f"h{tenths(width)}v{tenths(bottom - top)}h{tenths(-width)}"
    return "".join([*there, turn, *reversed(back)])


def text_width(text: str, size: int) -> int:
    """About how wide a text is in a font of a size, in tenths of the unit of the size; rather more than less."""
    hundredths = 0
    for character in text:
        if character in "ijlI.,:;'|!()[]ft ":
            hundredths += 36
        elif east_asian_width(character) in "WF":
            hundredths += WIDEST
        elif category(character) not in ("Mn", "Me", "Cf"):
            hundredths += 92 if character in "mwMW@%—…" else 72 if character.isupper() else 60
    return hundredths * size // 10


def cut(text: str, room: int, size: int) -> str:
    """Return a text, or as much of its beginning as has room, in tenths, with an ellipsis."""
    text = escape_unprintable(text)
    if len(text) * WIDEST * size <= 10 * room or text_width(text, size) <= room:
        return text
    kept, width = [], text_width("…", size)
    for character in text:
        width += text_width(character, size)
        if width > room:
            break
        kept.append(character)
    return f"{''.join(kept)}…"


def safe(text: str) -> str:
    """Text for SVG: markup is text, and what moves, reorders or hides other text is shown."""
    return escape(escape_unprintable(text))


@lru_cache(20_000)  # a page has thousands, of which most are the same
def tenths(number: int) -> str:
    """Tenths of a unit as a number with at most one decimal.

    >>> tenths(120), tenths(-5), tenths(123)
    ('12', '-.5', '12.3')
    """
    sign, number = "-" if number < 0 else "", abs(number)
    whole, rest = divmod(number, 10)
    return f"{sign}{whole or ''}.{rest}" if rest else f"{sign}{whole}"
