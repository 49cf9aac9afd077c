"""`rebuild` and `status`: what they print about a rebuild, its steps and the kept generations."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import run_on_terminal

from ratings_ledger.cli import interrupts
from ratings_ledger.cli.commands import rebuild
from ratings_ledger.cli.output import progress
from ratings_ledger.ledger.events.canonical import parse_instant

ROOT = Path(__file__).parents[2]
ELO_LADDER = "club-catan-elo/all"

Ratings = Callable[..., Any]


@pytest.fixture
def db(tmp_path: Path, ratings: Ratings) -> str:
    """Create a ledger with three games, on two ladders."""
    name = str(tmp_path / "ratings.db")
    assert ratings("init", db=name).exit_code == 0
    for number in range(3):
        record_game(ratings, name, f"g-{number}")
    return name


def record_game(ratings: Ratings, db: str, game_id: str) -> None:
    """Record a game of Catan by id."""
    arguments = ("--game", "club-catan", "--game-id", game_id, "--at", "2020-01-01T12:00Z", "anna", "ben", "cleo")
    assert ratings("record", *arguments, db=db).exit_code == 0


def import_failing_adjustments(ratings: Ratings, db: str, ladder: str = ELO_LADDER) -> None:
    """Import adjustments with which every replay of the ladder fails."""
    data = {"ladder": ladder, "player": "anna", "points": "1000000000", "reason": "r"}
    event = {"type": "points.adjusted", "occurred_at": "2020-02-01T12:00:00Z", "data": data}
    lines = [json.dumps({"id": f"{ladder} {number}", **event}) for number in range(10)]
    assert ratings("import", "-", db=db, input="\n".join(lines)).exit_code == 0


def read_json(ratings: Ratings, db: str, *arguments: str) -> Any:
    return json.loads(ratings(*arguments, "--format", "json", db=db).stdout)


def read_log(stderr: str) -> list[dict[str, Any]]:
    """Return the lines of a JSON log; each has a time and the seconds since the start, which never decrease."""
    lines = [json.loads(line) for line in stderr.splitlines()]
    for line in lines:
        parse_instant(line.pop("time"))
    seconds = [line.pop("seconds") for line in lines]
    assert seconds == sorted(seconds)
    return lines


def test_rebuild_reports_its_work(db: str, ratings: Ratings) -> None:
    """`rebuild` prints what was built, what was checked and what stayed unchanged."""
    first, second = ratings("rebuild", db=db), ratings("rebuild", ELO_LADDER, "--check", db=db)

    assert re.fullmatch(
        r"generation 1: 2 ladders, 6 standings from 3 games at position \d+, in \d+\.\d s\n", first.stdout
    )
    assert re.fullmatch(
        r"generation 2: 1 ladder, 3 standings from 3 games at position \d+, checked, in .* s; 1 ladder unchanged\n",
        second.stdout,
    )
    assert (first.stderr, second.stderr) == ("", "")


@pytest.mark.slow
def test_status_lists_generations(db: str, ratings: Ratings) -> None:
    """`status` lists the generations that are kept and marks the live one."""
    assert read_json(ratings, db, "status")["generations"] == []
    for number, ladders in enumerate([(), (ELO_LADDER,), ()]):
        assert ratings("rebuild", *ladders, "--keep", 3, db=db).exit_code == 0
        record_game(ratings, db, f"late-{number}")
    status = read_json(ratings, db, "status")

    assert [
        (entry["generation"], entry["ladders"], entry["built"], entry["live"]) for entry in status["generations"]
    ] == [(3, 2, 2, True), (2, 2, 1, False), (1, 2, 2, False)]
    assert [status["position"] - entry["position"] for entry in status["generations"]] == [1, 3, 3]
    assert status["generation"] == {
        "generation": 3,
        "position": status["position"] - 1,
        "behind": 1,
        "finished_at": status["generations"][0]["finished_at"],
        "finished": status["generations"][0]["finished_at"][:19] + "Z",
        "age_seconds": status["age_seconds"],
    }
    lines = ratings("status", db=db).stdout.splitlines()
    assert re.search(r"^generation 3 +live, position [\d,]+, 2 ladders, 2\d{3}-.* UTC$", lines[-6])
    assert re.search(r"^generation 2 +position [\d,]+, 2 ladders, 1 of them built, 2", lines[-5])


@pytest.mark.slow
def test_rollback_makes_previous_live(db: str, ratings: Ratings) -> None:
    """Each rollback makes the previous generation live, until none is left."""
    assert ratings("rebuild", "--rollback", db=db).exit_code == 1
    positions = []
    for number in range(3):
        assert ratings("rebuild", "--keep", 3, db=db).exit_code == 0
        positions.append(read_json(ratings, db, "status")["position"])
        record_game(ratings, db, f"late-{number}")
    result = ratings("rebuild", "--rollback", db=db)
    second_report = read_json(ratings, db, "rebuild", "--rollback")
    refused = ratings("rebuild", "--rollback", db=db)

    assert result == (
        0,
        f"generation 2, built at position {positions[1]}, is live again; generation 3 is deleted\n",
        "",
    )
    assert (second_report["generation"], second_report["position"], second_report["given_up"]) == (1, positions[0], 2)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "no earlier generation to go back to; only generation 1 is stored" in refused.stderr
    assert [entry["generation"] for entry in read_json(ratings, db, "status")["generations"]] == [1]
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.parametrize("arguments", [[ELO_LADDER], ["--check"], ["--keep", "2"]])
def test_rollback_with_rebuild_options_is_refused(arguments: list[str], db: str, ratings: Ratings) -> None:
    """`--rollback` with arguments that only a rebuild takes is a usage error, and so is `--keep` below 2."""
    assert ratings("rebuild", "--rollback", *arguments, db=db).exit_code == 2
    assert ratings("rebuild", "--keep", "1", db=db).exit_code == 2


@pytest.mark.slow
def test_json_log_is_all_objects(db: str, ratings: Ratings) -> None:
    """With `--log json`, each line on stderr is a JSON object for one step."""
    result = ratings("rebuild", "--log", "json", "--check", "--format", "json", db=db)
    lines = read_log(result.stderr)

    position = read_json(ratings, db, "status")["position"]
    assert [line["event"] for line in lines] == [
        "reading",
        "planning",
        "building",
        "building",
        "checking",
        "promoting",
        "done",
    ]
    assert lines[1] == {"event": "planning", "generation": 1, "position": position, "games": 3}
    assert lines[3] == {"event": "building", "ladders_done": 2, "ladders": 2, "standings": 6, "failures": 0}
    assert lines[-1] == {
        "event": "done",
        "generation": 1,
        "position": position,
        "ladders": 2,
        "rows": 6,
        "games": 3,
        "failures": 0,
        "unchanged": 0,
        "differing": 0,
        "promoted": True,
    }
    assert json.loads(result.stdout) == {
        "generation": 1,
        "position": position,
        "chain_hash": read_json(ratings, db, "status")["head"].split(":")[1],
        "ladders": 2,
        "rows": 6,
        "games": 3,
        "failures": [],
        "unchanged": 0,
        "differing": [],
        "promoted": True,
    }


def test_json_log_has_failed_ladders(db: str, ratings: Ratings) -> None:
    """In the JSON log of a rebuild, each failed ladder is an object with its message."""
    import_failing_adjustments(ratings, db)
    result = ratings("rebuild", "--log", "json", db=db)
    (failed,) = [line for line in read_log(result.stderr) if line["event"] == "failed"]

    assert result.exit_code == 1
    assert (failed["ladder"], failed["message"]) == (ELO_LADDER, "the points grow out of bounds")
    # the record of the import follows the adjustments
    assert failed["position"] == read_json(ratings, db, "status")["position"] - 1


def test_json_log_ends_with_the_stop(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a rebuild is refused or interrupted, the JSON log reports it in an object."""

    def raise_interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    refused = ratings("rebuild", "--rollback", "--log", "json", db=db)
    monkeypatch.setattr(rebuild, "rebuild", raise_interrupt)
    stopped = ratings("rebuild", "--log", "json", db=db)

    assert refused.exit_code == 1
    assert [(line["event"], line["exit_code"]) for line in read_log(refused.stderr)] == [("stopped", 1)]
    assert (stopped.exit_code, read_log(stopped.stderr)) == (130, [{"event": "interrupted"}])
    plain = ratings("rebuild", db=db)
    assert (plain.exit_code, plain.stderr.strip()) == (130, "ratings: interrupted")


