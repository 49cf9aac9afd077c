"""Tables as people keep them, taken for what they are.

A spreadsheet has a title above its header and a total below, columns in its owner's language, dates as its owner writes
them, perhaps a column for each player. What can be recognised is rewritten as a table of the usual form, and told; what
cannot be is refused, all of it at once. Nothing is left out in silence.

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
from ratings_ledger.ledger.intake.tables.alike import has_alike_games, read_alike_games
from ratings_ledger.ledger.intake.tables.columns import (
    COMMA_DELIMITERS,
    GAME_COLUMNS,
    NEEDED,
    Cells,
    CsvColumns,
    Header,
    TableOptions,
    column_letters,
    error_told,
    header_columns,
    is_number,
    is_of_result,
    is_place,
    not_utf8,
    only_game_told,
    place_text,
    resolve_columns,
    told_not_utf8,
    with_point,
)
from ratings_ledger.ledger.intake.tables.dates import Order, is_nothing_else, moment_text, order_of
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS, UNCLEAR, recognise_layout
from ratings_ledger.ledger.intake.tables.layouts.layout import Layout, TableView, cell_at, number_games
from ratings_ledger.ledger.intake.tables.layouts.player_columns import NUMBER, may_be_player
from ratings_ledger.ledger.intake.tables.meanings import (
    EMAIL,
    FILLED_IN,
    OF_PLAYER,
    OF_SIDES,
    REMARK,
    TIME,
    column_meaning,
    is_of_team,
    is_total,
    plain_word,
    repeats,
)
from ratings_ledger.ledger.intake.tables.partners import JOINTS, split_team_cell
from ratings_ledger.ledger.intake.tables.table_games import (
    Found,
    cells_of,
    games_of_rows,
    name_columns,
    without_dashes,
)
from ratings_ledger.ledger.rejections import Refused, csv_item, quote

LISTED_MAX = 5


class TableRead(NamedTuple):
    """How a table was read; rows are named by their lines.

    layout:       one of the `LAYOUTS`
    columns:      what each column that is used holds, by its own name
    header:       the line of the header; `above` it are titles
    repeated:     rows that are the header again
    totals:       rows that sum up others, with the word that says so
    gameless:     rows that hold a remark or a date, but no player, with the text
    blank:        how many rows are empty
    hidden:       rows that a spreadsheet hides, which are read like the others
    dropped:      columns that somebody said to leave out
    unknown:      columns of which nobody said what they hold, which is refused
    dates:        the order of day, month and year, if any date needs one
    dates_from:   the line and the text of the date that decided it
    is_numbered:  whether games have no numbers but those of the day
    told:         the sentences that say it
    unsaid:       what nothing says of its games if it is refused, so that they are read only for what else is wrong
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


def rows_left_out(table: TableRead) -> list[str]:
    """Return which rows with something in them are no games, and why, in words.

    >>> rows_left_out(TableRead("rows", {}, 2, above=(1,), totals=((9, "Total"),)))
    ['line 1 above the header', "line 9, 'Total'"]
    """
    found = [(line, f"line {line}, the header again") for line in table.repeated]
    found += [(line, f"line {line}, {quote(text)}") for line, text in table.totals + table.gameless]
    listed = [told for _, told in sorted(found)]
    if len(listed) > LISTED_MAX:
        listed[LISTED_MAX:] = [f"and {len(listed) - LISTED_MAX:,} more such lines"]
    above = [f"{', '.join(f'line {line}' for line in table.above)} above the header"] if table.above else []
    return above + listed


def replaced_told(column: str, texts: Collection[str], ours: str, value: str) -> str:
    """Return a sentence that says that one value for all rows takes the place of what a column has; of many texts the
    first.

    >>> replaced_told("Spiel", ["catan", "schach"], "game", "catan")
    'game=catan replaces column Spiel (catan, schach)'
    """
    more = " and others" if len(texts) > LISTED_MAX else ""
    return f"{ours}={value} replaces column {column} ({', '.join(map(csv_item, [*texts][:LISTED_MAX]))}{more})"


