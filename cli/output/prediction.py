"""Print predictions: the sides with their chances and the points at stake, as a table and as CSV."""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import print_csv_at, print_heading
from ratings_ledger.projections.queries.forecast import PredictedPair, Prediction, Stakes
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladder_names import short_name


class PredictionLine(NamedTuple):
    """A line of the table: a side, a partner or a draw."""

    name: str
    rank: render.TableCell = ""
    chance: Fraction | None = None
    stakes: Stakes | None = None


def print_prediction_csv(prediction: Prediction) -> None:
    """Print one line per side."""
    header = ("side", "rank", "chance", "draw", "if_win", "if_draw", "if_loss")
    rows = [
        (
            _join_players(side.players),
            side.rank,
            *map(render.format_exact, (side.chance, prediction.draw)),
            *map(render.format_exact, (side.stakes.win, side.stakes.draw, side.stakes.loss)),
        )
        for side in prediction.sides
    ]
    print_csv_at(header, rows, prediction.at)


def print_prediction(prediction: Prediction) -> None:
    """Print a line per side and partner; with more than two sides, also each pair."""
    print_heading(short_name(prediction.ladder), f" under {prediction.ruleset}", prediction.at, prediction.times)
    render.echo()
    lines = [*_list_lines(prediction)]
    stakes = [line.stakes for line in lines]
    columns: dict[str, list[render.TableCell]] = {
        "side": [line.name for line in lines],
        "rank": [line.rank for line in lines],
        "chance": ["" if line.chance is None else _format_percentage(line.chance) for line in lines],
    }
    for outcome in ("win", "draw", "loss"):
        numbers = [None if stake is None else getattr(stake, outcome) for stake in stakes]
        texts = render.format_column(numbers, signed=True)
        columns[f"if {outcome}"] = ["" if stake is None else text for stake, text in zip(stakes, texts, strict=True)]
    right = [name for name in columns if name != "side"]
    render.print_table([*columns], render.list_rows(columns), right=right)
    if not prediction.draw:
        render.print_hanging("\nThe rule predicts no draws: chance is the expected score.", 2)
    if prediction.period != "game":
        period_text = {"event": "an event"}.get(prediction.period, f"a {prediction.period}")
        render.print_hanging(f"\nPoints assume that this is the only game of {period_text}.", 2)
    if prediction.pairs is not ABSENT:
        render.print_hanging(
            "\nWith more than two sides, each pair is predicted separately. Chance is a side's share of the wins "
            "expected in all pairs; a win is sole first place with all others tied, a loss is sole last place.\n",
            2,
        )
        _print_pairs(prediction.pairs)


def _list_lines(prediction: Prediction) -> Iterator[PredictionLine]:
    """Yield the lines of each side and its partners, then a line for a draw."""
    for side in prediction.sides:
        yield PredictionLine(_join_players(side.players), side.rank or "-", side.chance, side.stakes)
        for partner in () if side.partners is ABSENT else side.partners:
            yield PredictionLine(f"  {partner.player}", stakes=partner.stakes)
    if prediction.draw:
        yield PredictionLine("(draw)", chance=prediction.draw)


def _print_pairs(pairs: tuple[PredictedPair, ...]) -> None:
    """Print the expected score of each pair of sides."""
    columns: dict[str, list[render.TableCell]] = {
        "side": [_join_players(pair.players) for pair in pairs],
        "wins": [_format_percentage(pair.chance) for pair in pairs],
        "against": [_join_players(pair.others) for pair in pairs],
        "loses": [_format_percentage(pair.others_chance) for pair in pairs],
    }
    if any(pair.draw for pair in pairs):
        columns["draw"] = [_format_percentage(pair.draw) for pair in pairs]
    render.print_table([*columns], render.list_rows(columns), right=("wins", "loses", "draw"))


def _join_players(players: tuple[str, ...]) -> str:
    return " + ".join(players)


def _format_percentage(chance: Fraction) -> str:
    text = render.format_decimal(100 * chance, 1)
    return f"{text if '.' in text else f'{text}.0'} %"
