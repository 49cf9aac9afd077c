"""Print an impact on ladders: the changed points, the number of affected players, and the differing lists."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby, islice

from ratings_ledger.cli.output import render
from ratings_ledger.ledger.events.canonical import format_instant, to_microseconds
from ratings_ledger.projections.contract import align_decimals
from ratings_ledger.projections.diff.comparison import DifferingList, Effect, ImpactSummary
from ratings_ledger.projections.diff.impact import Impact, PeriodImpact
from ratings_ledger.projections.queries.coordinates import TimeFormat, format_end
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, short_name

CHANGES_SHOWN_MAX = 40
TODAY = "today"
EFFECT_NUMBERS = ("before", "change", "after")


def print_impact(impact: Impact, head: int | None = None, appended: int = 0) -> None:
    """Print the changed players of each ladder, or a summary if there are many; then the differing published lists.

    Args:
        head: the position of the last of the recorded events; None if they were not recorded
        appended: the number of recorded events
    """
    changes = drop_duplicate_ladders(impact.changes)
    if not changes:
        render.echo(describe_no_change(impact.failed))
    elif len(changes) <= CHANGES_SHOWN_MAX:
        swapped = {ladder.ladder: ladder.swapped for ladder in impact.ladders}
        for ladder, ladder_changes in groupby(changes, key=lambda effect: effect.ladder):
            render.echo(f"\n{short_name(ladder)}")
            print_effects([*ladder_changes])
            if pairs := swapped.get(ladder):
                render.echo(f"{render.count(pairs, 'pair')} of players in another order")
    else:
        render.echo()
        ladders = drop_duplicate_ladders(impact.ladders)
        print_impact_summaries(ladders[:CHANGES_SHOWN_MAX])
        if (more := len(ladders) - CHANGES_SHOWN_MAX) > 0:
            render.echo(f"... and {render.count(more, 'more ladder')}")
        render.echo(f"\n{_describe_player_list(head, appended)}")
    for period in () if impact.periods is ABSENT else drop_duplicate_ladders(impact.periods):
        for line in _describe_periods(period, impact.times):
            render.print_hanging(line, 2)
    for reason in () if impact.reasons is ABSENT else impact.reasons:
        render.echo()
        render.print_hanging(render.plain(reason), 0)
    renamed = () if impact.renamed is ABSENT else impact.renamed
    print_differing_lists(impact.published, impact.times, renamed=renamed)


def _describe_player_list(head: int | None, appended: int) -> str:
    """Say how to list the affected players."""
    if head is None or not appended:
        return "To list the affected players, run the same command with --dry-run --format json"
    # 0 is not a position, and the first event of a log changes no points
    return f"To list the affected players: ratings diff {max(head - appended, 1)} {head} --format json"


def _describe_periods(period: PeriodImpact, times: TimeFormat) -> Iterator[str]:
    """Yield sentences about the rating periods of a ladder."""
    ladder = short_name(period.ladder)
    if period.recomputed:
        yield f"{ladder}: {render.count(period.recomputed, 'closed rating period')} recomputed."
    if period.closed:
        yield f"{ladder}: {render.count(period.closed, 'rating period')} closed, because enough time has passed."
    if period.waiting and period.closes_at is not None:
        end = times.format_with_zone(period.closes_at)
        yield f"{ladder}: {render.count(period.waiting, 'game')} to be scored when the rating period ends, {end}."


def describe_no_change(failed: Sequence[str]) -> str:
    """Return a sentence that says that no points change; if ladders failed, it speaks only of the others."""
    return "No points change on the ladders that can be replayed." if failed else "No points change."


def print_effects(effects: Sequence[Effect]) -> None:
    """Print the players' numbers on a ladder before and after, with the same number of decimal places."""
    columns: dict[str, Sequence[render.TableCell]] = {"player": [effect.player for effect in effects]}
    # no player of a new ladder has points before
    names = [name for name in EFFECT_NUMBERS if any(getattr(effect, name) is not None for effect in effects)]
    aligned = iter(align_decimals([number for name in names for number in _format_numbers(effects, name)]))
    columns |= {name: [*islice(aligned, len(effects))] for name in names}
    for name in ("rank", "gold"):
        values = [getattr(effect, name) for effect in effects]
        if any(before != after for before, after in values):
            columns[name] = [_format_move(value) for value in values]
    render.print_columns(columns, right=[*columns][1:])