# a header is looked for in so many rows, and has at least so many columns that are known
HEADER_ROWS, KNOWN_MIN = 20, 2
REMARK_CELLS_MAX = 2  # of a row that is no game
NUMBERED = "games have no number of their own; they are numbered by day"
# what stands in the place of what nothing says of the games of a refused table
_UNSAID = {"occurred_at": "2000-01-01", "game": "game"}
# with these alone, games are what they are without the columns that nothing is known of
_DROPPED_ALONE = {"unknown-column", "missing-column", "unclear-dates", "bad-profile"}
CELLS_MAX = 10_000_000  # of a table that is recognised, which is held in memory
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
Rows = list[tuple[int, list[str]]]


class Table(NamedTuple):
    """A table as it is read: its rows that are not empty, with their lines, and how many are; of a spreadsheet, the
    name of the sheet, by row and column, both from 0, what is wrong with a cell, the lines of rows that are hidden, the
    names of other sheets, and by row and column the texts that are doubtful numbers; of a text, what separates its
    cells, and its encoding. `told` says what of that matters.
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


def recognised_games(table: Table, options: TableOptions) -> Iterator[Found | TableRead | TableOptions | str]:
    """Yield the games of a table, after what it was taken for, and sentences; or everything that is wrong with it.

    The options with which the next such table is read alike come before the games, too.
    """
    at = header_at(table.rows, options) or 0
    line, names = table.rows[at][0], [" ".join(name.split()) for name in table.rows[at][1]]
    if wrong := {(line - 1, column): told for column, name in enumerate(names) if (told := error_told(name))}:
        table = table._replace(faults={**table.faults, **wrong})
        names = ["" if (line - 1, column) in wrong else name for column, name in enumerate(names)]
    body = table.rows[at + 1 :]
    layout, unclear = _layout(table, line, names, body, options)
    header, problems = _header(names, body, layout, options)
    if unclear:
        # which columns are not known depends on the layout
        problems = [*unclear, *(problem for problem in problems if problem.code != "unknown-column")]
        options = options._replace(checks_all=False)
    named = name_columns(header)
    body = [(there, without_dashes(row, named)) for there, row in body]
    body, repeated, totals = _without_extras(body, names, header)
    body, gameless = _without_gameless(table, body, header, layout)
    header, replaced = _without_replaced(names, header, body, options)
    problems += _unnamed(table, line, header, body)
    problems += [Refused("bad-utf8", f"the header {told_not_utf8(name)}") for name in names if not_utf8(name)][:1]
    order = _order(body, _dated(header), options, problems)
    has_ids = "game_id" in (*header, *options.fixed)
    left_out = left_out_columns(names, options)
    dropped = (*_dropped(names, options), *left_out)
    unknown = tuple(
        name for name, ours in zip(names, header, strict=True) if ours is None and name not in (*dropped, *replaced)
    )
    if options.profile and any(problem.code in ("unknown-column", "missing-column") for problem in problems):
        problems[:0] = _unlike_profile(names, unknown, options)
    used = {name: ours for name, ours in zip(names, header, strict=True) if ours}
    renamed = {name: ours for name, ours in used.items()
               if not ours.startswith(OF_PLAYER) and name.casefold() != ours}  # fmt: skip
    read = TableRead(
        layout.name, used, line, above=tuple(there for there, _ in table.rows[:at]), repeated=repeated, totals=totals,
        gameless=gameless, blank=table.blank, hidden=(*table.hidden,), dropped=dropped, unknown=unknown,
        is_numbered=not has_ids, dates=order.name if order.is_needed else None, dates_from=order.decided_by,
        sheet=table.sheet or None, other_sheets=(*table.other_sheets,), delimiter=table.delimiter or None,
        encoding=table.encoding,
    )  # fmt: skip
    if problems:
        view = TableView(names, [name or None for name in header], body, line, table.sheet)
        yield from _refused_table(table, view, read, problems, order.name, options)
        return
    sentences = _sentences(read, renamed, order, _first_day(body, header, order.name), options)
    forms = [f"left out: column {csv_item(name)}; {why}" for name, why in left_out.items() if not options.profile]
    yield read._replace(told=(*table.told, *sentences, *forms, *only_game_told(header, options)))
    yield from filter(None, replaced.values())
    yield options._replace(
        found=None, sheet=options.sheet or table.sheet or None, layout=layout.name,
        columns={**options.columns, **renamed}, dates=order.name if order.told else options.dates,
    )  # fmt: skip
    yield from _games(table, TableView(names, [*header], body, line, table.sheet), read, order.name, options)


def _games(table: Table, view: TableView, read: TableRead, order: str, options: TableOptions) -> Iterator[Found | str]:
    """Yield the ids that are not taken apart, and the games of the rows, or what is wrong with them and where."""
    header, layout = view.meanings, LAYOUTS[read.layout]
    options = options._replace(team_columns=team_columns(view.names, header, options))
    yield from _whole_told(view.body, header, options)
    columns = _columns(header, layout)._replace(is_numbered=read.is_numbered, sheet=table.sheet or None)
    if options.found is not None:
        options.found(columns)
    rows: Iterator[tuple[int, Cells | Refused]] = (
        (line, _read_row(table, line, row, header, order)) for line, row in view.body
    )
    if day := options.fixed.get("occurred_at"):
        rows = (
            (there, cells if isinstance(cells, Refused) else {**cells, "occurred_at": day}) for there, cells in rows
        )
    if read.is_numbered:
        rows = number_games(rows, layout)
    if read.is_numbered and has_alike_games(layout, header):
        games = read_alike_games(rows, layout, view, columns, options)
    else:
        rewritten = iter(layout.read(rows, view, options))
        games = games_of_rows(rewritten, columns, options, is_row_whole=layout.is_row_whole)
    for there, event, source, rows_of in games:
        placed = _placed(event, table, there) if isinstance(event, Refused) else event
        yield there, placed, source, rows_of


def _sentences(
    read: TableRead, renamed: Mapping[str, str], order: Order, day: str, options: TableOptions
) -> Iterator[str]:
    """Yield what a table was taken for, as far as somebody may have meant it otherwise; of a table that is read by a
    profile, what that does not say.
    """
    if left_out := rows_left_out(read):
        yield f"left out: {'; '.join(left_out)}"
    said = {name.casefold(): ours for name, ours in options.columns.items()}
    told = {name: ours for name, ours in renamed.items() if said.get(name.casefold()) != ours}
    if told:
        yield f"columns: {', '.join(f'{csv_item(name)} = {ours}' for name, ours in told.items())}"
    if order.told:
        yield order.told
    if not LAYOUTS[read.layout].is_usual and not (options.profile and options.layout):
        yield LAYOUTS[read.layout].summary
    if read.is_numbered and not options.profile:
        yield f"{NUMBERED}, such as {day}-1" if day else NUMBERED


def _first_day(body: Rows, header: Header, order: str) -> str:
    """Return the day of the first date that can be read, or nothing."""
    for _, row in body:
        with suppress(Refused):
            if _DAY.match(day := moment_text(cell_at(row, _dated(header)), None, order)[:10]):
                return day
    return ""


def _dropped(names: list[str], options: TableOptions) -> tuple[str, ...]:
    """Return the columns that somebody said to leave out."""
    said = options.named
    return tuple(name for name in names if name and said.get(name.casefold()) == "")


def _refused_table(
    table: Table, view: TableView, read: TableRead, problems: list[Refused], order: str, options: TableOptions
) -> Iterator[Found | TableRead | str]:
    """Yield what is wrong with a table, and with its rows: all of it can be put right in one go.

    Its games are read as far as their columns are known, with something in the place of what nothing says.
    """
    header, codes = view.meanings, {problem.code for problem in problems}
    if "occurred_at" in header and not order:
        header[header.index("occurred_at")] = None
    said = {*header, *options.fixed, *(["game"] if options.only_game else [])}
    unsaid = {name: text for name, text in _UNSAID.items() if name not in said}
    yield read._replace(told=table.told, unsaid=(*unsaid,))
    yield from ((problem.line or view.header_line, _placed(problem, table, view.header_line), None, None)
                for problem in problems)  # fmt: skip
    layout = LAYOUTS[read.layout]
    is_doubtful = codes - _DROPPED_ALONE or any(map(is_of_result, read.unknown)) or not layout.has_players(header)
    # where a player has a row, the date says where a game ends
    has_ends = layout.is_row_whole or "occurred_at" not in unsaid
    if options.checks_all and has_ends and not is_doubtful:
        yield from _games(table, view, read, order, options._replace(fixed={**unsaid, **options.fixed}, found=None))
    else:
        yield from _wrong_rows(table, view.body, header, order)


def _wrong_rows(table: Table, body: Rows, header: Header, order: str) -> Iterator[Found]:
    """Yield what is wrong with cells, beside what is wrong with the table: all of it can be put right in one go."""
    for line, row in body:
        if isinstance(found := _read_row(table, line, row, header, order), Refused):
            yield line, _placed(found, table, line), None, None


def _placed(problem: Refused, table: Table, line: int) -> Refused:
    """Return a refusal that names the sheet, as far as there is one and it does not name a cell of it."""
    if not table.sheet or problem.message.startswith(f"{table.sheet}!"):
        return problem
    placed = Refused(problem.code, f"{table.sheet}!{line}: {problem.message}")
    placed.names = problem.names
    return placed


def _means(name: str, options: TableOptions) -> str | None:
    """Return what a column holds: as somebody said, or as its name says."""
    said = options.named
    return said[name.casefold()] if name.casefold() in said else column_meaning(name)


def header_at(rows: Rows, options: TableOptions) -> int | None:
    """Return the row of the header: the first with a date and something else, or else two known things."""
    known = [{_means(" ".join(name.split()), options) for name in row} - {None, ""} for _, row in rows[:HEADER_ROWS]]
    for wanted in ({"occurred_at"}, set[str | None]()):
        for at, found in enumerate(known):
            full = sum(bool(name.strip()) for name in rows[at][1])
            if found >= wanted and full >= KNOWN_MIN and len(found) >= KNOWN_MIN - len(wanted):
                return at
    return None


def _layout(
    table: Table, line: int, names: list[str], body: Rows, options: TableOptions
) -> tuple[Layout, list[Refused]]:
    """Return the layout that was named, or that the table says; or one that has all columns, and why it is unclear."""
    if options.layout is not None:
        return LAYOUTS[options.layout], []
    meanings = [_means(name, options) if name else "" for name in names]
    try:
        return recognise_layout(TableView(names, meanings, body, line, table.sheet)), []
    except Refused as problem:
        return UNCLEAR, [problem]


def _header(names: list[str], body: Rows, layout: Layout, options: TableOptions) -> tuple[Header, list[Refused]]:
    """Return the columns under this program's names, and what is wrong with them."""
    renamed, taken = dict[str, str](), set[str]()
    means = {name: _means(name, options) for name in names if name}
    if "game_id" not in means.values():
        # what is called a game is often its number
        for name in (name for name, found in means.items() if found == "game"):
            column = names.index(name)
            if all(cell_at(row, column).isdecimal() for _, row in body):
                means[name] = "game_id"
    if TIME in means.values() and "occurred_at" not in means.values():
        means = {name: "occurred_at" if found == TIME else found for name, found in means.items()}
    others = layout.rename({*means.values()})
    left_out = left_out_columns(names, options)
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
    # of recorded games one may say less, unless they are numbered by day
    said = {*renamed.values(), *options.fixed}
    needed = NEEDED if "occurred_at" in said and "game_id" not in said else options.needed
    given = [*(["game_id"] if needed == NEEDED else []), *([] if layout.is_usual else ["player"])]
    spelled = {name.casefold(): name for name in renamed}
    said_besides = {theirs: ours for theirs, ours in options.renamed.items() if theirs.casefold() not in spelled}
    options = options._replace(renamed=renamed | said_besides, needed=needed)
    return resolve_columns(names, options, layout.holds, given)


