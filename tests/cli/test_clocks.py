"""The clock of a game through the command line: what it shows, and what else looks at it; on both stores."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from own_rules import find_shipped_text
from stores import make_ruled_ledger

Ratings = Callable[..., Any]


def clock(*steps: str, game_id: str = "g-1", players: str = "anna ben") -> str:
    """Events of a clock as lines, each step a type, a time and its members: `offered 5 anna choice=fortune`."""
    lines = []
    for step in steps:
        name, at, *more = step.split()
        data: dict[str, Any] = {"game_id": game_id, "at": int(at)}
        if name == "started":
            data["players"] = players.split()
        for part in more:
            member, _, value = part.rpartition("=")
            data[member or "player"] = value
        lines.append(json.dumps({"type": f"clock.{name}", "occurred_at": "2026-01-01T20:00:00Z", "data": data}))
    return "\n".join(lines)


def result(status: str = "finished", game_id: str = "g-1", **members: Any) -> str:
    """The result of a game that anna wins against ben."""
    participants = [{"player": "anna", "place": 1, **members}, {"player": "ben", "place": 2, "status": status}]
    data = {"game_id": game_id, "game": "galactic-magnate", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": "2026-01-01T21:00:00Z", "data": data})


pytestmark = pytest.mark.ledger(make=make_ruled_ledger)


def add(ratings: Ratings, db: str, *texts: str) -> Any:
    """Import lines."""
    return ratings("import", "-", db=db, input="\n".join(texts))


def read(ratings: Ratings, db: str, *command: str) -> Any:
    """What a command prints as JSON."""
    found = ratings(*command, "--format", "json", db=db)
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


BEN_STALLS = ("started 0", "offered 0 ben choice=fortune", "heartbeat 30000 ben", "heartbeat 60000 ben",
              "heartbeat 90000 ben", "heartbeat 120000 ben")  # fmt: skip


@pytest.mark.slow_cases
def test_clock_shows_timers_at_any_instant(db: str, ratings: Ratings) -> None:
    """`clock show` and `clock explain` give the timers and the removal as of any instant.

    Ben has 6 s and then 120 s on the main timer; at 126,000 ms ben is out.
    """
    assert add(ratings, db, clock(*BEN_STALLS)).exit_code == 0

    def ben(at: int) -> Any:
        return read(ratings, db, "clock", "show", "g-1", "--at", str(at))["players"][1]

    assert [ben(at)["main_ms"] for at in (0, 6_000, 6_001, 125_999)] == [120_000, 120_000, 119_999, 1]
    assert [ben(at)["removed_at"] for at in (125_999, 126_000, 200_000)] == [None, 126_000, 126_000]
    lines = read(ratings, db, "clock", "explain", "g-1", "ben")["lines"]
    assert (lines[-1]["what"], lines[-1]["at"], sum(line["change_ms"] for line in lines)) == ("removed", 126_000, 0)
    table = ratings("clock", "explain", "g-1", "ben", db=db).stdout
    assert "the main timer is at 0 (if nothing more is recorded)" in table
    assert "removed at 126000 ms" in ratings("clock", "show", "g-1", "--at", "126000", db=db).stdout
    assert ratings("clock", "show", "g-2", db=db).exit_code == 1
    assert ratings("clock", "explain", "g-1", "zoe", db=db).exit_code == 1


@pytest.mark.slow_cases
def test_contradictory_clock_log_is_refused(db: str, ratings: Ratings) -> None:
    """An import of a contradictory clock log names the first bad line and appends nothing."""
    told = add(ratings, db, clock("started 0", "decided 5 anna", "heartbeat 4 ben"))
    assert (told.exit_code, "-:2: clock-choice-missing: " in told.stderr) == (1, True)
    assert add(ratings, db, clock("started 0", "heartbeat 10 ben")).exit_code == 0

    late = add(ratings, db, clock("heartbeat 9 ben"))
    assert (late.exit_code, "clock-time-backwards" in late.stderr) == (1, True)
    assert add(ratings, db, clock("started 0", "heartbeat 10 ben")).stdout.startswith("0 appended, 2 already there")


@pytest.mark.slow_cases
def test_two_auctions_in_one_millisecond_are_noted(db: str, ratings: Ratings) -> None:
    """An auction that an input holds twice in one millisecond counts once, which a note says; with ids it counts twice.

    A file that is imported again is as silent as before if it repeats nothing.
    """
    lines = clock("started 0", "auction_started 5000 anna", "auction_started 5000 anna", "heartbeat 6000 ben")
    repeated = add(ratings, db, lines)
    note = (
        "note: -:3: this clock.auction_started of 'anna' in 'g-1' repeats line 2 of -, also at 5000 ms, so "
        "both count as one event; if both happened, give them different ids\n"
    )
    assert (repeated.exit_code, repeated.stderr) == (0, note)
    assert repeated.stdout.startswith("3 appended, 1 already there")
    assert read(ratings, db, "clock", "show", "g-1")["players"][0]["main_ms"] == 100_000
    assert add(ratings, db, lines).stderr == note
    alone = add(ratings, db, clock("started 0", "auction_started 5000 anna", "heartbeat 6000 ben"))
    assert (alone.exit_code, alone.stderr) == (0, "")

    start, *auctions = clock("started 0", *["auction_started 5000 anna"] * 2, game_id="g-2").splitlines()
    named = [json.dumps({**json.loads(line), "id": name}) for name, line in zip("xy", auctions, strict=True)]
    apart = add(ratings, db, start, *named)
    assert (apart.exit_code, apart.stderr) == (0, "")
    assert read(ratings, db, "clock", "show", "g-2")["players"][0]["main_ms"] == 80_000


@pytest.mark.slow_cases
def test_clock_events_are_voided_last_first(db: str, ratings: Ratings) -> None:
    """Clock events can only be voided last first; an earlier one is refused as `still-needed`."""
    assert add(ratings, db, clock("started 0", "heartbeat 10 ben", "heartbeat 20 ben")).exit_code == 0
    rows = read(ratings, db, "log", "--type", "clock.heartbeat")["rows"]
    first, last = (("void", "--event", row["id"], "--reason", "wrong") for row in rows)

    refused = ratings(*first, db=db)
    assert (refused.exit_code, refused.stderr.partition(":")[0]) == (1, "still-needed")
    assert ratings(*last, db=db).exit_code == 0
    assert ratings(*first, db=db).exit_code == 0
    assert read(ratings, db, "clock", "show", "g-1")["recorded_until"] == 0
    assert add(ratings, db, clock("heartbeat 5 ben")).exit_code == 0


@pytest.mark.parametrize(
    ("steps", "status", "told"),
    [
        (BEN_STALLS, "finished", None),
        (BEN_STALLS, "removed", None),
        (
            (*BEN_STALLS, "stopped 126000"),
            "finished",
            "g-1: ben is finished in the result, but its clock removed them at 126000 ms; see: ratings clock show g-1",
        ),
        ((*BEN_STALLS, "stopped 126000"), "removed", None),
        (
            (*BEN_STALLS, "stopped 125999"),
            "removed",
            "g-1: ben is removed in the result, but its clock never removed them; see: ratings clock show g-1",
        ),
        ((*BEN_STALLS, "stopped 125999"), "surrendered", None),
    ],
)
def test_verify_compares_result_with_clock(
    steps: tuple[str, ...], status: str, told: str | None, db: str, ratings: Ratings
) -> None:
    """`verify` reports a result that disagrees with the clock about a removal, and no other result.

    A log that ends before the removal is due contradicts neither status. What was recorded up to a head is not reported
    again since that head.
    """
    assert add(ratings, db, clock(*steps)).exit_code == 0
    assert ratings("record", "-q", db=db, input=result(status)).exit_code == 0
    found = ratings("verify", db=db)

    assert found.exit_code == int(told is not None)
    assert (told or "") in found.stdout
    assert (found.stdout == "") is (told is None)
    if told is not None:
        assert ratings("verify", "--since", read(ratings, db, "status")["head"], db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_clock_knows_both_ids_of_a_renamed_player(db: str, ratings: Ratings) -> None:
    """A clock shows people under their current ids and is asked under either; `--known-at` before shows the old one."""
    assert add(ratings, db, clock(*BEN_STALLS, "stopped 126000"), result("removed")).exit_code == 0
    assert ratings("player", "rename", "ben", "benedict", "--reason", "typo", db=db).exit_code == 0
    told = read(ratings, db, "clock", "show", "g-1")
    lines = [read(ratings, db, "clock", "explain", "g-1", name)["lines"] for name in ("ben", "benedict")]
    before = str(int(ratings("export", "events", db=db).stdout.count("\n")) - 1)

    assert [one["player"] for one in told["players"]] == ["anna", "benedict"]
    assert lines[0] == lines[1] != []
    known = read(ratings, db, "clock", "show", "g-1", "--known-at", before)
    assert [one["player"] for one in known["players"]] == ["anna", "ben"]
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_clock_takes_either_id_after_a_rename(db: str, ratings: Ratings) -> None:
    """After a rename, events of a clock name either id; the rename cannot be withdrawn while an event depends on it.

    Whoever plays for nobody in the game is refused as before, and so is a rename that would give such events to two.
    """
    assert add(ratings, db, clock("started 0", "offered 1000 ben choice=roll-dice")).exit_code == 0
    rename = ("player", "rename", "ben", "benedict", "--reason", "typo")
    assert ratings(*rename, db=db).exit_code == 0
    (renamed,) = read(ratings, db, "log", "--type", "player.renamed")["rows"]
    withdraw = ("void", "--event", renamed["id"], "--reason", "wrong")
    later = add(ratings, db, clock("decided 3000 benedict", "auction_started 3001 ben", "stopped 9000"), result())
    assert later.exit_code == 0, later.stderr

    shown = read(ratings, db, "clock", "show", "g-1")
    assert [(one["player"], one["main_ms"]) for one in shown["players"]] == [("anna", 120_000), ("benedict", 101_000)]
    assert add(ratings, db, clock("heartbeat 1 cleo", game_id="g-1")).exit_code == 1
    assert ratings("verify", db=db) == (0, "", "")
    needed = ratings(*withdraw, db=db)
    assert (needed.exit_code, needed.stderr.partition(":")[0]) == (1, "still-needed")
    assert "the clock of 'g-1' name a player by the id from this rename" in needed.stderr


@pytest.mark.slow_cases
def test_rename_between_players_of_a_clock_is_refused(db: str, ratings: Ratings) -> None:
    """If events name a player's new id, no other player of that clock becomes the same person."""
    assert add(ratings, db, clock("started 0", "heartbeat 1 anna", "heartbeat 1 ben")).exit_code == 0
    for old, new, code in (("ben", "benedict", 0), ("anna", "benedict", 1)):
        done = ratings("player", "rename", old, new, "--reason", "typo", db=db)
        assert done.exit_code == code, done
        if not code:
            assert add(ratings, db, clock("heartbeat 5 benedict")).exit_code == 0
    assert done.stderr.startswith("players-met: 'anna' and 'benedict' are both on the clock of 'g-1'")


