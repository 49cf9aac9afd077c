"""Turn rulesets, from TOML files or published events, into versions that can score games; find the periods of lists.

A file is read into the event model `Ruleset`; `bind` joins it with its rule and reports mismatches. Problems name the
key and, in a file, the line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from importlib import resources
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ratings_ledger.ledger.events.canonical import INSTANT_MAX, INSTANT_MIN
from ratings_ledger.ledger.events.fields import NUMBER_NAME, describe_requirement
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import day_start
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections.contract import (
    COMMON_COLUMNS,
    NUMBERS,
    PLAYERS_MAX,
    STATE_RULE_COLUMNS,
    UNITS_MAX,
    Params,
    Rule,
    StateValues,
    joined,
)
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.lists import LISTS, RankingList
from ratings_ledger.projections.lists.best_of import PLACE_TIE_BREAKS
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF
from ratings_ledger.projections.rulesets.registry import find_rule, rule_names
from ratings_ledger.projections.rulesets.rule_errors import (
    RULE_ERRORS,
    ContractError,
    describe_error,
    describe_value,
    is_built_in,
    read_integers,
    read_state,
    redirect_output,
    rule_table,
)

# The names of the files that `init` publishes, in this order.
SHIPPED = (
    "galactic-points-1",
    "b5-league-1",
    "youplay-league-1",
    "youplay-bluemax-1",
    "italia-2010-1",
    "club-catan-elo-1",
    "catan-elo-2009-01",
    "catan-monthly-pre-2008-03",
    "catan-monthly-2008-03",
    "catan-open-pre-2008-03",
    "catan-open-2008-03",
    "catan-annual-pre-2008-03",
    "catan-annual-2008-03",
    "youplay-wsim-v0",
    "youplay-wsim-v1",
    "youplay-wsim-v2",
    "b5-league-2",
    "youplay-bluemax-2",
)
_SHIPPED_FOLDER = resources.files("ratings_ledger.projections").joinpath("shipped")
# All other files in the folder are published on request only, most of them for any game.
ON_REQUEST = tuple(
    sorted(
        {file.name.removesuffix(".toml") for file in _SHIPPED_FOLDER.iterdir() if file.name.endswith(".toml")}
        - {*SHIPPED}
    )
)
# Limits of a ruleset file, far above what any ruleset needs.
NESTED_MAX, CHARACTERS_MAX = 200, 200_000
INEXACT_MESSAGE = (
    'must be a whole number, or a string such as "7.5" where a rule takes fractions; floats and times are not allowed'
)
# The system that is published for any game by default; its text has the placeholders GAME and ZONE.
ELO = "elo"
# Members that define ladders, periods, seasons and entrants. All versions of a ruleset share them.
SHARED_MEMBERS = ("partition", "time_zone", "freeze", "period", "period_by", "season_by", "entrant")
# The recorded time of shipped rulesets: the same in every ledger, so that one ledger can import another's export.
SHIPPED_AT = "2026-01-01T00:00:00.000000Z"
# The columns with scores, which rulesets read in units of their own.
SCORES = frozenset({"score", "side_score"})
# The assumptions of shipped versions that were recognised only after their texts, which never change, were published.
_WITHIN_TIME = (
    "the page gives a point for a win within time; it is assumed that the point is given even without a victory"
)
UNMARKED: Mapping[str, Mapping[str, str]] = {
    "b5-league@1": {
        "season_months": "the page says that a season lasts 4 months, not when it begins",
        "within_time": _WITHIN_TIME,
    },
    "b5-league@2": {"within_time": _WITHIN_TIME},
    "catan-open@2008-03": {
        "min_games": "the page says seven for the list of a month; it is assumed to apply to the open list, too",
    },
    "catan-elo@2009-01": {
        "account": "the page gives free accounts no ranking value; players counted before are assumed to stay ranked",
    },
}


class Reading(NamedTuple):
    """The columns that a ruleset's rule reads, and their units; equal for rulesets that read the same numbers.

    score_unit: the number of units in a point of the score
    score_sign: 1, or -1 if the lowest score is best
    absent:     (column, number) pairs: the number to use if a game has no such custom number
    zone:       the time zone in which the rule reads the year of a game
    """

    columns: tuple[str, ...]
    score_unit: int = 1
    score_sign: int = 1
    absent: tuple[tuple[str, int], ...] = ()
    zone: str = "UTC"


def find_reading(columns: tuple[str, ...], ruleset: Ruleset) -> Reading:
    """Return the reading of a ruleset whose rule reads these columns."""
    reads_scores = not SCORES.isdisjoint(columns)
    absent = (
        (f"{NUMBERS}{name}", limits.absent)
        for name, limits in sorted(ruleset.numbers.items())
        if isinstance(limits.absent, int) and f"{NUMBERS}{name}" in columns
    )
    return Reading(
        columns,
        10**ruleset.score_decimals if reads_scores else 1,
        -1 if reads_scores and ruleset.score_order == "low" else 1,
        tuple(absent),
        ruleset.time_zone if "year" in columns else "UTC",
    )


class Version(NamedTuple):
    """A version of a ruleset that can score games, with its rule, its parameters, and its position in the log."""

    ruleset: Ruleset
    rule: Rule
    params: Params
    constants: tuple[int, ...]
    effective_from: int | None  # microseconds since 1970; None: only in force if it is requested
    position: int
    own_start: StateValues = ()  # the initial state from the rule's own `start`, if the rule has state

    @property
    def ranking(self) -> RankingList:
        """Return the kind of list that ranks the points."""
        return LISTS[self.rule.ranking]

    @property
    def reading(self) -> Reading:
        """Return the columns that the rule reads, and their units."""
        return find_reading(self.rule.columns, self.ruleset)

    @property
    def is_built_in(self) -> bool:
        """Tell whether the rule comes with this program."""
        return is_built_in(self.rule)

    @property
    def start(self) -> int:
        """Return the points of a new player, in units."""
        return self.start_state[0]

    @property
    def start_points(self) -> ExactNumber:
        """Return the points of a new player."""
        return ExactNumber(self.start, self.rule.scale)

    @property
    def start_state(self) -> StateValues:
        """Return the state of a new player: a number for each of the rule's state columns, the points first."""
        return self.own_start or (self.params.start * self.rule.scale,)

    @property
    def start_keys(self) -> tuple[str, ...]:
        """Return the keys of the parameters that determine a player's starting points on a ladder."""
        by_season = "season" in self.ruleset.partition.by
        return ("start", "carry_over", "season_months") if by_season else ("start",)

    @property
    def ranked_by(self) -> str | None:
        """Return a description of the value by which its ladders rank; None if they rank by points."""
        if self.rule.rank_by is None:
            return None
        return re.sub(r"\{(\w+)\}", lambda name: str(getattr(self.params, name[1], name[0])), str(self.rule.ranked_by))


