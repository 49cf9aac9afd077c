"""Build the report on a player: a self-contained page that lets a reader verify a rating without trusting the club.

The report compares two positions. For each it shows the points, and the games and terms that add up to them; then it
lists the causes of the difference. A report on the same positions is always the same, byte for byte.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property, partial
from importlib.metadata import version
from itertools import chain
from typing import NamedTuple

from markupsafe import Markup

from ratings_ledger import Ledger
from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.exports import ChainHead, read_chain_head
from ratings_ledger.ledger.store.log import read_recorded_at
from ratings_ledger.projections.diff.change_explanations import PointsAttributed
from ratings_ledger.projections.diff.statements import Statement, build_cause_lines, build_change_lines
from ratings_ledger.projections.queries.coordinates import Coordinates, to_datetime
from ratings_ledger.projections.queries.event_texts import describe_recorded_event
from ratings_ledger.projections.queries.game_explanations import ExplainedParticipant
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.queries.history import Change, Course
from ratings_ledger.projections.queries.player_explanations import PlayedGame, PlayerExplanation
from ratings_ledger.projections.queries.players import Profile
from ratings_ledger.projections.queries.published_lists import PublicationRow
from ratings_ledger.projections.queries.ruleset_states import RulesetState
from ratings_ledger.projections.queries.standings import Standing, Standings
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, short_name
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.web.addresses import PagePath
from ratings_ledger.web.charts import draw_steps
from ratings_ledger.web.course_charts import build_points_line, describe_band, list_revision_marks
from ratings_ledger.web.page import (
    Page,
    describe_dated_change,
    describe_effect,
    format_points,
)
from ratings_ledger.web.visits import Visit

# the types of events, other than games, that affect a player
DECISION_TYPES = "player.renamed", "player.account_changed", "points.adjusted", "player.seeded", "event.voided"
LADDERS_LISTED_MAX = 5  # how many ladders a message names if the player is not on the requested ladder


@dataclass(frozen=True)
class ReportSide:
    """A side of the report: a ladder as known at a position, with the player's profile, if they are on it.

    `previous_season` is the ladder whose points were carried over.
    """

    view: Snapshot
    standings: Standings
    head: ChainHead
    recorded_at: datetime
    profile: Profile | None
    explanation: PlayerExplanation | None
    previous_season: str | None

    @property
    def heading(self) -> str:
        """Return the heading, such as "known at position 93"."""
        return f"known at position {self.at.known_at}"

    @property
    def at(self) -> Coordinates:
        """Return the coordinates."""
        return self.standings.at

    @property
    def standing(self) -> Standing | None:
        """Return the player's row, if they have one."""
        return None if self.profile is None else self.profile.standing

    @property
    def unranked_reason(self) -> str | None:
        """Return the reason why the player is unranked, if known."""
        terms = () if self.explanation is None else self.explanation.terms
        return next((term.detail for term in terms if term.term == "no rank"), None)

    @property
    def course(self) -> Course:
        """Return the player's changes on the ladder as columns."""
        course: Course = Course() if self.profile is None else self.profile.steps
        return course

    @property
    def changes(self) -> Sequence[Change]:
        """Return the player's changes on the ladder as rows."""
        return self.course.rows

    @cached_property
    def games(self) -> dict[str, PlayedGame]:
        """Return the player's games by id, including games that do not count."""
        games = () if self.explanation is None else self.explanation.games
        return {game.game_id: game for game in games if game.game_id is not None}


class GameEffect(NamedTuple):
    """A game's effect on the player's points, by term, with the ruleset version; or the reason why it had none.

    On a best-of list, `why_not` says that the game is not among the best.
    """

    ruleset: str | None
    terms: ExplainedParticipant | None
    why_not: str | None


class ReportedGame(NamedTuple):
    """A game's timeline and its effect at each position; a single unnamed effect if all are equal."""

    timeline: GameTimeline
    effects: Sequence[tuple[str, GameEffect]]


class PublishedEntry(NamedTuple):
    """A published list with the player's row on it; `row` is None if they were not on the list."""

    publication: PublicationRow
    row: Standing | None


class ReportedDecision(NamedTuple):
    """A decision about the player or one of their games, and who made it."""

    position: int
    recorded_at: str
    by: str
    game_id: str | None
    description: str


