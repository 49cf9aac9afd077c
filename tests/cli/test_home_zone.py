"""The home zone of a ledger: what is shown and read in it, and what goes on by the zones of rulesets."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from correction_helpers import Ratings, read_json

from ratings_ledger.cli.arguments import machine_zone
from ratings_ledger.cli.commands import init

# a game at 00:30 in Berlin on New Year's Day, which in UTC is still last year's
NEW_YEAR = """\
game_id,occurred_at,1st,2nd
s-1,2024-12-31 23:50,anna,ben
s-2,2025-01-01 00:30,ben,anna
s-3,2025-01-02,ben,anna
"""


@pytest.fixture
def games(tmp_path: Path) -> Path:
    """A table of games around New Year with times of the wall clock."""
    path = tmp_path / "games.csv"
    path.write_text(NEW_YEAR, encoding="utf-8")
    return path


def at_home(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess in Berlin."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=url).exit_code == 0


@pytest.fixture
def db(copied: Callable[..., str], games: Path, ratings: Ratings) -> str:
    """That ledger with the games, in each kind of store."""
    url = copied(at_home)
    result = ratings("import", games, "--set", "game=chess", db=url)
    assert (result.exit_code, result.stdout) == (0, "3 appended; the head is 6.\n")
    return url


@pytest.mark.slow_cases
def test_times_without_offset_use_home_zone(db: str, ratings: Ratings) -> None:
    """Wall-clock times in an imported table are read in the home zone."""
    assert [row["occurred_at"] for row in read_json(ratings, db, "games")["rows"]] == [
        "2024-12-31T22:50:00.000000Z", "2024-12-31T23:30:00.000000Z", "2025-01-02T11:00:00.000000Z",
    ]  # fmt: skip


def test_zone_option_overrides_home_zone(copied: Callable[..., str], games: Path, ratings: Ratings) -> None:
    """`--zone` overrides the home zone for one call."""
    url = copied(at_home)
    ratings("import", games, "--set", "game=chess", "--zone", "UTC", db=url)
    assert read_json(ratings, url, "games")["rows"][0]["occurred_at"] == "2024-12-31T23:50:00.000000Z"


def test_date_ends_in_home_zone(db: str, ratings: Ratings) -> None:
    """As of New Year's Eve, a game at 00:30 home time on New Year's Day has not been played yet."""
    standings = read_json(ratings, db, "standings", "elo-chess/all", "--as-of", "2024-12-31")
    assert (standings["games"], standings["as_of"]) == (1, "2024-12-31T22:59:59.999999Z")
    assert len(read_json(ratings, db, "games", "--as-of", "2024-12-31")["rows"]) == 1
    assert read_json(ratings, db, "ladders", "--as-of", "2024-12-31")["as_of"] == standings["as_of"]
    (line,) = ratings("export", "standings", "elo-chess/2", "--as-of", "2024-12-31", db=db).stdout.splitlines()
    assert json.loads(line)["as_of"] == standings["as_of"]
    later = read_json(ratings, db, "diff", "as-of=2024-12-31", "as-of=2025-01-01", "elo-chess/all")["ladders"][0]
    assert (later["a"]["as_of"], later["b"]["as_of"]) == (standings["as_of"], "2025-01-01T22:59:59.999999Z")


def test_digest_is_independent_of_home_zone(db: str, ratings: Ratings) -> None:
    """Standings as of the same instant have the same digest in every home zone."""
    asked = ("standings", "elo-chess/all", "--as-of", "2024-12-31T23:30:00Z")
    before = read_json(ratings, db, *asked)
    ratings("zone", "America/New_York", db=db)
    after = read_json(ratings, db, *asked)
    assert {**after, "known_at": None} == {**before, "known_at": None}
    assert read_json(ratings, db, "standings", "elo-chess/all", "--as-of", "2024-12-31")["games"] == 2


SHOWN = {
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


@pytest.mark.parametrize(("command", "label", "time"), SHOWN.values(), ids=SHOWN)
def test_times_are_shown_in_home_zone(command: list[str], label: str, time: str, db: str, ratings: Ratings) -> None:
    """Every command shows times in the home zone."""
    stdout = ratings(*command, db=db).stdout
    assert label in stdout
    assert time in stdout
    assert "UTC" not in stdout


def test_without_home_zone_times_are_utc(ratings: Ratings, tmp_path: Path, games: Path) -> None:
    """Without a home zone, imported times need an offset or `--zone`, and times are shown in UTC."""
    url = str(tmp_path / "utc.db")
    ratings("init", "--for", "chess", db=url)
    refused = ratings("import", games, "--set", "game=chess", db=url)
    assert refused.exit_code == 1
    assert "naive-time" in refused.stderr
    assert "ratings zone Europe/Berlin" in refused.stderr
    ratings("import", games, "--set", "game=chess", "--zone", "Europe/Berlin", db=url)
    assert read_json(ratings, url, "standings", "elo-chess/all", "--as-of", "2024-12-31")["games"] == 2
    assert "played (UTC)" in ratings("games", db=url).stdout
    assert ratings("zone", db=url).stdout.startswith("There is no home zone; times are shown in UTC.")


def test_partitions_use_the_rulesets_zone(ratings: Ratings, tmp_path: Path) -> None:
    """A monthly list ends its month in its ruleset's zone, whatever the home zone.

    The list goes by the months of Berlin, and the ledger is at home in New York.
    """
    url = str(tmp_path / "lists.db")
    ratings("init", "--zone", "America/New_York", db=url)
    result = ratings("record", "--game", "catan", "--group", "basic", "--city", "7", "--game-id", "c-1",
                   "--at", "2010-01-31 18:30", "anna", "ben", "cleo", db=url)  # fmt: skip
    assert result.exit_code == 0
    listed = {row["list"] for row in read_json(ratings, url, "lists", "--period", "2010-02")["rows"]}
    assert "catan-monthly/7/basic/2010-02" in listed
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
    moved = event["data"]["game"] if command[0] == "correct" else event
    assert moved["occurred_at"] == "2025-02-03T19:00:00.000000Z"


@pytest.mark.slow_cases
def test_zone_event_can_be_voided(db: str, ratings: Ratings) -> None:
    """A zone is an event, and voiding it brings back the previous zone."""
    assert json.loads(ratings("zone", "Asia/Tokyo", "--by", "mira", "--format", "json", db=db).stdout) == {
        "zone": "Asia/Tokyo", "position": 7,
    }  # fmt: skip
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
    refused = ratings(*command, "Europe/Berln", db=db)
    assert refused.exit_code == 2
    assert "'Europe/Berln' is not a time zone; did you mean Europe/Berlin?" in refused.stderr
    assert read_json(ratings, db, "status")["position"] == 6
    absent = tmp_path / "absent.db"
    ratings(*command, "Europe/Berln", db=str(absent))
    assert not absent.exists()


def test_zone_is_exported_and_imported(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A zone is exported and imported like every other event, and an unknown one is refused."""
    copy = str(tmp_path / "copy.db")
    ratings("export", "events", "-o", tmp_path / "log.jsonl", db=db)
    ratings("init", "--no-rules", db=copy)
    assert ratings("import", "--restore", tmp_path / "log.jsonl", db=copy).exit_code == 0
    assert ratings("zone", db=copy).stdout == "Europe/Berlin\n"
    bad = '{"type":"ledger.zone_set","occurred_at":"2025-01-01T00:00:00Z","data":{"zone":"Mars"}}'
    refused = json.loads(ratings("import", "-", "--format", "json", db=copy, input=bad).stdout)
    assert [rejection["code"] for rejection in refused["rejected"]] == ["unknown-zone"]


