"""Check on which ladders a new game counts: whether the rules can score it, and which ladders it creates."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.game_types import has_partners
from ratings_ledger.ledger.events.games import count_seats
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.intake.intake import UnrankedGames
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.projections.admission.known_ladders import NewLadders
from ratings_ledger.projections.admission.league_checks import LeagueNotes, find_requirements
from ratings_ledger.projections.facts.applying import apply
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.replay.eligibility import (
    UnreadableGame,
    can_be_unreadable,
    explain_ineligible,
    explain_kind_mismatch,
    explain_no_version,
    explain_not_scored,
    explain_size_mismatch,
    explain_unreadable,
    list_counted,
    rates_teams,
    reads_numbers,
)
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import name_ladders_of_game
from ratings_ledger.projections.rulesets.versions import ELO, Version, in_force, list_games

SHAPES_MAX = 10_000  # the maximum number of shapes of games that are remembered as countable
_LABELS = frozenset(LABELS)
TEAM_RULESET = "weng-lin"  # a shipped ruleset that rates teams, in any game
_PLACED_MEMBERS = frozenset({"player", "place"})


class GameNotes(NamedTuple):
    """The collectors of notes about games. Nothing is collected for None.

    unranked:    each reason why games are not on any ladder, with the first of these games
    leagues:     the notes about leagues
    new_ladders: the ladders that the games create
    """

    unranked: dict[str, UnrankedGames] | None = None
    leagues: LeagueNotes | None = None
    new_ladders: NewLadders | None = None


NO_NOTES = GameNotes()


class GameChecks:
    """Checks of new games against the versions of all rulesets."""

    def __init__(
        self,
        connection: Connection,
        until: int,
        versions: Mapping[str, list[Version]],
        unusable_games: Mapping[str, str],
        *,
        allow_uncounted: bool,
        notes: GameNotes,
    ) -> None:
        """Store the versions.

        Args:
            connection: the open ledger.
            until: the last position to read.
            versions: the live versions of each ruleset; after they have changed, call `clear`.
            unusable_games: by game, the reason why its ruleset cannot be used here.
            allow_uncounted: whether to accept games that a ladder cannot score.
            notes: the collectors of notes about the games.
        """
        self._connection, self._until = connection, until
        self._versions, self._unusable_games = versions, unusable_games
        self._allow_uncounted, self._notes = allow_uncounted, notes
        # the players of the pending games, by number of seats and labels
        self.pending_players: defaultdict[tuple[int, tuple[str | None, ...]], set[str]] = defaultdict(set)
        self._scored_games_cache: set[str] | None = None
        # by game name and whether it has teams: the rulesets that may refuse it
        self._refusing: dict[tuple[str, bool], list[list[Version]]] = {}
        # by name, type, labels, seats and teams: the reason why such a game is not on any ladder
        self._unranked_reasons: dict[tuple[str, str, frozenset[str], int, bool], str | None] = {}
        # by game: the first instant from which a ruleset scores it, and the ruleset
        self._first_rulesets: dict[str, tuple[int, Ruleset] | None] = {}
        # the shapes of countable games, each with the versions that may score such games
        self._countable_shapes: set[tuple[Any, ...]] = set()

    def clear(self) -> None:
        """Forget conclusions from the versions, because these have changed."""
        self._scored_games_cache = None
        self._refusing.clear()
        self._unranked_reasons.clear()
        self._first_rulesets.clear()
        self._countable_shapes.clear()

    def admit(self, occurred_at: int, data: dict[str, Any]) -> None:
        """Check a game, and add it to the notes and to the pending games. Raises `Refused`."""
        seats, has_teams = count_seats(data), has_partners(data)
        unranked, league_notes, new_ladders = self._notes
        if not self._allow_uncounted:
            self._check_countable(occurred_at, data, has_teams)
        if unranked is not None and (
            reason := self._find_unranked_reason(data, seats, has_teams) or self._find_early_reason(occurred_at, data)
        ):
            group = unranked.get(reason, UnrankedGames(data["game_id"], 0))
            unranked[reason] = group._replace(number=group.number + 1)
        if league_notes is not None:
            requirement = None
            if "league" in data:
                requirement = next(find_requirements(self._versions, data["game"], occurred_at), None)
            league_notes.add_game(self._connection, self._until, data, requirement)
        if new_ladders is not None:
            load_game = partial(build_game_facts, occurred_at, data)
            new_ladders.check_game(self._connection, self._versions, load_game, occurred_at, data)
        if data.get("rated", True) and not data.get("aborted", False):
            labels = (data["game"], *map(data.get, LABELS[1:]))
            players = [participant["player"] for participant in data["participants"]]
            self.pending_players[seats, labels].update(players)

    def refuse_unknown(self, data: dict[str, Any]) -> None:
        """Raise `Refused` (unknown-game) if no ruleset scores games of this name, unless there are no rulesets."""
        game = data["game"]
        if not self._versions or game in self._scored_games or game in self._unusable_games:
            return
        hint = did_you_mean(game, self._scored_games | self._unusable_games.keys())
        # do not suggest a new ruleset for a probable typo
        publish = "" if hint else f"to rate them: {_suggest_system(game, has_partners(data))}; "
        problem = f"no published ruleset scores games of {quote(game)}"
        raise Refused("unknown-game", f"{problem}; {publish}to record them anyway: --new-game{hint}")

    @property
    def _scored_games(self) -> set[str]:
        if self._scored_games_cache is None:
            self._scored_games_cache = list_games(chain.from_iterable(self._versions.values()))
        return self._scored_games_cache

    def _check_countable(self, occurred_at: int, data: dict[str, Any], has_teams: bool) -> None:
        """Raise `Refused` if a game is eligible for a ladder whose rule cannot score it."""
        facts: Facts | None = None
        game_key = data["game"], has_teams
        if game_key not in self._refusing:
            self._refusing[game_key] = [
                versions for versions in self._versions.values() if _may_refuse(versions, *game_key)
            ]
        shape = _find_shape(data) if self._refusing[game_key] else None
        for versions in self._refusing[game_key]:
            candidates = _list_candidates(versions, occurred_at)
            key = (shape, versions[0].ruleset.id, *(version.position for version in candidates))
            if key in self._countable_shapes:
                continue
            facts = facts or build_game_facts(occurred_at, data)
            reasons = [_find_uncountable_reason(facts, version) for version in candidates]
            problem = reasons[-1] if reasons and all(reasons) else None
            if problem and (ladders := name_ladders_of_game(facts, 0, versions[0].ruleset)):
                hint = self._suggest_team_ruleset(facts, data["game"], versions) if problem.code == "no-teams" else ""
                message = f"{ladders[0]} cannot count this game: {problem.reason}{hint}"
                raise Refused(problem.code, f"{message} (--allow-uncounted records it)")
            if shape is not None and len(self._countable_shapes) < SHAPES_MAX:
                self._countable_shapes.add(key)

    def _suggest_team_ruleset(self, facts: Facts, game: str, refusing: Sequence[Version]) -> str:
        """Return the end of a message: how to rate a game with teams that the versions `refusing` cannot score."""
        counting = [
            ruleset_id
            for ruleset_id, versions in self._versions.items()
            if any(game in version.ruleset.scope.game and rates_teams(version.rule) for version in versions)
            and name_ladders_of_game(facts, 0, versions[0].ruleset)
        ]
        if not counting:
            return f"; to publish a ruleset that does: {_suggest_system(game, has_teams=True)}"
        void = " and ".join(f"ratings void --event {version.position} --reason TEXT" for version in refusing)
        return f"; {counting[0]} counts it; to withdraw {refusing[0].ruleset.id}: {void}"

    def _find_unranked_reason(self, data: dict[str, Any], seats: int, has_teams: bool) -> str | None:
        """Return the reason why no game with this name, type, size and labels is on a ladder, or None."""
        kind, labels = data.get("kind", "placing"), _LABELS.intersection(data)
        key = (data["game"], kind, labels, seats, has_teams)
        if key not in self._unranked_reasons:
            all_versions = chain.from_iterable(self._versions.values())
            is_scored = any(data["game"] in version.ruleset.scope.game for version in all_versions)
            unusable = None if is_scored else self._unusable_games.get(data["game"])
            self._unranked_reasons[key] = unusable or _explain_unranked_kind(self._versions, *key)
        return self._unranked_reasons[key]

    def _find_early_reason(self, occurred_at: int, data: dict[str, Any]) -> str | None:
        """Return the reason why a game counts nowhere if it precedes all versions that could score it, else None."""
        name = data["game"]
        if name not in self._first_rulesets:
            all_versions = chain.from_iterable(self._versions.values())
            candidates = [
                (version.effective_from, version.ruleset)
                for version in all_versions
                if name in version.ruleset.scope.game and version.effective_from is not None
            ]
            self._first_rulesets[name] = min(candidates, key=itemgetter(0), default=None)
        if (first := self._first_rulesets[name]) is None:
            return None
        start, ruleset = first
        return explain_no_version(ruleset.id, ruleset.effective_from) if occurred_at < start else None


def _find_shape(data: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the properties of a plain game that decide whether a version can score it; None for other games.

    Places are in the order of the players' ids. The time is left out, because it has already selected the versions and
    otherwise matters only for seasons.
    """
    participants = sorted(data["participants"], key=itemgetter("player"))
    is_plain = "season" not in data and "numbers" not in data and data.get("kind", "placing") == "placing"
    if not is_plain or not all(map(_PLACED_MEMBERS.issuperset, participants)):
        return None
    places = tuple(participant.get("place") for participant in participants)
    return (places, data.get("rated"), data.get("aborted"), *(data.get(label) for label in LABELS))


