"""Random histories with corrections of every kind, through the whole intake, against an oracle that shares no code.

`oracle` says which events are accepted and what points follow, and `corrected_histories` draws the histories. The
comparison is exact and includes rejections and their codes.
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
from corrected_histories import INSTANTS, Step, draw_histories
from histories import enter, load_ladders
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ledgers import create_ledger
from oracle.cases import count_cases
from oracle.ladders import compute_ladders
from oracle.log import Log, build_id_lookup
from oracle.questions import Row
from oracle.rulesets import BOOK, get_ruleset_id
from oracle.running import Ladder, Played
from oracle.times import parse_instant
from own_rules import publish_every_shipped_ruleset

import ratings_ledger as rl
from ratings_ledger import GameExplanation
from ratings_ledger.ledger.events.canonical import to_microseconds
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

Points = dict[tuple[str, str], Fraction]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

CASE_COUNTS: Counter[str] = Counter()
SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, report_multiple_bugs=False)
# shrinking a failing history takes minutes: only with --length long
PHASES = {False: [Phase.generate], True: [Phase.generate, Phase.shrink]}
# cases that a run must have had; otherwise the comparison covers less than it claims
REQUIRED_CASES = {
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
REQUIRED_REJECTIONS = {
    "too-few-participants", "player-twice", "place-missing", "place-gap", "score-contradicts-place",
    "substitute-without-leaver", "leaver-replaced-twice", "seat-disagrees", "b5-too-few-players",
    "victory-points-total", "victory-points-all-kept", "id-conflict", "game-exists", "uncounted", "unknown-ladder",
    "finer-than-scale", "game-unknown", "game-voided", "game-live", "game-id-changed", "event-unknown",
    "event-of-game", "event-voided", "still-needed", "player-unknown", "renamed-already", "rename-loop", "players-met",
}  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a template ledger with the shipped rulesets."""
    path: Path = tmp_path_factory.mktemp("template") / "ratings.db"
    create_ledger(str(path))
    publish_every_shipped_ruleset(str(path))
    return path


def read_log(ledger: Ledger) -> list[str]:
    """Return the records of the log, verbatim."""
    with ledger.reading() as connection:
        return [record for page in read_records(connection) for _, record in page]


def propose(opened: rl.Ledger, step: Step) -> rl.Proposal:
    """Propose a step as a program does."""
    return opened.propose(step.event, "test", new_names="accept", allow_uncounted=step.allow_uncounted)


def append_steps(ledger: Ledger, steps: list[Step], log: Log) -> Log:
    """Append the steps one by one, check each outcome against the oracle, and return the resulting log."""
    log = list(log)
    with rl.open(ledger.location) as opened:
        for step in steps:
            result = propose(opened, step).append()
            codes = {rejection.code for rejection in result.rejected}
            outcome = (result.appended, result.existing, len(codes))
            existing, is_rejected = step.verdict.existing, bool(step.verdict.codes)
            assert outcome == (not existing and not is_rejected, existing, is_rejected), (step, result.rejected)
            assert codes <= step.verdict.codes, (step, result.rejected)
            add_counts(Counter(f"refused: {code}" for code in codes) + Counter({"exists already": int(existing)}))
            if result.appended:
                assert result.head is not None
                assert result.head.position == log[-1]["position"] + 1
                log.append({**step.event, "id": step.event_id, "position": result.head.position})
    return log


