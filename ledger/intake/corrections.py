"""Build corrections of recorded games from a table, a new order of players, or data; and void many games at once.

A game keeps all members that a correction does not mention, and its players keep their recorded ids.
"""

from __future__ import annotations

import re
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
from ratings_ledger.ledger.events.revisions import EventLookup, RevisedGame, live_game
from ratings_ledger.ledger.events.types import Draft, meaning
from ratings_ledger.ledger.intake.files import FileDigest, FileNote, Item, Progress, read_items, read_lines
from ratings_ledger.ledger.intake.forfeits import FORFEIT
from ratings_ledger.ledger.intake.parsing import CellSyntax, TypedSide, has_score
from ratings_ledger.ledger.intake.tables.columns import EXTRA, NUMBERS, CsvColumns, TableOptions
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.log import Log, changed_games, read_known_events, read_records
from ratings_ledger.ledger.validation.batches import named_batches
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.repeated_games import normalise_game


class RequestedChanges(NamedTuple):
    """The changes that a file requests: events to record, refused lines, and the games that need no change.

    `seen_events` has, by subject, the id of the event that each decision was based on.
    """

    items: list[Item | Rejection]
    unchanged: list[str]
    seen_events: dict[str, str]


def void_from_file(log: EventLookup, file: str, reason: str, decided_at: int) -> RequestedChanges:
    """Return events that void the games of a file, which has one id per line, unless they are voided already.

    Raises `Refused`.
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
        game = live_game(log.about(f"game:{game_id}"))
        _add_void(requested, game_id, game, reason, decided_at, file=file, line=number)
    if not first_lines and not requested.items:
        raise Refused("empty-file", f"{file} names no game; it needs one game_id per line")
    return requested


def void_batches(connection: Connection, name: str, reason: str, decided_at: int) -> RequestedChanges:
    """Return events that void the games recorded by the imports with this name, unless they are voided already.

    `name` may also be a position, which selects one import. Raises `Refused` (batch-unknown).
    """
    requested, log = RequestedChanges([], [], {}), Log(connection)
    for first, last in sorted(positions for batch in named_batches(connection, name) for positions in batch.ranges):
        changed = changed_games(connection, first)
        for page in read_records(connection, first - 1, last):
            for event in read_known_events(row for row in page if '"type":"game.recorded"' in row[1]):
                if event.type == "game.recorded":
                    subject = f"game:{event.data['game_id']}"
                    game = live_game(log.about(subject) if subject in changed else [event])
                    assert game is not None
                    _add_void(requested, event.data["game_id"], game, reason, decided_at)
    return requested


def _add_void(
    requested: RequestedChanges,
    game_id: str,
    game: RevisedGame | None,
    reason: str,
    decided_at: int,
    *,
    file: str = "",
    line: int = 0,
) -> None:
    """Add an event that voids a game, unless it is voided already."""
    if game is not None and game.voided:
        requested.unchanged.append(game_id)
        return
    if game is not None:
        requested.seen_events[f"game:{game_id}"] = game.last.event_id
    event = {"type": "game.voided", "data": {"game_id": game_id, "reason": reason}}
    requested.items.append(Item(file, line, {**event, "occurred_at": format_instant(decided_at)}, None))


def correct_from_table(
    log: EventLookup, people: Identities, file: str, reason: str, decided_at: int, options: TableOptions
) -> RequestedChanges:
    """Return events that correct the games whose records differ from a table.

    A game keeps the members for which the table has no column. An empty cell removes the value.
    """
    requested = RequestedChanges([], [], {})
    columns: list[CsvColumns] = []
    for item in read_items(file, options._replace(found=columns.append, needed=("game_id",))):
        if isinstance(item, Progress | FileDigest | FileNote):
            continue
        if isinstance(item, Rejection):
            requested.items.append(item)
        elif isinstance(item.event, Refused):
            requested.items.append(item.event.rejection(item.file, item.line))
        elif not item.table or not isinstance(item.event, dict):
            message = "corrections need a table; for events as JSON run: ratings import FILE"
            requested.items.append(Rejection("bad-csv", message, item.file, item.line))
            break
        else:
            if not (columns[0].is_numbered or "game" in (*columns[0].game, *options.fixed)):
                # the table does not name it: the only scored game identifies new games, and changes no recorded one
                item.event["data"].pop("game", None)
            _add_correction(requested, log, people, item, columns[0], reason, decided_at)
    return requested


def _add_correction(
    requested: RequestedChanges,
    log: EventLookup,
    people: Identities,
    item: Item,
    columns: CsvColumns,
    reason: str,
    decided_at: int,
) -> None:
    """Add a correction if the table's game differs from the recorded one."""
    event = item.event
    assert isinstance(event, dict)
    game_id = to_nfc(event["data"]["game_id"])
    if (game := live_game(log.about(f"game:{game_id}"))) is None:
        message = f"no game {quote(game_id)} is recorded; to add new games run: ratings import FILE"
        requested.items.append(Rejection("game-unknown", message, item.file, item.line))
        return
    if columns.is_numbered and (game.voided or game.data["game"] != event["data"].get("game")):
        # ids count the rows here, so this one may belong to another game
        message = f"{quote(game_id)} is another game; to compare a table without ids run: ratings import FILE --sync"
        requested.items.append(Rejection("id-conflict", message, item.file, item.line))
        return
    new = merge_correction(game, people, event["data"], columns)
    at = event.get("occurred_at")
    try:
        has_new_time = at is not None and parse_instant(at) != game.occurred_at
        is_same = not has_new_time and normalise_game(people.present(new)) == normalise_game(people.present(game.data))
    except (Refused, LookupError, TypeError, ValueError):
        is_same = False  # the error is reported when the event is read
        has_new_time = True
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
    """Merge a recorded game with the members that a table states; its players keep their recorded ids."""
    stated = (
        {name: value for name, value in stated.items() if name not in ("numbers", "extra")}
        | _merge_members("numbers", NUMBERS, game.data, stated, columns)
        | _merge_members("extra", EXTRA, game.data, stated, columns)
    )
    unchanged = {name: value for name, value in game.data.items() if name not in (*columns.game, "numbers", "extra")}
    if FORFEIT in game.data.get("extra", {}) and FORFEIT not in stated.get("extra", {}):
        unchanged.pop("rated", None)  # the game was unrated only because it was a forfeit
    if not columns.places and not columns.player:
        return {**unchanged, **stated, "participants": game.data["participants"]}
    recorded = {people.current(participant["player"]): participant for participant in game.data["participants"]}
    # a column per place gives both the player and the place
    stated_of_player = {"player", "place"} if columns.places else {*columns.player}
    participants = []
    for participant in stated["participants"]:
        before = recorded.get(people.current(to_nfc(str(participant.get("player")))), {})
        participant = {**participant, **_merge_members("numbers", NUMBERS, before, participant, columns)}
        rest = {name: value for name, value in before.items() if name not in (*stated_of_player, "numbers")}
        own = {"player": before["player"]} if before else {}
        if "replaces" in participant and (
            leaver := recorded.get(people.current(to_nfc(str(participant["replaces"]))), {})
        ):
            own["replaces"] = leaver["player"]
        participants.append({**rest, **participant, **own})
    return {**unchanged, **stated, "participants": participants}


