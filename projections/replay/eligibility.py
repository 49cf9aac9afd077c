"""Whether a ruleset counts a game and which of its participants, and if not, why not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import ABORTED, NONE, UNRATED, Cell, Facts
from ratings_ledger.projections.replay.containment import check
from ratings_ledger.projections.rulesets.versions import Version, in_force


def why_not_eligible(facts: Facts, row: int, ruleset: Ruleset) -> str | None:
    """Why the ruleset does not score the game at all, or None."""
    return "the game is voided" if row in facts.voided else why_cell_not_eligible(facts, facts.cell_of(row), ruleset)


def why_cell_not_eligible(facts: Facts, cell: Cell, ruleset: Ruleset) -> str | None:
    """Why the ruleset does not score the live games of a cell at all, or None."""
    scope = ruleset.scope
    game, kind = facts.texts[cell.game], facts.texts[cell.kind]
    if game not in scope.game:
        return f"{ruleset.id} scores games of {', '.join(scope.game)}, this is {game}"
    if reason := why_not_of_kind(ruleset, kind):
        return reason
    if cell.flags & ABORTED:
        return "the game was ended by agreement (aborted)"
    if cell.flags & UNRATED:
        return "the game was not rated"
    group = None if cell.group == NONE else facts.texts[cell.group]
    if group in scope.exclude_group:
        return f"{ruleset.name} leaves out the group {group}"
    return why_not_of_size(ruleset, cell.seats)


def why_not_of_kind(ruleset: Ruleset, kind: str) -> str | None:
    """Return why the ruleset scores no games of a kind, or None."""
    kinds = ruleset.scope.kind
    return None if kind in kinds else f"{ruleset.name} scores games of kind {', '.join(kinds)}, this is of kind {kind}"


def why_not_of_size(ruleset: Ruleset, seats: int) -> str | None:
    """Return why the ruleset scores no games with so many seats, or None."""
    least, most = ruleset.scope.players_min, ruleset.scope.players_max
    if least <= seats and (most is None or seats <= most):
        return None
    players = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
    return f"{ruleset.name} scores games of {players} players, this has {seats}"


def why_left_out(facts: Facts, row: int, participant: int, version: Version) -> str | None:
    """Why a participant (an index into the participants' arrays) does not count although their game may, or None."""
    ruleset = version.ruleset
    status = STATUSES[facts.status[participant]]
    if status in ruleset.scope.exclude_status:
        return f"{ruleset.name} leaves out players with the status {status}"
    if (facts.replaced[participant] or status == "substitute") and (
        why := _why_seat_left_out(status, version.params.substitution)
    ):
        return f"{ruleset.name} {why}"
    if ruleset.scope.exclude_accounts:
        account = facts.account(facts.person_of(participant), facts.occurred_at[row])
        if account in ruleset.scope.exclude_accounts:
            return f"{ruleset.name} leaves out players with a {account} account"
    return None


def _why_seat_left_out(status: str, substitution: str) -> str | None:
    """Why a player whose seat changed hands does not count, or None."""
    if substitution == "none":
        return "counts neither player of a seat that changed hands"
    if substitution == "leaver" and status == "substitute":
        return "counts who left a seat, not his substitute"
    if substitution == "substitute" and status != "substitute":
        return "counts the substitute of a seat, not who left it"
    return None


def counted(facts: Facts, row: int, version: Version) -> list[int]:
    """The counted participants of a game in the order of their ids, as indices into the participants' arrays."""
    participants = sorted(range(facts.start[row], facts.start[row] + facts.count[row]), key=facts.name_of)
    scope = version.ruleset.scope
    if not (scope.exclude_status or scope.exclude_accounts or version.params.substitution != "both"):
        return participants
    return [p for p in participants if why_left_out(facts, row, p, version) is None]


def needs_a_look(version: Version) -> bool:
    """Whether the version may leave out an eligible game that has enough counted participants, all different people."""
    seasonal = "season" in version.ruleset.partition.by and getattr(version.params, "season_months", [])
    return version.rule.check is not None or bool(seasonal)


def why_not_scored(facts: Facts, row: int, version: Version, participants: Sequence[int]) -> str | None:
    """Why the rule does not score an eligible game with these counted participants, or None.

    Raises `RuleFailure`.
    """
    if len(participants) < version.rule.counted_min:
        return "fewer than two counted players" if version.rule.counted_min == 2 else "nobody who took part counts"
    if facts.renamed and len({facts.person_of(p) for p in participants}) < len(participants):
        return "one person takes part under two ids"
    if reason := why_out_of_season(facts, row, version):
        return reason
    if version.rule.check is None:
        return None
    columns = [facts.column(name, row, participants) for name in version.rule.columns]
    return check(version, version.ruleset.id, row, len(participants), columns)


def why_not_counted(
    facts: Facts, row: int, versions: Sequence[Version]
) -> tuple[Version | None, list[int], str | None]:
    """The version that scores a game, its counted participants, and why the game does not count after all, or None."""
    version = in_force(versions, scored_at(facts, row, versions))
    if version is None:
        first = min((v.ruleset.effective_from for v in versions if v.ruleset.effective_from), default=None)
        since = f" (the first from {first})" if first else ""
        return None, [], f"no version of {versions[0].ruleset.id} was in force then{since}"
    if reason := why_not_eligible(facts, row, version.ruleset):
        return version, [], reason
    participants = counted(facts, row, version)
    return version, participants, why_not_scored(facts, row, version, participants)


NEVER = 2**63 - 1
_SEASON = re.compile(r"(\d{4})-([1-9]\d?)", re.ASCII)


def why_out_of_season(facts: Facts, row: int, version: Version) -> str | None:
    """Why a game is dated outside its season, or None; `season_months` says when the seasons of a year begin."""
    starts = getattr(version.params, "season_months", [])
    season = _SEASON.fullmatch(facts.label("season", row) or "")
    if season is None or "season" not in version.ruleset.partition.by or int(season[2]) > len(starts):
        return None
    zone = version.ruleset.time_zone
    local = local_time(facts.occurred_at[row], zone)
    year, first, last = int(season[1]), starts[int(season[2]) - 1], [*starts, 13][int(season[2])] - 1
    if local.year == year and first <= local.month <= last:
        return None
    months = f"{year}-{first:02d} to {year}-{last:02d}"
    return f"{local.date()} is not in the season {season[0]}, which runs from {months} ({zone})"


def league_starts(facts: Facts, versions: Sequence[Version]) -> dict[int, int]:
    """When each league (by the number of its label) began: when it was created, otherwise at its first game.

    Only games that the versions of a ruleset may count matter, and leagues of the games that they score.
    """
    positions = tuple(version.position for version in versions)
    if positions not in facts.league_starts:
        facts.league_starts[positions] = _league_starts(facts, versions)
    return facts.league_starts[positions]


def _league_starts(facts: Facts, versions: Sequence[Version]) -> dict[int, int]:
    scopes = [version.ruleset.scope for version in versions]
    slugs = {facts.text_numbers.get(name, NONE - 1) for scope in scopes for name in scope.game}
    kinds = {facts.text_numbers.get(name, NONE - 1) for scope in scopes for name in scope.kind}
    leagues = [
        cell.league if not cell.flags & (ABORTED | UNRATED) and cell.kind in kinds and cell.game in slugs else NONE
        for cell in facts.cells
    ]
    return _first_games(facts, leagues) | {
        league.league: league.occurred_at for league in facts.leagues if league.game in slugs
    }


def _first_games(facts: Facts, leagues: list[int]) -> dict[int, int]:
    """When each league's first game that is not voided was played, given the leagues of the cells, or NONE."""
    if all(league == NONE for league in leagues):
        return {}
    if facts.unchecked is not None:
        facts.check()
    league = np.array(leagues)[arrays.as_numpy(facts.cell)]
    league[list(facts.voided)] = NONE
    first = np.full(len(facts.texts) + 1, NEVER)  # NONE's are at the end
    np.minimum.at(first, league, arrays.as_numpy(facts.occurred_at))
    return {int(league): int(first[league]) for league in np.flatnonzero(first[:-1] != NEVER)}


def scored_at(facts: Facts, row: int, versions: Sequence[Version]) -> int:
    """The instant whose version scores a game: its end, or the start of its league if the rulesets freeze."""
    played: int = facts.occurred_at[row]
    if versions[0].ruleset.freeze == "none":
        return played
    return league_starts(facts, versions).get(facts.cell_of(row).league, played)
