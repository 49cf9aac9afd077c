"""Check a new generation before it is promoted: replay everything a second time, interpreted and without the cache."""

import logging
from collections.abc import Sequence
from contextlib import closing
from shlex import quote

from ratings_ledger.ledger.events.published_lists import compute_digest
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.replay.trace_cache import find_wrong_traces
from ratings_ledger.projections.stored import generations, sql_history
from ratings_ledger.projections.stored.building import NewGeneration, ReportProgress
from ratings_ledger.projections.stored.computing import LadderFailure
from ratings_ledger.projections.stored.rebuild_plan import RebuildPlan
from ratings_ledger.projections.stored.work import Results, create_local_work

logger = logging.getLogger(__name__)
LADDERS_PER_REPORT = 500


def check_by_replay(
    ledger: Ledger,
    generation: NewGeneration,
    plan: RebuildPlan,
    failures: Sequence[LadderFailure],
    report_progress: ReportProgress,
) -> list[str]:
    """Replay everything a second time, and return the names of the ladders that differ.

    A ladder that fails or is missing in only one of the two replays differs, too.
    The names contain `live_games` if the stored games differ.
    Log a warning for each wrong cached trace, which is deleted, and for a cache that may be wrong.
    """
    facts, requested, with_changes = plan.facts, plan.requested, generation.history_writer is not None
    report_progress("checking", {"ladders_done": 0, "ladders": len(generation.ladders)})
    with compiling.force_interpreted():
        uncached_facts = _decode_uncached(ledger, facts.position)
        second_work = create_local_work(
            uncached_facts, plan.options.rule_seconds, plan.options.cores, _compute_digest_from_rows
        )
        _, results = second_work.compute(requested, plan.requested_stored, with_changes)
        failed = {failure.ladder for failure in failures}
        differing = _find_differing(ledger, generation, plan, uncached_facts, results, failed, report_progress)
    for ladder, path in find_wrong_traces(facts, uncached_facts):
        logger.warning("ratings: the cached trace %s differed from a replay of %s and was deleted", path, ladder)
    if differing and facts.cache is not None:
        logger.warning(
            "ratings: the second replay, without the cache, gave different results, so the cache may be damaged; "
            "to delete it, run: rm -r %s",
            quote(str(facts.cache)),
        )
    return differing


def _find_differing(
    ledger: Ledger,
    generation: NewGeneration,
    plan: RebuildPlan,
    facts: Facts,
    results: Results,
    failed: set[str],
    report_progress: ReportProgress,
) -> list[str]:
    """Return the names of the ladders that differ between a generation and another replay.

    The names contain `live_games` if the stored games differ.
    Log a warning for each ladder that no event changed, but whose previous standings differ.
    """
    replayed, differing, failed_again = set[str](), set[str](), set[str]()
    unchanged_rows = {row.ladder: row for row in plan.unchanged}
    with closing(results), ledger.reading() as connection:
        stored = {row.ladder: row for row in generations.list_ladder_rows(connection, generation.number)}
        parts = sql_history.list_parts(connection, generation.number) if generation.history_writer else {}
        for number, result in enumerate(results, 1):
            if isinstance(result, LadderFailure):
                failed_again.add(result.ladder)
                continue
            replayed.add(result.ladder)
            if (row := unchanged_rows.get(result.ladder)) and any(
                generations.describe_standing_differences(connection, row, result)
            ):
                logger.warning(
                    "ratings: the stored standings of %s differ from a replay; a promotion replaces them", result.ladder
                )
            if result.ladder in stored and (
                any(generations.describe_standing_differences(connection, stored[result.ladder], result))
                or (
                    generation.history_writer
                    and sql_history.find_change_difference(connection, parts.get(result.ladder, []), result)
                )
            ):
                differing.add(result.ladder)
            if number % LADDERS_PER_REPORT == 0:
                report_progress("checking", {"ladders_done": number, "ladders": len(generation.ladders)})
        if sql_history.GAMES in parts and sql_history.find_game_difference(connection, parts[sql_history.GAMES], facts):
            differing.add("live_games")
    return sorted(differing | (generation.ladders ^ replayed) | (failed ^ failed_again))


def _compute_digest_from_rows(ranking: Ranking) -> str:
    """Return the digest of the rows as JSON, without the fast path of `Ranking.digest`."""
    return compute_digest(ranking.ruleset, ranking.json_rows())


def _decode_uncached(ledger: Ledger, position: int) -> Facts:
    """Decode all facts at a position from the log, without the cache."""
    with ledger.reading() as connection:
        return decode(connection, position, cached=False)
