"""Describe events for users in a few words.

`describe_decision` describes a decision in an impact or a withdrawal, with the changes that a correction makes.
`describe_recorded_event` describes an event in the log, with its reason. Both use `describe_event`.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.batches import describe_ranges
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.revisions import (
    GAME_EVENTS,
    UNREADABLE,
    KnownEvent,
    RevisedGame,
    apply_revisions,
    find_root,
)
from ratings_ledger.ledger.intake.forfeits import FORFEIT
from ratings_ledger.ledger.rejections import count, csv_item
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.repeated_games import describe_result, describe_sets
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.recorded_events import RecordedEvent

# the prefixes for output that does not show the type of an event; the descriptions of other types need none
TYPE_PREFIXES = {
    "player.registered": "the registration of ",
    "import.recorded": "the import of ",
    "list.published": "the published list ",
    "list.scheduled": "the schedule: ",
    "league.created": "the league ",
    **{name: f"{name} of " for name in CLOCK_TYPES},
}


def describe_decision(before: Log, event: KnownEvent, times: TimeFormat, people: Identities) -> str:
    """Describe an event as a decision, without its reason, given the log before the event."""
    data = event.data
    if event.type == "player.account_changed":
        return f"{data['player']} has a {data['account']} account from {times.format_with_zone(event.occurred_at)}"
    if event.type == "event.voided":
        return _describe_withdrawal(before, event, times, people)
    if event.type not in GAME_EVENTS:
        return TYPE_PREFIXES.get(event.type, "") + describe_event(event.type, data, times)
    game = apply_revisions(before.about(f"game:{data['game_id']}"))
    if game is None:
        return str(data["game_id"])
    if event.type == "game.corrected":
        return f"{data['game_id']}: {_describe_correction(game, data['game'], times, people)}"
    return f"{data['game_id']}: {describe_result(people.use_current_ids(game.data))}"


def describe_seed(data: dict[str, Any]) -> str:
    """Describe a seed, given the data of its event."""
    state = ", ".join(f"{name} {value}" for name, value in data["state"].items())
    games = data.get("games", 0)
    after = f", after {games} game{'s' * (games != 1)} elsewhere" if games else ""
    return f"{data['player']} starts on {data['ladder']} with {state}{after}"


def _describe_adjustment(data: dict[str, Any]) -> str:
    """Describe an adjustment, given the data of its event, such as `ben: +5 points on elo-chess/all`."""
    points = Fraction(data["points"])
    noun = "point" if abs(points) == 1 else "points"
    return f"{data['player']}: {decimal(*points.as_integer_ratio(), signed=True)} {noun} on {data['ladder']}"


def _describe_withdrawal(before: Log, void: KnownEvent, times: TimeFormat, people: Identities) -> str:
    """Describe what a void withdraws: an event, or the withdrawal of an event, which then counts again."""
    root, is_reinstatement = find_root(before, void), False
    if root is None:  # an invalid void withdraws nothing
        return str(void.data["id"])
    target = before.event(void.data["id"])
    while target is not None and target.type == "event.voided":
        target, is_reinstatement = before.event(target.data["id"]), not is_reinstatement
    decision = describe_decision(before, root, times, people)
    return f"the withdrawal of {decision}" if is_reinstatement else decision


def _describe_correction(game: RevisedGame, new: dict[str, Any], times: TimeFormat, people: Identities) -> str:
    """Describe the changes that a correction makes, given the game before it and its new data."""
    changes = list_changed_members(game, new, times, people)
    if changes:
        return ", ".join(f"{member} {after} instead of {before}".lstrip() for member, before, after in changes)
    is_moved = new.get("occurred_at", format_instant(game.occurred_at)) != format_instant(game.occurred_at)
    detail = "at a different second" if is_moved else "with other details changed"
    return f"{describe_result(people.use_current_ids(_drop_time(new)))}, {detail}"


class ChangedMember(NamedTuple):
    """A member of a game that a correction changes, with its old and new text. The `name` of the result is empty."""

    name: str
    before: str
    after: str


def list_changed_members(
    game: RevisedGame, new: dict[str, Any], times: TimeFormat, people: Identities
) -> list[ChangedMember]:
    """Return the changes that a correction makes, given the game before it and its new data."""
    new_time = new.get("occurred_at", format_instant(game.occurred_at))
    before, after = people.use_current_ids(game.data), people.use_current_ids(_drop_time(new))
    changes = []
    if describe_result(before) != describe_result(after):
        changes.append(ChangedMember("", describe_result(before), describe_result(after)))
    elif (old_scores := _format_scores(before)) != (new_scores := _format_scores(after)):
        changes.append(ChangedMember("scores", old_scores or "-", new_scores or "-"))
    if (old_sets := describe_sets(before)) != (new_sets := describe_sets(after)):
        changes.append(ChangedMember("sets", old_sets or "-", new_sets or "-"))
    if times.format_played(new_time) != times.format_played(game.occurred_at):
        old_played, new_played = map(times.format_played_with_zone, (game.occurred_at, new_time))
        changes.append(ChangedMember("played", old_played, new_played))
    for name in sorted({*before, *after} - {"participants", "centres", "extra"}):
        if before.get(name) != after.get(name):
            changes.append(ChangedMember(name, str(before.get(name, "-")), str(after.get(name, "-"))))
    return changes


def _drop_time(game: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a game without the time of play."""
    return {name: value for name, value in game.items() if name != "occurred_at"}


