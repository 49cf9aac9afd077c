"""The loops over long histories: plain Python over preallocated integer arrays, so that they can be compiled.

`projections.compiling` runs them interpreted for short histories and compiled for long ones: same source, same numbers.
"""

from collections.abc import Callable
from math import log
from typing import Any

from ratings_ledger.projections.contract import MISSING, UNITS_MAX, Rule, StateValues
from ratings_ledger.projections.expected_scores import ONE

Numbers = Any  # an array of integers, Python's or numpy's

NOWHERE = -1
FAILED = -3  # a ladder that no loop got to
BOOKS = -2  # a game's changes sum to more than it minted
BOUNDS = -4  # somebody's points go out of bounds
ADJUSTED = -5  # by an adjustment


def spread(keys: Numbers, key_from: Numbers, key_ladders: Numbers, ladder_from: Numbers, ladder_games: Numbers) -> int:
    """Return the games of every ladder, in order: those of ladder L start at `ladder_from[L]`; returns how many.

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


# compiled: what it works on comes as flat arrays, one by one
def gather(
    ladder_from: Numbers,
    ladder_games: Numbers,
    found_row: Numbers,
    found_version: Numbers,
    found_offset: Numbers,
    found_slot: Numbers,
    row: Numbers,
    version: Numbers,
    size: Numbers,
    offset: Numbers,
    slot: Numbers,
    slot_from: Numbers,
) -> None:
    """Every ladder's games, ladder after ladder.

    The offsets of ladder L, one more than it has games, begin at `ladder_from[L] + L` and count from `slot_from[L]`.
    """
    slots = 0
    for ladder in range(len(ladder_from) - 1):
        slot_from[ladder] = slots
        offset[ladder_from[ladder] + ladder] = 0
        for at in range(ladder_from[ladder], ladder_from[ladder + 1]):
            game = ladder_games[at]
            row[at] = found_row[game]
            version[at] = found_version[game]
            size[at] = found_offset[game + 1] - found_offset[game]
            for k in range(found_offset[game], found_offset[game + 1]):
                slot[slots] = found_slot[k]
                slots += 1
            offset[at + ladder + 1] = slots - slot_from[ladder]
    slot_from[len(ladder_from) - 1] = slots


# compiled: what it works on comes as flat arrays, one by one
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
    """Number the participants per ladder, in the order in which they join it.

    `own` has room for every person and comes filled with -1; `names` are persons by number from `names_from[L]` on.
    """
    people = 0
    for ladder in range(len(slot_from) - 1):
        names_from[ladder] = people
        for k in range(slot_from[ladder], slot_from[ladder + 1]):
            who = person[player[slot[k]]]
            if own[who] < 0:
                own[who] = people - names_from[ladder]
                names[people] = who
                people += 1
            number[k] = own[who]
        for k in range(names_from[ladder], people):
            own[names[k]] = NOWHERE
    names_from[len(slot_from) - 1] = people


# compiled: what it works on comes as flat arrays, one by one
def count_tied(
    slot: Numbers,
    row: Numbers,
    sizes: Numbers,
    start: Numbers,
    count: Numbers,
    place: Numbers,
    replaced: Numbers,
    found: Numbers,
) -> None:
    """For every slot, the number of seats at its place in its game; a seat that changed hands counts once.

    Game g has `sizes[g]` of the slots, game after game.
    """
    at = 0
    for g in range(len(row)):
        first = start[row[g]]
        for k in range(at, at + sizes[g]):
            seats = 0
            for other in range(first, first + count[row[g]]):
                if not replaced[other] and place[other] == place[slot[k]]:
                    seats += 1
            found[k] = seats
        at += sizes[g]


def score(n: int, points: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers) -> int:
    """Return a stand-in for a rule's scoring function: `compiling.around` puts that in its place."""
    raise NotImplementedError


