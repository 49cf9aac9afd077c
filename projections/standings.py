"""Standings, histories and explanations as plain data: the shapes that FORMATS of the command line promises.

All points are exact strings, whole or a reduced fraction.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.canonical import dump, format_instant
from ledger.errors import RulesetUnusable
from ledger.events import Ruleset
from ledger.rejections import shown
from ledger.store import head, read_records_at, read_where
from projections.contract import Term, exact
from projections.facts import Facts, RuleFailure
from projections.ladders import (
    Stream,
    games_before,
    parse_name,
    partition_values,
    refuse_name,
    streams,
    why_left_out,
    why_not_counted,
)
from projections.replay import Outcome, Step, replay, start_of
from projections.rulesets import Version, newest


class UnknownLadder(ValueError):
    """No ruleset has this id, or the ladder's name does not fit its ruleset."""


class UnknownGame(ValueError):
    """No such game is recorded."""


class Standing(NamedTuple):
    """A standing: its rank (None: not qualified), and points in units of the ladder's scale."""

    rank: int | None
    player: str
    points: int
    games: int
    qualified: bool


class Standings(NamedTuple):
    """A ladder's standings with the coordinates that they were computed at."""

    ladder: str
    ruleset: str
    scale: int
    rows: list[Standing]
    games: int
    started: int
    minted: int
    burned: int
    adjusted: int

    @property
    def digest(self) -> str:
        """SHA-256 over canonical JSON of ruleset and rows: equal on every machine, store and path."""
        content = dump({"ruleset": self.ruleset, "rows": self.json_rows()})
        return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"

    def json_rows(self) -> list[dict[str, Any]]:
        """The rows as the contract writes them."""
        return [{**row._asdict(), "points": exact(row.points, self.scale)} for row in self.rows]


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
        raise UnknownLadder(f"{shown(ladder)} is no ladder: {reason}")
    if rules is None:
        return versions
    chosen = [version for version in versions if version.ruleset.name == rules]
    if not chosen:
        names = ", ".join(version.ruleset.name for version in versions)
        raise UnknownLadder(f"{shown(rules)} is not a published version for {ladder} (there are {names})")
    return [chosen[0]._replace(effective_from=-(2**63))]


def time_zone(connection: Connection, ladder: str) -> str:
    """The zone of a ladder's ruleset, which all its versions share. Raises `UnknownLadder`."""
    ruleset_id = parse_name(ladder).ruleset_id
    # voided versions, too: what was known at an earlier position may need them, and all share the zone
    published = read_where(connection, until=head(connection).position, subject=f"ruleset:{ruleset_id}")
    if not published:
        raise _unknown_ruleset(ruleset_id, [])
    return Ruleset.model_validate(json.loads(published[0][1])["data"]).time_zone


def _unknown_ruleset(ruleset_id: str, known: Iterable[str], when: str = "") -> UnknownLadder:
    there = f"there are {', '.join(sorted(known))}" if known else "see: ratings rules list"
    return UnknownLadder(f"no ruleset is called {shown(ruleset_id)}{when} ({there})")


def stream_of(facts: Facts, ladder: str, as_of: int | None = None, rules: str | None = None) -> Stream:
    """The stream of one ladder, empty if it has no games. Raises `UnknownLadder`."""
    versions = versions_of(facts, ladder, rules)
    found = streams(facts, versions, only=parse_name(ladder).values, as_of=as_of)
    return found.get(ladder) or Stream(ladder, versions[0].rule, versions)


def standings(stream: Stream, outcome: Outcome) -> Standings:
    """Ranked rows of everybody on the ladder; ties share a rank and stand by id, who is not qualified comes last."""
    last = outcome.last_version
    version = newest(stream.versions) if last is None else stream.versions[last]
    on_ladder = [number for number in range(len(stream.names)) if outcome.seen[number]]
    on_ladder.sort(
        key=lambda number: (
            outcome.games[number] < version.params.min_games, -outcome.points[number], stream.names[number]
        )
    )  # fmt: skip
    rows: list[Standing] = []
    for index, number in enumerate(on_ladder, 1):
        points, games = outcome.points[number], outcome.games[number]
        qualified = games >= version.params.min_games
        rank = rows[-1].rank if rows and rows[-1].points == points else index
        rows.append(Standing(rank if qualified else None, stream.names[number], points, games, qualified))
    return Standings(
        stream.ladder, version.ruleset.name, stream.rule.scale, rows, len(stream.row),
        outcome.started, outcome.minted, outcome.burned, outcome.adjusted,
    )  # fmt: skip


