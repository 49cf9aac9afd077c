"""Random histories with corrections of every kind, through the whole path, against an oracle that shares no code.

`oracle` says which events the log takes, what they come to and what points follow, and `corrected_histories` makes the
histories. The comparison is exact, refusals and their codes included.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from corrected_histories import INSTANTS, Step, histories
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ledgers import create_ledger
from oracle.cases import cases
from oracle.ladders import ladders
from oracle.log import Log, identities
from oracle.questions import Row
from oracle.rulesets import BOOK, ruleset_of
from oracle.running import Ladder, Played
from oracle.times import instant

from ratings_ledger import GameExplanation, Proposal
from ratings_ledger.ledger.events.canonical import parse_object, to_microseconds
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.admission import proposals
from ratings_ledger.projections.admission.publishing_rulesets import publish_missing
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.explain import explain_game, find_game_row
from ratings_ledger.projections.queries.history import load_course
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.standings import build_balance
from ratings_ledger.projections.replay.streams import build_streams
from ratings_ledger.projections.rulesets.versions import read_shipped_texts

Points = dict[tuple[str, str], Fraction]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

DONE: Counter[str] = Counter()
SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, report_multiple_bugs=False)
# to make a failing history small takes minutes: only with --length long
PHASES = {False: [Phase.generate], True: [Phase.generate, Phase.shrink]}
# what must have occurred in the end, or the comparison was about less than it says
WANTED = {
    "tie", "leaver", "substitute", "abandoned left out", "substitute left out", "free account left out",
    "fewer than two counted players", "unrated or aborted", "recorded, but not countable", "game before its ruleset",
    "player.registered", "player.account_changed", "account change at a game's end", "points.adjusted",
    "adjustment before any game", "adjustment at a game's end", "account or adjustment under an old id",
    "game.corrected", "correction of date", "second correction", "correction without date after one with",
    "correction to another ladder", "correction to another game", "game.voided", "game.reinstated", "player.renamed",
    "merge with games on both sides", "chain of renames", "game under an old id", "void of a void",
    "void again after a void of a void", "void of points.adjusted", "void of player.renamed",
    "void of player.registered", "void of player.account_changed", "void of ruleset.published", "late game",
    "equal times", "season edge", "several winners", "major and standard victory", "shared rank",
    "tie over several places of the pot", "rest of the pot burned", "dust burned", "unqualified player",
    "qualified beside unqualified", "bonus minted", "no bonus at 600 seconds", "exists already",
}  # fmt: skip
REFUSALS = {
    "too-few-participants", "player-twice", "place-missing", "place-gap", "score-contradicts-place",
    "substitute-without-leaver", "leaver-replaced-twice", "seat-disagrees", "b5-too-few-players",
    "victory-points-total", "victory-points-all-kept", "id-conflict", "game-exists", "uncounted", "unknown-ladder",
    "finer-than-scale", "game-unknown", "game-voided", "game-live", "game-id-changed", "event-unknown",
    "event-of-game", "event-voided", "still-needed", "player-unknown", "renamed-already", "rename-loop", "players-met",
}  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the shipped rulesets, to be copied."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    create_ledger(str(path))
    publish_missing(open_ledger(str(path)), "test", read_shipped_texts())
    return path


def records(ledger: Ledger) -> list[str]:
    """The log, verbatim."""
    with ledger.reading() as connection:
        return [record for page in read_records(connection) for _, record in page]


def propose(ledger: Ledger, steps: list[Step]) -> Proposal:
    """Send steps in one import, which goes on after a refusal."""
    items = [
        Item("steps", number, parse_object(json.dumps(step.event).encode()), None)
        for number, step in enumerate(steps, 1)
    ]
    allowed = any(step.allow_uncounted for step in steps)
    return proposals.propose(ledger, items, ImportPolicy("test", allow_uncounted=allowed, keep_going=True))


def go_through(ledger: Ledger, steps: list[Step], log: Log) -> Log:
    """Take the steps one by one; what becomes of each is as the oracle says. Returns the log that they make."""
    log = list(log)
    for step in steps:
        result = propose(ledger, [step]).append()
        codes = {rejection.code for rejection in result.rejected}
        found = (result.appended, result.existing, len(codes))
        existing, refused = step.verdict.existing, bool(step.verdict.codes)
        assert found == (not existing and not refused, existing, refused), (step, result.rejected)
        assert codes <= step.verdict.codes, (step, result.rejected)
        note(Counter(f"refused: {code}" for code in codes) + Counter({"exists already": int(existing)}))
        if result.appended:
            assert result.head is not None
            assert result.head.position == log[-1]["position"] + 1
            log.append({**step.event, "id": step.event_id, "position": result.head.position})
    return log


def agree(ledger: Ledger, log: Log, known_at: int, as_of: str | None) -> dict[str, Ladder]:
    """Compare every ladder at a position and an instant with the oracle; returns what the oracle says."""
    upto = None if as_of is None else instant(as_of)
    since = None if upto is None else to_microseconds(upto)
    known = [event for event in log if event["position"] <= known_at]
    with ledger.reading() as connection:
        facts = decode(connection, known_at)
    expected = ladders(known, upto)
    ours = [versions for ruleset_id, versions in facts.rulesets.items() if ruleset_id in BOOK]
    on_ladders = {name for versions in ours for name in build_streams(facts, versions, as_of=since)}
    assert on_ladders == {name for name, wanted in expected.items() if wanted.points}
    for name, wanted in expected.items():
        found = Ladders(facts, since).standings(name)
        rows = [Row(row.rank, row.player, row.value(found.scale), row.games, row.qualified) for row in found.rows]
        assert rows == wanted.rows(), (name, known_at, as_of)
        assert found.games == sum(played.counted for played in wanted.played.values())
        totals = [Fraction(n, found.scale) for n in (found.start_total, found.minted, found.burned, found.adjusted)]
        assert totals == [wanted.started, wanted.minted, wanted.burned, wanted.adjusted], (name, known_at, as_of)
        assert build_balance(found, Ladders(facts, since).coordinates, Times()).sum == 0
        note({"ladders compared": 1})
    return expected


def agree_in_detail(ledger: Ledger, name: str, wanted: Ladder, as_of: str | None) -> None:
    """Compare what every game did on a ladder, and everybody's history, with the oracle."""
    since = None if as_of is None else to_microseconds(instant(as_of))
    with ledger.reading() as connection:
        facts = decode(connection)
        for game_id, played in wanted.played.items():
            row = find_game_row(connection, facts, game_id)
            agree_on_game(explain_game(Ladders(facts, since), name, game_id, row), played)
        for player, steps in wanted.history.items():
            rows = load_course(connection, Ladders(facts, since), name, player).rows
            told = [(r.game_id, r.place, r.before, r.change) for r in rows]
            assert told == steps, (name, player)
    note({"games explained": len(wanted.played), "histories compared": len(wanted.history)})


