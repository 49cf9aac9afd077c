"""Coordinates as an argument: `now`, `published`, `217`, `2024-12-31`, `as-of=2024-12-31,rules=club-catan-elo@2`."""

import click

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.queries.coordinates import CoordinateSpec, parse_coordinates


class CoordinatesType(click.ParamType[CoordinateSpec]):
    """The type of an argument that holds coordinates."""

    name = "coordinates"

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> CoordinateSpec:
        """Raises `click.BadParameter`."""
        try:
            return value if isinstance(value, CoordinateSpec) else parse_coordinates(str(value))
        except BadArgument as problem:
            raise click.BadParameter(str(problem)) from None
