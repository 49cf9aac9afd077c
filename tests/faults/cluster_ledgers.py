"""A ledger with a few hundred ladders, one of which has 30 % of the games, and coordinators that rebuild it."""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from clusters import call_at_submission, keep_every_object
from dask_clusters import PART_GAMES, WINDOW_GAMES
from fault_helpers import build_decision, fork_child, read_stored_rows, wait_for_exits
from thresholds import set_thresholds

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.opening import open_ledger

RULESET = Path(__file__).parents[2] / "projections" / "shipped" / "elo-1.toml"
CITIES, GIANT, GIANT_PERCENT = 399, "giant", 30
PLAYERS = 300


def create_many_ladders(ratings: Callable[..., Any], url: str, games: int) -> None:
    """Create a ledger of games in many cities, with voided games and a renamed player at its end."""
    random = Random(games)
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    text = (
        RULESET.read_text().replace("GAME", "chess").replace("ZONE", "UTC").replace('by = ["players"]', 'by = ["city"]')
    )
    path = Path(url.removeprefix("sqlite:///")).with_suffix(".toml")
    path.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith("bands")))
    assert ratings("rules", "publish", path, db=url).exit_code == 0
    ledger = open_ledger(url)
    for first in range(0, games, 1_000):
        drafts = [_build_game(random, number) for number in range(first, min(first + 1_000, games))]
        append(ledger, drafts, by="test", clock=clock.now)
    voided_games = random.sample(range(games), games // 100)
    voids = [build_decision("game.voided", game_id=f"g-{number}", reason="not played") for number in voided_games]
    append(
        ledger, [*voids, build_decision("player.renamed", player="p-1", new_player="q-1")], by="test", clock=clock.now
    )


def _build_game(random: Random, number: int) -> Any:
    city = GIANT if random.randrange(100) < GIANT_PERCENT else f"c-{random.randrange(CITIES)}"
    players = [f"p-{player}" for player in random.sample(range(PLAYERS), 2)]
    day, minute = divmod(number, 720)
    return read_event({
        "type": "game.recorded",
        "occurred_at": f"2010-{1 + day // 28:02d}-{1 + day % 28:02d}T{8 + minute // 60:02d}:{minute % 60:02d}:00Z",
        "data": {
            "game_id": f"g-{number}", "game": "chess", "city": city,
            "participants": [{"player": name, "place": place} for place, name in enumerate(players, 1)],
        },
    })[0]  # fmt: skip


class ExpectedRebuild(NamedTuple):
    """The ledger before a rebuild, the rows that a rebuild on one machine stores, and the digests of its objects."""

    original: Path
    games: int
    rows: list[tuple[Any, ...]]
    objects: dict[str, str]

    def copy(self, folder: Path) -> str:
        """Copy the ledger into a folder and return the URL of the copy."""
        folder.mkdir(exist_ok=True)
        return f"sqlite:///{shutil.copyfile(self.original, folder / 'ratings.db')}"


class RebuildResult(NamedTuple):
    """The result of a rebuild; `submitted` is the number of tasks that it handed out.
    The exit code of a killed rebuild is minus the signal.
    """

    exit_code: int
    stdout: str
    stderr: str
    submitted: int


class Coordinator:
    """A rebuild in a process of its own, because the tests' own process must not have Dask's threads."""

    def __init__(
        self, ratings: Callable[..., Any], url: str, games: int, objects: Path, on: str, *options: str,
        patch: Callable[[pytest.MonkeyPatch], None] = lambda patch: None, name: str = "coordinator",
    ) -> None:  # fmt: skip
        """Start the rebuild; `patch` may change the program in that process."""
        self._folder = Path(url.removeprefix("sqlite:///")).with_name(name)
        self._folder.mkdir(exist_ok=True)
        (self._folder / "submitted").write_bytes(b"")
        (self._folder / "ended").unlink(missing_ok=True)

        def run() -> None:
            with use_small_pieces(games) as patched:
                call_at_submission(patched, self._count_submission)
                patch(patched)
                logging.getLogger().handlers.clear()  # the handlers of the tests keep warnings from standard error
                result = ratings("rebuild", "--on", on, "--segments", objects, *options, db=url)
                (self._folder / "ended").write_text(json.dumps(result))

        self.process = fork_child(run)

    def _count_submission(self) -> None:
        with open(self._folder / "submitted", "ab") as file:
            file.write(b"1")

    def wait(self) -> RebuildResult:
        """Wait for the end of the rebuild and return its result."""
        (code,) = wait_for_exits([self.process])
        submitted = len((self._folder / "submitted").read_bytes())
        if code:
            return RebuildResult(code, "", "", submitted)
        return RebuildResult(*json.loads((self._folder / "ended").read_text()), submitted)


class Rebuilding:
    """Rebuilds of one ledger with one folder for objects."""

    def __init__(self, ratings: Callable[..., Any], expected: ExpectedRebuild, folder: Path) -> None:
        self.ratings, self.expected = ratings, expected
        self.url, self.objects = expected.copy(folder), folder / "objects"

    def start(self, on: str, *options: str, **patch: Callable[[pytest.MonkeyPatch], None]) -> Coordinator:
        return Coordinator(self.ratings, self.url, self.expected.games, self.objects, on, *options, **patch)

    def run(self, on: str, *options: str, **patch: Callable[[pytest.MonkeyPatch], None]) -> RebuildResult:
        return self.start(on, *options, **patch).wait()

    def is_right(self, result: RebuildResult) -> bool:
        """Assert success, the rows of one machine and the objects of undisturbed workers; return True."""
        assert (result.exit_code, result.stderr) == (0, "")
        assert read_stored_rows(self.url) == self.expected.rows
        assert digest_objects(self.objects) == self.expected.objects
        return True


@contextmanager
def use_small_pieces(games: int) -> Iterator[pytest.MonkeyPatch]:
    """Make segments, packs, parts and windows small, and keep all objects."""
    with pytest.MonkeyPatch.context() as patch:
        set_thresholds(patch, segment_events=games // 4, sealed_page_events=games // 10, pack_games=games // 6)
        set_thresholds(patch, streamed_games=games // 4, part_games=PART_GAMES, window_games=WINDOW_GAMES)
        keep_every_object(patch)
        yield patch


def digest_objects(objects: Path) -> dict[str, str]:
    """Return the SHA-256 of a ledger's objects, except nonces, and records and plans, which are input of tasks."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in find_objects_folder(objects).iterdir() if not path.name.startswith(("nonce-", "records-", "plans-"))
    }  # fmt: skip


def find_objects_folder(objects: Path) -> Path:
    """Return the folder of the only ledger below a folder for objects."""
    (ledger_folder,) = objects.iterdir()
    return ledger_folder
