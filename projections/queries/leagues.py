"""Load leagues with their state, schedule, table and winners, and the opponents whom an entrant has not met yet."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import LedgerError, Unknown
from ratings_ledger.ledger.events.revisions import apply_revisions
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import Log, read_known_events, read_live, read_records
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.ledger.validation.leagues import PLAYERS_PER_LEAGUE, League, find_league, require_league
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import TimeFormat, to_datetime
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.results import HIDDEN, Answer, Result, RowSequence
from ratings_ledger.projections.queries.standings import Standing, build_standing
from ratings_ledger.projections.queries.survey import Survey
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.versions import Version, list_games, split_ladder_name


@dataclass(frozen=True, slots=True)
class LeagueGame(Result):
    """A game of a league's schedule: its players by seat, and when it was played, None if it is open or voided."""

    game_id: str
    seats: tuple[str, ...]
    played: datetime | None


@dataclass(frozen=True, slots=True)
class LeagueState(Answer):
    """A league: its state and winners, its players in the order of subscription, its schedule and its table.

    `version` is the version of the game. `ladder` is the ladder of the table, None without a table. `failed` has the
    reason for each ladder that cannot be replayed.
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
    """A league with the counts of its players, games and played games."""

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
    """The leagues by name; `failed` has the reason for each table that cannot be replayed."""

    rows: tuple[LeagueRow, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Entrant(Result):
    """A player on the ladders of a ruleset, with their league id (LID)."""

    lid: int | None
    player: str


@dataclass(frozen=True, slots=True)
class UnmetOpponents(Answer, RowSequence[Entrant]):
    """The opponents whom a player has not met yet on a ladder, out of `opponent_count` opponents.

    `has_ids` tells whether players have league ids.
    """

    ladder: str
    player: str
    lid: int | None
    rows: tuple[Entrant, ...]
    opponent_count: int = field(default=0, metadata=HIDDEN, kw_only=True)
    has_ids: bool = field(default=False, metadata=HIDDEN, kw_only=True)


def load_league(survey: Survey, name: str) -> LeagueState:
    """Return the live league of this name. Raises `LedgerError` (league-unknown)."""
    position = survey.facts.position
    log, current = Log(survey.connection, position), read_identities(survey.connection, position).current
    league = _require_league(log, name)
    games = tuple(
        LeagueGame(
            game_id, tuple(map(current, seats)), _find_end(log, league, game_id, survey.coordinates.as_of_datetime)
        )
        for game_id, seats in league.games.items()
    )
    table = _build_table(survey, league)
    rows = () if table is None else tuple(build_standing(row, table.scale, table.visible_states) for row in table.rows)
    state = _describe_state(league, sum(game.played is not None for game in games))
    return LeagueState(
        league=name,
        game=league.game,
        players_per_game=league.players_per_game,
        version=league.version,
        state=state,
        winners=tuple(row.player for row in rows if row.rank == 1 and state == "finished"),
        seed=None if league.schedule_event is None else league.schedule_event.data["seed"],
        players=tuple(map(current, league.players)),
        games=games,
        table=rows,
        ladder=None if table is None else table.ladder,
        failed=tuple(survey.failures),
        times=survey.times,
    )


def find_league_ladder(survey: Survey, name: str) -> str:
    """Return the ladder of a league's table, or the name itself if it is not a league but the id of a ruleset.

    Raises `LedgerError` (league-unknown), `Unknown` for a league that no usable ruleset scores.
    """
    log = Log(survey.connection, survey.facts.position)
    if find_league(log, name) is None and (name in survey.facts.rulesets or name in survey.facts.unusable):
        return name
    league = _require_league(log, name)
    ladders = _list_league_ladders(survey.facts, league)
    if not ladders:
        message = f"no usable ruleset scores leagues of {league.game}; publish one with: ratings rules publish FILE"
        raise Unknown(None, message)
    return ladders[-1]


def _require_league(log: Log, name: str) -> League:
    try:
        return require_league(log, name)
    except Refused as problem:
        raise LedgerError(f"{problem.code}: {problem.message}", problem.code) from None


def _find_end(log: Log, league: League, game_id: str, until: datetime | None) -> datetime | None:
    """Return the time at which a game of a league ended; None if it was not played by `until`.

    A voided game, or a game that is not recorded for the league, has not been played.
    """
    game = apply_revisions(log.about(f"game:{game_id}"))
    is_played = game is not None and not game.voided and game.data.get("league") == league.name
    end = to_datetime(game.occurred_at) if game is not None and is_played else None
    return None if end is None or (until is not None and end > until) else end


def _describe_state(league: League, played_count: int) -> str:
    """Describe the state of a league: finished, or the progress towards its next step."""
    if league.schedule_event is None:
        return (
            "no schedule"
            if len(league.players) == PLAYERS_PER_LEAGUE
            else f"{len(league.players)} of {PLAYERS_PER_LEAGUE} players"
        )
    return "finished" if played_count == len(league.games) else f"{played_count} of {len(league.games)} games"


def _list_league_ladders(facts: Facts, league: League) -> list[str]:
    """Return a league's ladder for each usable ruleset that scores its game on one ladder per league."""
    ladders = []
    for ruleset_id, versions in facts.rulesets.items():
        ruleset = versions[0].ruleset
        is_usable = ruleset_id not in facts.unusable
        if is_usable and ruleset.partition.by == ["league"] and league.game in list_games(versions):
            ladders.append(f"{ruleset_id}/{league.name}")
    return ladders