def left_out_columns(names: Sequence[str], options: TableOptions) -> dict[str, str]:
    """Return the columns that are left out, with the reason: e-mail addresses, remarks, and when a form was filled in
    where another column says when the game was played.
    """
    means = {name: _means(name, options) for name in names if name}
    reasons = {EMAIL: "e-mail addresses do not belong in a ledger", REMARK: "remarks are not read"}
    found = {name: reasons[meaning] for name, meaning in means.items() if meaning in reasons}
    dated = [name for name, meaning in means.items() if meaning == "occurred_at"]
    filled_in = [name for name in dated if plain_word(name) in FILLED_IN]
    if len(dated) > len(filled_in):
        found |= dict.fromkeys(filled_in, "another column says when games were played")
    return found


def _without_extras(
    body: Rows, names: list[str], header: Header
) -> tuple[Rows, tuple[int, ...], tuple[tuple[int, str], ...]]:
    """Return the rows without repetitions of the header and totals, and which those were."""
    dated = _dated(header)
    kept, repeated, totals = Rows(), list[int](), list[tuple[int, str]]()
    for line, row in body:
        if repeats(row, names):
            repeated.append(line)
        elif dated is not None and is_total(row) and (not cell_at(row, dated) or is_total([cell_at(row, dated)])):
            totals.append((line, next(cell for cell in row if cell.strip()).strip()))
        else:
            kept.append((line, row))
    return kept, (*repeated,), (*totals,)


