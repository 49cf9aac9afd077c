"""A random year of Catan, drawn from a seed: games in two cities, and every later change of games, players and rules.

Every event has an id. The events are in the order of recording: late games, corrections and renames come where they
were recorded.
"""

import random
from calendar import monthrange
from datetime import datetime, timedelta
from typing import Any

from histories import build_ruleset_event
from own_rules import find_shipped_texts

Event = dict[str, Any]
# (sort key: when the event is recorded, event)
KeyedEvents = list[tuple[float, Event]]

YEARS = (2007, 2008, 2009, 2010, 2012, 2013)
PLAYERS = ("anna", "ben", "cleo", "dora", "Émile", "ζωή", "a b")
# two players who play together and share places, so that their scores are often equal
TWINS = ("gus", "hal")
CITIES = ("7", "Köln")
GROUPS = ("basic", "cities-knights", "expansions")
CARDS = ("card-game", "card-tournament")
LEAVERS = ("abandoned", "surrendered", "removed")
# when days, months and years end in Berlin, in winter and in summer
EDGES = ("22:59:59.999999", "23:00:00", "23:30:00", "21:59:59.999999", "22:00:00", "22:30:00", "23:30:00")
# by year and month, the day when clocks change; and the times around the change
CLOCK_CHANGE_DAYS = {
    2007: {3: 25, 10: 28},
    2008: {3: 30, 10: 26},
    2009: {3: 29, 10: 25},
    2010: {3: 28, 10: 31},
    2012: {3: 25, 10: 28},
    2013: {3: 31, 10: 27},
}
CLOCK_CHANGE_TIMES = ("00:59:59.999999", "01:00:00", "01:30:00")
OTHER_POINTS = {"2": [2, 0], "3": [5, 2, 0], "4": [7, 4, 1, 0], "5": [9, 5, 2, 1, 0], "6": [9, 6, 3, 2, 1, 0]}
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"score": "sum"},
    {"gold_ties": "pool", "substitution": "leaver"},
    {"score": "sum", "gold_ties": "pool", "substitution": "substitute", "points": OTHER_POINTS, "min_games": 6},
    {"substitution": "both", "points": OTHER_POINTS, "gold": [3, 2, 2], "gold_ties": "pool"},
)


def build_shipped_rulesets() -> list[Event]:
    """Return the shipped versions of the three Catan lists as events."""
    texts = [text for text in find_shipped_texts() if "catan-points/1" in text or "annual-places/1" in text]
    return [build_ruleset_event(text) | {"id": f"rules {number}"} for number, text in enumerate(texts)]


def draw_year(seed: int) -> list[Event]:
    """Return the events of a year in the order of recording."""
    chance = random.Random(f"catan year {seed}")
    year = YEARS[seed % len(YEARS)]
    aliases = {name: f"{name}2" for name in chance.sample(PLAYERS, chance.randint(0, 3))}
    games = sorted(_draw_games(chance, year), key=lambda game: str(game["occurred_at"]))
    order = chance.choice(["as played", "some late", "shuffled"])
    keyed: KeyedEvents = [(-1, event) for event in build_shipped_rulesets()]
    first_keys: dict[str, float] = {}
    for number, game in enumerate(games):
        late = order == "shuffled" or (order == "some late" and chance.random() < 0.1)
        key = chance.uniform(0, len(games)) if late else float(number)
        for event_key, event in [(key, game), *_draw_changes(chance, year, game, key, len(games))]:
            keyed.append((event_key, _apply_aliases(chance, event, aliases, first_keys, event_key)))
    keyed += _draw_accounts(chance, year, len(games))
    keyed += _draw_renames(chance, aliases, first_keys, len(games))
    keyed += [(chance.uniform(0, len(games)), event) for event in _draw_variants(chance, year, seed)]
    ordered = sorted((key, number) for number, (key, _) in enumerate(keyed))
    return [keyed[number][1] for _, number in ordered]


def _build_event(type_name: str, event_id: str, at: str, **data: Any) -> Event:
    return {"type": type_name, "id": event_id, "occurred_at": at, "data": data}


