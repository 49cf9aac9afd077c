"""Why points are not what they were: random histories against the oracle, and small ones worked out by hand."""

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
from ledgers import create_ledger
from oracle.causes import RECORDED_NOWHERE, CoordinateSpec, check
from oracle.ladders import ask
from oracle.log import Log, identities, named
from oracle.questions import Question
from oracle.rulesets import versions_of
from time_histories import LADDERS, World, base_log, history, question
from time_ledgers import enter

from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.diff.causes import Attribution, attribute_difference
from ratings_ledger.projections.queries.coordinates import Coordinates

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

QUESTIONS = 6
# what must have occurred in the end, or the comparison was about less than it says
WANTED = [
    "game", "late game", "corrected", "voided", "reinstated", "rename", "adjustment", "taken back", "rule change",
    "played", "not played yet", "rules", "ripple", "ripple without own part", "own part and ripple",
    "known in the other order", "comes onto the ladder", "leaves the ladder", "followed under another id",
    *(f"on {name}" for name in ("galactic-points", "catan-elo", "catan-monthly", "catan-annual")),
]  # fmt: skip

# what a short run may miss
WANTED_AT_LENGTH = ["account"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A ledger without events, to be copied."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    create_ledger(str(path))
    return path.read_bytes()


def coordinates(question: Question) -> Coordinates:
    """A question as the program takes it."""
    return Coordinates(
        None if question.upto is None else to_microseconds(question.upto), question.known_at, question.rules
    )


def causes_of(ledger: Ledger, asked: CoordinateSpec) -> Attribution:
    """What the program says."""
    with ledger.reading() as connection:
        return attribute_difference(
            connection, asked.before.ladder, asked.player, coordinates(asked.before), coordinates(asked.after)
        )


def asked_at_random(chance: Random, log: Log) -> CoordinateSpec:
    """A player on a ladder at two coordinates, often known at the same position or under the same rules."""
    earliest = len(base_log(0))
    places = [chance.randint(earliest, len(log)), chance.choice([len(log), chance.randint(earliest, len(log))])]
    if not chance.randrange(5):
        places[1] = places[0]
    before, after = (question(World(chance, log), place) for place in places)
    ladder = chance.choice(LADDERS)
    before, after = (_about(chance, log, one, ladder) for one in (before, after))
    if chance.randrange(2):
        after = after._replace(as_of=before.as_of)
    players = sorted(set().union(*map(named, log)))
    rows = {row.player for one in (before, after) if (answer := ask(log, one)) for row in answer.rows}
    return CoordinateSpec(chance.choice(sorted(rows) if rows and chance.randrange(8) else players), before, after)


def _about(chance: Random, log: Log, one: Question, ladder: str) -> Question:
    """A question about a ladder, with a version that is known there, or under the timeline."""
    names = [version.name for version in versions_of(log[: one.known_at], ladder.partition("/")[0])]
    return one._replace(ladder=ladder, rules=chance.choice(names) if names and chance.randrange(4) == 0 else None)


def test_causes_sum_to_change_in_points(
    template: bytes, tmp_path: Path, at_length: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """In any history, the causes of a change in points sum to what the oracle says.

    Each cause is the difference that its event makes at its position, and all sum exactly; the way
    back negates them.
    """
    done: Counter[str] = Counter()
    # of so few histories these have causes of every kind
    for seed in range(1_000) if at_length else range(17, 27):
        chance = Random(f"causes {seed}")
        log = history(seed, chance.randint(20, 80))
        path = tmp_path / "ratings.db"
        path.write_bytes(template)
        ledger = open_ledger(str(path))
        assert enter(ledger, log).appended == len(log)
        for _ in range(QUESTIONS):
            _ask(ledger, log, asked_at_random(chance, log), done, at_length)
        ledger.engine.dispose()
    with capsys.disabled() if at_length else nullcontext():
        print("", *(f"{count:7} {name}" for name, count in sorted(done.items())), sep="\n")  # noqa: T201
    wanted = [*WANTED, *WANTED_AT_LENGTH] if at_length else WANTED
    assert [name for name in wanted if not done[name]] == []


def _ask(ledger: Ledger, log: Log, asked: CoordinateSpec, done: Counter[str], everywhere: bool) -> None:
    way = sorted([asked.before.known_at, asked.after.known_at])
    ruleset_id = asked.before.ladder.partition("/")[0]
    if not all(versions_of(log[:position], ruleset_id) for position in range(way[0], way[1] + 1)):
        done["a ruleset that is withdrawn"] += 1
    found, back = causes_of(ledger, asked), causes_of(ledger, asked.turned())
    assert (back.before, back.after) == (found.after, found.before)
    if asked.before.known_at != asked.after.known_at:
        negated = [cause._replace(own=-cause.own, ripple=-cause.ripple) for cause in reversed(found.causes)]
        assert (back.start, back.causes) == (found.start, negated)
    if asked.before.known_at <= asked.after.known_at:
        check(log, asked, found, everywhere)
    else:
        check(log, asked.turned(), back, everywhere)
    done.update(cases(log, asked, found))


def cases(log: Log, asked: CoordinateSpec, found: Attribution) -> Iterator[str]:
    """What is interesting about an answer."""
    yield "questions"
    yield from (cause.kind for cause in found.causes)
    if not found.causes:
        return
    yield f"on {asked.before.ladder.partition('/')[0]}"
    recorded = [cause for cause in found.causes if cause.kind not in RECORDED_NOWHERE]
    yield from ("ripple" for cause in recorded if cause.ripple)
    yield from ("ripple without own part" for cause in recorded if cause.ripple and not cause.own)
    yield from ("own part and ripple" for cause in recorded if cause.ripple and cause.own)
    if asked.before.known_at > asked.after.known_at:
        yield "known in the other order"
    if found.before is None:
        yield "comes onto the ladder"
    if found.after is None:
        yield "leaves the ladder"
    person = identities(log[: asked.after.known_at])
    if found.after is not None and person(asked.player) != asked.player:
        yield "followed under another id"
