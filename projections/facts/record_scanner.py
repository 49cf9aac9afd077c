"""Read records of plain games byte by byte into columns. `projections.facts.bulk_decoding` compiles this module.

A game is plain if its record has only the members below, all players have places or whole scores, no seat changed
hands, no text needs a backslash, and the game is valid by `ledger.events.game_types.placing`. All other records are
left to the general decoder. Callers check the validity of names. The code is plain Python over bytes and integers.

A record is accepted only in canonical form: its members are in order, and numbers and times are written as the program
writes them.
"""

from typing import Any

from ratings_ledger.ledger.events.canonical import INTEGER_MAX
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.projections.contract import MISSING

Numbers = Any  # an array of integers, or bytes
# In the functions below, `text` is the bytes of a page. A word is named by its index in `WORDS`: word i is the bytes
# `words[word_from[i]:word_from[i + 1]]`.

TOP = ("by", "data", "id", "occurred_at", "position", "recorded_at", "schema_version", "type")
DATA = (
    "aborted",
    "city",
    "game",
    "game_id",
    "group",
    "kind",
    "league",
    "participants",
    "rated",
    "score_order",
    "season",
)
PARTICIPANT = ("place", "player", "score", "seat", "seconds_played", "status")
OTHER_WORDS = ("game.recorded", "placing", "high", "low", "true", "false")
WORDS = (*TOP, *DATA, *PARTICIPANT, *OTHER_WORDS, *STATUSES)

BY, GAME_DATA, ID, OCCURRED, POSITION, RECORDED, SCHEMA, TYPE = range(8)
DATA_FROM = len(TOP)
ABORTED, CITY, GAME, GAME_ID, GROUP, KIND, LEAGUE, PARTICIPANTS, RATED, ORDER, SEASON = range(DATA_FROM, DATA_FROM + 11)
PARTICIPANT_FROM = DATA_FROM + len(DATA)
PLACE, PLAYER, SCORE, SEAT, SECONDS, STATUS = range(PARTICIPANT_FROM, PARTICIPANT_FROM + 6)
OTHER_WORDS_FROM = PARTICIPANT_FROM + len(PARTICIPANT)
GAME_RECORDED, PLACING, HIGH, LOW, TRUE, FALSE = range(OTHER_WORDS_FROM, OTHER_WORDS_FROM + 6)
STATUS_FROM = OTHER_WORDS_FROM + len(OTHER_WORDS)
SUBSTITUTE = STATUS_FROM + STATUSES.index("substitute")
# the members that every game has, as bits
REQUIRED_MEMBERS = sum(
    1 << member
    for member in (BY, GAME_DATA, ID, OCCURRED, POSITION, RECORDED, SCHEMA, TYPE, GAME_ID, PARTICIPANTS, GAME)
)
CELL_LABELS = (GAME, KIND, GROUP, CITY, LEAGUE, SEASON)
# A cell is a combination that many games share: the codes of its labels (-1 for none), the number of seats, and the
# flags (1 unrated, 2 aborted). Each game stores the code of its cell.
LABEL_COUNT = len(CELL_LABELS)
CELL_LENGTH = LABEL_COUNT + 2
LABEL_OF = tuple(CELL_LABELS.index(member) if member in CELL_LABELS else -1 for member in range(PARTICIPANT_FROM))

QUOTE, BACKSLASH, COMMA, COLON, NEWLINE, MINUS, DIGIT_0, DIGIT_9 = b'"\\,:\n-09'
# the index at which `parse_participant` stores each member
P_PLACE, P_PLAYER, P_SCORE, P_SEAT, P_SECONDS, P_STATUS = range(0, 12, 2)
LETTER_G, LETTER_A, LETTER_M, LETTER_E = b"game"
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, LETTER_T, LETTER_Z, POINT, SPACE, TILDE = b"{}[]TZ. ~"
NONE = -1
DIGITS_MAX = 16
GAME_ID_MAX, SEAT_MAX, SECONDS_MAX, PLACE_MAX = 123, 10_000, 10**9, 10_000
ID_MAX, BY_MAX, RECORD_MAX = 128, 2_000, 65_535
PARTICIPANT_BYTES = 14  # the length of the shortest possible participant
NAMES_MAX = RECORD_MAX // PARTICIPANT_BYTES  # the largest number of names in a record
INSTANT_BYTES = 27
DELETE, CONTROL_LEAD, CONTROL_FROM, CONTROL_UNTIL = 0x7F, 0xC2, 0x80, 0xA0  # U+0080 to U+009F are 0xC2 and one byte
PLAIN, PLAIN_IF_GAME_ID_IS_VALID = 1, 2  # the values of `plain`; 0 if not plain
DAY = 86_400_000_000


