"""Loop over the games of ladders: plain Python over preallocated integer arrays, so that numba can compile the loops.

`projections.compiling` interprets them for short histories and compiles them for long ones. Both give the same numbers.

A name that ends in `_from` or `offsets` is an array of bounds: the elements of item i run from its entry i up to, but
not including, its entry i + 1.
"""

from collections.abc import Callable
from math import log
from typing import Any

from ratings_ledger.projections.contract import MISSING, UNITS_MAX, Rule, StateValues
from ratings_ledger.projections.expected_scores import ONE

Numbers = Any  # an array of integers (sums: of doubles): `array.array`, a memoryview or numpy's

# the results of a loop over games or periods
OK = -1
UNBALANCED = -2  # the changes of a game or period sum to more than it minted, or it minted less than 0
NOT_RUN = -3  # the loop has not run yet
OVERFLOW = -4  # a game or period moved a state or the minted points beyond `UNITS_MAX`
ADJUSTMENT_OVERFLOW = -5  # an adjustment moved a state beyond `UNITS_MAX`

# the entries of `totals`: the points with which players joined, the points minted, burned and adjusted; the index of
# the next adjustment; the current game or period
START_TOTAL, MINTED, BURNED, ADJUSTED, NEXT_ADJUSTMENT, CURRENT = 0, 1, 2, 3, 4, 5
TOTALS_LENGTH = 6


def assign_games(
    keys: Numbers, key_offsets: Numbers, key_ladders: Numbers, ladder_from: Numbers, ladder_games: Numbers
) -> int:
    """List the games of each ladder in `ladder_games`, ladder by ladder. Return the number of games listed.

    keys:        by game, a key; games with the same key are on the same ladders
    key_ladders: the ladders of every key, bounded by `key_offsets`
    ladder_from: receives the bounds of the ladders in `ladder_games`; must be filled with 0
    """
    ladders = len(ladder_from) - 1
    for game in range(len(keys)):
        for index in range(key_offsets[keys[game]], key_offsets[keys[game] + 1]):
            ladder_from[key_ladders[index] + 1] += 1
    for ladder in range(ladders):
        ladder_from[ladder + 1] += ladder_from[ladder]
    total = int(ladder_from[ladders])
    for game in range(len(keys)):
        for index in range(key_offsets[keys[game]], key_offsets[keys[game] + 1]):
            ladder = key_ladders[index]
            ladder_games[ladder_from[ladder]] = game
            ladder_from[ladder] += 1
    for ladder in range(ladders, 0, -1):
        ladder_from[ladder] = ladder_from[ladder - 1]
    ladder_from[0] = 0
    return total


# compiled: numba takes flat arrays, so every array is an argument
def gather(
    ladder_from: Numbers,
    ladder_games: Numbers,
    source_rows: Numbers,
    source_versions: Numbers,
    source_offsets: Numbers,
    source_slots: Numbers,
    rows: Numbers,
    versions: Numbers,
    sizes: Numbers,
    offsets: Numbers,
    slots: Numbers,
    slot_from: Numbers,
) -> None:
    """Copy the games of all ladders and their slots from the `source_` arrays, ladder by ladder.

    Ladder L has one offset more than games. Its offsets start at `ladder_from[L] + L` in `offsets`, and are relative to
    `slot_from[L]`.
    """
    slot_count = 0
    for ladder in range(len(ladder_from) - 1):
        slot_from[ladder] = slot_count
        offsets[ladder_from[ladder] + ladder] = 0
        for entry in range(ladder_from[ladder], ladder_from[ladder + 1]):
            game = ladder_games[entry]
            rows[entry] = source_rows[game]
            versions[entry] = source_versions[game]
            sizes[entry] = source_offsets[game + 1] - source_offsets[game]
            for source_index in range(source_offsets[game], source_offsets[game + 1]):
                slots[slot_count] = source_slots[source_index]
                slot_count += 1
            offsets[entry + ladder + 1] = slot_count - slot_from[ladder]
    slot_from[len(ladder_from) - 1] = slot_count


