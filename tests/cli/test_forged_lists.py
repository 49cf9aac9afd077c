"""Lists that no program published, in imported files: refused where they cannot be right, found by `verify` else."""

import json
from typing import Any

import pytest
from correction_helpers import REASON_OPTION, Ratings, read_json, read_position
from publishing_helpers import BASIC, NEW_YEAR, create_published_ledger, forge_list, publish, read_published_list
from stores import record_lines

pytestmark = pytest.mark.ledger(make=create_published_ledger, store="sqlite")


def test_verify_finds_lists_with_wrong_rows(db: str, ratings: Ratings) -> None:
    """`verify` finds every forged list whose digest fits its rows but whose rows or claims are wrong."""
    at = read_position(ratings, db)
    right = read_json(ratings, db, "standings", BASIC)
    higher = [{**row, "points": "2000"} if row["player"] == "anna" else row for row in right["rows"]]
    summer, autumn = "2010-05-01T00:00:00Z", "2010-09-01T00:00:00Z"
    wrong = {
        "the replay has the digest": (higher, right["ruleset"], {"known_at": at}),
        "the replay is ranked under catan-elo@2009-01, not catan-elo@2": (
            right["rows"],
            "catan-elo@2",
            {"known_at": at},
        ),
        "the replay has 3 rows, not 2": (right["rows"][:2], right["ruleset"], {"known_at": at}),
        "differs from a replay at position": (right["rows"], right["ruleset"], {"known_at": at - 1}),
        "the replay counts 8 games, not 9": (
            right["rows"],
            right["ruleset"],
            {"known_at": at, "games": 9, "as_of": autumn},
        ),
        "cannot be computed": (higher, right["ruleset"], {"known_at": 1, "as_of": summer}),
    }
    heads = []
    for rows, ruleset, members in wrong.values():
        # the same rows are recorded once
        assert not record_lines(db, "".join(forge_list(rows, ruleset, **members))).rejected
        heads.append(read_position(ratings, db))
    result = ratings("verify", "--format", "json", db=db)
    findings = json.loads(result.stdout)["findings"]

    assert (result.exit_code, {finding["code"] for finding in findings}) == (1, {"published"})
    assert len(findings) == len(wrong)
    for place, why in zip(heads, wrong, strict=True):
        messages = [finding["message"] for finding in findings if finding["position"] == place]
        assert [why in message for message in messages] == [True], (why, messages)


def test_inconsistent_list_is_refused(db: str, ratings: Ratings) -> None:
    """An import refuses a list whose rows, counts, parts and positions do not fit together."""
    right = read_json(ratings, db, "standings", BASIC)
    rows, listed = map(json.loads, forge_list(right["rows"], right["ruleset"], known_at=read_position(ratings, db)))
    output = json.loads(json.dumps(rows))
    output["data"]["rows"][0]["points"] = "1"
    twice = [json.loads(line) for line in forge_list([right["rows"][0]] * 2, right["ruleset"], known_at=1)]
    changes: list[dict[str, Any]] = [
        {"row_count": 2},
        {"parts": 2},
        {"known_at": read_position(ratings, db) + 2},
        {"known_at": 2**53 - 1},
        {"ruleset": "catan-monthly@2008-03"},
        {"parts": 100_000},
    ]
    for lines in (
        [listed],
        [output, listed],
        twice,
        *([rows, {**listed, "data": {**listed["data"], **change}}] for change in changes),
    ):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = ratings("import", "-", "--format", "json", db=db, input=text)
        assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, "bad-list"), result


def give_state(rows: list[dict[str, Any]], *states: dict[str, str] | None) -> list[dict[str, Any]]:
    """Return rows with these states; None leaves a row without one."""
    return [row if state is None else {**row, "state": state} for row, state in zip(rows, states, strict=False)]


@pytest.mark.parametrize("other_state", [None, {"points": "1", "games": "2"}])
def test_rows_of_unequal_states_are_refused(other_state: Any, db: str, ratings: Ratings) -> None:
    """An import refuses a list whose rows have different columns of state; a list without any is taken."""
    right = read_json(ratings, db, "standings", BASIC)
    rows = give_state(right["rows"], {"points": "1", "deviation": "2"}, other_state)
    (rejected,) = record_lines(db, "".join(forge_list(rows, right["ruleset"], known_at=1))).rejected
    assert rejected.code == "bad-list"
    assert "has different state columns" in rejected.message


def test_recorded_rows_of_unequal_states_are_damage(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that an older program recorded with different columns of state is reported as damaged, by position."""
    right = read_json(ratings, db, "standings", BASIC)
    rows = give_state(right["rows"], {"points": "1", "deviation": "2"}, None)
    with monkeypatch.context() as patch:
        patch.setattr("ratings_ledger.ledger.validation.published_lists.refuse_unequal_states", lambda *arguments: None)
        record_lines(db, "".join(forge_list(rows, right["ruleset"], known_at=1)))
    result = ratings("standings", BASIC, "--as-published", "--format", "json", db=db)
    assert (result.exit_code, json.loads(result.stderr.splitlines()[-1])["reason"]) == (1, "damaged"), result
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
    right = read_json(ratings, db, "standings", BASIC)
    rows = json.loads(forge_list(right["rows"], right["ruleset"], known_at=1)[0])
    (rows["data"]["rows"][0] if member == "points" else rows["data"])[member] = value
    result = ratings("import", "-", "--format", "json", db=db, input=json.dumps(rows))
    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, code)


def test_later_rows_do_not_change_list(db: str, ratings: Ratings) -> None:
    """Later rows that claim the digest of a published list leave that list as published.

    The same content can also be published again after the list was voided.
    """
    publish(ratings, db, BASIC)
    shown, last = read_published_list(ratings, db, BASIC), read_position(ratings, db)
    stored = json.loads(ratings("export", "events", db=db).stdout.splitlines()[-2])
    stored["data"]["rows"][0]["points"] = "9999"
    line = {"type": "list.rows", "occurred_at": NEW_YEAR, "data": stored["data"]}
    assert not record_lines(db, json.dumps(line)).rejected

    assert read_published_list(ratings, db, BASIC) == shown
    (compared,) = read_json(ratings, db, "diff", "published", "now")["ladders"]
    assert compared["rows"] == []
    assert ratings("verify", db=db) == (0, "", "")
    # and the same content can be published again
    assert ratings("void", "--event", last, *REASON_OPTION, db=db).exit_code == 0
    publish(ratings, db, BASIC)
    assert read_published_list(ratings, db, BASIC)["rows"] == shown["rows"]
    assert ratings("verify", db=db) == (0, "", "")
