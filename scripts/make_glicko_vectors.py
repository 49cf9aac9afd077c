"""Generate test vectors for Glicko and Glicko-2 with 40 digits, only from the formulas of the papers.

The script shares no code with the program. Its formulas are those of the papers, in decimal arithmetic, with the
papers' procedure for the volatility. Run it from the project's root; tests compare the rules with these vectors.

Sources: M. Glickman, The Glicko system (1999), and Example of the Glicko-2 system, steps 2 to 8.
"""

import json
import sys
from decimal import Decimal, localcontext
from pathlib import Path
from random import Random

TARGET = Path("tests/golden/glicko.json")
DIGITS = 40
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
SCALE = Decimal("173.7178")
HALF = Decimal("0.5")

# the rating and deviation of an opponent, and the score against the opponent
Result = tuple[Decimal, Decimal, Decimal]
# the rating and deviation, and for Glicko-2 the volatility
State = tuple[Decimal, ...]


def glicko_1(own: State, results: list[Result]) -> State:
    """Return rating and deviation after a period."""
    rating, deviation = own
    q = Decimal(10).ln() / 400

    def g(spread: Decimal) -> Decimal:
        return 1 / (1 + 3 * q**2 * spread**2 / PI**2).sqrt()

    def expectation(opponent: Decimal, spread: Decimal) -> Decimal:
        return 1 / (1 + 10 ** (-g(spread) * (rating - opponent) / 400))

    inverse_d_squared = Decimal(0)
    total = Decimal(0)
    for opponent, spread, scored in results:
        expected = expectation(opponent, spread)
        inverse_d_squared += q**2 * g(spread) ** 2 * expected * (1 - expected)
        total += g(spread) * (scored - expected)
    precision = 1 / deviation**2 + inverse_d_squared
    return rating + q / precision * total, (1 / precision).sqrt()


def glicko_2(own: State, results: list[Result], tau: Decimal) -> State:
    """Return rating, deviation and volatility after a period: steps 2 to 8."""
    mu, phi, sigma = (own[0] - 1500) / SCALE, own[1] / SCALE, own[2]

    def g(spread: Decimal) -> Decimal:
        return 1 / (1 + 3 * spread**2 / PI**2).sqrt()

    inverse_v = Decimal(0)
    total = Decimal(0)
    for opponent, spread, scored in results:
        weight = g(spread / SCALE)
        expected = 1 / (1 + (-weight * (mu - (opponent - 1500) / SCALE)).exp())
        inverse_v += weight**2 * expected * (1 - expected)
        total += weight * (scored - expected)
    v = 1 / inverse_v
    new_sigma = find_volatility(phi, sigma, v, v * total, tau)
    before = (phi**2 + new_sigma**2).sqrt()
    new_phi = 1 / (1 / before**2 + 1 / v).sqrt()
    return SCALE * (mu + new_phi**2 * total) + 1500, SCALE * new_phi, new_sigma


def find_volatility(phi: Decimal, sigma: Decimal, v: Decimal, delta: Decimal, tau: Decimal) -> Decimal:
    """Return the new volatility by step 5, the Illinois algorithm, iterated until nothing changes."""
    a = (sigma**2).ln()

    def f(x: Decimal) -> Decimal:
        power = x.exp()
        return power * (delta**2 - phi**2 - v - power) / (2 * (phi**2 + v + power) ** 2) - (x - a) / tau**2

    low = a
    if delta**2 > phi**2 + v:
        high = (delta**2 - phi**2 - v).ln()
    else:
        steps = 1
        while f(a - steps * tau) < 0:
            steps += 1
        high = a - steps * tau
    f_low, f_high = f(low), f(high)
    while abs(high - low) > Decimal(10) ** -(DIGITS + 5) and f_high != f_low:
        middle = low + (low - high) * f_low / (f_high - f_low)
        f_middle = f(middle)
        if f_middle * f_high <= 0:
            low, f_low = high, f_high
        else:
            f_low /= 2
        high, f_high = middle, f_middle
    return (low / 2).exp()


def rate(rule: str, own: State, results: list[Result], tau: str = "0.5") -> State:
    """Return a player's state after a period."""
    with localcontext(prec=DIGITS + 20):
        return glicko_2(own, results, Decimal(tau)) if rule == "glicko-2/1" else glicko_1(own, results)


def draw_number(random: Random, low: int, high: int) -> Decimal:
    """Return a random number from `low` to `high` with six decimals."""
    return Decimal(random.randint(low * 10**6, high * 10**6)).scaleb(-6)


def draw_state(random: Random, rule: str) -> State:
    """Return a random state of a player."""
    state = (draw_number(random, 600, 2600), draw_number(random, 30, 350))
    return (*state, Decimal(random.randint(2 * 10**10, 12 * 10**10)).scaleb(-12)) if rule == "glicko-2/1" else state


def draw_results(random: Random) -> list[Result]:
    """Return random results of a period: one to twelve."""
    return [
        (
            draw_number(random, 600, 2600),
            draw_number(random, 30, 350),
            random.choice([Decimal(0), HALF, Decimal(1)]),
        )
        for _ in range(random.choice([1, 1, 1, 2, 3, 5, 12]))
    ]


def list_paper_examples() -> list[tuple[str, State, list[Result]]]:
    """Return the examples of both papers, and three more players with the same results by Glicko-2."""
    games = [(1400, 30, 1), (1550, 100, 0), (1700, 300, 0)]
    results: list[Result] = [(Decimal(rating), Decimal(spread), Decimal(scored)) for rating, spread, scored in games]
    players = [(1500, 200), (1700, 120), (2200, 60), (2200, 350)]
    states = [(Decimal(rating), Decimal(spread), Decimal("0.06")) for rating, spread in players]
    return [("glicko-1/1", states[0][:2], results), *(("glicko-2/1", state, results) for state in states)]


def build_vectors() -> list[dict[str, object]]:
    """Return all vectors: the examples of the papers, then random ones for both rules."""
    random = Random(1999)
    cases = list_paper_examples()
    for _ in range(60):
        cases += [(rule, draw_state(random, rule), draw_results(random)) for rule in ("glicko-1/1", "glicko-2/1")]
    return [
        {
            "rule": rule,
            "before": [str(number) for number in own],
            "results": [[str(number) for number in result] for result in results],
            "after": [format_number(number) for number in rate(rule, own, results)],
        }
        for rule, own, results in cases
    ]


def format_number(number: Decimal) -> str:
    """Format a number with 40 digits."""
    with localcontext(prec=DIGITS):
        return str(+number)


def main() -> None:
    """Write the file."""
    lines = ",\n".join(json.dumps(vector) for vector in build_vectors())
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    sys.stdout.write(f"{TARGET}: {len(build_vectors())} periods\n")


if __name__ == "__main__":
    main()
