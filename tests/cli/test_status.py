"""`status` tells the truth about the stored standings and the jobs, to people, to scripts and to collectors."""

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
from own_rules import load_built_in_rule

from ratings_ledger.cli.output.status import format_age
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.projections.rulesets import registry
from ratings_ledger.projections.stored import generations

Ratings = Callable[..., Any]
ALL, FEW = "elo-chess/all", "elo-chess/3-4"
HOUR = 3_600


def with_game(ratings: Ratings, url: str) -> None:
    """Make a ledger with a game on two ladders."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    play(ratings, url, "g-1")


@pytest.fixture
def db(copied: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ledger of `with_game`, in each kind of store."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return copied(with_game)


def play(ratings: Ratings, db: str, game_id: str) -> None:
    game = ("--game", "chess", "--game-id", game_id, "--at", "2024-01-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=db).exit_code == 0


def status(ratings: Ratings, db: str, *options: object) -> dict[str, Any]:
    return dict(json.loads(ratings("status", *options, "--format", "json", db=db).stdout))


def problems(ratings: Ratings, db: str, *options: object) -> list[str]:
    """The reasons of a health check, which has an exit code and says them in words, too."""
    told = ratings("status", *options, "--format", "json", db=db)
    found = json.loads(told.stdout)["problems"]
    assert (told.exit_code, told.stderr) == (int(bool(found)), "".join(f"ratings: {one['message']}\n" for one in found))
    return [one["reason"] for one in found]


def later(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Let so much time go by."""
    advance_clock(monkeypatch, seconds)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """A function that breaks the rule of the ladders from their second game on, or mends it."""
    real = registry.rule
    rule = load_built_in_rule("pairwise-elo/1")

    def score(*arguments: Any) -> int:
        raise ZeroDivisionError("of the rule")

    def use(bad: bool) -> None:
        found = rule._replace(score=score) if bad else rule
        monkeypatch.setattr(
            "ratings_ledger.projections.rulesets.versions.rule", lambda name: found if name == rule.id else real(name)
        )

    return use


# what was stored, and how old it is


@pytest.mark.slow_cases
def test_no_standings_means_no_age(db: str, ratings: Ratings) -> None:
    """Without stored standings nothing has an age, and limits on age or lag report nothing stored."""
    found = status(ratings, db)

    assert [found[name] for name in ("age_seconds", "behind", "stale", "runs", "rules_missing")] == [
        None, None, [], {}, [],
    ]  # fmt: skip
    assert "problems" not in found
    assert problems(ratings, db, "--no-failures") == []
    assert problems(ratings, db, "--max-age", "26h") == ["nothing-stored"]
    assert problems(ratings, db, "--max-behind", 5, "--no-failures") == ["nothing-stored"]


