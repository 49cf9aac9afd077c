"""`correct`, `void`, `reinstate`: games are put right, in whatever form, and all that depends on them follows."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NOON,
    WHY,
    Ratings,
    carry_out,
    catan,
    event,
    galactic,
    head,
    new_ledger,
    placing,
    points,
    read,
    refusal,
    small_ledger,
    take_in,
    told,
)

pytestmark = pytest.mark.ledger(make=small_ledger, store="sqlite")


def row(ratings: Ratings, db: str, game_id: str) -> dict[str, Any]:
    """A game as `games` shows it."""
    (found,) = [row for row in read(ratings, db, "games", "--limit", "0")["rows"] if row["game_id"] == game_id]
    return dict(found)


def editor(tmp_path: Path, body: str) -> str:
    """The command of an editor that runs these lines of Python over the `text` of a file."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n"
        f"text = path.read_text(encoding='utf-8')\n{body}\npath.write_text(text, encoding='utf-8')\n"
    )
    return shlex.join([sys.executable, str(script)])


def test_correction_updates_all_that_depends(db: str, ratings: Ratings) -> None:
    """Correcting a game updates all that depends on it, and the first record stays in the log."""
    done = carry_out(ratings, db, "correct", "g-1", "ben", "anna", "cleo", *WHY)

    # g-2 is scored again, too: ben takes 16 % of what anna has now
    assert done["changes"] == {
        (GALACTIC, "anna"): ("1034", "-219", "815"), (GALACTIC, "ben"): ("1166", "219", "1385"),
    }  # fmt: skip
    first, second = read(ratings, db, "log", "g-1")["rows"]
    assert (first["position"], first["type"], first["data"]) == (
        3,
        "game.recorded",
        placing("g-1", "anna", "ben", "cleo"),
    )
    assert (second["position"], second["type"], second["id"], second["supersedes"]) == (
        6, "game.corrected", done["event_id"], "game:g-1",
    )  # fmt: skip
    assert second["data"] == {
        "game_id": "g-1", "reason": "wrong way round", "game": placing("g-1", "ben", "anna", "cleo"),
    }  # fmt: skip
    assert ratings("verify", db=db) == (0, "", "")


FORMS = {
    "players": lambda row: (["ben=cleo", "anna", "--group", "night"], None),
    "the data of a game": lambda row: ([], {**data_of(row), **TIED}),
    "the row of the list of games": lambda row: ([], {**row, **TIED}),
    "the list of this one game": lambda row: ([], {"rows": [{**row, **TIED}]}),
    "a whole event": lambda row: (
        [], {"type": "game.recorded", "id": "game:g-1", "occurred_at": NOON, "data": {**data_of(row), **TIED}},
    ),
}  # fmt: skip
TIED = {"group": "night", "participants": placing("g-1", "ben=cleo", "anna")["participants"]}


def data_of(row: dict[str, Any]) -> dict[str, Any]:
    """The members of a game alone."""
    return {name: value for name, value in row.items() if name not in ("position", "occurred_at", "voided")}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_game(form: str, db: str, ratings: Ratings) -> None:
    """Whichever form the right game is given in, the correction records the same game."""
    before = row(ratings, db, "g-1")
    arguments, given = FORMS[form](before)
    carry_out(ratings, db, "correct", "g-1", *arguments, *WHY, input=None if given is None else json.dumps(given))

    assert row(ratings, db, "g-1") == {**before, **TIED}