def _draw_games(chance: random.Random, year: int) -> list[Event]:
    """Draw for each month many games in one group of one city, and some games of every other sort."""
    main = {"city": chance.choice(CITIES), "group": chance.choice(GROUPS)}
    regulars = chance.sample(PLAYERS, chance.randint(3, len(PLAYERS)))
    games: list[Event] = []
    for month in range(1, 13):
        main_games = chance.choice([0, 3, 12, 15, 15, 18, 18, 18, 20])
        labels = [main] * main_games
        labels += [{"city": chance.choice(CITIES), "group": chance.choice(GROUPS)} for _ in range(chance.randint(0, 4))]
        if chance.random() < 0.2:
            labels += [{"city": chance.choice(CITIES), "group": chance.choice([*GROUPS, *CARDS])}] * 9
        labels += chance.sample([{"group": "basic"}, {"city": "7"}, {}, {"city": "7", "group": CARDS[0]}], 1)
        twins = [*TWINS] if chance.random() < 0.7 else []
        for labels_of_game in labels:
            data = {
                "game_id": f"g{len(games)}",
                "game": "catan",
                **labels_of_game,
                **_draw_result(chance, regulars, twins),
            }
            if chance.random() < 0.02:
                data["game"] = "club-catan"
            if chance.random() < 0.05:
                data |= chance.choice([{"rated": False}, {"aborted": True}])
            games.append(_build_event("game.recorded", f"game:g{len(games)}", _draw_time(chance, year, month), **data))
    return games


def _draw_time(chance: random.Random, year: int, month: int) -> str:
    """Draw a time within a month, often one that falls in another day or month in Berlin than in UTC."""
    last = monthrange(year, month)[1]
    kind = chance.random()
    if kind < 0.12:
        return f"{year}-{month:02d}-{last}T{chance.choice(EDGES)}Z"
    if kind < 0.2 and month in CLOCK_CHANGE_DAYS[year]:
        return f"{year}-{month:02d}-{CLOCK_CHANGE_DAYS[year][month]}T{chance.choice(CLOCK_CHANGE_TIMES)}Z"
    return f"{year}-{month:02d}-{chance.randint(1, last):02d}T{chance.randint(0, 23):02d}:{chance.randint(0, 3)}0:00Z"


def _draw_result(chance: random.Random, regulars: list[str], twins: list[str]) -> dict[str, Any]:
    """Draw participants with places or scores, some of them leavers or substitutes."""
    size = chance.choice([2, 3, 4, 4, 5, 6, 6])
    seated = chance.sample(regulars, min(size, len(regulars)))
    if twins and chance.random() < 0.6:
        seated = [*twins, *seated][:size]
    even = chance.random() < 0.4
    level = {player: chance.randint(0, 2) if even else number for number, player in enumerate(seated)}
    if TWINS[0] in level:
        level[TWINS[1]] = level[TWINS[0]]
    style = chance.choice(["competition", "dense", "scores", "low scores", "both"])
    participants: list[dict[str, Any]] = []
    for player in seated:
        better = [level_of_other for level_of_other in level.values() if level_of_other < level[player]]
        row: dict[str, Any] = {"player": player}
        if style in ("competition", "dense", "both"):
            row["place"] = 1 + (len(set(better)) if style == "dense" else len(better))
        if style in ("scores", "both"):
            row["score"] = f"{9 - level[player]}.5" if level[player] % 2 else 10 - level[player]
        elif style == "low scores":
            row["score"] = level[player]
        participants.append(row)
    chance.shuffle(participants)
    _add_leavers(chance, participants)
    return {"participants": participants, **({"score_order": "low"} if style == "low scores" else {})}


def _add_leavers(chance: random.Random, participants: list[dict[str, Any]]) -> None:
    """Turn some participants into leavers, most of them with a substitute."""
    leaving = chance.choice([0] * 16 + [1, 1, 1, 2])
    absent = [p for p in (*PLAYERS, *TWINS) if p not in [participant["player"] for participant in participants]]
    for leaver, substitute in zip(chance.sample(participants, leaving), absent, strict=False):
        result = {name: leaver[name] for name in ("place", "score") if name in leaver}
        leaver["status"] = chance.choice(LEAVERS)
        if chance.random() < 0.7:
            participants.append({"player": substitute, "status": "substitute", "replaces": leaver["player"], **result})
            if chance.random() < 0.5:
                for name in result:
                    del leaver[name]


def _draw_changes(chance: random.Random, year: int, game: Event, key: float, end: int) -> KeyedEvents:
    """Draw later events of a game: corrections of result, date, city and more; voids."""
    changes: KeyedEvents = []
    current_data, game_id, number = dict(game["data"]), game["data"]["game_id"], 0
    voided = False
    while chance.random() < (0.07 if not changes else 0.35):
        key, number = chance.uniform(key, end), number + 1
        members = {"game_id": game_id, "reason": f"reason {number}"}
        event_id = f"{game_id} change {number}"
        if voided or chance.random() < 0.35:
            voided = not voided
            kind = "game.voided" if voided else "game.reinstated"
            changes.append((key, _build_event(kind, event_id, "2015-01-01T00:00:00Z", **members)))
            continue
        dated = {}
        subject = chance.choice(["result", "date", "date", "city", "group", "rated"])
        if subject == "result":
            current_data |= {"score_order": "high"} | _draw_result(chance, list(PLAYERS), [*TWINS])
        elif subject == "date":
            dated = {"occurred_at": _draw_time(chance, year, chance.randint(1, 12))}
        elif subject == "city":
            current_data["city"] = chance.choice(CITIES)
        elif subject == "group":
            current_data["group"] = chance.choice([*GROUPS, *CARDS])
        else:
            current_data["rated"] = not current_data.get("rated", True)
        corrected = _build_event(
            "game.corrected", event_id, "2015-01-01T00:00:00Z", **members, game=current_data | dated
        )
        changes.append((key, corrected))
    return changes


