"""The loops over long histories: plain Python over preallocated integer arrays, so that they can be compiled.

`projections.compiling` runs them interpreted for short histories and compiled for long ones: same source, same numbers.
"""

from collections.abc import Callable
from math import log
from typing import Any

from ratings_ledger.projections.contract import MISSING, UNITS_MAX, Rule, StateValues
from ratings_ledger.projections.expected_scores import ONE

Numbers = Any  # an array of integers, Python's or numpy's

OK = -1
NOT_RUN = -3  # the ladder was not run
UNBALANCED = -2  # the changes of a game sum to more than it minted
OVERFLOW = -4  # a player's points exceed `UNITS_MAX`
ADJUSTMENT_OVERFLOW = -5  # the same, by an adjustment


def assign_games(
    keys: Numbers, key_from: Numbers, key_ladders: Numbers, ladder_from: Numbers, ladder_games: Numbers
) -> int:
    """Fill in the games of every ladder, in order, and return their number; ladder L's start at `ladder_from[L]`.

    A game has a key, and a key has the ladders `key_ladders[key_from[key]:key_from[key + 1]]`. `ladder_from` comes
    zeroed.
    """
    ladders = len(ladder_from) - 1
    for g in range(len(keys)):
        for k in range(key_from[keys[g]], key_from[keys[g] + 1]):
            ladder_from[key_ladders[k] + 1] += 1
    for ladder in range(ladders):
        ladder_from[ladder + 1] += ladder_from[ladder]
    total = int(ladder_from[ladders])
    for g in range(len(keys)):
        for k in range(key_from[keys[g]], key_from[keys[g] + 1]):
            ladder = key_ladders[k]
            ladder_games[ladder_from[ladder]] = g
            ladder_from[ladder] += 1
    for ladder in range(ladders, 0, -1):
        ladder_from[ladder] = ladder_from[ladder - 1]
    ladder_from[0] = 0
    return total


# compiled: numba takes flat arrays, so every array is an argument
def gather(
    ladder_from: Numbers,
    ladder_games: Numbers,
    source_row: Numbers,
    source_version: Numbers,
    source_offset: Numbers,
    source_slot: Numbers,
    row: Numbers,
    version: Numbers,
    size: Numbers,
    offset: Numbers,
    slot: Numbers,
    slot_from: Numbers,
) -> None:
    """Copy the games of every ladder, ladder after ladder.

    The offsets of ladder L, one more than it has games, begin at `ladder_from[L] + L` and count from `slot_from[L]`.
    """
    slots = 0
    for ladder in range(len(ladder_from) - 1):
        slot_from[ladder] = slots
        offset[ladder_from[ladder] + ladder] = 0
        for at in range(ladder_from[ladder], ladder_from[ladder + 1]):
            game = ladder_games[at]
            row[at] = source_row[game]
            version[at] = source_version[game]
            size[at] = source_offset[game + 1] - source_offset[game]
            for k in range(source_offset[game], source_offset[game + 1]):
                slot[slots] = source_slot[k]
                slots += 1
            offset[at + ladder + 1] = slots - slot_from[ladder]
    slot_from[len(ladder_from) - 1] = slots


# compiled: numba takes flat arrays, so every array is an argument
def number_in_ladders(
    slot: Numbers,
    slot_from: Numbers,
    player: Numbers,
    person: Numbers,
    own: Numbers,
    number: Numbers,
    names: Numbers,
    names_from: Numbers,
) -> None:
    """Number the participants of each ladder, in the order in which they join it.

    `own` has room for every person and comes filled with -1; `names` are persons by number from `names_from[L]` on.
    """
    people = 0
    for ladder in range(len(slot_from) - 1):
        names_from[ladder] = people
        for k in range(slot_from[ladder], slot_from[ladder + 1]):
            member = person[player[slot[k]]]
            if own[member] < 0:
                own[member] = people - names_from[ladder]
                names[people] = member
                people += 1
            number[k] = own[member]
        for k in range(names_from[ladder], people):
            own[names[k]] = -1
    names_from[len(slot_from) - 1] = people


def score(n: int, points: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers) -> int:
    """Stand in for a rule's scoring function, which `compiling.compile_with_rule` puts in its place."""
    raise NotImplementedError