def age(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
    """Return a state as it is: a stand-in for a rule's function of this name, as `score` is."""
    return state


def new_season(state: StateValues, constants: Numbers) -> StateValues:
    """Return a state as it is: a stand-in for a rule's function of this name, as `score` is."""
    return state


def enter(state: StateValues, constants: Numbers) -> StateValues:
    """Return a state as it is: a stand-in for a rule's function of this name, as `score` is."""
    return state


def change_states(
    n: int, before: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers
) -> int:
    """Fill in by how much the states of n players change by a game, and return what it minted; `change` comes zeroed.

    A rule of contract 1 has one column, the points.
    """
    return score(n, before[0][:n], columns, constants, table, change[0][:n])


def change_several_states(
    n: int, before: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers
) -> int:
    """Do the same for a rule of contract 2, which fills in the states after the game."""
    for column in range(count_columns(before)):
        for i in range(n):
            change[column][i] = before[column][i]
    minted = score(n, before[:, :n], columns, constants, table, change[:, :n])
    for column in range(count_columns(before)):
        for i in range(n):
            change[column][i] -= before[column][i]
    return minted


def count_columns(states: Numbers) -> int:
    """Return how many numbers a player has: compiled, a constant, with which loops over columns are unrolled."""
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


def bring_forward(n: int, low: int, given: Numbers, gaps: Numbers, constants: Numbers) -> tuple[int, int]:
    """Leave the states of n players as their last games left them: no rule of contract 1 changes any in between."""
    return 0, 0


def bring_states_forward(n: int, low: int, given: Numbers, gaps: Numbers, constants: Numbers) -> tuple[int, int]:
    """Bring the states of n players from their last games to the game whose slots begin at `low`.

    A new season begins, then the whole gap passes. Returns by how much the points grew and shrank, which are minted
    and burned. gaps: for every slot whether a season begins, and the time elapsed since the player's last game, if any.
    """
    minted = burned = 0
    for i in range(n):
        state = take_state(given, i)
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
        for column in range(count_columns(given)):
            given[column][i] = state[column]
    return minted, burned


def take_state(given: Numbers, i: int) -> StateValues:
    """Return the state of a player in the game in work: of one column, as `TAKE_STATE` has it for more."""
    return (given[0][i],)


def _take_two(given: Numbers, i: int) -> StateValues:
    return given[0][i], given[1][i]


def _take_three(given: Numbers, i: int) -> StateValues:
    return given[0][i], given[1][i], given[2][i]


def _take_four(given: Numbers, i: int) -> StateValues:
    return given[0][i], given[1][i], given[2][i], given[3][i]


def _take_five(given: Numbers, i: int) -> StateValues:
    return given[0][i], given[1][i], given[2][i], given[3][i], given[4][i]


def _take_six(given: Numbers, i: int) -> StateValues:
    return given[0][i], given[1][i], given[2][i], given[3][i], given[4][i], given[5][i]


# by the number of columns: compiled code has to know how long a tuple is
TAKE_STATE = (take_state, take_state, _take_two, _take_three, _take_four, _take_five, _take_six)


def parts_of(rule: Rule) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return what takes the place of functions of this module, by name, where the loop runs for a rule."""
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


# compiled: what it works on comes as flat arrays, one by one
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
    """Fill in for every slot what lies before it: the player's earlier games, whether it is the first of a season,
    whether an earlier season lies before that, and the days since the last game, `MISSING` before the first one. A
    column that is not needed comes empty.

    `day` and `season` are by game. The next three are by player and hold what was before the first game, `MISSING` for
    who had not played; those that needed columns are made from are left as after the last.
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
        for slot in range(offset[game], offset[game + 1]):  # apart: nobody's own game lies before it
            player = number[slot]
            if counts:
                played[player] += 1
            if seasons or changes:
                last_season[player] = season[game]
            if days:
                last_day[player] = day[game]


# compiled: what it works on comes as flat arrays, one by one; a call for each part of a game would cost more than it
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
    seen: Numbers,
    totals: Numbers,
    given: Numbers,
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

    Returns `NOWHERE`, or why it stopped: `BOOKS`, `BOUNDS` or `ADJUSTED`. Raises what the rule raises.

    states:    by state column, what every player has; the books are kept of column 0, the points
    begin:     the same, what they begin with
    columns:   the rule's columns of all slots, one row each; `given` and `change` have room for the states of one game
    offset_at: where the ladder's offsets are in `offset`, and its slots and players in the other arrays
    totals:    started, minted, burned and adjusted, which are added to; the next adjustment, and the game in work
    gaps:      as `bring_states_forward` has it
    before:    receives every slot's states as the player's last game left them, and `mints` from `mints_at` on what was
               minted with a game; or both are empty
    adjusted_at: for every adjustment up to here the game it comes before; then whose, how much, whether a version takes
                 effect with it, their begin, and what they had, by state column
    """
    # column 0 apart: nearly all rules have no other
    points, points_given, points_change, points_before = states[0], given[0], change[0], before[0]
    is_kept, width = len(points_before) > 0, count_columns(states)
    for game in range(first, last + 1):
        totals[5] = game
        while totals[4] < len(adjusted_at) and adjusted_at[totals[4]] == game:
            at, who = totals[4], adjusted_player[totals[4]]
            if not seen[who]:
                join(who, adjusted_begin, at, states, seen, totals)
            if not adjust(at, who, states, constants, totals, adjusted_units, adjusted_enters, adjusted_before):
                return ADJUSTED
            totals[4] += 1
        if game == last:
            break
        low = slot_at + offset[offset_at + game]
        n = slot_at + offset[offset_at + game + 1] - low
        for i in range(n):
            player = player_at + number[low + i]
            if not games[player] and not seen[player]:
                join(player, begin, player, states, seen, totals)
            points_given[i] = points[player]
            points_change[i] = 0
            if is_kept:
                points_before[low + i] = points[player]
        for column in range(1, width):
            for i in range(n):
                given[column][i] = states[column][player_at + number[low + i]]
                if is_kept:
                    before[column][low + i] = given[column][i]
        added, taken = bring_forward(n, low, given, gaps, constants)
        # a rule that returns anything but a whole number is not compiled
        minted = change_states(n, given, columns[:, low : low + n], constants, table, change) | 0
        total = 0
        for i in range(n):
            player = player_at + number[low + i]
            after = points_given[i] + points_change[i]
            if after > UNITS_MAX or after < -UNITS_MAX:
                return BOUNDS
            points[player] = after
            games[player] += 1
            total += points_change[i]
        for column in range(1, width):
            for i in range(n):
                after = given[column][i] + change[column][i]
                if after > UNITS_MAX or after < -UNITS_MAX:
                    return BOUNDS
                states[column][player_at + number[low + i]] = after
        if minted > UNITS_MAX:
            return BOUNDS
        if minted < 0 or minted < total:
            return BOOKS
        if len(mints) and minted + added:  # they come zeroed: what is not written takes no memory
            mints[mints_at + game] = minted + added
        totals[1] += minted + added
        totals[2] += minted - total + taken
    return NOWHERE


def score_period(
    players: int, before: Numbers, offsets: Numbers, rows: Numbers, constants: Numbers, table: Numbers, after: Numbers
) -> int:
    """Return a stand-in for a rule's function of this name, as `score` is."""
    raise NotImplementedError


# compiled: what it works on comes as flat arrays, one by one
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
    seen: Numbers,
    totals: Numbers,
    given: Numbers,
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

    Returns and raises what `run_ladder` does, whose arguments of these names it takes.

    people:    period by period those who played, as `periods.ResultRows` has them, with where each one's rows begin
    offsets:   has room for where the rows of one period's players begin
    gaps, before: as for `run_ladder`, of everybody in `people`; `mints` receives what each period minted
    adjusted_at: for every adjustment the period it comes before
    """
    width = len(states)
    for period in range(first, last + 1):
        totals[5] = period
        while totals[4] < len(adjusted_at) and adjusted_at[totals[4]] == period:
            at, who = totals[4], adjusted_player[totals[4]]
            if not seen[who]:
                join(who, adjusted_begin, at, states, seen, totals)
            if not adjust(at, who, states, constants, totals, adjusted_units, adjusted_enters, adjusted_before):
                return ADJUSTED
            totals[4] += 1
        if period == last:
            break
        low = people_from[period]
        n = people_from[period + 1] - low
        for i in range(n):
            player = people[low + i]
            if not seen[player]:
                join(player, begin, player, states, seen, totals)
            offsets[i] = rows_from[low + i] - rows_from[low]
            for column in range(width):
                given[column][i] = states[column][player]
                before[column][low + i] = states[column][player]
        offsets[n] = rows_from[low + n] - rows_from[low]
        added, taken = bring_forward(n, low, given, gaps, constants)
        for column in range(width):
            for i in range(n):
                after[column][i] = given[column][i]
        results = rows[:, rows_from[low] : rows_from[low + n]]
        # a rule that returns anything but a whole number is not compiled
        minted = score_period(n, given[:, :n], offsets[: n + 1], results, constants, table, after[:, :n]) | 0
        total = 0
        for i in range(n):
            total += after[0][i] - given[0][i]
            for column in range(width):
                if after[column][i] > UNITS_MAX or after[column][i] < -UNITS_MAX:
                    return BOUNDS
                states[column][people[low + i]] = after[column][i]
        if minted > UNITS_MAX:
            return BOUNDS
        if minted < 0 or minted < total:
            return BOOKS
        mints[period] = minted + added
        totals[1] += minted + added
        totals[2] += minted - total + taken
    return NOWHERE


def join(player: int, begin: Numbers, at: int, states: Numbers, seen: Numbers, totals: Numbers) -> None:
    """Put somebody on the ladder, with the states at `at` in the columns of `begin`."""
    seen[player] = 1
    for column in range(len(states)):
        states[column][player] = begin[column][at]
    totals[0] += begin[0][at]


# compiled: what it works on comes as flat arrays, one by one
def adjust(
    at: int,
    who: int,
    states: Numbers,
    constants: Numbers,
    totals: Numbers,
    units: Numbers,
    enters: Numbers,
    before: Numbers,
) -> bool:
    """Carry out the adjustment at `at`; return whether the player's states stay within bounds.

    `before` receives what they had, and `units` the points that a version gives which takes effect.
    """
    for column in range(len(states)):
        before[column][at] = states[column][who]
    if not enters[at]:
        states[0][who] += units[at]
        totals[3] += units[at]
        return not abs(states[0][who]) > UNITS_MAX
    state = enter(take_state(states, who), constants)
    is_within = True
    for column in range(len(states)):
        states[column][who] = state[column]
        is_within = is_within and abs(state[column]) <= UNITS_MAX
    units[at] = states[0][who] - before[0][at]
    totals[1] += max(units[at], 0)
    totals[2] += max(-units[at], 0)
    return is_within


# compiled: what it works on comes as flat arrays, one by one
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
    seen: Numbers,
    totals: Numbers,
    stopped: Numbers,
    given: Numbers,
    change: Numbers,
    before: Numbers,
    mints: Numbers,
    none: Numbers,
    no_states: Numbers,
) -> None:
    """`run_ladder` for every ladder of `gather`, to its end, without adjustments (`none` and `no_states` are empty).

    `totals` has a row for each, `stopped` its result.
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
            seen,
            totals[ladder],
            given,
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
    """Return a stand-in for a rule's function of this name, as `score` is."""
    raise NotImplementedError


# compiled: what it works on comes as flat arrays, one by one
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
    """Compare what a rule expects of every two players of a game with what came out, for the games from `first` up to
    `last`. Returns `NOWHERE`, or the game where the rule expects something that is not between 0 and 1.

    counts: is added to: pairs, those that are not tied, twice those foreseen, and games without places
    sums:   of squares and of losses, each in two parts, of which the second is what the first lost by rounding
    """
    for game in range(first, last):
        placed = 1
        for slot in range(offset[game], offset[game + 1]):
            placed = placed if place[slot] > 0 else 0
        counts[3] += 1 - placed
        for i in range(offset[game], offset[game + 1] if placed else 0):
            for j in range(i + 1, offset[game + 1]):
                told = chance(before[i], before[j], constants, table) | 0
                if told <= 0 or told >= ONE:
                    return game
                expected = told / ONE
                counts[0] += 1
                if place[i] == place[j]:
                    add(sums, 0, (expected - 0.5) ** 2)
                    add(sums, 2, -0.5 * log(expected) - 0.5 * log(1 - expected))
                    continue
                won = place[i] < place[j]
                add(sums, 0, (expected - 1.0) ** 2 if won else expected**2)
                add(sums, 2, -log(expected) if won else -log(1 - expected))
                counts[1] += 1
                if before[i] == before[j]:
                    counts[2] += 1
                elif (before[i] > before[j]) == won:
                    counts[2] += 2
    return NOWHERE


def add(sums: Numbers, at: int, value: float) -> None:
    """Add a number without losing what rounding takes (A. Neumaier, Z. angew. Math. Mech. 54, 1974)."""
    before, after = sums[at], sums[at] + value
    sums[at] = after
    sums[at + 1] += (before - after) + value if abs(before) >= abs(value) else (value - after) + before


def changes_of(
    number: Numbers,
    before: Numbers,
    adjusted_at: Numbers,
    adjusted_player: Numbers,
    adjusted_before: Numbers,
    points: Numbers,
    changes: Numbers,
) -> None:
    """What every slot gave; from everybody's `points` at the end back to what they began with.

    adjusted_at: for every adjustment the slot that it comes before
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
    """The slots player by player, in order: those of player p are `order[first[p]:first[p + 1]]`; `first` is zeroed."""
    count_slots(number, first)
    sort_some_slots(number, 0, first, order)


def first_slots(number: Numbers, found: Numbers) -> None:
    """The first slot of every player who has any."""
    for slot in range(len(number) - 1, -1, -1):
        found[number[slot]] = slot


def count_slots(number: Numbers, first: Numbers) -> None:
    """Where the slots of every player begin if they are put player by player, and those of the last end; `first` is
    zeroed."""
    for slot in range(len(number)):
        first[number[slot] + 1] += 1
    for player in range(1, len(first)):
        first[player] += first[player - 1]


def sort_some_slots(number: Numbers, low: int, first: Numbers, order: Numbers) -> None:
    """The slots of the players from `low` on, as many as `first` says of, from `first[0]` on."""
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
