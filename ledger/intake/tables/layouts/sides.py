"""Rows that are games between sides, and all cells from which the outcome is known.

A row may give the outcome several times: by the winner's name, a result, scores, and sets. All must agree, or the row
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ratings_ledger.ledger.events.fields import read_decimal, to_nfc
from ratings_ledger.ledger.intake.forfeits import PLACES
from ratings_ledger.ledger.intake.tables.columns import Cells, TableOptions
from ratings_ledger.ledger.intake.tables.dates import may_be_date
from ratings_ledger.ledger.intake.tables.layouts.layout import CellRows, TableView
from ratings_ledger.ledger.intake.tables.layouts.result_cells import (
    DATE_ADVICE,
    CellResult,
    Score,
    are_winner_only,
    format_set,
    is_draw,
    parse_result,
    parse_set,
)
from ratings_ledger.ledger.intake.tables.meanings import (
    JOIN,
    LOSER,
    OF_SIDES,
    RESULT,
    SET_COLUMNS,
    SETS,
    SIDE_SCORES,
    SIDES,
    WINNER,
)
from ratings_ledger.ledger.intake.tables.partners import split_team_cell
from ratings_ledger.ledger.rejections import Refused, csv_item, did_you_mean, quote

Parsed = TypeVar("Parsed")
SCORE = "score"
RESULTS = (RESULT, SCORE, SETS)
TIED = "tied"
OTHERS = (TIED,)
BESIDES = frozenset((*OF_SIDES, SCORE))


class Verdict(NamedTuple):
    """The outcome of a game between two sides according to one column.

    column:  what the column holds
    winner:  1 if the first side won, -1 if the second did, 0 for a draw, None for a game that nobody came to
    scores:  the scores of both sides
    sets:    the sets, each with the points of its tie-break or an empty text
    forfeit: how the result of a game that was not played is noted
    """

    column: str
    winner: int | None
    scores: Score | None = None
    sets: tuple[tuple[int, int, str], ...] = ()
    forfeit: str | None = None


class SidesReader(NamedTuple):
    """The reader of the rows of one table.

    sides:        the columns of its sides
    of_places:    the columns of results in which 1-0 is a win, not a score
    results:      its columns of results
    sets:         its columns of single sets
    became_dates: by column of results or sets, how many cells a spreadsheet turned into dates or times
    """

    view: TableView
    options: TableOptions
    sides: tuple[str, ...]
    of_places: frozenset[str]
    results: tuple[str, ...]
    sets: tuple[str, ...]
    became_dates: Mapping[str, int]

    def read_row(self, line: int, cells: Cells | Refused) -> Iterator[tuple[int, Cells | Refused]]:
        """Yield a row for each player, or the refusal of the row."""
        if isinstance(cells, Refused):
            yield line, cells
            return
        try:
            rows = self._read_cells(line, cells)
        except Refused as problem:
            problem.names = self._list_names(cells)
            yield line, problem
            return
        for row in rows:
            yield line, row

    def _read_cells(self, line: int, cells: Cells) -> list[Cells]:
        """Return the cells of each player, in the usual form. Raises `Refused`."""
        sides = [name for name in self.sides if name in cells]
        if len(sides) < 2:
            missing = next(name for name in self.sides if name not in cells)
            raise Refused("missing-member", f"{self.view.cell(line, missing)}: the row has no {missing}")
        if self.became_dates:
            self._refuse_dates(line, cells)
        outcomes = self._score_two(line, cells, sides) if len(sides) == 2 else self._score_several(line, cells, sides)
        shared = {name: text for name, text in cells.items() if name not in BESIDES}
        players = [split_team_cell(name, cells[name], self.options) for name in sides]
        in_teams = [*map(len, players)] != [1] * len(players)
        return [
            {**shared, "player": player, **outcome, **({"team": str(number)} if in_teams else {})}
            for number, (partners, outcome) in enumerate(zip(players, outcomes, strict=True), 1)
            for player in partners
        ]

    def _list_names(self, cells: Cells) -> tuple[str, ...]:
        """Return the players of a refused row, as far as its cells can be split."""
        players = list[str]()
        for name in self.sides:
            with suppress(Refused):
                players += split_team_cell(name, cells[name], self.options) if name in cells else []
        return (*players,)

    def _score_two(self, line: int, cells: Cells, sides: list[str]) -> Sequence[Cells]:
        """Return the scores or places of two sides. Raises `Refused` (missing-member, results-disagree)."""
        verdicts = [*self._list_verdicts(line, cells, sides)]
        if not verdicts:
            where = next((self.view.cell(line, name) for name in (*RESULTS, WINNER) if name in self.view.meanings), "")
            raise Refused("missing-member", f"{where}{': ' * bool(where)}the row has no result")
        if forfeit := next((verdict.forfeit for verdict in verdicts if verdict.forfeit), None):
            first, second = PLACES[forfeit]
            self._refuse_contradiction(line, [verdict for verdict in verdicts if verdict.winner is not None])
            note = {"extra.forfeit": forfeit}
            return {"place": str(first), **note}, {"place": str(second), **note}
        self._refuse_contradiction(line, verdicts)
        sets = next((verdict.sets for verdict in verdicts if verdict.sets), ())
        extra = {"extra.scores": " ".join(map(format_set, sets))} if sets else {}
        if scores := next((verdict.scores for verdict in verdicts if verdict.scores), None):
            return {SCORE: scores[0], **extra}, {SCORE: scores[1], **extra}
        places = {1: ("1", "2"), -1: ("2", "1"), 0: ("1", "1")}[verdicts[0].winner or 0]
        return {"place": places[0], **extra}, {"place": places[1], **extra}

    def _list_verdicts(self, line: int, cells: Cells, sides: list[str]) -> Iterator[Verdict]:
        """Yield the outcome according to each column that gives one."""
        if sides == [WINNER, LOSER]:
            yield Verdict(WINNER, 1)
        elif WINNER in cells:
            winner = self._find_winner(line, cells, sides)
            yield Verdict(WINNER, 0 if winner is None else (1, -1)[winner])
        elif WINNER in self.view.meanings:
            raise self._explain_missing_winner(line)
        for name in self.results:
            if name in cells:
                yield self._judge_result(line, name, cells)
        if sets := tuple(self._parse(line, name, parse_set, cells[name]) for name in self.sets if name in cells):
            yield self._judge_sets(SET_COLUMNS[0], CellResult(sets=sets))
        columns = [SIDE_SCORES[SIDES.index(side) if side in SIDES else index] for index, side in enumerate(sides)]
        if any(name in cells for name in columns):
            first, second = self._read_side_scores(line, cells, columns)
            yield Verdict(columns[0], self._compare_scores(cells, (first, second)), (first, second))

    def _judge_result(self, line: int, name: str, cells: Cells) -> Verdict:
        result = self._parse(line, name, parse_result, cells[name])
        if result.forfeit is not None:
            first, second = PLACES[result.forfeit]
            return Verdict(name, (second > first) - (second < first) or None, forfeit=result.forfeit)
        if result.pair is None and not result.sets:
            return Verdict(name, result.winner)
        if result.pair is not None and not result.sets:
            is_score = name not in self.of_places
            return Verdict(name, self._compare_scores(cells, result.pair, is_score), result.pair if is_score else None)
        return self._judge_sets(name, result)

    def _judge_sets(self, name: str, result: CellResult) -> Verdict:
        won = result.sets_won
        return Verdict(name, _sign(*map(int, won)), won, result.sets)

    def _refuse_dates(self, line: int, cells: Cells) -> None:
        """Raise `Refused` (result-became-date) for a row with a date in place of a result; name all such columns."""
        first = next((name for name in self.became_dates if name in cells and may_be_date(cells[name])), None)
        if first is None:
            return
        columns = ", ".join(f"{csv_item(self.view.name_of(name))} ({n:,})" for name, n in self.became_dates.items())
        message = f"{self.view.cell(line, first)}: {quote(cells[first])} is a date or a time"
        cause = f"spreadsheets turned results into dates in {columns}"
        raise Refused("result-became-date", f"{message}; {cause}; {DATE_ADVICE}")

    def _refuse_contradiction(self, line: int, verdicts: list[Verdict]) -> None:
        """Raise `Refused` (results-disagree) if two columns give different outcomes."""
        outcomes = {1: "the first side won", -1: "the second side won", 0: "nobody won"}
        for verdict in verdicts[1:]:
            if verdict.winner == verdicts[0].winner:
                continue
            place, first = (self.view.cell(line, column) for column in (verdict.column, verdicts[0].column))
            first_outcome = f"{first} says that {outcomes[verdicts[0].winner or 0]}"
            message = f"{place}: here {outcomes[verdict.winner or 0]}, but {first_outcome}; put one of them right"
            raise Refused("results-disagree", f"{message}{self._advise_on_scores(verdict)}")
        scored = [verdict for verdict in verdicts if verdict.scores]
        for verdict in scored[1:]:
            if verdict.scores != scored[0].scores:
                here, there = (":".join(scores or ()) for scores in (verdict.scores, scored[0].scores))
                place, first = (self.view.cell(line, column) for column in (verdict.column, scored[0].column))
                message = f"{place}: {here} here is not {there}, which {first} says"
                raise Refused("results-disagree", f"{message}; put one of them right, or drop a column with --map")

    def _advise_on_scores(self, verdict: Verdict) -> str:
        """Return further advice if a winner's score is the worse one, or equal to the loser's."""
        if self.sides != (WINNER, LOSER) or (verdict.scores is None and verdict.winner != 0):
            return ""
        if verdict.winner == 0:
            winner, loser = self.view.name_of(WINNER), self.view.name_of(LOSER)
            return f"; if games may be drawn: --map '{winner}=player 1' --map '{loser}=player 2'"
        return "; if fewer points win: --set score_order=low"

    def _find_winner(self, line: int, cells: Cells, sides: list[str]) -> int | None:
        """Return the index of the side that the winner's column names, None for a draw.

        Raises `Refused` (winner-not-in-row).
        """
        text = to_nfc(cells[WINNER])
        names = [to_nfc(cells[side]) for side in sides]
        if text in names:
            return names.index(text)
        # the winner may be given by the name of a column, such as White
        for index, side in enumerate(sides):
            column = to_nfc(self.view.name_of(side)).casefold()
            if text.casefold() in (column, *column.split(JOIN)):
                return index
        # or by one of the partners of a side
        teams = [map(to_nfc, split_team_cell(side, cells[side], self.options)) for side in sides]
        winners = [index for index, team in enumerate(teams) if text in team]
        if len(winners) == 1:
            return winners[0]
        if is_draw(text):
            return None
        listed = " and ".join(map(quote, names)) if len(names) == 2 else ", ".join(map(quote, names))
        hint = did_you_mean(text, names)
        message = f"{quote(text)} is not one of the row's players, {listed}{hint}; write one of them, or draw"
        raise Refused("winner-not-in-row", f"{self.view.cell(line, WINNER)}: {message}")

    def _explain_missing_winner(self, line: int) -> Refused:
        message = "the row has no winner; write the name, or draw"
        return Refused("missing-member", f"{self.view.cell(line, WINNER)}: {message}")

    def _score_several(self, line: int, cells: Cells, sides: list[str]) -> Sequence[Cells]:
        """Return the scores or places of three sides or more. Raises `Refused`."""
        if of_two := next((name for name in (*RESULTS, *SET_COLUMNS) if name in cells), None):
            message = f"{quote(cells[of_two])} cannot be of {len(sides)} players"
            advice = "give each a score, as in Score 1, Score 2"
            raise Refused("bad-value", f"{self.view.cell(line, of_two)}: {message}; {advice}")
        columns = [SIDE_SCORES[SIDES.index(side)] for side in sides]
        scores = self._read_side_scores(line, cells, columns) if any(name in cells for name in columns) else None
        if WINNER not in self.view.meanings:
            if scores is None:
                raise Refused("missing-member", f"{self.view.cell(line, columns[0])}: the row has no scores")
            return [{SCORE: score} for score in scores]
        if WINNER not in cells:
            raise self._explain_missing_winner(line)
        winner = self._find_winner(line, cells, sides)
        if scores is not None:
            best = [
                index
                for index, score in enumerate(scores)
                if all(self._compare_scores(cells, (score, other)) != -1 for other in scores)
            ]
            if (best != [winner]) if winner is not None else len(best) < len(sides):
                message = f"{quote(cells[WINNER])} is not who has the best score alone; put one of them right"
                raise Refused("results-disagree", f"{self.view.cell(line, WINNER)}: {message}")
            return [{SCORE: score} for score in scores]
        if winner is None:
            return [{"place": "1"}] * len(sides)
        if self.options.others != TIED:
            message = f"one of {len(sides)} players won, and nothing says how the others finished"
            advice = "give everybody a score or a place, or tie the others with --others tied"
            raise Refused("others-unknown", f"{self.view.cell(line, WINNER)}: {message}; {advice}")
        return [{"place": "1" if index == winner else "2"} for index in range(len(sides))]

    def _read_side_scores(self, line: int, cells: Cells, columns: list[str]) -> tuple[str, ...]:
        """Return the scores of all sides. Raises `Refused` (missing-member) if a side has none."""
        for name in columns:
            if name not in cells:
                raise Refused("missing-member", f"{self.view.cell(line, name)}: the row has no {name}, but others")
            self._parse(line, name, read_decimal, cells[name])
        return tuple(cells[name] for name in columns)

    def _compare_scores(self, cells: Cells, pair: Score, is_score: bool = True) -> int:
        """Return 1 if the first of two numbers is better, -1 if the second is, and 0 if they are equal."""
        order = cells.get("score_order", self.options.fixed.get("score_order"))
        sign = _compare_numbers(*pair)
        return -sign if is_score and order == "low" else sign

    def _parse(self, line: int, name: str, parse: Callable[[str], Parsed], text: str) -> Parsed:
        """Parse a cell. Raises `Refused` with the cell's place."""
        try:
            return parse(text)
        except Refused as problem:
            raise Refused(problem.code, f"{self.view.cell(line, name)}: {problem.message}") from None


def _sign(first: Decimal | int, second: Decimal | int) -> int:
    return (first > second) - (first < second)


@lru_cache(maxsize=10_000)
def _compare_numbers(first: str, second: str) -> int:
    """Return 1 if the first of two numbers is larger, -1 if the second is, and 0 if they are equal."""
    return _sign(Decimal(read_decimal(first)), Decimal(read_decimal(second)))


def create_reader(sides: tuple[str, ...], view: TableView, options: TableOptions) -> SidesReader:
    """Create the reader of a table, given the columns of its sides."""
    of_places = frozenset(name for name in RESULTS if are_winner_only(view.texts(name)))
    results, sets = (tuple(name for name in names if name in view.meanings) for names in (RESULTS, SET_COLUMNS))
    dates = {name: count for name in (*results, *sets) if (count := view.count_cells(name, may_be_date))}
    return SidesReader(view, options, sides, of_places, results, sets, dates)


def read_sides(
    sides: tuple[str, ...], rows: CellRows, view: TableView, options: TableOptions
) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield a row for each side of a game: with places where only that is known, else with scores."""
    reader = create_reader(sides, view, options)
    for line, cells in rows:
        yield from reader.read_row(line, cells)
