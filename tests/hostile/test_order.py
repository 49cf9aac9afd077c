"""Events that contradict the history before them: `import` refuses them, and `--restore` and `verify` do so, too, if
SQL put them there.

What one of the three accepts, the others accept, for every type of event.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from builders import build_game_data
from forged_events import append_by_sql

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import CODES
from ratings_ledger.ledger.store.log import Log, head
from ratings_ledger.ledger.store.opening import open_ledger

Ratings = Callable[..., Any]
AT = "2024-02-01T20:00:00.000000Z"
CHESS = "elo-chess/all"
EIGHT_PLAYERS = [f"p{number}" for number in range(1, 9)]


build_chess_data = partial(build_game_data, game="chess")


def build_line(type_name: str, data: dict[str, Any], at: str = AT, **members: Any) -> str:
    return json.dumps({"type": type_name, "occurred_at": at, "data": data, **members})


def build_adjustment(ladder: str, points: str = "5") -> dict[str, Any]:
    return {"ladder": ladder, "player": "anna", "points": points, "reason": "r"}


def build_club_game(game_id: str, **clubs: str) -> dict[str, Any]:
    data = build_chess_data(game_id, *clubs)
    return data | {
        "participants": [{**participant, "club": clubs[participant["player"]]} for participant in data["participants"]]
    }


def build_seed(ladder: str, player: str = "eve", **state: str) -> dict[str, Any]:
    return {"ladder": ladder, "player": player, "state": state or {"points": "1650"}}


def build_clock_data(game_id: str, at: int, **members: Any) -> dict[str, Any]:
    return {"game_id": game_id, "at": at, **members}


CLOCK_PLAYERS = {"players": ["anna", "ben"]}
HISTORY = [
    build_line("game.recorded", build_chess_data("g-1", "anna", "ben")),
    build_line("game.recorded", build_chess_data("g-2", "ben", "cleo")),
    build_line("game.recorded", build_chess_data("g-3", "cleo", "dora")),
    build_line("game.recorded", build_chess_data("g-4", "anna", "cleo")),
    build_line("game.recorded", build_chess_data("g-5", "ben", "dora", league="label")),
    build_line("game.recorded", build_club_game("g-6", anna="north", ben="south")),
    build_line("player.registered", {"player": "francis"}),
    build_line("player.registered", {"player": "eve"}),
    build_line("player.account_changed", {"player": "eve", "account": "free"}),
    build_line("player.renamed", {"player": "dora", "new_player": "dorothea"}, id="r-1"),
    build_line("game.corrected", {"game_id": "g-2", "reason": "r", "game": build_chess_data("g-2", "cleo", "ben")}),
    build_line("game.voided", {"game_id": "g-4", "reason": "r"}),
    build_line("points.adjusted", build_adjustment(CHESS), id="a-1"),
    build_line("points.adjusted", build_adjustment(CHESS, "6"), id="a-2"),
    build_line("event.voided", {"id": "a-2", "reason": "r"}, id="v-1"),
    build_line("ledger.zone_set", {"zone": "Europe/Berlin"}),
    *(
        build_line("league.created", {"league": name, "game": "go", "players_per_game": 2}, id=name)
        for name in ("L1", "L2")
    ),
    *(build_line("league.joined", {"league": "L1", "player": name}) for name in EIGHT_PLAYERS),
    *(build_line("league.joined", {"league": "L2", "player": name}) for name in EIGHT_PLAYERS[:2]),
    build_line("player.seeded", build_seed(CHESS, "frank"), id="s-1"),
    build_line("player.seeded", build_seed(CHESS, "grace", points="5"), id="s-2"),
    build_line("event.voided", {"id": "s-2", "reason": "r"}, id="v-s"),
    build_line("player.seeded", build_seed(CHESS, "grace", points="6")),
    build_line("player.renamed", {"player": "francis", "new_player": "frank"}),
    build_line("club.renamed", {"club": "south", "new_club": "South"}, id="c-1"),
    build_line("clock.started", build_clock_data("c-1", 0, **CLOCK_PLAYERS), id="clock"),
    build_line("clock.heartbeat", build_clock_data("c-1", 10, player="anna")),
    build_line("clock.started", build_clock_data("c-2", 0, **CLOCK_PLAYERS)),
    build_line("clock.stopped", build_clock_data("c-2", 5)),
]


class Case(NamedTuple):
    """An event after `HISTORY`, and the code with which an import refuses it, if it does."""

    type: str
    data: dict[str, Any]
    code: str | None = None


def build_rows(ladder: str, digest: str) -> dict[str, Any]:
    row = {"player": "anna", "points": "1", "games": 1, "qualified": True, "rank": 1}
    return {"ladder": ladder, "digest": digest, "part": 1, "parts": 1, "rows": [row]}


def build_list(ladder: str, **members: Any) -> dict[str, Any]:
    ruleset = f"{ladder.partition('/')[0]}@1"
    return {
        "ladder": ladder,
        "known_at": 5,
        "ruleset": ruleset,
        "digest": DIGEST,
        "row_count": 1,
        "parts": 1,
        **members,
    }


def build_batch(*ranges: list[int]) -> dict[str, Any]:
    return {"name": "a.csv", "ranges": [*ranges], "source": "a.csv", "sha256": "0" * 64}


def build_ruleset(**members: Any) -> dict[str, Any]:
    return {
        "id": "elo-x",
        "version": "1",
        "rule": "pairwise-elo/1",
        "effective_from": "2000-01-01",
        "scope": {"game": ["x"]},
        "params": {"start": 1000, "k_total": 32},
        **members,
    }


DIGEST = "sha256:" + 64 * "0"
CASES = {
    "a game": Case("game.recorded", build_chess_data("new", "anna", "ben")),
    "a game of one person": Case("game.recorded", build_chess_data("new", "dora", "dorothea"), "player-twice"),
    "a game of a league without schedule": Case(
        "game.recorded", build_chess_data("new", "p1", "p2", league="L2", game="go"), "not-scheduled"
    ),
    "a game that is not scheduled": Case(
        "game.recorded", build_chess_data("new", "p1", "p2", league="L1", game="go"), "not-scheduled"
    ),
    "a game of a label": Case("game.recorded", build_chess_data("new", "p1", "p2", league="label")),
    "a correction": Case(
        "game.corrected", {"game_id": "g-1", "reason": "r", "game": build_chess_data("g-1", "ben", "anna")}
    ),
    "a correction of nothing": Case(
        "game.corrected", {"game_id": "x", "reason": "r", "game": build_chess_data("x", "ben", "anna")}, "game-unknown"
    ),
    "a correction to one person": Case(
        "game.corrected",
        {"game_id": "g-1", "reason": "r", "game": build_chess_data("g-1", "dora", "dorothea")},
        "player-twice",
    ),
    "a voided game": Case("game.voided", {"game_id": "g-1", "reason": "r"}),
    "a game voided twice": Case("game.voided", {"game_id": "g-4", "reason": "r"}, "game-voided"),
    "an unknown game voided": Case("game.voided", {"game_id": "x", "reason": "r"}, "game-unknown"),
    "a reinstated game": Case("game.reinstated", {"game_id": "g-4", "reason": "r"}),
    "a live game reinstated": Case("game.reinstated", {"game_id": "g-1", "reason": "r"}, "game-live"),
    "something withdrawn": Case("event.voided", {"id": "a-1", "reason": "r"}),
    "a withdrawal withdrawn": Case("event.voided", {"id": "v-1", "reason": "r"}),
    "a rename withdrawn": Case("event.voided", {"id": "r-1", "reason": "r"}),
    "nothing withdrawn": Case("event.voided", {"id": "x", "reason": "r"}, "event-unknown"),
    "a game withdrawn": Case("event.voided", {"id": "game:g-1", "reason": "r"}, "event-of-game"),
    "something withdrawn twice": Case("event.voided", {"id": "a-2", "reason": "r"}, "event-voided"),
    "a league withdrawn that has players": Case("event.voided", {"id": "L2", "reason": "r"}, "still-needed"),
    "a clock withdrawn that went on": Case("event.voided", {"id": "clock", "reason": "r"}, "still-needed"),
    "a ruleset withdrawn that is needed": Case("event.voided", {"id": "ELO", "reason": "r"}, "still-needed"),
    "rows withdrawn that are needed": Case("event.voided", {"id": "ROWS", "reason": "r"}, "still-needed"),
    "a rename": Case("player.renamed", {"player": "eve", "new_player": "eva"}),
    "a rename of nobody": Case("player.renamed", {"player": "nobody", "new_player": "x"}, "player-unknown"),
    "a rename of two who met": Case("player.renamed", {"player": "anna", "new_player": "ben"}, "players-met"),
    "a rename of two in a league": Case("player.renamed", {"player": "p1", "new_player": "p8"}, "players-met"),
    "a second rename": Case("player.renamed", {"player": "dora", "new_player": "x"}, "renamed-already"),
    "a rename in a circle": Case("player.renamed", {"player": "dorothea", "new_player": "dora"}, "rename-loop"),
    "a rename after a voided game": Case("player.renamed", {"player": "anna", "new_player": "cleo"}),
    "a registration": Case("player.registered", {"player": "new"}),
    "an account of a new player": Case("player.account_changed", {"player": "new", "account": "free"}),
    "an adjustment": Case("points.adjusted", build_adjustment(CHESS)),
    "an adjustment of no ruleset": Case("points.adjusted", build_adjustment("elo-go/all"), "unknown-ladder"),
    "an adjustment of no ladder": Case("points.adjusted", build_adjustment("elo-chess/a/b"), "unknown-ladder"),
    "an adjustment of a month": Case(
        "points.adjusted", build_adjustment("catan-monthly/b/basic/2024-01"), "ladder-not-adjustable"
    ),
    "an adjustment too fine": Case("points.adjusted", build_adjustment(CHESS, "0.000000001"), "finer-than-scale"),
    "a seed": Case("player.seeded", build_seed(CHESS)),
    "a second seed": Case("player.seeded", build_seed(CHESS, "frank", points="1"), "seed-exists"),
    "a seed of a renamed player": Case("player.seeded", build_seed(CHESS, "francis", points="1"), "seed-exists"),
    "a seed of another column": Case("player.seeded", build_seed(CHESS, rating="1"), "seed-column"),
    "a seed too fine": Case("player.seeded", build_seed(CHESS, points="0.000000001"), "finer-than-scale"),
    "a seed of no ladder": Case("player.seeded", build_seed("elo-go/all"), "unknown-ladder"),
    "a seed of a month": Case("player.seeded", build_seed("catan-monthly/b/basic/2024-01"), "ladder-not-adjustable"),
    "a rename of two with seeds": Case("player.renamed", {"player": "grace", "new_player": "frank"}, "seeds-differ"),
    "a withdrawn seed in force again": Case("event.voided", {"id": "v-s", "reason": "r"}, "seed-exists"),
    "a club's new name": Case("club.renamed", {"club": "north", "new_club": "North"}),
    "an unknown club": Case("club.renamed", {"club": "anna", "new_club": "North"}, "club-unknown"),
    "a club's second new name": Case("club.renamed", {"club": "south", "new_club": "x"}, "renamed-already"),
    "a club's name in a circle": Case("club.renamed", {"club": "South", "new_club": "south"}, "rename-loop"),
    "clubs that met": Case("club.renamed", {"club": "north", "new_club": "South"}),
    "a seed withdrawn": Case("event.voided", {"id": "s-1", "reason": "r"}),
    "a club's name withdrawn": Case("event.voided", {"id": "c-1", "reason": "r"}),
    "a ruleset": Case("ruleset.published", build_ruleset()),
    "a version with another partition": Case(
        "ruleset.published", build_ruleset(id="elo-chess", version="9", partition={"by": ["city"]}), "partition-changed"
    ),
    "a league": Case("league.created", {"league": "L9", "game": "go", "players_per_game": 2}),
    "a league twice": Case("league.created", {"league": "L1", "game": "go", "players_per_game": 2}, "league-exists"),
    "a league of a label": Case(
        "league.created", {"league": "label", "game": "go", "players_per_game": 2}, "league-exists"
    ),
    "a ninth player": Case("league.joined", {"league": "L1", "player": "p9"}, "league-full"),
    "a third player": Case("league.joined", {"league": "L2", "player": "p9"}),
    "a player twice": Case("league.joined", {"league": "L2", "player": "p1"}, "league-joined"),
    "a player of no league": Case("league.joined", {"league": "L9", "player": "p1"}, "league-unknown"),
    "a schedule of no league": Case(
        "league.scheduled",
        {"league": "L9", "seed": "1", "games": [{"game_id": "x", "seats": ["p1", "p2"]}]},
        "league-unknown",
    ),
    "a schedule of two": Case(
        "league.scheduled",
        {"league": "L2", "seed": "1", "games": [{"game_id": "x", "seats": ["p1", "p2"]}]},
        "league-not-full",
    ),
    "a second schedule": Case(
        "league.scheduled",
        {"league": "L1", "seed": "1", "games": [{"game_id": "x", "seats": ["p1", "p2"]}]},
        "league-scheduled",
    ),
    "a zone": Case("ledger.zone_set", {"zone": "UTC"}),
    "a schedule of lists": Case("list.scheduled", {"ladder": "elo-chess/all", "every": "month"}),
    "a schedule of no ladder": Case("list.scheduled", {"ladder": "nowhere/all", "every": "month"}, "unknown-ladder"),
    "rows": Case("list.rows", build_rows("nowhere/all", DIGEST)),
    "a list of no rows": Case("list.published", build_list(CHESS), "bad-list"),
    "a list of no ladder": Case("list.published", build_list("nowhere/all"), "bad-list"),
    "a list of the future": Case("list.published", build_list(CHESS, known_at=10_000), "bad-list"),
    "a list twice": Case("list.published", {"LIST": CHESS}, "list-exists"),
    "a clock": Case("clock.started", build_clock_data("c-3", 0, **CLOCK_PLAYERS)),
    "a clock started twice": Case("clock.started", build_clock_data("c-1", 20, **CLOCK_PLAYERS), "clock-started-twice"),
    "an offer": Case("clock.offered", build_clock_data("c-1", 20, player="anna", choice="fortune")),
    "an offer of no clock": Case(
        "clock.offered", build_clock_data("c-9", 0, player="anna", choice="fortune"), "clock-not-started"
    ),
    "a decision": Case("clock.decided", build_clock_data("c-1", 20, player="anna"), "clock-choice-missing"),
    "an auction": Case("clock.auction_started", build_clock_data("c-1", 20, player="anna")),
    "a heartbeat": Case("clock.heartbeat", build_clock_data("c-1", 20, player="anna")),
    "a heartbeat too late": Case("clock.heartbeat", build_clock_data("c-2", 20, player="anna"), "clock-stopped"),
    "a heartbeat too early": Case("clock.heartbeat", build_clock_data("c-1", 1, player="anna"), "clock-time-backwards"),
    "a heartbeat of a stranger": Case(
        "clock.heartbeat", build_clock_data("c-1", 20, player="eve"), "clock-player-unknown"
    ),
    "a question": Case("clock.pause_asked", build_clock_data("c-1", 20, player="anna")),
    "an answer": Case(
        "clock.pause_answered", build_clock_data("c-1", 20, player="anna", answer="yes"), "clock-no-question"
    ),
    "a turn": Case("clock.turn_ended", build_clock_data("c-1", 20)),
    "a resumption": Case("clock.resume_asked", build_clock_data("c-1", 20, player="anna"), "clock-not-paused"),
    "a leaving": Case("clock.player_left", build_clock_data("c-1", 20, player="anna")),
    "a stop": Case("clock.stopped", build_clock_data("c-1", 20)),
    "a stop of no clock": Case("clock.stopped", build_clock_data("c-9", 20), "clock-not-started"),
    "a batch": Case("import.recorded", build_batch([1, 2], [5, 5])),
    "a batch that reaches into the future": Case("import.recorded", build_batch([1, 10_000]), "bad-batch"),
}


@pytest.mark.slow
def test_cases_cover_every_event_type() -> None:
    """The cases cover every type of event, and their codes exist."""
    assert {case.type for case in CASES.values()} == {*TYPES}
    assert {case.code for case in CASES.values()} <= {*CODES, None}


def create_history_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger with the history, a published list and a schedule."""
    assert ratings("init", db=url).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "chess", db=url).exit_code == 0
    result = ratings("import", "-", db=url, input="\n".join(HISTORY))
    assert result.exit_code == 0, result.stderr
    assert ratings("league", "schedule", "L1", "--seed", "1", db=url).exit_code == 0
    assert ratings("publish", CHESS, db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_history_ledger)


