"""Games without ids get the free numbers of their day, and keep them."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from correction_helpers import Ratings, read_digests, read_json
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

NAMES = ("Anna", "Ben", "Cleo", "Dora", "Emil")
DAYS = ("2024-09-17", "2024-09-17 20:05", "2024-09-18", "2024-09-24")
CHESS = ("2024-09-17,Anna,Ben", "2024-09-17,Ben,Cleo", "2024-09-18,Ben,Cleo")
CATAN = ("2024-09-17,Cleo,Ben,Anna", "2024-09-17,Anna,Ben,Cleo", "2024-09-18,Anna,Ben,Cleo")


def create_chess_and_catan_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess and catan, without games."""
    result = ratings("init", "--for", "chess", "--for", "catan", "--zone", "Europe/Berlin", db=url)
    assert result.exit_code == 0


pytestmark = pytest.mark.ledger(make=create_chess_and_catan_ledger, store="sqlite")


class Tables:
    """A folder of tables that are imported into a ledger."""

    def __init__(self, ratings: Ratings, db: str, folder: Path) -> None:
        self._ratings, self._db, self._folder = ratings, db, folder

    def import_table(
        self, game: str, rows: Iterable[str], *options: str, name: str = "", header: str = ""
    ) -> dict[str, Any]:
        """Write a table of one game, such as chess, import it and return the JSON."""
        file = self._folder / (name or f"{game}.csv")
        lines = [header or "Date,1st,2nd,3rd", *(row if row.count(",") > 2 else f"{row}," for row in rows)]
        file.write_text("\n".join(lines), encoding="utf-8")
        result = self._ratings("import", file, "--set", f"game={game}", *options, "--format", "json", db=self._db)
        return dict(json.loads(result.stdout))

    def list_ids(self, game: str) -> list[str]:
        """Return the ids of the live games of chess or of catan, in the order of recording."""
        rows = read_json(self._ratings, self._db, "games", "--game", game)["rows"]
        return [row["game_id"] for row in sorted(rows, key=lambda row: int(row["position"])) if not row.get("voided")]


@pytest.fixture
def tables(ratings: Ratings, db: str, tmp_path: Path) -> Tables:
    return Tables(ratings, db, tmp_path)


