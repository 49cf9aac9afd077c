"""`rules`: which rulesets there are, what they say, publishing and checking them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.command import group
from cli.arguments.moments import known_position
from cli.arguments.options import elo_games, format_of, format_option, known_at_option
from cli.arguments.rule_seconds import rule_seconds_option
from cli.arguments.ruleset_files import problem_line, read_file
from cli.arguments.writing import How, writing
from cli.commands.rule_trials import rule_of_package, seed_option, tried, why_not_in_time
from cli.output import render
from cli.output.emit import emit
from ledger import clock
from ledger.errors import LedgerError, NotALedger
from ledger.events.canonical import format_instant
from ledger.events.fields import read_slug
from ledger.events.types import Ruleset
from ledger.intake.files import Item
from ledger.intake.importing import Terms
from ledger.rejections import Refused, did_you_mean, shown
from ledger.store.log import Log, head, read_live, read_records_at
from ledger.store.opening import Ledger, open_ledger
from projections.admission.events import Admission
from projections.admission.outcomes import Refusal, RulesetsPublished, head_of
from projections.admission.proposals import Proposal
from projections.queries.answers_compared import Impact
from projections.queries.coordinates import Times, times_of
from projections.queries.results import ABSENT
from projections.rulesets.registry import rule, rule_names
from projections.rulesets.versions import (
    ELO,
    SHIPPED_AT,
    RulesetProblem,
    bind,
    in_force,
    newest,
    read_toml,
    shipped,
    shipped_elo,
)

# what --shipped without an id means
EVERY = "all"


@group()
def rules() -> None:
    """List, show, check and publish rulesets."""


def _slug(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        return read_slug(value)
    except Refused as problem:
        raise click.BadParameter(problem.message) from None


class PublishedVersion(NamedTuple):
    """A published version, with its place in the log and its event."""

    position: int
    ruleset: Ruleset
    event: dict[str, Any]


def _published(connection: Connection, until: int | None = None) -> list[PublishedVersion]:
    """The versions that are live at a position, by default the head."""
    until = head(connection).position if until is None else until
    found = read_live(connection, until=until, type_name="ruleset.published")
    records = read_records_at(connection, [event.position or 0 for event in found])
    return [
        PublishedVersion(position, Ruleset.model_validate(event.data), json.loads(records[position]))
        for event, position in zip(found, sorted(records), strict=True)
    ]


@rules.command(name="list")
@known_at_option
@format_option
@click.pass_obj
def list_(db: str, known_at: str | None, form: str) -> None:
    """The published versions; in force: scores games that end now."""
    with open_ledger(db).reading() as connection:
        until = known_position(connection, known_at)
        versions = Admission(connection, until=until).versions
        published = _published(connection, until)
    now = clock.now()
    rows = []
    for position, ruleset, event in published:
        current = in_force(versions.get(ruleset.id, ()), now)
        rows.append((
            ruleset.name, ruleset.rule, ruleset.effective_from or "only by --rules",
            "yes" if current is not None and current.position == position else "no",
            len(ruleset.assumed), position, event["by"],
        ))  # fmt: skip
    header = ("version", "rule", "effective_from", "in_force", "assumed", "position", "by")
    if form == "json":
        render.print_json([dict(zip(header, row, strict=True)) for row in rows])
    elif form == "csv":
        render.print_csv(header, rows)
    else:
        # who published it, and where, is told by: ratings log
        render.print_table(header[:5], [row[:5] for row in rows], right=("assumed",))


@rules.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option("--rule", "rule_id", metavar="RULE", default="pairwise-elo/1", show_default=True,
              help="The rule that it uses, with its number.")  # fmt: skip
@click.option("--game", metavar="NAME", default="chess", show_default=True, callback=_slug, help="The game it scores.")
@click.pass_obj
def new(db: str, file: str | None, rule_id: str, game: str) -> None:
    """Write a commented ruleset to start from. To FILE, which must not exist yet, or to standard output."""
    from projections.rulesets.templates import template

    try:
        found = rule(rule_id)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if found is None:
        hint = did_you_mean(rule_id, rule_names())
        raise click.UsageError(f"no rule is called {shown(rule_id)}; the rules are {', '.join(rule_names())}{hint}")
    zone = "UTC"
    with suppress(LedgerError), open_ledger(db).reading() as connection:
        zone = times_of(connection).zone
    text = template(found, game, zone)
    if file is None:
        render.echo(text, nl=False)
        return
    try:
        with open(file, "x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError:
        raise click.UsageError(f"{file} exists; nothing was written") from None
    render.echo(f"{file} is written; next: ratings rules check {file}")


@rules.command()
@click.argument("name", metavar="ID[@VERSION]")
@known_at_option
@format_of("table", "json", "csv", "toml", meaning="Output format; toml is a file that says the same.")
@click.pass_obj
def show(db: str, name: str, known_at: str | None, form: str) -> None:
    """What a version says, and from when until when each version of its ruleset scores.

    Every assumed value is marked. Without a VERSION, it is the newest in force.
    """
    ruleset_id, _, version = name.partition("@")
    with open_ledger(db).reading() as connection:
        times, until = times_of(connection), known_position(connection, known_at)
        published = _published(connection, until)
        known = [entry for entry in published if entry.ruleset.id == ruleset_id]
        usable = Admission(connection, until=until).versions.get(ruleset_id)
    chosen = [entry for entry in known if not version or entry.ruleset.version == version]
    if not chosen:
        there = [entry.ruleset for entry in published]
        hint = did_you_mean(name, [ruleset.name if version else ruleset.id for ruleset in there])
        raise click.UsageError(f"no ruleset {name} is published at position {until}; see: ratings rules list{hint}")
    if not version:
        current = newest(usable).position if usable else known[-1].position
        chosen = [entry for entry in chosen if entry.position == current]
    position, ruleset, event = chosen[0]
    if form == "toml":
        from projections.rulesets.templates import as_toml

        render.echo(as_toml(event["data"]), nl=False)
        return
    stretches, never = _timeline(known), _never(known)
    if form == "json":
        told = {"versions": [entry.ruleset.version for entry in known], "known_at": until, "timeline": stretches}
        render.print_json(event["data"] | told | {"never_in_force": never})
        return
    rows = [(key, value, _assumption(ruleset, key)) for key, value in _flat(event["data"])]
    header = ("key", "value", "assumed because")
    if form == "csv":
        render.print_csv(header, rows)
        return
    render.echo(f"{ruleset.name}, published at position {position} by {render.plain(event['by'])}\n")
    render.print_table(
        header if ruleset.assumed else header[:2], rows if ruleset.assumed else [row[:2] for row in rows]
    )
    _print_timeline(ruleset, stretches, never, times)


def _timeline(known: Sequence[PublishedVersion]) -> list[dict[str, Any]]:
    """From which day until before which other day each version scores, in its ruleset's zone."""
    # of versions with the same day, the last one is used
    latest = {entry.ruleset.effective_from: entry for entry in known if entry.ruleset.effective_from is not None}
    days = sorted(latest)
    return [
        {"version": latest[day].ruleset.version, "from": day, "until": following, **_recorded(latest[day])}
        for day, following in zip(days, [*days[1:], None], strict=True)
    ]  # fmt: skip


