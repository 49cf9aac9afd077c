"""Leagues as they stand: what they wait for, which games are played, the table, and who won."""

from datetime import datetime

from ratings_ledger.ledger.errors import LedgerError, Unknown
from ratings_ledger.ledger.events.revisions import live_game
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log, read_live
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.ledger.validation.leagues import PLAYERS, League, known_league, league_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.answers_recorded import AllLeagues, LeagueGame, LeagueRow, LeagueState
from ratings_ledger.projections.queries.coordinates import moment
from ratings_ledger.projections.queries.standings import Ranking, standing_row
from ratings_ledger.projections.queries.survey import Survey
from ratings_ledger.projections.replay.ladders import parse_name


def league_state(seen: Survey, name: str) -> LeagueState:
    """The live league of this name. Raises `LedgerError` (league-unknown)."""
    log, current = Log(seen.connection, seen.facts.position), identities(seen.connection, seen.facts.position).current
    there = _known(log, name)
    games = tuple(
        LeagueGame(game_id, tuple(map(current, seats)), _played(log, game_id, seen.coordinates.until))
        for game_id, seats in there.games.items()
    )
    found = _table(seen, there)
    rows = () if found is None else tuple(standing_row(row, found.scale) for row in found.rows)
    state = _state(there, sum(game.played is not None for game in games))
    return LeagueState(
        name, there.game, there.size, there.version, state,
        tuple(row.player for row in rows if row.rank == 1 and state == "finished"),
        None if there.scheduled is None else there.scheduled.data["seed"],
        tuple(map(current, there.players)), games, rows,
        ladder=None if found is None else found.ladder, failed=tuple(seen.failures), times=seen.times,
    )  # fmt: skip


def ladder_named(seen: Survey, name: str) -> str:
    """The ladder that has the table of the league of this name; or the name itself, if it is a ruleset's.

    Raises `LedgerError` (league-unknown), `Unknown` for a league that no ruleset scores.
    """
    log = Log(seen.connection, seen.facts.position)
    if league_of(log, name) is None and (name in seen.facts.rulesets or name in seen.facts.unusable):
        return name
    there = _known(log, name)
    scoring = _ladders_scoring(seen.facts, there)
    if not scoring:
        raise Unknown(None, f"no ruleset scores leagues of {there.game}; see: ratings rules list")
    return scoring[-1]


def _known(log: Log, name: str) -> League:
    try:
        return known_league(log, name)
    except Refused as problem:
        raise LedgerError(f"{problem.code}: {problem.message}", problem.code) from None


def _played(log: Log, game_id: str, until: datetime | None) -> datetime | None:
    """When a game ended, None if it is open: not played until then, or voided."""
    game = live_game(log.about(f"game:{game_id}"))
    ended = None if game is None or game.voided else moment(game.occurred_at)
    return None if ended is None or (until is not None and ended > until) else ended


def _state(there: League, played: int) -> str:
    """What a league waits for."""
    if there.scheduled is None:
        return "no schedule" if len(there.players) == PLAYERS else f"{len(there.players)} of {PLAYERS} players"
    return "finished" if played == len(there.games) else f"{played} of {len(there.games)} games"


def _ladders_scoring(facts: Facts, there: League) -> list[str]:
    """The ladders that score a league, by usable rulesets."""
    found = []
    for ruleset_id, versions in facts.rulesets.items():
        ruleset = versions[0].ruleset
        usable = ruleset_id not in facts.unusable
        if usable and ruleset.partition.by == ["league"] and there.game in ruleset.scope.game:
            found.append(f"{ruleset_id}/{there.name}")
    return found


def _table(seen: Survey, there: League) -> Ranking | None:
    """The standings of a league's ladder; None if no ruleset scores it, or it cannot be replayed, which is noted."""
    found = None
    for ladder in _ladders_scoring(seen.facts, there):
        with seen.noting():
            found = seen.ladders(parse_name(ladder).ruleset_id).standings(ladder)
    return found


def all_leagues(seen: Survey) -> AllLeagues:
    """The live leagues, by name."""
    rows = []
    created = read_live(seen.connection, until=seen.facts.position, type_name="league.created")
    for name in sorted(event.data["league"] for event in created):
        one = league_state(seen, name)
        played = sum(game.played is not None for game in one.games)
        rows.append(
            LeagueRow(name, one.game, one.players_per_game, len(one.players), len(one.games), played, one.state,
                      one.winners)
        )  # fmt: skip
    return AllLeagues(tuple(rows), failed=tuple(seen.failures), times=seen.times)
