"""Rows that are games between sides, and everything in them that may say who won.

A row may say it several times: a winner's name, a result, scores, sets. All of it has to agree, or the row is refused.
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
    Pair,
    are_all_of_places,
    is_draw,
    parse_result,
    parse_set,
    set_text,
)
from ratings_ledger.ledger.intake.tables.meanings import (
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
    """What one column says of two sides: what the column holds, who won (1 the first, -1 the second, 0 neither, None
    for a game that nobody came to), the scores, the sets, and what is noted of a game that was not played.
    """

    column: str
    winner: int | None
    scores: Pair | None = None
    sets: tuple[tuple[int, int, str], ...] = ()
    forfeit: str | None = None


class SidesReader(NamedTuple):
    """Reads the rows of one table: the columns of its sides, the columns of results of which pairs say only who won,
    the columns that it has of results and of sets, and how many cells of these a spreadsheet made dates or times.
    """

    view: TableView
    options: TableOptions
    sides: tuple[str, ...]
    of_places: frozenset[str]
    results: tuple[str, ...]
    sets: tuple[str, ...]
    became_dates: Mapping[str, int]

    def read_row(self, line: int, cells: Cells | Refused) -> Iterator[tuple[int, Cells | Refused]]:
        """Yield a row for each side, or the refusal of the row."""
        if isinstance(cells, Refused):
            yield line, cells
            return
        try:
            found = self._read(line, cells)
        except Refused as problem:
            problem.names = self._names(cells)
            yield line, problem
            return
        for row in found:
            yield line, row

    def _read(self, line: int, cells: Cells) -> list[Cells]:
        """Return what a row says of each side. Raises `Refused`."""
        sides = [name for name in self.sides if name in cells]
        if len(sides) < 2:
            missing = next(name for name in self.sides if name not in cells)
            raise Refused("missing-member", f"{self.view.cell(line, missing)}: the row has no {missing}")
        if self.became_dates:
            self._refuse_dates(line, cells)
        outcomes = self._of_two(line, cells, sides) if len(sides) == 2 else self._of_several(line, cells, sides)
        shared = {name: text for name, text in cells.items() if name not in BESIDES}
        players = [split_team_cell(name, cells[name], self.options) for name in sides]
        in_teams = [*map(len, players)] != [1] * len(players)
        return [
            {**shared, "player": player, **outcome, **({"team": str(number)} if in_teams else {})}
            for number, (partners, outcome) in enumerate(zip(players, outcomes, strict=True), 1)
            for player in partners
        ]

    def _names(self, cells: Cells) -> tuple[str, ...]:
        """Return the players of a row that is refused, as far as its cells can be taken apart."""
        found = list[str]()
        for name in self.sides:
            with suppress(Refused):
                found += split_team_cell(name, cells[name], self.options) if name in cells else []
        return (*found,)

    def _of_two(self, line: int, cells: Cells, sides: list[str]) -> Sequence[Cells]:
        """Return what both sides got. Raises `Refused` if nothing says it, or if two columns disagree."""
        verdicts = [*self._verdicts(line, cells, sides)]
        if not verdicts:
            where = next((self.view.cell(line, name) for name in (*RESULTS, WINNER) if name in self.view.meanings), "")
            raise Refused("missing-member", f"{where}{': ' * bool(where)}the row has no result")
        if forfeit := next((verdict.forfeit for verdict in verdicts if verdict.forfeit), None):
            first, second = PLACES[forfeit]
            self._refuse_contradiction(line, [verdict for verdict in verdicts if verdict.winner is not None])
            noted = {"extra.forfeit": forfeit}
            return {"place": str(first), **noted}, {"place": str(second), **noted}
        self._refuse_contradiction(line, verdicts)
        sets = next((verdict.sets for verdict in verdicts if verdict.sets), ())
        extra = {"extra.scores": " ".join(map(set_text, sets))} if sets else {}
        if scores := next((verdict.scores for verdict in verdicts if verdict.scores), None):
            return {SCORE: scores[0], **extra}, {SCORE: scores[1], **extra}
        places = {1: ("1", "2"), -1: ("2", "1"), 0: ("1", "1")}[verdicts[0].winner or 0]
        return {"place": places[0], **extra}, {"place": places[1], **extra}

    def _verdicts(self, line: int, cells: Cells, sides: list[str]) -> Iterator[Verdict]:
        """Yield what each column says that says something."""
        if sides == [WINNER, LOSER]:
            yield Verdict(WINNER, 1)
        elif WINNER in cells:
            winner = self._winner(line, cells, sides)
            yield Verdict(WINNER, 0 if winner is None else (1, -1)[winner])
        elif WINNER in self.view.meanings:
            raise self._no_winner(line)
        for name in self.results:
            if name in cells:
                yield self._result(line, name, cells)
        if sets := tuple(self._set(line, name, cells[name]) for name in self.sets if name in cells):
            yield self._of_sets(SET_COLUMNS[0], CellResult(sets=sets))
        own = [SIDE_SCORES[SIDES.index(side)] if side in SIDES else SIDE_SCORES[at] for at, side in enumerate(sides)]
        if any(name in cells for name in own):
            first, second = self._side_scores(line, cells, own)
            yield Verdict(own[0], self._better(cells, (first, second)), (first, second))

    def _result(self, line: int, name: str, cells: Cells) -> Verdict:
        result = self._parse(line, name, parse_result, cells[name])
        if result.forfeit is not None:
            first, second = PLACES[result.forfeit]
            return Verdict(name, (second > first) - (second < first) or None, forfeit=result.forfeit)
        if result.pair is None and not result.sets:
            return Verdict(name, result.winner)
        if result.pair is not None and not result.sets:
            is_score = name not in self.of_places
            return Verdict(name, self._better(cells, result.pair, is_score), result.pair if is_score else None)
        return self._of_sets(name, result)

    def _of_sets(self, name: str, result: CellResult) -> Verdict:
        won = result.sets_won
        return Verdict(name, _sign(*map(int, won)), won, result.sets)

    def _set(self, line: int, name: str, text: str) -> tuple[int, int, str]:
        return self._parse(line, name, parse_set, text)

    def _refuse_dates(self, line: int, cells: Cells) -> None:
        """Raises `Refused` (result-became-date) for a row with a date in place of a result, with all such columns."""
        first = next((name for name in self.became_dates if name in cells and may_be_date(cells[name])), None)
        if first is None:
            return
        columns = ", ".join(f"{csv_item(self.view.name_of(name))} ({n:,})" for name, n in self.became_dates.items())
        message = f"{self.view.cell(line, first)}: {quote(cells[first])} is a date or a time"
        raise Refused("result-became-date", f"{message}; spreadsheets made such of results in {columns}; {DATE_ADVICE}")

    def _refuse_contradiction(self, line: int, verdicts: list[Verdict]) -> None:
        """Raises `Refused` (results-disagree) if two columns say different things."""
        told = {1: "the first side won", -1: "the second side won", 0: "nobody won"}
        for verdict in verdicts[1:]:
            if verdict.winner == verdicts[0].winner:
                continue
            place, first = (self.view.cell(line, one.column) for one in (verdict, verdicts[0]))
            words = f"{first} says that {told[verdicts[0].winner or 0]}"
            message = f"{place}: here {told[verdict.winner or 0]}, but {words}; put one of them right"
            raise Refused("results-disagree", f"{message}{self._advice(verdict)}")
        scored = [verdict for verdict in verdicts if verdict.scores]
        for verdict in scored[1:]:
            if verdict.scores != scored[0].scores:
                here, there = (":".join(one.scores or ()) for one in (verdict, scored[0]))
                place, first = (self.view.cell(line, one.column) for one in (verdict, scored[0]))
                told_both = f"{place}: {here} here is not {there}, which {first} says"
                raise Refused("results-disagree", f"{told_both}; put one of them right, or drop a column with --map")

    def _advice(self, verdict: Verdict) -> str:
        """Return what helps besides where a winner's score is the worse one, or equal."""
        if self.sides != (WINNER, LOSER) or (verdict.scores is None and verdict.winner != 0):
            return ""
        if verdict.winner == 0:
            winner, loser = self.view.name_of(WINNER), self.view.name_of(LOSER)
            return f"; if games may be drawn: --map '{winner}=player 1' --map '{loser}=player 2'"
        return "; if fewer points win: --set score_order=low"

    def _winner(self, line: int, cells: Cells, sides: list[str]) -> int | None:
        """Return which side won by the column of winners, None for a draw. Raises `Refused` (winner-not-in-row)."""
        text = cells[WINNER]
        names = [to_nfc(cells[side]) for side in sides]
        if to_nfc(text) in names:
            return names.index(to_nfc(text))
        # or its column, as in White
        columns = [to_nfc(self.view.name_of(side)).casefold() for side in sides]
        if to_nfc(text).casefold() in columns:
            return columns.index(to_nfc(text).casefold())
        if is_draw(text):
            return None
        listed = " and ".join(map(quote, names)) if len(names) == 2 else ", ".join(map(quote, names))
        hint = did_you_mean(text, names)
        message = f"{quote(text)} is not one of the row's players, {listed}{hint}; write one of them, or draw"
        raise Refused("winner-not-in-row", f"{self.view.cell(line, WINNER)}: {message}")

    def _no_winner(self, line: int) -> Refused:
        message = "the row has no winner; write the name, or draw"
        return Refused("missing-member", f"{self.view.cell(line, WINNER)}: {message}")

    def _of_several(self, line: int, cells: Cells, sides: list[str]) -> Sequence[Cells]:
        """Return what three sides or more got. Raises `Refused`."""
        if odd := next((name for name in (*RESULTS, *SET_COLUMNS) if name in cells), None):
            message = (
                f"{quote(cells[odd])} cannot be of {len(sides)} players; give each a score, as in Score 1, Score 2"
            )
            raise Refused("bad-value", f"{self.view.cell(line, odd)}: {message}")
        own = [SIDE_SCORES[SIDES.index(side)] for side in sides]
        scores = self._side_scores(line, cells, own) if any(name in cells for name in own) else None
        if WINNER not in self.view.meanings:
            if scores is None:
                raise Refused("missing-member", f"{self.view.cell(line, own[0])}: the row has no scores")
            return [{SCORE: score} for score in scores]
        if WINNER not in cells:
            raise self._no_winner(line)
        winner = self._winner(line, cells, sides)
        if scores is not None:
            best = [at for at in range(len(sides)) if all(self._better(cells, (scores[at], s)) != -1 for s in scores)]
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
        return [{"place": "1" if at == winner else "2"} for at in range(len(sides))]

    def _side_scores(self, line: int, cells: Cells, columns: list[str]) -> tuple[str, ...]:
        """Return the scores of all sides. Raises `Refused` if one of them has none."""
        for name in columns:
            if name not in cells:
                raise Refused("missing-member", f"{self.view.cell(line, name)}: the row has no {name}, but others")
            self._parse(line, name, read_decimal, cells[name])
        return tuple(cells[name] for name in columns)

    def _better(self, cells: Cells, pair: Pair, is_score: bool = True) -> int:
        """Return 1 if the first of two numbers is the better one, -1 if the second is, and 0 if they are equal."""
        order = cells.get("score_order", self.options.fixed.get("score_order"))
        sign = _compare(*pair)
        return -sign if is_score and order == "low" else sign

    def _parse(self, line: int, name: str, parse: Callable[[str], Parsed], text: str) -> Parsed:
        """Return what a cell says, parsed. Raises `Refused` with the cell's place."""
        try:
            return parse(text)
        except Refused as problem:
            raise Refused(problem.code, f"{self.view.cell(line, name)}: {problem.message}") from None


def _sign(first: Decimal | int, second: Decimal | int) -> int:
    return (first > second) - (first < second)


@lru_cache(maxsize=10_000)
def _compare(first: str, second: str) -> int:
    """Return 1 if the first of two numbers is larger, -1 if the second is, and 0 if they are equal."""
    return _sign(Decimal(read_decimal(first)), Decimal(read_decimal(second)))


def create_reader(sides: tuple[str, ...], view: TableView, options: TableOptions) -> SidesReader:
    """Create the reader of a table, given the columns of its sides."""
    of_places = frozenset(name for name in RESULTS if are_all_of_places(view.texts(name)))
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