def list_games(versions: Iterable[Version]) -> set[str]:
    """Return the games that versions score, by name."""
    return {game for version in versions for game in version.ruleset.scope.game}


def assumptions_of(ruleset: Ruleset) -> dict[str, str]:
    """Return the assumptions of a version: by key, the reason why its value is an assumption."""
    return {**UNMARKED.get(ruleset.name, {}), **ruleset.assumed}


def assumptions_among(ruleset: Ruleset, keys: Iterable[str]) -> dict[str, str]:
    """Return the assumptions of a version about the given keys, in the order of the keys."""
    assumed = assumptions_of(ruleset)
    return {key: assumed[key] for key in dict.fromkeys(keys) if key in assumed}


class RulesetProblem(NamedTuple):
    """A problem of a ruleset: the dotted key, the message, and the line in its file if there is one."""

    key: str
    message: str
    line: int | None = None


NESTED_TOO_DEEPLY = RulesetProblem("", f"tables and lists must be nested at most {NESTED_MAX} deep")


def parse_toml(text: str) -> tuple[dict[str, Any] | None, list[RulesetProblem]]:
    """Return the tables of a ruleset in TOML, or the problems that prevent parsing it."""
    for number, line_text in enumerate(text.splitlines(), 1):
        # Dotted keys nest tables, and parsing takes quadratic time in the number of dots.
        if max(map(line_text.count, ".[{")) > NESTED_MAX:
            return None, [
                RulesetProblem("", f"the line has more than {NESTED_MAX} dots or brackets; shorten it", number)
            ]
    if len(text) > CHARACTERS_MAX:
        return None, [
            RulesetProblem("", f"the text has {len(text):,} characters; a ruleset has at most {CHARACTERS_MAX:,}")
        ]
    try:
        data = tomllib.loads(text)
    except RecursionError:
        return None, [NESTED_TOO_DEEPLY]
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        return None, [RulesetProblem("", str(error), int(line.group(1)) if line else None)]
    except ValueError:
        return None, [RulesetProblem("", "a number has too many digits; shorten it")]
    if is_nested_too_deeply(data):
        return None, [NESTED_TOO_DEEPLY]
    if isinstance(data.get("effective_from"), date):
        data["effective_from"] = data["effective_from"].isoformat()
    return data, []


