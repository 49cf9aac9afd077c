"""The loops over long histories: plain Python over preallocated integer arrays, so that they can be compiled.

`projections.compiling` runs them interpreted for short histories and compiled for long ones: same source, same numbers.
"""

from typing import Any

from ledger.events.games import STATUSES
from projections.contract import UNITS_MAX

Numbers = Any  # an array of integers, Python's or numpy's

SUBSTITUTE = STATUSES.index("substitute")
BOTH, LEAVER, ONLY_SUBSTITUTE, NEITHER = range(4)  # whom `substitution` counts when a seat changed hands
NOWHERE = -1
FAILED = -3  # a ladder that no loop got to
BOOKS = -2  # a game's changes sum to more than it minted
BOUNDS = -4  # somebody's points go out of bounds


def select_slots(
    rows: Numbers, cell: Numbers, occurred_at: Numbers, start: Numbers, count: Numbers, player: Numbers,
    person: Numbers, status: Numbers, replaced: Numbers, rank: Numbers, merged: int,
    since: Numbers, version_since: Numbers, frozen_at: Numbers, frozen: int, admitted: Numbers, cells: int,
    status_left_out: Numbers, substitution: Numbers, counted_min: Numbers,
    account_left_out: Numbers, account_from: Numbers, account_at: Numbers, account_code: Numbers,
    found_row: Numbers, found_version: Numbers, found_offset: Numbers, found_slot: Numbers,
) -> int:  # fmt: skip
    """The games of a ruleset among `rows`, in that order, with their counted participants by id; returns how many.

    rank:         for every player, the rank of their person's id among all ids
    merged:       whether two ids of a game may be one person
    since:        instants from which the versions `version_since` are in force, ascending
    frozen_at:    for every cell, the instant whose version scores it, if `frozen`
    admitted:     for every version and cell, whether the game is eligible and on a requested ladder
    status_left_out: for every version, the statuses that do not count, as bits; `account_left_out` likewise
    account_from: for every person, where their accounts begin in the next two, by time
    """
    games = 0
    slots = 0
    found_offset[0] = 0
    last = len(since) - 1
    for r in range(len(rows)):
        row = rows[r]
        in_cell = cell[row]
        played = occurred_at[row]
        instant = frozen_at[in_cell] if frozen else played
        at = last
        while since[at] > instant:
            at -= 1
        version = version_since[at]
        if version < 0 or not admitted[version * cells + in_cell]:
            continue
        first = slots
        for slot in range(start[row], start[row] + count[row]):
            of_status = status[slot]
            if status_left_out[version] >> of_status & 1:
                continue
            of_seat = substitution[version]
            changed_hands = replaced[slot] or of_status == SUBSTITUTE
            counts = of_seat == BOTH or (of_seat != NEITHER and (of_seat == LEAVER) != (of_status == SUBSTITUTE))
            if changed_hands and not counts:
                continue
            if account_left_out[version]:
                who = person[player[slot]]
                code = 0
                for k in range(account_from[who], account_from[who + 1]):
                    if account_at[k] <= played:
                        code = account_code[k]
                if account_left_out[version] >> code & 1:
                    continue
            # by id; there are only a few
            mine = rank[player[slot]]
            to = slots
            while to > first and rank[player[found_slot[to - 1]]] > mine:
                found_slot[to] = found_slot[to - 1]
                to -= 1
            found_slot[to] = slot
            slots += 1
        twice = 0
        if merged:
            for k in range(first + 1, slots):
                if rank[player[found_slot[k]]] == rank[player[found_slot[k - 1]]]:
                    twice = 1
        if slots - first < counted_min[version] or twice:
            slots = first
            continue
        found_row[games] = row
        found_version[games] = version
        games += 1
        found_offset[games] = slots
    return games


