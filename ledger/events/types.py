"""Define the types of events, and read parsed lines as normalised drafts for the log.

To add a type, write a model and an entry in `TYPES`. To add a game type, see `ledger.events.game_types`.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, ValidationError

from ratings_ledger.ledger.events.batches import ImportRecorded
from ratings_ledger.ledger.events.canonical import dump, dump_in_order, format_instant, parse_instant, parse_object
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

# the members that the author of an event states; exported events also have those that the log adds
EVENT_MEMBERS = frozenset({"type", "id", "occurred_at", "data"})
KNOWN_MEMBERS = EVENT_MEMBERS | {"position", "recorded_at", "by", "schema_version", "supersedes"}


class PlayerRegistered(Members):
    """A registration of a player; their account is premium unless stated otherwise."""

    player: PlayerId
    account: Literal["premium", "free"] = "premium"


class PlayerAccountChanged(Members):
    """A change of a player's account, from the event's `occurred_at` on."""

    player: PlayerId
    account: Literal["premium", "free"]


class PlayerRenamed(Members):
    """A new id for a player, in all games from the first; `new_player` may already have games (a merge)."""

    player: PlayerId
    new_player: PlayerId
    reason: Text | None = None


class ClubRenamed(Members):
    """A new name for a club, in all games from the first; `new_club` may already exist (a merge)."""

    club: Label
    new_club: Label
    reason: Text | None = None


class GameCorrected(Members):
    """The complete data of a game as it should have been recorded.

    `game` also has `occurred_at` if the date was wrong.
    """

    game_id: GameId
    reason: Text
    game: dict[str, Any]  # validated separately by the model of its game type


class GameDecision(Members):
    """A void or a reinstatement of a game."""

    game_id: GameId
    reason: Text


class EventVoided(Members):
    """A withdrawal of an event that is not about a game."""

    id: EventId
    reason: Text


class PointsAdjusted(Members):
    """A change of a player's points at the event's `occurred_at`; before their first game, a change of their start."""

    ladder: LadderText
    player: PlayerId
    points: DecimalString
    reason: Text


class PlayerSeeded(Members):
    """A player's state when they enter a ladder, whenever that is, and the number of games that they played elsewhere.

    `state` has values of the rule's columns by name, such as {"rating": "1650", "deviation": "80"}.
    """

    ladder: LadderText
    player: PlayerId
    state: Annotated[dict[ColumnName, DecimalString], Field(min_length=1, max_length=STATE_MAX)]
    games: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    reason: Text | None = None


class LeagueCreated(Members):
    """The start of a league. With `freeze = "league-start"`, rulesets score it by their version at this time."""

    league: Label
    game: Slug
    players_per_game: Annotated[int, Field(ge=2, le=8)]
    version: Text | None = None  # of the game


class LeagueJoined(Members):
    """A player's subscription to a league."""

    league: Label
    player: PlayerId


class ScheduledGame(Members):
    """A game of a league before it is played: the players in the order of their seats."""

    game_id: GameId
    seats: Annotated[list[PlayerId], Field(min_length=2, max_length=8)]


class LeagueScheduled(Members):
    """The schedule of a league: its games, drawn by a seed."""

    league: Label
    seed: Text
    games: Annotated[list[ScheduledGame], Field(min_length=1, max_length=100)]


class ZoneSet(Members):
    """The ledger's new home zone, in which times are shown and read. No ladder depends on it."""

    zone: ZoneName


class EventType(NamedTuple):
    """A type of event.

    model:                 the pydantic model of the data
    subject:               a function from the data to the event's subject, such as game:wl-18
    list_named_players:    a function from the data to the players that it names and that may be new; for a rename, the
                           new id
    is_silent:             whether no ladder depends on events of this type
    is_watched:            whether such an event can invalidate events that were checked before it was appended
    depends_on_any_event:  whether such an event depends on more than watched events, so that it is checked again if any
                           event was appended after its check
    cause:                 the name of such an event as the cause of a change of points; if empty, its type is the name
    decided:               the name of such an event as a decision about recorded events; empty if it decides nothing
    schema_version:        the newest version of the data
    """

    model: type[Members]
    subject: Callable[[dict[str, Any]], str]
    list_named_players: Callable[[dict[str, Any]], list[str]] = lambda data: []
    is_silent: bool = False
    is_watched: bool = False
    depends_on_any_event: bool = False
    cause: str = ""
    decided: str = ""
    schema_version: int = 1


