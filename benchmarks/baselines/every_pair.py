"""Close names the plain way: every new name is compared with every known one."""

from time import perf_counter
from typing import Any

from benchmarks.names import drawn


def run(form: str, new: int, known: int, tried: int) -> dict[str, Any]:
    """Compare so many of the new names, cleaned beforehand, with all known ones; what is found is not explained."""
    news, knowns = drawn(form, new, known)
    bare = ["".join(name.casefold().split()) for name in knowns]
    started = perf_counter()
    close_count = 0
    for name in ("".join(name.casefold().split()) for name in news[-tried:]):
        close_count += any(_is_close(name, other) for other in bare)
    return {"seconds": perf_counter() - started, "count": min(tried, len(news)), "found": close_count}


def _is_close(one: str, other: str) -> bool:
    """Tell whether one is the other, or one letter apart."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        start += 1
    rest, others = one[start:], other[start:]
    return rest == others or rest[1:] == others[1:] or rest[1:] == others or rest == others[1:]
