"""List what rulesets assume where their sources are silent, including assumptions that their texts do not mark.

The text of a published version never changes. So this module has the assumptions of shipped versions that were
recognised as such only later.
"""

from collections.abc import Iterable, Mapping

from ratings_ledger.ledger.events.types import Ruleset

_WITHIN_TIME = "the page gives a point for a win within time; it is taken to be given without a victory, too"
UNMARKED: Mapping[str, Mapping[str, str]] = {
    "b5-league@1": {
        "season_months": "the page says that a season lasts 4 months, not when it begins",
        "within_time": _WITHIN_TIME,
    },
    "b5-league@2": {"within_time": _WITHIN_TIME},
    "catan-open@2008-03": {
        "min_games": "the page says seven for the list of a month; that is taken for the open list, too",
    },
    "catan-elo@2009-01": {
        "account": "the page gives free accounts no ranking value; players counted before are taken to stay ranked",
    },
}


def assumptions_of(ruleset: Ruleset) -> dict[str, str]:
    """Return the assumptions of a version: by key, the reason why its value is an assumption."""
    return {**UNMARKED.get(ruleset.name, {}), **ruleset.assumed}


def assumptions_among(ruleset: Ruleset, keys: Iterable[str]) -> dict[str, str]:
    """Return the assumptions of a version about some keys, in the order of the keys."""
    assumed = assumptions_of(ruleset)
    return {key: assumed[key] for key in dict.fromkeys(keys) if key in assumed}
