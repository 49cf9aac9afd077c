"""Query a snapshot: the ledger at one set of coordinates, with every query as a method.

A snapshot covers games played up to `as_of`, as known at `known_at`, scored by each ruleset's timeline or by the
version `rules`. A date ends in the ledger's home zone or, without one, in the zone of the ladder's ruleset. With
`close_now`, games in open rating periods are scored as if the periods closed now. Facts are decoded once per position,
and ladders built once per instant. Most methods import their query module when called, so that commands start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import count, quote
from ratings_ledger.ledger.store.log import Log, find_first_positions, head
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.ledger.validation.leagues import find_league
from ratings_ledger.projections.facts.lookups import require_player
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    check_version,
    find_date_zone,
    parse_as_of,
    parse_since,
    resolve_known_at,
    resolve_since,
    to_datetime,
)
from ratings_ledger.projections.queries.ladders_at import Ladders, name_monthly_ladders
from ratings_ledger.projections.queries.ledger_names import full_name, suggest_ladder, suggest_name
from ratings_ledger.projections.queries.results import LastEvent, ReplayFailure
from ratings_ledger.projections.queries.snapshot_reader import SnapshotReader, retry_on_damaged_cache
from ratings_ledger.projections.queries.standings import (
    Balance,
    Publication,
    Standings,
    build_balance,
    build_period_state,
    build_standings,
    describe_open_period,
    select_rows,
)
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, parse_name
from ratings_ledger.projections.rulesets.versions import newest

if TYPE_CHECKING:
    from ratings_ledger.projections.diff.decisions import Decisions
    from ratings_ledger.projections.diff.differences import SideLoader
    from ratings_ledger.projections.diff.event_impacts import EventImpact
    from ratings_ledger.projections.diff.other_results import OtherResult
    from ratings_ledger.projections.diff.published_lists import PublishedListDiff
    from ratings_ledger.projections.diff.statements import Statement
    from ratings_ledger.projections.diff.what_if import Simulation
    from ratings_ledger.projections.queries.clocks import ClockExplanation, ClockState
    from ratings_ledger.projections.queries.forecast import Prediction
    from ratings_ledger.projections.queries.game_explanations import GameExplanation
    from ratings_ledger.projections.queries.game_timelines import GameTimeline
    from ratings_ledger.projections.queries.history import History, PlayerChange
    from ratings_ledger.projections.queries.leagues import AllLeagues, LeagueState, UnmetOpponents
    from ratings_ledger.projections.queries.player_explanations import PlayerExplanation
    from ratings_ledger.projections.queries.players import Person, PlayerStatistics, Profile
    from ratings_ledger.projections.queries.published_lists import Publications
    from ratings_ledger.projections.queries.rank_history import Ranks
    from ratings_ledger.projections.queries.recorded_events import RecordedEvents, RecordedGame, RecordedGames
    from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetState
    from ratings_ledger.projections.queries.standings import Overview
    from ratings_ledger.projections.queries.survey import AllLadders, AllLists, Everybody


class Snapshot(SnapshotReader):
    """The ledger at one set of coordinates; every query is a method.

    Unless its docstring says otherwise, a method raises `BadArgument` for invalid coordinates, and `StoreUnavailable`;
    with a ladder also `RuleFailed` and `RulesetUnusable`; with a ladder, a player or a game also `Unknown`.
    """

    @contextmanager
    def side_loader(self) -> Iterator[SideLoader]:
        """Provide a loader of ladders at any coordinates, for comparisons. It ignores the coordinates of the snapshot.

        Raises `StoreUnavailable`.
        """
        from ratings_ledger.projections.diff.differences import SideLoader

        with self.connect() as connection:
            yield SideLoader(connection, self.note, self._cache.empty_copy())

    # -- all ladders

    def ladders(self) -> AllLadders:
        """Return the ladders that have games or adjustments."""
        from ratings_ledger.projections.queries.survey import load_all_ladders

        with self.survey() as survey:
            return load_all_ladders(survey)

    def everybody(self) -> Everybody:
        """Return the rank and points of every player on every ladder."""
        from ratings_ledger.projections.queries.survey import load_everybody

        with self.survey() as survey:
            return load_everybody(survey)

    def lists(self, period: str | None = None) -> AllLists:
        """Return the lists of months and years, or of one period (YYYY or YYYY-MM), and the published lists.

        The published lists depend only on `known_at`.
        """
        from ratings_ledger.projections.queries.survey import load_all_lists

        with self.survey() as survey:
            return load_all_lists(survey, period)

    def statistics(self, player: str, game: str | None = None) -> PlayerStatistics:
        """Return a player's started and finished games, stars and gold, for one game, such as catan, or all."""
        from ratings_ledger.projections.queries.players import load_statistics

        with self.survey() as survey:
            return load_statistics(survey, player, game)

    def person(self, player: str) -> Person:
        """Return the statistics of a player who is on a ladder, with their earlier ids and all their ranks."""
        from ratings_ledger.projections.queries.players import load_person

        with self.survey() as survey:
            return load_person(survey, player)

    def only_ladder(self) -> str:
        """Return the only ladder with games or adjustments. Raises `BadArgument` if there are several, or none."""
        from ratings_ledger.projections.queries.candidate_ladders import choose_only_ladder

        ladders = self.ladders()
        for problem in (problems := (*ladders.unusable, *ladders.failed)):
            self.note(problem)  # a ladder that fails may be a second one
        rows = sorted(drop_duplicate_ladders(ladders.rows), key=lambda row: -row.games)
        return choose_only_ladder(rows, as_of=self.as_of, unscored=ladders.unscored, problems=problems)

    def resolve_ladder(self, name: str, second: str | None, is_player: bool = True) -> tuple[str, str]:
        """Return a player (or a game) and a ladder, named in either order; without a ladder, use the player's only one.

        Args:
            is_player: if False, `name` may also be the id of a game with the same explanation on all of its ladders.

        Raises `BadArgument` if there are several candidate ladders, or none.
        """
        if second is not None:
            return self._order_arguments(name, second)
        if "/" in name:
            missing = "a player" if is_player else "a player or a game"
            raise BadArgument(f"{quote(name)} is a ladder; name {missing}, too", "player")
        from ratings_ledger.projections.queries.candidate_ladders import list_candidate_ladders, pick_common_ladder

        with self.survey() as survey:
            candidates = list_candidate_ladders(survey, name, is_player)
        explanations = (self.explain(ladder_name, name) for ladder_name in candidates.ladders_of_game)
        if candidates.ladders_of_game and (ladder := pick_common_ladder(explanations)):
            return name, ladder
        return name, candidates.choose(survey, name)

    def every_standings(self, ladders: Collection[str] = ()) -> Iterator[Standings | ReplayFailure]:
        """Yield the standings of the named ladders, or of all, with a `ReplayFailure` in place of each failed ladder.

        A `ReplayFailure` for each unusable ruleset comes first. All errors are raised before the first item.
        """
        from ratings_ledger.projections.queries.survey import load_standings_by_ladder

        with self.survey() as survey:
            ladders = [*dict.fromkeys(full_name(survey.facts, ladder) for ladder in ladders)]
            for ladder in ladders:
                undated = Ladders(survey.facts)
                undated.versions(ladder)
                if undated.find_start(ladder) is None and (message := suggest_ladder(survey.facts, ladder)):
                    self.note(message)
            yield from load_standings_by_ladder(survey, ladders)

    # -- one ladder

    @retry_on_damaged_cache
    def standings(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> Standings:
        """Return the standings: the rows of `players` (by default all), at most `limit` (0 or None: all)."""
        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            player_ids = set(map(query.current, players))
            ranking = query.ladders.standings(ladder)
            remark = describe_open_period(query.ladders, ladder)
            rows = select_rows(ranking.rows, player_ids, limit)
            return build_standings(ranking, rows, query.ladders.coordinates, query.times, remark)

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
        """Return the standings with each player's changes since a time.

        Args:
            since: a date, which means its end, or a time; by default, the end of the month that precedes the month of
                the ladder's last game.
            players: the players whose rows are returned; by default all.
            limit, after: the maximum number of rows (0 or None: all), and the number of first rows to skip.
            active_since: a date, which means its start, or a time; players without a game since then are left out.
        """
        from ratings_ledger.projections.queries.standings import RowFilter, build_overview

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            zone = find_date_zone(query.connection, ladder, query.times)
            active_from = None if active_since is None else parse_since(active_since, zone, "", "active_since")
            rows = RowFilter(set(map(query.current, players)), active_from, after, limit)
            instant = parse_as_of(since, zone, "since")
            remark = describe_open_period(query.ladders, ladder)
            return build_overview(
                query.ladders, ladder, since=instant, zone=zone, selection=rows, times=query.times, remark=remark
            )

    @retry_on_damaged_cache
    def balance(self, ladder: str) -> Balance:
        """Return the trial balance: the players' points against their sources."""
        with self.query(ladder, lazily=True) as query:
            return build_balance(query.ladders.standings(query.ladder), query.ladders.coordinates, query.times)

    def changes(self, ladder: str) -> Iterator[PlayerChange]:
        """Yield every change of every player's points, in the order of replay. Errors come before the first change."""
        from ratings_ledger.projections.queries.history import load_changes

        with self.query(ladder) as query:
            yield from load_changes(query.connection, query.ladders, query.ladder)

    @retry_on_damaged_cache
    def months(self, ladder: str) -> dict[str, str]:
        """Return the monthly lists that an annual list sums, by month; empty for other ladders."""
        with self.query(ladder, lazily=True) as query:
            ladder, versions = query.ladder, query.ladders.versions(query.ladder)
            if not versions[0].ranking.sums_lists:
                return {}
            params: Any = newest(versions).params
            return name_monthly_ladders(ladder, newest(versions), query.ladders.facts.rulesets[params.of])

    @retry_on_damaged_cache
    def season_before(self, ladder: str) -> str | None:
        """Return the ladder of the season whose points this season carries over, or None."""
        with self.query(ladder, lazily=True) as query:
            if not any(version.params.carry_over for version in query.ladders.versions(query.ladder)):
                return None
            previous = query.ladders.stream(query.ladder).previous
            return None if previous is None else previous.ladder

    def simulate(self, rulesets: Sequence[tuple[dict[str, str], Ruleset]], ladders: Collection[str] = ()) -> Simulation:
        """Simulate the standings that each of these rulesets would give if it had scored all games from the start.

        `rules` and `close_now` are ignored. Without a home zone, a date ends in the zone of the first ruleset.

        Args:
            rulesets: the rulesets, each with the settings changed in it. The answer repeats these settings.
            ladders: the ladders to score, by default all.

        Raises `RulesetRefused`, and `Unknown` for a ladder without games.
        """
        from ratings_ledger.projections.diff.what_if import find_comparison_obstacle, simulate_rulesets

        with self.log() as log:
            undated = self._cache.load_checked(log.connection, log.position)
            now = undated.at(parse_as_of(self.as_of, log.times.home or rulesets[0][1].time_zone))
            for message in dict.fromkeys(find_comparison_obstacle(now, ruleset) for _, ruleset in rulesets):
                if message is not None:
                    self.note(message)
            names = [full_name(now.facts, ladder) for ladder in ladders]
            return simulate_rulesets(log.connection, now, rulesets, names, log.times)

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
            sides: each side, as a list of its players, or as its only player.
            home: the side that plays at home; by default, no side does.
            numbers: the custom numbers of the game that the rule reads, by name.

        Raises `BadArgument` for sides that cannot play each other, and `CannotPredict` if the rule gives no
        probabilities or cannot score such a game.
        """
        from ratings_ledger.projections.queries.forecast import predict_game

        with self.query(ladder, lazily=True) as query:
            return predict_game(query.ladders, query.ladder, sides, home=home, numbers=numbers, times=query.times)

    @retry_on_damaged_cache
    def predict_pairs(self, ladder: str, pairs: Collection[tuple[str, str]]) -> tuple[Prediction, ...]:
        """Return a prediction for a game of each pair of players; empty if the rule cannot predict such games."""
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
                player=player,
                ladder=ladder,
                at=query.ladders.coordinates,
                steps=steps,
                period=build_period_state(query.ladders.describe_periods(ladder)),
                running=ranking.running,
                sums_lists=ranking.sums_lists,
                times=query.times,
            )

    @retry_on_damaged_cache
    def profile(self, ladder: str, player: str) -> Profile:
        """Return a player's standing, course, streaks, places and opponents."""
        from ratings_ledger.projections.queries.players import build_profile

        with self.query(ladder, lazily=True) as query:
            return build_profile(query.connection, query.ladders, query.ladder, query.current(player), query.times)

    @retry_on_damaged_cache
    def ranks(self, ladder: str, player: str) -> Ranks:
        """Return the changes of a player's rank over time."""
        from ratings_ledger.projections.queries.rank_history import load_ranks

        with self.query(ladder, lazily=True) as query:
            return load_ranks(query.connection, query.ladders, query.ladder, query.current(player), query.times)

    @retry_on_damaged_cache
    def account(self, ladder: str, player: str) -> PlayerExplanation:
        """Explain a player's rank, or why the player has no rank."""
        from ratings_ledger.projections.queries.player_explanations import explain_player

        with self.query(ladder, lazily=True) as query:
            return explain_player(query.connection, query.ladders, query.ladder, query.current(player), query.times)

    @retry_on_damaged_cache
    def statement(self, ladder: str, player: str, last: int | None = None) -> Statement | None:
        """Return the changes of a player's points since the last published list or, without one, since their start.

        Args:
            last: how many of the latest games and adjustments get a line each, by default all; a line sums the others.

        Returns:
            The statement, or None on a ladder without running points, where points are not a sum of changes.
        """
        from ratings_ledger.projections.diff.statements import build_statement

        with self.query(ladder, lazily=True) as query:
            ladder, player = query.ladder, query.current(player)
            if not query.ladders.versions(ladder)[0].ranking.running:
                return None
            return build_statement(query.connection, query.ladders, ladder, player, query.times, last)

    def unmet(self, ladder: str, player: str) -> UnmetOpponents:
        """Return the opponents whom a player has not met yet in a league or on a ladder.

        Raises `LedgerError` (league-unknown) for an unknown league, and `Unknown` for a league without a ladder and for
        a player who has neither joined the league nor played on the ladder.
        """
        from ratings_ledger.projections.queries.leagues import find_league_ladder, find_unmet

        if "/" not in (ladder := self.full_name(ladder)):
            with self.survey() as survey:
                ladder = find_league_ladder(survey, ladder)
        with self.query(ladder) as query:
            player = query.ladders.facts.current(player)
            return find_unmet(query.connection, query.ladders, ladder, player, query.times)

    # -- one game

    @retry_on_damaged_cache
    def explain(self, ladder: str, game_id: str) -> GameExplanation:
        """Explain the changes in points that a game made on a ladder, or why the game does not count there."""
        from ratings_ledger.projections.facts.lookups import find_game_row
        from ratings_ledger.projections.queries.game_explanations import explain_game

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            row = find_game_row(query.connection, query.ladders.facts, game_id)
            return explain_game(query.ladders, ladder, game_id, row, query.times, connection=query.connection)

    def timeline(self, game_id: str) -> GameTimeline:
        """Return the timeline of a game: its events, and the explanation of its effect on each of its ladders."""
        from ratings_ledger.projections.queries.game_timelines import load_timeline

        with self.survey() as survey:
            return load_timeline(survey, game_id)

    def timelines(self, game_ids: Sequence[str], ladder: str | None = None) -> Iterator[GameTimeline]:
        """Yield the timelines of games, with explanations for one ladder or all."""
        from ratings_ledger.projections.queries.game_timelines import load_timelines

        with self.survey() as survey:
            yield from load_timelines(survey, game_ids, ladder)

    def other_result(self, game_id: str, places: Sequence[int]) -> OtherResult:
        """Score a game with hypothetical places, given in the order of its participants.

        Raises `BadArgument` for invalid places.
        """
        from ratings_ledger.projections.diff.other_results import compute_other_result

        with self.survey() as survey:
            return compute_other_result(survey, game_id, places)

    # -- published lists and decisions; these methods ignore `as_of` and `rules`, unless their docstring says otherwise

    def published(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> Standings:
        """Return the published list of a ladder as recorded: the list for `as_of` or, without it, the latest.

        Raises `StoreDamaged`, and `Unknown` (list-unknown) if there is none.
        """
        from ratings_ledger.projections.queries.published_lists import add_visible_states, load_published_list

        with self.connect() as connection:
            entry, people = self._find_list(connection, ladder), read_identities(connection)
            times = self._times_of(connection)
            ranking = load_published_list(connection, entry)
            player_ids = {player_id for player in players for player_id in people.ids(player)}
            if ranking.columns:
                facts = self._cache.load_checked(connection, head(connection).position).facts
                ranking = add_visible_states(ranking, facts)
            rows = [row for row in ranking.rows if not players or row.player in player_ids][: limit or None]
            source = Publication(entry.position, entry.event_id, entry.recorded_at, entry.by)
            published_at = times.format_with_zone(entry.recorded_at)
            remark = f"Published at position {entry.position} by {entry.by}, {published_at}."
            coordinates = Coordinates(entry.as_of, entry.known_at, rules=None)
            return build_standings(ranking, rows, coordinates, times, remark, source)

    def publications(self) -> Publications:
        """Return the published lists, the latest one for each ladder and time."""
        from ratings_ledger.projections.queries.published_lists import load_publications

        with self.log() as log:
            return load_publications(log.connection, log.position, log.times)

    def compare_published(self, ladder: str, position: int | None = None) -> PublishedListDiff:
        """Compare a published list with the same list as known at `known_at`.

        Args:
            position: the position of the publication; by default, of the list for `as_of`, or else of the latest.

        Raises `RulesetUnusable`, `StoreDamaged`, and `Unknown` (list-unknown) if none was published.
        """
        from ratings_ledger.projections.diff.published_lists import compare_published_list

        with self.side_loader() as loader:
            entry = self._find_list(loader.connection, ladder, position)
            times = self._times_of(loader.connection)
            zone = find_date_zone(loader.connection, ladder, times)
            known_at = resolve_known_at(loader.connection, self.known_at, zone, self.note)
            return compare_published_list(loader, known_at, entry, times)

    def event_impact(self, position: int) -> EventImpact:
        """Return the effect of the event at a position on every player's points.

        Raises `Unknown` (event-unknown) for a position before 1 or after `known_at`.
        """
        from ratings_ledger.projections.diff.event_impacts import compute_event_impact

        with self.log() as log:
            if not 1 <= position <= log.position:
                problem = f"there is no position {position}; the snapshot has {count(log.position, 'event')}"
                raise Unknown("event-unknown", f"{problem}, numbered from 1")
            cache = self._cache.empty_copy()
            before, after = (cache.load_checked(log.connection, end) for end in (position - 1, position))
            return compute_event_impact(log.connection, before, after, log.times)

    def decisions(self, after: str | int) -> Decisions:
        """Return the decisions after a time or position, with their authors, reasons and effects on points.

        Args:
            after: the time or position; 0 means before the first event.

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
                message = f"the range begins after position {begin}, but ends at {end}; begin earlier, or end later"
                raise BadArgument(message, "after")
            return find_decisions(connection, begin, end, self._times_of(connection))

    @retry_on_damaged_cache
    def retroactive_positions(self) -> frozenset[int]:
        """Return the positions of all decisions, and of the games recorded too late for a published list.

        These events may have changed the points of players who did not play.
        """
        from ratings_ledger.projections.diff.retroactive_events import find_retroactive_positions

        with self.log() as log:
            ladders = self._load_ladders(log.connection, log.position, lazily=True).at(None)
            return find_retroactive_positions(log.connection, ladders)

    # -- recorded events

    def rulesets(self) -> AllRulesets:
        """Return the published versions, and mark those that score games ending now. Only `known_at` counts."""
        from ratings_ledger.projections.queries.ruleset_states import load_rulesets

        with self.log() as log:
            return load_rulesets(log.connection, log.position)

    def ruleset(self, name: str) -> RulesetState:
        """Return a version (ID@VERSION) or a ruleset's newest version (ID), and the days on which each version scores.

        Only `known_at` counts.
        """
        from ratings_ledger.projections.queries.ruleset_states import load_ruleset_state

        with self.log() as log:
            return load_ruleset_state(log.connection, name, log.position, log.times)

    def leagues(self) -> AllLeagues:
        """Return all leagues with their states and winners."""
        from ratings_ledger.projections.queries.leagues import load_leagues

        with self.survey() as survey:
            return load_leagues(survey)

    def league(self, name: str) -> LeagueState:
        """Return a league with its players, table and schedule.

        Raises `LedgerError` with the reason league-unknown.
        """
        from ratings_ledger.projections.queries.leagues import load_league

        with self.survey() as survey:
            return load_league(survey, name)

    def clock(self, game_id: str, at: int | None = None) -> ClockState:
        """Return every timer of a game at the server's time `at` in milliseconds; by default, at the last event.

        Only `known_at` counts. Raises `Unknown` if the game has no clock, or the clock had not been started at `at`.
        """
        from ratings_ledger.projections.queries.clocks import build_clock_state

        return build_clock_state(self._load_clock_events(game_id)[0], at)

    def clock_of(self, game_id: str, player: str, at: int | None = None) -> ClockExplanation:
        """Explain a player's main timer, line by line. Raises the errors of `clock`."""
        from ratings_ledger.projections.queries.clocks import explain_clock

        events, find_current_id = self._load_clock_events(game_id)
        return explain_clock(events, find_current_id(player), at)

    def _load_clock_events(self, game_id: str) -> tuple[list[dict[str, Any]], Callable[[str], str]]:
        from ratings_ledger.projections.queries.clocks import load_current_clock_events

        with self.log() as log:
            return load_current_clock_events(log.connection, game_id, log.position)

    @retry_on_damaged_cache
    def games_with_clock(self) -> frozenset[str]:
        """Return the ids of the games whose clock was started. Only `known_at` counts."""
        from ratings_ledger.projections.queries.clocks import find_clocked_games

        with self.log() as log:
            return find_clocked_games(self._load_ladders(log.connection, log.position, lazily=True).facts)

    def ids(self, player: str) -> list[str]:
        """Return all ids of a person, `player` first. Only `known_at` counts."""
        with self.log() as log:
            return read_identities(log.connection, log.position).list_ids(player)

    @retry_on_damaged_cache
    def kinds_of(self, name: str) -> frozenset[str]:
        """Return the kinds of things that a name denotes: `ladder`, `player`, `game`, `league`; empty if unknown."""
        with self.log() as log:
            facts = self._load_ladders(log.connection, log.position, lazily=True).facts
            ruleset_ids = facts.rulesets.keys() | facts.unusable.keys()
            is_of_kind = {
                "ladder": "/" in name and parse_name(name).ruleset_id in ruleset_ids,
                "player": facts.knows(name),
                "game": name in find_first_positions(log.connection, [name]),
                "league": find_league(Log(log.connection, log.position), name) is not None,
            }
        return frozenset(kind for kind, applies in is_of_kind.items() if applies)

    def has_game(self, game_id: str) -> bool:
        """Tell whether a game with this id was ever recorded."""
        with self.connect() as connection:
            return game_id in find_first_positions(connection, [game_id])

    def similar_game(self, game_id: str) -> str:
        """Return a did-you-mean hint for an unknown game, or an empty string."""
        with self.connect() as connection:
            return Log(connection).suggest_similar("game", game_id)

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
        """Return the `limit` games (0: all) that were played last, in their current state and in the order of play.

        Args:
            game_id, game: the id of the only game to return; the name of the game, such as catan.
            player: a participant.
            since: the earliest time of play; a date means its start in the home zone.
            by: the author of the first record of a game.
        """
        from ratings_ledger.projections.queries.recorded_events import RecordedGames, is_match, load_current_games

        with self.log() as log:
            end = parse_as_of(self.as_of, log.times.zone)
            people = read_identities(log.connection, log.position)
            matches = partial(
                is_match,
                first=None if since is None else to_datetime(parse_since(since, log.times.zone)),
                last=None if end is None else to_datetime(end),
                game_id=game_id,
                game=game,
                ids=None if player is None else people.ids(player),
            )
            games, total, invalid = load_current_games(log.connection, log.position, matches, by, limit)
            hint = ""
            if not games and game_id is not None:
                hint = Log(log.connection).suggest_similar("game", game_id)
            elif not games and (player or game):
                facts = self._load_ladders(log.connection, head(log.connection).position).facts
                hint = suggest_name(facts, player, game)
            rows = tuple(replace(row, data=people.use_current_ids(row.data)) if people else row for row in games)
            filters = (game_id, game, player, since, by, self.as_of, self.known_at)
            is_narrowed, older = any(value is not None for value in filters), total - len(rows)
            return RecordedGames(
                rows, older=older, game_id=game_id, narrowed=is_narrowed, hint=hint, left_out=invalid, times=log.times
            )

    def live_games(self, after: int = 0) -> Iterator[RecordedGame]:
        """Yield the games that are not voided, with the players' current ids, in the order of their first records.

        Games in which two players have become one person count on no ladder and are left out. With the same rulesets
        and adjustments, a ledger that records the other games in this order has the same points.

        Args:
            after: the position after which the games were first recorded.
        """
        from ratings_ledger.projections.queries.recorded_events import read_live_games

        with self.log() as log:
            last = parse_as_of(self.as_of, log.times.zone)
            yield from read_live_games(log.connection, log.position, last, after)

    def count_recorded_games(self) -> int:
        """Return the number of recorded games, including voided ones."""
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
        """Return the newest `limit` events (0: all) as recorded, in log order. Only `known_at` counts.

        Args:
            subject: the game, event or player, by id, that the events are about.
            since: the date, time or position from which the events were recorded.
            by: the author of the events.
            types: the types of the events, by default all.
            batch: the name of one or several imports, or the position of an import as text.

        Raises `Refused` for an unknown batch.
        """
        from ratings_ledger.ledger.validation.batches import find_batches
        from ratings_ledger.projections.queries.recorded_events import (
            EventSelection,
            RecordedEvents,
            load_events,
            refuse_unknown_types,
        )

        refuse_unknown_types(types)
        with self.log() as log:
            after = resolve_since(log.connection, since)
            batches = None if batch is None else find_batches(log.connection, batch, log.position)
            selection = EventSelection(subject, after, by, types, batches, limit)
            rows, older = load_events(log.connection, log.position, selection)
            is_narrowed = since is not None or by is not None or batch is not None or bool(types)
            hint = ""
            if subject is not None and not rows and not is_narrowed:
                events, people = Log(log.connection, log.position), read_identities(log.connection, log.position)
                hint = events.suggest_similar("game", subject)
                hint = hint or events.suggest_similar("player", subject, people.current)
            return RecordedEvents(rows, older=older, subject=subject, narrowed=is_narrowed, hint=hint, times=log.times)

    # -- the last event that affects an answer: a snapshot at the position of that event gives the same answer

    @retry_on_damaged_cache
    def last_event(self, ladder: str, player: str | None = None) -> LastEvent:
        """Return the last event that affects a ladder, or a player on the ladder.

        For a player, effects on rank and gold are ignored, because every player's games affect them.
        """
        from ratings_ledger.projections.queries.last_events import find_last_event, load_last_event

        with self.query(ladder, lazily=True) as query:
            ladder = query.ladder
            if player is not None:
                require_player(query.ladders.facts, player)
            position = find_last_event(query.connection, query.ladders, ladder, player)
            return load_last_event(query.connection, position)

    @retry_on_damaged_cache
    def last_event_of_ranks(self, ranks: Ranks) -> LastEvent:
        """Return the last event that affects a player's ranks over time.

        If the rank is compared after every step, other players' games are ignored unless they changed the rank.
        """
        from ratings_ledger.projections.queries.last_events import find_last_event, load_last_event

        with self.query(ranks.ladder, lazily=True) as query:
            positions = [row.position for row in ranks.rows or () if row.position is not None]
            player = ranks.player if ranks.every == "step" and ranks.rows is not None else None
            position = find_last_event(query.connection, query.ladders, ranks.ladder, player, max(positions, default=0))
            return load_last_event(query.connection, position)

    @retry_on_damaged_cache
    def last_positions(self, ladder: str, players: Collection[str]) -> dict[str, int]:
        """Return the position of the last event that affects each player on a ladder, by current id."""
        from ratings_ledger.projections.queries.last_events import find_last_event

        with self.query(ladder, lazily=True) as query:
            find = partial(find_last_event, query.connection, query.ladders, query.ladder)
            return {player: find(player) for player in set(map(query.current, players))}

    @retry_on_damaged_cache
    def last_event_of_game(self, game_id: str) -> LastEvent:
        """Return the last event that affects a game or its explanations on ladders; `as_of` is ignored."""
        from ratings_ledger.projections.facts.lookups import find_game_row
        from ratings_ledger.projections.queries.last_events import find_last_event_of_game, load_last_event

        with self.log() as log:
            ladders = self._load_ladders(log.connection, log.position, lazily=True)
            check_version(ladders.facts, self.rules)
            row = find_game_row(log.connection, ladders.facts, game_id)
            position = find_last_event_of_game(log.connection, ladders, row)
            return load_last_event(log.connection, position)

    def last_positions_of_games(self) -> dict[str, int]:
        """Return the position of the last event that affects each game, by game id, in the order of first records."""
        from ratings_ledger.projections.queries.game_timelines import last_positions_of_games

        with self.survey() as survey:
            return last_positions_of_games(survey)

    def last_positions_of_people(self) -> dict[str, int]:
        """Return the position of the last event about each player's games or identity, by player."""
        from ratings_ledger.projections.queries.last_events import last_positions_of_people

        with self.survey() as survey:
            return last_positions_of_people(survey.connection, survey.undated)
