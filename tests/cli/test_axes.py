"""The three axes: the commands that take them, their combination, and the messages at their limits."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledgers import set_clock
from list_games import build_list_game as catan
from rich.cells import cell_len

Ratings = Callable[..., Any]
LADDER = "club-catan-elo/all"
ROOT = Path(__file__).parents[2]
NOW = "2025-06-15T12:00:00Z"


def build_club_game(game_id: str, *players: str, day: int) -> dict[str, Any]:
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    data = {"game_id": game_id, "game": "club-catan", "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2024-01-{day:02d}T12:00:00Z", "data": data}


# the last two are on different days in Berlin, the zone of catan-monthly, and on one day in UTC
GAMES = [
    build_club_game("g-1", "anna", "ben", "cleo", day=1),
    build_club_game("g-2", "ben", "anna", "dora", day=3),
    catan("c-1", "2024-01-03T20:00:00Z", "anna ben cleo"),
    catan("c-2", "2024-01-03T23:30:00Z", "ben anna cleo"),
]
# the commands that take the axes, with the arguments that they need
COMMAND_ARGUMENTS = {
    "standings": [LADDER],
    "history": ["anna", LADDER],
    "explain": ["g-1", LADDER],
    "books": [LADDER],
    "ladders": [],
    "lists": [],
    "statistics": ["anna"],
}


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, NOW)


@pytest.fixture(scope="module")
def db(shared_url: str, ratings: Ratings) -> str:
    """Return the URL of a ledger that is only read, in each kind of store in turn."""
    with pytest.MonkeyPatch.context() as patch:
        set_clock(patch, NOW)
        return fill_ledger(ratings, shared_url)


def fill_ledger(ratings: Ratings, db: str) -> str:
    """Fill a ledger: shipped rulesets at 1 to 18, club-catan-elo@2 at 19, four games at 20 to 23, their batch at 24."""
    assert ratings("init", db=db).exit_code == 0
    assert ratings("rules", "publish", ROOT / "examples" / "club-catan-elo-2.toml", db=db).exit_code == 0
    lines = "".join(json.dumps(event) + "\n" for event in GAMES)
    assert ratings("import", "-", db=db, input=lines).exit_code == 0
    return db


def read_output(ratings: Ratings, db: str, *arguments: object) -> Any:
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def read_csv(ratings: Ratings, db: str, *arguments: object) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ratings(*arguments, "--format", "csv", db=db).stdout)))


@pytest.mark.parametrize("command", COMMAND_ARGUMENTS)
def test_every_output_states_the_axes(command: str, db: str, ratings: Ratings) -> None:
    """Each command that takes the axes states them in its JSON, its CSV and its table."""
    command_line = [command, *COMMAND_ARGUMENTS[command]]
    axes = ["--as-of", "2024-01-03T21:00:00Z", "--known-at", 22, "--rules", "club-catan-elo@1"]
    stated = {"as_of": "2024-01-03T21:00:00.000000Z", "known_at": 22, "rules": "club-catan-elo@1"}

    output = read_output(ratings, db, *command_line, *axes)
    assert {name: output[name] for name in stated} == stated
    without_axes = read_output(ratings, db, *command_line)
    assert {name: without_axes[name] for name in stated} == {"as_of": None, "known_at": 24, "rules": None}
    rows = read_csv(ratings, db, *command_line, *axes)
    assert rows
    assert all([*row][-3:] == [*stated] for row in rows)
    assert {tuple(row[name] for name in stated) for row in rows} <= {tuple(map(str, stated.values()))}
    unlimited = read_csv(ratings, db, *command_line)
    assert {tuple(row[name] for name in stated) for row in unlimited} == {("", "24", "")}
    table = ratings(*command_line, *axes, db=db)
    assert (table.exit_code, table.stderr) == (0, "")
    heading = table.stdout.split("\n\n")[0]
    assert "known at position 22" in heading
    assert heading.splitlines()[-2:] == [
        "played up to 2024-01-03 21:00:00 UTC",
        "all games of club-catan-elo under club-catan-elo@1 (--rules)",
    ]
    assert [line for line in table.stdout.splitlines() if cell_len(line) > 80] == []


def test_date_ends_in_each_rulesets_zone(db: str, ratings: Ratings) -> None:
    """For --as-of with a date, each row states when that day ended in its ruleset's zone.

    The club's days end in UTC, those of the lists in Berlin: an hour earlier, and so before c-2.
    """
    ladders = read_output(ratings, db, "ladders", "--as-of", "2024-01-03")
    rows = {row["ladder"]: (row["games"], row["as_of"]) for row in ladders["rows"]}

    assert ladders["as_of"] == "2024-01-03T23:59:59.999999Z"
    assert rows[LADDER] == (2, "2024-01-03T23:59:59.999999Z")
    assert rows["catan-open/basic/2024-01"] == (1, "2024-01-03T22:59:59.999999Z")
    table = ratings("ladders", "--as-of", "2024-01-03", db=db).stdout.splitlines()
    assert table[1] == "played up to 2024-01-03 in the time zone of each ruleset"
    (as_of,) = {row["as_of"] for row in read_csv(ratings, db, "lists", "--as-of", "2024-01-03")}
    assert as_of == "2024-01-03T22:59:59.999999Z"
    table = ratings("lists", "--as-of", "2024-01-03", db=db).stdout.splitlines()
    assert table[1] == "played up to 2024-01-03 22:59:59 UTC"


def test_lists_count_their_rows_and_ranks(db: str, ratings: Ratings) -> None:
    """Each list is shown with the number of its players and of its ranked players."""
    rows = {row["list"]: (row["players"], row["ranked"]) for row in read_output(ratings, db, "lists")["rows"]}
    for ladder, counts in rows.items():
        ranks = [row["rank"] for row in read_output(ratings, db, "standings", ladder)["rows"]]
        assert counts == (len(ranks), len(ranks) - ranks.count(None))


def test_rules_fix_one_ruleset_only(db: str, ratings: Ratings) -> None:
    """--rules sets the version of one ruleset; the others keep their timelines."""
    versions = {row["ladder"]: row["ruleset"] for row in read_output(ratings, db, "ladders")["rows"]}
    versions_with_rules = {
        row["ladder"]: row["ruleset"]
        for row in read_output(ratings, db, "ladders", "--rules", "club-catan-elo@1")["rows"]
    }

    assert (versions[LADDER], versions_with_rules[LADDER]) == ("club-catan-elo@2", "club-catan-elo@1")
    other_ladders = versions.keys() - {LADDER, "club-catan-elo/3-4"}
    assert other_ladders
    assert {name: versions_with_rules[name] for name in other_ladders} == {
        name: versions[name] for name in other_ladders
    }
    lists = read_output(ratings, db, "lists", "--rules", "catan-monthly@pre-2008-03")["rows"]
    assert {row["ruleset"] for row in lists} == {
        "catan-annual@2008-03",
        "catan-monthly@pre-2008-03",
        "catan-open@2008-03",
    }


@pytest.mark.parametrize("command", [*COMMAND_ARGUMENTS, "export standings"])
@pytest.mark.parametrize(
    ("rules", "published"),
    [
        ("club-catan-elo@9", "club-catan-elo@1, club-catan-elo@2"),
        ("chess@1", "club-catan-elo@1"),
        ("", "club-catan-elo@1"),
    ],
)
def test_unpublished_version_is_usage_error(
    rules: str, published: str, command: str, db: str, ratings: Ratings
) -> None:
    """Naming a version that is not published is a usage error that lists the published ones."""
    result = ratings(*command.split(), *COMMAND_ARGUMENTS.get(command, []), "--rules", rules, db=db)

    assert (result.exit_code, result.stdout) == (2, "")
    assert published in result.stderr


def test_version_is_unknown_before_its_position(db: str, ratings: Ratings) -> None:
    """A version cannot be used as known at a position before it was published."""
    result = ratings("ladders", "--rules", "club-catan-elo@2", "--known-at", 16, db=db)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "at position 16 (published: club-catan-elo@1)" in result.stderr


IMPOSSIBLE_KNOWN_AT = {
    "99": "the log ends at position 24",
    "9" * 5_000: "the log ends at position 24",
    "0": "the log begins at position 1, which was recorded at 2025-06-15 12:00:00 UTC",
    "2025-06-14": "the log begins at position 1, which was recorded at 2025-06-15 12:00:00 UTC",
    "-1": "'-1' is not a time like",
    "soon": "nor a position of the log",
    "١": "nor a position of the log",
    "2025-02-30": "is not a date",
    "99999-01-01": "is not a time",
}


@pytest.mark.parametrize("known_at", IMPOSSIBLE_KNOWN_AT, ids=lambda text: text[:12])
@pytest.mark.parametrize("command", [("standings", LADDER), ("lists",), ("export", "events"), ("rules", "list")])
def test_impossible_known_at_names_the_limit(
    known_at: str, command: tuple[str, ...], db: str, ratings: Ratings
) -> None:
    """A --known-at before the first or after the last position is refused with that limit; a malformed one, too."""
    result = ratings(*command, "--known-at", known_at, db=db)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for '--known-at': " in result.stderr
    assert IMPOSSIBLE_KNOWN_AT[known_at] in result.stderr


@pytest.mark.parametrize(
    ("known_at", "note_count"), [("2025-06-15", 0), (NOW, 0), ("2025-06-16", 1), ("2025-06-15T12:01Z", 1)]
)
def test_known_at_notes_only_the_future(known_at: str, note_count: int, db: str, ratings: Ratings) -> None:
    """A --known-at after the last event reads the whole log; only a future one is noted."""
    result = ratings("standings", LADDER, "--known-at", known_at, "--format", "json", db=db)

    assert json.loads(result.stdout)["known_at"] == 24
    assert result.stderr == note_count * (
        "note: the last event was recorded at 2025-06-15 12:00:00 UTC; the answer cannot include later events\n"
    )


@pytest.mark.parametrize(("as_of", "note_count"), [("2025-06-15", 0), (NOW, 0), ("2025-06-16", 1), ("9999-12-31", 1)])
@pytest.mark.parametrize("command", [("standings", LADDER), ("lists",), ("export", "standings")])
def test_future_as_of_is_noted(
    as_of: str, note_count: int, command: tuple[str, ...], db: str, ratings: Ratings
) -> None:
    """An --as-of in the future is answered with a note."""
    result = ratings(*command, "--as-of", as_of, db=db)

    assert (result.exit_code, "is in the future" in result.stderr) == (0, bool(note_count))


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("command", [("standings",), ("history", "anna"), ("books",)])
def test_as_of_before_games_is_noted(command: tuple[str, ...], form: str, db: str, ratings: Ratings) -> None:
    """Before a ladder's first game, a note says when that game was; later, and without any game, there is no note."""
    result = ratings(*command, LADDER, "--as-of", "2023-12-31", "--format", form, db=db)

    assert result.exit_code == 0
    assert "note: the first game on club-catan-elo was at 2024-01-01 12:00:00 UTC\n" in result.stderr
    assert "first" not in ratings(*command, LADDER, "--as-of", "2024-01-01", db=db).stderr
    assert "first" not in ratings(*command, "club-catan-elo/7-8", "--as-of", "2023-12-31", db=db).stderr


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_as_of_before_all_games_is_not_an_empty_ledger(form: str, db: str, ratings: Ratings) -> None:
    """Before the first game no ladder exists, and the note says when that game was."""
    note, as_of_option = "note: the first game was at 2024-01-01 12:00:00 UTC\n", ("--as-of", "2023-12-31")
    ladders = ratings("ladders", *as_of_option, "--format", form, db=db)
    table = "No ladder has a game played up to 2023-12-31 23:59 UTC.\n" * (form == "table")
    assert (ladders.exit_code, ladders.stderr) == (0, note + table)
    for command in ("standings", "books", "history anna"):
        refused = ratings(*command.split(), *as_of_option, db=db)
        assert (refused.exit_code, refused.stderr.startswith(note)) == (2, True), refused
        assert "value for '--as-of': no ladder has a game played up to 2023-12-31\n" in refused.stderr
    assert ratings("export", "standings", *as_of_option, db=db) == (0, "", note)
    statistics = ratings("statistics", "anna", *as_of_option, db=db)
    assert "'anna' has not played up to 2023-12-31;" in statistics.stderr
    assert "first" not in ratings("ladders", "--as-of", "2024-01-01", "--format", form, db=db).stderr


