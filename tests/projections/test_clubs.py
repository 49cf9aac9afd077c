"""Clubs as entrants with the sum or the best result of their players.

Random seasons agree with an oracle after every round, interpreted, compiled and on a cluster; other tests cover
differences between clubs and players.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import club_seasons
import pytest
from club_seasons import Race, Seat
from clusters import open_local_cluster, rank_in_one_process, rank_on_cluster, shrink_pieces
from histories import build_adjustment, build_ruleset_event, fill, load_interpreted_trace, load_ladders
from own_rules import compile_every_rule, load_built_in_rule, substitute_rule
from thresholds import set_thresholds

import ratings_ledger as rl
from ratings_ledger.ledger.events.game_types.diplomacy import POWERS
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade

TAKES = ("sum", "best")
RULESET_COUNT = 1 + len(TAKES)
SEEDS = (1, 2, 3, 4)


def build_rename(club: str, new_club: str) -> dict[str, Any]:
    """Return a rename of a club, decided after all races."""
    data = {"club": club, "new_club": new_club}
    return {"type": "club.renamed", "occurred_at": "2010-01-01T00:00:00Z", "data": data}


def build_club_ruleset(takes: str) -> dict[str, Any]:
    """Return the ruleset of clubs with the sum or the best result."""
    return build_ruleset_event(club_seasons.write_ruleset(takes, f'entrant = "club"\ntakes = "{takes}"'))


class DrawnSeasons(NamedTuple):
    """Random races, the renames of clubs after them, and the URL of a ledger with both."""

    races: list[Race]
    renames: list[tuple[str, str]]
    url: str

    def list_races_until(self, race: Race) -> list[Race]:
        """Return the races of a season up to this race."""
        return [earlier for earlier in self.races if earlier.season == race.season and earlier.round <= race.round]


@pytest.fixture(scope="module", params=SEEDS)
def drawn_seasons(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DrawnSeasons:
    """Return random seasons; one seed has no renames."""
    races = club_seasons.draw_races(request.param)
    renames = [] if request.param == SEEDS[0] else club_seasons.RENAMES
    url = f"sqlite:///{tmp_path_factory.mktemp('clubs') / 'ratings.db'}"
    upgrade(url)
    drivers = build_ruleset_event(club_seasons.write_ruleset("drivers"))
    fill(
        url,
        [
            drivers,
            *map(build_club_ruleset, TAKES),
            *(race.write() for race in races),
            *(build_rename(*names) for names in renames),
        ],
    )
    return DrawnSeasons(races, renames, url)


@pytest.mark.parametrize("takes", TAKES)
def test_tables_after_every_round_agree_with_the_oracle(drawn_seasons: DrawnSeasons, takes: str) -> None:
    """Ranks, points and races of every club agree after every round, with parts, ties, shared cars and renames."""
    with rl.open(drawn_seasons.url) as ledger:
        for race in drawn_seasons.races:
            rows = ledger.at(as_of=race.day).standings(f"{takes}/{race.season}").rows
            expected = club_seasons.rank_clubs(drawn_seasons.list_races_until(race), takes, drawn_seasons.renames)
            assert [(row.rank, row.player, row.points, row.games) for row in rows] == expected, race.game_id


@pytest.mark.parametrize("takes", TAKES)
def test_explanations_name_the_drivers_and_sum_exactly(drawn_seasons: DrawnSeasons, takes: str) -> None:
    """Every term of a club is that of one of its drivers, and the terms sum to the club's change."""
    with rl.open(drawn_seasons.url) as ledger:
        snapshot = ledger.at()
        for race in drawn_seasons.races:
            explanation = snapshot.explain(f"{takes}/{race.season}", race.game_id)
            expected = club_seasons.score_clubs(race, takes, drawn_seasons.renames)
            assert explanation.counted
            assert {club_row.player: club_row.change for club_row in explanation.players} == {
                club: result.points for club, result in expected.items()
            }
            for club_row in explanation.players:
                drivers = {
                    seat.driver
                    for seat in race.seats
                    if seat.club and club_seasons.find_current_name(seat.club, drawn_seasons.renames) == club_row.player
                }
                assert {term.term.partition(",")[0] for term in club_row.terms} == drivers
                assert (
                    sum(term.amount or 0 for term in club_row.terms)
                    == club_row.change
                    == club_row.after - club_row.before
                )


