"""A damaged table of a club is imported without a rejection, or refused as a whole."""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from damages import damage_table
from season_sheets import SHEETS

from ratings_ledger.ledger.rejections import CODES

pytestmark = pytest.mark.timeout(7_200)

Ratings = Callable[..., Any]
SHORT, LONG = 36, 10_000


def make_berlin_ledger(ratings: Ratings, url: str) -> None:
    """Make an empty ledger with the home zone of Berlin."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0


def count_events(db: Path) -> int:
    """Return the number of events."""
    with closing(sqlite3.connect(db)) as connection:
        return int(connection.execute("SELECT count(*) FROM events").fetchone()[0])


def test_damaged_table_is_accepted_or_refused(
    copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """The import of a damaged table ends without a traceback, and either rejects nothing or records nothing.

    Each rejection has a documented code and a message.
    """
    template, db = Path(copy_ledger_file(make_berlin_ledger, name="template.db")), tmp_path / "ratings.db"
    events_before, sheets, outcome_counts = count_events(template), [*SHEETS.values()], Counter[str]()
    for number in range(LONG if at_length else SHORT):
        chance = Random(number)
        case = chance.choice(sheets).build_case("csv")
        damage_name, content = damage_table(chance, case.content)
        file = tmp_path / case.name
        file.write_bytes(content)
        shutil.copyfile(template, db)
        result = ratings("import", file, *case.options, "--format", "json", db=str(db))
        description = f"{number}: {damage_name}: {content[:300]!r}: {result}"
        assert "Traceback" not in result.stderr, description
        assert "bug" not in result.stderr, description
        summary = json.loads(result.stdout)
        if result.exit_code == 0:
            assert (summary["rejected"], count_events(db) > events_before) == ([], True), description
            outcome_counts["accepted"] += 1
        else:
            assert (result.exit_code, count_events(db)) == (1, events_before), description
            assert summary["rejected"], description
            assert all(
                rejection["code"] in CODES and len(rejection["message"]) > 10 for rejection in summary["rejected"]
            ), description
            outcome_counts["refused"] += 1
        outcome_counts[damage_name] += 1
    assert min(outcome_counts["accepted"], outcome_counts["refused"]) > 0
