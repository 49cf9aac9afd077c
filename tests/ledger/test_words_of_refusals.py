"""Messages about refused values are the program's own, not those of the validation library."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ratings_ledger import Refused
from ratings_ledger.ledger.events.fields import Members, to_refusal
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.types import TYPES, read_event

OCCURRED_AT = "2026-01-01T20:00:00Z"
PARTICIPANTS = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
GAME = {"game_id": "g-1", "game": "go", "participants": PARTICIPANTS}
CLOCK = {"game_id": "g-1", "at": 0}
RULESET = {"id": "elo", "version": "1", "rule": "pairwise-elo/1", "scope": {"game": ["go"]}}
REFUSALS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a text": ("league.joined", {"league": "L1", "player": 7}, "wrong-type: player: text is needed, not 7"),
    "a whole number": ("clock.stopped", CLOCK | {"at": "5"}, "not-an-integer: at: a whole number is needed, not '5'"),
    "true or false": ("game.recorded", GAME | {"rated": 1}, "wrong-type: rated: true or false is needed, not 1"),
    "a list": ("clock.started", CLOCK | {"players": "anna"}, "wrong-type: players: a list is needed, not 'anna'"),
    "an object": (
        "clock.started", CLOCK | {"players": ["a", "b"], "timers": 3}, "wrong-type: timers: an object is needed, not 3",
    ),
    "an object in a list": (
        "game.recorded", GAME | {"participants": ["anna"]},
        "wrong-type: participants.1: an object is needed, not 'anna'",
    ),
    "an object of names": ("game.recorded", GAME | {"extra": 1}, "wrong-type: extra: an object is needed, not 1"),
    "one of the allowed values": (
        "player.registered", {"player": "anna", "account": "gold"},
        "bad-value: account: this must be 'premium' or 'free', not 'gold'",
    ),
    "at least": (
        "league.created", {"league": "L1", "game": "go", "players_per_game": 1},
        "out-of-range: players_per_game: this must be at least 2, not 1",
    ),
    "at most": (
        "league.created", {"league": "L1", "game": "go", "players_per_game": 9},
        "out-of-range: players_per_game: this must be at most 8, not 9",
    ),
    "too few": (
        "league.scheduled", {"league": "L1", "seed": "s", "games": [{"game_id": "g-1", "seats": ["anna"]}]},
        "bad-value: games.1.seats: there must be at least 2, not 1",
    ),
    "none": ("league.scheduled", {"league": "L1", "seed": "s", "games": []}, "games: there must be at least 1, not 0"),
    "too many": (
        "clock.started", CLOCK | {"players": [f"p{number}" for number in range(65)]},
        "bad-value: players: there must be at most 64, not 65",
    ),
    "a band": (
        "ruleset.published", RULESET | {"partition": {"by": ["players"], "bands": ["all", "4+"]}},
        "bad-value: partition.bands.2: '4+' is not a band of numbers of players, such as all, 4 or 3-4",
    ),
    "a known member": (
        "player.registered", {"player": "anna", "nick": "an"},
        "unknown-member: nick: there is no member of this name (value 'an')",
    ),
    "a known member of a game": (
        "game.recorded", GAME | {"venue": "club"},
        "unknown-member: venue: there is no member of this name (value 'club'); free text goes into extra",
    ),
    "a member of participants": (
        "game.recorded", GAME | {"score": 3},
        "unknown-member: score: this is a member of a participant, not of the game; move it to a participant",
    ),
    "a member of the game": (
        "game.recorded", GAME | {"participants": [PARTICIPANTS[0] | {"city": "Bonn"}, PARTICIPANTS[1]]},
        "unknown-member: participants.1.city: this is a member of the game, not of a participant; move it to the game",
    ),
    "a place that fits a score": (
        "game.recorded",
        GAME | {"score_order": "low", "participants": [PARTICIPANTS[0] | {"score": 9}, PARTICIPANTS[1] | {"score": 7}]},
        "correct a place or a score, or set score_order to high if more points win",
    ),
    "months": (
        "ruleset.published", RULESET | {"season_by": 7},
        "bad-value: season_by: 7 is neither \"season\" nor a list of the months in which seasons begin, such as [1, 7]",
    ),
    "a name": (
        "game.recorded", GAME | {"extra": {"ü": "x"}},
        "bad-value: extra.ü: 'ü' is not a name in extra; write 1 to 64 printable ASCII characters",
    ),
}  # fmt: skip
LIBRARY_WORDS = ("should", "valid", "instance of", "pattern", "[key]", "dictionary", "integer", "boolean")
WRONG_VALUES: tuple[Any, ...] = (
    None, True, 7, -1, 10**20, "", "a", "x" * 3_000, "x y/=", [], [7], ["a"], ["a"] * 101, [[1]] * 2, [{}], [{"a": []}],
    {}, {"ü": "x"}, {"a": 1}, {"1901": {"Utopia": 1}}, {"1901": {"France": 99}}, {"1901": 7},
)  # fmt: skip


@pytest.mark.parametrize(("type_name", "data", "expected"), REFUSALS.values(), ids=REFUSALS)
def test_wrong_value_is_refused_with_expected_form(type_name: str, data: dict[str, Any], expected: str) -> None:
    """The message about a wrong value states the expected form."""
    with pytest.raises(Refused) as refused:
        read_event({"type": type_name, "occurred_at": OCCURRED_AT, "data": data})
    assert f"{refused.value.code}: {refused.value.message}".endswith(expected)


def test_no_refusal_has_library_words() -> None:
    """No message about a wrong value in any member of any event has words of the validation library."""
    messages = {message for model in list_models(Members) for message in list_messages(model)}
    assert len(messages) > 1_000
    assert {message for message in messages if any(word in message for word in LIBRARY_WORDS)} == set()


def list_models(base: type[Members]) -> Iterator[type[Members]]:
    """Yield the models of all events, of all games and of their parts."""
    assert all(issubclass(kind.model, Members) for kind in [*TYPES.values(), *GAME_TYPES.values()])
    for model in base.__subclasses__():
        yield model
        yield from list_models(model)


def list_messages(model: type[Members]) -> Iterator[str]:
    """Yield the message with which each member of a model refuses each wrong value."""
    for name, field in model.model_fields.items():
        member = TypeAdapter(Annotated[field.annotation, field])  # type: ignore[valid-type]
        for value in WRONG_VALUES:
            try:
                member.validate_python(value, strict=True)
            except ValidationError as error:
                yield to_refusal(error, name).message