def is_nested_too_deeply(data: dict[str, Any]) -> bool:
    """Tell whether tables and lists are nested too deeply."""
    level: list[Any] = [data]
    for _ in range(NESTED_MAX):
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [part for parts in inner for part in parts if isinstance(part, (dict, list))]
    return bool(level)


def read_toml(text: str) -> tuple[Ruleset | None, list[RulesetProblem]]:
    """Return the ruleset in a TOML text, or the problems of the text."""
    data, problems = parse_toml(text)
    if data is None:
        return None, problems
    ruleset, problems = read_ruleset(data)
    return ruleset, [problem._replace(line=_find_line(text, problem.key)) for problem in problems]


def read_ruleset(data: dict[str, Any]) -> tuple[Ruleset | None, list[RulesetProblem]]:
    """Return the ruleset that the data describes if a registered rule can run it, or the problems of the data."""
    if is_nested_too_deeply(data):
        return None, [NESTED_TOO_DEEPLY]
    if problems := [RulesetProblem(key, INEXACT_MESSAGE) for key in _find_inexact_keys(data)]:
        return None, problems
    try:
        ruleset = Ruleset.model_validate(data)
    except ValidationError as error:
        return None, _list_problems(error, "", Ruleset, data)
    version, problems = bind(ruleset)
    if problems == [_describe_missing_rule(ruleset)]:
        # The author of a ruleset can choose another rule. A published ruleset waits for its package instead.
        choices = f"; available rules: {', '.join(rule_names())}{did_you_mean(ruleset.rule, rule_names())}"
        problems = [problem._replace(message=problem.message + choices) for problem in problems]
    return (ruleset if version else None), problems


def _describe_missing_rule(ruleset: Ruleset) -> RulesetProblem:
    return RulesetProblem("rule", f"{quote(ruleset.rule)} is not installed")


