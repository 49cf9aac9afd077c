"""Leagues: joining, the schedule, and rejections, in both stores."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from followers import start_follower
from interleaving import act_before_next
from own_rules import load_built_in_rule, substitute_rule

Ratings = Callable[..., Any]
PLAYERS = list("abcdefgh")
AT = ("--at", "2026-02-02T12:00Z")
LATER = ("--at", "2026-02-03T12:00Z")


def build_club_game(player: str, at: str, number: int, **members: Any) -> str:
    """Return a game that a player won against a guest as a line of JSON; `participant` has members of the player's."""
    participant = {"player": player, "place": 1, **members.pop("participant", {})}
    participants = [participant, {"player": "guest", "place": 2}]
    data = {"game_id": f"{player}-{at}-{number}", "game": "gonzaga", "participants": participants, **members}
    return json.dumps({"type": "game.recorded", "occurred_at": at, "data": data})


def build_five_games(player: str, at: str = "2026-01-05T20:00:00Z") -> list[str]:
    """Return five games, enough for a player to be active."""
    return [build_club_game(player, at, number) for number in range(5)]


def create_league_ledger(ratings: Ratings, url: str, *joined: str) -> None:
    """Create a ledger: a to h are active, and the `joined` are in the league L1, with three players per game."""
    assert ratings("init", db=url).exit_code == 0
    active = [line for player in PLAYERS for line in build_five_games(player)]
    assert ratings("import", "-", db=url, input="\n".join(active)).exit_code == 0
    created = ratings("league", "create", "L1", "--game", "cartagena", "--players-per-game", 3, *AT, db=url)
    assert created.exit_code == 0, created.stderr
    join_league(ratings, url, *joined)


pytestmark = pytest.mark.ledger(make=create_league_ledger)


@pytest.fixture
def scheduled_url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of the ledger when all have joined, so that the schedule is drawn."""
    return copy_ledger(create_league_ledger, *PLAYERS)


def join_league(ratings: Ratings, db: str, *players: str) -> list[dict[str, Any]]:
    """Let players join and return the scheduled games."""
    for player in players:
        result = ratings("league", "join", "L1", player, "--seed", "2026", *AT, db=db)
        assert result.exit_code == 0, result.stderr
    return list(show_league(ratings, db)["games"])


def show_league(ratings: Ratings, db: str) -> Any:
    """Return the league as JSON."""
    return json.loads(ratings("league", "show", "L1", "--format", "json", db=db).stdout)


def get_refusal(ratings: Ratings, db: str, *command: object, input: str | None = None) -> tuple[str, str]:  # noqa: A002
    """Run a command that must be refused and change nothing; return the code and the message."""
    before = ratings("status", "--format", "json", db=db).stdout
    result = ratings(*command, db=db, input=input)
    assert result.exit_code == 1, result.stdout
    assert ratings("status", "--format", "json", db=db).stdout == before
    code, _, message = result.stderr.partition(": ")
    return code, message


def build_league_game(game: dict[str, Any], *players: str, **members: Any) -> str:
    """Return a game of the league as a line of JSON, won by its first player."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players or game["seats"], 1)]
    data = {"game_id": game["game_id"], "game": "cartagena", "league": "L1", "participants": participants, **members}
    return json.dumps({"type": "game.recorded", "occurred_at": "2026-03-01T20:00:00Z", "data": data})


