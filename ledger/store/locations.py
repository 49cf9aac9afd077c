"""Show the location of a ledger, a URL or a path, without its passwords, or without its user."""

import re

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

MASK = "***"
# a password in a parameter of the URL, or in a setting inside `options`, where space and = may be percent-encoded
_SPACE = r"(?:\s|\+|%20)*"
_SECRET = re.compile(rf"(?is)(pass(?:word|wd|phrase)?{_SPACE}(?:=|%3d){_SPACE})(?:'[^']*'?|\\.|[^&\s'])*")
# user:secret@ in an invalid URL: the secret may contain any character, even an @
_USER = re.compile(r"(?s)^((?>(?:[^:@]*:?/+)?)[^:/@]*):.*@")

_URL_USER = re.compile(r"^([a-z0-9+]+://)[^/@]*@")


def redact_password(name: str) -> str:
    """Return a URL or a path with its passwords masked, even if the URL is invalid.

    >>> redact_password("postgresql://anna:se@cret@db/club?sslpassword=x")
    'postgresql://anna:***@db/club?sslpassword=***'
    >>> redact_password("postgresql:/anna:secret@db"), redact_password("postgresql//anna:secret@db")
    ('postgresql:/anna:***@db', 'postgresql//anna:***@db')
    >>> redact_password("postgresql://db/club?options=-c%20password%3Dsecret")
    'postgresql://db/club?options=-c%20password%3D***'
    >>> redact_password("postgresql://reader@db/club"), redact_password("anna:secret@db")
    ('postgresql://reader@db/club', 'anna:***@db')
    """
    try:
        url: URL | None = make_url(name) if "://" in name else None
    except (ArgumentError, ValueError):
        url = None
    if url is not None and url.password is not None:
        name = url.render_as_string(hide_password=True)
    if url is None or url.password is None or "@" in name.rpartition(MASK)[2].partition("@")[2]:
        name = _USER.sub(rf"\1:{MASK}@", name)
    return _SECRET.sub(rf"\1{MASK}", name)


def drop_user(location: str) -> str:
    """Return a location without the user, so that it is the same for every role.

    >>> drop_user("postgresql://reader:***@db/club"), drop_user("/var/lib/a@b/club.db")
    ('postgresql://db/club', '/var/lib/a@b/club.db')
    """
    return _URL_USER.sub(r"\1", location)
