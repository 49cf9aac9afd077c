"""Ask at a terminal for the missing parts of a game, and show the effect before the user records it."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from ratings_ledger.cli.arguments.close_names import Answers, ask_about_close_names
from ratings_ledger.cli.arguments.prompts import ask, ask_key, ask_line
from ratings_ledger.cli.arguments.views import decode_for_command
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import print_impact
from ratings_ledger.cli.output.proposals import format_rejection, note_new, note_unranked
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant, parse_instant
from ratings_ledger.ledger.events.fields import read_slug, to_nfc
from ratings_ledger.ledger.events.zones import local_time, read_instant
from ratings_ledger.ledger.intake.parsing import CellSyntax
from ratings_ledger.ledger.intake.tables.dates import read_typed_time
from ratings_ledger.ledger.rejections import Refused, find_closest, quote
from ratings_ledger.ledger.store.log import find_first_positions
from ratings_ledger.ledger.validation.validator import explain_unlikely_date
from ratings_ledger.projections.admission.proposals import Proposal
from ratings_ledger.projections.facts.lookups import known_players
from ratings_ledger.projections.queries.coordinates import TimeFormat, load_times, to_datetime
from ratings_ledger.projections.queries.event_texts import describe_outcome
from ratings_ledger.projections.queries.ledger_names import list_game_names

# the keys to press after the effect is shown
RECORD, PLAYERS, GAME, TIME, GAME_ID, LEAVE = "rpgtiq"
# the parts that a key clears, so that they are asked for again
CLEARED_FIELDS: dict[str, dict[str, Any]] = {
    PLAYERS: {"players": ()},
    GAME: {"game": None},
    TIME: {"at": None},
    GAME_ID: {"game_id": None},
}
KEYS = {
    RECORD: "record it",
    PLAYERS: "change players",
    GAME: "game",
    TIME: "time",
    GAME_ID: "id",
    LEAVE: "leave",
}
NOW = "now"
# the codes of errors in typed players, after which the user types the players again
PLAYER_ERRORS = ("bad-identifier", "score-missing", "score-contradicts-place")


class GameInput(NamedTuple):
    """The parts of a game that the user has given. `players` are cells in the order of places; `at` may be `NOW`."""

    players: tuple[str, ...] = ()
    game: str | None = None
    game_id: str | None = None
    at: str | None = None


class Suggestions(NamedTuple):
    """The known names of players and games, the name of a game to offer, and the format of times."""

    players: list[str]
    games: list[str]
    default_game: str | None
    times: TimeFormat


def ask_for_game(
    context: WriteContext,
    game_input: GameInput,
    zone: str | None,
    build_event: Callable[[GameInput], dict[str, Any]],
    syntax: CellSyntax,
) -> tuple[WriteContext, GameInput] | None:
    """Ask for the missing parts of a game, show its effect, and wait until the user records or leaves it.

    In a dry run, a game that is not refused is returned without waiting.

    Returns the context to record the game in, with the accepted names, and the complete game; None if the user leaves.
    Times are read in the zone, by default the ledger's home zone. Raises `Refused`, and `click.Abort` after Ctrl-C and
    Ctrl-D.
    """
    suggestions = _load_suggestions(context)
    zone = zone or suggestions.times.home
    while True:
        game_input = _ask_for_missing(context, game_input, suggestions, zone, syntax)
        try:
            event = build_event(game_input)
        except Refused as problem:
            if problem.code not in PLAYER_ERRORS:
                raise
            render.note(problem.message)
            game_input = game_input._replace(players=())
            continue
        proposal = context.propose([event])
        if {rejection.code for rejection in proposal.result.rejected} == {"close-name"}:
            context, game_input = _replace_names(
                context, game_input, ask_about_close_names(proposal.result.close.values(), {}), syntax
            )
            proposal.close()
            continue
        if context.dry_run and not proposal.is_refused:
            return context, game_input
        with redirect_stdout(sys.stderr):
            _print_proposal(proposal, event, suggestions.times)
        key = ask_key({key: meaning for key, meaning in KEYS.items() if key != RECORD or not proposal.is_refused})
        proposal.close()
        if key == RECORD:
            return context, game_input
        if key == LEAVE:
            render.note("nothing was recorded")
            return None
        game_input = game_input._replace(**CLEARED_FIELDS[key])


def _replace_names(
    context: WriteContext, game_input: GameInput, answers: Answers | None, syntax: CellSyntax
) -> tuple[WriteContext, GameInput]:
    """Apply the user's answers about close names: replace players, and accept new names.

    Without answers, drop all players, so that the user types them again.
    """
    if answers is None:
        return context, game_input._replace(players=())
    aliases = answers.aliases
    players = tuple(
        syntax.join(
            side._replace(players=[aliases.get(name, name) for name in map(to_nfc, side.players)])
            for side in syntax.split(cell)
        )
        for cell in game_input.players
    )
    accepted = context.policy.accepted | answers.accepted
    return replace(context, policy=context.policy._replace(accepted=accepted)), game_input._replace(players=players)


def _load_suggestions(context: WriteContext) -> Suggestions:
    with context.ledger.reading() as connection:
        facts, times = decode_for_command(connection), load_times(connection)
    rated = {
        game for versions in facts.rulesets.values() for version in versions for game in version.ruleset.scope.game
    }
    games = sorted(list_game_names(facts) | rated)
    default_game = games[0] if len(games) == 1 else None
    if len(facts.start):
        default_game = facts.label("game", len(facts.start) - 1)
    return Suggestions(sorted(known_players(facts)), games, default_game, times)


def _ask_for_missing(
    context: WriteContext, game_input: GameInput, suggestions: Suggestions, zone: str | None, syntax: CellSyntax
) -> GameInput:
    """Ask for the missing parts of a game; return the complete game."""
    if game_input.game is None:
        game_input = game_input._replace(game=_ask_for_game_name(suggestions))
    if not game_input.players:
        game_input = game_input._replace(players=_ask_for_players(suggestions, syntax))
    if game_input.at is None:
        game_input = game_input._replace(at=_ask_for_time(context, zone))
    if game_input.game_id is None:
        game_input = game_input._replace(game_id=_ask_for_game_id(context, game_input.at or NOW, suggestions))
    return game_input


def _ask_for_game_name(suggestions: Suggestions) -> str:
    """Ask for the name of the game."""
    default = f" [{suggestions.default_game}]" if suggestions.default_game is not None else ""
    while True:
        name = ask_line(f"game{default}: ", suggestions.games) or suggestions.default_game or ""
        if not name:
            render.note(f"name the game, such as {', '.join(suggestions.games[:10]) or 'catan'}")
        elif (problem := _find_name_problem(name)) is not None:
            render.note(problem)
        elif name in suggestions.games or (similar := find_closest(name, suggestions.games)) is None:
            return name
        elif ask(f"{quote(name)} was never played: did you mean {quote(similar)}?", ("yes", "new")) == "yes":
            return similar
        else:
            return name


def _find_name_problem(name: str) -> str | None:
    """Return the problem with the name of a game, or None."""
    try:
        read_slug(name)
    except Refused as problem:
        return problem.message
    return None


def _ask_for_time(context: WriteContext, zone: str | None) -> str:
    """Ask for the time when the game ended; return `NOW` for an empty line."""
    while True:
        text = ask_line(f"when [{NOW}]: ", [])
        if text.casefold() in ("", NOW):
            return NOW
        try:
            instant = read_instant(read_typed_time(text), zone)
        except Refused as problem:
            render.note(problem.message.removeprefix("occurred_at: "))
            continue
        problem_text = None if context.policy.any_date else explain_unlikely_date(instant, clock.now())
        if problem_text is None:
            return format_instant(instant)
        render.note(problem_text)


def _ask_for_players(suggestions: Suggestions, syntax: CellSyntax) -> tuple[str, ...]:
    """Ask for the players in the order of their places, until an empty line."""
    partners = f", and partners with {' or '.join(syntax.partners)}" if syntax.partners else ""
    render.note(
        f"enter the players by place; join ties with ={partners}; add scores as in anna:3; end with an empty line"
    )
    cells, placed = list[str](), list[str]()
    while True:
        remaining = [name for name in suggestions.players if name not in placed]
        cell = ask_line(f"place {len(placed) + 1}: ", remaining)
        try:
            sides = [side._replace(players=[*map(to_nfc, side.players)]) for side in syntax.split(cell)]
        except Refused as problem:
            render.note(problem.message)
            continue
        names = [name for side in sides for name in side.players]
        if not cell and len(placed) > 1:
            return tuple(cells)
        if not all(names):
            render.note("name at least two players" if not cell else "a name is missing next to =")
        elif repeated := next((name for name in names if (placed + names).count(name) > 1), None):
            render.note(f"{quote(repeated)} already has a place; name each player once")
        else:
            cells.append(syntax.join(sides))
            placed += names


def _ask_for_game_id(context: WriteContext, at: str, suggestions: Suggestions) -> str:
    """Ask for the id of the game. The default is the date and a number, as in a table without ids."""
    instant = clock.now() if at == NOW else read_instant(at, suggestions.times.zone)
    day = f"{local_time(instant, suggestions.times.zone):%Y-%m-%d}"
    with context.ledger.reading() as connection:
        free_id = next(name for number in count(1) if not find_first_positions(connection, [name := f"{day}-{number}"]))
    return ask_line(f"game id [{free_id}]: ", []) or free_id


def _print_proposal(proposal: Proposal, event: dict[str, Any], times: TimeFormat) -> None:
    """Print the game and its impact, or why the game is refused."""
    data = event["data"]
    for rejection in proposal.result.rejected:
        render.note(format_rejection(rejection))
    if proposal.is_refused:
        return
    time_text = times.format_played_with_zone(to_datetime(parse_instant(event["occurred_at"])))
    render.echo()
    render.print_hanging(render.plain(f"{data['game']}, {time_text}, id {data['game_id']}"), 2)
    render.print_hanging(render.plain(describe_outcome(data)), 2)
    note_new(proposal.result)
    note_unranked(proposal.result)
    if proposal.is_small():
        print_impact(proposal.impact())
    render.echo()
