"""The effects of decisions on all players: random histories against the causes of each player."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from histories import attribute_change, enter, load_ladders
from ledgers import create_ledger
from oracle.log import list_named_players
from sqlalchemy import Connection
from time_histories import LADDERS, build_base_log, draw_history

import ratings_ledger as rl
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.validation.identities import read_identities

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

DECIDED = {name for name, event_type in TYPES.items() if event_type.decided}
# the ladders of these histories read no accounts and clubs, and have no seeds
UNREAD_TYPES = {"player.account_changed", "player.seeded", "club.renamed"}
REQUIRED_CASES = ["decided", "games", "both", "comes", "goes", "many in one", *sorted(DECIDED - UNREAD_TYPES)]


def test_decisions_match_players_causes(tmp_path: Path, at_length: bool) -> None:
    """In random histories, the shares of decisions equal the sums of each player's causes.

    For two positions, and every player on every ladder, the shares are the amounts of `attribute` summed by decision; a
    player without a share has no cause.
    """
    create_ledger(str(tmp_path / "template.db"))
    template = (tmp_path / "template.db").read_bytes()
    case_counts: Counter[str] = Counter()
    # these few histories have decisions of every kind
    for seed in range(150) if at_length else range(7, 9):
        chance = Random(f"decisions {seed}")
        log = draw_history(seed, chance.randint(20, 70))
        path = tmp_path / "ratings.db"
        path.write_bytes(template)
        ledger = open_ledger(str(path))
        assert enter(ledger, log).appended == len(log)
        before, after = sorted(chance.sample(range(len(build_base_log(0)), len(log) + 1), 2))
        _check_shares(ledger, before, after, sorted(set().union(*map(list_named_players, log))), case_counts)
        ledger.engine.dispose()
    assert [name for name in REQUIRED_CASES if not case_counts[name]] == []


def _check_shares(ledger: Ledger, before: int, after: int, names: list[str], case_counts: Counter[str]) -> None:
    with rl.open(ledger.location) as opened:
        answer = opened.at(known_at=after).decisions(before)
    with ledger.reading() as connection:
        identities = read_identities(connection, after)
        number = {position: n for n, decision in enumerate(answer.decisions) for position in decision.positions}
        skipped: set[str] = set()
        shares = {(share.ladder, share.player): share for share in answer.shares}
        for ladder in dict.fromkeys(LADDERS):
            if ladder in answer.failures or not _is_listed(connection, ladder, before, after):
                skipped.add(ladder)
                continue
            for player in sorted({identities.current(name) for name in names}):
                ends = ((None, position, None) for position in (before, after))
                try:
                    causes = attribute_change(connection, ladder, player, *ends)
                except rl.BadArgument:
                    assert (ladder, player) not in shares
                    continue
                amounts: Counter[int | None] = Counter()
                for cause in causes.causes:
                    amounts[number.get(cause.position or 0)] += cause.amount
                expected = {cause: amount for cause, amount in amounts.items() if amount}
                share = shares.pop((ladder, player), None)
                assert (share.amounts if share else {}) == expected, (ladder, player)
                if share is not None:
                    assert (share.start, share.before, share.after) == (causes.start, causes.before, causes.after)
                    assert sum(share.amounts.values(), Fraction(0)) == share.change
                    case_counts.update(["comes"] * (share.before is None) + ["goes"] * (share.after is None))
                    case_counts.update(["both"] * (None in expected and len(expected) > 1))
    assert {ladder for ladder, _ in shares} & {*LADDERS} <= skipped
    for share in answer.shares:
        assert sum(share.amounts.values(), Fraction(0)) == share.change
    case_counts.update(decision.type for decision in answer.decisions)
    case_counts.update({"decided": len(answer.decisions), "games": answer.games})
    case_counts.update("many in one" for decision in answer.decisions if len(decision.positions) > 1)


def _is_listed(connection: Connection, ladder: str, before: int, after: int) -> bool:
    """Tell whether a ladder is always listed; an annual list is not while no version is in force."""
    ruleset_id = ladder.partition("/")[0]
    if ruleset_id != "catan-annual":
        return True
    for position in range(before, after + 1):
        ladders = load_ladders(connection, known_at=position)
        if ruleset_id in ladders.facts.rulesets and ladder not in ladders.streams(ruleset_id):
            return False
    return True
