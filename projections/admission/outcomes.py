"""What became of proposed events, or would, as results: what is refused, who is new, what they change."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.intake.intake import Imported
from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.ledger.validation.new_names import CloseName
from ratings_ledger.projections.admission.previews import Preview
from ratings_ledger.projections.diff.comparison import DifferingList
from ratings_ledger.projections.diff.impact import Impact
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, SPREAD, Absent, Answer, Result


@dataclass(frozen=True, slots=True)
class Refusal(Result):
    """A refused event: where it stands, if that is told, the code of its rejection, and what is wrong with it."""

    file: str | Absent | None
    line: int | Absent | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Newness(Result):
    """Who is new to the ledger, and which ladders begin; and which of those are close to another name."""

    new_players: tuple[str, ...]
    close_names: tuple[dict[str, Any], ...]
    new_ladders: tuple[str, ...]
    close_ladders: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class DifferingGame(Result):
    """A game that differs: what became of it in the sheet, where it stands there, and when it was played; how the
    ledger has it, and how the sheet does. Of a changed game only that is told, such as `city Ulm`.
    """

    what: str
    game_id: str
    line: int | None
    occurred_at: datetime
    was: str | None
    now: str | None = field(metadata={"name": "is"})


@dataclass(frozen=True, slots=True)
class SheetDifferences(Result):
    """What differs between a sheet and what it gave before: how many games of each kind, and the first of them.

    `otherwise` are games that somebody decided otherwise in the ledger, and of which the sheet says nothing new.
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
class Written(Answer):
    """What every outcome tells besides; `told` is what the intake counted."""

    told: Imported = field(metadata=HIDDEN, kw_only=True)

    @property
    def is_refused(self) -> bool:
        """Tell whether anything was refused."""
        return self.told.rejected_count > 0

    @property
    def failed(self) -> tuple[str, ...]:
        """Return which ladders cannot be replayed, and why."""
        found: Impact | Absent = getattr(self, "impact", ABSENT)
        return () if found is ABSENT else tuple(found.failed)


@dataclass(frozen=True, slots=True)
class Recorded(Written):
    """What became of some events; `published` are lists that would come out differently, where only they were asked;
    `voided` are games that are already there but do not count.
    """

    appended: int
    existing: int
    rejected: tuple[Refusal, ...]
    head: int
    rejected_count: int | Absent
    new: Newness = field(metadata=SPREAD)
    dry_run: bool | Absent
    would_append: int | Absent
    impact: Impact | Absent = field(metadata=SPREAD)
    incomplete: tuple[str, ...] | Absent
    published: tuple[DifferingList, ...] | Absent
    voided: tuple[str, ...] | Absent = ABSENT
    sync: SheetDifferences | Absent = ABSENT
    preview: Preview | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class Entered(Written):
    """What became of events of one type; `unchanged` are the games of a file that are left alone."""

    type: str
    event_id: str | None
    position: int | None
    appended: int
    existing: int
    dry_run: bool
    rejected: tuple[Refusal, ...]
    unchanged: tuple[str, ...] | Absent
    new: Newness = field(metadata=SPREAD)
    impact: Impact = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True)
