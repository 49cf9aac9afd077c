"""A typo in a label starts a new ladder: commands note it with the ladder probably meant, and `--strict` refuses it."""

import json
from typing import Any

import pytest
from correction_helpers import Ratings, build_catan_line, create_ledger, read_head

AT = "2024-03-01T12:00:00Z"
HEADER = "game_id,occurred_at,game,group,city,1st,2nd,3rd\n"
RECORD = ("record", "--game", "catan", "--at", AT)
ALL_KNOWN = ("anna", "ben", "cleo")


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger with ratings and monthly lists of Catan, and one game of each of two groups."""
    create_ledger(ratings, url, "catan-elo-2009-01", "catan-monthly-2008-03", "club-catan-elo-1")
    games = [
        build_catan_line("c-1", *ALL_KNOWN, at="2024-02-01T12:00:00Z", city="Berlin"),
        build_catan_line("c-2", *ALL_KNOWN, at="2024-02-02T12:00:00Z", group="rivals-duel", city="Berlin"),
    ]
    assert ratings("import", "-", db=url, input="".join(games)).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_club)


def record_game(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    """Record a game of the known players and return the JSON of the command."""
    return dict(json.loads(ratings(*RECORD, *arguments, "--format", "json", *ALL_KNOWN, db=db).stdout))


@pytest.mark.slow_cases
def test_mistyped_label_hints_at_known_ladder(db: str, ratings: Ratings) -> None:
    """`record` notes the new ladder of a mistyped group or city, once, with the ladder that was probably meant."""
    result = ratings(*RECORD, "--game-id", "c-3", "--group", "basci", *ALL_KNOWN, db=db)
    assert (result.exit_code, result.stderr) == (0, "note: 1 new ladder: catan-elo/basci (like catan-elo/basic?)\n")
    again = ratings(*RECORD, "--game-id", "c-4", "--group", "basci", *ALL_KNOWN, db=db)
    assert (again.exit_code, again.stderr) == (0, "")
    report = record_game(ratings, db, "--game-id", "c-5", "--group", "basic", "--city", "Berlni")
    assert report["new_ladders"] == ["catan-monthly/Berlni/basic/2024-03"]
    assert report["close_ladders"] == [
        {"ladder": "catan-monthly/Berlni/basic/2024-03", "close_to": ["catan-monthly/Berlin/basic/2024-03"]}
    ]


def test_new_month_is_no_new_ladder(db: str, ratings: Ratings) -> None:
    """A new month with known labels does not count as a new ladder."""
    report = record_game(ratings, db, "--game-id", "c-3", "--group", "basic", "--city", "Berlin")
    assert (report["new_ladders"], report["close_ladders"], report["new_players"]) == ([], [], [])


def test_ladder_is_new_again_after_void(db: str, ratings: Ratings) -> None:
    """A ladder whose only game was voided counts as new when it is used again."""
    assert record_game(ratings, db, "--game-id", "c-3", "--group", "basci")["new_ladders"] == ["catan-elo/basci"]
    ratings("void", "c-3", "--reason", "the wrong group", db=db)
    assert record_game(ratings, db, "--game-id", "c-4", "--group", "basci")["new_ladders"] == ["catan-elo/basci"]


def test_import_names_each_new_ladder_once(db: str, ratings: Ratings) -> None:
    """An import names each new ladder once, in a dry run as well."""
    rows = [f"f-{n},{AT},catan,{group},,anna,ben,cleo\n" for n, group in enumerate(["basci", "basic", "basci", "new"])]
    dry = ratings("import", "-", "--dry-run", db=db, input=HEADER + "".join(rows))
    result = ratings("import", "-", db=db, input=HEADER + "".join(rows))
    note = "note: 2 new ladders: catan-elo/basci (like catan-elo/basic?), catan-elo/new\n"
    assert (dry.stderr, result.stderr) == (note, note)


def test_uncounted_game_starts_no_ladder(db: str, ratings: Ratings) -> None:
    """A game that no ladder counts starts no new ladder.

    Games ended by agreement are not rated, and before 2009 no version was in force.
    """
    aborted = json.loads(build_catan_line("c-3", *ALL_KNOWN, at=AT, group="basci", aborted=True))
    early = json.loads(build_catan_line("c-4", *ALL_KNOWN, at="2001-03-01T12:00:00Z", group="basci"))
    for event in (aborted, early):
        report = json.loads(ratings("record", "--format", "json", db=db, input=json.dumps(event)).stdout)
        assert (report["appended"], report["new_ladders"]) == (1, [])


def test_correction_notes_mistyped_label(db: str, ratings: Ratings) -> None:
    """A correction to a mistyped label notes the new ladders, with the known ladder that was probably meant."""
    result = ratings("correct", "c-1", "--group", "basci", "--reason", "it was another group", "--dry-run", db=db)
    assert result.exit_code == 0
    assert "catan-elo/basci (like catan-elo/rivals-duel?)" not in result.stderr
    assert "note: 2 new ladders: catan-elo/basci (like catan-elo/basic?)" in result.stderr


def test_strict_refuses_new_ladder_or_player(db: str, ratings: Ratings) -> None:
    """`record --strict` refuses a game with a new ladder or player and suggests the known name."""
    before = read_head(ratings, db)
    typo = ratings(*RECORD, "--strict", "--game-id", "c-3", "--group", "basci", *ALL_KNOWN, db=db)
    assert (typo.exit_code, typo.stderr.partition(":")[0]) == (1, "new-ladder")
    message = "'catan-elo/basci' is a new ladder; to create it, omit --strict; did you mean catan-elo/basic?"
    assert message in typo.stderr
    newcomer = ratings(*RECORD, "--strict", "--game-id", "c-3", "--group", "basic", "anna", "ben", "celo", db=db)
    assert (newcomer.exit_code, newcomer.stderr.partition(":")[0]) == (1, "new-player")
    assert "'celo' is new; to accept it, omit --strict; did you mean 'cleo'?" in newcomer.stderr
    assert read_head(ratings, db) == before
    known = ratings(*RECORD, "--strict", "--game-id", "c-3", "--group", "basic", *ALL_KNOWN, db=db)
    assert (known.exit_code, known.stderr) == (0, "")


def test_strict_and_accept_are_exclusive(db: str, ratings: Ratings) -> None:
    """`--strict` together with `--new-names accept` is a usage error."""
    result = ratings(*RECORD, "--strict", "--new-names", "accept", "--game-id", "c-3", *ALL_KNOWN, db=db)
    assert (result.exit_code, result.stdout) == (2, "")


HINT = "note: catan-elo/basci has no games; did you mean the group basic?"
READING_COMMANDS = [
    ("standings", "catan-elo/basci"),
    ("history", "anna", "catan-elo/basci"),
    ("books", "catan-elo/basci"),
    ("explain", "anna", "catan-elo/basci"),
    ("explain", "c-1", "catan-elo/basci"),
    ("export", "changes", "catan-elo/basci"),
    ("export", "standings", "catan-elo/basci"),
    ("diff", "now", "now", "catan-elo/basci"),
    ("standings", "catan-elo/basci", "--as-of", "2024-12-31"),
]


@pytest.mark.parametrize("command", READING_COMMANDS, ids=map(" ".join, READING_COMMANDS))
def test_reading_mistyped_ladder_gives_hint(command: tuple[str, ...], db: str, ratings: Ratings) -> None:
    """Reading a mistyped ladder exits with 0, and a note on standard error names the label that was probably meant.

    There are no rows, as for any ladder without games; the note also appears with JSON.
    """
    result = ratings(*command, db=db)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (0, HINT)
    if command[0] in ("standings", "history", "books"):
        json_result = ratings(*command, "--format", "json", db=db)
        assert (json_result.exit_code, json_result.stderr) == (0, HINT + "\n")
        assert json.loads(json_result.stdout).get("rows", []) == []


def test_known_monthly_labels_give_no_hint(db: str, ratings: Ratings) -> None:
    """An empty month with known labels and a label unlike any known one get no hint; a close label gets one."""
    empty = ratings("standings", "catan-monthly/Berlin/basic/2023-01", db=db)
    no_rows_note = "No player is on this ladder: no game counts on it (to see why: ratings explain GAME {}).\n"
    assert (empty.exit_code, empty.stderr) == (0, no_rows_note.format("catan-monthly/Berlin/basic/2023-01"))
    typo = ratings("standings", "catan-monthly/Berlni/basic/2023-01", db=db)
    assert "has no games; did you mean the city Berlin?" in typo.stderr
    distant = ratings("standings", "catan-elo/xyz", db=db)
    assert (distant.exit_code, distant.stderr) == (0, no_rows_note.format("catan-elo/xyz"))


def test_strict_covers_files_and_corrections(db: str, ratings: Ratings) -> None:
    """`import` and `correct` refuse new names with `--strict`, as `record --strict` does.

    This includes JSON events, whose close names are accepted with a note without the option. `--strict`
    cannot be combined with `--follow` or `--restore`.
    """
    before = read_head(ratings, db)
    celo = build_catan_line("c-3", "anna", "ben", "celo", at=AT, group="basic")
    basci = build_catan_line("c-3", *ALL_KNOWN, at=AT, group="basci")
    rows = HEADER + f"c-3,{AT},catan,basci,,anna,ben,cleo\n"
    for content, code in ((celo, "new-player"), (basci, "new-ladder"), (rows, "new-ladder")):
        assert ratings("import", "-", "--dry-run", db=db, input=content).exit_code == 0
        result = ratings("import", "-", "--strict", db=db, input=content)
        assert (result.exit_code, f"{code}: " in result.stderr) == (1, True), result.stderr
    for arguments, code in (
        (("c-1", "anna", "ben", "celo"), "new-player"),
        (("c-1", "--group", "basci"), "new-ladder"),
    ):
        result = ratings("correct", *arguments, "--strict", "--reason", "wrong", db=db)
        assert (result.exit_code, result.stderr.partition(":")[0]) == (1, code)
    table = HEADER + f"c-1,{AT},catan,basic,Berlin,anna,ben,celo\n"
    result = ratings("correct", "--file", "-", "--strict", "--reason", "wrong", db=db, input=table)
    assert (result.exit_code, "new-player: 'celo' is new; to accept it, omit --strict" in result.stderr) == (1, True)
    assert read_head(ratings, db) == before
    for command in (("import", "-", "--follow"), ("import", "-", "--restore")):
        assert ratings(*command, "--strict", db=db, input=celo).exit_code == 2
