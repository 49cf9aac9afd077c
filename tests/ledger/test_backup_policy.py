"""What `backup make --keep` drops: never the newest, and of days, weeks and months only what others stand for."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from ratings_ledger.ledger.backups.backup_folder import Backup, parse_policy, select_expired
from ratings_ledger.ledger.events.canonical import EPOCH, MICROSECOND
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.exports import Place


def made(*times: str) -> list[Backup]:
    """Backups made at these times, each one position further than the one before."""
    return [backup(number, datetime.fromisoformat(time)) for number, time in enumerate(times, 1)]


def backup(position: int, time: datetime) -> Backup:
    since = (time.replace(tzinfo=time.tzinfo or UTC) - EPOCH) // MICROSECOND
    return Backup(f"{position}", "ledger", Place(position, ZERO), since, 1)


def dropped(backups: list[Backup], policy: str) -> list[int]:
    """The positions of what a policy drops."""
    return [one.head.position for one in select_expired(backups, parse_policy(policy))]


def test_last_backup_of_day_is_kept() -> None:
    """Of several backups a day, the last of each kept day remains."""
    backups = made("2026-03-01T03:00", "2026-03-01T04:00", "2026-03-02T03:00", "2026-03-03T03:00", "2026-03-03T23:59")
    assert dropped(backups, "3d") == [1, 4]
    assert dropped(backups, "2d") == [1, 2, 4]
    assert dropped(backups, "1d") == [1, 2, 3, 4]


def test_days_without_backups_do_not_count() -> None:
    """Days without backups do not count, so nothing is dropped for want of new backups."""
    backups = made("2025-01-01T03:00", "2025-06-01T03:00", "2026-01-01T03:00")
    assert dropped(backups, "3d") == []
    assert dropped(backups, "2d,9w,9m") == []


def test_weeks_and_months_count_separately() -> None:
    # Sunday, Monday, Sunday, Monday; the last two in another month
    """Weeks start on Monday, and weeks and months are counted separately."""
    backups = made("2026-02-22T03:00", "2026-02-23T03:00", "2026-03-01T03:00", "2026-03-02T03:00")
    assert dropped(backups, "2w") == [1, 2]
    assert dropped(backups, "3w") == [2]
    assert dropped(backups, "2m") == [1, 3]
    assert dropped(backups, "1d,2w,2m") == [1]


def test_week_may_span_the_new_year() -> None:
    """The first days of a year may belong to the last week of the previous year."""
    backups = made("2026-12-28T03:00", "2027-01-01T03:00", "2027-01-03T23:59", "2027-01-04T00:00")
    assert dropped(backups, "2w") == [1, 2]


def test_days_are_in_utc() -> None:
    """Days are those of UTC, whatever daylight saving time does.

    In Berlin, the nights when clocks change make days of 23 and 25 hours; days here have 24.
    """
    backups = made(
        "2026-03-29T01:30+01:00", "2026-03-29T03:30+02:00", "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"
    )
    assert dropped(backups, "2d") == [1, 3]
    assert dropped(made("2026-03-29T01:30+02:00", "2026-03-29T02:30+02:00"), "2d") == []


def test_newest_survive_a_clock_set_back() -> None:
    """With a clock set back, the backup just made and the one that reaches furthest are both kept."""
    backups = made("2026-03-01T03:00", "2026-03-02T03:00", "1970-01-01T00:00")
    assert dropped(backups, "1d") == [1]
    older_copy = [*backups[:2], backup(1, datetime(2026, 3, 3, tzinfo=UTC))]
    assert dropped(older_copy, "1d") == [1]


def test_future_backup_takes_one_place() -> None:
    """A backup made while the clock was ahead takes one place in the policy and no more."""
    backups = made("2026-03-01T03:00", "2090-01-01T03:00", "2026-03-02T03:00", "2026-03-03T03:00")
    assert dropped(backups, "2d") == [1, 3]
    assert dropped(backups, "3d") == [1]


POLICIES = ("1d", "14d", "3d,2w", "2w,2m", "14d,8w,12m", "1m")


def drawn(chance: random.Random) -> Iterator[Backup]:
    """Backups whose dates go on, jump ahead and go back, and whose positions mostly grow."""
    time, position = datetime(2026, 1, 1, tzinfo=UTC), 0
    for _ in range(chance.randint(1, 60)):
        time += timedelta(hours=chance.choice([1, 24, 24, 24, 36, 24 * 40, -24 * 3, -24 * 400]))
        position = max(0, position + chance.choice([0, 1, 5, 5, -20]))
        yield backup(position, time)


def plainly_kept(backups: list[Backup], policy: str) -> set[int]:
    """The numbers of what a policy keeps, told as the docs tell it."""
    formats = {"d": "%Y-%m-%d", "w": "%G-%V", "m": "%Y-%m"}
    order = sorted(range(len(backups)), key=lambda number: (backups[number].head.position, number))
    keep = {len(backups) - 1, order[-1]}
    for part in policy.split(","):
        periods = [(EPOCH + one.made_at * MICROSECOND).strftime(formats[part[-1]]) for one in backups]
        for period in sorted(set(periods), reverse=True)[: int(part[:-1])]:
            keep.add([number for number in order if periods[number] == period][-1])
    return keep


@pytest.mark.parametrize("policy", POLICIES)
def test_random_backups_follow_the_policy(policy: str, at_length: bool) -> None:
    """For random dates, the kept backups are those of a plain model and always include the newest."""
    for seed in range(2_000 if at_length else 200):
        backups = list(drawn(random.Random(seed)))
        gone = [id(one) for one in select_expired(backups, parse_policy(policy))]
        kept = {number for number, one in enumerate(backups) if id(one) not in gone}
        assert kept == plainly_kept(backups, policy), seed
        assert len(backups) - 1 in kept
        # who drops again drops nothing more
        assert select_expired([backups[number] for number in sorted(kept)], parse_policy(policy)) == [], seed


@pytest.mark.parametrize(
    "policy", ["", "14", "d", "0d", "14d,", "14d,3d", "-1d", "14 d", "14y", "1.5w", "99999d", "１d"]
)
def test_malformed_policy_is_refused(policy: str) -> None:
    """A malformed policy is refused with an example of a good one."""
    with pytest.raises(ValueError, match="such as 14d,8w,12m"):
        parse_policy(policy)
