"""Rebuilds of all or some ladders: second replays, kept generations, rollbacks, and work in several processes."""

import os
import signal
from types import SimpleNamespace

import pytest
from catan_years import draw_year
from histories import (
    build_adjustment,
    build_club_game,
    build_ruleset_event,
    build_ticking_clock,
    draw_games,
    fill,
    load_facts,
)
from sqlalchemy import text

from ratings_ledger import AlreadyRunning
from ratings_ledger.ledger.errors import NoEarlierGeneration, WorkerLost
from ratings_ledger.ledger.processes import forking
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored import computing, generations, rebuild_check
from ratings_ledger.projections.stored.generations import (
    list_generations,
    list_ladder_rows,
    read_live_generation,
    read_standings,
    roll_back,
)
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock
from ratings_ledger.projections.stored.rebuild_plan import RebuildOptions
from ratings_ledger.projections.stored.rebuilding import rebuild
from ratings_ledger.projections.stored.standings_checks import verify_standings

PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
ALL, THREE, FIVE, SEVEN = (f"club-catan-elo/{band}" for band in ("all", "3-4", "5-6", "7-8"))


def make_ledger(url):
    """Make a ledger with the games of five players on four ladders of two rulesets."""
    second_ruleset = build_ruleset_event()
    second_ruleset["data"] = second_ruleset["data"] | {
        "id": "other",
        "partition": {"by": ["players"], "bands": ["all"]},
    }
    return fill(url, [build_ruleset_event(), second_ruleset, *draw_games(1, 30, PLAYERS)])


@pytest.fixture
def db(tmp_path):
    """Return the URL of a ledger without events, in a file."""
    upgrade(str(tmp_path / "ratings.db"))
    return str(tmp_path / "ratings.db")


@pytest.fixture
def ledger(db):
    """Return the ledger of `make_ledger`, in a file."""
    return make_ledger(db)


@pytest.fixture
def ledger_of_each_store(ledger_url):
    """Return the ledger of `make_ledger`, in each kind of store."""
    return make_ledger(ledger_url)


def append(ledger, *events):
    """Append events to a ledger."""
    fill(ledger.url.render_as_string(hide_password=False), events)


def load_ladders(ledger):
    """Return (build, position, rows) of every ladder of the live generation."""
    with ledger.reading() as connection:
        return {
            row.ladder: (row.build, row.position, read_standings(connection, row.build, row.ladder))
            for row in list_ladder_rows(connection, read_live_generation(connection).generation)
        }


def replay_rows(ledger, ladder, known_at=None):
    """Return the rows of a ladder from a replay."""
    return Ladders(load_facts(ledger, known_at)).standings(ladder).rows


def list_findings(ledger):
    """Return the findings of `verify` about stored standings."""
    with ledger.reading() as connection:
        return list(verify_standings(connection))


def list_generation_numbers(ledger):
    """Return the numbers of the stored generations, newest first."""
    with ledger.reading() as connection:
        return [entry.generation for entry in list_generations(connection, 0)]


def load_tables(ledger):
    """Return all rows of the tables of generations."""
    tables = ("generations", "generation_ladders", "generation_standings", "live_generation")
    with ledger.reading() as connection:
        return {name: connection.execute(text(f"SELECT * FROM {name} ORDER BY 1, 2")).all() for name in tables}


@pytest.mark.parametrize(("requested", "built"), [([ALL], {ALL}), (["club-catan-elo"], {ALL, THREE, FIVE}),
                                              (["other", THREE], {"other/all", THREE})])  # fmt: skip
def test_partial_rebuild_keeps_other_ladders(ledger_of_each_store, requested, built):
    """A rebuild of some ladders leaves all other ladders unchanged."""
    ledger = ledger_of_each_store
    rebuild(ledger, build_ticking_clock())
    before = load_ladders(ledger)
    append(ledger, build_club_game("late", "emil anna ben", day=1))
    result = rebuild(ledger, build_ticking_clock(), requested)
    after = load_ladders(ledger)
    assert (result.position, result.ladders, result.unchanged) == (33, len(built), 4 - len(built))
    assert {name for name, (build, position, _) in after.items() if (build, position) == (2, 33)} == built
    assert {name: after[name] for name in after.keys() - built} == {
        name: before[name] for name in before.keys() - built
    }
    assert all(after[name][2] == replay_rows(ledger, name) for name in built)
    assert list_findings(ledger) == []


