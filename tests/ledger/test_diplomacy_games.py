"""Games of kind diplomacy: refusals with their messages, and places."""

import random
from collections import Counter
from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.events.canonical import dump
from ratings_ledger.ledger.events.game_types import column_values, places
from ratings_ledger.ledger.events.types import read_event, to_canonical_content

POWERS = ("Austria", "Germany", "Italy", "Turkey", "England", "Russia", "France")
START_CENTRES = {"Austria": 3, "England": 3, "France": 3, "Germany": 3, "Italy": 3, "Russia": 4, "Turkey": 3}


def build_seat(power: str, **members: Any) -> dict[str, Any]:
    """Return a participant whose id is the name of their power."""
    return {"player": power.lower(), "power": power, **members}


SEVEN = [build_seat(power) for power in POWERS]


def build_game_event(participants: list[dict[str, Any]] = SEVEN, **members: Any) -> dict[str, Any]:
    """Return a game of kind diplomacy, by default with the starting centres at the end of 1901."""
    data = {
        "game_id": "g",
        "game": "diplomacy",
        "kind": "diplomacy",
        "centres": {"1901": START_CENTRES},
        "participants": participants,
        **members,
    }
    return {"type": "game.recorded", "occurred_at": "2010-02-01T20:00:00Z", "data": data}


def read_game(participants: list[dict[str, Any]] = SEVEN, **members: Any) -> dict[str, Any]:
    """Return the normalised data of a game, or raise `Refused`."""
    return read_event(build_game_event(participants, **members))[1]


def catch_refusal(participants: list[dict[str, Any]] = SEVEN, **members: Any) -> tuple[str, str]:
    """Return the code and the message of the refusal of a game."""
    with pytest.raises(Refused) as caught:
        read_game(participants, **members)
    return caught.value.code, caught.value.message


def parse_years(*texts: str) -> dict[str, dict[str, int]]:
    """Return centres from a text per year, such as "5 4 4 5 4 6 5": the powers in the order of `POWERS`."""
    return {
        str(1901 + index): dict(zip(POWERS, map(int, text.split()), strict=True)) for index, text in enumerate(texts)
    }


def test_game_is_kept_with_ascii_keys() -> None:
    """A game is kept as given, and its keys are ASCII."""
    game = read_game(centres={"1901": START_CENTRES, "1902": {"Turkey": 0, "Russia": 6}}, league="L1")

    assert game["centres"] == {"1901": START_CENTRES, "1902": {"Turkey": 0, "Russia": 6}}
    assert dump(game).isascii()


def test_zero_centres_may_be_left_out() -> None:
    """A game means the same whether a power without centres is spelled out or left out."""
    short = read_game(centres={"1901": START_CENTRES, "1902": {"Russia": 6}})
    full = read_game(centres={"1901": START_CENTRES, "1902": {"Russia": 6, "Turkey": 0, "France": 0}})
    different = read_game(centres={"1901": START_CENTRES, "1902": {"Russia": 6, "Turkey": 1}})

    assert to_canonical_content("game.recorded", 0, short) == to_canonical_content("game.recorded", 0, full)
    assert to_canonical_content("game.recorded", 0, short) != to_canonical_content("game.recorded", 0, different)
    assert (places(short), column_values(short)) == (places(full), column_values(full))


POWER_CASES = {
    "six powers": (SEVEN[:6], "power-missing", "no seat plays France; a game needs all seven powers"),
    "five powers": (SEVEN[2:], "power-missing", "no seat plays Austria, Germany;"),
    "an eighth player": (
        [*SEVEN, {"player": "zoe", "power": "Italy"}],
        "power-twice",
        "'italy' and 'zoe' both play Italy",
    ),
    "one power twice, another not at all": (
        [*SEVEN[:6], build_seat("Italy", player="zoe")],
        "power-twice",
        "both play Italy",
    ),
    "no power": ([*SEVEN[:6], {"player": "france"}], "missing-member", "'france' has no power"),
    "an unknown power": ([*SEVEN[:6], build_seat("Utopia")], "bad-value", "participants.7.power"),
    "a power in lower case": ([*SEVEN[:6], build_seat("france")], "bad-value", "participants.7.power"),
    "a power that is a number": ([*SEVEN[:6], {"player": "x", "power": 7}], "bad-value", "participants.7.power"),
    "a place": ([*SEVEN[:6], build_seat("France", place=1)], "unknown-member", "participants.7.place"),
    "the same player twice": (
        [*SEVEN[:6], build_seat("France", player="italy")],
        "player-twice",
        "'italy' takes part twice",
    ),
}


@pytest.mark.parametrize(("participants", "code", "words"), POWER_CASES.values(), ids=POWER_CASES)
def test_all_seven_powers_are_played_once(participants: list[dict[str, Any]], code: str, words: str) -> None:
    """A game is refused unless each of the seven powers is played exactly once."""
    rejection = catch_refusal(participants)

    assert rejection[0] == code
    assert words in rejection[1]


