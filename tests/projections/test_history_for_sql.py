"""What a rebuild keeps for SQL is what the commands tell, whatever was recorded, corrected, voided and renamed."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from catan_years import year_of
from corrected_histories import histories
from histories import adjustment, club_game, fill, random_games, ruleset, ticking
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sql_views import changes_by_replay, changes_by_sql, games_by_command, games_by_sql, select
from stores import create_postgres_database, make_empty_ledger
from test_corrections_oracle import propose
from time_histories import history as time_history
from time_ledgers import enter as enter_events

from ratings_ledger.ledger.errors import LockLost
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.admission.publishing_rulesets import publish_missing
from ratings_ledger.projections.facts import decoding
from ratings_ledger.projections.rulesets.versions import read_shipped_texts
from ratings_ledger.projections.stored import computing, generations, sql_history, sql_rows
from ratings_ledger.projections.stored.rebuilding import HistoryMissing, RebuildOptions, rebuild
from ratings_ledger.projections.stored.verification import verify_standings

Ratings = Callable[..., Any]
PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
ALL, THREE, FIVE, SEVEN = (f"club-catan-elo/{band}" for band in ("all", "3-4", "5-6", "7-8"))
TABLES = ("history_parts", "history_changes", "history_games", "history_participants")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and transactions so small that short histories have several."""
    monkeypatch.setattr(sql_rows, "CHANGES_PER_BLOCK", 7)
    monkeypatch.setattr(sql_rows, "GAMES_PER_BLOCK", 3)
    monkeypatch.setattr(generations, "TRANSACTION_ROWS", 11)


def with_games(_: Ratings, url: str) -> None:
    """Make a ledger with the games of five players on four ladders of two rulesets."""
    make_empty_ledger(_, url)
    other = ruleset()
    other["data"] = other["data"] | {"id": "other", "partition": {"by": ["players"], "bands": ["all"]}}
    fill(url, [ruleset(), other, *random_games(1, 30, PLAYERS)])


def with_history(_: Ratings, url: str) -> None:
    """Make the same, rebuilt with its history for SQL."""
    with_games(_, url)
    rebuild(open_ledger(url), ticking(), options=RebuildOptions(keep_history=True))


@pytest.fixture
def ledger(copied: Callable[..., str]) -> Ledger:
    """The ledger of `with_games`, in each kind of store."""
    return open_ledger(copied(with_games))


@pytest.fixture
def rebuilt_ledger(copied: Callable[..., str]) -> Ledger:
    """The ledger of `with_history`, in each kind of store."""
    return open_ledger(copied(with_history))


def more(ledger: Ledger, *events: dict[str, Any]) -> None:
    fill(ledger.url.render_as_string(hide_password=False), events)


def void(game_id: str) -> dict[str, Any]:
    data = {"game_id": game_id, "reason": "never played"}
    return {"type": "game.voided", "occurred_at": "2020-02-01T00:00:00Z", "data": data}


def findings(ledger: Ledger) -> list[str]:
    with ledger.reading() as connection:
        return [finding.message for finding in verify_standings(connection)]


