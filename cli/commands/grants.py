"""Implement `grants`: the roles for a ledger in PostgreSQL."""

import textwrap
from typing import NamedTuple

import click

from ratings_ledger.cli.arguments.command import OneOf, command
from ratings_ledger.cli.arguments.options import format_option
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.store.dialect import DIALECTS, PLAIN_NAME, ROLE_PREFIX
from ratings_ledger.ledger.store.locations import redact_password
from ratings_ledger.ledger.store.opening import parse_url


class RoleInfo(NamedTuple):
    """What a role may do, and which commands or programs use it."""

    rights: str
    used_by: str


ROLES = {
    "owner": RoleInfo("do everything, including disabling the guards", "init and upgrade"),
    "writer": RoleInfo(
        "read, and append events", "import, record, correct, publish and every other command that records events"
    ),
    "rebuilder": RoleInfo("read, and write the stored standings", "rebuild and nightly"),
    "reader": RoleInfo("read", "standings, verify and all other reading commands"),
    "dashboard": RoleInfo("read the live standings, but no events", "other programs, by SQL"),
}


def _read_prefix(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not PLAIN_NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not a valid prefix; use up to 40 characters from a-z, 0-9 and _, not starting with a digit, "
            "such as --prefix club_a_"
        )
    return value


@command()
@click.option("--sql", is_flag=True, help="Print the statements that create the roles and grant their rights.")
@click.option(
    "--prefix",
    default=ROLE_PREFIX,
    show_default=True,
    callback=_read_prefix,
    help="The prefix of the role names. Use a different one for each club on the same server.",
)
@click.option(
    "--as",
    "role",
    type=OneOf(["administrator", "owner"]),
    help="With --sql, only one role's statements: the administrator's run before `ratings init`, the owner's after it.",
)
@format_option
@click.pass_obj
def grants(db: str, sql: bool, prefix: str, role: str | None, output_format: str) -> None:
    """Show the roles for a ledger in PostgreSQL, as described in docs/postgresql.md.

    It changes nothing and does not connect to a server; --db only names the database. `ratings doctor` checks what a
    server actually grants.
    """
    if role is not None and not sql:
        raise click.UsageError("--as works only with --sql; add --sql or leave out --as")
    if sql and output_format != "table":
        raise click.UsageError("--sql prints statements; leave out --format")
    if sql:
        for title, statements in _build_scripts(db, prefix, role):
            render.echo(f"-- {title}\n" + "\n".join(_wrap_statement(f"{statement};") for statement in statements))
        return
    rows = [(f"{prefix}{name}", *info) for name, info in ROLES.items()]
    if output_format == "json":
        render.print_json([dict(zip(("role", "may", "is_used_by"), row, strict=True)) for row in rows])
    elif output_format == "csv":
        render.print_csv(("role", "may", "is_used_by"), rows)
    else:
        render.print_table(("role", "may", "is used by"), rows)


def _build_scripts(db: str, prefix: str, role: str | None) -> list[tuple[str, list[str]]]:
    """Return (title, statements) pairs; the title says which role runs the statements and, for the owner, when.

    Raises `NotALedger`.
    """
    url = parse_url(db)
    statements = DIALECTS[url.get_backend_name()]().build_grant_statements(url.database or "", prefix)
    if statements is None or not url.database or not url.database.isprintable():
        raise NotALedger(
            f"{redact_password(db)} does not name a PostgreSQL database; pass its URL, such as --db "
            "postgresql://db.example/ratings"
        )
    after = f"as {prefix}owner, in the database {url.database}, after `ratings init` and after each upgrade"
    scripts = {
        "administrator": ("as an administrator of the server", statements.administrator),
        "owner": (after, statements.owner),
    }
    return [script for name, script in scripts.items() if role in (None, name)]


def _wrap_statement(statement: str) -> str:
    """Wrap a statement into lines of readable length."""
    # quoted names may contain spaces, at which a statement must not be wrapped
    if '"' in statement:
        return statement
    return textwrap.fill(statement, 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
