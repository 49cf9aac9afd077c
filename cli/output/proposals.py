"""Print the results of proposed events: the appended, refused and undone ones, and the changes of a sheet."""

import re
import shlex
from collections.abc import Mapping, Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import print_differing_lists, print_impact
from ratings_ledger.cli.output.import_previews import describe_new, print_preview
from ratings_ledger.cli.output.survey import print_no_timed_lists
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.validation.new_names import LISTED_NAMES_MAX, describe_close_names
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
from ratings_ledger.projections.replay.ladder_names import short_name

GAMES_SHOWN_MAX = 20
CHANGE_KINDS = ("new", "changed", "vanished", "returned", "reordered")


def print_sheet_differences(differences: SheetDifferences) -> None:
    """Print the number of games by kind of change, and list the games, except those that only changed their order."""
    if differences.otherwise:
        games = render.count(len(differences.otherwise), "game")
        stay = "stays as it is" if len(differences.otherwise) == 1 else "stay as they are"
        message = f"note: {games} changed only in the ledger and {stay} there: "
        render.note(
            render.plain(message + render.join_first([*map(render.csv_item, differences.otherwise)], GAMES_SHOWN_MAX))
        )
    counts = [f"{number:,} {kind}" for kind in CHANGE_KINDS if (number := getattr(differences, kind))]
    render.echo(render.plain(f"{differences.name}: {', '.join(counts) or 'nothing new'}"))
    listed_games = [game for game in differences.games if game.what != "reordered"]
    if listed_games:
        rows: list[tuple[render.TableCell, ...]] = [
            (game.what, game.game_id, game.line, game.was, game.now) for game in listed_games[:GAMES_SHOWN_MAX]
        ]
        render.echo()
        render.print_table(("what", "game", "line", "was", "is"), rows, right=("line",))
    # the last kind, reordered, is not listed
    if (more := sum(getattr(differences, kind) for kind in CHANGE_KINDS[:-1]) - GAMES_SHOWN_MAX) > 0:
        render.echo(f"... and {more:,} more (--format json lists them)")
    render.echo()


REJECTIONS_SHOWN_MAX = 20
# codes of errors in the format of a whole file: their refusals have the same cause even if the values differ
FORMAT_CODES = frozenset(
    {"bad-utf8", "bad-time", "naive-time", "bad-value", "bad-decimal", "not-an-integer", "result-became-date"}
)

# by code: the words from which on messages with the same cause are equal
_CAUSE_STARTS = {"tied-players": " pass --", "no-teams": " are partners"}

_VALUE_PATTERN = re.compile(r"'[^']*'|\d+")
# the cell or the line in a sheet at the beginning of a message
_LOCATION_PATTERN = re.compile(r"(?:.+?!)?(?P<cell>[A-Z]{1,3}[1-9]\d*|(?<=!)[1-9]\d*)(?: \([^)]*\))?: ", re.DOTALL)
CELLS_LISTED_MAX = 3


def note_unranked(result: IntakeResult) -> None:
    """Print notes about games that are not on any ladder, one example for each reason, unless something was refused."""
    reasons = [] if result.rejected_count else [*result.unranked.items()]
    for reason, games in reasons[:REJECTIONS_SHOWN_MAX]:
        example = render.plain(games.first)
        subject = f"{example} is" if games.number == 1 else f"{games.number:,} games, such as {example}, are"
        render.note(f"note: {subject} on no ladder: {reason}")
    if more := sum(games.number for _, games in reasons[REJECTIONS_SHOWN_MAX:]):
        verb = "is" if more == 1 else "are"
        explain = "to see the reason for a recorded game: ratings explain GAME LADDER"
        render.note(f"note: {render.count(more, 'more game')} {verb} on no ladder, for other reasons; {explain}")


def note_voided(result: IntakeResult) -> None:
    """Print notes about recorded games that are voided, unless something was refused."""
    for note in result.voided_notes if not result.rejected_count else ():
        render.note(f"note: {render.plain(note)}")


def note_leagues(result: IntakeResult) -> None:
    """Print notes about unfinished leagues and games that do not fit their schedule, unless something was refused."""
    for note in result.leagues if not result.rejected_count else ():
        render.note(f"note: {render.plain(note)}")


def note_games(result: IntakeResult) -> None:
    """Print notes about accepted games: games without a ladder, games of leagues, and voided games."""
    note_unranked(result)
    note_leagues(result)
    note_voided(result)