def _apply_aliases(
    chance: random.Random, event: Event, aliases: dict[str, str], first_keys: dict[str, float], key: float
) -> Event:
    """Return the event with other ids for some players; keep in `first_keys` the lowest key at which each id plays."""
    data = event["data"].get("game", event["data"])
    if "participants" not in data:
        return event
    used = {name: alias for name, alias in aliases.items() if chance.random() < 0.4}
    participants = []
    for participant in data["participants"]:
        named = {
            member: used.get(participant[member], participant[member])
            for member in ("player", "replaces")
            if member in participant
        }
        first_keys[named["player"]] = min(key, first_keys.get(named["player"], key))
        participants.append(participant | named)
    data = data | {"participants": participants}
    return event | {"data": event["data"] | {"game": data} if "game" in event["data"] else data}


def _draw_accounts(chance: random.Random, year: int, end: int) -> KeyedEvents:
    """Draw changes of accounts during the year, at its last instant, just after it, and at equal times."""
    events: KeyedEvents = []
    edges = [f"{year}-12-31T22:59:59.999999Z", f"{year}-12-31T23:00:00Z", f"{year}-06-01T00:00:00Z"]
    for number, player in enumerate((*PLAYERS, *TWINS)):
        key = chance.uniform(0, end)
        if chance.random() < 0.3:
            data = {"player": player, "account": chance.choice(["free", "premium"])}
            at = f"{year - 1}-05-01T00:00:00Z"
            events.append((key, _build_event("player.registered", f"register {number}", at, **data)))
        for change in range(chance.choice([0, 0, 1, 2, 3])):
            at = chance.choice([*edges, _draw_time(chance, year, chance.randint(1, 12))])
            event_id, key = f"account {number} {change}", chance.uniform(key, end)
            data = {"player": player, "account": chance.choice(["free", "free", "premium"])}
            events.append((key, _build_event("player.account_changed", event_id, at, **data)))
            while chance.random() < 0.15:
                data = {"id": event_id, "reason": "a mistake"}
                event_id, key = f"{event_id} back", chance.uniform(key, end)
                events.append((key, _build_event("event.voided", event_id, "2015-01-01T00:00:00Z", **data)))
    return events


def _draw_renames(
    chance: random.Random, aliases: dict[str, str], first_keys: dict[str, float], end: int
) -> KeyedEvents:
    """Draw renames that merge the two ids of a player: in either direction, along a chain, or withdrawn later."""
    events: KeyedEvents = []
    at = "2015-01-01T00:00:00Z"
    for name, alias in aliases.items():
        if name not in first_keys or alias not in first_keys:
            continue
        key = chance.uniform(max(first_keys[name], first_keys[alias]), end)
        style = chance.choice(["merge", "onto", "chain", "chain", "back", "back", "two people"])
        pair = {"player": name, "new_player": alias} if style == "onto" else {"player": alias, "new_player": name}
        if style != "two people":
            events.append((key, _build_event("player.renamed", f"rename {name}", at, **pair)))
        if style == "chain":
            longer = {"player": name, "new_player": f"{name} 3"}
            events.append((chance.uniform(key, end), _build_event("player.renamed", f"rename {alias}", at, **longer)))
        if style == "back":
            data = {"id": f"rename {name}", "reason": "two people after all"}
            events.append((chance.uniform(key, end), _build_event("event.voided", f"part {name}", at, **data)))
    return events


def _draw_variants(chance: random.Random, year: int, seed: int) -> list[Event]:
    """Draw versions of the monthly and the annual lists with other parameters, from some day of the year on."""
    events = []
    newest = {event["data"]["id"]: event["data"] for event in build_shipped_rulesets()}
    since = datetime(year, 1, 1) + timedelta(days=chance.choice([0, 14, 31, 45, 100, 180]))
    changes = {"catan-monthly": VARIANTS[seed % len(VARIANTS)]}
    if chance.random() < 0.5:
        changes["catan-annual"] = {"missing": chance.choice([1, 2, 4]), "cap_at_missing": chance.random() < 0.5}
    for ruleset_id, params in changes.items():
        if params:
            data = newest[ruleset_id] | {"version": "variant", "effective_from": f"{since:%Y-%m-%d}", "assumed": {}}
            data["params"] = data["params"] | params
            events.append(_build_event("ruleset.published", f"{ruleset_id} variant", "2015-01-01T00:00:00Z", **data))
    return events
