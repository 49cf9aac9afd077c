"""Random histories with corrections afterwards: games, corrections, voids, renames, accounts, adjustments.

Most steps fit the log so far and some do not; each comes with the oracle's verdict. Times are coarse, so that many are
equal, and not in order. A history is drawn as a text; each character is the seed of a step that fits itself to the log
so far, so that a failing history shrinks by leaving steps out.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st
from oracle.log import (
    Event,
    Log,
    build_id_lookup,
    compute_places,
    derive_games,
    group_voids,
    have_met,
    list_named_players,
)
from oracle.rulesets import find_book_ladder
from oracle.times import find_season_bounds, parse_instant
from oracle.validation import Verdict, derive_id, validate

PLAYERS = ["anna", "ben", "cleo", "dora", "Émile", "ζωή", "张伟", "a b", "Zed", "emil"]
# around the first day of the Catan list and the ends of seasons; one instant in two spellings
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
# for each sort of history: its times, and its games besides one of each slug
TIMES_AND_SLUGS = [(INSTANTS, []), (INSTANTS, ["catan"] * 6), (ONE_SEASON, ["babylon5"] * 20)]
STEPS = {
    "game": 48,
    "correct": 14,
    "void": 6,
    "reinstate": 6,
    "rename": 11,
    "account": 9,
    "adjust": 9,
    "withdraw": 12,
    "again": 4,
}


class Step(NamedTuple):
    """An event as it is sent, whether with --allow-uncounted, and the oracle's verdict."""

    event: Event
    allow_uncounted: bool
    verdict: Verdict

    @property
    def event_id(self) -> str:
        return derive_id(self.event)


class World(NamedTuple):
    """The state of a history: the random source of its next step, the log so far, its times and games."""

    chance: Random
    log: Log
    instants: list[str]
    slugs: list[str]

    def choose(self, *values: Any) -> Any:
        """Return one of these values."""
        return self.chance.choice(values)

    def one_in(self, n: int) -> bool:
        """Return True in one of `n` cases."""
        return self.chance.randrange(n) == 0

    def draw_time(self) -> str:
        """Return one of the times of the history."""
        return str(self.choose(*self.instants))


