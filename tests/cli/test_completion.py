"""Completion: commands, options, and the names that the last command found in the ledger."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import click
import make_docs
import pytest
from completion_table import KINDS, KINDS_BY_COMMAND, find_kinds
from correction_helpers import (
    SHIPPED,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    build_game_data,
    create_ledger,
)
from hypothesis import given
from hypothesis import strategies as st

from ratings_ledger.cli.completion import stored_names
from ratings_ledger.cli.completion.bash import parse_line, quote_word
from ratings_ledger.cli.completion.completions import complete
from ratings_ledger.cli.completion.stored_names import is_up_to_date, read_names, write_names
from ratings_ledger.cli.main import ratings as program
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from tests.projections.histories import load_ladders
from tests.thresholds import set_thresholds

WORD_BREAKS = " \t\n\"'@><=;|&(:"
HASH, OTHER_HASH = bytes(32), bytes([1] * 32)


def list_completions(db: str, *typed: str) -> list[str]:
    """Return the completions of the last of the typed words."""
    completion = complete(["--db", db, *typed[:-1]], typed[-1])
    return [
        completion.kept_text + word
        for word, _ in completion.words
        if (completion.kept_text + word).startswith(typed[-1])
    ]


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger with more than 100 names: of 60 players, 20 games, rulesets, labels and ladders."""
    create_ledger(ratings, url, "catan-elo-2009-01", "catan-monthly-2008-03", "youplay-league-1")
    games = [
        build_event_line("game.recorded", f"2009-{month:02d}-05T12:00:00Z", **build_game_data(
            f"game-{month}-{n}", *(f"player {(month * 20 + n * 4 + k) % 60}" for k in range(4)),
            game="catan", group=f"group {n % 3}", city="Essen", league=f"league {n}"))
        for month in (3, 4) for n in range(10)
    ]  # fmt: skip
    append_lines(ratings, url, *games)


def find_all_names(db: str) -> dict[str, set[str]]:
    """Return the names in a ledger by command, found without the functions under test."""
    all_ladders = load_ladders(db)
    rulesets = all_ladders.facts.rulesets
    return {
        "history": all_ladders.players,
        "standings": {*replay_ladder_names(db)},
        "league show": {f"league {n}" for n in range(10)},
        "rules show": {*rulesets} | {version.ruleset.name for versions in rulesets.values() for version in versions},
        "void": {f"game-{month}-{n}" for month in (3, 4) for n in range(10)},
    }


def replay_ladder_names(db: str) -> list[str]:
    """Return the names of all ladders that a replay gives."""
    ladders = load_ladders(db)
    return sorted(name for ruleset in ladders.facts.rulesets for name in ladders.streams(ruleset))


