"""What the tests of corrections share: lines of events, commands carried out and refused, what stands where."""

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


def event(type_name: str, at: str = NOON, event_id: str | None = None, **data: Any) -> str:
    """An event as a line of JSON."""
    return builders.format_line(builders.build_event(type_name, at, event_id, **data))


def placing(game_id: str, *players: str, **members: Any) -> dict[str, Any]:
    """The data of a game; the players in the order of their places, tied ones joined by =."""
    return builders.build_game_data(game_id, *players, **{"game": "galactic-magnate", **members})


def galactic(game_id: str, *players: str, at: str = NOON, **members: Any) -> str:
    """A game of Galactic Magnate, unless `members` say otherwise, as a line of JSON."""
    return event("game.recorded", at, **placing(game_id, *players, **members))


def catan(game_id: str, *players: str, at: str = NOON, **members: Any) -> str:
    """A game on the ladder catan-elo/basic as a line of JSON."""
    return galactic(game_id, *players, at=at, **{"game": "catan", "group": "basic", **members})


def new_ledger(ratings: Ratings, db: Path | str, *rulesets: str) -> str:
    """Make a ledger with these shipped rulesets, by default those of `RULESETS`, from position 1 on."""
    assert ratings("init", "--no-rules", db=str(db)).exit_code == 0
    files = [SHIPPED / f"{name}.toml" for name in rulesets or RULESETS]
    assert ratings("rules", "publish", *files, db=str(db)).exit_code == 0
    return str(db)


def read(ratings: Ratings, db: str, *arguments: object) -> Any:
    """What a reading command prints as JSON."""
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return strip_decimals(json.loads(result.stdout))


def head(ratings: Ratings, db: str) -> str:
    """The head of the log, `POSITION:CHAINHASH`."""
    return ledgers.read_head(db)


def position(ratings: Ratings, db: str) -> int:
    """The head's position."""
    return int(head(ratings, db).partition(":")[0])


def take_in(ratings: Ratings, db: str, *lines: str, allow_uncounted: bool = False) -> None:
    """Record events that are all new and good, as a program does: without a batch."""
    told = record_lines(db, "".join(lines), allow_uncounted=allow_uncounted)
    assert (told.rejected, told.existing) == ([], 0)


def points(ratings: Ratings, db: str, ladder: str, *axes: str) -> dict[str, str]:
    """Everybody's points on a ladder."""
    return {row["player"]: row["points"] for row in read(ratings, db, "standings", ladder, *axes)["rows"]}


def all_standings(ratings: Ratings, db: str) -> list[dict[str, Any]]:
    """The standings of all ladders that have any games or adjustments."""
    result = ratings("export", "standings", db=db)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return [strip_decimals(json.loads(line)) for line in result.stdout.splitlines()]


def all_points(ratings: Ratings, db: str) -> dict[tuple[str, str], str]:
    """Everybody's points on all ladders that have any."""
    return {(one["ladder"], row["player"]): row["points"] for one in all_standings(ratings, db) for row in one["rows"]}


def digests(ratings: Ratings, db: str) -> dict[str, str]:
    """The digests of all ladders that have any games or adjustments."""
    return {one["ladder"]: one["digest"] for one in all_standings(ratings, db)}


def current_ids(ratings: Ratings, db: str) -> Callable[[str], str]:
    """Who is who by the live renames of the log."""
    events = read(ratings, db, "log", "--limit", "0")["rows"]
    roots: dict[str, str] = {}
    gone: set[str] = set()
    for found in events:
        if found["type"] == "event.voided":
            roots[found["id"]] = roots.get(found["data"]["id"], found["data"]["id"])
            gone ^= {roots[found["id"]]}
    renames = [found for found in events if found["type"] == "player.renamed" and found["id"] not in gone]
    following = {found["data"]["player"]: found["data"]["new_player"] for found in renames}

    def current(player: str) -> str:
        while player in following:
            player = following[player]
        return player

    return current


