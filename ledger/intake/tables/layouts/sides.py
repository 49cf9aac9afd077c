"""Read rows that each hold one game between sides; take the outcome from every cell that states it.

A row may state the outcome several times: by the winner's name, a result, scores, and sets. If they disagree, the row
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
from ratings_ledger.ledger.intake.tables.columns import Cells, TableOptions, quote_for_shell
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
    RESULT,
    SET_COLUMNS,
    SETS,
    SIDE_COLUMNS,
    SIDE_SCORES,
    SIDES,
    WINNER,
)
from ratings_ledger.ledger.intake.tables.partners import split_team_cell
from ratings_ledger.ledger.rejections import Refused, count, csv_item, did_you_mean, quote

Parsed = TypeVar("Parsed")
SCORE = "score"
RESULTS = (RESULT, SCORE, SETS)
TIED = "tied"
OTHERS_CHOICES = (TIED,)
# columns that are read as sides or outcomes; the cells of all others apply to every player of the row
PER_SIDE_COLUMNS = frozenset((*SIDE_COLUMNS, SCORE))


class Verdict(NamedTuple):
    """The outcome of a game between two sides according to one column.

    column:  the meaning of the column, such as `winner`
    winner:  1 if the first side won, -1 if the second did, 0 for a draw, None for a double forfeit
    scores:  the scores of both sides, None if the column states only the winner
    sets:    per set the points of both sides, and the points of its tie-break or an empty text
    forfeit: the notation of a forfeit, such as +:-; None for a played game
    """

    column: str
    winner: int | None
    scores: Score | None = None
    sets: tuple[tuple[int, int, str], ...] = ()
    forfeit: str | None = None


class SidesReader(NamedTuple):
    """The reader of the rows of one table. All columns are given by their meanings.

    sides:            the columns of the sides
    win_only_columns: the result columns in which 1-0 is a win, not a score
    results:          the result columns
    sets:             the columns of single sets
    became_dates:     the number of cells that a spreadsheet turned into dates or times, by result or set column
    """

    view: TableView
    options: TableOptions
    sides: tuple[str, ...]
    win_only_columns: frozenset[str]
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
        """Return one row of cells per player. Raises `Refused`."""
        sides = [name for name in self.sides if name in cells]
        if len(sides) < 2:
            missing = next(name for name in self.sides if name not in cells)
            message = f"the row has no {missing}; fill in the name, or delete the row"
            raise Refused("missing-member", f"{self.view.locate_cell(line, missing)}: {message}")
        if self.became_dates:
            self._refuse_dates(line, cells)
        outcomes = self._score_two(line, cells, sides) if len(sides) == 2 else self._score_several(line, cells, sides)
        shared = {name: text for name, text in cells.items() if name not in PER_SIDE_COLUMNS}
        players = [split_team_cell(name, cells[name], self.options) for name in sides]
        in_teams = [*map(len, players)] != [1] * len(players)
        return [
            {**shared, "player": player, **outcome, **({"team": str(number)} if in_teams else {})}
            for number, (partners, outcome) in enumerate(zip(players, outcomes, strict=True), 1)
            for player in partners
        ]

    def _list_names(self, cells: Cells) -> tuple[str, ...]:
        """Return the players in those cells of a refused row that can be split into players."""
        players = list[str]()
        for name in self.sides:
            with suppress(Refused):
                players += split_team_cell(name, cells[name], self.options) if name in cells else []
        return (*players,)

    def _score_two(self, line: int, cells: Cells, sides: list[str]) -> Sequence[Cells]:
        """Return the scores or places of two sides. Raises `Refused`."""
        verdicts = [*self._list_verdicts(line, cells, sides)]
        if not verdicts:
            columns = (*RESULTS, WINNER, SET_COLUMNS[0], SIDE_SCORES[0])
            cell = self.view.locate_cell(line, next((name for name in columns if name in self.view.meanings), RESULT))
            message = "the row has no result; fill in the result, or delete the row"
            raise Refused("missing-member", f"{cell}: {message}")
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
        """Yield the outcome according to each column that states one."""
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
            is_score = name not in self.win_only_columns
            return Verdict(name, self._compare_scores(cells, result.pair, is_score), result.pair if is_score else None)
        return self._judge_sets(name, result)

    def _judge_sets(self, name: str, result: CellResult) -> Verdict:
        won = result.sets_won
        return Verdict(name, _compare(*map(int, won)), won, result.sets)

    def _refuse_dates(self, line: int, cells: Cells) -> None:
        """Raise `Refused` (result-became-date) if a result or set of the row is a date.

        The message lists all columns of the table with such dates.
        """
        first = next((name for name in self.became_dates if name in cells and may_be_date(cells[name])), None)
        if first is None:
            return
        columns = ", ".join(
            f"{csv_item(self.view.find_name(name))} ({count(n, 'cell')})" for name, n in self.became_dates.items()
        )
        message = f"{self.view.locate_cell(line, first)}: {quote(cells[first])} is a date or a time"
        cause = f"spreadsheets turned results into dates in {columns}"
        raise Refused("result-became-date", f"{message}; {cause}; {DATE_ADVICE}")

    def _refuse_contradiction(self, line: int, verdicts: list[Verdict]) -> None:
        """Raise `Refused` (results-disagree) if two columns state different outcomes."""
        outcomes = {1: "the first side won", -1: "the second side won", 0: "the game was drawn"}
        for verdict in verdicts[1:]:
            if verdict.winner == verdicts[0].winner:
                continue
            cell, first_cell = (self.view.locate_cell(line, column) for column in (verdict.column, verdicts[0].column))
            message = f"{cell} says that {outcomes[verdict.winner or 0]}, but {first_cell} says that "
            advice = f"correct one of them{self._advise_on_scores(verdict)}"
            raise Refused("results-disagree", f"{message}{outcomes[verdicts[0].winner or 0]}; {advice}")
        scored = [verdict for verdict in verdicts if verdict.scores]
        for verdict in scored[1:]:
            if verdict.scores != scored[0].scores:
                cell, first_cell = (
                    self.view.locate_cell(line, column) for column in (verdict.column, scored[0].column)
                )
                score, first_score = (":".join(scores or ()) for scores in (verdict.scores, scored[0].scores))
                message = f"{cell} says {score}, but {first_cell} says {first_score}"
                advice = "correct one of them, or drop a column with --map 'COLUMN='"
                raise Refused("results-disagree", f"{message}; {advice}")

    def _advise_on_scores(self, verdict: Verdict) -> str:
        """Return advice about options if the score makes the loser win or the game a draw; else an empty text."""
        if self.sides != (WINNER, LOSER) or (verdict.scores is None and verdict.winner != 0):
            return ""
        if verdict.winner == 0:
            pairs = ((WINNER, "player 1"), (LOSER, "player 2"))
            options = (f"--map {quote_for_shell(f'{self.view.find_name(side)}={word}')}" for side, word in pairs)
            return f"; if games may be drawn: {' '.join(options)}"
        return "; if fewer points win: --set score_order=low"

    def _find_winner(self, line: int, cells: Cells, sides: list[str]) -> int | None:
        """Return the index of the side named in the winner's column, None for a draw.

        Raises `Refused` (winner-not-in-row).
        """
        text = to_nfc(cells[WINNER])
        names = [to_nfc(cells[side]) for side in sides]
        if text in names:
            return names.index(text)
        # the cell may name the winner's column, such as White
        for index, side in enumerate(sides):
            column = to_nfc(self.view.find_name(side)).casefold()
            if text.casefold() in (column, *column.split(JOIN)):
                return index
        # or one of the partners of a side
        teams = [map(to_nfc, split_team_cell(side, cells[side], self.options)) for side in sides]
        winners = [index for index, team in enumerate(teams) if text in team]
        if len(winners) == 1:
            return winners[0]
        if is_draw(text):
            return None
        listed = " and ".join(map(quote, names)) if len(names) == 2 else ", ".join(map(quote, names))
        hint = did_you_mean(text, names)
        message = f"{quote(text)} is not one of the row's players, {listed}; write one of them, or the word draw{hint}"
        raise Refused("winner-not-in-row", f"{self.view.locate_cell(line, WINNER)}: {message}")

    def _explain_missing_winner(self, line: int) -> Refused:
        message = "the row has no winner; write the winner's name, or the word draw"
        return Refused("missing-member", f"{self.view.locate_cell(line, WINNER)}: {message}")

    def _score_several(self, line: int, cells: Cells, sides: list[str]) -> Sequence[Cells]:
        """Return the scores or places of three or more sides. Raises `Refused`."""
        if two_sided_column := next((name for name in (*RESULTS, *SET_COLUMNS) if name in cells), None):
            message = f"{quote(cells[two_sided_column])} cannot be the result of {len(sides)} players"
            advice = "give each player a score, in columns Score 1, Score 2 and so on"
            raise Refused("bad-value", f"{self.view.locate_cell(line, two_sided_column)}: {message}; {advice}")
        columns = [SIDE_SCORES[SIDES.index(side)] for side in sides]
        scores = self._read_side_scores(line, cells, columns) if any(name in cells for name in columns) else None
        if WINNER not in self.view.meanings:
            if scores is None:
                message = "the row has no scores; give each player a score, or delete the row"
                raise Refused("missing-member", f"{self.view.locate_cell(line, columns[0])}: {message}")
            return [{SCORE: score} for score in scores]
        if WINNER not in cells:
            raise self._explain_missing_winner(line)
        winner = self._find_winner(line, cells, sides)
        if scores is not None:
            best = [
                index
                for index, score in enumerate(scores)
                if all(self._compare_scores(cells, (score, rival_score)) != -1 for rival_score in scores)
            ]
            if (best != [winner]) if winner is not None else len(best) < len(sides):
                listed = ", ".join(scores)
                message = f"{quote(cells[WINNER])} contradicts the scores {listed}; correct the winner or a score"
                raise Refused("results-disagree", f"{self.view.locate_cell(line, WINNER)}: {message}")
            return [{SCORE: score} for score in scores]
        if winner is None:
            return [{"place": "1"}] * len(sides)
        if self.options.others != TIED:
            message = f"one of {len(sides)} players won, but the places of the others are unknown"
            advice = "give every player a score or a place, or tie the others with --others tied"
            raise Refused("others-unknown", f"{self.view.locate_cell(line, WINNER)}: {message}; {advice}")
        return [{"place": "1" if index == winner else "2"} for index in range(len(sides))]

    def _read_side_scores(self, line: int, cells: Cells, columns: list[str]) -> tuple[str, ...]:
        """Return the scores of all sides. Raises `Refused` (missing-member) if a side has none."""
        for name in columns:
            if name not in cells:
                message = f"the row has other scores, but no {name}; fill in the cell"
                raise Refused("missing-member", f"{self.view.locate_cell(line, name)}: {message}")
            self._parse(line, name, read_decimal, cells[name])
        return tuple(cells[name] for name in columns)

    def _compare_scores(self, cells: Cells, pair: Score, is_score: bool = True) -> int:
        """Return 1 if the first of two numbers is better, -1 if the second is, and 0 if they are equal."""
        order = cells.get("score_order", self.options.fixed.get("score_order"))
        sign = _compare_numbers(*pair)
        return -sign if is_score and order == "low" else sign

    def _parse(self, line: int, name: str, parse: Callable[[str], Parsed], text: str) -> Parsed:
        """Parse a cell. Raises `Refused` with the cell's location."""
        try:
            return parse(text)
        except Refused as problem:
            raise Refused(problem.code, f"{self.view.locate_cell(line, name)}: {problem.message}") from None


