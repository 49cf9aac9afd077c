"""The rules by name and number: those of this program, and those that other packages register by entry point.

A package registers a rule in the entry-point group `ratings_ledger.rules`, under its full name such as `my-rule/1`.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from projections.contract import Rule

ENTRY_POINT_GROUP = "ratings_ledger.rules"

BUILT_IN = {
    "annual-places/1": "projections.rules.annual_places",
    "ante-pool/1": "projections.rules.ante_pool",
    "blue-max/1": "projections.rules.blue_max",
    "catan-points/1": "projections.rules.catan_points",
    "contribution-pool/1": "projections.rules.contribution_pool",
    "italia/1": "projections.rules.italia",
    "pairwise-elo/1": "projections.rules.pairwise_elo",
    "placement-points/1": "projections.rules.placement_points",
    "wooden-ships/1": "projections.rules.wooden_ships",
}


@cache
def rule(name: str) -> Rule | None:
    """The rule of that name and number, or None. Raises `ValueError` where two packages register the same."""
    if name in BUILT_IN:
        found = import_module(BUILT_IN[name]).RULE
        assert isinstance(found, Rule)
        return found
    outside = list(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if len(outside) > 1:
        raise ValueError(f"the rule {name} is registered by several packages: {', '.join(e.value for e in outside)}")
    if not outside:
        return None
    try:
        loaded = outside[0].load()
    except Exception as error:
        raise ValueError(f"the rule {name} cannot be loaded from {outside[0].value}: {error}") from error
    if not isinstance(loaded, Rule) or loaded.id != name:
        raise ValueError(f"the entry point {name} ({outside[0].value}) does not lead to a rule of that name")
    return loaded


def rule_names() -> list[str]:
    """The names of all registered rules, sorted."""
    return sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=ENTRY_POINT_GROUP))})
