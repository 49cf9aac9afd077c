"""The error messages for a ruleset whose rule cannot run, or whose key or column does not exist."""

from pathlib import Path
from typing import Any

import pytest
from own_rules import find_ruleset_problems, substitute_rule, withdraw_rule

import ratings_ledger as rl
from ratings_ledger.rules import Params, Rule, Term, no_table

ROOT = Path(__file__).parents[2]


class OwnParams(Params):
    """Parameters without members of their own."""


def score(n, points, columns, constants, table, change):
    return 0


def explain(n, names, points, columns, params, change):
    return [[Term("nothing", 0, "")] for _ in range(n)]


PLAIN = Rule(
    name="own", number=1, scale=1, params=OwnParams, columns=("place",), prepare=lambda params: (), table=no_table,
    refuse_params=lambda params, players_max: None, check=None, score=score, explain=explain,
)  # fmt: skip


def list_problems(monkeypatch: pytest.MonkeyPatch, rule: Rule, members: str = "") -> list[str]:
    """Return the problems of a ruleset with this rule."""
    substitute_rule(monkeypatch, rule, "own/1")
    text = f'id = "x"\nversion = "1"\nrule = "own/1"\n{members}[scope]\ngame = ["chess"]\n'
    return [f"{problem.key}: {problem.message}" for problem in find_ruleset_problems(text)]


def raise_key_error(*arguments: Any) -> Any:
    raise KeyError("of the rule")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"columns": ("plcae",)},
         "rule: own/1 reads the column 'plcae', which no game type has; the columns are place,"),
        ({"columns": ("vp", "side")},
         "rule: own/1 reads the columns vp, side, but no game type has all of them; "),
        ({"ranking": "tabel"},
         "rule: own/1 names the list 'tabel'; the lists are points, table, best-of, period, annual; did you mean"),
        ({"ranking": "table"}, "rule: own/1 names the list table, which needs the parameters best_of, tie_break; "
                               "derive its params from TableParams"),
        ({"prepare": lambda params: (0.0,)},
         "rule: own/1 fails: prepare returned 0.0 among its numbers; a whole number is needed"),
        ({"prepare": lambda params: (2**63,)},
         "rule: own/1 fails: prepare returned 9223372036854775808 among its numbers; it does not fit in 64 bits"),
        ({"prepare": lambda params: None}, "rule: own/1 fails: prepare returned nothing; whole numbers are needed"),
        ({"prepare": raise_key_error}, "rule: own/1 fails: KeyError: 'of the rule' (test_binding_rules.py, line "),
        ({"refuse_params": raise_key_error},
         "rule: own/1 fails: KeyError: 'of the rule' (test_binding_rules.py, line "),
        ({"table": lambda: [1, 2.5]},
         "rule: own/1 fails: table returned 2.5 among its numbers; a whole number is needed"),
    ],
)  # fmt: skip
def test_rule_that_cannot_run_is_rejected(
    members: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ruleset whose rule cannot run is rejected with the error, and with the alternatives if there are any."""
    problems = list_problems(monkeypatch, PLAIN._replace(**members))
    assert [problem.startswith(message) for problem in problems] == [True], problems


def test_foreign_parameter_names_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter that only other rules have is rejected, with the names of those rules."""
    (problem,) = list_problems(monkeypatch, PLAIN, "params.best_of = 3\n")
    assert problem == (
        "params.best_of: unknown key; blue-max/1, c-diplo/1, italia/1, placement-points/1, "
        "sum-of-squares/1 and wooden-ships/1 have it"
    )


def test_start_beyond_bounds_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start points beyond the bounds are rejected."""
    (problem,) = list_problems(monkeypatch, PLAIN._replace(scale=10**12), "params.start = 1000000\n")
    assert problem == "params.start: must be from -10,000 to 10,000, not 1,000,000: a point has 1,000,000,000,000 units"


def test_missing_rule_lists_installed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ruleset file whose rule is not installed is rejected with a list of the installed rules.

    The publisher of a file can choose another rule. A published ruleset has to wait for its package, and many ladders
    repeat its message, so that message is short.
    """
    text = (ROOT / "examples" / "club-catan-elo-2.toml").read_text()
    (problem,) = find_ruleset_problems(text.replace("pairwise-elo/1", "pairwise-eol/1"))
    assert problem.message.startswith("'pairwise-eol/1' is not installed; available rules: annual-places/1, ")
    assert problem.message.endswith("; did you mean pairwise-elo/1?")
    with rl.create(rulesets=[text]) as ledger:
        withdraw_rule(monkeypatch, "pairwise-elo/1")
        with pytest.raises(rl.RulesetUnusable) as error:
            ledger.at().standings("club-catan-elo/all")
    assert str(error.value).endswith(": 'pairwise-elo/1' is not installed"), error.value
