"""The columns of drawn games that a rule can score: those that it samples itself, or that the caller of a trial gives.

A rule may demand what drawn games rarely have, such as a side at home or a margin. Then nothing of it would be tried.
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
from ratings_ledger.projections.replay.ladders import Stream
from ratings_ledger.projections.replay.rule_calls import check_game, make_failure
from ratings_ledger.projections.rulesets.rule_errors import RULE_ERRORS, ContractError, read_integers, redirect_output
from ratings_ledger.projections.rulesets.versions import Version

# by name of a column: the numbers that it may hold in a drawn game
GivenColumns = Mapping[str, range]


def read_given_columns(texts: Sequence[str], rule: Rule) -> dict[str, range]:
    """Return columns from texts such as `seat=1..2`. Raises `BadArgument` for what is not one of the rule's."""
    given: dict[str, range] = {}
    for text in texts:
        parts = re.fullmatch(r"([a-z][a-z0-9_.]*)=(-?\d{1,18})(?:\.\.(-?\d{1,18}))?", text, re.ASCII)
        if parts is None:
            raise BadArgument(f"{quote(text)} is not a column with its numbers, such as seat=1..2", "columns")
        name, low, high = parts[1], int(parts[2]), int(parts[3] or parts[2])
        if name not in rule.columns:
            hint = did_you_mean(name, rule.columns)
            told = f"{rule.id} does not read the column {quote(name)}; it reads {', '.join(rule.columns) or 'none'}"
            raise BadArgument(told + hint, "columns")
        if high < low:
            raise BadArgument(f"{name}: {high} is below {low}", "columns")
        given[name] = range(low, high + 1)
    return given


def draws_columns(rule: Rule, given: GivenColumns) -> bool:
    """Tell whether the columns of a rule's drawn games are not those of the games alone."""
    return rule.sample is not None or bool(given)


def without_columns(version: Version, given: GivenColumns) -> Version:
    """Return a version for which games can be drawn, one by one, before their columns are: its rule refuses none."""
    if version.ruleset.period != "game":
        ruleset = version.ruleset.model_copy(update={"period": "game", "period_by": None})
        version = version._replace(ruleset=ruleset)
    if not draws_columns(version.rule, given):
        return version
    names = () if version.rule.sample else version.rule.columns
    return version._replace(rule=version.rule._replace(check=None, columns=names))


def draw_columns(
    stream: Stream, version: Version, given: GivenColumns, chance: Random, uncounted: Counter[str]
) -> Stream:
    """Return a stream of games with other columns, without the games that the rule's `check` refuses.

    Raises `RuleFailure` if the rule's `sample` or `check` does something wrong.
    """
    rule, calendar = version.rule, stream.calendar
    scored = replace(
        stream, rule=rule, versions=[version], names=[], persons=[], offsets=array("q", [0]), players=array("i"),
        version=array("h"), row=array("q"), adjustments=[], batch=None, known=None, gaps=None,
    )  # fmt: skip
    columns = [array("q") for _ in rule.columns]
    games: list[int] = []
    for game, row in enumerate(stream.row):
        low, high = stream.offsets[game], stream.offsets[game + 1]
        drawn = _draw_game(stream, version, game, given, chance)
        reason = check_game(version, stream.ladder, row, high - low, drawn)
        if reason is not None:
            uncounted[reason] += 1
            continue
        games.append(game)
        scored.players.extend(_renumber(stream, scored, player) for player in stream.players[low:high])
        scored.offsets.append(scored.offsets[-1] + high - low)
        scored.version.append(0)
        scored.row.append(row)
        for column, values in zip(columns, drawn, strict=True):
            column.extend(values)
    for one in stream.adjustments:
        if one.enters:
            continue
        before = bisect_left(games, one.game)
        scored.adjustments.append(one._replace(game=before, player=_renumber(stream, scored, one.player), version=0))
    scored.columns = columns
    scored.calendar = calendar and Calendar(*(array("q", [column[game] for game in games]) for column in calendar))
    return scored


def _renumber(stream: Stream, scored: Stream, player: int) -> int:
    """Return a player's number among those of the games that are scored."""
    return scored.number(stream.persons[player], stream.names[player])


def _draw_game(stream: Stream, version: Version, game: int, given: GivenColumns, chance: Random) -> list[list[int]]:
    """Return the columns of one game: the rule's sample, or those of the game with the given ones drawn anew."""
    rule, row = version.rule, stream.row[game]
    low, high = stream.offsets[game], stream.offsets[game + 1]
    if rule.sample is None:
        drawn = [column[low:high].tolist() for column in stream.columns]
    else:
        try:
            with redirect_output(rule):
                sampled = rule.sample(high - low, chance, version.params)
            drawn = [[*read_integers(column, "sample")] for column in sampled]
            if [len(column) for column in drawn] != [high - low] * len(rule.columns):
                told = f"sample drew columns of {[len(column) for column in drawn]} numbers"
                raise ContractError(f"{told}; {len(rule.columns)} columns of {high - low} are needed")
        except RULE_ERRORS as error:
            raise make_failure(stream.ladder, rule, error, row, "sample") from error
    same_for_all = {"seats"}
    for name, numbers in given.items():
        at = rule.columns.index(name)
        one = chance.choice(numbers)
        drawn[at] = [one if name in same_for_all else chance.choice(numbers) for _ in drawn[at]]
    return drawn
