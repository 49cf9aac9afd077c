"""`diff`: one ladder at two coordinates, in every format, on a few games with results computed by hand."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    REASON_OPTION,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    create_three_games,
    read_head,
    read_json,
    read_position,
)
from own_rules import withdraw_rule

UNDER_VERSION = "under catan-elo@2009-01"


def create_diff_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger: two rulesets, three games at positions 3 to 5 on three days, and a rename at 6."""
    create_three_games(ratings, url)
    append_lines(ratings, url, build_event_line("player.renamed", player="ben", new_player="benno"))


pytestmark = pytest.mark.ledger(make=create_diff_ledger, store="sqlite")


def publish_later_version(tmp_path: Path, ratings: Ratings, db: str) -> None:
    """Publish a version of the Elo list in force from 2030 on, with 16 points per pair instead of 8."""
    text = (Path(__file__).parents[2] / "projections" / "shipped" / "catan-elo-2009-01.toml").read_text("utf-8")
    file = tmp_path / "other.toml"
    changes = {'"2009-01"': '"later"', "k_per_pair = 8": "k_per_pair = 16", "2009-01-31": "2030-01-01"}
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", file, db=db).exit_code == 0


def read_diff(ratings: Ratings, db: str, *arguments: object) -> list[dict[str, Any]]:
    """Return the ladders of the JSON of `diff`."""
    return list(read_json(ratings, db, "diff", *arguments)["ladders"])


