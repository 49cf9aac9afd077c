"""The page on privacy: its script, what a rename leaves behind, and a ledger that is written anew without a name."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from console_blocks import write_files

pytestmark = pytest.mark.slow

Ratings = Callable[..., Any]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
SEASON = ROOT / "examples" / "winter-league.csv"
LADDER = "elo-catan/all"


def make_season_ledger(ratings: Ratings, db: str, season: Path) -> str:
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", "--by", "m-4050", db=db).exit_code == 0
    assert ratings("import", season, "--set", "game=catan", "--by", "m-4050", db=db).exit_code == 0
    return db


def read_points(ratings: Ratings, db: str, *axes: object) -> dict[str, str]:
    rows = json.loads(ratings("standings", LADDER, *axes, "--format", "json", db=db).stdout)["rows"]
    return {row["player"]: row["points"] for row in rows}


def restore_export(ratings: Ratings, lines: str, folder: Path, name: str) -> Any:
    """Restore a changed export into a new ledger; return (its path, the result of the restore)."""
    (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    db = str(folder / f"{name}.db")
    assert ratings("init", "--no-rules", db=db).exit_code == 0
    return db, ratings("import", "--restore", "--incomplete", folder / f"{name}.jsonl", db=db)


def replace_name(text: str, by: str) -> str:
    """Replace the name as the page's `sed` does."""
    assert 'sed \'s/"anouk"/"m-0"/g\'' in PAGE
    return text.replace('"anouk"', f'"{by}"')


def test_script_replaces_names_with_ids(tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's script replaces names in a table with ids and refuses unknown names; the points stay the same."""
    write_files(PAGE, tmp_path)
    command = [sys.executable, "with_ids.py", "names.csv", str(SEASON)]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    (tmp_path / "with-ids.csv").write_bytes(process.stdout)
    with (tmp_path / "names.csv").open(encoding="utf-8", newline="") as file:
        ids = {row["name"]: row["id"] for row in csv.DictReader(file)}
    by_name = read_points(ratings, make_season_ledger(ratings, str(tmp_path / "names.db"), SEASON))
    by_id = read_points(ratings, make_season_ledger(ratings, str(tmp_path / "ids.db"), tmp_path / "with-ids.csv"))
    assert by_id == {ids[name]: value for name, value in by_name.items()}
    log = ratings("export", "events", db=str(tmp_path / "ids.db")).stdout
    assert [name for name in ids if name in log] == []

    names = (tmp_path / "names.csv").read_text(encoding="utf-8").replace("anouk", "somebody")
    (tmp_path / "names.csv").write_text(names, encoding="utf-8")
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert "'anouk' is not in names.csv" in refused.stderr.decode()


def test_renamed_name_stays_where_page_says(store: str, ratings: Ratings) -> None:
    """After a rename, the old name remains exactly where the page says."""
    make_season_ledger(ratings, store, SEASON)
    assert ratings("publish", LADDER, "--as-of", "2024-12-31", db=store).exit_code == 0
    assert ratings("rebuild", db=store).exit_code == 0
    assert ratings("player", "rename", "anouk", "m-4039", "--reason", "no name", db=store).exit_code == 0
    now = read_points(ratings, store)
    assert ("anouk" in now, "m-4039" in now) == (False, True)
    assert "anouk" in read_points(ratings, store, "--known-at", 92)
    assert "anouk" in ratings("standings", LADDER, "--as-published", db=store).stdout
    last = ratings("export", "events", db=store).stdout.splitlines()[-1]
    assert json.loads(last)["data"] == {"player": "anouk", "new_player": "m-4039", "reason": "no name"}
    assert ratings("void", "wl-87", "--reason", "a test", db=store).exit_code == 0
    assert "anouk" in ratings("log", "wl-87", db=store).stdout


def test_restored_export_without_the_name(tmp_path: Path, ratings: Ratings) -> None:
    """A restored export without the name keeps the points; only heads from before its first game with the name hold."""
    db = make_season_ledger(ratings, str(tmp_path / "ratings.db"), SEASON)
    last_head = json.loads(ratings("status", "--format", "json", db=db).stdout)["head"]
    log = ratings("export", "events", db=db).stdout
    without, result = restore_export(ratings, replace_name(log, "m-0"), tmp_path, "without")
    assert result.exit_code == 0
    assert ratings("verify", db=without) == (0, "", "")
    assert "anouk" not in ratings("export", "events", db=without).stdout
    before, after = read_points(ratings, db), read_points(ratings, without)
    assert after == {**{name: value for name, value in before.items() if name != "anouk"}, "m-0": before["anouk"]}
    # heads from after the first event with the name are lost
    assert ratings("verify", "--head", last_head, db=without).exit_code == 1
    first = next(json.loads(line)["position"] for line in log.splitlines() if '"anouk"' in line)
    early, _ = restore_export(ratings, "".join(log.splitlines(True)[: first - 1]), tmp_path, "early")
    early_head = json.loads(ratings("status", "--format", "json", db=early).stdout)["head"]
    assert ratings("verify", "--head", early_head, db=without) == (0, "", "")


def test_warnings_about_rewriting_hold(tmp_path: Path, ratings: Ratings) -> None:
    """A rewritten export with a rename to the same id or a published list is refused, as the page warns."""
    db = make_season_ledger(ratings, str(tmp_path / "ratings.db"), SEASON)
    assert ratings("player", "rename", "anouk", "m-4039", "--reason", "no name", db=db).exit_code == 0
    renamed = ratings("export", "events", db=db).stdout
    _, refused = restore_export(ratings, replace_name(renamed, "m-4039"), tmp_path, "same")
    assert (refused.exit_code, "restore-mismatch" in refused.stderr) == (1, True)
    _, result = restore_export(ratings, replace_name(renamed, "m-0"), tmp_path, "other")
    assert result.exit_code == 0

    db_with_list = make_season_ledger(ratings, str(tmp_path / "db_with_list.db"), SEASON)
    assert ratings("publish", LADDER, "--as-of", "2024-12-31", db=db_with_list).exit_code == 0
    _, refused = restore_export(
        ratings, replace_name(ratings("export", "events", db=db_with_list).stdout, "m-0"), tmp_path, "lists"
    )
    assert (refused.exit_code, "restore-mismatch" in refused.stderr) == (1, True)
    event = json.loads(ratings("export", "events", db=db_with_list).stdout.splitlines()[-1])["id"]
    assert ratings("void", "--event", event, "--reason", "to be published anew", db=db_with_list).exit_code == 0
    void, _ = restore_export(
        ratings, replace_name(ratings("export", "events", db=db_with_list).stdout, "m-0"), tmp_path, "void"
    )
    assert ratings("verify", db=void) == (0, "", "")
