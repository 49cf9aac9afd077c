"""Printing what became of proposed events: what was appended, refused or taken back, and how a sheet changed."""

import re
from collections.abc import Mapping, Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import print_differing, print_impact
from ratings_ledger.cli.output.previewed import new_told, print_preview
from ratings_ledger.cli.output.survey import tell_no_timed
from ratings_ledger.ledger.intake.intake import Imported
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.validation.new_names import TOLD_MAX, describe_close_names
from ratings_ledger.projections.admission.outcomes import (
    DuePublished,
    Entered,
    PublishedOutcome,
    Recorded,
    RulesetsPublished,
    SheetDifferences,
    Undone,
)
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import short_name

SHOWN_GAMES = 20
KINDS = ("new", "changed", "vanished", "returned", "reordered")


def print_sheet_differences(found: SheetDifferences) -> None:
    """How many games differ, and how; those that only follow others later are counted, not listed."""
    if found.otherwise:
        told = f"note: {render.count(len(found.otherwise), 'game')} of which the sheet says nothing new "
        told += "changed in the ledger, and so they stay: "
        render.note(render.plain(told + render.first_of([*map(render.csv_item, found.otherwise)], SHOWN_GAMES)))
    counts = [f"{number:,} {kind}" for kind in KINDS if (number := getattr(found, kind))]
    render.echo(render.plain(f"{found.name}: {', '.join(counts) or 'nothing new'}"))
    listed = [one for one in found.games if one.what != "reordered"]
    if listed:
        rows: list[tuple[render.Cell, ...]] = [
            (one.what, one.game_id, one.line, one.was, one.now) for one in listed[:SHOWN_GAMES]
        ]
        render.echo()
        render.print_table(("what", "game", "line", "was", "is"), rows, right=("line",))
    if (more := sum(getattr(found, kind) for kind in KINDS[:-1]) - SHOWN_GAMES) > 0:
        render.echo(f"... and {more:,} more (--format json lists them)")
    render.echo()


SHOWN_REJECTIONS = 20
# these depend on how a whole file is written: one cause, whatever the cells hold
WRITTEN = frozenset(
    {"bad-utf8", "bad-time", "naive-time", "bad-value", "bad-decimal", "not-an-integer", "result-became-date"}
)

# the same option reads all of them, or the same rule refuses all: one cause, whoever it is about, from these words on
_SAME_FROM = {"tied-players": " pass --", "no-teams": " are partners"}

_WITHOUT_VALUES = re.compile(r"'[^']*'|\d+")
# where a sheet has it: a cell or a line, before what is wrong there
_PLACE = re.compile(r"(?:.+?!)?(?P<cell>[A-Z]{1,3}[1-9]\d*|(?<=!)[1-9]\d*)(?: \([^)]*\))?: ", re.DOTALL)
LISTED_CELLS = 3


def note_homeless(result: Imported) -> None:
    """Report games that are on no ladder, one for each reason, unless something was refused."""
    for reason, game_id in result.homeless.items() if not result.rejected_count else ():
        render.note(f"note: on no ladder, such as {render.plain(game_id)}: {reason}")


def note_voided(result: Imported) -> None:
    """Report games that are already there but do not count, unless something was refused."""
    for told in result.voided_told if not result.rejected_count else ():
        render.note(f"note: {render.plain(told)}")


def note_leagues(result: Imported) -> None:
    """Report what is open or wrong in leagues, unless something was refused."""
    for told in result.leagues if not result.rejected_count else ():
        render.note(f"note: {render.plain(told)}")


def note_games(result: Imported) -> None:
    """Report what is odd about games that are taken: no ladder has them, their league, or a void."""
    note_homeless(result)
    note_leagues(result)
    note_voided(result)


