"""Recognise tables as people keep them, and rewrite them in the usual form.

A spreadsheet has a title above its header and a total below, columns in its owner's language, dates in any order, and
perhaps a column per player. The import reports how it read a table. It refuses everything that it cannot recognise, all
at once, and leaves nothing out in silence.

A title row                                 above the header
Date   Winner  2nd   Remark     header 2    columns Date = occurred_at ..., dropped Remark
1.2.   anna    ben   late
Date   Winner  2nd   Remark                 the header again
no game this week                           no game
Total  1                                    a total
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.intake.tables.columns import (
    COMMA_DELIMITERS,
    GAME_COLUMNS,
    NEEDED,
    Cells,
    CsvColumns,
    Header,
    TableOptions,
    convert_decimal_comma,
    describe_cell_error,
    describe_invalid_utf8,
    describe_only_game,
    group_columns,
    has_invalid_utf8,
    is_number,
    is_of_result,
    is_place,
    resolve_columns,
    strip_place_mark,
    write_column_letters,
)
from ratings_ledger.ledger.intake.tables.combined_columns import combine_columns
from ratings_ledger.ledger.intake.tables.dates import Order, find_date_order, is_date_alone, normalise_moment
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS, UNCLEAR, recognise_layout
from ratings_ledger.ledger.intake.tables.layouts.layout import Layout, TableView, number_games, read_cell
from ratings_ledger.ledger.intake.tables.layouts.player_columns import NUMBER, may_be_player
from ratings_ledger.ledger.intake.tables.meanings import (
    DAYS_OF_PLAY,
    EMAIL,
    FILLED_IN,
    OF_PLAYER,
    OF_SIDES,
    REMARK,
    ROUND,
    TIME,
    find_meaning,
    fold_word,
    is_of_team,
    is_total,
    repeats_header,
)
from ratings_ledger.ledger.intake.tables.other_tables import explain_other_table
from ratings_ledger.ledger.intake.tables.partners import JOINTS, split_team_cell
from ratings_ledger.ledger.intake.tables.similar_rows import has_similar_games, read_similar_games
from ratings_ledger.ledger.intake.tables.table_games import (
    ReadGame,
    blank_dashes,
    find_name_columns,
    read_row_cells,
    read_row_games,
)
from ratings_ledger.ledger.rejections import Refused, csv_item, quote

LISTED_MAX = 5


class TableRead(NamedTuple):
    """How a table was read; rows are given by their lines.

    layout:       one of the `LAYOUTS`
    columns:      the meaning of each column that is used, by its name in the table
    header:       the line of the header; `above` are the lines of titles
    repeated:     rows that repeat the header
    totals:       rows of totals, with the word that says so
    gameless:     rows with a remark or a date but no player, with the text
    blank:        the number of empty rows
    hidden:       rows that the spreadsheet hides; they are read like the others
    dropped:      columns that are left out, by an option or by their names
    unknown:      columns without a known meaning, which are refused
    dates:        the order of day, month and year, if any date depends on it
    dates_from:   the line and the text of the date that decided it
    is_numbered:  whether the games have no ids and are numbered by day
    told:         sentences that report how the table was read
    unsaid:       members that a refused table does not give; its games are read only to find other errors
    """

    layout: str
    columns: Mapping[str, str]
    header: int
    above: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()
    totals: tuple[tuple[int, str], ...] = ()
    gameless: tuple[tuple[int, str], ...] = ()
    blank: int = 0
    hidden: tuple[int, ...] = ()
    dropped: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    dates: str | None = None
    dates_from: tuple[int, str] | None = None
    is_numbered: bool = False
    sheet: str | None = None
    other_sheets: tuple[str, ...] = ()
    delimiter: str | None = None
    encoding: str | None = None
    told: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()


def list_left_out_rows(table: TableRead) -> list[str]:
    """Describe the filled rows that are no games.

    >>> list_left_out_rows(TableRead("rows", {}, 2, above=(1,), totals=((9, "Total"),)))
    ['line 1 above the header', "line 9, 'Total'"]
    """
    rows = [(line, f"line {line}, the header again") for line in table.repeated]
    rows += [(line, f"line {line}, {quote(text)}") for line, text in table.totals + table.gameless]
    listed = [text for _, text in sorted(rows)]
    if len(listed) > LISTED_MAX:
        listed[LISTED_MAX:] = [f"and {len(listed) - LISTED_MAX:,} more such lines"]
    above = [f"{', '.join(f'line {line}' for line in table.above)} above the header"] if table.above else []
    return above + listed


def describe_replaced_column(column: str, texts: Collection[str], ours: str, value: str) -> str:
    """Say in a sentence that one value for all rows replaces the texts of a column, the first of which are listed.

    >>> describe_replaced_column("Spiel", ["catan", "schach"], "game", "catan")
    'game=catan replaces column Spiel (catan, schach)'
    """
    more = " and others" if len(texts) > LISTED_MAX else ""
    return f"{ours}={value} replaces column {column} ({', '.join(map(csv_item, [*texts][:LISTED_MAX]))}{more})"


# the header is among the first HEADER_ROWS rows, and has at least KNOWN_MIN known columns
HEADER_ROWS, KNOWN_MIN = 20, 2
REMARK_CELLS_MAX = 2  # of a row that is no game
NUMBERED = "games have no number of their own; they are numbered by day"
# placeholders for members that a refused table does not give
_UNSAID = {"occurred_at": "2000-01-01", "game": "game"}
# if these are the only problems, games can be read without the unknown columns
_DROPPED_ALONE = {"unknown-column", "missing-column", "unclear-dates", "bad-profile"}
CELLS_MAX = 10_000_000  # of a table that is recognised, which is held in memory
ROUNDS_LEFT_OUT = "rounds are not read"
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
Rows = list[tuple[int, list[str]]]


class Table(NamedTuple):
    """A table before recognition: its filled rows with their lines, and the number of `blank` ones.

    A spreadsheet has the name of its `sheet`, `faults` of cells and `doubtful` numbers by row and column from 0, the
    lines of `hidden` rows, and the names of `other_sheets`. A text has its `delimiter` and `encoding`. `told` has
    sentences for the user.
    """

    rows: Rows
    blank: int = 0
    sheet: str = ""
    faults: Mapping[tuple[int, int], str] = {}
    hidden: Sequence[int] = ()
    other_sheets: Sequence[str] = ()
    doubtful: Collection[tuple[int, int]] = ()
    delimiter: str = ""
    encoding: str | None = None
    told: tuple[str, ...] = ()


def recognise_games(table: Table, options: TableOptions) -> Iterator[ReadGame | TableRead | TableOptions | str]:
    """Yield how a table is read, then its games; or everything that is wrong with it.

    Before the games come sentences, and the options that read the next such table the same way.
    """
    at = find_header(table.rows, options) or 0
    table, names = _read_names(table, at)
    line, names, body = table.rows[at][0], *combine_columns(names, table.rows[at + 1 :], options.meanings_by_name)
    layout, unclear = _find_layout(table, line, names, body, options)
    header, problems = _read_header(names, body, layout, options)
    if unclear:
        # which columns are not known depends on the layout
        problems = [*unclear, *(problem for problem in problems if problem.code != "unknown-column")]
        options = options._replace(checks_all=False)
    name_columns = find_name_columns(header)
    body = [(line_of_row, blank_dashes(row, name_columns)) for line_of_row, row in body]
    body, repeated, totals = _drop_extras(body, names, header)
    body, gameless = _drop_gameless(table, body, header, layout)
    header, replaced = _drop_replaced(names, header, body, options)
    problems += [*_check_unnamed_columns(table, line, header, body), *_check_utf8(names)]
    order = _find_order(body, _find_date_column(header), options, problems)
    left_out = find_left_out_columns(names, options)
    dropped = (*_list_dropped(names, options), *left_out)
    unknown = tuple(
        name
        for name, ours in zip(names, header, strict=True)
        if name and ours is None and name not in (*dropped, *replaced)
    )
    if options.profile and any(problem.code in ("unknown-column", "missing-column") for problem in problems):
        problems[:0] = _find_profile_problems(names, unknown, options)
    used = {name: ours for name, ours in zip(names, header, strict=True) if ours}
    renamed = {name: ours for name, ours in used.items() if not ours.startswith(OF_PLAYER) and name.casefold() != ours}
    read = _start_reading(table, at)._replace(
        layout=layout.name,
        columns=used,
        repeated=repeated,
        totals=totals,
        gameless=gameless,
        dropped=dropped,
        unknown=unknown,
        is_numbered="game_id" not in (*header, *options.fixed),
        dates=order.name if order.is_needed else None,
        dates_from=order.decided_by,
    )
    if problems:
        view = TableView(names, [name or None for name in header], body, line, table.sheet)
        yield from _read_refused_table(table, view, read, problems, order.name, options)
        return
    sentences = _describe_reading(read, renamed, order, _first_day(body, header, order.name), options)
    forms = () if options.profile else _describe_left_out(names, header, left_out)
    yield read._replace(told=(*table.told, *sentences, *forms, *describe_only_game(header, options)))
    yield from filter(None, replaced.values())
    yield options._replace(
        found=None,
        sheet=options.sheet or table.sheet or None,
        layout=layout.name,
        columns={**options.columns, **renamed},
        dates=order.name if order.told else options.dates,
    )
    yield from _read_games(table, TableView(names, [*header], body, line, table.sheet), read, order.name, options)


def _check_utf8(names: list[str]) -> list[Refused]:
    """Return the refusal of the first name of a column that is not UTF-8, if there is one."""
    invalid = next(filter(has_invalid_utf8, names), None)
    return [] if invalid is None else [Refused("bad-utf8", f"the header {describe_invalid_utf8(invalid)}")]


def _read_names(table: Table, at: int) -> tuple[Table, list[str]]:
    """Return the names of the columns, and the table with a fault for each name that is an error of a spreadsheet."""
    names = [" ".join(name.split()) for name in table.rows[at][1]]
    row = table.rows[at][0] - 1
    errors = {(row, column): message for column, name in enumerate(names) if (message := describe_cell_error(name))}
    names = ["" if (row, column) in errors else name for column, name in enumerate(names)]
    return table._replace(faults={**table.faults, **errors}) if errors else table, names


def _start_reading(table: Table, at: int) -> TableRead:
    """Return how a table is read as far as its source and the row of its header say."""
    return TableRead(
        layout="",
        columns={},
        header=table.rows[at][0],
        above=tuple(above for above, _ in table.rows[:at]),
        blank=table.blank,
        hidden=(*table.hidden,),
        sheet=table.sheet or None,
        other_sheets=(*table.other_sheets,),
        delimiter=table.delimiter or None,
        encoding=table.encoding,
    )


def _read_games(
    table: Table, view: TableView, read: TableRead, order: str, options: TableOptions
) -> Iterator[ReadGame | str]:
    """Yield a note about ids that stay whole, and the games of the rows, or their errors."""
    header, layout = view.meanings, LAYOUTS[read.layout]
    options = options._replace(team_columns=team_columns(view.names, header, options))
    yield from _report_whole_ids(view.body, header, options)
    columns = _rewritten_columns(header, layout)._replace(is_numbered=read.is_numbered, sheet=table.sheet or None)
    if options.found is not None:
        options.found(columns)
    rows: Iterator[tuple[int, Cells | Refused]] = (
        (line, _read_row(table, line, row, header, order)) for line, row in view.body
    )
    if day := options.fixed.get("occurred_at"):
        rows = ((line, cells if isinstance(cells, Refused) else {**cells, "occurred_at": day}) for line, cells in rows)
    if read.is_numbered:
        rows = number_games(rows, layout)
    if read.is_numbered and has_similar_games(layout, header):
        games = read_similar_games(rows, layout, view, columns, options)
    else:
        rewritten = iter(layout.read(rows, view, options))
        games = read_row_games(rewritten, columns, options, is_row_whole=layout.is_row_whole)
    for line, event, source, rows_of in games:
        outcome = _name_sheet(event, table, line) if isinstance(event, Refused) else event
        yield line, outcome, source, rows_of


def _describe_reading(
    read: TableRead, renamed: Mapping[str, str], order: Order, day: str, options: TableOptions
) -> Iterator[str]:
    """Yield sentences about how a table is read where other readings are possible; with a profile, only what it leaves
    open.
    """
    if left_out := list_left_out_rows(read):
        yield f"left out: {'; '.join(left_out)}"
    by_profile = {name.casefold(): ours for name, ours in options.columns.items()}
    new_columns = {name: ours for name, ours in renamed.items() if by_profile.get(name.casefold()) != ours}
    if new_columns:
        yield f"columns: {', '.join(f'{csv_item(name)} = {ours}' for name, ours in new_columns.items())}"
    if order.told:
        yield order.told
    if not LAYOUTS[read.layout].is_usual and not (options.profile and options.layout):
        yield LAYOUTS[read.layout].summary
    if read.is_numbered and not options.profile:
        yield f"{NUMBERED}, such as {day}-1" if day else NUMBERED


def _describe_left_out(names: list[str], header: Header, left_out: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each column that is left out without an option."""
    yield from (f"left out: column {csv_item(name)}; {reason}" for name, reason in left_out.items())
    for column, (name, ours) in enumerate(zip(names, header, strict=True)):
        if not name and ours is None:
            yield f"left out: column {write_column_letters(column)} without a name; it counts the rows"


