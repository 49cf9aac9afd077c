"""Ladders that nothing recorded since can have changed keep their rows when all are rebuilt."""

import pytest
from catan_years import year_of
from histories import START, adjustment, club_game, facts_of, fill, random_games, ruleset, ticking
from sqlalchemy import text

from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored import generations, rebuilding
from ratings_ledger.projections.stored.generations import (
    list_generations,
    list_ladder_ages,
    list_ladder_rows,
    read_live_generation,
    read_standings,
)
from ratings_ledger.projections.stored.rebuilding import RebuildOptions, rebuild
from ratings_ledger.projections.stored.verification import verify_standings

PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
ALL, THREE, FIVE, SEVEN = (f"club-catan-elo/{band}" for band in ("all", "3-4", "5-6", "7-8"))
GO = "elo-go/all"
EVERY = {ALL, THREE, FIVE, GO}


def event(type_name, **data):
    return {"type": type_name, "occurred_at": "2020-02-01T12:00:00Z", "data": data}


def rules_of_go(version="1", **params):
    """A second ruleset, which scores another game."""
    published = ruleset()
    own = {"id": "elo-go", "version": version, "scope": {**published["data"]["scope"], "game": ["go"]}}
    own |= {"params": published["data"]["params"] | params}
    own |= {"partition": {"by": ["players"], "bands": ["all"]}}
    return published | {"data": published["data"] | own, "id": f"go {version}"}


@pytest.fixture
def ledger(ledger_url):
    """Four ladders of two games, rebuilt once."""
    events = [ruleset(), rules_of_go(), *random_games(1, 30, PLAYERS), club_game("go-1", "anna ben", game="go")]
    filled = fill(
        ledger_url, [*events, club_game("three", "anna ben cleo"), club_game("five", "anna ben cleo dora emil")]
    )
    rebuild(filled, ticking())
    return filled


def more(ledger, *events):
    fill(ledger.url.render_as_string(hide_password=False), events)


def alter(ledger, statement, **values):
    with ledger.writing() as connection:
        assert connection.execute(text(statement), values).rowcount


def named(ledger):
    """The rows of the live generation's ladders, by name."""
    with ledger.reading() as connection:
        return {row.ladder: row for row in list_ladder_rows(connection, read_live_generation(connection).generation)}


def built_last(ledger):
    """The ladders that the live generation's own rebuild computed."""
    with ledger.reading() as connection:
        generation = read_live_generation(connection).generation
    return {ladder for ladder, row in named(ledger).items() if row.build == generation}


def findings(ledger: Ledger) -> list[str]:
    with ledger.reading() as connection:
        return [str(finding) for finding in verify_standings(connection)]


def agrees(ledger):
    """Whether all that is stored is as a replay has it: no ladder more or less, and every row."""
    ladders = Ladders(facts_of(ledger))
    with ledger.reading() as connection:
        rows = {name: read_standings(connection, row.build, name) for name, row in named(ledger).items()}
    return findings(ledger) == [] and all(ladders.standings(name).rows == rows[name] for name in rows)


def test_unchanged_ladders_keep_their_rows(ledger):
    """A ladder without a new game names its old build, at the new position and time."""
    before = named(ledger)
    more(ledger, club_game("late", "anna ben cleo", day=1))
    done = rebuild(ledger, lambda: START + 5_000_000_000)
    after = named(ledger)
    assert (done.ladders, done.unchanged, built_last(ledger)) == (4, 0, {ALL, THREE})
    assert done.rows == sum(row.players for row in after.values())
    for ladder in (FIVE, GO):
        new = {"generation": 2, "position": done.position, "built_at": START + 5_000_000_000}
        new |= {"chain_hash": after[ladder].chain_hash}
        assert after[ladder]._asdict() == before[ladder]._asdict() | new
        assert bytes(after[ladder].chain_hash).hex() == done.chain_hash
    with ledger.reading() as connection:
        assert {(row.position, row.built_at) for row in list_ladder_ages(connection, 2)} == {
            (done.position, new["built_at"])
        }
        assert [(one.ladders, one.built) for one in list_generations(connection, 0)] == [(4, 2), (4, 4)]
        shown = connection.execute(text("SELECT ladder, position FROM live_ladders")).all()
        assert {tuple(row) for row in shown} == {(ladder, done.position) for ladder in EVERY}
        counted = text("SELECT ladder, count(*) FROM live_standings GROUP BY ladder")
        assert dict(connection.execute(counted).all()) == {name: row.players for name, row in after.items()}
    assert agrees(ledger)


