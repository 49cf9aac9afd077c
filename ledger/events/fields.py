"""Define annotated types for the values in events, and a fast path for the models of events.

Each type refuses a bad value with a code of `rejections.CODES`, and returns ids and labels in Unicode's composed form
(NFC). The fast path makes the same checks on dictionaries, without creating objects:

    {"player": "anna", "place": 1}   passes, and is returned in canonical order: {"place": 1, "player": "anna"}
    {"player": "anna", "place": 0}   is left to the model, which explains the error

If the fast path does not accept a value, the model decides. So the fast path need not know every valid value, and needs
no messages.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
)
from pydantic_core import ErrorDetails, PydanticCustomError, SchemaValidator, ValidationError, core_schema

from ratings_ledger.ledger.events.canonical import INTEGER_MAX
from ratings_ledger.ledger.rejections import CODES, Refused, quote

STRICT = core_schema.CoreConfig(strict=True)


@dataclass(frozen=True)
class PlainType:
    """A mark on an annotated type: values of the simpler `type` are valid unchanged, so no Python code has to run."""

    type: Any


def normalise_data(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    """Validate data by a model; return its members without nulls, in canonical order.

    Raises pydantic's `ValidationError`.
    """
    if (fast_path := _build_fast_path(model)) is not None:
        try:
            return fast_path(data)
        except ValidationError:
            pass
    members: dict[str, Any] = sort_members(model.model_validate(data).model_dump(exclude_unset=True, exclude_none=True))
    return members


def sort_members(value: Any) -> Any:
    """Return a JSON value with the members of its objects sorted by name."""
    if isinstance(value, dict):
        return {name: sort_members(value[name]) for name in sorted(value)}
    return [sort_members(item) for item in value] if isinstance(value, list) else value


@cache
def _build_fast_path(model: type[BaseModel]) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """Return a function that validates and sorts members; None for a model with its own validators."""
    parts = [part for field in model.model_fields.values() if (part := _find_item_model(field.annotation)) is not None]
    if not all(map(_has_field_checks_only, (model, *parts))):
        return None
    return SchemaValidator(build_schema(model)).validate_python


def _has_field_checks_only(model: type[BaseModel]) -> bool:
    """Tell whether a model has no validators of its own, so that the types of its members are its only checks."""
    decorators = model.__pydantic_decorators__
    return not (
        decorators.validators
        or decorators.field_validators
        or decorators.root_validators
        or decorators.model_validators
    )


def build_schema(model: type[BaseModel]) -> core_schema.CoreSchema:
    """Build the schema of a model's members in canonical order, from plain types if possible (see `PlainType`)."""
    fields = {
        name: core_schema.typed_dict_field(
            _build_member_schema(field.annotation, field.metadata), required=field.is_required()
        )
        for name, field in sorted(model.model_fields.items())
    }
    return core_schema.typed_dict_schema(fields, extra_behavior="forbid", config=STRICT)


def _build_member_schema(annotation: Any, metadata: list[Any]) -> core_schema.CoreSchema:
    if (items := _find_item_model(annotation)) is not None:
        return core_schema.list_schema(build_schema(items))
    if NoneType in get_args(annotation):
        # null is left to the model
        annotation = reduce(or_, (option for option in get_args(annotation) if option is not NoneType))
    is_object = dict in (get_origin(annotation), *map(get_origin, get_args(annotation)[:1]))
    full_type: Any = Annotated[(annotation, *metadata)] if metadata else annotation
    plain_types = [mark.type for mark in get_args(full_type) if isinstance(mark, PlainType)]
    if plain_types:
        full_type = Annotated[reduce(or_, (*plain_types, full_type)), Field(union_mode="left_to_right")]
    member_schema = TypeAdapter(full_type).core_schema
    return core_schema.no_info_after_validator_function(sort_members, member_schema) if is_object else member_schema


