"""What a player's points say of the causes that the program gives for their change between two coordinates: facts are
added one by one in log order, then comes the played time, and another version last, and at every step of this way the
points are looked up.
"""

from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import NamedTuple, Protocol

from oracle.counting import View
from oracle.ladders import ask
from oracle.log import Event, Game, Log, games, identities, named
from oracle.questions import Question
from oracle.rulesets import BOOK, newest, ruleset_of, versions_of
from oracle.times import instant

PLAYED = ("played", "not played yet")
RECORDED_NOWHERE = (*PLAYED, "rules")
KINDS = {
    "game.recorded": ("game", "late game"), "game.corrected": ("corrected",), "game.voided": ("voided",),
    "game.reinstated": ("reinstated",), "player.renamed": ("rename",), "points.adjusted": ("adjustment",),
    "ruleset.published": ("rule change",), "event.voided": ("taken back",), "player.account_changed": ("account",),
}  # fmt: skip


class Cause(Protocol):
    """A cause as the program tells it; `position` is that of its event, None for another version."""

    what: str
    position: int | None
    own: Fraction
    ripple: Fraction
    amount: Fraction


class Attribution(Protocol):
    """What the program answers: the points at both coordinates, and the causes of the change."""

    start: Fraction
    before: Fraction | None
    after: Fraction | None
    causes: list[Cause]


class CoordinateSpec(NamedTuple):
    """A player on a ladder at two coordinates."""

    player: str
    before: Question
    after: Question

    def turned(self) -> "CoordinateSpec":
        """The way back."""
        return self._replace(before=self.after, after=self.before)


class Way:
    """The way from one set of coordinates to another that is not known earlier, and what stands where on it."""

    def __init__(self, log: Log, asked: CoordinateSpec) -> None:
        self.log = log
        self.asked = asked
        self.ruleset_id = ruleset_of(asked.before.ladder)
        self.running = self.ruleset_id in BOOK
        self.first, self.last = asked.before.known_at, asked.after.known_at
        known = log[: self.last]
        person = identities(known)
        ids = {name for name in set().union(*map(named, known)) if person(name) == person(asked.player)}
        self.ids = [asked.player, *sorted(ids - {asked.player})]
        self._had: dict[Question, Fraction | None] = {}

    @cached_property
    def start(self) -> Fraction:
        """What somebody counts with who is not on the ladder."""
        if not self.running:
            return Fraction(0)
        versions = versions_of(self.log[: self.first], self.ruleset_id, self.asked.before.rules)
        if not versions:
            published = (event for event in self.log if event["type"] == "ruleset.published")
            versions = versions_of([next(e for e in published if e["data"]["id"] == self.ruleset_id)], self.ruleset_id)
        return newest(versions).start

    def had(self, question: Question) -> Fraction | None:
        """The points at coordinates, None for who is not on the ladder.

        A version that was withdrawn on the way scores nothing there, and nobody is on the ladder of a ruleset that is
        not published; the player is followed through their renames.
        """
        if question not in self._had:
            known = self.log[: question.known_at]
            there = [version.name for version in versions_of(known, self.ruleset_id)]
            answer = ask(known, question if question.rules in there else question._replace(rules=None))
            assert (answer is None) == (not there), question
            rows = {row.player: row.points for row in answer.rows} if answer else {}
            person = identities(known)
            self._had[question] = next((rows[name] for name in map(person, self.ids) if name in rows), None)
        return self._had[question]

    def points(self, question: Question) -> Fraction:
        """The points at coordinates; the start for who is not on the ladder."""
        had = self.had(question)
        return self.start if had is None else had

    def is_asked_for(self, player: str, position: int) -> bool:
        """Whether an id is that of the player asked for when so much is known."""
        person = identities(self.log[:position])
        return person(player) in map(person, self.ids)

    def known_at(self, position: int, as_of: str | None = None) -> Question:
        """The coordinates of the start, but for the log position, and the played time if one is given."""
        before = self.asked.before
        return before._replace(known_at=position, as_of=before.as_of if as_of is None else as_of)


def check(log: Log, asked: CoordinateSpec, found: Attribution, everywhere: bool) -> None:
    """Compare a whole attribution with the answers on its way, which leads forward in the log."""
    way = Way(log, asked)
    assert (found.start, found.before, found.after) == (way.start, way.had(asked.before), way.had(asked.after))
    assert total(found.causes) == way.points(asked.after) - way.points(asked.before)
    assert all(cause.own or cause.ripple for cause in found.causes)
    recorded = {cause.position: cause for cause in found.causes if cause.kind not in RECORDED_NOWHERE}
    assert len(recorded) == sum(cause.kind not in RECORDED_NOWHERE for cause in found.causes)
    assert list(recorded) == sorted(recorded, key=lambda position: position or 0)
    _check_sums(way, list(recorded.values()), everywhere)
    for cause in recorded.values():
        assert cause.kind in KINDS[_event(way, cause)["type"]]
        _check_own_part(way, cause)
    _check_order(found)
    _check_played_and_rules(way, found)


