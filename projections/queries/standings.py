"""Standings: the rows of a ladder, ranked by the list that its rule names, at any coordinates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.errors import BadArgument, RulesetUnusable
from ledger.events.canonical import dump
from ledger.events.published_lists import digest_of_text
from ledger.events.types import Ruleset
from ledger.rejections import did_you_mean, shown
from ledger.store.log import head, home_zone, known_of, read_where
from projections.contract import Params
from projections.facts.columns import Column, Facts
from projections.lists import LISTS
from projections.lists.contract import RankedRow, Results
from projections.queries import answers
from projections.queries.coordinates import Coordinates, Times
from projections.queries.results import ABSENT, Absent
from projections.replay.containment import RuleFailure
from projections.replay.ladders import Stream, parse_name, refuse_name, streams
from projections.replay.replay import Outcome, needs_changes, replay, starting_points
from projections.replay.selection import rows_in_order
from projections.rulesets.periods import is_running, period_of
from projections.rulesets.versions import Version, in_force, newest, refuse_months


class UnknownLadder(BadArgument):
    """No ruleset has this id or version, or the ladder's name does not fit its ruleset."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "ladder")


class Ranking(NamedTuple):
    """A ladder's standings with the coordinates they were computed at."""

    ladder: str
    ruleset: str
    scale: int
    rows: list[RankedRow]
    games: int
    held: int  # what the players have in total: the running points, or the sums over their games
    started: int
    minted: int
    burned: int
    adjusted: int

    @property
    def digest(self) -> str:
        """The hash of ruleset and rows, as `digest_of` defines it."""
        rows = ",".join(_canonical_row(row, self.scale) for row in self.rows)
        return digest_of_text(f'{{"rows":[{rows}],"ruleset":{dump(self.ruleset)}}}')

    def json_rows(self) -> list[dict[str, Any]]:
        """The rows as the contract writes them."""
        return [_json_row(row, self.scale) for row in self.rows]


def _json_row(row: RankedRow, scale: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rank": row.rank, "player": row.player, "points": str(row.value(scale)), "games": row.games,
        "qualified": row.qualified,
    }  # fmt: skip
    if row.gold is not None:
        found["gold"] = row.gold
    if row.places is not None:
        found["places"] = list(row.places)
    return found


def _canonical_row(row: RankedRow, scale: int) -> str:
    """The same as `dump` of `_json_row`, several times as fast: a nightly run has many."""
    rank, player, points, games, qualified, divisor, gold, places = row
    unit = scale * divisor
    whole, rest = divmod(points, unit)
    if rest:
        common = gcd(points, unit)
        value = f"{points // common}/{unit // common}"
    else:
        value = str(whole)
    more = "" if gold is None else f'"gold":{gold},'
    if places is not None:
        more += f'"places":[{",".join(map(str, places))}],'
    return (
        f'{{"games":{games},{more}"player":{dump(player)},"points":"{value}",'
        f'"qualified":{"true" if qualified else "false"},"rank":{"null" if rank is None else rank}}}'
    )


