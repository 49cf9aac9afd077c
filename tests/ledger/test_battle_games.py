"""Games of kind battle: refusals with their messages, and the columns for rules."""

import random
from collections import Counter
from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.events.canonical import dump
from ratings_ledger.ledger.events.game_types import GAME_TYPES, column_values, places
from ratings_ledger.ledger.events.types import read_event, to_canonical_content


def build_fighter(text: str, **members: Any) -> dict[str, Any]:
    """Return a participant: `build_fighter("anna red 2 1 3 60")` has 2 units, lost 1, destroyed 3 and scored 60."""
    player, side, *counts = text.split()
    statistics = zip(("units", "units_lost", "kills", "score"), map(int, counts), strict=False)
    return {"player": player, "side": side, **dict(statistics), **members}


def build_game_event(*participants: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a game of kind battle with these participants."""
    data = {"game_id": "g", "game": "blue-max", "kind": "battle", "participants": list(participants), **members}
    return {"type": "game.recorded", "occurred_at": "2010-02-01T20:00:00Z", "data": data}


def read_game(*participants: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return the normalised data of a game, or raise `Refused`."""
    return read_event(build_game_event(*participants, **members))[1]


def catch_refusal(*participants: dict[str, Any], **members: Any) -> tuple[str, str]:
    """Return the code and the message of the refusal of a game."""
    with pytest.raises(Refused) as caught:
        read_game(*participants, **members)
    return caught.value.code, caught.value.message


ANNA, BEN, CLEO = build_fighter("anna red 1 0 1 60"), build_fighter("ben blue 1 1 0 20"), build_fighter("cleo blue")


def test_battle_is_kept_as_given() -> None:
    """A battle with all optional members is kept as given."""
    game = read_game(ANNA, {**BEN, "status": "surrendered", "seat": 2}, CLEO, ended="draw", league="L1")

    assert game["participants"] == [
        {"player": "anna", "side": "red", "units": 1, "units_lost": 0, "kills": 1, "score": 60},
        {
            "player": "ben",
            "side": "blue",
            "units": 1,
            "units_lost": 1,
            "kills": 0,
            "score": 20,
            "status": "surrendered",
            "seat": 2,
        },
        {"player": "cleo", "side": "blue"},
    ]
    assert (game["ended"], game["league"]) == ("draw", "L1")


def test_spelled_out_defaults_mean_the_same() -> None:
    """A battle means the same whether its defaults are spelled out or left out."""
    short = read_game(ANNA, BEN, CLEO)
    full = read_game(
        ANNA, {**BEN, "status": "finished"}, build_fighter("cleo blue 1 0 0 0"), ended="natural", rated=True
    )

    assert to_canonical_content("game.recorded", 0, short) == to_canonical_content("game.recorded", 0, full)


def test_battles_have_no_places() -> None:
    """The participants of a battle have no places."""
    assert places(read_game(ANNA, BEN, CLEO)) == [0, 0, 0]


BAD_PARTICIPANTS = {
    "no side": ([ANNA, {"player": "ben"}], "missing-member", "'ben' has no side"),
    "a side that is null": ([ANNA, {**BEN, "side": None}], "missing-member", "'ben' has no side"),
    "a leaver without side and without substitute": (
        [ANNA, BEN, {"player": "cleo", "status": "abandoned"}],
        "missing-member",
        "'cleo' has no side",
    ),
    "a side as number": ([ANNA, {**BEN, "side": 2}], "wrong-type", "participants.2.side"),
    "a side with a slash": ([ANNA, {**BEN, "side": "a/b"}], "bad-identifier", "participants.2.side"),
    "an empty side": ([ANNA, {**BEN, "side": ""}], "bad-identifier", "participants.2.side"),
    "units as text": ([ANNA, {**BEN, "units": "1"}], "not-an-integer", "participants.2.units"),
    "negative units": ([ANNA, {**BEN, "units": -1}], "out-of-range", "participants.2.units"),
    "10,001 units": ([ANNA, {**BEN, "units": 10_001}], "out-of-range", "participants.2.units"),
    "a negative loss": ([ANNA, {**BEN, "units_lost": -1}], "out-of-range", "participants.2.units_lost"),
    "a negative kill": ([ANNA, {**BEN, "kills": -1}], "out-of-range", "participants.2.kills"),
    "half a kill": ([ANNA, {**BEN, "kills": "0.5"}], "not-an-integer", "participants.2.kills"),
    "a score below zero": ([ANNA, {**BEN, "score": -1}], "out-of-range", "participants.2.score"),
    "a fractional score": ([ANNA, {**BEN, "score": "7.5"}], "not-an-integer", "participants.2.score"),
    "a score beyond all bounds": ([ANNA, {**BEN, "score": 1_000_001}], "out-of-range", "participants.2.score"),
    "a place": ([{**ANNA, "place": 1}, BEN], "unknown-member", "participants.1.place"),
    "the same player twice": ([ANNA, BEN, {**CLEO, "player": "ben"}], "player-twice", "'ben' takes part twice"),
    "one player": ([ANNA], "too-few-participants", "this game has 1 seat; it needs at least two"),
}


@pytest.mark.parametrize(("participants", "code", "words"), BAD_PARTICIPANTS.values(), ids=BAD_PARTICIPANTS)
def test_bad_participants_are_refused(participants: list[dict[str, Any]], code: str, words: str) -> None:
    """Participants that break a rule are refused with the right code and message."""
    rejection = catch_refusal(*participants)

    assert rejection[0] == code
    assert words in rejection[1]


@pytest.mark.parametrize("ended", ["agreed", "", True])
def test_unknown_end_is_refused(ended: object) -> None:
    """An end that is neither natural nor a draw is refused."""
    assert catch_refusal(ANNA, BEN, ended=ended)[0] == "bad-value"


SIDES = {
    "one side": (["anna red", "ben red"], "battle-sides", "this battle has 1 side (red); it needs exactly two"),
    "three sides": (["anna red", "ben blue", "cleo green"], "battle-sides", "has 3 sides (blue, green, red)"),
    "another case is another side": (["anna red", "ben Red", "cleo blue"], "battle-sides", "has 3 sides"),
    "a side without units": (
        ["anna red 1", "ben blue 0", "cleo blue 0"],
        "battle-sides",
        "the side 'blue' has no units",
    ),
    "a player without units": (["anna red 1", "ben blue 0", "cleo blue 1"], None, ""),
    "one against five": (["anna red 1", "b blue", "c blue", "d blue", "e blue", "f blue"], None, ""),
}


@pytest.mark.parametrize(("texts", "code", "words"), SIDES.values(), ids=SIDES)
def test_battle_needs_two_sides_with_units(texts: list[str], code: str | None, words: str) -> None:
    """A battle needs exactly two sides, both with units."""
    if code is None:
        assert read_game(*map(build_fighter, texts))
    else:
        rejection = catch_refusal(*map(build_fighter, texts))
        assert rejection[0] == code
        assert words in rejection[1]


def test_composed_and_decomposed_sides_match() -> None:
    """Composed and decomposed spellings of a side are one side."""
    assert (
        read_game(build_fighter("anna bl\u00e5"), build_fighter("ben bla\u030a"), build_fighter("cleo red"))[
            "participants"
        ][1]["side"]
        == "blå"
    )


LOSSES = {
    "all units lost": (["anna red 2 2", "ben blue"], None),
    "more than all": (["anna red 2 3", "ben blue"], "units-lost-exceed"),
    "the one default unit lost": (["anna red 1 1", "ben blue"], None),
    "two lost of one default unit": (["anna red 1 2", "ben blue"], "units-lost-exceed"),
    "one lost of no units": (["anna red 0 1", "ben red", "cleo blue"], "units-lost-exceed"),
    "everything lost on both sides": (["anna red 2 2", "ben blue 3 3"], None),
    "a kill without a loss": (["anna red 1 0 1", "ben blue 1 0"], "kills-without-losses"),
    "a kill where only the killer's side lost a unit": (
        ["anna red 1 0 1", "ben red 1 1", "cleo blue"],
        "kills-without-losses",
    ),
    "a loss without a kill": (["anna red 1 0 0", "ben blue 1 1"], None),
    "a kill shared by three": (["anna red 1 0 1", "b red 1 0 1", "c red 1 0 1", "d blue 2 1"], None),
    "they destroyed each other": (["anna red 1 1 1", "ben blue 1 1 1"], None),
}


@pytest.mark.parametrize(("texts", "code"), LOSSES.values(), ids=LOSSES)
def test_losses_and_kills_must_be_possible(texts: list[str], code: str | None) -> None:
    """Losses and kills are refused unless they are possible."""
    if code is None:
        assert read_game(*map(build_fighter, texts))
    else:
        assert catch_refusal(*map(build_fighter, texts))[0] == code


def test_refusal_names_player_and_numbers() -> None:
    """A refusal of impossible losses or kills names the player and the numbers."""
    assert catch_refusal(build_fighter("anna red 2 3"), BEN)[1].startswith("'anna' lost 3 units, but had only 2;")
    refusal = catch_refusal(ANNA, build_fighter("ben blue 1 0"))
    assert refusal[1].startswith("'anna' has 1 kill, but the enemy lost no units;")


LEAVER = {"player": "cleo", "status": "abandoned"}
SUBSTITUTE = build_fighter("dora blue 3 1 0 10", status="substitute", replaces="cleo")
LEAVER_MEMBERS = {
    "nothing": ({}, None),
    "the side": ({"side": "blue"}, None),
    "the units": ({"units": 3}, None),
    "the default units": ({"units": 1}, None),
    "the leaver's own losses and score": ({"units_lost": 2, "score": 99}, None),
    "another side": ({"side": "red"}, "seat-disagrees"),
    "other units": ({"units": 2}, "seat-disagrees"),
    "another seat": ({"seat": 4}, "seat-disagrees"),
    "more losses of both than the seat has units": ({"units_lost": 3}, "units-lost-exceed"),
}


@pytest.mark.parametrize(("leaver_members", "code"), LEAVER_MEMBERS.values(), ids=LEAVER_MEMBERS)
@pytest.mark.parametrize("swapped", [False, True])
def test_substitute_shares_side_and_units(leaver_members: dict[str, Any], code: str | None, swapped: bool) -> None:
    """A leaver and their substitute have the same side and the same number of units."""
    pair = [{**LEAVER, **leaver_members}, SUBSTITUTE]
    participants = [ANNA, BEN, *(pair[::-1] if swapped else pair)]
    if code is None:
        assert read_game(*participants)
    else:
        assert catch_refusal(*participants)[0] == code


def test_refusal_states_units_left_on_seat() -> None:
    """If a leaver's losses leave the substitute too few units, the refusal states how many are left."""
    code, message = catch_refusal(ANNA, BEN, {**LEAVER, "units_lost": 3}, SUBSTITUTE)

    assert code == "units-lost-exceed"
    assert message.startswith("'dora' lost 1 unit, but had only 0 left on the seat;")


def compute_columns(*texts: str | dict[str, Any], **members: Any) -> dict[str, list[int]]:
    """Return the columns of a battle; a participant is a dict or a text for `build_fighter`."""
    return {
        name: list(values)
        for name, values in column_values(
            read_game(*(build_fighter(text) if isinstance(text, str) else text for text in texts), **members)
        ).items()
    }


def test_columns_cover_own_side_and_enemy() -> None:
    """The columns of a battle have each player's own values, their side's and the enemy's."""
    columns = compute_columns(
        "anna red 2 1 3 60", "ben blue 1 1 0 20", "cleo red 3 0 0 7", "dora blue 2 1 1 25", "emil blue"
    )

    assert columns == {
        "side": [1, 0, 1, 0, 0],
        "units": [2, 1, 3, 2, 1],
        "units_lost": [1, 1, 0, 1, 0],
        "kills": [3, 0, 0, 1, 0],
        "game_points": [60, 20, 7, 25, 0],
        "side_units": [5, 4, 5, 4, 4],
        "side_units_lost": [1, 2, 1, 2, 2],
        "side_points": [67, 45, 67, 45, 45],
        "enemy_units": [4, 5, 4, 5, 5],
        "enemy_units_lost": [2, 1, 2, 1, 1],
        "enemy_points": [45, 67, 45, 67, 67],
        "side_seats": [2, 3, 2, 3, 3],
        "agreed_draw": [0, 0, 0, 0, 0],
    }


def test_agreed_draw_is_marked_for_all_players() -> None:
    """A battle that ended in a draw is marked as one for all its players."""
    columns = compute_columns("anna red 1 0 0 5", "ben blue 1 0 0 7", "cleo blue 1 0 0 7", ended="draw")

    assert columns["agreed_draw"] == [1, 1, 1]


def test_units_left_on_seat_are_shared() -> None:
    """On a seat with a substitute, the units left at the end count for both players."""
    columns = compute_columns("anna red 1 0 2 60", {**LEAVER, "units_lost": 1, "score": 30}, SUBSTITUTE)

    assert columns["side"] == [1, 0, 0]
    assert columns["units"] == [1, 2, 2]
    assert columns["units_lost"] == [0, 1, 1]
    assert columns["game_points"] == [60, 30, 10]
    assert (columns["side_units"], columns["side_units_lost"], columns["side_points"]) == (
        [1, 3, 3],
        [0, 2, 2],
        [60, 40, 40],
    )
    assert columns["side_seats"] == [1, 1, 1]


def test_kinds_share_no_column_names() -> None:
    """No two kinds of game have a column of the same name."""
    names = [column for kind in GAME_TYPES.values() for column in kind.columns]

    assert len(set(names)) == len(names)


def test_random_battles_match_a_naive_count() -> None:
    """The columns of random battles match a naive count."""
    chance, case_counts = random.Random(21), Counter[str]()
    for _ in range(2_000):
        texts = [
            f"p{number} {chance.choice('ab')} {units} {chance.randint(0, units)} 0 {chance.choice([0, 5, 5, 9])}"
            for number in range(chance.randint(2, 8))
            for units in [chance.randint(0, 3)]
        ]
        fighters = [build_fighter(text) for text in texts]
        by_side = {side: [p for p in fighters if p["side"] == side] for side in "ab"}
        if not all(sum(p["units"] for p in side_fighters) for side_fighters in by_side.values()):
            case_counts["no battle"] += 1
            continue
        columns = compute_columns(*fighters)
        for index, fighter in enumerate(fighters):
            enemies = by_side["b" if fighter["side"] == "a" else "a"]
            assert columns["side"][index] == "ab".index(fighter["side"])
            assert columns["side_units"][index] == sum(p["units"] for p in by_side[fighter["side"]])
            assert columns["enemy_units_lost"][index] == sum(p["units_lost"] for p in enemies)
            assert columns["enemy_points"][index] == sum(p["score"] for p in enemies)
            case_counts["alone"] += len(by_side[fighter["side"]]) == 1
            case_counts["with mates"] += len(by_side[fighter["side"]]) > 1
    assert min(case_counts.values()) > 100, case_counts


def test_sums_of_points_fit_32_bits() -> None:
    """The points of all players that fit in a record sum to less than 2^31.

    The columns of ladders have 32 bits. The shortest ids have two letters, because there are too few ids of one.
    """
    shortest = dump({"player": "aa", "score": 1_000_000, "side": "a"})

    assert 65_535 // len(f"{shortest},") * 1_000_000 < 2**31
