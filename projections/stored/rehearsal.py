"""Rehearsing a backup: whether a restored ledger has the same ladders as the ledger it is a backup of."""

from collections.abc import Generator
from contextlib import closing

from ledger.store.exports import Place
from ledger.store.log import chain_hash_at
from ledger.store.opening import Ledger
from ledger.verification import Finding
from projections.facts.decoding import decode
from projections.queries.standings import Ladders
from projections.stored.computing import LadderFailure, compute, plan


def ladder_differences(restored: Ledger, live: Ledger, place: Place) -> Generator[Finding, None, int]:
    """Ladders whose digests differ at a head between a restored ledger and the live one; both are replayed.

    Returns how many ladders there are. Raises `StoreDamaged`, `WorkerLost`.
    """
    with live.reading() as connection:
        if chain_hash_at(connection, place.position) != place.chain_hash:
            yield Finding("head", place.position, f"{live.location} does not contain the history of this backup")
            return 0
    expected, found = _digests(live, place.position), _digests(restored, place.position)
    for ladder in sorted(expected.keys() | found.keys()):
        there, here = expected.get(ladder), found.get(ladder)
        for failure in {one for one in (there, here) if isinstance(one, LadderFailure)}:
            yield Finding("rule", failure.position, f"{failure.ladder}: {failure.message}")
        if there != here and not isinstance(there, LadderFailure) and not isinstance(here, LadderFailure):
            yield Finding("standings", place.position, f"{ladder}: the backup gives other standings than the ledger")
    return len(found)


def _digests(ledger: Ledger, position: int) -> dict[str, str | LadderFailure]:
    """The digest of each ladder at a position, or why it cannot be replayed."""
    with ledger.reading() as connection:
        ladders = Ladders(decode(connection, position, cached=False))
    with closing(compute(ladders, plan(ladders))) as results:
        return {one.ladder: one if isinstance(one, LadderFailure) else one.digest for one in results}
