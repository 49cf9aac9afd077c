"""`publish` and `standings --as-published`: a published list stays the same whatever is recorded later."""

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    REASON_OPTION,
    Ratings,
    append_lines,
    build_catan_line,
    read_head,
    read_json,
    read_position,
)
from ledgers import set_clock
from publishing_helpers import (
    BASIC,
    LISTS,
    MARCH,
    NEW_YEAR,
    YEAR,
    create_published_ledger,
    publish,
    read_published_list,
)

pytestmark = pytest.mark.ledger(make=create_published_ledger, store="sqlite")


def get_publish_refusal(ratings: Ratings, db: str, *arguments: object) -> str:
    """Run `publish`, which must be refused, and return the code.

    The command must exit with 1, name the code in JSON and in the readable message, and write nothing.
    """
    before = read_head(ratings, db)
    result = ratings("publish", *arguments, "--format", "json", db=db)
    (rejected,) = json.loads(result.stdout)["rejected"]
    readable_result = ratings("publish", *arguments, db=db)
    assert (result.exit_code, readable_result.exit_code, readable_result.stdout) == (1, 1, "Nothing was published.\n")
    assert f"{rejected['code']}: {rejected['message']}" in readable_result.stderr
    assert read_head(ratings, db) == before
    return str(rejected["code"])


def list_records(ratings: Ratings, db: str) -> list[dict[str, Any]]:
    """Return all events, as exported."""
    return [json.loads(line) for line in ratings("export", "events", db=db).stdout.splitlines()]


@pytest.mark.slow_cases
@pytest.mark.parametrize("ladder", LISTS)
def test_published_list_is_recorded_and_shown(ladder: str, ratings: Ratings, ledger_url: str) -> None:
    """Publishing a ladder records its rows, and --as-published shows exactly those."""
    create_published_ledger(ratings, ledger_url)
    before = read_position(ratings, ledger_url)
    standings = read_json(ratings, ledger_url, "standings", ladder)
    report = publish(ratings, ledger_url, ladder)
    rows, list_event = list_records(ratings, ledger_url)[before:]

    # running points are published as of the instant of publication, a month or a year as a whole
    as_of = list_event["occurred_at"] if ladder == BASIC else None
    assert report == {
        "ladder": ladder, "ruleset": standings["ruleset"], "as_of": as_of, "known_at": before, "rules": None,
        "games": standings["games"], "digest": standings["digest"], "row_count": len(standings["rows"]),
        "position": before + 2, "appended": 2, "existing": 0, "dry_run": False, "rejected": [],
    }  # fmt: skip
    assert (rows["type"], list_event["type"], list_event["by"], list_event["position"]) == (
        "list.rows",
        "list.published",
        "editor",
        before + 2,
    )
    assert rows["data"] == {
        "ladder": ladder,
        "digest": standings["digest"],
        "part": 1,
        "parts": 1,
        "rows": [{key: value for key, value in row.items() if value is not None} for row in standings["rows"]],
    }
    assert list_event["data"] == {
        "ladder": ladder,
        "digest": standings["digest"],
        "known_at": before,
        "ruleset": standings["ruleset"],
        "row_count": len(standings["rows"]),
        "parts": 1,
        "games": standings["games"],
        **({} if as_of is None else {"as_of": as_of}),
    }
    source = {
        "position": before + 2,
        "event_id": list_event["id"],
        "recorded_at": list_event["recorded_at"],
        "by": "editor",
    }
    assert read_published_list(ratings, ledger_url, ladder) == {**standings, "as_of": as_of, "published": source}
    assert ratings("verify", db=ledger_url) == (0, "", "")


def test_published_lists_keep_gold_and_places(db: str, ratings: Ratings) -> None:
    """Monthly and annual lists are published with their gold, places and absent ranks."""
    for ladder in LISTS:
        publish(ratings, db, ladder)
    month_rows, year_rows = (read_published_list(ratings, db, ladder)["rows"] for ladder in (MARCH, YEAR))

    assert [(row["rank"], row["player"], row["gold"]) for row in month_rows][:2] == [(1, "anna", 2), (2, "ben", 1)]
    assert [(row["rank"], row["player"]) for row in month_rows][2:] == [(None, "cleo")]
    assert [(row["rank"], row["player"], row["points"], row["places"]) for row in year_rows] == [
        (1, "anna", "451", [1, 150, 150, 150]),
        (2, "ben", "452", [2, 150, 150, 150]),
    ]


