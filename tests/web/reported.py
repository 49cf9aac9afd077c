"""Parse a report on a player: its sentences, its tables by their headings, and each game with its terms."""

from fractions import Fraction
from html.parser import HTMLParser

HEADINGS = ("h1", "h2", "h3")
VOID = {"meta"}


class ReportParser(HTMLParser):
    """The content of a report.

    `claims` are the sentences about the points and ranks at the beginning. `tables` has the rows of each table, and
    `texts` the paragraphs and list items, by the heading above them; the heading of a game is its id. `commands` are
    the commands with which readers verify the report, each with its label.
    """

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tables: dict[str, list[list[list[str]]]] = {}
        self.texts: dict[str, list[str]] = {}
        self.commands: list[tuple[str, str]] = []
        self._heading, self._open, self._label = "", list[str](), ""
        self.feed(page.decode())
        self.close()
        assert self._open == []
        self.claims = [text for text in next(iter(self.texts.values())) if text.startswith("As known")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.add(tag)
        self.links += [attributes[name] or "" for name in ("href", "src", "xlink:href", "action") if name in attributes]
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        if tag not in VOID:
            self._open.append(tag)
        if tag in HEADINGS:
            self._heading = ""
        elif tag == "table":
            self.tables.setdefault(self._heading.strip(), []).append([])
        elif tag == "tr":
            self.tables[self._heading.strip()][-1].append([])
        elif tag in ("td", "th"):
            self.tables[self._heading.strip()][-1][-1].append("")
        elif tag in ("p", "li"):
            self.texts.setdefault(self._heading.strip(), []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self._open
        if "svg" in inside or "style" in inside:
            return
        if any(tag in inside for tag in HEADINGS):
            # text in <small> is no part of a heading
            self._heading += "" if "small" in inside else data
        elif "td" in inside or "th" in inside:
            self.tables[self._heading.strip()][-1][-1][-1] += data
        elif "dt" in inside:
            self._label = data
        elif "dd" in inside and data.strip():
            self.commands.append((self._label, data))
        elif "p" in inside or "li" in inside:
            self.texts[self._heading.strip()][-1] += data

    def read_account(self, heading: str) -> tuple[Fraction, list[tuple[str, Fraction]], Fraction]:
        """Return the opening points, each line with its change, and the closing points of an account.

        Assert that every line adds up.
        """
        (table,) = self.tables[heading]
        _, first, *lines, last = table
        points = opening = parse_exact_number(first[3])
        changes = []
        for _, description, change, after in lines:
            points += parse_exact_number(change)
            assert points == parse_exact_number(after), (heading, description)
            changes.append((description, parse_exact_number(change)))
        assert (parse_exact_number(last[2]), parse_exact_number(last[3])) == (points - opening, points), heading
        return opening, changes, points


def parse_exact_number(text: str) -> Fraction:
    """Return a number of a report as an exact fraction.

    >>> parse_exact_number("−1,042.55"), parse_exact_number("+7"), parse_exact_number("20/3 (6.67)")
    (Fraction(-20851, 20), Fraction(7, 1), Fraction(20, 3))
    """
    return Fraction(text.partition(" ")[0].replace(",", "").replace("−", "-").replace("±", ""))
