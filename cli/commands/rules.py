"""Implement `rules`: list, show, check and publish rulesets, and write new ones."""

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress

import click

from ratings_ledger.cli.arguments.command import group
from ratings_ledger.cli.arguments.engines import rule_seconds_option
from ratings_ledger.cli.arguments.options import (
    format_option,
    format_options,
    known_at_option,
    read_elo_games,
    read_zone_name,
)
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.commands.rule_trials import (
    columns_option,
    find_failure,
    has_package_rule,
    seed_option,
    try_files,
)
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import print_rulesets_published
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.rulesets import (
    format_problem,
    print_ruleset,
    print_ruleset_csv,
    print_ruleset_toml,
    print_rulesets,
    print_rulesets_csv,
    print_shipped,
    print_shipped_csv,
)
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.events.fields import read_slug
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.own_files import create_file
from ratings_ledger.ledger.rejections import Refused, did_you_mean, quote
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.admission.outcomes import build_ruleset_outcome
from ratings_ledger.projections.admission.proposals import propose
from ratings_ledger.projections.admission.publishing_rulesets import (
    SHIPPED_BY_INIT,
    build_ruleset_items,
    list_missing,
    load_shipped_texts,
)
from ratings_ledger.projections.diff.impact import Impact
from ratings_ledger.projections.queries.coordinates import load_times
from ratings_ledger.projections.queries.ruleset_states import list_shipped
from ratings_ledger.projections.rulesets.registry import find_rule, rule_names
from ratings_ledger.projections.rulesets.ruleset_sources import read_file
from ratings_ledger.projections.rulesets.shipped_rulesets import find_shipped, find_shipped_text, shipped_rulesets
from ratings_ledger.projections.rulesets.versions import ELO, RulesetProblem


@group()
def rules() -> None:
    """List, show, check and publish rulesets."""


DEFAULT_RULE = "pairwise-elo/1"


