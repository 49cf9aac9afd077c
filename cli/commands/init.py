"""`init`, `zone`, `doctor`: making a ledger and looking after it."""

import platform
import textwrap
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import click
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from cli.arguments.options import by_option, elo_games, format_option, ignore_clock_option, zone_name
from cli.commands.import_ import result_format
from cli.commands.status import State, state_of, told_run
from cli.output import render
from cli.output.times import times_of
from ledger import clock
from ledger.events.canonical import format_instant
from ledger.intake.files import Item
from ledger.intake.importing import import_items
from ledger.store.catalogue import differences
from ledger.store.log import head
from ledger.store.opening import Ledger, open_ledger
from ledger.store.roles import wrong_rights
from ledger.store.schema import SCHEMA_REVISION
from projections.facts import column_cache
from projections.facts.decoding import CACHED_EVENTS
from projections.rulesets.versions import shipped, shipped_elo

REGUARD = "somebody removed them: see what verify finds, then export events and restore them into a new ledger"
REMAKE = "ratings upgrade makes a view that is gone; for all else export events and restore them into a new ledger"
# what a long history gains by the extra `fast`, as docs/performance.md has it
FAST = {"numpy": "needed by numba", "numba": "replays long histories ten times as fast and more"}


# ladders that are named
NAMED = 5


class Row(NamedTuple):
    """What the doctor found: `ok`, WRONG or - (absent, and not needed), with what is wrong and what mends it."""

    state: str
    what: str
    value: str
    note: str = ""
    remedy: str = ""


@click.command()
@click.option("--for", "games", metavar="GAME", multiple=True, callback=elo_games,
              help="Publish Elo for this game, such as chess, and nothing else; repeatable.")  # fmt: skip
@click.option("--zone", metavar="NAME", callback=zone_name,
              help="The home zone, such as Europe/Berlin: times are shown and read there.")  # fmt: skip
@click.option("--no-rules", is_flag=True, help="Publish no shipped rulesets, for example before a restore.")
@by_option
@click.pass_obj
def init(db: str, games: tuple[str, ...], zone: str | None, no_rules: bool, by: str) -> None:
    """Create or upgrade the ledger. The shipped rulesets that it lacks are published.

    With --for chess it gets textbook Elo for that game alone: the ladders elo-chess/all, elo-chess/2, elo-chess/3-4 and
    so on by number of players.
    """
    from cli.commands.rules import publish_missing
    from ledger.store.migrating import upgrade

    if games and no_rules:
        raise click.UsageError("--for publishes rules, --no-rules does not; choose one")
    ledger = upgrade(db)
    if zone is not None:
        _set_zone(open_ledger(db), zone, by)
    with ledger.reading() as connection:
        home = times_of(connection).zone
    texts = [shipped_elo(game, home) for game in games] or shipped()
    published = [] if no_rules else publish_missing(open_ledger(db), by, texts, only_new_ids=True)
    with ledger.reading() as connection:
        latest = head(connection)
    render.echo(f"The ledger {ledger.location} is ready, {render.count(latest.position, 'event')}.")
    if published:
        render.echo(
            textwrap.fill(
                f"Rulesets published: {', '.join(published)}.", 78, subsequent_indent="  ", break_on_hyphens=False
            )
        )


@click.command(name="zone")
@click.argument("name", required=False, callback=zone_name)
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def zone_(db: str, name: str | None, ignore_clock: bool, by: str, form: str) -> None:
    """The home zone of the ledger, or NAME from now on: times are shown there, and dates and times are read there.

    Rulesets keep their own zone for their months, years and seasons.
    """
    ledger = open_ledger(db)
    position = None if name is None else _set_zone(ledger, name, by, ignore_clock)
    with ledger.reading() as connection:
        home = times_of(connection).home
    if form == "json":
        render.print_json({"zone": home, "position": position})
    elif position is not None:
        render.echo(f"The home zone is {home} from position {position:,} on.")
    else:
        render.echo(home or "There is no home zone; times are shown in UTC. Set it with: ratings zone Europe/Berlin")


def _set_zone(ledger: Ledger, name: str, by: str, ignore_clock: bool = False) -> int | None:
    """Let a ledger have a home zone from now on; the position of its event, or None if it has this one already."""
    with ledger.reading() as connection:
        if times_of(connection).home == name:
            return None
    event = {"type": "ledger.zone_set", "occurred_at": format_instant(clock.now()), "data": {"zone": name}}
    done = import_items(ledger, [Item("-", 1, event, None)], by=by, clock=clock.now, ignore_clock=ignore_clock)
    assert done.head is not None
    return done.head.position


