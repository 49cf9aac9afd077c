"""Pauses of a game clock: who has to answer, when a pause begins and ends, and that no timer runs in it."""

import pytest
from clock_logs import GRANTED, paused, player, refused, state, timers

YES = [  # players, who answers yes after anna has asked, whether that is enough
    ("anna ben", "", False), ("anna ben", "ben", True),
    ("anna ben cleo", "ben", False), ("anna ben cleo", "ben cleo", True),
    ("anna ben cleo dora emil", "ben", False),
    ("anna ben", "anna", False), ("anna ben cleo", "anna ben ben", False), ("anna ben", "anna ben", True),
    ("anna ben cleo dora emil", "dora emil", True),
]  # fmt: skip


@pytest.mark.parametrize(("players", "answers", "enough"), YES)
def test_pause_needs_enough_yes_answers(players, answers, enough):
    """A pause is granted when both of two players, or three of more, say yes."""
    said = "".join(f"\n200 {name} pause_answered yes" for name in answers.split())

    expected = (False, 200, None) if enough else (True, None, None)
    assert paused(f"100 anna pause_asked{said}", players=players) == expected


def test_question_is_denied_after_15_seconds():
    """A question that is still open after 15 seconds is denied."""
    asked = "100 anna pause_asked\n200 ben pause_answered yes"

    assert paused(asked, 15_099) == (True, None, None)
    assert paused(asked, 15_100) == (False, None, None)
    assert paused(f"{asked}\n15099 cleo pause_answered yes") == (False, 15_099, None)
    for at in (15_100, 15_101):
        line, code, message = refused(f"{asked}\n{at} cleo pause_answered yes")
        assert (line, code) == (4, "clock-no-question")
        assert message.endswith(f"at {at} (the last pause was denied at 15100: the time for answers was over)")


def test_one_no_denies_the_pause():
    """One no denies the pause."""
    assert paused("100 anna pause_asked\n200 ben pause_answered yes\n300 cleo pause_answered no") == (False, None, None)


@pytest.mark.parametrize("name", ["anna", "ben"])
def test_withdrawn_yes_denies_the_pause(name):
    """A yes that is withdrawn denies the pause."""
    text = f"100 anna pause_asked\n200 ben pause_answered yes\n300 {name} pause_answered no"

    assert paused(text) == (False, None, None)


@pytest.mark.parametrize("out", ["8000 dora player_left\n8000 cleo player_left", "100 anna heartbeat"])
def test_all_of_two_can_grant_pause(out):
    """With fewer than three players left in the game, the yes of all of them grants the pause."""
    left = "8000" in out
    text = f"{out}\n9000 anna pause_asked\n9001 ben pause_answered yes"

    assert paused(text) == ((False, 9_001, None) if left else (True, None, None))


def test_removal_can_grant_the_pause():
    """A removal that leaves only players who said yes grants the pause at that moment."""
    text = "0 cleo offered roll-dice\n110000 anna pause_asked\n110001 ben pause_answered yes"

    assert paused(text, 123_999, players="anna ben cleo") == (True, None, None)
    assert paused(text, 124_000, players="anna ben cleo") == (False, 124_000, None)


def test_yes_of_leaver_no_longer_counts():
    """The yes of a player who leaves no longer counts, and those who remain may then be enough."""
    text = "100 anna pause_asked\n200 ben pause_answered yes\n300 ben player_left\n400 cleo pause_answered yes"

    assert paused(text) == (True, None, None)
    assert paused(f"{text}\n500 dora player_left") == (False, 500, None)


def test_removal_at_the_deadline_denies():
    """A removal in the very millisecond in which the question ends leaves the pause denied."""
    text = "0 cleo offered roll-dice\n109000 anna pause_asked\n110001 ben pause_answered yes"

    assert paused(text, 124_000, players="anna ben cleo") == (False, None, None)


