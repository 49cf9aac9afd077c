"""Know the ladders and players that a ledger has, and collect the ladders that proposed games create.

A typo in a group, city, league or season creates a ladder:

    new ladder catan-elo/basci; did you mean catan-elo/basic?

Months, years and player-count bands are ignored, because new ones appear as a matter of course.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import head, read_known_events, read_records
from ratings_ledger.ledger.validation.close_names import find_close_names, find_similar_names
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.lookups import Players, games_played, knows_club, ranks_clubs
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.ledger_names import Labels, drop_label, find_played_labels
from ratings_ledger.projections.replay.eligibility import explain_ineligible
from ratings_ledger.projections.replay.ladder_names import find_label_indexes, parse_name
from ratings_ledger.projections.replay.streams import name_ladders_of_game
from ratings_ledger.projections.rulesets.versions import Version, in_force

# the maximum number of refused ladders for which a did-you-mean hint is computed
HINTS_MAX = 100


class NewLadder(NamedTuple):
    """A ladder that a game creates: its ruleset, the values in its name, and the indexes of the labels among them."""

    ruleset_id: str
    values: Labels
    label_indexes: Sequence[int]

    @property
    def name(self) -> str:
        """Return the ladder's full name."""
        return "/".join((self.ruleset_id, *self.values))

    @property
    def labels(self) -> Labels:
        """Return the labels in the name of the ladder."""
        return tuple(self.values[index] for index in self.label_indexes)

    def name_with_label(self, number: int, label: str) -> str:
        """Return the name of the ladder with another value for the label with this number."""
        index = self.label_indexes[number]
        return self._replace(values=(*self.values[:index], label, *self.values[index + 1 :])).name


class NewLadders:
    """The ladders that the games of an import create. `facts` returns the facts of the log before the import."""

    def __init__(self, facts: Callable[[Connection], Facts], strict: bool = False) -> None:
        """With `strict`, a game that creates a ladder is refused."""
        self._load_facts = facts
        self._strict = strict
        self._existing_labels: dict[str, set[Labels]] = {}
        self._leagues: set[str] = set()
        # label combinations that cannot create another ladder
        self._checked: set[tuple[str | None, ...]] = set()
        # did-you-mean hints by the name of a refused ladder
        self._hints: dict[str, str] = {}
        self.ladders: list[NewLadder] = []

    def check_game(
        self,
        connection: Connection,
        versions: Mapping[str, Sequence[Version]],
        load_game: Callable[[], Facts],
        occurred_at: int,
        data: Mapping[str, Any],
    ) -> None:
        """Collect the ladders that a game creates; `load_game` returns facts with only this game.

        If strict, raise `Refused` (new-ladder) instead.
        """
        labels = tuple(map(data.get, LABELS))
        if labels in self._checked:
            return
        facts: Facts | None = None
        is_final = True
        for ruleset_versions in versions.values():
            in_scope = any(data["game"] in version.ruleset.scope.game for version in ruleset_versions)
            if not in_scope or not _has_ladder_labels(ruleset_versions, data):
                continue
            facts = facts or load_game()
            version = in_force(ruleset_versions, occurred_at)
            if version is None or explain_ineligible(facts, 0, version.ruleset):
                is_final = False  # another game with these labels may count
                continue
            for name in name_ladders_of_game(facts, 0, version.ruleset):
                self._add_ladder(connection, ruleset_versions, name, data)
        if is_final:
            self._checked.add(labels)

    def _add_ladder(
        self, connection: Connection, versions: Sequence[Version], name: str, data: Mapping[str, Any]
    ) -> None:
        """Add or refuse a ladder, unless it has a game or an adjustment, or belongs to a recorded league."""
        ruleset = versions[0].ruleset
        ladder = NewLadder(*parse_name(name), find_label_indexes(ruleset.partition.by))
        existing = self._load_existing_labels(connection, versions)
        has_league = "league" in ruleset.partition.by and data["league"] in self._leagues
        if ladder.labels in existing or has_league:
            return
        if self._strict:
            problem = f"{quote(ladder.name)} is a new ladder; to create it, omit --strict"
            raise Refused("new-ladder", f"{problem}{self._suggest_similar(ladder)}")
        existing.add(ladder.labels)
        self.ladders.append(ladder)

    def _suggest_similar(self, refused: NewLadder) -> str:
        """Return a did-you-mean hint for a refused ladder; empty if no name is similar, or after `HINTS_MAX` hints."""
        if refused.name not in self._hints and len(self._hints) < HINTS_MAX:
            similar_name = suggest_ladders([refused], self._existing_labels[refused.ruleset_id]).get(refused.name)
            self._hints[refused.name] = "" if similar_name is None else f"; did you mean {similar_name}?"
        return self._hints.get(refused.name, "")

    def find_similar(self) -> dict[str, str]:
        """Return the name of a similar ladder for each new ladder that has one, by new name, which may be a typo."""
        similar: dict[str, str] = {}
        for ruleset_id in dict.fromkeys(ladder.ruleset_id for ladder in self.ladders):
            ladders = [ladder for ladder in self.ladders if ladder.ruleset_id == ruleset_id]
            similar |= suggest_ladders(ladders, self._existing_labels[ruleset_id])
        return similar

    def _load_existing_labels(self, connection: Connection, versions: Sequence[Version]) -> set[Labels]:
        """Return the labels of a ruleset's ladders that already have a game or an adjustment."""
        ruleset_id = versions[0].ruleset.id
        if ruleset_id not in self._existing_labels:
            facts = self._load_facts(connection)
            self._leagues = {facts.texts[league.league] for league in facts.leagues}
            self._existing_labels[ruleset_id] = find_played_labels(facts, versions)
        return self._existing_labels[ruleset_id]


