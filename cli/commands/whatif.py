"""`whatif`: all games under an unpublished ruleset, compared with the ledger as it is. Nothing is written."""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.command import command
from cli.arguments.facts import decoded
from cli.arguments.moments import known_position, played_instant
from cli.arguments.options import composed, format_option
from cli.arguments.ruleset_files import problem_line, read_file, read_tables
from cli.output import render
from cli.output.impact import print_effects, print_lists, print_radii
from ledger.events.types import Ruleset
from ledger.rejections import Refused, shown
from ledger.store.opening import open_ledger
from projections.facts.columns import Facts
from projections.queries.coordinates import Coordinates, Times, times_of
from projections.queries.impact import TOP, Effect, Impact, Radius, impact_between
from projections.queries.simulation import Quality, quality, under, variants
from projections.queries.standings import Ladders, versions_of
from projections.replay.containment import RuleFailure, told_with_game
from projections.replay.ladders import Stream, parse_name, refuse_name
from projections.rulesets.versions import NESTED_MAX, read_ruleset

MOVES = 5  # how many of the largest gains and losses are shown
DETAILED = 4  # how many ladders are shown in detail
VARIANTS_MAX = 100


class Variant(NamedTuple):
    """A ruleset with other values, its impact, and how well both versions predict the games of each ladder."""

    settings: dict[str, str]
    ruleset: Ruleset
    reach: Impact
    quality: dict[str, tuple[Quality | None, Quality | None]]