def _without_gameless(
    table: Table, body: Rows, header: Header, layout: Layout
) -> tuple[Rows, tuple[tuple[int, str], ...]]:
    """Return the rows without those of one or two cells and no player, where a row is a game; and which those were."""
    if not layout.is_row_whole:
        return body, ()
    kept, gameless = Rows(), list[tuple[int, str]]()
    faulty = {row for row, _ in table.faults}
    for line, row in body:
        filled = [text for cell in row if (text := cell.strip())]
        is_short = len(filled) <= REMARK_CELLS_MAX
        if is_short and line - 1 not in faulty and _is_remark(filled) and not _has_player(row, header):
            gameless.append((line, filled[0]))
        else:
            kept.append((line, row))
    return kept, (*gameless,)


def _is_remark(filled: list[str]) -> bool:
    """Tell whether no cell can hold a whole game behind its date, as with another delimiter."""
    return not any(text[0].isdigit() and any(map(str.isalpha, text)) and not is_nothing_else(text) for text in filled)


def _has_player(row: list[str], header: Header) -> bool:
    """Tell whether a row has something in a player's place; beside numbers, a text without a date is a remark."""
    for column, name in enumerate(header):
        if name and (text := cell_at(row, column)):
            if is_place(name) or name in OF_SIDES:
                return True
            if name.startswith(OF_PLAYER) and (cell_at(row, _dated(header)) or NUMBER.fullmatch(place_text(text))):
                return True
    return False


