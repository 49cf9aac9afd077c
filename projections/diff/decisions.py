"""What was decided between two positions of the log, and what each decision did to everybody's points.

The log is walked from decision to decision; each accounts for the difference between the ladders before and after it,
and the games recorded in between for the rest. So a player's amounts sum exactly to the difference between their points
at both ends, as those of `projections.diff.attribution` do for one player.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import partial
from itertools import accumulate, groupby
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.canonical import format_instant, parse_instant
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent, RevisedGame, live_game, root_of
from ratings_ledger.ledger.events.types import DECISIONS, TYPES, Ruleset
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.exports import place_at
from ratings_ledger.ledger.store.log import (
    Log,
    known_event,
    known_events,
    known_of,
    read_newest,
    read_records,
    read_records_at,
    read_where,
    recorded_at,
)
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.ledger.validation.repeated_games import result_of
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.diff.comparison import (
    ComparedSide,
    DifferingList,
    Effect,
    RankedPoints,
    Side,
    Sides,
    had,
    under_present_ids,
)
from ratings_ledger.projections.diff.impact import about, impact_between, matter, recorded_up_to, same
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import apply_event, decode, settle_facts
from ratings_ledger.projections.queries.coordinates import Coordinates, Note, Times, moment
from ratings_ledger.projections.queries.explain import row_of_game
from ratings_ledger.projections.queries.games_log import RecordedEvent, what_it_says, words_of
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.last_events import last_event
from ratings_ledger.projections.queries.published import Publication
from ratings_ledger.projections.queries.results import (
    FROM,
    HIDDEN,
    Answer,
    LastEvent,
    Result,
)
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.rulesets.versions import Version, bind, games_of, newest


@dataclass(frozen=True, slots=True)
class Decision(Result):
    """Events of one type that somebody recorded in a row for one reason, and since when; `did` is that in words.

    `told` is what each of them says, of the first ones of many.
    """

    type: str
    by: str
    reason: str | None
    recorded_at: datetime
    positions: tuple[int, ...]
    did: str = field(metadata=HIDDEN)
    told: tuple[str, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Share(Result):
    """What a player has on a ladder at both ends, and what made the difference: by the index of a decision, or None for
    games that were recorded. `start` stands in for the points of somebody who is not on it.
    """

    ladder: str
    player: str
    start: Fraction
    before: Fraction | None
    after: Fraction | None
    rank: tuple[int | None, int | None]
    amounts: dict[int | None, Fraction]

    @property
    def change(self) -> Fraction:
        """The points at the end minus those at the beginning."""
        before, after = (self.start if points is None else points for points in (self.before, self.after))
        return after - before

    @property
    def is_decided(self) -> bool:
        """Whether a decision has a part in the difference."""
        return any(cause is not None for cause in self.amounts)


@dataclass(frozen=True, slots=True)
class Decisions(Answer):
    """What was decided between two positions, how many games were recorded besides, and the shares of everybody whose
    points differ.

    `head` is that at the later position. `failures` tells why a ladder cannot be replayed, `failed` where; `recorded`
    when the first and the last event was recorded; `left_out` which events do not count, by position, with the reason.
    """

    before: int = field(metadata=FROM)
    to: int
    head: str
    games: int
    decisions: tuple[Decision, ...]
    shares: tuple[Share, ...]
    failures: dict[str, str]
    recorded: tuple[datetime, datetime]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


# of how many events of one decision is told what they say
TOLD = 100
# what an event is called where its type is not told, unless it says so itself
NAMED = {
    "player.registered": "the registration of ",
    "import.recorded": "the import of ",
    "list.published": "the published list ",
    "league.created": "the league ",
    **{name: f"{name} of " for name in CLOCK_TYPES},
}
LogEntry = tuple[int, str, KnownEvent | None]


def decided(
    connection: Connection, before: int, after: int, times: Times, as_of: int | None = None, ladder: str | None = None
) -> Decisions:
    """What was decided after a position, up to another one, and what it did to all ladders, or to one as of an instant.

    Raises `StoreDamaged`.
    """
    facts, end = decode(connection, before, ahead=after), decode(connection, after)
    people = identities(connection, after)
    failures: dict[str, RuleFailure] = {}
    shares = _Shares(facts.snapshot(), end, failures, partial(_first_version, connection, after), as_of, ladder)
    decisions, games = list[Decision](), 0
    for key, run in groupby(_entries(connection, before, after), _decision):
        entries, matters = list(run), set[str]()
        for position, record, event in entries:
            # a correction may make it a game of another name
            matters |= _matters(facts, event)
            apply_event(facts, position, record)
            matters |= _matters(facts, event)
        settle_facts(facts)
        if key is None:
            games += sum(event is not None and event.type == "game.recorded" for _, _, event in entries)
        else:
            told = tuple(
                what_was_decided(Log(connection, position - 1), event, times, people)
                for position, _, event in entries[:TOLD]
                if event is not None
            )
            positions = tuple(position for position, _, _ in entries)
            at = moment(recorded_at(connection, positions[0]))
            decisions.append(Decision(*key, at, positions, TYPES[key[0]].decided, told))
        shares.go_on(facts.snapshot(), matters, None if key is None else len(decisions) - 1)
    return Decisions(
        before,
        after,
        str(place_at(connection, after)),
        games,
        tuple(decisions),
        shares.ended(),
        {ladder: str(problem) for ladder, problem in sorted(failures.items())},
        (moment(recorded_at(connection, before + 1)), moment(recorded_at(connection, after))),
        failed=tuple(told_with_game(problem, end, connection) for problem in failures.values()),
        left_out=facts.left_out,
        times=times,
    )


def _entries(connection: Connection, before: int, after: int) -> Iterator[LogEntry]:
    for page in read_records(connection, before, after):
        for position, record in page:
            yield position, record, next(known_events([(position, record)]), None)


def _decision(entry: LogEntry) -> tuple[str, str, str | None] | None:
    """The type of a decision, who recorded it, and the reason; None for what is no decision."""
    _, record, event = entry
    if event is None or not TYPES[event.type].decided:
        return None
    return event.type, json.loads(record)["by"], event.data.get("reason")


def what_was_decided(before: Log, event: KnownEvent, times: Times, people: Identities) -> str:
    """What an event says, given the log before it."""
    data = event.data
    if event.type == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if event.type == "player.account_changed":
        return f"{data['player']} has a {data['account']} account from {times.stated(event.occurred_at)}"
    if event.type == "points.adjusted":
        points = Fraction(data["points"])
        return f"{data['player']} {decimal(*points.as_integer_ratio(), signed=True)} on {data['ladder']}"
    if event.type == "event.voided":
        return _withdrawn(before, event, times, people)
    if event.type not in GAME_EVENTS:
        return NAMED.get(event.type, "") + what_it_says(event.type, data, times)
    game = live_game(before.about(f"game:{data['game_id']}"))
    if game is None:
        return str(data["game_id"])
    if event.type == "game.corrected":
        return f"{data['game_id']}: {_corrected(game, data['game'], times, people)}"
    return f"{data['game_id']}: {result_of(people.present(game.data))}"


def _withdrawn(before: Log, void: KnownEvent, times: Times, people: Identities) -> str:
    """What a withdrawal withdraws: an event, or the withdrawal of one, which counts again."""
    root, again = root_of(before, void), False
    if root is None:  # a void that does not count
        return str(void.data["id"])
    target = before.event(void.data["id"])
    while target is not None and target.type == "event.voided":
        target, again = before.event(target.data["id"]), not again
    what = what_was_decided(before, root, times, people)
    return f"the withdrawal of {what}" if again else what


def _corrected(game: RevisedGame, new: dict[str, Any], times: Times, people: Identities) -> str:
    """How a game was, and how it is after a correction."""
    changes = what_differs(game, new, times, people)
    told = ", ".join(f"{about} {now} instead of {was}".lstrip() for about, was, now in changes)
    moved = new.get("occurred_at", format_instant(game.occurred_at)) != format_instant(game.occurred_at)
    other = "at another moment of its minute" if moved else "with other details changed"
    return told or f"{result_of(people.present(_undated(new)))}, {other}"


def what_differs(
    game: RevisedGame, new: dict[str, Any], times: Times, people: Identities
) -> list[tuple[str, str, str]]:
    """What a correction changes: what it is about, nothing for the result, how that was and how it is then."""
    moved = new.get("occurred_at", format_instant(game.occurred_at))
    there, here = people.present(game.data), people.present(_undated(new))
    found = []
    if result_of(there) != result_of(here):
        found.append(("", result_of(there), result_of(here)))
    elif (was := _scores(there)) != (now := _scores(here)):
        found.append(("scores", was or "-", now or "-"))
    if times.minute(moved) != times.minute(game.occurred_at):
        found.append(("played", times.stated(game.occurred_at), times.stated(moved)))
    for name in sorted({*there, *here} - {"participants", "centres", "extra"}):
        if there.get(name) != here.get(name):
            found.append((name, str(there.get(name, "-")), str(here.get(name, "-"))))
    return found


def _undated(new: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in new.items() if name != "occurred_at"}


def _scores(game: dict[str, Any]) -> str:
    """The scores of a game's participants, as far as they have any."""
    scored = [(one["player"], one["score"]) for one in game["participants"] if "score" in one]
    return ", ".join(f"{player} {score}" for player, score in sorted(scored))


