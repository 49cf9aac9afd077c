"""Drawn names of people, with slips of the pen among the new ones; and ids that all begin alike."""

import random

SYLLABLES = tuple(
    first + second
    for first in ("", *"bcdfghjklmnprstvwz", "sch", "kr")
    for second in ("a", "e", "i", "o", "u", "an", "er")
)


def drawn(form: str, new: int, known: int) -> tuple[list[str], list[str]]:
    """New and known names, in the form `people` or `numbers`; half of the new people are known ones mistyped."""
    if form == "numbers":
        ids = [f"member-{number:07d}" for number in range(known + new)]
        return ids[known:], ids[:known]
    chance = random.Random(7)
    names: dict[str, None] = {}
    while len(names) < known + new:
        first, last = ("".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))).capitalize() for _ in range(2))
        names[f"{first} {last}"] = None
    every = [*names]
    slips = [_mistyped(name, chance) for name in chance.sample(every[:known], new // 2)]
    used_names = {*every}
    return [*every[known + new // 2 :], *(slip for slip in slips if slip not in used_names)], every[:known]


def _mistyped(name: str, chance: random.Random) -> str:
    place = chance.randrange(len(name))
    return chance.choice(
        [
            name[:place] + name[place + 1 :],
            name[:place] + "e" + name[place:],
            " ".join(reversed(name.split())),
            name.lower(),
        ]
    ).strip()
