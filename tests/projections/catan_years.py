"""A year of Catan from a seed, for tests: games in two cities, and all that becomes of games, players and rules.

Every event has an id. The order is that of recording: late games, corrections and renames stand where they came in.
"""

import random
from calendar import monthrange
from datetime import datetime, timedelta
from typing import Any

from histories import ruleset

from ratings_ledger.projections.rulesets.versions import read_shipped_texts

Event = dict[str, Any]
# events with the moment at which they are recorded
Keyed = list[tuple[float, Event]]

YEARS = (2007, 2008, 2009, 2010, 2012, 2013)
PLAYERS = ("anna", "ben", "cleo", "dora", "Émile", "ζωή", "a b")
# they play together and share a place, so that their scores are often equal
TWINS = ("gus", "hal")
CITIES = ("7", "Köln")
GROUPS = ("basic", "cities-knights", "expansions")
CARDS = ("card-game", "card-tournament")
LEAVERS = ("abandoned", "surrendered", "removed")
# where days, months and years end in Berlin, in winter and in summer
EDGES = ("22:59:59.999999", "23:00:00", "23:30:00", "21:59:59.999999", "22:00:00", "22:30:00", "23:30:00")
# the nights when clocks change, and the moments around the change
CLOCKS = {
    2007: {3: 25, 10: 28}, 2008: {3: 30, 10: 26}, 2009: {3: 29, 10: 25}, 2010: {3: 28, 10: 31}, 2012: {3: 25, 10: 28},
    2013: {3: 31, 10: 27},
}  # fmt: skip
CHANGES = ("00:59:59.999999", "01:00:00", "01:30:00")
OTHER_POINTS = {"2": [2, 0], "3": [5, 2, 0], "4": [7, 4, 1, 0], "5": [9, 5, 2, 1, 0], "6": [9, 6, 3, 2, 1, 0]}
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"score": "sum"},
    {"gold_ties": "pool", "substitution": "leaver"},
    {"score": "sum", "gold_ties": "pool", "substitution": "substitute", "points": OTHER_POINTS, "min_games": 6},
    {"substitution": "both", "points": OTHER_POINTS, "gold": [3, 2, 2], "gold_ties": "pool"},
)


def shipped_lists() -> list[Event]:
    """The shipped versions of the three kinds of lists of Catan."""
    texts = [text for text in read_shipped_texts() if "catan-points/1" in text or "annual-places/1" in text]
    return [ruleset(text) | {"id": f"rules {number}"} for number, text in enumerate(texts)]


def year_of(seed: int) -> list[Event]:
    """The events of a year in the order of recording."""
    chance = random.Random(f"catan year {seed}")
    year = YEARS[seed % len(YEARS)]
    aliases = {name: f"{name}2" for name in chance.sample(PLAYERS, chance.randint(0, 3))}
    games = sorted(_games(chance, year), key=lambda game: str(game["occurred_at"]))
    order = chance.choice(["as played", "some late", "shuffled"])
    keyed: Keyed = [(-1, event) for event in shipped_lists()]
    met: dict[str, float] = {}
    for number, game in enumerate(games):
        late = order == "shuffled" or (order == "some late" and chance.random() < 0.1)
        key = chance.uniform(0, len(games)) if late else float(number)
        for at, event in [(key, game), *_changes(chance, year, game, key, len(games))]:
            keyed.append((at, _aliased(chance, event, aliases, met, at)))
    keyed += _accounts(chance, year, len(games))
    keyed += _renames(chance, aliases, met, len(games))
    keyed += [(chance.uniform(0, len(games)), event) for event in _variants(chance, year, seed)]
    ordered = sorted((key, number) for number, (key, _) in enumerate(keyed))
    return [keyed[number][1] for _, number in ordered]


def _event(type_name: str, event_id: str, at: str, **data: Any) -> Event:
    return {"type": type_name, "id": event_id, "occurred_at": at, "data": data}


