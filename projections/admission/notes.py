"""Notes on what the events of a proposal begin or leave open, though they are recorded: new ladders, and leagues.

A typo in a group, city, league or season begins a ladder:

    catan-elo/basci begins, although catan-elo/basic exists: probably the latter was meant.

Months, years and bands of players do not matter here: new ones come up by themselves.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import CombinedEvents, EventLookup
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import Log, first_positions, read_live
from ratings_ledger.ledger.validation.leagues import PLAYERS, find_league, scheduled_games
from ratings_ledger.ledger.validation.names import find_close_names, find_similar_names
from ratings_ledger.projections.contract import FINISHED
from ratings_ledger.projections.facts.columns import ABORTED, LABELS, NONE, Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Labels, find_played_labels, label_indexes, labels_without
from ratings_ledger.projections.replay.eligibility import explain_ineligible
from ratings_ledger.projections.replay.ladders import list_partition_values
from ratings_ledger.projections.rulesets.versions import Version, in_force

# as many refused ladders are compared with those that there are
HINTS_MAX = 100


class Begun(NamedTuple):
    """A ladder that a game begins: its ruleset, the parts of its name, and which of them are labels."""

    ruleset_id: str
    values: Labels
    places: Sequence[int]

    @property
    def name(self) -> str:
        """As people write it."""
        return "/".join((self.ruleset_id, *self.values))

    @property
    def labels(self) -> Labels:
        """Return the labels in its name."""
        return tuple(self.values[place] for place in self.places)

    def with_label(self, number: int, label: str) -> str:
        """Return the name of the ladder with another label."""
        place = self.places[number]
        return self._replace(values=(*self.values[:place], label, *self.values[place + 1 :])).name


class NewLadders:
    """The ladders that the games of an import begin; `facts` returns the facts of the log before it."""

    def __init__(self, facts: Callable[[Connection], Facts], strict: bool = False) -> None:
        """With `strict`, a game that begins a ladder is refused."""
        self._facts_of = facts
        self._strict = strict
        self._there: dict[str, set[Labels]] = {}
        self._leagues: set[str] = set()
        # labels that cannot lead to anything new
        self._settled: set[tuple[str | None, ...]] = set()
        # by a refused ladder's name: the hint
        self._hints: dict[str, str] = {}
        self.found: list[Begun] = []

    def meet(
        self,
        connection: Connection,
        versions: Mapping[str, Sequence[Version]],
        game: Callable[[], Facts],
        occurred_at: int,
        data: Mapping[str, Any],
    ) -> None:
        """Note the ladders that a game begins; `game` returns the facts of that game alone.

        Raises `Refused` (new-ladder) when strict.
        """
        labels = tuple(map(data.get, LABELS))
        if labels in self._settled:
            return
        facts: Facts | None = None
        settled = True
        for known in versions.values():
            if not any(data["game"] in one.ruleset.scope.game for one in known) or not _named(known, data):
                continue
            facts = facts or game()
            version = in_force(known, occurred_at)
            if version is None or explain_ineligible(facts, 0, version.ruleset):
                settled = False  # another game with these labels may count
                continue
            for values in list_partition_values(facts, 0, version.ruleset):
                self._begin(connection, known, values, data)
        if settled:
            self._settled.add(labels)

    def _begin(
        self, connection: Connection, known: Sequence[Version], values: Labels, data: Mapping[str, Any]
    ) -> None:  # fmt: skip
        """Note or refuse a ladder, unless it already has a game."""
        ruleset = known[0].ruleset
        begun = Begun(ruleset.id, values, label_indexes(ruleset.partition.by))
        there = self._there_of(connection, known)
        created = "league" in ruleset.partition.by and data["league"] in self._leagues
        if begun.labels in there or created:
            return
        if self._strict:
            told = f"{quote(begun.name)} has no game yet{self._hint(begun)} (without --strict this one begins it)"
            raise Refused("new-ladder", told)
        there.add(begun.labels)
        self.found.append(begun)

    def _hint(self, refused: Begun) -> str:
        """Return what was probably meant by a ladder, if it is one of the first that are refused."""
        if refused.name not in self._hints and len(self._hints) < HINTS_MAX:
            meant = likes([refused], self._there[refused.ruleset_id]).get(refused.name)
            self._hints[refused.name] = "" if meant is None else f"; did you mean {meant}?"
        return self._hints.get(refused.name, "")

    def close(self) -> dict[str, str]:
        """Return the ladders found whose names are close to others, each with one of those."""
        found: dict[str, str] = {}
        for ruleset_id in dict.fromkeys(begun.ruleset_id for begun in self.found):
            of_ruleset = [begun for begun in self.found if begun.ruleset_id == ruleset_id]
            found |= likes(of_ruleset, self._there[ruleset_id])
        return found

    def _there_of(self, connection: Connection, known: Sequence[Version]) -> set[Labels]:
        """Return the labels of a ruleset's ladders that already have a game or an adjustment."""
        ruleset_id = known[0].ruleset.id
        if ruleset_id not in self._there:
            facts = self._facts_of(connection)
            self._leagues = {facts.texts[league.league] for league in facts.leagues}
            self._there[ruleset_id] = find_played_labels(facts, known)
        return self._there[ruleset_id]


