"""`report player` on each kind of ladder: what it says is what the other commands say, and its accounts sum exactly."""

import shlex
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from correction_helpers import Ratings, event, placing, read, take_in
from every_ladder import KNOWN_THEN, LADDERS, every_ladder
from reported import Reported, number

CHANGED = "What has been recorded since"
THEN = ("--known-at", str(KNOWN_THEN))
NOW: tuple[str, ...] = ()


pytestmark = pytest.mark.ledger(make=every_ladder, store="sqlite")


def report(ratings: Ratings, db: str, path: Path, *arguments: str) -> Reported:
    """A report as it is read."""
    done = ratings("report", "player", *arguments, "-o", path, db=db)
    assert (done.exit_code, done.stdout) == (0, ""), done
    return Reported(path.read_bytes())


def standing(ratings: Ratings, db: str, ladder: str, ids: Sequence[str], *axes: str) -> tuple[Fraction | None, str]:
    """Somebody's points and rank on a ladder, as the command says them."""
    rows = read(ratings, db, "standings", ladder, *axes)["rows"]
    mine = [row for player in ids for row in rows if row["player"] == player]
    return (Fraction(mine[0]["points"]), str(mine[0]["rank"] or "–")) if mine else (None, "–")


def sums(page: Reported, wanted: Sequence[tuple[Fraction | None, str]]) -> None:
    """The numbers of a page are these, and its accounts lead from one to the other, and each sums by itself."""
    rows = {row[0]: row[1:] for row in page.tables["The numbers"][0]}
    assert [None if text == "–" else number(text) for text in rows["Points"]] == [points for points, _ in wanted]
    assert rows["Rank"] == [rank for _, rank in wanted]
    (then, _), (now, _) = wanted
    for heading, tables in page.tables.items():
        if heading.startswith("Changes of the points"):
            assert page.account(heading)[2] == then, heading
        elif heading.startswith("Points of each game"):
            position = heading.rpartition(" ")[2]
            total = next(row for row in page.tables[f"How the points add up, known at position {position}"][0]
                         if row[0] == "sum")  # fmt: skip
            assert page.account(heading)[2] == number(total[2]), heading
        elif heading == CHANGED:
            opening, _, closing = page.account(heading)
            assert (then in (None, opening), now in (None, closing)) == (True, True)
        else:
            assert tables
    if CHANGED not in page.tables:
        (told,) = page.texts[CHANGED]
        assert told.startswith("Nothing that was recorded")
        assert then == now


def game_tables(page: Reported, ratings: Ratings, db: str, ladder: str, player: str, *axes: str) -> int:
    """Every game that counts for somebody has a table of terms with its change; how many there are."""
    games = read(ratings, db, "explain", "--player", player, ladder, *axes)["games"]
    counted = {game["game_id"]: Fraction(game["change"]) for game in games if game["game_id"] and game["change"]}
    for game_id, change in counted.items():
        found = [[number(row[-1]) for row in table[1:]] for table in page.tables[game_id]]
        assert all(sum(terms) == last for *terms, last in found), game_id
        assert change in [last for *_, last in found], game_id
    return len(counted)


RENAMED = ("elo-chess/all", "galactic-points", "catan-monthly/7/basic/2010-03", "catan-annual/7/basic/2010",
           "youplay-wsim/L1")  # fmt: skip
NEW = (
    "b5-league/2010-1",
    "catan-open/basic/2010-03",
    "catan-annual/7/basic/2010",
    "youplay-bluemax/L1",
    "italia-2010/L1",
)
# with all ids of the player
REPORTED = [
    *((ladder, ["anna"]) for ladder in LADDERS), *((ladder, ["benno", "ben"]) for ladder in RENAMED),
    *((ladder, ["eve"]) for ladder in NEW),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("ladder", "ids"), REPORTED, ids=[f"{ladder} {ids[0]}" for ladder, ids in REPORTED])