def _matters(facts: Facts, event: KnownEvent | None) -> set[str]:
    """What an event may matter to, as far as one can tell at the current facts."""
    if event is None:
        return set()
    slugs = set()
    if event.type == "game.recorded":
        slugs = {event.data["game"]}
    elif event.type in GAME_EVENTS and (row := facts.rows.get(event.data["game_id"], NONE)) != NONE:
        slugs = {str(facts.label("game", row))}
    return about(event.type, event.data, slugs)


def _first_version(connection: Connection, until: int, ruleset_id: str) -> Version | None:
    """The first published version of a ruleset that runs here, withdrawn or not."""
    there = read_where(connection, until=until, subject=f"ruleset:{ruleset_id}")
    published = known_of("ruleset.published", there)
    bound = (bind(Ruleset.model_validate(event.data), event.position or 0)[0] for event in published)
    return next((version for version in bound if version is not None), None)


class _Shares:
    """Follows everybody's points on all ladders from one step to the next."""

    def __init__(
        self,
        begin: Facts,
        end: Facts,
        failures: dict[str, RuleFailure],
        first_version: Callable[[str], Version | None],
        as_of: int | None,
        ladder: str | None,
    ) -> None:
        self._as_of, self._ladder = as_of, ladder
        self._ladders = Ladders(begin, as_of)
        self._begin_facts = begin
        self._end = end
        self._failures = failures
        self._first_version = first_version
        # for ladders that changed on the way: what everybody had at the beginning, and has now, by their last id
        self._first: dict[str, dict[str, RankedPoints]] = {}
        self._now: dict[str, dict[str, RankedPoints]] = {}
        self._start: dict[str, Fraction] = {}
        self._amounts: dict[tuple[str, str], dict[int | None, Fraction]] = {}

    def go_on(self, facts: Facts, matters: set[str], cause: int | None) -> None:
        """Attribute the difference between the ladders before and with these facts to a cause."""
        before, self._ladders = self._ladders, Ladders(facts, self._as_of)
        old, new = (_streams(ladders, matters, self._ladder) for ladders in (before, self._ladders))
        # who is who may change even if no game does
        others = self._others(before.facts) != self._others(facts)
        for name in sorted((old.keys() | new.keys()) - self._failures.keys()):
            if not others and same(old.get(name), new.get(name)):
                continue
            try:
                if name not in self._now:
                    self._begin(name, before, old.get(name), new.get(name))
                was = self._now[name]
                now = self._now[name] = self._rows(self._ladders, new.get(name))
            except RuleFailure as problem:
                self._failures[name] = problem
                continue
            for player in was.keys() | now.keys():
                if amount := self._points(name, now.get(player)) - self._points(name, was.get(player)):
                    amounts = self._amounts.setdefault((name, player), {})
                    amounts[cause] = amounts.get(cause, Fraction(0)) + amount

    def _begin(self, name: str, ladders: Ladders, old: Stream | None, new: Stream | None) -> None:
        """Note what everybody had before anything changed on a ladder. Raises `RuleFailure`."""
        stream = old or new
        assert stream is not None
        # if the ruleset was not published then, its first version ever
        ruleset_id = parse_name(name).ruleset_id
        there = self._begin_facts.rulesets.get(ruleset_id)
        version = newest(there) if there else self._first_version(ruleset_id) or stream.versions[0]
        self._start[name] = Fraction(version.start, version.rule.scale)
        self._first[name] = self._now[name] = self._rows(ladders, old)

    def _rows(self, ladders: Ladders, stream: Stream | None) -> dict[str, RankedPoints]:
        """What everybody has, by the id they have in the end. Raises `RuleFailure`."""
        if stream is None:
            return {}
        rows = had(ladders.of_stream(stream).rows, stream.rule.scale)
        others = self._others(ladders.facts)
        found = {name: row for name, row in rows.items() if name not in others and self._end.current(name) == name}
        for player, names in others.items():
            if (there := next((name for name in names if name in rows), None)) is not None:
                found[player] = rows[there]
        return found

    def _others(self, facts: Facts) -> dict[str, list[str]]:
        """The ids under which somebody may appear in these facts, for those who end up with a different one or had one.

        Their last id comes first, as `attribution.attribute` expects.
        """
        if not (facts.renamed or self._end.renamed):
            return {}
        ids: dict[str, list[str]] = {}
        for name in sorted(self._end.players):
            ids.setdefault(self._end.current(name), []).append(name)
        found = {player: [facts.current(name) for name in [player, *own]] for player, own in ids.items()}
        return {player: names for player, names in found.items() if {*names} != {player}}

    def _points(self, ladder: str, row: RankedPoints | None) -> Fraction:
        return self._start[ladder] if row is None else row.points

    def ended(self) -> tuple[Share, ...]:
        """The shares of everybody who has any, on ladders that could be replayed."""
        found = []
        for (name, player), amounts in sorted(self._amounts.items()):
            if name not in self._failures:
                kept = {cause: amount for cause, amount in amounts.items() if amount}
                old, new = self._first[name].get(player), self._now[name].get(player)
                points, rank = (old and old.points, new and new.points), (old and old.rank, new and new.rank)
                found.append(Share(name, player, self._start[name], *points, rank, kept))
        return tuple(found)


