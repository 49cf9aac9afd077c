"""TRF16 and TRF26, the report of a tournament to FIDE: a line for each player, with the opponents of all rounds.

    012 Club Open                                        the name of the tournament
    132                       24/11/22  24/11/29         the dates of the rounds, in the columns of their results
    001    1      anna ...       2 w 1     3 b =       round 1: against 2 with White, won; round 2: drawn with 3
    001    2      ben  ...       1 b 0  0000 - U       round 2: a bye

Each game is there twice, and both players have to say the same. Results `+` and `-` are forfeits, `W`, `D` and `L`
games of less than a move, which are never rated; `H`, `F`, `U` and `Z` are byes. The columns are those of the annex to
FIDE's handbook (C.04, TRF16 and TRF26).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ratings_ledger.ledger.intake.forfeits import FIRST_CAME, FORFEIT, NOBODY_CAME, SECOND_CAME
from ratings_ledger.ledger.intake.readers.other_programs import COLUMNS, LeftOut, Shared
from ratings_ledger.ledger.intake.readers.reader import Opened, Read, ReadAs, Reader
from ratings_ledger.ledger.intake.tables.columns import TableOptions, instant_text
from ratings_ledger.ledger.intake.tables.table_games import game_slug
from ratings_ledger.ledger.rejections import Refused, quote

FILE_BYTES_MAX = 8 << 20
# where rounds begin in a line, and how wide they are
ROUNDS_AT, ROUND_WIDTH = 91, 10
PLAYER, DATES, NUMBER_OF_ROUNDS, NAME, START, END = "001", "132", "142", "012", "042", "052"
_LINES = re.compile(r"\r\n|\n|\r")
_DAY = re.compile(r"(\d{4})[/.\-](\d\d)[/.\-](\d\d)", re.ASCII)
_SHORT_DAY = re.compile(r"(\d\d)[/.\-](\d\d)[/.\-](\d\d)", re.ASCII)
# what the opponent has to have
_MIRRORED = {"1": "0", "0": "1", "=": "=", "+": "-", "-": "+", "W": "L", "L": "W", "D": "D"}
_PLACES = {"1": (1, 2), "0": (2, 1), "=": (1, 1), "+": (1, 2), "-": (2, 1), "W": (1, 2), "L": (2, 1), "D": (1, 1)}
_FORFEITS = {"+": FIRST_CAME, "-": SECOND_CAME}
_BYES = frozenset("HFUZ")
_SHORT = frozenset("WDL")
_ENDINGS = (".trf", ".trfx", ".trf16", ".trf26")
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?(?:###[^\r\n]*+[\r\n]++)*+0[1-9]2 ")


class _Entry(NamedTuple):
    """What a player's line says of a round."""

    opponent: int
    colour: str
    result: str


class _Player(NamedTuple):
    """A player of the tournament, with the number of the line and what it says of each round."""

    line: int
    name: str
    rounds: list[_Entry | None]
    text: str


