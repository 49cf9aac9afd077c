"""Making ledgers from Python: in a file, in a database, or in memory for as long as it is open; and an example."""

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import BadArgument, LedgerExists, NoLedger, NotALedger
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import zone as check_zone
from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store import opening
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.admission.proposals import head_after, propose, propose_files
from ratings_ledger.projections.admission.publishing_rulesets import ruleset_items
from ratings_ledger.projections.rulesets.shipped_rulesets import shipped_texts_named
from ratings_ledger.projections.rulesets.versions import RulesetProblem, read_ruleset, read_toml

MEMORY = ":memory:"
# a folder in memory, where the system has one
MEMORY_FOLDER = "/dev/shm"
EXAMPLES = Path(__file__).parent / "examples"

# a ruleset as TOML, as a file of it, as the tables in it, or the name of a shipped one
RulesetSource = str | os.PathLike[str] | Mapping[str, object]


def make_ledger(
    name: str, zone: str | None, rulesets: Collection[RulesetSource], by: str, *, exists: bool = False
) -> str:
    """Make a ledger with a home zone and rulesets; return its path or URL, without it being open.

    Everything is checked before anything is made. With `exists`, a ledger that is there already is fine. Raises
    `LedgerExists`, `BadArgument`, `Refused`, `NotALedger`, `StoreUnavailable`.
    """
    # only here: it needs Alembic, which nothing else does
    from ratings_ledger.ledger.store.upgrading import upgrade

    if zone is not None:
        try:
            check_zone(zone)
        except Refused as problem:
            raise BadArgument(problem.message, "zone") from None
    wanted = read_rulesets(rulesets, zone or "UTC")
    store = opening.connect(name, create=True)
    was_there = store.file is not None and Path(store.file).exists()
    if revision_of(store) is not None:
        if not exists:
            raise LedgerExists(f"there is a ledger at {store.location} already; open it with: ratings_ledger.open")
        return name
    try:
        upgrade(name)
        made = opening.open_ledger(name)
        at = format_instant(clock.now())
        if zone is not None:
            event = {"type": "ledger.zone_set", "occurred_at": at, "data": {"zone": zone}}
            head_after(propose(made, [event], ImportPolicy(by)).append())
        publish_rulesets(made, wanted, by)
    except BaseException:
        if store.file is not None and not was_there:  # nothing is half made
            Path(store.file).unlink(missing_ok=True)
        raise
    return name


def revision_of(store: Ledger) -> str | None:
    """Return the schema of a store, or None if it holds no ledger."""
    with store.reading() as connection:
        return opening.schema_revision(connection)


def upgrade_ledger(name: str) -> None:
    """Bring a ledger to the schema of this program. Raises `NoLedger`, `NotALedger`, `StoreUnavailable`."""
    from ratings_ledger.ledger.store.upgrading import upgrade

    store = opening.connect(name)
    if revision_of(store) is None:
        raise NoLedger(f"{store.location} holds no ledger; make one there with: ratings_ledger.create")
    upgrade(name)


def open_store(name: str) -> Ledger:
    """Open a ledger; for one with an older schema, say what to call. Raises as `open_ledger` does."""
    try:
        return opening.open_ledger(name)
    except NotALedger as problem:
        if problem.reason == "old-schema":
            raise NotALedger(f"{problem}; or from Python: ratings_ledger.upgrade({name!r})", "old-schema") from None
        raise


def read_rulesets(sources: Collection[RulesetSource], zone: str) -> list[Ruleset]:
    """Return rulesets as they were given; a shipped one that leaves its time zone open gets this one.

    Raises `BadArgument` for what is no ruleset, with everything that is wrong with it, and for a shipped one that is
    not there; `Refused` (bad-slug) for what cannot be a game's name.
    """
    return [ruleset for source in sources for ruleset in _read_source(source, zone)]


def _read_source(source: RulesetSource, zone: str) -> list[Ruleset]:
    if isinstance(source, Mapping):
        if not all(isinstance(key, str) for key in source):
            raise BadArgument("the keys of a ruleset are texts", "ruleset")
        return [_accepted(*read_ruleset(dict(source)))]
    if isinstance(source, os.PathLike):
        try:
            return [_accepted(*read_toml(Path(source).read_text(encoding="utf-8")))]
        except (OSError, UnicodeDecodeError) as problem:
            raise BadArgument(f"{os.fspath(source)} cannot be read: {problem}", "ruleset") from None
    if not isinstance(source, str):
        told = "TOML, the path of a file of it, its tables, or the name of a shipped one such as 'elo-chess'"
        raise BadArgument(f"a ruleset is {told}, not {type(source).__name__}", "ruleset")
    if "=" in source or "\n" in source:
        return [_accepted(*read_toml(source))]
    return [_accepted(*read_toml(text)) for text in shipped_texts_named(source, zone)]


def _accepted(ruleset: Ruleset | None, problems: Collection[RulesetProblem]) -> Ruleset:
    """Return a ruleset without problems. Raises `BadArgument` with all of them."""
    if ruleset is None:
        told = (f"{problem.key}: {problem.message}" if problem.key else problem.message for problem in problems)
        raise BadArgument("; ".join(told), "ruleset")
    return ruleset


def publish_rulesets(ledger: Ledger, rulesets: Collection[Ruleset], by: str) -> list[str]:
    """Publish rulesets in one transaction; return the names of the versions that are new. Raises `Refused`."""
    new = list[str]()

    def note(line: int, event_id: str, appended: bool) -> None:
        if appended:
            new.append(event_id.removeprefix("ruleset:"))

    items = ruleset_items(ledger, [("", ruleset) for ruleset in rulesets])
    head_after(propose(ledger, items, ImportPolicy(by), on_stored=note).append())
    return new


def temporary_place() -> tuple[str, Callable[[], object]]:
    """Return a path for a ledger in memory, and a function that removes what is there.

    Each connection to SQLite's own `:memory:` has a database to itself; a file in memory is one ledger for all threads.
    """
    parent = MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK | os.X_OK) else None
    folder, owner = tempfile.mkdtemp(prefix="ratings-ledger-", dir=parent), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked process leaves it to its parent
            shutil.rmtree(folder, ignore_errors=True)

    return os.path.join(folder, "ratings.db"), remove


def fill_example(ledger: Ledger) -> None:
    """Record a club's season at three games, with a late game and a correction, in a ledger that has their rulesets."""
    policy = ImportPolicy("mira")
    for file, fixed in (
        ("winter-league.csv", {"game": "catan"}),
        ("late-game.jsonl", {}),
        ("magnate-night.jsonl", {}),
        ("b5-season.jsonl", {}),
    ):
        entries = read_items(str(EXAMPLES / file), TableOptions(zone="Europe/Berlin", fixed=fixed))
        head_after(propose_files(ledger, entries, policy).append())
