"""A ladder need not be named where there is only one; of several, the command lists them."""

import json
from collections.abc import Callable

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, build_game_data, read_json
from stores import make_empty_ledger


def make_one_ladder(ratings: Ratings, url: str) -> None:
    """Make a ledger with the ladder of one group, with two games."""
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "catan-elo", db=url).exit_code == 0
    for number, players in enumerate((("anna", "ben"), ("ben", "cleo")), 1):
        game = build_game_data(f"g-{number}", *players, game="catan", group="basic")
        append_lines(ratings, url, build_event_line("game.recorded", f"2024-03-0{number}T12:00:00Z", **game))


def make_two_ladders(ratings: Ratings, url: str) -> None:
    """Make the same ledger with a second ladder, on which there are more games."""
    make_one_ladder(ratings, url)
    for number in range(3, 6):
        game = build_game_data(f"g-{number}", "anna", "ben", game="catan", group="cities")
        append_lines(ratings, url, build_event_line("game.recorded", f"2024-03-0{number}T12:00:00Z", **game))


COMMANDS = {
    "standings": ["standings"],
    "books": ["books"],
    "history": ["history", "ben"],
    "explain a game": ["explain", "g-2"],
    "explain a player": ["explain", "ben"],
    "explain a change": ["explain", "--change", "--from", "as-of=2024-03-01", "ben"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_only_ladder_is_meant(command: list[str], copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """Given one ladder, a question without a ladder is answered as the one that names it."""
    db = copy_ledger(make_one_ladder)
    (row,) = read_json(ratings, db, "ladders")["rows"]

    assert read_json(ratings, db, *command) == read_json(ratings, db, *command, row["ladder"])


OF_ALL, OF_BEN = ("standings", "books"), ("history", "explain a player", "explain a change")


@pytest.mark.parametrize("question", [*OF_ALL, *OF_BEN])
def test_several_ladders_are_listed(question: str, copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """Given two ladders, a question without a ladder is wrong usage, which lists both, the longer one first."""
    result = ratings(*COMMANDS[question], "--format", "json", db=copy_ledger(make_two_ladders))

    assert (result.exit_code, result.stdout) == (2, "")
    those = " that 'ben' is on" if question in OF_BEN else ""
    assert json.loads(result.stderr.splitlines()[-1]) == {
        "reason": "usage",
        "exit_code": 2,
        "message": f"name one of the 2 ladders{those}:\n  catan-elo/cities (3 games)\n  catan-elo/basic (2 games)",
    }


@pytest.mark.parametrize("query", [("history", "cleo"), ("explain", "cleo"), ("explain", "g-2"), ("explain", "g-5")])
def test_own_ladder_is_meant(query: tuple[str, ...], copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """Given two ladders, of which a player or game is on one, that is meant."""
    db = copy_ledger(make_two_ladders)
    ladder = "catan-elo/cities" if "g-5" in query else "catan-elo/basic"
    assert read_json(ratings, db, *query) == read_json(ratings, db, *query, ladder)


def make_elo_ladders(ratings: Ratings, url: str) -> None:
    """Make a ledger with a two-player game of catan, then one of three players and one of two, then one of chess."""
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    for game in ("catan", "chess"):
        assert ratings("rules", "publish", "--shipped", "elo", "--game", game, db=url).exit_code == 0
    tables = [("catan", "anna", "ben"), ("catan", "anna", "ben", "cleo"), ("catan", "ben", "anna"), ("chess", "x", "y")]
    for number, (game, *players) in enumerate(tables, 1):
        at = f"2024-03-0{number}T12:00:00Z"
        append_lines(
            ratings, url, build_event_line("game.recorded", at, **build_game_data(f"g-{number}", *players, game=game))
        )


def test_ladders_alike_are_one(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A game that did the same on the ladder of its size is explained on that of all sizes; else both are listed."""
    db = copy_ledger_file(make_elo_ladders)

    result = ratings("explain", "g-1", db=db)
    assert result.stderr == ""
    assert result.stdout == ratings("explain", "g-1", "elo-catan/all", db=db).stdout
    refused = ratings("explain", "g-3", db=db)
    assert refused.stderr.endswith(
        "name one of the 2 ladders that 'g-3' is on:\n  elo-catan (3 games)\n  elo-catan/2 (2 games)\n"
    )


def test_ladders_of_a_player_have_the_games_of_that_player(
    copy_ledger_file: Callable[..., str], ratings: Ratings
) -> None:
    """The ladders of a player are listed with the player's own games, the latest first, at most six."""
    db = copy_ledger_file(make_elo_ladders)
    games = [build_game_data(f"x-{n}", "cleo", "x", game="chess") for n in range(2)]
    append_lines(ratings, db, *(build_event_line("game.recorded", "2024-03-09T12:00:00Z", **game) for game in games))
    assert ratings("explain", "cleo", db=db).stderr.endswith(
        "name one of the 3 ladders that 'cleo' is on:\n  elo-chess (2 games)\n  elo-catan (1 game)\n"
        "  elo-catan/3-4 (1 game)\n"
    )
    assert ratings("init", db=db).exit_code == 0
    many = [build_game_data(f"l-{n}", "cleo", "x", game="catan", group=f"l-{n}") for n in range(5)]
    append_lines(ratings, db, *(build_event_line("game.recorded", "2024-03-09T12:00:00Z", **game) for game in many))
    lines = ratings("explain", "cleo", db=db).stderr.splitlines()
    assert (len([line for line in lines if " game" in line]), lines[-1][:6]) == (6, "  and ")


def test_void_game_and_strangers_without_a_ladder(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A voided game says why it counts for nothing, a player without games is on no ladder, a typo is a typo."""
    db = copy_ledger_file(make_elo_ladders)
    assert ratings("void", "g-4", "--reason", "was a joke", db=db).exit_code == 0

    assert "Not counted: the game is voided" in ratings("explain", "g-4", db=db).stdout
    for command in ("history", "explain"):
        assert "'x' is not on any ladder; see: ratings games" in ratings(command, "x", db=db).stderr
        result = ratings(command, "annna", db=db)
        assert (result.exit_code, "did you mean anna?" in result.stderr) == (1, True), result


def test_only_ladder_of_a_moment(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """The only ladder that there was then is meant, though there are two today."""
    db = copy_ledger_file(make_two_ladders)

    then = read_json(ratings, db, "standings", "--as-of", "2024-03-02")
    assert (then["ladder"], len(then["rows"])) == ("catan-elo/basic", 3)


def test_no_ladder_says_so(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A ledger without games says where results go in, and a ladder without a player asks for one."""
    none = ratings("standings", db=copy_ledger_file(make_empty_ledger, name="empty.db"))
    assert (none.exit_code, "no ladder has a game yet; to import results" in none.stderr) == (2, True)
    db = copy_ledger_file(make_one_ladder)
    early = ratings("standings", "--as-of", "2024-01-01", db=db)
    assert (early.exit_code, "no ladder has a game played up to 2024-01-01" in early.stderr) == (2, True)
    alone = ratings("history", "catan-elo/basic", db=db)
    assert (alone.exit_code, "is a ladder; name a player" in alone.stderr) == (2, True)


def test_unusable_ladder_is_not_called_empty(
    copy_ledger_file: Callable[..., str], ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the only ladder with games has no usable ruleset, the message says why, and does not ask for results."""
    db = copy_ledger_file(make_one_ladder)
    monkeypatch.setattr("ratings_ledger.projections.rulesets.versions.find_rule", lambda name: None)
    for command in (("standings",), ("history", "anna"), ("explain", "g-1")):
        result = ratings(*command, db=db)
        assert (result.exit_code, "no usable ladder has a game; catan-elo@" in result.stderr) == (2, True), result
        early = ratings(*command, "--as-of", "2024-03-02", db=db).stderr
        assert "no usable ladder has a game played up to 2024-03-02; catan-elo@" in early
    reason, summary = ratings("ladders", db=db).stderr.splitlines()
    assert ("catan-elo@" in reason, summary) == (True, "No usable ladder has a game.")
    summary = ratings("ladders", "--as-of", "2024-03-02", db=db).stderr.splitlines()[-1]
    assert summary.startswith("No usable ladder has a game played up to 2024-03-02")


def test_player_of_unscored_games_is_told_what_scores_them(
    copy_ledger_file: Callable[..., str], ratings: Ratings
) -> None:
    """If no ruleset scores the game that a player played, the message has the command that publishes one."""
    db = copy_ledger_file(make_empty_ledger, name="unscored.db")
    append_lines(ratings, db, build_event_line("game.recorded", **build_game_data("g-1", "anna", "ben", game="chess")))
    for command in (("standings",), ("history", "anna"), ("explain", "g-1")):
        assert "no ruleset scores games of chess; to rate them: " in ratings(*command, db=db).stderr


def test_many_ladders_are_not_all_listed(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Of many ladders the 20 longest are listed, and how many there are besides."""
    db = copy_ledger_file(make_one_ladder)
    games = [build_game_data(f"x-{n}", "anna", "ben", game="catan", group=f"l-{n}") for n in range(24)]
    append_lines(ratings, db, *(build_event_line("game.recorded", "2024-03-09T12:00:00Z", **game) for game in games))

    lines = ratings("standings", db=db).stderr.splitlines()
    assert (lines[-1], len([line for line in lines if " game" in line])) == ("  and 5 more; see: ratings ladders", 20)


def test_a_file_of_typos_is_answered_soon(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Of a file of unknown games the first 20 are told which was meant: looking for it takes a while."""
    db = copy_ledger_file(make_one_ladder)
    names = "".join(f"g-1{n:02d}\n" for n in range(40))
    report = json.loads(ratings("void", "--file", "-", "--reason", "x", "--format", "json", db=db, input=names).stdout)

    assert [("did you mean" in rejection["message"]) for rejection in report["rejected"]] == [True] * 20 + [False] * 20
