"""Implement `correct`, `void`, `reinstate`, `player` and `club`: fix mistakes, and show the effect."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import click

from ratings_ledger.cli.arguments.command import OneOf, command, group
from ratings_ledger.cli.arguments.options import read_instant_or_now, zone_option
from ratings_ledger.cli.arguments.tables import (
    TABLE_OPTIONS,
    TableFiles,
    add_earlier_answers,
    add_ledger_facts,
    check_partner_separators,
    find_unsplittable_ids,
    read_table_options,
    table_options,
)
from ratings_ledger.cli.arguments.views import decode_for_command
from ratings_ledger.cli.arguments.writing import CommandFunction, WriteContext, with_game_options, write_command
from ratings_ledger.cli.output import render
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.canonical import format_instant, parse_object
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.revisions import RevisedGame, apply_revisions
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.intake.corrections import (
    RequestedChanges,
    add_scores,
    correct_from_table,
    join_sides,
    place_players,
    refuse_unchanged,
    restore_recorded_ids,
    void_batches,
    void_from_file,
)
from ratings_ledger.ledger.intake.parsing import CellSyntax
from ratings_ledger.ledger.intake.tables.aliases import list_own_aliases
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.layouts.result_cells import count_sets, format_sets
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.validation.identities import Identities, read_identities
from ratings_ledger.ledger.validation.repeated_games import describe_result, describe_sets, keep_sets, put_sets
from ratings_ledger.projections.facts.lookups import require_player

GAMES_SHOWN_MAX = 20

reason_option = click.option("--reason", metavar="TEXT", required=True, help="The reason, which is recorded.")


def expect_option(subject: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return the option --expect of a command that changes `subject`, such as "the game"."""
    return click.option(
        "--expect",
        metavar="POSITION",
        type=click.IntRange(min=1),
        help=f"Refuse unless the last event about {subject} is at POSITION.",
    )


@command()
@click.argument("game_id", metavar="[GAME]", type=to_nfc, required=False)
@click.argument("players", nargs=-1)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Correct many games: a table of the corrected games, as for import.",
)
@reason_option
@click.option("--score", metavar="SCORES", help="The scores in the order of the places, such as 3:2.")
@click.option("--sets", metavar="SETS", help="The sets, the winner's points first, such as '11:7 9:11 11:3'.")
@click.option("--game", metavar="NAME", help="The game that was played, such as catan.")
@click.option("--at", metavar="TIME", help="The time at which the game really ended.")
@zone_option
@click.option("--group", help="The game group.")
@click.option("--city", help="The city.")
@click.option("--league", help="The league.")
@click.option("--season", help="The season.")
@click.option("--edit", is_flag=True, help="Open the game in your editor.")
@expect_option("the game")
@table_options
@with_game_options("all")
def correct(  # long, because each option is a parameter
    context: WriteContext,
    game_id: str | None,
    players: tuple[str, ...],
    file: str | None,
    reason: str,
    at: str | None,
    zone: str | None,
    edit: bool,
    expect: int | None,
    score: str | None,
    sets: str | None,
    **options: Any,
) -> int:
    """Correct the result, date or other data of GAME. Name PLAYERS in the order of their places; = joins ties.

    \b
        ratings correct g-7 anna ben=cleo dora --reason "wrong way round"
        ratings correct t-1 ben anna --score 3:2 --reason "wrong way round"
        ratings correct d-1 --partners + cleo+dora anna+ben --reason "swapped"
        ratings correct t-1 --sets "11:7 9:11 11:3" --reason "wrong third set"
        ratings correct g-7 --at 2010-03-05T19:30Z --reason "wrong day"
        ratings correct --file games.csv --reason "from the score sheets"

    Anything you leave out stays unchanged. If the scores contradict the new places, each place keeps its score; sets
    that contradict the new result are dropped. --score, PLAYERS such as anna:3, and --sets give new values. Without
    PLAYERS and options for the game, the complete data is read as JSON from standard input, as `ratings games GAME
    --format json` prints it. From a file, all games are corrected or none; missing columns change nothing, and games
    that are already recorded like this are skipped.
    --map, --profile and the other table options of `import` describe the file.
    """
    partners = options["partners"]
    has_result = score is not None or sets is not None
    labels = {name: label for name, label in options.items() if name not in TABLE_OPTIONS and label is not None}
    if file is not None:
        if game_id is not None or at is not None or edit or expect is not None or labels or has_result:
            message = "--file contains all corrections; leave out GAME, PLAYERS and the options for a single game"
            raise click.UsageError(f"{message}, such as --score and --at")
        return _correct_many(context, file, reason, *read_table_options(options, zone))
    if any(options[name] for name in TABLE_OPTIONS if name != "partners"):
        raise click.UsageError(
            "options for reading a table, such as --map, work only with --file; add --file, or leave them out"
        )
    if edit and (players or partners or labels or at is not None or zone is not None or has_result):
        raise click.UsageError("--edit opens the complete game; leave out PLAYERS and the other options for its data")
    if partners and not players:
        raise click.UsageError("--partners needs PLAYERS or --file; add one of them")
    if partners:
        check_partner_separators(partners)
    if game_id is None:
        raise click.UsageError("name a GAME, or many games with --file")
    new_time = {} if at is None else {"occurred_at": format_instant(read_instant_or_now(context.ledger, at, zone))}
    with context.ledger.reading() as connection:
        game = apply_revisions((log := Log(connection)).about(f"game:{game_id}"))
        hint = log.suggest_similar("game", game_id) if game is None else ""
        people = read_identities(connection)
        needs_ids = partners or has_result or any(":" in cell for cell in players)
        syntax = CellSyntax(partners, find_unsplittable_ids(connection, partners) if needs_ids else ())
    try:
        if game is None:
            raise Refused("game-unknown", f"no game {quote(game_id)} is recorded; see: ratings games{hint}")
        if edit:
            new = restore_recorded_ids(_edit_game(game), game, people)
        elif players or labels or new_time or has_result:
            # an empty label removes it
            new = {name: value for name, value in {**game.data, **labels, **new_time}.items() if value != ""}
            other_options = {"at": at, "zone": zone, "expect": expect, "score": score, "sets": sets, "reason": reason}
            option_values = labels | {name: value for name, value in other_options.items() if value is not None}
            option_words = [word for name, value in option_values.items() for word in (f"--{name}", str(value))]
            _refuse_split_teams(game, players, people, syntax, option_words)
            scores = score if sets is None else count_sets(sets, score)
            cells = players if scores is None else add_scores(game, players, people, score=scores, syntax=syntax)
            new |= {"participants": place_players(game, cells, people, syntax)} if cells else {}
            if sets is not None:
                new = put_sets(new, format_sets(sets))
            elif "extra" in game.data:
                new = keep_sets(game.data, new)
            has_scores = any(side.score is not None for cell in cells if ":" in cell for side in syntax.split(cell))
            _note_adapted_results(game.data, new, has_scores=has_scores, has_sets=sets is not None)
        else:
            new = restore_recorded_ids(_read_game(), game, people)
    except Refused as problem:
        return context.refuse("game.corrected", problem)
    data = {"game_id": game_id, "reason": reason, "game": new}
    based_on = expect or game.last.event_id
    return _record_event(context, "game.corrected", data, based_on=based_on, refuse=partial(refuse_unchanged, game))


