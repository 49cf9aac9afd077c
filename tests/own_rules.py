"""Rules and rulesets for tests: those that are built in, and those that a test offers to the program instead."""

from functools import partial
from pathlib import Path

import pytest

from ratings_ledger.cli.commands import rule_trials
from ratings_ledger.ledger.store import opening
from ratings_ledger.projections import compiling
from ratings_ledger.projections.admission.publishing_rulesets import publish_missing
from ratings_ledger.projections.admission.trials import try_rule
from ratings_ledger.projections.rulesets import registry, versions
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF
from ratings_ledger.rules import Rule

SHIPPED = Path(__file__).parents[1] / "projections" / "shipped"


def built_in(name: str) -> Rule:
    """Return a rule that comes with the program, by its name with its version."""
    rule = registry.rule(name)
    assert rule is not None
    return rule


def built_in_names() -> list[str]:
    """Return the names of the rules of contract 1, without state, that come with the program."""
    return [name for name in registry.BUILT_IN if not built_in(name).state]


def is_about(rule: Rule, kind: str) -> bool:
    """Tell whether a rule reads numbers that only games of this kind have."""
    return bool({*rule.columns} & {*COLUMNS_OF[kind]})


def is_installed(name: str) -> bool:
    """Tell whether the program has a rule of this name, of its own or of a package."""
    return registry.rule(name) is not None or name in registry.rule_names()


def forget_rules(patch: pytest.MonkeyPatch) -> None:
    """Let the program look all rules up anew, as a new process does."""
    registry.rule.cache_clear()
    patch.setattr(registry, "_abandoned", {})


def forbid_compiling(patch: pytest.MonkeyPatch) -> None:
    """Let the program interpret every rule."""
    patch.setattr(compiling, "is_allowed", lambda: False)


def shorten_trials(patch: pytest.MonkeyPatch, games: int) -> None:
    """Let the command that tries a rule play fewer games."""
    patch.setattr(rule_trials, "try_rule", partial(try_rule, games=games))


def publish_untried(name: str, text: str) -> None:
    """Publish a ruleset without the trial that a command makes of its rule."""
    assert len(publish_missing(opening.open_ledger(name), "mira", [text])) == 1


def offer_rule(patch: pytest.MonkeyPatch, rule: Rule, name: str | None = None) -> None:
    """Let the program find this rule under its name or another, instead of its own."""
    patch.setattr(versions, "rule", lambda wanted: rule if wanted == (name or rule.id) else registry.rule(wanted))


def withdraw_rule(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let the program find no rule of this name."""
    patch.setattr(versions, "rule", lambda wanted: None if wanted == name else registry.rule(wanted))


def shipped_texts(content: str = "") -> list[str]:
    """Return the files of the shipped rulesets: all, or those that contain this text."""
    return [text for text in versions.read_shipped_texts() if content in text]


def shipped_text(ruleset_id: str, version: str | None = None) -> str:
    """Return the file of a shipped ruleset: of this version, or the first of that id."""
    texts = shipped_texts(f'id = "{ruleset_id}"\n')
    return next(text for text in texts if version is None or f'\nversion = "{version}"\n' in text)


def elo_text(game: str) -> str:
    """Return the file of the ruleset that `init --for` publishes for a game."""
    return versions.read_shipped_elo(game)


def read_ruleset(text: str) -> versions.Ruleset:
    """Return what a file of a ruleset says; it must be valid."""
    ruleset, problems = versions.read_toml(text)
    assert ruleset is not None, problems
    return ruleset


def problems_in(text: str) -> list[versions.RulesetProblem]:
    """Return what is wrong with a file of a ruleset: where, why, and in which line."""
    return versions.read_toml(text)[1]