# compiled: numba takes flat arrays, so every array is an argument
def number_persons(
    slots: Numbers,
    slot_from: Numbers,
    player_of_slot: Numbers,
    person_of_player: Numbers,
    number_of_person: Numbers,
    numbers: Numbers,
    persons: Numbers,
    persons_from: Numbers,
) -> None:
    """Number the persons of each ladder in the order of their first slots.

    number_of_person: work space with an entry for every person; must be filled with -1
    numbers:          receives, by slot, the number of the person on the ladder
    persons:          receives the persons of all ladders by number, bounded by `persons_from`
    """
    person_count = 0
    for ladder in range(len(slot_from) - 1):
        persons_from[ladder] = person_count
        for index in range(slot_from[ladder], slot_from[ladder + 1]):
            person = person_of_player[player_of_slot[slots[index]]]
            if number_of_person[person] < 0:
                number_of_person[person] = person_count - persons_from[ladder]
                persons[person_count] = person
                person_count += 1
            numbers[index] = number_of_person[person]
        for index in range(persons_from[ladder], person_count):
            number_of_person[persons[index]] = -1
    persons_from[len(slot_from) - 1] = person_count


def score(n: int, points: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers) -> int:
    """Stand in for a rule's scoring function. `compiling.compile_with_rule` replaces this function with the rule's."""
    raise NotImplementedError


