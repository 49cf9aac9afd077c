"""Implement `record`: record one game from the command line, from answers at a terminal, or from JSON."""

import shlex
import sys
from typing import Any

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import read_instant_or_now, zone_option
from ratings_ledger.cli.arguments.prompts import can_ask
from ratings_ledger.cli.arguments.tables import (
    check_partner_separators,
    find_only_game,
    find_unsplittable_ids,
    partners_option,
)
from ratings_ledger.cli.arguments.writing import WriteContext, with_game_options
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import note_leagues, note_unranked, note_voided
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant, parse_object
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.types import complete_event, read_event
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.intake.parsing import CellSyntax
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.admission.league_checks import LeagueNotes
from ratings_ledger.projections.diff.impact import Impact


@command()
@click.argument("players", nargs=-1)
@click.option("--game", metavar="NAME", help="The game that was played, such as catan.")
@click.option("--game-id", metavar="ID", help="A new id for the game.")
@click.option("--at", metavar="TIME", help="The time at which the game ended.  [default: now]")
@zone_option
@click.option("--group", help="The game group.")
@click.option("--city", help="The city.")
@click.option("--league", help="The league.")
@click.option("--season", help="The season.")
@partners_option
@click.option("--quiet", "-q", is_flag=True, help="Do not report changes and new players.")
@with_game_options("all")
def record(
    context: WriteContext,
    players: tuple[str, ...],
    game: str | None,
    game_id: str | None,
    at: str | None,
    zone: str | None,
    partners: tuple[str, ...],
    quiet: bool,
    **labels: str | None,
) -> int:
    """Record one game. Name PLAYERS in the order of their places; = joins ties, and scores follow a colon.

    \b
        ratings record --game catan --game-id g-7 anna ben=cleo dora
        ratings record --game tennis --game-id t-1 --partners + \\
            "anna + ben" "cleo + dora"
        ratings record --game chess --game-id c-1 anna:3 ben:1

    At a terminal, the command asks for missing values and shows the effect before you press r to record the game.
    Without a terminal and without PLAYERS, one event, or the data of one game, is read as JSON from standard input.
    """
    ledger, was_effect_shown, notes = context.ledger, False, LeagueNotes()
    game = _find_only_game(ledger) if game is None and (players or can_ask()) else game
    asks = not (players and game and game_id) and can_ask()
    syntax = _read_cell_syntax(ledger, partners, players, asks=asks)
    if asks:
        # slow to import, and most games need no questions
        from ratings_ledger.cli.commands.record_prompts import NOW, GameInput, ask_for_game

        def build_event(game_input: GameInput) -> dict[str, Any]:
            input_time = None if game_input.at == NOW else game_input.at
            participants = syntax.parse_participants(game_input.players)
            event = _build_game(participants, game_input.game, game_input.game_id, labels)
            return _complete_event(ledger, event, input_time, zone, notes)[0]

        game_input = GameInput(players, game, game_id, at)
        if (answers := ask_for_game(context, game_input, zone, build_event, syntax)) is None:
            return 1
        context, (players, game, game_id, at) = answers
        at = None if at == NOW else at
        was_effect_shown = context.output_format == "table" and not context.dry_run
    is_undated, league = False, None
    if players:
        event = _build_event_from_options(syntax, players, game, game_id, labels)
    else:
        event = _read_event(game, game_id, *partners, *labels.values())
    if isinstance(event, dict):
        is_undated = at is None and "occurred_at" not in event
        event, league = _complete_event(ledger, event, at, zone, notes)
    result, impact = _propose_event(context, event, quiet or was_effect_shown, notes)
    if was_effect_shown:
        result.new_players, result.new_ladders, result.unranked = [], [], {}
    if is_undated and isinstance(event, dict) and [rejection.code for rejection in result.rejected] == ["id-conflict"]:
        # the command gave no time, so the recorded event is the same if everything else is equal
        event["occurred_at"] = _find_recorded_time(ledger, event)
        result, impact = _propose_event(context, event, quiet, notes)
    _note_result(result, league)
    is_silent = quiet and context.output_format == "table" and not result.rejected_count
    return 0 if is_silent else context.report(result, impact)


def _find_only_game(ledger: Ledger) -> str | None:
    """Return the name of the only game that the published rulesets score, or None if they score none or several."""
    with ledger.reading() as connection:
        return find_only_game(connection)


