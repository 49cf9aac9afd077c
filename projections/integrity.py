"""`verify` for the projections: stored standings against a replay at the position that they name."""

from collections.abc import Iterator

from sqlalchemy import Connection

from ledger.integrity import Finding
from ledger.store import chain_hash_at
from projections.decoding import decode
from projections.generations import compute, ladders_of, live, stored_rows
from projections.standings import Standings


def verify_standings(connection: Connection) -> Iterator[Finding]:
    """Ladders of the live generation that a replay does not confirm; none before the first rebuild."""
    generation = live(connection)
    if generation is None:
        return
    if chain_hash_at(connection, generation.position) != bytes(generation.chain_hash):
        yield Finding("standings", generation.position, "the live generation was computed from another history")
        return
    stored = {row.ladder: row for row in ladders_of(connection, generation.generation)}
    replayed: dict[str, Standings] = {}
    failed: set[str] = set()
    for result in compute(decode(connection, generation.position)):
        if isinstance(result, Standings):
            replayed[result.ladder] = result
        else:
            failed |= {result.ladder} | {ladder for ladder in stored if ladder.startswith(f"{result.ladder}/")}
            yield Finding("rule", result.position, f"{result.ladder}: {result.message}")
    for ladder in sorted((stored.keys() | replayed.keys()) - failed):
        if ladder not in stored or ladder not in replayed:
            where = "a replay" if ladder in stored else "the stored generation"
            yield Finding("standings", None, f"{ladder} is missing in {where}")
        elif stored[ladder].build == generation.generation:
            rows = stored_rows(connection, stored[ladder].build, ladder)
            if stored[ladder].digest != replayed[ladder].digest or rows != replayed[ladder].rows:
                yield Finding("standings", None, f"{ladder}: the stored standings differ from a replay")
