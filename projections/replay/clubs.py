"""Build facts whose participants are clubs, from the facts about the clubs' players.

A game is scored among all its players. A club then gets the sum of its players' points, or the best of them; players
without a club are ignored. Games of clubs are replayed, listed and compared like games of persons. Club ids and player
ids never mix, because clubs and players have separate facts.

Example: places 1 to 5 score 10, 6, 4, 3 and 2 points. The 1st and the 3rd play for north, the 2nd for south, and the
4th and the 5th for no club.

    sum:   north 10 + 4 = 14, south 6
    best:  north 10, south 6

The rule's points must not depend on the states of players (`Rule.adds`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import NUMBERS, Columns, Numbers, Rule, Term, decimal, no_table
from ratings_ledger.projections.facts.columns import NONE, Adjustment, ClubGames, Facts, Member, RecordedFacts, Rename
from ratings_ledger.projections.replay.classified_places import list_classified_places
from ratings_ledger.projections.replay.eligibility import list_counted
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure, explain_states, remark_on_game, score_states
from ratings_ledger.projections.replay.rule_inputs import read_optional_column
from ratings_ledger.projections.replay.streams import Stream, build_streams
from ratings_ledger.projections.rulesets.versions import Version

# the column of a club's points from a game; no custom number can have this name
GAIN_COLUMN = f"{NUMBERS}+"


def build_club_facts(people: Facts, versions: Sequence[Version]) -> Facts:
    """Build the facts of the games between clubs. `versions` are the versions of a ruleset whose entrants are clubs."""
    ruleset_id = versions[0].ruleset.id
    names, current_club = _name_clubs(people, ruleset_id)
    numbers = {name: number for number, name in enumerate(names)}
    scored, failures = _score_people(people, versions)
    club_of_text = np.array(
        [current_club[numbers[text]] if text in numbers else NONE for text in people.texts], dtype=np.int64
    )
    members = _assign_clubs(people, scored, club_of_text)
    group_starts = np.flatnonzero(np.diff(members.club, prepend=-1) | np.diff(members.row, prepend=-1))
    count = np.bincount(members.row[group_starts], minlength=len(people.start)).astype(np.int32)
    start = arrays.exclusive_cumsum(arrays.as_column(count))
    place = _reduce_groups(np.minimum, arrays.as_numpy(people.place)[members.slot], group_starts).astype(np.int32)
    adjustments, recorded = _renumber_decisions(people, ruleset_id, numbers)
    return Facts(
        position=people.position,
        chain_hash=people.chain_hash,
        first_position=people.first_position,
        live_position=people.live_position,
        occurred_at=people.occurred_at,
        start=start,
        count=arrays.as_column(count),
        cell=people.cell,
        kind_start=start,
        voided=people.voided,
        player=arrays.as_column(members.club[group_starts].astype(np.int32)),
        place=arrays.as_column(place),
        status=arrays.zeros("b", len(group_starts)),
        replaced=arrays.zeros("b", len(group_starts)),
        optional={GAIN_COLUMN: arrays.as_column(_sum_gains(members, group_starts, versions))},
        of_kind={},
        players=names,
        person=current_club,
        texts=people.texts,
        cells=people.cells,
        player_numbers=numbers,
        text_numbers=people.text_numbers,
        cell_numbers=people.cell_numbers,
        rows=people.rows,
        recorded=recorded,
        has_later_events=people.has_later_events,
        recorded_until=people.recorded_until,
        unread=people.unread,
        circular=people.circular,
        adjustments=[adjustment._replace(player=current_club[adjustment.player]) for adjustment in adjustments],
        rulesets={**people.rulesets, ruleset_id: [_adapt_version(version) for version in versions]},
        unusable=people.unusable,
        leagues=people.leagues,
        renamed=bool(people.clubs),
        club_games=_build_club_games(people, versions, members, group_starts, failures),
    )


def _build_club_games(
    people: Facts,
    versions: Sequence[Version],
    members: ScoredParticipants,
    group_starts: Any,
    failures: Mapping[int, Exception],
) -> ClubGames:
    """Return the members of the clubs in all games. The members of each club in a game start at `group_starts`."""
    return ClubGames(
        people=people,
        versions=versions,
        offsets=arrays.as_column(np.append(group_starts, len(members.row)).astype(np.int64)),
        members=arrays.as_column(members.slot),
        gains=arrays.as_column(members.gain),
        places=arrays.as_column(members.place),
        failures=failures,
    )


def _sum_gains(members: ScoredParticipants, group_starts: Any, versions: Sequence[Version]) -> Any:
    """Return the points of every club from every game: the sum of its players' gains, or the best gain."""
    takes_best = np.array([version.ruleset.takes == "best" for version in versions])
    # the members of a group are sorted by gain, so its best gain comes first
    return np.where(
        takes_best[members.version[group_starts]],
        members.gain[group_starts],
        _reduce_groups(np.add, members.gain, group_starts),
    )


