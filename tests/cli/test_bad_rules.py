"""Bad rules as packages, installed: each stops its own ladders, by name, and every other ladder stays as it is.

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
from asking import TimelineEntry, asked, get, serve
from correction_helpers import galactic
from lengths import mark_long_values
from own_rules import forbid_compiling, forget_rules, publish_without_trial
from sqlalchemy import make_url
from stores import make_chess_ledger, record_lines
from thresholds import set_thresholds

pytestmark = pytest.mark.slow  # all share what is installed once

Ratings = Callable[..., Any]
PACKAGES = Path(__file__).parents[1] / "bad_rules"
GAMES = 12
SOUND = ("elo-chess/all", "sound")
STAND_IN = """from plain_rule import RULE as PLAIN

RULE = PLAIN._replace(name="{name}")
"""
# what each does wrong: how its ladder fails, and what `rules check` says of it
BAD = {
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
    "remembers": ("nowhere", "for the same game (remembers.py, line 8), at drawn game 1"),
}  # fmt: skip
# one of each way to fail
SHORT = ("exits", "returns-nothing", "unknown-list", "raises-in-chance", "explains-nothing", "prints")

# what its ladder says of the rule, with the line
WHERE = {
    "returns-nothing": "score returned nothing; a whole number is needed (returns_nothing.py, line 6)",
    "floats": "cannot be interpreted as an integer (floats.py, line 10)",
    "wrong-lengths": "array assignment index out of range (wrong_lengths.py, line 8)",
    "overflows": "the points grow out of bounds",
    "leaves": "SystemExit: a rule has had enough (leaves.py, line 9)",
    "exits": "SystemExit: os._exit(0) would end the program (exits.py, line 9)",
}


def ruleset(name: str, rule: str) -> str:
    return f'id = "{name}"\nversion = "1"\nrule = "{rule}/1"\neffective_from = 2000-01-01\n[scope]\ngame = ["chess"]\n'


class Place(NamedTuple):
    """Folders with packages: as they are, and with sound rules in place of all bad ones."""

    bad: Path
    sound: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("packages")
    found = Place(folder / "bad", folder / "sound")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
         "--no-build-isolation", "--no-compile", "--target", found.bad, *PACKAGES.iterdir()],
        check=True,
    )  # fmt: skip
    shutil.copytree(found.bad, found.sound)
    for name in (*BAD, "never-ends", "never-loads"):
        (found.sound / f"{name.replace('-', '_')}.py").write_text(STAND_IN.format(name=name), encoding="utf-8")
    (found.sound / "sound.toml").write_text(ruleset("sound", "plain"), encoding="utf-8")
    return found


@contextmanager
def installing() -> Iterator[Callable[[Path], None]]:
    """A function that makes the packages of a folder, and no others, those that are installed."""
    path = list(sys.path)

    def use(folder: Path | None) -> None:
        patch.setattr(sys, "path", [*path, *([str(folder)] if folder else [])])
        for name in ("plain_rule", *(package.name.replace("-", "_") for package in PACKAGES.iterdir())):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        forget_rules(patch)

    with pytest.MonkeyPatch.context() as patch:
        yield use
        use(None)


@pytest.fixture
def installed() -> Iterator[Callable[[Path], None]]:
    """The same for a test."""
    with installing() as use:
        yield use


def with_sound_rule(ratings: Ratings, url: str, folder: Path) -> None:
    """Make a ledger with a ruleset of a package's sound rule, which is published as its author does it."""
    make_chess_ledger(ratings, url)
    published = ratings("rules", "publish", folder / "sound.toml", db=url)
    assert published.exit_code == 0, published


def with_games(ratings: Ratings, url: str, name: str, sound_url: str) -> None:
    """Make a ledger with games and, beside a sound rule, one that is sound as yet."""
    shutil.copyfile(str(make_url(sound_url).database), str(make_url(url).database))
    # a rule from a package is tried before a command publishes it: once is enough
    publish_without_trial(url, ruleset("bad", name))
    seats = [["anna", "ben"], ["ben", "cleo", "anna"], ["cleo", "anna=dora", "ben"]]
    games = [galactic(f"g-{number}", *seats[number % 3], at=f"2024-01-{number + 1:02d}T20:00Z", game="chess")
             for number in range(GAMES)]  # fmt: skip
    assert record_lines(url, "".join(games)).appended == GAMES
    assert ratings("rebuild", db=url).exit_code == 0


