"""Games without numbers of their own get those of their day that nothing else has, and keep them."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from correction_helpers import Ratings, digests, read
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

NAMES = ("Anna", "Ben", "Cleo", "Dora", "Emil")
DAYS = ("2024-09-17", "2024-09-17 20:05", "2024-09-18", "2024-09-24")
CHESS = ("2024-09-17,Anna,Ben", "2024-09-17,Ben,Cleo", "2024-09-18,Ben,Cleo")
CATAN = ("2024-09-17,Cleo,Ben,Anna", "2024-09-17,Anna,Ben,Cleo", "2024-09-18,Anna,Ben,Cleo")


def two_games(ratings: Ratings, url: str) -> None:
    """A ledger for chess and catan."""
    done = ratings("init", "--for", "chess", "--for", "catan", "--zone", "Europe/Berlin", db=url)
    assert done.exit_code == 0


pytestmark = pytest.mark.ledger(make=two_games, store="sqlite")


class Tables:
    """A folder of tables, each of which is imported into a ledger."""

    def __init__(self, ratings: Ratings, db: str, folder: Path) -> None:
        self._ratings, self._db, self._folder = ratings, db, folder

    def take(self, game: str, rows: Iterable[str], *more: str, name: str = "", header: str = "") -> dict[str, Any]:
        """What an import of a table tells."""
        file = self._folder / (name or f"{game}.csv")
        lines = [header or "Date,1st,2nd,3rd", *(row if row.count(",") > 2 else f"{row}," for row in rows)]
        file.write_text("\n".join(lines), encoding="utf-8")
        done = self._ratings("import", file, "--set", f"game={game}", *more, "--format", "json", db=self._db)
        return dict(json.loads(done.stdout))

    def ids(self, game: str) -> list[str]:
        """The ids of the live games of one kind, in the order of recording."""
        rows = read(self._ratings, self._db, "games", "--game", game)["rows"]
        return [row["game_id"] for row in sorted(rows, key=lambda row: int(row["position"])) if not row.get("voided")]


@pytest.fixture
def tables(ratings: Ratings, db: str, tmp_path: Path) -> Tables:
    return Tables(ratings, db, tmp_path)


def codes(told: dict[str, Any]) -> list[tuple[str, int]]:
    """The codes of refusals with their lines."""
    return [(one["code"], one["line"]) for one in told["rejected"]]


def test_tables_of_two_games_share_days(tables: Tables) -> None:
    """Numbers that another game has are passed over; imported again, every game is there already."""
    tables.take("catan", CATAN)
    tables.take("chess", CHESS)
    assert tables.ids("catan") == ["2024-09-17-1", "2024-09-17-2", "2024-09-18-1"]
    assert tables.ids("chess") == ["2024-09-17-3", "2024-09-17-4", "2024-09-18-2"]
    for game, rows in (("chess", CHESS), ("catan", CATAN), ("chess", CHESS)):
        again = tables.take(game, rows)
        assert (again["appended"], again["existing"], again["rejected"]) == (0, 3, [])
    for game, rows in (("chess", CHESS), ("catan", CATAN)):
        assert tables.take(game, rows, "--sync")["sync"]["games"] == []


def test_tables_of_one_import_share_days(tables: Tables, ratings: Ratings, db: str, tmp_path: Path) -> None:
    """Two tables in one import get numbers as one after the other; what is passed over is told."""
    files = []
    for game, rows in (("catan", CATAN), ("chess", CHESS)):
        lines = [f"{row}{',' * (4 - row.count(','))}{game}" for row in rows]
        files.append(tmp_path / f"{game}.csv")
        files[-1].write_text("\n".join(["Date,1st,2nd,3rd,Game", *lines]), encoding="utf-8")
    done = ratings("import", *files, db=db)
    told = f"note: {files[1]}: skipped ids that other games have: 2024-09-17-1 (of catan) and 2 more\n"
    assert told in done.stderr
    assert tables.ids("chess") == ["2024-09-17-3", "2024-09-17-4", "2024-09-18-2"]
    again = ratings("import", *files[::-1], db=db)
    assert "0 appended, 6 already there" in again.stdout
    assert "skipped" not in again.stderr


def test_later_rows_get_later_numbers(tables: Tables) -> None:
    """A table that grows gets numbers behind those of the other, and keeps those that it had."""
    tables.take("catan", CATAN)
    tables.take("chess", CHESS)
    longer = (*CATAN, "2024-09-17,Ben,Dora,Anna")
    assert tables.take("catan", longer)["appended"] == 1
    assert tables.ids("catan")[-1] == "2024-09-17-5"
    assert tables.take("catan", longer)["existing"] == 4
    assert tables.take("chess", (*CHESS, "2024-09-17,Dora,Ben"))["appended"] == 1
    assert tables.ids("chess")[-1] == "2024-09-17-6"


def test_one_table_of_several_games_counts_on(tables: Tables, ratings: Ratings, db: str, tmp_path: Path) -> None:
    """A table with a column of games numbers a day through; one whose game was edited is a conflict, not another."""
    file = tmp_path / "club.csv"
    rows = ["Date,Game,1st,2nd", "2024-09-17,catan,Anna,Ben", "2024-09-17,chess,Ben,Anna", "2024-09-17,catan,Ben,Anna"]
    file.write_text("\n".join(rows), encoding="utf-8")
    for appended in (3, 0):
        done = ratings("import", file, "--format", "json", db=db)
        assert json.loads(done.stdout)["appended"] == appended
    assert (tables.ids("catan"), tables.ids("chess")) == (["2024-09-17-1", "2024-09-17-3"], ["2024-09-17-2"])
    file.write_text("\n".join([*rows[:3], rows[3].replace("catan", "chess")]), encoding="utf-8")
    edited = json.loads(ratings("import", file, "--format", "json", db=db).stdout)
    assert codes(edited) == [("id-conflict", 4)]
    assert "use --sync if the table was edited" in edited["rejected"][0]["message"]


def test_other_game_of_the_same_table_is_refused(tables: Tables) -> None:
    """The same table imported as another game is a conflict: it would record everything twice."""
    tables.take("chess", CHESS, name="club.csv")
    assert codes(tables.take("catan", CHESS, name="club.csv")) == [("id-conflict", line) for line in (2, 3, 4)]


def test_tables_of_one_game_are_refused_in_few_words(tables: Tables) -> None:
    """Two tables of the same game on one day are refused; what to do is told once."""
    tables.take("chess", CHESS)
    told = tables.take("chess", [f"{row[:11]}Emil,Dora" for row in CHESS], name="b.csv")
    assert codes(told) == [("id-conflict", 2), ("id-conflict", 3), ("id-conflict", 4)]
    first, second, _ = (one["message"] for one in told["rejected"])
    there = "is already recorded with different content: there 1 Anna, 2 Ben; here 1 Emil, 2 Dora"
    assert first == (
        f"the game '2024-09-17-1' {there}; two tables have games on the same day: number the games in a column of each "
        "table (--map THEIRS=game_id), or keep all games of a day in one table"
    )
    assert second == f"the game '2024-09-17-2' {there.replace('Ben', 'Cleo').replace('Anna', 'Ben')}"


def test_number_of_a_vanished_game_is_passed_over(tables: Tables) -> None:
    """After --sync voided a game, the same sheet can be imported without --sync, and grow."""
    tables.take("chess", CHESS)
    assert tables.take("chess", CHESS[1:], "--sync", "--yes")["sync"]["vanished"] == 1
    again = tables.take("chess", CHESS[1:])
    assert (again["appended"], again["existing"], again["rejected"]) == (0, 2, [])
    assert tables.take("chess", (*CHESS[1:], "2024-09-17,Cleo,Anna"))["appended"] == 1
    assert tables.ids("chess") == ["2024-09-17-2", "2024-09-18-1", "2024-09-17-3"]


def test_import_taken_back_leaves_numbers_behind(tables: Tables, ratings: Ratings, db: str) -> None:
    """Games that were imported as the wrong ones and taken back stand in nobody's way."""
    tables.take("chess", CHESS)
    assert ratings("undo", "--yes", db=db).exit_code == 0
    assert tables.take("chess", [f"{row[:11]}Emil,Dora" for row in CHESS])["appended"] == 3
    assert tables.ids("chess") == ["2024-09-17-3", "2024-09-17-4", "2024-09-18-2"]


