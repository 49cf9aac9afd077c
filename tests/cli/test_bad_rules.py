"""Bad rules in installed packages: each fails only its own ladders, by name, and every other ladder is unchanged.

A ledger has a sound ladder of this program, a sound one of a package, and one of a rule that was sound when it was
published and that another version of its package has broken since. All three score the same games.
"""

import asyncio
import html
import importlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asking import Response, get, get_async, serve
from correction_helpers import build_galactic_line
from lengths import mark_long_values
from own_rules import forbid_compiling, forget_rules, publish_without_trial
from sqlalchemy import make_url
from stores import make_chess_ledger, record_lines
from thresholds import set_thresholds

pytestmark = pytest.mark.slow  # all share one installation of the packages

Ratings = Callable[..., Any]
PACKAGES = Path(__file__).parents[1] / "bad_rules"
GAMES = 12
SOUND_LADDERS = ("elo-chess/all", "sound")
SOUND_RULE_CODE = """from plain_rule import RULE as PLAIN

RULE = PLAIN._replace(name="{name}")
"""
# by package: the call in which its ladder fails, and the message of `rules check`
BAD_RULES = {
    "returns-nothing": ("score", "score returned nothing; a whole number is needed (returns_nothing.py, line 6)"),
    "unknown-list": ("load", "unknown-list/1 names the list 'tabel'"),
    "floats": ("score", "score reads BONUS = 0.5 (floats.py, line 10)"),
    "wrong-lengths": ("score", "array assignment index out of range (wrong_lengths.py, line 8)"),
    "overflows": ("score", "the points grow out of bounds"),
    "raises-in-prepare": ("load", "integer division or modulo by zero (raises_in_prepare.py, line 7)"),
    "raises-in-chance": ("chance", "IndexError: list index out of range (raises_in_chance.py, line 7)"),
    "raises-at-import": ("load", "ValueError: invalid literal for int() with base 10: 'one'"),
    "leaves": ("check", "SystemExit: a rule has had enough (leaves.py, line 9)"),
    "exits": ("score", "SystemExit: os._exit(0) would end the program (exits.py, line 9)"),
    "prints": ("nowhere", ""),
    "explains-nothing": ("explain", "explain returned nothing; it must return a list of terms for each of the"),
    "remembers": ("nowhere", "state between calls (remembers.py, line 8), at random game 1"),
}
# one of each kind of failure
SHORT_CASES = ("exits", "returns-nothing", "unknown-list", "raises-in-chance", "explains-nothing", "prints")

# by package: the message of its ladder, with the line
LADDER_MESSAGES = {
    "returns-nothing": "score returned nothing; a whole number is needed (returns_nothing.py, line 6)",
    "floats": "cannot be interpreted as an integer (floats.py, line 10)",
    "wrong-lengths": "array assignment index out of range (wrong_lengths.py, line 8)",
    "overflows": "the points grow out of bounds",
    "leaves": "SystemExit: a rule has had enough (leaves.py, line 9)",
    "exits": "SystemExit: os._exit(0) would end the program (exits.py, line 9)",
}


def build_ruleset(name: str, rule: str) -> str:
    return f'id = "{name}"\nversion = "1"\nrule = "{rule}/1"\neffective_from = 2000-01-01\n[scope]\ngame = ["chess"]\n'


class PackageFolders(NamedTuple):
    """Folders with packages: the bad ones, and the same with sound rules instead."""

    bad: Path
    sound: Path


@pytest.fixture(scope="module")
def package_folders(tmp_path_factory: pytest.TempPathFactory) -> PackageFolders:
    folder = tmp_path_factory.mktemp("packages")
    folders = PackageFolders(folder / "bad", folder / "sound")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
         "--no-build-isolation", "--no-compile", "--target", folders.bad, *PACKAGES.iterdir()],
        check=True,
    )  # fmt: skip
    shutil.copytree(folders.bad, folders.sound)
    for name in (*BAD_RULES, "never-ends", "never-loads"):
        (folders.sound / f"{name.replace('-', '_')}.py").write_text(SOUND_RULE_CODE.format(name=name), encoding="utf-8")
    (folders.sound / "sound.toml").write_text(build_ruleset("sound", "plain"), encoding="utf-8")
    return folders


