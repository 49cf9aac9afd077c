"""`adjust`, `player rename`, `player account` and `void --event`: corrections of points and players, and their
withdrawal."""

import itertools
import shlex
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NEXT_DAY,
    NOON,
    SHIPPED,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    build_galactic_line,
    build_game_data,
    create_ledger,
    get_refusal_code,
    read_all_points,
    read_digests,
    read_json,
    read_points,
    read_position,
    run_correction,
    run_json_command,
)

REASON_ARGUMENTS = ("--reason", "as agreed")


def make_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger with galactic-points@1, catan-elo@2009-01 and one game of anna and ben on each, at positions 1
    to 4."""
    create_ledger(ratings, url)
    append_lines(ratings, url, build_galactic_line("g-1", "anna", "ben"), build_catan_line("c-1", "anna", "ben"))


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def void_event(ratings: Ratings, db: str, event: object) -> dict[str, Any]:
    """Withdraw an event."""
    return run_correction(ratings, db, "void", "--event", event, *REASON_ARGUMENTS)


def read_history(ratings: Ratings, db: str, player: str, ladder: str = GALACTIC) -> list[dict[str, Any]]:
    """Return every change of a player's points."""
    return list(read_json(ratings, db, "history", player, ladder)["rows"])


# adjustments

ADJUSTMENTS = {
    "whole": (GALACTIC, "anna", "25", ("1160", "25", "1185")),
    "negative": (GALACTIC, "ben", "-25", ("840", "-25", "815")),
    "negative with a fraction": (BASIC, "anna", "-7.5", ("1004", "-15/2", "1993/2")),
    "the smallest step": (BASIC, "ben", "-0.000001", ("996", "-1/1000000", "995999999/1000000")),
    "below zero": (GALACTIC, "ben", "-1000", ("840", "-1000", "-160")),
    "with a plus": (GALACTIC, "anna", "+1", ("1160", "1", "1161")),
    "with zeros behind the point": (GALACTIC, "anna", "1.00", ("1160", "1", "1161")),
    "for a new player, on the start value": (GALACTIC, "Zoë", "-5", (None, None, "995")),
    "on a ladder without games": ("catan-elo/domaine", "anna", "5", (None, None, "1005")),
}


@pytest.mark.parametrize(("ladder", "player", "amount", "changes"), ADJUSTMENTS.values(), ids=ADJUSTMENTS)
def test_adjustment_adds_to_points_at_its_time(
    ladder: str, player: str, amount: str, changes: tuple[str | None, str | None, str | None], db: str, ratings: Ratings
) -> None:
    """An adjustment adds to the player's points at that time and is shown with its reason."""
    report = run_correction(ratings, db, "adjust", ladder, player, amount, *REASON_ARGUMENTS)

    assert report["changes"] == {(ladder, player): changes}
    last = read_history(ratings, db, player, ladder)[-1]
    assert (last["game_id"], last["reason"], last["event_id"], last["position"]) == (
        None,
        "as agreed",
        report["event_id"],
        report["position"],
    )
    books = read_json(ratings, db, "books", ladder)
    assert (books["sum"], books["accounts"][-1]["amount"] != "0") == ("0", True)


def test_early_adjustment_reports_all_changes(db: str, ratings: Ratings) -> None:
    """An adjustment dated before games reports every player whose points it changes."""
    report = run_correction(
        ratings,
        db,
        "adjust",
        GALACTIC,
        "ben",
        "100",
        *REASON_ARGUMENTS,
        "--at",
        "2010-03-05 12:59",
        "--zone",
        "Europe/Berlin",
    )

    assert report["changes"] == {(GALACTIC, "anna"): ("1160", "16", "1176"), (GALACTIC, "ben"): ("840", "84", "924")}