def test_nothing_new_keeps_everything(ledger):
    """A rebuild of an unchanged log computes nothing, and its rows outlive the rebuilds that wrote them."""
    for _ in range(4):
        assert rebuild(ledger, ticking()).promoted
    assert built_last(ledger) == set()
    assert {row.build for row in named(ledger).values()} == {1}
    with ledger.reading() as connection:
        positions = dict(connection.execute(text("SELECT generation, position FROM generations")).all())
    assert positions == dict.fromkeys((1, 4, 5), next(iter(positions.values())))
    assert agrees(ledger)


DECIDED = {"reason": "misread"}
CHANGES = {
    "a game": ([club_game("late", "anna ben cleo dora emil")], {ALL, FIVE}),
    "a new ladder": ([club_game("big", "a b c d e f g h")], {ALL, SEVEN}),
    "another game": ([club_game("go-2", "cleo ben", game="go")], {GO}),
    "a correction": ([event("game.corrected", game_id="three", game=
    club_game("three", "cleo ben anna")["data"], **DECIDED)],
                     {ALL, THREE}),
    "a correction that moves it": (
        [event("game.corrected", game_id="three", game=
        club_game("three", "cleo ben anna dora emil")["data"], **DECIDED)],
        {ALL, THREE, FIVE}),
    "a correction of what was played": (
        [event("game.corrected", game_id="three", game=club_game("three", "cleo ben", game="go")["data"], **DECIDED)],
        {ALL, THREE, GO}),
    "a void": ([event("game.voided", game_id="five", **DECIDED)], {ALL, FIVE}),
    "an adjustment": ([adjustment(GO, "anna", "3", day=2)], {GO}),
    "a rename": ([event("player.renamed", player="emil", new_player="emilia", reason="married")], EVERY),
    "a rule": ([rules_of_go("2", k_total=32)], {GO}),
    "a withdrawal": ([rules_of_go("2", k_total=32), event("event.voided", id="go 2", **DECIDED)], EVERY),
    "a league": ([event("league.created", league="x", game="go", players_per_game=2)], EVERY),
}  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", CHANGES)
def test_changed_ladders_are_built(ledger, what):
    """Whatever is recorded, the ladders that it may change are built anew, and all are as a replay has them."""
    events, changed = CHANGES[what]
    more(ledger, *events)
    done = rebuild(ledger, ticking())
    assert (done.promoted, done.failures, built_last(ledger)) == (True, [], changed)
    assert agrees(ledger)
    more(ledger, club_game("after", "anna ben cleo"))
    rebuild(ledger, ticking())
    assert built_last(ledger) == {ALL, THREE}
    assert agrees(ledger)


