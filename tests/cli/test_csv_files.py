"""Games from CSV: both forms, every dialect that spreadsheets write, and the renaming options."""

import json
from collections.abc import Callable
from typing import Any

import pytest
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


def imported(ratings: Callable[..., Any], db: str, content: str | bytes, *arguments: str) -> list[dict[str, Any]]:
    """The games after an import that must work."""
    result = ratings("import", "-", *arguments, db=db, input=content)
    assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, "")
    events = map(json.loads, ratings("export", "events", db=db).stdout.splitlines())
    return [event for event in events if event["type"] == "game.recorded"]


def games(events: list[dict[str, Any]]) -> list[tuple[str, str, list[tuple[str, int]]]]:
    return [
        (e["data"]["game_id"], e["occurred_at"], [(p["player"], p["place"]) for p in e["data"]["participants"]])
        for e in events
    ]


def refused(ratings: Callable[..., Any], db: str, content: str | bytes, *arguments: str) -> list[tuple[int, str]]:
    """(line, code) of every refusal of an import that must be refused as a whole."""
    result = ratings("import", "-", *arguments, "--format", "json", db=db, input=content)
    output = json.loads(result.stdout)
    assert (result.exit_code, output["appended"], output["head"]) == (1, 0, 0)
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
    "empty cells behind": LONG.replace("catan,ben,2", "catan,ben,2,,"),
    "a decomposed accent": LONG.replace("é", "e\u0301"),
}


@pytest.mark.parametrize("content", DIALECTS.values(), ids=DIALECTS)
def test_csv_dialects_give_the_same_games(content: str | bytes, db: str, ratings: Callable[..., Any]) -> None:
    """Every CSV dialect that spreadsheets write gives the same games."""
    assert games(imported(ratings, db, content)) == GAMES


def test_quoted_line_break_keeps_line_numbers(db: str, ratings: Callable[..., Any]) -> None:
    """A quoted line break in a dropped column is accepted, and lines are still counted right."""
    header, *rows = LONG.splitlines()
    content = "\n".join((f"{header},note", *(f'{row},"two\nlines"' for row in rows)))

    assert games(imported(ratings, db, content, "--map", "note=")) == GAMES
    assert refused_later(ratings, db, content + "\nbad", "--map", "note=") == [(10, "missing-member")]


def refused_later(ratings: Callable[..., Any], db: str, content: str, *arguments: str) -> list[tuple[int, str]]:
    report = json.loads(ratings("import", "-", *arguments, "--format", "json", db=db, input=content).stdout)
    return [(rejection["line"], rejection["code"]) for rejection in report["rejected"]]


def test_long_form_keeps_members_and_types(db: str, ratings: Callable[..., Any]) -> None:
    """All members given in the long form arrive with their types."""
    content = """season,\
game_id,occurred_at,game,group,city,league,player,place,score,status,seat,seconds_played,replaces,rated
2024-1,g-1,2024-01-01T12:00:00Z,catan,basic,7,spring,anna,1,10,,1,3600,,no
2024-1,g-1,2024-01-01T12:00:00Z,catan,basic,7,spring,ben,2,7.50,abandoned,2,,,no
2024-1,g-1,2024-01-01T12:00:00Z,catan,basic,7,spring,cleo,2,7.5,substitute,2,60,ben,no
"""
    (event,) = imported(ratings, db, content)

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


WIDE = {
    "one a place": ("anna,ben,cleo,", [("anna", 1), ("ben", 2), ("cleo", 3)]),
    "a tie, then competition places": ("anna=ben,,cleo,", [("anna", 1), ("ben", 1), ("cleo", 3)]),
    "a tie, then dense places": ("anna=ben,cleo,,", [("anna", 1), ("ben", 1), ("cleo", 2)]),
    "a tie with spaces": ("anna = ben,cleo,,", [("anna", 1), ("ben", 1), ("cleo", 2)]),
    "everybody tied": ("anna=ben=cleo,,,", [("anna", 1), ("ben", 1), ("cleo", 1)]),
    "fewer cells than columns": ("anna,ben", [("anna", 1), ("ben", 2)]),
}


@pytest.mark.parametrize(("cells", "players"), WIDE.values(), ids=WIDE)
def test_wide_form_reads_places_and_ties(
    cells: str, players: list[tuple[str, int]], db: str, ratings: Callable[..., Any]
) -> None:
    """With one row per game, columns give the places and equals signs mark ties."""
    content = f"game_id,occurred_at,game,1st,2nd,3rd,4th\ng-1,2024-01-01T12:00:00Z,catan,{cells}\n"

    assert games(imported(ratings, db, content)) == [("g-1", "2024-01-01T12:00:00.000000Z", players)]


def test_options_adapt_foreign_columns(db: str, ratings: Callable[..., Any]) -> None:
    """`--map`, `--set` and `--zone` turn a table with foreign columns into the same games."""
    content = "Nr;Datum;Sieger;Zweiter;Notiz\ng-1;2024-01-01 13:00;anna;ben;x\ng-2;2024-01-02 13:00;zoé;anna;\n"
    options = ["--map", "Nr=game_id", "--map", "Datum=occurred_at", "--map", "sieger=1st", "--map", "Zweiter=2nd"]
    events = imported(
        ratings, db, content, *options, "--map", "Notiz=", "--set", "game=catan", "--zone", "Europe/Berlin"
    )

    assert games(events) == GAMES


def test_set_game_id_makes_one_game(db: str, ratings: Callable[..., Any]) -> None:
    """Rows without a column for the game's id are one game when `--set` gives the id."""
    content = "occurred_at,player,place\n2024-01-01T12:00:00Z,anna,1\n2024-01-01T12:00:00Z,ben,2\n"

    assert games(imported(ratings, db, content, "--set", "game_id=g-1", "--set", "game=catan")) == GAMES[:1]


