"""Verify published lists: compare each with a replay at the same coordinates."""

from collections.abc import Generator

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetUnusable, StoreDamaged, WorkerLost
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded
from ratings_ledger.ledger.rejections import count
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.validation.published_lists import PublishedList, read_published_lists
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, extend
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published_lists import load_published_list
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.stored.computing import BuiltLadder, LadderFailure
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS, compute_ladder, describe_lost_process


def verify_published(
    connection: Connection, rule_seconds: float = RULE_SECONDS, after: int = 0
) -> Generator[Finding, None, int]:
    """Compare the lists published after the position `after` with replays; yield a finding for each that differs.

    Return the number of lists checked. A third-party rule runs in a separate process, for at most `rule_seconds` per
    list; if the rule returns no result, the other lists of its ruleset are not computed.
    """
    published = read_published_lists(connection, head(connection).position)
    lists = sorted((entry for entry in published if entry.position > after), key=lambda entry: entry.known_at)
    if not lists:
        return 0
    # a single pass through the log that stops where each list was computed
    facts = decode(connection, 0, ahead=lists[-1].known_at, cached=False)
    lost: dict[str, str] = {}
    for entry in lists:
        description = f"{entry.ladder}, published by {entry.event_id}"
        if entry.known_at >= entry.position:
            yield Finding(
                "published",
                entry.position,
                f"{description}, names the position {entry.known_at}, which is not earlier than the list's own",
            )
            continue
        if facts.position < entry.known_at:
            extend(facts, connection, entry.known_at)
        recomputed = _recompute_list(facts, entry, rule_seconds, lost)
        if isinstance(recomputed, str):
            yield Finding("published", entry.position, f"{description}, cannot be computed: {recomputed}")
            continue
        if (problem := _find_list_problem(connection, entry)) is not None:
            yield Finding("published", entry.position, f"{description}: {problem}")
        if (recomputed.digest, recomputed.games) != (entry.digest, entry.games):
            difference = _describe_difference(entry, recomputed)
            message = f"{description}, differs from a replay at position {entry.known_at}: {difference}"
            yield Finding("published", entry.position, message)
    return len(lists)


def _recompute_list(
    facts: Facts, published: PublishedList, rule_seconds: float, lost: dict[str, str]
) -> BuiltLadder | str:
    """Compute a list from the facts, or return the reason why that fails.

    `lost` collects the rulesets whose rules returned no result, with the reason.
    """
    ruleset_id = parse_name(published.ladder).ruleset_id
    if ruleset_id in lost:
        return lost[ruleset_id]
    try:
        built = compute_ladder(Ladders(facts, published.as_of), published.ladder, rule_seconds)
    except (TimeLimitExceeded, WorkerLost) as error:
        lost[ruleset_id] = describe_lost_process(error)
        return lost[ruleset_id]
    except (UnknownLadder, RulesetUnusable) as problem:
        return str(problem)
    return built.message if isinstance(built, LadderFailure) else built


def _find_list_problem(connection: Connection, published: PublishedList) -> str | None:
    """Describe the error in a list's recorded rows, or return None."""
    try:
        ranking = load_published_list(connection, published)
    except StoreDamaged as problem:
        return str(problem)
    return None if ranking.digest == published.digest else "the digest does not match the rows"


def _describe_difference(published: PublishedList, built: BuiltLadder) -> str:
    if built.ruleset != published.ruleset:
        return f"the replay is ranked under {built.ruleset}, not {published.ruleset}"
    if len(built.rows) != published.row_count:
        return f"the replay has {count(len(built.rows), 'row')}, not {published.row_count:,}"
    if built.digest == published.digest:
        return f"the replay counts {count(built.games, 'game')}, not {published.games:,}"
    return f"the replay has the digest {built.digest}"
