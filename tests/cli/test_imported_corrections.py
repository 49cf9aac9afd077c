"""Corrections in files: imported, imported again, exported and restored; and tampered exports."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NEXT_DAY,
    NOON,
    THIRD_DAY,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    build_galactic_line,
    build_game_data,
    create_ledger,
    read_digests,
    read_head,
    read_json,
    read_points,
)
from output_filters import remove_names_and_changes

DECIDED_AT = "2010-04-01T12:00:00Z"


def build_correction(game_id: str, *players: str, at: str = DECIDED_AT, reason: str = "wrong", **members: Any) -> str:
    """Return a correction of a game as a line."""
    return build_event_line(
        "game.corrected", at, game_id=game_id, reason=reason, game=build_game_data(game_id, *players, **members)
    )


def build_decision(type_name: str, game_id: str, reason: str = "wrong") -> str:
    """Return a void or reinstatement of a game as a line."""
    return build_event_line(type_name, DECIDED_AT, game_id=game_id, reason=reason)


def build_withdrawal(event_id: str, own_id: str | None = None) -> str:
    """Return an event that withdraws another one, as a line."""
    return build_event_line("event.voided", DECIDED_AT, own_id, id=event_id, reason="wrong")


def build_adjustment(event_id: str, player: str, amount: str) -> str:
    """Return an adjustment as a line."""
    data = {"ladder": GALACTIC, "player": player, "points": amount, "reason": "gift"}
    return build_event_line("points.adjusted", THIRD_DAY, event_id, **data)


# every type of correction, each line after the events that it is about
HISTORY = [
    build_galactic_line("g-1", "anna", "ben"),
    build_galactic_line("g-2", "cleo", "dora", at=NEXT_DAY),
    build_galactic_line("g-3", "anna", "dora", at=THIRD_DAY),
    build_catan_line("c-1", "anna", "ben", "cleo"),
    build_catan_line("c-2", "emil", "frida"),
    build_correction("g-1", "ben", "anna"),
    build_correction("g-1", "ben", "anna", occurred_at=THIRD_DAY),
    build_correction("g-1", "ben=anna"),
    build_decision("game.voided", "g-2"),
    build_decision("game.voided", "g-3"),
    build_decision("game.reinstated", "g-3", "after all"),
    build_event_line("player.renamed", DECIDED_AT, "r-1", player="cleo", new_player="emil"),
    build_event_line("player.registered", "2010-01-01T00:00:00Z", player="hugo", account="free"),
    build_event_line("player.account_changed", NOON, "a-1", player="frida", account="free"),
    build_withdrawal("a-1"),
    build_adjustment("p-1", "anna", "-5"),
    build_adjustment("p-2", "ben", "7"),
    build_withdrawal("p-1", "v-1"),
    build_withdrawal("v-1"),
    build_event_line("player.renamed", DECIDED_AT, player="emil", new_player="hugo"),
]


def create_history_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger with two rulesets and the history."""
    append_lines(ratings, create_ledger(ratings, url), *HISTORY)


@pytest.fixture
def history_db(copy_ledger_file: Callable[..., str]) -> str:
    """Return the path of a SQLite ledger with the history."""
    return copy_ledger_file(create_history_ledger, name="history.db")