@pytest.mark.parametrize("command", [["standings", "catan-elo/group 1"], ["import", "-"]], ids=["read", "written"])
def test_names_are_known_after_one_command(
    command: list[str],
    copy_ledger: Callable[..., str],
    ratings: Ratings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After one command that reads or writes a ledger, all of its more than 100 names are completed."""
    db = copy_ledger(create_club)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert read_names(db) == {}
    assert ratings(*command, db=db, input=build_catan_line("late", "player 1", "player 2")).exit_code == 0

    names_by_command = find_all_names(db)
    assert sum(map(len, names_by_command.values())) > 100
    for command_text, names in names_by_command.items():
        assert {name for name in names if list_completions(db, *command_text.split(), name[:5]) == []} == set(), (
            command_text
        )
        assert names <= {*list_completions(db, *command_text.split(), "")}


def test_ladder_names_are_those_of_a_replay(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """The ladder names derived from labels and months are those that a replay gives."""
    db = copy_ledger_file(create_club)
    replayed_names = replay_ladder_names(db)
    assert ratings("ladders", db=db).exit_code == 0

    assert len(replayed_names) == 9  # groups, and groups in two months
    assert read_names(db)["ladders"] == replayed_names


def test_ladder_names_of_long_history_are_the_same(
    copy_ledger_file: Callable[..., str], ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code for long histories finds the same ladder names as the code for short ones."""
    db = copy_ledger_file(create_club)
    set_thresholds(monkeypatch, numpy_games=0)
    assert ratings("ladders", db=db).exit_code == 0
    assert read_names(db)["ladders"] == replay_ladder_names(db)


COMPLETIONS = {
    "commands": (["stand"], ["standings"]),
    "commands of a group": (["rules", ""], ["check", "list", "new", "publish", "show"]),
    "options": (["standings", "--li"], ["--limit"]),
    "options after arguments": (["history", "ben", "catan-elo/basic", "--as"], ["--as-of"]),
    "no options after --": (["history", "--", "-"], ["-x"]),
    "values": (["standings", "--format", ""], ["table", "json", "csv"]),
    "values after =": (["standings", "--format=j"], ["--format=json"]),
    "an argument that a flag precedes": (["void", "--dry-run", ""], ["g-1", "g-2"]),
    "an argument that a value precedes": (["void", "--reason", "x", ""], ["g-1", "g-2"]),
    "a value without known names": (["void", "--reason", ""], []),
    "the second argument": (["correct", "g-1", "be"], ["ben"]),
    "a further player": (["record", "anna", "ben", ""], ["María José"]),
    "a side of a game": (["predict", "catan-elo/basic", "ben", "an"], ["anna"]),
    "tied players": (["record", "anna=b"], ["anna=ben"]),
    "either order": (["history", "catan-elo/basic", "be"], ["ben"]),
    "labels": (["record", "--group", ""], ["basic"]),
    "nothing more": (["books", "catan-elo/basic", ""], []),
    "an unknown command": (["standing", "x", "books"], ["books"]),
    "an unknown option": (["standings", "--nonsense", "catan"], ["catan-elo/basic"]),
}


def create_two_games(ratings: Ratings, url: str) -> None:
    """Create a ledger with two games of anna, ben and María José, and an adjustment of -x."""
    create_ledger(ratings, url, "catan-elo-2009-01")
    append_lines(ratings, url, build_catan_line("g-1", "anna", "ben"), build_catan_line("g-2", "María José", "ben"))
    assert ratings("adjust", "--reason", "x", "catan-elo/basic", "--", "-x", "5", db=url).exit_code == 0


@pytest.fixture
def used_db(copy_ledger_file: Callable[..., str], ratings: Ratings) -> str:
    """Return the ledger of `create_two_games` after one command."""
    db = copy_ledger_file(create_two_games)
    assert ratings("ladders", db=db).exit_code == 0
    return db


@pytest.mark.parametrize(("typed", "expected"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_completions_fit_the_command(typed: list[str], expected: list[str], used_db: str) -> None:
    """The completions of a word are the values that the command takes at that point of the line."""
    assert list_completions(used_db, *typed) == expected


@pytest.mark.slow
def test_capitals_are_ignored_without_exact_match(used_db: str, ratings: Ratings) -> None:
    """The start of a name is completed regardless of capitals only if no name starts exactly as typed."""
    assert run_completion(used_db, "history", "mar") == "=María José\n"
    ratings("player", "rename", "anna", "Mars", "--reason", "x", db=used_db)
    ratings("player", "rename", "ben", "mart", "--reason", "x", db=used_db)
    assert run_completion(used_db, "history", "mar") == "=mart\n"


def run_completion(db: str, *typed: str, shell: str = "fish") -> str:
    """Return the completions that a new process prints for a shell."""
    process = subprocess.run(
        [sys.executable, "-m", "ratings_ledger", *typed],
        capture_output=True,
        check=True,
        cwd=make_docs.ROOT,
        env={**os.environ, "RATINGS_DB": db, "_RATINGS_COMPLETE": f"{shell}_complete"},
    )
    assert process.stderr == b""
    return process.stdout.decode()


def test_completion_imports_little(used_db: str) -> None:
    """A completion imports neither click nor the store, and opens no ledger."""
    code = (
        "import os, sys; os._exit = sys.exit\n"
        "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from ratings_ledger.cli.start import run; run()"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, "standings", "catan"],
        capture_output=True,
        text=True,
        check=True,
        cwd=make_docs.ROOT,
        env={**os.environ, "RATINGS_DB": used_db, "_RATINGS_COMPLETE": "zsh_complete"},
    )
    loaded = {*process.stderr.split()}
    assert process.stdout == "=catan-elo/basic\n"
    assert {"ratings_ledger.cli.completion.stored_names", "ratings_ledger.ledger.own_files"} <= loaded
    libraries = {"click", "sqlalchemy", "sqlite3", "psycopg", "pydantic", "json", "pathlib"}
    modules = {"ratings_ledger.cli.main", "ratings_ledger.ledger.store", "ratings_ledger.projections"}
    assert loaded & (libraries | modules) == set()


def test_completion_table_is_up_to_date() -> None:
    """The table of commands and options equals the one generated from the commands."""
    assert make_docs.TABLE.read_text(encoding="utf-8") == make_docs.build_table(), "make docs"


# arguments without known values: new names, numbers, time zones
ARGUMENTS_WITHOUT_COMPLETION = {
    "adjust points",
    "club rename club_name",
    "club rename new_club",
    "seed values",
    "zone name",
    "player account kind",
    "undo position",
}


def list_arguments(command: click.Command, path: str) -> Iterator[tuple[str, click.Parameter]]:
    """Yield the arguments of a command and its subcommands."""
    yield from ((path, parameter) for parameter in command.params if isinstance(parameter, click.Argument))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from list_arguments(inner, f"{path} {name}")


def test_every_argument_is_completed() -> None:
    """Every argument of every command is completed, except a few without known values."""
    all_arguments = [*list_arguments(program, "ratings")]
    assert len(all_arguments) > 40
    uncompleted = {
        f"{path.removeprefix('ratings ')} {argument.name}"
        for path, argument in all_arguments
        if not find_kinds(path, argument)
    }
    assert uncompleted <= ARGUMENTS_WITHOUT_COMPLETION
    kinds = {
        kind for table in (KINDS, *KINDS_BY_COMMAND.values()) for names in table.values() for kind in names.split()
    }
    known_kinds = {
        "players",
        "ladders",
        "ids",
        "rulesets",
        "versions",
        "game",
        "group",
        "city",
        "league",
        "season",
        "file",
    }
    assert {kind for kind in kinds if not kind.startswith("=")} <= known_kinds


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_printed(shell: str, ratings: Ratings) -> None:
    """`ratings completion SHELL` and the environment variable of click print the same script."""
    script = ratings("completion", shell).stdout
    assert f"{shell}_complete" in script
    process = subprocess.run(
        [sys.executable, "-m", "ratings_ledger"],
        capture_output=True,
        check=True,
        cwd=make_docs.ROOT,
        env={**os.environ, "_RATINGS_COMPLETE": f"{shell}_source"},
    )
    assert process.stdout.decode() == script
    assert ratings("completion", shell[:-1]).exit_code == 2


def test_damaged_file_has_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of names with a changed bit or a missing end gives no names, and can be replaced."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_names("club.db", HASH, {"players": ["anna", "María José"], "ladders": []})
    (path,) = (tmp_path / "ratings-ledger" / "names").iterdir()
    content = path.read_bytes()
    assert read_names("club.db") == {"players": ["anna", "María José"], "ladders": []}
    for length in range(len(content)):
        for damaged in (content[:length], content[:length] + bytes([content[length] ^ 1]) + content[length + 1 :]):
            path.write_bytes(damaged)
            assert read_names("club.db") == {}
    path.write_bytes(b"\xff" * 100)
    write_names("club.db", HASH, {"players": ["ben"]})
    assert read_names("club.db") == {"players": ["ben"]}


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a folder"])
def test_names_are_read_only_from_a_regular_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link, pipe or folder in place of the file of names gives no names, and a pipe does not block."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_names("club.db", HASH, {"players": ["anna"]})
    (path,) = (tmp_path / "ratings-ledger" / "names").iterdir()
    path.rename(tmp_path / "elsewhere")
    if kind == "a link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert read_names("club.db") == {}


def test_unprintable_and_surplus_names_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with control characters, too long names, and all but the newest names are left out."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(stored_names, "NAMES_MAX", 3)
    bad_names = ["a\nb", "a\x1b[2J", "a\u202eb", "a\x00", "a" * 201, "", "a\u0085b"]
    write_names(
        "club.db", HASH, {"players": [*bad_names, "first", "क्‍ष", *bad_names, "two words", "it's"], "ladders": bad_names}
    )
    assert read_names("club.db") == {"players": ["क्‍ष", "two words", "it's"], "ladders": []}


def test_each_ledger_has_its_own_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names belong to the file or address of the ledger, in any spelling and with any password."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to("club.db")
    write_names("sqlite:///club.db", HASH, {"players": ["anna"]})
    write_names("postgresql://ben:secret@host/club?sslpassword=x&options=-csearch_path=a", HASH, {"players": ["ben"]})
    for address in ("club.db", f"sqlite:///{tmp_path}/club.db", "./link.db", "sqlite+pysqlite:///club.db?timeout=5"):
        assert read_names(address) == {"players": ["anna"]}
    for address in (
        "postgresql://ben@host/club?options=-csearch_path=a",
        "postgres://ben:new@host/club?options=-csearch_path=a&password=y",
    ):
        assert (address, read_names(address)) == (address, {"players": ["ben"]})
    for other_address in ("other.db", "postgresql://ben@host/club?options=-csearch_path=b", "postgresql://host/other"):
        assert read_names(other_address) == {}
    assert not any("secret" in path.name for path in tmp_path.rglob("*"))


@pytest.mark.slow_cases
def test_names_follow_the_newest_head(copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """Reading an earlier position leaves the names up to date; recording replaces them by those of the new head."""
    db = copy_ledger(create_two_games)
    ratings("standings", "catan-elo/basic", db=db)
    with open_ledger(db).reading() as connection:
        chain_hash = head(connection).chain_hash
    assert is_up_to_date(db, chain_hash)
    ratings("standings", "catan-elo/basic", "--known-at", "2", db=db)
    assert is_up_to_date(db, chain_hash)
    ratings("record", "--game", "catan", "--game-id", "g-9", "--group", "basic", "dora", "ben", db=db)
    assert not is_up_to_date(db, chain_hash)
    assert list_completions(db, "history", "do") == ["dora"]


@pytest.mark.parametrize("cache_home", ["a file", "nowhere"])
def test_command_succeeds_if_names_cannot_be_written(
    cache_home: str,
    copy_ledger_file: Callable[..., str],
    ratings: Ratings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the file of names cannot be written, the command succeeds silently."""
    (tmp_path / "a file").touch()
    if cache_home == "nowhere":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache_home))
    db = copy_ledger_file(create_two_games)
    result = ratings("standings", "catan-elo/basic", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list_completions(db, "history", "an") == []


def test_names_are_replaced_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another thread writes, a reader gets complete names, the old or the new."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    old_names, new_names = ([f"{name} {n}" for n in range(500)] for name in ("anna", "ben"))
    write_names("club.db", HASH, {"players": old_names})
    writer = Thread(target=lambda: [write_names("club.db", OTHER_HASH, {"players": new_names}) for _ in range(20)])
    writer.start()
    while writer.is_alive():
        assert read_names("club.db")["players"] in (old_names, new_names)
    assert read_names("club.db")["players"] == new_names
    assert [path.suffix for path in (tmp_path / "ratings-ledger" / "names").iterdir()] == [""]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8), st.sampled_from(["", '"', "'"]))
def test_quoted_words_are_parsed_back(name: str, quote: str) -> None:
    """A word quoted for bash is parsed as the same word, inside quotation marks and without them."""
    typed = f"ratings history {quote}{quote_word(name, quote)}"
    if quote and not typed.endswith(quote):
        typed += quote
    assert parse_line(f"{typed} ", WORD_BREAKS).words == ["history", name]


def test_shipped_rulesets_are_completed(ratings: Ratings, tmp_path: Path) -> None:
    """Shipped rulesets and rules are completed without a ledger."""
    db = str(tmp_path / "none.db")
    ids = {path.stem.rpartition("-")[0] for path in SHIPPED.glob("*-1.toml")} - {"elo"}
    assert ids <= {*list_completions(db, "rules", "publish", "--shipped", "")}
    assert list_completions(db, "rules", "new", "--rule", "pairwise") == ["pairwise-elo/1", "pairwise-elo/2"]
