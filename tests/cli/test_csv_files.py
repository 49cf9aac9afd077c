"""Import games from CSV: both forms, every dialect that spreadsheets write, and the options that rename columns."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from ledgers import read_head
from output_filters import remove_newcomer_notes
from stores import make_empty_ledger

LONG = """game_id,occurred_at,game,player,place
g-1,2024-01-01T12:00:00Z,catan,anna,1
g-1,2024-01-01T12:00:00Z,catan,ben,2
g-2,2024-01-02T12:00:00Z,catan,zoé,1
g-2,2024-01-02T12:00:00Z,catan,anna,2
"""
GAMES = [
    ("g-1", "2024-01-01T12:00:00.000000Z", [("anna", 1), ("ben", 2)]),
    ("g-2", "2024-01-02T12:00:00.000000Z", [("zoé", 1), ("anna", 2)]),
]


pytestmark = pytest.mark.ledger(make=make_empty_ledger, store="sqlite")


def import_games(ratings: Callable[..., Any], db: str, content: str | bytes, *arguments: str) -> list[dict[str, Any]]:
    """Import a table, which must succeed, and return the events of all games."""
    result = ratings("import", "-", *arguments, db=db, input=content)
    assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, "")
    events = map(json.loads, ratings("export", "events", db=db).stdout.splitlines())
    return [event for event in events if event["type"] == "game.recorded"]


def summarize_games(events: list[dict[str, Any]]) -> list[tuple[str, str, list[tuple[str, int]]]]:
    """Return each game's id and time, and its players with their places."""
    return [
        (
            event["data"]["game_id"],
            event["occurred_at"],
            [(participant["player"], participant["place"]) for participant in event["data"]["participants"]],
        )
        for event in events
    ]


def list_rejections(
    ratings: Callable[..., Any], db: str, content: str | bytes, *arguments: str
) -> list[tuple[int, str]]:
    """Run an import, which must append nothing, and return the line and the code of every rejection."""
    before = read_head(db)
    result = ratings("import", "-", *arguments, "--format", "json", db=db, input=content)
    output = json.loads(result.stdout)
    assert (result.exit_code, output["appended"], read_head(db)) == (1, 0, before)
    return [(rejection["line"], rejection["code"]) for rejection in output["rejected"]]


DIALECTS = {
    "commas": LONG,
    "semicolons": LONG.replace(",", ";"),
    "tabs": LONG.replace(",", "\t"),
    "bars": LONG.replace(",", "|"),
    "a byte order mark": b"\xef\xbb\xbf" + LONG.encode(),
    "CRLF": LONG.replace("\n", "\r\n"),
    "no last line break": LONG.rstrip("\n"),
    "everything quoted": "\n".join('"' + line.replace(",", '","') + '"' for line in LONG.splitlines()),
    "spaces around cells": LONG.replace(",", " , "),
    "capital headers": LONG.replace("game_id,occurred_at", "Game_ID,OCCURRED_AT"),
    "blank lines between": LONG.replace("\ng-2", "\n\n\ng-2", 1),
    "blank lines before": "\n\n" + LONG,
    "rows of empty cells": LONG + ",,,,\n,,,,\n",
    "columns in another order": "\n".join(",".join(reversed(line.split(","))) for line in LONG.splitlines()),
    "empty cells after a row": LONG.replace("catan,ben,2", "catan,ben,2,,"),
    "a decomposed accent": LONG.replace("é", "e\u0301"),
}


@pytest.mark.parametrize("content", DIALECTS.values(), ids=DIALECTS)
def test_csv_dialects_give_the_same_games(content: str | bytes, db: str, ratings: Callable[..., Any]) -> None:
    """Every CSV dialect that spreadsheets write gives the same games."""
    assert summarize_games(import_games(ratings, db, content)) == GAMES


def test_quoted_line_break_keeps_line_numbers(db: str, ratings: Callable[..., Any]) -> None:
    """A quoted line break in a dropped column is accepted, and counts in the line numbers of rejections."""
    header, *rows = LONG.splitlines()
    content = "\n".join((f"{header},note", *(f'{row},"two\nlines"' for row in rows)))

    assert summarize_games(import_games(ratings, db, content, "--map", "note=")) == GAMES
    assert list_rejections(ratings, db, content + "\nbad", "--map", "note=") == [(10, "missing-member")]