def _reduce_groups(operation: Any, numbers: Any, group_starts: Any) -> Any:
    """Reduce the numbers of each group by an operation. Groups are consecutive and start at `group_starts`."""
    return (
        operation.reduceat(numbers, group_starts).astype(np.int64) if len(group_starts) else np.zeros(0, dtype=np.int64)
    )


# ------------------------------------------------------------------------------------------------ names and decisions


def _name_clubs(people: Facts, ruleset_id: str) -> tuple[list[str], array[int]]:
    """Return the sorted names of all clubs, including former names, and for each the number of the current name."""
    labels = np.unique(arrays.as_numpy(people.optional.get("club", array("i")))).tolist()
    names = {people.texts[label] for label in labels if label != NONE} | people.clubs.keys() | {*people.clubs.values()}
    names |= {name for rename in people.recorded.club_renames for name in (rename.club, rename.new_club)}
    adjustments = (
        adjustment for adjustment in people.recorded.adjustments if _belongs_to_ruleset(adjustment, ruleset_id)
    )
    names |= {people.players[adjustment.player] for adjustment in adjustments}
    ordered = sorted(names)
    numbers = {name: number for number, name in enumerate(ordered)}
    return ordered, array("i", [numbers[people.current_club(name)] for name in ordered])


def _belongs_to_ruleset(adjustment: Adjustment, ruleset_id: str) -> bool:
    return parse_name(adjustment.ladder).ruleset_id == ruleset_id


def _renumber_decisions(
    people: Facts, ruleset_id: str, numbers: dict[str, int]
) -> tuple[list[Adjustment], RecordedFacts]:
    """Return the live adjustments of clubs, and the recorded facts with clubs instead of players.

    `numbers` has the number of each club's name; a decision keeps the number of the name that it gives.
    """
    recorded = people.recorded
    adjustments = [
        adjustment._replace(player=numbers[people.players[adjustment.player]])
        for adjustment in recorded.adjustments
        if _belongs_to_ruleset(adjustment, ruleset_id)
    ]
    renames = [
        Rename(rename.position, numbers[rename.club], numbers[rename.new_club]) for rename in recorded.club_renames
    ]
    live_positions = {adjustment.position for adjustment in people.adjustments}
    club_records = replace(
        recorded, adjustments=adjustments, renames=renames, seeds=[], accounts=[], club_renames=[], clocks={}
    )
    return [adjustment for adjustment in adjustments if adjustment.position in live_positions], club_records


# ------------------------------------------------------------------------------------------------ games


class ScoredParticipants(NamedTuple):
    """The counted participants of scored games, as arrays with one entry for each participant.

    row, version: the game's row in the facts, and the index of the version that scores the game
    slot:  the participant, as an index into the facts about players
    gain:  the points that the player gained in the game, in units
    place: the classified place; 0 if not classified
    club:  the number of the player's club; None before clubs are assigned
    """

    row: Any
    version: Any
    slot: Any
    gain: Any
    place: Any
    club: Any = None


