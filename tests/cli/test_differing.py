"""`diff`: a ladder at two coordinates beside each other, in every form, on four games that can be checked by hand."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    WHY,
    Ratings,
    catan,
    event,
    head,
    position,
    read,
    take_in,
    three_games,
)
from own_rules import withdraw_rule

UNDER = "under catan-elo@2009-01"


def make_ledger(ratings: Ratings, url: str) -> None:
    """Two rulesets, three games at positions 3 to 5 on three days, and a rename at 6."""
    three_games(ratings, url)
    take_in(ratings, url, event("player.renamed", player="ben", new_player="benno"))


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def other_version(tmp_path: Path, ratings: Ratings, db: str) -> None:
    """Publish a version of the Elo list that is in force from 2030 on: 16 points for two players instead of 8."""
    text = (Path(__file__).parents[2] / "projections" / "shipped" / "catan-elo-2009-01.toml").read_text("utf-8")
    file = tmp_path / "other.toml"
    changes = {'"2009-01"': '"later"', "k_per_pair = 8": "k_per_pair = 16", "2009-01-31": "2030-01-01"}
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", file, db=db).exit_code == 0


def diff(ratings: Ratings, db: str, *arguments: object) -> list[dict[str, Any]]:
    """The ladders that `diff` tells as JSON."""
    return list(read(ratings, db, "diff", *arguments)["ladders"])


def moves(ladder: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Kind, player, points and ranks of each row."""
    return [
        (row["kind"], row["player"], row["before"], row["change"], row["after"], *row["rank"]) for row in ladder["rows"]
    ]


# c-2: cleo comes with 992 and takes half of 8 from dora
SECOND_GAME = [("added", "dora", None, None, "996", None, 3), ("moved", "cleo", "992", "4", "996", 3, 3)]


def test_table_shows_moves_by_rank(db: str, ratings: Ratings) -> None:
    """The table comparing two positions shows what moved, in order of rank."""
    assert ratings("diff", 3, 4, db=db) == (0, (
        f"catan-elo/basic\nA  known at position 3, {UNDER}\nB  known at position 4, {UNDER}\n\n"
        "player  before  change  after   rank\n"
        "cleo       992      +4    996\n"
        "dora         -       -    996  - → 3\n\n"
        "1 moved, 1 added, 0 removed.\n"
    ), "")  # fmt: skip


def test_json_has_rows_and_coordinates(db: str, ratings: Ratings) -> None:
    """As JSON, a comparison of two positions has the rows, both coordinates and the extent of the change."""
    side = {"as_of": None, "known_at": 3, "rules": None, "ruleset": "catan-elo@2009-01"}
    dora = {"kind": "added", "player": "dora", "before": None, "change": None, "after": "996", "rank": [None, 3]}
    cleo = {"kind": "moved", "player": "cleo", "before": "992", "change": "4", "after": "996", "rank": [3, 3]}

    assert read(ratings, db, "diff", 3, "known-at=4", BASIC) == {"ladders": [{
        "ladder": BASIC, "a": side, "b": {**side, "known_at": 4},
        "rows": [{**row, "gold": [None, None]} for row in (dora, cleo)],
        "players": 2, "ranks": 1, "up": {"player": "cleo", "change": "4"}, "down": None, "swapped": 0,
        "entering": ["dora"], "leaving": [],
    }]}  # fmt: skip


def test_csv_has_one_line_per_row(db: str, ratings: Ratings) -> None:
    """As CSV, a comparison of two positions has one line for each row that differs."""
    result = ratings("diff", 4, "as-of=2010-03-05,known-at=4", "--format", "csv", db=db)

    assert result == (0, (
        "ladder,as_of,player,before,change,after,rank_before,rank_after\n"
        "catan-elo/basic,,cleo,996,-4,992,3,3\ncatan-elo/basic,,dora,996,,,3,\n"
    ), "")  # fmt: skip


def test_reverse_diff_negates_changes(db: str, ratings: Ratings) -> None:
    """Comparing the other way round negates changes and turns added rows into removed ones."""
    (forth,), (back,) = diff(ratings, db, 3, 4), diff(ratings, db, 4, 3)

    assert moves(forth) == SECOND_GAME
    assert moves(back) == [("moved", "cleo", "996", "-4", "992", 3, 3), ("removed", "dora", "996", None, None, 3, None)]
    assert (back["a"], back["b"]) == (forth["b"], forth["a"])
    assert (back["up"], back["down"]) == (None, {"player": "cleo", "change": "-4"})
    assert (back["entering"], back["leaving"]) == (forth["leaving"], forth["entering"])


