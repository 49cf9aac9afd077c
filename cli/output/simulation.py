"""How a simulation looks: all games under other rulesets beside the ledger as it is, as tables and as CSV."""

from dataclasses import replace

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import nothing_told, print_differing, print_effects, print_radii
from ratings_ledger.projections.diff.comparison import TOP, Effect
from ratings_ledger.projections.diff.predictions import Quality
from ratings_ledger.projections.diff.what_if import SimulatedLadder, Simulation, Variant
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import distinct_ladders, short_name

MOVES = 5  # how many of the largest gains and losses are shown
DETAILED = 4  # how many ladders are shown in detail
HEADER = ("set", "ladder", "players", "ranks", "swapped", "version", "pairs", "log_loss", "brier", "accuracy")


def settings_told(told: dict[str, str]) -> str:
    """Return what is set, without the table's name: `k_total=16 scale=300`."""
    return render.plain(" ".join(f"{key.rpartition('.')[2]}={value}" for key, value in told.items()))


def print_simulation_csv(found: Simulation) -> None:
    """Two lines per ladder of a variant: how well the versions before and after predict."""
    rows: list[list[render.Cell]] = []
    for variant in found.variants:
        for ladder in variant.model_dump()["ladders"]:
            for version, predicted in ladder["quality"].items():
                told = [predicted and predicted[name] for name in HEADER[6:]]
                reach = [ladder[name] for name in HEADER[1:5]]
                rows.append([settings_told(variant.settings), *reach, version, *told])
    render.print_csv(HEADER, rows)


def print_simulation(found: Simulation) -> None:
    """For one variant who is affected and how well it predicts; for several a table per ladder."""
    name = found.variants[0].ruleset
    render.title(f"All games under {name}, as if in force from the start", f", known at position {found.at.known_at}")
    if found.at.as_of is not None:
        render.echo(f"played up to {found.times.stated(found.at.as_of)}")
    render.echo("Nothing is recorded.")
    if len(found.variants) > 1:
        _print_variants(found.variants)
        return
    (variant,) = found.variants
    seen = distinct_ladders(
        (one.radius for one in variant.ladders), (effect for one in variant.ladders for effect in one.changes)
    )
    variant = replace(variant, ladders=tuple(one for one in variant.ladders if one.radius.ladder in seen))
    differing = [one for one in variant.ladders if one.differs]
    if not differing:
        render.echo(f"\n{nothing_told(found.failed)}")
    else:
        render.echo()
        print_radii([one.radius for one in differing])
    for one in differing[:DETAILED]:
        render.echo(f"\n{short_name(one.radius.ladder)}")
        _print_top(one)
        if moves := _moves(one):
            print_effects(moves)
    if len(differing) > DETAILED:
        render.echo(f"\nThe players of others than these {DETAILED}: --ladder LADDER, or --format json")
    _print_quality(variant)
    print_differing(variant.published, found.times, "under these rules")


def _moves(one: SimulatedLadder) -> list[Effect]:
    """Return the largest gains and losses of those who stay on a ladder, largest gain first."""
    moved = [effect for effect in one.changes if effect.change]
    return moved if len(moved) <= 2 * MOVES else moved[:MOVES] + moved[-MOVES:]


def _print_top(one: SimulatedLadder) -> None:
    """Print who enters and leaves the top places."""
    for what, names in (("enter", one.radius.entering), ("leave", one.radius.leaving)):
        if names:
            render.hanging(
                f"{what} the top {TOP}: {', '.join(render.csv_item(render.plain(name)) for name in names)}", 2
            )


def _print_quality(variant: Variant) -> None:
    rows: list[list[render.Cell]] = []
    for one in variant.ladders:
        for which, predicted in (("as it is", one.quality.before), (variant.ruleset, one.quality.after)):
            if predicted is not None and predicted.pairs and len(rows) < 2 * DETAILED:
                rows.append([short_name(one.radius.ladder), which, predicted.pairs, *_measures(predicted)])
    if rows:
        render.echo("\nHow well the points before each game predicted who was placed better:\n")
        header = ("ladder", "version", "pairs", "log loss", "Brier", "accuracy")
        render.print_table(header, rows, right=header[2:])
        render.echo("Less is better, except for the accuracy.")
    _print_unplaced(variant)


def _print_unplaced(variant: Variant) -> None:
    """Print the ladders on which some games have no places."""
    for one in variant.ladders[:DETAILED]:
        after = one.quality.after
        if after is not None and after.unplaced is not ABSENT:
            games = render.count(after.unplaced, "game")
            render.echo(
                f"\n{short_name(one.radius.ladder)}: {games} without places, about which nothing can be predicted."
            )


def _measures(predicted: Quality | None) -> list[str]:
    if predicted is None or not predicted.pairs:
        return ["", "", ""]
    accuracy = "-" if predicted.accuracy is None else f"{predicted.accuracy:.2%}"
    return [f"{predicted.log_loss:.5f}", f"{predicted.brier:.5f}", accuracy]


def _print_variants(found: tuple[Variant, ...]) -> None:
    """Print a table for each ladder, with a row for the ledger as it is and one for each value."""
    ladders = list(dict.fromkeys(one.radius.ladder for variant in found for one in variant.ladders))
    header = ("set", "players", "ranks", "up", "down", "log loss", "Brier", "accuracy")
    for name in ladders[:DETAILED]:
        there = [next((one for one in variant.ladders if one.radius.ladder == name), None) for variant in found]
        before = None if there[0] is None else there[0].quality.before
        rows: list[list[render.Cell]] = [] if before is None else [["as it is", 0, 0, "", "", *_measures(before)]]
        rows += [_compared(variant, one) for variant, one in zip(found, there, strict=True)]
        for index in (header.index("up"), header.index("down")):
            # flush right, with as many decimal places as the longest needs
            aligned = iter(render.column([str(row[index]) for row in rows if row[index]], signed=True))
            rows = [[*row[:index], next(aligned) if row[index] else "", *row[index + 1 :]] for row in rows]
        render.echo(f"\n{short_name(name)}")
        render.print_table(header, rows, right=header[1:])
    _print_unplaced(found[0])
    if len(ladders) > DETAILED:
        render.echo(f"\nOthers than these {DETAILED}: --ladder LADDER, or --format json")


def _compared(variant: Variant, one: SimulatedLadder | None) -> list[render.Cell]:
    moved: list[render.Cell] = [0, 0, "", ""] if not variant.left_out else [""] * 4
    if one is not None:
        largest = ["" if gain is None else str(gain.change) for gain in (one.radius.up, one.radius.down)]
        moved = [one.radius.players, one.radius.ranks, *largest]
    return [settings_told(variant.settings), *moved, *_measures(None if one is None else one.quality.after)]
