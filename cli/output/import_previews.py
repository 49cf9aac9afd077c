"""Print import previews: how files were read, and what they contain, before anything is recorded."""

from collections.abc import Iterator, Mapping, Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.intake.tables.dates import ORDERS
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.meanings import PLAYER_PREFIX
from ratings_ledger.ledger.intake.tables.recognition import LISTED_MAX, TableRead
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.validation.new_names import LISTED_NAMES_MAX, describe_close_names
from ratings_ledger.projections.admission.outcomes import ImportOutcome
from ratings_ledger.projections.admission.previews import Preview, PreviewedFile, PreviewedGame
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.replay.ladder_names import short_name

LABEL_WIDTH = 10
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "|"}


def print_preview(preview: Preview, outcome: ImportOutcome) -> None:
    """Print how each file was read, with its first games; then the contents of all files, and new names."""
    times = TimeFormat(preview.zone)
    for file in preview.files:
        render.echo(render.plain(file.file))
        for label, text in _describe_reading(file):
            render.print_hanging(render.plain(f"{label:{LABEL_WIDTH}}{text}"), LABEL_WIDTH)
        if file.unusual:
            render.echo("\nPlease check:")
            _print_unusual(file, times)
        if file.first_games:
            render.echo()
            _print_games(file, times, has_several_games=len(preview.games_by_name) > 1)
        render.echo()
    if lines := [*_describe_counts(preview, times), *_describe_new_names(preview, outcome)]:
        for line in lines:
            render.print_hanging(render.plain(line), 4)
        render.echo()


def _describe_reading(file: PreviewedFile) -> Iterator[tuple[str, str]]:
    """Yield lines that describe how a file was read, each as (label, text)."""
    table = file.read
    if file.has_events:
        yield "read as", "events, not a table"
    if table is not None:
        yield "read as", _describe_form(table)
        yield "columns", ", ".join(_describe_column(name, ours) for name, ours in table.columns.items())
        if table.dates is not None:
            decided = f", from {table.dates_from[1]} in line {table.dates_from[0]}" if table.dates_from else ""
            yield "dates", ORDERS[table.dates] + decided
        if table.is_numbered:
            example = f", such as {file.first_games[0].game['game_id']}" if file.first_games else ""
            yield "games", f"without ids of their own; numbered by day{example}"
        if skipped := [*_describe_skipped(table)]:
            yield "skipped", "; ".join(skipped)
        if table.unknown:
            yield "unknown", f"{_list_columns(table.unknown)}, not read"
        if table.hidden:
            yield "hidden", f"{_list_lines(table.hidden)}, read like the others"
    for note in file.notes:
        yield "note", note


def _describe_form(table: TableRead) -> str:
    parts = [LAYOUTS[table.layout].summary]
    if table.sheet is not None:
        parts.append(f"sheet {table.sheet}")
    if table.delimiter is not None:
        parts.append(f"cells separated by {DELIMITERS[table.delimiter]}")
    if table.encoding is not None:
        parts.append(table.encoding)
    parts.append(f"header in line {table.header}")
    return "; ".join(parts)


def _describe_column(name: str, ours: str) -> str:
    quoted = render.csv_item(name)
    return quoted if ours.startswith(PLAYER_PREFIX) or name.casefold() == ours else f"{quoted} = {ours}"


def _describe_skipped(table: TableRead) -> Iterator[str]:
    """Yield a description of each part of a table that is not read, with the reason."""
    if table.above:
        yield f"{_list_lines(table.above)} above the header"
    if table.repeated:
        yield f"{_list_lines(table.repeated)}, the header again"
    if table.totals:
        words = ", ".join(dict.fromkeys(quote(word) for _, word in table.totals[:LISTED_MAX]))
        yield f"{_list_lines([line for line, _ in table.totals])}, {words}"
    if table.gameless:
        words = ", ".join(dict.fromkeys(quote(text) for _, text in table.gameless[:LISTED_MAX]))
        yield f"{_list_lines([line for line, _ in table.gameless])} without players, {words}"
    if table.blank:
        yield render.count(table.blank, "blank line")
    if table.dropped:
        yield _list_columns(table.dropped)
    if table.other_sheets:
        yield f"sheet{'s' * (len(table.other_sheets) > 1)} {', '.join(map(render.csv_item, table.other_sheets))}"


