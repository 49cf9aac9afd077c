"""Previews: files as they were understood, before anything of them is recorded: how each was read, its first games, and
how many games, players, ties and other events there are in all of them.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.events.game_types import has_partners, places
from ratings_ledger.ledger.events.games import are_alone
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import Imported
from ratings_ledger.ledger.intake.parsing import ParsedItem
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.validation.repeated_games import describe_result
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.results import AS_IS, HIDDEN, Result

FIRST_GAMES = 10  # of each file


@dataclass(frozen=True, slots=True)
class PreviewedGame(Result):
    """A game as it was understood: where it stands, when it was played, its result in words, and all of its data."""

    line: int
    occurred_at: datetime
    result: str
    game: dict[str, Any] = field(metadata=AS_IS)


@dataclass(frozen=True, slots=True)
class PreviewedFile(Result):
    """A file: how many games it has, the first of them, how it was read if it is a table, and sentences that are not
    about that; whether it has events that are of no table.
    """

    file: str
    games: int
    table: dict[str, Any] | None = field(metadata=AS_IS)
    first_games: tuple[PreviewedGame, ...]
    notes: tuple[str, ...]
    read: TableRead | None = field(metadata=HIDDEN)
    has_events: bool = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Preview(Result):
    """All files: how many games, by their names and together, players, games with ties and games of teams, and
    the first tie; from when to when they were played; other events by type; the zone of times without an offset;
    and the new names of which an import asks who is meant.
    """

    games: int
    games_by_name: dict[str, int] = field(metadata=AS_IS)
    players: int
    ties: int
    teams: int
    first_tie: PreviewedGame | None
    first_played: datetime | None
    last_played: datetime | None
    other_events: dict[str, int] = field(metadata=AS_IS)
    zone: str | None
    undecided: tuple[str, ...]
    files: tuple[PreviewedFile, ...]


class Understanding:
    """Counts what files say, item by item."""

    def __init__(self) -> None:
        self._games, self._others, self._by_file = Counter[str](), Counter[str](), Counter[str]()
        self._players, self._ties, self._teams = set[str](), 0, 0
        self._first_tie: PreviewedGame | None = None
        self._with_events = set[str]()
        self._played: tuple[int, int] | None = None
        self._first: dict[str, list[PreviewedGame]] = {}

    def take(self, entry: ParsedItem) -> None:
        """Count an item, unless nothing can be understood by it."""
        if not isinstance(entry.outcome, tuple):
            return
        draft, data = entry.outcome
        if not entry.item.table:
            self._with_events.add(entry.item.file)
        if draft.type != "game.recorded":
            self._others[draft.type] += 1
            return
        at = draft.occurred_at
        self._games[data["game"]] += 1
        self._by_file[entry.item.file] += 1
        self._players.update([one["player"] for one in data["participants"]])
        self._teams += has_partners(data)
        if has_ties(data):
            self._ties += 1
            self._first_tie = self._first_tie or _previewed(entry.item, at, data)
        self._played = (at, at) if self._played is None else (min(self._played[0], at), max(self._played[1], at))
        if len(first := self._first.setdefault(entry.item.file, [])) < FIRST_GAMES:
            first.append(_previewed(entry.item, at, data))

    def preview(self, files: tuple[str, ...], told: Imported, zone: str | None, asking: bool) -> Preview:
        """Return what was counted, with what an intake of these files told, and whether an import asks about close
        names.
        """
        undecided = [
            name for name, close in told.close.items() if asking and close.first is not None and close.first.table
        ]  # fmt: skip
        first, last = (None, None) if self._played is None else map(moment, self._played)
        return Preview(
            self._games.total(), dict(self._games.most_common()), len(self._players), self._ties, self._teams,
            self._first_tie, first, last, dict(self._others.most_common()), zone, (*undecided,),
            tuple(self._file(name, told) for name in files),
        )  # fmt: skip

    def _file(self, name: str, told: Imported) -> PreviewedFile:
        read = told.tables.get(name)
        said = () if read is None else read.told
        notes = [note.removeprefix(f"{name}: ") for note in told.notes if note.startswith(f"{name}: ")]
        return PreviewedFile(
            name, self._by_file[name], None if read is None else _table(read), tuple(self._first.get(name, ())),
            tuple(note for note in notes if note not in said), read, name in self._with_events,
        )  # fmt: skip


def _previewed(item: Item, at: int, data: dict[str, Any]) -> PreviewedGame:
    return PreviewedGame(item.line, moment(at), describe_result(data, has_scores=True), data)


def has_ties(game: dict[str, Any]) -> bool:
    """Tell whether sides of a game share a place; partners are one side, and in games without places nobody ties."""
    found, participants = places(game), game["participants"]
    if are_alone(participants):
        return len({*found}) < len(found) and 0 not in found
    placed = zip(found, participants, strict=True)
    by_side = {(one.get("team"), "team" not in one and one["player"]): place
               for place, one in placed if "replaces" not in one}  # fmt: skip
    return len({*by_side.values()}) < len(by_side) and 0 not in by_side.values()


def _table(read: TableRead) -> dict[str, Any]:
    """Return how a table was read, as plain data."""
    totals = [{"line": line, "word": word} for line, word in read.totals]
    gameless = [{"line": line, "text": text} for line, text in read.gameless]
    decided = None if read.dates_from is None else dict(zip(("line", "text"), read.dates_from, strict=True))
    plain = {name: [*value] if isinstance(value, tuple) else value for name, value in read._asdict().items()}
    del plain["told"], plain["unsaid"]
    return {**plain, "columns": dict(read.columns), "totals": totals, "gameless": gameless, "dates_from": decided}
