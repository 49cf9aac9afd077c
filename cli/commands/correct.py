"""`correct`, `void`, `reinstate`, `player`: fixing mistakes, and showing what that changes."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

import click

from cli.arguments.command import command, group
from cli.arguments.game_files import Many, corrections, note_unchanged, voids
from cli.arguments.moments import instant_or_now, zone_option
from cli.arguments.options import by_option, composed, ignore_clock_option
from cli.arguments.preview import Preview
from cli.arguments.result_options import (
    allow_uncounted_option,
    any_date_option,
    new_names_option,
    placed,
    refused_names,
    result_format,
    strict_option,
)
from cli.output import render
from cli.output.appended import SHOWN_REJECTIONS, new_told, note_new, rejection_line, tell_new_ladders
from cli.output.impact import impact_json, note_failed, print_impact
from ledger import clock
from ledger.events.canonical import format_instant, parse_object
from ledger.events.game_types import GAME_TYPES
from ledger.events.games import seats_of
from ledger.events.revisions import RevisedGame, live_game
from ledger.events.types import Draft, meaning
from ledger.intake.csv_cells import TableOptions
from ledger.intake.files import STDIN, Item
from ledger.intake.importing import Imported, import_items
from ledger.rejections import Refused, Rejection, shown
from ledger.store.log import Log, home_zone
from ledger.store.opening import open_ledger
from ledger.validation.identities import Identities, identities
from ledger.validation.new_names import Newcomers, Refusing
from projections.admission.events import Admission
from projections.admission.new_ladders import NewLadders
from projections.queries.answers_compared import Impact

reason_option = click.option("--reason", metavar="TEXT", required=True, help="Why; it is recorded.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what it would change, write nothing.")
expect_option = click.option(
    "--expect", metavar="POSITION", type=click.IntRange(min=1), help="Refuse if an event later than this changed it."
)


class How(NamedTuple):
    """The ledger, and how a correcting command is carried out."""

    db: str
    by: str
    form: str
    dry_run: bool
    ignore_clock: bool


def writing(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of all correcting commands; they reach it as its first argument, `how`."""

    def carried_out(db: str, by: str, form: str, dry_run: bool, ignore_clock: bool, **rest: Any) -> int:
        return command(How(db, by, form, dry_run, ignore_clock), **rest)

    wrapped: Callable[..., int] = click.pass_obj(wraps(command)(carried_out))
    for decorator in (result_format, by_option, ignore_clock_option, dry_run_option):
        wrapped = decorator(wrapped)
    return wrapped


@command()
@click.argument("game_id", metavar="[GAME]", type=composed, required=False)
@click.argument("players", nargs=-1)
@click.option("--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True),
              help="Many at once: a table as import reads it, with the games as they should be.")  # fmt: skip