def _first_day(body: Rows, header: Header, order: str) -> str:
    """Return the day of the first readable date, or an empty text."""
    for _, row in body:
        with suppress(Refused):
            if _DAY.match(day := normalise_moment(read_cell(row, _find_date_column(header)), None, order)[:10]):
                return day
    return ""


def _list_dropped(names: list[str], options: TableOptions) -> tuple[str, ...]:
    """Return the columns that an option leaves out."""
    said = options.meanings_by_name
    return tuple(name for name in names if name and said.get(name.casefold()) == "")


def _read_refused_table(
    table: Table, view: TableView, read: TableRead, problems: list[Refused], order: str, options: TableOptions
) -> Iterator[ReadGame | TableRead | str]:
    """Yield the problems of a table and of its rows, so that all can be fixed at once.

    Its games are read as far as their columns are known, with placeholders for missing members.
    """
    if (other := explain_other_table(table.rows)) is not None:
        yield read._replace(told=table.told, unsaid=(*_UNSAID,))
        yield other.line or view.header_line, _name_sheet(other, table, view.header_line), None, None
        return
    header, codes = view.meanings, {problem.code for problem in problems}
    if "occurred_at" in header and not order:
        header[header.index("occurred_at")] = None
    said = {*header, *options.fixed, *(["game"] if options.only_game else [])}
    unsaid = {name: text for name, text in _UNSAID.items() if name not in said}
    yield read._replace(told=table.told, unsaid=(*unsaid,))
    yield from (
        (problem.line or view.header_line, _name_sheet(problem, table, view.header_line), None, None)
        for problem in problems
    )
    layout = LAYOUTS[read.layout]
    is_doubtful = codes - _DROPPED_ALONE or any(map(is_of_result, read.unknown)) or not layout.has_players(header)
    # where a player has a row, the date says where a game ends
    has_ends = layout.is_row_whole or "occurred_at" not in unsaid
    if options.checks_all and has_ends and not is_doubtful:
        yield from _read_games(
            table, view, read, order, options._replace(fixed={**unsaid, **options.fixed}, found=None)
        )
    else:
        yield from _find_wrong_rows(table, view.body, header, order)