def test_position_before_the_ruleset_says_where_it_was_published(db: str, ratings: Ratings) -> None:
    """Before its first version, a ladder is refused with that version's position, without advice to publish it."""
    for command in (("standings", LADDER), ("history", "anna", LADDER), ("explain", "anna", LADDER)):
        result = ratings(*command, "--known-at", "1", db=db)
        assert (result.exit_code, "its first version was published at position " in result.stderr) == (2, True), result
        assert "rules publish" not in result.stderr
        assert "ratings init" not in result.stderr
    absent = ratings("standings", "elo-chess", "--known-at", "1", db=db).stderr
    assert "to add it: ratings rules publish --shipped elo --game chess" in absent


def test_voided_game_is_not_the_first(ledger_url: str, ratings: Ratings) -> None:
    """The note about the first game leaves out voided games."""
    db = fill_ledger(ratings, ledger_url)
    first = json.loads(ratings("games", "--limit", 0, "--format", "json", db=db).stdout)["rows"][0]
    assert first["occurred_at"].startswith("2024-01-01T12:00:00")
    assert ratings("void", first["game_id"], "--reason", "x", db=db).exit_code == 0
    stderr = ratings("ladders", "--as-of", "2023-12-31", db=db).stderr
    assert "note: the first game was at 2024-01-03 12:00:00 UTC\n" in stderr


