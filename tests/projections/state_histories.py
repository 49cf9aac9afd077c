"""Random histories under rules with state: games of sides, at home, with numbers, clubs, leagues and seasons; seeds,
merges, corrections, adjustments and versions, each fitted to the log so far.
"""

from random import Random
from typing import Any

from oracle.log import Event, Log, games, identities, live
from oracle.rulesets import versions_of
from oracle.states import RULESETS, merge_faults, seed_faults
from oracle.validation import meeting_faults, renamed_faults
from time_histories import DATES, ENDS, INSTANTS, PLAYERS, REASON, World

# so many that some are seeded before they play
PEOPLE = [*PLAYERS, "fritz", "gil", "hana", "ida", "jan", "kim"]
CLUBS = ["red", "blue", "green"]
# more than one season of each kind
MOMENTS = [*INSTANTS, "2010-07-04T18:00:00Z", "2010-06-30T22:00:00Z", "2010-06-30T21:59:59.999999Z"]
UNTIL = [*ENDS, *MOMENTS, "2010-07-01", "2010-06-30"]
WEIGHTS = {
    "record": 30, "correct": 14, "void": 5, "reinstate": 5, "rename": 6, "seed": 12, "adjust": 7, "withdraw": 9,
    "publish": 5, "withdraw a version": 2, "rename a club": 2,
}  # fmt: skip


def ruleset(name: str, version: str, since: str, **params: int) -> Event:
    """What a version says; all of them count the same games."""
    period, season_by = RULESETS[name]
    said: Event = {
        "id": name, "version": version, "rule": "counting/1" if period == "game" else "counting-period/1",
        "effective_from": since, "scope": {"game": ["duel"], "kind": ["placing"], "players_min": 2},
        "numbers": {"bonus": {"min": 0, "max": 9, "absent": 0}}, "params": {"k": 1, "weight": 20, **params},
    }  # fmt: skip
    said |= {"period": period} if period != "game" else {}
    said |= {"period_by": "league"} if period == "event" else {}
    return said | ({"season_by": season_by} if season_by else {})


def base_log() -> Log:
    """The rulesets with which every history begins."""
    log: Log = []
    for name in RULESETS:
        event = World(Random(0), log).event("ruleset.published", "2010-01-01T00:00:00Z",
                                            **ruleset(name, "1", "1900-01-01"))  # fmt: skip
        log.append({**event, "position": len(log) + 1})
    return log


def game_data(world: World, game_id: str) -> Event:
    """A game of two to four alone, or of two sides."""
    people = identities(world.log)
    known = {people(name): name for name in world.chance.sample(PEOPLE, len(PEOPLE))}
    seated = list(known)[: world.chance.randint(2, 4)]
    teams = [1, 1, 2, 2][: len(seated)] if len(seated) > 2 and world.one_in(2) else []
    sides = teams or list(range(len(seated)))
    strength = {side: world.chance.randint(1, 3) for side in sides}
    scored = world.one_in(2)
    participants = []
    for player, side in zip(seated, sides, strict=True):
        place = 1 + sum(strength[other] < strength[side] for other in sides)
        one: Event = {"player": player, "place": place}
        one |= {"team": side} if teams else {}
        one |= {"score": 20 - 4 * place} if scored else {}
        one |= {"club": world.one_of(*CLUBS)} if world.one_in(3) else {}
        participants.append(one)
    if world.one_in(2):
        participants[0]["home"] = True
    data: Event = {"game_id": game_id, "game": "duel", "participants": participants}
    if world.one_in(3):
        data["numbers"] = {"bonus": world.chance.randint(0, 9)}
    elif world.one_in(2):
        participants[-1]["numbers"] = {"bonus": world.chance.randint(0, 9)}
    data |= {"league": world.one_of("open", "cup")} if world.one_in(2) else {}
    data |= {"season": world.one_of("2009", "2010")} if world.one_in(2) else {}
    return data | (world.one_of({"rated": False}, {"aborted": True}) if world.one_in(20) else {})


def record(world: World) -> Event:
    at = world.one_of(*MOMENTS)
    return world.event("game.recorded", at, **game_data(world, f"g{world.number}"))


def correct(world: World) -> Event:
    """Another result, date, season or league; or another game altogether."""
    there = [name for name, game in games(world.log).items() if not game.voided]
    if not there:
        return record(world)
    game_id = world.one_of(*there)
    old = games(world.log)[game_id].data
    new = (
        game_data(world, game_id) if world.one_in(2) else {**old, "participants": [{**p} for p in old["participants"]]}
    )
    if world.one_in(2):
        new["season"] = world.one_of("2009", "2010", "2011")
    if world.one_in(2):
        new["occurred_at"] = world.one_of(*MOMENTS)
    return world.event("game.corrected", game_id=game_id, game=new, reason=REASON)


