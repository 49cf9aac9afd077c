"""One plain event is appended in one step: the same row as in several, and none where there is doubt."""

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


def draft(name: str, occurred_at: int = 0, **members: Any) -> Draft:
    """Somebody is registered; the id of the event is his name, too."""
    event = {"type": "player.registered", "id": name, "occurred_at": "2010-03-05T19:30:00Z", "data": {"player": "x"}}
    return read_event({**event, **members})[0]._replace(occurred_at=occurred_at)


game = partial(build_game_draft, at="2010-03-05T19:30:00Z", extra={"note": '"\\\n\t'})


def rows(ledger: Ledger) -> list[EventRow]:
    with ledger.reading() as connection:
        found = connection.execute(text(f"SELECT {', '.join(EventRow._fields)} FROM events ORDER BY position")).all()
    return [EventRow(*row) for row in found]


def in_several(ledger: Ledger, *given: Any, **options: Any) -> AppendResult:
    """Append as if the store had no statement for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger.dialect, "append_one", lambda ledger, values: None)
        return append(ledger, *given, **options)


def named(chance: random.Random) -> str:
    name = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 4))).strip()
    return name if name.isprintable() or "\u200d" in name else "plain"


def test_any_script_is_stored_as_built(
    ledger: Ledger,
) -> None:
    """Events with text in any script, appended one by one, are stored exactly as built."""
    chance = random.Random(5)
    drafts: dict[str, Draft] = {}
    for number in range(150):
        name = f"{named(chance)}-{number}"
        one = game(name, "anna", f"{number}") if number % 2 else draft(name)
        by = f"{named(chance)}\n\t" if number % 3 == 0 else None
        drafts[one.event_id] = one._replace(occurred_at=chance.choice(TIMES), by=by)
    steps = [chance.choice((0, 1, 999_999, 1_000_000, 86_400_000_000)) for _ in drafts]
    for position, (one, now) in enumerate(zip(drafts.values(), accumulate(steps), strict=True), 1):
        done = append(ledger, [one], by="referee", clock=partial(int, now))
        last = rows(ledger)[-1]
        assert (done.appended, done.head) == (1, (position, bytes(last.chain_hash), now))
        assert last.record == build_record(one, position, now, one.by or "referee")
        assert last[:9] == (
            position, one.event_id, one.type, 1, one.subject, one.occurred_at, now, one.by or "referee", None,
        )  # fmt: skip
    with ledger.reading() as connection:
        assert list(verify_log(ledger, connection)) == []


def refuse(*given: Any) -> list[tuple[int, Rejection]]:
    return [(0, Rejection("still-needed", "asked"))]


def test_plain_event_takes_one_step(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain event is appended in one step, without asking for the lock."""

    def never(*given: Any) -> None:
        raise AssertionError("asked for the lock")

    monkeypatch.setattr(ledger.dialect, "lock_and_read_head", never)
    assert append(ledger, [draft("anna")], by="referee", clock=lambda: 5).appended == 1
    assert append(ledger, [game("g-1", "anna", "ben")], by="referee", clock=lambda: 5).appended == 1
    # what was checked up to the head needs no second look
    assert append(ledger, [draft("ben")], by="referee", clock=lambda: 5, recheck=refuse, absent_at=2).appended == 1


@pytest.mark.parametrize(
    "again",
    [draft("anna"), draft("anna", 7), game("g-1", "anna", "ben"), game("g-1", "ben", "anna"),
     game("g-1", "anna", "ben", event_id="other"), game("g-2", "anna", "ben", event_id="anna"), draft("game:g-1")],
)  # fmt: skip
def test_duplicate_gives_same_result(ledger: Ledger, again: Draft) -> None:
    """An id or game that already exists gives the same result as in several statements."""
    append(ledger, [draft("anna"), game("g-1", "anna", "ben")], by="referee", clock=lambda: 5)
    done = append(ledger, [again], by="referee", clock=lambda: 5)

    assert done == in_several(ledger, [again], by="referee", clock=lambda: 5)
    assert (done.appended, len(rows(ledger))) == (0, 2)


def test_changed_head_is_validated_again(ledger: Ledger) -> None:
    """When others have appended since the check, the event is validated again."""
    append(ledger, [draft("anna")], by="referee", clock=lambda: 5)
    done = append(ledger, [draft("ben")], by="referee", clock=lambda: 5, recheck=refuse, absent_at=0)

    assert [rejection.message for _, rejection in done.refused] == ["asked"]
    assert len(rows(ledger)) == 1


def test_slow_clock_keeps_head_time(ledger: Ledger) -> None:
    """With the clock a little behind, the event is recorded at the time of the head."""
    append(ledger, [draft("anna")], by="referee", clock=lambda: 9)

    assert append(ledger, [draft("ben")], by="referee", clock=lambda: 4).head.recorded_at == 9
    assert [row.recorded_at for row in rows(ledger)] == [9, 9]