def test_generation_has_position_of_full_rebuild(ratings, db, ledger):
    """The position of a generation is the position of its last full rebuild."""
    rebuild(ledger, build_ticking_clock(), [ALL])
    with ledger.reading() as connection:
        assert [(entry.position, entry.ladders, entry.built) for entry in list_generations(connection, 0)] == [
            (0, 1, 1)
        ]
    assert list_findings(ledger) == []
    rebuild(ledger, build_ticking_clock())
    append(ledger, build_club_game("late", "emil anna ben"))
    rebuild(ledger, build_ticking_clock(), [ALL])
    with ledger.reading() as connection:
        assert [(entry.position, entry.ladders, entry.built) for entry in list_generations(connection, 0)] == [
            (32, 4, 1),
            (32, 4, 4),
        ]
    assert ratings("rebuild", "other", db=db).stdout.endswith("; 3 ladders unchanged\n")


def test_partial_rebuild_adds_new_ladder_only_by_name(ledger):
    """A partial rebuild adds a new ladder only if the ladder is named."""
    rebuild(ledger, build_ticking_clock())
    append(ledger, build_club_game("big", "a b c d e f g h"))
    rebuild(ledger, build_ticking_clock(), [ALL])
    assert SEVEN not in load_ladders(ledger)
    assert list_findings(ledger) == []
    rebuild(ledger, build_ticking_clock(), [SEVEN])
    assert load_ladders(ledger)[SEVEN][2] == replay_rows(ledger, SEVEN)
    assert list_findings(ledger) == []


@pytest.mark.slow_cases
def test_full_rebuild_drops_emptied_ladder(ledger_of_each_store):
    """A ladder that lost its games is empty after a partial rebuild, and gone after a full one."""
    ledger = ledger_of_each_store
    append(ledger, build_club_game("big", "a b c d e f g h"))
    rebuild(ledger, build_ticking_clock())
    append(ledger, {"type": "game.voided", "occurred_at": "2020-02-01T00:00:00Z",
                  "data": {"game_id": "big", "reason": "never played"}})  # fmt: skip
    rebuild(ledger, build_ticking_clock(), [ALL])
    assert len(load_ladders(ledger)[SEVEN][2]) == 8
    rebuild(ledger, build_ticking_clock(), [SEVEN])
    assert load_ladders(ledger)[SEVEN] == (3, 34, [])
    assert list_findings(ledger) == []
    rebuild(ledger, build_ticking_clock())
    assert SEVEN not in load_ladders(ledger)
    assert rebuild(ledger, build_ticking_clock(), [SEVEN]).ladders == 0
    assert SEVEN not in load_ladders(ledger)
    assert list_findings(ledger) == []


def test_unknown_ladder_is_rejected_before_writing(ratings, db, ledger):
    """A rebuild of an unknown ladder is rejected before anything is written."""
    rebuild(ledger, build_ticking_clock())
    before = load_tables(ledger)
    for name in ("chess", "chess/all", "club-catan-elo/9-10", "club-catan-elo/all/x", "", "/"):
        with pytest.raises(UnknownLadder):
            rebuild(ledger, build_ticking_clock(), [ALL, name])
    result = ratings("rebuild", "chess/all", db=db)
    assert (result.exit_code, result.stdout, "no ruleset is called 'chess'" in result.stderr) == (2, "", True)
    assert load_tables(ledger) == before


def test_failing_ladder_keeps_its_standings(ledger):
    """A ladder that fails in a partial rebuild keeps its previous standings."""
    rebuild(ledger, build_ticking_clock())
    before = load_ladders(ledger)
    append(ledger, *(build_adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)))
    result = rebuild(ledger, build_ticking_clock(), [ALL, THREE])
    assert [failure.ladder for failure in result.failures] == [ALL]
    assert load_ladders(ledger)[ALL] == before[ALL]
    assert load_ladders(ledger)[THREE] == (2, 44, before[THREE][2])
    assert [finding.code for finding in list_findings(ledger)] == []


