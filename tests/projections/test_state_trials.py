"""Trials of rules with state: random games, by game and by period, with the columns that the rule reads."""

from random import Random
from typing import Any

import pytest
from own_rules import (
    check_drawn_games,
    fill_in_ruleset,
    forbid_compiling,
    list_rulesets_on_request,
    load_built_in_rule,
    substitute_rule,
    try_ruleset,
)
from state_rules import BY_GAME, BY_PERIOD, SCALE

from ratings_ledger import BadArgument
from ratings_ledger.rules import MISSING, Rule, State
from ratings_ledger.rules.testing import Trial

TEXT = 'id = "x"\nversion = "1"\nrule = "own/1"\n{}[scope]\ngame = ["chess"]\n'
WEEKLY = 'period = "week"\n'


def run_trial(
    monkeypatch: pytest.MonkeyPatch, rule: Rule, more: str = "", *, compiling: bool = False, **options: Any
) -> Trial:
    """Return the outcome of a trial of this rule, interpreted alone unless `compiling` is set."""
    if not compiling:
        forbid_compiling(monkeypatch)
    substitute_rule(monkeypatch, rule, "own/1")
    return try_ruleset(TEXT.format(more), **{"games": 60, **options})


@pytest.mark.parametrize(("rule", "more"), [(BY_GAME, ""), (BY_PERIOD, WEEKLY)])
def test_sound_rule_has_no_problems(rule: Rule, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound rule scores all random games without problems."""
    trial = run_trial(monkeypatch, rule, more)
    assert (trial.problems, trial.scored) == ([], 60)


@pytest.mark.parametrize("name", list_rulesets_on_request())
def test_shipped_rulesets_with_state_have_no_problems(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ruleset that is published on request scores random games without problems."""
    forbid_compiling(monkeypatch)
    for text in fill_in_ruleset(name, "chess"):
        trial = try_ruleset(text, games=25)
        assert trial.problems == []
        assert trial.scored > 0


@pytest.mark.slow_cases
@pytest.mark.parametrize(("rule", "more"), [(BY_GAME, ""), (BY_PERIOD, WEEKLY)])
def test_rule_is_tried_compiled(rule: Rule, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled trial, by game and by period, has no problems."""
    pytest.importorskip("numba")
    trial = run_trial(monkeypatch, rule, more, compiling=True)
    assert (trial.problems, trial.compiled) == ([], True)


calls: list[int] = []


def count_calls(n, before, columns, constants, table, after):
    calls.append(n)
    after[1][0] = len(calls)
    return 0


def write_to_input(n, before, columns, constants, table, after):
    columns[0][0] = 7
    return 0


def score_unbalanced(players, before, offsets, rows, constants, table, after):
    after[0][0] += 1
    return 0


def explain_nothing(n, names, before, columns, params, after):
    return [[] for _ in range(n)]


BAD_RULES = {
    "keeps a count": ({"score": count_calls}, "", "state between calls (test_state_trials.py, line "),
    "writes to its input": ({"score": write_to_input}, "", "it must only read it (test_state_trials.py, line "),
    "explains nothing": ({"explain": explain_nothing}, "", "explain returned terms that sum to [0, 0"),
    "grows old wrongly": ({"age": lambda state, elapsed, constants: (0, state[1])}, "", "age changed rating from "),
    "returns no season": (
        {"new_season": lambda state, constants: None}, "", "new_season returned nothing; a tuple of 2",
    ),
    "enters as text": ({"enter": lambda state, constants: ("a", 1)}, "", "enter returned 'a'; a whole number is"),
    "ranks by halves": ({"rank_by": lambda state, params: 0.5}, "", "rank_by returned 0.5; a whole number is needed"),
    "returns no bool": ({"provisional": lambda state, games, params: games}, "", "provisional returned "),
    "expects too much": ({"chance": lambda i, j, *rest: 2**32 - 2, "draw": None}, "", "they must sum to 2^32"),
    "draws too often": ({"draw": lambda i, j, *rest: 2**32}, "", "draw returned 4294967296; with the expected score"),
    "draws unevenly": ({"draw": lambda i, j, *rest: 1000 * i, "chance": lambda *rest: 2**31}, "", "must be the same"),
    "period without books": (
        {"score_period": score_unbalanced}, WEEKLY, "the books do not balance: score_period minted 0",
    ),
    "period explained by no terms": ({"explain_period": lambda *rest: []}, WEEKLY, "terms that sum to 0"),
    "ages the rating": ({"age": lambda state, elapsed, constants: (0, 1)}, WEEKLY, "age changed rating from "),
    "adds two numbers": ({"adds": True}, "", "a rule with adds = True keeps only points, not 2 numbers"),
    "samples too little": ({"sample": lambda n, random, params: [[1]]}, "", "columns of the lengths [1]"),
    "samples halves": ({"sample": lambda n, random, params: [[0.5] * n]}, "", "sample returned 0.5 among its numbers"),
}  # fmt: skip


@pytest.mark.parametrize(("members", "more", "message"), BAD_RULES.values(), ids=BAD_RULES)
def test_error_of_a_rule_is_reported(
    members: dict[str, Any], more: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """An error of a rule is reported with its message."""
    trial = run_trial(monkeypatch, (BY_PERIOD if more else BY_GAME)._replace(**members), more)
    # forbidden operations of a kernel are reported first
    *forbidden, problem = trial.problems
    assert message in problem, trial.problems
    assert bool(forbidden) == (members.get("score") is count_calls)


def test_rule_that_reads_points_must_not_claim_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elo with adds = True fails its trial at the first game."""
    forbid_compiling(monkeypatch)
    substitute_rule(monkeypatch, load_built_in_rule("pairwise-elo/1")._replace(adds=True), "own/1")
    trial = try_ruleset(TEXT.format("") + "[params]\nk_total = 32\n", games=20)
    assert "when the players had other points; with adds = True it must not read points" in trial.problems[0]


def reject_unless_two(n, columns, params):
    return None if n == 2 and sorted(columns[1]) == [1, 2] else "it takes two, the first of whom moves"


PICKY = BY_GAME._replace(columns=("place", "seat"), check=reject_unless_two)


def draw_sample(n: int, random: Random, params: Any) -> list[list[int]]:
    return [random.choice([[1, 1], [1, 2], [2, 1]]), random.sample([1, 2], 2)] if n == 2 else [[1] * n, [0] * n]


def test_rule_samples_what_it_can_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that draws its own columns scores them; games that its check rejects are counted with the reason."""
    trial = run_trial(monkeypatch, PICKY._replace(sample=draw_sample))
    assert trial.problems == []
    assert trial.scored > 0
    ((reason, count),) = trial.uncounted
    assert (reason, count + trial.scored) == ("it takes two, the first of whom moves", 60)


def test_caller_can_give_ranges_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """If random games lack numbers that a rule requires, the caller can give a range; without it none is scored."""
    needs_minutes = BY_GAME._replace(
        columns=("place", "seconds_played"),
        check=lambda n, columns, params: None if min(columns[1]) >= 10**8 else "too short",
    )
    assert run_trial(monkeypatch, needs_minutes).is_empty
    trial = run_trial(monkeypatch, needs_minutes, columns=["seconds_played=100000000..200000000"])
    assert (trial.scored, trial.problems, trial.is_empty) == (60, [], False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seat", "'seat' is not a column with its numbers, such as seat=1..2"),
        ("seta=1..2", "own-k/1 does not read the column 'seta'; it reads place, seat; did you mean seat?"),
        ("seat=2..1", "seat=2..1 is empty; write seat=1..2"),
    ],
)
def test_invalid_column_range_is_rejected(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that the rule does not read, or a bad range, is rejected."""
    with pytest.raises(BadArgument) as rejection:
        run_trial(monkeypatch, PICKY, columns=[text])
    assert str(rejection.value) == message


def test_state_out_of_bounds_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial reports a state column that grows out of bounds, by its name."""
    grows = BY_GAME._replace(state=(State("rating", SCALE), State("k", SCALE)), score=grow_thousandfold)
    (problem,) = run_trial(monkeypatch, grows).problems
    assert "score set k to " in problem
    assert "which is out of bounds" in problem


def grow_thousandfold(n, before, columns, constants, table, after):
    for i in range(n):
        after[1][i] = before[1][i] * 1_000
    return 0


READ_COLUMNS = ("place", "team", "home", "score", "side_score", "numbers.handicap")


@pytest.mark.parametrize("order", ["high", "low"])
def test_random_games_have_the_columns_of_a_rule(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random games are valid, and have teams, home sides, scores and numbers if the rule reads them."""
    drawn: list[tuple[int, list[list[int]]]] = []

    def note_columns(n, columns, params):
        drawn.append((n, [list(column) for column in columns]))

    check_drawn_games(monkeypatch)
    more = f'score_order = "{order}"\nnumbers = {{ handicap = {{ min = 1, max = 9, absent = "refuse" }} }}\n'
    trial = run_trial(monkeypatch, BY_GAME._replace(columns=READ_COLUMNS, check=note_columns), more)
    assert (trial.problems, trial.scored) == ([], 60)
    teams = [columns[1] for _, columns in drawn]
    assert any(column[0] != MISSING for column in teams)
    assert any(column[0] == MISSING for column in teams)
    assert {value for _, columns in drawn for value in columns[2]} == {-1, 0, 1}
    assert all(value != MISSING for _, columns in drawn for value in columns[3] + columns[4])
    assert {value for _, columns in drawn for value in columns[5]} <= {*range(1, 10)}
    # a better score is a better place; scores are negated if low wins
    for _, (places, _, _, scores, _, _) in drawn:
        assert sorted(range(len(places)), key=lambda i: (places[i], i)) == sorted(
            range(len(places)), key=lambda i: (-scores[i], i)
        )