def _streams(ladders: Ladders, matters: set[str], only: str | None) -> dict[str, Stream]:
    """The streams of all ladders of the rulesets that may be affected, or that of one ladder, if it may be."""
    facts = ladders.facts
    found: dict[str, Stream] = {}
    for ruleset_id, versions in facts.rulesets.items():
        if ruleset_id not in facts.unusable and any(matter(matters, version) for version in versions):
            found |= ladders.every(ruleset_id)
    return found if only is None else {name: stream for name, stream in found.items() if name == only}


def event_impact(connection: Connection, before: Ladders, after: Ladders, times: Times) -> EventImpact:
    """What the last event that `after` knows, and `before` does not, did to everybody. Raises `StoreDamaged`."""
    position = after.facts.position
    record = read_records_at(connection, [position])[position]
    try:
        event = known_event(position, record)
    except Refused as problem:
        raise Unknown("event-unreadable", f"what is at position {position} does not count: {problem.message}") from None
    written = json.loads(record)
    slugs = set[str]()
    for facts in (before.facts, after.facts) if event.type in GAME_EVENTS else ():
        with suppress(Unknown):  # before its first record
            slugs.add(str(facts.label("game", row_of_game(connection, facts, event.data["game_id"]))))
    recorded = recorded_up_to(connection, before.facts.position)
    found = impact_between(recorded, before, after, about(event.type, event.data, slugs))
    by_ladder = defaultdict[str, list[Effect]](list)
    for effect in found.changes:
        by_ladder[effect.ladder].append(effect)
    radii = {one.ladder: one.ranks for one in found.ladders}
    return EventImpact(
        position,
        event.type,
        written["recorded_at"],
        written["by"],
        event.data.get("reason"),
        event.data.get("game_id"),
        tuple(_on(name, effects, radii.get(name, 0), _players(after, name)) for name, effects in by_ladder.items()),
        found.changes,
        found.published,
        told=what_was_decided(Log(connection, position - 1), event, times, identities(connection, position))
        if TYPES[event.type].decided
        else words_of(RecordedEvent(written), times),
        failed=found.failed,
        times=times,
    )


