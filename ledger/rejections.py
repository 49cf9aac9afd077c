"""Define rejections of input with their stable codes, and format input for messages.

`CODES` has all codes; a code is never renamed or reused. The page `docs/rejections.md` is generated from it.
"""

import re
from collections.abc import Callable, Iterable
from re import Match
from typing import Any, NamedTuple, TypeVar
from unicodedata import category

from ratings_ledger.ledger.errors import LedgerError

Cell = TypeVar("Cell")

CODES = {
    # how a file is written
    "is-a-directory": "a folder was given instead of a file",
    "is-a-spreadsheet": "a spreadsheet in a format that is not supported; .xlsx, .ods and CSV are supported",
    "bad-spreadsheet": "the spreadsheet is damaged, protected or too large",
    "which-sheet": "the spreadsheet has several sheets, or no sheet of the given name; --sheet names one",
    "bad-cell": "the cell shows an error, or holds a formula without a stored result",
    "unclear-layout": "the numbers of a table may be places or scores; --layout decides",
    "winner-not-in-row": "the winner in a column of winners is neither a player of the row nor a word for a draw",
    "others-unknown": "of three or more players only the winner is known; --others tied ties the others",
    "results-disagree": "two columns of a row, or a result and its sets, disagree about who won",
    "result-became-date": "a spreadsheet turned a result such as 3-1 into a date or a time; format the column as text",
    "unclear-dates": "the dates of a column can be read in several ways or in no way; --dates states the format",
    "bad-reader": "a package's reader of files cannot be loaded, or failed",
    "empty-file": "the file holds no event",
    "bad-gzip": "the compressed file is truncated or damaged",
    "too-many-blank-lines": "a file has at most 100,000 blank lines",
    "bad-utf8": "the text is not valid UTF-8",
    "bad-json": "the line is not one JSON object",
    "bad-csv": "the CSV file cannot be split into rows and columns",
    "line-break": "a cell of a table spans several lines, perhaps because a quotation mark is missing",
    "column-twice": "two columns of a table have the same meaning",
    "game-incomplete": "a refused row may belong to this game, which is not recorded without it",
    "file-too-large": "a file needs more memory than is available, or has more bytes than its reader accepts",
    "line-too-long": "a line may have at most 1,048,576 bytes",
    "duplicate-key": "a JSON object names the same member twice",
    "lone-surrogate": "half of a UTF-16 surrogate pair is not a character",
    "not-a-finite-number": "NaN and Infinity are not JSON",
    "not-an-integer": "the value must be a whole number; a fraction is written as a decimal string",
    "integer-too-large": "whole numbers must be between -(2^53 - 1) and 2^53 - 1",
    "unknown-column": "no member of a game has this name; --map renames or drops a column",
    "missing-column": "the table lacks a column that every game needs, or that --map names",
    "rows-apart": "the rows of one game must stand together",
    "row-length": "a row has more cells than the header has columns",
    "not-a-table": "--sync compares tables with their earlier imports; it accepts no other files",
    "another-sheet": "most games of a sheet's earlier imports are missing from it; the user must confirm their voids",
    "rows-disagree": "the rows of one game must agree in all columns that concern the whole game",
    # members and their values
    "unknown-type": "no event type has this name",
    "unknown-kind": "no game type has this name",
    "unknown-member": "a member that events of this type do not have; free text about a game goes into extra",
    "missing-member": "a member that events of this type must have",
    "wrong-type": "the value does not have the JSON type that the member needs",
    "bad-value": "the member cannot have this value",
    "out-of-range": "the number is outside the range of the member",
    "bad-time": "times are RFC 3339 with an offset, years 0001 to 9999, microseconds at most",
    "naive-time": "a time without an offset needs --zone, or a ledger with a home zone",
    "ambiguous-time": "this local time occurs twice that night; write it with its offset",
    "nonexistent-time": "this local time is skipped that night",
    "unknown-game": "no published ruleset scores games of this name; import --new-game records them nevertheless",
    "unknown-zone": "no time zone has this name",
    "bad-identifier": "a player's id has 1 to 64 characters, no control character, no space at an end, no / and no =",
    "bad-slug": "the name must consist of lower-case letters, digits and single hyphens",
    "bad-decimal": "the value must be a decimal string such as 12 or -0.5",
    "bad-text": "text has 1 to 2,000 characters without control characters",
    "record-too-large": "a record may have at most 65,535 bytes, which allows about 1,800 participants in a game",
    "unknown-schema-version": "the event was written by a newer version of this program",
    # games
    "too-few-participants": "a game has at least two seats",
    "player-twice": "a player takes part in a game only once",
    "schedule-exists": "this ladder is already published every month",
    "score-missing": "some players of a game were entered with a score, others without a score",
    "place-missing": "either every participant has a place or every one has a score",
    "place-gap": "places run 1, 2, 2, 4 or 1, 2, 2, 3, without gaps",
    "score-contradicts-place": "a player with a better score cannot have a worse place",
    "substitute-without-leaver": "a substitute, and no other participant, must name the leaver whom they replace",
    "leaver-replaced-twice": "a leaver has at most one substitute",
    "seat-disagrees": "a leaver and their substitute share one seat, and the members that decide its place",
    "team-missing": "either all participants of a game have a team, or none has",
    "side-disagrees": "the members of a team share one place and one score",
    "one-side": "the participants of a game are on at least two sides",
    "two-homes": "at most one side plays at home",
    "number-twice": "a number is given for the game or for its participants, not for both",
    "b5-too-few-players": "a game of kind b5 has at least three players",
    "referee-plays": "the referee is not one of the players",
    "victory-points-total": "the victory points of a game are players - 2, +1 for a major victory, +1 within time",
    "victory-points-all-kept": "a player who wins alone gives at least one victory point to another player",
    "battle-sides": "a battle has exactly two sides, and each has units",
    "units-lost-exceed": "a player cannot lose more units than they have",
    "kills-without-losses": "a player has kills, but the enemy lost no units",
    "power-twice": "each power is played on one seat",
    "power-missing": "all seven powers are played",
    "years-not-gapless": "the centres are given for each year from 1901 on, without gaps",
    "too-many-centres": "the map has 34 centres",
    # compared with the ledger
    "unlikely-date": "a game is dated more than a day ahead of the clock, or before 1900; --any-date accepts it",
    "close-name": "a new name is close to another, maybe a typo; --aliases corrects it, --new-names accept accepts it",
    "bad-profile": "a profile is TOML with the members that docs/importing.md lists, and fits the table",
    "bad-alias": "a line of aliases must be NAME = PLAYER, where PLAYER is not an alias; each name must occur once",
    "new-player": "the name is new, and --strict accepts no new names",
    "new-ladder": "the game would begin a new ladder, and --strict accepts none",
    "nobody": "a cell for a player has a word such as bye, which does not name a player",
    "tied-players": "one cell holds several players; join them by =, use --ties, or write a row for each player",
    "id-conflict": "an event with this id but different content exists",
    "game-exists": "this game is already recorded under another event id",
    "uncounted": "the game is eligible for a ladder whose rule cannot score it; --allow-uncounted records it",
    "score-too-fine": "the score has more decimals than the `score_decimals` of a ladder's ruleset",
    "number-out-of-range": "the number is outside the range that the ruleset of a ladder declares",
    "no-teams": "the game has partners, but the rule of a ladder rates each player against all others",
    "number-missing": "the ruleset of a ladder needs a number that the game does not have",
    "unknown-ladder": "no ruleset has this name, or the ladder's name is malformed",
    "ladder-not-adjustable": "the points of monthly, open and annual lists come only from games",
    "finer-than-scale": "the points of the ladder cannot represent steps that small",
    "seed-column": "a seed can only have columns of the state that the ladder's rule keeps",
    "seed-of-club": "a seed is the initial state of a player; all clubs of a ladder begin with the same state",
    "seed-late": "a seed must precede the player's first counted game on the ladder, or replace a withdrawn seed",
    "seed-exists": "a player has at most one seed on a ladder; withdraw it before you record another",
    "seeds-differ": "two ids with different seeds on a ladder can become one person only after a seed is withdrawn",
    "bad-ruleset": "the ruleset cannot be used; rules check explains",
    "version-exists": "this version of the ruleset is published with different content",
    "partition-changed": (
        "the versions of a ruleset share partition, zone, freeze, periods, seasons, entrant, ranking and scale"
    ),
    "league-exists": "a league is created once, before games are recorded for it",
    "league-unscored": "no ruleset scores leagues of this game, so none can be created",
    "league-unknown": "no league of this name has been created",
    "league-joined": "a player joins a league only once",
    "league-full": "a league has eight players",
    "league-not-full": "the schedule is drawn once all eight players have joined",
    "league-scheduled": "a league has one schedule",
    "bad-schedule": "the games do not fit the league",
    "not-active": "the player has not finished enough games recently; the ruleset states how many in how many days",
    "not-scheduled": "a league's game is one of those on its schedule",
    "not-as-scheduled": "a league's game is played by the players who are scheduled for it, in their seats",
    "list-running": "a list is published when its period is over",
    "period-open": "a list is published when the rating periods of all its games are closed",
    "list-empty": "a list has at least one row",
    "list-exists": "the same list is already published with the same content",
    "bad-list": "a published list has all its rows, each player once, with their digest; its ruleset ranks its ladder",
    "bad-batch": "a batch names earlier positions of its own ledger, and only an import records one",
    # the clock of a game
    "clock-not-started": "a clock's first event is clock.started",
    "clock-started-twice": "a game's clock is started once",
    "clock-stopped": "no event of the clock may follow clock.stopped",
    "clock-time-backwards": "the server's time never decreases",
    "clock-paused": "no player plays during a pause",
    "clock-player-unknown": "only players named in clock.started can play",
    "clock-player-out": "no event may concern a player after they were removed or left",
    "clock-choice-open": "a player has one open choice at a time",
    "clock-choice-missing": "only a choice that was offered can be decided",
    "clock-time-short": "the player's main timer must have at least the cost of an auction",
    "clock-pause-open": "a pause has already been requested or granted",
    "clock-no-question": "an answer needs an open request for a pause",
    "clock-not-paused": "only a paused game is resumed",
    # corrections
    "game-unknown": "no game of this game_id is recorded",
    "game-voided": "the game is voided; reinstate it before you change it",
    "game-live": "the game is not voided, so it cannot be reinstated",
    "nothing-to-correct": "the correction equals the recorded game",
    "game-id-changed": "a correction keeps the game_id",
    "event-unknown": "no event has this id",
    "event-of-game": "single events of a game cannot be voided; void, reinstate or correct the game",
    "event-voided": "the event is already withdrawn",
    "nothing-to-undo": "nothing that can be undone was recorded under this name",
    "never-undone": "the rulesets that init publishes, and home zones, cannot be undone",
    "undone-already": "the event to undo no longer has any effect",
    "changed-since": "the event to undo was changed later; undo the later change first",
    "batch-unknown": "no import of this name is recorded",
    "still-needed": "another recorded event depends on this event",
    "changed-in-both": "a game was changed both in a sheet and in the ledger since the sheet was imported",
    "not-confirmed": "decisions about recorded games need a confirmation",
    "changed-meanwhile": "another writer has changed the same subject since it was read",
    "player-unknown": "nothing is recorded about this player",
    "renamed-already": "the player already has a new id; one id leads to one person, and one name to one club",
    "club-unknown": "no player has played for this club",
    "rename-loop": "the new id leads back to the old one",
    "players-met": "two ids that met in one game cannot be one person",
    # restoring a ledger
    "restore-mismatch": "the line does not continue the log exactly",
    "end-missing": "the exported file lacks the last line, which names the head; --head or --incomplete accept it",
    "end-mismatch": "an export must end at the head that its last line, or --head, names; nothing may follow it",
}