@pytest.fixture
def ledger(
    tmp_path: Path, place: Place, installed: Callable[[Path], None], copied_file: Callable[..., str],
    original_files: Callable[..., str],
) -> Callable[[str], str]:  # fmt: skip
    """A function that makes a ledger with a rule that was sound."""

    def make(name: str) -> str:
        installed(place.sound)
        sound_url = original_files(with_sound_rule, place.sound)
        db = f"sqlite:///{copied_file(with_games, name, sound_url)}"
        for file, rule in (("sound", "plain"), ("bad", name)):
            (tmp_path / f"{file}.toml").write_text(ruleset(file, rule), encoding="utf-8")
        installed(place.bad)
        return db

    return make


# changes of the log, and questions about it
CHANGES = [
    ("record", "--game", "chess", "--game-id", "new", "--at", "2024-02-01T20:00Z", "anna", "ben"),
    ("correct", "g-1", "--reason", "r", "anna", "ben", "cleo"),
    ("void", "g-2", "--reason", "r"),
    ("adjust", "elo-chess/all", "anna", "5", "--reason", "r", "--at", "2024-03-01T20:00Z"),
    ("player", "rename", "cleo", "chloe", "--reason", "r"),
    ("publish", "elo-chess/all"),
]
MANY = [
    ("ladders",), ("lists",), ("statistics", "anna"), ("export", "standings"), ("diff", "5", "now"), ("rules", "list"),
    ("rules", "show", "sound"), ("games",), ("status",), ("doctor",), ("log",),
]  # fmt: skip


def answers(ratings: Ratings, db: str) -> dict[str, str]:
    """What is said of the sound ladders, by every command that says something of ladders."""
    found = {}
    for ladder in SOUND:
        for command in ("standings", "books"):
            found[f"{command} {ladder}"] = ok(ratings, command, ladder, "--format", "json", db=db)
        for command in (("history", "ben", ladder), ("explain", "g-4", ladder), ("explain", "anna", ladder)):
            found[" ".join(command)] = ok(ratings, *command, "--format", "json", db=db)
    exported = ratings("export", "standings", db=db).stdout.splitlines()
    lines = [line for line in map(json.loads, exported) if line["ladder"] in SOUND]
    assert len(lines) == len(SOUND)
    found["export"] = json.dumps(lines)
    differing = json.loads(ratings("diff", "5", "now", "--format", "json", db=db).stdout)["ladders"]
    found["diff"] = json.dumps([one for one in differing if one["ladder"] in SOUND])
    listed = json.loads(ok(ratings, "ladders", "--format", "json", db=db))["rows"]
    found["ladders"] = json.dumps([row for row in listed if row["ladder"] in SOUND])
    return found


def ok(ratings: Ratings, *command: object, db: str) -> str:
    done = ratings(*command, db=db)
    assert done.exit_code == 0, (command, done)
    return str(done.stdout)


def stored(db: str) -> list[tuple[Any, ...]]:
    """The standings of the sound ladders that are live."""
    with closing(sqlite3.connect(db.removeprefix("sqlite:///"))) as connection:
        rows = connection.execute("SELECT * FROM live_standings ORDER BY ladder, rank, player")
        names = [column[0] for column in rows.description]
        position = names.index("ladder")
        return [row for row in rows if row[position] in SOUND]


@pytest.fixture(scope="module")
def without_bad(ratings: Ratings, place: Place, original_files: Callable[..., str]) -> tuple[Any, ...]:
    """What is said and stored of the sound ladders after the changes if no rule is bad."""
    with installing() as use:
        use(place.sound)
        db = original_files(with_changes, original_files(with_sound_rule, place.sound))
        return digests(answers(ratings, db)), stored(db)


def with_changes(ratings: Ratings, url: str, sound_url: str) -> None:
    """Make a ledger with games and all changes."""
    with_games(ratings, url, "returns-nothing", sound_url)
    for command in CHANGES:
        assert ratings(*command, db=url).exit_code == 0
    assert ratings("rebuild", db=url).exit_code == 0


