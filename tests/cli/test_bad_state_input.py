"""Bad input for rules with state is refused with a code, and none of it is recorded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_rules import load_built_in_rule, substitute_rule

Ratings = Callable[..., Any]
Event = dict[str, Any]
AT = "2024-02-01T12:00:00Z"

GLICKO_RULESET = """
id = "chess"
version = "1"
rule = "glicko-1/1"
effective_from = 2000-01-01
time_zone = "UTC"
{members}
[scope]
game = ["chess"]
{tables}
"""
ELO_RULESET = GLICKO_RULESET.replace("glicko-1/1", "pairwise-elo/2")


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger of chess under Glicko, tennis under club Elo and padel under Elo, which has no state."""
    for name, system in (("chess", "glicko"), ("tennis", "club-elo"), ("padel", "elo")):
        assert ratings("init", "--for", name, "--zone", "UTC", "--system", system, db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_club)


def build_ruleset(members: str = "", tables: str = "", text: str = GLICKO_RULESET) -> str:
    """Return a ruleset file with further members and tables."""
    return text.format(members=members, tables=tables)


# text of a ruleset, and the key that its refusal names
RULESETS = {
    "a start beyond bounds": (build_ruleset("", "[params]\nstart = 1000001"), "params.start"),
    "a negative deviation": (build_ruleset("", "[params]\nstart_deviation = -1"), "params.start_deviation"),
    "a deviation of zero": (build_ruleset("", "[params]\nstart_deviation = 0"), "params.start_deviation"),
    "a deviation in words": (build_ruleset("", '[params]\nstart_deviation = "wide"'), "params.start_deviation"),
    "a deviation too large": (build_ruleset("", "[params]\nstart_deviation = 10001"), "params.start_deviation"),
    "a deviation too fine": (build_ruleset("", '[params]\nstart_deviation = "350.0000001"'), "params.start_deviation"),
    "a float": (build_ruleset("", "[params]\nstart_deviation = 350.5"), "params.start_deviation"),
    "not a number": (build_ruleset("", "[params]\nstart_deviation = nan"), "params.start_deviation"),
    "infinity": (build_ruleset("", "[params]\nc = inf"), "params.c"),
    "division by zero": (build_ruleset("", '[params]\nc = "1/0"'), "params.c"),
    "a floor above the start": (build_ruleset("", "[params]\ndeviation_floor = 400"), "params.deviation_floor"),
    "an unknown parameter": (build_ruleset("", "[params]\ntau = 1"), "params.tau"),
    "a period of zero length": (build_ruleset('period = ""'), "period"),
    "a period of zero days": (build_ruleset("period = 0"), "period"),
    "an unknown period": (build_ruleset('period = "fortnight"'), "period"),
    "events of nothing": (build_ruleset('period = "event"'), "period_by"),
    "events without period": (build_ruleset('period_by = "league"'), "period_by"),
    "events by an unknown member": (build_ruleset('period = "event"\nperiod_by = "group"'), "period_by"),
    "events by a number with a bad name": (build_ruleset('period = "event"\nperiod_by = "numbers.Round"'), "period_by"),
    "a period of a rule by game": (build_ruleset('period = "week"', "", ELO_RULESET), "period"),
    "a season of zero": (build_ruleset("season_by = [0]"), "season_by"),
    "a season of 13": (build_ruleset("season_by = [1, 13]"), "season_by"),
    "seasons of a word": (build_ruleset('season_by = "league"'), "season_by"),
    "clubs of a rule that compares players": (build_ruleset('entrant = "club"'), "entrant"),
    "an unknown entrant": (build_ruleset('entrant = "team"'), "entrant"),
    "an unknown order": (build_ruleset('score_order = "middle"'), "score_order"),
    "negative decimals": (build_ruleset("score_decimals = -1"), "score_decimals"),
    "seven decimals": (build_ruleset("score_decimals = 7"), "score_decimals"),
    "a number with a bad name": (build_ruleset("", "[numbers.Round]\nmin = 0"), "numbers.Round"),
    "a number with a long name": (build_ruleset("", f"[numbers.{'n' * 33}]\nmin = 0"), f"numbers.{'n' * 33}"),
    "a range that is empty": (build_ruleset("", "[numbers.n]\nmin = 2\nmax = 1"), "numbers.n"),
    "a range beyond 2^53": (build_ruleset("", "[numbers.n]\nmin = -9007199254740992"), "numbers.n.min"),
    "absent out of range": (build_ruleset("", "[numbers.n]\nmin = 1\nabsent = 0"), "numbers.n"),
    "absent in words": (build_ruleset("", '[numbers.n]\nabsent = "zero"'), "numbers.n.absent"),
    "17 numbers": (build_ruleset("", "".join(f"[numbers.n{n}]\n" for n in range(17))), "numbers"),
    "an unknown member of a number": (build_ruleset("", "[numbers.n]\nstep = 2"), "numbers.n.step"),
    "K of zero": (build_ruleset("", "[params]\nk = 0", ELO_RULESET), "params.k"),
    "K that never ends": (build_ruleset("", "[params]\nk = [{below = 30, k = 40}]", ELO_RULESET), "params.k"),
    "K steps out of order": (
        build_ruleset("", "[params]\nk = [{below = 30, k = 40}, {below = 20, k = 30}, {k = 20}]", ELO_RULESET),
        "params.k",
    ),
    "an unknown margin": (build_ruleset("", '[params]\nmargin = "log"', ELO_RULESET), "params.margin"),
    "a negative kappa": (build_ruleset("", "[params]\nkappa = -1", ELO_RULESET), "params.kappa"),
    "a reversion above one": (build_ruleset("", '[params]\nreversion = "3/2"', ELO_RULESET), "params.reversion"),
    "unknown teams": (build_ruleset("", '[params]\nteams = "best"', ELO_RULESET), "params.teams"),
}