class Rejection(NamedTuple):
    """A refused piece of input: a code of `CODES`, a message with the error and the fix, and the file and line."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None


class Refused(LedgerError, ValueError):
    """An error in one event or value. Code that reads many events converts it to a `Rejection` (exit code 1).

    If it stops a command, the exit code is 2.
    """

    reason = "unknown"

    def __init__(self, code: str, message: str, line: int | None = None) -> None:
        super().__init__(message, code)
        assert code in CODES, code
        self.code = code
        self.message = message
        self.line = line
        # the players that the refused input names, so that their names are checked too
        self.names: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[type["Refused"], tuple[str, str, int | None], dict[str, Any]]:
        return type(self), (self.code, self.message, self.line), {"names": self.names}

    def to_rejection(self, file: str | None = None, line: int | None = None) -> Rejection:
        """Convert this error to a value with its location in the input; the error's own line is the default."""
        return Rejection(self.code, self.message, file, self.line if line is None else line)


class ChangedMeanwhile(Refused):
    """Another writer has changed the subject of this decision since you read it; read it again (exit code 1)."""


# the first characters of formulas (OWASP, CSV injection); also in full width, which Japanese spreadsheets accept
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# numbers as this program writes them; a name that consists of such a number is not a formula either
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+|/[0-9]+)?")