def age(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
    """Return the state unchanged, for rules without this function."""
    return state


def new_season(state: StateValues, constants: Numbers) -> StateValues:
    """Return the state unchanged, for rules without this function."""
    return state


def enter(state: StateValues, constants: Numbers) -> StateValues:
    """Return the state unchanged, for rules without this function."""
    return state


def change_states(
    n: int, before: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers
) -> int:
    """Fill in how a game changes the states of its n players. Return the minted points.

    This function is for rules of contract 1, whose only state column is the points. `change` must be filled with 0.
    """
    return score(n, before[0][:n], columns, constants, table, change[0][:n])


def change_several_states(
    n: int, before: Numbers, columns: Numbers, constants: Numbers, table: Numbers, change: Numbers
) -> int:
    """Fill in the same changes as `change_states`, for rules of contract 2, which fill in the states after the game."""
    for column in range(count_columns(before)):
        for i in range(n):
            change[column][i] = before[column][i]
    minted = score(n, before[:, :n], columns, constants, table, change[:, :n])
    for column in range(count_columns(before)):
        for i in range(n):
            change[column][i] -= before[column][i]
    return minted


def count_columns(states: Numbers) -> int:
    """Return the number of state columns. Compiled code uses a constant instead, so that numba can unroll loops."""
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


def bring_forward(n: int, first_slot: int, states: Numbers, gaps: Numbers, constants: Numbers) -> tuple[int, int]:
    """Leave the states of n players unchanged, for rules that change nothing between games."""
    return 0, 0


def bring_states_forward(
    n: int, first_slot: int, states: Numbers, gaps: Numbers, constants: Numbers
) -> tuple[int, int]:
    """Bring the states of n players forward from their last games to the game whose slots start at `first_slot`.

    A new season is applied before the elapsed time. Returns the points that new seasons minted and burned.

    gaps: two rows by slot: 1 if a season begins, else 0; and the days or periods since the player's last game
    """
    minted = burned = 0
    for i in range(n):
        state = take_state(states, i)
        if gaps[0][first_slot + i] > 0:
            points = state[0]
            state = new_season(state, constants)
            minted += max(state[0] - points, 0)
            burned += max(points - state[0], 0)
        if gaps[1][first_slot + i] > 0:
            points = state[0]
            state = age(state, gaps[1][first_slot + i], constants)
            if state[0] != points:
                raise ValueError("`age` changed the first state column, which it must not change")
        for column in range(count_columns(states)):
            states[column][i] = state[column]
    return minted, burned


def take_state(states: Numbers, i: int) -> StateValues:
    """Return the state of one player, for rules with one state column. See `TAKE_STATE` for more columns."""
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


# by number of columns, because compiled code must know the length of a tuple
TAKE_STATE = (take_state, take_state, _take_two, _take_three, _take_four, _take_five, _take_six)


def find_rule_parts(rule: Rule) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return (name, function) pairs: a rule's replacements for the functions of this module."""
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
    offsets: Numbers,
    player_of_slot: Numbers,
    days: Numbers,
    seasons: Numbers,
    last_day: Numbers,
    last_season: Numbers,
    played: Numbers,
    games_before: Numbers,
    first_of_season: Numbers,
    changes_season: Numbers,
    days_since: Numbers,
) -> None:
    """Measure the gap between each slot and the player's previous game. Fills in each output that is not empty.

    days, seasons:   by game, its day and the number of its season
    last_day, last_season: by player, the day and season of the last game before these games; `MISSING` for new players
    played:          by player, the number of games before these games
    games_before:    output by slot: the player's number of earlier games
    first_of_season: output by slot: 1 for the player's first game of a season, else 0
    changes_season:  output by slot: the same, but 0 for the player's first game on the ladder
    days_since:      output by slot: days since the player's previous game; `MISSING` for the first game

    The `last_` arrays and `played` are updated to the end of the ladder, if an output that reads them is filled in.
    """
    fills_games_before, fills_days_since = len(games_before) > 0, len(days_since) > 0
    fills_first_of_season, fills_changes_season = len(first_of_season) > 0, len(changes_season) > 0
    for game in range(len(offsets) - 1):
        for slot in range(offsets[game], offsets[game + 1]):
            player = player_of_slot[slot]
            if fills_games_before:
                games_before[slot] = played[player]
            if fills_first_of_season:
                first_of_season[slot] = 0 if last_season[player] == seasons[game] else 1
            if fills_changes_season:
                changes_season[slot] = 0 if last_season[player] in (MISSING, seasons[game]) else 1
            if fills_days_since:
                days_since[slot] = MISSING if last_day[player] == MISSING else max(days[game] - last_day[player], 0)
        # update in a second pass, because a game is not earlier than itself
        for slot in range(offsets[game], offsets[game + 1]):
            player = player_of_slot[slot]
            if fills_games_before:
                played[player] += 1
            if fills_first_of_season or fills_changes_season:
                last_season[player] = seasons[game]
            if fills_days_since:
                last_day[player] = days[game]


