"""Impact: two standings of a ladder side by side, and what new events do to every ladder."""

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from ledger.errors import Unknown
from ledger.events.canonical import parse_object
from ledger.events.revisions import GAME_EVENTS, known
from ledger.events.types import TYPES, Draft
from ledger.validation.published_lists import PublishedList, latest_lists, published_lists
from projections.facts.columns import NONE, Facts
from projections.facts.decoding import apply, settle_facts
from projections.lists.contract import RankedRow
from projections.queries.answers_compared import DifferingList, Effect, Gain, Impact, Radius
from projections.queries.coordinates import moment
from projections.queries.explanation import row_of_game
from projections.queries.publication import as_published, compared_at
from projections.queries.results import ABSENT
from projections.queries.standings import Ladders
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import Stream, parse_name
from projections.replay.replay import replay
from projections.rulesets.versions import Version

T = TypeVar("T")
E = TypeVar("E", bound=Effect)

# how many of the first places are the top
TOP = 10


class Had(NamedTuple):
    """What somebody has on a ladder: exact points, rank, and gold if the list pays any."""

    points: Fraction
    rank: int | None
    gold: int | None


def had(rows: list[RankedRow], scale: int) -> dict[str, Had]:
    """What everybody has, by player."""
    return {row.player: Had(row.value(scale), row.rank, row.gold) for row in rows}


def compare(
    kind: type[E], ladder: str, old: Mapping[str, Had], new: Mapping[str, Had], before: Facts, after: Facts
) -> list[E]:
    """The players for whom something differs, largest gain first; the facts say who is who.

    A new id alone is not a difference. Two players becoming one person is.
    """
    aligned = under_present_ids(old, new, before, after)
    found = [
        _effect(kind, ladder, player, aligned.get(player), new.get(player))
        for player in aligned.keys() | new.keys()
        if aligned.get(player) != new.get(player)
    ]
    return sorted(found, key=lambda effect: (-effect.difference, effect.player))


def _effect(kind: type[E], ladder: str, player: str, old: Had | None, new: Had | None) -> E:
    rank, gold = (old and old.rank, new and new.rank), (old and old.gold, new and new.gold)
    if old is None or new is None:
        what = "added" if old is None else "removed"
        return kind(what, ladder, player, old and old.points, None, new and new.points, rank, gold)
    return kind("moved", ladder, player, old.points, new.points - old.points, new.points, rank, gold)


def under_present_ids(old: Mapping[str, T], new: Mapping[str, T], before: Facts, after: Facts) -> dict[str, T]:
    """What was known by player, under the ids the same people have in `new`: renamed since, or no longer renamed."""
    found = dict(old)
    if not (before.renamed or after.renamed):
        return found
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    since = [(was, after.current(was)) for was in gone if after.current(was) in new]
    for was, now in since + [(before.current(now), now) for now in come if before.current(now) in gone]:
        if was in found and now not in found:
            found[now] = found.pop(was)
    return found


def radius(ladder: str, old: Mapping[str, Had], new: Mapping[str, Had], effects: Sequence[Effect]) -> Radius:
    """The size of this impact on a ladder that was `old` and is `new`."""
    moved = [Gain(effect.player, effect.change) for effect in effects if effect.change]
    up = max(moved, key=lambda gain: gain.change, default=None)
    down = min(moved, key=lambda gain: gain.change, default=None)
    return Radius(
        ladder,
        sum(effect.before != effect.after for effect in effects),
        sum(effect.rank[0] != effect.rank[1] for effect in effects),
        up if up and up.change > 0 else None,
        down if down and down.change < 0 else None,
        swapped(old, new),
        tuple(sorted(_top(new) - _top(old))),
        tuple(sorted(_top(old) - _top(new))),
    )


def _top(rows: Mapping[str, Had]) -> set[str]:
    return {player for player, row in rows.items() if row.rank is not None and row.rank <= TOP}


