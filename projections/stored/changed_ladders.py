"""Find the ladders that events after a position may have changed. All other ladders keep their stored rows."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, apply_revisions
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.log import Log, find_changed_games, read_chain_hash, read_valid_events
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import list_runs
from ratings_ledger.projections.admission.game_checks import build_game_facts
from ratings_ledger.projections.diff.affected import is_affected, list_affected_groups
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.program import program_digest
from ratings_ledger.projections.replay.streams import name_ladders_of_game
from ratings_ledger.projections.rulesets.versions import Version, list_games
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.computing import list_package_rulesets

# with more states of changed games than this, finding the ladders of each takes longer than rebuilding every ladder
CHANGED_GAMES_MAX = 10_000


class GameState(NamedTuple):
    """A current or former state of a game, as a row in facts."""

    facts: Facts
    row: int

    @property
    def name(self) -> str | None:
        """Return the name of the game that was played, such as `catan`."""
        return self.facts.label("game", self.row)


def find_changed_since_build(
    ledger: Ledger, connection: Connection, facts: Facts, live: Row[Any], stored: Sequence[Row[Any]]
) -> set[str] | None:
    """Return the ladders and rulesets that may differ from the live generation; None if this cannot be known.

    It can be known only if this version of the program built the live generation from the history of this log. `stored`
    are the ladder rows of this generation.
    """
    runs = list_runs(ledger, connection, now=0)  # only finished runs have details
    builds = [run for run in runs if run.kind == "rebuild" and run.details.get("generation") == live.generation]
    if not builds or builds[0].details.get("program") != program_digest():
        return None
    try:
        chain_hash, _ = generations.read_stored_head(live)
    except StoreDamaged:
        return None
    if not 0 < live.position <= facts.position or read_chain_hash(connection, live.position) != chain_hash:
        return None
    changed = find_changed_ladders(connection, facts, live.position)
    if changed is None:
        return None
    # also rebuild ladders that are empty, have lost rows, are stale, or failed
    to_rebuild = {*generations.find_incomplete_ladders(connection, live.generation)}
    to_rebuild |= {row.ladder for row in stored if row.position != live.position}
    return changed | to_rebuild | {failure["ladder"] for failure in builds[0].details.get("failed", [])}


def find_changed_ladders(connection: Connection, facts: Facts, position: int) -> set[str] | None:
    """Return the ladders that may have changed, by name; the name of a ruleset stands for all its ladders.

    Unusable rulesets, and rulesets with third-party rules, are always included, because the code of a package can
    change without an event.

    Args:
        connection: A connection to the ledger.
        facts: The current facts, with games.
        position: The position after which events count as changes.

    Returns:
        The names; None if any ladder may have changed, or if there are too many changed games.
    """
    affected = _find_affected_since(connection, facts, position)
    states = list(_load_game_states(connection, facts, position))
    if "all" in affected or len(states) > CHANGED_GAMES_MAX:
        return None
    changed_games = {state.name for state in states}
    changed = {*facts.unusable, *list_package_rulesets(facts)}
    for ruleset_id, versions in facts.rulesets.items():
        source_versions = [facts.rulesets.get(getattr(version.params, "of", None) or "", []) for version in versions]
        games = list_games([*versions, *(version for source in source_versions for version in source)])
        # a ruleset with rating periods always counts as changed, because time has passed and may have closed a period
        if versions[0].ruleset.period != "game" or any(is_affected(version, affected) for version in versions):
            changed.add(ruleset_id)
        elif changed_games & games:
            changed |= _list_ladders(versions, states) if _is_independent(versions) else {ruleset_id}
    return changed


def _find_affected_since(connection: Connection, facts: Facts, position: int) -> set[str]:
    """Return the groups of ladders (see `diff/affected.py`) that new events other than those of games may affect."""
    types = [name for name, event_type in TYPES.items() if not event_type.is_silent and name not in GAME_EVENTS]
    affected = set[str]()
    for event in read_valid_events(connection, types, until=facts.position, after=position):
        if event.position not in facts.left_out:
            is_clock_event = event.type in CLOCK_TYPES
            affected |= (
                _list_clock_rulesets(facts) if is_clock_event else list_affected_groups(event.type, event.data, ())
            )
    return affected


def _list_clock_rulesets(facts: Facts) -> set[str]:
    """Return the subjects of the rulesets whose rules read times that game clocks determine."""
    return {
        f"ruleset:{name}"
        for name, versions in facts.rulesets.items()
        if any("seconds_played" in version.rule.columns for version in versions)
    }


def _load_game_states(connection: Connection, facts: Facts, position: int) -> Iterator[GameState]:
    """Yield the current state of every game with an event after the position, and the former state of older games.

    If there are more than `CHANGED_GAMES_MAX` such games, yield only enough states to exceed that number.
    """
    first_new_row = bisect_right(facts.first_position, position)
    for row in range(first_new_row, min(len(facts.first_position), first_new_row + CHANGED_GAMES_MAX + 1)):
        yield GameState(facts, row)
    earlier_log = Log(connection, position)
    for subject in sorted(find_changed_games(connection, position))[: CHANGED_GAMES_MAX + 1]:
        row = facts.rows.get(subject.removeprefix("game:"), first_new_row)
        if row < first_new_row:
            yield GameState(facts, row)
            if (game := apply_revisions(earlier_log.about(subject))) is not None:
                yield GameState(build_game_facts(game.occurred_at, game.data), 0)


def _is_independent(versions: Sequence[Version]) -> bool:
    """Tell whether a game changes only the ladders on which it counts, and no other ladder of the ruleset."""
    return versions[0].ruleset.freeze == "none" and not any(
        version.params.carry_over or getattr(version.params, "of", None) for version in versions
    )


def _list_ladders(versions: Sequence[Version], states: Collection[GameState]) -> set[str]:
    """Return the ladders of a ruleset to which these games belong by their labels, sizes and dates."""
    ruleset, games = versions[0].ruleset, list_games(versions)
    return {
        ladder
        for facts, row in (state for state in states if state.name in games)
        for ladder in name_ladders_of_game(facts, row, ruleset)
    }
