"""What the tests of `import --sync` share: a club's sheet, its edits, and what became of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from correction_helpers import Ratings, position, read

HEADER = "Date,Winner,2nd,3rd\n"
ROWS = ("2024-11-22,Anna,Ben,Cleo", "2024-11-22,Ben,Anna,Cleo", "2024-11-23,Cleo,Anna,Dora")
SET = ("--set", "game=catan")


def a_club_of_catan(ratings: Ratings, url: str) -> None:
    """Make a ledger for catan, at home in Berlin."""
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", db=url).exit_code == 0


class Club(NamedTuple):
    """A ledger, and the folder with the sheet."""

    ratings: Ratings
    db: str
    folder: Path

    def write(self, *rows: str, header: str = HEADER, name: str = "club.csv") -> Path:
        """Write the sheet."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
        return file

    def take(self, *rows: str, header: str = HEADER, name: str = "club.csv") -> None:
        """Import the sheet as it is."""
        done = self.ratings("import", self.write(*rows, header=header, name=name), *SET, db=self.db)
        assert done.exit_code == 0, done

    def sync(
        self, *rows: str, more: Sequence[object] = ("--yes",), code: int = 0, header: str = HEADER,
        name: str = "club.csv",
    ) -> dict[str, Any]:  # fmt: skip
        """Bring the edited sheet in; what is told."""
        file = self.write(*rows, header=header, name=name)
        done = self.ratings("import", file, *SET, "--sync", "--format", "json", *more, db=self.db)
        assert done.exit_code == code, done
        return dict(json.loads(done.stdout))

    def events(self, after: int = 0) -> list[tuple[str, str]]:
        """The types of the events behind a position, each with the game that it is about; no batches."""
        rows = read(self.ratings, self.db, "log", "--limit", "0")["rows"]
        return [(row["type"], row["data"]["game_id"]) for row in rows if int(row["position"]) > after
                and row["type"].startswith("game.")]  # fmt: skip

    def games(self) -> dict[str, str]:
        """The live games, with their players in the order of the places."""
        rows = read(self.ratings, self.db, "games")["rows"]
        return {
            row["game_id"]: " ".join(one["player"] for one in row["participants"])
            for row in rows if not row.get("voided")
        }  # fmt: skip

    @property
    def head(self) -> int:
        """The position of the head."""
        return position(self.ratings, self.db)


def counts(told: dict[str, Any]) -> dict[str, int]:
    """How many games differ, of the kinds that there are."""
    found = {kind: told["sync"][kind] for kind in ("new", "changed", "vanished", "returned", "reordered")}
    return {kind: number for kind, number in found.items() if number}