@pytest.mark.slow
def test_published_list_never_changes(db: str, ratings: Ratings) -> None:
    """Later games, corrections, voids and renames change no published list, in any format."""

    def show_lists() -> list[Any]:
        return [
            ratings("standings", ladder, "--as-published", "--format", output_format, db=db)
            for ladder in LISTS
            for output_format in ("table", "json", "csv")
        ]

    for ladder in LISTS:
        publish(ratings, db, ladder)
    before = show_lists()
    append_lines(ratings, db, build_catan_line("late", "cleo", "anna", at="2010-03-02T20:00:00Z", city="7"))
    for command in (["correct", "m-1", "ben", "anna"], ["void", "m-8"], ["player", "rename", "ben", "benno"]):
        assert ratings(*command, *(REASON_OPTION if command[0] != "player" else ()), db=db).exit_code == 0

    assert show_lists() == before
    assert all(result.exit_code == 0 and "ben" in result.stdout for result in before)
    assert "benno" in ratings("standings", BASIC, db=db).stdout
    assert ratings("verify", db=db) == (0, "", "")


def test_published_list_shows_its_source(db: str, ratings: Ratings) -> None:
    """A published list names its publisher in the table and its `as_of` and `known_at` in the CSV."""
    known_at = read_position(ratings, db)
    publish(ratings, db, MARCH)
    publish(ratings, db, BASIC, "--as-of", "2010-03-07")
    table = ratings("standings", MARCH, "--as-published", db=db).stdout.splitlines()
    month_rows = list(
        csv.DictReader(io.StringIO(ratings("standings", MARCH, "--as-published", "--format", "csv", db=db).stdout))
    )
    basic_rows = list(
        csv.DictReader(io.StringIO(ratings("standings", BASIC, "--as-published", "--format", "csv", db=db).stdout))
    )

    assert table[0] == f"{MARCH}: 8 games"
    assert table[1] == f"under catan-monthly@2008-03, known at position {known_at}"
    assert table[2].startswith(f"Published at position {known_at + 2} by editor, ")
    assert [line.split()[:2] for line in table[4:8]] == [["rank", "player"], ["1", "anna"], ["2", "ben"], ["-", "cleo"]]
    assert [(row["rank"], row["player"], row["gold"]) for row in month_rows] == [
        ("1", "anna", "2"),
        ("2", "ben", "1"),
        ("", "cleo", "0"),
    ]
    assert {(row["as_of"], row["known_at"], row["rules"]) for row in month_rows} == {("", str(known_at), "")}
    assert {row["as_of"] for row in basic_rows} == {"2010-03-07T22:59:59.999999Z"}
    assert [row["player"] for row in basic_rows] == ["anna", "ben"]


def test_published_list_is_chosen_by_time(db: str, ratings: Ratings) -> None:
    """--as-of and --known-at choose a published list by played time and by position."""
    positions_by_list = {
        day: publish(ratings, db, BASIC, "--as-of", day)["position"] for day in ("2010-03-02", "2010-03-05")
    }
    positions_by_list["whole"] = publish(ratings, db, BASIC)["position"]
    list_by_options = {
        (): "whole",
        ("--as-of", "2010-03-02"): "2010-03-02",
        ("--as-of", "2010-03-05"): "2010-03-05",
        ("--as-of", "2010-03-05T23:59:59.999999+01:00"): "2010-03-05",
        ("--known-at", positions_by_list["2010-03-05"]): "2010-03-05",
        ("--known-at", positions_by_list["whole"] - 1): "2010-03-05",
        ("--known-at", positions_by_list["2010-03-02"]): "2010-03-02",
    }
    positions = {
        options: read_published_list(ratings, db, BASIC, *options)["published"]["position"]
        for options in list_by_options
    }

    assert positions == {options: positions_by_list[name] for options, name in list_by_options.items()}
    for options in (("--as-of", "2010-03-03"), ("--known-at", positions_by_list["2010-03-02"] - 1)):
        result = ratings("standings", BASIC, "--as-published", *options, db=db)
        assert (result.exit_code, "is published; see: ratings publish --help" in result.stderr) == (1, True)