def test_clock_of_two_ids_of_one_person_shows_both(db: str, ratings: Ratings) -> None:
    """If two ids of a clock have become one person, each timer keeps the id that was recorded."""
    others = [result(game_id="g-2").replace('"anna"', '"cleo"'), result(game_id="g-3").replace('"ben"', '"cleo"')]
    assert add(ratings, db, clock("started 0", "heartbeat 5 ben"), *others).exit_code == 0
    merged = ratings("player", "rename", "ben", "anna", "--reason", "one person", db=db)
    assert merged.exit_code == 0, merged.stderr

    assert [one["player"] for one in read(ratings, db, "clock", "show", "g-1")["players"]] == ["anna", "ben"]
    assert ratings("clock", "explain", "g-1", "ben", db=db).exit_code == 0


def test_too_few_players_are_told_in_plain_words(db: str, ratings: Ratings) -> None:
    """A clock needs two players; the refusal says how many there must be."""
    told = add(ratings, db, clock("started 0", players="anna"))

    assert (told.exit_code, told.stderr.splitlines()[0]) == (
        1, "-:1: bad-value: players: there must be at least 2, not 1",
    )  # fmt: skip


BONUS = {
    "600 seconds": (("started 0", "stopped 600000"), {}, "0"),
    "a millisecond more": (("started 0", "stopped 600001"), {}, "100"),
    "on another clock": (("started 5000000", "stopped 5600001"), {}, "100"),
    "without the pause": (
        ("started 0", "pause_asked 1 anna", "pause_answered 2 ben answer=yes", "turn_ended 3",
         "resume_asked 200003 anna", "resume_asked 200003 ben", "stopped 800000"), {}, "0",
    ),
    "until he left": (("started 0", "player_left 600000 anna", "stopped 900000"), {}, "0"),
    "the result says it": (("started 0", "stopped 900000"), {"seconds_played": 10}, "0"),
    "no clock": ((), {}, "0"),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "members", "bonus"), BONUS.values(), ids=BONUS)
