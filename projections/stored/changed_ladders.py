"""Which ladders the events after a position may have changed; all others keep the rows that are stored of them."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, live_game
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.log import Log, changed_games, read_types
from ratings_ledger.projections.admission.events import one_game
from ratings_ledger.projections.diff.affected import describe_affected, is_affected
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.replay.ladders import list_partition_values
from ratings_ledger.projections.rulesets.versions import Version, list_games
from ratings_ledger.projections.stored.computing import of_packages

# so many games are attributed to their ladders one by one; beyond that, all ladders of their rulesets have changed
GAMES_MAX = 10_000


class GameState(NamedTuple):
    """A game as it is, or as it was before: a row of some facts."""

    facts: Facts
    row: int

    @property
    def name(self) -> str | None:
        """Return what was played."""
        return self.facts.label("game", self.row)


def changed_since(connection: Connection, facts: Facts, position: int) -> set[str] | None:
    """Return the names of the ladders, and of the rulesets with all their ladders, that may have changed.

    Rulesets that cannot be used, or whose rules come from packages, are always among them: nobody can say when the code
    of a package changes.

    Args:
        facts: all facts now, games included.
        position: the ladders are compared with what they were there.

    Returns:
        The names; None if any ladder may have changed.
    """
    affected = _affected_since(connection, facts, position)
    states = list(_game_states(connection, facts, position))
    if "all" in affected or len(states) > GAMES_MAX:
        return None
    played = {state.name for state in states}
    changed = {*facts.unusable, *of_packages(facts)}
    for ruleset_id, versions in facts.rulesets.items():
        summed = [facts.rulesets.get(getattr(version.params, "of", None) or "", []) for version in versions]
        games = list_games([*versions, *(version for every in summed for version in every)])
        # periods close with the time at which anything is recorded
        if versions[0].ruleset.period != "game" or any(is_affected(version, affected) for version in versions):
            changed.add(ruleset_id)
        elif played & games:
            changed |= _ladders_of(versions, states) if _stands_alone(facts, versions) else {ruleset_id}
    return changed


def _affected_since(connection: Connection, facts: Facts, position: int) -> set[str]:
    """Return what events other than those about games may have affected, as `describe_affected` has it."""
    types = [name for name, event_type in TYPES.items() if not event_type.is_silent and name not in GAME_EVENTS]
    affected = set[str]()
    for event in read_types(connection, types, until=facts.position, after=position):
        if event.position not in facts.left_out:
            by_clock = event.type in CLOCK_TYPES
            affected |= _ruled_by_clocks(facts) if by_clock else describe_affected(event.type, event.data, ())
    return affected


def _ruled_by_clocks(facts: Facts) -> set[str]:
    """Return the rulesets whose rules read what the games' clocks say."""
    return {
        f"ruleset:{name}"
        for name, versions in facts.rulesets.items()
        if any("seconds_played" in version.rule.columns for version in versions)
    }


def _game_states(connection: Connection, facts: Facts, position: int) -> Iterator[GameState]:
    """Yield every game about which something was recorded since: as it is now, and as it was if it is an older one.

    Of more than `GAMES_MAX` games only so many that this can be seen.
    """
    new = bisect_right(facts.first_position, position)
    for row in range(new, min(len(facts.first_position), new + GAMES_MAX + 1)):
        yield GameState(facts, row)
    before = Log(connection, position)
    for subject in sorted(changed_games(connection, position))[: GAMES_MAX + 1]:
        row = facts.rows.get(subject.removeprefix("game:"), new)
        if row < new:
            yield GameState(facts, row)
            if (game := live_game(before.about(subject))) is not None:
                yield GameState(one_game(game.occurred_at, game.data), 0)


def _stands_alone(facts: Facts, versions: Sequence[Version]) -> bool:
    """Tell whether a game changes no ladder of a ruleset but those that it is on."""
    return versions[0].ruleset.freeze == "none" and not any(
        version.params.carry_over or getattr(version.params, "of", None) for version in versions
    )


def _ladders_of(versions: Sequence[Version], states: Collection[GameState]) -> set[str]:
    """Return the names of a ruleset's ladders that some games are on by their labels, sizes and dates."""
    ruleset, games = versions[0].ruleset, list_games(versions)
    return {
        "/".join([ruleset.id, *values])
        for facts, row in (state for state in states if state.name in games)
        for values in list_partition_values(facts, row, ruleset)
    }