@pytest.mark.parametrize("takes", TAKES)
def test_explanations_are_the_same_at_the_last_event(drawn_seasons: DrawnSeasons, takes: str) -> None:
    """A race has the same explanation at the last event that matters: a rename of clubs, or else the race itself."""
    with rl.open(drawn_seasons.url) as ledger:
        snapshot = ledger.at()
        for position, race in enumerate(drawn_seasons.races, RULESET_COUNT + 1):
            last = snapshot.last_event_of_game(race.game_id).position
            assert last == (ledger.head.position if drawn_seasons.renames else position)
            ladder = f"{takes}/{race.season}"
            earlier = ledger.at(known_at=last).explain(ladder, race.game_id)
            assert earlier.players == snapshot.explain(ladder, race.game_id).players


@pytest.mark.parametrize("takes", TAKES)
def test_club_history_has_each_race_once(drawn_seasons: DrawnSeasons, takes: str) -> None:
    """A club's history is a chain with each of its races once; its account sums to its points; it has other clubs as
    opponents.
    """
    with rl.open(drawn_seasons.url) as ledger:
        snapshot = ledger.at()
        for row in snapshot.standings(f"{takes}/2001").rows:
            steps = snapshot.history(f"{takes}/2001", row.player).rows
            assert all(left.after == right.before for left, right in pairwise(steps))
            assert len({step.game_id for step in steps}) == len(steps) == row.games
            lines = snapshot.account(f"{takes}/2001", row.player).terms
            assert [line.amount for line in lines if line.term == "sum"] == [row.points]
            assert {opponent.player for opponent in snapshot.profile(f"{takes}/2001", row.player).opponents} <= {
                standing.player for standing in snapshot.standings(f"{takes}/2001").rows
            } - {row.player}


def test_clubs_do_not_change_the_ladder_of_drivers(drawn_seasons: DrawnSeasons) -> None:
    """The ladder of drivers is the same with clubs and without them."""
    with rl.open(drawn_seasons.url) as ledger, TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/plain.db"
        upgrade(url)
        races = [race.write() for race in drawn_seasons.races]
        for race in races:
            for participant in race["data"]["participants"]:
                participant.pop("club", None)
        fill(url, [build_ruleset_event(club_seasons.write_ruleset("drivers")), *races])
        with rl.open(url) as plain:
            for season in ("2001", "2002"):
                assert [*ledger.at().standings(f"drivers/{season}").rows] == [
                    *plain.at().standings(f"drivers/{season}").rows
                ]


