"""Compute expected scores in integers, interpolated from a table, for rules that compare players.

Rules import these names from `ratings_ledger.rules` or `projections.contract`.
"""

import hashlib
import sys
from array import array
from collections.abc import Sequence
from functools import cache
from pathlib import Path

Numbers = Sequence[int]
# An expected score of 1.
ONE = 1 << 32
STEPS_PER_SCALE = 8_192
# From a gap of this many scales on, the weaker player's expected score counts as 2^-32.
EXPECTED_SCALES = 10
# `expected` multiplies by inverses in units of 2^-59 instead of dividing.
INVERSE, PER_STEP, PER_ONE = 1 << 59, (1 << 59) // STEPS_PER_SCALE, (1 << 59) // ONE
TABLE_SHA256 = "4b3af97fdbfc303936ffa5cd0c99148bd501dd8c9e9ad86e47f7a3a6e259134d"


def read_table(path: Path, digest: str) -> Numbers:
    """Read a rule's table from a file of unsigned 32-bit little-endian integers; `digest` is the file's SHA-256."""
    content = path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest, f"{path} is not the table of its rule"
    entries = array("I", content)
    if sys.byteorder == "big":
        entries.byteswap()
    return entries


@cache
def expected_scores() -> Numbers:
    """Return the expected scores of the weaker player, in units of 2^-32, from scripts/make_elo_table.py.

    Entry k is for a gap of k/8192 of the scale; the last entry is for ten times the scale. A rule that calls `expected`
    must have this function as its `table`.
    """
    return read_table(Path(__file__).with_name("expected_scores.bin"), TABLE_SHA256)


def expected(gap: int, scale: int, inverse: int, table: Numbers) -> int:
    """Return the expected score, in units of 2^-32, of a player `gap` units above the opponent.

        1 / (1 + 10^(-gap / scale))

    (A. Elo, The Rating of Chessplayers, 1978.) `scale` is also in units, `table` is `expected_scores()`, and `inverse`
    is `INVERSE // scale`: dividing by the scale instead would make compiled code a fifth slower. Interpolation is in
    integers, so every machine gets the same result. The error is below 1.2e-9, and the scores of two players sum to 1.
    """
    size = abs(gap)
    weaker = 1
    if size < EXPECTED_SCALES * scale:
        # the inverse is too small by a relative error below 2e-7, so the quotient is exact or too small by one
        index = size * inverse // PER_STEP
        rest = size * STEPS_PER_SCALE - index * scale
        if rest >= scale:
            index, rest = index + 1, rest - scale
        step = table[index] - table[index + 1]
        decrease = step * (rest * inverse // PER_ONE) // ONE
        if step * rest + scale // 2 - decrease * scale >= scale:
            decrease += 1
        weaker = table[index] - decrease
    return ONE - weaker if gap > 0 else weaker


def rounded(numerator: int, divisor: int, whole: int) -> int:
    """Return the integer nearest to numerator / (divisor * whole), half away from zero. Both divisors are positive."""
    # Dividing in two steps gives the same result, and is fast if one divisor is a power of two.
    if numerator < 0:
        return -((2 * -numerator + divisor * whole) // (2 * whole) // divisor)
    return (2 * numerator + divisor * whole) // (2 * whole) // divisor