def _build_player_subject(data: dict[str, Any]) -> str:
    return f"player:{data['player']}"


def _build_game_subject(data: dict[str, Any]) -> str:
    return f"game:{data['game_id']}"


def _build_league_subject(data: dict[str, Any]) -> str:
    return f"league:{data['league']}"


def _list_player(data: dict[str, Any]) -> list[str]:
    return [data["player"]]


def _list_new_player(data: dict[str, Any]) -> list[str]:
    return [data["new_player"]]


def _list_participants(data: dict[str, Any]) -> list[str]:
    return [participant["player"] for participant in data["participants"]]


TYPES = {
    "player.registered": EventType(PlayerRegistered, _build_player_subject, _list_player, cause="account"),
    "player.account_changed": EventType(
        PlayerAccountChanged, _build_player_subject, _list_player, cause="account", decided="account"
    ),
    "player.renamed": EventType(
        PlayerRenamed,
        _build_player_subject,
        _list_new_player,
        is_watched=True,
        depends_on_any_event=True,
        cause="rename",
        decided="renamed",
    ),
    "club.renamed": EventType(
        ClubRenamed,
        lambda data: f"club:{data['club']}",
        is_watched=True,
        depends_on_any_event=True,
        cause="club rename",
        decided="club renamed",
    ),
    # the model of a game depends on its member `kind`
    "game.recorded": EventType(Members, _build_game_subject, _list_participants),
    "game.corrected": EventType(
        GameCorrected,
        _build_game_subject,
        lambda data: _list_participants(data["game"]),
        cause="corrected",
        decided="corrected",
    ),
    "game.voided": EventType(GameDecision, _build_game_subject, cause="voided", decided="voided"),
    "game.reinstated": EventType(GameDecision, _build_game_subject, cause="reinstated", decided="counts again"),
    "event.voided": EventType(
        EventVoided,
        lambda data: f"event:{data['id']}",
        is_watched=True,
        depends_on_any_event=True,
        cause="taken back",
        decided="withdrawn",
    ),
    "points.adjusted": EventType(
        PointsAdjusted,
        _build_player_subject,
        _list_player,
        depends_on_any_event=True,
        cause="adjustment",
        decided="adjusted",
    ),
    "player.seeded": EventType(
        PlayerSeeded, _build_player_subject, _list_player, depends_on_any_event=True, cause="seed", decided="seeded"
    ),
    "ruleset.published": EventType(
        Ruleset, lambda data: f"ruleset:{data['id']}", is_watched=True, cause="rule change", decided="new rules"
    ),
    "league.created": EventType(
        LeagueCreated, _build_league_subject, is_watched=True, depends_on_any_event=True, cause="league"
    ),
    "league.joined": EventType(
        LeagueJoined, _build_league_subject, _list_player, is_silent=True, is_watched=True, depends_on_any_event=True
    ),
    "league.scheduled": EventType(LeagueScheduled, _build_league_subject, is_silent=True, is_watched=True),
    "ledger.zone_set": EventType(ZoneSet, lambda data: "ledger:zone", is_silent=True),
    "import.recorded": EventType(
        ImportRecorded, lambda data: f"import:{data['name']}", is_silent=True, depends_on_any_event=True
    ),
    "list.rows": EventType(ListRows, lambda data: f"list:{data['digest']}", is_silent=True, is_watched=True),
    "list.published": EventType(
        ListPublished, lambda data: f"ladder:{data['ladder']}", is_silent=True, is_watched=True
    ),
    "list.scheduled": EventType(
        ListScheduled, lambda data: f"schedule:{data['ladder']}", is_silent=True, is_watched=True
    ),
    **{
        name: EventType(model, lambda data: f"clock:{data['game_id']}", is_watched=True, depends_on_any_event=True)
        for name, model in CLOCK_TYPES.items()
    },
}
# the types of decisions about recorded events
DECISIONS = tuple(name for name, event_type in TYPES.items() if event_type.decided)


