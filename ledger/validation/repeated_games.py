"""Compare games with the recorded games of the same ids, describe the differences, and find repeated clock events.

Games are compared after corrections and renames. A game may be corrected with `ratings correct` and also in the sheet.
Then both agree, and the game is not a conflict, although its first record differs.
"""

import re
import shlex
from collections import defaultdict
from functools import cached_property
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant, parse_object
from ratings_ledger.ledger.events.game_clocks import TIMER_CHANGING_TYPES
from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.revisions import KnownEvent, RevisedGame, apply_revisions
from ratings_ledger.ledger.events.types import Draft, make_default_id, to_canonical_content
from ratings_ledger.ledger.rejections import Rejection, csv_item, quote
from ratings_ledger.ledger.store.log import Log, find_changed_games
from ratings_ledger.ledger.validation.identities import Identities, read_identities

FINISHED = "finished"
SECOND = 1_000_000  # microseconds


class RepeatedGameChecks:
    """Comparisons of new games with the recorded games of the same ids, as these are after corrections and renames."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def compare(self, draft: Draft, conflict: Rejection) -> Rejection | None:
        """Return None if the recorded game now equals the draft, else a refusal that names the differences.

        `conflict` is the refusal after a comparison with the game's first record; it is returned unchanged unless it is
        the `id-conflict` of a game.
        """
        if conflict.code != "id-conflict" or draft.type != "game.recorded" or draft.event_id != draft.subject:
            return conflict
        if (game := self._find(draft)) is None:
            return conflict
        recorded, repeated = self._read_both(game, draft)
        if game.voided:
            return conflict._replace(
                message=f"the game {quote(repeated['game_id'])} was recorded, and voided at position "
                f"{game.last.position}"
            )
        if is_same_time(draft.occurred_at, game.occurred_at) and normalise_game(recorded) == normalise_game(repeated):
            return None
        difference = _describe_difference(recorded, game.occurred_at, repeated, draft.occurred_at)
        return conflict._replace(
            message=f"the game {quote(repeated['game_id'])} is already recorded with different content: {difference}"
        )

    def find_slip(self, draft: Draft) -> tuple[str, str] | None:
        """Return (draft's name, recorded name) of a player if nothing else differs from the recorded game."""
        game = self._find(draft)
        if game is None or game.voided or not is_same_time(draft.occurred_at, game.occurred_at):
            return None
        recorded, repeated = self._read_both(game, draft)
        repeated_names, recorded_names = (
            {participant["player"] for participant in data["participants"]} for data in (repeated, recorded)
        )
        only_repeated, only_recorded = repeated_names - recorded_names, recorded_names - repeated_names
        if len(only_repeated) != 1 or len(only_recorded) != 1:
            return None
        slip, player = only_repeated.pop(), only_recorded.pop()
        seats = [
            {**participant, "player": player} if participant["player"] == slip else participant
            for participant in repeated["participants"]
        ]
        is_same = normalise_game({**repeated, "participants": seats}) == normalise_game(recorded)
        return (slip, player) if is_same else None

    def find_void(self, draft: Draft) -> KnownEvent | None:
        """Return the void of the game that a draft records again, or None if the game is live."""
        if draft.type != "game.recorded" or draft.subject not in self._changed:
            return None
        game = self._find(draft)
        return game.last if game is not None and game.voided else None

    def is_on_other_day(self, draft: Draft) -> bool:
        """Tell whether the recorded game with a draft's id was played on another day, in UTC."""
        game = self._find(draft)
        return game is not None and _format_day(game.occurred_at) != _format_day(draft.occurred_at)

    def _find(self, draft: Draft) -> RevisedGame | None:
        return apply_revisions(Log(self._connection).about(draft.subject))

    def _read_both(self, game: RevisedGame, draft: Draft) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the recorded game and that of a draft, both with the current ids of the players."""
        repeated = parse_object(draft.data.encode())
        return self._people.use_current_ids(game.data), self._people.use_current_ids(repeated)

    @cached_property
    def _people(self) -> Identities:
        return read_identities(self._connection)

    @cached_property
    def _changed(self) -> set[str]:
        """Return the subjects of the games that were corrected, voided or reinstated."""
        return find_changed_games(self._connection, 0)


class RepeatedClockEvents:
    """A detector of repeated clock events in an input."""

    def __init__(self) -> None:
        # the latest millisecond of each game, and the origins (file, line) of its events by event id; the times of a
        # server never decrease
        self._latest: dict[str, tuple[int, dict[str, tuple[str, int]]]] = {}
        self._first = ""
        self._count = 0

    def watch(self, draft: Draft, data: dict[str, Any], file: str, line: int) -> None:
        """Compare an event that changes a timer with the events of its game in the same millisecond."""
        if draft.type not in TIMER_CHANGING_TYPES:
            return
        at, origins = self._latest.get(data["game_id"], (-1, {}))
        if at != data["at"]:
            origins = {}
            self._latest[data["game_id"]] = data["at"], origins
        origin = file, line
        earlier = origins.setdefault(draft.event_id, origin)
        if earlier is not origin and draft.event_id == make_default_id(draft.type, draft.occurred_at, data):
            self._count += 1
            location = f"{file}:{line}: " if file else ""
            original = f"line {earlier[1]} of {earlier[0]}" if file else "an earlier event"
            self._first = self._first or (
                f"{location}this {draft.type} of {quote(data['player'])} in {quote(data['game_id'])} repeats "
                f"{original}, also at {data['at']} ms, so both count as one event"
            )

    def describe(self) -> list[str]:
        """Return a list with a sentence about the repetitions, or an empty list."""
        more = f" ({self._count - 1:,} more like this)" if self._count > 1 else ""
        return [f"{self._first}; if both happened, give them different ids{more}"] if self._count else []


def is_same_time(stated: int, recorded: int) -> bool:
    """Tell whether two times in microseconds are those of one game.

    The recorded time may be less than a second later, because `--sync` moves a game after others of the same time.
    """
    return 0 <= recorded - stated < SECOND


def are_on_same_day(left: Draft, right: Draft) -> bool:
    """Tell whether two games were played on the same day, in UTC."""
    return _format_day(left.occurred_at) == _format_day(right.occurred_at)


def describe_counting_column(column: str) -> str:
    """Describe the remedy for a column of ids whose numbers start again every day: the option that drops the column."""
    option = f"--map {shlex.quote(f'{column}=')}"
    return (
        f"the numbers in column {quote(column)} start again on other days, so they do not identify games; {option} "
        "numbers games by date instead"
    )


def describe_reinstatement(void: KnownEvent, file: str, is_compared: bool) -> str:
    """Describe the remedy for a game with the id of a voided game: reinstate that game, then sync or correct it.

    `is_compared` tells whether the file is compared with its earlier import. `file` is empty for a game that does not
    come from a file.
    """
    reinstate = f"ratings reinstate {shlex.quote(void.data['game_id'])} --reason TEXT"
    sync, correct = f"import {shlex.quote(file)} --sync", f"correct --file {shlex.quote(file)} --reason TEXT"
    command = f"{sync if is_compared else correct} with the same options" if file else "correct"
    undo = f"take that back with ratings undo {void.position} (for this game only: {reinstate})"
    return f"{undo}; then run ratings {command}"


def describe_remedies(
    *, is_by_day: bool, is_edited: bool, is_on_other_day: bool = False, column: str | None = None
) -> str:
    """Describe the remedies for a game of a table that has the id of another, recorded game.

    Args:
        is_by_day: Whether the ids are made from the date and a number within the day.
        is_edited: Whether an earlier import of this table recorded the other game.
        is_on_other_day: Whether the games were played on different days.
        column: The table's column of ids, if it has one.
    """
    if is_on_other_day and not is_by_day:
        option = f" (--map {shlex.quote(f'{column}=')} drops the column and numbers games by day)" if column else ""
        command = "--sync" if is_edited else "ratings correct"
        return f"give it another game_id if it is another game{option}; use {command} if this game moved to another day"
    if is_edited:
        return "use --sync if the table was edited, or another game_id for another game"
    if is_by_day:
        return (
            "two tables have games on the same day: number the games in a column of each table (--map THEIRS=game_id), "
            "or keep all games of a day in one table"
        )
    return "use ratings correct to correct it, or another game_id for another game"


def describe_result(game: dict[str, Any], show_scores: bool = False) -> str:
    """Describe the result of a valid game: `1 anna, 2 ben, 2 cleo`, partners as `1 anna & ben`.

    A game without places is described by sides. With `show_scores`, include scores, the status of players who left, and
    sets: `1 anna (2), 2 ben (0, abandoned), sets 11:7 11:9`.
    """
    participants = game["participants"]
    scores = {p["player"]: str(p["score"]) for p in participants if show_scores and p.get("score") is not None}
    if not any(game_places := places(game)):
        sides = sorted((p.get("side", ""), p["player"]) for p in participants)
        return ", ".join(_add_notes(csv_item(name), side, scores.get(name)) for side, name in sides)
    statuses = {p["player"]: p["status"] for p in participants if show_scores and p.get("status", FINISHED) != FINISHED}
    by_side = defaultdict[tuple[int, object], list[str]](list)
    for place, p in sorted(zip(game_places, participants, strict=True), key=lambda pair: (pair[0], pair[1]["player"])):
        # a player who left, and a substitute, get an entry apart from their team
        is_apart = p.get("team") is None or p.get("status", FINISHED) != FINISHED
        by_side[place, p["player"] if is_apart else (p["team"],)].append(p["player"])
    sides_text = [
        _add_notes(f"{place} {' & '.join(map(csv_item, names))}", scores.get(names[0]), statuses.get(names[0]))
        for (place, _), names in by_side.items()
    ]
    sets = [f"sets {sets}"] if show_scores and (sets := describe_sets(game)) else []
    return ", ".join([*sides_text, *sets])


def describe_both(first: dict[str, Any], second: dict[str, Any]) -> tuple[str, str]:
    """Describe two results of one game; include scores and sets if the descriptions would otherwise be equal."""
    texts = describe_result(first), describe_result(second)
    if texts[0] != texts[1]:
        return texts
    return describe_result(first, show_scores=True), describe_result(second, show_scores=True)


SETS = "scores"  # the member of `extra` with the sets of a game, in the order of the participants
_SET = re.compile(r"(\d{1,3}):(\d{1,3})(\(\d{1,2}\))?", re.ASCII)


def describe_sets(game: dict[str, Any]) -> str:
    """Return the sets of a game of two sides, with the better place first in each set; empty if there are no sets.

    >>> seats = [{"player": "anna", "score": 0}, {"player": "ben", "score": 2}]
    >>> describe_sets({"participants": seats, "extra": {"scores": "7:11 9:11"}})
    '11:7 11:9'
    """
    text = str((game.get("extra") or {}).get(SETS, ""))
    return _reverse_sets(text) if text and _is_first_behind(game) else text


def keep_sets(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a corrected game with the sets of the old one, reversed if the places were.

    Drop the sets if the score of a place has changed.
    """
    if not (sets := describe_sets(old)):
        return new
    return put_sets(new, sets if _list_scores_by_place(old) == _list_scores_by_place(new) else "")


def put_sets(game: dict[str, Any], sets: str) -> dict[str, Any]:
    """Return a game with these sets, given with the better place first; without sets if they are empty.

    >>> game = {"participants": [{"player": "anna", "score": 0}, {"player": "ben", "score": 2}]}
    >>> put_sets(game, "11:7 11:9")["extra"]
    {'scores': '7:11 9:11'}
    """
    extra = {name: value for name, value in game.get("extra", {}).items() if name != SETS}
    if sets:
        extra[SETS] = _reverse_sets(sets) if _is_first_behind(game) else sets
    other_members = {name: value for name, value in game.items() if name != "extra"}
    return {**other_members, "extra": extra} if extra else other_members


def _is_first_behind(game: dict[str, Any]) -> bool:
    """Tell whether the first participant does not have the best place."""
    game_places = places(game)
    return game_places[0] > min(game_places)


def _reverse_sets(text: str) -> str:
    """Reverse both numbers of each set; return a text with anything else than sets unchanged."""
    parts = [_SET.fullmatch(part) for part in text.split()]
    return " ".join(f"{part[2]}:{part[1]}{part[3] or ''}" for part in parts if part) if all(parts) else text


def _list_scores_by_place(game: dict[str, Any]) -> list[tuple[int, str]]:
    return sorted(
        (place, str(player.get("score"))) for place, player in zip(places(game), game["participants"], strict=True)
    )


def _add_notes(text: str, *notes: str | None) -> str:
    """Append the notes that are not empty to a text: `text (note, note)`."""
    joined = ", ".join(filter(None, notes))
    return f"{text} ({joined})" if joined else text


def normalise_game(game: dict[str, Any]) -> str:
    """Return a canonical text of a game that does not depend on the order of its participants."""
    ordered = sorted(game["participants"], key=lambda participant: str(participant["player"]))
    return to_canonical_content("game.recorded", 0, {**game, "participants": ordered})


def _format_day(instant: int) -> str:
    return format_instant(instant)[: len("2024-11-22")]


def _describe_difference(recorded: dict[str, Any], recorded_at: int, repeated: dict[str, Any], repeated_at: int) -> str:
    times = ["", ""]
    if has_moved := not is_same_time(repeated_at, recorded_at):
        format_time = _format_day if _format_day(recorded_at) != _format_day(repeated_at) else format_instant
        times = [f"played {format_time(recorded_at)}", f"played {format_time(repeated_at)}"]
    results = describe_both(recorded, repeated)
    if results[0] != results[1]:
        recorded_text, repeated_text = (", ".join(filter(None, pair)) for pair in zip(results, times, strict=True))
        return f"recorded as {recorded_text}; now {repeated_text}"
    if has_moved:
        return f"recorded as {times[0]}, now {times[1]}"
    old, new = (parse_object(normalise_game(game).encode())["data"] for game in (recorded, repeated))
    members = sorted(name for name in {*old, *new} - {"participants"} if old.get(name) != new.get(name))
    return f"it differs in {', '.join(members) or 'participants'}"
