"""Printing the impact of something on the ladders: whose points it changes, how far it reaches, which lists differ."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from ratings_ledger.cli.output import render
from ratings_ledger.projections.diff.comparison import DifferingList, Effect, ImpactSummary
from ratings_ledger.projections.diff.impact import Impact
from ratings_ledger.projections.diff.period_impacts import PeriodImpact
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import drop_duplicate_ladders, short_name

SHOWN_CHANGES = 40


def print_impact(found: Impact) -> None:
    """Print ladder after ladder with its players, if they are few, else how far it reaches; then published lists."""
    changes = drop_duplicate_ladders(found.changes)
    if not changes:
        render.echo(nothing_told(found.failed))
    elif len(changes) <= SHOWN_CHANGES:
        swapped = {one.ladder: one.swapped for one in found.ladders}
        for ladder, concerned in groupby(changes, key=lambda effect: effect.ladder):
            render.echo(f"\n{short_name(ladder)}")
            print_effects([*concerned])
            if pairs := swapped.get(ladder):
                render.echo(f"{render.count(pairs, 'pair')} of players in another order")
    else:
        render.echo()
        ladders = drop_duplicate_ladders(found.ladders)
        print_radii(ladders[:SHOWN_CHANGES])
        if (more := len(ladders) - SHOWN_CHANGES) > 0:
            render.echo(f"... and {render.count(more, 'more ladder')}")
        render.echo("\nWho is affected: --format json")
    for one in () if found.periods is ABSENT else drop_duplicate_ladders(found.periods):
        for line in _tell_periods(one, found.times):
            render.hanging(line, 2)
    for reason in () if found.reasons is ABSENT else found.reasons:
        render.echo()
        render.hanging(render.plain(reason), 0)
    print_differing(found.published, found.times)


def _tell_periods(one: PeriodImpact, times: Times) -> Iterator[str]:
    """Yield what happens to the rating periods of a ladder."""
    ladder = short_name(one.ladder)
    if one.recomputed:
        yield f"{ladder}: {render.count(one.recomputed, 'closed rating period')} recomputed."
    if one.closed:
        yield f"{ladder}: {render.count(one.closed, 'rating period')} closed, as the time for it has come."
    if one.waiting and one.closes_at is not None:
        end = times.stated(one.closes_at)
        yield f"{ladder}: {render.count(one.waiting, 'game')} to be scored when the rating period ends, {end}."


def nothing_told(failed: Sequence[str]) -> str:
    """That no points change, where that is known: not on ladders that cannot be replayed."""
    return "No points change on the ladders that can be replayed." if failed else "No points change."


def print_effects(told: Sequence[Effect]) -> None:
    """Print what players have on one ladder before and after."""
    columns: dict[str, Sequence[render.Cell]] = {"player": [effect.player for effect in told]}
    for name in ("before", "change", "after"):
        columns[name] = render.column([getattr(effect, name) for effect in told], 6, signed=name == "change")
    for name in ("rank", "gold"):
        values = [getattr(effect, name) for effect in told]
        if any(before != after for before, after in values):
            columns[name] = [_moved(value) for value in values]
    render.print_columns(columns, right=[*columns][1:])


def _moved(values: tuple[int | None, int | None]) -> str:
    """Return a rank or gold before and after, if it changes."""
    return "" if values[0] == values[1] else " → ".join("-" if value is None else str(value) for value in values)


def print_radii(found: Sequence[ImpactSummary]) -> None:
    """Print how far something reaches, ladder by ladder."""
    rows: list[tuple[render.Cell, ...]] = [
        (short_name(one.ladder), one.players, one.ranks, one.swapped, _largest(one)) for one in found
    ]
    header = ("ladder", "players", "ranks", "swapped", "largest change")
    render.print_table(header, rows, right=("players", "ranks", "swapped"))


def _largest(one: ImpactSummary) -> str:
    """Return the largest gain or loss among those who stay on the ladder, and whose it is."""
    there = [effect for effect in (one.up, one.down) if effect is not None]
    if not there:
        return ""
    most = max(there, key=lambda effect: abs(effect.change))
    return f"{render.human(most.change, signed=True)} {render.plain(most.player)}"


def print_differing(lists: Sequence[DifferingList], times: Times, when: str = "today") -> None:
    """Print the published lists that would come out differently, apart from those that differed before this change."""
    for already, heading in ((False, ""), (True, ", as they already did before this change")):
        differing = [one for one in lists if one.already == already]
        if differing:
            render.echo(f"\nPublished, and would come out differently {when}{heading}:")
        for one in differing[:SHOWN_CHANGES]:
            render.echo(f"  {listed(one, times)}, published at position {one.position}")
        if len(differing) > SHOWN_CHANGES:
            render.echo(f"  ... and {len(differing) - SHOWN_CHANGES:,} more")


def listed(one: DifferingList, times: Times) -> str:
    """Return a published list in words."""
    return short_name(one.ladder) if one.as_of is None else f"{short_name(one.ladder)} as of {times.stated(one.as_of)}"
