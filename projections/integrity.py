"""`verify` for the projections: stored standings against a replay at the position that they name."""

from collections.abc import Iterator

from sqlalchemy import Connection

from ledger.games import STATUSES
from ledger.integrity import Finding
from ledger.store import chain_hash_at, head, read_where
from projections.decoding import clock_of, decode
from projections.facts import NONE, VOIDED, Facts
from projections.game_clock.state import run_out
from projections.generations import compute, ladders_of, live, stored_rows
from projections.standings import Standings


def verify_clocks(connection: Connection) -> Iterator[Finding]:
    """Results that say of a player's removal something else than the clock of the game."""
    until = head(connection).position
    if not read_where(connection, until=until, type_name="clock.started"):
        return
    facts = decode(connection, until)
    for game_id in facts.recorded.clocks:
        clock, row = clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE or facts.flags[row] & VOIDED:
            continue
        sure = {name for name, one in clock.players.items() if one.removed_at is not None}
        # a log may end with what is due: the server had no more to say
        run_out(clock)
        possible = {name for name, one in clock.players.items() if one.removed_at is not None}
        for p in range(facts.start[row], facts.start[row] + facts.count[row]):
            names = {name for name in clock.players if _is(facts, name, p)}
            removed = STATUSES[facts.status[p]] == "removed"
            if names and removed != bool(names & (possible if removed else sure)):
                told = "removed, by its clock he was not" if removed else "not removed, by its clock he was"
                yield Finding("clock", facts.live_position[row], f"{game_id}: {facts.name_of(p)} is {told}")


def _is(facts: Facts, player: str, participant: int) -> bool:
    """Whether an id is that of a participant."""
    number = facts.player_numbers.get(player)
    return number is not None and facts.person[number] == facts.person_of(participant)


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