@pytest.mark.parametrize(
    ("games", "expected_message"),
    [
        ([], "'x' has finished 0 of 5 games in the last 90 days; 5 more are needed within 90 days"),
        (
            build_five_games("x", "2025-11-04T12:00:01Z")[:4],
            "'x' has finished 4 of 5 games in the last 90 days; 1 more is needed by 2026-02-02",
        ),
        (
            build_five_games("x")[:3],
            "'x' has finished 3 of 5 games in the last 90 days; 2 more are needed by 2026-04-05",
        ),
        (build_five_games("x", "2025-11-04T12:00:00Z"), "has finished 0 of 5 games"),
        (build_five_games("x", "2026-02-02T12:00:01Z"), "has finished 0 of 5 games"),
        (
            [*build_five_games("x")[:4], build_club_game("x", "2026-01-05T20:00:00Z", 9, aborted=True)],
            "has finished 4 of 5 games",
        ),
        (
            [
                *build_five_games("x")[:4],
                build_club_game("x", "2026-01-05T20:00:00Z", 9, participant={"status": "abandoned"}),
            ],
            "has finished 4 of 5",
        ),
    ],
    ids=["never", "about to be too old", "three", "too old", "later", "one ended by agreement", "one left"],
)
def test_inactive_player_cannot_join_league(games: list[str], expected_message: str, db: str, ratings: Ratings) -> None:
    """A player with too few finished games cannot join; the message says how many are missing and by when."""
    if games:
        assert ratings("import", "-", db=db, input="\n".join(games)).exit_code == 0

    code, message = get_refusal(ratings, db, "league", "join", "L1", "x", *AT)
    assert (code, expected_message in message) == ("not-active", True), message


def test_old_id_games_count_for_joining(db: str, ratings: Ratings) -> None:
    """Games under a former id and at both ends of the 90 days count for joining a league."""
    games = [
        *build_five_games("old", "2025-11-04T12:00:00.000001Z")[:3],
        *build_five_games("new", "2026-02-02T12:00:00Z")[:2],
    ]
    assert ratings("import", "-", db=db, input="\n".join(games)).exit_code == 0
    assert ratings("player", "rename", "old", "new", db=db).exit_code == 0

    assert ratings("league", "join", "L1", "new", *AT, db=db).exit_code == 0


@pytest.mark.slow_cases
def test_full_league_accepts_no_player(db: str, ratings: Ratings) -> None:
    """A full league has one schedule, and no player can join it twice or as the ninth."""
    join_league(ratings, db, *"abcd")
    assert get_refusal(ratings, db, "league", "join", "L1", "a", *LATER)[0] == "league-joined"
    games = join_league(ratings, db, *"efgh")

    assert (len(games), show_league(ratings, db)["seed"]) == (24, "2026")
    assert get_refusal(ratings, db, "league", "join", "L1", "a", *LATER)[0] == "league-joined"
    assert get_refusal(ratings, db, "league", "join", "L1", "guest", *AT)[0] == "league-full"
    assert get_refusal(ratings, db, "league", "schedule", "L1")[0] == "league-scheduled"
    assert get_refusal(ratings, db, "league", "join", "L2", "guest", *AT)[0] == "league-unknown"
    again = ("league", "create", "L1", "--game", "gonzaga", "--players-per-game", 2)
    assert get_refusal(ratings, db, *again)[0] == "league-exists"


def test_concurrent_joins_draw_the_schedule(db: str, ratings: Ratings) -> None:
    """If h joins while g is joining, g becomes the eighth player and draws the schedule."""
    join_league(ratings, db, *PLAYERS[:6])
    act_before_next("proposed", lambda: join_league(ratings, db, "h"))
    result = ratings("league", "join", "L1", "g", *AT, db=db)
    assert result.stdout.splitlines()[0] == "g is in L1: 8 of 8 players."
    assert show_league(ratings, db)["state"] == "0 of 24 games"


def test_imported_players_can_be_scheduled(db: str, ratings: Ratings) -> None:
    """A league whose players were imported has no schedule until `league schedule` draws it."""
    joined = [
        json.dumps(
            {"type": "league.joined", "occurred_at": "2026-02-02T12:00:00Z", "data": {"league": "L1", "player": p}}
        )
        for p in PLAYERS
    ]
    assert ratings("league", "schedule", "L1", db=db).exit_code == 1
    first_import = ratings("import", "-", db=db, input="\n".join(joined[:5]))
    assert (first_import.exit_code, first_import.stderr) == (0, "")
    note = "note: league L1 is full but has no schedule; to create one: ratings league schedule L1\n"
    assert ratings("import", "-", "--dry-run", db=db, input="\n".join(joined[5:])).stderr == note
    second_import = ratings("import", "-", db=db, input="\n".join(joined[5:]))
    assert (second_import.exit_code, second_import.stderr) == (0, note)
    assert show_league(ratings, db)["state"] == "no schedule"
    assert ratings("league", "schedule", "L1", "--seed", "2026", db=db).exit_code == 0
    assert show_league(ratings, db)["state"] == "0 of 24 games"


