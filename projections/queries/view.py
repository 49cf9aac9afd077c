"""A view: the ledger at coordinates, of which every question about ladders is asked.

What was played up to `as_of`, as known at `known_at`, under the rulesets' own timelines or the one version `rules`. A
date ends in the ledger's home zone or, without one, in the zone of the ladder's ruleset. Facts are decoded once per
position, and ladders made once per moment. What fewer commands ask is imported when it is asked: a command that asks
for standings does not wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection

from ledger import clock
from ledger.errors import BadArgument, LedgerError, RuleFailed, Unknown
from ledger.events.types import TYPES, Ruleset
from ledger.rejections import Refused, did_you_mean, shown
from ledger.store.log import first_positions, head
from ledger.store.opening import Ledger
from ledger.validation.identities import identities
from ledger.validation.published_lists import published_lists
from projections.facts.columns import Facts
from projections.facts.decoding import decode
from projections.facts.players import known_players
from projections.queries import answers
from projections.queries.coordinates import (
    Coordinates,
    Note,
    Times,
    instant_played,
    instant_since,
    moment,
    note_ahead,
    position_known,
    position_since,
    times_of,
)
from projections.queries.explanation import changes, explain_game, explain_player, history, row_of_game
from projections.queries.ladder_names import other_ladder
from projections.queries.player_statistics import player_statistics
from projections.queries.publication import as_published
from projections.queries.standings import (
    Ladders,
    UnknownLadder,
    balance_answer,
    check_version,
    date_zone,
    ruleset_ids,
    standings_answer,
    versions_of,
    why_unfinished,
)
from projections.queries.survey import Survey, all_ladders, all_lists, every_standings
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import parse_name

if TYPE_CHECKING:
    from projections.queries.answers_compared import Simulation
    from projections.queries.answers_recorded import (
        AllLeagues,
        ClockExplanation,
        ClockState,
        LeagueState,
        RecordedEvents,
        RecordedGame,
        RecordedGames,
        Unmet,
    )


class Question(NamedTuple):
    """A connection, the ladders at the coordinates that one ladder's zone gives, and how times are shown."""

    connection: Connection
    ladders: Ladders
    times: Times


class Kept(NamedTuple):
    """What a view keeps of the position that it was asked at last: the facts, and the ladders by `as_of`."""

    facts: Facts
    ladders: dict[int | None, Ladders]


