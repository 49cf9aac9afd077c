"""What the tests of published lists share: a ledger with running points and two lists, and forged lists."""

import json
from pathlib import Path
from typing import Any

from correction_helpers import Ratings, catan, new_ledger, read, take_in

from ratings_ledger.ledger.events.published_lists import compute_digest

RULESETS = ("galactic-points-1", "catan-elo-2009-01", "catan-monthly-2008-03", "catan-annual-2008-03")
BASIC, MARCH, YEAR = "catan-elo/basic", "catan-monthly/7/basic/2010-03", "catan-annual/7/basic/2010"
LISTS = (BASIC, MARCH, YEAR)
NEW_YEAR = "2011-01-01T12:00:00Z"


def list_ledger(ratings: Ratings, db: Path | str) -> str:
    """Four rulesets, and from position 5 on seven games in March that anna wins over ben, then one that cleo wins."""
    name = new_ledger(ratings, db, *RULESETS)
    take_in(ratings, name, *(catan(f"m-{day}", "anna", "ben", at=_noon(day), city="7") for day in range(1, 8)))
    take_in(ratings, name, catan("m-8", "cleo", "ben", "anna", at=_noon(8), city="7"))
    return name


def _noon(day: int) -> str:
    return f"2010-03-{day:02d}T12:00:00Z"


def publish(ratings: Ratings, db: str, ladder: str, *options: object) -> dict[str, Any]:
    """Publish a list; it must succeed. What is told as JSON."""
    result = ratings("publish", ladder, "--by", "editor", *options, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return dict(json.loads(result.stdout))


def published(ratings: Ratings, db: str, ladder: str, *options: object) -> dict[str, Any]:
    """The standings as they were published."""
    return dict(read(ratings, db, "standings", ladder, "--as-published", *options))


def forged(rows: list[dict[str, Any]], ruleset: str, **members: Any) -> list[str]:
    """The events of a list with any rows, as lines of JSON, whose digest is right; `members` of the head."""
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
