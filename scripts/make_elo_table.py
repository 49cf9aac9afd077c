"""Generate the table of expected scores that the rule pairwise-elo/1 reads, with exact arithmetic.

Entry i is 2^32 / (1 + 10^(i/8192)) rounded to the nearest integer, but at least 1, for i from 0 to 81920: the expected
score of a player whose rating is i/8192 scales below the opponent's. It is never zero, so a tie always costs the
stronger player less than half of K, as in the exact formula. Run the script from the project's root; the rule refuses a
table with any other hash.
"""

import hashlib
import sys
from array import array
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path

STEPS_PER_SCALE = 8_192
SCALES = 10
ONE = 2**32
TARGET = Path("projections/expected_scores.bin")


def compute_table() -> "array[int]":
    """Return the entries of the table."""
    with localcontext() as context:
        context.prec = 60
        step = (Decimal(10).ln() / STEPS_PER_SCALE).exp()
        entries, power = [], Decimal(1)
        for _ in range(STEPS_PER_SCALE * SCALES + 1):
            entries.append(max(1, int((ONE / (1 + power)).to_integral_value(ROUND_HALF_EVEN))))
            power *= step
    return array("I", entries)


def main() -> None:
    """Write the table, in little-endian order."""
    entries = compute_table()
    assert entries.itemsize == 4
    if sys.byteorder == "big":
        entries.byteswap()
    content = entries.tobytes()
    TARGET.write_bytes(content)
    sys.stdout.write(f"{TARGET}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}\n")


if __name__ == "__main__":
    main()