@pytest.mark.parametrize("as_of", ["2010-03-05", "2010-03-06T11:59:59.999999Z", "2010-03-06T12:59:00+01:00"])
def test_later_games_differ_from_played_time(as_of: str, db: str, ratings: Ratings) -> None:
    """Compared with now, a ladder as of a played time differs by the games played later."""
    (found,) = diff(ratings, db, f"as-of={as_of}", "now", BASIC)

    assert moves(found) == SECOND_GAME
    assert (found["a"]["known_at"], found["b"]["known_at"], found["b"]["as_of"]) == (6, 6, None)
    everything = diff(ratings, db, f"as-of={as_of}", "now")
    assert [one["ladder"] for one in everything] == [BASIC, GALACTIC]


def test_recorded_times_mean_positions(db: str, ratings: Ratings) -> None:
    """Recorded times stand for the positions known by then."""
    recorded = [entry["recorded_at"] for entry in read(ratings, db, "log", "--limit", "0")["rows"]]

    for one, other in ((recorded[2], recorded[3]), (f"known-at={recorded[2]}", 4)):
        (found,) = diff(ratings, db, one, other)
        assert (moves(found), found["a"]["known_at"], found["b"]["known_at"]) == (SECOND_GAME, 3, 4)


def test_other_version_affects_only_its_ladders(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """Comparing with another version of a ruleset shows only the ladders of that ruleset."""
    other_version(tmp_path, ratings, db)
    (found,) = diff(ratings, db, "now", "rules=catan-elo@later")

    # 16 from the last of three equals to the first; then cleo is 16 behind dora, and 8.37 are rounded
    assert moves(found) == [
        ("moved", "anna", "1008", "8", "1016", 1, 1), ("moved", "cleo", "996", "-4", "992", 3, 3),
        ("moved", "dora", "996", "-4", "992", 3, 3),
    ]  # fmt: skip
    assert (found["b"]["rules"], found["b"]["ruleset"]) == ("catan-elo@later", "catan-elo@later")
    shown = ratings("diff", "now", "rules=catan-elo@later", db=db).stdout.splitlines()
    assert shown[1:3] == [f"A  known at position 7, {UNDER}", "B  known at position 7, all games by catan-elo@later"]


def test_rename_alone_is_no_difference(db: str, ratings: Ratings) -> None:
    """A rename alone is no difference, but two players merging into one is."""
    assert ratings("diff", 5, "now", db=db) == (0, "No ladder differs between 5 and now.\n", "")
    assert ratings("diff", "now", 5, BASIC, db=db).stdout == (
        f"catan-elo/basic\nA  known at position 6, {UNDER}\nB  known at position 5, {UNDER}\n\nNo row differs.\n"
    )
    take_in(ratings, db, catan("c-3", "benno", "anna", at="2010-03-08T12:00:00Z"))
    (found,) = diff(ratings, db, 5, "now")
    assert [(row["kind"], row["player"]) for row in found["rows"]] == [("moved", "benno"), ("moved", "anna")]
    # those who become one are a difference: dora takes cleo in
    before = position(ratings, db)
    take_in(ratings, db, event("player.renamed", player="dora", new_player="anna"))
    (merged,) = diff(ratings, db, before, "now", BASIC)
    assert ("removed", "dora") in [(row["kind"], row["player"]) for row in merged["rows"]]


def test_swaps_are_counted(db: str, ratings: Ratings) -> None:
    """Pairs of players who swapped places are counted and shown."""
    assert ratings("correct", "c-1", "cleo", "ben", "anna", *WHY, db=db).exit_code == 0
    (found,) = diff(ratings, db, 6, "now")
    shown = ratings("diff", 6, "now", db=db).stdout

    # anna, benno, cleo = dora become cleo, benno, dora, anna: cleo and dora shared a rank, benno is still before dora
    assert (found["swapped"], found["entering"], found["leaving"]) == (4, [], [])
    assert shown.endswith("2 moved, 0 added, 0 removed; 4 pairs swapped.\n")


# -- published


def test_published_lists_keep_played_times(db: str, ratings: Ratings) -> None:
    """Comparing published lists with now takes each list at its own played time."""
    own = json.loads(ratings("publish", BASIC, "--format", "json", db=db).stdout)["as_of"]
    assert ratings("publish", BASIC, "--as-of", "2010-03-05", db=db).exit_code == 0
    take_in(ratings, db, catan("c-4", "anna", "dora", at="2010-03-09T12:00:00Z"))
    assert ratings("void", "c-1", *WHY, db=db).exit_code == 0
    early, whole = diff(ratings, db, "published", "now")

    end = "2010-03-05T22:59:59.999999Z"
    assert [one["a"]["published"] for one in (early, whole)] == [10, 8]
    assert [(one[side]["as_of"], one[side]["known_at"]) for one in (early, whole) for side in "ab"] == [
        (end, 8), (end, 12), (own, 6), (own, 12),
    ]  # fmt: skip
    assert {row[0] for row in moves(early)} == {"removed"}
    assert moves(whole) == [
        ("moved", "cleo", "996", "8", "1004", 3, 1), ("moved", "anna", "1008", "-4", "1004", 1, 1),
        ("moved", "dora", "996", "-4", "992", 3, 3), ("removed", "benno", "1000", None, None, 2, None),
    ]  # fmt: skip
    shown = ratings("diff", "published", "now", BASIC, db=db).stdout
    assert "A  published at position 10, known at position 8, played up to 2010-03-05 22:59 UTC, under" in shown
    # the other side may say another time
    (one,) = diff(ratings, db, "published,as-of=2010-03-05", "as-of=2010-03-06", BASIC)
    assert (one["a"]["as_of"], one["b"]["as_of"]) == (end, "2010-03-06T22:59:59.999999Z")


def test_both_sides_can_be_published(db: str, ratings: Ratings) -> None:
    """For a list published twice, both sides of the comparison can be published lists."""
    assert ratings("publish", BASIC, db=db).exit_code == 0
    first = position(ratings, db)
    assert ratings("void", "c-2", *WHY, db=db).exit_code == 0
    assert ratings("publish", BASIC, db=db).exit_code == 0
    assert ratings("publish", GALACTIC, db=db).exit_code == 0
    elo, pool = diff(ratings, db, f"published,known-at={first}", "published")

    assert [row[:2] for row in moves(elo)] == [("moved", "cleo"), ("removed", "dora")]
    assert (elo["a"]["published"], elo["b"]["published"]) == (first, first + 3)
    assert (pool["ladder"], pool["a"]) == (GALACTIC, {})
    assert {row[0] for row in moves(pool)} == {"added"}
    assert "A  not published\n" in ratings("diff", f"published,known-at={first}", "published", db=db).stdout


def test_list_whose_rule_is_gone_is_told(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A published list whose rule is not installed any more is told, and the others are compared."""
    assert ratings("publish", BASIC, db=db).exit_code == 0
    assert ratings("publish", GALACTIC, db=db).exit_code == 0
    assert ratings("void", "c-2", *WHY, db=db).exit_code == 0
    withdraw_rule(monkeypatch, "contribution-pool/1")
    told = ratings("diff", "published", "now", db=db)
    assert (told.exit_code, told.stdout.startswith(BASIC)) == (1, True)
    assert "galactic-points@1 cannot be used here: rule: " in told.stderr
    assert "galactic" not in told.stdout
    for command in (("diff", "published", "now", GALACTIC), ("standings", GALACTIC),
                    ("explain", "anna", GALACTIC, "--change", "--from", "published")):  # fmt: skip
        refused = ratings(*command, db=db)
        assert (refused.exit_code, "galactic-points@1 cannot be used here" in refused.stderr) == (2, True), refused
    for command in (("standings", GALACTIC, "--as-published"), ("lists",), ("report", "player", "anna")):
        assert "bug" not in ratings(*command, db=db).stderr, command


@pytest.mark.slow
def test_lists_without_difference_are_one_line(db: str, ratings: Ratings) -> None:
    """Among several published lists, those that differ are shown, and the others counted in one line."""
    days = range(5, 11)
    for day in days:
        assert ratings("publish", BASIC, "--as-of", f"2010-03-{day:02}", db=db).exit_code == 0
    assert ratings("publish", GALACTIC, db=db).exit_code == 0
    unchanged = ratings("diff", "published", "now", db=db).stdout
    assert unchanged == f"No row differs on 7 lists: {BASIC}, {GALACTIC}\n"
    assert ratings("diff", "now", "now", BASIC, GALACTIC, db=db).stdout == (
        f"No row differs on 2 ladders: {BASIC}, {GALACTIC}\n"
    )

    take_in(ratings, db, catan("c-3", "anna", "cleo", at="2010-03-08T12:00:00Z"))

    shown = ratings("diff", "published", "now", db=db).stdout
    blocks = shown.split("\n\n")
    assert [block.splitlines()[0] for block in blocks if "A  published" in block] == [BASIC] * 3
    assert blocks[-2] == f"No row differs on 4 other lists: {BASIC}, {GALACTIC}"
    assert blocks[-1].startswith("To publish the new lists:\n  ratings publish catan-elo/basic --as-of ")
    assert "No row differs." not in shown
    assert [bool(one["rows"]) for one in diff(ratings, db, "published", "now")] == [False] * 3 + [True] * 3 + [False]
    for name in "abcd":
        take_in(ratings, db, catan(f"in-{name}", "anna", "ben", group=name))
        assert ratings("publish", f"catan-elo/{name}", db=db).exit_code == 0
    assert "\nNo row differs on 8 other lists.\n" in ratings("diff", "published", "now", db=db).stdout


@pytest.mark.parametrize("arguments", [["published", "now"], ["now", "published", BASIC], ["published", "published"]])
def test_diff_reports_nothing_published(arguments: list[str], db: str, ratings: Ratings) -> None:
    """Comparing with published lists when there are none fails and points to `publish`."""
    result = ratings("diff", *arguments, db=db)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "to publish one, see: ratings publish --help" in result.stderr


# -- what cannot be asked


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["9999", "now"], "Error: the log ends at position 6, before 9999"),
        (["0", "now"], "nothing is known from before position 1"),
        (["soon", "now"], "Error: 'soon' is not a time"),
        (["as-of=soon", "now"], "'soon' is not a time"),
        (["1999-01-01", "now"], "nothing is known from before position 1"),
        (["now", "rules=catan-elo@9"], "'catan-elo@9' is published at position 6 (there are catan-elo@2009-01)"),
        (["now", "rules=catan-elo@9", BASIC], "not a published version for catan-elo/basic"),
        (["rules=catan-elo", "now"], "'catan-elo' is published at position 6"),
        (["rules=nothing@1", "now"], "no ruleset is called 'nothing'"),
        (["1,rules=catan-elo@2009-01", "now"], "'catan-elo@2009-01' is published at position 1"),
        (["now", "rules=catan-elo@2009-01", GALACTIC], "no version of the ruleset of galactic-points"),
        (["published,rules=catan-elo@2009-01", "now"], "a published list has its own version"),
        (["as-of=2010-01-01,as-of=2010-01-02", "now"], "says as-of twice"),
        (["known-at=3,4", "now"], "says known-at twice"),
        (["now,place=3", "now"], "'place=3' is no coordinate"),
        (["as-of=", "now"], "'as-of=' is no coordinate"),
        (["", "now"], "'' is no coordinate"),
        (["now"], "Missing argument 'B'"),
        (["now", "now", "nothing/x"], "no ruleset is called 'nothing'"),
        (["now", "now", "catan-elo"], "'catan-elo' is not a ladder"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_wrong_coordinates_are_usage_errors(
    arguments: list[str], told: str, form: str, db: str, ratings: Ratings
) -> None:
    """Wrong coordinates are a usage error whose message says what is wrong."""
    result = ratings("diff", *arguments, "--format", form, db=db)

    assert (result.exit_code, result.stdout) == (2, ""), result
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_coordinates_of_an_explanation_name_no_other_option(db: str, ratings: Ratings) -> None:
    """What is wrong with `--from` of `explain --change` is not said of `--known-at`, which is not taken with it."""
    found = ratings("explain", "--change", "anna", BASIC, "--from", "9999", db=db)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "Error: the log ends at position 6, before 9999" in found.stderr


def test_named_ladders_are_all_shown(db: str, ratings: Ratings) -> None:
    """All ladders named are shown, and comparing writes nothing to the ledger."""
    before = head(ratings, db)
    found = diff(ratings, db, 3, "now", GALACTIC, BASIC, "catan-elo/domaine")

    assert [(one["ladder"], len(one["rows"])) for one in found] == [(GALACTIC, 2), (BASIC, 2), ("catan-elo/domaine", 0)]
    lines = list(csv.reader(io.StringIO(ratings("diff", 3, "now", "--format", "csv", db=db).stdout)))
    assert [line[0] for line in lines[1:]] == [BASIC, BASIC, GALACTIC, GALACTIC]
    assert json.loads(ratings("diff", "now", "now", "--format", "json", db=db).stdout) == {"ladders": []}
    assert head(ratings, db) == before
