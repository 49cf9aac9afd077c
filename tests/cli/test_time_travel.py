"""Queries across unusual changes: a withdrawn ruleset, games moved to another date, and simultaneous games."""

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    REASON_OPTION,
    Ratings,
    append_lines,
    build_galactic_line,
    create_ledger,
    read_json,
    run_json_command,
)

CLUB, LEAGUE = "club-catan-elo/all", "youplay-league/L1"


def make_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger: the club's ruleset at position 1, the league's at 2, a club game of January 2010 at 3."""
    create_ledger(ratings, url, "club-catan-elo-1", "youplay-league-1")
    append_lines(ratings, url, build_club_line("c-1", "anna", "ben", "cleo", at="2010-01-01T12:00:00Z"))


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def build_club_line(game_id: str, *players: str, at: str) -> str:
    """Return a game of the club as a line."""
    return build_galactic_line(game_id, *players, at=at, game="club-catan")


def publish(ratings: Ratings, db: str, ladder: str = CLUB, *options: object) -> int:
    """Publish a list and return its position."""
    return int(read_reported_position(ratings, db, "publish", ladder, *options))


def read_reported_position(ratings: Ratings, db: str, *command: object) -> Any:
    """Run a command that must succeed and return the position that it reports."""
    result = ratings(*command, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return json.loads(result.stdout)["position"]


def list_causes(
    ratings: Ratings, db: str, ladder: str, player: str, *options: object
) -> list[tuple[str, str | None, str]]:
    """Return the causes of a change: (cause, game, amount)."""
    explanation = read_json(ratings, db, "explain", "--change", ladder, player, *options)
    return [(cause["cause"], cause["game_id"], cause["amount"]) for cause in explanation["causes"]]


def list_marks(ratings: Ratings, db: str, player: str) -> list[list[int]]:
    """Return, for each game of a player, the positions of the lists that showed the player with other points."""
    rows = read_json(ratings, db, "history", player, CLUB)["rows"]
    return [[mark["position"] for mark in row.get("published", ())] for row in rows]


# a withdrawn ruleset


def test_withdrawn_ruleset_shows_everywhere(db: str, ratings: Ratings) -> None:
    """A withdrawn ruleset shows in published lists, in comparisons and as a cause."""
    list_position = publish(ratings, db)
    points = read_json(ratings, db, "standings", CLUB)["rows"][0]["points"]
    void = run_json_command(ratings, db, "void", "--event", "1", *REASON_OPTION)

    assert [(entry["ladder"], entry["position"]) for entry in void["published"]] == [(CLUB, list_position)]
    for options in (("published", "now"), (list_position, "now"), (list_position, "now", CLUB)):
        ladders = {entry["ladder"]: entry for entry in read_json(ratings, db, "diff", *options)["ladders"]}
        assert [row["kind"] for row in ladders[CLUB]["rows"]] == ["removed"] * 3
        assert ladders[CLUB]["b"]["ruleset"] is None
    explanation = read_json(ratings, db, "explain", "--change", CLUB, "anna", "--from", list_position)
    assert (explanation["from"]["points"], explanation["to"]["points"]) == (points, None)
    assert [cause["cause"] for cause in explanation["causes"]] == ["taken back"]
    stdout = ratings("explain", "--change", CLUB, "anna", "--from", list_position, db=db).stdout
    assert re.search(r"^ +\d+  taken back  club-catan-elo@1 ", stdout, re.MULTILINE)  # named like its publication
    reverse = read_json(ratings, db, "explain", "--change", CLUB, "anna", "--from", "now", "--to", list_position)
    assert reverse["change"] == explanation["change"].removeprefix("-")
    assert read_json(ratings, db, "diff", list_position, 2, CLUB)["ladders"][0]["rows"] != []
    assert ratings("verify", db=db) == (0, "", "")


def test_unpublished_ruleset_adds_its_ladders(db: str, ratings: Ratings) -> None:
    """In a comparison with a position before a ruleset was published, its ladders count as added."""
    (_, club) = read_json(ratings, db, "diff", 1, "now")["ladders"]
    (league,) = read_json(ratings, db, "diff", 1, 2, LEAGUE)["ladders"]
    assert (club["ladder"], [row["kind"] for row in club["rows"]]) == (CLUB, ["added"] * 3)
    assert (league["rows"], league["a"]["ruleset"], league["b"]["ruleset"]) == ([], None, "youplay-league@1")
    explanation = read_json(ratings, db, "explain", "--change", CLUB, "anna", "--from", 2)
    assert [cause["game_id"] for cause in explanation["causes"]] == ["c-1"]


def test_one_import_replaces_a_version(db: str, ratings: Ratings) -> None:
    """One import can withdraw a version and publish it anew, and the new content counts."""
    published = json.loads(ratings("export", "events", db=db).stdout.splitlines()[0])
    changed_data = {**published["data"], "params": {**published["data"]["params"], "start": 1500}}
    void = {"id": published["id"], "reason": "no"}
    lines = [
        {"type": name, "occurred_at": "2010-02-01T12:00:00Z", "data": data}
        for name, data in (("event.voided", void), ("ruleset.published", changed_data))
    ]
    lines_text = "".join(json.dumps(line) + "\n" for line in lines)
    result = ratings("import", "-", "--dry-run", db=db, input=lines_text)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "2 would be appended; the head is 3.")
    assert ratings("import", "-", db=db, input=lines_text).stdout == "2 appended; the head is 6.\n"
    assert ratings("import", "-", db=db, input=lines_text).stdout == "0 appended, 2 already there; the head is 6.\n"
    # refused: the same withdrawal twice, with one between them that undoes it
    void_id = json.loads(ratings("export", "events", db=db).stdout.splitlines()[3])["id"]
    void_of_void = {
        "type": "event.voided",
        "id": "again",
        "occurred_at": "2010-02-01T12:00:00Z",
        "data": {"id": void_id, "reason": "yes"},
    }
    refused = ratings("import", "-", db=db, input=f"{lines_text}{json.dumps(void_of_void)}\n{lines_text}")
    assert (refused.exit_code, "version-exists" in refused.stderr) == (1, True)
    assert read_json(ratings, db, "standings", CLUB)["rows"][0]["points"].startswith("15312")


# dates


def test_moved_game_marks_no_other_player(db: str, ratings: Ratings) -> None:
    """A game that is moved to a date after a list's marks only the histories of its own players."""
    append_lines(ratings, db, build_club_line("c-2", "dora", "emil", at="2010-01-02T12:00:00Z"))
    list_position = publish(ratings, db, CLUB, "--as-of", "2010-01-31")
    append_lines(ratings, db, build_club_line("c-3", "ben", "anna", at="2010-02-01T12:00:00Z"))
    run_json_command(ratings, db, "correct", "c-2", "--at", "2010-03-01T12:00:00Z", *REASON_OPTION)
    assert list_marks(ratings, db, "anna") == [[], []]
    assert list_marks(ratings, db, "dora") == [[list_position]]
    run_json_command(ratings, db, "void", "c-1", *REASON_OPTION)
    assert list_marks(ratings, db, "anna") == [[list_position]]


