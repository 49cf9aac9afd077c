"""Read seeds from the command line or a table: the initial states of players on a ladder."""

from __future__ import annotations

import re
from typing import NamedTuple

from ratings_ledger.ledger.events.fields import read_decimal, to_nfc
from ratings_ledger.ledger.intake.files import open_simple_table
from ratings_ledger.ledger.intake.tables.columns import COMMA_DELIMITERS, Cells, convert_decimal_comma
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.projections.replay.streams import find_seeds, state_columns
from ratings_ledger.projections.snapshot import Snapshot

# the columns of a table that are not part of the state
FIXED_COLUMNS = ("player", "games", "reason")


class SeedRow(NamedTuple):
    """A requested seed: the initial state by the rule's columns, and the number of games played elsewhere."""

    file: str
    line: int
    player: str
    state: dict[str, str]
    games: int
    reason: str


def parse_state(values: tuple[str, ...]) -> dict[str, str]:
    """Parse a state written as values such as `rating=1650`. Raises `Refused`."""
    state: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Refused("bad-value", f"{quote(text)} is not a column and its value, such as rating=1650")
        if name in state:
            raise Refused("bad-value", f"{quote(name)} has two values, {state[name]} and {value}; leave one out")
        state[name] = read_decimal(value)
    return state


def read_seeds(file: str, columns: tuple[str, ...], reason: str) -> list[SeedRow]:
    """Read the seeds in a file. Raises `Refused`, with the file and the line.

    Args:
        file: the name of the table.
        columns: the state columns of the ladder.
        reason: the reason for rows without one.
    """
    with open_simple_table(file, (*FIXED_COLUMNS, *columns)) as table:
        if "player" not in table.header or not {*table.header} & {*columns}:
            problem = f"the table needs a column `player`, and at least one state column ({', '.join(columns)})"
            raise Refused("missing-column", f"{problem}; add them to its first line", table.line)
        defaults = SeedRow(file=file, line=0, player="", state={}, games=0, reason=reason)
        return [_read_row(defaults._replace(line=line), cells, table.delimiter) for line, cells in table.rows]


def _read_row(defaults: SeedRow, cells: Cells, delimiter: str) -> SeedRow:
    """Return the seed in a row; empty cells keep their default values. Raises `Refused`, with the line."""
    state = {name: text for name, text in cells.items() if name not in FIXED_COLUMNS}
    try:
        if "player" not in cells or not state:
            raise Refused("missing-member", "the row needs a player, and a value besides games and reason")
        if delimiter in COMMA_DELIMITERS:
            state = {name: convert_decimal_comma(name, text) for name, text in state.items()}
        games = cells.get("games", "0")
        if not re.fullmatch(r"\d{1,9}", games, re.ASCII):
            raise Refused("not-an-integer", f"games is {quote(games)}; it must be a whole number from 0 to 1,000,000")
        return defaults._replace(
            player=to_nfc(cells["player"]),
            state={name: read_decimal(text) for name, text in state.items()},
            games=int(games),
            reason=cells.get("reason", defaults.reason),
        )
    except Refused as problem:
        raise Refused(problem.code, problem.message, defaults.line) from None


def list_seed_columns(view: Snapshot, ladder: str) -> tuple[str, ...]:
    """Return the names of the state columns of a ladder's rules. Raises the errors of `Snapshot.query`."""
    with view.query(ladder) as query:
        versions = query.ladders.versions(ladder)
    return tuple(dict.fromkeys(column.name for version in versions for column in state_columns(version.rule)))


def select_new_seeds(view: Snapshot, ladder: str, rows: list[SeedRow]) -> list[SeedRow]:
    """Return the rows that differ from the recorded seeds. Raises `Refused` if a player has two rows."""
    with view.query(ladder) as query:
        facts = query.ladders.facts
        seeds = {facts.players[person]: (seed.state, seed.games) for person, seed in find_seeds(facts, ladder).items()}
        lines: dict[str, int] = {}
        for row in rows:
            player = facts.current(row.player)
            if (first := lines.setdefault(player, row.line)) != row.line:
                message = f"lines {first} and {row.line} of {row.file} are both for {quote(row.player)}; leave one out"
                raise Refused("player-twice", message)
        return [row for row in rows if seeds.get(facts.current(row.player)) != (row.state, row.games)]
