"""`export standings`: the standings of many ladders in one file."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from list_games import KNIGHTS_YEAR, MARCH, YEAR, list_games

from projections.rules import catan_points
from projections.rulesets import registry

Ratings = Callable[..., Any]
ELO = "catan-elo/basic"


@pytest.fixture
def db(copied: Callable[..., str]) -> str:
    """Monthly, open and annual lists, and the running points of two groups."""
    return copied(list_games)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_given_ladders_when_exported_then_each_has_a_line_that_is_its_standings(db: str, ratings: Ratings) -> None:
    listed = json.loads(ratings("ladders", "--format", "json", db=db).stdout)["rows"]
    result = ratings("export", "standings", db=db)
    found = lines(result.stdout)

    assert (result.exit_code, result.stderr) == (0, "")
    assert [line["ladder"] for line in found] == [row["ladder"] for row in listed]
    for line in found:
        alone = ratings("standings", line["ladder"], "--format", "json", db=db).stdout
        assert list(json.loads(alone).items()) == list(line.items())


def test_given_names_of_ladders_when_exported_then_those_in_their_order_and_each_once(
    db: str, ratings: Ratings
) -> None:
    empty = "catan-elo/elasund"
    result = ratings("export", "standings", MARCH, empty, ELO, MARCH, "--as-of", "2010-03-05", db=db)

    found = lines(result.stdout)
    assert [(line["ladder"], line["games"]) for line in found] == [(MARCH, 6), (empty, 0), (ELO, 15)]
    assert {line["as_of"] for line in found} == {"2010-03-05T22:59:59.999999Z"}


def test_given_ladders_when_exported_as_csv_then_one_table_has_the_same_columns_for_all(
    db: str, ratings: Ratings
) -> None:
    text = ratings("export", "standings", "--format", "csv", db=db).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    head = lines(ratings("export", "standings", db=db).stdout)

    assert text.splitlines()[0] == (
        "ladder,rank,player,points,games,qualified,points_exact,gold,places,ruleset,as_of,known_at,rules"
    )
    assert [(row["ladder"], row["player"], row["points_exact"]) for row in rows] == [
        (line["ladder"], row["player"], row["points"]) for line in head for row in line["rows"]
    ]
    known_at = head[0]["known_at"]
    assert f"{MARCH},1,anna,3.857143,7,True,27/7,2,,catan-monthly@2008-03,,{known_at}," in text.splitlines()
    assert f"{KNIGHTS_YEAR},,ben,451,7,False,451,,1 150 150 150,catan-annual@2008-03,,{known_at}," in text.splitlines()


def test_given_a_version_when_exported_then_its_ruleset_alone_is_scored_by_it(db: str, ratings: Ratings) -> None:
    found = lines(ratings("export", "standings", "--rules", "catan-monthly@pre-2008-03", db=db).stdout)

    assert {line["rules"] for line in found} == {"catan-monthly@pre-2008-03"}
    assert {line["ruleset"] for line in found if line["ladder"].startswith("catan-monthly/")} == {
        "catan-monthly@pre-2008-03"
    }
    assert {line["ruleset"] for line in found if line["ladder"].startswith("catan-open/")} == {"catan-open@2008-03"}


def test_given_a_file_when_exported_to_then_it_is_what_stdout_gets_and_is_never_overwritten(
    db: str, tmp_path: Path, ratings: Ratings
) -> None:
    file = tmp_path / "standings.jsonl"
    done = ratings("export", "standings", MARCH, YEAR, "-o", file, db=db)
    text = file.read_text(encoding="utf-8")
    again = ratings("export", "standings", "-o", file, db=db)

    assert done == (0, "", f"2 ladders in {file}\n")
    assert text == ratings("export", "standings", MARCH, YEAR, db=db).stdout
    assert (again.exit_code, again.stdout, file.read_text(encoding="utf-8")) == (2, "", text)


@pytest.mark.parametrize("wrong", ["chess/all", "catan-elo", "catan-monthly/7/basic/2010-13", ""])
def test_given_a_ladder_that_cannot_be_when_exported_then_nothing_is_written(
    wrong: str, db: str, tmp_path: Path, ratings: Ratings
) -> None:
    result = ratings("export", "standings", ELO, wrong, "-o", tmp_path / "standings.jsonl", db=db)

    assert (result.exit_code, result.stdout) == (2, "")
    assert not (tmp_path / "standings.jsonl").exists()


def test_given_a_rule_that_fails_when_exported_then_its_ladders_are_noted_and_the_others_are_written(
    db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> int:
        raise ZeroDivisionError("of the rule")

    forms = ("json", "csv")
    whole = {form: ratings("export", "standings", "--format", form, db=db).stdout.splitlines() for form in forms}
    rule = catan_points.RULE._replace(score=broken)
    monkeypatch.setattr(
        "projections.rulesets.versions.rule", lambda name: rule if name == rule.id else registry.rule(name)
    )
    for form in forms:
        result = ratings("export", "standings", "--format", form, db=db)
        assert result.exit_code == 1
        assert "ratings: catan-open/basic/2010-03: the rule failed at position" in result.stderr
        others = [line for line in whole[form] if line.startswith(("ladder,", "catan-elo/", '{"ladder": "catan-elo/'))]
        assert len(others) >= 3
        assert result.stdout.splitlines() == others
    assert ratings("export", "standings", ELO, db=db).exit_code == 0