def check_ladders(ledger: Ledger, log: Log, known_at: int, as_of: str | None) -> dict[str, Ladder]:
    """Compare every ladder at a position and an instant with the oracle; return the oracle's ladders."""
    as_of_time = None if as_of is None else parse_instant(as_of)
    as_of_microseconds = None if as_of_time is None else to_microseconds(as_of_time)
    known = [event for event in log if event["position"] <= known_at]
    program = load_ladders(ledger, as_of_microseconds, known_at=known_at)
    expected = compute_ladders(known, as_of_time)
    rated_ids = [ruleset_id for ruleset_id in program.facts.rulesets if ruleset_id in BOOK]
    ladder_names = {name for ruleset_id in rated_ids for name in program.streams(ruleset_id)}
    assert ladder_names == {name for name, expected_ladder in expected.items() if expected_ladder.points}
    for name, expected_ladder in expected.items():
        ranking = program.standings(name)
        rows = [
            Row(row.rank, row.player, row.exact_points(ranking.scale), row.games, row.qualified) for row in ranking.rows
        ]
        assert rows == expected_ladder.rank_rows(), (name, known_at, as_of)
        assert ranking.games == sum(played.counted for played in expected_ladder.played.values())
        totals = [
            Fraction(n, ranking.scale) for n in (ranking.start_total, ranking.minted, ranking.burned, ranking.adjusted)
        ]
        assert totals == [
            expected_ladder.started,
            expected_ladder.minted,
            expected_ladder.burned,
            expected_ladder.adjusted,
        ], (name, known_at, as_of)
        add_counts({"ladders compared": 1})
    with rl.open(ledger.location) as opened:
        view = opened.at(as_of, known_at)
        assert not any(view.balance(name).sum for name in expected)
    return expected


def check_ladder_details(ledger: Ledger, name: str, expected: Ladder, as_of: str | None) -> None:
    """Compare the explanation of every game on a ladder, and the history of every player, with the oracle."""
    with rl.open(ledger.location) as opened:
        view = opened.at(as_of)
        for game_id, played in expected.played.items():
            check_game(view.explain(name, game_id), played)
        for player, steps in expected.history.items():
            course = [(r.game_id, r.place, r.before, r.change) for r in view.history(name, player).rows]
            assert course == steps, (name, player)
    add_counts({"games explained": len(expected.played), "histories compared": len(expected.history)})


def check_game(explanation: GameExplanation, played: Played) -> None:
    """Check whether and how a game counted; terms sum to changes, and changes and accounts to zero."""
    assert explanation.counted == played.counted == (explanation.why_not is None), explanation
    assert {row.player: row.before for row in explanation.players} == played.before, explanation
    for row in explanation.players:
        assert row.change == played.change.get(row.player, 0) == row.after - row.before, explanation
        assert row.change == sum(term.amount or 0 for term in row.terms), explanation
    accounts = {entry.account: entry.amount for entry in explanation.accounts}
    assert accounts == {"minted": -played.minted, "burned": played.burned}, explanation
    assert sum(played.change.values()) + sum(accounts.values()) == 0


def add_counts(counts: Mapping[str, int]) -> None:
    """Add to the counts of cases."""
    for name, number in counts.items():
        if number:
            CASE_COUNTS[name] += number


def count_row_cases(ladder: Ladder) -> Counter[str]:
    """Return how often each case of standings occurs on a ladder."""
    rows = ladder.rank_rows()
    has_unqualified = any(not row.qualified for row in rows)
    return Counter(
        {
            "unqualified player": has_unqualified,
            "qualified beside unqualified": has_unqualified and rows[0].qualified,
            "shared rank": sum(rows[n].rank == rows[n - 1].rank is not None for n in range(1, len(rows))),
        }
    )


def list_expected_cases(published: Log, steps: list[Step]) -> set[str]:
    """Return the cases of a history, by the oracle alone."""
    log = list(published)
    for step in steps:
        if step.verdict.is_accepted:
            log.append({**step.event, "id": step.event_id, "position": log[-1]["position"] + 1})
    counts = count_cases(log) + Counter({"exists already": sum(step.verdict.existing for step in steps)})
    for ladder in compute_ladders(log).values():
        counts += ladder.cases + count_row_cases(ladder)
    # a rejection with several reasons reports only one of them
    rejections = {f"refused: {code}" for step in steps for code in step.verdict.codes if len(step.verdict.codes) == 1}
    return {*counts} | rejections


