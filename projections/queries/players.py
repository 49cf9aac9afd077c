"""Players: their profile on a ladder, and what they started, finished and won on all of them.

Of a trace that is kept only what the player's own games touch is read, apart from everybody's points for the rank.

Stars show how reliably players finish what they start, over their last 99 games and only after 20 (Catan Online World).
Games taken over as a substitute count neither way, nor do games that were ended by agreement or voided.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import ABORTED, Facts
from ratings_ledger.projections.facts.players import known_players, rows_with
from ratings_ledger.projections.queries.coordinates import Coordinates, Times, moment
from ratings_ledger.projections.queries.history import Change, Course, load_course
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.last_events import last_event_at, last_positions_of_people
from ratings_ledger.projections.queries.results import (
    COURSE,
    FRACTION_ONLY,
    HIDDEN,
    Answer,
    LastEvent,
    Result,
)
from ratings_ledger.projections.queries.standings import (
    Standing,
    build_standing,
    rows_of_players,
)
from ratings_ledger.projections.queries.survey import (
    ManyAnswers,
    PersonRow,
    Survey,
    rows_by_player,
)
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Period, find_period, is_running, list_games


@dataclass(frozen=True, slots=True)
class Streak(Result):
    """Games in a row, from the first to the last of them."""

    games: int
    first_game_id: str
    began_at: datetime
    last_game_id: str
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class PlaceCount(Result):
    """In how many games somebody had a place."""

    place: int
    games: int


@dataclass(frozen=True, slots=True)
class Opponent(Result):
    """Somebody met: in how many games, and in how many of them with a better, an equal or a worse place than theirs.

    Games without places are among `games` alone.
    """

    player: str
    games: int
    better: int
    equal: int
    worse: int


@dataclass(frozen=True, slots=True)
class Profile(Answer):
    """What a ladder says of a player, in games that count there.

    standing:  their row, None if they have none; `ranked` is how many have a rank, of all `players`
    course:    every game and adjustment, as `history` has them; on lists points are sums over games
    highest:   where their points were highest, and `lowest` where they were lowest, for the first time
    wins:      games that they won: with place 1, which nobody shared
    longest_without_win: of games with places, as all streaks; a current streak is one that the last of them is in
    places:    the places that they had, best first
    opponents: everybody they met, most often met first
    """

    player: str
    ladder: str
    ruleset: str
    at: Coordinates
    standing: Standing | None
    ranked: int
    players: int
    steps: Course = field(metadata=COURSE, repr=False, hash=False)
    highest: Change | None
    lowest: Change | None
    first_game: Change | None
    last_game: Change | None
    wins: int
    longest_wins: Streak | None
    current_wins: Streak | None
    longest_without_win: Streak | None
    current_without_win: Streak | None
    places: tuple[PlaceCount, ...]
    opponents: tuple[Opponent, ...]
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)

    @property
    def course(self) -> tuple[Change, ...]:
        """Return every change, made of the `steps` of the course."""
        found: tuple[Change, ...] = self.steps.rows
        return found


WINDOW_GAMES = 99
STARS_FROM = 20
# the percentage finished from which on there are this many stars; those of the first are golden
STARS = ((95, 3), (80, 3), (65, 2), (50, 1))


class Paid(NamedTuple):
    """Gold from a list: the pieces, up to which instant it was computed, and the period that has to be over."""

    ladder: str
    pieces: int
    as_of: int | None
    period: Period | None


class Gold(NamedTuple):
    """What lists paid, by player; and those that cannot be replayed, with the reason, and everybody who is on them."""

    paid: dict[str, list[Paid]]
    failed: list[tuple[Paid, str, Collection[str]]]


def player_statistics(seen: Survey, player: str, game: str | None = None) -> PlayerStatistics:
    """Return what somebody did, over all games or those of one name, and their gold over all lists whose period is
    over.

    Raises `Unknown` (player-unknown) for somebody who played nothing like that.
    """
    facts = seen.facts
    player = facts.current(player)
    found = PlayerStatistics(**_statistics(seen, player, game, _gold(seen, player)))
    if not found.started and not found.substituted:
        what = ("" if game is None else f" {quote(game)}") + ("" if seen.asked is None else f" up to {seen.asked}")
        hint = "" if facts.knows(player) else did_you_mean(player, known_players(facts))
        raise Unknown("player-unknown", f"{quote(player)} has not played{what}; see: ratings games{hint}")
    return found


def person_of(seen: Survey, player: str) -> Person:
    """Return what somebody did and where they stand. Raises `Unknown` (player-unknown) for who is on no ladder."""
    facts, everybody = seen.facts, seen.once("by player", rows_by_player)
    # a club may be called like a player who has another id by now
    player = player if player in everybody else facts.current(player)
    if player not in everybody:
        raise Unknown("player-unknown", f"{quote(player)} is on no ladder{did_you_mean(player, everybody)}")
    ids = _ids(facts, player)
    at = last_positions_of_people(seen.connection, seen.everything, rows_with(facts, ids)).get(player)
    last = None if at is None else last_event_at(seen.connection, at)
    return Person(
        **_statistics(seen, player, None, seen.once("gold", _gold)),
        rows=tuple(everybody[player]),
        last=last,
        earlier=tuple(sorted(facts.players[one] for one in ids - {facts.player_numbers.get(player)})),
    )


def _statistics(seen: Survey, player: str, game: str | None, paying: Gold) -> dict[str, Any]:
    """Return the members of `PlayerStatistics`."""
    at = seen.coordinates

    def counts(one: Paid) -> bool:
        """Tell whether a list is over, and of this game."""
        games = list_games(seen.facts.rulesets[parse_name(one.ladder).ruleset_id])
        return game in {None, *games} and not (one.period and is_running(one.period, clock.now(), one.as_of))

    gold = [one for one in paying.paid.get(player, ()) if counts(one)]
    seen.failures += [why for one, why, names in paying.failed if player in names and counts(one)]
    done, substituted = _games(seen.facts, player, at.as_of, game)
    window = done[-WINDOW_GAMES:]
    ratio = ExactNumber(sum(window), len(window)) if window else None
    stars, golden = _stars(ratio, len(done))
    return {
        "player": player,
        "game": game,
        "at": at,
        "started": len(done),
        "finished": sum(done),
        "substituted": substituted,
        "ratio": ratio,
        "stars": stars,
        "golden": golden,
        "gold": sum(one.pieces for one in gold),
        "gold_by_list": {one.ladder: one.pieces for one in gold},
        "gold_as_of": {one.ladder: None if one.as_of is None else moment(one.as_of) for one in gold},
        **seen.told(),
    }


def _ids(facts: Facts, player: str) -> set[int]:
    """Return the numbers of all ids of a person."""
    if not facts.knows(player):
        return set()
    number = facts.player_numbers[player]
    return {one for one, person in enumerate(facts.person) if person == number} if facts.renamed else {number}


def _games(facts: Facts, player: str, as_of: int | None, game: str | None) -> tuple[list[bool], int]:
    """Tell whether each of the games they started was finished, in the order played; and how many they took over."""
    done: list[bool] = []
    substituted = 0
    ids = _ids(facts, player)
    for row in sorted(rows_with(facts, ids), key=facts.occurred_at.__getitem__):  # rows are in the log's order
        if row in facts.voided or facts.cell_of(row).flags & ABORTED or game not in (None, facts.label("game", row)):
            continue
        if as_of is not None and facts.occurred_at[row] > as_of:
            break
        for p in range(facts.start[row], facts.start[row] + facts.count[row]):
            if facts.player[p] in ids:
                status = STATUSES[facts.status[p]]
                if status == "substitute":
                    substituted += 1
                else:
                    done.append(status == "finished")
    return done, substituted


def _stars(ratio: Fraction | None, started: int) -> tuple[int | None, bool]:
    if ratio is None or started < STARS_FROM:
        return None, False
    for least, stars in STARS:
        if ratio * 100 >= least:
            return stars, least == STARS[0][0]
    return 0, False


def _gold(seen: Survey, player: str | None = None) -> Gold:
    """Return what every list pays, or those that a player is on."""
    found = Gold(defaultdict(list), [])
    paying = [one for one in seen.usable if seen.facts.rulesets[one][0].ranking.pays_gold]
    for ladders, stream in seen.streams(paying):
        if player is not None and player not in stream.names:
            continue
        period = find_period(stream.versions[0].ruleset, parse_name(stream.ladder).values)
        paid = Paid(stream.ladder, 0, ladders.as_of, period)
        try:
            rows = ladders.rank_stream(stream).rows
        except RuleFailure as failure:
            found.failed.append((paid, describe_failure(failure, seen.facts, seen.connection), stream.names))
            continue
        for row in rows:
            if row.gold:
                found.paid[row.player].append(paid._replace(pieces=row.gold))
    return found


class OwnGame(NamedTuple):
    """A game for one of its players: their place (0: none), whether it is an unshared place 1, and the others who count
    in it, by their numbers in the stream, with their places."""

    place: int
    won: bool
    others: Sequence[tuple[int, int]]


def profile_of(connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times) -> Profile:
    """Return the profile of a player, by current id, who may not be on the ladder. Raises `UnknownLadder`,
    `RuleFailure`.
    """
    trace = ladders.trace(ladder)
    found, _ = ladders.rank(trace)
    row = rows_of_players(found.rows, {player}).get(player)
    course = load_course(connection, ladders, ladder, player)
    games = [index for index, is_game in enumerate(course.is_game) if is_game]
    own = [*_own_games(trace, player, course)]
    results = [(game, one.won) for game, one in zip(games, own, strict=True) if one.place]
    places = Counter(one.place for one in own if one.place)
    return Profile(
        player,
        ladder,
        found.ruleset,
        ladders.coordinates,
        None if row is None else build_standing(row, found.scale, found.shown),
        # those without a rank come last
        bisect_left(found.rows, True, key=lambda other: other.rank is None),
        len(found.rows),
        course,
        *_extremes(course),
        course[games[0]] if games else None,
        course[games[-1]] if games else None,
        sum(won for _, won in results),
        *_streaks(course, results, True),
        *_streaks(course, results, False),
        tuple(PlaceCount(place, places[place]) for place in sorted(places)),
        _opponents(trace, own),
        running=trace.stream.ranking.running,
        times=times,
    )


def _own_games(trace: Trace, player: str, course: Course) -> Iterator[OwnGame]:
    """Yield a player's games, in order."""
    if not course:
        return
    stream = trace.stream
    own, person = stream.names.index(player), course.person
    games = [step.game for step in trace.steps(own) if step.game is not None]
    for players, game in zip(trace.players_of_all(games), course.games(), strict=True):
        # of two seats of one person the first counts
        seats = dict(zip(reversed(game.persons), reversed(game.places), strict=True))
        place = seats[person]
        others = [(number, seats[stream.persons[number]]) for number in players if number != own]
        # a seat that changed hands counts once
        won = place == 1 and [*zip(game.places, game.replaced, strict=True)].count((1, 0)) == 1
        yield OwnGame(place, won, others)


