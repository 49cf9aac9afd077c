"""Try a rule on random games of the types that its ruleset scores, before the ruleset is published.

The games take the same path as recorded games: facts, selection and replay. Every result is checked against the
contract: types, lengths and ranges, balanced books, and explanations that add up. A repeated call must give the same
result, whatever the output arrays contained before it, and so must compiled code. If the ladder takes adjustments, the
trial adds some: they put a few players as far ahead or behind as possible while the sums over all players stay
within bounds.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.projections import compiling
from ratings_ledger.projections.admission.drawn_games import (
    ColumnRanges,
    draw_columns,
    draw_facts,
    simplify_for_drawing,
)
from ratings_ledger.projections.admission.period_trials import try_periods
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING
from ratings_ledger.projections.expected_scores import ONE
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.eligibility import decide_eligibility
from ratings_ledger.projections.replay.replay import replay_compiled, replay_interpreted
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.rule_errors import (
    RULE_ERRORS,
    ContractError,
    describe_error,
    is_built_in,
    list_inexact_places,
    redirect_output,
    rule_table,
)
from ratings_ledger.projections.rulesets.versions import Version

# the default number of random games, and their default seed
DEFAULT_GAMES = 1_000
SEED = 1
# the values with which a rule's output arrays are filled before a call
JUNK = (0, 77, -(2**40))
# the number of days without games by which a trial ages the states of players
IDLE_DAYS = 100
NO_COLUMNS: ColumnRanges = {}
# the maximum rounding error, in units of 2^-32: in the sum of two expected scores, and between two draw probabilities
ROUNDING_MAX = 16


class Trial(NamedTuple):
    """The outcome of a trial.

    drawn:         the number of random games
    seed:          the seed of the random games
    scored:        the number of games that the rule scored
    uncounted:     each reason why games were not scored, with the number of these games
    problems:      a message for the first error of each kind
    compiled:      whether compiled code was tried, too
    is_measurable: False if the rule makes predictions, but `whatif` cannot measure them
    untried:       the game types without a scored game
    """

    drawn: int
    seed: int
    scored: int
    uncounted: list[tuple[str, int]]
    problems: list[str]
    compiled: bool
    is_measurable: bool
    untried: list[str]

    @property
    def is_empty(self) -> bool:
        """Tell whether no game was scored, so that the trial proves nothing about the rule."""
        return bool(self.drawn) and not self.scored


def try_rule(
    version: Version, seed: int = SEED, games: int = DEFAULT_GAMES, ranges: ColumnRanges = NO_COLUMNS
) -> Trial:
    """Try the rule of a version on random games. A rule of annual lists scores no games, so it is not tried.

    Args:
        version: the version to try.
        seed: the seed of the random games.
        games: the number of random games.
        ranges: the range of values for each column that random games lack, by column name.
    """
    if version.ranking.sums_lists:
        return Trial(
            drawn=0, seed=seed, scored=0, uncounted=[], problems=[], compiled=False, is_measurable=True, untried=[]
        )
    # the rule scores players, even on a ladder of clubs
    ruleset = version.ruleset.model_copy(update={"entrant": "player", "takes": "sum"})
    version = version._replace(effective_from=-(2**63), ruleset=ruleset)
    rng = Random(seed)
    draw_version = simplify_for_drawing(version, ranges)
    facts = draw_facts(draw_version, rng, games)
    problems: dict[str, str] = {}
    for problem in () if is_built_in(version.rule) else list_inexact_places(version.rule):
        problems[problem] = problem if version.rule.state else f"{problem}; points must be whole numbers"
    streams = Ladders(facts).streams(version.ruleset.id)
    selected_rows = {row for stream in streams.values() for row in stream.rows}
    uncounted: Counter[str] = Counter()
    if draw_version is not version:
        facts.rulesets = {version.ruleset.id: [version]}
        try:
            streams = {name: draw_columns(stream, version, ranges, rng, uncounted) for name, stream in streams.items()}
        except RuleFailure as failure:
            problems["sample"] = _describe_failure(failure)
            streams = {}
    are_compiled = [_try_ladder(Ladders(facts), stream, problems) for stream in streams.values()]
    scored_rows = {row for stream in streams.values() for row in stream.rows}
    uncounted.update(
        _find_uncounted_reason(facts, row, draw_version)
        for row in range(len(facts.start))
        if row not in selected_rows and not problems
    )
    scored_kinds = {facts.texts[facts.cells[facts.cell[row]].kind] for row in scored_rows}
    return Trial(
        drawn=games,
        seed=seed,
        scored=len(scored_rows),
        uncounted=uncounted.most_common(),
        problems=[*problems.values()],
        compiled=any(are_compiled),
        is_measurable=_has_measurable_predictions(version),
        untried=[kind for kind in version.ruleset.scope.kind if kind not in scored_kinds],
    )


def _has_measurable_predictions(version: Version) -> bool:
    """Tell whether games have places to compare with a rule's predictions; True if it makes none."""
    return version.rule.chance is None or any(GAME_TYPES[kind].has_places for kind in version.ruleset.scope.kind)