def test_as_published_rejects_bad_arguments(db: str, ratings: Ratings) -> None:
    """--as-published with --rules, or with something that is not a ladder, is a usage error."""
    for arguments in ((BASIC, "--rules", "catan-elo@2009-01"), ("nothing/x",), ("catan-elo",)):
        result = ratings("standings", *arguments, "--as-published", db=db)
        assert (result.exit_code, "Traceback" in result.stderr) == (2, False), result


# rejections


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
    """A list whose period is not over cannot be published."""
    set_clock(monkeypatch, now)

    assert get_publish_refusal(ratings, db, *arguments, "--ignore-clock") == "list-running"


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

    assert publish(ratings, db, *arguments, "--ignore-clock")["position"] == read_position(ratings, db)


def test_empty_list_cannot_be_published(db: str, ratings: Ratings) -> None:
    """Publishing an empty list is refused; a name that is not a ladder's, or an invalid date, is a usage error."""
    assert get_publish_refusal(ratings, db, "catan-elo/domaine") == "list-empty"
    assert get_publish_refusal(ratings, db, BASIC, "--as-of", "2010-02-28") == "list-empty"
    for arguments in (("nothing",), ("catan-elo",), (BASIC, "--as-of", "soon")):
        result = ratings("publish", *arguments, db=db)
        assert (result.exit_code, result.stdout, "Traceback" in result.stderr) == (2, "", False)


@pytest.mark.slow
def test_unchanged_list_is_not_republished(db: str, ratings: Ratings) -> None:
    """A list can be published again only if it differs from the one published last."""
    first = publish(ratings, db, BASIC)
    assert get_publish_refusal(ratings, db, BASIC) == "list-exists"
    assert ratings("void", "m-8", *REASON_OPTION, db=db).exit_code == 0
    second = publish(ratings, db, BASIC)
    assert get_publish_refusal(ratings, db, BASIC) == "list-exists"
    assert ratings("reinstate", "m-8", *REASON_OPTION, db=db).exit_code == 0
    third = publish(ratings, db, BASIC)

    assert (first["digest"] != second["digest"], first["digest"]) == (True, third["digest"])
    assert read_published_list(ratings, db, BASIC)["published"]["position"] == third["position"]
    assert read_published_list(ratings, db, BASIC, "--known-at", third["position"] - 1)["digest"] == second["digest"]
    # the same rows with --as-of are a separate list
    assert publish(ratings, db, BASIC, "--as-of", "2010-03-31")["digest"] == first["digest"]
    assert ratings("verify", db=db) == (0, "", "")


def test_publish_dry_run_writes_nothing(db: str, ratings: Ratings) -> None:
    """A dry run of publishing reports the result of the real run and writes nothing."""
    before = hashlib.sha256(Path(db).read_bytes()).hexdigest()
    preview = publish(ratings, db, MARCH, "--dry-run")
    result = ratings("publish", MARCH, "--dry-run", db=db)
    assert hashlib.sha256(Path(db).read_bytes()).hexdigest() == before
    report = publish(ratings, db, MARCH)

    assert preview == {**report, "position": None, "appended": 0, "dry_run": True}
    assert result.stdout == (
        f"{MARCH} would be published: 3 rows, 2 ranked (min_games 7), under catan-monthly@2008-03.\n"
        f"digest {report['digest']}\n"
    )
    assert get_publish_refusal(ratings, db, MARCH, "--dry-run") == "list-exists"


# voids


@pytest.mark.slow
def test_published_list_is_voided_and_restored(db: str, ratings: Ratings) -> None:
    """Voiding a list brings the previous one back, and voiding that void restores the list.

    A list that is voided again can be published again.
    """
    first = publish(ratings, db, BASIC)
    append_lines(ratings, db, build_catan_line("next", "ben", "anna", at="2010-04-02T12:00:00Z"))
    second = publish(ratings, db, BASIC)

    def void_event(position: int) -> int:
        result = ratings("void", "--event", position, *REASON_OPTION, "--format", "json", db=db)
        assert (result.exit_code, json.loads(result.stdout)["changes"]) == (0, []), result
        return read_position(ratings, db)

    void_position = void_event(second["position"])
    assert read_published_list(ratings, db, BASIC)["digest"] == first["digest"]
    void_event(first["position"])
    assert ratings("standings", BASIC, "--as-published", db=db).exit_code == 1
    assert read_published_list(ratings, db, BASIC, "--known-at", void_position)["digest"] == first["digest"]
    void_of_void_position = void_event(void_position)
    assert read_published_list(ratings, db, BASIC)["digest"] == second["digest"]
    assert get_publish_refusal(ratings, db, BASIC) == "list-exists"
    void_event(void_of_void_position)
    assert publish(ratings, db, BASIC)["digest"] == second["digest"]
    assert ratings("verify", db=db) == (0, "", "")