# long, because it lists all checks of a ruleset in the order of their messages
def bind(ruleset: Ruleset, position: int = 0) -> tuple[Version | None, list[RulesetProblem]]:
    """Bind a ruleset to its rule. Return the version with checked parameters, or the problems."""
    try:
        bound_rule = find_rule(ruleset.rule)
    except ValueError as error:
        return None, [RulesetProblem("rule", str(error))]
    if bound_rule is None:
        return None, [_describe_missing_rule(ruleset)]
    try:
        params = bound_rule.params.model_validate(ruleset.params)
    except ValidationError as error:
        return None, _list_problems(error, "params", bound_rule.params, ruleset.params)
    except RULE_ERRORS as error:
        message = f"{bound_rule.id} cannot read the parameters: {describe_error(error, None)}"
        return None, [RulesetProblem("params", message)]
    problems = [
        *_find_rule_problems(bound_rule, params),
        *(
            RulesetProblem("scope.kind", f"{quote(kind)} is not a game type ({', '.join(GAME_TYPES)})")
            for kind in ruleset.scope.kind
            if kind not in GAME_TYPES
        ),
        *(
            RulesetProblem(
                "scope.kind", f"{bound_rule.id} scores games of kind {' or '.join(find_kinds(bound_rule))}, not {kind}"
            )
            for kind in ruleset.scope.kind
            if find_kinds(bound_rule) and kind in GAME_TYPES and kind not in find_kinds(bound_rule)
        ),
        *(
            RulesetProblem("partition.bands", f"the band {band} ends before it begins; write the smaller number first")
            for band in ruleset.partition.bands
            if parse_band(band)[0] > parse_band(band)[1]
        ),
        *(
            RulesetProblem(
                f"assumed.{key}", "neither a parameter nor a member of the ruleset has this name; correct or remove it"
            )
            for key in ruleset.assumed
            if key not in {*bound_rule.params.model_fields, *Ruleset.model_fields, *_list_nested_keys(ruleset.params)}
        ),
    ]
    by, bands, scope = ruleset.partition.by, ruleset.partition.bands, ruleset.scope
    for key, values in (("by", by), ("bands", bands)):
        if len(set(values)) < len(values):
            problems.append(RulesetProblem(f"partition.{key}", "a value occurs twice; write each value once"))
    if scope.players_max is not None and scope.players_max < scope.players_min:
        message = f"{scope.players_max} is below players_min ({scope.players_min}); raise it, or lower players_min"
        problems.append(RulesetProblem("scope.players_max", message))
    can_sum_lists = "year" in by and "month" not in by and getattr(params, "of", "") != ruleset.id
    if (kind := LISTS.get(bound_rule.ranking)) and kind.sums_lists and not can_sum_lists:
        problems.append(
            RulesetProblem(
                "partition.by",
                "an annual list needs a partition by year and not by month; its parameter `of` must name another "
                "ruleset, whose monthly lists it sums",
            )
        )
    if ruleset.freeze == "league-start" and "league" not in by:
        problems.append(
            RulesetProblem(
                "freeze", "needs a partition by league, because each league keeps the version that it began under"
            )
        )
    if params.carry_over and "season" not in by:
        problems.append(
            RulesetProblem(
                "params.carry_over", "needs a partition by season, because points carry over from season to season"
            )
        )
    if bands and "players" not in by:
        problems.append(RulesetProblem("partition.bands", "bands need a partition by players"))
    problems += _find_unusable_members(ruleset, bound_rule)
    # A seat that changed hands has two players.
    constants, reason = _prepare_constants(bound_rule, params, min(2 * (scope.players_max or PLAYERS_MAX), PLAYERS_MAX))
    start, no_start = ((), None) if reason else _read_start(bound_rule, params)
    problems += [problem for problem in (reason, no_start) if problem]
    if problems:
        return None, problems
    since = None if ruleset.effective_from is None else _find_start(ruleset.effective_from, ruleset.time_zone)
    return Version(ruleset, bound_rule, params, constants, since, position, start), []