def test_unreadable_rows_keep_their_numbers(tables: Tables) -> None:
    """A row that cannot be read has a number, too, so that mending it moves no other."""
    tables.take("catan", CATAN)
    bad = (CHESS[0].replace("Ben", "Anna"), *CHESS[1:])
    assert codes(tables.take("chess", bad, "--keep-going")) == [("player-twice", 2)]
    assert tables.ids("chess") == ["2024-09-17-4", "2024-09-18-2"]
    mended = tables.take("chess", CHESS)
    assert (mended["appended"], mended["existing"], mended["rejected"]) == (1, 2, [])


def test_rows_of_a_game_move_together(tables: Tables, ratings: Ratings, db: str, tmp_path: Path) -> None:
    """Games with a row per player are put together under the numbers that they get, also beside one that is refused."""
    tables.take("catan", CATAN)
    file = tmp_path / "rows.csv"
    rows = ["17,Anna,1", "17,Ben,2", "17,Ben,1", "17,Ben,2", "17,Dora,1", "17,Ben,2"]
    file.write_text("\n".join(["Date,Player,Place", *(f"2024-09-{row}" for row in rows)]), encoding="utf-8")
    done = ratings("import", file, "--set", "game=chess", "--keep-going", "--format", "json", db=db)
    assert codes(json.loads(done.stdout)) == [("player-twice", 4)]
    assert tables.ids("chess") == ["2024-09-17-3", "2024-09-17-5"]


