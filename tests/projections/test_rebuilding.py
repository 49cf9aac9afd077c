"""Rebuilds of some ladders, second replays, what is kept, going back, and the work in several processes."""

import os
import signal
from types import SimpleNamespace

import pytest
from catan_years import year_of
from histories import adjustment, club_game, facts_of, fill, random_games, ruleset, ticking
from sqlalchemy import text

from ratings_ledger import AlreadyRunning
from ratings_ledger.ledger.errors import NoEarlierGeneration, WorkerLost
from ratings_ledger.ledger.processes import forking
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored import computing, generations, rebuilding
from ratings_ledger.projections.stored.generations import (
    list_generations,
    list_ladder_rows,
    read_live_generation,
    read_standings,
    roll_back,
)
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock
from ratings_ledger.projections.stored.rebuilding import RebuildOptions, rebuild
from ratings_ledger.projections.stored.verification import verify_standings

PLAYERS = ["anna", "ben", "cleo", "dora", "emil"]
ALL, THREE, FIVE, SEVEN = (f"club-catan-elo/{band}" for band in ("all", "3-4", "5-6", "7-8"))


def filled(url):
    """A ledger with the games of five players on four ladders of two rulesets."""
    other = ruleset()
    other["data"] = other["data"] | {"id": "other", "partition": {"by": ["players"], "bands": ["all"]}}
    return fill(url, [ruleset(), other, *random_games(1, 30, PLAYERS)])


@pytest.fixture
def db(tmp_path):
    """The URL of a ledger without events, in a file."""
    upgrade(str(tmp_path / "ratings.db"))
    return str(tmp_path / "ratings.db")


@pytest.fixture
def ledger(db):
    return filled(db)


@pytest.fixture
def either(ledger_url):
    """The same in a store of each kind."""
    return filled(ledger_url)


def more(ledger, *events):
    fill(ledger.url.render_as_string(hide_password=False), events)


def stored(ledger):
    """(build, position, rows) of every ladder of the live generation."""
    with ledger.reading() as connection:
        return {
            row.ladder: (row.build, row.position, read_standings(connection, row.build, row.ladder))
            for row in list_ladder_rows(connection, read_live_generation(connection).generation)
        }


def replayed(ledger, ladder, known_at=None):
    return Ladders(facts_of(ledger, known_at)).standings(ladder).rows


def findings(ledger):
    with ledger.reading() as connection:
        return list(verify_standings(connection))


def numbers(ledger):
    with ledger.reading() as connection:
        return [one.generation for one in list_generations(connection, 0)]


def everything(ledger):
    """All rows of all tables of the generations, as a reader of the tables sees them."""
    tables = ("generations", "generation_ladders", "generation_standings", "live_generation")
    with ledger.reading() as connection:
        return {name: connection.execute(text(f"SELECT * FROM {name} ORDER BY 1, 2")).all() for name in tables}


@pytest.mark.parametrize(("asked", "built"), [([ALL], {ALL}), (["club-catan-elo"], {ALL, THREE, FIVE}),
                                              (["other", THREE], {"other/all", THREE})])  # fmt: skip
def test_partial_rebuild_keeps_other_ladders(either, asked, built):
    """A rebuild of some ladders leaves all others as they were."""
    ledger = either
    rebuild(ledger, ticking())
    before = stored(ledger)
    more(ledger, club_game("late", "emil anna ben", day=1))
    done = rebuild(ledger, ticking(), asked)
    after = stored(ledger)
    assert (done.position, done.ladders, done.unchanged) == (33, len(built), 4 - len(built))
    assert {name for name, (build, position, _) in after.items() if (build, position) == (2, 33)} == built
    assert {name: after[name] for name in after.keys() - built} == {
        name: before[name] for name in before.keys() - built
    }
    assert all(after[name][2] == replayed(ledger, name) for name in built)
    assert findings(ledger) == []


def test_generation_has_position_of_full_rebuild(ratings, db, ledger):
    """The position of a generation is that of its last full rebuild."""
    rebuild(ledger, ticking(), [ALL])
    with ledger.reading() as connection:
        assert [(one.position, one.ladders, one.built) for one in list_generations(connection, 0)] == [(0, 1, 1)]
    assert findings(ledger) == []
    rebuild(ledger, ticking())
    more(ledger, club_game("late", "emil anna ben"))
    rebuild(ledger, ticking(), [ALL])
    with ledger.reading() as connection:
        assert [(one.position, one.ladders, one.built) for one in list_generations(connection, 0)] == [
            (32, 4, 1),
            (32, 4, 4),
        ]
    assert ratings("rebuild", "other", db=db).stdout.endswith("; 3 ladders unchanged\n")


