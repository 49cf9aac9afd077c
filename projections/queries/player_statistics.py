"""A player's games apart from the lists: started, finished, stars; and gold across lists.

Stars show how reliably players finish what they start, over their last 99 games and only after 20 (Catan Online World).
Games taken over as a substitute count neither way, nor do games that were ended by agreement or voided.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from ledger.events.games import STATUSES
from projections.facts.columns import ABORTED, Facts
from projections.queries.standings import Ladders
from projections.replay.containment import RuleFailure
from projections.replay.ladders import parse_name
from projections.replay.selection import rows_in_order
from projections.rulesets.periods import is_running, period_of

WINDOW_GAMES = 99
STARS_FROM = 20
# the percentage finished from which on there are this many stars; those of the first are golden
STARS = ((95, 3), (80, 3), (65, 2), (50, 1))


class Statistics(NamedTuple):
    """What somebody did; `ratio` is finished to started games among their last ones, None before the first.

    `stars` is None as long as there are too few games.
    """

    started: int
    finished: int
    substituted: int
    ratio: Fraction | None
    stars: int | None
    golden: bool


def statistics(facts: Facts, player: str, game: str | None = None, as_of: int | None = None) -> Statistics | None:
    """The statistics of a player (current id), over all games or those of one name; None if they never played."""
    number = facts.player_numbers.get(player)
    done, substituted = _games(facts, number, as_of, game)
    if not done and not substituted:
        return None
    window = done[-WINDOW_GAMES:]
    ratio = Fraction(sum(window), len(window)) if window else None
    stars, golden = _stars(ratio, len(done))
    return Statistics(len(done), sum(done), substituted, ratio, stars, golden)


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


def gold(
    rulesets: Iterable[tuple[str, Ladders]], player: str, now: int, game: str | None = None
) -> tuple[dict[str, int], list[RuleFailure]]:
    """What each list of some usable rulesets paid a player whose period is over, by ladder; and which lists failed."""
    found: dict[str, int] = {}
    failures: list[RuleFailure] = []
    for ruleset_id, ladders in rulesets:
        versions = ladders.facts.rulesets[ruleset_id]
        scored = {name for version in versions for name in version.ruleset.scope.game}
        if versions[0].rule.ranking != "period" or game not in (None, *scored):
            continue
        for name, stream in sorted(ladders.every(ruleset_id).items()):
            period = period_of(versions[0].ruleset, parse_name(name).values)
            if player in stream.names and not (period and is_running(period, now, ladders.as_of)):
                try:
                    rows = ladders.of_stream(stream).rows
                except RuleFailure as failure:
                    failures.append(failure)
                    continue
                if pieces := next((row.gold for row in rows if row.player == player), None):
                    found[name] = pieces
    return found, failures
