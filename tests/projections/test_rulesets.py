"""Rulesets: problems of a file, and the version that scores a game."""

import json

import pytest
from histories import build_club_game, build_ruleset_event, build_stream, fill, load_facts, rank_stream
from ledgers import open_for_reading
from own_rules import (
    find_ruleset_problems,
    find_shipped_text,
    find_shipped_texts,
    load_built_in_rule,
    read_ruleset,
    substitute_rule,
)
from sqlalchemy import text
from stores import make_empty_ledger

import ratings_ledger as rl
from ratings_ledger.projections.rulesets.versions import find_period, month_start

GOOD_FILE = find_shipped_text("club-catan-elo")

BAD_FILES = {
    "syntax": ('id = "x"\nversion = \n', "", 2),
    "unknown key": (GOOD_FILE.replace("players_min", "players_least"), "scope.players_least", None),
    "unknown table": (GOOD_FILE + "\n[extra]\nx = 1\n", "extra", None),
    "missing key": (GOOD_FILE.replace('id = "club-catan-elo"\n', ""), "id", None),
    "unknown rule": (GOOD_FILE.replace("pairwise-elo/1", "glicko/2"), "rule", None),
    "rule without number": (GOOD_FILE.replace("pairwise-elo/1", "pairwise-elo"), "rule", None),
    "float": (GOOD_FILE.replace("k_total = 64", "k_total = 6.4"), "params.k_total", None),
    "wrong type": (GOOD_FILE.replace("start = 1000", 'start = "1000"'), "params.start", None),
    "unknown parameter": (GOOD_FILE.replace("k_total = 64", "k_total = 64\nk_sum = 3"), "params.k_sum", None),
    "no K": (GOOD_FILE.replace("k_total = 64", ""), "params", None),
    "zone": (GOOD_FILE.replace('"UTC"', '"Mars/Base"'), "time_zone", None),
    "date": (GOOD_FILE.replace("1900-01-01", '"1900-02-30"'), "effective_from", None),
    "kind": (GOOD_FILE.replace('"placing"', '"racing"'), "scope.kind", None),
    "band": (GOOD_FILE.replace('"3-4"', '"4-3"'), "partition.bands", None),
    "band twice": (GOOD_FILE.replace('"3-4", "5-6"', '"3-4", "3-4"'), "partition.bands", None),
    "fewer at most than at least": (
        GOOD_FILE.replace("players_min = 2", "players_min = 5\nplayers_max = 4"),
        "scope.players_max",
        None,
    ),
    "frozen": (GOOD_FILE.replace('freeze = "none"', 'freeze = "league-start"'), "freeze", None),
    "assumed": (GOOD_FILE.replace("[assumed]", '[assumed]\nnothing = "x"'), "assumed.nothing", None),
}


@pytest.mark.parametrize("case", sorted(BAD_FILES))
def test_ruleset_problem_names_key_and_line(case):
    """A problem of a ruleset file is reported with its key and line."""
    text, key, line = BAD_FILES[case]
    problems = find_ruleset_problems(text)
    assert problems[0].key == key
    name = key.rpartition(".")[2]
    expected = line or next(
        (n for n, t in enumerate(text.splitlines(), 1) if t.startswith((f"{name} ", f"[{name}]"))), None
    )
    assert problems[0].line == expected


def test_shipped_rulesets_can_be_published():
    """All shipped rulesets can be published, name their source and mark their assumptions."""
    for toml in find_shipped_texts():
        ruleset = read_ruleset(toml)
        assert ruleset.source
        assert ruleset.assumed


@pytest.mark.parametrize("members", [["month", "year"], ["year", "month"]])
def test_period_of_a_list_by_month_and_year_is_the_month(members):
    """If a month and a year name a list, in either order, the period of the list is the month."""
    toml = GOOD_FILE.replace('["players"]', json.dumps(members)).replace('["all", "3-4", "5-6", "7-8"]', "[]")
    values = {"month": "2024-03", "year": "2024"}
    ladder = "/".join(["club-catan-elo", *(values[member] for member in members)])
    period = find_period(read_ruleset(toml), ladder)
    assert period == (month_start(2024, 3, "UTC"), month_start(2024, 4, "UTC") - 1)


def find_scoring_version(url, dated, at):
    """Return the version that scores a game at a time; `dated` has (name, effective_from) of each, in log order."""
    rulesets = []
    for name, since in dated:
        ruleset = build_ruleset_event()
        ruleset["data"] |= {"version": name, "effective_from": since}
        if since is None:
            del ruleset["data"]["effective_from"]
        rulesets.append(ruleset)
    fill(url, [*rulesets, build_club_game("g1", "a b") | {"occurred_at": at}])
    with rl.open(url) as ledger:
        if not ledger.at().ladders().rows:
            return None
        return ledger.at().history("club-catan-elo/all", "a").rows[0].ruleset


@pytest.mark.parametrize(
    ("dated", "at", "expected"),
    [
        ([("1", "2020-01-01"), ("2", "2020-02-01")], "2020-01-31T23:59:59.999999Z", "club-catan-elo@1"),
        ([("1", "2020-01-01"), ("2", "2020-02-01")], "2020-02-01T00:00:00Z", "club-catan-elo@2"),
        ([("2", "2020-02-01"), ("1", "2020-01-01")], "2020-02-01T00:00:00Z", "club-catan-elo@2"),
        ([("2", "2020-01-01"), ("1", "2020-01-01")], "2020-02-01T00:00:00Z", "club-catan-elo@1"),
        ([("1", "2020-01-01"), ("2", "2020-01-01")], "2020-02-01T00:00:00Z", "club-catan-elo@2"),
        ([("1", "2020-01-01"), ("trial", None)], "2020-02-01T00:00:00Z", "club-catan-elo@1"),
        ([("1", "2020-01-01")], "2019-12-31T23:59:59.999999Z", None),
    ],
)
def test_latest_version_in_force_scores(copy_ledger_file, dated, at, expected):
    """A game is scored by the latest version in force at its end."""
    assert find_scoring_version(copy_ledger_file(make_empty_ledger), dated, at) == expected