def _compare(first: Decimal | int, second: Decimal | int) -> int:
    return (first > second) - (first < second)


@lru_cache(maxsize=10_000)
def _compare_numbers(first: str, second: str) -> int:
    """Return 1 if the first of two numbers is larger, -1 if the second is, and 0 if they are equal."""
    return _compare(Decimal(read_decimal(first)), Decimal(read_decimal(second)))


def create_reader(sides: tuple[str, ...], view: TableView, options: TableOptions) -> SidesReader:
    """Create the reader of a table, given the meanings of the columns of its sides."""
    win_only_columns = frozenset(name for name in RESULTS if are_winner_only(view.list_texts(name)))
    results, sets = (tuple(name for name in names if name in view.meanings) for names in (RESULTS, SET_COLUMNS))
    dates = {name: cells for name in (*results, *sets) if (cells := view.count_cells(name, may_be_date))}
    return SidesReader(view, options, sides, win_only_columns, results, sets, dates)


def read_sides(
    sides: tuple[str, ...], rows: CellRows, view: TableView, options: TableOptions
) -> Iterator[tuple[int, Cells | Refused]]:
    """Yield a row for each player: with a score if the table gives scores, else with a place."""
    reader = create_reader(sides, view, options)
    for line, cells in rows:
        yield from reader.read_row(line, cells)
