"""Pauses of a game clock: whose answers are needed, when a pause begins and ends, and that no timer runs in it."""

import pytest
from clock_logs import GRANTED_PAUSE, describe_player, describe_state, find_refusal, read_pause, read_timers

YES_ANSWERS = [  # (players, players who say yes after anna asked, whether that is enough)
    ("anna ben", "", False),
    ("anna ben", "ben", True),
    ("anna ben cleo", "ben", False),
    ("anna ben cleo", "ben cleo", True),
    ("anna ben cleo dora emil", "ben", False),
    ("anna ben", "anna", False),
    ("anna ben cleo", "anna ben ben", False),
    ("anna ben", "anna ben", True),
    ("anna ben cleo dora emil", "dora emil", True),
]


@pytest.mark.parametrize(("players", "answers", "enough"), YES_ANSWERS)
def test_pause_needs_enough_yes_answers(players, answers, enough):
    """A pause is granted if both of two players, or three of more players, say yes."""
    answer_lines = "".join(f"\n200 {name} pause_answered yes" for name in answers.split())

    expected = (False, 200, None) if enough else (True, None, None)
    assert read_pause(f"100 anna pause_asked{answer_lines}", players=players) == expected


def test_request_is_denied_after_15_seconds():
    """A request that is still open after 15 seconds is denied."""
    request = "100 anna pause_asked\n200 ben pause_answered yes"

    assert read_pause(request, 15_099) == (True, None, None)
    assert read_pause(request, 15_100) == (False, None, None)
    assert read_pause(f"{request}\n15099 cleo pause_answered yes") == (False, 15_099, None)
    for at in (15_100, 15_101):
        line, code, message = find_refusal(f"{request}\n{at} cleo pause_answered yes")
        assert (line, code) == (4, "clock-no-question")
        reason = "the last pause was denied at 15100: the time for answers was over"
        assert message.endswith(f"at {at} ({reason}); record clock.pause_asked first")


def test_one_no_denies_the_pause():
    """A single no denies the pause."""
    assert read_pause("100 anna pause_asked\n200 ben pause_answered yes\n300 cleo pause_answered no") == (
        False,
        None,
        None,
    )


@pytest.mark.parametrize("name", ["anna", "ben"])
def test_withdrawn_yes_denies_the_pause(name):
    """A yes that is followed by a no denies the pause."""
    text = f"100 anna pause_asked\n200 ben pause_answered yes\n300 {name} pause_answered no"

    assert read_pause(text) == (False, None, None)


@pytest.mark.parametrize("events_before", ["8000 dora player_left\n8000 cleo player_left", "100 anna heartbeat"])
def test_all_of_two_can_grant_pause(events_before):
    """With only two players left in the game, the yes of both grants the pause; among four, two are not enough."""
    two_players_left = "player_left" in events_before
    text = f"{events_before}\n9000 anna pause_asked\n9001 ben pause_answered yes"

    assert read_pause(text) == ((False, 9_001, None) if two_players_left else (True, None, None))


def test_removal_can_grant_the_pause():
    """A removal that leaves only players who said yes grants the pause at that instant."""
    text = "0 cleo offered roll-dice\n110000 anna pause_asked\n110001 ben pause_answered yes"

    assert read_pause(text, 123_999, players="anna ben cleo") == (True, None, None)
    assert read_pause(text, 124_000, players="anna ben cleo") == (False, 124_000, None)


def test_yes_of_leaver_no_longer_counts():
    """The yes of a player who leaves no longer counts, and the remaining players may then be enough."""
    text = "100 anna pause_asked\n200 ben pause_answered yes\n300 ben player_left\n400 cleo pause_answered yes"

    assert read_pause(text) == (True, None, None)
    assert read_pause(f"{text}\n500 dora player_left") == (False, 500, None)


def test_removal_at_the_deadline_denies():
    """A removal in the very millisecond when the request ends leaves the pause denied."""
    text = "0 cleo offered roll-dice\n109000 anna pause_asked\n110001 ben pause_answered yes"

    assert read_pause(text, 124_000, players="anna ben cleo") == (False, None, None)