def agree_on_game(found: GameExplanation, played: Played) -> None:
    """Whether and how a game counted; terms sum to changes, and changes and accounts to zero."""
    assert found.counted == played.counted == (found.why_not is None), found
    assert {row.player: row.before for row in found.players} == played.before, found
    for row in found.players:
        assert row.change == played.change.get(row.player, 0) == row.after - row.before, found
        assert row.change == sum(term.amount or 0 for term in row.terms), found
    accounts = {entry.account: entry.amount for entry in found.accounts}
    assert accounts == {"minted": -played.minted, "burned": played.burned}, found
    assert sum(played.change.values()) + sum(accounts.values()) == 0


def note(found: Mapping[str, int]) -> None:
    """Count how often the interesting cases occurred."""
    for name, times in found.items():
        if times:
            DONE[name] += times


def cases_of_rows(found: Ladder) -> Counter[str]:
    rows = found.rows()
    waiting = any(not row.qualified for row in rows)
    return Counter({
        "unqualified player": waiting,
        "qualified beside unqualified": waiting and rows[0].qualified,
        "shared rank": sum(rows[n].rank == rows[n - 1].rank is not None for n in range(1, len(rows))),
    })  # fmt: skip


def expected_cases(published: Log, steps: list[Step]) -> set[str]:
    """What a history is about, as the oracle says; no program is asked."""
    log = list(published)
    for step in steps:
        if step.verdict.taken:
            log.append({**step.event, "id": step.event_id, "position": log[-1]["position"] + 1})
    found = cases(log) + Counter({"exists already": sum(step.verdict.existing for step in steps)})
    for ladder in ladders(log).values():
        found += ladder.cases + cases_of_rows(ladder)
    # of several reasons for a refusal one is told
    refused = {f"refused: {code}" for step in steps for code in step.verdict.codes if len(step.verdict.codes) == 1}
    return {*found} | refused


