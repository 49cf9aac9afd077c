"""Profiles, ranks over time and overviews of random histories agree with a naive oracle at every step."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders import build_event
from histories import build_adjustment, build_club_game, build_ruleset_event, draw_games, enter, fill
from kind_games import build_battle
from ledgers import create_ledger
from oracle.log import list_named_players
from oracle.profiles import Course, Profile, Step, Streak
from oracle.questions import Question, Row
from oracle.rulesets import get_ruleset_id, list_versions
from oracle.times import find_first_instant, find_last_instant
from own_rules import SHIPPED, find_shipped_text
from paths import collect_whole_columns, count_work, set_paths
from thresholds import set_thresholds
from time_histories import ENDS, LADDERS, draw_history

import ratings_ledger as rl

ALL = "club-catan-elo/all"
DISTINCT_LADDERS = [*dict.fromkeys(LADDERS)]
UNBOUNDED_LADDERS = DISTINCT_LADDERS[:3]
LAST_STEPS = 3


@pytest.fixture
def short_last_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit overviews to fewer points than players have."""
    set_thresholds(monkeypatch, last_steps=LAST_STEPS)


@pytest.fixture
def cached_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache and continue the trace of even the shortest ladder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, traced_games=1, games_per_replayed_game=0)


def to_oracle_row(standing: rl.Standing | None) -> Row | None:
    """Return a row in the form of the oracle."""
    if standing is None:
        return None
    gold, places = (None if value is rl.ABSENT else value for value in (standing.gold, standing.places))
    return Row(standing.rank, standing.player, standing.points, standing.games, standing.qualified, gold, places)  # type: ignore[arg-type]


def to_oracle_streak(streak: rl.Streak | None) -> Streak:
    """Return a streak in the form of the oracle."""
    return None if streak is None else (streak.games, streak.first_game_id, streak.last_game_id)


def to_oracle_profile(profile: rl.Profile) -> Profile:
    """Return a profile in the form of the oracle."""
    return Profile(
        to_oracle_row(profile.standing), profile.ranked, profile.players,
        [Step(entry.game_id, entry.place, entry.after) for entry in profile.course], profile.wins,
        (to_oracle_streak(profile.longest_wins), to_oracle_streak(profile.current_wins)),
        (to_oracle_streak(profile.longest_without_win), to_oracle_streak(profile.current_without_win)),
        [(entry.place, entry.games) for entry in profile.places],
        [(entry.player, entry.games, entry.better, entry.equal, entry.worse) for entry in profile.opponents],
    )  # fmt: skip


def check_ladder(view: rl.View, course: Course, players: list[str], chance: Random, cases: Counter[str]) -> None:
    """Compare every answer about a ladder with the oracle."""
    ladder, current = course.question.ladder, course.view.current
    for player in players:
        profile, expected = view.profile(ladder, player), course.compute_profile(current(player))
        assert to_oracle_profile(profile) == expected, (course.question, player)
        values = [step.after for step in expected.course]
        for extreme, value in (
            (profile.highest, max(values, default=None)),
            (profile.lowest, min(values, default=None)),
        ):
            assert extreme == (None if value is None else profile.course[values.index(value)])
        games = [entry for entry in profile.course if entry.game_id]
        assert (profile.first_game, profile.last_game) == ((games[0], games[-1]) if games else (None, None))
        cases.update({"wins in a row": (profile.longest_wins or rl.Streak(0, *["", datetime.min] * 2)).games > 1})
        cases.update(
            {
                "shared place": any(entry.equal for entry in profile.opponents),
                "not on the ladder": profile.standing is None,
            }
        )
        cases["another id"] += current(player) != player
        ranks = view.ranks(ladder, player)
        assert ranks.rows is not None
        assert ranks.every == course.ranks[0]
        rank_steps = [
            (entry.occurred_at, find_game_id(course, entry.position), entry.rank, entry.games) for entry in ranks.rows
        ]
        assert rank_steps == course.list_rank_changes(current(player)), (course.question, player)
        cases[f"ranks by {ranks.every}"] += len(rank_steps) > 1
    check_overview(view, course, chance, cases)


