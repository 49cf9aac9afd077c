"""The home zone of a ledger: times are shown and read in it, while each ruleset keeps a zone of its own."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from correction_helpers import Ratings, read_json

from ratings_ledger.cli.arguments import machine_zone
from ratings_ledger.cli.commands import init

# a game at 00:30 in Berlin on New Year's Day, which in UTC is still last year's
NEW_YEAR_GAMES = """\
game_id,occurred_at,1st,2nd
s-1,2024-12-31 23:50,anna,ben
s-2,2025-01-01 00:30,ben,anna
s-3,2025-01-02,ben,anna
"""


@pytest.fixture
def games(tmp_path: Path) -> Path:
    """Return a table of games around New Year, whose times have no offset."""
    path = tmp_path / "games.csv"
    path.write_text(NEW_YEAR_GAMES, encoding="utf-8")
    return path


def create_berlin_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess with the home zone Europe/Berlin."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=url).exit_code == 0


@pytest.fixture
def db(copy_ledger: Callable[..., str], games: Path, ratings: Ratings) -> str:
    """Return the URL of a ledger with the home zone Europe/Berlin and the games, in each kind of store."""
    url = copy_ledger(create_berlin_ledger)
    result = ratings("import", games, "--set", "game=chess", db=url)
    assert (result.exit_code, result.stdout) == (0, "3 appended; the head is 6.\n")
    return url


@pytest.mark.slow_cases
def test_times_without_offset_use_home_zone(db: str, ratings: Ratings) -> None:
    """Times without an offset in an imported table are read in the home zone."""
    assert [row["occurred_at"] for row in read_json(ratings, db, "games")["rows"]] == [
        "2024-12-31T22:50:00.000000Z",
        "2024-12-31T23:30:00.000000Z",
        "2025-01-02T11:00:00.000000Z",
    ]


def test_zone_option_overrides_home_zone(copy_ledger: Callable[..., str], games: Path, ratings: Ratings) -> None:
    """`import --zone` overrides the home zone."""
    url = copy_ledger(create_berlin_ledger)
    ratings("import", games, "--set", "game=chess", "--zone", "UTC", db=url)
    assert read_json(ratings, url, "games")["rows"][0]["occurred_at"] == "2024-12-31T23:50:00.000000Z"


def test_date_ends_in_home_zone(db: str, ratings: Ratings) -> None:
    """`--as-of 2024-12-31` ends at midnight in the home zone, and excludes a game at 00:30 on New Year's Day there."""
    standings = read_json(ratings, db, "standings", "elo-chess/all", "--as-of", "2024-12-31")
    assert (standings["games"], standings["as_of"]) == (1, "2024-12-31T22:59:59.999999Z")
    assert len(read_json(ratings, db, "games", "--as-of", "2024-12-31")["rows"]) == 1
    assert read_json(ratings, db, "ladders", "--as-of", "2024-12-31")["as_of"] == standings["as_of"]
    (line,) = ratings("export", "standings", "elo-chess/2", "--as-of", "2024-12-31", db=db).stdout.splitlines()
    assert json.loads(line)["as_of"] == standings["as_of"]
    ladder_diff = read_json(ratings, db, "diff", "as-of=2024-12-31", "as-of=2025-01-01", "elo-chess/all")["ladders"][0]
    assert (ladder_diff["a"]["as_of"], ladder_diff["b"]["as_of"]) == (standings["as_of"], "2025-01-01T22:59:59.999999Z")


def test_digest_is_independent_of_home_zone(db: str, ratings: Ratings) -> None:
    """Standings as of an instant are the same in every home zone, and so is their digest."""
    command = ("standings", "elo-chess/all", "--as-of", "2024-12-31T23:30:00Z")
    before = read_json(ratings, db, *command)
    ratings("zone", "America/New_York", db=db)
    after = read_json(ratings, db, *command)
    assert {**after, "known_at": None} == {**before, "known_at": None}
    assert read_json(ratings, db, "standings", "elo-chess/all", "--as-of", "2024-12-31")["games"] == 2


