"""A player's games apart from the lists: started, finished, stars; and gold across lists.

Stars show how reliably players finish what they start, over their last 99 games and only after 20 (Catan Online World).
Games taken over as a substitute count neither way, nor do games that were ended by agreement or voided.
"""

from collections import defaultdict
from collections.abc import Collection
from fractions import Fraction
from typing import Any, NamedTuple

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.rejections import did_you_mean, shown
from ratings_ledger.ledger.store.log import recorded_at
from ratings_ledger.projections.facts.columns import ABORTED, Facts
from ratings_ledger.projections.facts.players import known_players, rows_with
from ratings_ledger.projections.queries.answers import LastEvent
from ratings_ledger.projections.queries.answers_surveyed import Person, PlayerStatistics
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.last_events import last_positions_of_people
from ratings_ledger.projections.queries.survey import Survey, rows_by_player
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.rulesets.periods import Period, is_running, period_of
from ratings_ledger.projections.rulesets.versions import games_of

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
    """What somebody did, over all games or those of one name, and their gold over all lists whose period is over.

    Raises `Unknown` (player-unknown) for somebody who played nothing like that.
    """
    facts = seen.facts
    player = facts.current(player)
    found = PlayerStatistics(**_statistics(seen, player, game, _gold(seen, player)))
    if not found.started and not found.substituted:
        what = ("" if game is None else f" {shown(game)}") + ("" if seen.asked is None else f" up to {seen.asked}")
        hint = "" if facts.knows(player) else did_you_mean(player, known_players(facts))
        raise Unknown("player-unknown", f"{shown(player)} has not played{what}; see: ratings games{hint}")
    return found


def person_of(seen: Survey, player: str) -> Person:
    """What somebody did and where they stand. Raises `Unknown` (player-unknown) for who is on no ladder."""
    facts = seen.facts
    player = facts.current(player)
    everybody = seen.once("by player", rows_by_player)
    if player not in everybody:
        raise Unknown("player-unknown", f"{shown(player)} is on no ladder{did_you_mean(player, everybody)}")
    ids = _ids(facts, player)
    at = last_positions_of_people(seen.connection, seen.everything, rows_with(facts, ids)).get(player)
    last = None if at is None else LastEvent(at, moment(recorded_at(seen.connection, at)))
    return Person(
        **_statistics(seen, player, None, seen.once("gold", _gold)), rows=tuple(everybody[player]), last=last,
        earlier=tuple(sorted(facts.players[one] for one in ids - {facts.player_numbers[player]})),
    )  # fmt: skip


def _statistics(seen: Survey, player: str, game: str | None, paying: Gold) -> dict[str, Any]:
    """The members of `PlayerStatistics`."""
    at = seen.coordinates

    def counts(one: Paid) -> bool:
        """Whether a list is over, and of this game."""
        games = games_of(seen.facts.rulesets[parse_name(one.ladder).ruleset_id])
        return game in {None, *games} and not (one.period and is_running(one.period, clock.now(), one.as_of))

    gold = [one for one in paying.paid.get(player, ()) if counts(one)]
    seen.failures += [why for one, why, names in paying.failed if player in names and counts(one)]
    done, substituted = _games(seen.facts, player, at.as_of, game)
    window = done[-WINDOW_GAMES:]
    ratio = Fraction(sum(window), len(window)) if window else None
    stars, golden = _stars(ratio, len(done))
    return {
        "player": player, "game": game, "at": at, "started": len(done), "finished": sum(done),
        "substituted": substituted, "ratio": ratio, "stars": stars, "golden": golden,
        "gold": sum(one.pieces for one in gold), "gold_by_list": {one.ladder: one.pieces for one in gold},
        "gold_as_of": {one.ladder: None if one.as_of is None else moment(one.as_of) for one in gold}, **seen.told(),
    }  # fmt: skip


def _ids(facts: Facts, player: str) -> set[int]:
    """The numbers of all ids of a person."""
    if not facts.knows(player):
        return set()
    number = facts.player_numbers[player]
    return {one for one, person in enumerate(facts.person) if person == number} if facts.renamed else {number}


def _games(facts: Facts, player: str, as_of: int | None, game: str | None) -> tuple[list[bool], int]:
    """Whether each of the games they started was finished, in the order played; and how many they took over."""
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
    """What every list pays, or those that a player is on."""
    found = Gold(defaultdict(list), [])
    paying = [one for one in seen.usable if seen.facts.rulesets[one][0].ranking.pays_gold]
    for ladders, stream in seen.streams(paying):
        if player is not None and player not in stream.names:
            continue
        period = period_of(stream.versions[0].ruleset, parse_name(stream.ladder).values)
        paid = Paid(stream.ladder, 0, ladders.as_of, period)
        try:
            rows = ladders.of_stream(stream).rows
        except RuleFailure as failure:
            found.failed.append((paid, told_with_game(failure, seen.facts, seen.connection), stream.names))
            continue
        for row in rows:
            if row.gold:
                found.paid[row.player].append(paid._replace(pieces=row.gold))
    return found
