"""Note the next steps after an import or preview: options that record the valid games, or help with the next table."""

from collections.abc import Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.intake.files import STDIN
from ratings_ledger.ledger.intake.intake import REJECTIONS_MAX, IntakeResult
from ratings_ledger.ledger.intake.tables.columns import TableOptions

# the options that describe a table, and are needed again for the next one; --set and --zone describe games
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
    result: IntakeResult, files: Sequence[str], options: TableOptions, *, is_kept: bool, keeps_going: bool
) -> None:
    """Note the option that helps next, if any.

    Args:
        is_kept: whether a profile has the options of the table, or an earlier import suggested a profile.
        keeps_going: whether the import records valid games in spite of others that are refused.
    """
    if result.rejected_count:
        if result.valid and not keeps_going and _is_only_in_rows(result):
            effect = f"records {'it' if result.valid == 1 else 'them'}, and writes the rest to FILE.rejects.jsonl"
            render.note(f"note: {render.count(result.valid, 'game')} without a fault; --keep-going {effect}")
        return
    if result.game is not None and not options.games:
        publish = f"ratings rules publish --shipped elo --game {result.game}"
        render.note(
            render.plain(f"note: no ruleset is published, so nothing rates these games; to rate them: {publish}")
        )
    is_table = len(files) == 1 and files[0] != STDIN and files[0] in result.tables
    if result.appended and is_table and not is_kept and any(getattr(options, name) for name in TABLE_OPTION_NAMES):
        render.note("note: --save-profile club.toml keeps these options, --profile club.toml takes them")


def _is_only_in_rows(result: IntakeResult) -> bool:
    """Tell whether all rejections are in rows, so that other rows are not affected."""
    if len(result.rejected) >= REJECTIONS_MAX or result.files_counting_by_day:
        return False
    headers = {file: table.header for file, table in result.tables.items()}
    return all((rejection.line or 0) > headers.get(rejection.file or "", 0) for rejection in result.rejected)