def swapped(old: Mapping[str, Had], new: Mapping[str, Had]) -> int:
    """How many pairs of players ranked in both swap order: one is ahead in `old`, the other in `new`.

    Players who share a rank in either are not swapped.
    """
    ranks = sorted(
        (was, now)
        for player in old.keys() & new.keys()
        if (was := old[player].rank) is not None and (now := new[player].rank) is not None
    )
    count, seen, waiting, last = 0, list[int](), list[int](), 0
    for was, now in ranks:
        if was != last:
            # players who were equal do not count against each other
            for rank in waiting:
                insort(seen, rank)
            waiting, last = [], was
        count += len(seen) - bisect_right(seen, now)
        waiting.append(now)
    return count


ALL = "all"


def impact_of(connection: Connection, facts: Facts, drafts: Iterable[Draft]) -> Impact:
    """What events that are checked but not appended yet would change; the facts are advanced to that state."""
    before = facts.snapshot()
    matters: set[str] = set()
    renames: list[tuple[str, str]] = []
    for number, draft in enumerate(drafts, 1):
        data = parse_object(draft.data.encode())
        matters |= _apply(connection, facts, number, draft, data)
        if draft.type == "player.renamed":
            renames.append((data["player"], data["new_player"]))
    settle_facts(facts)
    found = impact_between(connection, Ladders(before), Ladders(facts), matters)
    reasons = tuple(why for player, new_player in renames for why in _why_rescored(before, found, player, new_player))
    return replace(found, reasons=reasons or ABSENT)


def _why_rescored(before: Facts, found: Impact, player: str, new_player: str) -> Iterator[str]:
    """Why a rename changes points; most do not."""
    ladders = dict.fromkeys(effect.ladder for effect in found.changes if effect.before != effect.after)
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
    elif draft.type in GAME_EVENTS:
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
        with suppress(Unknown):
            facts.rows[game_id] = row_of_game(connection, facts, game_id)
    return facts.rows[game_id]


def about(type_name: str, data: dict[str, Any], slugs: Iterable[str]) -> set[str]:
    """What an event may matter to: `game:NAME`, `ruleset:ID`, or all; nothing if it does not matter to any ladder.

    `slugs` are the names of the games that an event about a game concerns, before and after it.
    """
    if type_name in GAME_EVENTS:
        return {f"game:{slug}" for slug in slugs}
    if type_name == "points.adjusted":
        return {f"ruleset:{parse_name(data['ladder']).ruleset_id}"}
    if type_name == "ruleset.published":
        return {f"ruleset:{data['id']}"}
    return set() if TYPES[type_name].is_silent else {ALL}


def matter(matters: set[str], version: Version) -> bool:
    """Whether one of these things may matter to the ladders of a version."""
    ruleset, of = version.ruleset, getattr(version.params, "of", None)
    own = {ALL, f"ruleset:{ruleset.id}", f"ruleset:{of}", *(f"game:{slug}" for slug in ruleset.scope.game)}
    return not own.isdisjoint(matters)


def impact_between(
    connection: Connection, before: Ladders, after: Ladders, matters: set[str], only: Collection[str] = ()
) -> Impact:
    """How two states differ on the ladders of the rulesets to which one of `matters` may matter, or on some of them."""
    failed: list[str] = []
    old, new = _streams(before, matters, failed), _streams(after, matters, failed)
    names = old.keys() | new.keys()
    changed = {name for name in names if name in (only or names) and not same(old.get(name), new.get(name))}
    lists: dict[str, list[PublishedList]] = {}
    for one in latest_lists(published_lists(connection, before.facts.position)):
        lists.setdefault(one.ladder, []).append(one)
    # a new date for a game may change what was played up to some time, even if nobody's points
    listed_names = names & lists.keys() & {*(only or names)}
    changed |= {name for name in listed_names if _instants(before, old.get(name)) != _instants(after, new.get(name))}
    effects, radii, differing_lists = list[Effect](), list[Radius](), list[DifferingList]()
    for name in sorted(changed):
        # with running points, one change moves ranks all over
        listed = any(stream and not stream.ranking.running for stream in (old.get(name), new.get(name)))
        try:
            was, now = _Replayed(before, old.get(name)), _Replayed(after, new.get(name))
            old_rows, new_rows = was.had(), now.had()
            differing = compare(Effect, name, old_rows, new_rows, before.facts, after.facts)
            differing_lists += [
                DifferingList(one.ladder, one.as_of if one.as_of is None else moment(one.as_of), one.position)
                for one in lists.get(name, ()) if _comes_out_differently(connection, was, now, one)
            ]  # fmt: skip
        except RuleFailure as error:
            failed.append(_failure(connection, after.facts, error))
            continue
        effects += [effect for effect in differing if listed or effect.before != effect.after]
        if differing:
            radii.append(radius(name, old_rows, new_rows, differing))
    return Impact(
        tuple(effects), tuple(radii), tuple(differing_lists), failed=tuple(dict.fromkeys(failed))
    )  # fmt: skip