def print_recorded(found: Recorded) -> None:
    """What was appended and what was refused, who is new, and what that changes, as far as it was worked out."""
    told, dry_run = found.told, found.dry_run is True
    about_files: tuple[str, ...] = ()
    if found.preview is not ABSENT:
        print_preview(found.preview, found)
        about_files = tuple(f"{one.file}: " for one in found.preview.files)
    for passed in (*told.notes, *told.passed):
        if not passed.startswith(about_files):
            render.note(f"note: {render.plain(passed)}")
    if found.sync is not ABSENT and not (told.rejected and not found.sync.games):
        print_sheet_differences(found.sync)
    causes = _causes(told.rejected)
    for rejections in causes[:SHOWN_REJECTIONS]:
        render.note(rejection_line(rejections[0]) + _more(rejections))
    _note_untold(told.rejected_count - sum(map(len, causes[:SHOWN_REJECTIONS])))
    if found.preview is ABSENT:
        note_new(told)
    did = f"{told.would_append:,} would be appended" if dry_run else f"{told.appended:,} appended"
    there = f", {told.existing:,} already there" if told.existing else ""
    refused = f", {told.rejected_count:,} refused" if told.rejected_count else ""
    nothing = "; nothing was appended" if told.rejected_count and not told.appended and not dry_run else ""
    render.echo(f"{did}{there}{refused}{nothing}; the head is {found.head}.")
    if found.impact is not ABSENT and (told.would_append if dry_run else told.appended):
        print_impact(found.impact)
    if found.published is not ABSENT:
        print_differing(found.published, found.times)


def _note_untold(count: int) -> None:
    if count > 0:
        render.note(f"... and {count:,} more (--format json lists them)")


def _causes(rejected: list[Rejection]) -> list[list[Rejection]]:
    """Refusals grouped by cause, as a file often has the same one on many lines."""
    found: dict[tuple[str | None, str, str], list[Rejection]] = {}
    for one in rejected:
        message = _PLACE.sub("", one.message, count=1) if _PLACE.match(one.message) else one.message
        if one.code in WRITTEN:
            message = _WITHOUT_VALUES.sub("", message)
        elif (mark := _SAME_FROM.get(one.code, "")) in message:
            message = message[message.index(mark) :]
        found.setdefault((one.file, one.code, message), []).append(one)
    return list(found.values())


def _more(rejections: list[Rejection]) -> str:
    """Return how often a cause recurs, and the first cells or the last line where it does."""
    again = len(rejections) - 1
    if rejections[0].code == "result-became-date":
        return ""  # its message counts the cells of all columns
    cells = [place["cell"] for one in rejections if (place := _PLACE.match(one.message))]
    if again and len(cells) == len(rejections):
        what = "cells" if cells[0][0].isalpha() else "lines"
        return f" ({len(cells):,} {what}: {render.first_of(cells, LISTED_CELLS)})"
    return f" ({again:,} more like this, the last in line {rejections[-1].line})" if again else ""


def note_new(result: Imported) -> None:
    """Print which ladders begin and who is new, unless nothing was taken, and whose name is close to another."""
    if result.new_ladders and not result.rejected_count:
        _note_names("new ladder", [*map(short_name, result.new_ladders)], result.close_ladders)
    if result.rejected_count and not result.would_append:
        if any(one.code == "close-name" for one in result.rejected):
            render.note(f"note: {describe_close_names(result.close)}")
        return
    if result.new_players:
        _note_names("new player", result.new_players, {name: others[0] for name, others in result.alike.items()})
    for close in list(result.close.values())[:TOLD_MAX]:
        render.note(f"note: {close.question()}")


def _note_names(what: str, names: Sequence[str], like: Mapping[str, str]) -> None:
    """Note how many names are new, and the first of them."""
    render.note(render.plain(f"note: {new_told(what, names, like)}"))


def rejection_line(rejection: Rejection) -> str:
    """`FILE:LINE: code: message`, on one line."""
    where = "".join(f"{part}:" for part in (rejection.file, rejection.line) if part is not None)
    return render.plain(f"{where}{' ' if where else ''}{rejection.code}: {rejection.message}")


