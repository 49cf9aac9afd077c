"""Find close names by comparing every new name with every known name."""

from time import perf_counter
from typing import Any

from benchmarks.names import draw_names


def run(form: str, new: int, known: int, tried: int) -> dict[str, Any]:
    """Compare `tried` of the new names with all known names, and count the close ones.

    The time to fold the known names does not count.
    """
    new_names, known_names = draw_names(form, new, known)
    folded_names = ["".join(name.casefold().split()) for name in known_names]
    started = perf_counter()
    close_count = 0
    for name in ("".join(name.casefold().split()) for name in new_names[-tried:]):
        close_count += any(_is_close(name, other) for other in folded_names)
    return {"seconds": perf_counter() - started, "count": min(tried, len(new_names)), "found": close_count}


def _is_close(left: str, right: str) -> bool:
    """Tell whether two names are equal, or differ in one letter."""
    if abs(len(left) - len(right)) > 1:
        return False
    start = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        start += 1
    left_rest, right_rest = left[start:], right[start:]
    return left_rest == right_rest or left_rest[1:] in (right_rest, right_rest[1:]) or left_rest == right_rest[1:]