def _find_wrong_rows(table: Table, body: Rows, header: Header, order: str) -> Iterator[ReadGame]:
    """Yield the problems of cells, so that they can be fixed with those of the table."""
    for line, row in body:
        if isinstance(problem := _read_row(table, line, row, header, order), Refused):
            yield line, _name_sheet(problem, table, line), None, None


def _name_sheet(problem: Refused, table: Table, line: int) -> Refused:
    """Return a refusal that names the sheet, if the table has one and the refusal does not name it yet."""
    if not table.sheet or problem.message.startswith(f"{table.sheet}!"):
        return problem
    placed = Refused(problem.code, f"{table.sheet}!{line}: {problem.message}")
    placed.names = problem.names
    return placed


def _find_meaning(name: str, options: TableOptions) -> str | None:
    """Return the meaning of a column: by an option, else by its name."""
    said = options.meanings_by_name
    return said[name.casefold()] if name.casefold() in said else find_meaning(name)


def find_header(rows: Rows, options: TableOptions) -> int | None:
    """Return the row of the header: the first with a date and another column, else with two known columns."""
    known = [
        {_find_meaning(" ".join(name.split()), options) for name in row} - {None, ""} for _, row in rows[:HEADER_ROWS]
    ]
    for required in ({"occurred_at"}, set[str | None]()):
        for at, meanings in enumerate(known):
            filled = sum(bool(name.strip()) for name in rows[at][1])
            if meanings >= required and filled >= KNOWN_MIN and len(meanings) >= KNOWN_MIN - len(required):
                return at
    return None