@pytest.mark.parametrize("case", RULESETS)
def test_bad_ruleset_is_refused_with_its_key(case: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A ruleset that cannot be used is refused by `rules check` and `rules publish`, with the key."""
    text, key = RULESETS[case]
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    before = ratings("status", "--format", "json", db=one_db).stdout
    checked, published = (ratings("rules", name, file, db=one_db) for name in ("check", "publish"))
    assert (checked.exit_code, published.exit_code) == (1, 1), (checked, published)
    for message in (checked.stdout, published.stderr):
        assert f"{key}: " in message, message
        assert "Traceback" not in message
        assert "this is a bug" not in message
    assert ratings("status", "--format", "json", db=one_db).stdout == before


def build_participant(player: str, place: int | None = None, **members: Any) -> Event:
    """Return a participant."""
    return {"player": player, **({} if place is None else {"place": place}), **members}


def build_game(*participants: Event, name: str = "tennis", **members: Any) -> Event:
    """Return a game of these participants."""
    data = {"game_id": "g-9", "game": name, **members, "participants": [*participants]}
    return {"type": "game.recorded", "occurred_at": AT, "data": data}


PAIRS = (
    build_participant("anna", 1, team=1, score=6),
    build_participant("ben", 1, team=1, score=6),
    build_participant("cleo", 3, team=2, score=3),
    build_participant("dora", 3, team=2, score=3),
)
SINGLES = build_participant("anna", 1), build_participant("ben", 2)


def remove_member(participant: Event, name: str) -> Event:
    return {member: value for member, value in participant.items() if member != name}


GAMES = {
    "half a team": (build_game(*PAIRS[:3], remove_member(PAIRS[3], "team")), "team-missing"),
    "one player outside the teams": (build_game(*PAIRS, build_participant("emil", 5)), "team-missing"),
    "partners with different places": (build_game(*PAIRS[:3], build_participant("dora", 4, team=2)), "side-disagrees"),
    "partners with different scores": (build_game(*PAIRS[:3], PAIRS[3] | {"score": 2}), "side-disagrees"),
    "one team alone": (build_game(*PAIRS[:2]), "one-side"),
    "two homes": (build_game(*(player | {"home": True} for player in SINGLES)), "two-homes"),
    "two homes of teams": (build_game(PAIRS[0] | {"home": True}, *PAIRS[1:3], PAIRS[3] | {"home": True}), "two-homes"),
    "home in words": (build_game(SINGLES[0] | {"home": "yes"}, SINGLES[1]), "wrong-type"),
    "a number twice": (build_game(SINGLES[0] | {"numbers": {"n": 1}}, SINGLES[1], numbers={"n": 1}), "number-twice"),
    "a number with a bad name": (build_game(*SINGLES, numbers={"N": 1}), "bad-value"),
    "a number with a long name": (build_game(*SINGLES, numbers={"n" * 33: 1}), "bad-value"),
    "a number without a name": (build_game(*SINGLES, numbers={"": 1}), "bad-value"),
    "a number that begins with a digit": (build_game(*SINGLES, numbers={"1n": 1}), "bad-value"),
    "a number beyond 2^53": (build_game(*SINGLES, numbers={"n": 2**53}), "integer-too-large"),
    "a number below -2^53": (build_game(SINGLES[0] | {"numbers": {"n": -(2**53)}}, SINGLES[1]), "integer-too-large"),
    "a fraction": (build_game(*SINGLES, numbers={"n": 0.5}), "not-an-integer"),
    "a text as a number": (build_game(*SINGLES, numbers={"n": "1"}), "not-an-integer"),
    "true as a number": (build_game(*SINGLES, numbers={"n": True}), "not-an-integer"),
    "17 numbers of a game": (build_game(*SINGLES, numbers={f"n{n}": n for n in range(17)}), "bad-value"),
    "17 numbers of a player": (
        build_game(SINGLES[0] | {"numbers": {f"n{n}": n for n in range(17)}}, SINGLES[1]),
        "bad-value",
    ),
    "numbers as a list": (build_game(*SINGLES, numbers=[1]), "wrong-type"),
    "a club with a slash": (build_game(SINGLES[0] | {"club": "a/b"}, SINGLES[1]), "bad-identifier"),
    "an empty club": (build_game(SINGLES[0] | {"club": ""}, SINGLES[1]), "bad-identifier"),
    "team 0": (build_game(*(player | {"team": 0} for player in SINGLES)), "out-of-range"),
    "partners under a rule for persons": (build_game(*PAIRS, name="chess"), "uncounted"),
    "partners under a rule without state": (build_game(*PAIRS, name="padel"), "no-teams"),
}


@pytest.mark.parametrize("case", GAMES)
def test_bad_game_is_refused(case: str, db: str, ratings: Ratings) -> None:
    """A bad game is refused by `import`, `record` and `correct` with its code, and nothing is recorded."""
    event, code = GAMES[case]
    valid_game = build_game(*SINGLES) | {
        "data": build_game(*SINGLES)["data"] | {"game_id": "g-1", "game": event["data"]["game"]}
    }
    result = ratings("import", "-", "--format", "json", db=db, input=json.dumps(valid_game))
    assert json.loads(result.stdout)["appended"] == 1
    before = ratings("status", "--format", "json", db=db).stdout
    corrected_data = event["data"] | {"game_id": "g-1"}
    for command, text in (
        (("import", "-"), json.dumps(event)),
        (("record", "--at", AT), json.dumps(event["data"])),
        (("correct", "g-1", "--reason", "a slip"), json.dumps(corrected_data)),
    ):
        result = ratings(*command, "--format", "json", db=db, input=text)
        assert result.exit_code == 1, (command, result)
        rejected = json.loads(result.stdout)["rejected"]
        assert [rejection["code"] for rejection in rejected] == [code], (command, rejected)
        assert rejected[0]["message"].isprintable()
        assert "this is a bug" not in result.stderr
    assert ratings("status", "--format", "json", db=db).stdout == before
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.parametrize(("name", "ladder"), [("chess", "glicko-chess/all"), ("padel", "elo-padel/all")])
def test_game_of_partners_is_uncounted_by_rules_for_persons(
    name: str, ladder: str, db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A game of partners counts on no ladder whose rule rates persons, and `explain` gives the reason.

    Teams of one person each, and the two players of a seat, are not partners.
    """
    seat_with_substitute = (
        build_participant("cleo", 2, team=2, status="abandoned"),
        build_participant("dora", 2, team=2, status="substitute", replaces="cleo"),
    )
    game_of_singles = build_game(build_participant("anna", 1, team=1), *seat_with_substitute, name=name)
    game_of_singles["data"]["game_id"] = "g-1"
    text = "\n".join(map(json.dumps, (build_game(*PAIRS, name=name), game_of_singles)))
    result = ratings("import", "-", "--allow-uncounted", "--format", "json", db=db, input=text)
    assert (result.exit_code, json.loads(result.stdout)["appended"]) == (0, 2), result
    table = json.loads(ratings("standings", ladder, "--format", "json", db=db).stdout)
    explanation = json.loads(ratings("explain", "g-9", ladder, "--format", "json", db=db).stdout)
    assert (
        explanation["counted"],
        "partners" in explanation["why_not"] or "on one team" in explanation["why_not"],
    ) == (
        False,
        True,
    )
    if name == "padel":
        assert (table["games"], sorted(row["player"] for row in table["rows"])) == (1, ["anna", "cleo", "dora"])
    file = tmp_path / "other.toml"
    text = build_ruleset("", "[params]\nk_per_pair = 8")
    file.write_text(text.replace("glicko-1/1", "pairwise-elo/1").replace('["chess"]', f'["{name}"]'))
    whatif = ratings("whatif", file, "--format", "json", db=db)
    assert whatif.exit_code == 0, whatif
    assert ratings("rebuild", "--check", db=db).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


CHESS = "glicko-chess/all"
SEEDS = {
    "a column of another rule": (("anna", "points=1650"), "seed-column"),
    "a misspelt column": (("anna", "devation=80"), "seed-column"),
    "a column twice": (("anna", "rating=1650", "rating=1660"), "bad-value"),
    "no column": (("anna", "1650"), "bad-value"),
    "an empty value": (("anna", "rating="), "bad-decimal"),
    "not a number": (("anna", "rating=nan"), "bad-decimal"),
    "infinity": (("anna", "rating=inf"), "bad-decimal"),
    "minus infinity": (("anna", "deviation=-Infinity"), "bad-decimal"),
    "an exponent": (("anna", "rating=1e3"), "bad-decimal"),
    "a fraction": (("anna", "rating=1/2"), "bad-decimal"),
    "too fine": (("anna", "deviation=80.0000001"), "finer-than-scale"),
    "too much": (("anna", "rating=10000000001"), "out-of-range"),
    "no deviation": (("anna", "deviation=0"), "out-of-range"),
    "a negative deviation": (("anna", "deviation=-80"), "out-of-range"),
    "a deviation above that of a new player": (("anna", "deviation=10001"), "out-of-range"),
    "a negative count of games": (("anna", "rating=1650", "--games", "-1"), "out-of-range"),
    "a ladder that does not exist": (("anna", "rating=1650", "glicko-go/all"), "unknown-ladder"),
    "a rating beyond exact arithmetic": (("anna", "rating=1000001", "club-elo-tennis/all"), "out-of-range"),
}


@pytest.mark.parametrize("case", SEEDS)
def test_bad_seed_is_refused(case: str, db: str, ratings: Ratings) -> None:
    """A seed that no player of the ladder can have is refused by `seed` and by `import`, with its code."""
    (player, *values), code = SEEDS[case]
    ladder = values.pop() if "/all" in values[-1] else CHESS
    before = ratings("status", "--format", "json", db=db).stdout
    result = ratings("seed", ladder, player, *values, "--reason", "a list", "--format", "json", db=db)
    if code == "unknown-ladder":
        assert result.exit_code == 2, result
    else:
        assert (result.exit_code, [rejection["code"] for rejection in json.loads(result.stdout)["rejected"]]) == (
            1,
            [code],
        ), result
    assert "this is a bug" not in result.stderr
    if "--games" not in values and all(value.count("=") == 1 for value in values) and len(values) == 1:
        state = dict(value.split("=") for value in values)
        data = {"ladder": ladder, "player": player, "state": state}
        line = json.dumps({"type": "player.seeded", "occurred_at": AT, "data": data})
        result = ratings("import", "-", "--format", "json", db=db, input=line)
        assert [rejection["code"] for rejection in json.loads(result.stdout)["rejected"]] == [code], result
    assert ratings("status", "--format", "json", db=db).stdout == before


FIELD = [build_participant(f"player number {number}", number) for number in range(1, 2_501)]


def test_game_larger_than_a_record_is_refused(one_db: str, ratings: Ratings) -> None:
    """A game of 2,500 participants is refused with the possible number; 1,200 participants are recorded."""
    before = ratings("status", "--format", "json", db=one_db).stdout
    result = ratings("import", "-", "--format", "json", db=one_db, input=json.dumps(build_game(*FIELD, name="chess")))
    (rejection,) = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, rejection["code"]) == (1, "record-too-large")
    assert rejection["message"].endswith(
        "at most 65,535 are allowed; shorten its texts (a game has room for about 1,800 participants)"
    )
    assert ratings("status", "--format", "json", db=one_db).stdout == before
    result = ratings(
        "record", "-q", "--at", AT, db=one_db, input=json.dumps(build_game(*FIELD[:1_200], name="go")["data"])
    )
    assert result.exit_code == 0, result


