"""`report changes`: what was decided between two positions, and who gained or lost by it, as a page for members."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from cli.arguments.command import group
from cli.arguments.moments import known_position
from cli.arguments.views import note_left_out
from cli.commands.export import output_file
from cli.output import render
from cli.output.html_pages import Page, PagePart, as_html, as_markdown
from ledger.errors import BadArgument
from ledger.events.canonical import format_instant
from ledger.events.revisions import KnownEvent, RevisedGame, live_game
from ledger.store.log import Log, chain_hash_at, known_event, read_records_at, recorded_at
from ledger.store.opening import open_ledger
from ledger.validation.identities import Identities, identities
from ledger.validation.repeated_games import result_of
from projections.facts.decoding import decode
from projections.queries.coordinates import Times, times_of
from projections.queries.decisions import Decided, Decision, Share, decided
from projections.queries.impact import Had
from projections.replay.containment import told_with_game

WRITERS = {".html": as_html, ".htm": as_html, ".md": as_markdown}
# how many games of one decision are listed, and how many of one player's causes are listed singly
GAMES_TOLD = 100
CAUSES_TOLD = 4

VERBS = {
    "game.voided": "voided", "game.reinstated": "counts again", "game.corrected": "corrected",
    "event.voided": "withdrawn", "player.renamed": "renamed", "player.account_changed": "account",
    "points.adjusted": "adjusted", "ruleset.published": "new rules",
}  # fmt: skip


def _output(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    path = Path(value)
    if path.suffix.lower() not in WRITERS:
        raise click.BadParameter(f"{value!r} must end in .html or .md, which decides the format")
    if path.exists() or path.is_symlink():
        raise click.UsageError(f"{value} exists; nothing was written")
    return path


@group()
def report() -> None:
    """Write pages for people without a terminal."""


@report.command(name="changes")
@click.option("--from", "begin", metavar="TIME|POSITION", required=True, help="What was recorded after that.")
@click.option("--to", "end", metavar="TIME|POSITION", help="And up to then.  [default: the head]")
@click.option("--output", "-o", metavar="FILE", required=True, callback=_output,
              help="A new file, FILE.html or FILE.md.")  # fmt: skip
@click.pass_obj
def report_changes(db: str, begin: str, end: str | None, output: Path) -> int:
    """What was decided between two positions, by whom and why, and who gained or lost by what.

    \b
        ratings report changes --from 2026-03-01 --to 2026-03-31 -o march.html

    For the members: one file, which can be printed. It shows the points of everybody affected by a decision; those
    changed by games alone are counted. A date means its end. A ladder that cannot be replayed is reported and left out;
    the exit code is then 1.
    """
    with open_ledger(db).reading() as connection:
        before, after = (_position(connection, option, text) for option, text in (("--from", begin), ("--to", end)))
        if before >= after:
            raise click.UsageError(
                f"nothing lies between the positions {before:,} and {after:,}; --from is the earlier one"
            )
        found = decided(connection, before, after)
        note_left_out(found.left_out)
        for failure in found.failures.values():
            render.note(f"ratings: {told_with_game(failure, decode(connection, after), connection)}")
        page = _page(connection, found, before, after)
    with output_file(str(output)) as file:
        file.write(WRITERS[output.suffix.lower()](page).encode())
    decisions = render.count(len(found.decisions), "decision")
    render.note(f"{decisions}, {render.count(_concerned(found.shares), 'player')} in {output}")
    return int(bool(found.failures))


def _position(connection: Connection, option: str, text: str | None) -> int:
    try:
        return 0 if text == "0" else known_position(connection, text)
    except BadArgument as problem:
        raise click.BadParameter(str(problem), param_hint=option) from None


def _by_decision(share: Share) -> bool:
    return any(cause is not None for cause in share.amounts)


def _concerned(shares: Sequence[Share]) -> int:
    return len({share.player for share in shares if _by_decision(share)})


def _page(connection: Connection, found: Decided, before: int, after: int) -> Page:
    times, people = times_of(connection), identities(connection, after)
    games = render.count(found.games, "game")
    first, last = (times.stated(recorded_at(connection, position)) for position in (before + 1, after))
    ladders = render.count(len({share.ladder for share in found.shares if _by_decision(share)}), "ladder")
    players = render.count(_concerned(found.shares), "player")
    summary = (
        f"Recorded from {first} to {last}: {render.count(len(found.decisions), 'decision')}, and {games}. Decisions "
        f"changed the points of {players} on {ladders}."
    )
    told = [_decision(connection, one, times, people) for one in found.decisions]
    rows = [(f"D{number}", *cells) for number, cells in enumerate(told, 1)]
    parts = [PagePart("What was decided", (), ("", "recorded", "by", "decision", "why"), rows)]
    if not rows:
        parts = [PagePart("What was decided", ["Nothing was decided."])]
    else:
        header = ("", "ladder", "players", "gained most", "lost most")
        parts.append(PagePart("What each decision did", (), header, list(_effects(found)), ("players",)))
    by_ladder: dict[str, list[Share]] = defaultdict(list)
    for share in found.shares:
        by_ladder[share.ladder].append(share)
    parts += [_ladder(name, shares) for name, shares in by_ladder.items() if any(map(_by_decision, shares))]
    parts += [PagePart(name, [f"It cannot be replayed: {problem}"]) for name, problem in sorted(found.failures.items())]
    chain_hash = chain_hash_at(connection, after) or b""
    footer = (
        f"Computed from the ledger at its positions {before:,} and {after:,}; its head is {after}:{chain_hash.hex()}. "
        "Points are rounded to two places."
    )
    return Page(f"Changes from position {before:,} to {after:,}", [summary], parts, footer)


def _decision(
    connection: Connection, one: Decision, times: Times, people: Identities
) -> tuple[str, str, str, str]:  # fmt: skip
    """When something was recorded, by whom, what it was, and why."""
    records = read_records_at(connection, one.positions[:GAMES_TOLD])
    events = [known_event(position, records[position]) for position in one.positions[:GAMES_TOLD]]
    told = "; ".join(_what(Log(connection, (event.position or 1) - 1), event, times, people) for event in events)
    more = f"; and {len(one.positions) - GAMES_TOLD:,} more" if len(one.positions) > GAMES_TOLD else ""
    many = f"{len(one.positions):,} " if len(one.positions) > 1 else ""
    when = times.minute(recorded_at(connection, one.positions[0]))
    return when, one.by, f"{many}{VERBS[one.type]}: {told}{more}", one.reason or ""


def _what(before: Log, event: KnownEvent, times: Times, people: Identities) -> str:
    """What an event says, given the log before it."""
    data = event.data
    if event.type == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if event.type == "player.account_changed":
        return f"{data['player']} has a {data['account']} account from {times.stated(event.occurred_at)}"
    if event.type == "points.adjusted":
        return f"{data['player']} {render.human(data['points'], 6, signed=True)} on {data['ladder']}"
    if event.type == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if event.type == "event.voided":
        target = before.event(data["id"])
        return data["id"] if target is None else _what(before, target, times, people)
    game = live_game(before.about(f"game:{data['game_id']}"))
    if game is None:
        return str(data["game_id"])
    if event.type == "game.corrected":
        return f"{data['game_id']}: {_corrected(game, data['game'], times, people)}"
    return f"{data['game_id']}: {result_of(people.present(game.data))}"


def _corrected(game: RevisedGame, new: dict[str, Any], times: Times, people: Identities) -> str:
    """How a game was, and how it is after a correction."""
    moved = new.get("occurred_at", format_instant(game.occurred_at))
    there, here = people.present(game.data), people.present({n: v for n, v in new.items() if n != "occurred_at"})
    told = []
    if result_of(there) != result_of(here):
        told.append(f"{result_of(here)} instead of {result_of(there)}")
    if times.minute(moved) != times.minute(game.occurred_at):
        told.append(f"played {times.stated(moved)} instead of {times.stated(game.occurred_at)}")
    for name in sorted({*there, *here} - {"participants", "centres", "extra"}):
        if there.get(name) != here.get(name):
            told.append(f"{name} {here.get(name, '-')} instead of {there.get(name, '-')}")
    return ", ".join(told) or f"{result_of(here)}, with other details changed"


def _effects(found: Decided) -> Iterator[tuple[str, ...]]:
    """A row for each ladder that a decision affects."""
    reached: dict[tuple[int, str], list[tuple[Fraction, str]]] = defaultdict(list)
    for share in found.shares:
        for cause, amount in share.amounts.items():
            if cause is not None:
                reached[cause, share.ladder].append((amount, share.player))
    for number in range(len(found.decisions)):
        ladders = [(ladder, amounts) for (cause, ladder), amounts in reached.items() if cause == number]
        for ladder, amounts in ladders or [("nobody's points", [])]:
            players = f"{len(amounts):,}" if amounts else ""
            gained, lost = (end(amounts, default=None) for end in (max, min))
            yield f"D{number + 1}", ladder, players, _amount(gained, 1), _amount(lost, -1)


def _amount(one: tuple[Fraction, str] | None, sign: int) -> str:
    """Who gained or lost, if the amount has this sign."""
    return f"{one[1]} {render.human(one[0], signed=True)}" if one is not None and one[0] * sign > 0 else ""


def _ladder(name: str, shares: list[Share]) -> PagePart:
    """Whose points on a ladder a decision changed, largest gains first."""
    told = sorted(filter(_by_decision, shares), key=lambda share: (-share.change, share.player))
    others = len(shares) - len(told)
    by_games = render.count(others, "more player") if others else ""
    rows = [
        (share.player, _points(share.before), render.human(share.change, signed=True), _points(share.after),
         _ranks(share), _why(share))
        for share in told
    ]  # fmt: skip
    header = ("player", "before", "change", "after", "rank", "by")
    more = [f"The points of {by_games} changed by games alone."] if others else []
    return PagePart(name, more, header, rows, ("before", "change", "after", "rank"))


def _points(one: Had | None) -> str:
    return "-" if one is None else render.human(one.points)


def _ranks(share: Share) -> str:
    ranks = ["-" if one is None or one.rank is None else str(one.rank) for one in (share.before, share.after)]
    return ranks[0] if ranks[0] == ranks[1] else " → ".join(ranks)


def _why(share: Share) -> str:
    """The causes with what each gave, largest first, the rest together."""
    ordered = sorted(share.amounts.items(), key=lambda one: (-abs(one[1]), one[0] is None, one[0] or 0))
    cut = CAUSES_TOLD if len(ordered) > CAUSES_TOLD + 1 else len(ordered)
    told = [
        f"{'games' if cause is None else f'D{cause + 1}'} {render.human(amount, signed=True)}"
        for cause, amount in ordered[:cut]
    ]
    if rest := ordered[cut:]:
        together = render.human(sum((amount for _, amount in rest), Fraction(0)), signed=True)
        told.append(f"{len(rest)} others {together}")
    return ", ".join(told)
