"""Who is meant by new names that are close to others: asked at a terminal, name by name."""

from collections import ChainMap
from collections.abc import Collection, Mapping
from typing import NamedTuple

from cli.arguments.asking import ask
from cli.output import render
from ledger.validation.new_names import CloseName

YES, NEW, STOP = "yes", "new", "stop"


class Answers(NamedTuple):
    """Who is meant by names, and which names are those of new players."""

    aliases: dict[str, str]
    accepted: frozenset[str]


def ask_who(close: Collection[CloseName], aliases: Mapping[str, str]) -> Answers | None:
    """What somebody answers about each of these names; None if they stop. Raises `click.Abort`.

    Where another name is an alias, they are asked about the player for whom it stands.
    """
    answers, accepted = dict[str, str](), set[str]()
    known = ChainMap(answers, {**aliases})
    several = len({one.first.file for one in close if one.first is not None}) > 1
    render.note(f"new names that may be slips: {len(close):,}")
    for one in close:
        players = dict.fromkeys(known.get(name, name) for name in one.others if known.get(name, name) != one.name)
        others = {name: one.others.get(name) for name in players}
        if not others:
            accepted.add(one.name)
            continue
        words = dict(zip([YES] if len(others) == 1 else map(str, range(1, len(others) + 1)), others, strict=True))
        file = f"{one.first.file}: " if several and one.first is not None else ""
        question = one._replace(others=others).question(numbered=len(others) > 1)
        chosen = ask(render.plain(file + question), [*words, NEW, STOP])
        if chosen == STOP:
            return None
        if chosen == NEW:
            accepted.add(one.name)
        else:
            answers[one.name] = words[chosen]
    return Answers(answers, frozenset(accepted))