DAYS = "Date,White,Black,Result\n2024-11-22,anna,ben,1-0\n23.11.2024,ben,anna,1-0\n"
SHOWS_DAYS = {
    "games": (["games"], "2024-11-22 "),
    "one game": (["games", "2024-11-22-1"], "played 2024-11-22, recorded"),
    "history": (["history", "anna", "elo-chess/all"], "2024-11-22 "),
    "a game explained": (["explain", "2024-11-22-1", "elo-chess/all"], "played 2024-11-22, under"),
    "a player explained": (["explain", "anna", "elo-chess/all"], "2024-11-22, against ben"),
    "ladders": (["ladders"], "2024-11-23"),
}


@pytest.fixture
def days(ratings: Ratings, tmp_path: Path) -> str:
    """Return a ledger for chess, without a home zone, with games of which the days are known."""
    url, table = str(tmp_path / "days.db"), tmp_path / "days.csv"
    table.write_text(DAYS, encoding="utf-8")
    ratings("init", "--for", "chess", db=url)
    result = ratings("import", table, db=url)
    assert (result.exit_code, "all games are chess, the only game" in result.stderr) == (0, True)
    return url


@pytest.mark.parametrize(("command", "day"), SHOWS_DAYS.values(), ids=SHOWS_DAYS)
def test_date_needs_no_zone_and_stays_a_day(command: list[str], day: str, days: str, ratings: Ratings) -> None:
    """Without a zone a date is noon in UTC, and is shown as a day, also once there is a home zone."""
    assert [row["occurred_at"][10:] for row in read_json(ratings, days, "games")["rows"]] == ["T12:00:00.000000Z"] * 2
    for zone in (None, "Europe/Berlin", "Pacific/Auckland"):
        if zone is not None:
            ratings("zone", zone, db=days)
        stdout = ratings(*command, db=days).stdout
        assert day in stdout
        assert ":00" not in stdout


