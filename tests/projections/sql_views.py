"""The content of the SQL views in the form of the commands' output, for tests that compare the two."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from histories import load_ladders
from sqlalchemy import text

import ratings_ledger as rl
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.store.opening import Ledger

Rows = list[dict[str, Any]]


def select(ledger: Ledger, query: str, **parameters: Any) -> Rows:
    """Return the rows of a query."""
    with ledger.reading() as connection:
        return [dict(row._mapping) for row in connection.execute(text(query), parameters)]


def format_instant(instant: Any) -> str:
    """Return a time of a view in the form of JSON."""
    return instant if isinstance(instant, str) else instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def load_changes_by_sql(ledger: Ledger) -> dict[str, Rows]:
    """Return all of `live_changes`, by ladder, in the form of `export changes`."""
    rows_by_ladder: dict[str, Rows] = {}
    for row in select(ledger, "SELECT * FROM live_changes ORDER BY ladder, ordinal"):
        rows = rows_by_ladder.setdefault(row.pop("ladder"), [])
        assert row.pop("ordinal") == len(rows) + 1
        scale = row.pop("scale")
        for name in ("before", "change", "after"):
            exact = Fraction(row.pop(f"{name}_units"), scale)
            assert abs(Fraction(row[name]) - exact) < Fraction(1, 10**6)
            row[name] = str(exact)
        rows.append(row | {"occurred_at": format_instant(row["occurred_at"])})
    return rows_by_ladder


def replay_changes(ledger: Ledger, names: Sequence[str] = ()) -> dict[str, Rows]:
    """Return the rows of `export changes` without reasons for these ladders; by default for all that have changes."""
    rows_by_ladder: dict[str, Rows] = {}
    ladders = load_ladders(ledger)
    every_name = [name for ruleset_id in ladders.facts.rulesets for name in ladders.streams(ruleset_id)]
    with rl.open(ledger.url.render_as_string(hide_password=False)) as opened:
        for name in names or every_name:
            rows = []
            for change in opened.at().changes(name):
                row = {**change.model_dump(), "occurred_at": format_instant(change.change.occurred_at)}
                rows.append({name: row[name] for name in row if name != "reason" and not name.endswith("_decimal")})
            if rows:
                rows_by_ladder[name] = rows
    return rows_by_ladder


def load_games_by_sql(ledger: Ledger) -> Rows:
    """Return all of `live_games` with their participants, in the order of the log."""
    participants_by_game: dict[str, Rows] = {}
    for row in select(ledger, "SELECT * FROM live_participants ORDER BY position, number"):
        rows = participants_by_game.setdefault(row["game_id"], [])
        assert row.pop("number") == len(rows) + 1
        score = row.pop("score")
        rows.append(_merge_more(row) | ({} if score is None else {"score": Decimal(str(score))}))
    games = []
    for row in select(ledger, "SELECT * FROM live_games ORDER BY position"):
        participants = participants_by_game.pop(row["game_id"])
        assert row.pop("participants") == len(participants)
        for participant in participants:
            assert (participant.pop("game_id"), participant.pop("position")) == (row["game_id"], row["position"])
        row["group"] = row.pop("group_name")
        row |= {
            "rated": bool(row["rated"]),
            "aborted": bool(row["aborted"]),
            "occurred_at": format_instant(row["occurred_at"]),
        }
        games.append(_merge_more(row) | {"participants": participants})
    assert not participants_by_game
    return games


def _merge_more(row: dict[str, Any]) -> dict[str, Any]:
    more = json.loads(row.pop("more") or "{}")
    assert not more.keys() & row.keys()
    return {name: value for name, value in row.items() if value is not None} | more


def load_games_by_command(ratings: Callable[..., Any], ledger: Ledger) -> Rows:
    """Return the games of `games --format json` that are not voided, with defaults and computed places, in the order of
    the log.
    """
    result = ratings("games", "--limit", "0", "--format", "json", db=ledger.url.render_as_string(hide_password=False))
    games = [row for row in json.loads(result.stdout)["rows"] if not row.pop("voided", False)]
    for game in games:
        game_places = places(game)
        for participant, place in zip(game["participants"], game_places, strict=True):
            participant.pop("place", None)
            participant |= {"status": participant.get("status", "finished")} | ({"place": place} if place else {})
            if "score" in participant:
                participant["score"] = Decimal(str(participant["score"]))
        defaults = {"kind": "placing", "rated": True, "aborted": False}
        game |= {**defaults, **game, "occurred_at": format_instant(datetime.fromisoformat(game["occurred_at"]))}
    return sorted(games, key=lambda game: int(game["position"]))