def copied(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    path = tmp_path_factory.mktemp("history") / "ratings.db"
    shutil.copyfile(template, path)
    return open_ledger(str(path))


def needed(found: list[tuple[list[Step], Random]], published: Log) -> list[tuple[list[Step], Random]]:
    """Few histories that have together every case that any of them has: those with the most in the fewest steps."""
    about = [expected_cases(published, steps) for steps, _ in found]
    missing: set[str] = set().union(*about)
    chosen: list[tuple[list[Step], Random]] = []
    while missing:
        most = max(range(len(found)), key=lambda number: len(about[number] & missing) / max(len(found[number][0]), 1))
        missing -= about[most]
        chosen.append(found[most])
    return chosen


def test_random_history_matches_the_oracle(
    template: Path, tmp_path_factory: pytest.TempPathFactory, at_length: bool
) -> None:
    """A random history, replayed at any position and time, matches an independent oracle.

    Each step is accepted or refused, and every ladder, game and history comes out, as the oracle says. In short only
    so many histories go through the program that every case of theirs and of the others occurs.
    """
    published = [json.loads(record) for record in records(open_ledger(str(template)))]
    drawn: list[tuple[list[Step], Random]] = []

    def compare(steps: list[Step], chance: Random) -> None:
        DONE["histories"] += 1
        ledger = copied(template, tmp_path_factory)
        log = go_through(ledger, steps, published)
        last = log[-1]["position"]
        note(cases(log))
        for name, found in agree(ledger, log, last, None).items():
            note(found.cases + cases_of_rows(found))
            agree_in_detail(ledger, name, found, None)
        for _ in range(3):
            known_at = chance.randint(published[-1]["position"], last)
            agree(ledger, log, known_at, chance.choice([None, *INSTANTS]))
        agree(ledger, log, last, chance.choice(INSTANTS))
        as_of = chance.choice(INSTANTS)
        for name, found in agree(ledger, log, last, as_of).items():
            agree_in_detail(ledger, name, found, as_of)

    @settings(SETTINGS, max_examples=1_000 if at_length else 80, phases=PHASES[at_length], derandomize=not at_length)
    @given(histories(published, 60), st.randoms(use_true_random=True))
    def go(steps: list[Step], chance: Random) -> None:
        if at_length:
            compare(steps, chance)
        else:
            drawn.append((steps, chance))

    go()
    for steps, chance in needed(drawn, published):
        compare(steps, chance)
    print("", *(f"{count:7} {name}" for name, count in sorted(DONE.items())), sep="\n")  # noqa: T201
    missing = (WANTED | {f"refused: {code}" for code in REFUSALS}) - DONE.keys()
    assert not missing, f"never generated: {missing}"


def test_copies_and_batches_match_single_steps(
    template: Path, tmp_path_factory: pytest.TempPathFactory, ratings: Callable[..., Any], at_length: bool
) -> None:
    """Imports, restores and batches of a random history give the same result as single steps.

    The export is imported again and restored, and the steps are also sent several at a time.
    """
    published = [json.loads(record) for record in records(open_ledger(str(template)))]

    @settings(SETTINGS, max_examples=100 if at_length else 2, phases=PHASES[at_length], derandomize=not at_length)
    @given(histories(published, 60, allow_uncounted=False), st.randoms(use_true_random=True))
    def go(steps: list[Step], chance: Random) -> None:
        ledger, batched = copied(template, tmp_path_factory), copied(template, tmp_path_factory)
        log = go_through(ledger, steps, published)
        folder = Path(ledger.location).parent
        while steps:
            size = chance.randint(1, 40)
            part, steps = steps[:size], steps[size:]
            result = propose(batched, part).append()
            wrong = {rejection.line: rejection.code for rejection in result.rejected}
            assert wrong.keys() == {n for n, step in enumerate(part, 1) if step.verdict.codes}, result.rejected
            assert all(code in part[n - 1].verdict.codes for n, code in wrong.items() if n), result.rejected
        assert meanings(batched) == meanings(ledger)
        export, restored, imported = folder / "export.jsonl", folder / "restored.db", folder / "imported.db"
        assert ratings("export", "events", "-o", export, db=ledger.location).exit_code == 0
        for path, option in ((restored, ["--restore"]), (imported, [])):
            assert ratings("init", "--no-rules", db=path).exit_code == 0
            assert ratings("import", export, *option, db=path).exit_code == 0
            copy = open_ledger(str(path))
            batch = [] if option else ["import.recorded"]
            assert [event["type"] for event in meanings(copy)[len(log) :]] == batch
            assert meanings(copy)[: len(log)] == meanings(ledger)
            agree(copy, log, log[-1]["position"], None)
            assert ratings("rebuild", db=path).exit_code == 0
            verified = ratings("verify", db=path)
            assert (verified.exit_code, verified.stdout) == (0, "")
        assert records(open_ledger(str(restored))) == records(ledger)

    go()


def meanings(ledger: Ledger) -> list[dict[str, Any]]:
    """The log without the times at which it was recorded."""
    return [{**json.loads(record), "recorded_at": None} for record in records(ledger)]


def test_announced_effects_match_the_oracle(
    template: Path, tmp_path_factory: pytest.TempPathFactory, at_length: bool
) -> None:
    """The effects announced before each step are the difference between the oracle's ladders."""
    published = [json.loads(record) for record in records(open_ledger(str(template)))]

    @settings(SETTINGS, max_examples=300 if at_length else 4, phases=PHASES[at_length], derandomize=not at_length)
    @given(histories(published, 36))
    def go(steps: list[Step]) -> None:
        ledger, log = copied(template, tmp_path_factory), published
        before = points_of(log)
        for step in steps:
            # `record` announces nothing
            announced = None if step.event["type"] == "game.recorded" else look(ledger, step)
            was = identities(log)
            log = go_through(ledger, [step], log)
            after = points_of(log)
            expected = changed(before, after, was, identities(log))
            assert announced in (None, expected), (step.event, announced, expected)
            before = after

    go()


def points_of(log: Log) -> dict[tuple[str, str], Fraction]:
    return {(name, row.player): row.points for name, found in ladders(log).items() for row in found.rows()}


def changed(before: Points, after: Points, was: Callable[[str], str], now: Callable[[str], str]) -> dict[Any, Any]:
    """Points before and after by ladder and player, where they differ; another id alone is no difference."""
    old = dict(before)
    for name, player in sorted(before.keys() - after.keys()):
        for _, new in sorted(at for at in after.keys() - before.keys() if at[0] == name):
            if now(player) == new or was(new) == player:
                old[name, new] = old.pop((name, player))
                break
    return {at: (old.get(at), after.get(at)) for at in old.keys() | after.keys() if old.get(at) != after.get(at)}


def look(ledger: Ledger, step: Step) -> dict[Any, Any]:
    """What a step would change, as the program announces it."""
    reach = propose(ledger, [step]).impact()
    assert not [told for told in reach.failed if ruleset_of(told) in BOOK]
    found = reach.changes
    note({"changes announced": len(found)})
    return {(e.ladder, e.player): (e.before, e.after) for e in found if ruleset_of(e.ladder) in BOOK}
