"""`correct`, `void`, `reinstate`, `player`: fixing mistakes, and showing what that changes."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import click

from ratings_ledger.cli.arguments.command import OneOf, command, group
from ratings_ledger.cli.arguments.options import instant_or_now, zone_option
from ratings_ledger.cli.arguments.tables import OPTIONS, Kept, find_whole_ids, read_as, table_options
from ratings_ledger.cli.arguments.views import decoded
from ratings_ledger.cli.arguments.writing import WriteContext, taking_games, write_command
from ratings_ledger.cli.output import render
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.canonical import format_instant, parse_object
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.revisions import RevisedGame, live_game
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.intake.corrections import (
    RequestedChanges,
    add_scores,
    correct_from_table,
    place_players,
    refuse_same,
    restore_recorded_ids,
    void_batches,
    void_from_file,
)
from ratings_ledger.ledger.intake.tables.aliases import own_names
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import Log, home_zone
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.ledger.validation.repeated_games import describe_sets, keep_sets
from ratings_ledger.projections.queries.ladders_at import require_player

SHOWN_GAMES = 20

reason_option = click.option("--reason", metavar="TEXT", required=True, help="Why; it is recorded.")
expect_option = click.option(
    "--expect", metavar="POSITION", type=click.IntRange(min=1), help="Refuse if an event later than this changed it."
)


@command()
@click.argument("game_id", metavar="[GAME]", type=to_nfc, required=False)
@click.argument("players", nargs=-1)
@click.option("--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True),
              help="Many at once: a table as import reads it, with the games as they should be.")  # fmt: skip
@reason_option
@click.option("--score", metavar="SCORES", help="The scores in the order of the places, such as 3:2.")
@click.option("--game", metavar="NAME", help="Which game it was, such as catan.")
@click.option("--at", metavar="TIME", help="When it really ended.")
@zone_option
@click.option("--group", help="The game group.")
@click.option("--city", help="The city.")
@click.option("--league", help="The league.")
@click.option("--season", help="The season.")
@click.option("--edit", is_flag=True, help="Open the game in your editor.")
@expect_option
@table_options
@taking_games("all")
def correct(
    how: WriteContext, game_id: str | None, players: tuple[str, ...], file: str | None, reason: str, at: str | None,
    zone: str | None, edit: bool, expect: int | None, score: str | None, **said: Any,
) -> int:  # fmt: skip
    """Correct the result, date or place of GAME. PLAYERS stand in the order of their places, tied ones joined by =.

    \b
        ratings correct g-7 anna ben=cleo dora --reason "wrong way round"
        ratings correct t-1 ben anna --score 3:2 --reason "wrong way round"
        ratings correct g-7 --at 2010-03-05T19:30Z --reason "wrong day"
        ratings correct --file games.csv --reason "from the score sheets"

    What is not named stays as it is; scores go with the places where they would contradict them, unless --score says
    them, or PLAYERS such as anna:3. With neither PLAYERS
    nor options for the game, its complete data is read as JSON from standard input, as `ratings games GAME --format
    json` prints it. From a file, all games are corrected or none; columns that it lacks say nothing, and games that are
    already recorded like this are left alone. --map, --profile and what else `import` has for tables say how a file is
    read.
    """
    given = {name: label for name, label in said.items() if name not in OPTIONS and label is not None}
    if file is not None:
        if game_id is not None or at is not None or edit or score is not None or expect is not None or given:
            told = "--file has the games with everything to correct; it goes only with what says how a table is read"
            raise click.UsageError(f"{told}, such as --map, --profile and --zone")
        return _correct_many(how, file, reason, *read_as(said, zone))
    if any(said[name] for name in OPTIONS):
        raise click.UsageError("--map, --profile and what else says how a table is read go with --file")
    if game_id is None:
        raise click.UsageError("name a GAME, or many with --file")
    moved = {} if at is None else {"occurred_at": format_instant(instant_or_now(how.ledger, at, zone))}
    with how.ledger.reading() as connection:
        game = live_game((log := Log(connection)).about(f"game:{game_id}"))
        hint = log.similar("game", game_id) if game is None else ""
        people = identities(connection)
        is_scored = score is not None or any(":" in cell for cell in players)
        whole = find_whole_ids(connection, ()) if is_scored else frozenset[str]()
    try:
        if game is None:
            raise Refused("game-unknown", f"no game {quote(game_id)} is recorded; see: ratings games{hint}")
        if edit:
            new = restore_recorded_ids(_edited(game), game, people)
        elif players or given or moved or score is not None:
            # an empty label removes it
            new = {name: value for name, value in {**game.data, **given, **moved}.items() if value != ""}
            cells = players if score is None else add_scores(game, players, people, score=score, whole=whole)
            new |= {"participants": place_players(game, cells, people, whole)} if cells else {}
            if score is None:
                _note_scores(game.data, new)
            if "extra" in game.data:
                new = keep_sets(game.data, new)
                if (sets := describe_sets(game.data)) and not describe_sets(new):
                    render.note(render.plain(f"note: the sets {sets} led to another result and are left out"))
        else:
            new = restore_recorded_ids(_read_game(), game, people)
    except Refused as problem:
        return how.refuse("game.corrected", problem)
    data = {"game_id": game_id, "reason": reason, "game": new}
    return _enter(how, "game.corrected", data, expect or game.last.event_id, refuse=partial(refuse_same, game))


def _note_scores(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Note whom a correction of the places gives another score."""
    before = {one["player"]: one.get("score") for one in old["participants"]}
    moved = [one for one in new["participants"] if before.get(one["player"], one.get("score")) != one.get("score")]
    if moved:
        scores = ", ".join(f"{one['player']} {one['score']}" for one in moved)
        render.note(render.plain(f"note: the scores go with the places: {scores}"))