def resolve_data(url: str, case: Case) -> tuple[dict[str, Any], str]:
    """Return the data of a case with ids from the ledger, and its time."""
    data = case.data
    with open_ledger(url).reading() as connection:
        for position in range(1, head(connection).position + 1):
            event = Log(connection).event(Log(connection).find_event_id(position) or "")
            assert event is not None
            if data.get("id") == "ELO" and event.type == "ruleset.published" and event.data["id"] == "elo-chess":
                return {**data, "id": event.event_id}, AT
            if data.get("id") == "ROWS" and event.type == "list.rows":
                return {**data, "id": event.event_id}, AT
            if "LIST" in data and event.type == "list.published":
                return event.data, format_instant(event.occurred_at)
    return data, AT


def restore_export(ratings: Ratings, url: str, folder: Path) -> Any:
    """Export a ledger, restore the export into a new ledger, and return the result."""
    backup, new = folder / "backup.jsonl", f"sqlite:///{folder / 'restored.db'}"
    assert ratings("export", "events", "-o", backup, db=url).exit_code == 0
    assert ratings("init", "--no-rules", db=new).exit_code == 0
    result = ratings("import", "--restore", backup, "--format", "json", db=new)
    assert result.exit_code in (0, 1), result
    count = json.loads(ratings("status", "--format", "json", db=new).stdout)["head"].partition(":")[0]
    assert (count == "0") == bool(result.exit_code), "a restore takes all lines or none"
    return result


