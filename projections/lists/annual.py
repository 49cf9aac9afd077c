"""The annual list: the sum of the best monthly places; a missing month counts as a fixed place.

The lowest sum is best. A real place worse than the fixed one counts as it is, unless `cap_at_missing`.
"""

from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists.contract import ExplainedLine, RankedRow, Results, rank_rows


def rank(results: Results) -> list[RankedRow]:
    """Return a row for every player with a place in at least one month; excluded players (by account) have no rank."""
    rows = []
    for name in sorted({name for month in results.months.values() for name in month}):
        if places := _list_places(results, name):
            best = tuple(place for _, place in _choose_best(results, places))
            games = sum(month[name].games for month in results.months.values() if name in month)
            rows.append(RankedRow(None, name, sum(best), games, name not in results.excluded, places=best))
    return rank_rows(rows, key=lambda row: row.points)


def _list_places(results: Results, name: str) -> list[tuple[int, str]]:
    """Return a player's places with their months, best first."""
    rows = ((month, rows[name]) for month, rows in results.months.items() if name in rows)
    return sorted((row.rank, month) for month, row in rows if row.rank is not None)


def _choose_best(results: Results, places: list[tuple[int, str]]) -> list[tuple[str, int]]:
    """Return the (month, place) pairs that make up the sum, best first; a missing month has an empty name."""
    params = results.params
    if params.cap_at_missing:
        places = sorted((min(place, params.missing), month) for place, month in places)
    best = [(month, place) for place, month in places[: params.months]]
    best += [("", params.missing)] * (params.months - len(best))
    return sorted(best, key=lambda entry: entry[1])


def explain(results: Results, name: str) -> list[ExplainedLine]:
    """Return the months in the sum, the months left out, and why the player has no rank."""
    places = _list_places(results, name)
    if not places:
        return [ExplainedLine("no rank", None, "no place on the list of any month of the year")]
    best = _choose_best(results, places)
    used = {month for month, _ in best}
    left_out = sorted((month, place) for place, month in places if month not in used)
    lines = [
        *(
            ExplainedLine(month or "missing", ExactNumber(place), "place" if month else "no place that month")
            for month, place in best
        ),
        ExplainedLine(
            "sum",
            ExactNumber(sum(place for _, place in best)),
            f"of the best {results.params.months} places",
            ("cap_at_missing",) * any(place > results.params.missing for _, place in best),
        ),
        *(ExplainedLine(month, None, f"place {place}, not among the best") for month, place in left_out),
    ]
    if name in results.excluded:
        lines.append(ExplainedLine("no rank", None, results.excluded[name]))
    return lines
