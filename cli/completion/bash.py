"""Parse a command line by bash's rules, and quote completions.

For the line `ratings standings "elo ch` with the cursor at its end:

    words before the cursor   standings
    word being typed          elo ch
    open quotation mark       "
"""

from __future__ import annotations

from typing import NamedTuple

SAFE = frozenset("_-./@%+:,=")  # punctuation that bash reads literally
BREAKS_KEPT_WITH_NEXT_WORD = "$@"  # word-break characters that bash keeps with the text that follows them


class CommandLine(NamedTuple):
    """A command line up to the cursor: the complete words, and the current word, which is being typed.

    `fixed_prefix` is the part of the current word that bash will not replace, and `quote` the open quotation mark,
    if any.
    """

    words: list[str]
    current: str
    fixed_prefix: str = ""
    quote: str = ""


def parse_line(text: str, breaks: str) -> CommandLine:
    r"""Parse a line up to the cursor.

    `breaks` are bash's word-break characters (COMP_WORDBREAKS). bash completes the text after each of them
    as a word of its own.

    >>> parse_line('ratings record ben "María Jo', "\"'=:")
    CommandLine(words=['record', 'ben'], current='María Jo', fixed_prefix='', quote='"')
    >>> parse_line(r"ratings record María\ José=be", "\"'=:").fixed_prefix
    'María José='
    """
    words: list[str] = []
    word, fixed_prefix, quote, is_escaped, is_word = "", "", "", False, False
    for character in text:
        if is_escaped:
            word += character if quote != '"' or character in '"\\$`' else f"\\{character}"
            is_escaped = False
        elif character == "\\" and quote != "'":
            is_escaped = is_word = True
        elif character == quote:
            quote, fixed_prefix = "", word
        elif quote:
            word += character
        elif character in "\"'":
            quote, fixed_prefix, is_word = character, word, True
        elif character in " \t\n;&|(":
            if is_word:
                words.append(word)
            if character in "\n;&|(":
                words.clear()  # another command begins
            word, fixed_prefix, is_word = "", "", False
        else:
            word, is_word = word + character, True
            if character in breaks:
                fixed_prefix = word[:-1] if character in BREAKS_KEPT_WITH_NEXT_WORD else word
    return CommandLine(words[1:], word, fixed_prefix, quote)


def quote_word(text: str, quote: str) -> str:
    r"""Escape a word for insertion at the cursor, inside the open quotation mark `quote` if there is one.

    >>> print(quote_word("María José", ""), quote_word('$(a) "b".', '"'), quote_word("it's!", "'"))
    María\ José \$(a) \"b\". it'\''s!
    """
    if quote:
        if quote == "'":
            escaped = text.replace("'", "'\\''")
        else:  # an exclamation mark would trigger history expansion
            escaped = "".join(f"\\{character}" if character in '"\\$`' else character for character in text)
            escaped = escaped.replace("!", "\"'!'\"")
        # bash adds the closing quote only if the text does not end with one
        return escaped + quote * escaped.endswith(quote)
    start = "\\" if text.startswith("~") else ""
    return start + "".join(
        character
        if character.isalnum() or character > "\x7f" or character in SAFE or (start and character == "~")
        else f"\\{character}"
        for character in text
    )
