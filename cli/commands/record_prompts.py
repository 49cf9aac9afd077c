"""Ask at a terminal for what `record` lacks, and show the effect before a key records the game."""

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
from ratings_ledger.ledger.store.log import first_positions
from ratings_ledger.ledger.validation.validator import explain_unlikely_date
from ratings_ledger.projections.admission.proposals import Proposal
from ratings_ledger.projections.facts.players import known_players
from ratings_ledger.projections.queries.coordinates import Times, load_times, moment
from ratings_ledger.projections.queries.event_texts import describe_outcome
from ratings_ledger.projections.queries.ledger_names import list_game_names

RECORD, PLAYERS, GAME, TIME, GAME_ID, LEAVE = "rpgtiq"
CHANGED: dict[str, dict[str, Any]] = {
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
# refusals of typed players, after which the players are asked for again
OF_PLAYERS = ("bad-identifier", "score-missing", "score-contradicts-place")


class TypedGame(NamedTuple):
    """The parts of a game that were typed so far: players in cells by their places; `at` may be `NOW`."""

    players: tuple[str, ...] = ()
    game: str | None = None
    game_id: str | None = None
    at: str | None = None


class Suggestions(NamedTuple):
    """The names that the ledger knows, the game that was played last, and how to show times."""

    players: list[str]
    games: list[str]
    last: str | None
    times: Times


def ask_for_game(
    context: WriteContext,
    typed: TypedGame,
    zone: str | None,
    event_of: Callable[[TypedGame], dict[str, Any]],
    joints: CellSyntax,
) -> tuple[WriteContext, TypedGame] | None:
    """Return a whole game, once the user has seen its effect and pressed the key to record it, and the context to
    record it in; None if they leave. Times are read in a zone, by default the ledger's; `joints` join players in a
    cell.

    Raises `click.Abort` after Ctrl-C and Ctrl-D, `Refused`.
    """
    known = _load_suggestions(context)
    zone = zone or known.times.home
    while True:
        typed = _ask_for_missing(context, typed, known, zone, joints)
        try:
            event = event_of(typed)
        except Refused as problem:
            if problem.code not in OF_PLAYERS:
                raise
            render.note(problem.message)
            typed = typed._replace(players=())
            continue
        proposal = context.propose([event])
        if {rejection.code for rejection in proposal.result.rejected} == {"close-name"}:
            context, typed = _replace_names(
                context, typed, ask_about_close_names(proposal.result.close.values(), {}), joints
            )
            proposal.close()
            continue
        if context.dry_run and not proposal.is_refused:
            return context, typed
        with redirect_stdout(sys.stderr):
            _print_proposal(proposal, event, known.times)
        key = ask_key({key: meaning for key, meaning in KEYS.items() if key != RECORD or not proposal.is_refused})
        proposal.close()
        if key == RECORD:
            return context, typed
        if key == LEAVE:
            render.note("nothing was recorded")
            return None
        typed = typed._replace(**CHANGED[key])


def _replace_names(
    context: WriteContext, typed: TypedGame, answers: Answers | None, joints: CellSyntax
) -> tuple[WriteContext, TypedGame]:
    """Return the game with the players who are meant, or without players if the user wants to type them again."""
    if answers is None:
        return context, typed._replace(players=())
    aliases = answers.aliases
    players = tuple(
        joints.join(
            side._replace(players=[aliases.get(name, name) for name in map(to_nfc, side.players)])
            for side in joints.split(cell)
        )
        for cell in typed.players
    )
    accepted = context.policy.accepted | answers.accepted
    return replace(context, policy=context.policy._replace(accepted=accepted)), typed._replace(players=players)


def _load_suggestions(context: WriteContext) -> Suggestions:
    with context.ledger.reading() as connection:
        facts, times = decode_for_command(connection), load_times(connection)
    rated = {
        game for versions in facts.rulesets.values() for version in versions for game in version.ruleset.scope.game
    }
    games = sorted(list_game_names(facts) | rated)
    last = games[0] if len(games) == 1 else None
    if len(facts.start):
        last = facts.label("game", len(facts.start) - 1)
    return Suggestions(sorted(known_players(facts)), games, last, times)


def _ask_for_missing(
    context: WriteContext, typed: TypedGame, known: Suggestions, zone: str | None, joints: CellSyntax
) -> TypedGame:
    """Return the game with everything that was missing."""
    if typed.game is None:
        typed = typed._replace(game=_ask_for_game_name(known))
    if not typed.players:
        typed = typed._replace(players=_ask_for_players(known, joints))
    if typed.at is None:
        typed = typed._replace(at=_ask_for_time(context, zone))
    if typed.game_id is None:
        typed = typed._replace(game_id=_ask_for_game_id(context, typed.at or NOW, known))
    return typed


def _ask_for_game_name(known: Suggestions) -> str:
    """Return the name of the game."""
    default = f" [{known.last}]" if known.last is not None else ""
    while True:
        name = ask_line(f"game{default}: ", known.games) or known.last or ""
        if not name:
            render.note(f"such as {', '.join(known.games[:10]) or 'catan'}")
        elif (problem := _why_bad_game_name(name)) is not None:
            render.note(problem)
        elif name in known.games or (meant := find_closest(name, known.games)) is None:
            return name
        elif ask(f"{quote(name)} was never played: did you mean {quote(meant)}?", ("yes", "new")) == "yes":
            return meant
        else:
            return name


def _why_bad_game_name(name: str) -> str | None:
    """Return why a game cannot have this name, or None."""
    try:
        read_slug(name)
    except Refused as problem:
        return problem.message
    return None


def _ask_for_time(context: WriteContext, zone: str | None) -> str:
    """Return when the game ended, read as an import reads a cell of its own; `NOW` for an empty line."""
    while True:
        text = ask_line(f"when [{NOW}]: ", [])
        if text.casefold() in ("", NOW):
            return NOW
        try:
            instant = read_instant(read_typed_time(text), zone)
        except Refused as problem:
            render.note(problem.message.removeprefix("occurred_at: "))
            continue
        why = None if context.policy.any_date else explain_unlikely_date(instant, clock.now())
        if why is None:
            return format_instant(instant)
        render.note(why)


def _ask_for_players(known: Suggestions, joints: CellSyntax) -> tuple[str, ...]:
    """Return the players in the order of their places, until an empty line."""
    partners = f", partners by {' or '.join(joints.partners)}" if joints.partners else ""
    render.note(f"players by places, tied ones joined by ={partners}, scores as anna:3; an empty line ends")
    cells, placed = list[str](), list[str]()
    while True:
        remaining = [name for name in known.players if name not in placed]
        cell = ask_line(f"place {len(placed) + 1}: ", remaining)
        try:
            sides = [side._replace(players=[*map(to_nfc, side.players)]) for side in joints.split(cell)]
        except Refused as problem:
            render.note(problem.message)
            continue
        names = [name for side in sides for name in side.players]
        if not cell and len(placed) > 1:
            return tuple(cells)
        if not all(names):
            render.note("a game has at least two players" if not cell else "a name is missing beside =")
        elif twice := next((name for name in names if (placed + names).count(name) > 1), None):
            render.note(f"{quote(twice)} has a place already")
        else:
            cells.append(joints.join(sides))
            placed += names


def _ask_for_game_id(context: WriteContext, at: str, known: Suggestions) -> str:
    """Return the id of the game; by default its date and a number of the day, as in a table without ids."""
    played = clock.now() if at == NOW else read_instant(at, known.times.zone)
    day = f"{local_time(played, known.times.zone):%Y-%m-%d}"
    with context.ledger.reading() as connection:
        free = next(name for number in count(1) if not first_positions(connection, [name := f"{day}-{number}"]))
    return ask_line(f"its own id [{free}]: ", []) or free


def _print_proposal(proposal: Proposal, event: dict[str, Any], times: Times) -> None:
    """Print the game and its impact, or why it is refused."""
    data = event["data"]
    for rejection in proposal.result.rejected:
        render.note(format_rejection(rejection))
    if proposal.is_refused:
        return
    when = times.format_played_with_zone(moment(parse_instant(event["occurred_at"])))
    render.echo()
    render.print_hanging(render.plain(f"{data['game']}, {when}, id {data['game_id']}"), 2)
    render.print_hanging(render.plain(describe_outcome(data)), 2)
    note_new(proposal.result)
    note_unranked(proposal.result)
    if proposal.is_small():
        print_impact(proposal.impact())
    render.echo()
