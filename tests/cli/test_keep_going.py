"""`import --keep-going` records valid games, leaves out each refused game as a whole, and reports what it left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import build_draft, build_game
from interleaving import act_before_next
from ledgers import append_drafts
from stores import make_empty_ledger

HEADER = "game_id,occurred_at,game,player,place\n"
Ratings = Callable[..., Any]


def format_rows(game_id: str, *players: str) -> str:
    """Return the rows of a game in the order of its places."""
    return "".join(f"{game_id},2010-01-01T00:00:00Z,catan,{player},{n}\n" for n, player in enumerate(players, 1))


pytestmark = pytest.mark.ledger(make=make_empty_ledger, store="sqlite")


def import_files(ratings: Ratings, db: str, *files: Path) -> tuple[list[str], list[str]]:
    """Import files with --keep-going; return (the games in the ledger afterwards, the codes of refusals)."""
    result = ratings("import", *files, "--keep-going", "--format", "json", db=db)
    games = json.loads(ratings("games", "--format", "json", db=db).stdout)["rows"]
    return sorted(game["game_id"] for game in games), [r["code"] for r in json.loads(result.stdout)["rejected"]]


def test_stray_quote_rejects_both_games(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A stray quote that joins the last row of a game to the first row of the next rejects both games.

    Otherwise g2 would be recorded without its winner.
    """
    text = (
        HEADER
        + format_rows("g1", "al", "be")
        + format_rows("g2", "anna", "cleo", "dora")
        + format_rows("g3", "al", "be")
    )
    text = text.replace("catan,be,2\ng2", 'catan,"be,2\ng2').replace("catan,anna,1", 'catan,anna",1')
    (tmp_path / "q.csv").write_text(text)
    games, codes = import_files(ratings, db, tmp_path / "q.csv")
    assert games == ["g3"]
    assert codes == ["too-few-participants", "line-break", "game-incomplete"]


def test_rows_apart_reject_the_whole_game(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A game whose rows are in two places is rejected as a whole, and both blocks are in the rejects file."""
    (tmp_path / "apart.csv").write_text(
        HEADER + format_rows("g1", "a", "b") + format_rows("g2", "a", "b") + format_rows("g1", "c")
    )
    assert import_files(ratings, db, tmp_path / "apart.csv") == (["g2"], ["rows-apart", "rows-apart"])
    lines = [json.loads(line) for line in (tmp_path / "apart.csv.rejects.jsonl").read_text().splitlines()]
    assert [[row["player"] for row in line["input"]] for line in lines] == [["a", "b"], ["c"]]


def test_conflict_spares_the_other_files_game(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A game that conflicts with one of another file is refused without costing that file's game."""
    data = {
        "game_id": "g1",
        "game": "catan",
        "participants": [{"player": "x", "place": 1}, {"player": "y", "place": 2}],
    }
    event = {"type": "game.recorded", "occurred_at": "2010-01-01T00:00:00Z", "data": data}
    (tmp_path / "a.jsonl").write_text(json.dumps(event))
    (tmp_path / "b.csv").write_text(HEADER + format_rows("g1", "a", "b"))
    assert import_files(ratings, db, tmp_path / "a.jsonl", tmp_path / "b.csv") == (["g1"], ["id-conflict"])


def test_composed_and_decomposed_ids_match(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """Composed and decomposed spellings of an id name one game."""
    text = HEADER + format_rows("caf\u00e9", "a", "b") + format_rows("g2", "a", "b") + format_rows("cafe\u0301", "c")
    (tmp_path / "n.csv").write_text(text, encoding="utf-8")
    assert import_files(ratings, db, tmp_path / "n.csv") == (["g2"], ["rows-apart", "rows-apart"])


def test_file_named_twice_is_read_once(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A file named twice is read once."""
    (tmp_path / "t.csv").write_text(HEADER + format_rows("g1", "a", "b"))
    files = (tmp_path / "t.csv", tmp_path / "t.csv")
    report = json.loads(ratings("import", *files, "--keep-going", "--format", "json", db=db).stdout)
    assert (report["appended"], report["existing"], report["rejected"]) == (1, 0, [])


def test_existing_files_are_never_overwritten(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """No existing file is deleted or overwritten.

    If the previous day's rejects file is among the inputs, it is read, and the new refusals go to the
    next free name, which is reported.
    """
    table, old = tmp_path / "t.csv", tmp_path / "t.csv.rejects.jsonl"
    table.write_text(HEADER + format_rows("g1", "a", "b") + "g2,2024-01-01T12:00:00Z,catan,a,9\n")
    old.write_text("{}\n")
    for number in (2, 3):
        result = ratings("import", "--keep-going", table, old, db=db)
        assert result.exit_code == 1
        assert f"refused lines are in {table}.rejects.{number}.jsonl" in result.stderr
        assert f"refused lines are in {old}.rejects" in result.stderr
        assert old.read_text() == "{}\n"
    assert json.loads((tmp_path / "t.csv.rejects.2.jsonl").read_text())["code"] == "too-few-participants"


def test_concurrent_duplicate_is_refused_alone(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A game recorded by another process between check and append is refused; the rest is recorded."""
    (tmp_path / "t.csv").write_text(HEADER + format_rows("g1", "a", "b") + format_rows("g2", "a", "b"))

    def record_meanwhile() -> None:
        theirs = build_game("g1", "x", "y", at="2010-01-01T00:00:00Z", game="chess")
        assert append_drafts(db, build_draft(theirs), by="other").appended == 1

    act_before_next("appended", record_meanwhile)
    assert import_files(ratings, db, tmp_path / "t.csv") == (["g1", "g2"], ["id-conflict"])