class Ladders:
    """All ladders of some facts at one `as_of`, with one ruleset under the version `rules`, replayed on demand.

    Each stream is made only once.
    """

    def __init__(self, facts: Facts, as_of: int | None = None, rules: str | None = None) -> None:
        self.facts = facts
        self.as_of = as_of
        self.rules = rules
        self._streams: dict[str, dict[str, Stream]] = {}
        self._others: dict[int | None, Ladders] = {}
        self._single: dict[str, Stream] = {}

    @property
    def coordinates(self) -> Coordinates:
        """Where on the axes these ladders are."""
        return Coordinates(self.as_of, self.facts.position, self.rules, tuple(self.facts.left_out))

    def at(self, as_of: int | None) -> Ladders:
        """The same ladders at another `as_of`."""
        if as_of == self.as_of:
            return self
        return self._others.setdefault(as_of, Ladders(self.facts, as_of, self.rules))

    @cached_property
    def _ordered(self) -> Column:
        return rows_in_order(self.facts, self.as_of)

    def versions(self, ladder: str) -> list[Version]:
        """The versions that may score a ladder's games. Raises `UnknownLadder`, `RulesetUnusable`."""
        return versions_of(self.facts, ladder, self._rules_of(parse_name(ladder).ruleset_id))

    def _rules_of(self, ruleset_id: str) -> str | None:
        """The version that replaces a ruleset's timeline; the others keep theirs."""
        return self.rules if self.rules is not None and self.rules.partition("@")[0] == ruleset_id else None

    def every(self, ruleset_id: str) -> dict[str, Stream]:
        """The streams of all ladders of a usable ruleset, by name."""
        if ruleset_id not in self._streams:
            versions = self.facts.rulesets[ruleset_id]
            if (rules := self._rules_of(ruleset_id)) is not None:
                versions = _only(versions, rules)
            self._streams[ruleset_id] = streams(self.facts, versions, as_of=self.as_of, ordered=self._ordered)
        return self._streams[ruleset_id]

    def stream(self, ladder: str) -> Stream:
        """The stream of one ladder, empty if it has no games. Raises `UnknownLadder`, `RulesetUnusable`."""
        versions = self.versions(ladder)
        name = parse_name(ladder)
        found = self._streams.get(name.ruleset_id, self._single)
        if found is self._single and ladder not in found:
            found |= streams(self.facts, versions, only=name.values, as_of=self.as_of)
        return found.get(ladder) or Stream(ladder, versions[0].rule, versions)

    def first(self, ladder: str) -> tuple[int, str] | None:
        """When a ladder begins, and whether with a `game` or an `adjustment`; None if it has neither.

        Raises `UnknownLadder`, `RulesetUnusable`.
        """
        stream = self.stream(ladder)
        games = [(self.facts.occurred_at[row], "game") for row in stream.row[:1]]
        return min([*games, *((one.occurred_at, "adjustment") for one in stream.adjustments)], default=None)

    def standings(self, ladder: str) -> Ranking:
        """The standings of one ladder. Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`."""
        return self.of_stream(self.stream(ladder))

    def of_stream(self, stream: Stream) -> Ranking:
        """The standings of a stream. Raises `RuleFailure`."""
        return self.ranked(stream, replay(stream, changes=needs_changes(stream))[0])[0]

    def rows_at(self, stream: Stream, outcome: Outcome, as_of: int | None) -> tuple[str, list[RankedRow]]:
        """The version that ranks a stream at an earlier `as_of`, and the rows, after a replay to its end.

        Nothing is scored again unless it has to be: annual lists and carried-over points look further back.
        Raises `RuleFailure`.
        """
        if as_of is None or stream.ranking.sums_lists or stream.previous is not None:
            found = self.ranked(stream, outcome)[0] if as_of is None else self.at(as_of).standings(stream.ladder)
            return found.ruleset, found.rows
        facts = self.facts
        games = bisect_right(stream.row, as_of, key=facts.occurred_at.__getitem__)
        version = stream.versions[stream.version[games - 1]] if games else newest(stream.versions)
        results = until(stream, outcome, games, as_of, version.params)
        return version.ruleset.name, LISTS[stream.rule.ranking].rank(results)

    def ranked(self, stream: Stream, outcome: Outcome) -> tuple[Ranking, Results]:
        """The standings that a replay of a stream comes to, and what its list ranked. Raises `RuleFailure`."""
        version = ranking_version(stream, outcome)
        annual = stream.ranking.sums_lists
        months = self._months(stream, version) if annual else {}
        results = self._results(stream, outcome, version, months)
        rows = LISTS[stream.rule.ranking].rank(results)
        games = sum(month.games for month in months.values()) if annual else len(stream.row)
        found = Ranking(
            stream.ladder, version.ruleset.name, stream.rule.scale, rows, games, sum(results.points),
            outcome.started, outcome.minted, outcome.burned, outcome.adjusted,
        )  # fmt: skip
        return found, results

    def _results(
        self, stream: Stream, outcome: Outcome, version: Version, months: dict[str, Ranking]
    ) -> Results:  # fmt: skip
        # everybody in a stream that was replayed to the end is on the ladder
        return Results(
            stream.names, outcome.points, outcome.games, stream.offsets, stream.players, outcome.changes,
            stream.rule.scale, version.params,
            {month: {row.player: row for row in found.rows} for month, found in months.items()},
            self._excluded(stream, version, months) if stream.ranking.sums_lists else {},
        )  # fmt: skip

    def _months(self, stream: Stream, version: Version) -> dict[str, Ranking]:
        """The monthly lists that an annual list sums, by month. Raises `RuleFailure` if they cannot be used."""
        params: Any = version.params
        by = version.ruleset.partition.by
        values = dict(zip(by, parse_name(stream.ladder).values, strict=True))
        if params.of in self.facts.unusable:
            raise RuleFailure(stream.ladder, self.facts.unusable[params.of].reason, position=version.position)
        versions = self.facts.rulesets.get(params.of, [])
        if wrong := refuse_months(version, versions):
            raise RuleFailure(stream.ladder, wrong, position=version.position)
        found = {}
        for month in range(1, 13):
            parts = values | {"month": f"{values['year']}-{month:02d}"}
            name = "/".join([params.of, *(parts[part] for part in versions[0].ruleset.partition.by)])
            if name in self.every(params.of):
                found[parts["month"]] = self.of_stream(self.every(params.of)[name])
        return found

    def _excluded(self, stream: Stream, version: Version, months: dict[str, Ranking]) -> dict[str, str]:
        """Who is kept off an annual list by their account, and why."""
        params: Any = version.params
        values = parse_name(stream.ladder).values
        period = period_of(version.ruleset, values)
        group = dict(zip(version.ruleset.partition.by, values, strict=True)).get("group")
        if params.account is None or group in params.any_account or period is None:
            return {}
        instant = period.end if self.as_of is None else min(period.end, self.as_of)
        found = {}
        for name in {row.player for month in months.values() for row in month.rows}:
            account = self.facts.account(self.facts.player_numbers[name], instant)
            if account != params.account:
                when = "at the end of the year" if instant == period.end else "at that time"
                found[name] = f"a {account} account {when}, not a {params.account} one"
        return found