@reason_option
@click.option("--game", metavar="NAME", help="Which game it was, such as catan.")
@click.option("--at", metavar="TIME", help="When it really ended.")
@zone_option
@click.option("--group", help="The game group.")
@click.option("--city", help="The city.")
@click.option("--league", help="The league.")
@click.option("--season", help="The season.")
@click.option("--edit", is_flag=True, help="Open the game in your editor.")
@strict_option
@new_names_option
@any_date_option
@allow_uncounted_option
@expect_option
@writing
def correct(
    how: How, game_id: str | None, players: tuple[str, ...], file: str | None, reason: str, at: str | None,
    zone: str | None, edit: bool, strict: bool, new_names: str, any_date: bool, allow_uncounted: bool,
    expect: int | None, **labels: str | None,
) -> int:  # fmt: skip
    """Correct the result, date or place of GAME. PLAYERS stand in the order of their places, tied ones joined by =.

    \b
        ratings correct g-7 anna ben=cleo dora --reason "wrong way round"
        ratings correct g-7 --at 2010-03-05T19:30Z --reason "wrong day"
        ratings correct --file games.csv --reason "from the score sheets"

    What is not named stays as it is. With neither PLAYERS nor options for the game, its complete data is read as JSON
    from standard input, as `ratings games GAME --format json` prints it. From a file, all games are corrected or none;
    columns that it lacks say nothing, and games that are already recorded like this are left alone.
    """
    given = {name: label for name, label in labels.items() if label is not None}
    refusing = refused_names(new_names, strict, "all")
    if file is not None:
        if game_id is not None or at is not None or edit or expect is not None or given:
            raise click.UsageError("--file has the games with everything to correct; it goes only with --zone")
        return _enter_many(
            how, "game.corrected", "recorded like this", partial(_corrections, how.db, file, reason, zone),
            allow_uncounted=allow_uncounted, any_date=any_date, refusing=refusing, strict=strict,
        )  # fmt: skip
    if game_id is None:
        raise click.UsageError("name a GAME, or many with --file")
    moved = {} if at is None else {"occurred_at": format_instant(instant_or_now(open_ledger(how.db), at, zone))}
    with open_ledger(how.db).reading() as connection:
        game = live_game(Log(connection).about(f"game:{game_id}"))
        people = identities(connection)
    try:
        if game is None:
            raise Refused("game-unknown", f"no game {shown(game_id)} is recorded; see: ratings games")
        if edit:
            new = _under_recorded_ids(_edited(game), game, people)
        elif players or given or moved:
            # an empty label removes it
            new = {name: value for name, value in {**game.data, **given, **moved}.items() if value != ""}
            new |= {"participants": _replaced(game, players, people)} if players else {}
        else:
            new = _under_recorded_ids(_read_game(), game, people)
    except Refused as problem:
        return refuse_event(how, "game.corrected", problem)
    data = {"game_id": game_id, "reason": reason, "game": new}
    return _enter(
        how, "game.corrected", data, game.last.event_id, expect, allow_uncounted=allow_uncounted, any_date=any_date,
        refuse=partial(_refuse_same, game), refusing=refusing, strict=strict,
    )  # fmt: skip


def _corrections(db: str, file: str, reason: str, zone: str | None, decided_at: int) -> Many:
    with open_ledger(db).reading() as connection:
        options = TableOptions(zone or home_zone(connection))
        return corrections(Log(connection), identities(connection), file, reason, decided_at, options)


def _voids(db: str, file: str, reason: str, decided_at: int) -> Many:
    with open_ledger(db).reading() as connection:
        return voids(Log(connection), file, reason, decided_at)


def _replaced(game: RevisedGame, players: tuple[str, ...], people: Identities) -> list[dict[str, Any]]:
    """The participants at their new places; previous ones keep their ids and what else is known of them."""
    if game.data.get("kind", "placing") != "placing":
        raise click.UsageError(f"a game of kind {game.data['kind']} is corrected by --edit or JSON on standard input")
    before = {people.current(participant["player"]): participant for participant in game.data["participants"]}
    new: list[dict[str, Any]] = []
    for cell in players:
        place = seats_of({"participants": new}) + 1
        for player in placed((cell,)):
            there = before.get(people.current(composed(player["player"])), {})
            new.append({**player, **there, "place": place})
    try:
        GAME_TYPES["placing"].check({**game.data, "participants": new})
    except Refused as problem:
        hint = "" if problem.code != "score-contradicts-place" else "; --edit or JSON on standard input changes both"
        raise Refused(problem.code, problem.message + hint) from None
    return new


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


def _under_recorded_ids(new: dict[str, Any], game: RevisedGame, people: Identities) -> dict[str, Any]:
    """A game as it should be, in which previous participants keep the ids under which they were recorded.

    `ratings games` shows them under their current ids.
    """
    recorded = {
        people.current(participant["player"]): participant["player"] for participant in game.data["participants"]
    }

    def under(name: Any) -> Any:
        return recorded.get(people.current(composed(name)), name) if isinstance(name, str) else name

    participants = new.get("participants")
    if not people or not isinstance(participants, list) or not all(isinstance(one, dict) for one in participants):
        return new
    kept = [
        {name: under(value) if name in ("player", "replaces") else value for name, value in one.items()}
        for one in participants
    ]
    return {**new, "participants": kept}


def _refuse_same(before: RevisedGame, draft: Draft) -> None:
    new = parse_object(draft.data.encode())["game"]
    dated = new.pop("occurred_at", None)
    same = dated is None or dated == format_instant(before.occurred_at)
    if same and meaning("game.recorded", 0, new) == meaning("game.recorded", 0, before.data):
        raise Refused("nothing-to-correct", f"{shown(new['game_id'])} is already recorded like this")


