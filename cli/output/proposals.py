"""Print the results of proposed events: what was appended, refused or undone, and how a sheet changed."""

import re
import shlex
from collections.abc import Mapping, Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import print_differing_lists, print_impact
from ratings_ledger.cli.output.import_previews import describe_new, print_preview
from ratings_ledger.cli.output.survey import note_no_timed
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.validation.new_names import TOLD_MAX, describe_close_names
from ratings_ledger.projections.admission.outcomes import (
    DecisionOutcome,
    DueListsOutcome,
    ImportOutcome,
    ListOutcome,
    RulesetOutcome,
    SheetDifferences,
    UndoOutcome,
)
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import short_name

SHOWN_GAMES = 20
KINDS = ("new", "changed", "vanished", "returned", "reordered")


def print_sheet_differences(differences: SheetDifferences) -> None:
    """Print how many games differ, and how; count those that only follow others later."""
    if differences.otherwise:
        games = render.count(len(differences.otherwise), "game")
        message = f"note: {games} changed only in the ledger, and the sheet leaves it so: "
        render.note(
            render.plain(message + render.join_first([*map(render.csv_item, differences.otherwise)], SHOWN_GAMES))
        )
    counts = [f"{number:,} {kind}" for kind in KINDS if (number := getattr(differences, kind))]
    render.echo(render.plain(f"{differences.name}: {', '.join(counts) or 'nothing new'}"))
    listed_games = [game for game in differences.games if game.what != "reordered"]
    if listed_games:
        rows: list[tuple[render.Cell, ...]] = [
            (game.what, game.game_id, game.line, game.was, game.now) for game in listed_games[:SHOWN_GAMES]
        ]
        render.echo()
        render.print_table(("what", "game", "line", "was", "is"), rows, right=("line",))
    if (more := sum(getattr(differences, kind) for kind in KINDS[:-1]) - SHOWN_GAMES) > 0:
        render.echo(f"... and {more:,} more (--format json lists them)")
    render.echo()


SHOWN_REJECTIONS = 20
# these depend on how the whole file is written: one cause for all values
WRITTEN = frozenset(
    {"bad-utf8", "bad-time", "naive-time", "bad-value", "bad-decimal", "not-an-integer", "result-became-date"}
)

# the same option reads all of them, or the same rule refuses all: from these words on, the cause is the same
_SAME_FROM = {"tied-players": " pass --", "no-teams": " are partners"}

_WITHOUT_VALUES = re.compile(r"'[^']*'|\d+")
# the place in a sheet, a cell or a line, before the problem
_PLACE = re.compile(r"(?:.+?!)?(?P<cell>[A-Z]{1,3}[1-9]\d*|(?<=!)[1-9]\d*)(?: \([^)]*\))?: ", re.DOTALL)
LISTED_CELLS = 3


def note_unranked(result: IntakeResult) -> None:
    """Note games that are on no ladder, one for each reason with their number, unless something was refused."""
    reasons = [] if result.rejected_count else [*result.unranked.items()]
    for reason, games in reasons[:SHOWN_REJECTIONS]:
        number = f" ({games.number:,} games)" if games.number > 1 else ""
        render.note(f"note: on no ladder, such as {render.plain(games.first)}{number}: {reason}")
    if more := sum(games.number for _, games in reasons[SHOWN_REJECTIONS:]):
        are = "is" if more == 1 else "are"
        render.note(
            f"note: {render.count(more, 'more game')} {are} on no ladder, for other reasons; see: ratings games"
        )


def note_voided(result: IntakeResult) -> None:
    """Note recorded games that do not count, unless something was refused."""
    for note in result.voided_notes if not result.rejected_count else ():
        render.note(f"note: {render.plain(note)}")


def note_leagues(result: IntakeResult) -> None:
    """Note open and wrong games of leagues, unless something was refused."""
    for note in result.leagues if not result.rejected_count else ():
        render.note(f"note: {render.plain(note)}")


def note_games(result: IntakeResult) -> None:
    """Report what is odd about games that are taken: no ladder has them, their league, or a void."""
    note_unranked(result)
    note_leagues(result)
    note_voided(result)


