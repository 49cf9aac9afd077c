"""What a file's refusals look like: all at once, one cause once on a terminal, unlikely dates, spreadsheets."""

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


def rejected(ratings: Ratings, db: str, content: str | bytes, *options: str) -> list[dict[str, Any]]:
    """The refusals of an import, as JSON tells them."""
    result = ratings("import", "-", "--format", "json", *options, db=db, input=content)
    assert result.exit_code == 1
    return list(json.loads(result.stdout)["rejected"])


def test_header_faults_are_reported_together(db: str, ratings: Ratings) -> None:
    """Everything wrong with a header is reported at once."""
    told = rejected(ratings, db, "Kind,Moment,1st,1st,player\nx,y,a,b,c\n", "--map", "Ort=city")
    assert [(one["line"], one["code"]) for one in told] == [
        (1, "missing-column"), (1, "column-twice"), (1, "unknown-column"), (1, "unknown-column"), (1, "missing-column"),
    ]  # fmt: skip
    # the only game that the ledger's rulesets score needs no column
    assert "there is no column 'occurred_at'; rename yours with --map THEIRS=occurred_at" in told[-1]["message"]


@pytest.mark.parametrize(
    ("spoilt", "code"),
    [
        (lambda text: text.replace("anna", "Łukasz").encode("cp1250"), "bad-utf8"),
        (lambda text: text.replace("12:00:00Z", "12:00"), "naive-time"),
        (lambda text: text.replace("2024-03-05T12:00:00Z", "early in March 2024"), "bad-time"),
        (lambda text: text.replace("chess", "将棋"), "bad-slug"),
    ],
    ids=["encoding", "no zone", "dates", "the same value"],
)
def test_repeated_fault_takes_one_line(
    spoilt: Callable[[str], str | bytes], code: str, db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A fault repeated on 600 lines takes one line on a terminal, and is listed in full in JSON."""
    path, content = tmp_path / "games.csv", spoilt(HEADER + "".join(ROW.format(n) for n in range(600)))
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = ratings("import", path, db=db)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}:2: {code}: ")
    assert line.endswith(" (599 more like this, the last in line 601)")
    assert "600 refused; nothing was appended" in result.stdout
    assert [one["line"] for one in rejected(ratings, db, path.read_bytes())] == list(range(2, 602))
    ratings("import", path, "--keep-going", db=db)
    assert len(Path(f"{path}.rejects.jsonl").read_text(encoding="utf-8").splitlines()) == 600


def test_games_of_several_lines_are_not_counted_as_lines(db: str, ratings: Ratings) -> None:
    """Where rows make games, three of two rows with one fault are one and two more, the last of them in line 6."""
    rows = "".join(f"g-{n},2024-03-0{n}T12:00,chess,{name},1\n" for n in (1, 2, 3) for name in ("anna", "ben"))
    result = ratings("import", "-", db=db, input=f"game_id,occurred_at,game,player,place\n{rows}")
    (line,) = result.stderr.splitlines()
    assert (line.startswith("-:2: naive-time: "), line.endswith(" (2 more like this, the last in line 6)")) == (
        True,
        True,
    )
    assert result.stdout.startswith("0 appended, 3 refused;")


def test_terminal_shows_twenty_faults(db: str, ratings: Ratings) -> None:
    """A terminal shows twenty different faults and how many more there are."""
    content = HEADER + "".join(ROW.format(n).replace("anna", f"x{n}" + "y" * 65) for n in range(30))
    lines = ratings("import", "-", db=db, input=content).stderr.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "... and 10 more (--format json lists them)"
    assert len(rejected(ratings, db, content)) == 30


def test_spreadsheets_need_their_extra(
    db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extra, a spreadsheet file is refused with what would read it, and with another way."""
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "games.xlsx").write_bytes(b"PK\x03\x04" + bytes(range(256)))
    refused = ratings("import", tmp_path / "games.xlsx", "--set", "game=chess", db=db)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"{tmp_path / 'games.xlsx'}: is-a-spreadsheet: ")
    assert "pip install 'ratings-ledger[spreadsheets]'; or save it as CSV UTF-8" in refused.stderr


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


def chess(at: str, name: str = "g-1") -> str:
    """A game of chess at some time as a line of JSON."""
    return format_game_line(name, "anna", "ben", at=at, game="chess")


COMMANDS: dict[str, Callable[[str], tuple[list[str], str | None]]] = {
    "import of lines": lambda at: (["import", "-"], chess(at)),
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
    ratings("import", "-", db=db, input=chess(LIKELY[1], "g-0"))
    before, (arguments, given) = read_head(ratings, db), command(at)
    refused = ratings(*arguments, "--format", "json", db=db, input=given)
    (rejection,) = json.loads(refused.stdout)["rejected"]
    assert (refused.exit_code, rejection["code"]) == (1, "unlikely-date")
    assert "--any-date" in rejection["message"]
    assert read_head(ratings, db) == before
    assert ratings(*arguments, "--any-date", db=db, input=given).exit_code == 0


@pytest.mark.parametrize("at", LIKELY, ids=("1900", "2024", "within a day"))
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_likely_dates_are_accepted(
    command: Callable[[str], tuple[list[str], str | None]], at: str, db: str, ratings: Ratings
) -> None:
    """Games dated from 1900 up to a day ahead are accepted."""
    ratings("import", "-", db=db, input=chess("2025-01-01T00:00:00Z", "g-0"))
    arguments, given = command(at)
    assert ratings(*arguments, db=db, input=given).exit_code == 0


def test_kept_and_other_dates_are_free(db: str, ratings: Ratings) -> None:
    """A correction that keeps an unlikely date is accepted, and other events may have any date.

    The game of 1850 was accepted with --any-date and is then corrected in other respects.
    """
    assert ratings("import", "-", "--any-date", db=db, input=chess("1850-03-05T12:00:00Z")).exit_code == 0
    assert ratings("correct", "g-1", "ben", "anna", "--reason", "swapped", db=db).exit_code == 0
    (row,) = read_json(ratings, db, "games", "g-1")["rows"]
    given = json.dumps({**row, "participants": build_game_data("", "anna", "ben")["participants"]})
    assert ratings("correct", "g-1", "--reason", "not swapped", db=db, input=given).exit_code == 0
    for at in ("2999-01-01T00:00:00Z", "1850-01-01T00:00:00Z"):
        assert ratings("adjust", "elo-chess/all", "anna", "5", "--reason", "x", "--at", at, db=db).exit_code == 0


def test_restore_accepts_every_date(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A restore accepts every date."""
    ratings("import", "-", "--any-date", db=db, input=chess("0025-03-05T12:00:00Z"))
    ratings("export", "events", "-o", tmp_path / "log.jsonl", db=db)
    copy = str(tmp_path / "copy.db")
    ratings("init", "--no-rules", db=copy)
    assert ratings("import", "--restore", tmp_path / "log.jsonl", db=copy).exit_code == 0
    assert read_head(ratings, copy) == read_head(ratings, db)
