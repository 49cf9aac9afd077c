"""What a program loads: nothing but a shell for the import, and nothing that it does not use for an open ledger."""

import subprocess
import sys
import warnings

import pytest

from ratings_ledger import BadArgument, rules
from ratings_ledger.projections import contract
from ratings_ledger.projections.rulesets.registry import _former_names
from ratings_ledger.rules.testing import check

HEAVY = ("sqlalchemy", "numpy", "pydantic", "alembic", "click", "numba", "pyarrow", "pandas", "polars", "jinja2")


def loaded(code: str) -> set[str]:
    """The packages that a new process has loaded after some code."""
    told = subprocess.run([sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    return {name.partition(".")[0] for name in told.split()}


def test_import_loads_nothing_heavy() -> None:
    """The import alone takes no part of what SQLAlchemy takes: the interface is loaded with the first name."""
    assert loaded("import ratings_ledger").isdisjoint(HEAVY)


def test_interface_loads_only_what_questions_need() -> None:
    """Making the schema, drawing frames and pages, and the command line are not loaded to open a ledger."""
    assert loaded("import ratings_ledger; ratings_ledger.open") & {*HEAVY} <= {"sqlalchemy", "numpy", "pydantic"}


def test_rules_import_the_contract_itself() -> None:
    """Each name is that of the contract, and none of them is private."""
    assert all(getattr(rules, name) is getattr(contract, name) for name in rules.__all__)


def test_former_name_of_the_contract_warns_with_the_new_one() -> None:
    """An old package gets the same objects, and is told what to import."""
    with _former_names():
        former = __import__("projections.contract", fromlist=["contract"])
        with pytest.warns(DeprecationWarning, match="from ratings_ledger.rules import Rule"):
            found = former.Rule
    assert found is contract.Rule
    with warnings.catch_warnings(record=True) as told:
        assert rules.Rule is contract.Rule
    assert told == []


def test_check_tries_a_rule() -> None:
    """It scores drawn games, and what is no ruleset is refused."""
    assert check("elo-chess").scored > 0
    with pytest.raises(BadArgument, match="no shipped ruleset"):
        check("none")