# compiled: numba takes flat arrays, so every array is an argument; splitting the loop into calls would be too slow
def run_ladder(
    constants: Numbers,
    table: Numbers,
    first: int,
    stop: int,
    starting_states: Numbers,
    offsets: Numbers,
    player_of_slot: Numbers,
    columns: Numbers,
    offset_base: int,
    slot_base: int,
    player_base: int,
    states: Numbers,
    games: Numbers,
    on_ladder: Numbers,
    totals: Numbers,
    game_states: Numbers,
    changes: Numbers,
    gaps: Numbers,
    recorded_states: Numbers,
    mints: Numbers,
    mint_base: int,
    adjustment_games: Numbers,
    adjustment_players: Numbers,
    adjustment_units: Numbers,
    are_version_entries: Numbers,
    starting_states_of_adjustments: Numbers,
    states_before_adjustments: Numbers,
) -> int:
    """Score the games from `first` up to, but not including, `stop`. Apply each adjustment before the game it precedes.

    Adjustments that precede `stop` are applied, too. Returns `OK`, or the reason why the loop stopped: `UNBALANCED`,
    `OVERFLOW` or `ADJUSTMENT_OVERFLOW`. Raises the rule's errors.

    starting_states: by state column and player, the state with which the player joins
    columns:     the columns that the rule reads: a row for each, by slot
    offset_base, slot_base, player_base: the indices of the ladder's first offset, slot and player in arrays that
                 several ladders share; `mint_base` likewise for `mints`
    states:      by state column and player, the current state; column 0 holds the points
    games:       by player, the number of counted games
    on_ladder:   by player, 1 once the player has joined
    totals:      see `START_TOTAL`; updated
    game_states, changes: work space for the players of one game: their states before it, and the changes
    gaps:        see `bring_states_forward`
    recorded_states: receives, by state column and slot, the player's state before it is brought forward to the game;
                 may be empty
    mints:       receives the points that each game and the new seasons before it mint; may be empty
    adjustment_games, adjustment_players, adjustment_units, are_version_entries: by adjustment, the game that it
                 precedes, its player, its units, and whether it is a version entry: a mark that a new version takes
                 effect for the player
    starting_states_of_adjustments: by state column and adjustment, the state with which a new player joins
    states_before_adjustments: receives the player's state before each adjustment, by state column
    """
    # column 0 has its own code, because most rules have no other column
    points, game_points, point_changes, recorded_points = states[0], game_states[0], changes[0], recorded_states[0]
    records_states, width = len(recorded_points) > 0, count_columns(states)
    for game in range(first, stop + 1):
        totals[CURRENT] = game
        while totals[NEXT_ADJUSTMENT] < len(adjustment_games) and adjustment_games[totals[NEXT_ADJUSTMENT]] == game:
            index = totals[NEXT_ADJUSTMENT]
            target = adjustment_players[index]
            if not on_ladder[target]:
                join(target, starting_states_of_adjustments, index, states, on_ladder, totals)
            if not adjust(
                index,
                target,
                states,
                constants,
                totals,
                adjustment_units,
                are_version_entries,
                states_before_adjustments,
            ):
                return ADJUSTMENT_OVERFLOW
            totals[NEXT_ADJUSTMENT] += 1
        if game == stop:
            break
        first_slot = slot_base + offsets[offset_base + game]
        n = slot_base + offsets[offset_base + game + 1] - first_slot
        for i in range(n):
            player = player_base + player_of_slot[first_slot + i]
            if not games[player] and not on_ladder[player]:
                join(player, starting_states, player, states, on_ladder, totals)
            game_points[i] = points[player]
            point_changes[i] = 0
            if records_states:
                recorded_points[first_slot + i] = points[player]
        for column in range(1, width):
            for i in range(n):
                game_states[column][i] = states[column][player_base + player_of_slot[first_slot + i]]
                if records_states:
                    recorded_states[column][first_slot + i] = game_states[column][i]
        season_minted, season_burned = bring_forward(n, first_slot, game_states, gaps, constants)
        # `| 0` makes numba reject a rule that does not return an integer
        minted = change_states(n, game_states, columns[:, first_slot : first_slot + n], constants, table, changes) | 0
        changes_total = 0
        for i in range(n):
            player = player_base + player_of_slot[first_slot + i]
            state_after = game_points[i] + point_changes[i]
            if state_after > UNITS_MAX or state_after < -UNITS_MAX:
                return OVERFLOW
            points[player] = state_after
            games[player] += 1
            changes_total += point_changes[i]
        for column in range(1, width):
            for i in range(n):
                state_after = game_states[column][i] + changes[column][i]
                if state_after > UNITS_MAX or state_after < -UNITS_MAX:
                    return OVERFLOW
                states[column][player_base + player_of_slot[first_slot + i]] = state_after
        if minted > UNITS_MAX:
            return OVERFLOW
        if minted < 0 or minted < changes_total:
            return UNBALANCED
        if len(mints) and minted + season_minted:  # zeroed pages take no memory until they are written
            mints[mint_base + game] = minted + season_minted
        totals[MINTED] += minted + season_minted
        totals[BURNED] += minted - changes_total + season_burned
    return OK


def score_period(
    players: int, before: Numbers, offsets: Numbers, rows: Numbers, constants: Numbers, table: Numbers, after: Numbers
) -> int:
    """Stand in for a rule's `score_period`, like `score` for its scoring function."""
    raise NotImplementedError


