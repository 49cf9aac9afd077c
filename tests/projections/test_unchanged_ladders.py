"""A full rebuild keeps the rows of ladders that no event since the last rebuild can have changed."""

import pytest
from catan_years import draw_year
from histories import (
    START_MICROSECONDS,
    build_adjustment,
    build_club_game,
    build_ruleset_event,
    build_ticking_clock,
    draw_games,
    fill,
    load_facts,
)
from sqlalchemy import text

from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored import changed_ladders, generations
from ratings_ledger.projections.stored.generations import (
    list_generations,
    list_ladder_ages,
    list_ladder_rows,
    read_live_generation,
    read_standings,
)
from ratings_ledger.projections.stored.rebuild_plan import RebuildOptions
from ratings_ledger.projections.stored.rebuilding import rebuild
from ratings_ledger.projections.stored.standings_checks import verify_standings

PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
ALL, THREE, FIVE, SEVEN = (f"club-catan-elo/{band}" for band in ("all", "3-4", "5-6", "7-8"))
GO = "elo-go/all"
ALL_LADDERS = {ALL, THREE, FIVE, GO}


def build_event(type_name, **data):
    """Return an event."""
    return {"type": type_name, "occurred_at": "2020-02-01T12:00:00Z", "data": data}


def build_go_ruleset(version="1", **params):
    """Return a second ruleset, for another game."""
    published = build_ruleset_event()
    members = {"id": "elo-go", "version": version, "scope": {**published["data"]["scope"], "game": ["go"]}}
    members |= {"params": published["data"]["params"] | params}
    members |= {"partition": {"by": ["players"], "bands": ["all"]}}
    return published | {"data": published["data"] | members, "id": f"go {version}"}


@pytest.fixture
def ledger(ledger_url):
    """A ledger with four ladders of two games, rebuilt once."""
    events = [
        build_ruleset_event(),
        build_go_ruleset(),
        *draw_games(1, 30, PLAYERS),
        build_club_game("go-1", "anna ben", game="go"),
    ]
    filled_ledger = fill(
        ledger_url,
        [*events, build_club_game("three", "anna ben cleo"), build_club_game("five", "anna ben cleo dora emil")],
    )
    rebuild(filled_ledger, build_ticking_clock())
    return filled_ledger


def append(ledger, *events):
    """Append events to a ledger."""
    fill(ledger.url.render_as_string(hide_password=False), events)


def alter(ledger, statement, **values):
    """Run a statement that changes stored rows."""
    with ledger.writing() as connection:
        assert connection.execute(text(statement), values).rowcount


def load_ladder_rows(ledger):
    """Return the rows of the live generation's ladders, by name."""
    with ledger.reading() as connection:
        return {row.ladder: row for row in list_ladder_rows(connection, read_live_generation(connection).generation)}


def list_built_ladders(ledger):
    """Return the ladders that the live generation's own rebuild computed."""
    with ledger.reading() as connection:
        generation = read_live_generation(connection).generation
    return {ladder for ladder, row in load_ladder_rows(ledger).items() if row.build == generation}


def list_findings(ledger: Ledger) -> list[str]:
    """Return the findings of `verify` about stored standings."""
    with ledger.reading() as connection:
        return [str(finding) for finding in verify_standings(connection)]


def equals_replay(ledger):
    """Tell whether the stored ladders and rows equal those of a replay, without findings."""
    ladders = Ladders(load_facts(ledger))
    with ledger.reading() as connection:
        rows = {name: read_standings(connection, row.build, name) for name, row in load_ladder_rows(ledger).items()}
    return list_findings(ledger) == [] and all(ladders.standings(name).rows == rows[name] for name in rows)