class _Replayed:
    """A ladder in one of two states, replayed once for all questions about it; without a stream nobody is on it."""

    def __init__(self, ladders: Ladders, stream: Stream | None) -> None:
        """Raises `RuleFailure`."""
        self.ladders = ladders
        self.stream = stream
        self.outcome = None if stream is None else replay(stream)[0]

    def rows(self, as_of: int | None) -> list[RankedRow]:
        """The rows as of some time. Raises `RuleFailure`."""
        if self.stream is None or self.outcome is None:
            return []
        return self.ladders.rows_at(self.stream, self.outcome, as_of)[1]

    def had(self) -> dict[str, Had]:
        """What everybody has in the end. Raises `RuleFailure`."""
        return {} if self.stream is None else had(self.rows(None), self.stream.rule.scale)


def _instants(ladders: Ladders, stream: Stream | None) -> list[int]:
    """The times of a ladder's games and adjustments."""
    if stream is None:
        return []
    return [*(ladders.facts.occurred_at[row] for row in stream.row), *(one.occurred_at for one in stream.adjustments)]


def _comes_out_differently(connection: Connection, was: _Replayed, now: _Replayed, one: PublishedList) -> bool:
    """Whether a list, as it would be today, differs between two states in more than ids, and from what was published.

    One that still comes out as published is not worth reporting.
    """
    stream = was.stream or now.stream
    as_of = one.as_of if stream is None else compared_at(one, stream.versions[0].ruleset)
    facts = was.ladders.facts, now.ladders.facts
    old, new = (_valued(side.rows(as_of), 1 if stream is None else stream.rule.scale) for side in (was, now))
    if under_present_ids(old, new, *facts) == new:
        return False
    published = as_published(connection, one)
    return under_present_ids(_valued(published.rows, published.scale), new, *facts) != new


def _valued(rows: Iterable[RankedRow], scale: int) -> dict[str, tuple[Any, ...]]:
    """Rows by player, their points as exact numbers."""
    return {row.player: (row.rank, row.value(scale), row.games, row.qualified, row.gold, row.places) for row in rows}


def _streams(ladders: Ladders, matters: set[str], failed: list[str]) -> dict[str, Stream]:
    """The streams of all ladders of the rulesets that may be affected; what does not run here is added to `failed`."""
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
    # a game that is only about to be recorded has no position yet
    return told_with_game(error, facts, connection).replace(": the rule", " cannot be replayed: the rule", 1)


def same(one: Stream | None, other: Stream | None) -> bool:
    """Whether two streams give the same result, so that neither needs to be replayed."""
    if one is None or other is None:
        return one is other
    if one.ranking.sums_lists:
        return False  # it also depends on accounts and on other lists
    return (
        (one.names, one.offsets, one.players, [*one.columns], one.version, one.versions)
        == (other.names, other.offsets, other.players, [*other.columns], other.version, other.versions)
        and one.adjustments == other.adjustments
        and same(one.previous, other.previous)
    )
