"""How tables are to be read: the options that say what a table does not say itself."""

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import wraps
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import OneOf
from ratings_ledger.cli.arguments.options import zone_option
from ratings_ledger.cli.arguments.views import decoded
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.intake.files import read_lines
from ratings_ledger.ledger.intake.forfeits import FORFEITS
from ratings_ledger.ledger.intake.parsing import has_score
from ratings_ledger.ledger.intake.tables.aliases import merge_aliases, read_aliases
from ratings_ledger.ledger.intake.tables.columns import GAME_COLUMNS, TableOptions, is_number
from ratings_ledger.ledger.intake.tables.dates import ORDERS
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.layouts.sides import OTHERS
from ratings_ledger.ledger.intake.tables.meanings import read_column
from ratings_ledger.ledger.intake.tables.profiles import (
    TableProfile,
    check_encoding,
    format_profile,
    is_up_to_date,
    merge_options,
    read_profile,
)
from ratings_ledger.ledger.intake.tables.table_games import TIE
from ratings_ledger.ledger.own_files import create_file, replace_file
from ratings_ledger.ledger.rejections import Refused, Rejection, did_you_mean
from ratings_ledger.ledger.store.log import read_live


def _pair(text: str) -> tuple[str, str]:
    name, equals, other = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name.strip(), other.strip()


def _mapping(text: str) -> tuple[str, str]:
    name, column = _pair(text)
    try:
        return name, read_column(column) if column else ""
    except Refused as problem:
        hint = ""
        with suppress(Refused):
            hint = f"; the table's own name stands left: --map '{column}={name}'" if read_column(name) else ""
        raise click.BadParameter(f"{text!r}: right of the =, {problem.message}{hint}") from None


def _fixed(text: str) -> tuple[str, str]:
    name, value = _pair(text)
    if name not in GAME_COLUMNS and not is_number(name):
        hint = did_you_mean(name, GAME_COLUMNS)
        raise click.BadParameter(f"{name!r} is none of {', '.join(GAME_COLUMNS)}{hint}")
    return name, value


def _encoding(text: str) -> str:
    try:
        check_encoding(text)
    except Refused as problem:
        raise click.BadParameter(problem.message) from None
    return text


partners_option = click.option(
    "--partners",
    metavar="TEXT",
    multiple=True,
    help="What joins players of one side in a cell, such as + in anna + ben; may be repeated.",
)
# by the member of what they say, for every command that reads a table; the zone is an option of other commands, too
OPTIONS = {
    "renamed": click.option("--map", "renamed", metavar="THEIRS=OURS", multiple=True, type=_mapping,
                            help="Say what a column holds, such as Wer=player; THEIRS= drops it."),
    "fixed": click.option("--set", "fixed", metavar="MEMBER=VALUE", multiple=True, type=_fixed,
                          help="The same value for all rows of a table."),
    "sheet": click.option("--sheet", metavar="NAME", help="Which sheet of a spreadsheet."),
    "layout": click.option("--layout", type=OneOf(LAYOUTS), metavar="NAME",
                           help=f"What a table has in its rows and columns: {', '.join(LAYOUTS)}."),
    "dates": click.option("--dates", type=OneOf(ORDERS), help="The order of day, month and year."),
    "ties": click.option("--ties", metavar="TEXT", multiple=True,
                         help="What joins tied players in a cell besides =, such as /; may be repeated."),
    "partners": partners_option,
    "forfeits": click.option("--forfeits", type=OneOf(FORFEITS), help="Rate games that were not played, or not."),
    "others": click.option("--others", type=OneOf(OTHERS),
                           help="Where those finished of whom only the winner is known."),
    "encoding": click.option("--encoding", metavar="NAME", type=_encoding, help="Of a CSV file that is not UTF-8."),
    "alias_file": click.option("--aliases", "alias_file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
                               help="Who is meant by names in a table: lines such as ana = anna."),
    "profile": click.option("--profile", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
                            help="Read a table as this profile says; other options count first."),
}  # fmt: skip
save_option = click.option("--save-profile", "save_as", metavar="FILE", type=click.Path(dir_okay=False),
                           help="Keep how the table was read, with all answers, for --profile.")  # fmt: skip