def _find_uncounted_reason(facts: Facts, row: int, version: Version) -> str:
    return str(decide_eligibility(facts, row, [version]).reason)


def _try_ladder(ladders: Ladders, stream: Stream, problems: dict[str, str]) -> bool:
    """Try all games of a ladder, and its list; return whether compiled code was tried, too.

    With rating periods, the list is not tried. The first problem of each kind is added to `problems`.
    """
    if stream.failure is not None:
        problems.setdefault("check", _describe_failure(stream.failure))
        return False
    version = stream.versions[0]
    try:
        if version.ruleset.period != "game":
            return try_periods(stream, partial(_call_twice, stream))
        trace = replay_interpreted(stream, {})
    except RuleFailure as failure:
        problems.setdefault("score", _describe_failure(failure))
        return False
    for game in range(len(stream.rows)):
        try:
            _try_game(trace, game)
        except RuleFailure as failure:
            problems.setdefault("game", _describe_failure(failure))
            break
    try:
        _try_states(trace)
        results = ladders.rank(trace)[1]
        LISTS[stream.rule.ranking].explain(results, stream.names[0])
    except RuleFailure as failure:
        problems.setdefault("state", _describe_failure(failure))
    except RULE_ERRORS as error:
        problems.setdefault("list", f"its list {stream.rule.ranking} failed: {describe_error(error, None)}")
    return _try_compiled(trace, problems)


def _try_states(trace: Trace) -> None:
    """Call a rule's functions on the states at the end of a ladder. Raises `RuleFailure`."""
    stream = trace.stream
    version, ladder = stream.versions[0], stream.ladder
    if not version.rule.state or not len(stream.rows):
        return
    row = stream.rows[-1]
    for player in range(len(trace.games)):
        state, games = trace.state(player), trace.games[player]
        for function_name, call in (
            ("enter", partial(rule_calls.enter_version, version, ladder, state)),
            ("new_season", partial(rule_calls.begin_season, version, ladder, row, state)),
            ("age", partial(rule_calls.age_state, version, ladder, row, state, IDLE_DAYS)),
            ("rank_by", partial(rule_calls.find_rank_value, version, ladder, state)),
            ("provisional", partial(rule_calls.is_provisional, version, ladder, state, games)),
        ):
            _call_twice(stream, row, function_name, (), call)


def _describe_failure(failure: RuleFailure) -> str:
    """Return the message of a failure, with the number of the random game."""
    return str(failure) if failure.row is None else f"{failure}, at random game {failure.row + 1}"


def _call_twice(stream: Stream, row: int, function_name: str, arguments: Any, call: Callable[[], Any]) -> Any:
    """Call a rule's function twice, and return the result.

    Raises `RuleFailure` if the second call returns something else, or if the function changed its arguments.
    """
    before = deepcopy(arguments)
    first, second = call(), call()
    if first != second:
        problem = f"{function_name} gave {first}, and then {second} for the same game"
        raise _make_failure(stream, row, function_name, f"{problem}; it must not keep state between calls")
    if arguments != before:
        raise _make_failure(stream, row, function_name, f"{function_name} changed its input; it must only read it")
    return first


