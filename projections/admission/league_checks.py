"""Check that players who join a league are active, and collect notes on unfinished leagues and inactive players."""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import CombinedEvents, EventLookup
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.intake.matching import DAY_MICROSECONDS
from ratings_ledger.ledger.rejections import Refused, count, quote
from ratings_ledger.ledger.store.log import Log, find_first_positions, read_live
from ratings_ledger.ledger.validation.leagues import PLAYERS_PER_LEAGUE, find_league, find_leagues_of_scheduled_games
from ratings_ledger.projections.contract import FINISHED
from ratings_ledger.projections.facts.columns import ABORTED, NONE, Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.rulesets.versions import Version, in_force


class ActivityRequirement(NamedTuple):
    """A league's activity requirement: at least `games` finished games within the last `days` days.

    The `time_zone` is the ruleset's, in which a deadline is stated.
    """

    games: int
    days: int
    time_zone: str

    def select_recent(self, finished: list[int], until: int) -> list[int]:
        """Return the finish times in the `days` days up to `until`; `finished` has all finish times, sorted."""
        return finished[bisect_right(finished, until - self.days * DAY_MICROSECONDS) : bisect_right(finished, until)]


def find_requirements(versions: Mapping[str, Sequence[Version]], game: str, at: int) -> Iterator[ActivityRequirement]:
    """Yield the activity requirement of each ruleset that scores leagues of a game and has one at an instant."""
    for ruleset_versions in versions.values():
        version = in_force(ruleset_versions, at)
        if version is None or game not in version.ruleset.scope.game:
            continue
        games = getattr(version.params, "active_games", 0)
        if version.ruleset.partition.by == ["league"] and games:
            days = getattr(version.params, "active_days", 0)
            yield ActivityRequirement(games, days, version.ruleset.time_zone)


def refuse_inactive(versions: Mapping[str, Sequence[Version]], occurred_at: int, data: dict[str, Any]) -> None:
    """Raise `Refused` (not-active) if a player may not join a league.

    `data` has the league's game, and the sorted times at which the player finished games.
    """
    for requirement in find_requirements(versions, data["game"], occurred_at):
        recent = requirement.select_recent(data["finished"], occurred_at)
        if len(recent) < requirement.games:
            raise Refused("not-active", _describe_missing_games(data["player"], recent, requirement))


def _describe_missing_games(player: str, recent: list[int], requirement: ActivityRequirement) -> str:
    """Describe the games that a player must still finish to be active, and the deadline."""
    required_count, days, time_zone = requirement
    missing_count = required_count - len(recent)
    period = count(days, "day")
    problem = f"{quote(player)} has finished {len(recent)} of {count(required_count, 'game')} in the last {period}"
    needed = f"{missing_count} more {'is' if missing_count == 1 else 'are'} needed"
    if not recent:
        return f"{problem}; {needed} within {period}"
    # on the last day, the oldest recent game still counts
    last_day = local_time(min(recent) + days * DAY_MICROSECONDS - 1, time_zone).date()
    return f"{problem}; {needed} by {last_day}"


