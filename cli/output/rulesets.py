"""Print published rulesets, as tables, as CSV and as TOML."""

from dataclasses import fields

from ratings_ledger.cli.output import render
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetState, ShippedRow, ShippedRulesets
from ratings_ledger.projections.rulesets.versions import RulesetProblem

VERSION_COLUMNS = ("version", "rule", "effective_from", "in_force", "assumed", "position", "by", "withdrawn")
KEY_COLUMNS = ("key", "value", "assumed because")


def print_rulesets_csv(rulesets: AllRulesets) -> None:
    """Print one line per version."""
    render.print_csv(VERSION_COLUMNS, [[*row.values()] for row in rulesets.model_dump()])


def print_rulesets(rulesets: AllRulesets) -> None:
    """Print the versions; `ratings log` shows their authors and positions."""
    rows = [
        (row.version, row.rule, row.effective_from, row.in_force if row.withdrawn is None else "withdrawn", row.assumed)
        for row in rulesets.rows
    ]
    render.print_table(VERSION_COLUMNS[:5], rows, right=("assumed",))


def print_shipped(shipped: ShippedRulesets) -> None:
    """Print a line for each shipped ruleset, with fewer columns than the other formats."""
    render.print_table(
        ("id", "published", "teams", "description"),
        [(row.id, row.published, "yes" if row.teams else "", row.description) for row in shipped.rows],
    )
    render.echo("\nShow a ruleset:    ratings rules show --shipped elo")
    render.echo("Publish a ruleset: ratings rules publish --shipped weng-lin --game GAME")


def print_shipped_csv(shipped: ShippedRulesets) -> None:
    """Print a line for each shipped ruleset, with all columns."""
    rows = [
        [", ".join(value) if isinstance(value, list) else value for value in row.values()]
        for row in shipped.model_dump()
    ]
    render.print_csv([member.name for member in fields(ShippedRow)], rows)


def print_ruleset_toml(ruleset: RulesetState) -> None:
    """Print the version as a ruleset file."""
    from ratings_ledger.projections.rulesets.templates import format_toml

    render.echo(format_toml(ruleset.data), nl=False)


def print_ruleset_csv(ruleset: RulesetState) -> None:
    """Print one line per key."""
    render.print_csv(KEY_COLUMNS, ruleset.keys)


def print_ruleset(state: RulesetState) -> None:
    """Print the keys and values of the version, then the timeline."""
    ruleset, times = state.ruleset, state.times
    withdrawn = f"; {state.withdrawn}" if state.withdrawn else ""
    render.print_hanging(
        f"{ruleset.name}, published at position {state.position} by {render.plain(state.by)}{withdrawn}", 2
    )
    render.echo()
    column_count = 3 if ruleset.assumed else 2
    render.print_table(KEY_COLUMNS[:column_count], [row[:column_count] for row in state.keys])
    is_frozen_by_league = ruleset.freeze == "league-start"
    subject = "leagues by start date" if is_frozen_by_league else "games by end date"
    render.echo(f"\nTimeline of {subject} ({ruleset.time_zone})")
    rows = [
        (
            "never" if version.since is ABSENT else version.since,
            version.until if isinstance(version.until, str) else "",
            version.version,
            version.position,
            times.format_minute(version.recorded_at),
            version.by,
        )
        for version in (*state.timeline, *state.never_in_force)
    ]
    header = ("from", "before", "version", "position", times.name_column("recorded"), "by")
    render.print_table(header, rows, right=("position",))
    for version in state.never_in_force:
        render.print_hanging(f"Version {version.version} is never in force: {version.why}.", 2)
    if not state.withdrawn:
        render.print_hanging(state.version_note, 2)


def format_problem(file: str, problem: RulesetProblem) -> str:
    """Return `FILE:LINE: key: message`, on one line."""
    line = f"{problem.line}:" if problem.line else ""
    key = f" {problem.key}:" if problem.key else ""
    return render.plain(f"{file}:{line}{key} {problem.message}")
