"""Compute ladders of a rule with state naively: seasons, seeds, rating periods, and changes of version.

The rule exists only for tests, and its sums are whole numbers: `gain` defines it. All rulesets in `RULESETS` count the
same games.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from oracle.log import Event, Game, Log, build_id_lookup, derive_games, select_live
from oracle.rulesets import Version, find_version, list_versions
from oracle.times import IN_THE_END, MICROSECOND, find_first_instant, parse_instant, to_berlin

START = (10_000, 20)  # rating in tenths, and a weight
# by id: the rating period, and the months in which seasons begin, or the label with the season
RULESETS: dict[str, tuple[str, Any]] = {
    "by-game": ("game", [3, 7]),
    "by-label": ("game", "season"),
    "by-day": ("day", None),
    "by-week": ("week", [3]),
    "by-month": ("month", [3]),
    "by-event": ("event", "season"),
}
State = tuple[int, int]


class Standing(NamedTuple):
    """A player's rating in tenths, number of games on the ladder, and whole state."""

    rating: int
    games: int
    state: State


class Last(NamedTuple):
    """The last game of a player: its day, period and season, and the number of games, including those of a seed."""

    day: int | None = None
    period: int | None = None
    season: Any = None
    count: int = 0


class Before(NamedTuple):
    """The facts about a player's earlier games that a rule can read."""

    games: int
    days: int | None
    is_first: bool


class Played(NamedTuple):
    """A counted game, its participants by current id, and their sides."""

    game: Game
    participants: dict[str, Event]
    sides: dict[str, Any]

    @property
    def day(self) -> int:
        return to_berlin(self.game.at).date().toordinal()

    def compute_gain(self, player: str, weight: int, k: int) -> int:
        """Return a player's change for one game: for each opponent the result, and the home, score and bonus terms."""
        own, total = self.participants[player], 0
        at_home = [self.sides[name] for name, participant in self.participants.items() if participant.get("home")]
        home = 0 if not at_home else 1 if at_home[0] == self.sides[player] else -1
        bonus = {**self.game.data.get("numbers", {}), **own.get("numbers", {})}.get("bonus", 0)
        for name, opponent in self.participants.items():
            if self.sides[name] != self.sides[player]:
                total += k * weight * ((own["place"] < opponent["place"]) - (own["place"] > opponent["place"]))
                total += 3 * home + bonus + (own.get("score") or 0)
        return total


def find_season(by: Any, played: Played) -> Any:
    """Return the season of a game: its label, or the latest starting month."""
    if by == "season" or by is None:
        return by and played.game.data.get("season")
    day = to_berlin(played.game.at).date()
    begun = [month for month in by if month <= day.month]
    return (day.year, max(begun)) if begun else (day.year - 1, max(by))


def find_period_start(period: str, day: datetime) -> datetime:
    """Return the first day of the period of a day."""
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day


def number_period(period: str, at: datetime) -> int:
    """Return the number of the period of an instant; consecutive periods have consecutive numbers."""
    day = find_period_start(period, to_berlin(at))
    if period == "month":
        return day.year * 12 + day.month
    return day.toordinal() // (7 if period == "week" else 1)


def find_period_bounds(period: str, at: datetime) -> tuple[datetime, datetime]:
    """Return the first instants of the period of an instant and of the next period."""
    begin = find_period_start(period, to_berlin(at).replace(hour=0, minute=0, second=0, microsecond=0))
    after = find_period_start(period, begin + timedelta(days={"day": 1, "week": 7, "month": 32}[period]))
    return find_first_instant(begin.date().isoformat()), find_first_instant(after.date().isoformat())


class Group(NamedTuple):
    """Games that are scored together, with their first and last instants and the numbers of their periods."""

    begin: datetime
    end: datetime
    first: int
    last: int
    games: list[Played]


