"""`verify` for the projections: stored standings against a replay at the position that they name."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Connection, Row

from ledger.games import STATUSES
from ledger.integrity import Finding
from ledger.rejections import shown
from ledger.store import chain_hash_at, head, read_where
from projections import history
from projections.building import Built, Failure, built, built_with_changes, compute, is_named, plan, stored_row
from projections.decoding import clock_of, decode
from projections.facts import NONE, Facts
from projections.game_clock.state import run_out
from projections.generations import ladders_of, live, pointer_findings, stored_rows
from projections.standings import Ladders


def verify_clocks(connection: Connection) -> Generator[Finding, None, None]:
    """Results that say of a player's removal something else than the clock of the game."""
    until = head(connection).position
    if not read_where(connection, until=until, type_name="clock.started"):
        return
    facts = decode(connection, until, cached=False)
    for game_id in facts.recorded.clocks:
        clock, row = clock_of(facts, game_id), facts.rows.get(game_id, NONE)
        if clock is None or row == NONE or row in facts.voided:
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


def verify_standings(connection: Connection, kept: Row[Any] | None = None) -> Generator[Finding, None, int]:
    """Ladders of the live generation, or of a kept one, that a replay does not confirm; none before the first rebuild.
    Gives how many there are.

    Those that were built at another position than the generation's are replayed there.
    """
    generation = kept or live(connection)
    for message in pointer_findings(connection) if kept is None else ():
        yield Finding("standings", None, message)
    if generation is None:
        return 0
    parts = history.parts_of(connection, generation.generation) if _has_history(connection, generation) else None
    differing, unseen = list[Finding](), set[str]()
    if wrong := _why_unreadable(generation, ladders_of(connection, generation.generation)):
        yield Finding("standings", None, wrong)
        return 0
    stored = {row.ladder: row for row in ladders_of(connection, generation.generation)}
    told: set[str] = set()
    for position in sorted({generation.position, *(row.position for row in stored.values())}, reverse=True):
        here = {name: row for name, row in stored.items() if row.position == position}
        named = {bytes(row.chain_hash) for row in here.values()}
        named |= {bytes(generation.chain_hash)} if position == generation.position else set()
        if named != {chain_hash_at(connection, position)}:
            yield Finding("standings", position, "the live generation was computed from another history")
            unseen |= {*here, *([history.GAMES] if position == generation.position else [])}
            continue
        ladders = Ladders(decode(connection, position, cached=False))
        planned = plan(ladders) if position == generation.position else plan(ladders, here, stored=here)
        found: list[Finding] = []
        one = built if parts is None else built_with_changes
        with closing(compute(ladders, planned, one, changes=parts is not None)) as results:
            for result in results:
                if isinstance(result, Failure):
                    here = {name: row for name, row in here.items() if not is_named(name, [result.ladder])}
                    if result.ladder not in told:
                        found.append(Finding("rule", result.position, f"{result.ladder}: {result.message}"))
                    told.add(result.ladder)
                elif result.ladder in here:
                    found += _differing(connection, here[result.ladder], result)
                    if parts is not None:
                        own, older = parts.pop(result.ladder, []), here[result.ladder].position < generation.position
                        differing += [] if older and not own else _of(history.differing(connection, own, result))
                    del here[result.ladder]
                elif result.ladder not in stored:
                    found.append(Finding("standings", None, f"{result.ladder} is missing in the stored generation"))
        found += [Finding("standings", None, f"{name} is missing in a replay") for name in here]
        if parts is not None and position == generation.position:
            differing += _of(history.games_differing(connection, parts.pop(history.GAMES, []), ladders.facts))
        yield from sorted(found, key=lambda finding: (finding.position or 0, finding.message))
    differing += [Finding("standings", None, f"{name}: there are stored changes of it that no replay has")
                  for name in parts or () if name not in unseen and not is_named(name, told)]  # fmt: skip
    if differing and not _has_history(connection, generation):
        # it is kept for the live generation alone, and meanwhile that became another one
        return (yield from verify_standings(connection))
    yield from sorted(differing, key=lambda finding: finding.message)
    return len(stored)


def _has_history(connection: Connection, generation: Row[Any]) -> bool:
    """Whether a generation is the live one, and its changes and games are kept."""
    now = live(connection)
    return now is not None and generation.generation == now.generation == history.pointer(connection)


def _of(message: str | None) -> list[Finding]:
    return [] if message is None else [Finding("standings", None, message)]


def _why_unreadable(generation: Row[Any], ladders: Sequence[Row[Any]]) -> str | None:
    """What in the rows of a generation is of another type than it is written, or None."""
    for row in (generation, *ladders):
        what = f"generation {generation.generation}" if row is generation else shown(str(row.ladder))
        for name, value in row._mapping.items():
            wanted: Any = bytes if name == "chain_hash" else str if name in ("ladder", "ruleset", "digest") else int
            value = bytes(value) if isinstance(value, memoryview) else value
            if not isinstance(value, wanted) or (wanted is int and not -1 <= value < 2**62):
                return f"{what}: {name} is stored as {shown(str(value)[:40])}"
    return None


def _differing(connection: Connection, stored: Row[Any], replayed: Built) -> Iterator[Finding]:
    """That the stored rows of a ladder are not those of a replay, or what is said of them is something else."""
    try:
        rows = stored_rows(connection, stored.build, stored.ladder)
    except (ValueError, TypeError) as error:
        yield Finding("standings", None, f"{stored.ladder}: the stored standings cannot be read: {shown(str(error))}")
        return
    if stored.digest != replayed.digest or [stored_row(row) for row in rows] != replayed.rows:
        yield Finding("standings", None, f"{stored.ladder}: the stored standings differ from a replay")
    said = {"ruleset": replayed.ruleset, "scale": replayed.scale, "games": replayed.games, "players": len(rows)}
    for name, value in said.items():
        if getattr(stored, name) != value:
            told = f"{stored.ladder}: {name} is stored as {shown(getattr(stored, name))}, a replay has {shown(value)}"
            yield Finding("standings", None, told)
