"""Decide which games a ruleset counts, and which of their participants; explain why it does not count others.

Each condition is a function that returns the reason if the condition fails, else None. The loop over all games,
`select_slots`, gets masks of their results for every cell, kind of seat, and account tier. Other conditions are written
a second time, for arrays: whether a game is voided, whether enough different persons are left in it, and whether a
ruleset can read their numbers and teams.
"""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import INTEGER_MAX
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import MISSING, NUMBERS, PLAYERS_MAX, Rule, decimal
from ratings_ledger.projections.facts.columns import (
    ABORTED,
    NONE,
    TOO_FINE,
    TOO_LARGE,
    UNRATED,
    Cell,
    ClubGames,
    Column,
    Facts,
)
from ratings_ledger.projections.replay.rule_calls import RuleFailure, check_game
from ratings_ledger.projections.replay.rule_inputs import GameSlots, find_battles, read_columns, read_optional_column
from ratings_ledger.projections.rulesets.versions import SCORES, Version, in_force

NOT_RATED = "the game was not rated"


def explain_ineligible(facts: Facts, row: int, ruleset: Ruleset) -> str | None:
    """Return the reason why the ruleset does not score the game, or None if the game is eligible."""
    return "the game is voided" if row in facts.voided else explain_ineligible_cell(facts, facts.cell_of(row), ruleset)


def explain_ineligible_cell(facts: Facts, cell: Cell, ruleset: Ruleset) -> str | None:
    """Return the reason why the ruleset does not score the live games of a cell, or None if they are eligible."""
    scope = ruleset.scope
    game, kind = facts.texts[cell.game], facts.texts[cell.kind]
    if game not in scope.game:
        return f"{ruleset.id} scores only {', '.join(scope.game)}; this game is {game}"
    if reason := explain_kind_mismatch(ruleset, kind):
        return reason
    if cell.flags & ABORTED:
        return "the game was ended by agreement (aborted)"
    if cell.flags & UNRATED:
        return NOT_RATED
    group = None if cell.group == NONE else facts.texts[cell.group]
    if group in scope.exclude_group:
        return f"{ruleset.name} leaves out the group {group}"
    return explain_size_mismatch(ruleset, cell.seats)


def explain_kind_mismatch(ruleset: Ruleset, kind: str) -> str | None:
    """Return the reason why the ruleset scores no games of a kind, or None if it scores them."""
    if kind in ruleset.scope.kind:
        return None
    return f"{ruleset.name} scores only games of kind {', '.join(ruleset.scope.kind)}; this one is of kind {kind}"


def explain_size_mismatch(ruleset: Ruleset, seats: int) -> str | None:
    """Return the reason why the ruleset scores no games with this number of seats, or None if it scores them."""
    players_min, players_max = ruleset.scope.players_min, ruleset.scope.players_max
    if players_min <= seats and (players_max is None or seats <= players_max):
        return None
    players = f"{players_min} to {players_max}"
    if players_max is None:
        players = f"{players_min} or more"
    elif players_min == players_max:
        players = f"{players_min}"
    return f"{ruleset.name} scores only games of {players} players; this one has {seats}"


# The number of kinds of seats in masks: for each status, one without and one with a substitute who took the seat over.
SEAT_KINDS = 2 * len(STATUSES)
# The account tiers. Players without an event about their account have the first tier.
ACCOUNT_TIERS = ("premium", "free")


def number_seat_kind(status: int, replaced: int) -> int:
    """Return the number of a kind of seat.

    `status` is the number of a status; `replaced` is 1 if a substitute took the seat over, else 0.
    """
    return status + replaced * len(STATUSES)


def explain_left_out(facts: Facts, row: int, participant: int, version: Version) -> str | None:
    """Return the reason why a participant of an eligible game does not count, or None.

    `participant` is an index into the arrays of participants.
    """
    kind = number_seat_kind(facts.status[participant], facts.replaced[participant])
    if (reason := explain_seat_left_out(kind, version)) is not None or not version.ruleset.scope.exclude_accounts:
        return reason
    return explain_tier_left_out(facts.account(facts.person_of(participant), facts.occurred_at[row]), version)


