"""`publish` and `standings --as-published`: a list stays as it was published, whatever comes later."""

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import WHY, Ratings, catan, head, position, read, take_in
from ledgers import set_clock
from publishing_helpers import BASIC, LISTS, MARCH, NEW_YEAR, YEAR, list_ledger, publish, published

pytestmark = pytest.mark.ledger(make=list_ledger, store="sqlite")


def refused(ratings: Ratings, db: str, *arguments: object) -> str:
    """The code with which publishing is refused: exit 1, told in JSON and in words, nothing is written."""
    before = head(ratings, db)
    result = ratings("publish", *arguments, "--format", "json", db=db)
    (rejected,) = json.loads(result.stdout)["rejected"]
    shown = ratings("publish", *arguments, db=db)
    assert (result.exit_code, shown.exit_code, shown.stdout) == (1, 1, "Nothing was published.\n")
    assert f"{rejected['code']}: {rejected['message']}" in shown.stderr
    assert head(ratings, db) == before
    return str(rejected["code"])


def records(ratings: Ratings, db: str) -> list[dict[str, Any]]:
    """All events, as exported."""
    return [json.loads(line) for line in ratings("export", "events", db=db).stdout.splitlines()]


@pytest.mark.slow_cases
@pytest.mark.parametrize("ladder", LISTS)
def test_published_list_is_recorded_and_shown(ladder: str, ratings: Ratings, ledger_url: str) -> None:
    """Publishing a ladder records its rows, and `--as-published` shows exactly those."""
    list_ledger(ratings, ledger_url)
    before = position(ratings, ledger_url)
    now = read(ratings, ledger_url, "standings", ladder)
    told = publish(ratings, ledger_url, ladder)
    rows, listed = records(ratings, ledger_url)[before:]

    # running points are published as of the instant at which they are published, a month and a year as a whole
    as_of = listed["occurred_at"] if ladder == BASIC else None
    assert told == {
        "ladder": ladder, "ruleset": now["ruleset"], "as_of": as_of, "known_at": before, "rules": None,
        "games": now["games"], "digest": now["digest"], "row_count": len(now["rows"]), "position": before + 2,
        "appended": 2, "existing": 0, "dry_run": False, "rejected": [],
    }  # fmt: skip
    assert (rows["type"], listed["type"], listed["by"], listed["position"]) == (
        "list.rows", "list.published", "editor", before + 2,
    )  # fmt: skip
    assert rows["data"] == {
        "ladder": ladder, "digest": now["digest"], "part": 1, "parts": 1,
        "rows": [{key: value for key, value in row.items() if value is not None} for row in now["rows"]],
    }  # fmt: skip
    assert listed["data"] == {
        "ladder": ladder, "digest": now["digest"], "known_at": before, "ruleset": now["ruleset"],
        "row_count": len(now["rows"]),        "parts": 1, "games": now["games"],
        **({} if as_of is None else {"as_of": as_of}),
    }  # fmt: skip
    source = {"position": before + 2, "event_id": listed["id"], "recorded_at": listed["recorded_at"], "by": "editor"}
    assert published(ratings, ledger_url, ladder) == {**now, "as_of": as_of, "published": source}
    assert ratings("verify", db=ledger_url) == (0, "", "")


def test_published_lists_keep_gold_and_places(db: str, ratings: Ratings) -> None:
    """Monthly and annual lists are published with their gold, places and absent ranks."""
    for ladder in LISTS:
        publish(ratings, db, ladder)
    of_month, of_year = (published(ratings, db, ladder)["rows"] for ladder in (MARCH, YEAR))

    assert [(row["rank"], row["player"], row["gold"]) for row in of_month][:2] == [(1, "anna", 2), (2, "ben", 1)]
    assert [(row["rank"], row["player"]) for row in of_month][2:] == [(None, "cleo")]
    assert [(row["rank"], row["player"], row["points"], row["places"]) for row in of_year] == [
        (1, "anna", "451", [1, 150, 150, 150]), (2, "ben", "452", [2, 150, 150, 150]),
    ]  # fmt: skip


