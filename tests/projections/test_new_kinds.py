"""A new kind of list, game type, event type or output format takes a module and a line in its registry.

Each test adds one: the content of the module is in this file, and the registry gets its entry.
"""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import pytest
from own_rules import load_built_in_rule, substitute_rule

import ratings_ledger as rl
from ratings_ledger import Refused
from ratings_ledger.cli.output.render import GENERAL_FORMATS, emit
from ratings_ledger.ledger.events.fields import Members, PlayerId, Text
from ratings_ledger.ledger.events.game_types import GAME_TYPES, GameType
from ratings_ledger.ledger.events.games import Game, Participant, Seats, competition_places, list_participants
from ratings_ledger.ledger.events.types import TYPES, EventType
from ratings_ledger.projections.lists import LISTS, RankingList
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, RankingInput, rank_rows
from ratings_ledger.projections.rulesets import columns

Ratings = Callable[..., Any]


# a kind of list: the best game of each player counts


def rank_best(results: RankingInput) -> list[RankedRow]:
    """Rank players by the most points of a single game."""
    best = {
        name: max(change for _, change in results.list_changes(player)) for player, name in enumerate(results.names)
    }
    rows = [
        RankedRow(None, name, best[name], games, games >= results.params.min_games)
        for name, games in zip(results.names, results.games, strict=True)
    ]
    return rank_rows(rows, key=lambda row: -row.points)


def explain_best(results: RankingInput, name: str) -> list[ExplainedLine]:
    """Return the line of the best game."""
    best = max(change for _, change in results.list_changes(results.names.index(name)))
    return [ExplainedLine("best", Fraction(best, results.scale), "the best of all games")]


# a game type: a race decided by seconds


class Racer(Participant):
    """A participant with a time."""

    seconds: int


class Race(Game):
    """A game that orders its participants by time."""

    participants: list[Racer]


def check_race(game: dict[str, Any]) -> None:
    """Raise `Refused` if a time is not positive."""
    if any(racer["seconds"] <= 0 for racer in game["participants"]):
        raise Refused("out-of-range", "a race takes time")


def compute_race_places(game: dict[str, Any]) -> list[int]:
    """Return the places; the fewest seconds are first."""
    return competition_places(game, {racer["player"]: racer["seconds"] for racer in game["participants"]})


def draw_race(seats: Seats, chance: Any) -> dict[str, Any]:
    """Draw a race with random times."""
    for seat in seats:
        for participant in seat:
            participant["seconds"] = chance.randrange(1, 100)
    return {"participants": list_participants(seats)}


# a type of event: praise of a player, on which no ladder depends


class PlayerPraised(Members):
    """Praise of a player."""

    player: PlayerId
    text: Text


PRAISED = EventType(
    PlayerPraised, lambda data: f"player:{data['player']}", lambda data: [data["player"]], is_silent=True
)  # fmt: skip

RULESET = """
id = "dash"
version = "1"
rule = "placement-points/1"
effective_from = 2000-01-01
[scope]
game = ["dash"]
kind = ["{kind}"]
players_max = 8
"""
# commands of every sort that use a ladder
COMMANDS = (
    ["ladders"], ["lists"], ["explain", "d-1", "dash"], ["explain", "ben", "dash"], ["history", "ben", "dash"],
    ["books", "dash"], ["publish", "dash"], ["diff", "published", "now"], ["rebuild"], ["verify"],
    ["export", "changes", "dash"], ["games", "d-1"], ["whatif", "dash.toml"], ["rules", "check", "dash.toml"],
)  # fmt: skip


