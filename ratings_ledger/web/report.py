"""A report on a player: one page that stands alone, for who has to check a number without trusting the club.

What was known at one position stands beside what is known at a later one: the number, every game that it is made of
with its terms, and each cause of the difference. Nothing in it is of the moment at which it is made.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from typing import NamedTuple

from markupsafe import Markup

from ratings_ledger import Ledger
from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.exports import Place, place_at
from ratings_ledger.ledger.store.log import recorded_at
from ratings_ledger.projections.diff.attribution import PointsAttributed
from ratings_ledger.projections.diff.statements import Statement, build_cause_lines, build_change_lines
from ratings_ledger.projections.queries.coordinates import Coordinates, moment
from ratings_ledger.projections.queries.event_texts import words_of
from ratings_ledger.projections.queries.explain import Explained, PlayedGame, PlayerExplanation
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.queries.history import Change, Course
from ratings_ledger.projections.queries.players import Profile
from ratings_ledger.projections.queries.published import PublicationRow
from ratings_ledger.projections.queries.ruleset_states import RulesetState
from ratings_ledger.projections.queries.standings import Standing, Standings
from ratings_ledger.projections.replay.ladders import drop_duplicate_ladders, short_name
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.web.addresses import Path
from ratings_ledger.web.charts import steps
from ratings_ledger.web.courses import describe_band, points_line, revisions
from ratings_ledger.web.page import Page, became, points, rating_after, signed, time_played
from ratings_ledger.web.visits import Visit

# what is decided about a player apart from their games
DECIDED = "player.renamed", "player.account_changed", "points.adjusted", "player.seeded", "event.voided"
LADDERS_LISTED = 5  # of who is not on the one that is asked for


@dataclass(frozen=True)
class Side:
    """A ladder as known at a position, and what it says of the player: nothing if they were not on it.

    `before` is the season whose points they took along.
    """

    view: Snapshot
    ladder: Standings
    head: Place
    recorded_at: datetime
    profile: Profile | None
    account: PlayerExplanation | None
    before: str | None

    @property
    def name(self) -> str:
        """Return what it is called."""
        return f"known at position {self.at.known_at}"

    @property
    def at(self) -> Coordinates:
        """Return where on the axes that is."""
        return self.ladder.at

    @property
    def standing(self) -> Standing | None:
        """Return the player's row, if they have one."""
        return None if self.profile is None else self.profile.standing

    @property
    def why_no_rank(self) -> str | None:
        """Return why they have no rank, if the list tells."""
        terms = () if self.account is None else self.account.terms
        return next((term.detail for term in terms if term.term == "no rank"), None)

    @property
    def steps(self) -> Course:
        """Return every game and adjustment that counts, as numbers."""
        found: Course = Course() if self.profile is None else self.profile.steps
        return found

    @property
    def course(self) -> Sequence[Change]:
        """Return the same as changes."""
        return self.steps.rows

    @cached_property
    def played(self) -> dict[str, PlayedGame]:
        """Return the player's games there, also those that do not count."""
        games = () if self.account is None else self.account.games
        return {game.game_id: game for game in games if game.game_id is not None}


class Gave(NamedTuple):
    """What a game gave the player, term by term, and under which version; or `why_not`.

    Of a list that counts only the best games, `why_not` tells that it is none of them.
    """

    ruleset: str | None
    terms: Explained | None
    why_not: str | None


class ReportedGame(NamedTuple):
    """A game with what became of it and what it gave, as known at each side; without a name if it is the same."""

    story: GameTimeline
    gave: Sequence[tuple[str, Gave]]


class Listed(NamedTuple):
    """What a published list showed of the player; None if they were not on it."""

    published: PublicationRow
    row: Standing | None


class Decided(NamedTuple):
    """What was decided about the player or one of their games, by whom."""

    position: int
    recorded_at: str
    by: str
    game_id: str | None
    told: str


