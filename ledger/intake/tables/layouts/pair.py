"""A row for each game, with two names and their result.

Date        White  Black  Result        Date        Player 1  Score 1  Player 2  Score 2
2024-11-22  anna   ben    1-0           2024-11-22  anna      11       ben       9

Date        Player  Opponent  Result    Date        Spieler 1  Spieler 2  Sätze  Satz 1  Satz 2
2024-11-22  anna    ben       W         2024-11-22  anna       ben        2:0    11:7    11:9
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from ratings_ledger.ledger.intake.tables.layouts.layout import Example, Layout, TableView
from ratings_ledger.ledger.intake.tables.layouts.sides import PER_SIDE_COLUMNS, RESULTS, read_sides
from ratings_ledger.ledger.intake.tables.meanings import FIRST, FIRST_SCORE, SECOND, SET_COLUMNS, SIDES
from ratings_ledger.ledger.rejections import Refused


def read_player_as_first(meanings: Collection[str | None]) -> Mapping[str, str]:
    """Map a column Player to the first of two players, unless another column has that meaning."""
    return {"player": FIRST} if FIRST not in meanings else {}


def has_two_sides(view: TableView) -> bool:
    """Tell whether a table has a column for the first of two players and one for the second."""
    return SECOND in view.meanings and (FIRST in view.meanings or "player" in view.meanings)


def _matches(view: TableView) -> bool:
    if not has_two_sides(view):
        return False
    if {*RESULTS, FIRST_SCORE, *SET_COLUMNS}.isdisjoint(view.meanings):
        refuse_without_result(view)
    return True


def refuse_without_result(view: TableView) -> None:
    """Raise `Refused` (unclear-layout) for a table in which no column says who won."""
    first = view.find_name(FIRST) if FIRST in view.meanings else view.find_name("player")
    message = f"no column says who won; if each row lists its players by place, {first} first, pass"
    has_third_player = not {*SIDES[2:]}.isdisjoint(view.meanings)
    scores = "the columns Score 1, Score 2 and so on" if has_third_player else "the columns Score 1 and Score 2"
    advice = f"--layout places; otherwise add a column Winner{'' if has_third_player else ' or Result'}, or {scores}"
    raise Refused("unclear-layout", f"{message} {advice}", view.header_line)


PAIR = Layout(
    "pair",
    "a row per game, two names with their result",
    _matches,
    examples=(
        Example(
            "Date,White,Black,Result\n2024-11-22,anna,ben,1-0\n2024-11-23,ben,anna,½-½\n",
            ("anna 1 ben 2", "ben 1 anna 1"),
        ),
        Example(
            "Tag,Heim,Gast,Ergebnis\n22.11.2024,anna,ben,3:1\n23.11.2024,ben,anna,1:0\n",
            ("anna =3 ben =1", "ben =1 anna =0"),
        ),
        Example("Date,Player 1,Score 1,Player 2,Score 2\n2024-11-22,anna,11,ben,9\n", ("anna =11 ben =9",)),
        Example(
            "Date,Player,Opponent,Result\n2024-11-22,anna,ben,W\n2024-11-23,anna,ben,lost\n",
            ("anna 1 ben 2", "anna 2 ben 1"),
        ),
        Example("Datum;Spieler 1;Spieler 2;Sätze\n22.11.2024;anna;ben;11:7 9:11 11:3\n", ("anna =2 ben =1",)),
        Example("Datum;Spieler 1;Spieler 2;S1;S2;S3\n22.11.2024;anna;ben;11:7;11:9;\n", ("anna =2 ben =0",)),
        Example("Datum;Paarung;Ergebnis\n22.11.2024;anna - ben;3:1\n", ("anna =3 ben =1",)),
        Example("Date,White,Black,Result\n2024-11-22,anna,ben,+:-\n", ("anna 1 ben 2",)),
        Example("Date,Home,Away,Result\n2024-11-22,anna,ben,01-03\n", ("result-became-date: D2 (Result): '01-03'",)),
    ),
    read=partial(read_sides, (FIRST, SECOND)),
    sides=(FIRST, SECOND),
    rename=read_player_as_first,
    additional_columns=PER_SIDE_COLUMNS,
)
