"""Create and load the base of a computation: all data that its packs share, as one object named by its content.

A base names the segments. The last one, the head segment, holds unsealed games and the new versions of sealed games
that later events changed. A base also lists these changed games, and has the records of all events that are not about
games.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import read_known_event
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.object_store import (
    Array,
    DamagedObject,
    Objects,
    OpenedObject,
    encode_object,
    open_object,
)
from ratings_ledger.projections.cluster.segments import (
    MORE_SLOTS,
    ROWS,
    Games,
    NamedCell,
    extract_games,
    find_names,
    list_sample_times,
    read_games_of_cells,
    to_numbers_name,
)
from ratings_ledger.projections.contract import NUMBERS
from ratings_ledger.projections.facts.applying import (
    APPLY,
    apply,
    number_cell,
    number_player,
    number_text,
    settle_facts,
)
from ratings_ledger.projections.facts.columns import NONE, OPTIONAL, Facts, UnusableVersion, find_optional_column
from ratings_ledger.projections.facts.stored_columns import Bytes
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF
from ratings_ledger.projections.rulesets.versions import Version

RULESET_TYPE = "ruleset.published"
ACCOUNT_TYPES = ("player.registered", "player.account_changed")
# the types of events, other than those of games, on which a ladder may depend
RELEVANT_TYPES = {*(APPLY.keys() - {"game.recorded", "game.corrected", "game.voided", "game.reinstated"}), *CLOCK_TYPES}

# a half-open range of instants, in microseconds since 1970: games from the first on and before the second; None is open
Window = tuple[int | None, int | None]


class Sources(NamedTuple):
    """The sources of games: the sealed segments and the head segment, and the numbers object of each."""

    segments: list[OpenedObject]
    numbers: list[OpenedObject]


def name_by_content(kind: str, content: Iterable[Bytes]) -> tuple[str, list[Bytes]]:
    """Name an object by the digest of its content; return the name and the content."""
    parts, digest = list(content), hashlib.sha256()
    for part in parts:
        digest.update(part)
    return f"{kind}-{digest.hexdigest()}", parts


def create_base(
    objects: Objects,
    facts: Facts,
    segments: list[str],
    changed: list[int],
    records: Iterable[tuple[int, str]],
    clock_game_positions: dict[str, int],
    needs_accounts: bool,
) -> str:
    """Create a base, and return its name.

    Args:
        objects: The object store.
        facts: The settled facts of unsealed games.
        segments: The names of all segments; the last is the head segment, which holds these facts.
        changed: The first positions of the sealed games that a later event changed; the head segment has these games
            as they are now.
        records: (position, record) of all events that are not about games.
        clock_game_positions: The first positions of the games that have a clock, by game id.
        needs_accounts: Whether accounts are needed even if no recorded ruleset reads them.
    """
    reads_accounts = needs_accounts or any(
        version.ruleset.scope.exclude_accounts or getattr(version.params, "account", None) is not None
        for versions in facts.rulesets.values()
        for version in versions
    )
    relevant = [
        (position, record, subject)
        for position, record in records
        if (subject := _find_subject(position, record, reads_accounts)) is not None
    ]
    columns = {
        "changed_positions": np.array(sorted(changed), dtype=np.int64),
        "others_at": np.array([position for position, *_ in relevant], dtype=np.int64),
        "others": [record for _, record, _ in relevant],
        "subjects": [subject for *_, subject in relevant],
    }
    about = {
        "position": facts.position,
        "chain_hash": facts.chain_hash.hex(),
        "segments": segments,
        "clock_game_positions": clock_game_positions,
        "recorded_until": facts.recorded_until,
    }
    name, content = name_by_content("base", encode_object(columns, about))
    objects.create(name, content)
    return name


def _find_subject(position: int, record: str, reads_accounts: bool) -> list[str] | None:
    """Return an event's subject (["player", ID], ["game", ID] or []), or None if no ladder depends on the event."""
    try:
        event = read_known_event(position, record)
    except (Refused, LookupError):
        return None
    if event.type not in RELEVANT_TYPES or (event.type in ACCOUNT_TYPES and not reads_accounts):
        return None
    if event.type in ACCOUNT_TYPES:
        return ["player", event.data["player"]]
    return ["game", event.data["game_id"]] if event.type in CLOCK_TYPES else []


