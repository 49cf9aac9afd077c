"""Print recorded games and events, as tables and as CSV."""

from operator import itemgetter
from typing import Any

import click
from click.core import ParameterSource

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.revisions import UNREADABLE
from ratings_ledger.ledger.intake.forfeits import FORFEIT
from ratings_ledger.ledger.validation.repeated_games import describe_sets
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.event_texts import describe_outcome, describe_recorded_event
from ratings_ledger.projections.queries.recorded_events import (
    RecordedEvent,
    RecordedEvents,
    RecordedGame,
    RecordedGames,
)

GAME_COLUMNS = ("position", "occurred_at", "game_id", "game", "group", "result")
EVENT_COLUMNS = ("position", "type", "id", "occurred_at", "recorded_at", "by", "reason", "what")


def print_games_csv(games: RecordedGames) -> None:
    """Print one line per game."""
    cells = [
        [row["position"], row["occurred_at"], *_build_game_cells(game, show_scores=False)]
        for game in games.rows
        for row in [game.model_dump()]
    ]
    render.print_csv(GAME_COLUMNS, cells)


def _build_game_cells(game: RecordedGame, show_scores: bool = True) -> list[render.TableCell]:
    """Return the cells with the id, name, group and result of a game."""
    result = describe_outcome(game.data, show_scores) + (" (voided)" if game.voided is True else "")
    return [game.data["game_id"], game.data["game"], game.data.get("group"), result]


def print_games(games: RecordedGames) -> None:
    """Print the requested game, or a table of games.

    The table has the column game only if the games differ in it, and the column group only if a game has a group.
    """
    if not games.rows:
        render.note(f"No such game is recorded{games.hint or '.'}" if games.narrowed else "No game is recorded yet.")
        return
    if games.game_id is not None:
        _print_game(games.rows[0], games.times)
        return
    header = ["position", games.times.name_column("played"), *GAME_COLUMNS[2:]]
    rows = [
        [game.position, games.times.format_played(game.occurred_at), *_build_game_cells(game)] for game in games.rows
    ]
    # leave out these columns if they have at most this many different values
    omitted_up_to = {"game": 1, "group": 0}
    columns = [
        column
        for column, name in enumerate(header)
        if name not in omitted_up_to or len({row[column] for row in rows} - {None}) > omitted_up_to[name]
    ]
    render.print_table(
        [header[column] for column in columns],
        [[row[column] for column in columns] for row in rows],
        right=("position",),
    )
    _note_older(games.older)


def _note_older(count: int) -> None:
    """Note that a list is incomplete, unless the user chose the limit."""
    is_limit_chosen = click.get_current_context().get_parameter_source("limit") != ParameterSource.DEFAULT
    if count > 0 and not is_limit_chosen:
        entries = f"{count:,} older {'entry is' if count == 1 else 'entries are'}"
        render.note(f"{entries} not shown; to show all: --limit 0")


def _print_game(game: RecordedGame, times: TimeFormat) -> None:
    """Print the members of a game, its participants and its centres; of `extra`, only the sets and a forfeit."""
    members = {name: value for name, value in game.data.items() if name not in ("participants", "centres", "extra")}
    if sets := describe_sets(game.data):
        members["sets"] = sets
    if FORFEIT in game.data.get("extra", {}):
        members[FORFEIT] = game.data["extra"][FORFEIT]
    # by place, in the same order as the sets and all other output; games without places keep the recorded order
    placed = zip(places(game.data), game.data["participants"], strict=True)
    participants = [participant for _, participant in sorted(placed, key=itemgetter(0))]
    member_names = [name for participant in participants for name in participant]
    header = [*dict.fromkeys(["player", *member_names])]
    voided = " (voided)" if game.voided is True else ""
    render.echo(
        f"played {times.format_played_with_zone(game.occurred_at)}, recorded at position {game.position}{voided}\n"
    )
    render.print_table(("what", "value"), [(name, str(value)) for name, value in members.items()])
    render.echo()
    rows = [[_format_cell(participant.get(name)) for name in header] for participant in participants]
    render.print_table(header, rows, right=[name for name in header if name in ("place", "score", "units", "vp")])
    if centres := game.data.get("centres"):
        powers = sorted({power for centres_by_power in centres.values() for power in centres_by_power})
        render.echo("\ncentres at the end of each year")
        rows = [
            [year, *(str(centres_by_power.get(power, 0)) for power in powers)]
            for year, centres_by_power in sorted(centres.items())
        ]
        render.print_table(("year", *powers), rows, right=powers)


def _format_cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else render.to_json(value)


def print_events_csv(events: RecordedEvents) -> None:
    """Print one line per event."""
    cells = [
        [
            *(event.event.get(name) for name in EVENT_COLUMNS[:6]),
            _find_reason(event.event),
            _describe_event(event, events.times),
        ]
        for event in events.rows
    ]
    render.print_csv(EVENT_COLUMNS, cells)


def print_events(events: RecordedEvents) -> None:
    """Print a line per event: position, time, author, type and description."""
    if not events.rows:
        about = f" about {events.subject!r}" if events.subject else ""
        message = f"Nothing is recorded{about}{events.hint or '.'}" if events.subject else "The log is empty."
        render.note(f"No such event is recorded{about}." if events.narrowed else message)
        return
    rows = [
        (
            event.event["position"],
            events.times.format_minute(event.event["recorded_at"]) if "recorded_at" in event.event else "",
            event.event.get("by"),
            event.event["type"],
            _describe_event(event, events.times),
        )
        for event in events.rows
    ]
    render.print_table(
        ("position", events.times.name_column("recorded"), "by", "type", "what"), rows, right=("position",)
    )
    _note_older(events.older)


def _find_reason(event: dict[str, Any]) -> Any:
    return None if UNREADABLE in event else event["data"].get("reason")


def _describe_event(event: RecordedEvent, times: TimeFormat) -> str:
    """Describe an event in a few words."""
    return describe_recorded_event(event, times) + (" (withdrawn)" if event.withdrawn else "")