def test_verify_checks_standings_of_every_age(ledger):
    """`verify` finds wrong standings in ladders of every build of the generation."""
    rebuild(ledger, build_ticking_clock())
    append(ledger, build_club_game("late", "emil anna ben"))
    rebuild(ledger, build_ticking_clock(), ["other"])
    for ladder, edit in ((ALL, "points = points + 1"), ("other/all", "games = games + 1")):
        change = f"UPDATE generation_standings SET {edit} WHERE ordinal = 1 AND ladder = '{ladder}'"
        with ledger.writing() as connection:
            connection.execute(text(change))
        assert any(ladder in finding.message for finding in list_findings(ledger))


def test_verify_finds_ladder_of_other_history(ledger):
    """`verify` finds a ladder with a stored position that belongs to another history."""
    rebuild(ledger, build_ticking_clock())
    append(ledger, build_club_game("late", "emil anna ben"))
    rebuild(ledger, build_ticking_clock(), ["other"])
    with ledger.writing() as connection:
        connection.execute(text("UPDATE generation_ladders SET position = 20 WHERE ladder = 'other/all'"))
    assert [finding.position for finding in list_findings(ledger)] == [20]


def test_agreeing_second_replay_is_promoted(ledger):
    """A checked rebuild is promoted if its second replay agrees."""
    result = rebuild(ledger, build_ticking_clock(), options=RebuildOptions(check=True))
    assert (result.promoted, result.differing) == (True, [])
    assert load_ladders(ledger)[ALL][2] == replay_rows(ledger, ALL)


def test_differing_second_replay_promotes_nothing(ratings, db, ledger, monkeypatch):
    """A checked rebuild with a differing second replay promotes nothing and names the ladders.

    The second replay leaves out the last game, and every ladder of that game is named.
    """
    rebuild(ledger, build_ticking_clock())
    append(ledger, build_club_game("last", "anna ben cleo dora emil", day=28))
    before = load_ladders(ledger)
    decode_uncached = rebuild_check._decode_uncached
    monkeypatch.setattr(
        rebuild_check, "_decode_uncached", lambda ledger, position: decode_uncached(ledger, position - 1)
    )
    result = rebuild(ledger, build_ticking_clock(), options=RebuildOptions(check=True))
    assert (result.generation, result.promoted, result.differing) == (2, False, [FIVE, ALL, "other/all"])
    assert (list_generation_numbers(ledger), load_ladders(ledger)) == ([1], before)
    assert {row.build for row in load_tables(ledger)["generation_standings"]} == {1}
    printed = ratings("rebuild", "--check", db=db)
    assert (printed.exit_code, printed.stdout) == (1, "")
    assert [line.split(": ")[1] for line in printed.stderr.splitlines()[:-1]] == [FIVE, ALL, "other/all"]
    assert "nothing was promoted" in printed.stderr
    assert ratings("rebuild", THREE, "--check", db=db).stdout.startswith("generation 4: 1 ladder, ")


ALTERATIONS = {
    "points": ("UPDATE generation_standings SET points = points + 1 WHERE build = 2 AND ladder = :ladder", [ALL]),
    "a row": ("DELETE FROM generation_standings WHERE build = 2 AND ladder = :ladder AND ordinal = 2", [ALL]),
    "the number of games": (
        "UPDATE generation_ladders SET games = games + 1 WHERE generation = 2 AND ladder = :ladder", [ALL]),
    "a change": (
        "UPDATE history_changes SET before = before + 1 WHERE ordinal = 1 AND part = "
        "(SELECT min(part) FROM history_parts WHERE generation = 2 AND ladder = :ladder)", [ALL]),
    "a game": (
        "UPDATE history_games SET game = 'zz' WHERE part = "
        "(SELECT min(part) FROM history_parts WHERE generation = 2 AND ladder <> :ladder AND ladder = '')",
        ["live_games"]),
}  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize("altered", ALTERATIONS)
def test_rows_altered_during_a_checked_rebuild_are_not_promoted(ledger_of_each_store, altered):
    """A checked rebuild compares the stored rows, and does not promote rows that were altered meanwhile."""
    rebuild(ledger_of_each_store, build_ticking_clock(), options=RebuildOptions(keep_history=True))
    append(ledger_of_each_store, build_club_game("late", "emil anna ben"))
    before = load_ladders(ledger_of_each_store)
    statement, differing = ALTERATIONS[altered]

    def alter(step, counts):
        if step == "checking" and counts["ladders_done"] == 0:
            with ledger_of_each_store.writing() as connection:
                assert connection.execute(text(statement), {"ladder": ALL}).rowcount

    result = rebuild(
        ledger_of_each_store, build_ticking_clock(), options=RebuildOptions(check=True), report_progress=alter
    )
    assert (result.promoted, result.differing) == (False, differing)
    assert (list_generation_numbers(ledger_of_each_store), load_ladders(ledger_of_each_store)) == ([1], before)


