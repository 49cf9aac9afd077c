"""Reports on players after random histories: every account sums to what the oracle says at both coordinates."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from asking import report_on
from ledgers import create_ledger
from oracle.ladders import ask
from oracle.log import Log, identities, named
from oracle.questions import Question
from oracle.rulesets import versions_of
from reported import ReportParser, parse_exact_number
from time_histories import ENDS, LADDERS, base_log, history
from time_ledgers import enter

import ratings_ledger
from ratings_ledger import LedgerError

pytestmark = pytest.mark.slow

QUESTIONS = 6
# what must have occurred in the end, or the comparison was about less than it says
WANTED = [
    "reports", "causes", "no cause", "games", "known then and now alike", "at a time", "not on it then",
    "not on it now", "refused", "under another id", "on a pool", "on a list",
]  # fmt: skip


def reported(
    ledger: ratings_ledger.Ledger, player: str, ladder: str, as_of: str | None, *known_at: int
) -> ReportParser:
    """The report as it is read."""
    return ReportParser(report_on(ledger, player, ladder, as_of, *known_at))


def points_of(log: Log, one: Question, ids: list[str]) -> Fraction | None:
    """What the oracle says that somebody has, under the first of their ids that is on the ladder."""
    answer = ask(log, one)
    rows = {row.player: Fraction(row.points) for row in answer.rows} if answer else {}
    person = identities(log[: one.known_at])
    return next((rows[person(player)] for player in ids if person(player) in rows), None)


def check(ledger: ratings_ledger.Ledger, log: Log, chance: Random, done: Counter[str]) -> None:
    """Ask for a report at random coordinates, and compare it with the oracle, or its refusal."""
    ladder, player = chance.choice(LADDERS), chance.choice(sorted(set().union(*map(named, log))))
    known_at = sorted(chance.choices(range(len(base_log(0)), len(log) + 1), k=2))
    as_of = chance.choice([None, chance.choice(ENDS)])
    if not all(versions_of(log[:at], ladder.partition("/")[0]) for at in known_at):
        return
    person = identities(log[: known_at[1]])
    everybody = sorted({*set().union(*map(named, log))} - {player})
    ids = [player, *(other for other in everybody if person(other) == person(player))]
    wanted = [points_of(log, Question(ladder, at, as_of, None), ids) for at in known_at]
    if wanted == [None, None]:
        with pytest.raises(LedgerError, match=r"on no ladder|not on|has no points on|nothing is recorded"):
            reported(ledger, player, ladder, as_of, *known_at)
        done["refused"] += 1
        return
    page = reported(ledger, player, ladder, as_of, *known_at)
    (numbers,) = page.tables["The numbers"]
    shown = [None if text == "–" else parse_exact_number(text) for text in numbers[1][1:]]
    assert shown == ([wanted[1]] if known_at[0] == known_at[1] else wanted), (ladder, player, known_at, as_of)
    for heading in [one for one in page.tables if one.startswith("Changes of the points")]:
        assert page.read_account(heading)[2] == wanted[0]
        done["on a pool"] += ladder == "galactic-points"
    done["on a list"] += ladder.startswith("catan-monthly")
    if "Causes of the difference" in page.tables:
        opening, causes, closing = page.read_account("Causes of the difference")
        assert [opening if one is None else one for one in wanted[:1]] == [opening]
        assert wanted[1] in (None, closing)
        done["causes"] += len(causes)
    else:
        (told,) = page.texts.get("Causes of the difference", [""])
        alike = known_at[0] == known_at[1] or wanted[0] == wanted[1]
        assert alike or (None in wanted and "is not on the ladder counts as having" in told)
        done["no cause"] += 1
    for heading, tables in page.tables.items():
        for table in tables if heading in page.ids or f"game-{heading}" in page.ids else ():
            *terms, last = [row[-1] for row in table[1:]]
            assert sum(map(parse_exact_number, terms)) == parse_exact_number(last), heading
            done["games"] += 1
    done.update(
        name for name, is_so in (
            ("reports", True), ("known then and now alike", known_at[0] == known_at[1]), ("at a time", bool(as_of)),
            ("not on it then", wanted[0] is None), ("not on it now", wanted[1] is None),
            ("under another id", any("under the id" in claim for claim in page.claims)),
        ) if is_so
    )  # fmt: skip


@pytest.mark.timeout(3_600)
def test_reports_sum_to_what_the_oracle_says(tmp_path: Path, at_length: bool) -> None:
    """In any history, a report's numbers are the oracle's, its accounts sum exactly, and its terms to each change."""
    done: Counter[str] = Counter()
    path = tmp_path / "ratings.db"
    create_ledger(str(path))
    template = path.read_bytes()
    for seed in range(1_000 if at_length else 9):
        chance = Random(f"reports {seed}")
        log = history(seed, chance.randint(20, 60))
        path.write_bytes(template)
        assert enter(str(path), log).appended == len(log)
        with ratings_ledger.open(str(path)) as ledger:
            for _ in range(QUESTIONS):
                check(ledger, log, chance, done)
    assert [name for name in WANTED if not done[name]] == [], done