def _extremes(course: Course) -> tuple[Change | None, Change | None]:
    """Return the highest and the lowest, the first of each."""
    if not course:
        return None, None
    return course[course.units.index(max(course.units))], course[course.units.index(min(course.units))]


def _streaks(course: Course, results: Sequence[tuple[int, bool]], won: bool) -> tuple[Streak | None, Streak | None]:
    """Return the longest streak of games that were won, or were not, and the one that the last game is in, if it is in
    one.
    """
    runs = [(outcome, [game for game, _ in run]) for outcome, run in groupby(results, key=lambda one: one[1])]
    longest = max((run for outcome, run in runs if outcome == won), key=len, default=None)
    current = runs[-1][1] if runs and runs[-1][0] == won else None
    return _streak(course, longest), _streak(course, current)


def _streak(course: Course, run: Sequence[int] | None) -> Streak | None:
    if run is None:
        return None
    first, last = course[run[0]], course[run[-1]]
    assert first.game_id is not None
    assert last.game_id is not None
    return Streak(len(run), first.game_id, first.occurred_at, last.game_id, last.occurred_at)


def _opponents(trace: Trace, own: Iterable[OwnGame]) -> tuple[Opponent, ...]:
    """Return everybody met in some games, most often met first, then by id."""
    met: dict[int, list[int]] = {}
    for game in own:
        for other, place in game.others:
            counts = met.setdefault(other, [0, 0, 0, 0])
            counts[0] += 1
            if place and game.place:
                counts[1 + (place <= game.place) + (place < game.place)] += 1
    names = trace.stream.names
    found = [Opponent(names[other], *counts) for other, counts in met.items()]
    return tuple(sorted(found, key=lambda one: (-one.games, one.player)))


@dataclass(frozen=True, slots=True)
class PlayerStatistics(ManyAnswers):
    """What a player did; `ratio` is finished to started games among the last ones, None before the first.

    `stars` is None as long as there are too few games. Gold is that of lists whose period is over, each computed up to
    `gold_as_of`.
    """

    player: str
    game: str | None
    at: Coordinates
    started: int
    finished: int
    substituted: int
    ratio: Fraction | None = field(metadata=FRACTION_ONLY)
    stars: int | None
    golden: bool
    gold: int
    gold_by_list: dict[str, int]
    gold_as_of: dict[str, datetime | None]


@dataclass(frozen=True, slots=True)
class Person(PlayerStatistics):
    """The same of a person who is on a ladder: with the ids they had before, and where they stand everywhere; `last` is
    the last event about a game of theirs, or about who they are.
    """

    earlier: tuple[str, ...]
    rows: tuple[PersonRow, ...]
    last: LastEvent | None = field(metadata=HIDDEN, kw_only=True)