def test_failure_in_one_of_two_replays_is_a_difference(ledger, monkeypatch):
    """A failure in only one of the two replays counts as a difference."""
    append(ledger, *(build_adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)))
    decode_uncached = rebuild_check._decode_uncached
    monkeypatch.setattr(
        rebuild_check, "_decode_uncached", lambda ledger, position: decode_uncached(ledger, position - 12)
    )
    assert rebuild(ledger, build_ticking_clock(), options=RebuildOptions(check=True)).differing == [ALL]


@pytest.mark.slow_cases
def test_keep_sets_how_many_generations_stay(ledger_of_each_store):
    """A rebuild keeps the requested number of generations."""
    ledger = ledger_of_each_store
    for number in range(4):
        rebuild(ledger, build_ticking_clock(), options=RebuildOptions(keep=3))
        append(
            ledger, *(build_club_game(f"more-{number}-{players}", " ".join(PLAYERS[:players])) for players in (3, 5))
        )
    assert list_generation_numbers(ledger) == [4, 3, 2]
    rebuild(ledger, build_ticking_clock())
    assert list_generation_numbers(ledger) == [5, 4]
    builds = {row.build for row in load_tables(ledger)["generation_standings"]}
    assert builds == {4, 5}


@pytest.mark.slow_cases
def test_build_stays_while_generation_uses_it(ledger_of_each_store, monkeypatch):
    """The rows of a build stay while a kept generation uses them."""
    ledger = ledger_of_each_store
    monkeypatch.setattr(generations, "TRANSACTION_ROWS", 3)
    rebuild(ledger, build_ticking_clock())
    for _ in range(3):
        rebuild(ledger, build_ticking_clock(), [ALL])
    rows = {(row.build, row.ladder) for row in load_tables(ledger)["generation_standings"]}
    assert rows == {(4, ALL), (3, ALL), (1, THREE), (1, FIVE), (1, "other/all")}
    assert list_findings(ledger) == []
    for number in range(2):
        rebuild(ledger, build_ticking_clock())
        append(
            ledger, *(build_club_game(f"more-{number}-{players}", " ".join(PLAYERS[:players])) for players in (3, 5))
        )
    assert {row.build for row in load_tables(ledger)["generation_standings"]} == {5, 6}


@pytest.mark.slow_cases
def test_orphaned_rows_are_removed(ledger_of_each_store):
    """A rebuild removes standings rows without a generation."""
    ledger = ledger_of_each_store
    rebuild(ledger, build_ticking_clock())
    with ledger.writing() as connection:
        connection.execute(text("UPDATE generation_standings SET build = 77 WHERE build = 1"))
    rebuild(ledger, build_ticking_clock())
    assert {row.build for row in load_tables(ledger)["generation_standings"]} == {2}


@pytest.mark.slow_cases
def test_repeated_rollback_goes_further_back(ledger_of_each_store):
    """Each rollback goes one generation further back, and generation numbers are never reused."""
    ledger = ledger_of_each_store
    for number in range(4):
        rebuild(ledger, build_ticking_clock(), options=RebuildOptions(keep=3))
        append(ledger, build_club_game(f"more-{number}", "anna ben cleo"))
    assert list_generation_numbers(ledger) == [4, 3, 2]
    rolled = roll_back(ledger)
    assert (rolled.generation, rolled.position, rolled.given_up) == (3, 34, 4)
    assert load_ladders(ledger)[ALL] == (3, 34, replay_rows(ledger, ALL, 34))
    assert list_findings(ledger) == []
    assert list_generation_numbers(ledger) == [3, 2]
    roll_back(ledger)
    assert list_generation_numbers(ledger) == [2]
    with pytest.raises(NoEarlierGeneration, match="only generation 2 is stored"):
        roll_back(ledger)
    assert rebuild(ledger, build_ticking_clock()).generation == 5


def test_rolled_back_number_is_not_reused(ledger):
    """The rebuild after a rollback does not reuse the number of the generation that was rolled back."""
    for _ in range(2):
        rebuild(ledger, build_ticking_clock())
    roll_back(ledger)
    assert rebuild(ledger, build_ticking_clock()).generation == 3
    assert list_generation_numbers(ledger) == [3, 1]


