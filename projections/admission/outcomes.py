"""Build the outcomes of proposed events: rejections, new names, and the impact."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.validation.new_names import CloseName
from ratings_ledger.projections.admission.previews import Preview
from ratings_ledger.projections.diff.comparison import DifferingList
from ratings_ledger.projections.diff.impact import Impact
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, INLINE, Absent, Answer, Result


@dataclass(frozen=True, slots=True)
class Refusal(Result):
    """A rejected event: its file and line, if any, and the code and message of the rejection."""

    file: str | Absent | None
    line: int | Absent | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class NewNames(Result):
    """The players and ladders that are new to the ledger, and the new names that are close to another name."""

    new_players: tuple[str, ...]
    close_names: tuple[dict[str, Any], ...]
    new_ladders: tuple[str, ...]
    close_ladders: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class DifferingGame(Result):
    """A game that differs between a sheet and the ledger: the kind of difference (`what`), and its line and time.

    `was` describes the game in the ledger, and `now` the game in the sheet. For a changed game, they describe only what
    changed, such as `city Ulm`.
    """

    what: str
    game_id: str
    line: int | None
    occurred_at: datetime
    was: str | None
    now: str | None = field(metadata={"name": "is"})


@dataclass(frozen=True, slots=True)
class SheetDifferences(Result):
    """The differences between a sheet and its previous import: the number of games of each kind, and the first games.

    `is_first` tells whether there was no previous import. `otherwise` has the ids of games that were changed in the
    ledger by hand but not in the sheet.
    """

    name: str
    is_first: bool
    new: int
    changed: int
    vanished: int
    returned: int
    reordered: int
    otherwise: tuple[str, ...]
    games: tuple[DifferingGame, ...]


@dataclass(frozen=True, slots=True)
class WriteOutcome(Answer):
    """The common part of the outcomes that have one intake."""

    intake_result: IntakeResult = field(metadata=HIDDEN, kw_only=True)

    @property
    def is_refused(self) -> bool:
        """Tell whether any event was rejected."""
        return self.intake_result.rejected_count > 0

    @property
    def failed(self) -> tuple[str, ...]:
        """Return a message for each ladder that cannot be replayed."""
        impact: Impact | Absent = getattr(self, "impact", ABSENT)
        return () if impact is ABSENT else tuple(impact.failed)


@dataclass(frozen=True, slots=True)
class ImportOutcome(WriteOutcome):
    """The outcome of recording or importing events.

    `rejected_count` is the number of all rejections if `rejected` has only some of them. `published` has the published
    lists that would change, if only these were requested. `incomplete` has the defects of files that a restore
    accepted. `voided` has the ids of games that already exist but are voided.
    """

    appended: int
    existing: int
    rejected: tuple[Refusal, ...]
    head: int
    rejected_count: int | Absent
    new: NewNames = field(metadata=INLINE)
    dry_run: bool | Absent
    would_append: int | Absent
    impact: Impact | Absent = field(metadata=INLINE)
    incomplete: tuple[str, ...] | Absent
    published: tuple[DifferingList, ...] | Absent
    voided: tuple[str, ...] | Absent = ABSENT
    sync: SheetDifferences | Absent = ABSENT
    preview: Preview | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class DecisionOutcome(WriteOutcome):
    """The outcome of recording decisions of one type.

    `event_id` is the id of the first event, and `position` that of the last one, if any was recorded. `unchanged` has
    the games of a file that need no change.
    """

    type: str
    event_id: str | None
    position: int | None
    appended: int
    existing: int
    dry_run: bool
    rejected: tuple[Refusal, ...]
    unchanged: tuple[str, ...] | Absent
    new: NewNames = field(metadata=INLINE)
    impact: Impact = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class UndoOutcome(WriteOutcome):
    """The outcome of an undo: the changeset with its author, time, types and description (`what`).

    `ranges` are the positions of the changeset's events. `position` is that of the undo, if it was recorded. `newer` is
    the position and author of a newer event that was not undone.
    """

    ranges: tuple[tuple[int, int], ...]
    by: str
    recorded_at: datetime
    types: dict[str, int]
    what: str
    position: int | None
    appended: int
    existing: int
    dry_run: bool
    rejected: tuple[Refusal, ...]
    impact: Impact = field(metadata=INLINE)
    newer: tuple[int, str] | None = field(metadata=HIDDEN, default=None)


@dataclass(frozen=True, slots=True)
class RulesetOutcome(WriteOutcome):
    """The outcome of publishing rulesets."""

    rulesets: tuple[str, ...]
    appended: int
    existing: int
    dry_run: bool
    rejected: tuple[Refusal, ...]
    head: int
    impact: Impact = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class ListOutcome(WriteOutcome):
    """The outcome of publishing a list; `position` is that of its `list.published` event.

    `ranked` counts the rows with a rank. `min_games` is the version's, or 0 if it leaves no player without a rank.
    """

    ladder: str
    ruleset: str | Absent
    at: Coordinates
    games: int | Absent
    digest: str | Absent
    row_count: int | Absent
    position: int | Absent | None
    appended: int
    existing: int
    dry_run: bool
    rejected: tuple[Refusal, ...]
    ranked: int = field(default=0, metadata=HIDDEN, kw_only=True)
    min_games: int = field(default=0, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class DueListsOutcome(Answer):
    """The outcome of publishing all due lists. `failed` has a message for each ladder that cannot be replayed.

    `has_publishable` tells whether any ruleset makes lists of months or years, or any ladder has a schedule of lists.
    """

    at: Coordinates
    dry_run: bool
    rows: tuple[ListOutcome, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    has_publishable: bool = field(default=True, metadata=HIDDEN, kw_only=True)

    @property
    def is_refused(self) -> bool:
        """Tell whether any list was not published."""
        return bool(self.failed) or any(outcome.is_refused for outcome in self.rows)


def build_refusals(rejected: Iterable[Rejection], with_place: bool | None = None) -> tuple[Refusal, ...]:
    """Convert rejections to results, with or without their files and lines; by default, with those that are known."""
    return tuple(
        Refusal(rejection.file, rejection.line, rejection.code, rejection.message)
        if with_place or (with_place is None and rejection.line is not None)
        else Refusal(ABSENT, ABSENT, rejection.code, rejection.message)
        for rejection in rejected
    )


def build_new_names(imported: IntakeResult) -> NewNames:
    """Return the new names of an import; after any rejection, new ladders are left out."""
    is_refused = imported.rejected_count > 0
    close_ladders = {} if is_refused else imported.close_ladders
    return NewNames(
        new_players=tuple(imported.new_players),
        close_names=tuple(map(_describe_close_name, imported.close.values())),
        new_ladders=() if is_refused else tuple(imported.new_ladders),
        close_ladders=tuple(
            {"ladder": name, "close_to": [similar_name]} for name, similar_name in close_ladders.items()
        ),
    )


def _describe_close_name(close: CloseName) -> dict[str, Any]:
    """Convert a close name to plain data: its first file and line, the names it is close to, and their games.

    A number of games is None if it is unknown, or if that name is new as well.
    """
    first, games = close.first, [games if isinstance(games, int) else None for games in close.others.values()]
    location = {} if first is None or not first.file else {"file": first.file, "line": first.line}
    return {"player": close.name, **location, "close_to": [*close.others], "games": games}


def build_import_outcome(
    imported: IntakeResult,
    dry_run: bool,
    impact: Impact | None = None,
    *,
    only_lists: bool = False,
    sync: SheetDifferences | Absent = ABSENT,
    preview: Preview | Absent = ABSENT,
) -> ImportOutcome:
    """Return the outcome of recording or importing events.

    Args:
        imported: the result of the intake.
        dry_run: whether this was a dry run, which records nothing; its outcome always has an impact.
        impact: the changes of points, if they were computed.
        only_lists: whether to report only the published lists that would change, not the rest of the impact.
        sync: the differences in a sheet.
        preview: how the files were read.
    """
    known_impact = Impact() if impact is None else impact  # not `or`: an impact without changes is falsy
    has_impact = dry_run or (impact is not None and not only_lists)
    is_cut = imported.rejected_count > len(imported.rejected)
    return ImportOutcome(
        appended=imported.appended,
        existing=imported.existing,
        rejected=build_refusals(imported.rejected, with_place=True),
        head=get_head_position(imported),
        rejected_count=imported.rejected_count if is_cut else ABSENT,
        new=build_new_names(imported),
        dry_run=dry_run or ABSENT,
        would_append=imported.would_append if dry_run else ABSENT,
        impact=known_impact if has_impact else ABSENT,
        incomplete=tuple(imported.accepted_defects) or ABSENT,
        published=known_impact.published if only_lists else ABSENT,
        voided=tuple(imported.voided) or ABSENT,
        sync=sync,
        preview=preview,
        intake_result=imported,
        times=known_impact.times,
    )


def build_decision_outcome(
    imported: IntakeResult,
    type_name: str,
    event_id: str | None,
    *,
    dry_run: bool,
    impact: Impact,
    unchanged: Sequence[str] | None = None,
) -> DecisionOutcome:
    """Return the outcome of recording decisions of one type; `event_id` is the id of the first event."""
    return DecisionOutcome(
        type=type_name,
        event_id=event_id,
        position=get_head_position(imported) if imported.appended else None,
        appended=imported.appended,
        existing=imported.existing,
        dry_run=dry_run,
        rejected=build_refusals(imported.rejected),
        unchanged=ABSENT if unchanged is None else tuple(unchanged),
        new=build_new_names(imported),
        impact=impact,
        intake_result=imported,
    )


def build_ruleset_outcome(
    imported: IntakeResult, rulesets: Sequence[str], dry_run: bool, impact: Impact
) -> RulesetOutcome:
    """Return the outcome of publishing rulesets."""
    return RulesetOutcome(
        rulesets=tuple(rulesets),
        appended=imported.appended,
        existing=imported.existing,
        dry_run=dry_run,
        rejected=tuple(
            Refusal(rejection.file, ABSENT, rejection.code, rejection.message) for rejection in imported.rejected
        ),
        head=get_head_position(imported),
        impact=impact,
        intake_result=imported,
        times=impact.times,
    )


def get_head_position(imported: IntakeResult) -> int:
    """Return the position of the log's head after an intake."""
    return 0 if imported.head is None else imported.head.position
