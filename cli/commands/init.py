"""Implement `init` and `zone`: create a ledger, and set its home zone."""

import textwrap

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.machine_zone import find_machine_zone
from ratings_ledger.cli.arguments.options import (
    by_option,
    ignore_clock_option,
    read_elo_games,
    read_zone_name,
    result_format,
)
from ratings_ledger.cli.arguments.prompts import can_ask
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.admission.home_zones import set_home_zone
from ratings_ledger.projections.admission.publishing_rulesets import (
    SHIPPED_BY_INIT,
    load_shipped_texts,
    publish_missing,
)
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.queries.coordinates import load_times
from ratings_ledger.projections.rulesets.shipped_rulesets import list_systems, read_rated_game, shipped_rulesets
from ratings_ledger.projections.rulesets.versions import ELO

# a longer list of published rulesets is only counted
LISTED_MAX = 6


def _read_system(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Validate `--system`: a rating system that works for any game, on ladders like those of Elo."""
    if value is None or value in list_systems():
        return value
    rulesets = shipped_rulesets()
    if value in rulesets:
        games = " --game GAME" if rulesets[value].takes_game else ""
        remedy = f"to publish its own ladders: ratings rules publish --shipped {value}{games}"
        raise click.BadParameter(f"--system does not accept {value}, which has ladders of its own; {remedy}")
    raise click.BadParameter(
        f"unknown rating system {quote(value)}; choose from {joined(list_systems())}"
        f"{did_you_mean(value, list_systems())}"
    )


@command()
@click.option(
    "--for",
    "games",
    metavar="GAME",
    multiple=True,
    callback=read_elo_games,
    help="Publish only Elo for GAME, such as chess; repeatable.",
)
@click.option(
    "--system",
    metavar="NAME",
    callback=_read_system,
    help=f"Rating system to use with --for instead of {ELO}: club-elo, glicko, glicko-2, weng-lin or weng-lin-bt.",
)
@click.option(
    "--zone",
    metavar="NAME",
    callback=read_zone_name,
    help="Home time zone for reading and showing times, such as Europe/Berlin.  [default at a terminal: this "
    "machine's]",
)
@click.option("--no-rules", is_flag=True, help="Publish no shipped rulesets, for example before a restore.")
@by_option
@click.pass_obj
def init(db: str, games: tuple[str, ...], system: str | None, zone: str | None, no_rules: bool, by: str) -> None:
    """Create or upgrade the ledger. This also publishes the shipped rulesets that it lacks.

    With --for chess, it publishes only textbook Elo for this game: the ladders elo-chess, elo-chess/2, elo-chess/3-4
    and so on by number of players. With --system glicko, the ladders are glicko-chess and so on.
    """
    from ratings_ledger.ledger.store.upgrading import upgrade

    if games and no_rules:
        raise click.UsageError("--for publishes rulesets, but --no-rules publishes none; leave out one")
    if system is not None and not games:
        raise click.UsageError("--system needs --for GAME, the game that it rates")
    try:
        for game in games:
            read_rated_game(system or ELO, game)
    except Refused as problem:
        raise click.BadParameter(problem.message, param_hint=["--for"]) from None
    ledger = upgrade(db)
    zone = zone or _choose_initial_zone(ledger)
    if zone is not None:
        set_home_zone(open_ledger(db), zone, ImportPolicy(by))
    ruleset_texts = () if no_rules else load_shipped_texts(ledger, system or SHIPPED_BY_INIT, games)
    try:
        published = publish_missing(open_ledger(db), by, ruleset_texts, only_new_ids=True) if ruleset_texts else []
    except Refused as problem:
        # exit as for a wrong store, because `init` cannot complete this ledger
        raise NotALedger(problem.message) from None
    with ledger.reading() as connection:
        latest = head(connection)
    render.echo(f"The ledger {ledger.location} is ready; it has {render.count(latest.position, 'event')}.")
    if len(published) > LISTED_MAX:
        render.echo(f"{len(published)} rulesets are published; to list them: ratings rules list")
        render.echo("For another game: ratings rules publish --shipped elo --game GAME")
        render.echo("Then import its results: ratings import FILE --preview")
    elif published:
        render.echo(
            textwrap.fill(
                f"Rulesets published: {', '.join(published)}.", 78, subsequent_indent="  ", break_on_hyphens=False
            )
        )


def _choose_initial_zone(ledger: Ledger) -> str | None:
    """Return the machine's zone for a new ledger at a terminal, else None; print a note about the zone."""
    with ledger.reading() as connection:
        if head(connection).position:
            return None
    zone = find_machine_zone() if can_ask() else None
    if zone is None:
        render.note("note: no home zone is set, so times are in UTC; set one with: ratings zone NAME")
    else:
        render.note(f"note: the home zone is {zone}, as on this machine; to change it: ratings zone NAME")
    return zone


@command(name="zone")
@click.argument("name", required=False, callback=read_zone_name)
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def zone_(db: str, name: str | None, ignore_clock: bool, by: str, output_format: str) -> None:
    """Show or set the home zone, in which times are shown and read.

    Rulesets keep their own zone for their months, years and seasons.
    """
    ledger = open_ledger(db)
    position = None if name is None else set_home_zone(ledger, name, ImportPolicy(by, ignore_clock=ignore_clock))
    with ledger.reading() as connection:
        home = load_times(connection).home
    if output_format == "json":
        render.print_json({"zone": home, "position": position})
    elif position is not None:
        render.echo(f"The home zone is {home} from position {position} on.")
    else:
        render.echo(home or "There is no home zone; times are shown in UTC. Set it with: ratings zone Europe/Berlin")