TIME_COMMANDS = {
    "games": (["games"], "played (Berlin)", "2025-01-01 00:30"),
    "one game": (["games", "s-2"], "played 2025-01-01 00:30 Europe/Berlin", ""),
    "history": (["history", "anna", "elo-chess/2"], "played (Berlin)", "2025-01-01 00:30"),
    "ladders": (["ladders"], "last game (Berlin)", "2025-01-02"),
    "a game explained": (["explain", "s-2", "elo-chess/2"], "played 2025-01-01 00:30 Europe/Berlin", ""),
    "a player explained": (["explain", "anna", "elo-chess/2"], "times in Europe/Berlin", "2025-01-01 00:30"),
    "standings": (["standings", "elo-chess/2", "--as-of", "2025-01-01"], "2025-01-01 23:59:59 Europe/Berlin", ""),
    "diff": (["diff", "as-of=2025-01-01", "now"], "played up to 2025-01-01 23:59 Europe/Berlin", ""),
    "log": (["log"], "recorded (Berlin)", "the home zone is Europe/Berlin"),
    "timeline": (["rules", "show", "elo-chess"], "recorded (Berlin)", ""),
    "status": (["status"], "home zone", "Europe/Berlin"),
}


@pytest.mark.parametrize(("command", "label", "time"), TIME_COMMANDS.values(), ids=TIME_COMMANDS)
def test_times_are_shown_in_home_zone(command: list[str], label: str, time: str, db: str, ratings: Ratings) -> None:
    """Commands show times in the home zone."""
    stdout = ratings(*command, db=db).stdout
    assert label in stdout
    assert time in stdout
    assert "UTC" not in stdout


def test_without_home_zone_times_are_utc(ratings: Ratings, tmp_path: Path, games: Path) -> None:
    """Without a home zone, imported times need an offset or `--zone`, and times are shown in UTC."""
    url = str(tmp_path / "utc.db")
    ratings("init", "--for", "chess", db=url)
    result = ratings("import", games, "--set", "game=chess", db=url)
    assert result.exit_code == 1
    assert "naive-time" in result.stderr
    assert "ratings zone Europe/Berlin" in result.stderr
    ratings("import", games, "--set", "game=chess", "--zone", "Europe/Berlin", db=url)
    assert read_json(ratings, url, "standings", "elo-chess/all", "--as-of", "2024-12-31")["games"] == 2
    assert "played (UTC)" in ratings("games", db=url).stdout
    assert ratings("zone", db=url).stdout.startswith("There is no home zone; times are shown in UTC.")


def test_partitions_use_the_rulesets_zone(ratings: Ratings, tmp_path: Path) -> None:
    """A monthly list ends with the month in its ruleset's zone, not in the home zone.

    The ruleset's zone is Europe/Berlin, and the home zone is America/New_York.
    """
    url = str(tmp_path / "lists.db")
    ratings("init", "--zone", "America/New_York", db=url)
    result = ratings("record", "--game", "catan", "--group", "basic", "--city", "7", "--game-id", "c-1",
                   "--at", "2010-01-31 18:30", "anna", "ben", "cleo", db=url)  # fmt: skip
    assert result.exit_code == 0
    lists = {row["list"] for row in read_json(ratings, url, "lists", "--period", "2010-02")["rows"]}
    assert "catan-monthly/7/basic/2010-02" in lists
    assert "times in Europe/Berlin" in ratings("explain", "anna", "catan-monthly/7/basic/2010-02", db=url).stdout


@pytest.mark.parametrize(
    "command",
    [
        ["record", "--game", "chess", "--game-id", "s-4", "anna", "ben"],
        ["correct", "s-1", "--reason", "wrong hour"],
        ["adjust", "elo-chess/2", "anna", "5", "--reason", "as agreed"],
    ],
    ids=lambda command: command[0],
)
def test_command_line_times_use_home_zone(command: list[str], db: str, ratings: Ratings) -> None:
    """Times given on the command line are read in the home zone."""
    assert ratings(*command, "--at", "2025-02-03 20:00", db=db).exit_code == 0
    (event,) = read_json(ratings, db, "log", "--limit", "1")["rows"]
    dated = event["data"]["game"] if command[0] == "correct" else event
    assert dated["occurred_at"] == "2025-02-03T19:00:00.000000Z"


