"""Corrections written into the store by hand are refused by the database or found by `verify`."""

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
import pytest
from fault_helpers import (
    append_games,
    build_correction,
    build_decision,
    build_next_row,
    build_numbered_game,
    execute_plainly,
    list_findings,
)
from ledgers import create_ledger
from sqlalchemy import make_url

REFUSALS = (sqlite3.IntegrityError, psycopg.errors.IntegrityError)
INSERT = "INSERT INTO events VALUES"
EVENTS = 8


def make_ledger(_: object, url: str) -> None:
    """Make games g-1, corrected at 4, g-2, voided at 5, and g-3; withdraw an account change at 7, rename at 8."""
    create_ledger(url)
    result = append_games(
        url,
        [
            build_numbered_game(1),
            build_numbered_game(2),
            build_numbered_game(3),
            build_correction(1, "ben", "anna")._replace(event_id="c-1"),
            build_decision("game.voided", "v-2", game_id="g-2"),
            build_decision("player.account_changed", "a-1", player="anna", account="free"),
            build_decision("event.voided", "v-a", id="a-1"),
            build_decision("player.renamed", "r-1", player="gero", new_player="zoe"),
        ],
    )
    assert (result.refused, result.head.position, list_findings(url)) == ([], EVENTS, [])


@pytest.fixture
def url(copy_ledger: Callable[..., str]) -> str:
    """Return the ledger of `make_ledger`."""
    return copy_ledger(make_ledger)


class Forgery(NamedTuple):
    """An event, the id that it claims to supersede, its code in `verify`, and the stores that refuse it."""

    event: Any
    supersedes: str | None
    code: str = "supersedes"
    refused_by: tuple[str, ...] = ()


BOTH = ("sqlite", "postgresql")
FORGERIES = {
    "a correction without link": Forgery(build_correction(1, "anna", "ben"), None),
    "a void without link": Forgery(build_decision("game.voided", game_id="g-3"), None),
    "a withdrawal without link": Forgery(build_decision("event.voided", id="r-1"), None),
    "a correction of another game's event": Forgery(build_correction(1, "anna", "ben"), "game:g-3"),
    "a void of another game's event": Forgery(build_decision("game.voided", game_id="g-3"), "c-1"),
    # SQLite checks foreign keys only on connections that ask for it
    "a correction of a missing event": Forgery(build_correction(1, "anna", "ben"), "x", refused_by=("postgresql",)),
    "a correction of itself": Forgery(build_correction(3, "anna", "ben")._replace(event_id="itself"), "itself"),
    "a second correction of the same event": Forgery(build_correction(1, "anna", "ben"), "game:g-1", "twice", BOTH),
    "an event withdrawn twice": Forgery(build_decision("event.voided", id="a-1", reason="again"), "a-1", "twice", BOTH),
    "a link where none belongs": Forgery(build_numbered_game(9), "game:g-3"),
    "a rename with a link": Forgery(build_decision("player.renamed", player="anna", new_player="anne"), "r-1"),
    "a correction of a voided game": Forgery(build_correction(2, "anna", "ben"), "v-2"),
    "a reinstatement of a live game": Forgery(build_decision("game.reinstated", game_id="g-3"), "game:g-3"),
    "a correction of a missing game": Forgery(build_correction(9, "anna", "ben"), "game:g-3"),
    "a game's event withdrawn": Forgery(build_decision("event.voided", id="game:g-3"), "game:g-3"),
    "a withdrawal of one event in the revisions of another": Forgery(build_decision("event.voided", id="r-1"), "v-a"),
    "a withdrawal of a missing event": Forgery(build_decision("event.voided", id="x"), "r-1"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_correction_is_caught(what: str, url: str, ratings: Callable[..., Any]) -> None:
    """A forged correction is refused by the database or found by `verify` at its position."""
    forgery = FORGERIES[what]
    row = build_next_row(url, forgery.event, supersedes=forgery.supersedes)
    if make_url(url).get_backend_name() in forgery.refused_by:
        with pytest.raises(REFUSALS):
            execute_plainly(url, INSERT, row)
        assert list_findings(url) == []
        return
    assert execute_plainly(url, INSERT, row) == 1
    assert [(finding.code, finding.position) for finding in list_findings(url)] == [(forgery.code, EVENTS + 1)]
    result = ratings("verify", db=url)
    assert (result.exit_code, result.stderr) == (1, "")
    assert f"position {EVENTS + 1}: " in result.stdout


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_double_correction_is_found(url: str) -> None:
    """`verify` finds a second correction of one event after the constraint against it was dropped."""
    execute_plainly(url, "ALTER TABLE events DROP CONSTRAINT events_supersedes_once")
    again = build_correction(1, "cleo", "ben", reason="once more")
    assert execute_plainly(url, INSERT, build_next_row(url, again, supersedes="game:g-1")) == 1
    assert ("twice", EVENTS + 1) in {(finding.code, finding.position) for finding in list_findings(url)}


def test_honest_correction_is_accepted(url: str) -> None:
    """Valid corrections written by SQL are accepted, so that the refusals mean something."""
    for event, supersedes in (
        (build_correction(1, "anna", "ben"), "c-1"),
        (build_decision("game.reinstated", game_id="g-2"), "v-2"),
        (build_decision("event.voided", id="r-1"), "r-1"),
        (build_decision("event.voided", id="v-a"), "v-a"),
    ):
        assert execute_plainly(url, INSERT, build_next_row(url, event, supersedes=supersedes)) == 1
        assert list_findings(url) == []
