"""Printing how files were understood, before anything of them is recorded."""

from collections.abc import Iterator, Mapping, Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.intake.tables.dates import ORDERS
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.meanings import OF_PLAYER
from ratings_ledger.ledger.intake.tables.recognition import LISTED_MAX, TableRead
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.validation.new_names import TOLD_MAX, describe_close_names
from ratings_ledger.projections.admission.outcomes import Recorded
from ratings_ledger.projections.admission.previews import Preview, PreviewedFile, PreviewedGame
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.replay.ladders import short_name

LABEL = 10
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "|"}


def print_preview(found: Preview, whole: Recorded) -> None:
    """Print file after file how it was read, with its first games; then what all of them hold, and who is new."""
    times = Times(found.zone)
    for file in found.files:
        render.echo(render.plain(file.file))
        for label, told in _ways(file):
            render.hanging(render.plain(f"{label:{LABEL}}{told}"), LABEL)
        if file.first_games:
            render.echo()
            _print_games(file, times, several=len(found.games_by_name) > 1)
        render.echo()
    if lines := [*_counts(found, times), *_new_names(found, whole)]:
        for line in lines:
            render.hanging(render.plain(line), 4)
        render.echo()


def _ways(file: PreviewedFile) -> Iterator[tuple[str, str]]:
    """Yield how a file was read, line by line with what each is about."""
    table = file.read
    if file.has_events:
        yield "read as", "events, not a table"
    if table is not None:
        yield "read as", _form(table)
        yield "columns", ", ".join(_column(name, ours) for name, ours in table.columns.items())
        if table.dates is not None:
            decided = f", from {table.dates_from[1]} in line {table.dates_from[0]}" if table.dates_from else ""
            yield "dates", ORDERS[table.dates] + decided
        if table.is_numbered:
            such_as = f", such as {file.first_games[0].game['game_id']}" if file.first_games else ""
            yield "games", f"without numbers of their own; numbered by day{such_as}"
        if skipped := [*_skipped(table)]:
            yield "skipped", "; ".join(skipped)
        if table.unknown:
            yield "unknown", f"{_columns(table.unknown)}, not read here"
        if table.hidden:
            yield "hidden", f"{_lines(table.hidden)}, read like the others"
    for note in file.notes:
        yield "note", note


def _form(table: TableRead) -> str:
    parts = [LAYOUTS[table.layout].summary]
    if table.sheet is not None:
        parts.append(f"sheet {table.sheet}")
    if table.delimiter is not None:
        parts.append(f"cells separated by {DELIMITERS[table.delimiter]}")
    if table.encoding is not None:
        parts.append(table.encoding)
    parts.append(f"header in line {table.header}")
    return "; ".join(parts)


def _column(name: str, ours: str) -> str:
    told = render.csv_item(name)
    return told if ours.startswith(OF_PLAYER) or name.casefold() == ours else f"{told} = {ours}"


def _skipped(table: TableRead) -> Iterator[str]:
    """Yield what of a table is not read, and why."""
    if table.above:
        yield f"{_lines(table.above)} above the header"
    if table.repeated:
        yield f"{_lines(table.repeated)}, the header again"
    if table.totals:
        words = ", ".join(dict.fromkeys(quote(word) for _, word in table.totals[:LISTED_MAX]))
        yield f"{_lines([line for line, _ in table.totals])}, {words}"
    if table.gameless:
        words = ", ".join(dict.fromkeys(quote(text) for _, text in table.gameless[:LISTED_MAX]))
        yield f"{_lines([line for line, _ in table.gameless])} without players, {words}"
    if table.blank:
        yield render.count(table.blank, "blank line")
    if table.dropped:
        yield _columns(table.dropped)
    if table.other_sheets:
        yield f"sheet{'s' * (len(table.other_sheets) > 1)} {', '.join(map(render.csv_item, table.other_sheets))}"


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {', '.join(map(render.csv_item, names))}"


