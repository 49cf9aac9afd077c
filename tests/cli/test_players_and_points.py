"""`adjust`, `player rename`, `player account` and `void --event`: points and people are put right, and withdrawn."""

import itertools
import shlex
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NOON,
    SHIPPED,
    Ratings,
    all_points,
    carry_out,
    catan,
    digests,
    event,
    galactic,
    new_ledger,
    placing,
    points,
    position,
    read,
    refusal,
    take_in,
    told,
)

WHY = ("--reason", "as agreed")
LATER = "2010-03-06T12:00:00Z"


def make_ledger(ratings: Ratings, url: str) -> None:
    """galactic-points@1 and catan-elo@2009-01 at positions 1 and 2, and a game of anna and ben on each at 3 and 4."""
    new_ledger(ratings, url)
    take_in(ratings, url, galactic("g-1", "anna", "ben"), catan("c-1", "anna", "ben"))


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def void(ratings: Ratings, db: str, event: object) -> dict[str, Any]:
    """Withdraw an event."""
    return carry_out(ratings, db, "void", "--event", event, *WHY)


def history(ratings: Ratings, db: str, player: str, ladder: str = GALACTIC) -> list[dict[str, Any]]:
    """Every change of a player's points."""
    return list(read(ratings, db, "history", player, ladder)["rows"])


# adjustments

ADJUSTMENTS = {
    "whole": (GALACTIC, "anna", "25", ("1160", "25", "1185")),
    "negative": (GALACTIC, "ben", "-25", ("840", "-25", "815")),
    "negative with a fraction": (BASIC, "anna", "-7.5", ("1004", "-15/2", "1993/2")),
    "the smallest step": (BASIC, "ben", "-0.000001", ("996", "-1/1000000", "995999999/1000000")),
    "below zero": (GALACTIC, "ben", "-1000", ("840", "-1000", "-160")),
    "with a plus": (GALACTIC, "anna", "+1", ("1160", "1", "1161")),
    "with zeros behind the point": (GALACTIC, "anna", "1.00", ("1160", "1", "1161")),
    "for somebody new, on the start value": (GALACTIC, "Zoë", "-5", (None, None, "995")),
    "on a ladder without games": ("catan-elo/domaine", "anna", "5", (None, None, "1005")),
}


@pytest.mark.parametrize(("ladder", "player", "amount", "changes"), ADJUSTMENTS.values(), ids=ADJUSTMENTS)
def test_adjustment_adds_to_points_of_then(
    ladder: str, player: str, amount: str, changes: tuple[str | None, str | None, str | None], db: str, ratings: Ratings
) -> None:
    """An adjustment adds to the player's points at that time and is shown with its reason."""
    done = carry_out(ratings, db, "adjust", ladder, player, amount, *WHY)

    assert done["changes"] == {(ladder, player): changes}
    last = history(ratings, db, player, ladder)[-1]
    assert (last["game_id"], last["reason"], last["event_id"], last["position"]) == (
        None, "as agreed", done["event_id"], done["position"],
    )  # fmt: skip
    books = read(ratings, db, "books", ladder)
    assert (books["sum"], books["accounts"][-1]["amount"] != "0") == ("0", True)


def test_early_adjustment_reports_all_changes(db: str, ratings: Ratings) -> None:
    """An adjustment dated before games reports every player whose points it changes."""
    done = carry_out(
        ratings, db, "adjust", GALACTIC, "ben", "100", *WHY, "--at", "2010-03-05 12:59", "--zone", "Europe/Berlin"
    )

    assert done["changes"] == {(GALACTIC, "anna"): ("1160", "16", "1176"), (GALACTIC, "ben"): ("840", "84", "924")}


@pytest.mark.slow
def test_void_of_a_void_reinstates(db: str, ratings: Ratings) -> None:
    """An adjustment can be voided and reinstated repeatedly; the last void decides."""
    told(ratings, db, "adjust", GALACTIC, "anna", "25", *WHY)
    with_it = digests(ratings, db)
    by_position = void(ratings, db, 5)
    assert by_position["changes"] == {(GALACTIC, "anna"): ("1185", "-25", "1160")}
    brought_back = void(ratings, db, by_position["event_id"])
    assert digests(ratings, db) == with_it
    void(ratings, db, brought_back["event_id"])
    assert points(ratings, db, GALACTIC)["anna"] == "1160"
    void(ratings, db, 8)
    assert digests(ratings, db) == with_it
    assert points(ratings, db, GALACTIC, "--known-at", "6")["anna"] == "1160"
    assert ratings("verify", db=db) == (0, "", "")