@st.composite
def draw_histories(draw: st.DrawFn, published: Log, steps_max: int, allow_uncounted: bool = True) -> list[Step]:
    """Draw the steps after the published rulesets; with `allow_uncounted`, some allow games that no ladder counts."""
    first, *seeds = map(ord, draw(st.text(min_size=steps_max // 3, max_size=steps_max)))
    times, slugs = Random(first).choice(TIMES_AND_SLUGS)
    instants = Random(first).sample(times, 2 + first % 6)
    kinds = [kind for kind, weight in STEPS.items() for _ in range(weight)]
    log, steps = list(published), []
    for number, seed in enumerate(seeds):
        world = World(Random(f"{first} {seed}"), log, instants, ["galactic-magnate", "babylon5", "catan", *slugs])
        event = MAKERS[world.choose(*kinds)](world, number)
        allow = allow_uncounted and world.one_in(2)
        verdict = validate(log, event, allow)
        steps.append(Step(event, allow, verdict))
        if verdict.is_accepted:
            log.append({**event, "id": derive_id(event), "position": log[-1]["position"] + 1})
    return steps


# -- games


def draw_game(world: World, game_id: str, at: str) -> Event:
    slug = world.choose(*world.slugs)
    game = {"game_id": game_id, **GAMES[slug](world, at)}
    if world.one_in(10):
        game |= world.choose({"rated": False}, {"aborted": True}, {"rated": True, "aborted": False, "city": None})
    return spoil_game(world, game) if world.one_in(8) else game


def draw_players(world: World, low: int, high: int) -> list[str]:
    """Draw some players, mostly different people."""
    current = build_id_lookup(world.log) if not world.one_in(12) else str
    players = [
        *PLAYERS,
        *(name for name in sorted(set().union(*map(list_named_players, world.log))) if name.startswith("new")),
    ]
    one_each = {current(player): player for player in world.chance.sample(players, len(players))}
    return list(one_each.values())[: world.chance.randint(low, high)]


def draw_galactic(world: World, at: str) -> Event:
    participants = draw_participants(world, draw_players(world, 2, 6 if world.one_in(10) else 5))
    for participant in participants:
        participant["seconds_played"] = world.choose(None, 599, 600, 601, 3600)
        if world.one_in(6):
            participant["status"] = world.choose("removed", "surrendered", "abandoned")
    return {"game": "galactic-magnate", "participants": participants}


def draw_catan(world: World, at: str) -> Event:
    participants = draw_participants(world, draw_players(world, 2, 6))
    absent = [player for player in PLAYERS if player not in [p["player"] for p in participants]]
    if world.one_in(3):
        leaver = world.choose(*participants)
        leaver["status"] = world.choose("abandoned", "abandoned", "surrendered", "removed")
        if absent and world.one_in(2):
            result = {name: leaver[name] for name in ("place", "score") if name in leaver}
            substitute = {"player": world.choose(*absent), "status": "substitute", "replaces": leaver["player"]}
            participants.append(substitute | result)
            if world.one_in(2):
                for name in result:
                    del leaver[name]
    game = {"game": "catan", "group": world.choose(*GROUPS, *GROUPS, *GROUPS, None), "participants": participants}
    # beside places, higher scores are better (`draw_participants`)
    lower_is_better = all("place" not in participant for participant in participants) and world.one_in(3)
    return game | ({"score_order": "low"} if lower_is_better else {})


def draw_participants(world: World, players: list[str]) -> list[Event]:
    """Draw participants with places, dense or not, with scores, or with both."""
    strengths = [world.chance.randint(0, len(players)) for _ in players]
    style = world.choose("competition", "dense", "scores", "both", "equal scores")
    participants = []
    for player, own_strength in zip(players, strengths, strict=True):
        better = [rival for rival in strengths if rival < own_strength]
        place = 1 + len(set(better) if style == "dense" else better)
        score = (
            "9.5"
            if style == "equal scores"
            else world.choose(10 - own_strength, f"{10 - own_strength}.0", str(10 - own_strength))
        )
        participants.append(
            {
                "player": player,
                **({"place": place} if style != "scores" else {}),
                **({"score": score} if "score" in style or style == "both" else {}),
            }
        )
    return participants


def draw_babylon5(world: World, at: str) -> Event:
    participants: list[Event] = [
        {
            "player": player,
            "power": world.choose(0, 1, 2),
            "influence": world.choose(0, 1),
            "victory": world.choose(None, None, None, "standard", "major"),
        }
        for player in draw_players(world, 3, 7)
    ]
    game = {"game": "babylon5", "kind": "b5", "season": find_season(world, at), "participants": participants}
    if world.one_in(3):
        game["within_time"] = True
    place = compute_places(game)
    total = len(participants) - 2 + bool(game.get("within_time"))
    total += any(participant["victory"] == "major" for participant in participants)
    losers = [p for p in participants if place[p["player"]] > 1]
    for number in range(total):
        lucky = world.choose(*(losers if losers and not number else participants))
        lucky["vp"] = lucky.get("vp", 0) + 1
    return game


def find_season(world: World, at: str) -> str | None:
    """Return the season of a time, or now and then another one or none."""
    if world.one_in(10):
        return world.choose(*SEASONS, "cup", None)
    bounds = {name: find_season_bounds(name) for name in SEASONS}
    return next(name for name, (first, end) in bounds.items() if first <= parse_instant(at) < end)


def spoil_game(world: World, game: Event) -> Event:
    """Return the game with an error that a game, or its ladder, must not have."""
    participants = [dict(participant) for participant in game["participants"]]
    first, last = participants[0], participants[-1]
    result = {name: last[name] for name in ("place", "score", "power", "influence", "victory") if name in last}
    errors = ["player", "few", "agree", "substitute", "seat"]
    b5, placing = ["few", "kept", "kept", "total", "season"], ["gap", "missing", "scores", "twice", "twice"]
    errors += b5 if game.get("kind") == "b5" else placing
    match world.choose(*errors):
        case "player":
            last["player"] = first["player"]
        case "few":
            participants = participants[: 2 if game.get("kind") == "b5" else 1]
        case "agree":
            last["status"] = "abandoned"
            changed_result = {name: value + 1 for name, value in result.items() if isinstance(value, int)}
            participants.append({"player": "zoe", "status": "substitute", "replaces": last["player"], **changed_result})
        case "substitute":
            last |= {"status": "substitute", "replaces": first["player"]}
        case "seat":
            last["status"] = "removed"
            participants.append({"player": "zoe", "status": "substitute", "replaces": last["player"], **result})
        case "kept":
            rank, total_vp = compute_places(game), sum(participant.pop("vp", 0) for participant in participants)
            next(p for p in participants if rank[p["player"]] == 1)["vp"] = total_vp
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
            for player in ("zoe", "yann"):
                participants.append({"player": player, "status": "substitute", "replaces": last["player"], **result})
    return game | {"participants": participants}


GAMES: dict[str, Callable[[World, str], Event]] = {
    "galactic-magnate": draw_galactic,
    "babylon5": draw_babylon5,
    "catan": draw_catan,
}


# -- steps


def build_event(world: World, number: int, type_name: str, data: Event, at: str | None = None) -> Event:
    """Return an event, with an id of its own or without."""
    event = {"type": type_name, "occurred_at": at or world.draw_time(), "data": data}
    return event if world.one_in(6) else {"id": f"e{number}", **event}


def record(world: World, number: int) -> Event:
    at = world.draw_time()
    event = {"type": "game.recorded", "occurred_at": at, "data": draw_game(world, f"g{number}", at)}
    return {"id": f"e{number}", **event} if world.one_in(6) else event


def choose_game(world: World, voided: bool) -> str:
    """Return the id of a game, mostly of one that is voided, or not, as `voided` says; now and then an unknown id."""
    known_games = derive_games(world.log)
    fitting = [name for name, game in known_games.items() if game.voided == voided]
    corrected_ids = [event["data"]["game_id"] for event in world.log if event["type"] == "game.corrected"]
    corrected_again = [name for name in fitting if name in corrected_ids]
    if corrected_again and world.one_in(3):
        return world.choose(*corrected_again)
    other_ids = [name for name in known_games if name not in fitting]
    return world.choose(*(fitting if fitting and not world.one_in(5) else [*other_ids, "g-unknown"]))


def correct(world: World, number: int) -> Event:
    """Correct the result, date, group or game: one or several of them, or none."""
    name = choose_game(world, voided=False)
    old = derive_games(world.log).get(name)
    moved = world.draw_time() if world.one_in(3) else None
    at = moved or (old.at.isoformat() if old else world.draw_time())
    if old is None or world.one_in(2):
        game = draw_game(world, name, at)
    else:
        game = dict(old.data)
        if game["game"] == "catan" and world.one_in(2):
            game["group"] = world.choose(*GROUPS)
        if game["game"] == "babylon5" and (moved or world.one_in(2)):
            game["season"] = find_season(world, at)
        if world.one_in(6):
            game["rated"] = world.one_in(2)
    game = game | ({"game_id": "g-other"} if world.one_in(30) else {})
    data = {"game_id": name, "reason": f"reason {number}", "game": game | ({"occurred_at": moved} if moved else {})}
    return build_event(world, number, "game.corrected", data)


def void(world: World, number: int) -> Event:
    data = {"game_id": choose_game(world, voided=False), "reason": f"reason {number}"}
    return build_event(world, number, "game.voided", data)


def reinstate(world: World, number: int) -> Event:
    data = {"game_id": choose_game(world, voided=True), "reason": f"reason {number}"}
    return build_event(world, number, "game.reinstated", data)


def rename(world: World, number: int) -> Event:
    """Rename a player, mostly to a player never met; the new id may have other ids already, or no games."""
    current, recorded = build_id_lookup(world.log), set().union(*map(list_named_players, world.log))
    fitting = [
        (player, new_player)
        for player in sorted(recorded)
        if current(player) == player
        for new_player in [*PLAYERS, f"new {number}"]
        if current(new_player) != player and not have_met(world.log, player, current(new_player))
    ]
    chaining = [(player, new_player) for player, new_player in fitting if current(new_player) != new_player]
    fitting = chaining if chaining and world.one_in(2) else fitting
    renamed = [player for player in sorted(recorded) if current(player) != player]
    unchecked = [(world.choose(*PLAYERS), world.choose(*PLAYERS, *renamed)), (world.choose(*renamed, *PLAYERS), "anna")]
    player, new_player = world.choose(*(fitting if fitting and not world.one_in(4) else unchecked))
    return build_event(world, number, "player.renamed", {"player": player, "new_player": new_player})


def set_account(world: World, number: int) -> Event:
    """Change an account, or register a player."""
    player, kind = world.choose(*PLAYERS), world.choose("free", "free", "premium")
    if world.one_in(2):
        return build_event(world, number, "player.account_changed", {"player": player, "account": kind})
    data = {"player": player, **({"account": kind} if world.one_in(2) else {})}
    return build_event(world, number, "player.registered", data)


def adjust(world: World, number: int) -> Event:
    name = world.choose(
        *LADDERS, *(filter(None, (find_book_ladder(game) for game in derive_games(world.log).values())))
    )
    name = world.choose(*NO_LADDERS) if world.one_in(12) else name
    points = world.choose("200", "-55", "+7", "0", "4000", "-1500", "12.000", "0.5", "-12.345678", "0.0000001")
    data = {"ladder": name, "player": world.choose(*PLAYERS), "points": points, "reason": f"reason {number}"}
    return build_event(world, number, "points.adjusted", data)


def withdraw(world: World, number: int) -> Event:
    """Void an event, mostly an adjustment, account, rename or void; seldom a ruleset or an event of a game."""
    voidable_types = (
        "points.adjusted",
        "player.renamed",
        "player.registered",
        "player.account_changed",
        "event.voided",
    )
    voidable_ids = [known["id"] for known in world.log if known["type"] in voidable_types]
    latest_voids = [void_ids[-1] for void_ids in group_voids(world.log).values()]
    event_ids = ["e-unknown", *(known["id"] for known in world.log)]
    target = world.choose(*(latest_voids if latest_voids and world.one_in(3) else voidable_ids or event_ids))
    target = world.choose(*event_ids) if world.one_in(8) else target
    rulesets = [known["id"] for known in world.log if known["type"] == "ruleset.published"]
    target = world.choose(*rulesets) if world.one_in(16) else target
    # an event without an id of its own has an id that only the program knows
    target = target if len(target) < 50 else "e-unknown"
    return build_event(world, number, "event.voided", {"id": target, "reason": f"reason {number}"})


def repeat_event(world: World, number: int) -> Event:
    """Send an event of the log again: the same, in another spelling, with another content, or under another id."""
    event = {key: value for key, value in world.choose(*world.log).items() if key != "position"}
    event |= {} if event["id"].startswith("e") else {"id": None}
    event = {key: value for key, value in event.items() if value is not None}
    if event["type"] == "ruleset.published":
        return record(world, number)
    match world.choose(0, 1, 2, 3):
        case 0:
            event["occurred_at"] = parse_instant(event["occurred_at"]).isoformat()
        case 1:
            event["occurred_at"] = world.draw_time()
        case 2:
            event["id"] = f"e{number}"
    return event


MAKERS: dict[str, Callable[[World, int], Event]] = {
    "game": record,
    "correct": correct,
    "void": void,
    "reinstate": reinstate,
    "rename": rename,
    "account": set_account,
    "adjust": adjust,
    "withdraw": withdraw,
    "again": repeat_event,
}
