"""Build import previews before anything is recorded: how each file was read, its first games, and totals."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.game_types import has_partners, places
from ratings_ledger.ledger.events.games import has_teams_or_substitutes
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.forfeits import FORFEIT, lacks_sets
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.intake.parsing import ParsedItem
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.validation.repeated_games import describe_result
from ratings_ledger.projections.queries.coordinates import to_datetime
from ratings_ledger.projections.queries.results import AS_IS, HIDDEN, Result

FIRST_GAMES_MAX = 10  # the maximum number of previewed games of each file
UNUSUAL_GAMES_MAX = 5  # the maximum number of unusual games of each kind and file
# the number of players whose first game is kept, in case their names are close to others
FIRST_NAMES_MAX = 10_000


class _ReadGame(NamedTuple):
    """A game as it was read, with the item that states its file and line, and its time."""

    item: Item
    played_at: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreviewedGame(Result):
    """A game as it was read: its line, its time, its result in words, and all of its data."""

    line: int
    occurred_at: datetime
    result: str
    game: dict[str, Any] = field(metadata=AS_IS)


@dataclass(frozen=True, slots=True)
class UnusualGame(PreviewedGame):
    """A game that differs from most games of its file, and why: `forfeit`, `unrated`, `no sets`, or a close name."""

    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreviewedFile(Result):
    """A file: the number of its games, the first games, and notes. `table` describes how a table was read.

    `has_events` tells whether the file has events that do not come from a table. `unusual` has the first unusual games
    of each kind, and `unusual_by_kind` the number of all unusual games of each kind.
    """

    file: str
    games: int
    table: dict[str, Any] | None = field(metadata=AS_IS)
    first_games: tuple[PreviewedGame, ...]
    notes: tuple[str, ...]
    read: TableRead | None = field(metadata=HIDDEN)
    has_events: bool = field(metadata=HIDDEN)
    unusual: tuple[UnusualGame, ...] = ()
    unusual_by_kind: dict[str, int] = field(default_factory=dict, metadata=AS_IS)


@dataclass(frozen=True, slots=True)
class Preview(Result):
    """The totals of all files, and a preview of each file.

    games, games_by_name: the number of games, and of games by name, such as catan
    players:      the number of players
    ties, teams:  the numbers of games with ties and with teams
    first_tie:    the first game with a tie
    first_played, last_played: the times of the first and the last game
    other_events: the number of other events, by type
    zone:         the zone for times without an offset
    undecided:    the new names that need a decision
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


