"""Random histories: games, corrections and changing rules, one event at a time, each fitted to the log so far.

Times are coarse, so that many are equal; they lie around the ends of months and the dates of versions. Each maker gets
the current world and returns the event that it proposes; most proposals fit the log.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from oracle.log import Event, Log, build_id_lookup, derive_games, group_voids, have_met, list_named_players, select_live
from oracle.questions import Question
from oracle.rulesets import list_versions
from oracle.times import find_first_instant, find_last_instant, parse_instant
from oracle.validation import validate

PLAYERS = ["anna", "ben", "cleo", "dora", "Émile", "ζωή"]
# the ends of months and days in Berlin, the night when clocks change, and one instant in two spellings
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
    *ADJUSTED,
    "galactic-points",
    "catan-elo/basic",
    "catan-monthly/7/basic/2010-03",
    "catan-monthly/7/basic/2010-03",
    "catan-monthly/7/basic/2010-02",
    "catan-monthly/7/basic/2010-04",
    "catan-monthly/8/basic/2010-03",
    "catan-monthly/7/seafarers/2010-03",
    "catan-annual/7/basic/2010",
    "catan-annual/7/seafarers/2010",
]
ENDS = [*INSTANTS, "2010-02-28", "2010-03-14", "2010-03-15", "2010-03-27", "2010-03-31", "2010-04-10", "2012-01-01"]
REASON = "it was wrong"


class World(NamedTuple):
    """The state of a history: the random source of its next step, and the log so far."""

    chance: Random
    log: Log

    def choose(self, *values: Any) -> Any:
        """Return one of these values."""
        return self.chance.choice(values)

    def one_in(self, n: int) -> bool:
        """Return True in one of `n` cases."""
        return self.chance.randrange(n) == 0

    @property
    def number(self) -> int:
        """Return the position of the next event."""
        return len(self.log) + 1

    def build_event(self, type_name: str, at: str | None = None, **data: Any) -> Event:
        """Return an event with an id of its own."""
        at = at or self.choose(*INSTANTS)
        return {"type": type_name, "id": f"e{self.number}", "occurred_at": at, "data": data}


# -- rulesets


def draw_magnate_params(world: World) -> Event:
    """Draw the parameters of a contribution pool."""
    sizes = world.choose((2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4))
    rows = {str(n): [0, *(world.chance.randint(5, 40) for _ in range(n - 1))] for n in sizes}
    return {
        "contributions": rows,
        "start": world.choose(1000, 1000, 1200, 0),
        "bonus": world.choose(100, 50, 0),
        "bonus_seconds": world.choose(600, 300),
        "dust": world.choose("burn", "winner"),
        "min_games": world.choose(0, 0, 2),
    }


def draw_elo_params(world: World) -> Event:
    """Draw the parameters of a pairwise Elo."""
    k = world.choose({"k_per_pair": 8}, {"k_per_pair": 5}, {"k_per_pair": "7.5"}, {"k_total": 24}, {"k_total": "64/3"})
    return {
        **k,
        "start": world.choose(1000, 1000, 1500),
        "scale": world.choose(400, 200),
        "rounding": "pair",
        "min_games": world.choose(0, 0, 2),
    }


def draw_month_params(world: World) -> Event:
    """Draw the parameters of a monthly list."""
    rows = {str(n): sorted((world.chance.randint(0, 9) for _ in range(n)), reverse=True) for n in range(2, 6)}
    gold = world.choose({}, {"gold": [5, 3, 1]}, {"gold": [2, 1, 1, 1, 1], "gold_ties": "pool"})
    return {
        "points": rows,
        "score": world.choose("mean", "sum"),
        "min_games": world.choose(0, 1, 2),
        "substitution": world.choose("none", "leaver", "substitute", "both"),
        **gold,
    }


def draw_year_params(world: World) -> Event:
    """Draw the parameters of an annual list."""
    return {
        "of": "catan-monthly",
        "months": world.choose(1, 2, 4),
        "missing": world.choose(150, 3),
        "cap_at_missing": world.one_in(2),
        "account": world.choose("premium", "premium", None),
        "any_account": world.choose([], ["basic"]),
    }


PARAMS: dict[str, tuple[str, list[str], Callable[[World], Event]]] = {
    "galactic-points": ("contribution-pool/1", [], draw_magnate_params),
    "catan-elo": ("pairwise-elo/1", ["group"], draw_elo_params),
    "catan-monthly": ("catan-points/1", ["city", "group", "month"], draw_month_params),
    "catan-annual": ("annual-places/1", ["city", "group", "year"], draw_year_params),
}


def draw_scope(world: World, ruleset_id: str) -> Event:
    """Draw the games that a version scores; versions of one ruleset may differ in them, too."""
    scope: Event = {"game": ["galactic-magnate" if ruleset_id == "galactic-points" else "catan"]}
    if ruleset_id == "galactic-points" and world.one_in(4):
        scope["game"] = ["king-me", "galactic-magnate"]
    if ruleset_id == "catan-elo":
        scope["exclude_accounts"] = world.choose([], ["free"])
        scope["exclude_status"] = world.choose([], ["abandoned", "substitute"])
    if ruleset_id in ("catan-elo", "catan-monthly"):
        scope["exclude_group"] = world.choose([], [], ["seafarers"])
    return scope if ruleset_id == "catan-annual" or world.one_in(2) else scope | {"players_min": world.choose(2, 2, 3)}


def draw_version(world: World, ruleset_id: str, name: str, since: str | None) -> Event:
    """Draw a version of a ruleset."""
    rule, by, params = PARAMS[ruleset_id]
    return {
        "id": ruleset_id,
        "version": name,
        "rule": rule,
        "scope": draw_scope(world, ruleset_id),
        "partition": {"by": by},
        "params": params(world),
        **({"effective_from": since} if since else {}),
    }


def build_base_log(seed: int) -> list[Event]:
    """Return the rulesets with which a history begins; no Elo ladder counts games of catan before mid-February."""
    log: list[Event] = []
    for ruleset_id, since in (
        ("galactic-points", "1900-01-01"),
        ("catan-elo", "2010-02-14"),
        ("catan-monthly", "1900-01-01"),
        ("catan-monthly", "2010-03-01"),
        ("catan-annual", "1900-01-01"),
    ):
        world = World(Random(f"{seed} {len(log)}"), log)
        data = draw_version(world, ruleset_id, f"base-{since}", since)
        log.append(world.build_event("ruleset.published", "2010-01-01T00:00:00Z", **data) | {"position": world.number})
    return log


def publish(world: World, ruleset_id: str | None = None, name: str | None = None) -> Event:
    """Publish a version from the past or the future; it often has the date of another one, or the name of a withdrawn
    one. Now and then it never takes effect.
    """
    ruleset_id = ruleset_id or world.choose(*PARAMS, "galactic-points", "catan-elo", "catan-monthly", "catan-monthly")
    versions = list_versions(world.log, ruleset_id)
    dates = [v.data["effective_from"] for v in versions if v.since]
    since = world.choose(*dates) if dates and world.one_in(3) else world.choose(*DATES)
    published = [e["data"] for e in world.log if e["type"] == "ruleset.published" and e["data"]["id"] == ruleset_id]
    withdrawn_names = [
        data["version"] for data in published if data["version"] not in [v.data["version"] for v in versions]
    ]
    name = name or (world.choose(*withdrawn_names) if withdrawn_names and not world.one_in(4) else f"v{world.number}")
    if ruleset_id == "catan-monthly" and world.one_in(12):
        since = None
    return world.build_event("ruleset.published", **draw_version(world, ruleset_id, name, since))


# -- games


def draw_game(world: World, game_id: str) -> Event:
    """Draw the data of a game, of catan or of one of the magnate games."""
    people = build_id_lookup(world.log)
    ids = [
        *PLAYERS,
        *sorted(name for name in set().union(*map(list_named_players, world.log)) if name.startswith("new")),
    ]
    id_by_person = {people(player): player for player in world.chance.sample(ids, len(ids))}
    seated = list(id_by_person.values())[: world.chance.randint(2, 5)]
    strengths = [world.chance.randint(1, len(seated)) for _ in seated]
    placed = [
        {"player": player, "place": 1 + sum(rival < own_strength for rival in strengths)}
        for player, own_strength in zip(seated, strengths, strict=True)
    ]
    unrated = world.choose({"rated": False}, {"aborted": True}) if world.one_in(20) else {}
    if world.one_in(2):
        for participant in placed:
            participant |= {"seconds_played": seconds} if (seconds := world.choose(None, 300, 600, 601)) else {}
        slug = "king-me" if world.one_in(8) else "galactic-magnate"
        return {"game_id": game_id, "game": slug, "participants": placed, **unrated}
    absent = [player for player in id_by_person.values() if player not in seated]
    if absent and world.one_in(4):
        placed[-1]["status"] = "abandoned"
        placed.append(
            {
                "player": absent[0],
                "place": placed[-1]["place"],
                "status": "substitute",
                "replaces": placed[-1]["player"],
            }
        )
    labels = {"city": world.choose("7", "7", "7", "8"), "group": world.choose("basic", "basic", "basic", "seafarers")}
    return {"game_id": game_id, "game": "catan", **labels, "participants": placed, **unrated}


def record(world: World) -> Event:
    """Record a game."""
    return world.build_event("game.recorded", **draw_game(world, f"g{world.number}"))


def record_in_march(world: World) -> Event:
    """Record a game of March, when most versions change."""
    return record(world) | {"occurred_at": world.choose(*INSTANTS[4:9])}


def record_late(world: World) -> Event:
    """Record a game from before the latest one, if there is an earlier instant."""
    last = max((game.at for game in derive_games(world.log).values()), default=None)
    before = [at for at in INSTANTS if last and parse_instant(at) < last]
    return record(world) | ({"occurred_at": world.choose(*before)} if before else {})


def build_game_command(world: World, type_name: str, voided: bool) -> Event:
    """Return an event about a game: in most cases a voided one if `voided`, else a live one; often a corrected one."""
    known_games = derive_games(world.log)
    fitting = [name for name, game in known_games.items() if game.voided == voided]
    corrected_ids = [e["data"]["game_id"] for e in world.log if e["type"] == "game.corrected"]
    corrected = [name for name in fitting if name in corrected_ids]
    other_ids = [name for name in known_games if name not in fitting] or ["g-unknown"]
    candidates = other_ids if world.one_in(20) else corrected if corrected and world.one_in(2) else fitting
    return (
        world.build_event(type_name, game_id=world.choose(*candidates), reason=REASON) if candidates else record(world)
    )


def void(world: World) -> Event:
    """Void a game."""
    return build_game_command(world, "game.voided", voided=False)


def reinstate(world: World) -> Event:
    """Reinstate a game."""
    return build_game_command(world, "game.reinstated", voided=True)


def correct(world: World) -> Event:
    """Correct the result, date, ladder or game: one or several of them at a time."""
    event = build_game_command(world, "game.corrected", voided=False)
    old = derive_games(world.log).get(event["data"]["game_id"])
    if old is None or event["type"] == "game.recorded":
        return record(world)
    changed = draw_game(world, event["data"]["game_id"]) if world.one_in(3) else dict(old.data)
    if changed["game"] == "catan" and world.one_in(2):
        changed |= {"group": world.choose("basic", "seafarers"), "city": world.choose("7", "8")}
    if world.one_in(2):
        changed["participants"] = [dict(participant) for participant in changed["participants"]]
        first, second = changed["participants"][:2]
        if not any("replaces" in participant for participant in changed["participants"]):
            first["place"], second["place"] = second["place"], first["place"]
    if world.one_in(2):
        changed["occurred_at"] = world.choose(*INSTANTS)
    event["data"]["game"] = changed
    return event


# -- players, points, voids


def rename(world: World) -> Event:
    """Merge two players who never met, mostly two with games; or give a player a new id."""
    current, recorded = build_id_lookup(world.log), sorted(set().union(*map(list_named_players, world.log)))
    current_ids = [name for name in recorded if current(name) == name]
    pairs = [(player, new_player) for player in current_ids for new_player in recorded if player != current(new_player)]
    pairs = [
        (player, new_player) for player, new_player in pairs if not have_met(world.log, player, current(new_player))
    ]
    if pairs and not world.one_in(4):
        player, new_player = world.choose(*pairs)
    elif world.one_in(6):
        player, new_player = world.choose(*PLAYERS), world.choose(*PLAYERS)
    else:
        player, new_player = world.choose(*(current_ids or PLAYERS)), f"new {world.number}"
    return world.build_event("player.renamed", player=player, new_player=new_player)


def set_account(world: World) -> Event:
    """Change the account of a player."""
    kind = world.choose("free", "free", "premium")
    return world.build_event("player.account_changed", player=world.choose(*PLAYERS), account=kind)


def adjust(world: World) -> Event:
    """Adjust the points of a player."""
    ladder, points = world.choose(*ADJUSTED), world.choose("200", "-55", "+7", "-1500", "12", "0.5")
    return world.build_event(
        "points.adjusted", ladder=ladder, player=world.choose(*PLAYERS), points=points, reason=REASON
    )


def withdraw(world: World) -> Event:
    """Void an adjustment, account, rename or list; in one of three cases void a void, which restores its event."""
    types = world.choose(("points.adjusted",), ("player.renamed", "player.account_changed"), ("list.published",))
    event_ids = [event["id"] for event in select_live(world.log, *types)] or [
        event["id"] for event in select_live(world.log, "points.adjusted", "player.renamed", "player.account_changed")
    ]
    latest_voids = [void_ids[-1] for void_ids in group_voids(world.log).values()]
    event_ids = latest_voids if latest_voids and world.one_in(3) else event_ids
    return build_void(world, event_ids)


def withdraw_version(world: World) -> Event:
    """Void a version; in one of three cases void the void of one, which restores the version."""
    published = select_live(world.log, "ruleset.published")
    latest_voids = [
        void_ids[-1] for root, void_ids in group_voids(world.log).items() if root in list_version_ids(world.log)
    ]
    event_ids = latest_voids if latest_voids and world.one_in(3) else [event["id"] for event in published]
    return build_void(world, event_ids)


def build_void(world: World, ids: list[str]) -> Event:
    """Return the void of one of these events, or a game if there are none."""
    return world.build_event("event.voided", id=world.choose(*ids), reason=REASON) if ids else record(world)


def list_version_ids(log: Log) -> set[str]:
    """Return the ids of all events that published versions."""
    return {event["id"] for event in log if event["type"] == "ruleset.published"}


def propose_invalid(world: World) -> Event:
    """Propose an event that is mostly rejected, because its subject is needed, in use, unknown or voided already."""
    published = select_live(world.log, "ruleset.published")
    needed = [
        event["id"]
        for event in published
        if "still-needed" in list_refusals(world.log, build_void(world, [event["id"]]))
    ]
    voided_ids = [root for root, void_ids in group_voids(world.log).items() if len(void_ids) % 2]
    used_ruleset = world.choose(*published)["data"] if published else {}
    player_ids = sorted(set().union(*map(list_named_players, world.log))) or PLAYERS
    proposals: list[Callable[[], Event]] = [
        *[lambda: build_void(world, needed)] * 3,
        lambda: build_void(world, voided_ids),
        lambda: build_void(world, [e["id"] for e in world.log if e["type"] != "list.rows"] + ["e-unknown"]),
        lambda: publish(world, name=used_ruleset.get("version"), ruleset_id=used_ruleset.get("id")),
        lambda: void(world),
        lambda: world.build_event("game.voided", game_id="g-unknown", reason=REASON),
        lambda: world.build_event(
            "player.renamed", player=world.choose(*player_ids), new_player=world.choose(*player_ids)
        ),
        lambda: adjust(world) | {"id": world.choose(*world.log)["id"]},
    ]
    return world.chance.choice(proposals)()


MAKERS: dict[str, Callable[[World], Event]] = {
    "record": record, "record late": record_late, "record in march": record_in_march, "correct": correct,
    "void": void, "reinstate": reinstate, "rename": rename, "account": set_account, "adjust": adjust,
    "withdraw": withdraw, "withdraw a version": withdraw_version, "publish": publish, "wrong": propose_invalid,
}  # fmt: skip
WEIGHTS = {
    "record": 30, "record late": 12, "correct": 14, "void": 5, "reinstate": 5, "rename": 6, "account": 4, "adjust": 7,
    "withdraw": 10, "withdraw a version": 2, "publish": 6,
}  # fmt: skip


def propose(world: World, kind: str) -> Event:
    """Return the first of seven proposals of a kind that the oracle accepts, else the last; for "wrong", just one."""
    event = MAKERS[kind](world)
    for _ in range(0 if kind == "wrong" else 6):
        if not list_refusals(world.log, event):
            break
        event = MAKERS[kind](world)
    return event


def list_refusals(log: Log, event: Event) -> frozenset[str]:
    """Return every code with which an event may be rejected; games that no ladder counts are accepted."""
    return validate(log, event, allow_uncounted=True).codes


def append_to_log(log: Log, event: Event) -> Log:
    """Return the log with one more event."""
    return [*log, {**event, "position": len(log) + 1}]


def draw_history(seed: int, count: int) -> Log:
    """Draw a log of `count` accepted events, beginning with the rulesets."""
    log, chance = build_base_log(seed), Random(seed)
    while len(log) < count:
        kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        event = propose(World(chance, log), kind)
        if not list_refusals(log, event) and not is_existing(log, event):
            log = append_to_log(log, event)
    return log


def is_existing(log: Log, event: Event) -> bool:
    """Tell whether the log already has this event, or this version under any id, so that it changes nothing."""
    return validate(log, event).existing


def draw_question(world: World, known_at: int) -> Question:
    """Draw a ladder and the coordinates of a question, known at a position."""
    ladder = world.choose(*LADDERS)
    known = [event for event in world.log if event["position"] <= known_at]
    names = [version.name for version in list_versions(known, ladder.split("/")[0])]
    rules = world.choose(*names) if names and world.one_in(3) else None
    return Question(ladder, known_at, world.choose(*ENDS) if world.one_in(2) else None, rules)


# -- periods


def find_period_end(ladder: str) -> str | None:
    """Return the day after the month or year of a ladder, or None for a ladder without a period."""
    until = {"2010": "2011-01-01", "2010-02": "2010-03-01", "2010-03": "2010-04-01", "2010-04": "2010-05-01"}
    return until.get(ladder.rsplit("/", 1)[-1])


def is_over(ladder: str, as_of: str | None) -> bool:
    """Tell whether the period of a ladder was over at `as_of`; without `as_of`, it always was."""
    period = find_period_end(ladder)
    return as_of is None or period is None or find_last_instant(as_of) >= find_first_instant(period)