def _read_slug_option(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else read_slug(value)
    except Refused as problem:
        raise click.BadParameter(problem.message) from None


@rules.command(name="list")
@click.option(
    "--shipped", "is_shipped", is_flag=True, help="List the rulesets that come with this program, including templates."
)
@known_at_option
@format_option
@click.pass_obj
def list_(db: str, is_shipped: bool, known_at: str | None, output_format: str) -> None:
    """List the published versions, and mark the versions in force for games that end now."""
    if is_shipped and known_at is not None:
        raise click.UsageError(
            "--shipped lists the rulesets of this program, and --known-at those of the ledger; leave out one"
        )
    if is_shipped:
        emit(list_shipped(), output_format, print_shipped, print_shipped_csv)
        return
    emit(
        open_view(open_for_command(db), known_at=known_at).rulesets(),
        output_format,
        print_rulesets,
        print_rulesets_csv,
    )


@rules.command()
@click.argument("file", required=False, type=click.Path())
@click.option(
    "--rule",
    "rule_id",
    metavar="RULE",
    help=f"The rule that the ruleset uses, with its number.  [default: {DEFAULT_RULE}]",
)
@click.option(
    "--package",
    metavar="NAME",
    callback=_read_slug_option,
    help="Write a Python package with a rule of this name and its test, into the folder FILE.",
)
@click.option(
    "--game",
    metavar="NAME",
    default="chess",
    show_default=True,
    callback=_read_slug_option,
    help="The game that the ruleset scores.",
)
@click.pass_obj
def new(db: str, file: str | None, rule_id: str | None, package: str | None, game: str) -> None:
    """Write a commented ruleset to start from, to a new FILE or to standard output.

    With --package, write a Python package to the new folder NAME or FILE: a rule that keeps two numbers about a
    player, its test and a ruleset.
    """
    zone = "UTC"
    with suppress(LedgerError), open_ledger(db).reading() as connection:
        zone = load_times(connection).zone
    if package is not None:
        if rule_id is not None:
            raise click.UsageError("--package writes a new rule, and --rule names an existing one; leave out one")
        _write_package(package, file or package, game, zone)
        return
    text = _build_template(rule_id or DEFAULT_RULE, game, zone)
    if file is None:
        render.echo(text, nl=False)
        return
    try:
        with create_file(file) as template_file:
            template_file.write(text.encode())
    except FileExistsError:
        raise click.UsageError(f"{file} exists; nothing was written; delete it, or choose another FILE") from None
    render.echo(f"{file} is written; next: ratings rules check {shlex.quote(file)}")


def _build_template(rule_id: str, game: str, zone: str) -> str:
    """Return a commented ruleset that uses a rule."""
    from ratings_ledger.projections.rulesets.templates import build_template

    try:
        template_rule = find_rule(rule_id)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if template_rule is None:
        hint = did_you_mean(rule_id, rule_names())
        raise click.UsageError(f"no rule is called {quote(rule_id)}; the rules are {', '.join(rule_names())}{hint}")
    return build_template(template_rule, game, zone)


def _write_package(name: str, folder: str, game: str, zone: str) -> None:
    """Write a package with a rule into a new folder, and list its files."""
    from ratings_ledger.projections.rulesets.rule_packages import write_rule_package

    try:
        files = write_rule_package(name, folder, game, zone)
    except FileExistsError:
        raise click.UsageError(f"{folder} exists; nothing was written; delete it, or choose another FILE") from None
    render.echo(f"{folder} is written: {', '.join(files)}")
    # pip would look for a bare name in its index of packages
    path = folder if os.path.dirname(folder) else os.path.join(os.curdir, folder)
    ruleset_file = os.path.join(path, f"{name}.toml")
    render.echo(f"next: pip install {shlex.quote(path)}; ratings rules check {shlex.quote(ruleset_file)}")


@rules.command()
@click.argument("name", metavar="ID[@VERSION]")
@click.option(
    "--shipped",
    "is_shipped",
    is_flag=True,
    help="Print a ruleset that comes with this program; rules list --shipped lists them all.",
)
@known_at_option
@format_options("table", "json", "csv", "toml", meaning="Output format; toml prints a ruleset file.")
@click.pass_obj
def show(db: str, name: str, is_shipped: bool, known_at: str | None, output_format: str) -> None:
    """Show a version, and the days on which each version of its ruleset scores games.

    Every assumed value is marked. Without VERSION, show the version that comes into force last. In a template, GAME
    and ZONE are placeholders, which `rules publish --shipped` fills in.
    """
    if is_shipped:
        if known_at is not None or output_format not in ("table", "toml"):
            raise click.UsageError("--shipped prints the file; leave out --known-at and --format json or csv")
        render.echo(find_shipped_text(name), nl=False)
        return
    ruleset = open_view(open_for_command(db), known_at=known_at).ruleset(name)
    emit(ruleset, output_format, print_ruleset, print_ruleset_csv, toml=print_ruleset_toml)


@rules.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@seed_option
@columns_option
@rule_seconds_option
def check(files: tuple[str, ...], seed: int, columns: tuple[str, ...], rule_seconds: float) -> int:
    """Check ruleset FILES, and report problems by line and key. Publish nothing. Exit 1 if there are problems.

    Each rule is tried on random games of the types that it scores. Exit 1, too, if it scores none of them,
    because then nothing was checked. A rule that needs columns that random games lack generates its own games with
    Rule.sample, or gets the columns from --column, such as --column seat=1..2.
    """
    trials = try_files(files, rule_seconds, seed, columns)
    for trial in trials:
        for problem in trial.problems:
            render.echo(format_problem(trial.file, problem))
        if trial.name is not None:
            assumed = f"; assumed: {', '.join(trial.assumed)}" if trial.assumed else ""
            verdict = "can be published" if trial.checked else "was not checked: its rule scored no random game"
            render.echo(f"{trial.file}: {trial.name} {verdict}{assumed}")
        for line in trial.remarks:
            render.print_hanging(f"  {render.plain(line)}", 4)
    return int(not all(trial.checked and not trial.problems for trial in trials))


@rules.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--shipped",
    "from_shipped",
    is_flag=False,
    flag_value=SHIPPED_BY_INIT,
    metavar="[ID]",
    help="Publish the shipped versions that the ledger lacks: all of them, or only those of ID.",
)
@click.option(
    "--game",
    "games",
    metavar="NAME",
    multiple=True,
    callback=read_elo_games,
    help="With --shipped ID for a template: the game that it rates, such as chess; repeatable.",
)
@click.option(
    "--zone",
    metavar="NAME",
    callback=read_zone_name,
    help="With --shipped ID for a template: the time zone.  [default: the home zone]",
)
@rule_seconds_option
@write_command
def publish(
    context: WriteContext,
    files: tuple[str, ...],
    from_shipped: str | None,
    games: tuple[str, ...],
    zone: str | None,
    rule_seconds: float,
) -> int:
    """Publish ruleset FILES (TOML), and show the impact. Versions that are already published are skipped.

    A version scores games from its effective_from on: a past day corrects history, a future day does not.
    --shipped elo --game chess publishes textbook Elo for a game, as elo-chess; rules list --shipped names other
    templates. A rule from a package is first tried as in rules check.
    """
    if files and from_shipped is not None:
        raise click.UsageError("pass either FILES or --shipped, not both")
    if not files and from_shipped is None:
        raise click.UsageError("pass FILES, or --shipped for shipped rulesets")
    if from_shipped is None and (games or zone is not None):
        raise click.UsageError(f"--game and --zone work only with --shipped ID, such as --shipped {ELO}")
    if from_shipped is not None:
        return _publish_rulesets(
            context, *list_missing(context.ledger, _load_shipped_texts(context, from_shipped, games, zone))
        )
    if file_problems := _try_package_rules(context.db, files, rule_seconds):
        for name, problem in file_problems:
            render.echo(format_problem(name, problem), err=True)
        return 1
    parsed = [(name, *read_file(name)) for name in files]
    for name, _, problems in parsed:
        for problem in problems:
            render.echo(format_problem(name, problem), err=True)
    rulesets = [(name, ruleset) for name, ruleset, _ in parsed if ruleset is not None]
    if len(rulesets) < len(files):
        return 1
    names = [ruleset.name for _, ruleset in rulesets]
    return _publish_rulesets(context, names, build_ruleset_items(context.ledger, rulesets))


