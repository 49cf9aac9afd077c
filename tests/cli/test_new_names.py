"""New names, through the commands: told by all of them, refused in tables and where one game is typed in."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, head, placing, read

HEADER = "game_id,occurred_at,game,1st,2nd,3rd\n"
AT = "2024-03-{:02d}T12:00:00Z"
WHY = ("--reason", "as agreed")


def row(number: int, *cells: str) -> str:
    """A game of chess as a row of the wide form."""
    return ",".join([f"g-{number}", AT.format(number), "chess", *cells]) + "\n"


def a_club(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess that knows Johanna, ben, María José and Tom & Jerry, a team."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    table = HEADER + row(1, "Johanna", "ben", "María José") + row(2, "Tom & Jerry", "ben")
    done = ratings("import", "-", "--new-names", "accept", db=url, input=table)
    assert done.exit_code == 0


pytestmark = pytest.mark.ledger(make=a_club)


def imported(ratings: Ratings, db: str, content: str, *options: str) -> dict[str, Any]:
    """What an import of a table tells."""
    done = ratings("import", "-", "--format", "json", *options, db=db, input=content)
    told = json.loads(done.stdout)
    assert done.exit_code == int(bool(told["rejected"]))
    return dict(told)


def codes(told: dict[str, Any]) -> list[tuple[int, str]]:
    """The refusals as (line, code)."""
    return [(one["line"], one["code"]) for one in told["rejected"]]


def line(number: int, *players: str) -> str:
    """A game of chess as a line of JSON."""
    data = placing(f"g-{number}", *players, game="chess")
    return json.dumps({"type": "game.recorded", "occurred_at": AT.format(number), "data": data}) + "\n"


@pytest.mark.slow_cases
def test_import_lists_new_players(db: str, ratings: Ratings) -> None:
    """An import says which players are new."""
    told = imported(ratings, db, HEADER + row(3, "dora", "ben=emil") + row(4, "emil", "Johanna"))
    assert (told["appended"], told["new_players"], told["close_names"]) == (2, ["dora", "emil"], [])
    shown = ratings("import", "-", db=db, input=HEADER + row(5, "fritz", "gus"))
    assert shown.stderr == "note: 2 new players: fritz, gus\n"
    assert imported(ratings, db, HEADER + row(6, "fritz", "gus"))["new_players"] == []


def test_names_with_commas_are_quoted_in_lists(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Where names stand in a list, one with a comma is quoted: as a new player, in a result, as an alias, a column."""
    table, aliases = tmp_path / "games.csv", tmp_path / "who.txt"
    table.write_text("Code;Tag, Uhrzeit;1.;2.\ng-3;2024-03-03;Schmidt, Eva;Hans\n", encoding="utf-8")
    aliases.write_text("Hans = Haas, Hans\n", encoding="utf-8")
    command = ("import", table, "--set", "game=chess", "--map", "Tag, Uhrzeit=occurred_at", "--map", "Code=game_id")
    command = (*command, "--zone", "UTC", "--aliases", aliases)

    previewed, done = ratings(*command, "--preview", db=one_db).stdout, ratings(*command, db=one_db).stderr

    assert "   2  g-3  2024-03-03    1 'Schmidt, Eva', 2 'Haas, Hans'\n" in previewed
    assert "\n2 new players: 'Schmidt, Eva', 'Haas, Hans'\n" in previewed
    assert "columns   Code = game_id, 'Tag, Uhrzeit' = occurred_at, 1. = 1st, 2. = 2nd\n" in previewed
    assert ": columns: Code = game_id, 'Tag, Uhrzeit' = occurred_at, 1. = 1st, 2. = 2nd\n" in done
    assert ": aliases: Hans = 'Haas, Hans'\n" in done
    assert "\nnote: 2 new players: 'Schmidt, Eva', 'Haas, Hans'\n" in done


def test_dry_run_lists_new_players(one_db: str, ratings: Ratings) -> None:
    """A dry run says which players would be new, each time it is run."""
    for _ in range(2):
        assert imported(ratings, one_db, HEADER + row(3, "dora", "ben"), "--dry-run")["new_players"] == ["dora"]


