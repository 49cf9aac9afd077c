"""Ledgers that a program creates in memory, rulesets from each source, and what a program does with older ledgers."""

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from alembic import command

import ratings_ledger as rl
from ratings_ledger.ledger.store.migrations import build_config
from ratings_ledger.ledger.store.opening import connect
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION
from ratings_ledger.ledger.verification import verify_log
from ratings_ledger.projections.stored.schema_upgrades import upgrade_ledger

EXAMPLE = Path(__file__).parents[2] / "examples" / "elo-catan-2.toml"
OLD = "0006"


def game(game_id: str) -> dict[str, Any]:
    """A game that anna won."""
    seats = [{"player": "anna", "place": 1}, {"player": "bea", "place": 2}]
    return {"game_id": game_id, "game": "catan", "participants": seats}


def test_threads_share_a_ledger_in_memory() -> None:
    """Threads record and ask at once, nothing is lost, and the log is sound."""
    with rl.create(":memory:", rulesets=["elo-catan"]) as ledger:

        def record(name: str) -> None:
            for number in range(5):
                ledger.propose(game(f"{name}-{number}"), by=name).commit()
                ledger.at().standings("elo-catan/all")

        threads = [Thread(target=record, args=(name,)) for name in ("one", "two", "three")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert ledger.head.position == 16
        with ledger._store.reading() as connection:
            assert list(verify_log(ledger._store, connection)) == []


def test_ledgers_in_memory_are_apart() -> None:
    """Each is its own, and closing one takes nothing from another."""
    with rl.create(":memory:") as kept:
        with rl.create(":memory:", rulesets=["elo-chess"]) as other:
            assert (other.head.position, kept.head.position) == (1, 0)
        assert kept.publish("elo-go", by="mira") == ["elo-go@1"]


SOURCES: dict[str, Callable[[], rl.RulesetSource]] = {
    "a path": lambda: EXAMPLE,
    "the name of a file": lambda: str(EXAMPLE),
    "a text": EXAMPLE.read_text,
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_ruleset_is_published_from_each_source(source: str) -> None:
    """Whichever way it is named, the same version is published, and a second time nothing is."""
    with rl.create(":memory:", zone="Europe/Berlin", rulesets=["elo-catan"]) as ledger:
        ruleset = SOURCES[source]()
        assert ledger.publish(ruleset, by="mira") == ["elo-catan@2"]
        state = ledger.at().ruleset("elo-catan@2")
        assert ledger.publish(state.data, by="anouk") == []
        assert ledger.publish(rl.Ruleset.model_validate(state.data), by="anouk") == []
        assert ledger.simulate(ruleset, ledger.at()).variants[0].ruleset == "elo-catan@2"


def test_a_ledger_of_an_older_schema_is_upgraded_on_request(tmp_path: Path) -> None:
    """Opening it says what to call and what to type, and changes nothing; `upgrade` brings it up and says so."""
    path = tmp_path / "old.db"
    with connect(str(path), create=True).writing() as connection:
        config = build_config()
        config.attributes["connection"] = connection
        command.upgrade(config, OLD)

    for _ in range(2):
        with pytest.raises(rl.OldSchema) as problem:
            rl.open(path, create=True)
    assert f"ratings --db {path} upgrade; or from Python: ratings_ledger.upgrade({str(path)!r})" in str(problem.value)
    assert problem.value.reason == "old-schema"
    planned = upgrade_ledger(str(path), dry_run=True)
    assert (planned.from_, planned.to, planned.upgraded) == (OLD, SCHEMA_REVISION, False)
    with rl.upgrade(path) as ledger:
        assert ledger.publish("elo-chess", by="mira") == ["elo-chess@1"]


def test_nothing_in_memory_is_opened() -> None:
    """What was in memory is gone; the exception names the call that makes a new ledger."""
    with pytest.raises(rl.NoLedger, match=r"create\(':memory:'\)"):
        rl.open(":memory:")
    with rl.open(":memory:", create=True) as ledger:
        assert ledger.head.position == 0


def test_a_missing_ledger_names_the_call(tmp_path: Path) -> None:
    """Opening a ledger that is not there names the command and the call that create one."""
    with pytest.raises(rl.NoLedger, match=r"init; or from Python: ratings_ledger.create\("):
        rl.open(tmp_path / "none.db")


def test_the_example_has_what_it_says() -> None:
    """It has every kind of event that its docstring names, its digests are fixed, and its log is sound."""
    with rl.example() as ledger:
        view = ledger.at()
        digests = {one.ladder: one.digest[7:15] for one in view.every_standings() if isinstance(one, rl.Standings)}
        assert digests == {
            "b5-league/2025-1": "2e32fa08",
            "elo-catan/3-4": "e647665b",
            "elo-catan/5-6": "a09ddda8",
            "elo-catan/all": "a0c048b7",
            "galactic-points": "a13edee6",
            "youplay-league/spring": "9fca6414",
        }
        types = {row.event["type"] for row in ledger.log().rows}
        assert types >= {"game.corrected", "points.adjusted", "list.published", "league.scheduled"}
        assert len(view.publications().rows) == 1
        assert [(row.league, row.played) for row in view.leagues().rows] == [("spring", 4)]
        with ledger._store.reading() as connection:
            assert list(verify_log(ledger._store, connection)) == []
