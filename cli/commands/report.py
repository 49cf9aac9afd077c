"""`report changes`: what was decided between two positions, and who gained or lost by it, as a page for members."""

from pathlib import Path

import click

from cli.arguments.command import group
from cli.arguments.options import new_path
from cli.arguments.views import note_left_out, view_of
from cli.commands.export import output_file
from cli.output import render
from cli.output.decisions import concerned, decisions_page
from cli.output.html_pages import as_html, as_markdown
from ledger.errors import BadArgument
from ledger.store.opening import open_ledger

WRITERS = {".html": as_html, ".htm": as_html, ".md": as_markdown}


def _output(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    return new_path(value, WRITERS, ".html or .md, which decides the format")


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
    try:
        found = view_of(open_ledger(db), None, end, None).decisions(begin)
    except BadArgument as problem:
        hint = {"after": "--from", "known_at": "--to"}.get(str(problem.argument))
        raise click.BadParameter(str(problem), param_hint=hint) if hint else problem from None
    note_left_out(found.left_out)
    for reason in found.failed:
        render.note(f"ratings: {reason}")
    page = WRITERS[output.suffix.lower()](decisions_page(found))
    with output_file(str(output)) as file:
        file.write(page.encode())
    decisions = render.count(len(found.decisions), "decision")
    render.note(f"{decisions}, {render.count(concerned(found), 'player')} in {output}")
    return int(bool(found.failed))