def _list_candidates(versions: Sequence[Version], occurred_at: int) -> list[Version]:
    """Return the versions that may score a game that ended at an instant."""
    if versions[0].ruleset.freeze != "none":
        # the start of the game's league selects the version, but looking it up for each game is too slow
        return [version for version in versions if version.effective_from is not None]
    version = in_force(versions, occurred_at)
    return [] if version is None else [version]


def _find_uncountable_reason(facts: Facts, version: Version) -> UnreadableGame | None:
    """Return the reason why a version cannot score the only game of the facts, or None.

    It is also None if the game is not eligible, has too few counted players, or makes the rule fail.
    """
    if explain_ineligible(facts, 0, version.ruleset) is not None:
        return None
    participants = list_counted(facts, 0, version)
    if len(participants) < version.rule.counted_min:
        return None  # the ruleset leaves out too many players; the game itself is valid
    if can_be_unreadable(facts, version) and (unreadable := explain_unreadable(facts, 0, version, participants)):
        return unreadable
    try:
        reason = explain_not_scored(facts, 0, version, participants)
        return None if reason is None else UnreadableGame("uncounted", reason)
    except RuleFailure:
        return None  # the ladder reports its failing rule


def _explain_unranked_kind(
    versions: Mapping[str, list[Version]], game: str, kind: str, labels: frozenset[str], seats: int, has_teams: bool
) -> str | None:
    """Return the reason why no ruleset puts a game on a ladder; None if one does, or if there are no rulesets."""
    if not versions:
        return None
    newest_first = [*chain.from_iterable(map(reversed, versions.values()))]
    scoring = [version.ruleset for version in newest_first if game in version.ruleset.scope.game]
    if not scoring:
        hint = did_you_mean(game, list_games(newest_first)) or f"; to publish one: {_suggest_system(game, has_teams)}"
        return f"no ruleset scores games of {game}{hint}"
    for find_mismatch in (
        lambda ruleset: explain_kind_mismatch(ruleset, kind),
        lambda ruleset: explain_size_mismatch(ruleset, seats),
    ):
        reasons = list(map(find_mismatch, scoring))
        if all(reasons):
            return reasons[0]
        scoring = [ruleset for ruleset, reason in zip(scoring, reasons, strict=True) if reason is None]
    missing = {ruleset.id: sorted((frozenset(LABELS) & {*ruleset.partition.by}) - labels) for ruleset in scoring}
    if all(missing.values()):
        needs = "; ".join(f"{name} needs the game's {' and '.join(needed)}" for name, needed in missing.items())
        missing_labels = [label for label in LABELS if label in set().union(*missing.values())]
        options = " ".join(f"--set {label}={label.upper()}" for label in missing_labels)
        return f"{needs}; each {' and '.join(missing_labels)} has its own ladders; for a whole table: {options}"
    return None


def _suggest_system(game: str, has_teams: bool) -> str:
    """Return the command that publishes a shipped ruleset for a game, or for a game with teams."""
    return f"ratings rules publish --shipped {TEAM_RULESET if has_teams else ELO} --game {game}"


def _may_refuse(versions: Sequence[Version], game: str, has_teams: bool) -> bool:
    """Tell whether a ruleset scores games of this name, but may be unable to score some of them."""
    return any(
        game in version.ruleset.scope.game
        and (
            version.rule.check
            or "season" in version.ruleset.partition.by
            or reads_numbers(version)
            or (has_teams and not rates_teams(version.rule))
        )
        for version in versions
    )


def build_game_facts(occurred_at: int, data: dict[str, Any]) -> Facts:
    """Return facts that have only one game, which is not recorded yet."""
    facts = Facts(0, b"")
    apply(facts, 1, KnownEvent("", "game.recorded", occurred_at, data))
    return facts