class ReproductionCommand(NamedTuple):
    """A command that reproduces part of the report: its title, the command with its options, and its arguments."""

    title: str
    command_and_options: str
    arguments: Sequence[str]


def build_report_page(earlier: Visit, later: Visit, player: str, ladder: str) -> Page:
    """Return the report that compares a player's points at two positions.

    Raises the errors of `Snapshot.profile` and `Ledger.attribute`; `Unknown` if the player is on the ladder at neither
    position; `BadArgument` (to) if the later position is invalid or precedes the earlier one.
    """
    later_standings = _resolve_standings(later, ladder, "to")
    earlier_standings = _resolve_standings(earlier, ladder, "known_at")
    known_before, known_now = earlier_standings.at.known_at, later_standings.at.known_at
    if known_before > known_now:
        positions = f"position {known_now} is earlier than `known_at` ({known_before})"
        raise BadArgument(f"{positions}; swap the two positions", "to")
    ids = later.ledger.at(known_at=known_now).ids(player)
    standings_by_side = [later_standings] if known_before == known_now else [earlier_standings, later_standings]
    sides = [_load_side(later.ledger, standings, ids) for standings in standings_by_side]
    if not any(side.profile for side in sides):
        raise Unknown("player-unknown", _describe_absence(later, later_standings, player, ids))
    difference = later.ledger.attribute(ladder, player, sides[0].view, sides[-1].view)
    player_name = next(side.profile.player for side in reversed(sides) if side.profile)
    games, entries = _load_games(sides, ids), _load_entries(later.ledger, sides[-1], player)
    commands = _list_commands(sides, entries, ladder, games)
    variables = {
        "player": player_name,
        "ladder": ladder,
        "sides": sides,
        "running": next(side.profile.running for side in sides if side.profile),
        "sums_months": bool(sides[-1].view.months(ladder)),
        "statements": [_build_statement(side, sides[0], difference.start) for side in sides],
        "difference": _explain_difference(difference) if len(sides) > 1 else None,
        "left_out": difference.left_out,
        "chart": lambda game_link: Markup(_draw_chart(sides, player_name, game_link)),
        "impact_positions": (),
        "entries": entries,
        "decisions": _load_decisions(sides[-1], player, games),
        "games": games,
        "rulesets": _load_rulesets(sides),
        "commands": [(command.title, _format_command(command)) for command in commands],
        "program": version("ratings-ledger"),
    }
    path: PagePath = ()
    listed_games = frozenset(game.timeline.game_id for game in games)
    return Page(
        path=path,
        template="report",
        title=f"{player_name} on {short_name(ladder)}, {sides[-1].heading}",
        answer=difference,
        times=later_standings.times,
        variables=variables,
        find_listing_page=lambda game_id: path if game_id in listed_games else None,
    )


def _resolve_standings(visit: Visit, ladder: str, parameter: str) -> Standings:
    """Return the standings at a visit's coordinates (only one row).

    A `BadArgument` names the query parameter that caused it.
    """
    try:
        return visit.view.standings(ladder, limit=1)
    except BadArgument as error:
        raise BadArgument(str(error), parameter if error.argument == "known_at" else error.argument) from None


def _load_side(ledger: Ledger, standings: Standings, ids: Sequence[str]) -> ReportSide:
    """Load a side of the report at fixed coordinates, so that later events do not affect it."""
    at, ladder = standings.at, standings.ladder
    view = ledger.at(None if at.as_of is None else format_instant(at.as_of), at.known_at)
    with view.ledger.reading() as connection:
        head = read_chain_head(connection, at.known_at)
        recorded = to_datetime(read_recorded_at(connection, at.known_at))
    side = ReportSide(
        view=view,
        standings=standings,
        head=head,
        recorded_at=recorded,
        profile=next(filter(None, (_load_profile(view, ladder, player) for player in ids)), None),
        explanation=None,
        previous_season=None,
    )
    if side.profile is None:
        return side
    previous = view.season_before(ladder)
    has_carried_points = previous is not None and _load_profile(view, previous, side.profile.player) is not None
    explanation = view.account(ladder, side.profile.player)
    return replace(side, explanation=explanation, previous_season=previous if has_carried_points else None)


