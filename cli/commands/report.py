"""Implement `report`: write the decisions between two positions for members, or the origin of points for auditors."""

from hashlib import sha256
from pathlib import Path

import click

from ratings_ledger.cli.arguments.command import group, print_note
from ratings_ledger.cli.arguments.options import as_of_option, known_at_option, read_new_path
from ratings_ledger.cli.arguments.sites import build_site, names_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view, report_ignored_events
from ratings_ledger.cli.commands.export import open_output_file
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.decisions import build_decisions_page, count_affected_players
from ratings_ledger.cli.output.html_pages import page_to_html, page_to_markdown
from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.fields import to_nfc

WRITERS = {".html": page_to_html, ".htm": page_to_html, ".md": page_to_markdown}


def _parse_output_path(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    return read_new_path(value, WRITERS, ".html or .md, which decides the format")


def _parse_html_path(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    return read_new_path(value, (".html", ".htm"), ".html")


@group()
def report() -> None:
    """Write pages for people without a terminal."""


@report.command(name="changes")
@click.option(
    "--from", "begin", metavar="TIME|POSITION", required=True, help="Only events recorded after that time or position."
)
@click.option(
    "--to", "end", metavar="TIME|POSITION", help="Include only events recorded up to then.  [default: the head]"
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    required=True,
    callback=_parse_output_path,
    help="A new file, FILE.html or FILE.md.",
)
@click.pass_obj
def report_changes(db: str, begin: str, end: str | None, output: Path) -> int:
    """Report the decisions between two positions, with their authors, reasons and effects on points.

    \b
        ratings report changes --from 2026-02-28 --to 2026-03-31 -o march.html

    For members: one file to print. It shows the points of all players whom a decision affected, and counts players
    whom only games affected. A date or a month means its end. A ladder that cannot be replayed is reported and left
    out; the exit code is then 1.
    """
    try:
        changes = open_view(open_for_command(db), known_at=end).decisions(begin)
    except BadArgument as problem:
        hint = {"after": "--from", "known_at": "--to"}.get(str(problem.argument))
        raise click.BadParameter(str(problem), param_hint=[hint]) if hint else problem from None
    report_ignored_events(changes.left_out)
    for reason in changes.failed:
        render.note(f"ratings: {reason}")
    page = WRITERS[output.suffix.lower()](build_decisions_page(changes))
    with open_output_file(str(output)) as file:
        file.write(page.encode())
    decisions = render.count(len(changes.decisions), "decision")
    render.note(f"{decisions}, {render.count(count_affected_players(changes), 'player')} in {output}")
    return int(bool(changes.failed))


@report.command(name="player")
@click.argument("player", type=to_nfc)
@click.argument("ladder", type=to_nfc, required=False)
@as_of_option
@known_at_option
@click.option("--to", "end", metavar="TIME|POSITION", help="The later time or position.  [default: the head]")
@names_option
@click.option("--output", "-o", metavar="FILE", required=True, callback=_parse_html_path, help="A new file, FILE.html.")
@click.pass_obj
def report_player(
    db: str,
    player: str,
    ladder: str | None,
    as_of: str | None,
    known_at: str | None,
    end: str | None,
    names: Path | None,
    output: Path,
) -> None:
    """Report how PLAYER's points on LADDER came about. Compare the points as known at two times.

    \b
        ratings report player mira elo-catan --known-at 92 -o mira.html

    For auditors: one file to print. It shows every game with its terms, each cause of the difference, the decisions
    with authors and reasons, the rules, and the commands that check each number. The same ledger gives the same bytes.
    LADDER may be left out if PLAYER is on only one.
    """
    site = build_site("", names, "")
    from ratings_ledger import open as open_session
    from ratings_ledger.web.page import render_file
    from ratings_ledger.web.report import build_report_page
    from ratings_ledger.web.visits import Visit

    coordinates = [{"as_of": as_of, "known_at": recorded_until} for recorded_until in (known_at or end, end)]
    with open_session(db) as ledger:
        earlier, later = (Visit(ledger, {name: value for name, value in axes.items() if value}) for axes in coordinates)
        player, ladder = later.view.resolve_ladder(player, ladder)
        try:
            page = build_report_page(earlier, later, player, ladder)
        finally:
            for note in dict.fromkeys([*earlier.view.notes, *later.view.notes]):
                print_note(note)
        content = render_file(page, site)
    report_ignored_events(page.answer.left_out)
    with open_output_file(str(output)) as file:
        file.write(content)
    games = render.count(len(page.variables["games"]), "game")
    render.note(f"{games} in {output}, SHA-256 {sha256(content).hexdigest()}")
