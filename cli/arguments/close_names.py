"""Ask at a terminal which player each new name stands for, if it is close to a known name."""

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ratings_ledger.cli.arguments.prompts import ask, can_ask
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.intake.tables.aliases import add_answers
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.validation.new_names import CloseName, describe_close_names
from ratings_ledger.projections.admission.proposals import Proposal

YES, NEW, STOP = "yes", "new", "stop"


class Answers(NamedTuple):
    """The user's answers: `aliases` maps names to known players, `accepted` holds the names of new players."""

    aliases: dict[str, str]
    accepted: frozenset[str]


def ask_about_close_names(close_names: Collection[CloseName], aliases: Mapping[str, str]) -> Answers | None:
    """Return the user's answers about these names, or None if the user stops. Raises `click.Abort`.

    A question offers the players that a name may mean, with aliases replaced by their players. It does not offer an
    opponent in the same game, because players do not play against themselves. A name is accepted without a question if
    all the names close to it are aliases of it.
    """
    answers, accepted = dict[str, str](), set[str]()
    known_aliases = ChainMap(answers, {**aliases})
    has_several_files = len({close_name.first.file for close_name in close_names if close_name.first is not None}) > 1
    end = "which player is it?" if len(close_names) == 1 else "which players are they?"
    render.note(f"{describe_close_names(close_names)}; {end}")
    for close_name in close_names:
        players = dict.fromkeys(
            player for name in close_name.others if (player := known_aliases.get(name, name)) != close_name.name
        )
        candidates = {name: close_name.others.get(name) for name in players}
        if not candidates:
            accepted.add(close_name.name)
            continue
        opponents = {known_aliases.get(name, name) for name in close_name.opponents}
        allowed = {name: games for name, games in candidates.items() if name not in opponents}
        choices = dict(zip([YES] if len(allowed) == 1 else map(str, range(1, len(allowed) + 1)), allowed, strict=True))
        file_prefix = f"{close_name.first.file}: " if has_several_files and close_name.first is not None else ""
        if allowed:
            question = close_name._replace(others=allowed).format_question(numbered=len(allowed) > 1)
        else:
            question = close_name._replace(others=candidates).format_question_about_opponents()
        choice = ask(render.plain(file_prefix + question), [*choices, NEW, STOP])
        if choice == STOP:
            return None
        if choice == NEW:
            accepted.add(close_name.name)
        else:
            answers[close_name.name] = choices[choice]
    return Answers(answers, frozenset(accepted))


def propose_with_answers(
    context: WriteContext,
    options: TableOptions,
    files: Collection[str],
    propose: Callable[[WriteContext, TableOptions], Proposal],
) -> tuple[Proposal, TableOptions]:
    """Return the proposal for the files, and the options with which they were read.

    As long as close names are the only problem, ask about them and read the files again. Ask nothing about files that
    cannot be read twice. Raises `click.Abort`.
    """
    proposal = propose(context, options)
    can_read_again = all(Path(name).is_file() for name in files)
    while can_read_again and _should_ask_about_names(proposal, context):
        answers = ask_about_close_names(proposal.result.close.values(), options.aliases)
        if answers is None:
            break
        proposal.close()
        accepted = dict(zip(answers.accepted, answers.accepted, strict=True))
        options = options._replace(
            aliases=add_answers(options.aliases, {**accepted, **answers.aliases}),
            answered_names=options.answered_names | answers.aliases.keys(),
        )
        context = replace(context, policy=context.policy._replace(accepted=context.policy.accepted | answers.accepted))
        proposal = propose(context, options)
    return proposal, options


def _should_ask_about_names(proposal: Proposal, context: WriteContext) -> bool:
    """Tell whether close names are the only problem, and a user can answer questions about them."""
    result = proposal.result
    is_blocked = proposal.is_refused and not (context.dry_run or context.policy.strict)
    has_only_close_names = len(result.rejected) == result.rejected_count and {
        rejection.code for rejection in result.rejected
    } == {"close-name"}
    return is_blocked and has_only_close_names and can_ask()