def _score_people(people: Facts, versions: Sequence[Version]) -> tuple[ScoredParticipants, dict[int, Exception]]:
    """Return the counted participants of all games, without clubs, and the failures of the rule by row."""
    failures: dict[int, Exception] = {}
    unadjusted = replace(people, adjustments=[], seeds={})
    streams = build_streams(unadjusted, versions).values()
    if not streams:
        return ScoredParticipants(*(np.zeros(0, dtype=np.int64) for _ in range(5))), failures
    pairs = [_score_stream(people, stream, failures) for stream in streams]
    # bands may overlap, but a game gives the same points on all its ladders that score it, so these come first
    scored, unscored = zip(*pairs, strict=True)
    all_columns = [np.concatenate(columns) for columns in zip(*(part[:5] for part in scored + unscored), strict=True)]
    _, distinct_slots = np.unique(all_columns[2], return_index=True)
    return ScoredParticipants(*(column[distinct_slots] for column in all_columns)), failures


def _score_stream(
    people: Facts, stream: Stream, failures: dict[int, Exception]
) -> tuple[ScoredParticipants, ScoredParticipants]:
    """Return the counted participants on one ladder: before the first failed game, and from it on, with gains of 0."""
    rows, sizes = arrays.as_numpy(stream.rows), np.diff(arrays.as_numpy(stream.offsets))
    gains = np.zeros(len(stream.players), dtype=np.int64)
    try:
        trace = replay(stream, entry_states={})
    except RuleFailure as failure:
        game = 0 if failure.row is None else int(np.flatnonzero(rows == failure.row)[0])
        failures[int(rows[game])] = failure
        trace = replay(replace(stream.truncate(game, 0), failure=None), entry_states={})
    scored_count = len(trace.stream.players)
    gains[:scored_count] = arrays.as_numpy(trace.changes)
    columns = (
        np.repeat(rows, sizes),
        np.repeat(arrays.as_numpy(stream.version_indices).astype(np.int64), sizes),
        _find_participants(people, stream),
        gains,
        _classify_slots(stream),
    )
    return (
        ScoredParticipants(*(column[:scored_count] for column in columns)),
        ScoredParticipants(*(column[scored_count:] for column in columns)),
    )


def _classify_slots(stream: Stream) -> Any:
    """Return the classified place at every slot of a stream; 0 unless all its rules read places."""
    if all("place" in version.rule.columns for version in stream.versions):
        return np.array(list_classified_places(stream), dtype=np.int64)
    return np.zeros(len(stream.players), dtype=np.int64)


def _find_participants(people: Facts, stream: Stream) -> Any:
    """Return the participant at each slot of a stream. A person occurs only once in a game, so this is unique."""
    rows, person_count = arrays.as_numpy(stream.rows), len(people.person) + 1
    counts = arrays.as_numpy(arrays.take(people.count, stream.rows))
    slots = arrays.as_numpy(arrays.span_indices(arrays.take(people.start, stream.rows), arrays.as_column(counts)))
    persons = arrays.as_numpy(people.person)[arrays.as_numpy(people.player)[slots]]
    participant_keys = np.repeat(np.arange(len(rows)), counts) * person_count + persons
    persons_of_slots = np.array(stream.persons, dtype=np.int64)[arrays.as_numpy(stream.players)]
    slot_keys = (
        np.repeat(np.arange(len(rows)), np.diff(arrays.as_numpy(stream.offsets))) * person_count + persons_of_slots
    )
    by_key = np.argsort(participant_keys)
    return slots[by_key[np.searchsorted(participant_keys[by_key], slot_keys)]]


def _assign_clubs(people: Facts, scored: ScoredParticipants, club_of_text: Any) -> ScoredParticipants:
    """Return the participants with clubs, sorted by game and club, then by gain in descending order.

    Equal gains are sorted by place, then in the order of recording. `club_of_text` has the number of each text's club.
    """
    labels = read_optional_column(people, "club", scored.slot)
    has_club = labels != NONE
    clubs, scored = club_of_text[labels[has_club]], ScoredParticipants(*(column[has_club] for column in scored[:5]))
    sort_places = np.where(scored.place == 0, np.iinfo(np.int64).max, scored.place)
    by_game_and_club = np.lexsort((scored.slot, sort_places, -scored.gain, clubs, scored.row))
    return ScoredParticipants(*(column[by_game_and_club] for column in (*scored[:5], clubs)))


