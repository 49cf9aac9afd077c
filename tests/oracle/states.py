"""Ladders of a rule with state, worked out naively: seasons, seeds, rating periods, and versions that take effect.

The rule is one for tests, whose sums are whole numbers: `gain` says all of it. Rulesets are those of `RULESETS`; all of
them count the same games.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from oracle.log import Event, Game, Log, games, identities, live
from oracle.rulesets import Version, in_force, versions_of
from oracle.times import IN_THE_END, MICROSECOND, berlin, instant, start_of

START = (10_000, 20)  # rating in tenths, and a weight
# by id: the period, and what says in which season a game is
RULESETS: dict[str, tuple[str, Any]] = {
    "by-game": ("game", [3, 7]), "by-label": ("game", "season"), "by-day": ("day", None), "by-week": ("week", [3]),
    "by-month": ("month", [3]), "by-event": ("event", "season"),
}  # fmt: skip
State = tuple[int, int]


class Standing(NamedTuple):
    """What a player has: the rating in tenths, the games on the ladder, and the whole state."""

    rating: int
    games: int
    state: State


class Last(NamedTuple):
    """The last game of a player: its day or period, its season, and how many there were, those of a seed included."""

    day: int | None = None
    period: int | None = None
    season: Any = None
    count: int = 0


class Before(NamedTuple):
    """What a rule may ask about the games of a player before one."""

    games: int
    days: int | None
    is_first: bool


class Played(NamedTuple):
    """A counted game, its participants by current ids, and those of each side."""

    game: Game
    told: dict[str, Event]
    sides: dict[str, Any]

    @property
    def day(self) -> int:
        return berlin(self.game.at).date().toordinal()

    def gain(self, player: str, weight: int, k: int) -> int:
        """What a player gets for one game: from every opponent, and for home, score and bonus once for each of them."""
        own, total = self.told[player], 0
        at_home = [self.sides[name] for name, one in self.told.items() if one.get("home")]
        home = 0 if not at_home else 1 if at_home[0] == self.sides[player] else -1
        bonus = {**self.game.data.get("numbers", {}), **own.get("numbers", {})}.get("bonus", 0)
        for name, other in self.told.items():
            if self.sides[name] != self.sides[player]:
                total += k * weight * ((own["place"] < other["place"]) - (own["place"] > other["place"]))
                total += 3 * home + bonus + (own.get("score") or 0)
        return total


def season_of(by: Any, played: Played) -> Any:
    """The season of a game: its label, or the last of some months to begin."""
    if by == "season" or by is None:
        return by and played.game.data.get("season")
    day = berlin(played.game.at).date()
    begun = [month for month in by if month <= day.month]
    return (day.year, max(begun)) if begun else (day.year - 1, max(by))


def begin_of(period: str, day: datetime) -> datetime:
    """The first day of a period, and of the one after it if the day is moved that far."""
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day


def number_of(period: str, at: datetime) -> int:
    """A number that is one more for every following period."""
    day = begin_of(period, berlin(at))
    if period == "month":
        return day.year * 12 + day.month
    return day.toordinal() // (7 if period == "week" else 1)


def bounds_of(period: str, at: datetime) -> tuple[datetime, datetime]:
    """The first instants of the period around an instant, and of the next one."""
    begin = begin_of(period, berlin(at).replace(hour=0, minute=0, second=0, microsecond=0))
    after = begin_of(period, begin + timedelta(days={"day": 1, "week": 7, "month": 32}[period]))
    return start_of(begin.date().isoformat()), start_of(after.date().isoformat())


class Group(NamedTuple):
    """Games that are scored together, from the first instant to the last one, and numbers to count between groups."""

    begin: datetime
    end: datetime
    first: int
    last: int
    games: list[Played]


class StateLadder:
    """A ladder at coordinates; `rows` is the answer."""

    def __init__(self, log: Log, name: str, upto: datetime | None, rules: str | None) -> None:
        self.name, self.upto, self.log = name, upto, log
        self.period, self.season_by = RULESETS[name]
        self.current = identities(log)
        self.versions = versions_of(log, name, rules)
        self.states: dict[str, State] = {}
        self.games: dict[str, int] = {}
        self.last: dict[str, Last] = {}
        self.cases: list[str] = []
        done = sorted([*self._scored(), *self._adjusted()], key=lambda one: one[:2])
        # without a time the last game or adjustment is the last that happened
        entered = [one for one in self._entered() if upto or (done and one[:2] < done[-1][:2])]
        for _, _, do in sorted([*done, *entered], key=lambda one: one[:2]):
            do()

    @cached_property
    def rows(self) -> dict[str, Standing]:
        return {name: Standing(state[0], self.games.get(name, 0), state) for name, state in sorted(self.states.items())}

    @cached_property
    def seeds(self) -> dict[str, Event]:
        """The first live seed of everybody."""
        found: dict[str, Event] = {}
        for event in live(self.log, "player.seeded"):
            if event["data"]["ladder"] == self.name:
                found.setdefault(self.current(event["data"]["player"]), event["data"])
        return found

    def stored(self, player: str) -> State:
        """What a player's last game left, or what they begin with."""
        if player in self.states:
            return self.states[player]
        seed = self.seeds.get(player)
        if seed is None:
            return START
        self.cases.append("joined by a seed")
        return round(float(seed["state"].get("rating", "1000")) * 10), int(seed["state"].get("weight", START[1]))

    def last_of(self, player: str) -> Last:
        return self.last.get(player) or Last(count=self.seeds.get(player, {}).get("games", 0))

    def counted(self) -> list[Played]:
        """All games that count, whenever they were played."""
        found = []
        for game in sorted(games(self.log).values(), key=lambda one: (one.at, one.first)):
            if game.may_count and in_force(self.versions, game.at):
                told = {self.current(one["player"]): one for one in game.data["participants"]}
                found.append(Played(game, told, {name: one.get("team", name) for name, one in told.items()}))
        return found

    def groups(self) -> list[Group]:
        """The closed groups in the order in which they are scored."""
        closed = [group for group in self.every_group() if self.upto is None or group.end <= self.upto]
        return sorted(closed, key=lambda group: (group.end, group.games[-1].game.first))

    def every_group(self) -> list[Group]:
        """All groups, closed or not."""
        found: dict[Any, list[Played]] = {}
        for played in self.counted():
            label = played.game.data.get("league") if self.period == "event" else None
            key = label or (played.game.first if self.period in ("game", "event") else
                            number_of(self.period, played.game.at))  # fmt: skip
            found.setdefault(key, []).append(played)
        every = []
        for those in found.values():
            begin, end = those[0].game.at, those[-1].game.at
            first, last = those[0].day, those[-1].day
            if self.period not in ("game", "event"):
                begin, after = bounds_of(self.period, begin)
                end, first = after - MICROSECOND, number_of(self.period, begin)
                last = first
            every.append(Group(begin, end, first, last, those))
        return every

    # what happens, with when and in which order

    def _scored(self) -> list[tuple[datetime, tuple[float, float], Callable[[], None]]]:
        return [
            (group.end, (1, group.games[-1].game.first), lambda group=group: self._score(group))  # type: ignore[misc]
            for group in self.groups()
        ]

    def _adjusted(self) -> list[tuple[datetime, tuple[float, float], Callable[[], None]]]:
        found = []
        for event in live(self.log, "points.adjusted"):
            at = instant(event["occurred_at"])
            if event["data"]["ladder"] != self.name or (self.upto and at > self.upto):
                continue
            order = (1, event["position"])
            if self.period not in ("game", "event") and self._plays_in(at):
                # within a period it is counted at its close
                at, order = bounds_of(self.period, at)[1] - MICROSECOND, (2, event["position"])
                if self.upto and at > self.upto:
                    continue
            found.append((at, order, lambda data=event["data"]: self._adjust(data)))
        return found  # type: ignore[return-value]

    def _plays_in(self, at: datetime) -> bool:
        """Whether a counted game is in the period around an instant."""
        begin, after = bounds_of(self.period, at)
        return any(begin <= played.game.at < after for played in self.counted())

    def _entered(self) -> list[tuple[datetime, tuple[float, float], Callable[[], None]]]:
        """The changes of the version in force after the first one."""
        begun = sorted({one.since for one in self.versions if one.since})
        found = []
        for since in begun[1:]:
            at, order = since, (0.0, 0.0)
            if self.period == "event":
                where = self._place_among_events(since)
                if where is None:
                    continue
                at, order = where
            elif self.period != "game" and bounds_of(self.period, since)[0] != since:
                at = bounds_of(self.period, since)[1]
            new = in_force(self.versions, since)
            if new and (self.period == "event" or not (self.upto and at > self.upto)):
                found.append((at, order, lambda new=new: self._enter(new)))
        return found  # type: ignore[return-value]

    def _place_among_events(self, since: datetime) -> tuple[datetime, tuple[float, float]] | None:
        """When a version takes effect between events: before the first one that it scores."""
        closed = self.groups()
        after = next((group for group in closed if group.begin >= since), None)
        if after is not None:
            return after.end, (1, after.games[-1].game.first - 0.5)
        limit = min([self.upto or IN_THE_END, *(group.begin for group in self.every_group() if group not in closed)])
        return (IN_THE_END, (0.0, 0.0)) if since <= limit else None

    def _enter(self, new: Version) -> None:
        for player, (rating, _) in self.states.items():
            self.states[player] = (rating, new.params["weight"])
            self.cases.append("entered")

    def _adjust(self, data: Event) -> None:
        player = self.current(data["player"])
        rating, weight = self.stored(player)
        self.states[player] = (rating + round(float(data["points"]) * 10), weight)
        self.cases.append("adjusted")

    def _score(self, group: Group) -> None:
        """Score a game, or all games of a period from the states before it."""
        scored_by = in_force(self.versions, group.begin) or in_force(self.versions, group.games[0].game.at)
        assert scored_by is not None
        names = sorted({name for played in group.games for name in played.told})
        after = {}
        for name in names:
            mine = [played for played in group.games if name in played.told]
            told, state = self._bring(name, group, mine)
            gained = sum(played.gain(name, state[1], scored_by.params["k"]) for played in mine)
            gained += told.games % 7 + (told.days or 0) % 5 + 2 * told.is_first
            after[name] = (state[0] + gained, max(10, state[1] - 1))
        self.states |= after
        self._note(group)

    def _bring(self, name: str, group: Group, mine: list[Played]) -> tuple[Before, State]:
        """What a player brings to their games: the state after a new season and the time since."""
        last, (rating, weight) = self.last_of(name), self.stored(name)
        seasons = [last.season, *(season_of(self.season_by, played) for played in mine)]
        pairs = [*pairwise(seasons)][last.day is None :]
        if self.season_by and any(one != other for one, other in pairs):
            rating -= rating // 4
            self.cases.append(f"season on {self.name}")
        elapsed = 0
        if last.day is not None and last.period is not None:
            elapsed = max(0, (mine[0].day - last.day) if self.period == "game" else group.first - last.period)
        if elapsed:
            self.cases.append(f"aged on {self.name}")
        days = None if last.day is None else max(0, mine[0].day - last.day)
        is_first = last.day is None or seasons[0] != seasons[1]
        return Before(last.count, days, is_first), (rating, min(40, weight + elapsed))

    def _note(self, group: Group) -> None:
        for played in group.games:
            for name in played.told:
                last = self.last_of(name)
                season = season_of(self.season_by, played)
                self.last[name] = Last(played.day, group.last, season, last.count + 1)
                self.games[name] = self.games.get(name, 0) + 1


