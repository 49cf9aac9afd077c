"""Describe imported games that already exist but are voided, with the commands that restore them.

If an undo voided the games, or a changeset that only voids several games, the note suggests `ratings undo` for it;
otherwise, the note suggests `ratings reinstate`.
"""

import shlex
from collections.abc import Mapping

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.rejections import count, csv_item
from ratings_ledger.projections.admission.changesets import Changeset, load_changeset
from ratings_ledger.projections.admission.undo import UNDO_PREFIX

CHANGESETS_MAX, IDS_MAX = 3, 3  # the maximum numbers of notes, and of game ids in a note
VOID_TYPES = frozenset({"game.voided", "event.voided"})


def describe_voided_games(connection: Connection, voided: Mapping[str, KnownEvent]) -> list[str]:
    """Return a note for each changeset that voided any of the games, up to `CHANGESETS_MAX`.

    `voided` has the event that voids each game, by game id.
    """
    remaining, notes = dict(voided), list[str]()
    while remaining and len(notes) < CHANGESETS_MAX:
        void = next(iter(remaining.values()))
        changeset = load_changeset(connection, void.position or 0)
        game_ids = [game_id for game_id, event in remaining.items() if changeset.has(event.position)]
        for game_id in game_ids:
            del remaining[game_id]
        notes.append(f"{_describe_games(game_ids)}; {_suggest_restore(changeset, void, game_ids)}")
    if remaining:
        more = f"{count(len(remaining), 'more game')} {'is' if len(remaining) == 1 else 'are'} voided"
        notes.append(f"{more}; to see who voided a game, and why: ratings log GAME")
    return notes


def _describe_games(game_ids: list[str]) -> str:
    if len(game_ids) == 1:
        return f"{csv_item(game_ids[0])} is voided, so it does not count"
    more = f" and {len(game_ids) - IDS_MAX:,} more" if len(game_ids) > IDS_MAX else ""
    ids = ", ".join(map(csv_item, game_ids[:IDS_MAX]))
    return f"{len(game_ids):,} games are voided, so they do not count: {ids}{more}"


def _suggest_restore(changeset: Changeset, void: KnownEvent, game_ids: list[str]) -> str:
    """Return the command that restores the games that a changeset voided."""
    is_undo = str(void.data["reason"]).startswith(UNDO_PREFIX)
    if is_undo or (changeset.types.keys() <= VOID_TYPES and changeset.event_count > 1):
        other_voids = changeset.types["game.voided"] - len(game_ids)
        command = f"ratings undo {changeset.position}"
        more = f" (this also reverts {count(other_voids, 'other void')})" if other_voids else ""
        pronoun = "it" if len(game_ids) == 1 else "them"
        return f"to restore {pronoun}: {command}{more}"
    target = "it" if len(game_ids) == 1 else "the first"
    return f"to restore {target}: ratings reinstate {shlex.quote(game_ids[0])} --reason TEXT"