def _lines(lines: Sequence[int]) -> str:
    listed = render.first_of([f"{line}" for line in lines], LISTED_MAX)
    return f"line{'s' * (len(lines) > 1)} {listed}"


def _print_games(file: PreviewedFile, times: Times, several: bool) -> None:
    """The first games of a file: of what, where there are several kinds, and with their ids, unless those are days."""
    played = [times.played(one.occurred_at) for one in file.first_games]
    columns: dict[str, list[render.Cell]] = {"line": [one.line for one in file.first_games]}
    if several:
        columns["game"] = [one.game["game"] for one in file.first_games]
    if file.read is None or not file.read.is_numbered:
        columns["id"] = [one.game["game_id"] for one in file.first_games]
    columns[times.column("played")] = [*played]
    columns["result"] = [_told(one) for one in file.first_games]
    render.print_table([*columns], [*zip(*columns.values(), strict=True)], right=("line",))
    if (more := file.games - len(file.first_games)) > 0:
        render.echo(f"... and {render.count(more, 'more game')}")


def _told(one: PreviewedGame) -> str:
    """Return a game's result, behind the labels that decide which ladders it is on."""
    labels = [f"{name} {one.game[name]}" for name in ("group", "city", "league", "season") if name in one.game]
    flags = [word for word, is_so in (("unrated", one.game.get("rated") is False), ("aborted", one.game.get("aborted")))
             if is_so]  # fmt: skip
    more = ", ".join([*labels, *flags])
    return f"{one.result} [{more}]" if more else one.result


def _counts(found: Preview, times: Times) -> Iterator[str]:
    """Yield what there is in all files, in words."""
    if found.first_played is not None and found.last_played is not None:
        first, last = (times.minute(at)[:10] for at in (found.first_played, found.last_played))
        kinds = found.games_by_name
        listed = ", ".join(f"{number:,} {name}" for name, number in kinds.items())
        of = f" of {next(iter(kinds))}" if len(kinds) == 1 else f" ({listed})"
        ties = f", {found.ties:,} with {'ties' if found.ties > 1 else 'a tie'}" if found.ties else ""
        ties += f", {found.teams:,} of teams" if found.teams else ""
        played = first if first == last else f"{first} to {last}"
        yield f"{render.count(found.games, 'game')}{of}, {played}{ties}, {render.count(found.players, 'player')}"
    shown_first = [one for file in found.files for one in file.first_games]
    if found.first_tie is not None and found.first_tie not in shown_first:
        yield f"the first tie, in line {found.first_tie.line}: {found.first_tie.result}"
    if found.other_events:
        others = ", ".join(f"{number:,} {name}" for name, number in found.other_events.items())
        yield f"other events: {others}"


def new_told(what: str, names: Sequence[str], like: Mapping[str, str]) -> str:
    """Return how many names are new, and the first of them, each with the one that was perhaps meant."""
    listed = [render.csv_item(name) + (f" (like {like[name]}?)" if name in like else "") for name in names]
    return f"{render.count(len(names), what)}: {render.first_of(listed, TOLD_MAX)}"


def _new_names(found: Preview, whole: Recorded) -> Iterator[str]:
    """Yield who is new, which ladders begin, and whose name is close to another."""
    told = whole.told
    for what, names, like in (
        ("new ladder", [*map(short_name, whole.new.new_ladders)], told.close_ladders),
        ("new player", told.new_players, {name: others[0] for name, others in told.alike.items()}),
    ):
        if names:
            yield new_told(what, names, like)
    for names, more in (
        ([name for name in told.close if name in found.undecided], ", which the import asks about"),
        ([name for name in told.close if name not in found.undecided], ""),
    ):
        if names:
            yield f"{describe_close_names(names)}{more}:"
            yield from (f"  {told.close[name].question().removeprefix('new: ')}" for name in names[:TOLD_MAX])
        if len(names) > TOLD_MAX:
            yield f"  ... and {len(names) - TOLD_MAX:,} more (--format json lists them)"
