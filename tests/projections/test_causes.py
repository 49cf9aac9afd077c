"""The causes of changed points: random histories against the oracle."""

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest
from histories import Axes, attribute_change, enter
from ledgers import create_ledger
from oracle.causes import PLAYED, RECORDED_NOWHERE, CoordinateSpec, check
from oracle.ladders import ask
from oracle.log import Log, build_id_lookup, list_named_players
from oracle.questions import Question
from oracle.rulesets import list_versions
from time_histories import LADDERS, World, build_base_log, draw_history, draw_question

from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

QUESTIONS = 6
# cases that a run must have had; otherwise the comparison covers less than it claims
REQUIRED_CASES = [
    "game", "late game", "corrected", "voided", "reinstated", "rename", "adjustment", "taken back", "rule change",
    "played", "not played yet", "rules", "ripple", "ripple without own part", "own part and ripple",
    "known in the other order", "comes onto the ladder", "leaves the ladder", "followed under another id",
    *(f"on {name}" for name in ("galactic-points", "catan-elo", "catan-monthly", "catan-annual")),
]  # fmt: skip

# cases that a short run may miss
REQUIRED_CASES_OF_LONG_RUNS = ["account"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the file of a ledger without events."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    create_ledger(str(path))
    return path.read_bytes()


def to_axes(question: Question) -> Axes:
    """Return the coordinates of a question in the form that the program takes."""
    return None if question.upto is None else to_microseconds(question.upto), question.known_at, question.rules


def find_causes(ledger: Ledger, spec: CoordinateSpec) -> Any:
    """Return the causes that the program finds."""
    return attribute_change(ledger, spec.before.ladder, spec.player, to_axes(spec.before), to_axes(spec.after))


def draw_spec(chance: Random, log: Log) -> CoordinateSpec:
    """Draw a player on a ladder at two coordinates, often with the same position or the same `as_of`."""
    earliest = len(build_base_log(0))
    positions = [chance.randint(earliest, len(log)), chance.choice([len(log), chance.randint(earliest, len(log))])]
    if not chance.randrange(5):
        positions[1] = positions[0]
    before, after = (draw_question(World(chance, log), position) for position in positions)
    ladder = chance.choice(LADDERS)
    before, after = (_choose_rules(chance, log, question, ladder) for question in (before, after))
    if chance.randrange(2):
        after = after._replace(as_of=before.as_of)
    players = sorted(set().union(*map(list_named_players, log)))
    rows = {row.player for question in (before, after) if (answer := ask(log, question)) for row in answer.rows}
    return CoordinateSpec(chance.choice(sorted(rows) if rows and chance.randrange(8) else players), before, after)


def _choose_rules(chance: Random, log: Log, question: Question, ladder: str) -> Question:
    """Return the question about a ladder: usually by the timeline, or by one version known at its position."""
    names = [version.name for version in list_versions(log[: question.known_at], ladder.partition("/")[0])]
    return question._replace(ladder=ladder, rules=chance.choice(names) if names and chance.randrange(4) == 0 else None)


def test_causes_sum_to_change_in_points(
    template: bytes, tmp_path: Path, at_length: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """In any history, the causes of a change in points sum to the oracle's difference.

    Each cause is the difference that its event makes at its position. In the other direction, the causes are negated,
    and `played` and `not played yet` are swapped.
    """
    case_counts: Counter[str] = Counter()
    # these few histories have causes of every kind
    for seed in range(1_000) if at_length else range(17, 27):
        chance = Random(f"causes {seed}")
        log = draw_history(seed, chance.randint(20, 80))
        path = tmp_path / "ratings.db"
        path.write_bytes(template)
        ledger = open_ledger(str(path))
        assert enter(ledger, log).appended == len(log)
        for _ in range(QUESTIONS):
            _check_causes(ledger, log, draw_spec(chance, log), case_counts, at_length)
        ledger.engine.dispose()
    with capsys.disabled() if at_length else nullcontext():
        print("", *(f"{count:7} {name}" for name, count in sorted(case_counts.items())), sep="\n")  # noqa: T201
    required_cases = [*REQUIRED_CASES, *REQUIRED_CASES_OF_LONG_RUNS] if at_length else REQUIRED_CASES
    assert [name for name in required_cases if not case_counts[name]] == []


def _check_causes(ledger: Ledger, log: Log, spec: CoordinateSpec, case_counts: Counter[str], everywhere: bool) -> None:
    """Compare the causes in both directions with the oracle, and count the cases."""
    positions = sorted([spec.before.known_at, spec.after.known_at])
    ruleset_id = spec.before.ladder.partition("/")[0]
    if not all(list_versions(log[:position], ruleset_id) for position in range(positions[0], positions[1] + 1)):
        case_counts["a ruleset that is withdrawn"] += 1
    attribution, reverse_attribution = find_causes(ledger, spec), find_causes(ledger, spec.reverse())
    assert (reverse_attribution.before, reverse_attribution.after) == (attribution.after, attribution.before)
    if spec.before.known_at != spec.after.known_at:
        # a game that is `played` in one direction is `not played yet` in the other
        labels = dict(zip(PLAYED, reversed(PLAYED), strict=True))
        negated = [
            cause._replace(kind=labels.get(cause.kind, cause.kind), own=-cause.own, ripple=-cause.ripple)
            for cause in reversed(attribution.causes)
        ]
        assert (reverse_attribution.start, reverse_attribution.causes) == (attribution.start, negated)
    if spec.before.known_at <= spec.after.known_at:
        check(log, spec, attribution, everywhere)
    else:
        check(log, spec.reverse(), reverse_attribution, everywhere)
    case_counts.update(iterate_cases(log, spec, attribution))


def iterate_cases(log: Log, spec: CoordinateSpec, attribution: Any) -> Iterator[str]:
    """Yield the interesting cases of an answer."""
    yield "questions"
    yield from (cause.kind for cause in attribution.causes)
    if not attribution.causes:
        return
    yield f"on {spec.before.ladder.partition('/')[0]}"
    recorded = [cause for cause in attribution.causes if cause.kind not in RECORDED_NOWHERE]
    yield from ("ripple" for cause in recorded if cause.ripple)
    yield from ("ripple without own part" for cause in recorded if cause.ripple and not cause.own)
    yield from ("own part and ripple" for cause in recorded if cause.ripple and cause.own)
    if spec.before.known_at > spec.after.known_at:
        yield "known in the other order"
    if attribution.before is None:
        yield "comes onto the ladder"
    if attribution.after is None:
        yield "leaves the ladder"
    resolve = build_id_lookup(log[: spec.after.known_at])
    if attribution.after is not None and resolve(spec.player) != spec.player:
        yield "followed under another id"
