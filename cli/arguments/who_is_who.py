"""Who is meant by new names that are close to others: asked at a terminal, name by name."""

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ratings_ledger.cli.arguments.asking import ask, can_ask
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.intake.tables.aliases import add_answers
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.validation.new_names import CloseName, describe_close_names
from ratings_ledger.projections.admission.proposals import Proposal

YES, NEW, STOP = "yes", "new", "stop"


class Answers(NamedTuple):
    """Who is meant by names, and which names are those of new players."""

    aliases: dict[str, str]
    accepted: frozenset[str]


def ask_who(close: Collection[CloseName], aliases: Mapping[str, str]) -> Answers | None:
    """Return what somebody answers about each of these names; None if they stop. Raises `click.Abort`.

    Where another name is an alias, they are asked about the player for whom it stands. Nobody plays against themselves,
    so an opponent is no answer.
    """
    answers, accepted = dict[str, str](), set[str]()
    known = ChainMap(answers, {**aliases})
    several = len({one.first.file for one in close if one.first is not None}) > 1
    render.note(f"{describe_close_names(close)}; who is it?")
    for one in close:
        players = dict.fromkeys(known.get(name, name) for name in one.others if known.get(name, name) != one.name)
        others = {name: one.others.get(name) for name in players}
        if not others:
            accepted.add(one.name)
            continue
        opponents = {known.get(name, name) for name in one.opponents}
        possible = {name: games for name, games in others.items() if name not in opponents}
        words = dict(zip([YES] if len(possible) == 1 else map(str, range(1, len(possible) + 1)), possible, strict=True))
        file = f"{one.first.file}: " if several and one.first is not None else ""
        if possible:
            question = one._replace(others=possible).question(numbered=len(possible) > 1)
        else:
            question = one._replace(others=others).question_of_opponents()
        chosen = ask(render.plain(file + question), [*words, NEW, STOP])
        if chosen == STOP:
            return None
        if chosen == NEW:
            accepted.add(one.name)
        else:
            answers[one.name] = words[chosen]
    return Answers(answers, frozenset(accepted))


def agreed_names(
    how: WriteContext,
    options: TableOptions,
    files: Collection[str],
    propose: Callable[[WriteContext, TableOptions], Proposal],
) -> tuple[Proposal, TableOptions]:
    """Return what files hold, proposed again with what somebody answers, as long as nothing but close names is wrong
    with it; and how they were read then, with the answers.

    Nobody is asked about files that cannot be read again. Raises `click.Abort`.
    """
    plan, can_read_again = propose(how, options), all(Path(name).is_file() for name in files)
    while can_read_again and _waits_for_names(plan, how):
        answers = ask_who(plan.result.close.values(), options.aliases)
        if answers is None:
            break
        plan.close()
        new = dict(zip(answers.accepted, answers.accepted, strict=True))
        options = options._replace(aliases=add_answers(options.aliases, {**new, **answers.aliases}))
        how = replace(how, policy=how.policy._replace(accepted=how.policy.accepted | answers.accepted))
        plan = propose(how, options)
    return plan, options


def _waits_for_names(plan: Proposal, how: WriteContext) -> bool:
    """Tell whether nothing but close names is wrong, and somebody can be asked about them."""
    told = plan.result
    is_wanted = plan.is_refused and not (how.dry_run or how.policy.strict)
    only_close = len(told.rejected) == told.rejected_count and {one.code for one in told.rejected} == {"close-name"}
    return is_wanted and only_close and can_ask()
