"""New names: reported by all commands, refused in tables and in single games if they are close to known names."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, build_game_data, read_head, read_json

HEADER = "game_id,occurred_at,game,1st,2nd,3rd\n"
AT = "2024-03-{:02d}T12:00:00Z"
REASON_OPTION = ("--reason", "as agreed")


def build_row(number: int, *cells: str) -> str:
    """Return a game of chess as a row of the wide form."""
    return ",".join([f"g-{number}", AT.format(number), "chess", *cells]) + "\n"


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess with the players Johanna, ben, María José and the team Tom & Jerry."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    table = HEADER + build_row(1, "Johanna", "ben", "María José") + build_row(2, "Tom & Jerry", "ben")
    result = ratings("import", "-", "--new-names", "accept", db=url, input=table)
    assert result.exit_code == 0


pytestmark = pytest.mark.ledger(make=create_club)


def import_table(ratings: Ratings, db: str, content: str, *options: str) -> dict[str, Any]:
    """Import a table and return the JSON."""
    result = ratings("import", "-", "--format", "json", *options, db=db, input=content)
    output = json.loads(result.stdout)
    assert result.exit_code == int(bool(output["rejected"]))
    return dict(output)


def list_codes(report: dict[str, Any]) -> list[tuple[int, str]]:
    """Return the rejections as (line, code)."""
    return [(rejection["line"], rejection["code"]) for rejection in report["rejected"]]


def build_line(number: int, *players: str) -> str:
    """Return a game of chess as a line of JSON."""
    data = build_game_data(f"g-{number}", *players, game="chess")
    return json.dumps({"type": "game.recorded", "occurred_at": AT.format(number), "data": data}) + "\n"


@pytest.mark.slow_cases
def test_import_lists_new_players(db: str, ratings: Ratings) -> None:
    """An import reports the new players."""
    report = import_table(ratings, db, HEADER + build_row(3, "dora", "ben=emil") + build_row(4, "emil", "Johanna"))
    assert (report["appended"], report["new_players"], report["close_names"]) == (2, ["dora", "emil"], [])
    result = ratings("import", "-", db=db, input=HEADER + build_row(5, "fritz", "gus"))
    assert result.stderr == "note: 2 new players: fritz, gus\n"
    assert import_table(ratings, db, HEADER + build_row(6, "fritz", "gus"))["new_players"] == []


def test_names_with_commas_are_quoted_in_lists(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Where commas separate names, one with a comma is quoted: of a new player, in a result, an alias or a column."""
    table, aliases = tmp_path / "games.csv", tmp_path / "who.txt"
    table.write_text("Code;Tag, Uhrzeit;1.;2.\ng-3;2024-03-03;Schmidt, Eva;Hans\n", encoding="utf-8")
    aliases.write_text("Hans = Haas, Hans\n", encoding="utf-8")
    command = ("import", table, "--set", "game=chess", "--map", "Tag, Uhrzeit=occurred_at", "--map", "Code=game_id")
    command = (*command, "--zone", "UTC", "--aliases", aliases)

    previewed, stderr = ratings(*command, "--preview", db=one_db).stdout, ratings(*command, db=one_db).stderr

    assert "   2  g-3  2024-03-03    1 'Schmidt, Eva', 2 'Haas, Hans'\n" in previewed
    assert "\n2 new players: 'Schmidt, Eva', 'Haas, Hans'\n" in previewed
    assert "columns   Code = game_id, 'Tag, Uhrzeit' = occurred_at, 1. = 1st, 2. = 2nd\n" in previewed
    assert ": columns: Code = game_id, 'Tag, Uhrzeit' = occurred_at, 1. = 1st, 2. = 2nd\n" in stderr
    assert ": aliases: Hans = 'Haas, Hans'\n" in stderr
    assert "\nnote: 2 new players: 'Schmidt, Eva', 'Haas, Hans'\n" in stderr