class SharedBase:
    """A base that a worker has loaded."""

    def __init__(self, url: str, name: str) -> None:
        """Read the base. Raises `DamagedObject`."""
        base = open_object(url, name)
        self.name = name
        self.position: int = base.about["position"]
        self.chain_hash = bytes.fromhex(base.about["chain_hash"])
        self.recorded_until: int = base.about["recorded_until"]
        self._clock_game_positions: dict[str, int] = base.about["clock_game_positions"]
        self._changed_positions = base.column("changed_positions")
        rows = zip(base.column("others_at").tolist(), base.lines("others"), base.lines("subjects"), strict=True)
        # (position, event, subject) of the events that are not about games
        self._other_events = [
            (position, read_known_event(position, record), subject) for position, record, subject in rows
        ]
        self._rulesets = _bind_rulesets(event for _, event, _ in self._other_events if event.type == RULESET_TYPE)
        names = base.about["segments"]
        self._sources = Sources(
            [open_object(url, segment) for segment in names],
            [open_object(url, to_numbers_name(segment)) for segment in names],
        )

    def load_facts(self, cells: Sequence[tuple[int, NamedCell]], games: int) -> Facts:
        """Load the facts of the games in the cells.

        Raises `DamagedObject`, also if the segments do not have exactly `games` games in these cells.
        """
        facts, game_count = self.load_facts_within(cells)
        if game_count != games:
            raise DamagedObject(self.name, f"contains {game_count:,} games instead of {games:,}")
        return facts

    def load_facts_within(
        self, cells: Sequence[tuple[int, NamedCell]], window: Window = (None, None), players: Iterable[str] = ()
    ) -> tuple[Facts, int]:
        """Return the facts of the cells' games in a window, and how many of these games the segments hold.

        A changed game counts in each segment that holds it. The given players get the first numbers. Raises
        `DamagedObject`.
        """
        facts = Facts(self.position, self.chain_hash, recorded_until=self.recorded_until)
        for name in players:
            number_player(facts, name)
        fact_cells = {number: number_cell(facts, cell[:-2], *cell[-2:]) for number, cell in cells}
        game_count = _add_games(facts, self._sources, fact_cells, self._changed_positions, window)
        self._add_other_events(facts)
        return facts, game_count

    def list_sample_times(self, cells: Iterable[tuple[int, NamedCell]]) -> Iterator[tuple[int, float]]:
        """Yield (sample time, number of games that it stands for) for the games of some cells, in all segments."""
        cell_numbers = [number for number, _ in cells]
        for segment, numbers in zip(*self._sources, strict=True):
            yield from list_sample_times(segment, np.isin(numbers.column("cell"), cell_numbers))

    def _add_other_events(self, facts: Facts) -> None:
        """Apply the events that are not about games, except accounts and clocks whose player or game the facts lack."""
        for _, event, _ in self._other_events:
            if event.type == "player.renamed":
                for name in ("player", "new_player"):
                    number_player(facts, event.data[name])
        rows = {game_id: facts.row_of(position) for game_id, position in self._clock_game_positions.items()}
        facts.rows = {game_id: row for game_id, row in rows.items() if row >= 0}
        known_subjects: Any = {"player": facts.player_numbers, "game": facts.rows}
        for position, event, subject in self._other_events:
            if event.type == RULESET_TYPE:
                # rulesets are bound once for all packs
                facts.recorded.versions += self._rulesets.versions.get(position, [])
                facts.recorded.unusable += self._rulesets.unusable.get(position, [])
                facts.recorded.positions[event.event_id] = position
            elif not subject or subject[1] in known_subjects[subject[0]]:
                with suppress(Refused, LookupError):  # an event with a missing reference does not count
                    apply(facts, position, event)
        settle_facts(facts)
        facts.has_later_events = False


class _BoundRulesets(NamedTuple):
    """The versions of published rulesets, usable and unusable, by position."""

    versions: dict[int, list[Version]]
    unusable: dict[int, list[UnusableVersion]]


def _bind_rulesets(ruleset_events: Iterable[KnownEvent]) -> _BoundRulesets:
    facts = Facts(0, b"")
    for event in ruleset_events:
        with suppress(Refused, LookupError):
            apply(facts, event.position or 0, event)
    recorded = facts.recorded
    return _BoundRulesets(
        {entry.position: [entry] for entry in recorded.versions},
        {entry.position: [entry] for entry in recorded.unusable},
    )


@lru_cache(2)
def load_base(url: str, name: str) -> SharedBase:
    """Load a base. It is cached, because several packs share it. Raises `DamagedObject`."""
    return SharedBase(url, name)