def age(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
    """Return the state unchanged. Stand in for a rule's function of this name, as `score` does."""
    return state


def new_season(state: StateValues, constants: Numbers) -> StateValues:
    """Return the state unchanged. Stand in for a rule's function of this name, as `score` does."""
    return state


def enter(state: StateValues, constants: Numbers) -> StateValues:
    """Return the state unchanged. Stand in for a rule's function of this name, as `score` does."""
    return state


def change_states(
    n: int, before: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers
) -> int:
    """Fill in the changes of n players' states by a game, and return the minted points; `change` comes zeroed.

    A rule of contract 1 has one column, the points.
    """
    return score(n, before[0][:n], columns, constants, table, change[0][:n])


def change_several_states(
    n: int, before: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers
) -> int:
    """Do what `change_states` does for a rule of contract 2, which fills in the states after the game."""
    for column in range(count_columns(before)):
        for i in range(n):
            change[column][i] = before[column][i]
    minted = score(n, before[:, :n], columns, constants, table, change[:, :n])
    for column in range(count_columns(before)):
        for i in range(n):
            change[column][i] -= before[column][i]
    return minted


def count_columns(states: Numbers) -> int:
    """Return the number of state columns. Compiled code has a constant instead, and unrolls its loops over columns."""
    return len(states)


def _count_one(states: Numbers) -> int:
    return 1


def _count_two(states: Numbers) -> int:
    return 2


def _count_three(states: Numbers) -> int:
    return 3


def _count_four(states: Numbers) -> int:
    return 4


def _count_five(states: Numbers) -> int:
    return 5


def _count_six(states: Numbers) -> int:
    return 6


COUNT_COLUMNS = (_count_one, _count_one, _count_two, _count_three, _count_four, _count_five, _count_six)


def bring_forward(n: int, low: int, states: Numbers, gaps: Numbers, constants: Numbers) -> tuple[int, int]:
    """Leave the states of n players unchanged: no rule of contract 1 changes them between games."""
    return 0, 0


def bring_states_forward(n: int, low: int, states: Numbers, gaps: Numbers, constants: Numbers) -> tuple[int, int]:
    """Bring the states of n players from their last games to the game whose slots begin at `low`.

    A new season comes first, then the whole gap passes. Returns the points minted and burned by that.

    gaps: for every slot, whether a season begins, and the time elapsed since the player's last game
    """
    minted = burned = 0
    for i in range(n):
        state = take_state(states, i)
        if gaps[0][low + i] > 0:
            points = state[0]
            state = new_season(state, constants)
            minted += max(state[0] - points, 0)
            burned += max(points - state[0], 0)
        if gaps[1][low + i] > 0:
            points = state[0]
            state = age(state, gaps[1][low + i], constants)
            if state[0] != points:
                raise ValueError("age changed the first column")
        for column in range(count_columns(states)):
            states[column][i] = state[column]
    return minted, burned


def take_state(states: Numbers, i: int) -> StateValues:
    """Return the state of a player in the current game, with one column; `TAKE_STATE` has the functions for more."""
    return (states[0][i],)


def _take_two(states: Numbers, i: int) -> StateValues:
    return states[0][i], states[1][i]


def _take_three(states: Numbers, i: int) -> StateValues:
    return states[0][i], states[1][i], states[2][i]


def _take_four(states: Numbers, i: int) -> StateValues:
    return states[0][i], states[1][i], states[2][i], states[3][i]


def _take_five(states: Numbers, i: int) -> StateValues:
    return states[0][i], states[1][i], states[2][i], states[3][i], states[4][i]


def _take_six(states: Numbers, i: int) -> StateValues:
    return states[0][i], states[1][i], states[2][i], states[3][i], states[4][i], states[5][i]


# By number of columns, because compiled code needs the length of a tuple.
TAKE_STATE = (take_state, take_state, _take_two, _take_three, _take_four, _take_five, _take_six)


def find_rule_parts(rule: Rule) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return the functions of a rule that replace functions of this module, by name."""
    if not rule.state:
        return (("score", rule.score), ("count_columns", _count_one))
    is_brought_forward = rule.age or rule.new_season
    return (
        ("score", rule.score or score),  # type: ignore[truthy-function]
        ("age", rule.age or age),
        ("new_season", rule.new_season or new_season),
        ("enter", rule.enter or enter),
        ("count_columns", COUNT_COLUMNS[rule.width]),
        ("take_state", TAKE_STATE[rule.width]),
        ("change_states", change_several_states),
        ("bring_forward", bring_states_forward if is_brought_forward else bring_forward),
        ("score_period", rule.score_period or score_period),
    )


# compiled: numba takes flat arrays, so every array is an argument
def find_gaps(
    offset: Numbers,
    number: Numbers,
    day: Numbers,
    season: Numbers,
    last_day: Numbers,
    last_season: Numbers,
    played: Numbers,
    games_before: Numbers,
    first_of_season: Numbers,
    changes_season: Numbers,
    days_since: Numbers,
) -> None:
    """Fill in the gap before every slot of a ladder; a column that is not needed comes empty.

    day, season:     by game
    last_day, last_season, played: by player, before the first game, `MISSING` for new players; the ones that the needed
                     columns are computed from are updated to the end
    games_before:    by slot, the player's number of earlier games
    first_of_season: by slot, whether it is the player's first game of a season
    changes_season:  by slot, the same, but 0 for the player's first game of all
    days_since:      by slot, the days since the player's last game; `MISSING` before the first
    """
    counts, seasons, changes, days = len(games_before), len(first_of_season), len(changes_season), len(days_since)
    for game in range(len(offset) - 1):
        for slot in range(offset[game], offset[game + 1]):
            player = number[slot]
            if counts:
                games_before[slot] = played[player]
            if seasons:
                first_of_season[slot] = 0 if last_season[player] == season[game] else 1
            if changes:
                changes_season[slot] = 0 if last_season[player] in (MISSING, season[game]) else 1
            if days:
                days_since[slot] = MISSING if last_day[player] == MISSING else max(day[game] - last_day[player], 0)
        for slot in range(offset[game], offset[game + 1]):  # a game does not precede itself
            player = number[slot]
            if counts:
                played[player] += 1
            if seasons or changes:
                last_season[player] = season[game]
            if days:
                last_day[player] = day[game]


# compiled: numba takes flat arrays, so every array is an argument; a call for each part of a game would be too slow
def run_ladder(
    constants: Numbers,
    table: Numbers,
    first: int,
    last: int,
    begin: Numbers,
    offset: Numbers,
    number: Numbers,
    columns: Numbers,
    offset_at: int,
    slot_at: int,
    player_at: int,
    states: Numbers,
    games: Numbers,
    on_ladder: Numbers,
    totals: Numbers,
    current: Numbers,
    change: Numbers,
    gaps: Numbers,
    before: Numbers,
    mints: Numbers,
    mints_at: int,
    adjusted_at: Numbers,
    adjusted_player: Numbers,
    adjusted_units: Numbers,
    adjusted_enters: Numbers,
    adjusted_begin: Numbers,
    adjusted_before: Numbers,
) -> int:
    """Add the adjustments and score the games from `first` up to `last`, with the adjustments just before `last`.

    Returns `OK`, or why it stopped: `UNBALANCED`, `OVERFLOW` or `ADJUSTMENT_OVERFLOW`. Raises what the rule raises.

    begin:     by state column and player, the state with which the player joins
    columns:   the rule's columns of all slots, one row each
    offset_at: the ladder's first index in `offset`; `slot_at` and `player_at` are those in the other arrays
    states:    by state column and player, the current state; column 0 holds the points
    games:     by player, the number of counted games
    on_ladder: by player, whether they have joined
    totals:    started, minted, burned and adjusted points, which are added to; the next adjustment; the current game
    current, change: room for the states of one game's players, and for the changes of these
    gaps:      as in `bring_states_forward`
    before:    receives the state of every slot's player before the game, by state column; may be empty
    mints:     receives the points minted by each game, from `mints_at` on; may be empty
    adjusted_at: by adjustment up to here, the game that it precedes; the other `adjusted_` arrays have its player, its
               units, whether a version takes effect with it, the state of a new player, and the state before it
    """
    # Column 0 has its own code, because nearly all rules have no other column.
    points, points_given, points_change, points_before = states[0], current[0], change[0], before[0]
    is_kept, width = len(points_before) > 0, count_columns(states)
    for game in range(first, last + 1):
        totals[5] = game
        while totals[4] < len(adjusted_at) and adjusted_at[totals[4]] == game:
            at, adjusted = totals[4], adjusted_player[totals[4]]
            if not on_ladder[adjusted]:
                join(adjusted, adjusted_begin, at, states, on_ladder, totals)
            if not adjust(at, adjusted, states, constants, totals, adjusted_units, adjusted_enters, adjusted_before):
                return ADJUSTMENT_OVERFLOW
            totals[4] += 1
        if game == last:
            break
        low = slot_at + offset[offset_at + game]
        n = slot_at + offset[offset_at + game + 1] - low
        for i in range(n):
            player = player_at + number[low + i]
            if not games[player] and not on_ladder[player]:
                join(player, begin, player, states, on_ladder, totals)
            points_given[i] = points[player]
            points_change[i] = 0
            if is_kept:
                points_before[low + i] = points[player]
        for column in range(1, width):
            for i in range(n):
                current[column][i] = states[column][player_at + number[low + i]]
                if is_kept:
                    before[column][low + i] = current[column][i]
        season_minted, season_burned = bring_forward(n, low, current, gaps, constants)
        # `| 0`: a rule that does not return a whole number is not compiled.
        minted = change_states(n, current, columns[:, low : low + n], constants, table, change) | 0
        total = 0
        for i in range(n):
            player = player_at + number[low + i]
            after = points_given[i] + points_change[i]
            if after > UNITS_MAX or after < -UNITS_MAX:
                return OVERFLOW
            points[player] = after
            games[player] += 1
            total += points_change[i]
        for column in range(1, width):
            for i in range(n):
                after = current[column][i] + change[column][i]
                if after > UNITS_MAX or after < -UNITS_MAX:
                    return OVERFLOW
                states[column][player_at + number[low + i]] = after
        if minted > UNITS_MAX:
            return OVERFLOW
        if minted < 0 or minted < total:
            return UNBALANCED
        if len(mints) and minted + season_minted:  # zeroed pages that are not written take no memory
            mints[mints_at + game] = minted + season_minted
        totals[1] += minted + season_minted
        totals[2] += minted - total + season_burned
    return OK


def score_period(
    players: int, before: Numbers, offsets: Numbers, rows: Numbers, constants: Numbers, table: Numbers, after: Numbers
) -> int:
    """Stand in for a rule's function of this name, as `score` does."""
    raise NotImplementedError


# compiled: numba takes flat arrays, so every array is an argument
def run_periods(
    constants: Numbers,
    table: Numbers,
    first: int,
    last: int,
    begin: Numbers,
    people: Numbers,
    people_from: Numbers,
    rows_from: Numbers,
    rows: Numbers,
    states: Numbers,
    on_ladder: Numbers,
    totals: Numbers,
    current: Numbers,
    after: Numbers,
    offsets: Numbers,
    gaps: Numbers,
    before: Numbers,
    mints: Numbers,
    adjusted_at: Numbers,
    adjusted_player: Numbers,
    adjusted_units: Numbers,
    adjusted_enters: Numbers,
    adjusted_begin: Numbers,
    adjusted_before: Numbers,
) -> int:
    """Add the adjustments and score the periods from `first` up to `last`, with the adjustments just before `last`.

    Returns and raises what `run_ladder` does. Arguments with the same names have the same meaning.

    people:    the players of every period, period by period, as in `periods.ResultRows`
    rows_from: by index of `people`, where the player's rows begin
    offsets:   room for where the rows of one period's players begin
    gaps, before: as for `run_ladder`, by index of `people`
    mints:     receives the points minted by each period
    adjusted_at: by adjustment, the period that it precedes
    """
    width = len(states)
    for period in range(first, last + 1):
        totals[5] = period
        while totals[4] < len(adjusted_at) and adjusted_at[totals[4]] == period:
            at, adjusted = totals[4], adjusted_player[totals[4]]
            if not on_ladder[adjusted]:
                join(adjusted, adjusted_begin, at, states, on_ladder, totals)
            if not adjust(at, adjusted, states, constants, totals, adjusted_units, adjusted_enters, adjusted_before):
                return ADJUSTMENT_OVERFLOW
            totals[4] += 1
        if period == last:
            break
        low = people_from[period]
        n = people_from[period + 1] - low
        for i in range(n):
            player = people[low + i]
            if not on_ladder[player]:
                join(player, begin, player, states, on_ladder, totals)
            offsets[i] = rows_from[low + i] - rows_from[low]
            for column in range(width):
                current[column][i] = states[column][player]
                before[column][low + i] = states[column][player]
        offsets[n] = rows_from[low + n] - rows_from[low]
        season_minted, season_burned = bring_forward(n, low, current, gaps, constants)
        for column in range(width):
            for i in range(n):
                after[column][i] = current[column][i]
        results = rows[:, rows_from[low] : rows_from[low + n]]
        # `| 0`: a rule that does not return a whole number is not compiled.
        minted = score_period(n, current[:, :n], offsets[: n + 1], results, constants, table, after[:, :n]) | 0
        total = 0
        for i in range(n):
            total += after[0][i] - current[0][i]
            for column in range(width):
                if after[column][i] > UNITS_MAX or after[column][i] < -UNITS_MAX:
                    return OVERFLOW
                states[column][people[low + i]] = after[column][i]
        if minted > UNITS_MAX:
            return OVERFLOW
        if minted < 0 or minted < total:
            return UNBALANCED
        mints[period] = minted + season_minted
        totals[1] += minted + season_minted
        totals[2] += minted - total + season_burned
    return OK


def join(player: int, begin: Numbers, at: int, states: Numbers, on_ladder: Numbers, totals: Numbers) -> None:
    """Add a player to the ladder, with the state at index `at` of `begin`."""
    on_ladder[player] = 1
    for column in range(len(states)):
        states[column][player] = begin[column][at]
    totals[0] += begin[0][at]


# compiled: numba takes flat arrays, so every array is an argument
def adjust(
    at: int,
    player: int,
    states: Numbers,
    constants: Numbers,
    totals: Numbers,
    units: Numbers,
    enters: Numbers,
    before: Numbers,
) -> bool:
    """Apply the adjustment at index `at`. Return whether the player's state stays within bounds.

    `before` receives the player's earlier state. If a version takes effect, `units` receives the points that it gives.
    """
    for column in range(len(states)):
        before[column][at] = states[column][player]
    if not enters[at]:
        states[0][player] += units[at]
        totals[3] += units[at]
        return not abs(states[0][player]) > UNITS_MAX
    state = enter(take_state(states, player), constants)
    is_within = True
    for column in range(len(states)):
        states[column][player] = state[column]
        is_within = is_within and abs(state[column]) <= UNITS_MAX
    units[at] = states[0][player] - before[0][at]
    totals[1] += max(units[at], 0)
    totals[2] += max(-units[at], 0)
    return is_within


# compiled: numba takes flat arrays, so every array is an argument
def run_ladders(
    constants: Numbers,
    table: Numbers,
    ladder_from: Numbers,
    slot_from: Numbers,
    names_from: Numbers,
    offset: Numbers,
    number: Numbers,
    columns: Numbers,
    begin: Numbers,
    states: Numbers,
    games: Numbers,
    on_ladder: Numbers,
    totals: Numbers,
    stopped: Numbers,
    current: Numbers,
    change: Numbers,
    before: Numbers,
    mints: Numbers,
    none: Numbers,
    no_states: Numbers,
) -> None:
    """Run `run_ladder` for every ladder of `gather`, without adjustments: `none` and `no_states` are empty.

    `totals` has a row for each ladder, and `stopped` the result.
    """
    for ladder in range(len(ladder_from) - 1):
        stopped[ladder] = run_ladder(
            constants,
            table,
            0,
            ladder_from[ladder + 1] - ladder_from[ladder],
            begin,
            offset,
            number,
            columns,
            ladder_from[ladder] + ladder,
            slot_from[ladder],
            names_from[ladder],
            states,
            games,
            on_ladder,
            totals[ladder],
            current,
            change,
            no_states,
            before,
            mints,
            ladder_from[ladder],
            none,
            none,
            none,
            none,
            no_states,
            no_states,
        )


def chance(points: int, others: int, constants: Numbers, table: Numbers) -> int:
    """Stand in for a rule's function of this name, as `score` does."""
    raise NotImplementedError


# compiled: numba takes flat arrays, so every array is an argument
def predict(
    constants: Numbers,
    table: Numbers,
    first: int,
    last: int,
    offset: Numbers,
    place: Numbers,
    before: Numbers,
    counts: Numbers,
    sums: Numbers,
) -> int:
    """Compare a rule's expected scores with the results of every two players, for the games from `first` up to `last`.

    Returns `OK`, or the game in which an expected score is not between 0 and 1.

    counts: is added to: pairs, pairs that are not tied, twice the correct predictions, and games without places
    sums:   sums of squares and of losses; each has a second part, the rounding error of the first
    """
    for game in range(first, last):
        placed = 1
        for slot in range(offset[game], offset[game + 1]):
            placed = placed if place[slot] > 0 else 0
        counts[3] += 1 - placed
        for i in range(offset[game], offset[game + 1] if placed else 0):
            for j in range(i + 1, offset[game + 1]):
                expectation = chance(before[i], before[j], constants, table) | 0
                if expectation <= 0 or expectation >= ONE:
                    return game
                expected = expectation / ONE
                counts[0] += 1
                if place[i] == place[j]:
                    add_exactly(sums, 0, (expected - 0.5) ** 2)
                    add_exactly(sums, 2, -0.5 * log(expected) - 0.5 * log(1 - expected))
                    continue
                is_win = place[i] < place[j]
                add_exactly(sums, 0, (expected - 1.0) ** 2 if is_win else expected**2)
                add_exactly(sums, 2, -log(expected) if is_win else -log(1 - expected))
                counts[1] += 1
                if before[i] == before[j]:
                    counts[2] += 1
                elif (before[i] > before[j]) == is_win:
                    counts[2] += 2
    return OK


def add_exactly(sums: Numbers, at: int, value: float) -> None:
    """Add a number to a compensated sum (A. Neumaier, Z. angew. Math. Mech. 54, 1974)."""
    before, after = sums[at], sums[at] + value
    sums[at] = after
    sums[at + 1] += (before - after) + value if abs(before) >= abs(value) else (value - after) + before


def compute_changes(
    number: Numbers,
    before: Numbers,
    adjusted_at: Numbers,
    adjusted_player: Numbers,
    adjusted_before: Numbers,
    points: Numbers,
    changes: Numbers,
) -> None:
    """Fill in the change of points of every slot, and rewind `points` from the end to the beginning.

    adjusted_at: by adjustment, the slot that it precedes
    """
    at = len(adjusted_at) - 1
    for slot in range(len(before) - 1, -1, -1):
        while at >= 0 and adjusted_at[at] > slot:
            points[adjusted_player[at]] = adjusted_before[at]
            at -= 1
        player = number[slot]
        changes[slot] = points[player] - before[slot]
        points[player] = before[slot]


def sort_slots(number: Numbers, first: Numbers, order: Numbers) -> None:
    """Sort the slots by player: those of player p are `order[first[p]:first[p + 1]]`; `first` comes zeroed."""
    count_slots(number, first)
    sort_some_slots(number, 0, first, order)


def find_first_slots(number: Numbers, first: Numbers) -> None:
    """Fill in the first slot of every player who has one."""
    for slot in range(len(number) - 1, -1, -1):
        first[number[slot]] = slot


def count_slots(number: Numbers, first: Numbers) -> None:
    """Fill in where the slots of every player begin if they are sorted by player, and where the last ones end.

    `first` comes zeroed.
    """
    for slot in range(len(number)):
        first[number[slot] + 1] += 1
    for player in range(1, len(first)):
        first[player] += first[player - 1]


def sort_some_slots(number: Numbers, low: int, first: Numbers, order: Numbers) -> None:
    """Sort the slots of some players, from number `low` on; `first` holds where theirs begin in the order of all."""
    players = len(first) - 1
    begin = first[0]
    for slot in range(len(number)):
        player = number[slot] - low
        if 0 <= player < players:
            order[first[player] - begin] = slot
            first[player] += 1
    for player in range(players, 0, -1):
        first[player] = first[player - 1]
    first[0] = begin