def _note_result(result: IntakeResult, league: str | None) -> None:
    """Print notes about the recorded game, such as the `league` whose label was added to it."""
    if league is not None and not result.rejected_count:
        name = render.plain(league)
        render.note(f"note: the league {name} scheduled this game, so --league {name} was added")
    note_unranked(result)
    note_leagues(result)
    if result.existing:
        note_voided(result)


def _read_cell_syntax(ledger: Ledger, partners: tuple[str, ...], players: tuple[str, ...], *, asks: bool) -> CellSyntax:
    """Return the syntax of cells, both on the command line and in answers. Raises `click.UsageError`."""
    check_partner_separators(partners)
    if not partners and not asks and not any(":" in cell for cell in players):
        return CellSyntax()  # skip the slow read of all ids
    with ledger.reading() as connection:
        return CellSyntax(partners, find_unsplittable_ids(connection, partners))


def _build_event_from_options(
    syntax: CellSyntax,
    players: tuple[str, ...],
    game: str | None,
    game_id: str | None,
    labels: dict[str, str | None],
) -> dict[str, Any] | Refused:
    """Return the event of a game on the command line, or the error in its players."""
    try:
        return _build_game(syntax.parse_participants(players), game, game_id, labels)
    except Refused as problem:
        return problem


def _build_game(
    participants: list[dict[str, Any]], game: str | None, game_id: str | None, labels: dict[str, str | None]
) -> dict[str, Any]:
    """Return the event that records a game. Raises `click.UsageError` if its name or id is missing."""
    if game is None:
        raise click.UsageError("--game is missing; add the name of the game, such as --game catan")
    if game_id is None:
        example = shlex.quote(f"{game}-0042")
        raise click.UsageError(f"--game-id is missing; add a new id, such as --game-id {example}")
    given_labels = {name: label for name, label in labels.items() if label is not None}
    data = {"game_id": game_id, "game": game, **given_labels, "participants": participants}
    return {"type": "game.recorded", "data": data}


def _complete_event(
    ledger: Ledger, event: dict[str, Any], at: str | None, zone: str | None, notes: LeagueNotes
) -> tuple[dict[str, Any], str | None]:
    """Return an event with its time and the label of its league, and this league if the label was added.

    Raises `Refused`.
    """
    event = complete_event(event, clock.now())
    if at is not None:
        event["occurred_at"] = format_instant(read_instant_or_now(ledger, at, zone))
    return event, _add_league(ledger, event, notes)


def _read_event(*options: str | None) -> dict[str, Any] | Refused:
    """Return the event on standard input, or its error. The data of a game is accepted without the event around it.

    Raises `click.UsageError` if the command line has options for a game.
    """
    if any(option is not None for option in options):
        raise click.UsageError(
            "options such as --game need PLAYERS; name them, or leave out the options and give JSON on standard input"
        )
    if not (content := sys.stdin.buffer.read(1 << 20)).strip():
        message = (
            "there is no event on standard input; name the PLAYERS, with --game and --game-id, or give an event as JSON"
        )
        return Refused("bad-json", message)
    try:
        return parse_object(content)
    except Refused as problem:
        return problem


def _propose_event(
    context: WriteContext, event: dict[str, Any] | Refused, quiet: bool, notes: LeagueNotes
) -> tuple[IntakeResult, Impact | None]:
    """Return the result of recording an event, and its impact.

    Compute the impact in a dry run, and otherwise only if it is shown and quick to compute.
    """
    proposal = context.propose([event], league_notes=notes)
    should_compute = context.dry_run or (not quiet and proposal.is_small())
    impact = proposal.impact() if should_compute and not proposal.is_refused else None
    return context.finish(proposal), impact


def _find_recorded_time(ledger: Ledger, event: dict[str, Any]) -> str:
    """Return the time of the recorded event with the same id."""
    draft, _ = read_event(event)
    with ledger.reading() as connection:
        recorded = Log(connection).event(draft.event_id)
    return format_instant(draft.occurred_at if recorded is None else recorded.occurred_at)


def _add_league(ledger: Ledger, event: dict[str, Any], notes: LeagueNotes) -> str | None:
    """Add the label of the league to a game that a league scheduled; return the league if its label was added."""
    data = event.get("data")
    if event.get("type") != "game.recorded" or not isinstance(data, dict) or data.get("league") is not None:
        return None
    with ledger.reading() as connection:
        league = notes.load_scheduled_games(connection).get(to_nfc(str(data.get("game_id"))))
    if league is not None:
        data["league"] = league
    return league
