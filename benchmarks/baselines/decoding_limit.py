"""Find the limit for decoding a ledger: read all records with a plain SELECT, and parse them with pyarrow."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyarrow import json

PAGE_RECORDS = 50_000
BLOCK_BYTES = 1 << 23
QUERY = "SELECT record FROM events ORDER BY position"
# the members of a game that Elo needs
PARTICIPANT = pa.struct([("place", pa.int64()), ("player", pa.string())])
GAME = pa.struct([("game", pa.string()), ("group", pa.string()), ("participants", pa.list_(PARTICIPANT))])
MEMBERS = pa.schema([("data", GAME), ("occurred_at", pa.string()), ("position", pa.int64())])


def run(url: str) -> dict[str, Any]:
    """Read and parse all events; members that only other events have are ignored."""
    options = json.ParseOptions(explicit_schema=MEMBERS, unexpected_field_behavior="ignore")
    blocks = json.ReadOptions(block_size=BLOCK_BYTES)
    started = perf_counter()
    count = 0
    for page in _pages(url):
        lines = pa.BufferReader(b"\n".join(page))
        count += json.read_json(lines, read_options=blocks, parse_options=options).num_rows
    return {"seconds": perf_counter() - started, "records": count}


def _pages(url: str) -> Iterator[list[bytes]]:
    if url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(url) as server, server.cursor("records") as reader:
            reader.itersize = PAGE_RECORDS
            reader.execute(QUERY)
            while fetched := reader.fetchmany(PAGE_RECORDS):
                yield [row[0].encode() for row in fetched]
        return
    with closing(sqlite3.connect(url)) as connection:
        connection.text_factory = bytes
        cursor = connection.execute(QUERY)
        while fetched := cursor.fetchmany(PAGE_RECORDS):
            yield [row[0] for row in fetched]
