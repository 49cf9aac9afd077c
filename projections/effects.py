"""What a new event does to the points of every ladder: the standings with it against those without it."""

from collections.abc import Callable, Iterator
from copy import copy
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.canonical import format_instant, parse_object
from ledger.events import Draft
from ledger.lineage import GAME_TYPES
from projections.decoding import apply, decode, settle
from projections.explaining import row_of_game
from projections.facts import Facts, RuleFailure
from projections.ladders import Stream, parse_name
from projections.rulesets import Version
from projections.standings import Ladders


class Had(NamedTuple):
    """What somebody has on a ladder: his exact points, his rank, and his gold if the list pays any."""

    points: Fraction
    rank: int | None
    gold: int | None


class Effect(NamedTuple):
    """What a player has on a ladder before and after an event; None: he is not on it."""

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

    def as_json(self) -> dict[str, Any]:
        """Points as exact strings; no change where somebody comes onto the ladder or leaves it. Rank and gold before
        and after."""
        change = None if self.before is None or self.after is None else self.after - self.before
        points = {"before": self.before, "change": change, "after": self.after}
        told = {name: None if value is None else str(value) for name, value in points.items()}
        ranks = [had and had.rank for had in (self.old, self.new)]
        gold = [had and had.gold for had in (self.old, self.new)]
        return {"ladder": self.ladder, "player": self.player, **told, "rank": ranks, "gold": gold}


def effects(connection: Connection, draft: Draft) -> tuple[list[Effect], list[str]]:
    """Whose points an event would change now, by ladder; and which ladders cannot be replayed, and why.

    A game is in the log already: the event corrects, voids or reinstates it.
    """
    facts = decode(connection)
    data = parse_object(draft.data.encode())
    event = {"type": draft.type, "id": draft.event_id, "schema_version": draft.schema_version, "data": data,
             "occurred_at": format_instant(draft.occurred_at)}  # fmt: skip
    slugs: set[str] = set()
    if draft.type in GAME_TYPES:
        row = facts.rows[data["game_id"]] = row_of_game(connection, facts, data["game_id"])
        slugs = {facts.texts[facts.labels["game"][row]]} | ({data["game"]["game"]} if "game" in data else set())
    touched = _touched(draft.type, data, slugs)
    # the copy keeps what `settle` replaces, and its streams are made before the event is applied
    failed: list[str] = []
    before = Ladders(copy(facts))
    old = _streams(before, touched, failed)
    apply(facts, facts.position + 1, event)
    settle(facts)
    after = Ladders(facts)
    new = _streams(after, touched, failed)
    renamed = None
    if draft.type == "player.renamed":
        renamed = (data["player"], facts.players[facts.person[facts.player_numbers[data["new_player"]]]])
    found: list[Effect] = []
    for name in sorted(old.keys() | new.keys()):
        if _same(old.get(name), new.get(name)):
            continue
        # on running points one change moves ranks all over
        listed = any(stream and stream.rule.ranking != "points" for stream in (old.get(name), new.get(name)))
        try:
            found += _compared(name, _had(before, old.get(name)), _had(after, new.get(name)), renamed, listed)
        except RuleFailure as error:
            failed.append(_failure(facts, error))
    return found, list(dict.fromkeys(failed))


def _touched(type_name: str, data: dict[str, Any], slugs: set[str]) -> Callable[[Version], bool]:
    """Whether an event may matter to the ladders of a version."""
    if type_name in GAME_TYPES:
        return lambda version: not slugs.isdisjoint(version.ruleset.scope.game)
    if type_name == "points.adjusted":
        ruleset_id = parse_name(data["ladder"]).ruleset_id
        return lambda version: version.ruleset.id == ruleset_id
    if type_name == "ruleset.published":
        return lambda version: data["id"] in (version.ruleset.id, getattr(version.params, "of", None))
    return lambda version: True


def _streams(ladders: Ladders, touched: Callable[[Version], bool], failed: list[str]) -> dict[str, Stream]:
    """The streams of all ladders of the rulesets that may be touched; what cannot be replayed is added to `failed`."""
    facts = ladders.facts
    found: dict[str, Stream] = {}
    for ruleset_id, versions in facts.rulesets.items():
        if ruleset_id in facts.unusable or not any(map(touched, versions)):
            continue
        try:
            for other in {str(getattr(version.params, "of", "")) for version in versions} & facts.rulesets.keys():
                ladders.every(other)
            found |= ladders.every(ruleset_id)
        except RuleFailure as error:
            failed.append(_failure(facts, error))
    failed += [problem.reason for problem in facts.unusable.values() if problem.reason not in failed]
    return found


def _failure(facts: Facts, error: RuleFailure) -> str:
    return f"{error.ladder} cannot be replayed: the rule failed at position {error.place(facts)}: {error}"


def _same(one: Stream | None, other: Stream | None) -> bool:
    """Whether two streams come to the same, so that neither need be replayed."""
    if one is None or other is None:
        return one is other
    if one.rule.ranking == "annual":
        return False  # it depends on accounts and on other lists, too
    return (
        (one.names, one.offsets, one.players, one.columns, one.version, one.versions)
        == (other.names, other.offsets, other.players, other.columns, other.version, other.versions)
        and one.adjustments == other.adjustments
        and _same(one.previous, other.previous)
    )


def _had(ladders: Ladders, stream: Stream | None) -> dict[str, Had]:
    if stream is None:
        return {}
    found = ladders.of_stream(stream)
    return {row.player: Had(row.value(found.scale), row.rank, row.gold) for row in found.rows}


def _compared(
    ladder: str, old: dict[str, Had], new: dict[str, Had], renamed: tuple[str, str] | None, listed: bool
) -> Iterator[Effect]:
    """The players whose points change; where points are ranked by a list, those whose rank or gold does, too."""
    if renamed is not None and renamed[0] in old and renamed[1] not in old:
        # another id alone changes no points; two that become one do
        old[renamed[1]] = old.pop(renamed[0])
    changed = [
        player for player in old.keys() | new.keys()
        if old.get(player) != new.get(player) and (listed or _points(old, player) != _points(new, player)
                                                   or (player in old) != (player in new))
    ]  # fmt: skip
    # who gained most comes first
    for player in sorted(changed, key=lambda player: (_points(old, player) - _points(new, player), player)):
        yield Effect(ladder, player, old.get(player), new.get(player))


def _points(had: dict[str, Had], player: str) -> Fraction:
    return had[player].points if player in had else Fraction(0)