@pytest.mark.parametrize("takes", TAKES)
def test_interpreted_and_compiled_replays_agree(
    drawn_seasons: DrawnSeasons, takes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interpreted and compiled replays of clubs have the same traces."""
    pytest.importorskip("numba")
    ladders = load_ladders(drawn_seasons.url)
    interpreted = {name: load_interpreted_trace(drawn_seasons.url, name) for name in ladders.streams(takes)}
    compile_every_rule(monkeypatch)
    assert interpreted
    for name, trace in interpreted.items():
        assert trace.has_same_results(ladders.trace(name))


@pytest.mark.slow_cases
def test_changes_of_a_club_have_causes_that_sum(drawn_seasons: DrawnSeasons) -> None:
    """The causes of a club's change between two positions sum to the difference."""
    with rl.open(drawn_seasons.url) as ledger:
        last = ledger.at().standings("sum/2002").at.known_at
        for takes in TAKES:
            ladder = f"{takes}/2002"
            for row in ledger.at().standings(ladder).rows:
                for known_at in (12, len(drawn_seasons.races), last - 1):
                    attribution = ledger.attribute(ladder, row.player, ledger.at(known_at=known_at), ledger.at())
                    assert attribution.to.points == row.points
                    assert sum(cause.amount for cause in attribution.causes) == attribution.change


@pytest.mark.parametrize("window", [None, 3])
def test_clusters_and_one_process_agree(
    drawn_seasons: DrawnSeasons, window: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cluster with short segments and packs has the rows, digests and changes of one process."""
    shrink_pieces(monkeypatch, events=9, games=4, pack=10, window=window)
    ledger = open_ledger(drawn_seasons.url)
    with open_local_cluster(tmp_path) as cluster:
        results = rank_on_cluster(ledger, cluster)
    assert results == rank_in_one_process(ledger)
    assert {f"{takes}/2001" for takes in TAKES} <= results.keys()


def test_version_decides_what_a_club_takes(tmp_path: Path) -> None:
    """A version from the second season on takes the best result; the first season keeps the sum."""
    races = club_seasons.draw_races(5)
    text = club_seasons.write_ruleset("clubs", 'entrant = "club"\ntakes = "sum"')
    later = text.replace('"1"', '"2"').replace('"sum"', '"best"').replace("2000-01-01", "2002-01-01")
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [build_ruleset_event(text), build_ruleset_event(later), *(race.write() for race in races)])
    with rl.open(url) as ledger:
        for season, takes, version in (("2001", "sum", "clubs@2"), ("2002", "best", "clubs@1")):
            races_of_season = [race for race in races if race.season == season]
            for rules, expected in ((None, takes), (version, "best" if takes == "sum" else "sum")):
                rows = ledger.at(rules=rules).standings(f"clubs/{season}").rows
                assert [(row.rank, row.player, row.points, row.games) for row in rows] == club_seasons.rank_clubs(
                    races_of_season, expected, []
                )


DIPLOMACY_RULESET = """
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
def test_additive_rules_of_contract_1_have_tables_of_clubs(rule: str, tmp_path: Path) -> None:
    """In games of Diplomacy, every club has the sum of its players' changes."""
    chance, url = Random(3), f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    text = DIPLOMACY_RULESET.replace("RULE", rule)
    games, club_of = [], {}
    for number in range(12):
        players = chance.sample([f"p{player}" for player in range(9)], len(POWERS))
        cuts = [0, *sorted(chance.sample(range(1, 34), 6)), 34]
        participants = [{"player": player, "power": power} for player, power in zip(players, POWERS, strict=True)]
        for participant in participants:
            if (club := chance.choice(["Old", "New", None])) is not None:
                participant["club"] = club_of[f"g{number}", participant["player"]] = club
        centres = {power: high - low for power, low, high in zip(POWERS, cuts, cuts[1:], strict=False)}
        data = {
            "game_id": f"g{number}",
            "game": "diplomacy",
            "kind": "diplomacy",
            "participants": participants,
            "centres": {"1901": centres},
        }
        games.append({"type": "game.recorded", "occurred_at": f"2020-01-{number + 1:02d}T12:00:00Z", "data": data})
    rulesets = [
        text.replace("NAME", "all").replace("MEMBERS", ""),
        text.replace("NAME", "clubs").replace("MEMBERS", 'entrant = "club"'),
    ]
    fill(url, [*map(build_ruleset_event, rulesets), *games])
    with rl.open(url) as ledger:
        snapshot, expected = ledger.at(), Counter[str]()
        for number in range(12):
            for row in snapshot.explain("all", f"g{number}").players:
                if (club := club_of.get((f"g{number}", row.player))) is not None:
                    expected[club] += row.change
        assert {row.player: row.points for row in snapshot.standings("clubs").rows} == expected


def test_unscorable_game_counts_for_no_club(tmp_path: Path) -> None:
    """A game without clubs, and a game that the rule cannot score, count for no club, with the reason."""
    races = club_seasons.draw_races(6, seasons=1, rounds=3)
    for seat in races[1].seats:
        seat.club = None
    bad_race = races[2].write()
    bad_race["data"]["numbers"] = {"percent": 5_000}
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [build_club_ruleset("sum"), races[0].write(), races[1].write(), bad_race])
    with rl.open(url) as ledger:
        reasons = [ledger.at().explain("sum/2001", race.game_id).why_not for race in races]
        assert reasons == [
            None,
            "no counted participant played for a club",
            "numbers.percent is 5000; it must be from 1 to 1,000",
        ]
        assert ledger.at().standings("sum/2001").games == 1


def test_failing_rule_fails_ladder_of_clubs_from_its_game_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ladder can be read as of the race before; the error names the failing game, and other ladders are correct."""
    races = club_seasons.draw_races(7, seasons=1, rounds=4)
    text = club_seasons.write_ruleset("clubs", 'entrant = "club"')
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    rule = load_built_in_rule("placement-points/2")
    size = len(races[2].seats)

    def score(n: int, before: Any, columns: Any, constants: Any, table: Any, after: Any) -> int:
        return 1 // 0 if n == size else int(rule.score(n, before, columns, constants, table, after))

    substitute_rule(monkeypatch, rule._replace(name="brittle", number=1, score=score))
    fill(
        url,
        [
            build_club_ruleset("sum"),
            build_ruleset_event(text.replace("placement-points/2", "brittle/1")),
            *(r.write() for r in races),
        ],
    )
    assert all(len(race.seats) != size for race in races[:2])
    with rl.open(url) as ledger:
        with pytest.raises(rl.RuleFailed, match=rf"clubs/2001: .*game {races[2].game_id}.*division"):
            ledger.at().standings("clubs/2001")
        rows = ledger.at(as_of=races[1].day).standings("clubs/2001").rows
        assert [(row.rank, row.player, row.points, row.games) for row in rows] == club_seasons.rank_clubs(
            races[:2], "sum", []
        )
        rows = ledger.at().standings("sum/2001").rows
        assert [(row.rank, row.player, row.points, row.games) for row in rows] == club_seasons.rank_clubs(
            races, "sum", []
        )


OVERLAPPING_BANDS = """
id = "clubs"
version = "1"
rule = "brittle/1"
effective_from = 2000-01-01
time_zone = "UTC"
entrant = "club"

[scope]
game = ["formula-0"]

[partition]
by = ["players"]
bands = ["2-3", "3-4"]

[params]
points = [10, 6, 4]
"""


def test_games_of_a_failed_ladder_still_count_on_a_ladder_that_scores_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where bands overlap, a game after the failure of one ladder gives its points on the other ladder."""
    rule, url = load_built_in_rule("placement-points/2"), f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)

    def score(n: int, before: Any, columns: Any, constants: Any, table: Any, after: Any) -> int:
        return 1 // 0 if n == 2 else int(rule.score(n, before, columns, constants, table, after))

    substitute_rule(monkeypatch, rule._replace(name="brittle", number=1, score=score))
    races = [
        Race("2001", number, 100, [Seat(f"d{place}", place, f"Club {place}") for place in range(1, size + 1)])
        for number, size in enumerate((3, 2, 3, 4))
    ]
    fill(url, [build_ruleset_event(OVERLAPPING_BANDS), *(race.write() for race in races)])
    with rl.open(url) as ledger:
        with pytest.raises(rl.RuleFailed, match=rf"clubs/2-3: .*game {races[1].game_id}.*division"):
            ledger.at().standings("clubs/2-3")
        rows = ledger.at().standings("clubs/3-4").rows
    assert [(row.player, row.points, row.games) for row in rows[:3]] == [
        ("Club 1", 30, 3),
        ("Club 2", 18, 3),
        ("Club 3", 12, 3),
    ]


