"""What to do next after an import or its preview: options that record the rest, or read the next table alike."""

from collections.abc import Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.intake.files import STDIN
from ratings_ledger.ledger.intake.intake import REJECTIONS_MAX, Imported
from ratings_ledger.ledger.intake.tables.columns import TableOptions

# what options say of a table that the next one has to be told again
ANSWERS = ("renamed", "sheet", "layout", "dates", "encoding", "ties", "partners", "aliases", "forfeits", "others")


def note_ways_on(result: Imported, files: Sequence[str], said: TableOptions, *, is_kept: bool) -> None:
    """Note which option helps next, if one does; `is_kept` says whether a profile has what was said of the table."""
    if result.rejected_count:
        if result.sound and _are_of_rows(result):
            rest = "records what has none, and writes the rest to FILE.rejects.jsonl"
            render.note(f"note: {render.count(result.sound, 'game')} without a fault; --keep-going {rest}")
        return
    if result.game is not None and not said.games:
        publish = f"ratings rules publish --shipped elo --game {result.game}"
        render.note(render.plain(f"note: no ruleset is published, so nothing rates these games; one does: {publish}"))
    is_table = len(files) == 1 and files[0] != STDIN and files[0] in result.tables
    if result.appended and is_table and not is_kept and any(getattr(said, name) for name in ANSWERS):
        render.note("note: --save-profile club.toml keeps these options, --profile club.toml takes them")


def _are_of_rows(result: Imported) -> bool:
    """Tell whether all that is refused stands in rows, so that other rows are not concerned."""
    if len(result.rejected) >= REJECTIONS_MAX:
        return False
    headers = {file: table.header for file, table in result.tables.items()}
    return all((one.line or 0) > headers.get(one.file or "", 0) for one in result.rejected)
