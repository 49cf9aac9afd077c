"""Hold the facts that replays need, as columns, up to a log position.

Games are rows of parallel arrays. The participants of all games are in further arrays: those of a game are `count`
entries from `start` on. A corrected game keeps its row and gets new participants. Texts (players, games, groups ...)
are interned and stored as numbers, -1 for none. `projections.facts.applying` and `bulk_decoding` fill in the columns.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ratings_ledger.ledger.events.canonical import INSTANT_MAX
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, NUMBERS, OPTIONAL_COLUMNS
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF
from ratings_ledger.projections.rulesets.versions import Reading, Version

UNRATED, ABORTED = 1, 2  # the bits of `Cell.flags`
LABELS = ("game", "kind", "group", "city", "league", "season")
NONE = -1
SAME = -(2**63)  # the value of `GameChange.occurred_at` if the change keeps the game's time


class Cell(NamedTuple):
    """The properties of a game, other than time, that determine its eligibility and its ladders.

    Labels are indexes into `Facts.texts`. `flags` has the bits `UNRATED` and `ABORTED`.
    """

    game: int
    kind: int
    group: int
    city: int
    league: int
    season: int
    seats: int
    flags: int


class GameChange(NamedTuple):
    """A later change of the game at a row: voided (if `voided`), corrected (if `start` is not `NONE`) or reinstated."""

    position: int
    row: int
    voided: bool
    occurred_at: int = SAME
    start: int = NONE
    size: int = 0
    cell: int = NONE
    kind_start: int = NONE


class Adjustment(NamedTuple):
    """A `points.adjusted` event. `points` is a decimal string."""

    occurred_at: int
    position: int
    ladder: str
    player: int
    points: str


class Seed(NamedTuple):
    """A `player.seeded` event: the state with which a player starts on a ladder.

    state: decimal strings by the name of the state column
    games: the number of games that the player had played before, outside this ladder
    """

    position: int
    ladder: str
    player: int
    state: dict[str, str]
    games: int


class AccountEntry(NamedTuple):
    """A change of a player's account (premium or free), from `occurred_at` on."""

    occurred_at: int
    position: int
    player: int
    account: str


class Rename(NamedTuple):
    """A `player.renamed` event."""

    position: int
    player: int
    new_player: int


class ClubRename(NamedTuple):
    """A `club.renamed` event."""

    position: int
    club: str
    new_club: str


class LeagueFacts(NamedTuple):
    """A league, which starts at `occurred_at`; `league` and `game` are indexes into `Facts.texts`."""

    occurred_at: int
    position: int
    league: int
    game: int


class UnusableVersion(NamedTuple):
    """A published version that cannot be used here, and the reason."""

    position: int
    ruleset_id: str
    reason: str


@dataclass
class RecordedFacts:
    """The facts of all events, even withdrawn ones, except those that record or revise games (`GAME_EVENTS`)."""

    adjustments: list[Adjustment] = field(default_factory=list)
    seeds: list[Seed] = field(default_factory=list)
    accounts: list[AccountEntry] = field(default_factory=list)
    renames: list[Rename] = field(default_factory=list)
    club_renames: list[ClubRename] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    unusable: list[UnusableVersion] = field(default_factory=list)
    leagues: list[LeagueFacts] = field(default_factory=list)
    # the events of game clocks, by game_id: (position, instant, type, data)
    clocks: dict[str, list[tuple[int, int, str, dict[str, Any]]]] = field(default_factory=dict)
    # the positions of all events except `GAME_EVENTS`, by id
    positions: dict[str, int] = field(default_factory=dict)
    # by position of each `event.voided`, the position of the event that it withdraws or restores in the end
    roots: dict[int, int] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)

    def clone(self) -> RecordedFacts:
        """Return a copy that can be extended without changing the original."""
        members = {name: copy(value) for name, value in vars(self).items()}
        return RecordedFacts(**(members | {"clocks": {game: [*events] for game, events in self.clocks.items()}}))


