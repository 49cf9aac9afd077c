"""`diff`: a ladder at two coordinates side by side, or what was published beside what would be today."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.command import command
from cli.arguments.coordinates import Asked, CoordinatesType
from cli.arguments.facts import decoded
from cli.arguments.one_ladder import note_other_ladder
from cli.arguments.options import composed, format_option
from cli.output import render
from cli.output.impact import print_effects
from ledger.store.opening import open_ledger
from ledger.validation.published_lists import PublishedList
from projections.facts.columns import Facts
from projections.queries.coordinates import Coordinates, Times, times_of
from projections.queries.impact import Effect, Had, Radius, compare, had, radius
from projections.queries.publication import as_published, compared_at
from projections.queries.standings import Ladders, check_version, ruleset_ids
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import Stream, parse_name
from projections.replay.replay import Outcome, replay

# a published list, a computed one, or None where nothing was published
Meant = PublishedList | Coordinates | None


class Side(NamedTuple):
    """One of two sides: what everybody has, and how that is stated."""

    stated: dict[str, Any]
    had: dict[str, Had]
    facts: Facts


class Difference(NamedTuple):
    """A ladder at two coordinates."""

    ladder: str
    a: Side
    b: Side
    effects: list[Effect]
    radius: Radius


class Sides:
    """The ladders at any coordinates asked for; the log is decoded once per position."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._facts: dict[int, Facts] = {}
        self._ladders: dict[Coordinates, Ladders] = {}
        self._replayed: dict[tuple[Coordinates, str], tuple[Stream, Outcome]] = {}

    def facts(self, position: int) -> Facts:
        """The facts known at a position."""
        if position not in self._facts:
            self._facts[position] = decoded(self.connection, position)
        return self._facts[position]

    @property
    def latest(self) -> Facts:
        """The facts asked for so far that know most."""
        return self._facts[max(self._facts)]

    def ladders(self, at: Coordinates) -> Ladders:
        """The ladders at coordinates."""
        if at not in self._ladders:
            self._ladders[at] = Ladders(self.facts(at.known_at), at.as_of, at.rules)
        return self._ladders[at]

    def computed(self, ladder: str, at: Coordinates) -> Side:
        """A ladder at coordinates; nobody is on one whose ruleset was not in force there.

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
        """
        facts, ruleset_id = self.facts(at.known_at), parse_name(ladder).ruleset_id
        if ruleset_id not in facts.rulesets and ruleset_id not in facts.unusable:
            return Side({**at.of(facts).stated(), "ruleset": None}, {}, facts)
        # published lists for many times are prefixes of one replay
        whole = at._replace(as_of=None)
        ladders = self.ladders(whole)
        if (whole, ladder) not in self._replayed:
            stream = ladders.stream(ladder)
            self._replayed[whole, ladder] = stream, replay(stream)[0]
        stream, outcome = self._replayed[whole, ladder]
        ruleset, rows = ladders.rows_at(stream, outcome, at.as_of)
        return Side({**at.of(facts).stated(), "ruleset": ruleset}, had(rows, stream.rule.scale), facts)

    def compared_at(self, one: PublishedList) -> int | None:
        """The time up to which a published list is compared with what would come out today."""
        rulesets = self.facts(one.known_at).rulesets[parse_name(one.ladder).ruleset_id]
        return compared_at(one, rulesets[0].ruleset)

    def published(self, one: PublishedList) -> Side:
        """A list as it was published."""
        at = Coordinates(one.as_of, one.known_at, None)
        found = as_published(self.connection, one)
        stated = {**at.stated(), "ruleset": one.ruleset, "published": one.position}
        return Side(stated, had(found.rows, found.scale), self.facts(one.known_at))


@command()
@click.argument("a", type=CoordinatesType())
@click.argument("b", type=CoordinatesType())
@click.argument("ladders", nargs=-1, type=composed)
@format_option
@click.pass_obj
def diff(db: str, a: Asked, b: Asked, ladders: tuple[str, ...], form: str) -> int:
    """How ladders at the coordinates A differ from those at B: rows added, removed, moved, points before and after.

    \b
        ratings diff 217 now club-catan-elo/all
        ratings diff now rules=club-catan-elo@2
        ratings diff published now

    Coordinates are now, published, a position or time of the log, or parts between commas such as
    as-of=2024-12-31,known-at=217,rules=club-catan-elo@2. What is published is compared with the same list, played up
    to the same time. Without LADDERS: all that differ. A ladder that cannot be replayed is reported; the exit code is
    then 1.
    """
    with open_ledger(db).reading() as connection:
        worlds, times = Sides(connection), times_of(connection)
        failures: list[RuleFailure] = []
        found = [*_differences(worlds, a, b, ladders, failures)]
        for failure in failures:
            render.note(f"ratings: {told_with_game(failure, worlds.latest, connection)}")
    for one in found:
        if ladders and not one.a.had and not one.b.had:
            note_other_ladder(one.b.facts, one.ladder)
    if form == "json":
        render.print_json(render.with_decimals({"ladders": [_as_json(one) for one in found]}))
    elif form == "csv":
        header = ("ladder", "as_of", "player", "before", "change", "after", "rank_before", "rank_after")
        render.print_csv(header, [row for one in found for row in _cells(one)])
    else:
        _print(found, a, b, times)
    return int(bool(failures))


def _differences(
    worlds: Sides, a: Asked, b: Asked, ladders: tuple[str, ...], failures: list[RuleFailure]
) -> Iterator[Difference]:
    """All named ladders, or all that differ; those that cannot be replayed are put into `failures`."""
    for name, one, other in _pairs(worlds, a, b, ladders):
        try:
            left, right = _side(worlds, name, one), _side(worlds, name, other)
        except RuleFailure as problem:
            failures.append(problem)
            continue
        effects = compare(name, left.had, right.had, left.facts, right.facts)
        if effects or ladders or a.published or b.published:
            yield Difference(name, left, right, effects, radius(name, left.had, right.had, effects))


