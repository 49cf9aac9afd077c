"""What a sheet says otherwise than the ledger, game by game, as a result."""

from collections import Counter

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.intake.syncing import SheetDifference, Sync
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import describe_result
from ratings_ledger.projections.admission.outcomes import DifferingGame, SheetDifferences
from ratings_ledger.projections.queries.coordinates import Times, load_times, moment
from ratings_ledger.projections.queries.event_texts import what_differs

TOLD_GAMES = 10_000


def sheet_differences(connection: Connection, found: Sync) -> SheetDifferences:
    """Return what was found in a sheet."""
    times, people = load_times(connection), identities(connection)
    counts = Counter(one.what for one in found.differences)
    games = tuple(_told(one, times, people) for one in found.differences[:TOLD_GAMES])
    return SheetDifferences(
        found.name, found.is_first, counts["new"], counts["changed"], counts["vanished"], counts["returned"],
        counts["reordered"], tuple(found.otherwise), games,
    )  # fmt: skip


def _told(one: SheetDifference, times: Times, people: Identities) -> DifferingGame:
    """One game."""
    there = None if one.there is None or one.there.voided else describe_result(people.present(one.there.data))
    here = None if one.here is None else describe_result(people.present(one.here.data))
    played_at = one.here.likeness.occurred_at if one.here is not None else one.there.occurred_at if one.there else 0
    if one.what == "changed" and one.there is not None and one.here is not None:
        new = {**one.here.data, "game_id": one.game_id, "occurred_at": format_instant(played_at)}
        changes = what_differs(one.there, new, times, people)
        if changes:
            there, here = ("; ".join(f"{about} {text}".lstrip() for about, text in texts) for texts in (
                [(about, was) for about, was, _ in changes], [(about, now) for about, _, now in changes]
            ))  # fmt: skip
    return DifferingGame(one.what, one.game_id, one.line, moment(played_at), there, here)