@command()
@click.argument("game_id", metavar="[GAME]", type=composed, required=False)
@click.option("--event", metavar="ID|POSITION", type=composed, help="Withdraw an event that is not a game's.")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True),
              help="Many games at once: one id per line.")  # fmt: skip
@reason_option
@expect_option
@writing
def void(how: How, game_id: str | None, event: str | None, file: str | None, reason: str, expect: int | None) -> int:
    """Void GAME, so that it counts for nothing; or withdraw an adjustment, a rename, an account or a ruleset.

    A voided game can be reinstated. A withdrawn event is back in force when the event that withdrew it is voided. From
    a file, all games are voided or none; those already voided are left alone.
    """
    if [game_id, event, file].count(None) != 2 or (file is not None and expect is not None):
        raise click.UsageError(
            "name a GAME, or another event with --event, or many games with --file, without --expect"
        )
    if file is not None:
        return _enter_many(how, "game.voided", "voided", partial(_voids, how.db, file, reason))
    if event is None:
        return _enter(how, "game.voided", {"game_id": game_id, "reason": reason}, expect=expect)
    with open_ledger(how.db).reading() as connection:
        log = Log(connection)
        if log.event(event) is None and event.isascii() and event.isdigit() and len(event) <= 18:
            event = log.id_at(int(event)) or event
    return _enter(how, "event.voided", {"id": event, "reason": reason}, expect=expect)


@command()
@click.argument("game_id", metavar="GAME", type=composed)
@reason_option
@expect_option
@writing
def reinstate(how: How, game_id: str, reason: str, expect: int | None) -> int:
    """Make a voided GAME count again, as it was last corrected."""
    return _enter(how, "game.reinstated", {"game_id": game_id, "reason": reason}, expect=expect)


@group()
def player() -> None:
    """Give a player another id, or another account."""


@player.command()
@click.argument("player_id", metavar="PLAYER", type=composed)
@click.argument("new_player", metavar="NEW", type=composed)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded.")
@writing
def rename(how: How, player_id: str, new_player: str, reason: str | None) -> int:
    """PLAYER is NEW, from their first game on. If NEW has games, too, they are one person's (a merge)."""
    data = {"player": player_id, "new_player": new_player, **({} if reason is None else {"reason": reason})}
    return _enter(how, "player.renamed", data)


@player.command()
@click.argument("player_id", metavar="PLAYER", type=composed)
@click.argument("kind", type=click.Choice(["premium", "free"]))
@click.option("--at", metavar="TIME", help="From when on.  [default: now]")
@zone_option
@writing
def account(how: How, player_id: str, kind: str, at: str | None, zone: str | None) -> int:
    """PLAYER has this account from then on."""
    return _enter(how, "player.account_changed", {"player": player_id, "account": kind}, at=at, zone=zone)


def _enter(
    how: How,
    type_name: str,
    data: dict[str, Any],
    looked_at: str | None = None,
    expect: int | None = None,
    *,
    at: str | None = None,
    zone: str | None = None,
    allow_uncounted: bool = False,
    any_date: bool = False,
    refuse: Callable[[Draft], None] = lambda draft: None,
    refusing: Refusing = "",
    strict: bool = False,
) -> int:
    """Check one event, work out what it changes, append it unless this is a dry run, and report.

    `looked_at` is the event that the decision was based on, `expect` the position that this must have. With `refusing`,
    new names that are close to others are refused, and with `strict` all new names, and new ladders.
    """
    event = {
        "type": type_name,
        "occurred_at": format_instant(instant_or_now(open_ledger(how.db), at, zone)),
        "data": data,
    }
    return enter(
        how, type_name, [Item(STDIN, 1, event, None)], {} if looked_at is None else {_subject(data): looked_at}, expect,
        allow_uncounted=allow_uncounted,
        any_date=any_date, refuse=refuse, refusing=refusing, strict=strict,
    )  # fmt: skip


def _subject(data: Mapping[str, Any]) -> str:
    return f"game:{data['game_id']}"


