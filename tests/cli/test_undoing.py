"""`undo`, `log --batch` and `void --batch`: the extent of an act, who may undo it, and rejections."""

import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    Ratings,
    append_lines,
    build_catan_line,
    create_ledger,
    get_refusal_code,
    read_json,
    read_points,
    read_position,
)
from interleaving import act_before_next
from terminals import CTRL_C, type_answers
from thresholds import set_thresholds

import ratings_ledger as rl

HEADER = "game_id,occurred_at,game,group,1st,2nd,3rd\n"
LEAGUE_RULESET = """
id = "go-league"
version = "1"
rule = "pairwise-elo/1"
effective_from = 1900-01-01
[scope]
game = ["go"]
[partition]
by = ["league"]
[params]
start = 1000
k_total = 32
scale = 400
"""


def build_table(*games: str) -> str:
    """Return a table with games of anna, ben and cleo."""
    return HEADER + "".join(
        f"{name},2010-03-0{n}T12:00:00Z,catan,basic,anna,ben,cleo\n" for n, name in enumerate(games, 1)
    )


def create_undo_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger: two rulesets, and a game at position 3."""
    create_ledger(ratings, url)
    append_lines(ratings, url, build_catan_line("c-1", "anna", "ben", "cleo"))


pytestmark = pytest.mark.ledger(make=create_undo_ledger)


def run_undo(ratings: Ratings, db: str, *arguments: object, by: str = "mira") -> dict[str, Any]:
    """Run `undo`, which must succeed, and return the JSON."""
    result = ratings("undo", *arguments, "--yes", "--by", by, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return dict(json.loads(result.stdout))


def list_undo_rejections(ratings: Ratings, db: str, *arguments: object, by: str = "mira") -> list[tuple[str, str]]:
    """Run `undo`, which must be refused and record nothing; return the code and message of each rejection."""
    before = read_position(ratings, db)
    result = ratings("undo", *arguments, "--yes", "--by", by, "--format", "json", db=db)
    assert (result.exit_code, read_position(ratings, db)) == (1, before)
    return [(rejection["code"], rejection["message"]) for rejection in json.loads(result.stdout)["rejected"]]


@pytest.mark.slow_cases
def test_import_of_several_files_is_one_act(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """An undo of an import of several files withdraws all its games and batches, and can itself be undone."""
    (tmp_path / "a.csv").write_text(build_table("a-1", "a-2"))
    (tmp_path / "b.csv").write_text(build_table("b-1"))
    before = read_points(ratings, db, BASIC)
    assert ratings("import", tmp_path / "a.csv", tmp_path / "b.csv", "--by", "mira", db=db).exit_code == 0
    after, report = read_points(ratings, db, BASIC), run_undo(ratings, db)
    assert (report["ranges"], report["appended"]) == ([[4, 8]], 5)
    assert report["types"] == {"game.recorded": 3, "import.recorded": 2}
    assert read_points(ratings, db, BASIC) == before
    assert "(withdrawn)" in ratings("log", "--type", "import.recorded", db=db).stdout
    report = run_undo(ratings, db)
    assert (report["types"], report["appended"]) == ({"event.voided": 2, "game.voided": 3}, 5)
    assert read_points(ratings, db, BASIC) == after
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.slow_cases
def test_import_in_chunks_is_one_act(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import of several transactions is undone in one, and the undo can be undone."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(build_table("a-1", "a-2", "a-3", "a-4", "a-5"))
    before = read_points(ratings, db, BASIC)
    assert ratings("import", tmp_path / "a.csv", "--by", "mira", db=db).exit_code == 0
    after = read_points(ratings, db, BASIC)
    assert run_undo(ratings, db)["appended"] == 6
    assert read_points(ratings, db, BASIC) == before
    assert run_undo(ratings, db)["appended"] == 6
    assert read_points(ratings, db, BASIC) == after


def test_events_committed_together_are_one_act(one_db: str, ratings: Ratings) -> None:
    """Games of several days that a program committed together are undone together."""
    games = [
        json.loads(build_catan_line(f"p-{day}", "anna", "ben", "cleo", at=f"2010-03-0{day}T12:00:00Z"))
        for day in (6, 7)
    ]
    with rl.open(one_db) as ledger:
        ledger.propose(games, "mira").commit()
    assert run_undo(ratings, one_db)["types"] == {"game.recorded": 2}


@pytest.mark.slow
def test_undo_confirms_at_a_terminal(tmp_path: Path, ratings: Ratings) -> None:
    """`undo` shows the act and asks; after no or Ctrl-C, or without a terminal, it records nothing."""
    db = str(tmp_path / "ratings.db")
    create_undo_ledger(ratings, db)
    question = "Take it back? [yes, no] "
    ratings("correct", "c-1", "ben", "anna", "cleo", "--reason", "swapped", "--by", "mira", db=db)
    for answer in ("n\n", CTRL_C):
        code, stdout, terminal_text = type_answers(["--db", db, "undo", "--by", "mira"], [(question, answer)])
        assert (code != 0, read_position(ratings, db)) == (True, 4)
        assert "nothing was recorded" in terminal_text
        assert "c-1: 1 ben, 2 anna, 3 cleo: swapped" in stdout
        assert BASIC in stdout
    refused = ratings("undo", "--by", "mira", db=db)
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert "--format json cannot ask; pass --yes" in ratings("undo", "--format", "json", db=db).stderr
    assert ratings("undo", "--by", "mira", "--dry-run", db=db).exit_code == 0
    assert read_position(ratings, db) == 4
    code, stdout, _ = type_answers(["--db", db, "undo", "--by", "mira"], [(question, "y\n")])
    assert (code, "Undone at position 5;" in stdout) == (0, True)
    assert read_points(ratings, db, BASIC) == {"anna": "1008", "ben": "1000", "cleo": "992"}


@pytest.mark.slow_cases
def test_unknown_author_lists_the_last_authors(db: str, ratings: Ratings) -> None:
    """For an author without acts, the message names the last three authors, the latest one first."""
    for name in ("ada", "bo", "cy", "di"):
        ratings("record", "--game", "catan", "--game-id", name, "anna", "ben", "--by", name, db=db)
    ((code, message),) = list_undo_rejections(ratings, db, by="eve")
    assert code == "nothing-to-undo"
    assert message.endswith("; the last authors are 'di', 'cy', 'bo'; for example: ratings undo --by di")


@pytest.mark.slow_cases
def test_newer_act_of_another_author_is_noted(db: str, ratings: Ratings) -> None:
    """Undoing one's last act notes a newer act of another author with the command that undoes it.

    Nothing is noted if no act is newer, or if a position is named.
    """
    for name in ("mira", "Ada L."):
        ratings("record", "--game", "catan", "--game-id", name, "anna", "ben", "--by", name, db=db)
    note = "newer, and not undone: position 5, recorded by Ada L.; ratings undo 5 undoes that\n"
    assert note in ratings("undo", "--by", "mira", "--dry-run", db=db).stdout
    assert "newer" not in ratings("undo", "4", "--by", "mira", "--dry-run", db=db).stdout
    assert "newer" not in ratings("undo", "--by", "Ada L.", "--dry-run", db=db).stdout
    assert note in ratings("undo", "--by", "mira", "--yes", db=db).stdout
    assert "newer" not in ratings("undo", "--by", "mira", "--dry-run", db=db).stdout


@pytest.mark.slow_cases
def test_init_is_never_undone(ledger_url: str, ratings: Ratings) -> None:
    """The rulesets and the home zone of `init` cannot be undone."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", "--by", "mira", db=ledger_url).exit_code == 0
    assert [code for code, _ in list_undo_rejections(ratings, ledger_url)] == ["nothing-to-undo"]
    for position in (1, 2):
        assert [code for code, _ in list_undo_rejections(ratings, ledger_url, position)] == ["never-undone"]
    assert [code for code, _ in list_undo_rejections(ratings, ledger_url, 3)] == ["event-unknown"]
    ratings("record", "--game", "chess", "--game-id", "g", "anna", "ben", "--by", "mira", db=ledger_url)
    assert run_undo(ratings, ledger_url)["types"] == {"game.recorded": 1}


