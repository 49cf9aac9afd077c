"""Who is meant by a name in a table: said by a file of aliases, or answered at a terminal."""

import json
from pathlib import Path

import pytest
from correction_helpers import Ratings, head, read
from terminals import CTRL_C, CTRL_D, type_answers

from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.store.opening import open_ledger

HEADER = "game_id,occurred_at,game,1st,2nd,3rd\n"


def row(number: int, *cells: str) -> str:
    """A game of chess as a row of the wide form."""
    return ",".join([f"g-{number}", f"2024-03-{number:02d}T12:00:00Z", "chess", *cells]) + "\n"


def a_club(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess that knows Johanna and ben with two games, and Tom with one."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    table = HEADER + row(1, "Johanna", "ben", "Tom") + row(2, "Johanna", "ben")
    assert ratings("import", "-", db=url, input=table).exit_code == 0


pytestmark = pytest.mark.ledger(make=a_club)


def players(ratings: Ratings, db: str, game_id: str) -> list[str]:
    """Who took part in a game, by place."""
    (game,) = read(ratings, db, "games", game_id)["rows"]
    return [one["player"] for one in game["participants"]]


def file(folder: Path, name: str, content: str) -> Path:
    """A file of that content."""
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


# aliases

FORMS = {
    "wide": HEADER + row(3, "Hanna=Tom", "BEN"),
    "long": "game_id,occurred_at,game,player,place\n" + "".join(
        f"g-3,2024-03-03T12:00:00Z,chess,{name},{place}\n" for name, place in (("Hanna", 1), ("Tom", 1), ("BEN", 3))
    ),
    "recognised": "Nr;Datum;Spieler;Platz\n" + "".join(
        f"g-3;3.3.2024 12:00;{name};{place}\n" for name, place in (("Hanna", 1), ("Tom", 1), ("BEN", 3))
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_aliases_stand_for_players(form: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Names with an alias are taken for the players they stand for, in every form of table, which is told."""
    aliases = file(tmp_path, "who.txt", "\ufeffHanna = Johanna\n\n BEN =ben\nnobody=Tom\n")
    more = ("--set", "game=chess", "--zone", "UTC") if form == "recognised" else ()
    done = ratings("import", "-", "--aliases", aliases, *more, db=db, input=FORMS[form])
    assert (done.exit_code, done.stdout) == (0, "1 appended; the head is 6.\n"), done
    assert "note: -: aliases: Hanna = Johanna, BEN = ben\n" in done.stderr
    assert "new player" not in done.stderr
    assert players(ratings, db, "g-3") == ["Johanna", "Tom", "ben"]


def test_aliases_of_sheets_stand_for_players(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The names of a spreadsheet, too, are taken for the players they stand for, accents written either way."""
    pytest.importorskip("python_calamine")
    from sheet_files import xlsx

    sheet = tmp_path / "results.xlsx"
    sheet.write_bytes(xlsx([["Nr", "Date", "1st", "2nd"], ["g-3", "2024-03-03", "Jo\u0301", "ben"]]))
    aliases = file(tmp_path, "who.txt", "J\u00f3 = Johanna\n")
    done = ratings(
        "import", sheet, "--aliases", aliases, "--set", "game=chess", "--zone", "UTC", db=one_db
    )  # fmt: skip
    assert (done.exit_code, players(ratings, one_db, "g-3")) == (0, ["Johanna", "ben"]), done


def test_aliases_leave_json_lines_alone(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A program's lines of JSON name players by their ids, which no alias changes."""
    data = {"game_id": "g-3", "game": "chess", "participants": [{"player": p, "place": n} for n, p in
            enumerate(("Hanna", "ben"), 1)]}  # fmt: skip
    line = json.dumps({"type": "game.recorded", "occurred_at": "2024-03-03T12:00:00Z", "data": data})
    aliases = file(tmp_path, "who.txt", "Hanna = Johanna\n")
    assert ratings("import", "-", "--aliases", aliases, db=one_db, input=line).exit_code == 0
    assert players(ratings, one_db, "g-3") == ["Hanna", "ben"]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ("Hanna", "Johanna"),
            "'Hanna' is an alias of 'Johanna', who takes part in the game as well; correct one of them",
        ),
        (
            ("Johanna", "Hanna"),
            "'Hanna' is an alias of 'Johanna', who takes part in the game as well; correct one of them",
        ),
        (
            ("Hanna", "Jo"),
            "'Hanna' and 'Jo' take part in one game, but are both aliases of 'Johanna'; correct an alias or a name",
        ),
        (("ben", "ben"), "'ben' takes part twice"),
    ],
)
def test_player_twice_by_alias_is_refused(
    cells: tuple[str, ...], message: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A game in which two names become one player is refused, with both names."""
    aliases = file(tmp_path, "who.txt", "Hanna = Johanna\nJo = Johanna\n")
    told = ratings("import", "-", "--aliases", aliases, "--format", "json", db=one_db, input=HEADER + row(3, *cells))
    (rejection,) = json.loads(told.stdout)["rejected"]
    assert (told.exit_code, rejection["code"], rejection["message"]) == (1, "player-twice", message)


BAD = {
    "no equals sign": ("Hanna Johanna", 1, "'Hanna Johanna' is not an alias; write NAME = PLAYER"),
    "two equals signs": ("a = b = c", 1, "'a = b = c' is not an alias; write NAME = PLAYER"),
    "no name": ("= Johanna", 1, "the name is missing"),
    "no player": ("Hanna =", 1, "the player of 'Hanna' is not valid: ''"),
    "a player that cannot be": ("Hanna = Jo/hanna", 1, "the player of 'Hanna' is not valid: 'Jo/hanna' holds '/'"),
    "a chain": ("Hanna = Jo\nJo = Johanna", 1, "'Jo' is itself an alias, of 'Johanna' (line 2); write Hanna = Johanna"),
    "a circle": (
        "Hanna = Jo\nJo = Hanna",
        2,
        "'Hanna' is itself an alias, of 'Jo' (line 1); delete one, because they lead back",
    ),
    "two players": ("Hanna = Jo\n\nHanna = Johanna", 3, "'Hanna' is 'Jo' (line 1) and 'Johanna'; choose one"),
}


@pytest.mark.parametrize(("content", "line", "message"), BAD.values(), ids=BAD)
def test_bad_aliases_are_refused(
    content: str, line: int, message: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A line that is no alias, or leads on to another, is refused by its number, and nothing is appended."""
    before, aliases = head(ratings, one_db), file(tmp_path, "who.txt", content)
    done = ratings("import", "-", "--aliases", aliases, "--format", "json", db=one_db, input=HEADER + row(3, "a", "b"))
    rejected = json.loads(done.stdout)["rejected"]
    assert done.exit_code == 1
    assert {(one["file"], one["code"]) for one in rejected} == {(str(aliases), "bad-alias")}
    assert [one for one in rejected if one["line"] == line and message in one["message"]], rejected
    assert head(ratings, one_db) == before


def test_all_bad_aliases_are_listed(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Everything that is wrong with a file of aliases is listed at once, in the order of its lines."""
    aliases = tmp_path / "who.txt"
    aliases.write_bytes(b"a\nb = c\n\xff = d\nc = d\nsame = ben\nsame=ben\n")
    done = ratings("import", "-", "--aliases", aliases, db=one_db, input=HEADER + row(3, "a", "b"))
    assert [line.split(":")[1] for line in done.stderr.splitlines()] == ["1", "2", "3"]
    assert done.stdout == "0 appended, 3 refused; nothing was appended; the head is 4.\n"


# asked at a terminal

SLIPS = HEADER + row(3, "Johana", "ben", "Emilia") + row(4, "BEN", "Johana") + row(5, "Emmilia", "zoe")


def asked(db: str, table: Path, *answers: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """What an import at a terminal does, whose questions get these answers."""
    given = [("stop] ", f"{answer}\r" if answer not in (CTRL_C, CTRL_D) else answer) for answer in answers]
    return type_answers(["--db", db, "import", str(table), *options], given)


def test_name_stands_for_itself(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A line `Johana = Johana` says that they are somebody of their own, and says it of nobody else."""
    aliases = file(tmp_path, "who.txt", "Johana = Johana\nJojo = Johana\n")
    table = file(tmp_path, "t.csv", HEADER + row(3, "Johana", "ben") + row(4, "Jojo", "ben"))
    assert ratings("import", table, "--aliases", aliases, db=one_db).exit_code == 0
    assert [players(ratings, one_db, f"g-{n}") for n in (3, 4)] == [["Johana", "ben"]] * 2
    again = ratings("import", "-", "--aliases", aliases, db=one_db, input=HEADER + row(5, "Johanna ", "BEN"))
    assert (again.exit_code, "close-name" in again.stderr, "'BEN'" in again.stderr) == (1, True, True)


@pytest.mark.slow
def test_close_names_are_asked_about(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """At a terminal an import asks who each close name is: who it looks like, or somebody new."""
    code, stdout, shown = asked(db, file(tmp_path, "t.csv", SLIPS), "yes", "y", "new")
    assert (code, stdout) == (0, "3 appended; the head is 8.\n"), shown
    assert "3 new names close to others; who is it?" in shown
    assert "new: 'Johana' (line 2): did you mean 'Johanna', 2 games? [yes, new, stop] yes" in shown
    assert "new: 'BEN' (line 3): did you mean 'ben', 2 games? [yes, new, stop] y" in shown
    assert "new: 'Emmilia' (line 4): did you mean 'Emilia', new in line 2? [yes, new, stop] new" in shown
    assert "names as answered: Johana = Johanna, BEN = ben; change them with --aliases\r\n" in shown
    assert [players(ratings, db, f"g-{n}") for n in (3, 4, 5)] == [
        ["Johanna", "ben", "Emilia"], ["ben", "Johanna"], ["Emmilia", "zoe"],
    ]  # fmt: skip


@pytest.mark.slow
def test_answers_hold_for_the_grown_file(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """An answer is kept with the import, so the file imports again without a question, until that import is undone."""
    table = file(tmp_path, "t.csv", HEADER + row(3, "Johana", "ben"))
    assert asked(one_db, table, "yes")[0] == 0
    grown = file(tmp_path, "t.csv", HEADER + row(3, "Johana", "ben") + row(4, "ben", "Johana"))
    again = ratings("import", grown, db=one_db)
    assert (again.exit_code, again.stdout) == (0, "1 appended, 1 already there; the head is 8.\n"), again.stderr
    assert "t.csv: names as answered: Johana = Johanna; change them with --aliases" in again.stderr
    assert "t.csv: position 5, Johana = Johanna" in ratings("log", "--batch", "t.csv", db=one_db).stdout
    corrected = ratings("correct", "--file", grown, "--reason", "as the sheet says", db=one_db)
    assert "2 games already recorded like this" in corrected.stderr, corrected
    own = file(tmp_path, "own.txt", "Johana = Johana")
    changed = ratings("import", grown, "--aliases", own, "--sync", "--dry-run", db=one_db)
    assert "2 changed" in changed.stdout
    assert "t.csv: nothing new\n" in ratings("import", grown, "--sync", "--dry-run", db=one_db).stdout
    assert [ratings("undo", position, "--yes", db=one_db).exit_code for position in (8, 6)] == [0, 0]
    assert "close-name" in ratings("import", grown, db=one_db).stderr


def test_player_of_that_name_ends_an_answer(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Once a name that was a slip belongs to a player, it means that player in new rows."""
    options = TableOptions(aliases={"Johana": "Johanna"}, answered_names=frozenset({"Johana"}))
    table = file(tmp_path, "t.csv", HEADER + row(3, "Johana", "ben"))
    FileIntake(open_ledger(one_db), read_items(str(table), options), ImportPolicy("mira"), batches=True).append()
    table = file(tmp_path, "t.csv", HEADER + row(4, "Johana", "ben"))
    other = file(tmp_path, "other.csv", HEADER + row(5, "Johana", "Tom"))
    assert "close-name" in ratings("import", other, db=one_db).stderr
    assert ratings("import", other, "--new-names", "accept", db=one_db).exit_code == 0
    assert ratings("import", table, db=one_db).exit_code == 0
    assert players(ratings, one_db, "g-4") == ["Johana", "ben"]


def test_slip_in_recorded_game_is_reported_once(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A row that differs from its recorded game only by a slip has one fault, the slip; with another one, both."""
    table = HEADER + row(1, "Johana", "ben", "Tom") + row(2, "ben", "Johana")
    done = ratings("import", "-", "--format", "json", db=one_db, input=table)
    faults = [(one["line"], one["code"]) for one in json.loads(done.stdout)["rejected"]]
    assert faults == [(2, "close-name"), (3, "id-conflict")]
    accepted = ratings("import", "-", "--new-names", "accept", "--format", "json", db=one_db, input=table)
    assert [one["code"] for one in json.loads(accepted.stdout)["rejected"]] == ["id-conflict"] * 2


@pytest.mark.slow
def test_answers_lead_on_to_the_player(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of a slip of a slip it is asked about the player behind, once that is answered."""
    table = HEADER + row(3, "Johana", "ben") + row(4, "Johana ", "ben") + row(5, "johana", "Tom")
    code, _, shown = asked(one_db, file(tmp_path, "t.csv", table), "yes", "yes")
    assert (code, "new: 'johana' (line 4): did you mean 'Johanna', 2 games? [yes, new, stop]" in shown) == (0, True)
    assert [players(ratings, one_db, f"g-{n}")[0] for n in (3, 4, 5)] == ["Johanna"] * 3


@pytest.mark.slow
def test_one_of_several_is_chosen(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Where a name is close to several, the player is chosen by number."""
    ratings("import", "-", "--new-names", "accept", db=one_db, input=HEADER + row(3, "Johamna", "ben"))
    code, _, shown = asked(one_db, file(tmp_path, "t.csv", HEADER + row(4, "johanna", "ben")), "2")
    assert "new: 'johanna' (line 2): did you mean 1: 'Johamna', 1 game, or 2: 'Johanna', 2 games? [1, 2," in shown
    assert (code, players(ratings, one_db, "g-4")) == (0, ["Johanna", "ben"])


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["stop", CTRL_C, CTRL_D])
def test_stopping_records_nothing(answer: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Whoever stops, or leaves by Ctrl-C or Ctrl-D, has recorded nothing; `stop` lists the names."""
    before = head(ratings, one_db)
    code, stdout, shown = asked(one_db, file(tmp_path, "t.csv", SLIPS), "yes", answer)
    assert head(ratings, one_db) == before
    if answer == "stop":
        assert (code, stdout) == (1, "0 appended, 4 refused; nothing was appended; the head is 4.\n")
        assert shown.count("close-name") == 3
    else:
        assert (code, stdout) == (130, "")
        assert "nothing was recorded\r\nratings: interrupted\r\n" in shown


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--dry-run",), ("--strict",), ("--keep-going",)])
def test_nobody_is_asked_in_vain(options: tuple[str, ...], one_db: str, tmp_path: Path) -> None:
    """A dry run, a strict import and one that keeps going ask nothing."""
    code, _, shown = asked(one_db, file(tmp_path, "t.csv", SLIPS), options=options)
    assert (code, "close-name" in shown, "stop]" in shown) == (1, True, False)


def test_other_mistakes_come_before_questions(one_db: str, tmp_path: Path) -> None:
    """Nobody is asked about names in a file that is refused anyway; all that is wrong is listed."""
    code, _, shown = asked(one_db, file(tmp_path, "t.csv", SLIPS + row(6, "ben", "ben")))
    assert (code, "player-twice" in shown, "close-name" in shown, "stop]" in shown) == (1, True, True, False)


@pytest.mark.slow
def test_opponent_is_no_answer(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of a name that plays against the one it is close to, it is only asked whether it is a new player."""
    table = file(tmp_path, "t.csv", HEADER + row(3, "Johana", "Johanna"))
    code, stdout, shown = asked(db, table, "new")
    assert "new: 'Johana' (line 2) plays against 'Johanna', 2 games: is it a new player? [new, stop] new" in shown
    assert (code, stdout, players(ratings, db, "g-3")) == (
        0, "1 appended; the head is 6.\n", ["Johana", "Johanna"],
    )  # fmt: skip


@pytest.mark.slow
def test_opponent_of_an_answer_is_no_answer(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Once one of two opponents is somebody, the other is not asked about the same player."""
    table = file(tmp_path, "t.csv", HEADER + row(3, "Johana", "ben") + row(4, "Johana", "Johannna"))
    code, _, shown = asked(one_db, table, "yes", "new")
    assert "'Johannna' (line 3) plays against 'Johanna', 2 games: is it a new player? [new, stop] new" in shown
    assert (code, players(ratings, one_db, "g-4")) == (0, ["Johanna", "Johannna"])


@pytest.mark.slow
def test_only_opponents_are_left_out(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of several players to whom a name is close, it is asked about those who are no opponents."""
    ratings("import", "-", "--new-names", "accept", db=one_db, input=HEADER + row(3, "Johamna", "ben"))
    code, _, shown = asked(one_db, file(tmp_path, "t.csv", HEADER + row(4, "johanna", "Johamna")), "yes")
    assert "new: 'johanna' (line 2): did you mean 'Johanna', 2 games? [yes, new, stop] yes" in shown
    assert (code, players(ratings, one_db, "g-4")) == (0, ["Johanna", "Johamna"])