def test_bonus_follows_clock_without_seconds(
    steps: tuple[str, ...], members: dict[str, Any], bonus: str, db: str, ratings: Ratings
) -> None:
    """The bonus goes by the clock when the result does not state the seconds played."""
    assert add(ratings, db, *([clock(*steps)] if steps else []), result(**members)).exit_code == 0

    (anna,) = (
        row for row in read(ratings, db, "explain", "g-1", "galactic-points")["players"] if row["player"] == "anna"
    )
    assert int(anna["change"]) - 160 == int(bonus)


def test_clock_takes_timers_of_its_version(db: str, ratings: Ratings, tmp_path: Any) -> None:
    """A clock takes the timers of the ruleset version in force unless it states its own."""
    text = find_shipped_text("galactic-points")
    changed = text.replace('version = "1"', 'version = "2"').replace("main_ms = 120000", "main_ms = 60000")
    (tmp_path / "two.toml").write_text(changed.replace("1900-01-01", "2025-01-01"), encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "two.toml", db=db).exit_code == 0
    old = clock("started 0", game_id="old").replace("2026-01-01", "2024-01-01")
    own = json.dumps({"type": "clock.started", "occurred_at": "2026-01-01T20:00:00Z", "data": {
        "game_id": "own", "at": 0, "players": ["anna", "ben"], "timers": {"main_ms": 5000},
    }})  # fmt: skip
    assert add(ratings, db, old, clock("started 0", game_id="new"), own).exit_code == 0

    timers = {game: read(ratings, db, "clock", "show", game)["players"][0]["main_ms"] for game in ("old", "new", "own")}
    assert timers == {"old": 120_000, "new": 60_000, "own": 5_000}