@contextmanager
def open_installation() -> Iterator[Callable[[Path], None]]:
    """Provide a function that installs the packages of one folder instead of all others."""
    path = list(sys.path)

    def install_packages(folder: Path | None) -> None:
        patch.setattr(sys, "path", [*path, *([str(folder)] if folder else [])])
        for name in ("plain_rule", *(package.name.replace("-", "_") for package in PACKAGES.iterdir())):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        forget_rules(patch)

    with pytest.MonkeyPatch.context() as patch:
        yield install_packages
        install_packages(None)


@pytest.fixture
def install_folder() -> Iterator[Callable[[Path], None]]:
    """Yield a function that installs the packages of one folder instead of all others."""
    with open_installation() as use:
        yield use


def create_with_sound_rule(ratings: Ratings, url: str, folder: Path) -> None:
    """Create a ledger with a ruleset of a package's sound rule, published as its author does."""
    make_chess_ledger(ratings, url)
    result = ratings("rules", "publish", folder / "sound.toml", db=url)
    assert result.exit_code == 0, result


def create_with_games(ratings: Ratings, url: str, name: str, sound_url: str) -> None:
    """Create a ledger with games, a sound rule, and a rule that is still sound."""
    shutil.copyfile(str(make_url(sound_url).database), str(make_url(url).database))
    # publishing by command would try the rule again
    publish_without_trial(url, build_ruleset("bad", name))
    seats = [["anna", "ben"], ["ben", "cleo", "anna"], ["cleo", "anna=dora", "ben"]]
    games = [
        build_galactic_line(f"g-{number}", *seats[number % 3], at=f"2024-01-{number + 1:02d}T20:00Z", game="chess")
        for number in range(GAMES)
    ]
    assert record_lines(url, "".join(games)).appended == GAMES
    assert ratings("rebuild", db=url).exit_code == 0


@pytest.fixture
def create_ledger_with_rule(
    tmp_path: Path,
    package_folders: PackageFolders,
    install_folder: Callable[[Path], None],
    copy_ledger_file: Callable[..., str],
    original_files: Callable[..., str],
) -> Callable[[str], str]:
    """Return a function that creates a ledger with a rule that was sound and is broken now."""

    def create(name: str) -> str:
        install_folder(package_folders.sound)
        sound_url = original_files(create_with_sound_rule, package_folders.sound)
        db = f"sqlite:///{copy_ledger_file(create_with_games, name, sound_url)}"
        for file, rule in (("sound", "plain"), ("bad", name)):
            (tmp_path / f"{file}.toml").write_text(build_ruleset(file, rule), encoding="utf-8")
        install_folder(package_folders.bad)
        return db

    return create


# commands that change the log, and commands that read it
CHANGING_COMMANDS = [
    ("record", "--game", "chess", "--game-id", "new", "--at", "2024-02-01T20:00Z", "anna", "ben"),
    ("correct", "g-1", "--reason", "r", "anna", "ben", "cleo"),
    ("void", "g-2", "--reason", "r"),
    ("adjust", "elo-chess/all", "anna", "5", "--reason", "r", "--at", "2024-03-01T20:00Z"),
    ("player", "rename", "cleo", "chloe", "--reason", "r"),
    ("publish", "elo-chess/all"),
]
READING_COMMANDS = [
    ("ladders",), ("lists",), ("statistics", "anna"), ("export", "standings"), ("diff", "5", "now"), ("rules", "list"),
    ("rules", "show", "sound"), ("games",), ("status",), ("doctor",), ("log",),
]  # fmt: skip


def read_sound_answers(ratings: Ratings, db: str) -> dict[str, str]:
    """Return the answers about the sound ladders of every command that reads ladders."""
    answers_by_command = {}
    for ladder in SOUND_LADDERS:
        for command in ("standings", "books"):
            answers_by_command[f"{command} {ladder}"] = run_ok(ratings, command, ladder, "--format", "json", db=db)
        for command in (("history", "ben", ladder), ("explain", "g-4", ladder), ("explain", "anna", ladder)):
            answers_by_command[" ".join(command)] = run_ok(ratings, *command, "--format", "json", db=db)
    exported = ratings("export", "standings", db=db).stdout.splitlines()
    lines = [line for line in map(json.loads, exported) if line["ladder"] in SOUND_LADDERS]
    assert len(lines) == len(SOUND_LADDERS)
    answers_by_command["export"] = json.dumps(lines)
    differing_ladders = json.loads(ratings("diff", "5", "now", "--format", "json", db=db).stdout)["ladders"]
    answers_by_command["diff"] = json.dumps(
        [ladder for ladder in differing_ladders if ladder["ladder"] in SOUND_LADDERS]
    )
    rows = json.loads(run_ok(ratings, "ladders", "--format", "json", db=db))["rows"]
    answers_by_command["ladders"] = json.dumps([row for row in rows if row["ladder"] in SOUND_LADDERS])
    return answers_by_command