class LeagueNotes:
    """The notes about leagues that are collected while proposed events are checked."""

    def __init__(self) -> None:
        # the recorded leagues, and the league of each scheduled game; both are read when first needed
        self._recorded_leagues: set[str] | None = None
        self._league_by_game: dict[str, str] | None = None
        # the proposed leagues, and the leagues of proposed subscriptions
        self._created_leagues = set[str]()
        self._joined_leagues: dict[str, None] = {}
        # the league and activity requirement of each proposed league game, by game id
        self._games: dict[str, tuple[str, ActivityRequirement]] = {}
        # by league: a proposed game that is scheduled in the league but lacks its label
        self._unlabelled_games: dict[str, str] = {}

    def add_league_event(self, type_name: str, league: str) -> None:
        """Note that a proposed event creates or joins a league."""
        if type_name == "league.created":
            self._created_leagues.add(league)
        elif type_name == "league.joined":
            self._joined_leagues[league] = None

    def load_scheduled_games(self, connection: Connection, until_position: int | None = None) -> dict[str, str]:
        """Return the league of each scheduled game, by game id. The schedules are read only once."""
        if self._league_by_game is None:
            self._league_by_game = find_leagues_of_scheduled_games(connection, until_position)
        return self._league_by_game

    def add_game(
        self,
        connection: Connection,
        until_position: int,
        data: Mapping[str, Any],
        requirement: ActivityRequirement | None,
    ) -> None:
        """Note a proposed game, with the activity requirement that the players of its league must meet, if any."""
        league, game_id = data.get("league"), data["game_id"]
        if league is None:
            if (scheduled_league := self.load_scheduled_games(connection, until_position).get(game_id)) is not None:
                self._unlabelled_games.setdefault(scheduled_league, game_id)
        elif requirement is not None:
            if self._recorded_leagues is None:
                events = read_live(connection, until=until_position, type_name="league.created")
                self._recorded_leagues = {event.data["league"] for event in events}
            if league in self._created_leagues or league in self._recorded_leagues:
                self._games[game_id] = league, requirement

    def describe(self, connection: Connection, waiting: EventLookup) -> list[str]:
        """Return the notes about unlabelled league games and about full leagues without a schedule."""
        notes = [
            f"{game_id} is scheduled in league {league} but recorded without a league; to fix it: "
            f"ratings correct {shlex.quote(game_id)} --league {shlex.quote(league)} --reason TEXT"
            for league, game_id in self._unlabelled_games.items()
        ]
        leagues = [find_league(CombinedEvents(Log(connection), waiting), name) for name in self._joined_leagues]
        return notes + [
            f"league {league.name} is full but has no schedule; to create one: "
            f"ratings league schedule {shlex.quote(league.name)}"
            for league in leagues
            if league is not None and len(league.players) == PLAYERS_PER_LEAGUE and league.schedule_event is None
        ]

    @property
    def has_games(self) -> bool:
        """Tell whether any proposed game has players who must be active."""
        return bool(self._games)

    def describe_inactive_players(self, connection: Connection) -> list[str]:
        """Return a note for each league with games of inactive players. The games must have been recorded."""
        facts = decode(connection)
        facts.check()
        positions = find_first_positions(connection, [*self._games])
        rows = {game_id: facts.row_of(position) for game_id, position in positions.items()}
        live_rows = {game_id: row for game_id, row in rows.items() if row != NONE and row not in facts.voided}
        finish_times = _list_finish_times(facts, live_rows.values())
        notes: dict[str, list[str]] = {}
        for game_id, row in live_rows.items():
            league, requirement = self._games[game_id]
            for slot in _list_slots(facts, row):
                # a game does not count towards its own activity requirement
                until = facts.occurred_at[row] - 1
                recent = requirement.select_recent(finish_times[facts.person_of(slot)], until)
                if len(recent) < requirement.games:
                    notes.setdefault(league, []).append(
                        f"{quote(facts.name_of(slot))} had finished only {len(recent)} of "
                        f"{count(requirement.games, 'required game')} in the {count(requirement.days, 'day')} before "
                        f"game {game_id} of league {league}. The game counts; to void it: "
                        f"ratings void {shlex.quote(game_id)} --reason TEXT"
                    )
        return [
            first + (f" ({len(more):,} more in {league})" if more else "") for league, (first, *more) in notes.items()
        ]


def _list_slots(facts: Facts, row: int) -> range:
    first = facts.start[row]
    return range(first, first + facts.count[row])


def _list_finish_times(facts: Facts, rows: Collection[int]) -> dict[int, list[int]]:
    """Return the sorted times at which each participant of some games finished any game, by person.

    Times after the last of these games are left out.
    """
    times: dict[int, list[int]] = {facts.person_of(slot): [] for row in rows for slot in _list_slots(facts, row)}
    last_time = max((facts.occurred_at[row] for row in rows), default=0)
    for row, instant in enumerate(facts.occurred_at):
        if instant > last_time or row in facts.voided or facts.cell_of(row).flags & ABORTED:
            continue
        for slot in _list_slots(facts, row):
            if facts.status[slot] == FINISHED and (person := facts.person_of(slot)) in times:
                times[person].append(instant)
    return {person: sorted(instants) for person, instants in times.items()}
