"""Try a ruleset file before it is published, in a separate process with a time limit."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from ratings_ledger.ledger.errors import BadArgument, WorkerLost
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, run_ahead
from ratings_ledger.projections.admission.drawn_games import parse_column_ranges
from ratings_ledger.projections.admission.trials import SEED, describe_trial, try_rule
from ratings_ledger.projections.rulesets.registry import BUILT_IN, find_contested_rules
from ratings_ledger.projections.rulesets.ruleset_sources import read_file, read_tables
from ratings_ledger.projections.rulesets.versions import RulesetProblem, bind
from ratings_ledger.projections.stored.rule_processes import describe_lost_process

seed_option = click.option(
    "--seed",
    metavar="N",
    type=int,
    default=SEED,
    show_default=True,
    help="The seed of the random games; another seed gives other games.",
)

columns_option = click.option(
    "--column",
    "columns",
    metavar="NAME=LOW..HIGH",
    multiple=True,
    help="The range of a column in the random games; repeatable.",
)


class RuleTrial(NamedTuple):
    """The result of trying the rule of a ruleset file.

    file:     the name of the file
    name:     the name of the version; None if there are problems
    assumed:  the keys whose values are assumed
    problems: the problems that prevent publication
    remarks:  other remarks about the trial
    checked:  whether the rule scored any random game, or, as a rule of annual lists, scores no games at all
    """

    file: str
    name: str | None
    assumed: list[str]
    problems: list[RulesetProblem]
    remarks: list[str]
    checked: bool


def try_files(files: Sequence[str], seconds: float, seed: int = SEED, columns: Sequence[str] = ()) -> list[RuleTrial]:
    """Read files and try their rules on random games, in another process, which may take `seconds` for each file.

    `columns` are ranges of columns in the random games, such as `seat=1..2`.
    """
    trials: list[RuleTrial] = []
    while remaining_files := files[len(trials) :]:
        attempts = (json.dumps(_try_file(name, seed, columns)).encode() for name in remaining_files)
        try:
            for message in run_ahead(attempts, seconds, closes_files=True):
                trial = RuleTrial(*json.loads(message))
                trials.append(trial._replace(problems=[RulesetProblem(*problem) for problem in trial.problems]))
        except (TimeLimitExceeded, WorkerLost) as error:
            trials.append(
                RuleTrial(
                    file=files[len(trials)],
                    name=None,
                    assumed=[],
                    problems=[RulesetProblem("rule", describe_lost_process(error))],
                    remarks=[],
                    checked=False,
                )
            )
    return trials


def find_failure(work: Callable[[], Any], seconds: float) -> str | None:
    """Do the work in another process; return why this process was lost or took more than `seconds`, or None.

    Errors of the work pass through as in `run_ahead`.
    """

    def run_work() -> Iterator[bytes]:
        work()
        yield from ()

    try:
        for _ in run_ahead(run_work(), seconds, closes_files=True):
            pass
    except (TimeLimitExceeded, WorkerLost) as error:
        return describe_lost_process(error)
    return None


def _try_file(file: str, seed: int, columns: Sequence[str]) -> RuleTrial:
    ruleset, problems = read_file(file)
    if ruleset is None:
        return RuleTrial(file=file, name=None, assumed=[], problems=problems, remarks=[], checked=False)
    version, _ = bind(ruleset)
    assert version is not None
    try:
        column_ranges = parse_column_ranges(columns, version.rule)
    except BadArgument as problem:
        return RuleTrial(
            file=file,
            name=None,
            assumed=[],
            problems=[RulesetProblem("rule", f"--column: {problem}")],
            remarks=[],
            checked=False,
        )
    trial = try_rule(version, seed, ranges=column_ranges)
    problems = [RulesetProblem("rule", f"{ruleset.rule}: {problem}") for problem in trial.problems]
    if ruleset.rule in (contested_rules := find_contested_rules()):
        problems.append(RulesetProblem("rule", contested_rules[ruleset.rule]))
    name = None if problems else ruleset.name
    return RuleTrial(
        file=file,
        name=name,
        assumed=sorted(ruleset.assumed),
        problems=problems,
        remarks=[*describe_trial(trial)],
        checked=not trial.is_empty,
    )


def has_package_rule(file: str) -> bool:
    """Tell whether a file uses a rule from a package, or one whose name several providers claim."""
    data, _ = read_tables(file)
    rule_id = None if data is None else data.get("rule")
    return isinstance(rule_id, str) and (rule_id not in BUILT_IN or rule_id in find_contested_rules())
