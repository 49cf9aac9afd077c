"""Read TRF16 and TRF26, reports of tournaments to FIDE: a line per player has the opponents and results of all rounds.

    012 Club Open                                        the name of the tournament
    132                       24/11/22  24/11/29         the dates of the rounds, in the columns of their results
    001    1      anna ...       2 w 1     3 b =       round 1: against 2 with White, won; round 2: drawn with 3
    001    2      ben  ...       1 b 0  0000 - U       round 2: a bye

Each game is in the lines of both players, and these must agree. The results `+` and `-` are forfeits; `W`, `D` and `L`
are games of less than a move, which are never rated; `H`, `F`, `U` and `Z` are byes. The annex to FIDE's handbook
(C.04, TRF16 and TRF26) defines the columns.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ratings_ledger.ledger.intake.forfeits import FIRST_PRESENT, FORFEIT, NEITHER_PRESENT, SECOND_PRESENT
from ratings_ledger.ledger.intake.readers.other_programs import COLUMNS, CommonMembers, SpecialGames
from ratings_ledger.ledger.intake.readers.reader import Opened, Read, ReadAs, Reader
from ratings_ledger.ledger.intake.tables.columns import TableOptions, normalise_instant
from ratings_ledger.ledger.intake.tables.table_games import make_slug
from ratings_ledger.ledger.rejections import Refused, count, quote

FILE_BYTES_MAX = 8 << 20
# the column (from 0) where the rounds start in a line, and the width of a round
ROUNDS_START, ROUND_WIDTH = 91, 10
# the codes with which lines begin
PLAYER, DATES, NUMBER_OF_ROUNDS, NAME, START, END = "001", "132", "142", "012", "042", "052"
_LINES = re.compile(r"\r\n|\n|\r")
_DAY = re.compile(r"(\d{4})[/.\-](\d\d)[/.\-](\d\d)", re.ASCII)
_SHORT_DAY = re.compile(r"(\d\d)[/.\-](\d\d)[/.\-](\d\d)", re.ASCII)
# the result of the opponent, by the result of a player
_OPPONENT_RESULTS = {"1": "0", "0": "1", "=": "=", "+": "-", "-": "+", "W": "L", "L": "W", "D": "D"}
_PLACES = {"1": (1, 2), "0": (2, 1), "=": (1, 1), "+": (1, 2), "-": (2, 1), "W": (1, 2), "L": (2, 1), "D": (1, 1)}
_FORFEITS = {"+": FIRST_PRESENT, "-": SECOND_PRESENT}
_SHORT_GAMES = frozenset("WDL")
_SUFFIXES = (".trf", ".trfx", ".trf16", ".trf26")
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?(?:###[^\r\n]*+[\r\n]++)*+0[1-9]2 ")


class _RoundEntry(NamedTuple):
    """A round in a player's line: the opponent's start number, 0 for a bye; the colour; the result."""

    opponent: int
    colour: str
    result: str


class _Player(NamedTuple):
    """A player of the tournament: line number, name, rounds (None for an empty one), and the text of the line."""

    line: int
    name: str
    rounds: list[_RoundEntry | None]
    text: str


class _Tournament:
    """The lines of a report that matter for results."""

    def __init__(self, text: str, zone: str | None) -> None:
        self.players = dict[int, _Player]()
        self.problems = list[tuple[int, Refused]]()
        # the number and the text of a line, by its code
        self._header_lines = dict[str, tuple[int, str]]()
        self._zone = zone
        for number, line in enumerate(_LINES.split(text), 1):
            code = line[:3]
            if code == PLAYER:
                self._add_player(number, line)
            elif code in (DATES, NUMBER_OF_ROUNDS, NAME, START, END):
                self._header_lines.setdefault(code, (number, line))

    def _add_player(self, number: int, line: str) -> None:
        start, name = line[4:8].strip(), line[14:47].strip()
        try:
            if not start.isdecimal() or not name:
                message = f"{quote(line[:47])} lacks a start number in columns 5-8 or a name in columns 15-47"
                raise Refused("bad-value", f"{message}; add what is missing")
            start_number = int(start)
            for earlier in self.players.values():
                if earlier.name == name:
                    message = f"{quote(name)} is also the player of line {earlier.line}"
                    raise Refused("player-twice", f"{message}; give the players different names")
            if start_number in self.players:
                message = f"line {self.players[start_number].line} has the start number {start_number}, too"
                raise Refused("player-twice", f"{message}; give the players different start numbers")
            self.players[start_number] = _Player(number, name, [*_parse_rounds(line)], line)
        except Refused as problem:
            self.problems.append((number, problem))

    @property
    def label(self) -> str:
        """Return the prefix of the games' ids: the name and the first day of the tournament."""
        name = self._header_lines.get(NAME, (0, ""))[1][4:].strip()
        label = "tournament"
        with suppress(Refused):
            label = make_slug(name)
        start, dates = (self._header_lines.get(code, (0, ""))[1] for code in (START, DATES))
        day = _DAY.search(start) or _SHORT_DAY.search(dates)
        return f"{label}-{'-'.join(day.groups())}" if day else label

    @property
    def round_count(self) -> int:
        """Return the number of rounds in the players' lines."""
        return max((len(player.rounds) for player in self.players.values()), default=0)

    def find_day(self, number: int) -> str:
        """Return the day of a round (counted from 0). Raises `Refused` (bad-time)."""
        if DATES in self._header_lines:
            line, text = self._header_lines[DATES]
            column = ROUNDS_START + ROUND_WIDTH * number
            match = _SHORT_DAY.fullmatch(text[column : column + 8].strip())
            if match is not None:
                return f"20{match[1]}-{match[2]}-{match[3]}"
            columns = f"columns {column + 1}-{column + 8}"
            problem = f"line {line} (132) has no date such as 24/11/22 in {columns} for round {number + 1}"
        else:
            first, last = (_DAY.search(self._header_lines.get(code, (0, ""))[1]) for code in (START, END))
            if first is not None and (last is None or first[0] == last[0]):
                return "-".join(first.groups())
            problem = f"no line that begins with 132 has the date of round {number + 1}"
        raise Refused("bad-time", f"{problem}; add the date, or set one for all games: --set occurred_at=2024-11-22")

    def check_rounds(self) -> None:
        """Raise `Refused` (bad-value) if players have results of more rounds than the report states."""
        line, text = self._header_lines.get(NUMBER_OF_ROUNDS, (0, ""))
        stated = text[3:].strip()
        if stated.isdecimal() and self.round_count > int(stated):
            rounds = count(int(stated), "round")
            message = f"line {line} states {rounds}, but players have results of {self.round_count} rounds"
            raise Refused("bad-value", f"{message}; correct line {line}")


