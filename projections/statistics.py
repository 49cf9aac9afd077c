"""A player's games beside the lists: started, finished, his stars, and his gold over all lists.

Stars show how reliably somebody finishes what he starts, over his last 99 games and only after 20 (Catan Online World).
Games that he took over as a substitute count neither way, nor do games that were ended by agreement or voided.
"""

from fractions import Fraction
from typing import NamedTuple

from ledger.games import STATUSES
from projections.facts import ABORTED, VOIDED, Facts
from projections.ladders import order, parse_name
from projections.periods import period_of
from projections.standings import Ladders

WINDOW_GAMES = 99
STARS_FROM = 20
# finished in per cent, from which on there are so many stars; those of the first are golden
STARS = ((95, 3), (80, 3), (65, 2), (50, 1))


class Statistics(NamedTuple):
    """What somebody did; `ratio` is that of finished to started among his last games, None before the first.

    `gold` is what each list that is closed paid him, by ladder; `stars` is None as long as he has too few games.
    """

    started: int
    finished: int
    substituted: int
    ratio: Fraction | None
    stars: int | None
    golden: bool
    gold: dict[str, int]


def statistics(ladders: Ladders, player: str, now: int, game: str | None = None) -> Statistics | None:
    """The statistics of a player (his current id), over all games or those of one name; None if he never played."""
    facts = ladders.facts
    number = facts.player_numbers.get(player)
    done, substituted = _games(facts, number, ladders.as_of, game)
    if not done and not substituted:
        return None
    window = done[-WINDOW_GAMES:]
    ratio = Fraction(sum(window), len(window)) if window else None
    stars, golden = _stars(ratio, len(done))
    return Statistics(len(done), sum(done), substituted, ratio, stars, golden, _gold(ladders, player, now, game))


def _games(facts: Facts, number: int | None, as_of: int | None, game: str | None) -> tuple[list[bool], int]:
    """Whether each of the games that he started was finished, in the order played; and how many he took over."""
    done: list[bool] = []
    substituted = 0
    for row in order(facts, as_of):
        if facts.flags[row] & (VOIDED | ABORTED) or game not in (None, facts.label("game", row)):
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


def _gold(ladders: Ladders, player: str, now: int, game: str | None) -> dict[str, int]:
    """What the lists paid whose period is over."""
    found: dict[str, int] = {}
    instant = now if ladders.as_of is None else min(now, ladders.as_of)
    for ruleset_id, versions in sorted(ladders.facts.rulesets.items()):
        scored = {name for version in versions for name in version.ruleset.scope.game}
        wanted = versions[0].rule.ranking == "period" and (game is None or game in scored)
        if not wanted or ruleset_id in ladders.facts.unusable:
            continue
        for name, stream in sorted(ladders.every(ruleset_id).items()):
            period = period_of(versions[0].ruleset, parse_name(name).values)
            if player in stream.names and (period is None or period.end <= instant):
                rows = ladders.of_stream(stream).rows
                if gold := next((row.gold for row in rows if row.player == player), None):
                    found[name] = gold
    return found