def until(stream: Stream, outcome: Outcome, games: int, as_of: int, params: Params) -> Results:
    """What a list ranks after the first `games` games of a replayed stream, and its adjustments up to an instant."""
    number: dict[int, int] = {}
    points: list[int] = []
    played: list[int] = []

    def on_ladder(player: int, version: int) -> int:
        if player not in number:
            number[player] = len(points)
            points.append(starting_points(stream.names[player], stream.versions[version], outcome.carried))
            played.append(0)
        return number[player]

    adjustments = iter([a for a in stream.adjustments if a.occurred_at <= as_of])
    adjustment = next(adjustments, None)
    for game in range(games + 1):
        while adjustment is not None and adjustment.game == game:
            points[on_ladder(adjustment.player, adjustment.version)] += adjustment.units
            adjustment = next(adjustments, None)
        if game < games:
            for slot in range(stream.offsets[game], stream.offsets[game + 1]):
                mine = on_ladder(stream.players[slot], stream.version[game])
                points[mine] += outcome.changes[slot]
                played[mine] += 1
    offsets = stream.offsets[: games + 1]
    players = [number[player] for player in stream.players[: offsets[-1]]]
    names = [stream.names[player] for player in number]
    return Results(names, points, played, offsets, players, outcome.changes, stream.rule.scale, params)


def ranking_version(stream: Stream, outcome: Outcome) -> Version:
    """The version that ranks a ladder: the one that scored its last counted game, otherwise the newest.

    An annual list has no games; it is ranked by the version in force at the end of its year.
    """
    if stream.ranking.sums_lists:
        period = period_of(stream.versions[0].ruleset, parse_name(stream.ladder).values)
        version = None if period is None else in_force(stream.versions, period.end)
        return version or newest(stream.versions)
    return newest(stream.versions) if outcome.last_version is None else stream.versions[outcome.last_version]


def versions_of(facts: Facts, ladder: str, rules: str | None = None) -> list[Version]:
    """The versions that may score a ladder's games; with `rules` (ID@VERSION) only that one, in force from the start.

    Raises `UnknownLadder`, `RulesetUnusable`.
    """
    name = parse_name(ladder)
    if name.ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[name.ruleset_id].reason)
    versions = facts.rulesets.get(name.ruleset_id)
    if not versions:
        raise _unknown_ruleset(name.ruleset_id, facts.rulesets, f" at position {facts.position}")
    if reason := refuse_name(name, versions[0].ruleset):
        raise UnknownLadder(f"{shown(ladder)} is not a ladder: {reason}")
    if rules is None:
        return versions
    if not (chosen := _only(versions, rules)):
        names = ", ".join(version.ruleset.name for version in versions)
        hint = did_you_mean(rules, [version.ruleset.name for version in versions])
        raise UnknownLadder(f"{shown(rules)} is not a published version for {ladder} (there are {names}){hint}")
    return chosen