def _find_layout(
    table: Table, line: int, names: list[str], body: Rows, options: TableOptions
) -> tuple[Layout, list[Refused]]:
    """Return the layout by an option or by the table's columns; if it is unclear, the one with all columns, and why."""
    if options.layout is not None:
        return LAYOUTS[options.layout], []
    meanings = [_find_meaning(name, options) if name else "" for name in names]
    try:
        return recognise_layout(TableView(names, meanings, body, line, table.sheet)), []
    except Refused as problem:
        return UNCLEAR, [problem]


def _read_header(names: list[str], body: Rows, layout: Layout, options: TableOptions) -> tuple[Header, list[Refused]]:
    """Return the columns under this program's names, and their problems."""
    renamed, taken = dict[str, str](), set[str]()
    means = {name: _find_meaning(name, options) for name in names if name}
    if "game_id" not in means.values():
        # a column called game often has its number
        for name in (name for name, found in means.items() if found == "game"):
            column = names.index(name)
            if all(read_cell(row, column).isdecimal() for _, row in body):
                means[name] = "game_id"
    if TIME in means.values() and "occurred_at" not in means.values():
        means = {name: "occurred_at" if found == TIME else found for name, found in means.items()}
    others = layout.rename({*means.values()})
    left_out = find_left_out_columns(names, options)
    for name, found in means.items():
        if name in left_out:
            renamed[name] = ""
            continue
        found = others.get(found or "", found)
        if found is not None and layout.holds(found) and found not in taken:
            renamed[name] = found
            taken.add(found)
        elif found is None and layout.has_player_columns and may_be_player(name, body, names.index(name)):
            renamed[name] = OF_PLAYER + name
    # a table of recorded games needs fewer columns, unless they are numbered by day
    said = {*renamed.values(), *options.fixed}
    needed = NEEDED if "occurred_at" in said and "game_id" not in said else options.needed
    given = [*(["game_id"] if needed == NEEDED else []), *([] if layout.is_usual else ["player"])]
    spelled = {name.casefold(): name for name in renamed}
    said_besides = {theirs: ours for theirs, ours in options.renamed.items() if theirs.casefold() not in spelled}
    options = options._replace(renamed=renamed | said_besides, needed=needed)
    header, problems = resolve_columns(names, options, layout.holds, given)
    counting = _find_row_count(names, body, layout)
    return [None if column == counting else ours for column, ours in enumerate(header)], problems