def copy_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Return a copy of the template ledger."""
    path = tmp_path_factory.mktemp("history") / "ratings.db"
    shutil.copyfile(template, path)
    return open_ledger(str(path))


def choose_histories(drawn: list[tuple[list[Step], Random]], published: Log) -> list[tuple[list[Step], Random]]:
    """Choose few histories that together have every case of all of them: those with the most cases per step first."""
    cases_by_history = [list_expected_cases(published, steps) for steps, _ in drawn]
    missing: set[str] = set().union(*cases_by_history)
    chosen: list[tuple[list[Step], Random]] = []
    while missing:
        best = max(
            range(len(drawn)),
            key=lambda number: len(cases_by_history[number] & missing) / max(len(drawn[number][0]), 1),
        )
        missing -= cases_by_history[best]
        chosen.append(drawn[best])
    return chosen


def test_random_history_matches_the_oracle(
    template: Path, tmp_path_factory: pytest.TempPathFactory, at_length: bool
) -> None:
    """At any position and time, a random history has the outcomes, ladders, games and courses of an independent oracle.

    A short run draws many histories, and sends through the program only as many as have every case of all of them.
    """
    published = [json.loads(record) for record in read_log(open_ledger(str(template)))]
    drawn: list[tuple[list[Step], Random]] = []

    def compare(steps: list[Step], chance: Random) -> None:
        CASE_COUNTS["histories"] += 1
        ledger = copy_template(template, tmp_path_factory)
        log = append_steps(ledger, steps, published)
        last = log[-1]["position"]
        add_counts(count_cases(log))
        for name, expected in check_ladders(ledger, log, last, None).items():
            add_counts(expected.cases + count_row_cases(expected))
            check_ladder_details(ledger, name, expected, None)
        for _ in range(3):
            known_at = chance.randint(published[-1]["position"], last)
            check_ladders(ledger, log, known_at, chance.choice([None, *INSTANTS]))
        check_ladders(ledger, log, last, chance.choice(INSTANTS))
        as_of = chance.choice(INSTANTS)
        for name, expected in check_ladders(ledger, log, last, as_of).items():
            check_ladder_details(ledger, name, expected, as_of)

    @settings(SETTINGS, max_examples=1_000 if at_length else 80, phases=PHASES[at_length], derandomize=not at_length)
    @given(draw_histories(published, 60), st.randoms(use_true_random=True))
    def draw(steps: list[Step], chance: Random) -> None:
        if at_length:
            compare(steps, chance)
        else:
            drawn.append((steps, chance))

    draw()
    for steps, chance in choose_histories(drawn, published):
        compare(steps, chance)
    print("", *(f"{count:7} {name}" for name, count in sorted(CASE_COUNTS.items())), sep="\n")  # noqa: T201
    missing = (REQUIRED_CASES | {f"refused: {code}" for code in REQUIRED_REJECTIONS}) - CASE_COUNTS.keys()
    assert not missing, f"never generated: {missing}"


def test_copies_and_batches_match_single_steps(
    template: Path, tmp_path_factory: pytest.TempPathFactory, ratings: Callable[..., Any], at_length: bool
) -> None:
    """Imports, restores and batches of a random history result in the same log and ladders as single steps.

    The export is imported again and restored, and the steps are also sent several at a time.
    """
    published = [json.loads(record) for record in read_log(open_ledger(str(template)))]

    @settings(SETTINGS, max_examples=100 if at_length else 2, phases=PHASES[at_length], derandomize=not at_length)
    @given(draw_histories(published, 60, allow_uncounted=False), st.randoms(use_true_random=True))
    def check_copies(steps: list[Step], chance: Random) -> None:
        ledger, batched = copy_template(template, tmp_path_factory), copy_template(template, tmp_path_factory)
        log = append_steps(ledger, steps, published)
        folder = Path(ledger.location).parent
        while steps:
            size = chance.randint(1, 40)
            part, steps = steps[:size], steps[size:]
            result = enter(batched, [step.event for step in part], allow_uncounted=False)
            codes_by_line = {rejection.line: rejection.code for rejection in result.rejected}
            assert codes_by_line.keys() == {n for n, step in enumerate(part, 1) if step.verdict.codes}, result.rejected
            assert all(code in part[n - 1].verdict.codes for n, code in codes_by_line.items() if n), result.rejected
        assert read_log_without_recording_times(batched) == read_log_without_recording_times(ledger)
        export, restored, imported = folder / "export.jsonl", folder / "restored.db", folder / "imported.db"
        assert ratings("export", "events", "-o", export, db=ledger.location).exit_code == 0
        for path, option in ((restored, ["--restore"]), (imported, [])):
            assert ratings("init", "--no-rules", db=path).exit_code == 0
            assert ratings("import", export, *option, db=path).exit_code == 0
            copy = open_ledger(str(path))
            batch = [] if option else ["import.recorded"]
            assert [event["type"] for event in read_log_without_recording_times(copy)[len(log) :]] == batch
            assert read_log_without_recording_times(copy)[: len(log)] == read_log_without_recording_times(ledger)
            check_ladders(copy, log, log[-1]["position"], None)
            assert ratings("rebuild", db=path).exit_code == 0
            verified = ratings("verify", db=path)
            assert (verified.exit_code, verified.stdout) == (0, "")
        assert read_log(open_ledger(str(restored))) == read_log(ledger)

    check_copies()


def read_log_without_recording_times(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the log without the times of recording."""
    return [{**json.loads(record), "recorded_at": None} for record in read_log(ledger)]


