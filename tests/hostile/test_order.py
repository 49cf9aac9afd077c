"""A record that no event could say where it stands: `import` refuses it, and so do `--restore` and `verify`, if SQL put
it there; and what one of them takes, the others take. Of every type of event."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from builders import build_game_data
from forged_events import append

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import CODES
from ratings_ledger.ledger.store.log import Log, head
from ratings_ledger.ledger.store.opening import open_ledger

Ratings = Callable[..., Any]
AT = "2024-02-01T20:00:00.000000Z"
CHESS = "elo-chess/all"
EIGHT = [f"p{number}" for number in range(1, 9)]


game = partial(build_game_data, game="chess")


def line(type_name: str, data: dict[str, Any], at: str = AT, **members: Any) -> str:
    return json.dumps({"type": type_name, "occurred_at": at, "data": data, **members})


def adjusted(ladder: str, points: str = "5") -> dict[str, Any]:
    return {"ladder": ladder, "player": "anna", "points": points, "reason": "r"}


def of_clubs(game_id: str, **clubs: str) -> dict[str, Any]:
    data = game(game_id, *clubs)
    return data | {"participants": [{**one, "club": clubs[one["player"]]} for one in data["participants"]]}


def seeded(ladder: str, player: str = "eve", **state: str) -> dict[str, Any]:
    return {"ladder": ladder, "player": player, "state": state or {"points": "1650"}}


def clock(game_id: str, at: int, **members: Any) -> dict[str, Any]:
    return {"game_id": game_id, "at": at, **members}


STARTED = {"players": ["anna", "ben"]}
HISTORY = [
    line("game.recorded", game("g-1", "anna", "ben")),
    line("game.recorded", game("g-2", "ben", "cleo")),
    line("game.recorded", game("g-3", "cleo", "dora")),
    line("game.recorded", game("g-4", "anna", "cleo")),
    line("game.recorded", game("g-5", "ben", "dora", league="label")),
    line("game.recorded", of_clubs("g-6", anna="north", ben="south")),
    line("player.registered", {"player": "francis"}),
    line("player.registered", {"player": "eve"}),
    line("player.account_changed", {"player": "eve", "account": "free"}),
    line("player.renamed", {"player": "dora", "new_player": "dorothea"}, id="r-1"),
    line("game.corrected", {"game_id": "g-2", "reason": "r", "game": game("g-2", "cleo", "ben")}),
    line("game.voided", {"game_id": "g-4", "reason": "r"}),
    line("points.adjusted", adjusted(CHESS), id="a-1"),
    line("points.adjusted", adjusted(CHESS, "6"), id="a-2"),
    line("event.voided", {"id": "a-2", "reason": "r"}, id="v-1"),
    line("ledger.zone_set", {"zone": "Europe/Berlin"}),
    *(line("league.created", {"league": name, "game": "go", "players_per_game": 2}, id=name) for name in ("L1", "L2")),
    *(line("league.joined", {"league": "L1", "player": name}) for name in EIGHT),
    *(line("league.joined", {"league": "L2", "player": name}) for name in EIGHT[:2]),
    line("player.seeded", seeded(CHESS, "frank"), id="s-1"),
    line("player.seeded", seeded(CHESS, "grace", points="5"), id="s-2"),
    line("event.voided", {"id": "s-2", "reason": "r"}, id="v-s"),
    line("player.seeded", seeded(CHESS, "grace", points="6")),
    line("player.renamed", {"player": "francis", "new_player": "frank"}),
    line("club.renamed", {"club": "south", "new_club": "South"}, id="c-1"),
    line("clock.started", clock("c-1", 0, **STARTED), id="clock"),
    line("clock.heartbeat", clock("c-1", 10, player="anna")),
    line("clock.started", clock("c-2", 0, **STARTED)),
    line("clock.stopped", clock("c-2", 5)),
]  # fmt: skip


class Case(NamedTuple):
    """An event behind that history, and the code with which an import refuses it, if it does."""

    type: str
    data: dict[str, Any]
    code: str | None = None


def rows(ladder: str, digest: str) -> dict[str, Any]:
    row = {"player": "anna", "points": "1", "games": 1, "qualified": True, "rank": 1}
    return {"ladder": ladder, "digest": digest, "part": 1, "parts": 1, "rows": [row]}


def listed(ladder: str, **members: Any) -> dict[str, Any]:
    ruleset = f"{ladder.partition('/')[0]}@1"
    return {"ladder": ladder, "known_at": 5, "ruleset": ruleset, "digest": DIGEST, "row_count": 1, "parts": 1,
            **members}  # fmt: skip


def batch(*ranges: list[int]) -> dict[str, Any]:
    return {"name": "a.csv", "ranges": [*ranges], "source": "a.csv", "sha256": "0" * 64}


def ruleset(**members: Any) -> dict[str, Any]:
    return {"id": "elo-x", "version": "1", "rule": "pairwise-elo/1", "effective_from": "2000-01-01",
            "scope": {"game": ["x"]}, "params": {"start": 1000, "k_total": 32}, **members}  # fmt: skip


DIGEST = "sha256:" + 64 * "0"
CASES = {
    "a game": Case("game.recorded", game("new", "anna", "ben")),
    "a game of one person": Case("game.recorded", game("new", "dora", "dorothea"), "player-twice"),
    "a game of a league without schedule": Case(
        "game.recorded", game("new", "p1", "p2", league="L2", game="go"), "not-scheduled"),
    "a game that is not scheduled": Case(
        "game.recorded", game("new", "p1", "p2", league="L1", game="go"), "not-scheduled"),
    "a game of a label": Case("game.recorded", game("new", "p1", "p2", league="label")),
    "a correction": Case("game.corrected", {"game_id": "g-1", "reason": "r", "game": game("g-1", "ben", "anna")}),
    "a correction of nothing": Case(
        "game.corrected", {"game_id": "x", "reason": "r", "game": game("x", "ben", "anna")}, "game-unknown"),
    "a correction to one person": Case(
        "game.corrected", {"game_id": "g-1", "reason": "r", "game": game("g-1", "dora", "dorothea")}, "player-twice"),
    "a voided game": Case("game.voided", {"game_id": "g-1", "reason": "r"}),
    "a game voided twice": Case("game.voided", {"game_id": "g-4", "reason": "r"}, "game-voided"),
    "a voided game that is none": Case("game.voided", {"game_id": "x", "reason": "r"}, "game-unknown"),
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
    "an account of somebody new": Case("player.account_changed", {"player": "new", "account": "free"}),
    "an adjustment": Case("points.adjusted", adjusted(CHESS)),
    "an adjustment of no ruleset": Case("points.adjusted", adjusted("elo-go/all"), "unknown-ladder"),
    "an adjustment of no ladder": Case("points.adjusted", adjusted("elo-chess/a/b"), "unknown-ladder"),
    "an adjustment of a month": Case(
        "points.adjusted", adjusted("catan-monthly/b/basic/2024-01"), "ladder-not-adjustable"),
    "an adjustment too fine": Case("points.adjusted", adjusted(CHESS, "0.000000001"), "finer-than-scale"),
    "a seed": Case("player.seeded", seeded(CHESS)),
    "a second seed": Case("player.seeded", seeded(CHESS, "frank", points="1"), "seed-exists"),
    "a seed of somebody who has a name": Case("player.seeded", seeded(CHESS, "francis", points="1"), "seed-exists"),
    "a seed of another column": Case("player.seeded", seeded(CHESS, rating="1"), "seed-column"),
    "a seed too fine": Case("player.seeded", seeded(CHESS, points="0.000000001"), "finer-than-scale"),
    "a seed of no ladder": Case("player.seeded", seeded("elo-go/all"), "unknown-ladder"),
    "a seed of a month": Case("player.seeded", seeded("catan-monthly/b/basic/2024-01"), "ladder-not-adjustable"),
    "a rename of two with seeds": Case("player.renamed", {"player": "grace", "new_player": "frank"}, "seeds-differ"),
    "a withdrawn seed in force again": Case("event.voided", {"id": "v-s", "reason": "r"}, "seed-exists"),
    "a club's new name": Case("club.renamed", {"club": "north", "new_club": "North"}),
    "a club that is none": Case("club.renamed", {"club": "anna", "new_club": "North"}, "club-unknown"),
    "a club's second new name": Case("club.renamed", {"club": "south", "new_club": "x"}, "renamed-already"),
    "a club's name in a circle": Case("club.renamed", {"club": "South", "new_club": "south"}, "rename-loop"),
    "clubs that met": Case("club.renamed", {"club": "north", "new_club": "South"}),
    "a seed withdrawn": Case("event.voided", {"id": "s-1", "reason": "r"}),
    "a club's name withdrawn": Case("event.voided", {"id": "c-1", "reason": "r"}),
    "a ruleset": Case("ruleset.published", ruleset()),
    "a version with another partition": Case(
        "ruleset.published", ruleset(id="elo-chess", version="9", partition={"by": ["city"]}), "partition-changed"),
    "a league": Case("league.created", {"league": "L9", "game": "go", "players_per_game": 2}),
    "a league twice": Case("league.created", {"league": "L1", "game": "go", "players_per_game": 2}, "league-exists"),
    "a league of a label": Case(
        "league.created", {"league": "label", "game": "go", "players_per_game": 2}, "league-exists"),
    "a ninth player": Case("league.joined", {"league": "L1", "player": "p9"}, "league-full"),
    "a third player": Case("league.joined", {"league": "L2", "player": "p9"}),
    "a player twice": Case("league.joined", {"league": "L2", "player": "p1"}, "league-joined"),
    "a player of no league": Case("league.joined", {"league": "L9", "player": "p1"}, "league-unknown"),
    "a schedule of no league": Case(
        "league.scheduled", {"league": "L9", "seed": "1", "games": [{"game_id": "x", "seats": ["p1", "p2"]}]},
        "league-unknown"),
    "a schedule of two": Case(
        "league.scheduled", {"league": "L2", "seed": "1", "games": [{"game_id": "x", "seats": ["p1", "p2"]}]},
        "league-not-full"),
    "a second schedule": Case(
        "league.scheduled", {"league": "L1", "seed": "1", "games": [{"game_id": "x", "seats": ["p1", "p2"]}]},
        "league-scheduled"),
    "a zone": Case("ledger.zone_set", {"zone": "UTC"}),
    "a schedule of lists": Case("list.scheduled", {"ladder": "elo-chess/all", "every": "month"}),
    "a schedule of no ladder": Case("list.scheduled", {"ladder": "nowhere/all", "every": "month"}, "unknown-ladder"),
    "rows": Case("list.rows", rows("nowhere/all", DIGEST)),
    "a list of no rows": Case("list.published", listed(CHESS), "bad-list"),
    "a list of no ladder": Case("list.published", listed("nowhere/all"), "bad-list"),
    "a list of the future": Case("list.published", listed(CHESS, known_at=10_000), "bad-list"),
    "a list twice": Case("list.published", {"LIST": CHESS}, "list-exists"),
    "a clock": Case("clock.started", clock("c-3", 0, **STARTED)),
    "a clock started twice": Case("clock.started", clock("c-1", 20, **STARTED), "clock-started-twice"),
    "an offer": Case("clock.offered", clock("c-1", 20, player="anna", choice="fortune")),
    "an offer of no clock": Case("clock.offered", clock("c-9", 0, player="anna", choice="fortune"),
                                 "clock-not-started"),
    "a decision": Case("clock.decided", clock("c-1", 20, player="anna"), "clock-choice-missing"),
    "an auction": Case("clock.auction_started", clock("c-1", 20, player="anna")),
    "a heartbeat": Case("clock.heartbeat", clock("c-1", 20, player="anna")),
    "a heartbeat too late": Case("clock.heartbeat", clock("c-2", 20, player="anna"), "clock-stopped"),
    "a heartbeat too early": Case("clock.heartbeat", clock("c-1", 1, player="anna"), "clock-time-backwards"),
    "a heartbeat of a stranger": Case("clock.heartbeat", clock("c-1", 20, player="eve"), "clock-player-unknown"),
    "a question": Case("clock.pause_asked", clock("c-1", 20, player="anna")),
    "an answer": Case("clock.pause_answered", clock("c-1", 20, player="anna", answer="yes"), "clock-no-question"),
    "a turn": Case("clock.turn_ended", clock("c-1", 20)),
    "a resumption": Case("clock.resume_asked", clock("c-1", 20, player="anna"), "clock-not-paused"),
    "a leaving": Case("clock.player_left", clock("c-1", 20, player="anna")),
    "a stop": Case("clock.stopped", clock("c-1", 20)),
    "a stop of no clock": Case("clock.stopped", clock("c-9", 20), "clock-not-started"),
    "a batch": Case("import.recorded", batch([1, 2], [5, 5])),
    "a batch that reaches into the future": Case("import.recorded", batch([1, 10_000]), "bad-batch"),
}  # fmt: skip


@pytest.mark.slow
def test_every_event_type_is_covered() -> None:
    """The cases cover every type of event, and their codes exist."""
    assert {case.type for case in CASES.values()} == {*TYPES}
    assert {case.code for case in CASES.values()} <= {*CODES, None}


def make_ledger(ratings: Ratings, url: str) -> None:
    """The history, with a published list and a schedule."""
    assert ratings("init", db=url).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "chess", db=url).exit_code == 0
    told = ratings("import", "-", db=url, input="\n".join(HISTORY))
    assert told.exit_code == 0, told.stderr
    assert ratings("league", "schedule", "L1", "--seed", "1", db=url).exit_code == 0
    assert ratings("publish", CHESS, db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=make_ledger)


def told_data(url: str, case: Case) -> tuple[dict[str, Any], str]:
    """The data of a case, with the ids that only the ledger knows, and its time."""
    data = case.data
    with open_ledger(url).reading() as connection:
        for page in range(1, head(connection).position + 1):
            event = Log(connection).event(Log(connection).find_event_id(page) or "")
            assert event is not None
            if data.get("id") == "ELO" and event.type == "ruleset.published" and event.data["id"] == "elo-chess":
                return {**data, "id": event.event_id}, AT
            if data.get("id") == "ROWS" and event.type == "list.rows":
                return {**data, "id": event.event_id}, AT
            if "LIST" in data and event.type == "list.published":
                return event.data, format_instant(event.occurred_at)
    return data, AT


def restored(ratings: Ratings, url: str, folder: Path) -> Any:
    """What `--restore` of an export of a ledger comes to."""
    backup, new = folder / "backup.jsonl", f"sqlite:///{folder / 'restored.db'}"
    assert ratings("export", "events", "-o", backup, db=url).exit_code == 0
    assert ratings("init", "--no-rules", db=new).exit_code == 0
    done = ratings("import", "--restore", backup, "--format", "json", db=new)
    assert done.exit_code in (0, 1), done
    count = json.loads(ratings("status", "--format", "json", db=new).stdout)["head"].partition(":")[0]
    assert (count == "0") == bool(done.exit_code), "a restore takes all lines or none"
    return done


@pytest.mark.slow
def test_sound_history_verifies_and_restores(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A sound history passes `verify` and can be restored."""
    assert ratings("verify", db=db) == (0, "", "")
    assert restored(ratings, db, tmp_path).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("what", CASES)
