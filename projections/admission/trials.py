"""Tries a rule before anything is published, on drawn games of the types that its ruleset scores.

The games take the same path as recorded ones, through facts, selection and replay. Each is checked against the
contract: types, lengths and ranges, books that balance, the same answer twice whatever was in the places to be filled
in, explanations that add up, and compiled code that agrees. Some players get as many points as are allowed.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.games import draw_seats
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections import compiling
from ratings_ledger.projections.admission.drawn_columns import GivenColumns, draw_columns, without_columns
from ratings_ledger.projections.admission.drawn_sides import add_side_members
from ratings_ledger.projections.admission.period_trials import try_periods
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, UNITS_MAX
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.facts.decoding import apply, settle_facts
from ratings_ledger.projections.lists import LISTS
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import rule_calls
from ratings_ledger.projections.replay.eligibility import explain_not_counted
from ratings_ledger.projections.replay.ladders import Stream, list_partition_values
from ratings_ledger.projections.replay.replay import replay_compiled, replay_interpreted
from ratings_ledger.projections.replay.rule_calls import RuleFailure
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

GAMES = 1_000
SEED = 1
PLAYERS, SEATS_USUAL, SEATS_MANY = 200, 10, 60
FROM = 1_735_689_600_000_000  # 2025-01-01, made up like the rest
HOUR = 3_600_000_000
# how far somebody may be ahead for all together to stay within bounds
AHEAD = UNITS_MAX // 64
JUNK = (0, 77, -(2**40))
# how long somebody was away whom a rule with state is asked about
DAYS_AWAY = 100
NO_COLUMNS: GivenColumns = {}
# how much rounding may take from two expected scores that sum to one
NEARLY = 16


class Trial(NamedTuple):
    """The outcome: how many games were drawn and scored, why others were not, and what is wrong with the rule.

    `compiled`: whether compiled code was tried, too. `predicts`: whether `whatif` can measure its predictions.
    `untried`: the game types of which no game was scored.
    """

    drawn: int
    seed: int
    scored: int
    uncounted: list[tuple[str, int]]
    problems: list[str]
    compiled: bool
    predicts: bool
    untried: list[str]

    @property
    def is_empty(self) -> bool:
        """Tell whether games were drawn and none was scored: then the trial says nothing about the rule."""
        return bool(self.drawn) and not self.scored


def try_rule(version: Version, seed: int = SEED, games: int = GAMES, given: GivenColumns = NO_COLUMNS) -> Trial:
    """Try the rule of a version. A rule of annual lists scores no games, so none are drawn.

    Args:
        given: columns of the drawn games by name, with the numbers that they may hold
    """
    if version.ranking.sums_lists:
        return Trial(0, seed, 0, [], [], False, True, [])
    # the rule scores persons, whoever gets their points
    ruleset = version.ruleset.model_copy(update={"entrant": "player", "takes": "sum"})
    version = version._replace(effective_from=-(2**63), ruleset=ruleset)
    chance = Random(seed)
    drawing = without_columns(version, given)
    facts = _drawn(drawing, chance, games)
    problems: dict[str, str] = {}
    for why in () if is_built_in(version.rule) else list_inexact_places(version.rule):
        problems[why] = why if version.rule.state else f"{why}: points are whole numbers"
    streams = Ladders(facts).streams(version.ruleset.id)
    taken_on = {row for stream in streams.values() for row in stream.row}
    left_out: Counter[str] = Counter()
    if drawing is not version:
        facts.rulesets = {version.ruleset.id: [version]}
        try:
            streams = {name: draw_columns(one, version, given, chance, left_out) for name, one in streams.items()}
        except RuleFailure as failure:
            problems["sample"] = _at(failure)
            streams = {}
    found = [_try_ladder(Ladders(facts), stream, problems) for stream in streams.values()]
    scored = {row for stream in streams.values() for row in stream.row}
    left_out.update(
        _why(facts, row, drawing) for row in range(len(facts.start)) if row not in taken_on and not problems
    )
    scored_kinds = {facts.texts[facts.cells[facts.cell[row]].kind] for row in scored}
    return Trial(
        games, seed, len(scored), left_out.most_common(), [*problems.values()], any(found), _predicts(version),
        [kind for kind in version.ruleset.scope.kind if kind not in scored_kinds],
    )  # fmt: skip


def _predicts(version: Version) -> bool:
    """Tell whether the games of a rule that predicts results have places to measure it by."""
    return version.rule.chance is None or any(GAME_TYPES[kind].placed for kind in version.ruleset.scope.kind)


def _why(facts: Facts, row: int, version: Version) -> str:
    return str(explain_not_counted(facts, row, [version])[2])


def _drawn(version: Version, chance: Random, games: int) -> Facts:
    """Facts of `games` games, with adjustments halfway through that put a few players far ahead or behind."""
    facts = Facts(games, ZERO)
    names = [f"player-{number:03d}" for number in range(PLAYERS)]
    half = games // 2
    for number in range(1, games + 1):
        instant = FROM + number * HOUR
        kind = chance.choice(version.ruleset.scope.kind)
        # a few players meet often, as in a club
        circle = names[: chance.choice((12, 12, 12, PLAYERS))] if number % 50 else names
        sitting = iter(chance.sample(circle, len(circle)) + [f"guest-{number}-{guest}" for guest in range(PLAYERS)])
        seats = draw_seats(_seats(version, kind, chance, number), sitting, chance)
        data = {"game_id": f"g-{number}", "game": chance.choice(version.ruleset.scope.game), "kind": kind,
                **_labels(version, instant, chance), **GAME_TYPES[kind].draw(seats, chance)}  # fmt: skip
        add_side_members(data, version, chance)
        apply(facts, number, _event("game.recorded", instant, data))
    if version.ranking.adjustable:
        for name in sorted({_ladder(version, facts, row) for row in range(len(facts.start))} - {""}):
            for player, units in (("player-001", AHEAD), ("player-002", AHEAD - 1), ("player-003", -AHEAD)):
                data = {"ladder": name, "player": player, "points": str(units // version.rule.scale), "reason": "drawn"}
                apply(facts, games + 1, _event("points.adjusted", FROM + half * HOUR, data))
    settle_facts(facts)
    facts.rulesets = {version.ruleset.id: [version]}
    return facts


def _event(name: str, instant: int, data: dict[str, Any]) -> KnownEvent:
    return KnownEvent(f"drawn-{instant}", name, instant, data)


def _seats(version: Version, kind: str, chance: Random, number: int) -> int:
    scope, (fewest, most) = version.ruleset.scope, GAME_TYPES[kind].seats
    low = max(scope.players_min, fewest)
    usual = SEATS_MANY if number % 50 == 0 else SEATS_USUAL
    return chance.randint(low, max(low, min(scope.players_max or usual, usual, most)))


def _labels(version: Version, instant: int, chance: Random) -> dict[str, str]:
    """Return the labels that a version's ladders need."""
    by, starts = version.ruleset.partition.by, getattr(version.params, "season_months", [])
    found: dict[str, str] = {label: chance.choice("ab") for label in by if label in LABELS}
    if "season" in by:
        local = local_time(instant, version.ruleset.time_zone)
        begun = sum(month <= local.month for month in starts)
        found["season"] = f"{local.year}-{begun}" if begun else str(local.year)
    return found


