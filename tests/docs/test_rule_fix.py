"""docs/rule-fix.md: a real club's rule fix, from doubt to minutes; skipped where the club's games are absent."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from console_blocks import mask_volatile, refresh_page
from make_docs import CLUB_GAMES, ROOT, RULE_FIX, write_club_games
from stores import make_ruled_ledger

LADDER = "club-catan-elo/all"
TEXTBOOK = ROOT / "examples" / "club-catan-elo-2.toml"
YEARS = range(2017, 2025)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CLUB_GAMES.exists(), reason="the club's games (shared/data/catan-league) are absent"),
]

Read = Callable[..., Any]


def test_page_shows_what_commands_print(tmp_path: Path) -> None:
    """The page on the rule fix shows what its commands print."""
    write_club_games(tmp_path)
    assert mask_volatile(refresh_page(RULE_FIX, tmp_path, ROOT)) == mask_volatile(
        RULE_FIX.read_text(encoding="utf-8")
    ), "make docs"


def make_club_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the club's games under the sequential rule and its yearly tables, published."""
    make_ruled_ledger(ratings, url)
    with TemporaryDirectory() as folder:
        write_club_games(Path(folder))
        assert ratings("import", Path(folder) / "club.csv", "--zone", "UTC", db=url).exit_code == 0
    for year in YEARS:
        assert ratings("publish", LADDER, "--as-of", f"{year}-12-31", db=url).exit_code == 0


@pytest.fixture
def club(copy_ledger: Callable[..., str]) -> str:
    """Return the ledger of `make_club_ledger`."""
    return copy_ledger(make_club_ledger)


@pytest.fixture
def read(ratings: Callable[..., Any], club: str) -> Read:
    """Return a function that reads the JSON of a command."""

    def run(*arguments: object) -> Any:
        result = ratings(*arguments, "--format", "json", db=club)
        assert (result.exit_code, result.stderr) == (0, ""), result
        return json.loads(result.stdout)

    return run


def summarize_changes(rows: list[dict[str, Any]]) -> dict[str, tuple[str, str, str]]:
    """Return points before, change and after by player."""
    return {row["player"]: (row["before"], row["change"], row["after"]) for row in rows}


def read_published_tables(read: Read) -> list[Any]:
    """Return the yearly tables as published, without the members about their recording."""
    lists = [read("standings", LADDER, "--as-published", "--as-of", f"{year}-12-31") for year in YEARS]
    return [{name: value for name, value in standings.items() if name != "published"} for standings in lists]


def test_every_command_agrees_on_the_fix(read: Read, club: str, ratings: Callable[..., Any], at_length: bool) -> None:
    """`whatif`, dry run, publication, `diff` and the causes all give exactly the same changes.

    The textbook rule is published for all games, and the published tables stay as published. Unless the tests
    run at length, the causes are checked only for every fourth player.
    """
    tables = read_published_tables(read)
    assert tables == [
        read("standings", LADDER, "--as-of", f"{year}-12-31") | {"known_at": table["known_at"]}
        for year, table in zip(YEARS, tables, strict=True)
    ]
    before = int(read("status")["head"].partition(":")[0])
    (variant,) = read("whatif", TEXTBOOK)["variants"]
    whatif_changes = {ladder["ladder"]: summarize_changes(ladder["changes"]) for ladder in variant["ladders"]}
    trial = read("rules", "publish", TEXTBOOK, "--dry-run")
    assert read("status")["head"].partition(":")[0] == str(before)

    publication = read("rules", "publish", TEXTBOOK)

    assert len(whatif_changes[LADDER]) == 17
    for output in (trial, publication):
        assert {
            ladder: summarize_changes([row for row in output["changes"] if row["ladder"] == ladder])
            for ladder in whatif_changes
        } == whatif_changes
    assert trial["published"] == publication["published"] == variant["published"]
    assert [published_list["as_of"][:4] for published_list in publication["published"]] == [str(year) for year in YEARS]
    for ladder in read("diff", before, "now")["ladders"]:
        assert summarize_changes(ladder["rows"]) == whatif_changes[ladder["ladder"]]
    for player, (old, change, new) in [*whatif_changes[LADDER].items()][:: 1 if at_length else 4]:
        explanation = read("explain", "--change", LADDER, player, "--from", before, "--to", "now")
        assert (explanation["from"]["points"], explanation["change"], explanation["to"]["points"]) == (old, change, new)
        assert [(cause["cause"], cause["amount"]) for cause in explanation["causes"]] == [("rule change", change)]
    assert read_published_tables(read) == tables
    assert ratings("verify", db=club) == (0, "", "")


def test_causes_sum_to_table_differences(read: Read, at_length: bool) -> None:
    """After the fix, causes sum to each difference between a published table and the same time today.

    Three differences of each table are checked; unless the tests run at length, only one of them, in turn.
    """
    read("rules", "publish", TEXTBOOK)
    ladders = read("diff", "published", "now", LADDER)["ladders"]
    assert len(ladders) == len(YEARS)
    for number, (year, ladder) in enumerate(zip(YEARS, ladders, strict=True)):
        assert ladder["a"]["as_of"] == ladder["b"]["as_of"] == f"{year}-12-31T23:59:59.999999Z"
        rows = ladder["rows"][:3]
        assert rows
        for row in rows if at_length else [rows[number % len(rows)]]:
            at = f"published,as-of={year}-12-31"
            explanation = read("explain", "--change", LADDER, row["player"], "--from", at, "--to", "now")
            assert sum(Fraction(cause["amount"]) for cause in explanation["causes"]) == Fraction(row["change"])
            assert all(
                Fraction(cause["own"]) + Fraction(cause["ripple"]) == Fraction(cause["amount"])
                for cause in explanation["causes"]
            )
