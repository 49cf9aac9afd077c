"""Pages that set things beside each other, on a server: ladders at two coordinates, and players in one chart."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

from markupsafe import Markup

from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.diff.comparison import Difference, Differences, DifferingRow
from ratings_ledger.projections.diff.predictions import QualityPair
from ratings_ledger.projections.queries.coordinates import CoordinateSpec, Times, parse_coordinates
from ratings_ledger.projections.queries.forecast import Prediction
from ratings_ledger.projections.queries.history import Change
from ratings_ledger.projections.queries.players import Profile
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import short_name
from ratings_ledger.web.charts import SERIES_MAX, steps
from ratings_ledger.web.courses import By, points_line
from ratings_ledger.web.page import Page, known_at_last, many, minute, points, signed
from ratings_ledger.web.visits import Visit

COMPARE, PLAYERS = ("compare",), ("compare", "players")
# of the gains, and of the losses, so many are shown
SHOWN = 25


class Beside(NamedTuple):
    """A ladder at both coordinates: where they are in words, and who gains, loses, joins and leaves, largest first; and
    how well both predict, where that was asked for.
    """

    one: Difference
    a: str
    b: str
    gains: list[DifferingRow]
    losses: list[DifferingRow]
    joining: list[DifferingRow]
    leaving: list[DifferingRow]
    quality: QualityPair | None


class Suggested(NamedTuple):
    """Something that may be worth comparing: what it is, and the coordinates of both sides, on a ladder or on all."""

    text: str
    a: str
    b: str
    ladder: str | None


def compare_page(visit: Visit) -> Page:
    """Ladders at two coordinates, with how well both predict where one ladder is named; without any only the form.

    Coordinates are written as for `ratings diff`. Raises as `Ledger.compare` does.
    """
    a, b, ladder = (visit.one(name) for name in ("a", "b", "ladder"))
    ladder = None if ladder is None else visit.view.full_name(ladder)
    found = Differences(())
    if a is not None and b is not None:
        named = [] if ladder is None else [ladder]
        found = visit.ledger.compare(_pinned(visit, a), _pinned(visit, b), named, predictions=ladder is not None)
    elif a is not None or b is not None:
        raise BadArgument("two coordinates are compared: a and b are needed, such as a=published and b=now")
    shown_now = {
        "found": found, "a": a, "b": b, "ladder": ladder, "asked": a is not None,
        "ladders": [row.ladder for row in visit.ladders.rows], "suggested": [*_suggested(visit, ladder)],
        "sides": [_beside(one, found.times) for one in found.ladders], "most": SHOWN,
    }  # fmt: skip
    return Page(COMPARE, "compare", "Compare", found, found.times, shown_now, None, {}, visit.asked)


def _pinned(visit: Visit, text: str) -> CoordinateSpec:
    """Coordinates as they were written, at the log as this visit knows it. Raises `BadArgument`."""
    asked = parse_coordinates(text)
    return asked if asked.known_at is not None else asked._replace(known_at=visit.view.known_at)


def _suggested(visit: Visit, ladder: str | None) -> Iterator[Suggested]:
    """Yield what was published beside what is known now, and each version of a ruleset beside the one before it."""
    if visit.view.events(types=["list.published"], limit=1).rows:
        yield Suggested("What was published, beside what is known now", "published", "now", ladder)
    ladders = [row.ladder for row in visit.ladders.rows if ladder in (None, row.ladder)]
    before: dict[str, str] = {}
    for row in visit.view.rulesets().rows:
        ruleset_id = row.version.partition("@")[0]
        on = next((one for one in ladders if one.partition("/")[0] == ruleset_id), None)
        if on is not None and ruleset_id in before:
            told = f"{short_name(on)}: all games under {before[ruleset_id]}, beside all under {row.version}"
            yield Suggested(told, f"rules={before[ruleset_id]}", f"rules={row.version}", on)
        before[ruleset_id] = row.version


def _beside(one: Difference, times: Times) -> Beside:
    stated = partial(minute, times)
    rows = sorted(one.rows, key=lambda row: (-abs(row.difference), row.player))
    return Beside(
        one, one.a.describe(stated), one.b.describe(stated),
        [row for row in rows if row.change is not None and row.change > 0],
        [row for row in rows if row.change is not None and row.change < 0],
        [row for row in rows if row.kind == "added"], [row for row in rows if row.kind == "removed"],
        None if one.quality is ABSENT else one.quality,
    )  # fmt: skip


def compared_page(visit: Visit) -> Page:
    """Several players on a ladder in one chart; without any only the form.

    Raises as `Snapshot.profile` does, `Unknown` for who has no game there, `BadArgument` for too many.
    """
    ladder, players = visit.one("ladder"), visit.asked.get("player", ())
    ladder = None if ladder is None else visit.view.full_name(ladder)
    if len(players) > SERIES_MAX:
        raise BadArgument(f"at most {SERIES_MAX} players are beside each other, not {len(players)}", "player")
    found = [] if ladder is None else [*_profiles(visit, ladder, players)]
    shown_now = {
        "found": found, "ladder": ladder, "players": [*players, *[""] * (SERIES_MAX - len(players))],
        "ladders": [row.ladder for row in visit.ladders.rows],
        "chart": lambda game_link, name, by: Markup(_chart(found, game_link, name, by)),
        "predictions": _predict_all(visit, ladder, found),
    }  # fmt: skip
    told = [one.model_dump() for one in found]
    return Page(
        PLAYERS, "players", "Beside each other", told, visit.ladders.times, shown_now, None, visit.query, visit.asked
    )


def _predict_all(visit: Visit, ladder: str | None, found: Sequence[Profile]) -> Sequence[Prediction]:
    """Return what a game of every two of some players would give."""
    players = [one.player for one in found if one.standing is not None]
    return () if ladder is None else visit.view.predict_pairs(ladder, [*combinations(players, 2)])


def _profiles(visit: Visit, ladder: str, players: Sequence[str]) -> Iterator[Profile]:
    """Yield what a ladder says of some players, each once."""
    seen = set[str]()
    for player in players:
        found = visit.view.profile(ladder, player)
        if not found.steps:
            raise Unknown("player-unknown", f"{quote(player)} has no game on {short_name(ladder)}")
        if found.player not in seen:
            seen.add(found.player)
            yield known_at_last(found, visit.view.last_event(ladder, found.player))


def _chart(found: Sequence[Profile], game_link: Callable[[str], str], name: Callable[[str], str], by: By) -> str:
    """Return the points of all of them."""

    def told(row: Change) -> str:
        what = row.reason if row.game_id is None else row.game_id
        return f"{what}: {signed(row.change)}, {points(row.after)}"

    lines = [points_line(name(one.player), one.steps, by, told, game_link) for one in found]
    ends = "; ".join(f"{name(one.player)} has {points(one.steps.values[-1])}" for one in found)
    return steps(
        lines, title=f"Points of {many(len(found), 'player')} on {found[0].ladder}", description=f"{ends}.",
        prefix=f"points-{by}",
    )  # fmt: skip
