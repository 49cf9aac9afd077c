"""Calls into rules with state: each result is checked, and an error in a rule is reported with file and line."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import state_rules
from builders import build_draft, build_event, build_game_draft
from ledgers import append_drafts, create_ledger
from own_rules import publish_without_trial, substitute_rules
from state_rules import SCALE

import ratings_ledger as rl
from ratings_ledger.rules import ONE, UNITS_MAX, Rule, Term, units

# show both state columns in answers
BY_GAME = state_rules.BY_GAME._replace(shown=("rating", "k"))
BY_PERIOD = state_rules.BY_PERIOD._replace(shown=("rating", "k"))

START = {"anna": ("1500", "40"), "ben": ("1500", "20"), "cleo": ("1900", "10")}
STATE = {"anna": ("1600", "12"), "ben": ("1601", "14")}
# by ladder: rule, members of the ruleset, the players' states, and the games with their days and players
LADDERS: dict[str, tuple[str, str, dict[str, tuple[str, str]], list[tuple[str, str, str]]]] = {
    "own": ("own/1", "", START, [("g-1", "2024-01-01", "anna ben=cleo")]),
    "daily": (
        "daily/1", 'period = "day"', START, [("d-1", "2024-01-01", "anna ben"), ("d-2", "2024-01-01", "cleo anna")],
    ),
    "elo": ("pairwise-elo/1", "params = {k_per_pair = 8}", {}, [("e-1", "2024-01-01", "anna ben")]),
    "years": (
        "own/1", "season_by = [1]", STATE, [("y-1", "2023-12-30", "anna ben"), ("y-2", "2024-01-02", "anna ben")],
    ),
}  # fmt: skip


def write_ruleset(name: str, version: str = "1", since: str = "2000-01-01") -> str:
    """Return the text of a version of the ruleset with this name, which scores the game of the same name."""
    rule, members, _, _ = LADDERS[name]
    return (
        f'id = "{name}"\nversion = "{version}"\nrule = "{rule}"\neffective_from = {since}\ntime_zone = "UTC"\n'
        f'{members}\n[scope]\ngame = ["{name}"]\n'
    )


def make_ledger(_: Callable[..., Any], url: str) -> None:
    """Make a ledger with all ladders."""
    create_ledger(url)
    with pytest.MonkeyPatch.context() as patch:
        substitute_rules(patch, {"own/1": BY_GAME, "daily/1": BY_PERIOD})
        for name in LADDERS:
            publish_without_trial(url, write_ruleset(name))
    for name, (_, _, states, games) in LADDERS.items():
        for player, (rating, k) in states.items():
            data = {"ladder": name, "player": player, "state": {"rating": rating, "k": k}, "games": 3}
            append_drafts(url, build_draft(build_event("player.seeded", "2023-01-01T12:00:00Z", **data)))
        for game_id, day, players in games:
            append_drafts(url, build_game_draft(game_id, *players.split(), at=f"{day}T12:00:00Z", game=name))


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def ask(
    db: str,
    patch: pytest.MonkeyPatch,
    question: Callable[[rl.Snapshot], Any],
    rule: Rule = BY_GAME,
    by_period: Rule = BY_PERIOD,
    as_of: str | None = None,
) -> Any:
    """Return the answer to a question about the ledger, whose ladders have these rules."""
    substitute_rules(patch, {"own/1": rule, "daily/1": by_period})
    with rl.open(db) as ledger:
        return question(ledger.at(as_of=as_of))


def find_failure(db: str, patch: pytest.MonkeyPatch, question: Callable[[rl.Snapshot], Any], *rules: Rule) -> str:
    """Return the message of the failure that a question raises, without the ladder's name and the position."""
    with pytest.raises((rl.RuleFailed, rl.CannotPredict)) as failure:
        ask(db, patch, question, *rules)
    message = re.fullmatch(
        r"(?:own|daily|years): the rule (?:failed|cannot score this game)( at position \d+(?: \(game \S+\))?)?: (.*)",
        str(failure.value),
    )
    assert message is not None, failure.value
    return message[2]


