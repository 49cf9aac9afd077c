"""The ladders' checks of a new event before it is appended: those that need rulesets.

Refused are a game that is eligible for a ladder but that its rule cannot score, a ruleset that cannot be used, and an
adjustment that fits no ladder. Rulesets published earlier in the same import count.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.game_types import has_partners
from ratings_ledger.ledger.events.games import count_seats
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.intake.intake import GamesOfReason
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.appending import version_exists_rejection
from ratings_ledger.ledger.store.log import read_live
from ratings_ledger.ledger.validation.leagues import TYPES as LEAGUE_TYPES
from ratings_ledger.projections.admission.notes import DAY, Activity, LeagueNotes, NewLadders
from ratings_ledger.projections.contract import joined
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.facts.decoding import apply, decode
from ratings_ledger.projections.game_clock.logs import Clocks
from ratings_ledger.projections.replay.eligibility import (
    UnreadableGame,
    can_be_unreadable,
    explain_ineligible,
    explain_kind_mismatch,
    explain_not_scored,
    explain_size_mismatch,
    explain_unreadable,
    list_counted,
    rates_teams,
    reads_numbers,
)
from ratings_ledger.projections.replay.ladders import list_partition_values, parse_name, refuse_name
from ratings_ledger.projections.replay.partition import is_partitioned_by_time
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.registry import BUILT_IN
from ratings_ledger.projections.rulesets.versions import (
    ELO,
    Version,
    bind,
    in_force,
    list_games,
    read_ruleset,
    refuse_months,
    refuse_sequel,
)

if TYPE_CHECKING:
    from ratings_ledger.projections.admission.seed_checks import SeedChecks

SHAPES_MAX = 10_000
_LABELS = frozenset(LABELS)
RATES_TEAMS = "weng-lin"  # a shipped ruleset for any game
_PLACED = frozenset({"player", "place"})


class Admission:
    """The live rulesets, asked about one new event after another (`ledger.validation.validator.LadderChecks`)."""

    # whether all games are seen, those of the log or those that wait, so that a seed may come too late
    checks_games = True

    def __init__(
        self,
        connection: Connection,
        until: int,
        *,
        allow_uncounted: bool = False,
        homeless: dict[str, GamesOfReason] | None = None,
        league_notes: LeagueNotes | None = None,
        new_ladders: NewLadders | None = None,
        facts: Callable[[Connection], Facts] | None = None,
    ) -> None:
        """Read the rulesets as of the position `until`.

        `homeless` is filled with the games of each reason why games are on no ladder. `facts` gives those of the log
        at some position, if somebody has them.
        """
        self.allow_uncounted = allow_uncounted
        self._homeless = homeless
        self._league_notes = league_notes
        self._new_ladders = new_ladders
        self._known_facts = facts
        self.versions: dict[str, list[Version]] = {}
        self._scored: set[str] | None = None
        self._unusable: dict[str, str] = {}
        # by game: why a ruleset meant for it does not run here
        self._idle: dict[str, str] = {}
        # by game name, and whether it has teams: the rulesets that may refuse it
        self._scoring: dict[tuple[str, bool], list[list[Version]]] = {}
        self._homes: dict[tuple[str, str, frozenset[str], int, bool], str | None] = {}
        # by game: since when it is scored, and by which ruleset
        self._since: dict[str, tuple[int, Ruleset] | None] = {}
        # games found countable, by their shape and the versions that may score them
        self._countable: set[tuple[Any, ...]] = set()
        self._connection = connection
        self._until = until
        # how many pending adjustments each ruleset's ladders have
        self._adjusted: Counter[str] = Counter()
        # the players of the games that wait, by number of seats and labels
        self._playing: defaultdict[tuple[int, tuple[str | None, ...]], set[str]] = defaultdict(set)
        for event in read_live(connection, until=self._until, type_name="ruleset.published"):
            ruleset = Ruleset.model_validate(event.data)
            version, problems = bind(ruleset, event.position or 0)
            if version is not None:
                self._add(version)
            else:
                self._unusable[ruleset.id] = f"{ruleset.name} cannot be used here: {problems[0].message}"
                self._idle |= dict.fromkeys(ruleset.scope.game, self._unusable[ruleset.id])

    @cached_property
    def _seeds(self) -> "SeedChecks":
        from ratings_ledger.projections.admission.seed_checks import SeedChecks  # only here: few events are seeds

        return SeedChecks(self._connection, self._until, self._facts, self._playing)

    def _facts(self) -> Facts:
        facts = None if self._known_facts is None else self._known_facts(self._connection)
        return facts if facts is not None and facts.position == self._until else decode(self._connection, self._until)

    @cached_property
    def _clocks(self) -> Clocks:
        return Clocks(self._connection, self.versions, self._until)

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Raises `Refused` if the ladders cannot take the event; otherwise it counts for what follows."""
        if type_name == "game.recorded":
            if not self.allow_uncounted:
                self._game(occurred_at, data)
            if self._homeless is not None and (
                reason := self._why_homeless(data) or self._why_early(occurred_at, data)
            ):
                earlier = self._homeless.get(reason, GamesOfReason(data["game_id"], 0))
                self._homeless[reason] = earlier._replace(number=earlier.number + 1)
            if self._league_notes is not None:
                activity = next(self._activities(data["game"], occurred_at), None) if "league" in data else None
                self._league_notes.meet_game(self._connection, self._until, data, activity)
            if self._new_ladders is not None:
                alone = partial(one_game, occurred_at, data)
                self._new_ladders.meet(self._connection, self.versions, alone, occurred_at, data)
            if self.checks_games and data.get("rated", True) and not data.get("aborted", False):
                labels = (data["game"], *map(data.get, LABELS[1:]))
                self._playing[count_seats(data), labels].update([p["player"] for p in data["participants"]])
        elif type_name == "player.seeded":
            self._seed(data)
        elif type_name == "points.adjusted":
            self._adjustment(data)
            self._adjusted[parse_name(data["ladder"]).ruleset_id] += 1
        elif type_name in ("list.published", "list.scheduled"):
            versions = self._fitting(data["ladder"])
            if type_name == "list.scheduled" and is_partitioned_by_time(versions[0].ruleset):
                told = "is a list of a month or year, which ratings publish --due publishes when that is over"
                raise Refused("schedule-exists", f"{data['ladder']} {told}")
        elif type_name == "ruleset.published":
            self._add(self._ruleset(data))
        elif type_name == "league.joined":
            self._joined(occurred_at, data)
        elif type_name in CLOCK_TYPES:
            self._clocks.take(type_name, occurred_at, data)
        elif type_name == "player.renamed":
            self._clocks.rename(data["player"], data["new_player"])
            try:
                self._seeds.rename(data["player"], data["new_player"])
            except Refused:
                self._clocks.rename_back(data["player"], data["new_player"])
                raise
        if self._league_notes is not None and type_name in LEAGUE_TYPES:
            self._league_notes.meet_step(type_name, data["league"])

    def refuse_unknown_game(self, data: dict[str, Any]) -> None:
        """Raises `Refused` (unknown-game) if there are rulesets, and none scores games of this name."""
        game = data["game"]
        if not self.versions or game in self._scored_games or game in self._idle:
            return
        hint = did_you_mean(game, self._scored_games | self._idle.keys())
        # of a slip nobody wants a ladder
        rated = "" if hint else f"{_publish_system(game, has_partners(data))} rates them, "
        told = f"no published ruleset scores games of {quote(game)}; {rated}--new-game records them all the same"
        raise Refused("unknown-game", f"{told}{hint}")

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Raises `Refused` (still-needed) if an event cannot be withdrawn; otherwise it is gone for what follows."""
        if type_name in CLOCK_TYPES:
            self._clocks.release(type_name, data)
        if type_name == "player.renamed":
            self._clocks.rename_back(data["player"], data["new_player"])
            self._seeds.rename_back(data["player"])
        if type_name == "player.seeded":
            self._seeds.release(data)
        if type_name == "points.adjusted":
            self._adjusted[parse_name(data["ladder"]).ruleset_id] -= 1
        if type_name != "ruleset.published":
            return
        left = [v for v in self.versions.get(data["id"], ()) if v.ruleset.version != data["version"]]
        years = sorted(
            ruleset_id for ruleset_id, versions in self.versions.items()
            if any(getattr(version.params, "of", None) == data["id"] for version in versions)
        )  # fmt: skip
        if not left and years:
            raise Refused(
                "still-needed",
                f"{data['id']}@{data['version']} is the only version of its ruleset, whose places the lists of "
                f"{', '.join(years)} sum; void those rulesets first",
            )
        counts = ("adjustment", self._adjustments_of(data["id"])), ("seed", self._seeds.count(data["id"]))
        if not left and (there := [f"{count} {name}{'s' * (count > 1)}" for name, count in counts if count]):
            raise Refused(
                "still-needed",
                f"{data['id']}@{data['version']} is the only version of its ruleset, whose ladders have "
                f"{joined(there)}; void {'that' if sum(count for _, count in counts) == 1 else 'those'} first",
            )
        self.versions[data["id"]] = left
        self._forget()
        if not left:
            del self.versions[data["id"]]

    def _adjustments_of(self, ruleset_id: str) -> int:
        found = read_live(self._connection, until=self._until, type_name="points.adjusted")
        ladders = (event.data["ladder"] for event in found)
        return sum(parse_name(name).ruleset_id == ruleset_id for name in ladders) + self._adjusted[ruleset_id]

    @property
    def _scored_games(self) -> set[str]:
        if self._scored is None:
            self._scored = list_games(version for known in self.versions.values() for version in known)
        return self._scored

    def _add(self, version: Version) -> None:
        self.versions.setdefault(version.ruleset.id, []).append(version)
        self._forget()

    def _forget(self) -> None:
        self._scored = None
        self._scoring.clear()
        self._homes.clear()
        self._since.clear()
        self._countable.clear()

    def _game(self, occurred_at: int, data: dict[str, Any]) -> None:
        facts: Facts | None = None
        asked = data["game"], has_partners(data)
        if asked not in self._scoring:
            self._scoring[asked] = [v for v in self.versions.values() if _may_refuse(v, *asked)]
        shape = _shape(data) if self._scoring[asked] else None
        for versions in self._scoring[asked]:
            candidates = _candidates(versions, occurred_at)
            seen = (shape, versions[0].ruleset.id, *(version.position for version in candidates))
            if seen in self._countable:
                continue
            facts = facts or one_game(occurred_at, data)
            reasons = [_why_uncountable(facts, version) for version in candidates]
            if (why := _last_of(reasons)) and (ladders := list_partition_values(facts, 0, versions[0].ruleset)):
                name = "/".join([versions[0].ruleset.id, *ladders[0]])
                hint = self._describe_team_ladders(facts, data["game"], versions) if why.code == "no-teams" else ""
                told = f"{name} cannot count this game: {why.reason}{hint} (--allow-uncounted records it)"
                raise Refused(why.code, told)
            if shape is not None and len(self._countable) < SHAPES_MAX:
                self._countable.add(seen)

    def _describe_team_ladders(self, facts: Facts, game: str, refusing: Sequence[Version]) -> str:
        """Describe how a game of teams gets onto a ladder, although one of its rulesets refuses them."""
        counting = [
            ruleset_id for ruleset_id, versions in self.versions.items()
            if any(game in version.ruleset.scope.game and rates_teams(version) for version in versions)
            and list_partition_values(facts, 0, versions[0].ruleset)
        ]  # fmt: skip
        if not counting:
            return f"; a ruleset that does: {_publish_system(game, has_teams=True)}"
        void = " and ".join(f"ratings void --event {version.position} --reason TEXT" for version in refusing)
        return f"; {counting[0]} counts it: withdraw {refusing[0].ruleset.id} with {void}"

    def _why_homeless(self, data: dict[str, Any]) -> str | None:
        """Return why a game is on no ladder, judging by its name, type and labels alone; otherwise None."""
        kind, labels = data.get("kind", "placing"), _LABELS.intersection(data)
        seen = (data["game"], kind, labels, count_seats(data), has_partners(data))
        if seen not in self._homes:
            scored = any(data["game"] in v.ruleset.scope.game for known in self.versions.values() for v in known)
            idle = None if scored else self._idle.get(data["game"])
            self._homes[seen] = idle or _why_homeless(self.versions, *seen)
        return self._homes[seen]

    def _why_early(self, occurred_at: int, data: dict[str, Any]) -> str | None:
        """Return why a game is on no ladder because no version was in force yet, or None."""
        name = data["game"]
        if name not in self._since:
            scoring = [v for known in self.versions.values() for v in known if name in v.ruleset.scope.game]
            days = [(v.effective_from, v.ruleset) for v in scoring if v.effective_from is not None]
            self._since[name] = min(days, key=itemgetter(0), default=None)
        since = self._since[name]
        if since is None or occurred_at >= since[0]:
            return None
        return f"no version of {since[1].id} was in force then (the first from {since[1].effective_from})"

    def _fitting(self, ladder: str) -> list[Version]:
        """Return the ruleset's versions that a ladder's name fits. Raises `Refused` (bad-ruleset, unknown-ladder)."""
        name = parse_name(ladder)
        versions = self.versions.get(name.ruleset_id)
        if name.ruleset_id in self._unusable:
            raise Refused("bad-ruleset", f"{quote(ladder)}: {self._unusable[name.ruleset_id]}")
        if versions is None:
            hint = did_you_mean(name.ruleset_id, self.versions)
            raise Refused(
                "unknown-ladder", f"no ruleset is called {quote(name.ruleset_id)} (ladder {quote(ladder)}){hint}"
            )
        if reason := refuse_name(name, versions[0].ruleset):
            raise Refused("unknown-ladder", f"{quote(ladder)} is not a ladder: {reason}")
        return versions

    def _adjustment(self, data: dict[str, Any]) -> None:
        versions = self._fitting(data["ladder"])
        if not versions[0].ranking.adjustable:
            raise Refused(
                "ladder-not-adjustable", f"{data['ladder']} ranks the points its games gave; those cannot be adjusted"
            )
        scale = versions[0].rule.scale
        points = Decimal(data["points"])
        if points * scale != int(points * scale):
            step = "whole points" if scale == 1 else f"steps of 1/{scale} point"
            raise Refused("finer-than-scale", f"{data['ladder']} counts in {step}; {points:f} is finer")
        if abs(points) > 1_000_000_000:
            raise Refused("out-of-range", f"an adjustment is at most 1,000,000,000 points, not {points:f}")

    def _seed(self, data: dict[str, Any]) -> None:
        versions = self._fitting(data["ladder"])
        if not versions[0].ranking.adjustable:
            raise Refused(
                "ladder-not-adjustable", f"{data['ladder']} ranks the points its games gave; players begin with nothing"
            )
        if versions[0].ruleset.entrant == "club":
            told = f"{data['ladder']} ranks clubs, which begin alike; to give one points: ratings adjust"
            raise Refused("seed-of-club", told)
        self._seeds.take(versions, data, self.checks_games)

    def _activities(self, game: str, at: int) -> Iterator[Activity]:
        """Yield who is active in leagues of a game, for each ruleset that asks for it then."""
        for versions in self.versions.values():
            version = in_force(versions, at)
            if version is None or game not in version.ruleset.scope.game:
                continue
            games = getattr(version.params, "active_games", 0)
            if version.ruleset.partition.by == ["league"] and games:
                yield Activity(games, getattr(version.params, "active_days", 0), version.ruleset.time_zone)

    def _joined(self, occurred_at: int, data: dict[str, Any]) -> None:
        """`data` has the league's game, and the instants when the player finished games."""
        for activity in self._activities(data["game"], occurred_at):
            window = activity.recent(data["finished"], occurred_at)
            if len(window) < activity.games:
                raise Refused("not-active", _inactive(data["player"], window, activity))

    def _ruleset(self, data: dict[str, Any]) -> Version:
        ruleset, problems = read_ruleset(data)
        if ruleset is None:
            raise Refused("bad-ruleset", f"{problems[0].key}: {problems[0].message}")
        version, _ = bind(ruleset, 2**62 + sum(map(len, self.versions.values())))
        assert version is not None
        for published in self.versions.get(ruleset.id, ()):
            if published.ruleset.version == ruleset.version:
                rejection = version_exists_rejection(ruleset)
                raise Refused(rejection.code, rejection.message)
            if problem := refuse_sequel(version, published):
                raise Refused("partition-changed", f"{problem.key}: {problem.message}")
        if version.ranking.sums_lists:
            of = getattr(version.params, "of", "")
            if of not in self._unusable and (reason := refuse_months(version, self.versions.get(of, []))):
                raise Refused("bad-ruleset", f"params.of: {reason}")
        return version