@pytest.mark.slow
def test_void_of_a_void_reinstates(db: str, ratings: Ratings) -> None:
    """An adjustment can be voided and reinstated repeatedly; the last void decides."""
    run_json_command(ratings, db, "adjust", GALACTIC, "anna", "25", *REASON_ARGUMENTS)
    adjusted = read_digests(ratings, db)
    by_position = void_event(ratings, db, 5)
    assert by_position["changes"] == {(GALACTIC, "anna"): ("1185", "-25", "1160")}
    reinstated = void_event(ratings, db, by_position["event_id"])
    assert read_digests(ratings, db) == adjusted
    void_event(ratings, db, reinstated["event_id"])
    assert read_points(ratings, db, GALACTIC)["anna"] == "1160"
    void_event(ratings, db, 8)
    assert read_digests(ratings, db) == adjusted
    assert read_points(ratings, db, GALACTIC, "--known-at", "6")["anna"] == "1160"
    assert ratings("verify", db=db) == (0, "", "")


def test_event_id_precedes_position(db: str, ratings: Ratings) -> None:
    """An event id that looks like a position is taken as an id first when voiding."""
    adjustment = {"ladder": GALACTIC, "points": "5", "reason": "gift"}
    append_lines(
        ratings,
        db,
        build_event_line("points.adjusted", event_id="6", player="anna", **adjustment),
        build_event_line("points.adjusted", player="ben", **adjustment),
    )
    assert void_event(ratings, db, "6")["changes"] == {(GALACTIC, "anna"): ("1165", "-5", "1160")}
    assert get_refusal_code(ratings, db, "void", "--event", "6", *REASON_ARGUMENTS) == "event-voided"
    assert void_event(ratings, db, "06")["changes"] == {(GALACTIC, "ben"): ("845", "-5", "840")}


# renames


def test_renamed_player_found_under_both_ids(db: str, ratings: Ratings) -> None:
    """A renamed player keeps all their games, which are found under both ids."""
    rows = read_history(ratings, db, "anna")
    report = run_correction(ratings, db, "player", "rename", "anna", "Änne", "--reason", "married")

    assert report["changes"] == {}
    assert read_points(ratings, db, GALACTIC) == {"Änne": "1160", "ben": "840"}
    for name in ("anna", "Änne", "A\u0308nne"):
        output = read_json(ratings, db, "history", name, GALACTIC)
        assert (output["player"], output["rows"]) == ("Änne", rows)
        assert [row["game_id"] for row in read_json(ratings, db, "games", "--player", name)["rows"]] == ["g-1", "c-1"]
        assert [row["position"] for row in read_json(ratings, db, "log", name)["rows"]] == [3, 4, 5]
    assert read_json(ratings, db, "explain", "g-1", GALACTIC)["players"][0]["player"] == "Änne"
    # the facts stay as they were recorded; games are shown under the current ids
    assert read_json(ratings, db, "log", "g-1")["rows"][0]["data"]["participants"][0]["player"] == "anna"
    assert (
        read_json(ratings, db, "games")["rows"][0]["participants"]
        == build_game_data("g-1", "Änne", "ben")["participants"]
    )
    assert read_json(ratings, db, "history", "anna", GALACTIC, "--known-at", "4")["player"] == "anna"


def test_merged_player_has_games_in_order(db: str, ratings: Ratings) -> None:
    """Merging two ids gives one player the games of both, in the order of time."""
    append_lines(
        ratings,
        db,
        build_galactic_line("g-2", "cleo", "dora"),
        build_galactic_line("g-0", "dora", "cleo", at="2010-03-04T12:00:00Z"),
    )
    report = run_correction(ratings, db, "player", "rename", "anna", "cleo")

    assert report["changes"] == {
        (GALACTIC, "cleo"): ("1025", "160", "1185"),
        (GALACTIC, "anna"): ("1160", None, None),
    }
    rows = read_history(ratings, db, "cleo")
    assert [row["game_id"] for row in rows] == ["g-0", "g-1", "g-2"]
    assert [row["before"] for row in rows[1:]] == [row["after"] for row in rows[:-1]]