def print_recorded(outcome: ImportOutcome) -> None:
    """Print what was appended and refused, who is new, and the impact, if it was worked out."""
    result, dry_run = outcome.imported, outcome.dry_run is True
    about_files: tuple[str, ...] = ()
    if outcome.preview is not ABSENT:
        print_preview(outcome.preview, outcome)
        about_files = tuple(f"{file.file}: " for file in outcome.preview.files)
    for note in (*result.notes, *result.accepted_defects):
        if not note.startswith(about_files):
            render.note(f"note: {render.plain(note)}")
    if outcome.sync is not ABSENT and not (result.rejected and not outcome.sync.games):
        print_sheet_differences(outcome.sync)
    causes = _group_by_cause(result.rejected)
    for rejections in causes[:SHOWN_REJECTIONS]:
        render.note(format_rejection(rejections[0]) + _describe_repeats(rejections))
    _note_untold(result.rejected_count - sum(map(len, causes[:SHOWN_REJECTIONS])))
    if outcome.preview is ABSENT:
        note_new(result)
    did = f"{result.would_append:,} would be appended" if dry_run else f"{result.appended:,} appended"
    if outcome.preview is not ABSENT and not result.rejected_count and (names := outcome.preview.undecided):
        did += f" once {render.count(len(names), 'close name')} is decided (--aliases FILE, --new-names accept)"
    existing = f", {result.existing:,} already there" if result.existing else ""
    refused = f", {result.rejected_count:,} refused" if result.rejected_count else ""
    nothing = "; nothing was appended" if result.rejected_count and not result.appended and not dry_run else ""
    render.echo(f"{did}{existing}{refused}{nothing}; the head is {outcome.head}.")
    if outcome.impact is not ABSENT and (result.would_append if dry_run else result.appended):
        print_impact(outcome.impact)
    if outcome.published is not ABSENT:
        print_differing_lists(outcome.published, outcome.times)


def _note_untold(count: int) -> None:
    if count > 0:
        render.note(f"... and {count:,} more (--format json lists them)")


def _group_by_cause(rejected: list[Rejection]) -> list[list[Rejection]]:
    """Group refusals by cause, because a file often repeats the same one on many lines."""
    groups: dict[tuple[str | None, str, str], list[Rejection]] = {}
    for rejection in rejected:
        message = _PLACE.sub("", rejection.message, count=1) if _PLACE.match(rejection.message) else rejection.message
        if rejection.code in WRITTEN:
            message = _WITHOUT_VALUES.sub("", message)
        elif (mark := _SAME_FROM.get(rejection.code, "")) in message:
            message = message[message.index(mark) :]
        groups.setdefault((rejection.file, rejection.code, message), []).append(rejection)
    return list(groups.values())


def _describe_repeats(rejections: list[Rejection]) -> str:
    """Return how often a cause recurs, with the first cells or the last line where it does."""
    again = len(rejections) - 1
    if rejections[0].code == "result-became-date":
        return ""  # its message counts the cells of all columns
    cells = [place["cell"] for one in rejections if (place := _PLACE.match(one.message))]
    if again and len(cells) == len(rejections):
        what = "cells" if cells[0][0].isalpha() else "lines"
        return f" ({len(cells):,} {what}: {render.join_first(cells, LISTED_CELLS)})"
    return f" ({again:,} more like this, the last in line {rejections[-1].line})" if again else ""


def note_new(result: IntakeResult) -> None:
    """Note new ladders, new players unless nothing was taken, and names that are close to others."""
    if result.new_ladders and not result.rejected_count:
        _note_names("new ladder", [*map(short_name, result.new_ladders)], result.close_ladders)
    if result.rejected_count and not result.would_append:
        if any(rejection.code == "close-name" for rejection in result.rejected):
            render.note(f"note: {describe_close_names(result.close)}")
        return
    if result.new_players:
        _note_names("new player", result.new_players, {name: others[0] for name, others in result.alike.items()})
    for close in list(result.close.values())[:TOLD_MAX]:
        render.note(f"note: {close.question()}")


def _note_names(what: str, names: Sequence[str], like: Mapping[str, str]) -> None:
    """Note how many names are new, and the first of them."""
    render.note(render.plain(f"note: {describe_new(what, names, like)}"))


def format_rejection(rejection: Rejection) -> str:
    """Return `FILE:LINE: code: message`, on one line."""
    where = "".join(f"{part}:" for part in (rejection.file, rejection.line) if part is not None)
    return render.plain(f"{where}{' ' if where else ''}{rejection.code}: {rejection.message}")


def print_entered(outcome: DecisionOutcome) -> None:
    """Print what became of events of one type, and their impact."""
    result = outcome.imported
    if outcome.is_refused:
        print_refused(result)
        return
    if outcome.event_id is None:
        render.echo("This is already recorded.")
        return
    note_new(result)
    if outcome.dry_run:
        render.echo(f"Nothing was recorded; this is what {outcome.type} would do.")
    elif result.would_append > 1:
        render.echo(
            f"{result.would_append:,} events {outcome.type} are recorded, the last at position {outcome.position}."
        )
    else:
        render.echo(f"{outcome.type} is recorded at position {outcome.position}.")
    if not TYPES[outcome.type].is_silent:
        print_impact(outcome.impact)


