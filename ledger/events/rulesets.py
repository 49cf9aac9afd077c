"""The data of a `ruleset.published`: the rule, its parameters, the games that it scores, and their ladders."""

import re
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ratings_ledger.ledger.events.canonical import INTEGER_MAX
from ratings_ledger.ledger.events.fields import (
    NUMBER_NAME,
    NUMBERS_MAX,
    Members,
    NumberName,
    Slug,
    Text,
    Whole,
    build_error,
    must_match,
)
from ratings_ledger.ledger.events.games import Status
from ratings_ledger.ledger.events.zones import load_zone
from ratings_ledger.ledger.rejections import Refused, Rejection, quote


def _check_date(text: str) -> str:
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) and date.fromisoformat(text):
            return text
    except ValueError:
        pass
    raise build_error("bad-value", f"{quote(text)} is not a date like 2010-03-05")


def _check_zone(name: str) -> str:
    try:
        load_zone(name)
    except Refused as problem:
        raise build_error(problem.code, problem.message) from None
    return name


ZoneName = Annotated[str, AfterValidator(_check_zone)]
_VERSION = must_match(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}",
    "{} is not a version; write at most 32 letters, digits, dots, underscores and hyphens, a letter or digit first",
)
_RULE = must_match(
    r"[a-z0-9]+(-[a-z0-9]+)*/[1-9]\d{0,3}", "{} is not a rule; write its name and number, such as pairwise-elo/1"
)
_BAND = must_match(r"all|[1-9]\d{0,3}(-[1-9]\d{0,3})?", "{} is not a band of numbers of players, such as all, 4 or 3-4")


_PERIOD_BY = must_match(
    rf"league|season|numbers\.{NUMBER_NAME}",
    "{} is not a member that groups games into rating periods; write league, season or numbers.NAME",
)


def _check_season_by(value: Any) -> Any:
    """Refuse everything but "season" and the months in which seasons begin, in order."""
    if value is None or value == "season":
        return value
    if isinstance(value, list) and value and all(type(month) is int and 1 <= month <= 12 for month in value):
        if value == sorted(set(value)):
            return value
        raise build_error("bad-value", f"the months {quote(value)} must be in ascending order, each once")
    message = f'{quote(value)} is neither "season" nor a list of the months in which seasons begin, such as [1, 7]'
    raise build_error("bad-value", message)


def _check_absent(value: Any) -> Any:
    if value is None or value == "refuse" or (type(value) is int and abs(value) <= INTEGER_MAX):
        return value
    raise build_error("bad-value", f'{quote(value)} is neither "refuse" nor a whole number')


class NumberRange(Members):
    """The allowed range of one member of `numbers`, of a game or a participant, on the ladders of a ruleset.

    `absent` is the value that counts if none was recorded, or "refuse" if games without the number are refused. Without
    `absent`, rules see that no value was recorded.
    """

    min: Whole = -INTEGER_MAX
    max: Whole = INTEGER_MAX
    absent: Annotated[int | str | None, BeforeValidator(_check_absent)] = None

    @model_validator(mode="after")
    def _check_order(self) -> "NumberRange":
        if self.min > self.max:
            raise build_error("bad-value", f"min is {self.min} and max is {self.max}; min must not be greater than max")
        if isinstance(self.absent, int) and not self.min <= self.absent <= self.max:
            raise build_error("bad-value", f"absent is {self.absent}; it must be between {self.min} and {self.max}")
        return self


class Scope(Members):
    """Eligibility: which games a ruleset scores, and which participants it leaves out."""

    game: Annotated[list[Slug], Field(min_length=1)]
    kind: list[str] = ["placing"]
    players_min: Annotated[int, Field(ge=2, le=10_000)] = 2
    players_max: Annotated[int, Field(ge=2, le=10_000)] | None = None
    exclude_status: list[Status] = []
    exclude_group: list[str] = []
    exclude_accounts: list[Literal["premium", "free"]] = []


class Partition(Members):
    """The members of a game that name its ladder; `bands` divide the numbers of players into ranges such as 3-4."""

    by: Annotated[
        list[Literal["group", "city", "league", "season", "month", "year", "players"]], Field(max_length=4)
    ] = []
    bands: list[Annotated[str, _BAND]] = []

    @cached_property
    def is_by_time(self) -> bool:
        """Tell whether the ladders are monthly or annual."""
        return not {"month", "year"}.isdisjoint(self.by)


class Ruleset(Members):
    """One version of a ruleset: rule, parameters, eligibility, partition, and the source of these values."""

    id: Slug
    version: Annotated[str, _VERSION]
    rule: Annotated[str, _RULE]
    effective_from: Annotated[str, AfterValidator(_check_date)] | None = None
    time_zone: ZoneName = "Europe/Berlin"
    freeze: Literal["none", "league-start"] = "none"
    period: Literal["game", "day", "week", "month", "event"] = "game"
    period_by: Annotated[str, _PERIOD_BY] | None = None
    season_by: Annotated[str | list[int] | None, BeforeValidator(_check_season_by)] = None
    entrant: Literal["player", "club"] = "player"
    takes: Literal["sum", "best"] = "sum"
    score_decimals: Annotated[int, Field(ge=0, le=6)] = 0
    score_order: Literal["high", "low"] = "high"
    source: Text | None = None
    scope: Scope
    partition: Partition = Partition()
    numbers: Annotated[dict[NumberName, NumberRange], Field(max_length=NUMBERS_MAX)] = {}
    params: dict[str, JsonValue] = {}
    assumed: dict[str, Text] = {}

    @property
    def name(self) -> str:
        """Return `id@version`, the name in messages and for the option `--rules`."""
        return f"{self.id}@{self.version}"

    def has_ladder(self, name: str) -> bool:
        """Tell whether a name belongs to a ladder of this ruleset, even if the ladder has no games."""
        return name.partition("/")[0] == self.id

    @model_serializer(mode="wrap")
    def _omit_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit the members in `OMITTED_AT_DEFAULT` that have their default value.

        This keeps the records and cache keys of rulesets that were published before these members existed.
        """
        fields = type(self).model_fields
        return {
            name: value
            for name, value in dump(self).items()
            if name not in OMITTED_AT_DEFAULT or getattr(self, name) != fields[name].default
        }


# the members that records leave out at their defaults, because older records lack them
OMITTED_AT_DEFAULT = frozenset(
    {"period", "period_by", "season_by", "entrant", "takes", "score_decimals", "score_order", "numbers"}
)


def build_version_exists_rejection(ruleset: Ruleset) -> Rejection:
    """Build the refusal of a version that is already published with different content."""
    return Rejection(
        "version-exists", f"{ruleset.name} is already published with different content; a change needs a new version"
    )