def did_you_mean(word: str, known: Iterable[str], to_current_id: Callable[[str], str] = str) -> str:
    """Return the end of a message about an unknown word: a suggestion of the closest known word, or an empty string.

    `to_current_id` maps the id of a known player to their current id.

    >>> did_you_mean("mria", ["mira", "ben"])
    '; did you mean mira?'
    """
    close = find_closest(word, known)
    return "" if close is None else f"; did you mean {to_current_id(close)}?"


def find_closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most similar to a word, or else the only known name with this word in it, or None.

    >>> find_closest("Jana", ["Jana Köhler", "Ben Koch"])
    'Jana Köhler'
    """
    from difflib import get_close_matches  # slow to import, and needed only after a typing error

    folded = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), folded, n=1)
    if close:
        return folded[close[0]]
    # the word may be only a first or last name
    containing = [name for name in folded if word.casefold() in re.split(r"[\s,]+", name)]
    return folded[containing[0]] if len(containing) == 1 else None


def quote(value: object, limit: int = 60) -> str:
    """Quote a value for a message, shortened to `limit` characters, with unprintable characters escaped."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # too many digits, or too deeply nested
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def csv_item(name: str) -> str:
    """Return a name for a list separated by commas; a name with a comma is quoted.

    >>> csv_item("Anna Schmidt"), csv_item("Schmidt, Anna")
    ('Anna Schmidt', "'Schmidt, Anna'")
    """
    return repr(name) if "," in name else name