@pytest.mark.slow_cases
def test_age_counts_from_last_rebuild(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Age and times after a rebuild are in whole seconds, and the limits on age and lag apply."""
    assert ratings("rebuild", db=db).exit_code == 0
    play(ratings, db, "g-2")
    later(monkeypatch, 26 * HOUR + 60)
    found = status(ratings, db)

    assert 26 * HOUR <= found["age_seconds"] <= 26 * HOUR + 600
    assert found["generation"]["age_seconds"] == found["age_seconds"]
    assert found["behind"] == found["generation"]["behind"] == 1
    last = found["runs"]["rebuild"]["last"]
    for text in (found["recorded"], found["generation"]["finished"], last["started"], last["finished"]):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    assert (last["result"], last["position"], last["message"]) == ("done", found["position"] - 1, None)
    assert re.search(r"^age +26 hours$", ratings("status", db=db).stdout, re.MULTILINE)
    for options, reasons in {
        ("--max-age", "27h"): [], ("--max-age", "26h"): ["too-old"], ("--max-age", "1d"): ["too-old"],
        ("--max-age", "90m", "--max-behind", "0"): ["too-old", "too-far-behind"], ("--max-behind", "1"): [],
    }.items():  # fmt: skip
        assert problems(ratings, db, *options) == reasons


@pytest.mark.parametrize("age", ["26", "h", "-1h", "1w", "1.5h", "٣h", "9999999h"])
def test_bad_age_is_usage_error(age: str, db: str, ratings: Ratings) -> None:
    """A malformed --max-age is a usage error that shows an example."""
    told = ratings("status", "--max-age", age, db=db)
    assert (told.exit_code, "such as 26h" in told.stderr) == (2, True)


@pytest.mark.slow
def test_ladders_not_rebuilt_are_stale(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rebuild of some ladders, the others are stale.

    When one ladder is rebuilt every hour, the standings are as old as the ladder that is not.
    """
    assert ratings("rebuild", db=db).exit_code == 0
    later(monkeypatch, 5 * HOUR)
    play(ratings, db, "g-2")
    for _ in range(4):  # more than are kept
        assert ratings("rebuild", ALL, db=db).exit_code == 0
    found = status(ratings, db)
    (stale,) = found["stale"]

    assert (stale["ladder"], stale["behind"], stale["why"], stale["message"]) == (FEW, 1, "not-asked", None)
    assert found["generation"]["age_seconds"] < HOUR
    assert 5 * HOUR <= stale["age_seconds"] == found["age_seconds"]
    assert problems(ratings, db, "--max-age", "2h", "--no-failures") == ["too-old"]
    assert f"{FEW}: its stored standings" in ratings("status", "--max-age", "2h", db=db).stderr
    assert f"stale              {FEW}: position 2, 1 event behind, not requested\n" in ratings("status", db=db).stdout
    assert ratings("doctor", db=db).stdout.count("1 stale ladder") == 1
    assert ratings("rebuild", db=db).exit_code == 0
    assert status(ratings, db)["stale"] == []
    assert problems(ratings, db, "--max-age", "2h", "--max-behind", 0, "--no-failures") == []


@pytest.mark.slow
def test_failed_ladders_are_stale(
    db: str, ratings: Ratings, broken: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ladders whose rule fails are stale with the reason, in `status` and in `doctor`.

    After nightly rebuilds of which all but the first fail, age and lag are those of the first.
    """
    assert ratings("rebuild", db=db).exit_code == 0
    play(ratings, db, "g-2")
    broken(True)
    for _ in range(3):
        later(monkeypatch, 24 * HOUR)
        assert ratings("rebuild", db=db).exit_code == 1
    found = status(ratings, db)

    assert [(one["ladder"], one["behind"], one["why"]) for one in found["stale"]] == [
        (FEW, 1, "failed"), (ALL, 1, "failed"),
    ]  # fmt: skip
    assert all("of the rule" in one["message"] for one in found["stale"])
    assert (found["generation"]["behind"], found["behind"]) == (0, 1)
    assert found["age_seconds"] >= 72 * HOUR
    assert problems(ratings, db, "--max-age", "26h", "--max-behind", 0, "--no-failures") == [
        "too-old", "too-far-behind", "failed",
    ]  # fmt: skip
    assert f"the rule failed for {FEW}" in found["runs"]["rebuild"]["last_failure"]["message"]
    rows = json.loads(ratings("doctor", "--format", "json", db=db).stdout)
    doctor = {row["what"]: row for row in rows if row["state"] == "WRONG"}
    assert doctor.keys() - {"rights"} == {"stored standings", "last rebuild"}
    # the reason is long, and would widen a column that is not the last
    assert (len(doctor["last rebuild"]["value"]) < 80, f"for {FEW}" in doctor["last rebuild"]["note"]) == (True, True)
    assert ratings("doctor", db=db).exit_code == 1
    broken(False)
    assert ratings("rebuild", FEW, db=db).exit_code == 0
    assert [one["ladder"] for one in status(ratings, db)["stale"]] == [ALL]
    assert ratings("rebuild", db=db).exit_code == 0
    assert problems(ratings, db, "--max-age", "26h", "--max-behind", 0, "--no-failures") == []
    assert "last failed rebuild  failed, " in ratings("status", db=db).stdout


def test_failed_first_rebuild_is_never_built(db: str, ratings: Ratings, broken: Callable[[bool], None]) -> None:
    """When a rule fails in the first rebuild, its ladders are shown as never built."""
    broken(True)
    assert ratings("rebuild", db=db).exit_code == 1
    assert [(one["ladder"], one["position"], one["why"]) for one in status(ratings, db)["stale"]] == [
        (FEW, None, "failed"), (ALL, None, "failed"),
    ]  # fmt: skip
    assert "stale              elo-chess: never built, its rule failed: " in ratings("status", db=db).stdout
    assert problems(ratings, db, "--max-behind", 1) == ["too-far-behind"]


@pytest.mark.slow_cases
def test_failure_without_new_events_is_shown(db: str, ratings: Ratings, broken: Callable[[bool], None]) -> None:
    """A rule that fails in a rebuild without new events still makes its ladder stale."""
    assert ratings("rebuild", db=db).exit_code == 0
    broken(True)
    assert ratings("rebuild", ALL, db=db).exit_code == 1
    assert [(one["ladder"], one["why"]) for one in status(ratings, db)["stale"]] == [(ALL, "failed")]
    broken(False)
    assert ratings("rebuild", "--rollback", db=db).exit_code == 0
    assert status(ratings, db)["stale"] == []


# a wrong clock


@pytest.mark.slow_cases
def test_dates_after_now_are_failures(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and standings dated after now fail each health check, and `doctor` and the metrics report them.

    It ends with a rebuild of each of the two generations that are kept.
    """
    with monkeypatch.context() as ahead:
        later(ahead, 400 * 24 * HOUR)
        assert ratings("rebuild", db=db).exit_code == 0
        assert ratings("verify", db=db).exit_code == 0
    found = status(ratings, db)

    assert [(one["kind"], one["name"]) for one in found["dated_ahead"]] == [
        ("run", "a run of verify"), ("run", "a run of rebuild"), ("generation", "generation 1 of the stored standings"),
    ]  # fmt: skip
    for check in (("--no-failures",), ("--max-age", "26h"), ("--max-behind", 5)):
        assert problems(ratings, db, *check) == ["dated-ahead"] * 3
    told = ratings("status", "--no-failures", db=db).stderr.splitlines()[0]
    assert told.endswith("Z, after this machine's time; set the clock, or if it is right: ratings verify")
    assert ratings("status", db=db).stdout.count("\ndated after now") == 3
    rows = json.loads(ratings("doctor", "--format", "json", db=db).stdout)
    assert [row["state"] for row in rows if " is dated 20" in row["value"]] == ["WRONG"] * 3
    assert ratings("doctor", db=db).exit_code == 1
    samples = parsed(ratings("status", "--format", "prometheus", db=db).stdout)
    assert [samples["ratings_dated_ahead", f'kind="{kind}"'] for kind in ("run", "generation", "ladder")] == [2, 1, 0]

    assert ratings("verify", db=db).exit_code == 0
    play(ratings, db, "g-2")
    assert ratings("rebuild", FEW, db=db).exit_code == 0
    assert [one["kind"] for one in status(ratings, db)["dated_ahead"]] == ["generation", "ladder"]
    for _ in range(2):
        assert ratings("rebuild", db=db).exit_code == 0
    assert status(ratings, db)["dated_ahead"] == []
    assert problems(ratings, db, "--max-age", "26h", "--max-behind", 0, "--no-failures") == []


def test_failure_after_a_run_dated_ahead_is_reported(
    db: str, ratings: Ratings, broken: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is the last run although an earlier run is dated after it."""
    with monkeypatch.context() as ahead:
        later(ahead, 400 * 24 * HOUR)
        assert ratings("rebuild", db=db).exit_code == 0
    broken(True)
    assert ratings("rebuild", db=db).exit_code == 1

    assert status(ratings, db)["runs"]["rebuild"]["last"]["result"] == "failed"
    assert problems(ratings, db, "--no-failures").count("failed") == 1


# rules that are not installed


@pytest.fixture
def uninstalled(db: str) -> str:
    """A ledger with a ruleset whose rule came with a package that is not here."""
    data = {"id": "darts", "version": "1", "rule": "gone/1", "effective_from": "2000-01-01",
            "scope": {"game": ["darts", "chess"]}, "params": {}}  # fmt: skip
    append_drafts(db, build_draft(build_event("ruleset.published", "1970-01-01T00:00:00Z", "darts", **data)))
    return db


@pytest.mark.slow_cases
def test_missing_rule_is_named(uninstalled: str, ratings: Ratings) -> None:
    """`status`, `doctor` and `record` name a rule that is not installed."""
    found = status(ratings, uninstalled)
    assert found["rules_missing"] == [{"ruleset": "darts@1", "rule": "gone/1", "games": ["darts", "chess"]}]
    assert "darts@1 needs the rule gone/1, which is not installed" in ratings("status", db=uninstalled).stdout
    (row,) = [
        row for row in json.loads(ratings("doctor", "--format", "json", db=uninstalled).stdout) if row["what"] == "rule"
    ]
    assert (row["state"], row["value"]) == ("WRONG", "gone/1 is not installed")
    assert ratings("doctor", db=uninstalled).exit_code == 1
    for game in ("darts", "chess"):
        told = ratings("record", "--game", game, "--game-id", f"{game}-1", "anna", "ben", db=uninstalled)
        assert told.exit_code == 0
        assert "darts@1 cannot be used here" in told.stderr
        assert "'gone/1' is not installed" in told.stderr
        assert "no ruleset scores" not in told.stderr
    assert ratings("rebuild", db=uninstalled).exit_code == 1
    (stale,) = status(ratings, uninstalled)["stale"]
    assert (stale["ladder"], stale["why"], "not installed" in stale["message"]) == ("darts", "failed", True)


def test_ladder_that_is_missing_among_all_is_told(uninstalled: str, ratings: Ratings) -> None:
    """Where no ladder is named, those are chosen from that can be shown, and why there are no others is said."""
    told = ratings("standings", db=uninstalled)

    assert "note: darts@1 cannot be used here" in told.stderr
    assert told.stdout.startswith("elo-chess: 1 game")


# runs of the jobs


def test_successful_jobs_are_reported(db: str, ratings: Ratings) -> None:
    """The status shows each job that ended well, and no failure."""
    assert ratings("rebuild", db=db).exit_code == 0
    assert ratings("verify", db=db) == (0, "", "")
    found = status(ratings, db)["runs"]

    assert [(kind, one["last"]["result"], one["last_failure"]) for kind, one in found.items()] == [
        ("rebuild", "done", None), ("verify", "done", None),
    ]  # fmt: skip
    assert found["verify"]["last"]["details"]["checked"]["events"] == 2
    assert problems(ratings, db, "--no-failures") == []


def test_verify_with_findings_failed(db: str, ratings: Ratings) -> None:
    """A verify with a finding shows in the status as a failed run."""
    assert ratings("verify", "--head", f"1:{'0' * 64}", db=db).exit_code == 1
    last = status(ratings, db)["runs"]["verify"]["last"]

    assert (last["result"], last["message"][:38]) == ("failed", "1 finding; the first is head: position")
    assert problems(ratings, db, "--no-failures") == ["failed"]
    assert ratings("doctor", db=db).exit_code == 1


def test_unknown_ladder_is_no_run(db: str, ratings: Ratings) -> None:
    """Rebuilding an unknown ladder is a usage error and leaves no run."""
    assert ratings("rebuild", "nope", db=db).exit_code == 2
    assert status(ratings, db)["runs"] == {}


@pytest.fixture
def killed(db: str, ratings: Ratings) -> Iterator[Callable[[], None]]:
    """A function that kills a rebuild that another process is in the middle of."""
    if (child := os.fork()) == 0:
        try:
            generations.promote = lambda *_: time.sleep(600)
            ratings("rebuild", db=db)
        finally:
            os._exit(1)
    gone = []

    def kill() -> None:
        if not gone:
            gone.append(child)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    yield kill
    kill()


def wait_for_result(ratings: Ratings, db: str, result: str) -> dict[str, Any]:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found: dict[str, Any] = status(ratings, db)["runs"].get("rebuild", {"last": {"result": None}})
        if found["last"]["result"] == result:
            return found
        time.sleep(0.05)
    pytest.fail("it did not happen in time")


@pytest.mark.slow_cases
def test_killed_rebuild_is_lost(killed: Callable[[], None], db: str, ratings: Ratings) -> None:
    """A rebuild that was killed shows as lost, and a running one is not a failure.

    After kill -9, the health check fails until a rebuild ends well.
    """
    wait_for_result(ratings, db, "running")
    assert problems(ratings, db, "--no-failures") == []
    assert ratings("rebuild", db=db).exit_code == 4
    killed()
    found = wait_for_result(ratings, db, "lost")

    assert (found["last"]["finished"], found["last"] == found["last_failure"]) == (None, True)
    assert "no exit status" in found["last"]["message"]
    assert problems(ratings, db, "--no-failures") == ["failed"]
    assert "no exit status" in ratings("status", db=db).stdout
    end = time.monotonic() + 30
    while ratings("rebuild", db=db).exit_code != 0:
        assert time.monotonic() < end
    assert problems(ratings, db, "--no-failures") == []


# for collectors

SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?\d+)', re.ASCII
)


def parsed(text: str) -> dict[tuple[str, str], int]:
    """The samples of the text format, by metric and labels without `ledger`; whatever is malformed fails.

    Of each metric there is one HELP and one TYPE, before its samples, which stand together; none occurs twice.
    """
    assert text.endswith("\n")
    current, seen, samples = "", set(), {}
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("#"):
            current = line.split(" ")[2]
            kind = next(lines).split(" ")
            assert line.startswith(f"# HELP {current} ")
            assert kind[:3] == ["#", "TYPE", current]
            assert kind[3] == ("counter" if current.endswith("_total") else "gauge")
            assert current not in seen
            seen.add(current)
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
def test_metrics_match_the_status(db: str, ratings: Ratings, broken: Callable[[bool], None]) -> None:
    """The metrics in Prometheus format agree with the status."""
    assert ratings("rebuild", db=db).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0
    play(ratings, db, "g-2")
    broken(True)
    assert ratings("rebuild", db=db).exit_code == 1
    told = ratings("status", "--format", "prometheus", "--no-failures", db=db)
    found, samples = status(ratings, db), parsed(told.stdout)
    last = found["runs"]["rebuild"]

    assert told.exit_code == 1
    plain = {name.removeprefix("ratings_"): value for (name, labels), value in samples.items() if not labels}
    assert {
        "head_position": found["position"], "standings_behind_events": 1, "missing_rules": 0,
        "head_recorded_timestamp_seconds": parse_instant(found["recorded"]) // 1_000_000,
    }.items() <= plain.items()  # fmt: skip
    assert {
        ("ratings_events_total", 'type="game.recorded"'): 2,
        ("ratings_stale_ladders", 'why="failed"'): 2,
        ("ratings_stale_ladders", 'why="not-asked"'): 0,
        ("ratings_run_result", 'kind="rebuild",result="failed"'): 1,
        ("ratings_run_result", 'kind="rebuild",result="done"'): 0,
        ("ratings_run_result", 'kind="verify",result="done"'): 1,
        ("ratings_run_last_success_started_timestamp_seconds", 'kind="rebuild"'):
            parse_instant(last["last_success"]["started"]) // 1_000_000,
        ("ratings_ledger_info", f'ledger_id="{found["ledger_id"]}"'): 1,
    }.items() <= samples.items()  # fmt: skip
    assert ("ratings_run_last_failure_age_seconds", 'kind="rebuild"') in samples
    assert ("ratings_run_last_failure_age_seconds", 'kind="verify"') not in samples


def test_metrics_escape_odd_characters(tmp_path: Path, ratings: Ratings) -> None:
    """In the metrics, a location with odd characters is escaped."""
    path = tmp_path / 'a"b\\c\nd {x}, ü.db'
    assert ratings("init", "--for", "chess", db=path).exit_code == 0
    told = ratings("status", "--format", "prometheus", db=path).stdout

    assert ("ratings_head_position", "") in parsed(told)
    assert f'ledger="{tmp_path}/a\\"b\\\\c\\nd {{x}}, ü.db"' in told


def test_age_uses_a_fitting_unit() -> None:
    """An age is shown in the unit that fits it."""
    assert [format_age(seconds) for seconds in (0, 59, 60, 7_199, 7_200, 259_199, 259_200)] == [
        "less than a minute", "less than a minute", "1 minute", "119 minutes", "2 hours", "71 hours", "3 days",
    ]  # fmt: skip