def _publish_rulesets(context: WriteContext, names: Sequence[str], items: Sequence[Item]) -> int:
    """Publish rulesets of these names unless it is a dry run, and print the impact; return the exit code."""
    proposal = context.propose(items)
    impact = Impact() if proposal.is_refused else proposal.impact()
    outcome = build_ruleset_outcome(context.finish(proposal), names, context.dry_run, impact)
    return emit(outcome, context.output_format, print_rulesets_published)


def _load_shipped_texts(context: WriteContext, name: str, games: tuple[str, ...], zone: str | None) -> list[str]:
    """Return the texts of the shipped versions of this name, or of all that `init` publishes."""
    shipped = shipped_rulesets().values()
    ruleset = None if name == SHIPPED_BY_INIT else find_shipped(name)
    if games and not (ruleset and ruleset.takes_game):
        ids = ", ".join(template.id for template in shipped if template.takes_game)
        raise click.UsageError(f"--game works only with --shipped and one of: {ids}")
    if zone is not None and not (ruleset and ruleset.takes_zone):
        ids = ", ".join(template.id for template in shipped if template.takes_zone)
        raise click.UsageError(f"--zone works only with --shipped and one of: {ids}")
    if ruleset and ruleset.takes_game and not games:
        raise click.UsageError(f"--shipped {name} rates one game: name it, as in --shipped {name} --game chess")
    try:
        return load_shipped_texts(context.ledger, name, games, zone)
    except Refused as problem:
        raise click.BadParameter(problem.message, param_hint=["--game"]) from None


def _try_package_rules(db: str, files: Sequence[str], seconds: float) -> list[tuple[str, RulesetProblem]]:
    """Try rules from packages on random games and on the games of the ledger; return the problems of the files."""
    package_files = [name for name in files if has_package_rule(name)]
    trials = try_files(package_files, seconds)
    file_problems = [(trial.file, problem) for trial in trials for problem in trial.problems]
    for trial in trials:
        if not trial.checked and not trial.problems:
            message = f"{trial.file}: the rule scored no random game, so the trial proves nothing about it"
            render.note(f"ratings: {render.plain(message)}; to see why: ratings rules check {shlex.quote(trial.file)}")
    if file_problems or not package_files:
        return file_problems

    def preview() -> None:
        parsed = [(name, read_file(name)[0]) for name in files]
        ledger = open_ledger(db)
        items = build_ruleset_items(ledger, [(name, ruleset) for name, ruleset in parsed if ruleset is not None])
        propose(ledger, items, ImportPolicy("preview", ignore_clock=True)).impact()

    reason = find_failure(preview, seconds)
    return [(package_files[0], RulesetProblem("rule", f"on the games of the ledger {reason}"))] if reason else []
