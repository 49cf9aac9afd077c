"""Parse a result cell: the winner, the scores and the sets of a game between two sides.

1-0  ½-½  0:1          the winner
remis  W  lost         the winner
3:1  21-18             the scores
11:7 11:9 11:3         the sets
3:0 (11:7 11:9 11:3)   the score in sets, and the sets
+:-  1-0F  3:0 w.o.    a forfeit

Whether 1:0 is only the winner or a score depends on the rest of the column: if the column also has 2:1, then 1:0 is a
score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from ratings_ledger.ledger.intake.forfeits import FIRST_PRESENT, NEITHER_PRESENT, PLACES, SECOND_PRESENT
from ratings_ledger.ledger.intake.tables.columns import convert_decimal_comma
from ratings_ledger.ledger.intake.tables.dates import may_be_date
from ratings_ledger.ledger.intake.tables.meanings import fold_word
from ratings_ledger.ledger.rejections import Refused, count, quote

_HALF = {"½": "0.5", "1/2": "0.5"}
_NUMBER = r"\d+(?:[.,]\d+)?|½|1/2"
_SEPARATOR = r"\s*[-–—−:]\s*"
_PAIR = re.compile(rf"({_NUMBER}){_SEPARATOR}({_NUMBER})", re.ASCII)
# one set, optionally with tie-break points as in 7:6(5); then two or more sets
_SET_PATTERN = rf"\d{{1,3}}{_SEPARATOR}\d{{1,3}}(?:\s*\(\d{{1,2}}\))?"
_SET = re.compile(rf"(\d{{1,3}}){_SEPARATOR}(\d{{1,3}})(?:\s*\((\d{{1,2}})\))?", re.ASCII)
_SET_SEPARATOR = r"\s*[\s,;/|]\s*"
_TWO_OR_MORE_SETS = re.compile(rf"{_SET_PATTERN}(?:{_SET_SEPARATOR}{_SET_PATTERN})+", re.ASCII)
_ONE_OR_MORE_SETS = re.compile(rf"{_SET_PATTERN}(?:{_SET_SEPARATOR}{_SET_PATTERN})*", re.ASCII)
_PAIR_AND_SETS = re.compile(
    rf"(\d+){_SEPARATOR}(\d+)\s*[(\[]\s*({_SET_PATTERN}(?:{_SET_SEPARATOR}{_SET_PATTERN})*)\s*[)\]]", re.ASCII
)
_FORFEIT = re.compile(r"([-+])\s*([-:/])\s*([-+])|([-+])([-+])", re.ASCII)
_FORFEIT_MARK = r"\(?\s*(?:f|ff|wo|w\.\s?o\.?|w/o|walkover|forfeit|forfait|kampflos|kl\.?)\s*\)?"
_PAIR_AND_MARK = re.compile(rf"(\d+)f?{_SEPARATOR}(\d+)\s*{_FORFEIT_MARK}", re.ASCII | re.IGNORECASE)
_WON = """w win won victory sieg gewonnen gewinn gagne victoire victoria gano ganado vittoria vinto winst vitoria"""
_LOST = """l loss lost lose defeat niederlage verloren perdu defaite derrota perdio perdido sconfitta perso verlies"""
_DRAWN = """draw drawn tie tied remis remise remi unentschieden nul nulle matchnul egalite tablas empate pareggio patta
    gelijk gelijkspel oavgjort uavgjort uafgjort tasapeli"""
# 1 if the first side won, -1 if the second, 0 for a draw
_WINNER_BY_WORD = {word: winner for words, winner in ((_WON, 1), (_LOST, -1), (_DRAWN, 0)) for word in words.split()}
DRAWN_SIGNS = ("½", "1/2", "=")
DATE_ADVICE = "format these columns as text, then type the results again"

Score = tuple[str, str]


class CellResult(NamedTuple):
    """The parsed content of a result cell, the first side first.

    pair:    two numbers: the scores, or 1-0, 0-1 or halves
    winner:  if the cell has a word: 1 if the first side won, -1 if the second did, 0 for a draw
    sets:    per set the points of both sides, and the points of its tie-break or an empty text
    forfeit: the notation of a forfeit, such as +:-
    """

    pair: Score | None = None
    winner: int | None = None
    sets: tuple[tuple[int, int, str], ...] = ()
    forfeit: str | None = None

    @property
    def may_mean_winner_only(self) -> bool:
        """Tell whether the pair may state only the winner."""
        return self.pair in (("1", "0"), ("0", "1"), ("0.5", "0.5"))

    @property
    def sets_won(self) -> Score:
        """Return the number of sets that each side won."""
        return str(sum(a > b for a, b, _ in self.sets)), str(sum(a < b for a, b, _ in self.sets))


def is_draw(text: str) -> bool:
    """Tell whether a text means a draw."""
    return text in DRAWN_SIGNS or _WINNER_BY_WORD.get(fold_word(text)) == 0


@lru_cache(maxsize=10_000)
def parse_result(text: str) -> CellResult:
    """Parse a result cell. Raises `Refused` (bad-decimal, bad-value, result-became-date, results-disagree)."""
    if may_be_date(text):
        raise Refused("result-became-date", f"{quote(text)} is a date or a time; {DATE_ADVICE}")
    if text in DRAWN_SIGNS or fold_word(text) in _WINNER_BY_WORD:
        return CellResult(winner=_WINNER_BY_WORD.get(fold_word(text), 0))
    if match := _FORFEIT.fullmatch(text):
        forfeit = f"{match[1] or match[4]}:{match[3] or match[5]}"
        # many tables have dashes such as --- in empty cells
        if forfeit in PLACES and (forfeit != NEITHER_PRESENT or match[2] in (":", "/")):
            return CellResult(forfeit=forfeit)
    if match := _PAIR_AND_MARK.fullmatch(text):
        first_score, second_score = int(match[1]), int(match[2])
        if first_score == second_score:
            return CellResult(forfeit=NEITHER_PRESENT)
        return CellResult(forfeit=FIRST_PRESENT if first_score > second_score else SECOND_PRESENT)
    if match := _PAIR.fullmatch(text):
        first, second = (_HALF.get(part) or convert_decimal_comma("result", part) for part in match.groups())
        if "0.5" in (first, second) and not {first, second}.isdisjoint(("0", "1")):
            message = "gives half a point to only one player; write ½-½, 1-0 or 0-1"
            raise Refused("bad-value", f"{quote(text)} {message}")
        return CellResult(pair=(first, second))
    if match := _PAIR_AND_SETS.fullmatch(text):
        return _check_sets(CellResult(pair=(str(int(match[1])), str(int(match[2]))), sets=_parse_sets(match[3])), text)
    if _TWO_OR_MORE_SETS.fullmatch(text):
        return _refuse_doubtful(CellResult(sets=_parse_sets(text)), text)
    raise Refused(
        "bad-value",
        f"{quote(text)} is not a result; examples: 1-0, 3:2, draw, 11:7 11:9 11:3; write a forfeit as +:- or 3:0 w.o.",
    )


def parse_set(text: str) -> tuple[int, int, str]:
    """Parse a cell with one set. Raises `Refused` (bad-value, result-became-date)."""
    if may_be_date(text):
        raise Refused("result-became-date", f"{quote(text)} is a date or a time; {DATE_ADVICE}")
    if (match := _SET.fullmatch(text)) is None:
        raise Refused("bad-value", f"{quote(text)} is not a set; example: 11:7")
    return int(match[1]), int(match[2]), match[3] or ""


def count_sets(text: str, score: str | None = None) -> str:
    """Count the sets that each side won, such as 2:1.

    Raises `Refused`: bad-value if the text does not list sets, results-disagree if the second side won more of them or
    `score` differs from the count.

    >>> count_sets("11:7 9:11 11:3")
    '2:1'
    """
    if _ONE_OR_MORE_SETS.fullmatch(text.strip()) is None:
        raise Refused("bad-value", f"--sets {quote(text)} does not list sets; write them as in '11:7 9:11 11:3'")
    first, second = CellResult(sets=_parse_sets(text)).sets_won
    counted = f"{first}:{second}"
    if int(first) < int(second):
        message = f"--sets {quote(text)} gives {counted}, so the second player won"
        remedy = "put the winner's points first, or list the players in the other order"
        raise Refused("results-disagree", f"{message}; {remedy}")
    if score is not None and score != counted:
        raise Refused("results-disagree", f"--sets {quote(text)} gives {counted}, not {score}; leave out --score")
    return counted


def format_sets(text: str) -> str:
    """Return sets in the format of `extra.scores`.

    >>> format_sets("11-7, 9-11")
    '11:7 9:11'
    """
    return " ".join(map(format_set, _parse_sets(text)))


def _parse_sets(text: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((int(match[1]), int(match[2]), match[3] or "") for match in _SET.finditer(text))


def _check_sets(result: CellResult, text: str) -> CellResult:
    """Return the result unchanged. Raises `Refused` (results-disagree) if its sets do not add up to its score."""
    if result.sets_won != result.pair:
        message = f"the sets add up to {':'.join(result.sets_won)}"
        raise Refused("results-disagree", f"{quote(text)} contradicts itself: {message}; correct the result or a set")
    return result


def _refuse_doubtful(result: CellResult, text: str) -> CellResult:
    """Return a list of sets unchanged. Raises `Refused` (bad-value) if the first could be the score of the others."""
    (first, second, _), *later_sets = result.sets
    rest = CellResult(sets=tuple(later_sets))
    if rest.sets_won == (str(first), str(second)):
        later_count = count(len(later_sets), "set")
        message = f"could be {len(result.sets)} sets, or the result {first}:{second} with {later_count}"
        won = ":".join(result.sets_won)
        readings = ((f"{first}:{second}", later_sets), (won, result.sets))
        listed = " or ".join(f"{score} ({' '.join(map(format_set, sets))})" for score, sets in readings)
        raise Refused("bad-value", f"{quote(text)} {message}; write {listed}")
    return result


def format_set(played_set: tuple[int, int, str]) -> str:
    """Return a set in the format of `extra.scores`."""
    first, second, tie_break = played_set
    return f"{first}:{second}" + (f"({tie_break})" if tie_break else "")


def are_winner_only(texts: Iterable[str]) -> bool:
    """Tell whether the results of a column state only the winner: all pairs are 1-0, 0-1 or halves."""
    for text in texts:
        with suppress(Refused):
            result = parse_result(text)
            if result.pair is not None and not result.may_mean_winner_only:
                return False
    return True
