"""What a shell is told: every command and option, and the names of the ledger that was used last at that place."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import click
import make_docs
import pytest
from completion_table import KINDS, OF_COMMAND, kind_of
from correction_helpers import SHIPPED, Ratings, catan, event, new_ledger, placing, take_in
from hypothesis import given
from hypothesis import strategies as st

from ratings_ledger.cli.completion import names as names_module
from ratings_ledger.cli.completion.answers import complete
from ratings_ledger.cli.completion.bash import parse_line, quote_word
from ratings_ledger.cli.completion.names import is_up_to_date, read_names, write_names
from ratings_ledger.cli.main import ratings as program
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries import ledger_names
from ratings_ledger.projections.queries.ladders_at import Ladders

BREAKS = " \t\n\"'@><=;|&(:"
HASH, OTHER = bytes(32), bytes([1] * 32)


def words(db: str, *typed: str) -> list[str]:
    """What completes the last of some words."""
    found = complete(["--db", db, *typed[:-1]], typed[-1])
    return [found.before + word for word, _ in found.words if (found.before + word).startswith(typed[-1])]


def club(ratings: Ratings, url: str) -> None:
    """Make a ledger with 100 names: 60 players, 20 games by id, of a league, and what scores them."""
    new_ledger(ratings, url, "catan-elo-2009-01", "catan-monthly-2008-03", "youplay-league-1")
    games = [
        event("game.recorded", f"2009-{month:02d}-05T12:00:00Z", **placing(
            f"game-{month}-{n}", *(f"player {(month * 20 + n * 4 + k) % 60}" for k in range(4)),
            game="catan", group=f"group {n % 3}", city="Essen", league=f"league {n}"))
        for month in (3, 4) for n in range(10)
    ]  # fmt: skip
    take_in(ratings, url, *games)


def every_name(db: str) -> dict[str, set[str]]:
    """The names in a ledger by what they are, found without the functions that are tried here."""
    with open_ledger(db).reading() as connection:
        facts = decode(connection)
        every = Ladders(facts)
        ladders = {name for one in facts.rulesets for name in every.streams(one)}
        return {
            "history": every.players, "standings": ladders, "league show": {f"league {n}" for n in range(10)},
            "rules show": {*facts.rulesets} | {one.ruleset.name for all_ in facts.rulesets.values() for one in all_},
            "void": {f"game-{month}-{n}" for month in (3, 4) for n in range(10)},
        }  # fmt: skip


@pytest.mark.parametrize("command", [["standings", "catan-elo/group 1"], ["import", "-"]], ids=["read", "written"])
def test_names_are_known_after_one_command(
    command: list[str], copied: Callable[..., str], ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a ledger of more than 100 names, one command that reads or writes it lets the shell know all of them."""
    db = copied(club)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert read_names(db) == {}
    assert ratings(*command, db=db, input=catan("late", "player 1", "player 2")).exit_code == 0

    there = every_name(db)
    assert sum(map(len, there.values())) > 100
    for told, names in there.items():
        assert {name for name in names if words(db, *told.split(), name[:5]) == []} == set(), told
        assert names <= {*words(db, *told.split(), "")}


def test_ladders_are_those_with_games(copied_file: Callable[..., str]) -> None:
    """The ladders that are known from labels and months are those that a replay finds, in bulk, too."""
    with open_ledger(copied_file(club)).reading() as connection:
        facts = decode(connection)
    every = Ladders(facts)
    there = sorted(name for one in facts.rulesets for name in every.streams(one))

    assert len(there) == 9  # groups, and groups in two months
    assert ledger_names.list_ladder_names(facts) == there