def difference(
    before: dict[tuple[str, str], str], after: dict[tuple[str, str], str], was: Callable[[str], str],
    now: Callable[[str], str],
) -> Changes:  # fmt: skip
    """Whose points differ, and by how much; another id alone changes nothing. `was` and `now` tell who is who."""
    before = dict(before)
    for ladder, old in sorted(before.keys() - after.keys()):
        for new in sorted(name for other, name in after.keys() - before.keys() if other == ladder):
            if new in (now(old), old) or was(new) == old:
                before[ladder, new] = before.pop((ladder, old))
                break
    found: Changes = {}
    for key in sorted(before.keys() | after.keys()):
        old_points, new_points = before.get(key), after.get(key)
        if old_points != new_points:
            both = old_points is not None and new_points is not None
            change = str(Fraction(new_points or 0) - Fraction(old_points or 0)) if both else None
            found[key] = (old_points, change, new_points)
    return found


def carry_out(
    ratings: Ratings,
    db: str,
    *command: object,
    input: str | None = None,  # noqa: A002
) -> dict[str, Any]:
    """Carry out a command that puts something right, first as a dry run; what it told, its changes as `Changes`.

    The dry run writes nothing and tells the same; what it tells is how the standings differ before and after.
    """
    before, before_head, was = all_points(ratings, db), head(ratings, db), current_ids(ratings, db)
    tried = told(ratings, db, *command, "--dry-run", input=input)
    assert (tried["dry_run"], tried["position"], tried["appended"]) == (True, None, 0)
    assert head(ratings, db) == before_head
    assert all_points(ratings, db) == before

    done = told(ratings, db, *command, input=input)

    assert (done["dry_run"], done["appended"], done["existing"], done["rejected"]) == (False, 1, 0, [])
    assert (tried["type"], tried["changes"]) == (done["type"], done["changes"])
    assert done["position"] == int(before_head.partition(":")[0]) + 1 == position(ratings, db)
    assert done["changes"] == difference(before, all_points(ratings, db), was, current_ids(ratings, db))
    return done


def told(ratings: Ratings, db: str, *command: object, input: str | None = None) -> dict[str, Any]:  # noqa: A002
    """What a command that puts something right prints as JSON, its changes as `Changes`. It must succeed."""
    result = ratings(*command, "--format", "json", db=db, input=input)
    assert (result.exit_code, result.stderr) == (0, ""), result
    found = strip_decimals(json.loads(result.stdout))
    changes: Changes = {
        (c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in found["changes"]
    }  # fmt: skip
    assert len(changes) == len(found["changes"])
    return {**found, "changes": changes}


def refusal(
    ratings: Ratings,
    db: str,
    *command: object,
    input: str | None = None,  # noqa: A002
    readable: bool = True,
) -> str:
    """The code with which a command is refused; it exits with 1, says so in JSON and in words, and changes nothing."""
    before = head(ratings, db)
    result = ratings(*command, "--format", "json", db=db, input=input)
    assert (result.exit_code, result.stderr) == (1, ""), result
    (rejected,) = json.loads(result.stdout)["rejected"]
    assert rejected["message"].isprintable()
    code = str(rejected["code"])
    if readable:
        shown = ratings(*command, db=db, input=input)
        assert (shown.exit_code, f"{code}: " in shown.stderr, "Traceback" in shown.stderr) == (1, True, False), shown
    assert head(ratings, db) == before
    return code


WHY = ("--reason", "wrong way round")
NEXT_DAY = "2010-03-06T12:00:00Z"


def small_ledger(ratings: Ratings, path: Path | str) -> str:
    """Two rulesets at positions 1 and 2, games g-1 and c-1 of three at 3 and 4, and g-2 a day later at 5."""
    name = new_ledger(ratings, path)
    take_in(
        ratings, name,
        galactic("g-1", "anna", "ben", "cleo"), catan("c-1", "anna", "ben", "cleo"),
        galactic("g-2", "ben", "anna", at=NEXT_DAY),
    )  # fmt: skip
    return name


def three_games(ratings: Ratings, path: Path | str) -> str:
    """Two rulesets, and at the positions 3 to 5 three games on three days, the last of the other ruleset."""
    name = new_ledger(ratings, path)
    take_in(ratings, name, catan("c-1", "anna", "ben", "cleo", at="2010-03-05T12:00:00Z"))
    take_in(ratings, name, catan("c-2", "cleo", "dora", at="2010-03-06T12:00:00Z"))
    take_in(ratings, name, galactic("g-1", "anna", "ben", at="2010-03-07T12:00:00Z"))
    return name
