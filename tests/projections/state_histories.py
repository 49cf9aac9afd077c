"""Random histories under rules with state: games of sides, home games, numbers, clubs, leagues and seasons; seeds,
merges, corrections, adjustments and versions, each fitted to the log so far.
"""

from random import Random
from typing import Any

from oracle.log import Event, Log, build_id_lookup, derive_games, select_live
from oracle.rulesets import list_versions
from oracle.states import RULESETS, find_merge_faults, find_seed_faults
from oracle.validation import find_identity_faults, find_rename_faults
from time_histories import DATES, ENDS, INSTANTS, PLAYERS, REASON, World

# enough players that some are seeded before they play
PEOPLE = [*PLAYERS, "fritz", "gil", "hana", "ida", "jan", "kim"]
CLUBS = ["red", "blue", "green"]
# more than one season of each kind
MOMENTS = [*INSTANTS, "2010-07-04T18:00:00Z", "2010-06-30T22:00:00Z", "2010-06-30T21:59:59.999999Z"]
UNTIL = [*ENDS, *MOMENTS, "2010-07-01", "2010-06-30"]
WEIGHTS = {
    "record": 30, "correct": 14, "void": 5, "reinstate": 5, "rename": 8, "seed": 12, "adjust": 7, "withdraw": 9,
    "publish": 5, "withdraw a version": 2, "rename a club": 2,
}  # fmt: skip


def build_ruleset(name: str, version: str, since: str, **params: int) -> Event:
    """Return the data of a version; all versions count the same games."""
    period, season_by = RULESETS[name]
    data: Event = {
        "id": name,
        "version": version,
        "rule": "counting/1" if period == "game" else "counting-period/1",
        "effective_from": since,
        "scope": {"game": ["duel"], "kind": ["placing"], "players_min": 2},
        "numbers": {"bonus": {"min": 0, "max": 9, "absent": 0}},
        "params": {"k": 1, "weight": 20, **params},
    }
    data |= {"period": period} if period != "game" else {}
    data |= {"period_by": "league"} if period == "event" else {}
    return data | ({"season_by": season_by} if season_by else {})


def build_base_log() -> Log:
    """Return the rulesets with which every history begins."""
    log: Log = []
    for name in RULESETS:
        event = World(Random(0), log).build_event(
            "ruleset.published", "2010-01-01T00:00:00Z", **build_ruleset(name, "1", "1900-01-01")
        )
        log.append({**event, "position": len(log) + 1})
    return log


def draw_game(world: World, game_id: str) -> Event:
    """Draw the data of a game of two to four players, alone or in two sides."""
    resolve = build_id_lookup(world.log)
    id_by_player = {resolve(name): name for name in world.chance.sample(PEOPLE, len(PEOPLE))}
    seated = list(id_by_player)[: world.chance.randint(2, 4)]
    teams = [1, 1, 2, 2][: len(seated)] if len(seated) > 2 and world.one_in(2) else []
    sides = teams or list(range(len(seated)))
    strength = {side: world.chance.randint(1, 3) for side in sides}
    scored = world.one_in(2)
    participants = []
    for player, side in zip(seated, sides, strict=True):
        place = 1 + sum(strength[rival] < strength[side] for rival in sides)
        participant: Event = {"player": player, "place": place}
        participant |= {"team": side} if teams else {}
        participant |= {"score": 20 - 4 * place} if scored else {}
        participant |= {"club": world.choose(*CLUBS)} if world.one_in(3) else {}
        participants.append(participant)
    if world.one_in(2):
        participants[0]["home"] = True
    data: Event = {"game_id": game_id, "game": "duel", "participants": participants}
    if world.one_in(3):
        data["numbers"] = {"bonus": world.chance.randint(0, 9)}
    elif world.one_in(2):
        participants[-1]["numbers"] = {"bonus": world.chance.randint(0, 9)}
    data |= {"league": world.choose("open", "cup")} if world.one_in(2) else {}
    data |= {"season": world.choose("2009", "2010")} if world.one_in(2) else {}
    return data | (world.choose({"rated": False}, {"aborted": True}) if world.one_in(20) else {})


def record(world: World) -> Event:
    """Record a game."""
    at = world.choose(*MOMENTS)
    return world.build_event("game.recorded", at, **draw_game(world, f"g{world.number}"))


def correct(world: World) -> Event:
    """Replace the data of a game or keep them, and often change its season or date."""
    game_ids = [name for name, game in derive_games(world.log).items() if not game.voided]
    if not game_ids:
        return record(world)
    game_id = world.choose(*game_ids)
    old = derive_games(world.log)[game_id].data
    new = (
        draw_game(world, game_id) if world.one_in(2) else {**old, "participants": [{**p} for p in old["participants"]]}
    )
    if world.one_in(2):
        new["season"] = world.choose("2009", "2010", "2011")
    if world.one_in(2):
        new["occurred_at"] = world.choose(*MOMENTS)
    return world.build_event("game.corrected", game_id=game_id, game=new, reason=REASON)


def build_game_command(world: World, type_name: str, voided: bool) -> Event:
    """Return an event about a game that is voided, or not, as `voided` says; a new game if there is none."""
    game_ids = [name for name, game in derive_games(world.log).items() if game.voided == voided]
    return world.build_event(type_name, game_id=world.choose(*game_ids), reason=REASON) if game_ids else record(world)


