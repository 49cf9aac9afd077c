"""Invalid games, corrections, renames and adjustments are refused with a code and change nothing."""

import json
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NEXT_DAY,
    NOON,
    REASON_OPTION,
    Ratings,
    append_lines,
    build_event_line,
    build_galactic_line,
    build_game_data,
    create_ledger,
    get_refusal_code,
    read_head,
    read_json,
    read_points,
    run_correction,
    run_json_command,
)
from output_filters import remove_newcomer_notes

RULESETS = ("galactic-points-1", "catan-elo-2009-01", "b5-league-1")
SIX = ("anna", "ben", "cleo", "dora", "emil", "frida")


def build_participant(player: str, place: int, **members: Any) -> dict[str, Any]:
    """Return a participant."""
    return {"player": player, "place": place, **members}


def build_substitute(player: str, place: int, replaces: str) -> dict[str, Any]:
    """Return a participant who replaces another one."""
    return build_participant(player, place, status="substitute", replaces=replaces)


def build_b5_data(*results: str, game_id: str = "b-1", **members: Any) -> dict[str, Any]:
    """Return the data of a game of Babylon 5.
    A result is `anna 20 1`: the player, power and victory points; then `+` for a standard victory, `++` for a major
    one.
    """
    participants = []
    for text in results:
        player, power, vp, *victory = text.split()
        victory_member = {"victory": {"+": "standard", "++": "major"}[victory[0]]} if victory else {}
        participants.append({"player": player, "power": int(power), "influence": 0, "vp": int(vp), **victory_member})
    members_of_kind = {"game": "babylon5", "kind": "b5", "season": "2010-1", "participants": participants}
    return {"game_id": game_id, **members_of_kind, **members}