@pytest.mark.slow_cases
def test_zone_event_can_be_voided(db: str, ratings: Ratings) -> None:
    """`zone` records an event; voiding it restores the previous zone."""
    assert json.loads(ratings("zone", "Asia/Tokyo", "--by", "mira", "--format", "json", db=db).stdout) == {
        "zone": "Asia/Tokyo",
        "position": 7,
    }
    assert ratings("zone", "Asia/Tokyo", db=db).stdout == "Asia/Tokyo\n"
    assert read_json(ratings, db, "status")["position"] == 7
    ratings("void", "--event", "7", "--reason", "we did not move", db=db)
    assert read_json(ratings, db, "zone") == {"zone": "Europe/Berlin", "position": None}
    ratings("void", "--event", "1", "--reason", "nor did we live there", db=db)
    assert read_json(ratings, db, "zone") == {"zone": None, "position": None}


def test_init_sets_zone_of_existing_ledger(db: str, ratings: Ratings) -> None:
    """`init --zone` sets the zone of an existing ledger and of the rulesets it adds."""
    assert ratings("init", "--for", "go", "--zone", "Asia/Tokyo", db=db).exit_code == 0
    assert ratings("zone", db=db).stdout == "Asia/Tokyo\n"
    assert read_json(ratings, db, "rules", "show", "elo-go")["time_zone"] == "Asia/Tokyo"
    assert read_json(ratings, db, "rules", "show", "elo-chess")["time_zone"] == "Europe/Berlin"


@pytest.mark.parametrize("command", [["zone"], ["init", "--zone"]], ids=["zone", "init"])
def test_unknown_zone_is_refused(command: list[str], ratings: Ratings, tmp_path: Path, db: str) -> None:
    """An unknown zone is refused with a suggestion, and nothing is recorded or created."""
    result = ratings(*command, "Europe/Berln", db=db)
    assert result.exit_code == 2
    assert "'Europe/Berln' is not a time zone; did you mean Europe/Berlin?" in result.stderr
    assert read_json(ratings, db, "status")["position"] == 6
    absent = tmp_path / "absent.db"
    ratings(*command, "Europe/Berln", db=str(absent))
    assert not absent.exists()