def test_long_form_keeps_members_and_types(db: str, ratings: Callable[..., Any]) -> None:
    """The long form keeps every member with its type."""
    content = """season,\
game_id,occurred_at,game,group,city,league,player,place,score,status,seat,seconds_played,replaces,rated
2024-1,g-1,2024-01-01T12:00:00Z,catan,basic,7,spring,anna,1,10,,1,3600,,no
2024-1,g-1,2024-01-01T12:00:00Z,catan,basic,7,spring,ben,2,7.50,abandoned,2,,,no
2024-1,g-1,2024-01-01T12:00:00Z,catan,basic,7,spring,cleo,2,7.5,substitute,2,60,ben,no
"""
    (event,) = import_games(ratings, db, content)

    assert event["data"] == {
        "game_id": "g-1", "game": "catan", "group": "basic", "city": "7", "league": "spring",
        "season": "2024-1", "rated": False,
        "participants": [
            {"player": "anna", "place": 1, "score": 10, "seat": 1, "seconds_played": 3600},
            {"player": "ben", "place": 2, "score": "7.5", "status": "abandoned", "seat": 2},
            {"player": "cleo", "place": 2, "score": "7.5", "status": "substitute", "seat": 2, "seconds_played": 60,
             "replaces": "ben"},
        ],
    }  # fmt: skip


WIDE_CELLS = {
    "a player per place": ("anna,ben,cleo,", [("anna", 1), ("ben", 2), ("cleo", 3)]),
    "a tie, then competition places": ("anna=ben,,cleo,", [("anna", 1), ("ben", 1), ("cleo", 3)]),
    "a tie, then dense places": ("anna=ben,cleo,,", [("anna", 1), ("ben", 1), ("cleo", 2)]),
    "a tie with spaces": ("anna = ben,cleo,,", [("anna", 1), ("ben", 1), ("cleo", 2)]),
    "all tied": ("anna=ben=cleo,,,", [("anna", 1), ("ben", 1), ("cleo", 1)]),
    "fewer cells than columns": ("anna,ben", [("anna", 1), ("ben", 2)]),
}


@pytest.mark.parametrize(("cells", "players"), WIDE_CELLS.values(), ids=WIDE_CELLS)
def test_wide_form_reads_places_and_ties(
    cells: str, players: list[tuple[str, int]], db: str, ratings: Callable[..., Any]
) -> None:
    """With one row per game, columns give the places and equals signs mark ties."""
    content = f"game_id,occurred_at,game,1st,2nd,3rd,4th\ng-1,2024-01-01T12:00:00Z,catan,{cells}\n"

    assert summarize_games(import_games(ratings, db, content)) == [("g-1", "2024-01-01T12:00:00.000000Z", players)]


def test_options_adapt_foreign_columns(db: str, ratings: Callable[..., Any]) -> None:
    """`--map`, `--set` and `--zone` turn a table with foreign columns into the same games."""
    content = "Nr;Datum;Sieger;Zweiter;Notiz\ng-1;2024-01-01 13:00;anna;ben;x\ng-2;2024-01-02 13:00;zoé;anna;\n"
    options = ["--map", "Nr=game_id", "--map", "Datum=occurred_at", "--map", "sieger=1st", "--map", "Zweiter=2nd"]
    events = import_games(
        ratings, db, content, *options, "--map", "Notiz=", "--set", "game=catan", "--zone", "Europe/Berlin"
    )

    assert summarize_games(events) == GAMES


def test_set_game_id_makes_one_game(db: str, ratings: Callable[..., Any]) -> None:
    """Rows without a column for the game's id are one game if `--set` gives the id."""
    content = "occurred_at,player,place\n2024-01-01T12:00:00Z,anna,1\n2024-01-01T12:00:00Z,ben,2\n"

    assert (
        summarize_games(import_games(ratings, db, content, "--set", "game_id=g-1", "--set", "game=catan")) == GAMES[:1]
    )


def test_bare_dates_mean_noon_in_order(db: str, ratings: Callable[..., Any]) -> None:
    """A bare date means noon in the zone, and games of the same time keep the file's order."""
    content = "game_id,occurred_at,game,1st,2nd\nb,2024-07-01,catan,anna,ben\na,2024-07-01,catan,ben,anna\n"
    events = import_games(ratings, db, content, "--zone", "Europe/Berlin")

    assert [(event["position"], event["data"]["game_id"], event["occurred_at"]) for event in events] == [
        (1, "b", "2024-07-01T10:00:00.000000Z"),
        (2, "a", "2024-07-01T10:00:00.000000Z"),
    ]