def _ladder(version: Version, facts: Facts, row: int) -> str:
    values = list_partition_values(facts, row, version.ruleset)
    return "/".join([version.ruleset.id, *values[0]]) if values else ""


def _try_ladder(ladders: Ladders, stream: Stream, problems: dict[str, str]) -> bool:
    """Try all games of a ladder, and its list; `problems` gets the first of each kind. Returns whether it compiled."""
    if stream.broken is not None:
        problems.setdefault("check", _at(stream.broken))
        return False
    version = stream.versions[0]
    try:
        if version.ruleset.period != "game":
            return try_periods(stream, partial(_ask_twice, stream))
        trace = replay_interpreted(stream, {})
    except RuleFailure as failure:
        problems.setdefault("score", _at(failure))
        return False
    for game in range(len(stream.row)):
        try:
            _try_game(trace, game)
        except RuleFailure as failure:
            problems.setdefault("game", _at(failure))
            break
    try:
        _try_states(trace)
        results = ladders.rank(trace)[1]
        LISTS[stream.rule.ranking].explain(results, stream.names[0])
    except RuleFailure as failure:
        problems.setdefault("state", _at(failure))
    except RULE_ERRORS as error:
        problems.setdefault("list", f"its list {stream.rule.ranking}: {describe_error(error, None)}")
    return _try_compiled(trace, problems)


def _try_states(trace: Trace) -> None:
    """Ask a rule with state about the states at the end of a ladder. Raises `RuleFailure`."""
    stream = trace.stream
    version, ladder = stream.versions[0], stream.ladder
    if not version.rule.state or not len(stream.row):
        return
    row = stream.row[-1]
    for player in range(len(trace.games)):
        state, games = trace.state(player), trace.games[player]
        for what, ask in (
            ("enter", partial(rule_calls.enter_version, version, ladder, state)),
            ("new_season", partial(rule_calls.begin_season, version, ladder, row, state)),
            ("age", partial(rule_calls.age_state, version, ladder, row, state, DAYS_AWAY)),
            ("rank_by", partial(rule_calls.find_rank_value, version, ladder, state)),
            ("provisional", partial(rule_calls.is_provisional, version, ladder, state, games)),
        ):
            _ask_twice(stream, row, what, (), ask)


