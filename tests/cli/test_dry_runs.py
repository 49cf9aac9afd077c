"""What would be, what was announced and what came of it: `whatif`, dry runs, `diff` and `explain --change` agree."""

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
    catan,
    event,
    galactic,
    head,
    new_ledger,
    placing,
    points,
    position,
    read,
    take_in,
)
from output_filters import strip_decimals

ROOT = Path(__file__).parents[2]
TEXTBOOK = ROOT / "examples" / "club-catan-elo-2.toml"
ALL, SMALL = "club-catan-elo/all", "club-catan-elo/3-4"
RULESETS = ("galactic-points-1", "catan-elo-2009-01", "club-catan-elo-1")
PLAYERS = ("anna", "ben", "cleo", "dora", "emil")


def make_ledger(ratings: Ratings, name: str) -> None:
    """Three rulesets; two games of Catan and eight of the club, the lists of which are published."""
    new_ledger(ratings, name, *RULESETS)
    take_in(ratings, name, catan("c-1", "anna", "ben", at="2010-03-05T12:00:00Z"))
    take_in(ratings, name, catan("c-2", "ben", "cleo", at="2010-03-06T12:00:00Z"))
    club = [
        galactic(f"k-{n}", *(PLAYERS[(n * step) % 5] for step in range(1, 4)), at=f"2010-04-0{n}T12:00:00Z",
             game="club-catan")
        for n in range(1, 9) if n != 5
    ]  # fmt: skip
    take_in(ratings, name, *club)
    for ladder in (BASIC, ALL):
        assert ratings("publish", ladder, db=name).exit_code == 0
    assert ratings("publish", BASIC, "--as-of", "2010-03-05", db=name).exit_code == 0


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def changes(told: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Points before, change and after of each (ladder, player)."""
    return {(c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in told["changes"]}


def own_instant(ratings: Ratings, db: str, place: int) -> str:
    """The `as_of` of the list at a position, which nobody asked for."""
    (event,) = read(ratings, db, "log", "--known-at", place, "--limit", 1)["rows"]
    assert event["data"]["as_of"] == event["occurred_at"]
    return str(event["data"]["as_of"])


def dry_run(ratings: Ratings, db: str, lines: list[str], *options: object) -> dict[str, Any]:
    """What `import --dry-run` tells; it writes nothing."""
    before = hashlib.sha256(Path(db).read_bytes()).hexdigest(), head(ratings, db)
    result = ratings("import", "-", "--dry-run", "--format", "json", *options, db=db, input="".join(lines))
    assert result.stderr == "", result
    assert (hashlib.sha256(Path(db).read_bytes()).hexdigest(), head(ratings, db)) == before
    found = dict(strip_decimals(json.loads(result.stdout)))
    assert (found["appended"], found["dry_run"]) == (0, True)
    return found


@pytest.mark.slow
def test_whatif_publish_diff_and_explain_agree(db: str, ratings: Ratings) -> None:
    """For a version in force since 1900, `whatif`, publishing, `diff` and the causes all agree."""
    before = position(ratings, db)
    (variant,) = read(ratings, db, "whatif", TEXTBOOK)["variants"]
    tried = read(ratings, db, "rules", "publish", TEXTBOOK, "--dry-run")
    assert position(ratings, db) == before
    done = read(ratings, db, "rules", "publish", TEXTBOOK)
    found = read(ratings, db, "diff", before, "now")["ladders"]

    asked = {"changes": [row for one in variant["ladders"] for row in one["changes"]]}
    radii = [
        {name: value for name, value in one.items() if name not in ("quality", "changes")} for one in variant["ladders"]
    ]
    assert changes(tried)
    assert changes(asked) == changes(tried) == changes(done)
    assert radii == tried["ladders"] == done["ladders"]
    assert variant["published"] == tried["published"] == [
        {"ladder": ALL, "as_of": own_instant(ratings, db, before - 2), "position": before - 2, "already": False}
    ]  # fmt: skip
    rescored = [row | {"ladder": one["ladder"]} for one in found for row in one["rows"] if row["change"] != "0"]
    assert changes({"changes": rescored}) == changes(done)
    assert [{name: one[name] for name in radii[0]} for one in found] == radii
    for (ladder, player), (had, change, has) in changes(done).items():
        told = read(ratings, db, "explain", "--change", ladder, player, "--from", before)
        assert (told["from"]["points"], told["change"], told["to"]["points"]) == (had, change, has)
        (cause,) = told["causes"]
        assert (cause["cause"], cause["position"], cause["amount"]) == ("rule change", before + 1, change)
        assert Fraction(cause["own"]) + Fraction(cause["ripple"]) == Fraction(change)


def test_whatif_matches_the_published_version(db: str, ratings: Ratings) -> None:
    """`whatif` for a version published for the future matches `--rules` and `diff` with that version."""
    text = TEXTBOOK.read_text(encoding="utf-8").replace("1900-01-01", "2030-01-01")
    later = Path(db).with_name("later.toml")
    later.write_text(text, encoding="utf-8")
    assert changes(read(ratings, db, "rules", "publish", later)) == {}
    (variant,) = read(ratings, db, "whatif", later)["variants"]

    for one in variant["ladders"]:
        had, has = (points(ratings, db, one["ladder"], *axes) for axes in ((), ("--rules", "club-catan-elo@2")))
        assert {row["player"]: (row["before"], row["after"]) for row in one["changes"]} == {
            player: (had[player], has[player]) for player in had if had[player] != has[player]
        }
        (found,) = read(ratings, db, "diff", "now", "rules=club-catan-elo@2", one["ladder"])["ladders"]
        assert [row for row in found["rows"] if row["change"] != "0"] == [
            {"kind": "moved", **{name: value for name, value in row.items() if name != "ladder"}}
            for row in one["changes"]
        ]


def test_late_game_dry_run_shows_effects(db: str, ratings: Ratings) -> None:
    """A dry run of a late game shows whose points change and which published lists would differ."""
    late = catan("late", "cleo", "anna", at="2010-03-05T10:00:00Z")
    before = points(ratings, db, BASIC)
    told = dry_run(ratings, db, [late])
    shown = ratings("import", "-", "--dry-run", db=db, input=late).stdout

    # anna and cleo come to their games 4 lower and higher; a difference of 4 or 8 gives 4 again
    assert before == {"anna": "1004", "ben": "1000", "cleo": "996"}
    assert changes(told) == {(BASIC, "cleo"): ("996", "4", "1000"), (BASIC, "anna"): ("1004", "-4", "1000")}
    own = own_instant(ratings, db, 14)
    lists = [("2010-03-05T22:59:59.999999Z", 18), (own, 14)]
    assert told["published"] == [
        {"ladder": BASIC, "as_of": at, "position": place, "already": False} for at, place in lists
    ]
    assert (told["would_append"], told["existing"], told["rejected"], told["head"]) == (1, 0, [], 18)
    assert shown == (
        "1 would be appended; the head is 18.\n\ncatan-elo/basic\n"
        "player  before  change  after   rank\n"
        "cleo       996      +4   1000  3 → 1\n"
        "anna      1004      -4   1000\n\n"
        "Published, and would come out differently today:\n"
        "  catan-elo/basic as of 2010-03-05 22:59 UTC, published at position 18\n"
        f"  catan-elo/basic as of {own[:10]} {own[11:16]} UTC, published at position 14\n\n"
        "To publish the new lists:\n"
        "  ratings publish catan-elo/basic --as-of 2010-03-05T22:59:59.999999Z\n"
        f"  ratings publish catan-elo/basic --as-of {own}\n"
    )
    take_in(ratings, db, late)
    (found,) = read(ratings, db, "diff", 18, "now", BASIC)["ladders"]
    assert {(BASIC, row["player"]): (row["before"], row["change"], row["after"]) for row in found["rows"]
            if row["change"] != "0"} == changes(told)  # fmt: skip
    assert read(ratings, db, "diff", "published", "now", ALL)["ladders"][0]["rows"] == []


def test_later_game_affects_only_whole_list(db: str, ratings: Ratings) -> None:
    """A dry run of a game after a list's `--as-of` date reports only the list without a cutoff."""
    told = dry_run(ratings, db, [catan("next", "dora", "emil", at="2010-05-05T10:00:00Z")])

    assert told["published"] == [
        {"ladder": BASIC, "as_of": own_instant(ratings, db, 14), "position": 14, "already": False}
    ]
    assert changes(told) == {(BASIC, "dora"): (None, None, "1004"), (BASIC, "emil"): (None, None, "996")}


FILES = {
    "a game": [galactic("g-1", "anna", "ben")],
    "a game and its correction": [
        catan("late", "cleo", "anna", at="2010-03-05T10:00:00Z"),
        event("game.corrected", game_id="late", reason="wrong way round",
              game=placing("late", "anna", "cleo", game="catan", group="basic")),
    ],
    "a void and an adjustment": [
        event("game.voided", game_id="c-1", reason="it never was"),
        event("points.adjusted", ladder=BASIC, player="cleo", points="12", reason="a gift"),
    ],
    "a merge": [event("player.renamed", player="dora", new_player="ben2"),
                event("player.renamed", player="anna", new_player="anna2")],
    "an account": [event("player.account_changed", at="2010-01-01T00:00:00Z", player="anna", account="free")],
}  # fmt: skip


@pytest.mark.parametrize("lines", FILES.values(), ids=FILES)
def test_dry_run_predicts_the_import(lines: list[str], db: str, ratings: Ratings) -> None:
    """A dry run of a file predicts exactly the changes that importing it makes."""
    last = position(ratings, db)
    told = dry_run(ratings, db, lines)
    affected = {(one["ladder"], one["as_of"]) for one in told["published"]}
    listed = {one["ladder"]: one for one in told["ladders"]}
    take_in(ratings, db, *lines)
    found = read(ratings, db, "diff", last, "now")["ladders"]

    assert told["would_append"] == len(lines)
    rescored = {
        (one["ladder"], row["player"]): (row["before"], row["change"], row["after"])
        for one in found for row in one["rows"] if row["before"] != row["after"]
    }  # fmt: skip
    assert changes(told) == rescored
    assert {one["ladder"]: one for one in found}.keys() == listed.keys()
    assert all(one[name] == listed[one["ladder"]][name] for one in found for name in listed[one["ladder"]])
    differing = {
        (one["ladder"], one["a"]["as_of"])
        for one in read(ratings, db, "diff", "published", "now")["ladders"] if one["rows"]
    }  # fmt: skip
    assert differing == affected


def test_refused_dry_run_line_changes_nothing(db: str, ratings: Ratings) -> None:
    """A dry run with a refused line reports that line and announces no changes."""
    told = dry_run(ratings, db, [catan("c-9", "anna", "ben"), catan("c-10", "anna", "anna")])

    assert [rejected["line"] for rejected in told["rejected"]] == [2]
    assert (told["changes"], told["published"]) == ([], [])


def test_existing_events_would_change_nothing(db: str, ratings: Ratings) -> None:
    """A dry run of events that are already in the ledger announces no changes."""
    lines = ratings("export", "events", db=db).stdout.splitlines(keepends=True)
    told = dry_run(ratings, db, lines)

    assert (told["existing"], told["would_append"], told["changes"], told["published"]) == (18, 0, [], [])
    assert GALACTIC not in str(told)