def _correct_many(how: WriteContext, file: str, reason: str, options: TableOptions, kept: Kept) -> int:
    """Correct the games of a table that is read by these options, and by the files that say more."""
    options, problems = kept.read(options)
    how = replace(how, policy=how.policy._replace(accepted=own_names(options.aliases)))

    def read(decided_at: int) -> RequestedChanges:
        if problems:
            return RequestedChanges([*problems], [], {})
        with how.ledger.reading() as connection:
            whole = find_whole_ids(connection, options.partners)
            zoned = options._replace(zone=options.zone or home_zone(connection), whole=whole)
            return correct_from_table(Log(connection), identities(connection), file, reason, decided_at, zoned)

    return _enter_many(how, "game.corrected", "recorded like this", read)


def _voids(how: WriteContext, file: str | None, batch: str | None, reason: str, decided_at: int) -> RequestedChanges:
    with how.ledger.reading() as connection:
        if batch is not None:
            return void_batches(connection, batch, reason, decided_at)
        return void_from_file(Log(connection), str(file), reason, decided_at)


def _edited(game: RevisedGame) -> dict[str, Any]:
    text = render.json_text({"occurred_at": format_instant(game.occurred_at), **game.data}, indent=2)
    edited = click.edit(text + "\n", extension=".json")
    if edited is None:
        raise click.ClickException("the editor was left without saving; nothing was recorded")
    return parse_object(edited.encode())


def _read_game() -> dict[str, Any]:
    if sys.stdin.isatty():
        raise click.UsageError("name the PLAYERS, what else to correct, or --edit; or give JSON on standard input")
    found = parse_object(sys.stdin.buffer.read(1 << 20))
    # the output of `ratings games GAME` and a whole event will do, too
    if isinstance(rows := found.get("rows"), list) and len(rows) == 1 and isinstance(rows[0], dict):
        found = rows[0]
    if isinstance(data := found.get("data"), dict):
        found = data | {"occurred_at": found.get("occurred_at")}
    return {name: value for name, value in found.items() if name not in ("position", "voided") and value is not None}


@command()
@click.argument("game_id", metavar="[GAME]", type=to_nfc, required=False)
@click.option("--event", metavar="ID|POSITION", type=to_nfc, help="Withdraw an event that is not a game's.")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True),
              help="Many games at once: one id per line.")  # fmt: skip
@click.option("--batch", metavar="NAME|POSITION", type=to_nfc,
              help="All games that the imports of that name brought, or the one at a position.")  # fmt: skip
@reason_option
@expect_option
@write_command
def void(
    how: WriteContext, game_id: str | None, event: str | None, file: str | None, batch: str | None, reason: str,
    expect: int | None,
) -> int:  # fmt: skip
    """Void GAME, so that it counts for nothing; or withdraw an adjustment, a rename, an account or a ruleset.

    A voided game can be reinstated. A withdrawn event is back in force when the event that withdrew it is voided. From
    a file or a batch, all games are voided or none; those already voided are left alone.
    """
    many = file is not None or batch is not None
    if [game_id, event, file, batch].count(None) != 3 or (many and expect is not None):
        raise click.UsageError(
            "name a GAME, or another event with --event, or many games with --file or --batch, without --expect"
        )
    if many:
        return _enter_many(how, "game.voided", "voided", partial(_voids, how, file, batch, reason))
    if event is None:
        return _enter(how, "game.voided", {"game_id": game_id, "reason": reason}, expect)
    with how.ledger.reading() as connection:
        log = Log(connection)
        if log.event(event) is None and event.isascii() and event.isdigit() and len(event) <= 18:
            event = log.id_at(int(event)) or event
    return _enter(how, "event.voided", {"id": event, "reason": reason}, expect)


