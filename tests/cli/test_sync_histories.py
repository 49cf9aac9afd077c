"""Random edits of a random sheet, each imported by `import --sync`, give the ladders of the sheet alone.

The test counts the differences by the texts of the rows; the log must contain exactly as many events.
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
OCCURRENCES: Counter[str] = Counter()
EDITS = {"insert", "delete", "swap", "result", "date", "player", "duplicate", "revert"}
# all of these must occur during the test; else it compares too little
REQUIRED_KINDS = EDITS | {"new", "changed", "vanished", "returned", "reordered", "equal rows", "nothing"}
SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, report_multiple_bugs=False)


class Line(NamedTuple):
    """A row: its time, its players in the order of their places, and its number for sheets with ids."""

    when: str
    players: tuple[str, ...]
    number: int


Sheet = tuple[Line, ...]


def build_line(chance: Random, number: int) -> Line:
    players = chance.sample(NAMES, chance.choice((2, 3)))
    cells = (f"{players[0]}={players[1]}", *players[2:]) if chance.random() < 0.2 else players
    return Line(chance.choice(DAYS), tuple(cells), number)


def edit_sheet(chance: Random, sheet: Sheet, numbers: list[int], earlier_sheets: list[Sheet]) -> tuple[str, Sheet]:
    """Return the kind of one random edit, and the sheet after it."""
    edit = chance.choice(("insert", "insert", "delete", "swap", "result", "date", "player", "duplicate", "revert"))
    lines = list(sheet)
    index = chance.randrange(len(lines))
    if edit == "revert":
        return edit, chance.choice(earlier_sheets)
    if edit == "insert":
        # at any index, so that it is rarely next to lines of its own day
        lines.insert(chance.randrange(len(lines) + 1), build_line(chance, numbers.pop()))
    elif edit == "duplicate":
        lines.insert(chance.choice((index, len(lines))), lines[index]._replace(number=numbers.pop()))
    elif edit == "delete" and len(lines) > 1:
        del lines[index]
    elif edit == "swap":
        other_index = chance.randrange(len(lines))
        lines[index], lines[other_index] = lines[other_index], lines[index]
    elif edit == "result":
        lines[index] = lines[index]._replace(players=lines[index].players[::-1])
    elif edit == "date":
        lines[index] = lines[index]._replace(when=chance.choice(DAYS))
    else:
        lines[index] = lines[index]._replace(players=build_line(chance, 0).players)
    return edit, tuple(lines)


def format_sheet(sheet: Sheet, has_ids: bool) -> str:
    """Return a sheet as a file; without ids of its own it has the columns of an ordinary table."""
    if has_ids:
        rows = [f"g-{line.number},{line.when},catan,{','.join(line.players)}" for line in sheet]
        return "\n".join(["game_id,occurred_at,game,1st,2nd,3rd", *rows]) + "\n"
    return "\n".join(["Date,Game,Winner,2nd,3rd", *(f"{line.when},catan,{','.join(line.players)}" for line in sheet)])


def normalise_line(line: Line) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return the content of a row; the order of tied players has no meaning."""
    return line.when, tuple(tuple(sorted(cell.split("="))) for cell in line.players)


def counts_match_differences(counts: dict[str, Any], was: Sheet, now: Sheet, has_ids: bool) -> bool:
    """Return whether the counts of a sync are those of the differences between the rows of two sheets."""
    added, changed, vanished = counts["new"] + counts["returned"], counts["changed"], counts["vanished"]
    if has_ids:
        old, new = ({line.number: normalise_line(line) for line in sheet} for sheet in (was, now))
        differing = sum(old[number] != new[number] for number in old.keys() & new.keys())
        return (added, changed, vanished) == (len(new.keys() - old.keys()), differing, len(old.keys() - new.keys()))
    left, right = (Counter(map(normalise_line, sheet)) for sheet in (was, now))
    return (added + changed, changed + vanished) == ((right - left).total(), (left - right).total())


