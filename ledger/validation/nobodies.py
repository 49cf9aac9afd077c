"""What stands in the place of a name and names nobody: a dash in an empty cell, or a word such as bye.

A player called so would be rated: whoever had nobody to play with would win against them, or lose.
"""

import unicodedata

from ratings_ledger.ledger.validation.close_names import folded

# English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, the Nordic languages; as `folded`
_WORDS = """bye none null nil nobody noone noopponent n/a walkover
    freilos spielfrei niemand keiner kampflos
    exempt exempte repos personne aucun
    libre descansa descanso nadie ninguno
    riposo riposa nessuno
    folga ninguem nenhum
    vrijloting geen
    pauza pauzuje nikt wolnylos
    frirunde ingen"""
NOBODIES = frozenset(_WORDS.split())
_EDGES = "()[]<>*.-–— "
# emoji are other symbols (So), and may be names
_EMPTY_KINDS = ("Sm", "Sc", "Sk", "Zs")


def is_dash(text: str) -> bool:
    """Tell whether a cell has something, but nothing that names anybody: only punctuation and signs.

    >>> [is_dash(text) for text in ("-", "–", "?", "...", "", "x", "7", "🦊", "-x-")]
    [True, True, True, True, False, False, False, False, False]
    """
    # most names begin with a letter
    if not text or text[0].isalnum():
        return False
    return all(kind[0] == "P" or kind in _EMPTY_KINDS for kind in map(unicodedata.category, text))


def is_nobody(name: str) -> bool:
    """Tell whether a name is a word for nobody, or shows nothing at all.

    >>> [is_nobody(name) for name in ("BYE", "(bye)", "no one", "\ufe0f", "Byers", "Nina")]
    [True, True, True, True, False, False]
    """
    return folded(name.strip(_EDGES)) in NOBODIES or not folded(name)