def _dated(header: Header) -> int | None:
    return header.index("occurred_at") if "occurred_at" in header else None


def _without_replaced(
    names: list[str], header: Header, body: Rows, options: TableOptions
) -> tuple[Header, dict[str, str]]:
    """Return the columns without those that one value for all rows replaces, and by name what is said of these, if
    anything is in them.
    """
    kept, told = [*header], dict[str, str]()
    for column, ours in enumerate(header):
        if ours and ours in options.fixed:
            kept[column] = None
            texts = dict.fromkeys(text for _, row in body if (text := cell_at(row, column)))
            told[names[column]] = replaced_told(names[column], texts, ours, options.fixed[ours]) if texts else ""
    return kept, told


def _unnamed(table: Table, header_line: int, header: Header, body: Rows) -> Iterator[Refused]:
    """Yield what is wrong with columns without a name: an error stands in its place, or they are not empty."""
    for column in (column for column, name in enumerate(header) if name == ""):
        letters = column_letters(column)
        if told := table.faults.get((header_line - 1, column)):
            where = f"{table.sheet}!{letters}{header_line}" if table.sheet else f"column {letters}"
            yield Refused("bad-cell", f"{where}: {told}")
            continue
        line, text = next(((line, text) for line, row in body if (text := cell_at(row, column))), (0, ""))
        if text:
            told = f"column {letters} has no name, and {quote(text)} is in it (line {line})"
            yield Refused("unknown-column", f"{told}; give it a name, or leave it empty")