def test_import_restore_and_verify_agree(
    what: str, db: str, ratings: Ratings, tmp_path: Path, store_kind: str, at_length: bool
) -> None:
    """`--restore` and `verify` accept an event written by SQL exactly when `import` would."""
    if store_kind == "postgres" and not at_length and "twice" not in what:
        pytest.skip("at length")
    case = CASES[what]
    data, at = told_data(db, case)
    given = line(case.type, data, at, **({} if case.type == "game.recorded" else {"id": "forged"}))
    if case.type == "import.recorded":  # only one that stands in the log of which it speaks is taken
        with open_ledger(db).reading() as connection:
            given = line(case.type, data, at, id="forged", position=head(connection).position + 1)
    imported = ratings("import", "-", "--dry-run", "--format", "json", db=db, input=given)
    assert [one["code"] for one in json.loads(imported.stdout)["rejected"]] == [case.code] * bool(case.code)

    with open_ledger(db).writing() as connection:
        append(connection, case.type, data, at)
        position = head(connection).position
    verified = ratings("verify", "--format", "json", db=db)
    found = [(one["code"], one["position"]) for one in json.loads(verified.stdout)["findings"]]
    done = restored(ratings, db, tmp_path)
    codes = [(one["code"], one["line"]) for one in json.loads(done.stdout)["rejected"]]

    if case.code is None:
        assert (verified.exit_code, found, done.exit_code, codes) == (0, [], 0, [])
    else:
        assert len(found) == 1, found
        assert found[0][0] in ("meaning", "supersedes", "published")
        assert found[0][1] == position
        assert (verified.exit_code, done.exit_code, codes) == (1, 1, [("restore-mismatch", position)])


@pytest.mark.slow_cases
def test_each_dependent_event_is_named(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """`verify` names both an event that does not fit and those that depend on it.

    Here a rename of a nonexistent player is written by SQL and then withdrawn.
    """
    with open_ledger(db).writing() as connection:
        append(connection, "player.renamed", {"player": "nobody", "new_player": "somebody"}, AT)
        first = head(connection).position
        append(connection, "event.voided", {"id": "forged", "reason": "r"}, AT, event_id="v-2")
    verified = ratings("verify", "--format", "json", db=db)
    found = [(one["code"], one["position"]) for one in json.loads(verified.stdout)["findings"]]
    assert found == [("meaning", first), ("meaning", first + 1)]
    assert restored(ratings, db, tmp_path).exit_code == 1
