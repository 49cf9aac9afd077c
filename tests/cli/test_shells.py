"""Completion in real shells: typed beginnings become the intended names, and no part of a name is executed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from correction_helpers import Ratings, append_lines, build_catan_line, create_ledger
from shells import SHELLS, Typist, is_installed, open_shell

ShellUser = tuple[str, Path, Typist]  # the shell, its folder, and its user
# each name has its own first two letters
HOSTILE = {
    "a command": "aa$(touch pwned)", "the old form": "bb`touch pwned`", "an end": "cc;touch pwned;",
    "quotes": "dd it's \"so\"", "single quotes": "ee 'so'", "stars": "ff*?[a]", "a backslash": "gg\\n\\",
    "history": "hh!!", "a comment": "ii #x", "braces": "jj{a,b}", "a variable": "kk$HOME ${HOME}", "a job": "mm&",
    "redirections": "ll>pwned<x|tee x", "a colon": "nn:b:c", "scripts": "oo 美咲 Łukasz", "blanks": "pp  two  blanks",
    "a tilde": "qq ~ %s", "parentheses": "rr(x)^y",
}  # fmt: skip


def create_hostile_club(ratings: Ratings, url: str) -> None:
    """Create a ledger with players of these names, ben and María José."""
    create_ledger(ratings, url)
    players = [*HOSTILE.values(), "María José", "ben"]
    append_lines(
        ratings,
        url,
        *(build_catan_line(f"g-{n}", player, "ben") for n, player in enumerate(players) if player != "ben"),
    )
    assert ratings("standings", "catan-elo/basic", db=url).exit_code == 0


@pytest.fixture(scope="module", params=SHELLS)
def typist(
    request: pytest.FixtureRequest, original_files: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ShellUser]:
    """Yield each shell in turn, with its folder and its user."""
    if not is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "season.csv").touch()
    with open_shell(request.param, folder, original_files(create_hostile_club)) as person:
        yield request.param, folder, person


COMPLETIONS = {
    "a command": ("ratings stand", ["standings"]),
    "a command of a group": ("ratings rules publ", ["rules", "publish"]),
    "an option": ("ratings standings --lim", ["standings", "--limit"]),
    "a value": ("ratings standings --format js", ["standings", "--format", "json"]),
    "a value after =": ("ratings games --game=cat", ["games", "--game=catan"]),
    "a ladder": ("ratings standings catan-e", ["standings", "catan-elo/basic"]),
    "a player": ("ratings history be", ["history", "ben"]),
    "a player in lower case": ("ratings history mar", ["history", "María José"]),
    "a player in quotes": ('ratings history "Mar', ["history", "María José"]),
    "a player in single quotes": ("ratings history 'Mar", ["history", "María José"]),
    "a tied player": ("ratings record ben=Mar", ["record", "ben=María José"]),
    "a ruleset": ("ratings rules show galactic-points@", ["rules", "show", "galactic-points@1"]),
    "a file": ("ratings import seas", ["import", "season.csv"]),
}


@pytest.mark.parametrize(("line", "words"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_shells_complete_typed_words(line: str, words: list[str], typist: ShellUser) -> None:
    """The beginning of a word and Tab give the intended word."""
    assert typist[2].complete(line) == ["ratings", *words]


@pytest.mark.slow
@pytest.mark.parametrize("quote", ["", '"', "'"], ids=["plain", "double quotes", "single quotes"])
def test_hostile_names_complete_without_being_executed(quote: str, typist: ShellUser, at_length: bool) -> None:
    """A name with characters that a shell would execute is completed to itself, and nothing is executed."""
    shell, folder, person = typist
    if quote and shell != "bash" and not at_length:
        pytest.skip("at length")  # words for bash are quoted by this program, all others by the shell
    for name in HOSTILE.values():
        assert person.complete(f"ratings history {quote}{name[:2]}") == ["ratings", "history", name]
    assert sorted(path.name for path in folder.iterdir() if path.name in ("pwned", "x")) == []
