"""Two who put the same thing right at once: one does, the other is told; whatever the order, the log stays good."""

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

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.revisions import EventLookup
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.admission.ladder_checks import Admission

WAIT_SECONDS = 60


def barrier_for(parties: int) -> Barrier:
    """A barrier at which forked processes meet."""
    return multiprocessing.get_context("fork").Barrier(parties)


def together(*work: Callable[[], None]) -> None:
    """Run these in processes of their own, at once."""
    assert wait_for_exits([fork_child(each) for each in work]) == [0] * len(work)


# the same game, the same event


def next_of_game(events: EventLookup, number: int, worker: int) -> Draft:
    """What a worker does about g-1 as it finds it: reinstate, void now and then, else correct."""
    last = events.about("game:g-1")[-1]
    why = {"game_id": "g-1", "reason": f"worker {worker}, round {number}"}
    if last.type == "game.voided":
        draft = build_decision("game.reinstated", **why)
    elif (number + worker) % 4 == 0:
        draft = build_decision("game.voided", **why)
    else:
        players = ("anna", "ben", f"{worker}-{number}") if number % 2 else ("ben", "anna")
        draft = build_correction(1, *players, reason=why["reason"])
    return draft._replace(supersedes=last.event_id)


def next_of_event(events: EventLookup, number: int, worker: int) -> Draft:
    """What a worker does about the adjustment `gift` as it finds it: take it back, or bring it back."""
    last, withdrawn = events.event("gift"), False
    assert last is not None
    while (successor := events.successor(last.event_id)) is not None:
        last, withdrawn = successor, not withdrawn
    target = last.event_id if withdrawn else "gift"
    draft = build_decision("event.voided", id=target, reason=f"worker {worker}, round {number}")
    return draft._replace(supersedes=last.event_id)


def put_right(
    url: str, worker: int, rounds: int, meet: Barrier, following: Callable[[EventLookup, int, int], Draft], told: Path
) -> None:
    """Round by round: look, meet the others, append what follows from the look."""
    ledger = open_ledger(url, keep_open=True)
    outcomes = []
    for number in range(rounds):
        with ledger.reading() as connection:
            draft = following(Log(connection), number, worker)
        meet.wait(WAIT_SECONDS)
        done = append(ledger, [draft], by=f"worker {worker}", clock=clock.now)
        outcomes.append(done.refused[0][1].code if done.refused else draft.event_id)
        meet.wait(WAIT_SECONDS)
    told.write_text(json.dumps(outcomes))


@pytest.mark.slow_cases
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("following", [next_of_game, next_of_event])
def test_one_of_two_concurrent_changes_wins(
    following: Callable[[EventLookup, int, int], Draft], ledger_url: str, tmp_path: Path, at_length: bool
) -> None:
    """Of two who change the same thing at once, exactly one succeeds."""
    rounds, workers = 500 if at_length else 25, 2
    gift = build_decision("points.adjusted", "gift", ladder="club-catan-elo/all", player="anna", points="5")
    append_games(ledger_url, [build_numbered_game(1), build_numbered_game(2), gift])
    meet = barrier_for(workers)
    files = [tmp_path / f"{worker}.json" for worker in range(workers)]
    together(*(
        partial(put_right, ledger_url, worker, rounds, meet, following, files[worker]) for worker in range(workers)
    ))  # fmt: skip

    stored = [json.loads(record) for record in read_all_records(ledger_url).values()]
    assert len(stored) == 3 + rounds
    outcomes = list(zip(*(json.loads(file.read_text()) for file in files), strict=True))
    for (one, other), event in zip(outcomes, stored[3:], strict=True):
        # the first of the two in each round, whoever that was
        assert {one, other} == {"changed-meanwhile", event["id"]}
    # one line without branches
    assert [event["supersedes"] for event in stored[4:]] == [event["id"] for event in stored[3:-1]]
    assert list_findings(ledger_url) == []


# whole commands


def command(out: Path, url: str, *arguments: object) -> int:
    """Run a command that prints to a file."""
    with out.open("w", encoding="utf-8") as file, redirect_stdout(file):
        return run_command(*arguments, db=url)


