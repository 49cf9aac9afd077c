"""Replace options of the command line with arguments of the library in messages that all front ends share.

    'zoe' is new; to accept it, omit --strict     becomes     'zoe' is new; to accept it, omit strict=True

Commands such as `ratings rules list --shipped` stay as they are, because a person can run them as they are written.
"""

import re

_ARGUMENTS = {
    "--new-names accept": 'new_names="accept"',
    "--any-date": "any_date=True",
    "--allow-uncounted": "allow_uncounted=True",
    "--strict": "strict=True",
    "--ignore-clock": "ratings record --ignore-clock",  # the library has no such argument
    "--known-at": "known_at",
    "--as-of": "as_of",
    "--rules": "rules",
    "--from": "after",
}
_OPTION = re.compile(rf"ratings [a-z][^;()]*|({'|'.join(_ARGUMENTS)})(?: (\d[\d-]*))?(?![\w-])")


def name_arguments(message: str) -> str:
    """Return a message with the library's arguments in place of options.

    >>> name_arguments("rules@1 was withdrawn at position 7; to use it, add --known-at 6")
    'rules@1 was withdrawn at position 7; to use it, add known_at=6'
    >>> name_arguments("for a ladder as it stood on a day, add --as-of 2024-12-31")
    "for a ladder as it stood on a day, add as_of='2024-12-31'"
    >>> name_arguments("no list is published; to publish one: ratings publish elo-catan --as-of 2024-12-31")
    'no list is published; to publish one: ratings publish elo-catan --as-of 2024-12-31'
    """
    return _OPTION.sub(_name_argument, message)


def _name_argument(match: re.Match[str]) -> str:
    option, value = match.groups()
    if option is None:
        return match.group()
    if value is None:
        return _ARGUMENTS[option]
    return f"{_ARGUMENTS[option]}={value if value.isdigit() else repr(value)}"