def _try_game(trace: Trace, game: int) -> None:
    """Call all functions of a rule on a replayed game. Raises `RuleFailure`."""
    stream = trace.stream
    version, row, ladder = stream.versions[stream.version_indices[game]], stream.rows[game], stream.ladder
    low, high = stream.offsets[game], stream.offsets[game + 1]
    columns = [
        (trace.gaps.column(name) if name in HISTORY_COLUMNS else column)[low:high].tolist()
        for name, column in zip(version.rule.columns, stream.columns, strict=True)
    ]
    before = _find_states_before(trace, game)
    player_count, names = high - low, [f"player {number}" for number in range(high - low)]
    call_twice = partial(_call_twice, stream, row)
    arguments = (before, columns)

    reason = call_twice("check", arguments, lambda: rule_calls.check_game(version, ladder, row, player_count, columns))
    if reason is not None:
        problem = f"check first accepted the game, and then refused it: {reason}"
        raise _make_failure(stream, row, "check", f"{problem}; it must not keep state between calls")
    if version.rule.state:
        score = partial(rule_calls.score_states, version, ladder, row, before, columns)
        after = call_twice("score", arguments, score)[1]
        stored = [column[low:high] for column in trace.states_before]
        _compare_changes(stream, row, rule_calls.subtract(after[0], stored[0]), trace.changes[low:high].tolist())
    else:
        after = [_score_over_junk(trace, game, before[0], columns)]
    if version.rule.adds:
        _try_adding(stream, row, before, columns, rule_calls.subtract(after[0], before[0]))
    explain = partial(rule_calls.explain_states, version, ladder, row, names, before, columns, after)
    call_twice("explain", arguments, explain)
    call_twice("remark", arguments, lambda: rule_calls.remark_on_game(version, ladder, row, names, columns))
    if version.rule.chance is not None and player_count > 1:
        _try_chances(stream, row, before, columns)


def _find_states_before(trace: Trace, game: int) -> list[list[int]]:
    """Return the players' states before a game, by column."""
    stream = trace.stream
    version, low, high = stream.versions[stream.version_indices[game]], stream.offsets[game], stream.offsets[game + 1]
    stored = [column[low:high].tolist() for column in trace.states_before]
    if not version.rule.state:
        return stored
    changes_season, days_since = trace.gaps.column("changes_season"), trace.gaps.column("days_since")
    states = [
        rule_calls.bring_to_game(
            version, stream.ladder, stream.rows[game], state, changes_season[slot], days_since[slot]
        )
        for slot, state in enumerate(zip(*stored, strict=True), low)
    ]
    return [list(column) for column in zip(*states, strict=True)]


def _score_over_junk(trace: Trace, game: int, points: list[int], columns: list[list[int]]) -> list[int]:
    """Return the points after a game. Raises `RuleFailure` if the old values in the output array affect them."""
    stream = trace.stream
    version, row = stream.versions[stream.version_indices[game]], stream.rows[game]
    changes, minted = trace.changes[stream.offsets[game] : stream.offsets[game + 1]].tolist(), trace.mints[game]
    for junk in JUNK:
        score = partial(_score, stream, version, row, points, columns, junk)
        repeated_changes, repeated_minted = _call_twice(stream, row, "score", (points, columns), score)
        _compare_changes(stream, row, repeated_changes, changes)
        if repeated_minted != minted:
            problem = f"score minted {repeated_minted} and {minted} for the same game"
            raise _make_failure(stream, row, "score", f"{problem}; it must not keep state between calls")
    return [before + change for before, change in zip(points, changes, strict=True)]


def _try_adding(
    stream: Stream, row: int, before: list[list[int]], columns: list[list[int]], changes: list[int]
) -> None:
    """Raise `RuleFailure` if the changes depend on the players' points although the rule has `adds = True`."""
    version = stream.versions[0]
    if len(before) > 1:
        problem = f"a rule with adds = True keeps only points, not {len(before)} numbers"
        raise _make_failure(stream, row, "score", problem)
    shifted = [points + (number + 1) * version.rule.scale for number, points in enumerate(before[0])]
    after = rule_calls.score_states(version, stream.ladder, row, [shifted], columns)[1]
    if (shifted_changes := rule_calls.subtract(after[0], shifted)) != changes:
        problem = f"score gave the changes {changes}, but {shifted_changes} when the players had other points"
        raise _make_failure(stream, row, "score", f"{problem}; with adds = True it must not read points")