CLOSE = {
    "capitals": ("BEN", "'ben', 2 games"),
    "accents and blanks": ("Mariajose", "'María José', 1 game"),
    "one letter more": ("Johannas", "'Johanna', 1 game"),
    "one letter less": ("Johana", "'Johanna', 1 game"),
    "another letter": ("Johamna", "'Johanna', 1 game"),
    "two letters swapped": ("Johnana", "'Johanna', 1 game"),
    "the last name first": ("José, María", "'María José', 1 game"),
}


@pytest.mark.parametrize(("name", "known"), CLOSE.values(), ids=CLOSE)
@pytest.mark.parametrize("how", ["wide", "long", "record", "record as JSON", "correct"])
def test_close_name_must_be_accepted(how: str, name: str, known: str, one_db: str, ratings: Ratings) -> None:
    """A new name close to a known player's is refused, and taken with `--new-names accept`."""
    before = head(ratings, one_db)
    commands: dict[str, tuple[list[str], str | None]] = {
        "wide": (["import", "-"], HEADER + row(3, f'"{name}"', "dora")),
        "long": (["import", "-"], f"game_id,occurred_at,game,player,place\ng-3,{AT.format(3)},chess,\"{name}\",1\n"
                                  f"g-3,{AT.format(3)},chess,dora,2\n"),
        "record": (["record", "--game", "chess", "--game-id", "g-3", name, "dora"], None),
        "record as JSON": (["record"], line(3, name, "dora")),
        "correct": (["correct", "g-1", name, "dora", *WHY], None),
    }  # fmt: skip
    command, given = commands[how]
    refused = ratings(*command, "--format", "json", db=one_db, input=given)
    (rejection,) = json.loads(refused.stdout)["rejected"]
    assert (refused.exit_code, rejection["code"]) == (1, "close-name")
    assert f"new: {name!r}: did you mean {known}?" in rejection["message"]
    assert ("--aliases" in rejection["message"]) == (how in ("wide", "long"))
    assert "--new-names accept" in rejection["message"]
    assert head(ratings, one_db) == before

    taken = json.loads(ratings(*command, "--new-names", "accept", "--format", "json", db=one_db, input=given).stdout)
    assert (taken["appended"], sorted(taken["new_players"])) == (1, sorted([name, "dora"]))


def test_every_close_name_is_listed(db: str, ratings: Ratings) -> None:
    """Every line with a name close to a known one or to another in the file is named.

    Two new names are close to known ones, and two are close to each other.
    """
    before = head(ratings, db)
    table = HEADER + row(3, "Ben", "Johana") + row(4, "Ben", "Friedrich") + row(5, "friedrich", "Ben")
    told = imported(ratings, db, table)
    assert codes(told) == [(line, "close-name") for line in (2, 2, 3, 4, 4)]
    assert "new: 'friedrich': did you mean 'Friedrich', new in line 3?" in told["rejected"][3]["message"]
    assert (told["appended"], head(ratings, db)) == (0, before)
    shown = ratings("import", "-", db=db, input=table).stderr
    *refused, last = shown.splitlines()
    assert [line.split(":")[2].strip() for line in refused] == ["close-name"] * 3
    assert last == "note: 3 new names close to others"


def test_names_with_other_digits_differ(one_db: str, ratings: Ratings) -> None:
    """Names that differ in their digits belong to different people."""
    table = HEADER + "".join(row(n, f"player{n}", f"player{n + 1}") for n in range(3, 9))
    assert imported(ratings, one_db, table)["appended"] == 6


