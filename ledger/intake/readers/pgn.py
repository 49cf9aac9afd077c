"""Read PGN, the text format of chess programs and sites: the tags of each game, without its moves.

    [Event "Club evening"]
    [Date "2024.11.22"]
    [White "anna"]                        {"game_id":"2024-11-22-1","game":"chess","participants":[
    [Black "ben"]                             {"player":"anna","place":1},{"player":"ben","place":2}]}
    [Result "1-0"]

    1. e4 {[Event "not a tag"]} e5 2. Qh5 1-0

The reader skips the moves, but must parse comments, because they may contain text that looks like the next game. Nearly
all files have one tag per line, a blank line before the moves, and no comment around a tag. The reader skips through
such files in large steps, and reads other files token by token.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.forfeits import FIRST_PRESENT, FORFEIT, NEITHER_PRESENT, PLACES, SECOND_PRESENT
from ratings_ledger.ledger.intake.readers.other_programs import COLUMNS, CommonMembers, SpecialGames
from ratings_ledger.ledger.intake.readers.reader import Opened, Read, ReadAs, Reader
from ratings_ledger.ledger.intake.tables.columns import TableOptions, normalise_instant
from ratings_ledger.ledger.rejections import Refused, quote

PIECE_BYTES = 1 << 20
# larger than any game; this limits the memory if a comment does not end
GAME_BYTES_MAX = 8 << 20
FALLBACK_ENCODING = "cp1252"  # a superset of the printable part of Latin-1, the encoding of the standard

# possessive quantifiers avoid backtracking over many blanks without a tag
_BEGINNING = re.compile(rb'(?:\xef\xbb\xbf)?(?:\s++|[;%][^\n]*+\n)*+\[\w+\s+"[^"\n]*"\s*\]')
_TAG_BEGINS = re.compile(rb'\[\s*\w+\s+"')
# up to a hundred tags as nearly all programs write them, before the beginning of the moves
_PLAIN_TAGS = re.compile(rb'((?:\[\w+ "[^"\\\r\n]*"\]\r?\n){1,100})\r?\n(?=[^\s\[%;])')
_PLAIN_TAG = re.compile(r'\[(\w+) "([^"]*)"\]')
# tokens between tags
_TAG_TOKENS = re.compile(
    rb'\s+|;[^\n]*|^%[^\n]*|\{[^}]*\}|\[\s*(?P<name>\w+)\s+"(?P<value>(?:[^"\\\r\n]|\\.)*)"\s*\]|(?P<bad>\[[^\n]*)',
    re.M,
)
# among the moves: comments, which may contain text that looks like a tag, and the tags of the next game
_MOVE_TOKENS = re.compile(rb'\{[^}]*\}|;[^\n]*|^%[^\n]*|(?P<open>\{)|(?P<tag>\[\s*\w+\s+")', re.M)
_ESCAPED = re.compile(r"\\(.)")

# the places of White and Black
_RESULTS = {"1-0": (1, 2), "0-1": (2, 1), "1/2-1/2": (1, 1), "½-½": (1, 1)}
_FORFEITS = {
    text.replace(":", separator): text
    for text in (FIRST_PRESENT, SECOND_PRESENT, NEITHER_PRESENT)
    for separator in (":", "/")
}
# the value of `extra.forfeit`, by the places of White and Black
_FORFEITS_BY_PLACES = {(1, 2): FIRST_PRESENT, (2, 1): SECOND_PRESENT}
# the terminations of games that a player lost by breaking the rules, leaving or not showing up
_FORFEIT_TERMINATIONS = frozenset({"rules infraction", "abandoned", "forfeit", "walkover", "default"})
_UNFINISHED = "unterminated"
_STANDARD = frozenset({"standard", "chess", "normal"})
_COMPUTER = "lichess AI level"
_DAY = re.compile(r"(\d{4})[.\-/](\d\d)[.\-/](\d\d)", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d", re.ASCII)
# the addresses of games that sites write into the tags Site or Link
_ADDRESS = re.compile(
    r"https?://(?:www\.)?(lichess\.org/study/\w{8}/\w{8}|lichess\.org/\w{8}(?=\w{4}|\b)|chess\.com/(?:game/(?:\w+/)?|\w+/game/)\d+)(?:\w{4})?(?:[/?#][!-~]*)?",
    re.ASCII,
)
SITES = (b"lichess.org/", b"chess.com")


class TaggedGame(NamedTuple):
    """The tags of a game.

    line: the number of their first line
    tags: their values by name
    text: the lines of the tags
    bad:  a text among the tags that is not a tag
    """

    line: int
    tags: dict[str, str]
    text: bytes
    bad: str | None = None


class _GameExtent(NamedTuple):
    """The positions where a game's tags and moves end.

    For tags that are not in the plain form, also the tags and a text among them that is not a tag.
    """

    tags_end: int
    end: int
    tags: dict[bytes, bytes] | None = None
    bad: bytes | None = None


class _OpenComment(Exception):
    """A comment does not end; the argument is the position where it begins."""


def read_games(content: IO[bytes], decode: Callable[[bytes], str]) -> Iterator[TaggedGame | tuple[int, Refused]]:
    """Yield the tags of each game of a file, and (line, refusal) for text that cannot be read."""
    buffer, line, is_first = b"", 1, True
    while True:
        piece = content.read(PIECE_BYTES)
        buffer += piece
        if is_first:
            if buffer.startswith((b"\xff\xfe", b"\xfe\xff")):
                yield 1, Refused("bad-utf8", "the file is UTF-16; save it as UTF-8")
                return
            buffer, is_first = buffer.removeprefix(b"\xef\xbb\xbf"), False
        position = 0
        try:
            while (extent := _find_extent(buffer, position, is_last=not piece)) is not None and extent.end > position:
                text = buffer[position : extent.tags_end]
                try:
                    tags, bad = _parse_tags(extent, text, decode)
                    if len(tags) < text.count(b"\n") and extent.tags is None:
                        # a tag is repeated, so the second one belongs to the next game
                        extent = _find_irregular_extent(buffer, position, not piece) or extent
                        text = buffer[position : extent.tags_end]
                        tags, bad = _parse_tags(extent, text, decode)
                    if tags or bad or buffer[position : extent.end].strip():
                        yield TaggedGame(line + text.count(b"\n", 0, len(text) - len(text.lstrip())), tags, text, bad)
                except Refused as problem:
                    yield line, problem
                line += buffer.count(b"\n", position, extent.end)
                position = extent.end
        except _OpenComment as problem:
            comment_line = line + buffer.count(b"\n", position, problem.args[0])
            message = "the comment that begins here with { has no }; add it, so that the next games can be read"
            yield comment_line, Refused("bad-value", message)
            return
        if not piece:
            return
        buffer = buffer[position:]
        if len(buffer) > GAME_BYTES_MAX:
            message = f"no game ends within {GAME_BYTES_MAX:,} bytes from here; check that each comment ends with }}"
            yield line, Refused("line-too-long", message)
            return


def _parse_tags(extent: _GameExtent, text: bytes, decode: Callable[[bytes], str]) -> tuple[dict[str, str], str | None]:
    """Return the tags of a game by name, and a text among them that is not a tag, or None. Raises `Refused`."""
    if extent.tags is None:
        return dict(_PLAIN_TAG.findall(decode(text))), None
    tags = {name.decode(): _ESCAPED.sub(r"\1", decode(value)) for name, value in extent.tags.items()}
    return tags, None if extent.bad is None else decode(extent.bad)


def _find_extent(buffer: bytes, begin: int, is_last: bool) -> _GameExtent | None:
    """Return the extent of the game at a position, or None if more bytes are needed. Raises `_OpenComment`."""
    if (plain := _PLAIN_TAGS.match(buffer, begin)) is None:
        return _find_irregular_extent(buffer, begin, is_last)
    end = _find_end_of_moves(buffer, plain.end(1), is_last)
    return None if end is None else _GameExtent(plain.end(1), end)


def _find_irregular_extent(buffer: bytes, begin: int, is_last: bool) -> _GameExtent | None:
    """Return the extent of a game that is not in the plain form, or None if more bytes are needed."""
    tags_end, tags, bad = _read_irregular_tags(buffer, begin)
    if tags_end == len(buffer) and not is_last:
        return None
    if tags and _TAG_BEGINS.match(buffer, tags_end):
        return _GameExtent(tags_end, tags_end, tags, bad)
    end = _find_end_of_moves(buffer, tags_end, is_last)
    return None if end is None else _GameExtent(tags_end, end, tags, bad)


def _read_irregular_tags(buffer: bytes, position: int) -> tuple[int, dict[bytes, bytes], bytes | None]:
    """Return the end of a game's tags, the tags, and a text among them that is not a tag, or None.

    A repeated tag begins another game.
    """
    tags, bad = dict[bytes, bytes](), None
    while (match := _TAG_TOKENS.match(buffer, position)) is not None:
        if match["name"] is not None:
            if match["name"] in tags:
                break
            tags[match["name"]] = match["value"]
        elif match["bad"] is not None:
            bad = match["bad"].rstrip()
        position = match.end()
    return position, tags, bad


def _find_end_of_moves(buffer: bytes, begin: int, is_last: bool) -> int | None:
    """Return the end of the moves: the next game's tags or the end of the file; None if more bytes are needed.

    Raises `_OpenComment`.
    """
    # outside comments, quotation marks occur only in tags
    quotation_mark = buffer.find(b'"', begin)
    if quotation_mark < 0 and not is_last:
        return None
    end, newline = len(buffer), begin - 1
    if quotation_mark >= 0:
        while (newline := buffer.find(b"\n[", newline + 1, quotation_mark)) >= 0:
            if _TAG_BEGINS.match(buffer, newline + 1) is not None:
                break
        end = newline + 1
    # the end is outside comments if no comment is open there
    is_outside = end > 0 and buffer.rfind(b"{", begin, end) <= buffer.rfind(b"}", begin, end)
    return end if is_outside else _find_end_among_comments(buffer, begin, is_last)


def _find_end_among_comments(buffer: bytes, begin: int, is_last: bool) -> int | None:
    """Return the same as `_find_end_of_moves`, but read token by token."""
    for match in _MOVE_TOKENS.finditer(buffer, begin):
        if match["tag"] is not None:
            return match.start()
        if match["open"] is not None:
            if is_last:
                raise _OpenComment(match.start())
            return None
    return len(buffer) if is_last else None


class _GameConverter:
    """A converter of the games of a file to events. It counts the games that it treats specially."""

    def __init__(self, options: TableOptions) -> None:
        self.special_games = SpecialGames()
        self.variants = Counter[str]()
        self._encoding = options.encoding
        self._zone, self._common = options.zone, CommonMembers.read(options)
        self._members = {"game": "chess", **self._common.members}
        self._has_game = "game" in self._common.members
        self._numbers = Counter[str]()
        self._uses_fallback = False  # whether a tag of the current game was decoded by the fallback encoding

    def decode(self, raw: bytes) -> str:
        """Decode the text of tags by the named encoding, or UTF-8 or Windows-1252. Raises `Refused` (bad-utf8)."""
        try:
            return raw.decode(self._encoding or "utf-8")
        except UnicodeDecodeError as problem:
            if self._encoding is None:
                try:
                    text = raw.decode(FALLBACK_ENCODING)
                except UnicodeDecodeError:
                    pass
                else:
                    self._uses_fallback = True
                    return text
            byte = raw[problem.start]
            message = f"the byte 0x{byte:02X} of {quote(raw[:40])} is not valid {self._encoding or 'UTF-8'}"
            raise Refused("bad-utf8", f"{message}; name the encoding with --encoding") from None

    def count_fallback(self) -> None:
        """Count the game whose tags were just decoded if one of them is not UTF-8."""
        if self._uses_fallback:
            self.special_games.add("with letters that are not UTF-8", "read as Windows-1252")
            self._uses_fallback = False

    def convert_game(self, game: TaggedGame) -> tuple[dict[str, Any], bool] | None:
        """Convert a game to an event; also return whether it has an address. Return None for a game that is left out.

        Raises `Refused`.
        """
        tags = game.tags
        if game.bad is not None:
            raise Refused("bad-value", f'{quote(game.bad)} is not a tag; write tags such as [White "anna"]')
        result = tags.get("Result")
        if result is None:
            raise Refused("missing-member", 'the game has no tag Result; add one such as [Result "1-0"]')
        termination = tags.get("Termination", "").casefold()
        address = _find_address(tags)
        if result == "*" or termination == _UNFINISHED:
            # these games get numbers, too, so that later games keep theirs once the result is known
            with suppress(Refused):
                _ = address or self._number_game(tags)
            reason = "without a result (*)" if result == "*" else f'with the Termination "{_UNFINISHED}"'
            self.special_games.add(reason)
            return None
        game_id = address or self._number_game(tags)
        white, black = _read_player_name(tags, "White"), _read_player_name(tags, "Black")
        if white.startswith(_COMPUTER) or black.startswith(_COMPUTER):
            self.special_games.add("against the computer")
            return None
        forfeit = _FORFEITS.get(result)
        places = PLACES[forfeit] if forfeit else _RESULTS.get(result)
        if places is None:
            message = f"Result: {quote(result)} is not one of 1-0, 0-1, 1/2-1/2, +/-, -/+ and -/-"
            raise Refused("bad-value", f"{message}; write * for an unfinished game")
        if forfeit is None and termination in _FORFEIT_TERMINATIONS:
            forfeit = _FORFEITS_BY_PLACES.get(places)
        if (variant := tags.get("Variant")) is not None and variant.casefold() not in _STANDARD:
            self._check_variant(variant)
        data = {
            **self._members,
            "game_id": game_id,
            "participants": [{"player": white, "place": places[0]}, {"player": black, "place": places[1]}],
        }
        if forfeit is not None:
            data["extra"] = {FORFEIT: forfeit}
        if tags.get("Event", "")[:6].casefold() == "casual":
            data["rated"] = False
            self.special_games.add('of an Event "Casual ..."', "recorded but not rated")
        occurred_at = self._common.occurred_at or _read_end_time(tags, self._zone)
        return {"type": "game.recorded", "occurred_at": occurred_at, "data": data}, address is not None

    def _number_game(self, tags: dict[str, str]) -> str:
        """Return the id of a game without an address: its day and its number on that day. Raises `Refused`."""
        day = _find_day(tags, self._common.occurred_at)
        self._numbers[day] += 1
        return f"{day}-{self._numbers[day]}"

    def _check_variant(self, variant: str) -> None:
        if not self._has_game:
            name = re.sub(r"\W+", "-", variant.casefold()).strip("-")
            message = f"Variant: {quote(variant)} is not standard chess and must be recorded as another game"
            remedy = f"put such games in another file, and import it with --set game={name}"
            raise Refused("bad-value", f"{message}; {remedy}")
        self.variants[variant] += 1


def _read_player_name(tags: dict[str, str], colour: str) -> str:
    """Return the name of a player. Raises `Refused` (missing-member)."""
    name = tags.get(colour, "").strip()
    if not name.strip("?"):
        problem = f"{colour}: {quote(name)} is not a player" if colour in tags else f"the game has no tag {colour}"
        remedy = f'write the player\'s name, such as [{colour} "anna"], or remove the game from the file'
        raise Refused("missing-member", f"{problem}; {remedy}")
    return name


def _find_day(tags: dict[str, str], fixed: str | None) -> str:
    """Return the day of a game, from the fixed time or else from the tags. Raises `Refused` (bad-time)."""
    if fixed is not None:
        return fixed[:10]
    name = "Date" if "Date" in tags else "UTCDate"
    text = tags.get(name, "")
    match = _DAY.fullmatch(text)
    if match is not None:
        return f"{match[1]}-{match[2]}-{match[3]}"
    problem = f"{name}: {quote(text)} is not a full date" if text else "the game has no tag Date"
    remedy = "write the day in the form 2024.11.22, or set it for all games of the file: --set occurred_at=2024-11-22"
    raise Refused("bad-time", f"{problem}; {remedy}")


def _read_end_time(tags: dict[str, str], zone: str | None) -> str:
    """Return the time when a game ended, or else when it started, or else its day. Raises `Refused`."""
    # Chess.com writes the start and the end of a game in UTC
    for date, time in (("EndDate", "EndTime"), ("UTCDate", "UTCTime")):
        if "UTCDate" in tags and _DAY.fullmatch(tags.get(date, "")) and _TIME.fullmatch(tags.get(time, "")):
            return f"{tags[date].replace('.', '-')}T{tags[time]}Z"
    day = _find_day(tags, None)
    time = tags.get("Time", "")
    return normalise_instant(f"{day} {time}" if "Date" in tags and _TIME.fullmatch(time) else day, zone)


def _find_address(tags: dict[str, str]) -> str | None:
    """Return the address of a game from its tags, without https://www. and parts after the game's id, or None.

    >>> _find_address({"Site": "https://lichess.org/q7ZvsdUF/black"}), _find_address({"Site": "Chess.com"})
    ('lichess.org/q7ZvsdUF', None)
    """
    for name in ("Site", "Link"):
        if name in tags and (match := _ADDRESS.fullmatch(tags[name])) is not None:
            return match[1]
    return None


def _read(opened: Opened, options: TableOptions) -> Iterator[Read]:
    converter = _GameConverter(options)
    is_numbered: bool | None = None
    for game in read_games(opened.content, converter.decode):
        converter.count_fallback()
        if not isinstance(game, TaggedGame):
            yield game[0], game[1], None, None
            continue
        try:
            converted = converter.convert_game(game)
        except Refused as problem:
            yield game.line, problem, _decode_source(game), None
            continue
        if converted is None:
            continue
        event, has_address = converted
        if is_numbered is None or (not is_numbered and not has_address):
            is_numbered = not has_address
            if options.on_columns is not None:
                options.on_columns(COLUMNS._replace(is_numbered=is_numbered))
            example = f"; games without an address are numbered by day, such as {event['data']['game_id']}"
            yield ReadAs(f"read as PGN{example if is_numbered else ''}", is_numbered)
        yield game.line, event, _decode_source(game), None
    yield from converter.special_games.describe()
    if converter.variants:
        listed = ", ".join(f"{variant} ({number:,})" for variant, number in converter.variants.most_common())
        yield f"variants other than Standard: {listed}"


def _decode_source(game: TaggedGame) -> str:
    return game.text.decode("utf-8", "backslashreplace").strip()


def _is_pgn(name: str, start: bytes) -> bool:
    return name.lower().endswith(".pgn") or _BEGINNING.match(start) is not None


def _is_pgn_of_site(name: str, start: bytes) -> bool:
    """Tell whether a file comes from a site, so that the players' names are names of accounts."""
    return _is_pgn(name, start) and any(site in start.lower() for site in SITES)


PGN = Reader("PGN", _is_pgn, _read, tables=True)
PGN_OF_SITE = Reader("PGN of a site", _is_pgn_of_site, _read, tables=True, accounts=True)