def _never(known: Sequence[PublishedVersion]) -> list[dict[str, Any]]:
    """The versions that score no games by themselves, with the reason."""
    found = []
    for index, entry in enumerate(known):
        day = entry.ruleset.effective_from
        later = [other.ruleset.version for other in known[index + 1 :] if other.ruleset.effective_from == day]
        if day is None:
            why = "it has no day, and is used only by --rules"
        elif later:
            why = f"replaced on the same day by {later[-1]}, recorded later"
        else:
            continue
        found.append({"version": entry.ruleset.version, **_recorded(entry), "why": why})
    return found


def _recorded(entry: PublishedVersion) -> dict[str, Any]:
    """Where a version is in the log, when it was recorded, and by whom."""
    return {"position": entry.position, "recorded_at": entry.event["recorded_at"], "by": entry.event["by"]}


def _print_timeline(
    ruleset: Ruleset, stretches: list[dict[str, Any]], never: list[dict[str, Any]], times: Times
) -> None:  # fmt: skip
    what = (
        "leagues by the day on which they begin"
        if ruleset.freeze == "league-start"
        else "games by the day of their end"
    )
    render.echo(f"\nTimeline of {what} ({ruleset.time_zone})")
    rows = [
        (line.get("from", "never"), line.get("until") or "", line["version"], line["position"],
         times.minute(line["recorded_at"]), line["by"])
        for line in [*stretches, *never]
    ]  # fmt: skip
    header = ("from", "until before", "version", "position", times.column("recorded"), "by")
    render.print_table(header, rows, right=("position",))
    for line in never:
        render.hanging(f"Version {line['version']} is never in force: {line['why']}.", 2)
    version, _ = bind(ruleset)
    render.hanging(version.ranking.by if version else "It does not run here.", 2)


