"""Batches: an import records the positions that each of its files brought."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import build_numbered_game
from stores import make_empty_ledger
from thresholds import set_thresholds

from ratings_ledger import Refused, StoreUnavailable
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.batches import ALIASES_MAX, NAME_MAX, RANGES_MAX, SOURCE_MAX, build_batch_events
from ratings_ledger.ledger.events.records import build_record
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.validation.batches import read_batches

Ratings = Callable[..., Any]


def build_table(*game_ids: str) -> str:
    """Return a table with a game for each id."""
    return "game_id,occurred_at,game,1st,2nd\n" + "".join(
        f"{game_id},2024-01-02T10:00:00Z,catan,anna,ben\n" for game_id in game_ids
    )


def import_files(ratings: Ratings, db: str, *files: object, **options: Any) -> dict[str, Any]:
    """Import files, and return the exit code, stderr and the printed JSON."""
    result = ratings("import", *files, "--format", "json", "--by", "mira", db=db, **options)
    return {"exit_code": result.exit_code, "stderr": result.stderr, **json.loads(result.stdout)}


def list_batches(db: str) -> list[tuple[int, str, list[list[int]], str]]:
    """Return the position, name, ranges and source of each batch."""
    with open_ledger(db).reading() as connection:
        return [(batch.position, batch.name, batch.ranges, batch.source) for batch in read_batches(connection)]


def test_import_records_a_batch_per_file(ledger_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """Each file with new events has a batch after all events, with the hash of the file's bytes, even compressed."""
    (tmp_path / "one.csv").write_text(build_table("g1", "g2"))
    (tmp_path / "two.csv.gz").write_bytes(gzip.compress(build_table("g2", "g3").encode()))
    (tmp_path / "old.csv").write_text(build_table("g1"))
    files = [str(tmp_path / name) for name in ("one.csv", "two.csv.gz", "old.csv")]
    summary = import_files(ratings, ledger_url, *files)
    assert (summary["appended"], summary["existing"], summary["head"]) == (3, 2, 5)
    assert list_batches(ledger_url) == [(4, "one.csv", [[1, 2]], files[0]), (5, "two.csv.gz", [[3, 3]], files[1])]
    with open_ledger(ledger_url).reading() as connection:
        for batch in read_batches(connection):
            assert batch.sha256 == hashlib.sha256(Path(batch.source).read_bytes()).hexdigest()
            assert batch.by == "mira"
    assert ratings("verify", db=ledger_url).exit_code == 0
    log = ratings("log", "--type", "import.recorded", db=ledger_url).stdout
    assert "one.csv: positions 1 to 2" in log
    assert "two.csv.gz: position 3" in log


