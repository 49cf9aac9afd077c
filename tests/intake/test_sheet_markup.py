"""The markup of a sheet is read even if another sheet of the file is damaged."""

from io import BytesIO
from zipfile import ZipFile

import pytest
from sheet_files import xlsx

from ratings_ledger.ledger.intake.tables.sheet_markup import XLSX_PART, read_markup

ROWS = [["1st", "2nd"], ["anna", "ben"]]


def test_sheet_that_names_no_part_does_not_affect_others() -> None:
    """A sheet that names no part of the file raises the documented error, and the other sheets are read."""
    buffer = BytesIO()
    with ZipFile(BytesIO(xlsx(ROWS, ("Notes", "visible", ROWS)))) as old, ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(b' r:id="rId2"', b"") if name == XLSX_PART else content)
    with ZipFile(buffer) as archive:
        assert read_markup(archive, "Results", wants_times=True).cell_errors == {}
        with pytest.raises(LookupError):
            read_markup(archive, "Notes", wants_times=True)