class _Tournament:
    """The lines of a report that results need."""

    def __init__(self, text: str, zone: str | None) -> None:
        self.players = dict[int, _Player]()
        self.problems = list[tuple[int, Refused]]()
        self._heads = dict[str, tuple[int, str]]()
        self._zone = zone
        for number, line in enumerate(_LINES.split(text), 1):
            code = line[:3]
            if code == PLAYER:
                self._take_player(number, line)
            elif code in (DATES, NUMBER_OF_ROUNDS, NAME, START, END):
                self._heads.setdefault(code, (number, line))

    def _take_player(self, number: int, line: str) -> None:
        start, name = line[4:8].strip(), line[14:47].strip()
        try:
            if not start.isdecimal() or not name:
                raise Refused("bad-value", f"{quote(line[:47])} has no start number in columns 5-8 and name in 15-47")
            key = int(start)
            for other in self.players.values():
                if other.name == name:
                    told = f"{quote(name)} is also the player of line {other.line}; give them different names"
                    raise Refused("player-twice", told)
            if key in self.players:
                told = f"the start number {key} is also that of line {self.players[key].line}"
                raise Refused("player-twice", f"{told}; each player needs one of their own")
            self.players[key] = _Player(number, name, [*_entries(line)], line)
        except Refused as problem:
            self.problems.append((number, problem))

    @property
    def label(self) -> str:
        """Return what the ids of its games begin with: its name and its first day."""
        name = self._heads.get(NAME, (0, ""))[1][4:].strip()
        label = "tournament"
        with suppress(Refused):
            label = game_slug(name)
        day = _DAY.search(self._heads.get(START, (0, ""))[1]) or _SHORT_DAY.search(self._heads.get(DATES, (0, ""))[1])
        return f"{label}-{'-'.join(day.groups())}" if day else label

    @property
    def rounds(self) -> int:
        """Return how many rounds the players' lines have."""
        return max((len(player.rounds) for player in self.players.values()), default=0)

    def day(self, number: int) -> str:
        """Return the day of a round. Raises `Refused` (bad-time)."""
        if DATES in self._heads:
            line, text = self._heads[DATES]
            at = ROUNDS_AT + ROUND_WIDTH * number
            match = _SHORT_DAY.fullmatch(text[at : at + 8].strip())
            if match is not None:
                return f"20{match[1]}-{match[2]}-{match[3]}"
            there = (
                f"line {line} (132) has no date such as 24/11/22 in columns {at + 1}-{at + 8} for round {number + 1}"
            )
        else:
            first, last = (_DAY.search(self._heads.get(code, (0, ""))[1]) for code in (START, END))
            if first is not None and (last is None or first[0] == last[0]):
                return "-".join(first.groups())
            there = f"there is no line 132 with the date of round {number + 1}"
        raise Refused("bad-time", f"{there}; put it there, or say one for all games: --set occurred_at=2024-11-22")

    def check_rounds(self) -> None:
        """Raises `Refused` if there are more rounds than the report says."""
        line, text = self._heads.get(NUMBER_OF_ROUNDS, (0, ""))
        said = text[3:].strip()
        if said.isdecimal() and self.rounds > int(said):
            raise Refused("bad-value", f"line {line} says {int(said)} rounds, but there are results of {self.rounds}")


def _entries(line: str) -> Iterator[_Entry | None]:
    """Yield what a player's line says of each round; None for nothing. Raises `Refused`."""
    line = line.rstrip()
    for at in range(ROUNDS_AT, len(line), ROUND_WIDTH):
        cell = line[at : at + ROUND_WIDTH].ljust(ROUND_WIDTH)
        opponent, colour, result = cell[:4].strip(), cell[5].lower(), cell[7].upper()
        if not cell.strip():
            yield None
        elif (opponent and not opponent.isdecimal()) or (cell[4] + cell[6] + cell[8:]).strip():
            number = (at - ROUNDS_AT) // ROUND_WIDTH + 1
            raise Refused(
                "bad-value", f"round {number}: {quote(cell)} is none such as '  12 w 1' in columns {at + 1}-{at + 8}"
            )
        else:
            yield _Entry(int(opponent or 0), colour, result.strip())


