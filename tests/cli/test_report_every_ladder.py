"""`report player` on each kind of ladder agrees with the other commands, and its accounts sum exactly."""

import shlex
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, build_game_data, read_json
from every_ladder import FIRST_GAMES_POSITION, LADDERS, create_every_ladder
from reported import ReportParser, parse_exact_number

CAUSES_HEADING = "Causes of the difference"
THEN = ("--known-at", str(FIRST_GAMES_POSITION))
NOW: tuple[str, ...] = ()


pytestmark = pytest.mark.ledger(make=create_every_ladder, store="sqlite")


def write_report(ratings: Ratings, db: str, path: Path, *arguments: str) -> ReportParser:
    """Write a report and return it parsed."""
    result = ratings("report", "player", *arguments, "-o", path, db=db)
    assert (result.exit_code, result.stdout) == (0, ""), result
    return ReportParser(path.read_bytes())


def read_standing(
    ratings: Ratings, db: str, ladder: str, ids: Sequence[str], *axes: str
) -> tuple[Fraction | None, str]:
    """Return a player's points and rank on a ladder from `standings`; `ids` are all ids of the player."""
    rows = read_json(ratings, db, "standings", ladder, *axes)["rows"]
    own_rows = [row for player in ids for row in rows if row["player"] == player]
    return (Fraction(own_rows[0]["points"]), str(own_rows[0]["rank"] or "–")) if own_rows else (None, "–")


def assert_sums(page: ReportParser, expected: Sequence[tuple[Fraction | None, str]]) -> None:
    """Assert that a page has the expected points and ranks, and that its accounts sum and connect them."""
    rows = {row[0]: row[1:] for row in page.tables["The numbers"][0]}
    assert [None if text == "–" else parse_exact_number(text) for text in rows["Points"]] == [
        points for points, _ in expected
    ]
    assert rows["Rank"] == [rank for _, rank in expected]
    (then, _), (now, _) = expected
    for heading, tables in page.tables.items():
        if heading.startswith("Changes of the points"):
            assert page.read_account(heading)[2] == then, heading
        elif heading.startswith("Points of each game"):
            position = heading.rpartition(" ")[2]
            total = next(
                row for row in page.tables[f"How the points add up, known at position {position}"][0] if row[0] == "sum"
            )
            assert page.read_account(heading)[2] == parse_exact_number(total[2]), heading
        elif heading == CAUSES_HEADING:
            opening, _, closing = page.read_account(heading)
            assert (then in (None, opening), now in (None, closing)) == (True, True)
        else:
            assert tables
    if CAUSES_HEADING not in page.tables:
        (sentence,) = page.texts[CAUSES_HEADING]
        assert sentence.startswith("Nothing that was recorded")
        assert then == now


def check_and_count_game_tables(
    page: ReportParser, ratings: Ratings, db: str, ladder: str, player: str, *axes: str
) -> int:
    """Assert that every counted game of a player has a table of terms with its change, and return their number."""
    games = read_json(ratings, db, "explain", "--player", player, ladder, *axes)["games"]
    changes = {game["game_id"]: Fraction(game["change"]) for game in games if game["game_id"] and game["change"]}
    for game_id, change in changes.items():
        game_terms = [[parse_exact_number(row[-1]) for row in table[1:]] for table in page.tables[game_id]]
        assert all(sum(terms) == last for *terms, last in game_terms), game_id
        assert change in [last for *_, last in game_terms], game_id
    return len(changes)


LADDERS_OF_BENNO = (
    "elo-chess/all",
    "galactic-points",
    "catan-monthly/7/basic/2010-03",
    "catan-annual/7/basic/2010",
    "youplay-wsim/L1",
)
LADDERS_OF_EVE = (
    "b5-league/2010-1",
    "catan-open/basic/2010-03",
    "catan-annual/7/basic/2010",
    "youplay-bluemax/L1",
    "italia-2010/L1",
)
# the ladder of each report, and all ids of its player
REPORTS = [
    *((ladder, ["anna"]) for ladder in LADDERS),
    *((ladder, ["benno", "ben"]) for ladder in LADDERS_OF_BENNO),
    *((ladder, ["eve"]) for ladder in LADDERS_OF_EVE),
]