def _refuse_split_teams(
    game: RevisedGame, players: tuple[str, ...], people: Identities, syntax: CellSyntax, option_words: list[str]
) -> None:
    """Raise `Refused` (side-disagrees), with the command to run instead, for PLAYERS that split the teams of a game.

    `option_words` are the options of the correction with their values, which the command to run instead repeats.
    """
    separator_and_sides = None if syntax.partners else join_sides(game, players, people, syntax)
    if separator_and_sides is None:
        return
    game_id, (separator, sides) = game.data["game_id"], separator_and_sides
    corrected = shlex.join(["ratings", "correct", game_id, "--partners", separator, *sides, *option_words])
    raise Refused(
        "side-disagrees", f"{quote(game_id)} is a game of teams; name each side with its partners: {corrected}"
    )


def _note_adapted_results(old: dict[str, Any], new: dict[str, Any], *, has_scores: bool, has_sets: bool) -> None:
    """Note which scores and sets were adapted to the corrected result, unless the command gives them."""
    old_scores = {participant["player"]: participant.get("score") for participant in old["participants"]}
    changed = [
        participant
        for participant in new["participants"]
        if old_scores.get(participant["player"], participant.get("score")) != participant.get("score")
    ]
    if changed and not has_scores:
        scores = ", ".join(f"{participant['player']} {participant['score']}" for participant in changed)
        render.note(render.plain(f"note: the scores were adapted to the new places: {scores}"))
    if has_sets or "extra" not in old or not (sets := describe_sets(old)):
        return
    if not describe_sets(new):
        render.note(
            render.plain(f"note: the sets {sets} contradict the new result and are left out; give others with --sets")
        )
    elif describe_result(old) != describe_result(new):
        winners = describe_result(new).partition(", ")[0].removeprefix("1 ")
        render.note(render.plain(f"note: the sets {sets} now count for {winners}; give others with --sets"))


