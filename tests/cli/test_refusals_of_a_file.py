"""Reports about refused files: all faults at once, a repeated fault in one line, unlikely dates, spreadsheets."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from builders import format_game_line
from correction_helpers import Ratings, build_game_data, read_head, read_json
from ledgers import set_clock
from stores import make_chess_ledger

HEADER = "game_id,occurred_at,game,1st,2nd\n"
ROW = "g-{0},2024-03-05T12:00:00Z,chess,anna{0},ben{0}\n"


pytestmark = pytest.mark.ledger(make=make_chess_ledger, store="sqlite")


def list_rejections(ratings: Ratings, db: str, content: str | bytes, *options: str) -> list[dict[str, Any]]:
    """Run an import, which must be refused, and return the rejections in its JSON."""
    result = ratings("import", "-", "--format", "json", *options, db=db, input=content)
    assert result.exit_code == 1
    return list(json.loads(result.stdout)["rejected"])


def test_header_faults_are_reported_together(db: str, ratings: Ratings) -> None:
    """All faults of a header are reported at once."""
    rejections = list_rejections(ratings, db, "Kind,Moment,1st,1st,player\nx,y,a,b,c\n", "--map", "Ort=city")
    assert {rejection["line"] for rejection in rejections} == {1}
    codes = ["missing-column", "column-twice", "unknown-column", "unknown-column", "missing-column"]
    assert [rejection["code"] for rejection in rejections] == codes
    # `game` is not among the missing columns, because the ledger's rulesets score a single game
    assert "there is no column 'occurred_at'; rename yours with --map THEIRS=occurred_at" in rejections[-1]["message"]


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda text: text.replace("anna", "Łukasz").encode("cp1250"), "bad-utf8"),
        (lambda text: text.replace("12:00:00Z", "12:00"), "naive-time"),
        (lambda text: text.replace("2024-03-05T12:00:00Z", "early in March 2024"), "bad-time"),
        (lambda text: text.replace("chess", "将棋"), "bad-slug"),
    ],
    ids=["encoding", "no zone", "dates", "the same value"],
)
def test_repeated_fault_takes_one_line(
    spoil: Callable[[str], str | bytes], code: str, db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A fault on 600 lines takes one line on standard error; JSON and the file of rejects list all 600."""
    path, content = tmp_path / "games.csv", spoil(HEADER + "".join(ROW.format(n) for n in range(600)))
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = ratings("import", path, db=db)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}:2: {code}: ")
    assert line.endswith(" (599 more like this, the last in line 601)")
    assert "600 refused; nothing was appended" in result.stdout
    assert [rejection["line"] for rejection in list_rejections(ratings, db, path.read_bytes())] == list(range(2, 602))
    ratings("import", path, "--keep-going", db=db)
    assert len(Path(f"{path}.rejects.jsonl").read_text(encoding="utf-8").splitlines()) == 600


def test_repeated_fault_is_counted_by_game(db: str, ratings: Ratings) -> None:
    """In a table with two rows per game, a repeated fault is shown once, with the number of further games."""
    rows = "".join(f"g-{n},2024-03-0{n}T12:00,chess,{name},1\n" for n in (1, 2, 3) for name in ("anna", "ben"))
    result = ratings("import", "-", db=db, input=f"game_id,occurred_at,game,player,place\n{rows}")
    (line,) = result.stderr.splitlines()
    assert line.startswith("-:2: naive-time: ")
    assert line.endswith(" (2 more like this, the last in line 6)")
    assert result.stdout.startswith("0 appended, 3 refused;")


def test_text_output_shows_twenty_faults(db: str, ratings: Ratings) -> None:
    """The text output shows twenty different faults and the number of the others; JSON lists all."""
    content = HEADER + "".join(ROW.format(n).replace("anna", f"x{n}" + "y" * 65) for n in range(30))
    lines = ratings("import", "-", db=db, input=content).stderr.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "... and 10 more (--format json lists them)"
    assert len(list_rejections(ratings, db, content)) == 30


