"""Recognise tables as people keep them, and rewrite them in the usual form.

A spreadsheet may have a title above its header and a total below, columns in its owner's language, dates in any order,
and a column per player. The import reports how it read a table, and each row and column that it left out. If it
cannot recognise some texts, it reports all of them together, and refuses the table.

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
    REQUIRED_COLUMNS,
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
    is_place,
    is_result_name,
    resolve_columns,
    strip_place_mark,
    write_column_letters,
)
from ratings_ledger.ledger.intake.tables.combined_columns import combine_columns
from ratings_ledger.ledger.intake.tables.dates import Order, find_date_order, is_date_alone, normalise_date_time
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS, UNCLEAR, recognise_layout
from ratings_ledger.ledger.intake.tables.layouts.layout import Layout, TableView, number_games, read_cell
from ratings_ledger.ledger.intake.tables.layouts.player_columns import NUMBER, may_be_player_column
from ratings_ledger.ledger.intake.tables.meanings import (
    DAYS_OF_PLAY,
    EMAIL,
    PLAYER_PREFIX,
    REMARK,
    ROUND,
    SIDE_COLUMNS,
    TIME,
    TIMESTAMP_WORDS,
    find_meaning,
    fold_word,
    is_team_name,
    is_total,
    repeats_header,
)
from ratings_ledger.ledger.intake.tables.other_tables import explain_unreadable_table
from ratings_ledger.ledger.intake.tables.partners import PARTNER_SEPARATORS, split_team_cell
from ratings_ledger.ledger.intake.tables.similar_rows import can_compose_games, read_similar_games
from ratings_ledger.ledger.intake.tables.table_games import (
    ReadGame,
    blank_dashes,
    find_name_columns,
    read_row_cells,
    read_row_games,
)
from ratings_ledger.ledger.rejections import Refused, count, csv_item, quote

LISTED_MAX = 5


class TableRead(NamedTuple):
    """The interpretation of a table; lines identify its rows.

    layout:          a name in `LAYOUTS`
    columns:         the meaning of each column that is used, by its name in the table
    header:          the line of the header
    above:           the lines of titles above the header
    repeated:        the lines that repeat the header
    totals:          (line, word) of rows of totals, such as (9, "Total")
    gameless:        (line, text) of rows with a remark or a date but no player
    blank:           the number of empty rows
    hidden:          the lines that the spreadsheet hides; they are read like the others
    dropped:         the columns that are left out, by an option or by their names
    unknown:         the columns without a known meaning, which are refused
    dates:           the order of day, month and year (`dmy`, `mdy`, `ymd`), if an option or a date needs it
    dates_from:      the line and the text of the date that decided the order
    is_numbered:     whether the games have no ids and are numbered by day
    sheet:           the name of the sheet of a spreadsheet
    other_sheets:    the names of the sheets that were not read
    delimiter:       the delimiter of a text file
    encoding:        the encoding of a text file
    sentences:       sentences for the user about how the table was read
    missing_members: the members that a refused table lacks; its games are read only to find further errors
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
    sentences: tuple[str, ...] = ()
    missing_members: tuple[str, ...] = ()


def list_left_out_rows(table: TableRead) -> list[str]:
    """Describe the rows with texts that are not games: all above the header as one, and at most `LISTED_MAX` others.

    >>> list_left_out_rows(TableRead("rows", {}, 2, above=(1,), totals=((9, "Total"),)))
    ['line 1 above the header', "line 9, 'Total'"]
    """
    texts_by_line = [(line, f"line {line}, the header again") for line in table.repeated]
    texts_by_line += [(line, f"line {line}, {quote(text)}") for line, text in table.totals + table.gameless]
    listed = [text for _, text in sorted(texts_by_line)]
    if len(listed) > LISTED_MAX:
        listed[LISTED_MAX:] = [f"and {count(len(listed) - LISTED_MAX, 'more such line')}"]
    above = [f"{', '.join(f'line {line}' for line in table.above)} above the header"] if table.above else []
    return above + listed


def describe_replaced_column(column: str, texts: Collection[str], ours: str, value: str) -> str:
    """Return a sentence about a column that one value replaces in all rows, with the column's first texts.

    >>> describe_replaced_column("Spiel", ["catan", "schach"], "game", "catan")
    'game=catan replaces column Spiel (catan, schach)'
    """
    more = " and others" if len(texts) > LISTED_MAX else ""
    return f"{ours}={value} replaces column {column} ({', '.join(map(csv_item, [*texts][:LISTED_MAX]))}{more})"


