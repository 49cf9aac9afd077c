"""`report player`: what an auditor is handed: a number as known then and now, what it is made of, how to check it."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from club import HOSTILE, LADDER, made, ok
from correction_helpers import event, placing, read, take_in
from ledgers import advance_clock
from reported import Reported, number
from stores import create_postgres_database

Ratings = Callable[..., Any]
CHANGED = "What has been recorded since"


def audited(ratings: Ratings, url: str) -> None:
    """The club of the tests of pages, known up to position 9; and then everything that can move or rename somebody."""
    made(ratings, url)
    for command in (
        ("record", "-q", "--game", "catan", "--game-id", "g-late", "--at", "2025-01-12T20:00Z", "anna", "美咲"),
        ("void", "g-4", "--reason", "a friendly & more"),
        ("player", "rename", "ben", "benno", "--reason", "as on his card"),
        ("adjust", LADDER, "anna", "-7.5", "--reason", "<b>late</b>", "--at", "2025-03-08"),
        ("record", "-q", "--game", "catan", "--game-id", "g-6", "--at", "2025-03-14T20:00Z", "anna", "benno"),
        ("void", "g-5", "--reason", "entered twice"),
        ("reinstate", "g-5", "--reason", "it was not"),
    ):
        ok(ratings, *command, "--by", "mira", db=url)


pytestmark = pytest.mark.ledger(make=audited)


def written(ratings: Ratings, db: str, path: Path, *arguments: str) -> bytes:
    """The report that a command writes."""
    done = ratings("report", "player", *arguments, "-o", path, db=db)
    assert (done.exit_code, done.stdout) == (0, ""), done
    return path.read_bytes()


def reported(ratings: Ratings, db: str, path: Path, *arguments: str) -> Reported:
    """The same as it is read; it is whole, shows text as text, and leads nowhere but to itself."""
    text = written(ratings, db, path, *arguments)
    page = Reported(text)
    assert not page.elements & {"script", "img", "iframe", "object", "embed", "link", "base", "form"}
    assert len({*page.ids}) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids}
    assert all(link.startswith("#") for link in page.links)
    assert not any(mark in text for mark in (b"url(", b"@import", b" src="))
    return page


def told_numbers(page: Reported) -> list[tuple[Fraction | None, str]]:
    """The points and the rank at each side, as the table of the numbers has them; no points for who is not on it."""
    (table,) = page.tables["The numbers"]
    rows = {row[0]: row[1:] for row in table}
    points = [None if text == "–" else number(text) for text in rows["Points"]]
    return [*zip(points, rows["Rank"], strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("player", ["anna", "benno", "美咲", HOSTILE])
@pytest.mark.parametrize("as_of", [(), ("--as-of", "2025-03-07")], ids=["now", "then"])
def test_report_says_what_the_commands_say(
    player: str, as_of: tuple[str, ...], db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Points, ranks, every change, every cause and every term in a report are those of the other commands."""
    page = reported(ratings, db, tmp_path / "x.html", player, LADDER, *as_of, "--known-at", "9")
    head = int(read(ratings, db, "status")["position"])
    ids = {9: "ben" if player == "benno" else player, head: player}
    numbers = []
    for at, name in ids.items():
        rows = read(ratings, db, "standings", LADDER, *as_of, "--known-at", str(at))["rows"]
        numbers += [(Fraction(row["points"]), str(row["rank"])) for row in rows if row["player"] == name]
    assert told_numbers(page) == numbers
    opening, lines, closing = page.account("Changes of the points, known at position 9")
    history = read(ratings, db, "history", ids[9], LADDER, *as_of, "--known-at", "9")["rows"]
    assert [change for _, change in lines] == [Fraction(row["change"]) for row in history]
    assert opening == Fraction(history[0]["before"])
    assert closing == numbers[0][0]
    ends = [",".join([*(f"as-of={one}" for one in as_of[1:]), f"known-at={at}"]) for at in ids]
    causes = read(ratings, db, "explain", "--change", "--from", ends[0], "--to", ends[1], player, LADDER)["causes"]
    opening, lines, closing = page.account(CHANGED)
    assert [change for _, change in lines] == [Fraction(one["amount"]) for one in causes]
    assert (opening, closing) == (numbers[0][0], numbers[1][0])
    assert all(one["cause"] in what for (what, _), one in zip(lines, causes, strict=True))
    for at, name in ids.items():
        for row in read(ratings, db, "history", name, LADDER, *as_of, "--known-at", str(at))["rows"]:
            if row["game_id"] is not None:
                _has_terms(page, ratings, db, row["game_id"], name, (*as_of, "--known-at", str(at)))


