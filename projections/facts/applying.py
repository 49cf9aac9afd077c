"""Apply events to the facts: a row for each game, entries for its participants, numbers for names, and other events.

`settle_facts` then drops withdrawn events and merges the ids of each person. A new type of event needs an entry in
`APPLY`, unless it is silent or about a clock.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from ratings_ledger.ledger.events.canonical import INTEGER_MAX
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.game_types import column_values, places
from ratings_ledger.ledger.events.games import STATUSES, count_seats, number_sides
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent
from ratings_ledger.ledger.events.types import TYPES, Ruleset, read_corrected_game
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import read_known_event
from ratings_ledger.ledger.validation.identities import resolve_renames
from ratings_ledger.projections.contract import MISSING, NUMBERS, OPTIONAL_COLUMNS
from ratings_ledger.projections.facts.columns import (
    ABORTED,
    LABELS,
    NONE,
    SAME,
    TOO_FINE,
    TOO_LARGE,
    UNRATED,
    AccountEntry,
    Adjustment,
    Cell,
    ClubRename,
    Facts,
    GameChange,
    LeagueFacts,
    Rename,
    Seed,
    UnusableVersion,
)
from ratings_ledger.projections.rulesets.columns import DERIVED_COLUMNS
from ratings_ledger.projections.rulesets.versions import bind

if TYPE_CHECKING:
    from ratings_ledger.projections.game_clock import GameClock

# members of participants that few games have
_RARE_MEMBERS = frozenset({"team", "club", "home", "numbers"})
# a ruleset cannot read a score with more decimals
_DECIMALS_MAX = 6


def number_player(facts: Facts, name: str) -> int:
    """Return the number of a player's id. A new id gets the next number."""
    number = facts.player_numbers.setdefault(name, len(facts.players))
    if number == len(facts.players):
        facts.players.append(name)
        facts.person.append(number)
    return number


def number_text(facts: Facts, text: str | None) -> int:
    """Return the number of a text, -1 for None. A new text gets the next number."""
    if text is None:
        return NONE
    number = facts.text_numbers.setdefault(text, len(facts.texts))
    if number == len(facts.texts):
        facts.texts.append(text)
    return number


def number_cell(facts: Facts, labels: Iterable[str | None], seats: int, flags: int) -> int:
    """Return the number of a cell. A new cell gets the next number. `labels` are in the order of `LABELS`."""
    game, kind, group, city, league, season = (number_text(facts, label) for label in labels)
    cell = Cell(game, kind, group, city, league, season, seats, flags)
    number = facts.cell_numbers.setdefault(cell, len(facts.cells))
    if number == len(facts.cells):
        facts.cells.append(cell)
    return number


def record_game(facts: Facts, position: int, occurred_at: int, game: dict[str, Any]) -> None:
    """Append a new game as a row."""
    row = len(facts.first_position) + (facts.base.rows if facts.base else 0)
    # `rows` has entries only for games to which later events refer
    if game["game_id"] in facts.rows:
        facts.rows[game["game_id"]] = row
    content = _append_participants(facts, game)
    facts.first_position.append(position)
    facts.live_position.append(position)
    facts.occurred_at.append(occurred_at)
    facts.start.append(content.start)
    facts.count.append(content.size)
    facts.cell.append(content.cell)
    facts.kind_start.append(content.kind_start)


class _RowContent(NamedTuple):
    """The part of a game's row that a correction replaces; see `GameChange`."""

    start: int
    size: int
    cell: int
    kind_start: int


def derive_numbers(game: dict[str, Any]) -> dict[str, Sequence[int]]:
    """Return the numbers of a validated game that are specific to its type, by column."""
    own = column_values(game)
    derived = DERIVED_COLUMNS.get(game.get("kind", "placing"), {})
    return {**own, **{column: derive(own) for column, (_, derive) in derived.items()}}