def explain_seat_left_out(kind: int, version: Version) -> str | None:
    """Return the reason why the participants in a kind of seat do not count, or None if they count."""
    replaced, number = divmod(kind, len(STATUSES))
    ruleset, status, substitution = version.ruleset, STATUSES[number], version.params.substitution
    if status in ruleset.scope.exclude_status:
        return f"{ruleset.name} leaves out players with the status {status}"
    if not replaced and status != "substitute":
        return None
    if substitution == "none":
        return f"{ruleset.name} counts neither player of a seat that changed hands"
    if substitution == "leaver" and status == "substitute":
        return f"{ruleset.name} counts the player who left a seat, not the substitute"
    if substitution == "substitute" and status != "substitute":
        return f"{ruleset.name} counts the substitute of a seat, not the player who left it"
    return None


def explain_tier_left_out(tier: str, version: Version) -> str | None:
    """Return the reason why participants of an account tier do not count, or None if they count."""
    if tier in version.ruleset.scope.exclude_accounts:
        return f"{version.ruleset.name} leaves out players with a {tier} account"
    return None


def build_seat_mask(versions: Sequence[Version]) -> Column:
    """Return a mask by version and kind of seat: 1 if the participants count."""
    pairs = ((version, kind) for version in versions for kind in range(SEAT_KINDS))
    return array("b", [explain_seat_left_out(kind, version) is None for version, kind in pairs])


def build_tier_mask(versions: Sequence[Version]) -> Column:
    """Return a mask by version and account tier: 1 if the participants count."""
    pairs = ((version, tier) for version in versions for tier in ACCOUNT_TIERS)
    return array("b", [explain_tier_left_out(tier, version) is None for version, tier in pairs])


def list_counted(facts: Facts, row: int, version: Version) -> list[int]:
    """Return the counted participants of a game, sorted by id, as indices into the arrays of participants."""
    participants = sorted(range(facts.start[row], facts.start[row] + facts.count[row]), key=facts.name_of)
    return [p for p in participants if explain_left_out(facts, row, p, version) is None]


def needs_check(version: Version) -> bool:
    """Tell whether the version checks games one by one, after counting their participants and reading their numbers."""
    checks_season = "season" in version.ruleset.partition.by and getattr(version.params, "season_months", [])
    return version.rule.check is not None or bool(checks_season)


class UnreadableGame(NamedTuple):
    """The reason why a ruleset cannot read a game, and the code with which an import refuses it."""

    code: str
    reason: str


def reads_numbers(version: Version) -> bool:
    """Tell whether the version reads scores or custom numbers, and so may refuse some of their values."""
    return bool(version.ruleset.numbers) or not SCORES.isdisjoint(version.rule.columns)


def rates_teams(rule: Rule) -> bool:
    """Tell whether a rule reads which participants are partners; other rules would score them as tied opponents."""
    return "team" in rule.columns


def can_be_unreadable(facts: Facts, version: Version) -> bool:
    """Tell whether the version may be unable to read some of these games. `explain_unreadable` decides for one game."""
    return reads_numbers(version) or (len(facts.optional.get("team", ())) > 0 and not rates_teams(version.rule))