@pytest.mark.slow_cases
@pytest.mark.timeout(1_800)
def test_one_of_two_expecting_commands_wins(ledger_url: str, tmp_path: Path, at_length: bool) -> None:
    """Of two commands that expect the same position, exactly one is carried out."""
    append_games(ledger_url, [build_numbered_game(1)])
    position, files = 1, [tmp_path / name for name in ("one", "other")]
    for number in range(50 if at_length else 2):
        reason = ("--reason", f"round {number}", "--expect", position, "--format", "json")
        corrections = ("anna", "ben", f"first {number}"), ("ben", "anna", f"second {number}")
        exit_codes = wait_for_exits([
            fork_child(command, file, ledger_url, "correct", "g-1", *players, *reason)
            for file, players in zip(files, corrections, strict=True)
        ])  # fmt: skip
        told = [(json.loads(file.read_text()), code) for file, code in zip(files, exit_codes, strict=True)]
        assert sorted(exit_code for _, exit_code in told) == [0, 1]
        (done,), (refused,) = ([found for found, exit_code in told if exit_code == wanted] for wanted in (0, 1))
        assert [rejection["code"] for rejection in refused["rejected"]] == ["changed-meanwhile"]
        position += 1
        assert (done["appended"], done["position"], refused["appended"]) == (1, position, 0)
    assert list_findings(ledger_url) == []


# two lines that exclude each other, each checked before the other was there


class Race(NamedTuple):
    """Lines before, `N` standing for the number of the round; two that race; and how either may be refused."""

    before: list[dict[str, Any]]
    one: dict[str, Any]
    other: dict[str, Any]
    codes: set[str]


def line(type_name: str, event_id: str | None = None, **data: Any) -> dict[str, Any]:
    """An event as it stands in a file."""
    if type_name.startswith(("game.v", "game.re", "event.", "points.")) and "participants" not in data:
        data = {"reason": "wrong", **data}
    event = {"type": type_name, "occurred_at": "2010-03-06T12:00:00Z", "data": data}
    return event if event_id is None else {"id": event_id, **event}


