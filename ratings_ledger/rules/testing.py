"""Check a rule from the tests of its package, as `ratings rules check` does at the command line."""

from ratings_ledger.ledger.rejections import count
from ratings_ledger.projections.admission.trials import SEED, Trial, try_rule
from ratings_ledger.projections.rulesets.ruleset_sources import RulesetSource, read_source
from ratings_ledger.projections.rulesets.versions import bind

__all__ = ["Trial", "check"]


def check(ruleset: RulesetSource, *, seed: int = SEED) -> Trial:
    """Try the rule of a ruleset on random games, interpreted and compiled; the package must be installed.

    Args:
        ruleset: the ruleset, in any form that `Ledger.publish` accepts, such as a file or TOML text.
        seed: the seed of the random games.

    Returns:
        The numbers of games generated and scored, and the reasons why games were not scored.

    Raises:
        BadArgument: the ruleset is invalid, or its rule is not installed.
        AssertionError: the rule scored no game, or it has errors. The message lists the errors.
    """
    version, problems = bind(read_source(ruleset, "UTC")[-1].ruleset)
    assert version is not None, problems
    trial = try_rule(version, seed)
    if trial.problems:
        raise AssertionError("; ".join(trial.problems))
    if trial.is_empty:
        reasons = "; ".join(f"{reason} ({count(number, 'game')})" for reason, number in trial.uncounted)
        raise AssertionError(f"no game was scored: {reasons}")
    return trial