class PreviewBuilder:
    """A builder of a preview from the items of files."""

    def __init__(self) -> None:
        # the numbers of games by name, of other events by type, and of games by file
        self._games, self._other_events, self._games_by_file = Counter[str](), Counter[str](), Counter[str]()
        self._players, self._ties, self._teams = set[str](), 0, 0
        self._first_tie: PreviewedGame | None = None
        self._files_with_events = set[str]()
        self._first_and_last: tuple[int, int] | None = None
        self._first_games: dict[str, list[PreviewedGame]] = {}
        self._unusual: dict[str, dict[str, list[_ReadGame]]] = defaultdict(lambda: defaultdict(list))
        self._unusual_by_kind: dict[str, Counter[str]] = defaultdict(Counter)
        self._first_game_of_player: dict[str, _ReadGame] = {}

    def add(self, entry: ParsedItem) -> None:
        """Add an item, unless it was rejected."""
        if not isinstance(entry.result, tuple):
            return
        draft, data = entry.result
        if not entry.item.table:
            self._files_with_events.add(entry.item.file)
        if draft.type != "game.recorded":
            self._other_events[draft.type] += 1
            return
        played_at, game = draft.occurred_at, _ReadGame(entry.item, draft.occurred_at, data)
        self._games[data["game"]] += 1
        self._games_by_file[entry.item.file] += 1
        players = [participant["player"] for participant in data["participants"]]
        if len(self._first_game_of_player) < FIRST_NAMES_MAX and not self._players.issuperset(players):
            for player in players:
                self._first_game_of_player.setdefault(player, game)
        self._players.update(players)
        for kind in _list_kinds(data):
            self._unusual_by_kind[entry.item.file][kind] += 1
            if len(unusual_games := self._unusual[entry.item.file][kind]) < UNUSUAL_GAMES_MAX:
                unusual_games.append(game)
        self._teams += has_partners(data)
        if has_ties(data):
            self._ties += 1
            self._first_tie = self._first_tie or _preview_game(game)
        first_time, last_time = self._first_and_last or (played_at, played_at)
        self._first_and_last = min(first_time, played_at), max(last_time, played_at)
        if len(first_games := self._first_games.setdefault(entry.item.file, [])) < FIRST_GAMES_MAX:
            first_games.append(_preview_game(game))

    def build(self, files: tuple[str, ...], imported: IntakeResult, zone: str | None, asks: bool) -> Preview:
        """Return the preview.

        Args:
            files: the names of the files.
            imported: the result of their intake, which recorded nothing.
            zone: the zone for times without an offset.
            asks: whether an import will ask about close names.
        """
        close_names = imported.close.items() if asks else ()
        first, last = (None, None) if self._first_and_last is None else map(to_datetime, self._first_and_last)
        return Preview(
            games=self._games.total(),
            games_by_name=dict(self._games.most_common()),
            players=len(self._players),
            ties=self._ties,
            teams=self._teams,
            first_tie=self._first_tie,
            first_played=first,
            last_played=last,
            other_events=dict(self._other_events.most_common()),
            zone=zone,
            undecided=tuple(name for name, close in close_names if close.first is not None and close.first.table),
            files=tuple(self._build_file(name, imported) for name in files),
        )

    def _build_file(self, name: str, imported: IntakeResult) -> PreviewedFile:
        read = imported.tables.get(name)
        notes_on_reading = () if read is None else read.sentences
        notes = [note.removeprefix(f"{name}: ") for note in imported.notes if note.startswith(f"{name}: ")]
        return PreviewedFile(
            file=name,
            games=self._games_by_file[name],
            table=None if read is None else _describe_table(read),
            first_games=tuple(self._first_games.get(name, ())),
            notes=tuple(note for note in notes if note not in notes_on_reading),
            read=read,
            has_events=name in self._files_with_events,
            unusual=tuple(self._list_unusual(name, imported)),
            unusual_by_kind={kind: self._unusual_by_kind[name][kind] for kind in self._find_unusual_kinds(name)},
        )

    def _find_unusual_kinds(self, file: str) -> list[str]:
        """Return the kinds of games that are a minority in a file, and so unusual."""
        counts = self._unusual_by_kind[file]
        return [kind for kind, number in counts.items() if 2 * number < self._games_by_file[file]]

    def _list_unusual(self, file: str, imported: IntakeResult) -> Iterator[UnusualGame]:
        """Yield the first unusual games of a file, sorted by line; the first game under a close name is one."""
        reasons: dict[int, tuple[_ReadGame, list[str]]] = {}
        for kind in self._find_unusual_kinds(file):
            for game in self._unusual[file][kind]:
                reasons.setdefault(game.item.line, (game, []))[1].append(kind)
        close_names = [name for name, close in imported.close.items() if close.first is not None]
        first_games = [(name, self._first_game_of_player.get(name)) for name in close_names]
        own_games = [(name, game) for name, game in first_games if game is not None and game.item.file == file]
        for name, game in own_games[:UNUSUAL_GAMES_MAX]:
            reasons.setdefault(game.item.line, (game, []))[1].append(f"close name {quote(name)}")
        for line, (game, reasons_of_game) in sorted(reasons.items()):
            yield UnusualGame(
                line=line,
                occurred_at=to_datetime(game.played_at),
                result=describe_result(game.data, show_scores=True),
                game=game.data,
                why=tuple(reasons_of_game),
            )


def _list_kinds(game: dict[str, Any]) -> Iterator[str]:
    """Yield the kinds of a game. `_find_unusual_kinds` decides which kinds are unusual in its file."""
    is_forfeit = FORFEIT in (game.get("extra") or {})
    if is_forfeit:
        yield FORFEIT
    elif lacks_sets(game):
        yield "no sets"
    if game.get("rated") is False and not is_forfeit:
        yield "unrated"


def _preview_game(game: _ReadGame) -> PreviewedGame:
    result = describe_result(game.data, show_scores=True)
    return PreviewedGame(game.item.line, to_datetime(game.played_at), result, game.data)


def has_ties(game: dict[str, Any]) -> bool:
    """Tell whether two sides of a game share a place. Partners are one side; a game without places has no ties."""
    participants = game["participants"]
    is_simple = not has_teams_or_substitutes(participants)
    recorded_places = [participant.get("place") for participant in participants]
    if is_simple and None not in recorded_places:  # a faster way for most games
        return len({*recorded_places}) < len(recorded_places)
    game_places = places(game)
    if is_simple:
        return len({*game_places}) < len(game_places) and 0 not in game_places
    place_of_side = {
        (participant.get("team"), "team" not in participant and participant["player"]): place
        for place, participant in zip(game_places, participants, strict=True)
        if "replaces" not in participant
    }
    return len({*place_of_side.values()}) < len(place_of_side) and 0 not in place_of_side.values()


def _describe_table(read: TableRead) -> dict[str, Any]:
    """Describe how a table was read, as plain data."""
    totals = [{"line": line, "word": word} for line, word in read.totals]
    gameless = [{"line": line, "text": text} for line, text in read.gameless]
    deciding_date = None if read.dates_from is None else dict(zip(("line", "text"), read.dates_from, strict=True))
    plain = {name: [*value] if isinstance(value, tuple) else value for name, value in read._asdict().items()}
    del plain["sentences"], plain["missing_members"]
    return {**plain, "columns": dict(read.columns), "totals": totals, "gameless": gameless, "dates_from": deciding_date}
