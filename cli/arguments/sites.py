"""What pages share, as it is typed: who is shown under which name."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.errors import BadArgument

if TYPE_CHECKING:
    from ratings_ledger.web.page import Site

MISSING = "pages need the extra web: pip install 'ratings-ledger[web]'"

names_option = click.option(
    "--names", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV file with the columns id and name: who is shown under which name.",
)  # fmt: skip


def site_of(title: str, names: Path | None, ending: str) -> "Site":
    """What all pages share. Raises `BadArgument` where pages cannot be made, and for a wrong file of names."""
    try:
        from ratings_ledger.web.page import Site
    except ModuleNotFoundError:
        raise BadArgument(MISSING) from None
    return Site(title, {} if names is None else _names(names), ending)


def _names(path: Path) -> dict[str, str]:
    """Names by id. Raises `BadArgument` for a file that says something else."""
    found: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"id", "name"} <= {*(rows.fieldnames or ())}:
                raise BadArgument(f"{path}, line 1: the columns id and name are needed", "names")
            for row in rows:
                player, name = (row["id"] or "").strip(), (row["name"] or "").strip()
                if not player or not name:
                    raise BadArgument(f"{path}, line {rows.line_num}: an id and a name are needed", "names")
                if found.setdefault(player, name) != name:
                    raise BadArgument(f"{path}, line {rows.line_num}: {player} has two names", "names")
    except (UnicodeDecodeError, csv.Error) as problem:
        raise BadArgument(f"{path} is no table in CSV: {problem}", "names") from None
    return found