def _append_participants(facts: Facts, game: dict[str, Any]) -> _RowContent:
    """Append a game's participants. Return the content of the game's row."""
    participants = game["participants"]
    start, kind_start = len(facts.player), 0
    facts.place.extend(places(game))
    for participant in participants:
        facts.player.append(number_player(facts, participant["player"]))
        facts.status.append(STATUSES.index(participant.get("status", "finished")))
        facts.replaced.append(0)
    for participant in participants:
        if "replaces" in participant:
            leaver = next(
                index for index, entry in enumerate(participants) if entry["player"] == participant["replaces"]
            )
            facts.replaced[start + leaver] = 1
    for name in OPTIONAL_COLUMNS:
        numbers = [participant.get(name, NONE) for participant in participants]
        if numbers.count(NONE) < len(numbers):
            facts.extend_optional(name, start, numbers)
    for name, numbers in _list_rare_columns(facts, game):
        facts.extend_optional(name, start, numbers)
    for name, type_numbers in derive_numbers(game).items():
        kind_start = len(facts.of_kind[name]) + (facts.base.of_kind[name] if facts.base else 0)
        facts.of_kind[name].extend(type_numbers)
    labels = (game.get(name, "placing" if name == "kind" else None) for name in LABELS)
    flags = UNRATED * (not game.get("rated", True)) + ABORTED * game.get("aborted", False)
    cell = number_cell(facts, labels, count_seats(game), flags)
    return _RowContent(start + (facts.base.slots if facts.base else 0), len(participants), cell, kind_start)


