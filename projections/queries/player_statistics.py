"""A player's games apart from the lists: started, finished, stars; and gold across lists.

Stars show how reliably players finish what they start, over their last 99 games and only after 20 (Catan Online World).
Games taken over as a substitute count neither way, nor do games that were ended by agreement or voided.
"""

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from ledger import clock
from ledger.errors import Unknown
from ledger.events.games import STATUSES
from ledger.rejections import did_you_mean
from projections.facts.columns import ABORTED, Facts
from projections.facts.players import known_players
from projections.queries.answers_surveyed import PlayerStatistics
from projections.queries.survey import Survey
from projections.replay.ladders import parse_name
from projections.replay.selection import rows_in_order
from projections.rulesets.periods import is_running, period_of
from projections.rulesets.versions import games_of

WINDOW_GAMES = 99
STARS_FROM = 20
# the percentage finished from which on there are this many stars; those of the first are golden
STARS = ((95, 3), (80, 3), (65, 2), (50, 1))


def player_statistics(seen: Survey, player: str, game: str | None = None) -> PlayerStatistics:
    """What somebody did, over all games or those of one name, and their gold over all lists whose period is over.

    Raises `Unknown` (player-unknown) for somebody who played nothing like that.
    """
    facts, at = seen.facts, seen.coordinates
    player = facts.current(player)
    paid = [*_gold(seen, player, game)]
    done, substituted = _games(facts, facts.player_numbers.get(player), at.as_of, game)
    if not done and not substituted:
        what = "" if game is None else f" {game}"
        hint = "" if facts.knows(player) else did_you_mean(player, known_players(facts))
        raise Unknown("player-unknown", f"{player} has not played{what}; see: ratings games{hint}")
    window = done[-WINDOW_GAMES:]
    ratio = Fraction(sum(window), len(window)) if window else None
    pieces = {ladder: count for ladder, count, _ in paid}
    until = {ladder: moment for ladder, _, moment in paid}
    return PlayerStatistics(
        player, game, at, len(done), sum(done), substituted, ratio, *_stars(ratio, len(done)), sum(pieces.values()),
        pieces, until, **seen.told(),
    )  # fmt: skip


def _games(facts: Facts, number: int | None, as_of: int | None, game: str | None) -> tuple[list[bool], int]:
    """Whether each of the games they started was finished, in the order played; and how many they took over."""
    done: list[bool] = []
    substituted = 0
    for row in rows_in_order(facts, as_of):
        if row in facts.voided or facts.cell_of(row).flags & ABORTED or game not in (None, facts.label("game", row)):
            continue
        for p in range(facts.start[row], facts.start[row] + facts.count[row]):
            if facts.person_of(p) == number:
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


def _gold(seen: Survey, player: str, game: str | None) -> Iterator[tuple[str, int, datetime | None]]:
    """What each list whose period is over paid a player: the list, the pieces, up to when it was played."""
    versions = {ruleset_id: seen.facts.rulesets[ruleset_id] for ruleset_id in seen.usable}
    paying = [
        ruleset_id for ruleset_id, known in versions.items()
        if known[0].ranking.pays_gold
        and game in {None, *games_of(known)}
    ]  # fmt: skip
    for ladders, stream in seen.streams(paying):
        period = period_of(stream.versions[0].ruleset, parse_name(stream.ladder).values)
        if player in stream.names and not (period and is_running(period, clock.now(), ladders.as_of)):
            with seen.noting():
                for row in ladders.of_stream(stream).rows:
                    if row.player == player and row.gold:
                        yield stream.ladder, row.gold, ladders.coordinates.until