def total(causes: list[Cause]) -> Fraction:
    """What causes sum to."""
    return sum((cause.amount for cause in causes), Fraction(0))


def _event(way: Way, cause: Cause) -> Event:
    assert cause.position is not None
    return way.log[cause.position - 1]


def _check_sums(way: Way, recorded: list[Cause], everywhere: bool) -> None:
    """At each cause and just before it, or everywhere, the causes so far sum to what the points there are."""
    at = {cause.position: cause for cause in recorded if cause.position is not None}
    some = {way.last, *at, *(position - 1 for position in at)} - {way.first}
    for position in range(way.first + 1, way.last + 1) if everywhere else sorted(some):
        so_far = [cause for there, cause in at.items() if there <= position]
        assert way.points(way.known_at(position)) - way.points(way.asked.before) == total(so_far), position


def _check_order(found: Attribution) -> None:
    """Played time and then the version stand behind everything that was recorded."""
    kinds = [what for what, _ in groupby(cause.kind for cause in found.causes if cause.kind in RECORDED_NOWHERE)]
    assert kinds in ([], ["played"], ["not played yet"], ["rules"], ["played", "rules"], ["not played yet", "rules"])
    behind = [cause.kind in RECORDED_NOWHERE for cause in found.causes]
    assert behind == sorted(behind)


def _check_played_and_rules(way: Way, found: Attribution) -> None:
    """Another played time makes what it makes, instant by instant, and another version the rest."""
    here = way.known_at(way.last)
    there = here._replace(as_of=way.asked.after.as_of)
    played = [cause for cause in found.causes if cause.kind in PLAYED]
    assert total(played) == way.points(there) - way.points(here)
    rules = [cause for cause in found.causes if cause.kind == "rules"]
    assert total(rules) == way.points(way.asked.after) - way.points(there)
    if not way.running or way.had(here) is None or way.had(there) is None:
        return
    forward = bool(played) and played[0].kind == "played"
    ended = [_ended(way, cause) for cause in played]
    for at in sorted(set(ended)):
        so_far = total([cause for cause, when in zip(played, ended, strict=True) if when <= at])
        change = way.points(here._replace(as_of=at)) - way.points(here if forward else there)
        assert change == (so_far if forward else -so_far), at


def _ended(way: Way, cause: Cause) -> str:
    """When the game or adjustment of a cause ended, as text that sorts by time."""
    event = _event(way, cause)
    if event["type"] == "points.adjusted":
        return _text(event["occurred_at"])
    game = games(way.log[: way.last])[event["data"]["game_id"]]
    assert game.first == cause.position
    return _text(game.at.isoformat())


def _text(time: str) -> str:
    return instant(time).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _check_own_part(way: Way, cause: Cause) -> None:
    """What the player's own games and adjustments give, where answers tell that, too; on lists that is all."""
    assert cause.position is not None
    event, position = _event(way, cause), cause.position
    if way.running and None in (way.had(way.known_at(position - 1)), way.had(way.known_at(position))):
        return  # who comes or goes brings or takes the start
    match event["type"]:
        case "points.adjusted":
            own = way.is_asked_for(event["data"]["player"], position)
            assert cause.own == (Fraction(event["data"]["points"]) if own else 0)
        case "game.recorded" | "game.voided" | "game.reinstated" | "game.corrected":
            _check_own_game(way, cause, event["data"]["game_id"], position)


def _check_own_game(way: Way, cause: Cause, name: str, position: int) -> None:
    """A game gives what it makes of the points of the moment at which it ended; a game of others gives nothing.

    That is the own part if no other game of the player ended at the same time behind it.
    """
    sides = [found for upto in (position - 1, position) if (found := games(way.log[:upto]).get(name))]
    if not any(way.is_asked_for(player, position) for game in sides for player in game.players):
        assert cause.own == 0, cause
        return
    if not way.running:
        assert cause.ripple == 0, cause
        return
    if len({game.at for game in sides}) > 1 or _shares_its_time(way, sides[-1], position):
        return
    if way.asked.before.upto is not None and sides[-1].at > way.asked.before.upto:
        return
    at = _text(sides[-1].at.isoformat())
    had, has = (way.had(way.known_at(upto, at)) for upto in (position - 1, position))
    if had is not None and has is not None:
        assert cause.own == has - had, (cause, had, has, at)


def _shares_its_time(way: Way, game: Game, position: int) -> bool:
    """Whether something else that was recorded later stands behind a game at its instant."""
    facts = View(way.log[:position]).facts
    behind = [fact for at, first, fact in facts if at == game.at and first > game.first]
    return any(not isinstance(fact, Game) or fact.may_count for fact in behind)
