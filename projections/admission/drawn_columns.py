"""Generate the columns of random games for a trial: sampled by the rule, or in ranges that the caller chooses.

Random games lack some columns that a rule may require. Without generated columns, such a rule would score none of them.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import did_you_mean, quote
from ratings_ledger.projections.contract import Rule
from ratings_ledger.projections.replay.gaps import Calendar
from ratings_ledger.projections.replay.rule_calls import check_game, make_failure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.rule_errors import RULE_ERRORS, ContractError, read_integers, redirect_output
from ratings_ledger.projections.rulesets.versions import Version

# the range of values of each column that is generated, by column name
ColumnRanges = Mapping[str, range]


def parse_column_ranges(texts: Sequence[str], rule: Rule) -> dict[str, range]:
    """Parse columns written as `seat=1..2`. Raises `BadArgument` for a column that the rule does not read."""
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

    If the columns of the games are replaced later, its rule has no `check`.
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
            if [len(column) for column in columns] != [high - low] * len(rule.columns):
                problem = f"sample returned columns of {[len(column) for column in columns]} numbers"
                raise ContractError(f"{problem}; it must return {len(rule.columns)} columns of {high - low} numbers")
        except RULE_ERRORS as error:
            raise make_failure(stream.ladder, rule, error, row, "sample") from error
    for name, numbers in ranges.items():
        index = rule.columns.index(name)
        seat_count = rng.choice(numbers)
        # the number of seats is the same for all participants
        columns[index] = [seat_count if name == "seats" else rng.choice(numbers) for _ in columns[index]]
    return columns
