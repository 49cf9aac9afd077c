"""What a new event does to the points of every ladder: the standings with it against those without it."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.canonical import format_instant, parse_object
from ledger.events import Draft
from ledger.lineage import GAME_TYPES
from projections.contract import exact
from projections.facts import Facts, RuleFailure, apply, decode, settle
from projections.ladders import Stream, order, parse_name, streams
from projections.replay import replay
from projections.standings import row_of_game


class Effect(NamedTuple):
    """A player's points on a ladder before and after an event, in units of 1/scale; None: not on the ladder."""

    ladder: str
    player: str
    before: int | None
    after: int | None
    scale: int

    def as_json(self) -> dict[str, str | None]:
        """Points as exact strings; no change where somebody comes onto the ladder or leaves it."""
        change = None if self.before is None or self.after is None else self.after - self.before
        points = {"before": self.before, "change": change, "after": self.after}
        told = {name: None if units is None else exact(units, self.scale) for name, units in points.items()}
        return {"ladder": self.ladder, "player": self.player, **told}


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
    failed: list[str] = []
    before = _streams(facts, touched, failed)
    apply(facts, facts.position + 1, event)
    settle(facts)
    after = _streams(facts, touched, failed)
    renamed = None
    if draft.type == "player.renamed":
        renamed = (data["player"], facts.players[facts.person[facts.player_numbers[data["new_player"]]]])
    found: list[Effect] = []
    for name in sorted(before.keys() | after.keys()):
        try:
            found += _compared(name, before.get(name), after.get(name), renamed)
        except RuleFailure as error:
            failed.append(_failure(facts, error))
    return found, list(dict.fromkeys(failed))


class _Touched(NamedTuple):
    """Which rulesets an event may matter to: those that score one of these games, or this one; None: any."""

    slugs: set[str] | None = None
    ruleset_id: str | None = None


def _touched(type_name: str, data: dict[str, Any], slugs: set[str]) -> _Touched:
    if type_name in GAME_TYPES:
        return _Touched(slugs=slugs)
    if type_name == "points.adjusted":
        return _Touched(ruleset_id=parse_name(data["ladder"]).ruleset_id)
    return _Touched(ruleset_id=data["id"] if type_name == "ruleset.published" else None)


def _streams(facts: Facts, touched: _Touched, failed: list[str]) -> dict[str, Stream]:
    """The streams of all ladders of the rulesets that may be touched; what cannot be replayed is added to `failed`."""
    ordered = order(facts)
    found: dict[str, Stream] = {}
    for ruleset_id, versions in facts.rulesets.items():
        games = {slug for version in versions for slug in version.ruleset.scope.game}
        by_game = touched.slugs is None or touched.slugs & games
        if by_game and touched.ruleset_id in (None, ruleset_id) and ruleset_id not in facts.unusable:
            try:
                found |= streams(facts, versions, ordered=ordered)
            except RuleFailure as error:
                failed.append(_failure(facts, error))
    failed += [problem.reason for problem in facts.unusable.values() if problem.reason not in failed]
    return found


def _failure(facts: Facts, error: RuleFailure) -> str:
    return f"{error.ladder} cannot be replayed: the rule failed at position {error.place(facts)}: {error}"


def _same(one: Stream | None, other: Stream | None) -> bool:
    """Whether two streams replay the same, so that neither need be replayed."""
    if one is None or other is None:
        return one is other
    return (
        (one.names, one.offsets, one.players, one.columns, one.version, one.versions)
        == (other.names, other.offsets, other.players, other.columns, other.version, other.versions)
        and one.adjustments == other.adjustments
        and _same(one.previous, other.previous)
    )


def _compared(
    ladder: str, before: Stream | None, after: Stream | None, renamed: tuple[str, str] | None
) -> Iterator[Effect]:
    if _same(before, after):
        return
    old, new = _points(before), _points(after)
    if renamed is not None and renamed[0] in old and renamed[1] not in old:
        # another id alone changes no points; two that become one do
        old[renamed[1]] = old.pop(renamed[0])
    scale = next(stream.rule.scale for stream in (after, before) if stream is not None)
    for player in _by_change(old, new):
        yield Effect(ladder, player, old.get(player), new.get(player), scale)


def _by_change(old: dict[str, int], new: dict[str, int]) -> Iterable[str]:
    """The players whose points differ, who gained most first."""
    changed = [player for player in old.keys() | new.keys() if old.get(player) != new.get(player)]
    return sorted(changed, key=lambda player: (old.get(player, 0) - new.get(player, 0), player))


def _points(stream: Stream | None) -> dict[str, int]:
    if stream is None:
        return {}
    outcome, _ = replay(stream)
    return {name: outcome.points[number] for number, name in enumerate(stream.names) if outcome.seen[number]}
