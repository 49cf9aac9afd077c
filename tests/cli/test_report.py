"""`report changes`: what was decided, by whom and why, and who gained and lost by it, as one file for the members."""

import os
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from correction_helpers import Ratings, build_catan_line, build_galactic_line, create_ledger, read_json, read_position
from interleaving import act_before_next

EVIL = "<script>alert(1)</script> & \"quotes\" 'n' | * _ ` \u202eright to left"
REASONS = {"void": "entered twice", "correct": "it was another group | see https://club.example", "adjust": EVIL}


def make_day(ratings: Ratings, url: str) -> None:
    """Make a ledger with games up to position 9, and then a day of decisions by two people, and two more games."""
    create_ledger(ratings, url, "galactic-points-1", "catan-elo-2009-01")
    lines = [
        build_galactic_line(f"g-{n}", *players.split(), at=f"2010-03-0{n}T12:00:00Z")
        for n, players in enumerate(["anna ben", "ben cleo", "cleo anna dora", "dora anna"], 1)
    ]
    lines += [build_catan_line(f"c-{n}", "anna", "ben", "cleo", at=f"2010-03-0{n}T13:00:00Z") for n in (1, 2, 3)]
    assert ratings("import", "-", db=url, input="".join(lines)).exit_code == 0
    steps: list[tuple[list[str], str | None]] = [
        (["void", "--file", "-", "--reason", REASONS["void"], "--by", "mira & co"], "g-1\ng-2\n"),
        (["correct", "c-1", "ben", "anna", "cleo", "--reason", "wrong way round", "--by", "ben"], None),
        (
            ["import", "-"],
            build_galactic_line("g-8", "anna", "ben", at="2010-03-08T12:00:00Z")
            + build_galactic_line("g-9", "emil", "fay"),
        ),
        (["adjust", "galactic-points", "anna", "25", "--reason", REASONS["adjust"], "--by", "ben"], None),
        (["player", "rename", "dora", "<dora>", "--by", "ben"], None),
        (["correct", "c-3", "--group", "rivals-duel", "--reason", REASONS["correct"], "--by", "ben"], None),
    ]
    for command, text in steps:
        assert ratings(*command, db=url, input=text).exit_code == 0, command


pytestmark = pytest.mark.ledger(make=make_day)


class Tables(HTMLParser):
    """The headings and tables of a page of HTML, and every element and attribute that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.headings: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self._open = tag
        if tag == "h2":
            self.headings.append("")
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "h2":
            self.headings[-1] += data
        elif self._open in ("td", "th"):
            self.tables[-1][-1][-1] += data


def write_report(ratings: Ratings, db: str, path: Path, *options: str) -> str:
    """Return the page that the report command writes about the events from position 9 on."""
    result = ratings("report", "changes", "--from", "9", *options, "-o", path, db=db)
    assert (result.exit_code, result.stdout) == (0, ""), result
    return path.read_text(encoding="utf-8")


@pytest.mark.slow_cases
def test_report_tells_who_why_and_effect(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The report lists each decision with who made it, why, and which ladders it affected."""
    page = Tables(write_report(ratings, db, tmp_path / "day.html"))
    decisions, effects, *_ = page.tables
    assert page.headings == [
        "Decisions",
        "Effects of the decisions",
        "catan-elo/basic",
        "catan-elo/rivals-duel",
        "galactic-points",
    ]
    assert [(row[0], row[2], row[3], row[4]) for row in decisions[1:]] == [
        ("D1", "mira & co", "2 voided: g-1: 1 anna, 2 ben; g-2: 1 ben, 2 cleo", "entered twice"),
        ("D2", "ben", "corrected: c-1: 1 ben, 2 anna, 3 cleo instead of 1 anna, 2 ben, 3 cleo", "wrong way round"),
        ("D3", "ben", "adjusted: anna: +25 points on galactic-points", EVIL.replace("\u202e", "?")),
        ("D4", "ben", "renamed: dora is renamed <dora>", ""),
        ("D5", "ben", "corrected: c-3: group rivals-duel instead of basic", REASONS["correct"]),
    ]
    affected_ladders = [(row[0], row[1]) for row in effects[1:]]
    assert affected_ladders == [
        ("D1", "galactic-points"),
        ("D2", "catan-elo/basic"),
        ("D3", "galactic-points"),
        ("D4", "none"),
        ("D5", "catan-elo/basic"),
        ("D5", "catan-elo/rivals-duel"),
    ]