@pytest.mark.slow
def test_published_list_never_changes(db: str, ratings: Ratings) -> None:
    """Later games, corrections, voids and renames change no published list, in any format."""
    forms = [(ladder, form) for ladder in LISTS for form in ("table", "json", "csv")]
    for ladder in LISTS:
        publish(ratings, db, ladder)
    before = {one: ratings("standings", one[0], "--as-published", "--format", one[1], db=db) for one in forms}
    take_in(ratings, db, catan("late", "cleo", "anna", at="2010-03-02T20:00:00Z", city="7"))
    for command in (["correct", "m-1", "ben", "anna"], ["void", "m-8"], ["player", "rename", "ben", "benno"]):
        assert ratings(*command, *(WHY if command[0] != "player" else ()), db=db).exit_code == 0

    assert {one: ratings("standings", one[0], "--as-published", "--format", one[1], db=db) for one in forms} == before
    assert all(result.exit_code == 0 and "ben" in result.stdout for result in before.values())
    assert "benno" in ratings("standings", BASIC, db=db).stdout
    assert ratings("verify", db=db) == (0, "", "")


def test_published_list_shows_its_source(db: str, ratings: Ratings) -> None:
    """A published list names its publisher in the table and its `as_of` and `known_at` in the CSV."""
    known_at = position(ratings, db)
    publish(ratings, db, MARCH)
    publish(ratings, db, BASIC, "--as-of", "2010-03-07")
    table = ratings("standings", MARCH, "--as-published", db=db).stdout.splitlines()
    cells = list(csv.DictReader(io.StringIO(ratings("standings", MARCH, "--as-published", "--format", "csv",
                                                    db=db).stdout)))  # fmt: skip
    played = list(csv.DictReader(io.StringIO(ratings("standings", BASIC, "--as-published", "--format", "csv",
                                                     db=db).stdout)))  # fmt: skip

    assert table[0] == f"{MARCH}: 8 games"
    assert table[1] == f"under catan-monthly@2008-03, known at position {known_at}"
    assert table[2].startswith(f"Published at position {known_at + 2} by editor, ")
    assert [line.split()[:2] for line in table[4:8]] == [["rank", "player"], ["1", "anna"], ["2", "ben"], ["-", "cleo"]]
    assert [(row["rank"], row["player"], row["gold"]) for row in cells] == [
        ("1", "anna", "2"), ("2", "ben", "1"), ("", "cleo", "0"),
    ]  # fmt: skip
    assert {(row["as_of"], row["known_at"], row["rules"]) for row in cells} == {("", str(known_at), "")}
    assert {row["as_of"] for row in played} == {"2010-03-07T22:59:59.999999Z"}
    assert [row["player"] for row in played] == ["anna", "ben"]


def test_published_list_is_chosen_by_time(db: str, ratings: Ratings) -> None:
    """`--as-of` and `--known-at` choose a published list by time played and by what was known."""
    places = {day: publish(ratings, db, BASIC, "--as-of", day)["position"] for day in ("2010-03-02", "2010-03-05")}
    places["whole"] = publish(ratings, db, BASIC)["position"]
    asked = {
        (): "whole", ("--as-of", "2010-03-02"): "2010-03-02", ("--as-of", "2010-03-05"): "2010-03-05",
        ("--as-of", "2010-03-05T23:59:59.999999+01:00"): "2010-03-05",
        ("--known-at", places["2010-03-05"]): "2010-03-05", ("--known-at", places["whole"] - 1): "2010-03-05",
        ("--known-at", places["2010-03-02"]): "2010-03-02",
    }  # fmt: skip
    found = {options: published(ratings, db, BASIC, *options)["published"]["position"] for options in asked}

    assert found == {options: places[which] for options, which in asked.items()}
    for options in (("--as-of", "2010-03-03"), ("--known-at", places["2010-03-02"] - 1)):
        result = ratings("standings", BASIC, "--as-published", *options, db=db)
        assert (result.exit_code, "has been published; see: ratings publish --help" in result.stderr) == (1, True)


def test_as_published_rejects_bad_arguments(db: str, ratings: Ratings) -> None:
    """`--as-published` with `--rules`, or with something that is no ladder, is a usage error."""
    for arguments in ((BASIC, "--rules", "catan-elo@2009-01"), ("nothing/x",), ("catan-elo",)):
        result = ratings("standings", *arguments, "--as-published", db=db)
        assert (result.exit_code, "Traceback" in result.stderr) == (2, False), result


# -- what is refused