@pytest.mark.parametrize("name", mark_long_values(SHORT, BAD))
def test_bad_rule_leaves_sound_ladders_alone(
    name: str, ratings: Ratings, ledger: Callable[[str], str], without_bad: tuple[Any, ...]
) -> None:
    """A bad rule is named and leaves every answer about the sound ladders unchanged.

    After games, corrections and a rebuild, the digests of the sound ladders are the same as with a
    sound rule in its place, and nothing is called a bug.
    """
    fails, where = BAD[name][0], WHERE.get(name, "")
    db = ledger(name)
    for command in CHANGES:
        done = ratings(*command, db=db)
        assert (done.exit_code, "bug" in done.stderr) == (0, False), (command, done)
    for command in MANY:
        done = ratings(*command, db=db)
        assert (done.exit_code in (0, 1), "bug" in done.stderr) == (True, False), (command, done)
    mine = answers(ratings, db)
    rebuilt = ratings("rebuild", db=db)
    mine_stored = stored(db)
    verified = ratings("verify", db=db)
    if fails in ("score", "load", "check"):
        asked, exported = ratings("standings", "bad", db=db), ratings("export", "standings", db=db)
        assert (asked.exit_code, asked.stdout) == (2 if fails == "load" else 1, "")
        assert (exported.exit_code, rebuilt.exit_code, verified.exit_code) == (1, 1, 1)
        for told in (asked.stderr, exported.stderr, rebuilt.stderr, verified.stdout):
            assert "bad" in told
            assert where in told
        if fails != "load":
            for told in (asked.stderr, exported.stderr, rebuilt.stderr):
                assert re.search(r"failed at position \d+ \(game (g-\d+|new)\): ", told), told
    else:
        assert (rebuilt.exit_code, verified.exit_code) == (0, 0), (rebuilt, verified)
    assert (digests(mine), mine_stored) == without_bad


def digests(told: dict[str, str]) -> dict[str, str]:
    """Answers without what differs from ledger to ledger: when something was recorded, and under which id."""
    volatile = {"event_id", "recorded_at"}

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cleaned(part) for key, part in value.items() if key not in volatile}
        return [cleaned(part) for part in value] if isinstance(value, list) else value

    return {what: json.dumps(cleaned(json.loads(answer))) for what, answer in told.items()}


@pytest.mark.parametrize("name", [name for name in BAD if BAD[name][1]])
def test_bad_ruleset_is_refused_with_reason(
    name: str, ratings: Ratings, place: Place, installed: Callable[[Path], None], tmp_path: Path,
    copied_file: Callable[..., str],
) -> None:  # fmt: skip
    """Checking or publishing a ruleset with a bad rule is refused with the reason."""
    installed(place.bad)
    db = copied_file(make_chess_ledger)
    file = tmp_path / "bad.toml"
    file.write_text(ruleset("bad", name), encoding="utf-8")
    checked, published = ratings("rules", "check", file, db=db), ratings("rules", "publish", file, db=db)
    assert (checked.exit_code, published.exit_code) == (1, 1)
    for told in (checked.stdout, published.stderr):
        assert BAD[name][1] in told, told
        assert f"{name}/1" in told
    assert "bad" not in ratings("rules", "list", db=db).stdout


def test_failing_prediction_is_refused_alone(ratings: Ratings, ledger: Callable[[str], str], tmp_path: Path) -> None:
    """`whatif` reports a rule that fails only when it predicts, and still measures a sound one."""
    db = ledger("raises-in-chance")
    asked = ratings("whatif", tmp_path / "bad.toml", db=db)
    assert asked.exit_code == 0
    assert (
        "bad: the rule failed at position 4 (game g-0): IndexError: list index out of range (raises_in_chance.py"
        in asked.stderr
    )
    sound = json.loads(ok(ratings, "whatif", tmp_path / "sound.toml", "--format", "json", db=db))
    assert sound["variants"][0]["ladders"][0]["quality"]["after"]["pairs"] > 0


def test_missing_explanation_is_reported(ratings: Ratings, ledger: Callable[[str], str]) -> None:
    """`explain` reports a rule that explains nothing, while its standings still work."""
    db = ledger("explains-nothing")
    told = ratings("explain", "g-1", "bad", db=db)
    assert (told.exit_code, told.stdout) == (1, "")
    message = "explain returned nothing; it must return a list of terms for each of the 3 players (explains_nothing.py"
    assert message in told.stderr
    assert ratings("standings", "bad", db=db).exit_code == 0


def test_rule_output_stays_out_of_json(ratings: Ratings, ledger: Callable[[str], str], tmp_path: Path) -> None:
    """What a rule prints goes to standard error and never into the JSON of an answer."""
    db = ledger("prints")
    told = ratings("standings", "bad", "--format", "json", db=db)
    assert json.loads(told.stdout)["games"] == GAMES
    assert "a game of 3" in told.stderr
    told = ratings("whatif", tmp_path / "bad.toml", "--format", "json", db=db)
    assert json.loads(told.stdout)["variants"]
    assert "a game of 3" in told.stderr


