"""`ladders`, `lists`, `statistics`: which ladders and lists there are, and what somebody has done apart from them."""

import re
from collections.abc import Sequence
from typing import Any

import click

from cli.arguments.all_ladders import survey
from cli.arguments.options import axes, composed, format_option
from cli.output import render
from cli.output.coordinates import print_csv_at
from ledger import clock
from ledger.events.canonical import format_instant
from ledger.rejections import did_you_mean, shown
from projections.facts.players import known_players
from projections.queries.player_statistics import Statistics, gold, statistics
from projections.queries.standings import Coordinates, Ladders, Ranking
from projections.replay.ladders import Stream, parse_name
from projections.rulesets.periods import is_running, period_of


@click.command(name="ladders")
@axes
@format_option
@click.pass_obj
def ladders_(db: str, as_of: str | None, known_at: str | None, rules: str | None, form: str) -> None:
    """The ladders that have games or adjustments."""
    seen = survey(db, as_of, known_at, rules)
    facts = seen.facts
    rows: list[tuple[Any, ...]] = []
    places: list[Coordinates] = []
    for ruleset_id in sorted(facts.rulesets):
        ladders = seen.ladders(ruleset_id)
        for name, stream in sorted(ladders.every(ruleset_id).items()):
            with seen.noting():
                if stream.broken is not None:
                    raise stream.broken
                annual = stream.rule.ranking == "annual"
                players = len(ladders.of_stream(stream).rows if annual else stream.names)
                ruleset = stream.versions[stream.version[-1]].ruleset.name if stream.version else ""
                last_game = format_instant(facts.occurred_at[stream.row[-1]]) if stream.row else None
                rows.append((name, ruleset, players, len(stream.row), last_game))
                places.append(seen.at(ruleset_id))
    header = ("ladder", "ruleset", "players", "games", "last_game")
    if form == "json":
        render.print_json({**seen.coordinates.stated(), "rows": _json_rows(header, rows, places)})
    elif form == "csv":
        print_csv_at(header, rows, places)
    elif rows:
        seen.heading(render.count(len(rows), "ladder"), places)
        render.echo()
        readable = [(row[0], *row[2:4], seen.times.minute(row[4]) if row[4] else "") for row in rows]
        render.print_table(
            ("ladder", "players", "games", seen.times.column("last game")), readable, right=("players", "games")
        )
    else:
        scored = "Results go in with: ratings import FILE"
        if facts.start:
            scored = (
                "No ruleset scores the recorded games; add one with: ratings rules publish --shipped elo --game NAME"
            )
        render.note(f"No ladder has a game yet. {scored}")


def _json_rows(header: Sequence[str], rows: list[tuple[Any, ...]], places: list[Coordinates]) -> list[dict[str, Any]]:
    """The rows, each with its own `as_of`, since a date does not end at the same instant in every ruleset's zone."""
    return [
        {**dict(zip(header, row, strict=True)), "as_of": at.stated()["as_of"]}
        for row, at in zip(rows, places, strict=True)
    ]  # fmt: skip


def _period(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2]))?", value, re.ASCII):
        raise click.BadParameter(f"{shown(value)} is not a year like 2010 or a month like 2010-03")
    return value


@click.command(name="lists")
@click.option(
    "--period", metavar="YYYY[-MM]", callback=_period, help="Only lists of this month, or of this year and its months."
)
@axes
@format_option
@click.pass_obj
def lists_(db: str, period: str | None, as_of: str | None, known_at: str | None, rules: str | None, form: str) -> None:
    """The lists of months and years, whether they are closed, and how many players are on them."""
    seen = survey(db, as_of, known_at, rules)
    facts = seen.facts
    rows: list[tuple[Any, ...]] = []
    places: list[Coordinates] = []
    for ruleset_id in seen.usable:
        ladders = seen.ladders(ruleset_id)
        by = facts.rulesets[ruleset_id][0].ruleset.partition.by
        if "month" not in by and "year" not in by:
            continue
        for name, stream in sorted(ladders.every(ruleset_id).items()):
            value = dict(zip(by, parse_name(name).values, strict=True)).get("month" if "month" in by else "year")
            if period is None or str(value).startswith(period):
                with seen.noting():
                    rows.append(_row(ladders.of_stream(stream), str(value), _state(ladders, stream)))
                    places.append(seen.at(ruleset_id))
    header = ("list", "period", "state", "players", "ranked", "games", "ruleset")
    if form == "json":
        render.print_json({**seen.coordinates.stated(), "rows": _json_rows(header, rows, places)})
    elif form == "csv":
        print_csv_at(header, rows, places)
    elif rows:
        seen.heading(render.count(len(rows), "list"), places)
        render.echo()
        short = [(row[0], *row[2:6]) for row in rows]
        render.print_table(("list", "state", "players", "ranked", "games"), short, right=("players", "ranked", "games"))
    else:
        render.note("There is no such list yet.")


