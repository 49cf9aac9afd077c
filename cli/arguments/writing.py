"""Define the options and the context of writing commands, which check a proposal before they append it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any

import click

from ratings_ledger.cli.arguments.command import OneOf
from ratings_ledger.cli.arguments.options import by_option, ignore_clock_option, result_format
from ratings_ledger.cli.arguments.views import load_newest_ladders, open_for_command, save_new_names
from ratings_ledger.cli.output.proposals import print_decision_outcome, print_import_outcome
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.intake.files import Entry, Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, IntakeResult
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.new_names import RefusalScope
from ratings_ledger.projections.admission.known_ladders import KnownLadders
from ratings_ledger.projections.admission.outcomes import build_decision_outcome, build_import_outcome
from ratings_ledger.projections.admission.proposals import Proposal, propose, propose_files
from ratings_ledger.projections.diff.impact import Impact

CommandFunction = Callable[..., int]

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, and record nothing.")
new_names_option = click.option(
    "--new-names",
    type=OneOf(["refuse", "accept"]),
    default="refuse",
    show_default=True,
    help="Refuse or accept a new name that is close to another, looks like two names, or means no player.",
)
any_date_option = click.option(
    "--any-date", is_flag=True, help="Accept games dated more than a day ahead of the clock, or before 1900."
)
strict_option = click.option("--strict", is_flag=True, help="Refuse new players, and games that start a new ladder.")
allow_uncounted_option = click.option(
    "--allow-uncounted", is_flag=True, help="Record games that a ladder's rule cannot score."
)


@dataclass(frozen=True)
class WriteContext:
    """The ledger, import policy and output format of a writing command, and whether it only previews."""

    db: str
    policy: ImportPolicy
    output_format: str
    dry_run: bool

    @cached_property
    def ledger(self) -> Ledger:
        """Open the ledger when it is first needed."""
        return open_for_command(self.db)

    def propose(self, events: Iterable[dict[str, Any] | Refused | Item | Rejection], **options: Any) -> Proposal:
        """Check events without writing. `options` are further arguments of `propose`."""
        return propose(self.ledger, events, self.policy, self._create_known_ladders(), **options)

    def propose_files(self, entries: Iterable[Entry], **options: Any) -> Proposal:
        """Check the entries of files without writing. `options` are further arguments of `propose_files`."""
        return propose_files(self.ledger, entries, self.policy, self._create_known_ladders(), **options)

    def _create_known_ladders(self) -> KnownLadders:
        return KnownLadders(self.policy.strict, load_newest_ladders)

    def finish(self, proposal: Proposal, progress: Callable[[int], None] = lambda appended: None) -> IntakeResult:
        """Append a proposal, unless this is a dry run, and return its result."""
        if self.dry_run:
            return proposal.result
        result = proposal.append(progress)
        # after a large import, the next command that reads the events saves the names for completion
        if result.appended and result.head is not None and proposal.is_small():
            save_new_names(self.db, self.ledger, proposal.known.decoded, result.head)
        return result

    def append_and_report(self, type_name: str, proposal: Proposal, unchanged: list[str] | None = None) -> int:
        """Append events of one type unless this is a dry run, and report them with their impact; return the exit code.

        `unchanged` has the games of a file that need no event.
        """
        first = None if proposal.is_refused else next(proposal.drafts(), None)
        impact = Impact() if first is None else proposal.impact()
        event_id = None if first is None else first.event_id
        outcome = build_decision_outcome(
            self.finish(proposal), type_name, event_id, dry_run=self.dry_run, impact=impact, unchanged=unchanged
        )
        return emit(outcome, self.output_format, print_decision_outcome)

    def refuse(self, type_name: str, problem: Refused) -> int:
        """Report that an event was refused before it was proposed; return the exit code."""
        refused = build_decision_outcome(
            IntakeResult.refused(problem), type_name, None, dry_run=self.dry_run, impact=Impact()
        )
        return emit(refused, self.output_format, print_decision_outcome)

    def report(self, result: IntakeResult, impact: Impact | None = None, **members: Any) -> int:
        """Report the result for events of any type, with further members of the outcome; return the exit code."""
        return emit(
            build_import_outcome(result, self.dry_run, impact, **members), self.output_format, print_import_outcome
        )


def write_command(command: CommandFunction) -> CommandFunction:
    """Add the options of all writing commands; pass them to the command as a `WriteContext`, its first argument."""

    def run_write(db: str, by: str, output_format: str, dry_run: bool, ignore_clock: bool, **options: Any) -> int:
        return command(WriteContext(db, ImportPolicy(by, ignore_clock=ignore_clock), output_format, dry_run), **options)

    wrapped: CommandFunction = click.pass_obj(wraps(command)(run_write))
    for option in (result_format, by_option, ignore_clock_option, dry_run_option):
        wrapped = option(wrapped)
    return wrapped


def with_game_options(scope: RefusalScope) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that adds the options of commands that record games; their values join the import policy.

    `scope` says whether new names are refused in all events, or only in tables. With --strict it is always all.
    """

    def decorate(command: CommandFunction) -> CommandFunction:
        def run_with_policy(
            context: WriteContext, strict: bool, new_names: str, any_date: bool, allow_uncounted: bool, **options: Any
        ) -> int:
            if strict and new_names == "accept":
                raise click.UsageError("--strict refuses new names, but --new-names accept allows them; leave out one")
            refusal_scope: RefusalScope = "all" if strict else scope if new_names == "refuse" else ""
            policy = context.policy._replace(
                any_date=any_date, allow_uncounted=allow_uncounted, refusal_scope=refusal_scope, strict=strict
            )
            return command(replace(context, policy=policy), **options)

        wrapped = write_command(wraps(command)(run_with_policy))
        for option in (allow_uncounted_option, any_date_option, new_names_option, strict_option):
            wrapped = option(wrapped)
        return wrapped

    return decorate