def _find_rule_problems(rule: Rule, params: Params) -> Iterator[RulesetProblem]:
    """Yield the problems that prevent a rule from running: its list, its columns, or its start points."""
    if rule.ranking not in LISTS:
        hint = did_you_mean(rule.ranking, LISTS)
        yield RulesetProblem(
            "rule", f"{rule.id} names the list {quote(rule.ranking)}; the lists are {', '.join(LISTS)}{hint}"
        )
    elif missing := [name for name in LISTS[rule.ranking].params if name not in type(params).model_fields]:
        yield RulesetProblem(
            "rule",
            f"{rule.id} names the list {rule.ranking}, which needs the parameters "
            f"{', '.join(missing)}; derive its params from {LISTS[rule.ranking].model}",
        )
    elif LISTS[rule.ranking].reads_places(params) and "place" not in rule.columns:
        yield RulesetProblem(
            "params.tie_breaks",
            f"{joined(PLACE_TIE_BREAKS)} need the column place, which {rule.id} does not read; leave them out",
        )
    common = _common_columns(rule)
    known = {*common, *(name for columns in COLUMNS_OF.values() for name in columns)}
    for name in rule.columns:
        if name not in known:
            hint = did_you_mean(name, known)
            message = f"{rule.id} reads the column {quote(name)}, which no game type has; the columns are "
            yield RulesetProblem("rule", message + _describe_columns(rule) + hint)
    if known.issuperset(rule.columns) and not find_kinds(rule):
        message = f"{rule.id} reads the columns {', '.join(rule.columns)}, but no game type has all of them"
        yield RulesetProblem("rule", f"{message}; the columns are {_describe_columns(rule)}")
    limit = UNITS_MAX // rule.scale
    if abs(params.start) > limit:
        yield RulesetProblem(
            "params.start",
            f"must be from {-limit:,} to {limit:,}, not {params.start:,}: a point has {rule.scale:,} units",
        )


def _common_columns(rule: Rule) -> set[str]:
    """Return the columns that a rule may read in every game type, including those of its custom numbers."""
    if not rule.state:
        return {*COMMON_COLUMNS}
    custom = {name for name in rule.columns if re.fullmatch(re.escape(NUMBERS) + NUMBER_NAME, name)}
    return {*COMMON_COLUMNS, *STATE_RULE_COLUMNS, *custom}


def _describe_columns(rule: Rule) -> str:
    common = [*COMMON_COLUMNS, *STATE_RULE_COLUMNS, f"{NUMBERS}NAME"] if rule.state else [*COMMON_COLUMNS]
    own = [f"{', '.join(columns)} (kind {name})" for name, columns in COLUMNS_OF.items() if columns]
    return "; ".join([", ".join(common), *own])


def _find_unusable_members(ruleset: Ruleset, rule: Rule) -> Iterator[RulesetProblem]:
    """Yield a problem for each member about periods, seasons, clubs or scores that this rule cannot use."""
    if ruleset.period == "event" and ruleset.period_by is None:
        yield RulesetProblem("period_by", 'required with period = "event"; write "league", "season" or "numbers.NAME"')
    if ruleset.period != "event" and ruleset.period_by is not None:
        yield RulesetProblem("period_by", f'only valid with period = "event"; the period here is {ruleset.period}')
    if ruleset.period != "game" and rule.score_period is None:
        yield RulesetProblem("period", f'{rule.id} scores game by game; leave out this key, or write period = "game"')
    if ruleset.period == "game" and rule.score is None:
        yield RulesetProblem("period", f'{rule.id} scores only whole periods; write period = "day", "week" or "month"')
    if ruleset.entrant == "club" and not rule.adds:
        yield RulesetProblem(
            "entrant",
            f"{rule.id} depends on the points before a game, so it cannot rate clubs; use a rule that only adds "
            'points, such as placement-points/2, or entrant = "player"',
        )
    if ruleset.takes != "sum" and ruleset.entrant != "club":
        yield RulesetProblem(
            "takes", 'only valid with entrant = "club", because it decides which points a club gets from its players'
        )
    if rule.state:
        return
    if ruleset.season_by is not None:
        yield RulesetProblem(
            "season_by", f"{rule.id} keeps only points, so a new season changes nothing; leave out this key"
        )
    for member in ("score_decimals", "score_order"):
        if getattr(ruleset, member) != Ruleset.model_fields[member].default:
            yield RulesetProblem(member, f"has no effect, because {rule.id} does not read scores; leave out this key")


