"""Generations of standings: written beside the live one, promoted in one step, and checked against a replay."""

import json

import pytest
from histories import (
    build_club_game,
    build_ruleset_event,
    build_stream,
    draw_games,
    fill,
    load_facts,
    rank_stream,
)
from own_rules import load_built_in_rule, substitute_rule
from rebuilds import act_before_promotion, keep_rebuilds_out
from sqlalchemy import text

PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]


@pytest.fixture
def ledger(ledger_url):
    """Return a ledger with the games of five players."""
    return fill(ledger_url, [build_ruleset_event(), *draw_games(1, 30, PLAYERS)])


@pytest.fixture
def rebuild(ledger_url, ratings):
    """Return a function that rebuilds the ledger and returns the result that the command prints."""
    return lambda *options: json.loads(ratings("rebuild", *options, "--format", "json", db=ledger_url).stdout)


def load_rows(ledger, ladder="club-catan-elo/all"):
    """Return the rows of the documented view."""
    query = text("SELECT rank, player, points_units, games FROM live_standings WHERE ladder = :ladder ORDER BY ordinal")
    with ledger.reading() as connection:
        return [tuple(row) for row in connection.execute(query, {"ladder": ladder})]


def replay_rows(ledger, ladder="club-catan-elo/all"):
    """Return the rows of a ladder from a replay."""
    stream = build_stream(load_facts(ledger), ladder)
    return [(r.rank, r.player, r.points, r.games) for r in rank_stream(stream).rows]


def load_builds(ledger):
    """Return (generation, build, position) of each ladder of the live generation."""
    query = "SELECT ladder, generation, build, position FROM generation_ladders JOIN live_generation USING (generation)"
    with ledger.reading() as connection:
        return {row[0]: tuple(row[1:]) for row in connection.execute(text(query))}


def test_rebuild_stores_the_replayed_standings(ratings, ledger_url, ledger, rebuild):
    """A rebuild stores the standings of a replay, with its position and chain hash."""
    result = rebuild()
    assert (result["generation"], result["position"], result["failures"]) == (1, 31, [])
    assert load_rows(ledger) == replay_rows(ledger)
    assert load_builds(ledger) == {f"club-catan-elo/{band}": (1, 1, 31) for band in ("all", "3-4", "5-6")}
    with ledger.reading() as connection:
        assert connection.execute(text("SELECT head FROM live_info")).scalar() == f"31:{result['chain_hash']}"
    assert ratings("verify", db=ledger_url) == (0, "", "")


def test_empty_ledger_rebuilds_to_no_ladders(rebuild):
    """A rebuild of an empty ledger makes a generation without ladders."""
    result = rebuild()
    assert (result["generation"], result["ladders"]) == (1, 0)


def test_view_shows_points_not_units(ledger, rebuild):
    """The view of live standings has points, which are the stored units divided by the scale."""
    rebuild()
    with ledger.reading() as connection:
        units, scale, points = connection.execute(
            text("SELECT points_units, scale, points FROM live_standings LIMIT 1")
        ).one()
    assert float(points) == pytest.approx(units / scale)


@pytest.mark.slow_cases
def test_only_the_previous_generation_is_kept(ledger_url, ledger, rebuild):
    """A rebuild keeps the previous generation and the builds that it uses, and deletes older ones."""
    for number in range(4):
        rebuild()
        fill(ledger_url, [build_club_game(f"more-{number}", "anna ben")])
    with ledger.reading() as connection:
        generation_numbers = list(
            connection.execute(text("SELECT generation FROM generations ORDER BY generation")).scalars()
        )
        builds = list(
            connection.execute(text("SELECT DISTINCT build FROM generation_standings ORDER BY build")).scalars()
        )
    # the ladders without games of two players still use the first build
    assert generation_numbers == builds == [1, 3, 4]


def test_rollback_passes_over_an_unfinished_generation(ledger_url, ledger, rebuild):
    """A generation whose deletion was interrupted is marked as unfinished, and a rollback skips it."""
    for day in (1, 2, 3):
        fill(ledger_url, [build_club_game(f"day-{day}", "anna ben", day=day)])
        rebuild("--keep", 3)
    with ledger.reading() as connection:
        oldest, middle, newest = connection.execute(
            text("SELECT generation FROM generations ORDER BY generation")
        ).scalars()
    with ledger.writing() as connection:
        connection.execute(
            text("UPDATE generations SET finished_at = NULL WHERE generation = :middle"), {"middle": middle}
        )
    result = rebuild("--rollback")
    assert (result["given_up"], result["generation"]) == (newest, oldest)