def test_json_lines_may_hold_close_names(db: str, ratings: Ratings) -> None:
    """JSON lines with close names are imported, and the names are reported."""
    told = imported(ratings, db, line(3, "Ben", "Johana", "dora"))
    assert (told["appended"], told["new_players"]) == (1, ["Ben", "Johana", "dora"])
    assert told["close_names"] == [
        {"player": "Ben", "file": "-", "line": 1, "close_to": ["ben"], "games": [2]},
        {"player": "Johana", "file": "-", "line": 1, "close_to": ["Johanna"], "games": [1]},
    ]  # fmt: skip
    shown = ratings("import", "-", db=db, input=line(4, "BEN", "ben"))
    assert "note: new: 'BEN' (line 1): did you mean 'Ben', 1 game, or 'ben', 2 games?\n" in shown.stderr


def test_restore_accepts_close_names(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A restore accepts close names and reports them."""
    ratings("import", "-", db=db, input=line(3, "Ben", "dora"))
    ratings("export", "events", "-o", tmp_path / "log.jsonl", db=db)
    copy = str(tmp_path / "copy.db")
    ratings("init", "--no-rules", db=copy)
    told = json.loads(ratings("import", "--restore", tmp_path / "log.jsonl", "--format", "json", db=copy).stdout)
    assert told["rejected"] == []
    assert told["new_players"] == ["Ben", "Johanna", "María José", "Tom & Jerry", "ben", "dora"]
    assert told["close_names"] == [{"player": "ben", "close_to": ["Ben"], "games": [None]}]


@pytest.mark.parametrize(
    ("command", "players"),
    [
        (["record", "--game", "chess", "--game-id", "g-3", "dora", "ben"], ["dora"]),
        (["correct", "g-1", "dora", "ben", *WHY], ["dora"]),
        (["adjust", "elo-chess/all", "dora", "5", *WHY], ["dora"]),
        (["adjust", "elo-chess/all", "Johana", "5", *WHY], ["Johana"]),
        (["player", "account", "dora", "free"], ["dora"]),
        (["player", "rename", "ben", "benjamin"], []),
    ],
    ids=["record", "correct", "adjust", "adjust a close name", "account", "rename"],
)
def test_command_lists_new_players(command: list[str], players: list[str], one_db: str, ratings: Ratings) -> None:
    """Every command that names players says which of them are new."""
    dry = json.loads(ratings(*command, "--dry-run", "--format", "json", db=one_db).stdout)
    shown = ratings(*command, db=one_db)
    assert (shown.exit_code, dry["new_players"]) == (0, players)
    assert ("note: 1 new player: " in shown.stderr) == bool(players)
    assert ("new: 'Johana': did you mean 'Johanna', 1 game?" in shown.stderr) == (players == ["Johana"])


@pytest.mark.slow_cases
def test_names_from_mistakes_stay_unknown(db: str, ratings: Ratings) -> None:
    """A slip known only from a corrected or voided game is refused when it is typed again."""
    ratings("import", "-", db=db, input=line(3, "Johana", "ben") + line(4, "Johannas", "ben"))
    assert ratings("correct", "g-3", "Johanna", "ben", *WHY, db=db).exit_code == 0
    assert ratings("void", "g-4", *WHY, db=db).exit_code == 0
    told = imported(ratings, db, HEADER + row(5, "Johana", "ben") + row(6, "Johannas", "ben"))
    assert codes(told) == [(2, "close-name"), (3, "close-name")]
    assert ratings("reinstate", "g-4", *WHY, db=db).exit_code == 0
    assert imported(ratings, db, HEADER + row(6, "Johannas", "ben"))["appended"] == 1


def test_old_id_stays_known(one_db: str, ratings: Ratings) -> None:
    """The old id of a renamed player is not a new name."""
    ratings("player", "rename", "ben", "benjamin", db=one_db)
    assert imported(ratings, one_db, HEADER + row(3, "ben", "Johanna"))["new_players"] == []


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


@pytest.mark.parametrize(("cell", "right"), TIES.values(), ids=TIES)
def test_two_players_in_cell_are_refused(cell: str, right: str, db: str, ratings: Ratings) -> None:
    """A cell with two players is refused with advice on how to write a tie."""
    before = head(ratings, db)
    told = imported(ratings, db, HEADER + row(3, "Johanna", cell))
    assert codes(told) == [(2, "tied-players")]
    assert f"write {right}" in told["rejected"][0]["message"]
    assert head(ratings, db) == before
    assert imported(ratings, db, HEADER + row(3, "Johanna", right))["appended"] == 1


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
def test_refused_tie_names_the_option(cell: str, option: str, one_db: str, ratings: Ratings) -> None:
    """What joins two players in a cell is named with the option that reads such a table, which then takes the game."""
    table = HEADER + row(3, "Ida", f'"{cell}"')
    (refused,) = imported(ratings, one_db, table)["rejected"]
    named = shlex.split(refused["message"].partition(", or pass ")[2].partition("; if")[0])
    assert named == ["--ties", option]
    assert imported(ratings, one_db, table, *named, "--new-names", "accept")["appended"] == 1


def test_option_is_named_only_where_it_helps(one_db: str, ratings: Ratings) -> None:
    """No option is named for a cell joined in two ways, nor for a game recorded by hand, which is no table."""
    (refused,) = imported(ratings, one_db, HEADER + row(3, "Ida", "Anna/Ole + Uwe"))["rejected"]
    assert refused["message"].endswith("write Anna=Ole=Uwe if they tied")
    done = ratings("record", "--game", "chess", "--game-id", "g-3", "Ida", "Anna & Ole", db=one_db)
    assert "write Anna=Ole if they tied; if it is not a slip" in done.stderr


def test_long_form_wants_a_row_each(one_db: str, ratings: Ratings) -> None:
    """In the long form, a cell with two players is refused with advice to give each a row."""
    table = f"game_id,occurred_at,game,player,place\ng-3,{AT.format(3)},chess,{{}},1\ng-3,{AT.format(3)},chess,ben,2\n"
    for cell in ("Anna & Ole", "Anna/Ole"):
        told = imported(ratings, one_db, table.format(cell))
        assert codes(told) == [(2, "tied-players")]
        assert "a row for each player, with the same place" in told["rejected"][0]["message"]
        assert "--ties" not in told["rejected"][0]["message"]


def test_known_or_accepted_team_is_one(db: str, ratings: Ratings) -> None:
    """A team that is known or accepted counts as one player."""
    assert imported(ratings, db, HEADER + row(3, "Tom & Jerry", "ben"))["new_players"] == []
    assert codes(imported(ratings, db, HEADER + row(4, "Kit + Kat", "ben"))) == [(2, "tied-players")]
    taken = imported(ratings, db, HEADER + row(4, "Kit + Kat", "ben"), "--new-names", "accept")
    assert taken["new_players"] == ["Kit + Kat"]
    refused = imported(ratings, db, HEADER + row(5, "Kit/Kat", "ben"), "--new-names", "accept")
    assert codes(refused) == [(2, "tied-players")]


def test_comma_separates_only_known_names(db: str, ratings: Ratings) -> None:
    """A comma in a cell is a tie only between known names or names that occur in the file."""
    table = HEADER + row(3, '"Johanna, ben"', "Ida") + row(4, '"Ida, ben"', "Ole") + row(5, '"Uwe, Ole"', "ben")
    told = imported(ratings, db, table)
    assert codes(told) == [(2, "tied-players"), (3, "tied-players")]
    assert "write Ida=ben" in told["rejected"][1]["message"]
    # who stands in a row that is refused stands in the file, too
    table = HEADER + row(3, "Ida", "Uwe/Ole") + row(4, '"Ida, ben"', "Johanna")
    assert codes(imported(ratings, db, table)) == [(2, "tied-players"), (3, "tied-players")]
    assert imported(ratings, db, HEADER + row(6, '"Cash, Johnny"', "ben"))["new_players"] == ["Cash, Johnny"]


@pytest.mark.parametrize("name", ["C++", "A+", "& Anna", "Anna &"])
def test_lone_sign_makes_no_tie(name: str, one_db: str, ratings: Ratings) -> None:
    """A sign that does not stand between two names makes no tie."""
    assert imported(ratings, one_db, HEADER + row(3, name, "ben"))["new_players"] == [name]


def test_json_names_may_contain_signs(one_db: str, ratings: Ratings) -> None:
    """A JSON line may name one player with a sign that would mark a tie in a table."""
    assert imported(ratings, one_db, line(3, "Anna & Ole", "ben"))["new_players"] == ["Anna & Ole"]


@pytest.mark.parametrize("form", ["wide", "long"])
def test_keep_going_skips_doubtful_names(form: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """`--keep-going` records the good games and writes those with doubtful names to a file."""
    games = [("dora", "ben"), ("Ben", "emil"), ("dora", "Ben"), ("Kit & Kat", "ben"), ("dora", "emil")]
    path = tmp_path / "games.csv"
    if form == "wide":
        path.write_text(HEADER + "".join(row(n, *names) for n, names in enumerate(games, 3)), encoding="utf-8")
        lines = [3, 4, 5]
    else:
        rows = [f"g-{n},{AT.format(n)},chess,{name},{place}\n"
                for n, names in enumerate(games, 3) for place, name in enumerate(names, 1)]  # fmt: skip
        path.write_text("game_id,occurred_at,game,player,place\n" + "".join(rows), encoding="utf-8")
        lines = [4, 6, 8]
    done = ratings("import", path, "--keep-going", "--format", "json", db=db)
    told = json.loads(done.stdout)
    assert (done.exit_code, told["appended"], told.get("rejected_count", 3)) == (1, 2, 3)
    assert codes(told) == list(zip(lines, ["close-name", "close-name", "tied-players"], strict=True))
    assert told["new_players"] == ["dora", "emil"]
    written = [json.loads(line) for line in Path(f"{path}.rejects.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted((one["line"], one["code"]) for one in written) == codes(told)
    assert all(one["input"] for one in written)
    players = {p["player"] for game in read(ratings, db, "games")["rows"] for p in game["participants"]}
    assert players == {"Johanna", "ben", "María José", "Tom & Jerry", "dora", "emil"}


def test_many_new_players_are_counted(one_db: str, ratings: Ratings) -> None:
    """When many players are new, the first ones are named and the rest are counted."""
    table = HEADER + "".join(row(n, f"a{n}", f"b{n}") for n in range(3, 28))
    shown = ratings("import", "-", db=one_db, input=table).stderr
    assert shown.startswith("note: 50 new players: a3, b3, a4, ")
    assert shown.endswith("a12, b12 and 30 more\n")


def test_possible_slip_is_shown_with_original(one_db: str, ratings: Ratings) -> None:
    """A new name that may be a slip is reported with the known name it resembles."""
    done = ratings("import", "-", db=one_db, input=HEADER + row(5, "bne", "benn", "zoe"))

    assert done.exit_code == 0
    assert done.stderr == "note: 3 new players: bne (like ben?), benn (like ben?), zoe\n"


@pytest.mark.parametrize("cell", ["ben and Johanna", "ben und Johanna", "ben u. Johanna", "ben et zoe"])
def test_names_joined_by_and_are_refused(cell: str, one_db: str, ratings: Ratings) -> None:
    """Two names joined by a word such as `and` are refused where both name somebody."""
    told = imported(ratings, one_db, HEADER + row(5, cell, "carl") + row(6, "zoe", "carl"))

    assert codes(told) == [(2, "tied-players")]


def test_name_containing_and_is_one_player(one_db: str, ratings: Ratings) -> None:
    """A name with `and` in it is one player where its halves name nobody."""
    assert imported(ratings, one_db, HEADER + row(5, "Sons and Daughters", "ben"))["appended"] == 1


def test_suggestions_have_present_ids(tmp_path: Path, ratings: Ratings) -> None:
    """A slip of an id that was renamed or merged away proposes the present id, whoever asks."""
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
        done = ratings(*command, db=url)
        assert "did you mean zoe?" in done.stdout + done.stderr, command
    refused = ratings("record", "--game-id", "g-2", "josephin", "ben", db=url)
    assert "new: 'josephin': did you mean 'zoe', 1 game?" in refused.stderr
