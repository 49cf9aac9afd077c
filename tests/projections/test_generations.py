"""Generations of standings: written beside the live one, promoted in one step, and checked against a replay."""

import pytest
from histories import (
    build_club_game,
    build_ruleset_event,
    build_stream,
    build_ticking_clock,
    draw_games,
    fill,
    load_facts,
    rank_stream,
)
from own_rules import load_built_in_rule, substitute_rule
from rebuilds import keep_rebuilds_out
from sqlalchemy import text

from ratings_ledger import AlreadyRunning
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.generations import list_ladder_rows, read_live_generation
from ratings_ledger.projections.stored.rebuilding import RebuildOptions, rebuild
from ratings_ledger.projections.stored.verification import verify_standings

PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]


@pytest.fixture
def ledger(ledger_url):
    """A ledger with the games of five players."""
    return fill(ledger_url, [build_ruleset_event(), *draw_games(1, 30, PLAYERS)])


def load_rows(ledger, ladder="club-catan-elo/all"):
    """Return the rows of the documented view."""
    query = text("SELECT rank, player, points_units, games FROM live_standings WHERE ladder = :ladder ORDER BY ordinal")
    with ledger.reading() as connection:
        return [tuple(row) for row in connection.execute(query, {"ladder": ladder})]


def replay_rows(ledger, ladder="club-catan-elo/all"):
    """Return the rows of a ladder from a replay."""
    stream = build_stream(load_facts(ledger), ladder)
    return [(r.rank, r.player, r.points, r.games) for r in rank_stream(stream).rows]


def list_findings(ledger):
    """Return the findings of `verify` about stored standings."""
    with ledger.reading() as connection:
        return list(verify_standings(connection))


def test_rebuild_stores_the_replayed_standings(ledger):
    """A rebuild stores the standings of a replay, with its position and chain hash."""
    result = rebuild(ledger, build_ticking_clock())
    assert (result.generation, result.position, result.failures) == (1, 31, [])
    assert load_rows(ledger) == replay_rows(ledger)
    with ledger.reading() as connection:
        assert {row.ladder for row in list_ladder_rows(connection, read_live_generation(connection).generation)} == {
            f"club-catan-elo/{b}" for b in ("all", "3-4", "5-6")
        }
        assert bytes(read_live_generation(connection).chain_hash).hex() == result.chain_hash
    assert list_findings(ledger) == []


def test_empty_ledger_rebuilds_to_no_ladders(ledger_url):
    """A rebuild of an empty ledger makes a generation without ladders."""
    assert rebuild(fill(ledger_url, []), build_ticking_clock()).ladders == 0


def test_view_shows_points_not_units(ledger):
    """The view of live standings has points, which are the stored units divided by the scale."""
    rebuild(ledger, build_ticking_clock())
    with ledger.reading() as connection:
        units, scale, points = connection.execute(
            text("SELECT points_units, scale, points FROM live_standings LIMIT 1")
        ).one()
    assert float(points) == pytest.approx(units / scale)


@pytest.mark.slow_cases
def test_only_the_previous_generation_is_kept(ledger_url, ledger):
    """A rebuild keeps the previous generation and the builds that it uses, and deletes older ones."""
    for day in (1, 2, 3, 4):
        rebuild(ledger, build_ticking_clock())
        fill(ledger_url, [build_club_game(f"more-{day}", "anna ben")])
    with ledger.reading() as connection:
        generation_numbers = list(
            connection.execute(text("SELECT generation FROM generations ORDER BY generation")).scalars()
        )
        builds = list(
            connection.execute(text("SELECT DISTINCT build FROM generation_standings ORDER BY build")).scalars()
        )
    assert generation_numbers == builds == [1, 3, 4]


def test_rollback_passes_over_an_unfinished_generation(ledger_url, ledger):
    """A generation whose deletion was interrupted is marked as unfinished, and a rollback skips it."""
    for day in (1, 2, 3):
        fill(ledger_url, [build_club_game(f"day-{day}", "anna ben", day=day)])
        rebuild(ledger, build_ticking_clock(), options=RebuildOptions(keep=3))
    with ledger.reading() as connection:
        oldest, middle, newest = connection.execute(
            text("SELECT generation FROM generations ORDER BY generation")
        ).scalars()
    with ledger.writing() as connection:
        connection.execute(
            text("UPDATE generations SET finished_at = NULL WHERE generation = :middle"), {"middle": middle}
        )
    result = generations.roll_back(ledger)
    assert (result.given_up, result.generation) == (newest, oldest)


