"""The packages that the library loads for an import and for an open ledger, and the names of the rule contract."""

import subprocess
import sys
import warnings

import pytest

from ratings_ledger import BadArgument, rules
from ratings_ledger.projections import contract
from ratings_ledger.projections.rulesets.registry import _provide_former_names
from ratings_ledger.rules.testing import check

HEAVY = ("sqlalchemy", "numpy", "pydantic", "alembic", "click", "numba", "pyarrow", "pandas", "polars", "jinja2")


def list_loaded_packages(code: str) -> set[str]:
    """Return the packages that a new process has loaded after running some code."""
    stdout = subprocess.run([sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    return {name.partition(".")[0] for name in stdout.split()}


def test_import_loads_nothing_heavy() -> None:
    """The import of the library loads no heavy package; the first use of a name loads the interface."""
    assert list_loaded_packages("import ratings_ledger").isdisjoint(HEAVY)


def test_interface_loads_only_what_questions_need() -> None:
    """Opening a ledger loads no package for migrations, data frames, pages or the command line."""
    assert list_loaded_packages("import ratings_ledger; ratings_ledger.open") & {*HEAVY} <= {
        "sqlalchemy",
        "numpy",
        "pydantic",
    }


def test_rules_import_the_contract_itself() -> None:
    """Each public name of `rules` is the same object as in the contract."""
    assert all(getattr(rules, name) is getattr(contract, name) for name in rules.__all__)


def test_former_name_of_the_contract_warns_with_the_new_one() -> None:
    """An import from the former module gives the same objects, with a warning that names the new module."""
    with _provide_former_names():
        former = __import__("projections.contract", fromlist=["contract"])
        with pytest.warns(DeprecationWarning, match="from ratings_ledger.rules import Rule"):
            rule_class = former.Rule
    assert rule_class is contract.Rule
    with warnings.catch_warnings(record=True) as warning_list:
        assert rules.Rule is contract.Rule
    assert warning_list == []


def test_check_tries_a_rule() -> None:
    """`check` scores drawn games with a shipped ruleset, and refuses an unknown name."""
    assert check("elo-chess").scored > 0
    with pytest.raises(BadArgument, match="no shipped ruleset"):
        check("none")