def explain_unreadable(facts: Facts, row: int, version: Version, participants: Sequence[int]) -> UnreadableGame | None:
    """Return the reason why the ruleset cannot read a game's counted participants, or None if it can.

    It may be unable to read the sides, a score or a custom number.
    """
    ruleset = version.ruleset
    if not rates_teams(version.rule) and (reason := _explain_partners(facts, row, version, participants)):
        return UnreadableGame("no-teams", reason)
    for name, limits in ruleset.numbers.items():
        for participant, number in zip(participants, facts.column(f"{NUMBERS}{name}", row, participants), strict=True):
            if number == MISSING and limits.absent == "refuse":
                reason = f"{facts.name_of(participant)} has no {NUMBERS}{name}, which {ruleset.name} requires"
                return UnreadableGame("number-missing", reason)
            if number != MISSING and not limits.min <= number <= limits.max:
                owner = f"{NUMBERS}{name} of {facts.name_of(participant)}"
                reason = f"{owner} is {number}; {ruleset.name} accepts {limits.min} to {limits.max}"
                return UnreadableGame("number-out-of-range", reason)
    if SCORES.isdisjoint(version.rule.columns) or facts.label("kind", row) == "battle":
        return None
    for participant in participants:
        score, decimals = facts.recorded_score(participant)
        if decimals > ruleset.score_decimals and decimals != TOO_LARGE:
            name = facts.name_of(participant)
            value = "" if decimals == TOO_FINE else f" {decimal(score, 10**decimals, decimals)}"
            reason = (
                f"the score{value} of {name} has more decimals than {ruleset.name} allows (score_decimals = "
                f"{ruleset.score_decimals})"
            )
            return UnreadableGame("score-too-fine", reason)
        if decimals == TOO_LARGE or (
            score != MISSING and abs(score) * 10 ** (ruleset.score_decimals - decimals) > INTEGER_MAX
        ):
            name = facts.name_of(participant)
            unit = f"10^-{ruleset.score_decimals}, the last decimal that {ruleset.name} reads"
            reason = (
                f"the score of {name} is too large: it exceeds 2^53 - 1 units of "
                f"{'its last decimal' if decimals == TOO_LARGE else unit}"
            )
            return UnreadableGame("integer-too-large", reason)
    return None


def _explain_partners(facts: Facts, row: int, version: Version, participants: Sequence[int]) -> str | None:
    """Return a reason that names two partners, because the rule does not rate teams; None for a game without partners.

    Two players of one seat are not partners. Battles are ignored, because rules for battles read the sides.
    """
    if facts.label("kind", row) == "battle":
        return None
    first_by_team: dict[int, int] = {}
    for participant, team in zip(participants, facts.column("team", row, participants), strict=True):
        if team == MISSING or facts.replaced[participant]:
            continue
        if (partner := first_by_team.setdefault(team, participant)) != participant:
            partners = f"{facts.name_of(partner)} and {facts.name_of(participant)}"
            return f"{partners} are partners, and the rule {version.rule.id} does not rate teams"
    return None


def explain_not_scored(facts: Facts, row: int, version: Version, participants: Sequence[int]) -> str | None:
    """Return the reason why the rule does not score an eligible game with these counted participants, or None.

    Raises `RuleFailure`.
    """
    if len(participants) < (required := version.rule.counted_min):
        if required == 1:
            return "no participant is counted"
        return f"fewer than {'two' if required == 2 else required} counted players"
    if facts.renamed and len({facts.person_of(p) for p in participants}) < len(participants):
        return "one person takes part under two ids"
    if reason := explain_out_of_season(facts, row, version):
        return reason
    if can_be_unreadable(facts, version) and (unreadable := explain_unreadable(facts, row, version, participants)):
        return unreadable.reason
    if version.rule.check is None:
        return None
    reading = version.reading
    columns = [facts.column(name, row, participants, reading) for name in version.rule.columns]
    return check_game(version, version.ruleset.id, row, len(participants), columns)


class Eligibility(NamedTuple):
    """The decision whether a ruleset counts a game.

    version:      the version that decides; None if no version was in force
    participants: the counted participants, sorted by id, as indices into the arrays of participants; empty if the game
                  is not eligible
    reason:       the reason why the game does not count; None if it counts
    """

    version: Version | None
    participants: list[int]
    reason: str | None


def decide_eligibility(facts: Facts, row: int, versions: Sequence[Version]) -> Eligibility:
    """Decide whether the versions of a ruleset count a game. Raises `RuleFailure`."""
    version = in_force(versions, find_scoring_instant(facts, row, versions))
    if facts.club_games is not None:
        return _decide_for_clubs(facts, row, facts.club_games, version)
    if version is None:
        first_day = min((v.ruleset.effective_from for v in versions if v.ruleset.effective_from), default=None)
        return Eligibility(None, [], explain_no_version(versions[0].ruleset.id, first_day))
    if reason := explain_ineligible(facts, row, version.ruleset):
        return Eligibility(version, [], reason)
    participants = list_counted(facts, row, version)
    return Eligibility(version, participants, explain_not_scored(facts, row, version, participants))