def find_string_end(text: Numbers, cursor: int) -> int:
    """Return the index of the closing quote of a string; -1 if the string has a backslash or a control character.

    `cursor` is the index after the opening quote.
    """
    while text[cursor] != QUOTE:
        if text[cursor] == BACKSLASH or text[cursor] < SPACE:
            return -1
        cursor += 1
    return cursor


def match_word(text: Numbers, begin: int, end: int, words: Numbers, word_from: Numbers, first: int, last: int) -> int:
    """Return the word that equals `text[begin:end]`, among the words `first` to `last` - 1; -1 without such a word."""
    length = end - begin
    for index in range(first, last):
        word_begin = word_from[index]
        if word_from[index + 1] - word_begin == length:
            matched = 0
            while matched < length and text[begin + matched] == words[word_begin + matched]:
                matched += 1
            if matched == length:
                return index
    return -1


def match_member(text: Numbers, cursor: int, words: Numbers, word_from: Numbers, first: int, last: int) -> int:
    """Return the word at the cursor, one of the words `first` to `last` - 1, if a quote follows it; else -1."""
    for index in range(first, last):
        begin = word_from[index]
        length = word_from[index + 1] - begin
        matched = 0
        while matched < length and text[cursor + matched] == words[begin + matched]:
            matched += 1
        if matched == length and text[cursor + matched] == QUOTE:
            return index
    return -1


def find_number_end(text: Numbers, cursor: int) -> int:
    """Return the end of the whole number at the cursor; -1 without one, or if it is too long or not canonical."""
    digits_begin = cursor + (text[cursor] == MINUS)
    cursor = digits_begin
    while DIGIT_0 <= text[cursor] <= DIGIT_9:
        cursor += 1
    if text[digits_begin] == DIGIT_0 and (cursor > digits_begin + 1 or text[digits_begin - 1] == MINUS):
        return -1
    return (
        cursor
        if digits_begin < cursor <= digits_begin + DIGITS_MAX and (text[cursor] == COMMA or text[cursor] == CLOSE)
        else -1
    )


def parse_number(text: Numbers, begin: int, end: int) -> int:
    """Return the whole number `text[begin:end]`."""
    value = 0
    is_negative = text[begin] == MINUS
    for index in range(begin + 1 if is_negative else begin, end):
        value = value * 10 + (text[index] - DIGIT_0)
    return -value if is_negative else value


def is_instant(text: Numbers, begin: int, end: int) -> bool:
    """Tell whether a text has the form of a time in a record, such as 2010-03-05T19:30:00.000000Z."""
    if end - begin != INSTANT_BYTES:
        return False
    for index in range(INSTANT_BYTES):
        character = text[begin + index]
        if index == 4 or index == 7:
            fits = character == MINUS
        elif index == 13 or index == 16:
            fits = character == COLON
        elif index == 10:
            fits = character == LETTER_T
        elif index == 19:
            fits = character == POINT
        elif index == 26:
            fits = character == LETTER_Z
        else:
            fits = DIGIT_0 <= character <= DIGIT_9
        if not fits:
            return False
    return True


