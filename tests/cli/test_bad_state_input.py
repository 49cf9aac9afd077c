"""What rules with state refuse, by the command line: each bad input has a code, and nothing of it is recorded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_rules import load_built_in_rule, substitute_rule

Ratings = Callable[..., Any]
Event = dict[str, Any]
AT = "2024-02-01T12:00:00Z"

GLICKO = """
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
CLUB = GLICKO.replace("glicko-1/1", "pairwise-elo/2")


def a_club(ratings: Ratings, url: str) -> None:
    """Make a ledger of chess under Glicko, tennis under club Elo and padel under Elo, which has no state."""
    for name, system in (("chess", "glicko"), ("tennis", "club-elo"), ("padel", "elo")):
        assert ratings("init", "--for", name, "--zone", "UTC", "--system", system, db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=a_club)


def ruleset(members: str = "", tables: str = "", text: str = GLICKO) -> str:
    """A ruleset file with further members and tables."""
    return text.format(members=members, tables=tables)


# text of a ruleset, and what its refusal names
RULESETS = {
    "a start beyond bounds": (ruleset("", "[params]\nstart = 1000001"), "params.start"),
    "a negative deviation": (ruleset("", "[params]\nstart_deviation = -1"), "params.start_deviation"),
    "a deviation of zero": (ruleset("", "[params]\nstart_deviation = 0"), "params.start_deviation"),
    "a deviation of words": (ruleset("", '[params]\nstart_deviation = "wide"'), "params.start_deviation"),
    "a deviation too large": (ruleset("", "[params]\nstart_deviation = 10001"), "params.start_deviation"),
    "a deviation too fine": (ruleset("", '[params]\nstart_deviation = "350.0000001"'), "params.start_deviation"),
    "a float": (ruleset("", "[params]\nstart_deviation = 350.5"), "params.start_deviation"),
    "not a number": (ruleset("", "[params]\nstart_deviation = nan"), "params.start_deviation"),
    "infinity": (ruleset("", "[params]\nc = inf"), "params.c"),
    "division by zero": (ruleset("", '[params]\nc = "1/0"'), "params.c"),
    "a floor above the start": (ruleset("", "[params]\ndeviation_floor = 400"), "params.deviation_floor"),
    "an unknown parameter": (ruleset("", "[params]\ntau = 1"), "params.tau"),
    "a period of zero length": (ruleset('period = ""'), "period"),
    "a period of zero days": (ruleset("period = 0"), "period"),
    "an unknown period": (ruleset('period = "fortnight"'), "period"),
    "events of nothing": (ruleset('period = "event"'), "period_by"),
    "events without period": (ruleset('period_by = "league"'), "period_by"),
    "events by an unknown member": (ruleset('period = "event"\nperiod_by = "group"'), "period_by"),
    "events by a number of a bad name": (ruleset('period = "event"\nperiod_by = "numbers.Round"'), "period_by"),
    "a period of a rule by game": (ruleset('period = "week"', "", CLUB), "period"),
    "a season of zero": (ruleset("season_by = [0]"), "season_by"),
    "a season of 13": (ruleset("season_by = [1, 13]"), "season_by"),
    "seasons of a word": (ruleset('season_by = "league"'), "season_by"),
    "clubs of a rule that compares players": (ruleset('entrant = "club"'), "entrant"),
    "an unknown entrant": (ruleset('entrant = "team"'), "entrant"),
    "an unknown order": (ruleset('score_order = "middle"'), "score_order"),
    "negative decimals": (ruleset("score_decimals = -1"), "score_decimals"),
    "seven decimals": (ruleset("score_decimals = 7"), "score_decimals"),
    "a number of a bad name": (ruleset("", "[numbers.Round]\nmin = 0"), "numbers.Round"),
    "a long name of a number": (ruleset("", f"[numbers.{'n' * 33}]\nmin = 0"), f"numbers.{'n' * 33}"),
    "a range that is empty": (ruleset("", "[numbers.n]\nmin = 2\nmax = 1"), "numbers.n"),
    "a range beyond 2^53": (ruleset("", "[numbers.n]\nmin = -9007199254740992"), "numbers.n.min"),
    "absent out of range": (ruleset("", "[numbers.n]\nmin = 1\nabsent = 0"), "numbers.n"),
    "absent in words": (ruleset("", '[numbers.n]\nabsent = "zero"'), "numbers.n.absent"),
    "17 numbers": (ruleset("", "".join(f"[numbers.n{n}]\n" for n in range(17))), "numbers"),
    "an unknown member of a number": (ruleset("", "[numbers.n]\nstep = 2"), "numbers.n.step"),
    "K of zero": (ruleset("", "[params]\nk = 0", CLUB), "params.k"),
    "K that never ends": (ruleset("", "[params]\nk = [{below = 30, k = 40}]", CLUB), "params.k"),
    "K steps out of order": (
        ruleset("", "[params]\nk = [{below = 30, k = 40}, {below = 20, k = 30}, {k = 20}]", CLUB), "params.k",
    ),
    "an unknown margin": (ruleset("", '[params]\nmargin = "log"', CLUB), "params.margin"),
    "a negative kappa": (ruleset("", "[params]\nkappa = -1", CLUB), "params.kappa"),
    "a reversion above one": (ruleset("", '[params]\nreversion = "3/2"', CLUB), "params.reversion"),
    "unknown teams": (ruleset("", '[params]\nteams = "best"', CLUB), "params.teams"),
}  # fmt: skip