def test_moved_only_game_marks_first_row(db: str, ratings: Ratings) -> None:
    """When a player's only game is moved to a date after a list's, their first row is marked."""
    list_position = publish(ratings, db, CLUB, "--as-of", "2010-01-31")
    run_json_command(ratings, db, "correct", "c-1", "--at", "2010-03-01T12:00:00Z", *REASON_OPTION)
    assert list_marks(ratings, db, "anna") == [[list_position]]
    stdout = ratings("history", "anna", CLUB, db=db).stdout
    assert f"1031.26 ({list_position})" in stdout


def test_simultaneous_games_are_separate_causes(db: str, ratings: Ratings) -> None:
    """Games of the same time are separate causes of a change."""
    players_by_game = {"k-1": ("anna", "ben", "cleo"), "k-2": ("anna", "cleo", "ben"), "k-3": ("ben", "anna", "cleo")}
    day_by_game = {"k-1": "2010-01-05", "k-2": "2010-01-05", "k-3": "2010-02-05"}
    append_lines(
        ratings,
        db,
        *(
            build_galactic_line(name, *players, at=f"{day_by_game[name]}T12:00:00Z", game="gonzaga", league="L1")
            for name, players in players_by_game.items()
        ),
    )
    rows = read_json(ratings, db, "history", "anna", LEAGUE)["rows"]
    interval = ("--from", "as-of=2010-01-01", "--to", "now")
    assert list_causes(ratings, db, LEAGUE, "anna", *interval) == [
        ("played", row["game_id"], row["change"]) for row in rows
    ]
    reverse = list_causes(ratings, db, LEAGUE, "anna", "--from", "now", "--to", "as-of=2010-01-01")
    assert reverse == [("not played yet", row["game_id"], f"-{row['change']}") for row in reversed(rows)]


# arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "anna", CLUB, "--to", "now"), "work only with --change"),
        (("explain", "anna", CLUB, "--change"), "needs --from"),
        (("explain", "--change", CLUB, "anna", "--from", "3", "--as-of", "2010-01-01"), "leave out the other options"),
        (("diff", "published=no", "now"), "not a coordinate; write now, published, a position, a date, or parts"),
        (("diff", "now", "rules=club-catan-elo@9"), "club-catan-elo@1"),
        (("diff", "now", "rules=nope@1"), "nope"),
        (("diff", "now", "rules=@1"), "no ruleset is called"),
        (("publish", "nope"), "(published: club-catan-elo, youplay-league)"),
        (("whatif", "FILE", "--set", "params.=1"), "KEY=VALUE"),
        (("whatif", "FILE", "--set", ".=1"), "KEY=VALUE"),
        (("whatif", "FILE", "--ladder", "nope"), "nope"),
        (("whatif", "FILE", "--ladder", "club-catan-elo/9"), "is not a ladder"),
    ],
)
def test_wrong_arguments_are_explained(arguments: tuple[str, ...], message: str, db: str, ratings: Ratings) -> None:
    """Wrong arguments are a usage error whose message names them, or what is right."""
    file = Path(__file__).parents[2] / "examples" / "club-catan-elo-2.toml"
    result = ratings(*(str(file) if part == "FILE" else part for part in arguments), db=db)
    assert (result.exit_code, message in result.stderr) == (2, True), result


def test_repeated_key_tries_all_values(db: str, ratings: Ratings) -> None:
    """With the same key given twice to `whatif --set`, all its values are tried."""
    file = Path(__file__).parents[2] / "examples" / "club-catan-elo-2.toml"
    prediction = read_json(ratings, db, "whatif", file, "--set", "params.k_total=8", "--set", "params.k_total=16")
    assert [variant["set"] for variant in prediction["variants"]] == [{"params.k_total": "8"}, {"params.k_total": "16"}]
    (variant,) = read_json(ratings, db, "whatif", file, "--set", "version=3")["variants"]
    assert variant["ruleset"] == "club-catan-elo@3"


@pytest.mark.slow
def test_long_name_is_folded(db: str, ratings: Ratings) -> None:
    """In a narrow terminal a long name is folded, and no digit is lost."""
    name = "n" * 60
    append_lines(ratings, db, build_club_line("c-2", name, "anna", at="2010-01-02T12:00:00Z"))
    program = (
        "import sys; sys.stdout.isatty = lambda: True; from ratings_ledger.cli.main import run_program; run_program()"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, "--db", db, "diff", "3", "now", CLUB],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "TERM": "dumb"},
        cwd=Path(__file__).parents[2],
    )
    (ladder,) = read_json(ratings, db, "diff", 3, "now", CLUB)["ladders"]
    assert max(map(len, process.stdout.splitlines())) <= 80
    assert all(f"{float(Fraction(row['after'])):.6f}" in process.stdout for row in ladder["rows"])