def print_import_outcome(outcome: ImportOutcome) -> None:
    """Print the numbers of appended and refused events, the new names, and the impact if it was computed."""
    result, dry_run = outcome.intake_result, outcome.dry_run is True
    file_prefixes: tuple[str, ...] = ()
    if outcome.preview is not ABSENT:
        print_preview(outcome.preview, outcome)
        file_prefixes = tuple(f"{file.file}: " for file in outcome.preview.files)
    for note in (*result.notes, *result.accepted_defects):
        if not note.startswith(file_prefixes):
            render.note(f"note: {render.plain(note)}")
    if outcome.sync is not ABSENT and not (result.rejected and not outcome.sync.games):
        print_sheet_differences(outcome.sync)
    causes = _group_by_cause(result.rejected)
    for rejections in causes[:REJECTIONS_SHOWN_MAX]:
        render.note(format_rejection(rejections[0]) + _describe_repeats(rejections))
    _note_omitted(result.rejected_count - sum(map(len, causes[:REJECTIONS_SHOWN_MAX])))
    if outcome.preview is ABSENT:
        note_new(result)
    appended_text = f"{result.would_append:,} would be appended" if dry_run else f"{result.appended:,} appended"
    if outcome.preview is not ABSENT and not result.rejected_count and (names := outcome.preview.undecided):
        appended_text += (
            f" once {render.count(len(names), 'close name')} {'is' if len(names) == 1 else 'are'} decided "
            "(--aliases FILE, --new-names accept)"
        )
    existing = f", {result.existing:,} already there" if result.existing else ""
    refused = f", {result.rejected_count:,} refused" if result.rejected_count else ""
    nothing_text = "; nothing was appended" if result.rejected_count and not result.appended and not dry_run else ""
    render.echo(f"{appended_text}{existing}{refused}{nothing_text}; the head is {outcome.head}.")
    if outcome.impact is not ABSENT and (result.would_append if dry_run else result.appended):
        # a sync also records its batch, which is not counted
        event_count = result.appended + (outcome.sync is not ABSENT)
        print_impact(outcome.impact, None if dry_run else outcome.head, event_count)
    if outcome.published is not ABSENT:
        print_differing_lists(outcome.published, outcome.times)


def _note_omitted(count: int) -> None:
    if count > 0:
        render.note(f"... and {count:,} more (--format json lists them)")


def _group_by_cause(rejected: list[Rejection]) -> list[list[Rejection]]:
    """Group refusals by cause, because the same mistake often occurs on many lines."""
    groups: dict[tuple[str | None, str, str], list[Rejection]] = {}
    for rejection in rejected:
        message = (
            _LOCATION_PATTERN.sub("", rejection.message, count=1)
            if _LOCATION_PATTERN.match(rejection.message)
            else rejection.message
        )
        if rejection.code in FORMAT_CODES:
            message = _VALUE_PATTERN.sub("", message)
        elif (cause_start := _CAUSE_STARTS.get(rejection.code, "")) in message:
            message = message[message.index(cause_start) :]
        groups.setdefault((rejection.file, rejection.code, message), []).append(rejection)
    return list(groups.values())


def _describe_repeats(rejections: list[Rejection]) -> str:
    """Describe the repetitions of a cause, with the first cells or the last line; empty if there are none."""
    repeat_count = len(rejections) - 1
    if rejections[0].code == "result-became-date":
        return ""  # the message already counts the cells of all columns
    cells = [location["cell"] for rejection in rejections if (location := _LOCATION_PATTERN.match(rejection.message))]
    if repeat_count and len(cells) == len(rejections):
        unit = "cells" if cells[0][0].isalpha() else "lines"
        return f" ({len(cells):,} {unit}: {render.join_first(cells, CELLS_LISTED_MAX)})"
    last_line = rejections[-1].line  # None for an event that does not come from a file
    line_note = "" if last_line is None else f", the last in line {last_line}"
    return f" ({repeat_count:,} more like this{line_note})" if repeat_count else ""


def note_new(result: IntakeResult) -> None:
    """Print notes about new ladders, new players, and names that are close to others.

    If no event was accepted, only count the close names. If any was refused, leave out the new ladders.
    """
    if result.new_ladders and not result.rejected_count:
        _note_names("new ladder", [*map(short_name, result.new_ladders)], result.close_ladders)
    if result.rejected_count and not result.would_append:
        if any(rejection.code == "close-name" for rejection in result.rejected):
            render.note(f"note: {describe_close_names(result.close)}")
        return
    if result.new_players:
        similar_names = {name: similar[0] for name, similar in result.similar_names.items()}
        _note_names("new player", result.new_players, similar_names)
    for close_name in list(result.close.values())[:LISTED_NAMES_MAX]:
        render.note(f"note: {close_name.format_question()}")


