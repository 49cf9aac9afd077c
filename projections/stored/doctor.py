"""Check the installation and the settings on which the safety of a ledger depends, and suggest fixes."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.own_files import find_cache_folder
from ratings_ledger.ledger.rejections import count
from ratings_ledger.ledger.store.catalogue import find_object_differences
from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION
from ratings_ledger.projections.facts import column_cache
from ratings_ledger.projections.facts.decoding import CACHED_EVENTS
from ratings_ledger.projections.queries.results import Result, Rows
from ratings_ledger.projections.rulesets.registry import find_contested_rules
from ratings_ledger.projections.stored.status import LedgerStatus, find_run_command, read_ledger_status

WRONG = "WRONG"
RESTORE = (
    "ratings export events -o all.jsonl; ratings --db NEW init --no-rules; ratings --db NEW import --restore all.jsonl"
)
RESTORE_GUARDS = f"run: ratings verify; {RESTORE}"
RESTORE_OBJECTS = f"missing view: ratings upgrade; other differences: {RESTORE}"
# the packages of the extra `fast`, with their benefit as in docs/performance.md
FAST_PACKAGES = {"numba": "replays long histories ten times as fast and more"}
# how many failed ladders a note names at most
NAMED_LADDERS_MAX = 5


@dataclass(frozen=True, slots=True)
class Check(Result):
    """A check: `state` is ok, WRONG or - (absent and not needed), `note` has details, `remedy` the fix of an error."""

    state: str
    what: str
    value: str
    note: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Checks(Rows[Check]):
    """The checks of an installation and a ledger."""

    rows: tuple[Check, ...]


def run_checks(ledger: Ledger) -> Checks:
    """Check the installed programs, the store, the rights, the cache, the jobs and the clock.

    Raises `StoreUnavailable`.
    """
    rows: list[Check] = [
        Check("ok", "ratings-ledger", version("ratings-ledger")),
        Check("ok", "python", platform.python_version()),
        *(
            Check("ok", name, version(name))
            for name in ("sqlalchemy", "alembic", "pydantic", "click", "rich", "tzdata")
        ),
        _check_optional("psycopg", "needed for a ledger in PostgreSQL", "postgres"),
        *(_check_optional(name, gain, "fast") for name, gain in FAST_PACKAGES.items()),
        Check("ok", "schema", SCHEMA_REVISION),
        *(
            Check(
                WRONG, "rule", f"{name} is registered twice", message, "uninstall the package that must not register it"
            )
            for name, message in find_contested_rules().items()
        ),
    ]
    with ledger.reading() as connection:
        latest = head(connection)
        rows += [
            Check("ok", setting.name, setting.value)
            if setting.is_safe
            else Check(WRONG, setting.name, setting.value, f"should be {setting.safe_value}", setting.remedy)
            for setting in ledger.dialect.read_settings(connection)
        ]
        guards = ledger.dialect.find_altered_guards(connection)
        rows.append(
            Check(WRONG, "guards", "missing or altered", ", ".join(guards), RESTORE_GUARDS)
            if guards
            else Check("ok", "guards", "in place")
        )
        rows += [*_check_rights(connection), _check_objects(connection)]
        rows.append(_check_cache(connection, latest.position))
        rows += _check_jobs(read_ledger_status(ledger, connection))
    now = clock.now()
    if clock.is_ahead(latest.recorded_at, now):
        delay = f"{(latest.recorded_at - now) / 1_000_000:.0f} s behind the last event"
        remedy = "set this machine's clock; if the last event's time is wrong, record with --ignore-clock"
        rows.append(Check(WRONG, "clock", delay, "nothing is appended until the clock has caught up", remedy))
    else:
        rows.append(Check("ok", "clock", format_instant(now)))
    return Checks(tuple(rows))


def _check_objects(connection: Connection) -> Check:
    """Check that the tables and views equal those that this program creates."""
    try:
        differences = [difference for difference in find_object_differences(connection) if difference is not None]
    except DBAPIError as error:
        failure = dialect_of(connection).translate_error(error.orig or error, "")
        if failure is None or failure.reason != "no-right":
            raise
        remedy = "first carry out the remedies of the rows named rights"
        return Check(WRONG, "objects", "a right is missing", str(error.orig).strip(), remedy)
    if not differences:
        return Check("ok", "objects", "as this program creates them")
    return Check(WRONG, "objects", count(len(differences), "difference"), "; ".join(differences), RESTORE_OBJECTS)


def _check_rights(connection: Connection) -> list[Check]:
    """Check that each role has exactly the documented rights."""
    user, problems = dialect_of(connection).find_rights_problems(connection)
    if not problems:
        return [Check("ok", "rights", f"as documented, checked as {user}")]
    return [Check(WRONG, "rights", *problem) for problem in problems]


def _check_cache(connection: Connection, newest: int) -> Check:
    """Report the folder in which the columns of long histories are cached, and the position that the cache reaches."""
    cache = column_cache.find_cache(connection, newest)
    if cache is None:
        folder = find_cache_folder()
        if folder is None:
            return Check("-", "cache", "none", "this account has no home folder", "set XDG_CACHE_HOME to a folder")
        return Check("-", "cache", "none", "a cache file cannot be read", f"make the files in {folder} readable")
    until = f"up to position {cache.position}" if cache.position else "nothing yet"
    note = until if newest >= CACHED_EVENTS else f"kept from {CACHED_EVENTS:,} events on"
    return Check("ok", "cache", note, f"{cache.root} may be deleted at any time")


def _check_jobs(state: LedgerStatus) -> Iterator[Check]:
    """Check the status of a ledger: missing rules, failed ladders, times in the future, and failed runs."""
    for missing in state.rules_missing:
        yield Check(
            WRONG,
            "rule",
            f"{missing.rule} is not installed",
            f"{missing.ruleset} needs this rule; its ladders stay as they are",
            f"install the package with the rule, or: ratings void --event {missing.position} --reason TEXT",
        )
    failed = [stale.ladder for stale in state.stale if stale.why == "failed"]
    if state.generations or failed:
        more = f" and {len(failed) - NAMED_LADDERS_MAX:,} more" if len(failed) > NAMED_LADDERS_MAX else ""
        names = ", ".join(failed[:NAMED_LADDERS_MAX]) + more
        note = f"the rule failed for {names}; any earlier standings stay" if failed else ""
        stale = count(len(state.stale), "stale ladder") if state.stale else "as of the last rebuild"
        yield Check(
            WRONG if failed else "ok",
            "stored standings",
            stale,
            note,
            "ratings status shows why; when the rule works again: ratings rebuild" * bool(failed),
        )
    for ahead in state.dated_ahead:
        yield Check(
            WRONG,
            "clock",
            f"{ahead.name} is dated {ahead.dated}",
            "in the future by this machine's clock",
            f"correct the clock, or if it is right: {ahead.remedy}",
        )
    for kind, runs in state.runs.items():
        has_failed = runs.ended is not None and runs.ended.has_failed
        outcome, reason = (runs.ended if has_failed and runs.ended else runs.last).describe(state.times)
        remedy = find_run_command(kind) if has_failed else ""
        yield Check(WRONG if has_failed else "ok", f"last {kind}", outcome, reason, remedy)


def _check_optional(package: str, use: str, extra: str) -> Check:
    try:
        return Check("ok", package, version(package))
    except PackageNotFoundError:
        return Check("-", package, "not installed", use, f"pip install 'ratings-ledger[{extra}]'")
