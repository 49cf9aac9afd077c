"""What the views for SQL show, as the commands would tell it: for tests that compare the two."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlalchemy import text

from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.history import load_changes
from ratings_ledger.projections.queries.ladders_at import Ladders

COLUMNS = ("group", "city", "league", "season")
Rows = list[dict[str, Any]]


def select(ledger: Ledger, query: str, **given: Any) -> Rows:
    """The rows of a query."""
    with ledger.reading() as connection:
        return [dict(row._mapping) for row in connection.execute(text(query), given)]


def told(instant: Any) -> str:
    """A time of a view as JSON tells it."""
    return instant if isinstance(instant, str) else instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def changes_by_sql(ledger: Ledger) -> dict[str, Rows]:
    """All of `live_changes`, by ladder, as `export changes` tells them."""
    found: dict[str, Rows] = {}
    for row in select(ledger, "SELECT * FROM live_changes ORDER BY ladder, ordinal"):
        rows = found.setdefault(row.pop("ladder"), [])
        assert row.pop("ordinal") == len(rows) + 1
        scale = row.pop("scale")
        for name in ("before", "change", "after"):
            exact = Fraction(row.pop(f"{name}_units"), scale)
            assert abs(Fraction(row[name]) - exact) < Fraction(1, 10**6)
            row[name] = str(exact)
        rows.append(row | {"occurred_at": told(row["occurred_at"])})
    return found


def changes_by_replay(ledger: Ledger, names: Sequence[str] = ()) -> dict[str, Rows]:
    """What `export changes` tells, without reasons, of some ladders, by default of all that have any."""
    found: dict[str, Rows] = {}
    with ledger.reading() as connection:
        ladders = Ladders(decode(connection))
        for name in names or [name for each in ladders.facts.rulesets for name in ladders.streams(each)]:
            rows = []
            for change in load_changes(connection, ladders, name):
                row = {**change.model_dump(), "occurred_at": told(change.change.occurred_at)}
                rows.append({name: row[name] for name in row if name != "reason" and not name.endswith("_decimal")})
            if rows:
                found[name] = rows
    return found


def games_by_sql(ledger: Ledger) -> Rows:
    """All of `live_games` with their participants, in the order of the log."""
    participants: dict[str, Rows] = {}
    for row in select(ledger, "SELECT * FROM live_participants ORDER BY position, number"):
        rows = participants.setdefault(row["game_id"], [])
        assert row.pop("number") == len(rows) + 1
        score = row.pop("score")
        rows.append(_with_more(row) | ({} if score is None else {"score": Decimal(str(score))}))
    games = []
    for row in select(ledger, "SELECT * FROM live_games ORDER BY position"):
        own = participants.pop(row["game_id"])
        assert row.pop("participants") == len(own)
        for one in own:
            assert (one.pop("game_id"), one.pop("position")) == (row["game_id"], row["position"])
        row["group"] = row.pop("group_name")
        row |= {"rated": bool(row["rated"]), "aborted": bool(row["aborted"]), "occurred_at": told(row["occurred_at"])}
        games.append(_with_more(row) | {"participants": own})
    assert not participants
    return games


def _with_more(row: dict[str, Any]) -> dict[str, Any]:
    more = json.loads(row.pop("more") or "{}")
    assert not more.keys() & row.keys()
    return {name: value for name, value in row.items() if value is not None} | more


def games_by_command(ratings: Callable[..., Any], ledger: Ledger) -> Rows:
    """What `games --format json` tells of all games that are not voided, with defaults filled in and places worked
    out, in the order of the log."""
    done = ratings("games", "--limit", "0", "--format", "json", db=ledger.url.render_as_string(hide_password=False))
    games = [row for row in json.loads(done.stdout)["rows"] if not row.pop("voided", False)]
    for game in games:
        worked_out = places(game)
        for participant, place in zip(game["participants"], worked_out, strict=True):
            participant.pop("place", None)
            participant |= {"status": participant.get("status", "finished")} | ({"place": place} if place else {})
            if "score" in participant:
                participant["score"] = Decimal(str(participant["score"]))
        defaults = {"kind": "placing", "rated": True, "aborted": False}
        game |= {**defaults, **game, "occurred_at": told(datetime.fromisoformat(game["occurred_at"]))}
    return sorted(games, key=lambda game: int(game["position"]))