@pytest.mark.parametrize("what", RULESETS)
def test_bad_ruleset_is_refused_by_key(what: str, one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A ruleset that cannot be used is refused by check and publish, with the key and the line."""
    text, key = RULESETS[what]
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    before = ratings("status", "--format", "json", db=one_db).stdout
    checked, published = (ratings("rules", name, file, db=one_db) for name in ("check", "publish"))
    assert (checked.exit_code, published.exit_code) == (1, 1), (checked, published)
    for told in (checked.stdout, published.stderr):
        assert f"{key}: " in told, told
        assert "Traceback" not in told
        assert "this is a bug" not in told
    assert ratings("status", "--format", "json", db=one_db).stdout == before


def seat(player: str, place: int | None = None, **members: Any) -> Event:
    """A participant."""
    return {"player": player, **({} if place is None else {"place": place}), **members}


def game(*participants: Event, name: str = "tennis", **members: Any) -> Event:
    """A game of these participants."""
    data = {"game_id": "g-9", "game": name, **members, "participants": [*participants]}
    return {"type": "game.recorded", "occurred_at": AT, "data": data}


PAIRS = (
    seat("anna", 1, team=1, score=6), seat("ben", 1, team=1, score=6),
    seat("cleo", 3, team=2, score=3), seat("dora", 3, team=2, score=3),
)  # fmt: skip
SINGLES = seat("anna", 1), seat("ben", 2)


def without(seat: Event, name: str) -> Event:
    return {member: value for member, value in seat.items() if member != name}


GAMES = {
    "half a team": (game(*PAIRS[:3], without(PAIRS[3], "team")), "team-missing"),
    "one player outside the teams": (game(*PAIRS, seat("emil", 5)), "team-missing"),
    "partners with different places": (game(*PAIRS[:3], seat("dora", 4, team=2)), "side-disagrees"),
    "partners with different scores": (game(*PAIRS[:3], PAIRS[3] | {"score": 2}), "side-disagrees"),
    "one team alone": (game(*PAIRS[:2]), "one-side"),
    "two homes": (game(*(one | {"home": True} for one in SINGLES)), "two-homes"),
    "two homes of teams": (game(PAIRS[0] | {"home": True}, *PAIRS[1:3], PAIRS[3] | {"home": True}), "two-homes"),
    "home in words": (game(SINGLES[0] | {"home": "yes"}, SINGLES[1]), "wrong-type"),
    "a number twice": (game(SINGLES[0] | {"numbers": {"n": 1}}, SINGLES[1], numbers={"n": 1}), "number-twice"),
    "a number of a bad name": (game(*SINGLES, numbers={"N": 1}), "bad-value"),
    "a number of a long name": (game(*SINGLES, numbers={"n" * 33: 1}), "bad-value"),
    "a number without a name": (game(*SINGLES, numbers={"": 1}), "bad-value"),
    "a number that begins with a digit": (game(*SINGLES, numbers={"1n": 1}), "bad-value"),
    "a number beyond 2^53": (game(*SINGLES, numbers={"n": 2**53}), "integer-too-large"),
    "a number below -2^53": (game(SINGLES[0] | {"numbers": {"n": -(2**53)}}, SINGLES[1]), "integer-too-large"),
    "a fraction": (game(*SINGLES, numbers={"n": 0.5}), "not-an-integer"),
    "a text as a number": (game(*SINGLES, numbers={"n": "1"}), "not-an-integer"),
    "true as a number": (game(*SINGLES, numbers={"n": True}), "not-an-integer"),
    "17 numbers of a game": (game(*SINGLES, numbers={f"n{n}": n for n in range(17)}), "bad-value"),
    "17 numbers of a player": (
        game(SINGLES[0] | {"numbers": {f"n{n}": n for n in range(17)}}, SINGLES[1]), "bad-value",
    ),
    "numbers as a list": (game(*SINGLES, numbers=[1]), "wrong-type"),
    "a club with a slash": (game(SINGLES[0] | {"club": "a/b"}, SINGLES[1]), "bad-identifier"),
    "an empty club": (game(SINGLES[0] | {"club": ""}, SINGLES[1]), "bad-identifier"),
    "team 0": (game(*(one | {"team": 0} for one in SINGLES)), "out-of-range"),
    "partners under a rule for persons": (game(*PAIRS, name="chess"), "uncounted"),
    "partners under a rule without state": (game(*PAIRS, name="padel"), "no-teams"),
}  # fmt: skip


@pytest.mark.parametrize("what", GAMES)
def test_bad_game_is_refused(what: str, db: str, ratings: Ratings) -> None:
    """A bad game is refused by import, record and correct, with its code; nothing is recorded."""
    event, code = GAMES[what]
    sound = game(*SINGLES) | {"data": game(*SINGLES)["data"] | {"game_id": "g-1", "game": event["data"]["game"]}}
    told = ratings("import", "-", "--format", "json", db=db, input=json.dumps(sound))
    assert json.loads(told.stdout)["appended"] == 1
    before = ratings("status", "--format", "json", db=db).stdout
    changed = event["data"] | {"game_id": "g-1"}
    for command, text in (
        (("import", "-"), json.dumps(event)),
        (("record", "--at", AT), json.dumps(event["data"])),
        (("correct", "g-1", "--reason", "a slip"), json.dumps(changed)),
    ):
        told = ratings(*command, "--format", "json", db=db, input=text)
        assert told.exit_code == 1, (command, told)
        rejected = json.loads(told.stdout)["rejected"]
        assert [one["code"] for one in rejected] == [code], (command, rejected)
        assert rejected[0]["message"].isprintable()
        assert "this is a bug" not in told.stderr
    assert ratings("status", "--format", "json", db=db).stdout == before
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.parametrize(("name", "ladder"), [("chess", "glicko-chess/all"), ("padel", "elo-padel/all")])
def test_partners_are_never_tied_opponents(name: str, ladder: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Recorded all the same, a game of partners counts on no ladder whose rule rates persons, and it says why.

    Teams of one person each, and the two players of a seat, are no partners.
    """
    left = seat("cleo", 2, team=2, status="abandoned"), seat("dora", 2, team=2, status="substitute", replaces="cleo")
    alone = game(seat("anna", 1, team=1), *left, name=name)
    alone["data"]["game_id"] = "g-1"
    text = "\n".join(map(json.dumps, (game(*PAIRS, name=name), alone)))
    told = ratings("import", "-", "--allow-uncounted", "--format", "json", db=db, input=text)
    assert (told.exit_code, json.loads(told.stdout)["appended"]) == (0, 2), told
    table = json.loads(ratings("standings", ladder, "--format", "json", db=db).stdout)
    explained = json.loads(ratings("explain", "g-9", ladder, "--format", "json", db=db).stdout)
    assert (explained["counted"], "partners" in explained["why_not"] or "on one team" in explained["why_not"]) == (
        False,
        True,
    )
    if name == "padel":
        assert (table["games"], sorted(row["player"] for row in table["rows"])) == (1, ["anna", "cleo", "dora"])
    file = tmp_path / "other.toml"
    text = ruleset("", "[params]\nk_per_pair = 8")
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


@pytest.mark.parametrize("what", SEEDS)
def test_bad_seed_is_refused(what: str, db: str, ratings: Ratings) -> None:
    """A seed that no player of the ladder can have is refused by `seed` and by an import, with its code."""
    (player, *values), code = SEEDS[what]
    ladder = values.pop() if "/all" in values[-1] else CHESS
    before = ratings("status", "--format", "json", db=db).stdout
    told = ratings("seed", ladder, player, *values, "--reason", "a list", "--format", "json", db=db)
    if code == "unknown-ladder":
        assert told.exit_code == 2, told
    else:
        assert (told.exit_code, [one["code"] for one in json.loads(told.stdout)["rejected"]]) == (1, [code]), told
    assert "this is a bug" not in told.stderr
    if "--games" not in values and all(value.count("=") == 1 for value in values) and len(values) == 1:
        state = dict(value.split("=") for value in values)
        data = {"ladder": ladder, "player": player, "state": state}
        line = json.dumps({"type": "player.seeded", "occurred_at": AT, "data": data})
        told = ratings("import", "-", "--format", "json", db=db, input=line)
        assert [one["code"] for one in json.loads(told.stdout)["rejected"]] == [code], told
    assert ratings("status", "--format", "json", db=db).stdout == before


FIELD = [seat(f"player number {number}", number) for number in range(1, 2_501)]


def test_field_larger_than_a_record_is_refused(one_db: str, ratings: Ratings) -> None:
    """A game of 2,500 participants fits no record: it is refused with the number that does, and 1,200 are recorded."""
    before = ratings("status", "--format", "json", db=one_db).stdout
    told = ratings("import", "-", "--format", "json", db=one_db, input=json.dumps(game(*FIELD, name="chess")))
    (rejection,) = json.loads(told.stdout)["rejected"]
    assert (told.exit_code, rejection["code"]) == (1, "record-too-large")
    assert rejection["message"].endswith("at most 65,535 fit: a game has about 1,800 participants at most")
    assert ratings("status", "--format", "json", db=one_db).stdout == before
    told = ratings("record", "-q", "--at", AT, db=one_db, input=json.dumps(game(*FIELD[:1_200], name="go")["data"]))
    assert told.exit_code == 0, told


NEEDS = """
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
SCORED = seat("anna", 1, score="7.5"), seat("ben", 2, score=3)
LACKING = {
    "no scores": (game(*SINGLES, name="squash", numbers={"length": 5}), "uncounted", "a score is missing, which"),
    "a score of one alone": (
        game(SCORED[0], SINGLES[1], name="squash", numbers={"length": 5}), "uncounted", "a score is missing",
    ),
    "no number": (game(*SCORED, name="squash"), "number-missing", "anna has no numbers.length, which needs@1 requires"),
    "a number of one alone": (
        game(SCORED[0] | {"numbers": {"length": 5}}, SCORED[1], name="squash"), "number-missing", "ben has no numbers",
    ),
    "a number above its range": (
        game(*SCORED, name="squash", numbers={"length": 10}), "number-out-of-range", "is 10; needs@1 accepts 1 to 9",
    ),
    "a number below its range": (
        game(*SCORED, name="squash", numbers={"length": 0}), "number-out-of-range", "is 0; needs@1 accepts 1 to 9",
    ),
    "a score too fine": (
        game(seat("anna", 1, score="7.25"), SCORED[1], name="squash", numbers={"length": 5}),
        "score-too-fine", "(score_decimals = 1)",
    ),
    "a score too large": (
        game(seat("anna", 1, score=2**53 - 1), SCORED[1], name="squash", numbers={"length": 5}),
        "integer-too-large", "it exceeds 2^53 - 1",
    ),
    "a negative weight": (
        game(*SCORED, name="squash", numbers={"length": 5, "weight": -1}), "uncounted", "numbers.weight is from 0 to",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LACKING)
def test_game_without_what_its_rule_needs_is_refused(what: str, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A game that lacks what a rule reads is refused by import, record and correct; recorded, it counts for nothing."""
    event, code, why = LACKING[what]
    (tmp_path / "needs.toml").write_text(NEEDS, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "needs.toml", db=db).exit_code == 0
    sound = game(*SCORED, name="squash", numbers={"length": 5})["data"] | {"game_id": "g-1"}
    assert ratings("record", "-q", "--at", AT, db=db, input=json.dumps(sound)).exit_code == 0
    before = ratings("status", "--format", "json", db=db).stdout
    for command, given in (
        (("import", "-"), event),
        (("record", "--at", AT), event["data"]),
        (("correct", "g-1", "--reason", "a slip"), event["data"] | {"game_id": "g-1"}),
    ):
        told = ratings(*command, "--format", "json", db=db, input=json.dumps(given))
        (rejection,) = json.loads(told.stdout)["rejected"]
        assert (told.exit_code, rejection["code"]) == (1, code), (command, told)
        assert why in rejection["message"]
        assert "needs cannot count this game: " in rejection["message"]
    assert ratings("status", "--format", "json", db=db).stdout == before
    told = ratings("import", "-", "--allow-uncounted", "--format", "json", db=db, input=json.dumps(event))
    assert json.loads(told.stdout)["appended"] == 1
    table = json.loads(ratings("standings", "needs", "--format", "json", db=db).stdout)
    assert (table["games"], [row["games"] for row in table["rows"]]) == (1, [1, 1])


SEQUELS = {
    "another scale of points": ('rule = "glicko-1/1"', 'rule = "placement-points/2"\n', "rule: "),
    "another period": ("[scope]", 'period = "week"\n[scope]', "period: "),
    "other seasons": ("[scope]", "season_by = [1]\n[scope]", "season_by: "),
}


@pytest.mark.parametrize("what", SEQUELS)
def test_version_that_changes_what_all_share_is_refused(
    what: str, one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """A version whose rule counts in other units, or that has other periods or seasons, is refused."""
    old, new, key = SEQUELS[what]
    file, text = tmp_path / "mine.toml", ruleset().replace('id = "chess"', 'id = "mine"')
    file.write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", file, db=one_db).exit_code == 0
    sequel = text.replace('version = "1"', 'version = "2"').replace(old, new)
    if "placement" in new:
        sequel += "[params]\npoints = [3, 1]\n"
    file.write_text(sequel, encoding="utf-8")
    told = ratings("rules", "publish", file, db=one_db)
    assert (told.exit_code, "partition-changed: " in told.stderr) == (1, True), told
    assert key in told.stderr
    assert "mine@2" not in ratings("rules", "list", db=one_db).stdout


def test_check_that_scores_nothing_is_refused(
    one_db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand drawn games none is scored: `rules check` refuses, with what would let it score some."""
    rule = load_built_in_rule("glicko-1/1")._replace(check=lambda n, columns, params: "never on a Monday", sample=None)
    substitute_rule(monkeypatch, rule, "glicko-1/1")
    file = tmp_path / "mine.toml"
    file.write_text(ruleset(), encoding="utf-8")
    told = ratings("rules", "check", file, db=one_db)
    assert told.exit_code == 1
    assert "chess@1 is not checked: no drawn game was scored" in told.stdout
    assert "1,000 not scored: never on a Monday" in told.stdout
    assert "--column NAME=LOW..HIGH" in told.stdout


def seeded(player: str, **state: str) -> Event:
    """A seed on the ladder of Glicko."""
    data = {"ladder": CHESS, "player": player, "state": state}
    return {"type": "player.seeded", "occurred_at": AT, "data": data}


RENAME = {"type": "player.renamed", "occurred_at": AT, "data": {"player": "anna", "new_player": "anne"}}
LATE = {
    "a seed after a game": ((game(*SINGLES, name="chess"), seeded("anna", rating="1600")), 2, "seed-late"),
    "a second seed": ((seeded("anna", rating="1600"), seeded("anna", rating="1600", deviation="80")), 2, "seed-exists"),
    "different seeds of one person": (
        (seeded("anna", rating="1600"), seeded("anne", rating="1600", deviation="80"), RENAME), 3, "seeds-differ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LATE)
def test_seed_that_comes_too_late_or_twice_is_refused(what: str, db: str, ratings: Ratings) -> None:
    """Of an import with such a seed nothing is recorded, and the message names the command that helps."""
    events, line, code = LATE[what]
    before = ratings("status", "--format", "json", db=db).stdout
    text = "\n".join(map(json.dumps, events))
    told = ratings("import", "-", "--new-names", "accept", "--format", "json", db=db, input=text)
    (rejection,) = json.loads(told.stdout)["rejected"]
    assert (told.exit_code, rejection["line"], rejection["code"]) == (1, line, code)
    assert "ratings adjust" in rejection["message"] or "leave one out" in rejection["message"]
    assert ratings("status", "--format", "json", db=db).stdout == before