def _add_games(
    facts: Facts, sources: Sources, fact_cells: dict[int, int], changed_positions: Array, window: Window
) -> int:
    """Add the games of some cells to facts without games, and return the number of these games in the segments.

    `fact_cells` maps the cells' numbers in the ledger to their numbers in the facts.
    """
    last = sources.numbers[-1]
    player_count = last.about["players_before"] + len(last.column("name_from")) - 1
    highest_numbers = [int(numbers.column("cell").max(initial=-1)) for numbers in sources.numbers]
    # `fact_cells` as an array, with -1 for all other cells
    fact_cell_of = np.full(max([*fact_cells, *highest_numbers], default=-1) + 1, -1)
    fact_cell_of[list(fact_cells)] = list(fact_cells.values())
    is_present = np.zeros(player_count, dtype=bool)
    parts, game_count = list[Games](), 0
    for segment, numbers in zip(sources.segments, sources.numbers, strict=True):
        is_head = segment is sources.segments[-1]
        cell, player = fact_cell_of[numbers.column("cell")], numbers.column("player")
        for games in read_games_of_cells(segment, cell >= 0, *window):
            game_count += len(games.cell)
            games.slots["player"] = player[games.slots["player"]]
            if "club" in games.slots:
                games.slots["club"] = _map_clubs(facts, segment, games.slots["club"])
            parts.append(_drop_changed(games._replace(cell=cell[games.cell]), changed_positions, is_head))
            is_present[parts[-1].slots["player"]] = True
    present = np.flatnonzero(is_present)
    fact_players = np.zeros(player_count, dtype=np.int32)
    fact_players[present] = [number_player(facts, name) for name in find_names(sources.numbers, present)]
    _set_columns(facts, parts, fact_players)
    return game_count


def _map_clubs(facts: Facts, segment: OpenedObject, clubs: Array) -> Array:
    """Map the segment's numbers of clubs to the facts' numbers."""
    fact_numbers = {number: number_text(facts, name) for number, name in segment.lines("clubs")}
    mapping = np.full(max(fact_numbers, default=NONE) + 2, NONE, dtype=np.int32)  # the last item maps NONE to itself
    mapping[list(fact_numbers)] = list(fact_numbers.values())
    return mapping[clubs]


def _drop_changed(games: Games, changed_positions: Array, is_head: bool) -> Games:
    """Return the games of a segment without changed games, whose current version is in the head segment."""
    if is_head or not len(changed_positions):
        return games
    index = np.searchsorted(changed_positions, games.rows["first_position"])
    is_current = changed_positions[np.minimum(index, len(changed_positions) - 1)] != games.rows["first_position"]
    if is_current.all():
        return games
    chosen = np.flatnonzero(is_current)
    return extract_games(games, chosen, games.cell[chosen])


def _set_columns(facts: Facts, parts: list[Games], fact_players: Array) -> None:
    """Set all columns of the facts, with the rows ordered by first position.

    `fact_players` maps the ledger's numbers of players to the facts' numbers.
    """
    rows = {name: _concatenate([games.rows[name] for games in parts], "i8") for name in ROWS}
    live_positions = [games.rows.get("live_position", games.rows["first_position"]) for games in parts]
    rows |= {
        "live_position": _concatenate(live_positions, "i8"),
        "cell": _concatenate([games.cell for games in parts], "i8"),
    }
    rows["start"] = np.cumsum(rows["count"]) - rows["count"]
    order = np.argsort(rows["first_position"], kind="stable")
    for name, column in rows.items():
        setattr(facts, name, arrays.as_column(column[order].astype("i4" if name in ("count", "cell") else "i8")))
    facts.kind_start = facts.start

    custom = sorted({name for games in parts for name in games.slots if name.startswith(NUMBERS)})

    def join_slots(name: str, code: str) -> arrays.Column:
        """Return a column of participants; parts without the column get its default value."""
        default = find_optional_column(name).default if name in custom else MORE_SLOTS.get(name, ("", 0))[1]
        columns = [
            games.slots[name] if name in games.slots else np.full(len(games.slots["place"]), default) for games in parts
        ]
        return arrays.as_column(_concatenate(columns, code))

    facts.player = arrays.take(arrays.as_column(fact_players), join_slots("player", "i4"))
    for name, code in (("place", "i4"), ("status", "i1"), ("replaced", "i1")):
        setattr(facts, name, join_slots(name, code))
    for name in OPTIONAL:
        if any(name in games.slots for games in parts):
            facts.optional[name] = join_slots(name, MORE_SLOTS[name][0])
    facts.optional |= {name: join_slots(name, "i8") for name in custom}
    kinds = {facts.texts[cell.kind] for cell in facts.cells}
    for name in {name for kind in kinds for name in COLUMNS_OF.get(kind, ())}:
        facts.of_kind[name] = join_slots(name, "i8")


def _concatenate(columns: list[Array], code: str) -> Array:
    return np.concatenate([np.empty(0, dtype=code), *columns]).astype(code, copy=False)


def list_cells(numbers: Iterable[OpenedObject]) -> Iterator[NamedCell]:
    """Yield the cells of a ledger in the order of their numbers, given all numbers objects."""
    for numbers_object in numbers:
        yield from (tuple(cell) for cell in numbers_object.lines("cells"))
