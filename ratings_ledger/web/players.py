"""The pages of people: where they stand on all ladders, and on one of them how that came about."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.diff.statements import Statement
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.history import Change, Course, History, Ranks
from ratings_ledger.projections.queries.players import Profile
from ratings_ledger.projections.replay.ladders import drop_duplicate_ladders, short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import Path
from ratings_ledger.web.charts import Point, steps
from ratings_ledger.web.courses import By, describe_band, points_line, rank_line, revisions, shown_otherwise, span_of
from ratings_ledger.web.page import (
    Page,
    known_at_last,
    local,
    many,
    minute,
    ordinal,
    points,
    rating_after,
    signed,
    time_played,
)
from ratings_ledger.web.visits import Visit

# so many of the last games and adjustments are lines of the account; the page of all games has every one
LINES = 100
# a folder has ranks over time of ladders with so many players: a game may change those of all of them
RANKED_MAX = 100
# so many of the last changes of a rank are in the table
RANKS_SHOWN = 100
BY_TOLD: dict[By, str] = {"date": "date", "games": "number of games"}


def person_page(visit: Visit, player: str) -> Page:
    """Return a player's rank on every ladder, their earlier ids, and what they did. Raises as `Snapshot.person`."""
    found = visit.view.person(player)
    if found.player != player:
        raise Unknown("player-unknown", f"{quote(player)} is {quote(found.player)} now")
    lasts = [visit.view.last_event(row.ladder, player) for row in found.rows]
    lasts += [found.last] if found.last else []  # nobody has one who was only given points
    last = max(lasts, key=lambda one: one.position)
    found = known_at_last(found, last)
    told = {"found": found, "last": last, "ladders": drop_duplicate_ladders(found.rows)}
    return Page(addresses.player(player), "person", player, found, found.times, told, "rows", visit.query)


def player_page(visit: Visit, player: str, ladder: str) -> Page:
    """Return how a player's points on a ladder came about.

    Raises as `Snapshot.profile` does, `Unknown` for who is not on it.
    """
    found = visit.view.profile(ladder, player)
    if found.player != player:
        raise Unknown("player-unknown", f"{quote(player)} is {quote(found.player)} now")
    if found.standing is None and not found.steps:
        raise Unknown("player-unknown", f"{quote(player)} is not on {short_name(ladder)}")
    is_long = found.standing is not None and found.standing.games > LINES
    statement = visit.view.statement(ladder, player, LINES if is_long else None)
    has_more = statement is not None and (is_long or statement.published is not None)
    last = visit.view.last_event(ladder, player)
    found = known_at_last(found, last)
    path, all_games = addresses.player_on(player, ladder), addresses.games_of(player, ladder)
    told = {
        "found": found, "last": last, "statement": statement, "telling": visit.telling,
        "terms": () if found.running else visit.view.account(ladder, player).terms,
        "chart": lambda game_link, by: Markup(_chart(found, statement, game_link, by)),
        "has_ranks": found.players <= RANKED_MAX, "has_more": has_more,
        "all_games": all_games,
    }  # fmt: skip
    title, lines = f"{player} on {short_name(ladder)}", statement.lines if statement else ()
    games = frozenset(line.game_id for line in lines if line.game_id and line.cause == "game" and not line.recorded_at)

    def line_of(game_id: str) -> Path | None:
        if game_id in games:
            return path
        return all_games if has_more and any(row.game_id == game_id for row in found.course) else None

    return Page(path, "player", title, found, found.times, told, "course", visit.query, line_of=line_of)


class Month(NamedTuple):
    """What somebody played in a month: its first day, the games and adjustments, and what they changed together."""

    first: date
    rows: Sequence[Change]
    games: int
    change: Fraction
    after: Fraction


