"""Clock logs that contradict themselves are rejected at the first bad line, with the error and a remedy."""

import pytest
from clock_logs import (
    GRANTED_PAUSE,
    apply_event,
    build_event,
    build_log,
    explain,
    find_refusal,
    find_refusal_in,
    load_state,
    replay,
)

from ratings_ledger import Rejection, Unknown

BAD_LOGS = [
    ("5000 anna offered roll-dice\n4999 ben heartbeat", "clock-time-backwards", "in the order of the server's time"),
    ("5000 zoe heartbeat", "clock-player-unknown", "'zoe' is not playing"),
    ("5000 anna offered chess", "bad-value", "'chess' is not a choice"),
    ("5000 anna pause_asked\n5000 ben pause_answered maybe", "bad-value", "'maybe' is not an answer"),
    ("5000 anna decided", "clock-choice-missing", "record clock.offered first"),
    ("5000 anna offered fortune\n5000 anna decided roll-dice", "clock-choice-missing", "was offered fortune"),
    ("5000 anna offered fortune\n5000 anna offered fortune", "clock-choice-open", "still has to choose: fortune"),
    ("0 anna offered roll-dice\n124000 anna decided", "clock-player-out", "was removed at 124000"),
    ("0 anna offered roll-dice\n124000 anna heartbeat", "clock-player-out", "too late"),
    ("0 anna offered roll-dice\n124001 anna offered roll-dice", "clock-player-out", "was removed at 124000"),
    ("10 anna player_left\n10 anna heartbeat", "clock-player-out", "left at 10"),
    ("5000 anna pause_answered yes", "clock-no-question", "no player has asked for a pause yet"),
    ("1 anna pause_asked\n2 ben pause_answered no\n3 cleo pause_answered no", "clock-no-question", "'ben' said no"),
    ("1 anna pause_asked\n2 ben pause_asked", "clock-pause-open", "answer with clock.pause_answered within 14999 ms"),
    ("5000 anna resume_asked", "clock-not-paused", "not paused at 5000"),
    ("5000 stopped\n5000 anna heartbeat", "clock-stopped", "stopped at 5000"),
    ("5000 exploded", "unknown-type", "not a type of clock event (clock.started, clock.offered, "),
]


@pytest.mark.parametrize(("text", "code", "phrase"), BAD_LOGS)
def test_first_contradicting_line_is_rejected(text, code, phrase):
    """A log that contradicts itself is rejected at its first bad line, with the reason."""
    line, refusal_code, message = find_refusal(f"{text}\n9 zoe heartbeat")

    assert (line, refusal_code) == (len(text.splitlines()) + 1, code)
    assert phrase in message


EVENTS_OF_PLAY = ["anna offered roll-dice", "ben decided", "ben auction_started", "ben pause_asked", "turn_ended"]


@pytest.mark.parametrize("event", [*EVENTS_OF_PLAY, "ben pause_answered yes"])
def test_play_during_a_pause_is_rejected(event):
    """During a pause, any event of play is rejected."""
    line, code, message = find_refusal(f"{GRANTED_PAUSE}\n9000 turn_ended\n9000 {event}", players="anna ben")

    assert (line, code) == (6, "clock-paused")
    assert "paused since 9000; the pause ends when all players in the game send clock.resume_asked, or when" in message
    assert message.endswith(" does at 609000 or later")


def test_granted_pause_rejects_requests_and_answers():
    """Before a granted pause begins, further requests, answers and requests to resume are rejected."""
    assert find_refusal(f"{GRANTED_PAUSE}\n9000 ben pause_asked", players="anna ben")[1] == "clock-pause-open"
    assert find_refusal(f"{GRANTED_PAUSE}\n9000 ben resume_asked", players="anna ben")[1] == "clock-not-paused"
    assert find_refusal(f"{GRANTED_PAUSE}\n9000 ben pause_answered yes", players="anna ben")[1] == "clock-no-question"


def test_clock_starts_exactly_once():
    """A log without a start, or with two, is rejected; an unknown player or an instant before the start, too."""
    started, heartbeat = build_log("7 anna heartbeat")

    assert find_refusal_in([heartbeat, started])[1:] == (
        "clock-not-started",
        "a clock.heartbeat, but the game has no clock; record clock.started first",
    )
    assert find_refusal_in([started, heartbeat, started])[1] == "clock-started-twice"
    assert find_reason(lambda: load_state([])) == "clock-not-started"
    assert find_reason(lambda: load_state(build_log(""), -1)) == "clock-not-started"
    assert find_reason(lambda: explain(build_log(""), "zoe")) == "clock-player-unknown"


def test_later_bad_line_is_rejected():
    """A log is rejected even if its bad line comes after the requested instant."""
    backwards = build_log("5000 anna heartbeat\n3000 ben heartbeat")
    assert find_reason(lambda: load_state(backwards, 1_000)) == "clock-time-backwards"


def find_reason(query):
    """Return the reason of the error that a query raises."""
    with pytest.raises(Unknown) as caught:
        query()
    return caught.value.reason


def test_rejected_event_does_not_change_the_clock():
    """A rejected event does not change the clock, and the next event is accepted."""
    clock = replay(build_log("1000 anna offered roll-dice"))
    late = apply_event(clock, build_event("clock.heartbeat", at=500_000, player="anna"))
    assert isinstance(late, Rejection)
    assert late.code == "clock-player-out"

    after = apply_event(clock, build_event("clock.decided", at=2_000, player="anna"))
    assert not isinstance(after, Rejection)
    assert (clock.now, after.now, after.players["anna"].main_ms) == (1_000, 2_000, 121_500)
