"""Rulesets as files: published versions as TOML, and commented templates. Also logs, causes and `doctor`."""

import json
import re
import sqlite3
import tomllib
from pathlib import Path

import pytest
from correction_helpers import Ratings, read_json
from ledgers import set_clock
from own_rules import find_shipped_texts, list_built_in_rules, load_built_in_rule, read_ruleset, shorten_trials
from stores import make_ruled_ledger
from thresholds import set_thresholds

VERSIONS = [(data["id"], data["version"]) for data in map(tomllib.loads, find_shipped_texts())]


pytestmark = pytest.mark.ledger(make=make_ruled_ledger, store="sqlite")


@pytest.fixture
def few_games(monkeypatch: pytest.MonkeyPatch, at_length: bool) -> None:
    """Let `rules check` try a rule on few games: a thousand would say no more about the files."""
    if not at_length:
        shorten_trials(monkeypatch, games=50)


@pytest.mark.usefixtures("few_games")
@pytest.mark.parametrize(("ruleset_id", "version"), VERSIONS)
def test_ruleset_as_toml_round_trips(ruleset_id: str, version: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A published version written out as TOML and published again is already there."""
    name = f"{ruleset_id}@{version}"
    file = tmp_path / "again.toml"
    result = ratings("rules", "show", name, "--format", "toml", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    file.write_text(result.stdout, encoding="utf-8")
    assert ratings("rules", "check", file, db=db).exit_code == 0
    assert (
        ratings("rules", "publish", file, db=db).stdout == f"{name}: 0 published, 1 already published; the head is 18\n"
    )


@pytest.mark.usefixtures("few_games")
@pytest.mark.parametrize("rule", sorted(list_built_in_rules()))
def test_template_can_be_published_as_is(rule: str, ratings: Ratings, tmp_path: Path) -> None:
    """Every rule's template can be published exactly as it is written."""
    file = tmp_path / "new.toml"
    result = ratings("rules", "new", file, "--rule", rule, "--game", "go")
    assert (result.exit_code, result.stdout) == (0, f"{file} is written; next: ratings rules check {file}\n")
    ruleset = read_ruleset(file.read_text(encoding="utf-8"))
    assert ruleset is not None
    assert (ruleset.name, ruleset.rule, ruleset.scope.game) == ("house-go@1", rule, ["go"])
    checked = ratings("rules", "check", file)
    assert (checked.exit_code, checked.stdout.splitlines()[0]) == (0, f"{file}: house-go@1 can be published")


@pytest.mark.parametrize("rule", sorted(list_built_in_rules()))
def test_template_comments_every_key(rule: str, ratings: Ratings) -> None:
    """Every key of a template has a comment, except numbers in tables; with its optional keys it is valid TOML."""
    text = ratings("rules", "new", "--rule", rule).stdout
    keys = [line for line in text.splitlines() if re.match(r"#? ?\w+ = ", line)]
    assert [
        line for line in keys if "  # " not in line and not re.match(r'\w+ = [\[\d"]|# start = "a conv', line)
    ] == []
    optional = [line for line in keys if line.startswith("# ") and "= ..." not in line and "convention" not in line]
    assert len(optional) > 5
    tomllib.loads("\n".join(line.removeprefix("# ") if line in optional else line for line in text.splitlines()))
    names = {match[1] for line in text.splitlines() if (match := re.match(r"(?:# |\[params\.)?(\w+)(?: =|\])", line))}
    assert names >= load_built_in_rule(rule).params.model_fields.keys()
    assert "ratings rules check FILE" in text


def test_optional_tables_of_a_template_can_be_used(ratings: Ratings, tmp_path: Path) -> None:
    """Optional tables of a rule's parameters are commented out in the template, and can be used as they are."""
    text = ratings("rules", "new", "--rule", "placement-points/2", "--game", "go").stdout
    for name in ("weights", "unranked", "bonus"):
        assert f"\n# {name} = {{}} " in text
        text = text.replace(f"# {name} =", f"{name} =")
    file = tmp_path / "go.toml"
    file.write_text(text, encoding="utf-8")
    checked = ratings("rules", "check", file)
    assert (checked.exit_code, checked.stdout.splitlines()[0]) == (0, f"{file}: house-go@1 can be published")


def test_template_uses_home_zone(ratings: Ratings, tmp_path: Path) -> None:
    """A template has the ledger's home zone, and writing one never overwrites a file."""
    db, file = str(tmp_path / "ratings.db"), tmp_path / "new.toml"
    ratings("init", "--no-rules", "--zone", "Asia/Tokyo", db=db)
    assert 'time_zone = "Asia/Tokyo"' in ratings("rules", "new", db=db).stdout
    assert 'time_zone = "UTC"' in ratings("rules", "new", db=str(tmp_path / "absent.db")).stdout
    file.write_text("mine", encoding="utf-8")
    refused = ratings("rules", "new", file, db=db)
    assert (refused.exit_code, file.read_text(encoding="utf-8")) == (2, "mine")
    assert f"{file} exists" in refused.stderr


def test_template_of_unknown_rule_is_refused(ratings: Ratings) -> None:
    """A template for an unknown rule or an invalid game is refused, with a suggestion for the rule."""
    refused = ratings("rules", "new", "--rule", "pairwise-el/1")
    assert (refused.exit_code, "did you mean pairwise-elo/1?" in refused.stderr) == (2, True)
    assert ratings("rules", "new", "--game", "Chess").exit_code == 2


def test_csv_log_says_what_happened(db: str, ratings: Ratings) -> None:
    """The log as CSV says what each event did, with its reason."""
    ratings("record", "--game", "catan", "--group", "basic", "--game-id", "g-1", "anna", "ben=cleo", db=db)
    ratings("correct", "g-1", "ben", "anna", "cleo", "--reason", "swapped", db=db)
    lines = ratings("log", "--format", "csv", "--limit", "2", db=db).stdout.splitlines()
    assert lines[0] == "position,type,id,occurred_at,recorded_at,by,reason,what"
    assert lines[1].endswith(',,"g-1: 1 anna, 2 ben, 2 cleo"')
    assert lines[2].endswith(',swapped,"g-1: 1 ben, 2 anna, 3 cleo: swapped"')


def test_causes_name_author_time_and_reason(db: str, ratings: Ratings) -> None:
    """The causes of a change name who recorded each event, when and why.

    Of a game and a correction by two people, both are named, the correction with its reason.
    """
    ladder = "catan-elo/basic"
    at = ("--at", "2010-03-05T12:00Z")
    ratings(
        "record", "--game", "catan", "--group", "basic", "--game-id", "g-1", *at, "anna", "ben", "--by", "mira", db=db
    )
    ratings("correct", "g-1", "ben", "anna", "--reason", "swapped", "--by", "the board", db=db)
    causes = read_json(ratings, db, "explain", "--change", "anna", ladder, "--from", "18")["causes"]
    events = {event["position"]: event for event in read_json(ratings, db, "log", "--limit", "2")["rows"]}
    assert [(cause["position"], cause["by"], cause["recorded_at"], cause["reason"]) for cause in causes] == [
        (position, events[position]["by"], events[position]["recorded_at"], reason)
        for position, reason in ((19, None), (20, "swapped"))
    ]
    stdout = ratings("explain", "--change", "anna", ladder, "--from", "18", db=db).stdout
    assert re.search(r"^      19  recorded \d{4}-\d\d-\d\d \d\d:\d\d UTC by mira$", stdout, re.MULTILINE)
    assert re.search(r"^      20  recorded \d{4}-\d\d-\d\d \d\d:\d\d UTC by the board: swapped$", stdout, re.MULTILINE)
    assert max(map(len, stdout.splitlines())) <= 80
    csv = ratings("explain", "--change", "anna", ladder, "--from", "18", "--format", "csv", db=db).stdout
    header, first, *_ = csv.splitlines()
    assert header.endswith(",reason,recorded_at,by")
    assert first.endswith(",mira")


def test_doctor_has_a_remedy_for_each_problem(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` has a remedy for a clock that is behind, a missing guard and a wrong setting."""
    with sqlite3.connect(db) as connection:
        connection.execute("DROP TRIGGER events_refuse_delete")
    set_clock(monkeypatch, 0)
    set_thresholds(monkeypatch, busy_seconds=31)
    rows = {row["what"]: row for row in read_failed_doctor(ratings, db)}
    wrong = {what: row for what, row in rows.items() if row["state"] == "WRONG"}
    assert wrong.keys() == {"busy_timeout", "guards", "clock"}
    assert all(row["note"] and row["remedy"] for row in wrong.values())
    assert wrong["busy_timeout"]["remedy"] == "remove the parameter timeout from the ledger's URL"
    assert all(row["remedy"] for row in rows.values() if row["state"] == "-")
    stdout = ratings("doctor", db=db).stdout
    assert "events_refuse_delete; run: ratings verify; ratings export events -o all.jsonl; " in stdout
    assert "set this machine's clock" in stdout


def read_failed_doctor(ratings: Ratings, db: str) -> list[dict[str, str]]:
    """Return the rows of `doctor`, which must exit with 1."""
    result = ratings("doctor", "--format", "json", db=db)
    assert result.exit_code == 1
    return list(json.loads(result.stdout))
