"""The lists of Catan by the book, for tests: dictionaries and fractions, and nothing shared with the program.

In go events as files hold them, in the order in which they were recorded, each with its id; out come the lists that
people would write down: for every name the ruleset, how many games count, and the rows as JSON shows them.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

Event = dict[str, Any]


class Played(NamedTuple):
    """A game as it stands after all corrections: when it ended, the number of its record, its data."""

    at: datetime
    number: int
    game: dict[str, Any]
    voided: bool = False

    @property
    def local(self) -> datetime:
        """When it ended by the clocks of Berlin."""
        return berlin(self.at)


class Written(NamedTuple):
    """A list."""

    ruleset: str
    games: int
    rows: list[dict[str, Any]]


def instant(text: str) -> datetime:
    """A time of an event, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=None)


def berlin(at: datetime) -> datetime:
    """Since 1996 it is summer from the last Sunday of March to that of October, each time at 1:00 UTC."""
    return at + timedelta(hours=2 if last_sunday(at.year, 3) <= at < last_sunday(at.year, 10) else 1)


@cache
def last_sunday(year: int, month: int) -> datetime:
    """One in the morning of the last Sunday of a month of 31 days."""
    last = datetime(year, month, 31, 1)
    return last - timedelta(days=(last.weekday() + 1) % 7)


def standing(events: list[Event]) -> list[Event]:
    """The events that nobody withdrew; what withdrew them may be withdrawn, too."""
    about: dict[str, list[str]] = defaultdict(list)
    for event in events:
        if event["type"] == "event.voided":
            about[event["data"]["id"]].append(event["id"])

    def stands(event_id: str) -> bool:
        return not any(stands(other) for other in about.get(event_id, ()))

    return [event for event in events if stands(event["id"])]


def played(events: list[Event], as_of: datetime | None = None) -> list[Played]:
    """The games of Catan that count for anything, in the order played."""
    found: dict[str, Played] = {}
    for number, event in enumerate(events):
        data = event["data"]
        if event["type"] == "game.recorded":
            found[data["game_id"]] = Played(instant(event["occurred_at"]), number, data)
        elif event["type"] == "game.corrected":
            game, before = dict(data["game"]), found[data["game_id"]]
            at = instant(game.pop("occurred_at")) if "occurred_at" in game else before.at
            found[data["game_id"]] = Played(at, before.number, game)
        elif event["type"] in ("game.voided", "game.reinstated"):
            voided = event["type"] == "game.voided"
            found[data["game_id"]] = found[data["game_id"]]._replace(voided=voided)
    return sorted(
        one for one in found.values()
        if one.game["game"] == "catan" and not one.voided and one.game.get("rated", True)
        and not one.game.get("aborted", False) and (as_of is None or one.at <= as_of)
    )  # fmt: skip


def person(events: list[Event], name: str) -> str:
    """The id that somebody has in the end."""
    following = {e["data"]["player"]: e["data"]["new_player"] for e in events if e["type"] == "player.renamed"}
    while name in following:
        name = following[name]
    return name