def find_left_out_columns(names: Sequence[str], options: TableOptions) -> dict[str, str]:
    """Return the columns that are left out, with the reason: e-mail addresses, remarks, rounds, and the time when a
    form was filled in, where another column has the time of the game.
    """
    means = {name: _find_meaning(name, options) for name in names if name}
    reasons = {
        EMAIL: "e-mail addresses do not belong in a ledger",
        REMARK: "remarks are not read",
        ROUND: ROUNDS_LEFT_OUT,
    }
    left_out = {name: reasons[meaning] for name, meaning in means.items() if meaning in reasons}
    dated = [name for name, meaning in means.items() if meaning == "occurred_at"]
    filled_in = [name for name in dated if fold_word(name) in FILLED_IN]
    if len(dated) > len(filled_in):
        left_out |= dict.fromkeys(filled_in, "another column says when games were played")
    days = [name for name in dated if name not in left_out and fold_word(name) in DAYS_OF_PLAY]
    if len(days) + len(filled_in) < len(dated):
        left_out |= dict.fromkeys(days, ROUNDS_LEFT_OUT)
    return left_out


def _find_row_count(names: list[str], body: Rows, layout: Layout) -> int | None:
    """Find the column without a name in which programs count the rows; None if the table lacks it.

    A count from 1 may be that of places where each player has a row.
    """
    for column in (column for column, name in enumerate(names) if not name):
        texts = [read_cell(row, column) for _, row in body]
        starts = [first for first in (0, 1) if texts == [str(first + index) for index in range(len(texts))]]
        if len(texts) > 1 and starts and (starts == [0] or layout.is_row_whole):
            return column
    return None