def _list_columns(names: Sequence[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {', '.join(map(render.csv_item, names))}"


def _list_lines(lines: Sequence[int]) -> str:
    listed = render.join_first([f"{line}" for line in lines], LISTED_MAX)
    return f"line{'s' * (len(lines) > 1)} {listed}"


def _print_unusual(file: PreviewedFile, times: TimeFormat) -> None:
    """Print the games that differ from most games of a file."""
    rows = [
        (game.line, times.format_played(game.occurred_at), ", ".join(game.why), game.result) for game in file.unusual
    ]
    render.print_table(("line", times.name_column("played"), "because", "result"), rows, right=("line",))
    for kind, number in file.unusual_by_kind.items():
        if (more := number - sum(kind in game.why for game in file.unusual)) > 0:
            render.echo(f"... and {more:,} more: {kind}")


def _print_games(file: PreviewedFile, times: TimeFormat, has_several_games: bool) -> None:
    """Print the first games of a file, with the name of each game if several are played, and with the ids in the file.

    Leave out ids that the import generates from the days of the games.
    """
    played = [times.format_played(game.occurred_at) for game in file.first_games]
    columns: dict[str, list[render.TableCell]] = {"line": [game.line for game in file.first_games]}
    if has_several_games:
        columns["game"] = [game.game["game"] for game in file.first_games]
    if file.read is None or not file.read.is_numbered:
        columns["id"] = [game.game["game_id"] for game in file.first_games]
    columns[times.name_column("played")] = [*played]
    columns["result"] = [_format_result(game) for game in file.first_games]
    render.print_table([*columns], [*zip(*columns.values(), strict=True)], right=("line",))
    if (more := file.games - len(file.first_games)) > 0:
        render.echo(f"... and {render.count(more, 'more game')}")


def _format_result(game: PreviewedGame) -> str:
    """Return the result of a game, with its labels, and whether it is unrated or aborted."""
    labels = [f"{name} {game.game[name]}" for name in ("group", "city", "league", "season") if name in game.game]
    flags = [
        word
        for word, is_set in (("unrated", game.game.get("rated") is False), ("aborted", game.game.get("aborted")))
        if is_set
    ]
    more = ", ".join([*labels, *flags])
    return f"{game.result} [{more}]" if more else game.result


def _describe_counts(preview: Preview, times: TimeFormat) -> Iterator[str]:
    """Yield lines that describe the contents of all files."""
    if preview.first_played is not None and preview.last_played is not None:
        first, last = (times.format_minute(at)[:10] for at in (preview.first_played, preview.last_played))
        numbers_by_game = preview.games_by_name
        listed = ", ".join(f"{number:,} {name}" for name, number in numbers_by_game.items())
        names_text = f" of {next(iter(numbers_by_game))}" if len(numbers_by_game) == 1 else f" ({listed})"
        ties = f", {preview.ties:,} with {'ties' if preview.ties > 1 else 'a tie'}" if preview.ties else ""
        ties += f", {preview.teams:,} with teams" if preview.teams else ""
        played = first if first == last else f"{first} to {last}"
        games, players = render.count(preview.games, "game"), render.count(preview.players, "player")
        yield f"{games}{names_text}, {played}{ties}, {players}"
    shown_first = [game for file in preview.files for game in file.first_games]
    if preview.first_tie is not None and preview.first_tie not in shown_first:
        yield f"the first tie, in line {preview.first_tie.line}: {preview.first_tie.result}"
    if preview.other_events:
        other_types = ", ".join(f"{number:,} {name}" for name, number in preview.other_events.items())
        yield f"other events: {other_types}"


def describe_new(kind: str, names: Sequence[str], similar: Mapping[str, str]) -> str:
    """Describe new names: their number, and the first of them, each with the known name that may be meant."""
    listed = [render.csv_item(name) + (f" (like {similar[name]}?)" if name in similar else "") for name in names]
    return f"{render.count(len(names), kind)}: {render.join_first(listed, LISTED_NAMES_MAX)}"


def _describe_new_names(preview: Preview, outcome: ImportOutcome) -> Iterator[str]:
    """Yield lines with new ladders, new players, and names that are close to others."""
    result = outcome.intake_result
    for kind, names, similar in (
        ("new ladder", [*map(short_name, outcome.new.new_ladders)], result.close_ladders),
        ("new player", result.new_players, {name: others[0] for name, others in result.similar_names.items()}),
    ):
        if names:
            yield describe_new(kind, names, similar)
    for names, more in (
        ([name for name in result.close if name in preview.undecided], ", which the import asks about"),
        ([name for name in result.close if name not in preview.undecided], ""),
    ):
        if names:
            yield f"{describe_close_names(names)}{more}:"
            yield from (
                f"  {result.close[name].format_question().removeprefix('new: ')}" for name in names[:LISTED_NAMES_MAX]
            )
        if len(names) > LISTED_NAMES_MAX:
            yield f"  ... and {len(names) - LISTED_NAMES_MAX:,} more (--format json lists them)"