def build_catan_data(*participants: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a game of Catan with these participants."""
    return build_game_data("g-1", game="catan", group="basic", participants=list(participants))


WON_GAME = ("anna 20 0 +", "ben 15 1", "cleo 9 0")

# games that are refused: data, time and code
GAMES = {
    "six players in a contribution pool": (build_game_data("g-1", *SIX), NOON, "uncounted"),
    "two players of Babylon 5": (build_b5_data("anna 20 0 +", "ben 15 0"), NOON, "b5-too-few-players"),
    "victory points short": (build_b5_data("anna 20 0 +", "ben 15 0", "cleo 9 0"), NOON, "victory-points-total"),
    "victory points over": (build_b5_data("anna 20 1 +", "ben 15 1", "cleo 9 0"), NOON, "victory-points-total"),
    "victory points short after a major victory": (
        build_b5_data("anna 20 0 ++", "ben 15 1", "cleo 9 0"),
        NOON,
        "victory-points-total",
    ),
    "victory points short within time": (build_b5_data(*WON_GAME, within_time=True), NOON, "victory-points-total"),
    "victory points all kept by the winner": (
        build_b5_data("anna 20 1 +", "ben 15 0", "cleo 9 0"),
        NOON,
        "victory-points-all-kept",
    ),
    "victory points all kept above a standard victory": (
        build_b5_data("anna 20 3 ++", "ben 20 0 +", "cleo 9 0", "dora 8 0"),
        NOON,
        "victory-points-all-kept",
    ),
    "a referee who plays": (build_b5_data(*WON_GAME, referee="cleo"), NOON, "referee-plays"),
    "before the season": (build_b5_data(*WON_GAME), "2009-12-31T22:59:59.999999Z", "uncounted"),
    "after the season": (build_b5_data(*WON_GAME), "2010-06-01T12:00:00Z", "uncounted"),
    "after the season in Berlin, not in London": (build_b5_data(*WON_GAME), "2010-04-30T22:30:00Z", "uncounted"),
    "another season": (build_b5_data(*WON_GAME, season="2010-2"), NOON, "uncounted"),
    "two substitutes for one leaver": (
        build_catan_data(
            build_participant("anna", 1),
            build_participant("ben", 2, status="abandoned"),
            build_substitute("cleo", 2, replaces="ben"),
            build_substitute("dora", 2, replaces="ben"),
        ),
        NOON,
        "leaver-replaced-twice",
    ),
    "a substitute without a leaver": (
        build_catan_data(build_participant("anna", 1), build_participant("ben", 2, status="substitute")),
        NOON,
        "substitute-without-leaver",
    ),
    "a substitute for a player who stayed": (
        build_catan_data(
            build_participant("anna", 1), build_participant("ben", 2), build_substitute("cleo", 2, replaces="ben")
        ),
        NOON,
        "substitute-without-leaver",
    ),
    "a substitute for a player who was not there": (
        build_catan_data(
            build_participant("anna", 1), build_participant("ben", 2), build_substitute("cleo", 3, replaces="emil")
        ),
        NOON,
        "substitute-without-leaver",
    ),
    "one person twice": (build_game_data("g-1", "uno", "anna", "due"), NOON, "player-twice"),
}


@pytest.fixture(scope="module")
def db(shared_url: str, ratings: Ratings) -> str:
    """Return a ledger that all cases share, because each of them is refused."""
    name = create_ledger(ratings, shared_url, *RULESETS)
    append_lines(
        ratings,
        name,
        build_galactic_line("g-1", "anna", "ben"),
        build_galactic_line("g-2", "anna", "ben"),
        build_event_line("game.recorded", **build_b5_data(*WON_GAME)),
        build_event_line("game.voided", NEXT_DAY, game_id="g-2", reason="never played"),
        # uno became due and then tre; ben met only the old ids, and cleo only the current one
        build_galactic_line("u-1", "uno", "ben"),
        build_galactic_line("u-2", "due", "ben"),
        build_galactic_line("u-3", "tre", "cleo"),
        build_galactic_line("u-4", "uno", "due"),
        build_event_line("game.voided", NEXT_DAY, game_id="u-4", reason="never played"),
        build_event_line("player.renamed", event_id="uno-is-due", player="uno", new_player="due"),
        build_event_line("player.renamed", event_id="due-is-tre", player="due", new_player="tre"),
        # s was merged with t until they met
        build_galactic_line("s-1", "s", "ben"),
        build_galactic_line("s-2", "t", "ben"),
        build_event_line("player.renamed", event_id="s-is-t", player="s", new_player="t"),
        build_event_line("event.voided", event_id="s-is-not-t", id="s-is-t", reason="two people"),
        build_galactic_line("s-3", "s", "t"),
        # x was renamed to y, which was withdrawn, and then y to x
        build_galactic_line("x-1", "x", "ben"),
        build_galactic_line("x-2", "y", "ben"),
        build_event_line("player.renamed", event_id="x-is-y", player="x", new_player="y"),
        build_event_line("event.voided", event_id="x-is-not-y", id="x-is-y", reason="the other way round"),
        build_event_line("player.renamed", event_id="y-is-x", player="y", new_player="x"),
        build_event_line("points.adjusted", event_id="gift", ladder=GALACTIC, player="anna", points="5", reason="gift"),
        build_event_line("points.adjusted", event_id="taken", ladder=BASIC, player="anna", points="5", reason="gift"),
        build_event_line("event.voided", event_id="withdrawn", id="taken", reason="wrong"),
    )
    return name


@pytest.mark.parametrize("case", GAMES)
@pytest.mark.parametrize("command", ["record", "import", "correct"])
def test_impossible_game_is_refused(command: str, case: str, db: str, ratings: Ratings) -> None:
    """An impossible game is refused with its code when recorded, imported or given as a correction."""
    data, at, code = GAMES[case]
    if command == "correct":
        stdin = json.dumps({**data, "occurred_at": at})
        assert (
            get_refusal_code(ratings, db, "correct", data["game_id"], *REASON_OPTION, input=stdin, readable=False)
            == code
        )
    else:
        new = {**data, "game_id": "new"}
        arguments = ["record"] if command == "record" else ["import", "-"]
        line = build_event_line("game.recorded", at, **new)
        assert get_refusal_code(ratings, db, *arguments, input=line, readable=False) == code


REFUSED_COMMANDS = {
    "a correction that changes the id of the game": (
        ["correct", "g-1"],
        build_game_data("g-3", "ben", "anna"),
        "game-id-changed",
    ),
    "a correction of an unknown game": (["correct", "g-9", "anna", "ben"], None, "game-unknown"),
    "a correction of a voided game": (["correct", "g-2", "ben", "anna"], None, "game-voided"),
    "a correction that changes nothing": (["correct", "g-1", "anna", "ben"], None, "nothing-to-correct"),
    "a correction that names a player twice": (["correct", "g-1", "anna", "anna"], None, "player-twice"),
    "a correction that names one person twice": (["correct", "g-1", "uno", "tre"], None, "player-twice"),
    "a correction that leaves a gap in the places": (
        ["correct", "g-1"],
        build_game_data("g-1", participants=[build_participant("anna", 1), build_participant("ben", 3)]),
        "place-gap",
    ),
    "a correction to six players": (["correct", "g-1", *SIX], None, "uncounted"),
    "a correction without a reason": (["correct", "g-1", "ben", "anna", "--reason", ""], None, "bad-text"),
    "voiding an unknown game": (["void", "g-9"], None, "game-unknown"),
    "voiding a voided game": (["void", "g-2"], None, "game-voided"),
    "reinstating an unknown game": (["reinstate", "g-9"], None, "game-unknown"),
    "reinstating a live game": (["reinstate", "g-1"], None, "game-live"),
    "reinstating a game with one person twice": (["reinstate", "u-4"], None, "player-twice"),
    "recording a game with one person twice": (
        ["record", "--game", "catan", "--game-id", "new", "uno", "ben", "tre"],
        None,
        "player-twice",
    ),
    "an unknown event": (["void", "--event", "nothing"], None, "event-unknown"),
    "a position after the head": (["void", "--event", "999"], None, "event-unknown"),
    "position 0": (["void", "--event", "0"], None, "event-unknown"),
    "a position of 64 digits": (["void", "--event", "9" * 64], None, "event-unknown"),
    "a position of 5,000 digits": (["void", "--event", "9" * 5_000], None, "bad-identifier"),
    "a game's first record": (["void", "--event", "game:g-1"], None, "event-of-game"),
    "a game's first record by position": (["void", "--event", "4"], None, "event-of-game"),
    "a game's void": (["void", "--event", "7"], None, "event-of-game"),
    "an event withdrawn already": (["void", "--event", "taken"], None, "event-voided"),
    "a rename withdrawn already": (["void", "--event", "s-is-t"], None, "event-voided"),
    "the only ruleset of adjusted ladders": (["void", "--event", "1"], None, "still-needed"),
    "renaming a player to the same id": (["player", "rename", "anna", "anna"], None, "rename-loop"),
    "renaming in a circle of two": (["player", "rename", "tre", "due"], None, "rename-loop"),
    "renaming in a circle of three": (["player", "rename", "tre", "uno"], None, "rename-loop"),
    "renaming a renamed id": (["player", "rename", "uno", "anna"], None, "renamed-already"),
    "renaming an id in the middle of a chain": (["player", "rename", "due", "anna"], None, "renamed-already"),
    "renaming an unknown player": (["player", "rename", "nobody", "anna"], None, "player-unknown"),
    "renaming a player to an opponent": (["player", "rename", "anna", "ben"], None, "players-met"),
    "renaming a player to an opponent met under old ids": (["player", "rename", "ben", "tre"], None, "players-met"),
    "renaming a player to an old id of an opponent": (["player", "rename", "cleo", "uno"], None, "players-met"),
    "restoring a rename after the two met": (["void", "--event", "s-is-not-t"], None, "players-met"),
    "restoring a rename that would be a circle now": (["void", "--event", "x-is-not-y"], None, "rename-loop"),
    "renaming to an invalid id": (["player", "rename", "anna", "a/b"], None, "bad-identifier"),
    "finer than whole points": (["adjust", GALACTIC, "anna", "0.5"], None, "finer-than-scale"),
    "finer than a millionth": (["adjust", BASIC, "anna", "-0.0000005"], None, "finer-than-scale"),
    "a ladder that does not exist": (["adjust", "chess/all", "anna", "5"], None, "unknown-ladder"),
    "a ladder without its group": (["adjust", "catan-elo", "anna", "5"], None, "unknown-ladder"),
    "a ladder with an empty group": (["adjust", "catan-elo/", "anna", "5"], None, "unknown-ladder"),
    "a ladder with one part too many": (["adjust", f"{GALACTIC}/x", "anna", "5"], None, "unknown-ladder"),
    "a ladder with a line break": (["adjust", "a\nb", "anna", "5"], None, "bad-identifier"),
    "points that are not a number": (["adjust", GALACTIC, "anna", "five"], None, "bad-decimal"),
    "points with an exponent": (["adjust", GALACTIC, "anna", "1e3"], None, "bad-decimal"),
    "points out of range": (["adjust", GALACTIC, "anna", "-1000000001"], None, "out-of-range"),
    "an account of an invalid id": (["player", "account", "", "free"], None, "bad-identifier"),
}


@pytest.mark.parametrize("case", REFUSED_COMMANDS)
def test_invalid_command_is_refused(case: str, db: str, ratings: Ratings) -> None:
    """A command that is invalid or contradicts the ledger is refused with a code."""
    command, data, code = REFUSED_COMMANDS[case]
    reason = () if "--reason" in command or command[0] in ("record", "player") else REASON_OPTION

    assert get_refusal_code(ratings, db, *command, *reason, input=None if data is None else json.dumps(data)) == code


@pytest.mark.slow_cases
def test_ledger_verifies_after_refusals(db: str, ratings: Ratings) -> None:
    """After these refusals, the ledger verifies, and anna has only the points of the accepted events."""
    assert ratings("verify", db=db) == (0, "", "")
    assert read_points(ratings, db, GALACTIC)["anna"] == "1165"


# --allow-uncounted, and cases that are accepted


@pytest.mark.slow_cases
@pytest.mark.parametrize("command", ["record", "import", "correct"])
def test_allowed_uncounted_game_is_explained(command: str, ledger_url: str, ratings: Ratings) -> None:
    """With --allow-uncounted, a game that no rule can count is recorded, and `explain` gives the reason."""
    create_ledger(ratings, ledger_url, *RULESETS)
    append_lines(
        ratings,
        ledger_url,
        build_galactic_line("g-1", "anna", "ben"),
        build_event_line("game.recorded", **build_b5_data(*WON_GAME)),
    )
    games = [
        (build_game_data("g-1", *SIX), NOON, GALACTIC),
        (build_b5_data(*WON_GAME), "2010-04-30T22:30:00Z", "b5-league/2010-1"),
    ]
    for data, at, ladder in games:
        if command == "correct":
            stdin = json.dumps({**data, "occurred_at": at})
            run_correction(
                ratings, ledger_url, "correct", data["game_id"], *REASON_OPTION, "--allow-uncounted", input=stdin
            )
        else:
            data = {**data, "game_id": f"{data['game_id']}-new"}
            arguments = ["record"] if command == "record" else ["import", "-"]
            result = ratings(
                *arguments, "--allow-uncounted", db=ledger_url, input=build_event_line("game.recorded", at, **data)
            )
            assert (result.exit_code, remove_newcomer_notes(result.stderr)) == (0, "")
        explain_command = ("explain", data["game_id"], ladder)
        explanation = read_json(ratings, ledger_url, *explain_command)
        assert (explanation["counted"], {player["change"] for player in explanation["players"]}) == (False, {"0"})
        assert ("6" if ladder == GALACTIC else "2010-1") in explanation["why_not"]
        assert f"Not counted: {explanation['why_not']}" in ratings(*explain_command, db=ledger_url).stdout
    expected = {} if command == "correct" else {"anna": "1160", "ben": "840"}
    assert read_points(ratings, ledger_url, GALACTIC) == expected


@pytest.mark.parametrize(
    ("season", "at"),
    [
        ("2010-1", "2009-12-31T23:00:00Z"),
        ("2010-1", "2010-04-30T21:59:59.999999Z"),
        ("2010-2", "2010-04-30T22:30:00Z"),
        ("2010-3", "2010-12-31T22:59:59Z"),
        ("spring", "2010-06-01T12:00:00Z"),
        ("2010-4", "2010-12-31T12:00:00Z"),
    ],
)
def test_game_within_its_season_is_accepted(season: str, at: str, db: str, ratings: Ratings) -> None:
    """A game just inside its season, or in a season without dates, is accepted."""
    before = read_head(ratings, db)
    game_line = build_event_line("game.recorded", at, **build_b5_data(*WON_GAME, game_id="new", season=season))
    report = json.loads(ratings("record", "--dry-run", "--format", "json", db=db, input=game_line).stdout)

    assert (report["would_append"], report["rejected"]) == (1, [])
    assert read_head(ratings, db) == before


def test_correction_without_values_names_the_ways_to_give_them(db: str, ratings: Ratings) -> None:
    """Without PLAYERS, options and JSON, a correction is refused, and the message names the ways to give values."""
    result = ratings("correct", "g-1", *REASON_OPTION, db=db)
    assert (result.exit_code, result.stdout) == (1, "Nothing was recorded.\n")
    ways = "name PLAYERS, pass --edit or an option with the correction, such as --at, or give JSON on standard input"
    assert result.stderr.startswith(f"bad-json: there is no game on standard input; {ways}")


@pytest.mark.slow
def test_opponents_can_be_merged_without_common_games(ledger_url: str, ratings: Ratings) -> None:
    """Players who met can be merged once their common games are voided or corrected; the merge then prevents undoing
    either.
    """
    create_ledger(ratings, ledger_url)
    append_lines(
        ratings,
        ledger_url,
        build_galactic_line("g-1", "anna", "anne"),
        build_galactic_line("g-2", "anna", "anne"),
        build_galactic_line("g-3", "anne", "ben"),
    )
    assert get_refusal_code(ratings, ledger_url, "player", "rename", "anna", "anne") == "players-met"
    run_json_command(ratings, ledger_url, "void", "g-1", *REASON_OPTION)
    assert get_refusal_code(ratings, ledger_url, "player", "rename", "anna", "anne") == "players-met"
    run_json_command(ratings, ledger_url, "correct", "g-2", "anna", "ben", *REASON_OPTION)
    run_correction(ratings, ledger_url, "player", "rename", "anna", "anne")

    assert get_refusal_code(ratings, ledger_url, "reinstate", "g-1", *REASON_OPTION) == "player-twice"
    assert get_refusal_code(ratings, ledger_url, "correct", "g-2", "anna", "anne", *REASON_OPTION) == "player-twice"
    record = ["record", "--game", "chess", "--game-id", "new", "anne", "anna"]
    assert get_refusal_code(ratings, ledger_url, *record) == "player-twice"
    assert [row["game_id"] for row in read_json(ratings, ledger_url, "history", "anna", GALACTIC)["rows"]] == [
        "g-2",
        "g-3",
    ]
    assert ratings("verify", db=ledger_url) == (0, "", "")