def test_new_ladder_waits_until_asked_for(ledger):
    """A partial rebuild adds a new ladder only if it is asked for."""
    rebuild(ledger, ticking())
    more(ledger, club_game("big", "a b c d e f g h"))
    rebuild(ledger, ticking(), [ALL])
    assert SEVEN not in stored(ledger)
    assert findings(ledger) == []
    rebuild(ledger, ticking(), [SEVEN])
    assert stored(ledger)[SEVEN][2] == replayed(ledger, SEVEN)
    assert findings(ledger) == []


@pytest.mark.slow_cases
def test_full_rebuild_drops_emptied_ladder(either):
    """A ladder without games is empty after a partial rebuild and gone after a full one."""
    ledger = either
    more(ledger, club_game("big", "a b c d e f g h"))
    rebuild(ledger, ticking())
    more(ledger, {"type": "game.voided", "occurred_at": "2020-02-01T00:00:00Z",
                  "data": {"game_id": "big", "reason": "never played"}})  # fmt: skip
    rebuild(ledger, ticking(), [ALL])
    assert len(stored(ledger)[SEVEN][2]) == 8
    rebuild(ledger, ticking(), [SEVEN])
    assert stored(ledger)[SEVEN] == (3, 34, [])
    assert findings(ledger) == []
    rebuild(ledger, ticking())
    assert SEVEN not in stored(ledger)
    assert rebuild(ledger, ticking(), [SEVEN]).ladders == 0
    assert SEVEN not in stored(ledger)
    assert findings(ledger) == []


def test_unknown_ladder_is_refused_before_writing(ratings, db, ledger):
    """A rebuild of an unknown ladder is refused before anything is written."""
    rebuild(ledger, ticking())
    before = everything(ledger)
    for name in ("chess", "chess/all", "club-catan-elo/9-10", "club-catan-elo/all/x", "", "/"):
        with pytest.raises(UnknownLadder):
            rebuild(ledger, ticking(), [ALL, name])
    told = ratings("rebuild", "chess/all", db=db)
    assert (told.exit_code, told.stdout, "no ruleset is called 'chess'" in told.stderr) == (2, "", True)
    assert everything(ledger) == before


def test_failing_ladder_keeps_its_standings(ledger):
    """A ladder that fails in a partial rebuild keeps the standings that it had."""
    rebuild(ledger, ticking())
    before = stored(ledger)
    more(ledger, *(adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)))
    done = rebuild(ledger, ticking(), [ALL, THREE])
    assert [failure.ladder for failure in done.failures] == [ALL]
    assert stored(ledger)[ALL] == before[ALL]
    assert stored(ledger)[THREE] == (2, 44, before[THREE][2])
    assert [finding.code for finding in findings(ledger)] == []


def test_verify_checks_standings_of_every_age(ledger):
    """`verify` finds false standings in ladders of every build of the generation."""
    rebuild(ledger, ticking())
    more(ledger, club_game("late", "emil anna ben"))
    rebuild(ledger, ticking(), ["other"])
    for ladder, edit in ((ALL, "points = points + 1"), ("other/all", "games = games + 1")):
        change = f"UPDATE generation_standings SET {edit} WHERE ordinal = 1 AND ladder = '{ladder}'"
        with ledger.writing() as connection:
            connection.execute(text(change))
        assert any(ladder in finding.message for finding in findings(ledger))


def test_verify_finds_ladder_of_other_history(ledger):
    """`verify` finds a ladder whose stored position belongs to another history."""
    rebuild(ledger, ticking())
    more(ledger, club_game("late", "emil anna ben"))
    rebuild(ledger, ticking(), ["other"])
    with ledger.writing() as connection:
        connection.execute(text("UPDATE generation_ladders SET position = 20 WHERE ladder = 'other/all'"))
    assert [finding.position for finding in findings(ledger)] == [20]


def test_agreeing_second_replay_is_promoted(ledger):
    """A checked rebuild whose second replay agrees is promoted."""
    done = rebuild(ledger, ticking(), options=RebuildOptions(check=True))
    assert (done.promoted, done.differing) == (True, [])
    assert stored(ledger)[ALL][2] == replayed(ledger, ALL)


def test_differing_second_replay_promotes_nothing(ratings, db, ledger, monkeypatch):
    """A checked rebuild whose second replay differs promotes nothing and names the ladders.

    The second replay leaves out the last game, and every ladder of that game is named.
    """
    rebuild(ledger, ticking())
    more(ledger, club_game("last", "anna ben cleo dora emil", day=28))
    before = stored(ledger)
    decode_uncached = rebuilding._decode_uncached
    monkeypatch.setattr(rebuilding, "_decode_uncached", lambda ledger, position: decode_uncached(ledger, position - 1))
    done = rebuild(ledger, ticking(), options=RebuildOptions(check=True))
    assert (done.generation, done.promoted, done.differing) == (2, False, [FIVE, ALL, "other/all"])
    assert (numbers(ledger), stored(ledger)) == ([1], before)
    assert {row.build for row in everything(ledger)["generation_standings"]} == {1}
    told = ratings("rebuild", "--check", db=db)
    assert (told.exit_code, told.stdout) == (1, "")
    assert [line.split(": ")[1] for line in told.stderr.splitlines()[:-1]] == [FIVE, ALL, "other/all"]
    assert "nothing was promoted" in told.stderr
    assert ratings("rebuild", THREE, "--check", db=db).stdout.startswith("generation 4: 1 ladder, ")


