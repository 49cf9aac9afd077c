"""A player's statement: its lines sum exactly, from what a list showed, or from the start, to what the player has."""

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from ledgers import create_ledger
from time_histories import INSTANTS, LADDERS, history
from time_ledgers import enter

import ratings_ledger
from ratings_ledger import LedgerError, Snapshot, Statement

pytestmark = pytest.mark.slow

Ratings = Callable[..., Any]
LISTS = [name for name in dict.fromkeys(LADDERS) if name.startswith(("catan-monthly", "catan-annual"))]
RUNNING = [name for name in dict.fromkeys(LADDERS) if name not in LISTS]


def test_lines_sum_exactly(store: str, ratings: Ratings, at_length: bool) -> None:
    """Histories grow by late games, corrections, voids, renames, adjustments and new versions after lists of them were
    published: everybody's opening is what the list showed, and the lines lead to what the standings say."""
    met: Counter[str] = Counter()
    for seed in range(30 if at_length else 3):
        chance = Random(seed)
        if seed == 0:
            create_ledger(store)
            url = store
        else:
            url = store if not store.startswith("sqlite") else f"{store}.{seed}"
            create_ledger(url)
        ledger, rest = ratings_ledger.open(url), history(seed, 90)
        enter(url, rest[:45])
        shown = published(ratings, url, chance)
        enter(url, rest[45:])
        for ladder in RUNNING:
            everybody = standings(ledger, ladder)
            now = {name: ledger.at().history(ladder, name).player for name in shown.get(ladder, []) if everybody}
            for player, points in everybody.items():
                found = ledger.at().statement(ladder, player)
                assert found is not None
                check(found, points)
                met["summed"] += check_shorter(ledger.at(), found, chance.randrange(4))
                if found.published is not None:
                    was = {name: then for name, then in shown[ladder].items() if now[name] == player}
                    if was:
                        assert found.opening == was[player if player in was else min(was)], (seed, ladder, player)
                    if any(line.cause == "start" for line in found.lines):
                        then = ledger.at(as_of=found.since.isoformat()).standings(ladder)
                        assert player not in [row.player for row in then.rows]
                    met["published"] += 1
                met.update(line.cause for line in found.lines)
                met["ripple"] += any(line.ripple for line in found.lines)
        for ladder in LISTS:
            for player in standings(ledger, ladder):
                assert ledger.at().statement(ladder, player) is None
                met["list"] += 1
        ledger.close()
        if not url.startswith("sqlite"):
            break
    assert min(met["published"], met["game"], met["list"]) > 0
    if store.startswith("sqlite"):
        assert min(met["published"], met["game"], met["list"], met["summed"]) > 20
        assert met.keys() >= {"adjustment", "late game", "corrected", "voided", "rule change", "ripple"}, met


def standings(ledger: ratings_ledger.Ledger, ladder: str) -> dict[str, Fraction]:
    """What everybody has; nothing where a rule fails."""
    try:
        return {row.player: row.points for row in ledger.at().standings(ladder).rows}
    except LedgerError:
        return {}


def check(found: Statement, points: Fraction) -> None:
    """The lines sum, one by one, and end with what the standings say."""
    running = found.opening
    for line in found.lines:
        assert line.change == line.own + line.ripple
        running += line.change
        assert line.after == running
    assert running == found.closing == points


def check_shorter(view: Snapshot, whole: Statement, last: int) -> bool:
    """With so many of the last games and adjustments, one line sums those before them; the others are as they were."""
    found = view.statement(whole.ladder, whole.player, last)
    assert found is not None
    check(found, whole.closing)
    assert (found.opening, found.closing) == (whole.opening, whole.closing)
    told = [line for line in whole.lines if line.cause in ("game", "adjustment") and line.recorded_at is None]
    if len(told) <= last:
        assert found == whole
        return False
    causes, summed = whole.lines[: len(whole.lines) - len(told)], told[: len(told) - last]
    (line,) = found.lines[len(causes) : len(found.lines) - last]
    assert found.lines == (*causes, line, *told[len(summed) :])
    assert (line.cause, line.change, line.after) == ("earlier", sum(one.change for one in summed), summed[-1].after)
    assert line.occurred_at == summed[-1].occurred_at
    games = sum(one.cause == "game" for one in summed)
    assert [int(number) for number in re.findall(r"\d+", line.what)] == [
        number for number in (games, len(summed) - games) if number
    ]
    return True


def published(ratings: Ratings, url: str, chance: Random) -> dict[str, dict[str, Fraction]]:
    """Publish some ladders as of an instant; what the lists show."""
    shown: dict[str, dict[str, Fraction]] = {}
    for ladder in RUNNING:
        told = ratings("publish", ladder, "--as-of", chance.choice(INSTANTS), "--by", "mira", db=url)
        if told.exit_code == 0:
            with ratings_ledger.open(url) as ledger:
                rows = ledger.at().published(ladder).rows
            shown[ladder] = {row.player: row.points for row in rows}
    return shown
