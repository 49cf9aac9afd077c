"""Tables of clubs with cells swapped, separators replaced or odd encodings are read or refused, whole."""

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


def make(ratings: Ratings, url: str) -> None:
    """An empty ledger at home in Berlin."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0


def count_events(db: Path) -> int:
    """Count what is recorded."""
    with closing(sqlite3.connect(db)) as connection:
        return int(connection.execute("SELECT count(*) FROM events").fetchone()[0])


def test_damaged_tables_are_read_or_refused_whole(
    copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """Whatever is in its cells, an import ends without a traceback: all games of the table are recorded, or nothing,
    and then each refusal has a code and says what helps."""
    template, db = Path(copied_file(make, name="template.db")), tmp_path / "ratings.db"
    before, sheets, done = count_events(template), [*SHEETS.values()], Counter[str]()
    for number in range(LONG if at_length else SHORT):
        chance = Random(number)
        case = chance.choice(sheets).build_case("csv")
        what, content = damage_table(chance, case.content)
        file = tmp_path / case.name
        file.write_bytes(content)
        shutil.copyfile(template, db)
        told = ratings("import", file, *case.options, "--format", "json", db=str(db))
        where = f"{number}: {what}: {content[:300]!r}: {told}"
        assert "Traceback" not in told.stderr, where
        assert "bug" not in told.stderr, where
        found = json.loads(told.stdout)
        if told.exit_code == 0:
            assert (found["rejected"], count_events(db) > before) == ([], True), where
            done["read"] += 1
        else:
            assert (told.exit_code, count_events(db)) == (1, before), where
            assert found["rejected"], where
            assert all(one["code"] in CODES and len(one["message"]) > 10 for one in found["rejected"]), where
            done["refused"] += 1
        done[what] += 1
    assert min(done["read"], done["refused"]) > 0
