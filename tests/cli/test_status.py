"""`status` reports the stored standings and the jobs truthfully, as text, JSON and metrics."""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import build_draft, build_event
from ledgers import advance_clock, append_drafts
from own_rules import load_built_in_rule, substitute_rule
from rebuilds import act_before_promotion

from ratings_ledger.cli.output.status import format_age
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.runs import Run, record_run
from ratings_ledger.projections.stored.freshness import find_stale_ladders

Ratings = Callable[..., Any]
ALL, THREE_TO_FOUR = "elo-chess/all", "elo-chess/3-4"
HOUR_SECONDS = 3_600


def create_with_game(ratings: Ratings, url: str) -> None:
    """Create a ledger with a game on two ladders."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    record_game(ratings, url, "g-1")


@pytest.fixture
def db(copy_ledger: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of the ledger of `create_with_game`, in each kind of store in turn."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return copy_ledger(create_with_game)


def record_game(ratings: Ratings, db: str, game_id: str) -> None:
    game = ("--game", "chess", "--game-id", game_id, "--at", "2024-01-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=db).exit_code == 0


def read_status(ratings: Ratings, db: str, *options: object) -> dict[str, Any]:
    return dict(json.loads(ratings("status", *options, "--format", "json", db=db).stdout))


def list_problems(ratings: Ratings, db: str, *options: object) -> list[str]:
    """Return the reasons of a health check, and assert that its exit code and standard error agree with them."""
    result = ratings("status", *options, "--format", "json", db=db)
    problems = json.loads(result.stdout)["problems"]
    assert (result.exit_code, result.stderr) == (
        int(bool(problems)),
        "".join(f"ratings: {problem['message']}\n" for problem in problems),
    )
    return [problem["reason"] for problem in problems]


def let_time_pass(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Advance the clock by a number of seconds."""
    advance_clock(monkeypatch, seconds)


