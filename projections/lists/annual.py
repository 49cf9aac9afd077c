"""The list of a year: the sum of the best monthly places; a month without a place counts as a fixed one.

The least sum is best. A real place that is worse than the fixed one counts as it is, unless `cap_at_missing`.
"""

from projections.lists.contract import Results, Standing, ranked


def rank(results: Results) -> list[Standing]:
    """A row for everybody with a place in at least one month; who is excluded (his account) has no rank."""
    numbers = {name: number for number, name in enumerate(results.names)}
    rows = []
    for name in sorted({name for places in results.months.values() for name in places}):
        best = tuple(place for _, place in best_months(results, name))
        games = results.games[numbers[name]] if name in numbers else 0
        rows.append(Standing(None, name, sum(best), games, name not in results.excluded, places=best))
    return ranked(rows, key=lambda row: row.points)


def best_months(results: Results, name: str) -> list[tuple[str, int]]:
    """The months that make a player's sum, as (month, place) from the best on; a missing one has no name."""
    params = results.params
    mine = sorted((places[name], month) for month, places in results.months.items() if name in places)
    if params.cap_at_missing:
        mine = sorted((min(place, params.missing), month) for place, month in mine)
    best = [(month, place) for place, month in mine[: params.months]]
    best += [("", params.missing)] * (params.months - len(best))
    return sorted(best, key=lambda entry: entry[1])


def explain(results: Results, player: int) -> list[tuple[str, str, str]]:
    """The months that made the sum, those that were left out, and why somebody has no rank."""
    name = results.names[player]
    best = best_months(results, name)
    lines = [(month or "missing", str(place), "place" if month else "a month without a place") for month, place in best]
    used = {month for month, _ in best}
    left = sorted((month, places[name]) for month, places in results.months.items() if name in places)
    lines += [(month, "0", f"place {place}, not among the best") for month, place in left if month not in used]
    if name in results.excluded:
        lines.append(("not on the list", "0", results.excluded[name]))
    return lines