def _decide_for_clubs(facts: Facts, row: int, games: ClubGames, version: Version | None) -> Eligibility:
    """Decide whether a game counts on a ladder of clubs; its participants are the clubs."""
    if reason := decide_eligibility(games.people, row, games.versions).reason:
        return Eligibility(version, [], reason)
    clubs = [*range(facts.start[row], facts.start[row] + facts.count[row])]
    return Eligibility(version, clubs, None if clubs else "no counted participant played for a club")


NEVER = 2**63 - 1  # an instant after all games
_SEASON = re.compile(r"(\d{4})-([1-9]\d?)", re.ASCII)


def explain_out_of_season(facts: Facts, row: int, version: Version) -> str | None:
    """Return a reason if a game is dated outside its season, else None. The param `season_months` sets the seasons."""
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


def find_league_starts(facts: Facts, versions: Sequence[Version]) -> dict[int, int]:
    """Return the instant at which each league began: its creation, or else its first game.

    Keys are the text numbers of league labels. Leagues of games outside the scope, and games that are voided, aborted
    or not rated, are ignored.
    """
    positions = tuple(version.position for version in versions)
    if positions not in facts.league_starts:
        facts.league_starts[positions] = _compute_league_starts(facts, versions)
    return facts.league_starts[positions]


def _compute_league_starts(facts: Facts, versions: Sequence[Version]) -> dict[int, int]:
    names = {name for version in versions for name in version.ruleset.scope.game}
    game_numbers = {facts.text_numbers.get(name) for name in names}
    return _find_first_games(facts, list_cell_leagues(facts, versions)) | {
        league.league: league.occurred_at for league in facts.leagues if league.game in game_numbers
    }


def list_cell_leagues(facts: Facts, versions: Sequence[Version]) -> list[int]:
    """Return, by cell, the league that may start with a game of the cell.

    The league is `NONE` for games without one, and for games that no version scores.
    """
    scopes = [version.ruleset.scope for version in versions]
    game_numbers = {facts.text_numbers.get(name) for scope in scopes for name in scope.game}
    kinds = {facts.text_numbers.get(name) for scope in scopes for name in scope.kind}
    return [
        cell.league
        if not cell.flags & (ABORTED | UNRATED) and cell.kind in kinds and cell.game in game_numbers
        else NONE
        for cell in facts.cells
    ]


def _find_first_games(facts: Facts, leagues: list[int]) -> dict[int, int]:
    """Return the instant of the first game of each league, without voided games.

    Args:
        leagues: the league of each cell, or `NONE`
    """
    if all(league == NONE for league in leagues):
        return {}
    if facts.pending_check is not None:
        facts.check()
    league = np.array(leagues)[arrays.as_numpy(facts.cell)]
    league[list(facts.voided)] = NONE
    first = np.full(len(facts.texts) + 1, NEVER)  # the last entry is for games without a league
    np.minimum.at(first, league, arrays.as_numpy(facts.occurred_at))
    return {int(league): int(first[league]) for league in np.flatnonzero(first[:-1] != NEVER)}


def explain_no_version(ruleset_id: str, first_day: str | None) -> str:
    """Return the reason why games before the first version of a ruleset do not count.

    `first_day` is the day from which the first version applies, or None if no version ever applies. The reason does not
    include the day of the game, because notes count the games with equal reasons.
    """
    if first_day is None:
        return f"{ruleset_id} has no version in force"
    return f"{ruleset_id} was not in force yet; its first version applies from {first_day}"


def find_scoring_instant(facts: Facts, row: int, versions: Sequence[Version]) -> int:
    """Return the instant that decides which version scores a game: the version in force at this instant.

    This is the end of the game or, if leagues keep the version of their start (`freeze`), the start of its league.
    """
    played: int = facts.occurred_at[row]
    if versions[0].ruleset.freeze == "none":
        return played
    return find_league_starts(facts, versions).get(facts.cell_of(row).league, played)


PART_GAMES = 250_000  # games per part; with two or more parts, two threads select in parallel


class SelectedGames(NamedTuple):
    """The selected games and their counted participants.

    row, version: by game, its row in the facts, and the index of the version that scores it
    offset, slot: the counted participants of game g, sorted by id, are `slot[offset[g]:offset[g + 1]]`
    """

    row: Column
    version: Column
    offset: Column
    slot: Column