@pytest.fixture
def break_rule(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a function that breaks the rule of the ladders from their second game on, or repairs it."""
    rule = load_built_in_rule("pairwise-elo/1")

    def score(*arguments: Any) -> int:
        raise ZeroDivisionError("of the rule")

    def set_broken(is_broken: bool) -> None:
        substitute_rule(monkeypatch, rule._replace(score=score) if is_broken else rule)

    return set_broken


# stored standings and their age


@pytest.mark.slow_cases
def test_without_stored_standings_nothing_has_an_age(db: str, ratings: Ratings) -> None:
    """Without stored standings nothing has an age, and limits on age or lag report `nothing-stored`."""
    status = read_status(ratings, db)

    assert [status[name] for name in ("age_seconds", "behind", "stale", "runs", "rules_missing")] == [
        None,
        None,
        [],
        {},
        [],
    ]
    assert "problems" not in status
    assert list_problems(ratings, db, "--no-failures") == []
    assert list_problems(ratings, db, "--max-age", "26h") == ["nothing-stored"]
    assert list_problems(ratings, db, "--max-behind", 5, "--no-failures") == ["nothing-stored"]


@pytest.mark.slow_cases
def test_age_counts_from_last_rebuild(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rebuild, ages are whole seconds since its end, and the limits on age and lag apply."""
    assert ratings("rebuild", db=db).exit_code == 0
    record_game(ratings, db, "g-2")
    let_time_pass(monkeypatch, 26 * HOUR_SECONDS + 60)
    status = read_status(ratings, db)

    assert 26 * HOUR_SECONDS <= status["age_seconds"] <= 26 * HOUR_SECONDS + 600
    assert status["generation"]["age_seconds"] == status["age_seconds"]
    assert status["behind"] == status["generation"]["behind"] == 1
    last = status["runs"]["rebuild"]["last"]
    for text in (status["recorded"], status["generation"]["finished"], last["started"], last["finished"]):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    assert (last["result"], last["position"], last["message"]) == ("done", status["position"] - 1, None)
    assert re.search(r"^age +26 hours$", ratings("status", db=db).stdout, re.MULTILINE)
    for options, reasons in {
        ("--max-age", "27h"): [],
        ("--max-age", "26h"): ["too-old"],
        ("--max-age", "1d"): ["too-old"],
        ("--max-age", "90m", "--max-behind", "0"): ["too-old", "too-far-behind"],
        ("--max-behind", "1"): [],
    }.items():
        assert list_problems(ratings, db, *options) == reasons


@pytest.mark.parametrize("age", ["26", "h", "-1h", "1w", "1.5h", "٣h", "9999999h"])
def test_bad_age_is_usage_error(age: str, db: str, ratings: Ratings) -> None:
    """A malformed --max-age is a usage error that shows an example."""
    result = ratings("status", "--max-age", age, db=db)
    assert (result.exit_code, "such as 26h" in result.stderr) == (2, True)


@pytest.mark.slow
def test_ladders_not_rebuilt_are_stale(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ladders that a rebuild leaves out are stale, and the standings are as old as the oldest of them.

    When one ladder is rebuilt every hour, the standings are as old as the ladder that is not.
    """
    assert ratings("rebuild", db=db).exit_code == 0
    let_time_pass(monkeypatch, 5 * HOUR_SECONDS)
    record_game(ratings, db, "g-2")
    for _ in range(4):  # more than the store keeps
        assert ratings("rebuild", ALL, db=db).exit_code == 0
    status = read_status(ratings, db)
    (stale,) = status["stale"]

    assert (stale["ladder"], stale["behind"], stale["why"], stale["message"]) == (THREE_TO_FOUR, 1, "not-asked", None)
    assert status["generation"]["age_seconds"] < HOUR_SECONDS
    assert 5 * HOUR_SECONDS <= stale["age_seconds"] == status["age_seconds"]
    assert list_problems(ratings, db, "--max-age", "2h", "--no-failures") == ["too-old"]
    assert f"{THREE_TO_FOUR}: its stored standings" in ratings("status", "--max-age", "2h", db=db).stderr
    assert (
        f"stale              {THREE_TO_FOUR}: position 2, 1 event behind, not requested\n"
        in ratings("status", db=db).stdout
    )
    assert ratings("doctor", db=db).stdout.count("1 stale ladder") == 1
    assert ratings("rebuild", db=db).exit_code == 0
    assert read_status(ratings, db)["stale"] == []
    assert list_problems(ratings, db, "--max-age", "2h", "--max-behind", 0, "--no-failures") == []


@pytest.mark.slow
def test_failed_ladders_are_stale(
    db: str, ratings: Ratings, break_rule: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ladders whose rule fails are stale with the reason, in `status` and in `doctor`.

    After nightly rebuilds of which only the first succeeds, age and lag are those of the first.
    """
    assert ratings("rebuild", db=db).exit_code == 0
    record_game(ratings, db, "g-2")
    break_rule(True)
    for _ in range(3):
        let_time_pass(monkeypatch, 24 * HOUR_SECONDS)
        assert ratings("rebuild", db=db).exit_code == 1
    status = read_status(ratings, db)

    assert [(stale["ladder"], stale["behind"], stale["why"]) for stale in status["stale"]] == [
        (THREE_TO_FOUR, 1, "failed"),
        (ALL, 1, "failed"),
    ]
    assert all("of the rule" in stale["message"] for stale in status["stale"])
    assert (status["generation"]["behind"], status["behind"]) == (0, 1)
    assert status["age_seconds"] >= 72 * HOUR_SECONDS
    assert list_problems(ratings, db, "--max-age", "26h", "--max-behind", 0, "--no-failures") == [
        "too-old",
        "too-far-behind",
        "failed",
    ]
    assert f"the rule failed for {THREE_TO_FOUR}" in status["runs"]["rebuild"]["last_failure"]["message"]
    rows = json.loads(ratings("doctor", "--format", "json", db=db).stdout)
    doctor = {row["what"]: row for row in rows if row["state"] == "WRONG"}
    assert doctor.keys() - {"rights"} == {"stored standings", "last rebuild"}
    # the reason is long, so it stands in the last column
    assert (len(doctor["last rebuild"]["value"]) < 80, f"for {THREE_TO_FOUR}" in doctor["last rebuild"]["note"]) == (
        True,
        True,
    )
    assert ratings("doctor", db=db).exit_code == 1
    break_rule(False)
    assert ratings("rebuild", THREE_TO_FOUR, db=db).exit_code == 0
    assert [stale["ladder"] for stale in read_status(ratings, db)["stale"]] == [ALL]
    assert ratings("rebuild", db=db).exit_code == 0
    assert list_problems(ratings, db, "--max-age", "26h", "--max-behind", 0, "--no-failures") == []
    assert "last failed rebuild  failed, " in ratings("status", db=db).stdout


def test_ladder_failing_in_first_rebuild_is_never_built(
    db: str, ratings: Ratings, break_rule: Callable[[bool], None]
) -> None:
    """When a rule fails in the first rebuild, its ladders are shown as never built."""
    break_rule(True)
    assert ratings("rebuild", db=db).exit_code == 1
    assert [(stale["ladder"], stale["position"], stale["why"]) for stale in read_status(ratings, db)["stale"]] == [
        (THREE_TO_FOUR, None, "failed"),
        (ALL, None, "failed"),
    ]
    assert "stale              elo-chess: never built, its rule failed: " in ratings("status", db=db).stdout
    assert list_problems(ratings, db, "--max-behind", 1) == ["too-far-behind"]


def test_ladder_that_failed_with_and_without_its_ruleset_is_stale_once(db: str, ratings: Ratings) -> None:
    """A ladder that failed by itself after its whole ruleset had failed has one entry, with its own reason."""
    assert ratings("rebuild", db=db).exit_code == 0
    failed = [{"ladder": "elo-chess", "message": "hangs"}, {"ladder": ALL, "message": "overflows"}]
    run = Run(
        run=1,
        kind="rebuild",
        started_at=0,
        finished_at=1,
        result="failed",
        message=None,
        position=1,
        run_by="mira",
        process="",
        details={"generation": 1, "asked": [], "failed": failed},
    )
    with open_ledger(db).reading() as connection:
        stale_ladders = find_stale_ladders(connection, [run], now=2)
    assert [(stale.ladder, stale.position is None, stale.message) for stale in stale_ladders] == [
        (THREE_TO_FOUR, False, "hangs"),
        (ALL, False, "overflows"),
    ]


@pytest.mark.slow_cases
def test_failure_without_new_events_is_shown(db: str, ratings: Ratings, break_rule: Callable[[bool], None]) -> None:
    """A rule that fails in a rebuild without new events still makes its ladder stale."""
    assert ratings("rebuild", db=db).exit_code == 0
    break_rule(True)
    assert ratings("rebuild", ALL, db=db).exit_code == 1
    assert [(stale["ladder"], stale["why"]) for stale in read_status(ratings, db)["stale"]] == [(ALL, "failed")]
    break_rule(False)
    assert ratings("rebuild", "--rollback", db=db).exit_code == 0
    assert read_status(ratings, db)["stale"] == []


# dates in the future


@pytest.mark.slow_cases
def test_dates_after_now_are_failures(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and standings dated in the future fail each health check, and `doctor` and the metrics report them.

    The problems end once both kept generations are from rebuilds with the right clock.
    """
    with monkeypatch.context() as ahead:
        let_time_pass(ahead, 400 * 24 * HOUR_SECONDS)
        assert ratings("rebuild", db=db).exit_code == 0
        assert ratings("verify", db=db).exit_code == 0
    status = read_status(ratings, db)

    assert [(dated["kind"], dated["name"]) for dated in status["dated_ahead"]] == [
        ("run", "a run of verify"),
        ("run", "a run of rebuild"),
        ("generation", "generation 1 of the stored standings"),
    ]
    for check in (("--no-failures",), ("--max-age", "26h"), ("--max-behind", 5)):
        assert list_problems(ratings, db, *check) == ["dated-ahead"] * 3
    message = ratings("status", "--no-failures", db=db).stderr.splitlines()[0]
    assert message.endswith(
        "Z, in the future by this machine's clock; correct the clock, or if it is right, run: ratings verify"
    )
    table = ratings("status", db=db).stdout
    assert table.count("\ndated after now") == 3
    assert "; correct the clock, or if it is right: ratings verify" in " ".join(table.split())
    rows = json.loads(ratings("doctor", "--format", "json", db=db).stdout)
    assert [row["state"] for row in rows if " is dated 20" in row["value"]] == ["WRONG"] * 3
    assert ratings("doctor", db=db).exit_code == 1
    samples = parse_metrics(ratings("status", "--format", "prometheus", db=db).stdout)
    assert [samples["ratings_dated_ahead", f'kind="{kind}"'] for kind in ("run", "generation", "ladder")] == [2, 1, 0]

    assert ratings("verify", db=db).exit_code == 0
    record_game(ratings, db, "g-2")
    assert ratings("rebuild", THREE_TO_FOUR, db=db).exit_code == 0
    assert [dated["kind"] for dated in read_status(ratings, db)["dated_ahead"]] == ["generation", "ladder"]
    for _ in range(2):
        assert ratings("rebuild", db=db).exit_code == 0
    assert read_status(ratings, db)["dated_ahead"] == []
    assert list_problems(ratings, db, "--max-age", "26h", "--max-behind", 0, "--no-failures") == []


def test_failure_after_a_run_dated_ahead_is_reported(
    db: str, ratings: Ratings, break_rule: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed run is the last run even if an earlier run is dated after it."""
    with monkeypatch.context() as ahead:
        let_time_pass(ahead, 400 * 24 * HOUR_SECONDS)
        assert ratings("rebuild", db=db).exit_code == 0
    break_rule(True)
    assert ratings("rebuild", db=db).exit_code == 1

    assert read_status(ratings, db)["runs"]["rebuild"]["last"]["result"] == "failed"
    assert list_problems(ratings, db, "--no-failures").count("failed") == 1


# rules that are not installed


@pytest.fixture
def db_without_rule(db: str) -> str:
    """Return a ledger with a ruleset whose rule belongs to a package that is not installed."""
    data = {
        "id": "darts",
        "version": "1",
        "rule": "gone/1",
        "effective_from": "2000-01-01",
        "scope": {"game": ["darts", "chess"]},
        "params": {},
    }
    append_drafts(db, build_draft(build_event("ruleset.published", "1970-01-01T00:00:00Z", "darts", **data)))
    return db


def test_doctor_names_the_command_of_a_failed_job(db: str, ratings: Ratings) -> None:
    """For each failed job, `doctor` names the command to run again, even if the job has another name."""
    for kind in ("backup", "publish", "verify"):
        with record_run(open_ledger(db), kind) as run:
            run.fail("the disk is full")
    rows = json.loads(ratings("doctor", "--format", "json", db=db).stdout)
    assert {row["what"]: row["remedy"] for row in rows if row["what"].startswith("last ")} == {
        "last backup": "ratings backup make DIR",
        "last publish": "ratings publish --due",
        "last verify": "ratings verify",
    }


@pytest.mark.slow_cases
def test_missing_rule_is_named(db_without_rule: str, ratings: Ratings) -> None:
    """`status`, `doctor`, `rules show` and `record` name a rule that is not installed."""
    status = read_status(ratings, db_without_rule)
    assert status["rules_missing"] == [{"ruleset": "darts@1", "rule": "gone/1", "games": ["darts", "chess"]}]
    assert (
        "darts@1 needs the rule gone/1, which is not installed; install its package"
        in ratings("status", db=db_without_rule).stdout
    )
    (row,) = [
        row
        for row in json.loads(ratings("doctor", "--format", "json", db=db_without_rule).stdout)
        if row["what"] == "rule"
    ]
    assert (row["state"], row["value"]) == ("WRONG", "gone/1 is not installed")
    text = " ".join(ratings("rules", "show", "darts", db=db_without_rule).stdout.split())
    assert "This version cannot be used here: rule: 'gone/1' is not installed." in text
    withdrawal = row["remedy"].partition("ratings ")[2].replace("TEXT", "gone").split()
    assert ratings(*withdrawal, "--dry-run", db=db_without_rule).exit_code == 0
    assert ratings("doctor", db=db_without_rule).exit_code == 1
    for game in ("darts", "chess"):
        result = ratings("record", "--game", game, "--game-id", f"{game}-1", "anna", "ben", db=db_without_rule)
        assert result.exit_code == 0
        assert "darts@1 cannot be used here" in result.stderr
        assert "'gone/1' is not installed" in result.stderr
        assert "no ruleset scores" not in result.stderr
    assert ratings("rebuild", db=db_without_rule).exit_code == 1
    (stale,) = read_status(ratings, db_without_rule)["stale"]
    assert (stale["ladder"], stale["why"], "not installed" in stale["message"]) == ("darts", "failed", True)


def test_unusable_ruleset_is_noted_above_the_only_ladder(db_without_rule: str, ratings: Ratings) -> None:
    """`standings` without a ladder shows the only one that can be shown, and notes why another is missing."""
    result = ratings("standings", db=db_without_rule)

    assert "note: darts@1 cannot be used here" in result.stderr
    assert result.stdout.startswith("elo-chess: 1 game")


# runs of jobs


def test_successful_jobs_are_reported(db: str, ratings: Ratings) -> None:
    """The status shows each job that succeeded, and no failure."""
    assert ratings("rebuild", db=db).exit_code == 0
    assert ratings("verify", db=db) == (0, "", "")
    runs = read_status(ratings, db)["runs"]

    assert [(kind, run["last"]["result"], run["last_failure"]) for kind, run in runs.items()] == [
        ("rebuild", "done", None),
        ("verify", "done", None),
    ]
    assert runs["verify"]["last"]["details"]["checked"]["events"] == 2
    assert list_problems(ratings, db, "--no-failures") == []


def test_verify_with_findings_is_a_failed_run(db: str, ratings: Ratings) -> None:
    """A verify with a finding shows in the status as a failed run."""
    assert ratings("verify", "--head", f"1:{'0' * 64}", db=db).exit_code == 1
    last = read_status(ratings, db)["runs"]["verify"]["last"]

    assert (last["result"], last["message"][:38]) == ("failed", "1 finding; the first is head: position")
    assert list_problems(ratings, db, "--no-failures") == ["failed"]
    assert ratings("doctor", db=db).exit_code == 1


def test_rebuild_of_unknown_ladder_is_not_a_run(db: str, ratings: Ratings) -> None:
    """Rebuilding an unknown ladder is a usage error and leaves no run."""
    assert ratings("rebuild", "nope", db=db).exit_code == 2
    assert read_status(ratings, db)["runs"] == {}


@pytest.fixture
def kill_rebuild(db: str, ratings: Ratings) -> Iterator[Callable[[], None]]:
    """Start a rebuild in another process, and yield a function that kills it before it is done."""
    if (child := os.fork()) == 0:
        try:
            act_before_promotion(pytest.MonkeyPatch(), lambda: time.sleep(600))
            ratings("rebuild", db=db)
        finally:
            os._exit(1)
    children = []

    def kill() -> None:
        if not children:
            children.append(child)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    yield kill
    kill()


def wait_for_result(ratings: Ratings, db: str, result: str) -> dict[str, Any]:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        rebuild: dict[str, Any] = read_status(ratings, db)["runs"].get("rebuild", {"last": {"result": None}})
        if rebuild["last"]["result"] == result:
            return rebuild
        time.sleep(0.05)
    pytest.fail(f"the result of the last rebuild did not become {result!r} in time")


@pytest.mark.slow_cases
def test_killed_rebuild_is_lost(kill_rebuild: Callable[[], None], db: str, ratings: Ratings) -> None:
    """A killed rebuild shows as lost, and a running one is not a failure.

    After kill -9, the health check fails until a rebuild succeeds.
    """
    wait_for_result(ratings, db, "running")
    assert list_problems(ratings, db, "--no-failures") == []
    assert ratings("rebuild", db=db).exit_code == 4
    kill_rebuild()
    rebuild = wait_for_result(ratings, db, "lost")

    assert (rebuild["last"]["finished"], rebuild["last"] == rebuild["last_failure"]) == (None, True)
    assert "no exit status" in rebuild["last"]["message"]
    assert list_problems(ratings, db, "--no-failures") == ["failed"]
    assert "no exit status" in ratings("status", db=db).stdout
    end = time.monotonic() + 30
    while ratings("rebuild", db=db).exit_code != 0:
        assert time.monotonic() < end
    assert list_problems(ratings, db, "--no-failures") == []


# metrics

SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?\d+)', re.ASCII
)


def parse_metrics(text: str) -> dict[tuple[str, str], int]:
    """Return the samples of a text in Prometheus format, by metric and labels without `ledger`; fail if it is
    malformed.

    Each metric has one HELP and one TYPE before its samples, which follow each other; no sample occurs twice.
    """
    assert text.endswith("\n")
    current, metrics, samples = "", set(), {}
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("#"):
            current = line.split(" ")[2]
            kind = next(lines).split(" ")
            assert line.startswith(f"# HELP {current} ")
            assert kind[:3] == ["#", "TYPE", current]
            assert kind[3] == ("counter" if current.endswith("_total") else "gauge")
            assert current not in metrics
            metrics.add(current)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match.group(1) == current
        labels = re.sub(r'^ledger="(?:[^"\\]|\\.)*",?', "", match.group(2))
        assert labels != match.group(2)
        assert (current, labels) not in samples
        samples[current, labels] = int(match.group(3))
    return samples


@pytest.mark.slow_cases
def test_metrics_match_the_status(db: str, ratings: Ratings, break_rule: Callable[[bool], None]) -> None:
    """The metrics in Prometheus format agree with the status."""
    assert ratings("rebuild", db=db).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0
    record_game(ratings, db, "g-2")
    break_rule(True)
    assert ratings("rebuild", db=db).exit_code == 1
    result = ratings("status", "--format", "prometheus", "--no-failures", db=db)
    status, samples = read_status(ratings, db), parse_metrics(result.stdout)
    rebuild_runs = status["runs"]["rebuild"]

    assert result.exit_code == 1
    plain = {name.removeprefix("ratings_"): value for (name, labels), value in samples.items() if not labels}
    assert {
        "head_position": status["position"],
        "standings_behind_events": 1,
        "missing_rules": 0,
        "head_recorded_timestamp_seconds": parse_instant(status["recorded"]) // 1_000_000,
    }.items() <= plain.items()
    assert {
        ("ratings_events_total", 'type="game.recorded"'): 2,
        ("ratings_stale_ladders", 'why="failed"'): 2,
        ("ratings_stale_ladders", 'why="not-asked"'): 0,
        ("ratings_run_result", 'kind="rebuild",result="failed"'): 1,
        ("ratings_run_result", 'kind="rebuild",result="done"'): 0,
        ("ratings_run_result", 'kind="verify",result="done"'): 1,
        ("ratings_run_last_success_started_timestamp_seconds", 'kind="rebuild"'): parse_instant(
            rebuild_runs["last_success"]["started"]
        )
        // 1_000_000,
        ("ratings_ledger_info", f'ledger_id="{status["ledger_id"]}"'): 1,
    }.items() <= samples.items()
    assert ("ratings_run_last_failure_age_seconds", 'kind="rebuild"') in samples
    assert ("ratings_run_last_failure_age_seconds", 'kind="verify"') not in samples


def test_metrics_escape_odd_characters(tmp_path: Path, ratings: Ratings) -> None:
    """In the metrics, a location with special characters is escaped."""
    path = tmp_path / 'a"b\\c\nd {x}, ü.db'
    assert ratings("init", "--for", "chess", db=path).exit_code == 0
    metrics = ratings("status", "--format", "prometheus", db=path).stdout

    assert ("ratings_head_position", "") in parse_metrics(metrics)
    assert f'ledger="{tmp_path}/a\\"b\\\\c\\nd {{x}}, ü.db"' in metrics


def test_age_is_formatted_in_a_fitting_unit() -> None:
    """An age is shown in the largest unit in which it is at least 2, else in minutes."""
    assert [format_age(seconds) for seconds in (0, 59, 60, 7_199, 7_200, 259_199, 259_200)] == [
        "less than a minute",
        "less than a minute",
        "1 minute",
        "119 minutes",
        "2 hours",
        "71 hours",
        "3 days",
    ]