def _load_profile(view: Snapshot, ladder: str, player: str) -> Profile | None:
    """Return the player's profile, or None if they are not on the ladder."""
    try:
        profile = view.profile(ladder, player)
    except Unknown as error:
        if error.reason != "player-unknown":
            raise
        return None
    return None if profile.standing is None and not profile.course else profile


def _describe_absence(later: Visit, standings: Standings, player: str, ids: Sequence[str]) -> str:
    """Explain why there is no report: the player's first step is later, or the player is only on other ladders.

    Raises `Unknown` (player-unknown).
    """
    ladder = standings.ladder
    if standings.at.as_of_datetime is not None:
        view = later.ledger.at(known_at=standings.at.known_at)
        profile = next(filter(None, (_load_profile(view, ladder, player_id) for player_id in ids)), None)
        if profile is not None:
            until, course = standings.times.format_second(standings.at.as_of_datetime), profile.course
            hint = ""
            if course:
                noun = "adjustment" if course[0].game_id is None else "game"
                hint = f"; their first {noun} is at {standings.times.format_second(course[0].occurred_at)}"
            return f"{quote(player)} has no points on {short_name(ladder)} before {until}{hint}"
    rows = later.rows_by_player.get(later.view.person(player).player, ())
    ladders = [row.ladder for row in drop_duplicate_ladders(rows)]
    more = f" and {len(ladders) - LADDERS_LISTED_MAX:,} more" if len(ladders) > LADDERS_LISTED_MAX else ""
    listed = ", ".join(ladders[:LADDERS_LISTED_MAX])
    return f"{quote(player)} is not on {short_name(ladder)}; they are on {listed}{more}"


def _build_statement(side: ReportSide, first: ReportSide, start: Fraction) -> Statement | None:
    """Return the statement of a side's games.

    Return None if the player is not on this side. With running points, also return None for the later side, which the
    causes explain; without them, also if there are no changes.
    """
    if side.profile is None or (side is not first if side.profile.running else not side.changes):
        return None
    changes = side.changes
    opening = changes[0].before if changes else start
    return Statement(
        player=side.profile.player,
        ladder=side.standings.ladder,
        at=side.at,
        published=None,
        since=None,
        opening=opening,
        lines=tuple(build_change_lines(changes)),
        closing=changes[-1].after if changes else opening,
        times=side.standings.times,
    )


def _explain_difference(difference: PointsAttributed) -> Statement:
    """Return the causes of the difference between the two sides."""
    opening, closing = (
        difference.start if end.points is None else end.points for end in (difference.before, difference.to)
    )
    return Statement(
        player=difference.player,
        ladder=difference.ladder,
        at=difference.to.at,
        published=None,
        since=None,
        opening=opening,
        lines=tuple(build_cause_lines(difference.causes, opening)),
        closing=closing,
        times=difference.times,
    )


def _load_games(sides: Sequence[ReportSide], ids: Sequence[str]) -> list[ReportedGame]:
    """Return the player's games on either side in order of play, with their effect on each side."""
    games = [*dict.fromkeys(chain.from_iterable(side.games for side in sides))]
    latest_timelines = _load_timelines(sides[-1], games)
    timelines_by_side = [*(_load_timelines(side, side.games) for side in sides[:-1]), latest_timelines]
    reported_games = []
    for latest in sorted(latest_timelines.values(), key=lambda game: (game.occurred_at, game.story[0].position)):
        effects = [
            _find_effect(side, latest, timelines.get(latest.game_id), ids)
            for side, timelines in zip(sides, timelines_by_side, strict=True)
        ]
        if all(_normalize_effect(effect) == _normalize_effect(effects[-1]) for effect in effects):
            reported_games.append(ReportedGame(latest, [("", effects[-1])]))
        else:
            names = [side.heading for side in sides]
            reported_games.append(ReportedGame(latest, [*zip(names, effects, strict=True)]))
    return reported_games


def _load_timelines(side: ReportSide, games: Iterable[str]) -> dict[str, GameTimeline]:
    """Return the timelines of recorded games."""
    with side.view.hold_connection():
        return {timeline.game_id: timeline for timeline in side.view.timelines([*games], side.standings.ladder)}