def order_rows(facts: Facts, as_of: int | None = None, since: int | None = None) -> Column:
    """Return the rows of the games from `since` to `as_of`, both included, in replay order.

    Replay order is by time, then by first position. None sets no limit.
    """
    times = arrays.as_numpy(facts.occurred_at)
    is_within = np.ones(len(times), dtype=bool) if since is None else times >= since
    if as_of is not None:
        is_within &= times <= as_of
    rows = np.arange(len(times)) if is_within.all() else np.flatnonzero(is_within)
    row_times = times if len(rows) == len(times) else times[rows]
    if not (row_times[1:] >= row_times[:-1]).all():
        # Rows are in the order of their first positions, and sorting is stable.
        rows = rows[np.argsort(row_times, kind="stable")]
    return arrays.as_column(rows.astype(np.int64, copy=False))


# long, because it names every array of the compiled loop
def select_games(
    facts: Facts,
    versions: Sequence[Version],
    load_rows: Callable[[], Column],
    is_on_ladder: Callable[[Cell], bool],
    failures: dict[int, Exception],
) -> SelectedGames:
    """Return the games that a ruleset counts, in replay order.

    Args:
        facts: all games
        versions: the versions of the ruleset
        load_rows: returns the rows of the games to select from, in replay order; called only if any game may count
        is_on_ladder: tells whether the games of a cell are on a requested ladder
        failures: receives, by row, the error of each game at which the rule's check fails; these games are included
    """
    if facts.pending_check is not None:
        facts.check()
    cell_mask = _build_cell_mask(facts, versions, is_on_ladder)
    rows = load_rows() if any(cell_mask) else array("q")
    if not len(rows):
        return SelectedGames(array("q"), array("h"), array("q", [0]), array("i"))
    slots = sum(map(facts.count.__getitem__, rows)) if len(rows) < 1_000 else len(facts.player)
    buffers = [
        arrays.zeros("q", len(rows)),
        arrays.zeros("h", len(rows)),
        arrays.zeros("q", len(rows) + 1),
        arrays.zeros("i" if len(facts.player) < 2**31 else "q", slots),
    ]
    rows = _drop_voided(facts, rows)
    since, version_since = version_starts(versions)
    is_frozen = versions[0].ruleset.freeze != "none"
    starts = find_league_starts(facts, versions) if is_frozen else {}
    arguments = (
        facts.cell,
        facts.occurred_at,
        facts.start,
        facts.count,
        facts.player,
        facts.person,
        facts.status,
        facts.replaced,
        facts.id_ranks(),
        int(facts.renamed),
        array("q", since),
        array("h", version_since),
        # a game without a league, or of one without a start, does not count, so its instant may precede all versions
        array("q", [starts.get(cell.league, since[0]) for cell in facts.cells]),
        int(is_frozen),
        cell_mask,
        len(facts.cells),
        build_seat_mask(versions),
        SEAT_KINDS // 2,
        array("q", [version.rule.counted_min for version in versions]),
        build_tier_mask(versions),
        len(ACCOUNT_TIERS),
        *_list_account_changes(facts, versions),
    )
    is_compiled = compiling.is_worthwhile(len(rows))

    def select_into(part: Column, outputs: Sequence[Any]) -> int:
        games: int = compiling.run_loop(select_slots, part, *arguments, *outputs, as_compiled=is_compiled)
        return games

    runs_in_parts = is_compiled and len(rows) >= 2 * PART_GAMES
    games = _select_in_parts(facts, rows, select_into, buffers) if runs_in_parts else select_into(rows, buffers)
    facts.release_pages()
    row, version, offset, slot = (memoryview(column) for column in buffers)
    selected = SelectedGames(row[:games], version[:games], offset[: games + 1], slot[: offset[games]])
    return _drop_unscorable(facts, versions, selected, failures)