CENTRES = {
    "one year": ({"1901": START_CENTRES}, None, ""),
    "an empty year": ({"1901": {}}, None, ""),
    "years out of order": ({"1902": START_CENTRES, "1901": START_CENTRES}, None, ""),
    "all 34 centres": ({"1901": {"Austria": 17, "France": 17}}, None, ""),
    "no year": ({}, "years-not-gapless", "1901 is missing; give every year from 1901 without gaps"),
    "no centres": (None, "wrong-type", "centres"),
    "a later start": ({"1902": START_CENTRES}, "years-not-gapless", "1901 is missing, but there is '1902'"),
    "a gap": (
        {"1901": START_CENTRES, "1903": START_CENTRES},
        "years-not-gapless",
        "1902 is missing, but there is '1903'",
    ),
    "the year before": (
        {"1900": START_CENTRES, "1901": START_CENTRES},
        "years-not-gapless",
        "'1900' is not a year from 1901 on",
    ),
    "a year that is not a number": (
        {"1901": START_CENTRES, "spring": START_CENTRES},
        "years-not-gapless",
        "'spring' is not a year from 1901 on",
    ),
    "digits of another script": ({"١٩٠١": START_CENTRES}, "years-not-gapless", "is not a year from 1901 on"),
    "a space": ({"1901 ": START_CENTRES}, "years-not-gapless", "'1901 ' is not a year from 1901 on"),
    "an unknown power": ({"1901": {"Utopia": 3}}, "bad-value", "centres.1901.Utopia"),
    "a number for a year": ({"1901": 34}, "wrong-type", "centres.1901"),
    "35 centres of one power": ({"1901": {"France": 35}}, "out-of-range", "centres.1901.France"),
    "a negative number": ({"1901": {"France": -1}}, "out-of-range", "centres.1901.France"),
    "a text": ({"1901": {"France": "3"}}, "not-an-integer", "centres.1901.France"),
    "true": ({"1901": {"France": True}}, "not-an-integer", "centres.1901.France"),
    "null": ({"1901": {"France": None}}, "not-an-integer", "centres.1901.France"),
    "35 centres in total": (
        {"1901": START_CENTRES, "1902": {"Austria": 18, "France": 17}},
        "too-many-centres",
        "the powers hold 35 centres at the end of 1902, but the map has only 34",
    ),
}


@pytest.mark.parametrize(("centres", "code", "words"), CENTRES.values(), ids=CENTRES)
def test_years_and_centres_must_be_valid(centres: Any, code: str | None, words: str) -> None:
    """Years must run from 1901 without gaps, each with at most 34 centres."""
    if code is None:
        assert read_game(centres=centres)["centres"] == centres
    else:
        rejection = catch_refusal(centres=centres)
        assert rejection[0] == code
        assert words in rejection[1]


def test_game_without_centres_is_refused() -> None:
    """A game without centres is refused."""
    event = build_game_event()
    del event["data"]["centres"]
    with pytest.raises(Refused) as caught:
        read_event(event)

    assert caught.value.code == "missing-member"


# places in the order of POWERS, which breaks the last ties
PLACES = {
    "by the last year": (["5 5 5 5 5 5 4", "1 2 3 4 5 6 7"], [7, 6, 5, 4, 3, 2, 1]),
    "two equal, one year earlier": (["5 4 4 5 4 5 4", "9 9 5 4 3 2 1"], [1, 2, 3, 4, 5, 6, 7]),
    "two equal, the second had more": (["4 5 4 5 4 5 4", "9 9 5 4 3 2 1"], [2, 1, 3, 4, 5, 6, 7]),
    "two equal, two years earlier": (["4 5 4 5 4 5 4", "8 8 5 4 3 2 1", "9 9 5 4 3 2 1"], [2, 1, 3, 4, 5, 6, 7]),
    "the latest difference decides": (["6 1 5 5 5 5 5", "7 8 5 5 4 3 2", "9 9 5 4 3 2 1"], [2, 1, 3, 4, 5, 6, 7]),
    "equal in every year": (["3 3 3 3 3 3 3"], [1, 2, 3, 4, 5, 6, 7]),
    "all equal, many years": (["3 3 3 3 3 3 3", "4 4 4 4 4 4 4"], [1, 2, 3, 4, 5, 6, 7]),
    "no centres at all": (["0 0 0 0 0 0 0"], [1, 2, 3, 4, 5, 6, 7]),
    "eliminated powers by earlier years": (["5 5 5 5 5 4 5", "17 17 0 0 0 0 0"], [1, 2, 3, 4, 5, 7, 6]),
}


@pytest.mark.parametrize(("texts", "expected"), PLACES.values(), ids=PLACES)
def test_later_years_decide_places_first(texts: list[str], expected: list[int]) -> None:
    """Later years decide places before earlier ones, and the order of powers decides last."""
    assert places(read_game(centres=parse_years(*texts))) == expected


