"""Random edits of a random sheet, each brought in by `import --sync`: the ladders are those of the sheet alone.

What differs is counted here by the texts of the rows, and the log has to tell exactly as much.
"""

import json
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from correction_helpers import Ratings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ratings_ledger as rl

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

DAYS = ("2024-11-22", "2024-11-22 20:05", "2024-11-23", "2024-12-01")
NAMES = ("Anna", "Ben", "Cleo", "Dora", "Emil")
LADDERS = ("elo-catan/all", "elo-catan/2", "elo-catan/3-4")
DONE: Counter[str] = Counter()
EDITS = {"insert", "delete", "swap", "result", "date", "player", "duplicate", "revert"}
# what must have occurred in the end, or the comparison was about less than it says
WANTED = EDITS | {"new", "changed", "vanished", "returned", "reordered", "equal rows", "nothing"}
SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, report_multiple_bugs=False)


class Line(NamedTuple):
    """A row: when, who in the order of their places, and the number in the sheets that have one."""

    when: str
    players: tuple[str, ...]
    number: int


Sheet = tuple[Line, ...]


def a_line(chance: Random, number: int) -> Line:
    players = chance.sample(NAMES, chance.choice((2, 3)))
    cells = (f"{players[0]}={players[1]}", *players[2:]) if chance.random() < 0.2 else players
    return Line(chance.choice(DAYS), tuple(cells), number)


def edited(chance: Random, sheet: Sheet, numbers: list[int], before: list[Sheet]) -> tuple[str, Sheet]:
    """A sheet after one edit, and which it was."""
    edit = chance.choice(("insert", "insert", "delete", "swap", "result", "date", "player", "duplicate", "revert"))
    lines = list(sheet)
    at = chance.randrange(len(lines))
    if edit == "revert":
        return edit, chance.choice(before)
    if edit == "insert":
        # rarely among others of its day only
        lines.insert(chance.randrange(len(lines) + 1), a_line(chance, numbers.pop()))
    elif edit == "duplicate":
        lines.insert(chance.choice((at, len(lines))), lines[at]._replace(number=numbers.pop()))
    elif edit == "delete" and len(lines) > 1:
        del lines[at]
    elif edit == "swap":
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif edit == "result":
        lines[at] = lines[at]._replace(players=lines[at].players[::-1])
    elif edit == "date":
        lines[at] = lines[at]._replace(when=chance.choice(DAYS))
    else:
        lines[at] = lines[at]._replace(players=a_line(chance, 0).players)
    return edit, tuple(lines)


def written(sheet: Sheet, has_ids: bool) -> str:
    """A sheet as a file; without ids of its own it is a table as people keep it."""
    if has_ids:
        rows = [f"g-{line.number},{line.when},catan,{','.join(line.players)}" for line in sheet]
        return "\n".join(["game_id,occurred_at,game,1st,2nd,3rd", *rows]) + "\n"
    return "\n".join(["Date,Game,Winner,2nd,3rd", *(f"{line.when},catan,{','.join(line.players)}" for line in sheet)])


def content(line: Line) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """What a row says; the order of tied players says nothing."""
    return line.when, tuple(tuple(sorted(cell.split("="))) for cell in line.players)


def are_counted(told: dict[str, Any], was: Sheet, now: Sheet, has_ids: bool) -> bool:
    """Whether the counts of a sync are those of the differences between the rows of two sheets."""
    back, changed, gone = told["new"] + told["returned"], told["changed"], told["vanished"]
    if has_ids:
        old, new = ({line.number: content(line) for line in sheet} for sheet in (was, now))
        both = sum(old[number] != new[number] for number in old.keys() & new.keys())
        return (back, changed, gone) == (len(new.keys() - old.keys()), both, len(old.keys() - new.keys()))
    left, right = (Counter(map(content, sheet)) for sheet in (was, now))
    return (back + changed, changed + gone) == ((right - left).total(), (left - right).total())


def imported(ratings: Ratings, db: str, *arguments: object) -> dict[str, Any]:
    """What an import that refuses nothing tells."""
    result = ratings("import", *arguments, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return dict(json.loads(result.stdout))


def check_step(
    ratings: Ratings, db: str, file: Path, fresh: str, was: Sheet, now: Sheet, has_ids: bool, before: int
) -> int:  # fmt: skip
    """Bring an edited sheet into a ledger with its head there, and compare; returns its head then."""
    file.write_text(written(now, has_ids), encoding="utf-8")
    first = imported(ratings, db, file, "--sync", "--yes", "--reason", "edited")
    again = imported(ratings, db, file, "--sync")
    imported(ratings, fresh, file)
    told, after = first["sync"], first["head"]
    assert are_counted(told, was, now, has_ids), (told, was, now)
    with rl.open(db) as ours, rl.open(fresh) as alone:
        events = ours.at().events().rows[before:]
        for ladder in LADDERS:
            there, here = ours.at().standings(ladder), alone.at().standings(ladder)
            assert (there.digest, there.rows) == (here.digest, here.rows), ladder
    # the log tells each of them, and nothing else
    types = Counter(event.event["type"] for event in events)
    assert types.pop("import.recorded", 0) == (after > before)
    assert types.pop("game.recorded", 0) == told["new"]
    assert types.pop("game.voided", 0) == told["vanished"]
    assert types.pop("game.reinstated", 0) == told["returned"]
    assert 0 <= types.pop("game.corrected", 0) - told["changed"] - told["reordered"] <= told["returned"]
    assert not types
    # once more nothing differs
    assert (again["appended"], again["existing"], again["head"], again["sync"]["games"]) == (0, len(now), after, [])
    DONE.update(kind for kind in ("new", "changed", "vanished", "returned", "reordered") if told[kind])
    DONE["nothing"] += after == before
    DONE["equal rows"] += len({*map(content, now)}) < len(now)
    return int(after)


def test_edited_sheet_equals_a_fresh_one(ratings: Ratings, tmp_path: Path, at_length: bool) -> None:
    """After each sync the ladders are those of the sheet imported afresh, the log tells every edit, and a second sync
    changes nothing."""
    template, file = tmp_path / "template.db", tmp_path / "sheet.csv"
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", db=str(template)).exit_code == 0
    DONE.clear()

    @settings(SETTINGS, max_examples=500 if at_length else 8, phases=[Phase.generate, *[Phase.shrink][:at_length]])
    @given(st.integers(0, 2**32), st.booleans())
    def check(seed: int, has_ids: bool) -> None:
        chance = Random(seed)
        db, fresh = (str(tmp_path / name) for name in ("ratings.db", "fresh.db"))
        shutil.copyfile(template, db)
        numbers = list(range(99, 0, -1))
        chance.shuffle(numbers)
        sheet: Sheet = tuple(a_line(chance, numbers.pop()) for _ in range(chance.randrange(1, 9)))
        before = [sheet]
        file.write_text(written(sheet, has_ids), encoding="utf-8")
        position = imported(ratings, db, file)["head"]
        for _ in range(4):
            new = sheet
            for _ in range(chance.choice((1, 1, 2, 3))):
                edit, new = edited(chance, new, numbers, before)
                DONE[edit] += 1
            shutil.copyfile(template, fresh)
            position = check_step(ratings, db, file, fresh, sheet, new, has_ids, position)
            sheet = new
            before.append(sheet)

    check()
    assert (WANTED if at_length else EDITS) <= {kind for kind, number in DONE.items() if number}