def _prepare_constants(rule: Rule, params: Params, players_max: int) -> tuple[tuple[int, ...], RulesetProblem | None]:
    """Prepare a rule's constants for up to `players_max` players, or return the problem that prevents it."""
    function: Any = rule.refuse_params
    try:
        with redirect_output(rule):
            reason = function(params, players_max)
            if reason is not None:
                if not str(reason).strip():
                    raise ContractError(
                        f"refuse_params returned {describe_value(reason)}; it must return a message or None"
                    )
                key, colon, message = str(reason).partition(": ")
                return (), RulesetProblem(key, message) if colon else RulesetProblem("params", key)
            function = rule.prepare
            constants = read_integers(rule.prepare(params), "prepare")
        function = rule.table
        rule_table(rule)
    except RULE_ERRORS as error:
        return (), RulesetProblem("rule", f"{rule.id} fails: {describe_error(error, function)}")
    return constants, None


def _read_start(rule: Rule, params: Params) -> tuple[StateValues, RulesetProblem | None]:
    """Return the state of a new player from the rule, or the problem with the state; () for rules without state."""
    if rule.start is None:
        return (), None
    try:
        with redirect_output(rule):
            return read_state(rule, rule.start(params), "start"), None
    except RULE_ERRORS as error:
        return (), RulesetProblem("rule", f"{rule.id} fails: {describe_error(error, rule.start)}")


def _list_nested_keys(params: dict[str, Any]) -> set[str]:
    """Return the keys of the tables within the parameters."""
    return {name for value in params.values() if isinstance(value, dict) for name in value}


def find_kinds(rule: Rule) -> list[str]:
    """Return the game types whose participants have all columns that a rule reads."""
    common = _common_columns(rule)
    return [name for name, columns in COLUMNS_OF.items() if {*rule.columns} <= {*common, *columns}]


def find_sequel_problem(new: Version, old: Version) -> RulesetProblem | None:
    """Return the reason why `new` cannot be a version of the same ruleset as `old`, or None."""
    for member in SHARED_MEMBERS:
        before = getattr(old.ruleset, member)
        if getattr(new.ruleset, member) != before:
            parts = [*before.by, *before.bands] if member == "partition" else before
            what = ", ".join(map(str, parts)) if isinstance(parts, list) else parts
            return RulesetProblem(
                member,
                f"{old.ruleset.name} has {what or 'none'}; all versions of a ruleset must have the same {member}",
            )
    if new.rule.ranking != old.rule.ranking:
        return RulesetProblem(
            "rule",
            f"{new.rule.id} does not make the same kind of list as {old.ruleset.name}; "
            "all versions of a ruleset must make the same kind of list",
        )
    if new.rule.scale != old.rule.scale:
        return RulesetProblem(
            "rule",
            f"{new.rule.id} counts in 1/{new.rule.scale}, but {old.ruleset.name} in 1/{old.rule.scale}; "
            "all versions of a ruleset must have the same scale",
        )
    # Columns carry over by name, with unchanged numbers.
    scales = {column.name: column.scale for column in old.rule.state}
    for column in new.rule.state:
        if (scale := scales.get(column.name, column.scale)) != column.scale:
            return RulesetProblem(
                "rule",
                f"{new.rule.id} counts {column.name} in 1/{column.scale}, but {old.ruleset.name} in 1/{scale}; "
                "all versions of a ruleset must have the same scale",
            )
    return None


def find_months_problem(annual: Version, monthly: Sequence[Version]) -> str | None:
    """Return the reason why an annual list cannot sum the places on the lists with versions `monthly`, or None."""
    of, by = getattr(annual.params, "of", ""), annual.ruleset.partition.by
    if not monthly:
        return f"no ruleset is called {quote(of)}; publish the ruleset of the monthly lists first"
    months = monthly[0].ruleset.partition.by
    needed_members = ["month" if part == "year" else part for part in by]
    if sorted(months) != sorted(needed_members):
        lists = f"lists by {', '.join(months)}" if months else "a single list"
        return f"{of} has {lists}; the places of lists by {', '.join(needed_members)} are needed"
    if not monthly[0].ranking.pays_gold:
        return f"{monthly[0].rule.id}, the rule of {of}, does not make monthly lists; name a ruleset whose rule does"
    return None


