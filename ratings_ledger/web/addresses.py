"""Build the paths and links of all pages, on a server and in a folder.

    /                                 index.html
    /ladders/club-catan-elo/all       ladders/club-catan-elo/all.html
    /players/anna/club-catan-elo/all  players/anna/club-catan-elo/all.html
    /games/wl-17.json                 games/wl-17.json

A path is a tuple of path segments. Every id, and every part of a ladder's name, is one segment: lower-case letters,
digits and hyphens stay; every other byte of its UTF-8 becomes ~ and two hex digits. A long segment is truncated and
ends in ~~ and 32 hex digits of the SHA-256 of the id. The first letter of a device name of Windows, such as con, is
escaped too. So path segments are legal file names everywhere, no two ids share one, and none collides with the words
that may follow an id in a path, which begin with _.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from urllib.parse import urlencode

PagePath = tuple[str, ...]

UNESCAPED = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
SEGMENT_MAX = 120  # characters
TRUNCATED_LENGTH = 80  # characters that a truncated segment keeps
HASH_DIGITS = 32
# device names reserved by Windows, with any extension
DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]", re.ASCII)
CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f]")  # no id contains these; PostgreSQL rejects \0 in queries
PLAIN = re.compile(r"[a-z0-9-]+", re.ASCII)
SEGMENT_PATTERN = re.compile(r"(?:[a-z0-9-]|~[0-9a-f]{2})+", re.ASCII)

# by default, a folder has a page per game only if there are at most this many games
GAME_PAGES_MAX = 20_000

INDEX: PagePath = ()
LISTS, LOG, STATUS = ("lists",), ("log",), ("status",)


def encode_segment(text: str) -> str:
    """Return an id as a path segment.

    >>> encode_segment("anna"), encode_segment("Łukasz"), encode_segment("con"), encode_segment("2024-03")
    ('anna', '~c5~81ukasz', '~63on', '2024-03')
    """
    if len(text) <= SEGMENT_MAX and PLAIN.fullmatch(text) and not DEVICES.fullmatch(text):
        return text
    content = text.encode()
    escaped = "".join(chr(byte) if byte in UNESCAPED else f"~{byte:02x}" for byte in content)
    if DEVICES.fullmatch(escaped):
        escaped = f"~{content[0]:02x}{escaped[1:]}"
    if len(escaped) <= SEGMENT_MAX:
        return escaped
    prefix = escaped[:TRUNCATED_LENGTH]
    if "~" in prefix[-2:]:  # never split an escape
        prefix = prefix.rpartition("~")[0]
    return f"{prefix}~~{sha256(content).hexdigest()[:HASH_DIGITS]}"


def decode_segment(segment: str) -> str | None:
    """Return the id that a path segment encodes; None for an invalid or truncated segment.

    >>> decode_segment("~c5~81ukasz"), decode_segment("Łukasz"), decode_segment("~41~~" + "0" * 32)
    ('Łukasz', None, None)
    """
    if not SEGMENT_PATTERN.fullmatch(segment):
        return None
    content = re.sub(rb"~([0-9a-f]{2})", lambda escape: bytes([int(escape[1], 16)]), segment.encode())
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if encode_segment(text) == segment and not CONTROL.search(text) else None


def is_truncated(segment: str) -> bool:
    """Tell whether a path segment may be truncated. Only the full list of ids can resolve a truncated segment."""
    return "~~" in segment and len(segment) <= SEGMENT_MAX


def resolve_truncated(segment: str, ids: Iterable[str]) -> str | None:
    """Return the id whose path segment is `segment`, or None."""
    return next((name for name in ids if encode_segment(name) == segment), None)


def ladder(name: str, number: int = 1) -> PagePath:
    """Return the path of a ladder, or of one page of a long ladder."""
    return ("ladders", *_encode_ladder(name), *([] if number == 1 else [f"_{number}"]))


def player(name: str) -> PagePath:
    """Return the path of a player's page."""
    return ("players", encode_segment(name))


def player_ladder(name: str, ladder: str) -> PagePath:
    """Return the path of a player's page on one ladder."""
    return ("players", encode_segment(name), *_encode_ladder(ladder))


def player_ranks(name: str, ladder: str) -> PagePath:
    """Return the path of a player's rank over time."""
    return (*player_ladder(name, ladder), "_ranks")


def player_games(name: str, ladder: str) -> PagePath:
    """Return the path of a player's games on a ladder."""
    return (*player_ladder(name, ladder), "_games")


def game(game_id: str) -> PagePath:
    """Return the path of a game's page."""
    return ("games", encode_segment(game_id))


def what_if(game_id: str) -> PagePath:
    """Return the path of a game's what-if page."""
    return (*game(game_id), "_otherwise")


def ruleset(ruleset_id: str, version: str | None = None) -> PagePath:
    """Return the path of a ruleset, or of one of its versions."""
    return ("rules", encode_segment(ruleset_id), *([] if version is None else [encode_segment(version)]))


def published_list(name: str, position: int | None = None) -> PagePath:
    """Return the path of a ladder's list published at a position; by default, of the latest list."""
    return ("lists", *_encode_ladder(name), *([] if position is None else [f"_{position}"]))


def event_impact(position: int) -> PagePath:
    """Return the path of the page that shows an event's impact."""
    return ("changes", str(position))


def log_page(number: int) -> PagePath:
    """Return the path of a page of the log; page 1 has the oldest events."""
    return ("log", str(number))


def league(name: str) -> PagePath:
    """Return the path of a league's page."""
    return ("leagues", encode_segment(name))


def clock(game_id: str) -> PagePath:
    """Return the path of a game's clock."""
    return (*game(game_id), "_clock")


def _encode_ladder(name: str) -> PagePath:
    return tuple(encode_segment(part) for part in name.split("/"))


def build_relative_link(start: PagePath, target: PagePath, extension: str, **query: object) -> str:
    """Return a relative link from one page to another.

    `extension` is the file extension: empty on a server, .html in a folder.

    >>> build_relative_link(("ladders", "elo", "all"), ("games", "g-1"), ".html")
    '../../games/g-1.html'
    >>> build_relative_link(("games", "g-1"), (), ""), build_relative_link((), (), ".html", as_of="2024-01-01")
    ('../', 'index.html?as_of=2024-01-01')
    """
    folder = start[:-1]
    shared = 0
    while shared < min(len(folder), len(target) - 1) and folder[shared] == target[shared]:
        shared += 1
    relative_path = "../" * (len(folder) - shared) + name_file(target, extension, skip=shared)
    parameters = {name: value for name, value in query.items() if value is not None} if query else {}
    return (relative_path or "./") + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")


def name_file(path: PagePath, extension: str, skip: int = 0) -> str:
    """Return a page's file in a folder, or its URL path without the leading slash; skip the first `skip` segments."""
    if not path:
        return f"index{extension}" if extension else ""
    return "/".join(path[skip:]) + extension
