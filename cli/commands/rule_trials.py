"""Trying a ruleset file before it is published: in a process of its own, with a time limit."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from ratings_ledger.ledger.errors import BadArgument, WorkerLost
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, run_ahead
from ratings_ledger.projections.admission.drawn_columns import read_given_columns
from ratings_ledger.projections.admission.trials import SEED, trial_lines, try_rule
from ratings_ledger.projections.rulesets.registry import BUILT_IN, find_contested_rules
from ratings_ledger.projections.rulesets.ruleset_files import read_file, read_tables
from ratings_ledger.projections.rulesets.versions import RulesetProblem, bind
from ratings_ledger.projections.stored.rule_processes import why_lost

seed_option = click.option("--seed", metavar="N", type=int, default=SEED, show_default=True, help="Draw other games.")

columns_option = click.option(
    "--column", "columns", metavar="NAME=LOW..HIGH", multiple=True,
    help="Numbers of a column that the rule reads, in all drawn games; repeatable.",
)  # fmt: skip


class Tried(NamedTuple):
    """The outcome for a file: the version's name if nothing is wrong with it, what is wrong, and other remarks.

    `checked`: whether the trial says anything about the rule.
    """

    file: str
    name: str | None
    assumed: list[str]
    problems: list[RulesetProblem]
    told: list[str]
    checked: bool


def tried(files: Sequence[str], seconds: float, seed: int = SEED, columns: Sequence[str] = ()) -> list[Tried]:
    """Read some files and try their rules on drawn games, in another process, which may take `seconds` for each.

    `columns` are given for the games, such as `seat=1..2`.
    """
    found: list[Tried] = []
    while rest := files[len(found) :]:
        made = (json.dumps(_try(name, seed, columns)).encode() for name in rest)
        try:
            for message in run_ahead(made, seconds, closes_files=True):
                outcome = Tried(*json.loads(message))
                found.append(outcome._replace(problems=[RulesetProblem(*problem) for problem in outcome.problems]))
        except (TimeLimitExceeded, WorkerLost) as error:
            found.append(Tried(files[len(found)], None, [], [RulesetProblem("rule", why_lost(error))], [], False))
    return found


def why_not_in_time(work: Callable[[], Any], seconds: float) -> str | None:
    """Do some work in another process; why that gave no result, or None."""

    def worked() -> Iterator[bytes]:
        work()
        yield from ()

    try:
        for _ in run_ahead(worked(), seconds, closes_files=True):
            pass
    except (TimeLimitExceeded, WorkerLost) as error:
        return why_lost(error)
    return None


def _try(file: str, seed: int, columns: Sequence[str]) -> Tried:
    ruleset, problems = read_file(file)
    if ruleset is None:
        return Tried(file, None, [], problems, [], False)
    version, _ = bind(ruleset)
    assert version is not None
    try:
        given = read_given_columns(columns, version.rule)
    except BadArgument as problem:
        return Tried(file, None, [], [RulesetProblem("rule", f"--column: {problem}")], [], False)
    trial = try_rule(version, seed, given=given)
    problems = [RulesetProblem("rule", f"{ruleset.rule}: {problem}") for problem in trial.problems]
    if ruleset.rule in (known := find_contested_rules()):
        problems.append(RulesetProblem("rule", known[ruleset.rule]))
    name = None if problems else ruleset.name
    return Tried(file, name, sorted(ruleset.assumed), problems, [*trial_lines(trial)], not trial.is_empty)


def rule_of_package(file: str) -> bool:
    """Tell whether a file names a rule of a package, even if it ships with this program, too."""
    data, _ = read_tables(file)
    named = None if data is None else data.get("rule")
    return isinstance(named, str) and (named not in BUILT_IN or named in find_contested_rules())
