"""`import --keep-going`: what is good goes in, what is not stays out whole, and nothing is dropped without a word."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import without_events

from ledger.events.types import read_event
from ledger.intake import importing
from ledger.store.appending import append
from ledger.store.opening import open_ledger

HEADER = "game_id,occurred_at,game,player,place\n"
Ratings = Callable[..., Any]


def rows(game_id: str, *players: str) -> str:
    """The rows of a game in the order of its places."""
    return "".join(f"{game_id},2010-01-01T00:00:00Z,catan,{player},{n}\n" for n, player in enumerate(players, 1))


@pytest.fixture
def db(copied_file: Callable[..., str]) -> str:
    return copied_file(without_events)


def imported(ratings: Ratings, db: str, *files: Path) -> tuple[list[str], list[str]]:
    """(the games that are in the ledger afterwards, the codes refused) of an import that keeps going."""
    result = ratings("import", *files, "--keep-going", "--format", "json", db=db)
    games = json.loads(ratings("games", "--format", "json", db=db).stdout)["rows"]
    return sorted(game["game_id"] for game in games), [r["code"] for r in json.loads(result.stdout)["rejected"]]


def test_a_quote_that_swallows_a_row_costs_both_games_and_never_leaves_half_of_one(
    db: str, tmp_path: Path, ratings: Ratings
) -> None:
    """Given a quote from g1 into g2's first row, when imported, then g2 is not taken without its winner."""
    text = HEADER + rows("g1", "al", "be") + rows("g2", "anna", "cleo", "dora") + rows("g3", "al", "be")
    text = text.replace("catan,be,2\ng2", 'catan,"be,2\ng2').replace("catan,anna,1", 'catan,anna",1')
    (tmp_path / "q.csv").write_text(text)
    games, codes = imported(ratings, db, tmp_path / "q.csv")
    assert games == ["g3"]
    assert "bad-csv" in codes


def test_rows_apart_cost_the_whole_game_and_both_blocks_are_in_the_rejects(
    db: str, tmp_path: Path, ratings: Ratings
) -> None:
    (tmp_path / "apart.csv").write_text(HEADER + rows("g1", "a", "b") + rows("g2", "a", "b") + rows("g1", "c"))
    assert imported(ratings, db, tmp_path / "apart.csv") == (["g2"], ["rows-apart", "rows-apart"])
    lines = [json.loads(line) for line in (tmp_path / "apart.csv.rejects.jsonl").read_text().splitlines()]
    assert [[row["player"] for row in line["input"]] for line in lines] == [["a", "b"], ["c"]]


def test_a_conflict_with_another_file_does_not_cost_that_files_game(db: str, tmp_path: Path, ratings: Ratings) -> None:
    data = {
        "game_id": "g1",
        "game": "catan",
        "participants": [{"player": "x", "place": 1}, {"player": "y", "place": 2}],
    }
    event = {"type": "game.recorded", "occurred_at": "2010-01-01T00:00:00Z", "data": data}
    (tmp_path / "a.jsonl").write_text(json.dumps(event))
    (tmp_path / "b.csv").write_text(HEADER + rows("g1", "a", "b"))
    assert imported(ratings, db, tmp_path / "a.jsonl", tmp_path / "b.csv") == (["g1"], ["id-conflict"])


def test_decomposed_and_composed_ids_are_one_game(db: str, tmp_path: Path, ratings: Ratings) -> None:
    text = HEADER + rows("caf\u00e9", "a", "b") + rows("g2", "a", "b") + rows("cafe\u0301", "c")
    (tmp_path / "n.csv").write_text(text, encoding="utf-8")
    assert imported(ratings, db, tmp_path / "n.csv") == (["g2"], ["rows-apart", "rows-apart"])


def test_a_file_named_twice_is_read_once(db: str, tmp_path: Path, ratings: Ratings) -> None:
    (tmp_path / "t.csv").write_text(HEADER + rows("g1", "a", "b"))
    assert imported(ratings, db, tmp_path / "t.csv", tmp_path / "t.csv") == (["g1"], [])


def test_no_file_that_is_there_is_deleted_or_overwritten(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """Given the refusals of the day before among the inputs, when imported with them, then they are read, and the new
    refusals go to the next free name, which is said."""
    table, old = tmp_path / "t.csv", tmp_path / "t.csv.rejects.jsonl"
    table.write_text(HEADER + rows("g1", "a", "b") + "g2,2024-01-01T12:00:00Z,catan,a,9\n")
    old.write_text("{}\n")
    for number in (2, 3):
        done = ratings("import", "--keep-going", table, old, db=db)
        assert done.exit_code == 1
        assert f"refused lines are in {table}.rejects.{number}.jsonl" in done.stderr
        assert f"refused lines are in {old}.rejects" in done.stderr
        assert old.read_text() == "{}\n"
    assert json.loads((tmp_path / "t.csv.rejects.2.jsonl").read_text())["code"] == "too-few-participants"


def test_what_somebody_else_records_meanwhile_is_refused_and_the_rest_goes_in(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given g1 recorded by another process between check and append, when keeping going, then g2 is still appended."""
    (tmp_path / "t.csv").write_text(HEADER + rows("g1", "a", "b") + rows("g2", "a", "b"))
    real = importing.append

    def late(ledger: Any, drafts: Any, **options: Any) -> Any:
        monkeypatch.setattr(importing, "append", real)
        data = {
            "game_id": "g1",
            "game": "chess",
            "participants": [{"player": "x", "place": 1}, {"player": "y", "place": 2}],
        }
        draft, _ = read_event({"type": "game.recorded", "occurred_at": "2010-01-01T00:00:00Z", "data": data})
        assert append(open_ledger(db), [draft], by="other", clock=options["clock"]).appended == 1
        return real(ledger, drafts, **options)

    monkeypatch.setattr(importing, "append", late)
    assert imported(ratings, db, tmp_path / "t.csv") == (["g1", "g2"], ["id-conflict"])