# compiled: numba takes flat arrays, so every array is an argument
def run_periods(
    constants: Numbers,
    table: Numbers,
    first: int,
    stop: int,
    starting_states: Numbers,
    people: Numbers,
    people_from: Numbers,
    rows_from: Numbers,
    rows: Numbers,
    states: Numbers,
    on_ladder: Numbers,
    totals: Numbers,
    period_states: Numbers,
    states_after: Numbers,
    offsets: Numbers,
    gaps: Numbers,
    recorded_states: Numbers,
    mints: Numbers,
    adjustment_periods: Numbers,
    adjustment_players: Numbers,
    adjustment_units: Numbers,
    are_version_entries: Numbers,
    starting_states_of_adjustments: Numbers,
    states_before_adjustments: Numbers,
) -> int:
    """Score the periods from `first` up to, but not including, `stop`.

    Apply each adjustment before the period it precedes, even if this is `stop`. Returns and raises the same as
    `run_ladder`. Arguments with the same names have the same meaning.

    people, people_from, rows, rows_from: see `periods.ResultRows`
    period_states, states_after: work space for the players of one period: their states before and after it
    offsets:     work space for the bounds of each player's rows within the period
    gaps, recorded_states: as in `run_ladder`, but by index of `people`
    mints:       receives the points that each period and the new seasons before it mint
    adjustment_periods: by adjustment, the period that it precedes
    """
    width = len(states)
    for period in range(first, stop + 1):
        totals[CURRENT] = period
        while totals[NEXT_ADJUSTMENT] < len(adjustment_periods):
            if adjustment_periods[totals[NEXT_ADJUSTMENT]] != period:
                break
            index = totals[NEXT_ADJUSTMENT]
            target = adjustment_players[index]
            if not on_ladder[target]:
                join(target, starting_states_of_adjustments, index, states, on_ladder, totals)
            if not adjust(
                index,
                target,
                states,
                constants,
                totals,
                adjustment_units,
                are_version_entries,
                states_before_adjustments,
            ):
                return ADJUSTMENT_OVERFLOW
            totals[NEXT_ADJUSTMENT] += 1
        if period == stop:
            break
        first_entry = people_from[period]
        n = people_from[period + 1] - first_entry
        for i in range(n):
            player = people[first_entry + i]
            if not on_ladder[player]:
                join(player, starting_states, player, states, on_ladder, totals)
            offsets[i] = rows_from[first_entry + i] - rows_from[first_entry]
            for column in range(width):
                period_states[column][i] = states[column][player]
                recorded_states[column][first_entry + i] = states[column][player]
        offsets[n] = rows_from[first_entry + n] - rows_from[first_entry]
        season_minted, season_burned = bring_forward(n, first_entry, period_states, gaps, constants)
        for column in range(width):
            for i in range(n):
                states_after[column][i] = period_states[column][i]
        results = rows[:, rows_from[first_entry] : rows_from[first_entry + n]]
        # `| 0` makes numba reject a rule that does not return an integer
        minted = (
            score_period(n, period_states[:, :n], offsets[: n + 1], results, constants, table, states_after[:, :n]) | 0
        )
        changes_total = 0
        for i in range(n):
            changes_total += states_after[0][i] - period_states[0][i]
            for column in range(width):
                if states_after[column][i] > UNITS_MAX or states_after[column][i] < -UNITS_MAX:
                    return OVERFLOW
                states[column][people[first_entry + i]] = states_after[column][i]
        if minted > UNITS_MAX:
            return OVERFLOW
        if minted < 0 or minted < changes_total:
            return UNBALANCED
        mints[period] = minted + season_minted
        totals[MINTED] += minted + season_minted
        totals[BURNED] += minted - changes_total + season_burned
    return OK