class _TrfFile:
    """Makes events of the games of one report, and counts what of it is left out."""

    def __init__(self, tournament: _Tournament, options: TableOptions) -> None:
        self.left_out = LeftOut()
        self._tournament = tournament
        self._shared, self._zone = Shared.of(options), options.zone

    def games(self, number: int) -> Iterator[Read]:
        """Yield the games of a round, each once, and what cannot be one."""
        players = self._tournament.players
        for start in sorted(players):
            player = players[start]
            entry = player.rounds[number] if number < len(player.rounds) else None
            if entry is None:
                continue
            if entry.opponent == 0:
                self.left_out.add("that nobody played (byes)")
                continue
            try:
                other = self._opponent(number, start, entry)
                if other is not None:
                    event = self._event(number, (start, entry), (entry.opponent, other))
                    yield player.line, event, [player.text, players[entry.opponent].text], None
            except Refused as problem:
                yield player.line, problem, player.text, None

    def _opponent(self, number: int, start: int, entry: _Entry) -> _Entry | None:
        """Return what the opponent's line says; None if the game was made of it already, or has no result. Raises
        `Refused`.
        """
        players = self._tournament.players
        player, opponent = players[start], players.get(entry.opponent)
        if opponent is None:
            raise Refused(
                "bad-value",
                f"round {number + 1}: {quote(player.name)} has the opponent {entry.opponent}, who has no line",
            )
        other = opponent.rounds[number] if number < len(opponent.rounds) else None
        if other is not None and other.opponent == start and start > entry.opponent:
            return None
        both = f"line {player.line} has {_told(entry)}, line {opponent.line} {_told(other)}"
        agrees = (
            other is not None and other.opponent == start and {entry.colour, other.colour} in ({"w", "b"}, {"-"}, {" "})
        )
        if not agrees or other is None or (entry.result and entry.result not in _MIRRORED):
            raise Refused("bad-value", f"round {number + 1}: {both}; put the wrong one right")
        is_nobody = entry.result == other.result == "-"
        if _MIRRORED.get(entry.result, "") != other.result and not is_nobody:
            raise Refused(
                "bad-value", f"round {number + 1}: the results contradict each other: {both}; put the wrong one right"
            )
        if not entry.result:
            self.left_out.add("without a result")
            return None
        return other

    def _event(self, number: int, one: tuple[int, _Entry], two: tuple[int, _Entry]) -> dict[str, Any]:
        """Return the event of a game, White first. Raises `Refused`."""
        (white, entry), (black, other) = (two, one) if one[1].colour == "b" else (one, two)
        players, result = self._tournament.players, entry.result
        is_nobody = result == other.result == "-"
        places = (1, 1) if is_nobody else _PLACES[result]
        data: dict[str, Any] = {
            "game": "chess",
            **self._shared.members,
            "game_id": f"{self._tournament.label}-r{number + 1}-{white}-{black}",
            "participants": [
                {"player": players[start].name, "place": place}
                for start, place in zip((white, black), places, strict=True)
            ],
        }
        if result in _FORFEITS:
            data["extra"] = {FORFEIT: NOBODY_CAME if is_nobody else _FORFEITS[result]}
        if result in _SHORT:
            data["rated"] = False
            self.left_out.add("of less than a move (W, D, L)", "recorded but not rated")
        at = self._shared.occurred_at or instant_text(self._tournament.day(number), self._zone)
        return {"type": "game.recorded", "occurred_at": at, "data": data}


def _told(entry: _Entry | None) -> str:
    return "nothing" if entry is None else repr(f"{entry.opponent} {entry.colour} {entry.result}".rstrip())


def _read(opened: Opened, options: TableOptions) -> Iterator[Read]:
    content = opened.content.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise Refused("file-too-large", f"no report of a tournament has more than {FILE_BYTES_MAX:,} bytes; is it TRF?")
    tournament = _Tournament(_decode(content, options.encoding), options.zone)
    if options.found is not None:
        options.found(COLUMNS)
    yield ReadAs(f"read as TRF; games have ids such as {tournament.label}-r1-1-2")
    if not tournament.players and not tournament.problems:
        raise Refused("bad-value", "there is no line of a player, which begins with 001")
    for line, problem in tournament.problems:
        yield line, problem, None, None
    tournament.check_rounds()
    file = _TrfFile(tournament, options)
    # results against somebody whose line cannot be read say nothing more
    for number in range(tournament.rounds if not tournament.problems else 0):
        yield from file.games(number)
    yield from file.left_out.notes()


def _decode(content: bytes, encoding: str | None) -> str:
    """Return the text of a report, which older programs write in Windows-1252. Raises `Refused` (bad-utf8)."""
    for name in (encoding,) if encoding else ("utf-8-sig", "cp1252"):
        with suppress(UnicodeDecodeError):
            return content.decode(name)
    raise Refused("bad-utf8", f"it is not {encoding or 'UTF-8'}; name the encoding with --encoding")


def _is_trf(name: str, start: bytes) -> bool:
    by_content = _BEGINNING.match(start) is not None and (
        b"\n001 " in start or b"\r001 " in start or b"\n042 " in start
    )
    return name.lower().endswith(_ENDINGS) or by_content


TRF = Reader("TRF", _is_trf, _read, tables=True)