def test_every_kind_of_ladder_is_reported(
    ladder: str, ids: list[str], db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Given late, corrected and voided games, ids that became one, another id and a newcomer, a report's numbers are
    those of the standings then and now, what made them sums exactly, and every game that counts has its terms.
    """
    player = ids[0]
    if (ladder, player) == ("catan-annual/7/basic/2010", "eve"):
        done = ratings("report", "player", player, ladder, *THEN, "-o", tmp_path / "x.html", db=db)
        assert (done.exit_code, "'eve' is not on catan-annual/7/basic/2010" in done.stderr) == (1, True)
        return
    page = report(ratings, db, tmp_path / "x.html", player, ladder, *THEN)
    wanted = [standing(ratings, db, ladder, ids, *axes) for axes in (THEN, NOW)]
    assert wanted[1][0] is not None
    sums(page, wanted)
    assert len(page.claims) == 2
    if not ladder.startswith("catan-annual"):
        games = {"anna": (7, 9), "benno": (8, 8), "eve": (0, 1)}[player]
        if games[0]:
            assert game_tables(page, ratings, db, ladder, ids[-1], *THEN) == games[0]
        assert game_tables(page, ratings, db, ladder, player) == games[1]


@pytest.fixture(scope="module")
def ran() -> set[str]:
    """The commands that were run on a copy of the ledger, where they would do the same again."""
    return set()


@pytest.mark.slow
@pytest.mark.parametrize("ladder", LADDERS)
def test_commands_of_every_report_run(
    ladder: str, db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: set[str]
) -> None:
    """Every command on a page runs as it stands; the last one writes the page again, byte for byte."""
    monkeypatch.chdir(tmp_path)
    page = report(ratings, db, Path("x.html"), "anna", ladder, "--as-of", "2010-03-23", *THEN)
    for told, command in page.commands:
        if not told.startswith(("Head", "Digest")) and command not in ran:
            ran.add(command)
            done = ratings(*shlex.split(command)[1:], db=db)
            assert (done.exit_code, done.stderr.startswith("Error")) == (0, False), (command, done)
    assert Path("again.html").read_bytes() == Path("x.html").read_bytes()
    heads = [what for told, what in page.commands if told.startswith("Head")]
    assert heads[0].startswith(f"{KNOWN_THEN}:")
    months = {path.name for path in tmp_path.glob("2010-*.html")}
    assert months == ({"2010-03.html"} if ladder.startswith("catan-annual") else set())


@pytest.mark.slow_cases
def test_other_store_reports_the_same(copied: Callable[..., str], ratings: Ratings, tmp_path: Path) -> None:
    """In each store a pool's report has the numbers of the standings there, and sums."""
    url = copied(every_ladder)
    page = report(ratings, url, tmp_path / "x.html", "anna", "galactic-points", *THEN)
    sums(page, [standing(ratings, url, "galactic-points", ["anna"], *axes) for axes in (THEN, NOW)])


def test_no_rank_has_its_reason(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Whoever has points and no rank is told what is missing."""
    page = report(ratings, db, tmp_path / "x.html", "eve", "b5-league/2010-1")
    (claim,) = page.claims
    assert claim.endswith(" points and no rank (1 of 5 games; 4 are missing) on b5-league/2010-1.")


CARRIED = """
id = "seasons"
version = "1"
rule = "pairwise-elo/1"
effective_from = 1900-01-01
scope = { game = ["go"] }
partition = { by = ["season"] }
params = { start = 1000, k_total = 32, scale = 400, carry_over = true }
"""


def two_seasons(ratings: Ratings, url: str) -> None:
    """Make a ledger with two games in each of two seasons, the second of which goes on from the first."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "seasons.toml").write_text(CARRIED)
        assert ratings("init", "--no-rules", db=url).exit_code == 0
        assert ratings("rules", "publish", Path(folder) / "seasons.toml", db=url).exit_code == 0
    take_in(ratings, url, *(
        event("game.recorded", f"2010-0{month}-0{day}T12:00:00Z",
              **placing(f"g-{month}-{day}", "anna", "ben", game="go", season=f"2010-{month}"))
        for month in (1, 2) for day in (1, 2)
    ))  # fmt: skip


def test_season_begins_with_what_was_carried_over(
    copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A season that goes on from another begins with what somebody had there, and names the report on that."""
    db = copied_file(two_seasons)
    assert ratings("void", "g-1-1", "--reason", "r", "--by", "mira", db=db).exit_code == 0
    monkeypatch.chdir(tmp_path)
    page = report(ratings, db, Path("x.html"), "anna", "seasons/2010-2", "--known-at", "5")
    axes = [["--known-at", "5"], []]
    sums(page, [standing(ratings, db, "seasons/2010-2", ["anna"], *one) for one in axes])
    ((_, first, *_),) = page.tables["Changes of the points, known at position 5"]
    assert first[1] == "Carried over from seasons/2010-1"
    assert number(first[3]) == standing(ratings, db, "seasons/2010-1", ["anna"], *axes[0])[0]
    (line,) = page.account(CHANGED)[1]
    assert line[0] == "g-1-1: voided mira: “r” through what was carried over, or other players’ points"
    (command,) = [what for told, what in page.commands if told.startswith("Carried-over points")]
    assert ratings(*shlex.split(command)[1:], db=db).exit_code == 0
    assert Reported(Path("before.html").read_bytes()).claims[0].endswith(" of 2 on seasons/2010-1.")


def test_adjusted_players_need_no_game(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Whoever has been adjusted and never played has a report with that alone; a list of a year names its months."""
    adjust = ("adjust", "galactic-points", "newcomer", "50", "--reason", "rated elsewhere", "--by", "mira")
    assert ratings(*adjust, db=db).exit_code == 0
    page = report(ratings, db, tmp_path / "x.html", "newcomer", "galactic-points")
    opening, lines, closing = page.account("Changes of the points, known at position 122")
    assert (opening, lines, closing) == (1000, [("adjustment “rated elsewhere”", 50)], 1050)
    assert page.texts["Every game"][0] == "newcomer has no games on this ladder."
    page = report(ratings, db, tmp_path / "y.html", "cleo", "catan-annual/7/basic/2010")
    assert page.texts["Every game"][0].startswith(
        "This list has no games of its own; they are in the reports on the monthly lists."
    )


def test_merged_games_say_whose_they_were(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game of an id that became somebody's later is told as a game of somebody else then."""
    page = report(ratings, db, tmp_path / "x.html", "anna", "galactic-points", *THEN)
    told = [text for text in page.texts["magnate-7"] if "does not count" in text]
    assert told == [
        "Known at position 83, it does not count: Anna G., who played the game, was not yet linked to this player."
    ]


def test_games_recorded_later_are_said_to_be(db: str, ratings: Ratings) -> None:
    """A game that was not recorded yet is told so by `explain`, with the position at which it was."""
    later = ratings("explain", "magnate-9", "galactic-points", *THEN, db=db)
    position = read(ratings, db, "log", "magnate-9")["rows"][0]["position"]
    told = f"game-unknown: no game 'magnate-9' is recorded up to position 83; it was at {position}"
    assert (later.exit_code, told in later.stderr) == (1, True), later