def test_event_id_precedes_position(db: str, ratings: Ratings) -> None:
    """An event id that looks like a position is taken as an id first when voiding."""
    adjustment = {"ladder": GALACTIC, "points": "5", "reason": "gift"}
    take_in(
        ratings, db, event("points.adjusted", event_id="6", player="anna", **adjustment),
        event("points.adjusted", player="ben", **adjustment),
    )  # fmt: skip
    assert void(ratings, db, "6")["changes"] == {(GALACTIC, "anna"): ("1165", "-5", "1160")}
    assert refusal(ratings, db, "void", "--event", "6", *WHY) == "event-voided"
    assert void(ratings, db, "06")["changes"] == {(GALACTIC, "ben"): ("845", "-5", "840")}


# renames


def test_renamed_player_found_under_both_ids(db: str, ratings: Ratings) -> None:
    """A renamed player keeps all their games, which are found under both ids."""
    rows = history(ratings, db, "anna")
    done = carry_out(ratings, db, "player", "rename", "anna", "Änne", "--reason", "married")

    assert done["changes"] == {}
    assert points(ratings, db, GALACTIC) == {"Änne": "1160", "ben": "840"}
    for name in ("anna", "Änne", "A\u0308nne"):
        found = read(ratings, db, "history", name, GALACTIC)
        assert (found["player"], found["rows"]) == ("Änne", rows)
        assert [row["game_id"] for row in read(ratings, db, "games", "--player", name)["rows"]] == ["g-1", "c-1"]
        assert [row["position"] for row in read(ratings, db, "log", name)["rows"]] == [3, 4, 5]
    assert read(ratings, db, "explain", "g-1", GALACTIC)["players"][0]["player"] == "Änne"
    # the facts stay as they were recorded, and games are shown under the ids of today
    assert read(ratings, db, "log", "g-1")["rows"][0]["data"]["participants"][0]["player"] == "anna"
    assert read(ratings, db, "games")["rows"][0]["participants"] == placing("g-1", "Änne", "ben")["participants"]
    assert read(ratings, db, "history", "anna", GALACTIC, "--known-at", "4")["player"] == "anna"


def test_merged_player_has_games_in_order(db: str, ratings: Ratings) -> None:
    """Merging two ids gives one player the games of both, in the order of time."""
    take_in(ratings, db, galactic("g-2", "cleo", "dora"), galactic("g-0", "dora", "cleo", at="2010-03-04T12:00:00Z"))
    done = carry_out(ratings, db, "player", "rename", "anna", "cleo")

    assert done["changes"] == {
        (GALACTIC, "cleo"): ("1025", "160", "1185"), (GALACTIC, "anna"): ("1160", None, None),
    }  # fmt: skip
    rows = history(ratings, db, "cleo")
    assert [row["game_id"] for row in rows] == ["g-0", "g-1", "g-2"]
    assert [row["before"] for row in rows[1:]] == [row["after"] for row in rows[:-1]]


def test_rename_chain_leads_to_last_id(db: str, ratings: Ratings) -> None:
    """In a chain of renames every id leads to the last; withdrawing one splits it there."""
    take_in(ratings, db, galactic("g-2", "cleo", "dora"), galactic("g-3", "emil", "dora", at=LATER))
    told(ratings, db, "player", "rename", "anna", "cleo")
    told(ratings, db, "player", "rename", "cleo", "emil")
    rows = history(ratings, db, "emil")
    assert [row["game_id"] for row in rows] == ["g-1", "g-2", "g-3"]
    assert history(ratings, db, "anna") == history(ratings, db, "cleo") == rows

    void(ratings, db, 8)

    assert [row["game_id"] for row in history(ratings, db, "anna")] == ["g-1", "g-2"]
    assert [row["game_id"] for row in history(ratings, db, "emil")] == ["g-3"]
    told(ratings, db, "player", "rename", "cleo", "emil")
    assert history(ratings, db, "anna") == history(ratings, db, "emil") == rows


def test_withdrawn_rename_splits_ids(db: str, ratings: Ratings) -> None:
    """Withdrawing a rename gives two players again, and reinstating it makes them one."""
    take_in(ratings, db, galactic("g-2", "cleo", "dora", at=LATER))
    told(ratings, db, "player", "rename", "anna", "cleo")
    merged = digests(ratings, db)
    withdrawn = void(ratings, db, 6)
    assert points(ratings, db, GALACTIC) == {"anna": "1160", "cleo": "1160", "ben": "840", "dora": "840"}
    void(ratings, db, withdrawn["event_id"])
    assert digests(ratings, db) == merged


