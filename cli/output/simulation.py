"""Print a simulation: all games under other rulesets beside the ledger as it is, as tables and as CSV."""

from dataclasses import replace

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import (
    describe_no_change,
    print_differing_lists,
    print_effects,
    print_impact_summaries,
)
from ratings_ledger.projections.diff.comparison import TOP_RANKS, Effect
from ratings_ledger.projections.diff.predictions import Quality
from ratings_ledger.projections.diff.what_if import SimulatedLadder, Simulation, Variant
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import distinct_ladders, short_name

MOVES = 5  # how many of the largest gains and losses are shown
DETAILED = 4  # how many ladders are shown in detail
HEADER = ("set", "ladder", "players", "ranks", "swapped", "version", "pairs", "log_loss", "brier", "accuracy")


def format_settings(settings: dict[str, str]) -> str:
    """Return the settings of a variant, without the tables' names: `k_total=16 scale=300`."""
    return render.plain(" ".join(f"{key.rpartition('.')[2]}={value}" for key, value in settings.items()))


def print_simulation_csv(simulation: Simulation) -> None:
    """Print two lines per ladder of a variant: how well the versions before and after predict."""
    rows: list[list[render.Cell]] = []
    for variant in simulation.variants:
        for ladder in variant.model_dump()["ladders"]:
            for version, predicted in ladder["quality"].items():
                measures = [predicted and predicted[name] for name in HEADER[6:]]
                reach = [ladder[name] for name in HEADER[1:5]]
                rows.append([format_settings(variant.settings), *reach, version, *measures])
    render.print_csv(HEADER, rows)


def print_simulation(simulation: Simulation) -> None:
    """Print who is affected and how well one variant predicts; for several variants a table per ladder."""
    name = simulation.variants[0].ruleset
    render.print_title(
        f"All games under {name}, as if in force from the start", f", known at position {simulation.at.known_at}"
    )
    if simulation.at.as_of is not None:
        render.echo(f"played up to {simulation.times.format_with_zone(simulation.at.as_of)}")
    render.echo("Nothing is recorded.")
    if len(simulation.variants) > 1:
        _print_variants(simulation.variants)
        return
    (variant,) = simulation.variants
    distinct = distinct_ladders(
        (ladder.radius for ladder in variant.ladders),
        (effect for ladder in variant.ladders for effect in ladder.changes),
    )
    variant = replace(variant, ladders=tuple(ladder for ladder in variant.ladders if ladder.radius.ladder in distinct))
    differing = [ladder for ladder in variant.ladders if ladder.differs]
    if not differing:
        render.echo(f"\n{describe_no_change(simulation.failed)}")
    else:
        render.echo()
        print_impact_summaries([ladder.radius for ladder in differing])
    for ladder in differing[:DETAILED]:
        render.echo(f"\n{short_name(ladder.radius.ladder)}")
        _print_top(ladder)
        if moves := _largest_moves(ladder):
            print_effects(moves)
    if len(differing) > DETAILED:
        render.echo("\nFor the players of further ladders: --ladder LADDER, or --format json")
    _print_quality(variant)
    print_differing_lists(variant.published, simulation.times, "under these rules")


def _largest_moves(simulated: SimulatedLadder) -> list[Effect]:
    """Return the largest gains and losses of the players who stay on a ladder, largest gain first."""
    moved = [effect for effect in simulated.changes if effect.change]
    return moved if len(moved) <= 2 * MOVES else moved[:MOVES] + moved[-MOVES:]


def _print_top(simulated: SimulatedLadder) -> None:
    """Print who enters and leaves the top places."""
    for what, names in (("enter", simulated.radius.entering), ("leave", simulated.radius.leaving)):
        if names:
            render.print_hanging(
                f"{what} the top {TOP_RANKS}: {', '.join(render.csv_item(render.plain(name)) for name in names)}", 2
            )


def _print_quality(variant: Variant) -> None:
    rows: list[list[render.Cell]] = []
    for simulated in variant.ladders:
        for which, predicted in (("as it is", simulated.quality.before), (variant.ruleset, simulated.quality.after)):
            if predicted is not None and predicted.pairs and len(rows) < 2 * DETAILED:
                rows.append([short_name(simulated.radius.ladder), which, predicted.pairs, *_format_quality(predicted)])
    if rows:
        render.echo("\nHow well the points before each game predicted who was placed better:\n")
        header = ("ladder", "version", "pairs", "log loss", "Brier", "accuracy")
        render.print_table(header, rows, right=header[2:])
        render.echo("Less is better, except for the accuracy.")
    _print_unplaced(variant)


def _print_unplaced(variant: Variant) -> None:
    """Print the ladders on which some games have no places."""
    for simulated in variant.ladders[:DETAILED]:
        after = simulated.quality.after
        if after is not None and after.unplaced is not ABSENT:
            games = render.count(after.unplaced, "game")
            render.echo(f"\n{short_name(simulated.radius.ladder)}: {games} without places, which cannot be predicted.")


def _format_quality(predicted: Quality | None) -> list[str]:
    if predicted is None or not predicted.pairs:
        return ["", "", ""]
    accuracy = "-" if predicted.accuracy is None else f"{predicted.accuracy:.2%}"
    return [f"{predicted.log_loss:.5f}", f"{predicted.brier:.5f}", accuracy]


def _print_variants(variants: tuple[Variant, ...]) -> None:
    """Print a table for each ladder, with a row for the ledger as it is and one for each value."""
    ladders = list(dict.fromkeys(change.radius.ladder for variant in variants for change in variant.ladders))
    header = ("set", "players", "ranks", "up", "down", "log loss", "Brier", "accuracy")
    for name in ladders[:DETAILED]:
        by_variant = [
            next((change for change in variant.ladders if change.radius.ladder == name), None) for variant in variants
        ]
        before = None if by_variant[0] is None else by_variant[0].quality.before
        rows: list[list[render.Cell]] = [] if before is None else [["as it is", 0, 0, "", "", *_format_quality(before)]]
        rows += [_variant_row(variant, change) for variant, change in zip(variants, by_variant, strict=True)]
        for index in (header.index("up"), header.index("down")):
            # flush right, with as many decimal places as the longest needs
            aligned = iter(render.format_column([str(row[index]) for row in rows if row[index]], signed=True))
            rows = [[*row[:index], next(aligned) if row[index] else "", *row[index + 1 :]] for row in rows]
        render.echo(f"\n{short_name(name)}")
        render.print_table(header, rows, right=header[1:])
    _print_unplaced(variants[0])
    if len(ladders) > DETAILED:
        render.echo("\nFor further ladders: --ladder LADDER, or --format json")


def _variant_row(variant: Variant, simulated: SimulatedLadder | None) -> list[render.Cell]:
    moved: list[render.Cell] = [0, 0, "", ""] if not variant.left_out else [""] * 4
    if simulated is not None:
        largest = ["" if gain is None else str(gain.change) for gain in (simulated.radius.up, simulated.radius.down)]
        moved = [simulated.radius.players, simulated.radius.ranks, *largest]
    return [
        format_settings(variant.settings),
        *moved,
        *_format_quality(None if simulated is None else simulated.quality.after),
    ]