def list_moves(ladder: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return kind, player, points and ranks of each row."""
    return [
        (row["kind"], row["player"], row["before"], row["change"], row["after"], *row["rank"]) for row in ladder["rows"]
    ]


# c-2: cleo enters with 992 and takes half of 8 from dora
SECOND_GAME = [("added", "dora", None, None, "996", None, 3), ("moved", "cleo", "992", "4", "996", 3, 3)]


def test_table_shows_moves_by_rank(db: str, ratings: Ratings) -> None:
    """The table of a diff of two positions lists the changed rows in order of rank."""
    assert ratings("diff", 3, 4, db=db) == (
        0,
        (
            f"catan-elo/basic\nA  known at position 3, {UNDER_VERSION}\nB  known at position 4, {UNDER_VERSION}\n\n"
            "player  before  change  after   rank\n"
            "cleo       992      +4    996\n"
            "dora         -       -    996  - → 3\n\n"
            "1 moved, 1 added, 0 removed.\n"
        ),
        "",
    )


def test_json_has_rows_and_coordinates(db: str, ratings: Ratings) -> None:
    """As JSON, a diff of two positions has the rows, both coordinates and the extent of the change."""
    side = {"as_of": None, "known_at": 3, "rules": None, "ruleset": "catan-elo@2009-01"}
    dora = {"kind": "added", "player": "dora", "before": None, "change": None, "after": "996", "rank": [None, 3]}
    cleo = {"kind": "moved", "player": "cleo", "before": "992", "change": "4", "after": "996", "rank": [3, 3]}

    assert read_json(ratings, db, "diff", 3, "known-at=4", BASIC) == {"ladders": [{
        "ladder": BASIC, "a": side, "b": {**side, "known_at": 4},
        "rows": [{**row, "gold": [None, None]} for row in (dora, cleo)],
        "players": 2, "ranks": 1, "up": {"player": "cleo", "change": "4"}, "down": None, "swapped": 0,
        "entering": ["dora"], "leaving": [],
    }]}  # fmt: skip


def test_csv_has_one_line_per_row(db: str, ratings: Ratings) -> None:
    """As CSV, a diff of two positions has one line for each changed row."""
    result = ratings("diff", 4, "as-of=2010-03-05,known-at=4", "--format", "csv", db=db)

    assert result == (
        0,
        (
            "ladder,as_of,player,before,change,after,rank_before,rank_after\n"
            "catan-elo/basic,,cleo,996,-4,992,3,3\ncatan-elo/basic,,dora,996,,,3,\n"
        ),
        "",
    )


def test_reverse_diff_negates_changes(db: str, ratings: Ratings) -> None:
    """The reverse diff negates changes and turns added rows into removed ones."""
    (forward,), (backward,) = read_diff(ratings, db, 3, 4), read_diff(ratings, db, 4, 3)

    assert list_moves(forward) == SECOND_GAME
    assert list_moves(backward) == [
        ("moved", "cleo", "996", "-4", "992", 3, 3),
        ("removed", "dora", "996", None, None, 3, None),
    ]
    assert (backward["a"], backward["b"]) == (forward["b"], forward["a"])
    assert (backward["up"], backward["down"]) == (None, {"player": "cleo", "change": "-4"})
    assert (backward["entering"], backward["leaving"]) == (forward["leaving"], forward["entering"])


@pytest.mark.parametrize("as_of", ["2010-03-05", "2010-03-06T11:59:59.999999Z", "2010-03-06T12:59:00+01:00"])
def test_diff_from_played_time_shows_later_games(as_of: str, db: str, ratings: Ratings) -> None:
    """From a played time to now, a ladder differs by the games played later."""
    (ladder,) = read_diff(ratings, db, f"as-of={as_of}", "now", BASIC)

    assert list_moves(ladder) == SECOND_GAME
    assert (ladder["a"]["known_at"], ladder["b"]["known_at"], ladder["b"]["as_of"]) == (6, 6, None)
    ladders = read_diff(ratings, db, f"as-of={as_of}", "now")
    assert [entry["ladder"] for entry in ladders] == [BASIC, GALACTIC]


def test_recorded_times_stand_for_positions(db: str, ratings: Ratings) -> None:
    """Recorded times stand for the positions known by then."""
    times = [entry["recorded_at"] for entry in read_json(ratings, db, "log", "--limit", "0")["rows"]]

    for first, second in ((times[2], times[3]), (f"known-at={times[2]}", 4)):
        (ladder,) = read_diff(ratings, db, first, second)
        assert (list_moves(ladder), ladder["a"]["known_at"], ladder["b"]["known_at"]) == (SECOND_GAME, 3, 4)


def test_another_version_affects_only_its_ladders(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """A diff with another version of a ruleset shows only the ladders of that ruleset."""
    publish_later_version(tmp_path, ratings, db)
    (ladder,) = read_diff(ratings, db, "now", "rules=catan-elo@later")

    # with 16 per pair: the last of three equals loses 16 to the first; then cleo is 16 behind
    # dora, and 8.37 are rounded
    assert list_moves(ladder) == [
        ("moved", "anna", "1008", "8", "1016", 1, 1),
        ("moved", "cleo", "996", "-4", "992", 3, 3),
        ("moved", "dora", "996", "-4", "992", 3, 3),
    ]
    assert (ladder["b"]["rules"], ladder["b"]["ruleset"]) == ("catan-elo@later", "catan-elo@later")
    table_lines = ratings("diff", "now", "rules=catan-elo@later", db=db).stdout.splitlines()
    assert table_lines[1:3] == [
        f"A  known at position 7, {UNDER_VERSION}",
        "B  known at position 7, all games under catan-elo@later",
    ]


def test_rename_alone_is_no_difference(db: str, ratings: Ratings) -> None:
    """A rename alone is no difference, but a merge of two players is one."""
    assert ratings("diff", 5, "now", db=db) == (0, "No ladder differs between 5 and now.\n", "")
    assert ratings("diff", "now", 5, BASIC, db=db).stdout == (
        f"catan-elo/basic\nA  known at position 6, {UNDER_VERSION}\nB  known at position 5, {UNDER_VERSION}\n\n"
        "No row differs.\n"
    )
    append_lines(ratings, db, build_catan_line("c-3", "benno", "anna", at="2010-03-08T12:00:00Z"))
    (ladder,) = read_diff(ratings, db, 5, "now")
    assert [(row["kind"], row["player"]) for row in ladder["rows"]] == [("moved", "benno"), ("moved", "anna")]
    assert (ladder["entering"], ladder["leaving"]) == ([], [])
    # a merge is a difference: dora becomes anna
    before = read_position(ratings, db)
    append_lines(ratings, db, build_event_line("player.renamed", player="dora", new_player="anna"))
    (ladder_of_merge,) = read_diff(ratings, db, before, "now", BASIC)
    assert ("removed", "dora") in [(row["kind"], row["player"]) for row in ladder_of_merge["rows"]]


def test_swaps_are_counted(db: str, ratings: Ratings) -> None:
    """Pairs of players who swapped places are counted and shown."""
    assert ratings("correct", "c-1", "cleo", "ben", "anna", *REASON_OPTION, db=db).exit_code == 0
    (ladder,) = read_diff(ratings, db, 6, "now")
    stdout = ratings("diff", 6, "now", db=db).stdout

    # anna, benno, cleo = dora become cleo, benno, dora, anna: cleo and dora shared a rank, benno is still above dora
    assert (ladder["swapped"], ladder["entering"], ladder["leaving"]) == (4, [], [])
    assert stdout.endswith("2 moved, 0 added, 0 removed; 4 pairs swapped.\n")


# published lists


def test_published_lists_keep_played_times(db: str, ratings: Ratings) -> None:
    """A diff of the published lists with now takes each list at its own played time."""
    instant = json.loads(ratings("publish", BASIC, "--format", "json", db=db).stdout)["as_of"]
    assert ratings("publish", BASIC, "--as-of", "2010-03-05", db=db).exit_code == 0
    append_lines(ratings, db, build_catan_line("c-4", "anna", "dora", at="2010-03-09T12:00:00Z"))
    assert ratings("void", "c-1", *REASON_OPTION, db=db).exit_code == 0
    list_of_day, list_of_instant = read_diff(ratings, db, "published", "now")

    end = "2010-03-05T22:59:59.999999Z"
    assert [ladder["a"]["published"] for ladder in (list_of_day, list_of_instant)] == [10, 8]
    assert [
        (ladder[side]["as_of"], ladder[side]["known_at"]) for ladder in (list_of_day, list_of_instant) for side in "ab"
    ] == [
        (end, 8),
        (end, 12),
        (instant, 6),
        (instant, 12),
    ]
    assert {row[0] for row in list_moves(list_of_day)} == {"removed"}
    assert list_moves(list_of_instant) == [
        ("moved", "cleo", "996", "8", "1004", 3, 1),
        ("moved", "anna", "1008", "-4", "1004", 1, 1),
        ("moved", "dora", "996", "-4", "992", 3, 3),
        ("removed", "benno", "1000", None, None, 2, None),
    ]
    stdout = ratings("diff", "published", "now", BASIC, db=db).stdout
    assert "A  published at position 10, known at position 8, played up to 2010-03-05 22:59 UTC, under" in stdout
    # the second side may have another time
    (dated_ladder,) = read_diff(ratings, db, "published,as-of=2010-03-05", "as-of=2010-03-06", BASIC)
    assert (dated_ladder["a"]["as_of"], dated_ladder["b"]["as_of"]) == (end, "2010-03-06T22:59:59.999999Z")


def test_both_sides_can_be_published(db: str, ratings: Ratings) -> None:
    """For a list published twice, both sides of a diff can be published lists."""
    assert ratings("publish", BASIC, db=db).exit_code == 0
    first = read_position(ratings, db)
    assert ratings("void", "c-2", *REASON_OPTION, db=db).exit_code == 0
    assert ratings("publish", BASIC, db=db).exit_code == 0
    assert ratings("publish", GALACTIC, db=db).exit_code == 0
    elo, pool = read_diff(ratings, db, f"published,known-at={first}", "published")

    assert [row[:2] for row in list_moves(elo)] == [("moved", "cleo"), ("removed", "dora")]
    assert (elo["a"]["published"], elo["b"]["published"]) == (first, first + 3)
    assert (pool["ladder"], pool["a"]) == (GALACTIC, {})
    assert {row[0] for row in list_moves(pool)} == {"added"}
    assert "A  not published\n" in ratings("diff", f"published,known-at={first}", "published", db=db).stdout


def test_list_without_its_rule_is_reported(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A published list whose rule is not installed any more is reported, and the other lists are compared."""
    assert ratings("publish", BASIC, db=db).exit_code == 0
    assert ratings("publish", GALACTIC, db=db).exit_code == 0
    assert ratings("void", "c-2", *REASON_OPTION, db=db).exit_code == 0
    withdraw_rule(monkeypatch, "contribution-pool/1")
    result = ratings("diff", "published", "now", db=db)
    assert (result.exit_code, result.stdout.startswith(BASIC)) == (1, True)
    assert "galactic-points@1 cannot be used here: rule: " in result.stderr
    assert "galactic" not in result.stdout
    for command in (
        ("diff", "published", "now", GALACTIC),
        ("standings", GALACTIC),
        ("explain", "anna", GALACTIC, "--change", "--from", "published"),
    ):
        refused = ratings(*command, db=db)
        assert (refused.exit_code, "galactic-points@1 cannot be used here" in refused.stderr) == (2, True), refused
    for command in (("standings", GALACTIC, "--as-published"), ("lists",), ("report", "player", "anna")):
        assert "bug" not in ratings(*command, db=db).stderr, command


@pytest.mark.slow
def test_lists_without_difference_take_one_line(db: str, ratings: Ratings) -> None:
    """Of several published lists, the differing ones are shown, and the equal ones share one line."""
    days = range(5, 11)
    for day in days:
        assert ratings("publish", BASIC, "--as-of", f"2010-03-{day:02}", db=db).exit_code == 0
    assert ratings("publish", GALACTIC, db=db).exit_code == 0
    unchanged = ratings("diff", "published", "now", db=db).stdout
    assert unchanged == f"No row differs on 7 lists: {BASIC}, {GALACTIC}\n"
    assert ratings("diff", "now", "now", BASIC, GALACTIC, db=db).stdout == (
        f"No row differs on 2 ladders: {BASIC}, {GALACTIC}\n"
    )

    append_lines(ratings, db, build_catan_line("c-3", "anna", "cleo", at="2010-03-08T12:00:00Z"))

    stdout = ratings("diff", "published", "now", db=db).stdout
    blocks = stdout.split("\n\n")
    assert [block.splitlines()[0] for block in blocks if "A  published" in block] == [BASIC] * 3
    assert blocks[-2] == f"No row differs on 4 other lists: {BASIC}, {GALACTIC}"
    assert blocks[-1].startswith("To publish the new lists:\n  ratings publish catan-elo/basic --as-of ")
    assert "No row differs." not in stdout
    assert [bool(ladder["rows"]) for ladder in read_diff(ratings, db, "published", "now")] == [False] * 3 + [
        True
    ] * 3 + [False]
    for name in "abcd":
        append_lines(ratings, db, build_catan_line(f"in-{name}", "anna", "ben", group=name))
        assert ratings("publish", f"catan-elo/{name}", db=db).exit_code == 0
    assert "\nNo row differs on 8 other lists.\n" in ratings("diff", "published", "now", db=db).stdout


@pytest.mark.parametrize("arguments", [["published", "now"], ["now", "published", BASIC], ["published", "published"]])
def test_diff_without_published_lists_fails(arguments: list[str], db: str, ratings: Ratings) -> None:
    """A diff with published lists fails if there are none, and points to `publish`."""
    result = ratings("diff", *arguments, db=db)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "to publish one, see: ratings publish --help" in result.stderr


def test_diff_without_list_of_a_date_names_the_date(db: str, ratings: Ratings) -> None:
    """If the published lists are of other dates, the error does not deny that they are published."""
    assert ratings("publish", BASIC, "--as-of", "2010-03-05", db=db).exit_code == 0
    spec, hint = "published,as-of=2010-03-06", "to publish one, see: ratings publish --help"

    assert ratings("diff", spec, "now", db=db).stderr == f"Error: no list is published for '{spec}'; {hint}\n"
    result = ratings("diff", "now", spec, BASIC, db=db)
    assert result.stderr == f"Error: no list of {BASIC} is published for '{spec}'; {hint}\n"


# invalid coordinates


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["9999", "now"], "Error: the log ends at position 6, before 9999"),
        (["0", "now"], "the log begins at position 1"),
        (["soon", "now"], "Error: 'soon' is not a time"),
        (["as-of=soon", "now"], "'soon' is not a time"),
        (["1999-01-01", "now"], "the log begins at position 1"),
        (["now", "rules=catan-elo@9"], "'catan-elo@9' is published at position 6 (published: catan-elo@2009-01)"),
        (["now", "rules=catan-elo@9", BASIC], "not a published version for catan-elo/basic"),
        (["rules=catan-elo", "now"], "'catan-elo' is published at position 6"),
        (["rules=nothing@1", "now"], "no ruleset is called 'nothing'"),
        (["1,rules=catan-elo@2009-01", "now"], "'catan-elo@2009-01' is published at position 1"),
        (["now", "rules=catan-elo@2009-01", GALACTIC], "is not a version of galactic-points's ruleset"),
        (["published,rules=catan-elo@2009-01", "now"], "a published list has its own version"),
        (["as-of=2010-01-01,as-of=2010-01-02", "now"], "has two values for as-of"),
        (["known-at=3,4", "now"], "has two values for known-at"),
        (["now,place=3", "now"], "'place=3' is not a coordinate"),
        (["as-of=", "now"], "'as-of=' is not a coordinate"),
        (["", "now"], "'' is not a coordinate"),
        (["now"], "Missing argument 'B'"),
        (["now", "now", "nothing/x"], "no ruleset is called 'nothing'"),
        (["now", "now", "catan-elo"], "'catan-elo' is not a ladder"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_wrong_coordinates_are_usage_errors(
    arguments: list[str], message: str, form: str, db: str, ratings: Ratings
) -> None:
    """Invalid coordinates are a usage error with the reason."""
    result = ratings("diff", *arguments, "--format", form, db=db)

    assert (result.exit_code, result.stdout) == (2, ""), result
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_invalid_coordinates_of_explain_do_not_mention_known_at(db: str, ratings: Ratings) -> None:
    """The error about --from of `explain --change` does not mention --known-at."""
    result = ratings("explain", "--change", "anna", BASIC, "--from", "9999", db=db)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: the log ends at position 6, before 9999" in result.stderr
    assert "--known-at" not in result.stderr


def test_named_ladders_are_all_shown(db: str, ratings: Ratings) -> None:
    """All named ladders are shown, and `diff` writes nothing to the ledger."""
    before = read_head(ratings, db)
    ladders = read_diff(ratings, db, 3, "now", GALACTIC, BASIC, "catan-elo/domaine")

    assert [(ladder["ladder"], len(ladder["rows"])) for ladder in ladders] == [
        (GALACTIC, 2),
        (BASIC, 2),
        ("catan-elo/domaine", 0),
    ]
    lines = list(csv.reader(io.StringIO(ratings("diff", 3, "now", "--format", "csv", db=db).stdout)))
    assert [line[0] for line in lines[1:]] == [BASIC, BASIC, GALACTIC, GALACTIC]
    assert json.loads(ratings("diff", "now", "now", "--format", "json", db=db).stdout) == {"ladders": []}
    assert read_head(ratings, db) == before
