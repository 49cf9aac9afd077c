"""`record`: one game, from the command line or as JSON."""

import sys
from functools import partial
from typing import Any

import click

from cli.arguments.command import command
from cli.arguments.moments import instant_or_now, zone_option
from cli.arguments.options import by_option, composed, ignore_clock_option
from cli.arguments.preview import Preview
from cli.arguments.result_options import (
    CHANGES_GAMES,
    allow_uncounted_option,
    any_date_option,
    new_names_option,
    placed,
    refused_names,
    result_format,
    strict_option,
)
from cli.output import render
from cli.output.appended import note_homeless, report_appended, tell_new_ladders
from ledger import clock
from ledger.events.canonical import format_instant, parse_object
from ledger.events.revisions import live_game
from ledger.events.types import read_event
from ledger.intake.files import STDIN, Item
from ledger.intake.importing import Imported, import_items
from ledger.rejections import Refused
from ledger.store.log import Log
from ledger.store.opening import Ledger, open_ledger
from ledger.validation.leagues import scheduled_games
from ledger.validation.new_names import Newcomers
from projections.admission.events import Admission
from projections.admission.new_ladders import NewLadders


@command()
@click.argument("players", nargs=-1)
@click.option("--game", metavar="NAME", help="Which game, such as catan.")
@click.option("--game-id", metavar="ID", help="The game's own id, which must be new.")
@click.option("--at", metavar="TIME", help="When it ended.  [default: now]")
@zone_option
@click.option("--group", help="The game group.")
@click.option("--city", help="The city.")
@click.option("--league", help="The league.")
@click.option("--season", help="The season.")
@click.option("--dry-run", is_flag=True, help="Check it, append nothing.")
@click.option("--quiet", "-q", is_flag=True, help="Do not say what it changed and who is new.")
@strict_option
@new_names_option
@any_date_option
@allow_uncounted_option
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def record(
    db: str, players: tuple[str, ...], game: str | None, game_id: str | None, at: str | None, zone: str | None,
    dry_run: bool, quiet: bool, strict: bool, new_names: str, any_date: bool, allow_uncounted: bool,
    ignore_clock: bool, by: str, form: str, group: str | None, city: str | None, league: str | None, season: str | None,
) -> int:  # fmt: skip
    """Record one game. PLAYERS stand in the order of their places, tied ones joined by =.

    \b
        ratings record --game catan --game-id g-7 anna ben=cleo dora

    Without PLAYERS one event, or the data of one game, is read as JSON from standard input.
    """
    refusing = refused_names(new_names, strict, "all")
    ledger = open_ledger(db)
    event: dict[str, Any] | Refused
    labels = {"group": group, "city": city, "league": league, "season": season}
    if players:
        if game is None or game_id is None:
            own = "--game, such as --game catan" if game is None else f"--game-id, its own name, such as {game}-0042"
            raise click.UsageError(f"a game needs {own}, too")
        data = {
            "game_id": game_id,
            "game": game,
            **{name: label for name, label in labels.items() if label is not None},
            "participants": placed(players),
        }
        event = {"type": "game.recorded", "data": data}
    else:
        if any(option is not None for option in (game, game_id, *labels.values())):
            raise click.UsageError("these options describe a game with PLAYERS; JSON on standard input has its own")
        try:
            event = parse_object(sys.stdin.buffer.read(1 << 20))
        except Refused as problem:
            event = problem
        if isinstance(event, dict) and "type" not in event and "game_id" in event:
            event = {"type": "game.recorded", "data": event}
    undated = isinstance(event, dict) and at is None and "occurred_at" not in event
    if isinstance(event, dict) and (at is not None or undated):
        event["occurred_at"] = format_instant(instant_or_now(ledger, at, zone))
    league_of_schedule = _put_into_league(ledger, event) if isinstance(event, dict) else None
    homeless: dict[str, str] = {}
    preview = Preview(ledger, wanted=dry_run or not quiet, games_max=None if dry_run else CHANGES_GAMES)
    new_ladders = NewLadders(preview.facts, strict)

    def offered() -> Imported:
        return import_items(
            ledger,
            [Item(STDIN, 1, event, None)],
            by=by,
            clock=clock.now,
            ladders=partial(Admission, allow_uncounted=allow_uncounted, homeless=homeless, new_ladders=new_ladders),
            dry_run=dry_run,
            ignore_clock=ignore_clock,
            checked=preview,
            newcomers=Newcomers(preview.known, refusing, strict),
            any_date=any_date,
        )

    result = offered()
    if undated and [one.code for one in result.rejected] == ["id-conflict"]:
        # nobody said when it was: it is the same event if everything else is the same
        assert isinstance(event, dict)
        event["occurred_at"] = _recorded_time(ledger, event)
        result = offered()
    result.rejected = [rejection._replace(file=None, line=None) for rejection in result.rejected]
    if league_of_schedule is not None and not result.rejected_count:
        render.note(f"note: this is a game of the league {render.plain(league_of_schedule)}, and is recorded for it")
    tell_new_ladders(result, new_ladders)
    note_homeless(result, homeless)
    if result.existing and isinstance(event, dict):
        _note_voided(ledger, event)
    return report_appended(ledger, result, form, dry_run, preview.found, quiet)


def _recorded_time(ledger: Ledger, event: dict[str, Any]) -> str:
    """When the recorded event with this one's id occurred."""
    draft, _ = read_event(event)
    with ledger.reading() as connection:
        there = Log(connection).event(draft.event_id)
    return format_instant(draft.occurred_at if there is None else there.occurred_at)


def _note_voided(ledger: Ledger, event: dict[str, Any]) -> None:
    """Say that a game that is already there counts for nothing."""
    draft, _ = read_event(event)
    with ledger.reading() as connection:
        game = live_game(Log(connection).about(draft.subject)) if draft.type == "game.recorded" else None
    if game is not None and game.voided:
        name = render.plain(str(game.data["game_id"]))
        render.note(
            f"note: {name} is voided, so it does not count; ratings reinstate {name} --reason TEXT changes that"
        )


def _put_into_league(ledger: Ledger, event: dict[str, Any]) -> str | None:
    """Put a game that a league has scheduled into the league, although nobody said so; returns the league."""
    data = event.get("data")
    if event.get("type") != "game.recorded" or not isinstance(data, dict) or data.get("league") is not None:
        return None
    with ledger.reading() as connection:
        league = scheduled_games(connection).get(composed(str(data.get("game_id"))))
    if league is not None:
        data["league"] = league
    return league
