"""`verify --since` checks what was recorded and computed since a head; nights do, since the last one that was well."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from ratings_ledger.ledger.store.opening import connect

Ratings = Callable[..., Any]
GUARDED = {
    "sqlite": ("DROP TRIGGER events_refuse_update", "{}"),
    "postgresql": ("ALTER TABLE events DISABLE TRIGGER USER", "{}", "ALTER TABLE events ENABLE TRIGGER USER"),
}


@pytest.fixture
def db(copied: Callable[..., str]) -> str:
    """A ledger with games of two kinds, their ladders stored."""
    return copied(made)


def made(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", "--for", "go", db=url).exit_code == 0
    record(ratings, url, "chess", "g-1")
    record(ratings, url, "go", "h-1")
    assert ratings("rebuild", db=url).exit_code == 0


def record(ratings: Ratings, db: str, game: str, game_id: str) -> None:
    result = ratings("record", "-q", "--game", game, "--game-id", game_id, "anna", "ben", db=db)
    assert result.exit_code == 0, result


def head(ratings: Ratings, db: str) -> str:
    return str(json.loads(ratings("status", "--format", "json", db=db).stdout)["head"])


def verified(ratings: Ratings, db: str, *arguments: str) -> tuple[list[str], dict[str, int]]:
    """The codes of all findings, and how much was looked at."""
    result = ratings("verify", "--format", "json", *arguments, db=db)
    output = json.loads(result.stdout)
    assert result.exit_code == int(bool(output["findings"])), result
    return sorted({finding["code"] for finding in output["findings"]}), output["checked"]


def do(db: str, statement: str) -> None:
    with connect(db).reading() as connection:
        assert connection.execute(text(statement)).rowcount


def forge(db: str, statement: str) -> None:
    """Change events, whose guards are away meanwhile."""
    with connect(db).reading() as connection:
        for part in GUARDED[connection.dialect.name]:
            connection.execute(text(part.format(statement)))


@pytest.fixture
def since(db: str, ratings: Ratings) -> str:
    """The head up to which everything is verified; a game was recorded since, and all was rebuilt."""
    record(ratings, db, "chess", "g-9")
    found = head(ratings, db)
    assert verified(ratings, db)[0] == []
    record(ratings, db, "chess", "g-2")
    assert ratings("rebuild", db=db).exit_code == 0
    return found


def test_only_what_is_new_is_looked_at(db: str, since: str, ratings: Ratings) -> None:
    """Of a sound ledger only the new events and the ladders built since are checked; without anything new, nothing."""
    whole, new = verified(ratings, db), verified(ratings, db, "--since", since)
    assert (whole[0], new[0]) == ([], [])
    assert (new[1]["events"], new[1]["hashes"], new[1]["ladders"]) == (1, 2, 2)
    assert (whole[1]["ladders"], new[1]["guards"]) == (4, whole[1]["guards"])
    assert ratings("verify", "--since", since, db=db) == (0, "", "")
    record(ratings, db, "go", "h-2")
    assert verified(ratings, db, "--since", head(ratings, db))[1]["events"] == 0
    assert ratings("verify", "--since", "7", db=db).exit_code == 2


def test_another_history_is_a_finding(db: str, since: str, ratings: Ratings) -> None:
    """A head that the ledger does not contain, or that is ahead of it, is a finding."""
    position, _, chain_hash = since.partition(":")
    assert verified(ratings, db, "--since", f"{position}:{'0' * 64}")[0] == ["head"]
    assert "head" in verified(ratings, db, "--since", f"99:{chain_hash}")[0]


@pytest.mark.slow_cases
@pytest.mark.parametrize(("statement", "code"), [
    ("UPDATE events SET recorded_by = 'eve' WHERE position = {}", "column"),
    ("UPDATE events SET record = replace(record, 'anna', 'eve') WHERE position = {}", "leaf-hash"),
    ("UPDATE events SET chain_hash = leaf_hash WHERE position = {}", "chain-hash"),
])  # fmt: skip
def test_altered_events_are_found(db: str, since: str, statement: str, code: str, ratings: Ratings) -> None:
    """An altered event is found if it is new; an old one by a whole `verify` alone."""
    position = int(since.partition(":")[0])
    forge(db, statement.format(position + 1))
    assert code in verified(ratings, db, "--since", since)[0]
    forge_old = statement.format(position - 1)
    if "chain_hash" not in statement:
        now = head(ratings, db)
        with connect(db).reading() as connection:
            if connection.dialect.name == "sqlite":
                connection.execute(text(forge_old))
            else:
                for part in GUARDED["postgresql"]:
                    connection.execute(text(part.format(forge_old)))
        assert code not in verified(ratings, db, "--since", now)[0]
        assert code in verified(ratings, db)[0]


def test_altered_standings_are_found(db: str, since: str, ratings: Ratings) -> None:
    """Altered standings are found if they were computed since; those that were taken over by a whole `verify`."""
    alter = "UPDATE generation_standings SET points = points + {} WHERE ordinal = 1 AND ladder = 'elo-{}/all'"
    do(db, alter.format(1, "go"))
    assert verified(ratings, db, "--since", since)[0] == []
    assert verified(ratings, db)[0] == ["standings"]
    do(db, alter.format(-1, "go"))
    do(db, alter.format(1, "chess"))
    assert verified(ratings, db, "--since", since)[0] == ["standings"]


def test_where_a_ladder_was_built_is_known(db: str, since: str, ratings: Ratings) -> None:
    """After several rebuilds `verify --since` still knows which ladders were built since."""
    record(ratings, db, "go", "h-2")
    for number in range(4):
        assert ratings("rebuild", db=db).exit_code == 0
        record(ratings, db, "chess", f"g-{number + 3}")
    assert ratings("rebuild", db=db).exit_code == 0
    assert verified(ratings, db, "--since", since)[1]["ladders"] == 4
    latest = head(ratings, db)
    assert verified(ratings, db, "--since", latest)[1]["ladders"] == 2


def parts(ratings: Ratings, db: str, code: int = 0) -> dict[str, str]:
    result = ratings("nightly", "--format", "json", db=db)
    assert result.exit_code == code, result
    return {part["part"]: part["message"] for part in json.loads(result.stdout)["parts"]}


def last_details(ratings: Ratings, db: str) -> dict[str, Any]:
    runs = json.loads(ratings("status", "--format", "json", db=db).stdout)["runs"]
    details: dict[str, Any] = runs["verify"]["last"]["details"]
    return details


def test_nights_verify_what_is_new(db: str, ratings: Ratings) -> None:
    """The first night verifies everything, and each night after it what is new since."""
    events = int(head(ratings, db).partition(":")[0])
    assert parts(ratings, db)["verify"] == f"{events} events, 4 stored ladders"
    assert last_details(ratings, db)["head"] == head(ratings, db)
    record(ratings, db, "chess", "g-2")
    assert parts(ratings, db)["verify"] == f"1 event since {events}, 4 stored ladders"
    first = head(ratings, db)
    record(ratings, db, "chess", "g-3")
    assert parts(ratings, db)["verify"] == f"1 event since {events + 1}, 2 stored ladders"
    assert (last_details(ratings, db)["since"], last_details(ratings, db)["head"]) == (first, head(ratings, db))


def test_nights_verify_everything_after_a_finding(db: str, ratings: Ratings) -> None:
    """As long as `verify` finds something each night verifies everything, and expects the history that was well."""
    parts(ratings, db)
    events = int(head(ratings, db).partition(":")[0])
    alter = "UPDATE generation_standings SET points = points + {} WHERE ordinal = 1 AND ladder = 'elo-go/all'"
    for game_id in ("g-2", "g-3"):
        record(ratings, db, "chess", game_id)
        parts(ratings, db)
    do(db, alter.format(1))
    assert parts(ratings, db)["verify"].startswith(f"0 events since {events + 2}, ")
    assert ratings("verify", db=db).exit_code == 1
    assert "1 finding" in parts(ratings, db, 1)["verify"]
    do(db, alter.format(-1))
    assert parts(ratings, db)["verify"] == f"{events + 2} events, 4 stored ladders"
    assert parts(ratings, db)["verify"].startswith(f"0 events since {events + 2}, ")


def test_a_gap_is_not_skipped(db: str, ratings: Ratings) -> None:
    """What lies between the last verified head and a later `--since` is verified by the next night."""
    parts(ratings, db)
    events = int(head(ratings, db).partition(":")[0])
    record(ratings, db, "chess", "g-2")
    assert verified(ratings, db, "--since", head(ratings, db))[0] == []
    assert parts(ratings, db)["verify"].startswith(f"1 event since {events}, ")
