"""Two standings of a ladder beside each other: whose points and ranks differ, and how much was moved."""

from bisect import bisect_right, insort
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from projections.facts.columns import Facts
from projections.lists.contract import Standing

T = TypeVar("T")

# how many of the first places are the top
TOP = 10


class Had(NamedTuple):
    """What somebody has on a ladder: his exact points, his rank, and his gold if the list pays any."""

    points: Fraction
    rank: int | None
    gold: int | None


class Effect(NamedTuple):
    """What a player has on a ladder before and after something; None: he is not on it."""

    ladder: str
    player: str
    old: Had | None
    new: Had | None

    @property
    def before(self) -> Fraction | None:
        """The points before."""
        return self.old and self.old.points

    @property
    def after(self) -> Fraction | None:
        """The points after."""
        return self.new and self.new.points

    @property
    def change(self) -> Fraction:
        """The points after less those before; who is not on the ladder has 0."""
        return (self.after or Fraction(0)) - (self.before or Fraction(0))

    @property
    def stays(self) -> bool:
        """Whether he is on the ladder before and after."""
        return self.old is not None and self.new is not None

    @property
    def rescored(self) -> bool:
        """Whether his points differ, or he comes or goes."""
        return self.before != self.after

    def as_json(self) -> dict[str, Any]:
        """Points as exact strings; no change where somebody comes onto the ladder or leaves it. Rank and gold before
        and after."""
        points = {"before": self.before, "change": self.change if self.stays else None, "after": self.after}
        told = {name: None if value is None else str(value) for name, value in points.items()}
        ranks = [had and had.rank for had in (self.old, self.new)]
        gold = [had and had.gold for had in (self.old, self.new)]
        return {"ladder": self.ladder, "player": self.player, **told, "rank": ranks, "gold": gold}


class Radius(NamedTuple):
    """How far something reaches on a ladder: players whose points differ, players whose rank does, the largest gain and
    loss, how many pairs of players stand in another order, and who enters and leaves the top ten. `up` and `down` are
    of those who stay on it.
    """

    ladder: str
    players: int
    ranks: int
    up: Effect | None
    down: Effect | None
    swapped: int
    entering: list[str]
    leaving: list[str]

    def as_json(self) -> dict[str, Any]:
        """As plain data, the largest gain and loss as player and exact points."""
        told = {
            name: None if effect is None else {"player": effect.player, "change": str(effect.change)}
            for name, effect in (("up", self.up), ("down", self.down))
        }
        return {**self._asdict(), **told}


def had(rows: list[Standing], scale: int) -> dict[str, Had]:
    """What everybody has, by player."""
    return {row.player: Had(row.value(scale), row.rank, row.gold) for row in rows}


def compare(ladder: str, old: Mapping[str, Had], new: Mapping[str, Had], before: Facts, after: Facts) -> list[Effect]:
    """The players for whom something differs, those who gained most first; the facts tell who is who.

    Another id alone is no difference. Two that become one person are.
    """
    aligned = under_present_ids(old, new, before, after)
    found = [
        Effect(ladder, player, aligned.get(player), new.get(player))
        for player in aligned.keys() | new.keys()
        if aligned.get(player) != new.get(player)
    ]
    return sorted(found, key=lambda effect: (-effect.change, effect.player))


def under_present_ids(old: Mapping[str, T], new: Mapping[str, T], before: Facts, after: Facts) -> dict[str, T]:
    """What was known by player, by the ids that the same people have in `new`: renamed since, or renamed no longer."""
    found = dict(old)
    if not (before.renamed or after.renamed):
        return found
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    since = [(was, after.current(was)) for was in gone if after.current(was) in new]
    for was, now in since + [(before.current(now), now) for now in come if before.current(now) in gone]:
        if was in found and now not in found:
            found[now] = found.pop(was)
    return found


def radius(ladder: str, old: Mapping[str, Had], new: Mapping[str, Had], effects: list[Effect]) -> Radius:
    """How far these effects reach on a ladder that was `old` and is `new`."""
    moved = [effect for effect in effects if effect.stays and effect.change]
    up = max(moved, key=lambda effect: effect.change, default=None)
    down = min(moved, key=lambda effect: effect.change, default=None)
    return Radius(
        ladder,
        sum(effect.rescored for effect in effects),
        sum((effect.old and effect.old.rank) != (effect.new and effect.new.rank) for effect in effects),
        up if up and up.change > 0 else None,
        down if down and down.change < 0 else None,
        swapped(old, new),
        sorted(_top(new) - _top(old)),
        sorted(_top(old) - _top(new)),
    )


def _top(rows: Mapping[str, Had]) -> set[str]:
    return {player for player, row in rows.items() if row.rank is not None and row.rank <= TOP}


def swapped(old: Mapping[str, Had], new: Mapping[str, Had]) -> int:
    """How many pairs of players with a rank in both stand in another order: one is ahead in `old`, the other in `new`.

    Those who share a rank in either are not swapped.
    """
    ranks = sorted(
        (was, now)
        for player in old.keys() & new.keys()
        if (was := old[player].rank) is not None and (now := new[player].rank) is not None
    )
    count, seen, waiting, last = 0, list[int](), list[int](), 0
    for was, now in ranks:
        if was != last:
            # those who were equal do not count against each other
            for rank in waiting:
                insort(seen, rank)
            waiting, last = [], was
        count += len(seen) - bisect_right(seen, now)
        waiting.append(now)
    return count
