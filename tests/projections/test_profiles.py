"""Profiles, ranks over time and overviews: given a random history, they are what a naive ledger finds step by step."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders import build_event
from histories import adjustment, club_game, fill, random_games, ruleset
from kind_games import battle
from oracle.log import named
from oracle.profiles import Course, Profile, Step, Streak
from oracle.questions import Question, Row
from oracle.rulesets import ruleset_of, versions_of
from oracle.times import start_of
from own_rules import find_shipped_text
from paths import set_paths
from time_histories import ENDS, LADDERS, history
from time_ledgers import enter

import ratings_ledger as rl
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.facts.stored_columns import StoredColumn
from ratings_ledger.projections.replay import continuation, trace_cache
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import read_shipped_text

ALL = "club-catan-elo/all"
EVERY = [*dict.fromkeys(LADDERS)]
RUNNING = EVERY[:3]
LAST = 3


@pytest.fixture
def few_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer points are shown in overviews than people have."""
    monkeypatch.setattr("ratings_ledger.projections.queries.standings.LAST_STEPS_MAX", LAST)


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the shortest ladder has its trace kept, and continued."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 0)


def row_of(one: rl.Standing | None) -> Row | None:
    """A row as the oracle has it."""
    if one is None:
        return None
    gold, places = (None if value is rl.ABSENT else value for value in (one.gold, one.places))
    return Row(one.rank, one.player, one.points, one.games, one.qualified, gold, places)  # type: ignore[arg-type]


def streak(one: rl.Streak | None) -> Streak:
    return None if one is None else (one.games, one.first_game_id, one.last_game_id)


def as_told(found: rl.Profile) -> Profile:
    """A profile in the form of the oracle."""
    return Profile(
        row_of(found.standing), found.ranked, found.players,
        [Step(one.game_id, one.place, one.after) for one in found.course], found.wins,
        (streak(found.longest_wins), streak(found.current_wins)),
        (streak(found.longest_without_win), streak(found.current_without_win)),
        [(one.place, one.games) for one in found.places],
        [(one.player, one.games, one.better, one.equal, one.worse) for one in found.opponents],
    )  # fmt: skip


def agree(view: rl.View, course: Course, players: list[str], chance: Random, met: Counter[str]) -> None:
    """Compare everything that is said of a ladder with what the oracle finds."""
    ladder, current = course.question.ladder, course.view.current
    for player in players:
        found, wanted = view.profile(ladder, player), course.profile(current(player))
        assert as_told(found) == wanted, (course.question, player)
        values = [step.after for step in wanted.course]
        for extreme, value in ((found.highest, max(values, default=None)), (found.lowest, min(values, default=None))):
            assert extreme == (None if value is None else found.course[values.index(value)])
        games = [one for one in found.course if one.game_id]
        assert (found.first_game, found.last_game) == ((games[0], games[-1]) if games else (None, None))
        met.update({"wins in a row": (found.longest_wins or rl.Streak(0, *["", datetime.min] * 2)).games > 1})
        met.update({"shared place": any(one.equal for one in found.opponents), "not there": found.standing is None})
        met["another id"] += current(player) != player
        ranks = view.ranks(ladder, player)
        assert ranks.rows is not None
        assert ranks.every == course.ranks[0]
        told = [(one.occurred_at, game_at(course, one.position), one.rank, one.games) for one in ranks.rows]
        assert told == course.ranks_of(current(player)), (course.question, player)
        met[f"ranks by {ranks.every}"] += len(told) > 1
    agree_on_overview(view, course, chance, met)


def game_at(course: Course, position: int | None) -> str | None:
    """The game that an event is about, if it is about one."""
    name: str | None = None if position is None else course.log[position - 1]["data"].get("game_id")
    return name


def agree_on_overview(view: rl.View, course: Course, chance: Random, met: Counter[str]) -> None:
    ladder, since, limit = course.question.ladder, chance.choice([None, None, *ENDS]), chance.choice([None, 1, 3])
    found, wanted = view.overview(ladder, since, limit=limit), course.overview(since, LAST)[:limit]
    told = [
        (row_of(row), row.change, row.rank_change, row.last_played, [*row.last_points]) for row in found.rows
    ]  # fmt: skip
    assert told == wanted, (course.question, since)
    assert found.since == (None if (start := since or course.since()) is None else course.end(start))
    standings = view.standings(ladder, limit=limit).model_dump()
    own = found.model_dump()
    assert {name: own[name] for name in standings if name != "rows"} == {
        name: value for name, value in standings.items() if name != "rows"
    }
    assert [
        {name: row[name] for name in ("rank", "player", "points", "games", "qualified")} for row in own["rows"]
    ] == [{name: row[name] for name in ("rank", "player", "points", "games", "qualified")} for row in standings["rows"]]
    met.update({"climbed": any((row.rank_change or 0) > 0 for row in found.rows),
                "has not moved": any(row.change == 0 for row in found.rows),
                "was not there": any(row.change is None for row in found.rows)})  # fmt: skip
    agree_on_parts(view, course, met)