def _find_effect(
    side: ReportSide, latest: GameTimeline, timeline: GameTimeline | None, ids: Sequence[str]
) -> GameEffect:
    """Return a game's effect as known on a side; `latest` is the timeline on the last side."""
    if latest.story[0].position > side.at.known_at:
        return GameEffect(None, None, "not recorded yet")
    game = side.games.get(latest.game_id)
    if game is None:
        return GameEffect(None, None, _explain_nonparticipation(side, latest.game_id, ids))
    if game.change is None or timeline is None or side.profile is None:
        return GameEffect(None, None, game.why_not)
    (ladder,) = timeline.ladders
    terms = next(row for row in ladder.players if row.player == side.profile.player)
    return GameEffect(ladder.ruleset, terms, game.why_not)


def _explain_nonparticipation(side: ReportSide, game_id: str, ids: Sequence[str]) -> str:
    """Explain why the player does not take part in the game on this side."""
    explanation = side.view.explain(side.standings.ladder, game_id)
    if explanation.why_not:
        return explanation.why_not
    participant = next((row.player for row in explanation.players if row.player in ids), None)
    if participant is None:
        return "the player does not take part in the game"
    return f"{participant}, who played the game, was not yet linked to this player"


def _normalize_effect(effect: GameEffect) -> object:
    """Return an effect without the opponents' ids, which may be renamed, so that effects can be compared."""
    if effect.terms is None:
        return effect.why_not
    terms = [(term.detail, term.amount, str(term.note)) for term in effect.terms.terms]
    return effect.ruleset, effect.why_not, effect.terms.before, effect.terms.change, sorted(terms, key=str)


def _load_entries(ledger: Ledger, last: ReportSide, player: str) -> list[PublishedEntry]:
    """Return the player's rows on the lists published up to the last side, in order of publication.

    Of several lists for the same time, only the last published one is included.
    """
    entries, until = [], last.at.as_of_datetime
    for publication in last.view.publications().rows:
        is_in_time = until is None or (publication.as_of and publication.as_of <= until)
        if publication.ladder == last.standings.ladder and is_in_time:
            rows = ledger.at(known_at=publication.position).published(publication.ladder, [player]).rows
            entries.append(PublishedEntry(publication, next(iter(rows), None)))
    return sorted(entries, key=lambda entry: entry.publication.position)


def _load_decisions(last: ReportSide, player: str, games: Sequence[ReportedGame]) -> list[ReportedDecision]:
    """Return the decisions about the player and their games, in the order in which they were made."""
    decisions = []
    for game in games:
        for entry in game.timeline.story[1:]:
            parts = describe_effect(entry.type), entry.reason and f"“{entry.reason}”", entry.result
            description = " – ".join(filter(None, parts))
            decisions.append(
                ReportedDecision(
                    position=entry.position,
                    recorded_at=entry.recorded_at,
                    by=entry.by,
                    game_id=game.timeline.game_id,
                    description=description,
                )
            )
    for row in last.view.events(player, types=DECISION_TYPES).rows:
        event, data = row.event, row.event["data"] if row.target is None else row.target.data
        if data.get("ladder", last.standings.ladder) == last.standings.ladder:
            description = describe_recorded_event(row, last.standings.times)
            decisions.append(
                ReportedDecision(
                    position=event["position"],
                    recorded_at=event["recorded_at"],
                    by=event["by"],
                    game_id=None,
                    description=description,
                )
            )
    return sorted(decisions)


def _load_rulesets(sides: Sequence[ReportSide]) -> list[RulesetState]:
    """Return the versions that scored the player's games or rank the ladder on any side, oldest first."""
    rulesets = dict[str, RulesetState]()
    for side in reversed(sides):
        for name in dict.fromkeys([*(row.ruleset for row in side.changes if row.ruleset), side.standings.ruleset]):
            if name not in rulesets:
                rulesets[name] = side.view.ruleset(name)
    return sorted(rulesets.values(), key=lambda ruleset: ruleset.position)