def record_and_run_commands(ratings: Ratings, kind: str, games: list[list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    """Record games in a new ledger, run `COMMANDS` on it, and return rank, player and points of the standings."""
    Path("dash.toml").write_text(RULESET.format(kind=kind), encoding="utf-8")
    lines = [
        json.dumps({"type": "game.recorded", "occurred_at": f"2024-01-0{number}T12:00:00Z", "data": {
            "game_id": f"d-{number}", "game": "dash", "kind": kind, "participants": participants}})
        for number, participants in enumerate(games, 1)
    ]  # fmt: skip
    assert ratings("init", "--no-rules", db="dash.db").exit_code == 0
    assert ratings("rules", "publish", "dash.toml", db="dash.db").exit_code == 0
    assert ratings("import", "-", db="dash.db", input="\n".join(lines)).exit_code == 0
    for command in COMMANDS:
        result = ratings(*command, db="dash.db")
        assert result.exit_code == 0, (command, result)
    rows = json.loads(ratings("standings", "dash", "--format", "json", db="dash.db").stdout)["rows"]
    return [(row["rank"], row["player"], row["points"]) for row in rows]


@pytest.mark.slow
def test_new_kind_of_list_works_in_every_command(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """A new kind of list is ranked, explained, published, compared, stored and verified like the others."""
    monkeypatch.chdir(tmp_path)
    substitute_rule(monkeypatch, load_built_in_rule("placement-points/1")._replace(ranking="best"))
    monkeypatch.setitem(LISTS, "best", RankingList(rank_best, explain_best))
    games = [
        [{"player": name, "place": place} for place, name in enumerate(names, 1)]
        for names in (("anna", "ben", "cleo"), ("ben", "anna"), ("ben", "cleo"))
    ]
    assert record_and_run_commands(ratings, "placing", games) == [(1, "anna", "6"), (2, "ben", "2"), (3, "cleo", "0")]


def test_new_game_type_works_in_every_command(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """A game of a new type is checked, recorded, scored, explained, stored and tried like the others."""
    monkeypatch.chdir(tmp_path)
    race = GameType(Race, check_race, compute_race_places, draw_race)
    monkeypatch.setitem(GAME_TYPES, "race", race)
    monkeypatch.setitem(columns.COLUMNS_OF, "race", dict(race.columns))  # derived from GAME_TYPES
    games = [
        [{"player": "anna", "seconds": 11}, {"player": "ben", "seconds": 9}, {"player": "cleo", "seconds": 11}],
        [{"player": "cleo", "seconds": 30}, {"player": "ben", "seconds": 8}],
    ]
    assert record_and_run_commands(ratings, "race", games) == [(1, "ben", "8"), (2, "anna", "1"), (2, "cleo", "1")]


@pytest.mark.slow
def test_new_event_type_works_in_every_command(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Events of a new type are recorded, found, voided, exported, restored and verified like the others.

    An event type that ladders depend on also needs a function in `projections.facts.applying.APPLY`. One that is valid
    only under some conditions needs a check in `ledger.validation`.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TYPES, "player.praised", PRAISED)
    games = [[{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]]
    before = record_and_run_commands(ratings, "placing", games)
    event = {"type": "player.praised", "id": "p-1", "data": {"player": "dora", "text": "fair play"}}
    recorded = ratings("record", "--format", "json", db="dash.db", input=json.dumps(event))
    assert json.loads(recorded.stdout)["new_players"] == ["dora"]
    rejection = ratings("record", db="dash.db", input=json.dumps({**event, "id": "p-2", "data": {"player": "dora"}}))
    assert (rejection.exit_code, "missing-member" in rejection.stderr) == (1, True)
    assert '"fair play"' in ratings("log", "dora", "--format", "json", db="dash.db").stdout
    for command in (
        ["diff", "published", "now"], ["rebuild"], ["verify"], ["explain", "--change", "ben", "dash", "--from", "2"],
        ["report", "changes", "--from", "1", "-o", "page.html"], ["export", "events", "-o", "all.jsonl"],
        ["void", "--event", "p-1", "--reason", "another player"], ["verify"],
    ):  # fmt: skip
        result = ratings(*command, db="dash.db")
        assert (result.exit_code, "does not count" in result.stderr) == (0, False), (command, result)
    assert ratings("init", "--no-rules", db="again.db").exit_code == 0
    assert ratings("import", "--restore", "all.jsonl", db="again.db").exit_code == 0
    rows = json.loads(ratings("standings", "dash", "--format", "json", db="again.db").stdout)["rows"]
    assert [(row["rank"], row["player"], row["points"]) for row in rows] == before


@pytest.mark.slow
def test_new_output_format_prints_every_result(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """A new output format is an entry in `GENERAL_FORMATS`, and prints every kind of result."""
    monkeypatch.chdir(tmp_path)
    games = [[{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]]
    record_and_run_commands(ratings, "placing", games)
    monkeypatch.setitem(GENERAL_FORMATS, "members", lambda result: click.echo(" ".join(result.model_dump())))
    with rl.open("dash.db") as ledger:
        view = ledger.at()
        for result in (
            view.standings("dash"),
            view.ladders(),
            view.history("dash", "ben"),
            view.games(),
            view.events(),
        ):
            assert emit(result, "members") == 0
            assert capsys.readouterr().out.split() == list(result.model_dump())