def test_dry_run_reports_new_players(one_db: str, ratings: Ratings) -> None:
    """Each dry run reports the players that would be new."""
    for _ in range(2):
        assert import_table(ratings, one_db, HEADER + build_row(3, "dora", "ben"), "--dry-run")["new_players"] == [
            "dora"
        ]


CLOSE_NAMES = {
    "capitals": ("BEN", "'ben', 2 games"),
    "accents and blanks": ("Mariajose", "'María José', 1 game"),
    "one letter more": ("Johannas", "'Johanna', 1 game"),
    "one letter less": ("Johana", "'Johanna', 1 game"),
    "another letter": ("Johamna", "'Johanna', 1 game"),
    "two letters swapped": ("Johnana", "'Johanna', 1 game"),
    "the last name first": ("José, María", "'María José', 1 game"),
}


@pytest.mark.parametrize(("name", "known"), CLOSE_NAMES.values(), ids=CLOSE_NAMES)
@pytest.mark.parametrize("route", ["wide form", "long form", "record", "record as JSON", "correct"])
def test_close_name_must_be_accepted(route: str, name: str, known: str, one_db: str, ratings: Ratings) -> None:
    """A new name close to a known player's name is refused, and recorded with `--new-names accept`."""
    before = read_head(ratings, one_db)
    commands: dict[str, tuple[list[str], str | None]] = {
        "wide form": (["import", "-"], HEADER + build_row(3, f'"{name}"', "dora")),
        "long form": (
            ["import", "-"],
            f'game_id,occurred_at,game,player,place\ng-3,{AT.format(3)},chess,"{name}",1\n'
            f"g-3,{AT.format(3)},chess,dora,2\n",
        ),
        "record": (["record", "--game", "chess", "--game-id", "g-3", name, "dora"], None),
        "record as JSON": (["record"], build_line(3, name, "dora")),
        "correct": (["correct", "g-1", name, "dora", *REASON_OPTION], None),
    }
    command, stdin = commands[route]
    refused = ratings(*command, "--format", "json", db=one_db, input=stdin)
    (rejection,) = json.loads(refused.stdout)["rejected"]
    assert (refused.exit_code, rejection["code"]) == (1, "close-name")
    assert f"new: {name!r}: did you mean {known}?" in rejection["message"]
    assert ("--aliases" in rejection["message"]) == route.endswith("form")
    assert "--new-names accept" in rejection["message"]
    assert read_head(ratings, one_db) == before

    output = json.loads(ratings(*command, "--new-names", "accept", "--format", "json", db=one_db, input=stdin).stdout)
    assert (output["appended"], sorted(output["new_players"])) == (1, sorted([name, "dora"]))


def test_every_close_name_is_listed(db: str, ratings: Ratings) -> None:
    """The rejections list every line with a name that is close to a known name or to another name in the file.

    Here two new names are close to known ones, and two are close to each other.
    """
    before = read_head(ratings, db)
    table = HEADER + build_row(3, "Ben", "Johana") + build_row(4, "Ben", "Friedrich") + build_row(5, "friedrich", "Ben")
    report = import_table(ratings, db, table)
    assert list_codes(report) == [(line, "close-name") for line in (2, 2, 3, 4, 4)]
    assert "new: 'friedrich': did you mean 'Friedrich', new in line 3?" in report["rejected"][3]["message"]
    assert (report["appended"], read_head(ratings, db)) == (0, before)
    stderr = ratings("import", "-", db=db, input=table).stderr
    *refused, last = stderr.splitlines()
    assert [line.split(":")[2].strip() for line in refused] == ["close-name"] * 3
    assert last == "note: 3 new names close to others"


def test_names_with_different_digits_are_not_close(one_db: str, ratings: Ratings) -> None:
    """Names that differ in their digits are not close."""
    table = HEADER + "".join(build_row(n, f"player{n}", f"player{n + 1}") for n in range(3, 9))
    assert import_table(ratings, one_db, table)["appended"] == 6


