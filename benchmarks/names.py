"""Draw names of people, some with typing errors, and ids with a common beginning."""

import random

SYLLABLES = tuple(
    first + second
    for first in ("", *"bcdfghjklmnprstvwz", "sch", "kr")
    for second in ("a", "e", "i", "o", "u", "an", "er")
)


def draw_names(form: str, new: int, known: int) -> tuple[list[str], list[str]]:
    """Return new and known names, in the form `people` or `numbers`; half of the new people are mistyped known ones."""
    if form == "numbers":
        ids = [f"member-{number:07d}" for number in range(known + new)]
        return ids[known:], ids[:known]
    chance = random.Random(7)
    names: dict[str, None] = {}
    while len(names) < known + new:
        first, last = ("".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))).capitalize() for _ in range(2))
        names[f"{first} {last}"] = None
    all_names = [*names]
    mistyped_names = [_mistype(name, chance) for name in chance.sample(all_names[:known], new // 2)]
    used_names = {*all_names}
    new_names = [*all_names[known + new // 2 :], *(name for name in mistyped_names if name not in used_names)]
    return new_names, all_names[:known]


def _mistype(name: str, chance: random.Random) -> str:
    index = chance.randrange(len(name))
    return chance.choice(
        [
            name[:index] + name[index + 1 :],
            name[:index] + "e" + name[index:],
            " ".join(reversed(name.split())),
            name.lower(),
        ]
    ).strip()