@pytest.mark.parametrize(
    ("moment", "first", "last"),
    [
        ("2024", "2024-01-01", "2024-12-31"),
        ("2024-01", "2024-01-01", "2024-01-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
    ],
)
def test_month_or_year_is_its_end_or_start(moment: str, first: str, last: str, db: str, ratings: Ratings) -> None:
    """A month or year means its last day in options for an end, and its first day in options for a start."""
    for command, day in {
        ("ladders", "--as-of", moment): last,
        ("standings", LADDER, "--as-of", moment): last,
        ("games", "--as-of", moment): last,
        ("games", "--since", moment): first,
        ("diff", f"as-of={moment}", "now"): last,
    }.items():
        month, dated = (
            ratings(*(part.replace(moment, text) for part in command), "--format", "json", db=db)
            for text in (moment, day)
        )
        assert (month.exit_code, month.stdout) == (0, dated.stdout), month


@pytest.mark.parametrize(("moment", "day"), [("2024", "2024-12-31"), ("1800", "1800-12-31")])
def test_year_instead_of_a_position_is_refused_with_a_date(moment: str, day: str, db: str, ratings: Ratings) -> None:
    """A year that may be a position, or a month or year as an instant, is refused with an example of a date."""
    message = f"the log ends at position 24, before {moment}; for a year, name a day, such as "
    for command, example in (
        (("ladders", "--known-at", moment), day),
        (("log", "--since", moment), f"{moment}-01-01"),
        (("diff", moment, "now"), day),
    ):
        result = ratings(*command, db=db)
        assert (result.exit_code, result.stdout, message + example in result.stderr) == (2, "", True), result
    for text, example in ((moment, day), ("2024-02", "2024-02-01")):
        result_of_adjust = ratings("adjust", LADDER, "anna", "5", "--reason", "x", "--at", text, db=db)
        missing_day = f"bad-time: '{text}' lacks the day; write year-month-day, such as {example}\n"
        assert (result_of_adjust.exit_code, missing_day in result_of_adjust.stderr) == (1, True), result_of_adjust


@pytest.mark.slow_cases
def test_as_of_before_adjustment_notes_it(ledger_url: str, ratings: Ratings) -> None:
    """If an adjustment precedes all games, an earlier --as-of notes the adjustment."""
    db = fill_ledger(ratings, ledger_url)
    early = ["--at", "2023-06-01T12:00Z", "--reason", "invited"]
    assert ratings("adjust", LADDER, "dora", "5", *early, db=db).exit_code == 0

    result = ratings("standings", LADDER, "--as-of", "2023-01-01", db=db)
    assert "note: the first adjustment on club-catan-elo was at 2023-06-01 12:00:00 UTC\n" in result.stderr


def test_commands_say_ledger_is_empty(ledger_url: str, ratings: Ratings) -> None:
    """On an empty ledger, each command says so or prints nothing."""
    ladder = ratings("standings", LADDER, db=ledger_url)
    assert (ladder.exit_code, "none is published; see: ratings init" in ladder.stderr) == (2, True)
    for known_at in ("0", "1", "2024-01-01"):
        result = ratings("ladders", "--known-at", known_at, db=ledger_url)
        assert (result.exit_code, "the ledger is empty" in result.stderr) == (2, True)
    for command in ("ladders", "export standings"):
        assert ratings(*command.split(), db=ledger_url)[:2] == (0, "")
    lists = ratings("lists", db=ledger_url)
    assert lists.exit_code == 0
    assert lists.stdout.startswith("No ruleset of this ledger makes lists of months or years.")


@pytest.mark.slow
def test_known_at_repeats_earlier_json(tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the log grows, --known-at gives byte for byte the JSON printed at each position."""
    db = str(tmp_path / "ratings.db")
    set_clock(monkeypatch, NOW)
    steps = [
        ["rules", "publish", ROOT / "examples" / "club-catan-elo-2.toml"],
        ["import", "-"],
        ["import", "-"],
        ["void", "g-2", "--reason", "unfair"],
        ["player", "rename", "cleo", "clara"],
        ["reinstate", "g-2", "--reason", "fair"],
        ["adjust", LADDER, "anna", "5", "--reason", "gift"],
        ["correct", "c-1", "ben", "anna", "cleo", "--reason", "typo"],
        ["void", "--event", "ruleset:club-catan-elo@2", "--reason", "too early"],
    ]
    commands = [
        *([name, *arguments] for name, arguments in COMMAND_ARGUMENTS.items()),
        ["games"],
        ["log"],
        ["rules", "list"],
        ["rules", "show", "club-catan-elo"],
        ["export", "standings"],
        ["explain", "anna", LADDER],
        ["standings", LADDER, "--as-of", "2024-01-02"],
    ]
    game_groups, outputs = iter([GAMES[:2], GAMES[2:]]), {}
    assert ratings("init", db=db).exit_code == 0
    for step in steps:
        lines = "\n".join(map(json.dumps, next(game_groups))) if step[0] == "import" else None
        assert ratings(*step, db=db, input=lines).exit_code == 0
        position = int(json.loads(ratings("status", "--format", "json", db=db).stdout)["head"].split(":")[0])
        outputs[position] = [ratings(*command, "--format", "json", db=db).stdout for command in commands]

    assert len(outputs) == len(steps)
    for position, before in outputs.items():
        axis = ["--known-at", position, "--format", "json"]
        assert [ratings(*command, *axis, db=db).stdout for command in commands] == before, position


@pytest.mark.slow
def test_printed_positions_can_be_typed(tmp_path: Path, ratings: Ratings) -> None:
    """A printed position can be passed to a command, also above 1,000."""
    db = str(tmp_path / "ratings.db")
    assert ratings("init", "--no-rules", db=db).exit_code == 0
    assert ratings("rules", "publish", ROOT / "examples" / "club-catan-elo-2.toml", db=db).exit_code == 0
    games = "".join(
        json.dumps(build_club_game(f"g-{number}", "anna", "ben", "cleo", day=1)) + "\n" for number in range(1_050)
    )
    result = ratings("import", "-", "--new-names", "accept", db=db, input=games)
    assert (result.exit_code, result.stdout) == (0, "1,050 appended; the head is 1052.\n")
    title = ratings("standings", LADDER, "--known-at", "1051", db=db).stdout.splitlines()[0]
    assert title == "club-catan-elo: 1,050 games under club-catan-elo@2, known at position 1051"
    assert "position 1052: -: positions 2 to 1051" in ratings("undo", "1052", "--dry-run", db=db).stdout
