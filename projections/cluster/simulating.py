"""The coordinator of `whatif`: it has all ladders that a ruleset matters to compared, and puts the answers together."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.published_lists import latest_lists, published_lists
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject
from ratings_ledger.projections.cluster.coordinating import (
    Prepared,
    Tell,
    called,
    cluster_for,
    mend,
    prepared_for,
    sweep,
)
from ratings_ledger.projections.cluster.farm import Cluster, Task, farm
from ratings_ledger.projections.cluster.packs import PACK_GAMES, family_of, packs
from ratings_ledger.projections.cluster.proofs import CODE
from ratings_ledger.projections.cluster.segments import named_cells
from ratings_ledger.projections.cluster.tasks import comparing_plan, comparison_in, output_name
from ratings_ledger.projections.diff.affected import is_affected
from ratings_ledger.projections.diff.what_if import (
    SimulatedLadder,
    Simulation,
    Variant,
    left_out_of,
    no_games_under,
    refuse_simulated,
    refused_or_under,
)
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import rulesets_at
from ratings_ledger.projections.queries.coordinates import Coordinates, instant_played, position_known, times_of
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published import as_published
from ratings_ledger.projections.replay.containment import with_game
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.rulesets.faults import is_ours
from ratings_ledger.projections.rulesets.versions import Version


class _Question(NamedTuple):
    """What is asked of whom, and of what."""

    ledger: Ledger
    connection: Connection
    cluster: Cluster
    prepared: Prepared
    ladders: Collection[str]
    as_of: int | None
    note: Callable[[str], None]
    tell: Tell


def simulated_on(
    ledger: Ledger, on: str, segments: str | None, rulesets: Sequence[tuple[dict[str, str], Ruleset]],
    ladders: Collection[str], as_of: str | None, known_at: str | None, note: Callable[[str], None], tell: Tell,
) -> Simulation:  # fmt: skip
    """Return what `View.simulate` says, worked out by the workers of an engine, who share the place `segments`.

    Raises as that does, and as `work_on` does.
    """
    with ledger.reading() as connection, ExitStack() as stack:
        position, times = position_known(connection, known_at, None, note), times_of(connection)
        until = instant_played(as_of, times.home or rulesets[0][1].time_zone)
        _refuse(rulesets_at(connection, position), rulesets, ladders, until)
        cluster = stack.enter_context(cluster_for(ledger, on, segments))
        prepared = prepared_for(ledger, cluster, position, lambda numbers: tell("sealing", numbers), True)
        question = _Question(ledger, connection, cluster, prepared, ladders, until, note, tell)
        failed = list[str]()
        variants = tuple(_variant(question, told, ruleset, failed) for told, ruleset in rulesets)
        sweep(cluster)
        at = Coordinates(until, position, None, tuple(prepared.facts.left_out))
        return Simulation(at, variants, failed=tuple(dict.fromkeys(failed)), times=times)


def _refuse(
    facts: Facts, rulesets: Sequence[tuple[dict[str, str], Ruleset]], ladders: Collection[str], as_of: int | None
) -> None:  # fmt: skip
    """Refuse all that can be without a game, before anything is sealed. Raises as `refuse_simulated`,
    `refused_or_under` and `_concerned` do."""
    for ladder in ladders:
        refuse_simulated(facts, ladder, rulesets[0][1])
    for _, ruleset in rulesets:
        _concerned(_both(facts, refused_or_under(facts, ruleset, as_of)), ruleset, ladders)


def _variant(question: _Question, told: dict[str, str], ruleset: Ruleset, failed: list[str]) -> Variant:
    """Return what a ruleset would change; `failed` gets what cannot be replayed."""
    _, connection, _, prepared, ladders, as_of, note, _ = question
    nothing = prepared.facts.only(array("q"))
    then = refused_or_under(nothing, ruleset, as_of)
    failed += [problem.reason for problem in nothing.unusable.values()]
    found, published, own_failed = list[SimulatedLadder](), list[Any](), list[str]()
    now_there, then_there = set[str](), set[str]()
    for some, lists, wrong, there, there_then in _compared(question, _tasks(question, then, ruleset, ladders)):
        found += some
        published += lists
        own_failed += [_with_game(connection, text) for text in wrong if text not in failed]
        now_there |= {name for name in there if parse_name(name).ruleset_id == ruleset.id}
        then_there |= {*there_then}
    if unknown := [name for name in ladders if parse_name(name).ruleset_id == ruleset.id and name not in then_there]:
        # nothing is replayed to find what there is
        every = _compared(question, _tasks(question, then, ruleset, unknown, all_packs=True))
        raise no_games_under(ruleset, unknown[0], {name for *_, there_then in every for name in there_then})
    if not now_there:
        note(f"no ladder of {ruleset.id} has a game, so there is nothing to compare it with")
    failed += sorted(own_failed)
    return Variant(
        ruleset.name, told, tuple(sorted(found, key=lambda one: one.radius.ladder)),
        tuple(sorted(published, key=lambda one: one.ladder)),
        left_out_of(found, {name for name in then_there if parse_name(name).ruleset_id == ruleset.id}),
    )  # fmt: skip


def _compared(question: _Question, tasks: Iterable[Task]) -> Iterator[list[Any]]:
    """Yield what comes of some comparisons, as `comparison_in` has it. Raises as `farm` does."""
    for task in _whole(question, [*tasks]):
        yield comparison_in(OpenedObject(question.cluster.objects, task.makes).column("compared").tobytes())


def _tasks(
    question: _Question, then: Ladders, ruleset: Ruleset, ladders: Collection[str], all_packs: bool = False
) -> Iterator[Task]:
    """Yield the comparisons of the packs whose ladders a ruleset may matter to; if some ladders are named, of these
    alone, in their packs or in all of their rulesets'.
    """
    connection, prepared = question.connection, question.prepared
    facts, both = prepared.facts, _both(prepared.facts, then)
    planned, number = replace(facts, rulesets=both), {cell: at for at, cell in enumerate(prepared.cells)}
    named = named_cells(facts)
    lists = [
        (one, as_published(connection, one).rows)
        for one in latest_lists(published_lists(connection, facts.position))
    ]  # fmt: skip
    for ruleset_id, asked in _concerned(both, ruleset, ladders).items():
        versions = both[ruleset_id]
        own = [one for one in lists if parse_name(one[0].ladder).ruleset_id == ruleset_id]
        for pack in packs(planned, ruleset_id, () if all_packs else asked, (), prepared.counts, PACK_GAMES):
            plan = comparing_plan(
                CODE, prepared.base, pack._replace(cells=[number[cell] for cell in pack.cells]),
                [named[cell] for cell in pack.cells], asked, ruleset, question.as_of,
                [one for one in own if family_of(versions, parse_name(one[0].ladder).values) in pack.families],
            )  # fmt: skip
            yield Task(plan, output_name(plan), called(ruleset_id, pack.families))


def _both(facts: Facts, then: Ladders) -> dict[str, list[Version]]:
    """Return the versions of all rulesets as they are, with those that would be."""
    both = dict(then.facts.rulesets)
    for ruleset_id, versions in facts.rulesets.items():
        both[ruleset_id] = versions if then.facts.rulesets[ruleset_id] is versions else [*versions, *both[ruleset_id]]
    return both


def _concerned(
    both: Mapping[str, Sequence[Version]], ruleset: Ruleset, ladders: Collection[str]
) -> dict[str, list[str]]:  # fmt: skip
    """Return the rulesets that another one may matter to, with the ladders of each that are named; if some are named,
    only the rulesets of these. Raises `BadArgument` for one that workers do not have.
    """
    found = {}
    for ruleset_id, versions in both.items():
        asked = [name for name in ladders if parse_name(name).ruleset_id == ruleset_id]
        if not any(is_affected(version, {f"ruleset:{ruleset.id}"}) for version in versions) or (ladders and not asked):
            continue
        if not all(is_ours(version.rule) for version in versions):
            told = f"{ruleset_id} runs on the rule of a package, which is replayed on this machine alone"
            raise BadArgument(f"{told}: leave out --on", "on")
        found[ruleset_id] = asked
    return found


def _whole(question: _Question, tasks: Sequence[Task]) -> Iterator[Task]:
    """Yield the tasks, each when it is done; what is damaged is made again. Raises as `farm` does."""
    ledger, _, cluster, prepared, *_, tell = question
    had, before = set[Task](), set[str]()
    while True:
        try:
            left = [task for task in tasks if task not in had]
            for task in farm(cluster, left, lambda numbers: tell("comparing", numbers)):
                had.add(task)
                yield task
            return
        except DamagedObject as problem:
            mend(cluster, problem, before)
            prepared_for(ledger, cluster, prepared.facts.position, lambda numbers: tell("sealing", numbers), True)


def _with_game(connection: Connection, text: str) -> str:
    """Return why a ladder cannot be replayed, with the id of the game, which workers do not know."""
    found = re.search(r"at position (\d+)", text)
    return text if found is None else with_game(text, int(found[1]), connection)