@pytest.mark.slow
def test_league_game_of_inactive_player_is_noted(scheduled_url: str, ratings: Ratings) -> None:
    """`record`, `import` and `import --follow` note league games of players who are not active at that time.

    Neither the game itself nor unfinished games nor games older than 90 days count. The game is recorded all the same.
    """
    first, second, *later_games = show_league(ratings, scheduled_url)["games"]
    early = ratings("record", db=scheduled_url, input=build_league_game(first))
    assert (early.exit_code, early.stderr) == (0, "")

    player = min(second["seats"])
    finished_games = [build_club_game(player, "2026-04-01T20:00:00Z", number) for number in range(4)]
    surrendered_game = build_club_game(player, "2026-04-02T20:00:00Z", 1, participant={"status": "surrendered"})
    late_game = json.loads(build_league_game(second))
    late_game["occurred_at"] = "2026-05-29T20:00:00Z"
    imported = ratings(
        "import", "-", db=scheduled_url, input="\n".join([json.dumps(late_game), *finished_games, surrendered_game])
    )
    recent = {name: 4 * (name == player) + (name in first["seats"]) for name in second["seats"]}
    inactive = [name for name in second["seats"] if recent[name] < 5]
    assert imported.exit_code == 0
    assert imported.stderr.splitlines()[-1] == (
        f"note: '{inactive[0]}' had finished only {recent[inactive[0]]} of 5 required games in the 90 days before "
        f"game {second['game_id']} of league L1. The game counts; to void it: "
        f"ratings void {second['game_id']} --reason TEXT ({len(inactive) - 1} more in L1)"
    )
    assert show_league(ratings, scheduled_url)["games"][1]["played"] is not None

    third, fourth, *_ = (
        json.dumps({**json.loads(build_league_game(game)), "occurred_at": "2026-09-01T20:00:00Z"})
        for game in later_games
    )
    result = ratings("record", "--any-date", db=scheduled_url, input=third)
    note = f"0 of 5 required games in the 90 days before game {later_games[0]['game_id']} of league L1"
    assert (result.exit_code, note in result.stderr) == (0, True)
    with start_follower(scheduled_url, "--any-date") as follower:
        follower.send(fourth)
        code, answers, noted = follower.end()
    assert (code, answers[0]["result"], "of league L1. The game counts" in noted) == (0, "appended", True)


def test_league_label_needs_no_activity(db: str, ratings: Ratings) -> None:
    """Players need not be active for games with the label of a league that was never created."""
    game = {"game_id": "x-1", "seats": ["x", "y", "z"]}
    result = ratings("record", db=db, input=build_league_game(game, league="L2"))
    assert (result.exit_code, "required" in result.stderr) == (0, False)


