"""`rules show` gives the dates between which each version of a ruleset scores, and why a version never does."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from ledgers import set_clock

Ratings = Callable[..., Any]
NOW = "2025-06-15T12:00:00Z"
RULESET = """
id = "house-elo"
version = "{version}"
rule = "pairwise-elo/1"
{since}
time_zone = "Europe/Berlin"

[scope]
game = ["catan"]

[partition]
by = ["group"]

[params]
start = 1000
k_per_pair = 8
"""


def make_ledger(ratings: Ratings, url: str) -> None:
    """Publish five versions: 3 takes effect between 1 and 2, 4 has no date, and 5 replaces 3 on the same date."""
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    days = {"1": "1900-01-01", "2": "2020-01-01", "3": "2010-01-01", "4": None, "5": "2010-01-01"}
    for version, day in days.items():
        since = f"effective_from = {day}" if day else ""
        with NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(RULESET.format(version=version, since=since))
            file.flush()
            assert ratings("rules", "publish", file.name, "--by", f"b{version}", db=url).exit_code == 0


@pytest.fixture
def db(copy_ledger: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the ledger of `make_ledger`, made while the clock stands at `NOW`."""
    set_clock(monkeypatch, NOW)
    return copy_ledger(make_ledger)


def show_rules(ratings: Ratings, db: str, *options: object) -> dict[str, Any]:
    result = ratings("rules", "show", "house-elo", "--format", "json", *options, db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def list_timeline_rows(output: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("version", "from", "until", "position", "by")) for row in output["timeline"]]


@pytest.mark.slow_cases
def test_timeline_shows_when_versions_score(db: str, ratings: Ratings) -> None:
    """The timeline gives the days between which each version scores, and why some never do."""
    output = show_rules(ratings, db)

    assert (output["version"], output["versions"], output["known_at"]) == ("2", ["1", "2", "3", "4", "5"], 5)
    assert list_timeline_rows(output) == [
        ("1", "1900-01-01", "2010-01-01", 1, "b1"),
        ("5", "2010-01-01", "2020-01-01", 5, "b5"),
        ("2", "2020-01-01", None, 2, "b2"),
    ]
    assert list(output["timeline"][0]) == ["version", "from", "until", "position", "recorded_at", "by"]
    assert output["timeline"][0]["recorded_at"] == "2025-06-15T12:00:00.000000Z"
    assert [(line["version"], line["position"], line["why"]) for line in output["never_in_force"]] == [
        ("3", 3, "replaced by 5, which takes effect on the same day and was recorded later"),
        ("4", 4, "it has no effective_from, and is used only with --rules"),
    ]


def test_text_output_has_the_timeline_as_a_table(db: str, ratings: Ratings) -> None:
    """The text output has the timeline as a table, and says why a version never scores."""
    assert ratings("rules", "show", "house-elo", db=db).stdout.split("\n\n")[-1].splitlines() == [
        "Timeline of games by end date (Europe/Berlin)",
        "from        before      version  position  recorded (UTC)    by",
        "1900-01-01  2010-01-01  1               1  2025-06-15 12:00  b1",
        "2010-01-01  2020-01-01  5               5  2025-06-15 12:00  b5",
        "2020-01-01              2               2  2025-06-15 12:00  b2",
        "never                   3               3  2025-06-15 12:00  b3",
        "never                   4               4  2025-06-15 12:00  b4",
        "Version 3 is never in force: replaced by 5, which takes effect on the same day and was recorded later.",
        "Version 4 is never in force: it has no effective_from, and is used only with --rules.",
        "Running points carry over from one version to the next.",
    ]


@pytest.mark.parametrize(
    ("ruleset_id", "last_line"),
    [
        ("catan-elo", "Running points carry over"),
        ("catan-monthly", "its last counted game"),
        ("youplay-league", "its last counted game"),
        ("catan-annual", "the version in force at its end"),
    ],
)
def test_rules_show_says_what_carries_over(ruleset_id: str, last_line: str, tmp_path: Path, ratings: Ratings) -> None:
    """`rules show` says for each kind of list what becomes of points and ranks between versions."""
    name = str(tmp_path / "shipped.db")
    assert ratings("init", db=name).exit_code == 0
    assert last_line in ratings("rules", "show", ruleset_id, db=name).stdout.splitlines()[-1]


def test_known_at_hides_later_versions(db: str, ratings: Ratings) -> None:
    """With `--known-at`, versions recorded after that position are not shown."""
    output = show_rules(ratings, db, "--known-at", 3)
    rows = json.loads(ratings("rules", "list", "--known-at", 1, "--format", "json", db=db).stdout)

    assert [line[:3] for line in list_timeline_rows(output)] == [
        ("1", "1900-01-01", "2010-01-01"),
        ("3", "2010-01-01", "2020-01-01"),
        ("2", "2020-01-01", None),
    ]
    assert (output["known_at"], output["never_in_force"]) == (3, [])
    assert [(row["version"], row["in_force"]) for row in rows] == [("house-elo@1", "yes")]
    assert ratings("rules", "show", "house-elo@2", "--known-at", 1, db=db).exit_code == 2


