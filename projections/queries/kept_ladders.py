"""The ladders of a ledger at the positions that were asked for last: another question there decodes nothing again."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from sqlalchemy import Connection

from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.log import chain_hash_at, head
from ratings_ledger.projections.facts.checked_columns import Damaged, Unreadable
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, follow_log
from ratings_ledger.projections.queries.standings import Ladders

POSITIONS_KEPT, VERSIONS_KEPT = 3, 8
FOLLOWED_EVENTS = 1_000  # after so many more events everything is decoded anew

Decode = Callable[..., Facts]


class KeptLadders:
    """All ladders at a few positions, by their chain hashes. Threads may share it."""

    def __init__(self, decode: Decode = decode) -> None:
        self._decode = decode
        self._lazily = True
        self._lock = Lock()
        self._kept: dict[tuple[int, bytes], dict[str | None, Ladders]] = {}

    def at(self, connection: Connection, position: int, rules: str | None = None) -> Ladders:
        """The ladders as known at a position, with one ruleset under the version `rules`.

        What is read from their facts may raise `Damaged`: see `forget`. Raises `StoreDamaged`.
        """
        known = None
        if self._kept:
            with self._lock:
                found = self._kept.get((position, chain_hash_at(connection, position) or ZERO), {})
                known = next(iter(found.values()), None)
        earlier = self._find_earlier(connection, position) if known is None and self._kept else None
        if known is not None:
            facts = known.facts
        elif earlier is not None:
            facts = follow_log(earlier.facts, connection, position)
        else:
            facts = self._decode(connection, position, lazily=self._lazily)
        key = position, facts.chain_hash
        with self._lock:
            if known is None and self._kept:
                last = next(reversed(self._kept.values()))
                facts.take_ranks(next(iter(last.values())).facts)
            there = self._kept[key] = self._kept.pop(key, {})  # the last are those that were asked for last
            while len(self._kept) > POSITIONS_KEPT:
                del self._kept[next(iter(self._kept))]
            if len(there) >= VERSIONS_KEPT:
                del there[next(iter(there))]
            if rules not in there:
                there[rules] = Ladders(facts, None, rules)
                if earlier is not None and rules is None:
                    there[rules].follow(earlier)
                    there[rules].decoded_at = earlier.decoded_at
            return there[rules]

    def _find_earlier(self, connection: Connection, position: int) -> Ladders | None:
        """Return the ladders at the last earlier position, if the log only went on a little since; else None."""
        with self._lock:
            before = [(at, chain_hash, every.get(None)) for (at, chain_hash), every in self._kept.items()]
        for at, chain_hash, ladders in sorted(before, key=lambda entry: entry[0], reverse=True):
            if ladders is not None and at < position <= ladders.decoded_at + FOLLOWED_EVENTS:
                return ladders if chain_hash_at(connection, at) == chain_hash else None
        return None

    def checked(self, connection: Connection, position: int, rules: str | None = None) -> Ladders:
        """The same; everything in the files that their facts come from is checked."""
        found = self.at(connection, position, rules)
        try:
            found.facts.check()
        except (Damaged, Unreadable) as problem:
            self.forget(problem)
            return self.at(connection, position, rules)
        return found

    def newest(self, connection: Connection) -> Ladders:
        """The same at the head of the log."""
        return self.checked(connection, head(connection).position)

    def forget(self, problem: Damaged | Unreadable) -> None:
        """Delete what is damaged, and decode again when somebody asks next; from now on everything is checked first,
        and what cannot be read is done without."""
        if isinstance(problem, Damaged):
            problem.discard()
        with self._lock:
            self._lazily = False
            self._kept.clear()