def test_report_points_match_diff_and_causes(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The points in the report match `diff`, and the causes of each change sum to it.

    Galactic Magnate counts in whole points, so nothing is rounded there.
    """
    page = Tables(write_report(ratings, db, tmp_path / "day.html"))
    rows = page.tables[-1][1:]
    (ladder,) = read_json(ratings, db, "diff", "9", "now", "galactic-points")["ladders"]
    diff_rows = {row["player"]: row for row in ladder["rows"]}
    assert {row[0] for row in rows} == {"anna", "cleo", "<dora>"}
    for player, before, change, after, _, causes_text in rows:
        assert (before, after) == (diff_rows[player]["before"], diff_rows[player]["after"])
        assert Fraction(change) == Fraction(after) - Fraction(before)
        causes = [cause.rsplit(" ", 1) for cause in causes_text.split(", ")]
        assert sum(Fraction(amount) for _, amount in causes) == Fraction(change)
        assert {cause for cause, _ in causes} <= {"D1", "D3", "games"}
    assert [Fraction(row[2]) for row in rows] == sorted((Fraction(row[2]) for row in rows), reverse=True)
    text = (tmp_path / "day.html").read_text(encoding="utf-8")
    assert "The points of 3 more players changed only by games." in text


def test_html_report_is_plain_and_offline(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """In the HTML report, names and reasons are plain text and nothing external is loaded."""
    text = write_report(ratings, one_db, tmp_path / "day.html")
    page = Tables(text)
    assert page.elements == {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "thead",
                             "tbody", "tr", "th", "td", "footer"}  # fmt: skip
    assert page.attributes == {"lang", "charset", "name", "content", "http-equiv", "class", "dir", "data-label"}
    assert "<script" not in text
    assert "<dora>" not in text
    assert "\u202e" not in text
    assert not re.search(r"url\(|@import|https?://(?!club\.example)", text)
    assert "default-src 'none'" in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text


def test_markdown_report_escapes_text(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """In the Markdown report, names and reasons of any kind are escaped and leave the tables intact."""
    text = write_report(ratings, one_db, tmp_path / "day.md")
    assert text.startswith("# Changes from position 9 to ")
    rows = [line for line in text.splitlines() if line.startswith("| D3 |")]
    escaped = r"\<script\>alert(1)\</script\> \& " + "\"quotes\" 'n'" + r" \| \* \_ \` ?right to left"
    assert rows[0].endswith(f"| {escaped} |")
    assert r"renamed: dora is renamed \<dora\>" in text
    assert r"https\://club.example" in text
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 5
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_report_without_decisions_says_so(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A report between two positions without decisions says that nothing was decided."""
    result = ratings("report", "changes", "--from", "2", "--to", "9", "-o", tmp_path / "none.md", db=one_db)
    assert (result.exit_code, result.stderr) == (0, f"0 decisions, 0 players in {tmp_path / 'none.md'}\n")
    assert "There were no decisions." in (tmp_path / "none.md").read_text()


def test_surplus_causes_are_summed_up(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """If a change has more causes than fit on a line, the report sums up the rest."""
    before = read_position(ratings, one_db)
    for points in range(1, 8):
        ratings("adjust", "galactic-points", "ben", points, "--reason", f"prize {points}", db=one_db)
    path = tmp_path / "prizes.html"
    assert ratings("report", "changes", "--from", before, "-o", path, db=one_db).exit_code == 0
    (row,) = Tables(path.read_text()).tables[-1][1:]
    assert (row[2], row[5]) == ("+28", "D7 +7, D6 +6, D5 +5, D4 +4, 3 others +6")


def test_report_keeps_an_existing_file(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A report never overwrites an existing file, even if the file appears while the page is computed."""
    path = tmp_path / "day.html"
    path.write_text("mine")
    result = ratings("report", "changes", "--from", "9", "-o", path, db=one_db)
    assert (result.exit_code, path.read_text()) == (2, "mine")
    assert "exists; nothing was written" in result.stderr

    late = tmp_path / "late.html"
    act_before_next("reported", lambda: late.write_text("mine"))
    result = ratings("report", "changes", "--from", "9", "-o", late, db=one_db)
    assert (result.exit_code, late.read_text()) == (2, "mine")
    assert sorted(entry.name for entry in tmp_path.iterdir() if "html" in entry.name) == ["day.html", "late.html"]


def test_failed_write_leaves_no_partial_report(
    one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If writing the report fails, no part of the file is left behind."""

    def fail_with_full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    folder = tmp_path / "pages"
    folder.mkdir()
    monkeypatch.setattr(os, "fsync", fail_with_full_disk)
    result = ratings("report", "changes", "--from", "9", "-o", folder / "day.html", db=one_db)
    assert (result.exit_code, list(folder.iterdir())) == (3, [])
    assert "Traceback" not in result.stderr


WRONG: list[tuple[list[str], str]] = [
    (["--from", "9", "-o", "day.pdf"], "must end in .html or .md"),
    (["--from", "9", "--to", "9", "-o", "day.md"], "'--from': the range begins after position 9, but ends at 9"),
    (["--from", "9", "--to", "5", "-o", "day.md"], "'--from': the range begins after position 9, but ends at 5"),
    (["--from", "999", "-o", "day.md"], "--from"),
    (["--from", "9", "--to", "soon", "-o", "day.md"], "--to"),
    (["-o", "day.md"], "--from"),
    (["--from", "9"], "--output"),
]


@pytest.mark.parametrize(("arguments", "why"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_impossible_report_is_a_usage_error(
    arguments: list[str], why: str, one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report options that make no sense are usage errors, and no file is written."""
    monkeypatch.chdir(tmp_path)
    result = ratings("report", "changes", *arguments, db=one_db)
    assert (result.exit_code, why in result.stderr) == (2, True), result.stderr
    assert not list(tmp_path.glob("day.*"))
