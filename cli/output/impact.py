"""How it is told what something does to the ladders: to whose points, how far, and to which published lists."""

from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection

from cli.arguments.facts import decoded
from cli.output import render
from cli.output.times import Times, times_of
from ledger.events.types import Draft
from ledger.store.log import head
from ledger.store.opening import Ledger
from ledger.validation.published_lists import Published, published_lists
from projections.facts.columns import Facts
from projections.facts.players import known_players
from projections.queries.comparison import Radius
from projections.queries.impact import Reach, effects

SHOWN_CHANGES = 40


class Preview:
    """Works out what checked drafts would change, before they are appended; `found` holds it.

    It looks at the facts once, for this and for who is known. With `games_max` nothing is worked out for a ledger of
    more games, or for so many drafts; with `if_published` only if a list is published.
    """

    def __init__(
        self, ledger: Ledger, wanted: bool = True, games_max: int | None = None, if_published: bool = False
    ) -> None:
        self.ledger = ledger
        self.wanted = wanted
        self.games_max = games_max
        self.if_published = if_published
        self.found: Reach | None = None
        self._facts: Facts | None = None

    def facts(self, connection: Connection) -> Facts:
        """The facts up to the head of the log."""
        if self._facts is None:
            self._facts = decoded(connection)
        return self._facts

    def known(self, connection: Connection) -> set[str]:
        """The players whom the ledger knows."""
        return known_players(self.facts(connection))

    def __call__(self, drafts: Iterator[Draft]) -> None:
        """Look at the drafts, as `import_items` offers them."""
        if not self.wanted:
            return
        with self.ledger.reading() as connection:
            if self.if_published and not published_lists(connection, head(connection).position):
                return
            facts = self.facts(connection)
            if self.games_max is None:
                self.found = effects(connection, facts, drafts)
            elif len(facts.start) < self.games_max:
                few = list(islice(drafts, self.games_max))
                if len(few) < self.games_max:
                    self.found = effects(connection, facts, few)


def note_failed(found: Reach) -> None:
    """Tell which ladders cannot be replayed."""
    for problem in found.failed:
        render.note(f"ratings: {problem}")


def told(found: Reach) -> dict[str, Any]:
    """What changes, ladder by ladder, and which published lists, as JSON tells it."""
    told = {"changes": [effect.as_json() for effect in found.effects], **found.as_json()}
    return dict(render.with_decimals(told))


def print_reach(found: Reach, ledger: Ledger) -> None:
    """A ladder after the other with its players, if they are few; else how far it reaches; then the published lists."""
    if not found.effects:
        render.echo("No points change.")
    elif len(found.effects) <= SHOWN_CHANGES:
        swapped = {one.ladder: one.swapped for one in found.ladders}
        for ladder, concerned in groupby(found.effects, key=lambda effect: effect.ladder):
            render.echo(f"\n{ladder}")
            print_effects([effect.as_json() for effect in concerned])
            if pairs := swapped.get(ladder):
                render.echo(f"{render.count(pairs, 'pair')} of players in another order")
    else:
        render.echo()
        print_radii(found.ladders[:SHOWN_CHANGES])
        if (more := len(found.ladders) - SHOWN_CHANGES) > 0:
            render.echo(f"... and {render.count(more, 'more ladder')}")
        render.echo("\nWho is concerned: --format json")
    for reason in found.reasons:
        render.echo()
        render.hanging(render.plain(reason), 0)
    if found.lists:
        with ledger.reading() as connection:
            print_lists(found.lists, times_of(connection))


def print_effects(told: list[dict[str, Any]]) -> None:
    """What players have on one ladder before and after."""
    points = ("before", "change", "after")
    columns = [render.column_with_gaps([effect[name] for effect in told], signed=name == "change") for name in points]
    more = [name for name in ("rank", "gold") if any(effect[name][0] != effect[name][1] for effect in told)]
    rows = [
        (effect["player"], *(column[i] for column in columns), *(_moved(effect[name]) for name in more))
        for i, effect in enumerate(told)
    ]
    render.print_table(("player", *points, *more), rows, right=(*points, *more))


def _moved(values: list[int | None]) -> str:
    """A rank or gold before and after, where it changes."""
    return "" if values[0] == values[1] else " → ".join("-" if value is None else str(value) for value in values)


def print_radii(found: list[Radius]) -> None:
    """How far something reaches, ladder by ladder."""
    rows: list[tuple[render.Cell, ...]] = [
        (one.ladder, one.players, one.ranks, one.swapped, _largest(one)) for one in found
    ]
    header = ("ladder", "players", "ranks", "swapped", "largest change")
    render.print_table(header, rows, right=("players", "ranks", "swapped"))


def _largest(one: Radius) -> str:
    """The largest gain or loss of those who stay on the ladder, and whose it is."""
    there = [effect for effect in (one.up, one.down) if effect is not None]
    if not there:
        return ""
    most = max(there, key=lambda effect: abs(effect.change))
    return f"{render.human(str(most.change), signed=True)} {render.plain(most.player)}"


def print_lists(lists: list[Published], times: Times) -> None:
    """The published lists that would come out differently."""
    if not lists:
        return
    render.echo("\nPublished, and would come out differently today:")
    for one in lists[:SHOWN_CHANGES]:
        render.echo(f"  {listed(one, times)}, published at position {one.position:,}")
    if len(lists) > SHOWN_CHANGES:
        render.echo(f"  ... and {len(lists) - SHOWN_CHANGES:,} more")


def listed(one: Published, times: Times) -> str:
    """A published list in words."""
    return one.ladder if one.as_of is None else f"{one.ladder} as of {times.stated(one.as_of)}"