@command()
@click.argument("game_id", metavar="GAME", type=to_nfc)
@reason_option
@expect_option
@write_command
def reinstate(how: WriteContext, game_id: str, reason: str, expect: int | None) -> int:
    """Make a voided GAME count again, as it was last corrected."""
    return _enter(how, "game.reinstated", {"game_id": game_id, "reason": reason}, expect)


@group()
def player() -> None:
    """Give a player another id or account, or merge two ids of one person."""


@player.command()
@click.argument("player_id", metavar="PLAYER", type=to_nfc)
@click.argument("new_player", metavar="NEW", type=to_nfc)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded.")
@write_command
def rename(how: WriteContext, player_id: str, new_player: str, reason: str | None) -> int:
    """PLAYER is NEW, from their first game on. If NEW has games, too, they are one person's (a merge)."""
    data = {"player": player_id, "new_player": new_player, **({} if reason is None else {"reason": reason})}
    return _enter(how, "player.renamed", data)


@player.command()
@click.argument("player_id", metavar="PLAYER", type=to_nfc)
@click.argument("new_player", metavar="KEPT", type=to_nfc)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded.")
@write_command
def merge(how: WriteContext, player_id: str, new_player: str, reason: str | None) -> int:
    """PLAYER and KEPT are one person under two ids. From their first game on, all games are those of KEPT.

    It records a rename; both ids must be known. Two ids that met in one game are two people, and are refused. To take
    it back: ratings undo.
    """
    try:
        with how.ledger.reading() as connection:
            facts = decoded(connection)
            for name in (player_id, new_player):
                require_player(facts, name)
    except Unknown as problem:
        return how.refuse("player.renamed", Refused("player-unknown", str(problem)))
    data = {"player": player_id, "new_player": new_player, **({} if reason is None else {"reason": reason})}
    return _enter(how, "player.renamed", data)


@player.command()
@click.argument("player_id", metavar="PLAYER", type=to_nfc)
@click.argument("kind", type=OneOf(["premium", "free"]))
@click.option("--at", metavar="TIME", help="From when on.  [default: now]")
@zone_option
@write_command
def account(how: WriteContext, player_id: str, kind: str, at: str | None, zone: str | None) -> int:
    """PLAYER has this account from then on."""
    return _enter(how, "player.account_changed", {"player": player_id, "account": kind}, at=at, zone=zone)


@group()
def club() -> None:
    """Give a club another name."""


@club.command("rename")
@click.argument("club_name", metavar="CLUB", type=to_nfc)
@click.argument("new_club", metavar="NEW", type=to_nfc)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded.")
@write_command
def rename_club(how: WriteContext, club_name: str, new_club: str, reason: str | None) -> int:
    """CLUB is NEW, from its first game on. If NEW has games, too, they are one club's (a merge)."""
    data = {"club": club_name, "new_club": new_club, **({} if reason is None else {"reason": reason})}
    return _enter(how, "club.renamed", data)


def _enter(
    how: WriteContext, type_name: str, data: dict[str, Any], seen: str | int | None = None, *, at: str | None = None,
    zone: str | None = None, refuse: Callable[[Draft], None] | None = None,
) -> int:  # fmt: skip
    """Enter one event; `seen` is the last event about its game or event when somebody looked: its id or position."""
    occurred_at = format_instant(instant_or_now(how.ledger, at, zone))
    subject = f"game:{data['game_id']}" if "game_id" in data else f"event:{data.get('id')}"
    plan = how.propose(
        [{"type": type_name, "occurred_at": occurred_at, "data": data}],
        based_on={} if seen is None else {subject: seen},
    )
    draft = None if refuse is None else next(plan.drafts(), None)
    if refuse is not None and draft is not None:
        try:
            refuse(draft)
        except Refused as problem:
            plan.refuse(problem)
    return how.enter(type_name, plan)


def _enter_many(how: WriteContext, type_name: str, state: str, read: Callable[[int], RequestedChanges]) -> int:
    """Enter what a file asks for; games that are already in this `state` are left alone."""
    try:
        found = read(clock.now())
    except Refused as problem:
        return how.refuse(type_name, problem)
    if how.form == "table" and found.unchanged:
        told = render.first_of([*map(render.csv_item, found.unchanged)], SHOWN_GAMES)
        render.note(render.plain(f"note: {render.count(len(found.unchanged), 'game')} already {state}: {told}"))
    return how.enter(type_name, how.propose(found.items, based_on=found.looked_at), found.unchanged)
