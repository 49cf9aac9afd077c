"""Batches: what an import took from each file is recorded after it, and where that stands in the log."""

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


def games(*names: str) -> str:
    """A table with a game of each name."""
    return "game_id,occurred_at,game,1st,2nd\n" + "".join(f"{n},2024-01-02T10:00:00Z,catan,anna,ben\n" for n in names)


def told(ratings: Ratings, db: str, *files: object, **given: Any) -> dict[str, Any]:
    """What an import of files says."""
    found = ratings("import", *files, "--format", "json", "--by", "mira", db=db, **given)
    return {"exit_code": found.exit_code, "stderr": found.stderr, **json.loads(found.stdout)}


def recorded(db: str) -> list[tuple[int, str, list[list[int]], str]]:
    """(position, name, ranges, source) of each batch."""
    with open_ledger(db).reading() as connection:
        return [(one.position, one.name, one.ranges, one.source) for one in read_batches(connection)]


def test_import_records_a_batch_per_file(ledger_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """Each file that brought something has a batch behind all of them, with the hash of its bytes, also compressed."""
    (tmp_path / "one.csv").write_text(games("g1", "g2"))
    (tmp_path / "two.csv.gz").write_bytes(gzip.compress(games("g2", "g3").encode()))
    (tmp_path / "old.csv").write_text(games("g1"))
    files = [str(tmp_path / name) for name in ("one.csv", "two.csv.gz", "old.csv")]
    done = told(ratings, ledger_url, *files)
    assert (done["appended"], done["existing"], done["head"]) == (3, 2, 5)
    assert recorded(ledger_url) == [(4, "one.csv", [[1, 2]], files[0]), (5, "two.csv.gz", [[3, 3]], files[1])]
    with open_ledger(ledger_url).reading() as connection:
        for one in read_batches(connection):
            assert one.sha256 == hashlib.sha256(Path(one.source).read_bytes()).hexdigest()
            assert one.by == "mira"
    assert ratings("verify", db=ledger_url).exit_code == 0
    shown = ratings("log", "--type", "import.recorded", db=ledger_url).stdout
    assert "one.csv: positions 1 to 2" in shown
    assert "two.csv.gz: position 3" in shown


def test_nothing_new_records_no_batch(ledger_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """An import that appends nothing, only shows what it would do, or is refused, leaves the log as it was."""
    (tmp_path / "one.csv").write_text(games("g1"))
    assert told(ratings, ledger_url, tmp_path / "one.csv", "--dry-run")["head"] == 0
    assert told(ratings, ledger_url, tmp_path / "one.csv")["head"] == 2
    assert told(ratings, ledger_url, tmp_path / "one.csv")["head"] == 2
    (tmp_path / "two.csv").write_text(games("g2") + "g3,2024-01-02T10:00:00Z,catan,anna,anna\n")
    assert (told(ratings, ledger_url, tmp_path / "two.csv")["exit_code"], len(recorded(ledger_url))) == (1, 1)
    assert told(ratings, ledger_url, tmp_path / "two.csv", "--keep-going")["head"] == 4
    assert recorded(ledger_url)[-1][:3] == (4, "two.csv", [[3, 3]])


def test_standard_input_is_a_batch(ledger_url: str, ratings: Ratings) -> None:
    """What comes on standard input is a batch named -; lines that are answered one by one are none."""
    given = games("g1")
    told(ratings, ledger_url, "-", input=given)
    assert recorded(ledger_url) == [(2, "-", [[1, 1]], "-")]
    with open_ledger(ledger_url).reading() as connection:
        assert read_batches(connection)[0].sha256 == hashlib.sha256(given.encode()).hexdigest()
    ratings("record", "--game", "catan", "--game-id", "g2", "anna", "ben", db=ledger_url)
    assert len(recorded(ledger_url)) == 1


@pytest.mark.parametrize("name", ["\u202ereversed.csv", "line\nbreak.csv", "e\u0301.csv", f"{'ä' * 120}.csv", " .csv"])
def test_any_file_name_can_be_a_batch(name: str, copied_file: Callable[..., str], tmp_path: Path,
                                      ratings: Ratings) -> None:  # fmt: skip
    """A file is imported under whatever name it has; what would disturb a terminal is written out in the batch."""
    db = copied_file(make_empty_ledger)
    (tmp_path / name).write_text(games("g1"))
    assert told(ratings, db, tmp_path / name)["head"] == 2
    assert recorded(db)[0][1].isprintable()
    assert ratings("verify", db=db).exit_code == 0


def meanwhile(ledger: Ledger, event_id: str) -> None:
    """Somebody else records a game under an id."""
    append(ledger, [build_numbered_game("other")._replace(event_id=event_id)], by="ben", clock=clock.now)


def items(*names: str) -> list[Any]:
    """The items of files."""
    return [item for name in names for item in read_items(name, TableOptions())]


def test_a_batch_in_chunks_is_one(ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that follow one another are one range; what somebody else appends between two of them is in none."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(games("g1", "g2", "g3", "g4", "g5"))
    ledger = open_ledger(ledger_url)
    plan = FileIntake(ledger, items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True)

    def meddle(appended: int) -> None:
        if appended == 4:
            meanwhile(ledger, "game:other")

    assert plan.append(meddle).appended == 5
    assert [one[:3] for one in recorded(ledger_url)] == [(7, "a.csv", [[1, 4], [6, 6]])]


def test_an_import_stopped_midway_is_completed(
    ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Stopped between two chunks it leaves games without a batch; run again, it records what the second run brought."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(games("g1", "g2", "g3"))
    ledger = open_ledger(ledger_url)

    def stop(appended: int) -> None:
        raise StoreUnavailable("the plug is pulled")

    with pytest.raises(StoreUnavailable):
        FileIntake(ledger, items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True).append(stop)
    assert recorded(ledger_url) == []
    done = FileIntake(ledger, items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True).append()
    assert (done.appended, done.existing) == (1, 2)
    assert [one[:3] for one in recorded(ledger_url)] == [(4, "a.csv", [[3, 3]])]


def test_a_last_chunk_refused_leaves_a_batch(
    ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """If the last chunk is refused, since somebody else took a game's id meanwhile, the others are a batch still."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(games("g1", "g2", "g3"))
    ledger = open_ledger(ledger_url)
    plan = FileIntake(ledger, items(str(tmp_path / "a.csv")), ImportPolicy("mira"), batches=True)
    done = plan.append(lambda appended: meanwhile(ledger, "game:g3"))
    assert (done.appended, [one.code for one in done.rejected]) == (2, ["id-conflict"])
    assert done.head is not None
    assert done.head.position == 4
    assert [one[:3] for one in recorded(ledger_url)] == [(4, "a.csv", [[1, 2]])]


@pytest.mark.slow_cases
def test_an_export_keeps_its_batches(ledger_url: str, copied_file: Callable[..., str], tmp_path: Path,
                                     ratings: Ratings) -> None:  # fmt: skip
    """Imported into an empty ledger an export keeps its batches, where they were; elsewhere they are left out, with
    what withdraws them, and that is told."""
    (tmp_path / "a.csv").write_text(games("g1", "g2"))
    told(ratings, ledger_url, tmp_path / "a.csv")
    ratings("void", "--event", "3", "--reason", "an example", db=ledger_url)
    told(ratings, ledger_url, "-", input=games("g3"))
    ratings("export", "events", "-o", tmp_path / "all.jsonl", db=ledger_url)

    empty = copied_file(make_empty_ledger, name="empty.db")
    done = told(ratings, empty, tmp_path / "all.jsonl")
    assert (done["exit_code"], done["appended"], done["head"]) == (0, 6, 7)
    assert [one[:3] for one in recorded(empty)] == [(6, "-", [[5, 5]]), (7, "all.jsonl", [[1, 6]])]

    other = copied_file(make_empty_ledger, name="other.db")
    ratings("import", "-", db=other, input=games("g0"))
    done = told(ratings, other, tmp_path / "all.jsonl")
    assert (done["exit_code"], done["appended"], done["existing"], done["head"]) == (0, 3, 0, 6)
    again = ratings("import", tmp_path / "all.jsonl", db=other)
    assert "left out 3 events about batches of another ledger" in again.stderr
    assert [one[:3] for one in recorded(other)] == [(2, "-", [[1, 1]]), (6, "all.jsonl", [[3, 5]])]
    assert told(ratings, ledger_url, tmp_path / "all.jsonl")["existing"] == 6
    for db in (empty, other):
        assert ratings("verify", db=db).exit_code == 0


def test_only_an_import_records_a_batch(ledger_url: str, ratings: Ratings) -> None:
    """Whoever sends the event by itself is refused, wherever it says that it stands."""
    ratings("record", "--game", "catan", "--game-id", "g1", "anna", "ben", db=ledger_url)
    data = {"name": "a", "ranges": [[1, 1]], "source": "a", "sha256": "0" * 64}
    event = json.dumps({"type": "import.recorded", "occurred_at": "2024-01-01T00:00:00Z", "data": data, "position": 2})
    assert "bad-batch" in ratings("record", db=ledger_url, input=event).stderr
    ahead = event.replace("[[1, 1]]", "[[1, 2]]")
    assert "bad-batch" in ratings("import", "-", db=ledger_url, input=ahead).stderr


@pytest.mark.parametrize("ranges", [[], [[2, 1]], [[1, 2], [2, 3]], [[3, 3], [1, 1]], [[0, 1]], [[1]], [[1, 2, 3]]])
def test_ranges_are_in_order(ranges: list[list[int]]) -> None:
    """Ranges are pairs of positions that follow one another."""
    data = {"name": "a", "ranges": ranges, "source": "a", "sha256": "0" * 64}
    with pytest.raises(Refused):
        read_event({"type": "import.recorded", "occurred_at": "2024-01-01T00:00:00Z", "data": data})


@pytest.mark.parametrize("answers", [0, ALIASES_MAX + 1])
def test_largest_batches_fit_into_records(answers: int) -> None:
    """Batches with the longest names and the most ranges and answers fit into records, with every range once."""
    ranges = [[10**15 + 2 * number, 10**15 + 2 * number] for number in range(RANGES_MAX + 1)]
    aliases = {f"{number:03}{chr(0x1F600) * 61}": chr(0x1F601) * 64 for number in range(answers)}
    path = chr(0x1F602) * SOURCE_MAX
    parts = [
        read_event({"type": "import.recorded", "occurred_at": "2024-01-01T00:00:00Z", "data": data})
        for data in build_batch_events(path, ("0" * 64, "S" * 31), ranges, name="n" * NAME_MAX, aliases=aliases)
    ]
    for draft, _ in parts:
        build_record(draft, 10**15, 0, "mira", None)
    assert [one for _, data in parts for one in data["ranges"]] == ranges
    assert [len(data.get("aliases", ())) for _, data in parts] == ([0, 0] if not answers else [ALIASES_MAX, 0])