Column: TypeAlias = arrays.Column


class OptionalColumn(NamedTuple):
    """A column of participants that may end early: its type code, and the value for participants after its end."""

    code: str
    default: int


# columns of custom numbers are optional, too; a column exists if a game has the number
OPTIONAL = {
    **dict.fromkeys(OPTIONAL_COLUMNS, OptionalColumn("i", NONE)),
    "team": OptionalColumn("i", NONE),
    "club": OptionalColumn("i", NONE),  # the number of the club's text
    "home": OptionalColumn("b", 0),
    "score": OptionalColumn("q", MISSING),  # in a game of kind `placing`, in units of 10^-score_decimals
    "score_decimals": OptionalColumn("b", 0),
}
# values of `score_decimals` for a score that no ruleset can read: it has too many decimals, or it is too large
TOO_FINE, TOO_LARGE = 127, 126
# reads whole scores in points (scores with decimals as 0), and custom numbers as recorded
RECORDED_READING = Reading(())
ROW_COLUMNS = ("first_position", "live_position", "occurred_at", "start", "count", "cell", "kind_start")
SLOT_COLUMNS = ("player", "place", "status", "replaced")


class CacheSizes(NamedTuple):
    """The counts of a cache that a delta extends: its games, participants, players, texts and cells.

    of_kind: the lengths of the columns of game types, by name
    """

    rows: int
    slots: int
    players: int
    texts: int
    cells: int
    of_kind: dict[str, int]


def find_optional_column(name: str) -> OptionalColumn:
    """Return the type and the default of an optional column, including columns of custom numbers."""
    return OPTIONAL.get(name) or OptionalColumn("q", MISSING)


def _create_column() -> array[int]:
    """Return an empty column of 64-bit integers."""
    return array("q")


def _create_small_column() -> array[int]:
    """Return an empty column of 32-bit integers."""
    return array("i")


