"""A ladder need not be named where there is only one; of several, the command lists them."""

import json
from collections.abc import Callable

import pytest
from correction_helpers import Ratings, event, placing, read, take_in


def one_ladder(ratings: Ratings, url: str) -> None:
    """Make a ledger with the ladder of one group, with two games."""
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "catan-elo", db=url).exit_code == 0
    for number, players in enumerate((("anna", "ben"), ("ben", "cleo")), 1):
        game = placing(f"g-{number}", *players, game="catan", group="basic")
        take_in(ratings, url, event("game.recorded", f"2024-03-0{number}T12:00:00Z", **game))


def two_ladders(ratings: Ratings, url: str) -> None:
    """The same with a second one, on which there are more games."""
    one_ladder(ratings, url)
    for number in range(3, 6):
        game = placing(f"g-{number}", "anna", "ben", game="catan", group="cities")
        take_in(ratings, url, event("game.recorded", f"2024-03-0{number}T12:00:00Z", **game))


ASKED = {
    "standings": ["standings"],
    "books": ["books"],
    "history": ["history", "ben"],
    "explain a game": ["explain", "g-2"],
    "explain a player": ["explain", "ben"],
    "explain a change": ["explain", "--change", "--from", "as-of=2024-03-01", "ben"],
}


@pytest.mark.parametrize("command", ASKED.values(), ids=ASKED)
def test_the_only_ladder_is_meant(command: list[str], copied: Callable[..., str], ratings: Ratings) -> None:
    """Given one ladder, a question without a ladder is answered as the one that names it."""
    db = copied(one_ladder)
    (there,) = read(ratings, db, "ladders")["rows"]

    assert read(ratings, db, *command) == read(ratings, db, *command, there["ladder"])


@pytest.mark.parametrize("command", ASKED.values(), ids=ASKED)
def test_several_ladders_are_listed(command: list[str], copied: Callable[..., str], ratings: Ratings) -> None:
    """Given two ladders, a question without a ladder is wrong usage, which lists both, the longer one first."""
    done = ratings(*command, "--format", "json", db=copied(two_ladders))

    assert (done.exit_code, done.stdout) == (2, "")
    assert json.loads(done.stderr.splitlines()[-1]) == {
        "reason": "usage", "exit_code": 2,
        "message": "name one of the 2 ladders:\n  catan-elo/cities (3 games)\n  catan-elo/basic (2 games)",
    }  # fmt: skip


def test_only_ladder_of_a_moment(copied_file: Callable[..., str], ratings: Ratings) -> None:
    """The only ladder that there was then is meant, though there are two today."""
    db = copied_file(two_ladders)

    then = read(ratings, db, "standings", "--as-of", "2024-03-02")
    assert (then["ladder"], len(then["rows"])) == ("catan-elo/basic", 3)


def test_no_ladder_says_so(copied_file: Callable[..., str], ratings: Ratings) -> None:
    """A ledger without games says where results go in, and a ladder without a player asks for one."""
    db = copied_file(one_ladder)
    none = ratings("standings", "--as-of", "2024-01-01", db=db)
    assert (none.exit_code, "no ladder has a game yet" in none.stderr) == (2, True)
    alone = ratings("history", "catan-elo/basic", db=db)
    assert (alone.exit_code, "is a ladder; name a player" in alone.stderr) == (2, True)


def test_many_ladders_are_not_all_listed(copied_file: Callable[..., str], ratings: Ratings) -> None:
    """Of many ladders the 20 longest are listed, and how many there are besides."""
    db = copied_file(one_ladder)
    games = [placing(f"x-{n}", "anna", "ben", game="catan", group=f"l-{n}") for n in range(24)]
    take_in(ratings, db, *(event("game.recorded", "2024-03-09T12:00:00Z", **game) for game in games))

    lines = ratings("standings", db=db).stderr.splitlines()
    assert (lines[-1], len([line for line in lines if " game" in line])) == (
        "  and 5 more; see: ratings ladders", 20
    )  # fmt: skip


def test_a_file_of_typos_is_answered_soon(copied_file: Callable[..., str], ratings: Ratings) -> None:
    """Of a file of unknown games the first 20 are told which was meant: looking for it takes a while."""
    db = copied_file(one_ladder)
    names = "".join(f"g-1{n:02d}\n" for n in range(40))
    done = json.loads(ratings("void", "--file", "-", "--reason", "x", "--format", "json", db=db, input=names).stdout)

    assert [("did you mean" in one["message"]) for one in done["rejected"]] == [True] * 20 + [False] * 20
