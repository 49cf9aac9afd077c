"""`publish --due`: one command publishes the lists of all finished months and years, each once."""

from collections.abc import Callable
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
from own_rules import load_built_in_rule, substitute_rule
from publishing_helpers import BASIC, MARCH, YEAR, create_published_ledger, publish, read_published_list

APRIL = MARCH.replace("03", "04")
DUE = ("publish", "--due", "--by", "editor")


def list_ladders(report: dict[str, Any]) -> list[str]:
    """Return the ladders that a report of due lists names."""
    return [row["ladder"] for row in report["rows"]]


@pytest.mark.slow_cases
def test_due_lists_are_published_once(ratings: Ratings, ledger_url: str) -> None:
    """Each list whose period is over is published once, with the same rows as its standings."""
    create_published_ledger(ratings, ledger_url)
    append_lines(ratings, ledger_url, build_catan_line("a-1", "ben", "anna", at="2010-04-02T12:00:00Z", city="7"))
    before = read_head(ratings, ledger_url)
    dry = publish(ratings, ledger_url, "--due", "--dry-run")
    assert (list_ladders(dry), read_head(ratings, ledger_url)) == ([MARCH, APRIL, YEAR], before)
    assert all(row["position"] is None and row["dry_run"] for row in dry["rows"])

    known_at = read_position(ratings, ledger_url)
    report = publish(ratings, ledger_url, "--due")
    assert (list_ladders(report), report["known_at"], report["dry_run"]) == ([MARCH, APRIL, YEAR], known_at, False)
    assert [row["position"] for row in report["rows"]] == [known_at + 2, known_at + 4, known_at + 6]
    for row in report["rows"]:
        published_list = read_published_list(ratings, ledger_url, row["ladder"])
        standings = read_json(ratings, ledger_url, "standings", row["ladder"])
        assert published_list["rows"] == standings["rows"]
        assert (row["digest"], row["row_count"]) == (standings["digest"], len(standings["rows"]))
    assert ratings("verify", db=ledger_url) == (0, "", "")

    after = read_head(ratings, ledger_url)
    assert publish(ratings, ledger_url, "--due")["rows"] == []
    assert ratings(*DUE, db=ledger_url) == (0, "No list is due.\n", "")
    assert read_head(ratings, ledger_url) == after


