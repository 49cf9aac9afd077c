"""The clock of a game through the command line: its timers, and its effect on `verify` and the bonus; on both
stores."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from own_rules import find_shipped_text
from stores import make_ruled_ledger

Ratings = Callable[..., Any]


def build_clock_lines(*steps: str, game_id: str = "g-1", players: str = "anna ben") -> str:
    """Return events of a clock as lines, each step a type, a time and its members: `offered 5 anna choice=fortune`."""
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


def build_result_line(status: str = "finished", game_id: str = "g-1", **members: Any) -> str:
    """Return the result of a game that anna wins against ben."""
    participants = [{"player": "anna", "place": 1, **members}, {"player": "ben", "place": 2, "status": status}]
    data = {"game_id": game_id, "game": "galactic-magnate", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": "2026-01-01T21:00:00Z", "data": data})


pytestmark = pytest.mark.ledger(make=make_ruled_ledger)


def import_lines(ratings: Ratings, db: str, *texts: str) -> Any:
    """Import lines."""
    return ratings("import", "-", db=db, input="\n".join(texts))


def read_json(ratings: Ratings, db: str, *command: str) -> Any:
    """Return what a command prints as JSON."""
    result = ratings(*command, "--format", "json", db=db)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


BEN_STALLS = (
    "started 0",
    "offered 0 ben choice=fortune",
    "heartbeat 30000 ben",
    "heartbeat 60000 ben",
    "heartbeat 90000 ben",
    "heartbeat 120000 ben",
)


@pytest.mark.slow_cases
def test_clock_shows_timers_at_any_instant(db: str, ratings: Ratings) -> None:
    """`clock show` and `clock explain` give the timers and the removal as of any instant.

    Ben has 6 s and then 120 s on the main timer; at 126,000 ms ben is out.
    """
    assert import_lines(ratings, db, build_clock_lines(*BEN_STALLS)).exit_code == 0

    def read_ben(at: int) -> Any:
        return read_json(ratings, db, "clock", "show", "g-1", "--at", str(at))["players"][1]

    assert [read_ben(at)["main_ms"] for at in (0, 6_000, 6_001, 125_999)] == [120_000, 120_000, 119_999, 1]
    assert [read_ben(at)["removed_at"] for at in (125_999, 126_000, 200_000)] == [None, 126_000, 126_000]
    lines = read_json(ratings, db, "clock", "explain", "g-1", "ben")["lines"]
    assert (lines[-1]["what"], lines[-1]["at"], sum(line["change_ms"] for line in lines)) == ("removed", 126_000, 0)
    table = ratings("clock", "explain", "g-1", "ben", db=db).stdout
    assert "the main timer is at 0 (if nothing more is recorded)" in table
    assert "removed at 126000 ms" in ratings("clock", "show", "g-1", "--at", "126000", db=db).stdout
    assert ratings("clock", "show", "g-2", db=db).exit_code == 1
    assert ratings("clock", "explain", "g-1", "zoe", db=db).exit_code == 1


@pytest.mark.slow_cases
def test_contradictory_clock_log_is_refused(db: str, ratings: Ratings) -> None:
    """An import of a contradictory clock log names the first bad line and appends nothing."""
    refused = import_lines(ratings, db, build_clock_lines("started 0", "decided 5 anna", "heartbeat 4 ben"))
    assert (refused.exit_code, "-:2: clock-choice-missing: " in refused.stderr) == (1, True)
    assert import_lines(ratings, db, build_clock_lines("started 0", "heartbeat 10 ben")).exit_code == 0

    late = import_lines(ratings, db, build_clock_lines("heartbeat 9 ben"))
    assert (late.exit_code, "clock-time-backwards" in late.stderr) == (1, True)
    assert import_lines(ratings, db, build_clock_lines("started 0", "heartbeat 10 ben")).stdout.startswith(
        "0 appended, 2 already there"
    )


@pytest.mark.slow_cases
def test_two_auctions_in_one_millisecond_are_noted(db: str, ratings: Ratings) -> None:
    """If an input has an auction twice in one millisecond, a note says that it counts once; with different ids it
    counts twice.

    A file without such a repetition gives no note, even if it is imported again.
    """
    lines = build_clock_lines(
        "started 0", "auction_started 5000 anna", "auction_started 5000 anna", "heartbeat 6000 ben"
    )
    repeated = import_lines(ratings, db, lines)
    note = (
        "note: -:3: this clock.auction_started of 'anna' in 'g-1' repeats line 2 of -, also at 5000 ms, so "
        "both count as one event; if both happened, give them different ids\n"
    )
    assert (repeated.exit_code, repeated.stderr) == (0, note)
    assert repeated.stdout.startswith("3 appended, 1 already there")
    assert read_json(ratings, db, "clock", "show", "g-1")["players"][0]["main_ms"] == 100_000
    assert import_lines(ratings, db, lines).stderr == note
    alone = import_lines(ratings, db, build_clock_lines("started 0", "auction_started 5000 anna", "heartbeat 6000 ben"))
    assert (alone.exit_code, alone.stderr) == (0, "")

    start, *auctions = build_clock_lines("started 0", *["auction_started 5000 anna"] * 2, game_id="g-2").splitlines()
    with_ids = [json.dumps({**json.loads(line), "id": name}) for name, line in zip("xy", auctions, strict=True)]
    imported = import_lines(ratings, db, start, *with_ids)
    assert (imported.exit_code, imported.stderr) == (0, "")
    assert read_json(ratings, db, "clock", "show", "g-2")["players"][0]["main_ms"] == 80_000


@pytest.mark.slow_cases
def test_clock_events_are_voided_last_first(db: str, ratings: Ratings) -> None:
    """Clock events can only be voided last first; an earlier one is refused as `still-needed`."""
    assert (
        import_lines(ratings, db, build_clock_lines("started 0", "heartbeat 10 ben", "heartbeat 20 ben")).exit_code == 0
    )
    rows = read_json(ratings, db, "log", "--type", "clock.heartbeat")["rows"]
    first, last = (("void", "--event", row["id"], "--reason", "wrong") for row in rows)

    refused = ratings(*first, db=db)
    assert (refused.exit_code, refused.stderr.partition(":")[0]) == (1, "still-needed")
    assert ratings(*last, db=db).exit_code == 0
    assert ratings(*first, db=db).exit_code == 0
    assert read_json(ratings, db, "clock", "show", "g-1")["recorded_until"] == 0
    assert import_lines(ratings, db, build_clock_lines("heartbeat 5 ben")).exit_code == 0


@pytest.mark.parametrize(
    ("steps", "status", "message"),
    [
        (BEN_STALLS, "finished", None),
        (BEN_STALLS, "removed", None),
        (
            (*BEN_STALLS, "stopped 126000"),
            "finished",
            "g-1: ben is finished in the result, but the game's clock removed them at 126000 ms; "
            "see: ratings clock show g-1",
        ),
        ((*BEN_STALLS, "stopped 126000"), "removed", None),
        (
            (*BEN_STALLS, "stopped 125999"),
            "removed",
            "g-1: ben is removed in the result, but the game's clock never removed them; see: ratings clock show g-1",
        ),
        ((*BEN_STALLS, "stopped 125999"), "surrendered", None),
    ],
)
def test_verify_compares_result_with_clock(
    steps: tuple[str, ...], status: str, message: str | None, db: str, ratings: Ratings
) -> None:
    """`verify` reports a result that disagrees with the clock about a removal, and no other result.

    A log that ends before the removal is due contradicts neither status. `verify --since` does not report what was
    recorded up to that head.
    """
    assert import_lines(ratings, db, build_clock_lines(*steps)).exit_code == 0
    assert ratings("record", "-q", db=db, input=build_result_line(status)).exit_code == 0
    verified = ratings("verify", db=db)

    assert verified.exit_code == int(message is not None)
    assert (message or "") in verified.stdout
    assert (verified.stdout == "") is (message is None)
    if message is not None:
        assert ratings("verify", "--since", read_json(ratings, db, "status")["head"], db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_clock_knows_both_ids_of_a_renamed_player(db: str, ratings: Ratings) -> None:
    """A clock shows a player's current id, and `clock explain` accepts both; `--known-at` before the rename shows the
    old one."""
    assert (
        import_lines(
            ratings, db, build_clock_lines(*BEN_STALLS, "stopped 126000"), build_result_line("removed")
        ).exit_code
        == 0
    )
    assert ratings("player", "rename", "ben", "benedict", "--reason", "typo", db=db).exit_code == 0
    output = read_json(ratings, db, "clock", "show", "g-1")
    lines = [read_json(ratings, db, "clock", "explain", "g-1", name)["lines"] for name in ("ben", "benedict")]
    before = str(int(ratings("export", "events", db=db).stdout.count("\n")) - 1)

    assert [player["player"] for player in output["players"]] == ["anna", "benedict"]
    assert lines[0] == lines[1] != []
    known = read_json(ratings, db, "clock", "show", "g-1", "--known-at", before)
    assert [player["player"] for player in known["players"]] == ["anna", "ben"]
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_clock_accepts_either_id_after_a_rename(db: str, ratings: Ratings) -> None:
    """After a rename, events of a clock name either id; the rename cannot be withdrawn while an event depends on it.

    An event of a player who is not in the game is refused as before.
    """
    assert import_lines(ratings, db, build_clock_lines("started 0", "offered 1000 ben choice=roll-dice")).exit_code == 0
    rename = ("player", "rename", "ben", "benedict", "--reason", "typo")
    assert ratings(*rename, db=db).exit_code == 0
    (renamed,) = read_json(ratings, db, "log", "--type", "player.renamed")["rows"]
    withdraw = ("void", "--event", renamed["id"], "--reason", "wrong")
    later = import_lines(
        ratings,
        db,
        build_clock_lines("decided 3000 benedict", "auction_started 3001 ben", "stopped 9000"),
        build_result_line(),
    )
    assert later.exit_code == 0, later.stderr

    output = read_json(ratings, db, "clock", "show", "g-1")
    assert [(player["player"], player["main_ms"]) for player in output["players"]] == [
        ("anna", 120_000),
        ("benedict", 101_000),
    ]
    assert import_lines(ratings, db, build_clock_lines("heartbeat 1 cleo", game_id="g-1")).exit_code == 1
    assert ratings("verify", db=db) == (0, "", "")
    refused = ratings(*withdraw, db=db)
    assert (refused.exit_code, refused.stderr.partition(":")[0]) == (1, "still-needed")
    assert "the clock of 'g-1' name a player by the id from this rename" in refused.stderr


@pytest.mark.slow_cases
def test_rename_between_players_of_a_clock_is_refused(db: str, ratings: Ratings) -> None:
    """If events name a player's new id, no other player of that clock can be merged with them."""
    assert (
        import_lines(ratings, db, build_clock_lines("started 0", "heartbeat 1 anna", "heartbeat 1 ben")).exit_code == 0
    )
    for old, new, code in (("ben", "benedict", 0), ("anna", "benedict", 1)):
        result = ratings("player", "rename", old, new, "--reason", "typo", db=db)
        assert result.exit_code == code, result
        if not code:
            assert import_lines(ratings, db, build_clock_lines("heartbeat 5 benedict")).exit_code == 0
    assert result.stderr.startswith("players-met: 'anna' and 'benedict' are both on the clock of 'g-1'")
    assert "if that clock is wrong, void its events first, beginning with the last" in " ".join(result.stderr.split())


