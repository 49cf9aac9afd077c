"""Ledgers in which more decides about a ladder than its own games: a pack has all of it."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from builders import build_game
from clusters import cluster_here, in_one_process, on_cluster, small_pieces
from histories import ruleset
from kind_games import battle
from ledgers import create_ledger
from time_ledgers import enter

from ratings_ledger import Ruleset, Snapshot
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.cluster import coordinating
from ratings_ledger.projections.cluster.simulating import simulate_on_cluster
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.rulesets.versions import read_shipped_texts
from ratings_ledger.projections.stored.computing import compute, plan

Event = dict[str, Any]
ELO = {"start": 1000, "k_per_pair": 8, "scale": 400, "rounding": "pair"}
TABLES = {"1": {"2": [3, 1]}, "2": {"2": [1, 3]}}
MARCH = "2010-03-01"


def rules(name: str, rule: str, by: list[str], params: Event, version: str = "1", **members: Any) -> Event:
    """A published ruleset for the game house."""
    data = {
        "id": name, "version": version, "effective_from": "1900-01-01" if version == "1" else MARCH, "rule": rule,
        "scope": {"game": ["house"]}, "partition": {"by": by}, "params": params, **members,
    }  # fmt: skip
    return {"type": "ruleset.published", "occurred_at": "2008-01-01T00:00:00Z", "data": data}


def monthly(by: list[str], version: str = "1", **members: Any) -> Event:
    """The rules of monthly lists, whose points the second version turns round."""
    params = {"min_games": 1, "score": "mean", "gold": [2, 1], "gold_ties": "by_place", "substitution": "none",
              "points": TABLES[version]}  # fmt: skip
    return rules("mo", "catan-points/1", by, params, version, **members)


def annual(by: list[str], **members: Any) -> Event:
    """The rules of lists that sum the monthly ones."""
    return rules("an", "annual-places/1", by, {"of": "mo", "months": 2, "missing": 9}, **members)


def house(name: str, day: str, players: str, **labels: str) -> Event:
    """A game of the players, the first of whom won."""
    return build_game(name, *players.split(), at=f"{day}T10:00:00Z", game="house", **labels)


def corrected(name: str, players: str) -> Event:
    """A game that others played."""
    data = {"game_id": name, "reason": "r", "game": house(name, "2010-01-01", players)["data"]}
    return {"type": "game.corrected", "occurred_at": "2011-01-01T00:00:00Z", "data": data}


def voided(name: str) -> Event:
    return {"type": "game.voided", "occurred_at": "2011-01-01T00:00:00Z", "data": {"game_id": name, "reason": "r"}}


def adjusted(ladder: str, player: str) -> Event:
    data = {"ladder": ladder, "player": player, "points": "5", "reason": "r"}
    return {"type": "points.adjusted", "occurred_at": "2010-06-01T00:00:00Z", "data": data}


def registered(player: str, account: str) -> Event:
    data = {"player": player, "account": account}
    return {"type": "player.registered", "occurred_at": "2009-01-01T00:00:00Z", "data": data}


LEAGUE = {"league": "L"}
CASES: dict[str, list[Event]] = {
    "an annual list sums lists whose version a game elsewhere decides": [
        monthly(["city", "league", "month"], freeze="league-start"),
        monthly(["city", "league", "month"], "2", freeze="league-start"), annual(["city", "league", "year"]),
        house("g1", "2010-01-05", "a b", city="berlin", **LEAGUE),
        house("g2", "2010-04-05", "x y", city="bonn", **LEAGUE),
    ],
    "an adjustment where a league has no games": [
        rules("lg", "pairwise-elo/1", ["city", "league"], ELO, freeze="league-start"),
        rules("lg", "pairwise-elo/1", ["city", "league"], {**ELO, "start": 2000}, "2", freeze="league-start"),
        house("g1", "2010-01-01", "a b", city="berlin", **LEAGUE), adjusted("lg/bonn/L", "z"),
    ],
    "battles in which nobody lost anything": [
        *({**one} for one in map(ruleset, read_shipped_texts()) if one["data"]["id"] == "youplay-bluemax"),
        *(
            {**battle(f"anna 1 0 0 {number}", "ben 1 0 0 0", league="L1"), "occurred_at": "2012-02-01T10:00:00Z"}
            for number in range(3)
        ),
    ],
}  # fmt: skip


def recorded(url: str, events: Sequence[Event]) -> Ledger:
    """A ledger with these events, each with an id of its own."""
    create_ledger(url)
    ledger = open_ledger(url)
    _enter(ledger, events)
    return ledger


def _enter(ledger: Ledger, events: Sequence[Event]) -> None:
    with ledger.reading() as connection:
        there = head(connection).position
    named = [{**event, "id": f"e{there + number}"} for number, event in enumerate(events)]
    for event in named:
        if event["data"].get("game_id") == "g":  # games of kinds all have one name
            event["data"] = {**event["data"], "game_id": event["id"]}
    assert not enter(ledger, named).rejected


@pytest.mark.slow_cases
@pytest.mark.parametrize("case", CASES)
def test_packs_have_all_that_decides(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ladders of small packs come out as those of one process."""
    ledger = recorded(str(tmp_path / "ratings.db"), CASES[case])
    small_pieces(monkeypatch, 4, pack=1)
    with ledger.reading() as connection:
        facts = decode(connection)
    with cluster_here(tmp_path / "objects") as cluster:
        assert on_cluster(ledger, cluster, facts.position) == in_one_process(facts) != {}


