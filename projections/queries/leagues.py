"""Leagues: what they wait for, which games are played, the table, who won, and whom an entrant has not met yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import LedgerError, Unknown
from ratings_ledger.ledger.events.revisions import live_game
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import Log, read_known_events, read_live, read_records
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.ledger.validation.leagues import PLAYERS, League, find_league, require_league
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import Times, moment
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.queries.results import HIDDEN, Answer, Result, RowSequence
from ratings_ledger.projections.queries.standings import Standing, build_standing
from ratings_ledger.projections.queries.survey import Survey
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.rulesets.versions import Version, list_games


@dataclass(frozen=True, slots=True)
class LeagueGame(Result):
    """A game of a league's schedule: the players by seat, and when it was played, None if it is open."""

    game_id: str
    seats: tuple[str, ...]
    played: datetime | None


@dataclass(frozen=True, slots=True)
class LeagueState(Answer):
    """A league: what it waits for, who won, its players as they subscribed, its schedule and its table.

    `ladder` is that of its table, None if no ruleset scores it; `failed` tells why it cannot be replayed, if so.
    """

    league: str
    game: str
    players_per_game: int
    version: str | None
    state: str
    winners: tuple[str, ...]
    seed: str | None
    players: tuple[str, ...]
    games: tuple[LeagueGame, ...]
    table: tuple[Standing, ...]
    ladder: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LeagueRow(Result):
    """A league, with how many players, games and played games it has."""

    league: str
    game: str
    players_per_game: int
    players: int
    games: int
    played: int
    state: str
    winners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllLeagues(Answer, RowSequence[LeagueRow]):
    """The leagues by name; `failed` tells of each table that cannot be replayed why."""

    rows: tuple[LeagueRow, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Entrant(Result):
    """Somebody who entered a ruleset's ladders, with their league id (LID)."""

    lid: int | None
    player: str


@dataclass(frozen=True, slots=True)
class Unmet(Answer, RowSequence[Entrant]):
    """Whom a player has not met yet on a ladder, of so many `others`; `has_ids` where people know their league ids."""

    ladder: str
    player: str
    lid: int | None
    rows: tuple[Entrant, ...]
    others: int = field(default=0, metadata=HIDDEN, kw_only=True)
    has_ids: bool = field(default=False, metadata=HIDDEN, kw_only=True)


def league_state(seen: Survey, name: str) -> LeagueState:
    """Return the live league of this name. Raises `LedgerError` (league-unknown)."""
    log, current = Log(seen.connection, seen.facts.position), identities(seen.connection, seen.facts.position).current
    there = _known(log, name)
    games = tuple(
        LeagueGame(game_id, tuple(map(current, seats)), _played(log, game_id, seen.coordinates.until))
        for game_id, seats in there.games.items()
    )
    found = _table(seen, there)
    rows = () if found is None else tuple(build_standing(row, found.scale, found.shown) for row in found.rows)
    state = _state(there, sum(game.played is not None for game in games))
    return LeagueState(
        name,
        there.game,
        there.size,
        there.version,
        state,
        tuple(row.player for row in rows if row.rank == 1 and state == "finished"),
        None if there.scheduled is None else there.scheduled.data["seed"],
        tuple(map(current, there.players)),
        games,
        rows,
        ladder=None if found is None else found.ladder,
        failed=tuple(seen.failures),
        times=seen.times,
    )


def ladder_named(seen: Survey, name: str) -> str:
    """Return the ladder that has the table of the league of this name; or the name itself, if it is a ruleset's.

    Raises `LedgerError` (league-unknown), `Unknown` for a league that no ruleset scores.
    """
    log = Log(seen.connection, seen.facts.position)
    if find_league(log, name) is None and (name in seen.facts.rulesets or name in seen.facts.unusable):
        return name
    there = _known(log, name)
    scoring = _ladders_scoring(seen.facts, there)
    if not scoring:
        raise Unknown(None, f"no ruleset scores leagues of {there.game}; see: ratings rules list")
    return scoring[-1]


def _known(log: Log, name: str) -> League:
    try:
        return require_league(log, name)
    except Refused as problem:
        raise LedgerError(f"{problem.code}: {problem.message}", problem.code) from None


def _played(log: Log, game_id: str, until: datetime | None) -> datetime | None:
    """Return when a game ended, None if it is open: not played until then, or voided."""
    game = live_game(log.about(f"game:{game_id}"))
    ended = None if game is None or game.voided else moment(game.occurred_at)
    return None if ended is None or (until is not None and ended > until) else ended


def _state(there: League, played: int) -> str:
    """Return what a league waits for."""
    if there.scheduled is None:
        return "no schedule" if len(there.players) == PLAYERS else f"{len(there.players)} of {PLAYERS} players"
    return "finished" if played == len(there.games) else f"{played} of {len(there.games)} games"


def _ladders_scoring(facts: Facts, there: League) -> list[str]:
    """Return the ladders that score a league, by usable rulesets."""
    found = []
    for ruleset_id, versions in facts.rulesets.items():
        ruleset = versions[0].ruleset
        usable = ruleset_id not in facts.unusable
        if usable and ruleset.partition.by == ["league"] and there.game in ruleset.scope.game:
            found.append(f"{ruleset_id}/{there.name}")
    return found


def _table(seen: Survey, there: League) -> Ranking | None:
    """Return the standings of a league's ladder; None if no ruleset scores it, or it cannot be replayed, which is
    noted.
    """
    found = None
    for ladder in _ladders_scoring(seen.facts, there):
        with seen.collect_failure():
            found = seen.ladders(parse_name(ladder).ruleset_id).standings(ladder)
    return found


def all_leagues(seen: Survey) -> AllLeagues:
    """Return the live leagues, by name."""
    rows = []
    created = read_live(seen.connection, until=seen.facts.position, type_name="league.created")
    for name in sorted(event.data["league"] for event in created):
        one = league_state(seen, name)
        played = sum(game.played is not None for game in one.games)
        rows.append(
            LeagueRow(
                name, one.game, one.players_per_game, len(one.players), len(one.games), played, one.state, one.winners
            )
        )
    return AllLeagues(tuple(rows), failed=tuple(seen.failures), times=seen.times)


def league_ids(connection: Connection, facts: Facts, versions: list[Version]) -> dict[str, int]:
    """Return the league ids by player (current id): 1, 2, 3 ... in the order in which the log first names people.

    They are permanent: a game that is voided or corrected later keeps the ids it gave, and none is given twice. If
    somebody has several ids, the first counts.
    """
    games = list_games(versions)
    kinds = {kind for version in versions for kind in version.ruleset.scope.kind}
    found: dict[str, int] = {}
    for page in read_records(connection, until=facts.position):
        for position, record in page:
            data = _game(position, record)
            if data is not None and data["game"] in games and data.get("kind", "placing") in kinds:
                for participant in data["participants"]:
                    found.setdefault(participant["player"], len(found) + 1)
    people: dict[str, int] = {}
    for player, number in found.items():
        people.setdefault(facts.current(player), number)
    return people


def _game(position: int, record: str) -> dict[str, Any] | None:
    """Return the game in a record, as it was then; None for other events."""
    event = next(read_known_events([(position, record)]), None) if '"participants"' in record else None
    if event is None:
        return None
    return event.data if event.type == "game.recorded" else event.data.get("game")


def unmet(connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times) -> Unmet:
    """Return the players of a ladder with whom somebody has no counted game on it yet, by id.

    In a league they are those who subscribed, whether they have played or not, and no substitutes. Raises `Unknown` for
    somebody who has neither subscribed nor played.
    """
    stream = ladders.stream(ladder)
    everybody = _subscribers(connection, ladders.facts, stream) or {*stream.names}
    if player not in everybody and player not in stream.names:
        raise Unknown(None, f"{quote(player)} has no game on {ladder}")
    others = everybody - {player}
    has_ids = any("b5" in version.ruleset.scope.kind for version in stream.versions)
    ids = league_ids(connection, ladders.facts, stream.versions) if has_ids else {}
    rows = tuple(Entrant(ids.get(name), name) for name in sorted(others - _met(stream, player)))
    return Unmet(ladder, player, ids.get(player), rows, others=len(others), has_ids=has_ids, times=times)


def _subscribers(connection: Connection, facts: Facts, stream: Stream) -> set[str]:
    """Return who subscribed to the league that a ladder is of (current ids); nobody if it is of none."""
    ruleset = stream.versions[0].ruleset
    values = parse_name(stream.ladder).values if ruleset.partition.by == ["league"] else ()
    found = [find_league(Log(connection, facts.position), name) for name in values]
    leagues = [league for league in found if league is not None and league.game in ruleset.scope.game]
    return {facts.current(player) for league in leagues for player in league.players}


def _met(stream: Stream, player: str) -> set[str]:
    """Return who was in a counted game of a ladder with somebody."""
    if player not in stream.names:
        return set()
    number, met = stream.names.index(player), set[int]()
    for game in range(len(stream.row)):
        there = stream.players[stream.offsets[game] : stream.offsets[game + 1]]
        if number in there:
            met.update(there)
    return {stream.names[other] for other in met}