def test_edit_records_what_the_editor_saves(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`correct --edit` opens the game as it now stands and records what the editor saves."""
    seen = tmp_path / "seen.json"
    told(ratings, db, "correct", "g-1", "cleo", "ben", "anna", "--at", "2010-03-05T13:00:00Z", *WHY)
    body = f"Path({str(seen)!r}).write_text(text)\ntext = text.replace('13:00', '13:30').replace('cleo', 'Chloé')"
    monkeypatch.setenv("EDITOR", editor(tmp_path, body))
    carry_out(ratings, db, "correct", "g-1", "--edit", *WHY)

    assert json.loads(seen.read_text()) == {
        "occurred_at": "2010-03-05T13:00:00.000000Z", **placing("g-1", "cleo", "ben", "anna"),
    }  # fmt: skip
    assert row(ratings, db, "g-1") == {
        "position": 3, "occurred_at": "2010-03-05T13:30:00.000000Z", **placing("g-1", "Chloé", "ben", "anna"),
    }  # fmt: skip


def test_unsaved_or_equal_edit_records_nothing(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is recorded when the editor saves nothing or leaves the game the same."""
    before = head(ratings, db)
    monkeypatch.setenv("EDITOR", "true")
    result = ratings("correct", "g-1", "--edit", *WHY, db=db)
    assert (result.exit_code, "without saving" in result.stderr) == (1, True)
    assert head(ratings, db) == before

    monkeypatch.setenv(
        "EDITOR", editor(tmp_path, "text = text.replace('2010-03-05T12:00:00.000000Z', '2010-03-05T12:00:00Z')")
    )
    assert refusal(ratings, db, "correct", "g-1", "--edit", *WHY) == "nothing-to-correct"


@pytest.mark.parametrize("given", ["nonsense", "", "[1]", '{"data": 5}', '{"data": [1]}', '{"a": 1, "a": 2}'])
def test_invalid_game_is_refused(
    given: str, db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input that is not a game is refused with a code, from standard input and from the editor."""
    monkeypatch.setenv("EDITOR", editor(tmp_path, f"text = {given!r}"))

    assert refusal(ratings, db, "correct", "g-1", *WHY, input=given)
    assert refusal(ratings, db, "correct", "g-1", "--edit", *WHY)


def test_other_kinds_are_corrected_as_json(tmp_path: Path, ratings: Ratings) -> None:
    """A game of another kind is corrected with JSON; naming players is a usage error."""
    db = new_ledger(ratings, tmp_path / "league.db", "b5-league-1")
    powers = {"anna": 20, "ben": 15, "cleo": 9}
    participants = [
        {"player": player, "power": power, "influence": 0, "vp": int(player == "ben")}
        for player, power in powers.items()
    ]
    data = {"game_id": "b-1", "game": "babylon5", "kind": "b5", "season": "2010-1", "participants": participants}
    take_in(ratings, db, event("game.recorded", **data))
    before = head(ratings, db)
    assert ratings("correct", "b-1", "ben", "anna", "cleo", *WHY, db=db).exit_code == 2
    assert head(ratings, db) == before
    participants[2]["power"] = 30
    done = carry_out(ratings, db, "correct", "b-1", *WHY, input=json.dumps(data))

    # 50, 30 and 20 % of 30 by place: cleo wins now, and ben keeps his victory point
    assert done["changes"] == {
        ("b5-league/2010-1", "anna"): ("105", "-6", "99"), ("b5-league/2010-1", "ben"): ("100", "-3", "97"),
        ("b5-league/2010-1", "cleo"): ("96", "9", "105"),
    }  # fmt: skip


def test_players_keep_their_other_details(db: str, ratings: Ratings) -> None:
    """A correction by players keeps whatever else was recorded of each player and of the game."""
    participants = [
        {"player": "anna", "place": 1, "seconds_played": 700, "seat": 2}, {"player": "ben", "place": 2, "seat": 1},
    ]  # fmt: skip
    take_in(ratings, db, galactic("g-3", participants=participants, extra={"table": "7"}))
    carry_out(ratings, db, "correct", "g-3", "ben", "anna", *WHY)

    found = row(ratings, db, "g-3")
    assert found["extra"] == {"table": "7"}
    assert found["participants"] == [
        {"player": "ben", "place": 1, "seat": 1}, {"player": "anna", "place": 2, "seconds_played": 700, "seat": 2},
    ]  # fmt: skip


@pytest.mark.parametrize("players", [["ben", "dora=emil", "anna"], ["dora=emil", "anna", "ben"]])
def test_shared_seat_counts_once(players: list[str], db: str, ratings: Ratings) -> None:
    """A seat that changed hands counts as one place in a correction by players."""
    participants = [
        {"player": "anna", "place": 1}, {"player": "ben", "place": 2},
        {"player": "dora", "place": 3, "status": "abandoned"},
        {"player": "emil", "place": 3, "status": "substitute", "replaces": "dora"},
    ]  # fmt: skip
    take_in(ratings, db, catan("c-3", participants=participants))
    carry_out(ratings, db, "correct", "c-3", *players, *WHY)

    found = read(ratings, db, "explain", "c-3", BASIC)["players"]
    places = {player: place for place, seat in enumerate(players, 1) for player in seat.split("=")}
    assert {player["player"]: player["place"] for player in found} == places


def test_labels_move_game_to_other_ladder(db: str, ratings: Ratings) -> None:
    """Correcting labels changes nothing else and moves the game to the other ladder."""
    before = row(ratings, db, "c-1")
    labels = {"group": "domaine", "city": "7", "league": "spring", "season": "one"}
    options = [part for name, value in labels.items() for part in (f"--{name}", value)]
    done = carry_out(ratings, db, "correct", "c-1", *options, *WHY)

    assert row(ratings, db, "c-1") == {**before, **labels}
    units = {"anna": "1008", "ben": "1000", "cleo": "992"}
    assert done["changes"] == {
        **{(BASIC, player): (units[player], None, None) for player in units},
        **{("catan-elo/domaine", player): (None, None, units[player]) for player in units},
    }
    assert points(ratings, db, BASIC) == {}


def test_empty_label_is_removed(db: str, ratings: Ratings) -> None:
    """An empty label is removed, and the game leaves every ladder that needs it."""
    done = carry_out(ratings, db, "correct", "c-1", "--group", "", *WHY)

    assert "group" not in row(ratings, db, "c-1")
    assert {after for _, _, after in done["changes"].values()} == {None}


def test_any_id_of_renamed_player_works(db: str, ratings: Ratings) -> None:
    """A correction by players accepts any id of a renamed player and keeps the recorded one."""
    participants = [{"player": "anna", "place": 1, "seconds_played": 700}, {"player": "ben", "place": 2}]
    take_in(ratings, db, galactic("g-3", participants=participants))
    told(ratings, db, "player", "rename", "anna", "anne")
    carry_out(ratings, db, "correct", "g-3", "ben", "anne", *WHY)

    assert row(ratings, db, "g-3")["participants"] == [
        {"player": "ben", "place": 1}, {"player": "anne", "place": 2, "seconds_played": 700},
    ]  # fmt: skip
    (last,) = read(ratings, db, "log", "--limit", "1")["rows"]
    assert [one["player"] for one in last["data"]["game"]["participants"]] == ["ben", "anna"]
    assert refusal(ratings, db, "correct", "g-3", "ben", "anna", *WHY) == "nothing-to-correct"
    assert refusal(ratings, db, "correct", "g-3", "anne", "anna", *WHY) == "player-twice"


MEANWHILE = {
    "voided": (["void", "g-1", *WHY], "game-voided"),
    "corrected": (["correct", "g-1", "cleo", "ben", "anna", *WHY], "changed-meanwhile"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MEANWHILE)
def test_change_during_edit_is_refused(
    what: str, db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit is refused if someone else changes the game while the editor is open."""
    command, code = MEANWHILE[what]
    somebody_else = [
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})", "from ratings_ledger.cli.main import invoke",
        f"assert invoke({['--db', db, *command]!r}) == 0", "text = text.replace('anna', 'dora')",
    ]  # fmt: skip
    monkeypatch.setenv("EDITOR", editor(tmp_path, "\n".join(somebody_else)))
    result = ratings("correct", "g-1", "--edit", *WHY, "--format", "json", db=db)

    assert (result.exit_code, json.loads(result.stdout)["rejected"][0]["code"]) == (1, code)
    assert [entry["position"] for entry in read(ratings, db, "log", "g-1")["rows"]] == [3, 6]


