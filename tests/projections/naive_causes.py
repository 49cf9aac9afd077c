"""What a player's points on a ladder are according to the naive ledger, and what that says of the causes of a change.

Facts are added one by one in log order, then comes the played time, and another version last: on this way the naive
ledger is asked at every step.
"""

from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from naive_ledger import Question, View, ask, newest, versions_of
from oracle import Event, Game, Log, games, identities, instant, live
from oracle import named as named_in

from projections.queries.attribution import Attribution, Cause

RECORDED_NOWHERE = ("played", "not played yet", "rules")
RUNNING = ("galactic-points", "catan-elo")


class Asked(NamedTuple):
    """A player on a ladder at two coordinates, given as questions to the naive ledger."""

    player: str
    before: Question
    after: Question

    def turned(self) -> "Asked":
        """The way back."""
        return self._replace(before=self.after, after=self.before)


class Way:
    """The way from one set of coordinates to another that is not known earlier, and what stands where on it."""

    def __init__(self, log: Log, asked: Asked) -> None:
        self.log = log
        self.asked = asked
        self.ladder = asked.before.ladder
        self.running = self.ladder.partition("/")[0] in RUNNING
        self.first, self.last = asked.before.known_at, asked.after.known_at
        known = log[: self.last]
        person = identities(known)
        ids = {name for name in set().union(*map(named_in, known)) if person(name) == person(asked.player)}
        self.ids = [asked.player, *sorted(ids - {asked.player})]
        self._had: dict[Question, Fraction | None] = {}

    @cached_property
    def start(self) -> Fraction:
        """What somebody counts with who is not on the ladder."""
        ruleset_id = self.ladder.partition("/")[0]
        if not self.running:
            return Fraction(0)
        versions = versions_of(self.log[: self.first], ruleset_id, self.asked.before.rules)
        if not versions:
            published = (event for event in self.log if event["type"] == "ruleset.published")
            first = next(event for event in published if event["data"]["id"] == ruleset_id)
            return versions_of([first], ruleset_id)[0].start
        if self.asked.before.rules is not None:
            return versions[-1].start
        return newest(versions).start

    def had(self, question: Question) -> Fraction | None:
        """The points at coordinates, None for who is not on the ladder.

        A version that was withdrawn on the way scores nothing there, and nobody is on the ladder of a ruleset that is
        not published; the player is followed through his renames.
        """
        if question not in self._had:
            known = self.log[: question.known_at]
            there = [version.name for version in versions_of(known, self.ladder.partition("/")[0])]
            answer = ask(known, question if question.rules in there else question._replace(rules=None))
            assert (answer is None) == (not there), question
            rows = {row.player: row.points for row in answer.rows} if answer else {}
            person = identities(known)
            self._had[question] = next((rows[name] for name in map(person, self.ids) if name in rows), None)
        return self._had[question]

    def is_his(self, player: str, position: int) -> bool:
        """Whether an id is that of the player when so much is known."""
        person = identities(self.log[:position])
        return person(player) in map(person, self.ids)

    def points(self, question: Question) -> Fraction:
        """The points at coordinates; the start for who is not on the ladder."""
        had = self.had(question)
        return self.start if had is None else had

    def known_at(self, position: int, as_of: str | None = None) -> Question:
        """The coordinates of the start, but for the log position, and the played time if one is given."""
        before = self.asked.before
        return before._replace(known_at=position, as_of=before.as_of if as_of is None else as_of)


def check(log: Log, asked: Asked, found: Attribution, everywhere: bool) -> None:
    """Compare a whole attribution with the naive ledger; the way leads forward in the log.

    At each cause and just before it, or everywhere, the causes so far sum to what the points there are.
    """
    way = Way(log, asked)
    before_all, after = way.points(asked.before), way.points(asked.after)
    assert (found.start, found.before, found.after) == (way.start, way.had(asked.before), way.had(asked.after))
    assert sum((cause.amount for cause in found.causes), Fraction(0)) == after - before_all
    assert all(cause.own or cause.ripple for cause in found.causes)
    recorded = {cause.position: cause for cause in found.causes if cause.what not in RECORDED_NOWHERE}
    assert len(recorded) == sum(cause.what not in RECORDED_NOWHERE for cause in found.causes)
    assert list(recorded) == sorted(recorded, key=lambda position: position or 0)
    there = [position for position in recorded if position is not None]
    some = {way.last, *there, *(position - 1 for position in there)} - {way.first}
    for position in range(way.first + 1, way.last + 1) if everywhere else sorted(some):
        amounts = [cause.amount for before, cause in recorded.items() if before is not None and before <= position]
        assert way.points(way.known_at(position)) - before_all == sum(amounts, Fraction(0)), position
    for cause in recorded.values():
        _check_kind(way, cause)
        _check_own_part(way, cause)
    _check_other_axes(way, found)


