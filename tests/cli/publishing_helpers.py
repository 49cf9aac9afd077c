"""Shared helpers for the tests of published lists: a ledger with running points and two lists, and forged lists."""

import json
from pathlib import Path
from typing import Any

from correction_helpers import Ratings, append_lines, build_catan_line, create_ledger, read_json

from ratings_ledger.ledger.events.published_lists import compute_digest

RULESETS = ("galactic-points-1", "catan-elo-2009-01", "catan-monthly-2008-03", "catan-annual-2008-03")
BASIC, MARCH, YEAR = "catan-elo/basic", "catan-monthly/7/basic/2010-03", "catan-annual/7/basic/2010"
LISTS = (BASIC, MARCH, YEAR)
NEW_YEAR = "2011-01-01T12:00:00Z"


def create_published_ledger(ratings: Ratings, db: Path | str) -> str:
    """Create a ledger with four rulesets and, from position 5, eight games in March.

    Anna wins seven against ben, and cleo the last against both.
    """
    name = create_ledger(ratings, db, *RULESETS)
    append_lines(
        ratings,
        name,
        *(build_catan_line(f"m-{day}", "anna", "ben", at=_format_noon(day), city="7") for day in range(1, 8)),
    )
    append_lines(ratings, name, build_catan_line("m-8", "cleo", "ben", "anna", at=_format_noon(8), city="7"))
    return name


def _format_noon(day: int) -> str:
    return f"2010-03-{day:02d}T12:00:00Z"


def publish(ratings: Ratings, db: str, *arguments: object) -> dict[str, Any]:
    """Publish a list, or the due ones with `--due`; assert that it succeeds, and return the JSON."""
    result = ratings("publish", *arguments, "--by", "editor", "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return dict(json.loads(result.stdout))


def read_published_list(ratings: Ratings, db: str, ladder: str, *options: object) -> dict[str, Any]:
    """Return the standings as they were published."""
    return dict(read_json(ratings, db, "standings", ladder, "--as-published", *options))


def forge_list(rows: list[dict[str, Any]], ruleset: str, **members: Any) -> list[str]:
    """Return the events of a list with these rows, valid or not, and their digest, as lines of JSON.

    `members` go into its `list.published`.
    """
    digest = compute_digest(ruleset, rows)
    stored = [{key: value for key, value in row.items() if value is not None} for row in rows]
    ladder = members.setdefault("ladder", BASIC)
    part = {"ladder": ladder, "digest": digest, "part": 1, "parts": 1, "rows": stored}
    listed = {"ruleset": ruleset, "digest": digest, "row_count": len(rows), "parts": 1, **members}
    events = [("list.rows", part), ("list.published", listed)]
    return [
        json.dumps({"type": name, "occurred_at": NEW_YEAR, "data": data}, ensure_ascii=False) + "\n"
        for name, data in events
    ]