def _format_scores(game: dict[str, Any]) -> str:
    """Format the recorded scores of a game's participants, sorted by player."""
    scores = [(entry["player"], entry["score"]) for entry in game["participants"] if "score" in entry]
    return ", ".join(f"{player} {score}" for player, score in sorted(scores))


def find_score(game: dict[str, Any], player: str) -> str | None:
    """Return the recorded score of a player in a game, or None."""
    participants = game["participants"]
    return next((_format_score(participant) for participant in participants if participant["player"] == player), None)


class OpposingSide(NamedTuple):
    """The opponents on one side of a game, one or several partners, and the recorded score of each."""

    players: tuple[str, ...]
    scores: tuple[str | None, ...]


def list_partners(game: dict[str, Any], player: str) -> list[str]:
    """Return the other players on a player's side of a game, sorted by id. Two players of a seat are not partners."""
    own_seat = _find_seat(game, player)
    own_sides = {side for name, side in _list_sides(game) if name == player} - {None}
    return sorted(name for name, side in _list_sides(game) if name not in own_seat and side in own_sides)


def list_opponents(game: dict[str, Any], player: str) -> list[OpposingSide]:
    """Return a player's opponents in a game by side, sorted by place and id.

    >>> anna, ben = ({"player": name, "place": place} for place, name in enumerate(("anna", "ben"), 1))
    >>> list_opponents({"participants": [anna, ben, {"player": "cleo", "place": 2, "replaces": "ben"}]}, "cleo")
    [OpposingSide(players=('anna',), scores=(None,))]
    """
    own_side = {*_find_seat(game, player), *list_partners(game, player)}
    seats = zip(places(game), _list_sides(game), game["participants"], strict=True)
    opponents = [
        (place, name, side, _format_score(participant))
        for place, (name, side), participant in seats
        if name not in own_side
    ]
    members = defaultdict[tuple[str | None, str], list[tuple[str, str | None]]](list)
    for _, name, side, score in sorted(opponents, key=lambda opponent: opponent[:2]):
        members[side, name if side is None else ""].append((name, score))
    return [OpposingSide(*zip(*side, strict=True)) for side in members.values()]


def describe_opponents(game: dict[str, Any], player: str) -> list[str]:
    """Describe each side of a player's opponents in a game, such as `anna (10)` or `anna & ben (3)`."""
    return [_describe_side(side) for side in list_opponents(game, player)]


def describe_participation(game: dict[str, Any], player: str) -> str:
    """Describe a player's part in a game, such as `scored 3, with ben, against cleo & dora (2)`."""
    score, partners = find_score(game, player), " & ".join(map(csv_item, list_partners(game, player)))
    own_parts = [f"scored {score}"] * bool(score) + [f"with {partners}"] * bool(partners)
    return ", ".join([*own_parts, f"against {', '.join(describe_opponents(game, player))}"])


def _find_seat(game: dict[str, Any], player: str) -> set[str]:
    """Return all players of a player's seat, which a player shares with a substitute."""
    seats = {
        participant["player"]: participant.get("replaces", participant["player"])
        for participant in game["participants"]
    }
    return {name for name, seat in seats.items() if seat == seats.get(player, player)} | {player}


