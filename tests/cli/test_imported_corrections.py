"""Corrections in files: imported, imported again, exported, restored; and exports that somebody tampered with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NOON,
    Ratings,
    catan,
    digests,
    event,
    galactic,
    head,
    new_ledger,
    placing,
    points,
    read,
    take_in,
)
from output_filters import select_counts

LATER, LATEST = "2010-03-06T12:00:00Z", "2010-03-07T12:00:00Z"
DECIDED = "2010-04-01T12:00:00Z"


def corrected(game_id: str, *players: str, at: str = DECIDED, reason: str = "wrong", **members: Any) -> str:
    """A correction of a game as a line."""
    return event("game.corrected", at, game_id=game_id, reason=reason, game=placing(game_id, *players, **members))


def decided(type_name: str, game_id: str, reason: str = "wrong") -> str:
    """A game is voided or reinstated, as a line."""
    return event(type_name, DECIDED, game_id=game_id, reason=reason)


def withdrawn(event_id: str, own_id: str | None = None) -> str:
    """An event that withdraws another, as a line."""
    return event("event.voided", DECIDED, own_id, id=event_id, reason="wrong")


def adjusted(event_id: str, player: str, amount: str) -> str:
    """An adjustment as a line."""
    data = {"ladder": GALACTIC, "player": player, "points": amount, "reason": "gift"}
    return event("points.adjusted", LATEST, event_id, **data)


# every type of event, each line after those that it is about
STORY = [
    galactic("g-1", "anna", "ben"), galactic("g-2", "cleo", "dora", at=LATER),
    galactic("g-3", "anna", "dora", at=LATEST),
    catan("c-1", "anna", "ben", "cleo"), catan("c-2", "emil", "frida"),
    corrected("g-1", "ben", "anna"), corrected("g-1", "ben", "anna", occurred_at=LATEST), corrected("g-1", "ben=anna"),
    decided("game.voided", "g-2"), decided("game.voided", "g-3"), decided("game.reinstated", "g-3", "after all"),
    event("player.renamed", DECIDED, "r-1", player="cleo", new_player="emil"),
    event("player.registered", "2010-01-01T00:00:00Z", player="hugo", account="free"),
    event("player.account_changed", NOON, "a-1", player="frida", account="free"), withdrawn("a-1"),
    adjusted("p-1", "anna", "-5"), adjusted("p-2", "ben", "7"), withdrawn("p-1", "v-1"), withdrawn("v-1"),
    event("player.renamed", DECIDED, player="emil", new_player="hugo"),
]  # fmt: skip


def make_ledger(ratings: Ratings, url: str) -> None:
    """Two rulesets and the story."""
    take_in(ratings, new_ledger(ratings, url), *STORY)


@pytest.fixture
def told_once(copied_file: Callable[..., str]) -> str:
    """A ledger in SQLite with the story."""
    return copied_file(make_ledger, name="told.db")


def import_(ratings: Ratings, db: str, *lines: str, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
    """What an import of these lines told, its refusals as (line, code)."""
    result = ratings("import", "-", "--format", "json", *arguments, db=db, input="".join(lines))
    found = select_counts(json.loads(result.stdout))
    found["rejected"] = [(rejection["line"], rejection["code"]) for rejection in found["rejected"]]
    assert result.exit_code == int(bool(found["rejected"]))
    return dict(found)


@pytest.mark.slow_cases
def test_last_word_counts(ledger_url: str, ratings: Ratings) -> None:
    """When a file records, corrects, voids and renames, the last word on each subject counts."""
    db = new_ledger(ratings, ledger_url)
    found = import_(ratings, db, *STORY)

    assert found == {"appended": 20, "existing": 0, "rejected": [], "head": 23}
    # a draw of anna and ben, then anna against dora at the same time; the void of -5 is itself voided
    assert points(ratings, db, GALACTIC) == {"anna": "1155", "ben": "1007", "dora": "840"}
    # cleo is emil is hugo, who has a free account, so that c-2 has one counted player
    assert points(ratings, db, BASIC) == {"anna": "1004", "ben": "996"}
    assert [row["game_id"] for row in read(ratings, db, "games")["rows"]] == ["c-1", "c-2", "g-2", "g-1", "g-3"]
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_second_import_changes_nothing(ledger_url: str, ratings: Ratings) -> None:
    """Importing a file of corrections a second time appends nothing."""
    db = new_ledger(ratings, ledger_url)
    import_(ratings, db, *STORY)
    before = head(ratings, db)

    assert import_(ratings, db, *STORY) == {"appended": 0, "existing": 20, "rejected": [], "head": 23}
    assert import_(ratings, db, *STORY[5:], *STORY[5:])["existing"] == 30
    assert head(ratings, db) == before


def test_repeated_correction_counts_once(told_once: str, ratings: Ratings) -> None:
    """A correction repeated in a file is appended once, but again when made at another time."""
    again = corrected("g-3", "dora", "anna")

    assert import_(ratings, told_once, again, again)["existing"] == 1
    # said at another time it is said again
    assert import_(ratings, told_once, corrected("g-3", "dora", "anna", at=LATEST))["appended"] == 1


def test_refused_line_stops_the_file(told_once: str, ratings: Ratings) -> None:
    """One refused line among corrections keeps the whole file from being appended."""
    before = head(ratings, told_once)
    found = import_(
        ratings, told_once, corrected("g-3", "dora", "anna"), decided("game.voided", "g-3", "never played"),
        corrected("g-3", "anna", "dora"), corrected("g-1", "anna", "ben"),
    )  # fmt: skip

    assert (found["rejected"], found["appended"]) == ([(3, "game-voided")], 0)
    assert head(ratings, told_once) == before


def test_keep_going_refuses_dependent_lines(tmp_path: Path, ratings: Ratings) -> None:
    """With --keep-going, corrections of a refused game are refused too, and the rest is appended."""
    db = new_ledger(ratings, tmp_path / "ratings.db")
    lines = [
        galactic("g-1", "anna"), corrected("g-1", "anna", "ben"), galactic("g-2", "anna", "ben"),
        decided("game.voided", "g-1"),
        corrected("g-2", "ben"), corrected("g-2", "ben", "anna"),
        event("player.renamed", player="zoe", new_player="ben"), galactic("g-3", "zoe", "ben"),
        decided("game.reinstated", "g-2"),
    ]  # fmt: skip
    (tmp_path / "games.jsonl").write_text("".join(lines))
    result = ratings("import", tmp_path / "games.jsonl", "--keep-going", "--format", "json", db=db)
    found = json.loads(result.stdout)

    assert (result.exit_code, found["appended"]) == (1, 3)
    assert [(rejection["line"], rejection["code"]) for rejection in found["rejected"]] == [
        (1, "too-few-participants"), (2, "game-unknown"), (4, "game-unknown"), (5, "too-few-participants"),
        (7, "player-unknown"), (9, "game-live"),
    ]  # fmt: skip
    rejects = (tmp_path / "games.jsonl.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in rejects] == [1, 2, 4, 5, 7, 9]
    assert [row["game_id"] for row in read(ratings, db, "games")["rows"]] == ["g-2", "g-3"]
    assert points(ratings, db, GALACTIC)["anna"] == "840"


@pytest.mark.slow_cases
def test_reimported_export_keeps_digests(told_once: str, ledger_url: str, ratings: Ratings) -> None:
    """A ledger's export with corrections, imported elsewhere, gives the same digests and links."""
    exported = ratings("export", "events", db=told_once).stdout
    assert ratings("init", "--no-rules", db=ledger_url).exit_code == 0
    # behind events of its own
    take_in(ratings, ledger_url, event("player.registered", player="somebody"))

    assert import_(ratings, ledger_url, exported)["appended"] == 22
    assert digests(ratings, ledger_url) == digests(ratings, told_once)
    assert import_(ratings, ledger_url, exported)["existing"] == 22
    # the links name the same events
    links = [[row.get("supersedes") for row in read(ratings, db, "log")["rows"]] for db in (told_once, ledger_url)]
    assert links[1] == [None, *links[0], None]