@pytest.mark.parametrize(
    "name", mark_long_values(SHORT, ["returns-nothing", "floats", "wrong-lengths", "overflows", "prints"])
)
def test_compiled_bad_rule_reports_the_same(
    name: str, ratings: Ratings, ledger: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad rule gives the same answer when it is compiled for a long history."""
    db = ledger(name)
    short = ratings("standings", "bad", "--format", "json", db=db)
    set_thresholds(monkeypatch, compiled_games=2)
    long = ratings("standings", "bad", "--format", "json", db=db)
    assert (long.exit_code, long.stdout) == (short.exit_code, short.stdout)
    assert WHERE.get(name, "") in long.stderr
    assert ratings("standings", "sound", db=db).exit_code == 0


def test_endless_rule_fails_rebuild_after_limit(ratings: Ratings, ledger: Callable[[str], str]) -> None:
    """A rule that never ends fails its own ladder after the limit; a rebuild stores the others."""
    db = ledger("never-ends")
    before = stored(db)
    assert ratings("record", "-q", *CHANGES[0][1:], db=db).exit_code == 0
    told = ratings("rebuild", "--rule-seconds", "1", db=db)
    assert told.exit_code == 1
    assert "ratings: bad: " in told.stderr
    assert "the rule gave no result in 1 s of processor time; --rule-seconds N allows more time" in told.stderr
    assert "5 ladders" not in told.stdout
    assert len(stored(db)) == len(before)
    assert stored(db) != before


def test_endless_load_fails_rebuild_after_limit(ratings: Ratings, ledger: Callable[[str], str]) -> None:
    """A rule that never finishes loading fails its ladder in a rebuild after the limit."""
    db = ledger("never-loads")
    told = ratings("rebuild", "--rule-seconds", "1", db=db)
    assert told.exit_code == 1
    assert "the rule gave no result in 1 s of processor time" in told.stderr
    assert len(stored(db)) > 0


@pytest.mark.parametrize("name", mark_long_values(["never-ends"], ["never-ends", "never-loads"]))
def test_verify_reports_endless_rule(
    name: str, ratings: Ratings, ledger: Callable[[str], str], place: Place, installed: Callable[[Path], None]
) -> None:
    """`verify` reports a rule that never ends after the limit and still checks everything else.

    It checks published lists and stored standings both of this rule and of sound ones.
    """
    db = ledger(name)
    installed(place.sound)
    for ladder in ("bad", *SOUND):
        assert ratings("publish", ladder, db=db).exit_code == 0
    # what is told of sound ladders shows that they were looked at
    path = db.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE generation_standings SET points = points + 1 WHERE ladder IN (?, ?)", SOUND)
        connection.commit()
    installed(place.bad)
    told = ratings("verify", "--rule-seconds", "1", "--format", "json", db=db)
    assert (told.exit_code, told.stderr) == (1, "")
    found = {(one["code"], one["message"]) for one in json.loads(told.stdout)["findings"]}
    lost = "the rule gave no result in 1 s of processor time; --rule-seconds N allows more time"
    differ = {("standings", f"{ladder}: the stored standings differ from a replay") for ladder in SOUND}
    assert differ < found
    rest = sorted(found - differ)
    assert [code for code, _ in rest] == ["published", "rule"], rest
    for code, message in rest:
        assert "bad" in message
        assert lost in message, code


def test_rollback_reports_endless_rule(
    ratings: Ratings, ledger: Callable[[str], str], place: Place, installed: Callable[[Path], None]
) -> None:
    """A rollback to a generation whose rule never ends says so after the limit and does nothing."""
    db = ledger("never-ends")
    installed(place.sound)
    assert ratings("rebuild", db=db).exit_code == 0
    installed(place.bad)
    told = ratings("rebuild", "--rollback", "--rule-seconds", "1", db=db)
    assert (told.exit_code, told.stdout) == (1, "")
    assert "nothing was rolled back" in told.stderr
    assert "the rule gave no result in 1 s of processor time" in told.stderr


@pytest.mark.parametrize("name", mark_long_values(["never-ends"], ["never-ends", "never-loads"]))
def test_endless_rule_cannot_be_published(
    name: str, ratings: Ratings, place: Place, installed: Callable[[Path], None], tmp_path: Path,
    copied_file: Callable[..., str],
) -> None:  # fmt: skip
    """Checking or publishing a rule that never ends or never loads is refused after the limit."""
    installed(place.bad)
    db = copied_file(make_chess_ledger)
    file = tmp_path / "bad.toml"
    file.write_text(ruleset("bad", name), encoding="utf-8")
    checked = ratings("rules", "check", file, "--rule-seconds", "1", db=db)
    published = ratings("rules", "publish", file, "--rule-seconds", "1", db=db)
    assert (checked.exit_code, published.exit_code) == (1, 1)
    for told in (checked.stdout, published.stderr):
        assert "the rule gave no result in 1 s of processor time" in told


def test_sound_rule_is_not_refused_for_waiting(
    ratings: Ratings, place: Place, installed: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit counts processor time, so that a machine that lets a sound rule wait does not refuse it."""
    forbid_compiling(monkeypatch)  # compiling takes longer than the rule
    shutil.copytree(place.sound, tmp_path / "waits")
    waits = "from time import sleep\n" + STAND_IN.format(name="never-ends") + "sleep(2.5)\n"
    (tmp_path / "waits" / "never_ends.py").write_text(waits, encoding="utf-8")
    installed(tmp_path / "waits")
    file = tmp_path / "waits.toml"
    file.write_text(ruleset("waits", "never-ends"), encoding="utf-8")
    checked = ratings("rules", "check", file, "--rule-seconds", "2")
    assert (checked.exit_code, checked.stderr) == (0, ""), checked.stdout
    assert "waits@1 can be published" in checked.stdout


def test_rule_without_a_scored_game_is_not_called_checked(
    ratings: Ratings, place: Place, installed: Callable[[Path], None], tmp_path: Path,
    copied_file: Callable[..., str],
) -> None:  # fmt: skip
    """A rule that scores no drawn game is not checked: `rules check` says what was not tried, as does publishing it."""
    shutil.copytree(place.sound, tmp_path / "picky")
    picky = STAND_IN.format(name="never-ends") + "RULE = RULE._replace(check=lambda n, columns, params: 'never mine')\n"
    (tmp_path / "picky" / "never_ends.py").write_text(picky, encoding="utf-8")
    installed(tmp_path / "picky")
    db = copied_file(make_chess_ledger)
    file = tmp_path / "picky.toml"
    file.write_text(ruleset("picky", "never-ends"), encoding="utf-8")
    checked = ratings("rules", "check", file)
    assert checked.exit_code == 1
    assert checked.stdout.splitlines() == [
        f"{file}: picky@1 is not checked: no drawn game was scored",
        "  tried on 1,000 drawn games (seed 1): 0 scored",
        "  not tried: its score, explain, remark and chance, and its list",
        "  to try it, give the rule a sample, or a column that drawn games lack: --column NAME=LOW..HIGH",
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
    assert "picky.toml: the rule was not tried on drawn games" in published.stderr


@pytest.mark.parametrize("name", ["exits", "never-ends", "never-loads", "killed"])
def test_bad_rule_leaves_other_pages_alone(
    name: str, ledger: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A server shows every page of other ladders, however many ask at once for that of a rule that never ends."""
    db = ledger("exits" if name == "killed" else name)
    if name == "killed":
        monkeypatch.setattr(
            "ratings_ledger.projections.rulesets.rule_errors._exit", lambda status: os.kill(os.getpid(), signal.SIGKILL)
        )
    pages = serve(db, rule_seconds=1)
    request.addfinalizer(pages.close)
    at_once = ["/ladders/bad", "/ladders/bad?known_at=15", "/ladders/bad?known_at=14", "/", "/ladders/sound"]

    async def ask_at_once() -> list[TimelineEntry]:
        return await asyncio.gather(*(asked(pages, address) for address in at_once))

    *failing, index, sound = asyncio.run(ask_at_once())
    lost = {
        "exits": "os._exit(0) would end the program",
        "killed": "the rule ended its process: a worker process was killed by signal 9",
    }.get(name, "`ratings serve --rule-seconds N` allows more time")
    assert [told.status for told in failing] == [503] * 3, failing
    for told in failing:
        assert lost in html.unescape(told.text), told.text
    assert [index.status, sound.status] == [200, 200], (index, sound)
    for address in ("/ladders/elo-chess/all", "/players/ben/sound", "/games/g-1", "/games.jsonl"):
        assert get(pages, address).status == 200, address
    # it is not tried again at other coordinates, until the next quarter of an hour
    begun = time.monotonic()
    assert get(pages, "/ladders/bad?known_at=13").status == 503
    assert time.monotonic() - begun < 1 or name == "exits"
