"""The types of events, and how a parsed line becomes a normalised draft ready for the log.

A new type is a model and one line in `TYPES`; a new game type goes into `ledger.events.game_types`.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, ValidationError

from ratings_ledger.ledger.events.batches import ImportRecorded
from ratings_ledger.ledger.events.canonical import dump, dump_in_order, format_instant, parse_instant
from ratings_ledger.ledger.events.fields import (
    STATE_MAX,
    ColumnName,
    DecimalString,
    EventId,
    GameId,
    Label,
    LadderText,
    Members,
    PlayerId,
    Slug,
    Text,
    normalise_data,
    read_by,
    read_id,
    to_refusal,
)
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.games import check_sides
from ratings_ledger.ledger.events.published_lists import ListPublished, ListRows, ListScheduled
from ratings_ledger.ledger.events.rulesets import Partition as Partition
from ratings_ledger.ledger.events.rulesets import Ruleset as Ruleset
from ratings_ledger.ledger.events.rulesets import Scope as Scope
from ratings_ledger.ledger.events.rulesets import ZoneName
from ratings_ledger.ledger.rejections import Refused, quote

EVENT_MEMBERS = frozenset({"type", "id", "occurred_at", "data"})
LOG_MEMBERS = frozenset({"position", "recorded_at", "by", "schema_version", "supersedes"})
KNOWN_MEMBERS = EVENT_MEMBERS | LOG_MEMBERS


class PlayerRegistered(Members):
    """A player is known from now on; their account is premium unless stated otherwise."""

    player: PlayerId
    account: Literal["premium", "free"] = "premium"


class PlayerAccountChanged(Members):
    """From now on the player has this account."""

    player: PlayerId
    account: Literal["premium", "free"]


class PlayerRenamed(Members):
    """The same person under a new id from the start of time; `new_player` may already have games (a merge)."""

    player: PlayerId
    new_player: PlayerId
    reason: Text | None = None


class ClubRenamed(Members):
    """The same club under a new name from the start of time; `new_club` may already be one (a merge)."""

    club: Label
    new_club: Label
    reason: Text | None = None


class GameCorrected(Members):
    """The complete data of a game as it should have been recorded, with `occurred_at` where the date was wrong."""

    game_id: GameId
    reason: Text
    game: dict[str, Any]  # read as a game of its type


class GameDecided(Members):
    """A game is voided, or counts again."""

    game_id: GameId
    reason: Text


class EventVoided(Members):
    """An event that is not a game's is withdrawn."""

    id: EventId
    reason: Text


class PointsAdjusted(Members):
    """A delta on a player's points at that moment, or on the start value of somebody new."""

    ladder: LadderText
    player: PlayerId
    points: DecimalString
    reason: Text


class PlayerSeeded(Members):
    """A player begins on a ladder with this state, whenever that is, and has played so many games elsewhere.

    `state` has values of the rule's columns by name, such as {"rating": "1650", "deviation": "80"}.
    """

    ladder: LadderText
    player: PlayerId
    state: Annotated[dict[ColumnName, DecimalString], Field(min_length=1, max_length=STATE_MAX)]
    games: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    reason: Text | None = None


class LeagueCreated(Members):
    """A league begins; a ruleset with `freeze = "league-start"` keeps the version of this moment for it."""

    league: Label
    game: Slug
    players_per_game: Annotated[int, Field(ge=2, le=8)]
    version: Text | None = None  # of the game


class LeagueJoined(Members):
    """Somebody subscribes to a league."""

    league: Label
    player: PlayerId


class ScheduledGame(Members):
    """A game of a league before it is played: its players in seat order."""

    game_id: GameId
    seats: Annotated[list[PlayerId], Field(min_length=2, max_length=8)]


class LeagueScheduled(Members):
    """The games of a league, drawn by a seed."""

    league: Label
    seed: Text
    games: Annotated[list[ScheduledGame], Field(min_length=1, max_length=100)]


class ZoneSet(Members):
    """The ledger's home zone from now on: times are shown and read there. No ladder depends on it."""

    zone: ZoneName


class EventType(NamedTuple):
    """A type of event: its model, what it is about, and what others have to know about it.

    brings:       the players it names, who may be new; of a rename the new id
    is_silent:    whether no ladder depends on it
    is_watched:   whether it can change what becomes of events that were checked before it was appended
    is_far:       whether it depends on more than watched events, so that it is checked again whatever was appended
    cause:        what it is called where it changed points
    decided:      what somebody did by it to what was recorded; everything else is play, or nobody's decision
    """

    model: type[Members]
    subject: Callable[[dict[str, Any]], str]
    brings: Callable[[dict[str, Any]], list[str]] = lambda data: []
    is_silent: bool = False
    is_watched: bool = False
    is_far: bool = False
    cause: str = ""
    decided: str = ""
    schema_version: int = 1


def _player(data: dict[str, Any]) -> str:
    return f"player:{data['player']}"


def _game(data: dict[str, Any]) -> str:
    return f"game:{data['game_id']}"