@pytest.mark.slow
def test_plain_log_stays_short(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain log has few lines, however many ladders are rebuilt."""

    def import_games(day: int) -> None:
        rows = [f"l-{number}-{day},2020-01-0{day}T12:00Z,gonzaga,league-{number},anna,ben" for number in range(201)]
        table = "\n".join(["game_id,occurred_at,game,league,1st,2nd", *rows, ""])
        assert ratings("import", "-", db=db, input=table).exit_code == 0

    import_games(1)
    monkeypatch.setattr("ratings_ledger.projections.stored.generations.TRANSACTION_ROWS", 10)
    quiet = ratings("rebuild", db=db)
    import_games(2)
    result = ratings("rebuild", "--log", "plain", db=db)

    assert quiet.stderr == ""
    assert [line.split(" s  ")[1].split(",")[0] for line in result.stderr.splitlines()] == [
        "reading",
        "planning",
        "building",
        "building",
        "promoting",
        "done",
    ]
    assert "building, ladders done 201, ladders 201, standings 402, failures 0" in result.stderr


def test_many_failures_are_counted(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """When many ladders fail, the first are printed and the others counted."""
    monkeypatch.setattr(rebuild, "LINES_SHOWN_MAX", 1)
    import_failing_adjustments(ratings, db)
    import_failing_adjustments(ratings, db, "club-catan-elo/3-4")
    lines = ratings("rebuild", db=db).stderr.splitlines()

    assert lines[1:] == [
        "ratings: ... and 1 more ladder (--format json lists them)",
        "ratings: no game is lost; once the rule works again, run: ratings rebuild",
    ]
    assert len(read_json(ratings, db, "rebuild")["failures"]) == 2


@pytest.mark.slow
def test_terminal_shows_a_progress_bar(db: str) -> None:
    """On a terminal, `rebuild` shows a progress bar on stderr and clears it afterwards."""
    stdout, stderr = run_on_terminal("--db", db, "rebuild", "--check", piped=True)

    assert stdout.startswith("generation 1: 2 ladders")
    for step in ("reading", "building", "checking", "promoting"):
        assert step in stderr
    assert interrupts.SHOW_CURSOR.decode() in stderr


def test_progress_bar_counts_tasks_of_an_engine() -> None:
    """A step that is divided into tasks shows how many are done, and how many had to be tried again."""
    numbers = {"tasks_done": 1_234, "tasks": 2_000, "retried": 0, "left": 766}
    assert progress._describe_step("replaying", numbers) == "replaying 1,234 of 2,000"
    assert progress._describe_step("replaying", numbers | {"retried": 12}) == "replaying 1,234 of 2,000, 12 tried again"
    assert progress._describe_step("building", {"ladders_done": 1, "ladders": 2}) == "building"


def test_progress_reports_are_spaced_out() -> None:
    """Progress is reported at the start and end of each step, and at intervals in between."""
    now, reports = 0.0, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: now)
        report = progress._limit_rate(lambda what, numbers: reports.append((what, numbers.get("ladders_done"))))
        for done in range(101):
            now = done / 2
            report("building", {"ladders": 100, "ladders_done": done})
        report("promoting", {})
    assert reports == [*(("building", done) for done in (0, 20, 40, 60, 80, 100)), ("promoting", None)]
