"""Ladders that depend on more than their own games: their packs have everything that they depend on."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import build_game
from clusters import open_local_cluster, rank_in_one_process, rank_on_cluster, shrink_pieces, use_local_cluster
from fault_helpers import read_stored_rows
from histories import build_ruleset_event, enter
from kind_games import build_battle
from ledgers import create_ledger
from own_rules import find_shipped_text

from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

Event = dict[str, Any]
Ratings = Callable[..., Any]
ELO = {"start": 1000, "k_per_pair": 8, "scale": 400, "rounding": "pair"}
TABLES = {"1": {"2": [3, 1]}, "2": {"2": [1, 3]}}
MARCH = "2010-03-01"


def build_ruleset(name: str, rule: str, by: list[str], params: Event, version: str = "1", **members: Any) -> Event:
    """Return a published ruleset for the game house."""
    data = {
        "id": name, "version": version, "effective_from": "1900-01-01" if version == "1" else MARCH, "rule": rule,
        "scope": {"game": ["house"]}, "partition": {"by": by}, "params": params, **members,
    }  # fmt: skip
    return {"type": "ruleset.published", "occurred_at": "2008-01-01T00:00:00Z", "data": data}


def build_monthly(by: list[str], version: str = "1", **members: Any) -> Event:
    """Return the ruleset of monthly lists; its second version reverses the points."""
    params = {"min_games": 1, "score": "mean", "gold": [2, 1], "gold_ties": "by_place", "substitution": "none",
              "points": TABLES[version]}  # fmt: skip
    return build_ruleset("mo", "catan-points/1", by, params, version, **members)


def build_annual(by: list[str], **members: Any) -> Event:
    """Return the ruleset of lists that sum the monthly ones."""
    return build_ruleset("an", "annual-places/1", by, {"of": "mo", "months": 2, "missing": 9}, **members)


def build_house_game(name: str, day: str, players: str, **labels: str) -> Event:
    """Return a game; its first player wins."""
    return build_game(name, *players.split(), at=f"{day}T10:00:00Z", game="house", **labels)


def build_correction(name: str, players: str) -> Event:
    """Return a correction of a game to other players."""
    data = {"game_id": name, "reason": "r", "game": build_house_game(name, "2010-01-01", players)["data"]}
    return {"type": "game.corrected", "occurred_at": "2011-01-01T00:00:00Z", "data": data}


def build_void(name: str) -> Event:
    """Return the void of a game."""
    return {"type": "game.voided", "occurred_at": "2011-01-01T00:00:00Z", "data": {"game_id": name, "reason": "r"}}


def build_adjustment(ladder: str, player: str) -> Event:
    """Return an adjustment of 5 points."""
    data = {"ladder": ladder, "player": player, "points": "5", "reason": "r"}
    return {"type": "points.adjusted", "occurred_at": "2010-06-01T00:00:00Z", "data": data}


def build_registration(player: str, account: str) -> Event:
    """Return the registration of a player with an account."""
    data = {"player": player, "account": account}
    return {"type": "player.registered", "occurred_at": "2009-01-01T00:00:00Z", "data": data}


LEAGUE = {"league": "L"}
CASES: dict[str, list[Event]] = {
    "a game elsewhere decides the version of the lists that an annual list sums": [
        build_monthly(["city", "league", "month"], freeze="league-start"),
        build_monthly(["city", "league", "month"], "2", freeze="league-start"),
        build_annual(["city", "league", "year"]),
        build_house_game("g1", "2010-01-05", "a b", city="berlin", **LEAGUE),
        build_house_game("g2", "2010-04-05", "x y", city="bonn", **LEAGUE),
    ],
    "an adjustment where a league has no games": [
        build_ruleset("lg", "pairwise-elo/1", ["city", "league"], ELO, freeze="league-start"),
        build_ruleset("lg", "pairwise-elo/1", ["city", "league"], {**ELO, "start": 2000}, "2", freeze="league-start"),
        build_house_game("g1", "2010-01-01", "a b", city="berlin", **LEAGUE), build_adjustment("lg/bonn/L", "z"),
    ],
    "battles without losses": [
        build_ruleset_event(find_shipped_text("youplay-bluemax")),
        *(
            {**build_battle(f"anna 1 0 0 {number}", "ben 1 0 0 0", league="L1"), "occurred_at": "2012-02-01T10:00:00Z"}
            for number in range(3)
        ),
    ],
}  # fmt: skip


def make_ledger(url: str, events: Sequence[Event]) -> Ledger:
    """Return a ledger with these events, each with an id of its own."""
    create_ledger(url)
    ledger = open_ledger(url)
    _enter(ledger, events)
    return ledger


def _enter(ledger: Ledger, events: Sequence[Event]) -> None:
    with ledger.reading() as connection:
        head_position = head(connection).position
    events_with_ids = [{**event, "id": f"e{head_position + number}"} for number, event in enumerate(events)]
    for event in events_with_ids:
        if event["data"].get("game_id") == "g":  # games of kinds all have one name
            event["data"] = {**event["data"], "game_id": event["id"]}
    assert not enter(ledger, events_with_ids).rejected


@pytest.mark.slow_cases
@pytest.mark.parametrize("case", CASES)
def test_packs_have_all_that_decides_their_ladders(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ladders of small packs equal those of one process."""
    ledger = make_ledger(str(tmp_path / "ratings.db"), CASES[case])
    shrink_pieces(monkeypatch, 4, pack=1)
    with open_local_cluster(tmp_path / "objects") as cluster:
        assert rank_on_cluster(ledger, cluster) == rank_in_one_process(ledger) != {}