def _league(data: dict[str, Any]) -> str:
    return f"league:{data['league']}"


def _its_player(data: dict[str, Any]) -> list[str]:
    return [data["player"]]


def _its_new_id(data: dict[str, Any]) -> list[str]:
    return [data["new_player"]]


def _participants(data: dict[str, Any]) -> list[str]:
    return [participant["player"] for participant in data["participants"]]


TYPES = {
    "player.registered": EventType(PlayerRegistered, _player, _its_player, cause="account"),
    "player.account_changed": EventType(PlayerAccountChanged, _player, _its_player, cause="account", decided="account"),
    "player.renamed": EventType(
        PlayerRenamed, _player, _its_new_id, is_watched=True, is_far=True, cause="rename", decided="renamed"
    ),
    "club.renamed": EventType(
        ClubRenamed,
        lambda data: f"club:{data['club']}",
        is_watched=True,
        is_far=True,
        cause="club rename",
        decided="club renamed",
    ),
    # a game's model is chosen by its type
    "game.recorded": EventType(Members, _game, _participants),
    "game.corrected": EventType(
        GameCorrected, _game, lambda data: _participants(data["game"]), cause="corrected", decided="corrected"
    ),
    "game.voided": EventType(GameDecided, _game, cause="voided", decided="voided"),
    "game.reinstated": EventType(GameDecided, _game, cause="reinstated", decided="counts again"),
    "event.voided": EventType(
        EventVoided,
        lambda data: f"event:{data['id']}",
        is_watched=True,
        is_far=True,
        cause="taken back",
        decided="withdrawn",
    ),
    "points.adjusted": EventType(
        PointsAdjusted, _player, _its_player, is_far=True, cause="adjustment", decided="adjusted"
    ),
    "player.seeded": EventType(PlayerSeeded, _player, _its_player, is_far=True, cause="seed", decided="seeded"),
    "ruleset.published": EventType(
        Ruleset, lambda data: f"ruleset:{data['id']}", is_watched=True, cause="rule change", decided="new rules"
    ),
    "league.created": EventType(LeagueCreated, _league, is_watched=True, is_far=True, cause="league"),
    "league.joined": EventType(LeagueJoined, _league, _its_player, is_silent=True, is_watched=True, is_far=True),
    "league.scheduled": EventType(LeagueScheduled, _league, is_silent=True, is_watched=True),
    "ledger.zone_set": EventType(ZoneSet, lambda data: "ledger:zone", is_silent=True),
    "import.recorded": EventType(ImportRecorded, lambda data: f"import:{data['name']}", is_silent=True, is_far=True),
    "list.rows": EventType(ListRows, lambda data: f"list:{data['digest']}", is_silent=True, is_watched=True),
    "list.published": EventType(
        ListPublished, lambda data: f"ladder:{data['ladder']}", is_silent=True, is_watched=True
    ),
    "list.scheduled": EventType(
        ListScheduled, lambda data: f"schedule:{data['ladder']}", is_silent=True, is_watched=True
    ),
    **{
        name: EventType(model, lambda data: f"clock:{data['game_id']}", is_watched=True, is_far=True)
        for name, model in CLOCK_TYPES.items()
    },
}
# by what somebody decided about what was recorded
DECISIONS = tuple(name for name, event_type in TYPES.items() if event_type.decided)


class Draft(NamedTuple):
    """A validated event that is not in the log yet; `data` is canonical JSON."""

    event_id: str
    type: str
    schema_version: int
    subject: str
    occurred_at: int  # microseconds since 1970 UTC
    data: str
    by: str | None = None  # who recorded it elsewhere, if the line says
    supersedes: str | None = (
        None  # the event that it was checked to replace; nothing has replaced that one in the meantime
    )
    position: int | None = None  # of a batch: where it stood elsewhere, if the line says


# Old forms of events, read as if they had been written today. A record is never rewritten. When a type gets a new
# schema version, one pure step from the previous version goes into `STEPS`, and every reader sees the newest form; a
# test keeps the chain complete.

Data = dict[str, Any]
Steps = Mapping[tuple[str, int], Callable[[Data], Data]]

STEPS: Steps = {}


def upcast(type_name: str, version: object, current: int, data: Data, steps: Steps = STEPS) -> Data:
    """`data`, written at `version`, in the form of version `current`. Raises `Refused` for a version unknown here."""
    if version == current and version is not True:
        return data
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version < current:
        raise Refused(
            "unknown-schema-version",
            f"{type_name} version {quote(version)} is not known here (1 to {current}); a newer program wrote it",
        )
    for step in range(version, current):
        data = steps[type_name, step](data)
    return data


