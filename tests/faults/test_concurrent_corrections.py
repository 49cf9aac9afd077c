"""Two processes correct the same event at once: one succeeds, the other is refused, and the log stays valid."""

import json
import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fault_helpers import (
    append_games,
    build_correction,
    build_decision,
    build_numbered_game,
    fork_child,
    list_findings,
    wait_for_exits,
)
from ledgers import read_all_records, run_command

import ratings_ledger as rl
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.revisions import EventLookup
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.store.opening import open_ledger

WAIT_SECONDS = 60


def create_barrier(parties: int) -> Barrier:
    """Return a barrier for forked processes."""
    return multiprocessing.get_context("fork").Barrier(parties)


def run_together(*work: Callable[[], None]) -> None:
    """Run functions in processes of their own at the same time; each must succeed."""
    assert wait_for_exits([fork_child(function) for function in work]) == [0] * len(work)


# the same game, the same event


def choose_game_decision(events: EventLookup, number: int, worker: int) -> Draft:
    """Return a worker's decision about g-1: reinstate it if it is voided, void it now and then, else correct it."""
    last = events.about("game:g-1")[-1]
    members = {"game_id": "g-1", "reason": f"worker {worker}, round {number}"}
    if last.type == "game.voided":
        draft = build_decision("game.reinstated", **members)
    elif (number + worker) % 4 == 0:
        draft = build_decision("game.voided", **members)
    else:
        players = ("anna", "ben", f"{worker}-{number}") if number % 2 else ("ben", "anna")
        draft = build_correction(1, *players, reason=members["reason"])
    return draft._replace(supersedes=last.event_id)


def choose_event_decision(events: EventLookup, number: int, worker: int) -> Draft:
    """Return a worker's decision about the adjustment `gift`: withdraw it, or undo its withdrawal."""
    last, withdrawn = events.event("gift"), False
    assert last is not None
    while (successor := events.successor(last.event_id)) is not None:
        last, withdrawn = successor, not withdrawn
    target = last.event_id if withdrawn else "gift"
    draft = build_decision("event.voided", id=target, reason=f"worker {worker}, round {number}")
    return draft._replace(supersedes=last.event_id)


def decide_repeatedly(
    url: str,
    worker: int,
    rounds: int,
    barrier: Barrier,
    choose_decision: Callable[[EventLookup, int, int], Draft],
    outcomes_file: Path,
) -> None:
    """In each round, read the log, wait for the others and append a decision; write all outcomes to a file."""
    ledger = open_ledger(url, keep_open=True)
    outcomes = []
    for number in range(rounds):
        with ledger.reading() as connection:
            draft = choose_decision(Log(connection), number, worker)
        barrier.wait(WAIT_SECONDS)
        result = append(ledger, [draft], by=f"worker {worker}", clock=clock.now)
        outcomes.append(result.refused[0][1].code if result.refused else draft.event_id)
        barrier.wait(WAIT_SECONDS)
    outcomes_file.write_text(json.dumps(outcomes))


@pytest.mark.slow_cases
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("choose_decision", [choose_game_decision, choose_event_decision])
def test_one_of_two_concurrent_changes_wins(
    choose_decision: Callable[[EventLookup, int, int], Draft], ledger_url: str, tmp_path: Path, at_length: bool
) -> None:
    """When two processes change the same event at once, exactly one succeeds."""
    rounds, workers = 500 if at_length else 25, 2
    gift = build_decision("points.adjusted", "gift", ladder="club-catan-elo/all", player="anna", points="5")
    append_games(ledger_url, [build_numbered_game(1), build_numbered_game(2), gift])
    barrier = create_barrier(workers)
    files = [tmp_path / f"{worker}.json" for worker in range(workers)]
    run_together(
        *(
            partial(decide_repeatedly, ledger_url, worker, rounds, barrier, choose_decision, files[worker])
            for worker in range(workers)
        )
    )

    stored = [json.loads(record) for record in read_all_records(ledger_url).values()]
    assert len(stored) == 3 + rounds
    outcomes = list(zip(*(json.loads(file.read_text()) for file in files), strict=True))
    for (first_outcome, second_outcome), event in zip(outcomes, stored[3:], strict=True):
        # in each round the first of the two succeeds
        assert {first_outcome, second_outcome} == {"changed-meanwhile", event["id"]}
    # the revisions form one chain without branches
    assert [event["supersedes"] for event in stored[4:]] == [event["id"] for event in stored[3:-1]]
    assert list_findings(ledger_url) == []


# commands


def run_command_to_file(out: Path, url: str, *arguments: object) -> int:
    """Run a command with its output in a file and return the exit code."""
    with out.open("w", encoding="utf-8") as file, redirect_stdout(file):
        return run_command(*arguments, db=url)


