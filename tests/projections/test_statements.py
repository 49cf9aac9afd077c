"""Statements: their lines sum exactly from the points in a published list, or from the start, to the present points."""

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from histories import enter
from ledgers import create_ledger
from time_histories import INSTANTS, LADDERS, draw_history

import ratings_ledger
from ratings_ledger import LedgerError, Snapshot, Statement

pytestmark = pytest.mark.slow

Ratings = Callable[..., Any]
PERIOD_LADDERS = [name for name in dict.fromkeys(LADDERS) if name.startswith(("catan-monthly", "catan-annual"))]
UNBOUNDED_LADDERS = [name for name in dict.fromkeys(LADDERS) if name not in PERIOD_LADDERS]


def test_lines_sum_exactly(store: str, ratings: Ratings, at_length: bool) -> None:
    """After late games, corrections, voids, renames, adjustments and new versions, the lines of all statements sum
    exactly.
    """
    cases: Counter[str] = Counter()
    for seed in range(30 if at_length else 3):
        chance = Random(seed)
        if seed == 0:
            create_ledger(store)
            url = store
        else:
            url = store if not store.startswith("sqlite") else f"{store}.{seed}"
            create_ledger(url)
        ledger, rest = ratings_ledger.open(url), draw_history(seed, 90)
        enter(url, rest[:45])
        published_points = publish_lists(ratings, url, chance)
        enter(url, rest[45:])
        for ladder in UNBOUNDED_LADDERS:
            points_by_player = load_points(ledger, ladder)
            current_names = {
                name: ledger.at().history(ladder, name).player
                for name in published_points.get(ladder, [])
                if points_by_player
            }
            for player, points in points_by_player.items():
                statement = ledger.at().statement(ladder, player)
                assert statement is not None
                check_statement(statement, points)
                cases["summed"] += check_short_statement(ledger.at(), statement, chance.randrange(4))
                if statement.published is not None:
                    candidates = {
                        name: amount
                        for name, amount in published_points[ladder].items()
                        if current_names[name] == player
                    }
                    if candidates:
                        assert statement.opening == candidates[player if player in candidates else min(candidates)], (
                            seed,
                            ladder,
                            player,
                        )
                    if any(line.cause == "start" for line in statement.lines):
                        standings_then = ledger.at(as_of=statement.since.isoformat()).standings(ladder)
                        assert player not in [row.player for row in standings_then.rows]
                    cases["published"] += 1
                cases.update(line.cause for line in statement.lines)
                cases["ripple"] += any(line.ripple for line in statement.lines)
        for ladder in PERIOD_LADDERS:
            for player in load_points(ledger, ladder):
                assert ledger.at().statement(ladder, player) is None
                cases["list"] += 1
        ledger.close()
        if not url.startswith("sqlite"):
            break
    assert min(cases["published"], cases["game"], cases["list"]) > 0
    if store.startswith("sqlite"):
        assert min(cases["published"], cases["game"], cases["list"], cases["summed"]) > 20
        assert cases.keys() >= {"adjustment", "late game", "corrected", "voided", "rule change", "ripple"}, cases


def load_points(ledger: ratings_ledger.Ledger, ladder: str) -> dict[str, Fraction]:
    """Return the points of all players; an empty dict if a rule fails."""
    try:
        return {row.player: row.points for row in ledger.at().standings(ladder).rows}
    except LedgerError:
        return {}


def check_statement(statement: Statement, points: Fraction) -> None:
    """Check that the lines sum, one by one, to the points of the standings."""
    running = statement.opening
    for line in statement.lines:
        assert line.change == line.own + line.ripple
        running += line.change
        assert line.after == running
    assert running == statement.closing == points


def check_short_statement(view: Snapshot, whole: Statement, last: int) -> bool:
    """Check a statement with the last games and adjustments only: one line sums the earlier ones, the rest is
    unchanged.
    """
    statement = view.statement(whole.ladder, whole.player, last)
    assert statement is not None
    check_statement(statement, whole.closing)
    assert (statement.opening, statement.closing) == (whole.opening, whole.closing)
    play_lines = [line for line in whole.lines if line.cause in ("game", "adjustment") and line.recorded_at is None]
    if len(play_lines) <= last:
        assert statement == whole
        return False
    causes, summed = whole.lines[: len(whole.lines) - len(play_lines)], play_lines[: len(play_lines) - last]
    (line,) = statement.lines[len(causes) : len(statement.lines) - last]
    assert statement.lines == (*causes, line, *play_lines[len(summed) :])
    assert (line.cause, line.change, line.after) == ("earlier", sum(line.change for line in summed), summed[-1].after)
    assert line.occurred_at == summed[-1].occurred_at
    games = sum(line.cause == "game" for line in summed)
    assert [int(number) for number in re.findall(r"\d+", line.what)] == [
        number for number in (games, len(summed) - games) if number
    ]
    return True


def publish_lists(ratings: Ratings, url: str, chance: Random) -> dict[str, dict[str, Fraction]]:
    """Publish the ladders, each as of a random instant; return the points of the lists that are not empty."""
    points_by_ladder: dict[str, dict[str, Fraction]] = {}
    for ladder in UNBOUNDED_LADDERS:
        result = ratings("publish", ladder, "--as-of", chance.choice(INSTANTS), "--by", "mira", db=url)
        if result.exit_code == 0:
            with ratings_ledger.open(url) as ledger:
                rows = ledger.at().published(ladder).rows
            points_by_ladder[ladder] = {row.player: row.points for row in rows}
    return points_by_ladder