def test_rename_chain_leads_to_last_id(db: str, ratings: Ratings) -> None:
    """In a chain of renames every id leads to the last; withdrawing one splits it there."""
    append_lines(
        ratings, db, build_galactic_line("g-2", "cleo", "dora"), build_galactic_line("g-3", "emil", "dora", at=NEXT_DAY)
    )
    run_json_command(ratings, db, "player", "rename", "anna", "cleo")
    run_json_command(ratings, db, "player", "rename", "cleo", "emil")
    rows = read_history(ratings, db, "emil")
    assert [row["game_id"] for row in rows] == ["g-1", "g-2", "g-3"]
    assert read_history(ratings, db, "anna") == read_history(ratings, db, "cleo") == rows

    void_event(ratings, db, 8)

    assert [row["game_id"] for row in read_history(ratings, db, "anna")] == ["g-1", "g-2"]
    assert [row["game_id"] for row in read_history(ratings, db, "emil")] == ["g-3"]
    run_json_command(ratings, db, "player", "rename", "cleo", "emil")
    assert read_history(ratings, db, "anna") == read_history(ratings, db, "emil") == rows


def test_withdrawn_rename_splits_ids(db: str, ratings: Ratings) -> None:
    """Withdrawing a rename splits a player in two again, and reinstating it merges them."""
    append_lines(ratings, db, build_galactic_line("g-2", "cleo", "dora", at=NEXT_DAY))
    run_json_command(ratings, db, "player", "rename", "anna", "cleo")
    merged = read_digests(ratings, db)
    withdrawn = void_event(ratings, db, 6)
    assert read_points(ratings, db, GALACTIC) == {"anna": "1160", "cleo": "1160", "ben": "840", "dora": "840"}
    void_event(ratings, db, withdrawn["event_id"])
    assert read_digests(ratings, db) == merged


@pytest.mark.slow
@pytest.mark.parametrize("chain", [("anna", "anne"), ("anna", "anne", "annette")])
def test_refused_rename_back_names_the_withdrawal(chain: tuple[str, ...], db: str, ratings: Ratings) -> None:
    """A rename back is refused, and the message names the command that makes it possible, also with games under the
    new id."""
    first, last = chain[0], chain[-1]
    at = read_position(ratings, db) + 1
    for player, new_player in itertools.pairwise(chain):
        run_json_command(ratings, db, "player", "rename", player, new_player)
    # a rename that was withdrawn and put back in force is still withdrawn by its own position
    undone = void_event(ratings, db, at)
    void_event(ratings, db, undone["event_id"])
    append_lines(ratings, db, build_galactic_line("g-2", last, "cleo", at=NEXT_DAY))
    rows, rename = read_history(ratings, db, first), ("player", "rename", last, first)
    assert get_refusal_code(ratings, db, *rename) == "rename-loop"

    command = f"ratings void --event {at} --reason TEXT"
    message = ratings(*rename, db=db).stderr
    assert command in message
    assert f"{first!r} is already renamed to {chain[1]!r}" in message
    result = ratings("player", "rename", first, "zoe", db=db)
    assert (result.exit_code, f"{command}\n" in result.stderr, "renamed-already" in result.stderr) == (1, True, True)
    assert ratings(*shlex.split(command)[1:], db=db).exit_code == 0
    run_json_command(ratings, db, *rename)

    output = read_json(ratings, db, "history", last, GALACTIC)
    assert (output["player"], output["rows"]) == (first, rows)


def test_renaming_back_in_one_file_names_no_position(db: str, ratings: Ratings) -> None:
    """A rename that waits in the same file has no position to withdraw; an id is not renamed to itself."""
    renames = [("anna", "anne"), ("anne", "anna"), ("ben", "ben")]
    lines = (build_event_line("player.renamed", player=old, new_player=new) for old, new in renames)
    result = ratings("import", "-", db=db, input="".join(lines))

    assert (result.exit_code, result.stderr.count("rename-loop"), "--event" in result.stderr) == (1, 2, False)
    assert "leave out that rename, or withdraw it first" in result.stderr
    assert "'ben' cannot be renamed to itself; choose a different new id" in result.stderr


