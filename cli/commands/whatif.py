"""Implement `whatif`: score all games by an unpublished ruleset, and compare the result with the ledger."""

import math
import os.path
from typing import Any

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.engines import workers_options
from ratings_ledger.cli.arguments.options import as_of_option, format_option, known_at_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.output.progress import show_progress
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.rulesets import format_problem
from ratings_ledger.cli.output.simulation import format_settings, print_simulation, print_simulation_csv
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.diff.what_if import build_variants
from ratings_ledger.projections.queries.ruleset_states import RulesetState
from ratings_ledger.projections.rulesets.ruleset_sources import read_file, read_tables
from ratings_ledger.projections.rulesets.versions import NESTED_MAX, read_ruleset
from ratings_ledger.projections.snapshot import Snapshot

VARIANTS_MAX = 100


def _read_settings(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for value in values:
        key, equals, choices = value.partition("=")
        if not equals or not all(part.strip() for part in key.split(".")):
            raise click.BadParameter(f"{quote(value)} is not KEY=VALUE, such as params.k_total=16,32,64")
        if key.count(".") > NESTED_MAX:
            problem = f"{quote(value)} names a key with more than {NESTED_MAX} dots"
            raise click.BadParameter(f"{problem}; name a key of the ruleset, such as params.k_total")
        settings.setdefault(key.strip(), []).extend(choice.strip() for choice in choices.split(","))
    return settings


@command()
@click.argument("file", metavar="FILE|RULESET", type=click.Path())
@click.option("--ladder", "ladders", metavar="LADDER", multiple=True, type=to_nfc, help="Only this ladder; repeatable.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=V1,V2...",
    multiple=True,
    callback=_read_settings,
    help="Try other values for a key of the ruleset; without a value, drop the key.",
)
@as_of_option
@known_at_option
@workers_options
@format_option
@click.pass_obj
def whatif(
    db: str,
    file: str,
    ladders: tuple[str, ...],
    settings: dict[str, list[str]],
    as_of: str | None,
    known_at: str | None,
    on: str | None,
    segments: str | None,
    output_format: str,
) -> int:
    """Score all games by the ruleset in FILE, and record nothing.

    \b
        ratings whatif club-catan-elo-2.toml
        ratings whatif club-catan-elo-2.toml --set params.k_total=16,32,64
        ratings whatif elo-chess --set params.k_total=16,24

    Instead of FILE, name a published version as ID@VERSION, or a RULESET for its version that comes into force last.

    It shows whose points or rank would change, who would enter or leave the top ten, which published lists would come
    out differently, and how well both rulesets predict results. It ignores effective_from; `rules publish --dry-run`
    shows the impact of publishing. A ladder that cannot be replayed is reported and left out; the exit code is then
    1.
    """
    ledger = open_for_command(db)
    view = open_view(ledger, as_of=as_of, known_at=known_at)
    rulesets = _load_variants(view, file, settings)
    if on is None:
        simulation = view.simulate(rulesets, ladders)
    else:
        # slow to import, and only engines need them
        from ratings_ledger.projections.cluster.resources import open_cluster
        from ratings_ledger.projections.cluster.simulating import simulate_on_cluster

        with show_progress(None) as report_progress:
            workers = open_cluster(ledger, on, segments, report_progress)
            names = [*map(view.full_name, ladders)]
            simulation = simulate_on_cluster(ledger, workers, rulesets, names, as_of, known_at, view.note)
    emit(simulation, output_format, print_simulation, print_simulation_csv)
    return int(any(variant.left_out for variant in simulation.variants))


def _load_variants(view: Snapshot, file: str, settings: dict[str, list[str]]) -> list[tuple[dict[str, str], Ruleset]]:
    """Return the ruleset of a file, or a published one, with each combination of other values.

    Raises `click.ClickException` for a wrong file or setting, and the errors of `Snapshot.ruleset`.
    """
    if not os.path.isfile(file):
        return _combine_settings(file, _find_published(view, file).data, settings)
    if not settings:
        ruleset, problems = read_file(file)
        if ruleset is None:
            raise click.ClickException("\n".join(format_problem(file, problem) for problem in problems))
        return [({}, ruleset)]
    data, problems = read_tables(file)
    if data is None:
        raise click.ClickException("\n".join(format_problem(file, problem) for problem in problems))
    return _combine_settings(file, data, settings)


def _find_published(view: Snapshot, name: str) -> RulesetState:
    """Return a published ruleset. Raises `click.UsageError` for the name of a folder or a missing file."""
    if os.path.isdir(name) or "/" in name or name.endswith((".toml", ".json")):
        problem = "a folder" if os.path.isdir(name) else "not a file"
        raise click.UsageError(f"{quote(name)} is {problem}; name a ruleset file or a published ruleset")
    return view.ruleset(name)


def _combine_settings(
    name: str, data: dict[str, Any], settings: dict[str, list[str]]
) -> list[tuple[dict[str, str], Ruleset]]:
    """Return the ruleset whose data is given with each combination of other values. Messages call it `name`."""
    if (count := math.prod(map(len, settings.values()))) > VARIANTS_MAX:
        raise click.UsageError(
            f"{count:,} combinations of values exceed the limit of {VARIANTS_MAX}; give fewer values"
        )
    return [
        (combination, _read_variant(name, combination, tables))
        for combination, tables in build_variants(data, settings)
    ]


def _read_variant(name: str, combination: dict[str, str], data: dict[str, Any]) -> Ruleset:
    ruleset, problems = read_ruleset(data)
    if ruleset is None:
        raise click.ClickException(
            format_problem(name, problems[0]) + (f" (with {format_settings(combination)})" if combination else "")
        )
    return ruleset
