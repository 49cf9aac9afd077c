"""What was answered once is answered for ever, and in every store: `--known-at` against what was printed at that time.

One random history from a seed, of the kind that `test_time_machine` compares with the oracle.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from histories import ticking
from ledgers import create_ledger
from oracle.log import Event, Log, games
from oracle.questions import Question
from oracle.rulesets import cell, versions_of
from time_histories import LADDERS, PLAYERS, World, history, question
from time_ledgers import enter, found_at

from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.diff.affected import have_same_points
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

EVENTS = 500
RULESETS = ("galactic-points", "catan-elo", "catan-monthly", "catan-annual")


def touched(log: Log) -> list[str]:
    """The ladders that the last event is about: those of its game, or of its adjustment, or any."""
    event = log[-1]
    if event["type"] == "points.adjusted":
        return [event["data"]["ladder"]]
    game = games(log).get(event["data"].get("game_id", ""))
    versions = [one for ruleset_id in RULESETS for one in versions_of(log, ruleset_id)[-1:]] if game else []
    names = {cell(version, game) for version in versions if game and game.data["game"] in version.data["scope"]["game"]}
    return sorted(name for name in names if name) or LADDERS


def commands(chance: Random, log: Log, several: bool) -> list[tuple[str, ...]]:
    """Some of what can be asked when an event is recorded: about a ladder that it touches; `several`: and others."""
    ladders = touched(log)
    ladder, player = chance.choice(ladders), chance.choice(PLAYERS)
    game = log[-1]["data"].get("game_id") or chance.choice([*sorted(games(log)), "g-unknown"])
    others = ("history", player, ladder), ("explain", game, ladder)
    if not several:
        return [chance.choice([("standings", ladder), *others])]
    random = chance.choice(LADDERS)
    names = [*(ladders if len(ladders) < len(LADDERS) else [ladder]), random]
    return [*(("standings", name) for name in dict.fromkeys(names)), *others, ("history", player, random)]


def test_known_at_repeats_every_answer(tmp_path: Path, ratings: Callable[..., Any], at_length: bool) -> None:
    """In a growing ledger, `--known-at` repeats every earlier answer byte for byte.

    At every position a question is asked, and at the end again with that position in `--known-at`.
    """
    chance, path = Random(1), str(tmp_path / "ratings.db")
    printed: dict[tuple[tuple[str, ...], int], Any] = {}
    create_ledger(path)
    events = EVENTS if at_length else EVENTS // 5
    ledger, log = open_ledger(path), history(1, events)
    position = 0
    for number, event in enumerate(log, 1):
        result = enter(ledger, [event])
        assert result.appended == 1, (event, result.rejected)
        assert result.head is not None
        position = result.head.position
        if number % 25 == 0:
            ladder = chance.choice(LADDERS)
            ratings("publish", ladder, db=path)
            with ledger.reading() as connection:
                position = head(connection).position
            published = ("standings", ladder, "--as-published")
            printed[published, position] = ratings(*published, "--format", "json", db=path)
        for asked in commands(chance, log[:number], at_length):
            printed[asked, position] = ratings(*asked, "--format", "json", db=path)
    for (asked, known_at), before in printed.items():
        found = ratings(*asked, "--known-at", known_at, "--format", "json", db=path)
        assert (found.exit_code, found.stdout) == (before.exit_code, before.stdout), (asked, known_at)
    assert len({known_at for _, known_at in printed}) >= events
    told = [result for result in printed.values() if result.exit_code == 0]
    assert len(told) > len(printed) * 3 // 4


def test_both_stores_agree(tmp_path: Path, postgres_url: str, at_length: bool) -> None:
    """One history gives equal heads, digests and rows in SQLite and PostgreSQL.

    Both get the same events in pieces of the same random sizes.
    """
    chance, log = Random(2), history(2, EVENTS if at_length else 150)
    both = str(tmp_path / "ratings.db"), postgres_url
    for url in both:
        create_ledger(url)
    ledgers, clocks = [open_ledger(url) for url in both], [ticking(), ticking()]
    rest: list[Event] = log
    while rest:
        size = chance.randint(1, 30)
        part, rest = rest[:size], rest[size:]
        heads = [enter(ledger, part, now).head for ledger, now in zip(ledgers, clocks, strict=True)]
        assert heads[0] == heads[1]
        known_at = len(log) - len(rest)
        assert heads[0] is not None
        assert heads[0].position == known_at
        world = World(chance, log)
        asked = [question(world, known_at) for _ in range(4)]
        asked += [Question(ladder, known_at) for ladder in dict.fromkeys(LADDERS)]
        ours, theirs = (found_at(ledger, asked) for ledger in ledgers)
        assert ours == theirs
        assert [one and one.digest for one in ours] == [one and one.digest for one in theirs]
    # and what was known in between, seen from the end
    for _ in range(40 if at_length else 10):
        asked = [question(World(chance, log), chance.randint(1, len(log)))]
        assert found_at(ledgers[0], asked) == found_at(ledgers[1], asked)


def test_cut_replay_matches_partial_replay(tmp_path: Path, at_length: bool) -> None:
    """A trace cut at any time is that of a replay up to that time: standings, books, streams and everybody's steps.

    Published lists of many days, and what a view is asked after another question, are worked out from one replay.
    """
    compared = 0
    for seed in range(100 if at_length else 8):
        chance, path = Random(seed), str(tmp_path / f"{seed}.db")
        create_ledger(path)
        ledger, log = open_ledger(path), history(seed, 80)
        enter(ledger, log)
        with ledger.reading() as connection:
            facts = decode(connection)
        for ladder in (name for name in dict.fromkeys(LADDERS) if name.partition("/")[0] in facts.rulesets):
            upto = question(World(chance, log), len(log)).upto
            as_of = None if upto is None else to_microseconds(upto)
            everything, then = Ladders(facts), Ladders(facts, as_of)
            whole = everything.trace(ladder)
            assert everything.rank_at(whole, as_of) == then.standings(ladder)
            here, there = everything.at(as_of).trace(ladder), then.trace(ladder)
            assert have_same_points(here.stream, there.stream) or here.stream.ranking.sums_lists
            assert [*here.points] == [*there.points]
            assert [*here.games] == [*there.games]
            assert [*here.every_step()] == [*there.every_step()]
            for player in range(len(here.stream.names)):
                own = [step for number, step in there.every_step() if number == player]
                assert here.steps(player) == there.steps(player) == own
            compared += bool(here.stream.rows and len(here.stream.rows) < len(whole.stream.rows))
    assert compared > 5
