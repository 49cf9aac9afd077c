"""Members of a ruleset for rules with state: their valid values; their defaults are not recorded."""

import json

import pytest
from own_rules import (
    find_ruleset_problems,
    find_shipped_text,
    load_built_in_rule,
    read_ruleset,
    reads_kind,
    substitute_rule,
)

import ratings_ledger as rl
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.types import read_data
from ratings_ledger.rules import STATE_RULE_COLUMNS, Rule, State

GOOD_FILE = find_shipped_text("club-catan-elo")
DEFAULTS = {
    "period": "game", "period_by": None, "season_by": None, "entrant": "player", "takes": "sum",
    "score_decimals": 0, "score_order": "high", "numbers": {},
}  # fmt: skip


def build_state_rule(**members: object) -> Rule:
    """Return the Elo rule with a state of two columns and scores by period."""
    elo = load_built_in_rule("pairwise-elo/1")
    state = (State("rating", elo.scale), State("deviation", 1_000))
    return elo._replace(state=state, score_period=lambda *arguments: 0, **members)  # type: ignore[arg-type]


@pytest.fixture
def state_rule_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rulesets be bound to a rule with state."""
    rule_with_state = build_state_rule(columns=("place", "team", "score", "days_since", "numbers.length"), adds=True)
    substitute_rule(monkeypatch, rule_with_state)


def build_ruleset_text(members: str = "", table: str = "") -> str:
    """Return the text of a ruleset file with these additional members and this additional table."""
    return GOOD_FILE.replace('freeze = "none"', f'freeze = "none"\n{members}') + f"\n{table}\n"


@pytest.mark.parametrize(
    "text",
    [
        build_ruleset_text('period = "week"'),
        build_ruleset_text('period = "event"\nperiod_by = "numbers.round_2"'),
        build_ruleset_text('period = "event"\nperiod_by = "league"'),
        build_ruleset_text('season_by = "season"'),
        build_ruleset_text("season_by = [1, 5, 9]"),
        build_ruleset_text('entrant = "club"\ntakes = "best"'),
        build_ruleset_text('score_decimals = 3\nscore_order = "low"'),
        build_ruleset_text("", '[numbers.length]\nmin = 1\nmax = 25\nabsent = "refuse"\n[numbers.stones]\nabsent = 0'),
    ],
)
def test_rule_with_state_accepts_members(text: str, state_rule_bound: None) -> None:
    """A ruleset of a rule with state may have each member and score games of every type; it reads back unchanged."""
    for kinds in (["placing"], [*GAME_TYPES]):
        ruleset = read_ruleset(text.replace('kind = ["placing"]', f"kind = {json.dumps(kinds)}"))
        with rl.create(":memory:", rulesets=[ruleset], by="test") as ledger:
            assert ledger.at().ruleset(ruleset.id).ruleset == ruleset
            assert ruleset.scope.kind == kinds


BAD_MEMBERS = {
    "event by nothing": (build_ruleset_text('period = "event"'), "period_by"),
    "event by city": (build_ruleset_text('period = "event"\nperiod_by = "city"'), "period_by"),
    "event by an invalid number name": (
        build_ruleset_text('period = "event"\nperiod_by = "numbers.Round"'),
        "period_by",
    ),
    "day by league": (build_ruleset_text('period = "day"\nperiod_by = "league"'), "period_by"),
    "year": (build_ruleset_text('period = "year"'), "period"),
    "13 months": (build_ruleset_text("season_by = [1, 13]"), "season_by"),
    "months out of order": (build_ruleset_text("season_by = [7, 1]"), "season_by"),
    "no months": (build_ruleset_text("season_by = []"), "season_by"),
    "season by league": (build_ruleset_text('season_by = "league"'), "season_by"),
    "takes without clubs": (build_ruleset_text('takes = "best"'), "takes"),
    "seven decimals": (build_ruleset_text("score_decimals = 7"), "score_decimals"),
    "invalid number name": (build_ruleset_text("", "[numbers.Length]\nmin = 0"), "numbers.Length"),
    "backward range": (build_ruleset_text("", "[numbers.length]\nmin = 2\nmax = 1"), "numbers.length"),
    "default out of range": (build_ruleset_text("", "[numbers.length]\nmin = 2\nabsent = 1"), "numbers.length"),
    "absent in words": (build_ruleset_text("", '[numbers.length]\nabsent = "zero"'), "numbers.length.absent"),
    "beyond 2^53": (build_ruleset_text("", "[numbers.length]\nmax = 9007199254740992"), "numbers.length.max"),
    "17 numbers": (build_ruleset_text("", "\n".join(f"[numbers.n{index}]" for index in range(17))), "numbers"),
}


@pytest.mark.parametrize("case", sorted(BAD_MEMBERS))
def test_invalid_member_is_rejected_with_its_key(case: str, state_rule_bound: None) -> None:
    """An invalid member is rejected, and the problem names its key."""
    text, key = BAD_MEMBERS[case]
    assert [problem.key for problem in find_ruleset_problems(text)] == [key]


@pytest.mark.parametrize(
    "member",
    ['period = "day"', 'season_by = "season"', 'entrant = "club"', "score_decimals = 1", 'score_order = "low"'],
)
def test_rule_without_state_rejects_members_without_effect(member: str) -> None:
    """A rule without state rejects periods, clubs and other members that would have no effect."""
    problems = find_ruleset_problems(build_ruleset_text(member))
    assert [problem.key for problem in problems] == [member.split()[0]]
    assert "pairwise-elo/1" in problems[0].message


def test_unknown_columns_are_rejected_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that needs state, or a number with an invalid name, is rejected with the available alternative."""
    for columns, hint in ((("place", "team"), "tied"), (("numbers.Length",), "numbers.NAME")):
        state = () if "team" in columns else build_state_rule().state
        substitute_rule(monkeypatch, build_state_rule(columns=columns)._replace(state=state))
        problems = find_ruleset_problems(GOOD_FILE)
        assert (problems[0].key, "which no game type has" in problems[0].message) == ("rule", True)
        assert hint in problems[0].message


def test_columns_of_game_types_have_distinct_names() -> None:
    """No game type has a column with the name of a column of all games."""
    rules = [build_state_rule(columns=(name,)) for name in STATE_RULE_COLUMNS]
    assert [rule.columns for rule in rules for kind in GAME_TYPES if reads_kind(rule, kind)] == []
    assert reads_kind(build_state_rule(columns=("mates_best",)), "battle")


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
def test_versions_share_periods_seasons_and_entrants(
    old: str, new: str, member: str | None, state_rule_bound: None
) -> None:
    """Versions of a ruleset share periods, seasons and entrants; the reading of scores may change."""
    before, after = build_ruleset_text(old), build_ruleset_text(new).replace('version = "1"', 'version = "2"')
    with rl.create(":memory:", rulesets=[before], by="test") as ledger:
        if member is None:
            assert ledger.publish(after, by="test") == ["club-catan-elo@2"]
            return
        with pytest.raises(rl.Refused, match=f"^{member}: club-catan-elo@1 has ") as refusal:
            ledger.publish(after, by="test")
        assert refusal.value.code == "partition-changed"


def test_explicit_defaults_are_not_recorded(state_rule_bound: None) -> None:
    """A ruleset with every default written out has the same record as one without."""
    plain = read_ruleset(GOOD_FILE)
    data = plain.model_dump(exclude_unset=True, exclude_none=True)
    assert not DEFAULTS.keys() & {*data, *json.loads(plain.model_dump_json())}
    assert read_data("ruleset.published", data | DEFAULTS) == read_data("ruleset.published", data)