def test_voided_version_yields_to_replaced_one(db: str, ratings: Ratings) -> None:
    """When a version is voided, the version that it replaced scores again."""
    assert ratings("void", "--event", "ruleset:house-elo@5", "--reason", "wrong", db=db).exit_code == 0

    output = show_rules(ratings, db)
    assert [line[0] for line in list_timeline_rows(output)] == ["1", "3", "2"]
    assert [line["version"] for line in output["never_in_force"]] == ["4", "5"]
    assert [line[0] for line in list_timeline_rows(show_rules(ratings, db, "--known-at", 5))] == ["1", "5", "2"]


def test_timeline_of_leagues_goes_by_start(db: str, ratings: Ratings) -> None:
    """For a ruleset whose leagues keep the version of their start, the timeline is by start date."""
    assert ratings("init", db=db).exit_code == 0

    stdout = ratings("rules", "show", "youplay-wsim", db=db).stdout
    assert "\nTimeline of leagues by start date (Europe/Berlin)\n" in stdout


def test_withdrawn_version_stays_visible(db: str, ratings: Ratings) -> None:
    """A withdrawn version is listed, shown and refused as withdrawn, with the position at which it can be used."""
    assert ratings("void", "--event", 2, "--reason", "typo", "--by", "b6", db=db).exit_code == 0
    withdrawal = "withdrawn at position 6; to use it, add --known-at 5"

    rows = json.loads(ratings("rules", "list", "--format", "json", db=db).stdout)
    assert [(row["version"], row["in_force"], row["withdrawn"]) for row in rows][:3] == [
        ("house-elo@1", "no", None),
        ("house-elo@2", "no", 6),
        ("house-elo@3", "no", None),
    ]
    assert ratings("rules", "list", db=db).stdout.splitlines()[2].split()[:4] == [
        "house-elo@2",
        "pairwise-elo/1",
        "2020-01-01",
        "withdrawn",
    ]
    output = show_rules(ratings, db)
    assert (output["version"], output["versions"]) == ("5", ["1", "3", "4", "5"])
    assert ("2", withdrawal) in [(line["version"], line["why"]) for line in output["never_in_force"]]
    assert ratings("rules", "show", "house-elo@2", db=db).stdout.splitlines()[0] == (
        f"house-elo@2, published at position 2 by b2; {withdrawal}"
    )
    for command in (("standings", "house-elo/all"), ("ladders",)):
        refused = ratings(*command, "--rules", "house-elo@2", db=db)
        assert refused.exit_code == 2
        assert f"house-elo@2 was {withdrawal}" in refused.stderr
    assert ratings("ladders", "--rules", "house-elo@2", "--known-at", 5, db=db).exit_code == 0


@pytest.mark.slow_cases
def test_ruleset_withdrawn_altogether_is_shown_as_such(db: str, ratings: Ratings) -> None:
    """If every version of a ruleset is withdrawn, the last one is still shown, and all are listed, as withdrawn."""
    for position in range(1, 6):
        assert ratings("void", "--event", position, "--reason", "typo", "--by", "b6", db=db).exit_code == 0
    assert ratings("rules", "show", "house-elo", db=db).stdout.startswith(
        "house-elo@5, published at position 5 by b5; withdrawn at position 10; "
    )
    assert {row["withdrawn"] for row in json.loads(ratings("rules", "list", "--format", "json", db=db).stdout)} == {
        *range(6, 11)
    }


def test_version_put_back_in_force_is_live(db: str, ratings: Ratings) -> None:
    """After its withdrawal is withdrawn, a version counts again; a second withdrawal names the later position."""
    for position in (2, 6):
        assert ratings("void", "--event", position, "--reason", "typo", "--by", "b6", db=db).exit_code == 0
    assert show_rules(ratings, db)["version"] == "2"
    assert ratings("void", "--event", 7, "--reason", "typo", "--by", "b6", db=db).exit_code == 0
    assert (
        "withdrawn at position 8; to use it, add --known-at 7" in ratings("rules", "show", "house-elo@2", db=db).stdout
    )


def test_ruleset_without_versions_left_names_the_withdrawal(tmp_path: Path, ratings: Ratings) -> None:
    """If every version of a ruleset is withdrawn, its ladder says when, and how to see it before that."""
    db = str(tmp_path / "chess.db")
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=db).exit_code == 0
    assert ratings("record", "--game", "chess", "--game-id", "g-1", "anna", "ben", db=db).exit_code == 0
    assert ratings("void", "--event", 2, "--reason", "of another club", db=db).exit_code == 0
    refused = ratings("standings", "elo-chess", db=db)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "elo-chess was withdrawn at position 4; to use it, add --known-at 3" in refused.stderr
    assert ratings("standings", "elo-chess", "--known-at", 3, db=db).exit_code == 0
