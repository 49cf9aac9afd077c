"""`import --follow -`: each line is answered in order, by the state of the log."""

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from correction_helpers import Ratings, build_event_line, build_galactic_line, create_ledger, read_head, read_json
from followers import start_follower
from sqlalchemy import make_url

from ratings_ledger import Refused, Rejection
from ratings_ledger.ledger.intake.following import GROUP_LINES, _LineSplitter, gather_groups, import_and_answer
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake
from ratings_ledger.ledger.store import appending
from ratings_ledger.ledger.store.log import head as store_head
from ratings_ledger.ledger.store.opening import open_ledger


def create_galactic_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger for Galactic Magnate without games; its ruleset is at position 1."""
    create_ledger(ratings, url, "galactic-points-1")


pytestmark = pytest.mark.ledger(make=create_galactic_ledger)


def list_recorded_games(ratings: Ratings, db: str) -> list[str]:
    """Return the ids of the recorded games in the order of their positions."""
    rows = read_json(ratings, db, "log", "--limit", "0")["rows"]
    return [row["data"]["game_id"] for row in rows if row["type"] == "game.recorded"]


@pytest.mark.slow
def test_each_line_is_answered_in_order(db: str, ratings: Ratings) -> None:
    """`import --follow` answers each line in order as appended, existing or rejected."""
    with start_follower(db) as follower:
        follower.send(build_galactic_line("g-1", "anna", "ben"))
        assert follower.read_answer() == {"line": 1, "result": "appended", "id": "game:g-1", "position": 2}
        follower.send(
            build_galactic_line("g-1", "anna", "ben"),
            build_galactic_line("g-2", "anna", "anna"),
            "\n",
            build_galactic_line("g-3", "ben", "anna"),
        )
        assert follower.read_answer() == {"line": 2, "result": "existing", "id": "game:g-1", "position": 2}
        refused = follower.read_answer()
        assert (refused["line"], refused["result"], refused["code"]) == (3, "rejected", "player-twice")
        assert refused["message"]
        assert follower.read_answer() == {"line": 5, "result": "appended", "id": "game:g-3", "position": 3}
        assert follower.end() == (1, [], "note: 2 new players: anna, ben\n")
    assert list_recorded_games(ratings, db) == ["g-1", "g-3"]
    assert ratings("verify", db=db).exit_code == 0


BAD_LINES = {
    "no JSON": (b"{", "bad-json"),
    "no UTF-8": (b'{"type":"\xff"}', "bad-utf8"),
    "nothing of an event": (b"{}", "missing-member"),
    "too long": (b" " * 10 + b"x" * (1 << 20), "line-too-long"),
    "far too long": (b"x" * (3 << 20), "line-too-long"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("line", "code"), BAD_LINES.values(), ids=BAD_LINES)
def test_lines_around_a_bad_line_are_appended(line: bytes, code: str, one_db: str, ratings: Ratings) -> None:
    """A bad line is rejected with its code, and the lines around it are appended."""
    with start_follower(one_db) as follower:
        follower.send(
            build_galactic_line("g-1", "anna", "ben"), line + b"\n", build_galactic_line("g-2", "anna", "ben")
        )
        answers = follower.end()[1]
    assert [answer["result"] for answer in answers] == ["appended", "rejected", "appended"]
    assert answers[1]["code"] == code
    assert list_recorded_games(ratings, one_db) == ["g-1", "g-2"]


@pytest.mark.slow
def test_follow_prints_notes_to_stderr(one_db: str) -> None:
    """Following prints the notes of an ordinary import, such as new players, to standard error."""
    with start_follower(one_db, "--by", "the site") as follower:
        follower.send(*(build_galactic_line(f"g-{n}", "anna", "ben", game="chess") for n in range(3)))
        code, answers, stderr = follower.end()
    assert (code, len(answers)) == (0, 3)
    assert [line.partition(":")[0] for line in stderr.splitlines()] == ["note", "note"]
    assert "2 new players: anna, ben" in stderr
    assert "g-0 is on no ladder: no ruleset scores games of chess" in stderr


@pytest.mark.slow
def test_last_line_needs_no_line_end(one_db: str, ratings: Ratings) -> None:
    """A last line without a line end is read, as are a byte order mark and CRLF line ends."""
    with start_follower(one_db) as follower:
        follower.send(b"\xef\xbb\xbf" + build_galactic_line("g-1", "anna", "ben").encode().replace(b"\n", b"\r\n"))
        follower.send(build_galactic_line("g-2", "anna", "ben").rstrip("\n"))
        code, answers, _ = follower.end()
    assert (code, [answer["line"] for answer in answers]) == (0, [1, 2])


@pytest.mark.slow
def test_correction_of_a_game_in_the_same_group_is_accepted(db: str, ratings: Ratings) -> None:
    """A correction of a game in the same group is accepted; a void of an unknown game is rejected."""
    data = json.loads(build_galactic_line("g-1", "ben", "anna"))["data"]
    with start_follower(db) as follower:
        follower.send(
            build_galactic_line("g-1", "anna", "ben"),
            build_event_line("game.corrected", game_id="g-1", reason="wrong way round", game=data),
            build_event_line("game.voided", game_id="g-2", reason="never played"),
        )
        answers = follower.end()[1]
    assert [answer.get("code", answer["result"]) for answer in answers] == ["appended", "appended", "game-unknown"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_follower_after_append(number: signal.Signals, one_db: str, ratings: Ratings) -> None:
    """A signal ends a waiting follower with exit code 0 after every complete line is in the log."""
    with start_follower(one_db) as follower:
        follower.send(build_galactic_line("g-1", "anna", "ben"))
        assert follower.read_answer()["result"] == "appended"
        follower.send(build_galactic_line("g-2", "anna", "ben"), '{"type":"game.rec')
        assert follower.read_answer()["result"] == "appended"
        follower.process.send_signal(number)
        assert follower.process.wait(60) == 0
    assert list_recorded_games(ratings, one_db) == ["g-1", "g-2"]


def test_stop_between_groups_loses_no_line() -> None:
    """A stop between two groups still yields every complete line, in groups of limited size."""
    (reading, writing), (stopped, stop) = os.pipe(), os.pipe()
    os.write(writing, b"".join(b"%d\n" % number for number in range(2_500)) + b"half a line")
    group_iterator = gather_groups(reading, stopped)
    lines = list(next(group_iterator))
    os.write(stop, b".")
    for group in group_iterator:
        assert len(group) <= GROUP_LINES
        lines += group
    assert lines == [(number + 1, b"%d" % number) for number in range(2_500)]
    for descriptor in (reading, writing, stopped, stop):
        os.close(descriptor)


@pytest.mark.slow
def test_chunk_size_does_not_change_lines() -> None:
    """Input cut into chunks of any size gives the same lines, even if some are too long."""
    text = b"\xef\xbb\xbfone\r\n\n  \ntwo\n" + b"x" * (1 << 20) + b"\n" + b"y" * ((1 << 20) + 1) + b"\nlast\n"
    for size in (61, 4_096, len(text)):
        splitter = _LineSplitter()
        numbered_lines = [
            line for start in range(0, len(text), size) for line in splitter.split(text[start : start + size])
        ]
        lengths_or_codes = [
            (number, line.code if isinstance(line, Refused) else len(line)) for number, line in numbered_lines
        ]
        assert lengths_or_codes == [(1, 3), (4, 3), (5, 1 << 20), (6, "line-too-long"), (7, 4)]


@pytest.mark.slow
def test_lost_connection_answers_nothing(postgres_url: str, ratings: Ratings) -> None:
    """A lost connection ends the follower with exit code 3 and no answers, and the lines can be sent again."""
    create_galactic_ledger(ratings, postgres_url)
    with start_follower(postgres_url) as follower:
        follower.send(build_galactic_line("g-1", "anna", "ben"))
        assert follower.read_answer()["result"] == "appended"
        server = make_url(postgres_url)
        with psycopg.connect(server.render_as_string(hide_password=False), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        follower.send(build_galactic_line("g-2", "anna", "ben"), build_galactic_line("g-3", "anna", "ben"))
        code, answers, stderr = follower.end()
    assert (code, answers) == (3, [])
    assert "the lines from 2 on are unanswered; send them again; a stored line is not stored twice" in stderr
    assert "Traceback" not in stderr
    with start_follower(postgres_url) as follower:
        follower.send(*(build_galactic_line(f"g-{n}", "anna", "ben") for n in (1, 2, 3)))
        assert [answer["result"] for answer in follower.end()[1]] == ["existing", "appended", "appended"]


@pytest.mark.slow
def test_locked_store_ends_with_exit_3(one_db: str, ratings: Ratings) -> None:
    """A line that finds the store locked gets no answer, and the follower ends with exit code 3."""
    with start_follower(f"sqlite:///{one_db}?timeout=0.1") as follower, closing(sqlite3.connect(one_db)) as blocker:
        follower.send(build_galactic_line("g-1", "anna", "ben"))
        assert follower.read_answer()["result"] == "appended"
        blocker.execute("BEGIN IMMEDIATE")
        follower.send(build_galactic_line("g-2", "anna", "ben"))
        code, answers, stderr = follower.end()
        assert (code, answers) == (3, [])
        assert "the lines from 2 on are unanswered" in stderr
        assert "is locked by another program" in stderr
    assert list_recorded_games(ratings, one_db) == ["g-1"]


@pytest.mark.slow
def test_line_resent_after_kill_is_existing(db: str, ratings: Ratings) -> None:
    """A line resent after its follower was killed is answered as existing and recorded once."""
    with start_follower(db) as follower:
        follower.send(build_galactic_line("g-1", "anna", "ben"))
        assert follower.read_answer()["position"] == 2
        follower.process.kill()
        follower.process.wait(60)
    with start_follower(db) as follower:
        follower.send(build_galactic_line("g-1", "anna", "ben"), build_galactic_line("g-2", "anna", "ben"))
        answers = follower.end()[1]
    assert [(answer["result"], answer["position"]) for answer in answers] == [("existing", 2), ("appended", 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines", [[build_galactic_line("g-1", "anna", "ben")], [build_galactic_line("g-1", "anna", "anna")]]
)
def test_closed_output_does_not_change_the_exit_code(one_db: str, lines: list[str]) -> None:
    """With a closed standard output, the exit code says only whether a line was rejected.

    A note names the first line without an answer.
    """
    with start_follower(one_db) as follower:
        assert follower.process.stdout is not None
        follower.process.stdout.close()
        follower.send(*lines)
        assert follower.process.wait(60) == int("ben" not in lines[0])
        assert follower.process.stderr is not None
        note = follower.process.stderr.read()
        assert b"standard output was closed\n" in note
        assert b"the lines from 1 on are unanswered" in note


@pytest.mark.slow_cases
def test_repeat_of_refused_line_is_appended(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line equal to one that was refused under the lock just before is appended, not called existing."""
    store = open_ledger(db)

    def refuse_once(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        with store.reading() as connection:
            return appending.AppendResult(0, 0, [(0, Rejection("players-met", "as of now"))], store_head(connection))

    monkeypatch.setattr("ratings_ledger.ledger.intake.intake.append", refuse_once)
    policy = ImportPolicy("test", keep_going=True)
    line = build_galactic_line("g-1", "anna", "ben").encode()
    answers = import_and_answer(
        store,
        [(1, line), (2, line)],
        lambda items, reject, settled: Intake(store, items, policy, reject=reject, on_stored=settled).append(),
    )
    assert [(answer["line"], answer["result"]) for answer in answers] == [(1, "rejected"), (2, "appended")]
    assert list_recorded_games(ratings, db) == ["g-1"]


USAGE_ERRORS = [
    ["games.jsonl"],
    ["-", "--dry-run"],
    ["-", "--keep-going"],
    ["-", "--restore"],
    ["-", "--map", "a=b"],
    ["-", "--set", "game=catan"],
    ["-", "--zone", "UTC"],
]


@pytest.mark.slow_cases
@pytest.mark.parametrize("arguments", USAGE_ERRORS, ids=map(" ".join, USAGE_ERRORS))
def test_file_options_are_refused_when_following(
    arguments: list[str], one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--follow` with a file, or with an option for files, is a usage error and appends nothing."""
    monkeypatch.chdir(tmp_path)
    Path("games.jsonl").write_text(build_galactic_line("g-1", "anna", "ben"))
    before = read_head(ratings, one_db)
    assert ratings("import", "--follow", *arguments, db=one_db).exit_code == 2
    assert read_head(ratings, one_db) == before