def test_announced_effects_match_the_oracle(
    template: Path, tmp_path_factory: pytest.TempPathFactory, at_length: bool
) -> None:
    """The effects announced before each step are the difference between the oracle's ladders before and after it."""
    published = [json.loads(record) for record in read_log(open_ledger(str(template)))]

    @settings(SETTINGS, max_examples=300 if at_length else 4, phases=PHASES[at_length], derandomize=not at_length)
    @given(draw_histories(published, 36))
    def check_effects(steps: list[Step]) -> None:
        ledger, log = copy_template(template, tmp_path_factory), published
        before = compute_points(log)
        for step in steps:
            # a recorded game announces nothing
            announced = None if step.event["type"] == "game.recorded" else announce_changes(ledger, step)
            old_identities = build_id_lookup(log)
            log = append_steps(ledger, [step], log)
            after = compute_points(log)
            expected = compute_changes(before, after, old_identities, build_id_lookup(log))
            assert announced in (None, expected), (step.event, announced, expected)
            before = after

    check_effects()


def compute_points(log: Log) -> dict[tuple[str, str], Fraction]:
    """Return the oracle's points by (ladder, player)."""
    return {
        (name, row.player): row.points for name, ladder in compute_ladders(log).items() for row in ladder.rank_rows()
    }


def compute_changes(
    before: Points, after: Points, old_identity: Callable[[str], str], new_identity: Callable[[str], str]
) -> dict[Any, Any]:
    """Return points before and after by ladder and player where they differ; another id alone is no difference."""
    old = dict(before)
    for name, player in sorted(before.keys() - after.keys()):
        for _, new in sorted(at for at in after.keys() - before.keys() if at[0] == name):
            if new_identity(player) == new or old_identity(new) == player:
                old[name, new] = old.pop((name, player))
                break
    return {at: (old.get(at), after.get(at)) for at in old.keys() | after.keys() if old.get(at) != after.get(at)}


def announce_changes(ledger: Ledger, step: Step) -> dict[Any, Any]:
    """Return the changes that the program announces for a step."""
    with rl.open(ledger.location) as opened:
        impact = propose(opened, step).impact()
    assert not [ladder for ladder in impact.failed if get_ruleset_id(ladder) in BOOK]
    changes = impact.changes
    add_counts({"changes announced": len(changes)})
    return {(e.ladder, e.player): (e.before, e.after) for e in changes if get_ruleset_id(e.ladder) in BOOK}
