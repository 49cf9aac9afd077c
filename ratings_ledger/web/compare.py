"""Build the comparison pages, on a server only: a ladder at two sets of coordinates, and several players in a chart."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

from markupsafe import Markup

from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.rejections import count, quote
from ratings_ledger.projections.diff.comparison import DifferingRow
from ratings_ledger.projections.diff.differences import Difference, Differences
from ratings_ledger.projections.diff.predictions import QualityPair
from ratings_ledger.projections.queries.coordinates import CoordinateSpec, TimeFormat, parse_coordinates
from ratings_ledger.projections.queries.forecast import Prediction
from ratings_ledger.projections.queries.history import Change
from ratings_ledger.projections.queries.players import Profile
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladder_names import short_name
from ratings_ledger.web.charts import SERIES_MAX, draw_steps
from ratings_ledger.web.course_charts import HorizontalAxis, build_points_line
from ratings_ledger.web.page import Page, format_change, format_minute, format_points, pin_known_at
from ratings_ledger.web.visits import Visit

COMPARE, PLAYERS = ("compare",), ("compare", "players")
ROWS_MAX = 25  # rows in the table of gains, and of losses


class LadderComparison(NamedTuple):
    """A ladder at two sets of coordinates: their descriptions, and its gains, losses, new and removed players.

    In each list, the largest differences come first.
    `quality` measures how well the points before and after predict results, if requested.
    """

    difference: Difference
    before: str
    after: str
    gains: list[DifferingRow]
    losses: list[DifferingRow]
    joining: list[DifferingRow]
    leaving: list[DifferingRow]
    quality: QualityPair | None


class Suggestion(NamedTuple):
    """A suggested comparison: its description, both sets of coordinates, and the ladder, None for all ladders."""

    text: str
    a: str
    b: str
    ladder: str | None


def build_compare_page(visit: Visit) -> Page:
    """Return the page that compares ladders at two sets of coordinates; without coordinates, only the form.

    A single ladder also gets the quality of its predictions. Coordinates are written as for `ratings diff`. Raises the
    errors of `Ledger.compare`.
    """
    a, b, ladder = (visit.parameter(name) for name in ("a", "b", "ladder"))
    ladder = None if ladder is None else visit.view.full_name(ladder)
    differences = Differences(())
    if a is not None and b is not None:
        ladders = [] if ladder is None else [ladder]
        sides = _parse_pinned(visit, a), _parse_pinned(visit, b)
        differences = visit.ledger.compare(*sides, ladders, predictions=ladder is not None)
    elif a is not None or b is not None:
        missing = "a" if a is None else "b"
        raise BadArgument(
            f"a comparison needs two sets of coordinates, but {missing} is missing; give both, such as a=published and "
            "b=now"
        )
    variables = {
        "differences": differences,
        "a": a,
        "b": b,
        "ladder": ladder,
        "ladders": [row.ladder for row in visit.ladders.rows],
        "has_coordinates": a is not None,
        "suggestions": [*_suggest_comparisons(visit, ladder)],
        "comparisons": [_compare_ladder(difference, differences.times) for difference in differences.ladders],
        "rows_max": ROWS_MAX,
    }
    return Page(
        path=COMPARE,
        template="compare",
        title="Compare",
        answer=differences,
        times=differences.times,
        variables=variables,
        table=None,
        query={},
        parameters=visit.parameters,
    )


def _parse_pinned(visit: Visit, text: str) -> CoordinateSpec:
    """Parse coordinates, by default at the visit's position of the log. Raises `BadArgument`."""
    spec = parse_coordinates(text)
    return spec if spec.known_at is not None else spec._replace(known_at=visit.view.known_at)


def _suggest_comparisons(visit: Visit, ladder: str | None) -> Iterator[Suggestion]:
    """Suggest comparing published lists with today's lists, and each version with the previous one of its ruleset.

    Versions of rulesets without a ladder are left out.
    """
    if visit.view.events(types=["list.published"], limit=1).rows:
        yield Suggestion("Published lists against today’s", "published", "now", ladder)
    ladders = [row.ladder for row in visit.ladders.rows if ladder in (None, row.ladder)]
    previous_versions: dict[str, str] = {}
    for row in visit.view.rulesets().rows:
        ruleset_id = row.version.partition("@")[0]
        scored_ladder = next((name for name in ladders if name.partition("/")[0] == ruleset_id), None)
        if scored_ladder is not None and (previous := previous_versions.get(ruleset_id)) is not None:
            text = f"{short_name(scored_ladder)}: all games under {previous} against {row.version}"
            yield Suggestion(text, f"rules={previous}", f"rules={row.version}", scored_ladder)
        previous_versions[ruleset_id] = row.version