def find_game_id(course: Course, position: int | None) -> str | None:
    """Return the game of the event at a position, or None if there is none."""
    game_id: str | None = None if position is None else course.log[position - 1]["data"].get("game_id")
    return game_id


def check_overview(view: rl.View, course: Course, chance: Random, cases: Counter[str]) -> None:
    """Compare an overview with the oracle, and with the standings of the same ladder."""
    ladder, since, limit = course.question.ladder, chance.choice([None, None, *ENDS]), chance.choice([None, 1, 3])
    overview, expected = view.overview(ladder, since, limit=limit), course.compute_overview(since, LAST_STEPS)[:limit]
    rows = [
        (to_oracle_row(row), row.change, row.rank_change, row.last_played, [*row.last_points]) for row in overview.rows
    ]  # fmt: skip
    assert rows == expected, (course.question, since)
    assert overview.since == (None if (start := since or course.find_since()) is None else find_last_instant(start))
    standings_json = view.standings(ladder, limit=limit).model_dump()
    overview_json = overview.model_dump()
    assert {name: overview_json[name] for name in standings_json if name != "rows"} == {
        name: value for name, value in standings_json.items() if name != "rows"
    }
    assert [
        {name: row[name] for name in ("rank", "player", "points", "games", "qualified")}
        for row in overview_json["rows"]
    ] == [
        {name: row[name] for name in ("rank", "player", "points", "games", "qualified")}
        for row in standings_json["rows"]
    ]
    cases.update({"climbed": any((row.rank_change or 0) > 0 for row in overview.rows),
                "has not moved": any(row.change == 0 for row in overview.rows),
                "was not on the ladder": any(row.change is None for row in overview.rows)})  # fmt: skip
    check_pages(view, course, cases)


def check_pages(view: rl.View, course: Course, cases: Counter[str]) -> None:
    """Compare a later page of an overview, and an overview of active players, with the oracle."""
    chance = Random(repr(course.question))
    day, after = chance.choice([None, "2010-03-01", "2010-03-14", "2010-03-28"]), chance.randrange(3)
    page = view.overview(course.question.ladder, after=after, active_since=day, limit=2)
    all_rows = course.compute_overview(None, LAST_STEPS)
    expected = [row for row in all_rows if day is None or (row[3] is not None and row[3] >= find_first_instant(day))]
    rows = [(to_oracle_row(row), row.last_played) for row in page.rows]
    assert rows == [(row[0], row[3]) for row in expected[after : after + 2]], (course.question, day)
    assert (page.players, page.digest) == (len(expected), view.overview(course.question.ladder).digest)
    cases["left out as inactive"] += 0 < len(expected) < len(all_rows)


def check_at_coordinates(
    url: str, log: list[dict[str, Any]], ladders: list[str], chance: Random, cases: Counter[str]
) -> None:
    """Compare some ladders with the oracle: now, as of some time, and as known at some position."""
    with rl.open(url) as ledger:
        for known_at, as_of in (
            (len(log), None),
            (len(log), chance.choice(ENDS)),
            (chance.randint(30, len(log)), None),
        ):
            known = log[:known_at]
            players = sorted(set().union(*map(list_named_players, known)))
            for ladder in ladders:
                if not list_versions(known, get_ruleset_id(ladder)):
                    continue
                course = Course(log, Question(ladder, known_at, as_of))
                view = ledger.at(as_of=as_of, known_at=known_at)
                check_ladder(view, course, chance.sample(players, min(4, len(players))), chance, cases)


