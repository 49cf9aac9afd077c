"""Shared helpers for the tests of `import --sync`: a club's sheet, its edits, and the games that result."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from correction_helpers import Ratings, read_json, read_position

HEADER = "Date,Winner,2nd,3rd\n"
ROWS = ("2024-11-22,Anna,Ben,Cleo", "2024-11-22,Ben,Anna,Cleo", "2024-11-23,Cleo,Anna,Dora")
SET = ("--set", "game=catan")


def create_catan_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger for catan with the home zone Berlin."""
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", db=url).exit_code == 0


class Club(NamedTuple):
    """A ledger and the folder with its sheet."""

    ratings: Ratings
    db: str
    folder: Path

    def write(self, *rows: str, header: str = HEADER, name: str = "club.csv") -> Path:
        """Write the sheet and return its path."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
        return file

    def import_sheet(self, *rows: str, header: str = HEADER, name: str = "club.csv") -> None:
        """Write the sheet and import it without --sync."""
        result = self.ratings("import", self.write(*rows, header=header, name=name), *SET, db=self.db)
        assert result.exit_code == 0, result

    def sync(
        self,
        *rows: str,
        options: Sequence[object] = ("--yes",),
        code: int = 0,
        header: str = HEADER,
        name: str = "club.csv",
    ) -> dict[str, Any]:
        """Write the edited sheet, sync it and return the JSON."""
        file = self.write(*rows, header=header, name=name)
        result = self.ratings("import", file, *SET, "--sync", "--format", "json", *options, db=self.db)
        assert result.exit_code == code, result
        return dict(json.loads(result.stdout))

    def list_events(self, after: int = 0) -> list[tuple[str, str]]:
        """Return the type and game of each game event after a position."""
        rows = read_json(self.ratings, self.db, "log", "--limit", "0")["rows"]
        return [
            (row["type"], row["data"]["game_id"])
            for row in rows
            if int(row["position"]) > after and row["type"].startswith("game.")
        ]

    def list_games(self) -> dict[str, str]:
        """Return the players of each live game, by game, in the order of their places."""
        rows = read_json(self.ratings, self.db, "games")["rows"]
        return {
            row["game_id"]: " ".join(participant["player"] for participant in row["participants"])
            for row in rows
            if not row.get("voided")
        }

    @property
    def head(self) -> int:
        """Return the position of the head."""
        return read_position(self.ratings, self.db)


def count_differences(result: dict[str, Any]) -> dict[str, int]:
    """Return the number of games by kind of difference, without the kinds that do not occur."""
    numbers = {kind: result["sync"][kind] for kind in ("new", "changed", "vanished", "returned", "reordered")}
    return {kind: number for kind, number in numbers.items() if number}