def _select_in_parts(
    facts: Facts, rows: Column, select_into: Callable[[Column, Sequence[Any]], int], buffers: Sequence[Any]
) -> int:
    """Select games part by part in two threads. Each part fills its own range of the buffers; the gaps are then closed.

    Memory pages of files are released after each part. Returns the number of selected games.
    """
    row, version, offset, slot = map(arrays.as_numpy, buffers)
    counts, ordered = arrays.as_numpy(facts.count), arrays.as_numpy(rows)
    games = slots = slots_from = 0
    waiting = deque[tuple[int, int, Any, Future[int]]]()
    with ThreadPoolExecutor(2) as threads:
        # the two rounds without a part drain the queue
        for first in (*range(0, len(rows), PART_GAMES), None, None):
            if first is not None:
                part = ordered[first : first + PART_GAMES]
                ends = np.empty(len(part) + 1, dtype=np.int64)
                outputs = (row[first:], version[first:], ends, slot[slots_from:])
                task = threads.submit(select_into, arrays.as_column(part), outputs)
                waiting.append((first, slots_from, ends, task))
                slots_from += int(counts[part].sum())
            if len(waiting) > 2 or (first is None and waiting):
                row_begin, slot_begin, ends, future = waiting.popleft()
                game_count = future.result()
                slot_count = int(ends[game_count])
                offset[games + 1 : games + 1 + game_count] = ends[1 : game_count + 1] + slots
                for column, target, source, length in (
                    (row, games, row_begin, game_count),
                    (version, games, row_begin, game_count),
                    (slot, slots, slot_begin, slot_count),
                ):
                    if target < source:
                        column[target : target + length] = column[source : source + length]
                games, slots = games + game_count, slots + slot_count
                facts.release_pages()
    return games


def _drop_voided(facts: Facts, rows: Column) -> Column:
    """Return the rows without voided games."""
    if not facts.voided:
        return rows
    is_live = np.ones(len(facts.cell), dtype=bool)
    is_live[list(facts.voided)] = False
    ordered = arrays.as_numpy(rows)
    return arrays.as_column(ordered[is_live[ordered]])


def _build_cell_mask(facts: Facts, versions: Sequence[Version], is_on_ladder: Callable[[Cell], bool]) -> Column:
    """Return a mask by version and cell: 1 if the games of the cell are eligible and on a requested ladder."""
    game_numbers = {facts.text_numbers.get(name) for version in versions for name in version.ruleset.scope.game}
    is_requested = [cell.game in game_numbers and is_on_ladder(cell) for cell in facts.cells]
    return array(
        "b",
        [
            requested and explain_ineligible_cell(facts, cell, version.ruleset) is None
            for version in versions
            for cell, requested in zip(facts.cells, is_requested, strict=True)
        ],
    )


def _list_account_changes(facts: Facts, versions: Sequence[Version]) -> tuple[Column, Column, Column]:
    """Return the account changes of all persons: bounds by person, then the time and the tier code of each change.

    Without a version that leaves out a tier, the bounds are only [0], because then the loop reads no changes.
    """
    first, since, code = array("q", [0]), array("q"), array("q")
    if not any(version.ruleset.scope.exclude_accounts for version in versions):
        return first, since, code
    for person in range(len(facts.person)):
        for entry in sorted(facts.accounts.get(person, ())):
            since.append(entry.occurred_at)
            code.append(ACCOUNT_TIERS.index(entry.account))
        first.append(len(since))
    return first, since, code


def version_starts(versions: Sequence[Version]) -> tuple[list[int], list[int]]:
    """Return the starts of versions in order, and the index of the version in force from each start on.

    The first entry is a start before all games, with the index `NONE`.
    """
    instants = sorted({version.effective_from for version in versions if version.effective_from is not None})
    chosen = [in_force(versions, instant) for instant in instants]
    indices = {id(version): index for index, version in enumerate(versions)}
    return [-(2**63), *instants], [NONE, *(indices[id(version)] for version in chosen)]


