"""`lists` and `statistics`: which lists there are, and what somebody did beside them."""

import re
from typing import Any

import click

from cli import render
from cli.options import composed, format_option, known_position, played_instant
from cli.reading import failures_noted, failures_told, note_unusable
from ledger import clock
from ledger.rejections import shown
from ledger.store import open_ledger
from projections.decoding import decode
from projections.explaining import current_id
from projections.facts import Facts
from projections.ladders import Stream, parse_name
from projections.periods import period_of, running
from projections.standings import Ladders, Standings
from projections.statistics import Statistics, gold, statistics


def _period(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2]))?", value, re.ASCII):
        raise click.BadParameter(f"{shown(value)} is not a year like 2010 or a month like 2010-03")
    return value


@click.command(name="lists")
@click.option(
    "--period", metavar="YYYY[-MM]", callback=_period, help="Only lists of this month, or year and its months."
)
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@format_option
@click.pass_obj
def lists_(db: str, period: str | None, as_of: str | None, known_at: str | None, form: str) -> None:
    """The lists of months and years, whether they are closed, and how many players are on them."""
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        facts = decode(connection, known_position(connection, known_at))
    rows: list[tuple[Any, ...]] = []
    for ruleset_id in sorted(facts.rulesets.keys() - facts.unusable.keys()):
        ladders = _ladders_of(facts, ruleset_id, as_of)
        by = facts.rulesets[ruleset_id][0].ruleset.partition.by
        if "month" not in by and "year" not in by:
            continue
        streams: dict[str, Stream] = {}
        with failures_noted(facts):
            streams = ladders.every(ruleset_id)
        for name, stream in sorted(streams.items()):
            value = dict(zip(by, parse_name(name).values, strict=True)).get("month" if "month" in by else "year")
            if period is None or str(value).startswith(period):
                with failures_noted(facts):
                    rows.append(_row(ladders.of_stream(stream), str(value), _state(ladders, stream)))
    note_unusable(facts)
    header = ("list", "period", "state", "players", "ranked", "games", "ruleset")
    if form == "json":
        rows_ = [dict(zip(header, row, strict=True)) for row in rows]
        render.print_json({"known_at": facts.position, "as_of": as_of, "rows": rows_})
    elif form == "csv":
        render.print_csv(header, rows)
    elif rows:
        short = [(row[0], *row[2:6]) for row in rows]
        render.print_table(("list", "state", "players", "ranked", "games"), short, right=("players", "ranked", "games"))
    else:
        render.note("There is no such list yet.")


def _ladders_of(facts: Facts, ruleset_id: str, as_of: str | None) -> Ladders:
    """The ladders at a time, which as a date ends in the zone of a ruleset."""
    return Ladders(facts, played_instant(as_of, facts.rulesets[ruleset_id][0].ruleset.time_zone))


def _state(ladders: Ladders, stream: Stream) -> str:
    span = period_of(stream.versions[0].ruleset, parse_name(stream.ladder).values)
    return "open" if span is not None and running(span, clock.now(), ladders.as_of) else "closed"


def _row(found: Standings, period: str, state: str) -> tuple[Any, ...]:
    ranked = sum(row.rank is not None for row in found.rows)
    return found.ladder, period, state, len(found.rows), ranked, found.games, found.ruleset


@click.command(name="statistics")
@click.argument("player", type=composed)
@click.option("--game", metavar="NAME", help="Only games of this name, such as catan.")
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@format_option
@click.pass_obj
def statistics_(db: str, player: str, game: str | None, as_of: str | None, known_at: str | None, form: str) -> None:
    """What PLAYER started and finished, his stars, and his gold over all lists."""
    with open_ledger(db).reading() as connection:
        facts = decode(connection, known_position(connection, known_at))
    player = current_id(facts, player)
    usable = sorted(facts.rulesets.keys() - facts.unusable.keys())
    with failures_told(facts):
        found = statistics(facts, player, game, played_instant(as_of, "UTC"))
        paid = gold(((name, _ladders_of(facts, name, as_of)) for name in usable), player, clock.now(), game)
    if found is None:
        what = "" if game is None else f" {render.plain(game)}"
        raise click.ClickException(f"{render.plain(player)} has not played{what}; see: ratings games")
    note_unusable(facts)
    if form == "json":
        asked = {"player": player, "game": game, "as_of": as_of, "known_at": facts.position}
        render.print_json({**asked, **_as_json(found, paid)})
        return
    percent = "-" if found.ratio is None else f"{render.human(str(found.ratio * 100))} %"
    rows: list[tuple[str, str | int]] = [
        ("games started", found.started), ("games finished", found.finished),
        ("taken over as a substitute", found.substituted), ("finished of the last 99", percent),
        ("stars", _stars(found)), ("gold", sum(paid.values())),
        *((f"  {name}", pieces) for name, pieces in paid.items()),
    ]  # fmt: skip
    (render.print_csv if form == "csv" else render.print_table)(("what", "value"), rows)


def _stars(found: Statistics) -> str:
    if found.stars is None:
        return "after 20 games"
    return f"{found.stars} golden" if found.golden else str(found.stars)


def _as_json(found: Statistics, paid: dict[str, int]) -> dict[str, Any]:
    ratio = None if found.ratio is None else str(found.ratio)
    return {**found._asdict(), "ratio": ratio, "gold": sum(paid.values()), "gold_by_list": paid}