def _compare_ladder(difference: Difference, times: TimeFormat) -> LadderComparison:
    format_time = partial(format_minute, times)
    rows = sorted(difference.rows, key=lambda row: (-abs(row.difference), row.player))
    return LadderComparison(
        difference,
        before=difference.a.describe(format_time),
        after=difference.b.describe(format_time),
        gains=[row for row in rows if row.change is not None and row.change > 0],
        losses=[row for row in rows if row.change is not None and row.change < 0],
        joining=[row for row in rows if row.kind == "added"],
        leaving=[row for row in rows if row.kind == "removed"],
        quality=None if difference.quality is ABSENT else difference.quality,
    )


def build_compare_players_page(visit: Visit) -> Page:
    """Return the page that shows several players on a ladder in one chart; without players or ladder, only the form.

    Raises the errors of `Snapshot.profile`; `Unknown` for a player without games and adjustments on the ladder;
    `BadArgument` for too many players.
    """
    ladder, players = visit.parameter("ladder"), visit.parameters.get("player", ())
    ladder = None if ladder is None else visit.view.full_name(ladder)
    if len(players) > SERIES_MAX:
        raise BadArgument(f"{len(players)} players are too many; compare at most {SERIES_MAX}", "player")
    profiles = [] if ladder is None else [*_load_profiles(visit, ladder, players)]
    variables = {
        "profiles": profiles,
        "ladder": ladder,
        "ladders": [row.ladder for row in visit.ladders.rows],
        "players": [*players, *[""] * (SERIES_MAX - len(players))],
        "chart": lambda game_link, name, by: Markup(_draw_chart(profiles, game_link, name, by)),
        "predictions": _predict_all(visit, ladder, profiles),
    }
    answer = [profile.model_dump() for profile in profiles]
    return Page(
        path=PLAYERS,
        template="players",
        title="Compare players",
        answer=answer,
        times=visit.ladders.times,
        variables=variables,
        table=None,
        query=visit.query,
        parameters=visit.parameters,
    )


def _predict_all(visit: Visit, ladder: str | None, profiles: Sequence[Profile]) -> Sequence[Prediction]:
    """Predict a game of every pair of the players who have a standing."""
    players = [profile.player for profile in profiles if profile.standing is not None]
    return () if ladder is None else visit.view.predict_pairs(ladder, [*combinations(players, 2)])


def _load_profiles(visit: Visit, ladder: str, players: Sequence[str]) -> Iterator[Profile]:
    """Yield the profiles of the players on a ladder, without duplicates."""
    loaded = set[str]()
    for player in players:
        profile = visit.view.profile(ladder, player)
        if not profile.steps:
            raise Unknown("player-unknown", f"{quote(player)} has no game or adjustment on {short_name(ladder)}")
        if profile.player not in loaded:
            loaded.add(profile.player)
            yield pin_known_at(profile, visit.view.last_event(ladder, profile.player))


def _draw_chart(
    profiles: Sequence[Profile],
    game_link: Callable[[str], str],
    format_name: Callable[[str], str],
    axis: HorizontalAxis,
) -> str:
    """Return the chart of the points of all players."""

    def describe(row: Change) -> str:
        subject = row.reason if row.game_id is None else row.game_id
        return f"{subject}: {format_change(row.change)}, {format_points(row.after)}"

    lines = [
        build_points_line(format_name(profile.player), profile.steps, axis, describe, game_link) for profile in profiles
    ]
    ends = "; ".join(
        f"{format_name(profile.player)} has {format_points(profile.steps.values[-1])}" for profile in profiles
    )
    return draw_steps(
        lines,
        title=f"Points of {count(len(profiles), 'player')} on {profiles[0].ladder}",
        description=f"{ends}.",
        prefix=f"points-{axis}",
    )