def test_spreadsheets_need_their_extra(
    db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extra `spreadsheets`, a spreadsheet is refused; the message says to install it or to save CSV."""
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "games.xlsx").write_bytes(b"PK\x03\x04" + bytes(range(256)))
    result = ratings("import", tmp_path / "games.xlsx", "--set", "game=chess", db=db)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{tmp_path / 'games.xlsx'}: is-a-spreadsheet: ")
    assert "pip install 'ratings-ledger[spreadsheets]'; or save it as CSV UTF-8" in result.stderr


# dates

NOW = datetime.now(UTC)
LATEST = NOW + timedelta(days=1)
UNLIKELY = [
    "0025-03-05T12:00:00Z",
    "1899-12-31T23:59:59.999999Z",
    f"{LATEST + timedelta(microseconds=1):%Y-%m-%dT%H:%M:%S.%fZ}",
    "9999-12-31T00:00:00Z",
]
LIKELY = ["1900-01-01T00:00:00Z", "2024-03-05T12:00:00Z", f"{LATEST:%Y-%m-%dT%H:%M:%S.%fZ}"]


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, f"{NOW:%Y-%m-%dT%H:%M:%S.%fZ}")


def format_chess_line(at: str, game_id: str = "g-1") -> str:
    """Return a game of chess at a time as a line of JSON."""
    return format_game_line(game_id, "anna", "ben", at=at, game="chess")


# the arguments and the standard input of commands that record or date a game
COMMANDS: dict[str, Callable[[str], tuple[list[str], str | None]]] = {
    "import of lines": lambda at: (["import", "-"], format_chess_line(at)),
    "import of a table": lambda at: (["import", "-"], f"{HEADER}g-1,{at},chess,anna,ben\n"),
    "record": lambda at: (["record", "--game", "chess", "--game-id", "g-1", "--at", at, "anna", "ben"], None),
    "correct": lambda at: (["correct", "g-0", "--at", at, "--reason", "wrong day"], None),
}


@pytest.mark.parametrize("at", UNLIKELY, ids=("25", "1899", "in a day", "9999"))
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_unlikely_date_is_refused(
    command: Callable[[str], tuple[list[str], str | None]], at: str, db: str, ratings: Ratings
) -> None:
    """A game with an unlikely date is refused, unless --any-date is given."""
    ratings("import", "-", db=db, input=format_chess_line(LIKELY[1], "g-0"))
    before, (arguments, stdin) = read_head(ratings, db), command(at)
    result = ratings(*arguments, "--format", "json", db=db, input=stdin)
    (rejection,) = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, rejection["code"]) == (1, "unlikely-date")
    assert "--any-date" in rejection["message"]
    assert read_head(ratings, db) == before
    assert ratings(*arguments, "--any-date", db=db, input=stdin).exit_code == 0


@pytest.mark.parametrize("at", LIKELY, ids=("1900", "2024", "within a day"))
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_likely_dates_are_accepted(
    command: Callable[[str], tuple[list[str], str | None]], at: str, db: str, ratings: Ratings
) -> None:
    """Games dated from 1900 up to a day ahead are accepted."""
    ratings("import", "-", db=db, input=format_chess_line("2025-01-01T00:00:00Z", "g-0"))
    arguments, stdin = command(at)
    assert ratings(*arguments, db=db, input=stdin).exit_code == 0


def test_kept_dates_and_adjustments_need_no_option(db: str, ratings: Ratings) -> None:
    """A correction that keeps an unlikely date is accepted without --any-date, and so is an adjustment of any date.

    The game of 1850 was recorded with --any-date; the corrections change its players.
    """
    assert ratings("import", "-", "--any-date", db=db, input=format_chess_line("1850-03-05T12:00:00Z")).exit_code == 0
    assert ratings("correct", "g-1", "ben", "anna", "--reason", "swapped", db=db).exit_code == 0
    (row,) = read_json(ratings, db, "games", "g-1")["rows"]
    corrected_game = json.dumps({**row, "participants": build_game_data("", "anna", "ben")["participants"]})
    assert ratings("correct", "g-1", "--reason", "not swapped", db=db, input=corrected_game).exit_code == 0
    for at in ("2999-01-01T00:00:00Z", "1850-01-01T00:00:00Z"):
        assert ratings("adjust", "elo-chess/all", "anna", "5", "--reason", "x", "--at", at, db=db).exit_code == 0


def test_restore_accepts_unlikely_date(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A restore accepts a game with an unlikely date without --any-date."""
    ratings("import", "-", "--any-date", db=db, input=format_chess_line("0025-03-05T12:00:00Z"))
    ratings("export", "events", "-o", tmp_path / "log.jsonl", db=db)
    copy = str(tmp_path / "copy.db")
    ratings("init", "--no-rules", db=copy)
    assert ratings("import", "--restore", tmp_path / "log.jsonl", db=copy).exit_code == 0
    assert read_head(ratings, copy) == read_head(ratings, db)