def _at(failure: RuleFailure) -> str:
    """Return what failed, and at which drawn game."""
    return str(failure) if failure.row is None else f"{failure}, at drawn game {failure.row + 1}"


def _ask_twice(stream: Stream, row: int, what: str, given: Any, ask: Callable[[], Any]) -> Any:
    """Return the answer of a rule's function. Raises `RuleFailure` if asking again gives another one, or if the
    function wrote to what it was `given`.
    """
    before = deepcopy(given)
    answers = [ask(), ask()]
    if answers[0] != answers[1]:
        raise _broken(stream, row, what, f"{what} gave {answers[0]}, and then {answers[1]} for the same game")
    if given != before:
        raise _broken(stream, row, what, f"{what} wrote to its input")
    return answers[0]


def _try_game(trace: Trace, game: int) -> None:
    """Ask all functions of a rule about a game that was replayed. Raises `RuleFailure`."""
    stream = trace.stream
    version, row, ladder = stream.versions[stream.version[game]], stream.row[game], stream.ladder
    low, high = stream.offsets[game], stream.offsets[game + 1]
    columns = [
        (trace.gaps.column(name) if name in HISTORY_COLUMNS else column)[low:high].tolist()
        for name, column in zip(version.rule.columns, stream.columns, strict=True)
    ]
    before = _states_before(trace, game)
    n, names = high - low, [f"player {number}" for number in range(high - low)]
    twice = partial(_ask_twice, stream, row)
    given = (before, columns)

    reason = twice("check", given, lambda: rule_calls.check_game(version, ladder, row, n, columns))
    if reason is not None:
        raise _broken(stream, row, "check", f"check first let the game through, and then said: {reason}")
    if version.rule.state:
        after = twice("score", given, lambda: rule_calls.score_states(version, ladder, row, before, columns))[1]
        stored = [column[low:high] for column in trace.states_before]
        _compare_changes(stream, row, rule_calls.subtract(after[0], stored[0]), trace.changes[low:high].tolist())
    else:
        after = [_score_from_junk(trace, game, before[0], columns)]
    if version.rule.adds:
        _try_adding(stream, row, before, columns, rule_calls.subtract(after[0], before[0]))
    twice("explain", given,
          lambda: rule_calls.explain_states(version, ladder, row, names, before, columns, after))  # fmt: skip
    twice("remark", given, lambda: rule_calls.remark_on_game(version, ladder, row, names, columns))
    if version.rule.chance is not None and n > 1:
        _try_chances(stream, row, before, columns)


def _states_before(trace: Trace, game: int) -> list[list[int]]:
    """Return the states that the players of a game bring to it, by column."""
    stream = trace.stream
    version, low, high = stream.versions[stream.version[game]], stream.offsets[game], stream.offsets[game + 1]
    stored = [column[low:high].tolist() for column in trace.states_before]
    if not version.rule.state:
        return stored
    changes_season, days_since = trace.gaps.column("changes_season"), trace.gaps.column("days_since")
    states = [
        rule_calls.bring_to_game(
            version, stream.ladder, stream.row[game], state, changes_season[slot], days_since[slot]
        )
        for slot, state in enumerate(zip(*stored, strict=True), low)
    ]
    return [list(column) for column in zip(*states, strict=True)]


def _score_from_junk(trace: Trace, game: int, points: list[int], columns: list[list[int]]) -> list[int]:
    """Return the points after a game, which must not depend on what was in the places to be filled in."""
    stream = trace.stream
    version, row = stream.versions[stream.version[game]], stream.row[game]
    change, minted = trace.changes[stream.offsets[game] : stream.offsets[game + 1]].tolist(), trace.mints[game]
    for junk in JUNK:
        found, again = _ask_twice(
            stream, row, "score", (points, columns), partial(_score, stream, version, row, points, columns, junk)
        )
        _compare_changes(stream, row, found, change)
        if again != minted:
            told = f"score minted {again} and {minted} for the same game"
            raise _broken(stream, row, "score", f"{told}; it has to keep no state")
    return [had + gain for had, gain in zip(points, change, strict=True)]