class Draft(NamedTuple):
    """A validated event that is not in the log yet; `data` is canonical JSON."""

    event_id: str
    type: str
    schema_version: int
    subject: str
    occurred_at: int  # microseconds since 1970 UTC
    data: str
    by: str | None = None  # who recorded the event elsewhere, if the line states that
    supersedes: str | None = None  # the id of the event to replace; a draft is refused if another event has replaced it
    position: int | None = None  # of an `import.recorded`: its position in the exported log, if the line states it

    def list_named_players(self) -> list[str]:
        """Return the players whom the draft names and who may be new."""
        return TYPES[self.type].list_named_players(parse_object(self.data.encode()))


# Upcasting: old forms of events are converted to the newest form when they are read; records are never rewritten. For a
# new schema version of a type, add a pure function from the previous version to `UPCASTERS`; a test keeps the chain
# complete.

Data = dict[str, Any]
# by type and schema version: the function that converts data of that version to the next version
Upcasters = Mapping[tuple[str, int], Callable[[Data], Data]]

UPCASTERS: Upcasters = {}


def upcast(type_name: str, version: object, current: int, data: Data, upcasters: Upcasters = UPCASTERS) -> Data:
    """Convert `data` of schema version `version` to version `current`. Raises `Refused` for an unknown version."""
    if version == current and version is not True:
        return data
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version < current:
        known = "1" if current == 1 else f"1 to {current}"
        raise Refused(
            "unknown-schema-version",
            f"{type_name} version {quote(version)} is unknown here (known: {known}); if a newer ratings-ledger "
            "wrote it, upgrade the program",
        )
    for old_version in range(version, current):
        data = upcasters[type_name, old_version](data)
    return data


def complete_event(event: dict[str, Any], now: int) -> dict[str, Any]:
    """Complete an event: wrap the data of a game in an event that records it, and add the time if needed."""
    if "type" not in event and "game_id" in event:
        data = {name: value for name, value in event.items() if name != "occurred_at"}
        time = {"occurred_at": event["occurred_at"]} if "occurred_at" in event else {}
        event = {"type": "game.recorded", "data": data, **time}
    return {"occurred_at": format_instant(now), **event}


