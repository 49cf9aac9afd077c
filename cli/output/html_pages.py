"""Build pages of paragraphs and tables as one file of HTML or Markdown, for readers without a terminal.

The HTML is self-contained: no scripts, fonts or pictures. Every cell is shown as text.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from ratings_ledger.cli.output.render import plain

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8886; padding: .3rem .6rem .3rem 0; text-align: start; vertical-align: top; }
td { overflow-wrap: anywhere; }
.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
footer { font-size: .85rem; margin-top: 2rem; overflow-wrap: anywhere; }
@media screen and (max-width: 40rem) {
  thead { position: absolute; left: -99rem; }
  tr { border-bottom: 1px solid #8886; display: block; padding: .5rem 0; }
  td, td.number { border: 0; display: block; padding: .1rem 0; text-align: start; white-space: normal; }
  td::before { color: #777; content: attr(data-label) " "; }
  td:empty { display: none; }
}
@media print {
  body { font-size: 10pt; max-width: none; padding: 0; }
  thead { display: table-header-group; } tr { break-inside: avoid; } h2 { break-after: avoid; }
}
"""


class PagePart(NamedTuple):
    """A part of a page: paragraphs, and a table if there is a header. Columns in `right` hold numbers."""

    heading: str
    paragraphs: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    right: Sequence[str] = ()


class Page(NamedTuple):
    """A page: the title, the introduction, the parts, and a footer on how to check the content."""

    title: str
    paragraphs: Sequence[str]
    parts: Sequence[PagePart]
    footer: str


def page_to_html(page: Page) -> str:
    """Return the page as a self-contained HTML file."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{_escape_html(page.title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            f"<h1>{_escape_html(page.title)}</h1>",
            *(f"<p>{_escape_html(text)}</p>" for text in page.paragraphs),
            *(line for part in page.parts for line in _part_to_html(part)),
            f"<footer>{_escape_html(page.footer)}</footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _part_to_html(part: PagePart) -> Iterator[str]:
    yield f"<h2>{_escape_html(part.heading)}</h2>"
    yield from (f"<p>{_escape_html(text)}</p>" for text in part.paragraphs)
    if not part.header:
        return
    class_attributes = [' class="number"' if name in part.right else "" for name in part.header]
    header_cells = (
        f"<th{class_attribute}>{_escape_html(name)}</th>"
        for name, class_attribute in zip(part.header, class_attributes, strict=True)
    )
    yield f"<table><thead><tr>{''.join(header_cells)}</tr></thead><tbody>"
    for row in part.rows:
        # with dir="auto" a name in a right-to-left script does not reverse the line
        cells = (
            f'<td{class_attribute} dir="auto" data-label="{_escape_html(name)}">{_escape_html(cell)}</td>'
            for name, class_attribute, cell in zip(part.header, class_attributes, row, strict=True)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def _escape_html(text: str) -> str:
    return escape(plain(text), quote=True)


def page_to_markdown(page: Page) -> str:
    """Return the page as Markdown with tables."""
    lines = [f"# {_escape_markdown(page.title)}", *map(_escape_markdown, page.paragraphs)]
    for part in page.parts:
        lines += [f"## {_escape_markdown(part.heading)}", *map(_escape_markdown, part.paragraphs)]
        if part.header:
            lines.append("\n".join(_table_to_markdown(part)))
    return "\n\n".join([*lines, _escape_markdown(page.footer)]) + "\n"


def _table_to_markdown(part: PagePart) -> Iterator[str]:
    yield f"| {' | '.join(map(_escape_markdown, part.header))} |"
    yield f"|{'|'.join('---:' if name in part.right else '---' for name in part.header)}|"
    for row in part.rows:
        yield f"| {' | '.join(map(_escape_markdown, row))} |"


def _escape_markdown(text: str) -> str:
    """Escape a text so that Markdown and HTML do not interpret it, not even as a link."""
    text = re.sub(r"([\\`*_\[\]<>&|~#!$@])", r"\\\1", plain(text))
    return re.sub(r"(?i)\b(?:(https?|ftp):(?=//)|(www)\.)", lambda match: f"{match[0][:-1]}\\{match[0][-1]}", text)