def test_other_game_changes_both_ladders(db: str, ratings: Ratings) -> None:
    """Correcting which game was played reports the changes on both games' ladders."""
    done = carry_out(ratings, db, "correct", "c-1", "--game", "galactic-magnate", *WHY)

    assert {ladder for ladder, _ in done["changes"]} == {BASIC, GALACTIC}


SAME = {
    "the same players": (["anna", "ben", "cleo"], None),
    "the same time elsewhere": (["--at", "2010-03-05 13:00", "--zone", "Europe/Berlin"], None),
    "the same game": (["--game", "galactic-magnate"], None),
    "the same data": ([], placing("g-1", "anna", "ben", "cleo")),
    "defaults spelled out": ([], {**placing("g-1", "anna", "ben", "cleo"), "rated": True, "city": None}),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "given"), SAME.values(), ids=SAME)
def test_correction_without_change_is_refused(
    arguments: list[str], given: dict[str, Any] | None, db: str, ratings: Ratings
) -> None:
    """A correction that equals the record is refused as `nothing-to-correct`."""
    told_by = None if given is None else json.dumps(given)

    assert refusal(ratings, db, "correct", "g-1", *arguments, *WHY, input=told_by) == "nothing-to-correct"


def test_void_and_reinstate_undo_each_other(db: str, ratings: Ratings) -> None:
    """A voided game counts for nothing, and once reinstated it counts as before."""
    before = points(ratings, db, GALACTIC)
    voided = carry_out(ratings, db, "void", "g-1", *WHY)

    assert voided["changes"][(GALACTIC, "cleo")] == ("800", None, None)
    assert points(ratings, db, GALACTIC) == {"ben": "1160", "anna": "840"}
    explained = read(ratings, db, "explain", "g-1", GALACTIC)
    assert (explained["counted"], explained["why_not"]) == (False, "the game is voided")
    assert row(ratings, db, "g-1")["voided"] is True
    assert [entry["game_id"] for entry in read(ratings, db, "history", "anna", GALACTIC)["rows"]] == ["g-2"]

    reinstated = carry_out(ratings, db, "reinstate", "g-1", *WHY)

    assert {key: (old, new) for key, (new, _, old) in reinstated["changes"].items()} == {
        key: (old, new) for key, (old, _, new) in voided["changes"].items()
    }
    assert points(ratings, db, GALACTIC) == before
    assert "voided" not in row(ratings, db, "g-1")


