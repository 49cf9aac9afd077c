"""Build corrections of recorded games (from a table, new places or scores, or edited data) and voids of many games.

A game keeps the members that a correction does not mention, and its players keep their recorded ids.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.canonical import format_instant, parse_instant, parse_object
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.games import count_seats
from ratings_ledger.ledger.events.revisions import EventLookup, RevisedGame, apply_revisions
from ratings_ledger.ledger.events.types import Draft, to_canonical_content
from ratings_ledger.ledger.intake.files import (
    STDIN,
    FileDigest,
    FileNote,
    Item,
    Progress,
    describe_source,
    read_items,
    read_lines,
)
from ratings_ledger.ledger.intake.forfeits import FORFEIT
from ratings_ledger.ledger.intake.parsing import CellSyntax, TypedSide, has_score
from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.log import Log, find_changed_games, read_known_events, read_records
from ratings_ledger.ledger.validation.batches import find_batches
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.repeated_games import normalise_game


class RequestedChanges(NamedTuple):
    """The changes that a file or command requests.

    items:       events to record, and refusals
    unchanged:   the ids of games that need no change
    seen_events: the id of the last event of each game, by subject, for optimistic locking
    """

    items: list[Item | Rejection]
    unchanged: list[str]
    seen_events: dict[str, str]


def void_from_file(log: EventLookup, file: str, reason: str, decided_at: int) -> RequestedChanges:
    """Build events that void the games of a file with one game_id per line, unless they are already voided.

    Raises `Refused` (empty-file, and the codes of `read_lines`).
    """
    requested = RequestedChanges([], [], {})
    first_lines: dict[str, int] = {}
    for number, line in read_lines(file):
        try:
            game_id = to_nfc(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
        except UnicodeDecodeError:
            requested.items.append(Rejection("bad-utf8", "the line is not UTF-8; save the file as UTF-8", file, number))
            continue
        if first_lines.setdefault(game_id, number) != number:
            continue
        game = apply_revisions(log.about(f"game:{game_id}"))
        _add_void(requested, game_id, game, reason=reason, decided_at=decided_at, file=file, line=number)
    if not first_lines and not requested.items:
        raise Refused("empty-file", f"{describe_source(file)} contains no game; write one game_id per line")
    return requested


def void_batches(connection: Connection, name: str, reason: str, decided_at: int) -> RequestedChanges:
    """Build events that void the games recorded by imports with this name, unless they are already voided.

    `name` may also be the position of one import. Raises `Refused` (batch-unknown).
    """
    requested, log = RequestedChanges([], [], {}), Log(connection)
    for first, last in sorted(positions for batch in find_batches(connection, name) for positions in batch.ranges):
        changed = find_changed_games(connection, first)
        for page in read_records(connection, first - 1, last):
            for event in read_known_events(row for row in page if '"type":"game.recorded"' in row[1]):
                if event.type == "game.recorded":
                    subject = f"game:{event.data['game_id']}"
                    game = apply_revisions(log.about(subject) if subject in changed else [event])
                    assert game is not None
                    _add_void(requested, event.data["game_id"], game, reason=reason, decided_at=decided_at)
    return requested


def _add_void(
    requested: RequestedChanges,
    game_id: str,
    game: RevisedGame | None,
    *,
    reason: str,
    decided_at: int,
    file: str = "",
    line: int = 0,
) -> None:
    """Add an event that voids a game, unless the game is already voided."""
    if game is not None and game.voided:
        requested.unchanged.append(game_id)
        return
    if game is not None:
        requested.seen_events[f"game:{game_id}"] = game.last.event_id
    event = {"type": "game.voided", "data": {"game_id": game_id, "reason": reason}}
    requested.items.append(Item(file, line, {**event, "occurred_at": format_instant(decided_at)}, None))


def correct_from_table(
    log: EventLookup, people: Identities, file: str, *, reason: str, decided_at: int, options: TableOptions
) -> RequestedChanges:
    """Build corrections of the recorded games that differ from a table.

    A game keeps the members for which the table has no column. An empty cell removes a value.
    """
    requested = RequestedChanges([], [], {})
    columns: list[CsvColumns] = []
    for item in read_items(file, options._replace(on_columns=columns.append, required=("game_id",))):
        if isinstance(item, Progress | FileDigest | FileNote):
            continue
        if isinstance(item, Rejection):
            requested.items.append(item)
        elif isinstance(item.event, Refused):
            requested.items.append(item.event.to_rejection(item.file, item.line))
        elif not item.table or not isinstance(item.event, dict):
            message = f"corrections need a table; for events as JSON run: ratings import {shlex.quote(item.file)}"
            requested.items.append(Rejection("bad-csv", message, item.file, item.line))
            break
        else:
            if not (columns[0].is_numbered or "game" in (*columns[0].game, *options.fixed)):
                # the reader filled in the only game that is scored; it must not replace the game in the ledger
                item.event["data"].pop("game", None)
            _add_correction(requested, log, people, item=item, columns=columns[0], reason=reason, decided_at=decided_at)
    return requested


def _add_correction(
    requested: RequestedChanges,
    log: EventLookup,
    people: Identities,
    *,
    item: Item,
    columns: CsvColumns,
    reason: str,
    decided_at: int,
) -> None:
    """Add a correction if a game of the table differs from the recorded game, or a refusal."""
    event = item.event
    assert isinstance(event, dict)
    game_id = to_nfc(event["data"]["game_id"])
    if (game := apply_revisions(log.about(f"game:{game_id}"))) is None:
        command = f"ratings import {shlex.quote(item.file)}"
        message = f"no game {quote(game_id)} is recorded; to add new games run: {command}"
        requested.items.append(Rejection("game-unknown", message, item.file, item.line))
        return
    if columns.is_numbered and (game.voided or game.data["game"] != event["data"].get("game")):
        # the ids of this table count its rows, so the recorded game may not be the game of the row
        file = "FILE" if item.file == STDIN else shlex.quote(item.file)
        state = "voided" if game.voided else f"a game of {game.data['game']}"
        message = (
            f"the recorded game {quote(game_id)} is {state}, so it may not be the game of this row; to compare a table "
            f"without ids run: ratings import {file} --sync"
        )
        requested.items.append(Rejection("id-conflict", message, item.file, item.line))
        return
    new = merge_correction(game, people, event["data"], columns)
    at = event.get("occurred_at")
    try:
        has_new_time = at is not None and parse_instant(at) != game.occurred_at
        is_same = not has_new_time and normalise_game(people.use_current_ids(new)) == normalise_game(
            people.use_current_ids(game.data)
        )
    except (Refused, LookupError, TypeError, ValueError):
        # the error is reported when the new event is checked
        is_same, has_new_time = False, True
    if is_same and not game.voided:
        requested.unchanged.append(game_id)
        return
    requested.seen_events[f"game:{game_id}"] = game.last.event_id
    date_member = {"occurred_at": at} if has_new_time else {}
    data = {"game_id": game_id, "reason": reason, "game": {**new, **date_member}}
    event_to_record = {"type": "game.corrected", "occurred_at": format_instant(decided_at), "data": data}
    requested.items.append(Item(item.file, item.line, event_to_record, None))


def merge_correction(
    game: RevisedGame, people: Identities, stated: Mapping[str, Any], columns: CsvColumns
) -> dict[str, Any]:
    """Merge the members that a table states into the data of a recorded game; players keep their recorded ids."""
    stated = (
        {name: value for name, value in stated.items() if name not in ("numbers", "extra")}
        | _merge_members("numbers", game.data, stated, columns)
        | _merge_members("extra", game.data, stated, columns)
    )
    unchanged = {name: value for name, value in game.data.items() if name not in (*columns.game, "numbers", "extra")}
    if FORFEIT in game.data.get("extra", {}) and FORFEIT not in stated.get("extra", {}):
        unchanged.pop("rated", None)  # the game was unrated only because it was a forfeit
    if not columns.places and not columns.player:
        return {**unchanged, **stated, "participants": game.data["participants"]}
    recorded = {people.current(participant["player"]): participant for participant in game.data["participants"]}
    # columns for places state both the player and the place
    stated_members = {"player", "place"} if columns.places else {*columns.player}
    participants = []
    for participant in stated["participants"]:
        before = recorded.get(people.current(to_nfc(str(participant.get("player")))), {})
        participant = {**participant, **_merge_members("numbers", before, participant, columns)}
        unchanged_members = {name: value for name, value in before.items() if name not in (*stated_members, "numbers")}
        recorded_ids = {"player": before["player"]} if before else {}
        leaver = recorded.get(people.current(to_nfc(str(participant.get("replaces")))))
        if "replaces" in participant and leaver:
            recorded_ids["replaces"] = leaver["player"]
        participants.append({**unchanged_members, **participant, **recorded_ids})
    return {**unchanged, **stated, "participants": participants}


def _merge_members(
    name: str, recorded: Mapping[str, Any], stated: Mapping[str, Any], columns: CsvColumns
) -> dict[str, Any]:
    """Merge `numbers` or `extra`: take stated values where the table has a column, and recorded ones elsewhere.

    Returns {name: merged values}, or an empty dictionary if no values remain.
    """
    all_columns, prefix = (*columns.game, *columns.player), f"{name}."
    in_table = {column.removeprefix(prefix) for column in all_columns if column.startswith(prefix)}
    unchanged = {key: value for key, value in recorded.get(name, {}).items() if key not in in_table}
    merged = unchanged | {**stated.get(name, {})}
    return {name: merged} if merged else {}


def join_sides(
    game: RevisedGame, cells: Sequence[str], people: Identities, syntax: CellSyntax
) -> tuple[str, list[str]] | None:
    """Group the typed players of a team game into sides; return the separator of partners, and a cell for each side.

    Players in separate cells are grouped by their recorded teams. Returns None if the game has no recorded teams, or if
    they can stay because each cell contains whole teams.

    >>> participants = [{"player": name, "place": 1 + 2 * (number > 1), "team": number // 2}
    ...                 for number, name in enumerate(("anna", "ben", "cleo", "dora"))]
    >>> game = RevisedGame({"participants": participants}, 0, False, None)
    >>> join_sides(game, ["cleo", "dora", "anna", "ben"], Identities(), CellSyntax())
    ('+', ['cleo+dora', 'anna+ben'])
    """
    team_of = {
        people.current(participant["player"]): participant["team"]
        for participant in game.data["participants"]
        if "team" in participant
    }
    split = [syntax.split(cell) for cell in cells]
    groups = [[people.current(to_nfc(player)) for side in sides for player in side.players] for sides in split]
    has_whole_teams = all(
        player in team_of and {mate for mate in team_of if team_of[mate] == team_of[player]} <= {*group}
        for group in groups
        for player in group
    )
    if not team_of or has_whole_teams:
        return None
    typed_sides = [_split_mates(side, team_of) for sides in split for side in sides]
    if len(groups) == len({*team_of.values()}) < len(typed_sides):
        typed_sides = [TypedSide(group) for group in groups]  # the user joined partners with =, as for ties
    elif all(len(side.players) == 1 for side in typed_sides):
        # partners are in separate cells
        players = [side.players[0] for side in typed_sides]
        players = players if {*players} == {*team_of} else [*team_of]
        teams = dict.fromkeys(team_of[player] for player in players)
        typed_sides = [TypedSide([player for player in players if team_of[player] == team]) for team in teams]
    separator = next(sign for sign in ("+", "&", "/", "++") if not any(sign in name for name in team_of))
    return separator, [CellSyntax((separator,)).join([side]) for side in typed_sides]


def _split_mates(side: TypedSide, known: Collection[str]) -> TypedSide:
    """Split the texts of a typed side at the usual separators of partners, except texts that are known names."""
    parts = [[text] if text in known else re.split(r"\s*[+&/]\s*", text) for text in side.players]
    return side._replace(players=[player for players in parts for player in players if player])


def add_scores(
    game: RevisedGame, players: Sequence[str], people: Identities, *, score: str, syntax: CellSyntax
) -> tuple[str, ...]:
    """Add the parts of a score such as 3:2 to the cells of players; return the cells.

    Without `players`, use the players of the game in the order of their places. Raises `Refused` (score-missing) if
    the score does not have one number for each cell, or if a cell has a score; `Refused` (bad-identifier) if a cell
    cannot be split; `BadArgument` for a game of a kind other than placing.
    """
    _refuse_other_kind(game)
    cells = [*players]
    if not players:
        seats = zip(GAME_TYPES["placing"].places(game.data), game.data["participants"], strict=True)
        by_place = sorted(seats, key=itemgetter(0))
        for _, tied in groupby(by_place, itemgetter(0)):
            cells.append(syntax.join(TypedSide([people.current(participant["player"])]) for _, participant in tied))
    scores = score.split(":")
    if len(scores) != len(cells) or not all(has_score(f"player:{text}") for text in scores):
        example = ":".join(str(part) for part in range(len(cells) + 1, 1, -1))
        message = f"the score {score} does not have one number for each of {' '.join(cells)}; write it like {example}"
        raise Refused("score-missing", message)
    split = [(syntax.split(cell), text) for cell, text in zip(cells, scores, strict=True)]
    if scored := next((side for sides, _ in split for side in sides if side.score is not None), None):
        message = f"both {syntax.join([scored])} and --score {score} give a score; leave out one of them"
        raise Refused("score-missing", message)
    return tuple(syntax.join(side._replace(score=text) for side in sides) for sides, text in split)


def place_players(
    game: RevisedGame, players: tuple[str, ...], people: Identities, syntax: CellSyntax
) -> list[dict[str, Any]]:
    """Return the participants at their new places; recorded participants keep their ids and other members.

    Cells may contain scores (`anna:3`). If cells join partners, they define all teams; otherwise the recorded teams
    stay. If the new places contradict the scores, or a new player has no score, each place keeps its score. Raises
    `BadArgument` for a game of a kind other than placing, `Refused` for invalid places or scores.
    """
    _refuse_other_kind(game)
    before = {people.current(participant["player"]): participant for participant in game.data["participants"]}
    new: list[dict[str, Any]] = []
    cells = syntax.parse_participants(players, low=game.data.get("score_order") == "low")
    if syntax.partners:
        before = {name: {**participant} for name, participant in before.items()}
        for participant in before.values():
            participant.pop("team", None)
    for _, sides in groupby(cells, itemgetter("place")):
        place = count_seats({"participants": new}) + 1
        for player in sides:
            previous = before.get(people.current(to_nfc(player["player"])), {})
            score_member = {"score": player["score"]} if "score" in player else {}
            new.append({**player, **previous, **score_member, "place": place})
    try:
        GAME_TYPES["placing"].check({**game.data, "participants": new})
    except Refused as problem:
        if problem.code != "score-contradicts-place":
            raise
        code, explanation = problem.code, f"{problem.message}, or"  # the message ends with other remedies
    else:
        if (conflict := _find_score_conflict(game.data, new)) is None:
            return new
        code, explanation = conflict.code, f"{conflict.message};"
    if (with_scores := _assign_scores_by_place(game.data, new)) is None:
        example = f"such as --score {':'.join('321'[: len(players)])}" if 2 <= len(players) <= 3 else "joined by colons"
        message = f"{explanation} pass --score with the scores in the order of the places, {example}"
        raise Refused(code, message)
    return with_scores


def _refuse_other_kind(game: RevisedGame) -> None:
    """Raise `BadArgument` for a game of a kind other than placing."""
    if (kind := game.data.get("kind", "placing")) != "placing":
        message = f"PLAYERS, --score and --sets cannot correct a game of kind {kind}; use --edit, or JSON on"
        raise BadArgument(f"{message} standard input")


def _find_score_conflict(game: dict[str, Any], new: list[dict[str, Any]]) -> Refused | None:
    """Return a refusal if a player lacks a score, or tied players have different scores; else None.

    Return None, too, if no recorded player has a score.
    """
    if not any("score" in participant for participant in game["participants"]):
        return None
    if unscored := next((p["player"] for p in new if "score" not in p and "replaces" not in p), None):
        message = f"{quote(unscored)} has no score, but the recorded players have scores"
        return Refused("score-missing", message)
    for place, participants in groupby(new, itemgetter("place")):
        tied = [participant for participant in participants if "score" in participant]
        if len({str(participant["score"]) for participant in tied}) > 1:
            names = " and ".join(quote(participant["player"]) for participant in tied)
            return Refused("score-contradicts-place", f"{names} are tied at place {place} but have different scores")
    return None


def _assign_scores_by_place(game: dict[str, Any], new: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the new participants with the scores recorded for their places.

    Returns None if the places differ, or if a place does not have exactly one score.
    """
    old, places_of = game["participants"], GAME_TYPES["placing"].places
    places, new_places = places_of(game), places_of({**game, "participants": new})
    scores = {place: participant.get("score") for place, participant in zip(places, old, strict=True)}
    has_one_score_per_place = all(
        scores[place] == participant.get("score") is not None for place, participant in zip(places, old, strict=True)
    )
    if not has_one_score_per_place or sorted(places) != sorted(new_places):
        return None
    return [{**participant, "score": scores[place]} for place, participant in zip(new_places, new, strict=True)]


def restore_recorded_ids(new: dict[str, Any], game: RevisedGame, people: Identities) -> dict[str, Any]:
    """Return a corrected game in which the recorded participants have their recorded ids.

    Edited data contains current ids, because `ratings games` shows these.
    """
    recorded = {
        people.current(participant["player"]): participant["player"] for participant in game.data["participants"]
    }

    def find_recorded_id(name: Any) -> Any:
        return recorded.get(people.current(to_nfc(name)), name) if isinstance(name, str) else name

    participants = new.get("participants")
    if (
        not people
        or not isinstance(participants, list)
        or not all(isinstance(participant, dict) for participant in participants)
    ):
        return new
    with_recorded_ids = [
        {
            name: find_recorded_id(value) if name in ("player", "replaces") else value
            for name, value in participant.items()
        }
        for participant in participants
    ]
    return {**new, "participants": with_recorded_ids}


def refuse_unchanged(before: RevisedGame, draft: Draft) -> None:
    """Raise `Refused` (nothing-to-correct) for a correction that equals the recorded game."""
    new = parse_object(draft.data.encode())["game"]
    new_time = new.pop("occurred_at", None)
    is_same_time = new_time is None or new_time == format_instant(before.occurred_at)
    if is_same_time and to_canonical_content("game.recorded", 0, new) == to_canonical_content(
        "game.recorded", 0, before.data
    ):
        message = f"{quote(new['game_id'])} already has these values; there is nothing to correct"
        raise Refused("nothing-to-correct", message)