def test_clock_of_two_ids_of_one_person_shows_both(db: str, ratings: Ratings) -> None:
    """If two ids of a clock have become one person, each timer keeps the id that was recorded."""
    merging_games = [
        build_result_line(game_id="g-2").replace('"anna"', '"cleo"'),
        build_result_line(game_id="g-3").replace('"ben"', '"cleo"'),
    ]
    assert import_lines(ratings, db, build_clock_lines("started 0", "heartbeat 5 ben"), *merging_games).exit_code == 0
    merged = ratings("player", "rename", "ben", "anna", "--reason", "one person", db=db)
    assert merged.exit_code == 0, merged.stderr

    assert [player["player"] for player in read_json(ratings, db, "clock", "show", "g-1")["players"]] == ["anna", "ben"]
    assert ratings("clock", "explain", "g-1", "ben", db=db).exit_code == 0


def test_too_few_players_are_refused_in_plain_words(db: str, ratings: Ratings) -> None:
    """A clock needs two players; the refusal says how many there must be."""
    refused = import_lines(ratings, db, build_clock_lines("started 0", players="anna"))

    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (
        1,
        "-:1: bad-value: players: there must be at least 2, not 1",
    )


BONUS = {
    "600 seconds": (("started 0", "stopped 600000"), {}, "0"),
    "a millisecond more": (("started 0", "stopped 600001"), {}, "100"),
    "on another clock": (("started 5000000", "stopped 5600001"), {}, "100"),
    "without the pause": (
        ("started 0", "pause_asked 1 anna", "pause_answered 2 ben answer=yes", "turn_ended 3",
         "resume_asked 200003 anna", "resume_asked 200003 ben", "stopped 800000"), {}, "0",
    ),
    "until the player left": (("started 0", "player_left 600000 anna", "stopped 900000"), {}, "0"),
    "stated in the result": (("started 0", "stopped 900000"), {"seconds_played": 10}, "0"),
    "no clock": ((), {}, "0"),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "members", "bonus"), BONUS.values(), ids=BONUS)
