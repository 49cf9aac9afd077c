"""Coordinate `whatif` on a cluster: workers compare the affected ladders, and this module combines their results."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.published_lists import read_published_lists, select_latest_lists
from ratings_ledger.projections.cluster.pack_comparisons import parse_comparison
from ratings_ledger.projections.cluster.packs import PACK_GAMES, Pack, build_packs, group_by_family
from ratings_ledger.projections.cluster.prepared_log import (
    PreparedLog,
    create_pack_task,
    prepare_with_retries,
    run_pack_tasks,
)
from ratings_ledger.projections.cluster.resources import Cluster
from ratings_ledger.projections.diff.affected import is_affected
from ratings_ledger.projections.diff.what_if import (
    SimulatedLadder,
    Simulation,
    Variant,
    apply_ruleset,
    build_no_games_error,
    check_simulated_ladder,
    list_left_out,
)
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import read_rulesets_at
from ratings_ledger.projections.queries.coordinates import Coordinates, load_times, parse_as_of, resolve_known_at
from ratings_ledger.projections.queries.published_lists import load_published_list
from ratings_ledger.projections.replay.rule_calls import add_game_id


class _SimulationRequest(NamedTuple):
    """The arguments of a simulation, with the connection, the cluster and the prepared log."""

    ledger: Ledger
    connection: Connection
    cluster: Cluster
    prepared: PreparedLog
    ladders: Collection[str]
    as_of: int | None
    note: Callable[[str], None]


def simulate_on_cluster(
    ledger: Ledger,
    workers: AbstractContextManager[Cluster],
    rulesets: Sequence[tuple[dict[str, str], Ruleset]],
    ladders: Collection[str],
    as_of: str | None,
    known_at: str | None,
    note: Callable[[str], None],
) -> Simulation:
    """Return the result of `Snapshot.simulate`, computed by workers. Invalid arguments are refused first.

    Raises the errors of `Snapshot.simulate`, `open_cluster` and `run_tasks`.
    """
    with ledger.reading() as connection, ExitStack() as stack:
        position, times = resolve_known_at(connection, known_at, None, note), load_times(connection)
        until = parse_as_of(as_of, times.home or rulesets[0][1].time_zone)
        _check_arguments(read_rulesets_at(connection, position), rulesets, ladders, until)
        cluster = stack.enter_context(workers)
        prepared = prepare_with_retries(ledger, cluster, position, accounts=True)
        request = _SimulationRequest(ledger, connection, cluster, prepared, ladders, until, note)
        failed = list[str]()
        variants = tuple(_simulate_variant(request, settings, ruleset, failed) for settings, ruleset in rulesets)
        cluster.sweep()
        at = Coordinates(until, position, None, tuple(prepared.facts.left_out))
        return Simulation(at, variants, failed=tuple(dict.fromkeys(failed)), times=times)


def _check_arguments(
    facts: Facts, rulesets: Sequence[tuple[dict[str, str], Ruleset]], ladders: Collection[str], as_of: int | None
) -> None:
    """Refuse arguments that are invalid regardless of the games, before any segment is sealed.

    Raises the errors of `check_simulated_ladder`, `apply_ruleset` and `_list_affected`.
    """
    for ladder in ladders:
        check_simulated_ladder(facts, ladder, rulesets[0][1])
    for _, ruleset in rulesets:
        _list_affected(_merge_rulesets(facts, apply_ruleset(facts, ruleset, as_of).facts), ruleset, ladders)


def _simulate_variant(
    request: _SimulationRequest, settings: dict[str, str], ruleset: Ruleset, failed: list[str]
) -> Variant:
    """Return the effect of a ruleset; failures of replays are appended to `failed`."""
    _, connection, _, prepared, ladders, as_of, note = request
    empty_facts = prepared.facts.select_rows(array("q"))
    merged_facts = _merge_rulesets(prepared.facts, apply_ruleset(empty_facts, ruleset, as_of).facts)
    failed += [problem.reason for problem in empty_facts.unusable.values()]
    simulated, published, own_failed = list[SimulatedLadder](), list[Any](), list[str]()
    all_current, all_hypothetical = set[str](), set[str]()
    for ladder_results, lists, failures, current_names, hypothetical_names in _compare_packs(
        request, merged_facts, ruleset, ladders
    ):
        simulated += ladder_results
        published += lists
        own_failed += [_add_game_id_to(text, connection) for text in failures if text not in failed]
        all_current.update(filter(ruleset.has_ladder, current_names))
        all_hypothetical |= {*hypothetical_names}
    if unknown := [name for name in ladders if ruleset.has_ladder(name) and name not in all_hypothetical]:
        # find the ladders that have games; these comparisons replay nothing
        comparisons = _compare_packs(request, merged_facts, ruleset, unknown, all_packs=True)
        raise build_no_games_error(
            ruleset, unknown[0], {name for *_, hypothetical_names in comparisons for name in hypothetical_names}
        )
    if not all_current:
        note(f"no ladder of {ruleset.id} has a game, so there are no current points to compare with")
    failed += sorted(own_failed)
    return Variant(
        ruleset.name,
        settings,
        tuple(sorted(simulated, key=lambda ladder: ladder.summary.ladder)),
        tuple(sorted(published, key=lambda published_list: published_list.ladder)),
        list_left_out(simulated, {*filter(ruleset.has_ladder, all_hypothetical)}),
    )


def _compare_packs(
    request: _SimulationRequest,
    merged_facts: Facts,
    ruleset: Ruleset,
    ladders: Collection[str],
    all_packs: bool = False,
) -> Iterator[list[Any]]:
    """Yield a comparison for each pack with ladders that a ruleset may affect, as `parse_comparison` returns it.

    If `ladders` are named, only these are compared, in their own packs or (with `all_packs`) in all packs of their
    rulesets. `merged_facts` have both the recorded and the hypothetical rulesets. Raises the errors of `run_tasks`.
    """
    ledger, connection, cluster, prepared, *_ = request
    published = {
        published_list.ladder: published_list
        for published_list in select_latest_lists(read_published_lists(connection, merged_facts.position))
    }

    affected = _list_affected(merged_facts, ruleset, ladders)
    names_by_family = {
        ruleset_id: group_by_family(merged_facts.rulesets[ruleset_id], published) for ruleset_id in affected
    }

    def load_lists(pack: Pack) -> list[list[Any]]:
        """Return the published lists of a pack's ladders, each with its rows."""
        names = names_by_family[pack.ruleset_id]
        pack_lists = [published[name] for family in pack.families for name in names.get(family, ())]
        return [
            [*published_list, [[*row] for row in load_published_list(connection, published_list).rows]]
            for published_list in pack_lists
        ]

    tasks = [
        create_pack_task(
            "compare",
            prepared,
            pack,
            requested=names,
            under=ruleset.model_dump(mode="json", exclude_unset=True),
            as_of=request.as_of,
            lists=load_lists(pack),
        )
        for ruleset_id, names in affected.items()
        for pack in build_packs(merged_facts, ruleset_id, () if all_packs else names, (), prepared.counts, PACK_GAMES)
    ]
    for result in run_pack_tasks(ledger, cluster, prepared, "comparing", tasks, accounts=True):
        yield parse_comparison(result)


