"""No command prints raw characters that move a cursor, reorder text or hide it.

A restored ledger may hold such characters in every text; a file, an argument or a setting may, too. CSV that does not
go to a terminal, and `export events`, are verbatim.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest
from builders import build_game_data
from forged_events import append_by_sql
from ledgers import open_for_writing
from terminals import run_on_terminal

from ratings_ledger.ledger.rejections import escape_unprintable, quote

Ratings = Callable[..., Any]
ROOT = Path(__file__).parents[2]
AT = "2024-02-01T20:00:00.000000Z"
# what ids of old logs can hold: unseen, private, unassigned and line-separating characters
HIDDEN = "\u200b\u2060\ufeff\u00ad\u2028\u2029\ue000\U000f0000\U000e0041\ufffe\U0001ffff\U00013430\u180e\u0600"
# texts can also hold marks of direction, line ends and tabs
HIDDEN_TEXT = HIDDEN + "\u061c\u200e\u200f\u202a\u202e\u2066\u2069\n\t"
# `extra` can hold any character
HIDDEN_EXTRA = HIDDEN_TEXT + "\x1b[2J\x1b]0;x\x07\r\b\x00\x7f\x80\x9b31m\x9d"


def find_hidden_characters(output: str) -> set[str]:
    """Return the invisible characters of an output except spaces, tabs and ends of lines."""
    return {c for c in output if not (c.isprintable() or c in "\n\t" or category(c) == "Zs")}


def build_id(text: str) -> str:
    """Return an id with all hidden characters that ids can hold."""
    return f"{text}{HIDDEN}é"


ANNA, BEN, DORA, DOROTHEA, GAME, CITY, LEAGUE = map(
    build_id, ("anna", "ben", "dora", "dorothea", "g", "city", "league")
)
REASON, BY = f"why {HIDDEN_TEXT}é", f"referee {HIDDEN_TEXT}é"
LADDER = f"elo-go/{CITY}"


build_go_game = partial(build_game_data, game="go", city=CITY, group=CITY, extra={"note": HIDDEN_EXTRA})


RULESET = {
    "id": "elo-go",
    "version": "1",
    "rule": "pairwise-elo/1",
    "effective_from": "2000-01-01",
    "source": REASON,
    "scope": {"game": ["go"], "exclude_group": [f"no {HIDDEN_EXTRA}"]},
    "partition": {"by": ["city"]},
    "params": {"start": 1000, "k_total": 32},
    "assumed": {"start": REASON},
}
EVENTS = [
    ("ruleset.published", RULESET),
    ("player.registered", {"player": ANNA}),
    ("game.recorded", build_go_game(GAME, ANNA, BEN)),
    ("game.recorded", build_go_game(build_id("h"), BEN, DORA)),
    ("game.recorded", build_go_game(build_id("i"), ANNA, DORA, aborted=True)),
    ("game.corrected", {"game_id": build_id("h"), "reason": REASON, "game": build_go_game(build_id("h"), DORA, BEN)}),
    ("game.recorded", build_go_game(build_id("j"), ANNA, DORA)),
    ("game.voided", {"game_id": build_id("j"), "reason": REASON}),
    ("player.account_changed", {"player": ANNA, "account": "free"}),
    ("player.renamed", {"player": DORA, "new_player": DOROTHEA}),
    ("points.adjusted", {"ladder": LADDER, "player": ANNA, "points": "5", "reason": REASON}),
    ("event.voided", {"id": build_id("points.adjusted"), "reason": REASON}),
    ("league.created", {"league": LEAGUE, "game": "chess", "players_per_game": 2, "version": REASON}),
    ("league.joined", {"league": LEAGUE, "player": ANNA}),
    ("clock.started", {"game_id": GAME, "at": 0, "players": [ANNA, BEN]}),
    ("clock.offered", {"game_id": GAME, "at": 1, "player": ANNA, "choice": "fortune"}),
    ("points.adjusted", {"ladder": LADDER, "player": BEN, "points": "7", "reason": REASON}),
]


def make_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger with hidden characters in every text that a record can hold, and in a published list."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    with open_for_writing(url) as connection:
        for number, (type_name, data) in enumerate(EVENTS):
            event_name = type_name if type_name == "points.adjusted" and number < 12 else f"{type_name}{number}"
            append_by_sql(connection, type_name, data, AT, BY, build_id(event_name))
    result = ratings("publish", LADDER, "--by", BY.replace("\n\t", ""), db=url)
    assert result.exit_code == 0, result.stderr
    list_event = json.loads(ratings("export", "events", db=url).stdout.split("\n")[-2])
    with open_for_writing(url) as connection:
        append_by_sql(connection, list_event["type"], list_event["data"], AT, BY, build_id("list"))
    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")


pytestmark = pytest.mark.ledger(make=make_ledger)


READING_COMMANDS: list[tuple[str, ...]] = [
    ("games",), ("games", GAME), ("log",), ("log", ANNA), ("log", GAME), ("log", "--limit", "0"), ("ladders",),
    ("lists",), ("standings", LADDER), ("standings", LADDER, "--as-published"), ("standings", LADDER, "--player", ANNA),
    ("history", ANNA, LADDER), ("history", DORA, LADDER), ("explain", GAME, LADDER), ("explain", build_id("i"), LADDER),
    ("explain", ANNA, LADDER), ("explain", ANNA, LADDER, "--change", "--from", "20"), ("statistics", ANNA),
    ("diff", "20", "now"), ("diff", "published", "now"), ("whatif", "go.toml"), ("league", "list"),
    ("league", "show", LEAGUE), ("league", "unmet", LADDER, ANNA),
    ("clock", "show", GAME), ("clock", "explain", GAME, ANNA), ("books", LADDER), ("rules", "list"),
    ("rules", "show", "elo-go"), ("status",), ("doctor",), ("verify",), ("export", "standings"),
    ("export", "changes", LADDER), ("rebuild",), ("zone",),
    # dry runs
    ("record", "--dry-run", "--game", "go", "--game-id", build_id("n"), "--city", CITY, "--new-names", "accept", ANNA,
     BEN),
    ("correct", GAME, "--dry-run", "--reason", "r", BEN, ANNA), ("void", GAME, "--dry-run", "--reason", "r"),
    ("reinstate", build_id("j"), "--dry-run", "--reason", "r"),
    ("adjust", LADDER, ANNA, "5", "--dry-run", "--reason", "r"),
    ("player", "rename", ANNA, "other", "--dry-run", "--reason", "r"),
    ("player", "account", ANNA, "premium", "--dry-run"),
]  # fmt: skip
FAILING_COMMANDS: list[tuple[str, ...]] = [
    ("publish", LADDER), ("league", "table", LEAGUE), ("standings", f"{LADDER}/x"),
    ("standings", build_id("nowhere")), ("history", build_id("nobody"), LADDER),
    ("explain", build_id("nothing"), LADDER), ("log", build_id("nothing")), ("games", build_id("nothing")),
    ("games", "--player", build_id("ana")), ("void", build_id("nothing"), "--reason", "r"),
    ("league", "show", build_id("none")), ("clock", "show", build_id("none")), ("rules", "show", build_id("none")),
    ("standings", LADDER, "--as-of", HIDDEN_EXTRA[:-9]), ("standings", LADDER, "--known-at", HIDDEN_TEXT),
    ("standings", LADDER, "--rules", build_id("x@1")), ("diff", HIDDEN_TEXT, "now"),
    (build_id("command"),), ("games", f"--{HIDDEN}"), ("import", f"{HIDDEN}.csv"), ("rules", "check", f"{HIDDEN}.toml"),
    ("whatif", f"{HIDDEN}.toml"), ("export", "events", "-o", f"{HIDDEN}/x"), ("league", "join", LEAGUE, ANNA),
    ("adjust", LADDER, "--file", f"{HIDDEN}.csv", "--reason", "r"), ("init", "--for", build_id("x")),
    ("init", "--zone", build_id("Europe")), ("record", "--game", build_id("x"), "a", "b"),
    ("void", "--event", build_id("x"), "--reason", "r"),
    ("player", "rename", ANNA, build_id("other"), "--dry-run", "--reason", "r"),
]  # fmt: skip
FORMATS = ("table", "json", "toml")


@pytest.mark.slow_cases
@pytest.mark.parametrize("command", [*READING_COMMANDS, *FAILING_COMMANDS], ids=lambda command: ascii(command[0]))
def test_no_command_prints_hidden_characters(
    command: tuple[str, ...],
    db: str,
    ratings: Ratings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store_kind: str,
    at_length: bool,
) -> None:
    """No command prints hidden characters raw, in any format, whichever text holds them."""
    if store_kind == "postgres" and not at_length and command[0] not in ("log", "doctor", "void"):
        pytest.skip("at length")
    monkeypatch.chdir(tmp_path)
    Path("go.toml").write_text(ratings("rules", "show", "elo-go", "--format", "toml", db=db).stdout, "utf-8")
    succeeded = 0
    for output_format in (None, *FORMATS):
        result = ratings(*command, *(() if output_format is None else ("--format", output_format)), db=db)
        assert find_hidden_characters(result.stdout + result.stderr) == set(), (output_format, result)
        assert "bug" not in result.stderr
        succeeded += result.exit_code == 0
    # the tests' role has more rights than it should, which `doctor` reports
    assert succeeded or command in FAILING_COMMANDS or (command, store_kind) == (("doctor",), "postgres"), result


def test_json_parses_to_recorded_texts(db: str, ratings: Ratings) -> None:
    """JSON output parses to exactly the texts that were recorded."""
    stdout = ratings("log", "--limit", "0", "--format", "json", db=db).stdout
    assert [row["data"] for row in json.loads(stdout)["rows"]][1 : 1 + len(EVENTS)] == [data for _, data in EVENTS]
    assert "é" in stdout
    lines = ratings("export", "standings", LADDER, db=db).stdout.splitlines()
    assert json.loads(lines[0])["ladder"] == LADDER


def test_toml_parses_to_published_ruleset(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A ruleset shown as TOML parses to what was published."""
    import tomllib

    stdout = ratings("rules", "show", "elo-go", "--format", "toml", db=db).stdout
    output = tomllib.loads(stdout)
    published = {**RULESET, "effective_from": date(2000, 1, 1)}  # TOML has a type for dates
    assert {member: output[member] for member in published} == published


