"""The addresses of all pages, on a server and in a folder.

    /                                 index.html
    /ladders/club-catan-elo/all       ladders/club-catan-elo/all.html
    /players/anna/club-catan-elo/all  players/anna/club-catan-elo/all.html
    /games/wl-17.json                 games/wl-17.json

A path is a tuple of segments. Every id, and every part of a ladder's name, is one segment: lower-case letters, digits
and hyphens as they are, every other byte of its UTF-8 as ~ and two hex digits. What would be long is cut, and ends in
~~ and a part of its SHA-256. So segments are legal names of files everywhere, no two ids share one, and no id is
mistaken for a word of the pages themselves, which begins with _.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from urllib.parse import urlencode

Path = tuple[str, ...]

AS_THEY_ARE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
SEGMENT_MAX, KEPT = 120, 80  # characters; of a longer segment so many are kept
HASHED = 32  # hex digits
# names that Windows gives to devices, whatever follows behind a dot
DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]", re.ASCII)
CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f]")  # which no id has, and PostgreSQL cannot even be asked about
PLAIN = re.compile(r"[a-z0-9-]+", re.ASCII)
SEGMENT = re.compile(r"(?:[a-z0-9-]|~[0-9a-f]{2})+", re.ASCII)

# up to so many games, each has a page of its own in a folder, unless somebody wants it otherwise
GAME_PAGES = 20_000
# of processor time for a rule of a package and a page of a server, which gives up any answer after ten
RULE_SECONDS = 8

INDEX: Path = ()
LISTS, LOG, STATUS = ("lists",), ("log",), ("status",)


def segment(text: str) -> str:
    """Return an id as a segment of a path.

    >>> segment("anna"), segment("Łukasz"), segment("con"), segment("2024-03")
    ('anna', '~c5~81ukasz', '~63on', '2024-03')
    """
    if len(text) <= SEGMENT_MAX and PLAIN.fullmatch(text) and not DEVICES.fullmatch(text):
        return text
    content = text.encode()
    found = "".join(chr(byte) if byte in AS_THEY_ARE else f"~{byte:02x}" for byte in content)
    if DEVICES.fullmatch(found):
        found = f"~{content[0]:02x}{found[1:]}"
    if len(found) <= SEGMENT_MAX:
        return found
    kept = found[:KEPT].rpartition("~")[0] if "~" in found[KEPT - 2 : KEPT] else found[:KEPT]
    return f"{kept}~~{sha256(content).hexdigest()[:HASHED]}"


def text_of(found: str) -> str | None:
    """Return the id of a segment; None if it is none, or was cut.

    >>> text_of("~c5~81ukasz"), text_of("Łukasz"), text_of("~41~~" + "0" * 32)
    ('Łukasz', None, None)
    """
    if not SEGMENT.fullmatch(found):
        return None
    content = re.sub(rb"~([0-9a-f]{2})", lambda escaped: bytes([int(escaped[1], 16)]), found.encode())
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if segment(text) == found and not CONTROL.search(text) else None


def is_cut(found: str) -> bool:
    """Tell whether a segment may be that of an id that was too long: only those who know all ids can tell which."""
    return "~~" in found and len(found) <= SEGMENT_MAX


def among(found: str, ids: Iterable[str]) -> str | None:
    """Return the id of a segment that was cut, among those that there are."""
    return next((one for one in ids if segment(one) == found), None)


def ladder(name: str, number: int = 1) -> Path:
    """Of a ladder, such as club-catan-elo/all; of a long one the first page, or another."""
    return ("ladders", *_ladder(name), *([] if number == 1 else [f"_{number}"]))


def player(name: str) -> Path:
    """Of a person, with all their ladders."""
    return ("players", segment(name))


def player_on(name: str, on: str) -> Path:
    """Of a person on a ladder."""
    return ("players", segment(name), *_ladder(on))


def ranks(name: str, on: str) -> Path:
    """Of a person's rank on a ladder over time."""
    return (*player_on(name, on), "_ranks")


def games_of(name: str, on: str) -> Path:
    """Of all games of a person on a ladder."""
    return (*player_on(name, on), "_games")


def game(game_id: str) -> Path:
    """Of a game."""
    return ("games", segment(game_id))


def otherwise(game_id: str) -> Path:
    """Of a game as it would be with another result."""
    return (*game(game_id), "_otherwise")


def ruleset(ruleset_id: str, version: str | None = None) -> Path:
    """Of a ruleset, or of a version of it."""
    return ("rules", segment(ruleset_id), *([] if version is None else [segment(version)]))


def published(name: str, position: int | None = None) -> Path:
    """Of the list of a ladder published at a position, or of the last one."""
    return ("lists", *_ladder(name), *([] if position is None else [f"_{position}"]))


def change(position: int) -> Path:
    """Of what an event did."""
    return ("changes", str(position))


def log_page(number: int) -> Path:
    """Of a part of the log, counted from its beginning."""
    return ("log", str(number))


def league(name: str) -> Path:
    """Of a league."""
    return ("leagues", segment(name))


def clock(game_id: str) -> Path:
    """Of the clock of a game."""
    return (*game(game_id), "_clock")


def _ladder(name: str) -> Path:
    return tuple(segment(part) for part in name.split("/"))


def relative(start: Path, target: Path, ending: str, **query: object) -> str:
    """Return a link from one page to another; a page's address ends in `ending`: on a server in nothing, in a folder in
    .html.

    >>> relative(("ladders", "elo", "all"), ("games", "g-1"), ".html")
    '../../games/g-1.html'
    >>> relative(("games", "g-1"), (), ""), relative((), (), ".html", as_of="2024-01-01")
    ('../', 'index.html?as_of=2024-01-01')
    """
    folder = start[:-1]
    shared = 0
    while shared < min(len(folder), len(target) - 1) and folder[shared] == target[shared]:
        shared += 1
    there = "../" * (len(folder) - shared) + file_of(target, ending, shared)
    members = {name: value for name, value in query.items() if value is not None} if query else {}
    return (there or "./") + (f"?{urlencode(members, doseq=True)}" if members else "")


def file_of(path: Path, ending: str, after: int = 0) -> str:
    """Return a page's file in a folder, or its address on a server without the first slash; behind the first few
    segments.
    """
    if not path:
        return f"index{ending}" if ending else ""
    return "/".join(path[after:]) + ending
