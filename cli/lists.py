"""`lists` and `statistics`: which lists there are, and what somebody did beside them."""

from typing import Any

import click

from cli import render
from cli.options import composed, format_option, known_position, played_instant
from ledger import clock
from ledger.canonical import format_instant
from ledger.store import open_ledger
from projections.explaining import current_id
from projections.facts import RuleFailure, decode
from projections.ladders import parse_name
from projections.periods import period_of
from projections.standings import Ladders, Standings
from projections.statistics import Statistics, statistics


@click.command(name="lists")
@click.option("--period", metavar="YYYY[-MM]", help="Only lists of this month or year.")
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end in UTC.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@format_option
@click.pass_obj
def lists_(db: str, period: str | None, as_of: str | None, known_at: str | None, form: str) -> None:
    """The lists of months and years, whether they are closed, and how many players are on them."""
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        facts = decode(connection, known_position(connection, known_at))
    ladders = Ladders(facts, played_instant(as_of, "UTC"))
    rows: list[tuple[Any, ...]] = []
    for ruleset_id in sorted(facts.rulesets.keys() - facts.unusable.keys()):
        by = facts.rulesets[ruleset_id][0].ruleset.partition.by
        if "month" not in by and "year" not in by:
            continue
        for name, stream in sorted(ladders.every(ruleset_id).items()):
            value = dict(zip(by, parse_name(name).values, strict=True)).get("month" if "month" in by else "year")
            if period in (None, value):
                try:
                    rows.append(_row(ladders.of_stream(stream), str(value), _state(stream.versions[0].ruleset, name)))
                except RuleFailure as problem:
                    render.note(f"ratings: {name}: the rule failed at position {problem.place(facts)}: {problem}")
    header = ("list", "period", "state", "players", "ranked", "games", "ruleset")
    if form == "json":
        rows_ = [dict(zip(header, row, strict=True)) for row in rows]
        instant = None if ladders.as_of is None else format_instant(ladders.as_of)
        render.print_json({"known_at": facts.position, "as_of": instant, "rows": rows_})
    elif form == "csv":
        render.print_csv(header, rows)
    elif rows:
        shown = [(row[0], *row[2:6]) for row in rows]
        render.print_table(("list", "state", "players", "ranked", "games"), shown, right=("players", "ranked", "games"))
    else:
        render.note("There is no such list yet.")


def _state(ruleset: Any, name: str) -> str:
    span = period_of(ruleset, parse_name(name).values)
    return "open" if span is not None and clock.now() <= span.end else "closed"


def _row(found: Standings, period: str, state: str) -> tuple[Any, ...]:
    ranked = sum(row.rank is not None for row in found.rows)
    return found.ladder, period, state, len(found.rows), ranked, found.games, found.ruleset


@click.command(name="statistics")
@click.argument("player", type=composed)
@click.option("--game", metavar="NAME", help="Only games of this name, such as catan.")
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end in UTC.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@format_option
@click.pass_obj
def statistics_(db: str, player: str, game: str | None, as_of: str | None, known_at: str | None, form: str) -> None:
    """What PLAYER started and finished, his stars, and his gold over all lists."""
    with open_ledger(db).reading() as connection:
        facts = decode(connection, known_position(connection, known_at))
    ladders = Ladders(facts, played_instant(as_of, "UTC"))
    player = current_id(facts, player)
    try:
        found = statistics(ladders, player, clock.now(), game)
    except RuleFailure as problem:
        raise click.ClickException(
            f"{problem.ladder}: the rule failed at position {problem.place(facts)}: {problem}"
        ) from None
    if found is None:
        raise click.ClickException(f"{render.plain(player)} has not played; see: ratings games")
    if form == "json":
        render.print_json({"player": player, "known_at": facts.position, **_as_json(found)})
        return
    percent = "-" if found.ratio is None else f"{render.human(str(found.ratio * 100))} %"
    rows: list[tuple[str, str | int]] = [
        ("games started", found.started), ("games finished", found.finished),
        ("taken over as a substitute", found.substituted), ("finished of the last 99", percent),
        ("stars", _stars(found)), ("gold", sum(found.gold.values())),
        *((f"  {name}", gold) for name, gold in found.gold.items()),
    ]  # fmt: skip
    (render.print_csv if form == "csv" else render.print_table)(("what", "value"), rows)


def _stars(found: Statistics) -> str:
    if found.stars is None:
        return "after 20 games"
    return f"{found.stars} golden" if found.golden else str(found.stars)


def _as_json(found: Statistics) -> dict[str, Any]:
    ratio = None if found.ratio is None else str(found.ratio)
    return {**found._asdict(), "ratio": ratio, "gold": sum(found.gold.values()), "gold_by_list": found.gold}
