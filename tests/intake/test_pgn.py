"""PGN is cut into games wherever pieces of a file end, and tells what a game was besides its result."""

import io
from typing import Any

import pytest
from program_files import PGN as CASES

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.readers import find_reader, pgn
from ratings_ledger.ledger.intake.readers.reader import Opened
from ratings_ledger.ledger.intake.tables.columns import TableOptions


def read(content: bytes) -> list[Any]:
    """What the reader yields, with the words of refusals."""
    found = pgn.PGN.read(Opened("games.pgn", io.BytesIO(content), None), TableOptions("Europe/Berlin"))
    return [
        (one[0], one[1].message) if isinstance(one, tuple) and isinstance(one[1], Refused) else one for one in found
    ]


@pytest.mark.parametrize("what", CASES)
@pytest.mark.parametrize("size", [5, 7, 64])
def test_games_do_not_depend_on_pieces(what: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file gives the same in pieces of any size, whatever a piece ends in."""
    content = CASES[what].content
    whole = read(content)
    monkeypatch.setattr(pgn, "PIECE_BYTES", size)
    assert read(content) == whole


def game(**tags: str) -> dict[str, Any]:
    """The event of a game with these tags besides the usual ones."""
    usual = {"White": "anna", "Black": "ben", "Result": "1-0", "Date": "2024.11.22"}
    text = "".join(f'[{name} "{value}"]\n' for name, value in (usual | tags).items())
    (event,) = [
        one[1] for one in read(f"{text}\n1-0\n".encode()) if isinstance(one, tuple) and isinstance(one[1], dict)
    ]
    return dict(event)


def test_last_game_may_be_tags_alone_in_one_line() -> None:
    """A file may end with the tags of a game, however they are written."""
    tags = b'[White "anna"] [Black "ben"] [Result "1-0"] [Date "2024.11.22"]'
    games = [one[1]["data"] for one in read(tags) if isinstance(one, tuple) and isinstance(one[1], dict)]
    assert [[(seat["player"], seat["place"]) for seat in one["participants"]] for one in games] == [
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
def test_games_that_are_not_rated(tags: dict[str, str], rated: bool | None, forfeit: str | None) -> None:
    """Casual games are not rated, and games that were not played are noted; a loss on time is a loss."""
    data = game(**tags)["data"]
    assert (data.get("rated"), data.get("extra", {}).get("forfeit")) == (rated, forfeit)


@pytest.mark.parametrize(
    ("tags", "at"),
    [
        ({}, "2024-11-22T11:00:00.000000Z"),
        ({"Time": "20:05:00"}, "2024-11-22T19:05:00.000000Z"),
        ({"UTCDate": "2024.11.21", "UTCTime": "23:30:00"}, "2024-11-21T23:30:00Z"),
        ({"UTCDate": "2024.11.21", "UTCTime": "23:30:00", "EndDate": "2024.12.02", "EndTime": "01:02:03"},
         "2024-12-02T01:02:03Z"),
        ({"EndDate": "2024.12.02", "EndTime": "01:02:03"}, "2024-11-22T11:00:00.000000Z"),
    ],
)  # fmt: skip
def test_times(tags: dict[str, str], at: str) -> None:
    """Times of sites are in UTC; a time beside a date is one of the zone, and a date alone its noon."""
    assert game(**tags)["occurred_at"] == at


def test_names_of_sites_are_those_of_accounts() -> None:
    """Whether names may be slips of the pen is seen from the beginning of a file."""
    site, _ = find_reader("games.pgn", CASES["PGN of Lichess"].content)
    club, _ = find_reader("games.pgn", CASES["PGN of a club"].content)
    assert (site.accounts, club.accounts) == (True, False)
