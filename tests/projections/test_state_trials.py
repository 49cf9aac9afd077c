"""Trials of rules with state: drawn games, by game and by period, with the columns that the rule needs."""

from functools import partial
from random import Random
from typing import Any

import pytest
from own_rules import forbid_compiling, load_built_in_rule, read_ruleset, substitute_rule
from state_rules import BY_GAME, BY_PERIOD, SCALE

from ratings_ledger import BadArgument
from ratings_ledger.ledger.events.types import read_data
from ratings_ledger.projections.admission import trials
from ratings_ledger.projections.admission.drawn_columns import parse_column_ranges
from ratings_ledger.projections.admission.trials import Trial, try_rule
from ratings_ledger.projections.rulesets.shipped_rulesets import shipped_rulesets
from ratings_ledger.projections.rulesets.versions import bind
from ratings_ledger.rules import MISSING, Rule, State

TEXT = 'id = "x"\nversion = "1"\nrule = "own/1"\n{}[scope]\ngame = ["chess"]\n'
WEEKLY = 'period = "week"\n'


def tried(
    monkeypatch: pytest.MonkeyPatch, rule: Rule, more: str = "", *, compiling: bool = False, **options: Any
) -> Trial:
    """The outcome of a trial of this rule, interpreted alone unless compiled code is wanted."""
    if not compiling:
        forbid_compiling(monkeypatch)
    substitute_rule(monkeypatch, rule, "own/1")
    version, problems = bind(read_ruleset(TEXT.format(more)))
    assert version is not None, problems
    return try_rule(version, **{"games": 60, **options})