def _state(ladders: Ladders, stream: Stream) -> str:
    span = period_of(stream.versions[0].ruleset, parse_name(stream.ladder).values)
    return "open" if span is not None and is_running(span, clock.now(), ladders.as_of) else "closed"


def _row(found: Ranking, period: str, state: str) -> tuple[Any, ...]:
    ranked = sum(row.rank is not None for row in found.rows)
    return found.ladder, period, state, len(found.rows), ranked, found.games, found.ruleset


@click.command(name="statistics")
@click.argument("player", type=composed)
@click.option("--game", metavar="NAME", help="Only games of this name, such as catan.")
@axes
@format_option
@click.pass_obj
def statistics_(
    db: str, player: str, game: str | None, as_of: str | None, known_at: str | None, rules: str | None, form: str
) -> int:
    """What PLAYER started and finished, their stars, and their gold over all lists.

    A list that cannot be replayed is reported and left out; the exit code is then 1.
    """
    seen = survey(db, as_of, known_at, rules)
    facts = seen.facts
    player = facts.current(player)
    found = statistics(facts, player, game, seen.coordinates.as_of)
    lists = ((name, seen.ladders(name)) for name in seen.usable)
    paid, failures = gold(lists, player, clock.now(), game)
    for failure in failures:
        seen.note(failure)
    if found is None:
        what = "" if game is None else f" {render.plain(game)}"
        hint = "" if facts.knows(player) else did_you_mean(player, known_players(facts))
        raise click.ClickException(f"{render.plain(player)} has not played{what}; see: ratings games{hint}")
    at = seen.coordinates
    of_lists = {name: seen.at(parse_name(name).ruleset_id) for name in paid}
    if form == "json":
        gold_as_of = {name: place.stated()["as_of"] for name, place in of_lists.items()}
        asked = {"player": player, "game": game, **at.stated()}
        render.print_json({**asked, **_as_json(found, paid), "gold_as_of": gold_as_of})
        return int(bool(failures))
    percent = "-" if found.ratio is None else f"{render.human(str(found.ratio * 100))} %"
    rows: list[tuple[str, str | int]] = [
        ("games started", found.started), ("games finished", found.finished),
        ("taken over as a substitute", found.substituted), ("finished of the last 99", percent),
        ("stars", _stars(found)), ("gold", sum(paid.values())),
        *((f"  {name}", pieces) for name, pieces in paid.items()),
    ]  # fmt: skip
    if form == "csv":
        print_csv_at(("what", "value"), rows, [*[at] * (len(rows) - len(paid)), *of_lists.values()])
        return int(bool(failures))
    seen.heading(render.plain(player) + (f": games of {render.plain(game)}" if game else ""), [at, *of_lists.values()])
    render.echo()
    render.print_table(("what", "value"), rows)
    return int(bool(failures))


def _stars(found: Statistics) -> str:
    if found.stars is None:
        return "after 20 games"
    return f"{found.stars} golden" if found.golden else str(found.stars)


def _as_json(found: Statistics, paid: dict[str, int]) -> dict[str, Any]:
    ratio = None if found.ratio is None else str(found.ratio)
    return {**found._asdict(), "ratio": ratio, "gold": sum(paid.values()), "gold_by_list": paid}
