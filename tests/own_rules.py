"""Load built-in rules and shipped rulesets, and substitute a test's own rules for them."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ratings_ledger.cli.commands import rule_trials
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import read_data
from ratings_ledger.ledger.store import opening
from ratings_ledger.projections import compiling
from ratings_ledger.projections.admission import drawn_games
from ratings_ledger.projections.admission.drawn_games import parse_column_ranges
from ratings_ledger.projections.admission.publishing_rulesets import publish_missing
from ratings_ledger.projections.admission.trials import try_rule
from ratings_ledger.projections.replay import replay
from ratings_ledger.projections.rulesets import registry, shipped_rulesets, versions
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF
from ratings_ledger.rules import Rule
from ratings_ledger.rules.testing import Trial

needs_numba = pytest.mark.skipif(not compiling.is_available(), reason="the extra fast is not installed")
SHIPPED = Path(__file__).parents[1] / "projections" / "shipped"


def load_built_in_rule(name: str) -> Rule:
    """Return the built-in rule with this name and version."""
    rule = registry.find_rule(name)
    assert rule is not None
    return rule


def list_built_in_rules() -> list[str]:
    """Return the names of the built-in rules without state, those of contract 1."""
    return [name for name in registry.BUILT_IN if not load_built_in_rule(name).state]


def list_state_rules() -> list[str]:
    """Return the names of the built-in rules with state, those of contract 2."""
    return [name for name in registry.BUILT_IN if load_built_in_rule(name).state]


def reads_kind(rule: Rule, kind: str) -> bool:
    """Tell whether a rule reads columns that only games of this kind have."""
    return bool({*rule.columns} & {*list_columns_of_kind(kind)})


def list_columns_of_kind(kind: str) -> list[str]:
    """Return the names of the columns that only games of this kind have."""
    return [*COLUMNS_OF[kind]]


def list_malformed_members(rule: Rule) -> list[str]:
    """Return the errors in the members of a rule, any of which prevents the program from loading it."""
    return [*registry.find_malformed_members(rule)]


def is_installed(name: str) -> bool:
    """Tell whether there is a rule of this name, built in or in a package."""
    return registry.find_rule(name) is not None or name in registry.rule_names()


def forget_rules(patch: pytest.MonkeyPatch) -> None:
    """Make the program look up all rules again, as a new process does."""
    registry.find_rule.cache_clear()
    patch.setattr(registry, "_abandoned", {})


def forbid_compiling(patch: pytest.MonkeyPatch) -> None:
    """Make the program interpret every rule."""
    patch.setattr(compiling, "is_allowed", lambda: False)


def compile_every_rule(patch: pytest.MonkeyPatch) -> None:
    """Make the program compile every rule, for ladders of any length; with numba, an interpreted replay fails."""
    patch.setattr(compiling, "COMPILED_GAMES", 1)
    patch.setattr(compiling, "can_compile", lambda rule: True)
    if compiling.is_available():
        patch.setattr(replay, "replay_interpreted", None)
        patch.setattr(replay, "_make_checked_period_loop", None)


def try_ruleset(text: str, games: int, columns: Sequence[str] = ()) -> Trial:
    """Return the outcome of playing drawn games under a ruleset; `columns` are ranges such as seat=1..2."""
    version = bind_ruleset(text)
    return try_rule(version, games=games, ranges=parse_column_ranges(columns, version.rule))


def check_drawn_games(patch: pytest.MonkeyPatch) -> None:
    """Make trials check every drawn game like a recorded game."""
    apply = drawn_games.apply

    def check_and_apply(facts: Any, position: int, event: KnownEvent) -> None:
        if event.type == "game.recorded":
            read_data(event.type, event.data)
        apply(facts, position, event)

    patch.setattr(drawn_games, "apply", check_and_apply)


def shorten_trials(patch: pytest.MonkeyPatch, games: int) -> None:
    """Make the command that tries a rule play this many games."""
    patch.setattr(rule_trials, "try_rule", partial(try_rule, games=games))


def publish_without_trial(name: str, text: str) -> None:
    """Publish a ruleset without trying its rule first."""
    assert len(publish_missing(opening.open_ledger(name), "mira", [text])) == 1


def publish_every_shipped_ruleset(name: str) -> None:
    """Publish all shipped rulesets, also those that the program publishes only on request."""
    publish_missing(opening.open_ledger(name), "test", versions.read_shipped_texts())


def substitute_rule(patch: pytest.MonkeyPatch, rule: Rule, name: str | None = None) -> None:
    """Make the program find this rule under its name, or under another, instead of its own."""
    substitute_rules(patch, {name or rule.id: rule})


def substitute_rules(patch: pytest.MonkeyPatch, rules: Mapping[str, Rule]) -> None:
    """Make the program find these rules under these names instead of its own."""
    patch.setattr(versions, "find_rule", lambda rule_id: rules.get(rule_id) or registry.find_rule(rule_id))


def withdraw_rule(patch: pytest.MonkeyPatch, name: str) -> None:
    """Make the program find no rule of this name."""
    patch.setattr(versions, "find_rule", lambda rule_id: None if rule_id == name else registry.find_rule(rule_id))


def find_shipped_texts(content: str = "") -> list[str]:
    """Return the texts of the shipped rulesets: all, or those that contain this text."""
    return [text for text in versions.read_shipped_texts() if content in text]


def find_shipped_text(ruleset_id: str, version: str | None = None) -> str:
    """Return the text of a shipped ruleset: of this version, or of the first with that id."""
    texts = find_shipped_texts(f'id = "{ruleset_id}"\n')
    return next(text for text in texts if version is None or f'\nversion = "{version}"\n' in text)


def list_rulesets_on_request() -> list[str]:
    """Return the names of the shipped rulesets that the program publishes only on request."""
    return [name for name, ruleset in shipped_rulesets.shipped_rulesets().items() if ruleset.on_request]


def fill_in_ruleset(name: str, game: str) -> list[str]:
    """Return the texts of all versions of a shipped ruleset for this game."""
    return shipped_rulesets.find_shipped(name).fill_in(game)


def read_elo_text(game: str) -> str:
    """Return the text of the ruleset that `init --for` publishes for a game."""
    return fill_in_ruleset("elo", game)[-1]


def read_ruleset(text: str) -> versions.Ruleset:
    """Return the ruleset in a text, which must be valid."""
    ruleset, problems = versions.read_toml(text)
    assert ruleset is not None, problems
    return ruleset


def bind_ruleset(text: str) -> versions.Version:
    """Return the version in a text, bound to its rule; both must be valid."""
    version, problems = versions.bind(read_ruleset(text))
    assert version is not None, problems
    return version


def find_ruleset_problems(text: str) -> list[versions.RulesetProblem]:
    """Return the problems in the text of a ruleset."""
    return versions.read_toml(text)[1]