def list_codes(report: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the codes of the rejections with their lines."""
    return [(rejection["code"], rejection["line"]) for rejection in report["rejected"]]


def test_tables_of_two_games_share_the_numbers_of_a_day(tables: Tables) -> None:
    """Numbers of another game are skipped; imported again, every game is there already."""
    tables.import_table("catan", CATAN)
    tables.import_table("chess", CHESS)
    assert tables.list_ids("catan") == ["2024-09-17-1", "2024-09-17-2", "2024-09-18-1"]
    assert tables.list_ids("chess") == ["2024-09-17-3", "2024-09-17-4", "2024-09-18-2"]
    for game, rows in (("chess", CHESS), ("catan", CATAN), ("chess", CHESS)):
        report = tables.import_table(game, rows)
        assert (report["appended"], report["existing"], report["rejected"]) == (0, 3, [])
    for game, rows in (("chess", CHESS), ("catan", CATAN)):
        assert tables.import_table(game, rows, "--sync")["sync"]["games"] == []


def test_tables_of_one_import_share_the_numbers_of_a_day(
    tables: Tables, ratings: Ratings, db: str, tmp_path: Path
) -> None:
    """Two tables in one import get numbers like two imports, and a note lists the skipped ones."""
    files = []
    for game, rows in (("catan", CATAN), ("chess", CHESS)):
        lines = [f"{row}{',' * (4 - row.count(','))}{game}" for row in rows]
        files.append(tmp_path / f"{game}.csv")
        files[-1].write_text("\n".join(["Date,1st,2nd,3rd,Game", *lines]), encoding="utf-8")
    result = ratings("import", *files, db=db)
    note = f"note: {files[1]}: skipped ids that other games have: 2024-09-17-1 (a game of catan) and 2 more\n"
    assert note in result.stderr
    assert tables.list_ids("chess") == ["2024-09-17-3", "2024-09-17-4", "2024-09-18-2"]
    again = ratings("import", *files[::-1], db=db)
    assert "0 appended, 6 already there" in again.stdout
    assert "skipped" not in again.stderr


def test_later_rows_get_later_numbers(tables: Tables) -> None:
    """A table that grows keeps its numbers and gets new ones after those of other tables."""
    tables.import_table("catan", CATAN)
    tables.import_table("chess", CHESS)
    longer = (*CATAN, "2024-09-17,Ben,Dora,Anna")
    assert tables.import_table("catan", longer)["appended"] == 1
    assert tables.list_ids("catan")[-1] == "2024-09-17-5"
    assert tables.import_table("catan", longer)["existing"] == 4
    assert tables.import_table("chess", (*CHESS, "2024-09-17,Dora,Ben"))["appended"] == 1
    assert tables.list_ids("chess")[-1] == "2024-09-17-6"


def test_table_of_several_games_numbers_each_day_once(
    tables: Tables, ratings: Ratings, db: str, tmp_path: Path
) -> None:
    """A table with a column of games numbers each day once; a row whose game was edited is a conflict."""
    file = tmp_path / "club.csv"
    rows = ["Date,Game,1st,2nd", "2024-09-17,catan,Anna,Ben", "2024-09-17,chess,Ben,Anna", "2024-09-17,catan,Ben,Anna"]
    file.write_text("\n".join(rows), encoding="utf-8")
    for appended in (3, 0):
        result = ratings("import", file, "--format", "json", db=db)
        assert json.loads(result.stdout)["appended"] == appended
    assert (tables.list_ids("catan"), tables.list_ids("chess")) == (["2024-09-17-1", "2024-09-17-3"], ["2024-09-17-2"])
    file.write_text("\n".join([*rows[:3], rows[3].replace("catan", "chess")]), encoding="utf-8")
    edited = json.loads(ratings("import", file, "--format", "json", db=db).stdout)
    assert list_codes(edited) == [("id-conflict", 4)]
    assert "use --sync if the table was edited" in edited["rejected"][0]["message"]


def test_table_imported_as_another_game_is_refused(tables: Tables) -> None:
    """The same table imported as another game is a conflict, because it would record everything twice."""
    tables.import_table("chess", CHESS, name="club.csv")
    assert list_codes(tables.import_table("catan", CHESS, name="club.csv")) == [
        ("id-conflict", line) for line in (2, 3, 4)
    ]


def test_second_table_of_a_game_and_day_is_refused(tables: Tables) -> None:
    """A second table of the same game on one day is refused, and the advice is given once."""
    tables.import_table("chess", CHESS)
    report = tables.import_table("chess", [f"{row[:11]}Emil,Dora" for row in CHESS], name="b.csv")
    assert list_codes(report) == [("id-conflict", 2), ("id-conflict", 3), ("id-conflict", 4)]
    first, second, _ = (rejection["message"] for rejection in report["rejected"])
    difference = "is already recorded with different content: recorded as 1 Anna, 2 Ben; now 1 Emil, 2 Dora"
    assert first == (
        f"the game '2024-09-17-1' {difference}; two tables have games on the same day: number the games in a column of "
        "each table (--map THEIRS=game_id), or keep all games of a day in one table"
    )
    assert second == f"the game '2024-09-17-2' {difference.replace('Ben', 'Cleo').replace('Anna', 'Ben')}"


def test_two_tables_of_a_game_and_day_in_one_import_are_refused(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """Two tables in one import conflict, too; the message names another remedy if the tables have ids."""
    remedies = (
        ("Date,1st,2nd", "two tables have games on the same day: number"),
        ("Date,game_id,1st,2nd", "use another game_id"),
    )
    for header, remedy in remedies:
        files = [tmp_path / "a.csv", tmp_path / "b.csv"]
        for file, players in zip(files, ("Anna,Ben", "Ben,Anna"), strict=True):
            game_id = "2024-09-17-1," if "game_id" in header else ""
            file.write_text(f"{header}\n2024-09-17,{game_id}{players}\n", encoding="utf-8")
        result = ratings("import", *files, "--set", "game=chess", "--format", "json", db=db)
        (rejection,) = json.loads(result.stdout)["rejected"]
        text = f"the game '2024-09-17-1' has different content in line 2 of {files[0]}; {remedy}"
        assert rejection["message"].startswith(text)


def test_number_of_a_vanished_game_is_skipped(tables: Tables) -> None:
    """After --sync voided a game, the same sheet can be imported without --sync, and can grow."""
    tables.import_table("chess", CHESS)
    assert tables.import_table("chess", CHESS[1:], "--sync", "--yes")["sync"]["vanished"] == 1
    report = tables.import_table("chess", CHESS[1:])
    assert (report["appended"], report["existing"], report["rejected"]) == (0, 2, [])
    assert tables.import_table("chess", (*CHESS[1:], "2024-09-17,Cleo,Anna"))["appended"] == 1
    assert tables.list_ids("chess") == ["2024-09-17-2", "2024-09-18-1", "2024-09-17-3"]


def test_undone_import_does_not_block_its_rows(tables: Tables, ratings: Ratings, db: str) -> None:
    """After a wrong import was undone, other rows get new numbers."""
    tables.import_table("chess", CHESS)
    assert ratings("undo", "--yes", db=db).exit_code == 0
    assert tables.import_table("chess", [f"{row[:11]}Emil,Dora" for row in CHESS])["appended"] == 3
    assert tables.list_ids("chess") == ["2024-09-17-3", "2024-09-17-4", "2024-09-18-2"]


def test_unreadable_rows_keep_their_numbers(tables: Tables) -> None:
    """A row that cannot be read has a number, so repairing it changes no other."""
    tables.import_table("catan", CATAN)
    bad_rows = (CHESS[0].replace("Ben", "Anna"), *CHESS[1:])
    assert list_codes(tables.import_table("chess", bad_rows, "--keep-going")) == [("player-twice", 2)]
    assert tables.list_ids("chess") == ["2024-09-17-4", "2024-09-18-2"]
    report = tables.import_table("chess", CHESS)
    assert (report["appended"], report["existing"], report["rejected"]) == (1, 2, [])


def test_rows_per_player_are_numbered_by_game(tables: Tables, ratings: Ratings, db: str, tmp_path: Path) -> None:
    """Games with a row per player get a number for each game, even for one that is refused."""
    tables.import_table("catan", CATAN)
    file = tmp_path / "rows.csv"
    rows = ["17,Anna,1", "17,Ben,2", "17,Ben,1", "17,Ben,2", "17,Dora,1", "17,Ben,2"]
    file.write_text("\n".join(["Date,Player,Place", *(f"2024-09-{row}" for row in rows)]), encoding="utf-8")
    result = ratings("import", file, "--set", "game=chess", "--keep-going", "--format", "json", db=db)
    assert list_codes(json.loads(result.stdout)) == [("player-twice", 4)]
    assert tables.list_ids("chess") == ["2024-09-17-3", "2024-09-17-5"]


def test_correct_of_chess_does_not_match_a_game_of_catan(
    tables: Tables, ratings: Ratings, db: str, tmp_path: Path
) -> None:
    """`correct` with a table of chess without ids refuses a row whose counted number belongs to a game of catan."""
    tables.import_table("catan", CATAN)
    tables.import_table("chess", CHESS)
    file = tmp_path / "mended.csv"
    file.write_text("Date,Game,1st,2nd\n2024-09-17,chess,Ben,Anna\n", encoding="utf-8")
    result = ratings("correct", "--file", file, "--reason", "x", "--format", "json", db=db)
    (rejection,) = json.loads(result.stdout)["rejected"]
    assert (rejection["code"], rejection["message"]) == (
        "id-conflict",
        "the recorded game '2024-09-17-1' is a game of catan, so it may not be the game of this row; to compare a "
        f"table without ids run: ratings import {file} --sync",
    )
    piped = ratings("correct", "--file", "-", "--reason", "x", db=db, input=file.read_text(encoding="utf-8"))
    assert "run: ratings import FILE --sync" in " ".join(piped.stderr.split())


def draw_table(rng: Random, game: str) -> list[str]:
    """Return random rows of chess or of catan, in no order."""
    size = 2 if game == "chess" else 3
    return [f"{rng.choice(DAYS)},{','.join(rng.sample(NAMES, size))}" for _ in range(rng.randrange(1, 9))]


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_random_tables_in_any_order_are_equivalent(
    ratings: Ratings, copy_ledger_file: Callable[..., str], tmp_path: Path, at_length: bool
) -> None:
    """Random tables of two games over the same days, imported in either order, twice, and synced, give one game per
    row.

    The ladders equal those of the same games with explicit ids.
    """
    template, db = copy_ledger_file(create_chess_and_catan_ledger, name="template.db"), str(tmp_path / "ratings.db")
    tables = Tables(ratings, db, tmp_path)

    @settings(
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        max_examples=200 if at_length else 6,
        derandomize=not at_length,
        phases=[Phase.generate, Phase.shrink] if at_length else [Phase.generate],
    )
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        rng = Random(seed)
        pair = [(game, draw_table(rng, game)) for game in rng.sample(("chess", "catan"), 2)]
        shutil.copyfile(template, db)
        for game, rows in pair:
            rows_with_ids = [f"{game}-{number},{row}{',' * (3 - row.count(','))}" for number, row in enumerate(rows)]
            report = tables.import_table(game, rows_with_ids, header="game_id,Date,1st,2nd,3rd")
            assert report["appended"] == len(rows)
        expected = read_digests(ratings, db)
        shutil.copyfile(template, db)
        for turn in range(3):
            for game, rows in pair if turn < 2 else rng.sample(pair, 2):
                report = tables.import_table(game, rows, *(["--sync"] if turn == 2 else []))
                counts_and_rejections = (report["appended"], report["existing"], report["rejected"])
                assert counts_and_rejections == ((len(rows), 0, []) if turn == 0 else (0, len(rows), []))
        assert read_digests(ratings, db) == expected

    check()