class Undone(Written):
    """What became of taking an act back: where the act stands, who recorded it and when, how many events of which type
    it is, and what it says; at `position` it is taken back, if it is. `newer` is where somebody else did something
    later that stays, and who.
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
    impact: Impact = field(metadata=SPREAD)
    newer: tuple[int, str] | None = field(metadata=HIDDEN, default=None)


@dataclass(frozen=True, slots=True)
class RulesetsPublished(Written):
    """What became of the events that publish rulesets."""

    rulesets: tuple[str, ...]
    appended: int
    existing: int
    dry_run: bool
    rejected: tuple[Refusal, ...]
    head: int
    impact: Impact = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True)
class PublishedOutcome(Written):
    """What became of the events that publish a list; `position` is that of its head.

    `ranked` of its rows have a rank; others lack some of `min_games` games (0: nobody does).
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
class DuePublished(Answer):
    """The lists that were due; `failed` tells which ladders cannot be replayed, and why. `has_timed` tells whether any
    ruleset makes lists of months or years.
    """

    at: Coordinates
    dry_run: bool
    rows: tuple[PublishedOutcome, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    has_timed: bool = field(default=True, metadata=HIDDEN, kw_only=True)

    @property
    def is_refused(self) -> bool:
        """Tell whether any of them is not published."""
        return bool(self.failed) or any(one.is_refused for one in self.rows)


def refusals(rejected: Iterable[Rejection], placed: bool | None = None) -> tuple[Refusal, ...]:
    """Rejections as results, with their places, without, or, by default, with those that are known."""
    return tuple(
        Refusal(one.file, one.line, one.code, one.message)
        if placed or (placed is None and one.line is not None)
        else Refusal(ABSENT, ABSENT, one.code, one.message)
        for one in rejected
    )


def newness(told: Imported) -> Newness:
    """Return who and what is new; a ladder begins only if nothing is refused."""
    new_ladders, like = ([], {}) if told.rejected_count else (told.new_ladders, told.close_ladders)
    return Newness(
        tuple(told.new_players), tuple(map(_close_name, told.close.values())),
        tuple(new_ladders), tuple({"ladder": name, "close_to": [other]} for name, other in like.items()),
    )  # fmt: skip


def _close_name(close: CloseName) -> dict[str, Any]:
    """Return a close name with where it first stands, if in a file, and how many games the others have; None if not
    known.
    """
    first, games = close.first, [known if isinstance(known, int) else None for known in close.others.values()]
    placed = {} if first is None or not first.file else {"file": first.file, "line": first.line}
    return {"player": close.name, **placed, "close_to": [*close.others], "games": games}


def recorded(
    told: Imported, dry_run: bool, impact: Impact | None = None, *, only_lists: bool = False,
    sync: SheetDifferences | Absent = ABSENT, preview: Preview | Absent = ABSENT,
) -> Recorded:  # fmt: skip
    """Return what became of some events; a dry run always has an impact, if only an empty one.

    With `only_lists` no more is told of it than which published lists would come out differently; `sync` is what
    differs in a sheet, `preview` how files were understood.
    """
    found = Impact() if impact is None else impact  # one without changes is false
    return Recorded(
        told.appended, told.existing, refusals(told.rejected, placed=True), head_of(told),
        told.rejected_count if told.rejected_count > len(told.rejected) else ABSENT, newness(told),
        dry_run or ABSENT, told.would_append if dry_run else ABSENT,
        found if dry_run or (impact is not None and not only_lists) else ABSENT,
        tuple(told.passed) or ABSENT, found.published if only_lists else ABSENT, tuple(told.voided) or ABSENT,
        sync, preview, told=told,
        times=found.times,
    )  # fmt: skip


def entered(
    told: Imported, type_name: str, event_id: str | None, dry_run: bool, impact: Impact,
    unchanged: Sequence[str] | None = None,
) -> Entered:  # fmt: skip
    """Return what became of events of one type, of which the first has this id."""
    return Entered(
        type_name, event_id, head_of(told) if told.appended else None, told.appended, told.existing,
        dry_run, refusals(told.rejected), ABSENT if unchanged is None else tuple(unchanged), newness(told), impact,
        told=told,
    )  # fmt: skip


def rulesets_published(
    told: Imported, rulesets: Sequence[str], dry_run: bool, impact: Impact
) -> RulesetsPublished:  # fmt: skip
    """Return what became of the events that publish some versions."""
    refused = tuple(Refusal(one.file, ABSENT, one.code, one.message) for one in told.rejected)
    return RulesetsPublished(
        tuple(rulesets),
        told.appended,
        told.existing,
        dry_run,
        refused,
        head_of(told),
        impact,
        told=told,
        times=impact.times,
    )


def head_of(told: Imported) -> int:
    """Return the position of the log's head after an intake."""
    return 0 if told.head is None else told.head.position
