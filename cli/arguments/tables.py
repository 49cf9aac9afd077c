"""Define the options that describe a table, for facts that the table itself lacks."""

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import wraps
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import OneOf
from ratings_ledger.cli.arguments.options import zone_option
from ratings_ledger.cli.arguments.views import decode_for_command
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.events.batches import make_batch_name
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.intake.files import STDIN, read_lines
from ratings_ledger.ledger.intake.forfeits import FORFEIT_CHOICES
from ratings_ledger.ledger.intake.parsing import has_score
from ratings_ledger.ledger.intake.tables.aliases import add_answers, merge_aliases, read_aliases
from ratings_ledger.ledger.intake.tables.columns import GAME_COLUMNS, TableOptions, is_number
from ratings_ledger.ledger.intake.tables.dates import ORDERS
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.layouts.sides import OTHERS_CHOICES
from ratings_ledger.ledger.intake.tables.meanings import parse_meaning
from ratings_ledger.ledger.intake.tables.partners import PARTNER_SEPARATORS
from ratings_ledger.ledger.intake.tables.profiles import (
    TableProfile,
    check_encoding,
    format_profile,
    has_same_members,
    merge_options,
    read_profile,
)
from ratings_ledger.ledger.intake.tables.table_games import TIE
from ratings_ledger.ledger.own_files import create_file, replace_file
from ratings_ledger.ledger.rejections import Refused, Rejection, did_you_mean
from ratings_ledger.ledger.store.log import home_zone, read_live
from ratings_ledger.ledger.validation.batches import recall_answers
from ratings_ledger.projections.facts.lookups import known_players


