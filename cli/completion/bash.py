r"""How bash reads a line, and how a word is quoted in it.

    standings "elo ch       the words: standings; current: elo ch, within "
    Mar\
"""

from __future__ import annotations

from typing import NamedTuple

SAFE = frozenset("_-./@%+:,=")
KEPT = "$@"  # a word may end before them, but they belong to the next one


class Line(NamedTuple):
    """The words before the cursor, and the current one as far as it is typed: `settled` is what bash leaves as it is
    when it completes, and `quote` the quotation mark that is open, if one is.
    """

    words: list[str]
    current: str
    settled: str = ""
    quote: str = ""


def typed_line(text: str, breaks: str) -> Line:
    r"""Return a line up to the cursor; `breaks` are the characters behind which bash completes on their own.

    >>> typed_line('ratings record ben "María Jo', "\"'=:")
    Line(words=['record', 'ben'], current='María Jo', settled='', quote='"')
    >>> typed_line(r"ratings record María\ José=be", "\"'=:").settled
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


def quoted(text: str, quote: str) -> str:
    r"""Return a word as it is typed, within a quotation mark that is open or without one.

    >>> print(quoted("María José", ""), quoted('$(a) "b".', '"'), quoted("it's!", "'"))
    María\ José \$(a) \"b\". it'\''s!
    """
    if quote:
        if quote == "'":
            told = text.replace("'", "'\\''")
        else:  # an exclamation mark would bring back an earlier line
            told = "".join(f"\\{letter}" if letter in '"\\$`' else letter for letter in text)
            told = told.replace("!", "\"'!'\"")
        return told + quote * told.endswith(quote)  # bash adds the last one only where none stands already
    start = "\\" if text.startswith("~") else ""
    return start + "".join(
        letter if letter.isalnum() or letter > "\x7f" or letter in SAFE or (start and letter == "~") else f"\\{letter}"
        for letter in text
    )