def run_ok(ratings: Ratings, *command: object, db: str) -> str:
    result = ratings(*command, db=db)
    assert result.exit_code == 0, (command, result)
    return str(result.stdout)


def read_stored_standings(db: str) -> list[tuple[Any, ...]]:
    """Return the live stored standings of the sound ladders."""
    with closing(sqlite3.connect(db.removeprefix("sqlite:///"))) as connection:
        rows = connection.execute("SELECT * FROM live_standings ORDER BY ladder, rank, player")
        names = [column[0] for column in rows.description]
        position = names.index("ladder")
        return [row for row in rows if row[position] in SOUND_LADDERS]


@pytest.fixture(scope="module")
def expected_without_bad_rule(
    ratings: Ratings, package_folders: PackageFolders, original_files: Callable[..., str]
) -> tuple[Any, ...]:
    """Return the answers and stored standings of the sound ladders after the changes, with only sound rules."""
    with open_installation() as use:
        use(package_folders.sound)
        db = original_files(create_with_changes, original_files(create_with_sound_rule, package_folders.sound))
        return digest_answers(read_sound_answers(ratings, db)), read_stored_standings(db)


def create_with_changes(ratings: Ratings, url: str, sound_url: str) -> None:
    """Create a ledger with games and all changes."""
    create_with_games(ratings, url, "returns-nothing", sound_url)
    for command in CHANGING_COMMANDS:
        assert ratings(*command, db=url).exit_code == 0
    assert ratings("rebuild", db=url).exit_code == 0


@pytest.mark.parametrize("name", mark_long_values(SHORT_CASES, BAD_RULES))
def test_bad_rule_leaves_sound_ladders_unchanged(
    name: str,
    ratings: Ratings,
    create_ledger_with_rule: Callable[[str], str],
    expected_without_bad_rule: tuple[Any, ...],
) -> None:
    """A bad rule is named and leaves every answer about the sound ladders unchanged.

    After games, corrections and a rebuild, the digests of the sound ladders equal those with a sound rule in its
    place, and no message calls anything a bug.
    """
    failing_call, ladder_message = BAD_RULES[name][0], LADDER_MESSAGES.get(name, "")
    db = create_ledger_with_rule(name)
    for command in CHANGING_COMMANDS:
        result = ratings(*command, db=db)
        assert (result.exit_code, "bug" in result.stderr) == (0, False), (command, result)
    for command in READING_COMMANDS:
        result = ratings(*command, db=db)
        assert (result.exit_code in (0, 1), "bug" in result.stderr) == (True, False), (command, result)
    sound_answers = read_sound_answers(ratings, db)
    rebuilt = ratings("rebuild", db=db)
    sound_rows = read_stored_standings(db)
    verified = ratings("verify", db=db)
    if failing_call in ("score", "load", "check"):
        shown, exported = ratings("standings", "bad", db=db), ratings("export", "standings", db=db)
        assert (shown.exit_code, shown.stdout) == (2 if failing_call == "load" else 1, "")
        assert (exported.exit_code, rebuilt.exit_code, verified.exit_code) == (1, 1, 1)
        for message in (shown.stderr, exported.stderr, rebuilt.stderr, verified.stdout):
            assert "bad" in message
            assert ladder_message in message
        if failing_call != "load":
            for message in (shown.stderr, exported.stderr, rebuilt.stderr):
                assert re.search(r"failed at position \d+ \(game (g-\d+|new)\): ", message), message
    else:
        assert (rebuilt.exit_code, verified.exit_code) == (0, 0), (rebuilt, verified)
    assert (digest_answers(sound_answers), sound_rows) == expected_without_bad_rule


def digest_answers(answers_by_command: dict[str, str]) -> dict[str, str]:
    """Return the answers without members that differ between ledgers: times of recording and event ids."""
    volatile = {"event_id", "recorded_at"}

    def strip_volatile(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strip_volatile(part) for key, part in value.items() if key not in volatile}
        return [strip_volatile(part) for part in value] if isinstance(value, list) else value

    return {what: json.dumps(strip_volatile(json.loads(answer))) for what, answer in answers_by_command.items()}