def test_points_carry_over_between_versions(ledger_url):
    """Points carry over from one version to the next.

    K is 64 until the 9th and 32 from the 10th; a wins twice, and the second win builds on the first.
    """
    later = build_ruleset_event()
    later["data"] = later["data"] | {"version": "2", "effective_from": "2020-01-10", "params": {"k_total": 32}}
    ledger = fill(
        ledger_url,
        [build_ruleset_event(), later, build_club_game("g1", "a b", day=9), build_club_game("g2", "a b", day=10)],
    )
    stream = build_stream(load_facts(ledger), "club-catan-elo/all")
    ranking = rank_stream(stream)
    assert ranking.ruleset == "club-catan-elo@2"
    # 1032 against 968: expected 0.591093..., of K 32
    assert [row.points // 1_000 for row in ranking.rows] == [1_045_085, 954_914]


def test_games_before_rules_do_not_count(ratings, ledger_url):
    """Games before the first version do not count, and the explanation says so."""
    rules = build_ruleset_event()
    rules["data"]["effective_from"] = "2020-01-05"
    fill(ledger_url, [rules, build_club_game("g1", "a b", day=4), build_club_game("g2", "a b", day=5)])
    explanation = json.loads(ratings("explain", "g1", "club-catan-elo/all", "--format", "json", db=ledger_url).stdout)
    assert explanation["why_not"] == "club-catan-elo was not in force yet; its first version applies from 2020-01-05"
    rows = json.loads(ratings("standings", "club-catan-elo/all", "--format", "json", db=ledger_url).stdout)["rows"]
    assert [row["games"] for row in rows] == [1, 1]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": "1", "source": "another"}, "version-exists"),
        ({"version": "2", "time_zone": "Europe/Berlin"}, "partition-changed"),
        ({"version": "2", "partition": {"by": ["group"]}}, "partition-changed"),
        ({"version": "2", "params": {"k_total": 500}}, "bad-ruleset"),
    ],
)
def test_unfit_version_is_rejected(ratings, ruled_url, tmp_path, change, code):
    """A version that does not fit the published ones is rejected with its code."""
    event = {
        "type": "ruleset.published",
        "occurred_at": "2020-01-01T00:00:00Z",
        "data": build_ruleset_event()["data"] | change,
    }
    (tmp_path / "rules.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
    result = ratings("import", tmp_path / "rules.jsonl", "--format", "json", db=ruled_url)
    assert result.exit_code == 1
    assert [r["code"] for r in json.loads(result.stdout)["rejected"]] == [code]


def test_published_version_is_existing(ratings, ruled_url, tmp_path):
    """A published version under another id and date counts as existing."""
    event = {"type": "ruleset.published", "occurred_at": "2020-01-01T00:00:00Z", "data": build_ruleset_event()["data"]}
    (tmp_path / "rules.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
    result = json.loads(ratings("import", tmp_path / "rules.jsonl", "--format", "json", db=ruled_url).stdout)
    assert (result["appended"], result["existing"], result["rejected"]) == (0, 1, [])


@pytest.mark.slow_cases
def test_missing_rule_affects_only_its_ladders(ratings, ledger_url, monkeypatch):
    """A ruleset whose rule is not installed makes only its own ladders fail.

    They report it and keep their stored standings, and other ladders are rebuilt.
    """
    second_ruleset = build_ruleset_event()
    second_ruleset["data"] = second_ruleset["data"] | {"id": "other", "rule": "outside/1"}
    with monkeypatch.context() as patch:
        substitute_rule(patch, load_built_in_rule("pairwise-elo/1"), "outside/1")
        fill(ledger_url, [build_ruleset_event(), second_ruleset, build_club_game("g1", "a b")])
        assert ratings("rebuild", db=ledger_url).exit_code == 0
    assert ratings("standings", "club-catan-elo/all", db=ledger_url).exit_code == 0
    result = ratings("standings", "other/all", db=ledger_url)
    assert (result.exit_code, "'outside/1' is not installed" in result.stderr) == (2, True)
    fill(ledger_url, [build_club_game("g2", "a b", day=2)])  # an unchanged ladder would keep its build
    rebuilt = ratings("rebuild", db=ledger_url)
    assert (rebuilt.exit_code, "other" in rebuilt.stderr) == (1, True)
    with open_for_reading(ledger_url) as connection:
        rows = connection.execute(text("SELECT ladder, position FROM live_ladders"))
        positions = {row.ladder: row.position for row in rows}
    assert positions == {"club-catan-elo/all": 4, "other/all": 3}
    assert ratings("rules", "show", "other", db=ledger_url).exit_code == 0


def test_files_are_published_all_or_none(ratings, ledger_url, tmp_path):
    """Several files are published together or not at all."""
    (tmp_path / "good.toml").write_text(GOOD_FILE, encoding="utf-8")
    (tmp_path / "bad.toml").write_text(GOOD_FILE.replace("pairwise-elo/1", "glicko/2"), encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "good.toml", tmp_path / "bad.toml", db=ledger_url).exit_code == 1
    assert json.loads(ratings("status", "--format", "json", db=ledger_url).stdout)["position"] == 0
