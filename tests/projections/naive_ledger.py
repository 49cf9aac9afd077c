"""Any ladder at any coordinates by the book: fractions and dictionaries, replayed from a plain list of events.

The three axes are three lines here: drop the events behind `known_at`, drop what was played after `as_of`, put one
version in the place of the timeline. Shares no code with the program; a log is that of `oracle`.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from naive_lists import berlin, month_rows, points
from naive_scores import SCORES, Points
from oracle import Event, Game, Log, games, identities, instant, judge, live, places, seats, voids
from oracle_ladders import ALWAYS, Seen, account

MICROSECOND = timedelta(microseconds=1)


class Question(NamedTuple):
    """A ladder at coordinates; `as_of` as people write it, `rules` as ID@VERSION, None: no limit, the timeline."""

    ladder: str
    known_at: int
    as_of: str | None = None
    rules: str | None = None

    @property
    def upto(self) -> datetime | None:
        """The last instant that `as_of` admits."""
        return None if self.as_of is None else end_of(self.as_of)


class Row(NamedTuple):
    """A row of the standings."""

    rank: int | None
    player: str
    points: Fraction
    games: int
    qualified: bool
    gold: int | None = None
    places: tuple[int, ...] | None = None


class Answer(NamedTuple):
    """The standings of a ladder: the version that they are named after, how many games count, the rows."""

    ruleset: str
    games: int
    rows: list[Row]

    def as_json(self) -> list[dict[str, Any]]:
        """The rows in the form of the contract: exact numbers as strings, gold and places only where there are."""
        told = [
            row._asdict() | {"points": str(row.points), "places": None if row.places is None else list(row.places)}
            for row in self.rows
        ]
        return [
            {name: value for name, value in row.items() if name not in ("gold", "places") or value is not None}
            for row in told
        ]

    @property
    def digest(self) -> str:
        """The hash of ruleset and rows."""
        content = {"ruleset": self.ruleset, "rows": self.as_json()}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class Version(NamedTuple):
    """A live version of a ruleset: since when it is in force (None: never), and where it was published."""

    data: Event
    since: datetime | None
    position: int

    @property
    def name(self) -> str:
        """As `--rules` names it."""
        return f"{self.data['id']}@{self.data['version']}"

    @property
    def params(self) -> dict[str, Any]:
        found: dict[str, Any] = self.data["params"]
        return found

    @property
    def start(self) -> Fraction:
        return Fraction(self.params.get("start", 1000))


# -- time


def start_of(day: str) -> datetime:
    """The first instant of a day in Berlin."""
    midnight = datetime.fromisoformat(day)
    both = (midnight - timedelta(hours=hours) for hours in (1, 2))
    return next(at for at in both if berlin(at) == midnight).replace(tzinfo=UTC)


def end_of(text: str) -> datetime:
    """The instant that a text means as an end: a date the last of its day in Berlin."""
    if len(text) > len("2010-03-31"):
        return instant(text)
    return start_of((date.fromisoformat(text) + timedelta(days=1)).isoformat()) - MICROSECOND


def local(at: datetime) -> datetime:
    """An instant by the clocks of Berlin."""
    return berlin(at.replace(tzinfo=None))


# -- versions


def versions_of(log: Log, ruleset_id: str, rules: str | None = None) -> list[Version]:
    """The versions that are published and not withdrawn; with `rules` that one alone, from the start of time."""
    found = [
        Version(data, start_of(data["effective_from"]) if data.get("effective_from") else None, event["position"])
        for event in live(log, "ruleset.published")
        if (data := event["data"])["id"] == ruleset_id
    ]
    if rules is None:
        return found
    return [version._replace(since=ALWAYS) for version in found if version.name == rules]


def in_force(versions: list[Version], at: datetime) -> Version | None:
    """The version with the latest date that is not after an instant; of equal dates the one recorded last."""
    begun = [
        (version.since, version.position, version) for version in versions if version.since and version.since <= at
    ]
    return max(begun, key=lambda one: one[:2])[2] if begun else None


def newest(versions: list[Version]) -> Version:
    """The version in force in the end; if none ever is, the one recorded last."""
    return in_force(versions, instant("9999-12-31T00:00:00Z")) or versions[-1]


def at_adjustment(versions: list[Version], at: datetime) -> Version:
    """The version whose start value somebody new has when he is adjusted: that in force, else the first to be."""
    first = min((version.since for version in versions if version.since), default=at)
    return in_force(versions, max(at, first)) or versions[0]


# -- questions


class View:
    """What a log says of the games that ended up to an instant."""

    def __init__(self, log: Log, upto: datetime | None) -> None:
        self.log = log
        of_accounts = ("player.registered", "player.account_changed", "event.voided")
        self.seen = Seen([event for event in log if event["type"] in of_accounts], upto, identities(log))

    @cached_property
    def facts(self) -> list[tuple[datetime, int, Any]]:
        """Games that may count and adjustments, in the order in which they are replayed."""
        found: list[tuple[datetime, int, Any]] = [
            (game.at, game.first, game)
            for game in games(self.log).values()
            if not (game.voided or game.data.get("aborted") or game.data.get("rated") is False)
        ]
        found += [(instant(e["occurred_at"]), e["position"], e["data"]) for e in live(self.log, "points.adjusted")]
        return sorted((fact for fact in found if not self.seen.late(fact[0])), key=lambda fact: fact[:2])

    def games(self, name: str, versions: list[Version]) -> Iterator[tuple[Game, Version, list[str]]]:
        """The games that count on a ladder, each with its version and who of it counts, by the ids as recorded."""
        for at, _, fact in self.facts:
            version = in_force(versions, at)
            if isinstance(fact, Game) and version and (who := self.counted(name, version, fact)):
                yield fact, version, who

    def counted(self, name: str, version: Version, game: Game) -> list[str]:
        """Who counts in a game on a ladder; nobody if it does not count there."""
        scope, n = version.data["scope"], len(seats(game.data))
        if cell(version, game) != name or game.data["game"] not in scope["game"]:
            return []
        if n < scope.get("players_min", 2) or game.data.get("group") in scope.get("exclude_group", ()):
            return []
        if any(rows and str(n) not in rows for rows in map(version.params.get, ("contributions", "points"))):
            return []
        if version.data["rule"] == "catan-points/1":
            return [player for player, _ in points(game.data, version.params)]
        free = scope.get("exclude_accounts")
        who = [
            participant["player"] for participant in game.data["participants"]
            if participant.get("status", "finished") not in scope.get("exclude_status", ())
            and not (free and account(self.seen, participant["player"], game.at) in free)
        ]  # fmt: skip
        return who if len(who) > 1 else []


def cell(version: Version, game: Game) -> str | None:
    """The name of the ladder of a ruleset that a game is on by its labels and time, if it is on one."""
    periods = {"month": "%Y-%m", "year": "%Y"}
    values = [
        f"{local(game.at):{periods[part]}}" if part in periods else game.data.get(part)
        for part in version.data.get("partition", {}).get("by", ())
    ]
    return None if None in values else "/".join([version.data["id"], *map(str, values)])


def ask(log: Log, question: Question) -> Answer | None:
    """The standings at coordinates; None where no such ruleset or version is published."""
    known = [event for event in log if event["position"] <= question.known_at]
    versions = versions_of(known, question.ladder.split("/")[0], question.rules)
    if not versions:
        return None
    return LISTS[versions[0].data["rule"]](View(known, question.upto), question.ladder, versions)


def running_points(view: View, name: str, versions: list[Version]) -> Answer:
    """Points that run on from game to game, and from version to version."""
    has: Points = {}
    played: Counter[str] = Counter()
    counting = {game.data["game_id"]: (version, who) for game, version, who in view.games(name, versions)}
    last = None
    for at, _, fact in view.facts:
        if not isinstance(fact, Game):
            if fact["ladder"] == name:
                player = view.seen.current(fact["player"])
                has[player] = has.get(player, at_adjustment(versions, at).start) + Fraction(fact["points"])
        elif fact.data["game_id"] in counting:
            last, who = counting[fact.data["game_id"]]
            ids = {player: view.seen.current(player) for player in who}
            before = {ids[player]: has.get(ids[player], last.start) for player in who}
            place = {ids[player]: rank for player, rank in places(fact.data).items() if player in who}
            told = {ids[p["player"]]: p for p in fact.data["participants"] if p["player"] in who}
            change = SCORES[last.data["rule"]](before, place, told, len(seats(fact.data)), last.params)
            for player, points_before in before.items():
                has[player] = points_before + change[player]
            played.update(before.keys())
    ranking = last or newest(versions)
    return Answer(ranking.name, len(counting), running_rows(has, played, ranking.params.get("min_games", 0)))


def running_rows(has: Points, played: Counter[str], min_games: int) -> list[Row]:
    """Who qualifies by points, ties sharing a rank and standing by id; the others behind, without a rank."""
    qualified = {player for player in has if played[player] >= min_games}
    ranks = {player: 1 + sum(has[other] > has[player] for other in qualified) for player in qualified}
    rows = [Row(ranks.get(player), player, has[player], played[player], player in qualified) for player in has]
    return sorted(rows, key=lambda row: (not row.qualified, -row.points, row.player))


def month_list(view: View, name: str, versions: list[Version]) -> Answer:
    """The list of a month, ranked by the version that scored its last game."""
    given: dict[str, list[Fraction]] = defaultdict(list)
    last, count = newest(versions), 0
    for game, version, _ in view.games(name, versions):
        for player, amount in points(game.data, version.params):
            given[view.seen.current(player)].append(amount)
        last, count = version, count + 1
    rows = [Row(**row | {"points": Fraction(row["points"])}) for row in month_rows(last.data, given)]
    return Answer(last.name, count, rows)


def year_list(view: View, name: str, versions: list[Version]) -> Answer:
    """The list of a year from those of its months, ranked by the version in force at its end."""
    _, city, group, year = name.split("/")
    end = start_of(f"{int(year) + 1}-01-01") - MICROSECOND
    version = in_force(versions, end) or newest(versions)
    params, monthly = version.params, versions_of(view.log, version.params["of"])
    months = [month_list(view, f"{params['of']}/{city}/{group}/{year}-{month:02d}", monthly) for month in range(1, 13)]
    rows = [row for month in months for row in month.rows]
    count, missing, worst = params["months"], params["missing"], params["cap_at_missing"]
    best: dict[str, tuple[int, ...]] = {}
    for player in {row.player for row in rows if row.rank is not None}:
        had = sorted(row.rank for row in rows if row.player == player and row.rank is not None)
        had = [min(place, missing) if worst else place for place in had][:count]
        best[player] = tuple(sorted(had + [missing] * (count - len(had))))
    when = min(end, view.seen.as_of or end)
    wanted = None if group in params["any_account"] else params["account"]
    ranked = {player for player in best if wanted is None or account(view.seen, player, when) == wanted}
    ranks = {player: 1 + sum(sum(best[other]) < sum(best[player]) for other in ranked) for player in ranked}
    played = {player: sum(row.games for row in rows if row.player == player) for player in best}
    found = [
        Row(
            ranks.get(player), player, Fraction(sum(best[player])), played[player], player in ranked, None, best[player]
        )
        for player in best
    ]
    found.sort(key=lambda row: (not row.qualified, row.points, row.player))
    return Answer(version.name, sum(month.games for month in months), found)


LISTS = {
    "contribution-pool/1": running_points, "pairwise-elo/1": running_points, "catan-points/1": month_list,
    "annual-places/1": year_list,
}  # fmt: skip


# -- judging a new event


def refusals(log: Log, event: Event) -> frozenset[str]:
    """Every code that an import may refuse an event with; none if it is taken, or there already."""
    root = root_of(log, event)
    if event["type"] == "ruleset.published":
        return frozenset(version_faults(log, event["data"]))
    if event["type"] == "event.voided" and root and root["type"] in ("ruleset.published", "list.published"):
        return frozenset(faults_of_taking_back(log, event, root))
    return judge(log, event, allow_uncounted=True).codes


def root_of(log: Log, event: Event) -> Event | None:
    """What a void is about in the end."""
    by_id = {known["id"]: known for known in log}
    root: Event | None = event
    while root and root["type"] == "event.voided":
        root = by_id.get(root["data"]["id"])
    return root


def version_faults(log: Log, data: Event) -> set[str]:
    """What speaks against a version: one of its name with other content, a year without the lists of its months."""
    same = [version.data for version in versions_of(log, data["id"]) if version.data["version"] == data["version"]]
    missing = data["rule"] == "annual-places/1" and not versions_of(log, data["params"]["of"])
    return ({"version-exists"} if same and same != [data] else set()) | ({"bad-ruleset"} if missing else set())


def faults_of_taking_back(log: Log, event: Event, root: Event) -> set[str]:
    """What speaks against a void about a version or a published list; it may let it stand again."""
    target, those = event["data"]["id"], voids(log).get(root["id"], [])
    if those[-1:] != [target] if target != root["id"] else len(those) % 2:
        return {"event-voided"}
    if root["type"] == "list.published":
        return set()
    if len(those) % 2:
        same = [v for v in versions_of(log, root["data"]["id"]) if v.data["version"] == root["data"]["version"]]
        return version_faults(log, root["data"]) | ({"version-exists"} if same else set())
    ruleset_id = root["data"]["id"]
    used = [known["data"]["ladder"].split("/")[0] for known in live(log, "points.adjusted")]
    used += [known["data"]["params"].get("of") for known in live(log, "ruleset.published")]
    return {"still-needed"} if len(versions_of(log, ruleset_id)) == 1 and ruleset_id in used else set()