def _players(ladders: Ladders, ladder: str) -> int:
    """How many players are on a ladder; nobody is on one that is no more."""
    there = ladders.facts.rulesets.get(parse_name(ladder).ruleset_id)
    stream = ladders.every(parse_name(ladder).ruleset_id).get(ladder) if there else None
    return 0 if stream is None else len(ladders.of_stream(stream).rows)


def _on(ladder: str, effects: Sequence[Effect], ranks: int, players: int) -> LadderImpact:
    gains = tuple(one for one in effects if one.change is not None and one.change > 0)
    losses = tuple(one for one in reversed(effects) if one.change is not None and one.change < 0)
    others = tuple(one for one in effects if one.change is None)
    joined = sum(one.before is None for one in others)
    sizes = sorted(abs(one.change) for one in (*gains, *losses) if one.change is not None)
    largest, median, most = (sizes[-1], _median(sizes), sizes[-(-99 * len(sizes) // 100) - 1]) if sizes else [None] * 3
    return LadderImpact(
        ladder,
        len(gains),
        players - len(gains) - len(losses) - joined,
        len(losses),
        joined,
        len(others) - joined,
        ranks,
        largest,
        median,
        most,
        gains,
        losses,
        others,
    )


def _median(sizes: Sequence[Fraction]) -> Fraction:
    """The middle one, or the mean of the two in the middle."""
    return (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2


def telling_positions(connection: Connection, facts: Facts) -> frozenset[int]:
    """The positions of the events that may have moved somebody who did not play: decisions, and games played before an
    instant of which a list of their ruleset had been published when they were recorded.
    """
    decided, _ = read_newest(connection, facts.position, types=DECISIONS)
    return frozenset(position for position, _ in decided) | frozenset(_late_games(connection, facts))


def _late_games(connection: Connection, facts: Facts) -> list[int]:
    """The first positions of games that came after a list that they belong on."""
    lists = known_of("list.published", read_where(connection, until=facts.position, type_name="list.published"))
    by_game = defaultdict[int, list[tuple[int, int]]](list)
    for one in lists:
        versions = facts.rulesets.get(parse_name(one.data["ladder"]).ruleset_id, ())
        for slug in games_of(versions):
            until = parse_instant(one.data["as_of"]) if "as_of" in one.data else one.occurred_at
            by_game[facts.text_numbers.get(slug, NONE - 1)].append((one.position or 0, until))
    found = []
    for game, places in by_game.items():
        positions = [position for position, _ in places]
        latest = [*accumulate((instant for _, instant in places), max)]
        for row in range(bisect_left(facts.first_position, positions[0]), len(facts.first_position)):
            if facts.cell_of(row).game == game:
                known = bisect_left(positions, facts.first_position[row])
                if known and facts.occurred_at[row] <= latest[known - 1]:
                    found.append(facts.first_position[row])
    return found


@dataclass(frozen=True, slots=True)
class LadderImpact(Result):
    """What an event did on a ladder: to how many players it gave more points, the same, and fewer, how many it brought
    and took away, and how many have another rank.

    Of the sizes of the changes, in points, the largest, the median and the 99th percentile, which is the least size
    that 99% of them do not exceed; None where nobody's points changed. `gains` and `losses` come largest first.
    """

    ladder: str
    up: int
    stayed: int
    down: int
    joined: int
    left: int
    ranks: int
    largest: Fraction | None
    median: Fraction | None
    percentile_99: Fraction | None
    gains: tuple[Effect, ...] = field(metadata=HIDDEN)
    losses: tuple[Effect, ...] = field(metadata=HIDDEN)
    others: tuple[Effect, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class EventImpact(Answer):
    """What the event at a position did to everybody's points, and which lists published before it came out differently
    from then on; `failed` tells which ladders cannot be replayed, and why. `told` is what the event says.
    """

    position: int
    type: str
    recorded_at: str
    by: str
    reason: str | None
    game_id: str | None
    ladders: tuple[LadderImpact, ...]
    rows: tuple[Effect, ...]
    published: tuple[DifferingList, ...]
    told: str = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListCause(Result):
    """A part of a difference: by the index of a decision, or None for games that were recorded later."""

    decision: int | None
    amount: Fraction


@dataclass(frozen=True, slots=True)
class PublishedRowDiff(Result):
    """What a player had on a published list and has on the same list as known now, None where they are not on it; and
    what made the difference, exactly.
    """

    player: str
    rank: tuple[int | None, int | None]
    before: Fraction | None
    change: Fraction | None
    after: Fraction | None
    causes: tuple[ListCause, ...]

    @property
    def differs(self) -> bool:
        """Whether the player has other points or another rank now."""
        return self.before != self.after or self.rank[0] != self.rank[1]


@dataclass(frozen=True, slots=True)
class PublishedListDiff(Answer):
    """A published list beside the same list as known now: its rows as they were published, then who came since.

    `ruleset` and `ruleset_now` are the versions that rank it; `decisions` what was decided since that changed points
    on it; `differing` counts the rows that differ. `last` is the last event that it depends on.
    """

    ladder: str
    at: Coordinates
    published: Publication
    published_known_at: int
    ruleset: str
    ruleset_now: str | None
    differing: int
    decisions: tuple[Decision, ...]
    rows: tuple[PublishedRowDiff, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)


def list_beside(
    connection: Connection, ladders: Ladders, one: PublishedList, note: Note, times: Times
) -> PublishedListDiff:
    """A published list beside the same one as known at the position of these ladders, under the rulesets' timelines.

    One that cannot be replayed is told in `failed`. Raises `UnknownLadder`, `RulesetUnusable`.
    """
    known_at = ladders.facts.position
    sides = Sides(connection, note, decode)
    as_of = sides.compared_at(one)
    then, facts, failed = sides.published(one), sides.facts(known_at), tuple[str, ...]()
    try:
        now = sides.computed(one.ladder, Coordinates(as_of, known_at, None))
    except RuleFailure as problem:
        now, failed = Side(ComparedSide(), None, facts), (told_with_game(problem, facts, connection),)
    was, has = ({} if side.found is None else had(side.found.rows, side.found.scale) for side in (then, now))
    was = under_present_ids(was, has, then.facts, facts)
    found = decided(connection, one.known_at, known_at, times, as_of, one.ladder) if one.known_at < known_at else None
    causes = {share.player: share.amounts for share in found.shares} if found else {}
    concerned = sorted({cause for amounts in causes.values() for cause in amounts if cause is not None})
    numbers = {cause: number for number, cause in enumerate(concerned)}
    rows = [
        _row(player, was.get(player), has.get(player), causes.get(player, {}), numbers)
        for player in dict.fromkeys([*was, *has])
    ]
    position = last_event(connection, ladders.at(as_of), one.ladder)
    return PublishedListDiff(
        one.ladder,
        Coordinates(one.as_of, known_at, None),
        Publication(one.position, one.event_id, one.recorded_at, one.by),
        one.known_at,
        one.ruleset,
        None if now.found is None else now.found.ruleset,
        sum(row.differs for row in rows),
        tuple(found.decisions[cause] for cause in concerned) if found else (),
        tuple(rows),
        failed=failed,
        last=LastEvent(position, moment(recorded_at(connection, position))),
        times=times,
    )


def _row(
    player: str,
    was: RankedPoints | None,
    now: RankedPoints | None,
    amounts: Mapping[int | None, Fraction],
    numbers: Mapping[int, int],
) -> PublishedRowDiff:
    before, after = was and was.points, now and now.points
    causes = (ListCause(None if cause is None else numbers[cause], amount) for cause, amount in amounts.items())
    change = None if before is None or after is None else after - before
    return PublishedRowDiff(player, (was and was.rank, now and now.rank), before, change, after, tuple(causes))