def likes(new: Sequence[Begun], there: Collection[Labels]) -> dict[str, str]:
    """By name of a new ladder of one ruleset: another one, there or earlier among the new, that was probably meant.

    One of their labels is close or alike (`find_close_names`), and the others are the same. The time it takes grows
    with the sum of both, not with their product.
    """
    found: dict[str, str] = {}
    known = sorted({*there} - {begun.labels for begun in new})
    for number in range(len(new[0].places)):
        by_rest: dict[Labels, dict[str, Begun]] = {}
        for begun in new:
            by_rest.setdefault(labels_without(begun.labels, number), {})[begun.labels[number]] = begun
        others: dict[Labels, list[str]] = {rest: [] for rest in by_rest}
        for labels in known:
            if (rest := labels_without(labels, number)) in others:
                others[rest].append(labels[number])
        for rest, beginning in by_rest.items():
            slips = find_similar_names([*beginning], [*others[rest], *beginning]) | dict(
                find_close_names([*beginning], others[rest])
            )
            for label, meant in slips.items():
                found.setdefault(beginning[label].name, beginning[label].with_label(number, meant[0]))
    return found


def _named(known: Sequence[Version], data: Mapping[str, Any]) -> bool:
    """Tell whether a game has all the labels that name a ladder of a ruleset, if any do."""
    by = known[0].ruleset.partition.by
    places = label_indexes(by)
    return bool(places) and all(by[place] in data for place in places)


DAY = 86_400_000_000  # microseconds


class Activity(NamedTuple):
    """Who is active in a league: somebody with so many finished games in the last so many days."""

    games: int
    days: int
    time_zone: str

    def recent(self, finished: list[int], until: int) -> list[int]:
        """Return those of some games, in order of when they were finished, that count at an instant."""
        return finished[bisect_right(finished, until - self.days * DAY) : bisect_right(finished, until)]


class LeagueNotes:
    """Collects what there is to note about leagues while the events of a proposal are admitted."""

    def __init__(self) -> None:
        # the leagues of the log, and its scheduled games with their leagues, once they are needed
        self._recorded: set[str] | None = None
        self._scheduled: dict[str, str] | None = None
        self._created = set[str]()
        self._joined: dict[str, None] = {}
        # by game_id: its league, and who may play in it
        self._games: dict[str, tuple[str, Activity]] = {}
        # by league: a scheduled game that does not name it
        self._nameless: dict[str, str] = {}

    def meet_step(self, type_name: str, name: str) -> None:
        """Take note of a step of a league."""
        if type_name == "league.created":
            self._created.add(name)
        elif type_name == "league.joined":
            self._joined[name] = None

    def scheduled(self, connection: Connection, until: int | None = None) -> dict[str, str]:
        """Return the league of each scheduled game, by game_id. They are read once."""
        if self._scheduled is None:
            self._scheduled = scheduled_games(connection, until)
        return self._scheduled

    def meet_game(self, connection: Connection, until: int, data: Mapping[str, Any], activity: Activity | None) -> None:
        """Take note of a game, and of who is active when it is played, if its league asks for it."""
        name, game_id = data.get("league"), data["game_id"]
        if name is None:
            if (league := self.scheduled(connection, until).get(game_id)) is not None:
                self._nameless.setdefault(league, game_id)
        elif activity is not None:
            if self._recorded is None:
                created = read_live(connection, until=until, type_name="league.created")
                self._recorded = {event.data["league"] for event in created}
            if name in self._created or name in self._recorded:
                self._games[game_id] = name, activity

    def notes(self, connection: Connection, waiting: EventLookup) -> list[str]:
        """Return what the waiting events leave open."""
        nameless = [
            f"{game_id} is scheduled in the league {name}, but does not say so; fix it with: "
            f"ratings correct {shlex.quote(game_id)} --league {shlex.quote(name)} --reason TEXT"
            for name, game_id in self._nameless.items()
        ]
        leagues = [find_league(CombinedEvents(Log(connection), waiting), name) for name in self._joined]
        return nameless + [
            f"the league {league.name} has its {PLAYERS} players and no schedule; draw it with: "
            f"ratings league schedule {shlex.quote(league.name)}"
            for league in leagues
            if league is not None and len(league.players) == PLAYERS and league.scheduled is None
        ]

    def inactive(self, connection: Connection) -> list[str]:
        """Return, once the games are recorded, a note for each league in which somebody inactive has played."""
        if not self._games:
            return []
        facts = decode(connection)
        facts.check()
        rows = {name: facts.row_of(at) for name, at in first_positions(connection, [*self._games]).items()}
        live = {name: row for name, row in rows.items() if row != NONE and row not in facts.voided}
        finished = _finished(facts, live.values())
        found: dict[str, list[str]] = {}
        for game_id, row in live.items():
            league, activity = self._games[game_id]
            for p in _participants(facts, row):
                # the game itself makes nobody active in it
                recent = activity.recent(finished[facts.person_of(p)], facts.occurred_at[row] - 1)
                if len(recent) < activity.games:
                    found.setdefault(league, []).append(
                        f"{quote(facts.name_of(p))} played {game_id} of the league {league} with {len(recent)} of "
                        f"{activity.games} games finished in the {activity.days} days before; league games are for "
                        f"active players. It counts; to withdraw it: ratings void {shlex.quote(game_id)} --reason TEXT"
                    )
        return [
            first + (f" ({len(others):,} more like this in {league})" if others else "")
            for league, (first, *others) in found.items()
        ]


def _participants(facts: Facts, row: int) -> range:
    first = facts.start[row]
    return range(first, first + facts.count[row])


def _finished(facts: Facts, rows: Collection[int]) -> dict[int, list[int]]:
    """Return when the people in some games finished games, in order, by person."""
    found: dict[int, list[int]] = {facts.person_of(p): [] for row in rows for p in _participants(facts, row)}
    last = max((facts.occurred_at[row] for row in rows), default=0)
    for row, at in enumerate(facts.occurred_at):
        if at > last or row in facts.voided or facts.cell_of(row).flags & ABORTED:
            continue
        for p in _participants(facts, row):
            if facts.status[p] == FINISHED and (person := facts.person_of(p)) in found:
                found[person].append(at)
    return {person: sorted(instants) for person, instants in found.items()}