@pytest.mark.parametrize(("rule", "more"), [(BY_GAME, ""), (BY_PERIOD, WEEKLY)])
def test_sound_rule_has_no_problems(rule: Rule, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound rule is tried on all drawn games, and nothing is wrong with it."""
    trial = tried(monkeypatch, rule, more)
    assert (trial.problems, trial.scored) == ([], 60)


@pytest.mark.parametrize("name", [name for name, ruleset in shipped_rulesets().items() if ruleset.on_request])
def test_shipped_rulesets_with_state_have_no_problems(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn games are scored by every ruleset that is published on request, with what it reads of earlier games."""
    forbid_compiling(monkeypatch)
    for text in shipped_rulesets()[name].fill_in("chess"):
        version, problems = bind(read_ruleset(text))
        assert version is not None, problems
        trial = try_rule(version, games=25)
        assert trial.problems == []
        assert trial.scored > 0


@pytest.mark.slow_cases
@pytest.mark.parametrize(("rule", "more"), [(BY_GAME, ""), (BY_PERIOD, WEEKLY)])
def test_rule_is_tried_compiled(rule: Rule, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code gives the states of the interpreted rule, by game and by period."""
    pytest.importorskip("numba")
    trial = tried(monkeypatch, rule, more, compiling=True)
    assert (trial.problems, trial.compiled) == ([], True)


calls: list[int] = []


def counts_calls(n, before, columns, constants, table, after):
    calls.append(n)
    after[1][0] = len(calls)
    return 0


def writes_to_input(n, before, columns, constants, table, after):
    columns[0][0] = 7
    return 0


def unbalanced(players, before, offsets, rows, constants, table, after):
    after[0][0] += 1
    return 0


def explains_nothing(n, names, before, columns, params, after):
    return [[] for _ in range(n)]


WRONG = {
    "keeps a count": ({"score": counts_calls}, "", "state between calls (test_state_trials.py, line "),
    "writes to its input": ({"score": writes_to_input}, "", "it must only read it (test_state_trials.py, line "),
    "explains nothing": ({"explain": explains_nothing}, "", "explain returned terms that sum to [0, 0"),
    "grows old wrongly": ({"age": lambda state, elapsed, constants: (0, state[1])}, "", "age changed rating from "),
    "is in no season": ({"new_season": lambda state, constants: None}, "", "new_season returned nothing; a tuple of 2"),
    "enters as text": ({"enter": lambda state, constants: ("a", 1)}, "", "enter returned 'a'; a whole number is"),
    "ranks by halves": ({"rank_by": lambda state, params: 0.5}, "", "rank_by returned 0.5; a whole number is needed"),
    "is never sure": ({"provisional": lambda state, games, params: games}, "", "provisional returned "),
    "expects too much": ({"chance": lambda i, j, *rest: 2**32 - 2, "draw": None}, "", "they must sum to 2^32"),
    "draws too often": ({"draw": lambda i, j, *rest: 2**32}, "", "draw returned 4294967296, which is too high"),
    "draws unevenly": ({"draw": lambda i, j, *rest: 1000 * i, "chance": lambda *rest: 2**31}, "", "must be the same"),
    "period without books": ({"score_period": unbalanced}, WEEKLY, "the books do not balance: score_period minted 0"),
    "period explained by no terms": ({"explain_period": lambda *rest: []}, WEEKLY, "terms that sum to 0"),
    "ages the rating": ({"age": lambda state, elapsed, constants: (0, 1)}, WEEKLY, "age changed rating from "),
    "adds two numbers": ({"adds": True}, "", "a rule with adds = True keeps only points, not 2 numbers"),
    "samples too little": ({"sample": lambda n, random, params: [[1]]}, "", "sample returned columns of [1] numbers"),
    "samples halves": ({"sample": lambda n, random, params: [[0.5] * n]}, "", "sample: 0.5; a whole number is needed"),
}  # fmt: skip


@pytest.mark.parametrize(("members", "more", "message"), WRONG.values(), ids=WRONG)
def test_wrong_rule_is_told(
    members: dict[str, Any], more: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """What a rule does wrong is told, with its file and line, and the game at which it was seen."""
    trial = tried(monkeypatch, (BY_PERIOD if more else BY_GAME)._replace(**members), more)
    # what a kernel may not do at all comes first
    *forbidden, problem = trial.problems
    assert message in problem, trial.problems
    assert bool(forbidden) == (members.get("score") is counts_calls)


def test_rule_that_compares_does_not_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elo that claims to add is found out at the first game; what the shipped rules claim is tried like that."""
    forbid_compiling(monkeypatch)
    substitute_rule(monkeypatch, load_built_in_rule("pairwise-elo/1")._replace(adds=True), "own/1")
    version, problems = bind(read_ruleset(TEXT.format("") + "[params]\nk_total = 32\n"))
    assert version is not None, problems
    trial = try_rule(version, games=20)
    assert "to players with other points; with adds = True it must not read points" in trial.problems[0]


def refuse_but_two(n, columns, params):
    return None if n == 2 and sorted(columns[1]) == [1, 2] else "it takes two, the first of whom moves"


PICKY = BY_GAME._replace(columns=("place", "seat"), check=refuse_but_two)


def sample(n: int, random: Random, params: Any) -> list[list[int]]:
    return [random.choice([[1, 1], [1, 2], [2, 1]]), random.sample([1, 2], 2)] if n == 2 else [[1] * n, [0] * n]


def test_rule_samples_what_it_can_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that draws its own columns scores them; what its check refuses all the same is counted with the reason."""
    trial = tried(monkeypatch, PICKY._replace(sample=sample))
    assert trial.problems == []
    assert trial.scored > 0
    ((reason, count),) = trial.uncounted
    assert (reason, count + trial.scored) == ("it takes two, the first of whom moves", 60)


def test_caller_gives_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where drawn games lack what a rule demands, the caller gives it; without that nothing is scored."""
    needs_minutes = BY_GAME._replace(
        columns=("place", "seconds_played"),
        check=lambda n, columns, params: None if min(columns[1]) >= 10**8 else "too short",
    )
    assert tried(monkeypatch, needs_minutes).is_empty
    given = parse_column_ranges(["seconds_played=100000000..200000000"], needs_minutes)
    trial = tried(monkeypatch, needs_minutes, ranges=given)
    assert (trial.scored, trial.problems, trial.is_empty) == (60, [], False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seat", "'seat' is not a column with its numbers, such as seat=1..2"),
        ("seta=1..2", "own-k/1 does not read the column 'seta'; it reads place, seat; did you mean seat?"),
        ("seat=2..1", "seat=2..1 is empty; write seat=1..2"),
    ],
)
def test_column_that_cannot_be_given_is_refused(text: str, message: str) -> None:
    """A column of the caller is one that the rule reads, with a range of numbers."""
    with pytest.raises(BadArgument) as refused:
        parse_column_ranges([text], PICKY)
    assert str(refused.value) == message


def test_columns_of_state_stay_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial puts some players far ahead, where a rule must not go out of bounds."""
    grows = BY_GAME._replace(state=(State("rating", SCALE), State("k", SCALE)), score=doubles)
    (problem,) = tried(monkeypatch, grows).problems
    assert "score set k to " in problem
    assert "which is out of bounds" in problem


def doubles(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = before[1][i] * 1_000
    return 0


ASKING = ("place", "team", "home", "score", "side_score", "numbers.handicap")


@pytest.mark.parametrize("order", ["high", "low"])
def test_drawn_games_have_what_a_rule_reads(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn games have teams, sides at home, scores and numbers, if the rule reads them; they are games as recorded."""
    drawn: list[tuple[int, list[list[int]]]] = []

    def note_columns(n, columns, params):
        drawn.append((n, [list(column) for column in columns]))

    monkeypatch.setattr(trials, "apply", partial(check_and_apply, trials.apply))
    more = f'score_order = "{order}"\nnumbers = {{ handicap = {{ min = 1, max = 9, absent = "refuse" }} }}\n'
    trial = tried(monkeypatch, BY_GAME._replace(columns=ASKING, check=note_columns), more)
    assert (trial.problems, trial.scored) == ([], 60)
    teams = [columns[1] for _, columns in drawn]
    assert any(column[0] != MISSING for column in teams)
    assert any(column[0] == MISSING for column in teams)
    assert {value for _, columns in drawn for value in columns[2]} == {-1, 0, 1}
    assert all(value != MISSING for _, columns in drawn for value in columns[3] + columns[4])
    assert {value for _, columns in drawn for value in columns[5]} <= {*range(1, 10)}
    # a better score, negated where low wins, is a better place
    for _, (places, _, _, scores, _, _) in drawn:
        assert sorted(range(len(places)), key=lambda i: (places[i], i)) == sorted(
            range(len(places)), key=lambda i: (-scores[i], i)
        )


def check_and_apply(apply: Any, facts: Any, position: int, event: Any) -> None:
    """Apply an event as a trial does, after checking it as one that is recorded."""
    if event.type == "game.recorded":
        read_data(event.type, event.data)
    apply(facts, position, event)
