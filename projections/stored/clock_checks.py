"""Compare the results of games with the games' clocks."""

import shlex
from collections.abc import Generator

from sqlalchemy import Connection

from ratings_ledger.ledger.store.log import head, read_matching_records
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.facts.applying import replay_clock_of
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.game_clock.state import settle_completely


def verify_clocks(connection: Connection, after: int = 0) -> Generator[Finding, None, None]:
    """Yield a finding for each contradiction between a game's result and its clock about the removal of a player.

    Only games with an event after the position `after` are checked.
    """
    until = head(connection).position
    if not read_matching_records(connection, until=until, type_name="clock.started"):
        return
    facts = decode(connection, until, cached=bool(after))
    for game_id, events in facts.recorded.clocks.items():
        clock, row = replay_clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE or row in facts.voided:
            continue
        if max(facts.live_position[row], *(event[0] for event in events)) <= after:
            continue
        surely_removed = {name for name, player_clock in clock.players.items() if player_clock.removed_at is not None}
        # the log of a clock may end before a removal that was still due
        settle_completely(clock)
        maybe_removed = {name for name, player_clock in clock.players.items() if player_clock.removed_at is not None}
        for slot in range(facts.start[row], facts.start[row] + facts.count[row]):
            names = {name for name in clock.players if _is_participant(facts, name, slot)}
            status = facts.status_of(slot)
            removed_names = maybe_removed if status == "removed" else surely_removed
            if names and (status == "removed") != bool(names & removed_names):
                removals = [instant for name in names if (instant := clock.players[name].removed_at) is not None]
                clock_note = f"removed them at {removals[0]} ms" if removals else "never removed them"
                yield Finding(
                    "clock",
                    facts.live_position[row],
                    f"{game_id}: {facts.name_of(slot)} is {status} in the result, but the game's clock {clock_note}; "
                    f"see: ratings clock show {shlex.quote(game_id)}",
                )


def _is_participant(facts: Facts, player: str, slot: int) -> bool:
    """Tell whether an id belongs to the participant in a slot."""
    number = facts.player_numbers.get(player)
    return number is not None and facts.person[number] == facts.person_of(slot)
