"""What tables call games, as the ledger writes it.

Catan                 catan
Settlers of Catan     settlers-of-catan
Dungeons & Dragons    dungeons-dragons
Brändi Dog            brandi-dog
"""

import re
import unicodedata
from functools import lru_cache
from typing import Any

from ratings_ledger.ledger.rejections import Refused, shown

LENGTH_MAX = 64
# letters of the Latin script that no accent was put on
_LATIN = str.maketrans({"æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
_MARKS = re.compile(r"[\W_]+")


@lru_cache(maxsize=1_024)  # most games of a table are the same
def game_slug(name: str) -> str:
    """A game's name in lower case, with hyphens and without accents. Raises `Refused` (bad-slug).

    >>> game_slug("Settlers of Catan"), game_slug("¡Sí, Señor!")
    ('settlers-of-catan', 'si-senor')
    """
    apart = unicodedata.normalize("NFKD", name.casefold().translate(_LATIN))
    found = _MARKS.sub("-", "".join(one for one in apart if not unicodedata.combining(one))).strip("-")
    if not found or not found.isascii() or len(found) > LENGTH_MAX:
        why = f"it has more than {LENGTH_MAX} characters" if found.isascii() and found else "it needs letters a to z"
        raise Refused("bad-slug", f"game: {shown(name)} is not a name like blue-max: {why}; write such a name instead")
    return found


def under_slug(event: Any, used: dict[str, str]) -> Any:
    """An event of a table with its game's name as the ledger writes it; `used` gets those that are written otherwise.

    Is a `Refused` if there is no such name.
    """
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict) or not isinstance(written := data.get("game"), str):
        return event
    try:
        slug = game_slug(written)
    except Refused as problem:
        return problem
    if slug != written:
        data["game"] = used[written] = slug
    return event
