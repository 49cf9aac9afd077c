"""Fixing many games at once, from a file: `void --file`, `correct --file`. All or nothing, shown together."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from cli.arguments.options import composed
from cli.output import render
from ledger.events.canonical import format_instant, parse_instant
from ledger.events.revisions import Events, RevisedGame, live_game
from ledger.intake.csv_cells import CsvColumns, TableOptions
from ledger.intake.csv_games import TIE
from ledger.intake.files import Far, Item, read_items, read_lines
from ledger.rejections import Refused, Rejection, shown
from ledger.validation.identities import Identities
from ledger.validation.repeated_games import said

SHOWN_GAMES = 20


class Many(NamedTuple):
    """What a file asks for: events to enter, or what is wrong with its lines; the games that are already like that; and
    by subject the event that each decision was based on.
    """

    items: list[Item | Rejection]
    unchanged: list[str]
    looked_at: dict[str, str]


def voids(log: Events, file: str, reason: str, decided_at: int) -> Many:
    """The games of a file, one id per line, as events that void them; voided ones are left alone. Raises `Refused`."""
    found = Many([], [], {})
    seen: dict[str, int] = {}
    for number, line in read_lines(file):
        try:
            name = composed(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
        except UnicodeDecodeError:
            found.items.append(Rejection("bad-utf8", "the line is not UTF-8; save the file as UTF-8", file, number))
            continue
        if seen.setdefault(name, number) != number:
            continue
        game = live_game(log.about(f"game:{name}"))
        if game is not None and game.voided:
            found.unchanged.append(name)
            continue
        if game is not None:
            found.looked_at[f"game:{name}"] = game.last.event_id
        event = {"type": "game.voided", "data": {"game_id": name, "reason": reason}}
        found.items.append(Item(file, number, {**event, "occurred_at": format_instant(decided_at)}, None))
    if not seen and not found.items:
        raise Refused("empty-file", f"{file} names no game; it needs one game_id per line")
    return found


def corrections(
    log: Events, people: Identities, file: str, reason: str, decided_at: int, options: TableOptions
) -> Many:  # fmt: skip
    """The games of a table as events that correct those recorded differently.

    Columns that the table lacks say nothing: a game keeps what it has there. An empty cell removes the value.
    """
    found = Many([], [], {})
    columns: list[CsvColumns] = []
    for item in read_items(file, options._replace(found=columns.append)):
        if isinstance(item, Far):
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
            _correct(found, log, people, item, item.event, columns[0], reason, decided_at)
    return found


def _correct(
    found: Many, log: Events, people: Identities, item: Item, event: dict[str, Any], columns: CsvColumns, reason: str,
    decided_at: int,
) -> None:  # fmt: skip
    """Add what a game in a table asks for."""
    name = composed(event["data"]["game_id"])
    if (game := live_game(log.about(f"game:{name}"))) is None:
        told = f"no game {shown(name)} is recorded; new games go in with: ratings import"
        found.items.append(Rejection("game-unknown", told, item.file, item.line))
        return
    new = as_it_should_be(game, people, event["data"], columns)
    try:
        moved = parse_instant(event["occurred_at"]) != game.occurred_at
        same = not moved and said(people.present(new)) == said(people.present(game.data))
    except (Refused, LookupError, TypeError, ValueError):
        same = False  # what is wrong with it is reported when it is read as an event
        moved = True
    if same and not game.voided:
        found.unchanged.append(name)
        return
    found.looked_at[f"game:{name}"] = game.last.event_id
    dated = {"occurred_at": event["occurred_at"]} if moved else {}
    data = {"game_id": name, "reason": reason, "game": {**new, **dated}}
    entered = {"type": "game.corrected", "occurred_at": format_instant(decided_at), "data": data}
    found.items.append(Item(item.file, item.line, entered, None))


def as_it_should_be(
    game: RevisedGame, people: Identities, told: Mapping[str, Any], columns: CsvColumns
) -> dict[str, Any]:
    """A recorded game with what a table says about it; its players keep the ids under which they were recorded."""
    kept = {name: value for name, value in game.data.items() if name not in columns.game}
    before = {people.current(one["player"]): one for one in game.data["participants"]}
    # place columns give both for everybody
    said_of_player = {"player", "place"} if columns.places else {*columns.player}
    participants = []
    for one in told["participants"]:
        there = before.get(people.current(composed(str(one.get("player")))), {})
        rest = {name: value for name, value in there.items() if name not in said_of_player}
        own = {"player": there["player"]} if there else {}
        replaced = before.get(people.current(composed(str(one.get("replaces")))), {}) if "replaces" in one else {}
        participants.append({**rest, **one, **own, **({"replaces": replaced["player"]} if replaced else {})})
    return {**kept, **told, "participants": participants}


def placed(players: tuple[str, ...]) -> list[dict[str, Any]]:
    """Players in the order of their places, tied ones joined by =, as the participants of a game."""
    found: list[dict[str, Any]] = []
    for seat in players:
        place = len(found) + 1
        found += [{"player": player.strip(), "place": place} for player in seat.split(TIE)]
    return found


def note_unchanged(names: list[str], state: str) -> None:
    """Say which games of a file are left alone, since they are already in this state."""
    if names:
        more = f" and {len(names) - SHOWN_GAMES:,} more" if len(names) > SHOWN_GAMES else ""
        told = f"note: {render.count(len(names), 'game')} already {state}: {', '.join(names[:SHOWN_GAMES])}{more}"
        render.note(render.plain(told))
