"""A snapshot: the ledger at coordinates. Every query is one of its methods.

What was played up to `as_of`, as known at `known_at`, under the rulesets' own timelines or the one version `rules`. A
date ends in the ledger's home zone or, without one, in the zone of the ladder's ruleset. With `close_now`, games that
wait in open rating periods are scored as if these closed now: every answer about ladders then has them. Facts are
decoded once per position, and ladders made once per moment. A method imports its query module when it is called, so
that a command waits for no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.log import Log, first_positions, head
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.ledger.validation.leagues import find_league
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    date_zone,
    moment,
    parse_as_of,
    parse_since,
    resolve_known_at,
    resolve_since,
)
from ratings_ledger.projections.queries.known_names import full_name, similar_name
from ratings_ledger.projections.queries.ladders_at import (
    Ladders,
    check_version,
    current_ids,
    monthly_ladders,
    require_player,
    suggest_ladder,
)
from ratings_ledger.projections.queries.published import Publication
from ratings_ledger.projections.queries.results import Failed, LastEvent
from ratings_ledger.projections.queries.snapshot_reader import SnapshotReader, retry_on_damaged_cache
from ratings_ledger.projections.queries.standings import (
    Balance,
    Standings,
    build_balance,
    build_standings,
    describe_open_period,
    period_state,
    select_rows,
)
from ratings_ledger.projections.replay.ladders import drop_duplicate_ladders, parse_name
from ratings_ledger.projections.rulesets.versions import newest

if TYPE_CHECKING:
    from ratings_ledger.projections.diff.comparison import SideLoader
    from ratings_ledger.projections.diff.decisions import Decisions
    from ratings_ledger.projections.diff.event_impacts import EventImpact
    from ratings_ledger.projections.diff.other_results import OtherResult
    from ratings_ledger.projections.diff.published_lists import PublishedListDiff
    from ratings_ledger.projections.diff.statements import Statement
    from ratings_ledger.projections.diff.what_if import Simulation
    from ratings_ledger.projections.queries.clocks import ClockExplanation, ClockState
    from ratings_ledger.projections.queries.explain import GameExplanation, PlayerExplanation
    from ratings_ledger.projections.queries.forecast import Prediction
    from ratings_ledger.projections.queries.game_timelines import GameTimeline
    from ratings_ledger.projections.queries.games_log import RecordedEvents, RecordedGame, RecordedGames
    from ratings_ledger.projections.queries.history import History, PlayerChange, Ranks
    from ratings_ledger.projections.queries.leagues import AllLeagues, LeagueState, Unmet
    from ratings_ledger.projections.queries.players import Person, PlayerStatistics, Profile
    from ratings_ledger.projections.queries.published import Publications
    from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetState
    from ratings_ledger.projections.queries.standings import Overview
    from ratings_ledger.projections.queries.survey import AllLadders, AllLists, Everybody


class Snapshot(SnapshotReader):
    """The ledger at one set of coordinates; every query is a method.

    Unless a method says otherwise, it raises `BadArgument` for coordinates that mean nothing, `StoreUnavailable`, and:
    where it takes a ladder, `Unknown`, `RuleFailed` and `RulesetUnusable`; where it takes a player or a game, `Unknown`
    for one that is not recorded.
    """

    @contextmanager
    def sides(self) -> Iterator[SideLoader]:
        """Provide the ladders at any coordinates, to be compared; its own ones do not count.

        Raises `StoreUnavailable`.
        """
        from ratings_ledger.projections.diff.comparison import SideLoader

        with self.connect() as connection:
            yield SideLoader(connection, self.note, self._cache.empty_copy())

    # -- all ladders

    def ladders(self) -> AllLadders:
        """Return the ladders that have games or adjustments."""
        from ratings_ledger.projections.queries.survey import all_ladders

        with self.survey() as survey:
            return all_ladders(survey)

    def everybody(self) -> Everybody:
        """Return the rank and points of every player on every ladder."""
        from ratings_ledger.projections.queries.survey import everybody

        with self.survey() as survey:
            return everybody(survey)

    def lists(self, period: str | None = None) -> AllLists:
        """Return the lists of months and years, or of one period (YYYY or YYYY-MM), and the published ones.

        Of the coordinates only `known_at` decides which lists were published.
        """
        from ratings_ledger.projections.queries.survey import all_lists

        with self.survey() as survey:
            return all_lists(survey, period)

    def statistics(self, player: str, game: str | None = None) -> PlayerStatistics:
        """Return what a player started and finished, their stars and their gold; of one game, or of all."""
        from ratings_ledger.projections.queries.players import player_statistics

        with self.survey() as survey:
            return player_statistics(survey, player, game)

    def person(self, player: str) -> Person:
        """Return the statistics of a player who is on a ladder, with their earlier ids and all their ranks."""
        from ratings_ledger.projections.queries.players import person_of

        with self.survey() as survey:
            return person_of(survey, player)

    def only_ladder(self) -> str:
        """Return the only ladder with games or adjustments. Raises `BadArgument` if there are several."""
        from ratings_ledger.projections.queries.survey import choose_only_ladder

        ladders = self.ladders()
        for reason in (*ladders.unusable, *ladders.failed):
            self.note(reason)  # which may be why it is the only one
        rows = sorted(drop_duplicate_ladders(ladders.rows), key=lambda row: -row.games)
        return choose_only_ladder(rows, as_of=self.as_of, unscored=ladders.unscored)

    def with_ladder(self, one: str, other: str | None, is_player: bool = True) -> tuple[str, str]:
        """Return a player and a ladder, given in either order, or with the only ladder that the player is on.

        Args:
            is_player: with False, a game may be meant, with the only ladder on which it counts, apart from duplicates.

        Raises `BadArgument` if several ladders may be meant.
        """
        if other is not None:
            return self._order_arguments(one, other)
        if "/" in one:
            raise BadArgument(f"{quote(one)} is a ladder; name a player or a game, too", "player")
        from ratings_ledger.projections.queries.game_timelines import LADDERS_OF_PLAYER, ladders_meant, same_on
        from ratings_ledger.projections.queries.survey import choose_only_ladder

        with self.survey() as survey:
            own, of_game = ladders_meant(survey, one, is_player)
        if of_game and (ladder := same_on(self.explain(name, one) for name in of_game)):
            return one, ladder
        return one, choose_only_ladder(own, f" that {quote(one)} is on", self.as_of, listed=LADDERS_OF_PLAYER)

    def every_standings(self, ladders: Collection[str] = ()) -> Iterator[Standings | Failed]:
        """Yield the standings of the named ladders or of all, and in between what fails.

        Raises before the first.
        """
        from ratings_ledger.projections.queries.survey import every_standings

        with self.survey() as survey:
            ladders = [*dict.fromkeys(full_name(survey.facts, ladder) for ladder in ladders)]
            for ladder in ladders:
                undated = Ladders(survey.facts)
                undated.versions(ladder)
                if undated.first_moment(ladder) is None and (message := suggest_ladder(survey.facts, ladder)):
                    self.note(message)
            yield from every_standings(survey, ladders)

    # -- one ladder

    @retry_on_damaged_cache
    def standings(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> Standings:
        """Return the standings: the first `limit` rows (0: all), or those of some players."""
        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            current = current_ids(query.ladders.facts, players)
            ranking = query.ladders.standings(ladder)
            unfinished = describe_open_period(query.ladders, ladder)
            rows = select_rows(ranking.rows, current, limit)
            return build_standings(ranking, rows, query.ladders.coordinates, query.times, unfinished)

    @retry_on_damaged_cache
    def overview(
        self,
        ladder: str,
        since: str | None = None,
        players: Collection[str] = (),
        limit: int | None = None,
        *,
        after: int = 0,
        active_since: str | None = None,
    ) -> Overview:
        """Return the standings with what has moved since a moment.

        Args:
            since: a date, which means its end, or a time; by default the end of the month before that of the ladder's
                last game.
            players: those whose rows are returned, by default all.
            limit: the number of rows (0: all), of those behind the first `after`.
            active_since: a date, which means its start, or a time: only the rows of those who played from then on.
        """
        from ratings_ledger.projections.queries.standings import RowFilter, build_overview

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            zone = date_zone(query.connection, ladder, query.times)
            active = None if active_since is None else parse_since(active_since, zone, "", "active_since")
            rows = RowFilter(current_ids(query.ladders.facts, players), active, after, limit)
            instant = parse_as_of(since, zone, "since")
            unfinished = describe_open_period(query.ladders, ladder)
            return build_overview(
                query.ladders, ladder, since=instant, zone=zone, selection=rows, times=query.times, remark=unfinished
            )

    @retry_on_damaged_cache
    def balance(self, ladder: str) -> Balance:
        """Return the trial balance: what players have, against where it came from."""
        with self.query(ladder, lazily=True) as query:
            return build_balance(query.ladders.standings(query.ladder), query.ladders.coordinates, query.times)

    def changes(self, ladder: str) -> Iterator[PlayerChange]:
        """Yield every change of every player's points, in the order of replay. Raises before the first."""
        from ratings_ledger.projections.queries.history import changes

        with self.query(ladder) as query:
            yield from changes(query.connection, query.ladders, query.ladder)

    @retry_on_damaged_cache
    def months(self, ladder: str) -> dict[str, str]:
        """Return the lists that a list of a year sums, by month, with games or without; for other ladders none."""
        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            versions = query.ladders.versions(ladder)
            if not versions[0].ranking.sums_lists:
                return {}
            params: Any = newest(versions).params
            return monthly_ladders(ladder, newest(versions), query.ladders.facts.rulesets[params.of])

    @retry_on_damaged_cache
    def season_before(self, ladder: str) -> str | None:
        """Return the season whose points are carried over to this one, or None."""
        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            if not any(version.params.carry_over for version in query.ladders.versions(ladder)):
                return None
            previous = query.ladders.stream(ladder).previous
            return None if previous is None else previous.ladder

    def simulate(self, rulesets: Sequence[tuple[dict[str, str], Ruleset]], ladders: Collection[str] = ()) -> Simulation:
        """Return what would be if each of some rulesets had scored its games from the start, on some ladders or all.

        `rules` and `close_now` are ignored; without a home zone a date ends in the zone of the first ruleset.

        Args:
            rulesets: each with the settings that were changed in it, which the answer repeats.

        Raises `Unknown` for a ladder without games, `RulesetRefused`.
        """
        from ratings_ledger.projections.diff.what_if import find_comparison_obstacle, simulate_rulesets

        with self.log() as log:
            undated = self._cache.load_checked(log.connection, log.position)
            now = undated.at(parse_as_of(self.as_of, log.times.home or rulesets[0][1].time_zone))
            for message in dict.fromkeys(find_comparison_obstacle(now, ruleset) for _, ruleset in rulesets):
                if message is not None:
                    self.note(message)
            named = [full_name(now.facts, ladder) for ladder in ladders]
            return simulate_rulesets(log.connection, now, rulesets, named, log.times)

    @retry_on_damaged_cache
    def predict(
        self,
        ladder: str,
        sides: Sequence[str | Sequence[str]],
        *,
        home: str | Sequence[str] | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> Prediction:
        """Return the probability of each result of a game, and the points at stake.

        Args:
            sides: for each its players, or its only player.
            home: the side that plays at home; by default none does.
            numbers: custom numbers of the game that the rule reads, by name.

        Raises `BadArgument` for sides that cannot play each other, and `CannotPredict` if the rule gives no
        probabilities or cannot score such a game.
        """
        from ratings_ledger.projections.queries.forecast import predict_game

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            return predict_game(query.ladders, ladder, sides, home=home, numbers=numbers, times=query.times)

    @retry_on_damaged_cache
    def predict_pairs(self, ladder: str, pairs: Collection[tuple[str, str]]) -> tuple[Prediction, ...]:
        """Return a prediction for a game of each two players; none where the rule cannot predict, or no game of two
        counts.
        """
        from ratings_ledger.projections.queries.forecast import predict_pairs

        with self.query(ladder, lazily=True) as query:
            return predict_pairs(query.ladders, query.ladder, pairs, query.times)

    # -- one player on a ladder

    @retry_on_damaged_cache
    def history(self, ladder: str, player: str) -> History:
        """Return every change of a player's points."""
        from ratings_ledger.projections.queries.history import History, load_course

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            player = query.current(player)
            steps = load_course(query.connection, query.ladders, ladder, player)
            ranking = query.ladders.versions(ladder)[0].ranking
            return History(
                player,
                ladder,
                query.ladders.coordinates,
                steps,
                period_state(query.ladders.describe_periods(ladder)),
                running=ranking.running,
                sums_lists=ranking.sums_lists,
                times=query.times,
            )

    @retry_on_damaged_cache
    def profile(self, ladder: str, player: str) -> Profile:
        """Return a player's standing, course, streaks, places and opponents."""
        from ratings_ledger.projections.queries.players import build_profile

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            return build_profile(query.connection, query.ladders, ladder, query.current(player), query.times)

    @retry_on_damaged_cache
    def ranks(self, ladder: str, player: str) -> Ranks:
        """Return a player's rank over time, wherever it changed."""
        from ratings_ledger.projections.queries.history import ranks_over_time

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            return ranks_over_time(query.connection, query.ladders, ladder, query.current(player), query.times)

    @retry_on_damaged_cache
    def account(self, ladder: str, player: str) -> PlayerExplanation:
        """Explain how a player's place comes about, or why they have none."""
        from ratings_ledger.projections.queries.explain import explain_player

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            return explain_player(query.connection, query.ladders, ladder, query.current(player), query.times)

    @retry_on_damaged_cache
    def statement(self, ladder: str, player: str, last: int | None = None) -> Statement | None:
        """Return what changed a player's points since the list published last, or since their start, line by line.

        Args:
            last: of more games and adjustments than this, one line sums those before the last ones.

        Returns:
            None on lists, whose points are no sum of changes.
        """
        from ratings_ledger.projections.diff.statements import build_statement

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            player = query.current(player)
            if not query.ladders.versions(ladder)[0].ranking.running:
                return None
            return build_statement(query.connection, query.ladders, ladder, player, query.times, last)

    def unmet(self, ladder: str, player: str) -> Unmet:
        """Return whom a player has not met yet in a league or on a ladder.

        Raises `Unknown` for a player who is not in it, and for a league without a ladder.
        """
        from ratings_ledger.projections.queries.leagues import ladder_named, unmet

        if "/" not in (ladder := self.full_name(ladder)):
            with self.survey() as survey:
                ladder = ladder_named(survey, ladder)
        with self.query(ladder) as query:
            player = query.ladders.facts.current(player)
            return unmet(query.connection, query.ladders, ladder, player, query.times)

    # -- one game

    @retry_on_damaged_cache
    def explain(self, ladder: str, game_id: str) -> GameExplanation:
        """Explain why a game changed points as it did, or why it does not count."""
        from ratings_ledger.projections.queries.explain import explain_game, row_of_game

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            row = row_of_game(query.connection, query.ladders.facts, game_id)
            return explain_game(query.ladders, ladder, game_id, row, query.times, connection=query.connection)

    def story(self, game_id: str) -> GameTimeline:
        """Return what became of a game, and what it did on each of its ladders."""
        from ratings_ledger.projections.queries.game_timelines import game_story

        with self.survey() as survey:
            return game_story(survey, game_id)

    def stories(self, game_ids: Sequence[str], ladder: str | None = None) -> Iterator[GameTimeline]:
        """Yield the timelines of some games, with what they did on all their ladders, or on one."""
        from ratings_ledger.projections.queries.game_timelines import stories

        with self.survey() as survey:
            yield from stories(survey, game_ids, ladder)

    def other_result(self, game_id: str, places: Sequence[int]) -> OtherResult:
        """Return what a game would have given with other places, in the order of its participants.

        Raises `BadArgument` for places that no result has.
        """
        from ratings_ledger.projections.diff.other_results import compute_other_result

        with self.survey() as survey:
            return compute_other_result(survey, game_id, places)

    # -- what was published and decided; of the coordinates only `known_at` counts, unless a method says otherwise

    def published(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> Standings:
        """Return the published list of a ladder, of the latest time or for `as_of`, from its events.

        Raises `Unknown` (list-unknown) if none was, `StoreDamaged`.
        """
        from ratings_ledger.projections.queries.published import as_published, show_published

        with self.connect() as connection:
            entry, people = self._find_list(connection, ladder), identities(connection)
            times = self._times_of(connection)
            ranking = as_published(connection, entry)
            names = {name for player in players for name in people.ids(player)}
            if ranking.columns:
                known = self._cache.load_checked(connection, head(connection).position).facts
                ranking = show_published(ranking, known)
            rows = [row for row in ranking.rows if not players or row.player in names][: limit or None]
            source = Publication(entry.position, entry.event_id, entry.recorded_at, entry.by)
            remark = f"Published at position {entry.position} by {entry.by}, {times.stated(entry.recorded_at)}."
            at = Coordinates(entry.as_of, entry.known_at, None)
            return build_standings(ranking, rows, at, times, remark, source)

    def publications(self) -> Publications:
        """Return the published lists, the last one of each ladder and time."""
        from ratings_ledger.projections.queries.published import publications

        with self.log() as log:
            return publications(log.connection, log.position, log.times)

    def list_beside(self, ladder: str, position: int | None = None) -> PublishedListDiff:
        """Compare a published list with the same list as known now.

        Args:
            position: that of the publication; by default that of the latest time, or the last for `as_of`.

        Raises `Unknown` (list-unknown) if none was published, `RulesetUnusable`, `StoreDamaged`.
        """
        from ratings_ledger.projections.diff.published_lists import compare_published_list

        with self.sides() as loader:
            entry = self._find_list(loader.connection, ladder, position)
            times = self._times_of(loader.connection)
            zone = date_zone(loader.connection, ladder, times)
            known_at = resolve_known_at(loader.connection, self.known_at, zone, self.note)
            return compare_published_list(loader, known_at, entry, times)

    def event_impact(self, position: int) -> EventImpact:
        """Return what the event at a position did to every player's points.

        Raises `Unknown` (event-unknown) for a position behind `known_at`.
        """
        from ratings_ledger.projections.diff.event_impacts import compute_event_impact

        with self.log() as log:
            if not 1 <= position <= log.position:
                message = f"there is no position {position}; the log as it is asked ends at {log.position}"
                raise Unknown("event-unknown", message)
            cache = self._cache.empty_copy()
            before, after = (cache.load_checked(log.connection, end) for end in (position - 1, position))
            return compute_event_impact(log.connection, before, after, log.times)

    def decisions(self, after: str | int) -> Decisions:
        """Return what was decided after a time or position, by whom and why, and what it did to points.

        Args:
            after: 0 is before the first event.

        Raises `BadArgument`, `StoreDamaged`.
        """
        from ratings_ledger.projections.diff.decisions import find_decisions

        with self.connect() as connection:
            ends = []
            for name, value in (("after", after), ("known_at", self.known_at)):
                try:
                    ends.append(0 if str(value) == "0" else resolve_known_at(connection, value, None, self.note))
                except BadArgument as problem:
                    raise BadArgument(str(problem), name) from None
            begin, end = ends
            if begin >= end:
                raise BadArgument(f"nothing lies between the positions {begin} and {end}; --from is the earlier one")
            return find_decisions(connection, begin, end, self._times_of(connection))

    @retry_on_damaged_cache
    def telling_positions(self) -> frozenset[int]:
        """Return the positions of the events that may have moved players who did not play.

        Those are decisions, and games played before a list that had been published.
        """
        from ratings_ledger.projections.diff.telling_events import find_telling_positions

        with self.log() as log:
            ladders = self._load_ladders(log.connection, log.position, lazily=True).at(None)
            return find_telling_positions(log.connection, ladders)

    # -- what is recorded

    def rulesets(self) -> AllRulesets:
        """Return the published versions, and which of them score games that end now. Only `known_at` counts."""
        from ratings_ledger.projections.queries.ruleset_states import all_rulesets

        with self.log() as log:
            return all_rulesets(log.connection, log.position)

    def ruleset(self, name: str) -> RulesetState:
        """Return a version (ID@VERSION), or a ruleset's newest in force, and when which version scores.

        Only `known_at` counts.
        """
        from ratings_ledger.projections.queries.ruleset_states import ruleset_state

        with self.log() as log:
            return ruleset_state(log.connection, name, log.position, log.times)

    def leagues(self) -> AllLeagues:
        """Return the leagues, what they wait for, and who won."""
        from ratings_ledger.projections.queries.leagues import all_leagues

        with self.survey() as survey:
            return all_leagues(survey)

    def league(self, name: str) -> LeagueState:
        """Return a league's players, its table, and its schedule with what is played and what is open.

        Raises `LedgerError` with the reason league-unknown.
        """
        from ratings_ledger.projections.queries.leagues import league_state

        with self.survey() as survey:
            return league_state(survey, name)

    def clock(self, game_id: str, at: int | None = None) -> ClockState:
        """Return every timer of a game at the server's time `at`, in milliseconds, by default at the last event.

        Only `known_at` counts. Raises `Unknown` for a game without a clock, or one that had not been started.
        """
        from ratings_ledger.projections.queries.clocks import show_clock

        return show_clock(self._clock_events(game_id)[0], at)

    def clock_of(self, game_id: str, player: str, at: int | None = None) -> ClockExplanation:
        """Return what was taken from a player's main timer and given to it. Raises as `clock` does."""
        from ratings_ledger.projections.queries.clocks import explain_clock

        events, current = self._clock_events(game_id)
        return explain_clock(events, current(player), at)

    def _clock_events(self, game_id: str) -> tuple[list[dict[str, Any]], Callable[[str], str]]:
        from ratings_ledger.projections.queries.clocks import events_of_clock

        with self.log() as log:
            return events_of_clock(log.connection, game_id, log.position)

    @retry_on_damaged_cache
    def games_with_clock(self) -> frozenset[str]:
        """Return the games whose clock was started. Only `known_at` counts."""
        from ratings_ledger.projections.queries.clocks import games_timed

        with self.log() as log:
            return games_timed(self._load_ladders(log.connection, log.position, lazily=True).facts)

    def ids(self, player: str) -> list[str]:
        """Return all ids of a person, the given one first. Only `known_at` counts."""
        with self.log() as log:
            return identities(log.connection, log.position).list_ids(player)

    def kinds_of(self, name: str) -> frozenset[str]:
        """Return what a name is of: a ladder, a player, a game, a league, or nothing that is known."""
        with self.log() as log:
            facts = self._load_ladders(log.connection, log.position, lazily=True).facts
            known = facts.rulesets.keys() | facts.unusable.keys()
            tests = {
                "ladder": "/" in name and parse_name(name).ruleset_id in known,
                "player": facts.knows(name),
                "game": name in first_positions(log.connection, [name]),
                "league": find_league(Log(log.connection, log.position), name) is not None,
            }
        return frozenset(kind for kind, is_one in tests.items() if is_one)

    def has_game(self, game_id: str) -> bool:
        """Tell whether a game of this id was ever recorded."""
        with self.connect() as connection:
            return game_id in first_positions(connection, [game_id])

    def similar_game(self, game_id: str) -> str:
        """Return the end of a message about an unknown game: which one was probably meant, or nothing."""
        with self.connect() as connection:
            return Log(connection).similar("game", game_id)

    def games(
        self,
        game_id: str | None = None,
        *,
        game: str | None = None,
        player: str | None = None,
        since: str | None = None,
        by: str | None = None,
        limit: int = 0,
    ) -> RecordedGames:
        """Return the newest `limit` games (0: all) as they stand, by the time they were played.

        Args:
            game: the name of the game that they are of.
            player: who took part.
            since: a date in the home zone, which means its start, or a time: those played from then on.
            by: who recorded them.
        """
        from ratings_ledger.projections.queries.games_log import RecordedGames, games_as_they_stand, is_wanted

        with self.log() as log:
            end = parse_as_of(self.as_of, log.times.zone)
            people = identities(log.connection, log.position)
            matches = partial(
                is_wanted,
                first=None if since is None else moment(parse_since(since, log.times.zone)),
                last=None if end is None else moment(end),
                game_id=game_id,
                game=game,
                ids=None if player is None else people.ids(player),
            )
            games, total, left_out = games_as_they_stand(log.connection, log.position, matches, by, limit)
            hint = ""
            if not games and game_id is not None:
                hint = Log(log.connection).similar("game", game_id)
            elif not games and (player or game):
                facts = self._load_ladders(log.connection, head(log.connection).position).facts
                hint = similar_name(facts, player, game)
            times = log.times
        rows = tuple(replace(row, data=people.present(row.data)) if people else row for row in games)
        return RecordedGames(rows, older=total - len(rows), game_id=game_id, hint=hint, left_out=left_out, times=times)

    def live_games(self, after: int = 0) -> Iterator[RecordedGame]:
        """Yield the games that are not voided, with the current ids of their players, as first recorded.

        Recorded elsewhere in this order they give the same points.

        Args:
            after: a position; games first recorded up to it are left out.
        """
        from ratings_ledger.projections.queries.games_log import games_that_stand

        with self.log() as log:
            last = parse_as_of(self.as_of, log.times.zone)
            yield from games_that_stand(log.connection, log.position, last, after)

    def games_recorded(self) -> int:
        """Return how many games are recorded, voided ones included."""
        with self.survey() as survey:
            return len(survey.facts.first_position)

    def events(
        self,
        subject: str | None = None,
        *,
        since: str | None = None,
        by: str | None = None,
        types: Collection[str] = (),
        batch: str | None = None,
        limit: int = 0,
    ) -> RecordedEvents:
        """Return the newest `limit` events (0: all) as they were written, in the order of the log.

        Of the coordinates only `known_at` counts.

        Args:
            subject: a game, an event's id or a player that they are about.
            since: those recorded from a date, a time or a position on.
            by: who recorded them.
            batch: the id of the import that they came with.

        Raises `Refused` for an unknown batch.
        """
        from ratings_ledger.ledger.validation.batches import named_batches
        from ratings_ledger.projections.queries.games_log import (
            EventSelection,
            RecordedEvents,
            events_as_written,
            refuse_unknown_types,
        )

        refuse_unknown_types(types)
        with self.log() as log:
            after = resolve_since(log.connection, since)
            within = None if batch is None else named_batches(log.connection, batch, log.position)
            selection = EventSelection(subject, after, by, types, within, limit)
            rows, older = events_as_written(log.connection, log.position, selection)
            narrowed = since is not None or by is not None or batch is not None or bool(types)
            hint = ""
            if subject is not None and not rows and not narrowed:
                names, people = Log(log.connection, log.position), identities(log.connection, log.position)
                hint = names.similar("game", subject) or names.similar("player", subject, people.current)
            return RecordedEvents(rows, older=older, subject=subject, narrowed=narrowed, hint=hint, times=log.times)

    # -- the last events that an answer depends on: with `known_at` there, it is the same

    @retry_on_damaged_cache
    def last_event(self, ladder: str, player: str | None = None) -> LastEvent:
        """Return the last event that a ladder depends on, or a player there.

        The ranks, and gold, of a player are excepted, since they depend on every other player.
        """
        from ratings_ledger.projections.queries.last_events import last_event, last_event_at

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            if player is not None:
                require_player(query.ladders.facts, player)
            position = last_event(query.connection, query.ladders, ladder, player)
            return last_event_at(query.connection, position)

    @retry_on_damaged_cache
    def last_event_of_ranks(self, found: Ranks) -> LastEvent:
        """Return the last event that a player's ranks over time depend on.

        A game of others that left the rank as it was is none.
        """
        from ratings_ledger.projections.queries.last_events import last_event, last_event_at

        with self.query(found.ladder, lazily=True) as query:
            moved = [row.position for row in found.rows or () if row.position is not None]
            player = found.player if found.every == "step" and found.rows is not None else None
            position = last_event(query.connection, query.ladders, found.ladder, player, max(moved, default=0))
            return last_event_at(query.connection, position)

    def last_positions(self, ladder: str, players: Collection[str]) -> dict[str, int]:
        """Return the positions of the last events that some players on a ladder depend on, by player."""
        from ratings_ledger.projections.queries.last_events import last_event

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            current = current_ids(query.ladders.facts, players)
            return {player: last_event(query.connection, query.ladders, ladder, player) for player in current}

    @retry_on_damaged_cache
    def last_event_of_game(self, game_id: str) -> LastEvent:
        """Return the last event that a game and its explanations on its ladders depend on; `as_of` is ignored."""
        from ratings_ledger.projections.queries.explain import row_of_game
        from ratings_ledger.projections.queries.last_events import last_event_at, last_event_of_game

        with self.log() as log:
            ladders = self._load_ladders(log.connection, log.position, lazily=True)
            check_version(ladders.facts, self.rules)
            row = row_of_game(log.connection, ladders.facts, game_id)
            position = last_event_of_game(log.connection, ladders, row)
            return last_event_at(log.connection, position)

    def last_positions_of_games(self) -> dict[str, int]:
        """Return the positions of the last events that games depend on, by id, in the order of their first records."""
        from ratings_ledger.projections.queries.game_timelines import last_positions_of_games

        with self.survey() as survey:
            return last_positions_of_games(survey)

    def last_positions_of_people(self) -> dict[str, int]:
        """Return the position of the last event about a game of each person, or about who they are."""
        from ratings_ledger.projections.queries.last_events import last_positions_of_people

        with self.survey() as survey:
            return last_positions_of_people(survey.connection, survey.everything)
