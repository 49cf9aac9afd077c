"""A database file from a stranger: nothing in it runs, and its pages are looked at before they are used."""

import sqlite3
from collections.abc import Callable

import pytest
from ledgers import open_for_reading
from stores import make_empty_ledger

READ_BACK = {"trusted_schema": 0, "cell_size_check": 1}


def test_files_open_with_protective_settings(copy_ledger_file: Callable[..., str]) -> None:
    """Every file is opened with the settings that protect against strangers' files."""
    with open_for_reading(copy_ledger_file(make_empty_ledger)) as connection:
        settings = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in READ_BACK}
        assert settings == READ_BACK


@pytest.mark.skipif(not hasattr(sqlite3.Connection, "setconfig"), reason="this Python cannot set it")
def test_sql_cannot_damage_an_open_file(
    copy_ledger_file: Callable[..., str],
) -> None:
    """Where Python supports the setting, SQL cannot damage an open file."""
    with open_for_reading(copy_ledger_file(make_empty_ledger)) as connection:
        connection.exec_driver_sql("PRAGMA writable_schema = 1")
        with pytest.raises(Exception, match="may not be modified"):
            connection.exec_driver_sql("UPDATE sqlite_master SET sql = 'x' WHERE name = 'events'")
