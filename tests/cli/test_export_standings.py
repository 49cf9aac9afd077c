"""`export standings`: the standings of many ladders in one file."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from list_games import KNIGHTS_YEAR, MARCH, YEAR, create_list_ledger
from own_rules import load_built_in_rule, substitute_rule

Ratings = Callable[..., Any]
ELO = "catan-elo/basic"


pytestmark = pytest.mark.ledger(make=create_list_ledger)


def parse_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
def test_each_ladder_gets_one_line(db: str, ratings: Ratings) -> None:
    """Exported standings have one line per ladder, the same as its `standings` as JSON."""
    ladder_rows = json.loads(ratings("ladders", "--format", "json", db=db).stdout)["rows"]
    result = ratings("export", "standings", db=db)
    standings = parse_lines(result.stdout)

    assert (result.exit_code, result.stderr) == (0, "")
    assert [line["ladder"] for line in standings] == [row["ladder"] for row in ladder_rows]
    for line in standings:
        output = ratings("standings", line["ladder"], "--format", "json", db=db).stdout
        assert list(json.loads(output).items()) == list(line.items())


def test_named_ladders_come_in_order_once(db: str, ratings: Ratings) -> None:
    """Named ladders are exported in the order given, each once, including those without games."""
    empty = "catan-elo/elasund"
    result = ratings("export", "standings", MARCH, empty, ELO, MARCH, "--as-of", "2010-03-05", db=db)

    standings = parse_lines(result.stdout)
    assert [(line["ladder"], line["games"]) for line in standings] == [(MARCH, 6), (empty, 0), (ELO, 15)]
    assert {line["as_of"] for line in standings} == {"2010-03-05T22:59:59.999999Z"}


def test_csv_has_one_table_for_all(db: str, ratings: Ratings) -> None:
    """Exported as CSV, all ladders share one table with the same columns."""
    text = ratings("export", "standings", "--format", "csv", db=db).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    standings = parse_lines(ratings("export", "standings", db=db).stdout)

    assert text.splitlines()[0] == (
        "ladder,rank,player,points,games,qualified,points_exact,gold,places,ruleset,as_of,known_at,rules,state,provisional"
    )
    assert [(row["ladder"], row["player"], row["points_exact"]) for row in rows] == [
        (line["ladder"], row["player"], row["points"]) for line in standings for row in line["rows"]
    ]
    known_at = standings[0]["known_at"]
    assert f"{MARCH},1,anna,3.857143,7,True,27/7,2,,catan-monthly@2008-03,,{known_at},,," in text.splitlines()
    assert (
        f"{KNIGHTS_YEAR},,ben,451,7,False,451,,1 150 150 150,catan-annual@2008-03,,{known_at},,," in text.splitlines()
    )


def test_rules_score_one_ruleset_only(db: str, ratings: Ratings) -> None:
    """With `--rules`, only the ladders of that ruleset are scored by the named version."""
    standings = parse_lines(ratings("export", "standings", "--rules", "catan-monthly@pre-2008-03", db=db).stdout)

    assert {line["rules"] for line in standings} == {"catan-monthly@pre-2008-03"}
    assert {line["ruleset"] for line in standings if line["ladder"].startswith("catan-monthly/")} == {
        "catan-monthly@pre-2008-03"
    }
    assert {line["ruleset"] for line in standings if line["ladder"].startswith("catan-open/")} == {"catan-open@2008-03"}


def test_file_gets_stdout_and_stays(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """An exported file holds what stdout would get, and is never overwritten."""
    file = tmp_path / "standings.jsonl"
    result = ratings("export", "standings", MARCH, YEAR, "-o", file, db=db)
    text = file.read_text(encoding="utf-8")
    again = ratings("export", "standings", "-o", file, db=db)

    assert result == (0, "", f"2 ladders in {file}\n")
    assert text == ratings("export", "standings", MARCH, YEAR, db=db).stdout
    assert (again.exit_code, again.stdout, file.read_text(encoding="utf-8")) == (2, "", text)


@pytest.mark.parametrize("wrong", ["chess/all", "catan-elo", "catan-monthly/7/basic/2010-13", ""])
def test_unknown_ladder_writes_nothing(wrong: str, db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A ladder that cannot exist is a usage error, and no file is written."""
    result = ratings("export", "standings", ELO, wrong, "-o", tmp_path / "standings.jsonl", db=db)

    assert (result.exit_code, result.stdout) == (2, "")
    assert not (tmp_path / "standings.jsonl").exists()


@pytest.mark.slow_cases
def test_failing_rule_leaves_others_exported(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ladders of a failing rule are reported, and all other ladders are exported."""

    def fail(*arguments: object) -> int:
        raise ZeroDivisionError("of the rule")

    forms = ("json", "csv")
    whole = {form: ratings("export", "standings", "--format", form, db=db).stdout.splitlines() for form in forms}
    rule = load_built_in_rule("catan-points/1")._replace(score=fail)
    substitute_rule(monkeypatch, rule)
    for form in forms:
        result = ratings("export", "standings", "--format", form, db=db)
        assert result.exit_code == 1
        assert "ratings: catan-open/basic/2010-03: the rule failed at position" in result.stderr
        expected = [
            line for line in whole[form] if line.startswith(("ladder,", "catan-elo/", '{"ladder": "catan-elo/'))
        ]
        assert len(expected) >= 3
        assert result.stdout.splitlines() == expected
    assert ratings("export", "standings", ELO, db=db).exit_code == 0


def test_csv_has_what_a_rule_with_state_keeps(tmp_path: Path, ratings: Ratings) -> None:
    """The table has each rating with its deviation, in the form that `seed` takes, and whether it is provisional."""
    db = f"sqlite:///{tmp_path}/state.db"
    ratings("init", "--for", "go", "--system", "glicko", db=db)
    ratings("record", "--game", "go", "--game-id", "g-1", "anna", "ben", "--at", "2024-01-01T12:00Z", db=db)
    text = ratings("export", "standings", "glicko-go/all", "--format", "csv", db=db).stdout
    rows = {row["player"]: (row["state"], row["provisional"]) for row in csv.DictReader(io.StringIO(text))}
    assert rows == {"anna": ("rating=1662 deviation=290", "True"), "ben": ("rating=1338 deviation=290", "True")}