def _note_names(kind: str, names: Sequence[str], similar: Mapping[str, str]) -> None:
    """Print a note with the number of new names, and the first of them."""
    render.note(render.plain(f"note: {describe_new(kind, names, similar)}"))


def format_rejection(rejection: Rejection) -> str:
    """Return `FILE:LINE: code: message`, on one line."""
    location = "".join(f"{part}:" for part in (rejection.file, rejection.line) if part is not None)
    return render.plain(f"{location}{' ' if location else ''}{rejection.code}: {rejection.message}")


def print_decision_outcome(outcome: DecisionOutcome) -> None:
    """Print the result of recording events of one type, and their impact."""
    result = outcome.intake_result
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
            f"{result.would_append:,} {outcome.type} events are recorded, the last at position {outcome.position}."
        )
    else:
        render.echo(f"{outcome.type} is recorded at position {outcome.position}.")
    if not TYPES[outcome.type].is_silent:
        print_impact(outcome.impact, outcome.position, outcome.appended)


def print_refused(result: IntakeResult) -> None:
    """Print the refusals, and that nothing was recorded."""
    for rejection in result.rejected[:REJECTIONS_SHOWN_MAX]:
        render.note(format_rejection(rejection))
    _note_omitted(result.rejected_count - REJECTIONS_SHOWN_MAX)
    render.echo("Nothing was recorded.")


def print_rulesets_published(outcome: RulesetOutcome) -> None:
    """Print the published versions, the head and the impact, or only the refusals."""
    result, names = outcome.intake_result, ", ".join(outcome.rulesets)
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
        render.print_hanging(
            f"{names}: {result.appended} published, {result.existing} already published; the head is {outcome.head}", 2
        )
    if result.would_append:
        print_impact(outcome.impact, outcome.head, outcome.appended)


def print_list_published(outcome: ListOutcome) -> None:
    """Print the position of a published list, or the refusal of the list."""
    _print_publication(outcome)
    if outcome.is_refused:
        render.echo("Nothing was published.")
        return
    render.echo(f"digest {outcome.digest}")
    if not outcome.dry_run:
        command = f"ratings standings {shlex.quote(short_name(outcome.ladder))} --as-published"
        render.print_hanging(f"Show it: {command}; as a page to print: ratings site FOLDER", 2)


def print_due_published(lists: DueListsOutcome) -> None:
    """Print the result for each due list; if none is due, print how to publish other lists."""
    for outcome in lists.rows:
        _print_publication(outcome)
    if not lists.rows and not lists.failed:
        render.echo("No list is due.")
        if not lists.has_publishable:
            print_no_timed_lists()
            render.print_hanging("To publish another ladder: ratings publish LADDER --as-of DATE", 2)
            render.print_hanging("To publish it with --due after each month: ratings publish LADDER --every month", 2)


def _print_publication(outcome: ListOutcome) -> None:
    if outcome.is_refused:
        render.note(format_rejection(outcome.intake_result.rejected[-1]))
        return
    state_text = "would be published" if outcome.dry_run else f"is published at position {outcome.position}"
    as_of = f", played up to {outcome.times.format_with_zone(outcome.at.as_of)}" if outcome.at.as_of is not None else ""
    count = 0 if outcome.row_count is ABSENT else outcome.row_count
    rows = render.count(count, "row")
    if outcome.ranked < count:
        rows += f", {outcome.ranked:,} ranked" + f" (min_games {outcome.min_games})" * bool(outcome.min_games) + ","
    render.print_hanging(f"{short_name(outcome.ladder)} {state_text}: {rows} under {outcome.ruleset}{as_of}.", 2)


def print_undone(outcome: UndoOutcome) -> None:
    """Print the undone events and the impact, or the refusal of the undo."""
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
        print_refused(outcome.intake_result)
        return
    print_impact(outcome.impact, outcome.position, outcome.appended)
    if not outcome.dry_run:
        print_undo_result(outcome)


def print_undo_result(outcome: UndoOutcome) -> None:
    """Print the positions of an undo, or the refusal of the undo."""
    if outcome.is_refused or outcome.position is None:
        print_refused(outcome.intake_result)
        return
    first = outcome.position - outcome.appended + 1
    positions_text = f"{first} to {outcome.position}" if outcome.appended > 1 else f"{outcome.position}"
    position_word = "positions" if outcome.appended > 1 else "position"
    render.echo(f"\nUndone at {position_word} {positions_text}; ratings undo takes it back.")