class Kept(NamedTuple):
    """The files that say how tables are read, and who is meant in them; and where that is to be kept."""

    alias_file: str | None
    profile: str | None
    save_as: str | None

    def read(self, given: TableOptions) -> tuple[TableOptions, list[Rejection]]:
        """Return how tables are read by these and the options that were given, and what is wrong with the files."""
        profile, problems = TableProfile(TableOptions(), []), list[Rejection]()
        if self.profile is not None:
            profile, problems = read_profile(self.profile)
        named = read_aliases(read_lines(self.alias_file), self.alias_file) if self.alias_file is not None else ()
        aliases, wrong = merge_aliases([*profile.aliases, *named])
        options = merge_options(profile.options, given)
        refuse_joints(options.partners, options.ties)
        return options._replace(aliases=aliases), problems + wrong

    def refuse_taken(self, files: Collection[str]) -> None:
        """Raises `click.UsageError` if what is to be kept has no place, or is of several files."""
        if self.save_as is None:
            return
        if len(files) > 1:
            raise click.UsageError("--save-profile keeps how one FILE is read; name one")
        if os.path.lexists(self.save_as) and not self._is_update:
            told = f"{self.save_as} exists; --profile {self.save_as} takes it, and --save-profile then updates it"
            raise click.UsageError(told)

    @property
    def is_used(self) -> bool:
        """Tell whether a profile is read or kept."""
        return self.profile is not None or self.save_as is not None

    @property
    def _is_update(self) -> bool:
        there = self.profile is not None and self.save_as is not None and os.path.exists(self.save_as)
        return there and os.path.samefile(self.profile or "", self.save_as or "")

    def save(self, options: TableOptions) -> None:
        """Keep how a table was read, where that is wanted and not yet said. Raises `OSError`."""
        if self.save_as is None:
            return
        text = format_profile(options, self.save_as)
        if self._is_update and is_up_to_date(self.save_as, text):
            return
        if self._is_update:
            replace_file(os.path.realpath(self.save_as), text.encode(), 0o666)
        else:
            with create_file(self.save_as) as file:
                file.write(text.encode())
        render.note(f"note: {self.save_as} keeps how this table is read")


def refuse_joints(partners: Iterable[str], ties: Iterable[str] = ()) -> None:
    """Raise `click.UsageError` for a text that cannot join partners, as it joins tied players or nobody."""
    for joint in partners:
        if joint.strip() in ("", TIE, *map(str.strip, ties)):
            told = "is empty" if not joint.strip() else "joins tied players"
            raise click.UsageError(f"--partners {joint!r} {told}; partners need a text of their own, such as +")


def find_whole_ids(connection: Connection, partners: Collection[str]) -> frozenset[str]:
    """Return the known ids that hold a text that joins partners, or end in a score; these are not taken apart."""
    return frozenset(
        name for name in decoded(connection).players if any(joint in name for joint in partners) or has_score(name)
    )


def find_scored_games(connection: Connection) -> tuple[str, ...]:
    """Return the games that the published rulesets score."""
    published = read_live(connection, until=None, type_name="ruleset.published")
    return (*sorted({game for event in published for game in Ruleset.model_validate(event.data).scope.game}),)


def find_only_game(connection: Connection) -> str | None:
    """Return the game that the published rulesets score, if they score no other: nobody needs to be asked for it."""
    return TableOptions(games=find_scored_games(connection)).only_game


def table_options(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of tables, which reach it by the names of `OPTIONS`."""
    for option in reversed(OPTIONS.values()):
        command = option(command)
    return command


def read_as(said: dict[str, Any], zone: str | None, save_as: str | None = None) -> tuple[TableOptions, Kept]:
    """Return how tables are read by what the options of `table_options` say, and the files that say it, too."""
    kept = Kept(said["alias_file"], said["profile"], save_as)
    named = {name: dict(said[name]) for name in ("renamed", "fixed")}
    return TableOptions(zone, **{name: said[name] for name in OPTIONS if name in TableOptions._fields} | named), kept


def reading_tables(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of tables; they reach it as `tables`, the files that say the same as `kept`."""

    @wraps(command)
    def wrapped(*args: Any, zone: str | None, save_as: str | None, **rest: Any) -> int:
        tables, kept = read_as({name: rest.pop(name) for name in OPTIONS}, zone, save_as)
        return command(*args, tables=tables, kept=kept, **rest)

    return table_options(zone_option(save_option(wrapped)))
