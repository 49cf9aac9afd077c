"""docs/sql.md: all views and columns are on the page and have comments, and all queries shown give rows."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from make_docs import ROOT, SQL, with_views
from sqlalchemy import text

from ledger.store.opening import open_ledger
from projections.stored.views import MEANINGS

Ratings = Callable[..., Any]
PAGE = SQL.read_text(encoding="utf-8")
LADDER = "elo-catan/all"


def queries(fence: str) -> list[str]:
    """The queries in the blocks of this kind."""
    blocks = re.findall(rf"^```{fence}\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    return [query.strip() for block in blocks for query in block.split(";") if query.strip()]


@pytest.fixture
def season(store: str, ratings: Ratings) -> str:
    """A season with a game that was voided, a rename and an adjustment; its history is kept."""
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
        done = ratings(*arguments, db=store, input=GAME if arguments == ["import", "-"] else None)
        assert done.exit_code == 0, (arguments, done)
    return store


GAME = (
    '{"type":"game.recorded","occurred_at":"2025-05-01T20:00:00Z","data":{"game_id":"at-7","game":"catan",'
    '"participants":[{"player":"mira","place":1},{"player":"yusuf","place":2}],"extra":{"table":"7"}}}'
)


def run(url: str, query: str) -> list[Any]:
    with open_ledger(url).reading() as connection:
        return list(connection.exec_driver_sql(query.replace("%", "%%") if "postgres" in url else query))


def test_given_the_page_when_written_again_from_the_code_then_it_is_the_same() -> None:
    assert with_views(PAGE) == PAGE, "make docs"


def test_given_the_views_of_a_ledger_when_compared_with_the_page_then_every_column_is_told(ledger_url: str) -> None:
    """Given all views that a store has, then each of their columns is on the page, and no other."""
    with open_ledger(ledger_url).reading() as connection:
        found = {name: {*connection.execute(text(f"SELECT * FROM {name} LIMIT 0")).keys()} for name in MEANINGS}
        views = "SELECT name FROM sqlite_master WHERE type = 'view'"
        if "postgres" in ledger_url:
            views = "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"
        assert set(connection.execute(text(views)).scalars()) == MEANINGS.keys()
    # the times of this one have other names in the two stores
    times = {"occurred_at", "recorded_at", "occurred_at_utc", "recorded_at_utc"}
    assert {name: columns - times for name, columns in found.items()} == {
        name: columns.keys() - times for name, (_, columns) in MEANINGS.items()
    }
    assert all(columns <= MEANINGS[name][1].keys() for name, columns in found.items())


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_given_the_views_in_postgresql_when_their_comments_are_read_then_each_column_has_its_meaning(
    ledger_url: str,
) -> None:
    told = """SELECT c.relname, a.attname, obj_description(c.oid), col_description(c.oid, a.attnum)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0"""
    rows = run(ledger_url, told)
    assert len(rows) > 60
    assert [row for row in rows if (row[2], row[3]) != (MEANINGS[row[0]][0], MEANINGS[row[0]][1][row[1]])] == []


def test_given_the_queries_of_the_page_when_run_on_their_store_then_all_give_rows(season: str) -> None:
    own = "postgresql" if "postgres" in season else "sqlite"
    counts = {query: len(run(season, query)) for query in [*queries("sql"), *queries(f"sql {own}")]}
    assert len(counts) == 15
    assert [query for query, count in counts.items() if not count] == []


def test_given_the_history_and_the_events_when_games_are_counted_then_only_the_history_is_right(season: str) -> None:
    """Given a voided game and two renames, then SQL over the view counts what `statistics` and `games` do."""
    ((games,),) = run(season, "SELECT count(*) FROM live_games")
    ((events,),) = run(season, "SELECT count(*) FROM events_readable WHERE type = 'game.recorded'")
    assert (games, events) == (90, 91)
    counted = dict(tuple(row) for row in run(season, "SELECT player, count(*) FROM live_participants GROUP BY player"))
    assert "anouk" not in counted
    assert counted["Anouk"] > 30


def test_given_the_query_of_a_chart_when_grafana_fills_in_its_times_then_it_is_a_series_of_points(season: str) -> None:
    """Given a range of times, then the columns are time, metric and a number, by time, and the last one is the standing
    of that moment."""
    own = "postgresql" if "postgres" in season else "sqlite"
    (query,) = queries(f"sql grafana-{own}")
    since, until = "2024-11-01T00:00:00Z", "2025-04-01T00:00:00Z"
    milliseconds = [str(int(datetime.fromisoformat(moment).timestamp() * 1000)) for moment in (since, until)]
    filled = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN '{since}' AND '{until}'", query)
    filled = filled.replace("$__from", milliseconds[0]).replace("$__to", milliseconds[1])
    assert "$" not in filled
    with open_ledger(season).reading() as connection:
        found = connection.exec_driver_sql(filled)
        assert list(found.keys()) == ["time", "metric", "points"]
        rows = [tuple(row) for row in found]
    # the ids of now: who was renamed is not found under the old one
    assert {row[1] for row in rows} == {"mira", "yusuf"}
    assert len(rows) > 40
    assert rows == sorted(rows, key=lambda row: row[0])
    seconds = [row[0] if own == "sqlite" else row[0].timestamp() for row in rows]
    assert int(milliseconds[0]) / 1000 <= min(seconds) <= max(seconds) <= int(milliseconds[1]) / 1000
    last = "SELECT after FROM live_changes WHERE ladder = 'elo-catan/all' AND player = '{}' AND occurred_at <= '{}' "
    for player in ("mira", "yusuf"):
        ((points,),) = run(season, last.format(player, until) + "ORDER BY ordinal DESC LIMIT 1")
        assert [row[2] for row in rows if row[1] == player][-1] == points