def _list_sides(game: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return (player, team or side of a battle) for each participant, with None for a participant without either."""
    sides = (
        (participant["player"], participant.get("team", participant.get("side")))
        for participant in game["participants"]
    )
    return [(name, None if side is None else str(side)) for name, side in sides]


def _describe_side(side: OpposingSide) -> str:
    """Describe a side with its score, or with each player's score if the players have different scores."""
    scores = [f" ({score})" if score else "" for score in side.scores]
    names = [csv_item(name) for name in side.players]
    if len({*scores}) == 1:
        return " & ".join(names) + scores[0]
    return " & ".join([name + score for name, score in zip(names, scores, strict=True)])


def _format_score(participant: dict[str, Any]) -> str | None:
    """Format the recorded score of a participant; None without one."""
    return None if participant.get("score") is None else str(participant["score"])


def describe_outcome(data: dict[str, Any], show_scores: bool = True) -> str:
    """Describe a game: its participants by place or side, with scores, and notes such as `forfeit` or `not rated`."""
    notes = ["forfeit"] if FORFEIT in (data.get("extra") or {}) else []
    notes += ["aborted"] if data.get("aborted") else [] if data.get("rated", True) else ["not rated"]
    return describe_result(data, show_scores) + (f" ({', '.join(notes)})" if notes else "")


def describe_recorded_event(recorded: RecordedEvent, times: TimeFormat) -> str:
    """Describe an event in the log, with its reason."""
    event, target = recorded.event, recorded.target
    if UNREADABLE in event:
        return f"cannot be read and is ignored: {event[UNREADABLE]}"
    data = event["data"]
    if event["type"] == "event.voided":
        name = data["id"] if target is None else f"{target.type} at position {target.position}"
        return f"withdraws {name}: {data['reason']}"
    text = describe_event(event["type"], data, times)
    return f"{text}: {data['reason']}" if "reason" in data else text


def describe_event(type_name: str, data: dict[str, Any], times: TimeFormat) -> str:
    """Describe an event without its reason. A void needs its target: see `describe_recorded_event`."""
    if type_name == "game.recorded":
        return f"{data['game_id']}: {describe_outcome(data)}"
    if type_name == "game.corrected":
        new_time = data["game"].get("occurred_at")
        played = f", played {times.format_played(new_time)}" if new_time else ""
        return f"{data['game_id']}: {describe_outcome(data['game'])}{played}"
    if type_name in GAME_EVENTS:
        return str(data["game_id"])
    if type_name == "player.renamed":
        return f"{data['player']} is renamed {data['new_player']}"
    if type_name == "points.adjusted":
        return _describe_adjustment(data)
    if type_name == "player.seeded":
        return describe_seed(data)
    if type_name == "club.renamed":
        return f"the club {data['club']} is renamed {data['new_club']}"
    if type_name == "league.created":
        return f"{data['league']} of {data['game']}, {data['players_per_game']} players a game"
    if type_name.startswith("clock."):
        details = [str(data[name]) for name in ("player", "choice", "answer") if name in data]
        return ", ".join([f"{data['game_id']} at {data['at']} ms", *details])
    if type_name == "league.joined":
        return f"{data['player']} joins {data['league']}"
    if type_name == "league.scheduled":
        return f"{data['league']}: {len(data['games'])} games, drawn with the seed {data['seed']}"
    if type_name == "import.recorded":
        aliases = [f"{csv_item(name)} = {csv_item(player)}" for name, player in data.get("aliases", {}).items()]
        return ", ".join([f"{data['name']}: {describe_ranges(data['ranges'])}", *aliases])
    if type_name == "list.rows":
        return f"{data['ladder']}: part {data['part']} of {data['parts']}, {count(len(data['rows']), 'row')}"
    if type_name == "list.published":
        as_of = f" as of {times.format_with_zone(data['as_of'])}" if "as_of" in data else ""
        rows = count(data["row_count"], "row")
        return f"{data['ladder']}{as_of}: {rows} under {data['ruleset']}, position {data['known_at']}"
    if type_name == "list.scheduled":
        return f"{data['ladder']} will be published every {data['every']}"
    if type_name == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if type_name == "ledger.zone_set":
        return f"the home zone is {data['zone']}"
    return ", ".join(str(value) for value in data.values())