def _parse_rounds(line: str) -> Iterator[_RoundEntry | None]:
    """Yield the rounds of a player's line, and None for an empty round. Raises `Refused`."""
    line = line.rstrip()
    for start in range(ROUNDS_START, len(line), ROUND_WIDTH):
        cell = line[start : start + ROUND_WIDTH].ljust(ROUND_WIDTH)
        opponent, colour, result = cell[:4].strip(), cell[5].lower(), cell[7].upper()
        if not cell.strip():
            yield None
        elif (opponent and not opponent.isdecimal()) or (cell[4] + cell[6] + cell[8:]).strip():
            number = (start - ROUNDS_START) // ROUND_WIDTH + 1
            columns = f"columns {start + 1}-{start + 8}"
            message = f"round {number}: {quote(cell)} in {columns} is not a result; write one like '  12 w 1'"
            raise Refused("bad-value", message)
        else:
            yield _RoundEntry(int(opponent or 0), colour, result.strip())


class _GameConverter:
    """A converter of the games of a report to events. It counts the games that it treats specially."""

    def __init__(self, tournament: _Tournament, options: TableOptions) -> None:
        self.special_games = SpecialGames()
        self._tournament = tournament
        self._common, self._zone = CommonMembers.read(options), options.zone

    def convert_round(self, number: int) -> Iterator[Read]:
        """Yield the games of a round (counted from 0), each once, and refusals of invalid games."""
        players = self._tournament.players
        for start in sorted(players):
            player = players[start]
            entry = player.rounds[number] if number < len(player.rounds) else None
            if entry is None:
                continue
            if entry.opponent == 0:
                self.special_games.add("without an opponent (byes)")
                continue
            try:
                opponent_entry = self._find_opponent_entry(number, start, entry)
                if opponent_entry is not None:
                    event = self._convert_game(number, (start, entry), (entry.opponent, opponent_entry))
                    yield player.line, event, [player.text, players[entry.opponent].text], None
            except Refused as problem:
                yield player.line, problem, player.text, None

    def _find_opponent_entry(self, number: int, start: int, entry: _RoundEntry) -> _RoundEntry | None:
        """Return the opponent's entry, or None if the game was already yielded or has no result.

        Raises `Refused` if there is no such opponent, or if the entries contradict each other.
        """
        players = self._tournament.players
        player, opponent = players[start], players.get(entry.opponent)
        if opponent is None:
            message = f"round {number + 1}: {quote(player.name)} has the opponent {entry.opponent}, but no player has "
            raise Refused("bad-value", f"{message}this start number; correct it")
        opponent_entry = opponent.rounds[number] if number < len(opponent.rounds) else None
        if opponent_entry is not None and opponent_entry.opponent == start and start > entry.opponent:
            return None
        statements = (
            f"line {player.line} has {_quote_entry(entry)}, line {opponent.line} {_quote_entry(opponent_entry)}"
        )
        agrees = (
            opponent_entry is not None
            and opponent_entry.opponent == start
            and {entry.colour, opponent_entry.colour} in ({"w", "b"}, {"-"}, {" "})
        )
        if not agrees or opponent_entry is None or (entry.result and entry.result not in _OPPONENT_RESULTS):
            raise Refused("bad-value", f"round {number + 1}: {statements}; correct the wrong line")
        is_double_forfeit = entry.result == opponent_entry.result == "-"
        if _OPPONENT_RESULTS.get(entry.result, "") != opponent_entry.result and not is_double_forfeit:
            raise Refused(
                "bad-value",
                f"round {number + 1}: the results contradict each other: {statements}; correct the wrong line",
            )
        if not entry.result:
            self.special_games.add("without a result")
            return None
        return opponent_entry

    def _convert_game(
        self, number: int, first: tuple[int, _RoundEntry], second: tuple[int, _RoundEntry]
    ) -> dict[str, Any]:
        """Convert a game to an event, White first. Raises `Refused`."""
        (white, white_entry), (black, black_entry) = (second, first) if first[1].colour == "b" else (first, second)
        players, result = self._tournament.players, white_entry.result
        is_double_forfeit = result == black_entry.result == "-"
        places = (1, 1) if is_double_forfeit else _PLACES[result]
        data: dict[str, Any] = {
            "game": "chess",
            **self._common.members,
            "game_id": f"{self._tournament.label}-r{number + 1}-{white}-{black}",
            "participants": [
                {"player": players[start].name, "place": place}
                for start, place in zip((white, black), places, strict=True)
            ],
        }
        if result in _FORFEITS:
            data["extra"] = {FORFEIT: NEITHER_PRESENT if is_double_forfeit else _FORFEITS[result]}
        if result in _SHORT_GAMES:
            data["rated"] = False
            self.special_games.add("of less than a move (W, D, L)", "recorded but not rated")
        occurred_at = self._common.occurred_at or normalise_instant(self._tournament.find_day(number), self._zone)
        return {"type": "game.recorded", "occurred_at": occurred_at, "data": data}