def _merge_members(
    name: str, prefix: str, recorded: Mapping[str, Any], stated: Mapping[str, Any], columns: CsvColumns
) -> dict[str, Any]:
    """Merge `numbers` or `extra`: the stated value for each of the table's columns, the recorded one for all others.

    Return an empty dictionary if there are no values.
    """
    all_columns = (*columns.game, *columns.player)
    in_table = {column.removeprefix(prefix) for column in all_columns if column.startswith(prefix)}
    unchanged = {key: value for key, value in recorded.get(name, {}).items() if key not in in_table}
    merged = unchanged | {**stated.get(name, {})}
    return {name: merged} if merged else {}


def join_sides(
    game: RevisedGame, cells: Sequence[str], people: Identities, syntax: CellSyntax
) -> tuple[str, list[str]] | None:
    """Return the typed sides of a game of teams as cells, and the text that joins partners in them.

    Return None if the recorded teams can stay, because each cell has all players of its teams. Players in cells of
    their own are joined to the recorded teams.

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
    is_whole = all(
        player in team_of and {mate for mate in team_of if team_of[mate] == team_of[player]} <= {*group}
        for group in groups
        for player in group
    )
    if not team_of or is_whole:
        return None
    typed_sides = [_split_mates(side, team_of) for sides in split for side in sides]
    if len(groups) == len({*team_of.values()}) < len(typed_sides):
        typed_sides = [TypedSide(group) for group in groups]  # partners are joined like tied players
    elif all(len(side.players) == 1 for side in typed_sides):
        # the partners are in cells of their own
        players = [side.players[0] for side in typed_sides]
        players = players if {*players} == {*team_of} else [*team_of]
        teams = dict.fromkeys(team_of[player] for player in players)
        typed_sides = [TypedSide([player for player in players if team_of[player] == team]) for team in teams]
    joint = next(sign for sign in ("+", "&", "/", "++") if not any(sign in name for name in team_of))
    return joint, [CellSyntax((joint,)).join([side]) for side in typed_sides]


def _split_mates(side: TypedSide, known: Collection[str]) -> TypedSide:
    """Split a typed side at what usually joins partners, except for known players."""
    parts = [[text] if text in known else re.split(r"\s*[+&/]\s*", text) for text in side.players]
    return side._replace(players=[player for players in parts for player in players if player])


def add_scores(
    game: RevisedGame, players: Sequence[str], people: Identities, *, score: str, syntax: CellSyntax
) -> tuple[str, ...]:
    """Add scores such as 3:2 to the cells of players. Without cells, use the players of the game in order of place.

    Raises `Refused` (score-missing) unless the text has a score for each place.
    """
    cells = [*players]
    if not players and game.data.get("kind", "placing") == "placing":
        seats = zip(GAME_TYPES["placing"].places(game.data), game.data["participants"], strict=True)
        by_place = sorted(seats, key=itemgetter(0))
        for _, tied in groupby(by_place, itemgetter(0)):
            cells.append(syntax.join(TypedSide([people.current(participant["player"])]) for _, participant in tied))
    scores = score.split(":")
    if len(scores) != len(cells) or not all(has_score(f"player:{text}") for text in scores):
        places = " ".join(cells)
        message = f"the score {score} does not have a part for each of {places}, joined by colons, such as 3:2"
        raise Refused("score-missing", message)
    split = [(syntax.split(cell), text) for cell, text in zip(cells, scores, strict=True)]
    if scored := next((side for sides, _ in split for side in sides if side.score is not None), None):
        both = f"{syntax.join([scored])} and --score {score}"
        raise Refused("score-missing", f"{both} both give a score; leave one out")
    return tuple(syntax.join(side._replace(score=text) for side in sides) for sides, text in split)


def place_players(
    game: RevisedGame, players: tuple[str, ...], people: Identities, syntax: CellSyntax
) -> list[dict[str, Any]]:
    """Return the participants at their new places; earlier ones keep their ids and other members.

    Cells may have scores (`anna:3`). Cells that join partners give all teams; otherwise the recorded teams stay. If
    places and scores conflict, or a new player has no score, scores stay with the places. Raises `BadArgument` for a
    game of another type, `Refused`.
    """
    if game.data.get("kind", "placing") != "placing":
        raise BadArgument(f"a game of kind {game.data['kind']} is corrected by --edit or JSON on standard input")
    before = {people.current(participant["player"]): participant for participant in game.data["participants"]}
    new: list[dict[str, Any]] = []
    cells = syntax.participants(players, low=game.data.get("score_order") == "low")
    if syntax.partners:
        before = {name: {**participant} for name, participant in before.items()}
        for participant in before.values():
            participant.pop("team", None)
    for _, sides in groupby(cells, itemgetter("place")):
        seat = count_seats({"participants": new}) + 1
        for player in sides:
            previous = before.get(people.current(to_nfc(player["player"])), {})
            score_member = {"score": player["score"]} if "score" in player else {}
            new.append({**player, **previous, **score_member, "place": seat})
    try:
        GAME_TYPES["placing"].check({**game.data, "participants": new})
    except Refused as problem:
        if problem.code != "score-contradicts-place":
            raise
        refusal = problem
    else:
        if (conflict := _find_score_conflict(game.data, new)) is None:
            return new
        refusal = conflict
    if (scored_by_place := _assign_scores_by_place(game.data, new)) is None:
        hint = f"such as --score {':'.join('321'[: len(players)])}" if 2 <= len(players) <= 3 else "joined by colons"
        message = f"{refusal.message}; --score gives the scores in the order of the places, {hint}"
        raise Refused(refusal.code, message)
    return scored_by_place


def _find_score_conflict(game: dict[str, Any], new: list[dict[str, Any]]) -> Refused | None:
    """Return a refusal if a player has no score, or tied players have different ones."""
    if not any("score" in participant for participant in game["participants"]):
        return None
    if unscored := next((p["player"] for p in new if "score" not in p and "replaces" not in p), None):
        return Refused("score-missing", f"{quote(unscored)} has no score, but the recorded players have one")
    for place, seats in groupby(new, itemgetter("place")):
        tied = [participant for participant in seats if "score" in participant]
        if len({str(participant["score"]) for participant in tied}) > 1:
            names = " and ".join(quote(participant["player"]) for participant in tied)
            return Refused("score-contradicts-place", f"{names} are tied at place {place} but have different scores")
    return None


def _assign_scores_by_place(game: dict[str, Any], new: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Give each new participant the score recorded for their place.

    Return None if the places differ, or if a place has no score or several.
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
    """Return a corrected game with the recorded ids of its earlier participants.

    `ratings games` shows participants under their current ids, so data that is edited has these.
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


def refuse_same(before: RevisedGame, draft: Draft) -> None:
    """Raise `Refused` (nothing-to-correct) for a correction that equals the recorded game."""
    new = parse_object(draft.data.encode())["game"]
    dated = new.pop("occurred_at", None)
    is_same_time = dated is None or dated == format_instant(before.occurred_at)
    if is_same_time and meaning("game.recorded", 0, new) == meaning("game.recorded", 0, before.data):
        raise Refused(
            "nothing-to-correct", f"{quote(new['game_id'])} already has these values; there is nothing to correct"
        )