def seats(game: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Who sat down on each seat, who rose from it, and what decides its place, the less the better."""
    substitutes = {p["replaces"]: p for p in game["participants"] if "replaces" in p}
    low = game.get("score_order") == "low"
    for participant in game["participants"]:
        if "replaces" not in participant:
            last = substitutes.get(participant["player"], participant)
            merit = last["place"] if "place" in last else Decimal(last["score"]) * (1 if low else -1)
            yield participant["player"], last["player"], merit


def counting(first: str, last: str, substitution: str) -> list[str]:
    """Who of a seat counts."""
    if first == last:
        return [first]
    return {"none": [], "leaver": [first], "substitute": [last], "both": [first, last]}[substitution]


def points(game: dict[str, Any], params: dict[str, Any]) -> Iterator[tuple[str, Fraction]]:
    """What each player of a game gets: the tied places put their points together and share them."""
    seated = list(seats(game))
    row = params["points"][str(len(seated))]
    for first, last, merit in seated:
        better = sum(other < merit for _, _, other in seated)
        tied = sum(other == merit for _, _, other in seated)
        for player in counting(first, last, params["substitution"]):
            yield player, Fraction(sum(row[better : better + tied]), tied)


def version_on(events: list[Event], ruleset_id: str, day: str) -> dict[str, Any] | None:
    """The version of a ruleset in force on a day, if one is; of those from the same day the one published last."""
    known = [e["data"] for e in events if e["type"] == "ruleset.published" and e["data"]["id"] == ruleset_id]
    known = [version for version in known if version["effective_from"] <= day]
    return max(enumerate(known), key=lambda v: (v[1]["effective_from"], v[0]), default=(0, None))[1]


def cell(version: dict[str, Any], one: Played) -> str | None:
    """The name of the list that a game is on, or None."""
    if one.game.get("group") in version["scope"].get("exclude_group", ()):
        return None
    said = {**one.game, "month": f"{one.local:%Y-%m}", "year": f"{one.local:%Y}"}
    values = [said.get(part) for part in version["partition"]["by"]]
    return None if None in values else "/".join([version["id"], *values])


def month_lists(events: list[Event], ruleset_id: str, as_of: datetime | None = None) -> dict[str, Written]:
    """All monthly or open lists."""
    events = standing(events)
    given: dict[str, dict[str, list[Fraction]]] = defaultdict(lambda: defaultdict(list))
    games: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in played(events, as_of):
        version = version_on(events, ruleset_id, f"{one.local:%Y-%m-%d}")
        name = None if version is None else cell(version, one)
        scored = [] if name is None else list(points(one.game, version["params"]))
        for player, amount in scored:
            given[name][person(events, player)].append(amount)
        if scored:
            games[name].append(version)
    return {name: Written(name_of(games[name][-1]), len(games[name]), month_rows(games[name][-1], players))
            for name, players in given.items()}  # fmt: skip


def name_of(version: dict[str, Any]) -> str:
    """As lists name a version."""
    return f"{version['id']}@{version['version']}"


def month_rows(version: dict[str, Any], given: dict[str, list[Fraction]]) -> list[Any]:
    """The rows of one list, as a version ranks it."""
    params = version["params"]
    score = {p: sum(each) / (len(each) if params["score"] == "mean" else 1) for p, each in given.items()}
    ranked = [player for player, each in given.items() if len(each) >= params["min_games"]]
    rows = []
    for player in sorted(given, key=lambda player: (player not in ranked, -score[player], player)):
        place = 1 + sum(score[other] > score[player] for other in ranked)
        tied = sum(score[other] == score[player] for other in ranked)
        row = {
            "rank": place if player in ranked else None, "player": player, "points": str(score[player]),
            "games": len(given[player]), "qualified": player in ranked,
        }  # fmt: skip
        if "gold" in params:
            pay = params["gold"] + [0] * len(given)
            pooled = sum(pay[place - 1 : place - 1 + tied]) // tied if tied else 0
            gold = pooled if params.get("gold_ties") == "pool" else pay[place - 1]
            row["gold"] = gold if player in ranked else 0
        rows.append(row)
    return rows


def account(events: list[Event], player: str, at: datetime) -> str:
    """The account that somebody has at a time; premium if nothing is known."""
    told = [
        (instant(e["occurred_at"]), number, e["data"].get("account", "premium"))
        for number, e in enumerate(events)
        if e["type"] in ("player.registered", "player.account_changed")
        and person(events, e["data"]["player"]) == player
    ]  # fmt: skip
    return max([each for each in told if each[0] <= at], default=(at, 0, "premium"))[2]


def year_lists(events: list[Event], months: dict[str, Written], as_of: datetime | None = None) -> dict[str, Written]:
    """All annual lists, from the monthly ones."""
    events = standing(events)
    names: set[str] = set()
    for one in played(events, as_of):
        version = version_on(events, "catan-annual", f"{one.local:%Y-%m-%d}")
        name = None if version is None else cell(version, one)
        if name and any(counting(first, last, "none") for first, last, _ in seats(one.game)):
            names.add(name)
    return {name: year_of_months(events, name, months, as_of) for name in names}


def year_of_months(events: list[Event], name: str, months: dict[str, Written], as_of: datetime | None) -> Written:
    """One annual list; its games are those of its months."""
    _, city, group, year = name.split("/")
    version = version_on(events, "catan-annual", f"{year}-12-31")
    params = version["params"]
    places: dict[str, list[int]] = defaultdict(list)
    games: dict[str, int] = defaultdict(int)
    total = 0
    for month in range(1, 13):
        written = months.get(f"catan-monthly/{city}/{group}/{year}-{month:02d}")
        total += written.games if written else 0
        for row in written.rows if written else ():
            games[row["player"]] += row["games"]
            if row["rank"] is not None:
                worst = params["missing"] if params["cap_at_missing"] else row["rank"]
                places[row["player"]].append(min(row["rank"], worst))
    end = datetime(int(year), 12, 31, 22, 59, 59, 999_999)
    best = {
        player: sorted((sorted(each) + [params["missing"]] * 4)[:4] if len(each) < 4 else sorted(each)[:4])
        for player, each in places.items()
    }
    ranked = [
        player for player in best
        if group in params["any_account"] or account(events, player, min(end, as_of or end)) == "premium"
    ]  # fmt: skip
    rows = [
        {
            "rank": 1 + sum(sum(best[other]) < sum(best[player]) for other in ranked) if player in ranked else None,
            "player": player, "points": str(sum(best[player])), "games": games[player],
            "qualified": player in ranked, "places": best[player],
        }
        for player in sorted(best, key=lambda player: (player not in ranked, sum(best[player]), player))
    ]  # fmt: skip
    return Written(name_of(version), total, rows)