def test_json_lines_may_have_close_names(db: str, ratings: Ratings) -> None:
    """JSON lines with close names are imported, and the names are reported."""
    report = import_table(ratings, db, build_line(3, "Ben", "Johana", "dora"))
    assert (report["appended"], report["new_players"]) == (1, ["Ben", "Johana", "dora"])
    assert report["close_names"] == [
        {"player": "Ben", "file": "-", "line": 1, "close_to": ["ben"], "games": [2]},
        {"player": "Johana", "file": "-", "line": 1, "close_to": ["Johanna"], "games": [1]},
    ]
    result = ratings("import", "-", db=db, input=build_line(4, "BEN", "ben"))
    assert "note: new: 'BEN' (line 1): did you mean 'Ben', 1 game, or 'ben', 2 games?\n" in result.stderr


def test_restore_accepts_close_names(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A restore accepts close names and reports them."""
    ratings("import", "-", db=db, input=build_line(3, "Ben", "dora"))
    ratings("export", "events", "-o", tmp_path / "log.jsonl", db=db)
    copy = str(tmp_path / "copy.db")
    ratings("init", "--no-rules", db=copy)
    report = json.loads(ratings("import", "--restore", tmp_path / "log.jsonl", "--format", "json", db=copy).stdout)
    assert report["rejected"] == []
    assert report["new_players"] == ["Ben", "Johanna", "María José", "Tom & Jerry", "ben", "dora"]
    assert report["close_names"] == [{"player": "ben", "close_to": ["Ben"], "games": [None]}]


@pytest.mark.parametrize(
    ("command", "players"),
    [
        (["record", "--game", "chess", "--game-id", "g-3", "dora", "ben"], ["dora"]),
        (["correct", "g-1", "dora", "ben", *REASON_OPTION], ["dora"]),
        (["adjust", "elo-chess/all", "dora", "5", *REASON_OPTION], ["dora"]),
        (["adjust", "elo-chess/all", "Johana", "5", *REASON_OPTION], ["Johana"]),
        (["player", "account", "dora", "free"], ["dora"]),
        (["player", "rename", "ben", "benjamin"], []),
    ],
    ids=["record", "correct", "adjust", "adjust a close name", "account", "rename"],
)
def test_command_lists_new_players(command: list[str], players: list[str], one_db: str, ratings: Ratings) -> None:
    """Every command that names players reports the new ones."""
    dry = json.loads(ratings(*command, "--dry-run", "--format", "json", db=one_db).stdout)
    result = ratings(*command, db=one_db)
    assert (result.exit_code, dry["new_players"]) == (0, players)
    assert ("note: 1 new player: " in result.stderr) == bool(players)
    assert ("new: 'Johana': did you mean 'Johanna', 1 game?" in result.stderr) == (players == ["Johana"])


@pytest.mark.slow_cases
def test_names_of_corrected_mistakes_stay_unknown(db: str, ratings: Ratings) -> None:
    """A name that occurs only in corrected or voided games is refused as close when it is typed again."""
    ratings("import", "-", db=db, input=build_line(3, "Johana", "ben") + build_line(4, "Johannas", "ben"))
    assert ratings("correct", "g-3", "Johanna", "ben", *REASON_OPTION, db=db).exit_code == 0
    assert ratings("void", "g-4", *REASON_OPTION, db=db).exit_code == 0
    report = import_table(ratings, db, HEADER + build_row(5, "Johana", "ben") + build_row(6, "Johannas", "ben"))
    assert list_codes(report) == [(2, "close-name"), (3, "close-name")]
    assert ratings("reinstate", "g-4", *REASON_OPTION, db=db).exit_code == 0
    assert import_table(ratings, db, HEADER + build_row(6, "Johannas", "ben"))["appended"] == 1


def test_former_id_is_not_new(one_db: str, ratings: Ratings) -> None:
    """The former id of a renamed player is not a new name."""
    ratings("player", "rename", "ben", "benjamin", db=one_db)
    assert import_table(ratings, one_db, HEADER + build_row(3, "ben", "Johanna"))["new_players"] == []


# cells that hold two players

TIES = {
    "an ampersand": ("Anna & Ole", "Anna=Ole"),
    "no blanks": ("Anna&Ole", "Anna=Ole"),
    "a plus": ("Anna + Ole", "Anna=Ole"),
    "a slash": ("Anna/Ole", "Anna=Ole"),
    "a slash and blanks": ("Anna / Ole", "Anna=Ole"),
    "a semicolon": ("Anna;Ole", "Anna=Ole"),
    "three": ("Anna & Ole & Ida", "Anna=Ole=Ida"),
    "tied with another": ("ben=Anna & Ole", "Anna=Ole"),
}


@pytest.mark.parametrize(("cell", "tie"), TIES.values(), ids=TIES)
def test_two_players_in_cell_are_refused(cell: str, tie: str, db: str, ratings: Ratings) -> None:
    """A cell with two players is refused with advice on how to write a tie."""
    before = read_head(ratings, db)
    report = import_table(ratings, db, HEADER + build_row(3, "Johanna", cell))
    assert list_codes(report) == [(2, "tied-players")]
    assert f"write {tie}" in report["rejected"][0]["message"]
    assert read_head(ratings, db) == before
    assert import_table(ratings, db, HEADER + build_row(3, "Johanna", tie))["appended"] == 1


@pytest.mark.parametrize(
    ("cell", "option"),
    [
        ("Anna/Ole", "/"),
        ("ben=Anna & Ole", "&"),
        ("Anna;Ole;Uwe", ";"),
        ("Johanna und ben", " und "),
        ("ben, Johanna", ","),
    ],
)
def test_rejected_tie_names_the_option_that_reads_it(cell: str, option: str, one_db: str, ratings: Ratings) -> None:
    """The rejection of a cell with several players gives the --ties option with which the table is imported."""
    table = HEADER + build_row(3, "Ida", f'"{cell}"')
    (refused,) = import_table(ratings, one_db, table)["rejected"]
    options = shlex.split(refused["message"].partition(", or pass ")[2].partition("; if")[0])
    assert options == ["--ties", option]
    assert import_table(ratings, one_db, table, *options, "--new-names", "accept")["appended"] == 1


def test_ties_option_is_named_only_for_tables(one_db: str, ratings: Ratings) -> None:
    """No --ties option is named for a cell joined in two ways, nor for a single game."""
    (refused,) = import_table(ratings, one_db, HEADER + build_row(3, "Ida", "Anna/Ole + Uwe"))["rejected"]
    assert refused["message"].endswith("write Anna=Ole=Uwe if they tied")
    result = ratings("record", "--game", "chess", "--game-id", "g-3", "Ida", "Anna & Ole", db=one_db)
    assert "write Anna=Ole if they tied; if the name is correct" in result.stderr


def test_repeated_refusals_without_a_file_have_no_line(one_db: str, ratings: Ratings) -> None:
    """Two like refusals of a game recorded by hand are counted, without a line."""
    result = ratings("record", "--game", "chess", "--game-id", "g-3", "Anna & Ole", "Ida & Uwe", db=one_db)
    assert " (1 more like this)\n" in result.stderr, result.stderr


@pytest.mark.parametrize("name", ["bye", "Anna & Ole"])
def test_strict_refusals_do_not_suggest_accepting_a_name(name: str, one_db: str, ratings: Ratings) -> None:
    """With --strict, no refusal suggests --new-names accept, which --strict excludes."""
    game = ["record", "--game", "chess", "--game-id", "g-3", "ben", name]
    assert "--new-names accept" in ratings(*game, db=one_db).stderr
    result = ratings(*game, "--strict", db=one_db)
    assert (result.exit_code, "--new-names" in result.stderr) == (1, False), result.stderr


def test_word_for_no_player_is_refused_without_a_table(one_db: str, ratings: Ratings) -> None:
    """The refusal of a word for no player in a game recorded by hand does not mention cells or rows."""
    result = ratings("record", "--game", "chess", "--game-id", "g-3", "ben", "bye", db=one_db)
    assert "'bye' does not name a player; leave it out, or record nothing if there was no game" in result.stderr


def test_long_form_needs_a_row_per_player(one_db: str, ratings: Ratings) -> None:
    """In the long form, a cell with two players is refused with the advice to give each player a row."""
    table = f"game_id,occurred_at,game,player,place\ng-3,{AT.format(3)},chess,{{}},1\ng-3,{AT.format(3)},chess,ben,2\n"
    for cell in ("Anna & Ole", "Anna/Ole"):
        report = import_table(ratings, one_db, table.format(cell))
        assert list_codes(report) == [(2, "tied-players")]
        assert "a row for each player, with the same place" in report["rejected"][0]["message"]
        assert "--ties" not in report["rejected"][0]["message"]


def test_known_or_accepted_team_is_one_player(db: str, ratings: Ratings) -> None:
    """A known or accepted team name counts as one player."""
    assert import_table(ratings, db, HEADER + build_row(3, "Tom & Jerry", "ben"))["new_players"] == []
    assert list_codes(import_table(ratings, db, HEADER + build_row(4, "Kit + Kat", "ben"))) == [(2, "tied-players")]
    report = import_table(ratings, db, HEADER + build_row(4, "Kit + Kat", "ben"), "--new-names", "accept")
    assert report["new_players"] == ["Kit + Kat"]
    refused = import_table(ratings, db, HEADER + build_row(5, "Kit/Kat", "ben"), "--new-names", "accept")
    assert list_codes(refused) == [(2, "tied-players")]


def test_comma_separates_only_known_names(db: str, ratings: Ratings) -> None:
    """A comma in a cell is a tie only between known names or names that occur in the file."""
    table = (
        HEADER
        + build_row(3, '"Johanna, ben"', "Ida")
        + build_row(4, '"Ida, ben"', "Ole")
        + build_row(5, '"Uwe, Ole"', "ben")
    )
    report = import_table(ratings, db, table)
    assert list_codes(report) == [(2, "tied-players"), (3, "tied-players")]
    assert "write Ida=ben" in report["rejected"][1]["message"]
    # a name in a refused row occurs in the file, too
    table = HEADER + build_row(3, "Ida", "Uwe/Ole") + build_row(4, '"Ida, ben"', "Johanna")
    assert list_codes(import_table(ratings, db, table)) == [(2, "tied-players"), (3, "tied-players")]
    assert import_table(ratings, db, HEADER + build_row(6, '"Cash, Johnny"', "ben"))["new_players"] == ["Cash, Johnny"]


@pytest.mark.parametrize("name", ["C++", "A+", "& Anna", "Anna &"])
def test_sign_beside_one_name_makes_no_tie(name: str, one_db: str, ratings: Ratings) -> None:
    """A sign that does not stand between two names makes no tie."""
    assert import_table(ratings, one_db, HEADER + build_row(3, name, "ben"))["new_players"] == [name]


def test_json_names_may_contain_signs(one_db: str, ratings: Ratings) -> None:
    """A JSON line may name one player with a sign that would mark a tie in a table."""
    assert import_table(ratings, one_db, build_line(3, "Anna & Ole", "ben"))["new_players"] == ["Anna & Ole"]


@pytest.mark.parametrize("form", ["wide", "long"])
def test_keep_going_writes_rejected_names_to_a_file(form: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """`--keep-going` records the valid games and writes those with close or joined names to a file."""
    games = [("dora", "ben"), ("Ben", "emil"), ("dora", "Ben"), ("Kit & Kat", "ben"), ("dora", "emil")]
    path = tmp_path / "games.csv"
    if form == "wide":
        path.write_text(HEADER + "".join(build_row(n, *names) for n, names in enumerate(games, 3)), encoding="utf-8")
        lines = [3, 4, 5]
    else:
        rows = [
            f"g-{n},{AT.format(n)},chess,{name},{place}\n"
            for n, names in enumerate(games, 3)
            for place, name in enumerate(names, 1)
        ]
        path.write_text("game_id,occurred_at,game,player,place\n" + "".join(rows), encoding="utf-8")
        lines = [4, 6, 8]
    result = ratings("import", path, "--keep-going", "--format", "json", db=db)
    output = json.loads(result.stdout)
    assert (result.exit_code, output["appended"], len(output["rejected"])) == (1, 2, 3)
    assert list_codes(output) == list(zip(lines, ["close-name", "close-name", "tied-players"], strict=True))
    assert output["new_players"] == ["dora", "emil"]
    rejects = [json.loads(line) for line in Path(f"{path}.rejects.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted((reject["line"], reject["code"]) for reject in rejects) == list_codes(output)
    assert all(reject["input"] for reject in rejects)
    players = {p["player"] for game in read_json(ratings, db, "games")["rows"] for p in game["participants"]}
    assert players == {"Johanna", "ben", "María José", "Tom & Jerry", "dora", "emil"}


def test_many_new_players_are_counted(one_db: str, ratings: Ratings) -> None:
    """When many players are new, the first ones are named and the rest are counted."""
    table = HEADER + "".join(build_row(n, f"a{n}", f"b{n}") for n in range(3, 28))
    stderr = ratings("import", "-", db=one_db, input=table).stderr
    assert stderr.startswith("note: 50 new players: a3, b3, a4, ")
    assert stderr.endswith("a12, b12 and 30 more\n")


def test_possible_slip_is_shown_with_original(one_db: str, ratings: Ratings) -> None:
    """A new name that may be a slip is reported with the known name it resembles."""
    result = ratings("import", "-", db=one_db, input=HEADER + build_row(5, "bne", "benn", "zoe"))

    assert result.exit_code == 0
    assert result.stderr == "note: 3 new players: bne (like ben?), benn (like ben?), zoe\n"


@pytest.mark.parametrize("cell", ["ben and Johanna", "ben und Johanna", "ben u. Johanna", "ben et zoe"])
def test_names_joined_by_and_are_refused(cell: str, one_db: str, ratings: Ratings) -> None:
    """Two names joined by a word such as `and` are refused if each half names a player."""
    report = import_table(ratings, one_db, HEADER + build_row(5, cell, "carl") + build_row(6, "zoe", "carl"))

    assert list_codes(report) == [(2, "tied-players")]


def test_name_containing_and_is_one_player(one_db: str, ratings: Ratings) -> None:
    """A name with `and` in it is one player if its halves name no players."""
    assert import_table(ratings, one_db, HEADER + build_row(5, "Sons and Daughters", "ben"))["appended"] == 1


def test_suggestions_have_current_ids(tmp_path: Path, ratings: Ratings) -> None:
    """For a typing error in a renamed player's former id, every command suggests the current id."""
    url = str(tmp_path / "ratings.db")
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    ratings("record", "--game-id", "g-1", "josephine", "ben", db=url)
    ratings("player", "rename", "josephine", "zoe", db=url)
    for command in (
        ("history", "elo-chess", "josefine"),
        ("predict", "elo-chess", "josephin", "ben"),
        ("statistics", "josephin"),
        ("games", "--player", "josephin"),
        ("log", "josephin"),
        ("player", "rename", "josephin", "anna"),
        ("player", "merge", "josephin", "ben"),
    ):
        result = ratings(*command, db=url)
        assert "did you mean zoe?" in result.stdout + result.stderr, command
    refused = ratings("record", "--game-id", "g-2", "josephin", "ben", db=url)
    assert "new: 'josephin': did you mean 'zoe', 1 game?" in refused.stderr