def test_bonus_follows_clock_without_seconds(
    steps: tuple[str, ...], members: dict[str, Any], bonus: str, db: str, ratings: Ratings
) -> None:
    """The bonus depends on the clock if the result does not state the seconds played."""
    assert (
        import_lines(
            ratings, db, *([build_clock_lines(*steps)] if steps else []), build_result_line(**members)
        ).exit_code
        == 0
    )

    (anna,) = (
        row for row in read_json(ratings, db, "explain", "g-1", "galactic-points")["players"] if row["player"] == "anna"
    )
    assert int(anna["change"]) - 160 == int(bonus)


def test_clock_uses_timers_of_its_version(db: str, ratings: Ratings, tmp_path: Any) -> None:
    """A clock uses the timers of the ruleset version in force unless it states its own."""
    text = find_shipped_text("galactic-points")
    changed = text.replace('version = "1"', 'version = "2"').replace("main_ms = 120000", "main_ms = 60000")
    (tmp_path / "two.toml").write_text(changed.replace("1900-01-01", "2025-01-01"), encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "two.toml", db=db).exit_code == 0
    old = build_clock_lines("started 0", game_id="old").replace("2026-01-01", "2024-01-01")
    own = json.dumps({"type": "clock.started", "occurred_at": "2026-01-01T20:00:00Z", "data": {
        "game_id": "own", "at": 0, "players": ["anna", "ben"], "timers": {"main_ms": 5000},
    }})  # fmt: skip
    assert import_lines(ratings, db, old, build_clock_lines("started 0", game_id="new"), own).exit_code == 0

    timers = {
        game: read_json(ratings, db, "clock", "show", game)["players"][0]["main_ms"] for game in ("old", "new", "own")
    }
    assert timers == {"old": 120_000, "new": 60_000, "own": 5_000}