def report_page(then: Visit, now: Visit, player: str, ladder: str) -> Page:
    """Return a player's number on a ladder as known then and as known now, and everything that it is made of.

    Raises as `Snapshot.profile` and `Ledger.attribute` do, `Unknown` for who was on it neither then nor now,
    `BadArgument` (to) where now is wrong, or earlier than then.
    """
    last, first = _pinned(now, ladder, "to"), _pinned(then, ladder, "known_at")
    if first.at.known_at > last.at.known_at:
        told = f"position {last.at.known_at} is earlier than {first.at.known_at}; this is the later one"
        raise BadArgument(told, "to")
    ids = now.ledger.at(known_at=last.at.known_at).ids(player)
    both = [last] if first.at.known_at == last.at.known_at else [first, last]
    sides = [_side(now.ledger, standings, ids) for standings in both]
    if not any(side.profile for side in sides):
        raise Unknown("player-unknown", _not_on_it(now, last, player, ids))
    difference = now.ledger.attribute(ladder, player, sides[0].view, sides[-1].view)
    named = next(side.profile.player for side in reversed(sides) if side.profile)
    games, lists = _games(sides, ids), _lists(now.ledger, sides[-1], player)
    asked = {
        "player": named, "ladder": ladder, "sides": sides, "left_out": difference.left_out, "games": games,
        "accounts": [_statement(side, sides[0], difference.start) for side in sides],
        "running": next(side.profile.running for side in sides if side.profile),
        "sums_months": bool(sides[-1].view.months(ladder)),
        "learned": _learned(difference) if len(sides) > 1 else None,
        "chart": lambda game_link: Markup(_chart(sides, named, game_link)), "telling": (),
        "lists": lists, "decided": _decided(sides[-1], player, games), "rules": _rules(sides),
        "program": version("ratings-ledger"),
        "commands": [
            (told, _typed(options, names)) for told, options, *names in _commands(sides, lists, ladder, games)
        ],
    }  # fmt: skip
    lines = frozenset(game.story.game_id for game in games)
    title = f"{named} on {short_name(ladder)}, {sides[-1].name}"
    here: Path = ()
    return Page(
        here, "report", title, difference, last.times, asked, line_of=lambda game: here if game in lines else None
    )


def _pinned(visit: Visit, ladder: str, known_at: str) -> Standings:
    """Return a ladder where a visit is on the axes, its rows do not matter; a wrong position is called as it was asked
    for.
    """
    try:
        return visit.view.standings(ladder, limit=1)
    except BadArgument as problem:
        raise BadArgument(str(problem), known_at if problem.argument == "known_at" else problem.argument) from None


def _side(ledger: Ledger, ladder: Standings, ids: Sequence[str]) -> Side:
    """Return what is known at the coordinates of a ladder, whatever is recorded meanwhile."""
    at = ladder.at
    view = ledger.at(None if at.as_of is None else format_instant(at.as_of), at.known_at)
    with view.ledger.reading() as connection:
        head, recorded = place_at(connection, at.known_at), moment(recorded_at(connection, at.known_at))
    profile = next(filter(None, (_profile(view, ladder.ladder, player) for player in ids)), None)
    if profile is None:
        return Side(view, ladder, head, recorded, None, None, None)
    before = view.season_before(ladder.ladder)
    taken_along = before is not None and _profile(view, before, profile.player) is not None
    account = view.account(ladder.ladder, profile.player)
    return Side(view, ladder, head, recorded, profile, account, before if taken_along else None)


def _profile(view: Snapshot, ladder: str, player: str) -> Profile | None:
    """Return what the ladder says of somebody who is on it; None of others."""
    try:
        found = view.profile(ladder, player)
    except Unknown as problem:
        if problem.reason != "player-unknown":
            raise
        return None
    return None if found.standing is None and not found.course else found


def _not_on_it(now: Visit, last: Standings, player: str, ids: Sequence[str]) -> str:
    """Return why there is no report on somebody, and when they began or where they are. Raises `Unknown`
    (player-unknown).
    """
    ladder = last.ladder
    if last.at.until is not None:
        later = now.ledger.at(known_at=last.at.known_at)
        found = next(filter(None, (_profile(later, ladder, one) for one in ids)), None)
        if found is not None:
            began = f"; it began at {last.times.second(found.course[0].occurred_at)}" if found.course else ""
            return f"{quote(player)} had nothing on {short_name(ladder)} by {last.times.second(last.at.until)}{began}"
    there = [row.ladder for row in drop_duplicate_ladders(now.people.get(now.view.person(player).player, ()))]
    more = f" and {len(there) - LADDERS_LISTED:,} more" if len(there) > LADDERS_LISTED else ""
    return f"{quote(player)} is not on {short_name(ladder)}; they are on {', '.join(there[:LADDERS_LISTED])}{more}"