def _games(chance: random.Random, year: int) -> list[Event]:
    """Of each month many games in one group of one city, and some of every other sort."""
    main = {"city": chance.choice(CITIES), "group": chance.choice(GROUPS)}
    regulars = chance.sample(PLAYERS, chance.randint(3, len(PLAYERS)))
    found: list[Event] = []
    for month in range(1, 13):
        busy = chance.choice([0, 3, 12, 15, 15, 18, 18, 18, 20])
        labels = [main] * busy
        labels += [{"city": chance.choice(CITIES), "group": chance.choice(GROUPS)} for _ in range(chance.randint(0, 4))]
        if chance.random() < 0.2:
            labels += [{"city": chance.choice(CITIES), "group": chance.choice([*GROUPS, *CARDS])}] * 9
        labels += chance.sample([{"group": "basic"}, {"city": "7"}, {}, {"city": "7", "group": CARDS[0]}], 1)
        twins = [*TWINS] if chance.random() < 0.7 else []
        for where in labels:
            data = {"game_id": f"g{len(found)}", "game": "catan", **where, **_result(chance, regulars, twins)}
            if chance.random() < 0.02:
                data["game"] = "club-catan"
            if chance.random() < 0.05:
                data |= chance.choice([{"rated": False}, {"aborted": True}])
            found.append(_event("game.recorded", f"game:g{len(found)}", _time(chance, year, month), **data))
    return found


def _time(chance: random.Random, year: int, month: int) -> str:
    """Some moment of a month, often one at which it matters which clock is looked at."""
    last = monthrange(year, month)[1]
    kind = chance.random()
    if kind < 0.12:
        return f"{year}-{month:02d}-{last}T{chance.choice(EDGES)}Z"
    if kind < 0.2 and month in CLOCKS[year]:
        return f"{year}-{month:02d}-{CLOCKS[year][month]}T{chance.choice(CHANGES)}Z"
    return f"{year}-{month:02d}-{chance.randint(1, last):02d}T{chance.randint(0, 23):02d}:{chance.randint(0, 3)}0:00Z"


def _result(chance: random.Random, regulars: list[str], twins: list[str]) -> dict[str, Any]:
    """Participants with places or scores, and what else belongs to them."""
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
        better = [other for other in level.values() if other < level[player]]
        row: dict[str, Any] = {"player": player}
        if style in ("competition", "dense", "both"):
            row["place"] = 1 + (len(set(better)) if style == "dense" else len(better))
        if style in ("scores", "both"):
            row["score"] = f"{9 - level[player]}.5" if level[player] % 2 else 10 - level[player]
        elif style == "low scores":
            row["score"] = level[player]
        participants.append(row)
    chance.shuffle(participants)
    _leave(chance, participants)
    return {"participants": participants, **({"score_order": "low"} if style == "low scores" else {})}


def _leave(chance: random.Random, participants: list[dict[str, Any]]) -> None:
    """Let some leave the game, most of them with a substitute."""
    leaving = chance.choice([0] * 16 + [1, 1, 1, 2])
    absent = [p for p in (*PLAYERS, *TWINS) if p not in [participant["player"] for participant in participants]]
    for leaver, substitute in zip(chance.sample(participants, leaving), absent, strict=False):
        decided = {name: leaver[name] for name in ("place", "score") if name in leaver}
        leaver["status"] = chance.choice(LEAVERS)
        if chance.random() < 0.7:
            participants.append({"player": substitute, "status": "substitute", "replaces": leaver["player"], **decided})
            if chance.random() < 0.5:
                for name in decided:
                    del leaver[name]


def _changes(chance: random.Random, year: int, game: Event, key: float, end: int) -> Keyed:
    """What becomes of a game after it is recorded: corrections of result, date, city and more; voids."""
    found: Keyed = []
    now, game_id, reason = dict(game["data"]), game["data"]["game_id"], 0
    voided = False
    while chance.random() < (0.07 if not found else 0.35):
        key, reason = chance.uniform(key, end), reason + 1
        decided = {"game_id": game_id, "reason": f"reason {reason}"}
        event_id = f"{game_id} change {reason}"
        if voided or chance.random() < 0.35:
            voided = not voided
            kind = "game.voided" if voided else "game.reinstated"
            found.append((key, _event(kind, event_id, "2015-01-01T00:00:00Z", **decided)))
            continue
        dated = {}
        what = chance.choice(["result", "date", "date", "city", "group", "rated"])
        if what == "result":
            now |= {"score_order": "high"} | _result(chance, list(PLAYERS), [*TWINS])
        elif what == "date":
            dated = {"occurred_at": _time(chance, year, chance.randint(1, 12))}
        elif what == "city":
            now["city"] = chance.choice(CITIES)
        elif what == "group":
            now["group"] = chance.choice([*GROUPS, *CARDS])
        else:
            now["rated"] = not now.get("rated", True)
        corrected = _event("game.corrected", event_id, "2015-01-01T00:00:00Z", **decided, game=now | dated)
        found.append((key, corrected))
    return found