def list_states(view: rl.Snapshot, ladder: str) -> dict[str, tuple[Fraction, Fraction]]:
    """Return rating and K of every player, in units."""
    states = {row.player: row.state_exact for row in view.standings(ladder)}
    return {
        player: (Fraction(state["rating"]) * SCALE, Fraction(state["k"]) * SCALE)  # type: ignore[index]
        for player, state in sorted(states.items())
    }


def test_game_changes_every_column_and_mints_the_difference(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A game changes every column, and an unbalanced sum of changes is minted."""
    states = ask(db, monkeypatch, lambda view: list_states(view, "own"), as_of="2024-01-01")
    explanation = ask(db, monkeypatch, lambda view: view.explain("own", "g-1"))
    # expected score 1/2 against player 1 and 1/11 against player 2: 20 + 36.36, -10 + 8.18, and -9.09 - 4.09
    assert [rating // SCALE for rating, _ in states.values()] == [1556, 1498, 1886]
    assert [k for _, k in states.values()] == [36 * SCALE, 18 * SCALE, 10 * SCALE]
    accounts = {account.account: -account.amount * SCALE for account in explanation.accounts}
    assert accounts == {"minted": sum(rating for rating, _ in states.values()) - 4900 * SCALE, "burned": 0}


def test_rule_of_contract_1_has_one_column(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule without state is called with its points, and its changes become states."""
    explanation = ask(db, monkeypatch, lambda view: view.explain("elo", "e-1"))
    assert [(row.player, row.after) for row in explanation.players] == [("anna", 1004), ("ben", 996)]
    assert [[term.amount for term in row.terms] for row in explanation.players] == [[4], [-4]]
    assert [account.amount for account in explanation.accounts] == [0, 0]


def test_period_is_scored_from_the_states_at_its_start(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A period is scored from the states at its start, and its terms belong to games."""
    explanation = ask(db, monkeypatch, lambda view: view.explain("daily", "d-1"))
    states = ask(db, monkeypatch, lambda view: list_states(view, "daily"), as_of="2024-01-01")
    # 20 - 40/11 for the first player, -10 for the second, 10/11 for the third
    gains = [(rating / SCALE - 1500).limit_denominator(11) for rating, _ in states.values()]
    assert gains == [Fraction(180, 11), -10, 400 + Fraction(10, 11)]
    accounts = {account.account: -account.amount * SCALE for account in explanation.accounts}
    assert accounts == {"minted": sum(rating for rating, _ in states.values()) - 4900 * SCALE, "burned": 0}
    terms = [(term.term, term.game_id) for term in explanation.players[0].terms]
    assert terms == [("vs ben", "d-1"), ("vs cleo", "d-2")]


def score_with_index_error(n, before, columns, constants, table, after):
    return before[0][n]


def score_infinity(n, before, columns, constants, table, after):
    after[0][0] = units(1e300 * 1e300, SCALE)
    return 0


def mint(amount: int) -> Callable[..., int]:
    """Return a function that mints this amount and changes points by 5."""

    def score(n, before, columns, constants, table, after):
        after[0][0] += 5
        return amount

    return score


def fill(column: int, value: Any) -> Callable[..., int]:
    """Return a function that sets a column of player 1 to this value."""

    def score(n, before, columns, constants, table, after):
        after[column][1] = value
        return 0

    return score


def add_row(n, before, columns, constants, table, after):
    after[1].append(0)
    return 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (score_with_index_error, "IndexError: list index out of range (test_state_rule_calls.py, line "),
        (score_infinity, "OverflowError: the result is not a number, or too large (test_state_rule_calls.py, line "),
        (
            mint(4),
            "the books do not balance: score minted 4, and the changes sum to 5; it must mint at least 0 and at "
            "least this sum (test_state_rule_calls.py",
        ),
        (
            mint(-1),
            "the books do not balance: score minted -1, and the changes sum to 5; it must mint at least 0 and at "
            "least this sum (test_state_rule_calls.py",
        ),
        (mint(UNITS_MAX + 1), "the points grow out of bounds: score minted more than "),
        (fill(1, UNITS_MAX + 1), "score set k to 10,000,000,000,000,001 units, which is out of bounds"),
        (fill(1, 2**63), "OverflowError: "),
        (fill(0, 1.5), "TypeError: "),
        (add_row, "score filled in [3, 4] numbers by column, but it must fill in [3, 3] (test_state_rule_calls.py"),
        (lambda *arguments: None, "score returned nothing; a whole number is needed (test_state_rule_calls.py"),
    ],
)  # fmt: skip
def test_wrong_score_is_a_failure(db: str, monkeypatch: pytest.MonkeyPatch, function: Any, message: str) -> None:
    """An error in `score` fails the ladder, with the rule's file and line."""
    failure = find_failure(db, monkeypatch, lambda view: view.standings("own"), BY_GAME._replace(score=function))
    assert failure.startswith(message)


@pytest.mark.parametrize("value", [UNITS_MAX, -UNITS_MAX])
def test_states_may_reach_their_bounds(db: str, monkeypatch: pytest.MonkeyPatch, value: int) -> None:
    """A state may be the largest number of units, positive or negative."""
    rule = BY_GAME._replace(score=fill(1, value), rank_by=None)
    assert ask(db, monkeypatch, lambda view: list_states(view, "own"), rule, as_of="2024-01-01")["ben"][1] == value


def test_wrong_score_of_period_is_a_failure(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The books of a period are checked like those of a game."""
    rule = BY_PERIOD._replace(score_period=lambda *arguments: -1)
    message = find_failure(db, monkeypatch, lambda view: view.standings("daily"), BY_GAME, rule)
    assert message.startswith("the books do not balance: score_period minted -1")


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (None, "explain returned nothing; it must return a list of terms for each of the 3 players"),
        ([[Term("x", 1, "")], [], []], "explain returned terms that sum to [1, 0, 0], but the changes are ["),
        ([["x"], [], []], "explain returned 'x'; a term must be a Term with members of its declared types"),
        ([[Term("x", 0, "", values=(("k", 1.5),))], [], []], "explain returned Term(term='x'"),
        ([[Term("x", 0, "", values=((1, 2),))], [], []], "explain returned Term(term='x'"),
    ],
)
def test_wrong_explanation_is_a_failure(db: str, monkeypatch: pytest.MonkeyPatch, terms: Any, message: str) -> None:
    """`explain` must return `Term` objects that sum to each player's change in column 0."""
    rule = BY_GAME._replace(explain=lambda *arguments: terms)
    assert find_failure(db, monkeypatch, lambda view: view.explain("own", "g-1"), rule).startswith(message)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (None, "explain_period returned nothing; it must return a list of (row, Term) pairs"),
        ([(0, "x")], "explain_period returned 'x'; a term must be a Term"),
        ([(2, Term("x", 1, ""))], "explain_period returned a term for row 2; the row must be from 0 to 1, or -1"),
        ([(-1, Term("x", 1, ""))], "explain_period returned terms that sum to 1, but the change is "),
    ],
)
def test_wrong_explanation_of_period_is_a_failure(
    db: str, monkeypatch: pytest.MonkeyPatch, terms: Any, message: str
) -> None:
    """The terms of a period belong to rows of the player, and sum to the period's change."""
    rule = BY_PERIOD._replace(explain_period=lambda *arguments: terms)
    failure = find_failure(db, monkeypatch, lambda view: view.explain("daily", "d-1"), BY_GAME, rule)
    assert failure.startswith(message)


def keep_states(n, before, columns, constants, table, after):
    return 0


IDLE = BY_GAME._replace(score=keep_states)
PLAIN = IDLE._replace(age=None, new_season=None, enter=None, rank_by=None, provisional=None)


def test_time_seasons_and_versions_change_a_state(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, seasons and versions change a state; a rule without these functions leaves it unchanged."""
    substitute_rules(monkeypatch, {"own/1": IDLE})
    publish_without_trial(db, write_ruleset("years", version="2", since="2024-02-01"))
    rows = []
    for rule in (IDLE, PLAIN):
        for as_of in ("2023-12-30", "2024-01-02", "2024-02-01"):
            standings = ask(db, monkeypatch, lambda view: view.standings("years"), rule, as_of=as_of)
            rows.append([(row.player, row.rank, *row.state_exact.values(), row.provisional) for row in standings])
    assert rows == [
        # ranked by the rating less K; the seeds have three games, and ratings are provisional for five
        [("anna", 1, "1600", "12", True), ("ben", 2, "1601", "14", True)],
        # the second game is in another season, and three days later
        [("anna", 1, "1550", "15", False), ("ben", 2, "3101/2", "17", False)],
        # the second version gives everybody the K of a new player
        [("ben", 1, "3101/2", "40", False), ("anna", 2, "1550", "40", False)],
        *[[("ben", 1, "1601", "14", False), ("anna", 2, "1600", "12", False)]] * 3,
    ]


@pytest.mark.parametrize(
    ("age", "message"),
    [
        (lambda state, elapsed, constants: (state[0] + 1, state[1]),
         "age changed rating from 1600000000 to 1600000001; it must not change this column"),
        (lambda state, elapsed, constants: state[:1], "age returned (1600000000,); a tuple of 2 whole numbers"),
        (lambda state, elapsed, constants: list(state), "age returned [1600000000, 12000000]; a tuple of 2 whole"),
        (lambda state, elapsed, constants: (state[0], 0.5), "age returned 0.5; a whole number is needed"),
        (lambda state, elapsed, constants: (state[0], UNITS_MAX + 1), "age returned k 10,000,000,000,000,001 units"),
        (lambda state, elapsed, constants: (state[0], state[1] // (elapsed - 3)), "ZeroDivisionError: "),
    ],
)  # fmt: skip
def test_wrong_state_is_a_failure(db: str, monkeypatch: pytest.MonkeyPatch, age: Any, message: str) -> None:
    """A function that changes a state must return a whole number within bounds for every column."""
    rule = IDLE._replace(age=age, new_season=None)
    failure = find_failure(db, monkeypatch, lambda view: view.standings("years"), rule)
    assert failure.startswith(message)
    assert "(test_state_rule_calls.py, line " in failure


def test_chances_of_players_with_states(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chances read the columns of states; a draw probability must leave room for both results."""
    prediction = ask(db, monkeypatch, lambda view: view.predict("own", ["anna", "cleo"]), IDLE)
    expected_score = (prediction.sides[0].chance + prediction.draw / 2) * ONE
    assert round(11 * expected_score / ONE, 6) == 1
    assert prediction.draw * ONE == expected_score // 2
    without_draws = ask(db, monkeypatch, lambda view: view.predict("own", ["anna", "cleo"]), IDLE._replace(draw=None))
    assert without_draws.draw == 0
    assert without_draws.sides[0].chance * ONE == expected_score
    greedy = IDLE._replace(draw=lambda i, j, *rest: 2 * int(expected_score))
    failure = find_failure(db, monkeypatch, lambda view: view.predict("own", ["anna", "cleo"]), greedy)
    assert failure.startswith(
        f"draw returned {2 * expected_score}; with the expected score {expected_score} from chance, it must be at "
        f"least 0 and less than {2 * expected_score}"
    )


def test_wrong_verdicts_are_failures(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rank_by` must return a whole number, and `provisional` True or False."""
    rule = BY_GAME._replace(rank_by=lambda state, params: 0.5)
    failure = find_failure(db, monkeypatch, lambda view: view.standings("own"), rule)
    assert failure.startswith("rank_by returned 0.5; a whole number is needed")
    unsure = BY_GAME._replace(provisional=lambda state, games, params: 1)
    failure = find_failure(db, monkeypatch, lambda view: view.standings("own"), unsure)
    assert failure.startswith("provisional returned 1; it must return True or False")
