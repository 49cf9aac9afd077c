"""Write ledgers of drawn games, with the program's own record builder; the files are kept between runs."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from random import Random

from benchmarks.games import Drawn, chunks, draw
from benchmarks.histories import CHUNK_GAMES, History, game_id, player_id
from ratings_ledger.cli.main import invoke
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.records import EventRow, build_record, chain_hash, leaf_hash
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store.appending import insert_event_rows
from ratings_ledger.ledger.store.log import Head, head
from ratings_ledger.ledger.store.opening import open_ledger

BY = "bench"
RULESETS = Path(__file__).parent / "rulesets"


def create_empty_ledger(url: str) -> None:
    """Create a ledger that holds only rulesets: the shipped ones, and the two of the benchmarks."""
    for arguments in (["init"], *(["rules", "publish", str(path)] for path in sorted(RULESETS.glob("*.toml")))):
        if code := invoke(["--db", url, *arguments]):
            raise SystemExit(f"ratings {' '.join(arguments)} ended with {code}")


def drafts(drawn: Drawn, history: History) -> list[Draft]:
    """Return the drafts of a chunk of games, as validation returns them."""
    slug = "bench" if history.ladders == 1 else "bench-groups"
    players, places = drawn.players.tolist(), drawn.places.tolist()
    game_drafts = []
    for number, (low, high) in enumerate(pairwise(drawn.offsets.tolist())):
        name = game_id(drawn.first + number)
        participants = ",".join(f'{{"place":{places[i]},"player":"{player_id(players[i])}"}}' for i in range(low, high))
        data = (
            f'{{"game":"{slug}","game_id":"{name}","group":"{drawn.ladder(number, history)}",'
            f'"participants":[{participants}]}}'
        )
        subject = f"game:{name}"
        game_drafts.append(Draft(subject, "game.recorded", 1, subject, int(drawn.occurred_at[number]), data))
    return game_drafts


def new_drafts(games: int, players: int, position: int, now: int) -> list[Draft]:
    """Return drafts of games of four that have just been played, for a log of `position` events."""
    chance, game_drafts = Random(position), []
    for number in range(games):
        name, seated = f"n-{position}-{number}", chance.sample(range(players), 4)
        participants = ",".join(f'{{"place":{place},"player":"{player_id(p)}"}}' for place, p in enumerate(seated, 1))
        data = f'{{"game":"bench","game_id":"{name}","group":"0","participants":[{participants}]}}'
        game_drafts.append(Draft(f"game:{name}", "game.recorded", 1, f"game:{name}", now - games + number, data))
    return game_drafts


def rows(games: list[Draft], after: Head) -> list[EventRow]:
    """Return rows for drafts that follow a head, with the recording time of the head."""
    event_rows, chain, recorded_at = [], after.chain_hash, after.recorded_at
    for position, draft in enumerate(games, after.position + 1):
        record = build_record(draft, position, recorded_at, BY)
        leaf = leaf_hash(record)
        chain = chain_hash(chain, leaf)
        event_rows.append(
            EventRow(
                position,
                draft.event_id,
                draft.type,
                1,
                draft.subject,
                draft.occurred_at,
                recorded_at,
                BY,
                None,
                record,
                leaf,
                chain,
            )
        )
    return event_rows


def write_ledger(url: str, history: History, prepare: Callable[[], None] = lambda: None) -> Head:
    """Create a ledger of a history, one transaction per chunk; call `prepare` while it is empty."""
    create_empty_ledger(url)
    prepare()
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        latest = head(connection)
    for values in _build_chunks_of_rows(history, latest):
        with ledger.writing() as connection:
            ledger.dialect.lock_appends(connection)
            latest = insert_event_rows(connection, values, latest)
    return latest


def _build_chunks_of_rows(history: History, after: Head) -> Iterator[list[EventRow]]:
    """Yield the rows of a history by chunk. Another process builds the rows ahead, except for their chain hashes."""
    if not history.games:
        return
    chain = after.chain_hash
    with ProcessPoolExecutor(1, get_context("spawn")) as builder:
        ahead = builder.submit(_build_unchained, history, 0, after)
        for number in range(1, history.chunks + 1):
            values = ahead.result()
            if number < history.chunks:
                ahead = builder.submit(_build_unchained, history, number, after)
            for index, row in enumerate(values):
                chain = chain_hash(chain, row.leaf_hash)
                values[index] = row._replace(chain_hash=chain)
            yield values


def _build_unchained(history: History, number: int, after: Head) -> list[EventRow]:
    """Return the rows of a chunk, with chain hashes as if the chain began with the chunk."""
    return rows(drafts(draw(history, number), history), after._replace(position=after.position + number * CHUNK_GAMES))


def json_lines(history: History) -> Iterator[str]:
    """Yield a history as lines for `ratings import`."""
    for drawn in chunks(history):
        for draft in drafts(drawn, history):
            played = format_instant(draft.occurred_at)
            yield f'{{"type":"{draft.type}","occurred_at":"{played}","data":{draft.data}}}'


def csv_lines(history: History) -> Iterator[str]:
    """Yield a history as lines of CSV for `ratings import`, with a row per participant."""
    yield "game_id,occurred_at,game,group,player,place"
    for drawn in chunks(history):
        for draft in drafts(drawn, history):
            data = json.loads(draft.data)
            start = f"{data['game_id']},{format_instant(draft.occurred_at)},{data['game']},{data['group']}"
            for participant in data["participants"]:
                yield f"{start},{participant['player']},{participant['place']}"
