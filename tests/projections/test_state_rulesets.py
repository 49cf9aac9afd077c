"""The members of a ruleset that rules with state gave a meaning: what they take, and that older records stay."""

import json

import pytest
from own_rules import find_shipped_text

from ratings_ledger import Ruleset
from ratings_ledger.ledger.events.types import read_data
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF
from ratings_ledger.projections.rulesets.registry import find_rule
from ratings_ledger.projections.rulesets.versions import bind, find_kinds, find_sequel_problem, read_toml
from ratings_ledger.rules import STATE_RULE_COLUMNS, Rule, State

GOOD = find_shipped_text("club-catan-elo")
DEFAULTS = {
    "period": "game", "period_by": None, "season_by": None, "entrant": "player", "takes": "sum",
    "score_decimals": 0, "score_order": "high", "numbers": {},
}  # fmt: skip


def with_state(**members: object) -> Rule:
    """The Elo rule as one with a state of two columns that scores periods."""
    found = find_rule("pairwise-elo/1")
    assert found is not None
    state = (State("rating", found.scale), State("deviation", 1_000))
    return found._replace(state=state, score_period=lambda *arguments: 0, **members)  # type: ignore[arg-type]


@pytest.fixture
def stateful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rulesets be bound to a rule with state."""
    found = with_state(columns=("place", "team", "score", "days_since", "numbers.length"), adds=True)
    monkeypatch.setattr("ratings_ledger.projections.rulesets.versions.find_rule", lambda name: found)


def written(members: str = "", table: str = "") -> str:
    """A ruleset file with more members, and another table."""
    return GOOD.replace('freeze = "none"', f'freeze = "none"\n{members}') + f"\n{table}\n"


@pytest.mark.parametrize(
    "text",
    [
        written('period = "week"'),
        written('period = "event"\nperiod_by = "numbers.round_2"'),
        written('period = "event"\nperiod_by = "league"'),
        written('season_by = "season"'),
        written("season_by = [1, 5, 9]"),
        written('entrant = "club"\ntakes = "best"'),
        written('score_decimals = 3\nscore_order = "low"'),
        written("", '[numbers.length]\nmin = 1\nmax = 25\nabsent = "refuse"\n[numbers.stones]\nabsent = 0'),
    ],
)
def test_rule_with_state_takes_members(text: str, stateful: None) -> None:
    """A rule with state takes every member, and its columns are those of all game types."""
    found, problems = read_toml(text)
    assert not problems
    assert found is not None
    version, problems = bind(Ruleset.model_validate(json.loads(json.dumps(found.model_dump(exclude_unset=True)))))
    assert version is not None
    assert version.ruleset == found
    assert find_kinds(version.rule) == [*COLUMNS_OF]


WRONG = {
    "event by nothing": (written('period = "event"'), "period_by"),
    "event by city": (written('period = "event"\nperiod_by = "city"'), "period_by"),
    "event by a number of no name": (written('period = "event"\nperiod_by = "numbers.Round"'), "period_by"),
    "day by league": (written('period = "day"\nperiod_by = "league"'), "period_by"),
    "year": (written('period = "year"'), "period"),
    "13 months": (written("season_by = [1, 13]"), "season_by"),
    "months out of order": (written("season_by = [7, 1]"), "season_by"),
    "no months": (written("season_by = []"), "season_by"),
    "season by league": (written('season_by = "league"'), "season_by"),
    "takes without clubs": (written('takes = "best"'), "takes"),
    "seven decimals": (written("score_decimals = 7"), "score_decimals"),
    "name of a number": (written("", "[numbers.Length]\nmin = 0"), "numbers.Length"),
    "backward range": (written("", "[numbers.length]\nmin = 2\nmax = 1"), "numbers.length"),
    "default out of range": (written("", "[numbers.length]\nmin = 2\nabsent = 1"), "numbers.length"),
    "absent in words": (written("", '[numbers.length]\nabsent = "zero"'), "numbers.length.absent"),
    "beyond 2^53": (written("", "[numbers.length]\nmax = 9007199254740992"), "numbers.length.max"),
    "17 numbers": (written("", "\n".join(f"[numbers.n{index}]" for index in range(17))), "numbers"),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_wrong_member_is_refused_by_key(case: str, stateful: None) -> None:
    """A member that makes no sense is refused, and the problem names its key."""
    text, key = WRONG[case]
    found, problems = read_toml(text)
    assert found is None
    assert [problem.key for problem in problems] == [key]


@pytest.mark.parametrize(
    "member",
    ['period = "day"', 'season_by = "season"', 'entrant = "club"', "score_decimals = 1", 'score_order = "low"'],
)
def test_points_alone_refuse_members_without_effect(member: str) -> None:
    """A rule that compares players by their points refuses clubs, and other members that would have no effect."""
    _, problems = read_toml(written(member))
    assert [problem.key for problem in problems] == [member.split()[0]]
    assert "pairwise-elo/1" in problems[0].message


def test_rule_without_state_has_no_columns_of_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that needs state, or a custom number with an impossible name, is refused by what there is instead."""
    for columns, hint in ((("place", "team"), "tied"), (("numbers.Length",), "numbers.NAME")):
        found = with_state(columns=columns)._replace(state=() if "team" in columns else with_state().state)
        monkeypatch.setattr("ratings_ledger.projections.rulesets.versions.find_rule", lambda name, found=found: found)
        _, problems = read_toml(GOOD)
        assert (problems[0].key, "which no game type has" in problems[0].message) == ("rule", True)
        assert hint in problems[0].message


def test_columns_have_different_names() -> None:
    """No game type has a column of its own under the name of one that all have."""
    assert not STATE_RULE_COLUMNS.keys() & {name for columns in COLUMNS_OF.values() for name in columns}


@pytest.mark.parametrize(
    ("old", "new", "member"),
    [
        ('period = "day"', 'period = "week"', "period"),
        ('period = "event"\nperiod_by = "league"', 'period = "event"\nperiod_by = "season"', "period_by"),
        ("season_by = [1, 7]", "season_by = [1]", "season_by"),
        ("", 'season_by = "season"', "season_by"),
        ('entrant = "club"', "", "entrant"),
        ("score_decimals = 1", "", None),
    ],
)
def test_versions_share_periods_seasons_and_entrants(old: str, new: str, member: str | None, stateful: None) -> None:
    """Versions of a ruleset share what periods, seasons and entrants it has; how scores are read may change."""
    before, after = (bind(read_toml(written(text))[0])[0] for text in (old, new))  # type: ignore[arg-type]
    assert before is not None
    assert after is not None
    problem = find_sequel_problem(after, before)
    assert (problem and problem.key) == member


def test_defaults_leave_records_as_they_are(stateful: None) -> None:
    """A ruleset with every default spelled out has the same record as one without."""
    plain, _ = read_toml(GOOD)
    assert plain is not None
    data = plain.model_dump(exclude_unset=True, exclude_none=True)
    assert not DEFAULTS.keys() & {*data, *json.loads(plain.model_dump_json())}
    assert read_data("ruleset.published", data | DEFAULTS) == read_data("ruleset.published", data)
