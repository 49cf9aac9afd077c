"""Build the player pages: all ladders of a player, and on each ladder the points, games and ranks."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import count, quote
from ratings_ledger.projections.diff.statements import Statement
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.history import Change, Course, History
from ratings_ledger.projections.queries.players import Profile
from ratings_ledger.projections.queries.rank_history import Ranks
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import PagePath
from ratings_ledger.web.charts import Point, draw_steps
from ratings_ledger.web.course_charts import (
    HorizontalAxis,
    build_points_line,
    build_rank_line,
    describe_band,
    find_course_span,
    list_published_points,
    list_revision_marks,
)
from ratings_ledger.web.page import (
    Page,
    describe_dated_change,
    format_minute,
    format_ordinal,
    format_points,
    pin_known_at,
    to_local,
)
from ratings_ledger.web.visits import Visit

# a player with more games than this gets a statement of this many games and adjustments; another page lists all of them
STATEMENT_LINES_MAX = 100
# an exported site has rank pages only for ladders with at most this many players, because a game may change all ranks,
# and then the pages of all players must be written again
RANKED_MAX = 100
RANK_ROWS = 100  # the maximum number of changes in the table of ranks
AXIS_NAMES: dict[HorizontalAxis, str] = {"date": "date", "games": "number of games"}


def build_person_page(visit: Visit, player: str) -> Page:
    """Return a player's page: the rank on every ladder, earlier ids, and totals such as games and gold.

    Raises the errors of `Snapshot.person`; `Unknown` for an earlier id.
    """
    person = visit.view.person(player)
    _refuse_old_id(player, person.player)
    last_events = [visit.last_event_of_player(row.ladder, player) for row in person.rows]
    if person.last:  # absent if the player was only given points
        last_events.append(person.last)
    last = max(last_events, key=lambda event: event.position)
    person = pin_known_at(person, last)
    variables = {"person": person, "last": last, "ladders": drop_duplicate_ladders(person.rows)}
    return Page(
        path=addresses.player(player),
        template="person",
        title=player,
        answer=person,
        times=person.times,
        variables=variables,
        table="rows",
        query=visit.query,
    )


def _refuse_old_id(player: str, current_id: str) -> None:
    if player != current_id:
        raise Unknown("player-unknown", f"{quote(player)} is now called {quote(current_id)}")


def build_player_page(visit: Visit, player: str, ladder: str) -> Page:
    """Return the page that explains a player's points on a ladder.

    Raises the errors of `Snapshot.profile`; `Unknown` for an earlier id, or a player who is not on the ladder.
    """
    profile = visit.view.profile(ladder, player)
    _refuse_old_id(player, profile.player)
    if profile.standing is None and not profile.steps:
        raise Unknown("player-unknown", f"{quote(player)} is not on {short_name(ladder)}")
    is_long = profile.standing is not None and profile.standing.games > STATEMENT_LINES_MAX
    statement = visit.view.statement(ladder, player, STATEMENT_LINES_MAX if is_long else None)
    has_more = statement is not None and (is_long or statement.published is not None)
    last = visit.last_event_of_player(ladder, player)
    profile = pin_known_at(profile, last)
    path, all_games = addresses.player_ladder(player, ladder), addresses.player_games(player, ladder)
    variables = {
        "profile": profile,
        "last": last,
        "statement": statement,
        "impact_positions": visit.impact_positions,
        "terms": () if profile.running else visit.view.account(ladder, player).terms,
        "chart": lambda game_link, by: Markup(_draw_points(profile, statement, game_link, by)),
        "has_ranks": profile.players <= RANKED_MAX,
        "has_more": has_more,
        "all_games": all_games,
    }
    lines = statement.lines if statement else ()
    # a line with `recorded_at` is about a later change of a game that the published list covers
    listed_game_ids = frozenset(
        line.game_id for line in lines if line.game_id and line.cause == "game" and not line.recorded_at
    )

    def find_listing_page(game_id: str) -> PagePath | None:
        if game_id in listed_game_ids:
            return path
        return all_games if has_more and any(row.game_id == game_id for row in profile.course) else None

    title = f"{player} on {short_name(ladder)}"
    return Page(
        path=path,
        template="player",
        title=title,
        answer=profile,
        times=profile.times,
        variables=variables,
        table="course",
        query=visit.query,
        find_listing_page=find_listing_page,
    )


class Month(NamedTuple):
    """A month of a player's course on a ladder.

    first:  the first day of the month
    rows:   the changes by games, adjustments and other causes
    games:  the number of games
    change: the total change of the points
    after:  the points at the end of the month
    """

    first: date
    rows: Sequence[Change]
    games: int
    change: Fraction
    after: Fraction


def build_games_page(visit: Visit, player: str, ladder: str) -> Page:
    """Return the page of a player's games and adjustments on a ladder, by month.

    Raises the errors of `build_player_page`.
    """
    history = visit.view.history(ladder, player)
    _refuse_old_id(player, history.player)
    if not history.steps:
        raise Unknown("player-unknown", f"{quote(player)} has no game or adjustment on {short_name(ladder)}")
    last = visit.last_event_of_player(ladder, player)
    history = pin_known_at(history, last)
    months = [*_group_by_month(history.steps, history.times)]
    variables = {
        "history": history,
        "last": last,
        "months": months,
        "years": [year for year, _ in groupby(months, lambda month: month.first.year)],
        "chart": lambda game_link: Markup(_draw_points(history, None, game_link, by="games")),
    }
    path, title = addresses.player_games(player, ladder), f"Games of {player} on {short_name(ladder)}"
    return Page(
        path=path,
        template="games",
        title=title,
        answer=history,
        times=history.times,
        variables=variables,
        table="rows",
        query=visit.query,
        find_listing_page=lambda _: path,
    )


def _group_by_month(course: Course, times: TimeFormat) -> Iterator[Month]:
    """Yield the months in which a course has steps."""
    points_before, end = course.start, 0
    for first_day, group in groupby(course, lambda row: to_local(times, row.occurred_at).date().replace(day=1)):
        rows = [*group]
        end += len(rows)
        points_after = course.values[end - 1]
        games = sum(row.game_id is not None for row in rows)
        yield Month(first_day, rows, games=games, change=points_after - points_before, after=points_after)
        points_before = points_after


def build_ranks_page(visit: Visit, player: str, ladder: str) -> Page:
    """Return the page of a player's rank over time. Raises the errors of `build_player_page`."""
    ranks = visit.view.ranks(ladder, player)
    _refuse_old_id(player, ranks.player)
    if not ranks.rows and not visit.view.standings(ladder, [player]).rows:
        raise Unknown("player-unknown", f"{quote(player)} is not on {short_name(ladder)}")
    last = visit.view.last_event_of_ranks(ranks)
    ranks, course = pin_known_at(ranks, last), visit.view.history(ladder, player).steps
    rows = ranks.rows or ()
    variables = {
        "ranks": ranks,
        "last": last,
        "rows": rows[::-1][:RANK_ROWS],
        "changes": len(rows),
        "best": min((row for row in rows if row.rank is not None), key=lambda row: row.rank or 0, default=None),
        "chart": lambda by: Markup(_draw_ranks(ranks, course, by)),
    }
    path, title = addresses.player_ranks(player, ladder), f"Rank of {player} on {short_name(ladder)}"
    table = None if ranks.rows is None else "rows"
    return Page(
        path=path,
        template="ranks",
        title=title,
        answer=ranks,
        times=ranks.times,
        variables=variables,
        table=table,
        query=visit.query,
    )


