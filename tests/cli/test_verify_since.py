"""`verify --since` checks the events and ladders since a head; `nightly` checks those since its last sound check."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from ratings_ledger.ledger.store.opening import connect

Ratings = Callable[..., Any]
# with the guards disabled
FORGE_STATEMENTS = {
    "sqlite": ("DROP TRIGGER IF EXISTS events_refuse_update", "{}"),
    "postgresql": ("ALTER TABLE events DISABLE TRIGGER USER", "{}", "ALTER TABLE events ENABLE TRIGGER USER"),
}


@pytest.fixture
def db(copy_ledger: Callable[..., str]) -> str:
    """Return a ledger with a game of chess, a game of go, and stored ladders."""
    return copy_ledger(create_two_game_ledger)


def create_two_game_ledger(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", "--for", "go", db=url).exit_code == 0
    record_game(ratings, url, "chess", "g-1")
    record_game(ratings, url, "go", "h-1")
    assert ratings("rebuild", db=url).exit_code == 0


def record_game(ratings: Ratings, db: str, game: str, game_id: str) -> None:
    result = ratings("record", "-q", "--game", game, "--game-id", game_id, "anna", "ben", db=db)
    assert result.exit_code == 0, result


def read_head(ratings: Ratings, db: str) -> str:
    return str(json.loads(ratings("status", "--format", "json", db=db).stdout)["head"])


def run_verify(ratings: Ratings, db: str, *arguments: str) -> tuple[list[str], dict[str, int]]:
    """Return the codes of all findings, and the counts of what was checked."""
    result = ratings("verify", "--format", "json", *arguments, db=db)
    output = json.loads(result.stdout)
    assert result.exit_code == int(bool(output["findings"])), result
    return sorted({finding["code"] for finding in output["findings"]}), output["checked"]


def execute_statement(db: str, statement: str) -> None:
    with connect(db).reading() as connection:
        assert connection.execute(text(statement)).rowcount


def forge_events(db: str, statement: str) -> None:
    """Change events while their guards are disabled."""
    with connect(db).reading() as connection:
        for part in FORGE_STATEMENTS[connection.dialect.name]:
            connection.execute(text(part.format(statement)))


@pytest.fixture
def since(db: str, ratings: Ratings) -> str:
    """Return a head up to which all is verified; one game was recorded after it, and all ladders were rebuilt."""
    record_game(ratings, db, "chess", "g-9")
    verified_head = read_head(ratings, db)
    assert run_verify(ratings, db)[0] == []
    record_game(ratings, db, "chess", "g-2")
    assert ratings("rebuild", db=db).exit_code == 0
    return verified_head


def test_only_new_events_and_ladders_are_checked(db: str, since: str, ratings: Ratings) -> None:
    """In a sound ledger, only new events and ladders built since the head are checked; without new events, none is.

    A position alone is refused.
    """
    whole, new = run_verify(ratings, db), run_verify(ratings, db, "--since", since)
    assert (whole[0], new[0]) == ([], [])
    assert (new[1]["events"], new[1]["hashes"], new[1]["ladders"]) == (1, 2, 2)
    assert (whole[1]["ladders"], new[1]["guards"]) == (4, whole[1]["guards"])
    assert ratings("verify", "--since", since, db=db) == (0, "", "")
    record_game(ratings, db, "go", "h-2")
    nothing_new = run_verify(ratings, db, "--since", read_head(ratings, db))[1]
    assert (nothing_new["events"], nothing_new["ladders"]) == (0, 0)
    assert ratings("verify", "--since", "7", db=db).exit_code == 2


def test_another_history_is_a_finding(db: str, since: str, ratings: Ratings) -> None:
    """A head that the ledger does not contain, or that is ahead of it, is a finding."""
    position, _, chain_hash = since.partition(":")
    assert run_verify(ratings, db, "--since", f"{position}:{'0' * 64}")[0] == ["head"]
    assert "head" in run_verify(ratings, db, "--since", f"99:{chain_hash}")[0]


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE events SET recorded_by = 'eve' WHERE position = {}", "column"),
        ("UPDATE events SET record = replace(record, 'anna', 'eve') WHERE position = {}", "leaf-hash"),
        ("UPDATE events SET chain_hash = leaf_hash WHERE position = {}", "chain-hash"),
    ],
)
def test_altered_events_are_found(db: str, since: str, statement: str, code: str, ratings: Ratings) -> None:
    """`verify --since` finds an altered event only if it is new; a full `verify` finds every altered event."""
    position = int(since.partition(":")[0])
    forge_events(db, statement.format(position + 1))
    assert code in run_verify(ratings, db, "--since", since)[0]
    now = read_head(ratings, db)
    forge_events(db, statement.format(position - 1))
    assert code not in run_verify(ratings, db, "--since", now)[0]
    findings = json.loads(ratings("verify", "--format", "json", db=db).stdout)["findings"]
    assert {(code, position - 1), (code, position + 1)} <= {
        (finding["code"], finding["position"]) for finding in findings
    }


def test_altered_standings_are_found(db: str, since: str, ratings: Ratings) -> None:
    """`verify --since` finds altered standings only if they were computed since; a full `verify` finds the others."""
    alter = "UPDATE generation_standings SET points = points + {} WHERE ordinal = 1 AND ladder = 'elo-{}/all'"
    execute_statement(db, alter.format(1, "go"))
    assert run_verify(ratings, db, "--since", since)[0] == []
    assert run_verify(ratings, db)[0] == ["standings"]
    execute_statement(db, alter.format(-1, "go"))
    execute_statement(db, alter.format(1, "chess"))
    assert run_verify(ratings, db, "--since", since)[0] == ["standings"]


def test_positions_of_builds_survive_rebuilds(db: str, since: str, ratings: Ratings) -> None:
    """After several rebuilds `verify --since` still recognises the ladders built since."""
    record_game(ratings, db, "go", "h-2")
    for number in range(4):
        assert ratings("rebuild", db=db).exit_code == 0
        record_game(ratings, db, "chess", f"g-{number + 3}")
    assert ratings("rebuild", db=db).exit_code == 0
    assert run_verify(ratings, db, "--since", since)[1]["ladders"] == 4
    latest = read_head(ratings, db)
    assert run_verify(ratings, db, "--since", latest)[1]["ladders"] == 2


def run_nightly(ratings: Ratings, db: str, code: int = 0) -> dict[str, str]:
    result = ratings("nightly", "--format", "json", db=db)
    assert result.exit_code == code, result
    return {part["part"]: part["message"] for part in json.loads(result.stdout)["parts"]}


def read_last_details(ratings: Ratings, db: str) -> dict[str, Any]:
    runs = json.loads(ratings("status", "--format", "json", db=db).stdout)["runs"]
    details: dict[str, Any] = runs["verify"]["last"]["details"]
    return details


def test_nightly_verifies_new_events(db: str, ratings: Ratings) -> None:
    """The first nightly run verifies everything; each later run verifies what is new since the previous one."""
    events = int(read_head(ratings, db).partition(":")[0])
    assert run_nightly(ratings, db)["verify"] == f"{events} events, 4 stored ladders"
    assert read_last_details(ratings, db)["head"] == read_head(ratings, db)
    record_game(ratings, db, "chess", "g-2")
    assert run_nightly(ratings, db)["verify"] == f"1 event since position {events}, 4 stored ladders"
    first = read_head(ratings, db)
    record_game(ratings, db, "chess", "g-3")
    assert run_nightly(ratings, db)["verify"] == f"1 event since position {events + 1}, 2 stored ladders"
    assert (read_last_details(ratings, db)["since"], read_last_details(ratings, db)["head"]) == (
        first,
        read_head(ratings, db),
    )


def test_nightly_verifies_everything_after_a_finding(db: str, ratings: Ratings) -> None:
    """After a finding, nightly runs verify everything until nothing is found."""
    run_nightly(ratings, db)
    events = int(read_head(ratings, db).partition(":")[0])
    alter = "UPDATE generation_standings SET points = points + {} WHERE ordinal = 1 AND ladder = 'elo-go/all'"
    for game_id in ("g-2", "g-3"):
        record_game(ratings, db, "chess", game_id)
        run_nightly(ratings, db)
    execute_statement(db, alter.format(1))
    assert run_nightly(ratings, db)["verify"].startswith(f"0 events since position {events + 2}, ")
    assert ratings("verify", db=db).exit_code == 1
    assert "1 finding" in run_nightly(ratings, db, 1)["verify"]
    execute_statement(db, alter.format(-1))
    assert run_nightly(ratings, db)["verify"] == f"{events + 2} events, 4 stored ladders"
    assert run_nightly(ratings, db)["verify"].startswith(f"0 events since position {events + 2}, ")


def test_a_gap_is_not_skipped(db: str, ratings: Ratings) -> None:
    """Events between the last verified head and a later `--since` are verified by the next nightly run."""
    run_nightly(ratings, db)
    events = int(read_head(ratings, db).partition(":")[0])
    record_game(ratings, db, "chess", "g-2")
    assert run_verify(ratings, db, "--since", read_head(ratings, db))[0] == []
    assert run_nightly(ratings, db)["verify"].startswith(f"1 event since position {events}, ")