def _side(worlds: Sides, ladder: str, what: Meant) -> Side:
    if what is None:
        return Side({}, {}, worlds.facts(0))
    return worlds.published(what) if isinstance(what, PublishedList) else worlds.computed(ladder, what)


def _pairs(worlds: Sides, a: Asked, b: Asked, ladders: tuple[str, ...]) -> Iterator[tuple[str, Meant, Meant]]:
    """What to compare: (ladder, at A, at B). Raises `UnknownLadder`, `UnknownLadder`."""
    if not ladders:
        _check_versions(worlds, a, b)
    if a.published or b.published:
        yield from _published_pairs(worlds, a, b, ladders)
        return
    if ladders:
        for name in ladders:
            yield name, a.resolve(worlds.connection, name), b.resolve(worlds.connection, name)
        return
    for ruleset_id in sorted(ruleset_ids(worlds.connection)):
        places = [asked.among(worlds.connection, ruleset_id) for asked in (a, b)]
        names: set[str] = set()
        for at in places:
            facts = worlds.facts(at.known_at)
            if ruleset_id in facts.rulesets.keys() - facts.unusable.keys():
                names |= worlds.ladders(at).every(ruleset_id).keys()
        for name in sorted(names):
            yield name, places[0], places[1]


def _check_versions(worlds: Sides, *several: Asked) -> None:
    """Raises `UnknownLadder`, `UnknownLadder` if a requested version is not published."""
    for asked in several:
        if asked.rules is not None:
            at = asked.among(worlds.connection, asked.rules.partition("@")[0])
            check_version(worlds.facts(at.known_at), asked.rules)


def _published_pairs(
    worlds: Sides, a: Asked, b: Asked, ladders: tuple[str, ...]
) -> Iterator[tuple[str, Meant, Meant]]:  # fmt: skip
    """Published lists beside what is computed for the same time, or what was published for it later."""
    listed = {
        side: {
            one.of: one
            for name in ladders or [None]
            for one in asked.lists(worlds.connection, name)
        }
        for side, asked in (("a", a), ("b", b)) if asked.published
    }  # fmt: skip
    keys = sorted({key for lists in listed.values() for key in lists}, key=lambda key: (key[0], key[1] or 2**63))
    if missing := [name for name in ladders if name not in {ladder for ladder, _ in keys}]:
        raise click.ClickException(f"{missing[0]} was not published; see: ratings publish --help")
    if not keys:
        raise click.ClickException("no list was published; see: ratings publish --help")
    for key in keys:
        sides: list[Meant] = []
        for side, asked in (("a", a), ("b", b)):
            if asked.published:
                sides.append(listed[side].get(key))
            else:
                at = (asked.resolve if ladders else asked.among)(worlds.connection, key[0])
                # then the other side is what was published
                (one,) = (lists[key] for lists in listed.values())
                sides.append(at._replace(as_of=worlds.compared_at(one)) if asked.as_of is None else at)
        ladder = key[0]
        yield ladder, sides[0], sides[1]


def _as_json(one: Difference) -> dict[str, Any]:
    rows = [
        {"kind": "moved" if effect.stays else "added" if effect.old is None else "removed",
         **{name: value for name, value in effect.as_json().items() if name != "ladder"}}
        for effect in one.effects
    ]  # fmt: skip
    return {"ladder": one.ladder, "a": one.a.stated, "b": one.b.stated, "rows": rows, **one.radius.as_json()}


def _cells(one: Difference) -> Iterator[list[render.Cell]]:
    for row in _as_json(one)["rows"]:
        points = [render.spreadsheet(row[name]) for name in ("before", "change", "after")]
        yield [one.ladder, one.a.stated["as_of"], row["player"], *points, *row["rank"]]


def _print(found: list[Difference], a: Asked, b: Asked, times: Times) -> None:
    if not found:
        render.echo(f"No ladder differs between {a.text} and {b.text}.")
    for number, one in enumerate(found):
        render.echo("\n" * bool(number), nl=False)
        render.echo(one.ladder)
        for name, side in (("A", one.a), ("B", one.b)):
            render.hanging(f"{name}  {told_coordinates(side.stated, times)}", 3)
        if one.effects:
            render.echo()
            print_effects([effect.as_json() for effect in sorted(one.effects, key=_by_rank)])
        render.echo(f"\n{_summary(one)}")


def _by_rank(effect: Effect) -> tuple[int, int, str]:
    ranks = [had.rank if had is not None and had.rank is not None else 2**31 for had in (effect.new, effect.old)]
    return ranks[0], ranks[1], effect.player


def told_coordinates(stated: dict[str, Any], times: Times) -> str:
    """Coordinates in words."""
    if not stated:
        return "not published"
    published = f"published at position {stated['published']:,}, " if "published" in stated else ""
    played = f", played up to {times.stated(stated['as_of'])}" if stated["as_of"] else ""
    rules = f", all games by {stated['rules']}" if stated["rules"] else ""
    under = "" if rules or "ruleset" not in stated else f", under {stated['ruleset'] or 'no ruleset'}"
    return f"{published}known at position {stated['known_at']:,}{played}{rules}{under}"


def _summary(one: Difference) -> str:
    if not one.effects:
        return "No row differs."
    added = sum(effect.old is None for effect in one.effects)
    removed = sum(effect.new is None for effect in one.effects)
    moved = len(one.effects) - added - removed
    swapped = f"; {render.count(one.radius.swapped, 'pair')} swapped" if one.radius.swapped else ""
    return f"{moved:,} moved, {added:,} added, {removed:,} removed{swapped}."
