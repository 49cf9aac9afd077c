"""Random histories with all that is put right afterwards: games, corrections, voids, renames, accounts, adjustments.

Most steps fit what was there before; some do not, and each comes with what the oracle says of it. Times are coarse, so
that many are equal, and in no order. A history is drawn as a text, each of whose characters is the seed of a step that
fits itself to the log so far: a failing history becomes small by leaving steps out.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st
from oracle.log import Event, Log, games, identities, met, named, places, voids
from oracle.rulesets import ladder_of
from oracle.times import instant, season_bounds
from oracle.validation import Verdict, identity, validate

PLAYERS = ["anna", "ben", "cleo", "dora", "Émile", "ζωή", "张伟", "a b", "Zed", "emil"]
# around the first day of the Catan list and the ends of seasons; the same instant in two spellings
INSTANTS = [
    "2010-03-05T19:30:00Z", "2010-03-05T20:30:00+01:00", "2010-03-05T19:30:00.000001Z", "2010-04-01T12:00:00Z",
    "2010-04-30T21:59:59.999999Z", "2010-04-30T22:00:00Z", "2010-06-15T12:00:00+02:00", "2010-08-31T21:59:59.999999Z",
    "2010-08-31T22:00:00Z", "2010-12-31T22:59:59.999999Z", "2010-12-31T23:00:00Z", "2009-12-31T22:59:59.999999Z",
    "2009-12-31T23:00:00Z", "2009-01-30T22:59:59.999999Z", "2009-01-30T23:00:00Z",
]  # fmt: skip
ONE_SEASON = [*INSTANTS[:5], "2009-12-31T22:59:59.999999Z", "2009-12-31T23:00:00Z"]
SEASONS = ["2010-1", "2010-2", "2010-3", "2009-3", "2009-1", "2011-1"]
GROUPS = ["basic", "cities-knights"]
LADDERS = ["galactic-points", "b5-league/2010-1", "b5-league/2010-2", "catan-elo/basic", "catan-elo/cities-knights"]
NO_LADDERS = ["catan-elo", "galactic-points/2010-1", "b5-league/2010-1/x", "catan-elo/", "no-such-list/basic"]
# what a history is about: its times, and games that it has besides one of each slug
ABOUT = [(INSTANTS, []), (INSTANTS, ["catan"] * 6), (ONE_SEASON, ["babylon5"] * 20)]
STEPS = {
    "game": 48, "correct": 14, "void": 6, "reinstate": 6, "rename": 11, "account": 9, "adjust": 9, "withdraw": 12,
    "again": 4,
}  # fmt: skip


class Step(NamedTuple):
    """An event as it is sent, whether with --allow-uncounted, and what must become of it."""

    event: Event
    allow_uncounted: bool
    verdict: Verdict

    @property
    def event_id(self) -> str:
        return identity(self.event)


class World(NamedTuple):
    """Where a history stands: the chance of its next step, the log so far, the times and games that it is about."""

    chance: Random
    log: Log
    instants: list[str]
    slugs: list[str]

    def one_of(self, *values: Any) -> Any:
        return self.chance.choice(values)

    def one_in(self, n: int) -> bool:
        return self.chance.randrange(n) == 0

    def time(self) -> str:
        return str(self.one_of(*self.instants))


@st.composite
def histories(draw: st.DrawFn, published: Log, steps_max: int, allow_uncounted: bool = True) -> list[Step]:
    """Steps behind the published rulesets; some of them allow games that cannot be counted, if wanted."""
    first, *seeds = map(ord, draw(st.text(min_size=steps_max // 3, max_size=steps_max)))
    times, slugs = Random(first).choice(ABOUT)
    instants = Random(first).sample(times, 2 + first % 6)
    kinds = [kind for kind, weight in STEPS.items() for _ in range(weight)]
    log, found = list(published), []
    for number, seed in enumerate(seeds):
        world = World(Random(f"{first} {seed}"), log, instants, ["galactic-magnate", "babylon5", "catan", *slugs])
        event = MAKERS[world.one_of(*kinds)](world, number)
        allow = allow_uncounted and world.one_in(2)
        verdict = validate(log, event, allow)
        found.append(Step(event, allow, verdict))
        if verdict.taken:
            log.append({**event, "id": identity(event), "position": log[-1]["position"] + 1})
    return found


# -- games


def new_game(world: World, game_id: str, at: str) -> Event:
    slug = world.one_of(*world.slugs)
    game = {"game_id": game_id, **GAMES[slug](world, at)}
    if world.one_in(10):
        game |= world.one_of({"rated": False}, {"aborted": True}, {"rated": True, "aborted": False, "city": None})
    return spoiled(world, game) if world.one_in(8) else game


def seated(world: World, low: int, high: int) -> list[str]:
    """Some players, mostly such that are different people."""
    current = identities(world.log) if not world.one_in(12) else str
    players = [*PLAYERS, *(name for name in sorted(set().union(*map(named, world.log))) if name.startswith("new"))]
    one_each = {current(player): player for player in world.chance.sample(players, len(players))}
    return list(one_each.values())[: world.chance.randint(low, high)]


def galactic(world: World, at: str) -> Event:
    participants = placed(world, seated(world, 2, 6 if world.one_in(10) else 5))
    for participant in participants:
        participant["seconds_played"] = world.one_of(None, 599, 600, 601, 3600)
        if world.one_in(6):
            participant["status"] = world.one_of("removed", "surrendered", "abandoned")
    return {"game": "galactic-magnate", "participants": participants}


def catan(world: World, at: str) -> Event:
    participants = placed(world, seated(world, 2, 6))
    absent = [player for player in PLAYERS if player not in [p["player"] for p in participants]]
    if world.one_in(3):
        leaver = world.one_of(*participants)
        leaver["status"] = world.one_of("abandoned", "abandoned", "surrendered", "removed")
        if absent and world.one_in(2):
            result = {name: leaver[name] for name in ("place", "score") if name in leaver}
            substitute = {"player": world.one_of(*absent), "status": "substitute", "replaces": leaver["player"]}
            participants.append(substitute | result)
            if world.one_in(2):
                for name in result:
                    del leaver[name]
    game = {"game": "catan", "group": world.one_of(*GROUPS, *GROUPS, *GROUPS, None), "participants": participants}
    # with places, the order of scores is that of placed()
    lower_is_better = all("place" not in participant for participant in participants) and world.one_in(3)
    return game | ({"score_order": "low"} if lower_is_better else {})


def placed(world: World, players: list[str]) -> list[Event]:
    """Participants with places, dense or not, with scores, or with both."""
    strength = [world.chance.randint(0, len(players)) for _ in players]
    form = world.one_of("competition", "dense", "scores", "both", "equal scores")
    found = []
    for player, mine in zip(players, strength, strict=True):
        better = [other for other in strength if other < mine]
        place = 1 + len(set(better) if form == "dense" else better)
        score = "9.5" if form == "equal scores" else world.one_of(10 - mine, f"{10 - mine}.0", str(10 - mine))
        found.append({"player": player, **({"place": place} if form != "scores" else {}),
                      **({"score": score} if "score" in form or form == "both" else {})})  # fmt: skip
    return found


def babylon5(world: World, at: str) -> Event:
    participants: list[Event] = [
        {"player": player, "power": world.one_of(0, 1, 2), "influence": world.one_of(0, 1),
         "victory": world.one_of(None, None, None, "standard", "major")}
        for player in seated(world, 3, 7)
    ]  # fmt: skip
    game = {"game": "babylon5", "kind": "b5", "season": season_of(world, at), "participants": participants}
    if world.one_in(3):
        game["within_time"] = True
    place = places(game)
    total = len(participants) - 2 + bool(game.get("within_time"))
    total += any(participant["victory"] == "major" for participant in participants)
    losers = [p for p in participants if place[p["player"]] > 1]
    for number in range(total):
        lucky = world.one_of(*(losers if losers and not number else participants))
        lucky["vp"] = lucky.get("vp", 0) + 1
    return game


def season_of(world: World, at: str) -> str | None:
    """The season that a time is in, or now and then another one or none."""
    if world.one_in(10):
        return world.one_of(*SEASONS, "cup", None)
    bounds = {name: season_bounds(name) for name in SEASONS}
    return next(name for name, (first, end) in bounds.items() if first <= instant(at) < end)


def spoiled(world: World, game: Event) -> Event:
    """The game with something in it that a game, or its ladder, cannot have."""
    participants = [dict(participant) for participant in game["participants"]]
    first, last = participants[0], participants[-1]
    own = {name: last[name] for name in ("place", "score", "power", "influence", "victory") if name in last}
    what = ["player", "few", "agree", "substitute", "seat"]
    b5, placing = ["few", "kept", "kept", "total", "season"], ["gap", "missing", "scores", "twice", "twice"]
    what += b5 if game.get("kind") == "b5" else placing
    match world.one_of(*what):
        case "player":
            last["player"] = first["player"]
        case "few":
            participants = participants[: 2 if game.get("kind") == "b5" else 1]
        case "agree":
            last["status"] = "abandoned"
            other = {name: value + 1 for name, value in own.items() if isinstance(value, int)}
            participants.append({"player": "somebody", "status": "substitute", "replaces": last["player"], **other})
        case "substitute":
            last |= {"status": "substitute", "replaces": first["player"]}
        case "seat":
            last["status"] = "removed"
            participants.append({"player": "somebody", "status": "substitute", "replaces": last["player"], **own})
        case "kept":
            rank, given = places(game), sum(participant.pop("vp", 0) for participant in participants)
            next(p for p in participants if rank[p["player"]] == 1)["vp"] = given
        case "total":
            last["vp"] = last.get("vp", 0) + 1
        case "season":
            game = game | {"season": "2007-2"}
        case "gap" if "place" in last:
            last["place"] += 1
        case "missing" | "gap":
            last |= {name: None for name in ("place", "score") if name in last}
        case "scores":
            for participant in participants:
                participant |= {"score": participant["place"]} if "place" in participant else {}
        case _:
            last["status"] = "abandoned"
            for player in ("somebody", "somebody else"):
                participants.append({"player": player, "status": "substitute", "replaces": last["player"], **own})
    return game | {"participants": participants}


GAMES: dict[str, Callable[[World, str], Event]] = {"galactic-magnate": galactic, "babylon5": babylon5, "catan": catan}


# -- steps


def event_of(world: World, number: int, type_name: str, data: Event, at: str | None = None) -> Event:
    """An event, with an id of its own or without."""
    event = {"type": type_name, "occurred_at": at or world.time(), "data": data}
    return event if world.one_in(6) else {"id": f"e{number}", **event}


def record(world: World, number: int) -> Event:
    at = world.time()
    event = {"type": "game.recorded", "occurred_at": at, "data": new_game(world, f"g{number}", at)}
    return {"id": f"e{number}", **event} if world.one_in(6) else event


def a_game(world: World, voided: bool) -> str:
    """The id of a game, mostly of one that is voided or not, as asked for; now and then of none."""
    found = games(world.log)
    fitting = [name for name, game in found.items() if game.voided == voided]
    changed = [event["data"]["game_id"] for event in world.log if event["type"] == "game.corrected"]
    again = [name for name in fitting if name in changed]
    if again and world.one_in(3):
        return world.one_of(*again)
    others = [name for name in found if name not in fitting]
    return world.one_of(*(fitting if fitting and not world.one_in(5) else [*others, "g-unknown"]))


def correct(world: World, number: int) -> Event:
    """Another result, date, group or game, one or several at a time; or the same once more."""
    name = a_game(world, voided=False)
    old = games(world.log).get(name)
    moved = world.time() if world.one_in(3) else None
    at = moved or (old.at.isoformat() if old else world.time())
    if old is None or world.one_in(2):
        game = new_game(world, name, at)
    else:
        game = dict(old.data)
        if game["game"] == "catan" and world.one_in(2):
            game["group"] = world.one_of(*GROUPS)
        if game["game"] == "babylon5" and (moved or world.one_in(2)):
            game["season"] = season_of(world, at)
        if world.one_in(6):
            game["rated"] = world.one_in(2)
    game = game | ({"game_id": "g-other"} if world.one_in(30) else {})
    data = {"game_id": name, "reason": f"reason {number}", "game": game | ({"occurred_at": moved} if moved else {})}
    return event_of(world, number, "game.corrected", data)


def void(world: World, number: int) -> Event:
    data = {"game_id": a_game(world, voided=False), "reason": f"reason {number}"}
    return event_of(world, number, "game.voided", data)


def reinstate(world: World, number: int) -> Event:
    data = {"game_id": a_game(world, voided=True), "reason": f"reason {number}"}
    return event_of(world, number, "game.reinstated", data)


def rename(world: World, number: int) -> Event:
    """Mostly of two people who never met; the second may have other ids already, or no games."""
    current, recorded = identities(world.log), set().union(*map(named, world.log))
    fitting = [
        (player, new_player)
        for player in sorted(recorded) if current(player) == player
        for new_player in [*PLAYERS, f"new {number}"]
        if current(new_player) != player and not met(world.log, player, current(new_player))
    ]  # fmt: skip
    chaining = [(player, new_player) for player, new_player in fitting if current(new_player) != new_player]
    fitting = chaining if chaining and world.one_in(2) else fitting
    renamed = [player for player in sorted(recorded) if current(player) != player]
    free = [(world.one_of(*PLAYERS), world.one_of(*PLAYERS, *renamed)), (world.one_of(*renamed, *PLAYERS), "anna")]
    player, new_player = world.one_of(*(fitting if fitting and not world.one_in(4) else free))
    return event_of(world, number, "player.renamed", {"player": player, "new_player": new_player})


def set_account(world: World, number: int) -> Event:
    """Mostly at the very end of a game."""
    player, kind = world.one_of(*PLAYERS), world.one_of("free", "free", "premium")
    if world.one_in(2):
        return event_of(world, number, "player.account_changed", {"player": player, "account": kind})
    data = {"player": player, **({"account": kind} if world.one_in(2) else {})}
    return event_of(world, number, "player.registered", data)


def adjust(world: World, number: int) -> Event:
    name = world.one_of(*LADDERS, *(filter(None, (ladder_of(game) for game in games(world.log).values()))))
    name = world.one_of(*NO_LADDERS) if world.one_in(12) else name
    points = world.one_of("200", "-55", "+7", "0", "4000", "-1500", "12.000", "0.5", "-12.345678", "0.0000001")
    data = {"ladder": name, "player": world.one_of(*PLAYERS), "points": points, "reason": f"reason {number}"}
    return event_of(world, number, "points.adjusted", data)


def take_back(world: World, number: int) -> Event:
    """Mostly something that can be voided: an adjustment, account, rename or void; seldom a ruleset or a game's."""
    plain = ("points.adjusted", "player.renamed", "player.registered", "player.account_changed", "event.voided")
    fitting = [known["id"] for known in world.log if known["type"] in plain]
    undone = [those[-1] for those in voids(world.log).values()]
    anything = ["e-unknown", *(known["id"] for known in world.log)]
    target = world.one_of(*(undone if undone and world.one_in(3) else fitting or anything))
    target = world.one_of(*anything) if world.one_in(8) else target
    rulesets = [known["id"] for known in world.log if known["type"] == "ruleset.published"]
    target = world.one_of(*rulesets) if world.one_in(16) else target
    # an event without an id of its own has one that only the program knows
    target = target if len(target) < 50 else "e-unknown"
    return event_of(world, number, "event.voided", {"id": target, "reason": f"reason {number}"})


def again(world: World, number: int) -> Event:
    """An event of the log once more: the same, in another spelling, with another content, or under another id."""
    event = {key: value for key, value in world.one_of(*world.log).items() if key != "position"}
    event |= {} if event["id"].startswith("e") else {"id": None}
    event = {key: value for key, value in event.items() if value is not None}
    if event["type"] == "ruleset.published":
        return record(world, number)
    match world.one_of(0, 1, 2, 3):
        case 0:
            event["occurred_at"] = instant(event["occurred_at"]).isoformat()
        case 1:
            event["occurred_at"] = world.time()
        case 2:
            event["id"] = f"e{number}"
    return event


MAKERS: dict[str, Callable[[World, int], Event]] = {
    "game": record, "correct": correct, "void": void, "reinstate": reinstate, "rename": rename,
    "account": set_account, "adjust": adjust, "withdraw": take_back, "again": again,
}  # fmt: skip