def games_page(visit: Visit, player: str, ladder: str) -> Page:
    """Return every game and adjustment of somebody on a ladder, by month. Raises as `player_page` does."""
    found = visit.view.history(ladder, player)
    if found.player != player:
        raise Unknown("player-unknown", f"{quote(player)} is {quote(found.player)} now")
    if not found.steps:
        raise Unknown("player-unknown", f"{quote(player)} has no games of their own on {short_name(ladder)}")
    last = visit.view.last_event(ladder, player)
    found, months = known_at_last(found, last), [*_months(found.steps, found.times)]
    told = {
        "found": found, "last": last, "months": months,
        "chart": lambda game_link: Markup(_chart(found, None, game_link, "games")),
        "years": [year for year, _ in groupby(months, lambda month: month.first.year)],
    }  # fmt: skip
    path, title = addresses.games_of(player, ladder), f"Games of {player} on {short_name(ladder)}"
    return Page(path, "games", title, found, found.times, told, "rows", visit.query, line_of=lambda _: path)


def _months(course: Course, times: Times) -> Iterator[Month]:
    """Yield the months of a course in which there was something."""
    had, end = course.start, 0
    for first, group in groupby(course, lambda row: local(times, row.occurred_at).date().replace(day=1)):
        rows = [*group]
        end += len(rows)
        games = sum(row.game_id is not None for row in rows)
        yield Month(first, rows, games, course.values[end - 1] - had, course.values[end - 1])
        had = course.values[end - 1]


def ranks_page(visit: Visit, player: str, ladder: str) -> Page:
    """Return somebody's rank on a ladder over time, which depends on everybody there. Raises as `player_page` does."""
    found = visit.view.ranks(ladder, player)
    if found.player != player:
        raise Unknown("player-unknown", f"{quote(player)} is {quote(found.player)} now")
    if not found.rows and not visit.view.standings(ladder, [player]).rows:
        raise Unknown("player-unknown", f"{quote(player)} is not on {short_name(ladder)}")
    last = visit.view.last_event_of_ranks(found)
    found, course = known_at_last(found, last), visit.view.history(ladder, player).steps
    rows = found.rows or ()
    told = {
        "found": found, "last": last, "rows": rows[::-1][:RANKS_SHOWN], "changes": len(rows),
        "best": min((row for row in rows if row.rank is not None), key=lambda row: row.rank or 0, default=None),
        "chart": lambda by: Markup(_rank_chart(found, course, by)),
    }  # fmt: skip
    path, title = addresses.ranks(player, ladder), f"Rank of {player} on {short_name(ladder)}"
    table = None if found.rows is None else "rows"
    return Page(path, "ranks", title, found, found.times, told, table, visit.query)


def _chart(
    found: Profile | History, statement: Statement | None, game_link: Callable[[str], str], by: By
) -> str:  # fmt: skip
    """Return the points, and what was published."""
    course = found.steps
    if not course:
        return ""

    def told(row: Change) -> str:
        what = row.reason if row.game_id is None else row.game_id
        return f"{what}, {time_played(found.times, row.occurred_at)}: {signed(row.change)}, {rating_after(row)}"

    def corrected(row: Change) -> str:
        assert row.revised_at is not None
        return f"{row.game_id} was corrected later, on {minute(found.times, row.revised_at)}"

    published = shown_otherwise(course, lambda value: f"published: {points(value)}")
    if statement is not None and statement.since is not None:
        opening = statement.opening
        published.append(Point(statement.since, opening, "published", f"published: {points(opening)}"))
    line = points_line(found.player, course, by, told, game_link, [*dict.fromkeys(published)])
    return steps(
        [line],
        title=f"Points of {found.player} on {short_name(found.ladder)} by {BY_TOLD[by]}",
        description=f"From {points(course.start)} to {points(course.values[-1])} in {many(len(course), 'step')}"
        f"{describe_band(course, points)}; the CSV has every one.",
        prefix=f"points-{by}",
        marks=revisions(course, by, corrected),
    )


def _rank_chart(found: Ranks, course: Course, by: By) -> str:
    """Return the ranks, 1 on top, as far as the player's own course goes."""
    line = rank_line(found.player, found.rows or (), by)
    if not line.points:
        return ""
    ranks = [int(point.value) for point in line.points]
    return steps(
        [line],
        title=f"Rank of {found.player} on {short_name(found.ladder)} by {BY_TOLD[by]}",
        description=f"From {ordinal(ranks[0])} to {ordinal(ranks[-1])}, at best {ordinal(min(ranks))}.",
        prefix=f"ranks-{by}",
        span=span_of(course, by),
        ranks=True,
    )