def read_event(event: dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Return a parsed line as a draft and its normalised data. Raises `Refused` with the first thing that is wrong.

    Normalised: instants in UTC, ids composed (NFC), null members gone; defaults are not filled in. Members that the
    ledger itself sets (`position`, `recorded_at` ...) are allowed, since exports have them, but ignored.
    """
    if not KNOWN_MEMBERS.issuperset(event):
        unknown = min(event.keys() - KNOWN_MEMBERS)
        raise Refused("unknown-member", f"{quote(unknown)} is not a member of an event ({_listed(EVENT_MEMBERS)})")
    try:
        type_name, at, data = event["type"], event["occurred_at"], event["data"]
    except KeyError as missing:
        raise Refused("missing-member", f"the event has no {missing}") from None
    if not isinstance(type_name, str) or (event_type := TYPES.get(type_name)) is None:
        raise Refused("unknown-type", f"{quote(type_name)} is not a type of event ({_listed(TYPES)})")
    if not isinstance(data, dict):
        raise Refused("wrong-type", f"data is an object, not {quote(data)}")
    occurred_at, current = parse_instant(at), event_type.schema_version
    if "schema_version" in event:
        data = upcast(type_name, event["schema_version"], current, data)
    data = read_data(type_name, data)
    event_id = read_id(event["id"]) if "id" in event else default_id(type_name, occurred_at, data)
    by = read_by(event["by"]) if "by" in event else None
    text = dump_in_order(data) if type_name == "game.recorded" else dump(data)
    draft = Draft(event_id, type_name, current, event_type.subject(data), occurred_at, text, by)
    if type_name == "import.recorded" and isinstance(there := event.get("position"), int):
        draft = draft._replace(position=there)
    return draft, data


def read_data(type_name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the normalised data of an event of this type, a game's in canonical order. Raises `Refused`."""
    if type_name == "game.recorded":
        return _read_game(data)
    try:
        read = TYPES[type_name].model.model_validate(data).model_dump(exclude_unset=True, exclude_none=True)
    except ValidationError as error:
        raise to_refusal(error) from None
    if type_name == "game.corrected":
        game, dated = _undated(read["game"])
        moved = {"occurred_at": format_instant(parse_instant(dated))} if dated is not None else {}
        read["game"] = _read_game(game) | moved
        if read["game"]["game_id"] != read["game_id"]:
            raise Refused(
                "game-id-changed",
                f"a correction keeps the game_id {quote(read['game_id'])}; {quote(read['game']['game_id'])} would be "
                "another game: void this one and record that one",
            )
    return read


def _read_game(data: dict[str, Any]) -> dict[str, Any]:
    kind = GAME_TYPES.get(name) if isinstance(name := data.get("kind", "placing"), str) else None
    if kind is None:
        raise Refused("unknown-kind", f"{quote(name)} is not a game type ({_listed(GAME_TYPES)})")
    try:
        game = normalise_data(kind.model, data)
    except ValidationError as error:
        raise _of_another_kind(to_refusal(error), str(name)) from None
    kind.check(game)
    check_sides(game, kind.of_side, kind.places)
    return game


def _of_another_kind(problem: Refused, kind: str) -> Refused:
    """Return a refusal that says so if a member is unknown because it belongs to games of another type."""
    where = problem.message.partition(": ")[0]
    member = where.rpartition(".")[2]
    others = [other for other in GAME_TYPES if member in _members(GAME_TYPES[other].model)]
    if problem.code != "unknown-member" or not others:
        return problem
    kinds = " and ".join(others)
    return Refused(problem.code, f"{where}: a member of games of kind {kinds}, and this one is of kind {kind}")


def _members(model: type[Members]) -> set[str]:
    """Return the members of a game of some type, and of its participants."""
    (participant,) = get_args(model.model_fields["participants"].annotation)
    return {*model.model_fields, *participant.model_fields}


def _undated(game: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the game of a correction without its date, and that date."""
    return {name: value for name, value in game.items() if name != "occurred_at"}, game.get("occurred_at")


def corrected_game(data: dict[str, Any], played_at: int) -> tuple[dict[str, Any], int]:
    """Return the game as a `game.corrected` states it, and when it ended: it keeps its date unless that was wrong."""
    game, dated = _undated(data["game"])
    return game, played_at if dated is None else parse_instant(dated)


def default_id(type_name: str, occurred_at: int, data: dict[str, Any]) -> str:
    """Return the id of an event that has none: a game's comes from its game_id, others are a hash of type, time and
    data.
    """
    if type_name == "game.recorded":
        return f"game:{data['game_id']}"
    return f"{type_name}:{hashlib.sha256(meaning(type_name, occurred_at, data).encode()).hexdigest()[:32]}"


def meaning(type_name: str, occurred_at: int, data: dict[str, Any]) -> str:
    """Return what an event says: the same text for the same content, whether defaults are spelled out or not."""
    said = _said(type_name, data)
    if type_name == "game.corrected":
        game, dated = _undated(data["game"])
        said["game"] = _said("game.recorded", game) | ({} if dated is None else {"occurred_at": dated})
    return dump({"type": type_name, "occurred_at": format_instant(occurred_at), "data": said})


def _said(type_name: str, data: dict[str, Any]) -> dict[str, Any]:
    model = GAME_TYPES[data.get("kind", "placing")].model if type_name == "game.recorded" else TYPES[type_name].model
    return model.model_validate(data).model_dump(exclude_defaults=True, exclude_none=True)


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))