@pytest.mark.slow_cases
def test_old_season_can_be_recorded_afterwards(copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """Joins and games dated before the league's creation are recorded and count."""
    db = copy_ledger(create_league_ledger)
    for player in PLAYERS:
        result = ratings("league", "join", "L1", player, "--seed", "2026", "--at", "2026-01-20T12:00Z", db=db)
        assert result.exit_code == 0, result.stderr
    game = show_league(ratings, db)["games"][0]
    line = build_league_game(game).replace("2026-03-01", "2026-01-25")
    assert ratings("record", db=db, input=line).exit_code == 0

    assert (show_league(ratings, db)["state"], len(show_league(ratings, db)["table"])) == ("1 of 24 games", 3)


NOT_AS_SCHEDULED = {
    "another id": (lambda game: build_league_game({**game, "game_id": "L1-99"}), "not-scheduled"),
    "another player": (lambda game: build_league_game(game, "x", *game["seats"][1:]), "not-as-scheduled"),
    "a player missing": (lambda game: build_league_game(game, *game["seats"][1:]), "not-as-scheduled"),
    "a player too many": (lambda game: build_league_game(game, *game["seats"], "x"), "not-as-scheduled"),
    "another game": (lambda game: build_league_game(game).replace("cartagena", "gonzaga"), "not-as-scheduled"),
    "on other seats": (
        lambda game: build_league_game(
            game,
            participants=[
                {"player": player, "place": 1, "seat": seat}
                for seat, player in zip((2, 1, 3), game["seats"], strict=True)
            ],
        ),
        "not-as-scheduled",
    ),
}


@pytest.mark.parametrize(("build_wrong_game", "code"), NOT_AS_SCHEDULED.values(), ids=NOT_AS_SCHEDULED)
def test_game_not_as_scheduled_is_refused(
    build_wrong_game: Callable[[dict[str, Any]], str], code: str, scheduled_url: str, ratings: Ratings
) -> None:
    """A game that differs from the schedule is refused, both when recorded and as a correction."""
    db, games = scheduled_url, show_league(ratings, scheduled_url)["games"]
    wrong = build_wrong_game(games[0])

    assert get_refusal(ratings, db, "record", input=wrong)[0] == code
    assert ratings("record", db=db, input=build_league_game(games[0])).exit_code == 0
    changed = json.loads(wrong)["data"] | {"game_id": games[0]["game_id"]}
    # the case of another id leaves nothing to correct
    if changed != json.loads(build_league_game(games[0]))["data"]:
        data = {"game_id": games[0]["game_id"], "reason": "a mistake", "game": changed}
        line = json.dumps({"type": "game.corrected", "occurred_at": "2026-03-02T20:00:00Z", "data": data})
        assert f" {code}: " in ratings("import", "-", db=db, input=line).stderr


def test_scheduled_game_takes_a_substitute(scheduled_url: str, ratings: Ratings) -> None:
    """A scheduled game with a substitute and explicit seats is accepted, and can be voided and reinstated."""
    db, games = scheduled_url, show_league(ratings, scheduled_url)["games"]
    first, *other_players = games[0]["seats"]
    participants = [
        {"player": first, "place": 3, "status": "abandoned", "seat": 1},
        {"player": "x", "place": 3, "status": "substitute", "replaces": first, "seat": 1},
        *({"player": player, "place": place, "seat": place + 1} for place, player in enumerate(other_players, 1)),
    ]

    assert ratings("record", db=db, input=build_league_game(games[0], participants=participants)).exit_code == 0
    assert ratings("void", games[0]["game_id"], "--reason", "again", db=db).exit_code == 0
    assert ratings("reinstate", games[0]["game_id"], "--reason", "no", db=db).exit_code == 0
    assert show_league(ratings, db)["state"] == "1 of 24 games"


@pytest.mark.slow_cases
def test_needed_league_steps_cannot_be_voided(scheduled_url: str, ratings: Ratings) -> None:
    """A league's creation, joins and schedule cannot be voided while later steps depend on them."""
    db, games = scheduled_url, show_league(ratings, scheduled_url)["games"]
    rows = json.loads(ratings("log", "--format", "json", "--limit", "0", db=db).stdout)["rows"]
    created, joined, scheduled = (
        next(row["id"] for row in rows if row["type"] == f"league.{step}")
        for step in ("created", "joined", "scheduled")
    )
    assert ratings("record", db=db, input=build_league_game(games[0])).exit_code == 0

    def void(event_id: str) -> tuple[object, ...]:
        return ("void", "--event", event_id, "--reason", "wrong")

    for step in (created, joined, scheduled):
        assert get_refusal(ratings, db, *void(step))[0] == "still-needed"
    assert get_refusal(ratings, db, "player", "rename", "a", "b")[0] == "players-met"
    assert ratings("void", games[0]["game_id"], "--reason", "wrong", db=db).exit_code == 0
    assert ratings(*void(scheduled), db=db).exit_code == 0
    assert get_refusal(ratings, db, "reinstate", games[0]["game_id"], "--reason", "no")[0] == "not-scheduled"
    assert ratings(*void(joined), db=db).exit_code == 0
    assert show_league(ratings, db)["state"] == "7 of 8 players"
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.slow_cases
def test_voided_schedule_can_be_drawn_again_or_restored(scheduled_url: str, ratings: Ratings) -> None:
    """After a game was recorded and voided, its voided schedule can be drawn again with other ids, or be restored."""
    db, games = scheduled_url, show_league(ratings, scheduled_url)["games"]
    rows = json.loads(ratings("log", "--format", "json", "--limit", "0", db=db).stdout)["rows"]
    scheduled = next(row["id"] for row in rows if row["type"] == "league.scheduled")
    assert ratings("record", db=db, input=build_league_game(games[0])).exit_code == 0
    assert ratings("void", games[0]["game_id"], "--reason", "wrong", db=db).exit_code == 0
    void_schedule = ("void", "--event", scheduled, "--reason", "wrong")
    assert ratings(*void_schedule, db=db).exit_code == 0
    assert ratings("undo", "--yes", db=db).exit_code == 0
    assert show_league(ratings, db)["games"] == games
    assert ratings(*void_schedule, db=db).exit_code == 0
    assert ratings("league", "schedule", "L1", "--seed", "new", db=db).exit_code == 0
    drawn_games = show_league(ratings, db)["games"]
    assert [game["game_id"] for game in drawn_games[:2]] == ["L1-2-01", "L1-2-02"]
    assert ratings("record", db=db, input=build_league_game(drawn_games[0])).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.slow_cases
def test_league_is_not_finished_while_its_table_lacks_a_game(scheduled_url: str, ratings: Ratings) -> None:
    """A scheduled game that is not recorded for its league is open, because the league's table lacks it."""
    events = [json.loads(build_league_game(game)) for game in show_league(ratings, scheduled_url)["games"]]
    del events[-1]["data"]["league"]
    assert ratings("import", "-", db=scheduled_url, input="\n".join(map(json.dumps, events))).exit_code == 0
    assert show_league(ratings, scheduled_url)["state"] == "23 of 24 games"
    name = events[-1]["data"]["game_id"]
    assert ratings("correct", name, "--league", "L1", "--reason", "forgotten", db=scheduled_url).exit_code == 0
    assert show_league(ratings, scheduled_url)["state"] == "finished"


def test_league_name_of_a_label_is_refused(db: str, ratings: Ratings) -> None:
    """A league cannot be created under a name that a game already carries as a label."""
    assert (
        ratings(
            "record", db=db, input=build_league_game({"game_id": "x-1", "seats": ["a", "b"]}, league="L7")
        ).exit_code
        == 0
    )

    code, message = get_refusal(ratings, db, "league", "create", "L7", "--game", "cartagena", "--players-per-game", 3)
    assert (code, "'x-1'" in message) == ("league-exists", True)


def test_b5_entrants_keep_their_ids(db: str, ratings: Ratings) -> None:
    """Entrants of a B5 season keep their league ids, and `league unmet` lists the entrants that a player has not met.

    A game played after the season is refused as uncounted.
    """

    def build_b5_game(game_id: str, *players: str, month: int = 2, season: str = "2026-1") -> str:
        participants = [
            {"player": player, "power": 9 - place, "influence": 1, "vp": int(place == 1)}
            for place, player in enumerate(players)
        ]
        data = {"game_id": game_id, "game": "babylon5", "kind": "b5", "season": season, "participants": participants}
        return json.dumps({"type": "game.recorded", "occurred_at": f"2026-{month:02d}-05T20:00:00Z", "data": data})

    lines = [
        build_b5_game("g1", "kim", "lee", "max"),
        build_b5_game("g2", "nia", "oda", "kim"),
        build_b5_game("g3", "pia", "lee", "max"),
    ]
    assert ratings("import", "-", db=db, input="\n".join(lines)).exit_code == 0
    assert ratings("void", "g1", "--reason", "never played", db=db).exit_code == 0
    created = ratings("league", "create", "participants", "--game", "cartagena", "--players-per-game", 3, db=db)
    assert created.exit_code == 0, created.stderr  # its event has the text "participants", but no game
    unmet = json.loads(ratings("league", "unmet", "b5-league/2026-1", "kim", "--format", "json", db=db).stdout)

    assert (unmet["lid"], [(row["lid"], row["player"]) for row in unmet["rows"]]) == (
        1,
        [(2, "lee"), (3, "max"), (6, "pia")],
    )
    assert "kim (LID 1) has met 2 of 5" in ratings("league", "unmet", "b5-league/2026-1", "kim", db=db).stdout
    refusal = get_refusal(ratings, db, "record", input=build_b5_game("g4", "kim", "lee", "max", month=5))
    assert refusal[0] == "uncounted"
    assert "2026-05-05 is not in the season 2026-1, which runs from 2026-01 to 2026-04" in refusal[1]


def test_unmet_includes_players_without_games(copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """`league unmet` includes players of the league without games, whether it is given the league or its ladder.

    Only Babylon 5 has league ids, so the output has no LID.
    """
    db = copy_ledger(create_league_ledger, *PLAYERS)
    schedule = json.loads(ratings("league", "show", "L1", "--format", "json", db=db).stdout)["games"]
    first = schedule[0]
    result = ratings("record", "--game", "cartagena", "--game-id", first["game_id"], *LATER, *first["seats"], db=db)
    assert result.exit_code == 0, result.stderr
    player, *met = first["seats"]
    absent = min(set(PLAYERS) - set(first["seats"]))

    def list_unmet(name: str, player: str) -> list[str]:
        result = ratings("league", "unmet", name, player, "--format", "json", db=db)
        assert result.exit_code == 0, result.stderr
        return [row["player"] for row in json.loads(result.stdout)["rows"]]

    assert list_unmet("youplay-league/L1", player) == sorted(set(PLAYERS) - {player, *met})
    assert list_unmet("L1", absent) == sorted(set(PLAYERS) - {absent})
    text = ratings("league", "unmet", "L1", player, db=db).stdout
    assert f"{player} has met 2 of 7 on youplay-league/L1.\n\nnot yet met\n" in text
    assert "LID" not in text


@pytest.mark.slow_cases
def test_unmet_lists_renamed_player_once(copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """A player who was renamed after joining is one person, listed under the new id."""
    db = copy_ledger(create_league_ledger, "a", "b")
    assert ratings("player", "rename", "a", "ada", "--reason", "typo", db=db).exit_code == 0
    unmet = json.loads(ratings("league", "unmet", "L1", "b", "--format", "json", db=db).stdout)

    assert [row["player"] for row in unmet["rows"]] == ["ada"]
    assert json.loads(ratings("league", "unmet", "L1", "a", "--format", "json", db=db).stdout)["player"] == "ada"


def test_unmet_leaves_out_substitutes(scheduled_url: str, ratings: Ratings) -> None:
    """`league unmet` does not list a substitute among the players to meet, but lists the players that a substitute has
    not met."""
    game = show_league(ratings, scheduled_url)["games"][0]
    first, *other_players = game["seats"]
    participants = [
        {"player": first, "place": 3, "status": "abandoned"},
        {"player": "x", "place": 3, "status": "substitute", "replaces": first},
        *({"player": player, "place": place} for place, player in enumerate(other_players, 1)),
    ]
    assert ratings("record", db=scheduled_url, input=build_league_game(game, participants=participants)).exit_code == 0
    not_in_game = sorted(set(PLAYERS) - set(game["seats"]))

    def read_unmet(player: str) -> str:
        return str(ratings("league", "unmet", "L1", player, db=scheduled_url).stdout)

    assert read_unmet(not_in_game[0]).startswith(f"{not_in_game[0]} has met 0 of 7 on")
    assert read_unmet("x").startswith("x has met 3 of 8 on")
    assert read_unmet("x").split()[-5:] == not_in_game


def test_unmet_refuses_unknown_names(db: str, ratings: Ratings) -> None:
    """A player outside the league, an unknown league and a league without a ladder are refused by name."""

    def run_unmet(*command: str) -> tuple[int, str]:
        result = ratings("league", "unmet", *command, db=db)
        return result.exit_code, result.stderr

    stranger = "'guest' has neither played on youplay-league/L1 nor joined its league"
    assert run_unmet("L1", "guest") == (1, f"Error: {stranger}; see: ratings standings youplay-league/L1\n")
    command = ("league", "create", "Spring Cup", "--game", "cartagena", "--players-per-game", 3, *AT)
    assert ratings(*command, db=db).exit_code == 0
    assert "; see: ratings standings 'youplay-league/Spring Cup'\n" in run_unmet("Spring Cup", "guest")[1]
    assert run_unmet("l1", "a") == (2, ratings("league", "show", "l1", db=db).stderr)
    assert "no league is called 'l1' (there are L1, Spring Cup); did you mean L1?" in run_unmet("l1", "a")[1]
    assert "Error: 'b5-league' is not a ladder" in run_unmet("b5-league", "a")[1]
    assert ratings("void", "--event", "ruleset:youplay-league@1", "--reason", "no", db=db).exit_code == 0
    unscored = "no usable ruleset scores leagues of cartagena; publish one with: ratings rules publish FILE"
    assert run_unmet("L1", "a") == (1, f"Error: {unscored}\n")


def test_season_of_another_game_has_no_league_ids(ratings: Ratings, tmp_path: Path) -> None:
    """Only Babylon 5 has league ids: a ladder of go seasons has none."""
    db, rules = str(tmp_path / "go.db"), tmp_path / "go-league.toml"
    ratings("init", "--for", "go", db=db)
    rules.write_text(GO_LEAGUE.replace('["league"]', '["season"]'), encoding="utf-8")
    assert ratings("rules", "publish", rules, db=db).exit_code == 0
    for loser in ("ben", "cleo"):
        members = ("--game", "go", "--game-id", loser, "--season", "2026", *AT)
        assert ratings("record", *members, "anna", loser, db=db).exit_code == 0

    text = ratings("league", "unmet", "go-league/2026", "ben", db=db).stdout
    data = json.loads(ratings("league", "unmet", "go-league/2026", "ben", "--format", "json", db=db).stdout)
    assert (data["lid"], data["rows"]) == (None, [{"lid": None, "player": "cleo"}])
    assert text == "ben has met 1 of 2 on go-league/2026.\n\nnot yet met\ncleo\n"


def test_table_that_cannot_be_replayed_names_the_failure(
    scheduled_url: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the rule of a league fails, its table is refused with the failure, not as a league that no ruleset scores."""

    def fail(*arguments: object) -> str | None:
        raise ZeroDivisionError("of the rule")

    line = build_league_game(show_league(ratings, scheduled_url)["games"][0])
    assert ratings("record", db=scheduled_url, input=line).exit_code == 0
    substitute_rule(monkeypatch, load_built_in_rule("placement-points/1")._replace(check=fail))
    result = ratings("league", "table", "L1", db=scheduled_url)
    assert (result.exit_code, result.stderr.count("the rule failed at position")) == (1, 1)
    assert "no ruleset scores" not in result.stderr


def test_unscored_league_is_refused_with_advice(copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """A league of go, which no ruleset scores, is refused with the alternatives."""
    db = copy_ledger(create_league_ledger)
    assert ratings("init", "--for", "go", db=db).exit_code == 0
    code, message = get_refusal(ratings, db, "league", "create", "L2", "--game", "go", "--players-per-game", 2, *AT)
    assert code == "league-unscored"
    assert "no ruleset scores leagues of go; first publish a ruleset " in message
    assert "; leagues can be played in " in message
    assert "cartagena (youplay-league)" in message
    assert "docs/leagues.md" in message
    result = ratings("league", "create", "L2", "--game", "go", "--players-per-game", 2, "--format", "json", db=db)
    assert [rejection["code"] for rejection in json.loads(result.stdout)["rejected"]] == ["league-unscored"]


def test_league_ruleset_allows_a_league(ratings: Ratings, tmp_path: Path) -> None:
    """A league can be created once a ruleset that scores leagues of its game is published."""
    db, rules = str(tmp_path / "go.db"), tmp_path / "go-league.toml"
    ratings("init", "--for", "go", db=db)
    message = get_refusal(ratings, db, "league", "create", "L2", "--game", "go", "--players-per-game", 2)[1]
    assert "no ruleset scores leagues of go; first publish a ruleset" in message
    rules.write_text(GO_LEAGUE, encoding="utf-8")
    assert ratings("rules", "publish", rules, db=db).exit_code == 0
    assert ratings("league", "create", "L2", "--game", "go", "--players-per-game", 2, db=db).exit_code == 0
    second_version = GO_LEAGUE.replace('"1"', '"2"', 1).replace('["go"]', '["go", "shogi"]').replace("1900", "2000")
    rules.write_text(second_version, encoding="utf-8")
    assert ratings("rules", "publish", rules, db=db).exit_code == 0
    assert ratings("league", "create", "L3", "--game", "shogi", "--players-per-game", 2, db=db).exit_code == 0


GO_LEAGUE = """\
id = "go-league"
version = "1"
rule = "placement-points/1"
effective_from = 1900-01-01
time_zone = "UTC"
[scope]
game = ["go"]
[partition]
by = ["league"]
"""


@pytest.mark.slow_cases
def test_scheduled_game_is_recorded_for_its_league(scheduled_url: str, ratings: Ratings) -> None:
    """A scheduled game recorded without its league is recorded for it; a game of other players is refused."""
    game = show_league(ratings, scheduled_url)["games"][0]
    result = ratings(
        "record", "--game", "cartagena", "--game-id", game["game_id"], *LATER, *game["seats"], db=scheduled_url
    )
    assert result.exit_code == 0, result.stderr
    assert "note: the league L1 scheduled this game, so --league L1 was added\n" in result.stderr
    assert show_league(ratings, scheduled_url)["games"][0]["played"] == "2026-02-03T12:00:00.000000Z"
    second_game = show_league(ratings, scheduled_url)["games"][1]
    game_event = json.loads(build_league_game(second_game))
    del game_event["data"]["league"]
    assert ratings("record", db=scheduled_url, input=json.dumps(game_event["data"])).exit_code == 0
    assert show_league(ratings, scheduled_url)["games"][1]["played"] is not None
    open_game = show_league(ratings, scheduled_url)["games"][2]["game_id"]
    strangers = ["record", "--game", "cartagena", "--game-id", open_game, "x", "y"]
    assert get_refusal(ratings, scheduled_url, *strangers)[0] == "not-as-scheduled"


@pytest.mark.slow_cases
def test_import_notes_missing_league(scheduled_url: str, ratings: Ratings) -> None:
    """An import notes scheduled games that do not name their league, and gives the command that corrects them."""
    games = show_league(ratings, scheduled_url)["games"][:2]
    events = [json.loads(build_league_game(game)) for game in games]
    for event in events:
        del event["data"]["league"]
    result = ratings("import", "-", db=scheduled_url, input="\n".join(map(json.dumps, events)))
    name = games[0]["game_id"]
    assert result.exit_code == 0
    assert f"note: {name} is scheduled in league L1 but recorded without a league" in result.stderr
    assert f"ratings correct {name} --league L1 --reason TEXT" in result.stderr
    assert ratings("correct", name, "--league", "L1", "--reason", "forgotten", db=scheduled_url).exit_code == 0
    assert show_league(ratings, scheduled_url)["games"][0]["played"] is not None
    second_import = ratings(
        "import", "-", db=scheduled_url, input=build_league_game(show_league(ratings, scheduled_url)["games"][2])
    )
    assert (second_import.exit_code, second_import.stderr) == (0, "")