def _parse_pair(text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as {example}")
    return name.strip(), value.strip()


def _parse_mapping(text: str) -> tuple[str, str]:
    name, column = _parse_pair(text, "Wer=player")
    try:
        return name, parse_meaning(column) if column else ""
    except Refused as problem:
        hint = ""
        with suppress(Refused):
            hint = f"; write the table's own name left of the =: --map '{column}={name}'" if parse_meaning(name) else ""
        raise click.BadParameter(f"{text!r}: right of the =, {problem.message}{hint}") from None


def _parse_fixed(text: str) -> tuple[str, str]:
    name, value = _parse_pair(text, "game=chess")
    if name not in GAME_COLUMNS and not is_number(name):
        hint = did_you_mean(name, GAME_COLUMNS)
        raise click.BadParameter(f"{name!r} is not a column of a game; the columns are {', '.join(GAME_COLUMNS)}{hint}")
    return name, value


def _check_encoding(text: str) -> str:
    try:
        check_encoding(text)
    except Refused as problem:
        raise click.BadParameter(problem.message) from None
    return text


partners_option = click.option(
    "--partners",
    metavar="TEXT",
    multiple=True,
    help="The separator of partners in a cell, such as + in anna + ben; repeatable.",
)
# the options for reading a table, by parameter; without --zone, which is defined for commands without tables, too
TABLE_OPTIONS = {
    "renamed": click.option(
        "--map",
        "renamed",
        metavar="THEIRS=OURS",
        multiple=True,
        type=_parse_mapping,
        help="Name the content of a column, such as Wer=player; THEIRS= drops the column.",
    ),
    "fixed": click.option(
        "--set",
        "fixed",
        metavar="MEMBER=VALUE",
        multiple=True,
        type=_parse_fixed,
        help="Give a column, such as game, the same value in all rows of a table.",
    ),
    "sheet": click.option("--sheet", metavar="NAME", help="The sheet of a spreadsheet."),
    "layout": click.option(
        "--layout",
        type=OneOf(LAYOUTS),
        metavar="NAME",
        help=f"The contents of the rows and columns of a table: {', '.join(LAYOUTS)}.",
    ),
    "dates": click.option("--dates", type=OneOf(ORDERS), help="The order of day, month and year."),
    "ties": click.option(
        "--ties",
        metavar="TEXT",
        multiple=True,
        help="A separator of tied players in a cell besides =, such as /; repeatable.",
    ),
    "partners": partners_option,
    "forfeits": click.option(
        "--forfeits",
        type=OneOf(FORFEIT_CHOICES),
        help="Rate, or do not rate, games decided without play, such as +:- or 3:0 w.o.",
    ),
    "others": click.option(
        "--others",
        type=OneOf(OTHERS_CHOICES),
        help="The places of the other players, if a table names only the winner.",
    ),
    "encoding": click.option(
        "--encoding", metavar="NAME", type=_check_encoding, help="The encoding of a CSV file that is not UTF-8."
    ),
    "alias_file": click.option(
        "--aliases",
        "alias_file",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="A file of ids for names in a table, with lines such as ana = anna.",
    ),
    "profile": click.option(
        "--profile",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Read a table as this profile says; other options take precedence.",
    ),
}
save_option = click.option(
    "--save-profile",
    "save_as",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Save how the table was read, with all answers, for --profile.",
)


class TableFiles(NamedTuple):
    """The files with aliases and a profile for reading tables, and the file to save the profile to, each if given."""

    alias_file: str | None
    profile: str | None
    save_as: str | None

    def read(self, command_options: TableOptions) -> tuple[TableOptions, list[Rejection]]:
        """Return the options from these files and the command line, and the problems of the files.

        Raises `click.UsageError` for an unusable separator of partners.
        """
        profile, problems = TableProfile(TableOptions(), []), list[Rejection]()
        if self.profile is not None:
            profile, problems = read_profile(self.profile)
        pairs = read_aliases(read_lines(self.alias_file), self.alias_file) if self.alias_file is not None else ()
        aliases, contradictions = merge_aliases([*profile.aliases, *pairs])
        options = merge_options(profile.options, command_options)
        check_partner_separators(options.partners, options.ties)
        return options._replace(aliases=aliases), problems + contradictions

    def check_profile_to_save(self, files: Collection[str]) -> None:
        """Raise `click.UsageError` for a profile to save that would describe several files, or that exists.

        It may exist if it is also --profile; then it is updated.
        """
        if self.save_as is None:
            return
        if len(files) > 1:
            raise click.UsageError("--save-profile describes one FILE; name only one")
        if os.path.lexists(self.save_as) and not self._is_update:
            remedy = f"choose another file, or pass --profile {self.save_as} to use and update it"
            raise click.UsageError(f"{self.save_as} exists; {remedy}")

    @property
    def is_used(self) -> bool:
        """Tell whether a profile is read or saved."""
        return self.profile is not None or self.save_as is not None

    @property
    def _is_update(self) -> bool:
        if self.profile is None or self.save_as is None:
            return False
        return os.path.exists(self.save_as) and os.path.samefile(self.profile, self.save_as)

    def save(self, options: TableOptions) -> None:
        """Save how a table was read, if --save-profile is given and its file does not say so yet. Raises `OSError`."""
        if self.save_as is None:
            return
        text = format_profile(options, self.save_as)
        if self._is_update and has_same_members(self.save_as, text):
            return
        if self._is_update:
            replace_file(os.path.realpath(self.save_as), text.encode(), 0o666)
        else:
            with create_file(self.save_as) as file:
                file.write(text.encode())
        render.note(f"note: {self.save_as} records how this table was read; reuse it with --profile {self.save_as}")


def check_partner_separators(partners: Iterable[str], ties: Iterable[str] = ()) -> None:
    """Raise `click.UsageError` for a separator of partners that is empty, or that also separates tied players."""
    for separator in partners:
        if separator.strip() in ("", TIE, *map(str.strip, ties)):
            problem = "is empty" if not separator.strip() else "separates tied players"
            raise click.UsageError(f"--partners {separator!r} {problem}; choose another text, such as --partners +")


def find_unsplittable_ids(connection: Connection, partners: Collection[str]) -> frozenset[str]:
    """Return the known ids that are not split in cells, although they contain a separator or end like a score."""
    return frozenset(
        name
        for name in decode_for_command(connection).players
        if any(separator in name for separator in partners) or has_score(name)
    )


def find_scored_games(connection: Connection) -> tuple[str, ...]:
    """Return the names of the games that the published rulesets score."""
    published = read_live(connection, until=None, type_name="ruleset.published")
    return (*sorted({game for event in published for game in Ruleset.model_validate(event.data).scope.game}),)


def find_only_game(connection: Connection) -> str | None:
    """Return the name of the only game that the published rulesets score, or None if they score none or several."""
    return TableOptions(games=find_scored_games(connection)).only_game


def add_ledger_facts(connection: Connection, options: TableOptions) -> TableOptions:
    """Complete the options of a table with facts of the ledger.

    These are its home zone, unless the options have a zone; the games that its rulesets score; and the ids that must
    not be split.
    """
    return options._replace(
        zone=options.zone or home_zone(connection),
        unsplit_ids=find_unsplittable_ids(connection, options.partners or PARTNER_SEPARATORS),
        games=find_scored_games(connection),
    )


def add_earlier_answers(connection: Connection, options: TableOptions, files: Iterable[str]) -> TableOptions:
    """Add the user's answers about names in earlier imports of these files.

    Other aliases take precedence. A name that has since become a player's id means that player.
    """
    answers = dict[str, str]()
    for file in files:
        answers |= recall_answers(connection, make_batch_name(file)) if file != STDIN else {}
    if answers := {name: player for name, player in answers.items() if name not in options.aliases}:
        players = known_players(decode_for_command(connection))
        answers = {name: player for name, player in answers.items() if name not in players}
    return options._replace(aliases=add_answers(answers, options.aliases), answered_names=frozenset(answers))


def table_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of tables to a command, as parameters with the names of `TABLE_OPTIONS`."""
    for option in reversed(TABLE_OPTIONS.values()):
        command = option(command)
    return command


def read_table_options(
    values: dict[str, Any], zone: str | None, save_as: str | None = None
) -> tuple[TableOptions, TableFiles]:
    """Return the table options among the values of `table_options`, and the files with further options."""
    files = TableFiles(values["alias_file"], values["profile"], save_as)
    fields = {name: values[name] for name in TABLE_OPTIONS if name in TableOptions._fields}
    fields |= {name: dict(values[name]) for name in ("renamed", "fixed")}
    return TableOptions(zone, **fields), files


def with_table_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add table options, --zone and --save-profile to a command, as the parameters `tables` and `table_files`."""

    @wraps(command)
    def run_with_tables(*args: Any, zone: str | None, save_as: str | None, **options: Any) -> int:
        tables, files = read_table_options({name: options.pop(name) for name in TABLE_OPTIONS}, zone, save_as)
        return command(*args, tables=tables, table_files=files, **options)

    return table_options(zone_option(save_option(run_with_tables)))
