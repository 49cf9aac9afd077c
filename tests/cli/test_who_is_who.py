"""Names in tables: aliases from a file, and questions about close names at a terminal."""

import json
from pathlib import Path

import pytest
from correction_helpers import Ratings, read_head, read_json
from terminals import CTRL_C, CTRL_D, type_answers

from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.store.opening import open_ledger

HEADER = "game_id,occurred_at,game,1st,2nd,3rd\n"


def build_row(number: int, *cells: str) -> str:
    """Return a game of chess as a row of the wide layout."""
    return ",".join([f"g-{number}", f"2024-03-{number:02d}T12:00:00Z", "chess", *cells]) + "\n"


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess with Johanna and ben in two games, and Tom in one."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    table = HEADER + build_row(1, "Johanna", "ben", "Tom") + build_row(2, "Johanna", "ben")
    assert ratings("import", "-", db=url, input=table).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_club)


def list_players(ratings: Ratings, db: str, game_id: str) -> list[str]:
    """Return the players of a game by place."""
    (game,) = read_json(ratings, db, "games", game_id)["rows"]
    return [participant["player"] for participant in game["participants"]]


def write_file(folder: Path, name: str, content: str) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


# aliases

LAYOUTS = {
    "wide": HEADER + build_row(3, "Hanna=Tom", "BEN"),
    "long": "game_id,occurred_at,game,player,place\n"
    + "".join(
        f"g-3,2024-03-03T12:00:00Z,chess,{name},{place}\n" for name, place in (("Hanna", 1), ("Tom", 1), ("BEN", 3))
    ),
    "with German headings": "Nr;Datum;Spieler;Platz\n"
    + "".join(f"g-3;3.3.2024 12:00;{name};{place}\n" for name, place in (("Hanna", 1), ("Tom", 1), ("BEN", 3))),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_aliases_stand_for_players(layout: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """In every layout of table, names with an alias are read as the players they stand for, and a note lists them."""
    aliases = write_file(tmp_path, "who.txt", "\ufeffHanna = Johanna\n\n BEN =ben\nnobody=Tom\n")
    extra_options = ("--set", "game=chess", "--zone", "UTC") if layout == "with German headings" else ()
    result = ratings("import", "-", "--aliases", aliases, *extra_options, db=db, input=LAYOUTS[layout])
    assert (result.exit_code, result.stdout) == (0, "1 appended; the head is 6.\n"), result
    assert "note: -: aliases: Hanna = Johanna, BEN = ben\n" in result.stderr
    assert "new player" not in result.stderr
    assert list_players(ratings, db, "g-3") == ["Johanna", "Tom", "ben"]


def test_aliases_apply_to_spreadsheets(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Aliases apply to names in spreadsheets, with accents composed or decomposed."""
    pytest.importorskip("python_calamine")
    from sheet_files import xlsx

    sheet = tmp_path / "results.xlsx"
    sheet.write_bytes(xlsx([["Nr", "Date", "1st", "2nd"], ["g-3", "2024-03-03", "Jo\u0301", "ben"]]))
    aliases = write_file(tmp_path, "who.txt", "J\u00f3 = Johanna\n")
    result = ratings("import", sheet, "--aliases", aliases, "--set", "game=chess", "--zone", "UTC", db=one_db)
    assert (result.exit_code, list_players(ratings, one_db, "g-3")) == (0, ["Johanna", "ben"]), result


def test_aliases_do_not_apply_to_json_lines(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Aliases do not apply to JSON lines, which name players by ids."""
    data = {
        "game_id": "g-3",
        "game": "chess",
        "participants": [{"player": p, "place": n} for n, p in enumerate(("Hanna", "ben"), 1)],
    }
    line = json.dumps({"type": "game.recorded", "occurred_at": "2024-03-03T12:00:00Z", "data": data})
    aliases = write_file(tmp_path, "who.txt", "Hanna = Johanna\n")
    assert ratings("import", "-", "--aliases", aliases, db=one_db, input=line).exit_code == 0
    assert list_players(ratings, one_db, "g-3") == ["Hanna", "ben"]


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
        (("ben", "ben"), "'ben' takes part twice; name each player once"),
    ],
)
def test_player_twice_in_a_game_is_refused(
    cells: tuple[str, ...], message: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A game in which a player takes part twice, by two names or one, is refused with a message that has the names."""
    aliases = write_file(tmp_path, "who.txt", "Hanna = Johanna\nJo = Johanna\n")
    result = ratings(
        "import", "-", "--aliases", aliases, "--format", "json", db=one_db, input=HEADER + build_row(3, *cells)
    )
    (rejection,) = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, rejection["code"], rejection["message"]) == (1, "player-twice", message)


BAD_ALIASES = {
    "no equals sign": ("Hanna Johanna", 1, "'Hanna Johanna' is not an alias; write NAME = PLAYER"),
    "two equals signs": ("a = b = c", 1, "'a = b = c' is not an alias; write NAME = PLAYER"),
    "no name": ("= Johanna", 1, "the name is missing"),
    "no player": ("Hanna =", 1, "the player of 'Hanna' is not valid: ''"),
    "an invalid player": ("Hanna = Jo/hanna", 1, "the player of 'Hanna' is not valid: 'Jo/hanna' holds '/'"),
    "a chain": ("Hanna = Jo\nJo = Johanna", 1, "'Jo' is itself an alias, of 'Johanna' (line 2); write Hanna = Johanna"),
    "a circle": (
        "Hanna = Jo\nJo = Hanna",
        2,
        "'Hanna' is itself an alias, of 'Jo' (line 1); delete one of these aliases, because they form a circle",
    ),
    "two players": ("Hanna = Jo\n\nHanna = Johanna", 3, "'Hanna' is 'Jo' (line 1) and 'Johanna'; choose one"),
}


@pytest.mark.parametrize(("content", "line", "message"), BAD_ALIASES.values(), ids=BAD_ALIASES)
def test_bad_aliases_are_refused(
    content: str, line: int, message: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """An invalid or chained alias is refused with its line, and nothing is appended."""
    before, aliases = read_head(ratings, one_db), write_file(tmp_path, "who.txt", content)
    result = ratings(
        "import", "-", "--aliases", aliases, "--format", "json", db=one_db, input=HEADER + build_row(3, "a", "b")
    )
    rejected = json.loads(result.stdout)["rejected"]
    assert result.exit_code == 1
    assert {(rejection["file"], rejection["code"]) for rejection in rejected} == {(str(aliases), "bad-alias")}
    assert [rejection for rejection in rejected if rejection["line"] == line and message in rejection["message"]], (
        rejected
    )
    assert read_head(ratings, one_db) == before


def test_all_bad_aliases_are_listed(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """All errors in a file of aliases are listed at once, in the order of its lines."""
    aliases = tmp_path / "who.txt"
    aliases.write_bytes(b"a\nb = c\n\xff = d\nc = d\nsame = ben\nsame=ben\n")
    result = ratings("import", "-", "--aliases", aliases, db=one_db, input=HEADER + build_row(3, "a", "b"))
    assert [line.split(":")[1] for line in result.stderr.splitlines()] == ["1", "2", "3"]
    assert result.stdout == "0 appended, 3 refused; nothing was appended; the head is 4.\n"


# questions at a terminal

TABLE_WITH_CLOSE_NAMES = (
    HEADER + build_row(3, "Johana", "ben", "Emilia") + build_row(4, "BEN", "Johana") + build_row(5, "Emmilia", "zoe")
)


def import_at_terminal(db: str, table: Path, *answers: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Import a table at a terminal, give these answers, and return the exit code, standard output and terminal text."""
    dialogue = [("stop] ", f"{answer}\r" if answer not in (CTRL_C, CTRL_D) else answer) for answer in answers]
    return type_answers(["--db", db, "import", str(table), *options], dialogue)


def test_name_can_be_an_alias_of_itself(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """An alias `Johana = Johana` accepts that name as a player, and no other close name."""
    aliases = write_file(tmp_path, "who.txt", "Johana = Johana\nJojo = Johana\n")
    table = write_file(tmp_path, "t.csv", HEADER + build_row(3, "Johana", "ben") + build_row(4, "Jojo", "ben"))
    assert ratings("import", table, "--aliases", aliases, db=one_db).exit_code == 0
    assert [list_players(ratings, one_db, f"g-{n}") for n in (3, 4)] == [["Johana", "ben"]] * 2
    result = ratings("import", "-", "--aliases", aliases, db=one_db, input=HEADER + build_row(5, "Johanna ", "BEN"))
    assert (result.exit_code, "close-name" in result.stderr, "'BEN'" in result.stderr) == (1, True, True)


@pytest.mark.slow
def test_each_close_name_is_asked_about(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """At a terminal, an import asks for each close name whether it is the known player or a new one."""
    code, stdout, terminal_text = import_at_terminal(
        db, write_file(tmp_path, "t.csv", TABLE_WITH_CLOSE_NAMES), "yes", "y", "new"
    )
    assert (code, stdout) == (0, "3 appended; the head is 8.\n"), terminal_text
    assert "3 new names close to others; which players are they?" in terminal_text
    assert "new: 'Johana' (line 2): did you mean 'Johanna', 2 games? [yes, new, stop] yes" in terminal_text
    assert "new: 'BEN' (line 3): did you mean 'ben', 2 games? [yes, new, stop] y" in terminal_text
    assert "new: 'Emmilia' (line 4): did you mean 'Emilia', new in line 2? [yes, new, stop] new" in terminal_text
    assert "your answers: Johana = Johanna, BEN = ben; change them with --aliases\r\n" in terminal_text
    assert [list_players(ratings, db, f"g-{n}") for n in (3, 4, 5)] == [
        ["Johanna", "ben", "Emilia"],
        ["ben", "Johanna"],
        ["Emmilia", "zoe"],
    ]


@pytest.mark.slow
def test_answers_are_kept_with_the_import(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Answers are kept with the import, so the grown file imports without questions until the import is undone."""
    table = write_file(tmp_path, "t.csv", HEADER + build_row(3, "Johana", "ben"))
    assert import_at_terminal(one_db, table, "yes")[0] == 0
    grown = write_file(tmp_path, "t.csv", HEADER + build_row(3, "Johana", "ben") + build_row(4, "ben", "Johana"))
    result = ratings("import", grown, db=one_db)
    assert (result.exit_code, result.stdout) == (0, "1 appended, 1 already there; the head is 8.\n"), result.stderr
    assert "t.csv: your answers: Johana = Johanna; change them with --aliases" in result.stderr
    assert "t.csv: position 5, Johana = Johanna" in ratings("log", "--batch", "t.csv", db=one_db).stdout
    corrected = ratings("correct", "--file", grown, "--reason", "as the sheet says", db=one_db)
    assert "2 games already recorded like this" in corrected.stderr, corrected
    own_aliases = write_file(tmp_path, "own.txt", "Johana = Johana")
    sync_preview = ratings("import", grown, "--aliases", own_aliases, "--sync", "--dry-run", db=one_db)
    assert "2 changed" in sync_preview.stdout
    assert "t.csv: nothing new\n" in ratings("import", grown, "--sync", "--dry-run", db=one_db).stdout
    assert [ratings("undo", position, "--yes", db=one_db).exit_code for position in (8, 6)] == [0, 0]
    assert "close-name" in ratings("import", grown, db=one_db).stderr


def test_new_player_with_an_answered_name_replaces_the_answer(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Once a name that an answer gave to a player belongs to a new player, it means the new player in new rows."""
    options = TableOptions(aliases={"Johana": "Johanna"}, answered_names=frozenset({"Johana"}))
    table = write_file(tmp_path, "t.csv", HEADER + build_row(3, "Johana", "ben"))
    FileIntake(open_ledger(one_db), read_items(str(table), options), ImportPolicy("mira"), batches=True).append()
    table = write_file(tmp_path, "t.csv", HEADER + build_row(4, "Johana", "ben"))
    other_table = write_file(tmp_path, "other.csv", HEADER + build_row(5, "Johana", "Tom"))
    assert "close-name" in ratings("import", other_table, db=one_db).stderr
    assert ratings("import", other_table, "--new-names", "accept", db=one_db).exit_code == 0
    assert ratings("import", table, db=one_db).exit_code == 0
    assert list_players(ratings, one_db, "g-4") == ["Johana", "ben"]


def test_close_name_in_recorded_game_is_reported_once(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A row that differs from its recorded game only by a close name is refused for the name alone."""
    table = HEADER + build_row(1, "Johana", "ben", "Tom") + build_row(2, "ben", "Johana")
    result = ratings("import", "-", "--format", "json", db=one_db, input=table)
    rejections = [(rejection["line"], rejection["code"]) for rejection in json.loads(result.stdout)["rejected"]]
    assert rejections == [(2, "close-name"), (3, "id-conflict")]
    accepted_result = ratings("import", "-", "--new-names", "accept", "--format", "json", db=one_db, input=table)
    assert [rejection["code"] for rejection in json.loads(accepted_result.stdout)["rejected"]] == ["id-conflict"] * 2


@pytest.mark.slow
def test_answers_apply_to_later_questions(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """After an answer about a name, the question about another name close to it suggests the answered player."""
    table = HEADER + build_row(3, "Johana", "ben") + build_row(4, "Johana ", "ben") + build_row(5, "johana", "Tom")
    code, _, terminal_text = import_at_terminal(one_db, write_file(tmp_path, "t.csv", table), "yes", "yes")
    assert (code, "new: 'johana' (line 4): did you mean 'Johanna', 2 games? [yes, new, stop]" in terminal_text) == (
        0,
        True,
    )
    assert [list_players(ratings, one_db, f"g-{n}")[0] for n in (3, 4, 5)] == ["Johanna"] * 3


@pytest.mark.slow
def test_close_name_of_several_players_is_chosen_by_number(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """If a name is close to several players, the player is chosen by number."""
    ratings("import", "-", "--new-names", "accept", db=one_db, input=HEADER + build_row(3, "Johamna", "ben"))
    code, _, terminal_text = import_at_terminal(
        one_db, write_file(tmp_path, "t.csv", HEADER + build_row(4, "johanna", "ben")), "2"
    )
    assert (
        "new: 'johanna' (line 2): did you mean 1: 'Johamna', 1 game, or 2: 'Johanna', 2 games? [1, 2," in terminal_text
    )
    assert (code, list_players(ratings, one_db, "g-4")) == (0, ["Johanna", "ben"])


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["stop", CTRL_C, CTRL_D])
def test_stopping_records_nothing(answer: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """After `stop`, Ctrl-C or Ctrl-D nothing is recorded; `stop` lists the names."""
    before = read_head(ratings, one_db)
    code, stdout, terminal_text = import_at_terminal(
        one_db, write_file(tmp_path, "t.csv", TABLE_WITH_CLOSE_NAMES), "yes", answer
    )
    assert read_head(ratings, one_db) == before
    if answer == "stop":
        assert (code, stdout) == (1, "0 appended, 4 refused; nothing was appended; the head is 4.\n")
        assert terminal_text.count("close-name") == 3
    else:
        assert (code, stdout) == (130, "")
        assert "nothing was recorded\r\nratings: interrupted\r\n" in terminal_text


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--dry-run",), ("--strict",), ("--keep-going",)])
def test_options_without_questions(options: tuple[str, ...], one_db: str, tmp_path: Path) -> None:
    """A dry run, a strict import and one with --keep-going ask no questions."""
    code, _, terminal_text = import_at_terminal(
        one_db, write_file(tmp_path, "t.csv", TABLE_WITH_CLOSE_NAMES), options=options
    )
    assert (code, "close-name" in terminal_text, "stop]" in terminal_text) == (1, True, False)


def test_other_errors_prevent_questions(one_db: str, tmp_path: Path) -> None:
    """A file that is refused for other errors lists all of them and asks no questions."""
    code, _, terminal_text = import_at_terminal(
        one_db, write_file(tmp_path, "t.csv", TABLE_WITH_CLOSE_NAMES + build_row(6, "ben", "ben"))
    )
    assert (code, "player-twice" in terminal_text, "close-name" in terminal_text, "stop]" in terminal_text) == (
        1,
        True,
        True,
        False,
    )


@pytest.mark.slow
def test_opponent_is_not_suggested(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """If a name is close only to its own opponent, the question offers only a new player."""
    table = write_file(tmp_path, "t.csv", HEADER + build_row(3, "Johana", "Johanna"))
    code, stdout, terminal_text = import_at_terminal(db, table, "new")
    assert (
        "new: 'Johana' (line 2) plays against 'Johanna', 2 games: is it a new player? [new, stop] new" in terminal_text
    )
    assert (code, stdout, list_players(ratings, db, "g-3")) == (
        0,
        "1 appended; the head is 6.\n",
        ["Johana", "Johanna"],
    )


@pytest.mark.slow
def test_opponent_of_an_answered_name_is_not_suggested(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Once an answer makes one of two opponents a known player, that player is not suggested for the other."""
    table = write_file(tmp_path, "t.csv", HEADER + build_row(3, "Johana", "ben") + build_row(4, "Johana", "Johannna"))
    code, _, terminal_text = import_at_terminal(one_db, table, "yes", "new")
    assert "'Johannna' (line 3) plays against 'Johanna', 2 games: is it a new player? [new, stop] new" in terminal_text
    assert (code, list_players(ratings, one_db, "g-4")) == (0, ["Johanna", "Johannna"])


@pytest.mark.slow
def test_only_players_who_are_not_opponents_are_suggested(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """For a name close to several players, only those who are not its opponents are suggested."""
    ratings("import", "-", "--new-names", "accept", db=one_db, input=HEADER + build_row(3, "Johamna", "ben"))
    code, _, terminal_text = import_at_terminal(
        one_db, write_file(tmp_path, "t.csv", HEADER + build_row(4, "johanna", "Johamna")), "yes"
    )
    assert "new: 'johanna' (line 2): did you mean 'Johanna', 2 games? [yes, new, stop] yes" in terminal_text
    assert (code, list_players(ratings, one_db, "g-4")) == (0, ["Johanna", "Johamna"])
