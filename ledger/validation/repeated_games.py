"""Repeated games: comparison of a game in a table with the recorded game after its corrections and renames.

A sheet that was corrected after `ratings correct` agrees with the ledger. So its game is no conflict, although the
game's first record differs.
"""

import re
import shlex
from collections import defaultdict
from typing import Any

from ratings_ledger.ledger.events.canonical import format_instant, parse_object
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, live_game
from ratings_ledger.ledger.events.types import Draft, meaning
from ratings_ledger.ledger.rejections import Rejection, csv_item, quote
from ratings_ledger.ledger.validation.identities import Identities

FINISHED = "finished"
SECOND = 1_000_000  # microseconds


def check_repeated_game(log: EventLookup, people: Identities, draft: Draft, conflict: Rejection) -> Rejection | None:
    """Return None if the recorded game now equals the draft, else a refusal with the differences.

    `conflict` is the refusal based on the game's first record; only a game's `id-conflict` is compared.
    """
    if conflict.code != "id-conflict" or draft.type != "game.recorded" or draft.event_id != draft.subject:
        return conflict
    game = live_game(log.about(draft.subject))
    if game is None:
        return conflict
    recorded, repeated = people.present(game.data), people.present(parse_object(draft.data.encode()))
    if game.voided:
        return conflict._replace(
            message=f"the game {quote(repeated['game_id'])} is recorded, and voided at position {game.last.position}"
        )
    if is_same_time(draft.occurred_at, game.occurred_at) and normalise_game(recorded) == normalise_game(repeated):
        return None
    difference = _describe_difference(recorded, game.occurred_at, repeated, draft.occurred_at)
    return conflict._replace(
        message=f"the game {quote(repeated['game_id'])} is already recorded with different content: {difference}"
    )


def find_slip(log: EventLookup, people: Identities, draft: Draft) -> tuple[str, str] | None:
    """Return a draft's name for a player, and the recorded one, if the recorded game differs in nothing else."""
    game = live_game(log.about(draft.subject))
    if game is None or game.voided or not is_same_time(draft.occurred_at, game.occurred_at):
        return None
    recorded, repeated = people.present(game.data), people.present(parse_object(draft.data.encode()))
    names = [{participant["player"] for participant in data["participants"]} for data in (repeated, recorded)]
    ours, theirs = names[0] - names[1], names[1] - names[0]
    if len(ours) != 1 or len(theirs) != 1:
        return None
    slip, player = ours.pop(), theirs.pop()
    seats = [
        {**participant, "player": player} if participant["player"] == slip else participant
        for participant in repeated["participants"]
    ]
    is_same = normalise_game({**repeated, "participants": seats}) == normalise_game(recorded)
    return (slip, player) if is_same else None


def is_same_time(stated: int, recorded: int) -> bool:
    """Tell whether a table gives the time of a recorded game, which may have been moved after others of that time."""
    return 0 <= recorded - stated < SECOND


def is_of_another_day(log: EventLookup, draft: Draft) -> bool:
    """Tell whether the game that has a draft's id was played on another day."""
    game = live_game(log.about(draft.subject))
    return game is not None and _format_day(game.occurred_at) != _format_day(draft.occurred_at)


def are_of_one_day(left: Draft, right: Draft) -> bool:
    """Tell whether two games were played on one day, in UTC."""
    return _format_day(left.occurred_at) == _format_day(right.occurred_at)


def describe_counting_column(column: str) -> str:
    """Describe a column of ids that numbers the games of each day anew, and the option that numbers them by date."""
    drop = f"--map {shlex.quote(f'{column}=')}"
    return (
        f"column {quote(column)} repeats its numbers on other days, so they name no game; {drop} numbers games by date"
    )


def describe_way_back(void: KnownEvent, file: str, is_compared: bool) -> str:
    """Describe the remedy for a game with the id of a voided one: reinstate that game, then sync or correct the file.

    `file` is empty for a game that comes from no file.
    """
    alone = f"ratings reinstate {shlex.quote(void.data['game_id'])} --reason TEXT, for this game alone"
    compared, corrected = f"import {shlex.quote(file)} --sync", f"correct --file {shlex.quote(file)} --reason TEXT"
    then = f"{compared if is_compared else corrected} with the same options" if file else "correct"
    return f"ratings undo {void.position} takes that back (or {alone}); then ratings {then} puts it right"


def describe_ways_out(
    is_by_day: bool, is_edited: bool, is_of_another_day: bool = False, column: str | None = None
) -> str:
    """Describe the remedies for a game of a table that has the id of another game.

    `is_by_day` tells whether ids number the games of a day, `is_edited` whether a table of that name recorded the other
    game, and `is_of_another_day` whether the days differ; `column` is the table's column of ids.
    """
    if is_of_another_day and not is_by_day:
        drop = f": --map {shlex.quote(f'{column}=')} drops that column, and numbers games by day" if column else ""
        moves = f"{'--sync' if is_edited else 'ratings correct'} moves it"
        return f"a game of another day is another game, and needs another game_id{drop}; if it is this one, {moves}"
    if is_edited:
        return "if the table was edited, --sync brings the ledger to what it says; another game needs another game_id"
    if is_by_day:
        return (
            "games of two tables on one day: number them in a column of each table (--map THEIRS=game_id), or keep the "
            "games of a day in one table"
        )
    return "ratings correct puts it right; another game needs another game_id"