def test_reinstated_game_changes_its_ladders(ledger):
    """A game that was voided when the ladders were stored, and counts again, is on its ladders."""
    more(ledger, event("game.voided", game_id="five", **DECIDED))
    rebuild(ledger, ticking())
    more(ledger, event("game.reinstated", game_id="five", **DECIDED))
    rebuild(ledger, ticking())
    assert built_last(ledger) == {ALL, FIVE}
    assert agrees(ledger)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_years_are_rebuilt_piece_by_piece(ledger_url, seed):
    """A year of months, annual lists, corrections, renames and rules: after each piece all is as a replay has it."""
    events, kept = [ruleset(), rules_of_go(), *random_games(seed, 20, PLAYERS), *year_of(seed)], 0
    step = max(len(events) // 12, 1)
    for start in range(0, len(events), step):
        ledger = fill(ledger_url, events[start : start + step])
        rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
        assert findings(ledger) == []
        kept += len(named(ledger).keys() - built_last(ledger))
    assert kept


@pytest.mark.slow_cases
@pytest.mark.parametrize("stage", ["copy_ladder_rows", "promote", "sweep_generations"])
def test_killed_rebuild_leaves_kept_rows(ledger, monkeypatch, stage):
    """A rebuild that is killed before it promotes changes nothing for readers, and the next one keeps the same rows."""

    class Killed(BaseException):
        pass

    def kill(*arguments, **options):
        raise Killed

    before = named(ledger)
    more(ledger, club_game("late", "anna ben cleo"))
    with monkeypatch.context() as patch:
        original = getattr(generations, stage)
        # a sweep comes first, when it begins
        sweeps = iter([original, kill]) if stage == "sweep_generations" else iter([kill])
        patch.setattr(generations, stage, lambda *given, **options: next(sweeps)(*given, **options))
        with pytest.raises(Killed):
            rebuild(ledger, ticking())
    if stage != "sweep_generations":
        assert named(ledger) == before
    rebuild(ledger, ticking())
    # what was promoted without a word about it is built anew
    build = 3 if stage == "sweep_generations" else 1
    assert {row.build for ladder, row in named(ledger).items() if ladder in (FIVE, GO)} == {build}
    assert agrees(ledger)


FORGED = {
    "points": "UPDATE generation_standings SET points = points + 1 WHERE ladder = :ladder AND ordinal = 1",
    "a digest": "UPDATE generation_ladders SET digest = 'x' WHERE ladder = :ladder AND generation = 2",
    "games": "UPDATE generation_ladders SET games = games + 1 WHERE ladder = :ladder AND generation = 2",
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", FORGED)
def test_altered_kept_rows_are_found_and_replaced(ledger, what, caplog):
    """`verify` finds altered rows that are kept; `rebuild --check` names and replaces them, as a rebuild by name."""
    more(ledger, club_game("late", "anna ben cleo"))
    rebuild(ledger, ticking())
    alter(ledger, FORGED[what], ladder=GO)
    assert any(GO in finding for finding in findings(ledger))
    assert rebuild(ledger, ticking(), options=RebuildOptions(check=True)).promoted
    assert [GO in line for line in caplog.messages if "differ from a replay; they are replaced" in line] == [True]
    assert findings(ledger) == []
    alter(ledger, FORGED["points"], ladder=GO)
    rebuild(ledger, ticking())
    assert any(GO in finding for finding in findings(ledger))
    rebuild(ledger, ticking(), [GO])
    assert findings(ledger) == []


def test_lost_rows_are_built_anew(ledger):
    """A ladder whose stored rows are not all there is not taken over, nor is one that claims to have no players."""
    alter(ledger, "DELETE FROM generation_standings WHERE ladder = :ladder AND ordinal = 1", ladder=GO)
    alter(ledger, "DELETE FROM generation_standings WHERE ladder = :ladder", ladder=FIVE)
    alter(ledger, "UPDATE generation_ladders SET players = 0 WHERE ladder = :ladder", ladder=FIVE)
    rebuild(ledger, ticking())
    assert built_last(ledger) == {GO, FIVE}
    assert agrees(ledger)


def test_rows_that_disagree_about_a_build_are_found(ledger):
    """`verify` finds a kept row that says something else about its build, or is older than it."""
    more(ledger, club_game("late", "anna ben cleo"))
    rebuild(ledger, ticking())
    with ledger.reading() as connection:
        assert generations.find_build_conflicts(connection, 2) == []
    alter(
        ledger, "UPDATE generation_ladders SET games = games + 1 WHERE ladder = :ladder AND generation = 2", ladder=GO
    )
    alter(ledger, "UPDATE generation_ladders SET position = 1 WHERE ladder = :ladder AND generation = 2", ladder=FIVE)
    with ledger.reading() as connection:
        assert generations.find_build_conflicts(connection, 2) == [FIVE, GO]


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", ["another program", "no run", "another history", "some ladders", "a failure"])
def test_everything_is_built_when_in_doubt(ledger, monkeypatch, what):
    """Rows are only taken over from a full rebuild by this program, in this history, without failures."""
    if what == "another program":
        monkeypatch.setattr(rebuilding, "program_digest", lambda: "another")
    elif what == "no run":
        alter(ledger, "DELETE FROM runs")
    elif what == "another history":
        alter(ledger, "UPDATE generations SET chain_hash = :hash", hash=b"x" * 32)
    elif what == "some ladders":
        rebuild(ledger, ticking(), [GO])
    else:
        more(ledger, *(adjustment(GO, "anna", "1000000000", day=1 + n) for n in range(12)))
        assert [failure.ladder for failure in rebuild(ledger, ticking()).failures] == [GO]
        done = rebuild(ledger, ticking())
        assert ([failure.ladder for failure in done.failures], done.unchanged) == ([GO], 1)
        assert named(ledger)[GO].position < named(ledger)[ALL].position == done.position
        assert {row.build for row in named(ledger).values()} == {1}
        return
    rebuild(ledger, ticking())
    assert built_last(ledger) == EVERY
    assert agrees(ledger)


def test_history_of_kept_ladders_is_named(ledger):
    """The changes of a ladder that is kept are those of its build; a history that begins is that of all ladders."""
    rebuild(ledger, ticking(), options=RebuildOptions(keep_history=True))
    assert built_last(ledger) == EVERY
    more(ledger, club_game("late", "anna ben cleo"))
    done = rebuild(ledger, ticking())
    with ledger.reading() as connection:
        changes = connection.execute(text("SELECT count(*) FROM live_changes")).scalar_one()
    assert (built_last(ledger), done.changes) == ({ALL, THREE}, changes)
    assert agrees(ledger)
