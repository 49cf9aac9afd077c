"""A snapshot: the ledger at coordinates. Every query is one of its methods.

What was played up to `as_of`, as known at `known_at`, under the rulesets' own timelines or the one version `rules`. A
date ends in the ledger's home zone or, without one, in the zone of the ladder's ruleset. Facts are decoded once per
position, and ladders made once per moment. A method imports its query module when it is called, so that a command waits
for no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.events.types import TYPES, Ruleset
from ratings_ledger.ledger.rejections import did_you_mean, shown
from ratings_ledger.ledger.store.log import Log, first_positions, head, recorded_at
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    date_zone,
    instant_played,
    instant_since,
    moment,
    position_known,
    position_since,
    times_of,
)
from ratings_ledger.projections.queries.known_names import similar_name
from ratings_ledger.projections.queries.ladders_at import (
    KeptLadders,
    Ladders,
    check_version,
    known_ones,
    months_of,
    other_ladder,
    refuse_unknown,
)
from ratings_ledger.projections.queries.published import Publication
from ratings_ledger.projections.queries.results import Failed, LastEvent
from ratings_ledger.projections.queries.snapshot_reader import SnapshotReader, retry_on_damaged_cache
from ratings_ledger.projections.queries.standings import (
    Balance,
    Standings,
    balance_answer,
    rows_shown,
    standings_answer,
    why_unfinished,
)
from ratings_ledger.projections.rulesets.versions import newest

if TYPE_CHECKING:
    from ratings_ledger.projections.diff.decisions import Decisions
    from ratings_ledger.projections.diff.event_impacts import EventImpact
    from ratings_ledger.projections.diff.published_lists import PublishedListDiff
    from ratings_ledger.projections.diff.statements import Statement
    from ratings_ledger.projections.diff.what_if import OtherResult, Simulation
    from ratings_ledger.projections.queries.clocks import ClockExplanation, ClockState
    from ratings_ledger.projections.queries.explain import GameExplanation, PlayerExplanation
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
    """The ledger at one set of coordinates; what is unusual about an answer, though not wrong, is in `notes`."""

    def ladders(self) -> AllLadders:
        """The ladders that have games or adjustments. Raises as `surveying` does."""
        from ratings_ledger.projections.queries.survey import all_ladders

        with self.surveying() as seen:
            return all_ladders(seen)

    def everybody(self) -> Everybody:
        """Where everybody stands on every ladder. Raises as `surveying` does."""
        from ratings_ledger.projections.queries.survey import everybody

        with self.surveying() as seen:
            return everybody(seen)

    def lists(self, period: str | None = None) -> AllLists:
        """Lists of months and years, or of one, YYYY or YYYY-MM, and those that were published: of these coordinates
        only `known_at` matters. Raises as `surveying` does, and `BadArgument`.
        """
        from ratings_ledger.projections.queries.survey import all_lists

        with self.surveying() as seen:
            return all_lists(seen, period)

    def statistics(self, player: str, game: str | None = None) -> PlayerStatistics:
        """What a player started and finished, their stars and their gold. Raises as `surveying` does, and `Unknown`."""
        from ratings_ledger.projections.queries.players import player_statistics

        with self.surveying() as seen:
            return player_statistics(seen, player, game)

    def person(self, player: str) -> Person:
        """The same of somebody who is on a ladder, with their earlier ids, and where they stand everywhere.

        Raises as `surveying` does, and `Unknown` (player-unknown).
        """
        from ratings_ledger.projections.queries.players import person_of

        with self.surveying() as seen:
            return person_of(seen, player)

    def only_ladder(self) -> str:
        """The only ladder with games or adjustments. Raises as `surveying` does, `BadArgument` if there are several."""
        from ratings_ledger.projections.queries.survey import only_ladder_of

        found = self.ladders()
        for reason in (*found.unusable, *found.failed):
            self.note(reason)  # which may be why it is the only one
        return only_ladder_of(found.rows, as_of=self.as_of)

    @retry_on_damaged_cache
    def standings(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> Standings:
        """Who stands where: the first `limit` rows (0: all), or those of some players. Raises as `asking` does."""
        with self.asking(ladder, lazily=True) as asked:
            wanted = known_ones(asked.ladders.facts, players)
            found = asked.ladders.standings(ladder)
            unfinished = why_unfinished(asked.ladders, ladder, clock.now())
            rows = rows_shown(found.rows, wanted, limit)
            return standings_answer(found, rows, asked.ladders.coordinates, asked.times, unfinished)

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
        """The standings with what has moved since a moment: a date, which means its end, or a time; by default since
        the end of the month before that of the ladder's last game.

        All rows, or those of some players, or of those who played from `active_since` on: a date, which means its
        start, or a time. Of these the first `limit` (0: all) behind the first `after`. Raises as `asking` does.
        """
        from ratings_ledger.projections.queries.standings import Wanted, overview_of

        with self.asking(ladder, lazily=True) as asked:
            zone = date_zone(asked.connection, ladder, asked.times)
            active = None if active_since is None else instant_since(active_since, zone, "", "active_since")
            wanted = Wanted(known_ones(asked.ladders.facts, players), active, after, limit)
            instant = instant_played(since, zone, "since")
            remark = why_unfinished(asked.ladders, ladder, clock.now())
            return overview_of(asked.ladders, ladder, instant, zone, wanted, asked.times, remark)

    def every_standings(self, ladders: Collection[str] = ()) -> Iterator[Standings | Failed]:
        """The standings of the named ladders or, without names, of all, one at a time; in between what fails.

        Raises as `surveying` does, before the first.
        """
        from ratings_ledger.projections.queries.survey import every_standings

        with self.surveying() as seen:
            for ladder in dict.fromkeys(ladders):
                everything = Ladders(seen.facts)
                everything.versions(ladder)
                if everything.first(ladder) is None and (told := other_ladder(seen.facts, ladder)):
                    self.note(told)
            yield from every_standings(seen, ladders)

    def changes(self, ladder: str) -> Iterator[PlayerChange]:
        """Every change of everybody's points on a ladder, in the order of replay, one at a time.

        Raises as `asking` does, before the first.
        """
        from ratings_ledger.projections.queries.history import changes

        with self.asking(ladder) as asked:
            yield from changes(asked.connection, asked.ladders, ladder)

    def published(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> Standings:
        """The list of a ladder that was published last, or last for `as_of`, from its events.

        Raises `BadArgument`, `Unknown` (list-unknown) if none was, `StoreDamaged`.
        """
        from ratings_ledger.projections.queries.published import as_published

        with self._reading() as connection:
            one, ids = self._list(connection, ladder), identities(connection)
            times = self._stay.times or times_of(connection)
            found, wanted = as_published(connection, one), {name for player in players for name in ids.ids(player)}
            rows = [row for row in found.rows if not players or row.player in wanted][: limit or None]
            source = Publication(one.position, one.event_id, one.recorded_at, one.by)
            remark = f"Published at position {one.position} by {one.by}, {times.stated(one.recorded_at)}."
            return standings_answer(found, rows, Coordinates(one.as_of, one.known_at, None), times, remark, source)

    def publications(self) -> Publications:
        """The published lists, the last one of each ladder and time. Of the coordinates only `known_at` matters.

        Raises `BadArgument`, `StoreUnavailable`.
        """
        from ratings_ledger.projections.queries.published import publications

        with self._reading() as connection:
            position = position_known(connection, self.known_at, None, self.note)
            return publications(connection, position, self._stay.times or times_of(connection))

    def list_beside(self, ladder: str, position: int | None = None) -> PublishedListDiff:
        """The list of a ladder that was published last, or last for `as_of`, or at a position, beside the same list as
        known now.

        `rules` does not matter. Raises as `published` does, `RulesetUnusable`.
        """
        from ratings_ledger.projections.diff.published_lists import list_beside

        with self._reading() as connection:
            one = self._list(connection, ladder, position)
            times = self._stay.times or times_of(connection)
            known_at = position_known(connection, self.known_at, date_zone(connection, ladder, times), self.note)
            return list_beside(connection, self._kept.checked(connection, known_at), one, self.note, times)

    def event_impact(self, position: int) -> EventImpact:
        """What the event at a position did to everybody's points: of the coordinates only `known_at` matters.

        Raises `BadArgument`, `Unknown` (event-unknown) for a position behind that, `StoreUnavailable`.
        """
        from ratings_ledger.projections.diff.event_impacts import event_impact

        with self._reading() as connection:
            end = position_known(connection, self.known_at, None, self.note)
            if not 1 <= position <= end:
                raise Unknown("event-unknown", f"there is no position {position}; the log as it is asked ends at {end}")
            kept = KeptLadders()  # of its own: what others ask for stays at hand
            before, after = (kept.checked(connection, there) for there in (position - 1, position))
            return event_impact(connection, before, after, self._stay.times or times_of(connection))

    @retry_on_damaged_cache
    def games_with_clock(self) -> frozenset[str]:
        """The games whose clock was started. Of the coordinates only `known_at` matters.

        Raises as `publications` does.
        """
        from ratings_ledger.projections.queries.clocks import games_timed

        with self._reading() as connection:
            position = position_known(connection, self.known_at, None, self.note)
            return games_timed(self._known(connection, position, lazily=True).facts)

    @retry_on_damaged_cache
    def history(self, ladder: str, player: str) -> History:
        """Every change of a player's points. Raises as `asking` does, `Unknown` for somebody who is not recorded."""
        from ratings_ledger.projections.queries.history import History, course_of

        with self.asking(ladder, lazily=True) as asked:
            refuse_unknown(asked.ladders.facts, player)
            player = asked.ladders.facts.current(player)
            steps = course_of(asked.connection, asked.ladders, ladder, player)
            kind = asked.ladders.versions(ladder)[0].ranking
            return History(
                player,
                ladder,
                asked.ladders.coordinates,
                steps,
                running=kind.running,
                sums_lists=kind.sums_lists,
                times=asked.times,
            )

    @retry_on_damaged_cache
    def profile(self, ladder: str, player: str) -> Profile:
        """What a ladder says of a player: their standing, their course, streaks, places and opponents.

        Raises as `history` does.
        """
        from ratings_ledger.projections.queries.players import profile_of

        with self.asking(ladder, lazily=True) as asked:
            refuse_unknown(asked.ladders.facts, player)
            player = asked.ladders.facts.current(player)
            return profile_of(asked.connection, asked.ladders, ladder, player, asked.times)

    @retry_on_damaged_cache
    def ranks(self, ladder: str, player: str) -> Ranks:
        """A player's rank over time, wherever it changed. Raises as `history` does."""
        from ratings_ledger.projections.queries.history import ranks_over_time

        with self.asking(ladder, lazily=True) as asked:
            refuse_unknown(asked.ladders.facts, player)
            player = asked.ladders.facts.current(player)
            return ranks_over_time(asked.connection, asked.ladders, ladder, player, asked.times)

    def ids(self, player: str) -> list[str]:
        """All ids of a person, the one that is asked for first; of the coordinates only `known_at` matters.

        Raises `BadArgument`, `StoreUnavailable`.
        """
        with self._reading() as connection:
            position = position_known(connection, self.known_at, None, self.note)
            return identities(connection, position).asked_first(player)

    def has_game(self, game_id: str) -> bool:
        """Whether a game of this id was ever recorded. Raises `StoreUnavailable`."""
        with self._reading() as connection:
            return game_id in first_positions(connection, [game_id])

    def similar_game(self, game_id: str) -> str:
        """The end of a message about an unknown game: which was probably meant, or nothing. Raises as `has_game`."""
        with self._reading() as connection:
            return Log(connection).similar("game", game_id)

    @retry_on_damaged_cache
    def explain(self, ladder: str, game_id: str) -> GameExplanation:
        """Why a game changed points as it did, or why it does not count.

        Raises as `asking` does, `Unknown` (game-unknown) for a game that is not recorded.
        """
        from ratings_ledger.projections.queries.explain import explain_game, row_of_game

        with self.asking(ladder, lazily=True) as asked:
            row = row_of_game(asked.connection, asked.ladders.facts, game_id)
            return explain_game(asked.ladders, ladder, game_id, row, asked.times)

    @retry_on_damaged_cache
    def account(self, ladder: str, player: str) -> PlayerExplanation:
        """How a player's place comes about, or why they have none. Raises as `history` does."""
        from ratings_ledger.projections.queries.explain import explain_player

        with self.asking(ladder, lazily=True) as asked:
            refuse_unknown(asked.ladders.facts, player)
            return explain_player(asked.connection, asked.ladders, ladder, player, asked.times)

    @retry_on_damaged_cache
    def months(self, ladder: str) -> dict[str, str]:
        """The lists that a list of a year sums, by month, whether or not they have games; none of other ladders.

        Raises as `asking` does.
        """
        with self.asking(ladder, lazily=True) as asked:
            versions = asked.ladders.versions(ladder)
            if not versions[0].ranking.sums_lists:
                return {}
            params: Any = newest(versions).params
            return months_of(ladder, newest(versions), asked.ladders.facts.rulesets[params.of])

    @retry_on_damaged_cache
    def season_before(self, ladder: str) -> str | None:
        """The season whose points are carried over to another one. Raises as `asking` does."""
        with self.asking(ladder, lazily=True) as asked:
            if not any(version.params.carry_over for version in asked.ladders.versions(ladder)):
                return None
            before = asked.ladders.stream(ladder).previous
            return None if before is None else before.ladder

    @retry_on_damaged_cache
    def statement(self, ladder: str, player: str, last: int | None = None) -> Statement | None:
        """What changed a player's points since the list that was published last, or since their start, line by line.

        Of more than `last` games and adjustments, one line sums those before the last ones. None on lists, whose points
        are no sum of changes. Raises as `history` does.
        """
        from ratings_ledger.projections.diff.statements import statement_of

        with self.asking(ladder, lazily=True) as asked:
            facts, versions = asked.ladders.facts, asked.ladders.versions(ladder)
            refuse_unknown(facts, player)
            if not versions[0].ranking.running:
                return None
            return statement_of(asked.connection, asked.ladders, ladder, facts.current(player), asked.times, last)

    def story(self, game_id: str) -> GameTimeline:
        """What became of a game, and what it did on each of its ladders.

        Raises as `surveying` does, `Unknown` (game-unknown) for a game that is not recorded.
        """
        from ratings_ledger.projections.queries.game_timelines import game_story

        with self.surveying() as seen:
            return game_story(seen, game_id)

    def stories(self, game_ids: Sequence[str], ladder: str | None = None) -> Iterator[GameTimeline]:
        """The stories of some games, one at a time; what they did on all their ladders, or on one.

        Raises as `story` does.
        """
        from ratings_ledger.projections.queries.game_timelines import stories

        with self.surveying() as seen:
            yield from stories(seen, game_ids, ladder)

    def other_result(self, game_id: str, places: Sequence[int]) -> OtherResult:
        """What a game would have given with other places, in the order of its participants.

        Raises as `surveying` does, `Unknown` (game-unknown), and `BadArgument` for places that no result has.
        """
        from ratings_ledger.projections.diff.what_if import other_result

        with self.surveying() as seen:
            return other_result(seen, game_id, places)

    @retry_on_damaged_cache
    def balance(self, ladder: str) -> Balance:
        """The trial balance: what players have, against where it came from. Raises as `asking` does."""
        with self.asking(ladder, lazily=True) as asked:
            return balance_answer(asked.ladders.standings(ladder), asked.ladders.coordinates, asked.times)

    def decisions(self, after: str | int) -> Decisions:
        """What was decided after a time or position and up to `known_at`, by whom and why, and what it did to points.

        Of the coordinates only `known_at` matters; 0 is before the first event. Raises `BadArgument`,
        `StoreUnavailable`, `StoreDamaged`.
        """
        from ratings_ledger.projections.diff.decisions import decided

        with self._reading() as connection:
            ends = []
            for name, asked in (("after", after), ("known_at", self.known_at)):
                try:
                    ends.append(0 if str(asked) == "0" else position_known(connection, asked, None, self.note))
                except BadArgument as problem:
                    raise BadArgument(str(problem), name) from None
            if ends[0] >= ends[1]:
                told = f"nothing lies between the positions {ends[0]} and {ends[1]}; --from is the earlier one"
                raise BadArgument(told)
            return decided(connection, ends[0], ends[1], self._stay.times or times_of(connection))

    def rulesets(self) -> AllRulesets:
        """The published versions, and which of them score games that end now. Of the coordinates only `known_at`
        matters. Raises `BadArgument`, `StoreUnavailable`.
        """
        from ratings_ledger.projections.queries.ruleset_states import all_rulesets

        with self._reading() as connection:
            return all_rulesets(connection, position_known(connection, self.known_at, None, self.note))

    def ruleset(self, name: str) -> RulesetState:
        """What a version, ID@VERSION, or the newest in force of a ruleset says, and when which version scores.

        Raises as `rulesets` does.
        """
        from ratings_ledger.projections.queries.ruleset_states import ruleset_state

        with self._reading() as connection:
            position = position_known(connection, self.known_at, None, self.note)
            return ruleset_state(connection, name, position, self._stay.times or times_of(connection))

    def leagues(self) -> AllLeagues:
        """The leagues, what they wait for, and who won. Raises as `surveying` does."""
        from ratings_ledger.projections.queries.leagues import all_leagues

        with self.surveying() as seen:
            return all_leagues(seen)

    def league(self, name: str) -> LeagueState:
        """A league's players, its schedule with what is played and what is open, and its table.

        Raises as `surveying` does, and `LedgerError` with the reason league-unknown.
        """
        from ratings_ledger.projections.queries.leagues import league_state

        with self.surveying() as seen:
            return league_state(seen, name)

    def unmet(self, ladder: str, player: str) -> Unmet:
        """Whom a player has not met yet in a league or on a ladder. Raises as `league` and `asking` do, `Unknown` for
        somebody who is not in it, and for a league without a ladder.
        """
        from ratings_ledger.projections.queries.leagues import ladder_named, unmet

        if "/" not in ladder:
            with self.surveying() as seen:
                ladder = ladder_named(seen, ladder)
        with self.asking(ladder) as asked:
            return unmet(asked.connection, asked.ladders, ladder, asked.ladders.facts.current(player), asked.times)

    def clock(self, game_id: str, at: int | None = None) -> ClockState:
        """Every timer of a game at the server's time `at`, in milliseconds, by default at the last event.

        Of the coordinates only `known_at` matters. Raises `BadArgument`, `Unknown` for a game without a clock, or one
        that had not been started.
        """
        from ratings_ledger.projections.queries.clocks import show_clock

        return show_clock(self._clock_events(game_id)[0], at)

    def clock_of(self, game_id: str, player: str, at: int | None = None) -> ClockExplanation:
        """What was taken from a player's main timer and given to it. Raises as `clock` does."""
        from ratings_ledger.projections.queries.clocks import explain_clock

        events, current = self._clock_events(game_id)
        return explain_clock(events, current(player), at)

    def _clock_events(self, game_id: str) -> tuple[list[dict[str, Any]], Callable[[str], str]]:
        from ratings_ledger.projections.queries.clocks import events_of_clock

        with self._reading() as connection:
            return events_of_clock(connection, game_id, position_known(connection, self.known_at, None, self.note))

    def simulate(self, rulesets: Sequence[tuple[dict[str, str], Ruleset]], ladders: Collection[str] = ()) -> Simulation:
        """What if each of some rulesets, with what was set in them, had scored its games from the start?

        On the ladders that are named, or on all. `rules` does not matter; a date ends in the zone of the first ruleset
        if there is no home zone. Raises as `surveying` does, `Unknown` for a ladder without games, `RulesetRefused`.
        """
        from ratings_ledger.projections.diff.what_if import simulated, why_alone

        with self._reading() as connection:
            times = self._stay.times or times_of(connection)
            every = self._kept.checked(connection, position_known(connection, self.known_at, None, self.note))
            now = every.at(instant_played(self.as_of, times.home or rulesets[0][1].time_zone))
            for told in dict.fromkeys(why_alone(now, ruleset) for _, ruleset in rulesets):
                if told is not None:
                    self.note(told)
            return simulated(connection, now, rulesets, ladders, times)

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
        """The newest `limit` games (0: all) as they stand, by the time they were played.

        All, or those of one name, with one player, played from `since` on, recorded by somebody. Dates are in the home
        zone. Raises `BadArgument`, `StoreUnavailable`.
        """
        from ratings_ledger.projections.queries.games_log import RecordedGames, games_as_they_stand, is_wanted

        with self._reading() as connection:
            times = self._stay.times or times_of(connection)
            end = instant_played(self.as_of, times.zone)
            until = position_known(connection, self.known_at, None, self.note)
            people = identities(connection, until)
            wanted = partial(
                is_wanted,
                first=None if since is None else moment(instant_since(since, times.zone)),
                last=None if end is None else moment(end),
                game_id=game_id,
                game=game,
                ids=None if player is None else people.ids(player),
            )
            found, every, left_out = games_as_they_stand(connection, until, wanted, by, limit)
            hint = ""
            if not found and game_id is not None:
                hint = Log(connection).similar("game", game_id)
            elif not found and (player or game):
                hint = similar_name(self._known(connection, head(connection).position).facts, player, game)
        rows = tuple(replace(one, data=people.present(one.data)) if people else one for one in found)
        return RecordedGames(rows, older=every - len(rows), game_id=game_id, hint=hint, left_out=left_out, times=times)

    def with_ladder(self, one: str, other: str | None, is_player: bool = True) -> tuple[str, str]:
        """A player and a ladder, in whichever order they were given, or with the only ladder that the player is on.

        Unless `is_player`, it may be a game as well, with the only ladder on which it counts; several on which it did
        the same are as good as one, which is told in a note. Raises as `only_ladder` does.
        """
        if other is not None:
            return self._in_order(one, other)
        if "/" in one:
            raise BadArgument(f"{shown(one)} is a ladder; name a player or a game, too", "player")
        from ratings_ledger.projections.queries.game_timelines import ladders_meant, same_on
        from ratings_ledger.projections.queries.survey import only_ladder_of

        with self.surveying() as seen:
            own, of_game = ladders_meant(seen, one, is_player)
        if of_game and (alike := same_on([self.explain(ladder, one) for ladder in of_game], self.note)):
            return one, alike
        return one, only_ladder_of(own, f" that {shown(one)} is on", self.as_of)

    def live_games(self, after: int = 0) -> Iterator[RecordedGame]:
        """The games that are not voided, with the current ids of their players, in the order in which they were first
        recorded, one at a time; of those recorded behind a position. Recorded elsewhere in that order they give the
        same points. Raises `BadArgument`.
        """
        from ratings_ledger.projections.queries.games_log import games_that_stand

        with self._reading() as connection:
            last = instant_played(self.as_of, (self._stay.times or times_of(connection)).zone)
            until = position_known(connection, self.known_at, None, self.note)
            yield from games_that_stand(connection, until, last, after)

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
        """The newest `limit` events (0: all) as they were written, in the order of the log; `as_of` does not matter.

        All, or those about a game, an event's id or a player, recorded from `since` on, by somebody, of some types, by
        the imports of a batch. Raises `BadArgument`, `Refused` for an unknown batch, `StoreUnavailable`.
        """
        from ratings_ledger.ledger.validation.batches import named_batches
        from ratings_ledger.projections.queries.games_log import RecordedEvents, events_as_written

        for name in types:
            if name not in TYPES:
                raise BadArgument(f"{shown(name)} is not a type of event{did_you_mean(name, TYPES)}", "types")
        with self._reading() as connection:
            until = position_known(connection, self.known_at, None, self.note)
            after = position_since(connection, since)
            within = None if batch is None else named_batches(connection, batch, until)
            rows, older = events_as_written(connection, until, subject, after, by, types, limit, within)
            narrowed = since is not None or by is not None or batch is not None or bool(types)
            hint = ""
            if subject is not None and not rows and not narrowed:
                log = Log(connection, until)
                hint = log.similar("game", subject) or log.similar("player", subject)
            times = self._stay.times or times_of(connection)
            return RecordedEvents(rows, older=older, subject=subject, narrowed=narrowed, hint=hint, times=times)

    @retry_on_damaged_cache
    def telling_positions(self) -> frozenset[int]:
        """The positions of the events that may have moved somebody who did not play: decisions, and games played before
        a list that had been published. Of the coordinates only `known_at` matters. Raises as `publications` does.
        """
        from ratings_ledger.projections.diff.event_impacts import telling_positions

        with self._reading() as connection:
            position = position_known(connection, self.known_at, None, self.note)
            every = self._known(connection, position, lazily=True).at(None)
            return telling_positions(connection, every)

    @retry_on_damaged_cache
    def last_event(self, ladder: str, player: str | None = None) -> LastEvent:
        """The last event that a ladder depends on, or a player there: with `known_at` there, the answers are the same.

        Except for the ranks, and gold, of a player, which depend on everybody. Raises as `asking` does, `Unknown` for
        somebody who is not recorded.
        """
        from ratings_ledger.projections.queries.last_events import last_event

        with self.asking(ladder, lazily=True) as asked:
            if player is not None:
                refuse_unknown(asked.ladders.facts, player)
            position = last_event(asked.connection, asked.ladders, ladder, player)
            return LastEvent(position, moment(recorded_at(asked.connection, position)))

    @retry_on_damaged_cache
    def last_event_of_ranks(self, found: Ranks) -> LastEvent:
        """The last event that a player's ranks over time depend on: with `known_at` there, they are the same.

        A game of others that left the rank as it was is none. Raises as `asking` does.
        """
        from ratings_ledger.projections.queries.last_events import last_event

        with self.asking(found.ladder, lazily=True) as asked:
            moved = [row.position for row in found.rows or () if row.position is not None]
            player = found.player if found.every == "step" and found.rows is not None else None
            position = last_event(asked.connection, asked.ladders, found.ladder, player, max(moved, default=0))
            return LastEvent(position, moment(recorded_at(asked.connection, position)))

    def last_positions(self, ladder: str, players: Collection[str]) -> dict[str, int]:
        """By player, the positions of the last events that some players on a ladder depend on.

        Raises as `last_event` does, which tells one player's.
        """
        from ratings_ledger.projections.queries.last_events import last_event

        with self.asking(ladder, lazily=True) as asked:
            wanted = known_ones(asked.ladders.facts, players)
            return {player: last_event(asked.connection, asked.ladders, ladder, player) for player in wanted}

    @retry_on_damaged_cache
    def last_event_of_game(self, game_id: str) -> LastEvent:
        """The last event that a game and its explanations on its ladders depend on; `as_of` does not matter.

        Raises `BadArgument`, `RulesetUnusable`, `StoreUnavailable`, `Unknown` for a game that is not recorded.
        """
        from ratings_ledger.projections.queries.explain import row_of_game
        from ratings_ledger.projections.queries.last_events import last_event_of_game

        with self._reading() as connection:
            every = self._known(connection, position_known(connection, self.known_at, None, self.note), lazily=True)
            check_version(every.facts, self.rules)
            position = last_event_of_game(connection, every, row_of_game(connection, every.facts, game_id))
            return LastEvent(position, moment(recorded_at(connection, position)))

    def games_recorded(self) -> int:
        """How many games are recorded, voided ones included. Raises as `surveying` does."""
        with self.surveying() as seen:
            return len(seen.facts.first_position)

    def last_positions_of_games(self) -> dict[str, int]:
        """The positions of the last events that games depend on, by their ids, in the order of their first records.

        Raises as `surveying` does; see `last_event_of_game`.
        """
        from ratings_ledger.projections.queries.game_timelines import last_positions_of_games

        with self.surveying() as seen:
            return last_positions_of_games(seen)

    def last_positions_of_people(self) -> dict[str, int]:
        """The position of the last event about a game of each person, on a ladder or not, or about who they are.

        Raises as `surveying` does.
        """
        from ratings_ledger.projections.queries.last_events import last_positions_of_people

        with self.surveying() as seen:
            return last_positions_of_people(seen.connection, seen.everything)
