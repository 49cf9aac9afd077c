"""`report player`: a player's points at two positions, their parts and causes, and commands that check them."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from club import HOSTILE, LADDER, create_club, record_game, run_ok
from correction_helpers import append_lines, build_event_line, build_game_data, read_json
from ledgers import advance_clock
from reported import ReportParser, parse_exact_number
from stores import create_postgres_database

Ratings = Callable[..., Any]
CAUSES_HEADING = "Causes of the difference"


def create_audited_club(ratings: Ratings, url: str) -> None:
    """Create the club that tests of web pages use, up to position 9, and record decisions and games after it."""
    create_club(ratings, url)
    for command in (
        ("record", "-q", "--game", "catan", "--game-id", "g-late", "--at", "2025-01-12T20:00Z", "anna", "美咲"),
        ("void", "g-4", "--reason", "a friendly & more"),
        ("player", "rename", "ben", "benno", "--reason", "as on his card"),
        ("adjust", LADDER, "anna", "-7.5", "--reason", "<b>late</b>", "--at", "2025-03-08"),
        ("record", "-q", "--game", "catan", "--game-id", "g-6", "--at", "2025-03-14T20:00Z", "anna", "benno"),
        ("void", "g-5", "--reason", "entered twice"),
        ("reinstate", "g-5", "--reason", "it was not"),
    ):
        run_ok(ratings, *command, "--by", "mira", db=url)


pytestmark = pytest.mark.ledger(make=create_audited_club)


def write_report(ratings: Ratings, db: str, path: Path, *arguments: str) -> bytes:
    """Write a report with the command and return its bytes."""
    result = ratings("report", "player", *arguments, "-o", path, db=db)
    assert (result.exit_code, result.stdout) == (0, ""), result
    return path.read_bytes()


def parse_report(ratings: Ratings, db: str, path: Path, *arguments: str) -> ReportParser:
    """Write and parse a report, and assert that it is well-formed, loads nothing, and links only to itself."""
    text = write_report(ratings, db, path, *arguments)
    page = ReportParser(text)
    assert not page.elements & {"script", "img", "iframe", "object", "embed", "link", "base", "form"}
    assert len({*page.ids}) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids}
    assert all(link.startswith("#") for link in page.links)
    assert not any(mark in text for mark in (b"url(", b"@import", b" src="))
    return page


def read_points_and_ranks(page: ReportParser) -> list[tuple[Fraction | None, str]]:
    """Return the points and rank at each position; the points are None where the player is not on the ladder."""
    (table,) = page.tables["The numbers"]
    rows = {row[0]: row[1:] for row in table}
    points = [None if text == "–" else parse_exact_number(text) for text in rows["Points"]]
    return [*zip(points, rows["Rank"], strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("player", ["anna", "benno", "美咲", HOSTILE])
@pytest.mark.parametrize("as_of", [(), ("--as-of", "2025-03-07")], ids=["now", "then"])
def test_report_agrees_with_the_commands(
    player: str, as_of: tuple[str, ...], db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Points, ranks, changes, causes and terms in a report equal those of the other commands."""
    page = parse_report(ratings, db, tmp_path / "x.html", player, LADDER, *as_of, "--known-at", "9")
    head = int(read_json(ratings, db, "status")["position"])
    id_by_position = {9: "ben" if player == "benno" else player, head: player}
    numbers = []
    for position, name in id_by_position.items():
        rows = read_json(ratings, db, "standings", LADDER, *as_of, "--known-at", str(position))["rows"]
        numbers += [(Fraction(row["points"]), str(row["rank"])) for row in rows if row["player"] == name]
    assert read_points_and_ranks(page) == numbers
    opening, lines, closing = page.read_account("Changes of the points, known at position 9")
    history = read_json(ratings, db, "history", id_by_position[9], LADDER, *as_of, "--known-at", "9")["rows"]
    assert [change for _, change in lines] == [Fraction(row["change"]) for row in history]
    assert opening == Fraction(history[0]["before"])
    assert closing == numbers[0][0]
    ends = [",".join([*(f"as-of={date}" for date in as_of[1:]), f"known-at={position}"]) for position in id_by_position]
    causes = read_json(ratings, db, "explain", "--change", "--from", ends[0], "--to", ends[1], player, LADDER)["causes"]
    opening, lines, closing = page.read_account(CAUSES_HEADING)
    assert [change for _, change in lines] == [Fraction(cause["amount"]) for cause in causes]
    assert (opening, closing) == (numbers[0][0], numbers[1][0])
    assert all(cause["cause"] in what for (what, _), cause in zip(lines, causes, strict=True))
    for position, name in id_by_position.items():
        axes = (*as_of, "--known-at", str(position))
        for row in read_json(ratings, db, "history", name, LADDER, *axes)["rows"]:
            if row["game_id"] is not None:
                _assert_has_terms(page, ratings, db, row["game_id"], name, axes)


