"""Check the causes that the program gives for a change of a player's points between two coordinates.

Facts are added one by one in log order, then the played time changes, and then the version. The points are computed at
every step of this path.
"""

from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import NamedTuple, Protocol

from oracle.counting import View
from oracle.ladders import ask
from oracle.log import Event, Game, Log, build_id_lookup, derive_games, list_named_players
from oracle.questions import Question
from oracle.rulesets import BOOK, find_newest_version, get_ruleset_id, list_versions
from oracle.times import parse_instant

PLAYED = ("played", "not played yet")
RECORDED_NOWHERE = (*PLAYED, "rules")
KINDS = {
    "game.recorded": ("game", "late game"),
    "game.corrected": ("corrected",),
    "game.voided": ("voided",),
    "game.reinstated": ("reinstated",),
    "player.renamed": ("rename",),
    "points.adjusted": ("adjustment",),
    "ruleset.published": ("rule change",),
    "event.voided": ("taken back",),
    "player.account_changed": ("account",),
}


class Cause(Protocol):
    """A cause in an answer of the program; `position` is that of its event, None for another version."""

    what: str
    position: int | None
    own: Fraction
    ripple: Fraction
    amount: Fraction


class Attribution(Protocol):
    """An answer of the program: the points at both coordinates, and the causes of the change."""

    start: Fraction
    before: Fraction | None
    after: Fraction | None
    causes: list[Cause]


class CoordinateSpec(NamedTuple):
    """A player on a ladder at two coordinates."""

    player: str
    before: Question
    after: Question

    def reverse(self) -> "CoordinateSpec":
        """Return the specification of the opposite direction."""
        return self._replace(before=self.after, after=self.before)


class Path:
    """The path from one set of coordinates to another with an equal or later `known_at`, and the points on it."""

    def __init__(self, log: Log, spec: CoordinateSpec) -> None:
        self.log = log
        self.spec = spec
        self.ruleset_id = get_ruleset_id(spec.before.ladder)
        self.running = self.ruleset_id in BOOK
        self.first, self.last = spec.before.known_at, spec.after.known_at
        known_log = log[: self.last]
        person = build_id_lookup(known_log)
        ids = {name for name in set().union(*map(list_named_players, known_log)) if person(name) == person(spec.player)}
        self.ids = [spec.player, *sorted(ids - {spec.player})]
        self._points_by_question: dict[Question, Fraction | None] = {}

    @cached_property
    def start(self) -> Fraction:
        """The points of a player who is not yet on the ladder."""
        if not self.running:
            return Fraction(0)
        versions = list_versions(self.log[: self.first], self.ruleset_id, self.spec.before.rules)
        if not versions:
            published = (event for event in self.log if event["type"] == "ruleset.published")
            versions = list_versions(
                [next(e for e in published if e["data"]["id"] == self.ruleset_id)], self.ruleset_id
            )
        return find_newest_version(versions).start

    def find_points(self, question: Question) -> Fraction | None:
        """Return the player's points at coordinates, or None if they are not on the ladder.

        A version that was withdrawn on the path scores nothing there, and no player is on the ladder of a ruleset that
        is not published. The player is followed through renames.
        """
        if question not in self._points_by_question:
            known = self.log[: question.known_at]
            published_versions = [version.name for version in list_versions(known, self.ruleset_id)]
            answer = ask(known, question if question.rules in published_versions else question._replace(rules=None))
            assert (answer is None) == (not published_versions), question
            rows = {row.player: row.points for row in answer.rows} if answer else {}
            person = build_id_lookup(known)
            self._points_by_question[question] = next(
                (rows[name] for name in map(person, self.ids) if name in rows), None
            )
        return self._points_by_question[question]

    def get_points(self, question: Question) -> Fraction:
        """Return the player's points at coordinates, or the start if they are not on the ladder."""
        points = self.find_points(question)
        return self.start if points is None else points

    def is_same_person(self, player: str, position: int) -> bool:
        """Tell whether an id is the player's at a position."""
        person = build_id_lookup(self.log[:position])
        return person(player) in map(person, self.ids)

    def build_question(self, position: int, as_of: str | None = None) -> Question:
        """Return the first coordinates with this position, and with this played time if one is given."""
        before = self.spec.before
        return before._replace(known_at=position, as_of=before.as_of if as_of is None else as_of)


def check(log: Log, spec: CoordinateSpec, attribution: Attribution, everywhere: bool) -> None:
    """Check an attribution against the points on its path, which leads forward in the log."""
    path = Path(log, spec)
    assert (attribution.start, attribution.before, attribution.after) == (
        path.start,
        path.find_points(spec.before),
        path.find_points(spec.after),
    )
    assert sum_causes(attribution.causes) == path.get_points(spec.after) - path.get_points(spec.before)
    assert all(cause.own or cause.ripple for cause in attribution.causes)
    recorded = {cause.position: cause for cause in attribution.causes if cause.kind not in RECORDED_NOWHERE}
    assert len(recorded) == sum(cause.kind not in RECORDED_NOWHERE for cause in attribution.causes)
    assert list(recorded) == sorted(recorded, key=lambda position: position or 0)
    _check_sums(path, list(recorded.values()), everywhere)
    for cause in recorded.values():
        assert cause.kind in KINDS[_find_event(path, cause)["type"]]
        _check_own_part(path, cause)
    _check_order(attribution)
    _check_played_and_rules(path, attribution)