def _find_item_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model of the items of a list, or None."""
    item = get_args(annotation)[0] if get_origin(annotation) is list else None
    return item if isinstance(item, type) and issubclass(item, BaseModel) else None


# characters that reorder the text around them (Unicode's Bidi_Control)
_BIDI_CONTROL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"
TEAM_NUMBER_MAX = 9_999
_DECIMAL = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?", re.ASCII)


class Members(BaseModel):
    """The members of an event or of a part of it. Unknown members, conversions and later changes are refused.

    A validator is built when it is first used, because a command reads few types of events.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def build_error(code: str, message: str) -> PydanticCustomError:
    """Return an error with exactly this message, for a validator to raise."""
    return PydanticCustomError(code, "{text}", {"text": message})


def to_nfc(text: str) -> str:
    """Convert an id, a label or a name to the composed form (NFC) in which records hold it."""
    return unicodedata.normalize("NFC", text)


@lru_cache(maxsize=65_536)
def _check_identifier(text: str, limit: int, forbidden: str) -> str:
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and 0 < len(text) <= limit and not any(character in text for character in forbidden):
        return text  # the common case
    name = to_nfc(text)
    _refuse_surrogates(name)
    if not 1 <= len(name) <= limit:
        raise build_error("bad-identifier", f"{quote(text)} has {len(name)} characters; 1 to {limit} are allowed")
    for character in name:
        if unicodedata.category(character) == "Cc" or character in _BIDI_CONTROL:
            raise build_error(
                "bad-identifier", f"{quote(text)} holds the control character U+{ord(character):04X}; leave it out"
            )
        if character in forbidden:
            raise build_error(
                "bad-identifier", f"{quote(text)} holds {character!r}, which separates names elsewhere; leave it out"
            )
    if name != name.strip():
        raise build_error("bad-identifier", f"{quote(text)} begins or ends with a space; leave it out")
    return name


def _refuse_surrogates(text: str) -> None:
    # the JSON parser refuses surrogates; these come from a command line that is not UTF-8
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise build_error("lone-surrogate", f"{quote(text)} is not UTF-8; write it in UTF-8")


