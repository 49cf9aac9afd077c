"""Ledgers in memory, rulesets from each source, the upgrade of an older ledger, and the example ledger."""

import json
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

EXAMPLE_RULESET = Path(__file__).parents[2] / "examples" / "elo-catan-2.toml"
OLD_REVISION = "0006"


def build_game(game_id: str) -> dict[str, Any]:
    """Return a game that anna won."""
    participants = [{"player": "anna", "place": 1}, {"player": "bea", "place": 2}]
    return {"game_id": game_id, "game": "catan", "participants": participants}


def test_threads_share_a_ledger_in_memory() -> None:
    """Threads record and query at once in a ledger in memory, no game is lost, and the log is valid."""
    with rl.create(":memory:", rulesets=["elo-catan"]) as ledger:

        def record(name: str) -> None:
            for number in range(5):
                ledger.propose(build_game(f"{name}-{number}"), by=name).commit()
                ledger.at().standings("elo-catan/all")

        threads = [Thread(target=record, args=(name,)) for name in ("one", "two", "three")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert (ledger.location, ledger.head.position) == (":memory:", 16)
        assert ledger.at().standings("elo-catan/all").games == 15
        with ledger._store.reading() as connection:
            assert list(verify_log(ledger._store, connection)) == []


def test_ledgers_in_memory_are_independent() -> None:
    """Ledgers in memory are independent, and closing one leaves another usable."""
    with rl.create(":memory:") as first_ledger:
        with rl.create(":memory:", rulesets=["elo-chess"]) as second_ledger:
            assert (second_ledger.head.position, first_ledger.head.position) == (1, 0)
        assert first_ledger.publish("elo-go", by="mira") == ["elo-go@1"]


def test_version_published_again_after_its_withdrawal_is_named() -> None:
    """Publishing a version again after its withdrawal returns its name, although its event has another id."""
    with rl.create(":memory:", rulesets=["elo-chess"]) as ledger:
        withdrawal = {"type": "event.voided", "data": {"id": "ruleset:elo-chess@1", "reason": "too early"}}
        ledger.propose(withdrawal, by="mira").commit()
        assert ledger.publish("elo-chess", by="mira") == ["elo-chess@1"]
        first, _, again = (row.event["id"] for row in ledger.log().rows)
        assert (first, again != first) == ("ruleset:elo-chess@1", True)


SOURCES: dict[str, Callable[[], rl.RulesetSource]] = {
    "a path": lambda: EXAMPLE_RULESET,
    "the name of a file": lambda: str(EXAMPLE_RULESET),
    "a text": EXAMPLE_RULESET.read_text,
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_ruleset_is_published_from_each_source(source: str) -> None:
    """A ruleset is published once from a path, a file name or a text, and not again from its published data.

    It can also be simulated from the same source.
    """
    with rl.create(":memory:", zone="Europe/Berlin", rulesets=["elo-catan"]) as ledger:
        ruleset = SOURCES[source]()
        assert ledger.publish(ruleset, by="mira") == ["elo-catan@2"]
        state = ledger.at().ruleset("elo-catan@2")
        assert ledger.publish(state.data, by="anouk") == []
        assert ledger.publish(rl.Ruleset.model_validate(state.data), by="anouk") == []
        assert ledger.simulate(ruleset, ledger.at()).variants[0].ruleset == "elo-catan@2"


def test_a_ledger_of_an_older_schema_is_upgraded_on_request(tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Opening an older ledger names the command and the call that upgrade it, and changes nothing; `upgrade` works."""
    path = tmp_path / "old.db"
    with connect(str(path), create=True).writing() as connection:
        config = build_config()
        config.attributes["connection"] = connection
        command.upgrade(config, OLD_REVISION)

    for _ in range(2):
        with pytest.raises(rl.OldSchema) as problem:
            rl.open(path, create=True)
    assert f"ratings --db {path} upgrade; or from Python: ratings_ledger.upgrade({str(path)!r})" in str(problem.value)
    assert problem.value.reason == "old-schema"
    dry_run = json.loads(ratings("upgrade", "--dry-run", "--format", "json", db=str(path)).stdout)
    assert (dry_run["from"], dry_run["to"], dry_run["upgraded"]) == (OLD_REVISION, SCHEMA_REVISION, False)
    with rl.upgrade(path) as ledger:
        assert ledger.publish("elo-chess", by="mira") == ["elo-chess@1"]


def test_open_in_memory_needs_create() -> None:
    """Opening `:memory:` fails and names the call that creates a ledger; with `create=True` it creates one."""
    with pytest.raises(rl.NoLedger, match=r"create\(':memory:'\)"):
        rl.open(":memory:")
    with rl.open(":memory:", create=True) as ledger:
        assert ledger.head.position == 0


def test_a_missing_ledger_names_the_call(tmp_path: Path) -> None:
    """Opening a missing ledger fails and names the command and the call that create one."""
    with pytest.raises(rl.NoLedger, match=r"init; or from Python: ratings_ledger.create\("):
        rl.open(tmp_path / "none.db")


def test_example_matches_its_description() -> None:
    """The example has the documented kinds of events and fixed digests, and its log is valid."""
    with rl.example() as ledger:
        view = ledger.at()
        digests = {
            standings.ladder: standings.digest[7:15]
            for standings in view.every_standings()
            if isinstance(standings, rl.Standings)
        }
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