def test_rollback_needs_generation_and_no_rebuild(ledger):
    """A rollback needs an earlier generation, and is rejected during a rebuild."""
    with pytest.raises(NoEarlierGeneration, match="no generation is live"):
        roll_back(ledger)
    rebuild(ledger, build_ticking_clock())
    rebuild(ledger, build_ticking_clock())
    with hold_rebuild_lock(ledger), pytest.raises(AlreadyRunning):
        roll_back(ledger)
    assert list_generation_numbers(ledger) == [2, 1]


@pytest.fixture
def ledger_of_lists(ledger_url):
    """Return a ledger with ladders of four rulesets, among them annual lists; one ladder cannot be replayed."""
    events = [build_ruleset_event(), *draw_games(2, 60, [*PLAYERS, *"fghijk"], players_max=8), *draw_year(1)]
    return fill(ledger_url, [*events, *(build_adjustment(SEVEN, "anna", "1000000000", day=1 + n) for n in range(12))])


@pytest.mark.slow
def test_process_count_does_not_change_result(ledger_of_lists, monkeypatch):
    """A rebuild stores the same standings with one, two and five processes."""
    monkeypatch.setattr(computing, "FORKING_COST", 0)
    results = {}
    for cores in (1, 2, 5):
        rebuilt = rebuild(ledger_of_lists, build_ticking_clock(), options=RebuildOptions(cores=cores, check=True))
        assert [failure.ladder for failure in rebuilt.failures] == [SEVEN]
        with ledger_of_lists.reading() as connection:
            digests = {row.ladder: row.digest for row in list_ladder_rows(connection, rebuilt.generation)}
        results[cores] = digests, {name: rows for name, (_, _, rows) in load_ladders(ledger_of_lists).items()}
    assert results[1] == results[2] == results[5]
    assert any("catan-annual" in name for name in results[1][0])
    assert [(finding.code, finding.message.split(":")[0]) for finding in list_findings(ledger_of_lists)] == [
        ("rule", SEVEN)
    ]


@pytest.mark.slow
def test_killed_worker_promotes_nothing(ratings, db, ledger, monkeypatch):
    """If a worker process is killed, the rebuild reports the signal and promotes nothing."""
    rebuild(ledger, build_ticking_clock())
    append(ledger, build_club_game("late", "emil anna ben"))
    before = load_ladders(ledger)
    monkeypatch.setattr(computing, "FORKING_COST", 0)
    parent = os.getpid()

    def kill_own_process(self, stream):
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(Ladders, "rank_stream", kill_own_process)
        patch.setattr(forking, "available_cores", lambda: 2)
        with pytest.raises(WorkerLost, match="killed by signal 9"):
            rebuild(ledger, build_ticking_clock(), options=RebuildOptions(cores=2))
        result = ratings("rebuild", db=db)
    assert (result.exit_code, result.stdout, "killed by signal 9" in result.stderr) == (3, "", True)
    assert load_ladders(ledger) == before
    assert rebuild(open_ledger(db), build_ticking_clock(), options=RebuildOptions(cores=2)).promoted


def test_error_in_a_worker_is_reported(ledger, monkeypatch):
    """A rebuild raises the error of its worker process."""
    monkeypatch.setattr(computing, "FORKING_COST", 0)
    monkeypatch.setattr(Ladders, "rank_stream", lambda self, stream: stream.nothing)
    with pytest.raises(RuntimeError, match="has no attribute 'nothing'"):
        rebuild(ledger, build_ticking_clock(), options=RebuildOptions(cores=2))


def test_work_is_split_by_cost():
    """Work is split into parts of about equal cost; big ladders have a part of their own."""
    sizes = [*range(40), 2_000, 300, *range(40)]
    streams = [SimpleNamespace(ladder=f"league/{number}", rows=range(size)) for number, size in enumerate(sizes)]
    units = computing._split_into_units(streams, cores=2)
    assert [[len(stream.rows) for stream in unit] for unit in units[:2]] == [[2_000], [300]]
    costs = [sum(len(stream.rows) + computing.LADDER_COST for stream in unit) for unit in units[2:]]
    assert max(costs) < 2 * min(costs[:-1])
    assert sorted(len(stream.rows) for unit in units for stream in unit) == sorted(sizes)