def describe_result(game: dict[str, Any], has_scores: bool = False) -> str:
    """Return the participants of a checked game by place, such as `1 anna, 2 ben, 2 cleo`, partners as `1 anna & ben`;
    without places, by side.

    With scores, those that are recorded follow the names, with how players left, and the sets in the end: `1 anna (2),
    2 ben (0, abandoned), sets 11:7 11:9`.
    """
    people = game["participants"]
    scores = {p["player"]: str(p["score"]) for p in people if has_scores and p.get("score") is not None}
    if not any(placed := places(game)):
        sides = sorted((p.get("side", ""), p["player"]) for p in people)
        return ", ".join(_with_notes(csv_item(name), side, scores.get(name)) for side, name in sides)
    left = {p["player"]: p["status"] for p in people if has_scores and p.get("status", FINISHED) != FINISHED}
    by_side = defaultdict[tuple[int, object], list[str]](list)
    for place, p in sorted(zip(placed, people, strict=True), key=lambda one: (one[0], one[1]["player"])):
        # who left, or came for somebody, is named alone
        is_alone = p.get("team") is None or p.get("status", FINISHED) != FINISHED
        by_side[place, p["player"] if is_alone else (p["team"],)].append(p["player"])
    told = (
        _with_notes(f"{place} {' & '.join(map(csv_item, names))}", scores.get(names[0]), left.get(names[0]))
        for (place, _), names in by_side.items()
    )
    sets = [f"sets {sets}"] if has_scores and (sets := describe_sets(game)) else []
    return ", ".join([*told, *sets])


def describe_both(first: dict[str, Any], second: dict[str, Any]) -> tuple[str, str]:
    """Describe two results of one game, with scores and sets where nothing else of them differs."""
    told = describe_result(first), describe_result(second)
    return told if told[0] != told[1] else (describe_result(first, True), describe_result(second, True))


SETS = "scores"  # the member of `extra` with the sets of a game, the participants in their order
_SET = re.compile(r"(\d{1,3}):(\d{1,3})(\(\d{1,2}\))?", re.ASCII)


def describe_sets(game: dict[str, Any]) -> str:
    """Describe the sets of a game of two sides, the better place first; empty if it has none.

    >>> seats = [{"player": "anna", "score": 0}, {"player": "ben", "score": 2}]
    >>> describe_sets({"participants": seats, "extra": {"scores": "7:11 9:11"}})
    '11:7 11:9'
    """
    text = str((game.get("extra") or {}).get(SETS, ""))
    return _turn_sets(text) if text and _is_first_behind(game) else text


def keep_sets(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a corrected game with the sets of the old one, which follow the places as scores do.

    It has no sets if the scores of its places have changed.
    """
    if not (sets := describe_sets(old)):
        return new
    return put_sets(new, sets if _scores_by_place(old) == _scores_by_place(new) else "")


def put_sets(game: dict[str, Any], sets: str) -> dict[str, Any]:
    """Return a game with sets that are given the better place first, or without any.

    >>> game = {"participants": [{"player": "anna", "score": 0}, {"player": "ben", "score": 2}]}
    >>> put_sets(game, "11:7 11:9")["extra"]
    {'scores': '7:11 9:11'}
    """
    extra = {name: value for name, value in game.get("extra", {}).items() if name != SETS}
    if sets:
        extra[SETS] = _turn_sets(sets) if _is_first_behind(game) else sets
    rest = {name: value for name, value in game.items() if name != "extra"}
    return {**rest, "extra": extra} if extra else rest


def _is_first_behind(game: dict[str, Any]) -> bool:
    own = places(game)
    return own[0] > min(own)


def _turn_sets(text: str) -> str:
    """Turn sets to the other side's view; return other texts unchanged."""
    parts = [_SET.fullmatch(part) for part in text.split()]
    return " ".join(f"{part[2]}:{part[1]}{part[3] or ''}" for part in parts if part) if all(parts) else text


def _scores_by_place(game: dict[str, Any]) -> list[tuple[int, str]]:
    return sorted(
        (place, str(player.get("score"))) for place, player in zip(places(game), game["participants"], strict=True)
    )


def _with_notes(text: str, *notes: str | None) -> str:
    """Append the notes that are not empty to a text: `text (note, note)`."""
    joined = ", ".join(filter(None, notes))
    return f"{text} ({joined})" if joined else text


def normalise_game(game: dict[str, Any]) -> str:
    """Return a canonical text of a game, independent of the order of its participants."""
    ordered = sorted(game["participants"], key=lambda participant: str(participant["player"]))
    return meaning("game.recorded", 0, {**game, "participants": ordered})


def _format_day(instant: int) -> str:
    return format_instant(instant)[: len("2024-11-22")]


def _describe_difference(recorded: dict[str, Any], recorded_at: int, repeated: dict[str, Any], repeated_at: int) -> str:
    played = ["", ""]
    if recorded_at != repeated_at:
        format_time = _format_day if _format_day(recorded_at) != _format_day(repeated_at) else format_instant
        played = [f"played {format_time(recorded_at)}", f"played {format_time(repeated_at)}"]
    told = describe_both(recorded, repeated)
    if told[0] != told[1]:
        results = zip(told, played, strict=True)
        return "there {}; here {}".format(*(f"{result}, {when}" if when else result for result, when in results))
    if recorded_at != repeated_at:
        return f"there {played[0]}, here {played[1]}"
    members = sorted(
        name for name in {*recorded, *repeated} - {"participants"} if recorded.get(name) != repeated.get(name)
    )
    return f"the {', '.join(members) or 'participants'} differ" + ("s" if len(members) == 1 else "")
