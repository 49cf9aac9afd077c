"""A full rebuild keeps the rows of ladders that no event since the last rebuild can have changed."""

import json
from fractions import Fraction

import pytest
from catan_years import draw_year
from histories import build_adjustment, build_club_game, build_ruleset_event, draw_games, fill
from ledgers import open_for_reading, open_for_writing, set_clock
from rebuilds import rebuild_standings, replace_stage
from sqlalchemy import text

import ratings_ledger as rl
from ratings_ledger.ledger import clock

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
def rebuild(ledger_url, ratings):
    """Return a function that rebuilds the ledger and returns the result that the command prints."""
    return lambda *options: json.loads(ratings("rebuild", *options, "--format", "json", db=ledger_url).stdout)


@pytest.fixture
def db(ledger_url, rebuild):
    """Return the URL of a ledger with three ladders of Catan and one of Go, rebuilt once."""
    events = [
        build_ruleset_event(),
        build_go_ruleset(),
        *draw_games(1, 30, PLAYERS),
        build_club_game("go-1", "anna ben", game="go"),
    ]
    fill(
        ledger_url,
        [*events, build_club_game("three", "anna ben cleo"), build_club_game("five", "anna ben cleo dora emil")],
    )
    rebuild()
    return ledger_url


def alter(db, statement, **values):
    """Run a statement that changes stored rows."""
    with open_for_writing(db) as connection:
        assert connection.execute(text(statement), values).rowcount


def select(db, query):
    """Return the rows of a query."""
    with open_for_reading(db) as connection:
        return connection.execute(text(query)).all()


def load_ladder_rows(db):
    """Return the rows of the live generation's ladders, by name."""
    rows = select(db, "SELECT * FROM generation_ladders JOIN live_generation USING (generation)")
    return {row.ladder: dict(row._mapping) for row in rows}


def list_built_ladders(db):
    """Return the ladders that the live generation's own rebuild computed."""
    return {ladder for ladder, row in load_ladder_rows(db).items() if row["build"] == row["generation"]}


@pytest.fixture
def list_findings(ledger_url, ratings):
    """Return a function that returns the messages of `verify`."""

    def verify():
        report = json.loads(ratings("verify", "--format", "json", db=ledger_url).stdout)
        return [finding["message"] for finding in report["findings"]]

    return verify


@pytest.fixture
def equals_replay(ledger_url, list_findings):
    """Return a function that tells whether the stored ladders and rows equal those of a replay, without findings."""

    def compare():
        query = "SELECT ladder, rank, player, points_units, scale, games, qualified FROM live_standings"
        stored = {ladder: [] for ladder in load_ladder_rows(ledger_url)}
        for ladder, rank, player, units, scale, games, qualified in select(ledger_url, f"{query} ORDER BY ordinal"):
            stored[ladder].append((rank, player, Fraction(units, scale), games, bool(qualified)))
        with rl.open(ledger_url) as ledger:
            view = ledger.at()
            replayed = {
                ladder: [
                    (row.rank, row.player, row.points, row.games, row.qualified) for row in view.standings(ladder).rows
                ]
                for ladder in stored
            }
        return list_findings() == [] and replayed == stored

    return compare


def test_unchanged_ladders_keep_their_rows(db, rebuild, equals_replay, monkeypatch):
    """A ladder without a new game keeps its old build, at the new position and time."""
    before = load_ladder_rows(db)
    fill(db, [build_club_game("late", "anna ben cleo", day=1)])
    now = clock.now()
    set_clock(monkeypatch, now)
    result = rebuild()
    after = load_ladder_rows(db)
    assert (result["ladders"], result["unchanged"], list_built_ladders(db)) == (4, 0, {ALL, THREE})
    assert result["rows"] == sum(row["players"] for row in after.values())
    for ladder in (FIVE, GO):
        new = {"generation": 2, "position": result["position"], "built_at": now}
        new |= {"chain_hash": after[ladder]["chain_hash"]}
        assert after[ladder] == before[ladder] | new
        assert bytes(after[ladder]["chain_hash"]).hex() == result["chain_hash"]
    with rl.open(db) as ledger:
        status = ledger.status()
    assert (status.behind, status.age_seconds, status.stale) == (0, 0, ())
    assert [(generation.ladders, generation.built) for generation in status.generations] == [(4, 2), (4, 4)]
    live_ladders = select(db, "SELECT ladder, position FROM live_ladders")
    assert {tuple(row) for row in live_ladders} == {(ladder, result["position"]) for ladder in ALL_LADDERS}
    counted = dict(select(db, "SELECT ladder, count(*) FROM live_standings GROUP BY ladder"))
    assert counted == {name: row["players"] for name, row in after.items()}
    assert equals_replay()


