"""Points that carry over: a season begins with a player's points at the end of that player's last season."""

from pathlib import Path
from typing import Any

import pytest
from histories import build_ruleset_event, fill, load_ranking
from ledgers import create_ledger
from own_rules import find_ruleset_problems, find_shipped_text, substitute_rule
from state_rules import BY_GAME, SCALE, OwnKParams

import ratings_ledger
from ratings_ledger.projections.contract import Numbers, StateValues

LEAGUE = find_shipped_text("b5-league")
CARRYING = LEAGUE.replace("carry_over = false", "carry_over = true")


def build_b5_game(game_id: str, season: str, month: int, players: str) -> dict[str, Any]:
    """Return a game of three players in order of their places; the second player gets the victory point."""
    participants = [
        {"player": player, "power": 20 - index, "influence": 5, "vp": int(index == 1)}
        for index, player in enumerate(players)
    ]
    data = {"game_id": game_id, "game": "babylon5", "kind": "b5", "season": season, "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2010-{month:02d}-01T12:00:00Z", "data": data}


GAMES = [
    build_b5_game("one", "2010-1", 2, "abc"),
    build_b5_game("two", "2010-2", 6, "abd"),
    build_b5_game("three", "2010-3", 10, "acd"),
]


def load_season(url: str, rules: str, season: str, *later_events: dict[str, Any]) -> Any:
    """Return the standings of a season after these games."""
    return load_ranking(fill(url, [build_ruleset_event(rules), *GAMES, *later_events]), f"b5-league/{season}")


@pytest.mark.parametrize(
    ("season", "points", "start_total"),
    [
        ("2010-1", {"a": 105, "b": 100, "c": 96}, 300),
        # player a begins with 105 points and antes 10
        ("2010-2", {"a": 110, "b": 100, "d": 96}, 305),
        # player c did not play in the second season, and begins with the points after the first
        ("2010-3", {"a": 113, "c": 96, "d": 92}, 302),
    ],
)
def test_season_starts_with_carried_points(
    ledger_url: str, season: str, points: dict[str, int], start_total: int
) -> None:
    """With carry-over, players start a season with the points of their last one."""
    table = load_season(ledger_url, CARRYING, season)

    assert {row.player: row.points for row in table.rows} == points
    assert table.start_total == start_total


def test_season_starts_with_initial_points_without_carry_over(ledger_url: str) -> None:
    """Without carry-over, players start each season with the initial points."""
    table = load_season(ledger_url, LEAGUE, "2010-3")

    assert {row.player: row.points for row in table.rows} == {"a": 105, "c": 100, "d": 96}
    assert table.start_total == 300


def test_late_game_moves_all_later_seasons(ledger_url: str) -> None:
    """With carry-over, a late game of the first season changes the points of the later seasons."""
    table = load_season(ledger_url, CARRYING, "2010-3", build_b5_game("late", "2010-1", 3, "cba"))

    # the first season now ends with a=100, b=99, c=101; the second with a=104, b=99, d=95
    assert {row.player: row.points for row in table.rows} == {"a": 108, "c": 100, "d": 91}


def test_first_game_is_explained_with_carried_points(
    ledger_url: str,
) -> None:
    """The explanation of a season's first game has the carried points as the points before it."""
    fill(ledger_url, [build_ruleset_event(CARRYING), *GAMES])
    with ratings_ledger.open(ledger_url) as ledger:
        explanation = ledger.at().explain("b5-league/2010-2", "two")

    assert {player.player: player.before for player in explanation.players} == {"a": 105, "b": 100, "d": 100}


def test_adjusting_a_season_is_a_cause_in_the_next(ledger_url: str) -> None:
    """An adjustment in one season is the cause of a player's change in the next season."""
    adjusted = {"ladder": "b5-league/2010-1", "player": "a", "points": "7", "reason": "forgotten"}
    event = {"type": "points.adjusted", "occurred_at": "2010-02-02T12:00:00Z", "data": adjusted}
    fill(ledger_url, [build_ruleset_event(CARRYING), *GAMES, event])
    with ratings_ledger.open(ledger_url) as ledger:
        ends = (ledger.at(known_at=position) for position in (4, 5))
        attribution = ledger.attribute("b5-league/2010-2", "a", *ends)

    assert [(cause.cause, cause.position) for cause in attribution.causes] == [("adjustment", 5)]
    assert attribution.change == attribution.causes[0].amount > 0


def test_carry_over_without_seasons_is_rejected() -> None:
    """A ruleset that carries points over without seasons is rejected."""
    problems = find_ruleset_problems(CARRYING.replace('by = ["season"]', 'by = ["league"]'))

    assert [problem.key for problem in problems] == ["params.carry_over"]