def must_match(pattern: str, message: str, code: str = "bad-value") -> AfterValidator:
    """Return a validator that refuses a text that does not match a pattern; {} in the message stands for the text."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise build_error(code, message.format(quote(text)))
        return text

    return AfterValidator(check)


def _normalise_decimal(text: str) -> str:
    if not _DECIMAL.fullmatch(text):
        message = "is not a decimal number such as 12 or -0.5, with at most 15 digits on each side of the point"
        raise build_error("bad-decimal", f"{quote(text)} {message}")
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text.lstrip("+"))
    whole, _, fraction = digits.partition(".")
    plain = (whole.lstrip("0") or "0") + ("." + fraction.rstrip("0")).rstrip(".")
    return plain if plain == "0" else sign + plain


def _normalise_score(value: Any) -> Any:
    if isinstance(value, str):
        plain = _normalise_decimal(value)
        return plain if "." in plain else int(plain)
    if isinstance(value, bool) or not isinstance(value, int):
        raise build_error("wrong-type", f"a score must be a whole number or a decimal string, not {quote(value)}")
    if abs(value) > INTEGER_MAX:
        raise build_error("integer-too-large", f"{quote(value)} is not between -{INTEGER_MAX} and {INTEGER_MAX}")
    return value


def _normalise_team(value: Any) -> Any:
    if isinstance(value, str):
        name = _check_identifier(value, 64, "/=")
        return int(name) if re.fullmatch(r"[1-9]\d{0,3}", name, re.ASCII) else name
    if isinstance(value, bool) or not isinstance(value, int):
        raise build_error("wrong-type", f"a team must be a whole number or a name, not {quote(value)}")
    if not 1 <= value <= TEAM_NUMBER_MAX:
        raise build_error("out-of-range", f"{quote(value)} is not a team's number; write 1 to {TEAM_NUMBER_MAX:,}")
    return value


def _check_text(text: str) -> str:
    _refuse_surrogates(text)
    is_printable = (text.isascii() and text.isprintable()) or not any(
        unicodedata.category(c) == "Cc" and c not in "\n\t" for c in text
    )
    if not is_printable or not 1 <= len(text) <= 2_000:
        requirement = "must have 1 to 2,000 characters, and no control characters other than line feeds and tabs"
        raise build_error("bad-text", f"{quote(text)} {requirement}")
    return text


def _build_ascii_type(limit: int, inside: str) -> PlainType:
    """Return a plain type for ids of at most `limit` printable ASCII characters, without a space at either end.

    `inside` is the class of characters in a regular expression, without the space.
    """
    pattern = f"^[{inside}]([ {inside}]*[{inside}])?$"
    return PlainType(Annotated[str, StringConstraints(max_length=limit, pattern=pattern)])


@cache
def _build_adapter(value_type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(value_type)


def are_canonical(value_type: Any, texts: Iterable[str]) -> bool:
    """Tell whether all texts are valid values of a type of this module, in the form they have in a record."""
    validate = _build_adapter(value_type).validate_python
    try:
        return all(validate(text, strict=True) == text for text in texts)
    except ValidationError:
        return False


PlayerId = Annotated[
    str, AfterValidator(lambda text: _check_identifier(text, 64, "/=")), _build_ascii_type(64, "!-.0-<>-~")
]
Label = Annotated[str, AfterValidator(lambda text: _check_identifier(text, 64, "/")), _build_ascii_type(64, "!-.0-~")]
# the two races of a dual race game are written Narn/Centauri
Race = Annotated[str, AfterValidator(lambda text: _check_identifier(text, 64, "")), _build_ascii_type(64, "!-~")]
# 5 characters shorter than an event's id, because the id of a `game.recorded` is "game:" and the game's id
GameId = Annotated[str, AfterValidator(lambda text: _check_identifier(text, 123, "")), _build_ascii_type(123, "!-~")]
EventId = Annotated[str, AfterValidator(lambda text: _check_identifier(text, 128, ""))]
LadderText = Annotated[str, AfterValidator(lambda text: _check_identifier(text, 256, ""))]
BatchName = LadderText
Slug = Annotated[
    str,
    must_match(
        "(?!.{65})" + _SLUG[1:-1],
        "{} is not a name like blue-max; write at most 64 lower-case letters, digits and single hyphens",
        "bad-slug",
    ),
    PlainType(Annotated[str, StringConstraints(max_length=64, pattern=_SLUG)]),
]
DecimalString = Annotated[str, AfterValidator(_normalise_decimal)]
Whole = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Score = Annotated[int | str, BeforeValidator(_normalise_score), PlainType(Whole)]
# the side of a participant: a number, or a name
Team = Annotated[
    int | str, BeforeValidator(_normalise_team), PlainType(Annotated[int, Field(ge=1, le=TEAM_NUMBER_MAX)])
]
Text = Annotated[str, AfterValidator(_check_text)]
# the pattern of the names of state columns, and of custom numbers: the numbers that a game or a participant has in
# addition to those of its game type
NUMBER_NAME = "[a-z][a-z0-9_]{0,31}"
NumberName = Annotated[
    str,
    must_match(
        NUMBER_NAME,
        "{} does not name a number; write at most 32 lower-case letters, digits and underscores, a letter first",
    ),
]
# how many custom numbers a game or a participant may have
NUMBERS_MAX = 16
CustomNumbers = Annotated[dict[NumberName, Whole], Field(max_length=NUMBERS_MAX)]
# how many columns the state of a player may have
STATE_MAX = 6
ColumnName = Annotated[
    str,
    must_match(
        NUMBER_NAME,
        "{} is not a column of a state; write at most 32 lower-case letters, digits and underscores, a letter first",
    ),
]
ExtraName = Annotated[
    str, must_match("[ -~]{1,64}", "{} is not a name in extra; write 1 to 64 printable ASCII characters")
]
Extra = dict[ExtraName, str]


def read_by(value: object) -> str:
    """Validate and return the name of a recorder. Raises `Refused`."""
    return _validate(Text, value, "by")


def read_id(value: object) -> str:
    """Validate an event's id and return it in composed form. Raises `Refused`."""
    return _validate(EventId, value, "id")