def _assumption(ruleset: Ruleset, key: str) -> str:
    """Why a value is assumed: its own key or that of a table it stands in, such as points of params.points.4."""
    parts = key.split(".")
    return next((ruleset.assumed[part] for part in reversed(parts) if part in ruleset.assumed), "")


def _flat(data: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in data.items():
        if key == "assumed":
            continue
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return sorted(found, key=lambda row: ("." in row[0], row[0]))


@rules.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@seed_option
@rule_seconds_option
def check(files: tuple[str, ...], seed: int, rule_seconds: float) -> int:
    """Say what is wrong with ruleset FILES, by line and key; publish nothing. Exit 1 if something is.

    The rule of each is tried on drawn games of the types that it scores.
    """
    found = tried(files, rule_seconds, seed)
    for one in found:
        for problem in one.problems:
            render.echo(problem_line(one.file, problem))
        if one.name is not None:
            assumed = f"; assumed: {', '.join(one.assumed)}" if one.assumed else ""
            render.echo(f"{one.file}: {one.name} can be published{assumed}")
        for line in one.told:
            render.hanging(f"  {render.plain(line)}", 4)
    return int(any(one.problems for one in found))


@rules.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--shipped", "from_shipped", is_flag=False, flag_value=EVERY, metavar="[ID]",
    help="Publish the shipped versions that the ledger lacks: all, or those of ID.",
)  # fmt: skip
@click.option("--game", "games", metavar="NAME", multiple=True, callback=elo_games,
              help=f"With --shipped {ELO}: the game that it rates, such as chess; repeatable.")  # fmt: skip
@rule_seconds_option
@writing
def publish(
    how: How, files: tuple[str, ...], from_shipped: str | None, games: tuple[str, ...], rule_seconds: float
) -> int:
    """Publish ruleset FILES (TOML), and show what that changes. Versions already published like this are left alone.

    A version scores games from its effective_from on: a day in the past corrects history, a future one leaves it alone.
    --shipped elo --game chess publishes textbook Elo for a game, as elo-chess. A rule from a package is first tried as
    in rules check.
    """
    if bool(files) == (from_shipped is not None):
        raise click.UsageError("name files, or --shipped")
    if games and from_shipped != ELO:
        raise click.UsageError(f"--game goes with --shipped {ELO}")
    if from_shipped is not None:
        if how.dry_run or how.form == "json":
            raise click.UsageError("--shipped takes neither --dry-run nor --format")
        published = publish_missing(how.ledger, how.terms.by, _shipped_as(how.ledger, from_shipped, games))
        render.echo(f"published: {', '.join(published) or 'nothing new'}")
        return 0
    if wrong := _tried_first(how.db, files, rule_seconds):
        for name, problem in wrong:
            render.echo(problem_line(name, problem), err=True)
        return 1
    read = [(name, *read_file(name)) for name in files]
    for name, _, problems in read:
        for problem in problems:
            render.echo(problem_line(name, problem), err=True)
    rulesets = [(name, ruleset) for name, ruleset, _ in read if ruleset is not None]
    if len(rulesets) < len(files):
        return 1
    plan = how.propose(_items(how.ledger, rulesets, format_instant(clock.now())))
    found = Impact() if plan.is_refused else plan.impact()
    result = how.done(plan)
    refused = tuple(Refusal(one.file, ABSENT, one.code, one.message) for one in result.rejected)
    told = RulesetsPublished(
        tuple(ruleset.name for _, ruleset in rulesets), result.appended, result.existing, how.dry_run, refused,
        head_of(result), found, told=result, times=how.times(found),
    )  # fmt: skip
    emit(told, how.form)
    return int(told.is_refused)


