"""Shared helpers for the tests of corrections: lines of events, successful and refused commands, points of ladders."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import builders
import ledgers
from builders import NOON
from output_filters import strip_decimals
from stores import record_lines

Ratings = Callable[..., Any]
# (ladder, player): points before, change and after
Changes = dict[tuple[str, str], tuple[str | None, str | None, str | None]]

SHIPPED = Path(__file__).parents[2] / "projections" / "shipped"
RULESETS = ("galactic-points-1", "catan-elo-2009-01")
GALACTIC = "galactic-points"
BASIC = "catan-elo/basic"


def build_event_line(type_name: str, at: str = NOON, event_id: str | None = None, **data: Any) -> str:
    """Return an event as a line of JSON."""
    return builders.format_line(builders.build_event(type_name, at, event_id, **data))


def build_game_data(game_id: str, *players: str, **members: Any) -> dict[str, Any]:
    """Return the data of a game: players in the order of their places, tied ones joined by `=`."""
    return builders.build_game_data(game_id, *players, **{"game": "galactic-magnate", **members})


def build_galactic_line(game_id: str, *players: str, at: str = NOON, **members: Any) -> str:
    """Return a game of Galactic Magnate, unless `members` say otherwise, as a line of JSON."""
    return build_event_line("game.recorded", at, **build_game_data(game_id, *players, **members))


def build_catan_line(game_id: str, *players: str, at: str = NOON, **members: Any) -> str:
    """Return a game on the ladder catan-elo/basic as a line of JSON."""
    return build_galactic_line(game_id, *players, at=at, **{"game": "catan", "group": "basic", **members})


def create_ledger(ratings: Ratings, db: Path | str, *rulesets: str) -> str:
    """Create a ledger with these shipped rulesets, by default those of `RULESETS`, from position 1 on."""
    assert ratings("init", "--no-rules", db=str(db)).exit_code == 0
    files = [SHIPPED / f"{name}.toml" for name in rulesets or RULESETS]
    assert ratings("rules", "publish", *files, db=str(db)).exit_code == 0
    return str(db)


def read_json(ratings: Ratings, db: str, *arguments: object) -> Any:
    """Run a reading command, which must print no messages, and return its JSON without the rounded decimals."""
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return strip_decimals(json.loads(result.stdout))


def read_head(ratings: Ratings, db: str) -> str:
    """Return the head of the log as `POSITION:CHAINHASH`."""
    return ledgers.read_head(db)


def read_position(ratings: Ratings, db: str) -> int:
    """Return the position of the head."""
    return int(read_head(ratings, db).partition(":")[0])


def append_lines(ratings: Ratings, db: str, *lines: str, allow_uncounted: bool = False) -> None:
    """Record new, valid events without a batch, as a program does."""
    result = record_lines(db, "".join(lines), allow_uncounted=allow_uncounted)
    assert (result.rejected, result.existing) == ([], 0)


def read_points(ratings: Ratings, db: str, ladder: str, *axes: str) -> dict[str, str]:
    """Return the points of all players of a ladder."""
    return {row["player"]: row["points"] for row in read_json(ratings, db, "standings", ladder, *axes)["rows"]}


def read_all_standings(ratings: Ratings, db: str) -> list[dict[str, Any]]:
    """Return the standings of all ladders that have games or adjustments."""
    result = ratings("export", "standings", db=db)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return [strip_decimals(json.loads(line)) for line in result.stdout.splitlines()]


def read_all_points(ratings: Ratings, db: str) -> dict[tuple[str, str], str]:
    """Return the points of all players on all ladders."""
    return {
        (standings["ladder"], row["player"]): row["points"]
        for standings in read_all_standings(ratings, db)
        for row in standings["rows"]
    }


def read_digests(ratings: Ratings, db: str) -> dict[str, str]:
    """Return the digests of all ladders that have games or adjustments."""
    return {standings["ladder"]: standings["digest"] for standings in read_all_standings(ratings, db)}


def build_current_id_lookup(ratings: Ratings, db: str) -> Callable[[str], str]:
    """Return a function that gives a player's current id by the live renames of the log."""
    events = read_json(ratings, db, "log", "--limit", "0")["rows"]
    roots: dict[str, str] = {}
    withdrawn: set[str] = set()
    for event in events:
        if event["type"] == "event.voided":
            roots[event["id"]] = roots.get(event["data"]["id"], event["data"]["id"])
            withdrawn ^= {roots[event["id"]]}
    renames = [event for event in events if event["type"] == "player.renamed" and event["id"] not in withdrawn]
    new_ids = {event["data"]["player"]: event["data"]["new_player"] for event in renames}

    def find_current_id(player: str) -> str:
        while player in new_ids:
            player = new_ids[player]
        return player

    return find_current_id