def test_adjusting_old_id_reaches_player(db: str, ratings: Ratings) -> None:
    """After a rename, an adjustment of the old id is made to the player's points."""
    run_json_command(ratings, db, "player", "rename", "anna", "anne")
    report = run_correction(ratings, db, "adjust", GALACTIC, "anna", "5", *REASON_ARGUMENTS)

    assert report["changes"] == {(GALACTIC, "anne"): ("1160", "5", "1165")}


@pytest.mark.parametrize(
    ("accounts", "counted"),
    [
        ([("anna", "free", NOON)], False),
        ([("anna", "free", NOON), ("anne", "premium", NOON)], True),
        ([("anne", "premium", NOON), ("anna", "free", NOON)], False),
        ([("anne", "free", "2010-03-01T12:00:00Z"), ("anna", "premium", "2010-03-02T12:00:00Z")], True),
        ([("anna", "premium", "2010-03-02T12:00:00Z"), ("anne", "free", "2010-03-04T12:00:00Z")], False),
        ([("anne", "free", NEXT_DAY)], True),
    ],
)
def test_latest_account_of_merged_ids_counts(
    accounts: list[tuple[str, str, str]], counted: bool, db: str, ratings: Ratings
) -> None:
    """Of two merged ids, the latest account that is not after the game counts."""
    append_lines(ratings, db, build_catan_line("c-2", "anne", "cleo", at="2010-02-01T12:00:00Z"))
    for player, account, at in accounts:
        run_json_command(ratings, db, "player", "account", player, account, "--at", at)
    run_correction(ratings, db, "player", "rename", "anna", "anne")

    assert read_json(ratings, db, "explain", "c-1", BASIC)["counted"] is counted
    assert read_json(ratings, db, "explain", "c-2", BASIC)["counted"] is True


# accounts


def test_free_account_is_not_scored(db: str, ratings: Ratings) -> None:
    """A player with a free account is not scored from then on, until the change is withdrawn."""
    append_lines(ratings, db, build_catan_line("c-2", "anna", "ben", "cleo", at=NEXT_DAY))
    before = read_points(ratings, db, BASIC)
    report = run_correction(
        ratings, db, "player", "account", "ben", "free", "--at", "2010-03-06 13:00", "--zone", "Europe/Berlin"
    )

    explanation = {player["player"]: player for player in read_json(ratings, db, "explain", "c-2", BASIC)["players"]}
    assert "free account" in explanation["ben"]["why_not"]
    assert (explanation["ben"]["change"], len(explanation["anna"]["terms"])) == ("0", 1)
    assert read_json(ratings, db, "explain", "c-1", BASIC)["counted"] is True
    void_event(ratings, db, report["event_id"])
    assert read_points(ratings, db, BASIC) == before


def test_withdrawn_registration_is_premium(db: str, ratings: Ratings) -> None:
    """Withdrawing a registration with a free account makes the player premium again."""
    append_lines(
        ratings, db, build_event_line("player.registered", "2010-01-01T00:00:00Z", player="ben", account="free")
    )
    assert read_points(ratings, db, BASIC) == {}
    void_event(ratings, db, 5)
    assert read_points(ratings, db, BASIC) == {"anna": "1004", "ben": "996"}


# rulesets


def test_withdrawn_ruleset_takes_its_ladders(db: str, ratings: Ratings) -> None:
    """Withdrawing a ruleset's only version removes its ladders; reinstating restores them."""
    before = read_all_points(ratings, db)
    report = void_event(ratings, db, 1)

    assert {ladder for ladder, _ in read_all_points(ratings, db)} == {BASIC}
    assert ratings("standings", GALACTIC, db=db).exit_code == 2
    assert "; withdrawn at position" in ratings("rules", "show", "galactic-points", db=db).stdout
    assert read_points(ratings, db, GALACTIC, "--known-at", "4") == {"anna": "1160", "ben": "840"}
    # a game that the withdrawn ruleset would refuse is accepted
    append_lines(ratings, db, build_galactic_line("g-6", "a", "b", "c", "d", "e", "f", at=NEXT_DAY))
    void_event(ratings, db, report["event_id"])
    assert read_all_points(ratings, db) == before


