"""Rulesets that come with the program and are published on request only: named, shown, published for a game."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, read_json
from own_rules import find_shipped_texts, read_ruleset
from stores import make_ruled_ledger

NOTHING_NEW = "Nothing to publish: the ledger has these versions already; the head is "
FOLDER = Path(__file__).parents[2] / "projections" / "shipped"


def read_name(text: str) -> tuple[str, str]:
    """Return the name, which is the id without the game, and the version of the ruleset in a shipped file."""
    data = tomllib.loads(text)
    return data["id"].removesuffix("-GAME"), data["version"]


# the files by name and version; the names in the order of the list: those that `init` publishes, Elo, and all others
TEXTS = {read_name(text): text for text in (path.read_text("utf-8") for path in sorted(FOLDER.glob("*.toml")))}
INIT_NAMES = [*dict.fromkeys(read_name(text)[0] for text in find_shipped_texts())]
ON_REQUEST_NAMES = sorted({name for name, _ in TEXTS} - {*INIT_NAMES}, key=lambda name: (name != "elo", name))
OPEN_GAME_NAMES = {read_name(text)[0] for text in TEXTS.values() if tomllib.loads(text)["id"].endswith("-GAME")}
OPEN_ZONE_NAMES = [
    name for name in ON_REQUEST_NAMES if any("ZONE" in text for (key, _), text in TEXTS.items() if key == name)
]
ELO_PARTITION = tomllib.loads(TEXTS["elo", "1"])["partition"]
SYSTEMS = [
    name
    for (name, _), text in TEXTS.items()
    if name in OPEN_GAME_NAMES and tomllib.loads(text).get("partition") == ELO_PARTITION
]


def make_shogi_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger with a home zone and Elo for shogi."""
    assert ratings("init", "--for", "shogi", "--zone", "Asia/Tokyo", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=make_shogi_ledger, store="sqlite")


def list_versions(ratings: Ratings, db: str) -> list[str]:
    """Return the names of all published versions, in log order."""
    return [row["version"] for row in read_json(ratings, db, "rules", "list")]


def list_shipped(ratings: Ratings, db: str) -> dict[str, Any]:
    """Return the rows of the list of shipped rulesets by name."""
    return {row["id"]: row for row in read_json(ratings, db, "rules", "list", "--shipped")}


def test_every_file_is_published_in_one_way(db: str, ratings: Ratings, copy_ledger_file: Callable[..., str]) -> None:
    """Every file in the folder is published either by `init` or on request, like all files of its name."""
    assert len(TEXTS) == len([*FOLDER.glob("*.toml")])
    rows = list_shipped(ratings, db).values()
    names = {
        published: sorted(
            (row["id"], version) for row in rows for version in row["versions"] if row["published"] == published
        )
        for published in ("init", "on request")
    }
    assert sorted([*names["init"], *names["on request"]]) == sorted(TEXTS)
    by_init = list_versions(ratings, copy_ledger_file(make_ruled_ledger, name="init.db"))
    assert sorted(by_init) == [f"{name}@{version}" for name, version in names["init"]]


