"""Errors of a rule with state are reported when it is loaded or bound, before any game."""

from typing import Any

import pytest
from own_rules import (
    bind_ruleset,
    find_ruleset_problems,
    list_built_in_rules,
    list_malformed_members,
    list_state_rules,
    load_built_in_rule,
    substitute_rule,
    substitute_rules,
)
from state_rules import BY_GAME, BY_PERIOD, SCALE

import ratings_ledger as rl
from ratings_ledger.rules import UNITS_MAX, Rule, State

TEXT = 'id = "x"\nversion = "1"\nrule = "own/1"\n[scope]\ngame = ["chess"]\n'
RATING, DEVIATION = State("rating", SCALE), State("deviation", SCALE)


@pytest.mark.parametrize("name", [*list_built_in_rules(), *list_state_rules()])
def test_built_in_rule_has_valid_members(name: str) -> None:
    """The built-in rules meet the requirements for the rules of packages."""
    assert list_malformed_members(load_built_in_rule(name)) == []


@pytest.mark.parametrize("rule", [BY_GAME, BY_PERIOD, BY_PERIOD._replace(score=None, explain=None)])  # type: ignore[arg-type]
def test_rule_with_state_is_accepted(rule: Rule) -> None:
    """A rule with state may score games, periods or both."""
    assert list_malformed_members(rule) == []


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"state": [RATING]}, "has the state [State("),
        ({"state": ("rating",)}, "has the state ('rating',); a tuple such as (State('rating', 1_000_000), "),
        ({"state": tuple(State(f"c{n}", SCALE) for n in range(7))}, "has 7 state columns; at most 6 are possible"),
        ({"state": (State("Rating", SCALE), DEVIATION)}, "has a state column 'Rating'; a name of at most"),
        ({"state": (RATING, State("k", 0))}, "has the scale 0 for k; a whole number from 1 to 10,000,0"),
        ({"state": (RATING, State("k", SCALE, 17))}, "shows 17 decimals of k; a number from 0 to 16 is needed"),
        ({"state": (RATING, State("k", SCALE, low=2, high=1))}, "has the range 2 to 1 for k; whole numbers, the lower"),
        ({"state": (RATING, State("k", SCALE, high=0.5))}, "has the range -10000000000000000 to 0.5 for k; whole"),
        ({"state": (RATING, RATING)}, "has two state columns with the same name: rating, rating"),
        ({"state": (State("rating", 1_000), DEVIATION)},
         "has the scale 1000000, but its first column rating has 1000; make them equal"),
        ({"shown": ("rating", "sigma")}, "shows ('rating', 'sigma'); a tuple of its state columns is needed"),
        ({"shown": ["rating"]}, "shows ['rating']; a tuple of its state columns is needed: rating, k"),
        ({"start": None}, "has None for start; a function is needed"),
        ({"age": 30}, "has 30 for age; a function is needed"),
        ({"sample": "place"}, "has 'place' for sample; a function is needed"),
        ({"score": None, "explain": None}, "has None for score; a function is needed"),
        ({"score_period": BY_PERIOD.score_period}, "has score_period but no explain_period"),
        ({"explain_period": BY_PERIOD.explain_period}, "has explain_period but no score_period"),
        ({"chance": None}, "has draw but no chance"),
        ({"chance": lambda points, opponents, constants, table: 1},
         "has a chance that does not take (i, j, before, columns, constants, table)"),
        ({"state": ()}, "has start, which belongs to rules with state; name the columns of its state"),
    ],
)  # fmt: skip
def test_malformed_rule_is_rejected(members: dict[str, Any], message: str) -> None:
    """A rule is rejected when it is loaded if a member is malformed, or if members do not fit together."""
    problems = list_malformed_members(BY_GAME._replace(**members))
    assert [problem for problem in problems if problem.startswith(message)], problems


def test_start_is_the_state_of_a_new_player(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule with state sets the state of a new player; under other rules, that state is the ruleset's start."""
    substitute_rule(monkeypatch, BY_GAME, "own/1")
    assert bind_ruleset(TEXT).start_state == (1500 * SCALE, 40 * SCALE)
    assert bind_ruleset(TEXT).start == 1500 * SCALE
    substitute_rule(monkeypatch, load_built_in_rule("placement-points/1"), "own/1")
    assert bind_ruleset(TEXT).start_state == (0,)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (lambda params: 1500, "own-k/1 fails: start returned 1500; a tuple of 2 whole numbers is needed (rating, k)"),
        (lambda params: (1500,), "own-k/1 fails: start returned (1500,); a tuple of 2 whole numbers is needed"),
        (lambda params: (1500, 40.0), "own-k/1 fails: start returned 40.0; a whole number is needed"),
        (lambda params: (1500, UNITS_MAX + 1), "own-k/1 fails: start returned k 10,000,000,000,000,001 units, which"),
        (lambda params: params.none, "own-k/1 fails: AttributeError: "),
    ],
)  # fmt: skip
def test_invalid_start_is_rejected(start: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that is not a valid state is rejected before any game, with the rule's file and line."""
    substitute_rule(monkeypatch, BY_GAME._replace(start=start), "own/1")
    (problem,) = find_ruleset_problems(TEXT)
    assert problem.message.startswith(message)
    assert "(test_binding_state_rules.py, line " in problem.message


def test_columns_carry_over_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another rule may follow if column 0 keeps its scale, and so does every column with the same name in both."""
    rules = {
        "own/1": BY_GAME,
        "other/1": BY_GAME._replace(state=(RATING, DEVIATION)),
        "finer/1": BY_GAME._replace(state=(RATING, State("k", 1_000))),
        "coarse/1": BY_GAME._replace(scale=1_000, state=(State("rating", 1_000), State("k", SCALE))),
    }
    substitute_rules(monkeypatch, rules)
    texts = {name: TEXT.replace('"1"', f'"{name[:-2]}"').replace("own/1", name) for name in rules}
    for first, second in (("own/1", "other/1"), ("other/1", "own/1")):
        with rl.create(":memory:", rulesets=[texts[first]], by="test") as ledger:
            assert ledger.publish(texts[second], by="test") == [f"x@{second[:-2]}"]
    with rl.create(":memory:", rulesets=[texts["own/1"]], by="test") as ledger:
        for name, message in (
            ("finer/1", "counts k in 1/1000, but x@own in 1/1000000"),
            ("coarse/1", "counts in 1/1000, but x@own in 1/1000000"),
        ):
            with pytest.raises(rl.Refused) as refusal:
                ledger.publish(texts[name], by="test")
            assert refusal.value.code == "partition-changed"
            assert refusal.value.message == (
                f"rule: own-k/1 {message}; all versions of a ruleset must have the same scale"
            )


def test_rule_of_periods_needs_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ruleset scores by game or by period only if its rule can."""
    substitute_rule(monkeypatch, BY_PERIOD._replace(score=None, explain=None), "own/1")  # type: ignore[arg-type]
    (problem,) = find_ruleset_problems(TEXT)
    assert problem.key == "period"
    assert problem.message == 'own-k-period/1 scores only whole periods; write period = "day", "week" or "month"'
    assert find_ruleset_problems(TEXT.replace("[scope]", 'period = "day"\n[scope]')) == []
    substitute_rule(monkeypatch, BY_GAME, "own/1")
    (problem,) = find_ruleset_problems(TEXT.replace("[scope]", 'period = "day"\n[scope]'))
    assert problem.key == "period"