@pytest.mark.slow
@pytest.mark.parametrize(("ladder", "ids"), REPORTS, ids=[f"{ladder} {ids[0]}" for ladder, ids in REPORTS])
def test_report_agrees_on_every_kind_of_ladder(
    ladder: str, ids: list[str], db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """On each kind of ladder, a report's numbers are those of the standings then and now.

    The ledger has late, corrected and voided games, merged and renamed ids, and a newcomer. The accounts sum
    exactly, and every counted game has its terms.
    """
    player = ids[0]
    if (ladder, player) == ("catan-annual/7/basic/2010", "eve"):
        result = ratings("report", "player", player, ladder, *THEN, "-o", tmp_path / "x.html", db=db)
        assert (result.exit_code, "'eve' is not on catan-annual/7/basic/2010" in result.stderr) == (1, True)
        return
    page = write_report(ratings, db, tmp_path / "x.html", player, ladder, *THEN)
    expected = [read_standing(ratings, db, ladder, ids, *axes) for axes in (THEN, NOW)]
    assert expected[1][0] is not None
    assert_sums(page, expected)
    assert len(page.claims) == 2
    if not ladder.startswith("catan-annual"):
        games = {"anna": (7, 9), "benno": (8, 8), "eve": (0, 1)}[player]
        if games[0]:
            assert check_and_count_game_tables(page, ratings, db, ladder, ids[-1], *THEN) == games[0]
        assert check_and_count_game_tables(page, ratings, db, ladder, player) == games[1]


@pytest.fixture(scope="module")
def commands_run() -> set[str]:
    """Return the commands that other tests ran on their copies of the ledger, with the same output."""
    return set()


@pytest.mark.slow
@pytest.mark.parametrize("ladder", LADDERS)
def test_commands_of_every_report_run(
    ladder: str, db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands_run: set[str]
) -> None:
    """Every command on a page runs as printed, and the last one writes the page again, byte for byte."""
    monkeypatch.chdir(tmp_path)
    page = write_report(ratings, db, Path("x.html"), "anna", ladder, "--as-of", "2010-03-23", *THEN)
    for label, command in page.commands:
        if not label.startswith(("Head", "Digest")) and command not in commands_run:
            commands_run.add(command)
            result = ratings(*shlex.split(command)[1:], db=db)
            assert (result.exit_code, result.stderr.startswith("Error")) == (0, False), (command, result)
    assert Path("again.html").read_bytes() == Path("x.html").read_bytes()
    heads = [content for label, content in page.commands if label.startswith("Head")]
    assert heads[0].startswith(f"{FIRST_GAMES_POSITION}:")
    months = {path.name for path in tmp_path.glob("2010-*.html")}
    assert months == ({"2010-03.html"} if ladder.startswith("catan-annual") else set())


@pytest.mark.slow_cases
def test_report_agrees_in_both_stores(copy_ledger: Callable[..., str], ratings: Ratings, tmp_path: Path) -> None:
    """In each store, a report agrees with the standings and sums exactly."""
    url = copy_ledger(create_every_ladder)
    page = write_report(ratings, url, tmp_path / "x.html", "anna", "galactic-points", *THEN)
    assert_sums(page, [read_standing(ratings, url, "galactic-points", ["anna"], *axes) for axes in (THEN, NOW)])


def test_missing_rank_is_explained(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The report of a player with points and no rank says how many games are missing."""
    page = write_report(ratings, db, tmp_path / "x.html", "eve", "b5-league/2010-1")
    (claim,) = page.claims
    assert claim.endswith(" points and no rank (1 of 5 games; 4 more needed) on b5-league/2010-1.")


SEASONS_RULESET = """
id = "seasons"
version = "1"
rule = "pairwise-elo/1"
effective_from = 1900-01-01
scope = { game = ["go"] }
partition = { by = ["season"] }
params = { start = 1000, k_total = 32, scale = 400, carry_over = true }
"""


def create_two_seasons(ratings: Ratings, url: str) -> None:
    """Create a ledger with two games in each of two seasons; the second season carries points over from the first."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "seasons.toml").write_text(SEASONS_RULESET)
        assert ratings("init", "--no-rules", db=url).exit_code == 0
        assert ratings("rules", "publish", Path(folder) / "seasons.toml", db=url).exit_code == 0
    append_lines(
        ratings,
        url,
        *(
            build_event_line(
                "game.recorded",
                f"2010-0{month}-0{day}T12:00:00Z",
                **build_game_data(f"g-{month}-{day}", "anna", "ben", game="go", season=f"2010-{month}"),
            )
            for month in (1, 2)
            for day in (1, 2)
        ),
    )


def test_season_begins_with_carried_over_points(
    copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report on a season begins with the points carried over from the previous season, and has the command for the
    report on them."""
    db = copy_ledger_file(create_two_seasons)
    assert ratings("void", "g-1-1", "--reason", "r", "--by", "mira", db=db).exit_code == 0
    monkeypatch.chdir(tmp_path)
    page = write_report(ratings, db, Path("x.html"), "anna", "seasons/2010-2", "--known-at", "5")
    axes = [["--known-at", "5"], []]
    assert_sums(page, [read_standing(ratings, db, "seasons/2010-2", ["anna"], *options) for options in axes])
    ((_, first, *_),) = page.tables["Changes of the points, known at position 5"]
    assert first[1] == "Carried over from seasons/2010-1"
    assert parse_exact_number(first[3]) == read_standing(ratings, db, "seasons/2010-1", ["anna"], *axes[0])[0]
    (line,) = page.read_account(CAUSES_HEADING)[1]
    assert line[0] == "g-1-1: voided mira: “r” through what was carried over, or other players’ points"
    (command,) = [content for description, content in page.commands if description.startswith("Carried-over points")]
    assert ratings(*shlex.split(command)[1:], db=db).exit_code == 0
    assert ReportParser(Path("before.html").read_bytes()).claims[0].endswith(" of 2 on seasons/2010-1.")


def test_adjusted_player_without_games_has_a_report(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A player who has only adjustments has a report; the report on an annual list refers to the monthly lists."""
    adjust = ("adjust", "galactic-points", "newcomer", "50", "--reason", "rated elsewhere", "--by", "mira")
    assert ratings(*adjust, db=db).exit_code == 0
    page = write_report(ratings, db, tmp_path / "x.html", "newcomer", "galactic-points")
    opening, lines, closing = page.read_account("Changes of the points, known at position 122")
    assert (opening, lines, closing) == (1000, [("adjustment “rated elsewhere”", 50)], 1050)
    assert page.texts["Every game"][0] == "newcomer has no games on this ladder."
    page = write_report(ratings, db, tmp_path / "y.html", "cleo", "catan-annual/7/basic/2010")
    assert page.texts["Every game"][0].startswith(
        "This list has no games of its own; they are in the reports on the monthly lists."
    )


def test_games_of_a_merged_id_name_it(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game of an id that was merged later is explained as a game of another player at the earlier position."""
    page = write_report(ratings, db, tmp_path / "x.html", "anna", "galactic-points", *THEN)
    texts = [text for text in page.texts["magnate-7"] if "does not count" in text]
    assert texts == [
        "Known at position 83, it does not count: Anna G., who played the game, was not yet linked to this player."
    ]


def test_explain_says_that_a_game_was_recorded_later(db: str, ratings: Ratings) -> None:
    """For a game that was recorded later, `explain` gives the position at which it was recorded."""
    result = ratings("explain", "magnate-9", "galactic-points", *THEN, db=db)
    position = read_json(ratings, db, "log", "magnate-9")["rows"][0]["position"]
    message = f"game-unknown: no game 'magnate-9' is recorded up to position 83; it was recorded at position {position}"
    assert (result.exit_code, message in result.stderr) == (1, True), result
