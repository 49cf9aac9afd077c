"""Find the ladders that a query may mean if it names no ladder, but only a game or a player, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import count, quote
from ratings_ledger.ledger.store.log import find_first_positions
from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.facts.lookups import require_player
from ratings_ledger.projections.queries.coordinates import to_datetime
from ratings_ledger.projections.queries.game_explanations import GameExplanation
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.survey import LadderRow, Survey, describe_no_games, load_all_ladders
from ratings_ledger.projections.replay.eligibility import decide_eligibility
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, short_name
from ratings_ledger.projections.replay.streams import Stream, name_ladders_of_game
from ratings_ledger.projections.rulesets.versions import list_games

# the maximum number of ladders that a message lists
LADDERS_LISTED_MAX = 20
# the maximum number of ladders in a message that asks the user to name one of a player's ladders
PLAYER_LADDERS_LISTED_MAX = 6


def choose_only_ladder(
    rows: Sequence[LadderRow],
    qualifier: str = "",
    as_of: str | None = None,
    unscored: Sequence[str] = (),
    problems: Sequence[str] = (),
    limit: int = LADDERS_LISTED_MAX,
) -> str:
    """Return the only candidate, for a query without a ladder. Raises `BadArgument` if there are several, or none.

    Args:
        rows: the candidates. All other arguments are only for the message of the error.
        qualifier: a relative clause for the word "ladders", such as " that anna is on".
        as_of: the `as_of` of the query.
        unscored: the names of the recorded games, such as chess, that no ruleset scores.
        problems: why rulesets do not run here, and why ladders cannot be replayed.
        limit: the maximum number of ladders that the message lists.
    """
    until = "" if as_of is None else f" played up to {as_of}"
    if not rows and problems:
        raise BadArgument(f"no usable ladder has a game{until}; {problems[0]}", "ladder")
    if not rows and until:
        raise BadArgument(f"no ladder has a game{until}", "as_of")
    if not rows:
        raise BadArgument(describe_no_games(unscored), "ladder")
    if len(rows) == 1:
        return rows[0].ladder
    names = "".join(f"\n  {short_name(row.ladder)} ({count(row.games, 'game')})" for row in rows[:limit])
    unlisted_count = len(rows) - limit
    more = f"\n  and {unlisted_count:,} more; see: ratings ladders" if unlisted_count > 0 else ""
    raise BadArgument(f"name one of the {len(rows):,} ladders{qualifier}:{names}{more}", "ladder")


def list_ladders_of_game(facts: Facts, row: int) -> list[str]:
    """Return the ladders that a game belongs to by its labels, whether it counts there or not.

    Annual lists are left out, because they have no games of their own.
    """
    ladders = list[str]()
    for _, versions in sorted(facts.rulesets.items()):
        scored_games = list_games(versions)
        if facts.label("game", row) in scored_games and not versions[0].ranking.sums_lists:
            ladders += name_ladders_of_game(facts, row, versions[0].ruleset)
    return ladders


def list_ladders_counting_game(survey: Survey, game_id: str) -> list[str] | None:
    """Return the ladders on which a game counts or, without any, those that it belongs to; None for an unknown game.

    A game counts if the ladder's ruleset counts it.
    """
    facts, first_positions = survey.facts, find_first_positions(survey.connection, [game_id])
    row = facts.row_of(first_positions[game_id]) if first_positions else NONE
    if row == NONE:
        return None
    names = list_ladders_of_game(facts, row)
    return [name for name in names if _is_counted(survey.ladders(name), name, row)] or names


def _is_counted(ladders: Ladders, ladder: str, row: int) -> bool:
    """Tell whether the ruleset of a ladder counts a game."""
    return decide_eligibility(ladders.facts, row, ladders.facts.versions_of(ladder)).reason is None


def list_ladders_of_player(survey: Survey, player: str) -> list[str]:
    """Return the ladders that a player is on."""
    ladder_names = list[str]()
    for ladders, stream in survey.streams(survey.usable_ids):
        with survey.collect_failure():
            names = stream.names
            if stream.ranking.sums_lists:
                names = [row.player for row in ladders.rank_stream(stream).rows]
            if ladders.facts.current(player) in names:
                ladder_names.append(stream.ladder)
    return ladder_names


def sort_by_games(rows: Iterable[LadderRow], names: Sequence[str]) -> list[LadderRow]:
    """Return the rows of the named ladders, those with the most games first, and ties in the order of `names`."""
    indexes = {name: index for index, name in enumerate(names)}
    return sorted((row for row in rows if row.ladder in indexes), key=lambda row: (-row.games, indexes[row.ladder]))


def _sort_by_last_game(survey: Survey, rows: Iterable[LadderRow], player: str) -> list[LadderRow]:
    """Return the rows of a player's ladders with the player's own games, the ladder of the latest game first."""
    # a ladder of clubs has separate facts
    streams = {stream.ladder: (ladders.facts, stream) for ladders, stream in survey.streams(survey.usable_ids)}
    own_rows = [_count_own_games(*streams[row.ladder], row, player) for row in rows]
    return sorted(
        own_rows, key=lambda row: (row.last_game is None, -(row.last_game.timestamp() if row.last_game else 0))
    )


def _count_own_games(facts: Facts, stream: Stream, row: LadderRow, player: str) -> LadderRow:
    """Return a row that counts only the games of one player; return the row of an annual list unchanged."""
    if stream.ranking.sums_lists or facts.current(player) not in stream.names:
        return row
    slots = np.flatnonzero(arrays.as_numpy(stream.players) == stream.names.index(facts.current(player)))
    if not len(slots):
        return replace(row, games=0, last_game=None)
    last_game = int(np.searchsorted(arrays.as_numpy(stream.offsets), slots[-1], side="right")) - 1
    return replace(row, games=len(slots), last_game=to_datetime(int(facts.occurred_at[stream.rows[last_game]])))


class Candidates(NamedTuple):
    """The candidate ladders for a query.

    rows:            their rows: for a game, the ladder with the most games first; for a player, the ladder of the
                     latest game first
    ladders_of_game: the names of the ladders on which the game counts or, without any, the names of those that it
                     belongs to; empty for a player
    unscored:        the names of the recorded games, such as chess, that no ruleset scores
    """

    rows: Sequence[LadderRow]
    ladders_of_game: Sequence[str]
    unscored: Sequence[str]

    def choose(self, survey: Survey, name: str) -> str:
        """Return the only candidate for a name. Raises `BadArgument` if there are several, or none."""
        return choose_only_ladder(
            self.rows,
            f" that {quote(name)} is on",
            survey.requested_as_of,
            unscored=self.unscored,
            problems=survey.problems,
            limit=PLAYER_LADDERS_LISTED_MAX,
        )


def list_candidate_ladders(survey: Survey, name: str, is_player: bool) -> Candidates:
    """Return the candidate ladders for a query about a player or, if a game has this id, about the game.

    With only one ladder in the ledger, or for a name that is neither a player nor a game, the first ladder is the only
    candidate.

    Args:
        survey: the survey of all ladders.
        name: the player or the game.
        is_player: if False, the name may also be the id of a game.

    Raises:
        BadArgument: the player or game is not on any ladder.
        Unknown: (player-unknown) with `is_player`, the player is unknown.
    """
    all_ladders = load_all_ladders(survey)
    rows, unscored = all_ladders.rows, all_ladders.unscored
    ladders_of_game = None if is_player else list_ladders_counting_game(survey, name)
    is_player_or_club = survey.facts.knows(name) or any(
        ladders.facts.knows(name) for ladders in map(survey.ladders, survey.usable_ids)
    )
    is_known = ladders_of_game is not None or is_player_or_club
    if len(rows) < 2 or not (is_known or is_player):
        return Candidates(rows[:1], (), unscored)
    if not is_known:
        require_player(survey.facts, name)
    ladder_names = list_ladders_of_player(survey, name) if ladders_of_game is None else ladders_of_game
    candidates = drop_duplicate_ladders(sort_by_games(rows, ladder_names))
    if ladders_of_game is None:
        candidates = _sort_by_last_game(survey, candidates, name)
    if not candidates and not ladder_names:
        raise BadArgument(f"{quote(name)} is not on any ladder; see: ratings games", "player")
    if ladders_of_game is not None:
        ladders_of_game = [row.ladder for row in candidates] or ladder_names
    return Candidates(candidates, ladders_of_game or (), unscored)


def pick_common_ladder(explanations: Iterable[GameExplanation]) -> str | None:
    """Return the first ladder if a game has the same explanation on all ladders, else None."""
    first, *others = explanations
    is_same = all(replace(explanation, ladder=first.ladder) == first for explanation in others)
    return first.ladder if is_same else None