def _statement(side: Side, first: Side, start: Fraction) -> Statement | None:
    """Return what every game gave, as known at a side, from the start on. Where points run on, the causes tell the
    second.
    """
    if side.profile is None or (side is not first if side.profile.running else not side.course):
        return None
    course = side.course
    opening = course[0].before if course else start
    closing = course[-1].after if course else opening
    lines = tuple(build_change_lines(course))
    return Statement(
        side.profile.player, side.ladder.ladder, side.at, None, None, opening, lines, closing, times=side.ladder.times
    )  # fmt: skip


def _learned(found: PointsAttributed) -> Statement:
    """Return what made the difference between both sides."""
    opening, closing = (found.start if end.points is None else end.points for end in (found.before, found.to))
    lines = tuple(build_cause_lines(found.causes, opening))
    return Statement(found.player, found.ladder, found.to.at, None, None, opening, lines, closing, times=found.times)


def _games(sides: Sequence[Side], ids: Sequence[str]) -> list[ReportedGame]:
    """Return every game that is the player's at a side, by the time it was played, with what it gave at each."""
    games = [*dict.fromkeys(chain.from_iterable(side.played for side in sides))]
    now = _stories(sides[-1], games)
    each = [*(_stories(side, side.played) for side in sides[:-1]), now]
    found = []
    for story in sorted(now.values(), key=lambda one: (one.occurred_at, one.story[0].position)):
        gave = [_gave(side, story, there.get(story.game_id), ids) for side, there in zip(sides, each, strict=True)]
        if all(_amounts(one) == _amounts(gave[-1]) for one in gave):
            found.append(ReportedGame(story, [("", gave[-1])]))
        else:
            found.append(ReportedGame(story, [(side.name, one) for side, one in zip(sides, gave, strict=True)]))
    return found


def _stories(side: Side, games: Iterable[str]) -> dict[str, GameTimeline]:
    """Return the stories of recorded games, as known at a side."""
    with side.view.staying():
        return {story.game_id: story for story in side.view.stories([*games], side.ladder.ladder)}


def _gave(side: Side, latest: GameTimeline, story: GameTimeline | None, ids: Sequence[str]) -> Gave:
    """Return what a game gave the player as known at a side; `latest` is its story as known at the last one."""
    if latest.story[0].position > side.at.known_at:
        return Gave(None, None, "not recorded yet")
    played = side.played.get(latest.game_id)
    if played is None:
        return Gave(None, None, _why_not_theirs(side, latest.game_id, ids))
    if played.change is None or story is None or side.profile is None:
        return Gave(None, None, played.why_not)
    (one,) = story.ladders
    return Gave(one.ruleset, next(row for row in one.players if row.player == side.profile.player), played.why_not)


def _why_not_theirs(side: Side, game_id: str, ids: Sequence[str]) -> str:
    """Return why a game that is theirs at one side is none of theirs at another."""
    found = side.view.explain(side.ladder.ladder, game_id)
    other = next((row.player for row in found.players if row.player in ids), None)
    not_theirs = "they do not take part in it" if other is None else f"{other}, who played it, was somebody else then"
    return found.why_not or not_theirs


def _amounts(gave: Gave) -> object:
    """Return what there is to compare of what a game gave: not the ids of the others, who may have been renamed."""
    if gave.terms is None:
        return gave.why_not
    terms = [(term.detail, term.amount, str(term.note)) for term in gave.terms.terms]
    return gave.ruleset, gave.why_not, gave.terms.before, gave.terms.change, sorted(terms, key=str)


def _lists(ledger: Ledger, last: Side, player: str) -> list[Listed]:
    """Return what published lists of what was played by then showed, as they were published."""
    found = []
    for one in last.view.publications().rows:
        if one.ladder == last.ladder.ladder and (last.at.until is None or (one.as_of and one.as_of <= last.at.until)):
            rows = ledger.at(known_at=one.position).published(one.ladder, [player]).rows
            found.append(Listed(one, next(iter(rows), None)))
    return sorted(found, key=lambda one: one.published.position)


def _decided(last: Side, player: str, games: Sequence[ReportedGame]) -> list[Decided]:
    """Return the decisions about the player and their games, as they were made."""
    found = [
        Decided(one.position, one.recorded_at, one.by, game.story.game_id, " – ".join(filter(None, (
            became(one.type), one.reason and f"“{one.reason}”", one.result
        ))))
        for game in games for one in game.story.story[1:]
    ]  # fmt: skip
    for row in last.view.events(player, types=DECIDED).rows:
        event, data = row.event, row.event["data"] if row.target is None else row.target.data
        if data.get("ladder", last.ladder.ladder) == last.ladder.ladder:
            told = words_of(row, last.ladder.times)
            found.append(Decided(event["position"], event["recorded_at"], event["by"], None, told))
    return sorted(found)