@pytest.mark.parametrize("name", [name for name in BAD_RULES if BAD_RULES[name][1]])
def test_bad_ruleset_is_refused_with_the_reason(
    name: str,
    ratings: Ratings,
    package_folders: PackageFolders,
    install_folder: Callable[[Path], None],
    tmp_path: Path,
    copy_ledger_file: Callable[..., str],
) -> None:
    """Checking or publishing a ruleset with a bad rule is refused with the reason."""
    install_folder(package_folders.bad)
    db = copy_ledger_file(make_chess_ledger)
    file = tmp_path / "bad.toml"
    file.write_text(build_ruleset("bad", name), encoding="utf-8")
    checked, published = ratings("rules", "check", file, db=db), ratings("rules", "publish", file, db=db)
    assert (checked.exit_code, published.exit_code) == (1, 1)
    for message in (checked.stdout, published.stderr):
        assert BAD_RULES[name][1] in message, message
        assert f"{name}/1" in message
    assert "bad" not in ratings("rules", "list", db=db).stdout


def test_failing_prediction_is_refused_alone(
    ratings: Ratings, create_ledger_with_rule: Callable[[str], str], tmp_path: Path
) -> None:
    """`whatif` reports a rule that fails only in predictions, and still measures a sound one."""
    db = create_ledger_with_rule("raises-in-chance")
    result = ratings("whatif", tmp_path / "bad.toml", db=db)
    assert result.exit_code == 0
    assert (
        "bad: the rule failed at position 4 (game g-0): IndexError: list index out of range (raises_in_chance.py"
        in result.stderr
    )
    sound = json.loads(run_ok(ratings, "whatif", tmp_path / "sound.toml", "--format", "json", db=db))
    assert sound["variants"][0]["ladders"][0]["quality"]["after"]["pairs"] > 0


def test_missing_explanation_is_reported(ratings: Ratings, create_ledger_with_rule: Callable[[str], str]) -> None:
    """`explain` reports a rule that explains nothing, while its standings still work."""
    db = create_ledger_with_rule("explains-nothing")
    result = ratings("explain", "g-1", "bad", db=db)
    assert (result.exit_code, result.stdout) == (1, "")
    message = "explain returned nothing; it must return a list of terms for each of the 3 players (explains_nothing.py"
    assert message in result.stderr
    assert ratings("standings", "bad", db=db).exit_code == 0


def test_output_of_a_rule_stays_out_of_json(
    ratings: Ratings, create_ledger_with_rule: Callable[[str], str], tmp_path: Path
) -> None:
    """The output of a rule goes to standard error and never into JSON."""
    db = create_ledger_with_rule("prints")
    result = ratings("standings", "bad", "--format", "json", db=db)
    assert json.loads(result.stdout)["games"] == GAMES
    assert "a game of 3" in result.stderr
    result = ratings("whatif", tmp_path / "bad.toml", "--format", "json", db=db)
    assert json.loads(result.stdout)["variants"]
    assert "a game of 3" in result.stderr