class StateLadder:
    """A ladder at coordinates; `rows` are its standings."""

    def __init__(self, log: Log, name: str, upto: datetime | None, rules: str | None) -> None:
        self.name, self.upto, self.log = name, upto, log
        self.period, self.season_by = RULESETS[name]
        self.current = build_id_lookup(log)
        self.versions = list_versions(log, name, rules)
        self.states: dict[str, State] = {}
        self.games: dict[str, int] = {}
        self.last: dict[str, Last] = {}
        self.cases: list[str] = []
        actions = sorted([*self._list_scorings(), *self._list_adjustments()], key=lambda entry: entry[:2])
        # without `upto`, versions after the last game or adjustment do not take effect
        version_changes = [
            entry for entry in self._list_version_changes() if upto or (actions and entry[:2] < actions[-1][:2])
        ]
        for _, _, act in sorted([*actions, *version_changes], key=lambda entry: entry[:2]):
            act()

    @cached_property
    def rows(self) -> dict[str, Standing]:
        return {name: Standing(state[0], self.games.get(name, 0), state) for name, state in sorted(self.states.items())}

    @cached_property
    def seeds(self) -> dict[str, Event]:
        """The first live seed of each player, by current id."""
        seeds: dict[str, Event] = {}
        for event in select_live(self.log, "player.seeded"):
            if event["data"]["ladder"] == self.name:
                seeds.setdefault(self.current(event["data"]["player"]), event["data"])
        return seeds

    def get_state(self, player: str) -> State:
        """Return a player's state after their last game, or their starting state."""
        if player in self.states:
            return self.states[player]
        seed = self.seeds.get(player)
        if seed is None:
            return START
        self.cases.append("joined by a seed")
        return round(float(seed["state"].get("rating", "1000")) * 10), int(seed["state"].get("weight", START[1]))

    def get_last(self, player: str) -> Last:
        return self.last.get(player) or Last(count=self.seeds.get(player, {}).get("games", 0))

    def list_counted_games(self) -> list[Played]:
        """Return all counted games, including those after `upto`."""
        counted_games = []
        for game in sorted(derive_games(self.log).values(), key=lambda game: (game.at, game.first)):
            if game.may_count and find_version(self.versions, game.at):
                participants = {
                    self.current(participant["player"]): participant for participant in game.data["participants"]
                }
                sides = {name: participant.get("team", name) for name, participant in participants.items()}
                counted_games.append(Played(game, participants, sides))
        return counted_games

    def groups(self) -> list[Group]:
        """Return the closed groups in the order of scoring."""
        closed = [group for group in self.every_group() if self.upto is None or group.end <= self.upto]
        return sorted(closed, key=lambda group: (group.end, group.games[-1].game.first))

    def every_group(self) -> list[Group]:
        """Return all groups, closed or not."""
        games_by_key: dict[Any, list[Played]] = {}
        for played in self.list_counted_games():
            label = played.game.data.get("league") if self.period == "event" else None
            key = label or (
                played.game.first if self.period in ("game", "event") else number_period(self.period, played.game.at)
            )
            games_by_key.setdefault(key, []).append(played)
        groups = []
        for group_games in games_by_key.values():
            begin, end = group_games[0].game.at, group_games[-1].game.at
            first, last = group_games[0].day, group_games[-1].day
            if self.period not in ("game", "event"):
                begin, after = find_period_bounds(self.period, begin)
                end, first = after - MICROSECOND, number_period(self.period, begin)
                last = first
            groups.append(Group(begin, end, first, last, group_games))
        return groups

    # the entries of the replay, each as (time, order among entries of that time, action)

    def _list_scorings(self) -> list[tuple[datetime, tuple[float, float], Callable[[], None]]]:
        return [
            (group.end, (1, group.games[-1].game.first), lambda group=group: self._score(group))  # type: ignore[misc]
            for group in self.groups()
        ]

    def _list_adjustments(self) -> list[tuple[datetime, tuple[float, float], Callable[[], None]]]:
        entries = []
        for event in select_live(self.log, "points.adjusted"):
            at = parse_instant(event["occurred_at"])
            if event["data"]["ladder"] != self.name or (self.upto and at > self.upto):
                continue
            order = (1, event["position"])
            if self.period not in ("game", "event") and self._has_game_in_period(at):
                # an adjustment within a period takes effect at its close
                at, order = find_period_bounds(self.period, at)[1] - MICROSECOND, (2, event["position"])
                if self.upto and at > self.upto:
                    continue
            entries.append((at, order, lambda data=event["data"]: self._adjust(data)))
        return entries  # type: ignore[return-value]

    def _has_game_in_period(self, at: datetime) -> bool:
        """Tell whether there is a counted game in the period of an instant."""
        begin, after = find_period_bounds(self.period, at)
        return any(begin <= played.game.at < after for played in self.list_counted_games())

    def _list_version_changes(self) -> list[tuple[datetime, tuple[float, float], Callable[[], None]]]:
        """Return the changes of the version in force after the first version."""
        starts = sorted({version.since for version in self.versions if version.since})
        entries = []
        for since in starts[1:]:
            at, order = since, (0.0, 0.0)
            if self.period == "event":
                where = self._find_place_among_events(since)
                if where is None:
                    continue
                at, order = where
            elif self.period != "game" and find_period_bounds(self.period, since)[0] != since:
                at = find_period_bounds(self.period, since)[1]
            new = find_version(self.versions, since)
            if new and (self.period == "event" or not (self.upto and at > self.upto)):
                entries.append((at, order, lambda new=new: self._enter(new)))
        return entries  # type: ignore[return-value]

    def _find_place_among_events(self, since: datetime) -> tuple[datetime, tuple[float, float]] | None:
        """Return where a version takes effect if events are the periods: before the first event that it scores."""
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
        rating, weight = self.get_state(player)
        self.states[player] = (rating + round(float(data["points"]) * 10), weight)
        self.cases.append("adjusted")

    def _score(self, group: Group) -> None:
        """Score a game, or all games of a period, from the states before it."""
        scored_by = find_version(self.versions, group.begin) or find_version(self.versions, group.games[0].game.at)
        assert scored_by is not None
        names = sorted({name for played in group.games for name in played.participants})
        after = {}
        for name in names:
            own_games = [played for played in group.games if name in played.participants]
            earlier_games, state = self._prepare(name, group, own_games)
            gained = sum(played.compute_gain(name, state[1], scored_by.params["k"]) for played in own_games)
            gained += earlier_games.games % 7 + (earlier_games.days or 0) % 5 + 2 * earlier_games.is_first
            after[name] = (state[0] + gained, max(10, state[1] - 1))
        self.states |= after
        self._record_last_games(group)

    def _prepare(self, name: str, group: Group, own_games: list[Played]) -> tuple[Before, State]:
        """Return the facts about a player's earlier games, and their state after a new season and the time since."""
        last, (rating, weight) = self.get_last(name), self.get_state(name)
        seasons = [last.season, *(find_season(self.season_by, played) for played in own_games)]
        pairs = [*pairwise(seasons)][last.day is None :]
        if self.season_by and any(earlier != later for earlier, later in pairs):
            rating -= rating // 4
            self.cases.append(f"season on {self.name}")
        elapsed = 0
        if last.day is not None and last.period is not None:
            elapsed = max(0, (own_games[0].day - last.day) if self.period == "game" else group.first - last.period)
        if elapsed:
            self.cases.append(f"aged on {self.name}")
        days = None if last.day is None else max(0, own_games[0].day - last.day)
        is_first = last.day is None or seasons[0] != seasons[1]
        return Before(last.count, days, is_first), (rating, min(40, weight + elapsed))

    def _record_last_games(self, group: Group) -> None:
        for played in group.games:
            for name in played.participants:
                last = self.get_last(name)
                season = find_season(self.season_by, played)
                self.last[name] = Last(played.day, group.last, season, last.count + 1)
                self.games[name] = self.games.get(name, 0) + 1


