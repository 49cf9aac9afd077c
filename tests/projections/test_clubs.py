"""Clubs as entrants: the sum or the best of what their players get, in every round of drawn seasons, as reckoned by an
oracle, interpreted and compiled; and what clubs have apart from players."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import club_seasons
import pytest
from club_seasons import Race
from clusters import cluster_here, in_one_process, on_cluster, small_pieces
from histories import adjustment, facts_of, fill, ruleset
from own_rules import load_built_in_rule, substitute_rule
from thresholds import set_thresholds

import ratings_ledger as rl
from ratings_ledger.ledger.events.game_types.diplomacy import POWERS
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.replay import replay_compiled, replay_interpreted

TAKES = ("sum", "best")
SEEDS = (1, 2, 3, 4)


def rename(club: str, new_club: str) -> dict[str, Any]:
    """A club's new name, decided after all races."""
    data = {"club": club, "new_club": new_club}
    return {"type": "club.renamed", "occurred_at": "2010-01-01T00:00:00Z", "data": data}


def publish(takes: str) -> dict[str, Any]:
    """The ruleset of clubs that has the sum or the best."""
    return ruleset(club_seasons.write_ruleset(takes, f'entrant = "club"\ntakes = "{takes}"'))


class Drawn(NamedTuple):
    """Drawn races, the renames of clubs after them, and the URL of a ledger of both."""

    races: list[Race]
    renames: list[tuple[str, str]]
    url: str

    def up_to(self, race: Race) -> list[Race]:
        """Return the races of a season up to one of them."""
        return [one for one in self.races if one.season == race.season and one.round <= race.round]


@pytest.fixture(scope="module", params=SEEDS)
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Drawn seasons; one seed has no renames."""
    races = club_seasons.draw_seasons(request.param)
    renames = [] if request.param == SEEDS[0] else club_seasons.RENAMES
    url = f"sqlite:///{tmp_path_factory.mktemp('clubs') / 'ratings.db'}"
    upgrade(url)
    drivers = ruleset(club_seasons.write_ruleset("drivers"))
    fill(url, [drivers, *map(publish, TAKES), *(race.write() for race in races), *(rename(*one) for one in renames)])
    return Drawn(races, renames, url)


@pytest.mark.parametrize("takes", TAKES)
def test_tables_after_every_round_are_those_of_the_oracle(drawn: Drawn, takes: str) -> None:
    """Ranks, points and races of every club after every round, with parts, ties, shared cars and renames."""
    with rl.open(drawn.url) as ledger:
        for race in drawn.races:
            found = ledger.at(as_of=race.day).standings(f"{takes}/{race.season}").rows
            expected = club_seasons.table_of(drawn.up_to(race), takes, drawn.renames)
            assert [(row.rank, row.player, row.points, row.games) for row in found] == expected, race.game_id


@pytest.mark.parametrize("takes", TAKES)
def test_explanations_name_the_drivers_and_sum_exactly(drawn: Drawn, takes: str) -> None:
    """Every term of a club is a driver's; together they are what the club got, whoever else was in the race."""
    with rl.open(drawn.url) as ledger:
        snapshot = ledger.at()
        for race in drawn.races:
            explained = snapshot.explain(f"{takes}/{race.season}", race.game_id)
            expected = club_seasons.club_results(race, takes, drawn.renames)
            assert explained.counted
            assert {one.player: one.change for one in explained.players} == {
                club: result.points for club, result in expected.items()
            }
            for one in explained.players:
                drivers = {
                    seat.driver
                    for seat in race.seats
                    if seat.club and club_seasons.current(seat.club, drawn.renames) == one.player
                }
                assert {term.term.partition(",")[0] for term in one.terms} == drivers
                assert sum(term.amount or 0 for term in one.terms) == one.change == one.after - one.before


@pytest.mark.parametrize("takes", TAKES)
def test_histories_are_chains_of_what_races_gave(drawn: Drawn, takes: str) -> None:
    """A club's history has each of its races once, and its account sums to its points."""
    with rl.open(drawn.url) as ledger:
        snapshot = ledger.at()
        for row in snapshot.standings(f"{takes}/2001").rows:
            steps = snapshot.history(f"{takes}/2001", row.player).rows
            assert all(left.after == right.before for left, right in pairwise(steps))
            assert len({step.game_id for step in steps}) == len(steps) == row.games
            lines = snapshot.account(f"{takes}/2001", row.player).terms
            assert [line.amount for line in lines if line.term == "sum"] == [row.points]
            assert {one.player for one in snapshot.profile(f"{takes}/2001", row.player).opponents} <= {
                other.player for other in snapshot.standings(f"{takes}/2001").rows
            } - {row.player}


def test_players_have_what_they_had(drawn: Drawn) -> None:
    """The ladder of drivers is the same with clubs and without any, under the same coordinates."""
    with rl.open(drawn.url) as ledger, TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/plain.db"
        upgrade(url)
        races = [race.write() for race in drawn.races]
        for race in races:
            for participant in race["data"]["participants"]:
                participant.pop("club", None)
        fill(url, [ruleset(club_seasons.write_ruleset("drivers")), *races])
        with rl.open(url) as plain:
            for season in ("2001", "2002"):
                assert [*ledger.at().standings(f"drivers/{season}").rows] == [
                    *plain.at().standings(f"drivers/{season}").rows
                ]


