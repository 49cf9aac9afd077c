"""What every store says of rights: who has one too many or lacks one, and the statements that give them."""

import re
from typing import NamedTuple

PREFIX, SCHEMA = "ratings_", "public"
NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)


class Wrong(NamedTuple):
    """Who has a right too many or lacks one, what it is, and how to fix it."""

    who: str
    what: str
    remedy: str


class Grants(NamedTuple):
    """The statements that make the roles: an administrator's, before `init`, and the owner's, after it."""

    administrator: list[str]
    owner: list[str]
