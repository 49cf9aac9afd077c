"""Build player profiles on one ladder, and player statistics over all ladders.

From a cached trace, a profile reads only the parts about the player's own games, and all players' points for the rank.

Stars show how reliably a player finishes games. They cover the last 99 games, and need at least 20 (Catan Online
World). Games in which the player was a substitute do not count, nor do aborted and voided games.
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

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import ABORTED, Facts
from ratings_ledger.projections.facts.lookups import known_players, list_rows_of
from ratings_ledger.projections.queries.coordinates import Coordinates, TimeFormat, to_datetime
from ratings_ledger.projections.queries.history import Change, Course, load_course
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.last_events import last_positions_of_people, load_last_event
from ratings_ledger.projections.queries.results import (
    AS_COURSE,
    FRACTION_ONLY,
    HIDDEN,
    Answer,
    LastEvent,
    Result,
)
from ratings_ledger.projections.queries.standings import (
    Standing,
    build_standing,
    find_rows_of_players,
)
from ratings_ledger.projections.queries.survey import (
    MultiLadderAnswer,
    PersonRow,
    Survey,
    group_rows_by_player,
)
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Period, find_period, list_games


@dataclass(frozen=True, slots=True)
class Streak(Result):
    """A streak of games, from its first to its last game."""

    games: int
    first_game_id: str
    began_at: datetime
    last_game_id: str
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class PlaceCount(Result):
    """The number of games in which a player had a place."""

    place: int
    games: int


@dataclass(frozen=True, slots=True)
class Opponent(Result):
    """An opponent of a player: the number of common games, and of those with a better, equal or worse place.

    `better` counts the games in which the player had a better place than the opponent. Games without places count only
    in `games`.
    """

    player: str
    games: int
    better: int
    equal: int
    worse: int


@dataclass(frozen=True, slots=True)
class Profile(Answer):
    """The profile of a player on a ladder, from the games that count there.

    standing:  the player's row, or None
    ranked:    the number of players with a rank, out of all `players`
    course:    every game and adjustment, as in `history`; on lists, points are sums over games
    highest:   the first change that reached the highest points
    lowest:    the first change that reached the lowest points
    first_game, last_game: the changes by the player's first and last game on the ladder; None without games
    wins:      the number of games won: place 1, shared with partners at most
    longest_wins, longest_without_win: the longest streaks of games won and not won, of all games with places
    current_wins, current_without_win: the streak that includes the last of these games
    places:    the player's places, best first
    opponents: all opponents, the most frequent first
    running:   whether the ladder ranks running points
    """

    player: str
    ladder: str
    ruleset: str
    at: Coordinates
    standing: Standing | None
    ranked: int
    players: int
    steps: Course = field(metadata=AS_COURSE, repr=False, hash=False)
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
        """Return every change of the course."""
        changes: tuple[Change, ...] = self.steps.rows
        return changes


# stars are computed from at most this many of a player's last games, and only with at least this many games
STARS_GAMES_MAX, STARS_GAMES_MIN = 99, 20
# (minimum percentage of finished games, number of stars); the first row gives golden stars
STARS_BY_PERCENTAGE = ((95, 3), (80, 3), (65, 2), (50, 1))


class GoldPayment(NamedTuple):
    """The gold that a player gets from a list, in pieces.

    `as_of` is that of the list. The list pays once its period is over.
    """

    ladder: str
    pieces: int
    as_of: int | None
    period: Period | None


class FailedList(NamedTuple):
    """A list that cannot be replayed: its payment with 0 pieces, the reason, and the players on the list."""

    payment: GoldPayment
    reason: str
    players: Collection[str]


class GoldPayments(NamedTuple):
    """The payments of lists by player, and the lists that cannot be replayed."""

    by_player: dict[str, list[GoldPayment]]
    failed: list[FailedList]


def load_statistics(survey: Survey, player: str, game: str | None = None) -> PlayerStatistics:
    """Return a player's statistics over all games or one game such as catan, with the gold of the lists that pay.

    Raises `Unknown` (player-unknown) for a player without such games.
    """
    facts = survey.facts
    player = facts.current(player)
    statistics = PlayerStatistics(**_build_statistics(survey, player, game, _collect_gold(survey, player)))
    if not statistics.started and not statistics.substituted:
        scope = "" if game is None else f" {quote(game)}"
        scope += "" if survey.requested_as_of is None else f" up to {survey.requested_as_of}"
        hint = "" if facts.knows(player) else did_you_mean(player, known_players(facts), facts.current)
        raise Unknown("player-unknown", f"{quote(player)} has not played{scope}; see: ratings games{hint}")
    return statistics


def load_person(survey: Survey, player: str) -> Person:
    """Return a player's statistics and standings.

    Raises `Unknown` (player-unknown) for a player who is on no ladder.
    """
    facts, rows = survey.facts, survey.share("by player", group_rows_by_player)
    # look up the id itself first, because a club may have the former id of a player
    player = player if player in rows else facts.current(player)
    if player not in rows:
        hint = did_you_mean(player, rows) or "; see: ratings games"
        raise Unknown("player-unknown", f"{quote(player)} is not on any ladder{hint}")
    player_numbers = _find_player_numbers(facts, player)
    games = list_rows_of(facts, player_numbers)
    position = last_positions_of_people(survey.connection, survey.undated, games).get(player)
    last = None if position is None else load_last_event(survey.connection, position)
    return Person(
        **_build_statistics(survey, player, None, survey.share("gold", _collect_gold)),
        rows=tuple(rows[player]),
        last=last,
        earlier=tuple(sorted(facts.players[number] for number in player_numbers - {facts.player_numbers.get(player)})),
    )


def _build_statistics(survey: Survey, player: str, game: str | None, payments: GoldPayments) -> dict[str, Any]:
    """Return the members of `PlayerStatistics` for all games or one game such as catan."""
    at = survey.coordinates

    def is_paid(payment: GoldPayment) -> bool:
        """Tell whether the list of a payment ranks this game, and its period is over."""
        games = list_games(survey.facts.versions_of(payment.ladder))
        return game in {None, *games} and not survey.is_open(payment.period, payment.as_of)

    gold = [payment for payment in payments.by_player.get(player, ()) if is_paid(payment)]
    survey.failures += [entry.reason for entry in payments.failed if player in entry.players and is_paid(entry.payment)]
    was_finished, substitute_count = _read_games(survey.facts, player, at.as_of, game)
    last_games = was_finished[-STARS_GAMES_MAX:]
    ratio = ExactNumber(sum(last_games), len(last_games)) if last_games else None
    stars, are_golden = _award_stars(ratio, len(was_finished))
    return {
        "player": player,
        "game": game,
        "at": at,
        "started": len(was_finished),
        "finished": sum(was_finished),
        "substituted": substitute_count,
        "ratio": ratio,
        "stars": stars,
        "golden": are_golden,
        "gold": sum(payment.pieces for payment in gold),
        "gold_by_list": {payment.ladder: payment.pieces for payment in gold},
        "gold_as_of": {
            payment.ladder: None if payment.as_of is None else to_datetime(payment.as_of) for payment in gold
        },
        **survey.shared_members(),
    }


def _find_player_numbers(facts: Facts, player: str) -> set[int]:
    """Return the numbers of all ids of a person."""
    if not facts.knows(player):
        return set()
    current_number = facts.player_numbers[player]
    if not facts.renamed:
        return {current_number}
    return {number for number, person in enumerate(facts.person) if person == current_number}


def _read_games(facts: Facts, player: str, as_of: int | None, game: str | None) -> tuple[list[bool], int]:
    """Return whether a player finished each game that they started, in order, and how often they were a substitute."""
    was_finished: list[bool] = []
    substitute_count = 0
    player_numbers = _find_player_numbers(facts, player)
    # rows are in log order, which may differ from the order of play
    for row in sorted(list_rows_of(facts, player_numbers), key=facts.occurred_at.__getitem__):
        if row in facts.voided or facts.cell_of(row).flags & ABORTED or game not in (None, facts.label("game", row)):
            continue
        if as_of is not None and facts.occurred_at[row] > as_of:
            break
        for slot in range(facts.start[row], facts.start[row] + facts.count[row]):
            if facts.player[slot] in player_numbers:
                status = facts.status_of(slot)
                if status == "substitute":
                    substitute_count += 1
                else:
                    was_finished.append(status == "finished")
    return was_finished, substitute_count


def _award_stars(ratio: Fraction | None, started_count: int) -> tuple[int | None, bool]:
    """Return the number of stars for a ratio of finished games, and whether they are golden; None for too few games."""
    if ratio is None or started_count < STARS_GAMES_MIN:
        return None, False
    for percent_min, stars in STARS_BY_PERCENTAGE:
        if ratio * 100 >= percent_min:
            return stars, percent_min == STARS_BY_PERCENTAGE[0][0]
    return 0, False


def _collect_gold(survey: Survey, player: str | None = None) -> GoldPayments:
    """Return the payments of all lists, or only of the lists that a player is on."""
    payments = GoldPayments(by_player=defaultdict(list), failed=[])
    paying_rulesets = [name for name in survey.usable_ids if survey.facts.rulesets[name][0].ranking.pays_gold]
    for ladders, stream in survey.streams(paying_rulesets):
        if player is not None and player not in stream.names:
            continue
        period = find_period(stream.versions[0].ruleset, stream.ladder)
        payment = GoldPayment(stream.ladder, pieces=0, as_of=ladders.as_of, period=period)
        try:
            rows = ladders.rank_stream(stream).rows
        except RuleFailure as failure:
            reason = describe_failure(failure, survey.facts, survey.connection)
            payments.failed.append(FailedList(payment, reason, stream.names))
            continue
        for row in rows:
            if row.gold:
                payments.by_player[row.player].append(payment._replace(pieces=row.gold))
    return payments


class OwnGame(NamedTuple):
    """A game from the view of one player.

    place:     the player's place, 0 in a game without places
    is_won:    whether the player's side is the only one with place 1
    opponents: the number in the stream and the place of each opponent
    """

    place: int
    is_won: bool
    opponents: Sequence[tuple[int, int]]


def build_profile(connection: Connection, ladders: Ladders, ladder: str, player: str, times: TimeFormat) -> Profile:
    """Return the profile of a player, given by current id. The player does not need to be on the ladder.

    Raises the errors of `Ladders.trace`.
    """
    trace = ladders.trace(ladder)
    ranking, _ = ladders.rank(trace)
    row = find_rows_of_players(ranking.rows, {player}).get(player)
    course = load_course(connection, ladders, ladder, player)
    game_indexes = [index for index, is_game in enumerate(course.is_game) if is_game]
    own_games = [*_list_own_games(trace, player, course)]
    results = [(index, game.is_won) for index, game in zip(game_indexes, own_games, strict=True) if game.place]
    place_counts = Counter(game.place for game in own_games if game.place)
    longest_wins, current_wins = _find_streaks(course, results, is_won=True)
    longest_without_win, current_without_win = _find_streaks(course, results, is_won=False)
    highest, lowest = _find_extremes(course)
    return Profile(
        player=player,
        ladder=ladder,
        ruleset=ranking.ruleset,
        at=ladders.coordinates,
        standing=None if row is None else build_standing(row, ranking.scale, ranking.visible_states),
        # rows without a rank come last
        ranked=bisect_left(ranking.rows, True, key=lambda row: row.rank is None),
        players=len(ranking.rows),
        steps=course,
        highest=highest,
        lowest=lowest,
        first_game=course[game_indexes[0]] if game_indexes else None,
        last_game=course[game_indexes[-1]] if game_indexes else None,
        wins=sum(is_won for _, is_won in results),
        longest_wins=longest_wins,
        current_wins=current_wins,
        longest_without_win=longest_without_win,
        current_without_win=current_without_win,
        places=tuple(PlaceCount(place, place_counts[place]) for place in sorted(place_counts)),
        opponents=_count_opponents(trace, own_games),
        running=trace.stream.ranking.running,
        times=times,
    )


def _list_own_games(trace: Trace, player: str, course: Course) -> Iterator[OwnGame]:
    """Yield a player's games, in order."""
    if not course:
        return
    stream = trace.stream
    number, person = stream.names.index(player), course.person
    games = [step.game for step in trace.steps(number) if step.game is not None]
    for players, game in zip(trace.players_by_game(games), course.games(), strict=True):
        # reversed, so that a person in two seats counts with the first one
        place_of = dict(zip(reversed(game.persons), reversed(game.places), strict=True))
        side_of = dict(zip(reversed(game.persons), reversed(game.sides), strict=True))
        place = place_of[person]
        participants = ((number, stream.persons[number]) for number in players)
        opponents = [
            (number, place_of[participant])
            for number, participant in participants
            if side_of[participant] != side_of[person]
        ]
        # count sides, not seats: a seat that changed hands counts once, and so do partners
        seats = zip(game.places, game.replaced, game.sides, strict=True)
        winning_sides = {side for seat_place, replaced, side in seats if seat_place == 1 and not replaced}
        yield OwnGame(place, is_won=place == 1 and len(winning_sides) == 1, opponents=opponents)


