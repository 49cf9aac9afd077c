"""Corrections that somebody writes into the store by hand: refused by the database or found by `verify`."""

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
import pytest
from fault_helpers import append_games, corrected, decision, execute, findings, forged, numbered
from ledgers import create_ledger
from sqlalchemy import make_url

REFUSALS = (sqlite3.IntegrityError, psycopg.errors.IntegrityError)
INSERT = "INSERT INTO events VALUES"
EVENTS = 8


def make_ledger(_: object, url: str) -> None:
    """Games g-1, corrected at 4, g-2, voided at 5, and g-3; an account change withdrawn at 7, a rename at 8."""
    create_ledger(url)
    done = append_games(url, [
        numbered(1), numbered(2), numbered(3),
        corrected(1, "ben", "anna")._replace(event_id="c-1"),
        decision("game.voided", "v-2", game_id="g-2"),
        decision("player.account_changed", "a-1", player="anna", account="free"),
        decision("event.voided", "v-a", id="a-1"),
        decision("player.renamed", "r-1", player="gero", new_player="zoe"),
    ])  # fmt: skip
    assert (done.refused, done.head.position, findings(url)) == ([], EVENTS, [])


@pytest.fixture
def url(copied: Callable[..., str]) -> str:
    """The ledger of `make_ledger`."""
    return copied(make_ledger)


class Forgery(NamedTuple):
    """An event, what it claims to supersede, and what `verify` calls it; by which stores it is refused."""

    event: Any
    supersedes: str | None
    code: str = "supersedes"
    refused_by: tuple[str, ...] = ()


BOTH = ("sqlite", "postgresql")
FORGERIES = {
    "a correction without link": Forgery(corrected(1, "anna", "ben"), None),
    "a void without link": Forgery(decision("game.voided", game_id="g-3"), None),
    "a withdrawal without link": Forgery(decision("event.voided", id="r-1"), None),
    "a correction of another game's event": Forgery(corrected(1, "anna", "ben"), "game:g-3"),
    "a void of another game's event": Forgery(decision("game.voided", game_id="g-3"), "c-1"),
    # SQLite leaves foreign keys to whoever connects
    "a correction of an event that is not there": Forgery(corrected(1, "anna", "ben"), "x", refused_by=("postgresql",)),
    "a correction of itself": Forgery(corrected(3, "anna", "ben")._replace(event_id="itself"), "itself"),
    "a game corrected twice off the same event": Forgery(corrected(1, "anna", "ben"), "game:g-1", "twice", BOTH),
    "an event withdrawn twice": Forgery(decision("event.voided", id="a-1", reason="again"), "a-1", "twice", BOTH),
    "a link where none belongs": Forgery(numbered(9), "game:g-3"),
    "a rename with a link": Forgery(decision("player.renamed", player="anna", new_player="anne"), "r-1"),
    "a correction of a voided game": Forgery(corrected(2, "anna", "ben"), "v-2"),
    "a reinstatement of a live game": Forgery(decision("game.reinstated", game_id="g-3"), "game:g-3"),
    "a correction of a game that is not there": Forgery(corrected(9, "anna", "ben"), "game:g-3"),
    "a game's event withdrawn": Forgery(decision("event.voided", id="game:g-3"), "game:g-3"),
    "a withdrawal of one event in the line of another": Forgery(decision("event.voided", id="r-1"), "v-a"),
    "a withdrawal of what is not there": Forgery(decision("event.voided", id="x"), "r-1"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_correction_is_caught(what: str, url: str, ratings: Callable[..., Any]) -> None:
    """A forged correction is refused by the database or found by `verify` at its position."""
    forgery = FORGERIES[what]
    row = forged(url, forgery.event, supersedes=forgery.supersedes)
    if make_url(url).get_backend_name() in forgery.refused_by:
        with pytest.raises(REFUSALS):
            execute(url, INSERT, row)
        assert findings(url) == []
        return
    assert execute(url, INSERT, row) == 1
    assert [(found.code, found.position) for found in findings(url)] == [(forgery.code, EVENTS + 1)]
    result = ratings("verify", db=url)
    assert (result.exit_code, result.stderr) == (1, "")
    assert f"position {EVENTS + 1}: " in result.stdout


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_double_correction_is_found(url: str) -> None:
    """`verify` finds a second correction of one event after the constraint against it was dropped."""
    execute(url, "ALTER TABLE events DROP CONSTRAINT events_supersedes_once")
    again = corrected(1, "cleo", "ben", reason="once more")
    assert execute(url, INSERT, forged(url, again, supersedes="game:g-1")) == 1
    assert ("twice", EVENTS + 1) in {(found.code, found.position) for found in findings(url)}


def test_honest_correction_is_accepted(url: str) -> None:
    """Valid corrections written by SQL are accepted, so that the refusals mean something."""
    for event, supersedes in (
        (corrected(1, "anna", "ben"), "c-1"),
        (decision("game.reinstated", game_id="g-2"), "v-2"),
        (decision("event.voided", id="r-1"), "r-1"),
        (decision("event.voided", id="v-a"), "v-a"),
    ):
        assert execute(url, INSERT, forged(url, event, supersedes=supersedes)) == 1
        assert findings(url) == []