def _assert_has_terms(
    page: ReportParser, ratings: Ratings, db: str, game_id: str, player: str, axes: tuple[str, ...]
) -> None:
    """Assert that one of a game's tables has the terms that `explain` gives for a player, with their sum."""
    explanation = read_json(ratings, db, "explain", game_id, LADDER, *axes)
    (own_row,) = (row for row in explanation["players"] if row["player"] == player)
    tables = []
    for table in page.tables[game_id]:
        *terms, last = [row[-1] for row in table[1:]]
        assert sum(map(parse_exact_number, terms)) == parse_exact_number(last)
        tables.append((sorted(map(parse_exact_number, terms)), parse_exact_number(last)))
    assert (sorted(Fraction(term["amount"]) for term in own_row["terms"]), Fraction(own_row["change"])) in tables


@pytest.mark.slow_cases
def test_report_shows_published_lists(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The report shows the player's row in each published list, or that they were not on it."""
    (row,) = read_json(ratings, db, "standings", LADDER, "--as-published", "--player", "ben")["rows"]
    for player, expected in (("benno", [(Fraction(row["points"]), str(row["rank"]))]), (HOSTILE, [(None, "–")])):
        page = parse_report(ratings, db, tmp_path / f"{len(player)}.html", player, LADDER)
        (table,) = page.tables["Published lists"]
        assert [
            (None if points == "–" else parse_exact_number(points), rank) for _, _, points, rank in table[1:]
        ] == expected
        assert "at position 9" in table[1][0]
    page = parse_report(ratings, db, tmp_path / "then.html", "benno", LADDER, "--as-of", "2025-02-27")
    assert "Published lists" not in page.tables


@pytest.mark.slow_cases
def test_report_lists_decisions_with_author_and_reason(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The report lists each decision about the player or their games, with its author and its escaped reason."""
    page = parse_report(ratings, db, tmp_path / "x.html", "anna", LADDER, "--known-at", "9")
    decisions = page.texts["Decisions"]
    assert all("by mira, at position" in decision for decision in decisions)
    for index, text in enumerate(
        ("g-1 corrected – “scores <read> wrong”", "g-4 voided – “a friendly & more”", "<b>late</b>")
    ):
        assert text in decisions[index], decisions
    assert not any("g-5" in decision or "ben is benno" in decision for decision in decisions)
    (voided,) = [text for text in page.texts["g-4"] if "does not count" in text]
    assert voided == "Known at position 17, it does not count: the game is voided."
    assert "Known at position 9, it does not count: not recorded yet." in page.texts["g-6"]


@pytest.mark.slow
def test_report_is_reproducible(
    db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_kind: str, server: str
) -> None:
    """The same ledger and coordinates give the same bytes: later, with more events recorded, and restored in either
    store."""
    arguments = ("anna", LADDER, "--as-of", "2025-03-09", "--known-at", "9")
    first = write_report(ratings, db, tmp_path / "1.html", *arguments)
    head = str(read_json(ratings, db, "status")["position"])
    with monkeypatch.context() as patch:
        advance_clock(patch, 40 * 86_400)
        assert write_report(ratings, db, tmp_path / "2.html", *arguments) == first
    run_ok(ratings, "export", "events", "-o", str(tmp_path / "all.jsonl"), db=db)
    run_ok(ratings, "correct", "g-1", "anna", "benno", "Łukasz", "--reason", "after all", "--by", "mira", db=db)
    assert write_report(ratings, db, tmp_path / "3.html", *arguments) != first
    assert write_report(ratings, db, tmp_path / "4.html", *arguments, "--to", head) == first
    with create_postgres_database(server) as other_url:
        urls = [f"sqlite:///{tmp_path / 'other.db'}", *([other_url] if store_kind == "sqlite" else [])]
        for number, url in enumerate(urls):
            run_ok(ratings, "init", "--no-rules", db=url)
            run_ok(ratings, "import", "--restore", str(tmp_path / "all.jsonl"), db=url)
            assert write_report(ratings, url, tmp_path / f"restored-{number}.html", *arguments) == first


@pytest.mark.slow
@pytest.mark.parametrize("player", ["anna", "ben", HOSTILE])
def test_commands_of_a_report_reproduce_it(
    player: str, db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command on the page runs as printed and reproduces the page's numbers, digests and bytes."""
    monkeypatch.chdir(tmp_path)
    path = Path("x.html")
    page = parse_report(ratings, db, path, player, LADDER, "--as-of", "2025-03-09", "--known-at", "9")
    numbers, commands = iter(read_points_and_ranks(page)), list[str]()
    digests = [content for label, content in page.commands if label.startswith("Digest")]
    for label, command in page.commands:
        if label.startswith(("Head", "Digest")):
            continue
        program, *arguments = shlex.split(command)
        result = ratings(*arguments, db=db)
        assert (program, result.exit_code) == ("ratings", 0), (label, result)
        commands.append(arguments[0])
        if "json" in arguments:
            output = json.loads(result.stdout)
            assert output["digest"] == digests.pop(0)
            points, rank = next(numbers)
            assert (points, rank) in [(Fraction(row["points"]), str(row["rank"])) for row in output["rows"]]
    assert {*commands} == {"verify", "standings", "history", "explain", "log", "rules", "report"}
    assert Path("again.html").read_bytes() == path.read_bytes()
    heads = [content for label, content in page.commands if label.startswith("Head")]
    assert heads[-1] == run_ok(ratings, "status", db=db).stdout.splitlines()[-1]


@pytest.mark.slow
def test_former_and_current_id_give_the_same_report(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A renamed player is found under either id, and the report says which id was theirs at the earlier position."""
    old = write_report(ratings, one_db, tmp_path / "old.html", "ben", LADDER, "--known-at", "9")
    assert write_report(ratings, one_db, tmp_path / "new.html", "benno", LADDER, "--known-at", "9") == old
    assert ReportParser(old).claims[0].endswith("under the id ben.")
    swapped = write_report(ratings, one_db, tmp_path / "swapped.html", LADDER, "benno", "--known-at", "9")
    assert swapped == old


@pytest.mark.slow
def test_merged_ids_keep_their_own_points_before(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """For two ids merged into one person, the requested id decides whose points are shown before the merge."""
    record_game(ratings, one_db, "g-7", "2025-03-20T20:00Z", "Anna G.", "benno")
    before = str(read_json(ratings, one_db, "status")["position"])
    run_ok(ratings, "player", "rename", "Anna G.", "anna", "--reason", "one card", "--by", "mira", db=one_db)
    rows = read_json(ratings, one_db, "standings", LADDER, "--known-at", before)["rows"]
    points_before = {row["player"]: Fraction(row["points"]) for row in rows}
    points_now = {
        row["player"]: Fraction(row["points"]) for row in read_json(ratings, one_db, "standings", LADDER)["rows"]
    }
    for player in ("anna", "Anna G."):
        page = parse_report(ratings, one_db, tmp_path / f"{player}.html", player, LADDER, "--known-at", before)
        assert [points for points, _ in read_points_and_ranks(page)] == [points_before[player], points_now["anna"]]
        assert page.read_account(CAUSES_HEADING)[1][-1][0].startswith("rename")


def test_corrected_game_may_name_one_person_twice(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A superseded version of a game is shown as written, even if two of its ids are one person now."""
    with_leaver = build_event_line(
        "game.recorded",
        "2025-03-20T20:00:00Z",
        game_id="g-7",
        game="catan",
        participants=[
            {"player": "Anna G.", "place": 1, "status": "abandoned"},
            {"player": "benno", "place": 2},
            {"player": "anna", "place": 1, "status": "substitute", "replaces": "Anna G."},
        ],
    )
    corrected_game = {"game_id": "g-7", **build_game_data("g-7", "anna", "benno", game="catan")}
    append_lines(
        ratings,
        one_db,
        with_leaver,
        build_event_line("game.corrected", game_id="g-7", reason="she played alone", game=corrected_game),
    )
    run_ok(ratings, "player", "rename", "Anna G.", "anna", "--reason", "one card", "--by", "mira", db=one_db)
    page = parse_report(ratings, one_db, tmp_path / "x.html", "anna", LADDER)
    recorded, corrected = [text.partition(" – ")[2] for text in page.texts["g-7"][:2]]
    assert (recorded, corrected) == ("1 Anna G., 1 anna, 2 benno", "1 anna, 2 benno")


@pytest.mark.slow
def test_report_of_player_absent_at_one_position(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A player who is on the ladder at only one of the positions has a report that says so."""
    page = parse_report(ratings, one_db, tmp_path / "1.html", "美咲", LADDER, "--known-at", "4")
    assert page.claims[0] == "As known at position 4, 美咲 was not on elo-catan."
    opening, lines, closing = page.read_account(CAUSES_HEADING)
    assert [(None, "–"), (closing, "5")] == read_points_and_ranks(page)
    assert (opening, [what.partition(" ")[0] for what, _ in lines]) == (
        1000,
        ["g-3:", "g-4:", "g-1:", "g-late:", "g-4:"],
    )
    for game_id in ("g-3", "g-late"):
        run_ok(ratings, "void", game_id, "--reason", "gone", "--by", "mira", db=one_db)
    page = parse_report(ratings, one_db, tmp_path / "2.html", "美咲", LADDER, "--known-at", "9")
    assert page.claims[1] == "As known at position 19, 美咲 is not on elo-catan."
    assert page.read_account(CAUSES_HEADING)[2] == 1000


def test_report_before_the_first_adjustment_is_refused(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A report for a time before a player's first adjustment is refused with the time of the adjustment."""
    run_ok(ratings, "adjust", LADDER, HOSTILE, "5", "--at", "2025-03-01", "--reason", "x", "--by", "mira", db=one_db)
    result = ratings("report", "player", HOSTILE, LADDER, "--as-of", "2025-02-01", "-o", tmp_path / "x.html", db=one_db)
    assert (result.exit_code, "; their first adjustment is at 2025-03-01" in result.stderr) == (1, True), result


IMPOSSIBLE_REPORTS: list[tuple[list[str], int, str]] = [
    (["ana", LADDER], 1, "player-unknown: 'ana' is not on any ladder; did you mean anna?"),
    (["anna", "elo-catan/5-6"], 1, "'anna' is not on elo-catan/5-6; they are on elo-catan/2, elo-catan/3-4"),
    (["anna", "elo-catn/all"], 2, "did you mean elo-catan?"),
    (["anna", LADDER, "--as-of", "soon"], 2, "--as-of"),
    (["anna", LADDER, "--known-at", "99"], 2, "'--known-at': the log ends at position"),
    (["anna", LADDER, "--to", "99"], 2, "'--to': the log ends at position"),
    (["anna", LADDER, "--known-at", "9", "--to", "8"], 2, "'--to': position 8 is earlier than `known_at` (9); swap"),
    (["anna", LADDER, "--as-of", "2024-01-01"], 1, "note: the first game on elo-catan was at 2025-01-10"),
    (["anna", LADDER, "--as-of", "2024-01-01"], 1, "'anna' has no points on elo-catan before 2024-01-01 23:59:59"),
    (["美咲", LADDER, "--as-of", "2025-01-11"], 1, "their first game is at 2025-01-12 21:00:00 Europe/Berlin"),
    (["anna", LADDER, "--known-at", "1"], 2, "no ruleset is called 'elo-catan' at position 1"),
    (["anna", LADDER, "-o", "x.pdf"], 2, "must end in .html"),
    (["anna"], 2, "name one of the 3 ladders that 'anna' is on:"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    IMPOSSIBLE_REPORTS,
    ids=[" ".join(arguments) for arguments, _, _ in IMPOSSIBLE_REPORTS],
)
def test_impossible_reports_are_refused(
    arguments: list[str],
    code: int,
    message: str,
    one_db: str,
    ratings: Ratings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An impossible report is refused with a suggestion or a reason, and no file is written."""
    monkeypatch.chdir(tmp_path)
    result = ratings("report", "player", "-o", "x.html", *arguments, db=one_db)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert not list(tmp_path.glob("x.*"))


def test_existing_file_and_full_disk_leave_files_intact(
    one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An existing file is left alone, and a failed write leaves no file."""
    folder = tmp_path / "pages"
    folder.mkdir()
    path = tmp_path / "x.html"
    path.write_text("mine")
    result = ratings("report", "player", "anna", LADDER, "-o", path, db=one_db)
    assert (result.exit_code, path.read_text()) == (2, "mine")

    def fail_with_full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail_with_full_disk)
    result = ratings("report", "player", "anna", LADDER, "-o", folder / "x.html", db=one_db)
    assert (result.exit_code, list(folder.iterdir())) == (3, [])


def test_report_without_extra_names_the_extra(
    one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the template library, a report is refused with the extra to install."""
    for name in [name for name in sys.modules if name.startswith(("jinja2", "ratings_ledger.web.page"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = ratings("report", "player", "anna", LADDER, "-o", tmp_path / "x.html", db=one_db)
    assert (result.exit_code, "pip install 'ratings-ledger[web]'" in result.stderr) == (2, True), result
    assert not (tmp_path / "x.html").exists()


def test_display_names_are_shown(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """With --names the report shows the player's name and their recorded id; the commands keep the id."""
    names = tmp_path / "names.csv"
    names.write_text("id,name\nanna,Anna <Ö> Example\n", encoding="utf-8")
    page = parse_report(ratings, one_db, tmp_path / "x.html", "anna", LADDER, "--names", str(names))
    (claim,) = page.claims
    assert claim.startswith("As known at position 17, Anna <Ö> Example has")
    assert "recorded as anna" in next(iter(page.texts.values()))[0]
    assert all("Example" not in command for _, command in page.commands)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_names_file_is_read_like_a_table(encoding: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A file of names may have the encoding, the capitals and the semicolons of a spreadsheet program."""
    names = tmp_path / "names.csv"
    names.write_text("ID;Name;Ort\nanna;Anna Müller;Ulm\n", encoding=encoding)
    page = parse_report(ratings, one_db, tmp_path / "x.html", "anna", LADDER, "--names", str(names))
    assert page.claims[0].startswith("As known at position 17, Anna Müller has")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{}, line 1: the table needs the columns id and name"),
        (b"\nid,Naam\nanna,Anna\n", "{}, line 2: the table needs the columns id and name"),
        (b"id;name\nanna;Anna\nben;\n", "{}, line 3: the row needs an id and a name"),
        (b"id;name\nanna;Anna\n\nanna;Ann\n", "{}, line 4: anna has two names, 'Anna' and 'Ann'; keep one"),
        (b"id;name\nanna;Ann\x9d\n", "{}, line 2: 'anna;Ann?' is not UTF-8 (byte 0x9D); save the file as UTF-8"),
        (b"PK\x03\x04", "{}: it is a spreadsheet; save the table as CSV"),
    ],
)
def test_bad_names_file_is_refused_with_the_line(
    content: bytes, message: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """An error in a file of names is refused with its line, and no page is written."""
    names = tmp_path / "names.csv"
    names.write_bytes(content)
    result = ratings("report", "player", "anna", LADDER, "--names", names, "-o", tmp_path / "x.html", db=one_db)
    assert (result.exit_code, message.format(names) in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "x.html").exists()