def of_game(world: World, type_name: str, voided: bool) -> Event:
    there = [name for name, game in games(world.log).items() if game.voided == voided]
    return world.event(type_name, game_id=world.one_of(*there), reason=REASON) if there else record(world)


def rename(world: World) -> Event:
    """Somebody who is somebody else, mostly one with a seed; or a new id."""
    current = identities(world.log)
    ladder = world.one_of(*RULESETS)
    seeds = [event["data"] for event in live(world.log, "player.seeded")]
    seeded = [data["player"] for data in seeds if data["ladder"] == ladder] or [data["player"] for data in seeds]
    mine = [name for name in {*(seeded if world.one_in(2) else PEOPLE)} if current(name) == name]
    one = world.one_of(*sorted(mine)) if mine else PEOPLE[0]
    two = world.one_of(*(seeded or PEOPLE)) if not world.one_in(3) else f"new {world.number}"
    return world.event("player.renamed", player=one, new_player=two)


def seed(world: World) -> Event:
    state = world.one_of({"rating": "1200"}, {"rating": "900.5", "weight": "33"}, {"weight": "12"})
    count = {"games": 3} if world.one_in(2) else {}
    played = {player for game in games(world.log).values() for player in game.players}
    new = [name for name in PEOPLE if name not in played]
    ladder, player = world.one_of(*RULESETS), world.one_of(*(new if new and not world.one_in(4) else PEOPLE))
    # another one for somebody whose seed was withdrawn
    alive = {event["id"] for event in live(world.log, "player.seeded")}
    gone = [event["data"] for event in world.log if event["type"] == "player.seeded" and event["id"] not in alive]
    if gone and world.one_in(2):
        old = world.one_of(*gone)
        ladder, player = old["ladder"], old["player"]
    return world.event("player.seeded", ladder=ladder, player=player, state=state, reason=REASON, **count)


def adjust(world: World) -> Event:
    # of events that overlap, nobody can say within which one it is
    ladder = world.one_of(*(name for name in RULESETS if name != "by-event"))
    points = world.one_of("20", "-5.5", "0.1")
    return world.event("points.adjusted", world.one_of(*MOMENTS), ladder=ladder, player=world.one_of(*PLAYERS),
                       points=points, reason=REASON)  # fmt: skip


def withdraw(world: World, *types: str) -> Event:
    there = [event["id"] for event in live(world.log, *types)]
    return world.event("event.voided", id=world.one_of(*there), reason=REASON) if there else record(world)


def withdraw_version(world: World) -> Event:
    """A version of which there are others."""
    there = [
        event["id"] for event in live(world.log, "ruleset.published")
        if len(versions_of(world.log, event["data"]["id"])) > 1
    ]  # fmt: skip
    return world.event("event.voided", id=world.one_of(*there), reason=REASON) if there else record(world)


def publish(world: World) -> Event:
    data = ruleset(world.one_of(*RULESETS), f"v{world.number}", world.one_of(*DATES), k=world.one_of(1, 2, 3),
                   weight=world.one_of(15, 25, 40))  # fmt: skip
    return world.event("ruleset.published", **data)


def propose(world: World, kind: str) -> Event:
    """An event of a kind."""
    match kind:
        case "void" | "reinstate":
            return of_game(world, "game.voided" if kind == "void" else "game.reinstated", kind == "reinstate")
        case "withdraw":
            return withdraw(world, *world.one_of(("player.seeded",), ("points.adjusted",), ("player.renamed",)))
        case "rename a club":
            return world.event("club.renamed", club=world.one_of(*CLUBS), new_club=f"club {world.number}")
    makers: dict[str, Any] = {
        "record": record, "correct": correct, "rename": rename, "seed": seed, "adjust": adjust, "publish": publish,
        "withdraw a version": withdraw_version,
    }  # fmt: skip
    event: Event = makers[kind](world)
    return event


def faults(log: Log, event: Event) -> set[str]:
    """Every code that an event may be refused with."""
    data = event["data"]
    match event["type"]:
        case "player.seeded":
            return seed_faults(log, event)
        case "player.renamed":
            found = renamed_faults(log, event)
            return found or merge_faults(log, data["player"], data["new_player"])
        case "game.reinstated":
            return meeting_faults(log, games(log)[data["game_id"]])
        case "game.corrected":
            old = games(log)[data["game_id"]]
            return meeting_faults(log, old._replace(data={k: v for k, v in data["game"].items() if k != "occurred_at"}))
        case "club.renamed":
            taken = [one["data"]["club"] for one in live(log, "club.renamed")]
            clubs = {p.get("club") for game in games(log).values() for p in game.data["participants"]}
            return {"club-renamed-already", "renamed-already"} if data["club"] in taken else (
                set() if data["club"] in clubs else {"club-unknown"})  # fmt: skip
    return set()
