"""Read the options of web pages: the title and the names of players."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.intake.files import read_simple_table
from ratings_ledger.ledger.rejections import Refused, quote

if TYPE_CHECKING:
    from ratings_ledger.web.page import Site

WEB_EXTRA_MISSING = "pages need the extra web: pip install 'ratings-ledger[web]'"

names_option = click.option(
    "--names",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV file with the columns id and name; pages show these names instead of ids.",
)


def build_site(title: str, names: Path | None, extension: str) -> "Site":
    """Return the settings of pages. Raises `BadArgument` for a missing extra `web` or an invalid file of names."""
    try:
        from ratings_ledger.web.page import Site
    except ModuleNotFoundError:
        raise BadArgument(WEB_EXTRA_MISSING) from None
    return Site(title, {} if names is None else _read_names(names), extension)


def _read_names(path: Path) -> dict[str, str]:
    """Return the names by id. Raises `BadArgument` for an invalid file."""
    names: dict[str, str] = {}
    try:
        table = read_simple_table(str(path))
        if table is None or not {"id", "name"} <= {*table.header}:
            raise Refused(
                "missing-column", "the table needs the columns id and name", 1 if table is None else table.line
            )
        for line, cells in table.rows:
            if "id" not in cells or "name" not in cells:
                raise Refused("missing-member", "the row needs an id and a name", line)
            if (name := names.setdefault(cells["id"], cells["name"])) != cells["name"]:
                message = f"{cells['id']} has two names, {quote(name)} and {quote(cells['name'])}; keep one"
                raise Refused("player-twice", message, line)
    except Refused as problem:
        line_text = "" if problem.line is None else f", line {problem.line}"
        raise BadArgument(f"{path}{line_text}: {problem.message}", "names") from None
    return names
