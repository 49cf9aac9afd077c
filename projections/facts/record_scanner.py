"""Reads records of plain games byte by byte into columns; compiled by `projections.facts.bulk_decoding`.

A game is plain if it is placed or scored in whole numbers, no seat changed hands, no text needs a backslash, and
everything that `ledger.events.game_types.placing` asks of a game holds; whatever does not fit is left to the general
decoder, and never guessed at. Only the validity of names is not checked here. Plain Python over bytes and integers.

A record is only accepted in canonical form: members in order, numbers and times as they would be written.
"""

from typing import Any

from ratings_ledger.ledger.events.canonical import INTEGER_MAX
from ratings_ledger.ledger.events.games import STATUSES

Numbers = Any  # an array of integers, or bytes

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
OTHERS = ("game.recorded", "placing", "high", "low", "true", "false")
WORDS = (*TOP, *DATA, *PARTICIPANT, *OTHERS, *STATUSES)

BY, WHOLE, ID, OCCURRED, POSITION, RECORDED, SCHEMA, TYPE = range(8)
DATA_FROM = len(TOP)
ABORTED, CITY, GAME, GAME_ID, GROUP, KIND, LEAGUE, PARTICIPANTS, RATED, ORDER, SEASON = range(DATA_FROM, DATA_FROM + 11)
PARTICIPANT_FROM = DATA_FROM + len(DATA)
PLACE, PLAYER, SCORE, SEAT, SECONDS, STATUS = range(PARTICIPANT_FROM, PARTICIPANT_FROM + 6)
OTHERS_FROM = PARTICIPANT_FROM + len(PARTICIPANT)
GAME_RECORDED, PLACING, HIGH, LOW, TRUE, FALSE = range(OTHERS_FROM, OTHERS_FROM + 6)
STATUS_FROM = OTHERS_FROM + len(OTHERS)
SUBSTITUTE = STATUS_FROM + STATUSES.index("substitute")
# the members every game has
NEEDED = sum(
    1 << member for member in (BY, WHOLE, ID, OCCURRED, POSITION, RECORDED, SCHEMA, TYPE, GAME_ID, PARTICIPANTS, GAME)
)
IN_CELL = (GAME, KIND, GROUP, CITY, LEAGUE, SEASON)
# of a cell, followed by its seats, and whether it is unrated or aborted, as bits
LABELS = len(IN_CELL)
CELL = LABELS + 2
LABEL_OF = tuple(IN_CELL.index(member) if member in IN_CELL else -1 for member in range(PARTICIPANT_FROM))

QUOTE, BACKSLASH, COMMA, COLON, NEWLINE, MINUS, DIGIT_0, DIGIT_9 = b'"\\,:\n-09'
# where `participant` puts each member
P_PLACE, P_PLAYER, P_SCORE, P_SEAT, P_SECONDS, P_STATUS = range(0, 12, 2)
LETTER_G, LETTER_A, LETTER_M, LETTER_E = b"game"
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, LETTER_T, LETTER_Z, POINT, SPACE, TILDE = b"{}[]TZ. ~"
NONE = -1
MISSING = -(2**62)  # a score that is not there
DIGITS_MAX = 16
GAME_ID_MAX, SEAT_MAX, SECONDS_MAX, PLACE_MAX = 123, 10_000, 10**9, 10_000
ID_MAX, BY_MAX, RECORD_MAX = 128, 2_000, 65_535
PARTICIPANT_BYTES = 14  # at least
NAMES_MAX = RECORD_MAX // PARTICIPANT_BYTES  # of a record
INSTANT_BYTES = 27
DELETE, OF_CONTROL, CONTROL_FROM, CONTROL_UNTIL = 0x7F, 0xC2, 0x80, 0xA0  # the last three: how U+0080 to U+009F begin
PLAIN, LOOKED_AT = 1, 2  # the second: plain if the game's id is valid
DAY = 86_400_000_000