def test_correct_does_not_take_another_game_for_its_own(
    tables: Tables, ratings: Ratings, db: str, tmp_path: Path
) -> None:
    """A table without numbers corrects no game of another kind that has the number which the table counts."""
    tables.take("catan", CATAN)
    tables.take("chess", CHESS)
    file = tmp_path / "mended.csv"
    file.write_text("Date,Game,1st,2nd\n2024-09-17,chess,Ben,Anna\n", encoding="utf-8")
    done = ratings("correct", "--file", file, "--reason", "x", "--format", "json", db=db)
    (one,) = json.loads(done.stdout)["rejected"]
    assert (one["code"], one["message"]) == (
        "id-conflict",
        "the recorded game '2024-09-17-1' is another game; to compare a table without ids run: ratings import FILE "
        "--sync",
    )


def a_table(chance: Random, game: str) -> list[str]:
    """Random rows of one kind of game, in the order of nothing."""
    size = 2 if game == "chess" else 3
    return [f"{chance.choice(DAYS)},{','.join(chance.sample(NAMES, size))}" for _ in range(chance.randrange(1, 9))]


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_two_random_tables_in_any_order(
    ratings: Ratings, copied_file: Callable[..., str], tmp_path: Path, at_length: bool
) -> None:
    """Random tables of two games over the same days, imported in either order, twice, and synced: each row is one
    game, and all ladders are those of the same games with ids of their own."""
    template, db = copied_file(two_games, name="template.db"), str(tmp_path / "ratings.db")
    tables = Tables(ratings, db, tmp_path)

    @settings(deadline=None, suppress_health_check=list(HealthCheck), database=None,
              max_examples=200 if at_length else 6, derandomize=not at_length,
              phases=[Phase.generate, *[Phase.shrink][:at_length]])  # fmt: skip
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        chance = Random(seed)
        pair = [(game, a_table(chance, game)) for game in chance.sample(("chess", "catan"), 2)]
        shutil.copyfile(template, db)
        for game, rows in pair:
            own = [f"{game}-{number},{row}{',' * (3 - row.count(','))}" for number, row in enumerate(rows)]
            told = tables.take(game, own, header="game_id,Date,1st,2nd,3rd")
            assert told["appended"] == len(rows)
        wanted = digests(ratings, db)
        shutil.copyfile(template, db)
        for turn in range(3):
            for game, rows in pair if turn < 2 else chance.sample(pair, 2):
                told = tables.take(game, rows, *["--sync"][: turn == 2])
                found = (told["appended"], told["existing"], told["rejected"])
                assert found == ((len(rows), 0, []) if turn == 0 else (0, len(rows), []))
        assert digests(ratings, db) == wanted

    check()
