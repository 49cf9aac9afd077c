"""Collect notes on valid events that may be unintended: new ladders with a similar name, and unfinished leagues.

A typo in a group, city, league or season creates a ladder:

    new ladder catan-elo/basci; did you mean catan-elo/basic?

Months, years and player-count bands are ignored, because new ones appear as a matter of course.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import CombinedEvents, EventLookup
from ratings_ledger.ledger.intake.matching import DAY_MICROSECONDS
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import Log, find_first_positions, read_live
from ratings_ledger.ledger.validation.leagues import PLAYERS_PER_LEAGUE, find_league, find_leagues_of_scheduled_games
from ratings_ledger.ledger.validation.names import find_close_names, find_similar_names
from ratings_ledger.projections.contract import FINISHED
from ratings_ledger.projections.facts.columns import ABORTED, LABELS, NONE, Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ledger_names import Labels, drop_label, find_played_labels
from ratings_ledger.projections.replay.eligibility import explain_ineligible
from ratings_ledger.projections.replay.ladder_names import find_label_indexes, parse_name
from ratings_ledger.projections.replay.streams import name_ladders_of_game
from ratings_ledger.projections.rulesets.versions import Version, in_force

# the maximum number of refused ladders for which a did-you-mean hint is computed
HINTS_MAX = 100


class NewLadder(NamedTuple):
    """A ladder that a game creates: its ruleset, the values in its name, and the indexes of the labels among them."""

    ruleset_id: str
    values: Labels
    label_indexes: Sequence[int]

    @property
    def name(self) -> str:
        """Return the ladder's full name."""
        return "/".join((self.ruleset_id, *self.values))

    @property
    def labels(self) -> Labels:
        """Return the labels in the name of the ladder."""
        return tuple(self.values[index] for index in self.label_indexes)

    def name_with_label(self, number: int, label: str) -> str:
        """Return the name of the ladder with another value for the label with this number."""
        index = self.label_indexes[number]
        return self._replace(values=(*self.values[:index], label, *self.values[index + 1 :])).name


class NewLadders:
    """The ladders that the games of an import create. `facts` returns the facts of the log before the import."""

    def __init__(self, facts: Callable[[Connection], Facts], strict: bool = False) -> None:
        """With `strict`, a game that creates a ladder is refused."""
        self._load_facts = facts
        self._strict = strict
        self._existing_labels: dict[str, set[Labels]] = {}
        self._leagues: set[str] = set()
        # label combinations that cannot create another ladder
        self._checked: set[tuple[str | None, ...]] = set()
        # did-you-mean hints by the name of a refused ladder
        self._hints: dict[str, str] = {}
        self.ladders: list[NewLadder] = []

    def check_game(
        self,
        connection: Connection,
        versions: Mapping[str, Sequence[Version]],
        game: Callable[[], Facts],
        occurred_at: int,
        data: Mapping[str, Any],
    ) -> None:
        """Collect the ladders that a game creates; `game` returns facts with only this game.

        If strict, raise `Refused` (new-ladder) instead.
        """
        labels = tuple(map(data.get, LABELS))
        if labels in self._checked:
            return
        facts: Facts | None = None
        is_final = True
        for ruleset_versions in versions.values():
            in_scope = any(data["game"] in version.ruleset.scope.game for version in ruleset_versions)
            if not in_scope or not _has_ladder_labels(ruleset_versions, data):
                continue
            facts = facts or game()
            version = in_force(ruleset_versions, occurred_at)
            if version is None or explain_ineligible(facts, 0, version.ruleset):
                is_final = False  # another game with these labels may count
                continue
            for name in name_ladders_of_game(facts, 0, version.ruleset):
                self._add_ladder(connection, ruleset_versions, name, data)
        if is_final:
            self._checked.add(labels)

    def _add_ladder(
        self, connection: Connection, versions: Sequence[Version], name: str, data: Mapping[str, Any]
    ) -> None:
        """Add or refuse a ladder, unless it already has a game."""
        ruleset = versions[0].ruleset
        ladder = NewLadder(*parse_name(name), find_label_indexes(ruleset.partition.by))
        existing = self._load_existing_labels(connection, versions)
        has_league = "league" in ruleset.partition.by and data["league"] in self._leagues
        if ladder.labels in existing or has_league:
            return
        if self._strict:
            problem = f"{quote(ladder.name)} is a new ladder{self._suggest_similar(ladder)}"
            raise Refused("new-ladder", f"{problem}; to create it, omit --strict")
        existing.add(ladder.labels)
        self.ladders.append(ladder)

    def _suggest_similar(self, refused: NewLadder) -> str:
        """Return a did-you-mean hint for a refused ladder; empty if no name is similar, or after `HINTS_MAX` hints."""
        if refused.name not in self._hints and len(self._hints) < HINTS_MAX:
            similar_name = suggest_ladders([refused], self._existing_labels[refused.ruleset_id]).get(refused.name)
            self._hints[refused.name] = "" if similar_name is None else f"; did you mean {similar_name}?"
        return self._hints.get(refused.name, "")

    def find_similar(self) -> dict[str, str]:
        """Return the name of a similar ladder for each new ladder that has one, by name: it may be a typo."""
        similar: dict[str, str] = {}
        for ruleset_id in dict.fromkeys(ladder.ruleset_id for ladder in self.ladders):
            ladders = [ladder for ladder in self.ladders if ladder.ruleset_id == ruleset_id]
            similar |= suggest_ladders(ladders, self._existing_labels[ruleset_id])
        return similar

    def _load_existing_labels(self, connection: Connection, versions: Sequence[Version]) -> set[Labels]:
        """Return the labels of a ruleset's ladders that already have a game or an adjustment."""
        ruleset_id = versions[0].ruleset.id
        if ruleset_id not in self._existing_labels:
            facts = self._load_facts(connection)
            self._leagues = {facts.texts[league.league] for league in facts.leagues}
            self._existing_labels[ruleset_id] = find_played_labels(facts, versions)
        return self._existing_labels[ruleset_id]


