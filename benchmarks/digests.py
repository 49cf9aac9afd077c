"""Hash points, to check that two programs compute the same ones."""

from collections.abc import Mapping
from hashlib import sha256


def digest_of_points(points: Mapping[str, int]) -> str:
    """Return the SHA-256 of all players' exact points, in the order of the ids."""
    return sha256("\n".join(f"{player} {points[player]}" for player in sorted(points)).encode()).hexdigest()