@pytest.mark.parametrize("name", ON_REQUEST_NAMES)
def test_ruleset_on_request_is_published_once(name: str, db: str, ratings: Ratings) -> None:
    """A ruleset is published with all versions, for the named game and in the home zone where it leaves these open."""
    ruleset = list_shipped(ratings, db)[name]
    game = ["--game", "go"] if name in OPEN_GAME_NAMES else []
    full_name = f"{name}-go" if game else name
    result = ratings("rules", "publish", "--shipped", name, *game, db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    names = ", ".join(f"{full_name}@{version}" for version in ruleset["versions"])
    number = len(ruleset["versions"])
    published = f"{names} published at position" if number == 1 else f"{names}: {number} published, 0 already published"
    assert " ".join(result.stdout.split()).startswith(published)
    output = read_json(ratings, db, "rules", "show", f"{full_name}@{ruleset['versions'][-1]}")
    assert output["scope"]["game"] == (["go"] if game else ruleset["games"])
    assert output["rule"] == ruleset["rule"]
    assert "GAME" not in json.dumps(output)
    assert (output["time_zone"] == "Asia/Tokyo") is (name in OPEN_ZONE_NAMES)
    second_result = ratings("rules", "publish", "--shipped", name, *game, db=db)
    assert second_result.stdout.startswith(NOTHING_NEW)


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_makes_the_ladders_of_elo(name: str, db: str, ratings: Ratings) -> None:
    """`init --system` publishes a system for a game, on ladders that are named like those of Elo."""
    result = ratings("init", "--for", "go", "--system", name, db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list_versions(ratings, db) == ["elo-shogi@1", f"{name}-go@1"]
    elo, system_ruleset = (read_json(ratings, db, "rules", "show", ruleset) for ruleset in ("elo-shogi", f"{name}-go"))
    assert system_ruleset["partition"] == elo["partition"]
    assert system_ruleset["time_zone"] == "Asia/Tokyo"
    assert system_ruleset.get("period", "game") == "game"


def test_help_names_every_system(ratings: Ratings) -> None:
    """The help of `init` names each system that --system accepts."""
    text = " ".join(ratings("init", "--help").stdout.split())
    names = text.partition("instead of elo: ")[2].partition(".")[0]
    assert sorted(["elo", *names.replace(" or ", ", ").split(", ")]) == sorted(SYSTEMS)


def test_zone_of_a_template_can_be_chosen(db: str, ratings: Ratings) -> None:
    """A template takes the zone that is named instead of the home zone."""
    published = ratings("rules", "publish", "--shipped", "elo", "--game", "go", "--zone", "Europe/Rome", db=db)
    assert published.stdout == "elo-go@1 published at position 3\nNo points change.\n"
    assert read_json(ratings, db, "rules", "show", "elo-go")["time_zone"] == "Europe/Rome"


def test_shipped_rulesets_are_listed(db: str, ratings: Ratings) -> None:
    """The list has a line for every shipped name, whether the ledger has it or not, and says which rate teams."""
    rows = read_json(ratings, db, "rules", "list", "--shipped")
    assert [row["id"] for row in rows] == [*INIT_NAMES, *ON_REQUEST_NAMES]
    assert all(row["rule"] and row["description"] and row["source"] for row in rows)
    (elo,) = [row for row in rows if row["id"] == "elo"]
    assert (elo["published"], elo["versions"], elo["games"]) == ("on request", ["1"], [])
    assert [row["id"] for row in rows if row["published"] == "on request"] == ON_REQUEST_NAMES
    table = ratings("rules", "list", "--shipped").stdout
    assert "weng-lin         on request  yes    Weng-Lin for any game" in table
    assert "elo              on request         Textbook Elo for any game.\n" in table
    assert all(len(line) <= 80 for line in table.splitlines())
    csv = ratings("rules", "list", "--shipped", "--format", "csv").stdout.splitlines()
    assert csv[0] == "id,versions,rule,published,games,description,source,teams"
    assert len(csv) == len(rows) + 1


@pytest.mark.parametrize("name", [*INIT_NAMES, *ON_REQUEST_NAMES])
def test_shipped_file_is_shown_and_valid(name: str, db: str, ratings: Ratings) -> None:
    """The file of every shipped ruleset is shown as it is, and is valid once game and zone are filled in."""
    versions = list_shipped(ratings, db)[name]["versions"]
    assert ratings("rules", "show", "--shipped", name).stdout == TEXTS[name, versions[-1]]
    for version in versions:
        text = TEXTS[name, version]
        assert ratings("rules", "show", "--shipped", f"{name}@{version}").stdout == text
        filled_in = text.replace("GAME", "go").replace("ZONE", "Asia/Tokyo")
        assert read_ruleset(filled_in).id == (f"{name}-go" if name in OPEN_GAME_NAMES else name)


WRONG = {
    "a system without a game": (["init", "--system", "elo"], "--system needs --for GAME, the game that it rates"),
    "no such system": (["init", "--for", "go", "--system", "eol"], "unknown rating system 'eol'; choose from elo"),
    "a close system name": (["init", "--for", "go", "--system", "eol"], "did you mean elo?"),
    "other ladders": (["init", "--for", "go", "--system", "diplomacy"],
                      "publish its own ladders: ratings rules publish --shipped diplomacy"),
    "a game name too long": (["init", "--for", "x" * 61, "--system", "elo"], "is not a name like"),
    "no game": (["rules", "publish", "--shipped", "elo"], "name it, as in --shipped elo --game chess"),
    "a game that is fixed": (["rules", "publish", "--shipped", "diplomacy", "--game", "go"],
                             "--game works only with --shipped and one of: "),
    "a zone that is fixed": (["rules", "publish", "--shipped", "diplomacy", "--zone", "UTC"],
                             f"--zone works only with --shipped and one of: {', '.join(OPEN_ZONE_NAMES)}"),
    "no such zone": (["rules", "publish", "--shipped", "elo", "--game", "go", "--zone", "Mars"], "Mars"),
    "a game with a file": (["rules", "publish", str(FOLDER / "elo-1.toml"), "--game", "go"],
                           "--game and --zone work only with --shipped ID"),
    "a close ruleset name": (["rules", "publish", "--shipped", "diplomcy"], "did you mean diplomacy?"),
    "an unknown ruleset": (["rules", "show", "--shipped", "whist"],
                           "no shipped ruleset is called 'whist'; to list the shipped ones: "
                           "ratings rules list --shipped"),
    "no such version": (["rules", "show", "--shipped", "b5-league@3"],
                        "b5-league has no version '3'; its versions are 1, 2"),
    "a position for shipped rulesets": (["rules", "list", "--shipped", "--known-at", "1"], "leave out one"),
    "a file as JSON": (["rules", "show", "--shipped", "elo", "--format", "json"], "--shipped prints the file"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "message"), WRONG.values(), ids=WRONG)
def test_wrong_call_says_what_is_right(command: list[str], message: str, db: str, ratings: Ratings) -> None:
    """A wrong call is a usage error that says what would be right, and publishes nothing."""
    result = ratings(*command, db=db)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert list_versions(ratings, db) == ["elo-shogi@1"]


def test_dry_run_shows_what_a_shipped_ruleset_would_do(db: str, ratings: Ratings) -> None:
    """A dry run publishes nothing, and shows the points that games get; its JSON names the ruleset."""
    shipped = ("rules", "publish", "--shipped", "weng-lin", "--game", "shogi")
    assert ratings("record", "--game-id", "g-1", "anna", "ben", db=db).exit_code == 0
    before = list_versions(ratings, db)
    result = ratings(*shipped, "--dry-run", db=db)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Nothing was recorded; this is what publishing weng-lin-shogi@1 would do.")
    assert "\nanna " in result.stdout
    outcome = json.loads(ratings(*shipped, "--dry-run", "--format", "json", db=db).stdout)
    assert (outcome["rulesets"], outcome["appended"], outcome["dry_run"]) == (["weng-lin-shogi@1"], 0, True)
    assert list_versions(ratings, db) == before
    elo = ("rules", "publish", "--shipped", "elo", "--game", "shogi", "--dry-run")
    assert ratings(*elo, db=db).stdout.startswith(NOTHING_NEW)


def test_publishing_a_shipped_ruleset_shows_its_impact(db: str, ratings: Ratings) -> None:
    """Publishing a shipped ruleset shows the points that it gives, as its dry run does."""
    assert ratings("record", "--game-id", "g-1", "anna", "ben", db=db).exit_code == 0
    shipped = ("rules", "publish", "--shipped", "weng-lin", "--game", "shogi")
    previewed = ratings(*shipped, "--dry-run", db=db).stdout
    published = ratings(*shipped, db=db).stdout
    assert "\nanna " in published
    assert published.splitlines()[1:] == previewed.splitlines()[1:]