@dataclass
class Facts:
    """The facts up to `position`; `chain_hash` identifies the exact history from which they were decoded."""

    position: int
    chain_hash: bytes

    # one row per game, in the order of recording; `cell` indexes `cells`
    first_position: Column = field(default_factory=_create_column)
    live_position: Column = field(default_factory=_create_column)
    occurred_at: Column = field(default_factory=_create_column)
    start: Column = field(default_factory=_create_column)
    count: Column = field(default_factory=_create_small_column)
    cell: Column = field(default_factory=_create_small_column)
    kind_start: Column = field(default_factory=_create_column)
    voided: set[int] = field(default_factory=set)  # the rows of voided games

    # one entry per participant
    player: Column = field(default_factory=_create_small_column)
    place: Column = field(default_factory=_create_small_column)
    status: Column = field(default_factory=lambda: array("b"))
    replaced: Column = field(default_factory=lambda: array("b"))  # 1 if a substitute took over the seat
    optional: dict[str, Column] = field(
        default_factory=lambda: {name: array(column.code) for name, column in OPTIONAL.items()}
    )

    # columns of participants for single game types; a game's values start at its `kind_start`
    of_kind: dict[str, Column] = field(
        default_factory=lambda: {name: _create_column() for columns in COLUMNS_OF.values() for name in columns}
    )

    # `players[number]` is an id as recorded; `person[number]` is the number of the person's current id
    players: list[str] = field(default_factory=list)
    players_at: Column = field(default_factory=_create_column)  # the position at which each id was first named
    person: array[int] = field(default_factory=_create_small_column)
    texts: list[str] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    player_numbers: dict[str, int] = field(default_factory=dict)
    text_numbers: dict[str, int] = field(default_factory=dict)
    cell_numbers: dict[Cell, int] = field(default_factory=dict)

    # by game_id, the rows of the games to which later events refer; `NONE` until the game is applied
    rows: dict[str, int] = field(default_factory=dict)
    recorded: RecordedFacts = field(default_factory=RecordedFacts)
    # only in a delta: the counts of the cache that it extends; all 0 in the facts of a sealed segment
    base: CacheSizes | None = None
    # in a delta, or read from a cache and not yet applied: the changes of games, and the records of other events
    changes: list[GameChange] = field(default_factory=list)
    other_records: list[tuple[int, str]] = field(default_factory=list)
    # checks all columns; None if none is left to check. Until it is called, each part is checked when it is read
    pending_check: Callable[[Facts], None] | None = None
    # the folder of the cache, the chain hashes at `position` and at the positions of cached traces, and the open traces
    cache: Path | None = None
    hashes: dict[int, bytes] = field(default_factory=dict)
    trace_files: dict[Path, Any] = field(default_factory=dict)
    # whether events were applied after the facts were read from the cache; if so, results are not cached
    has_later_events: bool = False
    # the time of the last record, which closes rating periods; set only if a ruleset has rating periods
    recorded_until: int = INSTANT_MAX

    # by position, the reason why an event is ignored: it is invalid, or it renames in a circle
    unread: dict[int, str] = field(default_factory=dict)
    circular: dict[int, str] = field(default_factory=dict)

    # the live facts by person, set by `settle_facts`
    adjustments: list[Adjustment] = field(default_factory=list)
    # by ladder and person; if a person has several seeds on a ladder, the first recorded
    seeds: dict[str, dict[int, Seed]] = field(default_factory=dict)
    # the current name of a club, by old name
    clubs: dict[str, str] = field(default_factory=dict)
    accounts: dict[int, list[AccountEntry]] = field(default_factory=dict)
    rulesets: dict[str, list[Version]] = field(default_factory=dict)
    unusable: dict[str, UnusableVersion] = field(default_factory=dict)
    leagues: list[LeagueFacts] = field(default_factory=list)
    # by the positions of a ruleset's versions: by league (an index into `texts`), the instant at which it began
    league_starts: dict[tuple[int, ...], dict[int, int]] = field(default_factory=dict)
    # in facts whose participants are clubs: the games of the clubs' players
    club_games: ClubGames | None = None
    # the seconds played according to the game's clock, rounded up, by participant
    clock_seconds: dict[int, int] = field(default_factory=dict)
    # whether any id has another current id
    renamed: bool = False
    _id_ranks: array[int] = field(default_factory=_create_small_column)

    @property
    def left_out(self) -> dict[int, str]:
        """Return the reasons why invalid events are ignored, by position."""
        return dict(sorted((self.unread | self.circular).items()))

    def detached_copy(self) -> Facts:
        """Return a copy that stays the same when further events are applied to these facts."""
        # participants, players and texts are only appended, and no game of the copy refers to later ones
        rows = {name: copy(getattr(self, name)) for name in ROW_COLUMNS}
        return replace(self, **rows, person=self.person[:], voided=set(self.voided), cache=None)

    def clone(self) -> Facts:
        """Return a copy to which events can be applied without changing these facts."""
        members = vars(self)
        copied_members = (
            "voided",
            "players",
            "players_at",
            "person",
            "texts",
            "cells",
            "player_numbers",
            "text_numbers",
            "cell_numbers",
            "rows",
            "unread",
            "circular",
        )
        return replace(
            self,
            **{name: copy(members[name]) for name in (*ROW_COLUMNS, *SLOT_COLUMNS, *copied_members)},
            optional={name: copy(column) for name, column in self.optional.items()},
            of_kind={name: copy(column) for name, column in self.of_kind.items()},
            recorded=self.recorded.clone(),
        )

    def select_rows(self, rows: Column) -> Facts:
        """Return the facts with only some games, given by row and renumbered in this order."""
        self.id_ranks()  # compute the ranks once and share them
        count = arrays.take(self.count, rows)
        slots, starts = arrays.span_indices(arrays.take(self.start, rows), count), arrays.exclusive_cumsum(count)
        columns = {name: arrays.take(getattr(self, name), rows) for name in ROW_COLUMNS}
        slot_columns = {name: arrays.take(getattr(self, name), slots) for name in SLOT_COLUMNS}
        # in the result, every participant has a value, even in games of other types, so `kind_start` equals `start`
        of_kind = {
            name: self._take_of_kind(name, rows) if len(column) else column for name, column in self.of_kind.items()
        }
        return replace(
            self,
            **(columns | slot_columns | {"start": starts, "count": count, "kind_start": starts}),
            of_kind=of_kind,
            optional={
                name: _take_optional(name, column, slots) if len(column) else column
                for name, column in self.optional.items()
            },
            voided={index for index, row in enumerate(rows) if row in self.voided},
            rows={},
            pending_check=None,
            cache=None,
            trace_files={},
            clock_seconds={},
        )

    def _take_of_kind(self, name: str, rows: Column) -> Column:
        """Return a column of a game type for the participants of some games; 0 in games of other types."""
        cells_have_column = [name in COLUMNS_OF.get(self.texts[cell.kind], ()) for cell in self.cells]
        has_column = np.array(cells_have_column, dtype=bool)[arrays.as_numpy(arrays.take(self.cell, rows))]
        rows_with_column = arrays.as_column(arrays.as_numpy(rows)[has_column])
        counts = arrays.as_numpy(arrays.take(self.count, rows))
        numbers = np.zeros(int(counts.sum()), dtype=np.int64)
        slots = arrays.span_indices(
            arrays.take(self.kind_start, rows_with_column), arrays.as_column(counts[has_column])
        )
        numbers[np.repeat(has_column, counts)] = arrays.as_numpy(arrays.take(self.of_kind[name], slots))
        return arrays.as_column(numbers)

    def extend_optional(self, name: str, first: int, values: Iterable[int]) -> None:
        """Append values to an optional column, for consecutive participants from the index `first` on."""
        code, default = find_optional_column(name)
        column = self.optional.setdefault(name, array(code))
        column.extend(array(code, [default]) * (first - len(column)))
        column.extend(values)

    def release_pages(self) -> None:
        """Release the memory of `ROW_COLUMNS` and `SLOT_COLUMNS` in files. They are read again when needed."""
        for column in (getattr(self, name) for name in (*ROW_COLUMNS, *SLOT_COLUMNS)):
            if not isinstance(column, array | memoryview):
                column.release_pages()

    def check(self) -> None:
        """Check all columns that have not been checked yet. Raises `DamagedFile`."""
        if self.pending_check is None:
            return
        self.pending_check(self)
        self.pending_check = None  # later files are checked when they are opened
        for file in [*self.trace_files.values()]:
            file.check()

    def id_ranks(self) -> array[int]:
        """Return, by player number, the rank of the person's current id among all ids in alphabetical order."""
        if len(self._id_ranks) != len(self.players):
            ranks = array("i", bytes(4 * len(self.players)))
            for rank, number in enumerate(sorted(range(len(self.players)), key=self.players.__getitem__)):
                ranks[number] = rank
            self._id_ranks = ranks  # assigned last, because other threads may read it
        return array("i", [self._id_ranks[person] for person in self.person]) if self.renamed else self._id_ranks

    def reuse_id_ranks(self, source: Facts) -> None:
        """Reuse the ranks that `source` has computed if it has the same ids."""
        if len(source._id_ranks) == len(source.players) and source.players == self.players:
            self._id_ranks = source._id_ranks

    def cell_of(self, row: int) -> Cell:
        """Return the cell of the game at a row."""
        index: int = self.cell[row]
        return self.cells[index]

    def label(self, name: str, row: int) -> str | None:
        """Return a label of the game at a row; None without one."""
        number: int = getattr(self.cells[self.cell[row]], name)
        return None if number == NONE else self.texts[number]

    def column(
        self, name: str, row: int, participants: Sequence[int], reading: Reading = RECORDED_READING
    ) -> list[int]:
        """Return the values of a column that rules read, for some participants of the game at a row.

        `reading` describes how the ruleset reads scores and custom numbers.
        """
        if name == "seats":
            return [self.cell_of(row).seats] * len(participants)
        if name == "tied":
            return self._count_tied(row, participants)
        if name in HISTORY_COLUMNS:
            return [0] * len(participants)  # these columns depend on the ladder, so the replay fills them in
        if name in self.of_kind:
            shift = self.kind_start[row] - self.start[row]
            return [self.of_kind[name][participant + shift] for participant in participants]
        if name == "seconds_played":
            return [self._read_seconds_played(participant) for participant in participants]
        if name == "league":
            league = self.cell_of(row).league
            return [MISSING if league == NONE else league] * len(participants)
        if name == "year":
            return [local_time(self.occurred_at[row], reading.zone).year] * len(participants)
        if name in ("score", "side_score"):
            return [self._read_score(name, row, participant, reading) for participant in participants]
        if name == "team":
            return [self._read_team(row, participant) for participant in participants]
        if name.startswith(NUMBERS):
            absent = dict(reading.absent).get(name, MISSING)
            return [
                absent if (number := self._read_optional(name, participant)) == MISSING else number
                for participant in participants
            ]
        if name in self.optional:
            return [self._read_optional(name, participant) for participant in participants]
        source = self.place if name == "place" else self.status
        return [source[participant] for participant in participants]

    def _read_optional(self, name: str, participant: int) -> int:
        """Return a participant's value in an optional column; the default after the end of the column."""
        column = self.optional.get(name, ())
        return column[participant] if participant < len(column) else find_optional_column(name).default

    def _read_team(self, row: int, participant: int) -> int:
        """Return the number of a participant's side, from 0 on; `MISSING` in games without sides."""
        if self.label("kind", row) == "battle":
            sides, first_index = self.of_kind["side"], self.kind_start[row]
            return int(sides[participant - self.start[row] + first_index] != sides[first_index])
        team = self._read_optional("team", participant)
        return MISSING if team == NONE else team

    def recorded_score(self, participant: int) -> tuple[int, int]:
        """Return (score, decimals) of a participant in a game of kind `placing`; the score is in units of 10^-decimals.

        For a score that no ruleset can read, `decimals` is `TOO_FINE` or `TOO_LARGE`.
        """
        return self._read_optional("score", participant), self._read_optional("score_decimals", participant)

    def _read_score(self, name: str, row: int, participant: int, reading: Reading) -> int:
        """Return a participant's `score` or `side_score` in units of the reading. The two differ only in battles."""
        if self.label("kind", row) == "battle":
            points = self.of_kind["game_points" if name == "score" else "side_points"]
            score, decimals = points[participant - self.start[row] + self.kind_start[row]], 0
        else:
            score, decimals = self.recorded_score(participant)
        if score == MISSING or decimals in (TOO_FINE, TOO_LARGE):
            return MISSING
        return int(reading.score_sign * score * (reading.score_unit // 10**decimals))

    def _read_seconds_played(self, participant: int) -> int:
        """Return the seconds played: from the result, or else from the game's clock, or else -1."""
        seconds = self._read_optional("seconds_played", participant)
        return self.clock_seconds.get(participant, NONE) if seconds == NONE else seconds

    def _count_tied(self, row: int, participants: Sequence[int]) -> list[int]:
        """Return the number of seats that share each participant's place. A replaced participant does not count."""
        first = self.start[row]
        seat_places = [
            self.place[participant]
            for participant in range(first, first + self.count[row])
            if not self.replaced[participant]
        ]
        return [seat_places.count(self.place[participant]) for participant in participants]

    def person_of(self, participant: int) -> int:
        """Return the person of the participant at an index: the number of the person's current id."""
        number: int = self.player[participant]
        return self.person[number]

    def name_of(self, participant: int) -> str:
        """Return the current id of a participant."""
        return self.players[self.person_of(participant)]

    def status_of(self, participant: int) -> str:
        """Return the status of a participant, such as finished or substitute."""
        number: int = self.status[participant]
        return STATUSES[number]

    def knows(self, player: str) -> bool:
        """Tell whether any event names this player id."""
        # later facts share the dictionary and may have added ids
        return self.player_numbers.get(player, len(self.person)) < len(self.person)

    def current(self, player: str) -> str:
        """Return the current id of a player, given any of their ids."""
        return self.players[self.person[self.player_numbers[player]]] if self.knows(player) else player

    def club_of(self, participant: int) -> str | None:
        """Return the current name of the club that a participant plays for."""
        text_number = self._read_optional("club", participant)
        return None if text_number == NONE else self.current_club(self.texts[text_number])

    def current_club(self, club: str) -> str:
        """Return the current name of a club, given any of its names."""
        return self.clubs.get(club, club)

    def account(self, person: int, instant: int) -> str:
        """Return the account of a person at an instant; `premium` before the first entry."""
        earlier_entries = [entry for entry in self.accounts.get(person, ()) if entry.occurred_at <= instant]
        return max(earlier_entries).account if earlier_entries else "premium"

    def versions_of(self, ladder: str) -> list[Version]:
        """Return the usable versions of a ruleset, given by its id or the name of a ladder; empty without any."""
        return self.rulesets.get(ladder.partition("/")[0], [])

    def is_published(self, ladder: str) -> bool:
        """Tell whether the ruleset of a ladder is published, even if it cannot be used here."""
        return ladder.partition("/")[0] in self.rulesets.keys() | self.unusable.keys()

    def row_of(self, first_position: int) -> int:
        """Return the row of the game first recorded at a position; NONE without such a game."""
        return find_row_at(self.first_position, first_position)


class Member(NamedTuple):
    """A participant who plays for a club in a game.

    participant: the index among the participants in the facts about players
    gain:        the participant's points from the game, in units
    place:       the participant's classified place; 0 without one
    """

    participant: int
    gain: int
    place: int


class ClubGames(NamedTuple):
    """The games of players from which facts about clubs were built.

    people:   the facts about the players; games have the same rows as in the facts about clubs
    versions: the ruleset's versions as published, by which the players were scored
    offsets:  the members of the club that is participant p are the entries offsets[p] to offsets[p + 1] of `members`,
              `gains` and `places`, best first
    members, gains, places: by member, the values of `Member`
    failures: by row, the error at a game that the rule cannot score; later games of the ladder are not scored either
    """

    people: Facts
    versions: Sequence[Version]
    offsets: Column
    members: Column
    gains: Column
    places: Column
    failures: Mapping[int, Exception]

    def members_of(self, club: int) -> list[Member]:
        """Return the members of the club that is the participant at an index, best first."""
        span = slice(self.offsets[club], self.offsets[club + 1])
        columns = (column[span].tolist() for column in (self.members, self.gains, self.places))
        return [Member(*numbers) for numbers in zip(*columns, strict=True)]


def _take_optional(name: str, column: Column, slots: Column) -> Column:
    """Return the values of an optional column at some slots. Slots past the end of the column have the default."""
    (code, default), indices = find_optional_column(name), arrays.as_numpy(slots)
    numbers, is_stored = np.full(len(indices), default, dtype=np.dtype(code)), indices < len(column)
    numbers[is_stored] = arrays.as_numpy(arrays.take(column, arrays.as_column(indices[is_stored])))
    return arrays.as_column(numbers)


def find_row_at(first_positions: Column, position: int) -> int:
    """Return the index of a position in ascending positions; NONE if it is missing."""
    row = bisect_left(first_positions, position)
    return row if row < len(first_positions) and first_positions[row] == position else NONE