def _drop_unscorable(
    facts: Facts, versions: Sequence[Version], selected: SelectedGames, failures: dict[int, Exception]
) -> SelectedGames:
    """Return the selected games without games that their rule cannot score. `failures` is as in `select_games`."""
    selected = _drop_unreadable(facts, versions, selected)
    is_checked = [needs_check(version) for version in versions]
    if not any(is_checked):
        return selected
    check_keys = _find_check_keys(facts, versions, selected)
    is_refused_by_key: dict[Any, bool] = {}
    refused_games: list[int] = []
    for game, key in enumerate(check_keys):
        if not is_checked[selected.version[game]]:
            continue
        is_refused = is_refused_by_key.get(key) if key is not None else None
        if is_refused is None:
            row, participants = selected.row[game], selected.slot[selected.offset[game] : selected.offset[game + 1]]
            try:
                is_refused = explain_not_scored(facts, row, versions[selected.version[game]], participants) is not None
            except RuleFailure as failure:
                failures[row], is_refused = failure, False
            else:
                is_refused_by_key[key] = is_refused
        if is_refused:
            refused_games.append(game)
    return _drop_games(selected, refused_games) if refused_games else selected


def _drop_unreadable(facts: Facts, versions: Sequence[Version], selected: SelectedGames) -> SelectedGames:
    """Return the selected games without games that their ruleset cannot read; see `explain_unreadable`."""
    if not any(can_be_unreadable(facts, version) for version in versions):
        return selected
    offset = arrays.as_numpy(selected.offset)
    size, slot = np.diff(offset), arrays.as_numpy(selected.slot)
    version_of = np.repeat(arrays.as_numpy(selected.version), size)
    is_unreadable = np.zeros(len(slot), dtype=bool)
    for index, version in enumerate(versions):
        is_own = version_of == index
        if reads_numbers(version):
            is_unreadable[is_own] = _are_unreadable(facts, version, slot[is_own])
        if not rates_teams(version.rule):
            is_unreadable[is_own] |= _are_partners(facts, arrays.as_numpy(selected.row), size, slot)[is_own]
    if not is_unreadable.any():
        return selected
    games = np.repeat(np.arange(len(size)), size)[is_unreadable]
    return _drop_games(selected, np.unique(games).tolist())


def _are_partners(facts: Facts, row: Any, size: Any, slot: Any) -> Any:
    """Return a mask by slot: True if the participant is a partner of an earlier participant of the game.

    Participants in battles and replaced participants are not partners.
    """
    team = read_optional_column(facts, "team", slot)
    is_ignored = (
        (team == NONE) | (arrays.as_numpy(facts.replaced)[slot] != 0) | np.repeat(find_battles(facts, row), size)
    )
    partners = np.zeros(len(slot), dtype=bool)
    teamed = np.flatnonzero(~is_ignored)
    sides = np.repeat(np.arange(len(size)), size)[teamed] * (PLAYERS_MAX + 1) + team[teamed]
    _, first = np.unique(sides, return_index=True)
    partners[np.delete(teamed, first)] = True
    return partners


def _are_unreadable(facts: Facts, version: Version, slot: Any) -> Any:
    """Return a mask by slot: True if the version cannot read the participant's numbers."""
    is_unreadable = np.zeros(len(slot), dtype=bool)
    for name, limits in version.ruleset.numbers.items():
        number = read_optional_column(facts, f"{NUMBERS}{name}", slot)
        is_unreadable |= (number != MISSING) & ((number < limits.min) | (number > limits.max))
        if limits.absent == "refuse":
            is_unreadable |= number == MISSING
    if not SCORES.isdisjoint(version.rule.columns):
        score, decimals = (
            read_optional_column(facts, "score", slot),
            read_optional_column(facts, "score_decimals", slot).astype(np.int64),
        )
        finest = version.ruleset.score_decimals
        score_max = INTEGER_MAX // 10 ** (finest - np.minimum(decimals, finest))
        is_unreadable |= (decimals > finest) | ((score != MISSING) & (abs(score) > score_max))
    return is_unreadable


def _find_check_keys(facts: Facts, versions: Sequence[Version], selected: SelectedGames) -> Iterable[Any]:
    """Return a key for each game. The rule's check has the same result for games with equal keys.

    All keys are None if each game needs its own check.
    """
    seasonal = any(getattr(version.params, "season_months", []) for version in versions)
    readings = {version.reading for version in versions}
    if seasonal or len(readings) > 1:
        return [None] * len(selected.row)
    offset = arrays.as_numpy(selected.offset)
    games = GameSlots(selected.row, arrays.as_column(np.diff(offset)), selected.slot)
    (reading,) = readings
    values = np.ascontiguousarray(read_columns(facts, reading, games).T)
    width, raw = values.itemsize * len(reading.columns), values.tobytes()
    ends = (offset * width).tolist()
    return ((version, raw[first:last]) for version, (first, last) in zip(selected.version, pairwise(ends), strict=True))


