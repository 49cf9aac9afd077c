r"""Read a line as bash does, and quote a word in it.

    standings "elo ch       the words: standings; current: elo ch, within "
    Mar\
"""

from __future__ import annotations

from typing import NamedTuple

SAFE = frozenset("_-./@%+:,=")
KEPT = "$@"  # a word may end before these characters, but they belong to the next one


class Line(NamedTuple):
    """The words before the cursor, and the current one as far as it is typed: `settled` is the part that bash leaves as
    it is when it completes, and `quote` the open quotation mark, if any.
    """

    words: list[str]
    current: str
    settled: str = ""
    quote: str = ""


def parse_line(text: str, breaks: str) -> Line:
    r"""Parse a line up to the cursor; `breaks` are the characters behind which bash completes on their own.

    >>> parse_line('ratings record ben "María Jo', "\"'=:")
    Line(words=['record', 'ben'], current='María Jo', settled='', quote='"')
    >>> parse_line(r"ratings record María\ José=be", "\"'=:").settled
    'María José='
    """
    words: list[str] = []
    word, settled, quote, is_escaped, is_word = "", "", "", False, False
    for letter in text:
        if is_escaped:
            word += letter if quote != '"' or letter in '"\\$`' else f"\\{letter}"
            is_escaped = False
        elif letter == "\\" and quote != "'":
            is_escaped = is_word = True
        elif letter == quote:
            quote, settled = "", word
        elif quote:
            word += letter
        elif letter in "\"'":
            quote, settled, is_word = letter, word, True
        elif letter in " \t\n;&|(":
            if is_word:
                words.append(word)
            if letter in "\n;&|(":
                words.clear()  # another command begins
            word, settled, is_word = "", "", False
        else:
            word, is_word = word + letter, True
            if letter in breaks:
                settled = word[:-1] if letter in KEPT else word
    return Line(words[1:], word, settled, quote)


def quote_word(text: str, quote: str) -> str:
    r"""Quote a word as it is typed, within an open quotation mark or without one.

    >>> print(quote_word("María José", ""), quote_word('$(a) "b".', '"'), quote_word("it's!", "'"))
    María\ José \$(a) \"b\". it'\''s!
    """
    if quote:
        if quote == "'":
            escaped = text.replace("'", "'\\''")
        else:  # an exclamation mark would bring back an earlier line
            escaped = "".join(f"\\{letter}" if letter in '"\\$`' else letter for letter in text)
            escaped = escaped.replace("!", "\"'!'\"")
        return escaped + quote * escaped.endswith(quote)  # bash adds the last one only where none stands already
    start = "\\" if text.startswith("~") else ""
    return start + "".join(
        letter if letter.isalnum() or letter > "\x7f" or letter in SAFE or (start and letter == "~") else f"\\{letter}"
        for letter in text
    )