def read_event(event: dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Read a parsed line as a draft, and return the draft with its normalised data. Raises `Refused` for an error.

    Normalised data has instants in UTC, composed ids (NFC) and no null members; defaults are not filled in. The members
    that exports have in addition are allowed, but `recorded_at` and `supersedes` are ignored, and `position` matters
    only for an `import.recorded`.
    """
    if not KNOWN_MEMBERS.issuperset(event):
        unknown = min(event.keys() - KNOWN_MEMBERS)
        members = _join_sorted(EVENT_MEMBERS)
        raise Refused("unknown-member", f"{quote(unknown)} is not a member of an event; the members are {members}")
    try:
        type_name, at, data = event["type"], event["occurred_at"], event["data"]
    except KeyError as missing:
        raise Refused("missing-member", f"the event has no member {missing}; add it") from None
    if not isinstance(type_name, str) or (event_type := TYPES.get(type_name)) is None:
        raise Refused("unknown-type", f"{quote(type_name)} is not a type of event; the types are {_join_sorted(TYPES)}")
    if not isinstance(data, dict):
        raise Refused("wrong-type", f"data must be an object, not {quote(data)}")
    occurred_at, current = parse_instant(at), event_type.schema_version
    if "schema_version" in event:
        data = upcast(type_name, event["schema_version"], current, data)
    data = read_data(type_name, data)
    event_id = read_id(event["id"]) if "id" in event else make_default_id(type_name, occurred_at, data)
    by = read_by(event["by"]) if "by" in event else None
    text = dump_in_order(data) if type_name == "game.recorded" else dump(data)
    draft = Draft(event_id, type_name, current, event_type.subject(data), occurred_at, text, by)
    if type_name == "import.recorded" and isinstance(position := event.get("position"), int):
        draft = draft._replace(position=position)
    return draft, data


def read_data(type_name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Validate and normalise the data of an event of this type. Raises `Refused`.

    The data of a game is in canonical order.
    """
    if type_name == "game.recorded":
        return _read_game(data)
    try:
        members = TYPES[type_name].model.model_validate(data).model_dump(exclude_unset=True, exclude_none=True)
    except ValidationError as error:
        raise to_refusal(error) from None
    if type_name == "game.corrected":
        game, date_text = _split_off_date(members["game"])
        date_member = {"occurred_at": format_instant(parse_instant(date_text))} if date_text is not None else {}
        members["game"] = _read_game(game) | date_member
        if members["game"]["game_id"] != members["game_id"]:
            old_id, new_id = quote(members["game_id"]), quote(members["game"]["game_id"])
            raise Refused(
                "game-id-changed",
                f"a correction of {old_id} cannot change its game_id to {new_id}; void {old_id} and record {new_id} "
                "instead",
            )
    return members


def _read_game(data: dict[str, Any]) -> dict[str, Any]:
    game_type = GAME_TYPES.get(kind) if isinstance(kind := data.get("kind", "placing"), str) else None
    if game_type is None:
        raise Refused("unknown-kind", f"{quote(kind)} is not a game type; the types are {_join_sorted(GAME_TYPES)}")
    try:
        game = normalise_data(game_type.model, data)
    except ValidationError as error:
        raise _explain_unknown_member(to_refusal(error), str(kind)) from None
    game_type.check(game)
    check_sides(game, game_type.team_fields, game_type.places)
    return game


def _explain_unknown_member(problem: Refused, kind: str) -> Refused:
    """Return a refusal of a game; for an unknown member, say where it belongs, or where free text goes.

    A member belongs to the game instead of a participant, to participants instead of the game, or to other game types.
    """
    if problem.code != "unknown-member":
        return problem
    path = problem.message.partition(": ")[0]
    member = path.rpartition(".")[2]
    is_of_participant = path.startswith("participants.")
    if (is_of_participant or path == member) and member in _list_member_names(GAME_TYPES[kind].model):
        owner, holder = ("the game", "a participant") if is_of_participant else ("a participant", "the game")
        return Refused(problem.code, f"{path}: this is a member of {owner}, not of {holder}; move it to {owner}")
    other_kinds = [name for name in GAME_TYPES if member in _list_member_names(GAME_TYPES[name].model)]
    if not other_kinds:
        return Refused(problem.code, f"{problem.message}; free text goes into extra")
    kinds = " or ".join(other_kinds)
    return Refused(problem.code, f"{path}: this game is of kind {kind}; only games of kind {kinds} have this member")


def _list_member_names(model: type[Members]) -> set[str]:
    """Return the names of the members of games with this model, and of their participants."""
    (participant,) = get_args(model.model_fields["participants"].annotation)
    return {*model.model_fields, *participant.model_fields}


def _split_off_date(game: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Split the `game` of a correction into its members without the date, and the date if it has one."""
    return {name: value for name, value in game.items() if name != "occurred_at"}, game.get("occurred_at")


def read_corrected_game(data: dict[str, Any], played_at: int) -> tuple[dict[str, Any], int]:
    """Return the game in the data of a `game.corrected`, and when it ended.

    It ended at `played_at` unless the date is corrected. Times are in microseconds.
    """
    game, date_text = _split_off_date(data["game"])
    return game, played_at if date_text is None else parse_instant(date_text)


def make_default_id(type_name: str, occurred_at: int, data: dict[str, Any]) -> str:
    """Make the id of an event without an id: from the game_id of a game, or from a hash of type, time and data."""
    if type_name == "game.recorded":
        return f"game:{data['game_id']}"
    return f"{type_name}:{hashlib.sha256(to_canonical_content(type_name, occurred_at, data).encode()).hexdigest()[:32]}"


def to_canonical_content(type_name: str, occurred_at: int, data: dict[str, Any]) -> str:
    """Return a canonical text of an event's content, in which defaults are omitted."""
    content = _omit_defaults(type_name, data)
    if type_name == "game.corrected":
        game, date_text = _split_off_date(data["game"])
        date_member = {} if date_text is None else {"occurred_at": date_text}
        content["game"] = _omit_defaults("game.recorded", game) | date_member
    return dump({"type": type_name, "occurred_at": format_instant(occurred_at), "data": content})


def _omit_defaults(type_name: str, data: dict[str, Any]) -> dict[str, Any]:
    model = GAME_TYPES[data.get("kind", "placing")].model if type_name == "game.recorded" else TYPES[type_name].model
    return model.model_validate(data).model_dump(exclude_defaults=True, exclude_none=True)


def _join_sorted(names: Any) -> str:
    return ", ".join(sorted(names))