class SeasonalParams(OwnKParams):
    """The parameters of a rule whose seasons have dates."""

    season_months: list[int] = []


def test_games_outside_their_season_do_not_count_under_any_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game dated outside its season does not count, even under a rule without a check of its own."""
    assert BY_GAME.check is None
    substitute_rule(monkeypatch, BY_GAME._replace(name="seasonal", params=SeasonalParams))
    rules = LEAGUE_OF_CHESS | {"rule": "seasonal/1", "params": {"season_months": [1, 7]}}
    url = create_ledger(str(tmp_path / "ratings.db"))
    ledger = fill(
        url,
        [
            {"type": "ruleset.published", "occurred_at": "2000-01-01T00:00:00Z", "data": rules},
            *(build_chess_game(f"g{month}", month, "2010-1") for month in (6, 7)),
        ],
    )
    table = load_ranking(ledger, "chess-league/2010-1")
    assert (table.games, [row.games for row in table.rows]) == (1, [1, 1])
    with ratings_ledger.open(url) as opened:
        reasons = [opened.at().explain("chess-league/2010-1", game_id).why_not for game_id in ("g6", "g7")]
    assert reasons[0] is None
    assert "2010-07-01 is not in the season 2010-1" in reasons[1]


def test_states_carry_over_between_versions_with_different_columns(tmp_path: Path) -> None:
    """Ratings carry over from season to season under Glicko-1, then Glicko-2 with a third number, then Glicko-1."""
    versions = [("1", "1900-01-01", "glicko-1/1"), ("2", "2010-04-01", "glicko-2/1"), ("3", "2010-07-01", "glicko-1/1")]
    rules = [
        LEAGUE_OF_CHESS
        | {"version": version, "effective_from": since, "rule": rule, "params": {"start": 1500, "carry_over": True}}
        for version, since, rule in versions
    ]
    seasons = {f"2010-{number}": month for number, month in enumerate((1, 2, 4, 5, 7, 8), 1)}
    url = create_ledger(str(tmp_path / "ratings.db"))
    fill(
        url,
        [
            *({"type": "ruleset.published", "occurred_at": "2000-01-01T00:00:00Z", "data": data} for data in rules),
            *(build_chess_game(f"g{month}", month, season) for season, month in seasons.items()),
        ],
    )
    with ratings_ledger.open(url) as ledger:
        snapshot = ledger.at()
        games = [snapshot.explain(f"chess-league/{season}", f"g{month}").players for season, month in seasons.items()]

    starts = [{row.player: row.before for row in rows} for rows in games]
    ends = [{row.player: row.after for row in rows} for rows in games]
    assert starts == [{"anna": 1500, "ben": 1500}, *ends[:-1]]
    assert ends[0]["anna"] > 1500


LEAGUE_OF_CHESS: dict[str, Any] = {
    "id": "chess-league",
    "version": "1",
    "effective_from": "1900-01-01",
    "time_zone": "UTC",
    "scope": {"game": ["chess"]},
    "partition": {"by": ["season"]},
}


def build_chess_game(game_id: str, month: int, season: str) -> dict[str, Any]:
    """Return a game of chess that anna wins against ben on the first of a month."""
    participants = [{"player": player, "place": place} for place, player in enumerate(("anna", "ben"), 1)]
    data = {"game_id": game_id, "game": "chess", "season": season, "participants": participants}
    return {"type": "game.recorded", "occurred_at": f"2010-{month:02d}-01T12:00:00Z", "data": data}


@pytest.mark.parametrize("is_seeded", [False, True], ids=["new", "seeded"])
def test_version_without_carry_over_knows_no_earlier_season(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_seeded: bool
) -> None:
    """Under a version that does not carry over, a season after one that did equals the season on its own."""

    def let_k_grow(state: StateValues, elapsed: int, constants: Numbers) -> StateValues:
        """Return a state whose K is larger by a point for each day, so that the days since the last game count."""
        return (state[0], state[1] + elapsed * SCALE)

    substitute_rule(monkeypatch, BY_GAME._replace(name="seasonal", params=SeasonalParams, age=let_k_grow))
    ladder = "chess-league/2010-2"
    state = {"rating": "1600", "k": "20"}
    seed = {"ladder": ladder, "player": "anna", "state": state, "reason": "of another club", "games": 3}
    results = []
    for file, since in (("both.db", "2010-04-01"), ("alone.db", "1900-01-01")):
        versions = [("1", "1900-01-01", True), ("2", since, False)][since == "1900-01-01" :]
        rules = [
            LEAGUE_OF_CHESS
            | {"version": version, "effective_from": day, "rule": "seasonal/1", "params": {"carry_over": carries}}
            for version, day, carries in versions
        ]
        url = create_ledger(str(tmp_path / file))
        fill(
            url,
            [
                *({"type": "ruleset.published", "occurred_at": "2000-01-01T00:00:00Z", "data": data} for data in rules),
                *(
                    [{"type": "player.seeded", "occurred_at": "2010-04-02T00:00:00Z", "data": seed}]
                    if is_seeded
                    else []
                ),
                build_chess_game("g1", 1, "2010-1"),
                build_chess_game("g5", 5, "2010-2"),
                build_chess_game("g6", 6, "2010-2"),
            ],
        )
        with ratings_ledger.open(url) as ledger:
            snapshot = ledger.at()
            rows = [(row.player, row.points, row.games, row.state) for row in snapshot.standings(ladder).rows]
            explained = [snapshot.explain(ladder, game_id).players for game_id in ("g5", "g6")]
            results.append((rows, [[(p.player, p.before, p.after, p.state) for p in players] for players in explained]))
    assert results[0] == results[1]
    assert (results[0][1][0][0][1] == 1600) == is_seeded


# K is 40 in a player's first three games, and 10 from then on
K_STEPS = [{"below": 3, "k": 40}, {"k": 10}]
ADJUSTMENT = {"ladder": "chess-league/2010-2", "player": "anna", "points": "5", "reason": "a forgotten bonus"}


@pytest.mark.parametrize("is_adjusted", [False, True], ids=["game first", "adjustment first"])
@pytest.mark.parametrize("carries", [(True, False), (False, True)], ids=["until June", "from June"])
def test_explained_changes_are_those_of_the_ladder_if_only_one_version_carries_over(
    tmp_path: Path, carries: tuple[bool, bool], is_adjusted: bool
) -> None:
    """The version under which a player enters a season decides what carries over, also for the player's later games."""
    rules = [
        LEAGUE_OF_CHESS
        | {"version": version, "effective_from": since, "rule": "pairwise-elo/2"}
        | {"params": {"k": K_STEPS, "carry_over": carried, "provisional_games": 3}}
        for version, since, carried in zip("12", ("1900-01-01", "2010-06-01"), carries, strict=True)
    ]
    adjustment = {"type": "points.adjusted", "occurred_at": "2010-04-20T00:00:00Z", "data": ADJUSTMENT}
    url = create_ledger(str(tmp_path / "ratings.db"))
    fill(
        url,
        [
            *({"type": "ruleset.published", "occurred_at": "2000-01-01T00:00:00Z", "data": data} for data in rules),
            *(build_chess_game(f"g{month}", month, "2010-1") for month in (1, 2, 3)),
            *([adjustment] if is_adjusted else []),
            *(build_chess_game(f"g{month}", month, "2010-2") for month in (5, 7, 8)),
        ],
    )
    with ratings_ledger.open(url) as ledger:
        snapshot = ledger.at()
        for index, player in enumerate(("anna", "ben")):
            changes = {row.game_id: row.change for row in snapshot.history("chess-league/2010-2", player).rows}
            for game_id in ("g5", "g7", "g8"):
                explained = snapshot.explain("chess-league/2010-2", game_id).players[index]
                assert (explained.player, explained.change) == (player, changes[game_id])
        # with carried games K is 10, and without them 40
        first_change = snapshot.explain("chess-league/2010-2", "g5").players[0].change
        assert (first_change < 10) == carries[0]