@pytest.mark.slow
def test_equal_unsealed_end_after_another_history_gives_right_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the unsealed end is only a correction, before and after further segments, each history gets its own games."""
    ledger = make_ledger(str(tmp_path / "ratings.db"), [
        build_ruleset("elo", "pairwise-elo/1", [], ELO), build_house_game("g1", "2010-01-01", "a b"),
        build_house_game("g2", "2010-01-02", "c d"),
        build_house_game("g3", "2010-01-03", "a c"), build_correction("g3", "p q"),
    ])  # fmt: skip
    shrink_pieces(monkeypatch, 4)
    later_games = [build_house_game(f"g{number}", f"2010-01-0{number}", "e f") for number in (4, 5, 6)]
    with open_local_cluster(tmp_path / "objects") as cluster:
        for part in ([], later_games):
            _enter(ledger, part)
            assert rank_on_cluster(ledger, cluster) == rank_in_one_process(ledger)


@pytest.mark.slow
def test_annual_list_without_own_games_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratings: Ratings
) -> None:
    """An annual list that lost its own game still sums the lists of its months."""
    events = [
        build_monthly(["city", "month"], scope={"game": ["house", "hut"]}),
        build_annual(["city", "year"], scope={"game": ["hut"]}),
        build_house_game("g1", "2010-01-05", "a b", city="berlin"),
        build_house_game("g2", "2010-01-05", "a b", city="berlin"),
    ]
    events[3]["data"]["game"] = "hut"
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    ledger = make_ledger(url, events)
    assert ratings("rebuild", db=url).exit_code == 0
    _enter(ledger, [build_void("g2")])
    shrink_pieces(monkeypatch, 4, pack=1)
    with use_local_cluster(tmp_path / "objects"):
        assert ratings("rebuild", "an", "--on", "processes:1", db=url).exit_code == 0
    assert [path.name for path in (tmp_path / "objects").glob("segment-0-4-*")] != []
    cluster_rows = read_stored_rows(url)
    assert ratings("rebuild", "an", db=url).exit_code == 0
    assert read_stored_rows(url) == cluster_rows
    assert len([row for row in cluster_rows if row[0] == "an/berlin/2010"]) == 2


def test_simulated_ruleset_may_be_the_first_to_read_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratings: Ratings
) -> None:
    """A simulated ruleset can exclude accounts even if no recorded ruleset reads them."""
    elo = build_ruleset("elo", "pairwise-elo/1", [], ELO)
    url, path = str(tmp_path / "ratings.db"), tmp_path / "elo-2.json"
    make_ledger(url, [
        elo, build_registration("a", "free"),
        build_house_game("g1", "2010-01-01", "a b"), build_house_game("g2", "2010-01-02", "b c"),
    ])  # fmt: skip
    scope = {"game": ["house"], "exclude_accounts": ["free"]}
    path.write_text(json.dumps({**elo["data"], "version": "2", "scope": scope}))
    simulate = "whatif", path, "--format", "json"
    shrink_pieces(monkeypatch, 4)
    with use_local_cluster(tmp_path / "objects"):
        cluster_result = ratings(*simulate, "--on", "processes:1", db=url)
    assert cluster_result == ratings(*simulate, db=url)
    (variant,) = json.loads(cluster_result.stdout)["variants"]
    assert variant["ladders"][0]["leaving"] == ["a"]
