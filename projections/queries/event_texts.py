"""What an event says, and what a decision decided, in a few words for people."""

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
    find_root,
    live_game,
)
from ratings_ledger.ledger.intake.forfeits import FORFEIT
from ratings_ledger.ledger.rejections import csv_item
from ratings_ledger.ledger.store.log import (
    Log,
)
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.repeated_games import describe_result, describe_sets
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.games_log import (
    RecordedEvent,
)

# what an event is called where its type is not told, unless it says so itself
NAMED = {
    "player.registered": "the registration of ",
    "import.recorded": "the import of ",
    "list.published": "the published list ",
    "list.scheduled": "the schedule: ",
    "league.created": "the league ",
    **{name: f"{name} of " for name in CLOCK_TYPES},
}


def what_was_decided(before: Log, event: KnownEvent, times: Times, people: Identities) -> str:
    """Return what an event says, given the log before it."""
    data = event.data
    if event.type == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if event.type == "player.account_changed":
        return f"{data['player']} has a {data['account']} account from {times.stated(event.occurred_at)}"
    if event.type == "points.adjusted":
        points = Fraction(data["points"])
        return f"{data['player']} {decimal(*points.as_integer_ratio(), signed=True)} on {data['ladder']}"
    if event.type == "player.seeded":
        return describe_seed(data)
    if event.type == "club.renamed":
        return f"the club {data['club']} is {data['new_club']}"
    if event.type == "event.voided":
        return _withdrawn(before, event, times, people)
    if event.type not in GAME_EVENTS:
        return NAMED.get(event.type, "") + what_it_says(event.type, data, times)
    game = live_game(before.about(f"game:{data['game_id']}"))
    if game is None:
        return str(data["game_id"])
    if event.type == "game.corrected":
        return f"{data['game_id']}: {_corrected(game, data['game'], times, people)}"
    return f"{data['game_id']}: {describe_result(people.present(game.data))}"


def describe_seed(data: dict[str, Any]) -> str:
    """Describe with what a player begins, as a `player.seeded` says it."""
    state = ", ".join(f"{name} {value}" for name, value in data["state"].items())
    games = data.get("games", 0)
    after = f" after {games} game{'s' * (games != 1)} elsewhere" if games else ""
    return f"{data['player']} begins with {state} on {data['ladder']}{after}"


def _withdrawn(before: Log, void: KnownEvent, times: Times, people: Identities) -> str:
    """Return what a withdrawal withdraws: an event, or the withdrawal of one, which counts again."""
    root, again = find_root(before, void), False
    if root is None:  # a void that does not count
        return str(void.data["id"])
    target = before.event(void.data["id"])
    while target is not None and target.type == "event.voided":
        target, again = before.event(target.data["id"]), not again
    what = what_was_decided(before, root, times, people)
    return f"the withdrawal of {what}" if again else what


def _corrected(game: RevisedGame, new: dict[str, Any], times: Times, people: Identities) -> str:
    """Return how a game was, and how it is after a correction."""
    changes = what_differs(game, new, times, people)
    told = ", ".join(f"{about} {now} instead of {was}".lstrip() for about, was, now in changes)
    moved = new.get("occurred_at", format_instant(game.occurred_at)) != format_instant(game.occurred_at)
    other = "at another moment of its minute" if moved else "with other details changed"
    return told or f"{describe_result(people.present(_undated(new)))}, {other}"


def what_differs(
    game: RevisedGame, new: dict[str, Any], times: Times, people: Identities
) -> list[tuple[str, str, str]]:
    """Return what a correction changes: what it is about, nothing for the result, how that was and how it is then."""
    moved = new.get("occurred_at", format_instant(game.occurred_at))
    there, here = people.present(game.data), people.present(_undated(new))
    found = []
    if describe_result(there) != describe_result(here):
        found.append(("", describe_result(there), describe_result(here)))
    elif (was := _scores(there)) != (now := _scores(here)):
        found.append(("scores", was or "-", now or "-"))
    if (was := describe_sets(there)) != (now := describe_sets(here)):
        found.append(("sets", was or "-", now or "-"))
    if times.played(moved) != times.played(game.occurred_at):
        found.append(("played", times.played_stated(game.occurred_at), times.played_stated(moved)))
    for name in sorted({*there, *here} - {"participants", "centres", "extra"}):
        if there.get(name) != here.get(name):
            found.append((name, str(there.get(name, "-")), str(here.get(name, "-"))))
    return found


def _undated(new: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in new.items() if name != "occurred_at"}


def _scores(game: dict[str, Any]) -> str:
    """Return the scores of a game's participants, as far as they have any."""
    scored = [(one["player"], one["score"]) for one in game["participants"] if "score" in one]
    return ", ".join(f"{player} {score}" for player, score in sorted(scored))


def score_of(game: dict[str, Any], player: str) -> str | None:
    """Return the score recorded for a player of a game; None without one."""
    return next((_score(seat) for seat in game["participants"] if seat["player"] == player), None)


class OtherSide(NamedTuple):
    """Opponents of a player: one, or partners of each other, and the recorded score of each."""

    players: tuple[str, ...]
    scores: tuple[str | None, ...]


