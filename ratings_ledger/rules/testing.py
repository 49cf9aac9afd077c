"""Check a rule in the tests of its package, like `ratings rules check`."""

from ratings_ledger.projections.admission.trials import SEED, Trial, try_rule
from ratings_ledger.projections.rulesets.ruleset_sources import RulesetSource, read_source
from ratings_ledger.projections.rulesets.versions import bind

__all__ = ["Trial", "check"]


def check(ruleset: RulesetSource, *, seed: int = SEED) -> Trial:
    """Try the rule of a ruleset on random games, interpreted and compiled; the package must be installed.

    Args:
        ruleset: the ruleset, as for `Ledger.publish`: a file, TOML text, tables or the name of a shipped one.
        seed: the seed of the random games.

    Returns:
        The numbers of games drawn and scored, and the reasons why others were not scored.

    Raises:
        BadArgument: the ruleset is invalid, or its rule is not installed.
        AssertionError: the rule has errors, which the message lists, or it scored none of the games.
    """
    version, problems = bind(read_source(ruleset, "UTC")[-1].ruleset)
    assert version is not None, problems
    trial = try_rule(version, seed)
    if trial.problems:
        raise AssertionError("; ".join(trial.problems))
    if trial.is_empty:
        reasons = "; ".join(f"{reason} ({count} games)" for reason, count in trial.uncounted)
        raise AssertionError(f"no game was scored: {reasons}")
    return trial
