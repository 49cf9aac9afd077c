"""`record` at a terminal: what is missing is asked for, and what it will do is shown before a key records it."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from ratings_ledger.cli.arguments.asking import ask, ask_key, ask_line
from ratings_ledger.cli.arguments.views import decoded
from ratings_ledger.cli.arguments.who_is_who import Answers, ask_who
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import note_homeless, note_new, rejection_line
from ratings_ledger.cli.output.impact import print_impact
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant, parse_instant
from ratings_ledger.ledger.events.fields import read_slug, to_nfc
from ratings_ledger.ledger.events.zones import local_time, read_instant
from ratings_ledger.ledger.intake.parsing import CellSyntax
from ratings_ledger.ledger.intake.tables.dates import typed_time
from ratings_ledger.ledger.rejections import Refused, find_closest, quote
from ratings_ledger.ledger.store.log import first_positions
from ratings_ledger.ledger.validation.validator import explain_unlikely_date
from ratings_ledger.projections.admission.proposals import Proposal
from ratings_ledger.projections.facts.players import known_players
from ratings_ledger.projections.queries.coordinates import Times, load_times, moment
from ratings_ledger.projections.queries.event_texts import result_told
from ratings_ledger.projections.queries.known_names import game_names

RECORD, PLAYERS, GAME, TIME, GAME_ID, LEAVE = "rpgtiq"
CHANGED: dict[str, dict[str, Any]] = {
    PLAYERS: {"players": ()}, GAME: {"game": None}, TIME: {"at": None}, GAME_ID: {"game_id": None},
}  # fmt: skip
KEYS = {
    RECORD: "record it", PLAYERS: "change players", GAME: "game", TIME: "time", GAME_ID: "id", LEAVE: "leave",
}  # fmt: skip
NOW = "now"
# refusals of players as they were typed, who are then asked for again
OF_PLAYERS = ("bad-identifier", "score-missing", "score-contradicts-place")


class Typed(NamedTuple):
    """A game as it was typed, as far as it was: players in cells by their places; `at` may be `NOW`."""

    players: tuple[str, ...] = ()
    game: str | None = None
    game_id: str | None = None
    at: str | None = None


class Suggestions(NamedTuple):
    """What the ledger knows: its players, what is played, and what was played last; and how times are shown."""

    players: list[str]
    games: list[str]
    last: str | None
    times: Times


def ask_for_game(
    how: WriteContext,
    typed: Typed,
    zone: str | None,
    event_of: Callable[[Typed], dict[str, Any]],
    joints: CellSyntax,
) -> tuple[WriteContext, Typed] | None:
    """Return a whole game, once somebody has seen what recording it does and pressed the key for that, and how it is
    recorded; None if they leave. Times are read in a zone, by default the ledger's; `joints` join players in a cell.

    Raises `click.Abort` after Ctrl-C and Ctrl-D, `Refused`.
    """
    known = _known(how)
    zone = zone or known.times.home
    while True:
        typed = _completed(how, typed, known, zone, joints)
        try:
            event = event_of(typed)
        except Refused as problem:
            if problem.code not in OF_PLAYERS:
                raise
            render.note(problem.message)
            typed = typed._replace(players=())
            continue
        plan = how.propose([event])
        if {one.code for one in plan.result.rejected} == {"close-name"}:
            how, typed = _named(how, typed, ask_who(plan.result.close.values(), {}), joints)
            plan.close()
            continue
        if how.dry_run and not plan.is_refused:
            return how, typed
        with redirect_stdout(sys.stderr):
            _show(plan, event, known.times)
        key = ask_key({key: told for key, told in KEYS.items() if key != RECORD or not plan.is_refused})
        plan.close()
        if key == RECORD:
            return how, typed
        if key == LEAVE:
            render.note("nothing was recorded")
            return None
        typed = typed._replace(**CHANGED[key])


def _named(how: WriteContext, typed: Typed, answers: Answers | None, joints: CellSyntax) -> tuple[WriteContext, Typed]:
    """Return the same with the players who are meant, or without players if somebody wants to type them again."""
    if answers is None:
        return how, typed._replace(players=())
    meant = answers.aliases
    players = tuple(
        joints.join(
            side._replace(players=[meant.get(name, name) for name in map(to_nfc, side.players)])
            for side in joints.split(cell)
        )
        for cell in typed.players
    )
    accepted = how.policy.accepted | answers.accepted
    return replace(how, policy=how.policy._replace(accepted=accepted)), typed._replace(players=players)


def _known(how: WriteContext) -> Suggestions:
    with how.ledger.reading() as connection:
        facts, times = decoded(connection), load_times(connection)
    rated = {game for every in facts.rulesets.values() for version in every for game in version.ruleset.scope.game}
    games = sorted(game_names(facts) | rated)
    last = games[0] if len(games) == 1 else None
    if len(facts.start):
        last = facts.label("game", len(facts.start) - 1)
    return Suggestions(sorted(known_players(facts)), games, last, times)


def _completed(how: WriteContext, typed: Typed, known: Suggestions, zone: str | None, joints: CellSyntax) -> Typed:
    """Return the same with all that is missing."""
    if typed.game is None:
        typed = typed._replace(game=_game(known))
    if not typed.players:
        typed = typed._replace(players=_players(known, joints))
    if typed.at is None:
        typed = typed._replace(at=_when(how, zone))
    if typed.game_id is None:
        typed = typed._replace(game_id=_game_id(how, typed.at or NOW, known))
    return typed


def _game(known: Suggestions) -> str:
    """Return which game it was."""
    default = f" [{known.last}]" if known.last is not None else ""
    while True:
        name = ask_line(f"game{default}: ", known.games) or known.last or ""
        if not name:
            render.note(f"such as {', '.join(known.games[:10]) or 'catan'}")
        elif (wrong := _why_no_game(name)) is not None:
            render.note(wrong)
        elif name in known.games or (meant := find_closest(name, known.games)) is None:
            return name
        elif ask(f"{quote(name)} was never played: did you mean {quote(meant)}?", ("yes", "new")) == "yes":
            return meant
        else:
            return name


def _why_no_game(name: str) -> str | None:
    """Return why no game can be called so, or None."""
    try:
        read_slug(name)
    except Refused as problem:
        return problem.message
    return None


def _when(how: WriteContext, zone: str | None) -> str:
    """Return when it was played, as an import reads it from a cell of its own; `NOW` for an empty line."""
    while True:
        text = ask_line(f"when [{NOW}]: ", [])
        if text.casefold() in ("", NOW):
            return NOW
        try:
            instant = read_instant(typed_time(text), zone)
        except Refused as problem:
            render.note(problem.message.removeprefix("occurred_at: "))
            continue
        why = None if how.policy.any_date else explain_unlikely_date(instant, clock.now())
        if why is None:
            return format_instant(instant)
        render.note(why)


def _players(known: Suggestions, joints: CellSyntax) -> tuple[str, ...]:
    """Return who was first, second and so on, until an empty line."""
    partners = f", partners by {' or '.join(joints.partners)}" if joints.partners else ""
    render.note(f"players by places, tied ones joined by ={partners}, scores as anna:3; an empty line ends")
    cells, there = list[str](), list[str]()
    while True:
        left = [name for name in known.players if name not in there]
        cell = ask_line(f"place {len(there) + 1}: ", left)
        try:
            sides = [side._replace(players=[*map(to_nfc, side.players)]) for side in joints.split(cell)]
        except Refused as problem:
            render.note(problem.message)
            continue
        names = [name for side in sides for name in side.players]
        if not cell and len(there) > 1:
            return tuple(cells)
        if not all(names):
            render.note("a game has at least two players" if not cell else "a name is missing beside =")
        elif twice := next((name for name in names if (there + names).count(name) > 1), None):
            render.note(f"{quote(twice)} is there already")
        else:
            cells.append(joints.join(sides))
            there += names


def _game_id(how: WriteContext, at: str, known: Suggestions) -> str:
    """Return the game's own id; by default its date and a number of the day, as in a table without ids."""
    played = clock.now() if at == NOW else read_instant(at, known.times.zone)
    day = f"{local_time(played, known.times.zone):%Y-%m-%d}"
    with how.ledger.reading() as connection:
        free = next(name for number in count(1) if not first_positions(connection, [name := f"{day}-{number}"]))
    return ask_line(f"its own id [{free}]: ", []) or free


def _show(plan: Proposal, event: dict[str, Any], times: Times) -> None:
    """What the game is, and what it changes; or why it is refused."""
    data = event["data"]
    for rejection in plan.result.rejected:
        render.note(rejection_line(rejection))
    if plan.is_refused:
        return
    when = times.played_stated(moment(parse_instant(event["occurred_at"])))
    render.echo()
    render.hanging(render.plain(f"{data['game']}, {when}, id {data['game_id']}"), 2)
    render.hanging(render.plain(result_told(data)), 2)
    note_new(plan.result)
    note_homeless(plan.result)
    if plan.is_small():
        print_impact(plan.impact())
    render.echo()