def test_granted_pause_begins_when_turn_ends():
    """A granted pause begins when the turn ends, and then no timer runs."""
    two = {"players": "anna ben"}
    assert paused(GRANTED, 9_000, **two) == (False, 2_500, None)
    assert timers(GRANTED, 9_000, **two) == (120_000, 4_000, "auxiliary")

    ended = f"{GRANTED}\n9000 turn_ended"
    assert paused(ended, 500_000, **two) == (False, None, 9_000)
    assert timers(ended, 500_000, **two) == (120_000, 4_000, None)
    assert player(ended, 500_000, **two)["disconnected_at"] is None


def test_turn_end_without_pause_does_nothing():
    """The end of a turn does nothing if no pause is granted."""
    assert paused("1000 anna pause_asked\n1500 turn_ended", 2_000) == (True, None, None)
    assert timers("1000 anna offered roll-dice\n1500 turn_ended", 2_000) == (120_000, 3_000, "auxiliary")


def test_timers_resume_where_they_stood():
    """After a pause, every timer goes on where it stood."""
    text = f"{GRANTED}\n9000 turn_ended\n100000 anna resume_asked\n100001 ben resume_asked"
    two = {"players": "anna ben"}

    assert timers(text, 104_000, **two) == (120_000, 1, "auxiliary")
    assert timers(text, 104_002, **two) == (119_999, 0, "main")
    # silent for 9000 - 2000 ms before the pause; ben asked at its end, anna a millisecond before it
    assert [player(text, at, **two)["disconnected_at"] for at in (140_000, 140_001)] == [None, 140_001]
    silent = f"{GRANTED}\n9000 turn_ended\n609000 ben resume_asked"
    assert [player(silent, at, **two)["disconnected_at"] for at in (642_499, 642_500)] == [None, 642_500]


def test_old_resume_requests_do_not_count():
    """Requests to resume from a first pause do not count for a second one."""
    first = f"{GRANTED}\n9000 turn_ended\n9001 anna resume_asked\n9002 ben resume_asked"
    second = f"{first}\n9003 anna pause_asked\n9004 ben pause_answered yes\n9005 turn_ended"

    assert paused(f"{second}\n9006 ben resume_asked", players="anna ben") == (False, None, 9_005)


RESUMES = [
    ("9001 anna resume_asked", 9_000),
    ("9001 anna resume_asked\n9002 ben resume_asked", None),
    ("9001 anna resume_asked\n9002 anna resume_asked", 9_000),
    ("9001 anna resume_asked\n9002 ben player_left", None),
    ("608999 anna resume_asked", 9_000),
    ("608999 anna resume_asked\n700000 ben heartbeat", 9_000),
    ("609000 anna resume_asked", None),
    ("609001 anna resume_asked", None),
    ("608999 anna resume_asked\n609000 anna resume_asked", None),
]


@pytest.mark.parametrize(("asked", "since"), RESUMES)
def test_pause_ends_when_asked_to(asked, since):
    """A pause ends when all players ask to resume, or when one asks after the pause time."""
    assert paused(f"{GRANTED}\n9000 turn_ended\n{asked}", players="anna ben")[2] == since


def test_leaver_no_longer_asks_to_resume():
    """Somebody who has asked to resume and then left is not among those who ask."""
    text = (
        "1000 anna pause_asked\n1001 ben pause_answered yes\n1002 cleo pause_answered yes\n2000 turn_ended\n"
        "2001 anna resume_asked\n2002 ben resume_asked"
    )
    assert state(text)["resume_asked"] == ["anna", "ben"]
    left = state(f"{text}\n2003 anna player_left")
    assert (left["paused_at"], left["resume_asked"]) == (2_000, ["ben"])


def test_pause_ends_without_players():
    """A pause ends when the last player leaves, although nobody has asked to resume."""
    text = f"{GRANTED}\n9000 turn_ended\n9001 anna player_left"
    assert paused(text, players="anna ben") == (False, None, 9_000)
    assert paused(f"{text}\n9002 ben player_left", players="anna ben") == (False, None, None)