@pytest.mark.parametrize(
    "name", mark_long_values(SHORT_CASES, ["returns-nothing", "floats", "wrong-lengths", "overflows", "prints"])
)
def test_compiled_bad_rule_reports_the_same(
    name: str, ratings: Ratings, create_ledger_with_rule: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad rule gives the same answer and message when it is compiled for a long history."""
    db = create_ledger_with_rule(name)
    short = ratings("standings", "bad", "--format", "json", db=db)
    set_thresholds(monkeypatch, compiled_games=2)
    long = ratings("standings", "bad", "--format", "json", db=db)
    assert (long.exit_code, long.stdout) == (short.exit_code, short.stdout)
    assert LADDER_MESSAGES.get(name, "") in long.stderr
    assert ratings("standings", "sound", db=db).exit_code == 0


def test_endless_rule_fails_rebuild_after_limit(
    ratings: Ratings, create_ledger_with_rule: Callable[[str], str]
) -> None:
    """A rule that never ends fails its own ladder after the limit; a rebuild stores the others."""
    db = create_ledger_with_rule("never-ends")
    before = read_stored_standings(db)
    assert ratings("record", "-q", *CHANGING_COMMANDS[0][1:], db=db).exit_code == 0
    result = ratings("rebuild", "--rule-seconds", "1", db=db)
    assert result.exit_code == 1
    assert "ratings: bad: " in result.stderr
    assert "the rule gave no result in 1 s of processor time; --rule-seconds N allows more time" in result.stderr
    assert "5 ladders" not in result.stdout
    assert len(read_stored_standings(db)) == len(before)
    assert read_stored_standings(db) != before


def test_endless_load_fails_rebuild_after_limit(
    ratings: Ratings, create_ledger_with_rule: Callable[[str], str]
) -> None:
    """A rule that never finishes loading fails its ladder in a rebuild after the limit."""
    db = create_ledger_with_rule("never-loads")
    result = ratings("rebuild", "--rule-seconds", "1", db=db)
    assert result.exit_code == 1
    assert "the rule gave no result in 1 s of processor time" in result.stderr
    assert len(read_stored_standings(db)) > 0


@pytest.mark.parametrize("name", mark_long_values(["never-ends"], ["never-ends", "never-loads"]))
def test_verify_reports_endless_rule(
    name: str,
    ratings: Ratings,
    create_ledger_with_rule: Callable[[str], str],
    package_folders: PackageFolders,
    install_folder: Callable[[Path], None],
) -> None:
    """`verify` reports a rule that never ends after the limit and still checks everything else.

    It checks published lists and stored standings both of this rule and of sound ones.
    """
    db = create_ledger_with_rule(name)
    install_folder(package_folders.sound)
    for ladder in ("bad", *SOUND_LADDERS):
        assert ratings("publish", ladder, db=db).exit_code == 0
    # findings about the sound ladders show that they were checked
    path = db.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE generation_standings SET points = points + 1 WHERE ladder IN (?, ?)", SOUND_LADDERS)
        connection.commit()
    install_folder(package_folders.bad)
    result = ratings("verify", "--rule-seconds", "1", "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (1, "")
    findings = {(finding["code"], finding["message"]) for finding in json.loads(result.stdout)["findings"]}
    limit_message = "the rule gave no result in 1 s of processor time; --rule-seconds N allows more time"
    differ = {("standings", f"{ladder}: the stored standings differ from a replay") for ladder in SOUND_LADDERS}
    assert differ < findings
    other_findings = sorted(findings - differ)
    assert [code for code, _ in other_findings] == ["published", "rule"], other_findings
    for code, message in other_findings:
        assert "bad" in message
        assert limit_message in message, code


def test_rollback_reports_endless_rule(
    ratings: Ratings,
    create_ledger_with_rule: Callable[[str], str],
    package_folders: PackageFolders,
    install_folder: Callable[[Path], None],
) -> None:
    """A rollback to a generation whose rule never ends fails after the limit and changes nothing."""
    db = create_ledger_with_rule("never-ends")
    install_folder(package_folders.sound)
    assert ratings("rebuild", db=db).exit_code == 0
    install_folder(package_folders.bad)
    result = ratings("rebuild", "--rollback", "--rule-seconds", "1", db=db)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing was rolled back" in result.stderr
    assert "the rule gave no result in 1 s of processor time" in result.stderr


@pytest.mark.parametrize("name", mark_long_values(["never-ends"], ["never-ends", "never-loads"]))
def test_endless_rule_cannot_be_published(
    name: str,
    ratings: Ratings,
    package_folders: PackageFolders,
    install_folder: Callable[[Path], None],
    tmp_path: Path,
    copy_ledger_file: Callable[..., str],
) -> None:
    """Checking or publishing a rule that never ends or never loads is refused after the limit."""
    install_folder(package_folders.bad)
    db = copy_ledger_file(make_chess_ledger)
    file = tmp_path / "bad.toml"
    file.write_text(build_ruleset("bad", name), encoding="utf-8")
    checked = ratings("rules", "check", file, "--rule-seconds", "1", db=db)
    published = ratings("rules", "publish", file, "--rule-seconds", "1", db=db)
    assert (checked.exit_code, published.exit_code) == (1, 1)
    for message in (checked.stdout, published.stderr):
        assert "the rule gave no result in 1 s of processor time" in message


def test_waiting_rule_is_not_refused(
    ratings: Ratings,
    package_folders: PackageFolders,
    install_folder: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit counts processor time, so a sound rule that sleeps is not refused."""
    forbid_compiling(monkeypatch)  # compiling takes longer than the rule
    shutil.copytree(package_folders.sound, tmp_path / "waits")
    waits = "from time import sleep\n" + SOUND_RULE_CODE.format(name="never-ends") + "sleep(2.5)\n"
    (tmp_path / "waits" / "never_ends.py").write_text(waits, encoding="utf-8")
    install_folder(tmp_path / "waits")
    file = tmp_path / "waits.toml"
    file.write_text(build_ruleset("waits", "never-ends"), encoding="utf-8")
    checked = ratings("rules", "check", file, "--rule-seconds", "2")
    assert (checked.exit_code, checked.stderr) == (0, ""), checked.stdout
    assert "waits@1 can be published" in checked.stdout


def test_rule_without_scored_games_is_reported_as_unchecked(
    ratings: Ratings,
    package_folders: PackageFolders,
    install_folder: Callable[[Path], None],
    tmp_path: Path,
    copy_ledger_file: Callable[..., str],
) -> None:
    """For a rule that scores no drawn game, `rules check` fails and lists the untried parts; publishing notes it."""
    shutil.copytree(package_folders.sound, tmp_path / "picky")
    picky = (
        SOUND_RULE_CODE.format(name="never-ends")
        + "RULE = RULE._replace(check=lambda n, columns, params: 'never mine')\n"
    )
    (tmp_path / "picky" / "never_ends.py").write_text(picky, encoding="utf-8")
    install_folder(tmp_path / "picky")
    db = copy_ledger_file(make_chess_ledger)
    file = tmp_path / "picky.toml"
    file.write_text(build_ruleset("picky", "never-ends"), encoding="utf-8")
    checked = ratings("rules", "check", file)
    assert checked.exit_code == 1
    assert checked.stdout.splitlines() == [
        f"{file}: picky@1 was not checked: its rule scored no random game",
        "  tried on 1,000 random games (seed 1): 0 scored",
        "  not tried: the list, and all functions except check and sample",
        "  to try them, let the rule's `sample` generate games that can be scored, or pass the values of a column that "
        "random games lack: --column NAME=LOW..HIGH",
        "  1,000 not scored: never mine",
    ]
    misspelt = ratings("rules", "check", file, "--column", "plcae=1..2")
    assert misspelt.exit_code == 1
    assert (
        "--column: never-ends/1 does not read the column 'plcae'; it reads place, seats; did you mean place?"
        in misspelt.stdout
    )
    published = ratings("rules", "publish", file, db=db)
    assert published.exit_code == 0
    assert "picky.toml: the rule scored no random game" in published.stderr


@pytest.mark.parametrize("name", ["exits", "never-ends", "never-loads", "killed"])
def test_bad_rule_leaves_other_pages_unchanged(
    name: str,
    create_ledger_with_rule: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """A server shows every page of other ladders while several requests wait for a rule that never ends."""
    db = create_ledger_with_rule("exits" if name == "killed" else name)
    if name == "killed":
        monkeypatch.setattr(
            "ratings_ledger.projections.rulesets.rule_errors._exit", lambda status: os.kill(os.getpid(), signal.SIGKILL)
        )
    pages = serve(db, rule_seconds=1)
    request.addfinalizer(pages.close)
    at_once = ["/ladders/bad", "/ladders/bad?known_at=15", "/ladders/bad?known_at=14", "/", "/ladders/sound"]

    async def request_at_once() -> list[Response]:
        return await asyncio.gather(*(get_async(pages, address) for address in at_once))

    *failing, index, sound = asyncio.run(request_at_once())
    failure = {
        "exits": "os._exit(0) would end the program",
        "killed": "the rule ended its process: a worker process was killed by signal 9",
    }.get(name, "`ratings serve --rule-seconds N` allows more time")
    assert [response.status for response in failing] == [503] * 3, failing
    for response in failing:
        assert failure in html.unescape(response.text), response.text
    assert [index.status, sound.status] == [200, 200], (index, sound)
    for address in ("/ladders/elo-chess/all", "/players/ben/sound", "/games/g-1", "/games.jsonl"):
        assert get(pages, address).status == 200, address
    # for a quarter of an hour, the rule is not tried again at other coordinates
    begun = time.monotonic()
    assert get(pages, "/ladders/bad?known_at=13").status == 503
    assert time.monotonic() - begun < 1 or name == "exits"