def _aliased(chance: random.Random, event: Event, aliases: dict[str, str], met: dict[str, float], at: float) -> Event:
    """The event with other ids of some players; `met` is told who is named, and when first."""
    data = event["data"].get("game", event["data"])
    if "participants" not in data:
        return event
    used = {name: alias for name, alias in aliases.items() if chance.random() < 0.4}
    participants = []
    for participant in data["participants"]:
        named = {key: used.get(participant[key], participant[key]) for key in ("player", "replaces")
                 if key in participant}  # fmt: skip
        met[named["player"]] = min(at, met.get(named["player"], at))
        participants.append(participant | named)
    data = data | {"participants": participants}
    return event | {"data": event["data"] | {"game": data} if "game" in event["data"] else data}


def _accounts(chance: random.Random, year: int, end: int) -> Keyed:
    """Accounts that change during the year, at its last moment, at the first one behind it, at equal times."""
    found: Keyed = []
    edges = [f"{year}-12-31T22:59:59.999999Z", f"{year}-12-31T23:00:00Z", f"{year}-06-01T00:00:00Z"]
    for number, player in enumerate((*PLAYERS, *TWINS)):
        key = chance.uniform(0, end)
        if chance.random() < 0.3:
            data = {"player": player, "account": chance.choice(["free", "premium"])}
            at = f"{year - 1}-05-01T00:00:00Z"
            found.append((key, _event("player.registered", f"register {number}", at, **data)))
        for change in range(chance.choice([0, 0, 1, 2, 3])):
            at = chance.choice([*edges, _time(chance, year, chance.randint(1, 12))])
            event_id, key = f"account {number} {change}", chance.uniform(key, end)
            data = {"player": player, "account": chance.choice(["free", "free", "premium"])}
            found.append((key, _event("player.account_changed", event_id, at, **data)))
            while chance.random() < 0.15:
                data = {"id": event_id, "reason": "a mistake"}
                event_id, key = f"{event_id} back", chance.uniform(key, end)
                found.append((key, _event("event.voided", event_id, "2015-01-01T00:00:00Z", **data)))
    return found


def _renames(chance: random.Random, aliases: dict[str, str], met: dict[str, float], end: int) -> Keyed:
    """The two ids of a player become one, in either direction, along a chain, or not for long."""
    found: Keyed = []
    at = "2015-01-01T00:00:00Z"
    for name, alias in aliases.items():
        if name not in met or alias not in met:
            continue
        key = chance.uniform(max(met[name], met[alias]), end)
        how = chance.choice(["merge", "onto", "chain", "chain", "back", "back", "two people"])
        pair = {"player": name, "new_player": alias} if how == "onto" else {"player": alias, "new_player": name}
        if how != "two people":
            found.append((key, _event("player.renamed", f"rename {name}", at, **pair)))
        if how == "chain":
            longer = {"player": name, "new_player": f"{name} 3"}
            found.append((chance.uniform(key, end), _event("player.renamed", f"rename {alias}", at, **longer)))
        if how == "back":
            data = {"id": f"rename {name}", "reason": "two people after all"}
            found.append((chance.uniform(key, end), _event("event.voided", f"part {name}", at, **data)))
    return found


def _variants(chance: random.Random, year: int, seed: int) -> list[Event]:
    """Versions of the monthly and the annual lists with other parameters, from some day of the year on."""
    found = []
    newest = {event["data"]["id"]: event["data"] for event in shipped_lists()}
    since = datetime(year, 1, 1) + timedelta(days=chance.choice([0, 14, 31, 45, 100, 180]))
    changes = {"catan-monthly": VARIANTS[seed % len(VARIANTS)]}
    if chance.random() < 0.5:
        changes["catan-annual"] = {"missing": chance.choice([1, 2, 4]), "cap_at_missing": chance.random() < 0.5}
    for ruleset_id, params in changes.items():
        if params:
            data = newest[ruleset_id] | {"version": "variant", "effective_from": f"{since:%Y-%m-%d}", "assumed": {}}
            data["params"] = data["params"] | params
            found.append(_event("ruleset.published", f"{ruleset_id} variant", "2015-01-01T00:00:00Z", **data))
    return found
