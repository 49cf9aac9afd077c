"""Reports on players after random histories: every account sums to the oracle's points at both positions."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from asking import report_on
from histories import enter
from ledgers import create_ledger
from oracle.ladders import ask
from oracle.log import Log, build_id_lookup, list_named_players
from oracle.questions import Question
from oracle.rulesets import list_versions
from reported import ReportParser, parse_exact_number
from time_histories import ENDS, LADDERS, build_base_log, draw_history

import ratings_ledger
from ratings_ledger import LedgerError

pytestmark = pytest.mark.slow

QUESTIONS = 6
# cases that a run must have had; otherwise the comparison covers less than it claims
REQUIRED_CASES = [
    "reports", "causes", "no cause", "games", "known then and now alike", "at a time", "not on it then",
    "not on it now", "refused", "under another id", "under a contribution pool", "on a list",
]  # fmt: skip


def read_report(
    ledger: ratings_ledger.Ledger, player: str, ladder: str, as_of: str | None, *known_at: int
) -> ReportParser:
    """Return the parsed report on a player."""
    return ReportParser(report_on(ledger, player, ladder, as_of, *known_at))


def find_points(log: Log, question: Question, ids: list[str]) -> Fraction | None:
    """Return the oracle's points of a player, under the first of the player's ids that is on the ladder."""
    answer = ask(log, question)
    rows = {row.player: Fraction(row.points) for row in answer.rows} if answer else {}
    resolve = build_id_lookup(log[: question.known_at])
    return next((rows[resolve(player)] for player in ids if resolve(player) in rows), None)


def check_report(ledger: ratings_ledger.Ledger, log: Log, chance: Random, case_counts: Counter[str]) -> None:
    """Compare a report at random coordinates with the oracle, or check that it is rejected."""
    ladder, player = chance.choice(LADDERS), chance.choice(sorted(set().union(*map(list_named_players, log))))
    known_at = sorted(chance.choices(range(len(build_base_log(0)), len(log) + 1), k=2))
    as_of = chance.choice([None, chance.choice(ENDS)])
    if not all(list_versions(log[:at], ladder.partition("/")[0]) for at in known_at):
        return
    resolve = build_id_lookup(log[: known_at[1]])
    other_players = sorted({*set().union(*map(list_named_players, log))} - {player})
    ids = [player, *(name for name in other_players if resolve(name) == resolve(player))]
    expected = [find_points(log, Question(ladder, at, as_of, None), ids) for at in known_at]
    if expected == [None, None]:
        with pytest.raises(LedgerError, match=r"on no ladder|not on|has no points on|nothing is recorded"):
            read_report(ledger, player, ladder, as_of, *known_at)
        case_counts["refused"] += 1
        return
    page = read_report(ledger, player, ladder, as_of, *known_at)
    (numbers,) = page.tables["The numbers"]
    shown_points = [None if text == "–" else parse_exact_number(text) for text in numbers[1][1:]]
    assert shown_points == ([expected[1]] if known_at[0] == known_at[1] else expected), (
        ladder,
        player,
        known_at,
        as_of,
    )
    for heading in [title for title in page.tables if title.startswith("Changes of the points")]:
        assert page.read_account(heading)[2] == expected[0]
        case_counts["under a contribution pool"] += ladder == "galactic-points"
    case_counts["on a list"] += ladder.startswith("catan-monthly")
    if "Causes of the difference" in page.tables:
        opening, causes, closing = page.read_account("Causes of the difference")
        assert expected[0] in (None, opening)
        assert expected[1] in (None, closing)
        case_counts["causes"] += len(causes)
    else:
        (explanation,) = page.texts.get("Causes of the difference", [""])
        is_unchanged = known_at[0] == known_at[1] or expected[0] == expected[1]
        assert is_unchanged or (None in expected and "is not on the ladder counts as having" in explanation)
        case_counts["no cause"] += 1
    for heading, tables in page.tables.items():
        for table in tables if heading in page.ids or f"game-{heading}" in page.ids else ():
            *terms, last = [row[-1] for row in table[1:]]
            assert sum(map(parse_exact_number, terms)) == parse_exact_number(last), heading
            case_counts["games"] += 1
    case_counts.update(
        name
        for name, is_so in (
            ("reports", True),
            ("known then and now alike", known_at[0] == known_at[1]),
            ("at a time", bool(as_of)),
            ("not on it then", expected[0] is None),
            ("not on it now", expected[1] is None),
            ("under another id", any("under the id" in claim for claim in page.claims)),
        )
        if is_so
    )


@pytest.mark.timeout(3_600)
def test_reports_agree_with_the_oracle(tmp_path: Path, at_length: bool) -> None:
    """In any history, a report has the oracle's points, its accounts sum exactly, and its terms sum to each change."""
    case_counts: Counter[str] = Counter()
    path = tmp_path / "ratings.db"
    create_ledger(str(path))
    template = path.read_bytes()
    for seed in range(1_000 if at_length else 9):
        chance = Random(f"reports {seed}")
        log = draw_history(seed, chance.randint(20, 60))
        path.write_bytes(template)
        assert enter(str(path), log).appended == len(log)
        with ratings_ledger.open(str(path)) as ledger:
            for _ in range(QUESTIONS):
                check_report(ledger, log, chance, case_counts)
    assert [name for name in REQUIRED_CASES if not case_counts[name]] == [], case_counts