def books(found: Standings) -> list[tuple[str, int]]:
    """The trial balance of a ladder: (account, amount in units), which sum to zero.

    What the players have together was there at the start, minted by rules or adjusted by people, less what was burned.
    """
    return [
        ("players", sum(row.points for row in found.rows)),
        ("start", -found.started),
        ("minted", -found.minted),
        ("burned", found.burned),
        ("adjusted", -found.adjusted),
    ]


def current_id(facts: Facts, player: str) -> str:
    """The id that a player has now, who may be asked for by an old one."""
    number = facts.player_numbers.get(player)
    return player if number is None else facts.players[facts.person[number]]


def history(connection: Connection, facts: Facts, stream: Stream, player: str) -> list[dict[str, Any]]:
    """What every game and adjustment did to a player, in replay order; empty for somebody not on the ladder.

    `player` is a current id.
    """
    if player not in stream.names:
        return []
    watched = stream.names.index(player)
    _, steps = replay(stream, watch=watched)
    positions = [
        facts.live_position[stream.row[step.game]] if step.game is not None else step.position or 0 for step in steps
    ]
    events = {position: json.loads(text) for position, text in read_records_at(connection, positions).items()}
    return [
        _history_row(facts, stream, watched, step, events[position])
        for step, position in zip(steps, positions, strict=True)
    ]


def _history_row(facts: Facts, stream: Stream, watched: int, step: Step, event: dict[str, Any]) -> dict[str, Any]:
    place = game_id = version = None
    occurred_at = event["occurred_at"]
    if step.game is not None:
        row = stream.row[step.game]
        number = facts.player_numbers[stream.names[watched]]
        first = facts.start[row]
        place = next(facts.place[p] for p in range(first, first + facts.count[row]) if facts.person_of(p) == number)
        game_id = event["data"]["game_id"]
        version = stream.versions[stream.version[step.game]].ruleset.name
        occurred_at = format_instant(facts.occurred_at[row])
    found = {
        "position": event["position"],
        "event_id": event["id"],
        "game_id": game_id,
        "occurred_at": occurred_at,
        "place": place,
        "before": exact(step.before, stream.rule.scale),
        "change": exact(step.change, stream.rule.scale),
        "after": exact(step.before + step.change, stream.rule.scale),
        "ruleset": version,
    }
    return found if step.game is not None else {**found, "reason": event["data"]["reason"]}


def row_of_game(connection: Connection, facts: Facts, game_id: str) -> int:
    """The row of a game in the facts. Raises `UnknownGame`."""
    recorded = read_where(connection, until=facts.position, subject=f"game:{game_id}", type_name="game.recorded")
    if not recorded:
        raise UnknownGame(f"no game {shown(game_id)} is recorded")
    return facts.row_of(recorded[0][0])


