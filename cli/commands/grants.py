"""Implement `grants`: the roles for a ledger in PostgreSQL."""

import textwrap

import click

from ratings_ledger.cli.arguments.command import OneOf, command
from ratings_ledger.cli.arguments.options import format_option
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.store.dialect import DIALECTS, NAME, PREFIX
from ratings_ledger.ledger.store.opening import parse_url

USED_BY = {
    "owner": ("everything, so also switch guards off", "init and upgrade"),
    "writer": ("read, and append events", "import, record, correct, publish and all else that records"),
    "rebuilder": ("read, and write the stored standings", "rebuild"),
    "reader": ("read", "standings, verify and all other reading commands"),
    "dashboard": ("read the live standings, and no event", "other programs, by SQL"),
}


def _read_prefix(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is no prefix; use at most 40 of a to z, 0 to 9 and _, no digit first, such as --prefix club_a_"
        )
    return value


@command()
@click.option("--sql", is_flag=True, help="Print the statements that create the roles and grant their rights.")
@click.option(
    "--prefix",
    default=PREFIX,
    show_default=True,
    callback=_read_prefix,
    help="The prefix of the roles' names; each club on a server has its own.",
)
@click.option(
    "--as",
    "who",
    type=OneOf(["administrator", "owner"]),
    help="With --sql: only the statements that this role runs, before init or after it.",
)
@format_option
@click.pass_obj
def grants(db: str, sql: bool, prefix: str, who: str | None, form: str) -> None:
    """Show the roles for a ledger in PostgreSQL, as described in docs/postgresql.md.

    It changes nothing and connects to no server. --db names the database. `ratings doctor` checks what a server
    actually grants.
    """
    if who is not None and not sql:
        raise click.UsageError("--as belongs to --sql")
    if sql and form != "table":
        raise click.UsageError("--sql prints statements; leave out --format")
    if sql:
        for title, statements in _build_scripts(db, prefix, who):
            render.echo(f"-- {title}\n" + "\n".join(_wrap_statement(f"{statement};") for statement in statements))
        return
    rows = [(f"{prefix}{role}", *rights) for role, rights in USED_BY.items()]
    if form == "json":
        render.print_json([dict(zip(("role", "may", "is_used_by"), row, strict=True)) for row in rows])
    elif form == "csv":
        render.print_csv(("role", "may", "is_used_by"), rows)
    else:
        render.print_table(("role", "may", "is used by"), rows)


def _build_scripts(db: str, prefix: str, who: str | None) -> list[tuple[str, list[str]]]:
    """Return the statements, each group with the title of who runs it. Raises `NotALedger`."""
    url = parse_url(db)
    statements = DIALECTS[url.get_backend_name()]().grant_statements(url.database or "", prefix)
    if statements is None or not url.database or not url.database.isprintable():
        raise NotALedger(
            "grants are for a ledger in PostgreSQL, and --db names its database: --db postgresql://db.example/ratings"
        )
    after = f"as {prefix}owner, in the database {url.database}, after `ratings init` and after each upgrade"
    scripts = {
        "administrator": ("as an administrator of the server", statements.administrator),
        "owner": (after, statements.owner),
    }
    return [script for name, script in scripts.items() if who in (None, name)]


def _wrap_statement(statement: str) -> str:
    """Return a statement on lines of readable length; statements with quoted names, which may hold spaces,
    stay whole.
    """
    if '"' in statement:
        return statement
    return textwrap.fill(statement, 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
