"""The history that a rebuild keeps for SQL equals the output of commands, after any corrections, voids and renames."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from catan_years import draw_year
from corrected_histories import draw_histories
from histories import (
    build_adjustment,
    build_club_game,
    build_ruleset_event,
    draw_games,
    enter,
    fill,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from own_rules import publish_every_shipped_ruleset
from rebuilds import list_differences, rebuild_standings, replace_stage
from sql_views import load_changes_by_sql, load_games_by_command, load_games_by_sql, replay_changes, select
from stores import create_postgres_database, make_empty_ledger
from thresholds import set_thresholds
from time_histories import draw_history

from ratings_ledger.ledger.errors import LockLost
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade

Ratings = Callable[..., Any]
PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
ALL, THREE, FIVE, SEVEN = (f"club-catan-elo/{band}" for band in ("all", "3-4", "5-6", "7-8"))
TABLES = ("history_parts", "history_changes", "history_games", "history_participants")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short histories have several blocks and transactions."""
    set_thresholds(monkeypatch, stored_changes=7, stored_games=3, stored_rows=11)


def make_ledger_with_games(ratings: Ratings, url: str) -> None:
    """Make a ledger with the games of five players on four ladders of two rulesets."""
    make_empty_ledger(ratings, url)
    second_ruleset = build_ruleset_event()
    second_ruleset["data"] = second_ruleset["data"] | {
        "id": "other",
        "partition": {"by": ["players"], "bands": ["all"]},
    }
    fill(url, [build_ruleset_event(), second_ruleset, *draw_games(1, 30, PLAYERS)])


def make_ledger_with_history(ratings: Ratings, url: str) -> None:
    """Make the ledger of `make_ledger_with_games`, and rebuild it with its history for SQL."""
    make_ledger_with_games(ratings, url)
    rebuild_standings(url, keep_history=True)


@pytest.fixture
def ledger(copy_ledger: Callable[..., str]) -> Ledger:
    """Return the ledger of `make_ledger_with_games`, in each kind of store."""
    return open_ledger(copy_ledger(make_ledger_with_games))


@pytest.fixture
def rebuilt_ledger(copy_ledger: Callable[..., str]) -> Ledger:
    """Return the ledger of `make_ledger_with_history`, in each kind of store."""
    return open_ledger(copy_ledger(make_ledger_with_history))


def append(ledger: Ledger, *events: dict[str, Any]) -> None:
    """Append events to a ledger."""
    fill(ledger.url.render_as_string(hide_password=False), events)


def build_void(game_id: str) -> dict[str, Any]:
    """Return the void of a game."""
    data = {"game_id": game_id, "reason": "never played"}
    return {"type": "game.voided", "occurred_at": "2020-02-01T00:00:00Z", "data": data}


def rebuild(ledger: Ledger, *requested: str, **options: Any) -> Any:
    """Rebuild the standings of some ladders, or of all, and return the result."""
    return rebuild_standings(ledger.url.render_as_string(hide_password=False), *requested, **options)


def list_findings(ledger: Ledger) -> list[str]:
    """Return the messages of `verify` about stored standings."""
    return list_differences(ledger.url.render_as_string(hide_password=False))