@pytest.mark.slow_cases
@pytest.mark.timeout(1_800)
def test_one_of_two_commands_with_expect_wins(ledger_url: str, tmp_path: Path, at_length: bool) -> None:
    """Of two commands that expect the same position, exactly one succeeds."""
    append_games(ledger_url, [build_numbered_game(1)])
    position, files = 1, [tmp_path / name for name in ("first", "second")]
    for number in range(50 if at_length else 2):
        reason = ("--reason", f"round {number}", "--expect", position, "--format", "json")
        corrections = ("anna", "ben", f"first {number}"), ("ben", "anna", f"second {number}")
        exit_codes = wait_for_exits(
            [
                fork_child(run_command_to_file, file, ledger_url, "correct", "g-1", *players, *reason)
                for file, players in zip(files, corrections, strict=True)
            ]
        )
        outcomes = [(json.loads(file.read_text()), code) for file, code in zip(files, exit_codes, strict=True)]
        assert sorted(exit_code for _, exit_code in outcomes) == [0, 1]
        (accepted,), (refused,) = (
            [output for output, exit_code in outcomes if exit_code == expected] for expected in (0, 1)
        )
        assert [rejection["code"] for rejection in refused["rejected"]] == ["changed-meanwhile"]
        position += 1
        assert (accepted["appended"], accepted["position"], refused["appended"]) == (1, position, 0)
    assert list_findings(ledger_url) == []


# two lines that exclude each other, each checked before the other is appended


class Race(NamedTuple):
    """Lines recorded before, with `N` for the number of the round; two lines that race; the codes of the refused
    one."""

    before: list[dict[str, Any]]
    first: dict[str, Any]
    second: dict[str, Any]
    codes: set[str]


def build_line(type_name: str, event_id: str | None = None, **data: Any) -> dict[str, Any]:
    """Return an event as it stands in a file, with a reason if its type needs one."""
    if type_name.startswith(("game.v", "game.re", "event.", "points.")) and "participants" not in data:
        data = {"reason": "wrong", **data}
    event = {"type": type_name, "occurred_at": "2010-03-06T12:00:00Z", "data": data}
    return event if event_id is None else {"id": event_id, **event}


