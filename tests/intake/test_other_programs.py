"""Files of other programs: recognition, ids, unrated games, edited plays, and damaged files."""

import io
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from damages import BYTE_DAMAGES
from program_files import (
    CASES,
    LICHESS_PGN,
    build_bg_stats_case,
    build_play,
    format_lichess_line,
    format_trf_player,
    trf,
)

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.parsing import read_draft
from ratings_ledger.ledger.intake.readers import find_reader
from ratings_ledger.ledger.intake.readers.reader import Opened
from ratings_ledger.ledger.intake.tables.columns import TableOptions

Ratings = Callable[..., Any]

OPTIONS = TableOptions("Europe/Berlin")
# names of cases begin with the name of their reader
READER_NAMES = ("PGN", "games of Lichess", "TRF", "BG Stats")
DAMAGED_FILES, DAMAGED_FILES_AT_LENGTH = 60, 5_000


def read_events(content: bytes, name: str) -> list[Any]:
    """Return the events in a file, and the codes of its rejections."""
    reader, _ = find_reader(name, content[:4_096])
    entries = list[Any]()
    try:
        for entry in reader.read(Opened(name, io.BytesIO(content), None), OPTIONS):
            if isinstance(entry, tuple) and len(entry) == 4 and entry[0] is not None:
                entries.append(entry[1].code if isinstance(entry[1], Refused) else entry[1])
    except Refused as problem:
        entries.append(problem.code)
    return entries


@pytest.mark.parametrize("case_name", [name for name in CASES if name.startswith(READER_NAMES)])
def test_each_file_is_read_by_its_reader(case_name: str) -> None:
    """The reader of a format recognises a file by its own name, and by its content under a neutral name."""
    case = CASES[case_name]
    expected = next(name for name in READER_NAMES if case_name.startswith(name))
    assert find_reader(case.name, case.content[:4_096])[0].name.startswith(expected)
    if "UTF-16" not in case_name:
        assert find_reader("download", case.content[:4_096])[0].name.startswith(expected)


def test_lichess_game_is_the_same_in_both_formats() -> None:
    """A game of Lichess has the same id, time, players and result in PGN and in NDJSON."""
    pgn = read_events(LICHESS_PGN.encode(), "games.pgn")[0]
    ndjson = read_events(format_lichess_line("annablitz", "annablits").encode(), "games.ndjson")[0]
    assert read_draft(pgn) == read_draft(ndjson)


@pytest.mark.parametrize(
    ("result", "rated", "forfeit"),
    [
        ("1 0", None, None),
        ("= =", None, None),
        ("+ -", None, "+:-"),
        ("- +", None, "-:+"),
        ("- -", None, "-:-"),
        ("W L", False, None),
        ("D D", False, None),
    ],
)
def test_tournament_forfeits_and_short_games_are_marked(result: str, rated: bool | None, forfeit: str | None) -> None:
    """In a report of a tournament, forfeits are noted, and games of less than a move are not rated."""
    white, black = result.split()
    players = format_trf_player(1, "anna", f"   2 w {white}"), format_trf_player(2, "ben", f"   1 b {black}")
    (event,) = read_events(trf("012 Open\n042 2024/11/22\n", *players).content, "open.trf")
    assert (event["data"].get("rated"), event["data"].get("extra", {}).get("forfeit")) == (rated, forfeit)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (("1 10!", "2 8"), ["anna 1 10", "ben 2 8"]),
        (("1 3+20+5", "2 30-2"), ["anna 1 28", "ben 1 28"]),
        (("1 8!", "2 8"), ["anna 1 8", "ben 2 8"]),
        (("1 7!", "2 9", "3 8"), ["anna 1 None", "ben 2 None", "cleo 3 None"]),
        (("1 2,5", "2 -1"), ["anna 1 2.5", "ben 2 -1"]),
        (("1 -", "2 -!", "3 -"), ["anna 2 None", "ben 1 None", "cleo 2 None"]),
    ],
)
def test_winners_and_scores_give_places_of_plays(scores: tuple[str, ...], expected: list[str]) -> None:
    """Winners are placed first, then the other players by score; if scores contradict places, none are kept."""
    (event,) = read_events(build_bg_stats_case(build_play("a1", *scores)).content, "BGStatsExport.json")
    participants = event["data"]["participants"]
    assert [f"{player['player']} {player['place']} {player.get('score')}" for player in participants] == expected


def test_anonymous_player_needs_an_alias() -> None:
    """A play with an anonymous player is read only if an alias names the player."""
    content = build_bg_stats_case(build_play("a1", "1 5!", "5 3")).content
    reader, _ = find_reader("BGStatsExport.json", content)
    alias_options = OPTIONS._replace(aliases={"Anonymous": "guest"})
    for table_options, event_count in ((OPTIONS, 0), (alias_options, 1)):
        entries = reader.read(Opened("BGStatsExport.json", io.BytesIO(content), None), table_options)
        assert sum(isinstance(entry, tuple) and isinstance(entry[1], dict) for entry in entries) == event_count


def test_edited_plays_are_synced_and_undone(ledger_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A later export of BG Stats with an edited play is refused; --sync corrects the play and voids deleted ones, and
    undo restores them.
    """
    path = tmp_path / "BGStatsExport.json"
    command = ("import", path, "--zone", "Europe/Berlin", "--format", "json")

    def import_plays(*plays: dict[str, object], options: tuple[str, ...] = ()) -> dict[str, Any]:
        path.write_bytes(build_bg_stats_case(*plays).content)
        return dict(json.loads(ratings(*command, *options, db=ledger_url).stdout))

    original_plays, edited_play = (
        (build_play("a1", "1 10!", "2 8"), build_play("a2", "1 3", "2 9!")),
        build_play("a1", "1 10", "2 12!"),
    )
    assert import_plays(*original_plays)["appended"] == 2
    assert import_plays(*original_plays)["existing"] == 2
    (rejection,) = import_plays(edited_play)["rejected"]
    assert (rejection["code"], "if the game has been edited since its import, pass --sync" in rejection["message"]) == (
        "id-conflict",
        True,
    )
    (copy := tmp_path / "december.json").write_bytes(path.read_bytes())
    copy_stdout = ratings("import", copy, *command[2:], db=ledger_url).stdout
    assert "rename the file to BGStatsExport.json, and pass --sync" in copy_stdout
    sync = import_plays(edited_play, build_play("a3", "1 1!", "2 0"), options=("--sync", "--yes"))["sync"]
    assert [sync[name] for name in ("new", "changed", "vanished")] == [1, 1, 1]
    assert ratings("undo", "--yes", db=ledger_url).exit_code == 0
    restored = import_plays(*original_plays)
    assert (restored["appended"], restored["existing"], restored["rejected"]) == (0, 2, [])


def test_damaged_files_give_events_or_refusals(at_length: bool) -> None:
    """The reader of a damaged file yields only events and refusals, and raises no other error."""
    cases = [case for case in CASES.values() if case.games]
    for number in range(DAMAGED_FILES_AT_LENGTH if at_length else DAMAGED_FILES):
        chance = Random(number)
        case = chance.choice(cases)
        content = chance.choice(BYTE_DAMAGES)(chance, case.content)
        for event in islice(read_events(content, case.name), 1_000):
            assert isinstance(event, str | dict | bytes)