def agree_on_parts(view: rl.View, course: Course, met: Counter[str]) -> None:
    """Compare the rows behind some others, and those of who played from the start of a day on."""
    chance = Random(repr(course.question))
    day, after = chance.choice([None, "2010-03-01", "2010-03-14", "2010-03-28"]), chance.randrange(3)
    found = view.overview(course.question.ladder, after=after, active_since=day, limit=2)
    every = course.overview(None, LAST)
    wanted = [row for row in every if day is None or (row[3] is not None and row[3] >= start_of(day))]
    told = [(row_of(one), one.last_played) for one in found.rows]
    assert told == [(row[0], row[3]) for row in wanted[after : after + 2]], (course.question, day)
    assert (found.players, found.digest) == (len(wanted), view.overview(course.question.ladder).digest)
    met["left out as inactive"] += 0 < len(wanted) < len(every)


def look(url: str, log: list[dict[str, Any]], ladders: list[str], chance: Random, met: Counter[str]) -> None:
    """Ask about some ladders now, as of some time, and as known at some position."""
    with rl.open(url) as ledger:
        for known_at, as_of in (
            (len(log), None),
            (len(log), chance.choice(ENDS)),
            (chance.randint(30, len(log)), None),
        ):
            known = log[:known_at]
            players = sorted(set().union(*map(named, known)))
            for ladder in ladders:
                if not versions_of(known, ruleset_of(ladder)):
                    continue
                course = Course(log, Question(ladder, known_at, as_of))
                view = ledger.at(as_of=as_of, known_at=known_at)
                agree(view, course, chance.sample(players, min(4, len(players))), chance, met)