@pytest.mark.slow_cases
def test_restore_keeps_hashes_and_digests(told_once: str, ledger_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """Restoring into the other store keeps every hash and digest, and the ledger can be continued there."""
    assert ratings("export", "events", "-o", tmp_path / "backup.jsonl", db=told_once).exit_code == 0
    assert ratings("import", tmp_path / "backup.jsonl", "--restore", db=ledger_url).exit_code == 0

    assert head(ratings, ledger_url) == head(ratings, told_once)
    assert digests(ratings, ledger_url) == digests(ratings, told_once)
    assert ratings("export", "events", db=ledger_url).stdout == without_end(tmp_path / "backup.jsonl")
    assert ratings("verify", db=ledger_url) == (0, "", "")
    # and it goes on there
    assert import_(ratings, ledger_url, corrected("g-3", "dora", "anna"))["appended"] == 1


def replaced(name: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Changes a member of the last event."""
    return lambda events: events[-1].update({name: value})


def without_link(events: list[dict[str, Any]]) -> None:
    del events[-1]["supersedes"]


def another(**members: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Puts another event behind the last, like it but for these members."""

    def change(events: list[dict[str, Any]]) -> None:
        events.append({**events[-1], "id": "forged", "position": events[-1]["position"] + 1, **members})

    return change


# what was done to the export of a ledger whose last event corrects g-1, which was corrected before
TAMPERED = {
    "a correction without link": without_link,
    "a correction that skips the one before": replaced("supersedes", "game:g-1"),
    "a correction of another game's event": replaced("supersedes", "game:g-2"),
    "a correction of an event that is not there": replaced("supersedes", "nothing"),
    "a correction of itself": lambda events: events[-1].update(supersedes=events[-1]["id"]),
    "a correction of a game that is not there": lambda events: events[-1]["data"].update(
        game_id="g-9", game=placing("g-9", "anna", "ben")
    ),
    "a game corrected twice off the same event": another(),
    "a voided game corrected": another(supersedes="v-2", data={
        "game_id": "g-2", "reason": "wrong", "game": placing("g-2", "anna", "ben"),
    }),
    "a live game reinstated": another(type="game.reinstated", supersedes="c-2", data={"game_id": "g-1", "reason": "x"}),
    "a game's event voided": another(type="event.voided", supersedes="c-2", data={"id": "c-2", "reason": "x"}),
    "an event voided twice": another(type="event.voided", supersedes="v-1", data={"id": "p-1", "reason": "again"}),
    "an event voided that is not there": another(type="event.voided", supersedes="x", data={"id": "x", "reason": "x"}),
    "a link where none belongs": another(type="player.renamed", data={"player": "anna", "new_player": "anne"}),
}  # fmt: skip


def without_end(file: Path) -> str:
    """What standard output would have got of an export in a file."""
    return "".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[:-1])


def canonical(events: list[dict[str, Any]]) -> str:
    """Events as an export writes them."""
    lines = [json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for found in events]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.slow_cases
@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_tampered_export_is_refused(
    tamper: Callable[[list[dict[str, Any]]], None], tmp_path: Path, ratings: Ratings
) -> None:
    """Restoring a tampered export is refused with its line, and nothing is stored."""
    db, copy, backup = new_ledger(ratings, tmp_path / "own.db"), str(tmp_path / "copy.db"), tmp_path / "backup.jsonl"
    void_2 = event("game.voided", DECIDED, "v-2", game_id="g-2", reason="never played")
    last = json.loads(corrected("g-1", "ben", "anna", reason="once more"))
    take_in(
        ratings, db, galactic("g-1", "anna", "ben"), galactic("g-2", "anna", "ben"), adjusted("p-1", "anna", "5"),
        withdrawn("p-1", "v-1"), void_2, corrected("g-1", "ben", "anna"), json.dumps({**last, "id": "c-2"}),
    )  # fmt: skip
    honest = ratings("export", "events", db=db).stdout
    events = [json.loads(line) for line in honest.splitlines()]
    tamper(events)
    assert ratings("init", "--no-rules", db=copy).exit_code == 0
    backup.write_text(canonical(events))
    refused = ratings("import", backup, "--restore", "--format", "json", db=copy)

    (rejected,) = json.loads(refused.stdout)["rejected"]
    assert (refused.exit_code, rejected["code"], rejected["line"]) == (1, "restore-mismatch", len(events))
    assert head(ratings, copy).partition(":")[0] == "0"
    backup.write_text(honest)
    honest_head = head(ratings, db)
    # so that refusals mean something
    assert ratings("import", backup, "--restore", "--head", honest_head, db=copy).exit_code == 0
    assert head(ratings, copy) == honest_head


def test_circular_renames_are_caught(tmp_path: Path, ratings: Ratings) -> None:
    """Renames that form a circle are refused by a restore or reported by `verify`."""
    db, copy, backup = new_ledger(ratings, tmp_path / "own.db"), str(tmp_path / "copy.db"), tmp_path / "backup.jsonl"
    take_in(ratings, db, galactic("g-1", "anna", "ben"), event("player.renamed", player="anna", new_player="anne"))
    events = [json.loads(line) for line in ratings("export", "events", db=db).stdout.splitlines()]
    another(data={"player": "anne", "new_player": "anna"})(events)
    assert ratings("init", "--no-rules", db=copy).exit_code == 0
    backup.write_text(canonical(events))

    restored = ratings("import", backup, "--restore", "--incomplete", db=copy)
    # nobody can read such a ledger, so `verify` must not call it good
    assert 1 in (restored.exit_code, ratings("verify", db=copy).exit_code)
