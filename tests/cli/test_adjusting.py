"""`adjust --to` sets a player's points, `adjust --file` adjusts many players, `export changes` lists all changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interleaving import act_before_next

Ratings = Callable[..., Any]
LADDER = "elo-chess/all"


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    """Create a ledger with three games, on each kind of store."""
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=store).exit_code == 0
    for number, players in enumerate((["anna", "ben"], ["ben", "anna=cleo"], ["cleo", "anna"])):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}")
        assert ratings("record", "-q", *game, *players, db=store).exit_code == 0
    return store


def read_points(ratings: Ratings, db: str, *options: str) -> dict[str, str]:
    rows = json.loads(ratings("standings", LADDER, *options, "--format", "json", db=db).stdout)["rows"]
    return {row["player"]: row["points"] for row in rows}


def run_adjust(ratings: Ratings, db: str, *arguments: object) -> Any:
    return ratings("adjust", LADDER, *arguments, "--reason", "the old list", "--by", "tester", db=db)


@pytest.mark.slow_cases
def test_adjusted_value_holds_from_its_time(ratings: Ratings, db: str) -> None:
    """After `adjust --to` at a time, the player has that value then, and later games build on it.

    Adjusting to the same value again is refused with `nothing-to-correct`.
    """
    before = read_points(ratings, db)
    adjusted = run_adjust(ratings, db, "anna", "--to", "1500", "--at", "2024-01-02T12:00Z")
    assert adjusted.exit_code == 0, adjusted
    assert read_points(ratings, db, "--as-of", "2024-01-02")["anna"] == "1500"
    assert read_points(ratings, db)["anna"] not in ("1500", before["anna"])
    again = run_adjust(ratings, db, "anna", "--to", "1500", "--at", "2024-01-02T12:00Z")
    assert (again.exit_code, again.stderr) == (
        1,
        "nothing-to-correct: 'anna' already has these points on elo-chess\n",
    )


@pytest.mark.slow_cases
def test_adjustment_file_is_one_command(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """All rows of an adjustment file are recorded by one command; repeating it finds nothing to do."""
    file = tmp_path / "list.csv"
    file.write_text("player;to;reason;at\nanna;1500;;\nben;1200.5;a friend;\nzoe;900;;2024-01-02\n", encoding="utf-8")
    planned = run_adjust(ratings, db, "--file", file, "--at", "2024-01-05", "--dry-run")
    assert planned.stdout.startswith("Nothing was recorded; this is what points.adjusted would do.")
    adjusted = run_adjust(ratings, db, "--file", file, "--at", "2024-01-05")
    assert (adjusted.exit_code, adjusted.stdout.splitlines()[0]) == (
        0,
        "3 points.adjusted events are recorded, the last at position 8.",
    )
    assert {"anna": "1500", "ben": "2401/2", "zoe": "900"}.items() <= read_points(ratings, db).items()
    reasons = [
        row["reason"]
        for row in json.loads(ratings("history", "ben", LADDER, "--format", "json", db=db).stdout)["rows"]
        if "reason" in row
    ]
    assert reasons == ["a friend"]
    assert run_adjust(ratings, db, "--file", file, "--at", "2024-01-05").exit_code == 1


@pytest.mark.slow_cases
def test_wrong_rows_record_nothing(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """If rows of an adjustment file are wrong, nothing is recorded and every wrong line is named."""
    file = tmp_path / "list.csv"
    file.write_text("player,points\nanna,5\nben,0.0000001\ncleo,x\n", encoding="utf-8")
    before = read_points(ratings, db)
    refused = run_adjust(ratings, db, "--file", file)
    assert (refused.exit_code, [line.split()[0] for line in refused.stderr.splitlines()]) == (
        1,
        [f"{file}:3:", f"{file}:4:"],
    )
    assert read_points(ratings, db) == before


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("player,too\nanna,5\n", "unknown-column: line 1 of {}: 'too' is not one of player, points, to, reason, at"),
        (
            "player,reason\nanna,r\n",
            "missing-column: line 1 of {}: the table needs a column `player`, and a column `points` or `to`; "
            "add them to its first line",
        ),
        ("player,to\nanna,x\n", "bad-decimal: line 2 of {}: 'x' is not a decimal number"),
        ("player,to\nanna,5\nanna,6\n", "player-twice: lines 2 and 3 of {} are both for 'anna'"),
        (
            "player,points,to\nanna,5,6\n",
            "missing-member: line 2 of {}: the row needs a value for `player`, and one for either `points` or `to`",
        ),
        ("player,to\nanna,5,6\n", "row-length: line 2 of {}: the row has 3 cells, but the header only 2"),
        ("player;to\nanna;1,234\n", "bad-decimal: line 2 of {}: to: '1,234' could be a whole number or a fraction"),
        (
            "player;to;at\nanna;5;01/02/2024\n",
            "unclear-dates: {}: '01/02/2024' (line 2) could be 1 February 2024",
        ),
        ("player,to,at\nanna,5,soon\n", "bad-time: line 2 of {}: 'soon' is not a time like"),
        ('player,to\n"anna\nben",5\n', "line-break: line 2 of {}: player: 'anna\\nben' contains a line break"),
        ("", "empty-file: {}: it is empty; write a header"),
    ],
)
def test_malformed_file_refusal_names_the_line(
    content: str, message: str, ratings: Ratings, db: str, tmp_path: Path
) -> None:
    """A malformed adjustment file is refused with a message that names the line."""
    file = tmp_path / "list.csv"
    file.write_text(content, encoding="utf-8")
    refused = run_adjust(ratings, db, "--file", file)
    assert (refused.exit_code, refused.stderr.startswith(message.format(file))) == (1, True), refused.stderr


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("encoding", "day", "options", "at"),
    [
        ("utf-16", "13/01/2024", (), "2024-01-13"),
        ("cp1252", "01.02.2024", ("--dates", "dmy"), "2024-02-01"),
        ("utf-8-sig", "2024-03-01", (), "2024-03-01"),
    ],
)
def test_adjustment_file_is_read_like_a_table(
    encoding: str, day: str, options: tuple[str, ...], at: str, ratings: Ratings, db: str, tmp_path: Path
) -> None:
    """An adjustment file may have the encoding, capitals, semicolons, decimal commas and dates of a spreadsheet
    program."""
    file = tmp_path / "list.csv"
    file.write_text(f"Player;Points;Reason;At\nanna;-7,5;für später;{day}\n", encoding=encoding)
    adjusted = run_adjust(ratings, db, "--file", file, *options)
    assert adjusted.exit_code == 0, adjusted.stderr
    (row,) = json.loads(ratings("log", "--type", "points.adjusted", "--format", "json", db=db).stdout)["rows"]
    assert (row["data"]["points"], row["data"]["reason"]) == ("-7.5", "für später")
    assert row["occurred_at"] == f"{at}T12:00:00.000000Z"


@pytest.mark.slow_cases
@pytest.mark.parametrize("form", ["json", "csv"])
def test_exported_changes_match_player_histories(form: str, ratings: Ratings, db: str) -> None:
    """`export changes` gives the same rows as the histories of all players."""
    run_adjust(ratings, db, "anna", "--to", "1500", "--at", "2024-01-02T12:00Z")
    run_adjust(ratings, db, "zoe", "7")
    histories = {
        player: json.loads(ratings("history", player, LADDER, "--format", "json", db=db).stdout)["rows"]
        for player in ("anna", "ben", "cleo", "zoe")
    }
    result = ratings("export", "changes", LADDER, "--format", form, db=db)
    assert result.exit_code == 0
    if form == "json":
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        for player, history in histories.items():
            assert [
                {k: v for k, v in row.items() if k != "player"} for row in rows if row["player"] == player
            ] == history
        assert len(rows) == sum(map(len, histories.values())) == 9
    else:
        header, *lines = (line.split(",") for line in result.stdout.splitlines())
        changes = [dict(zip(header, line, strict=True)) for line in lines]
        for player, history in histories.items():
            exported = [(row["game_id"] or None, row["change_exact"]) for row in changes if row["player"] == player]
            assert exported == [(row["game_id"], row["change"]) for row in history]
        assert len(changes) == 9


@pytest.mark.slow_cases
def test_export_as_of_omits_later_changes(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """`export changes --as-of` writes only the changes up to that date and says how many."""
    file = tmp_path / "changes.jsonl"
    result = ratings("export", "changes", LADDER, "--as-of", "2024-01-01", "-o", file, db=db)
    assert (result.exit_code, result.stderr) == (0, f"2 changes in {file}\n")
    assert [json.loads(line)["game_id"] for line in file.read_text().splitlines()] == ["g-0", "g-0"]


@pytest.mark.slow_cases
@pytest.mark.parametrize("step", ["proposed", "committed"])
def test_concurrent_adjustment_is_refused(ratings: Ratings, db: str, step: str) -> None:
    """`adjust --to` is refused if another adjustment lands between its read and its lock.

    The refused command adds nothing, and the next one reaches the value.
    """

    def adjust_meanwhile() -> None:
        assert run_adjust(ratings, db, "anna", "7", "--at", "2024-01-05").exit_code == 0

    act_before_next(step, adjust_meanwhile)
    refused = run_adjust(ratings, db, "anna", "--to", "1500", "--at", "2024-01-05")
    assert (refused.exit_code, "changed-meanwhile" in refused.stderr) == (1, True), refused
    assert run_adjust(ratings, db, "anna", "--to", "1500", "--at", "2024-01-05").exit_code == 0
    assert read_points(ratings, db)["anna"] == "1500"


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("player,points\nanna,5\nanna,5\n", "player-twice: lines 2 and 3 of {} are equal; leave one out"),
        (
            "player,to,to\nanna,5,6\n",
            "unknown-column: line 1 of {}: the column 'to' occurs more than once; keep only one of them",
        ),
    ],
)
def test_duplicate_rows_and_columns_are_refused(
    content: str, message: str, ratings: Ratings, db: str, tmp_path: Path
) -> None:
    """A repeated row or column in an adjustment file is refused, never silently dropped."""
    file = tmp_path / "list.csv"
    file.write_text(content, encoding="utf-8")
    refused = run_adjust(ratings, db, "--file", file)
    assert (refused.exit_code, refused.stderr) == (1, message.format(file) + "\n")
