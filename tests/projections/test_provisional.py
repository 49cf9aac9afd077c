"""Provisional ratings: a seed's games elsewhere count for every mark; and seeds under several versions."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import load_ladders
from paths import set_paths
from thresholds import set_thresholds

import ratings_ledger as rl
from tests import own_rules
from tests.builders import build_draft, build_event, build_game_draft
from tests.ledgers import append_drafts, create_ledger, open_for_reading
from tests.projections.state_rules import BY_GAME

Ratings = Callable[..., Any]
LADDER = "club-elo-chess/all"


@pytest.fixture
def db(ratings: Ratings, store: str) -> str:
    """Return a ledger where ratings are provisional for ten games; anna played seven elsewhere, then four with ben."""
    assert ratings("init", "--for", "chess", "--system", "club-elo", "--zone", "UTC", db=store).exit_code == 0
    seeded = build_event("player.seeded", ladder=LADDER, player="anna", state={"rating": "1700"}, games=7)
    games = (build_game_draft(f"g{n}", "anna", "ben", at=f"2024-01-0{n}T13:00:00Z", game="chess") for n in range(1, 5))
    append_drafts(store, build_draft(seeded), *games)
    return store


def read_csv(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV text."""
    return [*csv.DictReader(io.StringIO(text))]


def test_games_elsewhere_count_in_every_output(ratings: Ratings, db: str) -> None:
    """After the third game, the tenth with those elsewhere, anna's rating is no longer provisional in any output."""
    with rl.open(db) as ledger:
        for games, expected in enumerate([True, True, False, False], 1):
            view = ledger.at(as_of=f"2024-01-0{games}")
            rows = {row.player: row.provisional for row in view.standings(LADDER).rows}
            assert rows == {"anna": expected, "ben": True}
            overview = view.overview(LADDER).rows
            assert {row.player: row.provisional for row in overview} == rows
            profile = view.profile(LADDER, "anna")
            assert profile.standing is not None
            assert profile.standing.provisional is expected
        history = ledger.at().history(LADDER, "anna")
    assert [row.provisional for row in history.rows] == [True, True, False, False]
    data = json.loads(ratings("history", "anna", LADDER, "--format", "json", db=db).stdout)
    assert [row["provisional"] for row in data["rows"]] == [True, True, False, False]
    rows_of_csv = read_csv(ratings("history", "anna", LADDER, "--format", "csv", db=db).stdout)
    assert [row["provisional"] for row in rows_of_csv] == ["True", "True", "False", "False"]
    assert [row["rating"] for row in rows_of_csv] == [str(round(float(row["after"]))) for row in rows_of_csv]
    text = ratings("history", "anna", LADDER, db=db).stdout
    assert [line.split()[6][-1] == "?" for line in text.splitlines()[3:]] == [True, True, False, False]
    rows_of_csv = read_csv(ratings("standings", LADDER, "--format", "csv", db=db).stdout)
    assert {row["player"]: row["provisional"] for row in rows_of_csv} == {"anna": "False", "ben": "True"}
    exported = ratings("export", "standings", LADDER, db=db)
    assert {row["player"]: row["provisional"] for row in json.loads(exported.stdout)["rows"]} == {
        "anna": False,
        "ben": True,
    }


def test_cached_traces_count_games_elsewhere(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached trace that is continued counts a seed's games, for the mark and for the K of the next game."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    set_thresholds(monkeypatch, traced_games=1, games_per_replayed_game=0)
    load_ladders(db).trace(LADDER)
    assert [*tmp_path.rglob("traces/*")]
    for number in range(5, 8):
        append_drafts(
            db, build_game_draft(f"g{number}", "ben", "anna", at=f"2024-01-0{number}T12:00:00Z", game="chess")
        )
        with open_for_reading(db) as connection:
            cached, whole = load_ladders(connection), load_ladders(connection, cached=False)
            marks = []
            for ladders in (cached, whole):
                ranking, _ = ladders.rank(ladders.trace(LADDER))
                assert ranking.visible_states is not None
                marks.append({row.player: ranking.visible_states.of(row.player).provisional for row in ranking.rows})
            assert [*cached.trace(LADDER).join_parts().gaps.column("games_before")] == [
                *whole.trace(LADDER).gaps.column("games_before")
            ]
            assert cached.trace(LADDER).join_parts().has_same_results(whole.trace(LADDER))
            assert marks[0] == marks[1] == {"anna": False, "ben": True}


def test_player_with_only_an_adjustment_is_provisional(ratings: Ratings, store: str) -> None:
    """A player with an adjustment and no games has a rating with its deviation, and is provisional."""
    assert ratings("init", "--for", "chess", "--system", "glicko", "--zone", "UTC", db=store).exit_code == 0
    adjusted = build_event("points.adjusted", ladder="glicko-chess/all", player="anna", points="50", reason="x")
    append_drafts(store, build_draft(adjusted))
    with rl.open(store) as ledger:
        (row,) = ledger.at().standings("glicko-chess/all").rows
        (change,) = ledger.at().history("glicko-chess/all", "anna").rows
    assert row.rating == "1550 ± 350?"
    assert (change.state, change.provisional) == (row.state, True)


TEXT = """
id = "own-k"
version = "{0}"
rule = "own-k/1"
effective_from = {1}
scope = {{game = ["chess"], kind = ["placing"], players_min = 2}}
params = {{start = {2}, k = {3}}}
"""


@pytest.fixture
def versions_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a ledger with two versions of a ruleset; the second gives new players another rating and K."""
    own_rules.substitute_rule(monkeypatch, BY_GAME._replace(enter=None))
    name = create_ledger(f"sqlite:///{tmp_path}/versions.db")
    for version in (("1", "1900-01-01", 1500, 40), ("2", "2020-01-01", 1000, 20)):
        own_rules.publish_without_trial(name, TEXT.format(*version))
    return name


def test_seed_begins_under_the_version_in_force(versions_ledger: str) -> None:
    """Numbers missing in a seed come from the version under which the player joins; given numbers are the same under
    all.
    """
    seeds = {"anna": {"rating": "1700"}, "ben": {"k": "33"}, "cleo": {"rating": "1700"}, "dora": {"k": "33"}}
    append_drafts(
        versions_ledger,
        *(
            build_draft(build_event("player.seeded", ladder="own-k", player=name, state=state))
            for name, state in seeds.items()
        ),
        build_game_draft("g1", "anna", "ben", at="2019-12-31T12:00:00Z", game="chess"),
        build_game_draft("g2", "cleo", "dora", at="2020-01-01T12:00:00Z", game="chess"),
        build_game_draft("g3", "emil", "anna", at="2020-01-02T12:00:00Z", game="chess"),
    )
    trace = load_ladders(versions_ledger).trace("own-k")
    names, million = trace.stream.names, 1_000_000
    before = {
        names[player]: tuple(column[slot] // million for column in trace.states_before)
        for slot, player in reversed([*enumerate(trace.stream.players)])
    }
    assert before == {"anna": (1700, 40), "ben": (1500, 33), "cleo": (1700, 20), "dora": (1000, 33), "emil": (1000, 20)}
    with rl.open(versions_ledger) as ledger:
        explanation = [
            {player.player: player.before for player in ledger.at().explain("own-k", game_id).players}
            for game_id in ("g1", "g2")
        ]
    assert explanation == [{"anna": 1700, "ben": 1500}, {"cleo": 1700, "dora": 1000}]