@pytest.mark.slow
def test_other_version_scores_again(tmp_path: Path, ratings: Ratings) -> None:
    """When one of two versions is withdrawn, the other scores as it did alone."""
    db = create_ledger(ratings, tmp_path / "club.db", "club-catan-elo-1")
    second = SHIPPED.parents[1] / "examples" / "club-catan-elo-2.toml"
    append_lines(ratings, db, build_galactic_line("g-1", "anna", "ben", "cleo", game="club-catan"))
    first_points = read_all_points(ratings, db)
    assert ratings("rules", "publish", second, db=db).exit_code == 0
    second_points = read_all_points(ratings, db)
    assert first_points != second_points
    void_event(ratings, db, 3)
    assert read_all_points(ratings, db) == first_points
    void_event(ratings, db, 4)
    assert read_all_points(ratings, db) == second_points
    void_event(ratings, db, 1)
    assert read_all_points(ratings, db) == second_points
    rulesets = read_json(ratings, db, "rules", "list")
    assert [row["version"] for row in rulesets if row["withdrawn"] is None] == ["club-catan-elo@2"]


@pytest.mark.slow
def test_ruleset_with_adjustments_is_not_withdrawn(db: str, ratings: Ratings) -> None:
    """A ruleset's only version cannot be withdrawn while it has live adjustments."""
    run_json_command(ratings, db, "adjust", GALACTIC, "anna", "5", *REASON_ARGUMENTS)
    assert get_refusal_code(ratings, db, "void", "--event", "1", *REASON_ARGUMENTS) == "still-needed"
    withdrawn = void_event(ratings, db, 5)
    void_event(ratings, db, 1)
    # the adjustment cannot be reinstated before the ruleset
    assert (
        get_refusal_code(ratings, db, "void", "--event", withdrawn["event_id"], *REASON_ARGUMENTS) == "unknown-ladder"
    )
    void_event(ratings, db, 7)
    void_event(ratings, db, withdrawn["event_id"])
    assert read_points(ratings, db, GALACTIC)["anna"] == "1165"


@pytest.mark.slow
def test_withdrawn_version_is_published_again(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A withdrawn version can be published again under a new id, even with other content."""
    withdrawn = void_event(ratings, db, 1)
    published = ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db)
    assert (published.exit_code, read_position(ratings, db)) == (0, 6)
    assert read_points(ratings, db, GALACTIC) == {"anna": "1160", "ben": "840"}
    assert ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db).exit_code == 0
    assert read_position(ratings, db) == 6
    # the first cannot be reinstated beside it
    assert (
        get_refusal_code(ratings, db, "void", "--event", withdrawn["event_id"], *REASON_ARGUMENTS) == "version-exists"
    )

    # other content is possible, too, while the first is withdrawn
    void_event(ratings, db, 6)
    text = (SHIPPED / "galactic-points-1.toml").read_text(encoding="utf-8").replace("start = 1000", "start = 2000")
    (tmp_path / "other.toml").write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "other.toml", db=db).exit_code == 0
    assert read_points(ratings, db, GALACTIC) == {"anna": "2320", "ben": "1680"}
    assert ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db).exit_code == 1
    void_event(ratings, db, read_position(ratings, db))
    assert ratings("rules", "publish", SHIPPED / "galactic-points-1.toml", db=db).exit_code == 0
    assert read_points(ratings, db, GALACTIC) == {"anna": "1160", "ben": "840"}
    assert ratings("verify", db=db) == (0, "", "")
