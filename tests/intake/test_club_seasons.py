"""A season gives the same games and the same digests in every layout, language and kind of file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from season_sheets import KINDS, SEASONS, SHEETS, Duel, Round

import ratings_ledger as rl

Ratings = Callable[..., Any]


def make_club_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger with Elo for each game, with the home zone of Berlin."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=url).exit_code == 0
    for game in SEASONS:
        if game != "chess":
            result = ratings("rules", "publish", "--shipped", "elo", "--game", game, db=url)
            assert result.exit_code == 0, result.stderr


pytestmark = pytest.mark.ledger(make=make_club_ledger)


def format_events(season: str) -> str:
    """Return the season as events in JSON Lines, which no reader of tables reads."""
    lines, days = [], list[str]()
    for game in SEASONS[season]:
        scores = game.scores if isinstance(game, Round) else dict(zip(game[1:3], game.scores, strict=True))
        seats = [
            {"player": name, "place": 1 + sum(other_score > score for other_score in scores.values())}
            for name, score in scores.items()
        ]
        days.append(game.day.isoformat())
        data = {"game": season, "game_id": f"{days[-1]}-{days.count(days[-1])}", "participants": seats}
        noon = "11" if game.day.month == 11 or (game.day.month, game.day.day) > (10, 27) else "10"
        event = {"type": "game.recorded", "occurred_at": f"{days[-1]}T{noon}:00:00Z", "data": data}
        lines.append(json.dumps(event) + "\n")
    return "".join(lines)


def read_results(url: str) -> tuple[list[Any], dict[str, str]]:
    """Return the games with the places of their players, and the digests of all ladders."""
    with rl.open(url) as ledger:
        view = ledger.at()
        games = []
        for row in view.games().rows:
            seats = row.data["participants"]
            places = [
                seat.get(
                    "place",
                    1 + sum(int(other_seat.get("score", 0)) > int(seat.get("score", 0)) for other_seat in seats),
                )
                for seat in seats
            ]
            player_places = sorted(zip((seat["player"] for seat in seats), places, strict=True))
            games.append((row.data["game_id"], row.occurred_at, player_places))
        return games, {row.ladder: view.standings(row.ladder).digest for row in view.ladders().rows}


@pytest.fixture(scope="module")
def expected_results() -> dict[str, tuple[list[Any], dict[str, str]]]:
    """Return the results of the seasons as events, by season; tests add them when they need them."""
    return {}


@pytest.mark.parametrize("name", SHEETS)
@pytest.mark.parametrize("kind", ["csv", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[1:])])
def test_season_is_the_same_in_every_sheet(
    name: str,
    kind: str,
    copy_ledger_file: Callable[..., str],
    ratings: Ratings,
    tmp_path: Path,
    expected_results: dict[str, Any],
) -> None:
    """A sheet imports unchanged and gives the same results as the season's events."""
    sheet = SHEETS[name]
    if sheet.season not in expected_results:
        file = tmp_path / "season.jsonl"
        file.write_text(format_events(sheet.season), encoding="utf-8")
        url = copy_ledger_file(make_club_ledger, name="events.db")
        assert ratings("import", file, db=url).exit_code == 0
        expected_results[sheet.season] = read_results(url)
        assert expected_results[sheet.season][1]
    case, url = sheet.build_case(kind), copy_ledger_file(make_club_ledger)
    path = tmp_path / case.name
    path.write_bytes(case.content)
    result = ratings("import", path, *case.options, db=url)
    assert result.exit_code == 0, result.stderr
    assert read_results(url) == expected_results[sheet.season]


def test_sets_are_the_same_in_every_sheet(
    copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """Each sheet with sets gives the same sets, regardless of the order of the players in its rows."""
    printed_games = set()
    names = (
        "a German club with sets in parentheses",
        "a German club with a column for each set",
        "a score sheet with sets and their result",
        "winners and losers with all sets",
    )
    for number, name in enumerate(names):
        case, url = SHEETS[name].build_case("csv"), copy_ledger_file(make_club_ledger, name=f"{number}.db")
        path = tmp_path / case.name
        path.write_bytes(case.content)
        assert ratings("import", path, *case.options, db=url).exit_code == 0
        printed_games.add(ratings("games", db=url).stdout)
    assert len(printed_games) == 1
    assert "1 Anna (3), 2 Łukasz (1), sets 11:7 9:11 11:5 12:10" in printed_games.pop()


def test_seasons_have_games_of_every_sort() -> None:
    """The seasons have draws, games that the second player won, and games of two to four players."""
    duels = [game for season in SEASONS.values() for game in season if isinstance(game, Duel)]
    assert {None} < {game.winner for game in duels}
    assert any(game.winner == game.second for game in duels)
    assert {len(game.scores) for game in SEASONS["catan"]} == {2, 3, 4}
