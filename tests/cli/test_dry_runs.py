"""`whatif`, dry runs, `diff` and `explain --change` agree before and after a change."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    build_galactic_line,
    build_game_data,
    create_ledger,
    read_head,
    read_json,
    read_points,
    read_position,
)
from output_filters import strip_decimals

ROOT = Path(__file__).parents[2]
TEXTBOOK = ROOT / "examples" / "club-catan-elo-2.toml"
CLUB_LADDER = "club-catan-elo/all"
RULESETS = ("galactic-points-1", "catan-elo-2009-01", "club-catan-elo-1")
PLAYERS = ("anna", "ben", "cleo", "dora", "emil")


def create_club_ledger(ratings: Ratings, name: str) -> None:
    """Create a ledger: three rulesets, two games of Catan and seven of the club, and published lists."""
    create_ledger(ratings, name, *RULESETS)
    append_lines(ratings, name, build_catan_line("c-1", "anna", "ben", at="2010-03-05T12:00:00Z"))
    append_lines(ratings, name, build_catan_line("c-2", "ben", "cleo", at="2010-03-06T12:00:00Z"))
    club = [
        build_galactic_line(
            f"k-{n}",
            *(PLAYERS[(n * step) % 5] for step in range(1, 4)),
            at=f"2010-04-0{n}T12:00:00Z",
            game="club-catan",
        )
        for n in range(1, 9)
        if n != 5
    ]
    append_lines(ratings, name, *club)
    for ladder in (BASIC, CLUB_LADDER):
        assert ratings("publish", ladder, db=name).exit_code == 0
    assert ratings("publish", BASIC, "--as-of", "2010-03-05", db=name).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_club_ledger, store="sqlite")


def index_changes(report: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return points before, change and after by ladder and player."""
    return {(c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in report["changes"]}


def read_own_instant(ratings: Ratings, db: str, position: int) -> str:
    """Return the `as_of` of the list at a position, which was published without --as-of."""
    (event,) = read_json(ratings, db, "log", "--known-at", position, "--limit", 1)["rows"]
    assert event["data"]["as_of"] == event["occurred_at"]
    return str(event["data"]["as_of"])


def run_dry_import(ratings: Ratings, db: str, lines: list[str], *options: object) -> dict[str, Any]:
    """Return the JSON of `import --dry-run`, which must write nothing."""
    before = hashlib.sha256(Path(db).read_bytes()).hexdigest(), read_head(ratings, db)
    result = ratings("import", "-", "--dry-run", "--format", "json", *options, db=db, input="".join(lines))
    assert result.stderr == "", result
    assert (hashlib.sha256(Path(db).read_bytes()).hexdigest(), read_head(ratings, db)) == before
    report = dict(strip_decimals(json.loads(result.stdout)))
    assert (report["appended"], report["dry_run"]) == (0, True)
    return report


@pytest.mark.slow
def test_whatif_publish_diff_and_explain_agree(db: str, ratings: Ratings) -> None:
    """For a version in force since 1900, `whatif`, publishing, `diff` and the causes agree."""
    before = read_position(ratings, db)
    (variant,) = read_json(ratings, db, "whatif", TEXTBOOK)["variants"]
    preview = read_json(ratings, db, "rules", "publish", TEXTBOOK, "--dry-run")
    assert read_position(ratings, db) == before
    output = read_json(ratings, db, "rules", "publish", TEXTBOOK)
    ladders = read_json(ratings, db, "diff", before, "now")["ladders"]

    whatif_changes = {"changes": [row for ladder in variant["ladders"] for row in ladder["changes"]]}
    summaries = [
        {name: value for name, value in ladder.items() if name not in ("quality", "changes")}
        for ladder in variant["ladders"]
    ]
    assert index_changes(preview)
    assert index_changes(whatif_changes) == index_changes(preview) == index_changes(output)
    assert summaries == preview["ladders"] == output["ladders"]
    position = before - 2
    published_list = {
        "ladder": CLUB_LADDER,
        "as_of": read_own_instant(ratings, db, position),
        "position": position,
        "already": False,
    }
    assert variant["published"] == preview["published"] == [published_list]
    rescored = [
        row | {"ladder": listed["ladder"]} for listed in ladders for row in listed["rows"] if row["change"] != "0"
    ]
    assert index_changes({"changes": rescored}) == index_changes(output)
    assert [{name: listed[name] for name in summaries[0]} for listed in ladders] == summaries
    for (ladder, player), (points_before, change, points_after) in index_changes(output).items():
        explanation = read_json(ratings, db, "explain", "--change", ladder, player, "--from", before)
        assert (explanation["from"]["points"], explanation["change"], explanation["to"]["points"]) == (
            points_before,
            change,
            points_after,
        )
        (cause,) = explanation["causes"]
        assert (cause["cause"], cause["position"], cause["amount"]) == ("rule change", before + 1, change)
        assert Fraction(cause["own"]) + Fraction(cause["ripple"]) == Fraction(change)


def test_whatif_matches_the_published_version(db: str, ratings: Ratings) -> None:
    """`whatif` for a version published for the future agrees with `--rules` and `diff` for that version."""
    text = TEXTBOOK.read_text(encoding="utf-8").replace("1900-01-01", "2030-01-01")
    later = Path(db).with_name("later.toml")
    later.write_text(text, encoding="utf-8")
    assert index_changes(read_json(ratings, db, "rules", "publish", later)) == {}
    (variant,) = read_json(ratings, db, "whatif", later)["variants"]

    for ladder in variant["ladders"]:
        points_before, points_after = (
            read_points(ratings, db, ladder["ladder"], *axes) for axes in ((), ("--rules", "club-catan-elo@2"))
        )
        assert {row["player"]: (row["before"], row["after"]) for row in ladder["changes"]} == {
            player: (points_before[player], points_after[player])
            for player in points_before
            if points_before[player] != points_after[player]
        }
        (ladder_diff,) = read_json(ratings, db, "diff", "now", "rules=club-catan-elo@2", ladder["ladder"])["ladders"]
        assert [row for row in ladder_diff["rows"] if row["change"] != "0"] == [
            {"kind": "moved", **{name: value for name, value in row.items() if name != "ladder"}}
            for row in ladder["changes"]
        ]


def test_late_game_dry_run_shows_effects(db: str, ratings: Ratings) -> None:
    """A dry run of a late game shows the changes of points and the published lists that would differ."""
    late_game = build_catan_line("late", "cleo", "anna", at="2010-03-05T10:00:00Z")
    before = read_points(ratings, db, BASIC)
    report = run_dry_import(ratings, db, [late_game])
    stdout = ratings("import", "-", "--dry-run", db=db, input=late_game).stdout

    # anna and cleo enter their games 4 lower and higher; a difference of 4 or 8 gives 4 again
    assert before == {"anna": "1004", "ben": "1000", "cleo": "996"}
    assert index_changes(report) == {(BASIC, "cleo"): ("996", "4", "1000"), (BASIC, "anna"): ("1004", "-4", "1000")}
    instant = read_own_instant(ratings, db, 14)
    lists = [("2010-03-05T22:59:59.999999Z", 18), (instant, 14)]
    assert report["published"] == [
        {"ladder": BASIC, "as_of": as_of, "position": position, "already": False} for as_of, position in lists
    ]
    assert (report["would_append"], report["existing"], report["rejected"], report["head"]) == (1, 0, [], 18)
    assert stdout == (
        "1 would be appended; the head is 18.\n\ncatan-elo/basic\n"
        "player  before  change  after   rank\n"
        "cleo       996      +4   1000  3 → 1\n"
        "anna      1004      -4   1000\n\n"
        "Published, and would come out differently today:\n"
        "  catan-elo/basic as of 2010-03-05 22:59 UTC, published at position 18\n"
        f"  catan-elo/basic as of {instant[:10]} {instant[11:16]} UTC, published at position 14\n\n"
        "To publish the new lists:\n"
        "  ratings publish catan-elo/basic --as-of 2010-03-05T22:59:59.999999Z\n"
        f"  ratings publish catan-elo/basic --as-of {instant}\n"
    )
    append_lines(ratings, db, late_game)
    (ladder,) = read_json(ratings, db, "diff", 18, "now", BASIC)["ladders"]
    assert {
        (BASIC, row["player"]): (row["before"], row["change"], row["after"])
        for row in ladder["rows"]
        if row["change"] != "0"
    } == index_changes(report)
    assert read_json(ratings, db, "diff", "published", "now", CLUB_LADDER)["ladders"][0]["rows"] == []


def test_later_game_affects_only_list_without_cutoff(db: str, ratings: Ratings) -> None:
    """A dry run of a game after a list's --as-of date reports only the list without a cutoff."""
    report = run_dry_import(ratings, db, [build_catan_line("next", "dora", "emil", at="2010-05-05T10:00:00Z")])

    assert report["published"] == [
        {"ladder": BASIC, "as_of": read_own_instant(ratings, db, 14), "position": 14, "already": False}
    ]
    assert index_changes(report) == {(BASIC, "dora"): (None, None, "1004"), (BASIC, "emil"): (None, None, "996")}


FILES = {
    "a game": [build_galactic_line("g-1", "anna", "ben")],
    "a game and its correction": [
        build_catan_line("late", "cleo", "anna", at="2010-03-05T10:00:00Z"),
        build_event_line(
            "game.corrected",
            game_id="late",
            reason="wrong way round",
            game=build_game_data("late", "anna", "cleo", game="catan", group="basic"),
        ),
    ],
    "a void and an adjustment": [
        build_event_line("game.voided", game_id="c-1", reason="it never was"),
        build_event_line("points.adjusted", ladder=BASIC, player="cleo", points="12", reason="a gift"),
    ],
    "a merge": [build_event_line("player.renamed", player="anna", new_player="cleo")],
    "two renames": [
        build_event_line("player.renamed", player="dora", new_player="ben2"),
        build_event_line("player.renamed", player="anna", new_player="anna2"),
    ],
    "an account": [
        build_event_line("player.account_changed", at="2010-01-01T00:00:00Z", player="anna", account="free")
    ],
}


@pytest.mark.parametrize("lines", FILES.values(), ids=FILES)
def test_dry_run_predicts_the_import(lines: list[str], db: str, ratings: Ratings) -> None:
    """A dry run of a file predicts exactly the changes of importing it."""
    last = read_position(ratings, db)
    report = run_dry_import(ratings, db, lines)
    affected = {(entry["ladder"], entry["as_of"]) for entry in report["published"]}
    predicted = {ladder["ladder"]: ladder for ladder in report["ladders"]}
    append_lines(ratings, db, *lines)
    ladders = read_json(ratings, db, "diff", last, "now")["ladders"]

    assert report["would_append"] == len(lines)
    rescored = {
        (ladder["ladder"], row["player"]): (row["before"], row["change"], row["after"])
        for ladder in ladders
        for row in ladder["rows"]
        if row["before"] != row["after"]
    }
    assert index_changes(report) == rescored
    assert {ladder["ladder"] for ladder in ladders} == predicted.keys()
    assert all(
        ladder[name] == predicted[ladder["ladder"]][name] for ladder in ladders for name in predicted[ladder["ladder"]]
    )
    differing = {
        (ladder["ladder"], ladder["a"]["as_of"])
        for ladder in read_json(ratings, db, "diff", "published", "now")["ladders"]
        if ladder["rows"]
    }
    assert differing == affected


def test_dry_run_with_refused_line_announces_no_changes(db: str, ratings: Ratings) -> None:
    """A dry run with a refused line reports that line and announces no changes."""
    report = run_dry_import(
        ratings, db, [build_catan_line("c-9", "anna", "ben"), build_catan_line("c-10", "anna", "anna")]
    )

    assert [rejected["line"] for rejected in report["rejected"]] == [2]
    assert (report["changes"], report["published"]) == ([], [])


def test_dry_run_of_existing_events_announces_no_changes(db: str, ratings: Ratings) -> None:
    """A dry run of events that are already in the ledger announces no changes."""
    lines = ratings("export", "events", db=db).stdout.splitlines(keepends=True)
    report = run_dry_import(ratings, db, lines)

    assert (report["existing"], report["would_append"], report["changes"], report["published"]) == (18, 0, [], [])
    assert GALACTIC not in str(report)