def import_lines(ratings: Ratings, db: str, *lines: str, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
    """Import lines and return the JSON, with the rejections as (line, code)."""
    result = ratings("import", "-", "--format", "json", *arguments, db=db, input="".join(lines))
    report = remove_names_and_changes(json.loads(result.stdout))
    report["rejected"] = [(rejection["line"], rejection["code"]) for rejection in report["rejected"]]
    assert result.exit_code == int(bool(report["rejected"]))
    return dict(report)


@pytest.mark.slow_cases
def test_last_decision_on_each_subject_counts(ledger_url: str, ratings: Ratings) -> None:
    """When a file records, corrects, voids and renames, the last decision on each subject counts."""
    db = create_ledger(ratings, ledger_url)
    report = import_lines(ratings, db, *HISTORY)

    assert report == {"appended": 20, "existing": 0, "rejected": [], "head": 23}
    # a draw of anna and ben, then anna against dora at the same time; the void of -5 is itself voided
    assert read_points(ratings, db, GALACTIC) == {"anna": "1155", "ben": "1007", "dora": "840"}
    # cleo became emil and then hugo, who has a free account, so c-2 has one counted player
    assert read_points(ratings, db, BASIC) == {"anna": "1004", "ben": "996"}
    assert [row["game_id"] for row in read_json(ratings, db, "games")["rows"]] == ["c-1", "c-2", "g-2", "g-1", "g-3"]
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_second_import_changes_nothing(ledger_url: str, ratings: Ratings) -> None:
    """Importing a file of corrections a second time appends nothing."""
    db = create_ledger(ratings, ledger_url)
    import_lines(ratings, db, *HISTORY)
    before = read_head(ratings, db)

    assert import_lines(ratings, db, *HISTORY) == {"appended": 0, "existing": 20, "rejected": [], "head": 23}
    assert import_lines(ratings, db, *HISTORY[5:], *HISTORY[5:])["existing"] == 30
    assert read_head(ratings, db) == before


def test_repeated_correction_counts_once(history_db: str, ratings: Ratings) -> None:
    """A correction repeated in a file is appended once; the same correction with another date is a new one."""
    correction = build_correction("g-3", "dora", "anna")

    report = import_lines(ratings, history_db, correction, correction)
    assert (report["appended"], report["existing"]) == (1, 1)
    assert import_lines(ratings, history_db, build_correction("g-3", "dora", "anna", at=THIRD_DAY))["appended"] == 1


def test_refused_line_stops_the_file(history_db: str, ratings: Ratings) -> None:
    """One refused line among corrections keeps the whole file from being appended."""
    before = read_head(ratings, history_db)
    report = import_lines(
        ratings,
        history_db,
        build_correction("g-3", "dora", "anna"),
        build_decision("game.voided", "g-3", "never played"),
        build_correction("g-3", "anna", "dora"),
        build_correction("g-1", "anna", "ben"),
    )

    assert (report["rejected"], report["appended"]) == ([(3, "game-voided")], 0)
    assert read_head(ratings, history_db) == before


def test_keep_going_refuses_dependent_lines(tmp_path: Path, ratings: Ratings) -> None:
    """With --keep-going, corrections of a refused game are refused, too, and the rest is appended."""
    db = create_ledger(ratings, tmp_path / "ratings.db")
    lines = [
        build_galactic_line("g-1", "anna"),
        build_correction("g-1", "anna", "ben"),
        build_galactic_line("g-2", "anna", "ben"),
        build_decision("game.voided", "g-1"),
        build_correction("g-2", "ben"),
        build_correction("g-2", "ben", "anna"),
        build_event_line("player.renamed", player="zoe", new_player="ben"),
        build_galactic_line("g-3", "zoe", "ben"),
        build_decision("game.reinstated", "g-2"),
    ]
    (tmp_path / "games.jsonl").write_text("".join(lines))
    result = ratings("import", tmp_path / "games.jsonl", "--keep-going", "--format", "json", db=db)
    output = json.loads(result.stdout)

    assert (result.exit_code, output["appended"]) == (1, 3)
    assert [(rejection["line"], rejection["code"]) for rejection in output["rejected"]] == [
        (1, "too-few-participants"),
        (2, "game-unknown"),
        (4, "game-unknown"),
        (5, "too-few-participants"),
        (7, "player-unknown"),
        (9, "game-live"),
    ]
    rejects = (tmp_path / "games.jsonl.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in rejects] == [1, 2, 4, 5, 7, 9]
    assert [row["game_id"] for row in read_json(ratings, db, "games")["rows"]] == ["g-2", "g-3"]
    assert read_points(ratings, db, GALACTIC)["anna"] == "840"


@pytest.mark.slow_cases
def test_reimported_export_keeps_digests(history_db: str, ledger_url: str, ratings: Ratings) -> None:
    """An export with corrections, imported into another ledger, gives the same digests and links."""
    exported = ratings("export", "events", db=history_db).stdout
    assert ratings("init", "--no-rules", db=ledger_url).exit_code == 0
    # the target has an event of its own
    append_lines(ratings, ledger_url, build_event_line("player.registered", player="somebody"))

    assert import_lines(ratings, ledger_url, exported)["appended"] == 22
    assert read_digests(ratings, ledger_url) == read_digests(ratings, history_db)
    assert import_lines(ratings, ledger_url, exported)["existing"] == 22
    # the links name the same events
    links = [
        [row.get("supersedes") for row in read_json(ratings, db, "log")["rows"]] for db in (history_db, ledger_url)
    ]
    assert links[1] == [None, *links[0], None]


@pytest.mark.slow_cases
def test_restore_keeps_hashes_and_digests(history_db: str, ledger_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """A restore into another store keeps every hash and digest, and the ledger can be continued there."""
    assert ratings("export", "events", "-o", tmp_path / "backup.jsonl", db=history_db).exit_code == 0
    assert ratings("import", tmp_path / "backup.jsonl", "--restore", db=ledger_url).exit_code == 0

    assert read_head(ratings, ledger_url) == read_head(ratings, history_db)
    assert read_digests(ratings, ledger_url) == read_digests(ratings, history_db)
    assert ratings("export", "events", db=ledger_url).stdout == read_without_end(tmp_path / "backup.jsonl")
    assert ratings("verify", db=ledger_url) == (0, "", "")
    # the restored ledger accepts further corrections
    assert import_lines(ratings, ledger_url, build_correction("g-3", "dora", "anna"))["appended"] == 1


def replace_member(name: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Return a function that changes a member of the last event."""
    return lambda events: events[-1].update({name: value})


def remove_link(events: list[dict[str, Any]]) -> None:
    del events[-1]["supersedes"]


def append_variant(**members: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Return a function that appends a variant of the last event with these members."""

    def change(events: list[dict[str, Any]]) -> None:
        events.append({**events[-1], "id": "forged", "position": events[-1]["position"] + 1, **members})

    return change


# changes to the export of a ledger whose last event corrects g-1 a second time
TAMPERINGS = {
    "a correction without link": remove_link,
    "a correction that skips the one before": replace_member("supersedes", "game:g-1"),
    "a correction of another game's event": replace_member("supersedes", "game:g-2"),
    "a correction of an event that is not there": replace_member("supersedes", "nothing"),
    "a correction of itself": lambda events: events[-1].update(supersedes=events[-1]["id"]),
    "a correction of a game that is not there": lambda events: events[-1]["data"].update(
        game_id="g-9", game=build_game_data("g-9", "anna", "ben")
    ),
    "a second correction of the same event": append_variant(),
    "a voided game corrected": append_variant(
        supersedes="v-2",
        data={
            "game_id": "g-2",
            "reason": "wrong",
            "game": build_game_data("g-2", "anna", "ben"),
        },
    ),
    "a live game reinstated": append_variant(
        type="game.reinstated", supersedes="c-2", data={"game_id": "g-1", "reason": "x"}
    ),
    "a game's event voided": append_variant(type="event.voided", supersedes="c-2", data={"id": "c-2", "reason": "x"}),
    "an event voided twice": append_variant(
        type="event.voided", supersedes="v-1", data={"id": "p-1", "reason": "again"}
    ),
    "an event voided that is not there": append_variant(
        type="event.voided", supersedes="x", data={"id": "x", "reason": "x"}
    ),
    "a link where none belongs": append_variant(type="player.renamed", data={"player": "anna", "new_player": "anne"}),
}


def read_without_end(file: Path) -> str:
    """Return an exported file without its end line, like an export to standard output."""
    return "".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[:-1])


def format_canonical(events: list[dict[str, Any]]) -> str:
    """Format events like an export."""
    lines = [json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for event in events]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.slow_cases
@pytest.mark.parametrize("tamper", TAMPERINGS.values(), ids=TAMPERINGS)
def test_tampered_export_is_refused(
    tamper: Callable[[list[dict[str, Any]]], None], tmp_path: Path, ratings: Ratings
) -> None:
    """Restoring a tampered export is refused with its line, and nothing is stored."""
    db, copy, backup = create_ledger(ratings, tmp_path / "own.db"), str(tmp_path / "copy.db"), tmp_path / "backup.jsonl"
    void_2 = build_event_line("game.voided", DECIDED_AT, "v-2", game_id="g-2", reason="never played")
    last_correction = json.loads(build_correction("g-1", "ben", "anna", reason="once more"))
    append_lines(
        ratings,
        db,
        build_galactic_line("g-1", "anna", "ben"),
        build_galactic_line("g-2", "anna", "ben"),
        build_adjustment("p-1", "anna", "5"),
        build_withdrawal("p-1", "v-1"),
        void_2,
        build_correction("g-1", "ben", "anna"),
        json.dumps({**last_correction, "id": "c-2"}),
    )
    original_export = ratings("export", "events", db=db).stdout
    events = [json.loads(line) for line in original_export.splitlines()]
    tamper(events)
    assert ratings("init", "--no-rules", db=copy).exit_code == 0
    backup.write_text(format_canonical(events))
    refused = ratings("import", backup, "--restore", "--format", "json", db=copy)

    (rejected,) = json.loads(refused.stdout)["rejected"]
    assert (refused.exit_code, rejected["code"], rejected["line"]) == (1, "restore-mismatch", len(events))
    assert read_head(ratings, copy).partition(":")[0] == "0"
    backup.write_text(original_export)
    honest_head = read_head(ratings, db)
    # the original is accepted, so the refusals are meaningful
    assert ratings("import", backup, "--restore", "--head", honest_head, db=copy).exit_code == 0
    assert read_head(ratings, copy) == honest_head


def test_circular_renames_are_refused(tmp_path: Path, ratings: Ratings) -> None:
    """A restore refuses renames that form a circle, even with --incomplete, and nothing is stored."""
    db, copy, backup = create_ledger(ratings, tmp_path / "own.db"), str(tmp_path / "copy.db"), tmp_path / "backup.jsonl"
    append_lines(
        ratings,
        db,
        build_galactic_line("g-1", "anna", "ben"),
        build_event_line("player.renamed", player="anna", new_player="anne"),
    )
    events = [json.loads(line) for line in ratings("export", "events", db=db).stdout.splitlines()]
    append_variant(data={"player": "anne", "new_player": "anna"})(events)
    assert ratings("init", "--no-rules", db=copy).exit_code == 0
    backup.write_text(format_canonical(events))

    refused = ratings("import", backup, "--restore", "--incomplete", "--format", "json", db=copy)
    (rejected,) = json.loads(refused.stdout)["rejected"]
    assert (refused.exit_code, rejected["code"], rejected["line"]) == (1, "restore-mismatch", len(events))
    assert read_head(ratings, copy).partition(":")[0] == "0"