def test_row_marked_voided_is_accepted(db: str, ratings: Ratings) -> None:
    """A row marked as voided is accepted as a correction after the game was reinstated."""
    told(ratings, db, "void", "g-1", *WHY)
    voided = row(ratings, db, "g-1")
    told(ratings, db, "reinstate", "g-1", *WHY)
    carry_out(ratings, db, "correct", "g-1", *WHY, input=json.dumps({**voided, "city": "7"}))

    assert row(ratings, db, "g-1")["city"] == "7"


EXPECTING = {
    "correct": ["correct", "g-1", "cleo", "ben", "anna"], "void": ["void", "g-1"], "reinstate": ["reinstate", "g-2"],
    "void an event": ["void", "--event", "1"],
}  # fmt: skip
LAST = {"correct": 3, "void": 3, "reinstate": 6, "void an event": 1}


@pytest.mark.slow_cases
@pytest.mark.parametrize("command", EXPECTING)
def test_expect_guards_against_changes(command: str, db: str, ratings: Ratings) -> None:
    """With `--expect`, a command is refused unless the position is the expected one."""
    told(ratings, db, "void", "g-2", *WHY)
    for wrong in {3, 5, 99} - {LAST[command]}:
        arguments = (*EXPECTING[command], "--expect", str(wrong), *WHY)
        assert refusal(ratings, db, *arguments) == "changed-meanwhile"
        assert refusal(ratings, db, *arguments, "--dry-run") == "changed-meanwhile"
    carry_out(ratings, db, *EXPECTING[command], "--expect", str(LAST[command]), *WHY)