def test_granted_pause_begins_when_turn_ends():
    """A granted pause begins at the end of the turn, and no timer runs in it."""
    two_players = {"players": "anna ben"}
    assert read_pause(GRANTED_PAUSE, 9_000, **two_players) == (False, 2_500, None)
    assert read_timers(GRANTED_PAUSE, 9_000, **two_players) == (120_000, 4_000, "auxiliary")

    ended = f"{GRANTED_PAUSE}\n9000 turn_ended"
    assert read_pause(ended, 500_000, **two_players) == (False, None, 9_000)
    assert read_timers(ended, 500_000, **two_players) == (120_000, 4_000, None)
    assert describe_player(ended, 500_000, **two_players)["disconnected_at"] is None


def test_turn_end_without_pause_does_nothing():
    """The end of a turn changes nothing if no pause is granted."""
    assert read_pause("1000 anna pause_asked\n1500 turn_ended", 2_000) == (True, None, None)
    assert read_timers("1000 anna offered roll-dice\n1500 turn_ended", 2_000) == (120_000, 3_000, "auxiliary")


def test_timers_continue_after_a_pause():
    """After a pause, every timer continues from its value before the pause."""
    text = f"{GRANTED_PAUSE}\n9000 turn_ended\n100000 anna resume_asked\n100001 ben resume_asked"
    two_players = {"players": "anna ben"}

    assert read_timers(text, 104_000, **two_players) == (120_000, 1, "auxiliary")
    assert read_timers(text, 104_002, **two_players) == (119_999, 0, "main")
    # anna asked to resume during the pause, so that her 40 s of silence begin at its end
    assert [describe_player(text, at, **two_players)["disconnected_at"] for at in (140_000, 140_001)] == [None, 140_001]
    # anna was silent for 9000 - 2500 ms before this pause and during it; ben ended it at 609000
    silent = f"{GRANTED_PAUSE}\n9000 turn_ended\n609000 ben resume_asked"
    assert [describe_player(silent, at, **two_players)["disconnected_at"] for at in (642_499, 642_500)] == [
        None,
        642_500,
    ]


def test_old_resume_requests_do_not_count():
    """Requests to resume from a first pause do not count for a second one."""
    first = f"{GRANTED_PAUSE}\n9000 turn_ended\n9001 anna resume_asked\n9002 ben resume_asked"
    second = f"{first}\n9003 anna pause_asked\n9004 ben pause_answered yes\n9005 turn_ended"

    assert read_pause(f"{second}\n9006 ben resume_asked", players="anna ben") == (False, None, 9_005)


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


@pytest.mark.parametrize(("requests", "since"), RESUMES)
def test_pause_ends_when_all_or_late_players_ask(requests, since):
    """A pause ends when all players ask to resume, or when one asks after the pause time."""
    assert read_pause(f"{GRANTED_PAUSE}\n9000 turn_ended\n{requests}", players="anna ben")[2] == since


def test_leaver_no_longer_asks_to_resume():
    """A player who asked to resume and then left is not among those who ask."""
    text = (
        "1000 anna pause_asked\n1001 ben pause_answered yes\n1002 cleo pause_answered yes\n2000 turn_ended\n"
        "2001 anna resume_asked\n2002 ben resume_asked"
    )
    assert describe_state(text)["resume_asked"] == ["anna", "ben"]
    state_after_leaving = describe_state(f"{text}\n2003 anna player_left")
    assert (state_after_leaving["paused_at"], state_after_leaving["resume_asked"]) == (2_000, ["ben"])


def test_pause_ends_without_players():
    """A pause ends when the last player leaves, without any request to resume."""
    text = f"{GRANTED_PAUSE}\n9000 turn_ended\n9001 anna player_left"
    assert read_pause(text, players="anna ben") == (False, None, 9_000)
    assert read_pause(f"{text}\n9002 ben player_left", players="anna ben") == (False, None, None)