def _build_table(survey: Survey, league: League) -> Ranking | None:
    """Return the standings of a league's last ladder that can be replayed, None without one.

    The survey records each failed replay.
    """
    table = None
    for ladder in _list_league_ladders(survey.facts, league):
        with survey.collect_failure():
            table = survey.ladders(ladder).standings(ladder)
    return table


def load_leagues(survey: Survey) -> AllLeagues:
    """Return the live leagues, by name."""
    rows = []
    events = read_live(survey.connection, until=survey.facts.position, type_name="league.created")
    for name in sorted(event.data["league"] for event in events):
        league = load_league(survey, name)
        rows.append(
            LeagueRow(
                league=name,
                game=league.game,
                players_per_game=league.players_per_game,
                players=len(league.players),
                games=len(league.games),
                played=sum(game.played is not None for game in league.games),
                state=league.state,
                winners=league.winners,
            )
        )
    return AllLeagues(tuple(rows), failed=tuple(survey.failures), times=survey.times)


def assign_league_ids(connection: Connection, facts: Facts, versions: list[Version]) -> dict[str, int]:
    """Return the league id of each player (by current id): 1, 2, 3 ... in order of first appearance in the log.

    League ids are permanent: voiding or correcting a game changes no league id, and no league id is assigned twice. If
    players are merged, the smallest of their league ids counts.
    """
    games = list_games(versions)
    kinds = {kind for version in versions for kind in version.ruleset.scope.kind}
    by_recorded_id: dict[str, int] = {}
    for page in read_records(connection, until=facts.position):
        for position, record in page:
            data = _read_game(position, record)
            if data is not None and data["game"] in games and data.get("kind", "placing") in kinds:
                for participant in data["participants"]:
                    by_recorded_id.setdefault(participant["player"], len(by_recorded_id) + 1)
    by_player: dict[str, int] = {}
    for recorded_id, number in by_recorded_id.items():
        by_player.setdefault(facts.current(recorded_id), number)
    return by_player


def _read_game(position: int, record: str) -> dict[str, Any] | None:
    """Return the game in a record; None for an event without one."""
    event = next(read_known_events([(position, record)]), None) if '"participants"' in record else None
    if event is None:
        return None
    game = event.data if event.type == "game.recorded" else event.data.get("game")
    return game if isinstance(game, dict) else None  # `league.created` has the name of a game


def find_unmet(connection: Connection, ladders: Ladders, ladder: str, player: str, times: TimeFormat) -> UnmetOpponents:
    """Return the entrants whom a player has not met yet in a counted game of a ladder, sorted by id.

    On a league's ladder, the entrants are the subscribers of the league, without substitutes. Raises `Unknown` for a
    player who has neither subscribed nor played.
    """
    stream = ladders.stream(ladder)
    entrants = _list_subscribers(connection, ladders.facts, stream) or {*stream.names}
    if player not in entrants and player not in stream.names:
        is_by_league = stream.versions[0].ruleset.partition.by == ["league"]
        action = f"neither played on {ladder} nor joined its league" if is_by_league else f"not played on {ladder}"
        raise Unknown(None, f"{quote(player)} has {action}; see: ratings standings {shlex.quote(ladder)}")
    opponents = entrants - {player}
    has_ids = any("b5" in version.ruleset.scope.kind for version in stream.versions)
    ids = assign_league_ids(connection, ladders.facts, stream.versions) if has_ids else {}
    rows = tuple(Entrant(ids.get(name), name) for name in sorted(opponents - _list_met(stream, player)))
    return UnmetOpponents(
        ladder, player, ids.get(player), rows, opponent_count=len(opponents), has_ids=has_ids, times=times
    )


def _list_subscribers(connection: Connection, facts: Facts, stream: Stream) -> set[str]:
    """Return the current ids of the subscribers of a ladder's league; empty if the ladder does not belong to one."""
    ruleset = stream.versions[0].ruleset
    names = split_ladder_name(stream.ladder, ruleset).values() if ruleset.partition.by == ["league"] else ()
    leagues = (find_league(Log(connection, facts.position), name) for name in names)
    return {
        facts.current(player)
        for league in leagues
        if league is not None and league.game in list_games(stream.versions)
        for player in league.players
    }


def _list_met(stream: Stream, player: str) -> set[str]:
    """Return the players who were in a counted game of a ladder together with a player."""
    if player not in stream.names:
        return set()
    number, met_numbers = stream.names.index(player), set[int]()
    for game in range(len(stream.rows)):
        participants = stream.players[stream.offsets[game] : stream.offsets[game + 1]]
        if number in participants:
            met_numbers.update(participants)
    return {stream.names[met_number] for met_number in met_numbers}