def join(
    player: int, starting_states: Numbers, index: int, states: Numbers, on_ladder: Numbers, totals: Numbers
) -> None:
    """Add a player to the ladder, with the state at an index of `starting_states`."""
    on_ladder[player] = 1
    for column in range(len(states)):
        states[column][player] = starting_states[column][index]
    totals[START_TOTAL] += starting_states[0][index]


# compiled: numba takes flat arrays, so every array is an argument
def adjust(
    index: int,
    player: int,
    states: Numbers,
    constants: Numbers,
    totals: Numbers,
    units: Numbers,
    are_version_entries: Numbers,
    before: Numbers,
) -> bool:
    """Apply the adjustment at an index. Return whether the player's state stays within bounds.

    `before` receives the player's state before the adjustment. For a version entry, `units` receives the change of
    points.
    """
    for column in range(len(states)):
        before[column][index] = states[column][player]
    if not are_version_entries[index]:
        states[0][player] += units[index]
        totals[ADJUSTED] += units[index]
        return not abs(states[0][player]) > UNITS_MAX
    state = enter(take_state(states, player), constants)
    is_within = True
    for column in range(len(states)):
        states[column][player] = state[column]
        is_within = is_within and abs(state[column]) <= UNITS_MAX
    units[index] = states[0][player] - before[0][index]
    totals[MINTED] += max(units[index], 0)
    totals[BURNED] += max(-units[index], 0)
    return is_within


# compiled: numba takes flat arrays, so every array is an argument
def run_ladders(
    constants: Numbers,
    table: Numbers,
    ladder_from: Numbers,
    slot_from: Numbers,
    persons_from: Numbers,
    offsets: Numbers,
    player_of_slot: Numbers,
    columns: Numbers,
    starting_states: Numbers,
    states: Numbers,
    games: Numbers,
    on_ladder: Numbers,
    totals: Numbers,
    results: Numbers,
    game_states: Numbers,
    changes: Numbers,
    recorded_states: Numbers,
    mints: Numbers,
    no_adjustments: Numbers,
    no_states: Numbers,
) -> None:
    """Run `run_ladder` for every ladder that `gather` copied, without adjustments.

    totals:  a row for each ladder
    results: receives the result of `run_ladder` for each ladder
    no_adjustments, no_states: empty arrays
    """
    for ladder in range(len(ladder_from) - 1):
        results[ladder] = run_ladder(
            constants,
            table,
            0,
            ladder_from[ladder + 1] - ladder_from[ladder],
            starting_states,
            offsets,
            player_of_slot,
            columns,
            ladder_from[ladder] + ladder,
            slot_from[ladder],
            persons_from[ladder],
            states,
            games,
            on_ladder,
            totals[ladder],
            game_states,
            changes,
            no_states,
            recorded_states,
            mints,
            ladder_from[ladder],
            no_adjustments,
            no_adjustments,
            no_adjustments,
            no_adjustments,
            no_states,
            no_states,
        )


def chance(points: int, opponent_points: int, constants: Numbers, table: Numbers) -> int:
    """Stand in for a rule's `chance`, like `score` for its scoring function."""
    raise NotImplementedError


