"""Errors of formulas, as spreadsheet programs write them into a text in the languages of many clubs.

#REF!   #BEZUG!   #N/D   #NOMBRE?   Err:502
"""

import re

PUT_RIGHT = "; put it right in a spreadsheet program"
# English, German, French, Spanish, Italian, Dutch, Polish, Portuguese, the Nordic languages
_WRITTEN = """#NULL! #DIV/0! #VALUE! #REF! #NAME? #NUM! #N/A #SPILL! #CALC! #ERROR! #GETTING_DATA
    #WERT! #BEZUG! #ZAHL! #NV #ÜBERLAUF! #KALK!
    #NUL! #VALEUR! #NOM? #NOMBRE! #PROPAGATION!
    #¡NULO! #¡DIV/0! #¡VALOR! #¡REF! #¿NOMBRE? #¡NUM! #NULO! #VALOR! #NOMBRE? #N/D #¡DESBORDAMIENTO! #DESBORDAMIENTO!
    #NULLO! #VALORE! #RIF! #NOME? #N/D! #ESPANSIONE!
    #LEEG! #DEEL/0! #WAARDE! #VERW! #NAAM? #GETAL! #N/B #OVERLOOP!
    #ZERO! #DZIEL/0! #ARG! #ADR! #NAZWA? #LICZBA! #ROZLANIE!
    #NÚM! #DESPEJAR! #DESPEJO!
    #SKÄRNING! #DIVISION/0! #VÄRDEFEL! #REFERENS! #NAMN? #OGILTIGT! #SAKNAS! #VÆRDI! #REFERENCE! #NAVN? #I/T
    #VERDI! #TYHJÄ! #JAKO/0! #ARVO! #VIITTAUS! #NIMI? #LUKU! #PUUTTUU!"""
ERRORS = frozenset(_WRITTEN.split())
_NUMBERED = re.compile(r"Err:\d{3}", re.ASCII)


def may_hold_errors(text: str) -> bool:
    """Whether there may be errors in cells, given all of their text."""
    return "#" in text or "Err:" in text


def error_told(text: str) -> str | None:
    """What is said of a cell that has an error for its text; of any other nothing.

    >>> error_told("#BEZUG!"), error_told("#1")
    ('the error #BEZUG!; put it right in a spreadsheet program', None)
    """
    return f"the error {text}{PUT_RIGHT}" if text in ERRORS or _NUMBERED.fullmatch(text) else None


def column_letters(column: int) -> str:
    """What spreadsheets call a column, from 0: A, B ... Z, AA ..."""
    found = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        found = chr(65 + rest) + found
    return found