class RecordedChecks(Admission):
    """The ladders of this program's own rules, asked about the events of a log from the first on, except plain games.

    What they say about an event does not depend on which packages are installed: other packages' rulesets, and the
    ladders and clocks that go with them, are left alone.
    """

    def __init__(self, connection: Connection, until: int) -> None:
        super().__init__(connection, until, allow_uncounted=True)

    def admit(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Raises `Refused` if the ladders cannot have taken the event; otherwise it counts for what follows."""
        if type_name == "ruleset.published":
            if data["rule"] not in BUILT_IN or read_ruleset(data)[0] is None:
                self._unusable[data["id"]] = "its rule is not this program's"
                return
        elif type_name in ("points.adjusted", "player.seeded", "list.published", "list.scheduled"):
            if parse_name(data["ladder"]).ruleset_id in self._unusable:
                return
        elif type_name == "league.joined" or (type_name in CLOCK_TYPES and self._unusable):
            return
        super().admit(type_name, occurred_at, data)

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Raises `Refused` (still-needed) if an event cannot have been withdrawn."""
        if type_name == "ruleset.published" and data["id"] in self._unusable:
            return
        if type_name in CLOCK_TYPES and self._unusable:
            return
        super().release(type_name, data)


def _shape(data: dict[str, Any]) -> tuple[Any, ...] | None:
    """Everything a version can ask of a game, its places in the order of the players' ids; None if there is more to it.

    The time is not part of it: versions are chosen by it beforehand, and otherwise only seasons ask for it.
    """
    participants = sorted(data["participants"], key=itemgetter("player"))
    told_apart = "season" in data or "numbers" in data or data.get("kind", "placing") != "placing"
    if told_apart or not all(map(_PLACED.issuperset, participants)):
        return None
    places = tuple(participant.get("place") for participant in participants)
    return (places, data.get("rated"), data.get("aborted"), *(data.get(label) for label in LABELS))


def _candidates(versions: Sequence[Version], occurred_at: int) -> list[Version]:
    """Return the versions that may score a game that ended then; its league's start is not looked up."""
    if versions[0].ruleset.freeze != "none":
        return [version for version in versions if version.effective_from is not None]
    version = in_force(versions, occurred_at)
    return [] if version is None else [version]


def _last_of(reasons: Sequence[UnreadableGame | None]) -> UnreadableGame | None:
    """Return the last reason if there is no version that has none."""
    return reasons[-1] if reasons and all(reasons) else None


def _why_uncountable(facts: Facts, version: Version) -> UnreadableGame | None:
    """Return why a version cannot score the one game of these facts; None if it can, or the game is not eligible."""
    if explain_ineligible(facts, 0, version.ruleset) is not None:
        return None
    participants = list_counted(facts, 0, version)
    if len(participants) < version.rule.counted_min:
        return None  # too few counted players is not the game's fault
    if can_be_unreadable(facts, version) and (unreadable := explain_unreadable(facts, 0, version, participants)):
        return unreadable
    try:
        reason = explain_not_scored(facts, 0, version, participants)
        return None if reason is None else UnreadableGame("uncounted", reason)
    except RuleFailure:
        return None  # nor is a failing rule, which its ladder reports


def _why_homeless(
    versions: dict[str, list[Version]], game: str, kind: str, labels: frozenset[str], seats: int, has_teams: bool
) -> str | None:
    scoring = [v.ruleset for known in versions.values() for v in reversed(known) if game in v.ruleset.scope.game]
    if not versions:
        return None
    if not scoring:
        scored = {slug for known in versions.values() for version in known for slug in version.ruleset.scope.game}
        remedy = did_you_mean(game, scored) or f"; {_publish_system(game, has_teams)} adds one"
        return f"no ruleset scores games of {game}{remedy}"
    for reason_of in (
        lambda ruleset: explain_kind_mismatch(ruleset, kind),
        lambda ruleset: explain_size_mismatch(ruleset, seats),
    ):
        reasons = list(map(reason_of, scoring))
        if all(reasons):
            return reasons[0]
        scoring = [ruleset for ruleset, reason in zip(scoring, reasons, strict=True) if reason is None]
    missing = {ruleset.id: sorted((frozenset(LABELS) & {*ruleset.partition.by}) - labels) for ruleset in scoring}
    if all(missing.values()):
        needed = "; ".join(f"{name} needs its {' and '.join(labels)}" for name, labels in missing.items())
        absent = [label for label in LABELS if label in set().union(*missing.values())]
        options = " ".join(f"--set {label}={label.upper()}" for label in absent)
        return f"{needed}; each {' and '.join(absent)} has its own ladders; for a whole table: {options}"
    return None


def _publish_system(game: str, has_teams: bool) -> str:
    """Return the command that publishes a shipped ruleset for a game, one that rates teams if it has them."""
    return f"ratings rules publish --shipped {RATES_TEAMS if has_teams else ELO} --game {game}"


def _inactive(player: str, window: list[int], activity: Activity) -> str:
    """Return how many finished games somebody lacks, and by when they have to play them."""
    wanted, days, time_zone = activity
    missing = wanted - len(window)
    told = f"{quote(player)} has finished {len(window)} of {wanted} games in the last {days} days; {missing} more"
    if not window:
        return f"{told} within {days} days"
    # the oldest game that counts today still has to count then
    return f"{told} by {local_time(min(window) + days * DAY - 1, time_zone).date()}"


def _may_refuse(versions: Sequence[Version], game: str, has_teams: bool) -> bool:
    """Tell whether a ruleset scores games of this name, and some of them, with teams or without, cannot be scored."""
    return any(
        game in version.ruleset.scope.game
        and (
            version.rule.check
            or "season" in version.ruleset.partition.by
            or reads_numbers(version)
            or (has_teams and not rates_teams(version))
        )
        for version in versions
    )


def one_game(occurred_at: int, data: dict[str, Any]) -> Facts:
    """Facts that hold a single game, not recorded yet."""
    facts = Facts(0, b"")
    apply(facts, 1, KnownEvent("", "game.recorded", occurred_at, data))
    return facts
