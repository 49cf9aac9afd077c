"""Forged lists: those that cannot be right are refused, and `verify` finds the others."""

import json
from typing import Any

import pytest
from correction_helpers import REASON_OPTION, Ratings, read_json, read_position
from publishing_helpers import BASIC, NEW_YEAR, create_published_ledger, forge_list, publish, read_published_list
from stores import record_lines

pytestmark = pytest.mark.ledger(make=create_published_ledger, store="sqlite")


def test_verify_finds_lists_with_wrong_rows(db: str, ratings: Ratings) -> None:
    """`verify` finds every forged list whose digest fits its rows but whose rows or claims are wrong."""
    head = read_position(ratings, db)
    standings = read_json(ratings, db, "standings", BASIC)
    higher = [{**row, "points": "2000"} if row["player"] == "anna" else row for row in standings["rows"]]
    may, september = "2010-05-01T00:00:00Z", "2010-09-01T00:00:00Z"
    forgeries = {
        "the replay has the digest": (higher, standings["ruleset"], {"known_at": head}),
        "the replay is ranked under catan-elo@2009-01, not catan-elo@2": (
            standings["rows"],
            "catan-elo@2",
            {"known_at": head},
        ),
        "the replay has 3 rows, not 2": (standings["rows"][:2], standings["ruleset"], {"known_at": head}),
        "differs from a replay at position": (standings["rows"], standings["ruleset"], {"known_at": head - 1}),
        "the replay counts 8 games, not 9": (
            standings["rows"],
            standings["ruleset"],
            {"known_at": head, "games": 9, "as_of": september},
        ),
        "cannot be computed": (higher, standings["ruleset"], {"known_at": 1, "as_of": may}),
    }
    positions = []
    for rows, ruleset, members in forgeries.values():
        # two of the lists have the same rows, which are recorded once, so the positions cannot be calculated
        assert not record_lines(db, "".join(forge_list(rows, ruleset, **members))).rejected
        positions.append(read_position(ratings, db))
    result = ratings("verify", "--format", "json", db=db)
    findings = json.loads(result.stdout)["findings"]

    assert (result.exit_code, {finding["code"] for finding in findings}) == (1, {"published"})
    assert len(findings) == len(forgeries)
    for position, reason in zip(positions, forgeries, strict=True):
        messages = [finding["message"] for finding in findings if finding["position"] == position]
        assert [reason in message for message in messages] == [True], (reason, messages)


def test_inconsistent_list_is_refused(db: str, ratings: Ratings) -> None:
    """An import refuses a list whose rows, counts, parts, ruleset and positions do not fit together."""
    standings = read_json(ratings, db, "standings", BASIC)
    rows, published = map(
        json.loads, forge_list(standings["rows"], standings["ruleset"], known_at=read_position(ratings, db))
    )
    changed_rows = json.loads(json.dumps(rows))
    changed_rows["data"]["rows"][0]["points"] = "1"
    player_twice = [
        json.loads(line) for line in forge_list([standings["rows"][0]] * 2, standings["ruleset"], known_at=1)
    ]
    changes: list[dict[str, Any]] = [
        {"row_count": 2},
        {"parts": 2},
        {"known_at": read_position(ratings, db) + 2},
        {"known_at": 2**53 - 1},
        {"ruleset": "catan-monthly@2008-03"},
        {"parts": 100_000},
    ]
    for lines in (
        [published],
        [changed_rows, published],
        player_twice,
        *([rows, {**published, "data": {**published["data"], **change}}] for change in changes),
    ):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = ratings("import", "-", "--format", "json", db=db, input=text)
        assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, "bad-list"), result


def give_states(rows: list[dict[str, Any]], *states: dict[str, str] | None) -> list[dict[str, Any]]:
    """Return as many of the rows as there are states, with these states; None leaves a row without one."""
    return [row if state is None else {**row, "state": state} for row, state in zip(rows, states, strict=False)]


@pytest.mark.parametrize("second_state", [None, {"points": "1", "games": "2"}])
def test_rows_of_unequal_states_are_refused(second_state: Any, db: str, ratings: Ratings) -> None:
    """A list whose rows have different state columns is refused; a list whose rows have no state is accepted."""
    standings = read_json(ratings, db, "standings", BASIC)
    rows = give_states(standings["rows"], {"points": "1", "deviation": "2"}, second_state)
    (rejected,) = record_lines(db, "".join(forge_list(rows, standings["ruleset"], known_at=1))).rejected
    assert rejected.code == "bad-list"
    assert "has different state columns" in rejected.message
    rows = give_states(standings["rows"], None, None)
    assert not record_lines(db, "".join(forge_list(rows, standings["ruleset"], known_at=1))).rejected


def test_recorded_rows_of_unequal_states_are_damage(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that an older program recorded with different state columns is reported as damaged, with its position."""
    standings = read_json(ratings, db, "standings", BASIC)
    rows = give_states(standings["rows"], {"points": "1", "deviation": "2"}, None)
    with monkeypatch.context() as patch:
        patch.setattr("ratings_ledger.ledger.validation.published_lists.refuse_unequal_states", lambda *arguments: None)
        record_lines(db, "".join(forge_list(rows, standings["ruleset"], known_at=1)))
    result = ratings("standings", BASIC, "--as-published", "--format", "json", db=db)
    assert (result.exit_code, json.loads(result.stderr.splitlines()[-1])["reason"]) == (1, "damaged"), result
    assert f"the list published at position {read_position(ratings, db)} is damaged: " in result.stderr
    assert "has different state columns for" in result.stderr


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("part", 2, "out-of-range"),
        ("parts", 10**12, "out-of-range"),
        ("digest", "sha256:0", "bad-value"),
        ("points", "2/4", "bad-value"),
        ("points", "-0", "bad-value"),
        ("points", "1.5", "bad-value"),
    ],
)
def test_impossible_list_rows_are_refused(member: str, value: Any, code: str, db: str, ratings: Ratings) -> None:
    """An import refuses rows with parts, a digest or points that no list can have."""
    standings = read_json(ratings, db, "standings", BASIC)
    rows = json.loads(forge_list(standings["rows"], standings["ruleset"], known_at=1)[0])
    (rows["data"]["rows"][0] if member == "points" else rows["data"])[member] = value
    result = ratings("import", "-", "--format", "json", db=db, input=json.dumps(rows))
    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, code)


def test_later_rows_do_not_change_list(db: str, ratings: Ratings) -> None:
    """Later rows that claim the digest of a published list leave that list as published.

    The same content can also be published again after the list was voided.
    """
    publish(ratings, db, BASIC)
    published, position = read_published_list(ratings, db, BASIC), read_position(ratings, db)
    stored = json.loads(ratings("export", "events", db=db).stdout.splitlines()[-2])
    stored["data"]["rows"][0]["points"] = "9999"
    line = {"type": "list.rows", "occurred_at": NEW_YEAR, "data": stored["data"]}
    assert not record_lines(db, json.dumps(line)).rejected

    assert read_published_list(ratings, db, BASIC) == published
    (ladder_diff,) = read_json(ratings, db, "diff", "published", "now")["ladders"]
    assert ladder_diff["rows"] == []
    assert ratings("verify", db=db) == (0, "", "")
    assert ratings("void", "--event", position, *REASON_OPTION, db=db).exit_code == 0
    publish(ratings, db, BASIC)
    assert read_published_list(ratings, db, BASIC)["rows"] == published["rows"]
    assert ratings("verify", db=db) == (0, "", "")