def enter(
    how: How,
    type_name: str,
    items: Sequence[Item | Rejection],
    looked_at: Mapping[str, str] | None = None,
    expect: int | None = None,
    *,
    unchanged: list[str] | None = None,
    allow_uncounted: bool = False,
    any_date: bool = False,
    refuse: Callable[[Draft], None] = lambda draft: None,
    refusing: Refusing = "",
    strict: bool = False,
    ladders: Callable[..., Admission] = Admission,
) -> int:
    """Check some events of one type, work out what they change together, append all or none, and report.

    `looked_at` has by subject the events that decisions were based on; `unchanged` are the games that were left alone.
    """
    ledger = open_ledger(how.db)
    entered: list[Draft] = []
    preview = Preview(ledger)
    new_ladders = NewLadders(preview.facts, strict)

    def look(drafts: Iterator[Draft]) -> None:
        entered.extend(drafts)
        with ledger.reading() as connection:
            for draft in entered:
                _refuse_unexpected(Log(connection), draft, (looked_at or {}).get(draft.subject), expect)
                refuse(draft)
        if entered:
            preview(iter(entered))
            note_failed(preview.found or Impact())

    try:
        result = import_items(
            ledger, items, by=how.by, clock=clock.now, dry_run=how.dry_run, ignore_clock=how.ignore_clock,
            ladders=partial(ladders, allow_uncounted=allow_uncounted, new_ladders=new_ladders), checked=look,
            newcomers=Newcomers(preview.known, refusing, strict), any_date=any_date,
        )  # fmt: skip
    except Refused as problem:
        return refuse_event(how, type_name, problem)
    tell_new_ladders(result, new_ladders)
    if unchanged is None and len(items) == 1:
        result.rejected = [rejection._replace(file=None, line=None) for rejection in result.rejected]
    return _tell(how, type_name, result, entered, preview.found or Impact(), unchanged)


def _enter_many(
    how: How, type_name: str, state: str, read: Callable[[int], Many], **options: Any
) -> int:  # fmt: skip
    """Enter what a file asks for; games that are already in this `state` are left alone."""
    try:
        found = read(clock.now())
    except Refused as problem:
        return refuse_event(how, type_name, problem)
    if how.form == "table":
        note_unchanged(found.unchanged, state)
    return enter(how, type_name, found.items, found.looked_at, unchanged=found.unchanged, **options)


def refuse_event(how: How, type_name: str, problem: Refused) -> int:
    """Report that an event was refused before it was made."""
    return _tell(how, type_name, Imported(rejected=[problem.rejection()], rejected_count=1), [], Impact())


def _refuse_unexpected(log: Log, draft: Draft, looked_at: str | None, expect: int | None) -> None:
    """Raises `Refused` (changed-meanwhile) if a draft supersedes an event other than the one looked at."""
    last = None if draft.supersedes is None else log.event(draft.supersedes)
    if last is not None and (looked_at not in (None, last.event_id) or expect not in (None, last.position)):
        what = draft.subject.partition(":")[2]
        raise Refused(
            "changed-meanwhile", f"{shown(what)} was last changed at position {last.position}; look at it again"
        )


def _rejected(one: Rejection) -> dict[str, Any]:
    told = {"code": one.code, "message": one.message}
    return told if one.line is None else {"file": one.file, "line": one.line, **told}


def _tell(
    how: How, type_name: str, result: Imported, entered: list[Draft], found: Impact, unchanged: list[str] | None = None
) -> int:
    position = result.head.position if result.head and result.appended else None
    if how.form == "json":
        render.print_json(
            {
                "type": type_name,
                "event_id": entered[0].event_id if entered else None,
                "position": position,
                "appended": result.appended,
                "existing": result.existing,
                "dry_run": how.dry_run,
                "rejected": [_rejected(r) for r in result.rejected],
                **({} if unchanged is None else {"unchanged": unchanged}),
                **new_told(result),
                **impact_json(found),
            }
        )
        return int(result.rejected_count > 0)
    if result.rejected_count:
        for rejection in result.rejected[:SHOWN_REJECTIONS]:
            render.note(rejection_line(rejection))
        if (untold := result.rejected_count - SHOWN_REJECTIONS) > 0:
            render.note(f"... and {untold:,} more (--format json lists them)")
        render.echo("Nothing was recorded.")
        return 1
    if not entered:
        render.echo("This is already recorded.")
        return 0
    note_new(result)
    if how.dry_run:
        render.echo(f"Nothing was recorded; this is what {type_name} would do.")
    elif len(entered) > 1:
        render.echo(f"{len(entered):,} events {type_name} are recorded, the last at position {position:,}.")
    else:
        render.echo(f"{type_name} is recorded at position {position:,}.")
    print_impact(found, open_ledger(how.db))
    return 0