def test_bare_dates_mean_noon_in_order(db: str, ratings: Callable[..., Any]) -> None:
    """A bare date means noon in the zone, and games of the same time keep the file's order."""
    content = "game_id,occurred_at,game,1st,2nd\nb,2024-07-01,catan,anna,ben\na,2024-07-01,catan,ben,anna\n"
    events = imported(ratings, db, content, "--zone", "Europe/Berlin")

    assert [(e["position"], e["data"]["game_id"], e["occurred_at"]) for e in events] == [
        (1, "b", "2024-07-01T10:00:00.000000Z"), (2, "a", "2024-07-01T10:00:00.000000Z"),
    ]  # fmt: skip


HEADER = "game_id,occurred_at,game,player,place\n"
WIDE_HEADER = "game_id,occurred_at,game,1st,2nd\n"
ROW = "g-1,2024-01-01T12:00:00Z,catan,{},{}\n"
GOOD = HEADER + ROW.format("anna", 1) + ROW.format("ben", 2)
OTHER = "g-2,2024-01-01T12:00:00Z,catan,{},{}\n"
MIDDLE = OTHER.format("anna", 1) + OTHER.format("ben", 2)
REFUSED = {
    "a time without offset and no zone": (GOOD.replace("00Z", "00"), [(2, "naive-time")]),
    "a place that is a word": (GOOD.replace(",2\n", ",second\n"), [(3, "not-an-integer")]),
    "a place that is a decimal": (GOOD.replace(",2\n", ",2.0\n"), [(3, "not-an-integer")]),
    "a place of 20 digits": (GOOD.replace(",2\n", ",22222222222222222222\n"), [(3, "integer-too-large")]),
    "a place gap": (GOOD.replace(",2\n", ",3\n"), [(2, "place-gap")]),
    "one participant": (HEADER + ROW.format("anna", 1), [(2, "too-few-participants")]),
    "a game's rows apart": (GOOD + MIDDLE + ROW.format("cleo", 1) + ROW.format("dora", 2), [(6, "rows-apart")]),
    "one row of a game apart": (GOOD + MIDDLE + ROW.format("cleo", 3), [(6, "rows-apart")]),
    "an unreadable row within a game": (
        HEADER + ROW.format("anna", 1) + ROW.format("ben", "2,x") + ROW.format("cleo", 2), [(2, "too-few-participants"),
        (3, "row-length"), (4, "game-incomplete")],
    ),
    "a quoted line break in a name": (GOOD.replace("anna", '"an\nna"'), [(2, "line-break"), (4, "game-incomplete")]),
    "a quote never closed": (GOOD.replace(",ben", ',"ben'), [(2, "too-few-participants"), (3, "bad-csv")]),
    "an unknown column": (GOOD.replace("place\n", "spot\n"), [(1, "unknown-column"), (2, "place-missing")]),
    "a column twice": (GOOD.replace("game,player", "player,player"), [(1, "column-twice"), (1, "missing-column")]),
    "no player column": (GOOD.replace("player,place", "place,score"), [(1, "missing-column")]),
    "an unknown column behind blank lines": (
        "\n\n" + GOOD.replace("place\n", "spot\n"), [(3, "unknown-column"), (4, "place-missing")],
    ),
    "Latin-2 in a row": (
        GOOD.replace("ben", "Łukasz").encode("cp1250"), [(2, "too-few-participants"), (3, "bad-utf8")],
    ),
    "Latin-2 in the header": (GOOD.replace("place\n", "łączna\n").encode("cp1250"), [(1, "bad-utf8")]),
    "UTF-16 without its mark": (GOOD.encode("utf-16-le"), [(1, "bad-csv")]),
    "a header of one endless cell": ("x" * 200_000 + "\n", [(1, "bad-csv")]),
    "an endless line": (GOOD + "x" * (1 << 20) + "\n" + MIDDLE, [(4, "line-too-long")]),
    "a player in two cells": (WIDE_HEADER + "g-1,2024-01-01T12:00:00Z,catan,anna,anna\n", [(2, "player-twice")]),
    "a tie of nobody": (WIDE_HEADER + "g-1,2024-01-01T12:00:00Z,catan,anna=,ben\n", [(2, "bad-identifier")]),
    "both forms at once": (
        WIDE_HEADER.replace("2nd", "player") + "g-1,2024-01-01T12:00:00Z,catan,anna,ben\n",
        [(1, "unknown-column"), (2, "too-few-participants")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "found"), REFUSED.values(), ids=REFUSED)
def test_bad_csv_is_refused_by_line(
    content: str | bytes, found: list[tuple[int, str]], db: str, ratings: Callable[..., Any]
) -> None:
    """A bad CSV file is refused with its lines named, and nothing is appended."""
    assert refused(ratings, db, content) == found


def test_message_about_an_endless_line_has_its_number(db: str, ratings: Callable[..., Any]) -> None:
    """The message about a line that is too long says which one it is, as its place does."""
    stderr = ratings("import", "-", db=db, input=GOOD + "x" * (1 << 20) + "\n").stderr
    assert "-:4: line-too-long: line 4 has more than 1,048,576 bytes" in stderr


@pytest.mark.parametrize("option", [[], ["--keep-going"]])
def test_row_without_game_id_is_named(db: str, ratings: Callable[..., Any], option: list[str]) -> None:
    """A row with no game_id after a game is refused for just that, not as rows apart."""
    result = ratings("import", "-", *option, db=db, input=LONG + ",2024-01-02T12:00:00Z,catan,cleo,3\n")

    assert result.exit_code == 1
    assert "-:6: missing-member: the row has no game_id" in result.stderr
    assert "rows-apart" not in result.stderr