def _quote_entry(entry: _RoundEntry | None) -> str:
    return "nothing" if entry is None else repr(f"{entry.opponent} {entry.colour} {entry.result}".rstrip())


def _read(opened: Opened, options: TableOptions) -> Iterator[Read]:
    content = opened.content.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        message = f"the report has more than {FILE_BYTES_MAX:,} bytes; import each tournament from a file of its own"
        raise Refused("file-too-large", message)
    tournament = _Tournament(_decode(content, options.encoding), options.zone)
    if options.on_columns is not None:
        options.on_columns(COLUMNS)
    yield ReadAs(f"read as TRF; games have ids such as {tournament.label}-r1-1-2")
    if not tournament.players and not tournament.problems:
        raise Refused("bad-value", "the report has no players; add a line that begins with 001 for each player")
    for line, problem in tournament.problems:
        yield line, problem, None, None
    tournament.check_rounds()
    converter = _GameConverter(tournament, options)
    # results against a player with an invalid line would only repeat the problem
    for number in range(tournament.round_count if not tournament.problems else 0):
        yield from converter.convert_round(number)
    yield from converter.special_games.describe()


def _decode(content: bytes, encoding: str | None) -> str:
    """Decode a report; older programs write Windows-1252. Raises `Refused` (bad-utf8)."""
    for name in (encoding,) if encoding else ("utf-8-sig", "cp1252"):
        with suppress(UnicodeDecodeError):
            return content.decode(name)
    raise Refused("bad-utf8", f"the file is not {encoding or 'UTF-8'}; name its encoding with --encoding")


def _is_trf(name: str, start: bytes) -> bool:
    has_lines = b"\n001 " in start or b"\r001 " in start or b"\n042 " in start
    return name.lower().endswith(_SUFFIXES) or (_BEGINNING.match(start) is not None and has_lines)


TRF = Reader("TRF", _is_trf, _read, tables=True)