def _unlike_profile(names: list[str], unknown: Sequence[str], options: TableOptions) -> list[Refused]:
    """Return what a table and the columns of a profile do not have in common, if there is anything."""
    there = {name.casefold() for name in names}
    lacking = [name for name in options.columns if name.casefold() not in there]
    parts = [
        f"{told} {', '.join(map(quote, columns))}"
        for told, columns in (("columns that are not here:", lacking), ("columns that it does not name:", unknown))
        if columns
    ]
    told = f"the profile {options.profile} does not fit this table; {'; '.join(parts)}"
    return [Refused("bad-profile", told)] if parts else []


def team_columns(names: Sequence[str], header: Header, options: TableOptions) -> frozenset[str]:
    """Return the columns, under this program's names, whose own names say that they hold the partners of a side."""
    renamed = {theirs.casefold() for theirs in options.renamed}
    return frozenset(
        ours
        for name, ours in zip(names, header, strict=True)
        if ours and is_of_team(name) and name.casefold() not in renamed
    )


def _order(body: Rows, dated: int | None, options: TableOptions, problems: list[Refused]) -> Order:
    """Return the order of the dates in a column; what is wrong with it is added to the problems."""
    try:
        return order_of(((there, cell_at(row, dated)) for there, row in body), options.dates)
    except Refused as problem:
        problems.append(problem)
        return Order("", is_needed=False)


def _whole_told(body: Rows, header: Header, options: TableOptions) -> Iterator[str]:
    """Yield which known ids in cells of sides hold what joins partners, and are not taken apart."""
    joints = options.partners or JOINTS
    sides = [(column, name) for column, name in enumerate(header) if name and (is_place(name) or name in OF_SIDES)]
    found = dict[str, None]()
    for _, row in body if options.whole else ():
        for column, name in sides:
            if any(joint in (text := cell_at(row, column)) for joint in joints):
                with suppress(Refused):
                    players = map(to_nfc, split_team_cell(name, text, options))
                    found |= {p: None for p in players if p in options.whole and any(j in p for j in joints)}
    if found:
        yield f"not taken apart, since the ledger knows them: {', '.join(map(csv_item, found))}"


def _columns(header: Header, layout: Layout) -> CsvColumns:
    """Return the columns of the table as it is rewritten."""
    found = header_columns(header)
    named = tuple(name for name in GAME_COLUMNS if name in found.game or name == "game_id")
    game = named + tuple(name for name in found.game if is_number(name))
    if layout.is_usual:
        return found._replace(game=game)
    return CsvColumns((*game, "extra.scores", "extra.forfeit"), ("player", "place", "score", "team"), {})


def _read_row(table: Table, line: int, row: list[str], header: Header, order: str) -> Cells | Refused:
    """Return a row's cells by column, with a time as it is usually written, and a point in decimal numbers."""
    for column, name in enumerate(header) if table.faults else ():
        if name is not None and (told := table.faults.get((line - 1, column))):
            return Refused("bad-cell", f"{table.sheet}!{column_letters(column)}{line}: {told}")
    cells = cells_of(row, header)
    if isinstance(cells, Refused):
        return cells
    try:
        if "occurred_at" in cells:
            cells["occurred_at"] = moment_text(cells["occurred_at"], cells.pop(TIME, None), order)
    except Refused as problem:
        return problem
    if table.delimiter in COMMA_DELIMITERS:
        return with_points(cells)
    if not table.doubtful:
        return cells
    doubtful = [name for column, name in enumerate(header) if (line - 1, column) in table.doubtful]
    refused = with_points({name: cells[name] for name in doubtful if name is not None and name in cells})
    return refused if isinstance(refused, Refused) else cells


def with_points(cells: Cells) -> Cells | Refused:
    """Return the cells of a row, with a decimal point in scores that have a comma."""
    for name, text in cells.items():
        if _is_score(name):
            try:
                cells[name] = with_point("score", text)
            except Refused as problem:
                return problem
    return cells


def _is_score(column: str | None) -> bool:
    return column is not None and (column == "score" or column.endswith(" score") or column.startswith(OF_PLAYER))