def _settings(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in values:
        key, equals, choices = value.partition("=")
        if not equals or not all(part.strip() for part in key.split(".")):
            raise click.BadParameter(f"{shown(value)} is not KEY=VALUE, such as params.k_total=16,32,64")
        if key.count(".") > NESTED_MAX:
            raise click.BadParameter(f"{shown(value)} names a key of more than {NESTED_MAX} parts")
        found.setdefault(key.strip(), []).extend(choice.strip() for choice in choices.split(","))
    return found


@command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--ladder", "ladders", metavar="LADDER", multiple=True, type=composed, help="Only this one; repeatable.")
@click.option("--set", "settings", metavar="KEY=V1,V2...", multiple=True, callback=_settings,
              help="Other values for a key of FILE, each tried; without a value the key is left out.")  # fmt: skip
@click.option("--as-of", metavar="TIME", help="Only what was played up to then; a date means its end.")
@click.option("--known-at", metavar="TIME|POSITION", help="Only what was recorded up to then.")
@format_option
@click.pass_obj
def whatif(
    db: str, file: str, ladders: tuple[str, ...], settings: dict[str, list[str]], as_of: str | None,
    known_at: str | None, form: str,
) -> int:  # fmt: skip
    """What if the ruleset in FILE had scored all its games from the start? Nothing is recorded.

    \b
        ratings whatif club-catan-elo-2.toml
        ratings whatif club-catan-elo-2.toml --set params.k_total=16,32,64

    Who would have different points or a different rank, who enters or leaves the top ten, which published lists would
    come out differently, and how well both predict results. Its effective_from is ignored; for what publishing it would
    change, see rules publish --dry-run.
    """
    rulesets = _rulesets(file, settings)
    with open_ledger(db).reading() as connection:
        times = times_of(connection)
        facts = decoded(connection, known_position(connection, known_at))
        as_of_instant = played_instant(as_of, times.home or rulesets[0][1].time_zone)
        at = Coordinates(as_of_instant, facts.position, None).of(facts)
        now = Ladders(facts, at.as_of)
        _check_ladders(facts, rulesets[0][1], ladders)
        found = [_variant(connection, now, told, ruleset, ladders) for told, ruleset in rulesets]
    for problem in dict.fromkeys(problem for variant in found for problem in variant.reach.failed):
        render.note(f"ratings: {problem}")
    if form == "json":
        render.print_json(render.with_decimals({**at.stated(), "variants": [_as_json(variant) for variant in found]}))
    elif form == "csv":
        _print_csv(found)
    else:
        _print(found, at, times)
    return 0


def _check_ladders(facts: Facts, ruleset: Ruleset, ladders: tuple[str, ...]) -> None:
    """Raises `click.UsageError` for a name that is not a ladder's, of this ruleset or of a published one."""
    for ladder in ladders:
        name = parse_name(ladder)
        reason = refuse_name(name, ruleset) if name.ruleset_id == ruleset.id else None
        if name.ruleset_id != ruleset.id:
            versions_of(facts, ladder)
        if reason:
            raise click.UsageError(f"{shown(ladder)} is not a ladder: {reason}")


def _rulesets(file: str, settings: dict[str, list[str]]) -> list[tuple[dict[str, str], Ruleset]]:
    """The ruleset of a file with each combination of other values; a `click.ClickException` says what is wrong."""
    if not settings:
        ruleset, problems = read_file(file)
        if ruleset is None:
            raise click.ClickException("\n".join(problem_line(file, problem) for problem in problems))
        return [({}, ruleset)]
    data, problems = read_tables(file)
    if data is None:
        raise click.ClickException("\n".join(problem_line(file, problem) for problem in problems))
    if (count := math.prod(map(len, settings.values()))) > VARIANTS_MAX:
        raise click.UsageError(f"{count:,} combinations of values; at most {VARIANTS_MAX} are tried at once")
    return [(told, _ruleset(file, told, given)) for told, given in variants(data, settings)]


def _ruleset(file: str, told: dict[str, str], data: dict[str, Any]) -> Ruleset:
    ruleset, problems = read_ruleset(data)
    if ruleset is None:
        raise click.ClickException(f"{problem_line(file, problems[0])} (with {_said(told)})")
    return ruleset


def _said(told: dict[str, str]) -> str:
    """What is set, without the table's name: `k_total=16 scale=300`."""
    return render.plain(" ".join(f"{key.rpartition('.')[2]}={value}" for key, value in told.items()))


def _variant(
    connection: Connection, now: Ladders, told: dict[str, str], ruleset: Ruleset, ladders: tuple[str, ...]
) -> Variant:  # fmt: skip
    try:
        then = under(now.facts, ruleset, now.as_of)
        mine = then.every(ruleset.id)
        if unknown := [name for name in ladders if parse_name(name).ruleset_id == ruleset.id and name not in mine]:
            raise click.ClickException(f"{unknown[0]} has no games under {ruleset.name}; it has {_some(mine)}")
        changes = impact_between(connection, now, then, {f"ruleset:{ruleset.id}"}, ladders)
        before = now.every(ruleset.id) if ruleset.id in now.facts.rulesets else {}
        names = sorted(name for name in mine if name in (ladders or mine))
        predicted = {
            name: (
                _quality(connection, now.facts, before.get(name), changes),
                _quality(connection, then.facts, mine[name], changes),
            )
            for name in names
        }
    except Refused as problem:
        raise click.ClickException(f"{ruleset.name}: {problem.message}") from None
    return Variant(told, ruleset, changes, predicted)


def _some(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (" ..." if len(names) > 5 else "") if names else "none"


def _quality(connection: Connection, facts: Facts, stream: Stream | None, changes: Impact) -> Quality | None:
    """How well a ladder predicts; one that cannot be replayed is reported among the changes."""
    try:
        return None if stream is None else quality(facts, stream)
    except RuleFailure as failure:
        changes.failed.append(told_with_game(failure, facts, connection))
        return None


def _moves(variant: Variant, ladder: str) -> list[Effect]:
    """The largest gains and losses of those who stay on a ladder, largest gain first."""
    moved = [effect for effect in variant.reach.effects if effect.ladder == ladder and effect.stays and effect.change]
    return moved if len(moved) <= 2 * MOVES else moved[:MOVES] + moved[-MOVES:]


def _as_json(variant: Variant) -> dict[str, Any]:
    told = variant.reach.as_json()
    reached = {one["ladder"]: one for one in told["ladders"]}
    ladders = []
    for name in sorted(reached.keys() | variant.quality.keys()):
        before, after = variant.quality.get(name, (None, None))
        predicted = {"before": before and before.as_json(), "after": after and after.as_json()}
        moves = [effect.as_json() for effect in variant.reach.effects if effect.ladder == name]
        unchanged = Radius(name, 0, 0, None, None, 0, [], []).as_json()
        ladders.append({**reached.get(name, unchanged), "quality": predicted, "changes": moves})
    return {
        "ruleset": variant.ruleset.name, "set": variant.settings, "ladders": ladders, "published": told["published"],
    }  # fmt: skip


def _print_csv(found: list[Variant]) -> None:
    header = ("set", "ladder", "players", "ranks", "swapped", "version", "pairs", "log_loss", "brier", "accuracy")
    rows: list[list[render.Cell]] = []
    for variant in found:
        for one in _as_json(variant)["ladders"]:
            for version, predicted in one["quality"].items():
                told = [predicted and predicted[name] for name in header[6:]]
                cells = [one[name] for name in header[1:5]]
                rows.append([_said(variant.settings), *cells, version, *told])
    render.print_csv(header, rows)


def _print(found: list[Variant], at: Coordinates, times: Times) -> None:
    name = found[0].ruleset.name
    render.title(f"All games under {name}, as if in force from the start", f", known at position {at.known_at:,}")
    if at.as_of is not None:
        render.echo(f"played up to {times.stated(at.as_of)}")
    render.echo("Nothing is recorded.")
    if len(found) > 1:
        _print_variants(found)
        return
    (variant,) = found
    if not variant.reach.ladders:
        render.echo("\nNo points change.")
    else:
        render.echo()
        print_radii(variant.reach.ladders)
    for one in variant.reach.ladders[:DETAILED]:
        render.echo(f"\n{one.ladder}")
        _print_top(one)
        if moves := _moves(variant, one.ladder):
            print_effects([effect.as_json() for effect in moves])
    if len(variant.reach.ladders) > DETAILED:
        render.echo(f"\nThe players of others than these {DETAILED}: --ladder LADDER, or --format json")
    _print_quality(variant)
    print_lists(variant.reach.lists, times)


def _print_top(one: Radius) -> None:
    """Print who enters and leaves the top places."""
    for what, names in (("enter", one.entering), ("leave", one.leaving)):
        if names:
            render.hanging(f"{what} the top {TOP}: {', '.join(map(render.plain, names))}", 2)


def _print_quality(variant: Variant) -> None:
    rows: list[list[render.Cell]] = []
    for name, (before, after) in variant.quality.items():
        for which, predicted in (("as it is", before), (variant.ruleset.name, after)):
            if predicted is not None and predicted.pairs and len(rows) < 2 * DETAILED:
                rows.append([name, which, predicted.pairs, *_measures(predicted)])
    if rows:
        render.echo("\nHow well the points before each game predicted who was placed better:\n")
        header = ("ladder", "version", "pairs", "log loss", "Brier", "accuracy")
        render.print_table(header, rows, right=header[2:])
        render.echo("Less is better, except for the accuracy.")
    _print_unplaced(variant)


def _print_unplaced(variant: Variant) -> None:
    """Print the ladders on which some games have no places."""
    for name, (_, after) in [*variant.quality.items()][:DETAILED]:
        if after is not None and after.unplaced:
            games = render.count(after.unplaced, "game")
            render.echo(f"\n{name}: {games} without places, about which nothing can be predicted.")


def _measures(predicted: Quality | None) -> list[str]:
    if predicted is None or not predicted.pairs:
        return ["", "", ""]
    accuracy = "-" if predicted.accuracy is None else f"{predicted.accuracy:.2%}"
    return [f"{predicted.log_loss:.5f}", f"{predicted.brier:.5f}", accuracy]


def _print_variants(found: list[Variant]) -> None:
    """Print a table for each ladder, with a row for the ledger as it is and one for each value."""
    ladders = list(dict.fromkeys(name for variant in found for name in _names(variant)))
    header = ("set", "players", "ranks", "up", "down", "log loss", "Brier", "accuracy")
    for name in ladders[:DETAILED]:
        before = found[0].quality.get(name, (None, None))[0]
        rows: list[list[render.Cell]] = [["as it is", 0, 0, "", "", *_measures(before)]]
        rows += [_compared(variant, name) for variant in found]
        for index in (header.index("up"), header.index("down")):
            # flush right, with as many decimal places as the longest needs
            there = iter(render.column([str(row[index]) for row in rows if row[index]], signed=True))
            rows = [[*row[:index], next(there) if row[index] else "", *row[index + 1 :]] for row in rows]
        render.echo(f"\n{name}")
        render.print_table(header, rows, right=header[1:])
    _print_unplaced(found[0])
    if len(ladders) > DETAILED:
        render.echo(f"\nOthers than these {DETAILED}: --ladder LADDER, or --format json")


def _names(variant: Variant) -> list[str]:
    """The ladders that differ or predict."""
    return sorted({one.ladder for one in variant.reach.ladders} | variant.quality.keys())


def _compared(variant: Variant, ladder: str) -> list[render.Cell]:
    radius = next((one for one in variant.reach.ladders if one.ladder == ladder), None)
    after = variant.quality.get(ladder, (None, None))[1]
    moved: list[render.Cell] = [0, 0, "", ""]
    if radius is not None:
        largest = ["" if effect is None else str(effect.change) for effect in (radius.up, radius.down)]
        moved = [radius.players, radius.ranks, *largest]
    return [_said(variant.settings), *moved, *_measures(after)]