def meeting(game_id: str, *players: str) -> dict[str, Any]:
    """The data of a game on a ladder of the ruleset `rN`."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    return {"game_id": game_id, "game": "chess", "participants": participants}


def played(game_id: str, *players: str) -> dict[str, Any]:
    """A game as it stands in a file."""
    return line("game.recorded", **meeting(game_id, *players))


def correction(game_id: str, *players: str) -> dict[str, Any]:
    """A correction as it stands in a file."""
    return line("game.corrected", game_id=game_id, reason="wrong", game=meeting(game_id, *players))


RULESET = line("ruleset.published", "r-N", id="rN", version="1", rule="pairwise-elo/1", effective_from="2000-01-01",
               scope={"game": ["chess"]}, params={"k_per_pair": 8})  # fmt: skip
A_IS_B = line("player.renamed", "a-is-b-N", player="aN", new_player="bN")
KNOWN = [played("g-N-a", "aN", "x"), played("g-N-b", "bN", "x")]
ADJUSTED = line("points.adjusted", ladder="rN", player="aN", points="5")

RACES = {
    "a rename and a game in which they meet": Race(
        KNOWN, A_IS_B, played("g-N", "aN", "bN"), {"players-met", "player-twice"},
    ),
    "a rename and a correction in which they meet": Race(
        KNOWN, A_IS_B, correction("g-N-a", "aN", "bN"), {"players-met", "player-twice"},
    ),
    "a rename and a reinstatement of a game in which they met": Race(
        [*KNOWN, played("g-N", "aN", "bN"), line("game.voided", game_id="g-N")], A_IS_B,
        line("game.reinstated", game_id="g-N"), {"players-met", "player-twice"},
    ),
    "a rename brought back and a game in which they meet": Race(
        [*KNOWN, A_IS_B, line("event.voided", "v-N", id="a-is-b-N")], line("event.voided", id="v-N"),
        played("g-N", "aN", "bN"), {"players-met", "player-twice"},
    ),
    "two renames in a circle": Race(
        KNOWN, A_IS_B, line("player.renamed", player="bN", new_player="aN"), {"rename-loop"},
    ),
    "two renames of one id": Race(
        KNOWN, A_IS_B, line("player.renamed", player="aN", new_player="cN"), {"renamed-already"},
    ),
    "a ruleset withdrawn and an adjustment on its ladder": Race(
        [RULESET], line("event.voided", id="r-N"), ADJUSTED, {"still-needed", "unknown-ladder"},
    ),
    "an adjustment brought back and its ruleset withdrawn": Race(
        [RULESET, {**ADJUSTED, "id": "p-N"}, line("event.voided", "v-N", id="p-N")], line("event.voided", id="v-N"),
        line("event.voided", id="r-N"), {"still-needed", "unknown-ladder"},
    ),
    "an event withdrawn twice": Race(
        [RULESET, {**ADJUSTED, "id": "p-N"}], line("event.voided", "1-N", id="p-N"),
        line("event.voided", "2-N", id="p-N"), {"changed-meanwhile", "event-voided"},
    ),
    "a void and a correction of a game": Race(
        KNOWN, line("game.voided", game_id="g-N-a"), correction("g-N-a", "bN", "x"), {"changed-meanwhile"},
    ),
    "a version of a ruleset published twice": Race(
        [], RULESET, {**RULESET, "id": "other-N", "data": {**RULESET["data"], "params": {"k_per_pair": 9}}},
        {"version-exists"},
    ),
}  # fmt: skip


def take_in(url: str, name: str, events: Sequence[dict[str, Any]], number: int, met: Callable[[], object]) -> None:
    """Import events of a round; between their check and the append, meet the other. Tells in a file how it went."""
    texts = [json.dumps(event).replace("N", str(number)) for event in events]
    items = [Item("-", at, json.loads(text), None) for at, text in enumerate(texts, 1)]
    intake = Intake(open_ledger(url), items, ImportPolicy("test"), ladders=Admission)
    if not intake.is_refused:
        met()
    done = intake.append()
    if name:
        Path(name).write_text(json.dumps([done.appended, *(rejection.code for rejection in done.rejected)]))


@pytest.mark.slow_cases
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("what", RACES)
def test_one_of_exclusive_lines_is_taken(
    what: str, ledger_url: str, tmp_path: Path, at_length: bool, ratings: Callable[..., Any]
) -> None:
    """Of two lines that exclude each other, exactly one is taken."""
    race = RACES[what]
    files = [str(tmp_path / name) for name in ("one", "other")]
    for number in range(100 if at_length else 2):
        take_in(ledger_url, "", race.before, number, lambda: None)
        meet = barrier_for(2)
        together(*(
            partial(take_in, ledger_url, name, [event], number, partial(meet.wait, WAIT_SECONDS))
            for name, event in zip(files, (race.one, race.other), strict=True)
        ))  # fmt: skip
        taken, refused = sorted((json.loads(Path(name).read_text()) for name in files), key=len)
        assert (taken, refused[0], len(refused)) == ([1], 0, 2)
        assert refused[1] in race.codes
    assert ratings("verify", db=ledger_url) == (0, "", "")
    assert ratings("ladders", db=ledger_url).exit_code == 0


def test_compatible_rename_and_game_are_taken(ledger_url: str, tmp_path: Path) -> None:
    """A rename and a game in which the two ids do not meet are both taken."""
    take_in(ledger_url, "", KNOWN, 1, lambda: None)
    meet = barrier_for(2)
    files = [str(tmp_path / name) for name in ("one", "other")]
    together(*(
        partial(take_in, ledger_url, name, [event], 1, partial(meet.wait, WAIT_SECONDS))
        for name, event in zip(files, (A_IS_B, played("g-N", "aN", "y")), strict=True)
    ))  # fmt: skip
    assert [json.loads(Path(name).read_text()) for name in files] == [[1], [1]]
    assert list_findings(ledger_url) == []


def test_changed_game_refuses_its_corrections(ledger_url: str) -> None:
    """A correction of a game changed meanwhile is refused, and so is what follows it.

    With `--keep-going`, when somebody voids one of the file's games meanwhile, the rest goes in.
    """
    take_in(ledger_url, "", [played("g-1", "anna", "ben"), played("g-2", "anna", "ben")], 0, lambda: None)
    events = [
        correction("g-1", "ben", "anna"), line("game.voided", game_id="g-1"), correction("g-2", "ben", "anna"),
        played("g-3", "anna", "ben"), line("game.voided", game_id="g-3"),
    ]  # fmt: skip

    items = [Item("-", at, event, None) for at, event in enumerate(events, 1)]
    intake = Intake(open_ledger(ledger_url), items, ImportPolicy("test", keep_going=True))
    assert append_games(ledger_url, [build_decision("game.voided", game_id="g-1")]).appended == 1
    done = intake.append()
    assert [(rejection.line, rejection.code) for rejection in done.rejected] == [
        (1, "changed-meanwhile"), (2, "changed-meanwhile"),
    ]  # fmt: skip
    assert done.appended == 3
    assert list_findings(ledger_url) == []