def test_rows_of_live_list_are_needed(db: str, ratings: Ratings) -> None:
    """Rows cannot be voided while their list is in force, and can be once it is voided."""
    list_position = publish(ratings, db, BASIC)["position"]
    rows, before = list_position - 1, read_head(ratings, db)
    result = ratings("void", "--event", rows, *REASON_OPTION, "--format", "json", db=db)

    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, "still-needed")
    assert read_head(ratings, db) == before
    assert ratings("void", "--event", list_position, *REASON_OPTION, db=db).exit_code == 0
    assert ratings("void", "--event", rows, *REASON_OPTION, db=db).exit_code == 0
    assert publish(ratings, db, BASIC)["position"] > list_position + 2
    assert ratings("verify", db=db) == (0, "", "")


# size, other ledgers


@pytest.mark.slow
def test_long_list_is_split_into_parts(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """A list of thousands of rows is recorded in parts that fit and is shown as a whole.

    A single part cannot be voided.
    """
    file = tmp_path / "many.csv"
    # no two names are close, so that the import is fast
    names = [f"{hashlib.sha256(bytes([number % 256, number // 256])).hexdigest()[:40]} éώ" for number in range(3_000)]
    lines = [
        f"big-{number},2010-03-09T12:00:00Z,catan,basic,{first},{second}\n"
        for number, (first, second) in enumerate(zip(names[::2], names[1::2], strict=True))
    ]
    file.write_text("game_id,occurred_at,game,group,1st,2nd\n" + "".join(lines), encoding="utf-8")
    assert ratings("import", file, db=db).exit_code == 0
    standings, before = read_json(ratings, db, "standings", BASIC), read_position(ratings, db)
    report = publish(ratings, db, BASIC)
    new_lines = ratings("export", "events", db=db).stdout.splitlines()[before:]

    assert report["row_count"] == len(standings["rows"]) == 3_003
    assert len(new_lines) > 5
    assert max(len(line.encode()) for line in new_lines) <= 65_535
    assert [json.loads(line)["data"]["parts"] for line in new_lines] == [len(new_lines) - 1] * len(new_lines)
    published_list = read_published_list(ratings, db, BASIC)
    assert (published_list["rows"], published_list["digest"]) == (standings["rows"], standings["digest"])
    assert ratings("verify", db=db) == (0, "", "")
    # a part alone cannot be withdrawn
    assert ratings("void", "--event", before + 3, *REASON_OPTION, db=db).exit_code == 1


@pytest.mark.slow
def test_published_lists_survive_restore(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """A restore keeps published lists byte for byte; an import keeps their rows."""
    for ladder in LISTS:
        publish(ratings, db, ladder)
    assert ratings("void", "m-8", *REASON_OPTION, db=db).exit_code == 0
    publish(ratings, db, BASIC, "--as-of", "2010-03-07")
    lines = ratings("export", "events", db=db).stdout
    file, restored, imported = tmp_path / "all.jsonl", str(tmp_path / "r.db"), str(tmp_path / "i.db")
    file.write_text(lines, encoding="utf-8")
    for name, options in ((restored, ["--restore", "--head", read_head(ratings, db)]), (imported, [])):
        assert ratings("init", "--no-rules", db=name).exit_code == 0
        assert ratings("import", file, *options, db=name).exit_code == 0

    assert ratings("export", "events", db=restored).stdout == lines
    assert read_head(ratings, restored) == read_head(ratings, db)
    for ladder in LISTS:
        result = ratings("standings", ladder, "--as-published", db=db)
        assert ratings("standings", ladder, "--as-published", db=restored) == result
        assert (
            read_published_list(ratings, imported, ladder)["rows"] == read_published_list(ratings, db, ladder)["rows"]
        )
    assert ratings("verify", db=restored) == ratings("verify", db=imported) == (0, "", "")
