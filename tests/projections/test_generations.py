"""Generations: written beside the live ones, promoted in one step, checked against a replay."""

import pytest
from histories import club_game, facts_of, fill, random_games, ruleset, standings_of, stream_of, ticking
from sqlalchemy import text

from ratings_ledger import AlreadyRunning
from ratings_ledger.projections.rulesets.registry import find_rule
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.generations import list_ladder_rows, read_live_generation
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock
from ratings_ledger.projections.stored.rebuilding import RebuildOptions, rebuild
from ratings_ledger.projections.stored.verification import verify_standings

PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]


@pytest.fixture
def ledger(ledger_url):
    return fill(ledger_url, [ruleset(), *random_games(1, 30, PLAYERS)])


def stored(ledger, ladder="club-catan-elo/all"):
    """Rows of the documented view."""
    query = text("SELECT rank, player, points_units, games FROM live_standings WHERE ladder = :ladder ORDER BY ordinal")
    with ledger.reading() as connection:
        return [tuple(row) for row in connection.execute(query, {"ladder": ladder})]


def replayed(ledger, ladder="club-catan-elo/all"):
    stream = stream_of(facts_of(ledger), ladder)
    return [(r.rank, r.player, r.points, r.games) for r in standings_of(stream).rows]


def findings(ledger):
    with ledger.reading() as connection:
        return list(verify_standings(connection))


def test_rebuild_stores_the_replayed_standings(ledger):
    """A rebuild stores what the replay gives and names its position and chain hash."""
    done = rebuild(ledger, ticking())
    assert (done.generation, done.position, done.failures) == (1, 31, [])
    assert stored(ledger) == replayed(ledger)
    with ledger.reading() as connection:
        assert {row.ladder for row in list_ladder_rows(connection, read_live_generation(connection).generation)} == {
            f"club-catan-elo/{b}" for b in ("all", "3-4", "5-6")
        }
        assert bytes(read_live_generation(connection).chain_hash).hex() == done.chain_hash
    assert findings(ledger) == []


def test_empty_ledger_rebuilds_to_no_ladders(ledger_url):
    """Rebuilding an empty ledger gives a generation without ladders."""
    assert rebuild(fill(ledger_url, []), ticking()).ladders == 0


def test_view_shows_points_not_units(ledger):
    """The live standings view shows points, which are the stored units divided by the scale."""
    rebuild(ledger, ticking())
    with ledger.reading() as connection:
        units, scale, points = connection.execute(
            text("SELECT points_units, scale, points FROM live_standings LIMIT 1")
        ).one()
    assert float(points) == pytest.approx(units / scale)


@pytest.mark.slow_cases
def test_only_the_previous_generation_is_kept(ledger_url, ledger):
    """A rebuild keeps the previous generation and the builds that it uses, and drops older ones."""
    for day in (1, 2, 3, 4):
        rebuild(ledger, ticking())
        fill(ledger_url, [club_game(f"more-{day}", "anna ben")])
    with ledger.reading() as connection:
        kept = list(connection.execute(text("SELECT generation FROM generations ORDER BY generation")).scalars())
        builds = list(
            connection.execute(text("SELECT DISTINCT build FROM generation_standings ORDER BY build")).scalars()
        )
    assert kept == builds == [1, 3, 4]


def test_rollback_passes_over_an_unfinished_generation(ledger_url, ledger):
    """A generation whose deletion was interrupted is marked as unfinished, and no rollback goes back to it."""
    for day in (1, 2, 3):
        fill(ledger_url, [club_game(f"day-{day}", "anna ben", day=day)])
        rebuild(ledger, ticking(), options=RebuildOptions(keep=3))
    with ledger.reading() as connection:
        oldest, middle, newest = connection.execute(
            text("SELECT generation FROM generations ORDER BY generation")
        ).scalars()
    with ledger.writing() as connection:
        connection.execute(
            text("UPDATE generations SET finished_at = NULL WHERE generation = :middle"), {"middle": middle}
        )
    done = generations.roll_back(ledger)
    assert (done.given_up, done.generation) == (newest, oldest)