MET = {"wins in a row", "shared place", "not there", "another id", "ranks by step", "ranks by month", "ranks by day",
       "climbed", "has not moved", "was not there", "left out as inactive"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("few_last")
def test_answers_are_those_of_a_naive_ledger(tmp_path: Path, at_length: bool) -> None:
    """Given random histories with ties, voids, renames and rules that change, every answer is what the oracle finds."""
    met: Counter[str] = Counter()
    for seed in range(60) if at_length else [1]:
        url, log = str(tmp_path / f"{seed}.db"), history(seed, 100)
        upgrade(url)
        enter(open_ledger(url), log)
        look(url, log, EVERY, Random(seed), met)
    assert {name for name in MET if not met[name]} == set()


@pytest.mark.slow
@pytest.mark.usefixtures("few_last", "traces")
def test_answers_from_kept_traces_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """Given traces that are kept and continued as a history grows, every answer is what the oracle finds,
    interpreted or compiled."""
    parts: Counter[str] = Counter()

    def continued(*about: Any) -> Trace | None:
        trace = continuation.continue_trace(*about)
        parts["continued" if trace and trace.earlier else "as it was" if trace else "replayed"] += 1
        return trace

    monkeypatch.setattr(trace_cache, "continue_trace", continued)
    for seed in range(100, 140 if at_length else 102):
        url, log, chance = str(tmp_path / f"{seed}.db"), history(seed, 90), Random(seed)
        upgrade(url)
        set_paths(monkeypatch, scanned=False, compiled=seed % 2 == 1)
        for first, last in pairwise((0, *range(60, 91 if at_length else 76, 5))):
            enter(open_ledger(url), log[first:last])
            look(url, log[:last], RUNNING, chance, Counter())
    assert parts["continued"] > (10 if at_length else 5)
    assert parts["as it was"] > 0


@pytest.mark.usefixtures("traces")
def test_profile_reads_only_what_its_games_touch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a kept trace, a profile reads no whole column of it or of the facts, except for everybody's points."""
    url, events = str(tmp_path / "ratings.db"), random_games(3, 60, ["anna", "ben", "cleo", "dora"])
    upgrade(url)
    set_paths(monkeypatch, scanned=False, compiled=False)
    told = asked(url, *events).profile(ALL, "anna").model_dump()
    whole, read = set(), StoredColumn.read_whole

    def spied(column: StoredColumn) -> Any:
        whole.add(column.name)
        return read(column)

    monkeypatch.setattr(StoredColumn, "read_whole", spied)
    with rl.open(url) as ledger:
        assert ledger.at().profile(ALL, "anna").model_dump() == told
    assert "points" in whole
    assert whole & {"before", "slot", "player", "row", "offset", "version", "mint", "place", "start", "count"} == set()


def asked(url: str, *events: dict[str, Any]) -> rl.View:
    """A view of a ledger with the club's ruleset and some events."""
    fill(url, [ruleset(), *events]).engine.dispose()
    return rl.open(url).at()


def test_a_shared_first_place_is_no_win(ledger_url: str) -> None:
    """Given wins, a shared first place and a second one: the shared one ends the streak of wins, and nobody was better
    in it."""
    games = ("anna ben", "anna cleo", "anna=ben cleo", "anna ben", "ben anna")
    view = asked(ledger_url, *(club_game(f"g-{day}", players, day) for day, players in enumerate(games, 1)))
    found = view.profile(ALL, "anna")
    assert (found.wins, streak(found.longest_wins), streak(found.current_wins)) == (3, (2, "g-1", "g-2"), None)
    assert (streak(found.longest_without_win), streak(found.current_without_win)) == (
        (1, "g-3", "g-3"),
        (1, "g-5", "g-5"),
    )
    assert [(one.place, one.games) for one in found.places] == [(1, 4), (2, 1)]
    assert [*found.opponents] == [rl.Opponent("ben", 4, 2, 1, 1), rl.Opponent("cleo", 2, 2, 0, 0)]
    assert [one and one.game_id for one in (found.first_game, found.last_game, found.highest)] == ["g-1", "g-5", "g-4"]


def test_partners_are_no_opponents_and_win_together(ledger_url: str) -> None:
    """Partners who share a first place have won, and met the other side alone."""
    sides = [("anna", 1, "a"), ("ben", 1, "a"), ("cleo", 2, "b"), ("dora", 2, "b")]
    people = [{"player": name, "place": place, "team": team} for name, place, team in sides]
    game = build_event("game.recorded", game_id="g-1", game="doubles", participants=people)
    system = read_shipped_text("weng-lin-1").replace("GAME", "doubles").replace("ZONE", "UTC")
    found = asked(ledger_url, ruleset(system), game).profile("weng-lin-doubles/all", "anna")
    assert (found.wins, [*found.opponents]) == (1, [rl.Opponent("cleo", 1, 1, 0, 0), rl.Opponent("dora", 1, 1, 0, 0)])


def test_adjustments_are_steps_and_no_games(ledger_url: str) -> None:
    """Given an adjustment that takes somebody to their highest points and another rank, it is told without a game."""
    view = asked(
        ledger_url, club_game("g-1", "anna ben", 1), adjustment(ALL, "ben", "100", 2), adjustment(ALL, "cleo", "0", 3)
    )
    found, ranks = view.profile(ALL, "ben"), view.ranks(ALL, "ben").rows
    assert found.highest is not None
    assert (found.highest.game_id, found.highest.reason, found.wins) == (None, "test", 0)
    assert ranks is not None
    assert [(one.rank, one.games, one.position) for one in ranks] == [(2, 1, 2), (1, 1, 3)]
    (row,) = view.overview(ALL, "2020-01-01", ["ben"]).rows
    assert (row.change, row.rank_change, row.last_played) == (100, 1, datetime(2020, 1, 1, 12, tzinfo=UTC))
    assert view.profile(ALL, "cleo").last_game is None
    assert view.overview(ALL, players=["cleo"]).rows[0].last_played is None


def test_rank_is_lost_where_more_games_are_needed(ledger_url: str) -> None:
    """Given a later version that needs two games, who has one loses the rank with the first game that it scores."""
    text = find_shipped_text("club-catan-elo")
    later = ruleset(text)
    later["data"] |= {
        "version": "9",
        "effective_from": "2020-01-10",
        "params": {**later["data"]["params"], "min_games": 2},
    }
    view = asked(
        ledger_url,
        later,
        club_game("g-1", "anna ben", 1),
        club_game("g-2", "ben cleo", 11),
        club_game("g-3", "anna dora", 12),
    )
    rows = view.ranks(ALL, "anna").rows
    assert rows is not None
    assert [(one.rank, one.games) for one in rows] == [(1, 1), (None, 1), (1, 2)]
    ben = view.overview(ALL, "2020-01-02", ["dora", "ben"]).rows[0]
    assert (ben.player, ben.rank_change) == ("ben", 0)


def test_ladder_without_games_has_nothing_to_say(ledger_url: str) -> None:
    """Given a ladder that nobody is on, somebody who is known has no standing and no ranks there."""
    view, ladder = asked(ledger_url, club_game("g-1", "anna ben")), "club-catan-elo/5-6"
    found, told = view.profile(ladder, "anna"), view.overview(ladder)
    assert (found.standing, found.ranked, found.players, found.course, found.opponents) == (None, 0, 0, (), ())
    assert (found.highest, found.first_game, found.longest_wins) == (None, None, None)
    assert (view.ranks(ladder, "anna").rows, told.rows, told.since) == ((), (), None)


@pytest.mark.parametrize(
    "ask",
    [
        lambda view, *about: view.profile(*about),
        lambda view, *about: view.ranks(*about),
        lambda view, ladder, player: view.overview(ladder, players=[player]),
    ],
    ids=["profile", "ranks", "overview"],
)
def test_unknown_players_and_ladders_are_refused(ledger_url: str, ask: Callable[..., object]) -> None:
    """Given a player whom no event names, or a ladder of no ruleset, the questions are refused."""
    view = asked(ledger_url, club_game("g-1", "anna ben"))
    with pytest.raises(rl.Unknown) as unknown:
        ask(view, ALL, "anne")
    assert unknown.value.reason == "player-unknown"
    with pytest.raises(rl.BadArgument):
        ask(view, "no-such/all", "anna")
    with pytest.raises(rl.BadArgument) as wrong:
        view.overview(ALL, since="yesterday")
    assert wrong.value.argument == "since"


def test_games_without_places_have_no_streaks(ledger_url: str) -> None:
    """Given a battle, which has no places, nobody won it or did not, and opponents are only counted."""
    fill(ledger_url, [ruleset(find_shipped_text("youplay-bluemax")), battle("anna 1 0 2 60", "ben 1 1", league="L1")])
    with rl.open(ledger_url) as ledger:
        found = ledger.at().profile("youplay-bluemax/L1", "anna")
    assert (found.wins, found.longest_wins, found.current_without_win, found.places) == (0, None, None, ())
    assert [*found.opponents] == [rl.Opponent("ben", 1, 0, 0, 0)]


def month(score: str, *places: str) -> list[dict[str, Any]]:
    """The ruleset of a monthly list by this score, and a game on each of the first days of January 2020."""
    published = ruleset(find_shipped_text("catan-monthly"))
    published["data"]["params"] |= {"min_games": 1, "score": score}
    labels = {"game": "catan", "city": "7", "group": "basic"}
    return [published, *(club_game(f"m-{day}", seats, day, **labels) for day, seats in enumerate(places, 1))]


def test_list_of_sums_is_ranked_step_by_step(ledger_url: str) -> None:
    """Given a monthly list of sums, ranks are those after every game, also after two on one day."""
    first, *games = month("sum", "anna ben", "ben cleo anna", "anna cleo", "anna cleo")
    games[1]["occurred_at"] = games[0]["occurred_at"]
    ladder = "catan-monthly/7/basic/2020-01"
    found = asked(ledger_url, first, *games).ranks(ladder, "anna")
    assert found.rows is not None
    with rl.open(ledger_url) as ledger:
        then = [ledger.at(known_at=position).standings(ladder, ["anna"]).rows[0].rank for position in range(3, 7)]
    # the third game takes anna level with ben, the fourth past him
    assert then == [1, 2, 1, 1]
    assert (found.every, [(one.rank, one.position) for one in found.rows]) == ("step", [(1, 3), (2, 4), (1, 5)])


def test_ranks_say_how_often_they_were_looked_up(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a list of means, ranks are those at the ends of days; if these are too many, of months; if a ladder is too
    long, there are none."""
    games = month("mean", "anna ben", "ben anna", "ben anna cleo")
    view, ladder = asked(ledger_url, club_game("g-0", "anna ben"), *games), "catan-monthly/7/basic/2020-01"
    found = view.ranks(ladder, "ben")
    assert found.rows is not None
    assert (found.every, [(one.rank, one.games, one.occurred_at.day) for one in found.rows]) == (
        "day", [(2, 1, 1), (1, 2, 2)]
    )  # fmt: skip
    monkeypatch.setattr("ratings_ledger.projections.queries.history.ENDS_MAX", 1)
    found = view.ranks(ladder, "ben")
    assert found.rows is not None
    assert (found.every, [(one.rank, one.games) for one in found.rows]) == ("month", [(1, 3)])
    monkeypatch.setattr("ratings_ledger.projections.queries.history.STEPS_MAX", 1)
    assert [view.ranks(name, "anna").rows for name in (ladder, ALL)] == [None, None]


def test_people_change_with_corrections_of_their_games(ledger_url: str) -> None:
    """A void is the last event about those who were in the game, and about nobody else."""
    games = [club_game("g-1", "anna ben", 1), club_game("g-2", "cleo dora", 2), club_game("g-3", "anna cleo", 3)]
    void = build_event("game.voided", game_id="g-1", reason="it was not played")
    before = asked(ledger_url, *games).last_positions_of_people()
    assert enter(ledger_url, [void]).appended == 1
    after = rl.open(ledger_url).at().last_positions_of_people()
    changed = {player for player, position in after.items() if position != before[player]}
    assert changed == {"anna", "ben"}
    assert after["anna"] == after["ben"] > max(before.values())