def _check_other_axes(way: Way, found: Attribution) -> None:
    """Played time, instant by instant, and the version, in this order and behind everything that was recorded."""
    kinds = [what for what, _ in groupby(cause.what for cause in found.causes if cause.what in RECORDED_NOWHERE)]
    assert kinds in ([], ["played"], ["not played yet"], ["rules"], ["played", "rules"], ["not played yet", "rules"])
    assert [cause.what in RECORDED_NOWHERE for cause in found.causes] == sorted(
        cause.what in RECORDED_NOWHERE for cause in found.causes
    )
    asked = way.asked
    here = way.known_at(way.last)
    there = here._replace(as_of=asked.after.as_of)
    played = [cause for cause in found.causes if cause.what in ("played", "not played yet")]
    assert sum((cause.amount for cause in played), Fraction(0)) == way.points(there) - way.points(here)
    rules = [cause for cause in found.causes if cause.what == "rules"]
    assert sum((cause.amount for cause in rules), Fraction(0)) == way.points(asked.after) - way.points(there)
    if way.running and way.had(here) is not None and way.had(there) is not None:
        forward = played and played[0].what == "played"
        at = {cause: _ended(way, cause) for cause in played}
        for instant_ in sorted(set(at.values())):
            upto, amounts = here._replace(as_of=instant_), [cause.amount for cause in played if at[cause] <= instant_]
            sum_ = sum(amounts, Fraction(0))
            expected = way.points(upto) - way.points(here if forward else there)
            assert expected == (sum_ if forward else -sum_), instant_


def _ended(way: Way, cause: Cause) -> str:
    """When the game or adjustment of a cause ended, as text that sorts by time."""
    assert cause.position is not None
    event = way.log[cause.position - 1]
    if event["type"] == "points.adjusted":
        return _text(event["occurred_at"])
    game = games(way.log[: way.last])[event["data"]["game_id"]]
    assert game.first == cause.position
    return _text(game.at.isoformat())


def _text(time: str) -> str:
    return instant(time).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


KINDS = {
    "game.corrected": "corrected", "game.voided": "voided", "game.reinstated": "reinstated",
    "player.renamed": "rename", "points.adjusted": "adjustment", "ruleset.published": "rule change",
    "event.voided": "taken back", "player.account_changed": "account",
}  # fmt: skip


def _check_kind(way: Way, cause: Cause) -> None:
    event = way.log[(cause.position or 0) - 1]
    if event["type"] == "game.recorded":
        assert cause.what in ("game", "late game")
    else:
        assert cause.what == KINDS[event["type"]]


def _check_own_part(way: Way, cause: Cause) -> None:
    """What his own games and adjustments give, where the naive ledger can tell that, too; on lists that is all."""
    assert cause.position is not None
    event, position = way.log[cause.position - 1], cause.position
    if way.running and None in (way.had(way.known_at(position - 1)), way.had(way.known_at(position))):
        return  # who comes or goes has his start with it
    match event["type"]:
        case "points.adjusted":
            his = way.is_his(event["data"]["player"], position)
            assert cause.own == (Fraction(event["data"]["points"]) if his else 0)
        case "game.recorded" | "game.voided" | "game.reinstated" | "game.corrected":
            _check_own_game(way, cause, event)


def _check_own_game(way: Way, cause: Cause, event: Event) -> None:
    """A game gives what it makes of the points of the moment at which it ended.

    That is the own part if no other game with him ended at the same time behind it. He has none in games of others.
    """
    assert cause.position is not None
    position, name = cause.position, event["data"]["game_id"]
    sides = [found for upto in (position - 1, position) if (found := games(way.log[:upto]).get(name))]
    if not any(way.is_his(player, position) for game in sides for player in game.players):
        assert cause.own == 0, cause
        return
    if not way.running:
        assert cause.ripple == 0, cause
        return
    if len({game.at for game in sides}) > 1 or _shares_its_time(way, sides[-1], position):
        return
    at = _text(sides[-1].at.isoformat())
    if way.asked.before.upto is not None and sides[-1].at > way.asked.before.upto:
        return
    had, has = (way.had(way.known_at(upto, at)) for upto in (position - 1, position))
    if had is not None and has is not None:
        assert cause.own == has - had, (cause, had, has, at)


def _shares_its_time(way: Way, game: Game, position: int) -> bool:
    """Whether something else that was recorded later stands behind a game at its instant."""
    known = way.log[:position]
    adjusted = [e["position"] for e in live(known, "points.adjusted") if instant(e["occurred_at"]) == game.at]
    others = [fact.first for at, _, fact in View(known, None).facts if isinstance(fact, Game) and at == game.at]
    return any(other > game.first for other in [*adjusted, *others])
