"""Rulesets: their versions in a log, the version in force, and the ladder of a game.

`BOOK` has the three shipped rulesets with running points, written down again from their sources, so that a wrong number
in a shipped file shows.
"""

from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.log import Event, Game, Log, list_seats, select_live
from oracle.times import ALWAYS, IN_THE_END, find_first_instant, find_season_bounds, to_berlin

BOOK: dict[str, Event] = {
    "galactic-points": {
        "id": "galactic-points", "rule": "contribution-pool/1", "effective_from": "1900-01-01",
        "scope": {"game": ["galactic-magnate"], "kind": ["placing"]}, "partition": {"by": []},
        "params": {
            "start": 1000, "bonus": 100, "bonus_seconds": 600, "dust": "burn",
            "contributions": {"2": [0, 16], "3": [0, 13, 20], "4": [0, 11, 17, 24], "5": [0, 10, 16, 22, 28]},
        },
    },
    "b5-league": {
        "id": "b5-league", "rule": "ante-pool/1", "effective_from": "1900-01-01",
        "scope": {"game": ["babylon5"], "kind": ["b5"]}, "partition": {"by": ["season"]},
        "params": {
            "start": 100, "min_games": 5, "ante_divisor": 10, "shares": {"3": [50, 30, 20], "4": [40, 30, 20, 10]},
            "winners": "share",
        },
    },
    "catan-elo": {
        "id": "catan-elo", "rule": "pairwise-elo/1", "effective_from": "2009-01-31",
        "scope": {
            "game": ["catan"], "kind": ["placing"], "exclude_status": ["abandoned", "substitute"],
            "exclude_accounts": ["free"],
        },
        "partition": {"by": ["group"]},
        "params": {"start": 1000, "k_per_pair": 8, "scale": 400, "rounding": "pair"},
    },
}  # fmt: skip
# the rules of the two pools do not allow substitutes
ONE_PLAYER_A_SEAT = ("contribution-pool/1", "ante-pool/1")
PERIODS = {"month": "%Y-%m", "year": "%Y"}


class Version(NamedTuple):
    """A live version of a ruleset: the start of its force (None: never), and the position of its publication."""

    data: Event
    since: datetime | None
    position: int

    @property
    def name(self) -> str:
        """The name of the version for `--rules`."""
        return f"{self.data['id']}@{self.data['version']}"

    @property
    def rule(self) -> str:
        return str(self.data["rule"])

    @property
    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.data["params"]
        return params

    @property
    def start(self) -> Fraction:
        return Fraction(self.params["start"])


def build_version(data: Event, position: int = 0) -> Version:
    """Return the version that the data of an event publish."""
    return Version(data, find_first_instant(data["effective_from"]) if data.get("effective_from") else None, position)


# -- in a log


def apply_book(log: Log) -> Log:
    """Return the log with the shipped rulesets replaced by those of `BOOK`."""
    return [
        {**event, "data": event["data"] | find_book_members(event["data"])}
        if event["type"] == "ruleset.published"
        else event
        for event in log
    ]


def find_book_members(data: Event) -> Event:
    """Return the members of a version in `BOOK`; version 1 of the Babylon 5 league ranks several winners by power."""
    members = BOOK.get(data["id"], {})
    if (data["id"], data["version"]) == ("b5-league", "1"):
        return {**members, "params": {**members["params"], "winners": "by_power"}}
    return members


def get_ruleset_id(ladder: str) -> str:
    """Return the id of a ladder's ruleset."""
    return ladder.partition("/")[0]


def list_versions(log: Log, ruleset_id: str, rules: str | None = None) -> list[Version]:
    """Return the published versions that are not withdrawn; with `rules`, only that one, always in force."""
    published = [event for event in select_live(log, "ruleset.published") if event["data"]["id"] == ruleset_id]
    versions = [build_version(event["data"], event["position"]) for event in published]
    return (
        versions if rules is None else [version._replace(since=ALWAYS) for version in versions if version.name == rules]
    )


def find_version(versions: list[Version], at: datetime) -> Version | None:
    """Return the version with the latest date not after an instant; of equal dates, the one recorded last."""
    started = [
        (version.since, version.position, version) for version in versions if version.since and version.since <= at
    ]
    return max(started, key=lambda version: version[:2])[2] if started else None


def find_newest_version(versions: list[Version]) -> Version:
    """Return the version in force in the end; if none ever is, the one recorded last."""
    return find_version(versions, IN_THE_END) or versions[-1]


def find_start(versions: list[Version], at: datetime) -> Fraction:
    """Return the points of a new player at an instant: by the version in force, else by the first one."""
    first = min((version.since for version in versions if version.since), default=at)
    return (find_version(versions, max(at, first)) or versions[0]).start


# -- games


def find_ladder_name(version: Version, game: Game) -> str | None:
    """Return the name of a ruleset's ladder that a game belongs to by its labels and time, if any."""
    values = [
        f"{to_berlin(game.at):{PERIODS[part]}}" if part in PERIODS else game.data.get(part)
        for part in version.data.get("partition", {}).get("by", ())
    ]
    return "/".join([version.data["id"], *map(str, values)]) if all(values) else None


def is_in_scope(version: Version, game: Game) -> bool:
    """Tell whether a game's name, kind, group and size are in the scope of a version."""
    scope, kind = version.data["scope"], game.data.get("kind") or "placing"
    return (
        game.data["game"] in scope["game"]
        and kind in scope.get("kind", [kind])
        and len(list_seats(game.data)) >= scope.get("players_min", 2)
        and game.data.get("group") not in scope.get("exclude_group", ())
    )


def is_unscorable(version: Version, game: Game) -> bool:
    """Tell whether the rule of a version cannot score a game in its scope."""
    rows = version.params.get("contributions") or version.params.get("points")
    if rows and str(len(list_seats(game.data))) not in rows:
        return True
    if version.rule in ONE_PLAYER_A_SEAT and any(seat.changed_hands for seat in list_seats(game.data)):
        return True
    bounds = find_season_bounds(game.data.get("season") or "") if version.rule == "ante-pool/1" else None
    return bounds is not None and not bounds[0] <= game.at < bounds[1]


# -- the rulesets of BOOK

SHIPPED = [build_version(data) for data in BOOK.values()]


def find_book_ladder(game: Game) -> str | None:
    """Return the ladder of `BOOK` that a game belongs to, counted or not."""
    names = (find_ladder_name(version, game) for version in SHIPPED if is_in_scope(version, game))
    return next(filter(None, names), None)


def is_uncountable(game: Game) -> bool:
    """Tell whether a game is rated, but the rule of its ladder cannot score it."""
    return game.rated and any(
        is_in_scope(version, game) and find_ladder_name(version, game) and is_unscorable(version, game)
        for version in SHIPPED
    )
