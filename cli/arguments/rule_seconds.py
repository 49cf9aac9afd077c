"""--rule-seconds: how much processor time a rule from a package may take."""

import click

from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS

rule_seconds_option = click.option(
    "--rule-seconds", metavar="N", type=click.FloatRange(min=0.1), default=RULE_SECONDS, show_default=True,
    help="Processor time that a rule from a package may take.",
)  # fmt: skip
