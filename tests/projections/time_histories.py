"""Random histories of games, what is put right, and rules that change: one event at a time, fitted to the log so far.

Times are coarse, so that many are equal, and lie around the ends of months and the dates of versions. Each maker gets
the world of its moment and returns the event that it proposes; most fit what was there before.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from oracle.log import Event, Log, games, identities, live, met, named, voids
from oracle.questions import Question
from oracle.rulesets import versions_of
from oracle.times import end_of, instant, start_of
from oracle.validation import validate

PLAYERS = ["anna", "ben", "cleo", "dora", "Émile", "ζωή"]
# the edges of months and days in Berlin, the night in which clocks change, one instant in two spellings
INSTANTS = [
    "2009-12-31T22:59:59.999999Z", "2010-02-14T12:00:00Z", "2010-02-28T22:59:59.999999Z", "2010-02-28T23:00:00Z",
    "2010-03-05T19:30:00Z", "2010-03-05T20:30:00+01:00", "2010-03-14T22:59:59.999999Z", "2010-03-14T23:00:00Z",
    "2010-03-20T12:00:00Z", "2010-03-27T23:00:00Z", "2010-03-31T21:59:59.999999Z", "2010-03-31T22:00:00Z",
    "2010-04-10T12:00:00+02:00",
]  # fmt: skip
DATES = [
    "2010-01-01", "2010-02-14", "2010-03-01", "2010-03-05", "2010-03-15", "2010-03-15", "2010-03-20", "2010-03-28",
    "2010-04-01", "2010-04-11", "2011-01-01",
]  # fmt: skip
ADJUSTED = ["galactic-points", "catan-elo/basic", "catan-elo/seafarers"]
LADDERS = [
    *ADJUSTED, "galactic-points", "catan-elo/basic", "catan-monthly/7/basic/2010-03", "catan-monthly/7/basic/2010-03",
    "catan-monthly/7/basic/2010-02", "catan-monthly/7/basic/2010-04", "catan-monthly/8/basic/2010-03",
    "catan-monthly/7/seafarers/2010-03", "catan-annual/7/basic/2010", "catan-annual/7/seafarers/2010",
]  # fmt: skip
ENDS = [*INSTANTS, "2010-02-28", "2010-03-14", "2010-03-15", "2010-03-27", "2010-03-31", "2010-04-10", "2012-01-01"]
REASON = "it was wrong"


class World(NamedTuple):
    """Where a history stands: the chance of its next step, and the log so far."""

    chance: Random
    log: Log

    def one_of(self, *values: Any) -> Any:
        return self.chance.choice(values)

    def one_in(self, n: int) -> bool:
        return self.chance.randrange(n) == 0

    @property
    def number(self) -> int:
        return len(self.log) + 1

    def event(self, type_name: str, at: str | None = None, **data: Any) -> Event:
        """An event with an id of its own."""
        at = at or self.one_of(*INSTANTS)
        return {"type": type_name, "id": f"e{self.number}", "occurred_at": at, "data": data}


# -- rulesets


def magnate_params(world: World) -> Event:
    sizes = world.one_of((2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4))
    rows = {str(n): [0, *(world.chance.randint(5, 40) for _ in range(n - 1))] for n in sizes}
    return {
        "contributions": rows, "start": world.one_of(1000, 1000, 1200, 0), "bonus": world.one_of(100, 50, 0),
        "bonus_seconds": world.one_of(600, 300), "dust": world.one_of("burn", "winner"),
        "min_games": world.one_of(0, 0, 2),
    }  # fmt: skip


def elo_params(world: World) -> Event:
    k = world.one_of({"k_per_pair": 8}, {"k_per_pair": 5}, {"k_per_pair": "7.5"}, {"k_total": 24}, {"k_total": "64/3"})
    return {
        **k, "start": world.one_of(1000, 1000, 1500), "scale": world.one_of(400, 200), "rounding": "pair",
        "min_games": world.one_of(0, 0, 2),
    }  # fmt: skip


def month_params(world: World) -> Event:
    rows = {str(n): sorted((world.chance.randint(0, 9) for _ in range(n)), reverse=True) for n in range(2, 6)}
    gold = world.one_of({}, {"gold": [5, 3, 1]}, {"gold": [2, 1, 1, 1, 1], "gold_ties": "pool"})
    return {
        "points": rows, "score": world.one_of("mean", "sum"), "min_games": world.one_of(0, 1, 2),
        "substitution": world.one_of("none", "leaver", "substitute", "both"), **gold,
    }  # fmt: skip


def year_params(world: World) -> Event:
    return {
        "of": "catan-monthly", "months": world.one_of(1, 2, 4), "missing": world.one_of(150, 3),
        "cap_at_missing": world.one_in(2), "account": world.one_of("premium", "premium", None),
        "any_account": world.one_of([], ["basic"]),
    }  # fmt: skip


PARAMS: dict[str, tuple[str, list[str], Callable[[World], Event]]] = {
    "galactic-points": ("contribution-pool/1", [], magnate_params),
    "catan-elo": ("pairwise-elo/1", ["group"], elo_params),
    "catan-monthly": ("catan-points/1", ["city", "group", "month"], month_params),
    "catan-annual": ("annual-places/1", ["city", "group", "year"], year_params),
}


def scope(world: World, ruleset_id: str) -> Event:
    """Which games; versions of one ruleset may differ in that, too."""
    found: Event = {"game": ["galactic-magnate" if ruleset_id == "galactic-points" else "catan"]}
    if ruleset_id == "galactic-points" and world.one_in(4):
        found["game"] = ["king-me", "galactic-magnate"]
    if ruleset_id == "catan-elo":
        found["exclude_accounts"] = world.one_of([], ["free"])
        found["exclude_status"] = world.one_of([], ["abandoned", "substitute"])
    if ruleset_id in ("catan-elo", "catan-monthly"):
        found["exclude_group"] = world.one_of([], [], ["seafarers"])
    return found if ruleset_id == "catan-annual" or world.one_in(2) else found | {"players_min": world.one_of(2, 2, 3)}


def version(world: World, ruleset_id: str, name: str, since: str | None) -> Event:
    rule, by, params = PARAMS[ruleset_id]
    return {
        "id": ruleset_id, "version": name, "rule": rule, "scope": scope(world, ruleset_id), "partition": {"by": by},
        "params": params(world), **({"effective_from": since} if since else {}),
    }  # fmt: skip


def base_log(seed: int) -> list[Event]:
    """The rulesets that a history begins with; games of catan before the middle of February are on no Elo ladder."""
    log: list[Event] = []
    for ruleset_id, since in (
        ("galactic-points", "1900-01-01"), ("catan-elo", "2010-02-14"), ("catan-monthly", "1900-01-01"),
        ("catan-monthly", "2010-03-01"), ("catan-annual", "1900-01-01"),
    ):  # fmt: skip
        world = World(Random(f"{seed} {len(log)}"), log)
        data = version(world, ruleset_id, f"base-{since}", since)
        log.append(world.event("ruleset.published", "2010-01-01T00:00:00Z", **data) | {"position": world.number})
    return log


def publish(world: World, ruleset_id: str | None = None, name: str | None = None) -> Event:
    """A version from the past or the future, often from the very day of another, or under the name of one withdrawn;
    now and then one that is never in force.
    """
    ruleset_id = ruleset_id or world.one_of(*PARAMS, "galactic-points", "catan-elo", "catan-monthly", "catan-monthly")
    there = versions_of(world.log, ruleset_id)
    dates = [v.data["effective_from"] for v in there if v.since]
    since = world.one_of(*dates) if dates and world.one_in(3) else world.one_of(*DATES)
    published = [e["data"] for e in world.log if e["type"] == "ruleset.published" and e["data"]["id"] == ruleset_id]
    gone = [data["version"] for data in published if data["version"] not in [v.data["version"] for v in there]]
    name = name or (world.one_of(*gone) if gone and not world.one_in(4) else f"v{world.number}")
    if ruleset_id == "catan-monthly" and world.one_in(12):
        since = None
    return world.event("ruleset.published", **version(world, ruleset_id, name, since))


# -- games


def game_data(world: World, game_id: str) -> Event:
    people = identities(world.log)
    ids = [*PLAYERS, *sorted(name for name in set().union(*map(named, world.log)) if name.startswith("new"))]
    one_each = {people(player): player for player in world.chance.sample(ids, len(ids))}
    seated = list(one_each.values())[: world.chance.randint(2, 5)]
    strength = [world.chance.randint(1, len(seated)) for _ in seated]
    placed = [
        {"player": player, "place": 1 + sum(other < mine for other in strength)}
        for player, mine in zip(seated, strength, strict=True)
    ]
    unrated = world.one_of({"rated": False}, {"aborted": True}) if world.one_in(20) else {}
    if world.one_in(2):
        for participant in placed:
            participant |= {"seconds_played": seconds} if (seconds := world.one_of(None, 300, 600, 601)) else {}
        slug = "king-me" if world.one_in(8) else "galactic-magnate"
        return {"game_id": game_id, "game": slug, "participants": placed, **unrated}
    others = [player for player in one_each.values() if player not in seated]
    if others and world.one_in(4):
        placed[-1]["status"] = "abandoned"
        placed.append({"player": others[0], "place": placed[-1]["place"], "status": "substitute",
                       "replaces": placed[-1]["player"]})  # fmt: skip
    labels = {"city": world.one_of("7", "7", "7", "8"), "group": world.one_of("basic", "basic", "basic", "seafarers")}
    return {"game_id": game_id, "game": "catan", **labels, "participants": placed, **unrated}


def record(world: World) -> Event:
    return world.event("game.recorded", **game_data(world, f"g{world.number}"))


def record_in_march(world: World) -> Event:
    """A game of the month in which most versions change."""
    return record(world) | {"occurred_at": world.one_of(*INSTANTS[4:9])}


def record_late(world: World) -> Event:
    """A game from before another one that is recorded, if there is room."""
    last = max((game.at for game in games(world.log).values()), default=None)
    before = [at for at in INSTANTS if last and instant(at) < last]
    return record(world) | ({"occurred_at": world.one_of(*before)} if before else {})


def of_game(world: World, type_name: str, voided: bool) -> Event:
    """Mostly about a game that is voided or not, as asked for; often one that was corrected."""
    found = games(world.log)
    fitting = [name for name, game in found.items() if game.voided == voided]
    changed = [e["data"]["game_id"] for e in world.log if e["type"] == "game.corrected"]
    corrected = [name for name in fitting if name in changed]
    others = [name for name in found if name not in fitting] or ["g-unknown"]
    some = others if world.one_in(20) else corrected if corrected and world.one_in(2) else fitting
    return world.event(type_name, game_id=world.one_of(*some), reason=REASON) if some else record(world)


def void(world: World) -> Event:
    return of_game(world, "game.voided", voided=False)


def reinstate(world: World) -> Event:
    return of_game(world, "game.reinstated", voided=True)


def correct(world: World) -> Event:
    """Another result, date, ladder or game, one or several at a time."""
    event = of_game(world, "game.corrected", voided=False)
    old = games(world.log).get(event["data"]["game_id"])
    if old is None or event["type"] == "game.recorded":
        return record(world)
    changed = game_data(world, event["data"]["game_id"]) if world.one_in(3) else dict(old.data)
    if changed["game"] == "catan" and world.one_in(2):
        changed |= {"group": world.one_of("basic", "seafarers"), "city": world.one_of("7", "8")}
    if world.one_in(2):
        changed["participants"] = [dict(participant) for participant in changed["participants"]]
        one, other = changed["participants"][:2]
        if not any("replaces" in participant for participant in changed["participants"]):
            one["place"], other["place"] = other["place"], one["place"]
    if world.one_in(2):
        changed["occurred_at"] = world.one_of(*INSTANTS)
    event["data"]["game"] = changed
    return event


# -- people, points, withdrawing


def rename(world: World) -> Event:
    """Two people who never met become one, mostly such that both have games; or somebody gets a new id."""
    current, recorded = identities(world.log), sorted(set().union(*map(named, world.log)))
    mine = [player for player in recorded if current(player) == player]
    pairs = [(one, two) for one in mine for two in recorded if one != current(two)]
    pairs = [(one, two) for one, two in pairs if not met(world.log, one, current(two))]
    if pairs and not world.one_in(4):
        one, two = world.one_of(*pairs)
    elif world.one_in(6):
        one, two = world.one_of(*PLAYERS), world.one_of(*PLAYERS)
    else:
        one, two = world.one_of(*(mine or PLAYERS)), f"new {world.number}"
    return world.event("player.renamed", player=one, new_player=two)


def set_account(world: World) -> Event:
    kind = world.one_of("free", "free", "premium")
    return world.event("player.account_changed", player=world.one_of(*PLAYERS), account=kind)


def adjust(world: World) -> Event:
    ladder, points = world.one_of(*ADJUSTED), world.one_of("200", "-55", "+7", "-1500", "12", "0.5")
    return world.event("points.adjusted", ladder=ladder, player=world.one_of(*PLAYERS), points=points, reason=REASON)


def take_back(world: World) -> Event:
    """An adjustment, account, rename or list; often a void of anything, so that it stands again."""
    types = world.one_of(("points.adjusted",), ("player.renamed", "player.account_changed"), ("list.published",))
    some = [event["id"] for event in live(world.log, *types)] or [
        event["id"] for event in live(world.log, "points.adjusted", "player.renamed", "player.account_changed")
    ]
    undone = [those[-1] for those in voids(world.log).values()]
    some = undone if undone and world.one_in(3) else some
    return voiding(world, some)


def take_back_version(world: World) -> Event:
    """A version of which there are others; or the void of one, so that it stands again."""
    published = live(world.log, "ruleset.published")
    undone = [those[-1] for root, those in voids(world.log).items() if root in versions_recorded(world.log)]
    some = undone if undone and world.one_in(3) else [event["id"] for event in published]
    return voiding(world, some)


def voiding(world: World, ids: list[str]) -> Event:
    return world.event("event.voided", id=world.one_of(*ids), reason=REASON) if ids else record(world)


def versions_recorded(log: Log) -> set[str]:
    return {event["id"] for event in log if event["type"] == "ruleset.published"}


def wrong(world: World) -> Event:
    """What is mostly refused: something is needed, in use, unknown or done already."""
    published = live(world.log, "ruleset.published")
    needed = [
        event["id"] for event in published
        if "still-needed" in refusals(world.log, voiding(world, [event["id"]]))
    ]  # fmt: skip
    done = [root for root, those in voids(world.log).items() if len(those) % 2]
    used = world.one_of(*published)["data"] if published else {}
    people = sorted(set().union(*map(named, world.log))) or PLAYERS
    ways: list[Callable[[], Event]] = [
        *[lambda: voiding(world, needed)] * 3,
        lambda: voiding(world, done),
        lambda: voiding(world, [e["id"] for e in world.log if e["type"] != "list.rows"] + ["e-unknown"]),
        lambda: publish(world, name=used.get("version"), ruleset_id=used.get("id")),
        lambda: void(world),
        lambda: world.event("game.voided", game_id="g-unknown", reason=REASON),
        lambda: world.event("player.renamed", player=world.one_of(*people), new_player=world.one_of(*people)),
        lambda: adjust(world) | {"id": world.one_of(*world.log)["id"]},
    ]
    return world.chance.choice(ways)()


MAKERS: dict[str, Callable[[World], Event]] = {
    "record": record, "record late": record_late, "record in march": record_in_march, "correct": correct,
    "void": void, "reinstate": reinstate, "rename": rename, "account": set_account, "adjust": adjust,
    "withdraw": take_back, "withdraw a version": take_back_version, "publish": publish, "wrong": wrong,
}  # fmt: skip
WEIGHTS = {
    "record": 30, "record late": 12, "correct": 14, "void": 5, "reinstate": 5, "rename": 6, "account": 4, "adjust": 7,
    "withdraw": 10, "withdraw a version": 2, "publish": 6,
}  # fmt: skip


def proposed(world: World, kind: str) -> Event:
    """An event of a kind; of several tries the first that is taken, unless a wrong one is wanted."""
    event = MAKERS[kind](world)
    for _ in range(0 if kind == "wrong" else 6):
        if not refusals(world.log, event):
            break
        event = MAKERS[kind](world)
    return event


def refusals(log: Log, event: Event) -> frozenset[str]:
    """Every code that an event may be refused with; games that no ladder can count are taken."""
    return validate(log, event, allow_uncounted=True).codes


def taken(log: Log, event: Event) -> Log:
    """The log with one more event."""
    return [*log, {**event, "position": len(log) + 1}]


def history(seed: int, count: int) -> Log:
    """A log of so many events behind the rulesets, all of which are taken."""
    log, chance = base_log(seed), Random(seed)
    while len(log) < count:
        kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        event = proposed(World(chance, log), kind)
        if not refusals(log, event) and not already(log, event):
            log = taken(log, event)
    return log


def already(log: Log, event: Event) -> bool:
    """Whether an event is there as it stands, or a version under whatever id: that changes nothing."""
    return validate(log, event).existing


def question(world: World, known_at: int) -> Question:
    """A random ladder at random coordinates, known at a position."""
    ladder = world.one_of(*LADDERS)
    known = [event for event in world.log if event["position"] <= known_at]
    names = [one.name for one in versions_of(known, ladder.split("/")[0])]
    rules = world.one_of(*names) if names and world.one_in(3) else None
    return Question(ladder, known_at, world.one_of(*ENDS) if world.one_in(2) else None, rules)


# -- what has occurred


def period_of(ladder: str) -> str | None:
    """The day that follows the month or year of a ladder, if it has one."""
    until = {"2010": "2011-01-01", "2010-02": "2010-03-01", "2010-03": "2010-04-01", "2010-04": "2010-05-01"}
    return until.get(ladder.rsplit("/", 1)[-1])


def over(ladder: str, as_of: str | None) -> bool:
    """Whether the period of a ladder, all of which are in the past, was over then."""
    period = period_of(ladder)
    return as_of is None or period is None or end_of(as_of) >= start_of(period)