@pytest.mark.slow
@pytest.mark.parametrize("chain", [("anna", "anne"), ("anna", "anne", "annette")])
def test_renaming_back_names_what_works(chain: tuple[str, ...], db: str, ratings: Ratings) -> None:
    """A rename back is refused with the command that makes it possible, also with games under the new id."""
    first, last = chain[0], chain[-1]
    at = position(ratings, db) + 1
    for player, new_player in itertools.pairwise(chain):
        told(ratings, db, "player", "rename", player, new_player)
    # the rename that counts is not the first of its name
    undone = void(ratings, db, at)
    void(ratings, db, undone["event_id"])
    take_in(ratings, db, galactic("g-2", last, "cleo", at=LATER))
    rows, rename = history(ratings, db, first), ("player", "rename", last, first)
    assert refusal(ratings, db, *rename) == "rename-loop"

    command = f"ratings void --event {at} --reason WHY"
    assert command in ratings(*rename, db=db).stderr
    other = ratings("player", "rename", first, "zoe", db=db)
    assert (other.exit_code, f"{command}\n" in other.stderr, "renamed-already" in other.stderr) == (1, True, True)
    assert ratings(*shlex.split(command)[1:], db=db).exit_code == 0
    told(ratings, db, *rename)

    found = read(ratings, db, "history", last, GALACTIC)
    assert (found["player"], found["rows"]) == (first, rows)


def test_renaming_back_in_one_file_names_no_position(db: str, ratings: Ratings) -> None:
    """A rename that waits in the same file has no position to withdraw; an id is not renamed to itself."""
    renames = [("anna", "anne"), ("anne", "anna"), ("ben", "ben")]
    lines = (event("player.renamed", player=old, new_player=new) for old, new in renames)
    found = ratings("import", "-", db=db, input="".join(lines))

    assert (found.exit_code, found.stderr.count("rename-loop"), "--event" in found.stderr) == (1, 2, False)
    assert "leave out that rename, or withdraw it first" in found.stderr
    assert "the new id is also 'ben'; name a different new id" in found.stderr


def test_adjusting_old_id_reaches_player(db: str, ratings: Ratings) -> None:
    """After a rename, an adjustment of the old id is made to the player's points."""
    told(ratings, db, "player", "rename", "anna", "anne")
    done = carry_out(ratings, db, "adjust", GALACTIC, "anna", "5", *WHY)

    assert done["changes"] == {(GALACTIC, "anne"): ("1160", "5", "1165")}


@pytest.mark.parametrize(
    ("accounts", "counted"),
    [
        ([("anna", "free", NOON)], False),
        ([("anna", "free", NOON), ("anne", "premium", NOON)], True),
        ([("anne", "premium", NOON), ("anna", "free", NOON)], False),
        ([("anne", "free", "2010-03-01T12:00:00Z"), ("anna", "premium", "2010-03-02T12:00:00Z")], True),
        ([("anna", "premium", "2010-03-02T12:00:00Z"), ("anne", "free", "2010-03-04T12:00:00Z")], False),
        ([("anne", "free", LATER)], True),
    ],
)
def test_latest_account_of_merged_ids_counts(
    accounts: list[tuple[str, str, str]], counted: bool, db: str, ratings: Ratings
) -> None:
    """Of two merged ids, the latest account that is not after the game counts."""
    take_in(ratings, db, catan("c-2", "anne", "cleo", at="2010-02-01T12:00:00Z"))
    for player, account, at in accounts:
        told(ratings, db, "player", "account", player, account, "--at", at)
    carry_out(ratings, db, "player", "rename", "anna", "anne")

    assert read(ratings, db, "explain", "c-1", BASIC)["counted"] is counted
    assert read(ratings, db, "explain", "c-2", BASIC)["counted"] is True


# accounts


def test_free_account_is_not_scored(db: str, ratings: Ratings) -> None:
    """A player with a free account is not scored from then on, until the change is withdrawn."""
    take_in(ratings, db, catan("c-2", "anna", "ben", "cleo", at=LATER))
    before = points(ratings, db, BASIC)
    done = carry_out(
        ratings, db, "player", "account", "ben", "free", "--at", "2010-03-06 13:00", "--zone", "Europe/Berlin"
    )

    explained = {player["player"]: player for player in read(ratings, db, "explain", "c-2", BASIC)["players"]}
    assert "free account" in explained["ben"]["why_not"]
    assert (explained["ben"]["change"], len(explained["anna"]["terms"])) == ("0", 1)
    assert read(ratings, db, "explain", "c-1", BASIC)["counted"] is True
    void(ratings, db, done["event_id"])
    assert points(ratings, db, BASIC) == before


