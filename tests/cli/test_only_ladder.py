"""A command needs no ladder if there is only one; if there are several, it lists them."""

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
def test_only_ladder_need_not_be_named(command: list[str], copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """In a ledger with one ladder, a command gives the same answer without the ladder as with it."""
    db = copy_ledger(make_one_ladder)
    (row,) = read_json(ratings, db, "ladders")["rows"]

    assert read_json(ratings, db, *command) == read_json(ratings, db, *command, row["ladder"])


ABOUT_ALL_PLAYERS, ABOUT_BEN = ("standings", "books"), ("history", "explain a player", "explain a change")


@pytest.mark.parametrize("command", [*ABOUT_ALL_PLAYERS, *ABOUT_BEN])
def test_several_ladders_are_listed(command: str, copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """With two ladders, a command without a ladder is a usage error that lists both, the one with more games first."""
    result = ratings(*COMMANDS[command], "--format", "json", db=copy_ledger(make_two_ladders))

    assert (result.exit_code, result.stdout) == (2, "")
    qualifier = " that 'ben' is on" if command in ABOUT_BEN else ""
    assert json.loads(result.stderr.splitlines()[-1]) == {
        "reason": "usage",
        "exit_code": 2,
        "message": f"name one of the 2 ladders{qualifier}:\n  catan-elo/cities (3 games)\n  catan-elo/basic (2 games)",
    }


@pytest.mark.parametrize("query", [("history", "cleo"), ("explain", "cleo"), ("explain", "g-2"), ("explain", "g-5")])
def test_only_ladder_of_a_player_or_game_need_not_be_named(
    query: tuple[str, ...], copy_ledger: Callable[..., str], ratings: Ratings
) -> None:
    """If a player or a game is on only one of two ladders, a command about it uses that ladder."""
    db = copy_ledger(make_two_ladders)
    ladder = "catan-elo/cities" if "g-5" in query else "catan-elo/basic"
    assert read_json(ratings, db, *query) == read_json(ratings, db, *query, ladder)


def make_elo_ladders(ratings: Ratings, url: str) -> None:
    """Make a ledger with a two-player game of catan, then one of three players and one of two, then one of chess."""
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    for game in ("catan", "chess"):
        assert ratings("rules", "publish", "--shipped", "elo", "--game", game, db=url).exit_code == 0
    games = [("catan", "anna", "ben"), ("catan", "anna", "ben", "cleo"), ("catan", "ben", "anna"), ("chess", "x", "y")]
    for number, (game, *players) in enumerate(games, 1):
        at = f"2024-03-0{number}T12:00:00Z"
        append_lines(
            ratings, url, build_event_line("game.recorded", at, **build_game_data(f"g-{number}", *players, game=game))
        )


def test_ladders_with_equal_results_count_as_one(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """A game with the same effect on both its ladders is explained on that of all sizes; otherwise both are listed."""
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
    """At most six ladders of a player are listed, with the player's own games, the ladder of the latest game first."""
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
    """Without a ladder, a voided game is explained, a player without games is on no ladder, and a typo gets a hint."""
    db = copy_ledger_file(make_elo_ladders)
    assert ratings("void", "g-4", "--reason", "was a joke", db=db).exit_code == 0

    assert "Not counted: the game is voided" in ratings("explain", "g-4", db=db).stdout
    for command in ("history", "explain"):
        assert "'x' is not on any ladder; see: ratings games" in ratings(command, "x", db=db).stderr
        result = ratings(command, "annna", db=db)
        assert (result.exit_code, "did you mean anna?" in result.stderr) == (1, True), result


def test_only_ladder_of_a_moment(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """With --as-of, the only ladder of that time is used, although there are two today."""
    db = copy_ledger_file(make_two_ladders)

    then = read_json(ratings, db, "standings", "--as-of", "2024-03-02")
    assert (then["ladder"], len(then["rows"])) == ("catan-elo/basic", 3)


def test_no_ladder_says_so(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """An empty ledger and an early --as-of have messages of their own; `history` of a ladder asks for a player."""
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
        assert "to import results" not in result.stderr
        early = ratings(*command, "--as-of", "2024-03-02", db=db).stderr
        assert "no usable ladder has a game played up to 2024-03-02; catan-elo@" in early
    reason, summary = ratings("ladders", db=db).stderr.splitlines()
    assert ("catan-elo@" in reason, summary) == (True, "No usable ladder has a game.")
    summary = ratings("ladders", "--as-of", "2024-03-02", db=db).stderr.splitlines()[-1]
    assert summary.startswith("No usable ladder has a game played up to 2024-03-02")


def test_unscored_games_get_the_command_that_rates_them(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """If no ruleset scores the recorded games, the message has the command that publishes one."""
    db = copy_ledger_file(make_empty_ledger, name="unscored.db")
    append_lines(ratings, db, build_event_line("game.recorded", **build_game_data("g-1", "anna", "ben", game="chess")))
    for command in (("standings",), ("history", "anna"), ("explain", "g-1")):
        message = "no ruleset scores games of chess; to rate them: ratings rules publish --shipped elo --game chess"
        assert message in " ".join(ratings(*command, db=db).stderr.split())


def test_many_ladders_are_not_all_listed(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Of many ladders, the 20 with the most games are listed, and the others are counted."""
    db = copy_ledger_file(make_one_ladder)
    games = [build_game_data(f"x-{n}", "anna", "ben", game="catan", group=f"l-{n}") for n in range(24)]
    append_lines(ratings, db, *(build_event_line("game.recorded", "2024-03-09T12:00:00Z", **game) for game in games))

    lines = ratings("standings", db=db).stderr.splitlines()
    assert (lines[-1], len([line for line in lines if " game" in line])) == ("  and 5 more; see: ratings ladders", 20)


def test_only_the_first_typos_of_a_file_get_suggestions(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Only the first 20 unknown games of a file get a suggestion, because the search for one takes a while."""
    db = copy_ledger_file(make_one_ladder)
    names = "".join(f"g-1{n:02d}\n" for n in range(40))
    report = json.loads(ratings("void", "--file", "-", "--reason", "x", "--format", "json", db=db, input=names).stdout)

    assert [("did you mean" in rejection["message"]) for rejection in report["rejected"]] == [True] * 20 + [False] * 20
