"""Clubs as entrants: the sum or the best of what their players get, in every round of drawn seasons, as reckoned by an
oracle, interpreted and compiled; and what clubs have apart from players."""

from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import club_seasons
import pytest
from club_seasons import Race
from histories import facts_of, fill, ruleset

import ratings_ledger as rl
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
                    seat.driver for seat in race.seats
                    if seat.club and club_seasons.current(seat.club, drawn.renames) == one.player
                }  # fmt: skip
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
    for stream in ladders.every(takes).values():
        interpreted, compiled = replay_interpreted(stream, {}), replay_compiled(stream, {})
        assert compiled is not None
        assert interpreted.is_like(compiled)


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