def parse_record_time(text: Numbers, begin: int, end: int) -> int:
    """Return the microseconds since 1970 of a time in a record; -(2**63) for an invalid time."""
    if not is_instant(text, begin, end):
        return -(2**63)
    year, month, day = (
        parse_number(text, begin, begin + 4),
        parse_number(text, begin + 5, begin + 7),
        parse_number(text, begin + 8, begin + 10),
    )
    hour, minute, second = (
        parse_number(text, begin + 11, begin + 13),
        parse_number(text, begin + 14, begin + 16),
        parse_number(text, begin + 17, begin + 19),
    )
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    month_days = 30 + (month + month // 8) % 2 if month != 2 else 28 + leap
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= month_days or hour > 23 or minute > 59 or second > 59:
        return -(2**63)
    # count days in years that begin in March, so that a leap day is the last day of a year
    march_year = year - (month <= 2)
    era = march_year // 400
    year_of_era = march_year - era * 400
    day_of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    epoch_days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    return (
        epoch_days * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + parse_number(text, begin + 20, begin + 26)
    )


def hash_text(text: Numbers, begin: int, end: int) -> int:
    """Return a hash of `text[begin:end]`, at least 0."""
    code = 0
    for index in range(begin, end):
        code = (code * 131 + text[index]) & 0xFFFF_FFFF_FFFF
    return code ^ (code >> 17)


# compiled: numba takes no objects that hold arrays, so every array is an argument
def intern_text(
    text: Numbers, begin: int, end: int, known_count: int, table: Numbers, pool: Numbers, begins: Numbers, ends: Numbers
) -> int:
    """Return the code of a text. A new text gets the next code, `known_count`; -1 if there is no room for it.

    The text with code c is `pool[begins[c]:ends[c]]`. `table` is a hash table whose length is a power of two; an entry
    is a code plus 1, or 0 if empty.
    """
    table_size = len(table)
    bucket = hash_text(text, begin, end) & (table_size - 1)
    while table[bucket]:
        code = table[bucket] - 1
        pool_begin = begins[code]
        if ends[code] - pool_begin == end - begin:
            matched = 0
            while begin + matched < end and text[begin + matched] == pool[pool_begin + matched]:
                matched += 1
            if begin + matched == end:
                return int(code)
        bucket = bucket + 1 if bucket + 1 < table_size else 0
    pool_begin = ends[known_count - 1] if known_count else 0
    if known_count == len(begins) or pool_begin + end - begin > len(pool):
        return -1
    table[bucket] = known_count + 1
    for index in range(begin, end):
        pool[pool_begin + index - begin] = text[index]
    begins[known_count], ends[known_count] = pool_begin, pool_begin + end - begin
    return known_count


def rebuild_text_table(known_count: int, table: Numbers, pool: Numbers, begins: Numbers, ends: Numbers) -> None:
    """Fill a new hash table with the known texts. The table must be filled with 0."""
    table_size = len(table)
    for code in range(known_count):
        bucket = hash_text(pool, begins[code], ends[code]) & (table_size - 1)
        while table[bucket]:
            bucket = bucket + 1 if bucket + 1 < table_size else 0
        table[bucket] = code + 1


def hash_cell(cell: Numbers, table_size: int) -> int:
    """Return the bucket at which to start the search for a cell in a hash table."""
    code = 0
    for index in range(CELL_LENGTH):
        code = (code * 1_000_003 + cell[index] + 1) & 0xFF_FFFF_FFFF
    return (code ^ (code >> 17)) & (table_size - 1)


def intern_cell(cell: Numbers, known_count: int, table: Numbers, cells: Numbers) -> int:
    """Return the code of a cell. A new cell gets the next code, `known_count`."""
    table_size = len(table)
    bucket = hash_cell(cell, table_size)
    while table[bucket]:
        code = table[bucket] - 1
        matched = 0
        while matched < CELL_LENGTH and cells[code, matched] == cell[matched]:
            matched += 1
        if matched == CELL_LENGTH:
            return int(code)
        bucket = bucket + 1 if bucket + 1 < table_size else 0
    table[bucket] = known_count + 1
    for index in range(CELL_LENGTH):
        cells[known_count, index] = cell[index]
    return known_count


def rebuild_cell_table(known_count: int, table: Numbers, cells: Numbers) -> None:
    """Fill a new hash table with the known cells. The table must be filled with 0."""
    table_size = len(table)
    for code in range(known_count):
        bucket = hash_cell(cells[code], table_size)
        while table[bucket]:
            bucket = bucket + 1 if bucket + 1 < table_size else 0
        table[bucket] = code + 1


def is_plain_id(text: Numbers, begin: int, end: int, length_max: int) -> bool:
    """Tell whether an id needs no further checks: printable ASCII without spaces, neither empty nor too long."""
    for index in range(begin, end):
        if not SPACE < text[index] <= TILDE:
            return False
    return 0 < end - begin <= length_max


def is_plain_by(text: Numbers, begin: int, end: int) -> bool:
    """Tell whether a recorder's name needs no further checks: no control characters, neither empty nor too long."""
    for index in range(begin, end):  # `find_string_end` excludes the control characters below the space
        if text[index] == DELETE or (text[index] == CONTROL_LEAD and CONTROL_FROM <= text[index + 1] < CONTROL_UNTIL):
            return False
    return 0 < end - begin <= BY_MAX


def find_default_event_id_end(text: Numbers, cursor: int, game_id_begin: int, game_id_end: int) -> int:
    """Return the end of the default event id, `game:` and the game's id, at the cursor; -1 for any other id.

    The game's id is `text[game_id_begin:game_id_end]`.
    """
    has_prefix = (
        text[cursor] == LETTER_G
        and text[cursor + 1] == LETTER_A
        and text[cursor + 2] == LETTER_M
        and text[cursor + 3] == LETTER_E
    )
    if not has_prefix or text[cursor + 4] != COLON:
        return -1
    shift = cursor + 5 - game_id_begin
    matched = game_id_begin
    while matched < game_id_end and text[shift + matched] == text[matched]:
        matched += 1
    return shift + matched if matched == game_id_end and text[shift + matched] == QUOTE else -1


def parse_participant(text: Numbers, cursor: int, words: Numbers, word_from: Numbers, values: Numbers) -> int:
    """Parse the participant at the cursor. Return its end, or -1 if it is not plain.

    `values` receives a pair for each member: the begin and end of a string, or a number and 1; (-1, -1) if absent.
    """
    for index in range(len(values)):
        values[index] = NONE
    if text[cursor] != OPEN:
        return -1
    first_member = PARTICIPANT_FROM
    while text[cursor] != CLOSE:
        if text[cursor + 1] != QUOTE:
            return -1
        cursor += 2  # skip the brace or comma, and the quote
        member = match_member(text, cursor, words, word_from, first_member, OTHER_WORDS_FROM)
        if member < 0:
            return -1  # the member is unknown, out of order, or a duplicate
        cursor += word_from[member + 1] - word_from[member] + 1
        if text[cursor] != COLON:
            return -1
        cursor += 1
        first_member = member + 1
        value_index = 2 * (member - PARTICIPANT_FROM)
        if member in (PLAYER, STATUS):
            if text[cursor] != QUOTE:
                return -1
            end = find_string_end(text, cursor + 1)
            if end < 0:
                return -1
            values[value_index] = cursor + 1
            values[value_index + 1] = end
            cursor = end + 1
        else:
            end = find_number_end(text, cursor)
            if end < 0:
                return -1
            values[value_index] = parse_number(text, cursor, end)
            values[value_index + 1] = 1
            cursor = end
        if text[cursor] != COMMA and text[cursor] != CLOSE:
            return -1
    return cursor + 1


def rank_seats(keys: Numbers, first: int, last: int, sign: int, places: Numbers) -> None:
    """Fill in the places (1, 2, 2, 4) of participants `first` to `last` - 1 by keys. With `sign` -1, high keys win."""
    for own in range(first, last):
        rank = 1
        for opponent in range(first, last):
            if sign * keys[opponent] < sign * keys[own]:
                rank += 1
        places[own] = rank


def is_valid_ranking(
    keys: Numbers,
    score_keys: Numbers,
    players: Numbers,
    competition_places: Numbers,
    first: int,
    last: int,
    result_kind: int,
) -> bool:
    """Tell whether the participants `first` to `last` - 1 form a valid game.

    A player must not occur twice. Places must have no gap (1, 2, 2, 4 or 1, 2, 2, 3). A better place must not have a
    worse score.

    result_kind: 0 if the keys are scores, 1 if they are places, 2 if they are places and `score_keys` has scores
    score_keys:  the scores, or their negatives if a high score is better
    """
    are_competition_places, distinct_keys, key_max = True, 0, 0
    for own in range(first, last):
        is_new_key = True
        for opponent in range(first, own):
            if players[opponent] == players[own]:
                return False
            if keys[opponent] == keys[own]:
                is_new_key = False
            elif (
                result_kind == 2
                and (keys[opponent] < keys[own]) != (score_keys[opponent] < score_keys[own])
                and (score_keys[opponent] != score_keys[own])
            ):
                return False
        distinct_keys += is_new_key
        are_competition_places = are_competition_places and keys[own] == competition_places[own]
        key_max = max(key_max, keys[own])
        if result_kind and not 1 <= keys[own] <= PLACE_MAX:
            return False
    return result_kind == 0 or are_competition_places or key_max == distinct_keys


# compiled: numba takes no objects that hold arrays, so every array is an argument; long, because it walks over the
# bytes once and keeps its state in local variables
def scan(
    text: Numbers,
    after: int,
    schema_version: int,
    words: Numbers,
    word_from: Numbers,
    line_starts: Numbers,
    plain: Numbers,
    values: Numbers,
    cell: Numbers,
    keys: Numbers,
    score_keys: Numbers,
    occurred_at: Numbers,
    size: Numbers,
    cell_of_game: Numbers,
    game_id_spans: Numbers,
    player: Numbers,
    place: Numbers,
    status: Numbers,
    seat: Numbers,
    seconds: Numbers,
    score: Numbers,
    name_table: Numbers,
    name_pool: Numbers,
    name_begins: Numbers,
    name_ends: Numbers,
    game_of_name: Numbers,
    label_table: Numbers,
    label_pool: Numbers,
    label_begins: Numbers,
    label_ends: Numbers,
    cell_table: Numbers,
    cells: Numbers,
    counts: Numbers,
) -> None:
    """Scan the records of a page, one per line, and fill in the columns of its plain games.

    The scan continues where the previous call stopped. It stops before a record whose names, labels or cell may not fit
    into the tables.

    after:        the position before the first record of the page
    line_starts:  the start of each line, and the end of the last one; a line ends after its newline
    plain:        receives `PLAIN`, `PLAIN_IF_GAME_ID_IS_VALID` or 0, by record
    values, cell, keys, score_keys: work space for a participant, for a cell, and for the slots of the page
    occurred_at, size, cell_of_game, game_id_spans: receive a value for each plain game
    player, place, status, seat, seconds, score: receive a value for each participant of the plain games
    name_table, label_table, cell_table: hash tables of the texts and cells, whose codes the columns use
    game_of_name: receives, for every new name, the number of plain games before the record where it first occurs
    counts:       updated: the numbers of participants, names, labels, cells, plain games and records read; and, not
                  updated, the number of names before the page
    """
    slot_count, known_names, known_labels, known_cells = int(counts[0]), int(counts[1]), int(counts[2]), int(counts[3])
    game_count, records_read, names_before = int(counts[4]), int(counts[5]), int(counts[6])
    for record in range(records_read, len(line_starts) - 1):
        if (
            known_names + NAMES_MAX > len(name_begins)
            or known_labels + LABEL_COUNT > len(label_begins)
            or name_ends[known_names - 1] * (known_names > 0) + RECORD_MAX > len(name_pool)
            or label_ends[known_labels - 1] * (known_labels > 0) + RECORD_MAX > len(label_pool)
            or known_cells == len(cells)
        ):
            break
        records_read += 1
        cursor = line_starts[record]
        plain[record] = 0
        is_plain = 1
        first_slot = slot_count
        new_names, new_labels = known_names, known_labels
        placed_count = scored_count = participant_count = 0
        sign, occurred = -1, -(2**63)
        for index in range(CELL_LENGTH):
            cell[index] = NONE
        cell[CELL_LENGTH - 1] = 0
        game_id_begin = game_id_stop = position = version = is_game = members = 0
        first_top_member, first_data_member = 0, DATA_FROM  # the first members that may still come, in order
        depth, is_after_brace = 0, 1  # depth 1: within the data member
        while is_plain and text[cursor] != NEWLINE:
            if text[cursor] == CLOSE:
                depth -= 1
                cursor += 1
                if depth < 0:
                    break
                continue
            if text[cursor] != (OPEN if is_after_brace else COMMA) or text[cursor + 1] != QUOTE:
                is_plain = 0
                break
            cursor, is_after_brace = cursor + 1, 0
            if depth:
                member = match_member(text, cursor + 1, words, word_from, first_data_member, PARTICIPANT_FROM)
                first_data_member = member + 1
            else:
                member = match_member(text, cursor + 1, words, word_from, first_top_member, DATA_FROM)
                first_top_member = member + 1
            if member < 0:
                is_plain = 0
                break
            cursor += word_from[member + 1] - word_from[member] + 2
            if text[cursor] != COLON:
                is_plain = 0
                break
            cursor += 1
            members |= 1 << member
            if member == GAME_DATA:
                depth = is_after_brace = 1
            elif member == PARTICIPANTS:
                is_plain = text[cursor] == OPEN_LIST
                while is_plain and text[cursor] != CLOSE_LIST:
                    if slot_count == len(player):
                        is_plain = 0
                        break
                    cursor = parse_participant(text, cursor + 1, words, word_from, values)
                    if cursor < 0 or (text[cursor] != COMMA and text[cursor] != CLOSE_LIST) or values[P_PLAYER] < 0:
                        is_plain = 0
                        break
                    code = intern_text(
                        text,
                        values[P_PLAYER],
                        values[P_PLAYER + 1],
                        new_names,
                        name_table,
                        name_pool,
                        name_begins,
                        name_ends,
                    )
                    if code < 0:
                        is_plain = 0  # the names do not fit, because the record is too long
                        break
                    if code == new_names:
                        game_of_name[code - names_before] = game_count
                        new_names += 1
                    player[slot_count] = code
                    placed_count += values[P_PLACE + 1] == 1
                    scored_count += values[P_SCORE + 1] == 1
                    keys[slot_count] = values[P_PLACE] if values[P_PLACE + 1] == 1 else values[P_SCORE]
                    score_keys[slot_count] = values[P_SCORE]
                    is_plain = (
                        (values[P_SCORE + 1] != 1 or -INTEGER_MAX <= values[P_SCORE] <= INTEGER_MAX)
                        and (values[P_SEAT + 1] != 1 or 1 <= values[P_SEAT] <= SEAT_MAX)
                        and (values[P_SECONDS + 1] != 1 or 0 <= values[P_SECONDS] <= SECONDS_MAX)
                    )
                    score[slot_count] = values[P_SCORE] if is_plain and values[P_SCORE + 1] == 1 else MISSING
                    seat[slot_count] = values[P_SEAT] if is_plain else NONE
                    seconds[slot_count] = values[P_SECONDS] if is_plain else NONE
                    status[slot_count] = 0
                    if values[P_STATUS] >= 0:
                        status_word = match_word(
                            text,
                            values[P_STATUS],
                            values[P_STATUS + 1],
                            words,
                            word_from,
                            STATUS_FROM,
                            len(word_from) - 1,
                        )
                        # a substitute names the player replaced, so the participant is not plain
                        is_plain = is_plain and status_word >= 0 and status_word != SUBSTITUTE
                        status[slot_count] = status_word - STATUS_FROM
                    slot_count += 1
                    participant_count += 1
                if is_plain:
                    cursor += 1
            elif member in (RATED, ABORTED):
                end = cursor
                while text[end] > COMMA and text[end] != CLOSE and text[end] != NEWLINE:
                    end += 1
                truth_word = match_word(text, cursor, end, words, word_from, TRUE, FALSE + 1)
                is_plain = truth_word >= 0
                if member == RATED and truth_word == FALSE:
                    cell[CELL_LENGTH - 1] |= 1
                elif member == ABORTED and truth_word == TRUE:
                    cell[CELL_LENGTH - 1] |= 2
                cursor = end
            elif member in (POSITION, SCHEMA):
                end = find_number_end(text, cursor)
                if end < 0:
                    is_plain = 0
                    break
                if member == POSITION:
                    position = parse_number(text, cursor, end)
                else:
                    version = parse_number(text, cursor, end)
                cursor = end
            else:
                if text[cursor] != QUOTE:
                    is_plain = 0
                    break
                if member in (OCCURRED, RECORDED):
                    end = cursor + 1 + INSTANT_BYTES
                    parsed_time = parse_record_time(text, cursor + 1, end)
                    if member == OCCURRED:
                        occurred = parsed_time
                    is_plain = parsed_time > -(2**63) and text[end] == QUOTE
                    cursor = end + 1
                    continue
                end = find_default_event_id_end(text, cursor + 1, game_id_begin, game_id_stop) if member == ID else -1
                if end >= 0:
                    cursor = end + 1
                    continue
                end = find_string_end(text, cursor + 1)
                if end < 0:
                    is_plain = 0
                    break
                if LABEL_OF[member] >= 0:
                    code = intern_text(
                        text, cursor + 1, end, new_labels, label_table, label_pool, label_begins, label_ends
                    )
                    if code < 0:
                        is_plain = 0  # the labels do not fit, because the record is too long
                        break
                    new_labels += code == new_labels
                    cell[LABEL_OF[member]] = code
                    if member == KIND:
                        is_plain = match_word(text, cursor + 1, end, words, word_from, PLACING, PLACING + 1) >= 0
                elif member == GAME_ID:
                    game_id_begin, game_id_stop = cursor + 1, end
                elif member == ORDER:
                    order_word = match_word(text, cursor + 1, end, words, word_from, HIGH, LOW + 1)
                    is_plain = order_word >= 0
                    sign = 1 if order_word == LOW else -1
                elif member == BY:
                    is_plain = is_plain_by(text, cursor + 1, end)
                elif member == ID:
                    is_plain = is_plain_id(text, cursor + 1, end, ID_MAX)
                elif member == TYPE:
                    is_game = match_word(text, cursor + 1, end, words, word_from, GAME_RECORDED, GAME_RECORDED + 1) >= 0
                cursor = end + 1
        known_names, known_labels = new_names, new_labels
        has_full_result = participant_count > 1 and (
            (placed_count == participant_count and (scored_count == 0 or scored_count == participant_count))
            or (placed_count == 0 and scored_count == participant_count)
        )
        is_plain = (
            is_plain
            and depth < 0
            and text[cursor] == NEWLINE
            and members & REQUIRED_MEMBERS == REQUIRED_MEMBERS
            and cursor - line_starts[record] <= RECORD_MAX
        )
        if is_plain and has_full_result:
            rank_seats(keys, first_slot, slot_count, 1 if placed_count else sign, place)
            for slot in range(first_slot, slot_count):
                score_keys[slot] *= sign
            is_plain = is_valid_ranking(
                keys, score_keys, player, place, first_slot, slot_count, (placed_count > 0) * (1 + (scored_count > 0))
            )
        if (
            is_plain
            and has_full_result
            and is_game
            and version == schema_version
            and position == after + record + 1
            and occurred > -(2**63)
        ):
            plain[record] = (
                PLAIN if is_plain_id(text, game_id_begin, game_id_stop, GAME_ID_MAX) else PLAIN_IF_GAME_ID_IS_VALID
            )
            cell[LABEL_COUNT] = participant_count
            code = intern_cell(cell, known_cells, cell_table, cells)
            known_cells += code == known_cells
            occurred_at[game_count] = occurred
            size[game_count] = participant_count
            cell_of_game[game_count] = code
            game_id_spans[game_count, 0], game_id_spans[game_count, 1] = game_id_begin, game_id_stop
            game_count += 1
        else:
            slot_count = first_slot
    counts[0], counts[1], counts[2], counts[3], counts[4], counts[5] = (
        slot_count,
        known_names,
        known_labels,
        known_cells,
        game_count,
        records_read,
    )