def _compare_changes(stream: Stream, row: int, repeated_changes: list[int], changes: list[int]) -> None:
    """Raise `RuleFailure` if a repeated call gave other changes."""
    if repeated_changes != changes:
        problem = f"score gave the changes {repeated_changes} and {changes} for the same game"
        remedy = f"it must fill in all {len(changes)} changes, and keep no state between calls"
        raise _make_failure(stream, row, "score", f"{problem}; {remedy}")


def _try_chances(stream: Stream, row: int, before: list[list[int]], columns: list[list[int]]) -> None:
    """Check a rule's predictions for at most two pairs of opponents. Raises `RuleFailure`."""
    version, ladder, player_count = stream.versions[0], stream.ladder, len(before[0])
    sides = columns[version.rule.columns.index("team")] if "team" in version.rule.columns else [MISSING] * player_count
    opponents = [player for player in range(1, player_count) if sides[player] == MISSING or sides[player] != sides[0]]
    states: Any = before if version.rule.state else before[0]
    for name, function in (
        ("chance", rule_calls.compute_expected_score),
        ("draw", rule_calls.compute_draw_probability),
    ):
        if getattr(version.rule, name) is None:
            continue
        for opponent in {*opponents[:1], *opponents[-1:]}:
            left, right = (
                _call_twice(
                    stream,
                    row,
                    name,
                    (before, columns),
                    partial(function, version, ladder, row, *pair, states, columns),
                )
                for pair in ((0, opponent), (opponent, 0))
            )
            error = abs(left + right - ONE) if name == "chance" else abs(left - right)
            if error > ROUNDING_MAX:
                problem = f"{name} gave {left} for one of two players and {right} for the other"
                condition = f"sum to 2^32 = {ONE}" if name == "chance" else "be the same"
                raise _make_failure(stream, row, name, f"{problem}; they must {condition}")


def _score(
    stream: Stream, version: Version, row: int, points: list[int], columns: list[list[int]], junk: int
) -> tuple[list[int], int]:
    """Score a game with `junk` in the output array; return the changes and the minted units. Raises `RuleFailure`."""
    rule = version.rule
    changes = [junk] * len(points)
    try:
        with redirect_output(rule):
            minted = rule.score(len(points), points, columns, version.constants, rule_table(rule), changes)
    except RULE_ERRORS as error:
        raise rule_calls.make_failure(stream.ladder, rule, error, row) from error
    return changes, minted


def _make_failure(stream: Stream, row: int, function_name: str, message: str) -> RuleFailure:
    return rule_calls.make_failure(stream.ladder, stream.rule, ContractError(message), row, function_name)


def _try_compiled(trace: Trace, problems: dict[str, str]) -> bool:
    """Replay with compiled code and compare; return whether compiled code was tried."""
    stream = trace.stream
    if is_built_in(stream.rule) or not compiling.is_allowed() or not len(stream.rows):
        return False
    compiled = replay_compiled(stream, {})
    if compiled is None:
        return False
    for name in ("points", "states", "games", "minted", "burned"):
        if _to_lists(getattr(compiled, name)) != _to_lists(getattr(trace, name)):
            problem = f"compiled and interpreted code computed different `{name}`; keep all numbers within 64 bits"
            problems.setdefault("compiled", problem)
    return True


def _to_lists(value: Any) -> Any:
    """Convert a column, or a list of columns, to lists for a comparison; return a number unchanged."""
    if isinstance(value, int):
        return value
    return [item if isinstance(item, int) else list(item) for item in value]


def describe_trial(trial: Trial) -> Iterator[str]:
    """Yield the outcome of a trial, line by line, without its problems."""
    if not trial.drawn:
        yield "not tried: it scores no games, because its lists sum places"
        return
    mode = ", interpreted and compiled" if trial.compiled else ""
    yield f"tried on {trial.drawn:,} random games (seed {trial.seed}): {trial.scored:,} scored{mode}"
    if not trial.problems:
        if trial.is_empty:
            yield "not tried: the list, and all functions except check and sample"
            yield (
                "to try them, let the rule's `sample` generate games that can be scored, or pass the values of a "
                "column that random games lack: --column NAME=LOW..HIGH"
            )
        elif trial.untried:
            yield f"not tried: games of type {' or '.join(trial.untried)}, because none was scored"
    if not trial.is_measurable:
        yield "whatif cannot measure its predictions, because games of this type have no places"
    for reason, count in trial.uncounted[:3]:
        yield f"{count:,} not scored: {reason}"