def _format_numbers(effects: Sequence[Effect], name: str) -> list[str]:
    """Return a column of numbers; changes have a sign."""
    numbers = [getattr(effect, name) for effect in effects]
    return ["-" if number is None else render.format_decimal(number, 6, signed=name == "change") for number in numbers]


def _format_move(values: tuple[int | None, int | None]) -> str:
    """Return a rank or gold before and after, or an empty string if both are equal."""
    return "" if values[0] == values[1] else " → ".join("-" if value is None else str(value) for value in values)


def print_impact_summaries(summaries: Sequence[ImpactSummary]) -> None:
    """Print a row for each ladder with the numbers of affected players and ranks."""
    rows: list[tuple[render.TableCell, ...]] = [
        (short_name(summary.ladder), summary.players, summary.ranks, summary.swapped, _describe_largest(summary))
        for summary in summaries
    ]
    header = ("ladder", "players", "ranks", "swapped", "largest change")
    render.print_table(header, rows, right=("players", "ranks", "swapped"))


def _describe_largest(summary: ImpactSummary) -> str:
    """Return the largest gain or loss among the players who stay on the ladder, with the player."""
    extremes = [effect for effect in (summary.up, summary.down) if effect is not None]
    if not extremes:
        return ""
    largest = max(extremes, key=lambda effect: abs(effect.change))
    return f"{render.format_decimal(largest.change, signed=True)} {render.plain(largest.player)}"


def print_differing_lists(
    lists: Sequence[DifferingList], times: TimeFormat, when: str = TODAY, renamed: Sequence[DifferingList] = ()
) -> None:
    """Print the published lists that would newly differ, then the lists that already differ before the change.

    Then print the lists on which only names change, and, if `when` is today, the commands that publish all these again.
    """
    newly_differing = [published for published in lists if not published.already]
    already_differing = [published for published in lists if published.already]
    groups = [
        (newly_differing, f"would come out differently {when}"),
        (already_differing, f"would come out differently {when}, as they already did before this change"),
        (renamed, "would come out with different player ids"),
    ]
    for differing, heading in groups:
        if differing:
            render.print_hanging(f"\nPublished, and {heading}:", 2)
        for published in differing[:CHANGES_SHOWN_MAX]:
            line = f"  {_format_list_name(published, times)}, published at position {published.position}"
            render.print_hanging(render.plain(line), 4)
        if len(differing) > CHANGES_SHOWN_MAX:
            render.echo(f"  ... and {len(differing) - CHANGES_SHOWN_MAX:,} more")
    if when == TODAY:
        print_publish_commands(
            [(published.ladder, published.as_of) for differing, _ in groups for published in differing], times
        )


def print_publish_commands(lists: Sequence[tuple[str, datetime | None]], times: TimeFormat) -> None:
    """Print the commands that publish lists again, by their ladders and times."""
    if lists:
        render.echo("\nTo publish the new lists:")
    for ladder, as_of in lists[:CHANGES_SHOWN_MAX]:
        render.echo(f"  {_format_publish_command(ladder, as_of, times)}")
    if len(lists) > CHANGES_SHOWN_MAX:
        render.echo(f"  ... and {len(lists) - CHANGES_SHOWN_MAX:,} more")


def _format_publish_command(ladder: str, as_of: datetime | None, times: TimeFormat) -> str:
    """Return the command that publishes a list. Without a home zone it has the exact time, because zones may differ."""
    command = ["ratings", "publish", short_name(ladder)]
    if as_of is not None:
        instant = to_microseconds(as_of)
        command += ["--as-of", format_instant(instant) if times.home is None else format_end(instant, times.home)]
    return shlex.join(command)


def _format_list_name(published: DifferingList, times: TimeFormat) -> str:
    """Return the name of a published list, with its time."""
    return (
        short_name(published.ladder)
        if published.as_of is None
        else f"{short_name(published.ladder)} as of {times.format_with_zone(published.as_of)}"
    )
