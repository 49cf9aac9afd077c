"""`import --follow -`: lines are answered as they come, each by what is in the log, and by nothing else."""

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from correction_helpers import Ratings, event, galactic, head, new_ledger, read
from followers import following
from sqlalchemy import make_url

from ratings_ledger import Refused, Rejection
from ratings_ledger.ledger.intake.following import BATCH_EVENTS, _LineSplitter, gather_batches, import_and_answer
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake
from ratings_ledger.ledger.store import appending
from ratings_ledger.ledger.store.log import head as store_head
from ratings_ledger.ledger.store.opening import open_ledger


def a_pool(ratings: Ratings, url: str) -> None:
    """Make a ledger for Galactic Magnate without games; its ruleset is position 1."""
    new_ledger(ratings, url, "galactic-points-1")


pytestmark = pytest.mark.ledger(make=a_pool)


def recorded(ratings: Ratings, db: str) -> list[str]:
    """The games in the order of their positions."""
    rows = read(ratings, db, "log", "--limit", "0")["rows"]
    return [row["data"]["game_id"] for row in rows if row["type"] == "game.recorded"]


@pytest.mark.slow
def test_each_line_is_answered_in_order(db: str, ratings: Ratings) -> None:
    """`import --follow` answers each line in order as appended, existing or rejected."""
    with following(db) as follower:
        follower.send(galactic("g-1", "anna", "ben"))
        assert follower.answer() == {"line": 1, "result": "appended", "id": "game:g-1", "position": 2}
        follower.send(
            galactic("g-1", "anna", "ben"), galactic("g-2", "anna", "anna"), "\n", galactic("g-3", "ben", "anna")
        )
        assert follower.answer() == {"line": 2, "result": "existing", "id": "game:g-1", "position": 2}
        refused = follower.answer()
        assert (refused["line"], refused["result"], refused["code"]) == (3, "rejected", "player-twice")
        assert refused["message"]
        assert follower.answer() == {"line": 5, "result": "appended", "id": "game:g-3", "position": 3}
        assert follower.end() == (1, [], "note: 2 new players: anna, ben\n")
    assert recorded(ratings, db) == ["g-1", "g-3"]
    assert ratings("verify", db=db).exit_code == 0