def test_zone_is_exported_and_imported(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A zone is exported and imported as an event, and the import of an unknown zone is refused."""
    copy = str(tmp_path / "copy.db")
    ratings("export", "events", "-o", tmp_path / "log.jsonl", db=db)
    ratings("init", "--no-rules", db=copy)
    assert ratings("import", "--restore", tmp_path / "log.jsonl", db=copy).exit_code == 0
    assert ratings("zone", db=copy).stdout == "Europe/Berlin\n"
    unknown_zone = '{"type":"ledger.zone_set","occurred_at":"2025-01-01T00:00:00Z","data":{"zone":"Mars"}}'
    output = json.loads(ratings("import", "-", "--format", "json", db=copy, input=unknown_zone).stdout)
    assert [rejection["code"] for rejection in output["rejected"]] == ["unknown-zone"]


DATED_GAMES = "Date,White,Black,Result\n2024-11-22,anna,ben,1-0\n23.11.2024,ben,anna,1-0\n"
DAY_COMMANDS = {
    "games": (["games"], "2024-11-22 "),
    "one game": (["games", "2024-11-22-1"], "played 2024-11-22, recorded"),
    "history": (["history", "anna", "elo-chess/all"], "2024-11-22 "),
    "a game explained": (["explain", "2024-11-22-1", "elo-chess/all"], "played 2024-11-22, under"),
    "a player explained": (["explain", "anna", "elo-chess/all"], "2024-11-22, against ben"),
    "ladders": (["ladders"], "2024-11-23"),
}


@pytest.fixture
def dated_db(ratings: Ratings, tmp_path: Path) -> str:
    """Return a ledger for chess without a home zone, with two games that have a day and no time."""
    url, table = str(tmp_path / "days.db"), tmp_path / "days.csv"
    table.write_text(DATED_GAMES, encoding="utf-8")
    ratings("init", "--for", "chess", db=url)
    result = ratings("import", table, db=url)
    assert (result.exit_code, "all games are chess, the only game" in result.stderr) == (0, True)
    return url


@pytest.mark.parametrize(("command", "day"), DAY_COMMANDS.values(), ids=DAY_COMMANDS)
def test_day_without_time_is_shown_as_a_day(command: list[str], day: str, dated_db: str, ratings: Ratings) -> None:
    """Without a home zone a day is stored as noon in UTC; it is shown as a day, also after a home zone is set."""
    assert [row["occurred_at"][10:] for row in read_json(ratings, dated_db, "games")["rows"]] == [
        "T12:00:00.000000Z"
    ] * 2
    for zone in (None, "Europe/Berlin", "Pacific/Auckland"):
        if zone is not None:
            ratings("zone", zone, db=dated_db)
        stdout = ratings(*command, db=dated_db).stdout
        assert day in stdout
        assert ":00" not in stdout


def test_noon_elsewhere_is_shown_as_a_time(ratings: Ratings, tmp_path: Path) -> None:
    """With the home zone Europe/Berlin, noon in UTC is shown as 13:00, and a date without a time as a day."""
    url = str(tmp_path / "berlin.db")
    create_berlin_ledger(ratings, url)
    ratings("record", "--game-id", "g-1", "--at", "2024-11-22T12:00:00Z", "anna", "ben", db=url)
    ratings("record", "--game-id", "g-2", "--at", "2024-11-23", "anna", "ben", db=url)
    stdout = ratings("games", db=url).stdout
    assert "2024-11-22 13:00  g-1" in stdout
    assert "2024-11-23        g-2" in stdout


def test_table_must_name_one_of_several_games(ratings: Ratings, tmp_path: Path) -> None:
    """If rulesets score several games, a table without the column `game` is refused, unless --set names the game."""
    url, table = str(tmp_path / "two.db"), tmp_path / "days.csv"
    table.write_text(DATED_GAMES, encoding="utf-8")
    ratings("init", "--for", "chess", "--for", "go", db=url)
    assert "there is no column 'game'" in ratings("import", table, db=url).stderr
    assert ratings("import", table, "--set", "game=go", db=url).exit_code == 0


@pytest.mark.parametrize(
    ("setting", "localtime", "at_terminal", "zone"),
    [
        ("Europe/Berlin", "Etc/UTC", True, "Europe/Berlin"),
        ("UTC", "Etc/UTC", True, "UTC"),
        (None, "America/New_York", True, "America/New_York"),
        (None, "Etc/UTC", True, None),
        ("Nowhere/Atlantis", "Etc/UTC", True, None),
        ("Europe/Berlin", "Europe/Berlin", False, None),
    ],
)
def test_init_takes_zone_of_machine(
    setting: str | None,
    localtime: str,
    at_terminal: bool,
    zone: str | None,
    ratings: Ratings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At a terminal `init` takes the zone of TZ, else the machine's unless it is UTC; it reports the zone, or none."""
    link = tmp_path / "localtime"
    link.symlink_to(f"/usr/share/zoneinfo/{localtime}")
    monkeypatch.setattr(machine_zone, "LOCALTIME", link)
    monkeypatch.setattr(machine_zone, "TIMEZONE", tmp_path / "timezone")
    monkeypatch.setattr(init, "can_ask", lambda: at_terminal)
    if setting is None:
        monkeypatch.delenv("TZ", raising=False)
    else:
        monkeypatch.setenv("TZ", setting)
    url = str(tmp_path / "new.db")
    stderr = ratings("init", "--for", "chess", db=url).stderr
    assert read_json(ratings, url, "zone")["zone"] == zone
    assert stderr.startswith(f"note: the home zone is {zone}" if zone else "note: no home zone is set")
    assert ratings("init", db=url).stderr == ""


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("5.11.2024", "2024-11-05"),
        ("2024.11.05", "2024-11-05"),
        ("5 Nov 2024", "2024-11-05"),
        ("11.30.2024", ""),
        ("5/11/2024", ""),
        ("22.11.", ""),
    ],
)
def test_typed_date_with_dots_has_the_day_first(text: str, day: str, ratings: Ratings, tmp_path: Path) -> None:
    """`--at` reads dates as tables do; it refuses impossible dates, ambiguous dates, and dates without a year."""
    url = str(tmp_path / "typed.db")
    create_berlin_ledger(ratings, url)
    result = ratings("record", "--game-id", "g-1", "--at", text, "anna", "ben", db=url)
    assert result.exit_code == (0 if day else 2)
    assert (day in ratings("games", db=url).stdout) if day else ("2024-11-22" in result.stderr)
