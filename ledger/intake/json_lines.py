"""From a line of JSON to a draft: a plain game in one step, anything else parsed and then read member by member.

    {"type":"game.recorded", "occurred_at":"2010-03-05T19:30:00Z", "data":{"game_id":"g-1", "participants":[...] ...}}

As in `ledger.events.fast_models`, the short way need not know everything that is valid, and has no messages of its own.
"""

from functools import cache
from typing import Any

from pydantic_core import SchemaValidator, ValidationError, core_schema

from ledger.events.canonical import dump_in_order, parse_instant, parse_object
from ledger.events.fast_models import STRICT, schema
from ledger.events.game_types import GAME_TYPES
from ledger.events.types import TYPES, Draft, default_id, read_by, read_event, read_id
from ledger.rejections import Refused

GAME = "game.recorded"
KIND = "placing"  # of a game that names none


def read_line(line: bytes) -> tuple[Draft, dict[str, Any]]:
    """A written event as a draft and its normalised data. Raises `Refused` just as the step-by-step way does.

    That is `canonical.parse_object`, then `events.read_event`.
    """
    if b'"game.recorded"' in line and b"\\" not in line:
        try:
            found = _plain_game(line)
        except (ValidationError, Refused):
            found = None
        if found is not None:
            return found
    return read_event(parse_object(line))


def _plain_game(line: bytes) -> tuple[Draft, dict[str, Any]] | None:
    """A line without backslashes, if it is a game with nothing that needs a closer look; else None.

    Raises `Refused`, `ValidationError`; their messages are not shown to people.
    """
    event: dict[str, Any] = _validator().validate_json(line)
    data = event["data"]
    text = dump_in_order(data)
    # this parser keeps the last of two members with one name: then the line has more texts than what was read from it
    if line.count(b'"') != text.count('"') + 4 * len(event) - 2 or data.get("kind", KIND) != KIND:
        return None
    occurred_at = parse_instant(event["occurred_at"])
    GAME_TYPES[KIND].check(data)
    event_id = read_id(event["id"]) if "id" in event else default_id(GAME, occurred_at, data)
    by = read_by(event["by"]) if "by" in event else None
    kind = TYPES[GAME]
    return Draft(event_id, GAME, kind.schema_version, kind.subject(data), occurred_at, text, by), data


@cache
def _validator() -> SchemaValidator:
    members: dict[str, tuple[core_schema.CoreSchema, bool]] = {
        "type": (core_schema.literal_schema([GAME]), True),
        "occurred_at": (core_schema.str_schema(), True),
        "data": (schema(GAME_TYPES[KIND].model), True),
        "id": (core_schema.str_schema(), False),
        "by": (core_schema.str_schema(), False),
    }
    fields = {name: core_schema.typed_dict_field(one, required=needed) for name, (one, needed) in members.items()}
    return SchemaValidator(core_schema.typed_dict_schema(fields, extra_behavior="forbid", config=STRICT))
