"""Build the basic parts of an SVG drawing: lengths, step lines, bands, and escaped text that fits."""

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from unicodedata import category, east_asian_width

from ratings_ledger.ledger.rejections import escape_unprintable

WIDEST = 102  # the width of the widest character, in hundredths of the font size
# a line with more points has a horizontal resolution of half a unit, so closer points merge into one vertical stroke
_FINE_MAX = 1_000


def build_step_path(positions: Sequence[tuple[int, int]], end: int) -> str:
    """Return a step line through positions, extended to `end`. A long line is coarser, but reaches every height.

    >>> build_step_path([(10, 50), (20, 35), (20, 70)], 40)
    'M1 5h1v-1.5v3.5h2'
    """
    resolution = 1 if len(positions) <= _FINE_MAX else 5
    x, y = positions[0]
    x -= x % resolution
    commands = [f"M{tenths(x)} {tenths(y)}"]
    columns: dict[int, list[int]] = {}
    for position, height in positions:
        columns.setdefault(position - position % resolution, []).append(height)
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


def build_band_path(positions: Sequence[tuple[int, int, int]], end: int) -> str:
    """Return the outline of a stepped band of (x, top, bottom), extended to `end`.

    A long band has the highest top and the lowest bottom of every half unit.

    >>> build_band_path([(10, 30, 50), (20, 35, 45)], 40)
    'M1 3h1v.5h2v1h-2v.5h-1z'
    """
    resolution = 1 if len(positions) <= _FINE_MAX else 5
    columns: dict[int, tuple[int, int]] = {}
    for position, top, bottom in positions:
        x = position - position % resolution
        if resolution > 1 and x in columns:
            top, bottom = min(top, columns[x][0]), max(bottom, columns[x][1])
        columns[x] = top, bottom
    (x, (top, bottom)), *later_columns = columns.items()
    upper, lower = [f"M{tenths(x)} {tenths(top)}"], ["z"]
    for next_x, (next_top, next_bottom) in later_columns:
        upper.append(f"h{tenths(next_x - x)}v{tenths(next_top - top)}")
        lower.append(f"v{tenths(bottom - next_bottom)}h{tenths(x - next_x)}")
        x, top, bottom = next_x, next_top, next_bottom
    width = max(end - x, 0)
    right_edge = f"h{tenths(width)}v{tenths(bottom - top)}h{tenths(-width)}"
    return "".join([*upper, right_edge, *reversed(lower)])


def estimate_text_width(text: str, size: int) -> int:
    """Estimate the width of a text in tenths of a unit, or overestimate it a little; `size` is the font size."""
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
    """Escape unprintable characters; return the text, or as much of its start as fits into `room` tenths, with "…"."""
    text = escape_unprintable(text)
    if len(text) * WIDEST * size <= 10 * room or estimate_text_width(text, size) <= room:
        return text
    characters, width = [], estimate_text_width("…", size)
    for character in text:
        width += estimate_text_width(character, size)
        if width > room:
            break
        characters.append(character)
    return f"{''.join(characters)}…"


def escape_text(text: str) -> str:
    """Escape text for SVG, including control characters that reorder or hide other text."""
    return escape(escape_unprintable(text))


@lru_cache(20_000)  # a page has thousands of numbers, most of them equal
def tenths(number: int) -> str:
    """Format tenths of a unit as a number with at most one decimal.

    >>> tenths(120), tenths(-5), tenths(123)
    ('12', '-.5', '12.3')
    """
    sign, number = "-" if number < 0 else "", abs(number)
    whole, decimal = divmod(number, 10)
    return f"{sign}{whole or ''}.{decimal}" if decimal else f"{sign}{whole}"