def test_nothing_new_records_no_batch(ledger_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """An import that appends no event, is a dry run, or is refused records no batch.

    With `--keep-going`, the accepted events of a file are a batch.
    """
    (tmp_path / "one.csv").write_text(build_table("g1"))
    assert import_files(ratings, ledger_url, tmp_path / "one.csv", "--dry-run")["head"] == 0
    assert import_files(ratings, ledger_url, tmp_path / "one.csv")["head"] == 2
    assert import_files(ratings, ledger_url, tmp_path / "one.csv")["head"] == 2
    (tmp_path / "two.csv").write_text(build_table("g2") + "g3,2024-01-02T10:00:00Z,catan,anna,anna\n")
    assert (import_files(ratings, ledger_url, tmp_path / "two.csv")["exit_code"], len(list_batches(ledger_url))) == (
        1,
        1,
    )
    assert import_files(ratings, ledger_url, tmp_path / "two.csv", "--keep-going")["head"] == 4
    assert list_batches(ledger_url)[-1][:3] == (4, "two.csv", [[3, 3]])


def test_standard_input_is_a_batch(ledger_url: str, ratings: Ratings) -> None:
    """An import from standard input is a batch named -, and a recorded game is not a batch."""
    content = build_table("g1")
    import_files(ratings, ledger_url, "-", input=content)
    assert list_batches(ledger_url) == [(2, "-", [[1, 1]], "-")]
    with open_ledger(ledger_url).reading() as connection:
        assert read_batches(connection)[0].sha256 == hashlib.sha256(content.encode()).hexdigest()
    ratings("record", "--game", "catan", "--game-id", "g2", "anna", "ben", db=ledger_url)
    assert len(list_batches(ledger_url)) == 1


@pytest.mark.parametrize("name", ["\u202ereversed.csv", "line\nbreak.csv", "e\u0301.csv", f"{'ä' * 120}.csv", " .csv"])
def test_any_file_name_can_be_a_batch(
    name: str, copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """A file with any name can be imported, and the name of its batch is printable."""
    db = copy_ledger_file(make_empty_ledger)
    (tmp_path / name).write_text(build_table("g1"))
    assert import_files(ratings, db, tmp_path / name)["head"] == 2
    assert list_batches(db)[0][1].isprintable()
    assert ratings("verify", db=db).exit_code == 0


def append_concurrently(ledger: Ledger, event_id: str) -> None:
    """Append a game with this event id, as another process would."""
    append(ledger, [build_numbered_game("other")._replace(event_id=event_id)], by="ben", clock=clock.now)


def read_file_items(*names: str) -> list[Any]:
    """Return the items of files."""
    return [item for name in names for item in read_items(name, TableOptions())]


def test_an_import_in_chunks_is_one_batch(ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Consecutive chunks are one range, and an event that another process appends in between is in no range."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(build_table("g1", "g2", "g3", "g4", "g5"))
    ledger = open_ledger(ledger_url)
    plan = FileIntake(ledger, read_file_items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True)

    def append_between_chunks(appended: int) -> None:
        if appended == 4:
            append_concurrently(ledger, "game:other")

    assert plan.append(append_between_chunks).appended == 5
    assert [batch[:3] for batch in list_batches(ledger_url)] == [(7, "a.csv", [[1, 4], [6, 6]])]


def test_an_import_stopped_midway_is_completed(
    ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that stops between two chunks leaves games without a batch; a second run records its own batch."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(build_table("g1", "g2", "g3"))
    ledger = open_ledger(ledger_url)

    def stop(appended: int) -> None:
        raise StoreUnavailable("the store is gone")

    with pytest.raises(StoreUnavailable):
        FileIntake(ledger, read_file_items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True).append(stop)
    assert list_batches(ledger_url) == []
    result = FileIntake(ledger, read_file_items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True).append()
    assert (result.appended, result.existing) == (1, 2)
    assert [batch[:3] for batch in list_batches(ledger_url)] == [(4, "a.csv", [[3, 3]])]


def test_a_last_chunk_refused_leaves_a_batch(ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last chunk is refused because another process used a game's id, the other chunks are a batch."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(build_table("g1", "g2", "g3"))
    ledger = open_ledger(ledger_url)
    plan = FileIntake(ledger, read_file_items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True)
    result = plan.append(lambda appended: append_concurrently(ledger, "game:g3"))
    assert (result.appended, [rejection.code for rejection in result.rejected]) == (2, ["id-conflict"])
    assert result.head is not None
    assert result.head.position == 4
    assert [batch[:3] for batch in list_batches(ledger_url)] == [(4, "a.csv", [[1, 2]])]


@pytest.mark.slow_cases
def test_an_export_keeps_its_batches(
    ledger_url: str, copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """An import of an export into an empty ledger keeps its batches; another ledger leaves out the batches and their
    withdrawals, with a note."""
    (tmp_path / "a.csv").write_text(build_table("g1", "g2"))
    import_files(ratings, ledger_url, tmp_path / "a.csv")
    ratings("void", "--event", "3", "--reason", "an example", db=ledger_url)
    import_files(ratings, ledger_url, "-", input=build_table("g3"))
    ratings("export", "events", "-o", tmp_path / "all.jsonl", db=ledger_url)

    empty_db = copy_ledger_file(make_empty_ledger, name="empty.db")
    summary = import_files(ratings, empty_db, tmp_path / "all.jsonl")
    assert (summary["exit_code"], summary["appended"], summary["head"]) == (0, 6, 7)
    assert [batch[:3] for batch in list_batches(empty_db)] == [(6, "-", [[5, 5]]), (7, "all.jsonl", [[1, 6]])]

    other_db = copy_ledger_file(make_empty_ledger, name="other.db")
    ratings("import", "-", db=other_db, input=build_table("g0"))
    summary = import_files(ratings, other_db, tmp_path / "all.jsonl")
    assert (summary["exit_code"], summary["appended"], summary["existing"], summary["head"]) == (0, 3, 0, 6)
    second_import = ratings("import", tmp_path / "all.jsonl", db=other_db)
    assert "left out 3 events about batches of another ledger" in second_import.stderr
    assert [batch[:3] for batch in list_batches(other_db)] == [(2, "-", [[1, 1]]), (6, "all.jsonl", [[3, 5]])]
    assert import_files(ratings, ledger_url, tmp_path / "all.jsonl")["existing"] == 6
    for db in (empty_db, other_db):
        assert ratings("verify", db=db).exit_code == 0


def test_only_an_import_records_a_batch(ledger_url: str, ratings: Ratings) -> None:
    """An event of the type `import.recorded` is refused as input, whether or not its range holds its own position."""
    ratings("record", "--game", "catan", "--game-id", "g1", "anna", "ben", db=ledger_url)
    data = {"name": "a", "ranges": [[1, 1]], "source": "a", "sha256": "0" * 64}
    event = json.dumps({"type": "import.recorded", "occurred_at": "2024-01-01T00:00:00Z", "data": data, "position": 2})
    assert "bad-batch" in ratings("record", db=ledger_url, input=event).stderr
    event_ahead = event.replace("[[1, 1]]", "[[1, 2]]")
    assert "bad-batch" in ratings("import", "-", db=ledger_url, input=event_ahead).stderr


@pytest.mark.parametrize("ranges", [[], [[2, 1]], [[1, 2], [2, 3]], [[3, 3], [1, 1]], [[0, 1]], [[1]], [[1, 2, 3]]])
def test_malformed_ranges_are_refused(ranges: list[list[int]]) -> None:
    """Ranges that are empty, out of order, overlapping or malformed are refused."""
    data = {"name": "a", "ranges": ranges, "source": "a", "sha256": "0" * 64}
    with pytest.raises(Refused, match="ranges"):
        read_event({"type": "import.recorded", "occurred_at": "2024-01-01T00:00:00Z", "data": data})


@pytest.mark.parametrize("alias_count", [0, ALIASES_MAX + 1])
def test_largest_batches_fit_into_records(alias_count: int) -> None:
    """A batch with the longest names and the most ranges and aliases fits in records, with every range once."""
    ranges = [[10**15 + 2 * number, 10**15 + 2 * number] for number in range(RANGES_MAX + 1)]
    aliases = {f"{number:03}{chr(0x1F600) * 61}": chr(0x1F601) * 64 for number in range(alias_count)}
    path = chr(0x1F602) * SOURCE_MAX
    parts = [
        read_event({"type": "import.recorded", "occurred_at": "2024-01-01T00:00:00Z", "data": data})
        for data in build_batch_events(
            path, ranges, sha256="0" * 64, sheet="S" * 31, name="n" * NAME_MAX, aliases=aliases
        )
    ]
    for draft, _ in parts:
        build_record(draft, 10**15, 0, "mira", None)
    assert [part_range for _, data in parts for part_range in data["ranges"]] == ranges
    assert [len(data.get("aliases", ())) for _, data in parts] == ([0, 0] if not alias_count else [ALIASES_MAX, 0])