def _drop_games(selected: SelectedGames, dropped: list[int]) -> SelectedGames:
    """Return the selected games without those at the `dropped` indices, which must be ascending."""
    row, version, offset, slot = array("q"), array("h"), array("q", [0]), array(memoryview(selected.slot).format)
    for first, last in pairwise([-1, *dropped, len(selected.row)]):
        row.extend(selected.row[first + 1 : last])
        version.extend(selected.version[first + 1 : last])
        shift = len(slot) - selected.offset[first + 1]
        offset.extend(selected.offset[game + 1] + shift for game in range(first + 1, last))
        slot.extend(selected.slot[selected.offset[first + 1] : selected.offset[last]])
    return SelectedGames(row, version, offset, slot)


# compiled: numba takes flat arrays, so every array is an argument
def select_slots(
    rows: Column,
    cell: Column,
    occurred_at: Column,
    start: Column,
    count: Column,
    player: Column,
    person: Column,
    status: Column,
    replaced: Column,
    rank: Column,
    has_merged_ids: int,
    since: Column,
    version_since: Column,
    frozen_at: Column,
    frozen: int,
    cell_mask: Column,
    cell_count: int,
    seat_mask: Column,
    status_count: int,
    counted_min: Column,
    tier_mask: Column,
    tier_count: int,
    tier_from: Column,
    tier_since: Column,
    tier_code: Column,
    out_row: Column,
    out_version: Column,
    out_offset: Column,
    out_slot: Column,
) -> int:
    """Write the counted games among `rows` to the output arrays, in the order of the rows; return their number.

    The counted participants of a game are written in the order of their ids.

    rank:           by player, the rank of their person's id among all ids
    has_merged_ids: whether two ids of a game may be one person
    since, version_since: the starts of versions, ascending, and the index of the version in force from each start on
    frozen_at:      by cell, if `frozen`: the instant that decides which version scores its games
    cell_mask:      by version and cell, whether the games are eligible and on a requested ladder
    seat_mask:      by version and kind of seat (see `number_seat_kind`), whether the participants count
    tier_mask:      by version and account tier, whether the participants count
    tier_from:      by person, the bounds of their account changes in `tier_since` and `tier_code`, which are sorted by
                    time; only [0] if all tiers count
    """
    games = 0
    slots = 0
    out_offset[0] = 0
    last = len(since) - 1
    for r in range(len(rows)):
        row = rows[r]
        cell_number = cell[row]
        played = occurred_at[row]
        instant = frozen_at[cell_number] if frozen else played
        interval = last
        while since[interval] > instant:
            interval -= 1
        version = version_since[interval]
        if version < 0 or not cell_mask[version * cell_count + cell_number]:
            continue
        first = slots
        for slot in range(start[row], start[row] + count[row]):
            if not seat_mask[(version * 2 + replaced[slot]) * status_count + status[slot]]:
                continue
            if len(tier_from) > 1:
                person_number = person[player[slot]]
                code = 0
                for k in range(tier_from[person_number], tier_from[person_number + 1]):
                    if tier_since[k] <= played:
                        code = tier_code[k]
                if not tier_mask[version * tier_count + code]:
                    continue
            # insertion sort by id, because games have few participants
            slot_rank = rank[player[slot]]
            insert_at = slots
            while insert_at > first and rank[player[out_slot[insert_at - 1]]] > slot_rank:
                out_slot[insert_at] = out_slot[insert_at - 1]
                insert_at -= 1
            out_slot[insert_at] = slot
            slots += 1
        has_duplicate = 0
        if has_merged_ids:
            for k in range(first + 1, slots):
                if rank[player[out_slot[k]]] == rank[player[out_slot[k - 1]]]:
                    has_duplicate = 1
        if slots - first < counted_min[version] or has_duplicate:
            slots = first
            continue
        out_row[games] = row
        out_version[games] = version
        games += 1
        out_offset[games] = slots
    return games