def _tried_first(db: str, files: Sequence[str], seconds: float) -> list[tuple[str, RulesetProblem]]:
    """What is wrong with the files that name rules from packages, tried on drawn games and on the ledger's games."""
    foreign = [name for name in files if rule_of_package(name)]
    wrong = [(one.file, problem) for one in tried(foreign, seconds) for problem in one.problems]
    if wrong or not foreign:
        return wrong

    def preview() -> None:
        read = [(name, read_file(name)[0]) for name in files]
        ledger = open_ledger(db)
        given = [(name, ruleset) for name, ruleset in read if ruleset is not None]
        Proposal(
            ledger, _items(ledger, given, format_instant(clock.now())), Terms("preview", ignore_clock=True)
        ).impact()

    reason = why_not_in_time(preview, seconds)
    return [(foreign[0], RulesetProblem("rule", f"on the games of the ledger {reason}"))] if reason else []


def _shipped_as(ledger: Ledger, wanted: str, games: Sequence[str]) -> list[str]:
    """The texts of all shipped rulesets, of those with one id, or of Elo for some games."""
    if wanted == ELO:
        if not games:
            raise click.UsageError(f"--shipped {ELO} rates one game: name it, as in --shipped {ELO} --game chess")
        with ledger.reading() as connection:
            return [shipped_elo(game, times_of(connection).zone) for game in games]
    ids = [f'id = "{wanted}"' in text.splitlines() for text in shipped()]
    if wanted != EVERY and not any(ids):
        raise click.UsageError(f"no shipped ruleset is called {shown(wanted)}; see: docs/systems/README.md")
    return [text for text, fits in zip(shipped(), ids, strict=True) if fits or wanted == EVERY]


def publish_missing(ledger: Ledger, by: str, texts: Sequence[str], *, only_new_ids: bool = False) -> list[str]:
    """Publish those rulesets whose version the ledger lacks, or only those whose id it does not have."""
    with ledger.reading() as connection:
        published = [entry.ruleset for entry in _published(connection)]
    known = {(other.id, "" if only_new_ids else other.version) for other in published}
    missing = []
    for text in texts:
        ruleset, problems = read_toml(text)
        assert ruleset is not None, problems
        if (ruleset.id, "" if only_new_ids else ruleset.version) not in known:
            missing.append((ruleset.name, ruleset))
    result = Proposal(ledger, _items(ledger, missing, SHIPPED_AT), Terms(by)).append()
    for problem in result.rejected:
        raise NotALedger(f"{problem.file} does not fit what this ledger holds: {problem.message}")
    return [name for name, _ in missing]


def _items(ledger: Ledger, rulesets: list[tuple[str, Ruleset]], occurred_at: str) -> list[Item]:
    """The events that publish rulesets, each with the name of the file it comes from."""
    items = []
    with ledger.reading() as connection:
        live = {entry.event["id"] for entry in _published(connection)}
        for name, ruleset in rulesets:
            event = {"type": "ruleset.published", "occurred_at": occurred_at,
                     "data": ruleset.model_dump(exclude_unset=True, exclude_none=True)}  # fmt: skip
            event_id = f"ruleset:{ruleset.name}"
            # the id of a withdrawn version stays taken
            if event_id in live or Log(connection).event(event_id) is None:
                event["id"] = event_id
            items.append(Item(name, 1, event, None))
    return items