def load_history_tables(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of the tables behind the views."""
    return {name: [tuple(row.values()) for row in select(ledger, f"SELECT * FROM {name} ORDER BY 1, 2, 3")]
            for name in TABLES}  # fmt: skip


def load_parts(ledger: Ledger) -> dict[tuple[str, int], int]:
    """Return the part of every block by (ladder, block)."""
    rows = select(ledger, "SELECT ladder, block, part FROM history_parts")
    return {(row["ladder"], row["block"]): row["part"] for row in rows}


def load_info(ledger: Ledger) -> dict[str, Any]:
    """Return the row of `live_info`."""
    (row,) = select(ledger, "SELECT * FROM live_info")
    return row


def check_views(ratings: Ratings, ledger: Ledger) -> int:
    """Compare all views with the commands; return the number of changes."""
    changes_by_ladder = load_changes_by_sql(ledger)
    assert changes_by_ladder == replay_changes(ledger)
    assert load_games_by_sql(ledger) == load_games_by_command(ratings, ledger)
    check_running_points(ledger, changes_by_ladder)
    assert list_findings(ledger) == []
    return sum(map(len, changes_by_ladder.values()))


def check_running_points(ledger: Ledger, changes_by_ladder: dict[str, list[dict[str, Any]]]) -> None:
    """Check that each player's changes are without gaps, and end in the stored points where points run on."""
    standings = select(ledger, "SELECT ladder, player, points_units, scale FROM live_standings")
    for ladder, rows in changes_by_ladder.items():
        points: dict[str, Fraction] = {}
        for row in rows:
            assert points.setdefault(row["player"], Fraction(row["before"])) == Fraction(row["before"])
            points[row["player"]] += Fraction(row["change"])
            assert points[row["player"]] == Fraction(row["after"])
        ranked = {row["player"]: Fraction(row["points_units"], row["scale"])
                  for row in standings if row["ladder"] == ladder}  # fmt: skip
        assert ranked.keys() == points.keys()
        if ladder.startswith(("catan-elo", "galactic-points", "b5-league", "club-catan-elo", "other")):
            assert ranked == points


@pytest.fixture
def new_store(store_kind: str, tmp_path_factory: pytest.TempPathFactory, request: Any) -> Iterator[Callable[[], str]]:
    """Yield a function that returns the URL of another empty store, of each kind in turn."""
    with ExitStack() as stack:
        if store_kind == "sqlite":
            yield lambda: f"sqlite:///{tmp_path_factory.mktemp('drawn') / 'ratings.db'}"
        else:
            server = request.getfixturevalue("server")
            yield lambda: stack.enter_context(create_postgres_database(server))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_views_match_commands_in_any_history(new_store: Callable[[], str], ratings: Ratings, at_length: bool) -> None:
    """After every rebuild of a random history, the SQL views equal the output of the commands.

    The histories have games, corrections, voids, renames and adjustments, a few of them between two rebuilds.
    """
    cases: Counter[str] = Counter()
    url = new_store()
    upgrade(url)
    publish_every_shipped_ruleset(url)
    with open_ledger(url).reading() as connection:
        published = [json.loads(record) for page in read_records(connection) for _, record in page]

    @settings(max_examples=60 if at_length else 3, phases=[Phase.generate], derandomize=not at_length, deadline=None,
              suppress_health_check=list(HealthCheck), database=None)  # fmt: skip
    @given(draw_histories(published, 60), st.randoms(use_true_random=True))
    def rebuild_in_steps(steps: list[Any], chance: Random) -> None:
        url = new_store()
        upgrade(url)
        publish_every_shipped_ruleset(url)
        ledger = open_ledger(url)
        for _ in range(3):
            size = chance.randint(1, 30)
            part, steps = steps[:size], steps[size:]
            cases.update(step.event["type"] for step in part if not step.verdict.codes)
            allowed = any(step.allow_uncounted for step in part)
            enter(ledger, [step.event for step in part], allow_uncounted=allowed)
            rebuild(ledger, keep_history=True)
            cases["changes"] += check_views(ratings, ledger)

    rebuild_in_steps()
    assert cases.keys() >= {"game.recorded", "game.corrected", "game.voided", "player.renamed", "points.adjusted"}
    assert cases["changes"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_views_match_commands_over_a_year(seed: int, ledger_url: str, ratings: Ratings) -> None:
    """After a year of monthly lists, the SQL views equal the output of the commands."""
    ledger = fill(ledger_url, draw_year(seed))
    rebuild(ledger, keep_history=True)
    assert check_views(ratings, ledger) > 100
    assert any(name.startswith("catan-monthly/") for name in load_changes_by_sql(ledger))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_views_match_after_rule_changes(seed: int, ledger_url: str, ratings: Ratings) -> None:
    """After withdrawn rule changes, the SQL views equal the output of the commands."""
    ledger = open_ledger(ledger_url)
    enter(ledger, draw_history(seed, 120))
    rebuild(ledger, keep_history=True)
    assert check_views(ratings, ledger) > 20


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_sql_counts_match_the_games(
    cached: bool, ledger: Ledger, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After a merge, a void and a correction, a count by SQL equals the games of the command.

    For a player with two ids, a plain SQL count over the view has all live games and no voided one, also if all facts
    are already in the cache, as in a long ledger.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    set_thresholds(monkeypatch, cached_events=1 if cached else 10**9)
    append(
        ledger,
        build_club_game("late", "anna2 ben"), build_club_game("gone", "anna ben"),
        build_club_game("wrong", "anna cleo"), build_void("gone"),
        {"type": "game.corrected", "occurred_at": "2020-02-02T00:00:00Z",
         "data": {"game_id": "wrong", "reason": "it was dora", "game": build_club_game("wrong", "ben dora")["data"]}},
        {"type": "player.renamed", "occurred_at": "2020-02-03T00:00:00Z",
         "data": {"player": "anna2", "new_player": "anna"}},
    )  # fmt: skip
    if cached:
        rebuild(ledger)
        append(ledger, build_club_game("later", "anna ben"))
    rebuild(ledger, keep_history=True)
    assert list_findings(ledger) == []
    check_views(ratings, ledger)
    db = ledger.url.render_as_string(hide_password=False)
    games_by_command = json.loads(
        ratings("games", "--player", "anna", "--limit", "0", "--format", "json", db=db).stdout
    )
    (counted,) = select(ledger, "SELECT count(*) AS games FROM live_participants WHERE player = 'anna'")
    assert counted["games"] == sum("voided" not in row for row in games_by_command["rows"])
    assert select(ledger, "SELECT player FROM live_participants WHERE game_id = 'wrong' ORDER BY 1") == [
        {"player": "ben"}, {"player": "dora"}
    ]  # fmt: skip


@pytest.mark.slow_cases
def test_members_without_columns_are_in_more(ledger_url: str, ratings: Ratings) -> None:
    """The views have extreme times and, in `more`, every member without a column of its own."""
    early = build_club_game("early", "anna ben") | {"occurred_at": "1969-12-31T23:59:59.999999Z"}
    late = build_club_game("far", "anna ben cleo", extra={"table": "7"}, city="Köln") | {
        "occurred_at": "2019-07-01T00:00:00.1Z"
    }
    late["data"]["participants"][0] |= {"score": "12.5", "seat": 3, "extra": {"colour": "red"}}
    ledger = fill(
        ledger_url,
        [build_ruleset_event(), early, late, build_club_game("low", "anna=ben", score_order="low", rated=False)],
    )
    rebuild(ledger, keep_history=True)
    check_views(ratings, ledger)
    (row,) = select(ledger, "SELECT g.more, p.more AS seat_more FROM live_games g JOIN live_participants p "
                            "ON p.game_id = g.game_id WHERE g.game_id = 'far' AND p.seat = 3")  # fmt: skip
    assert row == {"more": '{"extra":{"table":"7"}}', "seat_more": '{"extra":{"colour":"red"}}'}


@pytest.mark.slow
def test_new_last_game_rewrites_only_last_blocks(rebuilt_ledger: Ledger, ratings: Ratings) -> None:
    """After one more game at the end, a rebuild keeps all blocks but the last one of each ladder with the game."""
    before = load_parts(rebuilt_ledger)
    append(rebuilt_ledger, build_club_game("new", "anna ben cleo", day=28))
    rebuild(rebuilt_ledger)
    after = load_parts(rebuilt_ledger)
    check_views(ratings, rebuilt_ledger)
    last = {ladder: max(block for name, block in before if name == ladder) for ladder, _ in before}
    assert all(after[ladder, block] == before[ladder, block] for ladder, block in before if block < last[ladder])
    assert {block for ladder, block in after.keys() - before.keys() if not ladder} == {10}
    assert after[THREE, last[THREE]] != before[THREE, last[THREE]]
    assert {part: after[part] for part in after if part[0] == FIVE} == {
        part: before[part] for part in before if part[0] == FIVE
    }
    append(rebuilt_ledger, build_void("new"))
    rebuild(rebuilt_ledger)
    check_views(ratings, rebuilt_ledger)


@pytest.mark.slow_cases
def test_rename_rewrites_only_its_blocks(ledger: Ledger, ratings: Ratings) -> None:
    """After a rename, only blocks of games that name the player are rewritten."""
    append(ledger, *(build_club_game(f"z-{n}", "uwe vera") for n in range(6)))
    rebuild(ledger, keep_history=True)
    before = load_parts(ledger)
    append(ledger, {"type": "player.renamed", "occurred_at": "2020-02-03T00:00:00Z",
                  "data": {"player": "vera", "new_player": "vera-2"}})  # fmt: skip
    rebuild(ledger)
    check_views(ratings, ledger)
    after = load_parts(ledger)
    assert all(after["", block] == before["", block] for block in range(10))
    assert after["", 11] != before["", 11]


@pytest.mark.slow_cases
def test_history_stays_until_dropped(ledger: Ledger, ratings: Ratings) -> None:
    """Rebuilds keep an existing history for SQL until `keep_history=False` drops it."""
    rebuild(ledger)
    assert (load_changes_by_sql(ledger), load_games_by_sql(ledger), load_info(ledger)["history"]) == ({}, [], False)
    rebuild(ledger, keep_history=True)
    rebuild(ledger)
    assert (check_views(ratings, ledger) > 0, bool(load_info(ledger)["history"])) == (True, True)
    assert not rebuild(ledger, keep_history=False).history
    assert (load_changes_by_sql(ledger), load_games_by_sql(ledger), bool(load_info(ledger)["history"])) == (
        {},
        [],
        False,
    )
    assert not any(load_history_tables(ledger).values())
    assert not rebuild(ledger).history
    assert list_findings(ledger) == []


@pytest.mark.slow_cases
def test_partial_rebuild_keeps_all_ladders(
    rebuilt_ledger: Ledger,
) -> None:
    """A rebuild of some ladders keeps the changes of the other ladders, and the games of the generation."""
    before, games = load_changes_by_sql(rebuilt_ledger), load_games_by_sql(rebuilt_ledger)
    append(rebuilt_ledger, build_club_game("late", "emil anna ben", day=1))
    rebuild(rebuilt_ledger, ALL)
    after = load_changes_by_sql(rebuilt_ledger)
    assert after.keys() == before.keys() == {ALL, THREE, FIVE, "other/all"}
    assert {name for name in after if after[name] != before[name]} == {ALL}
    assert after[ALL] == replay_changes(rebuilt_ledger)[ALL]
    assert (load_games_by_sql(rebuilt_ledger), load_info(rebuilt_ledger)["position"]) == (games, 32)
    assert list_findings(rebuilt_ledger) == []


@pytest.mark.slow_cases
def test_history_of_some_ladders_is_rejected(ledger: Ledger, ratings: Ratings) -> None:
    """Keeping the history of some ladders is rejected while the others have none."""
    rebuild(ledger)
    db = ledger.url.render_as_string(hide_password=False)
    result = ratings("rebuild", ALL, "--history", db=db)
    assert (result.exit_code, result.stdout, "first run: ratings rebuild --history" in result.stderr) == (2, "", True)
    assert load_info(ledger)["generation"] == 1


@pytest.mark.slow_cases
def test_failed_ladder_keeps_its_changes(rebuilt_ledger: Ledger) -> None:
    """A ladder with a failing rule keeps its previous changes in a rebuild."""
    before = load_changes_by_sql(rebuilt_ledger)
    append(
        rebuilt_ledger,
        *(build_adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)),
        build_club_game("last", "anna ben cleo"),
    )
    result = rebuild(rebuilt_ledger)
    assert [failure.ladder for failure in result.failures] == [ALL]
    after = load_changes_by_sql(rebuilt_ledger)
    assert after[ALL] == before[ALL]
    assert after[THREE] == replay_changes(rebuilt_ledger, [THREE])[THREE] != before[THREE]
    assert [message for message in list_findings(rebuilt_ledger) if "changes" in message or "games" in message] == []


@pytest.mark.slow_cases
def test_failed_ladder_may_have_no_history(
    ledger: Ledger,
) -> None:
    """A ladder that fails when history is first kept has no changes, which is no finding."""
    rebuild(ledger)
    append(ledger, *(build_adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)))
    rebuild(ledger, keep_history=True)
    assert load_changes_by_sql(ledger).keys() == {THREE, FIVE, "other/all"}
    assert [message for message in list_findings(ledger) if "changes" in message or "games" in message] == []


@pytest.mark.slow
def test_rollback_hides_later_changes(rebuilt_ledger: Ledger, ratings: Ratings) -> None:
    """After a rollback the views are empty instead of showing another generation; a full rebuild fills them."""
    ledger = rebuilt_ledger
    append(ledger, build_club_game("late-0", "emil anna ben", day=1))
    rebuild(ledger, keep_history=True)
    append(ledger, build_club_game("late-1", "emil anna ben", day=1))
    assert ratings("rebuild", "--rollback", db=ledger.url.render_as_string(hide_password=False)).exit_code == 0
    assert (load_changes_by_sql(ledger), load_games_by_sql(ledger), bool(load_info(ledger)["history"])) == (
        {},
        [],
        False,
    )
    assert list_findings(ledger) == []
    assert not rebuild(ledger, ALL).history
    assert load_changes_by_sql(ledger) == {}
    assert rebuild(ledger).history
    check_views(ratings, ledger)


@pytest.mark.slow
def test_one_and_many_processes_agree(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process and three processes keep the same history."""
    ledger = fill(ledger_url, [build_ruleset_event(), *draw_games(2, 30, [*PLAYERS, *"fghijk"], players_max=8)])
    set_thresholds(monkeypatch, forking_cost=0)
    histories = []
    for cores in (1, 3):
        rebuild(ledger, cores=cores, check=True, keep_history=True)
        histories.append((load_changes_by_sql(ledger), load_games_by_sql(ledger)))
    assert histories[0] == histories[1]


@pytest.mark.slow_cases
def test_checked_rebuild_repairs_rows(rebuilt_ledger: Ledger) -> None:
    """A rebuild keeps rows that were altered in the store; a checked rebuild rewrites them."""
    with rebuilt_ledger.writing() as connection:
        connection.exec_driver_sql("UPDATE history_changes SET before = before + 1")
        connection.exec_driver_sql("UPDATE history_participants SET player = 'eve'")
    rebuild(rebuilt_ledger)
    assert list_findings(rebuilt_ledger)
    rebuild(rebuilt_ledger, check=True)
    assert list_findings(rebuilt_ledger) == []


@pytest.mark.slow
def test_cut_off_rebuild_leaves_nothing(
    rebuilt_ledger: Ledger, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """A rebuild that is interrupted at any transaction changes nothing for readers, and the next rebuild cleans up."""
    append(rebuilt_ledger, build_club_game("late", "emil anna ben", day=1))
    before, remaining = load_changes_by_sql(rebuilt_ledger), 0

    class CutOff(Exception):
        pass

    def insert_until_cut_off(insert_rows: Callable[..., None], *arguments: Any) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining < 0:
            raise CutOff
        insert_rows(*arguments)

    replace_stage(monkeypatch, "insert rows", insert_until_cut_off)
    transaction_count = 0
    while True:
        remaining = transaction_count
        try:
            rebuild(rebuilt_ledger)
            break
        except CutOff:
            assert load_changes_by_sql(rebuilt_ledger) == before
            transaction_count += 1 if at_length else 29
    assert transaction_count > 50
    check_views(ratings, rebuilt_ledger)
    live_parts = {row["part"] for row in select(rebuilt_ledger, "SELECT part FROM history_parts")}
    for name in TABLES[1:]:
        assert {row["part"] for row in select(rebuilt_ledger, f"SELECT DISTINCT part FROM {name}")} <= live_parts


@pytest.mark.slow_cases
def test_vanished_rows_stop_promotion(rebuilt_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """If rows vanish while others are written, the rebuild promotes nothing."""
    append(rebuilt_ledger, build_club_game("late", "emil anna ben", day=1))
    before = load_changes_by_sql(rebuilt_ledger)

    def write_and_lose_rows(write_games: Callable[..., None], *arguments: Any) -> None:
        write_games(*arguments)
        with rebuilt_ledger.writing() as connection:
            last = "(SELECT max(part) FROM history_changes)"
            connection.exec_driver_sql(f"DELETE FROM history_changes WHERE part = {last}")

    replace_stage(monkeypatch, "write games", write_and_lose_rows)
    with pytest.raises(LockLost, match="rows of changes and games; nothing was promoted"):
        rebuild(rebuilt_ledger)
    assert load_changes_by_sql(rebuilt_ledger) == before


@pytest.mark.slow_cases
def test_promotion_during_verify_is_no_finding(rebuilt_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation promoted during `verify` causes no finding.

    The rebuild removes the history that is being compared; then `verify` compares the new one.
    """
    append(rebuilt_ledger, build_club_game("late", "emil anna ben", day=1))
    rebuilt: list[Any] = []

    def rebuild_and_find(find_difference: Callable[..., str | None], *arguments: Any) -> str | None:
        if not rebuilt:
            rebuilt.append(rebuild(rebuilt_ledger))
        return find_difference(*arguments)

    replace_stage(monkeypatch, "find a difference of changes", rebuild_and_find)
    assert list_findings(rebuilt_ledger) == []
    assert rebuilt


@pytest.mark.slow
def test_rebuild_reports_kept_changes(ledger: Ledger, ratings: Ratings) -> None:
    """A rebuild with history reports the number of changes kept for SQL; a rollback with `--history` is rejected."""
    db = ledger.url.render_as_string(hide_password=False)
    result = ratings("rebuild", "--history", db=db)
    assert result.stdout.endswith(f"; {check_views(ratings, ledger)} changes kept for SQL\n")
    assert json.loads(ratings("rebuild", "--format", "json", db=db).stdout)["changes"] == check_views(ratings, ledger)
    assert "changes" not in json.loads(ratings("rebuild", "--no-history", "--format", "json", db=db).stdout)
    rollback = ratings("rebuild", "--rollback", "--history", db=db)
    assert (rollback.exit_code, "--[no-]history" in rollback.stderr) == (2, True)
