"""The packages that the library loads on import and for queries, and the names of the rule contract."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from own_rules import is_installed

from ratings_ledger import BadArgument, create, rules
from ratings_ledger.rules.testing import check

HEAVY = ("sqlalchemy", "numpy", "pydantic", "alembic", "click", "numba", "pyarrow", "pandas", "polars", "jinja2")


def list_loaded_packages(code: str) -> set[str]:
    """Return the packages that a new process has loaded after running some code."""
    stdout = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], check=True, capture_output=True, text=True
    ).stdout
    return {name.partition(".")[0] for name in stdout.split()}


def test_import_loads_nothing_heavy() -> None:
    """Importing the library loads no heavy package."""
    assert list_loaded_packages("import ratings_ledger").isdisjoint(HEAVY)


def test_interface_loads_only_what_queries_need(tmp_path: Path) -> None:
    """Opening a ledger and reading a ladder load no package for migrations, data frames, pages or the command line."""
    path = tmp_path / "club.db"
    create(path, rulesets=["elo-chess"]).close()
    code = f"import ratings_ledger; ratings_ledger.open({str(path)!r}).at().standings('elo-chess/all')"
    assert list_loaded_packages(code) & {*HEAVY} == {"sqlalchemy", "numpy", "pydantic"}


def test_rules_import_the_contract_itself() -> None:
    """Each public name of `rules` is the same object as in the contract."""
    contract = sys.modules[rules.Rule.__module__]
    assert contract is not rules
    assert all(getattr(rules, name) is getattr(contract, name) for name in rules.__all__)


# a rule that was written for an earlier version of this program
OLD_RULE = """
from projections.contract import Params, Rule, no_table

RULE = Rule(
    name="old", number=1, scale=1, params=Params, columns=("place",), prepare=lambda params: (), table=no_table,
    refuse_params=lambda params, players_max: None, check=None, score=lambda n, *arguments: 0,
    explain=lambda n, *arguments: [[]] * n,
)
"""


def test_former_name_of_the_contract_warns_with_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import from the former module gives the same objects, with a warning that names the new module."""
    (tmp_path / "old_rule.py").write_text(OLD_RULE, encoding="utf-8")
    (package := tmp_path / "old_rule-1.0.dist-info").mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: old-rule\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[ratings_ledger.rules]\nold/1 = old_rule:RULE\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(DeprecationWarning, match="from ratings_ledger.rules import ") as caught_warnings:
        assert is_installed("old/1")
    assert [str(warning.message).split()[-1] for warning in caught_warnings] == ["Params", "Rule", "no_table"]
    old_rule = sys.modules["old_rule"]
    assert all(getattr(old_rule, name) is getattr(rules, name) for name in ("Params", "Rule", "no_table"))
    assert "projections.contract" not in sys.modules
    with warnings.catch_warnings(record=True) as warning_list:
        assert rules.Rule is old_rule.Rule
    assert warning_list == []


def test_check_tries_a_rule() -> None:
    """`check` scores random games under a shipped ruleset, and refuses an unknown name."""
    assert check("elo-chess").scored > 0
    with pytest.raises(BadArgument, match="no shipped ruleset"):
        check("none")