def _find_extremes(course: Course) -> tuple[Change | None, Change | None]:
    """Return the first change with the highest points and the first with the lowest."""
    if not course:
        return None, None
    return course[course.units.index(max(course.units))], course[course.units.index(min(course.units))]


def _find_streaks(
    course: Course, results: Sequence[tuple[int, bool]], *, is_won: bool
) -> tuple[Streak | None, Streak | None]:
    """Return the longest streak of games won or not won, and the current one, which includes the last game.

    `results` has the index in the course of each game with places, and whether the player won it.
    """
    runs = [(outcome, [game for game, _ in run]) for outcome, run in groupby(results, key=lambda result: result[1])]
    longest = max((run for outcome, run in runs if outcome == is_won), key=len, default=None)
    current = runs[-1][1] if runs and runs[-1][0] == is_won else None
    return _build_streak(course, longest), _build_streak(course, current)


def _build_streak(course: Course, run: Sequence[int] | None) -> Streak | None:
    """Return the streak of consecutive games, given by their indexes in the course; None without games."""
    if run is None:
        return None
    first, last = course[run[0]], course[run[-1]]
    assert first.game_id is not None
    assert last.game_id is not None
    return Streak(
        games=len(run),
        first_game_id=first.game_id,
        began_at=first.occurred_at,
        last_game_id=last.game_id,
        ended_at=last.occurred_at,
    )