# -- which events are taken


def seed_faults(log: Log, event: Event) -> set[str]:
    """Every code that a seed may be refused with."""
    ladder, current = event["data"]["ladder"], identities(log)
    person = current(event["data"]["player"])
    if not versions_of(log, ladder):
        return {"unknown-ladder"}
    found = StateLadder(log, ladder, None, None)
    if person in found.seeds:
        return {"seed-exists"}
    seeds = [one["id"] for one in log if one["type"] == "player.seeded" and one["data"]["ladder"] == ladder]
    alive = {one["id"] for one in live(log, "player.seeded")}
    by_id = {one["id"]: one for one in log}
    again = any(current(by_id[one]["data"]["player"]) == person for one in seeds if one not in alive)
    counted = any(person in played.told for played in found.counted())
    return {"seed-late"} if counted and not again else set()


def merge_faults(log: Log, player: str, new_player: str) -> set[str]:
    """Whether a rename would give a person two different beginnings on a ladder."""
    current = identities(log)
    for name in RULESETS:
        ladder = StateLadder(log, name, None, None)
        left, right = (ladder.seeds.get(current(one)) for one in (player, new_player))
        if left and right and (left["state"], left.get("games", 0)) != (right["state"], right.get("games", 0)):
            return {"seeds-differ"}
    return set()