def _correct_many(context: WriteContext, file: str, reason: str, options: TableOptions, table_files: TableFiles) -> int:
    """Correct the games of a table. The options and `table_files` say how to read it."""
    options, problems = table_files.read(options)
    context = replace(context, policy=context.policy._replace(accepted=list_own_aliases(options.aliases)))

    def read(decided_at: int) -> RequestedChanges:
        if problems:
            return RequestedChanges([*problems], [], {})
        with context.ledger.reading() as connection:
            complete_options = add_earlier_answers(connection, add_ledger_facts(connection, options), [file])
            return correct_from_table(
                Log(connection),
                read_identities(connection),
                file,
                reason=reason,
                decided_at=decided_at,
                options=complete_options,
            )

    return _record_events(context, "game.corrected", "recorded like this", read)


def _read_voids(
    context: WriteContext, file: str | None, batch: str | None, reason: str, decided_at: int
) -> RequestedChanges:
    with context.ledger.reading() as connection:
        if batch is not None:
            return void_batches(connection, batch, reason, decided_at)
        return void_from_file(Log(connection), str(file), reason, decided_at)


def _edit_game(game: RevisedGame) -> dict[str, Any]:
    text = render.to_json({"occurred_at": format_instant(game.occurred_at), **game.data}, indent=2)
    edited = click.edit(text + "\n", extension=".json")
    if edited is None:
        raise click.ClickException("the editor was closed without saving; nothing was recorded")
    return parse_object(edited.encode())


def _read_game() -> dict[str, Any]:
    """Return the complete game on standard input. Raises `Refused`, and `click.UsageError` at a terminal."""
    remedy = "name PLAYERS, pass --edit or an option with the correction, such as --at, or give JSON on standard input"
    if sys.stdin.isatty():
        raise click.UsageError(remedy)
    if not (content := sys.stdin.buffer.read(1 << 20)).strip():
        raise Refused("bad-json", f"there is no game on standard input; {remedy}")
    game = parse_object(content)
    # the output of `ratings games GAME --format json` and a whole event are accepted, too
    if isinstance(rows := game.get("rows"), list) and len(rows) == 1 and isinstance(rows[0], dict):
        game = rows[0]
    if isinstance(data := game.get("data"), dict):
        game = data | {"occurred_at": game.get("occurred_at")}
    return {name: value for name, value in game.items() if name not in ("position", "voided") and value is not None}


@command()
@click.argument("game_id", metavar="[GAME]", type=to_nfc, required=False)
@click.option("--event", metavar="ID|POSITION", type=to_nfc, help="Withdraw an event that is not about a game.")
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), help="Void many games: one id per line."
)
@click.option(
    "--batch",
    metavar="NAME|POSITION",
    type=to_nfc,
    help="Void all games of the imports with this name, or of the import at a position.",
)
@reason_option
@expect_option("the game or event")
@write_command
def void(
    context: WriteContext,
    game_id: str | None,
    event: str | None,
    file: str | None,
    batch: str | None,
    reason: str,
    expect: int | None,
) -> int:
    """Void GAME, or withdraw an event that is not about a game.

    A voided game does not count until it is reinstated. Use --event to withdraw adjustments, renames, accounts and
    rulesets; void the withdrawal to put the event back in force. From a file or a batch, all games are voided or
    none; games that are already voided are skipped.
    """
    has_many = file is not None or batch is not None
    if [game_id, event, file, batch].count(None) != 3 or (has_many and expect is not None):
        raise click.UsageError(
            "pass exactly one of GAME, --event, --file and --batch; --expect works only with GAME or --event"
        )
    if has_many:
        return _record_events(context, "game.voided", "voided", partial(_read_voids, context, file, batch, reason))
    if event is None:
        return _record_event(context, "game.voided", {"game_id": game_id, "reason": reason}, based_on=expect)
    with context.ledger.reading() as connection:
        log = Log(connection)
        if log.event(event) is None and event.isascii() and event.isdigit() and len(event) <= 18:
            event_id = log.find_event_id(int(event))
            if event_id is None:
                message = f"no event has the id {quote(event)} or is at this position; see: ratings log"
                return context.refuse("event.voided", Refused("event-unknown", message))
            event = event_id
    return _record_event(context, "event.voided", {"id": event, "reason": reason}, based_on=expect)


@command()
@click.argument("game_id", metavar="GAME", type=to_nfc)
@reason_option
@expect_option("the game")
@write_command
def reinstate(context: WriteContext, game_id: str, reason: str, expect: int | None) -> int:
    """Make a voided GAME count again, as it was last corrected."""
    return _record_event(context, "game.reinstated", {"game_id": game_id, "reason": reason}, based_on=expect)


@group()
def player() -> None:
    """Rename or merge players, or change an account."""