def test_withdrawn_registration_is_premium(db: str, ratings: Ratings) -> None:
    """Withdrawing a registration with a free account makes the player premium again."""
    take_in(ratings, db, event("player.registered", "2010-01-01T00:00:00Z", player="ben", account="free"))
    assert points(ratings, db, BASIC) == {}
    void(ratings, db, 5)
    assert points(ratings, db, BASIC) == {"anna": "1004", "ben": "996"}


# rulesets


def test_withdrawn_ruleset_takes_its_ladders(db: str, ratings: Ratings) -> None:
    """Withdrawing a ruleset's only version removes its ladders; reinstating restores them."""
    before = all_points(ratings, db)
    done = void(ratings, db, 1)

    assert {ladder for ladder, _ in all_points(ratings, db)} == {BASIC}
    assert ratings("standings", GALACTIC, db=db).exit_code == 2
    assert "; withdrawn at position" in ratings("rules", "show", "galactic-points", db=db).stdout
    assert points(ratings, db, GALACTIC, "--known-at", "4") == {"anna": "1160", "ben": "840"}
    # nobody asks a ladder that is gone
    take_in(ratings, db, galactic("g-6", "a", "b", "c", "d", "e", "f", at=LATER))
    void(ratings, db, done["event_id"])
    assert all_points(ratings, db) == before


@pytest.mark.slow
def test_other_version_scores_again(tmp_path: Path, ratings: Ratings) -> None:
    """When one of two versions is withdrawn, the other scores as it did alone."""
    db = new_ledger(ratings, tmp_path / "club.db", "club-catan-elo-1")
    second = SHIPPED.parents[1] / "examples" / "club-catan-elo-2.toml"
    take_in(ratings, db, galactic("g-1", "anna", "ben", "cleo", game="club-catan"))
    first_points = all_points(ratings, db)
    assert ratings("rules", "publish", second, db=db).exit_code == 0
    second_points = all_points(ratings, db)
    assert first_points != second_points
    void(ratings, db, 3)
    assert all_points(ratings, db) == first_points
    void(ratings, db, 4)
    assert all_points(ratings, db) == second_points
    void(ratings, db, 1)
    assert all_points(ratings, db) == second_points
    listed = read(ratings, db, "rules", "list")
    assert [row["version"] for row in listed if row["withdrawn"] is None] == ["club-catan-elo@2"]


@pytest.mark.slow
def test_ruleset_with_adjustments_is_needed(db: str, ratings: Ratings) -> None:
    """A ruleset's only version cannot be withdrawn while it has live adjustments."""
    told(ratings, db, "adjust", GALACTIC, "anna", "5", *WHY)
    assert refusal(ratings, db, "void", "--event", "1", *WHY) == "still-needed"
    gone = void(ratings, db, 5)
    void(ratings, db, 1)
    # and the adjustment cannot come back before the ruleset does
    assert refusal(ratings, db, "void", "--event", gone["event_id"], *WHY) == "unknown-ladder"
    void(ratings, db, 7)
    void(ratings, db, gone["event_id"])
    assert points(ratings, db, GALACTIC)["anna"] == "1165"


@pytest.mark.slow
def test_withdrawn_version_is_published_again(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A withdrawn version can be published again under a new id, even with other content."""
    withdrawn = void(ratings, db, 1)
    published = ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db)
    assert (published.exit_code, position(ratings, db)) == (0, 6)
    assert points(ratings, db, GALACTIC) == {"anna": "1160", "ben": "840"}
    assert ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db).exit_code == 0
    assert position(ratings, db) == 6
    # the first cannot come back beside it
    assert refusal(ratings, db, "void", "--event", withdrawn["event_id"], *WHY) == "version-exists"

    # with other content, too, as long as the first is gone
    void(ratings, db, 6)
    text = (SHIPPED / "galactic-points-1.toml").read_text(encoding="utf-8").replace("start = 1000", "start = 2000")
    (tmp_path / "other.toml").write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "other.toml", db=db).exit_code == 0
    assert points(ratings, db, GALACTIC) == {"anna": "2320", "ben": "1680"}
    assert ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db).exit_code == 1
    void(ratings, db, position(ratings, db))
    assert ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db).exit_code == 0
    assert points(ratings, db, GALACTIC) == {"anna": "1160", "ben": "840"}
    assert ratings("verify", db=db) == (0, "", "")
