"""`explain --change`: why somebody's points are not what they were."""

import json
from fractions import Fraction
from typing import Any

import click
from sqlalchemy import Connection

from cli.arguments.coordinates import Asked
from cli.arguments.facts import decoded, note_left_out
from cli.commands.diff import told_coordinates
from cli.output import render
from ledger.store.log import head, read_records_at
from ledger.validation.identities import identities
from ledger.validation.published_lists import PublishedList, published_lists
from projections.queries.attribution import Attribution, Cause, attribute
from projections.queries.coordinates import Coordinates, Times, times_of
from projections.queries.publication import as_published, compared_at
from projections.queries.view import refuse_unknown
from projections.replay.containment import RuleFailure
from projections.replay.ladders import parse_name


def explain_change(connection: Connection, ladder: str, player: str, before: Asked, after: Asked, form: str) -> None:
    """Work out and print what changed a player's points between two coordinates."""
    try:
        places = _places(connection, ladder, before, after)
        found = attribute(connection, ladder, player, *places)
        note_left_out(found.left_out)
        places = [at._replace(left_out=tuple(one for one in found.left_out if one <= at.known_at)) for at in places]
    except RuleFailure as problem:
        raise click.ClickException(f"{problem.ladder}: the rule failed on the way: {problem}") from None
    for asked, at, points in zip((before, after), places, (found.before, found.after), strict=True):
        if asked.published:
            _note_other(connection, ladder, player, at, points)
    absent = found.before is None and found.after is None
    if absent:
        refuse_unknown(decoded(connection), player)
    causes = _told(connection, found)
    if form == "json":
        render.print_json(render.with_decimals(_as_json(ladder, player, places, found, causes)))
    elif form == "csv":
        header = (
            "cause", "position", "event_id", "game_id", "occurred_at", "own", "ripple", "amount", "reason",
            "recorded_at", "by",
        )  # fmt: skip
        exact = {"own", "ripple", "amount"}
        rows = [[render.spreadsheet(row[n]) if n in exact else row[n] for n in header] for row in causes]
        render.print_csv(header, rows)
    elif absent:
        render.note(f"{render.plain(player)} is on {ladder} neither before nor after.")
    else:
        _print(ladder, player, places, found, causes, times_of(connection))


def _places(connection: Connection, ladder: str, before: Asked, after: Asked) -> list[Coordinates]:
    """Both coordinates; a published list lends its `as_of` to the other side if that has none."""
    places = []
    for asked in (before, after):
        if not asked.published:
            places.append(asked.resolve(connection, ladder))
            continue
        lists = asked.lists(connection, ladder)
        if not lists:
            raise click.ClickException(f"{ladder} was not published ({asked.text})")
        one = max(lists, key=lambda one: one.position)
        places.append(Coordinates(_compared_at(connection, one), one.known_at, None))
    if before.published and not after.published and after.as_of is None:
        places[1] = places[1]._replace(as_of=places[0].as_of)
    if after.published and not before.published and before.as_of is None:
        places[0] = places[0]._replace(as_of=places[1].as_of)
    return places


def _compared_at(connection: Connection, one: PublishedList) -> int | None:
    versions = decoded(connection, one.known_at).rulesets[parse_name(one.ladder).ruleset_id]
    return compared_at(one, versions[0].ruleset)


def _note_other(connection: Connection, ladder: str, player: str, at: Coordinates, points: Fraction | None) -> None:
    """Say if a list showed points that differ from a replay of its coordinates; `verify` reports the list."""
    for one in published_lists(connection, head(connection).position, ladder):
        if (_compared_at(connection, one), one.known_at) == (at.as_of, at.known_at):
            listed, ids = as_published(connection, one), identities(connection).ids(player)
            then = next((row.value(listed.scale) for row in listed.rows if row.player in ids), None)
            if then != points:
                told = "nothing" if then is None else render.human(then, 6)
                render.note(f"note: the list at position {one.position:,} shows {told}; see: ratings verify")


def _told(connection: Connection, found: Attribution) -> list[dict[str, Any]]:
    """The causes with what their events say."""
    positions = [cause.position for cause in found.causes if cause.position is not None]
    events = {position: json.loads(text) for position, text in read_records_at(connection, positions).items()}
    return [_cause(cause, events.get(cause.position or 0)) for cause in found.causes]


def _cause(cause: Cause, event: dict[str, Any] | None) -> dict[str, Any]:
    data = event["data"] if event is not None else {}
    return {
        "cause": cause.what,
        "position": cause.position,
        "event_id": event and event["id"],
        "game_id": data.get("game_id"),
        "occurred_at": event and event["occurred_at"],
        "recorded_at": event and event["recorded_at"],
        "by": event and event["by"],
        "reason": data.get("reason"),
        "own": str(cause.own),
        "ripple": str(cause.ripple),
        "amount": str(cause.amount),
        "what": _what(event),
    }


def _what(event: dict[str, Any] | None) -> str:
    """What an event is about, in a few words."""
    if event is None:
        return ""
    data = event["data"]
    if "game_id" in data:
        return str(data["game_id"])
    if event["type"] == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if event["type"] == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if event["type"] == "points.adjusted":
        return f"{data['points']} to {data['player']}"
    return str(data.get("id") or data.get("player") or data.get("league") or event["id"])


def _as_json(
    ladder: str, player: str, places: list[Coordinates], found: Attribution, causes: list[dict[str, Any]]
) -> dict[str, Any]:
    points = [None if value is None else str(value) for value in (found.before, found.after)]
    return {
        "player": player,
        "ladder": ladder,
        "from": {**places[0].stated(), "points": points[0]},
        "to": {**places[1].stated(), "points": points[1]},
        "start": str(found.start),
        "change": str(_change(found)),
        "causes": [{name: value for name, value in cause.items() if name != "what"} for cause in causes],
    }


def _change(found: Attribution) -> Any:
    before, after = (found.start if value is None else value for value in (found.before, found.after))
    return after - before


def _print(
    ladder: str, player: str, places: list[Coordinates], found: Attribution, causes: list[dict[str, Any]],
    times: Times,
) -> None:  # fmt: skip
    render.echo(f"{render.plain(player)} on {ladder}")
    points = render.column([str(found.start if value is None else value) for value in (found.before, found.after)], 6)
    for name, value, had, at in zip(("from", "to  "), points, (found.before, found.after), places, strict=True):
        absent = " (not on it yet: the start)" if had is None else ""
        render.hanging(f"{name}  {value}{absent}  {told_coordinates(at.stated(), times)}", 6)
    render.echo()
    if not causes:
        render.echo("Nothing changed their points.")
        return
    total = {"cause": "sum", "position": None, "what": "",
             "own": str(sum(c.own for c in found.causes)), "ripple": str(sum(c.ripple for c in found.causes)),
             "amount": str(_change(found))}  # fmt: skip
    rows = [*causes, total]
    columns = [render.column([row[name] for row in rows], 6, signed=True) for name in ("own", "ripple", "amount")]
    header = ("position", "cause", "what", "own", "ripple", "together")
    cells: list[list[render.Cell]] = [
        [row["position"] or "", row["cause"], row["what"], *(column[i] for column in columns)]
        for i, row in enumerate(rows)
    ]
    render.print_table(header, cells, right=("position", "own", "ripple", "together"))
    render.echo()
    for row in causes:
        if row["position"] is not None:
            why = f": {row['reason']}" if row["reason"] else ""
            when = times.stated(row["recorded_at"])
            render.hanging(render.plain(f"{row['position']:8}  recorded {when} by {row['by']}{why}"), 10)
