"""The short way through a table with one row per participant: many rows at once, as long as all have the usual form.

Each row is on a line of its own, has all its cells, with nothing around them, and says the same about its game as the
rows next to it. The cells are taken by column: each distinct one is looked at once. The short way ends at the first
lines for which that is not true, and the rest is read row by row: so it need not know everything that is valid, and has
no messages of its own.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import chain, compress, count, islice, pairwise, repeat
from operator import ne
from typing import Any

from ratings_ledger.ledger.events.fast_models import member_values
from ratings_ledger.ledger.events.game_types.placing import PlacingGame, PlacingParticipant
from ratings_ledger.ledger.events.games import Game, Participant
from ratings_ledger.ledger.events.types import NormalisedGame
from ratings_ledger.ledger.intake.cell_errors import may_hold_errors
from ratings_ledger.ledger.intake.columns import (
    GAME_COLUMNS,
    READ_COLUMNS,
    Cells,
    CsvColumns,
    Header,
    TableOptions,
    instant_text,
    read_value,
)
from ratings_ledger.ledger.intake.decimals import COMMA_DELIMITERS, is_doubtful
from ratings_ledger.ledger.intake.table_games import ROWS_MAX
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.validation.nobodies import is_dash

LINES = 1_000

# line, event, a function that gives the rows as read, game id
RowsTogether = tuple[int, dict[str, Any], Callable[[], list[Cells]], str]

# what is left to be read row by row: lines, the number of the first, and the id of the previous game
Rest = tuple[Iterator[str], int, str | None]


def plain_games(
    lines: Iterator[str], first: int, delimiter: str, header: Header, columns: CsvColumns, options: TableOptions
) -> Generator[RowsTogether, None, Rest]:
    """The games of the lines after the header, given the number of the first line; returns what is left."""
    last_id: str | None = None
    # what an option says for all rows is said of other columns, and is something
    is_odd = not all(options.fixed.values()) or options.fixed.keys() - {*GAME_COLUMNS}
    if "" in header or "game_id" not in header or "game_id" in options.fixed or is_odd:
        return (lines, first, last_id)
    some: list[str] = []
    while True:
        wanted = len(some) + LINES
        try:
            for line in islice(lines, LINES):
                some.append(line)
        except Refused as problem:
            return (chain(some, refused_lines(problem)), first, last_id)
        ended = len(some) < wanted
        found = _games(some, ended, delimiter, header, columns, options)
        if found is None:
            return (chain(some, lines), first, last_id)
        firsts, events, cells = found
        for (begin, end), event in zip(pairwise(firsts), events, strict=True):
            last_id = event["data"]["game_id"]
            yield first + begin, event, partial(_told, header, cells, begin, end), last_id
        first += firsts[-1]
        del some[: firsts[-1]]
        if len(some) > ROWS_MAX:
            return (chain(some, lines), first, last_id)  # of one game, which is too many
        if ended:
            return (iter(some), first, last_id)


def _games(
    lines: list[str], ended: bool, delimiter: str, header: Header, columns: CsvColumns, options: TableOptions
) -> tuple[list[int], list[dict[str, Any]], list[str]] | None:
    """The games of some lines, except the last unless the file has ended: where each begins and the last ends, their
    events, and all cells. None if they need a closer look."""
    text, width = "".join(lines).replace("\r\n", "\n"), len(header)
    text += "" if text.endswith("\n") else "\n"
    edges = (f" {delimiter}", f"{delimiter} ", " \n", "\n ")
    spaced = " " in text and (text.startswith(" ") or any(edge in text for edge in edges))
    if spaced or '"' in text or may_hold_errors(text) or {*map(str.count, lines, repeat(delimiter))} - {width - 1}:
        return None
    cells = text.replace("\n", delimiter).split(delimiter)[:-1]
    if len(cells) != len(lines) * width or not "".join(cells).isprintable():
        return None
    of = {name: cells[column::width] for column, name in enumerate(header)}
    scores = {*of.get("score", ())}
    if "," in "".join(scores) or (delimiter in COMMA_DELIMITERS and any(map(is_doubtful, scores))):
        return None  # perhaps decimal commas, or thousands
    if not all(of.get("player", ())) or any(map(is_dash, {*of.get("player", ()), *of.get("replaces", ())})):
        return None
    ids = of["game_id"]
    said = list(zip(*(of[name] for name in columns.game), strict=True))
    firsts = [0, *compress(count(1), map(ne, said[1:], said)), *([len(lines)] if ended else [])]
    ascii_ids = all(ids) and "".join(ids).isascii()
    if not ascii_ids or any(ids[begin] == ids[end] for begin, end in pairwise(firsts) if end < len(ids)):
        return None
    if any(end - begin > ROWS_MAX for begin, end in pairwise(firsts)):
        return None
    try:
        events = _events(of, firsts, columns, options)
    except Refused:
        return None
    return None if events is None else (firsts, events, cells)


def _events(
    of: dict[str | None, list[str]], firsts: list[int], columns: CsvColumns, options: TableOptions
) -> list[dict[str, Any]] | None:
    """The games of some columns, each beginning at one of the rows `firsts`, which has what is said of the whole game.

    Each distinct cell is looked at once, by the model of games; if it takes them all, nobody need look at the games'
    members again. None if they need a closer look. Raises `Refused`.
    """
    of_games = {name: [of[name][row] for row in firsts[:-1]] for name in columns.game}
    of_games |= {name: [text] * (len(firsts) - 1) for name, text in options.fixed.items()}
    times = of_games.pop("occurred_at", [""])
    if not all(times):
        return None
    games, are_games_taken = _values(of_games, PlacingGame)
    players, are_players_taken = _values({name: of[name] for name in columns.player}, PlacingParticipant)
    participants = _objects(players)
    games["participants"] = [participants[begin:end] for begin, end in pairwise(firsts)]
    made = NormalisedGame if are_games_taken and are_players_taken and not options.aliases else dict
    return [
        made(type="game.recorded", occurred_at=instant_text(time, options.zone), data=game)
        for time, game in zip(times, _objects(games), strict=True)
    ]


def _values(texts: Mapping[str, list[str]], model: type[Game] | type[Participant]) -> tuple[dict[str, list[Any]], bool]:
    """The values in the cells of some columns, None for empty ones, and whether the model takes all of them; those that
    it takes are normalised. Raises `Refused`.
    """
    needed = [name for name, field in model.model_fields.items() if field.is_required() and name != "participants"]
    found, are_taken = dict[str, list[Any]](), all(all(texts.get(name, [""])) for name in needed)
    for name, cells in texts.items():
        distinct = {text: read_value(name, text) if name in READ_COLUMNS else text for text in set(cells) if text}
        taken = member_values(model, name, list(distinct.values()))
        if taken is None:
            are_taken = False
        else:
            distinct = dict(zip(distinct, taken, strict=True))
        found[name] = list(map(distinct.get, cells))
    return found, are_taken


def _objects(columns: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """An object for every row, its members in canonical order, without those that have no value."""
    # names are joined with values by column, which takes a third of the time that it does by row
    found = list(map(dict, zip(*(zip(repeat(name), columns[name]) for name in sorted(columns)), strict=True)))
    if not any(None in values for values in columns.values()):
        return found
    return [{name: value for name, value in one.items() if value is not None} for one in found]


def _told(header: Header, cells: list[str], begin: int, end: int) -> list[Cells]:
    """Some rows as shown to people: their non-empty cells by column."""
    rows = (cells[row * len(header) : (row + 1) * len(header)] for row in range(begin, end))
    return [{name: text for name, text in zip(header, row, strict=True) if name and text} for row in rows]


def refused_lines(problem: Refused) -> Iterator[str]:
    """Lines that cannot be read."""
    raise problem
    yield
