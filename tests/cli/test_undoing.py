"""`undo`, `log --batch` and `void --batch`: what is one act, who may take it back, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import BASIC, Ratings, catan, new_ledger, points, position, read, refusal, take_in
from interleaving import act_before_next
from terminals import CTRL_C, type_answers
from thresholds import set_thresholds

import ratings_ledger as rl

HEADER = "game_id,occurred_at,game,group,1st,2nd,3rd\n"
LEAGUE = """
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


def table(*games: str) -> str:
    """A table with games of anna, ben and cleo."""
    return HEADER + "".join(f"{name},2010-03-0{n}T12:00:00Z,catan,basic,anna,ben,cleo\n" for n, name in
                            enumerate(games, 1))  # fmt: skip


def make_ledger(ratings: Ratings, url: str) -> None:
    """Two rulesets, and a game that mira recorded at position 3."""
    new_ledger(ratings, url)
    take_in(ratings, url, catan("c-1", "anna", "ben", "cleo"))


pytestmark = pytest.mark.ledger(make=make_ledger)


def undone(ratings: Ratings, db: str, *arguments: object, by: str = "mira") -> dict[str, Any]:
    """What `undo` says, which must succeed."""
    found = ratings("undo", *arguments, "--yes", "--by", by, "--format", "json", db=db)
    assert found.exit_code == 0, found
    return dict(json.loads(found.stdout))


def codes(ratings: Ratings, db: str, *arguments: object, by: str = "mira") -> list[tuple[str, str]]:
    """Code and message of each refusal of `undo`, which records nothing."""
    before = position(ratings, db)
    found = ratings("undo", *arguments, "--yes", "--by", by, "--format", "json", db=db)
    assert (found.exit_code, position(ratings, db)) == (1, before)
    return [(one["code"], one["message"]) for one in json.loads(found.stdout)["rejected"]]