RULESET_WITH_NEEDS = """
id = "needs"
version = "1"
rule = "pairwise-elo/2"
effective_from = 2000-01-01
time_zone = "UTC"
score_decimals = 1
[scope]
game = ["squash"]
[numbers.length]
min = 1
max = 9
absent = "refuse"
[params]
margin = "ln"
"""
SCORED = build_participant("anna", 1, score="7.5"), build_participant("ben", 2, score=3)
UNSCORABLE_GAMES = {
    "no scores": (
        build_game(*SINGLES, name="squash", numbers={"length": 5}),
        "uncounted",
        'a score is missing; margin = "ln" needs',
    ),
    "a score of one alone": (
        build_game(SCORED[0], SINGLES[1], name="squash", numbers={"length": 5}),
        "uncounted",
        "a score is missing",
    ),
    "no number": (
        build_game(*SCORED, name="squash"),
        "number-missing",
        "anna has no numbers.length, which needs@1 requires",
    ),
    "a number of one alone": (
        build_game(SCORED[0] | {"numbers": {"length": 5}}, SCORED[1], name="squash"),
        "number-missing",
        "ben has no numbers",
    ),
    "a number above its range": (
        build_game(*SCORED, name="squash", numbers={"length": 10}),
        "number-out-of-range",
        "is 10; needs@1 accepts 1 to 9",
    ),
    "a number below its range": (
        build_game(*SCORED, name="squash", numbers={"length": 0}),
        "number-out-of-range",
        "is 0; needs@1 accepts 1 to 9",
    ),
    "a score too fine": (
        build_game(build_participant("anna", 1, score="7.25"), SCORED[1], name="squash", numbers={"length": 5}),
        "score-too-fine",
        "(score_decimals = 1)",
    ),
    "a score with more decimals than any ruleset reads": (
        build_game(build_participant("anna", 1, score="7.1234567"), SCORED[1], name="squash", numbers={"length": 5}),
        "score-too-fine",
        "the score of anna has more decimals than needs@1 allows (score_decimals = 1)",
    ),
    "a score too large": (
        build_game(build_participant("anna", 1, score=2**53 - 1), SCORED[1], name="squash", numbers={"length": 5}),
        "integer-too-large",
        "it exceeds 2^53 - 1",
    ),
    "a negative weight": (
        build_game(*SCORED, name="squash", numbers={"length": 5, "weight": -1}),
        "uncounted",
        "numbers.weight is -1; it must be from 0 to",
    ),
}