# the header is among the first HEADER_ROWS rows, and has at least KNOWN_MIN columns, of which one may be unknown if
# another has the dates
HEADER_ROWS, KNOWN_MIN = 20, 2
REMARK_CELLS_MAX = 2  # a row with more filled cells is not a remark
NUMBERED = "games have no number of their own; they are numbered by day"
# placeholders for members that a refused table lacks, with which its games can be read to find further errors
_PLACEHOLDERS = {"occurred_at": "2000-01-01", "game": "game"}
# codes of problems that do not prevent reading the games of a refused table
_TOLERATED_CODES = {"unknown-column", "missing-column", "unclear-dates", "bad-profile"}
CELLS_MAX = 10_000_000  # larger tables are refused, because recognition keeps all cells in memory
ROUNDS_LEFT_OUT = "rounds are not read"
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
Rows = list[tuple[int, list[str]]]


class Table(NamedTuple):
    """A table before recognition.

    rows:         (line, cells) of the filled rows
    blank:        the number of empty rows
    sheet:        the name of the sheet of a spreadsheet
    cell_errors:  messages about invalid cells of a spreadsheet, by (row, column) from 0
    hidden:       the lines that the spreadsheet hides
    other_sheets: the names of the other sheets
    doubtful:     (row, column) from 0 of texts that could be whole numbers with separated thousands
    delimiter:    the delimiter of a text file
    encoding:     the encoding of a text file
    sentences:    sentences for the user about how the table was read
    """

    rows: Rows
    blank: int = 0
    sheet: str = ""
    cell_errors: Mapping[tuple[int, int], str] = {}
    hidden: Sequence[int] = ()
    other_sheets: Sequence[str] = ()
    doubtful: Collection[tuple[int, int]] = ()
    delimiter: str = ""
    encoding: str | None = None
    sentences: tuple[str, ...] = ()