@pytest.mark.slow_cases
def test_interrupted_rebuild_keeps_old_generation(ledger_url, ledger, monkeypatch):
    """Readers see the old generation until the pointer moves to the new one.

    If a rebuild stops before promotion, the next one leaves nothing of it behind.
    """
    rebuild(ledger, ticking())
    before = stored(ledger)
    fill(ledger_url, [club_game("late", "emil anna", day=1)])
    with monkeypatch.context() as patch:
        patch.setattr(generations, "promote", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            rebuild(ledger, ticking())
    assert stored(ledger) == before
    assert findings(ledger) == []
    rebuild(ledger, ticking())
    assert stored(ledger) == replayed(ledger) != before
    with ledger.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM generations WHERE finished_at IS NULL")).scalar() == 0


def test_failing_rule_keeps_its_old_standings(ledger_url, ledger, monkeypatch):
    """Ladders whose rule fails keep their old standings, while the others are rebuilt."""
    rebuild(ledger, ticking())
    before = stored(ledger), stored(ledger, "club-catan-elo/3-4")
    fill(ledger_url, [club_game("bad", "anna ben cleo dora emil", day=28)])
    found = find_rule("pairwise-elo/1")

    def broken(n, points, columns, constants, table, change):
        if n == 5:
            raise ZeroDivisionError("five is too many")
        return found.score(n, points, columns, constants, table, change)

    monkeypatch.setitem(find_rule.__wrapped__.__globals__, "BUILT_IN", {})
    monkeypatch.setattr(
        "ratings_ledger.projections.rulesets.versions.find_rule", lambda name: found._replace(score=broken)
    )
    done = rebuild(ledger, ticking())
    assert {failure.ladder for failure in done.failures} == {"club-catan-elo/all", "club-catan-elo/5-6"}
    assert "five is too many" in done.failures[0].message
    assert (stored(ledger), stored(ledger, "club-catan-elo/3-4")) == before
    with ledger.reading() as connection:
        ladders = {
            row.ladder: (row.generation, row.build, row.position)
            for row in list_ladder_rows(connection, read_live_generation(connection).generation)
        }
    assert ladders["club-catan-elo/all"] == (2, 1, 31)
    assert ladders["club-catan-elo/3-4"] == (2, 2, 32)


def test_unbalanced_rule_is_stopped(ledger, monkeypatch):
    """A rule that hands out more points than it takes fails because the books do not balance."""
    found = find_rule("pairwise-elo/1")

    def generous(n, points, columns, constants, table, change):
        change[0] = 5
        for i in range(1, n):
            change[i] = 0
        return 0

    monkeypatch.setattr(
        "ratings_ledger.projections.rulesets.versions.find_rule", lambda name: found._replace(score=generous)
    )
    assert "books do not balance" in rebuild(ledger, ticking()).failures[0].message


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
def test_verify_finds_changed_standings(ratings, ledger_url, ledger, edit):
    """`verify` finds stored standings that were changed, removed or given another position."""
    rebuild(ledger, ticking())
    with ledger.writing() as connection:
        connection.execute(text(edit))
    result = ratings("verify", db=ledger_url)
    assert result.exit_code == 1
    assert "standings" in result.stdout


def test_concurrent_rebuild_is_refused(ratings, ledger_url, ledger):
    """A second rebuild at the same time says that one is running and does nothing."""
    with hold_rebuild_lock(ledger):
        with pytest.raises(AlreadyRunning):
            rebuild(ledger, ticking())
        result = ratings("rebuild", db=ledger_url)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "another rebuild" in result.stderr


def test_derived_tables_can_be_rebuilt(ledger):
    """All derived tables can be emptied, and a rebuild restores the same standings."""
    rebuild(ledger, ticking())
    before = stored(ledger)
    with ledger.writing() as connection:
        for table in ("live_generation", "generation_standings", "generation_ladders", "generations"):
            connection.execute(text(f"DELETE FROM {table}"))
    rebuild(ledger, ticking())
    assert stored(ledger) == before
