"""Sheets that are refused, each with the message and the remedy: options that the message names, or a changed cell."""

from datetime import date, time
from typing import Any, NamedTuple

D22 = date(2024, 11, 22)
PAIR, WINNERS = ["Date", "Player 1", "Player 2", "Result"], ["Date", "Winner", "Loser", "Score"]


class RefusedSheet(NamedTuple):
    """A sheet, the code and a part of the message of its rejection, and the remedy: options or a changed cell.

    `cell` is a row, a column and the new content.
    """

    rows: list[list[Any]]
    code: str
    message: str
    options: tuple[str, ...] = ()
    cell: tuple[int, int, Any] | None = None


SHEETS = {
    "a result that became a date": RefusedSheet(
        [PAIR, [D22, "anna", "ben", date(2024, 3, 1)]], "result-became-date",
        "Results!D2 (Result): '2024-03-01' is a date or a time; spreadsheets turned results into dates in Result (1 "
        "cell); format these columns as text, then type the results again", cell=(1, 3, "3-1"),
    ),
    "a result that became a time": RefusedSheet(
        [PAIR, [D22, "anna", "ben", time(3, 1)]], "result-became-date", "Results!D2 (Result): '03:01:00' is",
        cell=(1, 3, "3:1"),
    ),
    "a result that became a time without zeros": RefusedSheet(
        [PAIR, [D22, "anna", "ben", time(11, 13)]], "result-became-date", "Results!D2 (Result): '11:13:00' is",
        cell=(1, 3, "11:13"),
    ),
    "a set that became a time": RefusedSheet(
        [["Datum", "Spieler 1", "Spieler 2", "S1", "S2"], [D22, "anna", "ben", "11:9", time(11, 7)]],
        "result-became-date", "Results!E2 (S2): '11:07:00' is a date or a time", cell=(1, 4, "11:7"),
    ),
    "a result that became a month in German": RefusedSheet(
        [PAIR, [D22, "anna", "ben", "03. Jan"]], "result-became-date", "'03. Jan' is a date", cell=(1, 3, "3-1"),
    ),
    "a winner who is not in the row": RefusedSheet(
        [["Date", "Player 1", "Player 2", "Winner"], [D22, "anna", "ben", "bne"]], "winner-not-in-row",
        "Results!D2 (Winner): 'bne' is not one of the row's players, 'anna' and 'ben'; write one of them, or the word",
        cell=(1, 3, " ben "),
    ),
    "no winner": RefusedSheet(
        [["Date", "Player 1", "Player 2", "Winner"], [D22, "anna", "ben", None]], "missing-member",
        "Results!D2 (Winner): the row has no winner; write the winner's name, or the word draw", cell=(1, 3, "draw"),
    ),
    "a winner among three players": RefusedSheet(
        [["Date", "Player 1", "Player 2", "Player 3", "Winner"], [D22, "anna", "ben", "cleo", "ben"]],
        "others-unknown", "tie the others with --others tied", options=("--others", "tied"),
    ),
    "a winner with fewer points": RefusedSheet(
        [WINNERS, [D22, "anna", "ben", "1-3"]], "results-disagree", "if fewer points win: --set score_order=low",
        options=("--set", "score_order=low"),
    ),
    "a winner and a draw": RefusedSheet(
        [WINNERS, [D22, "anna", "ben", "2-2"]], "results-disagree",
        "if games may be drawn: --map 'Winner=player 1' --map 'Loser=player 2'",
        options=("--map", "Winner=player 1", "--map", "Loser=player 2"),
    ),
    "names alone": RefusedSheet(
        [["Date", "Player 1", "Player 2", "Player 3"], [D22, "anna", "ben", "cleo"]], "unclear-layout",
        "no column says who won; if each row lists its players by place, Player 1 first",
        options=("--layout", "places"),
    ),
    "sets that contradict their result": RefusedSheet(
        [PAIR, [D22, "anna", "ben", "3:0 (11:7, 9:11, 11:3)"]], "results-disagree",
        "contradicts itself: the sets add up to 2:1", cell=(1, 3, "2:1 (11:7, 9:11, 11:3)"),
    ),
    "sets that contradict the winner": RefusedSheet(
        [["Date", "Winner", "Loser", "S1", "S2"], [D22, "anna", "ben", "11:7", "9:11"]], "results-disagree",
        "Results!D2 (S1) says that the game was drawn, but Results!B2 (Winner) says that the first side won",
        cell=(1, 4, "11:9"),
    ),
    "a first pair that is a set or the result": RefusedSheet(
        [PAIR, [D22, "anna", "ben", "2:0 11:7 11:9"]], "bad-value",
        "could be 3 sets, or the result 2:0 with 2 sets; write 2:0 (11:7 11:9)", cell=(1, 3, "2:0 (11:7 11:9)"),
    ),
    "half a point alone": RefusedSheet(
        [PAIR, [D22, "anna", "ben", "½-0"]], "bad-value", "gives half a point to only one player", cell=(1, 3, "½-½"),
    ),
    "a result without an opponent": RefusedSheet(
        [["Date", "Player", "Result", "Gegen wen"], [D22, "anna", "W", "ben"]], "missing-column",
        "Result says who won, but no column is called opponent; name the opponent's column: --map 'THEIRS=player 2'",
        options=("--map", "Gegen wen=player 2"),
    ),
    "one of three without a score": RefusedSheet(
        [["Date", "Player 1", "Score 1", "Player 2", "Score 2", "Player 3", "Score 3"],
         [D22, "anna", 10, "ben", 7, "cleo", None]],
        "missing-member", "Results!G2 (Score 3): the row has other scores, but no third score", cell=(1, 6, 8),
    ),
}  # fmt: skip