def test_previous_year_breaks_a_tie() -> None:
    """With 9 centres each in 1907, a player who had 9 in 1906 wins against one who had 8.

    This is the example of the league's rules: B is second, although B's power is first in the order of powers.
    """
    texts = ["5 5 5 5 5 5 4"] * 5 + ["8 9 5 4 4 2 2", "9 9 5 4 4 2 1"]

    assert places(read_game(centres=parse_years(*texts)))[:2] == [2, 1]


def test_italy_precedes_france_when_even() -> None:
    """Italy is placed before France if both have had the same centres since 1901."""
    game_places = places(read_game(centres=parse_years("4 4 7 4 4 4 7", "3 3 9 3 3 3 9")))

    assert game_places[POWERS.index("Italy")] == 1
    assert game_places[POWERS.index("France")] == 2


@pytest.mark.parametrize("order", [[6, 5, 4, 3, 2, 1, 0], [2, 0, 6, 1, 5, 3, 4]])
def test_order_of_participants_is_irrelevant(order: list[int]) -> None:
    """The order of the participants does not change places."""
    expected = places(read_game(centres=parse_years("3 3 9 3 3 3 9")))

    assert places(read_game([SEVEN[index] for index in order], centres=parse_years("3 3 9 3 3 3 9"))) == [
        expected[index] for index in order
    ]


LEAVER = {"player": "tom", "status": "abandoned"}
SUBSTITUTE = build_seat("Turkey", status="substitute", replaces="tom")
OTHER_SEATS = [player for player in SEVEN if player["power"] != "Turkey"]


@pytest.mark.parametrize("leaver_members", [{}, {"power": "Turkey"}])
@pytest.mark.parametrize("swapped", [False, True])
def test_substitute_shares_place_and_centres(leaver_members: dict[str, Any], swapped: bool) -> None:
    """A leaver and their substitute both have the place and the centres of their power."""
    pair = [{**LEAVER, **leaver_members}, SUBSTITUTE]
    game = read_game([*OTHER_SEATS, *(pair[::-1] if swapped else pair)], centres=parse_years("5 4 4 9 4 4 4"))

    assert places(game)[-2:] == [1, 1]
    assert sorted(places(game)) == [1, 1, 2, 3, 4, 5, 6, 7]
    assert column_values(game)["centres"][-2:] == [9, 9]


def test_leaver_of_another_power_is_refused() -> None:
    """A leaver whose power differs from the substitute's is refused, as is a seat without a power."""
    assert catch_refusal([*OTHER_SEATS, {**LEAVER, "power": "Italy"}, SUBSTITUTE])[0] == "seat-disagrees"
    code, message = catch_refusal([*OTHER_SEATS, LEAVER, {**SUBSTITUTE, "power": None}])
    assert (code, message.partition(";")[0]) == ("missing-member", "'tom' has no power")


def test_columns_are_last_years_centres() -> None:
    """The columns of a game are the last year's centres, by player and by place."""
    columns = column_values(
        read_game(centres={**parse_years("5 5 5 5 5 5 4"), "1902": {"Russia": 12, "Italy": 9, "Turkey": 9}})
    )

    assert columns["centres"] == [0, 0, 9, 9, 0, 12, 0]
    assert [columns[f"centres_{place}"] for place in range(1, 8)] == [[count] * 7 for count in (12, 9, 9, 0, 0, 0, 0)]


def test_random_histories_give_a_strict_order() -> None:
    """Random games place all players in a strict order, each behind the players with a better result."""
    chance, case_counts = random.Random(22), Counter[str]()
    for _ in range(2_000):
        centres_max = chance.choice([1, 2, 4])
        texts = [" ".join(str(chance.randint(0, centres_max)) for _ in POWERS) for _ in range(chance.randint(1, 4))]
        centres = parse_years(*texts)
        game_places = places(read_game(centres=centres))
        assert sorted(game_places) == [1, 2, 3, 4, 5, 6, 7]
        place_by_power = dict(zip(POWERS, game_places, strict=True))
        for power in POWERS:
            for earlier_power in POWERS[: POWERS.index(power)]:
                differing = [year for year in sorted(centres) if centres[year][power] != centres[year][earlier_power]]
                if not differing:
                    assert place_by_power[earlier_power] < place_by_power[power]
                    case_counts["by the power"] += 1
                else:
                    better_power = (
                        power
                        if centres[differing[-1]][power] > centres[differing[-1]][earlier_power]
                        else earlier_power
                    )
                    assert (place_by_power[power] < place_by_power[earlier_power]) == (better_power == power)
                    case_counts["by the last year" if differing[-1] == max(centres) else "by an earlier year"] += 1
    assert min(case_counts.values()) > 1_000, case_counts