@player.command()
@click.argument("player_id", metavar="PLAYER", type=to_nfc)
@click.argument("new_player", metavar="NEW", type=to_nfc)
@click.option("--reason", metavar="TEXT", help="The reason, which is recorded.")
@write_command
def rename(context: WriteContext, player_id: str, new_player: str, reason: str | None) -> int:
    """Rename PLAYER to NEW, from their first game on. If NEW also has games, the two ids are merged."""
    data = {"player": player_id, "new_player": new_player, **({} if reason is None else {"reason": reason})}
    return _record_event(context, "player.renamed", data)


@player.command()
@click.argument("player_id", metavar="PLAYER", type=to_nfc)
@click.argument("new_player", metavar="KEPT", type=to_nfc)
@click.option("--reason", metavar="TEXT", help="The reason, which is recorded.")
@write_command
def merge(context: WriteContext, player_id: str, new_player: str, reason: str | None) -> int:
    """Merge PLAYER into KEPT, two ids of one person. All games of PLAYER then belong to KEPT.

    Both ids must be known. The merge is recorded as a rename, which `ratings undo` takes back. Ids that met in one
    game are two people, so they are refused.
    """
    try:
        with context.ledger.reading() as connection:
            facts = decode_for_command(connection)
            for name in (player_id, new_player):
                require_player(facts, name)
    except Unknown as problem:
        return context.refuse("player.renamed", Refused("player-unknown", str(problem)))
    data = {"player": player_id, "new_player": new_player, **({} if reason is None else {"reason": reason})}
    return _record_event(context, "player.renamed", data)


@player.command()
@click.argument("player_id", metavar="PLAYER", type=to_nfc)
@click.argument("kind", type=OneOf(["premium", "free"]))
@click.option("--at", metavar="TIME", help="The time from which the account applies.  [default: now]")
@zone_option
@write_command
def account(context: WriteContext, player_id: str, kind: str, at: str | None, zone: str | None) -> int:
    """Set the account of PLAYER, from now or --at on."""
    return _record_event(context, "player.account_changed", {"player": player_id, "account": kind}, at=at, zone=zone)


@group()
def club() -> None:
    """Rename a club."""


@club.command("rename")
@click.argument("club_name", metavar="CLUB", type=to_nfc)
@click.argument("new_club", metavar="NEW", type=to_nfc)
@click.option("--reason", metavar="TEXT", help="The reason, which is recorded.")
@write_command
def rename_club(context: WriteContext, club_name: str, new_club: str, reason: str | None) -> int:
    """Rename CLUB to NEW, from its first game on. If NEW also has games, the two clubs are merged."""
    data = {"club": club_name, "new_club": new_club, **({} if reason is None else {"reason": reason})}
    return _record_event(context, "club.renamed", data)


def _record_event(
    context: WriteContext,
    type_name: str,
    data: dict[str, Any],
    *,
    based_on: str | int | None = None,
    at: str | None = None,
    zone: str | None = None,
    refuse: Callable[[Draft], None] | None = None,
) -> int:
    """Record one event, report it, and return the exit code.

    Args:
        context: the ledger, policy and output format.
        type_name, data: the type and the data of the event.
        based_on: the id or position of the last event on the same subject that the user has seen.
        at, zone: the time of the event, as typed, and its time zone; by default now.
        refuse: raises `Refused` for a draft that must not be recorded.
    """
    occurred_at = format_instant(read_instant_or_now(context.ledger, at, zone))
    subject = f"game:{data['game_id']}" if "game_id" in data else f"event:{data.get('id')}"
    proposal = context.propose(
        [{"type": type_name, "occurred_at": occurred_at, "data": data}],
        based_on={} if based_on is None else {subject: based_on},
    )
    draft = None if refuse is None else next(proposal.drafts(), None)
    if refuse is not None and draft is not None:
        try:
            refuse(draft)
        except Refused as problem:
            proposal.refuse(problem)
    return context.append_and_report(type_name, proposal)


def _record_events(
    context: WriteContext, type_name: str, state: str, read_requests: Callable[[int], RequestedChanges]
) -> int:
    """Record the events that a file or batch requests. Skip games that are already in the `state`, such as voided."""
    try:
        requested = read_requests(clock.now())
    except Refused as problem:
        return context.refuse(type_name, problem)
    if context.output_format == "table" and requested.unchanged:
        games = render.join_first([*map(render.csv_item, requested.unchanged)], GAMES_SHOWN_MAX)
        render.note(render.plain(f"note: {render.count(len(requested.unchanged), 'game')} already {state}: {games}"))
    return context.append_and_report(
        type_name, context.propose(requested.items, based_on=requested.seen_events), requested.unchanged
    )
