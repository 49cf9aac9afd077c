"""`log` and `games` for a part of the log: since when, by whom, of which types."""

from typing import Any

import pytest
from correction_helpers import Ratings, build_event_line, build_galactic_line, create_ledger, read_json
from ledgers import advance_clock, set_clock
from stores import make_empty_ledger, record_lines

DAY = 86_400


def make_week_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger with the home zone Berlin in which mira and ben record three games, a void and a correction, each
    on another day, and a judge registers a player."""
    with pytest.MonkeyPatch.context() as patch:
        set_clock(patch, "2024-03-01T22:30:00Z")
        create_ledger(ratings, url, "galactic-points-1")
        assert ratings("zone", "Europe/Berlin", db=url).exit_code == 0
        for number, by in enumerate(["mira", "ben", "mira"], 1):
            advance_clock(patch, DAY)
            line = build_galactic_line(f"g-{number}", "anna", "dora", at=f"2024-02-0{number}T23:30:00Z")
            assert not record_lines(url, line, by=by).rejected
        advance_clock(patch, DAY)
        assert ratings("void", "g-1", "--reason", "a friendly", "--by", "ben", db=url).exit_code == 0
        advance_clock(patch, DAY)
        assert ratings("correct", "g-2", "dora", "anna", "--reason", "swapped", "--by", "mira", db=url).exit_code == 0
        odd = build_event_line("player.registered", "2024-03-01T12:00:00Z", player="emil")
        assert not record_lines(url, odd, by='ben "the" judge').rejected


pytestmark = pytest.mark.ledger(make=make_week_ledger)


LOG: dict[str, tuple[list[str], list[int]]] = {
    "since a position": (["--since", "6"], [6, 7, 8]),
    # position 6 was recorded at 23:30 in Berlin; a date means its start there
    "since a date": (["--since", "2024-03-05"], [6, 7, 8]),
    "since a time": (["--since", "2024-03-05T22:30:00Z"], [6, 7, 8]),
    "since a moment later": (["--since", "2024-03-05T22:30:01Z"], [7, 8]),
    "by somebody": (["--by", "ben"], [4, 6]),
    "by somebody with quotation marks": (["--by", 'ben "the" judge'], [8]),
    "by nobody": (["--by", "nobody"], []),
    "of a type": (["--type", "game.voided"], [6]),
    "of two types": (["--type", "game.voided", "--type", "game.corrected"], [6, 7]),
    "all together": (["--since", "4", "--by", "mira", "--type", "game.recorded"], [5]),
    "with an end": (["--since", "4", "--known-at", "6"], [4, 5, 6]),
    "the newest": (["--type", "game.recorded", "--limit", "2"], [4, 5]),
    "of a game": (["g-1", "--by", "ben"], [6]),
    "of a player": (["anna", "--type", "game.recorded", "--since", "4"], [4, 5]),
    "of a player with an end": (["dora", "--limit", "1", "--by", "mira"], [7]),
}


@pytest.mark.parametrize(("arguments", "positions"), LOG.values(), ids=LOG)
def test_log_shows_the_part_asked_for(arguments: list[str], positions: list[int], db: str, ratings: Ratings) -> None:
    """`log` shows just the events of the time, author, type, game or player asked for."""
    assert [row["position"] for row in read_json(ratings, db, "log", *arguments)["rows"]] == positions


def test_limit_counts_matching_events_only(db: str, ratings: Ratings) -> None:
    """Only events that match the filter are counted as hidden by the limit."""
    lines = "".join(build_galactic_line(f"h-{n}", "anna", "dora", at="2024-02-01T12:00:00Z") for n in range(60))
    assert not record_lines(db, lines, by="site").rejected
    result = ratings("log", "--by", "site", db=db)
    assert (len(result.stdout.splitlines()), result.stderr) == (
        51,
        "10 older entries are not shown; to show all: --limit 0\n",
    )
    assert ratings("log", "--by", "site", "--limit", "0", db=db).stderr == ""
    assert ratings("log", "--by", "nobody", db=db).stderr == "No such event is recorded.\n"


@pytest.mark.ledger(make=make_empty_ledger)
def test_empty_answer_mentions_filters_only_if_there_are_some(db: str, ratings: Ratings) -> None:
    """Without games, `games` says that no game is recorded; with a filter, that no such game is."""
    assert ratings("games", db=db).stderr.splitlines()[-1] == "No game is recorded yet."
    assert ratings("games", "--by", "nobody", db=db).stderr.splitlines()[-1] == "No such game is recorded."


GAMES: dict[str, tuple[list[str], list[str]]] = {
    # g-2 ended at 00:30 on 3 February in Berlin
    "since a date": (["--since", "2024-02-03"], ["g-2", "g-3"]),
    "since a time": (["--since", "2024-02-02T23:30:01Z"], ["g-3"]),
    "by somebody": (["--by", "mira"], ["g-1", "g-3"]),
    "both": (["--by", "mira", "--since", "2024-02-03"], ["g-3"]),
    "with an end": (["--since", "2024-02-02", "--as-of", "2024-02-03"], ["g-1", "g-2"]),
    "by nobody": (["--by", "nobody"], []),
}


@pytest.mark.parametrize(("arguments", "game_ids"), GAMES.values(), ids=GAMES)
def test_games_show_the_part_asked_for(arguments: list[str], game_ids: list[str], db: str, ratings: Ratings) -> None:
    """`games` shows just the games of the time and author asked for."""
    assert [row["game_id"] for row in read_json(ratings, db, "games", *arguments)["rows"]] == game_ids


WRONG: list[tuple[list[str], str]] = [
    (["log", "--since", "99"], "the log ends at position 8"),
    (["log", "--since", "soon"], "nor a position of the log"),
    (["log", "--type", "game.void"], "did you mean game.voided?"),
    (["games", "--since", "soon"], "'--since': 'soon' is not a time"),
]


@pytest.mark.parametrize(("command", "why"), WRONG, ids=[" ".join(command) for command, _ in WRONG])
def test_impossible_filter_is_usage_error(command: list[str], why: str, db: str, ratings: Ratings) -> None:
    """A filter that makes no sense is a usage error that says why."""
    result: Any = ratings(*command, db=db)
    assert (result.exit_code, why in result.stderr) == (2, True), result.stderr
