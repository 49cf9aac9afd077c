"""A plain event is appended by one statement, with the same row as by several; a doubtful one takes several."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import Any

import pytest
from builders import build_game_draft
from sqlalchemy import text

from ratings_ledger import Rejection
from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN
from ratings_ledger.ledger.events.records import EventRow, build_record
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.store.appending import AppendResult, append
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.verification import verify_log

PIECES = (
    "anna", "Jürgen", "Ελένη", "Дора", "花子", "علي", "נועה", "ไทย", "😀", "👩\u200d🚀", "e\u0301", "a b", "~", "\x7f",
    "\ufffd", "\U0010ffff", "\\", '"', "'", "''", "%s", "%(a)s", "$1", "\\u0041", "\\n", "{", "}", "[,]", ":", "--",
    "/*", ";", "\\x00", "E'\\''",
)  # fmt: skip
TIMES = (INSTANT_MIN, -1, 0, 1, 999_999, 1_267_817_400_000_000, 1_267_817_400_000_001, 2**53, INSTANT_MAX)


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    opened = open_ledger(ledger_url, keep_open=True)
    yield opened
    opened.close()


def build_registration(name: str, occurred_at: int = 0, **members: Any) -> Draft:
    """Return the draft of a registration; `name` is the id of the event."""
    event = {"type": "player.registered", "id": name, "occurred_at": "2010-03-05T19:30:00Z", "data": {"player": "x"}}
    return read_event({**event, **members})[0]._replace(occurred_at=occurred_at)


build_past_game = partial(build_game_draft, at="2010-03-05T19:30:00Z", extra={"note": '"\\\n\t'})


def load_rows(ledger: Ledger) -> list[EventRow]:
    with ledger.reading() as connection:
        rows = connection.execute(text(f"SELECT {', '.join(EventRow._fields)} FROM events ORDER BY position")).all()
    return [EventRow(*row) for row in rows]


def append_by_statements(ledger: Ledger, *arguments: Any, **options: Any) -> AppendResult:
    """Append as if the store could not append by one statement."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger.dialect, "append_one", lambda ledger, values: None)
        return append(ledger, *arguments, **options)


def draw_name(chance: random.Random) -> str:
    name = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 4))).strip()
    return name if name.isprintable() or "\u200d" in name else "plain"


def test_any_script_is_stored_as_built(
    ledger: Ledger,
) -> None:
    """Events with text in any script, appended one by one, are stored exactly as built."""
    chance = random.Random(5)
    drafts: dict[str, Draft] = {}
    for number in range(150):
        name = f"{draw_name(chance)}-{number}"
        draft = build_past_game(name, "anna", f"{number}") if number % 2 else build_registration(name)
        by = f"{draw_name(chance)}\n\t" if number % 3 == 0 else None
        drafts[draft.event_id] = draft._replace(occurred_at=chance.choice(TIMES), by=by)
    steps = [chance.choice((0, 1, 999_999, 1_000_000, 86_400_000_000)) for _ in drafts]
    for position, (draft, now) in enumerate(zip(drafts.values(), accumulate(steps), strict=True), 1):
        result = append(ledger, [draft], by="referee", clock=partial(int, now))
        last_row = load_rows(ledger)[-1]
        assert (result.appended, result.head) == (1, (position, bytes(last_row.chain_hash), now))
        assert last_row.record == build_record(draft, position, now, draft.by or "referee")
        assert last_row[:9] == (
            position,
            draft.event_id,
            draft.type,
            1,
            draft.subject,
            draft.occurred_at,
            now,
            draft.by or "referee",
            None,
        )
    with ledger.reading() as connection:
        assert list(verify_log(ledger, connection)) == []


def refuse_recheck(*arguments: Any) -> list[tuple[int, Rejection]]:
    return [(0, Rejection("still-needed", "asked"))]


def test_plain_event_takes_no_lock(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain event is appended without taking the lock, and is not checked again if the head has not moved."""

    def fail_on_lock(*arguments: Any) -> None:
        raise AssertionError("took the lock")

    monkeypatch.setattr(ledger.dialect, "lock_and_read_head", fail_on_lock)
    assert append(ledger, [build_registration("anna")], by="referee", clock=lambda: 5).appended == 1
    assert append(ledger, [build_past_game("g-1", "anna", "ben")], by="referee", clock=lambda: 5).appended == 1
    # `absent_at=2`: the event was checked when the head was at position 2
    assert (
        append(
            ledger, [build_registration("ben")], by="referee", clock=lambda: 5, recheck=refuse_recheck, absent_at=2
        ).appended
        == 1
    )


@pytest.mark.parametrize(
    "draft",
    [
        build_registration("anna"),
        build_registration("anna", 7),
        build_past_game("g-1", "anna", "ben"),
        build_past_game("g-1", "ben", "anna"),
        build_past_game("g-1", "anna", "ben", event_id="other"),
        build_past_game("g-2", "anna", "ben", event_id="anna"),
        build_registration("game:g-1"),
    ],
)
def test_duplicate_gives_same_result(ledger: Ledger, draft: Draft) -> None:
    """An id or game that already exists gives the same result as in several statements."""
    append(ledger, [build_registration("anna"), build_past_game("g-1", "anna", "ben")], by="referee", clock=lambda: 5)
    result = append(ledger, [draft], by="referee", clock=lambda: 5)

    assert result == append_by_statements(ledger, [draft], by="referee", clock=lambda: 5)
    assert (result.appended, len(load_rows(ledger))) == (0, 2)


def test_changed_head_is_validated_again(ledger: Ledger) -> None:
    """When others have appended since the check, the event is validated again."""
    append(ledger, [build_registration("anna")], by="referee", clock=lambda: 5)
    result = append(
        ledger, [build_registration("ben")], by="referee", clock=lambda: 5, recheck=refuse_recheck, absent_at=0
    )

    assert [rejection.message for _, rejection in result.refused] == ["asked"]
    assert len(load_rows(ledger)) == 1


def test_slow_clock_keeps_head_time(ledger: Ledger) -> None:
    """With the clock a little behind, the event is recorded at the time of the head."""
    append(ledger, [build_registration("anna")], by="referee", clock=lambda: 9)

    assert append(ledger, [build_registration("ben")], by="referee", clock=lambda: 4).head.recorded_at == 9
    assert [row.recorded_at for row in load_rows(ledger)] == [9, 9]
