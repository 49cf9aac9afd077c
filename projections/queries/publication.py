"""Publishing standings: the events that hold them, and where they show somebody differently from a replay."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.errors import StoreDamaged
from ledger.events.canonical import format_instant, record_instant
from ledger.events.published_lists import parts_of_rows
from ledger.events.types import Ruleset
from ledger.rejections import Refused
from ledger.store.log import Log
from ledger.validation.published_lists import PublishedList, published_lists, published_rows
from projections.facts.columns import Facts
from projections.lists.contract import RankedRow
from projections.queries.answers_explained import Shown
from projections.queries.coordinates import moment
from projections.queries.standings import Ladders, Ranking
from projections.replay.ladders import parse_name
from projections.rulesets.periods import is_running, period_of


def publication(
    ladders: Ladders, found: Ranking, now: int, asked: bool = True
) -> list[tuple[str, dict[str, Any]]]:  # fmt: skip
    """The events (type, data) that publish these standings: rows in parts, then the head that names them.

    `asked`: their `as_of` was asked for explicitly, and must then be in the past.

    Raises `Refused` (list-running, list-empty).
    """
    as_of, ladder = ladders.as_of, found.ladder
    period = period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is not None and is_running(period, now, as_of):
        end = f"{format_instant(period.end)[:19]}Z"
        if now <= period.end:
            raise Refused("list-running", f"{ladder} runs until {end}; publish it after that")
        raise Refused("list-running", f"{ladder} ran until {end}; publish the whole of it, without --as-of")
    if as_of is not None and asked and now <= as_of:
        raise Refused("list-running", f"{format_instant(as_of)[:19]}Z is still to come; publish {ladder} after that")
    if not found.rows:
        raise Refused("list-empty", f"nobody is on {ladder}, so there is nothing to publish")
    digest, parts = found.digest, parts_of_rows(found.json_rows())
    rows = [
        ("list.rows", {"ladder": ladder, "digest": digest, "part": part, "parts": len(parts), "rows": rows})
        for part, rows in enumerate(parts, 1)
    ]
    listed = {
        "ladder": ladder, "known_at": ladders.facts.position, "ruleset": found.ruleset, "digest": digest,
        "row_count": len(found.rows), "parts": len(parts), "games": found.games,
    }  # fmt: skip
    if as_of is not None:
        listed["as_of"] = format_instant(as_of)
    return [*rows, ("list.published", listed)]


def as_published(connection: Connection, one: PublishedList) -> Ranking:
    """A list as recorded in its events. Raises `StoreDamaged` if they do not hold all of it."""
    try:
        rows = [_standing(row) for row in published_rows(Log(connection), one.digest, one.parts, one.position)]
    except Refused as problem:
        raise StoreDamaged(f"the list published at position {one.position}: {problem.message}") from None
    return Ranking(one.ladder, one.ruleset, 1, rows, one.games, 0, 0, 0, 0, 0)


def _standing(row: dict[str, Any]) -> RankedRow:
    points = Fraction(row["points"])
    places = tuple(row["places"]) if "places" in row else None
    return RankedRow(
        row["rank"], row["player"], points.numerator, row["games"], row["qualified"], points.denominator,
        row.get("gold"), places,
    )  # fmt: skip


def compared_at(one: PublishedList, ruleset: Ruleset) -> int | None:
    """Up to when a list is compared with what would come out today, or None for all of its month or year.

    A list of running points from before lists had an instant of their own is compared at the time it was recorded.
    """
    if one.as_of is not None or period_of(ruleset, parse_name(one.ladder).values) is not None:
        return one.as_of
    return record_instant(one.recorded_at)


class Point(NamedTuple):
    """Where somebody stood after a game or adjustment: when it was, the position of its first record, their points."""

    instant: int
    position: int
    points: Fraction


def contradicted(
    connection: Connection, ladders: Ladders, ladder: str, player: str, course: Sequence[Point]
) -> dict[int, list[Shown]]:
    """The published lists that showed a player differently from today, by the index in the player's course.

    A list belongs to the last point it covers: what was played up to the time at which it is compared, or for a whole
    period what was recorded when it was computed. A list that showed the player before the first point of today belongs
    to that one.
    """
    found: dict[int, list[Shown]] = {}
    facts, ruleset = ladders.facts, ladders.versions(ladder)[0].ruleset
    for one in published_lists(connection, facts.position, ladder):
        until = compared_at(one, ruleset)
        if ladders.as_of is not None and (until is None or until > ladders.as_of):
            continue
        covered = [
            index for index, point in enumerate(course)
            if (point.position <= one.known_at if until is None else point.instant <= until)
        ]  # fmt: skip
        shown = _shown(as_published(connection, one), facts, player)
        today = _today(ladders, ladder, player, until, course[covered[-1]]) if covered else None
        if shown != today:
            as_of = None if one.as_of is None else moment(one.as_of)
            found.setdefault(covered[-1] if covered else 0, []).append(Shown(one.position, as_of, shown))
    return found


def _today(ladders: Ladders, ladder: str, player: str, until: int | None, last: Point) -> Fraction | None:
    """What a list up to then would show for a player today, given the last game of theirs that it covers."""
    if ladders.versions(ladder)[0].ranking.running:
        return last.points
    return _shown(ladders.at(until).standings(ladder), ladders.facts, player)


def _shown(found: Ranking, facts: Facts, player: str) -> Fraction | None:
    """The points of a player, by current id, in standings that may know them by an earlier one."""
    return next((row.value(found.scale) for row in found.rows if facts.current(row.player) == player), None)