def test_unchanged_ladders_keep_their_rows(ledger):
    """A ladder without a new game keeps its old build, at the new position and time."""
    before = load_ladder_rows(ledger)
    append(ledger, build_club_game("late", "anna ben cleo", day=1))
    result = rebuild(ledger, lambda: START_MICROSECONDS + 5_000_000_000)
    after = load_ladder_rows(ledger)
    assert (result.ladders, result.unchanged, list_built_ladders(ledger)) == (4, 0, {ALL, THREE})
    assert result.rows == sum(row.players for row in after.values())
    for ladder in (FIVE, GO):
        new = {"generation": 2, "position": result.position, "built_at": START_MICROSECONDS + 5_000_000_000}
        new |= {"chain_hash": after[ladder].chain_hash}
        assert after[ladder]._asdict() == before[ladder]._asdict() | new
        assert bytes(after[ladder].chain_hash).hex() == result.chain_hash
    with ledger.reading() as connection:
        assert {(row.position, row.built_at) for row in list_ladder_ages(connection, 2)} == {
            (result.position, new["built_at"])
        }
        assert [(entry.ladders, entry.built) for entry in list_generations(connection, 0)] == [(4, 2), (4, 4)]
        live_ladders = connection.execute(text("SELECT ladder, position FROM live_ladders")).all()
        assert {tuple(row) for row in live_ladders} == {(ladder, result.position) for ladder in ALL_LADDERS}
        counted = text("SELECT ladder, count(*) FROM live_standings GROUP BY ladder")
        assert dict(connection.execute(counted).all()) == {name: row.players for name, row in after.items()}
    assert equals_replay(ledger)


def test_rebuild_of_unchanged_log_computes_nothing(ledger):
    """A rebuild of an unchanged log computes nothing; its rows outlive the rebuilds that wrote them."""
    for _ in range(4):
        assert rebuild(ledger, build_ticking_clock()).promoted
    assert list_built_ladders(ledger) == set()
    assert {row.build for row in load_ladder_rows(ledger).values()} == {1}
    with ledger.reading() as connection:
        positions = dict(connection.execute(text("SELECT generation, position FROM generations")).all())
    assert positions == dict.fromkeys((1, 4, 5), next(iter(positions.values())))
    assert equals_replay(ledger)


REASON = {"reason": "misread"}
CHANGES = {
    "a game": ([build_club_game("late", "anna ben cleo dora emil")], {ALL, FIVE}),
    "a new ladder": ([build_club_game("big", "a b c d e f g h")], {ALL, SEVEN}),
    "another game": ([build_club_game("go-2", "cleo ben", game="go")], {GO}),
    "a correction": ([build_event("game.corrected", game_id="three", game=
    build_club_game("three", "cleo ben anna")["data"], **REASON)],
                     {ALL, THREE}),
    "a correction that moves it": (
        [build_event("game.corrected", game_id="three", game=
        build_club_game("three", "cleo ben anna dora emil")["data"], **REASON)],
        {ALL, THREE, FIVE}),
    "a correction of the kind of game": (
        [build_event("game.corrected", game_id="three", game=build_club_game("three", "cleo ben", game="go")["data"],
               **REASON)],
        {ALL, THREE, GO}),
    "a void": ([build_event("game.voided", game_id="five", **REASON)], {ALL, FIVE}),
    "an adjustment": ([build_adjustment(GO, "anna", "3", day=2)], {GO}),
    "a rename": ([build_event("player.renamed", player="emil", new_player="emilia", reason="married")], ALL_LADDERS),
    "a rule": ([build_go_ruleset("2", k_total=32)], {GO}),
    "a withdrawal": (
        [build_go_ruleset("2", k_total=32), build_event("event.voided", id="go 2", **REASON)], ALL_LADDERS),
    "a league": ([build_event("league.created", league="x", game="go", players_per_game=2)], ALL_LADDERS),
}  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize("change", CHANGES)
def test_rebuild_computes_exactly_the_ladders_that_may_change(ledger, change):
    """For every kind of event, a rebuild computes exactly the ladders that it may change; all equal a replay."""
    events, changed = CHANGES[change]
    append(ledger, *events)
    result = rebuild(ledger, build_ticking_clock())
    assert (result.promoted, result.failures, list_built_ladders(ledger)) == (True, [], changed)
    assert equals_replay(ledger)
    append(ledger, build_club_game("after", "anna ben cleo"))
    rebuild(ledger, build_ticking_clock())
    assert list_built_ladders(ledger) == {ALL, THREE}
    assert equals_replay(ledger)