def _list_rare_columns(facts: Facts, game: dict[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """Yield the name and the numbers of each optional column that a game needs, except `OPTIONAL_COLUMNS`."""
    participants = game["participants"]
    members = set().union(*participants)
    if "score" in members and game.get("kind", "placing") == "placing":
        scores = [_read_score(participant.get("score")) for participant in participants]
        yield "score", [score for score, _ in scores]
        if any(decimals for _, decimals in scores):
            yield "score_decimals", [decimals for _, decimals in scores]
    if "numbers" not in game and members.isdisjoint(_RARE_MEMBERS):
        return
    sides = number_sides(game)
    if "team" in members:
        yield "team", sides
    if "club" in members:
        yield "club", [number_text(facts, participant.get("club")) for participant in participants]
    if home_sides := {side for side, entry in zip(sides, participants, strict=True) if entry.get("home")}:
        yield "home", [1 if side in home_sides else -1 for side in sides]
    game_numbers = game.get("numbers", {})
    for name in sorted({*game_numbers, *(name for entry in participants for name in entry.get("numbers", ()))}):
        numbers = [entry.get("numbers", {}).get(name, game_numbers.get(name, MISSING)) for entry in participants]
        yield f"{NUMBERS}{name}", numbers


def _read_score(score: int | str | None) -> tuple[int, int]:
    """Return a score as (units, decimals); a unit is 10^-decimals. Without a score, return (`MISSING`, 0).

    A score that no ruleset can read is `MISSING`, with `TOO_FINE` or `TOO_LARGE` as its decimals.
    """
    if score is None:
        return MISSING, 0
    if isinstance(score, int):
        return score, 0
    decimals = len(score.partition(".")[2])
    if decimals > _DECIMALS_MAX:
        return MISSING, TOO_FINE
    units = int(Decimal(score).scaleb(decimals))
    return (units, decimals) if abs(units) <= INTEGER_MAX else (MISSING, TOO_LARGE)


def _find_row(facts: Facts, game_id: str) -> int:
    row = facts.rows.get(game_id, NONE)
    if row == NONE:
        raise LookupError(f"no valid earlier event records the game {game_id!r}")
    return row


def _record_change(facts: Facts, change: GameChange) -> None:
    """Apply a later event about a game. A delta only collects the change, because the game may be in the cache."""
    if facts.base is None:
        update_row(facts, change)
    else:
        facts.changes.append(change)


def update_row(facts: Facts, change: GameChange) -> None:
    """Update the row of a game after a later change."""
    row = change.row
    facts.live_position[row] = change.position
    (facts.voided.add if change.voided else facts.voided.discard)(row)
    if change.start != NONE:
        facts.start[row], facts.count[row] = change.start, change.size
        facts.cell[row], facts.kind_start[row] = change.cell, change.kind_start
    if change.occurred_at != SAME:
        facts.occurred_at[row] = change.occurred_at


def correct_game(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    """Replace the content of a game's row by the corrected game. The game keeps its time unless that was corrected."""
    row = _find_row(facts, data["game_id"])
    game, new_occurred_at = read_corrected_game(data, SAME)
    content = _append_participants(facts, game)
    _record_change(facts, GameChange(position, row, voided=False, occurred_at=new_occurred_at, **content._asdict()))


def void_game(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    """Void a game, so that it does not count."""
    _record_change(facts, GameChange(position, _find_row(facts, data["game_id"]), voided=True))


def reinstate_game(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    """Reinstate a voided game, so that it counts again."""
    _record_change(facts, GameChange(position, _find_row(facts, data["game_id"]), voided=False))


def apply_event(facts: Facts, position: int, record: str) -> None:
    """Apply a record. A delta keeps it in `other_records` if it is invalid or its type is not in `GAME_EVENTS`.

    Outside a delta, enter the reason why a record is invalid into `unread`. Only direct SQL can append such a record.
    """
    try:
        event = read_known_event(position, record)
        if facts.base is not None and event.type not in GAME_EVENTS:
            facts.other_records.append((position, record))
            return
        apply(facts, position, event)
    except (Refused, LookupError) as error:
        if facts.base is not None:
            facts.other_records.append((position, record))
            return
        facts.unread[position] = str(error.args[0])
    if len(facts.players_at) < len(facts.players):
        facts.players_at.extend([position] * (len(facts.players) - len(facts.players_at)))


def apply(facts: Facts, position: int, event: KnownEvent) -> None:
    """Apply an event to the facts. Raises `LookupError` if it refers to an id that no valid earlier event recorded."""
    facts.has_later_events = True
    if event.type in CLOCK_TYPES:
        entry = (position, event.occurred_at, event.type, event.data)
        facts.recorded.clocks.setdefault(event.data["game_id"], []).append(entry)
    elif not TYPES[event.type].is_silent:
        APPLY[event.type](facts, position, event.occurred_at, event.data)
    if event.type not in GAME_EVENTS:
        facts.recorded.positions[event.event_id] = position


def settle_facts(facts: Facts) -> None:
    """Drop withdrawn events and set the person of every id. Call this again after applying more events."""
    recorded, withdrawn = facts.recorded, facts.recorded.withdrawn

    def select_live(entries: Iterable[Any]) -> list[Any]:
        return [entry for entry in entries if entry.position not in withdrawn]

    facts.renamed = _set_persons(facts, select_live(recorded.renames))
    facts.adjustments = [
        entry._replace(player=facts.person[entry.player]) for entry in select_live(recorded.adjustments)
    ]
    facts.seeds = {}
    for seed in select_live(recorded.seeds):
        person = facts.person[seed.player]
        facts.seeds.setdefault(seed.ladder, {}).setdefault(person, seed._replace(player=person))
    facts.clubs = _follow_clubs(facts, select_live(recorded.club_renames))
    facts.leagues = select_live(recorded.leagues)
    facts.accounts, facts.rulesets, facts.unusable, facts.league_starts = {}, {}, {}, {}
    for account in select_live(recorded.accounts):
        facts.accounts.setdefault(facts.person[account.player], []).append(account)
    for version in select_live(recorded.versions):
        facts.rulesets.setdefault(version.ruleset.id, []).append(version)
    for unusable in select_live(recorded.unusable):
        facts.unusable.setdefault(unusable.ruleset_id, unusable)
    facts.clock_seconds = _measure_played_seconds(facts)


def replay_clock_of(facts: Facts, game_id: str) -> GameClock | None:
    """Return the clock of a game after its live events; None without a clock, or if its events are inconsistent."""
    from ratings_ledger.projections.game_clock import GameClock, replay_clock
    from ratings_ledger.projections.game_clock.logs import complete_timers

    withdrawn = facts.recorded.withdrawn
    live_entries = [event for event in facts.recorded.clocks.get(game_id, ()) if event[0] not in withdrawn]
    events = [
        {"type": event_type, "data": complete_timers(facts.rulesets, event_type, occurred_at, data)}
        for _, occurred_at, event_type, data in live_entries
    ]
    clock = replay_clock(events, facts.current)
    return clock if isinstance(clock, GameClock) else None


def _measure_played_seconds(facts: Facts) -> dict[int, int]:
    """Return, by participant, the seconds played according to the game's clock: without pauses, rounded up."""
    seconds: dict[int, int] = {}
    for game_id in facts.recorded.clocks:
        clock, row = replay_clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE:
            continue
        clock_by_number = {
            facts.player_numbers.get(name, NONE): player_clock for name, player_clock in clock.players.items()
        }
        played_by_person = {
            facts.person[number]: player_clock.played_ms
            for number, player_clock in clock_by_number.items()
            if number != NONE
        }
        for participant in range(facts.start[row], facts.start[row] + facts.count[row]):
            if facts.person_of(participant) in played_by_person:
                seconds[participant] = -(-played_by_person[facts.person_of(participant)] // 1000)
    return seconds


def _set_persons(facts: Facts, renames: Sequence[Rename]) -> bool:
    """Set the person of every player id by following chains of renames. Return whether any player is renamed.

    A rename that would close a circle is ignored and entered into `facts.circular`.
    """
    new_numbers, circular = resolve_renames((rename.player, rename.new_player) for rename in renames)
    circles = {renames[index]: f"{facts.players[renames[index].player]!r} is renamed in a circle" for index in circular}
    facts.circular = {rename.position: reason for rename, reason in circles.items()}
    facts.person = array("i", range(len(facts.players)))
    for player in new_numbers:
        person = player
        while person in new_numbers:
            person = new_numbers[person]
        facts.person[player] = person
    return bool(new_numbers)


def _follow_clubs(facts: Facts, renames: Sequence[ClubRename]) -> dict[str, str]:
    """Return the current name of every renamed club by following chains of renames.

    A rename that would close a circle is ignored and entered into `facts.circular`.
    """
    new_names, circular = resolve_renames((rename.club, rename.new_club) for rename in renames)
    facts.circular |= {renames[index].position: f"{renames[index].club!r} is renamed in a circle" for index in circular}
    current_names: dict[str, str] = {}
    for club in new_names:
        name = club
        while name in new_names:
            name = new_names[name]
        current_names[club] = name
    return current_names


def _withdraw_or_restore(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    if data["id"] not in facts.recorded.positions:
        raise LookupError(f"no valid earlier event with the id {data['id']!r} can be withdrawn or restored")
    target = facts.recorded.positions[data["id"]]
    root = facts.recorded.roots[position] = facts.recorded.roots.get(target, target)
    facts.recorded.withdrawn ^= {root}


def _rename_player(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    rename = Rename(position, number_player(facts, data["player"]), number_player(facts, data["new_player"]))
    facts.recorded.renames.append(rename)


def _adjust_points(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    player = number_player(facts, data["player"])
    facts.recorded.adjustments.append(Adjustment(occurred_at, position, data["ladder"], player, data["points"]))


def _seed_player(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    player = number_player(facts, data["player"])
    facts.recorded.seeds.append(Seed(position, data["ladder"], player, data["state"], data.get("games", 0)))


def _rename_club(facts: Facts, position: int, decided_at: int, data: dict[str, Any]) -> None:
    facts.recorded.club_renames.append(ClubRename(position, data["club"], data["new_club"]))


def _set_account(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    account = AccountEntry(occurred_at, position, number_player(facts, data["player"]), data.get("account", "premium"))
    facts.recorded.accounts.append(account)


def _add_version(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    version, problems = bind(Ruleset.model_validate(data), position)
    if version is None:
        reason = f"{data['id']}@{data['version']} cannot be used here: {problems[0].key}: {problems[0].message}"
        facts.recorded.unusable.append(UnusableVersion(position, data["id"], reason))
        return
    facts.recorded.versions.append(version)


def _add_league(facts: Facts, position: int, occurred_at: int, data: dict[str, Any]) -> None:
    league = LeagueFacts(occurred_at, position, number_text(facts, data["league"]), number_text(facts, data["game"]))
    facts.recorded.leagues.append(league)


APPLY: dict[str, Callable[[Facts, int, int, dict[str, Any]], None]] = {
    "player.registered": _set_account,
    "player.account_changed": _set_account,
    "player.renamed": _rename_player,
    "game.recorded": record_game,
    "game.corrected": correct_game,
    "game.voided": void_game,
    "game.reinstated": reinstate_game,
    "event.voided": _withdraw_or_restore,
    "points.adjusted": _adjust_points,
    "player.seeded": _seed_player,
    "club.renamed": _rename_club,
    "ruleset.published": _add_version,
    "league.created": _add_league,
}