def _rules(sides: Sequence[Side]) -> list[RulesetState]:
    """Return the versions that scored games of the player or rank the ladder, at any side, the oldest first."""
    found = dict[str, RulesetState]()
    for side in reversed(sides):
        for name in dict.fromkeys([*(row.ruleset for row in side.course if row.ruleset), side.ladder.ruleset]):
            if name not in found:
                found[name] = side.view.ruleset(name)
    return sorted(found.values(), key=lambda one: one.position)


def _chart(sides: Sequence[Side], named: str, game_link: Callable[[str], str]) -> str:
    """Return the points by date, as known at each side; nothing for who has no game."""
    courses = {side.course: side for side in sides if side.course}
    if not courses:
        return ""

    def told(row: Change) -> str:
        what = row.reason if row.game_id is None else row.game_id
        return f"{what}, {time_played(last.ladder.times, row.occurred_at)}: {signed(row.change)}, {rating_after(row)}"

    last = sides[-1]
    lines = [
        points_line(named if len(courses) == 1 else side.name, side.steps, "date", told, game_link)
        for side in courses.values()
    ]  # fmt: skip
    ends = "; ".join(f"{side.name}: {points(course[-1].after)}" for course, side in courses.items())
    if len(courses) == 1:
        ends += describe_band(last.steps, points)
    marks = revisions(last.steps, "date", lambda row: f"{row.game_id} was corrected later")
    title = f"Points of {named} on {short_name(last.ladder.ladder)}"
    return steps(lines, title=title, description=f"{ends}.", prefix="points", marks=marks)


def _commands(
    sides: Sequence[Side], lists: Sequence[Listed], ladder: str, games: Sequence[ReportedGame]
) -> Iterator[tuple[str, ...]]:
    """Yield what can be asked of the ledger, or of a copy of it: the options of a command, and its arguments."""
    first, last = sides[0], sides[-1]
    # of ids that became one person later, the one that was meant
    player = next(side.profile.player for side in sides if side.profile)
    until = [] if last.at.as_of is None else [format_instant(last.at.as_of)]
    as_of = " ".join(f"--as-of {one}" for one in until)
    both = f"{as_of} --known-at {first.at.known_at} --to {last.at.known_at}"
    for side in sides:
        yield "Whether the ledger holds this history", f"verify --head {side.head}"
    for side in sides:
        axes = f"{as_of} --known-at {side.at.known_at}"
        yield f"The rank, the points and the digest, {side.name}", f"standings {axes} --format json", ladder
        if side.profile is not None:
            name = side.profile.player
            yield f"Every change of the points, {side.name}", f"history {axes}", name, ladder
            yield f"What counts and what does not, {side.name}", f"explain --player {axes}", name, ladder
        if one := next(iter(side.played), None):
            yield f"The terms of a game, such as {one}, {side.name}", f"explain {axes}", one, ladder
    for listed in lists:
        at = listed.published.position
        yield f"The list published at position {at}", f"standings --known-at {at} --as-published", ladder
    if first is not last:
        ends = [",".join([*(f"as-of={one}" for one in until), f"known-at={side.at.known_at}"]) for side in sides]
        yield "What made the difference", f"explain --change --from {ends[0]} --to {ends[1]}", player, ladder
    if games:
        told = games[0].story.game_id
        yield f"Who recorded a game, such as {told}, and what became of it", "log", told
    for month, of in sorted({one for side in sides for one in _months(side, ladder)}):
        yield f"The place of {month}: a report on its list", f"report player {both} -o {month}.html", player, of
    for before in dict.fromkeys(side.before for side in sides if side.before):
        yield (
            "What was carried over: a report on the season before",
            f"report player {both} -o before.html",
            player,
            before,
        )
    for name in (found.ruleset.name for found in _rules(sides)):
        yield "What the rules say", f"rules show --known-at {last.at.known_at}", name
    yield "This page, byte for byte", f"report player {both} -o again.html", player, ladder


def _months(side: Side, ladder: str) -> Iterator[tuple[str, str]]:
    """Yield the months whose places a list sums, with their lists."""
    told = {term.term for term in side.account.terms} if side.account else set()
    yield from (one for one in side.view.months(ladder).items() if one[0] in told)


def _typed(options: str, names: Sequence[str]) -> str:
    """Return a command as it is typed; a name that looks like an option stands behind --."""
    apart = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join(["ratings", *options.split(), *apart, *names])