def _merge_rulesets(facts: Facts, hypothetical: Facts) -> Facts:
    """Return the facts with both their own and the hypothetical versions of all rulesets."""
    merged = dict(hypothetical.rulesets)
    for ruleset_id, versions in facts.rulesets.items():
        if merged[ruleset_id] is not versions:
            merged[ruleset_id] = [*versions, *merged[ruleset_id]]
    return replace(facts, rulesets=merged)


def _list_affected(facts: Facts, ruleset: Ruleset, ladders: Collection[str]) -> dict[str, list[str]]:
    """Return the rulesets that a changed ruleset may affect, with the named ladders of each.

    If `ladders` are named, only their rulesets are included. Raises `BadArgument` for a rule that workers cannot run.
    """
    affected = {}
    for ruleset_id, versions in facts.rulesets.items():
        names = [*filter(versions[0].ruleset.has_ladder, ladders)]
        if not any(is_affected(version, {f"ruleset:{ruleset.id}"}) for version in versions) or (ladders and not names):
            continue
        if not all(version.is_built_in for version in versions):
            message = f"{ruleset_id} uses a rule from a package, and such rules run only on this machine"
            raise BadArgument(f"{message}; leave out --on", "on")
        affected[ruleset_id] = names
    return affected


def _add_game_id_to(message: str, connection: Connection) -> str:
    """Add the id of the game to the message of a failure, because workers do not know the ids of games."""
    match = re.search(r"at position (\d+)", message)
    return message if match is None else add_game_id(message, int(match[1]), connection)