@pytest.mark.parametrize(
    ("now", "arguments"),
    [
        ("2010-03-31T21:59:59.999999Z", [MARCH]),
        ("2010-12-31T22:59:59.999999Z", [YEAR]),
        (NEW_YEAR, [MARCH, "--as-of", "2010-03-30"]),
        (NEW_YEAR, [YEAR, "--as-of", "2010-12-30"]),
        (NEW_YEAR, [BASIC, "--as-of", "2011-01-01"]),
        (NEW_YEAR, [BASIC, "--as-of", "2011-01-01T12:00:00Z"]),
    ],
)
def test_running_period_cannot_be_published(
    now: str, arguments: list[str], db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list whose period is not over yet cannot be published."""
    set_clock(monkeypatch, now)

    assert refused(ratings, db, *arguments, "--ignore-clock") == "list-running"


@pytest.mark.parametrize(
    ("now", "arguments"),
    [
        ("2010-03-31T22:00:00Z", [MARCH]),
        ("2010-12-31T23:00:00Z", [YEAR]),
        (NEW_YEAR, [MARCH, "--as-of", "2010-03-31"]),
        (NEW_YEAR, [BASIC, "--as-of", "2011-01-01T11:59:59Z"]),
    ],
)
def test_ended_period_can_be_published(
    now: str, arguments: list[str], db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list can be published from the instant at which its period has ended."""
    set_clock(monkeypatch, now)

    assert publish(ratings, db, *arguments, "--ignore-clock")["position"] == position(ratings, db)


def test_empty_list_cannot_be_published(db: str, ratings: Ratings) -> None:
    """Publishing an empty list is refused, and an unknown ladder is a usage error."""
    assert refused(ratings, db, "catan-elo/domaine") == "list-empty"
    assert refused(ratings, db, BASIC, "--as-of", "2010-02-28") == "list-empty"
    for arguments in (("nothing",), ("catan-elo",), (BASIC, "--as-of", "soon")):
        result = ratings("publish", *arguments, db=db)
        assert (result.exit_code, result.stdout, "Traceback" in result.stderr) == (2, "", False)


@pytest.mark.slow
def test_unchanged_list_is_not_republished(db: str, ratings: Ratings) -> None:
    """A list can only be published again if it differs from the one published last."""
    first = publish(ratings, db, BASIC)
    assert refused(ratings, db, BASIC) == "list-exists"
    assert ratings("void", "m-8", *WHY, db=db).exit_code == 0
    second = publish(ratings, db, BASIC)
    assert refused(ratings, db, BASIC) == "list-exists"
    assert ratings("reinstate", "m-8", *WHY, db=db).exit_code == 0
    third = publish(ratings, db, BASIC)

    assert (first["digest"] != second["digest"], first["digest"]) == (True, third["digest"])
    assert published(ratings, db, BASIC)["published"]["position"] == third["position"]
    assert published(ratings, db, BASIC, "--known-at", third["position"] - 1)["digest"] == second["digest"]
    # the same rows as of a day are another list
    assert publish(ratings, db, BASIC, "--as-of", "2010-03-31")["digest"] == first["digest"]
    assert ratings("verify", db=db) == (0, "", "")


def test_publish_dry_run_writes_nothing(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """A dry run of publishing reports what the real run would and writes nothing."""
    before = hashlib.sha256(Path(db).read_bytes()).hexdigest()
    tried = publish(ratings, db, MARCH, "--dry-run")
    shown = ratings("publish", MARCH, "--dry-run", db=db)
    assert hashlib.sha256(Path(db).read_bytes()).hexdigest() == before
    done = publish(ratings, db, MARCH)

    assert tried == {**done, "position": None, "appended": 0, "dry_run": True}
    assert shown.stdout == (
        f"{MARCH} would be published: 3 rows, 2 ranked (min_games 7), under catan-monthly@2008-03.\n"
        f"digest {done['digest']}\n"
    )
    assert refused(ratings, db, MARCH, "--dry-run") == "list-exists"


# -- withdrawing


@pytest.mark.slow
def test_published_list_is_voided_and_restored(db: str, ratings: Ratings) -> None:
    """Voiding a list brings the previous one back, and voiding that void restores the list."""
    first = publish(ratings, db, BASIC)
    take_in(ratings, db, catan("next", "ben", "anna", at="2010-04-02T12:00:00Z"))
    second = publish(ratings, db, BASIC)

    def void(place: int) -> int:
        result = ratings("void", "--event", place, *WHY, "--format", "json", db=db)
        assert (result.exit_code, json.loads(result.stdout)["changes"]) == (0, []), result
        return position(ratings, db)

    gone = void(second["position"])
    assert published(ratings, db, BASIC)["digest"] == first["digest"]
    void(first["position"])
    assert ratings("standings", BASIC, "--as-published", db=db).exit_code == 1
    assert published(ratings, db, BASIC, "--known-at", gone)["digest"] == first["digest"]
    void(gone)
    assert published(ratings, db, BASIC)["digest"] == second["digest"]
    assert refused(ratings, db, BASIC) == "list-exists"
    void(gone + 2)
    assert publish(ratings, db, BASIC)["digest"] == second["digest"]
    assert ratings("verify", db=db) == (0, "", "")


def test_rows_of_live_list_are_needed(db: str, ratings: Ratings) -> None:
    """Rows cannot be voided while their list stands, but can be once the list is voided."""
    listed = publish(ratings, db, BASIC)["position"]
    rows, before = listed - 1, head(ratings, db)
    result = ratings("void", "--event", rows, *WHY, "--format", "json", db=db)

    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, "still-needed")
    assert head(ratings, db) == before
    assert ratings("void", "--event", listed, *WHY, db=db).exit_code == 0
    assert ratings("void", "--event", rows, *WHY, db=db).exit_code == 0
    assert publish(ratings, db, BASIC)["position"] > listed + 2
    assert ratings("verify", db=db) == (0, "", "")


# -- size, other ledgers


@pytest.mark.slow
def test_long_list_is_split_into_parts(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """A list of thousands of rows is recorded in parts that fit and is shown whole.

    A single part cannot be voided.
    """
    file = tmp_path / "many.csv"
    # no two names are alike, so that the import has nothing to compare
    names = [f"{hashlib.sha256(bytes([number % 256, number // 256])).hexdigest()[:40]} éώ" for number in range(3_000)]
    lines = [
        f"big-{number},2010-03-09T12:00:00Z,catan,basic,{one},{other}\n"
        for number, (one, other) in enumerate(zip(names[::2], names[1::2], strict=True))
    ]
    file.write_text("game_id,occurred_at,game,group,1st,2nd\n" + "".join(lines), encoding="utf-8")
    assert ratings("import", file, db=db).exit_code == 0
    now, before = read(ratings, db, "standings", BASIC), position(ratings, db)
    told = publish(ratings, db, BASIC)
    new = ratings("export", "events", db=db).stdout.splitlines()[before:]

    assert told["row_count"] == len(now["rows"]) == 3_003
    assert len(new) > 5
    assert max(len(line.encode()) for line in new) <= 65_535
    assert [json.loads(line)["data"]["parts"] for line in new] == [len(new) - 1] * len(new)
    shown = published(ratings, db, BASIC)
    assert (shown["rows"], shown["digest"]) == (now["rows"], now["digest"])
    assert ratings("verify", db=db) == (0, "", "")
    # a part alone cannot be withdrawn
    assert ratings("void", "--event", before + 3, *WHY, db=db).exit_code == 1


@pytest.mark.slow
def test_published_lists_survive_restore(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """Published lists survive a restore byte for byte, and an import with the same rows."""
    for ladder in LISTS:
        publish(ratings, db, ladder)
    assert ratings("void", "m-8", *WHY, db=db).exit_code == 0
    publish(ratings, db, BASIC, "--as-of", "2010-03-07")
    lines = ratings("export", "events", db=db).stdout
    file, restored, imported = tmp_path / "all.jsonl", str(tmp_path / "r.db"), str(tmp_path / "i.db")
    file.write_text(lines, encoding="utf-8")
    for name, options in ((restored, ["--restore", "--head", head(ratings, db)]), (imported, [])):
        assert ratings("init", "--no-rules", db=name).exit_code == 0
        assert ratings("import", file, *options, db=name).exit_code == 0

    assert ratings("export", "events", db=restored).stdout == lines
    assert head(ratings, restored) == head(ratings, db)
    for ladder in LISTS:
        shown = ratings("standings", ladder, "--as-published", db=db)
        assert ratings("standings", ladder, "--as-published", db=restored) == shown
        assert published(ratings, imported, ladder)["rows"] == published(ratings, db, ladder)["rows"]
    assert ratings("verify", db=restored) == ratings("verify", db=imported) == (0, "", "")
