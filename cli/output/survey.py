"""Print the tables of all ladders, all lists and a player's statistics, also as CSV."""

import shlex
from collections.abc import Sequence
from datetime import datetime

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import AXES, print_heading
from ratings_ledger.projections.queries.players import PlayerStatistics
from ratings_ledger.projections.queries.published_lists import Schedule
from ratings_ledger.projections.queries.results import ABSENT, list_members
from ratings_ledger.projections.queries.survey import AllLadders, AllLists, LadderRow, ListRow, describe_no_games
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, short_name


def print_ladders_or_lists_csv(answer: AllLadders | AllLists) -> None:
    """Print one line per ladder or list, each with the coordinates of that ladder or list."""
    row_class = LadderRow if isinstance(answer, AllLadders) else ListRow
    header = [name for _, name, *_ in list_members(row_class) if name != "as_of"]
    axes = answer.at.axes()
    cells = [[*row.model_dump().values(), axes["known_at"], axes["rules"]] for row in answer.rows]
    render.print_csv((*header, *AXES), cells)


def print_ladders(ladders: AllLadders) -> None:
    """Print the ladders, or why there are none."""
    if not ladders.rows:
        has_problems = bool(ladders.unusable or ladders.failed)  # which are printed, too
        subject = "No usable ladder" if has_problems else "No ladder"
        reason = describe_no_games(ladders.unscored)
        if ladders.requested_as_of is not None and ladders.at.as_of is not None:
            reason = f"{subject} has a game played up to {ladders.times.format_with_zone(ladders.at.as_of)}."
        elif has_problems:
            reason = f"{subject} has a game."
        render.note(render.plain(reason[0].upper() + reason[1:]))
        return
    distinct = drop_duplicate_ladders(ladders.rows)
    _print_heading(ladders, render.count(len(distinct), "ladder"), [row.as_of for row in distinct])
    rows = [
        (
            short_name(row.ladder),
            row.players,
            row.games,
            ladders.times.format_played(row.last_game) if row.last_game else "",
        )
        for row in distinct
    ]
    header = ("ladder", "players", "games", ladders.times.name_column("last game"))
    render.print_table(header, rows, right=("players", "games"))


def print_all_lists(lists: AllLists) -> None:
    """Print the lists with their states, the published lists, and the schedules."""
    schedules = () if lists.schedules is ABSENT else lists.schedules
    if lists.rows:
        _print_heading(lists, render.count(len(lists.rows), "list"), [row.as_of for row in lists.rows])
        rows = [(row.list, row.state, row.players, row.ranked, row.games) for row in lists.rows]
        render.print_table(("list", "state", "players", "ranked", "games"), rows, right=("players", "ranked", "games"))
    elif not (lists.has_list_rulesets or lists.published or schedules):
        print_no_timed_lists()
    elif lists.has_list_rulesets and not (lists.published or schedules):
        during = f"during {lists.period} " if lists.period else ""
        render.note(f"No list of a month or year has a game {during}yet.")
    if lists.published:
        _print_published(lists)
    if schedules:
        render.echo("\n" * bool(lists.rows or lists.published), nl=False)
        _print_schedules(schedules)


def _print_schedules(scheduled: Sequence[Schedule]) -> None:
    """Print the ladders that are published every month, and the months that are due."""
    render.echo(f"{render.count(len(scheduled), 'schedule')}\n")
    rows = [(short_name(schedule.ladder), schedule.every, describe_due(schedule.due)) for schedule in scheduled]
    render.print_table(("ladder", "every", "due"), rows)
    if any(schedule.due for schedule in scheduled):
        render.echo("\nPublish the due months: ratings publish --due")


def describe_due(months: Sequence[str]) -> str:
    """Describe the months that are due."""
    if len(months) < 3:
        return " and ".join(months) or "nothing"
    return f"{len(months):,} months, {months[0]} to {months[-1]}"


def _print_published(lists: AllLists) -> None:
    """Print the published lists, and the command that shows one of them."""
    times = lists.times
    render.echo("\n" * bool(lists.rows), nl=False)
    render.echo(f"{render.count(len(lists.published), 'published list')}\n")
    rows = [
        (
            short_name(row.ladder),
            "its end" if row.as_of is None else times.format_minute(row.as_of),
            times.format_minute(row.recorded_at),
            row.by,
            row.players,
        )
        for row in lists.published
    ]
    header = ("list", times.name_column("played up to"), "published", "by", "players")
    render.print_table(header, rows, right=("players",))
    ladder = shlex.quote(short_name(lists.published[-1].ladder))
    render.print_hanging(f"\nShow a published list: ratings standings {ladder} --as-published", 2)
    render.print_hanging("Find the lists that would come out differently today: ratings diff published now", 2)


def print_no_timed_lists() -> None:
    """Print that no ruleset of the ledger makes lists of months or years, and name the shipped rulesets that do."""
    from ratings_ledger.projections.rulesets.versions import read_shipped_texts, read_toml

    rulesets = (read_toml(text)[0] for text in read_shipped_texts())
    ids = list(
        dict.fromkeys(ruleset.id for ruleset in rulesets if ruleset is not None and ruleset.partition.is_by_time)
    )
    hint = (
        f" Shipped rulesets that do: {', '.join(ids)}; publish one of them: ratings rules publish --shipped {ids[0]}"
        if ids
        else ""
    )
    render.print_hanging(f"No ruleset of this ledger makes lists of months or years.{hint}", 2)


def _print_heading(
    answer: AllLadders | AllLists | PlayerStatistics, subject: str, until: Sequence[datetime | None]
) -> None:
    """Print the subject of a table of several rulesets, and the times up to which games count.

    A date ends at a different instant in the time zone of each ruleset.
    """
    moments = {moment for moment in until if moment is not None}
    ends = [answer.times.format_second(moment) for moment in moments]
    played = ends[0] if len(ends) == 1 else f"{answer.requested_as_of} in the time zone of each ruleset"
    print_heading(subject, "", answer.at, answer.times, f"played up to {played}" if ends else None)
    render.echo()


def print_statistics_csv(statistics: PlayerStatistics) -> None:
    """Print one line per number; the gold of a list has the coordinates of that list."""
    axes = statistics.at.axes()
    until = {f"  {ladder}": moment for ladder, moment in statistics.model_dump()["gold_as_of"].items()}
    cells = [
        [label, value, until.get(label, axes["as_of"]), axes["known_at"], axes["rules"]]
        for label, value in _list_statistics(statistics)
    ]
    render.print_csv(("what", "value", *AXES), cells)


def print_statistics(statistics: PlayerStatistics) -> None:
    """Print the games that the player started and finished, the stars and the gold."""
    subject = render.plain(statistics.player) + (
        f": games of {render.plain(statistics.game)}" if statistics.game else ""
    )
    _print_heading(statistics, subject, [statistics.at.as_of_datetime, *statistics.gold_as_of.values()])
    render.print_table(("what", "value"), _list_statistics(statistics))


def _list_statistics(statistics: PlayerStatistics) -> list[tuple[str, str | int]]:
    percent = "-" if statistics.ratio is None else f"{render.format_decimal(statistics.ratio * 100)} %"
    golden = f"{statistics.stars} golden" if statistics.golden else str(statistics.stars)
    return [
        ("games started", statistics.started),
        ("games finished", statistics.finished),
        ("taken over as a substitute", statistics.substituted),
        ("finished of the last 99", percent),
        ("stars", "after 20 games" if statistics.stars is None else golden),
        ("gold", statistics.gold),
        *((f"  {ladder}", pieces) for ladder, pieces in statistics.gold_by_list.items()),
    ]