def _try_adding(stream: Stream, row: int, before: list[list[int]], columns: list[list[int]], change: list[int]) -> None:
    """Raise `RuleFailure` if what a game gives depends on what players have, though the rule says that it adds."""
    version = stream.versions[0]
    if len(before) > 1:
        raise _broken(stream, row, "score", f"a rule with adds = True keeps points alone, not {len(before)} numbers")
    others = [points + (number + 1) * version.rule.scale for number, points in enumerate(before[0])]
    after = rule_calls.score_states(version, stream.ladder, row, [others], columns)[1]
    if (found := rule_calls.subtract(after[0], others)) != change:
        told = f"score gave the changes {change}, and {found} to players with other points"
        raise _broken(stream, row, "score", f"{told}; with adds = True it looks at nobody's points")


def _compare_changes(stream: Stream, row: int, found: list[int], change: list[int]) -> None:
    if found != change:
        told = f"score gave the changes {found} and {change} for the same game"
        raise _broken(stream, row, "score", f"{told}; it has to fill in all {len(change)} and keep no state")


def _try_chances(stream: Stream, row: int, before: list[list[int]], columns: list[list[int]]) -> None:
    """Ask what a rule expects of two pairs of opponents. Raises `RuleFailure`."""
    version, ladder, n = stream.versions[0], stream.ladder, len(before[0])
    side = columns[version.rule.columns.index("team")] if "team" in version.rule.columns else [MISSING] * n
    of_others = [j for j in range(1, n) if side[j] == MISSING or side[j] != side[0]]
    states: Any = before if version.rule.state else before[0]
    for what, function in (("chance", rule_calls.expected_chance), ("draw", rule_calls.draw_chance)):
        if getattr(version.rule, what) is None:
            continue
        for i, j in {(0, j) for j in (*of_others[:1], *of_others[-1:])}:
            both = [
                _ask_twice(stream, row, what, (before, columns),
                           partial(function, version, ladder, row, *pair, states, columns))
                for pair in ((i, j), (j, i))
            ]  # fmt: skip
            wrong = abs(sum(both) - rule_calls.SCORE_ONE) if what == "chance" else abs(both[0] - both[1])
            if wrong > NEARLY:
                told = f"{what} gave {both[0]} for one of two players and {both[1]} for the other"
                needed = f"they sum to 2^32 = {rule_calls.SCORE_ONE}" if what == "chance" else "they are the same"
                raise _broken(stream, row, what, f"{told}; {needed}")


def _score(
    stream: Stream, version: Version, row: int, points: list[int], columns: list[list[int]], junk: int
) -> tuple[list[int], int]:  # fmt: skip
    """Return the changes of a game, starting from junk in their places, and what is minted. Raises `RuleFailure`."""
    rule = version.rule
    change = [junk] * len(points)
    try:
        with redirect_output(rule):
            minted = rule.score(len(points), points, columns, version.constants, rule_table(rule), change)
    except RULE_ERRORS as error:
        raise rule_calls.make_failure(stream.ladder, rule, error, row) from error
    return change, minted


def _broken(stream: Stream, row: int, what: str, message: str) -> RuleFailure:
    return rule_calls.make_failure(stream.ladder, stream.rule, ContractError(message), row, what)


def _try_compiled(trace: Trace, problems: dict[str, str]) -> bool:
    """Tell whether the rule could be compiled; results that differ from a trace are added to the `problems`."""
    stream = trace.stream
    if is_built_in(stream.rule) or not compiling.is_allowed() or not len(stream.row):
        return False
    found = replay_compiled(stream, {})
    if found is None:
        return False
    for what in ("points", "states", "games", "minted", "burned"):
        if _plain(getattr(found, what)) != _plain(getattr(trace, what)):
            problems.setdefault("compiled", f"compiled code gave other {what} than the interpreted rule: does a "
                                            "number exceed 64 bits?")  # fmt: skip
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, int):
        return value
    return [value if isinstance(value, int) else list(value) for value in value]


def trial_lines(trial: Trial) -> Iterator[str]:
    """Yield the outcome of a trial, line by line, except for what is wrong."""
    if not trial.drawn:
        yield "its lists sum places; there is no game to try it on"
        return
    compiled_too = ", interpreted and compiled" if trial.compiled else ""
    yield f"tried on {trial.drawn:,} drawn games (seed {trial.seed}): {trial.scored:,} scored{compiled_too}"
    if not trial.problems:
        if trial.is_empty:
            yield "not tried: its score, explain, remark and chance, and its list"
            yield "to try it, give the rule a sample, or a column that drawn games lack: --column NAME=LOW..HIGH"
        elif trial.untried:
            yield f"not tried: games of the type {', '.join(trial.untried)}, of which none was scored"
    if not trial.predicts:
        yield "it predicts results, but games of this type have no places: whatif cannot measure it"
    for reason, count in trial.uncounted[:3]:
        yield f"{count:,} not scored: {reason}"