HEADER = "game_id,occurred_at,game,player,place\n"
WIDE_HEADER = "game_id,occurred_at,game,1st,2nd\n"
G1_ROW = "g-1,2024-01-01T12:00:00Z,catan,{},{}\n"
VALID = HEADER + G1_ROW.format("anna", 1) + G1_ROW.format("ben", 2)
G2_ROW = "g-2,2024-01-01T12:00:00Z,catan,{},{}\n"
G2_ROWS = G2_ROW.format("anna", 1) + G2_ROW.format("ben", 2)
BAD_TABLES = {
    "a time without offset and no zone": (VALID.replace("00Z", "00"), [(2, "naive-time")]),
    "a place that is a word": (VALID.replace(",2\n", ",second\n"), [(3, "not-an-integer")]),
    "a place that is a decimal": (VALID.replace(",2\n", ",2.0\n"), [(3, "not-an-integer")]),
    "a place of 20 digits": (VALID.replace(",2\n", ",22222222222222222222\n"), [(3, "integer-too-large")]),
    "a place gap": (VALID.replace(",2\n", ",3\n"), [(2, "place-gap")]),
    "one participant": (HEADER + G1_ROW.format("anna", 1), [(2, "too-few-participants")]),
    "a game's rows apart": (VALID + G2_ROWS + G1_ROW.format("cleo", 1) + G1_ROW.format("dora", 2), [(6, "rows-apart")]),
    "one row of a game apart": (VALID + G2_ROWS + G1_ROW.format("cleo", 3), [(6, "rows-apart")]),
    "an unreadable row within a game": (
        HEADER + G1_ROW.format("anna", 1) + G1_ROW.format("ben", "2,x") + G1_ROW.format("cleo", 2),
        [(2, "too-few-participants"), (3, "row-length"), (4, "game-incomplete")],
    ),
    "a quoted line break in a name": (VALID.replace("anna", '"an\nna"'), [(2, "line-break"), (4, "game-incomplete")]),
    "a quote never closed": (VALID.replace(",ben", ',"ben'), [(2, "too-few-participants"), (3, "bad-csv")]),
    "an unknown column": (VALID.replace("place\n", "spot\n"), [(1, "unknown-column"), (2, "place-missing")]),
    "a column twice": (VALID.replace("game,player", "player,player"), [(1, "column-twice"), (1, "missing-column")]),
    "no player column": (VALID.replace("player,place", "place,score"), [(1, "missing-column")]),
    "an unknown column after blank lines": (
        "\n\n" + VALID.replace("place\n", "spot\n"),
        [(3, "unknown-column"), (4, "place-missing")],
    ),
    "Latin-2 in a row": (
        VALID.replace("ben", "Łukasz").encode("cp1250"),
        [(2, "too-few-participants"), (3, "bad-utf8")],
    ),
    "Latin-2 in the header": (VALID.replace("place\n", "łączna\n").encode("cp1250"), [(1, "bad-utf8")]),
    "UTF-16 without its mark": (VALID.encode("utf-16-le"), [(1, "bad-csv")]),
    "a header of one endless cell": ("x" * 200_000 + "\n", [(1, "bad-csv")]),
    "an endless line": (VALID + "x" * (1 << 20) + "\n" + G2_ROWS, [(4, "line-too-long")]),
    "a player in two cells": (WIDE_HEADER + "g-1,2024-01-01T12:00:00Z,catan,anna,anna\n", [(2, "player-twice")]),
    "a tie with an empty name": (WIDE_HEADER + "g-1,2024-01-01T12:00:00Z,catan,anna=,ben\n", [(2, "bad-identifier")]),
    "both forms at once": (
        WIDE_HEADER.replace("2nd", "player") + "g-1,2024-01-01T12:00:00Z,catan,anna,ben\n",
        [(1, "unknown-column"), (2, "too-few-participants")],
    ),
}


@pytest.mark.parametrize(("content", "rejections"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_csv_is_refused_by_line(
    content: str | bytes, rejections: list[tuple[int, str]], db: str, ratings: Callable[..., Any]
) -> None:
    """A bad CSV file is refused with the line and code of each fault, and nothing is appended."""
    assert list_rejections(ratings, db, content) == rejections


def test_message_about_a_long_line_has_its_number(db: str, ratings: Callable[..., Any]) -> None:
    """The message about a line that is too long names the line, as its location does."""
    stderr = ratings("import", "-", db=db, input=VALID + "x" * (1 << 20) + "\n").stderr
    assert "-:4: line-too-long: line 4 has more than 1,048,576 bytes" in stderr


@pytest.mark.parametrize("option", [[], ["--keep-going"]])
def test_row_without_game_id_is_a_missing_member(db: str, ratings: Callable[..., Any], option: list[str]) -> None:
    """A row without a game_id after a game is refused as a missing member, not as rows apart."""
    result = ratings("import", "-", *option, db=db, input=LONG + ",2024-01-02T12:00:00Z,catan,cleo,3\n")

    assert result.exit_code == 1
    assert "-:6: missing-member: the row has no game_id" in result.stderr
    assert "rows-apart" not in result.stderr
