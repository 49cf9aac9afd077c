"""Games of kind b5: what is refused, with which words, and who is placed where."""

import random
from collections import Counter
from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.events.game_types import column_values, places
from ratings_ledger.ledger.events.types import meaning, read_event


def seat(text: str, vp: int | None = None, **members: Any) -> dict[str, Any]:
    """A participant from text: `seat("anna 20 15 major", 1)` has power 20, influence 15 and a victory point."""
    player, power, influence, victory = (*text.split(), None)[:4]
    found = {"player": player, "power": int(str(power)), "influence": int(str(influence)), "victory": victory}
    return {**found, **({} if vp is None else {"vp": vp}), **members}


def event(*participants: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A game of kind b5 with these participants."""
    data = {"game_id": "g", "game": "babylon5", "kind": "b5", "participants": list(participants), **members}
    return {"type": "game.recorded", "occurred_at": "2010-02-01T20:00:00Z", "data": data}


def read(*participants: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The normalised data of the game. Raises `Refused`."""
    return read_event(event(*participants, **members))[1]


def refusal(*participants: dict[str, Any], **members: Any) -> tuple[str, str]:
    """(code, message) of a game that must be refused."""
    with pytest.raises(Refused) as caught:
        read(*participants, **members)
    return caught.value.code, caught.value.message


ANNA, BEN, CLEO = seat("anna 20 20 standard", 0), seat("ben 15 12", 1), seat("cleo 9 9", 0)


def test_all_optional_members_are_kept() -> None:
    """A game with everything the director asks for is kept as it was given."""
    anna = {**ANNA, "race": "Human", "agenda": "Alliance of Races", "lid": "L-7", "seat": 2, "vp": 1}
    found = read(anna, BEN, CLEO, within_time=True, deck="sealed", referee="dora", tourney=True, season="2010-1")

    assert found["participants"][0] == anna
    assert found["participants"][2] == {"player": "cleo", "power": 9, "influence": 9, "vp": 0}  # null is absent
    told = {name: found[name] for name in ("within_time", "deck", "referee", "tourney", "season")}
    assert told == {"within_time": True, "deck": "sealed", "referee": "dora", "tourney": True, "season": "2010-1"}


def test_explicit_defaults_mean_the_same() -> None:
    """A game means the same whether its default values are spelled out or left out."""
    short = read(ANNA, BEN, seat("cleo 9 9"))
    full = read(ANNA, {**BEN, "victory": None}, CLEO, within_time=False, tourney=False, deck=None, referee=None)

    assert meaning("game.recorded", 0, short) == meaning("game.recorded", 0, full)


MEMBERS = {
    "no power": ([ANNA, {"player": "ben", "influence": 1, "vp": 1}, CLEO], "missing-member", "'ben' has no power"),
    "no influence": ([ANNA, {**BEN, "influence": None}, CLEO], "missing-member", "'ben' has no influence"),
    "a leaver without power and without substitute": (
        [ANNA, BEN, {"player": "cleo", "status": "abandoned"}], "missing-member", "'cleo' has no power",
    ),
    "power as text": ([ANNA, {**BEN, "power": "15"}, CLEO], "not-an-integer", "participants.2.power"),
    "power beyond all bounds": ([ANNA, {**BEN, "power": 10_001}, CLEO], "out-of-range", "participants.2.power"),
    "influence below all bounds": ([ANNA, {**BEN, "influence": -10_001}, CLEO], "out-of-range", "2.influence"),
    "a victory point less than none": ([ANNA, {**BEN, "vp": -1}, CLEO], "out-of-range", "participants.2.vp"),
    "1,001 victory points": ([ANNA, {**BEN, "vp": 1_001}, CLEO], "out-of-range", "participants.2.vp"),
    "an unknown victory": ([ANNA, {**BEN, "victory": "minor"}, CLEO], "bad-value", "participants.2.victory"),
    "a place": ([{**ANNA, "place": 1}, BEN, CLEO], "unknown-member", "participants.1.place"),
    "an agenda with a slash": ([{**ANNA, "agenda": "a/b"}, BEN, CLEO], "bad-identifier", "participants.1.agenda"),
    "the same player twice": ([ANNA, BEN, {**CLEO, "player": "ben"}], "player-twice", "'ben' takes part twice"),
    "two players": ([ANNA, BEN], "b5-too-few-players", "at least 3 players; this one has 2"),
    "three players on two seats": (
        [ANNA, {**BEN, "status": "removed"}, {**BEN, "player": "cleo", "status": "substitute", "replaces": "ben"}],
        "b5-too-few-players", "at least 3 players; this one has 2",
    ),
    "one player": ([ANNA], "too-few-participants", "at least two seats"),
}  # fmt: skip


@pytest.mark.parametrize(("participants", "code", "words"), MEMBERS.values(), ids=MEMBERS)
def test_bad_participants_are_refused(participants: list[dict[str, Any]], code: str, words: str) -> None:
    """Participants that break a rule are refused with the right code and message."""
    found = refusal(*participants)

    assert found[0] == code
    assert words in found[1]


@pytest.mark.parametrize("deck", ["open", "", 3])
def test_unknown_deck_is_refused(deck: object) -> None:
    """A deck that is neither sealed nor constructed is refused."""
    assert refusal(ANNA, BEN, CLEO, deck=deck)[0] == "bad-value"


@pytest.mark.parametrize("referee", ["ben", "be\u0301n"])
def test_referee_who_plays_is_refused(referee: str) -> None:
    """A game is refused if its referee also plays.

    This holds even if only one of the two IDs is written with a combining accent.
    """
    players = [ANNA, {**BEN, "player": "bén" if referee != "ben" else "ben"}, CLEO]

    assert refusal(*players, referee=referee)[0] == "referee-plays"


def table(players: int, victory: str | None, vps: dict[int, int]) -> list[dict[str, Any]]:
    """So many players, placed 1, 2, 3 ...; the first has this victory. Victory points by place."""
    return [
        {"player": f"p{place}", "power": 100 - place, "influence": 0, "vp": vps.get(place, 0),
         **({"victory": victory} if place == 1 else {})}
        for place in range(1, players + 1)
    ]  # fmt: skip


@pytest.mark.parametrize("players", [3, 4, 5, 8])
@pytest.mark.parametrize(("victory", "within_time", "more"), [
    (None, False, 0), ("standard", False, 0), ("standard", True, 1), ("major", False, 1), ("major", True, 2),
])  # fmt: skip
def test_victory_point_total_must_be_exact(players: int, victory: str | None, within_time: bool, more: int) -> None:
    """Victory points must total the number of players minus 2, plus the additions."""
    total = players - 2 + more
    read(*table(players, victory, {2: total}), within_time=within_time)

    for wrong in (0, total - 1, total + 1, total + 2):
        if wrong != total:
            found = refusal(*table(players, victory, {2: wrong}), within_time=within_time)
            assert found[0] == "victory-points-total"


@pytest.mark.parametrize(("participants", "members", "words"), [
    (table(5, None, {2: 2}), {}, "add up to 2 but must be 3 for 5 players: 3 (players - 2)"),
    (table(5, "major", {2: 3}), {},
     "add up to 3 but must be 4 for 5 players: 3 (players - 2), +1 for a major victory"),
    (table(3, "major", {1: 2, 2: 2}), {"within_time": True},
     "add up to 4 but must be 3 for 3 players: 1 (players - 2), +1 for a major victory, +1 for a win within time"),
])  # fmt: skip
def test_wrong_total_explains_the_sum(participants: list[dict[str, Any]], members: dict[str, Any], words: str) -> None:
    """The refusal of a wrong victory point total gives the rule, the sum and what was found."""
    assert refusal(*participants, **members) == ("victory-points-total", f"the victory points {words}")


def test_several_major_victories_add_one_point() -> None:
    """Several major victories in one game add to the victory point total only once."""
    majors = [seat("anna 20 20 major", 0), seat("ben 15 12 major", 0), seat("cleo 9 9 standard", 2)]

    assert places(read(*majors)) == [1, 2, 3]


KEPT = {
    "the winner keeps all": ([seat("anna 9 9", 1), seat("ben 8 8"), seat("cleo 7 7")], "victory-points-all-kept"),
    "two tied winners give to each other": (
        [seat("anna 9 9", 1), seat("ben 9 9", 1), seat("cleo 7 7"), seat("dora 6 6")], None,
    ),
    "one tied winner gives all to the other": (
        [seat("anna 9 9", 2), seat("ben 9 9"), seat("cleo 7 7"), seat("dora 6 6")], None,
    ),
    "a winner with less power gives all to the other": (
        [seat("anna 9 9 standard", 1), seat("ben 8 8 standard"), seat("cleo 7 7")], None,
    ),
    "a major victory takes precedence, and its winner keeps all": (
        [seat("anna 9 9 major", 2), seat("ben 10 8 standard"), seat("cleo 7 7")], "victory-points-all-kept",
    ),
    "a leaver and his substitute keep all": (
        [seat("anna 9 9", 1, status="abandoned"), seat("ben 9 9", 0, status="substitute", replaces="anna"),
         seat("cleo 7 7"), seat("dora 6 6")], "victory-points-all-kept",
    ),
    "the winner gives one away": ([seat("anna 9 9", 1), seat("ben 8 8"), seat("cleo 7 7"), seat("d 6 6", 1)], None),
    "the winner gives all away": ([seat("anna 9 9"), seat("ben 8 8", 1), seat("cleo 7 7")], None),
    "all are tied first": ([seat("anna 9 9", 1), seat("ben 9 9"), seat("cleo 9 9")], None),
    "the winner has the least power": (
        [seat("anna 1 1 standard"), seat("ben 9 9", 1), seat("cleo 9 9")], None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("participants", "code"), KEPT.values(), ids=KEPT)
def test_winner_must_share_victory_points(participants: list[dict[str, Any]], code: str | None) -> None:
    """A player who wins alone must give at least one victory point to another player, if a winner too."""
    if code is None:
        assert read(*participants)["participants"]
    else:
        assert refusal(*participants)[0] == code


@pytest.mark.parametrize("race", ["Narn/Centauri", "Human", "Minbari/Non-Aligned Worlds", "Drakh / Shadows"])
def test_race_may_be_dual(race: str) -> None:
    """A player may play two races, written with a slash."""
    assert read({**ANNA, "race": race}, BEN, CLEO)["participants"][0]["race"] == race


def test_race_is_checked_like_other_labels() -> None:
    """A race with a control character or a space at its end is refused."""
    for race in ("Narn\n", "", " Narn", "x" * 65):
        assert refusal({**ANNA, "race": race}, BEN, CLEO)[0] == "bad-identifier"


def test_winners_with_the_same_victory_share_a_place() -> None:
    """Among the numbers for rules, players with the same victory share a place, whatever their power."""
    game = {"kind": "b5", "participants": [
        seat("a 18 9 standard"), seat("b 21 9 standard"), seat("c 30 9"), seat("d 5 5 major"), seat("e 30 9"),
        {"player": "f", "status": "abandoned"}, seat("g 6 6 major", status="substitute", replaces="f"),
    ]}  # fmt: skip

    assert places(game) == [4, 3, 5, 2, 5, 1, 1]
    found = column_values(game)
    assert found["winners_place"] == [3, 3, 5, 1, 5, 1, 1]
    assert found["victory"] == [1, 1, 0, 2, 0, 2, 2]


PLACES = {
    "by power": (["a 9 1", "b 8 5", "c 7 9"], [1, 2, 3]),
    "by influence where power is equal": (["a 9 1", "b 9 2", "c 9 3"], [3, 2, 1]),
    "tied in both": (["a 20 20", "b 15 12", "c 15 12", "d 9 9"], [1, 2, 2, 4]),
    "a victory above any power": (["a 30 30", "b 5 5 standard", "c 1 1"], [2, 1, 3]),
    "major above standard": (["a 30 30 standard", "b 5 5 major", "c 40 40"], [2, 1, 3]),
    "two winners by power": (["a 20 5 standard", "b 21 1 standard", "c 40 40"], [2, 1, 3]),
    "two winners tied": (["a 21 21 standard", "b 21 21 standard", "c 9 9", "d 9 8"], [1, 1, 3, 4]),
    "all tied": (["a 0 0", "b 0 0", "c 0 0"], [1, 1, 1]),
    "below zero": (["a -5 0", "b 0 -5", "c 0 0"], [3, 2, 1]),
}


@pytest.mark.parametrize(("seats", "expected"), PLACES.values(), ids=PLACES)
def test_victory_outranks_power_and_influence(seats: list[str], expected: list[int]) -> None:
    """Places are decided by victory, then power, then influence, and more is better."""
    assert places({"kind": "b5", "participants": [seat(text) for text in seats]}) == expected


LEAVER: dict[str, Any] = {"player": "cleo", "status": "abandoned"}
SUBSTITUTE = seat("dora 30 9", status="substitute", replaces="cleo")


@pytest.mark.parametrize("said", [{}, {"power": 30}, {"power": 30, "influence": 9, "victory": None}])
@pytest.mark.parametrize("swapped", [False, True])
def test_substitute_decides_the_seats_place(said: dict[str, Any], swapped: bool) -> None:
    """The substitute's result decides the place of a seat, and the seat counts once."""
    pair = [{**LEAVER, **said}, SUBSTITUTE]
    game = read(seat("anna 20 20"), seat("ben 15 12", 1), *(pair[::-1] if swapped else pair))

    assert places(game) == [2, 3, 1, 1]


@pytest.mark.parametrize("said", [{"power": 31}, {"influence": 8}, {"victory": "standard"}, {"seat": 4}])
def test_leaver_must_agree_with_the_substitute(
    said: dict[str, Any],
) -> None:
    """A game is refused if a leaver's result or seat differs from that of their substitute."""
    assert refusal(ANNA, BEN, {**LEAVER, **said}, SUBSTITUTE)[0] == "seat-disagrees"


def test_substitute_must_state_power() -> None:
    """A game is refused if the substitute states no power, whether or not the leaver does."""
    silent = {name: value for name, value in SUBSTITUTE.items() if name != "power"}

    assert refusal(ANNA, BEN, {**LEAVER, "power": 30}, silent)[0] == "seat-disagrees"
    assert refusal(ANNA, BEN, LEAVER, silent) == (
        "missing-member", "'cleo' has no power; add it, because it decides places",
    )  # fmt: skip


def test_random_places_match_pairwise_comparison() -> None:
    """In random games, each player is placed behind exactly those who beat them."""
    chance, seen = random.Random(5), Counter[str]()
    rank = {"major": 2, "standard": 1, None: 0}
    for _ in range(2_000):
        seats = [
            {"player": f"p{number}", "power": chance.randint(-1, 2), "influence": chance.randint(-1, 1),
             "victory": chance.choice(["major", "standard", None, None])}
            for number in range(chance.randint(3, 7))
        ]  # fmt: skip
        merits = [(rank[s["victory"]], s["power"], s["influence"]) for s in seats]
        found = places({"kind": "b5", "participants": seats})
        assert found == [1 + sum(other > mine for other in merits) for mine in merits]
        seen["tie"] += len(set(found)) < len(found)
        seen["tied winners"] += found.count(1) > 1
        seen["standard behind major"] += {"major", "standard"} <= {s["victory"] for s in seats}
        seen["nobody has a victory"] += {s["victory"] for s in seats} == {None}
    assert min(seen.values()) > 50, seen
