"""What new events do to every ladder: the standings with them against those without them."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from ledger.events.canonical import format_instant, parse_object
from ledger.events.revisions import GAME_TYPES, known
from ledger.events.types import Draft
from ledger.validation.published_lists import Published, latest, published_lists
from projections.facts.columns import NONE, Facts
from projections.facts.decoding import apply, settle
from projections.lists.contract import Standing
from projections.queries.comparison import Effect, Had, Radius, compare, had, radius, under_present_ids
from projections.queries.explanation import UnknownGame, row_of_game
from projections.queries.publication import as_published, compared_at
from projections.queries.standings import Ladders
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import Stream, parse_name
from projections.replay.replay import replay
from projections.rulesets.versions import Version

ALL = "all"
# types of events that no ladder looks at
SILENT = frozenset({"ledger.zone_set", "league.joined", "league.scheduled", "list.rows", "list.published"})


@dataclass
class Reach:
    """What something does: to whose points, how far on which ladders, which published lists would come out differently,
    which ladders cannot be replayed, and why; and what explains points that nobody would expect to change.
    """

    effects: list[Effect] = field(default_factory=list)
    ladders: list[Radius] = field(default_factory=list)
    lists: list[Published] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The ladders and lists as plain data."""
        lists = [
            {"ladder": one.ladder, "as_of": None if one.as_of is None else format_instant(one.as_of),
             "position": one.position}
            for one in self.lists
        ]  # fmt: skip
        told = {"ladders": [one.as_json() for one in self.ladders], "published": lists}
        return told | ({"reasons": self.reasons} if self.reasons else {})


def effects(connection: Connection, facts: Facts, drafts: Iterable[Draft]) -> Reach:
    """What events that are checked, but not appended yet, would change; the facts are brought to what is then."""
    before = facts.snapshot()
    matters: set[str] = set()
    renames: list[tuple[str, str]] = []
    for number, draft in enumerate(drafts, 1):
        data = parse_object(draft.data.encode())
        matters |= _apply(connection, facts, number, draft, data)
        if draft.type == "player.renamed":
            renames.append((data["player"], data["new_player"]))
    settle(facts)
    found = reach(connection, Ladders(before), Ladders(facts), matters)
    found.reasons = [why for player, new_player in renames for why in _why_rescored(before, found, player, new_player)]
    return found


def _why_rescored(before: Facts, found: Reach, player: str, new_player: str) -> Iterator[str]:
    """Why a rename changes points, which most do not."""
    ladders = dict.fromkeys(effect.ladder for effect in found.effects if effect.rescored)
    if not ladders:
        return
    if before.knows(new_player):
        yield f"{player} and {new_player} become one person with the games of both; what follows them is rated anew."
        return
    for ruleset_id in dict.fromkeys(parse_name(ladder).ruleset_id for ladder in ladders):
        yield (
            f"The rule of {ruleset_id} walks through a player's opponents in the order of their ids, and a new id "
            "changes that order."
        )


def _apply(connection: Connection, facts: Facts, number: int, draft: Draft, data: dict[str, Any]) -> set[str]:
    """Apply a draft as if it were recorded; what it matters to, as `about` names it."""
    slugs = set()
    if draft.type == "game.recorded":
        facts.rows[data["game_id"]] = NONE
        slugs = {data["game"]}
    elif draft.type in GAME_TYPES:
        row = _row(connection, facts, data["game_id"])
        slugs = {str(facts.label("game", row))} | ({data["game"]["game"]} if "game" in data else set())
    elif draft.type == "clock.started":
        _row(connection, facts, data["game_id"])
    apply(facts, facts.position + number, known(draft))
    return about(draft.type, data, slugs)


def _row(connection: Connection, facts: Facts, game_id: str) -> int:
    """The row of a game, which the facts know from now on; NONE before it is recorded."""
    if facts.rows.get(game_id, NONE) == NONE:
        facts.rows[game_id] = NONE
        with suppress(UnknownGame):
            facts.rows[game_id] = row_of_game(connection, facts, game_id)
    return facts.rows[game_id]


def about(type_name: str, data: dict[str, Any], slugs: Iterable[str]) -> set[str]:
    """What an event may matter to: `game:NAME`, `ruleset:ID`, or all; nothing for what no ladder looks at.

    `slugs` are the games that an event of a game is about, before and after it.
    """
    if type_name in GAME_TYPES:
        return {f"game:{slug}" for slug in slugs}
    if type_name == "points.adjusted":
        return {f"ruleset:{parse_name(data['ladder']).ruleset_id}"}
    if type_name == "ruleset.published":
        return {f"ruleset:{data['id']}"}
    return set() if type_name in SILENT else {ALL}


def matter(matters: set[str], version: Version) -> bool:
    """Whether one of these things may matter to the ladders of a version."""
    ruleset, of = version.ruleset, getattr(version.params, "of", None)
    own = {ALL, f"ruleset:{ruleset.id}", f"ruleset:{of}", *(f"game:{slug}" for slug in ruleset.scope.game)}
    return not own.isdisjoint(matters)


