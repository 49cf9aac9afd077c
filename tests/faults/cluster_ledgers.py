"""A ledger with a few hundred ladders, one of which has 30 % of the games, and what comes of it undisturbed."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from dask_clusters import PART_GAMES, digests
from fault_helpers import SEEN, decision, plain_connection

from ledger import clock
from ledger.events.types import read_event
from ledger.store.appending import append
from ledger.store.opening import open_ledger
from projections.cluster import coordinating, segments

RULESET = Path(__file__).parents[2] / "projections" / "shipped" / "elo-1.toml"
CITIES, GIANT, GIANT_PERCENT = 240, "giant", 30
PLAYERS = 300


def many_ladders(ratings: Callable[..., Any], url: str, games: int) -> None:
    """Make a ledger of games in many cities, with corrections, voided games and a renamed player at its end."""
    chance = Random(games)
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    text = RULESET.read_text().replace("GAME", "chess").replace("ZONE", "UTC").replace('by = ["players"]', 'by = ["city"]')
    path = Path(url.removeprefix("sqlite:///")).with_suffix(".toml")
    path.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith("bands")))
    assert ratings("rules", "publish", path, db=url).exit_code == 0
    ledger, late = open_ledger(url), games // 100
    for first in range(0, games, 1_000):
        drafts = [_game(chance, number) for number in range(first, min(first + 1_000, games))]
        append(ledger, drafts, by="test", clock=clock.now)
    again = [
        decision("game.voided", game_id=f"g-{number}", reason="not played") for number in chance.sample(range(games), late)
    ]
    append(ledger, [*again, decision("player.renamed", player="p-1", new_player="q-1")], by="test", clock=clock.now)


def _game(chance: Random, number: int) -> Any:
    city = GIANT if chance.randrange(100) < GIANT_PERCENT else f"c-{chance.randrange(CITIES)}"
    players = [f"p-{player}" for player in chance.sample(range(PLAYERS), 2)]
    day, minute = divmod(number, 720)
    return read_event({
        "type": "game.recorded", "occurred_at": f"2010-{1 + day // 28:02d}-{1 + day % 28:02d}T{8 + minute // 60:02d}:"
        f"{minute % 60:02d}:00Z",
        "data": {
            "game_id": f"g-{number}", "game": "chess", "city": city,
            "participants": [{"player": name, "place": place} for place, name in enumerate(players, 1)],
        },
    })[0]  # fmt: skip


@contextmanager
def small_pieces(games: int) -> Iterator[None]:
    """Let segments, packs and parts be small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordinating, "SEGMENT_EVENTS", games // 4)
        patch.setattr(coordinating, "PAGE_EVENTS", games // 10)
        patch.setattr(coordinating, "PACK_GAMES", games // 4)
        patch.setattr(segments, "PART_GAMES", PART_GAMES)
        yield


def rows(url: str) -> list[tuple[Any, ...]]:
    """The stored standings as another program sees them."""
    with closing(plain_connection(url)) as connection:
        return list(connection.execute(SEEN).fetchall())