NEVER_UNDONE = {
    "zone": (
        "zone Europe/Paris",
        "the home zone Europe/Paris (position 4) cannot be undone; to set another: ratings zone Europe/Berlin",
        "zone Europe/Berlin",
    ),
    "shipped rules": (
        "rules publish --shipped youplay-league",
        "the shipped ruleset youplay-league@1 cannot be undone; to withdraw it: ratings void --event 4 --reason TEXT",
        "void --event 4 --reason TEXT",
    ),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize(("command", "message", "alternative"), NEVER_UNDONE.values(), ids=NEVER_UNDONE)
def test_act_that_cannot_be_undone_is_refused_with_an_alternative(
    command: str, message: str, alternative: str, ledger_url: str, ratings: Ratings
) -> None:
    """An author's last act that cannot be undone is refused with an alternative command and the undo of the act
    before it.

    Both commands work.
    """
    ratings("init", "--for", "chess", "--zone", "Europe/Berlin", "--by", "mira", db=ledger_url)
    ratings("record", "--game", "chess", "--game-id", "g", "anna", "ben", "--by", "mira", db=ledger_url)
    assert ratings(*command.split(), "--by", "mira", db=ledger_url).exit_code == 0
    undo_of_game = "to undo what 'mira' recorded before that: ratings undo 3"
    assert list_undo_rejections(ratings, ledger_url) == [("never-undone", f"{message}; {undo_of_game}")]
    assert list_undo_rejections(ratings, ledger_url, 4) == [("never-undone", message)]
    assert [code for code, _ in list_undo_rejections(ratings, ledger_url, by="ben")] == ["nothing-to-undo"]
    assert ratings(*alternative.split(), "--by", "mira", db=ledger_url).exit_code == 0
    assert run_undo(ratings, ledger_url, 3)["types"] == {"game.recorded": 1}


@pytest.mark.slow_cases
def test_zone_cannot_be_undone(ledger_url: str, ratings: Ratings) -> None:
    """A changed home zone cannot be undone; the message names the command that sets another, with the former zone if
    there is one."""
    assert ratings("zone", "Europe/Paris", "--by", "mira", db=ledger_url).exit_code == 0
    assert [code for code, _ in list_undo_rejections(ratings, ledger_url)] == ["nothing-to-undo"]  # like that of `init`
    assert ratings("zone", "Europe/Berlin", "--by", "mira", db=ledger_url).exit_code == 0
    message = "the home zone Europe/Berlin (position 2) cannot be undone; to set another: ratings zone Europe/Paris"
    assert list_undo_rejections(ratings, ledger_url) == [("never-undone", message)]
    ((_, first_message),) = list_undo_rejections(ratings, ledger_url, 1)
    assert first_message.endswith("to set another: ratings zone NAME")


@pytest.mark.slow_cases
def test_act_with_a_changed_game_is_refused(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """An import with a game that was corrected later cannot be undone before the correction is undone."""
    (tmp_path / "a.csv").write_text(build_table("a-1", "a-2"))
    ratings("import", tmp_path / "a.csv", "--by", "mira", db=db)
    before = read_points(ratings, db, BASIC)
    ratings("correct", "a-2", "cleo", "ben", "anna", "--reason", "r", "--by", "ben", db=db)
    ((code, message),) = list_undo_rejections(ratings, db)
    assert code == "changed-since"
    assert message.startswith("'a-2' was changed later, by 'ben' at position 7 (game.corrected)")
    assert run_undo(ratings, db, 7)["by"] == "ben"
    assert read_points(ratings, db, BASIC) == before
    assert run_undo(ratings, db, 6)["types"]["game.recorded"] == 2
    assert [code for code, _ in list_undo_rejections(ratings, db, 4)] == ["undone-already"]


@pytest.mark.slow_cases
def test_games_voided_meanwhile_stay_voided(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A game of an import that is voided already stays voided; the other games are voided by the undo."""
    (tmp_path / "a.csv").write_text(build_table("a-1", "a-2"))
    ratings("import", tmp_path / "a.csv", "--by", "mira", db=db)
    ratings("void", "a-1", "--reason", "r", "--by", "ben", db=db)
    assert run_undo(ratings, db)["appended"] == 2
    run_undo(ratings, db)
    assert [row["game_id"] for row in read_json(ratings, db, "games")["rows"] if "voided" in row] == ["a-1"]


@pytest.mark.slow_cases
def test_file_of_corrections_is_one_act(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """Undoing a file of corrections restores all its games, including their dates."""
    (tmp_path / "a.csv").write_text(build_table("a-1", "a-2"))
    ratings("import", tmp_path / "a.csv", db=db)
    before = read_json(ratings, db, "games")["rows"]
    (tmp_path / "b.csv").write_text(build_table("a-2", "a-1").replace("anna,ben", "ben,anna"))
    result = ratings("correct", "--file", tmp_path / "b.csv", "--reason", "r", "--by", "mira", db=db)
    assert result.exit_code == 0
    assert run_undo(ratings, db)["types"] == {"game.corrected": 2}
    assert read_json(ratings, db, "games")["rows"] == before


@pytest.mark.slow_cases
def test_published_list_is_undone(db: str, ratings: Ratings) -> None:
    """An undone list is not published any more, and is published again once the undo is undone."""
    ratings("publish", BASIC, "--by", "mira", db=db)
    assert run_undo(ratings, db)["appended"] == 1
    assert ratings("standings", BASIC, "--as-published", db=db).exit_code == 1
    run_undo(ratings, db)
    assert ratings("standings", BASIC, "--as-published", db=db).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.slow
def test_league_step_is_undone_unless_it_is_needed(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """The last player's join is undone together with the schedule that it drew, unless a game of it is played."""
    (tmp_path / "league.toml").write_text(LEAGUE_RULESET)
    ratings("rules", "publish", tmp_path / "league.toml", db=db)
    create = ("league", "create", "spring", "--game", "go", "--players-per-game", "2", "--by", "mira")
    assert ratings(*create, db=db).exit_code == 0
    for number in range(8):
        assert ratings("league", "join", "spring", f"p{number}", "--by", "mira", db=db).exit_code == 0
    assert run_undo(ratings, db)["types"] == {"league.joined": 1, "league.scheduled": 1}
    assert len(read_json(ratings, db, "league", "show", "spring")["players"]) == 7
    run_undo(ratings, db)
    game = read_json(ratings, db, "league", "show", "spring")["games"][0]
    ratings("record", "--game", "go", "--game-id", game["game_id"], "--league", "spring", *game["seats"], db=db)
    schedule_position = read_json(ratings, db, "log", "--type", "league.scheduled")["rows"][0]["position"]
    assert {code for code, _ in list_undo_rejections(ratings, db, schedule_position)} == {"still-needed"}


@pytest.mark.slow_cases
def test_one_of_two_concurrent_undos_succeeds(db: str, ratings: Ratings) -> None:
    """If an act is undone while another user undoes it, the second undo is refused as changed meanwhile."""
    ratings("correct", "c-1", "ben", "anna", "cleo", "--reason", "r", "--by", "mira", db=db)
    act_before_next("committed", lambda: run_undo(ratings, db))
    refused = ratings("undo", "--yes", "--by", "mira", "--format", "json", db=db)
    assert [rejection["code"] for rejection in json.loads(refused.stdout)["rejected"]] == ["changed-meanwhile"]
    assert (refused.exit_code, read_position(ratings, db)) == (1, 5)


@pytest.mark.slow_cases
def test_batch_is_listed_and_voided_by_its_name(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """`--batch` with a file means all its imports, with a position only one; games voided already are left alone."""
    for games in (("a-1", "a-2"), ("a-1", "a-2", "a-3")):
        (tmp_path / "a.csv").write_text(build_table(*games))
        ratings("import", tmp_path / "a.csv", db=db)
    ratings("correct", "a-1", "ben", "anna", "cleo", "--reason", "r", db=db)
    rows = read_json(ratings, db, "log", "--batch", "a.csv")["rows"]
    assert [row["position"] for row in rows] == [4, 5, 6, 7, 8]
    assert [row["position"] for row in read_json(ratings, db, "log", "--batch", 8)["rows"]] == [7, 8]
    assert [row["position"] for row in read_json(ratings, db, "log", "a-1", "--batch", "a.csv")["rows"]] == [4]
    assert ratings("log", "--batch", "nothing", db=db).exit_code == 2
    assert "did you mean a.csv" in ratings("log", "--batch", "A.csv", db=db).stderr

    ratings("void", "a-2", "--reason", "r", db=db)
    void = ("void", "--batch", "a.csv", "--reason", "another club", "--format", "json")
    preview = json.loads(ratings(*void, "--dry-run", db=db).stdout)
    assert (preview["appended"], read_position(ratings, db)) == (0, 10)
    output = json.loads(ratings(*void, db=db).stdout)
    assert (output["appended"], output["unchanged"]) == (2, ["a-2"])
    assert read_points(ratings, db, BASIC) == {"anna": "1008", "ben": "1000", "cleo": "992"}
    assert get_refusal_code(ratings, db, "void", "--batch", "b.csv", "--reason", "r") == "batch-unknown"
    assert run_undo(ratings, db, read_position(ratings, db))["types"] == {"game.voided": 2}
