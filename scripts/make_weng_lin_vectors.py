"""Generate test vectors for the rules of Weng and Lin with 40 digits, only from the formulas of the paper.

The script shares no code with the program: it sums over sets of opponents like the paper, in decimal arithmetic. Run it
from the project's root; tests compare the rules with these vectors.

Source: R. C. Weng and C.-J. Lin, A Bayesian Approximation Method for Online Ranking, Journal of Machine Learning
Research 12 (2011), pages 267 to 300, algorithm 1 (Bradley-Terry, full pair) and algorithm 4 (Plackett-Luce).
"""

import json
import sys
from decimal import Decimal, localcontext
from pathlib import Path
from random import Random

TARGET = Path("tests/golden/weng_lin.json")
DIGITS = 40
BETA, KAPPA, TAU = "25/6", "0.0001", "25/300"

Side = list[tuple[Decimal, Decimal]]


def parse_ratio(text: str) -> Decimal:
    """Return the value of a number such as 25/6."""
    numerator, _, denominator = text.partition("/")
    return Decimal(numerator) / Decimal(denominator or 1)


def sum_pairs(sides: list[Side], places: list[int], i: int, beta: Decimal) -> tuple[Decimal, Decimal]:
    """Return omega and delta of side i in Bradley-Terry with all pairs."""
    mean, variance = sum_side(sides[i])
    omega = delta = Decimal(0)
    for q in set(range(len(sides))) - {i}:
        their_mean, their_variance = sum_side(sides[q])
        c = (variance + their_variance + 2 * beta**2).sqrt()
        p = (mean / c).exp() / ((mean / c).exp() + (their_mean / c).exp())
        s = Decimal(1) if places[q] > places[i] else Decimal("0.5") if places[q] == places[i] else Decimal(0)
        omega += variance / c * (s - p)
        delta += variance.sqrt() / c * (variance / c**2) * p * (1 - p)
    return omega, delta


def sum_stages(sides: list[Side], places: list[int], i: int, beta: Decimal) -> tuple[Decimal, Decimal]:
    """Return omega and delta of side i in Plackett-Luce: a sum over all q placed no worse, weighted by its share."""
    mean, variance = sum_side(sides[i])
    c = sum((sum_side(side)[1] + beta**2 for side in sides), Decimal(0)).sqrt()
    omega = delta = Decimal(0)
    for q in range(len(sides)):
        if places[q] > places[i]:
            continue
        tied = places.count(places[q])
        rivals = [side for side, place in zip(sides, places, strict=True) if place >= places[q]]
        p = (mean / c).exp() / sum((sum_side(rival)[0] / c).exp() for rival in rivals)
        omega += variance / c * ((1 - p) if q == i else -p) / tied
        delta += variance.sqrt() / c * (variance / c**2) * p * (1 - p) / tied
    return omega, delta


def sum_side(side: Side) -> tuple[Decimal, Decimal]:
    """Return the mean and the variance of a side of (mu, sigma^2)."""
    return sum((mu for mu, _ in side), Decimal(0)), sum((variance for _, variance in side), Decimal(0))


FORMULAS = {"weng-lin-btf/1": sum_pairs, "weng-lin-pl/1": sum_stages}


def rate(rule: str, sides: list[list[tuple[str, str]]], places: list[int], params: dict[str, str]) -> list[Side]:
    """Return the mu and sigma of all players after a game, given their values before it."""
    with localcontext(prec=DIGITS + 10):
        beta, kappa, tau = (parse_ratio(params[name]) for name in ("beta", "kappa", "tau"))
        sides_before = [[(Decimal(mu), Decimal(sigma) ** 2 + tau**2) for mu, sigma in side] for side in sides]
        rated = []
        for i, side in enumerate(sides_before):
            omega, delta = FORMULAS[rule](sides_before, places, i, beta)
            _, total = sum_side(side)
            rated.append(
                [(mu + own / total * omega, (own * max(1 - own / total * delta, kappa)).sqrt()) for mu, own in side]
            )
        return rated


def draw_game(random: Random) -> tuple[list[list[tuple[str, str]]], list[int], dict[str, str]]:
    """Return a random game: of single players or sides of several, with ties, sometimes without tau."""
    sizes = [1] * random.randint(2, 8)
    if random.random() < 0.5:
        sizes = [random.randint(1, 4) for _ in range(random.randint(2, 4))]
    sides = [
        [(f"{random.randint(-(10**7), 6 * 10**7)}e-6", f"{random.randint(300_000, 9_000_000)}e-6") for _ in range(size)]
        for size in sizes
    ]
    ranks = [random.randint(1, len(sizes)) for _ in sizes]
    seats = list(zip(ranks, sizes, strict=True))
    places = [1 + sum(size for rank, size in seats if rank < own) for own in ranks]
    return sides, places, {"beta": BETA, "kappa": KAPPA, "tau": random.choice([TAU, "0"])}


def list_chosen_games() -> list[tuple[list[list[tuple[str, str]]], list[int], dict[str, str]]]:
    """Return chosen games: of two, tied, of four, of teams, and with an established player."""
    new, known = ("25", "8.333333"), ("30", "1.5")
    usual = {"beta": BETA, "kappa": KAPPA, "tau": TAU}
    without_tau = usual | {"tau": "0"}
    return [
        ([[new], [new]], [1, 2], usual),
        ([[new], [new]], [1, 2], without_tau),
        ([[new], [new]], [1, 1], usual),
        ([[new], [new], [new], [new]], [1, 2, 3, 4], usual),
        ([[new], [new], [new], [new]], [1, 2, 2, 4], usual),
        ([[new], [new], [new]], [1, 1, 1], without_tau),
        ([[new, new], [new, new]], [1, 3], usual),
        ([[new, known], [new]], [1, 3], usual),
        ([[known], [new], [new, new, new]], [2, 3, 1], without_tau),
        ([[known], [new]], [2, 1], usual | {"kappa": "1"}),
        ([[("1000", "1")], [("-1000", "9")]], [2, 1], usual),
    ]


def build_vectors() -> list[dict[str, object]]:
    """Return all vectors: chosen games, then random ones, by both rules."""
    random = Random(2011)
    games = list_chosen_games() + [draw_game(random) for _ in range(40)]
    return [
        {
            "rule": rule,
            "params": params,
            "before": sides,
            "places": places,
            "after": [
                [[format_number(mu), format_number(sigma)] for mu, sigma in side]
                for side in rate(rule, sides, places, params)
            ],
        }
        for sides, places, params in games
        for rule in FORMULAS
    ]


def format_number(number: Decimal) -> str:
    """Format a number with 40 digits."""
    with localcontext(prec=DIGITS):
        return str(+number)


def main() -> None:
    """Write the file."""
    lines = ",\n".join(json.dumps(vector) for vector in build_vectors())
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    sys.stdout.write(f"{TARGET}: {len(build_vectors())} games\n")


if __name__ == "__main__":
    main()