# ------------------------------------------------------------------------------------------------ the rule of clubs


def _adapt_version(version: Version) -> Version:
    """Return the version for games of clubs, without conditions on players, because these are applied to persons."""
    scope = version.ruleset.scope.model_copy(update={"exclude_status": [], "exclude_accounts": []})
    ruleset = version.ruleset.model_copy(update={"scope": scope, "numbers": {}})
    return version._replace(ruleset=ruleset, rule=_adapt_rule(version.rule))


def _adapt_rule(rule: Rule) -> Rule:
    """Return the rule that adds up the points of clubs, in the units of the rule for persons."""
    return rule._replace(
        columns=(GAIN_COLUMN,),
        check=None,
        score=add_gains if rule.state else fill_in_gains,
        explain=explain_gains,
        counted_min=1,
        remark=None,
        table=no_table,
        sample=None,
        chance=None,
        draw=None,
    )


def add_gains(n: int, before: Any, columns: Columns, constants: Numbers, table: Numbers, after: Any) -> int:
    """Add the gain of every club to its state. Return the sum of the positive gains, which are minted."""
    minted = 0
    for i in range(n):
        after[0][i] = before[0][i] + columns[0][i]
        minted += max(columns[0][i], 0)
    return minted


def fill_in_gains(n: int, points: Numbers, columns: Columns, constants: Numbers, table: Numbers, change: Any) -> int:
    """Fill in the gains as the changes, for a rule of contract 1. Return the sum of the positive gains."""
    minted = 0
    for i in range(n):
        change[i] = columns[0][i]
        minted += max(columns[0][i], 0)
    return minted


def explain_gains(n: int, names: Sequence[str], before: Any, columns: Columns, params: Any, after: Any) -> Any:
    """Return one term for each club. `explain_members` returns the terms of the players."""
    return [[Term("players", columns[0][i], "the points of its players")] for i in range(n)]


# ------------------------------------------------------------------------------------------------ explanations


class MemberTerms(NamedTuple):
    """The explanation of a game of clubs as a game among persons.

    names, terms: by participant, the id and the rule's terms
    scale:        the number of units in a point
    takes_best:   whether only the best player of a club counts
    remark:       the rule's remark on the game
    """

    names: dict[int, str]
    terms: dict[int, list[Term]]
    scale: int
    takes_best: bool
    remark: str | None

    def terms_of(self, members: Sequence[Member]) -> list[Term]:
        """Return the terms that sum to the points of a club. `members` must start with the best."""
        return [*self._list_terms(members)]

    def _list_terms(self, members: Sequence[Member]) -> Iterator[Term]:
        for rank, member in enumerate(members):
            name = self.names[member.participant]
            if rank and self.takes_best:
                points = decimal(member.gain, self.scale)
                unit = "point" if points == "1" else "points"
                yield Term(name, 0, f"{points} {unit}; only the club's best player counts")
                continue
            for term in self.terms[member.participant]:
                yield term._replace(term=f"{name}, {term.term}")


def explain_members(games: ClubGames, row: int, version: Version, ladder: str) -> MemberTerms:
    """Explain the points of every player in a game of clubs, under the version for persons. Raises `RuleFailure`."""
    people, rule = games.people, version.rule
    participants = list_counted(people, row, version)
    names = [people.name_of(participant) for participant in participants]
    reading = version.reading
    columns = [people.column(name, row, participants, reading) for name in rule.columns]
    # the points do not depend on states (`Rule.adds`), so any states give the same terms
    before = [[units] * len(names) for units in version.start_state]
    _, after = score_states(version, ladder, row, before, columns)
    terms = explain_states(version, ladder, row, names, before, columns, after)
    return MemberTerms(
        names=dict(zip(participants, names, strict=True)),
        terms=dict(zip(participants, terms, strict=True)),
        scale=rule.scale,
        takes_best=version.ruleset.takes == "best",
        remark=remark_on_game(version, ladder, row, names, columns),
    )