def partners_of(game: dict[str, Any], player: str) -> list[str]:
    """Return the other players on a player's side of a game, by id; two players of one seat are no partners."""
    own = {side for name, side in _named_sides(game) if name == player}
    return sorted(name for name, side in _named_sides(game) if name != player and side in own - {None})


def opponents_of(game: dict[str, Any], player: str) -> list[OtherSide]:
    """Return the sides that a player met in a game, by place and then by id."""
    own_side = partners_of(game, player)
    placed = zip(places(game), _named_sides(game), game["participants"], strict=True)
    others = [
        (place, name, side, _score(participant))
        for place, (name, side), participant in placed
        if name not in (player, *own_side)
    ]
    members = defaultdict[tuple[str | None, str], list[tuple[str, str | None]]](list)
    for _, name, side, score in sorted(others, key=lambda opponent: opponent[:2]):
        members[side, name if side is None else ""].append((name, score))
    return [OtherSide(*zip(*side, strict=True)) for side in members.values()]


def describe_opponents(game: dict[str, Any], player: str) -> list[str]:
    """Describe the sides that a player met in a game, each like `anna (10)` or `anna & ben (3)`."""
    return [_describe_side(side) for side in opponents_of(game, player)]


def describe_played(game: dict[str, Any], player: str) -> str:
    """Describe a player's part in a game, such as `scored 3, with ben, against cleo & dora (2)`."""
    score, partners = score_of(game, player), " & ".join(map(csv_item, partners_of(game, player)))
    sides = [f"scored {score}"] * bool(score) + [f"with {partners}"] * bool(partners)
    return ", ".join([*sides, f"against {', '.join(describe_opponents(game, player))}"])


def _named_sides(game: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return each participant with the team, or the side of a battle; None for those who play alone."""
    sides = ((seat["player"], seat.get("team", seat.get("side"))) for seat in game["participants"])
    return [(name, None if side is None else str(side)) for name, side in sides]


def _describe_side(side: OtherSide) -> str:
    scores = [f" ({score})" if score else "" for score in side.scores]
    names = [csv_item(name) for name in side.players]
    if len({*scores}) == 1:
        return " & ".join(names) + scores[0]
    return " & ".join([name + score for name, score in zip(names, scores, strict=True)])


def _score(participant: dict[str, Any]) -> str | None:
    return None if participant.get("score") is None else str(participant["score"])


def result_told(data: dict[str, Any], has_scores: bool = True) -> str:
    """Describe a game by its participants, by place or side, with scores, and whether it counts."""
    notes = ["forfeit"] if FORFEIT in (data.get("extra") or {}) else []
    notes += ["aborted"] if data.get("aborted") else [] if data.get("rated", True) else ["not rated"]
    return describe_result(data, has_scores) + (f" ({', '.join(notes)})" if notes else "")


def words_of(one: RecordedEvent, times: Times) -> str:
    """Return what an event says, with the reason for it."""
    event, target = one.event, one.target
    if UNREADABLE in event:
        return f"does not count: {event[UNREADABLE]}"
    data = event["data"]
    if event["type"] == "event.voided":
        what = data["id"] if target is None else f"{target.type} at position {target.position}"
        return f"withdraws {what}: {data['reason']}"
    said = what_it_says(event["type"], data, times)
    return f"{said}: {data['reason']}" if "reason" in data else said


def what_it_says(type_name: str, data: dict[str, Any], times: Times) -> str:
    """Return what an event says, without the reason for it; not of a withdrawal, which says nothing by itself."""
    if type_name == "game.recorded":
        return f"{data['game_id']}: {result_told(data)}"
    if type_name == "game.corrected":
        moved = data["game"].get("occurred_at")
        dated = f", played {times.played(moved)}" if moved else ""
        return f"{data['game_id']}: {result_told(data['game'])}{dated}"
    if type_name in GAME_EVENTS:
        return str(data["game_id"])
    if type_name == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if type_name == "points.adjusted":
        return f"{data['player']} {data['points']} on {data['ladder']}"
    if type_name == "player.seeded":
        return describe_seed(data)
    if type_name == "club.renamed":
        return f"the club {data['club']} is {data['new_club']}"
    if type_name == "league.created":
        return f"{data['league']} of {data['game']}, {data['players_per_game']} players a game"
    if type_name.startswith("clock."):
        rest = [str(data[name]) for name in ("player", "choice", "answer") if name in data]
        return ", ".join([f"{data['game_id']} at {data['at']} ms", *rest])
    if type_name == "league.joined":
        return f"{data['player']} is in {data['league']}"
    if type_name == "league.scheduled":
        return f"{data['league']}: {len(data['games'])} games, drawn with the seed {data['seed']}"
    if type_name == "import.recorded":
        return f"{data['name']}: {describe_ranges(data['ranges'])}"
    if type_name == "list.rows":
        return f"{data['ladder']}: part {data['part']} of {data['parts']}, {len(data['rows'])} rows"
    if type_name == "list.published":
        as_of = f" as of {times.stated(data['as_of'])}" if "as_of" in data else ""
        return f"{data['ladder']}{as_of}: {data['row_count']} rows under {data['ruleset']}, position {data['known_at']}"
    if type_name == "list.scheduled":
        return f"{data['ladder']} is published every {data['every']}"
    if type_name == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if type_name == "ledger.zone_set":
        return f"the home zone is {data['zone']}"
    return ", ".join(str(value) for value in data.values())