def suggest_ladders(new: Sequence[NewLadder], existing: Collection[Labels]) -> dict[str, str]:
    """Return the name of a similar ladder, existing or new, for each new ladder of a ruleset that has one, by name.

    Two names are similar if exactly one label differs, and its two values are similar (`find_similar_names`) or close
    (`find_close_names`). The time grows with the number of new ladders plus the number of existing ones, not with their
    product.
    """
    suggestions: dict[str, str] = {}
    old_labels = sorted({*existing} - {ladder.labels for ladder in new})
    for number in range(len(new[0].label_indexes)):
        # group the ladders by all labels except this one
        new_by_others: dict[Labels, dict[str, NewLadder]] = {}
        for ladder in new:
            new_by_others.setdefault(drop_label(ladder.labels, number), {})[ladder.labels[number]] = ladder
        existing_by_others: dict[Labels, list[str]] = {other_labels: [] for other_labels in new_by_others}
        for labels in old_labels:
            if (other_labels := drop_label(labels, number)) in existing_by_others:
                existing_by_others[other_labels].append(labels[number])
        for other_labels, new_by_label in new_by_others.items():
            typos = find_similar_names([*new_by_label], [*existing_by_others[other_labels], *new_by_label]) | dict(
                find_close_names([*new_by_label], existing_by_others[other_labels])
            )
            for label, similar_labels in typos.items():
                suggestions.setdefault(
                    new_by_label[label].name, new_by_label[label].name_with_label(number, similar_labels[0])
                )
    return suggestions


def _has_ladder_labels(versions: Sequence[Version], data: Mapping[str, Any]) -> bool:
    """Tell whether a ruleset partitions by labels and a game has all of these labels."""
    by = versions[0].ruleset.partition.by
    indexes = find_label_indexes(by)
    return bool(indexes) and all(by[index] in data for index in indexes)


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
        """Record that a league was created or joined."""
        if type_name == "league.created":
            self._created_leagues.add(league)
        elif type_name == "league.joined":
            self._joined_leagues[league] = None

    def load_scheduled_games(self, connection: Connection, until: int | None = None) -> dict[str, str]:
        """Return the league of each scheduled game, by game id. The schedules are read only once."""
        if self._league_by_game is None:
            self._league_by_game = find_leagues_of_scheduled_games(connection, until)
        return self._league_by_game

    def add_game(
        self,
        connection: Connection,
        until: int,
        data: Mapping[str, Any],
        requirement: ActivityRequirement | None,
    ) -> None:
        """Record a game, with the activity requirement that the players of its league must meet, if any."""
        league, game_id = data.get("league"), data["game_id"]
        if league is None:
            if (scheduled_league := self.load_scheduled_games(connection, until).get(game_id)) is not None:
                self._unlabelled_games.setdefault(scheduled_league, game_id)
        elif requirement is not None:
            if self._recorded_leagues is None:
                events = read_live(connection, until=until, type_name="league.created")
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

    def describe_inactive_players(self, connection: Connection) -> list[str]:
        """Return a note for each league with games of inactive players. The games must have been recorded."""
        if not self._games:
            return []
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
                        f"{quote(facts.name_of(slot))} had finished only {len(recent)} of the required "
                        f"{requirement.games} games in the {requirement.days} days before game {game_id} of league "
                        f"{league}. The game counts; to void it: ratings void {shlex.quote(game_id)} --reason TEXT"
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