def _has_terms(page: Reported, ratings: Ratings, db: str, game_id: str, player: str, axes: tuple[str, ...]) -> None:
    """One of a game's tables has the terms that explain it to a player, which sum to the change."""
    explained = read(ratings, db, "explain", game_id, LADDER, *axes)
    (mine,) = (one for one in explained["players"] if one["player"] == player)
    found = []
    for table in page.tables[game_id]:
        *terms, last = [row[-1] for row in table[1:]]
        assert sum(map(number, terms)) == number(last)
        found.append((sorted(map(number, terms)), number(last)))
    assert (sorted(Fraction(term["amount"]) for term in mine["terms"]), Fraction(mine["change"])) in found


@pytest.mark.slow_cases
def test_report_tells_what_lists_showed(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The report has what each published list showed of the player, or that they were not on it."""
    (row,) = read(ratings, db, "standings", LADDER, "--as-published", "--player", "ben")["rows"]
    for player, wanted in (("benno", [(Fraction(row["points"]), str(row["rank"]))]), (HOSTILE, [(None, "–")])):
        page = reported(ratings, db, tmp_path / f"{len(player)}.html", player, LADDER)
        (table,) = page.tables["Published lists"]
        assert [(None if points == "–" else number(points), rank) for _, _, points, rank in table[1:]] == wanted
        assert "at position 9" in table[1][0]
    page = reported(ratings, db, tmp_path / "then.html", "benno", LADDER, "--as-of", "2025-02-27")
    assert "Published lists" not in page.tables


@pytest.mark.slow_cases
def test_report_names_who_decided_what_and_why(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Each decision that touched the player or a game of theirs is told, with who made it, and the reason as text."""
    page = reported(ratings, db, tmp_path / "x.html", "anna", LADDER, "--known-at", "9")
    told = page.texts["Decisions"]
    assert all("by mira, at position" in one for one in told)
    for number_of, what in enumerate(
        ("g-1 corrected – “scores <read> wrong”", "g-4 voided – “a friendly & more”", "<b>late</b>")
    ):
        assert what in told[number_of], told
    assert not any("g-5" in one or "ben is benno" in one for one in told)
    (voided,) = [text for text in page.texts["g-4"] if "does not count" in text]
    assert voided == "Known at position 17, it does not count: the game is voided."
    assert "Known at position 9, it does not count: not recorded yet." in page.texts["g-6"]


@pytest.mark.slow
def test_report_is_the_same_bytes_again(
    db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_kind: str, server: str
) -> None:
    """The same ledger and coordinates give the same bytes: later, with more recorded, and restored in either store."""
    arguments = ("anna", LADDER, "--as-of", "2025-03-09", "--known-at", "9")
    first = written(ratings, db, tmp_path / "1.html", *arguments)
    head = str(read(ratings, db, "status")["position"])
    with monkeypatch.context() as patch:
        advance_clock(patch, 40 * 86_400)
        assert written(ratings, db, tmp_path / "2.html", *arguments) == first
    ok(ratings, "export", "events", "-o", str(tmp_path / "all.jsonl"), db=db)
    ok(ratings, "correct", "g-1", "anna", "benno", "Łukasz", "--reason", "after all", "--by", "mira", db=db)
    assert written(ratings, db, tmp_path / "3.html", *arguments) != first
    assert written(ratings, db, tmp_path / "4.html", *arguments, "--to", head) == first
    with create_postgres_database(server) as other:
        urls = [f"sqlite:///{tmp_path / 'other.db'}", *([other] if store_kind == "sqlite" else [])]
        for number_of, url in enumerate(urls):
            ok(ratings, "init", "--no-rules", db=url)
            ok(ratings, "import", "--restore", str(tmp_path / "all.jsonl"), db=url)
            assert written(ratings, url, tmp_path / f"restored-{number_of}.html", *arguments) == first


@pytest.mark.slow
@pytest.mark.parametrize("player", ["anna", "ben", HOSTILE])
def test_commands_of_a_report_check_it(
    player: str, db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command on the page can be run as it stands, and shows the page's numbers, digests and bytes again."""
    monkeypatch.chdir(tmp_path)
    path = Path("x.html")
    page = reported(ratings, db, path, player, LADDER, "--as-of", "2025-03-09", "--known-at", "9")
    numbers, ran = iter(told_numbers(page)), list[str]()
    digests = [what for told, what in page.commands if told.startswith("Digest")]
    for told, command in page.commands:
        if told.startswith(("Head", "Digest")):
            continue
        program, *arguments = shlex.split(command)
        done = ratings(*arguments, db=db)
        assert (program, done.exit_code) == ("ratings", 0), (told, done)
        ran.append(arguments[0])
        if "json" in arguments:
            found = json.loads(done.stdout)
            assert found["digest"] == digests.pop(0)
            points, rank = next(numbers)
            assert (points, rank) in [(Fraction(row["points"]), str(row["rank"])) for row in found["rows"]]
    assert {*ran} == {"verify", "standings", "history", "explain", "log", "rules", "report"}
    assert Path("again.html").read_bytes() == path.read_bytes()
    heads = [what for told, what in page.commands if told.startswith("Head")]
    assert heads[-1] == ok(ratings, "status", db=db).stdout.splitlines()[-1]


@pytest.mark.slow
def test_ids_of_one_person_give_one_report(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A player renamed in between is found under either id, and the report says which id was theirs then."""
    old = written(ratings, one_db, tmp_path / "old.html", "ben", LADDER, "--known-at", "9")
    assert written(ratings, one_db, tmp_path / "new.html", "benno", LADDER, "--known-at", "9") == old
    assert Reported(old).claims[0].endswith("under the id ben.")
    swapped = written(ratings, one_db, tmp_path / "swapped.html", LADDER, "benno", "--known-at", "9")
    assert swapped == old


@pytest.mark.slow
def test_merged_players_keep_their_own_past(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of two ids that became one person, the one that is asked for is who is meant before."""
    ok(ratings, "record", "-q", "--game", "catan", "--game-id", "g-7", "--at", "2025-03-20T20:00Z", "Anna G.", "benno",
       "--by", "mira", "--new-names", "accept", db=one_db)  # fmt: skip
    before = str(read(ratings, one_db, "status")["position"])
    ok(ratings, "player", "rename", "Anna G.", "anna", "--reason", "one card", "--by", "mira", db=one_db)
    rows = read(ratings, one_db, "standings", LADDER, "--known-at", before)["rows"]
    was = {row["player"]: Fraction(row["points"]) for row in rows}
    now = {row["player"]: Fraction(row["points"]) for row in read(ratings, one_db, "standings", LADDER)["rows"]}
    for player in ("anna", "Anna G."):
        page = reported(ratings, one_db, tmp_path / f"{player}.html", player, LADDER, "--known-at", before)
        assert [points for points, _ in told_numbers(page)] == [was[player], now["anna"]]
        assert page.account(CHANGED)[1][-1][0].startswith("rename")


def test_corrected_version_may_name_one_person_twice(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Of a game that was corrected, the version with two ids that are one person now is told as it was written."""
    left = event("game.recorded", "2025-03-20T20:00:00Z", game_id="g-7", game="catan", participants=[
        {"player": "Anna G.", "place": 1, "status": "abandoned"}, {"player": "benno", "place": 2},
        {"player": "anna", "place": 1, "status": "substitute", "replaces": "Anna G."},
    ])  # fmt: skip
    alone = {"game_id": "g-7", **placing("g-7", "anna", "benno", game="catan")}
    take_in(ratings, one_db, left, event("game.corrected", game_id="g-7", reason="she played alone", game=alone))
    ok(ratings, "player", "rename", "Anna G.", "anna", "--reason", "one card", "--by", "mira", db=one_db)
    page = reported(ratings, one_db, tmp_path / "x.html", "anna", LADDER)
    recorded, corrected = [text.partition(" – ")[2] for text in page.texts["g-7"][:2]]
    assert (recorded, corrected) == ("1 Anna G., 1 anna, 2 benno", "1 anna, 2 benno")


@pytest.mark.slow
def test_newcomers_were_not_on_it_then(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Who was not on the ladder then, or is not on it now, has a report that says so; who never was has none."""
    page = reported(ratings, one_db, tmp_path / "1.html", "美咲", LADDER, "--known-at", "4")
    assert page.claims[0] == "As known at position 4, 美咲 was not on elo-catan."
    opening, lines, closing = page.account(CHANGED)
    assert [(None, "–"), (closing, "5")] == told_numbers(page)
    assert (opening, [what.partition(" ")[0] for what, _ in lines]) == (
        1000, ["g-3:", "g-4:", "g-1:", "g-late:", "g-4:"]
    )  # fmt: skip
    for game_id in ("g-3", "g-late"):
        ok(ratings, "void", game_id, "--reason", "gone", "--by", "mira", db=one_db)
    page = reported(ratings, one_db, tmp_path / "2.html", "美咲", LADDER, "--known-at", "9")
    assert page.claims[1] == "As known at position 19, 美咲 is not on elo-catan."
    assert page.account(CHANGED)[2] == 1000


WRONG: list[tuple[list[str], int, str]] = [
    (["ana", LADDER], 1, "player-unknown: 'ana' is on no ladder; did you mean anna?"),
    (["anna", "elo-catan/5-6"], 1, "'anna' is not on elo-catan/5-6; they are on elo-catan/2, elo-catan/3-4"),
    (["anna", "elo-catn/all"], 2, "did you mean elo-catan?"),
    (["anna", LADDER, "--as-of", "soon"], 2, "--as-of"),
    (["anna", LADDER, "--known-at", "99"], 2, "--known-at: the log ends at position"),
    (["anna", LADDER, "--to", "99"], 2, "--to: the log ends at position"),
    (["anna", LADDER, "--known-at", "9", "--to", "8"], 2, "--to: position 8 is earlier than `known_at` (9); swap"),
    (["anna", LADDER, "--as-of", "2024-01-01"], 1, "note: the first game on elo-catan was at 2025-01-10"),
    (["anna", LADDER, "--as-of", "2024-01-01"], 1, "'anna' has no points on elo-catan before 2024-01-01 23:59:59"),
    (["美咲", LADDER, "--as-of", "2025-01-11"], 1, "their first game is at 2025-01-12 21:00:00 Europe/Berlin"),
    (["anna", LADDER, "--known-at", "1"], 2, "no ruleset is called 'elo-catan' at position 1"),
    (["anna", LADDER, "-o", "x.pdf"], 2, "must end in .html"),
    (["anna"], 2, "name one of the 3 ladders that 'anna' is on:"),
]


@pytest.mark.parametrize(("arguments", "code", "why"), WRONG, ids=[" ".join(arguments) for arguments, _, _ in WRONG])
def test_impossible_reports_are_refused(
    arguments: list[str], code: int, why: str, one_db: str, ratings: Ratings, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Who or what is not there is refused with what may be meant, and no file is written."""
    monkeypatch.chdir(tmp_path)
    done = ratings("report", "player", "-o", "x.html", *arguments, db=one_db)
    assert (done.exit_code, why in done.stderr) == (code, True), done.stderr
    assert not list(tmp_path.glob("x.*"))


def test_existing_files_and_full_disks_are_safe(
    one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An existing file is left alone, and a write that fails leaves nothing behind."""
    folder = tmp_path / "pages"
    folder.mkdir()
    path = tmp_path / "x.html"
    path.write_text("mine")
    done = ratings("report", "player", "anna", LADDER, "-o", path, db=one_db)
    assert (done.exit_code, path.read_text()) == (2, "mine")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = ratings("report", "player", "anna", LADDER, "-o", folder / "x.html", db=one_db)
    assert (done.exit_code, list(folder.iterdir())) == (3, [])


def test_report_says_which_extra_is_missing(
    one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the library of the pages, a report is refused with the extra that has it."""
    for name in [name for name in sys.modules if name.startswith(("jinja2", "ratings_ledger.web.page"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = ratings("report", "player", "anna", LADDER, "-o", tmp_path / "x.html", db=one_db)
    assert (done.exit_code, "pip install 'ratings-ledger[web]'" in done.stderr) == (2, True), done
    assert not (tmp_path / "x.html").exists()


def test_names_of_a_file_are_shown(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """With --names a person is shown under their name, and said to be recorded as their id; commands keep the id."""
    names = tmp_path / "names.csv"
    names.write_text("id,name\nanna,Anna <Ö> Example\n", encoding="utf-8")
    page = reported(ratings, one_db, tmp_path / "x.html", "anna", LADDER, "--names", str(names))
    (claim,) = page.claims
    assert claim.startswith("As known at position 17, Anna <Ö> Example has")
    assert "recorded as anna" in next(iter(page.texts.values()))[0]
    assert all("Example" not in command for _, command in page.commands)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_names_are_read_as_tables_are(encoding: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A file of names may have the encoding, the capitals and the semicolons of a spreadsheet program."""
    names = tmp_path / "names.csv"
    names.write_text("ID;Name;Ort\nanna;Anna Müller;Ulm\n", encoding=encoding)
    page = reported(ratings, one_db, tmp_path / "x.html", "anna", LADDER, "--names", str(names))
    assert page.claims[0].startswith("As known at position 17, Anna Müller has")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{}, line 1: the columns id and name are needed"),
        (b"\nid,Naam\nanna,Anna\n", "{}, line 2: the columns id and name are needed"),
        (b"id;name\nanna;Anna\nben;\n", "{}, line 3: an id and a name are needed"),
        (b"id;name\nanna;Anna\n\nanna;Ann\n", "{}, line 4: anna has two names"),
        (b"id;name\nanna;Ann\x9d\n", "{}, line 2: 'anna;Ann?' is not UTF-8 (byte 0x9D); save the file as UTF-8"),
        (b"PK\x03\x04", "{}: it is a spreadsheet; save the table as CSV"),
    ],
)
def test_file_of_names_is_refused_with_the_line(
    content: bytes, message: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """What is wrong with a file of names is said with the line, and no page is made."""
    names = tmp_path / "names.csv"
    names.write_bytes(content)
    done = ratings(
        "report", "player", "anna", LADDER, "--names", names, "-o", tmp_path / "x.html", db=one_db
    )  # fmt: skip
    assert (done.exit_code, message.format(names) in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "x.html").exists()
