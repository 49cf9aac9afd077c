"""Read NDJSON of Lichess: the site's export of a player's or a tournament's games, one game per line.

    {"id":"q7ZvsdUF","rated":true,"variant":"standard","createdAt":1732302307000,"lastMoveAt":1732302607000,
     "status":"mate","winner":"white","players":{"white":{"user":{"name":"anna"}},"black":{"user":{"name":"ben"}}}}

A game gets the same id as from the site's PGN, so importing both exports records it only once.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.intake.forfeits import FIRST_PRESENT, FORFEIT, SECOND_PRESENT
from ratings_ledger.ledger.intake.json_lines import number_lines
from ratings_ledger.ledger.intake.readers.other_programs import COLUMNS, CommonMembers, SpecialGames
from ratings_ledger.ledger.intake.readers.reader import Opened, Read, ReadAs, Reader
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.rejections import Refused, quote

SITE = "lichess.org/"
_ID = re.compile(r"\w{8}", re.ASCII)
_PLACES = {"white": (1, 2), "black": (2, 1), None: (1, 1)}
# the value of `extra.forfeit`, by winner
_FORFEITS = {"white": FIRST_PRESENT, "black": SECOND_PRESENT}
_STATUSES_WITHOUT_WINNER = frozenset({"draw", "stalemate", "insufficientMaterialClaim", "outoftime", "timeout"})
_UNFINISHED = frozenset({"created", "started", "aborted", "unknownFinish"})
# the statuses of games that a player lost without playing, or by cheating
_FORFEIT_STATUSES = frozenset({"noStart", "cheat"})
# members that every game of Lichess has; no event of this program has all of them
_MEMBERS = (b'"id"', b'"rated"', b'"variant"', b'"players"')


class _GameConverter:
    """A converter of the games of a file to events. It counts the games that it treats specially."""

    def __init__(self, options: TableOptions) -> None:
        self.special_games = SpecialGames()
        self._common = CommonMembers.read(options)

    def convert_game(self, line: bytes) -> dict[str, Any] | None:
        """Convert a game to an event; return None for a game that is left out. Raises `Refused`."""
        game = _parse_game(line)
        status, winner = game.get("status"), game.get("winner")
        if isinstance(status, str) and status in _UNFINISHED:
            self.special_games.add("aborted or unfinished")
            return None
        game_id = game.get("id")
        if not isinstance(game_id, str) or not _ID.fullmatch(game_id):
            raise Refused(
                "bad-value", f"id: {quote(game_id)} is not a game id of Lichess (8 letters or digits); export again"
            )
        names = [_read_player_name(game, colour) for colour in ("white", "black")]
        if None in names:
            self.special_games.add("with the computer or a player without an account")
            return None
        if (
            not isinstance(winner, str | None)
            or winner not in _PLACES
            or not isinstance(status, str)
            or (winner is None and status not in _STATUSES_WITHOUT_WINNER)
        ):
            message = f"winner: {quote(winner)} contradicts the status {quote(status)}; export the games again"
            raise Refused("bad-value", message)
        data = {"game": "chess", **self._common.members, "game_id": SITE + game_id}
        if "game" not in self._common.members and (variant := game.get("variant", "standard")) != "standard":
            problem = f"variant: {quote(variant)} is not standard chess and must be recorded as another game"
            raise Refused("bad-value", f"{problem}; put such games in another file, and import it with --set game=NAME")
        data["participants"] = [
            {"player": name, "place": place} for name, place in zip(names, _PLACES[winner], strict=True)
        ]
        if status in _FORFEIT_STATUSES and winner is not None:
            data["extra"] = {FORFEIT: _FORFEITS[winner]}
        if game.get("rated") is not True:
            data["rated"] = False
            self.special_games.add("marked as casual", "recorded but not rated")
        at = self._common.occurred_at or _parse_start(game)
        return {"type": "game.recorded", "occurred_at": at, "data": data}


def _parse_game(line: bytes) -> dict[str, Any]:
    try:
        game = json.loads(line)
    except (ValueError, RecursionError):
        raise Refused("bad-json", f"{quote(line[:60])} is not a JSON object; export the games again") from None
    if not isinstance(game, dict):
        raise Refused("bad-json", f"{quote(game)} is not a JSON object; export the games again")
    return game


def _read_player_name(game: dict[str, Any], colour: str) -> str | None:
    """Return a player's name, or None for the computer or a player without an account. Raises `Refused`."""
    players = game.get("players")
    player = players.get(colour) if isinstance(players, dict) else None
    if not isinstance(player, dict):
        raise Refused("missing-member", f"the game has no players.{colour}; export the games again")
    user = player.get("user")
    if user is None:
        return None
    name = user.get("name", user.get("id")) if isinstance(user, dict) else None
    if not isinstance(name, str):
        raise Refused("missing-member", f"players.{colour}.user has no name; export the games again")
    return name


def _parse_start(game: dict[str, Any]) -> str:
    """Return the start of a game in whole seconds, as in PGN. Raises `Refused` (bad-time)."""
    created_at = game.get("createdAt")
    try:
        if not isinstance(created_at, int) or isinstance(created_at, bool):
            raise ValueError
        return format_instant(created_at // 1_000 * 1_000_000)
    except (ValueError, OverflowError, Refused):
        message = f"createdAt: {quote(created_at)} is not a number of milliseconds since 1970; export the games again"
        raise Refused("bad-time", message) from None


def _read(opened: Opened, options: TableOptions) -> Iterator[Read]:
    converter = _GameConverter(options)
    if options.on_columns is not None:
        options.on_columns(COLUMNS)
    yield ReadAs("read as games of Lichess (NDJSON)")
    for number, line in number_lines(opened.content):
        try:
            if isinstance(line, Refused):
                raise line
            event = converter.convert_game(line)
        except Refused as problem:
            yield number, problem, _decode_source(line), None
            continue
        if event is not None:
            yield number, event, _decode_source(line), None
    yield from converter.special_games.describe()


def _decode_source(line: bytes | Refused) -> str | None:
    return None if isinstance(line, Refused) else line.decode("utf-8", "backslashreplace")


def _is_lichess(name: str, start: bytes) -> bool:
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    return first.startswith(b"{") and b'"type":"' not in first and all(member in first for member in _MEMBERS)


LICHESS = Reader("games of Lichess", _is_lichess, _read, tables=True, accounts=True)
