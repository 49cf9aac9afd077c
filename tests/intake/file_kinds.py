"""Files with misleading names, without a table, or damaged, each with the expected result of its import."""

import gzip

from cases import ONE, SET, TWO, WIDE, Case, csv, declare_size, sheet
from damages import read_parts
from sheet_files import build_zip, ods, xlsx

CASES = {
    "a spreadsheet called CSV": sheet(*WIDE, name="results.csv", games=TWO),
    "a spreadsheet in gzip": Case(gzip.compress(xlsx(WIDE)), name="results.csv.gz", games=TWO),
    "CSV called a spreadsheet": csv("Date,1st,2nd\n22/11/2024,anna,ben\n", games=ONE, name="results.xlsx"),
    "with macros": sheet(
        *WIDE, more={"xl/vbaProject.bin": b"\xd0\xcf\x11\xe0" + bytes(64)}, name="results.xlsm", games=TWO
    ),
    "a spreadsheet called old Excel": sheet(*WIDE, name="results.xls", games=TWO),
    "CSV called LibreOffice": csv("Date,1st,2nd\n22/11/2024,anna,ben\n", games=ONE, name="results.ods"),
    "an empty file": Case(b"", refused=[("None empty-file", "contains no events")]),
    "an empty file called a spreadsheet": Case(
        b"", name="results.xlsx", refused=[("None empty-file", "contains no events")]
    ),
    "only blank lines": csv("\n\n  \n", refused=[("None empty-file", "contains no events")]),
    "a bomb that declares its size": Case(
        declare_size(xlsx(WIDE), 1 << 31),
        name="results.xlsx",
        refused=[("None bad-spreadsheet", "it expands to more than 1 GB; save only the table as .xlsx")],
    ),
    "a bomb that declares a small size": Case(
        declare_size(xlsx(WIDE), 100),
        name="results.xlsx",
        refused=[("None bad-spreadsheet", "it is damaged: I/O error: File is larger than its declared")],
    ),
    "old Excel": Case(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        name="results.xls",
        refused=[("None is-a-spreadsheet", "it has the format of old Office programs; save its table as .xlsx")],
    ),
    "with a password": Case(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le"),
        name="results.xlsx",
        refused=[("None bad-spreadsheet", "it is protected by a password; save it without one")],
    ),
    "cut off": Case(
        xlsx(WIDE)[:900], name="results.xlsx", refused=[("None bad-spreadsheet", "it is cut off or damaged")]
    ),
    "the start of an archive": Case(
        xlsx([])[:30], name="results.xlsx", refused=[("None bad-spreadsheet", "it is cut off or damaged")]
    ),
    "binary Excel": Case(
        build_zip({"xl/workbook.bin": b""}),
        name="results.xlsb",
        refused=[("None is-a-spreadsheet", "it has the binary format of Excel; save it as .xlsx")],
    ),
    "Numbers": Case(
        build_zip({"Index/Document.iwa": b""}),
        name="results.numbers",
        refused=[("None is-a-spreadsheet", "it is a document of Numbers, Pages or Keynote; export it as .xlsx")],
    ),
    "a document of Word": Case(
        build_zip({"word/document.xml": b""}),
        name="results.xlsx",
        refused=[("None is-a-spreadsheet", "it is a text document; copy its table into a spreadsheet")],
    ),
    "a text document of LibreOffice": Case(
        build_zip({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": b"<x/>"}),
        name="results.ods",
        refused=[("None is-a-spreadsheet", "it is an OpenDocument file, but not a spreadsheet")],
    ),
    "an archive of tables": Case(
        build_zip({"results.csv": b"Date,1st,2nd\n", "more.csv": b""}),
        name="results.zip",
        refused=[("None is-a-spreadsheet", "it is an archive of 2 files, such as 'more.csv'; extract")],
    ),
    "a web page": csv(
        "<html><table><tr><td>Date", name="results.xls", refused=[("None is-a-spreadsheet", "it is an HTML page")]
    ),
    "an old spreadsheet in XML": csv(
        '<?xml version="1.0"?><Workbook/>',
        name="results.xml",
        refused=[("None is-a-spreadsheet", "it is XML or HTML; save")],
    ),
    "a PDF": csv("%PDF-1.7\n", name="results.pdf", refused=[("None is-a-spreadsheet", "it is a PDF; save")]),
    "a missing end tag": Case(
        build_zip({part: text.replace(b"</table:table>", b"") for part, text in read_parts(ods(WIDE))}),
        name="results.ods",
        refused=[("None bad-spreadsheet", "it is damaged: content.xml: mismatched tag: line 1, column")],
    ),
    "a missing part": Case(
        build_zip({"xl/styles.xml": b"<styleSheet/>"}),
        name="results.xlsx",
        refused=[("None bad-spreadsheet", "it is damaged: xl/workbook.xml is missing; open it")],
    ),
    "a document type": sheet(
        more={"xl/worksheets/sheet1.xml": b'<!DOCTYPE x [<!ENTITY a "b">]><worksheet/>'},
        options=(*SET, "--sheet", "Results"),
        refused=[("None bad-spreadsheet", "it declares a document type")],
    ),
}
