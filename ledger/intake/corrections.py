"""How recorded games should be: from a table, from players in another order, or as data; and which games to void.

A game keeps what nobody says anything about, and its players the ids under which they were recorded.
"""

from __future__ import annotations

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
    """What a file asks for: events to enter, or what is wrong with its lines; the games that are already like that; and
    by subject the event that each decision was based on.
    """

    items: list[Item | Rejection]
    unchanged: list[str]
    looked_at: dict[str, str]


def void_from_file(log: EventLookup, file: str, reason: str, decided_at: int) -> RequestedChanges:
    """Return the games of a file, one id per line, as events that void them; voided ones are left alone. Raises
    `Refused`.
    """
    found = RequestedChanges([], [], {})
    seen: dict[str, int] = {}
    for number, line in read_lines(file):
        try:
            name = to_nfc(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
        except UnicodeDecodeError:
            found.items.append(Rejection("bad-utf8", "the line is not UTF-8; save the file as UTF-8", file, number))
            continue
        if seen.setdefault(name, number) != number:
            continue
        _void(found, name, live_game(log.about(f"game:{name}")), reason, decided_at, file, number)
    if not seen and not found.items:
        raise Refused("empty-file", f"{file} names no game; it needs one game_id per line")
    return found


def void_batches(connection: Connection, name: str, reason: str, decided_at: int) -> RequestedChanges:
    """Return the games that the imports under a name recorded, as events that void them; voided ones are left alone.

    A position names a single one of these imports. Raises `Refused` (batch-unknown).
    """
    found, log = RequestedChanges([], [], {}), Log(connection)
    for first, last in sorted(there for one in named_batches(connection, name) for there in one.ranges):
        changed = changed_games(connection, first)
        for page in read_records(connection, first - 1, last):
            for event in read_known_events(row for row in page if '"type":"game.recorded"' in row[1]):
                if event.type == "game.recorded":
                    subject = f"game:{event.data['game_id']}"
                    game = live_game(log.about(subject) if subject in changed else [event])
                    assert game is not None
                    _void(found, event.data["game_id"], game, reason, decided_at)
    return found


def _void(
    found: RequestedChanges, name: str, game: RevisedGame | None, reason: str, decided_at: int, *where: Any
) -> None:
    """Add what voids a game, unless it is voided."""
    if game is not None and game.voided:
        found.unchanged.append(name)
        return
    if game is not None:
        found.looked_at[f"game:{name}"] = game.last.event_id
    event = {"type": "game.voided", "data": {"game_id": name, "reason": reason}}
    file, line = where or ("", 0)
    found.items.append(Item(file, line, {**event, "occurred_at": format_instant(decided_at)}, None))


def correct_from_table(
    log: EventLookup, people: Identities, file: str, reason: str, decided_at: int, options: TableOptions
) -> RequestedChanges:  # fmt: skip
    """Return the games of a table as events that correct those recorded differently.

    Columns that the table lacks say nothing: a game keeps what it has there. An empty cell removes the value.
    """
    found = RequestedChanges([], [], {})
    columns: list[CsvColumns] = []
    for item in read_items(file, options._replace(found=columns.append, needed=("game_id",))):
        if isinstance(item, Progress | FileDigest | FileNote):
            continue
        if isinstance(item, Rejection):
            found.items.append(item)
        elif isinstance(item.event, Refused):
            found.items.append(item.event.rejection(item.file, item.line))
        elif not item.table or not isinstance(item.event, dict):
            told = "corrections come as a table; events of JSON go in with: ratings import"
            found.items.append(Rejection("bad-csv", told, item.file, item.line))
            break
        else:
            _correct(found, log, people, item, columns[0], reason, decided_at)
    return found


def _correct(
    found: RequestedChanges,
    log: EventLookup,
    people: Identities,
    item: Item,
    columns: CsvColumns,
    reason: str,
    decided_at: int,
) -> None:
    """Add what a game in a table asks for."""
    event = item.event
    assert isinstance(event, dict)
    name = to_nfc(event["data"]["game_id"])
    if (game := live_game(log.about(f"game:{name}"))) is None:
        told = f"no game {quote(name)} is recorded; new games go in with: ratings import"
        found.items.append(Rejection("game-unknown", told, item.file, item.line))
        return
    if columns.is_numbered and (game.voided or game.data["game"] != event["data"].get("game")):
        # the number that the table counted may be that of another game
        told = f"{quote(name)} is another game; a table without numbers is compared by: ratings import FILE --sync"
        found.items.append(Rejection("id-conflict", told, item.file, item.line))
        return
    new = merge_correction(game, people, event["data"], columns)
    at = event.get("occurred_at")
    try:
        moved = at is not None and parse_instant(at) != game.occurred_at
        same = not moved and normalise_game(people.present(new)) == normalise_game(people.present(game.data))
    except (Refused, LookupError, TypeError, ValueError):
        same = False  # what is wrong with it is reported when it is read as an event
        moved = True
    if same and not game.voided:
        found.unchanged.append(name)
        return
    found.looked_at[f"game:{name}"] = game.last.event_id
    dated = {"occurred_at": at} if moved else {}
    data = {"game_id": name, "reason": reason, "game": {**new, **dated}}
    entered = {"type": "game.corrected", "occurred_at": format_instant(decided_at), "data": data}
    found.items.append(Item(item.file, item.line, entered, None))


def merge_correction(
    game: RevisedGame, people: Identities, told: Mapping[str, Any], columns: CsvColumns
) -> dict[str, Any]:
    """Return a recorded game with what a table says about it; its players keep the ids of the record."""
    told = (
        {name: value for name, value in told.items() if name not in ("numbers", "extra")}
        | _members("numbers", NUMBERS, game.data, told, columns)
        | _members("extra", EXTRA, game.data, told, columns)
    )
    kept = {name: value for name, value in game.data.items() if name not in (*columns.game, "numbers", "extra")}
    if FORFEIT in game.data.get("extra", {}) and FORFEIT not in told.get("extra", {}):
        kept.pop("rated", None)  # that it was not played is why it was not rated
    if not columns.places and not columns.player:
        return {**kept, **told, "participants": game.data["participants"]}
    before = {people.current(one["player"]): one for one in game.data["participants"]}
    # place columns give both for everybody
    said_of_player = {"player", "place"} if columns.places else {*columns.player}
    participants = []
    for one in told["participants"]:
        there = before.get(people.current(to_nfc(str(one.get("player")))), {})
        one = {**one, **_members("numbers", NUMBERS, there, one, columns)}
        rest = {name: value for name, value in there.items() if name not in (*said_of_player, "numbers")}
        own = {"player": there["player"]} if there else {}
        replaced = before.get(people.current(to_nfc(str(one.get("replaces")))), {}) if "replaces" in one else {}
        participants.append({**rest, **one, **own, **({"replaces": replaced["player"]} if replaced else {})})
    return {**kept, **told, "participants": participants}


def _members(
    name: str, prefix: str, there: Mapping[str, Any], told: Mapping[str, Any], columns: CsvColumns
) -> dict[str, Any]:
    """Return a member that holds others by name, with those of columns that a table has, and else those that are there;
    or nothing.
    """
    named = {column.removeprefix(prefix) for column in (*columns.game, *columns.player) if column.startswith(prefix)}
    kept = {own: value for own, value in there.get(name, {}).items() if own not in named}
    found = kept | {**told.get(name, {})}
    return {name: found} if found else {}


def add_scores(
    game: RevisedGame, players: Sequence[str], people: Identities, *, score: str, whole: Collection[str]
) -> tuple[str, ...]:
    """Return players in cells with the scores of a text such as 3:2, by default those of the game at their places.

    Raises `Refused` (score-missing) if the text does not have a score for each place.
    """
    cells = [*players]
    if not players and game.data.get("kind", "placing") == "placing":
        seats = zip(GAME_TYPES["placing"].places(game.data), game.data["participants"], strict=True)
        by_place = sorted(seats, key=itemgetter(0))
        for _, tied in groupby(by_place, itemgetter(0)):
            cells.append(CellSyntax().join(TypedSide([people.current(one["player"])]) for _, one in tied))
    scores = score.split(":")
    if len(scores) != len(cells) or not all(has_score(f"player:{one}") for one in scores):
        places = " ".join(cells)
        told = f"--score {score} does not give a score for each of {places}, joined by colons, such as 3:2"
        raise Refused("score-missing", told)
    split = [(CellSyntax(whole=whole).split(cell), one) for cell, one in zip(cells, scores, strict=True)]
    if twice := next((side for sides, _ in split for side in sides if side.score is not None), None):
        raise Refused(
            "score-missing", f"{CellSyntax().join([twice])} and --score {score} both give a score; leave one out"
        )
    return tuple(CellSyntax().join(side._replace(score=one) for side in sides) for sides, one in split)


def place_players(
    game: RevisedGame, players: tuple[str, ...], people: Identities, whole: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the participants at their new places; previous ones keep their ids and what else is known of them.

    Cells may have scores (`anna:3`), except ids in `whole`. Where places and scores would contradict each other, or
    somebody new has none, each place keeps its score. Raises `BadArgument` for a game of another type, `Refused`.
    """
    if game.data.get("kind", "placing") != "placing":
        raise BadArgument(f"a game of kind {game.data['kind']} is corrected by --edit or JSON on standard input")
    before = {people.current(participant["player"]): participant for participant in game.data["participants"]}
    new: list[dict[str, Any]] = []
    cells = CellSyntax(whole=whole).participants(players, low=game.data.get("score_order") == "low")
    for _, sides in groupby(cells, itemgetter("place")):
        seat = count_seats({"participants": new}) + 1
        for player in sides:
            there = before.get(people.current(to_nfc(player["player"])), {})
            scored = {"score": player["score"]} if "score" in player else {}
            new.append({**player, **there, **scored, "place": seat})
    try:
        GAME_TYPES["placing"].check({**game.data, "participants": new})
    except Refused as problem:
        if problem.code != "score-contradicts-place":
            raise
        refusal = problem
    else:
        if (contradiction := _contradiction_of_scores(game.data, new)) is None:
            return new
        refusal = contradiction
    if (scored_by_place := _with_scores_of_places(game.data, new)) is None:
        hint = f"such as --score {':'.join('321'[: len(players)])}" if 2 <= len(players) <= 3 else "joined by colons"
        told = f"{refusal.message}; --score gives the scores in the order of the places, {hint}"
        raise Refused(refusal.code, told)
    return scored_by_place


def _contradiction_of_scores(game: dict[str, Any], new: list[dict[str, Any]]) -> Refused | None:
    """Return what a correction must not leave behind: somebody without a score in a game with scores, or a tie of
    players whose scores differ.
    """
    if not any("score" in one for one in game["participants"]):
        return None
    if unscored := next((one["player"] for one in new if "score" not in one and "replaces" not in one), None):
        return Refused("score-missing", f"{quote(unscored)} has no score, unlike the players of the game so far")
    for place, seats in groupby(new, itemgetter("place")):
        tied = [one for one in seats if "score" in one]
        if len({str(one["score"]) for one in tied}) > 1:
            names = " and ".join(quote(one["player"]) for one in tied)
            return Refused("score-contradicts-place", f"{names} are tied at place {place} but have different scores")
    return None


def _with_scores_of_places(game: dict[str, Any], new: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return new participants with the scores that their places have in a game; None if these are not the same places,
    or some place has no score or several.
    """
    old, places_of = game["participants"], GAME_TYPES["placing"].places
    places, new_places = places_of(game), places_of({**game, "participants": new})
    scores = {place: one.get("score") for place, one in zip(places, old, strict=True)}
    is_clear = all(scores[place] == one.get("score") is not None for place, one in zip(places, old, strict=True))
    if not is_clear or sorted(places) != sorted(new_places):
        return None
    return [{**one, "score": scores[place]} for place, one in zip(new_places, new, strict=True)]


def restore_recorded_ids(new: dict[str, Any], game: RevisedGame, people: Identities) -> dict[str, Any]:
    """Return a game as it should be, in which previous participants keep the ids under which they were recorded.

    `ratings games` shows them under their current ids.
    """
    recorded = {
        people.current(participant["player"]): participant["player"] for participant in game.data["participants"]
    }

    def under(name: Any) -> Any:
        return recorded.get(people.current(to_nfc(name)), name) if isinstance(name, str) else name

    participants = new.get("participants")
    if not people or not isinstance(participants, list) or not all(isinstance(one, dict) for one in participants):
        return new
    kept = [
        {name: under(value) if name in ("player", "replaces") else value for name, value in one.items()}
        for one in participants
    ]
    return {**new, "participants": kept}


def refuse_same(before: RevisedGame, draft: Draft) -> None:
    """Raises `Refused` (nothing-to-correct) for a correction that says what is already recorded."""
    new = parse_object(draft.data.encode())["game"]
    dated = new.pop("occurred_at", None)
    same = dated is None or dated == format_instant(before.occurred_at)
    if same and meaning("game.recorded", 0, new) == meaning("game.recorded", 0, before.data):
        raise Refused("nothing-to-correct", f"{quote(new['game_id'])} is already recorded like this")
