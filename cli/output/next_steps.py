"""Print the next steps after an import or preview: options to record the valid events, or to read the next table."""

from collections.abc import Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.intake.files import STDIN
from ratings_ledger.ledger.intake.intake import REJECTIONS_MAX, IntakeResult
from ratings_ledger.ledger.intake.tables.columns import TableOptions

# the options that describe a table, which the next table needs again; --set and --zone describe games
TABLE_OPTION_NAMES = (
    "renamed",
    "sheet",
    "layout",
    "dates",
    "encoding",
    "ties",
    "partners",
    "aliases",
    "forfeits",
    "others",
)


def note_next_steps(
    result: IntakeResult, files: Sequence[str], options: TableOptions, *, is_profile_known: bool, keeps_going: bool
) -> None:
    """Print a note about the option or command that helps next, if there is one.

    Args:
        result: The result of the import or preview.
        files: The names of the files.
        options: The options with which the files were read.
        is_profile_known: Whether a profile has the options of the table, or an earlier import suggested saving one.
        keeps_going: Whether the import records the valid events although others are refused.
    """
    if result.rejected_count:
        if result.valid and not keeps_going and _has_only_row_rejections(result):
            effect = f"records {'it' if result.valid == 1 else 'them'}, and writes the rest to FILE.rejects.jsonl"
            noun = "valid game" if result.tables.keys() >= {*files} else "valid event"
            render.note(f"note: {render.count(result.valid, noun)}; --keep-going {effect}")
        return
    if result.game is not None and not options.games:
        publish = f"ratings rules publish --shipped elo --game {result.game}"
        render.note(
            render.plain(f"note: no ruleset is published, so these games are not rated; to rate them: {publish}")
        )
    is_table = len(files) == 1 and files[0] != STDIN and files[0] in result.tables
    if (
        result.appended
        and is_table
        and not is_profile_known
        and any(getattr(options, name) for name in TABLE_OPTION_NAMES)
    ):
        render.note("note: --save-profile club.toml saves these options; next time pass --profile club.toml")


def _has_only_row_rejections(result: IntakeResult) -> bool:
    """Tell whether all rejections are in rows, and the other rows would be read the same without them."""
    if len(result.rejected) >= REJECTIONS_MAX or result.files_counting_by_day:
        return False
    headers = {file: table.header for file, table in result.tables.items()}
    return all((rejection.line or 0) > headers.get(rejection.file or "", 0) for rejection in result.rejected)