def compare_points(
    before: dict[tuple[str, str], str],
    after: dict[tuple[str, str], str],
    find_id_before: Callable[[str], str],
    find_id_after: Callable[[str], str],
) -> Changes:
    """Return the changes of points by ladder and player. A new id alone is no change.
    `find_id_before` and `find_id_after` give each player's current id before and after.
    """
    before = dict(before)
    for ladder, old in sorted(before.keys() - after.keys()):
        for new in sorted(player for new_ladder, player in after.keys() - before.keys() if new_ladder == ladder):
            if new in (find_id_after(old), old) or find_id_before(new) == old:
                before[ladder, new] = before.pop((ladder, old))
                break
    changes: Changes = {}
    for key in sorted(before.keys() | after.keys()):
        old_points, new_points = before.get(key), after.get(key)
        if old_points != new_points:
            has_both = old_points is not None and new_points is not None
            change = str(Fraction(new_points or 0) - Fraction(old_points or 0)) if has_both else None
            changes[key] = (old_points, change, new_points)
    return changes


def run_correction(
    ratings: Ratings,
    db: str,
    *command: object,
    input: str | None = None,  # noqa: A002
) -> dict[str, Any]:
    """Run a correcting command, first as a dry run, and return its JSON with the changes as `Changes`.

    The dry run must write nothing and report the same changes; these must equal the difference of the standings.
    """
    before, before_head, find_id_before = (
        read_all_points(ratings, db),
        read_head(ratings, db),
        build_current_id_lookup(ratings, db),
    )
    preview = run_json_command(ratings, db, *command, "--dry-run", input=input)
    assert (preview["dry_run"], preview["position"], preview["appended"]) == (True, None, 0)
    assert read_head(ratings, db) == before_head
    assert read_all_points(ratings, db) == before

    report = run_json_command(ratings, db, *command, input=input)

    assert (report["dry_run"], report["appended"], report["existing"], report["rejected"]) == (False, 1, 0, [])
    assert (preview["type"], preview["changes"]) == (report["type"], report["changes"])
    assert report["position"] == int(before_head.partition(":")[0]) + 1 == read_position(ratings, db)
    assert report["changes"] == compare_points(
        before, read_all_points(ratings, db), find_id_before, build_current_id_lookup(ratings, db)
    )
    return report


def run_json_command(ratings: Ratings, db: str, *command: object, input: str | None = None) -> dict[str, Any]:  # noqa: A002
    """Run a correcting command, which must succeed, and return its JSON with the changes as `Changes`."""
    result = ratings(*command, "--format", "json", db=db, input=input)
    assert (result.exit_code, result.stderr) == (0, ""), result
    result_json = strip_decimals(json.loads(result.stdout))
    changes: Changes = {
        (c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in result_json["changes"]
    }
    assert len(changes) == len(result_json["changes"])
    return {**result_json, "changes": changes}


def get_refusal_code(
    ratings: Ratings,
    db: str,
    *command: object,
    input: str | None = None,  # noqa: A002
    readable: bool = True,
) -> str:
    """Run a command that must be refused and return the code.
    It must exit with 1, name the code in JSON and in the readable message, and record nothing.
    """
    before = read_head(ratings, db)
    result = ratings(*command, "--format", "json", db=db, input=input)
    assert (result.exit_code, result.stderr) == (1, ""), result
    (rejected,) = json.loads(result.stdout)["rejected"]
    assert rejected["message"].isprintable()
    code = str(rejected["code"])
    if readable:
        readable_result = ratings(*command, db=db, input=input)
        assert (
            readable_result.exit_code,
            f"{code}: " in readable_result.stderr,
            "Traceback" in readable_result.stderr,
        ) == (1, True, False), readable_result
    assert read_head(ratings, db) == before
    return code


REASON_OPTION = ("--reason", "wrong way round")
# a day and two days after NOON
NEXT_DAY, THIRD_DAY = "2010-03-06T12:00:00Z", "2010-03-07T12:00:00Z"


def create_small_ledger(ratings: Ratings, path: Path | str) -> str:
    """Create a ledger: two rulesets at 1 and 2, games g-1 and c-1 of three players at 3 and 4, g-2 a day later at 5."""
    name = create_ledger(ratings, path)
    append_lines(
        ratings,
        name,
        build_galactic_line("g-1", "anna", "ben", "cleo"),
        build_catan_line("c-1", "anna", "ben", "cleo"),
        build_galactic_line("g-2", "ben", "anna", at=NEXT_DAY),
    )
    return name


def create_three_games(ratings: Ratings, path: Path | str) -> str:
    """Create a ledger: two rulesets, and at positions 3 to 5 a game on each of three days, the last of the other
    ruleset."""
    name = create_ledger(ratings, path)
    append_lines(ratings, name, build_catan_line("c-1", "anna", "ben", "cleo"))
    append_lines(ratings, name, build_catan_line("c-2", "cleo", "dora", at=NEXT_DAY))
    append_lines(ratings, name, build_galactic_line("g-1", "anna", "ben", at=THIRD_DAY))
    return name