def print_entered(found: Entered) -> None:
    """What became of events of one type, and what they change."""
    told = found.told
    if found.is_refused:
        print_refused(told)
        return
    if found.event_id is None:
        render.echo("This is already recorded.")
        return
    note_new(told)
    if found.dry_run:
        render.echo(f"Nothing was recorded; this is what {found.type} would do.")
    elif told.would_append > 1:
        render.echo(f"{told.would_append:,} events {found.type} are recorded, the last at position {found.position}.")
    else:
        render.echo(f"{found.type} is recorded at position {found.position}.")
    print_impact(found.impact)


def print_refused(told: Imported) -> None:
    """Why nothing was recorded."""
    for rejection in told.rejected[:SHOWN_REJECTIONS]:
        render.note(rejection_line(rejection))
    _note_untold(told.rejected_count - SHOWN_REJECTIONS)
    render.echo("Nothing was recorded.")


def print_rulesets_published(found: RulesetsPublished) -> None:
    """Which versions are published where, and what that changes."""
    told, names = found.told, ", ".join(found.rulesets)
    for rejection in told.rejected:
        render.note(rejection_line(rejection._replace(line=None)))
    if told.rejected:
        return
    if found.dry_run and told.would_append:
        render.echo(f"Nothing was recorded; this is what publishing {names} would do.")
    elif told.appended == 1 == len(found.rulesets):
        render.echo(f"{names} published at position {found.head}")
    else:
        there = f"{told.existing} already published; the head is {found.head}"
        render.echo(f"{names}: {told.appended} published, {there}")
    if told.would_append:
        print_impact(found.impact)


def print_list_published(found: PublishedOutcome) -> None:
    """Where a list is published, or why it is not."""
    _say_published(found)
    render.echo("Nothing was published." if found.is_refused else f"digest {found.digest}")


def print_due_published(found: DuePublished) -> None:
    """The same for each list that was due."""
    for one in found.rows:
        _say_published(one)
    if not found.rows and not found.failed:
        render.echo("No list is due.")
        if not found.has_timed:
            tell_no_timed()
            render.hanging("Any other ladder is published by its name: ratings publish LADDER --as-of DATE", 2)
            render.hanging("or, by --due, at the end of each month: ratings publish LADDER --every month", 2)


def _say_published(found: PublishedOutcome) -> None:
    if found.is_refused:
        render.note(rejection_line(found.told.rejected[-1]))
        return
    did = "would be published" if found.dry_run else f"is published at position {found.position}"
    as_of = f", played up to {found.times.stated(found.at.as_of)}" if found.at.as_of is not None else ""
    rows = render.count(0 if found.row_count is ABSENT else found.row_count, "row")
    render.hanging(f"{short_name(found.ladder)} {did}: {rows} under {found.ruleset}{as_of}.", 2)


def print_undone(found: Undone) -> None:
    """What is taken back, or why it is not, and what that changes."""
    events = ", ".join(f"{number:,} {name}" for name, number in found.types.items())
    render.echo(f"recorded by {render.plain(found.by)}, {found.times.stated(found.recorded_at)}: {events}")
    render.hanging(f"  {render.plain(found.what)}", 4)
    if found.newer is not None:
        position, by = found.newer
        told = f"newer, and left as it is: position {position}, recorded by {by}"
        render.hanging(render.plain(f"{told}; ratings undo {position} takes that back"), 2)
    if found.is_refused:
        print_refused(found.told)
        return
    print_impact(found.impact)
    if not found.dry_run:
        print_taken_back(found)


def print_taken_back(found: Undone) -> None:
    """Where something is taken back, or why it is not after all."""
    if found.is_refused or found.position is None:
        print_refused(found.told)
        return
    first = found.position - found.appended + 1
    where = f"{first} to {found.position}" if found.appended > 1 else f"{found.position}"
    positions = "positions" if found.appended > 1 else "position"
    render.echo(f"\nUndone at {positions} {where}; ratings undo takes that back.")
