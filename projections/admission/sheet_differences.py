"""Describe the differences between a sheet and the ledger, one game at a time."""

from collections import Counter

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.intake.syncing import SheetDifference, Sync
from ratings_ledger.ledger.validation.identities import Identities, read_identities
from ratings_ledger.ledger.validation.repeated_games import describe_result
from ratings_ledger.projections.admission.outcomes import DifferingGame, SheetDifferences
from ratings_ledger.projections.queries.coordinates import TimeFormat, load_times, to_datetime
from ratings_ledger.projections.queries.event_texts import list_changed_members

GAMES_MAX = 10_000  # the maximum number of games that are described


def describe_differences(connection: Connection, sync: Sync) -> SheetDifferences:
    """Return how many differences of each kind a sync found, with descriptions of the first `GAMES_MAX` games."""
    times, people = load_times(connection), read_identities(connection)
    counts = Counter(difference.what for difference in sync.differences)
    return SheetDifferences(
        name=sync.name,
        is_first=sync.is_first,
        new=counts["new"],
        changed=counts["changed"],
        vanished=counts["vanished"],
        returned=counts["returned"],
        reordered=counts["reordered"],
        otherwise=tuple(sync.changed_in_ledger),
        games=tuple(_describe_game(difference, times, people) for difference in sync.differences[:GAMES_MAX]),
    )


def _describe_game(difference: SheetDifference, times: TimeFormat, people: Identities) -> DifferingGame:
    """Describe a game in the ledger and in the sheet; of a changed game, describe only the changes."""
    recorded, in_sheet = difference.recorded, difference.row
    old_text = None if recorded is None or recorded.voided else describe_result(people.use_current_ids(recorded.data))
    new_text = None if in_sheet is None else describe_result(people.use_current_ids(in_sheet.data))
    played_at = in_sheet.likeness.occurred_at if in_sheet is not None else recorded.occurred_at if recorded else 0
    if difference.what == "changed" and recorded is not None and in_sheet is not None:
        new = {**in_sheet.data, "game_id": difference.game_id, "occurred_at": format_instant(played_at)}
        if changes := list_changed_members(recorded, new, times, people):
            old_text = "; ".join(f"{member} {before}".lstrip() for member, before, _ in changes)
            new_text = "; ".join(f"{member} {after}".lstrip() for member, _, after in changes)
    return DifferingGame(
        what=difference.what,
        game_id=difference.game_id,
        line=difference.line,
        occurred_at=to_datetime(played_at),
        was=old_text,
        now=new_text,
    )
