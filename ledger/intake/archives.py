"""What an archive is: a spreadsheet that can be read, or what else, and what is to be done about it."""

from typing import IO
from zipfile import BadZipFile, ZipFile

from ratings_ledger.ledger.rejections import Refused, shown

EXPANDED_BYTES_MAX = 1 << 30
LOOKED_BYTES = 1 << 20
SAVE = "save the table alone as .xlsx or as CSV UTF-8"
PROTECTED = "it is protected by a password; save it without one"
DAMAGED = "open it in a spreadsheet program and save it again"

XLSX, ODS = "xl/workbook.xml", "content.xml"
# other kinds by a part that each has
OTHERS = {
    "xl/workbook.bin": "it has the binary format of Excel; save it as .xlsx",
    "Index/Document.iwa": "it is a document of Numbers, Pages or Keynote; export it as .xlsx",
    "word/document.xml": "it is a text, not a spreadsheet; copy its table into one",
    "ppt/presentation.xml": "it is a presentation, not a spreadsheet",
}


def opened_archive(file: IO[bytes]) -> ZipFile:
    """A spreadsheet as the archive that it is. Raises `Refused`."""
    try:
        archive = ZipFile(file)
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise Refused("bad-spreadsheet", f"it is cut off or damaged: {error}; {DAMAGED}") from None
    parts = archive.infolist()
    if sum(part.file_size for part in parts) > EXPANDED_BYTES_MAX:
        raise Refused("bad-spreadsheet", f"it expands to more than {EXPANDED_BYTES_MAX >> 30} GB; {SAVE}")
    names = {part.filename for part in parts}
    if ODS in names:
        _refuse_other_odf(archive)
    elif XLSX not in names:
        raise _other(names)
    return archive


def _refuse_other_odf(archive: ZipFile) -> None:
    """Raises `Refused` for what is encrypted, and for texts and presentations, which have the same parts."""
    if b"encryption-data" in _start(archive, "META-INF/manifest.xml"):
        raise Refused("bad-spreadsheet", PROTECTED)
    kind = _start(archive, "mimetype")
    if b"opendocument" in kind and b"spreadsheet" not in kind:
        raise Refused("is-a-spreadsheet", "it is an OpenDocument, but no spreadsheet; copy its table into one")


def _start(archive: ZipFile, part: str) -> bytes:
    """How a part begins; nothing if there is none. Raises `Refused`."""
    try:
        with archive.open(part) as file:
            return file.read(LOOKED_BYTES)
    except KeyError:
        return b""
    except Exception as error:  # of any kind, as compressed bytes can be wrong in many ways
        raise Refused("bad-spreadsheet", f"it is damaged: {part}: {error}; {DAMAGED}") from None


def _other(names: set[str]) -> Refused:
    """What an archive is said to be that is no spreadsheet."""
    if "encrypted-package" in names:
        return Refused("bad-spreadsheet", PROTECTED)
    for part, told in OTHERS.items():
        if part in names:
            return Refused("is-a-spreadsheet", told)
    if any(name.startswith("xl/") for name in names):
        return Refused("bad-spreadsheet", f"it is damaged: {XLSX} is missing; {DAMAGED}")
    such = f", such as {shown(min(names))}" if names else ""
    return Refused("is-a-spreadsheet", f"it is an archive of {len(names):,} files{such}; take the table out of it")