@pytest.mark.slow_cases
def test_an_import_of_several_files_is_one_act(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """What all files of an import brought is taken back at once, with the batches; undone, everything is back."""
    (tmp_path / "a.csv").write_text(table("a-1", "a-2"))
    (tmp_path / "b.csv").write_text(table("b-1"))
    before = points(ratings, db, BASIC)
    assert ratings("import", tmp_path / "a.csv", tmp_path / "b.csv", "--by", "mira", db=db).exit_code == 0
    after, told = points(ratings, db, BASIC), undone(ratings, db)
    assert (told["ranges"], told["appended"]) == ([[4, 8]], 5)
    assert told["types"] == {"game.recorded": 3, "import.recorded": 2}
    assert points(ratings, db, BASIC) == before
    assert "(withdrawn)" in ratings("log", "--type", "import.recorded", db=db).stdout
    told = undone(ratings, db)
    assert (told["types"], told["appended"]) == ({"event.voided": 2, "game.voided": 3}, 5)
    assert points(ratings, db, BASIC) == after
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.slow_cases
def test_an_import_in_chunks_is_one_act(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import of several transactions is taken back in one, and that again."""
    set_thresholds(monkeypatch, imported_chunk=2)
    (tmp_path / "a.csv").write_text(table("a-1", "a-2", "a-3", "a-4", "a-5"))
    before = points(ratings, db, BASIC)
    assert ratings("import", tmp_path / "a.csv", "--by", "mira", db=db).exit_code == 0
    after = points(ratings, db, BASIC)
    assert undone(ratings, db)["appended"] == 6
    assert points(ratings, db, BASIC) == before
    assert undone(ratings, db)["appended"] == 6
    assert points(ratings, db, BASIC) == after


def test_what_a_program_committed_at_once_is_one_act(one_db: str, ratings: Ratings) -> None:
    """Games of several days that a program committed together are taken back together."""
    games = [json.loads(catan(f"p-{day}", "anna", "ben", "cleo", at=f"2010-03-0{day}T12:00:00Z")) for day in (6, 7)]
    with rl.open(one_db) as ledger:
        ledger.propose(games, "mira").commit()
    assert undone(ratings, one_db)["types"] == {"game.recorded": 2}


@pytest.mark.slow
def test_undo_asks_at_a_terminal(tmp_path: Path, ratings: Ratings) -> None:
    """It shows what it takes back and asks; no, Ctrl-C and nobody to ask record nothing."""
    db = str(tmp_path / "ratings.db")
    make_ledger(ratings, db)
    question = "Take it back? [yes, no] "
    ratings("correct", "c-1", "ben", "anna", "cleo", "--reason", "swapped", "--by", "mira", db=db)
    for answer in ("n\n", CTRL_C):
        code, stdout, shown = type_answers(["--db", db, "undo", "--by", "mira"], [(question, answer)])
        assert (code != 0, position(ratings, db)) == (True, 4)
        assert "nothing was recorded" in shown
        assert "c-1: 1 ben, 2 anna, 3 cleo: swapped" in stdout
        assert BASIC in stdout
    refused = ratings("undo", "--by", "mira", db=db)
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert ratings("undo", "--by", "mira", "--dry-run", db=db).exit_code == 0
    assert position(ratings, db) == 4
    code, stdout, _ = type_answers(["--db", db, "undo", "--by", "mira"], [(question, "y\n")])
    assert (code, "Undone at position 5;" in stdout) == (0, True)
    assert points(ratings, db, BASIC) == {"anna": "1008", "ben": "1000", "cleo": "992"}


@pytest.mark.slow_cases
def test_nobody_of_that_name_is_told_who_there_is(db: str, ratings: Ratings) -> None:
    """Without anything under a name, the last three that recorded something are named, the last one first."""
    for name in ("ada", "bo", "cy", "di"):
        ratings("record", "--game", "catan", "--game-id", name, "anna", "ben", "--by", name, db=db)
    ((code, told),) = codes(ratings, db, by="eve")
    assert code == "nothing-to-undo"
    assert told.endswith("; the last authors are 'di', 'cy', 'bo'; for example: ratings undo --by di")


@pytest.mark.slow_cases
def test_newer_act_of_another_name_is_told(db: str, ratings: Ratings) -> None:
    """Whoever takes back their last act is told what somebody else recorded later, which stays, and how that is taken
    back; nothing is told where nothing is newer, or where a position is named.
    """
    for name in ("mira", "Ada L."):
        ratings("record", "--game", "catan", "--game-id", name, "anna", "ben", "--by", name, db=db)
    told = "newer, and not undone: position 5, recorded by Ada L.; ratings undo 5 undoes that\n"
    assert told in ratings("undo", "--by", "mira", "--dry-run", db=db).stdout
    assert "newer" not in ratings("undo", "4", "--by", "mira", "--dry-run", db=db).stdout
    assert "newer" not in ratings("undo", "--by", "Ada L.", "--dry-run", db=db).stdout
    assert told in ratings("undo", "--by", "mira", "--yes", db=db).stdout
    assert "newer" not in ratings("undo", "--by", "mira", "--dry-run", db=db).stdout


@pytest.mark.slow_cases
def test_what_init_did_is_never_taken_back(ledger_url: str, ratings: Ratings) -> None:
    """The rulesets and the zone of `init` are nobody's act."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", "--by", "mira", db=ledger_url).exit_code == 0
    assert [code for code, _ in codes(ratings, ledger_url)] == ["nothing-to-undo"]
    for place in (1, 2):
        assert [code for code, _ in codes(ratings, ledger_url, place)] == ["never-undone"]
    assert [code for code, _ in codes(ratings, ledger_url, 3)] == ["event-unknown"]
    ratings("record", "--game", "chess", "--game-id", "g", "anna", "ben", "--by", "mira", db=ledger_url)
    assert undone(ratings, ledger_url)["types"] == {"game.recorded": 1}


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
@pytest.mark.parametrize(("last", "why", "way"), NEVER_UNDONE.values(), ids=NEVER_UNDONE)
def test_last_act_is_not_passed_over(last: str, why: str, way: str, ledger_url: str, ratings: Ratings) -> None:
    """Given a game, and then what is never taken back, undo refuses that with the way there is, and says how the game
    is taken back; both ways work.
    """
    ratings("init", "--for", "chess", "--zone", "Europe/Berlin", "--by", "mira", db=ledger_url)
    ratings("record", "--game", "chess", "--game-id", "g", "anna", "ben", "--by", "mira", db=ledger_url)
    assert ratings(*last.split(), "--by", "mira", db=ledger_url).exit_code == 0
    before = "to undo what 'mira' recorded before that: ratings undo 3"
    assert codes(ratings, ledger_url) == [("never-undone", f"{why}; {before}")]
    assert codes(ratings, ledger_url, 4) == [("never-undone", why)]
    assert [code for code, _ in codes(ratings, ledger_url, by="ben")] == ["nothing-to-undo"]
    assert ratings(*way.split(), "--by", "mira", db=ledger_url).exit_code == 0
    assert undone(ratings, ledger_url, 3)["types"] == {"game.recorded": 1}


@pytest.mark.slow_cases
def test_what_is_never_taken_back_may_be_all_that_there_is(ledger_url: str, ratings: Ratings) -> None:
    """A zone alone is refused without an act before it; where there was no zone before, it names none."""
    assert ratings("zone", "Europe/Paris", "--by", "mira", db=ledger_url).exit_code == 0
    assert [code for code, _ in codes(ratings, ledger_url)] == ["nothing-to-undo"]  # like that of `init`
    assert ratings("zone", "Europe/Berlin", "--by", "mira", db=ledger_url).exit_code == 0
    why = "the home zone Europe/Berlin (position 2) cannot be undone; to set another: ratings zone Europe/Paris"
    assert codes(ratings, ledger_url) == [("never-undone", why)]
    ((_, told),) = codes(ratings, ledger_url, 1)
    assert told.endswith("to set another: ratings zone NAME")


@pytest.mark.slow_cases
def test_what_was_changed_since_is_refused(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """An import of which somebody corrected one game is refused whole; once that is taken back, it can be."""
    (tmp_path / "a.csv").write_text(table("a-1", "a-2"))
    ratings("import", tmp_path / "a.csv", "--by", "mira", db=db)
    before = points(ratings, db, BASIC)
    ratings("correct", "a-2", "cleo", "ben", "anna", "--reason", "r", "--by", "ben", db=db)
    ((code, told),) = codes(ratings, db)
    assert code == "changed-since"
    assert told.startswith("'a-2' was changed later, by 'ben' at position 7 (game.corrected)")
    assert undone(ratings, db, 7)["by"] == "ben"
    assert points(ratings, db, BASIC) == before
    assert undone(ratings, db, 6)["types"]["game.recorded"] == 2
    assert [code for code, _ in codes(ratings, db, 4)] == ["undone-already"]


@pytest.mark.slow_cases
def test_games_voided_since_are_left_alone(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A game of an import that is voided already stays so; the others are taken back."""
    (tmp_path / "a.csv").write_text(table("a-1", "a-2"))
    ratings("import", tmp_path / "a.csv", "--by", "mira", db=db)
    ratings("void", "a-1", "--reason", "r", "--by", "ben", db=db)
    assert undone(ratings, db)["appended"] == 2
    undone(ratings, db)
    assert [row["game_id"] for row in read(ratings, db, "games")["rows"] if "voided" in row] == ["a-1"]


@pytest.mark.slow_cases
def test_file_of_corrections_is_one_act(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """All games that a table corrected are as they were, their dates, too."""
    (tmp_path / "a.csv").write_text(table("a-1", "a-2"))
    ratings("import", tmp_path / "a.csv", db=db)
    before = read(ratings, db, "games")["rows"]
    (tmp_path / "b.csv").write_text(table("a-2", "a-1").replace("anna,ben", "ben,anna"))
    done = ratings("correct", "--file", tmp_path / "b.csv", "--reason", "r", "--by", "mira", db=db)
    assert done.exit_code == 0
    assert undone(ratings, db)["types"] == {"game.corrected": 2}
    assert read(ratings, db, "games")["rows"] == before


@pytest.mark.slow_cases
def test_published_list_is_taken_back(db: str, ratings: Ratings) -> None:
    """A list is no longer published, and is again once that is undone."""
    ratings("publish", BASIC, "--by", "mira", db=db)
    assert undone(ratings, db)["appended"] == 1
    assert ratings("standings", BASIC, "--as-published", db=db).exit_code == 1
    undone(ratings, db)
    assert ratings("standings", BASIC, "--as-published", db=db).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.slow
def test_league_step_goes_unless_it_is_needed(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """The last who joined goes with the schedule that they drew, unless one of its games is played."""
    (tmp_path / "league.toml").write_text(LEAGUE)
    ratings("rules", "publish", tmp_path / "league.toml", db=db)
    create = ("league", "create", "spring", "--game", "go", "--players-per-game", "2", "--by", "mira")
    assert ratings(*create, db=db).exit_code == 0
    for number in range(8):
        assert ratings("league", "join", "spring", f"p{number}", "--by", "mira", db=db).exit_code == 0
    assert undone(ratings, db)["types"] == {"league.joined": 1, "league.scheduled": 1}
    assert len(read(ratings, db, "league", "show", "spring")["players"]) == 7
    undone(ratings, db)
    first = read(ratings, db, "league", "show", "spring")["games"][0]
    ratings("record", "--game", "go", "--game-id", first["game_id"], "--league", "spring", *first["seats"], db=db)
    joined = read(ratings, db, "log", "--type", "league.scheduled")["rows"][0]["position"]
    assert {code for code, _ in codes(ratings, db, joined)} == {"still-needed"}


@pytest.mark.slow_cases
def test_of_two_at_once_one_wins(db: str, ratings: Ratings) -> None:
    """If somebody takes an act back while somebody else looks at it, the second is told that it was changed."""
    ratings("correct", "c-1", "ben", "anna", "cleo", "--reason", "r", "--by", "mira", db=db)
    act_before_next("committed", lambda: undone(ratings, db))
    refused = ratings("undo", "--yes", "--by", "mira", "--format", "json", db=db)
    assert [one["code"] for one in json.loads(refused.stdout)["rejected"]] == ["changed-meanwhile"]
    assert (refused.exit_code, position(ratings, db)) == (1, 5)


@pytest.mark.slow_cases
def test_batch_is_shown_and_voided_by_its_name(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A file's name means all its imports, a position one of them; games that are voided are left alone."""
    for games in (("a-1", "a-2"), ("a-1", "a-2", "a-3")):
        (tmp_path / "a.csv").write_text(table(*games))
        ratings("import", tmp_path / "a.csv", db=db)
    ratings("correct", "a-1", "ben", "anna", "cleo", "--reason", "r", db=db)
    shown = read(ratings, db, "log", "--batch", "a.csv")["rows"]
    assert [row["position"] for row in shown] == [4, 5, 6, 7, 8]
    assert [row["position"] for row in read(ratings, db, "log", "--batch", 8)["rows"]] == [7, 8]
    assert [row["position"] for row in read(ratings, db, "log", "a-1", "--batch", "a.csv")["rows"]] == [4]
    assert ratings("log", "--batch", "nothing", db=db).exit_code == 2
    assert "did you mean a.csv" in ratings("log", "--batch", "A.csv", db=db).stderr

    ratings("void", "a-2", "--reason", "r", db=db)
    void = ("void", "--batch", "a.csv", "--reason", "another club", "--format", "json")
    tried = json.loads(ratings(*void, "--dry-run", db=db).stdout)
    assert (tried["appended"], position(ratings, db)) == (0, 10)
    done = json.loads(ratings(*void, db=db).stdout)
    assert (done["appended"], done["unchanged"]) == (2, ["a-2"])
    assert points(ratings, db, BASIC) == {"anna": "1008", "ben": "1000", "cleo": "992"}
    assert refusal(ratings, db, "void", "--batch", "b.csv", "--reason", "r") == "batch-unknown"
    assert undone(ratings, db, position(ratings, db))["types"] == {"game.voided": 2}