def string_end(text: Numbers, at: int) -> int:
    """Return where the string that begins at `at`, after its quote, ends; -1 if it has a backslash or a control
    character.
    """
    while text[at] != QUOTE:
        if text[at] == BACKSLASH or text[at] < SPACE:
            return -1
        at += 1
    return at


def word(text: Numbers, at: int, end: int, words: Numbers, word_from: Numbers, first: int, last: int) -> int:
    """Return which of the words from `first` up to `last` is there; -1 if none."""
    length = end - at
    for index in range(first, last):
        begin = word_from[index]
        if word_from[index + 1] - begin == length:
            same = 0
            while same < length and text[at + same] == words[begin + same]:
                same += 1
            if same == length:
                return index
    return -1


def member(text: Numbers, at: int, words: Numbers, word_from: Numbers, first: int, last: int) -> int:
    """Return which of the words from `first` up to `last` is there, up to a quote; -1 if none."""
    for index in range(first, last):
        begin = word_from[index]
        length = word_from[index + 1] - begin
        same = 0
        while same < length and text[at + same] == words[begin + same]:
            same += 1
        if same == length and text[at + same] == QUOTE:
            return index
    return -1


def number_end(text: Numbers, at: int) -> int:
    """Return where the whole number that begins at `at` ends; -1 if there is none, or it is too long."""
    start = at + (text[at] == MINUS)
    at = start
    while DIGIT_0 <= text[at] <= DIGIT_9:
        at += 1
    if text[start] == DIGIT_0 and (at > start + 1 or text[start - 1] == MINUS):
        return -1
    return at if start < at <= start + DIGITS_MAX and (text[at] == COMMA or text[at] == CLOSE) else -1


def number(text: Numbers, at: int, end: int) -> int:
    """Return the whole number from `at` up to `end`."""
    value = 0
    negative = text[at] == MINUS
    for place in range(at + 1 if negative else at, end):
        value = value * 10 + (text[place] - DIGIT_0)
    return -value if negative else value


def is_instant(text: Numbers, at: int, end: int) -> bool:
    """Tell whether a time has the record's form, such as 2010-03-05T19:30:00.000000Z, whatever its numbers."""
    if end - at != INSTANT_BYTES:
        return False
    for place in range(INSTANT_BYTES):
        character = text[at + place]
        if place == 4 or place == 7:
            fits = character == MINUS
        elif place == 13 or place == 16:
            fits = character == COLON
        elif place == 10:
            fits = character == LETTER_T
        elif place == 19:
            fits = character == POINT
        elif place == 26:
            fits = character == LETTER_Z
        else:
            fits = DIGIT_0 <= character <= DIGIT_9
        if not fits:
            return False
    return True