def read_player(value: object) -> str:
    """Validate a player's id and return it in composed form. Raises `Refused`."""
    return _validate(PlayerId, value, "")


def read_decimal(value: object) -> str:
    """Validate a decimal number such as 12 or -0.5 and return it in its plain form. Raises `Refused`."""
    return _validate(DecimalString, value, "")


def read_slug(value: object) -> str:
    """Validate and return the name of a game, such as chess. Raises `Refused`."""
    return _validate(Slug, value, "")


def _validate(value_type: Any, value: object, member: str) -> str:
    try:
        return str(_build_adapter(value_type).validate_python(value, strict=True))
    except ValidationError as error:
        raise to_refusal(error, member) from None


# this program's codes by pydantic's error type; pydantic's other errors get the code bad-value
_CODE_BY_ERROR = {
    "extra_forbidden": "unknown-member",
    "missing": "missing-member",
    "int_type": "not-an-integer",
    "greater_than_equal": "out-of-range",
    "less_than_equal": "out-of-range",
    **{f"{name}_type": "wrong-type" for name in ("string", "bool", "list", "dict", "model", "model_attributes")},
}


# requirements of a value, by pydantic's error type
_REQUIREMENTS = {
    "string_type": "text is needed",
    "int_type": "a whole number is needed",
    "bool_type": "true or false is needed",
    "list_type": "a list is needed",
    **{f"{name}_type": "an object is needed" for name in ("dict", "model", "model_attributes")},
    "literal_error": "this must be {expected}",
    "greater_than_equal": "this must be at least {ge}",
    "less_than_equal": "this must be at most {le}",
}


def describe_requirement(problem: ErrorDetails) -> str:
    """Describe the requirement that a value violates; for error types of packages' models, use pydantic's message."""
    limits = problem.get("ctx", {})
    if problem["type"] in ("too_short", "too_long"):
        least, actual = limits.get("min_length"), limits["actual_length"]
        limit = f"at least {least}" if least is not None else f"at most {limits['max_length']}"
        return f"there must be {limit}, not {actual if actual is not None else 'more'}"
    requirement = _REQUIREMENTS.get(problem["type"])
    return requirement.format(**limits) if requirement else re.sub("^Input should", "this should", problem["msg"])


def to_refusal(error: ValidationError, member: str = "") -> Refused:
    """Convert pydantic's errors to a refusal for the first one; `member` names a single value without a location."""
    # unknown members come first, because a misspelled name also causes a missing member
    problem = min(error.errors(include_url=False), key=lambda problem: problem["type"] != "extra_forbidden")
    # pydantic appends this mark to the location if the name of a member is wrong
    parts = [part for part in problem["loc"] if part != "[key]"]
    path = ".".join(str(part + 1) if isinstance(part, int) else part for part in parts) or member
    code = problem["type"] if problem["type"] in CODES else _CODE_BY_ERROR.get(problem["type"], "bad-value")
    text = problem["msg"]
    if code == "unknown-member":
        text = f"there is no member of this name (value {quote(problem['input'])})"
    elif code == "missing-member":
        text = "this member must be given"
    elif problem["type"] in ("too_short", "too_long"):
        text = describe_requirement(problem)
    elif problem["type"] not in CODES:
        text = f"{describe_requirement(problem)}, not {quote(problem['input'])}"
    return Refused(code, f"{path}: {text}" if path else text)
