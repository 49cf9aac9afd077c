"""Check new events against the ledger's rulesets, before the events are appended.

Among other events, the checks refuse a game that is eligible for a ladder whose rule cannot score it, an invalid
ruleset, and an adjustment on an unknown ladder. They take account of rulesets published earlier in the same import.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.game_types import has_partners
from ratings_ledger.ledger.events.games import count_seats
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.intake.intake import UnrankedGames
from ratings_ledger.ledger.intake.matching import DAY_MICROSECONDS
from ratings_ledger.ledger.rejections import Refused, count, did_you_mean, quote
from ratings_ledger.ledger.store.appending import build_version_exists_rejection
from ratings_ledger.ledger.store.log import read_live
from ratings_ledger.ledger.validation.leagues import TYPES as LEAGUE_TYPES
from ratings_ledger.projections.admission.notes import ActivityRequirement, LeagueNotes, NewLadders
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.facts.applying import apply
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.game_clock.logs import Clocks
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
from ratings_ledger.projections.replay.ladder_names import find_ladder_name_problem, parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import name_ladders_of_game
from ratings_ledger.projections.rulesets.registry import BUILT_IN
from ratings_ledger.projections.rulesets.versions import (
    ELO,
    Version,
    bind,
    find_months_problem,
    find_sequel_problem,
    in_force,
    list_games,
    read_ruleset,
)

if TYPE_CHECKING:
    from ratings_ledger.projections.admission.seed_checks import SeedChecks

SHAPES_MAX = 10_000  # the maximum number of shapes of games that are remembered as countable
_LABELS = frozenset(LABELS)
TEAM_RULESET = "weng-lin"  # a shipped ruleset that rates teams, in any game
_PLACED_MEMBERS = frozenset({"player", "place"})


class Admission:
    """Checks of new events against the live rulesets; they implement `ledger.validation.validator.LadderChecks`."""

    # whether `admit` gets every game; only then can it detect a seed after the player's first game
    checks_games = True

    def __init__(
        self,
        connection: Connection,
        until: int,
        *,
        allow_uncounted: bool = False,
        unranked: dict[str, UnrankedGames] | None = None,
        league_notes: LeagueNotes | None = None,
        new_ladders: NewLadders | None = None,
        facts: Callable[[Connection], Facts] | None = None,
    ) -> None:
        """Read the rulesets as of the position `until`.

        Args:
            connection: the open ledger.
            until: the last position to read.
            allow_uncounted: whether to accept games that a ladder cannot score.
            unranked: a dictionary to which each reason why games are not on any ladder is added, with the first game.
            league_notes: the collector of notes about leagues.
            new_ladders: the collector of the ladders that the games create.
            facts: a function that returns facts decoded earlier, at any position.
        """
        self.allow_uncounted = allow_uncounted
        self._unranked = unranked
        self._league_notes = league_notes
        self._new_ladders = new_ladders
        self._load_known_facts = facts
        self.versions: dict[str, list[Version]] = {}
        self._scored_games_cache: set[str] | None = None
        self._unusable: dict[str, str] = {}
        # by game: the reason why its ruleset cannot be used here
        self._unusable_games: dict[str, str] = {}
        # by game name and whether it has teams: the rulesets that may refuse it
        self._refusing: dict[tuple[str, bool], list[list[Version]]] = {}
        # by name, type, labels, seats and teams: the reason why such a game is not on any ladder
        self._unranked_reasons: dict[tuple[str, str, frozenset[str], int, bool], str | None] = {}
        # by game: the first instant from which a ruleset scores it, and the ruleset
        self._first_rulesets: dict[str, tuple[int, Ruleset] | None] = {}
        # the shapes of countable games, each with the versions that may score such games
        self._countable_shapes: set[tuple[Any, ...]] = set()
        self._connection = connection
        self._until = until
        # the number of pending adjustments on each ruleset's ladders
        self._pending_adjustments: Counter[str] = Counter()
        # the players of the pending games, by number of seats and labels
        self._pending_players: defaultdict[tuple[int, tuple[str | None, ...]], set[str]] = defaultdict(set)
        for event in read_live(connection, until=self._until, type_name="ruleset.published"):
            ruleset = Ruleset.model_validate(event.data)
            version, problems = bind(ruleset, event.position or 0)
            if version is not None:
                self._add_version(version)
            else:
                self._unusable[ruleset.id] = f"{ruleset.name} cannot be used here: {problems[0].message}"
                self._unusable_games |= dict.fromkeys(ruleset.scope.game, self._unusable[ruleset.id])

    @cached_property
    def _seeds(self) -> "SeedChecks":
        # imported late, because it takes time and few events are seeds
        from ratings_ledger.projections.admission.seed_checks import SeedChecks

        return SeedChecks(self._connection, self._until, self._load_facts, self._pending_players)

    def _load_facts(self) -> Facts:
        facts = None if self._load_known_facts is None else self._load_known_facts(self._connection)
        return facts if facts is not None and facts.position == self._until else decode(self._connection, self._until)

    @cached_property
    def _clocks(self) -> Clocks:
        return Clocks(self._connection, self.versions, self._until)

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Check an event, and add it to the events that later checks consider. Raises `Refused`."""
        if type_name == "game.recorded":
            self._admit_game(occurred_at, data)
        elif type_name == "player.seeded":
            self._admit_seed(data)
        elif type_name == "points.adjusted":
            self._check_adjustment(data)
            self._pending_adjustments[parse_name(data["ladder"]).ruleset_id] += 1
        elif type_name in ("list.published", "list.scheduled"):
            versions = self._find_versions(data["ladder"])
            if type_name == "list.scheduled" and versions[0].ruleset.partition.is_by_time:
                problem = f"{data['ladder']} is the list of a month or year, which needs no schedule"
                raise Refused("schedule-exists", f"{problem}; once the period is over, run: ratings publish --due")
        elif type_name == "ruleset.published":
            self._add_version(self._check_ruleset(data))
        elif type_name == "league.joined":
            self._check_subscription(occurred_at, data)
        elif type_name in CLOCK_TYPES:
            self._clocks.add_event(type_name, occurred_at, data)
        elif type_name == "player.renamed":
            self._clocks.rename(data["player"], data["new_player"])
            try:
                self._seeds.rename(data["player"], data["new_player"])
            except Refused:
                self._clocks.rename_back(data["player"], data["new_player"])
                raise
        if self._league_notes is not None and type_name in LEAGUE_TYPES:
            self._league_notes.add_league_event(type_name, data["league"])

    def refuse_unknown_game(self, data: dict[str, Any]) -> None:
        """Raise `Refused` (unknown-game) if no ruleset scores games of this name, unless there are no rulesets."""
        game = data["game"]
        if not self.versions or game in self._scored_games or game in self._unusable_games:
            return
        hint = did_you_mean(game, self._scored_games | self._unusable_games.keys())
        # do not suggest a new ruleset for a probable typo
        publish = "" if hint else f"to rate them: {_suggest_system(game, has_partners(data))}; "
        problem = f"no published ruleset scores games of {quote(game)}"
        raise Refused("unknown-game", f"{problem}; {publish}to record them anyway: --new-game{hint}")

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Withdraw an event, so that later checks do not consider it. Raises `Refused` (still-needed)."""
        if type_name in CLOCK_TYPES:
            self._clocks.withdraw_event(type_name, data)
        if type_name == "player.renamed":
            self._clocks.rename_back(data["player"], data["new_player"])
            self._seeds.rename_back(data["player"])
        if type_name == "player.seeded":
            self._seeds.release(data)
        if type_name == "points.adjusted":
            self._pending_adjustments[parse_name(data["ladder"]).ruleset_id] -= 1
        if type_name != "ruleset.published":
            return
        versions = self.versions.get(data["id"], ())
        remaining = [version for version in versions if version.ruleset.version != data["version"]]
        if not remaining:
            self._check_unused(data["id"], data["version"])
        self.versions[data["id"]] = remaining
        self._clear_caches()
        if not remaining:
            del self.versions[data["id"]]

    def _check_unused(self, ruleset_id: str, version: int) -> None:
        """Raise `Refused` (still-needed) if annual lists, adjustments or seeds need a ruleset."""
        problem = f"{ruleset_id}@{version} is the only version of its ruleset"
        annual = sorted(
            name
            for name, versions in self.versions.items()
            if any(getattr(version.params, "of", None) == ruleset_id for version in versions)
        )
        if annual:
            raise Refused(
                "still-needed", f"{problem}, and the lists of {', '.join(annual)} sum its places; first void those"
            )
        counts = ("adjustment", self._count_adjustments(ruleset_id)), ("seed", self._seeds.count(ruleset_id))
        if dependents := [count(number, noun) for noun, number in counts if number]:
            pronoun = "that" if sum(number for _, number in counts) == 1 else "those"
            raise Refused("still-needed", f"{problem}, and its ladders have {joined(dependents)}; first void {pronoun}")

    def _count_adjustments(self, ruleset_id: str) -> int:
        """Return the number of adjustments, recorded or pending, on a ruleset's ladders."""
        events = read_live(self._connection, until=self._until, type_name="points.adjusted")
        recorded = sum(parse_name(event.data["ladder"]).ruleset_id == ruleset_id for event in events)
        return recorded + self._pending_adjustments[ruleset_id]

    @property
    def _scored_games(self) -> set[str]:
        if self._scored_games_cache is None:
            self._scored_games_cache = list_games(chain.from_iterable(self.versions.values()))
        return self._scored_games_cache

    def _add_version(self, version: Version) -> None:
        self.versions.setdefault(version.ruleset.id, []).append(version)
        self._clear_caches()

    def _clear_caches(self) -> None:
        self._scored_games_cache = None
        self._refusing.clear()
        self._unranked_reasons.clear()
        self._first_rulesets.clear()
        self._countable_shapes.clear()

    def _admit_game(self, occurred_at: int, data: dict[str, Any]) -> None:
        """Check a game, and add it to the notes and to the pending games."""
        seats, has_teams = count_seats(data), has_partners(data)
        if not self.allow_uncounted:
            self._check_countable(occurred_at, data, has_teams)
        if self._unranked is not None and (
            reason := self._find_unranked_reason(data, seats, has_teams) or self._find_early_reason(occurred_at, data)
        ):
            counted = self._unranked.get(reason, UnrankedGames(data["game_id"], 0))
            self._unranked[reason] = counted._replace(number=counted.number + 1)
        if self._league_notes is not None:
            requirement = next(self._find_requirements(data["game"], occurred_at), None) if "league" in data else None
            self._league_notes.add_game(self._connection, self._until, data, requirement)
        if self._new_ladders is not None:
            load_game = partial(build_game_facts, occurred_at, data)
            self._new_ladders.check_game(self._connection, self.versions, load_game, occurred_at, data)
        if self.checks_games and data.get("rated", True) and not data.get("aborted", False):
            labels = (data["game"], *map(data.get, LABELS[1:]))
            players = [participant["player"] for participant in data["participants"]]
            self._pending_players[seats, labels].update(players)

    def _check_countable(self, occurred_at: int, data: dict[str, Any], has_teams: bool) -> None:
        """Raise `Refused` if a game is eligible for a ladder whose rule cannot score it."""
        facts: Facts | None = None
        game = data["game"], has_teams
        if game not in self._refusing:
            self._refusing[game] = [versions for versions in self.versions.values() if _may_refuse(versions, *game)]
        shape = _find_shape(data) if self._refusing[game] else None
        for versions in self._refusing[game]:
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
        """Return the end of a message: how a game with teams gets on a ladder although a ruleset is `refusing` it."""
        counting = [
            ruleset_id
            for ruleset_id, versions in self.versions.items()
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
            all_versions = chain.from_iterable(self.versions.values())
            is_scored = any(data["game"] in version.ruleset.scope.game for version in all_versions)
            unusable = None if is_scored else self._unusable_games.get(data["game"])
            self._unranked_reasons[key] = unusable or _explain_unranked_kind(self.versions, *key)
        return self._unranked_reasons[key]

    def _find_early_reason(self, occurred_at: int, data: dict[str, Any]) -> str | None:
        """Return the reason why a game counts nowhere if it precedes all versions that could score it, else None."""
        name = data["game"]
        if name not in self._first_rulesets:
            all_versions = chain.from_iterable(self.versions.values())
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

    def _find_versions(self, ladder: str) -> list[Version]:
        """Return the versions of a ladder's ruleset. Raises `Refused` (bad-ruleset, unknown-ladder)."""
        name = parse_name(ladder)
        versions = self.versions.get(name.ruleset_id)
        if name.ruleset_id in self._unusable:
            raise Refused("bad-ruleset", f"{quote(ladder)}: {self._unusable[name.ruleset_id]}")
        if versions is None:
            hint = did_you_mean(name.ruleset_id, self.versions)
            raise Refused(
                "unknown-ladder", f"no ruleset is called {quote(name.ruleset_id)} (ladder {quote(ladder)}){hint}"
            )
        if reason := find_ladder_name_problem(name, versions[0].ruleset):
            raise Refused("unknown-ladder", f"{quote(ladder)} is not a ladder: {reason}")
        return versions

    def _check_adjustment(self, data: dict[str, Any]) -> None:
        """Raise `Refused` if a ladder does not accept an adjustment."""
        versions = self._find_versions(data["ladder"])
        if not versions[0].ranking.adjustable:
            message = f"{data['ladder']} ranks by the results of games, so points cannot be adjusted; correct a game"
            raise Refused("ladder-not-adjustable", message)
        scale = versions[0].rule.scale
        points = Decimal(data["points"])
        if points * scale != int(points * scale):
            step = "whole points" if scale == 1 else f"steps of 1/{scale} point"
            raise Refused("finer-than-scale", f"{points:f} is too fine for {data['ladder']}, which counts in {step}")
        if abs(points) > 1_000_000_000:
            raise Refused("out-of-range", f"an adjustment can be at most 1,000,000,000 points, not {points:f}")

    def _admit_seed(self, data: dict[str, Any]) -> None:
        """Check a seed, and add it. Raises `Refused`."""
        versions = self._find_versions(data["ladder"])
        if not versions[0].ranking.adjustable:
            message = f"{data['ladder']} ranks by the results of games, so its players cannot be seeded"
            raise Refused("ladder-not-adjustable", message)
        if versions[0].ruleset.entrant == "club":
            problem = f"{data['ladder']} ranks clubs, which cannot be seeded"
            raise Refused("seed-of-club", f"{problem}; to give points to a club: ratings adjust")
        self._seeds.add(versions, data, self.checks_games)

    def _find_requirements(self, game: str, at: int) -> Iterator[ActivityRequirement]:
        """Yield the activity requirement of each ruleset that scores leagues of a game and has one at an instant."""
        for versions in self.versions.values():
            version = in_force(versions, at)
            if version is None or game not in version.ruleset.scope.game:
                continue
            games = getattr(version.params, "active_games", 0)
            if version.ruleset.partition.by == ["league"] and games:
                days = getattr(version.params, "active_days", 0)
                yield ActivityRequirement(games, days, version.ruleset.time_zone)

    def _check_subscription(self, occurred_at: int, data: dict[str, Any]) -> None:
        """Raise `Refused` (not-active) if a player may not join a league.

        `data` has the league's game, and the sorted times at which the player finished games.
        """
        for requirement in self._find_requirements(data["game"], occurred_at):
            recent = requirement.select_recent(data["finished"], occurred_at)
            if len(recent) < requirement.games:
                raise Refused("not-active", _describe_missing_games(data["player"], recent, requirement))

    def _check_ruleset(self, data: dict[str, Any]) -> Version:
        """Return the version that an event publishes.

        Raises `Refused` if the version is invalid, or cannot follow the ruleset's published versions.
        """
        ruleset, problems = read_ruleset(data)
        if ruleset is None:
            raise Refused("bad-ruleset", f"{problems[0].key}: {problems[0].message}")
        version, _ = bind(ruleset, 2**62 + sum(map(len, self.versions.values())))
        assert version is not None
        for published in self.versions.get(ruleset.id, ()):
            if published.ruleset.version == ruleset.version:
                rejection = build_version_exists_rejection(ruleset)
                raise Refused(rejection.code, rejection.message)
            if problem := find_sequel_problem(version, published):
                raise Refused("partition-changed", f"{problem.key}: {problem.message}")
        if version.ranking.sums_lists:
            source_id = getattr(version.params, "of", "")
            if source_id not in self._unusable and (
                reason := find_months_problem(version, self.versions.get(source_id, []))
            ):
                raise Refused("bad-ruleset", f"params.of: {reason}")
        return version


class RecordedChecks(Admission):
    """Checks of the recorded events of a log in order, except plain games, against built-in rules only.

    Rulesets of other rules are skipped, with their ladders and clocks. So the result does not depend on the installed
    rule packages.
    """

    def __init__(self, connection: Connection, until: int) -> None:
        super().__init__(connection, until, allow_uncounted=True)

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Check a recorded event, and add it to the events that later checks consider. Raises `Refused`."""
        if type_name == "ruleset.published":
            if data["rule"] not in BUILT_IN or read_ruleset(data)[0] is None:
                self._unusable[data["id"]] = "its rule is not built in"
                return
        elif type_name in ("points.adjusted", "player.seeded", "list.published", "list.scheduled"):
            if parse_name(data["ladder"]).ruleset_id in self._unusable:
                return
        elif type_name == "league.joined" or (type_name in CLOCK_TYPES and self._unusable):
            return
        super().admit(type_name, occurred_at, data)

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Withdraw a recorded event. Raises `Refused` (still-needed)."""
        if type_name == "ruleset.published" and data["id"] in self._unusable:
            return
        if type_name in CLOCK_TYPES and self._unusable:
            return
        super().release(type_name, data)


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

    It is None if the version can score the game, or if the game is not eligible.
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
    versions: dict[str, list[Version]], game: str, kind: str, labels: frozenset[str], seats: int, has_teams: bool
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
        needs = "; ".join(f"{name} needs its {' and '.join(needed)}" for name, needed in missing.items())
        missing_labels = [label for label in LABELS if label in set().union(*missing.values())]
        options = " ".join(f"--set {label}={label.upper()}" for label in missing_labels)
        return f"{needs}; each {' and '.join(missing_labels)} has its own ladders; for a whole table: {options}"
    return None


def _suggest_system(game: str, has_teams: bool) -> str:
    """Return the command that publishes a shipped ruleset for a game, or for a game with teams."""
    return f"ratings rules publish --shipped {TEAM_RULESET if has_teams else ELO} --game {game}"


def _describe_missing_games(player: str, recent: list[int], requirement: ActivityRequirement) -> str:
    """Describe the games that a player must still finish to be active, and the deadline."""
    required_count, days, time_zone = requirement
    missing_count = required_count - len(recent)
    period = count(days, "day")
    problem = f"{quote(player)} has finished {len(recent)} of {count(required_count, 'game')} in the last {period}"
    needed = f"{missing_count} more {'is' if missing_count == 1 else 'are'} needed"
    if not recent:
        return f"{problem}; {needed} within {period}"
    # on the last day, the oldest recent game still counts
    last_day = local_time(min(recent) + days * DAY_MICROSECONDS - 1, time_zone).date()
    return f"{problem}; {needed} by {last_day}"


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
