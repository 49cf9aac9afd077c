"""Rank an annual list by the sum of the best monthly places; a missing month counts as a fixed place.

The lowest sum is best. With `cap_at_missing`, a place worse than the fixed one counts as the fixed one.
"""

from typing import NamedTuple

from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, RankingInput, rank_rows


class MonthPlace(NamedTuple):
    """A player's place on a monthly list; `month` is empty for a missing month."""

    place: int
    month: str


def rank(inputs: RankingInput) -> list[RankedRow]:
    """Return a row for every player with a place in at least one month; players in `inputs.excluded` have no rank."""
    rows = []
    for name in sorted({name for monthly_rows in inputs.months.values() for name in monthly_rows}):
        if places := _list_places(inputs, name):
            best = tuple(entry.place for entry in _choose_best(inputs, places))
            own_rows = (monthly_rows[name] for monthly_rows in inputs.months.values() if name in monthly_rows)
            rows.append(
                RankedRow(
                    rank=None,
                    player=name,
                    points=sum(best),
                    games=sum(row.games for row in own_rows),
                    qualified=name not in inputs.excluded,
                    places=best,
                )
            )
    return rank_rows(rows, key=lambda row: row.points)


def _list_places(inputs: RankingInput, name: str) -> list[MonthPlace]:
    """Return a player's monthly places, best first."""
    rows = ((month, monthly_rows[name]) for month, monthly_rows in inputs.months.items() if name in monthly_rows)
    return sorted(MonthPlace(row.rank, month) for month, row in rows if row.rank is not None)


def _choose_best(inputs: RankingInput, places: list[MonthPlace]) -> list[MonthPlace]:
    """Return the places in the sum, best first, including the fixed places of missing months."""
    params = inputs.params
    if params.cap_at_missing:
        places = sorted(MonthPlace(min(entry.place, params.missing), entry.month) for entry in places)
    best = places[: params.months]
    best += [MonthPlace(params.missing, "")] * (params.months - len(best))
    return sorted(best, key=lambda entry: entry.place)


def explain(inputs: RankingInput, name: str) -> list[ExplainedLine]:
    """Explain the sum: the months in it, the months left out, and the reason if the player has no rank."""
    places = _list_places(inputs, name)
    if not places:
        return [ExplainedLine("no rank", None, "no place on the list of any month of the year")]
    best = _choose_best(inputs, places)
    months_in_sum = {entry.month for entry in best}
    own_places = {month: place for place, month in places}
    left_out = sorted((month, place) for place, month in places if month not in months_in_sum)
    exceeds_missing = any(entry.place > inputs.params.missing for entry in best)
    lines = [
        *(
            ExplainedLine(month or "missing", ExactNumber(place), _describe_place(place, own_places.get(month)))
            for place, month in best
        ),
        ExplainedLine(
            "sum",
            ExactNumber(sum(entry.place for entry in best)),
            f"of the best {inputs.params.months} places",
            assumes=("cap_at_missing",) if exceeds_missing else (),
        ),
        *(ExplainedLine(month, None, f"place {place}, not among the best") for month, place in left_out),
    ]
    if name in inputs.excluded:
        lines.append(ExplainedLine("no rank", None, inputs.excluded[name]))
    return lines


def _describe_place(counted: int, own: int | None) -> str:
    """Describe a place in the sum; `own` is the player's own place, None for a missing month."""
    if own is None:
        return "a month without a place"
    return "place" if own == counted else f"place {own}, which counts as {counted}"