def test_rebuild_of_unchanged_log_computes_nothing(db, rebuild, equals_replay):
    """A rebuild of an unchanged log computes nothing; its rows outlive the rebuilds that wrote them."""
    for _ in range(4):
        assert rebuild()["promoted"]
    assert list_built_ladders(db) == set()
    assert {row["build"] for row in load_ladder_rows(db).values()} == {1}
    positions = dict(select(db, "SELECT generation, position FROM generations"))
    assert positions == dict.fromkeys((1, 4, 5), next(iter(positions.values())))
    assert equals_replay()


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
def test_rebuild_computes_exactly_the_ladders_that_may_change(db, rebuild, equals_replay, change):
    """For every kind of event, a rebuild computes exactly the ladders that it may change; all equal a replay."""
    events, changed = CHANGES[change]
    fill(db, events)
    result = rebuild()
    assert (result["promoted"], result["failures"], list_built_ladders(db)) == (True, [], changed)
    assert equals_replay()
    fill(db, [build_club_game("after", "anna ben cleo")])
    rebuild()
    assert list_built_ladders(db) == {ALL, THREE}
    assert equals_replay()


def test_reinstated_game_changes_its_ladders(db, rebuild, equals_replay):
    """A game that was void at the last rebuild and is reinstated is on its ladders again."""
    fill(db, [build_event("game.voided", game_id="five", **REASON)])
    rebuild()
    fill(db, [build_event("game.reinstated", game_id="five", **REASON)])
    rebuild()
    assert list_built_ladders(db) == {ALL, FIVE}
    assert equals_replay()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_year_rebuilt_in_pieces_has_no_findings(ledger_url, rebuild, list_findings, seed):
    """After each piece of a year of lists, corrections, renames and rules, `verify` finds nothing, and some ladders are
    kept.
    """
    events, kept_count = (
        [build_ruleset_event(), build_go_ruleset(), *draw_games(seed, 20, PLAYERS), *draw_year(seed)],
        0,
    )
    step = max(len(events) // 12, 1)
    for start in range(0, len(events), step):
        fill(ledger_url, events[start : start + step])
        rebuild("--history")
        assert list_findings() == []
        kept_count += len(load_ladder_rows(ledger_url).keys() - list_built_ladders(ledger_url))
    assert kept_count


@pytest.mark.slow_cases
@pytest.mark.parametrize("stage", ["copy ladder rows", "promote", "sweep"])
def test_killed_rebuild_keeps_live_rows(db, rebuild, equals_replay, monkeypatch, stage):
    """A rebuild killed before its promotion changes nothing for readers, and the next one keeps the same rows.

    After a rebuild killed later, the next one computes them again.
    """

    class Killed(BaseException):
        pass

    # the first sweep is at the beginning of the rebuild
    remaining = 1 if stage == "sweep" else 0

    def kill(original, *arguments, **options):
        nonlocal remaining
        if remaining == 0:
            raise Killed
        remaining -= 1
        return original(*arguments, **options)

    before = load_ladder_rows(db)
    fill(db, [build_club_game("late", "anna ben cleo")])
    with monkeypatch.context() as patch:
        replace_stage(patch, stage, kill)
        with pytest.raises(Killed):
            rebuild_standings(db)
    if stage != "sweep":
        assert load_ladder_rows(db) == before
    rebuild()
    # ladders of a promotion without a recorded run are computed again
    build = 3 if stage == "sweep" else 1
    assert {row["build"] for ladder, row in load_ladder_rows(db).items() if ladder in (FIVE, GO)} == {build}
    assert equals_replay()


ALTERATIONS = {
    "points": "UPDATE generation_standings SET points = points + 1 WHERE ladder = :ladder AND ordinal = 1",
    "a digest": "UPDATE generation_ladders SET digest = 'x' WHERE ladder = :ladder AND generation = 2",
    "games": "UPDATE generation_ladders SET games = games + 1 WHERE ladder = :ladder AND generation = 2",
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("altered", ALTERATIONS)
def test_altered_kept_rows_are_detected_and_replaced(db, rebuild, list_findings, altered, caplog):
    """`verify` finds altered rows that are kept; `rebuild --check` and a rebuild by name replace them."""
    fill(db, [build_club_game("late", "anna ben cleo")])
    rebuild()
    alter(db, ALTERATIONS[altered], ladder=GO)
    assert any(GO in finding for finding in list_findings())
    assert rebuild("--check")["promoted"]
    assert [GO in line for line in caplog.messages if "differ from a replay; a promotion replaces them" in line] == [
        True
    ]
    assert list_findings() == []
    alter(db, ALTERATIONS["points"], ladder=GO)
    rebuild()
    assert any(GO in finding for finding in list_findings())
    rebuild(GO)
    assert list_findings() == []


def test_ladder_with_lost_rows_is_computed_again(db, rebuild, equals_replay):
    """A ladder with missing rows, or one that claims to have no players, is computed again."""
    alter(db, "DELETE FROM generation_standings WHERE ladder = :ladder AND ordinal = 1", ladder=GO)
    alter(db, "DELETE FROM generation_standings WHERE ladder = :ladder", ladder=FIVE)
    alter(db, "UPDATE generation_ladders SET players = 0 WHERE ladder = :ladder", ladder=FIVE)
    rebuild()
    assert list_built_ladders(db) == {GO, FIVE}
    assert equals_replay()


def test_conflicting_rows_of_a_build_are_found(db, rebuild, list_findings):
    """Kept rows that contradict their build, or are older than it, are conflicts."""
    fill(db, [build_club_game("late", "anna ben cleo")])
    rebuild()
    assert list_findings() == []
    alter(db, "UPDATE generation_ladders SET games = games + 1 WHERE ladder = :ladder AND generation = 2", ladder=GO)
    alter(db, "UPDATE generation_ladders SET position = 1 WHERE ladder = :ladder AND generation = 2", ladder=FIVE)
    conflict = ": the ladder row contradicts an earlier row of its build, or names a later build"
    assert [message.removesuffix(conflict) for message in list_findings() if message.endswith(conflict)] == [FIVE, GO]


@pytest.mark.slow_cases
@pytest.mark.parametrize("doubt", ["another program", "no run", "another history", "some ladders", "a failure"])
def test_doubtful_rows_are_computed_again(db, rebuild, equals_replay, monkeypatch, doubt):
    """Rows are kept only from a full rebuild by this program, in this history; if one ladder fails, others stay."""
    if doubt == "another program":
        replace_stage(monkeypatch, "digest the program", lambda original: "another")
    elif doubt == "no run":
        alter(db, "DELETE FROM runs")
    elif doubt == "another history":
        alter(db, "UPDATE generations SET chain_hash = :hash", hash=b"x" * 32)
    elif doubt == "some ladders":
        rebuild(GO)
    else:
        fill(db, [build_adjustment(GO, "anna", "1000000000", day=1 + n) for n in range(12)])
        assert [failure["ladder"] for failure in rebuild()["failures"]] == [GO]
        result = rebuild()
        assert ([failure["ladder"] for failure in result["failures"]], result["unchanged"]) == ([GO], 1)
        rows = load_ladder_rows(db)
        assert rows[GO]["position"] < rows[ALL]["position"] == result["position"]
        assert {row["build"] for row in rows.values()} == {1}
        return
    rebuild()
    assert list_built_ladders(db) == ALL_LADDERS
    assert equals_replay()


def test_kept_ladders_keep_their_history(db, rebuild, equals_replay):
    """A kept ladder keeps the changes of its build; a first history is computed for all ladders."""
    rebuild("--history")
    assert list_built_ladders(db) == ALL_LADDERS
    fill(db, [build_club_game("late", "anna ben cleo")])
    result = rebuild()
    ((changes,),) = select(db, "SELECT count(*) FROM live_changes")
    assert (list_built_ladders(db), result["changes"]) == ({ALL, THREE}, changes)
    assert equals_replay()