def in_force(versions: Iterable[Version], instant: int) -> Version | None:
    """Return the version with the latest effective date up to an instant; among equal dates, the last recorded."""
    candidates = [v for v in versions if v.effective_from is not None and v.effective_from <= instant]
    return max(candidates, key=lambda v: (v.effective_from, v.position), default=None)


def newest(versions: Iterable[Version]) -> Version:
    """Return the version in force at the end of time; if none is ever in force, the last recorded version."""
    known = list(versions)
    return in_force(known, 2**63) or max(known, key=lambda version: version.position)


def oldest(versions: Iterable[Version]) -> Version:
    """Return the version that comes into force first; among equal dates, the last recorded.

    If none is ever in force, return the first recorded version.
    """
    known = list(versions)
    dated = [version.effective_from for version in known if version.effective_from is not None]
    first = in_force(known, min(dated)) if dated else None
    return first or min(known, key=lambda version: version.position)


def read_shipped_texts() -> list[str]:
    """Return the texts of the shipped ruleset files, in the order in which `init` publishes them."""
    return [read_shipped_text(name) for name in SHIPPED]


def read_shipped_text(name: str) -> str:
    """Return the text of a shipped ruleset file, given the file's name without its ending."""
    return _SHIPPED_FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8")


def parse_band(band: str) -> tuple[int, int]:
    """Return the smallest and largest number of players of a band such as 3-4, 8 or all."""
    if band == "all":
        return 0, PLAYERS_MAX
    low, _, high = band.partition("-")
    return int(low), int(high or low)


def _find_start(day: str, time_zone: str) -> int:
    # In zones east of Greenwich, the first day begins before the first instant that a record can hold.
    return INSTANT_MIN if day == "0001-01-01" else day_start(date.fromisoformat(day), time_zone)


def _find_inexact_keys(value: Any, key: str = "") -> list[str]:
    """Return the keys of floats and times, which records cannot hold."""
    if isinstance(value, dict):
        return [
            inexact_key
            for name, part in value.items()
            for inexact_key in _find_inexact_keys(part, f"{key}.{name}".lstrip("."))
        ]
    if isinstance(value, list):
        return [inexact_key for part in value for inexact_key in _find_inexact_keys(part, key)]
    return [] if isinstance(value, (str, int)) else [key]


def _list_problems(error: ValidationError, table: str, model: type[BaseModel], data: Any) -> list[RulesetProblem]:
    # A value with several possible forms has an error for each form; together they are one problem.
    forms: dict[tuple[Any, ...], list[str]] = {}
    values: dict[tuple[Any, ...], str] = {}
    for number, problem in enumerate(error.errors(include_url=False)):
        keys, is_form = _find_keys(problem, data)
        key = ".".join([table] * bool(table) + keys)
        own = {
            "extra_forbidden": f"unknown key{_suggest_key(key, table, model)}",
            "missing": "missing key",
        }.get(problem["type"])
        location = key, None if is_form else number
        forms.setdefault(location, []).append(own or _describe_requirement(problem))
        values[location] = "" if own else f" (it is {quote(problem['input'])})"
    return [
        RulesetProblem(location[0], "; or ".join(dict.fromkeys(needed)) + values[location])
        for location, needed in forms.items()
    ]


def _find_keys(problem: ErrorDetails, data: Any) -> tuple[list[str], bool]:
    """Return the keys that lead to an error in the data, and whether the error is about one of several forms."""
    keys: list[str] = []
    for index, part in enumerate(problem["loc"]):
        is_missing = problem["type"] == "missing" and index == len(problem["loc"]) - 1
        if part == "[key]":
            continue
        if isinstance(part, int) and isinstance(data, list):
            data = data[part]
        elif isinstance(data, dict) and (part in data or is_missing):
            keys.append(str(part))
            data = data.get(part)
        else:
            return keys, True
    return keys, False