def _count_opponents(trace: Trace, own_games: Iterable[OwnGame]) -> tuple[Opponent, ...]:
    """Return the opponents in a player's games, sorted by descending number of games, then by id."""
    counts_by_opponent: dict[int, list[int]] = {}  # the numbers of games: all, better, equal and worse
    for game in own_games:
        for number, place in game.opponents:
            counts = counts_by_opponent.setdefault(number, [0, 0, 0, 0])
            counts[0] += 1
            if place and game.place:
                counts[1 + (place <= game.place) + (place < game.place)] += 1
    names = trace.stream.names
    opponents = [Opponent(names[number], *counts) for number, counts in counts_by_opponent.items()]
    return tuple(sorted(opponents, key=lambda opponent: (-opponent.games, opponent.player)))


@dataclass(frozen=True, slots=True)
class PlayerStatistics(MultiLadderAnswer):
    """The statistics of a player: started and finished games, stars and gold.

    `substituted` counts the games in which the player was a substitute, which are not among the `started` ones. `ratio`
    is the ratio of finished to started games among the last 99 games, None without games. `stars` is None for too few
    games, and `golden` tells whether the stars are golden. Gold comes from lists whose period is over, each computed at
    its `gold_as_of`.
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
    """The statistics of a person who is on a ladder, with their earlier ids and their rows on all ladders.

    `last` is the last event about the person's games or identity.
    """

    earlier: tuple[str, ...]
    rows: tuple[PersonRow, ...]
    last: LastEvent | None = field(metadata=HIDDEN, kw_only=True)