@pytest.mark.slow_cases
def test_interrupted_rebuild_keeps_old_generation(ledger_url, ledger, monkeypatch):
    """Readers see the old generation until the pointer moves to the new one.

    If a rebuild stops before its promotion, the next rebuild removes all of it.
    """
    rebuild(ledger, build_ticking_clock())
    before = load_rows(ledger)
    fill(ledger_url, [build_club_game("late", "emil anna", day=1)])
    with monkeypatch.context() as patch:
        patch.setattr(generations, "promote", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            rebuild(ledger, build_ticking_clock())
    assert load_rows(ledger) == before
    assert list_findings(ledger) == []
    rebuild(ledger, build_ticking_clock())
    assert load_rows(ledger) == replay_rows(ledger) != before
    with ledger.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM generations WHERE finished_at IS NULL")).scalar() == 0


def test_failing_rule_keeps_its_old_standings(ledger_url, ledger, monkeypatch):
    """Ladders with a failing rule keep their old standings, and the others are rebuilt."""
    rebuild(ledger, build_ticking_clock())
    before = load_rows(ledger), load_rows(ledger, "club-catan-elo/3-4")
    fill(ledger_url, [build_club_game("bad", "anna ben cleo dora emil", day=28)])
    elo = load_built_in_rule("pairwise-elo/1")

    def score_failing_at_five(n, points, columns, constants, table, change):
        if n == 5:
            raise ZeroDivisionError("five is too many")
        return elo.score(n, points, columns, constants, table, change)

    substitute_rule(monkeypatch, elo._replace(score=score_failing_at_five))
    result = rebuild(ledger, build_ticking_clock())
    assert {failure.ladder for failure in result.failures} == {"club-catan-elo/all", "club-catan-elo/5-6"}
    assert "five is too many" in result.failures[0].message
    assert (load_rows(ledger), load_rows(ledger, "club-catan-elo/3-4")) == before
    with ledger.reading() as connection:
        ladders = {
            row.ladder: (row.generation, row.build, row.position)
            for row in list_ladder_rows(connection, read_live_generation(connection).generation)
        }
    assert ladders["club-catan-elo/all"] == (2, 1, 31)
    assert ladders["club-catan-elo/3-4"] == (2, 2, 32)


def test_unbalanced_rule_fails(ledger, monkeypatch):
    """A rule that gives more points than it takes fails, because the books do not balance."""
    elo = load_built_in_rule("pairwise-elo/1")

    def score_generously(n, points, columns, constants, table, change):
        change[0] = 5
        for i in range(1, n):
            change[i] = 0
        return 0

    substitute_rule(monkeypatch, elo._replace(score=score_generously))
    assert "books do not balance" in rebuild(ledger, build_ticking_clock()).failures[0].message


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
def test_verify_finds_altered_standings(ratings, ledger_url, ledger, edit):
    """`verify` finds stored standings that were changed, removed or given another position."""
    rebuild(ledger, build_ticking_clock())
    with ledger.writing() as connection:
        connection.execute(text(edit))
    result = ratings("verify", db=ledger_url)
    assert result.exit_code == 1
    assert "standings" in result.stdout


def test_concurrent_rebuild_is_rejected(ratings, ledger_url, ledger):
    """A second rebuild at the same time reports the first and does nothing."""
    with keep_rebuilds_out(ledger_url):
        with pytest.raises(AlreadyRunning):
            rebuild(ledger, build_ticking_clock())
        result = ratings("rebuild", db=ledger_url)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "another rebuild" in result.stderr


def test_rebuild_restores_emptied_tables(ledger):
    """After all derived tables are emptied, a rebuild restores the same standings."""
    rebuild(ledger, build_ticking_clock())
    before = load_rows(ledger)
    with ledger.writing() as connection:
        for table in ("live_generation", "generation_standings", "generation_ladders", "generations"):
            connection.execute(text(f"DELETE FROM {table}"))
    rebuild(ledger, build_ticking_clock())
    assert load_rows(ledger) == before