def _drop_extras(
    body: Rows, names: list[str], header: Header
) -> tuple[Rows, tuple[int, ...], tuple[tuple[int, str], ...]]:
    """Return the rows without repeated headers and totals, and the lines of these."""
    dated = _find_date_column(header)
    rows, repeated, totals = Rows(), list[int](), list[tuple[int, str]]()
    for line, row in body:
        if repeats_header(row, names):
            repeated.append(line)
        elif dated is not None and is_total(row) and (not read_cell(row, dated) or is_total([read_cell(row, dated)])):
            totals.append((line, next(cell for cell in row if cell.strip()).strip()))
        else:
            rows.append((line, row))
    return rows, (*repeated,), (*totals,)


def _drop_gameless(
    table: Table, body: Rows, header: Header, layout: Layout
) -> tuple[Rows, tuple[tuple[int, str], ...]]:
    """Return the rows without remarks, which have one or two cells and no player, and the lines of these.

    Only in layouts where a row is a game."""
    if not layout.is_row_whole:
        return body, ()
    rows, gameless = Rows(), list[tuple[int, str]]()
    faulty = {row for row, _ in table.faults}
    for line, row in body:
        filled = [text for cell in row if (text := cell.strip())]
        is_short = len(filled) <= REMARK_CELLS_MAX
        if is_short and line - 1 not in faulty and _is_remark(filled) and not _has_player(row, header):
            # in columns of players, dashes were emptied
            gameless.append((line, filled[0] if filled else "-"))
        else:
            rows.append((line, row))
    return rows, (*gameless,)


def _is_remark(filled: list[str]) -> bool:
    """Return whether no cell can contain a whole game after its date, as with another delimiter."""
    return not any(text[0].isdigit() and any(map(str.isalpha, text)) and not is_date_alone(text) for text in filled)


def _has_player(row: list[str], header: Header) -> bool:
    """Return whether a row has a player; in columns of numbers, a text without a date is a remark."""
    for column, name in enumerate(header):
        if name and (text := read_cell(row, column)):
            if is_place(name) or name in OF_SIDES:
                return True
            if name.startswith(OF_PLAYER) and (
                read_cell(row, _find_date_column(header)) or NUMBER.fullmatch(strip_place_mark(text))
            ):
                return True
    return False


def _find_date_column(header: Header) -> int | None:
    return header.index("occurred_at") if "occurred_at" in header else None


def _drop_replaced(
    names: list[str], header: Header, body: Rows, options: TableOptions
) -> tuple[Header, dict[str, str]]:
    """Return the columns without those that one value for all rows replaces, and a sentence for each of these that is
    not empty.
    """
    columns, sentences = [*header], dict[str, str]()
    for column, ours in enumerate(header):
        if ours and ours in options.fixed:
            columns[column] = None
            texts = dict.fromkeys(text for _, row in body if (text := read_cell(row, column)))
            sentences[names[column]] = (
                describe_replaced_column(names[column], texts, ours, options.fixed[ours]) if texts else ""
            )
    return columns, sentences


def _check_unnamed_columns(table: Table, header_line: int, header: Header, body: Rows) -> Iterator[Refused]:
    """Yield a problem for each column whose name is an error of the spreadsheet, or is missing though it has texts."""
    for column in (column for column, name in enumerate(header) if name == ""):
        letters = write_column_letters(column)
        if message := table.faults.get((header_line - 1, column)):
            where = f"{table.sheet}!{letters}{header_line}" if table.sheet else f"column {letters}"
            yield Refused("bad-cell", f"{where}: {message}")
            continue
        line, text = next(((line, text) for line, row in body if (text := read_cell(row, column))), (0, ""))
        if text:
            message = f"column {letters} has no name, and {quote(text)} is in it (line {line})"
            yield Refused("unknown-column", f"{message}; give it a name, or leave it empty")