# compiled: numba takes flat arrays, so every array is an argument
def predict(
    constants: Numbers,
    table: Numbers,
    first: int,
    stop: int,
    offsets: Numbers,
    places: Numbers,
    points: Numbers,
    counts: Numbers,
    sums: Numbers,
) -> int:
    """Compare expected scores with results, for every pair of players in the games from `first` up to `stop`.

    The game `stop` is not included. Returns `OK`, or the first game with an expected score that is not strictly between
    0 and 1.

    points: by slot, the player's points before the game
    counts: updated: [0] pairs, [1] pairs without a tie, [2] twice the number of these that were predicted correctly
            (a pair with equal points counts half), [3] games without places
    sums:   updated: the sums of [0] squared errors and [2] log losses, each followed by the rounding error of the sum
    """
    for game in range(first, stop):
        has_places = 1
        for slot in range(offsets[game], offsets[game + 1]):
            has_places = has_places if places[slot] > 0 else 0
        counts[3] += 1 - has_places
        for i in range(offsets[game], offsets[game + 1] if has_places else 0):
            for j in range(i + 1, offsets[game + 1]):
                expectation = chance(points[i], points[j], constants, table) | 0
                if expectation <= 0 or expectation >= ONE:
                    return game
                expected = expectation / ONE
                counts[0] += 1
                if places[i] == places[j]:
                    add_to_sum(sums, 0, (expected - 0.5) ** 2)
                    add_to_sum(sums, 2, -0.5 * log(expected) - 0.5 * log(1 - expected))
                    continue
                first_wins = places[i] < places[j]
                add_to_sum(sums, 0, (expected - 1.0) ** 2 if first_wins else expected**2)
                add_to_sum(sums, 2, -log(expected) if first_wins else -log(1 - expected))
                counts[1] += 1
                if points[i] == points[j]:
                    counts[2] += 1
                elif (points[i] > points[j]) == first_wins:
                    counts[2] += 2
    return OK


def add_to_sum(sums: Numbers, index: int, addend: float) -> None:
    """Add a number to the compensated sum at this index (A. Neumaier, Z. angew. Math. Mech. 54, 1974)."""
    before, after = sums[index], sums[index] + addend
    sums[index] = after
    sums[index + 1] += (before - after) + addend if abs(before) >= abs(addend) else (addend - after) + before


def compute_changes(
    player_of_slot: Numbers,
    points_before: Numbers,
    adjustment_slots: Numbers,
    adjustment_players: Numbers,
    points_before_adjustments: Numbers,
    points: Numbers,
    changes: Numbers,
) -> None:
    """Fill in the change of points of every slot. Rewinds `points` from the end of the ladder to the start.

    adjustment_slots: by adjustment, the slot that it precedes
    """
    adjustment = len(adjustment_slots) - 1
    for slot in range(len(points_before) - 1, -1, -1):
        while adjustment >= 0 and adjustment_slots[adjustment] > slot:
            points[adjustment_players[adjustment]] = points_before_adjustments[adjustment]
            adjustment -= 1
        player = player_of_slot[slot]
        changes[slot] = points[player] - points_before[slot]
        points[player] = points_before[slot]


def sort_slots(player_of_slot: Numbers, slots_from: Numbers, sorted_slots: Numbers) -> None:
    """Sort the slots by player. `slots_from` receives the bounds of each player's slots; it must be filled with 0."""
    count_slots(player_of_slot, slots_from)
    sort_some_slots(player_of_slot, 0, slots_from, sorted_slots)


def find_first_slots(player_of_slot: Numbers, first_slots: Numbers) -> None:
    """Fill in the first slot of every player who has a slot."""
    for slot in range(len(player_of_slot) - 1, -1, -1):
        first_slots[player_of_slot[slot]] = slot


def count_slots(player_of_slot: Numbers, slots_from: Numbers) -> None:
    """Fill in where each player's slots begin and end if sorted by player. `slots_from` must be filled with 0."""
    for slot in range(len(player_of_slot)):
        slots_from[player_of_slot[slot] + 1] += 1
    for player in range(1, len(slots_from)):
        slots_from[player] += slots_from[player - 1]


def sort_some_slots(player_of_slot: Numbers, first_player: int, slots_from: Numbers, sorted_slots: Numbers) -> None:
    """Sort the slots of consecutive players, from `first_player` on.

    `slots_from` has the bounds of these players' slots among the sorted slots of all players.
    """
    player_count = len(slots_from) - 1
    first_position = slots_from[0]
    for slot in range(len(player_of_slot)):
        index = player_of_slot[slot] - first_player
        if 0 <= index < player_count:
            sorted_slots[slots_from[index] - first_position] = slot
            slots_from[index] += 1
    for index in range(player_count, 0, -1):
        slots_from[index] = slots_from[index - 1]
    slots_from[0] = first_position
