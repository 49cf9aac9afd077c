"""Test which backups `backup make --keep` deletes.

It keeps the last backup, the one with the highest position, and the one with the highest position of each day, week
and month that the policy covers.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from ratings_ledger.ledger.backups.backup_folder import Backup, parse_policy, select_expired
from ratings_ledger.ledger.events.canonical import EPOCH, MICROSECOND
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.exports import ChainHead


def build_backups(*times: str) -> list[Backup]:
    """Return backups made at these times, at positions 1, 2, 3 ..."""
    return [build_backup(number, datetime.fromisoformat(time)) for number, time in enumerate(times, 1)]


def build_backup(position: int, time: datetime) -> Backup:
    made_at = (time.replace(tzinfo=time.tzinfo or UTC) - EPOCH) // MICROSECOND
    return Backup(f"{position}", "ledger", ChainHead(position, ZERO), made_at, 1)


def list_dropped_positions(backups: list[Backup], policy: str) -> list[int]:
    """Return the positions of the backups that a policy drops."""
    return [backup.head.position for backup in select_expired(backups, parse_policy(policy))]


def test_last_backup_of_day_is_kept() -> None:
    """The last backup of each kept day is kept, and the other backups are dropped."""
    backups = build_backups(
        "2026-03-01T03:00", "2026-03-01T04:00", "2026-03-02T03:00", "2026-03-03T03:00", "2026-03-03T23:59"
    )
    assert list_dropped_positions(backups, "3d") == [1, 4]
    assert list_dropped_positions(backups, "2d") == [1, 2, 4]
    assert list_dropped_positions(backups, "1d") == [1, 2, 3, 4]


def test_days_without_backups_do_not_count() -> None:
    """Days without backups do not count, so old backups stay until there are enough newer ones."""
    backups = build_backups("2025-01-01T03:00", "2025-06-01T03:00", "2026-01-01T03:00")
    assert list_dropped_positions(backups, "3d") == []
    assert list_dropped_positions(backups, "2d,9w,9m") == []


def test_weeks_and_months_count_separately() -> None:
    """Weeks start on Monday, and weeks and months are counted separately."""
    # Sunday, Monday, Sunday, Monday; the last two are in another month
    backups = build_backups("2026-02-22T03:00", "2026-02-23T03:00", "2026-03-01T03:00", "2026-03-02T03:00")
    assert list_dropped_positions(backups, "2w") == [1, 2]
    assert list_dropped_positions(backups, "3w") == [2]
    assert list_dropped_positions(backups, "2m") == [1, 3]
    assert list_dropped_positions(backups, "1d,2w,2m") == [1]


def test_week_may_span_the_new_year() -> None:
    """The first days of a year may belong to the last week of the previous year."""
    backups = build_backups("2026-12-28T03:00", "2027-01-01T03:00", "2027-01-03T23:59", "2027-01-04T00:00")
    assert list_dropped_positions(backups, "2w") == [1, 2]


def test_days_are_in_utc() -> None:
    """Days are days in UTC, regardless of daylight saving time.

    In Berlin, the nights when clocks change make days of 23 and 25 hours; days here have 24.
    """
    backups = build_backups(
        "2026-03-29T01:30+01:00", "2026-03-29T03:30+02:00", "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"
    )
    assert list_dropped_positions(backups, "2d") == [1, 3]
    assert list_dropped_positions(build_backups("2026-03-29T01:30+02:00", "2026-03-29T02:30+02:00"), "2d") == []


def test_last_and_highest_backups_are_always_kept() -> None:
    """The last backup and the one with the highest position are kept, even if the last one has an earlier date or fewer
    events."""
    backups = build_backups("2026-03-01T03:00", "2026-03-02T03:00", "1970-01-01T00:00")
    assert list_dropped_positions(backups, "1d") == [1]
    older_copy = [*backups[:2], build_backup(1, datetime(2026, 3, 3, tzinfo=UTC))]
    assert list_dropped_positions(older_copy, "1d") == [1]


def test_future_backup_counts_as_one_day() -> None:
    """A backup made while the clock was ahead counts as one of the days of the policy and no more."""
    backups = build_backups("2026-03-01T03:00", "2090-01-01T03:00", "2026-03-02T03:00", "2026-03-03T03:00")
    assert list_dropped_positions(backups, "2d") == [1, 3]
    assert list_dropped_positions(backups, "3d") == [1]


POLICIES = ("1d", "14d", "3d,2w", "2w,2m", "14d,8w,12m", "1m")


def draw_backups(rng: random.Random) -> Iterator[Backup]:
    """Yield backups whose dates advance, jump ahead and go back, and whose positions mostly grow."""
    time, position = datetime(2026, 1, 1, tzinfo=UTC), 0
    for _ in range(rng.randint(1, 60)):
        time += timedelta(hours=rng.choice([1, 24, 24, 24, 36, 24 * 40, -24 * 3, -24 * 400]))
        position = max(0, position + rng.choice([0, 1, 5, 5, -20]))
        yield build_backup(position, time)


def find_kept_naively(backups: list[Backup], policy: str) -> set[int]:
    """Return the indices of the backups that a policy keeps, as the documentation defines them."""
    formats = {"d": "%Y-%m-%d", "w": "%G-%V", "m": "%Y-%m"}
    order = sorted(range(len(backups)), key=lambda number: (backups[number].head.position, number))
    keep = {len(backups) - 1, order[-1]}
    for part in policy.split(","):
        periods = [(EPOCH + backup.made_at * MICROSECOND).strftime(formats[part[-1]]) for backup in backups]
        for period in sorted(set(periods), reverse=True)[: int(part[:-1])]:
            keep.add([number for number in order if periods[number] == period][-1])
    return keep


@pytest.mark.parametrize("policy", POLICIES)
def test_random_backups_follow_the_policy(policy: str, at_length: bool) -> None:
    """For random dates, the kept backups match a naive model and always include the last one."""
    for seed in range(2_000 if at_length else 200):
        backups = list(draw_backups(random.Random(seed)))
        expired_ids = [id(backup) for backup in select_expired(backups, parse_policy(policy))]
        kept_numbers = {number for number, backup in enumerate(backups) if id(backup) not in expired_ids}
        assert kept_numbers == find_kept_naively(backups, policy), seed
        assert len(backups) - 1 in kept_numbers
        # applying the policy again drops no more backups
        assert select_expired([backups[number] for number in sorted(kept_numbers)], parse_policy(policy)) == [], seed


@pytest.mark.parametrize(
    "policy", ["", "14", "d", "0d", "14d,", "14d,3d", "-1d", "14 d", "14y", "1.5w", "99999d", "１d"]
)
def test_malformed_policy_is_refused(policy: str) -> None:
    """A malformed policy is refused with an example of a good one."""
    with pytest.raises(ValueError, match="such as 14d,8w,12m"):
        parse_policy(policy)