def sum_causes(causes: list[Cause]) -> Fraction:
    """Return the sum of causes."""
    return sum((cause.amount for cause in causes), Fraction(0))


def _find_event(path: Path, cause: Cause) -> Event:
    assert cause.position is not None
    return path.log[cause.position - 1]


def _check_sums(path: Path, recorded: list[Cause], everywhere: bool) -> None:
    """Check that the causes so far sum to the change of points, at and just before each cause, or at all positions."""
    cause_by_position = {cause.position: cause for cause in recorded if cause.position is not None}
    positions = {path.last, *cause_by_position, *(position - 1 for position in cause_by_position)} - {path.first}
    for position in range(path.first + 1, path.last + 1) if everywhere else sorted(positions):
        so_far = [cause for cause_position, cause in cause_by_position.items() if cause_position <= position]
        assert path.get_points(path.build_question(position)) - path.get_points(path.spec.before) == sum_causes(
            so_far
        ), position


def _check_order(attribution: Attribution) -> None:
    """Check that recorded causes come first, then played time, then the version."""
    kinds = [what for what, _ in groupby(cause.kind for cause in attribution.causes if cause.kind in RECORDED_NOWHERE)]
    assert kinds in ([], ["played"], ["not played yet"], ["rules"], ["played", "rules"], ["not played yet", "rules"])
    is_unrecorded = [cause.kind in RECORDED_NOWHERE for cause in attribution.causes]
    assert is_unrecorded == sorted(is_unrecorded)


def _check_played_and_rules(path: Path, attribution: Attribution) -> None:
    """Check the causes of another played time instant by instant; another version causes the rest."""
    start = path.build_question(path.last)
    end = start._replace(as_of=path.spec.after.as_of)
    played = [cause for cause in attribution.causes if cause.kind in PLAYED]
    is_later = end.upto is None or (start.upto is not None and end.upto > start.upto)
    assert {cause.kind for cause in played} <= {PLAYED[not is_later]}
    assert sum_causes(played) == path.get_points(end) - path.get_points(start)
    rules = [cause for cause in attribution.causes if cause.kind == "rules"]
    assert sum_causes(rules) == path.get_points(path.spec.after) - path.get_points(end)
    if not path.running or path.find_points(start) is None or path.find_points(end) is None:
        return
    forward = bool(played) and played[0].kind == "played"
    ended = [_format_end(path, cause) for cause in played]
    for at in sorted(set(ended)):
        so_far = sum_causes([cause for cause, when in zip(played, ended, strict=True) if when <= at])
        change = path.get_points(start._replace(as_of=at)) - path.get_points(start if forward else end)
        assert change == (so_far if forward else -so_far), at


def _format_end(path: Path, cause: Cause) -> str:
    """Return the end of a cause's game or the time of its adjustment, as text that sorts by time."""
    event = _find_event(path, cause)
    if event["type"] == "points.adjusted":
        return _format_time(event["occurred_at"])
    game = derive_games(path.log[: path.last])[event["data"]["game_id"]]
    assert game.first == cause.position
    return _format_time(game.at.isoformat())


def _format_time(time: str) -> str:
    return parse_instant(time).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _check_own_part(path: Path, cause: Cause) -> None:
    """Check the own part of a cause where it follows from answers; on lists there is no ripple."""
    assert cause.position is not None
    event, position = _find_event(path, cause), cause.position
    if path.running and None in (
        path.find_points(path.build_question(position - 1)),
        path.find_points(path.build_question(position)),
    ):
        return  # entering or leaving the ladder changes the points by the start
    match event["type"]:
        case "points.adjusted":
            is_own = path.is_same_person(event["data"]["player"], position)
            assert cause.own == (Fraction(event["data"]["points"]) if is_own else 0)
        case "game.recorded" | "game.voided" | "game.reinstated" | "game.corrected":
            _check_own_game(path, cause, event["data"]["game_id"], position)


def _check_own_game(path: Path, cause: Cause, name: str, position: int) -> None:
    """Check that the own part of a game is its change at its end, and that a game of other players has none.

    The change at its end is the own part unless a later fact has the same time.
    """
    sides = [game_then for upto in (position - 1, position) if (game_then := derive_games(path.log[:upto]).get(name))]
    if not any(path.is_same_person(player, position) for game in sides for player in game.players):
        assert cause.own == 0, cause
        return
    if not path.running:
        assert cause.ripple == 0, cause
        return
    if len({game.at for game in sides}) > 1 or _has_later_fact_at_same_time(path, sides[-1], position):
        return
    if path.spec.before.upto is not None and sides[-1].at > path.spec.before.upto:
        return
    at = _format_time(sides[-1].at.isoformat())
    points_before, points_after = (path.find_points(path.build_question(upto, at)) for upto in (position - 1, position))
    if points_before is not None and points_after is not None:
        assert cause.own == points_after - points_before, (cause, points_before, points_after, at)


def _has_later_fact_at_same_time(path: Path, game: Game, position: int) -> bool:
    """Tell whether a fact that was recorded later has the same time as a game."""
    facts = View(path.log[:position]).facts
    later_facts = [fact for at, game_position, fact in facts if at == game.at and game_position > game.first]
    return any(not isinstance(fact, Game) or fact.may_count for fact in later_facts)