def test_export_and_piped_csv_are_verbatim(db: str, ratings: Ratings) -> None:
    """`export events`, and CSV that goes to no terminal, are verbatim."""
    assert set(HIDDEN) <= set(ratings("export", "events", db=db).stdout)
    assert ANNA in ratings("standings", LADDER, "--format", "csv", db=db).stdout


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "command",
    [("standings", LADDER), ("log",), ("export", "changes", LADDER), ("export", "standings")],
    ids=lambda c: c[0],
)
@pytest.mark.parametrize("output_format", ["csv", "json"])
def test_terminal_gets_no_hidden_characters(
    command: tuple[str, ...], output_format: str, copy_ledger_file: Callable[..., str]
) -> None:
    """CSV and JSON printed to a terminal contain no hidden characters raw."""
    _, screen = run_on_terminal("--db", copy_ledger_file(make_ledger), *command, "--format", output_format)
    assert find_hidden_characters(screen.replace("\r\n", "\n")) == set()
    assert "\\u200b" in screen


FILES = {
    "a header": f"game_id,{HIDDEN_EXTRA.replace(chr(10), '')},player\n",
    "a cell": f"game_id,occurred_at,game,player,place\n{HIDDEN_EXTRA.split(chr(10))[0]},x,go,a\x1b[2Jb\u202e,1\n",
    "a line": '{"type":"\\u001b[2J\\u202e","occurred_at":"x","data":{}}\n',
    "a member": '{"type":"game.recorded","occurred_at":"2024-01-01T00:00:00Z","data":{"\\u001b\\u200b":1}}\n',
    "raw": '{"type":"\x1b[2J\u202e\u200b\n',
    "a repeated member": '{"\\u001b\u202e":1,"\\u001b\u202e":2}\n',
}


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_hostile_file_is_not_printed_raw(
    what: str, suffix: str, tmp_path: Path, ratings: Ratings, copy_ledger_file: Callable[..., str]
) -> None:
    """An import prints neither the name nor the content of a hostile file raw."""
    db, file = copy_ledger_file(make_ledger), tmp_path / f"x\x1b[2J\u202e{HIDDEN}{suffix}"
    file.write_text(FILES[what], "utf-8")
    for more in ((), ("--format", "json"), ("--keep-going",), ("--restore",)):
        result = ratings("import", file, *more, db=db)
        assert result.exit_code in (1, 2, 3), result
        assert find_hidden_characters(result.stdout + result.stderr) == set(), result
        assert "bug" not in result.stderr
    for path in tmp_path.glob("*.rejects.jsonl"):
        assert find_hidden_characters(path.read_text("utf-8")) == set()