@pytest.mark.parametrize("case", UNSCORABLE_GAMES)
def test_game_that_its_rule_cannot_score_is_refused(case: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game whose values are missing or invalid for its rule is refused by `import`, `record` and `correct`; with
    --allow-uncounted it counts for nothing."""
    event, code, message = UNSCORABLE_GAMES[case]
    (tmp_path / "needs.toml").write_text(RULESET_WITH_NEEDS, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "needs.toml", db=db).exit_code == 0
    valid_game = build_game(*SCORED, name="squash", numbers={"length": 5})["data"] | {"game_id": "g-1"}
    assert ratings("record", "-q", "--at", AT, db=db, input=json.dumps(valid_game)).exit_code == 0
    before = ratings("status", "--format", "json", db=db).stdout
    for command, data in (
        (("import", "-"), event),
        (("record", "--at", AT), event["data"]),
        (("correct", "g-1", "--reason", "a slip"), event["data"] | {"game_id": "g-1"}),
    ):
        result = ratings(*command, "--format", "json", db=db, input=json.dumps(data))
        (rejection,) = json.loads(result.stdout)["rejected"]
        assert (result.exit_code, rejection["code"]) == (1, code), (command, result)
        assert message in rejection["message"]
        assert "needs cannot count this game: " in rejection["message"]
    assert ratings("status", "--format", "json", db=db).stdout == before
    result = ratings("import", "-", "--allow-uncounted", "--format", "json", db=db, input=json.dumps(event))
    assert json.loads(result.stdout)["appended"] == 1
    table = json.loads(ratings("standings", "needs", "--format", "json", db=db).stdout)
    assert (table["games"], [row["games"] for row in table["rows"]]) == (1, [1, 1])


INVALID_SECOND_VERSIONS = {
    "another scale of points": ('rule = "glicko-1/1"', 'rule = "placement-points/2"\n', "rule: "),
    "another period": ("[scope]", 'period = "week"\n[scope]', "period: "),
    "other seasons": ("[scope]", "season_by = [1]\n[scope]", "season_by: "),
}


@pytest.mark.parametrize("case", INVALID_SECOND_VERSIONS)
def test_version_that_changes_shared_settings_is_refused(
    case: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A version whose rule has another scale of points, other periods or other seasons is refused."""
    old, new, key = INVALID_SECOND_VERSIONS[case]
    file, text = tmp_path / "mine.toml", build_ruleset().replace('id = "chess"', 'id = "mine"')
    file.write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", file, db=one_db).exit_code == 0
    second_version = text.replace('version = "1"', 'version = "2"').replace(old, new)
    if "placement" in new:
        second_version += "[params]\npoints = [3, 1]\n"
    file.write_text(second_version, encoding="utf-8")
    result = ratings("rules", "publish", file, db=one_db)
    assert (result.exit_code, "partition-changed: " in result.stderr) == (1, True), result
    assert key in result.stderr
    assert "mine@2" not in ratings("rules", "list", db=one_db).stdout


def test_check_without_scored_games_fails(
    one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If none of a thousand random games is scored, `rules check` fails and names the option that helps."""
    rule = load_built_in_rule("glicko-1/1")._replace(check=lambda n, columns, params: "never on a Monday", sample=None)
    substitute_rule(monkeypatch, rule, "glicko-1/1")
    file = tmp_path / "mine.toml"
    file.write_text(build_ruleset(), encoding="utf-8")
    result = ratings("rules", "check", file, db=one_db)
    assert result.exit_code == 1
    assert "chess@1 was not checked: its rule scored no random game" in result.stdout
    assert "1,000 not scored: never on a Monday" in result.stdout
    assert "--column NAME=LOW..HIGH" in result.stdout


def build_seed(player: str, **state: str) -> Event:
    """Return a seed on the Glicko ladder."""
    data = {"ladder": CHESS, "player": player, "state": state}
    return {"type": "player.seeded", "occurred_at": AT, "data": data}


RENAME = {"type": "player.renamed", "occurred_at": AT, "data": {"player": "anna", "new_player": "anne"}}
LATE_SEEDS = {
    "a seed after a game": ((build_game(*SINGLES, name="chess"), build_seed("anna", rating="1600")), 2, "seed-late"),
    "a second seed": (
        (build_seed("anna", rating="1600"), build_seed("anna", rating="1600", deviation="80")),
        2,
        "seed-exists",
    ),
    "different seeds of one person": (
        (build_seed("anna", rating="1600"), build_seed("anne", rating="1600", deviation="80"), RENAME),
        3,
        "seeds-differ",
    ),
}


@pytest.mark.parametrize("case", LATE_SEEDS)
def test_late_or_second_seed_is_refused(case: str, db: str, ratings: Ratings) -> None:
    """An import with a late, second or different seed is refused as a whole, and the message says what helps."""
    events, line, code = LATE_SEEDS[case]
    before = ratings("status", "--format", "json", db=db).stdout
    text = "\n".join(map(json.dumps, events))
    result = ratings("import", "-", "--new-names", "accept", "--format", "json", db=db, input=text)
    (rejection,) = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, rejection["line"], rejection["code"]) == (1, line, code)
    assert "ratings adjust" in rejection["message"] or "leave one out" in rejection["message"]
    assert ratings("status", "--format", "json", db=db).stdout == before