@pytest.mark.slow_cases
@pytest.mark.parametrize("has_places", [True, False])
def test_scores_go_with_corrected_places(has_places: bool, ratings: Ratings, copied: Callable[..., str]) -> None:
    """Where scores would contradict the new places, each place keeps its score, and a note says so."""
    db = copied(new_ledger)
    result = (("anna", 1, 10), ("ben", 2, 8), ("cleo", 3, 8))
    scored = [
        {"player": player, "score": score} | ({"place": place} if has_places else {}) for player, place, score in result
    ]
    take_in(ratings, db, catan("s-1", participants=scored))
    order = ("ben", "cleo", "anna") if has_places else ("ben", "cleo=anna")
    done = ratings("correct", "s-1", *order, "--reason", "wrong way round", db=db)
    assert done.exit_code == 0
    assert "note: the scores go with the places: ben 10, anna 8\n" in done.stderr
    (row,) = read(ratings, db, "games", "s-1")["rows"]
    assert {one["player"]: one["score"] for one in row["participants"]} == {"ben": 10, "cleo": 8, "anna": 8}
    refused = ratings("correct", "s-1", "cleo", "ben", "--reason", "anna was not there", db=db)
    assert refused.exit_code == 1
    assert "pass --score with the scores in the order of the places, such as --score 3:2" in refused.stderr


def duel(ratings: Ratings, db: str) -> None:
    """Take in a game that anna won 3:1."""
    participants = [{"player": "anna", "place": 1, "score": 3}, {"player": "ben", "place": 2, "score": 1}]
    take_in(ratings, db, catan("s-1", participants=participants))


CORRECTED_SCORES = {
    "the scores of the places": (("ben", "anna"), {"ben": 3, "anna": 1}),
    "somebody new": (("cleo", "ben"), {"cleo": 3, "ben": 1}),
    "new scores": (("ben", "anna", "--score", "3:2"), {"ben": 3, "anna": 2}),
    "the same players": (("--score", "3:2"), {"anna": 3, "ben": 2}),
    "players with scores": (("ben:3", "anna:2"), {"ben": 3, "anna": 2}),
    "a tie": (("ben=anna", "--score", "2"), {"ben": 2, "anna": 2}),
}


@pytest.mark.parametrize(("arguments", "expected"), CORRECTED_SCORES.values(), ids=CORRECTED_SCORES)
def test_corrected_result_has_scores(
    arguments: tuple[str, ...], expected: dict[str, int], ratings: Ratings, copied: Callable[..., str]
) -> None:
    """A corrected result has the scores that were typed, or those of its places; nobody is left without one."""
    db = copied(new_ledger)
    duel(ratings, db)
    assert ratings("correct", "s-1", *arguments, *WHY, db=db).exit_code == 0
    (row,) = read(ratings, db, "games", "s-1")["rows"]
    assert {one["player"]: one["score"] for one in row["participants"]} == expected


REFUSED_SCORES = {
    "too few": (("ben", "anna", "--score", "3"), "score-missing"),
    "no number": (("ben", "anna", "--score", "3-2"), "score-missing"),
    "both ways": (("ben:3", "anna:2", "--score", "3:2"), "score-missing"),
    "one alone": (("ben:3", "anna"), "score-missing"),
    "the loser first": (("ben", "anna", "--score", "2:3"), "score-contradicts-place"),
    "a new tie without a score": (("ben=anna",), "score-contradicts-place"),
    "a third player": (("ben", "anna", "cleo"), "score-contradicts-place"),
}


@pytest.mark.parametrize(("arguments", "code"), REFUSED_SCORES.values(), ids=REFUSED_SCORES)
def test_scores_that_do_not_fit_are_refused(
    arguments: tuple[str, ...], code: str, ratings: Ratings, copied: Callable[..., str]
) -> None:
    """Scores that are missing, given twice or against the order are refused, and nothing is recorded."""
    db = copied(new_ledger)
    duel(ratings, db)
    assert refusal(ratings, db, "correct", "s-1", *arguments, *WHY) == code