def _find_profile_problems(names: list[str], unknown: Sequence[str], options: TableOptions) -> list[Refused]:
    """Return a problem if the columns of a table and of its profile differ."""
    present = {name.casefold() for name in names}
    lacking = [name for name in options.columns if name.casefold() not in present]
    parts = [
        f"{message} {', '.join(map(quote, columns))}"
        for message, columns in (("columns that are not here:", lacking), ("columns that it does not name:", unknown))
        if columns
    ]
    message = f"the profile {options.profile} does not fit this table; {'; '.join(parts)}"
    return [Refused("bad-profile", message)] if parts else []


def team_columns(names: Sequence[str], header: Header, options: TableOptions) -> frozenset[str]:
    """Return the columns, under this program's names, that contain partners according to their own names."""
    renamed = {theirs.casefold() for theirs in options.renamed}
    return frozenset(
        ours
        for name, ours in zip(names, header, strict=True)
        if ours and is_of_team(name) and name.casefold() not in renamed
    )


def _find_order(body: Rows, dated: int | None, options: TableOptions, problems: list[Refused]) -> Order:
    """Return the order of the dates in a column; add to `problems` if it is unclear."""
    try:
        return find_date_order(((there, read_cell(row, dated)) for there, row in body), options.dates)
    except Refused as problem:
        problems.append(problem)
        return Order("", is_needed=False)


def _report_whole_ids(body: Rows, header: Header, options: TableOptions) -> Iterator[str]:
    """Yield a note about known ids that contain a separator of partners and stay whole."""
    joints = options.partners or JOINTS
    sides = [(column, name) for column, name in enumerate(header) if name and (is_place(name) or name in OF_SIDES)]
    whole = dict[str, None]()
    for _, row in body if options.whole else ():
        for column, name in sides:
            if any(joint in (text := read_cell(row, column)) for joint in joints):
                with suppress(Refused):
                    players = map(to_nfc, split_team_cell(name, text, options))
                    whole |= {p: None for p in players if p in options.whole and any(j in p for j in joints)}
    if whole:
        yield f"not taken apart, since the ledger knows them: {', '.join(map(csv_item, whole))}"


def _rewritten_columns(header: Header, layout: Layout) -> CsvColumns:
    """Return the columns of the rewritten table."""
    columns = group_columns(header)
    game_columns = tuple(name for name in GAME_COLUMNS if name in columns.game or name == "game_id")
    game = game_columns + tuple(name for name in columns.game if is_number(name))
    if layout.is_usual:
        return columns._replace(game=game)
    return CsvColumns((*game, "extra.scores", "extra.forfeit"), ("player", "place", "score", "team"), {})


def _read_row(table: Table, line: int, row: list[str], header: Header, order: str) -> Cells | Refused:
    """Return a row's cells by column, with the time in the usual form and decimal points."""
    for column, name in enumerate(header) if table.faults else ():
        if name is not None and (message := table.faults.get((line - 1, column))):
            return Refused("bad-cell", f"{table.sheet}!{write_column_letters(column)}{line}: {message}")
    cells = read_row_cells(row, header)
    if isinstance(cells, Refused):
        return cells
    try:
        if "occurred_at" in cells:
            cells["occurred_at"] = normalise_moment(cells["occurred_at"], cells.pop(TIME, None), order)
    except Refused as problem:
        return problem
    if table.delimiter in COMMA_DELIMITERS:
        return convert_commas(cells)
    if not table.doubtful:
        return cells
    doubtful = [name for column, name in enumerate(header) if (line - 1, column) in table.doubtful]
    refused = convert_commas({name: cells[name] for name in doubtful if name is not None and name in cells})
    return refused if isinstance(refused, Refused) else cells


def convert_commas(cells: Cells) -> Cells | Refused:
    """Return the cells of a row, with decimal points for commas in scores."""
    for name, text in cells.items():
        if _is_score(name):
            try:
                cells[name] = convert_decimal_comma("score", text)
            except Refused as problem:
                return problem
    return cells


def _is_score(column: str | None) -> bool:
    return column is not None and (column == "score" or column.endswith(" score") or column.startswith(OF_PLAYER))
