"""Notes on leagues: what the events of a proposal leave open, or should not have been, though they are recorded."""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import Both, Events
from ratings_ledger.ledger.rejections import shown
from ratings_ledger.ledger.store.log import Log, first_positions, read_live
from ratings_ledger.ledger.validation.leagues import PLAYERS, league_of, scheduled_games
from ratings_ledger.projections.contract import FINISHED
from ratings_ledger.projections.facts.columns import ABORTED, NONE, Facts
from ratings_ledger.projections.facts.decoding import decode

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

    def notes(self, connection: Connection, waiting: Events) -> list[str]:
        """Return what the waiting events leave open."""
        nameless = [
            f"{game_id} is scheduled in the league {name}, but does not say so; fix it with: "
            f"ratings correct {quote(game_id)} --league {quote(name)} --reason TEXT"
            for name, game_id in self._nameless.items()
        ]
        leagues = [league_of(Both(Log(connection), waiting), name) for name in self._joined]
        return nameless + [
            f"the league {league.name} has its {PLAYERS} players and no schedule; draw it with: "
            f"ratings league schedule {quote(league.name)}"
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
                        f"{shown(facts.name_of(p))} played {game_id} of the league {league} with {len(recent)} of "
                        f"{activity.games} games finished in the {activity.days} days before; league games are for "
                        f"active players. It counts; to withdraw it: ratings void {quote(game_id)} --reason TEXT"
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
