"""What was decided between two positions of the log, and what each decision did to everybody's points.

The log is walked from decision to decision; each accounts for the difference between the ladders before and after it,
and the games recorded in between for the rest. So a player's amounts sum exactly to the difference between their points
at both ends, as those of `projections.queries.attribution` do for one player.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.game_clocks import CLOCK_TYPES
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, KnownEvent, RevisedGame, live_game, root_of
from ratings_ledger.ledger.events.types import TYPES, Ruleset
from ratings_ledger.ledger.store.exports import place_at
from ratings_ledger.ledger.store.log import Log, known_events, known_of, read_records, read_where, recorded_at
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import result_of
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.decoding import apply_event, decode, settle_facts
from ratings_ledger.projections.queries.answers_compared import Decision, Decisions, Share
from ratings_ledger.projections.queries.coordinates import Times, moment
from ratings_ledger.projections.queries.event_texts import what_it_says
from ratings_ledger.projections.queries.impact import Had, about, had, matter, same
from ratings_ledger.projections.queries.standings import Ladders
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.rulesets.versions import Version, bind, newest

# of how many events of one decision is told what they say
TOLD = 100
# what an event is called where its type is not told, unless it says so itself
NAMED = {
    "player.registered": "the registration of ", "import.recorded": "the import of ",
    "list.published": "the published list ", "league.created": "the league ",
    **{name: f"{name} of " for name in CLOCK_TYPES},
}  # fmt: skip

LogEntry = tuple[int, str, KnownEvent | None]


def decided(
    connection: Connection, before: int, after: int, times: Times, as_of: int | None = None, ladder: str | None = None
) -> Decisions:  # fmt: skip
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
                for position, _, event in entries[:TOLD] if event is not None
            )  # fmt: skip
            positions = tuple(position for position, _, _ in entries)
            at = moment(recorded_at(connection, positions[0]))
            decisions.append(Decision(*key, at, positions, TYPES[key[0]].decided, told))
        shares.go_on(facts.snapshot(), matters, None if key is None else len(decisions) - 1)
    return Decisions(
        before, after, str(place_at(connection, after)), games, tuple(decisions), shares.ended(),
        {ladder: str(problem) for ladder, problem in sorted(failures.items())},
        (moment(recorded_at(connection, before + 1)), moment(recorded_at(connection, after))),
        failed=tuple(told_with_game(problem, end, connection) for problem in failures.values()),
        left_out=facts.left_out, times=times,
    )  # fmt: skip


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
) -> list[tuple[str, str, str]]:  # fmt: skip
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
        self, begin: Facts, end: Facts, failures: dict[str, RuleFailure],
        first_version: Callable[[str], Version | None], as_of: int | None, ladder: str | None,
    ) -> None:  # fmt: skip
        self._as_of, self._ladder = as_of, ladder
        self._ladders = Ladders(begin, as_of)
        self._begin_facts = begin
        self._end = end
        self._failures = failures
        self._first_version = first_version
        # for ladders that changed on the way: what everybody had at the beginning, and has now, by their last id
        self._first: dict[str, dict[str, Had]] = {}
        self._now: dict[str, dict[str, Had]] = {}
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

    def _rows(self, ladders: Ladders, stream: Stream | None) -> dict[str, Had]:
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

    def _points(self, ladder: str, row: Had | None) -> Fraction:
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
