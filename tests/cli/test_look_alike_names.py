"""Names that look like those of known players, by every route into the ledger."""

import json
from pathlib import Path

import pytest
from builders import format_game_line
from correction_helpers import Ratings, read_head

import ratings_ledger as rl

AT = "2024-03-03T12:00:00Z"
WHY = ("--reason", "as agreed")
HEADER = "game_id,occurred_at,game,1st,2nd\n"
# names that look like mira, each with the code points that the message names
NAMES = {
    "mіra": "U+0456",
    "mirα": "U+03B1",
    "Мira": "U+041C",
    "MІRА": "U+0406, U+0410",
    "mira\ufe0f": "U+FE0F",
    "mi\U000e0100ra": "U+E0100",
}
INVISIBLE = ["mi\u034fra", "mira\u3164", "\u115fmira", "mi\uffa0ra", "mira\u2800", "mi\u17b4ra"]


def make_club_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess in which mira has played ben."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    assert ratings("import", "-", db=url, input=HEADER + f"g-1,{AT},chess,mira,ben\n").exit_code == 0


pytestmark = pytest.mark.ledger(make=make_club_ledger)


def build_chess_line(*names: str) -> str:
    """Return a game of chess as a line of JSON."""
    return format_game_line("g-2", *names, at=AT, game="chess")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("route", ["record", "correct", "table", "sync"])
def test_look_alike_is_refused_where_people_type(
    route: str, name: str, db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A name that looks like a known one is refused with a message that names its odd characters.

    `--new-names accept` accepts it.
    """
    table = tmp_path / "games.csv"
    table.write_text(HEADER + f"g-2,{AT},chess,{name},ben\n", encoding="utf-8")
    command = {
        "record": ("record", "--game", "chess", "--game-id", "g-2", name, "ben"),
        "correct": ("correct", "g-1", name, "ben", *WHY),
        "table": ("import", table),
        "sync": ("import", "--sync", "--yes", table),
    }[route]
    before = read_head(ratings, db)
    refused = ratings(*command, "--format", "json", db=db)
    (rejection,) = json.loads(refused.stdout)["rejected"]
    assert (refused.exit_code, rejection["code"]) == (1, "close-name")
    assert f" with {NAMES[name]}: did you mean 'mira', 1 game?" in rejection["message"]
    assert read_head(ratings, db) == before
    assert ratings(*command, "--new-names", "accept", db=db).exit_code == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("route", ["JSON Lines", "adjust", "account", "rename"])
def test_look_alike_is_reported_elsewhere(route: str, name: str, one_db: str, ratings: Ratings) -> None:
    """Where close names are only reported, a look-alike is accepted, and the report names the known player."""
    command, content = {
        "JSON Lines": (("import", "-"), build_chess_line(name, "ben")),
        "adjust": (("adjust", "elo-chess/all", name, "5", *WHY), None),
        "account": (("player", "account", name, "free"), None),
        "rename": (("player", "rename", "ben", name), None),
    }[route]
    dry = json.loads(ratings(*command, "--dry-run", "--format", "json", db=one_db, input=content).stdout)
    assert [(close["player"], close["close_to"]) for close in dry["close_names"]] == [(name, ["mira"])]
    assert dry["new_players"] == ([] if route == "rename" else [name])
    result = ratings(*command, db=one_db, input=content)
    assert (result.exit_code, "did you mean 'mira', 1 game?" in " ".join(result.stderr.split())) == (0, True)


@pytest.mark.parametrize("name", [*NAMES, "Mira"])
def test_look_alike_is_refused_in_proposals(name: str, db: str) -> None:
    """The library refuses a game and a rename with a name close to a known one, unless new names are accepted."""
    rename = {"type": "player.renamed", "data": {"player": "ben", "new_player": name}}
    with rl.open(db) as ledger:
        for event in (json.loads(build_chess_line(name, "ben")), rename):
            plan = ledger.propose(event, "mira")
            assert [rejection.code for rejection in plan.rejections] == ["close-name"]
            with pytest.raises(rl.Refused, match="did you mean"):
                plan.commit()
            assert ledger.propose(event, "mira", new_names="accept").rejections == ()


def test_new_id_may_be_close_to_the_old_ones(one_db: str, ratings: Ratings) -> None:
    """A rename that corrects a name is not reported as close to an id that the player has or had."""
    for old, new in (("mira", "Mira"), ("Mira", "Míra")):
        player = json.loads(ratings("player", "rename", old, new, "--format", "json", db=one_db).stdout)
        assert (player["appended"], player["close_names"]) == (1, [])


@pytest.mark.parametrize("name", INVISIBLE)
@pytest.mark.parametrize("route", ["table", "JSON Lines", "record", "rename"])
def test_invisible_characters_are_refused_everywhere(route: str, name: str, one_db: str, ratings: Ratings) -> None:
    """An invisible character that no script needs is refused by every route, and nothing is appended."""
    command, content = {
        "table": (("import", "-", "--new-names", "accept"), HEADER + f"g-2,{AT},chess,{name},ben\n"),
        "JSON Lines": (("import", "-"), build_chess_line(name, "ben")),
        "record": (("record", "--game", "chess", "--game-id", "g-2", "--new-names", "accept", name, "ben"), None),
        "rename": (("player", "rename", "ben", name), None),
    }[route]
    before = read_head(ratings, one_db)
    result = ratings(*command, "--format", "json", db=one_db, input=content)
    assert [rejection["code"] for rejection in json.loads(result.stdout)["rejected"]] == ["bad-identifier"]
    assert (result.exit_code, read_head(ratings, one_db)) == (1, before)


def test_emoji_with_a_selector_are_names(one_db: str, ratings: Ratings) -> None:
    """Emoji as keyboards type them are taken as names, and are different people."""
    result = ratings("record", "--game", "chess", "--game-id", "g-2", "❤\ufe0f", "♠\ufe0f", "Zoë ☀\ufe0f", db=one_db)
    assert result.exit_code == 0, result.stderr


def test_name_without_visible_characters_is_refused(one_db: str, ratings: Ratings) -> None:
    """A name without a visible character is refused with the code `nobody`."""
    result = ratings("record", "--game", "chess", "--game-id", "g-2", "\ufe0f", "ben", db=one_db)
    assert (result.exit_code, "nobody" in result.stderr) == (1, True)


@pytest.mark.slow_cases
def test_old_names_stay_as_they_are(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A log with two names that look alike is read, verified and restored, and games of both are taken."""
    accepted = ("record", "--game", "chess", "--new-names", "accept")
    assert ratings(*accepted, "--game-id", "g-2", "mіra", "mira", db=db).exit_code == 0
    result = ratings("record", "--game", "chess", "--game-id", "g-3", "mіra", "ben", db=db)
    assert result.exit_code == 0, result.stderr
    assert ratings("export", "events", "-o", tmp_path / "log.jsonl", db=db).exit_code == 0
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    assert ratings("init", "--no-rules", db=copy).exit_code == 0
    assert ratings("import", "--restore", tmp_path / "log.jsonl", db=copy).exit_code == 0
    for url in (db, copy):
        assert ratings("verify", db=url).exit_code == 0