@pytest.mark.parametrize("takes", TAKES)
def test_interpreted_and_compiled_replays_agree(drawn: Drawn, takes: str) -> None:
    """Clubs are replayed by the same loop as players, either way."""
    ladders = Ladders(facts_of(open_ledger(drawn.url)))
    for stream in ladders.streams(takes).values():
        interpreted, compiled = replay_interpreted(stream, {}), replay_compiled(stream, {})
        assert compiled is not None
        assert interpreted.has_same_results(compiled)


@pytest.mark.slow_cases
def test_changes_of_a_club_have_causes_that_sum(drawn: Drawn) -> None:
    """What changed a club's points between two positions is told by event, and sums to the difference."""
    with rl.open(drawn.url) as ledger:
        last = ledger.at().standings("sum/2002").at.known_at
        for takes in TAKES:
            ladder = f"{takes}/2002"
            for row in ledger.at().standings(ladder).rows:
                for known_at in (12, len(drawn.races), last - 1):
                    found = ledger.attribute(ladder, row.player, ledger.at(known_at=known_at), ledger.at())
                    assert found.to.points == row.points
                    assert sum(cause.amount for cause in found.causes) == found.change


@pytest.mark.parametrize("window", [None, 3])
def test_clusters_and_one_process_agree(
    drawn: Drawn, window: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cluster whose segments and packs are short gives the same rows and digests of clubs, changes included."""
    small_pieces(monkeypatch, events=9, games=4, pack=10, window=window)
    ledger = open_ledger(drawn.url)
    facts = facts_of(ledger)
    with cluster_here(tmp_path) as cluster:
        found = on_cluster(ledger, cluster, facts.position)
    assert found == in_one_process(facts)
    assert {f"{takes}/2001" for takes in TAKES} <= found.keys()


def test_version_decides_what_a_club_takes(tmp_path: Path) -> None:
    """A version from the second season's start on takes the best; what was before it stays the sum."""
    races = club_seasons.draw_seasons(5)
    text = club_seasons.write_ruleset("clubs", 'entrant = "club"\ntakes = "sum"')
    later = text.replace('"1"', '"2"').replace('"sum"', '"best"').replace("2000-01-01", "2002-01-01")
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [ruleset(text), ruleset(later), *(race.write() for race in races)])
    with rl.open(url) as ledger:
        for season, takes, version in (("2001", "sum", "clubs@2"), ("2002", "best", "clubs@1")):
            own = [race for race in races if race.season == season]
            for rules, expected in ((None, takes), (version, "best" if takes == "sum" else "sum")):
                found = ledger.at(rules=rules).standings(f"clubs/{season}").rows
                assert [(row.rank, row.player, row.points, row.games) for row in found] == club_seasons.table_of(
                    own, expected, []
                )


ALL_OF = """
id = "NAME"
version = "1"
rule = "RULE"
effective_from = 2000-01-01
time_zone = "UTC"
MEMBERS
[scope]
game = ["diplomacy"]
kind = ["diplomacy"]
[params]
"""


@pytest.mark.parametrize("rule", ["c-diplo/1", "sum-of-squares/1"])
def test_rules_of_contract_1_that_add_have_tables_of_clubs(rule: str, tmp_path: Path) -> None:
    """Centres at the end of games of Diplomacy: every club has the sum of what the ladder of players says."""
    chance, url = Random(3), f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    text = ALL_OF.replace("RULE", rule)
    games, club_of = [], {}
    for number in range(12):
        players = chance.sample([f"p{player}" for player in range(9)], len(POWERS))
        cuts = [0, *sorted(chance.sample(range(1, 34), 6)), 34]
        seats = [{"player": player, "power": power} for player, power in zip(players, POWERS, strict=True)]
        for seat in seats:
            if (club := chance.choice(["Old", "New", None])) is not None:
                seat["club"] = club_of[f"g{number}", seat["player"]] = club
        centres = {power: high - low for power, low, high in zip(POWERS, cuts, cuts[1:], strict=False)}
        data = {
            "game_id": f"g{number}",
            "game": "diplomacy",
            "kind": "diplomacy",
            "participants": seats,
            "centres": {"1901": centres},
        }
        games.append({"type": "game.recorded", "occurred_at": f"2020-01-{number + 1:02d}T12:00:00Z", "data": data})
    rulesets = [
        text.replace("NAME", "all").replace("MEMBERS", ""),
        text.replace("NAME", "clubs").replace("MEMBERS", 'entrant = "club"'),
    ]
    fill(url, [*map(ruleset, rulesets), *games])
    with rl.open(url) as ledger:
        snapshot, expected = ledger.at(), Counter[str]()
        for number in range(12):
            for one in snapshot.explain("all", f"g{number}").players:
                if (club := club_of.get((f"g{number}", one.player))) is not None:
                    expected[club] += one.change
        assert {row.player: row.points for row in snapshot.standings("clubs").rows} == expected


