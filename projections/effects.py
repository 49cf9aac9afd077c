"""What a new event does to the points of every ladder: the standings with it against those without it."""

from collections.abc import Callable, Iterator
from copy import copy
from fractions import Fraction
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.canonical import format_instant, parse_object
from ledger.events import Draft
from ledger.lineage import GAME_TYPES
from projections.explaining import row_of_game
from projections.facts import Facts, RuleFailure, apply, decode, settle
from projections.ladders import Stream, parse_name
from projections.rulesets import Version
from projections.standings import Ladders


class Effect(NamedTuple):
    """A player's points on a ladder before and after an event, in units of 1/scale; None: not on the ladder."""

    ladder: str
    player: str
    before: Fraction | None
    after: Fraction | None

    def as_json(self) -> dict[str, str | None]:
        """Points as exact strings; no change where somebody comes onto the ladder or leaves it."""
        change = None if self.before is None or self.after is None else self.after - self.before
        points = {"before": self.before, "change": change, "after": self.after}
        told = {name: None if value is None else str(value) for name, value in points.items()}
        return {"ladder": self.ladder, "player": self.player, **told}


def effects(connection: Connection, draft: Draft) -> tuple[list[Effect], list[str]]:
    """Whose points an event would change now, by ladder; and which ladders cannot be replayed, and why."""
    facts = decode(connection)
    data = parse_object(draft.data.encode())
    event = {"type": draft.type, "id": draft.event_id, "schema_version": draft.schema_version, "data": data,
             "occurred_at": format_instant(draft.occurred_at)}  # fmt: skip
    row = None
    if draft.type in GAME_TYPES - {"game.recorded"}:
        row = facts.rows[data["game_id"]] = row_of_game(connection, facts, data["game_id"])
    slugs = {None if row is None else facts.label("game", row), data.get("game", {}).get("game")}
    touched = _touched(draft.type, data, slugs - {None})
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
        try:
            found += _compared(name, _points(before, old.get(name)), _points(after, new.get(name)), renamed)
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


def _points(ladders: Ladders, stream: Stream | None) -> dict[str, Fraction]:
    if stream is None:
        return {}
    found = ladders.of_stream(stream)
    return {row.player: row.value(found.scale) for row in found.rows}


def _compared(
    ladder: str, old: dict[str, Fraction], new: dict[str, Fraction], renamed: tuple[str, str] | None
) -> Iterator[Effect]:
    if renamed is not None and renamed[0] in old and renamed[1] not in old:
        # another id alone changes no points; two that become one do
        old[renamed[1]] = old.pop(renamed[0])
    changed = [player for player in old.keys() | new.keys() if old.get(player) != new.get(player)]
    # who gained most comes first
    for player in sorted(changed, key=lambda player: (old.get(player, 0) - new.get(player, 0), player)):
        yield Effect(ladder, player, old.get(player), new.get(player))