def suggest_ladders(new: Sequence[NewLadder], existing: Collection[Labels]) -> dict[str, str]:
    """Return the name of a similar ladder, existing or new, for each new ladder of a ruleset that has one, by name.

    Two names are similar if exactly one label differs, and its two values are similar (`find_similar_names`) or close
    (`find_close_names`). The time grows with the number of new ladders plus the number of existing ones, not with their
    product.
    """
    suggestions: dict[str, str] = {}
    old_labels = sorted({*existing} - {ladder.labels for ladder in new})
    for number in range(len(new[0].label_indexes)):
        # group the ladders by all labels except this one
        new_by_others: dict[Labels, dict[str, NewLadder]] = {}
        for ladder in new:
            new_by_others.setdefault(drop_label(ladder.labels, number), {})[ladder.labels[number]] = ladder
        existing_by_others: dict[Labels, list[str]] = {other_labels: [] for other_labels in new_by_others}
        for labels in old_labels:
            if (other_labels := drop_label(labels, number)) in existing_by_others:
                existing_by_others[other_labels].append(labels[number])
        for other_labels, new_by_label in new_by_others.items():
            typos = find_similar_names([*new_by_label], [*existing_by_others[other_labels], *new_by_label]) | dict(
                find_close_names([*new_by_label], existing_by_others[other_labels])
            )
            for label, similar_labels in typos.items():
                suggestions.setdefault(
                    new_by_label[label].name, new_by_label[label].name_with_label(number, similar_labels[0])
                )
    return suggestions


def _has_ladder_labels(versions: Sequence[Version], data: Mapping[str, Any]) -> bool:
    """Tell whether a ruleset partitions by labels and a game has all of these labels."""
    by = versions[0].ruleset.partition.by
    indexes = find_label_indexes(by)
    return bool(indexes) and all(by[index] in data for index in indexes)


def _load_newest(connection: Connection) -> Ladders:
    """Return the ladders at the head of the log."""
    return Ladders(decode(connection))


class KnownLadders:
    """The ladders of a ledger, read once, and its players, updated with the events recorded since.

    A player stays known even if their only game is voided meanwhile.
    """

    def __init__(self, strict: bool = False, load_newest: Callable[[Connection], Ladders] = _load_newest) -> None:
        """With `strict`, a game that creates a ladder is refused."""
        self._load_newest = load_newest
        self._ladders: Ladders | None = None
        self._names: set[str] | Players | None = None
        self._position = 0
        self.new_ladders = NewLadders(self.facts, strict)

    def ladders(self, connection: Connection) -> Ladders:
        """Return the ladders at the head of the log, as read at the first call."""
        if self._ladders is None:
            self._ladders = self._load_newest(connection)
        return self._ladders

    def facts(self, connection: Connection) -> Facts:
        """Return the facts of `ladders`."""
        return self.ladders(connection).facts

    @property
    def decoded(self) -> Facts | None:
        """Return the facts if they have been decoded, else None."""
        return None if self._ladders is None else self._ladders.facts

    @property
    def games(self) -> int:
        """Return the number of games in the facts, 0 if they have not been decoded."""
        return 0 if self._ladders is None else len(self._ladders.facts.start)

    def games_played(self, connection: Connection, names: Collection[str]) -> dict[str, int]:
        """Return each player's number of games, according to the facts, by player id."""
        return games_played(self.facts(connection), names)

    def ranks_club(self, connection: Connection, ladder: str, name: str) -> bool:
        """Tell whether a ladder ranks clubs and a club of this name has played."""
        facts = self.facts(connection)
        return ranks_clubs(facts, ladder) and knows_club(facts, name)

    def players(self, connection: Connection) -> Collection[str]:
        """Return the ids of the players in the ledger."""
        if self._names is None:
            ladders = self.ladders(connection)
            has_cache = ladders.facts.cache is not None
            self._names = Players(ladders.facts, lambda: ladders.players) if has_cache else {*ladders.players}
            self._position = ladders.facts.position
        elif (newest := head(connection).position) > self._position:
            for page in read_records(connection, self._position, newest):
                for event in read_known_events(page):
                    self._names.update(TYPES[event.type].list_named_players(event.data))
            self._position = newest
        return self._names