def instant(text: Numbers, at: int, end: int) -> int:
    """Microseconds since 1970 of a time in the record's form; -(2**63) for any other."""
    if not is_instant(text, at, end):
        return -(2**63)
    year, month, day = number(text, at, at + 4), number(text, at + 5, at + 7), number(text, at + 8, at + 10)
    hour, minute, second = (
        number(text, at + 11, at + 13),
        number(text, at + 14, at + 16),
        number(text, at + 17, at + 19),
    )
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 30 + (month + month // 8) % 2 if month != 2 else 28 + leap
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= days or hour > 23 or minute > 59 or second > 59:
        return -(2**63)
    # days since 1970 in years that begin in March
    since = year - (month <= 2)
    era = since // 400
    of_era = since - era * 400
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + number(text, at + 20, at + 26)


def mixed(text: Numbers, at: int, end: int) -> int:
    """Return a text as a number from 0 on, similar for similar texts."""
    code = 0
    for place in range(at, end):
        code = (code * 131 + text[place]) & 0xFFFF_FFFF_FFFF
    return code ^ (code >> 17)


# compiled: what it works on comes as flat arrays, one by one
def interned(
    text: Numbers, at: int, end: int, known: int, table: Numbers, pool: Numbers, begins: Numbers, ends: Numbers
) -> int:
    """Return the code of a text: its own if it is one of the `known`, which the hash table finds, otherwise the next;
    -1 if there is no room for it.

    The texts are in `pool`; `begins` and `ends` say where, by code. The table's length is a power of two.
    """
    size = len(table)
    bucket = mixed(text, at, end) & (size - 1)
    while table[bucket]:
        code = table[bucket] - 1
        begin = begins[code]
        if ends[code] - begin == end - at:
            same = 0
            while at + same < end and text[at + same] == pool[begin + same]:
                same += 1
            if at + same == end:
                return int(code)
        bucket = bucket + 1 if bucket + 1 < size else 0
    begin = ends[known - 1] if known else 0
    if known == len(begins) or begin + end - at > len(pool):
        return -1
    table[bucket] = known + 1
    for place in range(at, end):
        pool[begin + place - at] = text[place]
    begins[known], ends[known] = begin, begin + end - at
    return known


def file_texts(known: int, table: Numbers, pool: Numbers, begins: Numbers, ends: Numbers) -> None:
    """Fill a new, zeroed hash table with the known texts."""
    size = len(table)
    for code in range(known):
        bucket = mixed(pool, begins[code], ends[code]) & (size - 1)
        while table[bucket]:
            bucket = bucket + 1 if bucket + 1 < size else 0
        table[bucket] = code + 1


def cell_bucket(cell: Numbers, size: int) -> int:
    """Return where a hash table of that size has a cell, or the next free bucket."""
    code = 0
    for part in range(CELL):
        code = (code * 1_000_003 + cell[part] + 1) & 0xFF_FFFF_FFFF
    return (code ^ (code >> 17)) & (size - 1)


def cell_code(cell: Numbers, known: int, table: Numbers, cells: Numbers) -> int:
    """Return the code of a cell, like that of a text."""
    size = len(table)
    bucket = cell_bucket(cell, size)
    while table[bucket]:
        code = table[bucket] - 1
        same = 0
        while same < CELL and cells[code, same] == cell[same]:
            same += 1
        if same == CELL:
            return int(code)
        bucket = bucket + 1 if bucket + 1 < size else 0
    table[bucket] = known + 1
    for part in range(CELL):
        cells[known, part] = cell[part]
    return known


def file_cells(known: int, table: Numbers, cells: Numbers) -> None:
    """Fill a new, zeroed hash table with the known cells."""
    size = len(table)
    for code in range(known):
        bucket = cell_bucket(cells[code], size)
        while table[bucket]:
            bucket = bucket + 1 if bucket + 1 < size else 0
        table[bucket] = code + 1


def is_plain_id(text: Numbers, at: int, end: int, most: int) -> bool:
    """Tell whether a text is certainly an id: printable ASCII without spaces, and not too long."""
    for place in range(at, end):
        if not SPACE < text[place] <= TILDE:
            return False
    return 0 < end - at <= most


def is_plain_by(text: Numbers, at: int, end: int) -> bool:
    """Tell whether a text is certainly the name of a recorder: no control characters, and not too long."""
    for place in range(at, end):
        if text[place] == DELETE or (text[place] == OF_CONTROL and CONTROL_FROM <= text[place + 1] < CONTROL_UNTIL):
            return False
    return 0 < end - at <= BY_MAX


def end_of_game_id(text: Numbers, at: int, game_id: int, game_id_end: int) -> int:
    """Return where the default id of a game's record ends, `game:` and the game's id; -1 if another text is there."""
    begins = text[at] == LETTER_G and text[at + 1] == LETTER_A and text[at + 2] == LETTER_M and text[at + 3] == LETTER_E
    if not begins or text[at + 4] != COLON:
        return -1
    shift = at + 5 - game_id
    same = game_id
    while same < game_id_end and text[shift + same] == text[same]:
        same += 1
    return shift + same if same == game_id_end and text[shift + same] == QUOTE else -1


def participant(text: Numbers, at: int, words: Numbers, word_from: Numbers, told: Numbers) -> int:
    """Read a participant into `told` (by member: a text's beginning and end, or a number, in pairs); returns where it
    ends, -1 if it is not plain."""
    for index in range(len(told)):
        told[index] = NONE
    if text[at] != OPEN:
        return -1
    first = PARTICIPANT_FROM
    while text[at] != CLOSE:
        if text[at + 1] != QUOTE:
            return -1
        at += 2  # the brace or comma, and the quote
        which = member(text, at, words, word_from, first, OTHERS_FROM)
        if which < 0:
            return -1  # unknown, out of order, or duplicate
        at += word_from[which + 1] - word_from[which] + 1
        if text[at] != COLON:
            return -1
        at += 1
        first = which + 1
        own = 2 * (which - PARTICIPANT_FROM)
        if which in (PLAYER, STATUS):
            if text[at] != QUOTE:
                return -1
            end = string_end(text, at + 1)
            if end < 0:
                return -1
            told[own] = at + 1
            told[own + 1] = end
            at = end + 1
        else:
            end = number_end(text, at)
            if end < 0:
                return -1
            told[own] = number(text, at, end)
            told[own + 1] = 1
            at = end
        if text[at] != COMMA and text[at] != CLOSE:
            return -1
    return at + 1


def rank_seats(keys: Numbers, first: int, last: int, sign: int, place: Numbers) -> None:
    """Competition places (1, 2, 2, 4) from `first` up to `last` by their keys; with `sign` -1 the highest is best."""
    for mine in range(first, last):
        better = 1
        for other in range(first, last):
            if sign * keys[other] < sign * keys[mine]:
                better += 1
        place[mine] = better


def fit(keys: Numbers, merits: Numbers, player: Numbers, place: Numbers, first: int, last: int, told: int) -> bool:
    """Tell whether the participants from `first` up to `last`, ranked by their keys, make a valid game.

    `told` is 1 if the keys are places, 2 if there are scores, too: `merits`, the lower the better. Nobody may be there
    twice, places must have no gap (1, 2, 2, 4 or 1, 2, 2, 3), and a better place must not have a worse score.
    """
    competition, different, most = True, 0, 0
    for mine in range(first, last):
        new = True
        for other in range(first, mine):
            if player[other] == player[mine]:
                return False
            if keys[other] == keys[mine]:
                new = False
            elif (
                told == 2
                and (keys[other] < keys[mine]) != (merits[other] < merits[mine])
                and (merits[other] != merits[mine])
            ):
                return False
        different += new
        competition = competition and keys[mine] == place[mine]
        most = max(most, keys[mine])
        if told and not 1 <= keys[mine] <= PLACE_MAX:
            return False
    return told == 0 or competition or most == different


# compiled: what it works on comes as flat arrays, one by one; one walk over the bytes, whose states are its variables
def scan(
    text: Numbers,
    after: int,
    schema: int,
    words: Numbers,
    word_from: Numbers,
    line: Numbers,
    plain: Numbers,
    told: Numbers,
    cell: Numbers,
    keys: Numbers,
    merits: Numbers,
    occurred_at: Numbers,
    size: Numbers,
    in_cell: Numbers,
    game_id: Numbers,
    player: Numbers,
    place: Numbers,
    status: Numbers,
    seat: Numbers,
    seconds: Numbers,
    score: Numbers,
    names: Numbers,
    name_pool: Numbers,
    name_begins: Numbers,
    name_ends: Numbers,
    name_game: Numbers,
    labels: Numbers,
    label_pool: Numbers,
    label_begins: Numbers,
    label_ends: Numbers,
    cell_table: Numbers,
    cells: Numbers,
    found: Numbers,
) -> None:
    """Read the records of a page, one per line, which follow the position `after`, from where an earlier call stopped.

    line:    where each begins, and where the last ends, each after a newline
    plain:   for each, whether it is a plain game, or one if its id is valid (PLAIN, LOOKED_AT); the columns that
             follow hold only these
    names, labels, cell_table: hash tables of what the columns refer to by codes counting from 0
    name_game: for every new name, the index among the page's plain games of the one it occurs in
    found:   how many slots, names, labels, cells and plain games there are, how many records are read, and how many
             names there were before the page

    It stops before a record for whose names, labels or cell there may be no room.
    """
    slots, known_names, known_labels, known_cells = int(found[0]), int(found[1]), int(found[2]), int(found[3])
    games, read, names_before = int(found[4]), int(found[5]), int(found[6])
    for record in range(read, len(line) - 1):
        if (
            known_names + NAMES_MAX > len(name_begins)
            or known_labels + LABELS > len(label_begins)
            or name_ends[known_names - 1] * (known_names > 0) + RECORD_MAX > len(name_pool)
            or label_ends[known_labels - 1] * (known_labels > 0) + RECORD_MAX > len(label_pool)
            or known_cells == len(cells)
        ):
            break
        read += 1
        at = line[record]
        plain[record] = 0
        ok = 1
        first = slots
        new_names, new_labels = known_names, known_labels
        placed = scored = entrants = 0
        sign, ended = -1, -(2**63)
        for part in range(CELL):
            cell[part] = NONE
        cell[CELL - 1] = 0
        own_id = own_id_end = position = version = is_game = members = 0
        first_of, first_within = 0, DATA_FROM  # members come in order
        depth, fresh = 0, 1  # depth 1: within data; fresh: right after an opening brace
        while ok and text[at] != NEWLINE:
            if text[at] == CLOSE:
                depth -= 1
                at += 1
                if depth < 0:
                    break
                continue
            if text[at] != (OPEN if fresh else COMMA) or text[at + 1] != QUOTE:
                ok = 0
                break
            at, fresh = at + 1, 0
            if depth:
                which = member(text, at + 1, words, word_from, first_within, PARTICIPANT_FROM)
                first_within = which + 1
            else:
                which = member(text, at + 1, words, word_from, first_of, DATA_FROM)
                first_of = which + 1
            if which < 0:
                ok = 0
                break
            at += word_from[which + 1] - word_from[which] + 2
            if text[at] != COLON:
                ok = 0
                break
            at += 1
            members |= 1 << which
            if which == WHOLE:
                depth = fresh = 1
            elif which == PARTICIPANTS:
                ok = text[at] == OPEN_LIST
                while ok and text[at] != CLOSE_LIST:
                    if slots == len(player):
                        ok = 0
                        break
                    at = participant(text, at + 1, words, word_from, told)
                    if at < 0 or (text[at] != COMMA and text[at] != CLOSE_LIST) or told[P_PLAYER] < 0:
                        ok = 0
                        break
                    code = interned(
                        text, told[P_PLAYER], told[P_PLAYER + 1], new_names, names, name_pool, name_begins, name_ends
                    )
                    if code < 0:
                        ok = 0  # the record is too long
                        break
                    if code == new_names:
                        name_game[code - names_before] = games
                        new_names += 1
                    player[slots] = code
                    placed += told[P_PLACE + 1] == 1
                    scored += told[P_SCORE + 1] == 1
                    keys[slots] = told[P_PLACE] if told[P_PLACE + 1] == 1 else told[P_SCORE]
                    merits[slots] = told[P_SCORE]
                    ok = (
                        (told[P_SCORE + 1] != 1 or -INTEGER_MAX <= told[P_SCORE] <= INTEGER_MAX)
                        and (told[P_SEAT + 1] != 1 or 1 <= told[P_SEAT] <= SEAT_MAX)
                        and (told[P_SECONDS + 1] != 1 or 0 <= told[P_SECONDS] <= SECONDS_MAX)
                    )
                    score[slots] = told[P_SCORE] if ok and told[P_SCORE + 1] == 1 else MISSING
                    seat[slots] = told[P_SEAT] if ok else NONE
                    seconds[slots] = told[P_SECONDS] if ok else NONE
                    status[slots] = 0
                    if told[P_STATUS] >= 0:
                        state = word(
                            text, told[P_STATUS], told[P_STATUS + 1], words, word_from, STATUS_FROM, len(word_from) - 1
                        )
                        # a substitute says whom they replace, so they are not a plain participant
                        ok = ok and state >= 0 and state != SUBSTITUTE
                        status[slots] = state - STATUS_FROM
                    slots += 1
                    entrants += 1
                if ok:
                    at += 1
            elif which in (RATED, ABORTED):
                end = at
                while text[end] > COMMA and text[end] != CLOSE and text[end] != NEWLINE:
                    end += 1
                truth = word(text, at, end, words, word_from, TRUE, FALSE + 1)
                ok = truth >= 0
                if which == RATED and truth == FALSE:
                    cell[CELL - 1] |= 1
                elif which == ABORTED and truth == TRUE:
                    cell[CELL - 1] |= 2
                at = end
            elif which in (POSITION, SCHEMA):
                end = number_end(text, at)
                if end < 0:
                    ok = 0
                    break
                if which == POSITION:
                    position = number(text, at, end)
                else:
                    version = number(text, at, end)
                at = end
            else:
                if text[at] != QUOTE:
                    ok = 0
                    break
                if which in (OCCURRED, RECORDED):
                    end = at + 1 + INSTANT_BYTES
                    when = instant(text, at + 1, end)
                    if which == OCCURRED:
                        ended = when
                    ok = when > -(2**63) and text[end] == QUOTE
                    at = end + 1
                    continue
                end = end_of_game_id(text, at + 1, own_id, own_id_end) if which == ID else -1
                if end >= 0:
                    at = end + 1
                    continue
                end = string_end(text, at + 1)
                if end < 0:
                    ok = 0
                    break
                if LABEL_OF[which] >= 0:
                    code = interned(text, at + 1, end, new_labels, labels, label_pool, label_begins, label_ends)
                    if code < 0:
                        ok = 0  # the record is too long
                        break
                    new_labels += code == new_labels
                    cell[LABEL_OF[which]] = code
                    if which == KIND:
                        ok = word(text, at + 1, end, words, word_from, PLACING, PLACING + 1) >= 0
                elif which == GAME_ID:
                    own_id, own_id_end = at + 1, end
                elif which == ORDER:
                    order = word(text, at + 1, end, words, word_from, HIGH, LOW + 1)
                    ok = order >= 0
                    sign = 1 if order == LOW else -1
                elif which == BY:
                    ok = is_plain_by(text, at + 1, end)
                elif which == ID:
                    ok = is_plain_id(text, at + 1, end, ID_MAX)
                elif which == TYPE:
                    is_game = word(text, at + 1, end, words, word_from, GAME_RECORDED, GAME_RECORDED + 1) >= 0
                at = end + 1
        known_names, known_labels = new_names, new_labels
        whole = entrants > 1 and (
            (placed == entrants and (scored == 0 or scored == entrants)) or (placed == 0 and scored == entrants)
        )
        ok = ok and depth < 0 and text[at] == NEWLINE and members & NEEDED == NEEDED and at - line[record] <= RECORD_MAX
        if ok and whole:
            rank_seats(keys, first, slots, 1 if placed else sign, place)
            for slot in range(first, slots):
                merits[slot] *= sign
            ok = fit(keys, merits, player, place, first, slots, (placed > 0) * (1 + (scored > 0)))
        if ok and whole and is_game and version == schema and position == after + record + 1 and ended > -(2**63):
            plain[record] = PLAIN if is_plain_id(text, own_id, own_id_end, GAME_ID_MAX) else LOOKED_AT
            cell[LABELS] = entrants
            code = cell_code(cell, known_cells, cell_table, cells)
            known_cells += code == known_cells
            occurred_at[games] = ended
            size[games] = entrants
            in_cell[games] = code
            game_id[games, 0], game_id[games, 1] = own_id, own_id_end
            games += 1
        else:
            slots = first
    found[0], found[1], found[2], found[3], found[4], found[5] = (
        slots,
        known_names,
        known_labels,
        known_cells,
        games,
        read,
    )
