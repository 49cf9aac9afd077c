"""Files of other programs are told apart, say what is rated, and end well when they came to harm."""

import io
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from damages import BYTE_DAMAGES
from program_files import CASES, LICHESS_PGN, bg_stats, lichess_line, line001, play, trf

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.parsing import read_draft
from ratings_ledger.ledger.intake.readers import find_reader
from ratings_ledger.ledger.intake.readers.reader import Opened
from ratings_ledger.ledger.intake.tables.columns import TableOptions

Ratings = Callable[..., Any]

OPTIONS = TableOptions("Europe/Berlin")
NAMES = {"PGN": "PGN", "games of Lichess": "games of Lichess", "TRF": "TRF", "BG Stats": "BG Stats"}
SHORT, LONG = 60, 5_000


def events(content: bytes, name: str) -> list[Any]:
    """The events in a file, and the codes of what is refused in it."""
    reader, _ = find_reader(name, content[:4_096])
    found = list[Any]()
    try:
        for one in reader.read(Opened(name, io.BytesIO(content), None), OPTIONS):
            if isinstance(one, tuple) and len(one) == 4 and one[0] is not None:
                found.append(one[1].code if isinstance(one[1], Refused) else one[1])
    except Refused as problem:
        found.append(problem.code)
    return found


@pytest.mark.parametrize("what", [what for what in CASES if what.startswith((*NAMES,))])
def test_formats_are_told_apart(what: str) -> None:
    """Each file is read by the reader of its format, whether its name says so or not."""
    case = CASES[what]
    expected = next(name for begin, name in NAMES.items() if what.startswith(begin))
    assert find_reader(case.name, case.content[:4_096])[0].name.startswith(expected)
    if "UTF-16" not in what:
        assert find_reader("download", case.content[:4_096])[0].name.startswith(expected)


def test_lichess_says_the_same_in_both_formats() -> None:
    """A game of Lichess has the same id, time, players and result in PGN and in NDJSON."""
    pgn = events(LICHESS_PGN.encode(), "games.pgn")[0]
    ndjson = events(lichess_line("annablitz", "annablits").encode(), "games.ndjson")[0]
    assert read_draft(pgn) == read_draft(ndjson)


@pytest.mark.parametrize(
    ("result", "rated", "forfeit"),
    [("1 0", None, None), ("= =", None, None), ("+ -", None, "+:-"), ("- +", None, "-:+"), ("- -", None, "-:-"),
     ("W L", False, None), ("D D", False, None)],
)  # fmt: skip
def test_results_of_tournaments(result: str, rated: bool | None, forfeit: str | None) -> None:
    """Forfeits are noted, and games of less than a move are not rated."""
    white, black = result.split()
    players = line001(1, "anna", f"   2 w {white}"), line001(2, "ben", f"   1 b {black}")
    (event,) = events(trf("012 Open\n042 2024/11/22\n", *players).content, "open.trf")
    assert (event["data"].get("rated"), event["data"].get("extra", {}).get("forfeit")) == (rated, forfeit)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (("1 10!", "2 8"), ["anna 1 10", "ben 2 8"]),
        (("1 3+20+5", "2 30-2"), ["anna 1 28", "ben 1 28"]),
        (("1 8!", "2 8"), ["anna 1 8", "ben 2 8"]),
        (("1 7!", "2 9", "3 8"), ["anna 1 None", "ben 2 None", "cleo 3 None"]),
        (("1 2,5", "2 -1"), ["anna 1 2.5", "ben 2 1"]),
        (("1 -", "2 -!", "3 -"), ["anna 2 None", "ben 1 None", "cleo 2 None"]),
    ],
)
def test_places_of_plays(scores: tuple[str, ...], expected: list[str]) -> None:
    """Winners come first, then scores; scores are dropped where a winner has fewer than others."""
    (event,) = events(bg_stats(play("a1", *scores)).content, "BGStatsExport.json")
    seats = event["data"]["participants"]
    assert [f"{one['player']} {one['place']} {one.get('score')}" for one in seats] == expected


def test_anonymous_players_have_to_be_named() -> None:
    """A play with an anonymous player is taken if an alias says who it is."""
    content = bg_stats(play("a1", "1 5!", "5 3")).content
    reader, _ = find_reader("BGStatsExport.json", content)
    options = OPTIONS._replace(aliases={"Anonymous": "guest"})
    for given, number in ((OPTIONS, 0), (options, 1)):
        found = reader.read(Opened("BGStatsExport.json", io.BytesIO(content), None), given)
        assert sum(isinstance(one, tuple) and isinstance(one[1], dict) for one in found) == number


def test_edited_plays_are_synced_and_undone(ledger_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A later export of BG Stats conflicts with a play that was edited; --sync corrects it and voids deleted plays, and
    undo takes that back.
    """
    path = tmp_path / "BGStatsExport.json"
    command = ("import", path, "--zone", "Europe/Berlin", "--format", "json")

    def told(*plays: dict[str, object], more: tuple[str, ...] = ()) -> dict[str, Any]:
        path.write_bytes(bg_stats(*plays).content)
        return dict(json.loads(ratings(*command, *more, db=ledger_url).stdout))

    first, edited = (play("a1", "1 10!", "2 8"), play("a2", "1 3", "2 9!")), play("a1", "1 10", "2 12!")
    assert told(*first)["appended"] == 2
    assert told(*first)["existing"] == 2
    (refused,) = told(edited)["rejected"]
    assert (refused["code"], "if the game was edited since, pass --sync" in refused["message"]) == ("id-conflict", True)
    (copy := tmp_path / "december.json").write_bytes(path.read_bytes())
    named = ratings("import", copy, *command[2:], db=ledger_url).stdout
    assert "rename the file to BGStatsExport.json, and pass --sync" in named
    found = told(edited, play("a3", "1 1!", "2 0"), more=("--sync", "--yes"))["sync"]
    assert [found[what] for what in ("new", "changed", "vanished")] == [1, 1, 1]
    assert ratings("undo", "--yes", db=ledger_url).exit_code == 0
    assert told(*first)["rejected"] == []


def test_damaged_files_give_events_or_refusals(at_length: bool) -> None:
    """Whatever came to harm in a file, its reader yields events and refusals, and raises nothing else."""
    cases = [case for case in CASES.values() if case.games]
    for number in range(LONG if at_length else SHORT):
        chance = Random(number)
        case = chance.choice(cases)
        content = chance.choice(BYTE_DAMAGES)(chance, case.content)
        for event in islice(events(content, case.name), 1_000):
            assert isinstance(event, str | dict | bytes)
