"""docs/sql.md: all views and columns are on the page and have comments, and all queries shown give rows."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from ledgers import open_for_reading
from make_docs import ROOT, SQL, replace_views
from sqlalchemy import text

Ratings = Callable[..., Any]
PAGE = SQL.read_text(encoding="utf-8")
LADDER = "elo-catan/all"


def _read_documented_views() -> dict[str, tuple[str, dict[str, str]]]:
    """Return the meaning of each view on the page, with the meanings of its columns."""
    sections = re.findall(r"^### (\w+)\n\nA row is (.*?)\.\n\n(.*?)\n\n", PAGE, re.DOTALL | re.MULTILINE)
    return {
        name: (meaning, dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)))
        for name, meaning, table in sections
    }


MEANINGS = _read_documented_views()


def list_queries(fence: str) -> list[str]:
    """Return the queries in the page's fenced blocks with this language."""
    blocks = re.findall(rf"^```{fence}\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    return [query.strip() for block in blocks for query in block.split(";") if query.strip()]


@pytest.fixture
def season(store: str, ratings: Ratings) -> str:
    """Return a ledger with a season, a voided game, two renames and an adjustment, rebuilt with its history."""
    for arguments in (
        ["init", "--for", "catan"],
        ["import", ROOT / "examples" / "winter-league.csv", "--set", "game=catan", "--zone", "UTC"],
        ["void", "wl-06", "--reason", "a friendly"],
        ["player", "rename", "anouk", "anouk-2"],
        ["player", "rename", "anouk-2", "Anouk"],
        ["adjust", LADDER, "mira", "5", "--reason", "host of the final"],
        ["import", "-"],
        ["rebuild", "--history"],
    ):
        result = ratings(*arguments, db=store, input=GAME if arguments == ["import", "-"] else None)
        assert result.exit_code == 0, (arguments, result)
    return store


GAME = (
    '{"type":"game.recorded","occurred_at":"2025-05-01T20:00:00Z","data":{"game_id":"at-7","game":"catan",'
    '"participants":[{"player":"mira","place":1},{"player":"yusuf","place":2}],"extra":{"table":"7"}}}'
)


def run_query(url: str, query: str) -> list[Any]:
    with open_for_reading(url) as connection:
        return list(connection.exec_driver_sql(query.replace("%", "%%") if "postgres" in url else query))


def test_page_matches_the_code() -> None:
    """Generating the SQL page again from the code leaves it unchanged."""
    assert replace_views(PAGE) == PAGE, "make docs"


def test_page_documents_every_view_column(ledger_url: str) -> None:
    """Every column of every view that a store has is on the page, and no other column is."""
    with open_for_reading(ledger_url) as connection:
        columns_by_view = {
            name: {*connection.execute(text(f"SELECT * FROM {name} LIMIT 0")).keys()} for name in MEANINGS
        }
        views = "SELECT name FROM sqlite_master WHERE type = 'view'"
        if "postgres" in ledger_url:
            views = "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"
        assert set(connection.execute(text(views)).scalars()) == MEANINGS.keys()
    # the columns for times differ between the two stores
    times = {"occurred_at", "recorded_at", "occurred_at_utc", "recorded_at_utc"}
    assert {name: columns - times for name, columns in columns_by_view.items()} == {
        name: columns.keys() - times for name, (_, columns) in MEANINGS.items()
    }
    assert all(columns <= MEANINGS[name][1].keys() for name, columns in columns_by_view.items())


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_postgres_comments_match_the_page(
    ledger_url: str,
) -> None:
    """In PostgreSQL, the comment of every view and column is its documented meaning."""
    query = """SELECT c.relname, a.attname, obj_description(c.oid), col_description(c.oid, a.attnum)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0"""
    rows = run_query(ledger_url, query)
    assert len(rows) > 60
    assert [row for row in rows if (row[2], row[3]) != (MEANINGS[row[0]][0], MEANINGS[row[0]][1][row[1]])] == []


@pytest.mark.slow
def test_documented_queries_return_rows(season: str) -> None:
    """Every query on the page returns rows on the store that it is meant for."""
    dialect = "postgresql" if "postgres" in season else "sqlite"
    counts = {query: len(run_query(season, query)) for query in [*list_queries("sql"), *list_queries(f"sql {dialect}")]}
    assert len(counts) == 15
    assert [query for query, count in counts.items() if not count] == []


@pytest.mark.slow_cases
def test_history_views_count_games_correctly(season: str, ratings: Ratings) -> None:
    """After a void and two renames, the history views count games as `games` and `statistics` do.

    The plain events still include the voided game.
    """
    ((games,),) = run_query(season, "SELECT count(*) FROM live_games")
    ((events,),) = run_query(season, "SELECT count(*) FROM events_readable WHERE type = 'game.recorded'")
    assert (games, events) == (90, 91)
    by_player = "SELECT player, count(*) FROM live_participants GROUP BY player"
    counted = dict(tuple(row) for row in run_query(season, by_player))
    rows = json.loads(ratings("games", "--limit", "0", "--format", "json", db=season).stdout)["rows"]
    assert len([row for row in rows if "voided" not in row]) == games
    statistics = json.loads(ratings("statistics", "Anouk", "--format", "json", db=season).stdout)
    assert "anouk" not in counted
    assert counted["Anouk"] == statistics["started"] > 30


@pytest.mark.slow
def test_chart_query_returns_a_time_series(season: str) -> None:
    """With Grafana's times filled in, the chart query returns time, metric and points in time order.

    The last point of each player has their points after the last change in the range.
    """
    dialect = "postgresql" if "postgres" in season else "sqlite"
    (query,) = list_queries(f"sql grafana-{dialect}")
    since, until = "2024-11-01T00:00:00Z", "2025-04-01T00:00:00Z"
    milliseconds = [str(int(datetime.fromisoformat(moment).timestamp() * 1000)) for moment in (since, until)]
    filled = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN '{since}' AND '{until}'", query)
    filled = filled.replace("$__from", milliseconds[0]).replace("$__to", milliseconds[1])
    assert "$" not in filled
    with open_for_reading(season) as connection:
        result = connection.exec_driver_sql(filled)
        assert list(result.keys()) == ["time", "metric", "points"]
        rows = [tuple(row) for row in result]
    # the query also names anouk, but the views have only current ids
    assert {row[1] for row in rows} == {"mira", "yusuf"}
    assert len(rows) > 40
    assert rows == sorted(rows, key=lambda row: row[0])
    seconds = [row[0] if dialect == "sqlite" else row[0].timestamp() for row in rows]
    assert int(milliseconds[0]) / 1000 <= min(seconds) <= max(seconds) <= int(milliseconds[1]) / 1000
    last = "SELECT after FROM live_changes WHERE ladder = 'elo-catan/all' AND player = '{}' AND occurred_at <= '{}' "
    for player in ("mira", "yusuf"):
        ((points,),) = run_query(season, last.format(player, until) + "ORDER BY ordinal DESC LIMIT 1")
        assert [row[2] for row in rows if row[1] == player][-1] == points