def interrupt():
    """Interrupt the process as Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.slow_cases
def test_interrupted_rebuild_keeps_old_generation(ledger_url, ledger, monkeypatch, ratings, rebuild):
    """Readers see the old generation until the pointer moves to the new one.

    If a rebuild stops before its promotion, the next rebuild removes all of it.
    """
    rebuild()
    before = load_rows(ledger)
    fill(ledger_url, [build_club_game("late", "emil anna", day=1)])
    with monkeypatch.context() as patch:
        act_before_promotion(patch, interrupt)
        assert ratings("rebuild", db=ledger_url).exit_code == 130
    assert load_rows(ledger) == before
    assert ratings("verify", db=ledger_url) == (0, "", "")
    rebuild()
    assert load_rows(ledger) == replay_rows(ledger) != before
    with ledger.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM generations WHERE finished_at IS NULL")).scalar() == 0


def test_failing_rule_keeps_its_old_standings(ledger_url, ledger, monkeypatch, rebuild):
    """Ladders with a failing rule keep their old standings, and the others are rebuilt."""
    rebuild()
    before = load_rows(ledger), load_rows(ledger, "club-catan-elo/3-4")
    fill(ledger_url, [build_club_game("bad", "anna ben cleo dora emil", day=28)])
    elo = load_built_in_rule("pairwise-elo/1")

    def score_failing_at_five(n, points, columns, constants, table, change):
        if n == 5:
            raise ZeroDivisionError("five is too many")
        return elo.score(n, points, columns, constants, table, change)

    substitute_rule(monkeypatch, elo._replace(score=score_failing_at_five))
    result = rebuild()
    assert {failure["ladder"] for failure in result["failures"]} == {"club-catan-elo/all", "club-catan-elo/5-6"}
    assert "five is too many" in result["failures"][0]["message"]
    assert (load_rows(ledger), load_rows(ledger, "club-catan-elo/3-4")) == before
    ladders = load_builds(ledger)
    assert ladders["club-catan-elo/all"] == (2, 1, 31)
    assert ladders["club-catan-elo/3-4"] == (2, 2, 32)


def test_unbalanced_rule_fails(ledger, monkeypatch, rebuild):
    """A rule that gives more points than it takes fails, because the books do not balance."""
    elo = load_built_in_rule("pairwise-elo/1")

    def score_generously(n, points, columns, constants, table, change):
        change[0] = 5
        for i in range(1, n):
            change[i] = 0
        return 0

    substitute_rule(monkeypatch, elo._replace(score=score_generously))
    assert "books do not balance" in rebuild()["failures"][0]["message"]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE generation_standings SET points = points + 1 WHERE ordinal = 1",
        "DELETE FROM generation_standings WHERE ordinal = 2",
        "UPDATE generation_ladders SET digest = 'sha256:0' WHERE ladder = 'club-catan-elo/all'",
        "DELETE FROM generation_ladders WHERE ladder = 'club-catan-elo/all'",
        "UPDATE generations SET position = 3",
    ],
)
def test_verify_finds_altered_standings(ratings, ledger_url, ledger, edit, rebuild):
    """`verify` finds stored standings that were changed, removed or given another position."""
    rebuild()
    with ledger.writing() as connection:
        connection.execute(text(edit))
    result = ratings("verify", db=ledger_url)
    assert result.exit_code == 1
    assert "standings" in result.stdout


def test_concurrent_rebuild_is_rejected(ratings, ledger_url, ledger, rebuild):
    """A second rebuild at the same time reports the first and does nothing."""
    with keep_rebuilds_out(ledger_url):
        result = ratings("rebuild", db=ledger_url)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "another rebuild" in result.stderr


def test_rebuild_restores_emptied_tables(ledger, rebuild):
    """After all derived tables are emptied, a rebuild restores the same standings."""
    rebuild()
    before = load_rows(ledger)
    with ledger.writing() as connection:
        for table in ("live_generation", "generation_standings", "generation_ladders", "generations"):
            connection.execute(text(f"DELETE FROM {table}"))
    rebuild()
    assert load_rows(ledger) == before