# by the first word of pydantic's type of error: the requirement for a value of a wrong type
REQUIREMENTS = {
    "string": 'text in quotes is needed, such as "24"',
    "int": "a whole number is needed",
    "bool": "true or false is needed",
    "list": "a list is needed, in [ and ]",
    "dict": "a table is needed",
    "model": "a table is needed",
}


def _describe_requirement(problem: ErrorDetails) -> str:
    """Return a message about the value that a key needs."""
    if problem["loc"][0] == "assumed":
        return "must be text in quotes that gives the reason for the assumption"
    first_word = problem["type"].partition("_")[0]
    requirement = REQUIREMENTS.get(first_word) if problem["type"].endswith(("_type", "_parsing")) else None
    return requirement or describe_requirement(problem).removeprefix("Value error, ")


def _suggest_key(key: str, table: str, model: type[BaseModel]) -> str:
    """Suggest a similar key for an unknown one, else name the rules that have it, else list all keys."""
    name = key.rpartition(".")[2]
    if key != f"{table}.{name}".lstrip("."):
        return ""
    if hint := did_you_mean(name, model.model_fields):
        return hint
    rules_with_key = (
        [] if table != "params" else [rule.id for rule in _list_rules() if name in rule.params.model_fields]
    )
    if rules_with_key:
        return f"; {joined(rules_with_key)} {'have' if len(rules_with_key) > 1 else 'has'} it"
    return f"; the keys are {', '.join(sorted(model.model_fields))}"


def _list_rules() -> Iterator[Rule]:
    for name in rule_names():
        with suppress(ValueError):
            if installed := find_rule(name):
                yield installed


def _find_line(text: str, key: str) -> int | None:
    """Return the line of a dotted key, or else of its table, in a plain TOML text; None if neither is found."""
    *tables, name = key.split(".")
    table, best = "", None
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            table = header.group(1).strip()
            if table in (key, ".".join(tables)):
                best = number
        elif table == ".".join(tables) and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line):
            return number
    return best


class Period(NamedTuple):
    """The month or year of a list in the zone of its ruleset: from `start` up to and including `end`."""

    start: int
    end: int


def split_ladder_name(ladder: str, ruleset: Ruleset) -> dict[str, str]:
    """Return the values in the name of a ladder by member of its partition, such as a city or a month."""
    return dict(zip(ruleset.partition.by, ladder.split("/")[1:], strict=True))


def find_period(ruleset: Ruleset, ladder: str) -> Period | None:
    """Return the month or, without one, the year in the name of a ladder; None if the name has neither."""
    values = split_ladder_name(ladder, ruleset)
    if "month" in values:
        year, month = int(values["month"][:4]), int(values["month"][5:])
        return _make_period(ruleset.time_zone, (year, month), (year + month // 12, month % 12 + 1))
    if "year" in values:
        return _make_period(ruleset.time_zone, (int(values["year"]), 1), (int(values["year"]) + 1, 1))
    return None


def is_period_open(period: Period, now: int, as_of: int | None) -> bool:
    """Tell whether the period of a list is still open at `now`, or ends after `as_of`."""
    return now <= period.end or (as_of is not None and as_of < period.end)


def _make_period(time_zone: str, first: tuple[int, int], following: tuple[int, int]) -> Period:
    return Period(month_start(*first, time_zone), month_start(*following, time_zone) - 1)


def month_start(year: int, month: int, time_zone: str) -> int:
    """Return the first instant of a month in a time zone."""
    if (year, month) <= (1, 1):
        return INSTANT_MIN
    return INSTANT_MAX + 1 if year > 9999 else day_start(date(year, month, 1), time_zone)