def test_later_version_leaves_earlier_games_of_a_season_alone(tmp_path: Path) -> None:
    """At a date after a version with other numbers, a season's earlier games change points as they did before it."""
    rules = [
        LEAGUE_OF_CHESS
        | {"version": version, "effective_from": since, "rule": rule, "params": {"start": 1500, "carry_over": True}}
        for version, since, rule in (("1", "1900-01-01", "glicko-1/1"), ("2", "2010-06-01", "pairwise-elo/2"))
    ]
    url = create_ledger(str(tmp_path / "ratings.db"))
    fill(
        url,
        [
            *({"type": "ruleset.published", "occurred_at": "2000-01-01T00:00:00Z", "data": data} for data in rules),
            build_chess_game("g1", 1, "2010-1"),
            *(build_chess_game(f"g{month}", month, "2010-2") for month in (3, 7)),
        ],
    )
    with ratings_ledger.open(url) as ledger:
        views = [ledger.at(), ledger.at(as_of="2010-12-01"), ledger.at(as_of="2010-04-01")]
        changes = [view.explain("chess-league/2010-2", "g3").players[0].change for view in views]
        points = [view.standings("chess-league/2010-2").rows[0].points for view in views[:2]]
    assert changes == [changes[0]] * 3
    assert points[0] == points[1]