def recognise_games(table: Table, options: TableOptions) -> Iterator[ReadGame | TableRead | TableOptions | str]:
    """Yield the interpretation of a table, sentences for the user, options for similar tables, and the games.

    For an invalid table, yield the interpretation and all problems; with `checks_all`, also games with placeholders if
    the known columns suffice, so that their errors are reported, too.
    """
    header_index = find_header(table.rows, options) or 0
    table, names = _read_names(table, header_index)
    rows = table.rows[header_index + 1 :]
    line, names, body = table.rows[header_index][0], *combine_columns(names, rows, options.meanings_by_name)
    layout, unclear = _find_layout(table, line, names, body, options)
    header, problems = _read_header(names, body, layout, options)
    if unclear:
        # without a layout, it is unclear which columns are unknown
        problems = [*unclear, *(problem for problem in problems if problem.code != "unknown-column")]
        options = options._replace(checks_all=False)
    name_columns = find_name_columns(header)
    body = [(line_of_row, blank_dashes(row, name_columns)) for line_of_row, row in body]
    body, repeated, totals = _separate_headers_and_totals(body, names, header)
    body, gameless = _separate_remarks(table, body, header, layout)
    header, replaced = _drop_replaced_columns(names, header, body, options)
    problems += [*_check_unnamed_columns(table, line, header, body), *_check_utf8(names)]
    order = _find_order(body, _find_date_column(header), options, problems)
    left_out = find_left_out_columns(names, options)
    dropped = (*_list_dropped(names, options), *left_out)
    unknown = _list_unknown(names, header, known=(*dropped, *replaced))
    if options.profile and any(problem.code in ("unknown-column", "missing-column") for problem in problems):
        problems[:0] = _find_profile_problems(names, unknown, options)
    used = {name: ours for name, ours in zip(names, header, strict=True) if ours}
    named_columns = {name: ours for name, ours in used.items() if not ours.startswith(PLAYER_PREFIX)}
    renamed = {name: ours for name, ours in named_columns.items() if name.casefold() != ours}
    table_read = _build_table_read(table, header_index)._replace(
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
        yield from _read_refused_table(table, view, table_read, problems=problems, order=order.name, options=options)
        return
    sentences = [*_describe_reading(table_read, renamed, order, _find_first_day(body, header, order.name), options)]
    if not options.profile:
        sentences += _describe_left_out(names, header, left_out)
    yield table_read._replace(sentences=(*table.sentences, *sentences, *describe_only_game(header, options)))
    yield from filter(None, replaced.values())
    yield options._replace(
        on_columns=None,
        sheet=options.sheet or table.sheet or None,
        layout=layout.name,
        columns={**options.columns, **renamed},
        dates=order.name if order.sentence else options.dates,
    )
    yield from _read_games(table, TableView(names, [*header], body, line, table.sheet), table_read, order.name, options)


def _list_unknown(names: Sequence[str], header: Sequence[str | None], known: Collection[str]) -> tuple[str, ...]:
    """Return the names of the columns without a meaning, except the names that are `known`."""
    return tuple(name for name, ours in zip(names, header, strict=True) if name and ours is None and name not in known)


def _check_utf8(names: list[str]) -> list[Refused]:
    """Return a refusal of the first column name that is not UTF-8, if any."""
    invalid = next(filter(has_invalid_utf8, names), None)
    return [] if invalid is None else [Refused("bad-utf8", f"the header {describe_invalid_utf8(invalid)}")]


def _read_names(table: Table, header_index: int) -> tuple[Table, list[str]]:
    """Return the table, with errors of formulas in its header as cell errors, and the names of its columns."""
    names = [" ".join(name.split()) for name in table.rows[header_index][1]]
    row = table.rows[header_index][0] - 1
    errors = {(row, column): message for column, name in enumerate(names) if (message := describe_cell_error(name))}
    names = ["" if (row, column) in errors else name for column, name in enumerate(names)]
    return table._replace(cell_errors={**table.cell_errors, **errors}) if errors else table, names


def _build_table_read(table: Table, header_index: int) -> TableRead:
    """Build the part of a table's interpretation that depends only on its source and the row of its header."""
    return TableRead(
        layout="",
        columns={},
        header=table.rows[header_index][0],
        above=tuple(line for line, _ in table.rows[:header_index]),
        blank=table.blank,
        hidden=(*table.hidden,),
        sheet=table.sheet or None,
        other_sheets=(*table.other_sheets,),
        delimiter=table.delimiter or None,
        encoding=table.encoding,
    )


def _read_games(
    table: Table, view: TableView, table_read: TableRead, order: str, options: TableOptions
) -> Iterator[ReadGame | str]:
    """Yield a note about ids that are not split, and the games of the rows, or their errors."""
    header, layout = view.meanings, LAYOUTS[table_read.layout]
    options = options._replace(team_columns=find_team_columns(view.names, header, options))
    yield from _describe_whole_ids(view.body, header, options)
    columns = _rewrite_columns(header, layout)._replace(is_numbered=table_read.is_numbered, sheet=table.sheet or None)
    if options.on_columns is not None:
        options.on_columns(columns)
    rows: Iterator[tuple[int, Cells | Refused]] = (
        (line, _read_row(table, line, row, header, order)) for line, row in view.body
    )
    if day := options.fixed.get("occurred_at"):
        rows = ((line, cells if isinstance(cells, Refused) else {**cells, "occurred_at": day}) for line, cells in rows)
    if table_read.is_numbered:
        rows = number_games(rows, layout)
    if table_read.is_numbered and can_compose_games(layout, header):
        games = read_similar_games(rows, layout, view, columns, options)
    else:
        rewritten = iter(layout.read(rows, view, options))
        games = read_row_games(rewritten, columns, options, is_row_whole=layout.is_row_whole)
    for line, event, source, rows_of in games:
        outcome = _name_sheet(event, table, line) if isinstance(event, Refused) else event
        yield line, outcome, source, rows_of


def _describe_reading(
    table_read: TableRead, renamed: Mapping[str, str], order: Order, day: str, options: TableOptions
) -> Iterator[str]:
    """Yield sentences about the parts of a table's interpretation that the profile does not determine."""
    if left_out := list_left_out_rows(table_read):
        yield f"left out: {'; '.join(left_out)}"
    profile_columns = {name.casefold(): ours for name, ours in options.columns.items()}
    new_columns = {name: ours for name, ours in renamed.items() if profile_columns.get(name.casefold()) != ours}
    if new_columns:
        yield f"columns: {', '.join(f'{csv_item(name)} = {ours}' for name, ours in new_columns.items())}"
    if order.sentence:
        yield order.sentence
    if not LAYOUTS[table_read.layout].is_usual and not (options.profile and options.layout):
        yield LAYOUTS[table_read.layout].summary
    if table_read.is_numbered and not options.profile:
        yield f"{NUMBERED}, such as {day}-1" if day else NUMBERED


def _describe_left_out(names: list[str], header: Header, left_out: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each column that is left out although no option says so."""
    yield from (f"left out: column {csv_item(name)}; {reason}" for name, reason in left_out.items())
    for column, (name, ours) in enumerate(zip(names, header, strict=True)):
        if not name and ours is None:
            yield f"left out: column {write_column_letters(column)} without a name; it counts the rows"


def _find_first_day(body: Rows, header: Header, order: str) -> str:
    """Return the day of the first readable date, or an empty text."""
    for _, row in body:
        with suppress(Refused):
            if _DAY.match(day := normalise_date_time(read_cell(row, _find_date_column(header)), None, order)[:10]):
                return day
    return ""


def _list_dropped(names: list[str], options: TableOptions) -> tuple[str, ...]:
    """Return the columns that options or the profile leave out."""
    meanings = options.meanings_by_name
    return tuple(name for name in names if name and meanings.get(name.casefold()) == "")


def _read_refused_table(
    table: Table, view: TableView, table_read: TableRead, *, problems: list[Refused], order: str, options: TableOptions
) -> Iterator[ReadGame | TableRead | str]:
    """Yield the problems of a table and of its rows, so that the user can fix all of them at once.

    If the known columns suffice, read the games with placeholders for missing members.
    """
    if (refusal := explain_unreadable_table(table.rows)) is not None:
        yield table_read._replace(sentences=table.sentences, missing_members=(*_PLACEHOLDERS,))
        yield refusal.line or view.header_line, _name_sheet(refusal, table, view.header_line), None, None
        return
    header, codes = view.meanings, {problem.code for problem in problems}
    if "occurred_at" in header and not order:
        header[header.index("occurred_at")] = None
    known = {*header, *options.fixed, *(["game"] if options.only_game else [])}
    placeholders = {name: text for name, text in _PLACEHOLDERS.items() if name not in known}
    yield table_read._replace(sentences=table.sentences, missing_members=(*placeholders,))
    yield from (
        (problem.line or view.header_line, _name_sheet(problem, table, view.header_line), None, None)
        for problem in problems
    )
    layout = LAYOUTS[table_read.layout]
    are_columns_unreliable = (
        codes - _TOLERATED_CODES or any(map(is_result_name, table_read.unknown)) or not layout.has_players(header)
    )
    # if each player has a row, dates are needed to separate games
    are_games_separate = layout.is_row_whole or "occurred_at" not in placeholders
    if options.checks_all and are_games_separate and not are_columns_unreliable:
        options = options._replace(fixed={**placeholders, **options.fixed}, on_columns=None)
        yield from _read_games(table, view, table_read, order, options)
    else:
        yield from _find_invalid_rows(table, view.body, header, order)


def _find_invalid_rows(table: Table, body: Rows, header: Header, order: str) -> Iterator[ReadGame]:
    """Yield the problems of cells, so that the user can fix them together with the problems of the table."""
    for line, row in body:
        if isinstance(problem := _read_row(table, line, row, header, order), Refused):
            yield line, _name_sheet(problem, table, line), None, None


def _name_sheet(problem: Refused, table: Table, line: int) -> Refused:
    """Return a refusal whose message names the sheet and line, if the table has a sheet."""
    if not table.sheet or problem.message.startswith(f"{table.sheet}!"):
        return problem
    located = Refused(problem.code, f"{table.sheet}!{line}: {problem.message}")
    located.names = problem.names
    return located


def _find_meaning(name: str, options: TableOptions) -> str | None:
    """Return the meaning of a column from an option or else from its name; None if it is unknown."""
    meanings = options.meanings_by_name
    return meanings[name.casefold()] if name.casefold() in meanings else find_meaning(name)


def find_header(rows: Rows, options: TableOptions) -> int | None:
    """Return the index of the header, or None.

    It is the first row with a column of dates and any other column, or else the first with two known columns.
    """
    meanings_of_rows = [
        {_find_meaning(" ".join(name.split()), options) for name in row} - {None, ""} for _, row in rows[:HEADER_ROWS]
    ]
    for required in ({"occurred_at"}, set[str | None]()):
        for index, meanings in enumerate(meanings_of_rows):
            filled = sum(bool(name.strip()) for name in rows[index][1])
            if meanings >= required and filled >= KNOWN_MIN and len(meanings) >= KNOWN_MIN - len(required):
                return index
    return None


def _find_layout(
    table: Table, line: int, names: list[str], body: Rows, options: TableOptions
) -> tuple[Layout, list[Refused]]:
    """Return the layout that an option names or the columns indicate; if it is unclear, `UNCLEAR` and the refusal."""
    if options.layout is not None:
        return LAYOUTS[options.layout], []
    meanings = [_find_meaning(name, options) if name else "" for name in names]
    try:
        return recognise_layout(TableView(names, meanings, body, line, table.sheet)), []
    except Refused as problem:
        return UNCLEAR, [problem]


def _read_header(names: list[str], body: Rows, layout: Layout, options: TableOptions) -> tuple[Header, list[Refused]]:
    """Return the meaning of each column, and the problems of the header."""
    renamed, used = dict[str, str](), set[str]()
    meanings = {name: _find_meaning(name, options) for name in names if name}
    if "game_id" not in meanings.values():
        # a column called game often contains the number of the game
        for name in (name for name, meaning in meanings.items() if meaning == "game"):
            column = names.index(name)
            if all(read_cell(row, column).isdecimal() for _, row in body):
                meanings[name] = "game_id"
    if TIME in meanings.values() and "occurred_at" not in meanings.values():
        meanings = {name: "occurred_at" if meaning == TIME else meaning for name, meaning in meanings.items()}
    layout_meanings = layout.rename({*meanings.values()})
    left_out = find_left_out_columns(names, options)
    for name, meaning in meanings.items():
        if name in left_out:
            renamed[name] = ""
            continue
        meaning = layout_meanings.get(meaning or "", meaning)
        if meaning is not None and layout.accepts(meaning) and meaning not in used:
            renamed[name] = meaning
            used.add(meaning)
        elif meaning is None and layout.has_player_columns and may_be_player_column(name, body, names.index(name)):
            renamed[name] = PLAYER_PREFIX + name
    # a table of recorded games needs fewer columns, unless the games are numbered by day
    known = {*renamed.values(), *options.fixed}
    required = REQUIRED_COLUMNS if "occurred_at" in known and "game_id" not in known else options.required
    implied = [*(["game_id"] if required == REQUIRED_COLUMNS else []), *([] if layout.is_usual else ["player"])]
    folded_names = {name.casefold() for name in renamed}
    unused_renames = {theirs: ours for theirs, ours in options.renamed.items() if theirs.casefold() not in folded_names}
    options = options._replace(renamed=renamed | unused_renames, required=required)
    header, problems = resolve_columns(names, options, layout.accepts, implied)
    row_number_column = _find_row_number_column(names, body, layout)
    return [None if column == row_number_column else ours for column, ours in enumerate(header)], problems


def find_left_out_columns(names: Sequence[str], options: TableOptions) -> dict[str, str]:
    """Return the reason for each column that is left out, by its name.

    E-mail addresses, remarks and rounds are left out. If another column has the date of the game, so are the time when
    a form was filled in, and a day of play (Spieltag), which is the number of a round.
    """
    meanings = {name: _find_meaning(name, options) for name in names if name}
    reasons = {
        EMAIL: "e-mail addresses do not belong in a ledger",
        REMARK: "remarks are not read",
        ROUND: ROUNDS_LEFT_OUT,
    }
    left_out = {name: reasons[meaning] for name, meaning in meanings.items() if meaning in reasons}
    date_columns = [name for name, meaning in meanings.items() if meaning == "occurred_at"]
    filled_in = [name for name in date_columns if fold_word(name) in TIMESTAMP_WORDS]
    if len(date_columns) > len(filled_in):
        left_out |= dict.fromkeys(filled_in, "another column says when games were played")
    days = [name for name in date_columns if name not in left_out and fold_word(name) in DAYS_OF_PLAY]
    if len(days) + len(filled_in) < len(date_columns):
        left_out |= dict.fromkeys(days, ROUNDS_LEFT_OUT)
    return left_out


def _find_row_number_column(names: list[str], body: Rows, layout: Layout) -> int | None:
    """Return the index of an unnamed column in which a program numbered the rows, or None.

    If each player has a row, numbers from 1 are not recognised, because they may be the places.
    """
    for column in (column for column, name in enumerate(names) if not name):
        texts = [read_cell(row, column) for _, row in body]
        starts = [first for first in (0, 1) if texts == [str(first + index) for index in range(len(texts))]]
        if len(texts) > 1 and starts and (starts == [0] or layout.is_row_whole):
            return column
    return None


def _separate_headers_and_totals(
    body: Rows, names: list[str], header: Header
) -> tuple[Rows, tuple[int, ...], tuple[tuple[int, str], ...]]:
    """Return the other rows, the lines of repeated headers, and (line, word) of totals."""
    date_column = _find_date_column(header)
    rows, repeated, totals = Rows(), list[int](), list[tuple[int, str]]()
    for line, row in body:
        if repeats_header(row, names):
            repeated.append(line)
        elif _is_total_row(row, date_column):
            totals.append((line, next(cell for cell in row if cell.strip()).strip()))
        else:
            rows.append((line, row))
    return rows, (*repeated,), (*totals,)


def _is_total_row(row: list[str], date_column: int | None) -> bool:
    """Tell whether a row is a total: its first word says so, and it has no date. Without a date column none is."""
    if date_column is None or not is_total(row):
        return False
    date = read_cell(row, date_column)
    return not date or is_total([date])


def _separate_remarks(
    table: Table, body: Rows, header: Header, layout: Layout
) -> tuple[Rows, tuple[tuple[int, str], ...]]:
    """Return the other rows, and (line, text) of remarks: rows with few filled cells and no player.

    If each player has a row, no row is a remark.
    """
    if not layout.is_row_whole:
        return body, ()
    rows, gameless = Rows(), list[tuple[int, str]]()
    faulty = {row for row, _ in table.cell_errors}
    for line, row in body:
        filled = [text for cell in row if (text := cell.strip())]
        is_short = len(filled) <= REMARK_CELLS_MAX
        if is_short and line - 1 not in faulty and _is_remark(filled) and not _names_player(row, header):
            # a row without filled cells had dashes in columns of players
            gameless.append((line, filled[0] if filled else "-"))
        else:
            rows.append((line, row))
    return rows, (*gameless,)


def _is_remark(filled: list[str]) -> bool:
    """Tell whether a row may be a remark: no cell seems to hold a whole game, as with a wrong delimiter."""
    return not any(text[0].isdigit() and any(map(str.isalpha, text)) and not is_date_alone(text) for text in filled)


def _names_player(row: list[str], header: Header) -> bool:
    """Tell whether a row has a player. Without a date, a player's own column counts only if it has a number."""
    for column, name in enumerate(header):
        if name and (text := read_cell(row, column)):
            if is_place(name) or name in SIDE_COLUMNS:
                return True
            if name.startswith(PLAYER_PREFIX) and (
                read_cell(row, _find_date_column(header)) or NUMBER.fullmatch(strip_place_mark(text))
            ):
                return True
    return False


def _find_date_column(header: Header) -> int | None:
    return header.index("occurred_at") if "occurred_at" in header else None


def _drop_replaced_columns(
    names: list[str], header: Header, body: Rows, options: TableOptions
) -> tuple[Header, dict[str, str]]:
    """Return the header without columns that one value replaces in all rows, and a sentence by replaced column.

    The sentence is empty if the column is.
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
    """Yield a problem for each column that has texts but no name, or an error of a formula as its name."""
    for column in (column for column, name in enumerate(header) if name == ""):
        letters = write_column_letters(column)
        if message := table.cell_errors.get((header_line - 1, column)):
            location = f"{table.sheet}!{letters}{header_line}" if table.sheet else f"column {letters}"
            yield Refused("bad-cell", f"{location}: {message}")
            continue
        line, text = next(((line, text) for line, row in body if (text := read_cell(row, column))), (0, ""))
        if text:
            message = f"column {letters} has no name, but contains {quote(text)} (line {line})"
            yield Refused("unknown-column", f"{message}; give the column a name, or delete its texts")


def _find_profile_problems(names: list[str], unknown: Sequence[str], options: TableOptions) -> list[Refused]:
    """Return a problem if the columns of a table and of its profile differ, else an empty list."""
    present = {name.casefold() for name in names}
    missing = [name for name in options.columns if name.casefold() not in present]
    differences = (("columns missing from the table:", missing), ("columns missing from the profile:", unknown))
    parts = [f"{title} {', '.join(map(quote, columns))}" for title, columns in differences if columns]
    message = f"the profile {options.profile} does not fit this table; {'; '.join(parts)}"
    return [Refused("bad-profile", f"{message}; to read the table anew, leave out --profile")] if parts else []


def find_team_columns(names: Sequence[str], header: Header, options: TableOptions) -> frozenset[str]:
    """Return the meanings of columns that contain partners according to their names in the table."""
    renamed = {theirs.casefold() for theirs in options.renamed}
    return frozenset(
        ours
        for name, ours in zip(names, header, strict=True)
        if ours and is_team_name(name) and name.casefold() not in renamed
    )


def _find_order(body: Rows, date_column: int | None, options: TableOptions, problems: list[Refused]) -> Order:
    """Return the order of day, month and year in the column of dates; if it is unclear, extend `problems`."""
    try:
        return find_date_order(((line, read_cell(row, date_column)) for line, row in body), options.dates)
    except Refused as problem:
        problems.append(problem)
        return Order("", is_needed=False)


def _describe_whole_ids(body: Rows, header: Header, options: TableOptions) -> Iterator[str]:
    """Yield a sentence about known ids that contain a separator of partners but are not split."""
    separators = options.partners or PARTNER_SEPARATORS
    sides = [(column, name) for column, name in enumerate(header) if name and (is_place(name) or name in SIDE_COLUMNS)]
    whole_ids = dict[str, None]()
    for _, row in body if options.unsplit_ids else ():
        for column, name in sides:
            if any(separator in (text := read_cell(row, column)) for separator in separators):
                with suppress(Refused):
                    players = map(to_nfc, split_team_cell(name, text, options))
                    known = [player for player in players if player in options.unsplit_ids]
                    whole_ids |= {player: None for player in known if any(mark in player for mark in separators)}
    if whole_ids:
        yield f"not split, because the ledger knows these ids: {', '.join(map(csv_item, whole_ids))}"


def _rewrite_columns(header: Header, layout: Layout) -> CsvColumns:
    """Return the columns of the rewritten table."""
    columns = group_columns(header)
    game_columns = tuple(name for name in GAME_COLUMNS if name in columns.game or name == "game_id")
    game = game_columns + tuple(name for name in columns.game if is_number(name))
    if layout.is_usual:
        return columns._replace(game=game)
    return CsvColumns((*game, "extra.scores", "extra.forfeit"), ("player", "place", "score", "team"), {})


def _read_row(table: Table, line: int, row: list[str], header: Header, order: str) -> Cells | Refused:
    """Return a row's cells by meaning, or a refusal. Times are in the usual form.

    If the delimiter shows that the table has decimal commas, its scores get decimal points.
    """
    for column, name in enumerate(header) if table.cell_errors else ():
        if name is not None and (message := table.cell_errors.get((line - 1, column))):
            return Refused("bad-cell", f"{table.sheet}!{write_column_letters(column)}{line}: {message}")
    cells = read_row_cells(row, header)
    if isinstance(cells, Refused):
        return cells
    try:
        if "occurred_at" in cells:
            cells["occurred_at"] = normalise_date_time(cells["occurred_at"], cells.pop(TIME, None), order)
    except Refused as problem:
        return problem
    if table.delimiter in COMMA_DELIMITERS:
        return convert_commas(cells)
    if not table.doubtful:
        return cells
    doubtful = [name for column, name in enumerate(header) if (line - 1, column) in table.doubtful]
    # texts of spreadsheets are not converted; only doubtful scores are refused
    converted = convert_commas({name: cells[name] for name in doubtful if name is not None and name in cells})
    return converted if isinstance(converted, Refused) else cells


def convert_commas(cells: Cells) -> Cells | Refused:
    """Replace the commas in the scores of a row by decimal points; return the cells, or a refusal."""
    for name, text in cells.items():
        if _is_score(name):
            try:
                cells[name] = convert_decimal_comma("score", text)
            except Refused as problem:
                return problem
    return cells


def _is_score(column: str | None) -> bool:
    return column is not None and (column == "score" or column.endswith(" score") or column.startswith(PLAYER_PREFIX))