@pytest.mark.parametrize("cached", [False, True])
def test_open_ledger_follows_races_renames_and_corrections(
    cached: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Races, renames and corrections show in a ledger that stays open, with cached columns and traces or without."""
    if cached:
        set_thresholds(monkeypatch, cached_events=5, delta_events=2, traced_games=1, scanned_events=1)
    races, renames = club_seasons.draw_races(8, seasons=1), list[tuple[str, str]]()
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [*map(build_club_ruleset, TAKES), *(race.write() for race in races[:5])])
    with rl.open(url) as ledger:
        for step, race in enumerate(races[5:], 5):
            for takes in TAKES:
                rows = ledger.at().standings(f"{takes}/2001").rows
                expected = club_seasons.rank_clubs(races[:step], takes, renames)
                assert [(row.rank, row.player, row.points, row.games) for row in rows] == expected
            events = [race.write()]
            if step == 6:
                renames = club_seasons.RENAMES[:1]
                events.append(build_rename(*renames[0]))
            if step == 7:
                races[1].seats[0].club, races[3].seats[2].club = "Alpha", None
                events += [build_correction(races[1]), build_correction(races[3])]
            fill(url, events)


def build_correction(race: Race) -> dict[str, Any]:
    """Return a correction of a race to its present content."""
    written = race.write()
    data = {"game_id": race.game_id, "game": written["data"], "reason": "another club"}
    return {"type": "game.corrected", "occurred_at": "2009-01-01T00:00:00Z", "data": data}


def test_decisions_about_clubs_have_shares_that_sum(tmp_path: Path) -> None:
    """A new name alone changes no points; a deduction and a merger have the same changes in every comparison."""
    races, url = club_seasons.draw_races(9, seasons=1), f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    fill(url, [build_club_ruleset("sum"), *(race.write() for race in races)])
    deduction = build_adjustment("sum/2001", "Alpha", "-2", 1)
    fill(
        url,
        [
            {**deduction, "occurred_at": "2001-12-20T12:00:00Z"},
            build_rename("Alpha", "Alfa"),
            build_rename("Delta", "Gamma"),
        ],
    )
    with rl.open(url) as ledger:
        end = ledger.at().standings("sum/2001").at.known_at
        before, renamed, now = (
            {row.player: row.points for row in ledger.at(known_at=at).standings("sum/2001").rows}
            for at in (end - 3, end - 1, end)
        )
        assert now["Alfa"] == before["Alpha"] - 2
        assert now["Gamma"] != before["Gamma"]
        shares = {share.player: sum(share.amounts.values()) for share in ledger.at().decisions(end - 3).shares}
        assert shares == {"Alfa": -2, "Gamma": now["Gamma"] - before["Gamma"]}
        assert [row.change for row in ledger.at().event_impact(end - 2).rows] == [-2]
        assert ledger.at().event_impact(end - 1).rows == ()
        merged = {row.player: row.change for row in ledger.at().event_impact(end).rows if row.change != 0}
        assert merged == {"Gamma": now["Gamma"] - renamed["Gamma"], "Delta": None}
