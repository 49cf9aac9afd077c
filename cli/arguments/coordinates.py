"""Coordinates as an argument: `now`, `published`, `217`, `2024-12-31`, `as-of=2024-12-31,rules=club-catan-elo@2`."""

import click

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.queries.asked import Asked, read_asked


class CoordinatesType(click.ParamType[Asked]):
    """The type of an argument that holds coordinates."""

    name = "coordinates"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> Asked:
        """Raises `click.BadParameter`."""
        try:
            return value if isinstance(value, Asked) else read_asked(str(value))
        except BadArgument as problem:
            raise click.BadParameter(str(problem)) from None
