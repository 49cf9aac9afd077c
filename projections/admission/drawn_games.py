"""Draw random games for the trial of a rule, with seats, labels, sides, scores and custom numbers like recorded games.

A rule may require columns that such games lack, and would then score none of them. These columns are generated: sampled
by the rule, or in ranges that the caller chooses.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.games import draw_seats
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections.contract import NUMBERS, UNITS_MAX, Rule
from ratings_ledger.projections.facts.applying import apply, settle_facts
from ratings_ledger.projections.facts.columns import LABELS, Facts
from ratings_ledger.projections.replay.gaps import Calendar
from ratings_ledger.projections.replay.rule_calls import check_game, make_failure
from ratings_ledger.projections.replay.streams import Stream, name_ladders_of_game
from ratings_ledger.projections.rulesets.rule_errors import RULE_ERRORS, ContractError, read_integers, redirect_output
from ratings_ledger.projections.rulesets.versions import Version

PLAYERS = 200  # the number of players who meet more than once
SEATS_MAX, CROWDED_SEATS_MAX = 10, 60  # the maximum number of seats in most games, and in every 50th game
CROWDED_EVERY = 50
FIRST_INSTANT = 1_735_689_600_000_000  # 2025-01-01; any date will do
HOUR = 3_600_000_000  # microseconds
# the largest lead, in units, for which the sums over all players stay within bounds
LEAD_MAX = UNITS_MAX // 64
# random numbers come from the part of their range that is nearest to zero, at most twice as wide as this
NUMBER_DISTANCE_MAX = 20
# the range of values of each column that is generated, by column name
ColumnRanges = Mapping[str, range]


def draw_facts(version: Version, rng: Random, games: int) -> Facts:
    """Return facts with random games and, on ladders that take adjustments, a few players far ahead or behind.

    The adjustments are in the middle of the games.
    """
    facts = Facts(games, ZERO)
    names = [f"player-{number:03d}" for number in range(PLAYERS)]
    middle = FIRST_INSTANT + games // 2 * HOUR
    for number in range(1, games + 1):
        instant = FIRST_INSTANT + number * HOUR
        kind = rng.choice(version.ruleset.scope.kind)
        # a few players meet often, as in a club
        circle = names[: rng.choice((12, 12, 12, PLAYERS))] if number % CROWDED_EVERY else names
        guests = [f"guest-{number}-{guest}" for guest in range(PLAYERS)]
        players = iter(rng.sample(circle, len(circle)) + guests)
        seats = draw_seats(_draw_seat_count(version, kind, rng, number), players, rng)
        data = {
            "game_id": f"g-{number}",
            "game": rng.choice(version.ruleset.scope.game),
            "kind": kind,
            **_draw_labels(version, instant, rng),
            **GAME_TYPES[kind].generate(seats, rng),
        }
        _add_optional_members(data, version, rng)
        apply(facts, number, _build_event("game.recorded", instant, data))
    if version.ranking.adjustable:
        for name in sorted({_find_ladder(version, facts, row) for row in range(len(facts.start))} - {""}):
            for player, units in (("player-001", LEAD_MAX), ("player-002", LEAD_MAX - 1), ("player-003", -LEAD_MAX)):
                data = {"ladder": name, "player": player, "points": str(units // version.rule.scale), "reason": "drawn"}
                apply(facts, games + 1, _build_event("points.adjusted", middle, data))
    settle_facts(facts)
    facts.rulesets = {version.ruleset.id: [version]}
    return facts


def _build_event(type_name: str, instant: int, data: dict[str, Any]) -> KnownEvent:
    return KnownEvent(f"drawn-{instant}", type_name, instant, data)


def _draw_seat_count(version: Version, kind: str, rng: Random, number: int) -> int:
    """Return a random number of seats for the game with this number."""
    scope, (seats_min, seats_max) = version.ruleset.scope, GAME_TYPES[kind].seats
    count_min = max(scope.players_min, seats_min)
    count_max = CROWDED_SEATS_MAX if number % CROWDED_EVERY == 0 else SEATS_MAX
    return rng.randint(count_min, max(count_min, min(scope.players_max or count_max, count_max, seats_max)))


def _draw_labels(version: Version, instant: int, rng: Random) -> dict[str, str]:
    """Return random labels that put a game on one of the version's ladders."""
    by, starts = version.ruleset.partition.by, getattr(version.params, "season_months", [])
    labels: dict[str, str] = {label: rng.choice("ab") for label in by if label in LABELS}
    if "season" in by:
        local = local_time(instant, version.ruleset.time_zone)
        season_number = sum(month <= local.month for month in starts)
        labels["season"] = f"{local.year}-{season_number}" if season_number else str(local.year)
    return labels


