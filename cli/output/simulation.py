"""Print a simulation as tables and as CSV.

It scores all games under other rulesets, and compares the ladders with the current ones.
"""

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
from ratings_ledger.projections.replay.ladder_names import distinct_ladders, short_name

MOVES_SHOWN_MAX = 5  # gains, and as many losses
DETAILED_LADDERS_MAX = 4
HEADER = ("set", "ladder", "players", "ranks", "swapped", "version", "pairs", "log_loss", "brier", "accuracy")


def format_settings(settings: dict[str, str]) -> str:
    """Return the changed settings of a variant, without the names of their TOML tables: `k_total=16 scale=300`."""
    return render.plain(" ".join(f"{key.rpartition('.')[2]}={value}" for key, value in settings.items()))


def print_simulation_csv(simulation: Simulation) -> None:
    """Print two lines per ladder and variant, with the quality of the predictions before and after."""
    rows: list[list[render.TableCell]] = []
    for variant in simulation.variants:
        for ladder in variant.model_dump()["ladders"]:
            for version, quality in ladder["quality"].items():
                measures = [quality and quality[name] for name in HEADER[6:]]
                impact_numbers = [ladder[name] for name in HEADER[1:5]]
                rows.append([format_settings(variant.settings), *impact_numbers, version, *measures])
    render.print_csv(HEADER, rows)


def print_simulation(simulation: Simulation) -> None:
    """Print the impact and the prediction quality of a single variant, or a table per ladder for several variants."""
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
        (ladder.summary for ladder in variant.ladders),
        (effect for ladder in variant.ladders for effect in ladder.changes),
    )
    variant = replace(variant, ladders=tuple(ladder for ladder in variant.ladders if ladder.summary.ladder in distinct))
    differing = [ladder for ladder in variant.ladders if ladder.differs]
    if not differing:
        render.echo(f"\n{describe_no_change(simulation.failed)}")
    else:
        render.echo()
        print_impact_summaries([ladder.summary for ladder in differing])
    for ladder in differing[:DETAILED_LADDERS_MAX]:
        render.echo(f"\n{short_name(ladder.summary.ladder)}")
        _print_top(ladder)
        if moves := _select_largest_moves(ladder):
            print_effects(moves)
    if len(differing) > DETAILED_LADDERS_MAX:
        render.echo("\nFor the players of the other ladders: --ladder LADDER, or --format json")
    _print_quality(variant)
    print_differing_lists(variant.published, simulation.times, "under these rules")


def _select_largest_moves(simulated: SimulatedLadder) -> list[Effect]:
    """Return the largest gains and losses of the players who stay on a ladder, largest gain first."""
    moves = [effect for effect in simulated.changes if effect.change]
    return moves if len(moves) <= 2 * MOVES_SHOWN_MAX else moves[:MOVES_SHOWN_MAX] + moves[-MOVES_SHOWN_MAX:]


def _print_top(simulated: SimulatedLadder) -> None:
    """Print the players who enter and leave the top places."""
    for verb, names in (("enter", simulated.summary.entering), ("leave", simulated.summary.leaving)):
        if names:
            render.print_hanging(
                f"{verb} the top {TOP_RANKS}: {', '.join(render.csv_item(render.plain(name)) for name in names)}", 2
            )


def _print_quality(variant: Variant) -> None:
    rows: list[list[render.TableCell]] = []
    for simulated in variant.ladders:
        for version, quality in (("as it is", simulated.quality.before), (variant.ruleset, simulated.quality.after)):
            if quality is not None and quality.pairs and len(rows) < 2 * DETAILED_LADDERS_MAX:
                rows.append([short_name(simulated.summary.ladder), version, quality.pairs, *_format_quality(quality)])
    if rows:
        render.echo("\nHow well the points before each game predicted who was placed better:\n")
        header = ("ladder", "version", "pairs", "log loss", "Brier", "accuracy")
        render.print_table(header, rows, right=header[2:])
        render.echo("Lower is better, except for accuracy.")
    _print_unplaced(variant)


def _print_unplaced(variant: Variant) -> None:
    """Print the ladders on which some games have no places."""
    for simulated in variant.ladders[:DETAILED_LADDERS_MAX]:
        after = simulated.quality.after
        if after is not None and after.unplaced is not ABSENT:
            games = render.count(after.unplaced, "game")
            render.echo(f"\n{short_name(simulated.summary.ladder)}: {games} without places, which cannot be predicted.")


def _format_quality(quality: Quality | None) -> list[str]:
    if quality is None or not quality.pairs:
        return ["", "", ""]
    accuracy = "-" if quality.accuracy is None else f"{quality.accuracy:.2%}"
    return [f"{quality.log_loss:.5f}", f"{quality.brier:.5f}", accuracy]


def _print_variants(variants: tuple[Variant, ...]) -> None:
    """Print a table for each ladder, with a row for the ledger and a row for each variant."""
    ladders = list(dict.fromkeys(ladder.summary.ladder for variant in variants for ladder in variant.ladders))
    header = ("set", "players", "ranks", "up", "down", "log loss", "Brier", "accuracy")
    for name in ladders[:DETAILED_LADDERS_MAX]:
        by_variant = [
            next((ladder for ladder in variant.ladders if ladder.summary.ladder == name), None) for variant in variants
        ]
        before = None if by_variant[0] is None else by_variant[0].quality.before
        rows: list[list[render.TableCell]] = (
            [] if before is None else [["as it is", 0, 0, "", "", *_format_quality(before)]]
        )
        rows += [_build_variant_row(variant, ladder) for variant, ladder in zip(variants, by_variant, strict=True)]
        for index in (header.index("up"), header.index("down")):
            # with the same number of decimal places, so that they align flush right
            aligned = iter(render.format_column([str(row[index]) for row in rows if row[index]], signed=True))
            rows = [[*row[:index], next(aligned) if row[index] else "", *row[index + 1 :]] for row in rows]
        render.echo(f"\n{short_name(name)}")
        render.print_table(header, rows, right=header[1:])
    _print_unplaced(variants[0])
    if len(ladders) > DETAILED_LADDERS_MAX:
        render.echo("\nFor the other ladders: --ladder LADDER, or --format json")


def _build_variant_row(variant: Variant, simulated: SimulatedLadder | None) -> list[render.TableCell]:
    impact_cells: list[render.TableCell] = [0, 0, "", ""] if not variant.left_out else [""] * 4
    if simulated is not None:
        largest = ["" if gain is None else str(gain.change) for gain in (simulated.summary.up, simulated.summary.down)]
        impact_cells = [simulated.summary.players, simulated.summary.ranks, *largest]
    return [
        format_settings(variant.settings),
        *impact_cells,
        *_format_quality(None if simulated is None else simulated.quality.after),
    ]