def test_time_of_exactly_one_hour_stays_a_time(ratings: Ratings, tmp_path: Path) -> None:
    """In a ledger that always had a home zone only its own noon is a day: 13:00 in Berlin is a time."""
    url = str(tmp_path / "berlin.db")
    at_home(ratings, url)
    ratings("record", "--game-id", "g-1", "--at", "2024-11-22T12:00:00Z", "anna", "ben", db=url)
    ratings("record", "--game-id", "g-2", "--at", "2024-11-23", "anna", "ben", db=url)
    stdout = ratings("games", db=url).stdout
    assert "2024-11-22 13:00  g-1" in stdout
    assert "2024-11-23        g-2" in stdout


def test_several_games_have_to_be_named(ratings: Ratings, tmp_path: Path) -> None:
    """Where rulesets score several games, a table says which."""
    url, table = str(tmp_path / "two.db"), tmp_path / "days.csv"
    table.write_text(DAYS, encoding="utf-8")
    ratings("init", "--for", "chess", "--for", "go", db=url)
    assert "there is no column 'game'" in ratings("import", table, db=url).stderr
    assert ratings("import", table, "--set", "game=go", db=url).exit_code == 0


@pytest.mark.parametrize(
    ("setting", "localtime", "asking", "zone"),
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
    setting: str | None, localtime: str, asking: bool, zone: str | None,
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """At a terminal a new ledger gets the zone that is set there; otherwise none, and init says so."""
    link = tmp_path / "localtime"
    link.symlink_to(f"/usr/share/zoneinfo/{localtime}")
    monkeypatch.setattr(machine_zone, "LOCALTIME", link)
    monkeypatch.setattr(machine_zone, "TIMEZONE", tmp_path / "timezone")
    monkeypatch.setattr(init, "can_ask", lambda: asking)
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
    [("5.11.2024", "2024-11-05"), ("2024.11.05", "2024-11-05"), ("5 Nov 2024", "2024-11-05"), ("11.30.2024", ""),
     ("5/11/2024", ""), ("22.11.", "")],
)  # fmt: skip
def test_typed_dates_have_the_day_before_the_month(text: str, day: str, ratings: Ratings, tmp_path: Path) -> None:
    """`--at` reads dots as tables do; what may be read twice, or has no year, is refused."""
    url = str(tmp_path / "typed.db")
    at_home(ratings, url)
    result = ratings("record", "--game-id", "g-1", "--at", text, "anna", "ben", db=url)
    assert result.exit_code == (0 if day else 2)
    assert (day in ratings("games", db=url).stdout) if day else ("2024-11-22" in result.stderr)