BAD = {
    "no JSON": (b"{", "bad-json"),
    "no UTF-8": (b'{"type":"\xff"}', "bad-utf8"),
    "nothing of an event": (b"{}", "missing-member"),
    "too long": (b" " * 10 + b"x" * (1 << 20), "line-too-long"),
    "far too long": (b"x" * (3 << 20), "line-too-long"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("line", "code"), BAD.values(), ids=BAD)
def test_lines_around_bad_line_are_taken(line: bytes, code: str, one_db: str, ratings: Ratings) -> None:
    """A bad line is rejected with its code, and the lines around it are appended."""
    with following(one_db) as follower:
        follower.send(galactic("g-1", "anna", "ben"), line + b"\n", galactic("g-2", "anna", "ben"))
        told = follower.end()[1]
    assert [one["result"] for one in told] == ["appended", "rejected", "appended"]
    assert told[1]["code"] == code
    assert recorded(ratings, one_db) == ["g-1", "g-2"]


@pytest.mark.slow
def test_follow_prints_notes_to_stderr(one_db: str) -> None:
    """Following prints the notes of an ordinary import, such as new players, to standard error."""
    with following(one_db, "--by", "the site") as follower:
        follower.send(*(galactic(f"g-{n}", "anna", "ben", game="chess") for n in range(3)))
        code, told, noted = follower.end()
    assert (code, len(told)) == (0, 3)
    assert [line.partition(":")[0] for line in noted.splitlines()] == ["note", "note"]
    assert "2 new players: anna, ben" in noted
    assert "on no ladder, such as g-0: no ruleset scores games of chess" in noted


@pytest.mark.slow
def test_last_line_needs_no_line_end(one_db: str, ratings: Ratings) -> None:
    """A last line without a line end is read, as are a byte order mark and CRLF line ends."""
    with following(one_db) as follower:
        follower.send(b"\xef\xbb\xbf" + galactic("g-1", "anna", "ben").encode().replace(b"\n", b"\r\n"))
        follower.send(galactic("g-2", "anna", "ben").rstrip("\n"))
        code, told, _ = follower.end()
    assert (code, [one["line"] for one in told]) == (0, [1, 2])


@pytest.mark.slow
def test_correction_fits_game_of_same_batch(db: str, ratings: Ratings) -> None:
    """A correction of a game in the same batch is accepted; a void of an unknown game is rejected."""
    data = json.loads(galactic("g-1", "ben", "anna"))["data"]
    with following(db) as follower:
        follower.send(
            galactic("g-1", "anna", "ben"),
            event("game.corrected", game_id="g-1", reason="wrong way round", game=data),
            event("game.voided", game_id="g-2", reason="never played"),
        )
        told = follower.end()[1]
    assert [one.get("code", one["result"]) for one in told] == ["appended", "appended", "game-unknown"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_follower_after_append(number: signal.Signals, one_db: str, ratings: Ratings) -> None:
    """A signal ends a waiting follower with exit code 0 and every complete line it read in the log."""
    with following(one_db) as follower:
        follower.send(galactic("g-1", "anna", "ben"))
        assert follower.answer()["result"] == "appended"
        follower.send(galactic("g-2", "anna", "ben"), '{"type":"game.rec')
        assert follower.answer()["result"] == "appended"
        follower.process.send_signal(number)
        assert follower.process.wait(60) == 0
    assert recorded(ratings, one_db) == ["g-1", "g-2"]


def test_stop_between_batches_loses_no_line() -> None:
    """A stop between two batches still yields every complete line read, in batches of limited size."""
    (reading, writing), (stopped, stop) = os.pipe(), os.pipe()
    os.write(writing, b"".join(b"%d\n" % number for number in range(2_500)) + b"half a line")
    given = gather_batches(reading, stopped)
    found = list(next(given))
    os.write(stop, b".")
    for batch in given:
        assert len(batch) <= BATCH_EVENTS
        found += batch
    assert found == [(number + 1, b"%d" % number) for number in range(2_500)]
    for descriptor in (reading, writing, stopped, stop):
        os.close(descriptor)


@pytest.mark.slow
def test_chunk_size_does_not_change_lines() -> None:
    """Input cut into chunks of any size gives the same lines, overlong ones included."""
    text = b"\xef\xbb\xbfone\r\n\n  \ntwo\n" + b"x" * (1 << 20) + b"\n" + b"y" * ((1 << 20) + 1) + b"\nlast\n"
    for size in (61, 4_096, len(text)):
        lines = _LineSplitter()
        found = [line for start in range(0, len(text), size) for line in lines.split(text[start : start + size])]
        told = [(number, line.code if isinstance(line, Refused) else len(line)) for number, line in found]
        assert told == [(1, 3), (4, 3), (5, 1 << 20), (6, "line-too-long"), (7, 4)]


@pytest.mark.slow
def test_lost_connection_answers_nothing(postgres_url: str, ratings: Ratings) -> None:
    """A lost connection means exit code 3 and no answers, and the lines can safely be sent again."""
    a_pool(ratings, postgres_url)
    with following(postgres_url) as follower:
        follower.send(galactic("g-1", "anna", "ben"))
        assert follower.answer()["result"] == "appended"
        server = make_url(postgres_url)
        with psycopg.connect(server.render_as_string(hide_password=False), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        follower.send(galactic("g-2", "anna", "ben"), galactic("g-3", "anna", "ben"))
        code, told, noted = follower.end()
    assert (code, told) == (3, [])
    assert "the lines from 2 on are unanswered; send them again (a stored line is not stored twice)" in noted
    assert "Traceback" not in noted
    with following(postgres_url) as follower:
        follower.send(*(galactic(f"g-{n}", "anna", "ben") for n in (1, 2, 3)))
        assert [one["result"] for one in follower.end()[1]] == ["existing", "appended", "appended"]


@pytest.mark.slow
def test_locked_store_ends_with_exit_3(one_db: str, ratings: Ratings) -> None:
    """A line that finds the store locked gets no answer, and the follower ends with exit code 3."""
    with following(f"sqlite:///{one_db}?timeout=0.1") as follower, closing(sqlite3.connect(one_db)) as other:
        follower.send(galactic("g-1", "anna", "ben"))
        assert follower.answer()["result"] == "appended"
        other.execute("BEGIN IMMEDIATE")
        follower.send(galactic("g-2", "anna", "ben"))
        code, told, noted = follower.end()
        assert (code, told) == (3, [])
        assert "the lines from 2 on are unanswered" in noted
        assert "is locked by another program" in noted
    assert recorded(ratings, one_db) == ["g-1"]


@pytest.mark.slow
def test_line_resent_after_kill_is_existing(db: str, ratings: Ratings) -> None:
    """A line resent after its follower was killed is answered as existing and recorded once."""
    with following(db) as follower:
        follower.send(galactic("g-1", "anna", "ben"))
        assert follower.answer()["position"] == 2
        follower.process.kill()
        follower.process.wait(60)
    with following(db) as follower:
        follower.send(galactic("g-1", "anna", "ben"), galactic("g-2", "anna", "ben"))
        told = follower.end()[1]
    assert [(one["result"], one["position"]) for one in told] == [("existing", 2), ("appended", 3)]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [[galactic("g-1", "anna", "ben")], [galactic("g-1", "anna", "anna")]])
def test_closed_output_ends_follower_as_any_command(one_db: str, lines: list[str]) -> None:
    """A closed standard output is no failure of the store: the exit code says only whether a line was rejected.

    A note names the first line without an answer.
    """
    with following(one_db) as follower:
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
    """A line equal to one refused under the lock just before is appended, not called existing."""
    store = open_ledger(db)

    def refused_once(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        with store.reading() as connection:
            return appending.AppendResult(0, 0, [(0, Rejection("players-met", "as of now"))], store_head(connection))

    monkeypatch.setattr("ratings_ledger.ledger.intake.intake.append", refused_once)
    terms = ImportPolicy("test", keep_going=True)
    line = galactic("g-1", "anna", "ben").encode()
    told = import_and_answer(
        store, [(1, line), (2, line)],
        lambda items, reject, settled: Intake(store, items, terms, reject=reject, on_stored=settled).append(),
    )  # fmt: skip
    assert [(one["line"], one["result"]) for one in told] == [(1, "rejected"), (2, "appended")]
    assert recorded(ratings, db) == ["g-1"]


USAGE = [
    ["games.jsonl"], ["-", "--dry-run"], ["-", "--keep-going"], ["-", "--restore"], ["-", "--map", "a=b"],
    ["-", "--set", "game=catan"], ["-", "--zone", "UTC"],
]  # fmt: skip


@pytest.mark.slow_cases
@pytest.mark.parametrize("arguments", USAGE, ids=map(" ".join, USAGE))
def test_file_options_are_refused_when_following(
    arguments: list[str], one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--follow` with a file, or with an option meant for files, is a usage error and appends nothing."""
    monkeypatch.chdir(tmp_path)
    Path("games.jsonl").write_text(galactic("g-1", "anna", "ben"))
    before = head(ratings, one_db)
    assert ratings("import", "--follow", *arguments, db=one_db).exit_code == 2
    assert head(ratings, one_db) == before
