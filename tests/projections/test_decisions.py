"""What decisions made of everybody's points: random histories against the causes of each player, and their sums."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from ledgers import create_ledger
from oracle.log import named
from sqlalchemy import Connection
from time_histories import LADDERS, base_log, history
from time_ledgers import enter

from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.projections.diff.causes import attribute_difference
from ratings_ledger.projections.diff.decisions import find_decisions
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import Coordinates, UnknownLadder, load_times
from ratings_ledger.projections.queries.ladders_at import Ladders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

DECIDED = {name for name, one in TYPES.items() if one.decided}
# the ladders of these histories neither look at accounts and clubs nor have anybody who begins elsewhere
UNSEEN = {"player.account_changed", "player.seeded", "club.renamed"}
WANTED = ["decided", "games", "both", "comes", "goes", "many in one", *sorted(DECIDED - UNSEEN)]


def test_decisions_match_players_causes(tmp_path: Path, at_length: bool) -> None:
    """In random histories, decisions have the amounts that the causes of each player add up to.

    Given two positions, for every player on every ladder the amounts are those of `attribute`,
    added up by decision; and whoever has no share has no cause.
    """
    create_ledger(str(tmp_path / "template.db"))
    template = (tmp_path / "template.db").read_bytes()
    done: Counter[str] = Counter()
    # of so few histories these have decisions of every kind
    for seed in range(150) if at_length else range(7, 9):
        chance = Random(f"decisions {seed}")
        log = history(seed, chance.randint(20, 70))
        path = tmp_path / "ratings.db"
        path.write_bytes(template)
        ledger = open_ledger(str(path))
        assert enter(ledger, log).appended == len(log)
        before, after = sorted(chance.sample(range(len(base_log(0)), len(log) + 1), 2))
        _check(ledger, before, after, sorted(set().union(*map(named, log))), done)
        ledger.engine.dispose()
    assert [name for name in WANTED if not done[name]] == []


def _check(ledger: Ledger, before: int, after: int, names: list[str], done: Counter[str]) -> None:
    with ledger.reading() as connection:
        found = find_decisions(connection, before, after, load_times(connection))
        people = read_identities(connection, after)
        number = {position: n for n, one in enumerate(found.decisions) for position in one.positions}
        skipped: set[str] = set()
        shares = {(share.ladder, share.player): share for share in found.shares}
        for ladder in dict.fromkeys(LADDERS):
            if ladder in found.failures or not _listed(connection, ladder, before, after):
                skipped.add(ladder)
                continue
            for player in sorted({people.current(name) for name in names}):
                ends = (Coordinates(None, position, None) for position in (before, after))
                try:
                    causes = attribute_difference(connection, ladder, player, *ends)
                except UnknownLadder:
                    assert (ladder, player) not in shares
                    continue
                amounts: Counter[int | None] = Counter()
                for cause in causes.causes:
                    amounts[number.get(cause.position or 0)] += cause.amount
                wanted = {cause: amount for cause, amount in amounts.items() if amount}
                share = shares.pop((ladder, player), None)
                assert (share.amounts if share else {}) == wanted, (ladder, player)
                if share is not None:
                    assert (share.start, share.before, share.after) == (causes.start, causes.before, causes.after)
                    assert sum(share.amounts.values(), Fraction(0)) == share.change
                    done.update(["comes"] * (share.before is None) + ["goes"] * (share.after is None))
                    done.update(["both"] * (None in wanted and len(wanted) > 1))
    assert {ladder for ladder, _ in shares} & {*LADDERS} <= skipped
    for share in found.shares:
        assert sum(share.amounts.values(), Fraction(0)) == share.change
    done.update(one.type for one in found.decisions)
    done.update({"decided": len(found.decisions), "games": found.games})
    done.update("many in one" for one in found.decisions if len(one.positions) > 1)


def _listed(connection: Connection, ladder: str, before: int, after: int) -> bool:
    """Whether a ladder is told by all that look at every ladder: one of a year is not while no version is in force."""
    ruleset_id = ladder.partition("/")[0]
    if ruleset_id != "catan-annual":
        return True
    for position in range(before, after + 1):
        facts = decode(connection, position)
        if ruleset_id in facts.rulesets and ladder not in Ladders(facts).streams(ruleset_id):
            return False
    return True