def escape_unprintable(text: str, kept: str = "", halves: bool = False) -> str:
    """Escape the characters that could move the cursor, or reorder or hide text, in a terminal or on a page.

    These are control, direction, line separator, private, unassigned and invisible characters, and halves of surrogate
    pairs. They become \\uXXXX or, beyond U+FFFF, \\UXXXXXXXX; with `halves`, two halves \\uXXXX\\uXXXX as in JSON.
    Spaces and the `kept` characters remain.

    >>> escape_unprintable("Jürgen \\u202e\\x1b[2J"), escape_unprintable("\\U000e0041", halves=True)
    ('Jürgen \\\\u202e\\\\u001b[2J', '\\\\udb40\\\\udc41')
    """
    if text.isprintable():
        return text

    def escape(match: Match[str]) -> str:
        character = match[0]
        if character.isprintable() or character in kept or category(character) == "Zs":
            return character
        code = ord(character)
        if code <= 0xFFFF:
            return f"\\u{code:04x}"
        if not halves:
            return f"\\U{code:08x}"
        return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"

    return _NOT_PRINTABLE_ASCII.sub(escape, text)


_NOT_PRINTABLE_ASCII = re.compile(r"[^ -~]")


def formula_safe(cell: Cell) -> Cell | str:
    """Return a cell that no spreadsheet takes for a formula: text that begins like a formula gets an apostrophe.

    >>> formula_safe("=1+1"), formula_safe("-rf"), formula_safe("-5/3"), formula_safe("anna"), formula_safe(-7)
    ("'=1+1", "'-rf", '-5/3', 'anna', -7)
    """
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the singular or plural.

    >>> count(1, "game"), count(1_000, "game")
    ('1 game', '1,000 games')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