TOML = {
    "a key": f'"{HIDDEN}\\u001b" = 1\n',
    "a value": f'id = "{HIDDEN}\\u001b\u202e"\nversion = "\\u0007"\n',
    "no TOML": f"{HIDDEN_TEXT}\x1b[2J",
    "a table": f'["{HIDDEN}"]\nx = 1\n',
    "a rule": f'id = "x"\nrule = "{HIDDEN}/1"\n',
}


@pytest.mark.parametrize("what", TOML)
def test_hostile_ruleset_is_not_printed_raw(what: str, tmp_path: Path, ratings: Ratings) -> None:
    """Checking, publishing or trying a hostile ruleset file prints nothing of it raw."""
    file = tmp_path / f"x\x1b[2J\u202e{HIDDEN}.toml"
    file.write_text(TOML[what], "utf-8")
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--no-rules", db=db).exit_code == 0
    for command in (("rules", "check"), ("rules", "publish"), ("whatif",)):
        result = ratings(*command, file, db=db)
        assert result.exit_code in (1, 2), result
        assert find_hidden_characters(result.stdout + result.stderr) == set(), result


@pytest.mark.parametrize(
    "url",
    [
        "/no/\x1b[2J\u202e\u200b.db",
        "sqlite:////no/\x1b[2J\u202e.db",
        "postgresql://u:p\x1b@[/\u202e",
        "\x1b]0;x\x07://x",
        "postgresql://nobody\u202e@localhost:1/x\u200b",
        "sqlite:///x.db?\u202e=1",
        "sqlite:///x.db?timeout=\x1b[2J",
    ],
)
@pytest.mark.parametrize("how", ["--db", "RATINGS_DB"])
def test_hostile_ledger_name_is_not_printed(
    how: str, url: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile ledger name is not printed raw, whether from the option or the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RATINGS_DB", url)
    result = ratings("status", db=url if how == "--db" else None)
    assert result.exit_code in (2, 3), result
    assert result.stderr
    assert find_hidden_characters(result.stdout + result.stderr) == set(), result


@pytest.mark.slow
def test_hostile_settings_are_not_printed_raw(
    tmp_path: Path,
) -> None:
    """Hostile settings and arguments are not printed raw by any command.

    These are a user name, an engine, a zone and an argument that is not UTF-8, in a separate process.
    """
    odd = "\x1b[2J\u202e\u200b"
    settings = dict.fromkeys(("LOGNAME", "USER", "RATINGS_ENGINE", "TZ", "EDITOR", "COLUMNS"), odd)
    for arguments in (["init"], ["record", "--game", "go", "a", "b"], ["log"], ["doctor"], [b"\xff\x1b"], ["status"]):
        process = subprocess.run(
            [sys.executable, "-m", "ratings_ledger", "--db", str(tmp_path / "ratings.db"), *arguments],
            capture_output=True,
            cwd=ROOT,
            check=False,
            env={**os.environ, **settings},
        )
        assert find_hidden_characters((process.stdout + process.stderr).decode()) == set(), process
        assert b"Traceback" not in process.stderr


def test_only_render_and_main_print() -> None:
    """Of all modules of the command line, only `render` and `main` print, and only `render` writes unescaped JSON."""
    printing = {path.name for path in (ROOT / "cli").rglob("*.py") if "click.echo(" in path.read_text("utf-8")}
    dumping = {path.name for path in (ROOT / "cli").rglob("*.py") if "ensure_ascii=False" in path.read_text("utf-8")}
    assert (printing, dumping) == ({"render.py", "main.py"}, {"render.py"})


def test_escaped_json_parses_the_same(at_length: bool) -> None:
    """Escaped JSON parses to the same text, contains no hidden character and leaves letters as they are.

    Every character is tried, a thousand at a time; a short run tries only a sixteenth of those
    beyond the first 8,000.
    """
    for block in range(0x110000 >> 10):
        if not at_length and block % 16 and block >= 8:
            continue
        text = "".join(map(chr, range(block << 10, (block + 1) << 10)))
        written = escape_unprintable(json.dumps(text, ensure_ascii=False), halves=True)
        assert json.loads(written) == text
        assert find_hidden_characters(written) == set()
        assert find_hidden_characters(escape_unprintable(text)) == find_hidden_characters(quote(text)) == set()
        assert {c for c in text if c.isalpha()} <= set(written)