def build_chess_data(game_id: str, *players: str) -> dict[str, Any]:
    """Return the data of a game of chess, which the ruleset `rN` scores."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    return {"game_id": game_id, "game": "chess", "participants": participants}


def build_game_line(game_id: str, *players: str) -> dict[str, Any]:
    """Return a game as it stands in a file."""
    return build_line("game.recorded", **build_chess_data(game_id, *players))


def build_correction_line(game_id: str, *players: str) -> dict[str, Any]:
    """Return a correction as it stands in a file."""
    return build_line("game.corrected", game_id=game_id, reason="wrong", game=build_chess_data(game_id, *players))


RULESET = build_line(
    "ruleset.published",
    "r-N",
    id="rN",
    version="1",
    rule="pairwise-elo/1",
    effective_from="2000-01-01",
    scope={"game": ["chess"]},
    params={"k_per_pair": 8},
)
A_IS_B = build_line("player.renamed", "a-is-b-N", player="aN", new_player="bN")
GAMES_BEFORE = [build_game_line("g-N-a", "aN", "x"), build_game_line("g-N-b", "bN", "x")]
ADJUSTMENT = build_line("points.adjusted", ladder="rN", player="aN", points="5")

RACES = {
    "a rename and a game in which they meet": Race(
        GAMES_BEFORE,
        A_IS_B,
        build_game_line("g-N", "aN", "bN"),
        {"players-met", "player-twice"},
    ),
    "a rename and a correction in which they meet": Race(
        GAMES_BEFORE,
        A_IS_B,
        build_correction_line("g-N-a", "aN", "bN"),
        {"players-met", "player-twice"},
    ),
    "a rename and a reinstatement of a game in which they met": Race(
        [*GAMES_BEFORE, build_game_line("g-N", "aN", "bN"), build_line("game.voided", game_id="g-N")],
        A_IS_B,
        build_line("game.reinstated", game_id="g-N"),
        {"players-met", "player-twice"},
    ),
    "a rename put back in force and a game in which they meet": Race(
        [*GAMES_BEFORE, A_IS_B, build_line("event.voided", "v-N", id="a-is-b-N")],
        build_line("event.voided", id="v-N"),
        build_game_line("g-N", "aN", "bN"),
        {"players-met", "player-twice"},
    ),
    "two renames in a circle": Race(
        GAMES_BEFORE,
        A_IS_B,
        build_line("player.renamed", player="bN", new_player="aN"),
        {"rename-loop"},
    ),
    "two renames of one id": Race(
        GAMES_BEFORE,
        A_IS_B,
        build_line("player.renamed", player="aN", new_player="cN"),
        {"renamed-already"},
    ),
    "a ruleset withdrawn and an adjustment on its ladder": Race(
        [RULESET],
        build_line("event.voided", id="r-N"),
        ADJUSTMENT,
        {"still-needed", "unknown-ladder"},
    ),
    "an adjustment put back in force and its ruleset withdrawn": Race(
        [RULESET, {**ADJUSTMENT, "id": "p-N"}, build_line("event.voided", "v-N", id="p-N")],
        build_line("event.voided", id="v-N"),
        build_line("event.voided", id="r-N"),
        {"still-needed", "unknown-ladder"},
    ),
    "an event withdrawn twice": Race(
        [RULESET, {**ADJUSTMENT, "id": "p-N"}],
        build_line("event.voided", "1-N", id="p-N"),
        build_line("event.voided", "2-N", id="p-N"),
        {"changed-meanwhile", "event-voided"},
    ),
    "a void and a correction of a game": Race(
        GAMES_BEFORE,
        build_line("game.voided", game_id="g-N-a"),
        build_correction_line("g-N-a", "bN", "x"),
        {"changed-meanwhile"},
    ),
    "a version of a ruleset published twice": Race(
        [],
        RULESET,
        {**RULESET, "id": "other-N", "data": {**RULESET["data"], "params": {"k_per_pair": 9}}},
        {"version-exists"},
    ),
}


def import_events(
    url: str, name: str, events: Sequence[dict[str, Any]], number: int, wait_for_other: Callable[[], object]
) -> None:
    """Import the events of a round, wait for the other process between check and append, and write the outcome to the
    file `name`, unless that is empty."""
    texts = [json.dumps(event).replace("N", str(number)) for event in events]
    with rl.open(url) as ledger:
        proposal = ledger.propose([json.loads(text) for text in texts], "test", new_names="accept")
        if not proposal.is_refused:
            wait_for_other()
        result = proposal.append()
    if name:
        Path(name).write_text(json.dumps([result.appended, *(rejection.code for rejection in result.rejected)]))


@pytest.mark.slow_cases
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("what", RACES)
def test_one_of_two_exclusive_lines_is_recorded(
    what: str, ledger_url: str, tmp_path: Path, at_length: bool, ratings: Callable[..., Any]
) -> None:
    """Of two lines that exclude each other, exactly one is recorded."""
    race = RACES[what]
    files = [str(tmp_path / name) for name in ("first", "second")]
    for number in range(100 if at_length else 2):
        import_events(ledger_url, "", race.before, number, lambda: None)
        barrier = create_barrier(2)
        run_together(
            *(
                partial(import_events, ledger_url, name, [event], number, partial(barrier.wait, WAIT_SECONDS))
                for name, event in zip(files, (race.first, race.second), strict=True)
            )
        )
        accepted, refused = sorted((json.loads(Path(name).read_text()) for name in files), key=len)
        assert (accepted, refused[0], len(refused)) == ([1], 0, 2)
        assert refused[1] in race.codes
    assert ratings("verify", db=ledger_url) == (0, "", "")
    assert ratings("ladders", db=ledger_url).exit_code == 0


def test_compatible_rename_and_game_are_recorded(ledger_url: str, tmp_path: Path) -> None:
    """A rename and a game in which the two ids do not meet are both recorded."""
    import_events(ledger_url, "", GAMES_BEFORE, 1, lambda: None)
    barrier = create_barrier(2)
    files = [str(tmp_path / name) for name in ("first", "second")]
    run_together(
        *(
            partial(import_events, ledger_url, name, [event], 1, partial(barrier.wait, WAIT_SECONDS))
            for name, event in zip(files, (A_IS_B, build_game_line("g-N", "aN", "y")), strict=True)
        )
    )
    assert [json.loads(Path(name).read_text()) for name in files] == [[1], [1]]
    assert list_findings(ledger_url) == []


def test_game_voided_meanwhile_refuses_its_corrections(ledger_url: str) -> None:
    """A correction of a game that was voided meanwhile is refused, and so are later decisions about that game.

    With `--keep-going` the remaining lines of the file are recorded.
    """
    import_events(
        ledger_url, "", [build_game_line("g-1", "anna", "ben"), build_game_line("g-2", "anna", "ben")], 0, lambda: None
    )
    events = [
        build_correction_line("g-1", "ben", "anna"),
        build_line("game.voided", game_id="g-1"),
        build_correction_line("g-2", "ben", "anna"),
        build_game_line("g-3", "anna", "ben"),
        build_line("game.voided", game_id="g-3"),
    ]

    items = [Item("-", at, event, None) for at, event in enumerate(events, 1)]
    intake = Intake(open_ledger(ledger_url), items, ImportPolicy("test", keep_going=True))
    assert append_games(ledger_url, [build_decision("game.voided", game_id="g-1")]).appended == 1
    result = intake.append()
    assert [(rejection.line, rejection.code) for rejection in result.rejected] == [
        (1, "changed-meanwhile"),
        (2, "changed-meanwhile"),
    ]
    assert result.appended == 3
    assert list_findings(ledger_url) == []