@click.command()
@format_option
@click.pass_obj
def doctor(db: str, form: str) -> int:
    """Read back every setting that safety depends on. Exit 1 if something is wrong."""
    rows: list[Row] = [
        Row("ok", "ratings-ledger", version("ratings-ledger")),
        Row("ok", "python", platform.python_version()),
        *(Row("ok", name, version(name)) for name in ("sqlalchemy", "alembic", "pydantic", "click", "rich", "tzdata")),
        _optional("psycopg", "needed for a ledger in PostgreSQL", "postgres"),
        *(_optional(name, gain, "fast") for name, gain in FAST.items()),
        Row("ok", "schema", SCHEMA_REVISION),
    ]
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        latest = head(connection)
        rows += [
            Row("ok", s.name, s.value) if s.fine else Row("WRONG", s.name, s.value, f"should be {s.wanted}", s.remedy)
            for s in ledger.dialect.settings(connection)
        ]
        guards = ledger.dialect.guards_missing(connection)
        rows.append(Row("WRONG", "guards", "missing", ", ".join(guards), REGUARD) if guards
                    else Row("ok", "guards", "in place"))  # fmt: skip
        rows += [*_rights(connection), _objects(connection)]
        rows.append(_cache(connection, latest.position))
        rows += _jobs(state_of(ledger, connection))
    ahead = (latest.recorded_at - clock.now()) / 1_000_000
    rows.append(
        Row("WRONG", "clock", f"{ahead:.0f} s behind the last event", "nothing is appended until it has caught up",
            "set this machine's clock; if the last event's time is wrong: --ignore-clock")
        if ahead > 5 * 60
        else Row("ok", "clock", format_instant(clock.now()))
    )  # fmt: skip
    if form == "json":
        render.print_json([row._asdict() for row in rows])
    elif form == "csv":
        render.print_csv(Row._fields, rows)
    else:
        told = [(*row[:3], "; ".join(filter(None, row[3:]))) for row in rows]
        render.print_table(Row._fields[:4], told)
    return int(any(row.state == "WRONG" for row in rows))


def _objects(connection: Connection) -> Row:
    """Whether the tables and views are those that this program makes."""
    try:
        wrong = [told for told in differences(connection) if told is not None]
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "42501":
            raise
        return Row("WRONG", "objects", "a right is missing", str(error.orig).strip(), "see the rights")
    if not wrong:
        return Row("ok", "objects", "as this program makes them")
    return Row("WRONG", "objects", render.count(len(wrong), "difference"), "; ".join(wrong), REMAKE)


def _rights(connection: Connection) -> list[Row]:
    """Who may do more than the documented roles may, or less than he needs."""
    who, wrong = wrong_rights(connection)
    if not wrong:
        return [Row("ok", "rights", f"as documented, asked as {who}")]
    return [Row("WRONG", "rights", *one) for one in wrong]


def _cache(connection: Connection, newest: int) -> Row:
    """Where the columns of long histories are kept, and how far they are."""
    cache = column_cache.found(connection, newest)
    if cache is None:
        return Row("-", "cache", "none", "this account has no home folder", "name another place by XDG_CACHE_HOME")
    until = f"up to position {cache.position:,}" if cache.position else "nothing yet"
    note = until if newest >= CACHED_EVENTS else f"kept from {CACHED_EVENTS:,} events on"
    return Row("ok", "cache", note, f"{cache.root} may be deleted at any time")


def _jobs(state: State) -> Iterator[Row]:
    """What the jobs of the night left: rules that are missing, ladders whose rules failed, runs that failed."""
    for one in state.missing:
        yield Row(
            "WRONG", "rule", f"{one.rule} is not installed", f"{one.ruleset} needs it; its ladders stay as they are",
            "install the package that has it, or void that version of the ruleset",
        )  # fmt: skip
    failed = [one.ladder for one in state.stale if one.why == "failed"]
    if state.generations or failed:
        more = f" and {len(failed) - NAMED:,} more" if len(failed) > NAMED else ""
        note = f"their rules failed: {', '.join(failed[:NAMED])}{more}" if failed else ""
        stale = render.count(len(state.stale), "stale ladder") if state.stale else "as new as the last rebuild"
        yield Row(
            "WRONG" if failed else "ok", "stored standings", stale, note, "ratings rebuild says why" * bool(failed)
        )
    for kind, known in state.runs.items():
        wrong = known.ended is not None and known.ended.has_failed
        how, why = told_run(known.ended if wrong and known.ended else known.last, state.times)
        yield Row("WRONG" if wrong else "ok", f"last {kind}", how, why, f"ratings {kind}" * wrong)


def _optional(package: str, use: str, extra: str) -> Row:
    try:
        return Row("ok", package, version(package))
    except PackageNotFoundError:
        return Row("-", package, "not installed", use, f"pip install 'ratings-ledger[{extra}]'")