def print_refused(result: IntakeResult) -> None:
    """Print why nothing was recorded."""
    for rejection in result.rejected[:SHOWN_REJECTIONS]:
        render.note(format_rejection(rejection))
    _note_untold(result.rejected_count - SHOWN_REJECTIONS)
    render.echo("Nothing was recorded.")


def print_rulesets_published(outcome: RulesetOutcome) -> None:
    """Print which versions are published where, and their impact."""
    result, names = outcome.imported, ", ".join(outcome.rulesets)
    for rejection in result.rejected:
        render.note(format_rejection(rejection._replace(line=None)))
    if result.rejected:
        return
    if not outcome.rulesets:
        render.echo(f"Nothing to publish: the ledger has these versions already; the head is {outcome.head}")
    elif outcome.dry_run and result.would_append:
        render.echo(f"Nothing was recorded; this is what publishing {names} would do.")
    elif result.appended == 1 == len(outcome.rulesets):
        render.echo(f"{names} published at position {outcome.head}")
    else:
        rest = f"{result.existing} already published; the head is {outcome.head}"
        render.print_hanging(f"{names}: {result.appended} published, {rest}", 2)
    if result.would_append:
        print_impact(outcome.impact)


def print_list_published(outcome: ListOutcome) -> None:
    """Print where a list is published, or why it is not."""
    _print_publication(outcome)
    if outcome.is_refused:
        render.echo("Nothing was published.")
        return
    render.echo(f"digest {outcome.digest}")
    if not outcome.dry_run:
        command = f"ratings standings {shlex.quote(short_name(outcome.ladder))} --as-published"
        render.print_hanging(f"Show it: {command}; as a page to print: ratings site FOLDER", 2)


def print_due_published(lists: DueListsOutcome) -> None:
    """Print the same for each list that was due."""
    for outcome in lists.rows:
        _print_publication(outcome)
    if not lists.rows and not lists.failed:
        render.echo("No list is due.")
        if not lists.has_timed:
            note_no_timed()
            render.print_hanging("Any other ladder is published by its name: ratings publish LADDER --as-of DATE", 2)
            render.print_hanging("or, by --due, at the end of each month: ratings publish LADDER --every month", 2)


def _print_publication(outcome: ListOutcome) -> None:
    if outcome.is_refused:
        render.note(format_rejection(outcome.imported.rejected[-1]))
        return
    did = "would be published" if outcome.dry_run else f"is published at position {outcome.position}"
    as_of = f", played up to {outcome.times.format_with_zone(outcome.at.as_of)}" if outcome.at.as_of is not None else ""
    count = 0 if outcome.row_count is ABSENT else outcome.row_count
    rows = render.count(count, "row")
    if outcome.ranked < count:
        rows += f", {outcome.ranked:,} ranked" + f" (min_games {outcome.min_games})" * bool(outcome.min_games) + ","
    render.print_hanging(f"{short_name(outcome.ladder)} {did}: {rows} under {outcome.ruleset}{as_of}.", 2)


def print_undone(outcome: UndoOutcome) -> None:
    """Print what is undone, or why it is not, and the impact."""
    events = ", ".join(f"{number:,} {name}" for name, number in outcome.types.items())
    render.echo(
        f"recorded by {render.plain(outcome.by)}, {outcome.times.format_with_zone(outcome.recorded_at)}: {events}"
    )
    render.print_hanging(f"  {render.plain(outcome.what)}", 4)
    if outcome.newer is not None:
        position, by = outcome.newer
        message = f"newer, and not undone: position {position}, recorded by {by}"
        render.print_hanging(render.plain(f"{message}; ratings undo {position} undoes that"), 2)
    if outcome.is_refused:
        print_refused(outcome.imported)
        return
    print_impact(outcome.impact)
    if not outcome.dry_run:
        print_undo_result(outcome)


def print_undo_result(outcome: UndoOutcome) -> None:
    """Print where something is undone, or why it is not after all."""
    if outcome.is_refused or outcome.position is None:
        print_refused(outcome.imported)
        return
    first = outcome.position - outcome.appended + 1
    where = f"{first} to {outcome.position}" if outcome.appended > 1 else f"{outcome.position}"
    positions = "positions" if outcome.appended > 1 else "position"
    render.echo(f"\nUndone at {positions} {where}; ratings undo takes it back.")