ALTERED = {
    "points": ("UPDATE generation_standings SET points = points + 1 WHERE build = 2 AND ladder = :ladder", [ALL]),
    "a row": ("DELETE FROM generation_standings WHERE build = 2 AND ladder = :ladder AND ordinal = 2", [ALL]),
    "what is said about them": (
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
@pytest.mark.parametrize("what", ALTERED)
def test_rows_altered_after_they_were_stored_are_not_promoted(either, what):
    """A checked rebuild compares what is stored: whatever altered rows meanwhile, they are not promoted."""
    rebuild(either, ticking(), options=RebuildOptions(keep_history=True))
    more(either, club_game("late", "emil anna ben"))
    before = stored(either)
    statement, differing = ALTERED[what]

    def alter(step, numbers):
        if step == "checking" and numbers["ladders_done"] == 0:
            with either.writing() as connection:
                assert connection.execute(text(statement), {"ladder": ALL}).rowcount

    done = rebuild(either, ticking(), options=RebuildOptions(check=True), report_progress=alter)
    assert (done.promoted, done.differing) == (False, differing)
    assert (numbers(either), stored(either)) == ([1], before)


def test_failure_in_one_replay_is_difference(ledger, monkeypatch):
    """A failure that only one of the two replays meets counts as a difference."""
    more(ledger, *(adjustment(ALL, "anna", "1000000000", day=1 + n) for n in range(12)))
    decode_uncached = rebuilding._decode_uncached
    monkeypatch.setattr(rebuilding, "_decode_uncached", lambda ledger, position: decode_uncached(ledger, position - 12))
    assert rebuild(ledger, ticking(), options=RebuildOptions(check=True)).differing == [ALL]


@pytest.mark.slow_cases
def test_keep_sets_how_many_generations_stay(either):
    """A rebuild keeps as many generations as it was asked to keep."""
    ledger = either
    for number in range(4):
        rebuild(ledger, ticking(), options=RebuildOptions(keep=3))
        more(ledger, *(club_game(f"more-{number}-{players}", " ".join(PLAYERS[:players])) for players in (3, 5)))
    assert numbers(ledger) == [4, 3, 2]
    rebuild(ledger, ticking())
    assert numbers(ledger) == [5, 4]
    builds = {row.build for row in everything(ledger)["generation_standings"]}
    assert builds == {4, 5}


@pytest.mark.slow_cases
def test_build_stays_while_generation_uses_it(either, monkeypatch):
    """The rows of a build stay as long as a kept generation uses them."""
    ledger = either
    monkeypatch.setattr(generations, "TRANSACTION_ROWS", 3)
    rebuild(ledger, ticking())
    for _ in range(3):
        rebuild(ledger, ticking(), [ALL])
    rows = {(row.build, row.ladder) for row in everything(ledger)["generation_standings"]}
    assert rows == {(4, ALL), (3, ALL), (1, THREE), (1, FIVE), (1, "other/all")}
    assert findings(ledger) == []
    for number in range(2):
        rebuild(ledger, ticking())
        more(ledger, *(club_game(f"more-{number}-{players}", " ".join(PLAYERS[:players])) for players in (3, 5)))
    assert {row.build for row in everything(ledger)["generation_standings"]} == {5, 6}


@pytest.mark.slow_cases
def test_orphaned_rows_are_removed(either):
    """A rebuild removes standings rows that no generation refers to."""
    ledger = either
    rebuild(ledger, ticking())
    with ledger.writing() as connection:
        connection.execute(text("UPDATE generation_standings SET build = 77 WHERE build = 1"))
    rebuild(ledger, ticking())
    assert {row.build for row in everything(ledger)["generation_standings"]} == {2}


@pytest.mark.slow_cases
def test_repeated_rollback_goes_further_back(either):
    """Each rollback goes one generation further back, and generation numbers are never reused."""
    ledger = either
    for number in range(4):
        rebuild(ledger, ticking(), options=RebuildOptions(keep=3))
        more(ledger, club_game(f"more-{number}", "anna ben cleo"))
    assert numbers(ledger) == [4, 3, 2]
    rolled = roll_back(ledger)
    assert (rolled.generation, rolled.position, rolled.given_up) == (3, 34, 4)
    assert stored(ledger)[ALL] == (3, 34, replayed(ledger, ALL, 34))
    assert findings(ledger) == []
    assert numbers(ledger) == [3, 2]
    roll_back(ledger)
    assert numbers(ledger) == [2]
    with pytest.raises(NoEarlierGeneration, match="only generation 2 is stored"):
        roll_back(ledger)
    assert rebuild(ledger, ticking()).generation == 5


def test_rolled_back_number_is_not_reused(ledger):
    """The next rebuild does not reuse the number of a generation that was rolled back."""
    for _ in range(2):
        rebuild(ledger, ticking())
    roll_back(ledger)
    assert rebuild(ledger, ticking()).generation == 3
    assert numbers(ledger) == [3, 1]


def test_rollback_needs_generation_and_no_rebuild(ledger):
    """A rollback needs a stored generation and is refused while a rebuild is running."""
    with pytest.raises(NoEarlierGeneration, match="nothing is stored"):
        roll_back(ledger)
    rebuild(ledger, ticking())
    rebuild(ledger, ticking())
    with hold_rebuild_lock(ledger), pytest.raises(AlreadyRunning):
        roll_back(ledger)
    assert numbers(ledger) == [2, 1]


@pytest.fixture
def lists(ledger_url):
    """Ladders of four rulesets, among them years, which are made of months; one ladder cannot be replayed."""
    events = [ruleset(), *random_games(2, 60, [*PLAYERS, *"fghijk"], most=8), *year_of(1)]
    return fill(ledger_url, [*events, *(adjustment(SEVEN, "anna", "1000000000", day=1 + n) for n in range(12))])


@pytest.mark.slow
def test_process_count_does_not_change_result(lists, monkeypatch):
    """A rebuild stores the same standings with one process as with several."""
    monkeypatch.setattr(computing, "FORKING_COST", 0)
    found = {}
    for cores in (1, 2, 5):
        done = rebuild(lists, ticking(), options=RebuildOptions(cores=cores, check=True))
        assert [failure.ladder for failure in done.failures] == [SEVEN]
        with lists.reading() as connection:
            digests = {row.ladder: row.digest for row in list_ladder_rows(connection, done.generation)}
        found[cores] = digests, {name: rows for name, (_, _, rows) in stored(lists).items()}
    assert found[1] == found[2] == found[5]
    assert any("catan-annual" in name for name in found[1][0])
    assert [(finding.code, finding.message.split(":")[0]) for finding in findings(lists)] == [("rule", SEVEN)]


@pytest.mark.slow
def test_killed_worker_promotes_nothing(ratings, db, ledger, monkeypatch):
    """If a worker process is killed, the rebuild reports the signal and promotes nothing."""
    rebuild(ledger, ticking())
    more(ledger, club_game("late", "emil anna ben"))
    before = stored(ledger)
    monkeypatch.setattr(computing, "FORKING_COST", 0)
    parent = os.getpid()

    def rank_stream(self, stream):
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(Ladders, "rank_stream", rank_stream)
        patch.setattr(forking, "available_cores", lambda: 2)
        with pytest.raises(WorkerLost, match="killed by signal 9"):
            rebuild(ledger, ticking(), options=RebuildOptions(cores=2))
        told = ratings("rebuild", db=db)
    assert (told.exit_code, told.stdout, "killed by signal 9" in told.stderr) == (3, "", True)
    assert stored(ledger) == before
    assert rebuild(open_ledger(db), ticking(), options=RebuildOptions(cores=2)).promoted


def test_error_in_a_worker_is_reported(ledger, monkeypatch):
    """An error raised in a worker process is reported by the rebuild."""
    monkeypatch.setattr(computing, "FORKING_COST", 0)
    monkeypatch.setattr(Ladders, "rank_stream", lambda self, stream: stream.nothing)
    with pytest.raises(RuntimeError, match="has no attribute 'nothing'"):
        rebuild(ledger, ticking(), options=RebuildOptions(cores=2))


def test_work_is_split_by_cost():
    """The work is split into parts of about equal cost, with big ladders on their own."""
    sizes = [*range(40), 2_000, 300, *range(40)]
    streams = [SimpleNamespace(ladder=f"league/{number}", row=range(size)) for number, size in enumerate(sizes)]
    units = computing._split_into_units(streams, cores=2)
    assert [[len(stream.rows) for stream in unit] for unit in units[:2]] == [[2_000], [300]]
    costs = [sum(len(stream.rows) + computing.LADDER_COST for stream in unit) for unit in units[2:]]
    assert max(costs) < 2 * min(costs[:-1])
    assert sorted(len(stream.rows) for unit in units for stream in unit) == sorted(sizes)