# -- validation


def find_seed_faults(log: Log, event: Event) -> set[str]:
    """Return every code with which a seed may be refused."""
    ladder, current = event["data"]["ladder"], build_id_lookup(log)
    person = current(event["data"]["player"])
    if not list_versions(log, ladder):
        return {"unknown-ladder"}
    ladder_state = StateLadder(log, ladder, None, None)
    if person in ladder_state.seeds:
        return {"seed-exists"}
    live_ids = {seed["id"] for seed in select_live(log, "player.seeded")}
    withdrawn_seeds = [
        known["data"]
        for known in log
        if known["type"] == "player.seeded" and known["data"]["ladder"] == ladder and known["id"] not in live_ids
    ]
    had_seed = any(current(seed["player"]) == person for seed in withdrawn_seeds)
    has_played = any(person in played.participants for played in ladder_state.list_counted_games())
    return {"seed-late"} if has_played and not had_seed else set()


def find_merge_faults(log: Log, player: str, new_player: str) -> set[str]:
    """Return the code of a rename that would give a person two different seeds on a ladder."""
    current = build_id_lookup(log)
    for name in RULESETS:
        ladder = StateLadder(log, name, None, None)
        left, right = (ladder.seeds.get(current(name)) for name in (player, new_player))
        if left and right and (left["state"], left.get("games", 0)) != (right["state"], right.get("games", 0)):
            return {"seeds-differ"}
    return set()
