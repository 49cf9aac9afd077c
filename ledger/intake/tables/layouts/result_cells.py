"""What a cell with a result says about two sides: who won, with which scores, in which sets.

1-0  ½-½  0:1       who won           remis  W  lost        who won
3:1  21-18          the scores        +:-  1-0F  3:0 w.o.   it was not played
11:7 11:9 11:3      sets              3:0 (11:7 11:9 11:3)  the scores, and the sets that they count

Whether 1:0 is who won, or a score, is for the whole column to say: it is a score beside 2:1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from ratings_ledger.ledger.intake.forfeits import FIRST_CAME, NOBODY_CAME, PLACES, SECOND_CAME
from ratings_ledger.ledger.intake.tables.columns import convert_decimal_comma
from ratings_ledger.ledger.intake.tables.dates import may_be_date
from ratings_ledger.ledger.intake.tables.meanings import fold_word
from ratings_ledger.ledger.rejections import Refused, quote

_HALF = {"½": "0.5", "1/2": "0.5"}
_NUMBER = r"\d+(?:[.,]\d+)?|½|1/2"
_TO = r"\s*[-–—−:]\s*"
_PAIR = re.compile(rf"({_NUMBER}){_TO}({_NUMBER})", re.ASCII)
# a set, as in 7:6(5) perhaps with the points of the tie-break; and several
_ONE_SET = rf"\d{{1,3}}{_TO}\d{{1,3}}(?:\s*\(\d{{1,2}}\))?"
_SET = re.compile(rf"(\d{{1,3}}){_TO}(\d{{1,3}})(?:\s*\((\d{{1,2}})\))?", re.ASCII)
_BETWEEN = r"\s*[\s,;/|]\s*"
_SETS = re.compile(rf"{_ONE_SET}(?:{_BETWEEN}{_ONE_SET})+", re.ASCII)
_ANY_SETS = re.compile(rf"{_ONE_SET}(?:{_BETWEEN}{_ONE_SET})*", re.ASCII)
_PAIR_AND_SETS = re.compile(rf"(\d+){_TO}(\d+)\s*[(\[]\s*({_ONE_SET}(?:{_BETWEEN}{_ONE_SET})*)\s*[)\]]", re.ASCII)
_FORFEIT = re.compile(r"([-+])\s*([-:/])\s*([-+])|([-+])([-+])", re.ASCII)
_FORFEIT_MARK = r"\(?\s*(?:f|ff|wo|w\.\s?o\.?|w/o|walkover|forfeit|forfait|kampflos|kl\.?)\s*\)?"
_PAIR_AND_MARK = re.compile(rf"(\d+)f?{_TO}(\d+)\s*{_FORFEIT_MARK}", re.ASCII | re.IGNORECASE)
_WON = """w win won victory sieg gewonnen gewinn gagne victoire victoria gano ganado vittoria vinto winst vitoria"""
_LOST = """l loss lost lose defeat niederlage verloren perdu defaite derrota perdio perdido sconfitta perso verlies"""
_DRAWN = """draw drawn tie tied remis remise remi unentschieden nul nulle matchnul egalite tablas empate pareggio patta
    gelijk gelijkspel oavgjort uavgjort uafgjort tasapeli"""
# who won by a word: 1 the first side, -1 the second, 0 neither
_WORDS = {word: winner for words, winner in ((_WON, 1), (_LOST, -1), (_DRAWN, 0)) for word in words.split()}
DRAWN_SIGNS = ("½", "1/2", "=")
DATE_ADVICE = "format these columns as text, then type the results again"

Pair = tuple[str, str]


class CellResult(NamedTuple):
    """What a cell says, of the first side before the second: a pair of numbers; or else who won (1 the first, -1 the
    second, 0 neither), as a word says; sets, each with the points of its tie-break if these are given; or what is noted
    of a game that was not played.
    """

    pair: Pair | None = None
    winner: int | None = None
    sets: tuple[tuple[int, int, str], ...] = ()
    forfeit: str | None = None

    @property
    def is_of_places(self) -> bool:
        """Tell whether the pair may say only who won."""
        return self.pair in (("1", "0"), ("0", "1"), ("0.5", "0.5"))

    @property
    def sets_won(self) -> Pair:
        """Return how many sets each side won."""
        return str(sum(a > b for a, b, _ in self.sets)), str(sum(a < b for a, b, _ in self.sets))


def is_draw(text: str) -> bool:
    """Tell whether a text says that nobody won."""
    return text in DRAWN_SIGNS or _WORDS.get(fold_word(text)) == 0


@lru_cache(maxsize=10_000)
def parse_result(text: str) -> CellResult:
    """Return what a cell of a result says. Raises `Refused` (bad-value, result-became-date)."""
    if may_be_date(text):
        raise Refused("result-became-date", f"{quote(text)} is a date or a time; {DATE_ADVICE}")
    if text in DRAWN_SIGNS or fold_word(text) in _WORDS:
        return CellResult(winner=_WORDS.get(fold_word(text), 0))
    if match := _FORFEIT.fullmatch(text):
        forfeit = f"{match[1] or match[4]}:{match[3] or match[5]}"
        # dashes alone stand in many empty cells
        if forfeit in PLACES and (forfeit != NOBODY_CAME or match[2] in (":", "/")):
            return CellResult(forfeit=forfeit)
    if match := _PAIR_AND_MARK.fullmatch(text):
        came, other = int(match[1]), int(match[2])
        return CellResult(forfeit=NOBODY_CAME if came == other else FIRST_CAME if came > other else SECOND_CAME)
    if match := _PAIR.fullmatch(text):
        first, second = (_HALF.get(part) or convert_decimal_comma("result", part) for part in match.groups())
        if "0.5" in (first, second) and not {first, second}.isdisjoint(("0", "1")):
            message = "gives one player half a point alone; write ½-½, 1-0 or 0-1"
            raise Refused("bad-value", f"{quote(text)} {message}")
        return CellResult(pair=(first, second))
    if match := _PAIR_AND_SETS.fullmatch(text):
        return _checked(CellResult(pair=(str(int(match[1])), str(int(match[2]))), sets=_sets(match[3])), text)
    if _SETS.fullmatch(text):
        return _refuse_doubtful(CellResult(sets=_sets(text)), text)
    raise Refused(
        "bad-value",
        f"{quote(text)} is no result such as 1-0, 3:2, draw or 11:7 11:9 11:3; a forfeit is +:- or 3:0 w.o.",
    )


def parse_set(text: str) -> tuple[int, int, str]:
    """Return the set in a cell of its own. Raises `Refused` (bad-value, result-became-date)."""
    if may_be_date(text):
        raise Refused("result-became-date", f"{quote(text)} is a date or a time; {DATE_ADVICE}")
    if (match := _SET.fullmatch(text)) is None:
        raise Refused("bad-value", f"{quote(text)} is no set such as 11:7")
    return int(match[1]), int(match[2]), match[3] or ""


def count_sets(text: str, score: str | None = None) -> str:
    """Count how many sets both sides won, such as 2:1.

    Raises `Refused`: bad-value if the text is not sets, results-disagree if it is and the score differs, or if the
    second side won more sets.

    >>> count_sets("11:7 9:11 11:3")
    '2:1'
    """
    if _ANY_SETS.fullmatch(text.strip()) is None:
        raise Refused("bad-value", f"--sets {quote(text)} is not sets such as '11:7 9:11 11:3'")
    first, second = CellResult(sets=_sets(text)).sets_won
    counted = f"{first}:{second}"
    if int(first) < int(second):
        message = f"--sets {quote(text)} gives {counted}, so the second of the players won"
        raise Refused("results-disagree", f"{message}; give the winner's points first, or name the players anew")
    if score is not None and score != counted:
        raise Refused("results-disagree", f"--sets {quote(text)} gives {counted}, not {score}; leave out --score")
    return counted


def format_sets(text: str) -> str:
    """Return sets as `extra.scores` has them.

    >>> format_sets("11-7, 9-11")
    '11:7 9:11'
    """
    return " ".join(map(format_set, _sets(text)))


def _sets(text: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((int(match[1]), int(match[2]), match[3] or "") for match in _SET.finditer(text))


def _checked(result: CellResult, text: str) -> CellResult:
    """Return a result with its sets. Raises `Refused` (results-disagree) if the sets do not count it."""
    if result.sets_won != result.pair:
        message = f"its sets were won {':'.join(result.sets_won)}"
        raise Refused("results-disagree", f"{quote(text)} contradicts itself: {message}; put the result or a set right")
    return result


def _refuse_doubtful(result: CellResult, text: str) -> CellResult:
    """Return a result of sets. Raises `Refused` (bad-value) if the first of them may count the others."""
    (first, second, _), *others = result.sets
    rest = CellResult(sets=tuple(others))
    if rest.sets_won == (str(first), str(second)):
        message = f"may be {len(result.sets)} sets, or the result {first}:{second} with {len(others)} sets"
        listed = " ".join(map(format_set, others))
        raise Refused("bad-value", f"{quote(text)} {message}; write {first}:{second} ({listed}), or leave one out")
    return result


def format_set(one: tuple[int, int, str]) -> str:
    """Return a set as `extra.scores` has it."""
    return f"{one[0]}:{one[1]}" + (f"({one[2]})" if one[2] else "")


def are_all_wins(texts: Iterable[str]) -> bool:
    """Tell whether the pairs of a column say only who won: all of them are 1-0, 0-1 or halves."""
    for text in texts:
        with suppress(Refused):
            result = parse_result(text)
            if result.pair is not None and not result.is_of_places:
                return False
    return True
