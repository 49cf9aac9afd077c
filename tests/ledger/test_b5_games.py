"""Games of kind b5: refusals with their messages, and places."""

import random
from collections import Counter
from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.events.game_types import column_values, places
from ratings_ledger.ledger.events.types import read_event, to_canonical_content


def build_seat(text: str, vp: int | None = None, **members: Any) -> dict[str, Any]:
    """Return a participant: `build_seat("anna 20 15 major", 1)` has power 20, influence 15, a major victory, 1 VP."""
    player, power, influence, victory = (*text.split(), None)[:4]
    participant = {"player": player, "power": int(str(power)), "influence": int(str(influence)), "victory": victory}
    return {**participant, **({} if vp is None else {"vp": vp}), **members}


def build_game_event(*participants: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a game of kind b5 with these participants."""
    data = {"game_id": "g", "game": "babylon5", "kind": "b5", "participants": list(participants), **members}
    return {"type": "game.recorded", "occurred_at": "2010-02-01T20:00:00Z", "data": data}


def read_game(*participants: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return the normalised data of a game, or raise `Refused`."""
    return read_event(build_game_event(*participants, **members))[1]


def catch_refusal(*participants: dict[str, Any], **members: Any) -> tuple[str, str]:
    """Return the code and the message of the refusal of a game."""
    with pytest.raises(Refused) as caught:
        read_game(*participants, **members)
    return caught.value.code, caught.value.message


ANNA, BEN, CLEO = build_seat("anna 20 20 standard", 0), build_seat("ben 15 12", 1), build_seat("cleo 9 9", 0)


def test_all_optional_members_are_kept() -> None:
    """A game with all optional members is kept as it was given."""
    anna = {**ANNA, "race": "Human", "agenda": "Alliance of Races", "lid": "L-7", "seat": 2, "vp": 1}
    game = read_game(anna, BEN, CLEO, within_time=True, deck="sealed", referee="dora", tourney=True, season="2010-1")

    assert game["participants"][0] == anna
    assert game["participants"][2] == {"player": "cleo", "power": 9, "influence": 9, "vp": 0}  # null is absent
    members = {name: game[name] for name in ("within_time", "deck", "referee", "tourney", "season")}
    assert members == {"within_time": True, "deck": "sealed", "referee": "dora", "tourney": True, "season": "2010-1"}


def test_explicit_defaults_mean_the_same() -> None:
    """A game means the same whether its default values are spelled out or left out."""
    short = read_game(ANNA, BEN, build_seat("cleo 9 9"))
    full = read_game(ANNA, {**BEN, "victory": None}, CLEO, within_time=False, tourney=False, deck=None, referee=None)

    assert to_canonical_content("game.recorded", 0, short) == to_canonical_content("game.recorded", 0, full)


BAD_PARTICIPANTS = {
    "no power": ([ANNA, {"player": "ben", "influence": 1, "vp": 1}, CLEO], "missing-member", "'ben' has no power"),
    "no influence": ([ANNA, {**BEN, "influence": None}, CLEO], "missing-member", "'ben' has no influence"),
    "a leaver without power and without substitute": (
        [ANNA, BEN, {"player": "cleo", "status": "abandoned"}],
        "missing-member",
        "'cleo' has no power",
    ),
    "power as text": ([ANNA, {**BEN, "power": "15"}, CLEO], "not-an-integer", "participants.2.power"),
    "power beyond all bounds": ([ANNA, {**BEN, "power": 10_001}, CLEO], "out-of-range", "participants.2.power"),
    "influence below all bounds": ([ANNA, {**BEN, "influence": -10_001}, CLEO], "out-of-range", "2.influence"),
    "a negative victory point": ([ANNA, {**BEN, "vp": -1}, CLEO], "out-of-range", "participants.2.vp"),
    "1,001 victory points": ([ANNA, {**BEN, "vp": 1_001}, CLEO], "out-of-range", "participants.2.vp"),
    "an unknown victory": ([ANNA, {**BEN, "victory": "minor"}, CLEO], "bad-value", "participants.2.victory"),
    "a place": ([{**ANNA, "place": 1}, BEN, CLEO], "unknown-member", "participants.1.place"),
    "an agenda with a slash": ([{**ANNA, "agenda": "a/b"}, BEN, CLEO], "bad-identifier", "participants.1.agenda"),
    "the same player twice": ([ANNA, BEN, {**CLEO, "player": "ben"}], "player-twice", "'ben' takes part twice"),
    "two players": ([ANNA, BEN], "b5-too-few-players", "at least 3 players; this one has 2"),
    "three players on two seats": (
        [ANNA, {**BEN, "status": "removed"}, {**BEN, "player": "cleo", "status": "substitute", "replaces": "ben"}],
        "b5-too-few-players",
        "at least 3 players; this one has 2",
    ),
    "one player": ([ANNA], "too-few-participants", "it needs at least two"),
}


@pytest.mark.parametrize(("participants", "code", "words"), BAD_PARTICIPANTS.values(), ids=BAD_PARTICIPANTS)
def test_bad_participants_are_refused(participants: list[dict[str, Any]], code: str, words: str) -> None:
    """Participants that break a rule are refused with the right code and message."""
    rejection = catch_refusal(*participants)

    assert rejection[0] == code
    assert words in rejection[1]


@pytest.mark.parametrize("deck", ["open", "", 3])
def test_unknown_deck_is_refused(deck: object) -> None:
    """A deck that is neither sealed nor constructed is refused."""
    assert catch_refusal(ANNA, BEN, CLEO, deck=deck)[0] == "bad-value"


@pytest.mark.parametrize("referee", ["ben", "be\u0301n"])
def test_referee_who_plays_is_refused(referee: str) -> None:
    """A game is refused if its referee also plays.

    The two ids are equal even if only one is written with a combining accent.
    """
    players = [ANNA, {**BEN, "player": "bén" if referee != "ben" else "ben"}, CLEO]

    assert catch_refusal(*players, referee=referee)[0] == "referee-plays"


def build_seats(players: int, victory: str | None, vps: dict[int, int]) -> list[dict[str, Any]]:
    """Return this many players, placed 1, 2, 3 ...; the first has this victory. `vps` are victory points by place."""
    return [
        {
            "player": f"p{place}",
            "power": 100 - place,
            "influence": 0,
            "vp": vps.get(place, 0),
            **({"victory": victory} if place == 1 else {}),
        }
        for place in range(1, players + 1)
    ]


@pytest.mark.parametrize("players", [3, 4, 5, 8])
@pytest.mark.parametrize(
    ("victory", "within_time", "additions"),
    [
        (None, False, 0),
        ("standard", False, 0),
        ("standard", True, 1),
        ("major", False, 1),
        ("major", True, 2),
    ],
)
def test_victory_point_total_must_be_exact(
    players: int, victory: str | None, within_time: bool, additions: int
) -> None:
    """Victory points must total the number of players minus 2, plus the additions."""
    total = players - 2 + additions
    read_game(*build_seats(players, victory, {2: total}), within_time=within_time)

    for wrong_total in (0, total - 1, total + 1, total + 2):
        if wrong_total != total:
            rejection = catch_refusal(*build_seats(players, victory, {2: wrong_total}), within_time=within_time)
            assert rejection[0] == "victory-points-total"


@pytest.mark.parametrize(("participants", "members", "words"), [
    (build_seats(5, None, {2: 2}), {}, "add up to 2 but must be 3 for 5 players: 3 (players - 2)"),
    (build_seats(5, "major", {2: 3}), {},
     "add up to 3 but must be 4 for 5 players: 3 (players - 2), +1 for a major victory"),
    (build_seats(3, "major", {1: 2, 2: 2}), {"within_time": True},
     "add up to 4 but must be 3 for 3 players: 1 (players - 2), +1 for a major victory, +1 for a win within time"),
])  # fmt: skip
def test_wrong_total_explains_the_sum(participants: list[dict[str, Any]], members: dict[str, Any], words: str) -> None:
    """The refusal of a wrong victory point total explains the rule and states the expected and the actual sum."""
    message = f"the victory points {words}; correct vp, victory or within_time"
    assert catch_refusal(*participants, **members) == ("victory-points-total", message)


def test_several_major_victories_add_one_point() -> None:
    """Several major victories in one game add to the victory point total only once."""
    majors = [build_seat("anna 20 20 major", 0), build_seat("ben 15 12 major", 0), build_seat("cleo 9 9 standard", 2)]

    assert places(read_game(*majors)) == [1, 2, 3]


WINNER_POINTS = {
    "the winner keeps all": (
        [build_seat("anna 9 9", 1), build_seat("ben 8 8"), build_seat("cleo 7 7")],
        "victory-points-all-kept",
    ),
    "two tied winners give to each other": (
        [build_seat("anna 9 9", 1), build_seat("ben 9 9", 1), build_seat("cleo 7 7"), build_seat("dora 6 6")],
        None,
    ),
    "one tied winner gives all to the other": (
        [build_seat("anna 9 9", 2), build_seat("ben 9 9"), build_seat("cleo 7 7"), build_seat("dora 6 6")],
        None,
    ),
    "a winner with less power gives all to the other": (
        [build_seat("anna 9 9 standard", 1), build_seat("ben 8 8 standard"), build_seat("cleo 7 7")],
        None,
    ),
    "a major victory takes precedence, and its winner keeps all": (
        [build_seat("anna 9 9 major", 2), build_seat("ben 10 8 standard"), build_seat("cleo 7 7")],
        "victory-points-all-kept",
    ),
    "a leaver and their substitute keep all": (
        [
            build_seat("anna 9 9", 1, status="abandoned"),
            build_seat("ben 9 9", 0, status="substitute", replaces="anna"),
            build_seat("cleo 7 7"),
            build_seat("dora 6 6"),
        ],
        "victory-points-all-kept",
    ),
    "the winner gives one away": (
        [build_seat("anna 9 9", 1), build_seat("ben 8 8"), build_seat("cleo 7 7"), build_seat("d 6 6", 1)],
        None,
    ),
    "the winner gives all away": ([build_seat("anna 9 9"), build_seat("ben 8 8", 1), build_seat("cleo 7 7")], None),
    "all are tied first": ([build_seat("anna 9 9", 1), build_seat("ben 9 9"), build_seat("cleo 9 9")], None),
    "the winner has the least power": (
        [build_seat("anna 1 1 standard"), build_seat("ben 9 9", 1), build_seat("cleo 9 9")],
        None,
    ),
}


@pytest.mark.parametrize(("participants", "code"), WINNER_POINTS.values(), ids=WINNER_POINTS)
def test_winner_must_share_victory_points(participants: list[dict[str, Any]], code: str | None) -> None:
    """A sole winner must give at least one victory point to another player."""
    if code is None:
        assert read_game(*participants)["participants"]
    else:
        assert catch_refusal(*participants)[0] == code


@pytest.mark.parametrize("race", ["Narn/Centauri", "Human", "Minbari/Non-Aligned Worlds", "Drakh / Shadows"])
def test_race_may_be_dual(race: str) -> None:
    """A player may play two races, written with a slash."""
    assert read_game({**ANNA, "race": race}, BEN, CLEO)["participants"][0]["race"] == race


def test_race_is_checked_like_other_labels() -> None:
    """A race that is empty or too long, has a control character, or begins with a space is refused."""
    for race in ("Narn\n", "", " Narn", "x" * 65):
        assert catch_refusal({**ANNA, "race": race}, BEN, CLEO)[0] == "bad-identifier"


def test_winners_with_the_same_victory_share_a_place() -> None:
    """In the columns for rules, winners with the same victory share a place, regardless of their power."""
    game = {
        "kind": "b5",
        "participants": [
            build_seat("a 18 9 standard"),
            build_seat("b 21 9 standard"),
            build_seat("c 30 9"),
            build_seat("d 5 5 major"),
            build_seat("e 30 9"),
            {"player": "f", "status": "abandoned"},
            build_seat("g 6 6 major", status="substitute", replaces="f"),
        ],
    }

    assert places(game) == [4, 3, 5, 2, 5, 1, 1]
    columns = column_values(game)
    assert columns["winners_place"] == [3, 3, 5, 1, 5, 1, 1]
    assert columns["victory"] == [1, 1, 0, 2, 0, 2, 2]


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
    assert places({"kind": "b5", "participants": [build_seat(text) for text in seats]}) == expected


LEAVER: dict[str, Any] = {"player": "cleo", "status": "abandoned"}
SUBSTITUTE = build_seat("dora 30 9", status="substitute", replaces="cleo")


@pytest.mark.parametrize("leaver_members", [{}, {"power": 30}, {"power": 30, "influence": 9, "victory": None}])
@pytest.mark.parametrize("swapped", [False, True])
def test_substitute_decides_the_seats_place(leaver_members: dict[str, Any], swapped: bool) -> None:
    """The substitute's result decides the place of both players on a seat, and the seat counts once."""
    pair = [{**LEAVER, **leaver_members}, SUBSTITUTE]
    game = read_game(build_seat("anna 20 20"), build_seat("ben 15 12", 1), *(pair[::-1] if swapped else pair))

    assert places(game) == [2, 3, 1, 1]


@pytest.mark.parametrize("leaver_members", [{"power": 31}, {"influence": 8}, {"victory": "standard"}, {"seat": 4}])
def test_leaver_must_agree_with_the_substitute(
    leaver_members: dict[str, Any],
) -> None:
    """A game is refused if a leaver's result or seat differs from that of their substitute."""
    assert catch_refusal(ANNA, BEN, {**LEAVER, **leaver_members}, SUBSTITUTE)[0] == "seat-disagrees"


def test_substitute_must_state_power() -> None:
    """A game is refused if the substitute states no power, whether or not the leaver does."""
    silent = {name: value for name, value in SUBSTITUTE.items() if name != "power"}

    assert catch_refusal(ANNA, BEN, {**LEAVER, "power": 30}, silent)[0] == "seat-disagrees"
    assert catch_refusal(ANNA, BEN, LEAVER, silent) == (
        "missing-member",
        "'cleo' has no power; add it, because it decides places",
    )


def test_random_places_match_pairwise_comparison() -> None:
    """In random games, each player is placed behind exactly the players with a better result."""
    chance, case_counts = random.Random(5), Counter[str]()
    rank = {"major": 2, "standard": 1, None: 0}
    for _ in range(2_000):
        seats = [
            {
                "player": f"p{number}",
                "power": chance.randint(-1, 2),
                "influence": chance.randint(-1, 1),
                "victory": chance.choice(["major", "standard", None, None]),
            }
            for number in range(chance.randint(3, 7))
        ]
        merits = [(rank[s["victory"]], s["power"], s["influence"]) for s in seats]
        game_places = places({"kind": "b5", "participants": seats})
        assert game_places == [1 + sum(better > merit for better in merits) for merit in merits]
        case_counts["tie"] += len(set(game_places)) < len(game_places)
        case_counts["tied winners"] += game_places.count(1) > 1
        case_counts["standard behind major"] += {"major", "standard"} <= {s["victory"] for s in seats}
        case_counts["no victory"] += {s["victory"] for s in seats} == {None}
    assert min(case_counts.values()) > 50, case_counts