def test_ladders_in_bulk(copied_file: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In a long history the same ladders are found as in a short one."""
    with open_ledger(copied_file(club)).reading() as connection:
        facts = decode(connection)
    slowly = ledger_names.list_ladder_names(facts)
    monkeypatch.setattr(ledger_names.arrays, "LONG_HISTORY", 0)
    assert ledger_names.list_ladder_names(facts) == slowly


LINES = {
    "commands": (["stand"], ["standings"]),
    "commands of a group": (["rules", ""], ["check", "list", "new", "publish", "show"]),
    "options": (["standings", "--li"], ["--limit"]),
    "options behind arguments": (["history", "ben", "catan-elo/basic", "--as"], ["--as-of"]),
    "no options behind --": (["history", "--", "-"], ["-x"]),
    "values": (["standings", "--format", ""], ["table", "json", "csv"]),
    "values behind =": (["standings", "--format=j"], ["--format=json"]),
    "an argument that a flag precedes": (["void", "--dry-run", ""], ["g-1", "g-2"]),
    "an argument that a value precedes": (["void", "--reason", "x", ""], ["g-1", "g-2"]),
    "a value that nobody knows": (["void", "--reason", ""], []),
    "the second argument": (["correct", "g-1", "be"], ["ben"]),
    "more of the same": (["record", "anna", "ben", ""], ["María José"]),
    "a side of a game": (["predict", "catan-elo/basic", "ben", "an"], ["anna"]),
    "tied players": (["record", "anna=b"], ["anna=ben"]),
    "either order": (["history", "catan-elo/basic", "be"], ["ben"]),
    "labels": (["record", "--group", ""], ["basic"]),
    "nothing more": (["books", "catan-elo/basic", ""], []),
    "an unknown command": (["standing", "x", "books"], ["books"]),
    "an unknown option": (["standings", "--nonsense", "catan"], ["catan-elo/basic"]),
}  # fmt: skip


def two_games(ratings: Ratings, url: str) -> None:
    """Make a ledger with two games of anna, ben, María José and -x."""
    new_ledger(ratings, url, "catan-elo-2009-01")
    take_in(ratings, url, catan("g-1", "anna", "ben"), catan("g-2", "María José", "ben"))
    assert ratings("adjust", "--reason", "x", "catan-elo/basic", "--", "-x", "5", db=url).exit_code == 0


@pytest.fixture
def used(copied_file: Callable[..., str], ratings: Ratings) -> str:
    """The ledger of `two_games`, used once."""
    db = copied_file(two_games)
    assert ratings("ladders", db=db).exit_code == 0
    return db


@pytest.mark.parametrize(("typed", "expected"), LINES.values(), ids=LINES)
def test_words_are_those_that_may_follow(typed: list[str], expected: list[str], used: str) -> None:
    """What completes a word is what the command takes there."""
    assert words(used, *typed) == expected


@pytest.mark.slow
def test_other_capitals_are_forgiven(used: str, ratings: Ratings) -> None:
    """A beginning in other capitals is completed if there is none in these."""
    assert told(used, "history", "mar") == "=María José\n"
    ratings("player", "rename", "anna", "Mars", "--reason", "x", db=used)
    ratings("player", "rename", "ben", "mart", "--reason", "x", db=used)
    assert told(used, "history", "mar") == "=mart\n"


def told(db: str, *typed: str, shell: str = "fish") -> str:
    """What a new process tells a shell."""
    done = subprocess.run(
        [sys.executable, "-m", "ratings_ledger", *typed], capture_output=True, check=True,
        cwd=make_docs.ROOT, env={**os.environ, "RATINGS_DB": db, "_RATINGS_COMPLETE": f"{shell}_complete"},
    )  # fmt: skip
    assert done.stderr == b""
    return done.stdout.decode()


def test_answers_load_nothing_of_the_program(used: str) -> None:
    """An answer imports neither click nor the store, and needs no ledger."""
    code = (
        "import os, sys; os._exit = sys.exit\n"
        "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from ratings_ledger.cli.start import run; run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "standings", "catan"], capture_output=True, text=True, check=True,
        cwd=make_docs.ROOT,
        env={**os.environ, "RATINGS_DB": used, "_RATINGS_COMPLETE": "zsh_complete"},
    )  # fmt: skip
    loaded = {*done.stderr.split()}
    assert done.stdout == "=catan-elo/basic\n"
    assert {"ratings_ledger.cli.completion.names", "ratings_ledger.ledger.own_files"} <= loaded
    assert (
        loaded & {"click", "sqlalchemy", "pydantic", "json", "pathlib", "projections", "ratings_ledger.cli.main"}
        == set()
    )


def test_table_follows_from_the_commands() -> None:
    """The table of commands and options is the one that the commands give."""
    assert make_docs.TABLE.read_text(encoding="utf-8") == make_docs.table(), "make docs"


# what no file of names can hold: what is new, a number, a time zone
FREE = {
    "adjust points",
    "club rename club_name",
    "club rename new_club",
    "seed values",
    "zone name",
    "player account kind",
    "undo position",
}


def arguments(command: click.Command, path: str) -> Iterator[tuple[str, click.Parameter]]:
    """The arguments of all commands."""
    yield from ((path, one) for one in command.params if isinstance(one, click.Argument))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from arguments(inner, f"{path} {name}")


def test_every_argument_is_completed() -> None:
    """Every argument of every command has something that completes it, a few that nobody knows apart."""
    every = [*arguments(program, "ratings")]
    assert len(every) > 40
    idle = {f"{path.removeprefix('ratings ')} {one.name}" for path, one in every if not kind_of(path, one)}
    assert idle <= FREE
    kinds = {kind for table in (KINDS, *OF_COMMAND.values()) for one in table.values() for kind in one.split()}
    known = {"players", "ladders", "ids", "rulesets", "versions", "game", "group", "city", "league", "season", "file"}
    assert {kind for kind in kinds if not kind.startswith("=")} <= known


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_printed(shell: str, ratings: Ratings) -> None:
    """The command prints the script of each shell, and so does the variable that other programs of this kind have."""
    script = ratings("completion", shell).stdout
    assert f"{shell}_complete" in script
    done = subprocess.run(
        [sys.executable, "-m", "ratings_ledger"], capture_output=True, check=True, cwd=make_docs.ROOT,
        env={**os.environ, "_RATINGS_COMPLETE": f"{shell}_source"},
    )  # fmt: skip
    assert done.stdout.decode() == script
    assert ratings("completion", shell[:-1]).exit_code == 2


def test_damaged_file_has_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of names of which a byte changed, or the end is missing, has no names, and is then written anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_names("club.db", HASH, {"players": ["anna", "María José"], "ladders": []})
    (path,) = (tmp_path / "ratings-ledger" / "names").iterdir()
    whole = path.read_bytes()
    assert read_names("club.db") == {"players": ["anna", "María José"], "ladders": []}
    for at in range(len(whole)):
        for content in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            path.write_bytes(content)
            assert read_names("club.db") == {}
    path.write_bytes(b"\xff" * 100)
    write_names("club.db", HASH, {"players": ["ben"]})
    assert read_names("club.db") == {"players": ["ben"]}


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a folder"])
def test_only_an_own_file_is_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link, a pipe or a folder in place of the file has no names; nobody waits for the other end of a pipe."""
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


def test_names_that_are_none_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would move a cursor or end a line is left out, and so are names that are too long, and all but the last."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(names_module, "NAMES_MAX", 3)
    bad = ["a\nb", "a\x1b[2J", "a\u202eb", "a\x00", "a" * 201, "", "a\u0085b"]
    write_names("club.db", HASH, {"players": [*bad, "first", "क्‍ष", *bad, "two words", "it's"], "ladders": bad})
    assert read_names("club.db") == {"players": ["क्‍ष", "two words", "it's"], "ladders": []}


def test_each_place_has_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are those of the file or address, however it is written; a password makes no difference."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to("club.db")
    write_names("sqlite:///club.db", HASH, {"players": ["anna"]})
    write_names("postgresql://ben:secret@host/club?sslpassword=x&options=-csearch_path=a", HASH, {"players": ["ben"]})
    for same in ("club.db", f"sqlite:///{tmp_path}/club.db", "./link.db", "sqlite+pysqlite:///club.db?timeout=5"):
        assert read_names(same) == {"players": ["anna"]}
    for same in (
        "postgresql://ben@host/club?options=-csearch_path=a",
        "postgres://ben:new@host/club?options=-csearch_path=a&password=y",
    ):
        assert (same, read_names(same)) == (same, {"players": ["ben"]})
    for other in ("other.db", "postgresql://ben@host/club?options=-csearch_path=b", "postgresql://host/other"):
        assert read_names(other) == {}
    assert not any("secret" in path.name for path in tmp_path.rglob("*"))


@pytest.mark.slow_cases
def test_only_the_newest_names_are_kept(copied: Callable[..., str], ratings: Ratings) -> None:
    """A question about an earlier position changes nothing, and a copy of the ledger has its own names."""
    db = copied(two_games)
    ratings("standings", "catan-elo/basic", db=db)
    with open_ledger(db).reading() as connection:
        chain_hash = head(connection).chain_hash
    assert is_up_to_date(db, chain_hash)
    ratings("standings", "catan-elo/basic", "--known-at", "2", db=db)
    assert is_up_to_date(db, chain_hash)
    ratings("record", "--game", "catan", "--game-id", "g-9", "--group", "basic", "dora", "ben", db=db)
    assert not is_up_to_date(db, chain_hash)
    assert words(db, "history", "do") == ["dora"]


@pytest.mark.parametrize("place", ["a file", "nowhere"])
def test_names_that_cannot_be_kept(
    place: str, copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no file of names can be written, the command does what it does, and says nothing."""
    (tmp_path / "a file").touch()
    if place == "nowhere":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / place))
    db = copied_file(two_games)
    done = ratings("standings", "catan-elo/basic", db=db)
    assert (done.exit_code, done.stderr) == (0, "")
    assert words(db, "history", "an") == []


def test_names_are_replaced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While several write, whoever reads finds the names of one of them, whole."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    both = [[f"{one} {n}" for n in range(500)] for one in ("anna", "ben")]
    write_names("club.db", HASH, {"players": both[0]})
    writers = [Thread(target=lambda every=every: [write_names("club.db", OTHER, {"players": every}) for _ in range(20)])
               for every in both[1:]]  # fmt: skip
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert read_names("club.db")["players"] in both
    assert [path.suffix for path in (tmp_path / "ratings-ledger" / "names").iterdir()] == [""]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8), st.sampled_from(["", '"', "'"]))
def test_quoted_words_are_read_back(name: str, quote: str) -> None:
    """A word that is quoted for bash is read as that word, within a quotation mark and without one."""
    typed = f"ratings history {quote}{quote_word(name, quote)}"
    if quote and not typed.endswith(quote):
        typed += quote
    assert parse_line(f"{typed} ", BREAKS).words == ["history", name]


def test_all_of_the_shipped_rulesets_are_named(ratings: Ratings, tmp_path: Path) -> None:
    """The shipped rulesets and the rules are completed without a ledger."""
    db = str(tmp_path / "none.db")
    ids = {path.stem.rpartition("-")[0] for path in SHIPPED.glob("*-1.toml")} - {"elo"}
    assert ids <= {*words(db, "rules", "publish", "--shipped", "")}
    assert words(db, "rules", "new", "--rule", "pairwise") == ["pairwise-elo/1", "pairwise-elo/2"]