def rename(world: World) -> Event:
    """Merge two players, mostly one of them with a seed; or give a player a new id."""
    current = build_id_lookup(world.log)
    ladder = world.choose(*RULESETS)
    seeds = [event["data"] for event in select_live(world.log, "player.seeded")]
    seeded = [data["player"] for data in seeds if data["ladder"] == ladder] or [data["player"] for data in seeds]
    current_ids = [name for name in {*(seeded if world.one_in(2) else PEOPLE)} if current(name) == name]
    player = world.choose(*sorted(current_ids)) if current_ids else PEOPLE[0]
    new_player = world.choose(*(seeded or PEOPLE)) if world.one_in(2) else f"new {world.number}"
    return world.build_event("player.renamed", player=player, new_player=new_player)


def seed(world: World) -> Event:
    """Seed a player, mostly one without games."""
    state = world.choose({"rating": "1200"}, {"rating": "900.5", "weight": "33"}, {"weight": "12"})
    count = {"games": 3} if world.one_in(2) else {}
    played = {player for game in derive_games(world.log).values() for player in game.players}
    players_without_games = [name for name in PEOPLE if name not in played]
    ladder, player = (
        world.choose(*RULESETS),
        world.choose(*(players_without_games if players_without_games and not world.one_in(4) else PEOPLE)),
    )
    # a second seed for a player whose first seed was withdrawn
    live_ids = {event["id"] for event in select_live(world.log, "player.seeded")}
    withdrawn_seeds = [
        event["data"] for event in world.log if event["type"] == "player.seeded" and event["id"] not in live_ids
    ]
    if withdrawn_seeds and world.one_in(2):
        old = world.choose(*withdrawn_seeds)
        ladder, player = old["ladder"], old["player"]
    return world.build_event("player.seeded", ladder=ladder, player=player, state=state, reason=REASON, **count)


def adjust(world: World) -> Event:
    """Adjust the points of a player."""
    # where events overlap, an adjustment cannot be assigned to one of them
    ladder = world.choose(*(name for name in RULESETS if name != "by-event"))
    points = world.choose("20", "-5.5", "0.1")
    return world.build_event(
        "points.adjusted",
        world.choose(*MOMENTS),
        ladder=ladder,
        player=world.choose(*PLAYERS),
        points=points,
        reason=REASON,
    )


def withdraw(world: World, *types: str) -> Event:
    """Void an event of one of these types."""
    event_ids = [event["id"] for event in select_live(world.log, *types)]
    return world.build_event("event.voided", id=world.choose(*event_ids), reason=REASON) if event_ids else record(world)


def withdraw_version(world: World) -> Event:
    """Void a version of a ruleset that has others."""
    event_ids = [
        event["id"]
        for event in select_live(world.log, "ruleset.published")
        if len(list_versions(world.log, event["data"]["id"])) > 1
    ]
    return world.build_event("event.voided", id=world.choose(*event_ids), reason=REASON) if event_ids else record(world)


def publish(world: World) -> Event:
    """Publish a version with other parameters."""
    data = build_ruleset(
        world.choose(*RULESETS),
        f"v{world.number}",
        world.choose(*DATES),
        k=world.choose(1, 2, 3),
        weight=world.choose(15, 25, 40),
    )
    return world.build_event("ruleset.published", **data)


def propose(world: World, kind: str) -> Event:
    """Return an event of this kind, a key of `WEIGHTS`; a new game if there is nothing to change."""
    match kind:
        case "void" | "reinstate":
            return build_game_command(
                world, "game.voided" if kind == "void" else "game.reinstated", kind == "reinstate"
            )
        case "withdraw":
            return withdraw(world, *world.choose(("player.seeded",), ("points.adjusted",), ("player.renamed",)))
        case "rename a club":
            return world.build_event("club.renamed", club=world.choose(*CLUBS), new_club=f"club {world.number}")
    makers: dict[str, Any] = {
        "record": record,
        "correct": correct,
        "rename": rename,
        "seed": seed,
        "adjust": adjust,
        "publish": publish,
        "withdraw a version": withdraw_version,
    }
    event: Event = makers[kind](world)
    return event


def collect_refusals(log: Log, event: Event) -> set[str]:
    """Return every code with which an event may be rejected."""
    data = event["data"]
    match event["type"]:
        case "player.seeded":
            return find_seed_faults(log, event)
        case "player.renamed":
            rename_faults = find_rename_faults(log, event)
            return rename_faults or find_merge_faults(log, data["player"], data["new_player"])
        case "game.reinstated":
            return find_identity_faults(log, derive_games(log)[data["game_id"]])
        case "game.corrected":
            old = derive_games(log)[data["game_id"]]
            return find_identity_faults(
                log, old._replace(data={k: v for k, v in data["game"].items() if k != "occurred_at"})
            )
        case "club.renamed":
            renamed_clubs = [renamed["data"]["club"] for renamed in select_live(log, "club.renamed")]
            # a game that no longer names the club, after a correction, has still made it known
            games = [
                event["data"]["game"] if event["type"] == "game.corrected" else event["data"]
                for event in log
                if event["type"] in ("game.recorded", "game.corrected")
            ]
            clubs = {participant.get("club") for game in games for participant in game["participants"]}
            return (
                {"club-renamed-already", "renamed-already"}
                if data["club"] in renamed_clubs
                else (set() if data["club"] in clubs else {"club-unknown"})
            )
    return set()
