"""Write the basic parts of an SVG drawing: lengths, step lines, bands, and escaped text that fits."""

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from unicodedata import category, east_asian_width

from ratings_ledger.ledger.rejections import escape_unprintable

WIDEST = 102  # the width of the widest character, in hundredths of the font size
# a line with more points has a horizontal resolution of half a unit: closer points merge into one vertical stroke
_FINE_MAX = 1_000


def step_path(places: Sequence[tuple[int, int]], end: int) -> str:
    """Return a step line through places, extended to `end`. A long line is coarser, but reaches every height.

    >>> step_path([(10, 50), (20, 35), (20, 70)], 40)
    'M1 5h1v-1.5v3.5h2'
    """
    grain = 1 if len(places) <= _FINE_MAX else 5
    x, y = places[0]
    x -= x % grain
    commands = [f"M{tenths(x)} {tenths(y)}"]
    columns: dict[int, list[int]] = {}
    for place, height in places:
        columns.setdefault(place - place % grain, []).append(height)
    for column, heights in columns.items():
        if len(heights) > 3:
            heights = [min(heights), max(heights), heights[-1]]
        if column > x:
            commands.append(f"h{tenths(column - x)}")
            x = column
        for height in heights:
            if height != y:
                commands.append(f"v{tenths(height - y)}")
                y = height
    return "".join(commands) + (f"h{tenths(end - x)}" if end > x else "")


def band_path(places: Sequence[tuple[int, int, int]], end: int) -> str:
    """Return the outline of a stepped band of (x, top, bottom), extended to `end`.

    A long band has the highest top and the lowest bottom of every half unit.

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
    upper, lower = [f"M{tenths(x)} {tenths(top)}"], ["z"]
    for next_x, (next_top, next_bottom) in rest:
        upper.append(f"h{tenths(next_x - x)}v{tenths(next_top - top)}")
        lower.append(f"v{tenths(bottom - next_bottom)}h{tenths(x - next_x)}")
        x, top, bottom = next_x, next_top, next_bottom
    width = max(end - x, 0)
    turn = f"h{tenths(width)}v{tenths(bottom - top)}h{tenths(-width)}"
    return "".join([*upper, turn, *reversed(lower)])


def text_width(text: str, size: int) -> int:
    """Estimate the width of a text in tenths of a unit, rather too wide than too narrow; `size` is the font size."""
    hundredths = 0
    for character in text:
        if character in "ijlI.,:;'|!()[]ft ":
            hundredths += 36
        elif east_asian_width(character) in "WF":
            hundredths += WIDEST
        elif category(character) not in ("Mn", "Me", "Cf"):
            hundredths += 92 if character in "mwMW@%—…" else 72 if character.isupper() else 60
    return hundredths * size // 10


def truncate(text: str, room: int, size: int) -> str:
    """Return a text, or as much of its start as fits into `room` tenths, with an ellipsis."""
    text = escape_unprintable(text)
    if len(text) * WIDEST * size <= 10 * room or text_width(text, size) <= room:
        return text
    start, width = [], text_width("…", size)
    for character in text:
        width += text_width(character, size)
        if width > room:
            break
        start.append(character)
    return f"{''.join(start)}…"


def escape_text(text: str) -> str:
    """Escape text for SVG, including control characters that reorder or hide other text."""
    return escape(escape_unprintable(text))


@lru_cache(20_000)  # a page has thousands, most of them equal
def tenths(number: int) -> str:
    """Write tenths of a unit as a number with at most one decimal.

    >>> tenths(120), tenths(-5), tenths(123)
    ('12', '-.5', '12.3')
    """
    sign, number = "-" if number < 0 else "", abs(number)
    whole, rest = divmod(number, 10)
    return f"{sign}{whole or ''}.{rest}" if rest else f"{sign}{whole}"