def reach(
    connection: Connection, before: Ladders, after: Ladders, matters: set[str], only: Collection[str] = ()
) -> Reach:
    """How two worlds differ on the ladders of the rulesets to which one of `matters` may matter, or on some of them."""
    found = Reach()
    old, new = _streams(before, matters, found.failed), _streams(after, matters, found.failed)
    names = old.keys() | new.keys()
    changed = {name for name in names if name in (only or names) and not same(old.get(name), new.get(name))}
    lists: dict[str, list[Published]] = {}
    for one in latest(published_lists(connection, before.facts.position)):
        lists.setdefault(one.ladder, []).append(one)
    # another date of a game may change what was played up to some time, though nobody's points
    listed_names = names & lists.keys() & {*(only or names)}
    changed |= {name for name in listed_names if _instants(before, old.get(name)) != _instants(after, new.get(name))}
    for name in sorted(changed):
        # on running points one change moves ranks all over
        listed = any(stream and stream.rule.ranking != "points" for stream in (old.get(name), new.get(name)))
        try:
            was, now = _Replayed(before, old.get(name)), _Replayed(after, new.get(name))
            old_rows, new_rows = was.had(), now.had()
            differing = compare(name, old_rows, new_rows, before.facts, after.facts)
            found.lists += [one for one in lists.get(name, ()) if _comes_out_differently(connection, was, now, one)]
        except RuleFailure as error:
            found.failed.append(_failure(connection, after.facts, error))
            continue
        found.effects += [effect for effect in differing if listed or effect.rescored]
        if differing:
            found.ladders.append(radius(name, old_rows, new_rows, differing))
    found.failed = list(dict.fromkeys(found.failed))
    return found


class _Replayed:
    """A ladder in one of two worlds, replayed once for all that is asked of it; without a stream nobody is on it."""

    def __init__(self, ladders: Ladders, stream: Stream | None) -> None:
        """Raises `RuleFailure`."""
        self.ladders = ladders
        self.stream = stream
        self.outcome = None if stream is None else replay(stream)[0]

    def rows(self, as_of: int | None) -> list[Standing]:
        """The rows as of some time. Raises `RuleFailure`."""
        if self.stream is None or self.outcome is None:
            return []
        return self.ladders.rows_at(self.stream, self.outcome, as_of)[1]

    def had(self) -> dict[str, Had]:
        """What everybody has in the end. Raises `RuleFailure`."""
        return {} if self.stream is None else had(self.rows(None), self.stream.rule.scale)


def _instants(ladders: Ladders, stream: Stream | None) -> list[int]:
    """When the games and adjustments of a ladder were."""
    if stream is None:
        return []
    return [*(ladders.facts.occurred_at[row] for row in stream.row), *(one.occurred_at for one in stream.adjustments)]


def _comes_out_differently(connection: Connection, was: _Replayed, now: _Replayed, one: Published) -> bool:
    """Whether a list, as it would be today, differs between two worlds in more than ids, and from what was published.

    One that comes out again as it was published is none to tell of.
    """
    stream = was.stream or now.stream
    as_of = one.as_of if stream is None else compared_at(one, stream.versions[0].ruleset)
    facts = was.ladders.facts, now.ladders.facts
    old, new = (_valued(side.rows(as_of), 1 if stream is None else stream.rule.scale) for side in (was, now))
    if under_present_ids(old, new, *facts) == new:
        return False
    published = as_published(connection, one)
    return under_present_ids(_valued(published.rows, published.scale), new, *facts) != new


def _valued(rows: Iterable[Standing], scale: int) -> dict[str, tuple[Any, ...]]:
    """Rows by player, their points as exact numbers."""
    return {row.player: (row.rank, row.value(scale), row.games, row.qualified, row.gold, row.places) for row in rows}


def _streams(ladders: Ladders, matters: set[str], failed: list[str]) -> dict[str, Stream]:
    """The streams of all ladders of the rulesets that may be touched; what does not run here is added to `failed`."""
    facts = ladders.facts
    found: dict[str, Stream] = {}
    for ruleset_id, versions in facts.rulesets.items():
        if ruleset_id in facts.unusable or not any(matter(matters, version) for version in versions):
            continue
        for other in {str(getattr(version.params, "of", "")) for version in versions} & facts.rulesets.keys():
            ladders.every(other)
        found |= ladders.every(ruleset_id)
    failed += [problem.reason for problem in facts.unusable.values() if problem.reason not in failed]
    return found


def _failure(connection: Connection, facts: Facts, error: RuleFailure) -> str:
    # a game that is only about to be recorded stands nowhere yet
    return told_with_game(error, facts, connection).replace(": the rule", " cannot be replayed: the rule", 1)


def same(one: Stream | None, other: Stream | None) -> bool:
    """Whether two streams come to the same, so that neither need be replayed."""
    if one is None or other is None:
        return one is other
    if one.rule.ranking == "annual":
        return False  # it depends on accounts and on other lists, too
    return (
        (one.names, one.offsets, one.players, [*one.columns], one.version, one.versions)
        == (other.names, other.offsets, other.players, [*other.columns], other.version, other.versions)
        and one.adjustments == other.adjustments
        and same(one.previous, other.previous)
    )