def _draw_points(
    answer: Profile | History, statement: Statement | None, game_link: Callable[[str], str], by: HorizontalAxis
) -> str:
    """Return the chart of a player's points and of published lists, or an empty string for a course without steps."""
    course = answer.steps
    if not course:
        return ""

    def describe_correction(row: Change) -> str:
        assert row.revised_at is not None
        return f"{row.game_id} was changed later, on {format_minute(answer.times, row.revised_at)}"

    published = list_published_points(course, lambda value: f"published: {format_points(value)}")
    if statement is not None and statement.since is not None:
        opening = statement.opening
        published.append(Point(statement.since, opening, "published", f"published: {format_points(opening)}"))
    describe = partial(describe_dated_change, answer.times)
    line = build_points_line(answer.player, course, by, describe, game_link, [*dict.fromkeys(published)])
    return draw_steps(
        [line],
        title=f"Points of {answer.player} on {short_name(answer.ladder)} by {AXIS_NAMES[by]}",
        description=f"From {format_points(course.start)} to {format_points(course.values[-1])} in "
        f"{count(len(course), 'step')}{describe_band(course, format_points)}; the CSV has every step.",
        prefix=f"points-{by}",
        vertical_lines=list_revision_marks(course, by, describe_correction),
    )


def _draw_ranks(ranks: Ranks, course: Course, by: HorizontalAxis) -> str:
    """Return the chart of a player's ranks over the span of their course, or "" if they never had a rank."""
    line = build_rank_line(ranks.player, ranks.rows or (), by)
    if not line.points:
        return ""
    values = [int(point.value) for point in line.points]
    first, last, best = map(format_ordinal, (values[0], values[-1], min(values)))
    return draw_steps(
        [line],
        title=f"Rank of {ranks.player} on {short_name(ranks.ladder)} by {AXIS_NAMES[by]}",
        description=f"From {first} to {last}, at best {best}.",
        prefix=f"ranks-{by}",
        span=find_course_span(course, by),
        values_are_ranks=True,
    )