def _draw_chart(sides: Sequence[ReportSide], player_name: str, game_link: Callable[[str], str]) -> str:
    """Return a chart of the points by date, with a line for each distinct course; empty if there are no changes."""
    distinct = {side.changes: side for side in sides if side.changes}
    if not distinct:
        return ""
    last = sides[-1]

    describe = partial(describe_dated_change, last.standings.times)
    lines = [
        build_points_line(player_name if len(distinct) == 1 else side.heading, side.course, "date", describe, game_link)
        for side in distinct.values()
    ]
    ends = "; ".join(f"{side.heading}: {format_points(changes[-1].after)}" for changes, side in distinct.items())
    if len(distinct) == 1:
        ends += describe_band(last.course, format_points)
    return draw_steps(
        lines,
        title=f"Points of {player_name} on {short_name(last.standings.ladder)}",
        description=f"{ends}.",
        prefix="points",
        vertical_lines=list_revision_marks(last.course, "date", lambda row: f"{row.game_id} was changed later"),
    )


def _list_commands(
    sides: Sequence[ReportSide], entries: Sequence[PublishedEntry], ladder: str, games: Sequence[ReportedGame]
) -> Iterator[ReproductionCommand]:
    """Yield the commands that reproduce the report."""
    first, last = sides[0], sides[-1]
    # use the earliest known id, because ids may have been merged later
    player = next(side.profile.player for side in sides if side.profile)
    as_of = "" if last.at.as_of is None else f"--as-of {format_instant(last.at.as_of)}"
    positions = f"{as_of} --known-at {first.at.known_at} --to {last.at.known_at}"
    for side in sides:
        yield ReproductionCommand("Check that the ledger contains this history", f"verify --head {side.head}", ())
    for side in sides:
        yield from _list_side_commands(side, ladder, f"{as_of} --known-at {side.at.known_at}")
    for entry in entries:
        position = entry.publication.position
        command = f"standings --known-at {position} --as-published"
        yield ReproductionCommand(f"The list published at position {position}", command, (ladder,))
    if first is not last:
        prefix = "" if last.at.as_of is None else f"as-of={format_instant(last.at.as_of)},"
        start, end = (f"{prefix}known-at={side.at.known_at}" for side in sides)
        command = f"explain --change --from {start} --to {end}"
        yield ReproductionCommand("Causes of the difference", command, (player, ladder))
    if games:
        game_id = games[0].timeline.game_id
        yield ReproductionCommand(f"The history of a game, such as {game_id}", "log", (game_id,))
    for month, month_ladder in sorted({pair for side in sides for pair in _list_month_ladders(side, ladder)}):
        title = f"The rank in {month}: report on that month's list"
        command = f"report player {positions} -o {month}.html"
        yield ReproductionCommand(title, command, (player, month_ladder))
    for season in dict.fromkeys(side.previous_season for side in sides if side.previous_season):
        command = f"report player {positions} -o before.html"
        yield ReproductionCommand("Carried-over points: report on the previous season", command, (player, season))
    for ruleset in _load_rulesets(sides):
        command = f"rules show --known-at {last.at.known_at}"
        yield ReproductionCommand("The text of the rules", command, (ruleset.ruleset.name,))
    yield ReproductionCommand("This page, byte for byte", f"report player {positions} -o again.html", (player, ladder))


def _list_side_commands(side: ReportSide, ladder: str, axes: str) -> Iterator[ReproductionCommand]:
    """Yield the commands that reproduce a side of the report, at its coordinates."""
    title = f"The rank, the points and the digest, {side.heading}"
    yield ReproductionCommand(title, f"standings {axes} --format json", (ladder,))
    if side.profile is not None:
        arguments = side.profile.player, ladder
        yield ReproductionCommand(f"Every change of the points, {side.heading}", f"history {axes}", arguments)
        yield ReproductionCommand(f"Counted and uncounted games, {side.heading}", f"explain --player {axes}", arguments)
    if game_id := next(iter(side.games), None):
        title = f"The terms of a game, such as {game_id}, {side.heading}"
        yield ReproductionCommand(title, f"explain {axes}", (game_id, ladder))


def _list_month_ladders(side: ReportSide, ladder: str) -> Iterator[tuple[str, str]]:
    """Yield the pair (month, ladder) for each monthly list that contributes to this list."""
    months = {term.term for term in side.explanation.terms} if side.explanation else set()
    yield from (pair for pair in side.view.months(ladder).items() if pair[0] in months)


def _format_command(command: ReproductionCommand) -> str:
    """Return a command quoted for the shell; names that look like options follow `--`."""
    separator = ["--"] if any(name.startswith("-") for name in command.arguments) else []
    return shlex.join(["ratings", *command.command_and_options.split(), *separator, *command.arguments])