def spread(keys: Numbers, key_from: Numbers, key_ladders: Numbers, ladder_from: Numbers, ladder_games: Numbers) -> int:
    """The games of every ladder, in order: those of ladder L start at `ladder_from[L]`; returns how many.

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


def gather(
    ladder_from: Numbers, ladder_games: Numbers, found_row: Numbers, found_version: Numbers, found_offset: Numbers,
    found_slot: Numbers, row: Numbers, version: Numbers, size: Numbers, offset: Numbers, slot: Numbers,
    slot_from: Numbers,
) -> None:  # fmt: skip
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


def number_in_ladders(
    slot: Numbers, slot_from: Numbers, player: Numbers, person: Numbers, own: Numbers, number: Numbers, names: Numbers,
    names_from: Numbers,
) -> None:  # fmt: skip
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


def count_tied(slot: Numbers, row: Numbers, sizes: Numbers, start: Numbers, count: Numbers, place: Numbers,
         replaced: Numbers, found: Numbers) -> None:  # fmt: skip
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
    """A stand-in that compiled loops replace with the rule's scoring function."""
    raise NotImplementedError


def run_ladder(
    constants: Numbers, table: Numbers, first: int, last: int, offset: Numbers, number: Numbers,
    columns: Numbers, offset_at: int, slot_at: int, player_at: int, begin: Numbers, points: Numbers, games: Numbers,
    seen: Numbers, totals: Numbers, before: Numbers, change: Numbers, changes: Numbers, watch: int,
) -> int:  # fmt: skip
    """Score the games from `first` up to `last`; returns `NOWHERE`, or `BOOKS` or `BOUNDS` if it stopped. Raises what
    the rule raises.

    columns:   the rule's columns of all slots, one row each; `before` and `change` have room for one game
    offset_at: where the ladder's offsets are in `offset`, and its slots and players in the other arrays
    begin:     for every player, the points they begin with
    totals:    started, minted and burned, which are added to
    changes:   the change of every slot, or one for each game of the player `watch`; empty if not needed
    """
    keep = len(changes) > 0 and watch < 0
    for game in range(first, last):
        low = slot_at + offset[offset_at + game]
        n = slot_at + offset[offset_at + game + 1] - low
        for i in range(n):
            player = player_at + number[low + i]
            if not games[player] and not seen[player]:
                seen[player] = 1
                points[player] = begin[player]
                totals[0] += begin[player]
            before[i] = points[player]
            change[i] = 0
        # a rule that returns anything but a whole number is not compiled
        minted = score(n, before[:n], columns[:, low : low + n], constants, table, change[:n]) | 0
        total = 0
        for i in range(n):
            player = player_at + number[low + i]
            points[player] += change[i]
            if abs(points[player]) > UNITS_MAX:
                return BOUNDS
            if keep:
                changes[low + i] = change[i]
            elif player == watch:
                changes[games[player]] = change[i]
            games[player] += 1
            total += change[i]
        if minted > UNITS_MAX:
            return BOUNDS
        if minted < 0 or minted < total:
            return BOOKS
        totals[1] += minted
        totals[2] += minted - total
    return NOWHERE


def run_ladders(
    constants: Numbers, table: Numbers, ladder_from: Numbers, slot_from: Numbers, names_from: Numbers,
    offset: Numbers, number: Numbers, columns: Numbers, begin: Numbers, points: Numbers, games: Numbers, seen: Numbers,
    totals: Numbers, stopped: Numbers, before: Numbers, change: Numbers, changes: Numbers,
) -> None:  # fmt: skip
    """`run_ladder` for every ladder of `gather`, to its end; `totals` has a row for each, `stopped` its result."""
    for ladder in range(len(ladder_from) - 1):
        stopped[ladder] = run_ladder(
            constants, table, 0, ladder_from[ladder + 1] - ladder_from[ladder], offset, number, columns,
            ladder_from[ladder] + ladder, slot_from[ladder], names_from[ladder], begin, points, games, seen,
            totals[ladder], before, change, changes, NOWHERE,
        )  # fmt: skip