@pytest.mark.slow
def test_an_unsealed_end_may_be_the_same_behind_another_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not sealed was only a correction, and is so again behind more segments: nobody gets another's games."""
    ledger = recorded(str(tmp_path / "ratings.db"), [
        rules("elo", "pairwise-elo/1", [], ELO), house("g1", "2010-01-01", "a b"), house("g2", "2010-01-02", "c d"),
        house("g3", "2010-01-03", "a c"), corrected("g3", "p q"),
    ])  # fmt: skip
    small_pieces(monkeypatch, 4)
    more = [house(f"g{number}", f"2010-01-0{number}", "e f") for number in (4, 5, 6)]
    with cluster_here(tmp_path / "objects") as cluster:
        for part in ([], more):
            _enter(ledger, part)
            with ledger.reading() as connection:
                facts = decode(connection)
            assert on_cluster(ledger, cluster, facts.position) == in_one_process(facts)


@pytest.mark.slow
def test_stored_lists_without_games_of_their_own_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An annual list that lost its own game still sums the lists of its months."""
    events = [
        monthly(["city", "month"], scope={"game": ["house", "hut"]}), annual(["city", "year"], scope={"game": ["hut"]}),
        house("g1", "2010-01-05", "a b", city="berlin"), house("g2", "2010-01-05", "a b", city="berlin"), voided("g2"),
    ]  # fmt: skip
    events[3]["data"]["game"] = "hut"
    ledger, stored = recorded(str(tmp_path / "ratings.db"), events), ["an/berlin/2010"]
    small_pieces(monkeypatch, 4, pack=1)
    with ledger.reading() as connection:
        facts = decode(connection)
    ladders = Ladders(facts)
    with cluster_here(tmp_path / "objects") as cluster:
        prepared = coordinating.prepare_with_retries(ledger, cluster, facts.position)
        given = ["an"], stored, False, ()
        found = [*coordinating.compute_on_cluster(ledger, cluster, prepared, *given)]
    assert found == [*compute(ladders, plan(ladders, ["an"], stored), cores=1)]
    assert [len(one.rows) for one in found] == [2]  # type: ignore[union-attr]


def test_a_tried_ruleset_may_be_the_first_to_look_at_accounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts matter to a what-if although no ruleset that is recorded asks for them."""
    elo = rules("elo", "pairwise-elo/1", [], ELO)
    ledger = recorded(str(tmp_path / "ratings.db"), [
        elo, registered("a", "free"), house("g1", "2010-01-01", "a b"), house("g2", "2010-01-02", "b c"),
    ])  # fmt: skip
    scope = {"game": ["house"], "exclude_accounts": ["free"]}
    asked = [({}, Ruleset.model_validate({**elo["data"], "version": "2", "scope": scope}))]
    small_pieces(monkeypatch, 4)
    with cluster_here(tmp_path / "objects") as cluster:
        found = simulate_on_cluster(ledger, nullcontext(cluster), asked, (), None, None, lambda _: None)
    assert found == Snapshot(ledger).simulate(asked)
    assert found.variants[0].ladders[0].radius.leaving == ("a",)