@pytest.mark.slow
def test_valid_history_verifies_and_restores(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A valid history passes `verify` and can be restored."""
    assert ratings("verify", db=db) == (0, "", "")
    assert restore_export(ratings, db, tmp_path).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("what", CASES)
def test_import_restore_and_verify_agree(
    what: str, db: str, ratings: Ratings, tmp_path: Path, store_kind: str, at_length: bool
) -> None:
    """`--restore` and `verify` accept an event written by SQL exactly if `import` accepts it."""
    if store_kind == "postgres" and not at_length and "twice" not in what:
        pytest.skip("at length")
    case = CASES[what]
    data, at = resolve_data(db, case)
    event_line = build_line(case.type, data, at, **({} if case.type == "game.recorded" else {"id": "forged"}))
    if case.type == "import.recorded":  # a batch must be at its own position of the log
        with open_ledger(db).reading() as connection:
            event_line = build_line(case.type, data, at, id="forged", position=head(connection).position + 1)
    import_result = ratings("import", "-", "--dry-run", "--format", "json", db=db, input=event_line)
    assert [rejection["code"] for rejection in json.loads(import_result.stdout)["rejected"]] == [case.code] * bool(
        case.code
    )

    with open_ledger(db).writing() as connection:
        append_by_sql(connection, case.type, data, at)
        position = head(connection).position
    verify_result = ratings("verify", "--format", "json", db=db)
    findings = [(finding["code"], finding["position"]) for finding in json.loads(verify_result.stdout)["findings"]]
    restore_result = restore_export(ratings, db, tmp_path)
    codes = [(rejection["code"], rejection["line"]) for rejection in json.loads(restore_result.stdout)["rejected"]]

    if case.code is None:
        assert (verify_result.exit_code, findings, restore_result.exit_code, codes) == (0, [], 0, [])
    else:
        assert len(findings) == 1, findings
        assert findings[0][0] in ("meaning", "supersedes", "published")
        assert findings[0][1] == position
        assert (verify_result.exit_code, restore_result.exit_code, codes) == (1, 1, [("restore-mismatch", position)])


@pytest.mark.slow_cases
def test_each_dependent_event_is_named(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """`verify` names both an event that does not fit and the events that depend on it.

    Here a rename of a nonexistent player is written by SQL and then withdrawn.
    """
    with open_ledger(db).writing() as connection:
        append_by_sql(connection, "player.renamed", {"player": "nobody", "new_player": "somebody"}, AT)
        rename_position = head(connection).position
        append_by_sql(connection, "event.voided", {"id": "forged", "reason": "r"}, AT, event_id="v-2")
    result = ratings("verify", "--format", "json", db=db)
    findings = [(finding["code"], finding["position"]) for finding in json.loads(result.stdout)["findings"]]
    assert findings == [("meaning", rename_position), ("meaning", rename_position + 1)]
    assert restore_export(ratings, db, tmp_path).exit_code == 1