def test_running_month_is_not_due(
    copy_ledger_file: Callable[..., str], ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list is not due until its period is over.

    A month ends in the time zone of its ruleset, Berlin; the year continues.
    """
    db = copy_ledger_file(create_published_ledger)
    for instant, due_lists in (("2010-03-31T21:59:59Z", []), ("2010-03-31T22:00:01Z", [MARCH])):
        set_clock(monkeypatch, instant)
        assert list_ladders(publish(ratings, db, "--due", "--ignore-clock", "--dry-run")) == due_lists


def test_voided_publication_is_due_again(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A published list that would now differ is not due, but one whose publication was voided is."""
    db = copy_ledger_file(create_published_ledger)
    publish(ratings, db, MARCH)
    append_lines(ratings, db, build_catan_line("late", "cleo", "anna", at="2010-03-02T20:00:00Z", city="7"))
    assert list_ladders(publish(ratings, db, "--due")) == [YEAR]
    publication = read_published_list(ratings, db, MARCH)["published"]
    assert ratings("void", "--event", publication["event_id"], *REASON_OPTION, db=db).exit_code == 0
    assert list_ladders(publish(ratings, db, "--due")) == [MARCH]
    assert "late" in ratings("history", "cleo", MARCH, db=db).stdout
    assert ratings("verify", db=db) == (0, "", "")


def test_due_lists_are_taken_back_together(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """One `undo` takes back all lists that one command published, although each had a transaction of its own."""
    db = copy_ledger_file(create_published_ledger)
    assert list_ladders(publish(ratings, db, "--due")) == [MARCH, YEAR]
    assert ratings("undo", "--yes", "--by", "editor", db=db).exit_code == 0
    for ladder in (MARCH, YEAR):
        assert ratings("standings", ladder, "--as-published", db=db).exit_code == 1


def test_due_lists_have_a_line_each(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Each due list has a line of its own in the text output, in a dry run and when published."""
    db = copy_ledger_file(create_published_ledger)
    at = read_position(ratings, db)
    assert ratings(*DUE, "--dry-run", db=db).stdout == (
        f"{MARCH} would be published: 3 rows, 2 ranked (min_games 7), under catan-monthly@2008-03.\n"
        f"{YEAR} would be published: 2 rows under catan-annual@2008-03.\n"
    )
    assert ratings(*DUE, db=db).stdout == (
        f"{MARCH} is published at position {at + 2}: 3 rows, 2 ranked (min_games 7), under catan-monthly@2008-03.\n"
        f"{YEAR} is published at position {at + 4}: 2 rows under catan-annual@2008-03.\n"
    )


def test_failing_rule_publishes_nothing(
    copy_ledger_file: Callable[..., str], ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a rule fails, the failure is reported and nothing is published."""
    db = copy_ledger_file(create_published_ledger)
    before = read_head(ratings, db)

    def fail_check(*arguments: object) -> str | None:
        raise ZeroDivisionError("of the rule")

    rule = load_built_in_rule("catan-points/1")._replace(check=fail_check)
    substitute_rule(monkeypatch, rule)
    result = ratings(*DUE, db=db)
    assert (result.exit_code, result.stdout, "bug" in result.stderr) == (1, "", False)
    assert "the rule failed" in result.stderr
    assert read_head(ratings, db) == before


@pytest.mark.parametrize("arguments", [(), ("--due", MARCH), ("--due", "--as-of", "2010-03-31"), ("--as-of", "2010")])
def test_ladder_or_due_is_required(
    arguments: tuple[str, ...], copy_ledger_file: Callable[..., str], ratings: Ratings
) -> None:
    """Publishing needs either a ladder or --due; neither, both, or --as-of without a ladder is a usage error."""
    result = ratings("publish", *arguments, db=copy_ledger_file(create_published_ledger))
    assert (result.exit_code, result.stdout, "--due" in result.stderr) == (2, "", True)


def test_running_points_are_never_due(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A ladder that is not a list of a period is never among the due lists."""
    db = copy_ledger_file(create_published_ledger)
    assert read_json(ratings, db, "standings", BASIC)["rows"]
    assert BASIC not in list_ladders(publish(ratings, db, "--due"))


def test_list_without_ranked_players_is_due(tmp_path: Path, ratings: Ratings) -> None:
    """A list without ranked players is due, and its line has the minimum that they lack.

    An incomplete name of a list is refused with the members of a name and the newest list.
    """
    db = str(tmp_path / "catan.db")
    (table := tmp_path / "catan.csv").write_text("Date,1st,2nd,3rd\n2010-03-05,anna,ben,cleo\n")
    assert ratings("init", db=db).exit_code == 0
    labels = ("--set", "game=catan", "--set", "city=Graz", "--set", "group=A")
    assert ratings("import", table, *labels, db=db).exit_code == 0
    output = " ".join(ratings("publish", "--due", "--dry-run", db=db).stdout.split())
    assert (
        "catan-monthly/Graz/A/2010-03 would be published: 3 rows, 0 ranked (min_games 7), under catan-monthly" in output
    )
    refused = ratings("publish", "catan-monthly", db=db).stderr
    assert "are named catan-monthly/CITY/GROUP/YYYY-MM; the newest is catan-monthly/Graz/A/2010-03\n" in refused
    assert refused.count("the newest is") == 1
    assert "catan-elo/GROUP; there is catan-elo/A\n" in ratings("publish", "catan-elo", db=db).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "name a LADDER, or publish all due lists with --due"),
        ((MARCH, "--due"), f"--due publishes all due lists; leave out --due to publish only {MARCH}"),
        (
            ("--due", "--as-of", "2010"),
            "--due publishes each list as it stood at its own end; leave out --as-of, or name a LADDER",
        ),
        (("--every", "month"), "--every schedules a LADDER; name one"),
        (("--due", "--every", "month"), "--every schedules a LADDER; name one, and leave out --due"),
        ((MARCH, "--every", "month", "--as-of", "2010"), "--every publishes at each month's end; leave out --as-of"),
    ],
)
def test_refused_options_are_named(
    options: tuple[str, ...], message: str, copy_ledger_file: Callable[..., str], ratings: Ratings
) -> None:
    """The message about a missing ladder, or options that do not go together, says what to add or to leave out."""
    result = ratings("publish", *options, db=copy_ledger_file(create_published_ledger))
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