class View:
    """The ledger at coordinates. What is odd about an answer, though not wrong, is in `notes`, or goes to `note`."""

    def __init__(
        self,
        ledger: Ledger,
        as_of: str | None = None,
        known_at: str | int | None = None,
        rules: str | None = None,
        *,
        note: Note | None = None,
        decode: Callable[[Connection, int], Facts] = decode,
    ) -> None:
        self.ledger = ledger
        self.as_of = as_of
        self.known_at = known_at
        self.rules = rules
        self.notes: list[str] = []
        self._tell = self.notes.append if note is None else note
        self._told: set[str] = set()
        self._decode = decode
        self._last: Kept | None = None

    @contextmanager
    def asking(self, ladder: str) -> Iterator[Question]:
        """The ladders at the coordinates, for questions about one ladder.

        Raises `BadArgument`, `Unknown`, `RuleFailed`, `RulesetUnusable`, `StoreUnavailable`.
        """
        with self.ledger.reading() as connection:
            try:
                # the zone matters only to dates, and finding it takes a look at the rulesets
                zone = "UTC" if self.as_of is None and self.known_at is None else date_zone(connection, ladder)
                kept = self._known(connection, position_known(connection, self.known_at, zone, self.note))
                facts = kept.facts
                try:
                    versions_of(facts, ladder, self.rules)
                except UnknownLadder:
                    date_zone(connection, ladder)  # there is no such ruleset at any position, which is then told
                    raise
                instant = instant_played(self.as_of, zone)
                ladders = kept.ladders.setdefault(instant, Ladders(facts, instant, self.rules))
                note_ahead(self.as_of, zone, self.note)
                times = times_of(connection)
                self._note_idle(ladders, ladder, times)
                yield Question(connection, ladders, times)
            except RuleFailure as problem:
                raise RuleFailed(told_with_game(problem, facts, connection), problem.ladder) from None

    def with_ladder(self, one: str, other: str) -> tuple[str, str]:
        """A player or game and a ladder, in whichever order they were given. Raises `StoreUnavailable`."""
        with self.ledger.reading() as connection:
            if self.known_at is None:
                facts = self._known(connection, head(connection).position).facts
                known = facts.rulesets.keys() | facts.unusable.keys()
            else:
                known = ruleset_ids(connection)
        if parse_name(other).ruleset_id in known:
            return one, other
        swapped = parse_name(one).ruleset_id in known or ("/" in one and "/" not in other)
        return (other, one) if swapped else (one, other)

    @contextmanager
    def surveying(self) -> Iterator[Survey]:
        """All ladders at the coordinates. Raises `BadArgument`, `RulesetUnusable`, `StoreUnavailable`."""
        with self.ledger.reading() as connection:
            times = times_of(connection)
            kept = self._known(connection, position_known(connection, self.known_at, None, self.note))
            check_version(kept.facts, self.rules)
            note_ahead(self.as_of, times.zone, self.note)
            yield Survey(connection, kept.facts, kept.ladders, self.as_of, self.rules, times)

    def ladders(self) -> answers.AllLadders:
        """The ladders that have games or adjustments. Raises as `surveying` does."""
        with self.surveying() as seen:
            return all_ladders(seen)

    def lists(self, period: str | None = None) -> answers.AllLists:
        """The lists of months and years, or of one of them, YYYY or YYYY-MM. Raises as `surveying` does."""
        if period is not None and not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2]))?", period, re.ASCII):
            raise BadArgument(f"{shown(period)} is not a year like 2010 or a month like 2010-03", "period")
        with self.surveying() as seen:
            return all_lists(seen, period)

    def statistics(self, player: str, game: str | None = None) -> answers.PlayerStatistics:
        """What a player started and finished, their stars and their gold. Raises as `surveying` does, and `Unknown`."""
        with self.surveying() as seen:
            return player_statistics(seen, player, game)

    def standings(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> answers.Standings:
        """Who stands where: all rows, or the first `limit`, or those of some players. Raises as `asking` does."""
        with self.asking(ladder) as asked:
            facts = asked.ladders.facts
            for player in players:
                refuse_unknown(facts, player)
            found = asked.ladders.standings(ladder)
            wanted = {facts.current(player) for player in players}
            unfinished = why_unfinished(asked.ladders, ladder, clock.now())
            rows = [row for row in found.rows if not wanted or row.player in wanted][:limit]
            return standings_answer(found, rows, asked.ladders.coordinates, asked.times, unfinished)

    def every_standings(self, ladders: Collection[str] = ()) -> Iterator[answers.Standings | answers.Failed]:
        """The standings of the named ladders or, without names, of all, one at a time; in between what fails.

        Raises as `surveying` does, before the first.
        """
        with self.surveying() as seen:
            for ladder in dict.fromkeys(ladders):
                everything = Ladders(seen.facts)
                everything.versions(ladder)
                if everything.first(ladder) is None and (told := other_ladder(seen.facts, ladder)):
                    self.note(told)
            yield from every_standings(seen, ladders)

    def changes(self, ladder: str) -> Iterator[answers.PlayerChange]:
        """Every change of everybody's points on a ladder, in the order of replay, one at a time.

        Raises as `asking` does, before the first.
        """
        with self.asking(ladder) as asked:
            yield from changes(asked.connection, asked.ladders, ladder)

    def published(self, ladder: str, players: Collection[str] = (), limit: int | None = None) -> answers.Standings:
        """The list of a ladder that was published last, or last for `as_of`, from its events.

        Raises `BadArgument`, `Unknown` (list-unknown) if none was, `StoreDamaged`.
        """
        with self.ledger.reading() as connection:
            times, zone = times_of(connection), date_zone(connection, ladder)
            instant = instant_played(self.as_of, zone)
            position = position_known(connection, self.known_at, zone, self.note)
            lists = published_lists(connection, position, ladder)
            lists = [one for one in lists if self.as_of is None or one.as_of == instant]
            if not lists:
                versions_of(self._known(connection, position).facts, ladder)
                played = "" if instant is None else f" as of {times.second(instant)}"
                told = f"no list of {ladder}{played} has been published; see: ratings publish --help"
                raise Unknown("list-unknown", told)
            one, ids = lists[-1], identities(connection)
            found, wanted = as_published(connection, one), {name for player in players for name in ids.ids(player)}
            rows = [row for row in found.rows if not players or row.player in wanted][:limit]
            source = answers.Publication(one.position, one.event_id, one.recorded_at, one.by)
            remark = f"Published at position {one.position:,} by {one.by}, {times.stated(one.recorded_at)}."
            return standings_answer(found, rows, Coordinates(one.as_of, one.known_at, None), times, remark, source)

    def history(self, ladder: str, player: str) -> answers.History:
        """Every change of a player's points. Raises as `asking` does, `Unknown` for somebody who is not recorded."""
        with self.asking(ladder) as asked:
            refuse_unknown(asked.ladders.facts, player)
            player = asked.ladders.facts.current(player)
            rows = history(asked.connection, asked.ladders, ladder, player)
            kind = asked.ladders.versions(ladder)[0].ranking
            return answers.History(
                player,
                ladder,
                asked.ladders.coordinates,
                rows,
                running=kind.running,
                sums_lists=kind.sums_lists,
                times=asked.times,
            )

    def has_game(self, game_id: str) -> bool:
        """Whether a game of this id was ever recorded. Raises `StoreUnavailable`."""
        with self.ledger.reading() as connection:
            return game_id in first_positions(connection, [game_id])

    def explain(self, ladder: str, game_id: str) -> answers.GameExplanation:
        """Why a game changed points as it did, or why it does not count.

        Raises as `asking` does, `Unknown` (game-unknown) for a game that is not recorded.
        """
        with self.asking(ladder) as asked:
            row = row_of_game(asked.connection, asked.ladders.facts, game_id)
            return explain_game(asked.ladders, ladder, game_id, row, asked.times)

    def account(self, ladder: str, player: str) -> answers.PlayerExplanation:
        """How a player's place comes about, or why they have none. Raises as `history` does."""
        with self.asking(ladder) as asked:
            refuse_unknown(asked.ladders.facts, player)
            return explain_player(asked.connection, asked.ladders, ladder, player, asked.times)

    def balance(self, ladder: str) -> answers.Balance:
        """The trial balance: what players have, against where it came from. Raises as `asking` does."""
        with self.asking(ladder) as asked:
            return balance_answer(asked.ladders.standings(ladder), asked.ladders.coordinates, asked.times)

    def leagues(self) -> AllLeagues:
        """The leagues, what they wait for, and who won. Raises as `surveying` does."""
        from projections.queries.leagues import all_leagues

        with self.surveying() as seen:
            return all_leagues(seen)

    def league(self, name: str) -> LeagueState:
        """A league's players, its schedule with what is played and what is open, and its table.

        Raises as `surveying` does, and `LedgerError` with the reason league-unknown.
        """
        from projections.queries.leagues import league_state

        with self.surveying() as seen:
            try:
                return league_state(seen, name)
            except Refused as problem:
                raise LedgerError(f"{problem.code}: {problem.message}", problem.code) from None

    def unmet(self, ladder: str, player: str) -> Unmet:
        """Whom a player has not met yet on a ladder. Raises as `asking` does, `Unknown` for somebody not on it."""
        from projections.queries.entrants import unmet

        with self.asking(ladder) as asked:
            return unmet(asked.connection, asked.ladders, ladder, asked.ladders.facts.current(player), asked.times)

    def clock(self, game_id: str, at: int | None = None) -> ClockState:
        """Every timer of a game at the server's time `at`, in milliseconds, by default at the last event.

        Of the coordinates only `known_at` matters. Raises `BadArgument`, `Unknown` for a game without a clock, or one
        that had not been started.
        """
        from projections.queries.clocks import show_clock

        return show_clock(self._clock_events(game_id), at)

    def clock_of(self, game_id: str, player: str, at: int | None = None) -> ClockExplanation:
        """What was taken from a player's main timer and given to it. Raises as `clock` does."""
        from projections.queries.clocks import explain_clock

        return explain_clock(self._clock_events(game_id), player, at)

    def _clock_events(self, game_id: str) -> list[dict[str, Any]]:
        from projections.queries.clocks import events_of_clock

        with self.ledger.reading() as connection:
            return events_of_clock(connection, game_id, position_known(connection, self.known_at, None, self.note))

    def simulate(
        self, rulesets: Sequence[tuple[dict[str, str], Ruleset]], ladders: Collection[str] = ()
    ) -> Simulation:  # fmt: skip
        """What if each of some rulesets, with what was set in them, had scored its games from the start?

        On the ladders that are named, or on all. `rules` does not matter; a date ends in the zone of the first ruleset
        if there is no home zone. Raises as `surveying` does, `Unknown` for a ladder without games, `RulesetRefused`.
        """
        from projections.queries.simulation import simulated

        with self.ledger.reading() as connection:
            times = times_of(connection)
            facts = self._known(connection, position_known(connection, self.known_at, None, self.note)).facts
            now = Ladders(facts, instant_played(self.as_of, times.home or rulesets[0][1].time_zone))
            return simulated(connection, now, rulesets, ladders, times)

    def games(
        self, game_id: str | None = None, *, game: str | None = None, player: str | None = None,
        since: str | None = None, by: str | None = None, limit: int = 0,
    ) -> RecordedGames:  # fmt: skip
        """The newest `limit` games (0: all) as they stand, by the time they were played.

        All, or those of one name, with one player, played from `since` on, recorded by somebody. Dates are in the home
        zone. Raises `BadArgument`, `StoreUnavailable`.
        """
        from projections.queries.answers_recorded import RecordedGames
        from projections.queries.recorded import games_as_they_stand

        with self.ledger.reading() as connection:
            times = times_of(connection)
            end = instant_played(self.as_of, times.zone)
            first = None if since is None else moment(instant_since(since, times.zone))
            last = None if end is None else moment(end)
            until = position_known(connection, self.known_at, None, self.note)
            people = identities(connection, until)
            ids = None if player is None else people.ids(player)

            def wanted(one: RecordedGame) -> bool:
                return (
                    (last is None or one.occurred_at <= last)
                    and (first is None or one.occurred_at >= first)
                    and game_id in (None, one.data["game_id"])
                    and game in (None, one.data["game"])
                    and (ids is None or any(there["player"] in ids for there in one.data["participants"]))
                )

            found, count, left_out = games_as_they_stand(connection, until, wanted, by, limit)
            hint = ""
            if player is not None and not found:
                hint = did_you_mean(player, known_players(self._decode(connection, head(connection).position)))
        rows = tuple(replace(one, data=people.present(one.data)) if people else one for one in found)
        return RecordedGames(
            rows, older=count - len(rows), game_id=game_id, hint=hint, left_out=left_out, times=times
        )  # fmt: skip

    def events(
        self, subject: str | None = None, *, since: str | None = None, by: str | None = None,
        types: Collection[str] = (), limit: int = 0,
    ) -> RecordedEvents:  # fmt: skip
        """The newest `limit` events (0: all) as they were written, in the order of the log; `as_of` does not matter.

        All, or those about a game, an event's id or a player, recorded from `since` on, by somebody, of some types.
        Raises `BadArgument`, `StoreUnavailable`.
        """
        from projections.queries.answers_recorded import RecordedEvents
        from projections.queries.recorded import events_as_written

        for name in types:
            if name not in TYPES:
                raise BadArgument(f"{shown(name)} is not a type of event{did_you_mean(name, TYPES)}", "types")
        with self.ledger.reading() as connection:
            until = position_known(connection, self.known_at, None, self.note)
            after = position_since(connection, since)
            rows, older = events_as_written(connection, until, subject, after, by, types, limit)
            narrowed = since is not None or by is not None or bool(types)
            return RecordedEvents(rows, older=older, subject=subject, narrowed=narrowed, times=times_of(connection))

    def note(self, text: str) -> None:
        """Say something odd, once."""
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _known(self, connection: Connection, position: int) -> Kept:
        kept = self._last  # which another thread may replace
        if kept is None or kept.facts.position != position:
            kept = self._last = Kept(self._decode(connection, position), {})
        return kept

    def _note_idle(self, ladders: Ladders, ladder: str, times: Times) -> None:
        """If nothing had been played on a ladder by then, note when it began, or which other was probably meant."""
        if ladders.first(ladder) is not None:
            return
        if ladders.as_of is not None and (first := Ladders(ladders.facts, None, ladders.rules).first(ladder)):
            instant, what = first
            self.note(f"the first {what} on {ladder} was at {times.second(instant)}")
        elif told := other_ladder(ladders.facts, ladder):
            self.note(told)


def refuse_unknown(facts: Facts, player: str) -> None:
    """Raises `Unknown` (player-unknown) for somebody the facts know nothing about."""
    if not facts.knows(player):
        hint = did_you_mean(player, known_players(facts))
        raise Unknown("player-unknown", f"nothing is recorded about {shown(player)}{hint}")