def check_version(facts: Facts, rules: str | None) -> None:
    """Raises `UnknownLadder` if no version of this name (ID@VERSION) is published, `RulesetUnusable` if it cannot run.

    None means the timeline, which always exists.
    """
    if rules is None:
        return
    ruleset_id, _, _ = rules.partition("@")
    if ruleset_id in facts.unusable:
        raise RulesetUnusable(facts.unusable[ruleset_id].reason)
    every = [version for versions in facts.rulesets.values() for version in versions]
    if not _only(every, rules):
        there = facts.rulesets.get(ruleset_id) or every
        names = ", ".join(version.ruleset.name for version in there) or "none"
        hint = did_you_mean(rules, [version.ruleset.name for version in every])
        raise UnknownLadder(
            f"no version {shown(rules)} is published at position {facts.position} (there are {names}){hint}"
        )


def _only(versions: Iterable[Version], rules: str) -> list[Version]:
    """The version of this name alone, in force from the start; empty if there is none."""
    return [version._replace(effective_from=-(2**63)) for version in versions if version.ruleset.name == rules][:1]


def time_zone(connection: Connection, ladder: str) -> str:
    """The zone of a ladder's ruleset, which all its versions share. Raises `UnknownLadder`."""
    ruleset_id = parse_name(ladder).ruleset_id
    # including voided versions: what was known at an earlier position may need them, and all share the zone
    there = read_where(connection, until=head(connection).position, subject=f"ruleset:{ruleset_id}")
    published = next(iter(known_of("ruleset.published", there)), None)
    if published is None:
        raise _unknown_ruleset(ruleset_id, ruleset_ids(connection))
    return Ruleset.model_validate(published.data).time_zone


def date_zone(connection: Connection, ladder: str) -> str:
    """The zone in which a given date ends: the ledger's home zone, otherwise that of the ladder's ruleset.

    Raises `UnknownLadder`.
    """
    own = time_zone(connection, ladder)
    return home_zone(connection) or own


def ruleset_ids(connection: Connection) -> set[str]:
    """The ids of all rulesets that were ever published."""
    every = read_where(connection, until=head(connection).position, type_name="ruleset.published")
    return {event.data["id"] for event in known_of("ruleset.published", every)}


def _unknown_ruleset(ruleset_id: str, known: Collection[str], when: str = "") -> UnknownLadder:
    there = f"there are {', '.join(sorted(known))}" if known else "none is published; see: ratings init"
    return UnknownLadder(f"no ruleset is called {shown(ruleset_id)}{when} ({there}){did_you_mean(ruleset_id, known)}")


def standings_answer(
    found: Ranking, rows: Iterable[RankedRow], at: Coordinates, times: Times, remark: str | None = None,
    published: answers.Publication | Absent = ABSENT,
) -> answers.Standings:  # fmt: skip
    """Standings with some of their rows, or all. The remark says that their period runs, or who published them."""
    still_open = True if remark and published is ABSENT else ABSENT
    shown_rows = tuple(standing_row(row, found.scale) for row in rows)
    return answers.Standings(
        found.ladder, found.ruleset, at, found.games, found.digest, still_open, published, shown_rows,
        remark=remark, times=times,
    )  # fmt: skip


def standing_row(row: RankedRow, scale: int) -> answers.Standing:
    """A row of a list as a result."""
    gold = ABSENT if row.gold is None else row.gold
    places = ABSENT if row.places is None else row.places
    return answers.Standing(row.rank, row.player, row.value(scale), row.games, row.qualified, gold, places)


def why_unfinished(ladders: Ladders, ladder: str, now: int) -> str | None:
    """A sentence if a list's period still runs or has not begun, else None."""
    period = period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is None:
        return None
    if now < period.start:
        return "The period of this list has not begun."
    if now <= period.end:
        return "The period of this list still runs."
    return "The period of this list still ran then." if is_running(period, now, ladders.as_of) else None


def balance_answer(found: Ranking, at: Coordinates, times: Times) -> answers.Balance:
    """The trial balance of a ladder.

    What the players have in total was there at the start, minted by rules or adjusted by people, minus what was burned.
    """
    amounts = {
        "players": found.held, "start": -found.started, "minted": -found.minted, "burned": found.burned,
        "adjusted": -found.adjusted,
    }  # fmt: skip
    accounts = tuple(answers.Account(name, Fraction(units, found.scale)) for name, units in amounts.items())
    total = Fraction(sum(amounts.values()), found.scale)
    return answers.Balance(
        found.ladder, found.ruleset, at, found.games, len(found.rows), accounts, total, times=times
    )  # fmt: skip