def _find_ladder(version: Version, facts: Facts, row: int) -> str:
    """Return the ladder of a game, or an empty string."""
    return next(iter(name_ladders_of_game(facts, row, version.ruleset)), "")


def _add_optional_members(data: dict[str, Any], version: Version, rng: Random) -> None:
    """Add the members besides places that a version's rule reads.

    If the rule reads scores, placing games get them; if it reads teams, half of the placing games with three or more
    seats get teams. If it reads a home side, half of all games get one. All participants get the numbers that the rule
    reads or the ruleset requires.
    """
    columns = version.rule.columns
    seats = [participant for participant in data["participants"] if "replaces" not in participant]
    if data["kind"] == "placing":
        if "team" in columns and len(seats) > 2 and rng.random() < 0.5:
            _form_teams(seats, rng)
        if "score" in columns or "side_score" in columns:
            _score_places(data, seats, version, rng)
        _repeat_for_substitutes(data)
    if "home" in columns and rng.random() < 0.5:
        rng.choice(seats)["home"] = True
    ranges = version.ruleset.numbers
    read_numbers = {name.removeprefix(NUMBERS) for name in columns if name.startswith(NUMBERS)}
    required = {name for name, allowed in ranges.items() if allowed.absent == "refuse"}
    for name in sorted(read_numbers | required):
        low, high = (ranges[name].min, ranges[name].max) if name in ranges else (0, NUMBER_DISTANCE_MAX)
        low = max(low, min(-NUMBER_DISTANCE_MAX, high - NUMBER_DISTANCE_MAX))
        high = min(high, low + 2 * NUMBER_DISTANCE_MAX)
        for participant in data["participants"]:
            participant.setdefault("numbers", {})[name] = rng.randint(low, high)


def _form_teams(seats: list[dict[str, Any]], rng: Random) -> None:
    """Divide the players into two or more teams, each with one place."""
    count = rng.randint(2, len(seats) - 1)
    teams = [*range(count), *(rng.randrange(count) for _ in seats[count:])]
    rng.shuffle(teams)
    ranks = [rng.randrange(count) for _ in range(count)]
    for seat, team in zip(seats, teams, strict=True):
        seat["team"] = f"team-{team}"
        seat["place"] = 1 + sum(ranks[seat_team] < ranks[team] for seat_team in teams)


def _score_places(data: dict[str, Any], seats: list[dict[str, Any]], version: Version, rng: Random) -> None:
    """Give every seat a score that agrees with its place."""
    step = rng.randint(1, 30)
    is_low = version.ruleset.score_order == "low"
    for seat in seats:
        seat["score"] = step * (seat["place"] if is_low else len(seats) - seat["place"])
    if is_low:
        data["score_order"] = "low"


def _repeat_for_substitutes(data: dict[str, Any]) -> None:
    """Copy team, place and score of a replaced player to the substitute."""
    seats = {participant["player"]: participant for participant in data["participants"]}
    for participant in data["participants"]:
        if leaver := seats.get(participant.get("replaces", "")):
            participant |= {name: leaver[name] for name in ("team", "place", "score") if name in leaver}


def parse_column_ranges(texts: Sequence[str], rule: Rule) -> dict[str, range]:
    """Parse columns written as `seat=1..2`.

    Raises `BadArgument` for other texts, for empty ranges, and for columns that the rule does not read.
    """
    ranges: dict[str, range] = {}
    for text in texts:
        parts = re.fullmatch(r"([a-z][a-z0-9_.]*)=(-?\d{1,18})(?:\.\.(-?\d{1,18}))?", text, re.ASCII)
        if parts is None:
            raise BadArgument(f"{quote(text)} is not a column with its numbers, such as seat=1..2", "columns")
        name, low, high = parts[1], int(parts[2]), int(parts[3] or parts[2])
        if name not in rule.columns:
            hint = did_you_mean(name, rule.columns)
            problem = f"{rule.id} does not read the column {quote(name)}; it reads {', '.join(rule.columns) or 'none'}"
            raise BadArgument(problem + hint, "columns")
        if high < low:
            raise BadArgument(f"{name}={low}..{high} is empty; write {name}={high}..{low}", "columns")
        ranges[name] = range(low, high + 1)
    return ranges