def explain(
    facts: Facts, ladder: str, game_id: str, row: int, as_of: int | None = None, rules: str | None = None
) -> dict[str, Any]:
    """Why a game changed the points of a ladder as it did, or why it did not. Raises `UnknownLadder`."""
    versions = versions_of(facts, ladder, rules)
    version, participants, reason = why_not_counted(facts, row, versions)
    name = parse_name(ladder)
    if reason is None and name.values not in partition_values(facts, row, versions[0].ruleset):
        by = ", ".join(versions[0].ruleset.partition.by)
        reason = f"the game is not on this ladder: it belongs to another {by}"
    if reason is None and as_of is not None and facts.occurred_at[row] > as_of:
        reason = "the game was played later than --as-of"
    stream = streams(facts, versions, only=name.values, as_of=as_of).get(ladder) or Stream(
        ladder, versions[0].rule, versions
    )
    # what comes behind the game is no part of the points before it, also if it does not count itself
    moment = (facts.occurred_at[row], facts.first_position[row])
    stream.adjustments = [a for a in stream.adjustments if (a.occurred_at, a.position) < moment]
    game = games_before(stream, facts, moment)
    outcome, _ = replay(stream, stop=game)
    scale = stream.rule.scale
    counted_players: dict[str, dict[str, Any]] = {}
    minted = burned = 0
    if reason is None and version is not None:
        before = [_points(facts, stream, outcome, p, version) for p in participants]
        n = len(before)
        columns = [column[stream.offsets[game] : stream.offsets[game + 1]] for column in stream.columns]
        change = [0] * n
        try:
            minted = version.rule.score(n, before, columns, version.constants, version.rule.table(), change)
        except Exception as error:
            raise RuleFailure(ladder, f"{type(error).__name__}: {error}", row) from error
        burned = minted - sum(change)
        names = [facts.name_of(p) for p in participants]
        terms = _terms(ladder, row, version, names, before, columns, change)
        for player, had, moved, reasons in zip(names, before, change, terms, strict=True):
            counted_players[player] = _explained(
                player, had, moved, scale, [_term(reason, scale) for reason in reasons]
            )
    return {
        "game_id": game_id,
        "ladder": ladder,
        "ruleset": version.ruleset.name if version else None,
        "counted": reason is None,
        "why_not": reason,
        "occurred_at": format_instant(facts.occurred_at[row]),
        "players": _everybody(facts, stream, outcome, row, version, counted_players),
        "accounts": [
            {"account": "minted", "amount": exact(-minted, scale)},
            {"account": "burned", "amount": exact(burned, scale)},
        ],
    }


def _terms(
    ladder: str,
    row: int,
    version: Version,
    names: list[str],
    before: list[int],
    columns: Sequence[Any],
    change: list[int],
) -> list[list[Term]]:
    """What a rule gives as the reasons of the changes. Raises `RuleFailure`, also where they do not sum to them."""
    try:
        terms = version.rule.explain(len(names), names, before, columns, version.params, change)
        sums = [sum(term.amount for term in mine) for mine in terms]
    except Exception as error:
        raise RuleFailure(ladder, f"explain: {type(error).__name__}: {error}", row) from error
    if sums != change:
        raise RuleFailure(ladder, f"explain: the terms sum to {sums}, the changes are {change}", row)
    return terms


def _term(term: Term, scale: int) -> dict[str, str]:
    found = {"term": term.term, "amount": exact(term.amount, scale), "detail": term.detail}
    return {**found, "note": term.note} if term.note else found


def _explained(player: str, before: int, change: int, scale: int, terms: Sequence[dict[str, str]]) -> dict[str, Any]:
    return {
        "player": player,
        "before": exact(before, scale),
        "change": exact(change, scale),
        "after": exact(before + change, scale),
        "terms": list(terms),
    }


def _points(facts: Facts, stream: Stream, outcome: Outcome, participant: int, version: Version) -> int:
    """The points of a participant after a replay; what he begins with before he is on the ladder."""
    number = stream.numbers.get(facts.person_of(participant))
    if number is not None and outcome.seen[number]:
        return outcome.points[number]
    return start_of(facts.name_of(participant), version, outcome.carried)


def _everybody(
    facts: Facts,
    stream: Stream,
    outcome: Outcome,
    row: int,
    version: Version | None,
    counted_players: dict[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """All participants by place; those who do not count with a change of 0 and, if it is their own, the reason."""
    found = []
    first = facts.start[row]
    for p in sorted(range(first, first + facts.count[row]), key=lambda p: (facts.place[p], facts.name_of(p))):
        name = facts.name_of(p)
        entry = counted_players.get(name)
        if entry is None:
            points = _points(facts, stream, outcome, p, version or newest(stream.versions))
            entry = _explained(name, points, 0, stream.rule.scale, [])
            if version is not None and (reason := why_left_out(facts, row, p, version.ruleset)):
                entry["why_not"] = reason
        found.append({**entry, "place": facts.place[p]})
    return found