def test_game_that_a_rule_cannot_score_counts_for_no_club(tmp_path: Path) -> None:
    """Why a game counts for no player is why it counts for no club; so does a game without clubs."""
    races = club_seasons.draw_seasons(6, seasons=1, rounds=3)
    for seat in races[1].seats:
        seat.club = None
    wrong = races[2].write()
    wrong["data"]["numbers"] = {"percent": 5_000}
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [publish("sum"), races[0].write(), races[1].write(), wrong])
    with rl.open(url) as ledger:
        reasons = [ledger.at().explain("sum/2001", race.game_id).why_not for race in races]
        assert reasons == [
            None,
            "no counted participant played for a club",
            "numbers.percent is 5000; it must be from 1 to 1,000",
        ]
        assert ledger.at().standings("sum/2001").games == 1


def test_failing_rule_fails_a_ladder_of_clubs_from_that_game_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was before the failure stands; the message names the game, and other ladders are as they were."""
    races = club_seasons.draw_seasons(7, seasons=1, rounds=4)
    text = club_seasons.write_ruleset("clubs", 'entrant = "club"')
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    rule = load_built_in_rule("placement-points/2")
    size = len(races[2].seats)

    def score(n: int, before: Any, columns: Any, constants: Any, table: Any, after: Any) -> int:
        return 1 // 0 if n == size else int(rule.score(n, before, columns, constants, table, after))

    substitute_rule(monkeypatch, rule._replace(name="brittle", number=1, score=score))
    fill(url, [publish("sum"), ruleset(text.replace("placement-points/2", "brittle/1")), *(r.write() for r in races)])
    assert all(len(race.seats) != size for race in races[:2])
    with rl.open(url) as ledger:
        with pytest.raises(rl.RuleFailed, match=rf"clubs/2001: .*game {races[2].game_id}.*division"):
            ledger.at().standings("clubs/2001")
        found = ledger.at(as_of=races[1].day).standings("clubs/2001").rows
        assert [(row.rank, row.player, row.points, row.games) for row in found] == club_seasons.table_of(
            races[:2], "sum", []
        )
        assert len(ledger.at().standings("sum/2001").rows) == len(club_seasons.table_of(races, "sum", []))


@pytest.mark.parametrize("cached", [False, True])
def test_open_ledger_follows_what_becomes_of_clubs(
    cached: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Races, renames and corrections show in a ledger that stays open, from a cache of columns and traces or not."""
    if cached:
        set_thresholds(monkeypatch, cached_events=5, delta_events=2, traced_games=1, scanned_events=1)
    races, renames = club_seasons.draw_seasons(8, seasons=1), list[tuple[str, str]]()
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [*map(publish, TAKES), *(race.write() for race in races[:5])])
    with rl.open(url) as ledger:
        for step, race in enumerate(races[5:], 5):
            for takes in TAKES:
                found = ledger.at().standings(f"{takes}/2001").rows
                expected = club_seasons.table_of(races[:step], takes, renames)
                assert [(row.rank, row.player, row.points, row.games) for row in found] == expected
            more = [race.write()]
            if step == 6:
                renames = club_seasons.RENAMES[:1]
                more.append(rename(*renames[0]))
            if step == 7:
                races[1].seats[0].club, races[3].seats[2].club = "Alpha", None
                more += [correct(races[1]), correct(races[3])]
            fill(url, more)


def correct(race: Race) -> dict[str, Any]:
    """A correction that gives a race as it is drawn now."""
    written = race.write()
    data = {"game_id": race.game_id, "game": written["data"], "reason": "another club"}
    return {"type": "game.corrected", "occurred_at": "2009-01-01T00:00:00Z", "data": data}


def test_decisions_about_clubs_have_shares_that_sum(tmp_path: Path) -> None:
    """A new name alone moves nothing; a deduction and a merger move what every comparison says, under the last name."""
    races, url = club_seasons.draw_seasons(9, seasons=1), f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [publish("sum"), *(race.write() for race in races)])
    deduction = adjustment("sum/2001", "Alpha", "-2", 1)
    fill(url, [{**deduction, "occurred_at": "2001-12-20T12:00:00Z"}, rename("Alpha", "Alfa"), rename("Delta", "Gamma")])
    with rl.open(url) as ledger:
        end = ledger.at().standings("sum/2001").at.known_at
        before, renamed, now = (
            {row.player: row.points for row in ledger.at(known_at=at).standings("sum/2001").rows}
            for at in (end - 3, end - 1, end)
        )
        assert now["Alfa"] == before["Alpha"] - 2
        assert now["Gamma"] != before["Gamma"]
        shares = {one.player: sum(one.amounts.values()) for one in ledger.at().decisions(end - 3).shares}
        assert shares == {"Alfa": -2, "Gamma": now["Gamma"] - before["Gamma"]}
        assert [one.change for one in ledger.at().event_impact(end - 2).rows] == [-2]
        assert ledger.at().event_impact(end - 1).rows == ()
        merged = {one.player: one.change for one in ledger.at().event_impact(end).rows if one.change != 0}
        assert merged == {"Gamma": now["Gamma"] - renamed["Gamma"], "Delta": None}