def test_reinstated_game_changes_its_ladders(ledger):
    """A game that was void at the last rebuild and is reinstated is on its ladders again."""
    append(ledger, build_event("game.voided", game_id="five", **REASON))
    rebuild(ledger, build_ticking_clock())
    append(ledger, build_event("game.reinstated", game_id="five", **REASON))
    rebuild(ledger, build_ticking_clock())
    assert list_built_ladders(ledger) == {ALL, FIVE}
    assert equals_replay(ledger)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_year_rebuilt_in_pieces_has_no_findings(ledger_url, seed):
    """After each piece of a year of lists, corrections, renames and rules, `verify` finds nothing, and some ladders are
    kept.
    """
    events, kept_count = (
        [build_ruleset_event(), build_go_ruleset(), *draw_games(seed, 20, PLAYERS), *draw_year(seed)],
        0,
    )
    step = max(len(events) // 12, 1)
    for start in range(0, len(events), step):
        ledger = fill(ledger_url, events[start : start + step])
        rebuild(ledger, build_ticking_clock(), options=RebuildOptions(keep_history=True))
        assert list_findings(ledger) == []
        kept_count += len(load_ladder_rows(ledger).keys() - list_built_ladders(ledger))
    assert kept_count


@pytest.mark.slow_cases
@pytest.mark.parametrize("stage", ["copy_ladder_rows", "promote", "sweep_generations"])
def test_killed_rebuild_keeps_live_rows(ledger, monkeypatch, stage):
    """A rebuild killed before its promotion changes nothing for readers, and the next rebuild keeps the same rows."""

    class Killed(BaseException):
        pass

    def kill(*arguments, **options):
        raise Killed

    before = load_ladder_rows(ledger)
    append(ledger, build_club_game("late", "anna ben cleo"))
    with monkeypatch.context() as patch:
        original = getattr(generations, stage)
        # the first sweep is at the begin of the rebuild
        sweeps = iter([original, kill]) if stage == "sweep_generations" else iter([kill])
        patch.setattr(generations, stage, lambda *call_arguments, **options: next(sweeps)(*call_arguments, **options))
        with pytest.raises(Killed):
            rebuild(ledger, build_ticking_clock())
    if stage != "sweep_generations":
        assert load_ladder_rows(ledger) == before
    rebuild(ledger, build_ticking_clock())
    # ladders of a promotion without a recorded run are computed again
    build = 3 if stage == "sweep_generations" else 1
    assert {row.build for ladder, row in load_ladder_rows(ledger).items() if ladder in (FIVE, GO)} == {build}
    assert equals_replay(ledger)


ALTERATIONS = {
    "points": "UPDATE generation_standings SET points = points + 1 WHERE ladder = :ladder AND ordinal = 1",
    "a digest": "UPDATE generation_ladders SET digest = 'x' WHERE ladder = :ladder AND generation = 2",
    "games": "UPDATE generation_ladders SET games = games + 1 WHERE ladder = :ladder AND generation = 2",
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("altered", ALTERATIONS)
def test_altered_kept_rows_are_detected_and_replaced(ledger, altered, caplog):
    """`verify` finds altered rows that are kept; `rebuild --check` and a rebuild by name replace them."""
    append(ledger, build_club_game("late", "anna ben cleo"))
    rebuild(ledger, build_ticking_clock())
    alter(ledger, ALTERATIONS[altered], ladder=GO)
    assert any(GO in finding for finding in list_findings(ledger))
    assert rebuild(ledger, build_ticking_clock(), options=RebuildOptions(check=True)).promoted
    assert [GO in line for line in caplog.messages if "differ from a replay; they are replaced" in line] == [True]
    assert list_findings(ledger) == []
    alter(ledger, ALTERATIONS["points"], ladder=GO)
    rebuild(ledger, build_ticking_clock())
    assert any(GO in finding for finding in list_findings(ledger))
    rebuild(ledger, build_ticking_clock(), [GO])
    assert list_findings(ledger) == []


def test_ladder_with_lost_rows_is_computed_again(ledger):
    """A ladder with missing rows, or one that claims to have no players, is computed again."""
    alter(ledger, "DELETE FROM generation_standings WHERE ladder = :ladder AND ordinal = 1", ladder=GO)
    alter(ledger, "DELETE FROM generation_standings WHERE ladder = :ladder", ladder=FIVE)
    alter(ledger, "UPDATE generation_ladders SET players = 0 WHERE ladder = :ladder", ladder=FIVE)
    rebuild(ledger, build_ticking_clock())
    assert list_built_ladders(ledger) == {GO, FIVE}
    assert equals_replay(ledger)


def test_conflicting_rows_of_a_build_are_found(ledger):
    """Kept rows that contradict their build, or are older than it, are conflicts."""
    append(ledger, build_club_game("late", "anna ben cleo"))
    rebuild(ledger, build_ticking_clock())
    with ledger.reading() as connection:
        assert generations.find_build_conflicts(connection, 2) == []
    alter(
        ledger, "UPDATE generation_ladders SET games = games + 1 WHERE ladder = :ladder AND generation = 2", ladder=GO
    )
    alter(ledger, "UPDATE generation_ladders SET position = 1 WHERE ladder = :ladder AND generation = 2", ladder=FIVE)
    with ledger.reading() as connection:
        assert generations.find_build_conflicts(connection, 2) == [FIVE, GO]


@pytest.mark.slow_cases
@pytest.mark.parametrize("doubt", ["another program", "no run", "another history", "some ladders", "a failure"])
def test_doubtful_rows_are_computed_again(ledger, monkeypatch, doubt):
    """Rows are only kept from a full rebuild by this program, in this history, without failures."""
    if doubt == "another program":
        monkeypatch.setattr(changed_ladders, "program_digest", lambda: "another")
    elif doubt == "no run":
        alter(ledger, "DELETE FROM runs")
    elif doubt == "another history":
        alter(ledger, "UPDATE generations SET chain_hash = :hash", hash=b"x" * 32)
    elif doubt == "some ladders":
        rebuild(ledger, build_ticking_clock(), [GO])
    else:
        append(ledger, *(build_adjustment(GO, "anna", "1000000000", day=1 + n) for n in range(12)))
        assert [failure.ladder for failure in rebuild(ledger, build_ticking_clock()).failures] == [GO]
        result = rebuild(ledger, build_ticking_clock())
        assert ([failure.ladder for failure in result.failures], result.unchanged) == ([GO], 1)
        assert load_ladder_rows(ledger)[GO].position < load_ladder_rows(ledger)[ALL].position == result.position
        assert {row.build for row in load_ladder_rows(ledger).values()} == {1}
        return
    rebuild(ledger, build_ticking_clock())
    assert list_built_ladders(ledger) == ALL_LADDERS
    assert equals_replay(ledger)


def test_kept_ladders_keep_their_history(ledger):
    """A kept ladder keeps the changes of its build; a first history is computed for all ladders."""
    rebuild(ledger, build_ticking_clock(), options=RebuildOptions(keep_history=True))
    assert list_built_ladders(ledger) == ALL_LADDERS
    append(ledger, build_club_game("late", "anna ben cleo"))
    result = rebuild(ledger, build_ticking_clock())
    with ledger.reading() as connection:
        changes = connection.execute(text("SELECT count(*) FROM live_changes")).scalar_one()
    assert (list_built_ladders(ledger), result.changes) == ({ALL, THREE}, changes)
    assert equals_replay(ledger)