def run_import(ratings: Ratings, db: str, *arguments: object) -> dict[str, Any]:
    """Return the report of an import that refuses nothing."""
    result = ratings("import", *arguments, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return dict(json.loads(result.stdout))


def check_step(
    ratings: Ratings, db: str, file: Path, fresh: str, was: Sheet, now: Sheet, has_ids: bool, before: int
) -> int:
    """Sync an edited sheet into a ledger with the head `before`, compare the ladders, and return the new head."""
    file.write_text(format_sheet(now, has_ids), encoding="utf-8")
    report = run_import(ratings, db, file, "--sync", "--yes", "--reason", "edited")
    second_report = run_import(ratings, db, file, "--sync")
    run_import(ratings, fresh, file)
    counts, after = report["sync"], report["head"]
    assert counts_match_differences(counts, was, now, has_ids), (counts, was, now)
    with rl.open(db) as ours, rl.open(fresh) as alone:
        events = ours.at().events().rows[before:]
        for ladder in LADDERS:
            synced, imported_afresh = ours.at().standings(ladder), alone.at().standings(ladder)
            assert (synced.digest, synced.rows) == (imported_afresh.digest, imported_afresh.rows), ladder
    # the log contains each difference, and nothing else
    types = Counter(event.event["type"] for event in events)
    assert types.pop("import.recorded", 0) == (after > before)
    assert types.pop("game.recorded", 0) == counts["new"]
    assert types.pop("game.voided", 0) == counts["vanished"]
    assert types.pop("game.reinstated", 0) == counts["returned"]
    assert 0 <= types.pop("game.corrected", 0) - counts["changed"] - counts["reordered"] <= counts["returned"]
    assert not types
    # a second sync finds no difference
    assert (second_report["appended"], second_report["existing"], second_report["head"]) == (0, len(now), after)
    assert second_report["sync"]["games"] == []
    OCCURRENCES.update(kind for kind in ("new", "changed", "vanished", "returned", "reordered") if counts[kind])
    OCCURRENCES["nothing"] += after == before
    OCCURRENCES["equal rows"] += len({*map(normalise_line, now)}) < len(now)
    return int(after)


def test_synced_sheet_equals_a_fresh_import(ratings: Ratings, tmp_path: Path, at_length: bool) -> None:
    """After each sync the ladders are those of a fresh import, the log contains every edit, and a second sync
    changes nothing."""
    template, file = tmp_path / "template.db", tmp_path / "sheet.csv"
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", db=str(template)).exit_code == 0
    OCCURRENCES.clear()

    @settings(SETTINGS, max_examples=500 if at_length else 8, phases=[Phase.generate, *[Phase.shrink][:at_length]])
    @given(st.integers(0, 2**32), st.booleans())
    def check(seed: int, has_ids: bool) -> None:
        chance = Random(seed)
        db, fresh = (str(tmp_path / name) for name in ("ratings.db", "fresh.db"))
        shutil.copyfile(template, db)
        numbers = list(range(99, 0, -1))
        chance.shuffle(numbers)
        sheet: Sheet = tuple(build_line(chance, numbers.pop()) for _ in range(chance.randrange(1, 9)))
        earlier_sheets = [sheet]
        file.write_text(format_sheet(sheet, has_ids), encoding="utf-8")
        position = run_import(ratings, db, file)["head"]
        for _ in range(4):
            new = sheet
            for _ in range(chance.choice((1, 1, 2, 3))):
                edit, new = edit_sheet(chance, new, numbers, earlier_sheets)
                OCCURRENCES[edit] += 1
            shutil.copyfile(template, fresh)
            position = check_step(ratings, db, file, fresh, sheet, new, has_ids, position)
            sheet = new
            earlier_sheets.append(sheet)

    check()
    assert (REQUIRED_KINDS if at_length else EDITS) <= {kind for kind, number in OCCURRENCES.items() if number}
