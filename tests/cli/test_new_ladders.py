"""New ladders, through the commands: a slip in a label begins one, which is told, and refused where one insists."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from correction_helpers import Ratings, catan, head, new_ledger

AT = "2024-03-01T12:00:00Z"
HEADER = "game_id,occurred_at,game,group,city,1st,2nd,3rd\n"
RECORD = ("record", "--game", "catan", "--at", AT)
ALL_KNOWN = ("anna", "ben", "cleo")


def a_club(ratings: Ratings, url: str) -> None:
    """Make a ledger with a rating and monthly lists of Catan, and games of the groups basic and rivals."""
    new_ledger(ratings, url, "catan-elo-2009-01", "catan-monthly-2008-03", "club-catan-elo-1")
    games = [
        catan("c-1", *ALL_KNOWN, at="2024-02-01T12:00:00Z", city="Berlin"),
        catan("c-2", *ALL_KNOWN, at="2024-02-02T12:00:00Z", group="rivals-duel", city="Berlin"),
    ]
    assert ratings("import", "-", db=url, input="".join(games)).exit_code == 0


@pytest.fixture
def db(copied: Callable[..., str]) -> str:
    """The ledger of `a_club`, in each kind of store."""
    return copied(a_club)


def recorded(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    """What recording a game among those known tells."""
    return dict(json.loads(ratings(*RECORD, *arguments, "--format", "json", *ALL_KNOWN, db=db).stdout))


def test_given_a_slip_in_a_group_when_recorded_then_the_new_ladder_is_told_with_the_one_that_was_meant(
    db: str, ratings: Ratings
) -> None:
    shown = ratings(*RECORD, "--game-id", "c-3", "--group", "basci", *ALL_KNOWN, db=db)
    assert (shown.exit_code, shown.stderr) == (0, "note: 1 new ladder: catan-elo/basci (like catan-elo/basic?)\n")
    again = ratings(*RECORD, "--game-id", "c-4", "--group", "basci", *ALL_KNOWN, db=db)
    assert (again.exit_code, again.stderr) == (0, "")
    told = recorded(ratings, db, "--game-id", "c-5", "--group", "basic", "--city", "Berlni")
    assert told["new_ladders"] == ["catan-monthly/Berlni/basic/2024-03"]
    assert told["close_ladders"] == [
        {"ladder": "catan-monthly/Berlni/basic/2024-03", "close_to": ["catan-monthly/Berlin/basic/2024-03"]}
    ]


def test_given_known_labels_when_a_month_begins_then_no_ladder_is_new(db: str, ratings: Ratings) -> None:
    told = recorded(ratings, db, "--game-id", "c-3", "--group", "basic", "--city", "Berlin")
    assert (told["new_ladders"], told["close_ladders"], told["new_players"]) == ([], [], [])


def test_given_a_ladder_whose_only_game_was_voided_when_recorded_again_then_it_is_new_again(
    db: str, ratings: Ratings
) -> None:
    assert recorded(ratings, db, "--game-id", "c-3", "--group", "basci")["new_ladders"] == ["catan-elo/basci"]
    ratings("void", "c-3", "--reason", "the wrong group", db=db)
    assert recorded(ratings, db, "--game-id", "c-4", "--group", "basci")["new_ladders"] == ["catan-elo/basci"]


def test_given_a_file_when_imported_then_each_new_ladder_is_told_once(db: str, ratings: Ratings) -> None:
    rows = [f"f-{n},{AT},catan,{group},,anna,ben,cleo\n" for n, group in enumerate(["basci", "basic", "basci", "new"])]
    dry = ratings("import", "-", "--dry-run", db=db, input=HEADER + "".join(rows))
    done = ratings("import", "-", db=db, input=HEADER + "".join(rows))
    note = "note: 2 new ladders: catan-elo/basci (like catan-elo/basic?), catan-elo/new\n"
    assert (dry.stderr, done.stderr) == (note, note)


def test_given_a_game_that_no_ladder_counts_when_recorded_then_no_ladder_is_new(db: str, ratings: Ratings) -> None:
    """Nobody rates what was ended by agreement, and before 2009 no version was in force."""
    aborted = json.loads(catan("c-3", *ALL_KNOWN, at=AT, group="basci", aborted=True))
    early = json.loads(catan("c-4", *ALL_KNOWN, at="2001-03-01T12:00:00Z", group="basci"))
    for given in (aborted, early):
        told = json.loads(ratings("record", "--format", "json", db=db, input=json.dumps(given)).stdout)
        assert (told["appended"], told["new_ladders"]) == (1, [])


def test_given_a_correction_when_its_label_is_a_slip_then_the_new_ladder_is_told(db: str, ratings: Ratings) -> None:
    done = ratings("correct", "c-1", "--group", "basci", "--reason", "it was another group", "--dry-run", db=db)
    assert done.exit_code == 0
    assert "catan-elo/basci (like catan-elo/rivals-duel?)" not in done.stderr
    assert "note: 2 new ladders: catan-elo/basci (like catan-elo/basic?)" in done.stderr


def test_given_strict_when_a_ladder_or_a_player_is_new_then_the_game_is_refused(db: str, ratings: Ratings) -> None:
    before = head(ratings, db)
    slip = ratings(*RECORD, "--strict", "--game-id", "c-3", "--group", "basci", *ALL_KNOWN, db=db)
    assert (slip.exit_code, slip.stderr.partition(":")[0]) == (1, "new-ladder")
    assert "'catan-elo/basci' has no game yet; did you mean catan-elo/basic?" in slip.stderr
    newcomer = ratings(*RECORD, "--strict", "--game-id", "c-3", "--group", "basic", "anna", "ben", "celo", db=db)
    assert (newcomer.exit_code, newcomer.stderr.partition(":")[0]) == (1, "new-player")
    assert "'celo' is new (like cleo?); without --strict he is taken" in newcomer.stderr
    assert head(ratings, db) == before
    known = ratings(*RECORD, "--strict", "--game-id", "c-3", "--group", "basic", *ALL_KNOWN, db=db)
    assert (known.exit_code, known.stderr) == (0, "")


def test_given_strict_when_new_names_are_accepted_then_it_is_a_usage_error(db: str, ratings: Ratings) -> None:
    both = ratings(*RECORD, "--strict", "--new-names", "accept", "--game-id", "c-3", *ALL_KNOWN, db=db)
    assert (both.exit_code, both.stdout) == (2, "")


READING = [
    ("standings", "catan-elo/basci"), ("history", "anna", "catan-elo/basci"), ("books", "catan-elo/basci"),
    ("explain", "anna", "catan-elo/basci"), ("explain", "c-1", "catan-elo/basci"),
    ("export", "changes", "catan-elo/basci"),
    ("export", "standings", "catan-elo/basci"), ("diff", "now", "now", "catan-elo/basci"),
    ("standings", "catan-elo/basci", "--as-of", "2024-12-31"),
]  # fmt: skip


@pytest.mark.parametrize("command", READING, ids=map(" ".join, READING))
def test_given_a_slip_in_a_ladder_when_it_is_asked_for_then_the_one_that_was_meant_is_named(
    command: tuple[str, ...], db: str, ratings: Ratings
) -> None:
    """No rows and exit 0, as of any ladder without games; the hint stands on standard error, in every format."""
    done = ratings(*command, db=db)
    assert (done.exit_code, done.stderr.splitlines()[0]) == (0, HINT)
    if command[0] in ("standings", "history", "books"):
        told = ratings(*command, "--format", "json", db=db)
        assert (told.exit_code, told.stderr) == (0, HINT + "\n")
        assert json.loads(told.stdout).get("rows", []) == []


HINT = "note: catan-elo/basci never had a game; group basci; did you mean basic?"


def test_given_a_ladder_of_a_month_when_its_labels_are_there_then_no_other_is_named(db: str, ratings: Ratings) -> None:
    empty = ratings("standings", "catan-monthly/Berlin/basic/2023-01", db=db)
    assert (empty.exit_code, empty.stderr) == (0, "Nobody is on this ladder.\n")
    slip = ratings("standings", "catan-monthly/Berlni/basic/2023-01", db=db)
    assert "never had a game; city Berlni; did you mean Berlin?" in slip.stderr
    far = ratings("standings", "catan-elo/xyz", db=db)
    assert (far.exit_code, far.stderr) == (0, "Nobody is on this ladder.\n")


def test_given_strict_when_a_file_or_a_correction_brings_new_names_then_it_is_refused(
    db: str, ratings: Ratings
) -> None:
    """As `record --strict`: events of JSON, too, of which close names are otherwise told and taken."""
    before = head(ratings, db)
    celo = catan("c-3", "anna", "ben", "celo", at=AT, group="basic")
    basci = catan("c-3", *ALL_KNOWN, at=AT, group="basci")
    rows = HEADER + f"c-3,{AT},catan,basci,,anna,ben,cleo\n"
    for given, code in ((celo, "new-player"), (basci, "new-ladder"), (rows, "new-ladder")):
        assert ratings("import", "-", "--dry-run", db=db, input=given).exit_code == 0
        done = ratings("import", "-", "--strict", db=db, input=given)
        assert (done.exit_code, f"{code}: " in done.stderr) == (1, True), done.stderr
    for given, code in ((("c-1", "anna", "ben", "celo"), "new-player"), (("c-1", "--group", "basci"), "new-ladder")):
        done = ratings("correct", *given, "--strict", "--reason", "wrong", db=db)
        assert (done.exit_code, done.stderr.partition(":")[0]) == (1, code)
    table = HEADER + f"c-1,{AT},catan,basic,Berlin,anna,ben,celo\n"
    done = ratings("correct", "--file", "-", "--strict", "--reason", "wrong", db=db, input=table)
    assert (done.exit_code, "new-player: 'celo' is new (like cleo?)" in done.stderr) == (1, True)
    assert head(ratings, db) == before
    for command in (("import", "-", "--follow"), ("import", "-", "--restore")):
        assert ratings(*command, "--strict", db=db, input=celo).exit_code == 2