def has_drawn_columns(rule: Rule, ranges: ColumnRanges) -> bool:
    """Tell whether a trial replaces columns of the random games."""
    return rule.sample is not None or bool(ranges)


def simplify_for_drawing(version: Version, ranges: ColumnRanges) -> Version:
    """Return a version that scores every game separately, to generate games.

    If the columns of the games are replaced later, its rule has no `check` and, with a `sample`, reads no columns.
    """
    if version.ruleset.period != "game":
        ruleset = version.ruleset.model_copy(update={"period": "game", "period_by": None})
        version = version._replace(ruleset=ruleset)
    if not has_drawn_columns(version.rule, ranges):
        return version
    names = () if version.rule.sample else version.rule.columns
    return version._replace(rule=version.rule._replace(check=None, columns=names))


def draw_columns(
    stream: Stream, version: Version, ranges: ColumnRanges, rng: Random, uncounted: Counter[str]
) -> Stream:
    """Return a stream with generated columns, without the games that the rule's `check` refuses.

    `uncounted` counts the refused games by reason. Raises `RuleFailure` if `sample` or `check` breaks the contract.
    """
    rule, calendar = version.rule, stream.calendar
    scored = replace(
        stream,
        rule=rule,
        versions=[version],
        names=[],
        persons=[],
        offsets=array("q", [0]),
        players=array("i"),
        version_indices=array("h"),
        rows=array("q"),
        adjustments=[],
        batch=None,
        trace=None,
        gaps=None,
    )
    columns = [array("q") for _ in rule.columns]
    games: list[int] = []
    for game, row in enumerate(stream.rows):
        low, high = stream.offsets[game], stream.offsets[game + 1]
        game_columns = _draw_game(stream, version, game, ranges, rng)
        reason = check_game(version, stream.ladder, row, high - low, game_columns)
        if reason is not None:
            uncounted[reason] += 1
            continue
        games.append(game)
        scored.players.extend(_renumber(stream, scored, player) for player in stream.players[low:high])
        scored.offsets.append(scored.offsets[-1] + high - low)
        scored.version_indices.append(0)
        scored.rows.append(row)
        for column, values in zip(columns, game_columns, strict=True):
            column.extend(values)
    for adjustment in stream.adjustments:
        if adjustment.is_version_entry:
            continue
        next_game = bisect_left(games, adjustment.game)
        player = _renumber(stream, scored, adjustment.player)
        scored.adjustments.append(adjustment._replace(game=next_game, player=player, version=0))
    scored.columns = columns
    scored.calendar = calendar and Calendar(*(array("q", [column[game] for game in games]) for column in calendar))
    return scored


def _renumber(stream: Stream, scored: Stream, player: int) -> int:
    """Return a player's number in the stream of scored games."""
    return scored.number_player(stream.persons[player], stream.names[player])


def _draw_game(stream: Stream, version: Version, game: int, ranges: ColumnRanges, rng: Random) -> list[list[int]]:
    """Return the columns of a game, from the rule's sample if it has one, with random values for those in `ranges`."""
    rule, row = version.rule, stream.rows[game]
    low, high = stream.offsets[game], stream.offsets[game + 1]
    if rule.sample is None:
        columns = [column[low:high].tolist() for column in stream.columns]
    else:
        try:
            with redirect_output(rule):
                sampled = rule.sample(high - low, rng, version.params)
            columns = [[*read_integers(column, "sample")] for column in sampled]
            lengths, expected = [len(column) for column in columns], [high - low] * len(rule.columns)
            if lengths != expected:
                raise ContractError(f"sample returned columns of the lengths {lengths}, but they must be {expected}")
        except RULE_ERRORS as error:
            raise make_failure(stream.ladder, rule, error, row, "sample") from error
    for name, numbers in ranges.items():
        index = rule.columns.index(name)
        common_number = rng.choice(numbers)
        # the number of seats is the same for all participants
        columns[index] = [common_number if name == "seats" else rng.choice(numbers) for _ in columns[index]]
    return columns
