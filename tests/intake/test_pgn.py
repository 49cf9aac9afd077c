"""PGN: games across pieces of a file, unrated games, forfeits, times, and names of accounts."""

import io
from typing import Any

import pytest
from program_files import PGN as CASES

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.readers import find_reader, pgn
from ratings_ledger.ledger.intake.readers.reader import Opened
from ratings_ledger.ledger.intake.tables.columns import TableOptions


def read_pgn(content: bytes) -> list[Any]:
    """Return the entries of the reader, with the messages of refusals."""
    entries = pgn.PGN.read(Opened("games.pgn", io.BytesIO(content), None), TableOptions("Europe/Berlin"))
    return [
        (entry[0], entry[1].message) if isinstance(entry, tuple) and isinstance(entry[1], Refused) else entry
        for entry in entries
    ]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [5, 7, 64])
def test_games_do_not_depend_on_pieces(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file gives the same entries when it is read in pieces of any size."""
    content = CASES[name].content
    expected = read_pgn(content)
    monkeypatch.setattr(pgn, "PIECE_BYTES", size)
    assert read_pgn(content) == expected


def read_game(**tags: str) -> dict[str, Any]:
    """Return the event of a game with these tags, which replace or extend the usual ones."""
    usual_tags = {"White": "anna", "Black": "ben", "Result": "1-0", "Date": "2024.11.22"}
    text = "".join(f'[{name} "{value}"]\n' for name, value in (usual_tags | tags).items())
    (event,) = [
        entry[1]
        for entry in read_pgn(f"{text}\n1-0\n".encode())
        if isinstance(entry, tuple) and isinstance(entry[1], dict)
    ]
    return dict(event)


def test_last_game_may_have_only_tags_in_one_line() -> None:
    """A file may end with the tags of a game, all in one line and without moves."""
    tags = b'[White "anna"] [Black "ben"] [Result "1-0"] [Date "2024.11.22"]'
    games = [entry[1]["data"] for entry in read_pgn(tags) if isinstance(entry, tuple) and isinstance(entry[1], dict)]
    assert [[(seat["player"], seat["place"]) for seat in game["participants"]] for game in games] == [
        [("anna", 1), ("ben", 2)]
    ]


@pytest.mark.parametrize(
    ("tags", "rated", "forfeit"),
    [
        ({"Event": "Casual rapid game"}, False, None),
        ({"Event": "Rated rapid game", "Termination": "Time forfeit"}, None, None),
        ({"Termination": "Rules infraction"}, None, "+:-"),
        ({"Termination": "Abandoned", "Result": "0-1"}, None, "-:+"),
        ({"Termination": "anna won - game abandoned"}, None, None),
        ({"Result": "-/-"}, None, "-:-"),
    ],
)
def test_casual_games_and_forfeits_are_marked(tags: dict[str, str], rated: bool | None, forfeit: str | None) -> None:
    """Casual games are unrated and forfeits are noted; a loss on time, or by leaving at Chess.com, is ordinary."""
    data = read_game(**tags)["data"]
    assert (data.get("rated"), data.get("extra", {}).get("forfeit")) == (rated, forfeit)


@pytest.mark.parametrize(
    ("tags", "at"),
    [
        ({}, "2024-11-22T11:00:00.000000Z"),
        ({"Time": "20:05:00"}, "2024-11-22T19:05:00.000000Z"),
        ({"UTCDate": "2024.11.21", "UTCTime": "23:30:00"}, "2024-11-21T23:30:00Z"),
        (
            {"UTCDate": "2024.11.21", "UTCTime": "23:30:00", "EndDate": "2024.12.02", "EndTime": "01:02:03"},
            "2024-12-02T01:02:03Z",
        ),
        ({"EndDate": "2024.12.02", "EndTime": "01:02:03"}, "2024-11-22T11:00:00.000000Z"),
    ],
)
def test_time_comes_from_utc_tags_or_the_zone(tags: dict[str, str], at: str) -> None:
    """UTC tags give a time in UTC, a time beside a date is in the zone, and a date alone gives its noon."""
    assert read_game(**tags)["occurred_at"] == at


def test_names_in_a_file_of_a_site_are_accounts() -> None:
    """The start of a file shows whether its names are accounts of a site, which have no typing errors."""
    site_reader, _ = find_reader("games.pgn", CASES["PGN of Lichess"].content)
    club_reader, _ = find_reader("games.pgn", CASES["PGN of a club"].content)
    assert (site_reader.accounts, club_reader.accounts) == (True, False)