REQUIRED_CASES = {"wins in a row", "shared place", "not on the ladder", "another id", "ranks by step", "ranks by month",
                  "ranks by day", "climbed", "has not moved", "was not on the ladder",
                  "left out as inactive"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("short_last_points")
def test_answers_agree_with_oracle(tmp_path: Path, at_length: bool) -> None:
    """In random histories with ties, voids, renames and changing rules, every answer agrees with the oracle."""
    cases: Counter[str] = Counter()
    for seed in range(60) if at_length else [1]:
        url, log = str(tmp_path / f"{seed}.db"), draw_history(seed, 100)
        create_ledger(url)
        enter(url, log)
        check_at_coordinates(url, log, DISTINCT_LADDERS, Random(seed), cases)
    assert {name for name in REQUIRED_CASES if not cases[name]} == set()


@pytest.mark.slow
@pytest.mark.usefixtures("short_last_points", "cached_traces")
def test_answers_from_cached_traces_agree_with_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """Cached traces that continue as a history grows answer like the oracle, interpreted and compiled."""
    counts = count_work(monkeypatch)
    for seed in range(100, 140 if at_length else 102):
        url, log, chance = str(tmp_path / f"{seed}.db"), draw_history(seed, 90), Random(seed)
        create_ledger(url)
        set_paths(monkeypatch, scanned=False, compiled=seed % 2 == 1)
        for first, last in pairwise((0, *range(60, 91 if at_length else 76, 5))):
            enter(url, log[first:last])
            check_at_coordinates(url, log[:last], UNBOUNDED_LADDERS, chance, Counter())
    assert counts["after the end"] + counts["from within"] > (10 if at_length else 5)
    assert counts["unchanged"] > 0


@pytest.mark.usefixtures("cached_traces")
def test_profile_reads_few_whole_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cached trace, a profile reads no whole column of the trace or the facts except all players' points."""
    url, events = str(tmp_path / "ratings.db"), draw_games(3, 60, ["anna", "ben", "cleo", "dora"])
    create_ledger(url)
    set_paths(monkeypatch, scanned=False, compiled=False)
    expected = open_club_view(url, *events).profile(ALL, "anna").model_dump()
    whole_columns = collect_whole_columns(monkeypatch)
    with rl.open(url) as ledger:
        assert ledger.at().profile(ALL, "anna").model_dump() == expected
    assert "points" in whole_columns
    assert (
        whole_columns & {"before", "slot", "player", "row", "offset", "version", "mint", "place", "start", "count"}
        == set()
    )


def open_club_view(url: str, *events: dict[str, Any]) -> rl.View:
    """Return a view of a ledger with the club's ruleset and some events."""
    fill(url, [build_ruleset_event(), *events]).engine.dispose()
    return rl.open(url).at()


def test_shared_first_place_ends_streak_of_wins(ledger_url: str) -> None:
    """A shared first place is no win and ends the streak of wins, but no opponent was better in it."""
    games = ("anna ben", "anna cleo", "anna=ben cleo", "anna ben", "ben anna")
    view = open_club_view(
        ledger_url, *(build_club_game(f"g-{day}", players, day) for day, players in enumerate(games, 1))
    )
    profile = view.profile(ALL, "anna")
    assert (profile.wins, to_oracle_streak(profile.longest_wins), to_oracle_streak(profile.current_wins)) == (
        3,
        (2, "g-1", "g-2"),
        None,
    )
    assert (to_oracle_streak(profile.longest_without_win), to_oracle_streak(profile.current_without_win)) == (
        (1, "g-3", "g-3"),
        (1, "g-5", "g-5"),
    )
    assert [(place.place, place.games) for place in profile.places] == [(1, 4), (2, 1)]
    assert [*profile.opponents] == [rl.Opponent("ben", 4, 2, 1, 1), rl.Opponent("cleo", 2, 2, 0, 0)]
    assert [step and step.game_id for step in (profile.first_game, profile.last_game, profile.highest)] == [
        "g-1",
        "g-5",
        "g-4",
    ]


def test_partners_win_together_and_are_not_opponents(ledger_url: str) -> None:
    """Partners who share a first place have won; their only opponents are the players of the other side."""
    sides = [("anna", 1, "a"), ("ben", 1, "a"), ("cleo", 2, "b"), ("dora", 2, "b")]
    participants = [{"player": name, "place": place, "team": team} for name, place, team in sides]
    game = build_event("game.recorded", game_id="g-1", game="doubles", participants=participants)
    ruleset = (SHIPPED / "weng-lin-1.toml").read_text().replace("GAME", "doubles").replace("ZONE", "UTC")
    profile = open_club_view(ledger_url, build_ruleset_event(ruleset), game).profile("weng-lin-doubles/all", "anna")
    assert (profile.wins, [*profile.opponents]) == (
        1,
        [rl.Opponent("cleo", 1, 1, 0, 0), rl.Opponent("dora", 1, 1, 0, 0)],
    )


def test_adjustment_is_a_step_without_a_game(ledger_url: str) -> None:
    """An adjustment can set a player's highest points and change the rank, but it is not a game."""
    view = open_club_view(
        ledger_url,
        build_club_game("g-1", "anna ben", 1),
        build_adjustment(ALL, "ben", "100", 2),
        build_adjustment(ALL, "cleo", "0", 3),
    )
    profile, ranks = view.profile(ALL, "ben"), view.ranks(ALL, "ben").rows
    assert profile.highest is not None
    assert (profile.highest.game_id, profile.highest.reason, profile.wins) == (None, "test", 0)
    assert ranks is not None
    assert [(rank.rank, rank.games, rank.position) for rank in ranks] == [(2, 1, 2), (1, 1, 3)]
    (row,) = view.overview(ALL, "2020-01-01", ["ben"]).rows
    assert (row.change, row.rank_change, row.last_played) == (100, 1, datetime(2020, 1, 1, 12, tzinfo=UTC))
    assert view.profile(ALL, "cleo").last_game is None
    assert view.overview(ALL, players=["cleo"]).rows[0].last_played is None


def test_player_below_later_game_minimum_loses_rank(ledger_url: str) -> None:
    """Under a later version that needs two games, a player with one game loses the rank at the version's first game."""
    text = find_shipped_text("club-catan-elo")
    later = build_ruleset_event(text)
    later["data"] |= {
        "version": "9",
        "effective_from": "2020-01-10",
        "params": {**later["data"]["params"], "min_games": 2},
    }
    view = open_club_view(
        ledger_url,
        later,
        build_club_game("g-1", "anna ben", 1),
        build_club_game("g-2", "ben cleo", 11),
        build_club_game("g-3", "anna dora", 12),
    )
    rows = view.ranks(ALL, "anna").rows
    assert rows is not None
    assert [(rank.rank, rank.games) for rank in rows] == [(1, 1), (None, 1), (1, 2)]
    ben = view.overview(ALL, "2020-01-02", ["dora", "ben"]).rows[0]
    assert (ben.player, ben.rank_change) == ("ben", 0)


def test_ladder_without_games_has_empty_answers(ledger_url: str) -> None:
    """On a ladder without games, a known player has no standing, no course and no ranks."""
    view, ladder = open_club_view(ledger_url, build_club_game("g-1", "anna ben")), "club-catan-elo/5-6"
    profile, overview = view.profile(ladder, "anna"), view.overview(ladder)
    assert (profile.standing, profile.ranked, profile.players, profile.course, profile.opponents) == (
        None,
        0,
        0,
        (),
        (),
    )
    assert (profile.highest, profile.first_game, profile.longest_wins) == (None, None, None)
    assert (view.ranks(ladder, "anna").rows, overview.rows, overview.since) == ((), (), None)


@pytest.mark.parametrize(
    "query",
    [
        lambda view, *about: view.profile(*about),
        lambda view, *about: view.ranks(*about),
        lambda view, ladder, player: view.overview(ladder, players=[player]),
    ],
    ids=["profile", "ranks", "overview"],
)
def test_unknown_players_and_ladders_are_rejected(ledger_url: str, query: Callable[..., object]) -> None:
    """A question about an unrecorded player or a ladder without ruleset raises an error, and so does a bad date."""
    view = open_club_view(ledger_url, build_club_game("g-1", "anna ben"))
    with pytest.raises(rl.Unknown) as unknown:
        query(view, ALL, "anne")
    assert unknown.value.reason == "player-unknown"
    with pytest.raises(rl.BadArgument):
        query(view, "no-such/all", "anna")
    with pytest.raises(rl.BadArgument) as bad_argument:
        view.overview(ALL, since="yesterday")
    assert bad_argument.value.argument == "since"


def test_battle_without_places_has_no_wins(ledger_url: str) -> None:
    """A battle has no places, so it has no wins and no streaks, and opponents have only a number of games."""
    fill(
        ledger_url,
        [
            build_ruleset_event(find_shipped_text("youplay-bluemax")),
            build_battle("anna 1 0 2 60", "ben 1 1", league="L1"),
        ],
    )
    with rl.open(ledger_url) as ledger:
        profile = ledger.at().profile("youplay-bluemax/L1", "anna")
    assert (profile.wins, profile.longest_wins, profile.current_without_win, profile.places) == (0, None, None, ())
    assert [*profile.opponents] == [rl.Opponent("ben", 1, 0, 0, 0)]


def build_month(score: str, *games: str) -> list[dict[str, Any]]:
    """Return the ruleset of a monthly list with this score, and a game on each of the first days of January 2020."""
    ruleset = build_ruleset_event(find_shipped_text("catan-monthly"))
    ruleset["data"]["params"] |= {"min_games": 1, "score": score}
    labels = {"game": "catan", "city": "7", "group": "basic"}
    return [ruleset, *(build_club_game(f"m-{day}", seats, day, **labels) for day, seats in enumerate(games, 1))]


def test_monthly_sums_are_ranked_after_every_game(ledger_url: str) -> None:
    """A monthly list of sums has ranks after every game, also after each of two games at the same time."""
    first, *games = build_month("sum", "anna ben", "ben cleo anna", "anna cleo", "anna cleo")
    games[1]["occurred_at"] = games[0]["occurred_at"]
    ladder = "catan-monthly/7/basic/2020-01"
    ranks = open_club_view(ledger_url, first, *games).ranks(ladder, "anna")
    assert ranks.rows is not None
    with rl.open(ledger_url) as ledger:
        ranks_by_position = [
            ledger.at(known_at=position).standings(ladder, ["anna"]).rows[0].rank for position in range(3, 7)
        ]
    # the third game takes anna level with ben, the fourth past him
    assert ranks_by_position == [1, 2, 1, 1]
    assert (ranks.every, [(rank.rank, rank.position) for rank in ranks.rows]) == ("step", [(1, 3), (2, 4), (1, 5)])


def test_ranks_of_means_are_sampled(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of means has ranks at the end of each day, or of each month if there are too many days; a ladder that is
    too long has none.
    """
    games = build_month("mean", "anna ben", "ben anna", "ben anna cleo")
    view, ladder = (
        open_club_view(ledger_url, build_club_game("g-0", "anna ben"), *games),
        "catan-monthly/7/basic/2020-01",
    )
    ranks = view.ranks(ladder, "ben")
    assert ranks.rows is not None
    assert (ranks.every, [(rank.rank, rank.games, rank.occurred_at.day) for rank in ranks.rows]) == (
        "day", [(2, 1, 1), (1, 2, 2)]
    )  # fmt: skip
    set_thresholds(monkeypatch, history_ends=1)
    ranks = view.ranks(ladder, "ben")
    assert ranks.rows is not None
    assert (ranks.every, [(rank.rank, rank.games) for rank in ranks.rows]) == ("month", [(1, 3)])
    set_thresholds(monkeypatch, history_steps=1)
    assert [view.ranks(name, "anna").rows for name in (ladder, ALL)] == [None, None]


def test_void_is_last_event_of_the_players_of_its_game(ledger_url: str) -> None:
    """A void of a game is the last event about its players, and about no other player."""
    games = [
        build_club_game("g-1", "anna ben", 1),
        build_club_game("g-2", "cleo dora", 2),
        build_club_game("g-3", "anna cleo", 3),
    ]
    void = build_event("game.voided", game_id="g-1", reason="it was not played")
    before = open_club_view(ledger_url, *games).last_positions_of_people()
    assert enter(ledger_url, [void]).appended == 1
    after = rl.open(ledger_url).at().last_positions_of_people()
    changed = {player for player, position in after.items() if position != before[player]}
    assert changed == {"anna", "ben"}
    assert after["anna"] == after["ben"] > max(before.values())
