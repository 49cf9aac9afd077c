"""`grants`: the roles for a ledger in PostgreSQL."""

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


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not like club_a_: a to z, 0 to 9 and _, at most 40, no digit first")
    return value


@command()
@click.option("--sql", is_flag=True, help="Print the statements that make the roles and give them their rights.")
@click.option("--prefix", default=PREFIX, show_default=True, callback=_name,
              help="How the names of the roles begin; each club on a server has its own prefix.")  # fmt: skip
@click.option("--as", "who", type=OneOf(["administrator", "owner"]),
              help="With --sql: only what this one runs, before init or after it.")  # fmt: skip
@format_option
@click.pass_obj
def grants(db: str, sql: bool, prefix: str, who: str | None, form: str) -> None:
    """Show the roles for a ledger in PostgreSQL, as described in docs/postgresql.md.

    Nothing is done, and no server is asked. The database is the one that --db names. What a server actually grants is
    checked by `ratings doctor`.
    """
    if who is not None and not sql:
        raise click.UsageError("--as belongs to --sql")
    if sql and form != "table":
        raise click.UsageError("--sql prints statements; leave out --format")
    if sql:
        for title, statements in _scripts(db, prefix, who):
            render.echo(f"-- {title}\n" + "\n".join(_folded(f"{statement};") for statement in statements))
        return
    rows = [(f"{prefix}{role}", *told) for role, told in USED_BY.items()]
    if form == "json":
        render.print_json([dict(zip(("role", "may", "is_used_by"), row, strict=True)) for row in rows])
    elif form == "csv":
        render.print_csv(("role", "may", "is_used_by"), rows)
    else:
        render.print_table(("role", "may", "is used by"), rows)


def _scripts(db: str, prefix: str, who: str | None) -> list[tuple[str, list[str]]]:
    """Return the statements by who runs them, each group with a title. Raises `NotALedger`."""
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


def _folded(statement: str) -> str:
    """Return a statement on lines of readable length; quoted names may hold spaces, so statements with them are not
    folded.
    """
    if '"' in statement:
        return statement
    return textwrap.fill(statement, 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
