"""Checking a rule in the tests of its package, as `ratings rules check` does."""

from ratings_ledger.projections.admission.trials import SEED, Trial, try_rule
from ratings_ledger.projections.rulesets.ruleset_sources import RulesetSource, read_source
from ratings_ledger.projections.rulesets.versions import bind

__all__ = ["Trial", "check"]


def check(ruleset: RulesetSource, *, seed: int = SEED) -> Trial:
    """Try the rule of a ruleset on drawn games, interpreted and compiled; the package must be installed.

    Args:
        ruleset: the ruleset, as for `Ledger.publish`: a file, a text of TOML, tables or the name of a shipped one.
        seed: draws the games.

    Returns:
        How many games were drawn and scored, and why others were not.

    Raises:
        BadArgument: the ruleset is wrong, or its rule is not installed.
        AssertionError: the rule is wrong, with everything that is, or it scored none of the games.
    """
    version, problems = bind(read_source(ruleset, "UTC")[-1].ruleset)
    assert version is not None, problems
    trial = try_rule(version, seed)
    if trial.problems:
        raise AssertionError("; ".join(trial.problems))
    if trial.is_empty:
        told = "; ".join(f"{reason} ({count} games)" for reason, count in trial.uncounted)
        raise AssertionError(f"no drawn game was scored: {told}")
    return trial