def stored(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tables behind the views."""
    return {name: [tuple(row.values()) for row in select(ledger, f"SELECT * FROM {name} ORDER BY 1, 2, 3")]
            for name in TABLES}  # fmt: skip


def parts(ledger: Ledger) -> dict[tuple[str, int], int]:
    rows = select(ledger, "SELECT ladder, block, part FROM history_parts")
    return {(row["ladder"], row["block"]): row["part"] for row in rows}


def info(ledger: Ledger) -> dict[str, Any]:
    (row,) = select(ledger, "SELECT * FROM live_info")
    return row


def agree(ratings: Ratings, ledger: Ledger) -> int:
    """Compare all views with the commands; gives how many changes there are."""
    shown = changes_by_sql(ledger)
    assert shown == changes_by_replay(ledger)
    assert games_by_sql(ledger) == games_by_command(ratings, ledger)
    lead_to_standings(ledger, shown)
    assert findings(ledger) == []
    return sum(map(len, shown.values()))


def lead_to_standings(ledger: Ledger, shown: dict[str, list[dict[str, Any]]]) -> None:
    """The changes of everybody lead from what he began with, without a gap, to his points, where points run on."""
    standings = select(ledger, "SELECT ladder, player, points_units, scale FROM live_standings")
    for ladder, rows in shown.items():
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
    """A function that gives the URL of another empty store, of each kind in turn."""
    with ExitStack() as stack:
        if store_kind == "sqlite":
            yield lambda: f"sqlite:///{tmp_path_factory.mktemp('drawn') / 'ratings.db'}"
        else:
            server = request.getfixturevalue("server")
            yield lambda: stack.enter_context(create_postgres_database(server))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_views_match_commands_in_any_history(new_store: Callable[[], str], ratings: Ratings, at_length: bool) -> None:
    """However often any history is rebuilt, the SQL views show what the commands show.

    The histories have games, corrections, voids, renames and adjustments, a few between two rebuilds.
    """
    met: Counter[str] = Counter()
    url = new_store()
    upgrade(url)
    publish_missing(open_ledger(url), "test", read_shipped_texts())
    with open_ledger(url).reading() as connection:
        published = [json.loads(record) for page in read_records(connection) for _, record in page]

    @settings(max_examples=60 if at_length else 3, phases=[Phase.generate], derandomize=not at_length, deadline=None,
              suppress_health_check=list(HealthCheck), database=None)  # fmt: skip
    @given(histories(published, 60), st.randoms(use_true_random=True))
    def go(steps: list[Any], chance: Random) -> None:
        url = new_store()
        upgrade(url)
        publish_missing(open_ledger(url), "test", read_shipped_texts())
        ledger = open_ledger(url)
        for _ in range(3):
            size = chance.randint(1, 30)
            some, steps = steps[:size], steps[size:]
            met.update(step.event["type"] for step in some if not step.verdict.codes)
            propose(ledger, some).append()
            rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
            met["changes"] += agree(ratings, ledger)

    go()
    assert met.keys() >= {"game.recorded", "game.corrected", "game.voided", "player.renamed", "points.adjusted"}
    assert met["changes"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_views_match_commands_over_a_year(seed: int, ledger_url: str, ratings: Ratings) -> None:
    """After a year of monthly lists, the SQL views show what the commands show."""
    ledger = fill(ledger_url, year_of(seed))
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    assert agree(ratings, ledger) > 100
    assert any(name.startswith("catan-monthly/") for name in changes_by_sql(ledger))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_views_match_after_rule_changes(seed: int, ledger_url: str, ratings: Ratings) -> None:
    """After withdrawn rule changes, the SQL views show what the commands show."""
    ledger = open_ledger(ledger_url)
    enter_events(ledger, time_history(seed, 120))
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    assert agree(ratings, ledger) > 20


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_sql_counts_match_the_games(
    cached: bool, ledger: Ledger, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After a merge, a void and a correction, counting by SQL gives what the games command shows.

    For a person under two ids, naive SQL over the view counts all of their games, and no voided one.
    That is also so if all of it is in the cache already, as in a long ledger.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(decoding, "CACHED_EVENTS", 1 if cached else 10**9)
    more(
        ledger,
        club_game("late", "anna2 ben"), club_game("gone", "anna ben"), club_game("wrong", "anna cleo"), void("gone"),
        {"type": "game.corrected", "occurred_at": "2020-02-02T00:00:00Z",
         "data": {"game_id": "wrong", "reason": "it was dora", "game": club_game("wrong", "ben dora")["data"]}},
        {"type": "player.renamed", "occurred_at": "2020-02-03T00:00:00Z",
         "data": {"player": "anna2", "new_player": "anna"}},
    )  # fmt: skip
    if cached:
        rebuild(ledger, ticking())
        more(ledger, club_game("later", "anna ben"))
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    assert findings(ledger) == []
    agree(ratings, ledger)
    db = ledger.url.render_as_string(hide_password=False)
    by_command = json.loads(ratings("games", "--player", "anna", "--limit", "0", "--format", "json", db=db).stdout)
    (counted,) = select(ledger, "SELECT count(*) AS games FROM live_participants WHERE player = 'anna'")
    assert counted["games"] == sum("voided" not in row for row in by_command["rows"])
    assert select(ledger, "SELECT player FROM live_participants WHERE game_id = 'wrong' ORDER BY 1") == [
        {"player": "ben"}, {"player": "dora"}
    ]  # fmt: skip


@pytest.mark.slow_cases
def test_unusual_members_are_shown_whole(ledger_url: str, ratings: Ratings) -> None:
    """Members without a column of their own and extreme times are shown whole."""
    early = club_game("early", "anna ben") | {"occurred_at": "1969-12-31T23:59:59.999999Z"}
    late = club_game("far", "anna ben cleo", extra={"table": "7"}, city="Köln") | {
        "occurred_at": "2019-07-01T00:00:00.1Z"
    }
    late["data"]["participants"][0] |= {"score": "12.5", "seat": 3, "extra": {"colour": "red"}}
    ledger = fill(ledger_url, [ruleset(), early, late, club_game("low", "anna=ben", score_order="low", rated=False)])
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    agree(ratings, ledger)
    (row,) = select(ledger, "SELECT g.more, p.more AS his FROM live_games g JOIN live_participants p "
                            "ON p.game_id = g.game_id WHERE g.game_id = 'far' AND p.seat = 3")  # fmt: skip
    assert row == {"more": '{"extra":{"table":"7"}}', "his": '{"extra":{"colour":"red"}}'}


@pytest.mark.slow
def test_unchanged_blocks_are_left_alone(rebuilt_ledger: Ledger, ratings: Ratings) -> None:
    """With one more game at the end, all blocks but the last of each ladder are kept."""
    before = parts(rebuilt_ledger)
    more(rebuilt_ledger, club_game("new", "anna ben cleo", day=28))
    rebuild(rebuilt_ledger, ticking())
    after = parts(rebuilt_ledger)
    agree(ratings, rebuilt_ledger)
    last = {ladder: max(block for name, block in before if name == ladder) for ladder, _ in before}
    assert all(after[ladder, block] == before[ladder, block] for ladder, block in before if block < last[ladder])
    assert {block for ladder, block in after.keys() - before.keys() if not ladder} == {10}
    assert after[THREE, last[THREE]] != before[THREE, last[THREE]]
    assert {part: after[part] for part in after if part[0] == FIVE} == {
        part: before[part] for part in before if part[0] == FIVE
    }
    more(rebuilt_ledger, void("new"))
    rebuild(rebuilt_ledger, ticking())
    agree(ratings, rebuilt_ledger)


@pytest.mark.slow_cases
def test_rename_rewrites_only_its_blocks(ledger: Ledger, ratings: Ratings) -> None:
    """After a rename, only blocks of games that name the player are written again."""
    more(ledger, *(club_game(f"z-{n}", "uwe vera") for n in range(6)))
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    before = parts(ledger)
    more(ledger, {"type": "player.renamed", "occurred_at": "2020-02-03T00:00:00Z",
                  "data": {"player": "vera", "new_player": "vera-2"}})  # fmt: skip
    rebuild(ledger, ticking())
    agree(ratings, ledger)
    after = parts(ledger)
    assert all(after["", block] == before["", block] for block in range(10))
    assert after["", 11] != before["", 11]


@pytest.mark.slow_cases
def test_history_stays_until_dropped(ledger: Ledger, ratings: Ratings) -> None:
    """A rebuild keeps the history for SQL once it exists, until `keep_history=False` drops it."""
    rebuild(ledger, ticking())
    assert (changes_by_sql(ledger), games_by_sql(ledger), info(ledger)["history"]) == ({}, [], False)
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    rebuild(ledger, ticking())
    assert (agree(ratings, ledger) > 0, bool(info(ledger)["history"])) == (True, True)
    assert not rebuild(ledger, ticking(), options=RebuildOptions(keep_history=False)).history
    assert (changes_by_sql(ledger), games_by_sql(ledger), bool(info(ledger)["history"])) == ({}, [], False)
    assert not any(stored(ledger).values())
    assert not rebuild(ledger, ticking()).history
    assert findings(ledger) == []


@pytest.mark.slow_cases
def test_partial_rebuild_keeps_all_ladders(
    rebuilt_ledger: Ledger,
) -> None:
    """Rebuilding some ladders keeps the others, and the games of the generation."""
    before, games = changes_by_sql(rebuilt_ledger), games_by_sql(rebuilt_ledger)
    more(rebuilt_ledger, club_game("late", "emil anna ben", day=1))
    rebuild(rebuilt_ledger, ticking(), [ALL])
    after = changes_by_sql(rebuilt_ledger)
    assert after.keys() == before.keys() == {ALL, THREE, FIVE, "other/all"}
    assert {name for name in after if after[name] != before[name]} == {ALL}
    assert after[ALL] == changes_by_replay(rebuilt_ledger)[ALL]
    assert (games_by_sql(rebuilt_ledger), info(rebuilt_ledger)["position"]) == (games, 32)
    assert findings(rebuilt_ledger) == []


@pytest.mark.slow_cases
def test_partial_history_is_refused(ledger: Ledger, ratings: Ratings) -> None:
    """Keeping the history of some ladders is refused while the others have none."""
    rebuild(ledger, ticking())
    with pytest.raises(HistoryMissing, match="first run: ratings rebuild --history"):
        rebuild(ledger, ticking(), [ALL], RebuildOptions(keep_history=True))
    db = ledger.url.render_as_string(hide_password=False)
    told = ratings("rebuild", ALL, "--history", db=db)
    assert (told.exit_code, told.stdout, "ratings rebuild --history" in told.stderr) == (2, "", True)
    assert info(ledger)["generation"] == 1


@pytest.mark.slow_cases
def test_failed_ladder_keeps_its_changes(rebuilt_ledger: Ledger) -> None:
    """A ladder whose rule fails in a rebuild keeps its previous changes."""
    before = changes_by_sql(rebuilt_ledger)
    more(
        rebuilt_ledger,
        *(adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)),
        club_game("last", "anna ben cleo"),
    )
    done = rebuild(rebuilt_ledger, ticking())
    assert [failure.ladder for failure in done.failures] == [ALL]
    after = changes_by_sql(rebuilt_ledger)
    assert after[ALL] == before[ALL]
    assert after[THREE] == changes_by_replay(rebuilt_ledger, [THREE])[THREE] != before[THREE]
    assert [one for one in findings(rebuilt_ledger) if "changes" in one or "games" in one] == []


@pytest.mark.slow_cases
def test_failed_ladder_may_have_no_history(
    ledger: Ledger,
) -> None:
    """A ladder that fails when history is first kept has none, and that is no finding."""
    rebuild(ledger, ticking())
    more(ledger, *(adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)))
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    assert changes_by_sql(ledger).keys() == {THREE, FIVE, "other/all"}
    assert [one for one in findings(ledger) if "changes" in one or "games" in one] == []


@pytest.mark.slow
def test_rollback_hides_later_changes(rebuilt_ledger: Ledger, ratings: Ratings) -> None:
    """After a rollback no changes of another generation show, and the next rebuild has them."""
    ledger = rebuilt_ledger
    more(ledger, club_game("late-0", "emil anna ben", day=1))
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    more(ledger, club_game("late-1", "emil anna ben", day=1))
    generations.roll_back(ledger)
    assert (changes_by_sql(ledger), games_by_sql(ledger), bool(info(ledger)["history"])) == ({}, [], False)
    assert findings(ledger) == []
    assert not rebuild(ledger, ticking(), [ALL]).history
    assert changes_by_sql(ledger) == {}
    assert rebuild(ledger, ticking()).history
    agree(ratings, ledger)


@pytest.mark.slow
def test_one_and_many_processes_agree(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process and several keep the same history."""
    ledger = fill(ledger_url, [ruleset(), *random_games(2, 30, [*PLAYERS, *"fghijk"], most=8)])
    monkeypatch.setattr(computing, "FORKING_COST", 0)
    found = []
    for cores in (1, 3):
        rebuild(ledger, ticking(), options=RebuildOptions(cores=cores, check=True, keep_history=True))
        found.append((changes_by_sql(ledger), games_by_sql(ledger)))
    assert found[0] == found[1]


@pytest.mark.slow_cases
def test_checked_rebuild_repairs_rows(rebuilt_ledger: Ledger) -> None:
    """A checked rebuild rewrites rows that were changed in the store."""
    with rebuilt_ledger.writing() as connection:
        connection.exec_driver_sql("UPDATE history_changes SET before = before + 1")
        connection.exec_driver_sql("UPDATE history_participants SET player = 'eve'")
    rebuild(rebuilt_ledger, ticking())
    assert findings(rebuilt_ledger)
    rebuild(rebuilt_ledger, ticking(), options=RebuildOptions(check=True))
    assert findings(rebuilt_ledger) == []


@pytest.mark.slow
def test_cut_off_rebuild_leaves_nothing(
    rebuilt_ledger: Ledger, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """A rebuild cut off anywhere changes nothing for readers, and the next one cleans up.

    It is tried at many transactions, each of which could be the last.
    """
    more(rebuilt_ledger, club_game("late", "emil anna ben", day=1))
    before, insert_rows, left = changes_by_sql(rebuilt_ledger), generations.insert_rows, 0

    class CutOff(Exception):
        pass

    def at_most(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise CutOff
        insert_rows(*arguments)

    monkeypatch.setattr(generations, "insert_rows", at_most)
    cut_off = 0
    while True:
        left = cut_off
        try:
            rebuild(rebuilt_ledger, ticking())
            break
        except CutOff:
            assert changes_by_sql(rebuilt_ledger) == before
            cut_off += 1 if at_length else 29
    assert cut_off > 50
    agree(ratings, rebuilt_ledger)
    named = {row["part"] for row in select(rebuilt_ledger, "SELECT part FROM history_parts")}
    for name in TABLES[1:]:
        assert {row["part"] for row in select(rebuilt_ledger, f"SELECT DISTINCT part FROM {name}")} <= named


@pytest.mark.slow_cases
def test_vanished_rows_stop_promotion(rebuilt_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """When rows vanish while they are written, nothing is promoted."""
    more(rebuilt_ledger, club_game("late", "emil anna ben", day=1))
    before = changes_by_sql(rebuilt_ledger)
    write_games = sql_history.write_games

    def and_lose_one(keeping: Any, *arguments: Any) -> None:
        write_games(keeping, *arguments)
        with rebuilt_ledger.writing() as connection:
            last = "(SELECT max(part) FROM history_changes)"
            connection.exec_driver_sql(f"DELETE FROM history_changes WHERE part = {last}")

    monkeypatch.setattr(sql_history, "write_games", and_lose_one)
    with pytest.raises(LockLost, match="rows of changes and games; nothing was promoted"):
        rebuild(rebuilt_ledger, ticking())
    assert changes_by_sql(rebuilt_ledger) == before


@pytest.mark.slow_cases
def test_promotion_during_verify_is_no_finding(rebuilt_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation promoted during `verify` is compared in turn and gives no false alarm.

    The rebuild takes away the history while it is being compared; then that of the new one is compared.
    """
    more(rebuilt_ledger, club_game("late", "emil anna ben", day=1))
    differing, rebuilt = sql_history.find_change_difference, []

    def and_rebuild(*arguments: Any) -> str | None:
        if not rebuilt:
            rebuilt.append(rebuild(rebuilt_ledger, ticking()))
        return differing(*arguments)

    monkeypatch.setattr(sql_history, "find_change_difference", and_rebuild)
    assert findings(rebuilt_ledger) == []
    assert rebuilt


@pytest.mark.slow
def test_rebuild_says_how_much_was_kept(ledger: Ledger, ratings: Ratings) -> None:
    """A rebuild with history says how many changes it kept for SQL."""
    db = ledger.url.render_as_string(hide_password=False)
    done = ratings("rebuild", "--history", db=db)
    assert done.stdout.endswith(f"; {agree(ratings, ledger)} changes kept for SQL\n")
    assert json.loads(ratings("rebuild", "--format", "json", db=db).stdout)["changes"] == agree(ratings, ledger)
    assert "changes" not in json.loads(ratings("rebuild", "--no-history", "--format", "json", db=db).stdout)
    told = ratings("rebuild", "--rollback", "--history", db=db)
    assert (told.exit_code, "--history" in told.stderr) == (2, True)