def correct_sets(tmp_path: Path, ratings: Ratings, row: str, *arguments: str) -> tuple[Any, str]:
    """Import a game of sets from a table and correct it; return what became of that, and the games then."""
    db, table = str(tmp_path / "club.db"), tmp_path / "sets.csv"
    table.write_text(f"Date,Player 1,Player 2,S1,S2,S3,S4\n2026-11-21,{row}\n", encoding="utf-8")
    assert ratings("init", "--for", "tt", "--zone", "UTC", db=db).exit_code == 0
    assert ratings("import", str(table), db=db).exit_code == 0
    done = ratings("correct", "2026-11-21-1", *arguments, "--reason", "from the score sheet", db=db)
    return done, ratings("games", db=db).stdout


@pytest.mark.parametrize(
    ("row", "players", "sets"),
    [
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("Ben", "Anna"), "11:7 9:11 11:3 11:8"),
        ("Anna,Ben,7:11,11:9,3:11,8:11", ("Anna", "Ben"), "11:7 9:11 11:3 11:8"),
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("Ben", "Anna", "--score", "3:2"), ""),
    ],
)
def test_sets_go_with_the_places_or_are_left_out(
    tmp_path: Path, ratings: Ratings, row: str, players: tuple[str, ...], sets: str
) -> None:
    """Corrected places keep the sets that led to their scores, seen from the better place; other scores lose them."""
    done, shown = correct_sets(tmp_path, ratings, row, *players)
    assert done.exit_code == 0
    assert ("are left out" in done.stderr) == (not sets)
    if sets and players == ("Ben", "Anna"):
        assert f"the sets go with the places: {sets} for Ben;" in done.stderr
    assert shown.splitlines()[-1].endswith(f"sets {sets}" if sets else "Anna (2)")


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("row", "arguments", "told"),
    [
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("--sets", "11:7 12:14 11:3 11:9"), "1 Anna (3), 2 Ben (1)"),
        ("Anna,Ben,7:11,11:9,3:11,8:11", ("--sets", "11:7 12:14 11:3 11:9"), "1 Ben (3), 2 Anna (1)"),
        ("Anna,Ben,11:7,9:11,11:3,11:8", ("Ben", "Anna", "--sets", "11-7, 12-14, 11-3, 11-9"), "1 Ben (3), 2 Anna (1)"),
        ("Anna,Ben,11:7,11:3,11:8,", ("--sets", "11:7 12:14 11:3 11:9", "--score", "3:1"), "1 Anna (3), 2 Ben (1)"),
    ],
)
def test_corrected_sets_count_the_scores(
    tmp_path: Path, ratings: Ratings, row: str, arguments: tuple[str, ...], told: str
) -> None:
    """--sets gives the sets the winner first, whichever player the record names first, and the scores follow."""
    done, shown = correct_sets(tmp_path, ratings, row, *arguments)
    assert "the sets go" not in done.stderr
    assert f"{told}, sets 11:7 12:14 11:3 11:9" in shown


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--sets", "7:11 9:11 11:3"), "results-disagree"),
        (("--sets", "11:7 9:11", "--score", "2:0"), "results-disagree"),
        (("--sets", "11 to 7"), "bad-value"),
        (("--sets", ""), "bad-value"),
        (("--sets", "11:7 9:11"), "score-contradicts-place"),
        (("Anna=Ben", "--sets", "11:7 9:11"), "score-missing"),
        (("Anna", "Ben", "Cleo", "--sets", "11:7 9:11 11:7"), "score-missing"),
    ],
)
def test_sets_that_do_not_fit_are_refused(
    tmp_path: Path, ratings: Ratings, arguments: tuple[str, ...], code: str
) -> None:
    """Sets that are none, or that give another winner or score than the command does, correct nothing."""
    done, shown = correct_sets(tmp_path, ratings, "Anna,Ben,11:7,9:11,11:3,11:8", *arguments)
    assert (done.exit_code, f"{code}: " in done.stderr) == (1, True)
    assert "sets 11:7 9:11 11:3 11:8" in shown
